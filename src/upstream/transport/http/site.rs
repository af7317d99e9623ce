use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response, Url};

use super::error::{HttpError, words};
use super::headers;
use crate::config::Remote;
use crate::tool::ServerName;
use crate::upstream::{CallError, ConnectError, Environment};

/// A server's address, and what is sent there and nowhere else.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct Site {
    /// Whose it is.
    pub(in crate::upstream) server: ServerName,
    /// The configured URL.
    pub(in crate::upstream) url: Url,
    client: Client,
    /// The configured headers; ours go before them.
    headers: HeaderMap,
}

impl Site {
    /// The site of `server`, as configured.
    pub(in crate::upstream) fn of(
        server: &ServerName,
        remote: &Remote,
        environment: &Environment,
    ) -> Result<Self, ConnectError> {
        let configuration = |reason| ConnectError::Configuration { server: server.to_string(), reason };
        let url =
            Url::parse(&remote.url).map_err(|error| configuration(format!("its URL cannot be used ({error})")))?;
        let headers = headers::configured(&remote.headers).map_err(configuration)?;
        let client = environment.clients.of(&url);
        let client = client.map_err(|error| ConnectError::Http { server: server.clone(), error })?.clone();
        Ok(Self { server: server.clone(), url, client, headers })
    }

    /// Sends a request to `url`, which is of this site's origin, and waits for the head of the answer.
    ///
    /// # Errors
    /// When none comes; whether the request may have acted is told apart.
    pub(in crate::upstream) async fn send(
        &self,
        method: Method,
        url: &Url,
        ours: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Result<Response, CallError> {
        debug_assert_eq!(url.origin(), self.url.origin(), "credentials go to their own origin");
        let mut headers = self.headers.clone();
        for (name, value) in ours {
            headers.insert(name, value);
        }
        let mut request = self.client.request(method, url.clone()).headers(headers);
        if !body.is_empty() {
            request = request.body(body);
        }
        request.send().await.map_err(|error| {
            if error.is_connect() || error.is_builder() {
                self.error(HttpError::Unreachable { reason: words(error) })
            } else {
                self.lost(&words(error), true)
            }
        })
    }

    /// `error` as one of this server's.
    pub(in crate::upstream) fn error(&self, error: HttpError) -> CallError {
        CallError::Http { server: self.server.clone(), error }
    }

    /// The connection went away.
    pub(in crate::upstream) fn lost(&self, reason: &str, may_have_acted: bool) -> CallError {
        CallError::Lost { server: self.server.clone(), reason: reason.to_owned(), may_have_acted }
    }
}
