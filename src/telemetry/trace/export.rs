//! Sends spans to the collector, in a background task.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, StatusCode, Url};
use tokio::sync::mpsc;

use super::{Record, Tracer, otlp};
use crate::config::Traces;
use crate::shutdown::Tasks;
use crate::text::causes;

/// The number of attempts to send a batch that the collector rejects for now.
const MOST_ATTEMPTS: u32 = 4;

/// The longest pause that a collector can request.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The time limit for sending the batch that is in flight at shutdown.
const HURRY: Duration = Duration::from_millis(100);

/// The spans that have not been sent.
#[derive(Debug)]
pub(super) struct Waiting {
    spans: mpsc::Receiver<Record>,
    batch: Vec<Record>,
    /// Created when it is first needed.
    client: Option<Client>,
    /// The collector failed lately, and this was logged.
    is_failing: bool,
}

/// The result of sending a batch.
enum Sent {
    Taken,
    /// The collector may accept it later, after this pause if it named one.
    Later(String, Option<Duration>),
    Refused(String),
}

impl Waiting {
    pub(super) fn new(spans: mpsc::Receiver<Record>) -> Self {
        Self {
            spans,
            batch: Vec::new(),
            client: None,
            is_failing: false,
        }
    }
}

impl Tracer {
    /// Sends spans until shutdown.
    pub(super) async fn export(self: Arc<Self>, tasks: Tasks) {
        let mut waiting = self.waiting.lock().await;
        loop {
            tokio::select! {
                () = self.gather(&mut waiting) => {}
                () = tasks.stopped() => return,
            }
            let batch = std::mem::take(&mut waiting.batch);
            let count = batch.len();
            let hurry = async {
                tasks.stopped().await;
                tokio::time::sleep(HURRY).await;
            };
            tokio::select! {
                () = self.send(&mut waiting, batch, &tasks) => {}
                () = hurry => {
                    self.drop_spans(count);
                    waiting.is_failing = true;
                    return;
                }
            }
        }
    }

    /// Sends the remaining spans after all tasks have ended, within `limit`.
    pub(crate) async fn flush(&self, limit: Duration) {
        let mut waiting = self.waiting.lock().await;
        while let Ok(span) = waiting.spans.try_recv() {
            waiting.batch.push(span);
        }
        let batch = std::mem::take(&mut waiting.batch);
        let count = batch.len();
        if count == 0 {
            return;
        }
        if waiting.is_failing {
            return self.drop_spans(count);
        }
        let sent = async {
            let body = otlp::request(&self.options.resource, &batch);
            self.post(&mut waiting, body).await
        };
        match tokio::time::timeout(limit, sent).await {
            Ok(Sent::Taken) => _ = self.exported.fetch_add(count as u64, Ordering::Relaxed),
            _ => {
                self.drop_spans(count);
                tracing::debug!(count, "the last spans were not taken");
            }
        }
    }

    /// Waits for one span, then collects others for a while or until there are enough.
    ///
    /// # Cancel safety
    /// Collected spans are kept.
    async fn gather(&self, waiting: &mut Waiting) {
        if waiting.batch.is_empty() {
            match waiting.spans.recv().await {
                Some(span) => waiting.batch.push(span),
                // The channel cannot close while its receiver is here.
                None => std::future::pending().await,
            }
        }
        let more = async {
            while waiting.batch.len() < self.options.batch {
                let Some(span) = waiting.spans.recv().await else {
                    return;
                };
                waiting.batch.push(span);
            }
        };
        // The delay is over, or the batch is full.
        let _ = tokio::time::timeout(self.options.delay, more).await;
    }

    async fn send(&self, waiting: &mut Waiting, batch: Vec<Record>, tasks: &Tasks) {
        let count = batch.len();
        let resource = self.options.resource.clone();
        // On a blocking thread, where it delays no message.
        let body = tasks
            .spawn_blocking(move || otlp::request(&resource, &batch))
            .await;
        let body = body.expect("writing to memory does not panic");
        for attempt in 1..=MOST_ATTEMPTS {
            match self.post(waiting, body.clone()).await {
                Sent::Taken => {
                    self.exported.fetch_add(count as u64, Ordering::Relaxed);
                    if std::mem::take(&mut waiting.is_failing) {
                        tracing::info!("the collector of traces is back");
                    }
                    return;
                }
                Sent::Later(_, pause) if attempt < MOST_ATTEMPTS => {
                    let pause = pause.unwrap_or(Duration::from_secs(1) * 2_u32.pow(attempt - 1));
                    tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
                }
                Sent::Later(reason, _) | Sent::Refused(reason) => {
                    self.drop_spans(count);
                    // Logged once, not with every batch.
                    if !std::mem::replace(&mut waiting.is_failing, true) {
                        tracing::warn!(
                            reason,
                            "the collector does not take our traces; calls go on as ever"
                        );
                    }
                    return;
                }
            }
        }
    }

    async fn post(&self, waiting: &mut Waiting, body: String) -> Sent {
        if waiting.client.is_none() {
            match client(&self.options) {
                Ok(client) => waiting.client = Some(client),
                Err(reason) => return Sent::Refused(reason),
            }
        }
        let Some(client) = &waiting.client else {
            return Sent::Refused("there is no client".to_owned());
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &self.options.headers {
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
            .post(&self.options.endpoint)
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

/// An HTTP client for the collector. Requests carry credentials, so it follows no redirect.
fn client(options: &Traces) -> Result<Client, String> {
    // The provider is installed already if another client was made before; any provider will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = Url::parse(&options.endpoint).ok();
    let is_plain = url.as_ref().is_some_and(|url| url.scheme() == "http");
    let is_local = matches!(
        url.as_ref().and_then(Url::host_str),
        Some("localhost" | "127.0.0.1" | "[::1]")
    );
    let builder = Client::builder()
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
        builder.tls_certs_only([])
    } else {
        options
            .network
            .with_certificates(builder, Vec::new())
            .map_err(|error| error.to_string())?
    };
    builder.build().map_err(|error| words(&error))
}

/// An error with its causes, without the URL, which may contain a key.
fn words(error: &reqwest::Error) -> String {
    let what = match error.is_timeout() {
        true => "no answer in time",
        false => "it cannot be reached",
    };
    causes(error).fold(what.to_owned(), |text, cause| format!("{text}: {cause}"))
}
