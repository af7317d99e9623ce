//! Checks of open HTTP connections, so that the loss of a server is noticed before the next call.
//!
//! Only open and unused connections are checked. A check does not start or open anything, and does not count as use.
//! Processes need no check, because their end is noticed.

use std::sync::Arc;
use std::time::Duration;

use super::CallError;
use super::connection::Connection;
use super::transport::http::HttpError;
use crate::shutdown::Tasks;

/// The time limit for the response to a check.
const LIMIT: Duration = Duration::from_secs(10);

/// The pause before the second check after a failed one: a proxy may be restarting.
const PAUSE: Duration = Duration::from_secs(1);

/// Checks `connection` every `interval` until it ends, except while `is_used` is true. After two failed checks in a
/// row, it calls `give_up` with the reason and stops.
pub(super) async fn watch(
    connection: Arc<Connection>,
    interval: Duration,
    tasks: Tasks,
    is_used: impl Fn() -> bool,
    give_up: impl FnOnce(&CallError),
) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = connection.wire.close_requested() => return,
            () = tasks.stopped() => return,
        }
        if is_used() || check(&connection).await.is_ok() {
            continue;
        }
        // A server that has lost its session responds; the next call opens a new connection.
        if connection.is_ended() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
        if let Err(error) = check(&connection).await {
            give_up(&error);
            return;
        }
    }
}

/// Sends a request that requires any response. The modern era has no `ping`.
async fn check(connection: &Connection) -> Result<(), CallError> {
    let method = if connection.introduction().revision.is_modern() {
        "server/discover"
    } else {
        "ping"
    };
    match connection.request(method, "", LIMIT).await {
        Err(error) if is_absence(&error) => Err(error),
        // A refusal is a response, too.
        _ => Ok(()),
    }
}

/// Whether there was no response at all.
fn is_absence(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Lost { .. }
            | CallError::Timeout { .. }
            | CallError::Http {
                error: HttpError::Unreachable { .. } | HttpError::Insecure { .. },
                ..
            }
    )
}
