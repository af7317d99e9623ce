//! The endpoint of Prometheus metrics, if it is configured.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{Extensions, HeaderValue, Method};
use axum::response::Response;

use super::admission::may_see_all;
use super::refusal;
use super::shared::Shared;
use crate::proxy::METRICS_TYPE;

pub(super) async fn metrics(
    State(shared): State<Arc<Shared>>,
    extensions: Extensions,
    method: Method,
) -> Response {
    if !shared.main().unscoped().config().metrics || !may_see_all(&extensions) {
        return refusal::nothing_here();
    }
    if !matches!(method, Method::GET | Method::HEAD) {
        return refusal::method_not_allowed("GET");
    }
    let (proxy, sessions) = (shared.main().clone(), shared.sessions.count());
    // Reading the process's figures from the system may take a moment.
    let text = shared
        .tasks
        .spawn_blocking(move || proxy.metrics.text(sessions))
        .await;
    let Ok(text) = text else {
        return refusal::refuse(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            "the metrics cannot be computed",
        );
    };
    let mut response = Response::new(text.into());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(METRICS_TYPE));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
