//! The endpoints and pages of the authorization server of mcpzip itself (`identity/authorization`). They need no identity: they give one.

use std::sync::Arc;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    CACHE_CONTROL, CONTENT_TYPE, COOKIE, HeaderName, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::any;
use serde_json::{Value, json};

use super::page::shown;
use super::refusal::{self, Refusal};
use super::shared::Shared;
use crate::config::Claims;
use crate::identity::Authenticator;
use crate::identity::authorization::{
    Answer, AuthorizationServer, BROWSER, EndpointError, Fields, Visit,
};

/// The size limit of a form or registration, in bytes.
const LARGEST: usize = 64 * 1024;

/// Pages of all origins may use the endpoints for clients in these ways: these take no cookie.
const CROSS_ORIGIN: [(HeaderName, &str); 3] = [
    (ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
    (
        ACCESS_CONTROL_ALLOW_HEADERS,
        "Authorization, Content-Type, Mcp-Protocol-Version",
    ),
];

/// A request to the authorization server.
pub(super) struct Asked {
    pub(super) server: Arc<AuthorizationServer>,
    pub(super) authenticator: Arc<Authenticator>,
}

pub(super) fn routes(shared: &Arc<Shared>) -> Router<Arc<Shared>> {
    let for_clients = Router::new()
        .route("/.well-known/oauth-authorization-server", any(metadata))
        .route("/oauth/jwks", any(keys))
        .route("/oauth/register", any(register))
        .route("/oauth/token", any(token))
        .route("/oauth/revoke", any(revoke))
        .layer(middleware::from_fn(cross_origin));
    Router::new()
        .route("/oauth/authorize", any(authorize))
        .route("/oauth/callback", any(callback))
        .route("/oauth/consent", any(consent))
        .route("/invite/{secret}", any(invite))
        .merge(for_clients)
        .layer(middleware::from_fn_with_state(shared.clone(), of_host))
}

/// Passes a request on if it names this server as its host, and there is an authorization server.
async fn of_host(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let Some(asked) = Asked::of(&shared) else {
        return refusal::nothing_here();
    };
    let access = &shared.access;
    if let Some(refusal) = access.host_refusal(request.headers(), request.uri()) {
        return refusal;
    }
    request.extensions_mut().insert(Arc::new(asked));
    next.run(request).await
}

async fn cross_origin(request: Request, next: Next) -> Response {
    let mut response = match *request.method() {
        Method::OPTIONS => {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        _ => next.run(request).await,
    };
    let headers = CROSS_ORIGIN.map(|(name, value)| (name, HeaderValue::from_static(value)));
    response.headers_mut().extend(headers);
    response
}

fn asked(request: &Request) -> Arc<Asked> {
    let asked = request.extensions().get::<Arc<Asked>>();
    asked.expect("the layer of these routes adds it").clone()
}

async fn metadata(request: Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return refusal::method_not_allowed("GET");
    }
    let asked = asked(&request);
    answer(&asked.server.metadata(&asked.scopes()))
}

async fn keys(request: Request) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return refusal::method_not_allowed("GET");
    }
    match asked(&request).server.public_keys() {
        Some(keys) => answer(&keys),
        None => {
            refusal::unavailable("the keys cannot be read; the log of the server has the reason")
        }
    }
}

async fn register(request: Request) -> Response {
    let asked = asked(&request);
    let body = match body(request, "application/json").await {
        Ok(body) => body,
        Err(refusal) => return refusal.answer(None),
    };
    let Ok(members) = serde_json::from_str::<Value>(&body) else {
        return refusal::bad_request("a registration is a JSON object");
    };
    match asked.server.register(&members) {
        Ok(registered) => {
            let mut response = answer(&registered);
            *response.status_mut() = StatusCode::CREATED;
            response
        }
        Err(error) => failed(&error),
    }
}

async fn token(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let asked = asked(&request);
    let fields = match form(request).await {
        Ok(fields) => fields,
        Err(refusal) => return refusal.answer(None),
    };
    // The file of tokens is written before the answer.
    let work = move || asked.server.token(&fields);
    let Ok(outcome) = shared.tasks.spawn_blocking(work).await else {
        return failed(&EndpointError::unavailable());
    };
    match outcome {
        Ok((tokens, event)) => {
            note(&shared, event.as_ref());
            answer(&tokens)
        }
        Err(error) => {
            note(&shared, error.event.as_ref());
            failed(&error)
        }
    }
}

async fn revoke(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let asked = asked(&request);
    let fields = match form(request).await {
        Ok(fields) => fields,
        Err(refusal) => return refusal.answer(None),
    };
    let work = move || asked.server.revoke(&fields);
    let Ok(outcome) = shared.tasks.spawn_blocking(work).await else {
        return failed(&EndpointError::unavailable());
    };
    match outcome {
        Ok(event) => {
            note(&shared, event.as_ref());
            answer(&json!({}))
        }
        Err(error) => failed(&error),
    }
}

async fn authorize(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    if request.method() != Method::GET {
        return refusal::method_not_allowed("GET");
    }
    let asked = asked(&request);
    let Ok(fields) = Fields::parse(request.uri().query().unwrap_or_default()) else {
        return refusal::bad_request("a member of the query is there twice");
    };
    let browser = asked.browser(request.headers());
    let scopes = asked.scopes();
    let is_entitled = |claims: &Claims| asked.authenticator.is_entitled(claims);
    let visit = asked
        .server
        .authorize(&fields, browser.as_deref(), &scopes, &is_entitled)
        .await;
    asked.shown(&shared, visit)
}

async fn callback(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    if request.method() != Method::GET {
        return refusal::method_not_allowed("GET");
    }
    let asked = asked(&request);
    let Ok(fields) = Fields::parse(request.uri().query().unwrap_or_default()) else {
        return refusal::bad_request("a member of the query is there twice");
    };
    let browser = asked.browser(request.headers());
    let is_entitled = |claims: &Claims| asked.authenticator.is_entitled(claims);
    let visit = asked
        .server
        .callback(&fields, browser.as_deref(), &is_entitled)
        .await;
    asked.shown(&shared, visit)
}

async fn consent(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let asked = asked(&request);
    if let Some(refusal) = asked.foreign(request.headers()) {
        return refusal;
    }
    let browser = asked.browser(request.headers());
    let fields = match form(request).await {
        Ok(fields) => fields,
        Err(refusal) => return refusal.answer(None),
    };
    asked.server.meet(browser.as_deref()).await;
    let server = asked.server.clone();
    let work = move || server.consent(&fields, browser.as_deref());
    let Ok(visit) = shared.tasks.spawn_blocking(work).await else {
        return failed(&EndpointError::unavailable());
    };
    asked.shown(&shared, visit)
}

async fn invite(
    State(shared): State<Arc<Shared>>,
    Path(secret): Path<String>,
    request: Request,
) -> Response {
    let asked = asked(&request);
    let browser = asked.browser(request.headers());
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        let visit = asked.server.invitation(&secret, browser.as_deref()).await;
        return asked.shown(&shared, visit);
    }
    if let Some(refusal) = asked.foreign(request.headers()) {
        return refusal;
    }
    let fields = match form(request).await {
        Ok(fields) => fields,
        Err(refusal) => return refusal.answer(None),
    };
    let server = asked.server.clone();
    let work = move || server.accept(&secret, &fields, browser.as_deref());
    let Ok(visit) = shared.tasks.spawn_blocking(work).await else {
        return failed(&EndpointError::unavailable());
    };
    asked.shown(&shared, visit)
}

impl Asked {
    /// `None` if there is no authorization server.
    pub(super) fn of(shared: &Shared) -> Option<Self> {
        let authenticator = shared.access.authenticator.clone()?;
        Some(Self {
            server: authenticator.server()?,
            authenticator,
        })
    }

    /// The scopes that clients may ask for.
    pub(super) fn scopes(&self) -> std::collections::BTreeSet<String> {
        let resource = self.authenticator.resource();
        let base = resource.into_iter().flat_map(|resource| resource.scopes);
        let mut scopes = self.authenticator.tool_scopes();
        scopes.extend(base);
        scopes
    }

    /// The name of the cookie: browsers take one with this prefix from the host itself, over HTTPS.
    fn cookie_name(&self) -> &'static str {
        match self.is_https() {
            true => "__Host-mcpzip",
            false => "mcpzip",
        }
    }

    fn is_https(&self) -> bool {
        self.server.options().url.starts_with("https://")
    }

    /// The secret of the browser.
    pub(super) fn browser(&self, headers: &HeaderMap) -> Option<String> {
        let cookies = headers.get_all(COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let mut pairs = cookies
            .flat_map(|text| text.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        let found = pairs.find(|(name, _)| *name == self.cookie_name());
        // Every secret of mcpzip has this length.
        found
            .map(|(_, value)| value.to_owned())
            .filter(|value| value.len() == 43)
    }

    /// The response that refuses a form of another site.
    fn foreign(&self, headers: &HeaderMap) -> Option<Response> {
        let own = self.server.options().url.as_str();
        let is_other =
            |name: HeaderName, own: &str| headers.get_all(name).iter().any(|value| value != own);
        let is_foreign = is_other(ORIGIN, own)
            || is_other(HeaderName::from_static("sec-fetch-site"), "same-origin");
        is_foreign.then(|| refusal::forbidden("this form is not from a page of this server"))
    }

    /// The response to a browser.
    pub(super) fn shown(&self, shared: &Shared, visit: Visit) -> Response {
        note(shared, visit.event.as_ref());
        let mut response = match visit.answer {
            Answer::Page(page) => shown(&page),
            Answer::Redirect(url) => redirect(&url),
        };
        if let Some((secret, stays)) = visit.cookie {
            let name = self.cookie_name();
            let secure = if self.is_https() { "; Secure" } else { "" };
            let age = match stays {
                true => format!("; Max-Age={BROWSER}"),
                false => String::new(),
            };
            let cookie = format!("{name}={secret}; Path=/; HttpOnly; SameSite=Lax{secure}{age}");
            if let Ok(cookie) = HeaderValue::try_from(cookie) {
                response.headers_mut().insert(SET_COOKIE, cookie);
            }
        }
        response
    }
}

pub(super) fn note(shared: &Shared, event: Option<&(String, String)>) {
    if let Some((identity, detail)) = event {
        tracing::info!(identity, detail, "a login");
        shared.main().note_identity(identity, detail);
    }
}

fn redirect(url: &str) -> Response {
    let Ok(location) = HeaderValue::try_from(url) else {
        return refusal::bad_request("the redirect of the client cannot be used");
    };
    let mut response = Response::default();
    *response.status_mut() = StatusCode::SEE_OTHER;
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// A response with JSON that no cache keeps.
fn answer(body: &Value) -> Response {
    let mut response = refusal::json(StatusCode::OK, body.to_string());
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn failed(error: &EndpointError) -> Response {
    let mut response = answer(&json!({ "error": error.code, "error_description": error.reason }));
    *response.status_mut() = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
    response
}

async fn form(request: Request) -> Result<Fields, Refusal> {
    let body = body(request, "application/x-www-form-urlencoded").await?;
    let twice = |_| {
        refused(
            StatusCode::BAD_REQUEST,
            "a member of the form is there twice",
        )
    };
    Fields::parse(&body).map_err(twice)
}

/// The body of a POST of this kind.
async fn body(request: Request, kind: &str) -> Result<String, Refusal> {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return Err(refused(
            StatusCode::METHOD_NOT_ALLOWED,
            "allowed methods: POST",
        ));
    }
    let said = parts.headers.get(CONTENT_TYPE);
    let said = said.and_then(|value| value.to_str().ok());
    let said = said.unwrap_or_default().split(';').next();
    if !said.is_some_and(|said| said.trim().eq_ignore_ascii_case(kind)) {
        let message = format!("the `Content-Type` must be `{kind}`");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let bytes = to_bytes(body, LARGEST).await;
    let broken = |_| {
        let message = "the body is too large, or broke off";
        refused(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    let bytes = bytes.map_err(broken)?;
    let no_text = |_| refused(StatusCode::BAD_REQUEST, "the body is not UTF-8");
    String::from_utf8(bytes.to_vec()).map_err(no_text)
}

fn refused(status: StatusCode, message: &str) -> Refusal {
    Refusal::new(status, message)
}
