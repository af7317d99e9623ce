//! HTTP+SSE, the older HTTP transport (2024-11-05, basic/transports): one event stream in, and a POST for each
//! message out.
//!
//! It uses a link as stdio does, but lines are posted and events are read. Requests are posted in parallel, because
//! some servers answer a POST only when its work is done.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Url};
use tokio_util::sync::CancellationToken;

use super::http::body::{self, Broken, Content};
use super::http::events::{Event, EventStream, Resumption};
use super::http::headers::origin;
use super::http::{HttpError, HttpPeer};
use crate::mcp::{Envelope, Line, LineReader, Message, Outbox};
use crate::shutdown::Tasks;
use crate::upstream::inbound::InboundRouter;
use crate::upstream::link::Link;
use crate::upstream::{CallError, MESSAGE_LIMIT};

/// The size of the pipe between the outbox and the posts, in bytes.
const PIPE: usize = 64 * 1024;

/// The time limit for a POST that needs no response.
const NOTICE_LIMIT: Duration = Duration::from_secs(10);

/// Opens the stream and waits for the URL to post to; `tasks` runs the tasks of the link.
pub(in crate::upstream) async fn open(
    peer: HttpPeer,
    tasks: &Tasks,
    inbound: Arc<InboundRouter>,
) -> Result<Arc<Link>, CallError> {
    let accept = [(ACCEPT, HeaderValue::from_static("text/event-stream"))];
    let response = peer
        .send(Method::GET, &peer.url, accept, Bytes::new())
        .await?;
    if !response.status().is_success() {
        return Err(peer.error(peer.refusal(response).await.0));
    }
    if let Content::Other(_) | Content::Json = body::content(&response) {
        return Err(peer.error(HttpError::NoEndpoint {
            reason: "it opens no event stream".to_owned(),
        }));
    }
    let mut events = EventStream::new(response, MESSAGE_LIMIT, Resumption::default());
    let target = post_url(&peer, &mut events).await?;
    let outbox = Outbox::new();
    let link = Link::new(peer.server.clone(), outbox.clone(), MESSAGE_LIMIT, inbound);
    let (near, far) = tokio::io::duplex(PIPE);
    tasks.spawn(async move {
        // The writer ends with the link, which reports the reason.
        let _ = outbox.write_to(near).await;
    });
    let posts = Posts {
        peer: Arc::new(peer),
        target,
        link: link.clone(),
        tasks: tasks.clone(),
    };
    tasks.spawn(posts.run(LineReader::new(far, usize::MAX)));
    tasks.spawn(read(link.clone(), events, tasks.stop().clone()));
    Ok(link)
}

/// Reads the first event, which names the URL to post to. It must have the peer's origin.
async fn post_url(peer: &HttpPeer, events: &mut EventStream) -> Result<Url, CallError> {
    let wrong = |reason: String| peer.error(HttpError::NoEndpoint { reason });
    match events.next().await {
        Ok(Some(Event::Message { kind, data })) if kind == "endpoint" => {
            let target = std::str::from_utf8(&data)
                .ok()
                .and_then(|path| peer.url.join(path).ok());
            let target =
                target.ok_or_else(|| wrong("it names no usable URL to post to".to_owned()))?;
            if target.origin() != peer.url.origin() {
                return Err(peer.error(HttpError::Redirect {
                    to: format!("`{}`", origin(&target)),
                }));
            }
            Ok(target)
        }
        Ok(Some(_)) => Err(wrong(
            "its stream does not begin with an endpoint to post to".to_owned(),
        )),
        Ok(None) | Err(Broken::TooLarge(_)) => Err(wrong(
            "its stream ended before it named an endpoint to post to".to_owned(),
        )),
        Err(Broken::Lost(reason)) => Err(peer.lost(&reason, false)),
    }
}

/// Passes events to the link until the stream ends or `stop` is cancelled.
async fn read(link: Arc<Link>, mut events: EventStream, stop: CancellationToken) {
    let reading = async {
        loop {
            match events.next().await {
                Ok(Some(Event::Message { kind, data })) if kind.is_empty() || kind == "message" => {
                    link.receive(data).await;
                }
                Ok(Some(Event::Message { .. })) => {}
                Ok(Some(Event::TooLarge { length, id })) => link.too_long(length, id.as_ref()),
                Ok(None) => return "it ended its event stream".to_owned(),
                Err(Broken::Lost(reason)) => return reason,
                Err(Broken::TooLarge(_)) => return "its event stream cannot be read".to_owned(),
            }
        }
    };
    let reason = tokio::select! {
        reason = reading => reason,
        () = link.close_requested() => "the connection was closed".to_owned(),
        () = stop.cancelled() => "mcpzip is shutting down".to_owned(),
    };
    link.end(&reason);
}

/// Posts outgoing messages.
#[derive(Clone)]
struct Posts {
    peer: Arc<HttpPeer>,
    target: Url,
    link: Arc<Link>,
    tasks: Tasks,
}

impl Posts {
    async fn run(self, mut lines: LineReader<tokio::io::DuplexStream>) {
        while let Ok(Some(Line::Message(line))) = lines.next().await {
            let request = match Envelope::parse(&line) {
                Ok(Envelope::Single(Message::Request(request))) => request.id.as_integer(),
                _ => None,
            };
            let posts = self.clone();
            match request {
                Some(id) => drop(
                    self.tasks
                        .spawn(async move { posts.request(id, line).await }),
                ),
                // Later messages may depend on it, so it is awaited; a server that stalls delays only itself.
                None => posts.notice(line).await,
            }
        }
    }

    /// Posts a request, which fails if the server does not accept it.
    async fn request(self, id: i64, line: Bytes) {
        let link = self.link.clone();
        let posted = tokio::select! {
            posted = self.post(line) => posted,
            () = link.close_requested() => return,
            () = self.tasks.stopped() => return,
        };
        if let Err(error) = posted {
            link.answer(id, Err(error));
        }
    }

    /// Posts a message without a response. If the server does not accept it, the next request shows that.
    async fn notice(self, line: Bytes) {
        tokio::select! {
            _ = tokio::time::timeout(NOTICE_LIMIT, self.post(line)) => {}
            () = self.link.close_requested() => {}
            () = self.tasks.stopped() => {}
        }
    }

    async fn post(&self, line: Bytes) -> Result<(), CallError> {
        let kind = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let response = self
            .peer
            .send(Method::POST, &self.target, kind, line)
            .await?;
        if response.status().is_success() {
            return Ok(());
        }
        Err(self.peer.error(self.peer.refusal(response).await.0))
    }
}
