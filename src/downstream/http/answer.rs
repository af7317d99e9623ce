//! The answer to a POST: the message itself where it comes first and soon, a stream of events otherwise.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use super::sessions::Visit;
use super::{Shared, body, refusal};
use crate::downstream::Session;
use crate::mcp::{ErrorCode, Frame, Outbox, RequestId};

/// Where nothing is there after this time, the client is shown that something is going on.
const PATIENCE: Duration = Duration::from_secs(3);

/// A way to one client, and what ends with it.
pub(super) struct Stream {
    outbox: Outbox,
    end: End,
    _visit: Option<Visit>,
}

/// What happens when the client is gone.
enum End {
    /// Requests go on: up to 2025-11-25, leaving is not cancelling.
    Nothing,
    /// Leaving cancels (2026-07-28, basic/patterns/cancellation).
    Requests(Arc<Session>),
    /// The stream was the session.
    Session(Arc<Shared>, String),
}

/// The forms of an answer that a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forms {
    json: bool,
    pub(super) events: bool,
}

/// What is answered.
pub(super) struct Question<'a> {
    /// Its id, where it is a single request.
    pub(super) id: Option<&'a RequestId>,
    pub(super) is_modern: bool,
    pub(super) forms: Forms,
}

impl Stream {
    /// A way whose end cancels nothing.
    pub(super) fn new(outbox: Outbox, visit: Option<Visit>) -> Self {
        Self {
            outbox,
            end: End::Nothing,
            _visit: visit,
        }
    }

    /// A way whose end cancels the requests of `session`.
    pub(super) fn cancelling(outbox: Outbox, session: Arc<Session>) -> Self {
        Self {
            outbox,
            end: End::Requests(session),
            _visit: None,
        }
    }

    /// A way whose end is that of the session `id`.
    pub(super) fn ending(outbox: Outbox, shared: Arc<Shared>, id: String, visit: Visit) -> Self {
        Self {
            outbox,
            end: End::Session(shared, id),
            _visit: Some(visit),
        }
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.outbox.abandon();
        match &self.end {
            End::Nothing => {}
            End::Requests(session) => session.cancel_all(),
            End::Session(shared, id) => {
                shared.sessions.end(id);
            }
        }
    }
}

impl Forms {
    /// What the `Accept` of a request allows; everything where there is none. `None` when there is nothing we have.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut forms = Self {
            json: false,
            events: false,
        };
        let mut is_there = false;
        for value in headers.get_all(ACCEPT) {
            is_there = true;
            for part in value.to_str().unwrap_or_default().split(',') {
                let kind = part
                    .split(';')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_ascii_lowercase();
                forms.json |= matches!(
                    kind.as_str(),
                    "application/json" | "application/*" | "*/*" | "*"
                );
                forms.events |=
                    matches!(kind.as_str(), "text/event-stream" | "text/*" | "*/*" | "*");
            }
        }
        if !is_there {
            return Some(Self {
                json: true,
                events: true,
            });
        }
        (forms.json || forms.events).then_some(forms)
    }
}

/// Waits for what comes on `stream` and answers with it.
pub(super) async fn answer(shared: &Shared, stream: Stream, question: Question<'_>) -> Response {
    let Forms { json, events } = question.forms;
    if !events {
        return only_json(shared, stream, &question).await;
    }
    if !json {
        return body::events(VecDeque::new(), stream);
    }
    match tokio::time::timeout(PATIENCE, stream.outbox.next()).await {
        Ok(Some(frame)) if stream.outbox.is_through() => whole(frame, question.is_modern),
        Ok(Some(frame)) => body::events(body::event(frame), stream),
        Ok(None) => nothing(shared, stream, &question),
        Err(_) => body::events(VecDeque::new(), stream),
    }
}

/// For a client that takes no events: what comes before the answer is left out.
async fn only_json(shared: &Shared, stream: Stream, question: &Question<'_>) -> Response {
    while let Some(frame) = stream.outbox.next().await {
        if stream.outbox.is_through() {
            return whole(frame, question.is_modern);
        }
    }
    nothing(shared, stream, question)
}

/// The answer will not come: the request was cancelled, by its client or by our end.
fn nothing(shared: &Shared, stream: Stream, question: &Question<'_>) -> Response {
    if shared.tasks.stop().is_cancelled() {
        let message = "mcpzip ended before the answer came";
        return refusal::error(
            StatusCode::SERVICE_UNAVAILABLE,
            question.id,
            ErrorCode::INTERNAL,
            message,
        );
    }
    // A cancelled request is not answered; of what HTTP has to offer, a stream without events says so best.
    body::events(VecDeque::new(), stream)
}

fn whole(frame: Frame, is_modern: bool) -> Response {
    // What a server behind us refuses is no fault of the request that came here.
    let is_own = frame.body.is_empty();
    let code = frame
        .error_code()
        .filter(|code| is_own || *code == ErrorCode::MISSING_CAPABILITY);
    let status = code.map_or(StatusCode::OK, |code| status(code, is_modern));
    refusal::json(status, body::whole(frame))
}

/// The status that goes with an error. What a method says of its own parameters is an answer like any other, hence 200.
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
    use axum::http::HeaderValue;
    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn only_an_error_of_our_own_has_a_status_of_its_own() {
        let id = RequestId::parse(&RawValue::from_string("1".to_owned()).unwrap()).unwrap();
        let own = |code| {
            whole(Frame::error(Some(&id), code, "no", None), true)
                .status()
                .as_u16()
        };
        let relayed = |code: i64| {
            let error = format!(r#"{{"code":{code},"message":"no"}}"#);
            whole(Frame::relayed_error(&id, error.into()), true)
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

    #[test]
    fn what_a_client_accepts_is_read_leniently() {
        #[track_caller]
        fn check(accept: &str, expected: Option<(bool, bool)>) {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(accept).unwrap())]);
            assert_eq!(
                Forms::of(&headers).map(|forms| (forms.json, forms.events)),
                expected,
                "{accept}"
            );
        }
        check("application/json, text/event-stream", Some((true, true)));
        check(
            "TEXT/EVENT-STREAM;q=0.9,application/json; charset=utf-8",
            Some((true, true)),
        );
        check("application/json", Some((true, false)));
        check("text/event-stream", Some((false, true)));
        check("*/*", Some((true, true)));
        check("text/html", None);
        assert!(Forms::of(&HeaderMap::new()).is_some());
    }
}
