//! The authorization server of mcpzip itself: OAuth 2.1 as MCP asks for it, for teams that have none.
//!
//! A client sends its user's browser here (`authorize`). The user is known by an invitation that this browser has
//! accepted, or logs in at a provider, and then consents on a page. The client gets a code, which it exchanges for
//! tokens. An access token is a JWT that is valid for ten minutes. A refresh token can be used once; its second use
//! ends the grant.
//!
//! *Invariant*: nothing here gives rights. A grant has a name, groups and roles. The rights that these give are in
//! the configuration, which is checked again every second.

mod client;
mod grants;
mod keys;
mod page;
mod provider;
mod request;
mod waiting;
mod window;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::jwt_crypto::install;
use super::tokens::{
    Grant, INVITED, Known, People, Stamp, TokenError, TokenFile, Tokens, now, random_secret, sha256,
};
use crate::config::{AuthorizationServer as Options, Claims};
use crate::identity::html::Page;
use crate::secret::{is_same_secret, random_token};
use client::{Client, ClientFault, Documents, NOT_NOW};
use keys::{KeyFault, Keys};
use provider::{Login, Provider};
use request::{Refused, Request, redirect_to};
use waiting::{By, Code, Consent, Person, Waiting};

pub(crate) use keys::KeyFile;
pub(crate) use request::Fields;

/// How long a code counts.
const CODE: Duration = Duration::from_secs(60);

/// The context in which logins at the provider are encrypted.
const LOGIN: &str = "login at the provider";

/// How long a person has for the login, and for the consent.
const FLOW: Duration = Duration::from_secs(600);

/// How long a browser that accepted an invitation is its person's, in seconds.
pub(crate) const BROWSER: u64 = 180 * 24 * 60 * 60;

/// The interval at which the age of keys is looked at.
const LOOK: Duration = Duration::from_secs(60 * 60);

/// The authorization server of mcpzip itself.
#[derive(Debug)]
pub(crate) struct AuthorizationServer {
    options: Options,
    file: TokenFile,
    keys: RwLock<KeyState>,
    /// One renewal at a time.
    renewing: Mutex<()>,
    provider: Option<Provider>,
    documents: Documents,
    waiting: Waiting,
}

#[derive(Debug)]
struct KeyState {
    file: KeyFile,
    stamp: Stamp,
    looked: Option<Instant>,
    /// Whether they have changed since their age was looked at.
    is_new: bool,
    /// `None` while they cannot be used.
    keys: Option<Arc<Keys>>,
}

/// A person who is at the login provider: what comes back in `state`, encrypted.
#[derive(Debug, Serialize, Deserialize)]
struct AtProvider {
    request: Request,
    /// The hash of the secret of the browser in which it began.
    browser: String,
    /// In seconds since 1970.
    since: u64,
    login: Login,
}

impl Person {
    /// Whether no revocation has ended that by which they are known.
    fn is_known(&self, people: &People) -> bool {
        match &self.by {
            By::Browser(id) => people.browser(id).is_some(),
            By::Login(since) => {
                let revoked = people.revoked.get(&self.claims.name);
                revoked.is_none_or(|revoked| revoked < since)
            }
        }
    }
}

/// The answer to a browser.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A page.
    Page(Page),
    /// A redirect.
    Redirect(String),
}

/// The answer to a browser, and what is to be remembered about it.
#[derive(Debug)]
pub(crate) struct Visit {
    /// The answer.
    pub(crate) answer: Answer,
    /// A new secret for the browser, and whether it stays when the browser is closed.
    pub(crate) cookie: Option<(String, bool)>,
    /// The event for the audit log: the identity, and what happened.
    pub(crate) event: Option<(String, String)>,
}

/// An error of the endpoints for clients (RFC 6749, 5.2).
#[derive(Debug)]
pub(crate) struct EndpointError {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The code.
    pub(crate) code: &'static str,
    /// The reason, for the author of the client.
    pub(crate) reason: String,
    /// The event for the audit log.
    pub(crate) event: Option<(String, String)>,
}

impl Visit {
    fn page(status: u16, title: &str, sentence: &str) -> Self {
        Self::of(Answer::Page(page::message(status, title, sentence)))
    }

    fn of(answer: Answer) -> Self {
        Self {
            answer,
            cookie: None,
            event: None,
        }
    }

    /// For a request that fits nothing that is in progress.
    fn stray() -> Self {
        Self::page(
            400,
            "This has ended",
            "This page belongs to no login that is in progress in this browser. Start again in your client.",
        )
    }

    /// For a person without a role.
    fn not_entitled(name: &str) -> Self {
        let sentence = format!(
            "You are {name}, who may use nothing here. The administrator of the server gives you a role; then start again in your client.",
        );
        Self::page(403, "You may use nothing here", &sentence)
    }

    fn unavailable() -> Self {
        Self::page(
            503,
            "Not now",
            "Logins are not possible now. The administrator of the server finds the reason in its log.",
        )
    }
}

impl EndpointError {
    fn new(code: &'static str, reason: &str) -> Self {
        Self {
            status: 400,
            code,
            reason: reason.to_owned(),
            event: None,
        }
    }

    /// The server cannot answer; the log has the reason.
    #[must_use]
    pub(crate) fn unavailable() -> Self {
        Self {
            status: 503,
            ..Self::new("temporarily_unavailable", "tokens cannot be given now")
        }
    }
}

impl From<ClientFault> for EndpointError {
    fn from(fault: ClientFault) -> Self {
        Self::new(fault.code, &fault.reason)
    }
}

impl AuthorizationServer {
    pub(super) fn new(options: Options, file: TokenFile) -> Self {
        install();
        let key_file = KeyFile::next_to(&file);
        let shared = file.shared().cloned();
        let state = KeyState {
            stamp: Stamp::none(),
            looked: None,
            is_new: true,
            keys: None,
            file: key_file,
        };
        let redirect = format!("{}/oauth/callback", options.url);
        let login = options.login.clone();
        let server = Self {
            provider: login.map(|login| Provider::new(login, redirect)),
            options,
            file,
            keys: RwLock::new(state),
            renewing: Mutex::default(),
            documents: Documents::new(),
            waiting: Waiting::new(shared),
        };
        server.renew();
        server
    }

    /// The configuration.
    #[must_use]
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Reads the keys again if they have changed, and forgets what has ended. It waits for no store.
    pub(super) fn read_again(&self) {
        self.waiting.tidy();
        let (file, stamp) = {
            let state = self.keys.read();
            (state.file.clone(), state.file.stamp())
        };
        if self.keys.read().stamp != stamp {
            self.know(stamp, file.read_keys());
            self.keys.write().is_new = true;
        }
    }

    /// Renews the keys when they are old, and makes them when there are none. It may wait for the store, on a thread that may block.
    pub(super) fn renew(&self) {
        let Some(_turn) = self.renewing.try_lock() else {
            return;
        };
        let file = {
            let state = self.keys.read();
            let is_young = state.looked.is_some_and(|looked| looked.elapsed() <= LOOK);
            if is_young && state.keys.is_some() && !state.is_new {
                return;
            }
            state.file.clone()
        };
        let stamp = file.stamp();
        self.know(stamp, file.read_renewed().map(Some));
        let mut state = self.keys.write();
        state.looked = Some(Instant::now());
        state.is_new = false;
    }

    fn know(&self, stamp: Stamp, read: Result<Option<Keys>, KeyFault>) {
        let mut state = self.keys.write();
        let is_news = state.looked.is_none() || state.keys.is_some();
        if let Err(error) = &read
            && is_news
        {
            tracing::error!(%error, "the authorization server gives and takes no tokens");
        }
        state.keys = read.ok().flatten().map(Arc::new);
        state.stamp = stamp;
    }

    fn keys(&self) -> Option<Arc<Keys>> {
        self.keys.read().keys.clone()
    }

    /// Whether the key with this id is one of its own.
    pub(super) fn has_key(&self, id: &str) -> bool {
        self.keys().is_some_and(|keys| keys.find(id).is_some())
    }

    /// Its metadata (RFC 8414).
    #[must_use]
    pub(crate) fn metadata(&self, scopes: &BTreeSet<String>) -> Value {
        let url = &self.options.url;
        json!({
            "issuer": url,
            "authorization_endpoint": format!("{url}/oauth/authorize"),
            "token_endpoint": format!("{url}/oauth/token"),
            "registration_endpoint": format!("{url}/oauth/register"),
            "revocation_endpoint": format!("{url}/oauth/revoke"),
            "jwks_uri": format!("{url}/oauth/jwks"),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": !self.options.client_documents.is_empty(),
            "scopes_supported": scopes,
        })
    }

    /// Its public keys; `None` while they cannot be used.
    #[must_use]
    pub(crate) fn public_keys(&self) -> Option<Value> {
        Some(self.keys()?.public())
    }

    /// Registers a client.
    ///
    /// # Errors
    /// When it cannot be one.
    pub(crate) fn register(&self, members: &Value) -> Result<Value, EndpointError> {
        let keys = self.keys().ok_or_else(EndpointError::unavailable)?;
        Ok(Client::register(members, &keys, &self.options)?)
    }

    /// Begins an authorization in the browser with this secret. `is_entitled` says whether a person gets anything here.
    pub(crate) async fn authorize(
        &self,
        fields: &Fields,
        browser: Option<&str>,
        offered: &BTreeSet<String>,
        is_entitled: &(dyn Fn(&Claims) -> bool + Sync),
    ) -> Visit {
        let Some(keys) = self.keys() else {
            return Visit::unavailable();
        };
        let request = match self.request(fields, &keys, offered).await {
            Ok(request) => request,
            Err(Refused::Page(reason)) => {
                return Visit::page(400, "This client is refused", &reason);
            }
            Err(Refused::NotNow(reason)) => return Visit::page(503, "Not now", &reason),
            Err(Refused::Client {
                redirect,
                state,
                fault,
            }) => {
                return Visit::of(self.back(&redirect, state.as_deref(), Err(&fault)));
            }
        };
        self.begin(request, browser, is_entitled).await
    }

    /// Finds out who has the browser, or sends it to the provider.
    async fn begin(
        &self,
        request: Request,
        browser: Option<&str>,
        is_entitled: &(dyn Fn(&Claims) -> bool + Sync),
    ) -> Visit {
        let tokens = match self.tokens_with(browser).await {
            Ok(tokens) => tokens,
            Err(error) => {
                tracing::error!(%error, "no person can log in");
                return Visit::unavailable();
            }
        };
        let cookie = browser.is_none().then(random_secret);
        let secret = browser.or(cookie.as_deref()).unwrap_or_default();
        let known = self.known(&tokens, secret).map(|known| Person {
            claims: known.claims().into(),
            by: By::Browser(known.id.clone()),
        });
        let browser = sha256(secret);
        let answer = match (known, &self.provider) {
            (Some(person), _) if !is_entitled(&(&person.claims).into()) => {
                return Visit::not_entitled(&person.claims.name);
            }
            (Some(person), _) => match self.ask(request, browser, person) {
                Some(answer) => answer,
                None => return Visit::unavailable(),
            },
            (None, Some(provider)) => {
                let at_provider = AtProvider {
                    request,
                    browser,
                    since: now(),
                    login: Login::new(),
                };
                let state = self.sealed(&at_provider);
                match provider.begin(&at_provider.login, &state).await {
                    Ok(url) => Answer::Redirect(url),
                    Err(error) => {
                        tracing::error!(%error, "the login provider cannot be used");
                        return Visit::unavailable();
                    }
                }
            }
            (None, None) => {
                return Visit::page(
                    403,
                    "You are not known here",
                    "This browser belongs to no one who was invited. Ask the administrator of the server for an invitation, open its link in this browser, and start again in your client.",
                );
            }
        };
        Visit {
            cookie: cookie.map(|cookie| (cookie, false)),
            ..Visit::of(answer)
        }
    }

    /// The tokens, with this browser: another replica may just have let it in.
    async fn tokens_with(&self, browser: Option<&str>) -> Result<Tokens, TokenError> {
        let is_there =
            |tokens: &Tokens| browser.is_none_or(|one| self.known(tokens, one).is_some());
        self.file.read_with(is_there).await
    }

    fn sealed(&self, at_provider: &AtProvider) -> String {
        self.waiting.seal(LOGIN, at_provider)
    }

    /// The person at the provider whose login has this `state`, if it began in this browser.
    fn returned(&self, state: &str, browser: &str) -> Option<AtProvider> {
        let returned: AtProvider = self.waiting.open(LOGIN, state)?;
        let is_theirs = is_same_secret(&returned.browser, &sha256(browser));
        let age = now().checked_sub(returned.since)?;
        (is_theirs && age < FLOW.as_secs()).then_some(returned)
    }

    /// Goes on with a person who comes back from the provider. `is_entitled` says whether a person gets anything here.
    pub(crate) async fn callback(
        &self,
        fields: &Fields,
        browser: Option<&str>,
        is_entitled: &(dyn Fn(&Claims) -> bool + Sync),
    ) -> Visit {
        let (Some(state), Some(browser), Some(provider)) =
            (fields.get("state"), browser, &self.provider)
        else {
            return Visit::stray();
        };
        let Some(returned) = self.returned(state, browser) else {
            return Visit::stray();
        };
        let redirect = returned.request.redirect.clone();
        let client_state = returned.request.state.clone();
        let denied = |code| {
            let reason = "the login at the provider gave no person".to_owned();
            let fault = ClientFault { code, reason };
            Visit::of(self.back(&redirect, client_state.as_deref(), Err(&fault)))
        };
        let Some(code) = fields.get("code") else {
            return denied("access_denied");
        };
        let person = match provider.end(&returned.login, code, fields.get("iss")).await {
            Ok(claims) => Person {
                claims: claims.into(),
                by: By::Login(returned.since),
            },
            Err(error) => {
                tracing::error!(%error, "a login at the provider gave no person");
                return denied("server_error");
            }
        };
        if self.regroup((&person.claims).into()).await.is_err() {
            return Visit::unavailable();
        }
        let event = format!("{} logged in at the provider", person.claims.name);
        let event = (person.claims.identity.clone(), event);
        if !is_entitled(&(&person.claims).into()) {
            return Visit {
                event: Some(event),
                ..Visit::not_entitled(&person.claims.name)
            };
        }
        let Some(answer) = self.ask(returned.request, returned.browser, person) else {
            return Visit::unavailable();
        };
        Visit {
            event: Some(event),
            ..Visit::of(answer)
        }
    }

    /// Gives all that a person has let in before the groups of the latest login.
    async fn regroup(&self, claims: Claims) -> Result<(), EndpointError> {
        let (file, waiting) = (self.file.clone(), self.waiting.clone());
        let work = move || {
            waiting
                .regroup(&claims)
                .map_err(|_| EndpointError::unavailable())?;
            let is_other = |grant: &Grant| {
                grant.claims().account() == claims.account() && grant.groups != claims.groups
            };
            let regrouped = file.read().and_then(|tokens| {
                if !tokens.people().grants.iter().any(is_other) {
                    return Ok(());
                }
                file.change_people(|people| {
                    let all = people.grants.iter_mut();
                    all.filter(|grant| is_other(grant))
                        .for_each(|grant| grant.groups.clone_from(&claims.groups));
                })
            });
            regrouped.map_err(|error| {
                tracing::error!(%error, "no person can log in");
                EndpointError::unavailable()
            })
        };
        match self.file.shared() {
            None => work(),
            // The store may let it wait.
            Some(_) => tokio::task::spawn_blocking(work)
                .await
                .unwrap_or_else(|_| Err(EndpointError::unavailable())),
        }
    }

    /// Whether the provider of a grant still is the one at which people log in. An invitation has none.
    pub(super) fn takes(&self, grant: &Grant) -> bool {
        let is_invited = grant.identity.starts_with(INVITED);
        let provider = self.provider.as_ref().map(Provider::url);
        is_invited || provider.is_some() && grant.issuer.as_deref() == provider
    }

    /// Learns who has this browser, before a decision in it is taken.
    pub(crate) async fn meet(&self, browser: Option<&str>) {
        // Without the store, the decision fails as well.
        let _ = self.tokens_with(browser).await;
    }

    /// Ends an authorization by the decision of its person. It may wait for the store, on a thread that may block.
    pub(crate) fn consent(&self, fields: &Fields, browser: Option<&str>) -> Visit {
        let (Some(id), Some(shown), Some(browser)) =
            (fields.get("flow"), fields.get("proof"), browser)
        else {
            return Visit::stray();
        };
        let taken = self.waiting.take(id, |consent| {
            is_same_secret(&consent.proof, shown)
                && is_same_secret(&consent.browser, &sha256(browser))
        });
        let Ok(consent) = taken else {
            return Visit::unavailable();
        };
        let Some(Consent {
            request, person, ..
        }) = consent
        else {
            return Visit::stray();
        };
        match self.file.read() {
            Ok(tokens) if person.is_known(tokens.people()) => {}
            Ok(_) => return Visit::stray(),
            Err(error) => {
                tracing::error!(%error, "no person can let in a client");
                return Visit::unavailable();
            }
        }
        let claims = &person.claims;
        let (redirect, state) = (request.redirect.clone(), request.state.clone());
        if fields.get("decision") != Some("allow") {
            let event = format!("{} did not let in {}", claims.name, request.client.name);
            let fault = ClientFault {
                code: "access_denied",
                reason: "the person did not allow it".to_owned(),
            };
            return Visit {
                event: Some((claims.identity.clone(), event)),
                ..Visit::of(self.back(&redirect, state.as_deref(), Err(&fault)))
            };
        }
        let code = random_secret();
        let event = format!("{} let in {}", claims.name, request.client.name);
        let event = Some((claims.identity.clone(), event));
        let given = Code {
            request,
            person,
            given: now(),
            used: None,
            again: false,
        };
        if self.waiting.keep_code(sha256(&code), given).is_err() {
            return Visit::unavailable();
        }
        Visit {
            event,
            ..Visit::of(self.back(&redirect, state.as_deref(), Ok(&code)))
        }
    }

    /// Shows an invitation.
    pub(crate) async fn invitation(&self, secret: &str, browser: Option<&str>) -> Visit {
        let cookie = browser.is_none().then(random_secret);
        let own = browser.or(cookie.as_deref()).unwrap_or_default();
        // It may just have been made.
        let is_there = |tokens: &Tokens| self.invited(tokens, secret).is_some();
        let tokens = self.file.read_with(is_there).await;
        let (Some(keys), Ok(tokens)) = (self.keys(), tokens) else {
            return Visit::unavailable();
        };
        let Some(invitation) = self.invited(&tokens, secret) else {
            return Visit::page(
                404,
                "No invitation",
                "This link was used, has ended or was revoked. The administrator of the server can give another one.",
            );
        };
        let proof = keys.seal("invitation", &format!("{own}\n{secret}"));
        let page = page::invitation(&invitation.name, &format!("/invite/{secret}"), &proof);
        Visit {
            cookie: cookie.map(|cookie| (cookie, false)),
            ..Visit::of(Answer::Page(page))
        }
    }

    /// Accepts an invitation: the browser is its person's from now on.
    pub(crate) fn accept(&self, secret: &str, fields: &Fields, browser: Option<&str>) -> Visit {
        let Some(keys) = self.keys() else {
            return Visit::unavailable();
        };
        let proof = fields.get("proof").unwrap_or_default();
        let is_theirs = browser
            .is_some_and(|own| keys.is_sealed("invitation", &format!("{own}\n{secret}"), proof));
        if !is_theirs || !self.options.invitations {
            return Visit::stray();
        }
        let own = random_secret();
        let accepted = self.file.change_people(|people| {
            let at = people
                .invitations
                .iter()
                .position(|one| one.is_by(secret))?;
            let invitation = people.invitations.remove(at);
            let person = Known {
                id: invitation.id,
                name: invitation.name,
                sha256: sha256(&own),
                roles: invitation.roles,
                profile: invitation.profile,
                created: now(),
                expires: now() + BROWSER,
            };
            people.browsers.push(person.clone());
            Some(person)
        });
        let person = match accepted {
            Ok(Some(person)) => person.claims(),
            Ok(None) => return Visit::stray(),
            Err(error) => {
                tracing::error!(%error, "an invitation cannot be accepted");
                return Visit::unavailable();
            }
        };
        let sentence = format!(
            "You are {} in this browser. Start your client again, or log in there: it opens a page here that asks for your consent.",
            person.name
        );
        let event = format!("{} accepted an invitation", person.name);
        Visit {
            cookie: Some((own, true)),
            event: Some((person.identity, event)),
            ..Visit::page(200, "Welcome", &sentence)
        }
    }

    /// The person of an invitation that this browser has accepted.
    fn known<'t>(&self, tokens: &'t Tokens, secret: &str) -> Option<&'t Known> {
        let mut browsers = tokens.people().browsers.iter();
        browsers.find(|one| self.options.invitations && one.is_by(secret))
    }

    /// The invitation with this secret.
    fn invited<'t>(&self, tokens: &'t Tokens, secret: &str) -> Option<&'t Known> {
        let mut invitations = tokens.people().invitations.iter();
        invitations.find(|one| self.options.invitations && one.is_by(secret))
    }

    /// The request of a client.
    async fn request(
        &self,
        fields: &Fields,
        keys: &Keys,
        offered: &BTreeSet<String>,
    ) -> Result<Request, Refused> {
        let id = fields.get("client_id");
        let id = id.ok_or_else(|| Refused::Page("The request names no client.".to_owned()))?;
        let client = self.documents.client(id, keys, &self.options).await;
        let client = client.map_err(|fault| {
            let reason = format!("{}.", fault.reason);
            match fault.code {
                NOT_NOW => Refused::NotNow(reason),
                _ => Refused::Page(reason),
            }
        })?;
        let redirect = fields.get("redirect_uri").unwrap_or_default();
        if !client.has_redirect(redirect, &self.options) {
            let reason =
                "The redirect of the request is not one of the client's, or may not be used here.";
            return Err(Refused::Page(reason.to_owned()));
        }
        Request::read(fields, client, redirect, &self.options.audience(), offered)
    }

    /// The page that asks a person for consent; `None` if too many are being asked.
    fn ask(&self, request: Request, browser: String, person: Person) -> Option<Answer> {
        let proof = random_token();
        let mut facts = Vec::new();
        if let Some(host) = &request.client.host {
            facts.push(("The client is described by", host.clone()));
        }
        facts.push(("You come back to", host_of(&request.redirect)));
        if !request.scopes.is_empty() {
            let scopes: Vec<&str> = request.scopes.iter().map(String::as_str).collect();
            facts.push(("It asks for", scopes.join(", ")));
        }
        let (client, name) = (request.client.name.clone(), person.claims.name.clone());
        let source = source_of(&request.redirect);
        let id = self.waiting.keep(Consent {
            request,
            browser,
            begun: waiting::micros(),
            person,
            proof: proof.clone(),
        })?;
        let mut page = page::consent(&client, &name, &facts, (&id, &proof));
        page.leads_to = Some(source);
        Some(Answer::Page(page))
    }

    /// The redirect back to a client, with a code or an error.
    fn back(
        &self,
        redirect: &str,
        state: Option<&str>,
        outcome: Result<&str, &ClientFault>,
    ) -> Answer {
        let issuer = Some(self.options.url.as_str());
        let url = match outcome {
            Ok(code) => redirect_to(
                redirect,
                &[("code", Some(code)), ("state", state), ("iss", issuer)],
            ),
            Err(fault) => redirect_to(
                redirect,
                &[
                    ("error", Some(fault.code)),
                    ("error_description", Some(&fault.reason)),
                    ("state", state),
                    ("iss", issuer),
                ],
            ),
        };
        Answer::Redirect(url)
    }
}

/// A redirect as a person reads it.
fn host_of(redirect: &str) -> String {
    let url = Url::parse(redirect).ok();
    let host = url.as_ref().and_then(|url| {
        let host = url
            .host_str()
            .filter(|_| url.scheme().starts_with("http"))?;
        Some(match host {
            "localhost" | "127.0.0.1" | "[::1]" => "a program on this computer".to_owned(),
            host => host.to_owned(),
        })
    });
    host.unwrap_or_else(|| {
        let scheme = redirect.split(':').next().unwrap_or_default();
        format!("the application of `{scheme}:`")
    })
}

/// A redirect as a source in a policy of content.
fn source_of(redirect: &str) -> String {
    Url::parse(redirect).map_or_else(
        |_| String::new(),
        |url| match url.origin() {
            // A policy of content has no addresses of version 6.
            origin if origin.is_tuple() && !redirect.contains("//[") => {
                origin.ascii_serialization()
            }
            _ => format!("{}:", url.scheme()),
        },
    )
}
