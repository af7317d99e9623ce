//! The ways into the window: a token in a form, or a login at the gateway's own authorization server.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use crate::downstream::http::WINDOW;
use crate::downstream::http::access::LetIn;
use crate::downstream::http::authorization::Asked;
use crate::downstream::http::logins::Door;
use crate::downstream::http::logins::page;
use crate::downstream::http::logins::routes::{
    Refused, begin_login, end_login, entered, form, unknown,
};
use crate::downstream::http::shared::Shared;

/// The page for a browser that shows no identity, with what is wrong with the last attempt.
pub(super) fn page(shared: &Shared, problem: &str) -> Response {
    page::of_window(Asked::of(shared).is_some(), problem)
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
    begin_login(&shared, request, WINDOW).await
}

/// Takes the code that the authorization server gave.
pub(super) async fn callback(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let again = |problem: &str| page(&shared, problem);
    match end_login(&shared, request, (WINDOW, Door::Window), again).await {
        Ok(cookies) => with_session(cookies),
        Err(response) => response,
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
