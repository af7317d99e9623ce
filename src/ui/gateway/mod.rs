//! The window of a gateway: the same pages, at `/ui/` of `serve --http`, for people who log in.
//!
//! `downstream/http/window` says who a request is from. `rights` lists the methods and actions that they may use, and is consulted here once
//! for each request, before anything else is done. Everything is answered from the person's own proxy, which has their part of the configuration and nothing else;
//! people whose role manages the gateway see all proxies, and the commands about the whole of it.

mod acts;
mod lines;
mod methods;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{get, post};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::access::{refused, with_headers};
use super::doors::{self, Call};
use super::rights::{Offered, Person, Right};
use super::{Opening, access, actions};
use crate::downstream::http::{Pages, Visit, WINDOW};

/// The window of a gateway.
pub(crate) struct Gateway {
    /// The process of the gateway, for commands about the whole of it.
    opening: Opening,
    state: crate::store::State,
    began: Instant,
    readings: lines::Readings,
    /// The open streams of each identity.
    streams: Mutex<HashMap<String, usize>>,
}

impl Gateway {
    /// The window of the gateway with this state. `opening` is this process.
    #[must_use]
    pub(crate) fn new(opening: Opening, state: crate::store::State) -> Arc<Self> {
        Arc::new(Self {
            opening,
            state,
            began: Instant::now(),
            readings: lines::Readings::default(),
            streams: Mutex::default(),
        })
    }
}

impl Pages for Gateway {
    fn routes(self: Arc<Self>) -> Router {
        let doors = Router::new()
            .route("/control", post(control))
            .route("/command", post(command))
            .route("/events", get(events))
            .layer(from_fn(check));
        Router::new()
            .nest(&format!("{WINDOW}api"), doors)
            .route(WINDOW, get(doors::index))
            .route(&format!("{WINDOW}{{*file}}"), get(file))
            .layer(from_fn(complete))
            .with_state(self)
    }
}

/// A file of the page.
async fn file(Path(path): Path<String>) -> Response {
    let found = doors::asset(&path);
    found.unwrap_or_else(|| {
        refused(
            StatusCode::NOT_FOUND,
            "there is nothing here: open the window at /ui/",
        )
    })
}

/// Adds the headers of every response.
async fn complete(request: Request, next: Next) -> Response {
    with_headers(next.run(request).await)
}

/// Refuses what no page of the window sends.
async fn check(request: Request, next: Next) -> Response {
    match access::unlike_page(&request) {
        Some(refusal) => refusal,
        None => next.run(request).await,
    }
}

/// The methods and actions that the person may use.
fn offered(visit: &Visit) -> Offered {
    let entitlement = visit.entitlement();
    Offered::at_gateway(Person {
        name: entitlement.person.name.clone(),
        roles: entitlement.person.roles.iter().cloned().collect(),
        manages: visit.manages(),
    })
}

/// A method of the control interface.
async fn control(
    State(gateway): State<Arc<Gateway>>,
    Extension(visit): Extension<Arc<Visit>>,
    body: Bytes,
) -> Response {
    let call: Call<'_> = match serde_json::from_slice(&body) {
        Ok(call) => call,
        Err(error) => return refused(StatusCode::BAD_REQUEST, &format!("the request: {error}")),
    };
    let right = Right::to_method(&call.method);
    if !right.is_of(visit.manages()) {
        return refused(StatusCode::FORBIDDEN, right.refusal());
    }
    let answer = gateway.method(&visit, &call.method, call.params).await;
    let answer = match answer {
        Ok(result) => json!({ "result": result }),
        Err(message) => json!({ "error": { "code": -32602, "message": message } }),
    };
    doors::as_json(&answer.to_string())
}

/// An action.
async fn command(
    State(gateway): State<Arc<Gateway>>,
    Extension(visit): Extension<Arc<Visit>>,
    body: Bytes,
) -> Response {
    let request: doors::Request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return refused(StatusCode::BAD_REQUEST, &format!("the request: {error}")),
    };
    let right = Right::to_action(&request.action);
    if !right.is_of(visit.manages()) {
        return refused(StatusCode::FORBIDDEN, right.refusal());
    }
    let options = &gateway.opening.options;
    let prepared = match actions::prepare(&request.action, &request.arguments, options) {
        Ok(prepared) => prepared,
        Err(why) => return refused(StatusCode::BAD_REQUEST, &why),
    };
    if request.preview {
        return doors::as_json(&json!({ "command": "" }).to_string());
    }
    let acted = gateway.act(&visit, &request.action, &request.arguments, prepared);
    match acted.await {
        Ok(answer) => doors::as_json(&answer),
        Err(exceeded) => {
            let mut response = refused(StatusCode::TOO_MANY_REQUESTS, &exceeded.to_string());
            let seconds = exceeded.retry_after().into();
            response.headers_mut().insert("retry-after", seconds);
            response
        }
    }
}

/// The events that the person may see, as they happen.
async fn events(
    State(gateway): State<Arc<Gateway>>,
    Extension(visit): Extension<Arc<Visit>>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    match stream::open(gateway, visit, doors::since(&headers, &uri)) {
        Some(response) => response,
        None => refused(
            StatusCode::TOO_MANY_REQUESTS,
            "this person has too many windows open: close one",
        ),
    }
}

/// The answer of an action that worked.
fn done(output: &Value) -> String {
    json!({ "command": "", "exit": 0, "output": output, "error": "" }).to_string()
}

/// The answer of an action that did not.
fn failed(why: &str) -> String {
    json!({ "command": "", "exit": 1, "output": null, "error": why }).to_string()
}
