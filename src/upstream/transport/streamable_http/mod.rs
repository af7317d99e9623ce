//! Streamable HTTP: each request is a POST whose response is JSON or an event stream.
//!
//! Both eras are supported. A legacy server may issue a session. When the session is lost, the connection ends; the
//! pool opens a new one for all callers and repeats the requests that the server did not accept. A modern server has
//! no sessions; dropping a response stream cancels its request.

mod answer;
mod listen;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::Target;
use super::http::mirrors::Mirrors;
use super::http::{HttpPeer, headers};
use crate::mcp::{Frame, Revision};
use crate::shutdown::Tasks;
use crate::telemetry;
use crate::upstream::CallError;
use crate::upstream::host::Host;
use crate::upstream::inbound::InboundRouter;
use crate::upstream::reply::ServerReply;

/// The time limit for a POST that needs no response.
const NOTICE_LIMIT: Duration = Duration::from_secs(10);

/// The time limit for ending a session. A client that ends us waits for a fraction of a second only.
const FAREWELL: Duration = Duration::from_secs(5);
const HURRIED_FAREWELL: Duration = Duration::from_millis(150);

/// The maximum number of responses to the server's own requests in flight; further ones are dropped.
const MOST_ANSWERS: usize = 8;

/// A server's endpoint with its session.
pub(in crate::upstream) struct Endpoint {
    peer: HttpPeer,
    tasks: Tasks,
    /// The negotiated protocol revision.
    revision: OnceLock<Revision>,
    session: OnceLock<HeaderValue>,
    next_id: AtomicU64,
    answers: Arc<Semaphore>,
    mirrors: Arc<Mirrors>,
    /// Cancelled to close it.
    close: CancellationToken,
    /// Cancelled when nothing more can be sent: it is closed, or its session is lost.
    ended: CancellationToken,
    inbound: Arc<InboundRouter>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("server", &self.peer.server)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Creates an endpoint; nothing is sent yet. Its owner must close it.
    pub(in crate::upstream) fn new(
        peer: HttpPeer,
        tasks: &Tasks,
        mirrors: Arc<Mirrors>,
        inbound: Arc<InboundRouter>,
    ) -> Arc<Self> {
        let close = CancellationToken::new();
        let endpoint = Arc::new(Self {
            peer,
            tasks: tasks.clone(),
            revision: OnceLock::new(),
            session: OnceLock::new(),
            next_id: AtomicU64::new(1),
            answers: Arc::new(Semaphore::new(MOST_ANSWERS)),
            mirrors,
            ended: close.child_token(),
            close,
            inbound,
        });
        tasks.spawn(endpoint.clone().see_to_its_end());
        endpoint
    }

    /// Sends a request and waits for the response, for at most `limit`. Dropping the future cancels the request.
    pub(in crate::upstream) async fn request(
        self: &Arc<Self>,
        target: Target<'_>,
        params: impl FnOnce(u64) -> Frame,
        limit: Duration,
        host: Option<Arc<dyn Host>>,
    ) -> Result<ServerReply, CallError> {
        if self.is_ended() {
            return Err(self.peer.lost("the connection was closed", false));
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let _under_way = self.inbound.begin(id, host);
        let body = joined(&Frame::request(id, target.method, params(id)));
        let mut unanswered = Unanswered {
            endpoint: self,
            id,
            // An `initialize` must not be cancelled (2025-11-25, basic/utilities/cancellation).
            may_cancel: target.method != "initialize",
            reason: Some("the caller cancelled it"),
        };
        let exchange = async {
            tokio::select! {
                answer = self.exchange(id, target, body) => answer,
                () = self.close.cancelled() => Err(self.peer.lost("the connection was closed", true)),
            }
        };
        let outcome = self.inbound.within(id, limit, exchange).await;
        unanswered.reason = outcome.is_none().then_some("it took too long");
        outcome.unwrap_or_else(|| {
            Err(CallError::Timeout {
                server: self.peer.server.clone(),
                limit,
            })
        })
    }

    /// Sends a notification without parameters, and waits until the server has accepted it.
    pub(in crate::upstream) async fn notify(&self, method: &str) {
        let frame = Frame::from(format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#));
        self.post_notice(Target::from(method), joined(&frame)).await;
    }

    /// Sets the negotiated revision.
    pub(in crate::upstream) fn agree(&self, revision: Revision) {
        // Set once: another era uses another endpoint.
        let _ = self.revision.set(revision);
    }

    /// The known headers of tools (modern era only).
    pub(in crate::upstream) fn mirrors(&self) -> Option<&Mirrors> {
        self.is_modern().then_some(&*self.mirrors)
    }

    /// Opens the stream of the server's own messages, if the server offers one (legacy only).
    pub(in crate::upstream) fn listen(self: &Arc<Self>) {
        self.tasks.spawn(listen::listen(self.clone()));
    }

    /// Whether nothing more can be sent.
    pub(in crate::upstream) fn is_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Resolves when nothing more can be sent.
    pub(in crate::upstream) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Closes it; requests in flight fail.
    pub(in crate::upstream) fn close(&self) {
        self.close.cancel();
    }

    /// Resolves when it is to be closed.
    pub(in crate::upstream) async fn close_requested(&self) {
        self.close.cancelled().await;
    }

    /// Waits until it is to be closed, then ends the session at the server.
    async fn see_to_its_end(self: Arc<Self>) {
        tokio::select! {
            () = self.close.cancelled() => {}
            () = self.tasks.stopped() => self.close.cancel(),
        }
        if self.session.get().is_none() {
            return;
        }
        let farewell = self.peer.send(
            Method::DELETE,
            &self.peer.url,
            self.headers(None),
            Bytes::new(),
        );
        tokio::select! {
            // The server may refuse it (405), or be gone.
            _ = tokio::time::timeout(FAREWELL, farewell) => {}
            () = self.hurry() => {}
        }
    }

    /// Resolves when the grace period of an ending run is over.
    async fn hurry(&self) {
        self.tasks.stopped().await;
        tokio::time::sleep(HURRIED_FAREWELL).await;
    }

    /// Marks the session as lost, so that callers open a new connection.
    fn lose_session(&self) {
        tracing::info!(server = %self.peer.server, "the session has ended");
        self.ended.cancel();
    }

    fn is_modern(&self) -> bool {
        self.revision
            .get()
            .is_some_and(|revision| revision.is_modern())
    }

    /// Posts a message without a response; logs a failure.
    async fn post_notice(&self, target: Target<'_>, body: Bytes) {
        let taken = tokio::time::timeout(NOTICE_LIMIT, self.post(Some(target), body)).await;
        let problem = match taken {
            Ok(Ok(response)) if response.status().is_success() => return,
            Ok(Ok(response)) => response.status().to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it was not taken in time".to_owned(),
        };
        tracing::debug!(server = %self.peer.server, method = target.method, problem, "a message was not taken");
    }

    /// Like `post_notice`, but gives up when the grace period of an ending run is over.
    async fn post_last_notice(&self, target: Target<'_>, body: Bytes) {
        tokio::select! {
            () = self.post_notice(target, body) => {}
            () = self.hurry() => {}
        }
    }

    async fn post(
        &self,
        target: Option<Target<'_>>,
        body: Bytes,
    ) -> Result<reqwest::Response, CallError> {
        let mut headers = self.headers(target);
        headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
        headers.push((
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        ));
        telemetry::frame(Some(&self.peer.server), "sent", &[&body]);
        self.peer
            .send(Method::POST, &self.peer.url, headers, body)
            .await
    }

    async fn get(&self, last_event: Option<&str>) -> Result<reqwest::Response, CallError> {
        let mut headers = self.headers(None);
        headers.push((ACCEPT, HeaderValue::from_static("text/event-stream")));
        if let Some(id) = last_event.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.push((headers::LAST_EVENT, id));
        }
        self.peer
            .send(Method::GET, &self.peer.url, headers, Bytes::new())
            .await
    }

    /// The protocol's headers, for a message about `target` or without one.
    fn headers(&self, target: Option<Target<'_>>) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::with_capacity(6);
        if let Some(revision) = self.revision.get() {
            headers.push((
                headers::VERSION,
                HeaderValue::from_static(revision.as_str()),
            ));
        }
        if let Some(session) = self.session.get() {
            headers.push((headers::SESSION, session.clone()));
        }
        if let Some(context) = target.and_then(|target| target.context) {
            headers.extend(headers::of_trace(context));
        }
        if let Some(target) = target.filter(|_| self.is_modern()) {
            headers.push((headers::METHOD, headers::encoded(target.method)));
            headers.extend(
                target
                    .name
                    .map(|name| (headers::NAME, headers::encoded(name))),
            );
            headers.extend_from_slice(target.headers);
        }
        headers
    }
}

/// A request without a response yet. When it is dropped, a legacy server gets a cancellation, because closing the
/// connection means nothing to it. A modern server sees the end of the exchange.
struct Unanswered<'a> {
    endpoint: &'a Arc<Endpoint>,
    id: u64,
    may_cancel: bool,
    /// The reason for the server's log; `None` once there is a response.
    reason: Option<&'static str>,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let endpoint = self.endpoint;
        let Some(reason) = self
            .reason
            .filter(|_| self.may_cancel && !endpoint.is_modern() && !endpoint.is_ended())
        else {
            return;
        };
        const CANCELLED: &str = "notifications/cancelled";
        let params = format!(r#"{{"requestId":{},"reason":"{reason}"}}"#, self.id);
        let body = joined(&Frame::notification(CANCELLED, &params));
        // A runtime that is shutting down drops its tasks and starts none.
        if tokio::runtime::Handle::try_current().is_ok() {
            let endpoint = endpoint.clone();
            endpoint.tasks.clone().spawn(async move {
                endpoint
                    .post_last_notice(Target::from(CANCELLED), body)
                    .await;
            });
        }
    }
}

fn joined(frame: &Frame) -> Bytes {
    [&frame.head[..], &frame.body, &frame.tail].concat().into()
}
