//! Keeps a browser at the replica that knows it.
//!
//! The visits of browsers and the logins that they have begun are in the memory of one replica. A cookie names that replica, and the others
//! pass the browser's requests on to it. If it has gone, the browser begins again at another one. The cookie gives access to nothing.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use http_body_util::Limited;

use super::incoming::read_letter;
use super::logins::page;
use super::logins::routes::is_secure;
use super::passing;
use super::shared::Shared;

/// The name of the cookie.
const NAME: &str = "mcpzip-replica";

/// The largest body that is passed on, in bytes: the limit of the window.
const LARGEST: usize = 2 * 1024 * 1024;

/// Passes a request for a page on to the replica that the browser's cookie names, or answers it here.
pub(super) async fn stay(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let (Some(replicas), Some(arrival)) = (&shared.replicas, passing::arrival(&shared, &parts))
    else {
        // There is one replica, or another one has passed it on.
        return next.run(Request::from_parts(parts, body)).await;
    };
    let owner = named(&parts.headers).map(str::to_owned);
    let is_own = owner.as_deref() == Some(replicas.id());
    let body = match owner.filter(|owner| replicas.has(owner)) {
        None => body,
        Some(owner) => {
            let body = Body::new(Limited::new(body, LARGEST));
            let body = match read_letter(&shared.incoming, body).await {
                Ok(body) => body,
                Err(refusal) => return refusal.answer(None),
            };
            match passing::send(replicas, &owner, &arrival, &parts.headers, &body).await {
                Ok(response) => return response,
                // It has gone, so that the visit begins again here.
                Err(error) if error.is_before() => Body::from(body),
                Err(error) => {
                    tracing::warn!(%error, owner, "the request of a browser was passed on, and not answered");
                    return page::note(
                        StatusCode::BAD_GATEWAY,
                        "The replica of the gateway that you were at does not answer. Look whether the last step had an effect, then open the page again.",
                    );
                }
            }
        }
    };
    let mut response = next.run(Request::from_parts(parts, body)).await;
    if !is_own {
        let secure = if is_secure(&shared) { "; Secure" } else { "" };
        let cookie = format!(
            "{NAME}={}; Path=/; HttpOnly; SameSite=Lax{secure}",
            replicas.id()
        );
        let cookie = HeaderValue::try_from(cookie).expect("the id of a replica is ASCII");
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// The replica that the cookie of a browser names.
fn named(headers: &HeaderMap) -> Option<&str> {
    let texts = headers.get_all(COOKIE).iter();
    let texts = texts.filter_map(|value| value.to_str().ok());
    let mut pairs = texts
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, replica) = pairs.find(|(name, _)| *name == NAME)?;
    Some(replica)
}
