//! What supervisors ask.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::json;

use super::{Shared, refusal};
use crate::tool::ServerName;

/// The process answers.
pub(super) async fn live() -> Response {
    refusal::json(StatusCode::OK, r#"{"status":"ok"}"#)
}

/// Every server was asked for its tools once, whatever it said. It stays so: a server that is added later must not take
/// the others out of service.
pub(super) async fn ready(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    let missing = if shared.was_ready.load(Ordering::Relaxed) {
        Some(Vec::new())
    } else {
        shared.proxy.refresh().unasked()
    };
    let body = match missing {
        Some(servers) if servers.is_empty() => {
            shared.was_ready.store(true, Ordering::Relaxed);
            return refusal::json(StatusCode::OK, r#"{"status":"ready"}"#);
        }
        // Names are for those who may use them.
        Some(servers) if shared.access.is_authorized(&headers) => {
            let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
            json!({ "status": "starting", "servers": names })
        }
        Some(servers) => json!({ "status": "starting", "servers": servers.len() }),
        None => json!({ "status": "starting", "cache": "being read" }),
    };
    refusal::json(StatusCode::SERVICE_UNAVAILABLE, body.to_string())
}
