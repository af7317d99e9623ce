//! The check of requests to the window.
//!
//! `Host` shows whether another name was pointed at this address (DNS rebinding). `Origin`, `Sec-Fetch-Site` and the
//! header `X-Mcpzip` of changes show whether another page sent the request.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::json;

use super::Window;

/// The name of the cookie.
pub(super) const NAME: &str = "mcpzip_ui";

/// A header that no form and no page of another origin can send without asking first.
const OWN_HEADER: &str = "x-mcpzip";

/// The headers of every response.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Refuses requests that do not name this address.
pub(super) async fn check_host(
    State(window): State<Arc<Window>>,
    request: Request,
    next: Next,
) -> Response {
    let own = window.authority();
    let is_own = only(request.headers(), &HOST) == Some(own.as_str());
    with_headers(match is_own {
        true => next.run(request).await,
        false => refused(
            StatusCode::FORBIDDEN,
            "the `Host` is not this window: run `mcpzip ui`",
        ),
    })
}

/// A response with the headers that every response has.
pub(super) fn with_headers(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        let value = HeaderValue::from_static(value);
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}

/// The refusal of a request that changes something and is not sent as the pages send it.
pub(super) fn unlike_page(request: &Request) -> Option<Response> {
    let headers = request.headers();
    let is_json = only(headers, &CONTENT_TYPE).is_some_and(|kind| {
        let kind = kind.split(';').next().unwrap_or_default();
        kind.trim().eq_ignore_ascii_case("application/json")
    });
    let is_own = is_json && only(headers, &HeaderName::from_static(OWN_HEADER)) == Some("1");
    (request.method() == Method::POST && !is_own).then(|| {
        refused(
            StatusCode::FORBIDDEN,
            "a request needs `Content-Type: application/json` and `X-Mcpzip: 1`",
        )
    })
}

/// Refuses requests without a session, and those that another page sends. Handlers find the session in the request.
pub(super) async fn check_session(
    State(window): State<Arc<Window>>,
    mut request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let origin = format!("http://{}", window.authority());
    let is_other = |name: &HeaderName, own: &str| {
        headers.contains_key(name) && only(headers, name) != Some(own)
    };
    let site = HeaderName::from_static("sec-fetch-site");
    if is_other(&ORIGIN, &origin) || is_other(&site, "same-origin") {
        return refused(
            StatusCode::FORBIDDEN,
            "only the window's own page may ask this",
        );
    }
    if let Some(refusal) = unlike_page(&request) {
        return refusal;
    }
    let session = cookies(headers).find_map(|cookie| window.session(cookie));
    let Some(session) = session else {
        return refused(
            StatusCode::UNAUTHORIZED,
            "this window's session has ended: run `mcpzip ui`",
        );
    };
    request.extensions_mut().insert(session);
    next.run(request).await
}

/// A refusal as JSON.
pub(super) fn refused(status: StatusCode, why: &str) -> Response {
    let mut response = Response::new(json!({ "error": why }).to_string().into());
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// The value of a header that is there once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}

/// The values of our cookie: a browser with cookies of several paths sends each.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines.filter_map(|line| line.to_str().ok());
    let pairs = pairs.flat_map(|line| line.split(';'));
    pairs.filter_map(|pair| pair.trim().strip_prefix(NAME)?.strip_prefix('='))
}
