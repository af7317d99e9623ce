//! The events that a person at a gateway may see.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Gateway;
use crate::config::BUILT_IN_SERVER;
use crate::downstream::http::Visit;
use crate::events::{Event, Heard, Listener, Numbered, Past};
use crate::tool::{ServerName, ToolName};
use crate::ui::doors::{EVENTS, begin, event_text, lagged_text, typed};

/// The most open streams of one identity. One window listens for all windows of a browser.
const MOST: usize = 16;

/// Interval between two comments of a stream, and between two looks whether the visit goes on.
const COMMENT: Duration = Duration::from_secs(5);

/// How long a stream goes on that a proxy has named the person for: the page opens another, and the proxy says again who it is.
const FORWARDED: Duration = Duration::from_secs(7);

/// Tells the page that the end of the stream is none of the visit.
const RENEWED: &str = "retry: 100\nevent: renewed\ndata: {}\n\n";

/// Whether a person may see an event.
fn may_see(visit: &Visit, numbered: &Numbered) -> bool {
    if visit.manages() {
        return true;
    }
    let own = Some(&visit.entitlement().identity);
    match &numbered.event {
        Event::CallBegan {
            identity,
            server,
            tool,
            ..
        }
        | Event::CallEnded {
            identity,
            server,
            tool,
            ..
        }
        | Event::ApprovalWanted {
            identity,
            server,
            tool,
            ..
        } => identity.as_ref() == own && is_shown(visit, server, Some(tool)),
        Event::ServerStarting { server }
        | Event::ServerReady { server }
        | Event::ServerFailed { server, .. }
        | Event::ServerStopped { server }
        | Event::ToolsChanged { server, .. }
        | Event::LoginWanted { server } => {
            // Another person's process has said other things.
            numbered.owner.as_ref() == own && is_shown(visit, server, None)
        }
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

/// Whether the visitor's part of the configuration has a server, and the part of a limited credential the tool. The identity may also have
/// shown another credential.
fn is_shown(visit: &Visit, server: &str, tool: Option<&str>) -> bool {
    let (Ok(proxy), Ok(server)) = (visit.proxy(), ServerName::new(server)) else {
        return false;
    };
    let is_limited = visit.entitlement().limit.is_some();
    if server.as_str() == BUILT_IN_SERVER {
        return !is_limited;
    }
    let view = proxy.unscoped();
    let has_tool = |tool: &str| {
        let tool = ToolName::new(tool).ok();
        tool.is_some_and(|tool| view.snapshot().tool(&server, &tool).is_some())
    };
    view.config().servers.contains_key(&server) && (!is_limited || tool.is_none_or(has_tool))
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

fn seen(visit: &Visit, past: Past) -> Past {
    let seen = |events: Vec<Arc<Numbered>>| {
        let events = events.into_iter();
        events.filter_map(|event| told(visit, event)).collect()
    };
    Past {
        events: seen(past.events),
        calls: seen(past.calls),
        ..past
    }
}

/// The event as a person reads it, if they may see it.
fn told(visit: &Visit, numbered: Arc<Numbered>) -> Option<Arc<Numbered>> {
    if !may_see(visit, &numbered) {
        return None;
    }
    let Event::ServerFailed { server, reason } = &numbered.event else {
        return Some(numbered);
    };
    if visit.manages() {
        return Some(numbered);
    }
    let reason = visit.proxy().ok()?.unscoped().suited(reason.clone());
    let event = Event::ServerFailed {
        server: server.clone(),
        reason,
    };
    Some(Arc::new(Numbered {
        event,
        owner: numbered.owner.clone(),
        ..*numbered
    }))
}

/// Opens a stream; `None` if the person has too many.
pub(super) fn open(
    gateway: Arc<Gateway>,
    visit: Arc<Visit>,
    since: Option<u64>,
) -> Option<Response> {
    let place = StreamPermit::take(gateway, &visit)?;
    let (past, listener) = visit.proxies().main().events().listen(since);
    let stream = EventStream {
        ready: begin(&seen(&visit, past)),
        listener,
        is_over: false,
        end: visit.is_forwarded().then(|| Instant::now() + FORWARDED),
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
    /// Whether the page knows that the stream ends.
    is_over: bool,
    /// The end of a stream that does not go on as long as the visit.
    end: Option<Instant>,
    visit: Arc<Visit>,
    _place: StreamPermit,
}

impl EventStream {
    async fn next(&mut self) -> Option<String> {
        if let Some(text) = self.ready.pop_front() {
            return Some(text);
        }
        if self.is_over {
            return None;
        }
        let end = self.end.unwrap_or_else(Instant::now);
        let comment = tokio::time::sleep(COMMENT);
        tokio::pin!(comment);
        loop {
            tokio::select! {
                biased;
                () = self.visit.ended() => return None,
                () = tokio::time::sleep_until(end), if self.end.is_some() => {
                    self.is_over = true;
                    return Some(RENEWED.to_owned());
                }
                () = &mut comment => {
                    return self.visit.is_current().then(|| ":\n\n".to_owned());
                }
                heard = self.listener.next() => match heard {
                    Heard::Event(event) => {
                        if let Some(event) = told(&self.visit, event) {
                            return Some(event_text(event.number, &*event));
                        }
                    }
                    Heard::Lagged(lost) => return Some(lagged_text(lost)),
                },
            }
        }
    }
}

/// A place among the streams of an identity, until it is dropped.
struct StreamPermit {
    gateway: Arc<Gateway>,
    identity: String,
}

impl StreamPermit {
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

impl Drop for StreamPermit {
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
