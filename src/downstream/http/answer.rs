//! The response to a POST: one JSON message if it comes first and soon, else an event stream.

use std::collections::VecDeque;
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;

use super::event_log::StreamKind;
use super::forms::Forms;
use super::shared::Shared;
use super::stream::Stream;
use super::{body, identities, refusal};
use crate::identity::Pass;
use crate::mcp::{ErrorCode, Frame, RequestId};

/// The time after which a client without a response yet gets an event stream, to show that the request is running.
const PATIENCE: Duration = Duration::from_secs(3);

/// The request to answer.
pub(super) struct PostedRequest<'a> {
    /// The id, if it is a single request.
    pub(super) id: Option<&'a RequestId>,
    pub(super) is_modern: bool,
    pub(super) forms: Forms,
    /// The pass that it was let in by.
    pub(super) pass: Option<&'a Pass>,
}

/// Waits for the messages on `stream` and responds with them.
pub(super) async fn answer(
    shared: &Shared,
    stream: Stream,
    question: PostedRequest<'_>,
) -> Response {
    let Forms { json, events } = question.forms;
    if !events {
        return only_json(shared, stream, &question).await;
    }
    if !json {
        return events_of(stream, question.id, None);
    }
    match tokio::time::timeout(PATIENCE, stream.outbox().next()).await {
        Ok(Some(frame)) if stream.outbox().is_through() => whole(shared, frame, &question),
        Ok(Some(frame)) => events_of(stream, question.id, Some(frame)),
        Ok(None) => nothing(shared, stream, &question),
        Err(_) => events_of(stream, question.id, None),
    }
}

/// An event stream with `first` before all other messages.
fn events_of(mut stream: Stream, request: Option<&RequestId>, first: Option<Frame>) -> Response {
    let first = stream.begin(StreamKind::Response, request, first);
    body::events(first, stream)
}

/// The response for a client that does not accept event streams: messages before the response are dropped.
async fn only_json(shared: &Shared, stream: Stream, question: &PostedRequest<'_>) -> Response {
    while let Some(frame) = stream.outbox().next().await {
        if stream.outbox().is_through() {
            return whole(shared, frame, question);
        }
    }
    nothing(shared, stream, question)
}

/// The response when there is no result: the request was cancelled by its client or by the end of the run.
fn nothing(shared: &Shared, stream: Stream, question: &PostedRequest<'_>) -> Response {
    if shared.tasks.stop().is_cancelled() {
        let message = "mcpzip ended before the answer came";
        return refusal::error(
            StatusCode::SERVICE_UNAVAILABLE,
            question.id,
            ErrorCode::INTERNAL,
            message,
        );
    }
    // A cancelled request has no response; in HTTP, a stream without events is closest to that.
    body::events(VecDeque::new(), stream)
}

fn whole(shared: &Shared, frame: Frame, question: &PostedRequest<'_>) -> Response {
    let is_own = frame.body.is_empty();
    let is_unscoped = is_own && frame.error_code() == Some(ErrorCode::INSUFFICIENT_SCOPE);
    let authenticator = shared.access.authenticator.as_ref();
    let Some(authenticator) = authenticator.filter(|_| is_unscoped) else {
        return single(frame, question.is_modern);
    };
    let needed = needed_scopes(&frame.head);
    let challenge = identities::scope_challenge(authenticator, &needed, question.pass);
    let mut response = refusal::json(StatusCode::FORBIDDEN, body::whole(frame));
    refusal::add_challenge(&mut response, &challenge);
    response
}

/// The scopes that an error says are missing.
fn needed_scopes(error: &[u8]) -> Vec<String> {
    let message: serde_json::Value = serde_json::from_slice(error).unwrap_or_default();
    let scopes = message["error"]["data"]["scopes"].as_array();
    let scopes = scopes.into_iter().flatten();
    scopes
        .filter_map(|scope| scope.as_str().map(str::to_owned))
        .collect()
}

/// A response with a single message.
fn single(frame: Frame, is_modern: bool) -> Response {
    // An error relayed from a server is not an error of this HTTP request.
    let is_own = frame.body.is_empty();
    let code = frame
        .error_code()
        .filter(|code| is_own || *code == ErrorCode::MISSING_CAPABILITY);
    let status = code.map_or(StatusCode::OK, |code| status(code, is_modern));
    refusal::json(status, body::whole(frame))
}

/// The HTTP status for an error. An error about a method's parameters is an ordinary response, hence 200.
fn status(code: ErrorCode, is_modern: bool) -> StatusCode {
    match code {
        ErrorCode::PARSE | ErrorCode::INVALID_REQUEST => StatusCode::BAD_REQUEST,
        ErrorCode::HEADER_MISMATCH
        | ErrorCode::UNSUPPORTED_VERSION
        | ErrorCode::MISSING_CAPABILITY
            if is_modern =>
        {
            StatusCode::BAD_REQUEST
        }
        ErrorCode::METHOD_NOT_FOUND if is_modern => StatusCode::NOT_FOUND,
        _ => StatusCode::OK,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn only_an_error_of_our_own_has_a_status_of_its_own() {
        let id = RequestId::parse(&RawValue::from_string("1".to_owned()).unwrap()).unwrap();
        let own = |code| {
            single(Frame::error(Some(&id), code, "no", None), true)
                .status()
                .as_u16()
        };
        let relayed = |code: i64| {
            let error = format!(r#"{{"code":{code},"message":"no"}}"#);
            single(Frame::relayed_error(&id, error.into()), true)
                .status()
                .as_u16()
        };
        assert_eq!(
            (own(ErrorCode::METHOD_NOT_FOUND), relayed(-32601)),
            (404, 200)
        );
        assert_eq!(
            (own(ErrorCode::INVALID_PARAMS), relayed(-32602)),
            (200, 200)
        );
        assert_eq!(
            (own(ErrorCode::MISSING_CAPABILITY), relayed(-32021)),
            (400, 400)
        );
    }
}
