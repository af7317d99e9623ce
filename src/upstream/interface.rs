//! An HTTP interface that does not speak MCP: plain requests with the credentials, proxy and certificates of a server's entry.
//!
//! *Invariant*: credentials go to the origin of the entry's URL, and configured headers also to the origins that the entry
//! names. A request to any other origin is refused here, even if a description names it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode, Url};

use super::transport::http::body::{Broken, whole};
use super::transport::http::headers::origin;
use super::transport::http::{HttpError, HttpPeer};
use super::{CallError, ConnectError, UpstreamContext};
use crate::config::{OAuth, Remote};
use crate::secret::Masker;
use crate::tool::ServerName;

/// The maximum number of redirects of one request.
const MOST_REDIRECTS: usize = 5;

/// The maximum number of times that a safe request is repeated.
const MOST_REPEATS: u32 = 2;

/// The longest pause before a request is repeated. A server that asks for a longer one gets the next request from the
/// agent.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The interface of a server.
#[derive(Debug)]
pub(crate) struct Interface {
    own: HttpPeer,
    /// The other origins that the entry permits.
    others: Vec<HttpPeer>,
}

/// A request to an interface.
#[derive(Debug)]
pub(crate) struct InterfaceRequest {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
}

/// The answer of an interface.
#[derive(Debug)]
pub(crate) struct InterfaceAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The origin of a redirect that was not followed.
    pub(crate) refused_redirect: Option<String>,
}

impl Interface {
    /// The interface at the URL of `remote`, which may also be asked at `origins`.
    ///
    /// # Errors
    /// When the entry cannot be used.
    pub(crate) fn of(
        server: &ServerName,
        remote: &Remote,
        origins: &[String],
        context: &Arc<UpstreamContext>,
    ) -> Result<Self, ConnectError> {
        let own = HttpPeer::of(server, remote, context)?.of_interface();
        let others = origins.iter().map(|origin| {
            // A login belongs to one origin.
            let elsewhere = Remote {
                url: origin.clone(),
                oauth: OAuth::default(),
                // Ours hides the secrets in each answer.
                masker: Masker::default(),
                ..remote.clone()
            };
            Ok(HttpPeer::of(server, &elsewhere, context)?
                .of_interface()
                .without_login())
        });
        Ok(Self {
            own,
            others: others.collect::<Result<_, _>>()?,
        })
    }

    /// The interface at the URL of `remote`, without a login.
    ///
    /// # Errors
    /// When the entry cannot be used.
    pub(crate) fn without_login(
        server: &ServerName,
        remote: &Remote,
        context: &Arc<UpstreamContext>,
    ) -> Result<Self, ConnectError> {
        Ok(Self {
            own: HttpPeer::of(server, remote, context)?
                .of_interface()
                .without_login(),
            others: Vec::new(),
        })
    }

    /// The configured URL, without user and password.
    pub(crate) fn url(&self) -> &Url {
        &self.own.url
    }

    /// `text`, written by the interface, without the secrets of the entry and the tokens that it may have been sent.
    pub(crate) fn masked(&self, text: &str) -> String {
        let all = std::iter::once(&self.own).chain(&self.others);
        all.fold(text.to_owned(), |text, peer| peer.masked(&text))
    }

    /// Whether requests may go to the origin of `url`.
    pub(crate) fn permits(&self, url: &Url) -> bool {
        self.peer(url).is_some()
    }

    fn peer(&self, url: &Url) -> Option<&HttpPeer> {
        let is_plain = url.username().is_empty() && url.password().is_none();
        let mut all = std::iter::once(&self.own).chain(&self.others);
        all.find(|peer| is_plain && peer.url.origin() == url.origin())
    }

    /// Sends a request and reads the whole answer, of at most `limit` bytes. A request that cannot have acted is repeated
    /// when the server asks for it.
    ///
    /// # Errors
    /// When no answer arrives, or a login is required that a person could make.
    pub(crate) async fn send(
        &self,
        request: InterfaceRequest,
        limit: usize,
    ) -> Result<InterfaceAnswer, CallError> {
        let is_safe = matches!(request.method, Method::GET | Method::HEAD);
        let mut repeats = 0;
        loop {
            let answer = self.send_once(&request, is_safe, limit).await?;
            let pause =
                pause_before(&answer, repeats).filter(|_| is_safe && repeats < MOST_REPEATS);
            match pause {
                None => return Ok(answer),
                Some(pause) => tokio::time::sleep(pause).await,
            }
            repeats += 1;
        }
    }

    /// Sends a request, and follows redirects of safe ones to permitted origins.
    async fn send_once(
        &self,
        request: &InterfaceRequest,
        is_safe: bool,
        limit: usize,
    ) -> Result<InterfaceAnswer, CallError> {
        let mut url = request.url.clone();
        for _ in 0..=MOST_REDIRECTS {
            let peer = self.peer(&url).ok_or_else(|| self.forbidden(&url))?;
            let (method, headers) = (request.method.clone(), request.headers.iter().cloned());
            let response = peer
                .send(method, &url, headers, request.body.clone())
                .await?;
            let (status, headers) = (response.status(), response.headers().clone());
            if status.is_redirection()
                && let Some(target) = headers.get(LOCATION)
            {
                let target = target
                    .to_str()
                    .ok()
                    .and_then(|target| url.join(target).ok());
                match target.filter(|target| is_safe && self.permits(target)) {
                    Some(target) => {
                        url = target;
                        continue;
                    }
                    None => {
                        let refused = headers.get(LOCATION).and_then(|target| {
                            let target = url.join(target.to_str().ok()?).ok()?;
                            Some(format!("{}{}", origin(&target), target.path()))
                        });
                        return Ok(InterfaceAnswer {
                            status,
                            headers,
                            body: Bytes::new(),
                            refused_redirect: Some(refused.unwrap_or_else(|| "nowhere".to_owned())),
                        });
                    }
                }
            }
            if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
                && peer.offers_login(&response)
            {
                let (error, _) = peer.refusal(response).await;
                return Err(peer.error(error));
            }
            let body = whole(response, limit)
                .await
                .map_err(|broken| match broken {
                    Broken::TooLarge(size) => peer.error(HttpError::TooLarge { size, limit }),
                    Broken::Lost(reason) => peer.lost(&reason, true),
                })?;
            return Ok(InterfaceAnswer {
                status,
                headers,
                body,
                refused_redirect: None,
            });
        }
        let to = format!("`{}`", origin(&url));
        Err(self.own.error(HttpError::Endless { to }))
    }

    fn forbidden(&self, url: &Url) -> CallError {
        self.own.error(HttpError::Elsewhere {
            origin: origin(url),
        })
    }
}

/// The pause before a request is repeated; `None` if that is useless.
fn pause_before(answer: &InterfaceAnswer, repeats: u32) -> Option<Duration> {
    let may_recover = matches!(answer.status.as_u16(), 429 | 502 | 503 | 504);
    let asked = answer.headers.get(RETRY_AFTER).filter(|_| may_recover);
    let asked = asked.map(|value| {
        value
            .to_str()
            .ok()?
            .trim()
            .parse()
            .ok()
            .map(Duration::from_secs)
    });
    let pause = match asked {
        Some(asked) => asked?,
        None if may_recover => Duration::from_millis(500) * 2_u32.pow(repeats),
        None => return None,
    };
    (pause <= LONGEST_PAUSE).then_some(pause)
}
