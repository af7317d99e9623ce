//! The subscription to a modern server's events: one per connection. It is reopened when it ends, and when the set of
//! followed resources changes (2026-07-28, basic/patterns/subscriptions).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::connection::{Connection, ServerCall};
use super::followed::Followed;
use super::reply::ServerReply;
use super::{backoff, message_of};
use crate::mcp::object::quoted;
use crate::mcp::{Frame, TASKS};
use crate::telemetry::trace::Hop;
use crate::tool::ServerName;

/// The time limit of a subscription, which stays open until either side ends it.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A subscription that was open for this long counts as successful.
const SETTLED: Duration = Duration::from_secs(10);

/// The number of refusals in a row after which the server is not asked again: first without the tasks, then until clients follow
/// something else.
const MOST_REFUSALS: u32 = 3;

/// The server is not asked again.
const REFUSED: u32 = u32::MAX;

/// Keeps the subscription of `connection` open until the connection ends; `followed` is what clients
/// follow.
pub(super) async fn listen(
    server: ServerName,
    connection: Arc<Connection>,
    mut followed: watch::Receiver<BTreeSet<Followed>>,
) {
    let (mut failures, mut refusals) = (0, 0);
    while !connection.is_ended() {
        let mut wanted = followed.borrow_and_update().clone();
        if refusals >= MOST_REFUSALS {
            // The server may not know one of the tasks any more.
            wanted.retain(|one| matches!(one, Followed::Resource(_)));
        }
        let (filter, takes_task) = filter(&connection, &wanted);
        if filter.is_empty() || refusals == REFUSED {
            if followed.changed().await.is_err() {
                return;
            }
            refusals = 0;
            continue;
        }
        let start = tokio::time::Instant::now();
        let params = Frame::from(format!(r#"{{"notifications":{{{filter}}}"#));
        let subscription = ServerCall {
            method: "subscriptions/listen",
            name: None,
            params: &params,
            meta: "",
            limit: FOREVER,
            hop: Hop::default(),
            host: None,
            agreed: None,
            takes_task,
        };
        let outcome = tokio::select! {
            outcome = connection.call(&subscription) => outcome,
            // Dropping the old request cancels it; the loop opens a new one.
            changed = followed.changed() => match changed {
                Ok(()) => {
                    refusals = 0;
                    continue;
                }
                Err(_) => return,
            },
        };
        if start.elapsed() > SETTLED {
            (failures, refusals) = (0, 0);
        }
        failures += 1;
        match outcome {
            Ok(ServerReply::Result(_)) => tracing::debug!("the server has ended its subscription"),
            Ok(ServerReply::Error(error)) => {
                refusals = refusals.saturating_add(1);
                tracing::info!(
                    %server,
                    reason = message_of(&error),
                    "the server takes no subscription"
                );
                if refusals >= MOST_REFUSALS && !takes_task {
                    refusals = REFUSED;
                }
            }
            Err(error) => tracing::debug!(error = error.kind(), "a subscription was lost"),
        }
        tokio::time::sleep(backoff(failures)).await;
    }
}

/// The filter of the subscription: the changes that the server declares, and `followed`; and whether tasks are among these.
fn filter(connection: &Connection, followed: &BTreeSet<Followed>) -> (String, bool) {
    let declared = &connection.introduction().capabilities;
    let lists = [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ];
    let lists = lists
        .into_iter()
        .filter(|(feature, _)| declared.has_part(feature, "listChanged"));
    let mut members: Vec<String> = lists.map(|(_, key)| format!(r#""{key}":true"#)).collect();
    let (mut uris, mut tasks) = (Vec::new(), Vec::new());
    for one in followed {
        match one {
            Followed::Resource(uri) => uris.push(quoted(uri)),
            Followed::Task(id) => tasks.push(quoted(id)),
        }
    }
    if !uris.is_empty() && declared.has_part("resources", "subscribe") {
        members.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
    }
    let has_tasks = !tasks.is_empty() && declared.has_extension(TASKS);
    if has_tasks {
        members.push(format!(r#""taskIds":[{}]"#, tasks.join(",")));
    }
    (members.join(","), has_tasks)
}
