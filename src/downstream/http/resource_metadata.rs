//! The metadata of a protected resource (RFC 9728), by which clients find the issuer to log in at. They are public.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::json;

use super::refusal;
use super::shared::Shared;

/// The paths with the path of a resource behind.
pub(super) const PATHS: &str = "/.well-known/oauth-protected-resource/{*resource}";

/// The keys that check what the gateway says about people to other servers. They are public.
pub(super) async fn keys(State(shared): State<Arc<Shared>>) -> Response {
    let Some(front) = shared.proxies.front() else {
        return refusal::nothing_here();
    };
    match front.key.public() {
        Ok(keys) => refusal::json(StatusCode::OK, keys.to_string()),
        Err(error) => {
            tracing::error!(%error, "the key of the gateway cannot be used");
            refusal::unavailable(
                "the key cannot be used now; the administrator of the server finds the reason in its log",
            )
        }
    }
}

pub(super) async fn metadata(State(shared): State<Arc<Shared>>) -> Response {
    let authenticator = shared.access.authenticator.as_ref();
    let Some(resource) = authenticator.and_then(|one| one.resource()) else {
        return refusal::nothing_here();
    };
    let body = json!({
        "resource": resource.url,
        "authorization_servers": resource.issuers,
        "scopes_supported": resource.scopes,
        "bearer_methods_supported": ["header"],
        "resource_name": "mcpzip",
    });
    let mut response = refusal::json(StatusCode::OK, body.to_string());
    let headers = response.headers_mut();
    // Clients in a browser read them, too.
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
