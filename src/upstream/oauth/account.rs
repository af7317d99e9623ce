//! The login at one server: whether there is one, how to get one without the user (client credentials, JWT), and how to end it.
//! Logins that need the user are in `flow.rs`; tokens for requests come from `session.rs`.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use serde::Serialize;

use super::challenge::Challenge;
use super::client::Client;
use super::discovery::Authority;
use super::error::LoginError;
use super::fetcher::{MetadataFetcher, wrong};
use super::issuer::IssuerChange;
use super::scopes::add_scopes;
use super::store::{Login, Record, Store};
use super::token::{Token, TokenEndpoint};
use crate::config::{self, Era, Grant, Remote, Transport};
use crate::mcp::Revision;
use crate::tool::ServerName;
use crate::upstream::UpstreamContext;
use crate::upstream::opening::openings;
use crate::upstream::transport::http::headers;

/// The login at one server, present or not. Commands and requests work on this.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(super) server: ServerName,
    pub(super) url: Url,
    pub(super) remote: Remote,
    pub(super) environment: Arc<UpstreamContext>,
    pub(super) store: Store,
    era: Era,
    is_sse: bool,
}

/// The time limit of the request that finds out whether a server requires a login.
const PROBE_LIMIT: Duration = Duration::from_secs(30);

/// A login, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LoginStatus {
    /// The server's name in the configuration.
    pub server: String,
    /// The authorization server.
    pub issuer: String,
    /// The authorization server that the configured credentials went to before this login, where it was another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<String>,
    /// As whom we are known there.
    pub client_id: Option<String>,
    /// What the login is good for.
    pub scopes: Vec<String>,
    /// In how many seconds its token ends; 0 when it has ended, nothing where nobody said.
    pub expires_in: Option<u64>,
    /// Whether it goes on by itself after that.
    pub refreshable: bool,
    /// The scopes that the server asked for since.
    pub missing_scopes: Vec<String>,
    /// Whether only the keychain of the system opens it.
    pub sealed: bool,
}

impl Account {
    /// The account at `server`; nothing where the entry is of a server that needs none: a local one, or one whose configured
    /// headers have an `Authorization`, or where nothing is kept on disk.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub(in crate::upstream) fn of(
        server: &ServerName,
        remote: &Remote,
        environment: &Arc<UpstreamContext>,
    ) -> Result<Option<Self>, LoginError> {
        let is_configured = remote
            .headers
            .keys()
            .any(|name| name.eq_ignore_ascii_case("authorization"));
        let Some(vault) = environment.logins.as_ref().filter(|_| !is_configured) else {
            return Ok(None);
        };
        let url = Url::parse(&remote.url).map_err(|_| LoginError::NotOffered {
            server: server.to_string(),
            reason: "has a URL that cannot be used".to_owned(),
        })?;
        let store = Store::new(vault, server, url.as_str());
        let (server, remote, environment) = (server.clone(), remote.clone(), environment.clone());
        Ok(Some(Self {
            server,
            url,
            remote,
            environment,
            store,
            era: Era::Auto,
            is_sse: false,
        }))
    }

    /// The same for a whole entry, which also says how the server is asked what it wants.
    ///
    /// # Errors
    /// When the URL cannot be used.
    pub(crate) fn of_entry(
        server: &ServerName,
        entry: &config::Server,
        environment: &Arc<UpstreamContext>,
    ) -> Result<Option<Self>, LoginError> {
        let (remote, is_sse) = match &entry.transport {
            Transport::Stdio(_) => return Ok(None),
            Transport::Http(remote) => (remote, false),
            Transport::Sse(remote) => (remote, true),
        };
        Ok(Self::of(server, remote, environment)?.map(|account| Self {
            era: entry.era,
            is_sse,
            ..account
        }))
    }

    /// The login as it is kept, if there is one.
    ///
    /// # Errors
    /// When there is one that cannot be read now.
    pub(crate) async fn status(&self) -> Result<Option<LoginStatus>, LoginError> {
        let record = self.store.read().await?;
        let Some((issuer, login)) = record.login() else {
            return Ok(None);
        };
        let Some(token) = login.token.as_ref() else {
            return Ok(None);
        };
        Ok(Some(LoginStatus {
            server: self.server.to_string(),
            issuer: issuer.to_owned(),
            moved_from: None,
            client_id: login.client.as_ref().map(|client| client.id.clone()),
            scopes: token.scopes.clone(),
            expires_in: token.ends.map(|end| end.saturating_sub(super::now())),
            refreshable: token.refresh.is_some()
                || self.remote.oauth.grant == Grant::ClientCredentials,
            missing_scopes: record.wanted.clone(),
            sealed: record.is_sealed,
        }))
    }

    /// Whose it is.
    #[must_use]
    pub(crate) fn server(&self) -> &ServerName {
        &self.server
    }

    /// Whether a command of the configuration may say who we are, so that no login is needed.
    #[must_use]
    pub(crate) fn has_command(&self) -> bool {
        self.remote.headers_command.is_some()
    }

    /// Whether a person is needed to log in.
    #[must_use]
    pub(crate) fn needs_person(&self) -> bool {
        self.remote.oauth.grant == Grant::AuthorizationCode
    }

    /// Forgets the login, the client and all, and tells the authorization server where it can be told; whether there was one.
    ///
    /// # Errors
    /// When what is kept cannot be removed.
    pub(crate) async fn log_out(&self) -> Result<bool, LoginError> {
        let _lock = self.store.lock().await?;
        let record = self.store.read().await.unwrap_or_else(|error| {
            tracing::warn!(server = %self.server, %error, "the token cannot be revoked, and stays valid until it ends");
            self.store.empty()
        });
        let was_there = self.store.remove()?;
        let fetcher = self.fetcher().await;
        for (issuer, login) in &record.logins {
            if login.is_public {
                fetcher.note_public();
            }
            if let Err(error) = self.revoke(&fetcher, issuer, login).await {
                tracing::warn!(server = %self.server, %error, "the token could not be revoked, and stays valid until it ends");
            }
        }
        Ok(was_there)
    }

    /// Ends a login where it was given (RFC 7009); with the refresh token go those that came of it.
    async fn revoke(
        &self,
        fetcher: &MetadataFetcher<'_>,
        issuer: &str,
        login: &Login,
    ) -> Result<(), LoginError> {
        let (Some(endpoint), Some(client), Some(token)) =
            (&login.revocation_endpoint, &login.client, &login.token)
        else {
            return Ok(());
        };
        let endpoint = parsed(endpoint)?;
        let (hint, token) = match &token.refresh {
            Some(refresh) => ("refresh_token", refresh),
            None => ("access_token", &token.access),
        };
        let mut fields = vec![
            ("token", token.expose().clone()),
            ("token_type_hint", hint.to_owned()),
        ];
        let authorization =
            client.sign(issuer, self.remote.oauth.private_key.as_ref(), &mut fields);
        let fields: Vec<(&str, &str)> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let answer = fetcher.form(&endpoint, &fields, authorization).await?;
        if answer.status.is_success() {
            return Ok(());
        }
        Err(wrong(
            &endpoint,
            format!("answered with HTTP {}", answer.status.as_u16()),
        ))
    }

    /// Logs in by the client's own credentials, as a person has asked for; at another issuer than before, where `change`
    /// allows it.
    ///
    /// # Errors
    /// When that is not offered, or refused.
    pub(crate) async fn log_in_alone(
        &self,
        change: IssuerChange,
    ) -> Result<LoginStatus, LoginError> {
        let challenge = self.probe(None).await?.unwrap_or_default();
        // Whoever asks for a login by its name wants another one than there is.
        let before = self.store.read().await.ok().unwrap_or_default();
        self.obtain(&challenge, before.token(), change).await?;
        let status = self.status().await?.ok_or(LoginError::NothingToRenew)?;
        Ok(LoginStatus {
            moved_from: self.moved_from(&before, &status.issuer),
            ..status
        })
    }

    /// A token by our own credentials; the kept one where it is another than `seen`, which was no good.
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
        let client =
            Client::configured(&self.remote.oauth, &authority).ok_or(LoginError::NothingToRenew)?;
        self.pin(&mut record, &authority.issuer).await?;
        let mut scopes = record
            .token()
            .map(|token| token.scopes.clone())
            .unwrap_or_default();
        add_scopes(&mut scopes, &self.remote.oauth.scopes);
        add_scopes(&mut scopes, &challenge.scopes);
        let joined = scopes.join(" ");
        let mut grant = vec![("grant_type", "client_credentials")];
        grant.extend((!scopes.is_empty()).then_some(("scope", joined.as_str())));
        let token = self
            .endpoint(&fetcher, &authority, &client)
            .ask(&grant, &scopes)
            .await?;
        self.keep(&mut record, &authority, client, Some(token.clone()))
            .await?;
        Ok(token)
    }

    /// A token in place of `seen`: the one that somebody else renewed meanwhile, or a new one by the refresh token. One that
    /// is refused for good is forgotten, so that it is tried once.
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
        // From the answer on there is no way back: the old token may be good no more, and the new one is not written yet.
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
                // One that is not replaced stays good (RFC 6749, section 6).
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
            // The token is good all the same, for this process.
            tracing::error!(server = %self.server, %error, "a renewed login is lost with this process");
        }
        if renewed.is_ok() {
            tracing::info!(server = %self.server, "login renewed");
        }
        renewed
    }

    /// Notes what a refusal said, for the next login: a server may refuse some requests only.
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

    /// Keeps a login as the one that counts.
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

    /// Asks the server for something with this token or without any, to hear what it wants; nothing when it lets us in.
    pub(super) async fn probe(
        &self,
        token: Option<&Token>,
    ) -> Result<Option<Challenge>, LoginError> {
        let clients = &self.environment.clients;
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
        if self.is_sse {
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
        }
        Ok(None)
    }

    /// It cannot be had so; `reason` reads on after the server's name.
    pub(super) fn not_offered(&self, reason: &str) -> LoginError {
        LoginError::NotOffered {
            server: self.server.to_string(),
            reason: reason.to_owned(),
        }
    }

    pub(super) async fn fetcher(&self) -> MetadataFetcher<'_> {
        MetadataFetcher::of(&self.url, &self.remote, &self.environment).await
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
        reason: format!("`{url}` is no URL"),
    })
}
