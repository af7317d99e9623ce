//! One login of a person: the authorization code flow of OAuth 2.1 with PKCE (RFC 7636, method S256) and the resource
//! indicator (RFC 8707). [`Flow::begin`] finds the authorization server and opens the callback; the user's browser or a pasted
//! URL brings the [`RedirectAnswer`]; the code in it is exchanged for a token.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use sha2::{Digest as _, Sha256};

use super::account::{Account, LoginStatus};
use super::callback::{Callback, Visitor, port_of};
use super::challenge::Challenge;
use super::client::Client;
use super::discovery::Authority;
use super::error::LoginError;
use super::fetcher::MetadataFetcher;
use super::issuer::IssuerChange;
use super::refusal::refused;
use super::scopes::add_scopes;
use super::store::Record;
use crate::config::Grant;
use crate::secret::{Secret, is_same_secret, random_token};

/// The time limit for the user.
const LIMIT: Duration = Duration::from_secs(5 * 60);

/// The codes of a refused registration (RFC 7591, 3.2.2).
const REGISTRATION_ERRORS: [&str; 4] = [
    "invalid_redirect_uri",
    "invalid_client_metadata",
    "invalid_software_statement",
    "unapproved_software_statement",
];

/// A login in progress: the page that the user opens, and the callback that waits for the answer.
#[derive(Debug)]
pub(crate) struct Flow {
    account: Account,
    authority: Authority,
    client: Client,
    redirect: Redirect,
    url: Url,
    state: Secret<String>,
    verifier: Secret<String>,
    /// In a login at an identity provider: what its ID token has to repeat (OpenID Connect Core, section 3.1.2.1).
    nonce: Option<Secret<String>>,
    scopes: Vec<String>,
    moved_from: Option<String>,
    change: IssuerChange,
}

/// The place where the browser comes back to.
#[derive(Debug)]
enum Redirect {
    /// This machine.
    Here(Callback),
    /// The page of a gateway with this URL, which gives the answer to [`Flow::pasted`].
    Page(String),
}

impl Redirect {
    fn url(&self) -> String {
        match self {
            Self::Here(callback) => callback.url(),
            Self::Page(url) => url.clone(),
        }
    }
}

/// The user's choices for a login.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoginRequest {
    /// The scopes to request, in place of those that the server names.
    pub scopes: Vec<String>,
    /// Whether configured credentials may be sent to another issuer than before.
    pub issuer: IssuerChange,
}

/// The parameters of the redirect.
#[derive(Debug)]
pub(crate) struct RedirectAnswer {
    code: Option<Secret<String>>,
    error: Option<(String, String)>,
    issuer: Option<String>,
    visitor: Option<Visitor>,
}

impl Flow {
    /// Finds the authorization server, registers a client if needed, and opens the callback.
    ///
    /// # Errors
    /// When the server requires no login, or offers none that we support.
    pub(crate) async fn begin(
        account: Account,
        request: &LoginRequest,
    ) -> Result<Self, LoginError> {
        Self::begin_at(account, request, None).await
    }

    /// As [`Self::begin`]; the browser comes back to `page`, if that is given.
    pub(crate) async fn begin_at(
        account: Account,
        request: &LoginRequest,
        page: Option<String>,
    ) -> Result<Self, LoginError> {
        debug_assert_ne!(account.remote.oauth.grant, Grant::ClientCredentials);
        if account.remote.oauth.idp.is_some() {
            return Self::begin_at_provider(account, request, page).await;
        }
        let probed = account.probe(None).await?;
        // A login that cannot be opened is about to be replaced.
        let (record, unread) = match account.store.read().await {
            Ok(record) => (record, None),
            Err(error) => (account.store.empty(), Some(error)),
        };
        let is_readable = unread.is_none();
        // The server may accept this request and refuse later ones.
        let wants_login = probed.is_some() || !record.wanted.is_empty() || record.pointer.is_some();
        let mut challenge = probed.unwrap_or_default();
        challenge.resource_metadata = challenge
            .resource_metadata
            .or_else(|| record.pointer.clone());
        let fetcher = account.fetcher().await;
        let kept = unread.map_or(Ok(&record), Err);
        let authority = account
            .authority(&fetcher, &challenge, kept, None, request.issuer)
            .await?;
        let moved_from = account.moved_from(&record, &authority.issuer);
        // A server that accepts every request may require a login for some of its tools, and then names the
        // authorization server.
        if authority.is_guessed && !wants_login {
            return Err(account.not_offered("requires no login"));
        }
        let Some(endpoint) = authority.authorization_endpoint.clone() else {
            let reason = format!("`{}` lets no person log in", authority.issuer);
            return Err(LoginError::Metadata { reason });
        };
        // Without it, a stolen code could be used by the thief (2025-11-25, basic/authorization).
        if !authority.protects_codes {
            let reason = format!("`{}` does not support PKCE with S256", authority.issuer);
            return Err(LoginError::Metadata { reason });
        }
        fetcher.check(&endpoint)?;
        let (client, redirect) = identity(
            &account,
            &fetcher,
            &authority,
            is_readable.then_some(&record),
            page,
        )
        .await?;
        let scopes = scopes(&account, &authority, &challenge, &record, request);
        drop(fetcher);
        let mut flow = Self::of(account, authority, client, redirect, scopes, &endpoint);
        flow.moved_from = moved_from;
        Ok(flow)
    }

    /// Begins a login at the identity provider of the server's entry. The server itself is asked for nothing yet.
    async fn begin_at_provider(
        account: Account,
        request: &LoginRequest,
        page: Option<String>,
    ) -> Result<Self, LoginError> {
        let (authority, client, scopes, endpoint) = {
            let identity = account
                .identity_login()?
                .ok_or(LoginError::NothingToRenew)?;
            let fetcher = identity.fetcher().await;
            let authority = identity.authority(&fetcher).await?;
            let Some(endpoint) = authority.authorization_endpoint.clone() else {
                let reason = format!("`{}` lets no person log in", authority.issuer);
                return Err(LoginError::Metadata { reason });
            };
            fetcher.check(&endpoint)?;
            let (client, scopes) = (identity.client(&authority), identity.scopes(&authority));
            (authority, client, scopes, endpoint)
        };
        let redirect = match page {
            Some(url) => Redirect::Page(url),
            None => {
                let port = account.remote.oauth.redirect_port.unwrap_or(0);
                Redirect::Here(Callback::open(port).await?)
            }
        };
        let mut flow = Self::of(account, authority, client, redirect, scopes, &endpoint);
        // Few providers say that they support PKCE; the nonce binds the ID token to this login in any case.
        let nonce = random_token();
        flow.url.query_pairs_mut().append_pair("nonce", &nonce);
        flow.nonce = Some(nonce.into());
        flow.change = request.issuer;
        Ok(flow)
    }

    /// A login at `authority`, whose page is `endpoint`.
    fn of(
        account: Account,
        authority: Authority,
        client: Client,
        redirect: Redirect,
        scopes: Vec<String>,
        endpoint: &Url,
    ) -> Self {
        // Twice 128 bits: a verifier has at least 43 characters (RFC 7636, section 4.1).
        let verifier = Secret::new(random_token() + &random_token());
        let state = Secret::new(random_token());
        let mut url = endpoint.clone();
        {
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.expose()));
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id);
            query
                .append_pair("redirect_uri", &redirect.url())
                .append_pair("state", state.expose());
            query
                .append_pair("code_challenge", &challenge)
                .append_pair("code_challenge_method", "S256");
            if !authority.resource.is_empty() {
                query.append_pair("resource", &authority.resource);
            }
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
            let is_of_server = !authority.resource.is_empty();
            if is_of_server && scopes.iter().any(|scope| scope == "offline_access") {
                // OpenID Connect, section 11: without it the scope may be ignored. At an identity provider, an
                // administrator has consented.
                query.append_pair("prompt", "consent");
            }
        }
        Self {
            account,
            authority,
            client,
            redirect,
            url,
            state,
            verifier,
            nonce: None,
            scopes,
            moved_from: None,
            change: IssuerChange::Refused,
        }
    }

    /// The issuer that had the configured credentials so far, if this one differs.
    #[must_use]
    pub(crate) fn moved_from(&self) -> Option<&str> {
        self.moved_from.as_deref()
    }

    /// The login page. The URL does not give others access.
    #[must_use]
    pub(crate) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The authorization server.
    #[must_use]
    pub(crate) fn issuer(&self) -> &str {
        &self.authority.issuer
    }

    /// The redirect URL, without parameters.
    #[must_use]
    pub(crate) fn redirect(&self) -> String {
        self.redirect.url()
    }

    /// The `state` by which the answer is known.
    #[must_use]
    pub(crate) fn state(&self) -> &str {
        self.state.expose()
    }

    /// Waits for the redirect of the browser.
    ///
    /// # Errors
    /// When it does not come in time.
    pub(crate) async fn answer(&self) -> Result<RedirectAnswer, LoginError> {
        let Redirect::Here(callback) = &self.redirect else {
            let reason = "it comes to a page of the gateway";
            return Err(LoginError::Foreign { reason });
        };
        let state = self.state.clone();
        let waiting = async {
            let belongs = move |url: &Url| has_state(url, &state);
            let (url, visitor) = callback.visitor(belongs).await?;
            Ok(RedirectAnswer {
                visitor: Some(visitor),
                ..self.read(&url)?
            })
        };
        tokio::time::timeout(LIMIT, waiting)
            .await
            .unwrap_or(Err(LoginError::TimedOut { limit: LIMIT }))
    }

    /// Reads a redirect URL that a person copied from a browser on another machine.
    ///
    /// # Errors
    /// When it does not belong to this login.
    pub(crate) fn pasted(&self, text: &str) -> Result<RedirectAnswer, LoginError> {
        let text = text.trim();
        if !text.contains("state=") {
            return Err(LoginError::Foreign {
                reason: "it is not the redirect URL of this login",
            });
        }
        let query = text.split_once('?').map_or(text, |(_, query)| query);
        let url = Url::parse(&format!("{}?{query}", self.redirect.url()));
        self.read(&url.map_err(|_| LoginError::Foreign {
            reason: "it is not a URL",
        })?)
    }

    /// Reads the answer from the redirect URL.
    fn read(&self, url: &Url) -> Result<RedirectAnswer, LoginError> {
        let parameter = |wanted| parameter(url, wanted);
        if !has_state(url, &self.state) {
            return Err(LoginError::Foreign {
                reason: "its `state` is that of another login",
            });
        }
        let error = parameter("error")
            .map(|code| (code, parameter("error_description").unwrap_or_default()));
        let (code, issuer) = (parameter("code").map(Secret::new), parameter("iss"));
        Ok(RedirectAnswer {
            code,
            error,
            issuer,
            visitor: None,
        })
    }

    /// Completes the login: checks the answer, gets and stores the token, and shows the result in the waiting browser.
    ///
    /// # Errors
    /// When the answer is a refusal or comes from another issuer, or no token is issued.
    pub(crate) async fn finish(
        self,
        mut answer: RedirectAnswer,
    ) -> Result<LoginStatus, LoginError> {
        let visitor = answer.visitor.take();
        let server = self.account.server.to_string();
        let outcome = self.exchange(answer).await;
        if let Some(visitor) = visitor {
            match &outcome {
                Ok(_) => {
                    visitor
                        .show(
                            "200 OK",
                            &format!("mcpzip is logged in at the server <b>{server}</b>"),
                        )
                        .await;
                }
                Err(_) => {
                    visitor
                        .show(
                            "400 Bad Request",
                            "The login failed; mcpzip says why where it was started",
                        )
                        .await;
                }
            }
        }
        outcome
    }

    async fn exchange(self, answer: RedirectAnswer) -> Result<LoginStatus, LoginError> {
        // Checked first: nothing from another issuer counts, not even its error (RFC 9207, section 2.4).
        match &answer.issuer {
            Some(issuer) if *issuer != self.authority.issuer => {
                return Err(LoginError::Foreign {
                    reason: "it comes from another authorization server",
                });
            }
            None if self.authority.names_issuer => {
                return Err(LoginError::Foreign {
                    reason: "it does not say which authorization server it comes from",
                });
            }
            _ => {}
        }
        if let Some((code, words)) = answer.error {
            return Err(refused(
                &self.authority.issuer,
                &code,
                &words,
                &[self.state, self.verifier],
            ));
        }
        let Some(code) = answer.code else {
            return Err(LoginError::Foreign {
                reason: "it has no code",
            });
        };
        let Self {
            account,
            authority,
            client,
            redirect,
            verifier,
            nonce,
            scopes,
            change,
            ..
        } = self;
        let redirect = redirect.url();
        let fetcher = account.fetcher().await;
        if authority.is_public {
            fetcher.note_public();
        }
        let grant = [
            ("grant_type", "authorization_code"),
            ("code", code.expose().as_str()),
            ("redirect_uri", redirect.as_str()),
            ("code_verifier", verifier.expose().as_str()),
        ];
        account.store.prepare().await?;
        if let Some(nonce) = nonce {
            drop(fetcher);
            let identity = account
                .identity_login()?
                .ok_or(LoginError::NothingToRenew)?;
            identity.log_in(&authority, &client, &grant, &nonce).await?;
            return account.log_in_alone(change).await;
        }
        {
            let _lock = account.store.lock().await?;
            // A record that cannot be read now is replaced after the login, not before.
            if let Ok(mut record) = account.store.read().await {
                account.pin(&mut record, &authority.issuer).await?;
            }
        }
        let asked = account
            .endpoint(&fetcher, &authority, &client)
            .ask(&grant, &scopes)
            .await;
        let _lock = account.store.lock().await?;
        let mut record = account
            .store
            .read()
            .await
            .unwrap_or_else(|_| account.store.empty());
        match asked {
            Ok(token) => {
                account
                    .keep(&mut record, &authority, client, Some(token))
                    .await?;
            }
            Err(error) => {
                // It has deleted our registration; the next login registers again.
                if error.is_unknown_client() && record.logins.remove(&authority.issuer).is_some() {
                    account.store.write(&record).await?;
                }
                return Err(error);
            }
        }
        account.status().await?.ok_or(LoginError::NothingToRenew)
    }
}

/// A parameter of the redirect URL, if it is not empty.
fn parameter(url: &Url, wanted: &str) -> Option<String> {
    let mut found = url
        .query_pairs()
        .filter(|(name, _)| name == wanted)
        .map(|(_, value)| value.into_owned());
    found.next().filter(|value| !value.is_empty())
}

/// Whether a URL has the `state` of this login.
fn has_state(url: &Url, state: &Secret<String>) -> bool {
    is_same_secret(&parameter(url, "state").unwrap_or_default(), state.expose())
}

/// The client identity, and the place of its redirect URL; `record` is the stored one, if it can be read. With `page`, that is the URL.
async fn identity(
    account: &Account,
    fetcher: &MetadataFetcher<'_>,
    authority: &Authority,
    record: Option<&Record>,
    page: Option<String>,
) -> Result<(Client, Redirect), LoginError> {
    let oauth = &account.remote.oauth;
    let wanted_port = oauth.redirect_port.unwrap_or(0);
    if let Some(client) = Client::configured(oauth, authority) {
        let redirect = match page {
            Some(url) => Redirect::Page(url),
            None => Redirect::Here(Callback::open(wanted_port).await?),
        };
        return Ok((client, redirect));
    }
    let known = record.and_then(|record| record.logins.get(&authority.issuer));
    let registered = known.and_then(|login| login.client.clone());
    let registered = registered.filter(Client::is_valid);
    if let Some(url) = &page
        && let Some(client) = registered.as_ref()
        && client.redirect.as_ref() == Some(url)
    {
        return Ok((client.clone(), Redirect::Page(url.clone())));
    }
    if page.is_none()
        && let Some(client) = registered
        && let Some(port) = client.redirect.as_deref().and_then(port_of)
        && oauth.redirect_port.is_none_or(|wanted| wanted == port)
        // Another program may use its port now.
        && let Ok(callback) = Callback::open(port).await
    {
        return Ok((client, Redirect::Here(callback)));
    }
    let (place, port) = match page {
        Some(url) => (Redirect::Page(url), None),
        None => {
            let callback = Callback::open(wanted_port).await?;
            let port = callback.port();
            (Redirect::Here(callback), Some(port))
        }
    };
    let redirect = place.url();
    let Some(endpoint) = &authority.registration_endpoint else {
        let issuer = authority.issuer.clone();
        return Err(match port {
            Some(port) => LoginError::NoClient {
                issuer,
                redirect,
                port,
            },
            None => LoginError::NoWebClient { issuer, redirect },
        });
    };
    let client = Client::register(fetcher, authority, endpoint, &redirect, port.is_none())
        .await
        .map_err(|error| match error {
            // Nothing but an error of registration says that this is an authorization server.
            LoginError::Refused { ref code, .. }
                if authority.is_guessed && !REGISTRATION_ERRORS.contains(&code.as_str()) =>
            {
                LoginError::NoOAuth {
                    server: account.server.to_string(),
                }
            }
            error => error,
        })?;
    // Stored at once, so that an aborted login does not leave a new client behind each time.
    if record.is_some() {
        let _lock = account.store.lock().await?;
        account
            .keep(
                &mut account.store.read().await?,
                authority,
                client.clone(),
                None,
            )
            .await?;
    }
    Ok((client, place))
}

/// The scopes to request (2025-11-25, basic/authorization, scope selection): those of the user or the configuration,
/// else those of the server's challenge, else of its metadata; plus those of the last login and those missing since.
fn scopes(
    account: &Account,
    authority: &Authority,
    challenge: &Challenge,
    record: &Record,
    request: &LoginRequest,
) -> Vec<String> {
    if !request.scopes.is_empty() {
        return request.scopes.clone();
    }
    let configured = &account.remote.oauth.scopes;
    let mut scopes =
        if configured.is_empty() && challenge.scopes.is_empty() && record.wanted.is_empty() {
            authority.server_scopes.clone()
        } else {
            configured.clone()
        };
    add_scopes(&mut scopes, &challenge.scopes);
    if !record.wanted.is_empty() {
        let earlier = record
            .logins
            .get(&authority.issuer)
            .and_then(|login| login.token.as_ref());
        add_scopes(
            &mut scopes,
            earlier.map(|token| &token.scopes).into_iter().flatten(),
        );
        add_scopes(&mut scopes, &record.wanted);
    }
    if authority.has_offline_access && !scopes.is_empty() {
        add_scopes(&mut scopes, ["offline_access"]);
    }
    scopes
}
