//! Requests to a collector of OpenTelemetry: OTLP over HTTP, as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode, Url};
use serde_json::{Value, json};

use super::masked;
use crate::config::{Collector, NoCertificates};
use crate::text::causes;
use crate::tls;

/// The name of the instrumentation.
pub(super) const SCOPE: &str = "mcpzip";

/// Posts to a collector.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// Made when it is first needed.
    client: Option<Client>,
}

/// How sending went.
pub(crate) enum Sent {
    Taken,
    /// It may be taken later, after this pause where the collector named one.
    Later(String, Option<Duration>),
    Refused(String),
}

impl Sender {
    pub(crate) async fn post(&mut self, collector: &Collector, body: String) -> Sent {
        if self.client.is_none() {
            match client(collector) {
                Ok(client) => self.client = Some(client),
                Err(error) => return Sent::Refused(error.to_string()),
            }
        }
        let Some(client) = &self.client else {
            return Sent::Refused("there is no client".to_owned());
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &collector.headers {
            if let (Ok(name), Ok(mut value)) = (
                HeaderName::try_from(name),
                HeaderValue::try_from(value.expose()),
            ) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let response = match client
            .post(&collector.endpoint)
            .headers(headers)
            .body(body)
            .send()
            .await
        {
            Ok(response) => response,
            Err(error) => return Sent::Later(words(&error), None),
        };
        let status = response.status();
        if status.is_success() {
            return Sent::Taken;
        }
        let seconds = response
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let reason = status.to_string();
        // The retryable statuses (OTLP specification, "Retryable Response Codes").
        match status {
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => Sent::Later(reason, seconds.map(Duration::from_secs)),
            _ => Sent::Refused(reason),
        }
    }
}

/// The resource that a signal is about: this process.
#[must_use]
pub(crate) fn resource(attributes: &BTreeMap<String, String>) -> Value {
    let own = [
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("telemetry.sdk.name", SCOPE),
        ("telemetry.sdk.language", "rust"),
    ];
    let own = own
        .into_iter()
        .filter(|(key, _)| !attributes.contains_key(*key));
    let texts = attributes
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .chain(own);
    let mut all: Vec<Value> = texts
        .map(|(key, value)| text_attribute(key, value))
        .collect();
    let process = std::process::id().to_string();
    all.push(json!({ "key": "process.pid", "value": { "intValue": process } }));
    json!({ "attributes": all })
}

/// The scope that a signal comes from.
#[must_use]
pub(crate) fn scope() -> Value {
    json!({ "name": SCOPE, "version": env!("CARGO_PKG_VERSION") })
}

/// An attribute that is a text.
#[must_use]
pub(crate) fn text_attribute(key: &str, text: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": masked(text) } })
}

/// Why there is no HTTP client for the collector.
#[derive(Debug, thiserror::Error)]
enum ClientError {
    #[error(transparent)]
    Certificates(#[from] NoCertificates),
    #[error("{}", words(.0))]
    Build(#[from] reqwest::Error),
}

/// An HTTP client for the collector. Requests carry credentials, so it follows no redirect.
fn client(options: &Collector) -> Result<Client, ClientError> {
    let url = Url::parse(&options.endpoint).ok();
    let is_plain = url.as_ref().is_some_and(|url| url.scheme() == "http");
    let is_local = matches!(
        url.as_ref().and_then(Url::host_str),
        Some("localhost" | "127.0.0.1" | "[::1]")
    );
    let builder = tls::begin()
        .user_agent(concat!("mcpzip/", env!("CARGO_PKG_VERSION")))
        .timeout(options.timeout)
        .referer(false)
        .redirect(reqwest::redirect::Policy::none());
    // A collector on this machine is reached directly. Certificates are loaded only for HTTPS.
    let builder = if is_local {
        builder.no_proxy()
    } else {
        options.network.with_proxies(builder)
    };
    let builder = if is_plain && is_local {
        tls::plain(builder)
    } else {
        options.network.with_certificates(builder, None)?
    };
    Ok(builder.build()?)
}

/// An error with its causes, without the URL, which may contain a key.
fn words(error: &reqwest::Error) -> String {
    let what = match error.is_timeout() {
        true => "no answer in time",
        false => "it cannot be reached",
    };
    causes(error).fold(what.to_owned(), |text, cause| format!("{text}: {cause}"))
}
