//! A check of open connections over HTTP, so that a server that has gone is known before the next call.
//!
//! Only a connection that is open and unused is checked; nothing is started or opened for it, and a check does not count as
//! use. The end of a process needs no check.

use std::sync::Arc;
use std::time::Duration;

use super::CallError;
use super::connection::Connection;
use super::transport::http::HttpError;
use crate::shutdown::Tasks;

/// How long a server may take to answer a check.
const LIMIT: Duration = Duration::from_secs(10);

/// A second check follows a failed one after this time: a proxy may have restarted.
const PAUSE: Duration = Duration::from_secs(1);

/// Checks `connection` every `interval` until it ends, unless `is_used` says that calls hold it. When two checks in a row fail,
/// `give_up` gets the reason, and the checks end.
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
        // A server that has lost its session answers; the next call opens a new one.
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

/// Asks the server for an answer of any kind. There is no `ping` in the modern era.
async fn check(connection: &Connection) -> Result<(), CallError> {
    let method = if connection.introduction().revision.is_modern() {
        "server/discover"
    } else {
        "ping"
    };
    match connection.request(method, "", LIMIT).await {
        Err(error) if is_absence(&error) => Err(error),
        // A refusal is an answer, too.
        _ => Ok(()),
    }
}

/// Whether there was no answer at all.
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
