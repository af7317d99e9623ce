//! The subscription to a modern server's events: one per connection. It is reopened when it ends, and when the set of
//! followed resources changes (2026-07-28, basic/patterns/subscriptions).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::connection::{Connection, ServerCall};
use super::reply::ServerReply;
use super::{backoff, message_of};
use crate::mcp::Frame;
use crate::mcp::object::quoted;
use crate::telemetry::trace::Hop;
use crate::tool::ServerName;

/// The time limit of a subscription, which stays open until either side ends it.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A subscription that was open for this long counts as successful.
const SETTLED: Duration = Duration::from_secs(10);

/// The number of refusals in a row after which the server is not asked again.
const MOST_REFUSALS: u32 = 3;

/// Keeps the subscription of `connection` open until the connection ends; `followed` are the resources that clients
/// follow, by the server's own URIs.
pub(super) async fn listen(
    server: ServerName,
    connection: Arc<Connection>,
    mut followed: watch::Receiver<BTreeSet<String>>,
) {
    let (mut failures, mut refusals) = (0, 0);
    while !connection.is_ended() {
        let filter = filter(&connection, &followed.borrow_and_update());
        if filter.is_empty() {
            if followed.changed().await.is_err() {
                return;
            }
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
            takes_task: false,
        };
        let outcome = tokio::select! {
            outcome = connection.call(&subscription) => outcome,
            // Dropping the old request cancels it; the loop opens a new one.
            changed = followed.changed() => if changed.is_ok() { continue } else { return },
        };
        if start.elapsed() > SETTLED {
            (failures, refusals) = (0, 0);
        }
        failures += 1;
        match outcome {
            Ok(ServerReply::Result(_)) => tracing::debug!("the server has ended its subscription"),
            Ok(ServerReply::Error(error)) => {
                refusals += 1;
                tracing::info!(
                    %server,
                    reason = message_of(&error),
                    "the server takes no subscription"
                );
                if refusals >= MOST_REFUSALS {
                    return;
                }
            }
            Err(error) => tracing::debug!(error = error.kind(), "a subscription was lost"),
        }
        tokio::time::sleep(backoff(failures)).await;
    }
}

/// The filter of the subscription: the changes that the server declares, and `followed`.
fn filter(connection: &Connection, followed: &BTreeSet<String>) -> String {
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
    if !followed.is_empty() && declared.has_part("resources", "subscribe") {
        let uris: Vec<String> = followed.iter().map(|uri| quoted(uri)).collect();
        members.push(format!(r#""resourceSubscriptions":[{}]"#, uris.join(",")));
    }
    members.join(",")
}
