//! Endpoints for supervisors: liveness, readiness and counts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::{Extensions, StatusCode};
use axum::response::Response;

use serde_json::json;

use super::admission::may_see_all;
use super::refusal;
use super::shared::Shared;

/// Liveness: responds while the process runs.
pub(super) async fn live() -> Response {
    refusal::json(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// The number of servers by connection state, of tools, and of sessions, for authorized clients.
pub(super) async fn counts(State(shared): State<Arc<Shared>>, extensions: Extensions) -> Response {
    if !may_see_all(&extensions) {
        return refusal::nothing_here();
    }
    let states = shared.main().metrics.connections();
    let servers: serde_json::Map<_, _> = states
        .iter()
        .map(|(state, count)| ((*state).to_owned(), json!(count)))
        .collect();
    let body = json!({
        "status": "ok",
        "servers": servers,
        "tools": shared.main().metrics.tool_count(),
        "sessions": shared.sessions.count(),
    });
    refusal::json(StatusCode::OK, body.to_string())
}

/// Readiness: the configuration and the cache have been read, so that known tools can be found and called. Servers
/// start on demand, so their state does not count. It stays ready after an edit of the configuration, which must not
/// take the other servers out of service.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    if shared.draining.has_begun() {
        let body = r#"{"status":"ending"}"#;
        return refusal::json(StatusCode::SERVICE_UNAVAILABLE, body);
    }
    if shared.was_ready.load(Ordering::Relaxed) || shared.main().inventory.is_loaded() {
        shared.was_ready.store(true, Ordering::Relaxed);
        return refusal::json(StatusCode::OK, r#"{"status":"ready"}"#);
    }
    let body = r#"{"status":"starting","cache":"being read"}"#;
    refusal::json(StatusCode::SERVICE_UNAVAILABLE, body)
}
