//! The end of a server that waits for its calls: no new connection, no new request, and time for those in progress.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::admission::PassedOn;
use super::refusal;

/// The requests in progress, and whether the server is about to end.
#[derive(Debug, Clone)]
pub(super) struct Draining {
    /// Cancelled before the end begins, so that a balancer sends its requests to other replicas.
    announced: CancellationToken,
    begun: CancellationToken,
    requests: Arc<watch::Sender<usize>>,
}

/// A running server, to be ended.
pub(crate) struct Running {
    draining: Draining,
    /// Resolves when the requests that are answered on streams of their clients have ended.
    answered: BoxFuture<'static, ()>,
    limit: Option<Duration>,
    /// How long the end is announced before it begins.
    notice: Duration,
}

/// A request in progress, until its answer has been sent.
pub(super) struct InProgress(Arc<watch::Sender<usize>>);

impl Default for Draining {
    fn default() -> Self {
        Self {
            announced: CancellationToken::new(),
            begun: CancellationToken::new(),
            requests: Arc::new(watch::Sender::new(0)),
        }
    }
}

impl Draining {
    /// Whether the server is about to end.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    /// Whether a balancer should send no more requests.
    pub(super) fn is_announced(&self) -> bool {
        self.announced.is_cancelled() || self.has_begun()
    }

    /// Cancelled when the server is about to end.
    pub(super) fn token(&self) -> &CancellationToken {
        &self.begun
    }

    /// Makes the end wait until the answer is dropped.
    pub(super) fn hold(&self) -> InProgress {
        InProgress::begin(&self.requests)
    }

    /// Resolves when the server is about to end.
    pub(super) fn begun(&self) -> impl Future<Output = ()> + Send + use<> {
        self.begun.clone().cancelled_owned()
    }

    /// The running server, which gets this time for its last requests: those in progress, and those until `answered` resolves.
    pub(super) fn running(
        &self,
        limit: Option<Duration>,
        notice: Duration,
        answered: BoxFuture<'static, ()>,
    ) -> Running {
        Running {
            draining: self.clone(),
            answered,
            limit,
            notice,
        }
    }
}

impl Running {
    /// Takes no more connections and requests, and waits for those in progress, for as long as the configuration says or until
    /// `hurry` resolves.
    pub(crate) async fn drain(self, hurry: impl Future) {
        let Some(limit) = self.limit else { return };
        tokio::pin!(hurry);
        if !self.notice.is_zero() {
            self.draining.announced.cancel();
            tracing::info!("`/readyz` asks balancers to send no more requests");
            tokio::select! {
                () = tokio::time::sleep(self.notice) => {}
                _ = &mut hurry => return,
            }
        }
        self.draining.begun.cancel();
        let mut requests = self.draining.requests.subscribe();
        let (count, limit_in_seconds) = (*requests.borrow(), limit.as_secs());
        tracing::info!(
            requests = count,
            limit_in_seconds,
            "no new requests are taken"
        );
        let finished = async {
            // The sender is a part of this server, so it does not end before.
            let _ = requests.wait_for(|count| *count == 0).await;
            self.answered.await;
        };
        tokio::select! {
            () = finished => {}
            () = tokio::time::sleep(limit) => {
                tracing::warn!("the last requests take too long and are cancelled");
            }
            _ = &mut hurry => {}
        }
    }
}

impl InProgress {
    fn begin(requests: &Arc<watch::Sender<usize>>) -> Self {
        requests.send_modify(|count| *count += 1);
        Self(requests.clone())
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Counts a request with messages until its answer has been sent; refuses it when the server is about to end.
pub(super) async fn count(
    State(draining): State<Draining>,
    request: Request,
    next: Next,
) -> Response {
    let is_passed_on = request.extensions().get::<PassedOn>().is_some();
    if draining.has_begun() && !is_passed_on {
        let mut response = refusal::refuse(
            StatusCode::SERVICE_UNAVAILABLE,
            "this server is about to end; send the request again",
        );
        let headers = response.headers_mut();
        headers.insert("retry-after", HeaderValue::from_static("1"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        return response;
    }
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let in_progress = InProgress::begin(&draining.requests);
    next.run(request).await.map(|body| {
        Body::new(body.map_err(move |error| {
            // Moved into the body, so that it is dropped with it.
            let _ = &in_progress;
            error
        }))
    })
}
