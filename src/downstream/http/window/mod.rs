//! The window of a gateway: pages below `/ui` for people who log in.
//!
//! Another part makes the pages ([`Pages`]); this one decides who gets to them. Every request is identified again, by its credential or
//! by the session of its browser, which the window shares with the page `/logins`. A [`Visit`] is such a request, and the pages reach the
//! gateway only through it.

mod entrance;
mod visit;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::ORIGIN;
use axum::http::{HeaderName, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::json;

use super::access::LetIn;
use super::logins::Door;
use super::logins::routes::{Shown, unknown};
use super::refusal;
use super::shared::Shared;
use crate::downstream::http::WINDOW;
use crate::identity::Denial;

pub(crate) use visit::Visit;

/// The pages of the window.
pub(crate) trait Pages: Send + Sync {
    /// Their routes below [`WINDOW`], for requests that have an `Arc<Visit>` among their extensions.
    fn routes(self: Arc<Self>) -> Router;
}

/// The routes of the window.
pub(super) fn routes(shared: &Arc<Shared>, pages: Arc<dyn Pages>) -> Router<Arc<Shared>> {
    let identified = middleware::from_fn_with_state(shared.clone(), identify);
    let pages: Router<Arc<Shared>> = pages.routes().layer(identified).with_state(());
    Router::new()
        .route("/ui", get(entrance::to_window))
        .route("/ui/enter", post(entrance::enter))
        .route("/ui/login", get(entrance::login))
        .route("/ui/callback", get(entrance::callback))
        .merge(pages)
        .layer(middleware::from_fn_with_state(shared.clone(), guard))
}

/// Keeps foreign hosts and pages out.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    match refused(&shared, &request) {
        Some(why) => why,
        None => next.run(request).await,
    }
}

/// Whether the configuration still has the window.
fn is_on(shared: &Shared) -> bool {
    let http = &shared.proxies.whole().http;
    http.as_ref().is_ok_and(|http| http.ui)
}

fn refused(shared: &Shared, request: &Request) -> Option<Response> {
    if !is_on(shared) {
        return Some(refusal::nothing_here());
    }
    let access = &shared.access;
    let (headers, uri) = (request.headers(), request.uri());
    if let Some(refusal) = access.refusal(headers, uri) {
        return Some(refusal);
    }
    if !access.is_own_host(headers, uri) {
        return Some(refusal::forbidden(
            "the window is not shown under this `Host`: set `http.public_url` to the URL that browsers use, and let a proxy in front pass `Host` on",
        ));
    }
    // Origins of `--allow-origin` may call MCP. The window is for its own pages.
    let is_post = request.method() == Method::POST;
    let has_origin = headers.contains_key(ORIGIN);
    let is_foreign = (is_post || has_origin) && !access.is_own_form(headers, uri);
    let only = |name: &'static str| {
        let mut values = headers.get_all(HeaderName::from_static(name)).iter();
        values.next().map(|value| match values.next() {
            None => value.to_str().unwrap_or("?"),
            Some(_) => "?",
        })
    };
    let is_from_elsewhere =
        only("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    // A person may follow a link to the window, and comes back from a login.
    let is_followed = !is_post && only("sec-fetch-mode") == Some("navigate");
    (is_foreign || is_from_elsewhere && !is_followed)
        .then(|| refusal::forbidden("only the window's own page may ask this"))
}

/// Passes a request on if it shows an identity, for as long as that counts. Handlers find the [`Visit`] in the request.
async fn identify(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let is_page = request.uri().path() == WINDOW;
    let visitor = match Shown::by(&request, Door::Window).visitor(&shared).await {
        Ok(visitor) => visitor,
        Err(Denial::Missing) if is_page => return entrance::page(&shared, ""),
        Err(denial) if is_page => return unknown(denial),
        Err(denial) => return denied(denial),
    };
    let visit = Arc::new(Visit::new(shared, visitor));
    request.extensions_mut().insert(visit.clone());
    let mut response = tokio::select! {
        response = next.run(request) => response,
        () = visit.ended() => return denied(Denial::Invalid),
    };
    response.extensions_mut().insert(LetIn);
    response
}

/// A refusal for the page.
fn denied(denial: Denial) -> Response {
    let (status, why) = match denial {
        Denial::Missing | Denial::Invalid | Denial::BadHeader => (
            StatusCode::UNAUTHORIZED,
            "your visit here has ended: open the window again",
        ),
        Denial::NotEntitled | Denial::InsufficientScope => {
            (StatusCode::FORBIDDEN, "this identity may use nothing here")
        }
        Denial::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "identities cannot be checked now; the administrator of the gateway finds the reason in its log",
        ),
    };
    refusal::json(status, json!({ "error": why }).to_string())
}
