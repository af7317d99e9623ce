//! The ways into the window: a token in a form, or a login at the gateway's own authorization server.
//!
//! That login is the flow of every client, with the window as the client: PKCE, the page of consent, and a grant, which
//! `mcpzip token revoke` ends. Its state belongs to the browser that began it, or the receiver of a link would visit as its sender.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use crate::config::Claims;
use crate::downstream::http::WINDOW;
use crate::downstream::http::access::LetIn;
use crate::downstream::http::authorization::{Asked, note};
use crate::downstream::http::logins::Door;
use crate::downstream::http::logins::page::{self, Ways};
use crate::downstream::http::logins::routes::{Refused, entered, form, query, unknown};
use crate::downstream::http::shared::Shared;

/// The page for a browser that shows no identity, with what is wrong with the last attempt.
pub(super) fn page(shared: &Shared, problem: &str) -> Response {
    let ways = Ways {
        has_login: Asked::of(shared).is_some(),
    };
    page::of_window(&ways, problem)
}

/// Leads to the path with a slash, which the pages are relative to.
pub(super) async fn to_window() -> Response {
    to("ui/")
}

/// Opens the session of a browser for the token in the form.
pub(super) async fn enter(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let Some(form) = form(request).await else {
        return page::note(StatusCode::BAD_REQUEST, "The form cannot be read.");
    };
    match entered(&shared, form.get("token").unwrap_or_default(), Door::Window).await {
        Ok(cookies) => with_session(cookies),
        Err(Refused::NotValid(why)) => page(&shared, why),
        Err(Refused::Denied(denial)) => unknown(denial),
    }
}

/// Begins a login at the authorization server.
pub(super) async fn login(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let Some(asked) = Asked::of(&shared) else {
        return page::note(
            StatusCode::NOT_FOUND,
            "This gateway has no login of its own: use a token.",
        );
    };
    let browser = asked.browser(request.headers());
    let is_entitled = |claims: &Claims| asked.authenticator.is_entitled(claims);
    let scopes = asked.scopes();
    let visit = asked.server.begin_window(
        WINDOW,
        |browser: &str| shared.logins.windows.begin(browser),
        browser.as_deref(),
        &scopes,
        &is_entitled,
    );
    let visit = visit.await;
    asked.shown(&shared, visit)
}

/// Takes the code that the authorization server gave.
pub(super) async fn callback(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let stray = || {
        page::note(
            StatusCode::FORBIDDEN,
            "This does not belong to a login that was begun in this browser. Open the window again.",
        )
    };
    let fields = query(&request);
    let Some(asked) = Asked::of(&shared) else {
        return stray();
    };
    let browser = asked.browser(request.headers());
    let (Some(state), Some(browser)) = (fields.get("state"), browser) else {
        return stray();
    };
    let Some(verifier) = shared.logins.windows.verifier(state, &browser) else {
        return stray();
    };
    let Some(code) = fields.get("code").map(str::to_owned) else {
        return page(&shared, "You were not logged in.");
    };
    let server = asked.server.clone();
    // The file of tokens is written before the answer.
    let work = move || server.end_window(WINDOW, &code, &verifier);
    let Ok(ended) = shared.tasks.spawn_blocking(work).await else {
        return page::note(StatusCode::SERVICE_UNAVAILABLE, "The gateway is ending.");
    };
    let Ok((token, event)) = ended else {
        return page(&shared, "The login did not count. Try again.");
    };
    shared.logins.windows.end(state);
    note(&shared, event.as_ref());
    match entered(&shared, &token, Door::Window).await {
        Ok(cookies) => with_session(cookies),
        Err(Refused::NotValid(why)) => page(&shared, why),
        Err(Refused::Denied(denial)) => unknown(denial),
    }
}

fn with_session(cookies: Vec<HeaderValue>) -> Response {
    let mut response = to("./");
    for cookie in cookies {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response.extensions_mut().insert(LetIn);
    response
}

/// Leads the browser on. Relative, because a proxy in front may have put the window below another path.
fn to(path: &'static str) -> Response {
    let mut response = page::note(StatusCode::SEE_OTHER, "Go on.");
    let path = HeaderValue::from_static(path);
    response.headers_mut().insert(LOCATION, path);
    response
}
