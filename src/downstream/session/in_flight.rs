//! The requests of one session that have no response yet.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::downstream::exchange::ResponseTarget;
use crate::mcp::{ErrorCode, Frame, RequestId};

/// The maximum number of requests in flight for one client; more are refused.
const MOST_REQUESTS: usize = 4096;

/// The maximum size of their parameters together, in bytes. A single request of any size is accepted.
const MOST_BYTES: usize = 128 * 1024 * 1024;

/// The requests in flight of one client.
#[derive(Debug, Default)]
pub(super) struct RequestsInFlight {
    table: Mutex<Table>,
    /// Notified when a request has ended.
    ended: Notify,
}

#[derive(Debug, Default)]
struct Table {
    requests: HashMap<RequestId, InFlight>,
    /// The size of their parameters together.
    bytes: usize,
}

/// A request that has no response yet.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) cancelled: CancellationToken,
    /// Whether it is a subscription, which ends only when cancelled.
    pub(super) is_endless: bool,
    /// The size of its parameters.
    pub(super) bytes: usize,
}

/// Records the end of a request in flight when it is dropped.
pub(super) struct InFlightGuard<'a> {
    pub(super) requests: &'a RequestsInFlight,
    pub(super) id: &'a RequestId,
    pub(super) answer: &'a ResponseTarget,
}

impl RequestsInFlight {
    /// Adds a request.
    ///
    /// # Errors
    /// The error for the client if its id is in use, or there are too many requests.
    pub(super) fn add(&self, id: &RequestId, request: InFlight) -> Result<(), (ErrorCode, String)> {
        let mut table = self.table.lock();
        if table.requests.contains_key(id) {
            let message = "a request with this id is still in progress".to_owned();
            return Err((ErrorCode::INVALID_REQUEST, message));
        }
        if table.requests.len() >= MOST_REQUESTS {
            let message = format!("{MOST_REQUESTS} requests are already in progress");
            return Err((ErrorCode::TOO_MANY_REQUESTS, message));
        }
        if table.bytes > 0 && table.bytes + request.bytes > MOST_BYTES {
            let bytes = table.bytes;
            let message = format!("the requests in progress already have {bytes} bytes");
            return Err((ErrorCode::TOO_MANY_REQUESTS, message));
        }
        table.bytes += request.bytes;
        table.requests.insert(id.clone(), request);
        Ok(())
    }

    /// The number of requests, without subscriptions.
    pub(super) fn count(&self) -> usize {
        let table = self.table.lock();
        let requests = table.requests.values();
        requests.filter(|request| !request.is_endless).count()
    }

    /// Cancels a request, if it is in flight. Returns whether it is.
    pub(super) fn cancel(&self, id: &RequestId) -> bool {
        let table = self.table.lock();
        let request = table.requests.get(id);
        if let Some(request) = request {
            request.cancelled.cancel();
        }
        request.is_some()
    }

    /// Cancels all requests.
    pub(super) fn cancel_all(&self) {
        let table = self.table.lock();
        let requests = table.requests.values();
        requests.for_each(|request| request.cancelled.cancel());
    }

    /// Resolves when a request has just ended or the next one ends.
    pub(super) async fn ended(&self) {
        self.ended.notified().await;
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The panic itself is in the log; without this response the client would wait forever.
            let message =
                "an internal error of mcpzip ended this request; other requests are not affected";
            self.answer.push(Frame::error(
                Some(self.id),
                ErrorCode::INTERNAL,
                message,
                None,
            ));
        }
        let mut table = self.requests.table.lock();
        if let Some(request) = table.requests.remove(self.id) {
            table.bytes -= request.bytes;
        }
        drop(table);
        self.requests.ended.notify_one();
    }
}
