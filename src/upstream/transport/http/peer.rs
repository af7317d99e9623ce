//! A remote server as an HTTP peer: its URL, HTTP client, configured headers and login. Both HTTP transports send through it,
//! so that credentials go to their own origin and nowhere else.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use reqwest::{Client, Method, Response, StatusCode, Url};

use super::error::{HttpError, unsent, words};
use super::{body, headers};
use crate::config::Remote;
use crate::secret::Masker;
use crate::telemetry;
use crate::tool::ServerName;
use crate::upstream::headers_command::{CommandHeaders, Helper};
use crate::upstream::oauth::{AuthRequired, TokenSource};
use crate::upstream::person::OnBehalf;
use crate::upstream::{CallError, ConnectError, UpstreamContext};

/// The response time that suggests a delayed acknowledgement; several in a row confirm it.
const DELAYED: RangeInclusive<Duration> = Duration::from_millis(38)..=Duration::from_millis(52);
const STALLS: u32 = 3;

/// The maximum number of times that a request is repeated with better credentials.
const MOST_LOGINS: usize = 2;

/// A remote server: its URL, and the headers and login that are sent to its origin only.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct HttpPeer {
    /// The server's name.
    pub(in crate::upstream) server: ServerName,
    /// The configured URL.
    pub(in crate::upstream) url: Url,
    client: Client,
    /// The client to use when responses on kept connections stall or get lost.
    unpooled: Option<Client>,
    stalls: Arc<AtomicU32>,
    /// The configured headers; the protocol's headers override them.
    headers: HeaderMap,
    /// Whether the entry's headers override those of a request instead, some of which an agent wrote.
    entry_wins: bool,
    /// The command that prints more headers, and its context.
    helper: Option<(Arc<Helper>, Arc<UpstreamContext>)>,
    /// The login, if the configured headers have no credentials.
    login: Option<Arc<TokenSource>>,
    /// The part of requests that is about the person in whose name they are sent.
    on_behalf: Option<OnBehalf>,
    /// Hides the secrets of the entry.
    masker: Masker,
}

impl HttpPeer {
    /// Creates the peer of `server`, as configured.
    pub(in crate::upstream) fn of(
        server: &ServerName,
        remote: &Remote,
        context: &Arc<UpstreamContext>,
    ) -> Result<Self, ConnectError> {
        let configuration = |reason| ConnectError::Configuration {
            server: server.to_string(),
            reason,
        };
        let on_behalf = OnBehalf::of(server, remote, context)?;
        let url = Url::parse(&remote.url)
            .map_err(|error| configuration(format!("its URL cannot be used ({error})")))?;
        let headers = headers::configured(&remote.headers)
            .map_err(|error| configuration(error.to_string()))?;
        let failed = |error| ConnectError::Http {
            server: server.clone(),
            error,
        };
        let client = context.clients.of(remote, &url).map_err(failed)?;
        let unpooled = context.clients.unpooled(remote, &url).map_err(failed)?;
        let login = TokenSource::of(server, remote, context);
        let helper = remote.headers_command.as_ref().map(|command| {
            let helper = context.headers_commands.of(server, &remote.url, command);
            (helper, context.clone())
        });
        Ok(Self {
            server: server.clone(),
            url,
            client,
            unpooled,
            stalls: Arc::default(),
            headers,
            entry_wins: false,
            helper,
            login,
            on_behalf,
            masker: remote.masker.clone(),
        })
    }

    /// The peer as one of an interface, whose requests have headers that an agent wrote: none of them replaces one of the entry.
    /// They have URLs of their own, too, so the user and the password of the entry's URL are sent in a header.
    pub(in crate::upstream) fn of_interface(mut self) -> Self {
        self.entry_wins = true;
        let Some((basic, value)) = headers::take_basic(&mut self.url) else {
            return self;
        };
        self.masker = self.masker.and(&Masker::new([basic]));
        if !self.headers.contains_key(AUTHORIZATION) {
            self.headers.insert(AUTHORIZATION, value);
            self.login = None;
        }
        self
    }

    /// `text`, written by the server, without the credentials that it may have been sent.
    pub(in crate::upstream) fn masked(&self, text: &str) -> String {
        let text = self.masker.mask(text);
        let text = match &self.login {
            Some(login) => login.masked(&text),
            None => text.into_owned(),
        };
        let text = match &self.on_behalf {
            Some(on_behalf) => on_behalf.masked(&text),
            None => text,
        };
        match &self.helper {
            Some((helper, _)) => helper.masked(&text),
            None => text,
        }
    }

    /// The peer without a login, for another origin of an interface.
    pub(in crate::upstream) fn without_login(self) -> Self {
        Self {
            login: None,
            on_behalf: None,
            ..self
        }
    }

    /// Whether a refusal may mean a login that mcpzip can make: one is kept, or the server says where to log in, as MCP servers
    /// do.
    pub(in crate::upstream) fn offers_login(&self, response: &Response) -> bool {
        let names_authority = || {
            let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
            let mut texts = challenges.filter_map(|value| value.to_str().ok());
            texts.any(|text| text.contains("resource_metadata"))
        };
        self.login
            .as_ref()
            .is_some_and(|login| login.is_configured() || names_authority())
    }

    /// Sends a request to `url`, which has the server's origin, and waits for the head of the response. A request
    /// that was refused for its credentials has not acted, so it is repeated with better ones if there are any.
    ///
    /// # Errors
    /// When no response arrives; the error says whether the request may have acted.
    pub(in crate::upstream) async fn send(
        &self,
        method: Method,
        url: &Url,
        ours: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Result<Response, CallError> {
        debug_assert_eq!(
            url.origin(),
            self.url.origin(),
            "credentials go to their own origin"
        );
        let ours: Vec<_> = ours.into_iter().collect();
        let given = self.command_headers(None).await?;
        let headers = self.all_headers(given.as_ref(), &ours);
        if let Some(on_behalf) = &self.on_behalf {
            let sent = self.send_on_behalf(on_behalf, method, url, headers, body);
            return Box::pin(sent).await;
        }
        let response = self
            .send_with_login(method.clone(), url, headers.clone(), body.clone())
            .await?;
        if given.is_none() || response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let fresh = self.command_headers(given.as_ref()).await?;
        let better = self.all_headers(fresh.as_ref(), &ours);
        // Equal headers would be refused again.
        if better == headers {
            Ok(response)
        } else {
            self.send_with_login(method, url, better, body).await
        }
    }

    /// Sends a request in the name of a person. The header that says so replaces any other of its name: an agent may have written it.
    async fn send_on_behalf(
        &self,
        on_behalf: &OnBehalf,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, CallError> {
        let failed = |error| self.error(HttpError::Identity(error));
        let (name, value) = on_behalf.header().await.map_err(failed)?;
        headers.insert(name, value.clone());
        let response = self
            .send_once(method.clone(), url, headers.clone(), body.clone())
            .await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        match on_behalf.after_refusal(&value).await.map_err(failed)? {
            Some((name, better)) => {
                headers.insert(name, better);
                self.send_once(method, url, headers, body).await
            }
            None => Ok(response),
        }
    }

    /// The headers of `headers_command`, if one is configured, different from the rejected headers `refused`.
    async fn command_headers(
        &self,
        refused: Option<&Arc<CommandHeaders>>,
    ) -> Result<Option<Arc<CommandHeaders>>, CallError> {
        let Some((helper, context)) = &self.helper else {
            return Ok(None);
        };
        let given = helper.headers(context, refused).await;
        given
            .map(Some)
            .map_err(|error| self.error(HttpError::Command(error)))
    }

    /// The headers of a request. The protocol's headers override the configured ones, which override those of the
    /// command. For an interface, only the type of the body overrides them.
    fn all_headers(
        &self,
        given: Option<&Arc<CommandHeaders>>,
        ours: &[(HeaderName, HeaderValue)],
    ) -> HeaderMap {
        let mut headers = given.map(|given| given.headers.clone()).unwrap_or_default();
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        for (name, value) in ours {
            if !self.entry_wins || *name == CONTENT_TYPE || !headers.contains_key(name) {
                headers.insert(name, value.clone());
            }
        }
        headers
    }

    /// Sends a request with the login's token, unless the headers already have credentials.
    async fn send_with_login(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, CallError> {
        let login = self
            .login
            .as_ref()
            .filter(|_| !headers.contains_key(AUTHORIZATION));
        let Some(login) = login else {
            return self.send_once(method, url, headers, body).await;
        };
        let mut bearer = login.bearer().await;
        for _ in 0..MOST_LOGINS {
            let mut headers = headers.clone();
            headers.extend(
                bearer
                    .as_ref()
                    .map(|bearer| (AUTHORIZATION, bearer.value.clone())),
            );
            let response = self
                .send_once(method.clone(), url, headers, body.clone())
                .await?;
            if !matches!(
                response.status(),
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
            ) {
                return Ok(response);
            }
            match login.after_refusal(&response, bearer.as_ref()).await {
                Some(better) => bearer = Some(better),
                None => return Ok(response),
            }
        }
        let mut headers = headers;
        headers.extend(bearer.map(|bearer| (AUTHORIZATION, bearer.value)));
        self.send_once(method, url, headers, body).await
    }

    async fn send_once(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, CallError> {
        let mut request = self.client().request(method, url.clone()).headers(headers);
        if !body.is_empty() {
            request = request.body(body);
        }
        request.send().await.map_err(|error| {
            if error.is_connect() || error.is_builder() {
                self.error(unsent(error))
            } else {
                // The server may close connections silently, just when a request is on its way. Whether that request
                // arrived is unknown, so it is not repeated; later requests use new connections.
                self.stalls.store(STALLS, Ordering::Relaxed);
                self.lost(&words(error), true)
            }
        })
    }

    /// Describes an error response, with the login that is required. Also returns the body if it may hold a JSON-RPC
    /// error.
    pub(in crate::upstream) async fn refusal(
        &self,
        response: Response,
    ) -> (HttpError, Option<Bytes>) {
        // It is cut, so that a secret in it cannot be found later: it may have any of the configuration.
        let masked = |said: &str| self.masked(&telemetry::masked(said));
        let (error, body) = body::refusal(response, masked).await;
        let by_command = self
            .helper
            .as_ref()
            .is_some_and(|(helper, _)| helper.gives_authorization());
        let need = match &self.login {
            _ if by_command => AuthRequired::Command,
            _ if self.on_behalf.is_some() => AuthRequired::Identity,
            Some(login) => login.need(),
            None if self.headers.contains_key(AUTHORIZATION) => AuthRequired::Header,
            None => AuthRequired::Credentials,
        };
        let error = match error {
            // It knows who we are, and more rights may be needed.
            HttpError::Login {
                status: 403, said, ..
            } if need == AuthRequired::Header => HttpError::Login {
                status: 403,
                need: AuthRequired::Credentials,
                said,
            },
            HttpError::Login { status, said, .. } => HttpError::Login { status, need, said },
            other => other,
        };
        (error, body)
    }

    /// Records the duration of an exchange. A server without TCP_NODELAY waits, on a kept connection, for an
    /// acknowledgement that Linux delays by 40 ms; on a new connection it does not.
    pub(in crate::upstream) fn took(&self, time: Duration) {
        if DELAYED.contains(&time) {
            self.stalls.fetch_add(1, Ordering::Relaxed);
        } else if self.stalls.load(Ordering::Relaxed) < STALLS {
            self.stalls.store(0, Ordering::Relaxed);
        }
    }

    fn client(&self) -> &Client {
        let is_stalling = self.stalls.load(Ordering::Relaxed) >= STALLS;
        self.unpooled
            .as_ref()
            .filter(|_| is_stalling)
            .unwrap_or(&self.client)
    }

    /// Wraps `error` as an error of this server.
    pub(in crate::upstream) fn error(&self, error: HttpError) -> CallError {
        CallError::Http {
            server: self.server.clone(),
            error,
        }
    }

    /// The error that the connection was lost.
    pub(in crate::upstream) fn lost(&self, reason: &str, may_have_acted: bool) -> CallError {
        CallError::Lost {
            server: self.server.clone(),
            reason: reason.to_owned(),
            may_have_acted,
        }
    }
}
