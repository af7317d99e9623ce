//! Responses without a result: 202, and refusals. Their bodies are JSON-RPC errors, because clients show those.

use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use crate::limits::Exceeded;
use crate::mcp::{ErrorCode, Frame, Malformed, RequestId};

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    code: ErrorCode,
    message: String,
    is_overload: bool,
}

impl Refusal {
    /// Creates a refusal about the HTTP request, not about a message in it.
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            code: ErrorCode::INVALID_REQUEST,
            message: message.into(),
            is_overload: false,
        }
    }

    /// Creates a refusal about a message.
    pub(super) fn of_message(status: StatusCode, code: ErrorCode, message: String) -> Self {
        Self {
            status,
            code,
            message,
            is_overload: false,
        }
    }

    /// 503: the incoming messages exceed the budget.
    pub(super) fn overload() -> Self {
        let message = "too many messages are in progress; send this one again later".to_owned();
        let (status, code) = (
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::TOO_MANY_REQUESTS,
        );
        Self {
            status,
            code,
            message,
            is_overload: true,
        }
    }

    /// The response to the request with this id.
    pub(super) fn answer(&self, id: Option<&RequestId>) -> Response {
        let mut response = error(self.status, id, self.code, &self.message);
        if self.is_overload {
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}

/// A JSON-RPC error with an HTTP status.
pub(super) fn error(
    status: StatusCode,
    id: Option<&RequestId>,
    code: ErrorCode,
    message: &str,
) -> Response {
    json(status, Frame::error(id, code, message, None).head)
}

/// The response to a message that cannot be parsed.
pub(super) fn malformed(bad: &Malformed) -> Response {
    error(
        StatusCode::BAD_REQUEST,
        bad.id.as_ref(),
        bad.code,
        &bad.reason,
    )
}

/// 202, for messages without a response.
pub(super) fn accepted() -> Response {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// 503: no more sessions.
pub(super) fn full(id: Option<&RequestId>) -> Response {
    let message = "the maximum number of sessions is in use; try again later";
    let refusal = Refusal {
        message: message.to_owned(),
        ..Refusal::overload()
    };
    refusal.answer(id)
}

/// 503: all connections are in use.
pub(super) fn all_in_use() -> Response {
    unavailable("all connections are in use; send the request again later")
}

/// 429: a limit is used up; 503 where the limits are not known.
pub(super) fn limited(exceeded: &Exceeded) -> Response {
    let message = exceeded.to_string();
    let code = ErrorCode::TOO_MANY_REQUESTS;
    let status = match exceeded.limit() {
        Some(_) => StatusCode::TOO_MANY_REQUESTS,
        None => StatusCode::SERVICE_UNAVAILABLE,
    };
    let mut response = error(status, None, code, &message);
    let seconds = HeaderValue::from(exceeded.retry_after());
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

/// 404, for other paths.
pub(super) fn nothing_here() -> Response {
    not_found("nothing is served here; MCP is on /mcp")
}

/// A response that refuses the HTTP request, not a message in it.
pub(super) fn refuse(status: StatusCode, message: &str) -> Response {
    error(status, None, ErrorCode::INVALID_REQUEST, message)
}

pub(super) fn bad_request(message: &str) -> Response {
    refuse(StatusCode::BAD_REQUEST, message)
}

pub(super) fn forbidden(message: &str) -> Response {
    refuse(StatusCode::FORBIDDEN, message)
}

pub(super) fn not_found(message: &str) -> Response {
    refuse(StatusCode::NOT_FOUND, message)
}

/// 405, with the permitted methods.
pub(super) fn method_not_allowed(allowed: &'static str) -> Response {
    let mut response = refuse(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("allowed methods: {allowed}"),
    );
    response
        .headers_mut()
        .insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

pub(super) fn unauthorized() -> Response {
    let mut response = refuse(
        StatusCode::UNAUTHORIZED,
        "this server requires a token: `Authorization: Bearer TOKEN`",
    );
    response
        .headers_mut()
        .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// 401 for a request without an identity, or with a credential that is not valid (RFC 6750, 3).
pub(super) fn unidentified(challenge: &str, is_invalid: bool) -> Response {
    let message = match is_invalid {
        true => {
            "this credential is not valid, or not any more: the administrator of the server gives another one"
        }
        false => "this server asks who you are: `Authorization: Bearer TOKEN`",
    };
    challenged(StatusCode::UNAUTHORIZED, message, challenge)
}

/// 403 for a credential without a scope that the server requires.
pub(super) fn unscoped(challenge: &str) -> Response {
    let message = "this credential lacks a scope that the server requires";
    challenged(StatusCode::FORBIDDEN, message, challenge)
}

fn challenged(status: StatusCode, message: &str, challenge: &str) -> Response {
    let mut response = refuse(status, message);
    add_challenge(&mut response, challenge);
    response
}

/// Adds a challenge to a response.
pub(super) fn add_challenge(response: &mut Response, challenge: &str) {
    // The configuration may have a character that a header cannot.
    let challenge = HeaderValue::try_from(challenge);
    let challenge = challenge.unwrap_or(HeaderValue::from_static("Bearer"));
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
}

/// 503 without an answer to the message.
pub(super) fn unavailable(message: &str) -> Response {
    let mut response = refuse(StatusCode::SERVICE_UNAVAILABLE, message);
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from_static("5"));
    response
}

/// A response with a JSON body.
pub(super) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
