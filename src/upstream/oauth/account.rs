//! The login at one server: its state, logins without the user (client credentials, JWT), and its end. Logins that
//! need the user are in `flow.rs`; tokens for requests come from `session.rs`.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Serialize;

use super::assertion::JWT_BEARER;
use super::challenge::Challenge;
use super::client::Client;
use super::discovery::Authority;
use super::error::LoginError;
use super::fetcher::{MetadataFetcher, wrong};
use super::issuer::IssuerChange;
use super::refusal::refusal;
use super::scopes::add_scopes;
use super::store::{Login, Record, Store};
use super::token::{Token, TokenEndpoint};
use crate::config::{self, Era, Grant, PrivateKey, Remote, Transport, UpstreamIdentity};
use crate::mcp::Revision;
use crate::text::chain;
use crate::tool::ServerName;
use crate::upstream::UpstreamContext;
use crate::upstream::opening::openings;
use crate::upstream::transport::http::headers;

/// The account at one server, with or without a login. Commands and requests use it.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(super) server: ServerName,
    pub(super) url: Url,
    pub(super) remote: Remote,
    pub(super) context: Arc<UpstreamContext>,
    pub(super) store: Store,
    era: Era,
    /// Whether the server is asked for a login by a GET: one of HTTP+SSE, or an HTTP interface, where a POST could act.
    opens_with_get: bool,
}

/// The time limit of the request that finds out whether a server requires a login.
const PROBE_LIMIT: Duration = Duration::from_secs(30);

/// The time limit of the request that ends its session.
const FAREWELL: Duration = Duration::from_secs(3);

/// The interval at which a login on a page is looked for.
const LOOK: Duration = Duration::from_millis(300);

/// A login, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LoginStatus {
    /// The server's name in the configuration.
    pub server: String,
    /// The authorization server.
    pub issuer: String,
    /// The authorization server that had the configured credentials before this login, if it was another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// The id of our client there.
    pub client_id: Option<String>,
    /// The scopes of the token.
    pub scopes: Vec<String>,
    /// The seconds until its token ends; 0 after the end, `None` if the server gave no time.
    pub expires_in: Option<u64>,
    /// Whether it is renewed automatically after that.
    pub refreshable: bool,
    /// The scopes that the server has asked for since.
    pub missing_scopes: Vec<String>,
    /// Whether it is encrypted with a key in the system's keychain.
    pub sealed: bool,
    /// The identity provider whose login it comes from (`oauth.grant` "id-jag").
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_provider: Option<String>,
}

/// The end of a login.
#[derive(Debug, Default)]
pub(crate) struct LoggedOut {
    /// Whether there was a login.
    pub was_there: bool,
    /// Why tokens were not revoked, so that they are valid until they end.
    pub unrevoked: Vec<LoginError>,
}

impl LoggedOut {
    /// Why tokens were not revoked, each with its causes.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let reasons = self.unrevoked.iter().map(|error| chain(error));
        reasons.collect()
    }

    /// The text for a person about tokens of `server` that were not revoked, for these reasons.
    pub(crate) fn still_valid(server: &str, reasons: &[String]) -> String {
        format!(
            "tokens of `{server}` stay valid until they end, because they were not revoked: {}. Your account there may have a page that ends the access of mcpzip",
            reasons.join("; ")
        )
    }

    /// Records how a revocation ended.
    pub(super) fn note(&mut self, server: &ServerName, revoked: Result<(), LoginError>) {
        if let Err(error) = revoked {
            tracing::warn!(%server, %error, "tokens were not revoked, and stay valid until they end");
            self.unrevoked.push(error);
        }
    }
}

impl Account {
    /// The account at `server`. `None` for a server that needs none (a local one, or one with `Authorization` in its
    /// configured headers), or if nothing is kept on disk.
    ///
    /// # Errors
    /// When the URL is unusable.
    pub(in crate::upstream) fn of(
        server: &ServerName,
        remote: &Remote,
        context: &Arc<UpstreamContext>,
    ) -> Result<Option<Self>, LoginError> {
        let is_configured = remote
            .headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"));
        let person = context.person.as_ref();
        let account = person.map(|person| person.entitlement.account());
        let (vault, account) = match &remote.identity {
            UpstreamIdentity::Shared => (&context.logins, None),
            UpstreamIdentity::PerUser => {
                let account = account.ok_or_else(|| LoginError::OfPeople {
                    server: server.to_string(),
                })?;
                (&context.logins_of_people, Some(account))
            }
            UpstreamIdentity::Forward(_) | UpstreamIdentity::Exchange(_) => (&None, None),
        };
        let Some(vault) = vault.as_ref().filter(|_| !is_configured) else {
            return Ok(None);
        };
        let url = Url::parse(&remote.url).map_err(|_| LoginError::NotOffered {
            server: server.to_string(),
            reason: "has a URL that cannot be used".to_owned(),
        })?;
        let oauth = &remote.oauth;
        let (id, secret) = (&oauth.client_id, &oauth.client_secret);
        let store = Store::new(vault, server, url.as_str(), account.as_deref()).of_client(
            id.as_ref(),
            secret.as_ref(),
            oauth.issuer.as_ref(),
        );
        let (server, remote, context) = (server.clone(), remote.clone(), context.clone());
        Ok(Some(Self {
            server,
            url,
            remote,
            context,
            store,
            era: Era::Auto,
            opens_with_get: false,
        }))
    }

    /// Like [`Account::of`], for a whole entry, which also has the settings of the first request.
    ///
    /// # Errors
    /// When the URL is unusable.
    pub(crate) fn of_entry(
        server: &ServerName,
        entry: &config::Server,
        context: &Arc<UpstreamContext>,
    ) -> Result<Option<Self>, LoginError> {
        let (remote, opens_with_get) = match &entry.transport {
            Transport::Stdio(_) | Transport::Folder(_) => return Ok(None),
            Transport::Http(remote) => (remote, remote.openapi.is_some()),
            Transport::Sse(remote) => (remote, true),
        };
        Ok(Self::of(server, remote, context)?.map(|account| Self {
            era: entry.era,
            opens_with_get,
            ..account
        }))
    }

    /// The stored login, if there is one.
    ///
    /// # Errors
    /// When it cannot be read now.
    pub(crate) async fn status(&self) -> Result<Option<LoginStatus>, LoginError> {
        let record = self.store.read().await?;
        let Some((issuer, login)) = record.login() else {
            return Ok(None);
        };
        let Some(token) = login.token.as_ref() else {
            return Ok(None);
        };
        let identity = self.identity_login()?;
        let is_renewed = match &identity {
            Some(identity) => identity.is_usable().await,
            None => token.refresh.is_some() || self.remote.oauth.grant == Grant::ClientCredentials,
        };
        Ok(Some(LoginStatus {
            server: self.server.to_string(),
            issuer: issuer.to_owned(),
            moved_from: None,
            client_id: login.client.as_ref().map(|client| client.id.clone()),
            scopes: token.scopes.clone(),
            expires_in: token.ends.map(|end| end.saturating_sub(super::now())),
            refreshable: is_renewed,
            missing_scopes: record.wanted.clone(),
            sealed: record.is_sealed,
            identity_provider: identity.map(|identity| identity.issuer().to_owned()),
        }))
    }

    /// The server's name.
    #[must_use]
    pub(crate) fn server(&self) -> &ServerName {
        &self.server
    }

    /// Whether a configured command provides the credentials, so that no login is needed.
    #[must_use]
    pub(crate) fn has_command(&self) -> bool {
        self.remote.headers_command.is_some()
    }

    /// Whether it is that of one person of a gateway.
    #[must_use]
    pub(crate) fn is_of_person(&self) -> bool {
        self.store.is_of_person()
    }

    /// The URL of the page on which its person logs in; `None` if the gateway does not know its own.
    #[must_use]
    pub(crate) fn page(&self) -> Option<String> {
        self.context.person.as_ref()?.page(&self.server)
    }

    /// Waits until its person has logged in on the page.
    ///
    /// # Errors
    /// When that takes too long.
    pub(crate) async fn logged_in(&self, limit: Duration) -> Result<(), LoginError> {
        let token = async || {
            let record = self.store.read().await.ok();
            record.and_then(|record| record.token().cloned())
        };
        let before = token().await;
        let waiting = async {
            loop {
                tokio::time::sleep(LOOK).await;
                let now = token().await;
                if now.is_some() && now != before {
                    return;
                }
            }
        };
        let waited = tokio::time::timeout(limit, waiting).await;
        waited.map_err(|_| LoginError::TimedOut { limit })
    }

    /// Whether a login needs a person.
    #[must_use]
    pub(crate) fn needs_person(&self) -> bool {
        self.remote.oauth.grant != Grant::ClientCredentials
    }

    /// Whether it gets tokens from its own credentials or an earlier login elsewhere, as long as these are valid.
    #[must_use]
    pub(crate) fn logs_in_alone(&self) -> bool {
        self.remote.oauth.grant != Grant::AuthorizationCode
    }

    /// The identity provider at which a person logs in for several servers, if the entry names one.
    #[must_use]
    pub(crate) fn identity_provider(&self) -> Option<&str> {
        let provider = self.remote.oauth.idp.as_ref()?;
        Some(&provider.issuer)
    }

    /// Deletes the login and the client, and revokes the token if the authorization server supports it; with an identity
    /// provider, the login there as well, because it would log in again.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub(crate) async fn log_out(&self) -> Result<LoggedOut, LoginError> {
        let _lock = self.store.lock().await?;
        // First, because it fails if another process is busy with that login.
        let mut ended = match self.identity_login()? {
            Some(identity) => identity.log_out().await?,
            None => LoggedOut::default(),
        };
        let record = self.store.read().await;
        ended.was_there |= self.store.remove().await?;
        let fetcher = self.fetcher().await;
        self.revoke_all(&fetcher, record, &mut ended).await;
        Ok(ended)
    }

    /// Revokes the logins of `record`, which is removed, and notes why tokens were not revoked: perhaps it cannot be read.
    pub(super) async fn revoke_all(
        &self,
        fetcher: &MetadataFetcher<'_>,
        record: Result<Record, LoginError>,
        ended: &mut LoggedOut,
    ) {
        let record = match record {
            Ok(record) => record,
            Err(error) => return ended.note(&self.server, Err(error)),
        };
        let oauth = &self.remote.oauth;
        for (issuer, login) in &record.logins {
            if login.is_public {
                fetcher.note_public();
            }
            let is_in_use = record.is_in_use(oauth.issuer.as_deref(), issuer);
            let key = oauth.private_key.as_ref().filter(|_| is_in_use);
            let revoked = self.revoke(fetcher, issuer, login, key).await;
            ended.note(&self.server, revoked);
        }
    }

    /// Revokes a login at its authorization server (RFC 7009); revoking the refresh token also revokes its access
    /// tokens. `key` is the client's, if it may be used there.
    ///
    /// # Errors
    /// When a token that may be valid is not revoked.
    async fn revoke(
        &self,
        fetcher: &MetadataFetcher<'_>,
        issuer: &str,
        login: &Login,
        key: Option<&PrivateKey>,
    ) -> Result<(), LoginError> {
        let may_be_valid = |token: &&Token| token.refresh.is_some() || !token.is_over();
        let Some(token) = login.token.as_ref().filter(may_be_valid) else {
            return Ok(());
        };
        let (Some(endpoint), Some(client)) = (&login.revocation_endpoint, &login.client) else {
            let issuer = issuer.to_owned();
            return Err(LoginError::NoRevocation { issuer });
        };
        if !client.is_able_to_sign(key) {
            let issuer = issuer.to_owned();
            return Err(LoginError::NoCredentials { issuer });
        }
        let endpoint = parsed(endpoint)?;
        let (hint, token) = match &token.refresh {
            Some(refresh) => ("refresh_token", refresh),
            None => ("access_token", &token.access),
        };
        let mut fields = vec![
            ("token", token.expose().clone()),
            ("token_type_hint", hint.to_owned()),
        ];
        let authorization = client.sign(issuer, key, &mut fields);
        let is_secret = |name: &str| matches!(name, "token" | "client_secret" | "client_assertion");
        let secrets = fields.iter().filter(|(name, _)| is_secret(name));
        let secrets = secrets.map(|(_, value)| value.clone().into());
        let secrets = secrets.chain(client.secrets(authorization.as_ref()));
        let secrets: Vec<_> = secrets.collect();
        let fields: Vec<(&str, &str)> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let answer = fetcher.form(&endpoint, &fields, authorization).await?;
        if answer.status.is_success() {
            return Ok(());
        }
        if answer.status.is_server_error() {
            let reason = format!("answered with HTTP {}", answer.status.as_u16());
            return Err(wrong(&endpoint, reason));
        }
        Err(refusal(issuer, &answer, &secrets))
    }

    /// Logs in with the client's own credentials or an earlier login at the identity provider, at a person's request.
    /// `change` permits another issuer than before.
    ///
    /// # Errors
    /// When the server does not offer that, or refuses.
    pub(crate) async fn log_in_alone(
        &self,
        change: IssuerChange,
    ) -> Result<LoginStatus, LoginError> {
        let challenge = self.probe(None).await?.unwrap_or_default();
        // A login by name replaces the present one.
        let before = self.store.read().await.ok().unwrap_or_default();
        self.obtain(&challenge, before.token(), change).await?;
        let status = self.status().await?.ok_or(LoginError::NothingToRenew)?;
        Ok(LoginStatus {
            moved_from: self.moved_from(&before, &status.issuer),
            ..status
        })
    }

    /// Gets a token with the client-credentials grant, or with an assertion of the identity provider. Returns the stored
    /// one if it differs from the rejected token `seen`.
    pub(super) async fn obtain(
        &self,
        challenge: &Challenge,
        seen: Option<&Token>,
        change: IssuerChange,
    ) -> Result<Token, LoginError> {
        let _lock = self.store.lock().await?;
        let (mut record, unread) = match self.store.read().await {
            Ok(record) => (record, None),
            Err(error) => (self.store.empty(), Some(error)),
        };
        let covers = |token: &Token| {
            challenge
                .scopes
                .iter()
                .all(|scope| token.scopes.contains(scope))
        };
        if let Some(token) = record
            .token()
            .filter(|token| Some(*token) != seen && !token.is_over() && covers(token))
        {
            return Ok(token.clone());
        }
        let fetcher = self.fetcher().await;
        let kept = unread.map_or(Ok(&record), Err);
        let authority = self
            .authority(&fetcher, challenge, kept, None, change)
            .await?;
        let client = Client::configured(&self.remote.oauth, &authority).ok_or_else(|| {
            self.not_offered(
                "takes no client that a document describes; `oauth.client_id` names another",
            )
        })?;
        self.pin(&mut record, &authority.issuer).await?;
        let mut scopes = record
            .token()
            .map(|token| token.scopes.clone())
            .unwrap_or_default();
        add_scopes(&mut scopes, &self.remote.oauth.scopes);
        add_scopes(&mut scopes, &challenge.scopes);
        let joined = scopes.join(" ");
        let identity = self.identity_login()?;
        let assertion = match &identity {
            Some(identity) => Some(identity.assertion(&authority, &client, &scopes).await?),
            None => None,
        };
        let mut grant = match &assertion {
            Some(assertion) => vec![
                ("grant_type", JWT_BEARER),
                ("assertion", assertion.expose().as_str()),
            ],
            None => vec![("grant_type", "client_credentials")],
        };
        grant.extend((!scopes.is_empty()).then_some(("scope", joined.as_str())));
        let token = self
            .endpoint(&fetcher, &authority, &client)
            .ask(&grant, &scopes)
            .await?;
        self.keep(&mut record, &authority, client, Some(token.clone()))
            .await?;
        Ok(token)
    }

    /// Replaces the token `seen`: by one that another process has renewed, or with the refresh token. A refresh token
    /// that is finally refused is deleted, so that it is tried once.
    pub(super) async fn renew(&self, seen: &Token) -> Result<Token, LoginError> {
        let _lock = self.store.lock().await?;
        let mut record = self.store.read().await?;
        let Some((issuer, login)) = record.login() else {
            return Err(LoginError::NothingToRenew);
        };
        let (issuer, mut login) = (issuer.to_owned(), login.clone());
        let (Some(client), Some(token)) = (&login.client, &login.token) else {
            return Err(LoginError::NothingToRenew);
        };
        if token.access != seen.access {
            return Ok(token.clone());
        }
        let refresh = token.refresh.clone().filter(|_| self.may_go_on(&issuer));
        let Some(refresh) = refresh else {
            return Err(LoginError::NothingToRenew);
        };
        let (fetcher, endpoint) = (self.fetcher().await, parsed(&login.token_endpoint)?);
        if login.is_public {
            fetcher.note_public();
        }
        // The answer is final: the old token may be invalid, and the new one is not written yet.
        self.store.prepare().await?;
        let endpoint = TokenEndpoint {
            fetcher: &fetcher,
            issuer: &issuer,
            endpoint: &endpoint,
            resource: &login.resource,
            client,
            key: self.remote.oauth.private_key.as_ref(),
        };
        let grant = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.expose().as_str()),
        ];
        let renewed = endpoint
            .ask(&grant, &token.scopes)
            .await
            .map(|mut renewed| {
                // The refresh token stays valid unless it is replaced (RFC 6749, section 6).
                renewed.refresh = renewed.refresh.or(Some(refresh));
                renewed
            });
        match &renewed {
            Ok(renewed) => login.token = Some(renewed.clone()),
            Err(error) if error.is_final() => {
                login.token = None;
                login.client = login.client.filter(|_| !error.is_unknown_client());
            }
            Err(_) => return renewed,
        }
        record.logins.insert(issuer, login);
        if let Err(error) = self.store.write(&record).await {
            // This process can still use the token.
            tracing::error!(server = %self.server, %error, "a renewed login is lost with this process");
        }
        if renewed.is_ok() {
            tracing::info!(server = %self.server, "login renewed");
        }
        renewed
    }

    /// Records the demands of a refusal for the next login, because a server may refuse some requests only.
    pub(super) async fn note(
        &self,
        scopes: &[String],
        pointer: Option<&str>,
    ) -> Result<(), LoginError> {
        let _lock = self.store.lock().await?;
        let mut record = self.store.read().await?;
        let before = (record.wanted.len(), record.pointer.clone());
        add_scopes(&mut record.wanted, scopes);
        record.pointer = pointer.map(str::to_owned).or(record.pointer);
        let is_news = (record.wanted.len(), &record.pointer) != (before.0, &before.1);
        if is_news {
            self.store.write(&record).await
        } else {
            Ok(())
        }
    }

    /// Stores a login as the current one.
    pub(super) async fn keep(
        &self,
        record: &mut Record,
        authority: &Authority,
        client: impl Into<Option<Client>>,
        token: Option<Token>,
    ) -> Result<(), LoginError> {
        if token.is_some() {
            record.current = Some(authority.issuer.clone());
            record.pinned = record.current.clone();
            record.wanted.clear();
        }
        let before = record.logins.remove(&authority.issuer);
        let login = Login {
            resource: authority.resource.clone(),
            token_endpoint: authority.token_endpoint.to_string(),
            revocation_endpoint: authority.revocation_endpoint.as_ref().map(Url::to_string),
            is_public: authority.is_public,
            client: client.into(),
            token: token.or_else(|| before.and_then(|login| login.token)),
        };
        record.logins.insert(authority.issuer.clone(), login);
        self.store.write(record).await
    }

    /// Opens a connection with the token of the login, and closes it. Does nothing with a token that was tried before it was kept
    /// ([`Self::keep_token`]), and at a server whose requests have other credentials, or none to open a connection.
    ///
    /// # Errors
    /// When the server does not accept the token, or does not answer.
    pub(crate) async fn try_login(&self) -> Result<(), LoginError> {
        let record = self.store.read().await?;
        let login = record.login().map(|(_, login)| login);
        let login = login.filter(|login| login.client.is_some());
        let token = login.and_then(|login| login.token.as_ref());
        let token = token.filter(|token| !token.is_over());
        if token.is_none() || self.has_command() || self.remote.openapi.is_some() {
            return Ok(());
        }
        match self.probe(token).await? {
            None => Ok(()),
            Some(challenge) => {
                let needs_scopes = challenge.wants_more_scopes();
                if needs_scopes {
                    self.note(&challenge.scopes, None).await?;
                }
                let next = match needs_scopes {
                    true => "asks for them, too",
                    false => "logs in with another account",
                };
                Err(LoginError::NotAccepted {
                    server: self.server.to_string(),
                    reason: match needs_scopes {
                        true => format!(
                            "because it needs the scopes {}",
                            challenge.scopes.join(", ")
                        ),
                        false => "perhaps because the account has no access".to_owned(),
                    },
                    // For such a client, a new login would not differ.
                    another: match self.logs_in_alone() {
                        true => String::new(),
                        false => format!("`mcpzip login {}` {next}, and ", self.server),
                    },
                })
            }
        }
    }

    /// Sends a request with this token, or without one, to read the server's challenge. `None` if the server accepts
    /// it.
    pub(super) async fn probe(
        &self,
        token: Option<&Token>,
    ) -> Result<Option<Challenge>, LoginError> {
        let clients = &self.context.clients;
        let client = clients
            .of(&self.remote, &self.url)
            .map_err(|error| wrong(&self.url, error.to_string()))?;
        let mut configured =
            headers::configured(&self.remote.headers).map_err(|error| LoginError::NotOffered {
                server: self.server.to_string(),
                reason: error.to_string(),
            })?;
        configured.extend(
            token
                .and_then(Token::bearer)
                .map(|value| (AUTHORIZATION, value)),
        );
        let mut requests = Vec::new();
        if self.opens_with_get {
            requests.push(
                client
                    .get(self.url.clone())
                    .header(ACCEPT, "text/event-stream"),
            );
        } else {
            for (revision, method, body) in openings() {
                let is_other = if revision.is_modern() {
                    Era::Legacy
                } else {
                    Era::Modern
                };
                if self.era != is_other {
                    let headers = protocol_headers(revision, method);
                    requests.push(client.post(self.url.clone()).headers(headers).body(body));
                }
            }
        }
        for request in requests {
            let response =
                tokio::time::timeout(PROBE_LIMIT, request.headers(configured.clone()).send()).await;
            let response = response
                .map_err(|_| wrong(&self.url, format!("did not answer within {PROBE_LIMIT:?}")))?;
            let response = response.map_err(|error| {
                wrong(&self.url, crate::upstream::transport::http::reason(error))
            })?;
            if matches!(response.status().as_u16(), 401 | 403) {
                return Ok(Some(Challenge::in_response(&response)));
            }
            if token.is_some() && response.status().is_success() {
                if let Some(session) = response.headers().get(headers::SESSION) {
                    let end = client.delete(self.url.clone()).headers(configured.clone());
                    let end = end.header(headers::SESSION, session).send();
                    // A server that keeps the session ends it later.
                    let _ = tokio::time::timeout(FAREWELL, end).await;
                }
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// The error that this login is not possible; `reason` continues a sentence after the server's name.
    pub(super) fn not_offered(&self, reason: &str) -> LoginError {
        LoginError::NotOffered {
            server: self.server.to_string(),
            reason: reason.to_owned(),
        }
    }

    pub(super) async fn fetcher(&self) -> MetadataFetcher<'_> {
        MetadataFetcher::of(&self.url, &self.remote, &self.context).await
    }

    pub(super) fn endpoint<'a>(
        &'a self,
        fetcher: &'a MetadataFetcher<'a>,
        authority: &'a Authority,
        client: &'a Client,
    ) -> TokenEndpoint<'a> {
        TokenEndpoint {
            fetcher,
            issuer: &authority.issuer,
            endpoint: &authority.token_endpoint,
            resource: &authority.resource,
            client,
            key: self.remote.oauth.private_key.as_ref(),
        }
    }
}

/// The headers of a request that opens a connection.
fn protocol_headers(revision: Revision, method: &'static str) -> HeaderMap {
    let mut all = HeaderMap::new();
    all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    all.insert(
        ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    if revision.is_modern() {
        all.insert(
            headers::VERSION,
            HeaderValue::from_static(revision.as_str()),
        );
        all.insert(headers::METHOD, HeaderValue::from_static(method));
    }
    all
}

fn parsed(url: &str) -> Result<Url, LoginError> {
    Url::parse(url).map_err(|_| LoginError::Metadata {
        reason: format!("`{url}` is not a URL"),
    })
}
