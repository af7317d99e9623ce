//! Requests to an issuer that the configuration names: its metadata, its keys and its endpoints.

use std::sync::OnceLock;
use std::time::Duration;

use http_body_util::{BodyExt as _, Limited};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Url};
use serde_json::Value;

use crate::config::Network;
use crate::secret::Secret;
use crate::tls;

/// The time limit of one request.
const LIMIT: Duration = Duration::from_secs(10);
/// The size limit of an answer, in bytes.
const LARGEST: usize = 256 * 1024;

/// Why an issuer gives no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("`{}` cannot be reached: {reason}", shown(url))]
    Unreachable { url: String, reason: String },
    #[error("`{}` answered with HTTP {status}", shown(url))]
    Status { url: String, status: u16 },
    #[error("the answer of `{}` is not understood: {reason}", shown(url))]
    Wrong { url: String, reason: &'static str },
    #[error("this machine has no certificates to trust for `{}`", shown(.0))]
    Certificates(String),
}

/// A URL in an error: without its query, which may have a key.
fn shown(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// Sends requests to one issuer, and follows no redirect: the issuer names its own URLs.
#[derive(Debug)]
pub(super) struct Requests {
    network: Network,
    plain: OnceLock<Client>,
    protected: OnceLock<Client>,
}

impl Requests {
    pub(super) fn new(network: Network) -> Self {
        Self {
            network,
            plain: OnceLock::new(),
            protected: OnceLock::new(),
        }
    }

    /// Gets a JSON document.
    pub(super) async fn get(&self, url: &str) -> Result<Value, RequestError> {
        let request = self.client(url)?.get(url);
        self.send(url, request).await
    }

    /// Posts a form, with the credentials of this server in the header (RFC 6749, 2.3.1) or in the form.
    pub(super) async fn post(
        &self,
        url: &str,
        fields: &[(&str, &str)],
        (id, secret): (&str, &Secret<String>),
        is_in_form: bool,
    ) -> Result<Value, RequestError> {
        // A URL's query is encoded like a form.
        let mut form = Url::parse("http://form").expect("it is a URL");
        form.query_pairs_mut().extend_pairs(fields);
        let mut request = self.client(url)?.post(url);
        if is_in_form {
            let pairs = [("client_id", id), ("client_secret", secret.expose())];
            form.query_pairs_mut().extend_pairs(pairs);
        } else {
            let encoded = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
            request = request.basic_auth(encoded(id), Some(encoded(secret.expose())));
        }
        let body = form.query().unwrap_or_default().to_owned();
        let kind = "application/x-www-form-urlencoded";
        let request = request.header("content-type", kind).body(body);
        self.send(url, request).await
    }

    async fn send(&self, url: &str, request: RequestBuilder) -> Result<Value, RequestError> {
        let unreachable = |reason: String| RequestError::Unreachable {
            url: url.to_owned(),
            reason,
        };
        let answer = request.header("accept", "application/json").send().await;
        let answer = answer.map_err(|error| unreachable(error.without_url().to_string()))?;
        let status = answer.status().as_u16();
        if status != 200 {
            return Err(RequestError::Status {
                url: url.to_owned(),
                status,
            });
        }
        let body = Limited::new(reqwest::Body::from(answer), LARGEST)
            .collect()
            .await;
        let body =
            body.map_err(|_| unreachable("the answer is too large, or broke off".to_owned()))?;
        let reason = "it is not JSON";
        serde_json::from_slice(&body.to_bytes()).map_err(|_| RequestError::Wrong {
            url: url.to_owned(),
            reason,
        })
    }

    fn client(&self, url: &str) -> Result<Client, RequestError> {
        let is_plain = url.starts_with("http://");
        let kept = if is_plain {
            &self.plain
        } else {
            &self.protected
        };
        if let Some(client) = kept.get() {
            return Ok(client.clone());
        }
        let builder = tls::begin()
            .user_agent(concat!("mcpzip/", env!("CARGO_PKG_VERSION")))
            .timeout(LIMIT)
            // Small servers close idle connections after five seconds, and a request that crosses that is lost.
            .pool_idle_timeout(Duration::from_secs(4))
            .redirect(Policy::none())
            .referer(false);
        let builder = self.network.with_proxies(builder);
        let none = || RequestError::Certificates(url.to_owned());
        let builder = if is_plain {
            tls::plain(builder)
        } else {
            let trusting = self.network.with_certificates(builder, None);
            trusting.map_err(|_| none())?
        };
        let client = builder.build().map_err(|_| none())?;
        Ok(kept.get_or_init(|| client).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_shows_the_query_of_a_url() {
        let url = || "https://a.example/i?key=a-secret#x".to_owned();
        let reason = "it is not JSON";
        for error in [
            RequestError::Unreachable {
                url: url(),
                reason: String::new(),
            },
            RequestError::Status {
                url: url(),
                status: 500,
            },
            RequestError::Wrong { url: url(), reason },
            RequestError::Certificates(url()),
        ] {
            let said = error.to_string();
            assert!(
                said.contains("`https://a.example/i`") && !said.contains("a-secret"),
                "{said}"
            );
        }
    }
}
