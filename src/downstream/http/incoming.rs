//! Reads a POST: the body, within the byte budget, and the trace context in the headers.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use super::admission::Admission;
use super::refusal::Refusal;
use crate::downstream::Exchange;
use crate::mcp::budget::{ByteBudget, LEAST, Reservation, SHORT};
use crate::mcp::frame::one_line;
use crate::mcp::{Outbox, headers};
use crate::telemetry::trace::Context;

/// The size limit of a message from a client, in bytes.
const MESSAGE_LIMIT: usize = 64 * 1024 * 1024;

/// The time limit for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(120);
/// The time limit for the wait for the budget.
const BUDGET_TIME: Duration = Duration::from_secs(2);

/// The exchange of a request with an outbox of its own.
pub(super) fn own_exchange(map: &HeaderMap, outbox: &Outbox, admission: &Admission) -> Exchange {
    let text = |name| {
        map.get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let passed = text(headers::TRACE_PARENT)
        .and_then(|parent| Context::parse(parent, text(headers::TRACE_STATE)));
    Exchange::Own {
        outbox: outbox.clone(),
        passed: passed.map(Arc::new),
        params: None,
        scopes: admission.scopes().cloned(),
    }
}

/// Reads the body of a request: one JSON text on one line, with its reservation in `budget`.
pub(super) async fn read(
    budget: &ByteBudget,
    map: &HeaderMap,
    body: Body,
) -> Result<Bytes, Refusal> {
    let kind = map
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    if !kind
        .split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
    {
        let message = "the `Content-Type` must be `application/json`";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let length = map
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok())
        .unwrap_or(0);
    if length > MESSAGE_LIMIT as u64 {
        return Err(too_large());
    }
    match tokio::time::timeout(
        BODY_TIME,
        collect(budget, body, usize::try_from(length).unwrap_or(0)),
    )
    .await
    {
        Ok(collected) => collected.map(|(text, reservation)| reservation.with(one_line(text))),
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            format!("the body did not come within {BODY_TIME:?}"),
        )),
    }
}

/// Reads a letter of another replica, within `budget`.
pub(super) async fn read_letter(budget: &ByteBudget, body: Body) -> Result<Bytes, Refusal> {
    let reading = collect(budget, body, 0);
    match tokio::time::timeout(BODY_TIME, reading).await {
        Ok(collected) => collected.map(|(letter, reservation)| reservation.with(letter)),
        Err(_) => Err(too_large()),
    }
}

/// Reads the body. `length` is 0 if it is unknown. Bytes that have not arrived reserve nothing yet, except in short
/// messages.
async fn collect(
    budget: &ByteBudget,
    mut body: Body,
    length: usize,
) -> Result<(Bytes, Reservation), Refusal> {
    let is_short = (1..=SHORT).contains(&length);
    let total = if is_short { length } else { usize::MAX };
    let mut reservation = reserve(
        budget,
        if is_short { length.max(LEAST) } else { LEAST },
        total,
    )
    .await?;
    let mut all = BytesMut::new();
    while let Some(piece) = body.frame().await {
        let piece = piece.map_err(|error| {
            Refusal::new(
                StatusCode::BAD_REQUEST,
                format!("the body is damaged: {error}"),
            )
        })?;
        let Ok(data) = piece.into_data() else {
            continue;
        };
        if all.len() + data.len() > MESSAGE_LIMIT {
            return Err(too_large());
        }
        if !is_short {
            reservation.add(reserve(budget, data.len(), total).await?);
        }
        if all.is_empty() && body.is_end_stream() {
            return Ok((data, reservation));
        }
        if all.is_empty() {
            all.reserve(length.max(data.len()));
        }
        all.extend_from_slice(&data);
    }
    Ok((all.freeze(), reservation))
}

async fn reserve(budget: &ByteBudget, length: usize, total: usize) -> Result<Reservation, Refusal> {
    tokio::time::timeout(BUDGET_TIME, budget.reserve(length, total))
        .await
        .map_err(|_| Refusal::overload())
}

fn too_large() -> Refusal {
    let message = format!("the message has more bytes than the limit of {MESSAGE_LIMIT}");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}
