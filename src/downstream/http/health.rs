//! What supervisors ask.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;

use serde_json::json;

use super::refusal;
use super::shared::Shared;

/// The process answers.
pub(super) async fn live() -> Response {
    refusal::json(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// Counts of servers by the state of their connection, of tools and of sessions, for those who may speak to the server.
pub(super) async fn counts(State(shared): State<Arc<Shared>>) -> Response {
    let states = shared.proxy.metrics.connections();
    let servers: serde_json::Map<_, _> = states
        .iter()
        .map(|(state, count)| ((*state).to_owned(), json!(count)))
        .collect();
    let body = json!({
        "status": "ok",
        "servers": servers,
        "tools": shared.proxy.metrics.tool_count(),
        "sessions": shared.sessions.count(),
    });
    refusal::json(StatusCode::OK, body.to_string())
}

/// The configuration and the cache are read: what is known can be found and called. Servers start when they are called, so
/// none of them counts here. It stays so: an edited configuration must not take the others out of service.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    if shared.was_ready.load(Ordering::Relaxed) || shared.proxy.inventory.is_loaded() {
        shared.was_ready.store(true, Ordering::Relaxed);
        return refusal::json(StatusCode::OK, r#"{"status":"ready"}"#);
    }
    let body = r#"{"status":"starting","cache":"being read"}"#;
    refusal::json(StatusCode::SERVICE_UNAVAILABLE, body)
}
