//! Endpoints for supervisors: liveness, readiness and counts.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{Extensions, StatusCode};
use axum::response::Response;

use serde_json::json;

use super::admission::{Peer, may_see_all};
use super::refusal;
use super::shared::Shared;

/// Liveness: responds while the process runs. A client that shows a credential for the whole configuration gets counts.
pub(super) async fn live(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let is_authorized = match &shared.access.authenticator {
        // A credential in a header is asked for, so that a probe costs nothing.
        Some(authenticator) if request.headers().contains_key(AUTHORIZATION) => {
            let peer = request.extensions().get::<Peer>();
            let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address);
            let pass = authenticator.check(request.headers(), peer, None).await;
            pass.is_ok_and(|pass| pass.entitlement().is_everything())
        }
        Some(_) => false,
        None => shared.access.token.is_some() && shared.access.is_authorized(request.headers()),
    };
    match is_authorized {
        true => figures(&shared),
        false => refusal::json(StatusCode::OK, r#"{"status":"ok"}"#),
    }
}

/// The number of servers by connection state, of tools, and of sessions, for authorized clients.
pub(super) async fn counts(State(shared): State<Arc<Shared>>, extensions: Extensions) -> Response {
    if !may_see_all(&extensions) {
        return refusal::nothing_here();
    }
    figures(&shared)
}

fn figures(shared: &Shared) -> Response {
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
    if shared.draining.is_announced() {
        let body = r#"{"status":"ending"}"#;
        return refusal::json(StatusCode::SERVICE_UNAVAILABLE, body);
    }
    if shared.was_ready.load(Ordering::Relaxed) || shared.main().inventory.is_loaded() {
        shared.was_ready.store(true, Ordering::Relaxed);
        // A store that does not answer must not take every replica out of service.
        let store = shared.store.as_ref().and_then(|store| store.fault());
        let log = shared
            .main()
            .shipping()
            .and_then(|shipping| shipping.fault());
        let body = match (store, log) {
            (None, None) => r#"{"status":"ready"}"#,
            (Some(_), _) => r#"{"status":"ready","failed":["store"]}"#,
            (None, Some(_)) => r#"{"status":"ready","failed":["audit"]}"#,
        };
        return refusal::json(StatusCode::OK, body);
    }
    let body = r#"{"status":"starting","cache":"being read"}"#;
    refusal::json(StatusCode::SERVICE_UNAVAILABLE, body)
}
