//! The response to a request, as JSON or as an event stream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use memchr::memmem;
use reqwest::{Response, StatusCode};
use tokio_util::sync::CancellationToken;

use super::{Endpoint, joined};
use crate::mcp::frame::one_line;
use crate::mcp::{Envelope, Message, Outcome, Request};
use crate::telemetry;
use crate::upstream::raw_result::RawResult;
use crate::upstream::reply::{ServerReply, message_of};
use crate::upstream::transport::Target;
use crate::upstream::transport::http::body::{self, Broken, Content};
use crate::upstream::transport::http::events::{Event, EventStream, Resumption};
use crate::upstream::transport::http::{HttpError, headers};
use crate::upstream::{CallError, MESSAGE_LIMIT};

/// The delay before a stream is resumed if the server names none; also the shortest delay.
pub(super) const PAUSE: Duration = Duration::from_secs(1);
pub(super) const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// How long the server may take to end the stream after its response.
const DRAIN: Duration = Duration::from_millis(500);

/// The maximum number of resumptions in a row without an event.
const MOST_RESUMPTIONS: u32 = 5;

impl Endpoint {
    /// Posts a request and reads its response.
    pub(super) async fn exchange(
        self: &Arc<Self>,
        id: u64,
        target: Target<'_>,
        body: Bytes,
    ) -> Result<ServerReply, CallError> {
        let start = Instant::now();
        let response = self.post(Some(target), body).await?;
        if !response.status().is_success() {
            return self.refused(response).await;
        }
        if target.method == "initialize"
            && let Some(session) = response.headers().get(headers::SESSION)
        {
            // An endpoint is initialized once.
            let _ = self.session.set(session.clone());
        }
        match body::content(&response) {
            Content::Json => {
                let body = body::whole(response, MESSAGE_LIMIT)
                    .await
                    .map_err(|broken| self.broken(broken))?;
                self.peer.took(start.elapsed());
                let body = one_line(body);
                self.receive(&body, Some(id))
                    .unwrap_or_else(|| Err(self.malformed("it answers another request")))
            }
            Content::Events => {
                let answer = self.streamed(id, response).await;
                self.peer.took(start.elapsed());
                answer
            }
            Content::Other(_) if response.status() == StatusCode::ACCEPTED => {
                Err(self.malformed("it accepted the request without an answer"))
            }
            Content::Other(found) => Err(self.peer.error(HttpError::ContentType { found })),
        }
    }

    /// Reads the response from an event stream. If the stream breaks off, it is resumed if the server supports that.
    async fn streamed(
        self: &Arc<Self>,
        id: u64,
        response: Response,
    ) -> Result<ServerReply, CallError> {
        let mut events = EventStream::new(response, MESSAGE_LIMIT, Resumption::default());
        let mut fruitless = 0;
        loop {
            let end = loop {
                match events.next().await {
                    Ok(Some(event)) => {
                        fruitless = 0;
                        if let Some(answer) = self.event(event, Some(id)) {
                            self.tasks.spawn(drain(events, self.tasks.stop().clone()));
                            return answer;
                        }
                    }
                    Ok(None) => break "the stream ended before the answer".to_owned(),
                    Err(Broken::Lost(reason)) => break reason,
                    Err(broken @ Broken::TooLarge(_)) => return Err(self.broken(broken)),
                }
            };
            let resumption = events.resumption().clone();
            let Some(last_id) = resumption.last_id.clone().filter(|_| !self.is_modern()) else {
                return Err(self.peer.lost(&end, true));
            };
            events = loop {
                fruitless += 1;
                if fruitless > MOST_RESUMPTIONS {
                    return Err(self.peer.lost(&end, true));
                }
                tokio::time::sleep(resumption.pause.unwrap_or(PAUSE).max(SHORTEST_PAUSE)).await;
                match self.get(Some(&last_id)).await {
                    Ok(response)
                        if response.status().is_success()
                            && body::content(&response) == Content::Events =>
                    {
                        break EventStream::new(response, MESSAGE_LIMIT, resumption);
                    }
                    Ok(response) if response.status().is_client_error() => {
                        let reason = format!(
                            "{end}, and it cannot be resumed: HTTP {}",
                            response.status().as_u16()
                        );
                        return Err(self.peer.lost(&reason, true));
                    }
                    Ok(_) | Err(_) => {}
                }
            };
        }
    }

    /// Classifies an error response: a lost session, a JSON-RPC error, or a server error.
    async fn refused(&self, response: Response) -> Result<ServerReply, CallError> {
        let status = response.status();
        let has_session = self.session.get().is_some();
        let gone = || {
            self.lose_session();
            self.peer.lost("its session has ended", false)
        };
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(gone());
        }
        let (error, body) = self.peer.refusal(response).await;
        // A required login takes precedence over the body.
        if matches!(error, HttpError::Status { .. })
            && let Some(refusal) = body.and_then(|body| json_rpc_error(&one_line(body)))
        {
            // Many servers follow an example that answers 400 instead of 404.
            let is_gone = status == StatusCode::BAD_REQUEST
                && has_session
                && message_of(&refusal)
                    .to_ascii_lowercase()
                    .contains("session");
            return if is_gone {
                Err(gone())
            } else {
                Ok(ServerReply::Error(refusal))
            };
        }
        Err(self.peer.error(error))
    }

    /// Processes an event; returns the response if it answers request `id`.
    pub(super) fn event(
        self: &Arc<Self>,
        event: Event,
        id: Option<u64>,
    ) -> Option<Result<ServerReply, CallError>> {
        match event {
            Event::Message { kind, data } if kind.is_empty() || kind == "message" => {
                self.receive(&data, id)
            }
            Event::Message { .. } => None,
            Event::TooLarge { length, id: theirs } => {
                tracing::warn!(server = %self.peer.server, length, "a message over the size limit was dropped");
                let ours = id.and_then(|id| i64::try_from(id).ok());
                let is_answer = ours.is_some()
                    && theirs
                        .and_then(|id| id.as_integer())
                        .is_none_or(|id| Some(id) == ours);
                is_answer.then(|| Err(self.broken(Broken::TooLarge(length))))
            }
        }
    }

    /// Processes a message or a batch; returns the response to request `id` if it is included.
    fn receive(
        self: &Arc<Self>,
        json: &Bytes,
        id: Option<u64>,
    ) -> Option<Result<ServerReply, CallError>> {
        telemetry::frame(Some(&self.peer.server), "received", &[json]);
        if let Some((theirs, result)) = RawResult::of_response(json) {
            let is_ours = id.is_some() && u64::try_from(theirs).ok() == id;
            return is_ours.then_some(Ok(ServerReply::Result(result)));
        }
        match Envelope::parse(json) {
            Ok(Envelope::Single(message)) => self.dispatch(json, message, id).map(Ok),
            Ok(Envelope::Batch(batch)) => {
                let messages = batch.into_iter().filter_map(|raw| Message::parse(raw).ok());
                // All messages are processed, including those after the response.
                messages
                    .filter_map(|message| self.dispatch(json, message, id))
                    .fold(None, |first, next| first.or(Some(next)))
                    .map(Ok)
            }
            Err(malformed) => {
                tracing::warn!(server = %self.peer.server, %malformed, "an unreadable message");
                let theirs = malformed.id.as_ref().and_then(|id| id.as_integer());
                let ours = id.and_then(|id| i64::try_from(id).ok());
                // Only an event that was meant as a message can be the response; the stream tells which request it is
                // for.
                let was_message = memmem::find(json, b"\"jsonrpc\"").is_some();
                let is_answer =
                    was_message && ours.is_some() && (theirs.is_none() || theirs == ours);
                is_answer.then(|| Err(self.malformed(&malformed.reason)))
            }
        }
    }

    fn dispatch(
        self: &Arc<Self>,
        json: &Bytes,
        message: Message<'_>,
        ours: Option<u64>,
    ) -> Option<ServerReply> {
        match message {
            Message::Response { id, outcome } => {
                let theirs = id.map(|id| id.as_integer().and_then(|id| u64::try_from(id).ok()));
                let is_ours = match theirs {
                    Some(theirs) => theirs.is_some() && theirs == ours,
                    // The server could not read the id, and this is the only request on the stream.
                    None => ours.is_some() && matches!(outcome, Outcome::Error(_)),
                };
                let reply = match outcome {
                    Outcome::Result(raw) => {
                        ServerReply::Result(json.slice_ref(raw.get().as_bytes()).into())
                    }
                    Outcome::Error(raw) => ServerReply::Error(json.slice_ref(raw.get().as_bytes())),
                };
                return is_ours.then_some(reply);
            }
            Message::Request(request) => self.asked(&request, ours),
            Message::Notification { method, params } => {
                self.inbound.notified(&method, params, ours);
            }
        }
        None
    }

    /// Routes a request of the server, which arrived on the stream of request `id`, and posts the response.
    fn asked(self: &Arc<Self>, request: &Request<'_>, id: Option<u64>) {
        let endpoint = self.clone();
        self.inbound.asked(request, id, move |frame| {
            let Ok(permit) = endpoint.answers.clone().try_acquire_owned() else {
                tracing::debug!(server = %endpoint.peer.server, "too many requests of the server");
                return;
            };
            let tasks = endpoint.tasks.clone();
            tasks.spawn(async move {
                endpoint
                    .post_last_notice(Target::from("response"), joined(&frame))
                    .await;
                drop(permit);
            });
        });
    }

    fn broken(&self, broken: Broken) -> CallError {
        match broken {
            Broken::Lost(reason) => self.peer.lost(&reason, true),
            Broken::TooLarge(length) => CallError::TooLarge {
                server: self.peer.server.clone(),
                length,
                limit: MESSAGE_LIMIT,
            },
        }
    }

    fn malformed(&self, reason: &str) -> CallError {
        CallError::Malformed {
            server: self.peer.server.clone(),
            reason: reason.to_owned(),
        }
    }
}

/// Reads to the end of the stream after the response, usually nothing. Only then can the connection be reused.
async fn drain(mut events: EventStream, stop: CancellationToken) {
    tokio::select! {
        () = async { while let Ok(Some(_)) = events.next().await {} } => {}
        () = tokio::time::sleep(DRAIN) => {}
        () = stop.cancelled() => {}
    }
}

/// The error object of a body that is a JSON-RPC response.
fn json_rpc_error(body: &Bytes) -> Option<Bytes> {
    match Envelope::parse(body) {
        Ok(Envelope::Single(Message::Response {
            outcome: Outcome::Error(raw),
            ..
        })) => Some(body.slice_ref(raw.get().as_bytes())),
        _ => None,
    }
}
