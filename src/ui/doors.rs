//! The endpoints for the page's requests.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use futures_util::stream;
use http_body_util::BodyExt as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::access::{self, refused};
use super::actions::{self, ACTIONS, Prepared};
use super::{Host, SESSION, Session, Window, assets, commands};
use crate::events::{Heard, Listener, Past};

/// Interval between two comments of an event stream, so that an end is noticed.
const COMMENT: Duration = Duration::from_secs(15);

/// The media type of an event stream.
pub(super) const EVENTS: &str = "text/event-stream";

/// The largest request of the page, in bytes.
const LARGEST: usize = 2 * 1024 * 1024;

/// The bytes of a larger one that are read and left out, because a page that is still sending gets no answer.
const READ_AWAY: usize = 64 * 1024 * 1024;

/// Uses a link: the browser gets the cookie and the page.
pub(super) async fn enter(State(window): State<Arc<Window>>, uri: Uri) -> Response {
    let key = parameter(&uri, "key").unwrap_or_default();
    let Some(cookie) = window.enter(key) else {
        return page(
            StatusCode::FORBIDDEN,
            "This link was used already, or is too old. Run <code>mcpzip ui</code> for a new one.",
        );
    };
    let (path, name) = (&window.path, access::NAME);
    let age = SESSION.as_secs();
    let cookie =
        format!("{name}={cookie}; Path=/{path}/; Max-Age={age}; HttpOnly; SameSite=Strict");
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    for (header, value) in [(SET_COOKIE, cookie), (LOCATION, format!("/{path}/"))] {
        let value = HeaderValue::try_from(value).expect("tokens are safe in headers");
        response.headers_mut().insert(header, value);
    }
    response
}

pub(super) async fn index() -> Response {
    file(Path("index.html".to_owned())).await
}

/// A file of the page. It holds nothing of the user.
pub(super) async fn file(Path(path): Path<String>) -> Response {
    match asset(&path) {
        Some(file) => file,
        None => nothing_here().await,
    }
}

/// A file of the page, if there is one at this path.
pub(super) fn asset(path: &str) -> Option<Response> {
    let (kind, bytes) = assets::file(path)?;
    let mut response = typed(kind, bytes.into());
    // The names of scripts and styles change with their content.
    if path.starts_with("assets/") {
        let kept = HeaderValue::from_static("private, max-age=86400, immutable");
        response.headers_mut().insert(CACHE_CONTROL, kept);
    }
    Some(response)
}

pub(super) async fn nothing_here() -> Response {
    page(
        StatusCode::NOT_FOUND,
        "There is nothing here. Run <code>mcpzip ui</code> to open the window.",
    )
}

/// The actions with their parameters.
pub(super) async fn actions() -> Response {
    let all = ACTIONS.iter().map(actions::Action::shown);
    as_json(&Value::from_iter(all).to_string())
}

/// A method of the control interface, as the page asks for it.
#[derive(Deserialize)]
pub(super) struct Call<'a> {
    pub(super) method: String,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
}

/// A method of the control interface.
pub(super) async fn control(
    State(window): State<Arc<Window>>,
    Extension(session): Extension<Arc<Session>>,
    body: Body,
) -> Response {
    let body = match whole(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let call: Call<'_> = match serde_json::from_slice(&body) {
        Ok(call) => call,
        Err(error) => return refused(StatusCode::BAD_REQUEST, &format!("the request: {error}")),
    };
    let Some(host) = window.host.upgrade() else {
        return ending();
    };
    let process = session.opening.process;
    let outcome = match call.method.as_str() {
        // The page may not say with which variables commands run, and has a stream for events.
        method @ ("ui.open" | "events.subscribe") => {
            Err((-32601, format!("`{method}` is not for the window")))
        }
        method => host.answer(process, method, call.params),
    };
    as_json(&match outcome {
        Ok(result) => format!("{{\"result\":{result}}}"),
        Err((code, message)) => {
            json!({ "error": { "code": code, "message": message } }).to_string()
        }
    })
}

/// The events, as they happen.
pub(super) async fn events(
    State(window): State<Arc<Window>>,
    Extension(session): Extension<Arc<Session>>,
    headers: HeaderMap,
    uri: Uri,
) -> Response {
    let since = since(&headers, &uri);
    let Some(host) = window.host.upgrade() else {
        return ending();
    };
    let (past, listener) = host.events().listen(since);
    let stream = EventStream {
        ready: begin(&past),
        listener,
        session,
        _stay: host.stay(),
    };
    let body = stream::unfold(stream, async |mut stream| {
        let text = stream.next().await?;
        Some((Ok::<_, Infallible>(text), stream))
    });
    typed(EVENTS, Body::from_stream(body))
}

/// The number of the first event that a request for events asks for.
pub(super) fn since(headers: &HeaderMap, uri: &Uri) -> Option<u64> {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = last.and_then(|id| id.parse::<u64>().ok());
    let after = after.map(|id| id.saturating_add(1));
    after.or_else(|| parameter(uri, "since")?.parse().ok())
}

/// The events for one page. The host lives as long as there is one.
struct EventStream {
    ready: VecDeque<String>,
    listener: Listener,
    session: Arc<Session>,
    _stay: Box<dyn Send>,
}

impl EventStream {
    async fn next(&mut self) -> Option<String> {
        if let Some(text) = self.ready.pop_front() {
            return Some(text);
        }
        tokio::select! {
            heard = self.listener.next() => Some(match heard {
                Heard::Event(event) => event_text(event.number, &*event),
                Heard::Lagged(lost) => lagged_text(lost),
            }),
            () = tokio::time::sleep(COMMENT) => Some(":\n\n".to_owned()),
            () = self.session.over() => None,
        }
    }
}

/// The first texts of a stream. There is always one, so that the browser sees the stream begin.
pub(super) fn begin(past: &Past) -> VecDeque<String> {
    let first = match past.is_incomplete {
        true => "event: incomplete\ndata: {}\n\n",
        false => ":\n\n",
    };
    let events = past.events.iter();
    let events = events.map(|event| event_text(event.number, &**event));
    std::iter::once(first.to_owned()).chain(events).collect()
}

pub(super) fn lagged_text(lost: u64) -> String {
    format!("event: lagged\ndata: {{\"lost\":{lost}}}\n\n")
}

pub(super) fn event_text(number: u64, event: &impl serde::Serialize) -> String {
    let json = serde_json::to_string(event).expect("events are JSON");
    format!("event: message\nid: {number}\ndata: {json}\n\n")
}

/// An action, as the page asks for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) action: String,
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
    #[serde(default)]
    pub(super) preview: bool,
    #[serde(default)]
    follow: bool,
}

/// The whole of a request of the page, or the answer that it is too large.
async fn whole(mut body: Body) -> Result<Vec<u8>, Response> {
    let (mut all, mut length) = (Vec::new(), 0);
    while let Some(piece) = body.frame().await {
        let Ok(piece) = piece else {
            return Err(refused(StatusCode::BAD_REQUEST, "the request broke off"));
        };
        let Ok(data) = piece.into_data() else {
            continue;
        };
        length += data.len();
        match length <= LARGEST {
            true => all.extend_from_slice(&data),
            false => all = Vec::new(),
        }
        if length > READ_AWAY {
            break;
        }
    }
    if length <= LARGEST {
        return Ok(all);
    }
    let text = format!(
        "the request has more bytes than the limit of {LARGEST}; run the command in a terminal instead"
    );
    Err(refused(StatusCode::PAYLOAD_TOO_LARGE, &text))
}

/// Runs an action, or shows its command.
pub(super) async fn command(
    State(window): State<Arc<Window>>,
    Extension(session): Extension<Arc<Session>>,
    body: Body,
) -> Response {
    let body = match whole(body).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let bad = |why: String| refused(StatusCode::BAD_REQUEST, &why);
    let request: Request = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => return bad(format!("the request: {error}")),
    };
    let prepared = match actions::prepare(
        &request.action,
        &request.arguments,
        &session.opening.options,
    ) {
        Ok(prepared) => prepared,
        Err(why) => return bad(why),
    };
    if request.preview {
        return as_json(&json!({ "command": prepared.shown }).to_string());
    }
    let Some(host) = window.host.upgrade() else {
        return ending();
    };
    if prepared.changes {
        let server = prepared.server.as_deref();
        host.record(session.opening.process, &request.action, server);
    }
    match request.follow {
        false => as_json(&run(&*host, &session, prepared, |_| ()).await),
        true => followed(&window, host, session, prepared),
    }
}

/// Runs an action. Ends with the session. The answer is JSON.
async fn run(
    host: &dyn Host,
    session: &Session,
    prepared: Prepared,
    note: impl FnMut(&str),
) -> String {
    let opening = &session.opening;
    let ran = commands::run(host, opening, prepared, note);
    session
        .ended
        .run_until_cancelled(ran)
        .await
        .unwrap_or_else(|| {
            json!({ "exit": null, "error": "the window was closed, and the command with it" })
                .to_string()
        })
}

/// Runs an action and sends each line of its messages at once. The command ends if the page goes away.
fn followed(
    window: &Window,
    host: Arc<dyn Host>,
    session: Arc<Session>,
    prepared: Prepared,
) -> Response {
    let (sender, mut lines) = mpsc::unbounded_channel();
    window.tasks.spawn(async move {
        let notes = sender.clone();
        let note = |line: &str| {
            // Without a receiver the command ends.
            let _ = notes.send(json!({ "note": line }).to_string() + "\n");
        };
        tokio::select! {
            answer = run(&*host, &session, prepared, note) => {
                let _ = sender.send(answer + "\n");
            }
            () = sender.closed() => {}
        }
    });
    let body = stream::poll_fn(move |context| {
        let line = lines.poll_recv(context);
        line.map(|line| line.map(Ok::<_, Infallible>))
    });
    typed("application/x-ndjson", Body::from_stream(body))
}

pub(super) fn as_json(text: &str) -> Response {
    typed("application/json", text.to_owned().into())
}

pub(super) fn typed(kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A page in words.
fn page(status: StatusCode, words: &str) -> Response {
    let text = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>mcpzip</title>\n<h1>mcpzip</h1>\n<p>{words}</p>\n"
    );
    let mut response = typed("text/html; charset=utf-8", text.into());
    *response.status_mut() = status;
    response
}

fn ending() -> Response {
    refused(StatusCode::SERVICE_UNAVAILABLE, "the daemon is ending")
}

/// A parameter of the query, which needs no decoding: keys and numbers are plain.
fn parameter<'u>(uri: &'u Uri, name: &str) -> Option<&'u str> {
    let mut pairs = uri.query()?.split('&');
    pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
