//! The events that a person at a gateway may see.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures_util::stream;
use serde_json::{Value, json};

use super::Gateway;
use crate::downstream::http::Visit;
use crate::events::{Event, Heard, Listener, Past};
use crate::tool::ServerName;
use crate::ui::doors::{EVENTS, begin, event_text, lagged_text, typed};

/// The most open streams of one identity. One window listens for all windows of a browser.
const MOST: usize = 16;

/// Interval between two comments of a stream, and between two looks whether the visit goes on.
const COMMENT: Duration = Duration::from_secs(5);

/// Whether a person may see an event.
fn may_see(visit: &Visit, event: &Event) -> bool {
    if visit.manages() {
        return true;
    }
    let own = &visit.entitlement().identity;
    match event {
        Event::CallBegan { identity, .. }
        | Event::CallEnded { identity, .. }
        | Event::ApprovalWanted { identity, .. } => identity.as_ref() == Some(own),
        Event::ServerStarting { server }
        | Event::ServerReady { server }
        | Event::ServerFailed { server, .. }
        | Event::ServerStopped { server }
        | Event::ToolsChanged { server, .. }
        | Event::LoginWanted { server } => is_of_everyone(visit, server),
        Event::SessionOpened { .. }
        | Event::SessionClosed { .. }
        | Event::Ordered { .. }
        | Event::Paused { .. }
        | Event::Resumed
        | Event::HttpListening { .. }
        | Event::HttpFailed { .. }
        | Event::HttpStopped { .. } => false,
    }
}

/// Whether a server is the person's, and what happens to it is not about another person's connection.
fn is_of_everyone(visit: &Visit, server: &str) -> bool {
    let (Ok(proxy), Ok(server)) = (visit.proxy(), ServerName::new(server)) else {
        return false;
    };
    let config = proxy.unscoped().config();
    let entry = config.servers.get(&server);
    entry.is_some_and(|entry| !entry.is_for_people())
}

/// The events that are kept, from the number `since` on.
pub(super) fn past(visit: &Visit, since: u64) -> Value {
    let past = visit.proxies().main().events().since(since);
    let past = seen(visit, past);
    json!({
        "events": past.events,
        "is_incomplete": past.is_incomplete,
        "calls": past.calls,
        "next": past.next,
    })
}

fn seen(visit: &Visit, mut past: Past) -> Past {
    past.events.retain(|event| may_see(visit, &event.event));
    past.calls.retain(|event| may_see(visit, &event.event));
    past
}

/// Opens a stream; `None` if the person has too many.
pub(super) fn open(
    gateway: Arc<Gateway>,
    visit: Arc<Visit>,
    since: Option<u64>,
) -> Option<Response> {
    let place = Place::take(gateway, &visit)?;
    let (past, listener) = visit.proxies().main().events().listen(since);
    let stream = EventStream {
        ready: begin(&seen(&visit, past)),
        listener,
        visit,
        _place: place,
    };
    let body = stream::unfold(stream, async |mut stream| {
        let text = stream.next().await?;
        Some((Ok::<_, Infallible>(text), stream))
    });
    Some(typed(EVENTS, Body::from_stream(body)))
}

/// The events for one page, until the visit ends.
struct EventStream {
    ready: VecDeque<String>,
    listener: Listener,
    visit: Arc<Visit>,
    _place: Place,
}

impl EventStream {
    async fn next(&mut self) -> Option<String> {
        if let Some(text) = self.ready.pop_front() {
            return Some(text);
        }
        let comment = tokio::time::sleep(COMMENT);
        tokio::pin!(comment);
        loop {
            tokio::select! {
                biased;
                () = self.visit.ended() => return None,
                () = &mut comment => {
                    return self.visit.is_current().then(|| ":\n\n".to_owned());
                }
                heard = self.listener.next() => match heard {
                    Heard::Event(event) if may_see(&self.visit, &event.event) => {
                        return Some(event_text(event.number, &*event));
                    }
                    Heard::Event(_) => {}
                    Heard::Lagged(lost) => return Some(lagged_text(lost)),
                },
            }
        }
    }
}

/// A place among the streams of an identity, until it is dropped.
struct Place {
    gateway: Arc<Gateway>,
    identity: String,
}

impl Place {
    fn take(gateway: Arc<Gateway>, visit: &Visit) -> Option<Self> {
        let identity = visit.entitlement().identity.clone();
        {
            let mut streams = gateway.streams.lock();
            let count = streams.entry(identity.clone()).or_default();
            if *count >= MOST {
                return None;
            }
            *count += 1;
        }
        Some(Self { gateway, identity })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut streams = self.gateway.streams.lock();
        if let Some(count) = streams.get_mut(&self.identity) {
            *count -= 1;
            if *count == 0 {
                streams.remove(&self.identity);
            }
        }
    }
}
