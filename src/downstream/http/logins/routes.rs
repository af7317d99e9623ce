//! The requests of the page.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use http_body_util::{BodyExt as _, Limited};
use reqwest::Url;

use super::Begun;
use super::browsers::{Door, Visitor};
use super::page::{self, Row};
use crate::config::{Claims, UpstreamIdentity};
use crate::downstream::http::WINDOW;
use crate::downstream::http::access::LetIn;
use crate::downstream::http::admission::Peer;
use crate::downstream::http::authorization::{self, Asked};
use crate::downstream::http::refusal;
use crate::downstream::http::shared::Shared;
use crate::identity::Denial;
use crate::identity::authorization::Fields;
use crate::proxy::Proxy;
use crate::text::chain;
use crate::tool::ServerName;
use crate::upstream::oauth::{Account, Flow, LoggedOut, LoginError, LoginRequest};
use crate::upstream::person::LOGINS;

/// The paths, relative to that of the page.
const CALLBACK: &str = "/callback";
/// The way in, by a login at the gateway's own authorization server. `callback` follows, for the code.
const LOGIN: &str = "/login";
const ENTRANCE: &str = "/logins/login-";

/// The largest form, in bytes.
const LARGEST: usize = 64 * 1024;

/// The routes of the page.
pub(in crate::downstream::http) fn routes(shared: &Arc<Shared>) -> Router<Arc<Shared>> {
    let route = |path: &str| format!("{LOGINS}{path}");
    Router::new()
        .route(LOGINS, get(list))
        .route(&route("/enter"), post(enter))
        .route(&route(LOGIN), get(login))
        .route(&format!("{ENTRANCE}callback"), get(enter_by_code))
        .route(&route("/leave"), post(leave))
        .route(&route("/begin"), post(begin))
        .route(&route("/end"), post(end))
        .route(&route(CALLBACK), get(callback))
        .layer(middleware::from_fn_with_state(shared.clone(), guard))
}

/// Keeps foreign pages and hosts out, and forms that are not of the gateway's own pages.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let access = &shared.access;
    if let Some(refusal) = access.refusal(request.headers(), request.uri()) {
        return refusal;
    }
    if access.authenticator.is_none() {
        return refusal::nothing_here();
    }
    let is_form = request.method() == Method::POST;
    if is_form && !access.is_own_form(request.headers(), request.uri()) {
        return page::note(
            StatusCode::FORBIDDEN,
            "This form does not come from the page of this gateway.",
        );
    }
    next.run(request).await
}

/// The part of a request that is about its visitor.
pub(in crate::downstream::http) struct Shown {
    headers: HeaderMap,
    peer: Option<Peer>,
    door: Door,
}

impl Shown {
    pub(in crate::downstream::http) fn by(request: &Request, door: Door) -> Self {
        Self {
            door,
            headers: request.headers().clone(),
            peer: request.extensions().get::<Peer>().cloned(),
        }
    }

    /// The visitor.
    pub(in crate::downstream::http) async fn visitor(
        self,
        shared: &Shared,
    ) -> Result<Visitor, Denial> {
        let authenticator = shared.access.authenticator.as_ref();
        let authenticator = authenticator.ok_or(Denial::Missing)?;
        let peer = self.peer.as_ref();
        let certificate = peer.and_then(|peer| peer.certificate.clone());
        let address = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.address);
        let checked = authenticator.check(&self.headers, address, certificate.as_deref());
        match checked.await {
            Ok(pass) => Ok(Visitor::new(pass, None)),
            Err(Denial::Missing) => {
                let known =
                    shared
                        .logins
                        .browsers
                        .find(&self.headers, is_secure(shared), self.door);
                known.ok_or(Denial::Missing)
            }
            Err(denial) => Err(denial),
        }
    }
}

/// The page for a request that shows no valid identity.
pub(in crate::downstream::http) fn unknown(denial: Denial) -> Response {
    match denial {
        Denial::Missing => page::note(
            StatusCode::UNAUTHORIZED,
            "Your visit here has ended. Open the page /logins again.",
        ),
        Denial::Unavailable => page::note(
            StatusCode::SERVICE_UNAVAILABLE,
            "Identities cannot be checked now. The administrator finds the reason in the log.",
        ),
        Denial::NotEntitled => {
            page::note(StatusCode::FORBIDDEN, "This identity may use nothing here.")
        }
        Denial::Invalid | Denial::InsufficientScope | Denial::BadHeader => page::note(
            StatusCode::UNAUTHORIZED,
            "This credential is not valid here.",
        ),
    }
}

/// A server at which a person logs in.
struct LoginTarget {
    proxy: Arc<Proxy>,
    server: ServerName,
    account: Account,
}

/// The servers at which a visitor logs in; `None` if nothing can be used.
fn places(shared: &Shared, visitor: &Visitor) -> Option<Vec<LoginTarget>> {
    let proxy = shared
        .proxies
        .of(None, "", Some(visitor.entitlement()))
        .ok()?;
    let config = proxy.unscoped().config();
    let theirs = config.servers.iter().filter(|(_, entry)| {
        let identity = entry.remote().map(|remote| &remote.identity);
        !entry.disabled && identity == Some(&UpstreamIdentity::PerUser)
    });
    let places = theirs.filter_map(|(server, _)| {
        Some(LoginTarget {
            account: proxy.inventory.account(server)?,
            server: server.clone(),
            proxy: proxy.clone(),
        })
    });
    Some(places.collect())
}

/// The page.
async fn list(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let wanted = query(&request).get("server").map(str::to_owned);
    let visitor = match Shown::by(&request, Door::Logins).visitor(&shared).await {
        Ok(visitor) => visitor,
        Err(Denial::Missing) => return entrance(&shared, wanted.as_deref(), ""),
        Err(denial) => return unknown(denial),
    };
    let Some(places) = places(&shared, &visitor) else {
        return page::note(StatusCode::FORBIDDEN, "This identity may use nothing here.");
    };
    let mut rows = Vec::new();
    for LoginTarget {
        server, account, ..
    } in places
    {
        let state = match account.status().await {
            Ok(Some(status)) => Ok(Some(status)),
            Ok(None) => Ok(None),
            Err(error) => Err(chain(&error)),
        };
        rows.push(Row {
            is_wanted: wanted.as_deref() == Some(server.as_str()),
            server: server.to_string(),
            state,
        });
    }
    let name = &visitor.entitlement().person.name;
    let csrf = shared.logins.browsers.mark(&visitor);
    let_in(page::list(name, visitor.is_in_session(), &rows, &csrf))
}

/// The page for a browser that shows no identity, with what is wrong with the last attempt.
fn entrance(shared: &Shared, server: Option<&str>, problem: &str) -> Response {
    page::entrance(Asked::of(shared).is_some(), server, problem)
}

/// Begins a login at the gateway's own authorization server.
async fn login(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    begin_login(&shared, request, ENTRANCE).await
}

/// Opens the session of a browser for the code of that login.
async fn enter_by_code(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let again = |problem: &str| entrance(&shared, None, problem);
    match end_login(&shared, request, (ENTRANCE, Door::Logins), again).await {
        Ok(cookies) => with_session(None, cookies),
        Err(response) => response,
    }
}

fn with_session(server: Option<&str>, cookies: Vec<HeaderValue>) -> Response {
    let mut response = to_list(server);
    for cookie in cookies {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    let_in(response)
}

/// Begins a login of a browser at the gateway's own authorization server, for the pages at `path`.
///
/// It is the flow of every client, with the pages as the client: PKCE, the page of consent, and a grant, which `mcpzip token revoke` ends.
/// Its state belongs to the browser that began it, or the receiver of a link would visit as its sender.
pub(in crate::downstream::http) async fn begin_login(
    shared: &Shared,
    request: Request,
    path: &str,
) -> Response {
    let Some(asked) = Asked::of(shared) else {
        return page::note(
            StatusCode::NOT_FOUND,
            "This gateway has no login of its own: use a token.",
        );
    };
    let browser = asked.browser(request.headers());
    let is_entitled = |claims: &Claims| asked.authenticator.is_entitled(claims);
    let scopes = asked.scopes();
    let visit = asked.server.begin_window(
        path,
        |browser: &str| shared.logins.windows.begin(browser),
        browser.as_deref(),
        &scopes,
        &is_entitled,
    );
    let visit = visit.await;
    asked.shown(shared, visit)
}

/// Takes the code that the authorization server gave. Returns the cookies of the session that it opens; `again` is the page to try again.
pub(in crate::downstream::http) async fn end_login(
    shared: &Shared,
    request: Request,
    (path, door): (&'static str, Door),
    again: impl Fn(&str) -> Response,
) -> Result<Vec<HeaderValue>, Response> {
    let stray = || {
        page::note(
            StatusCode::FORBIDDEN,
            "This does not belong to a login that was begun in this browser. Open the page again.",
        )
    };
    let fields = query(&request);
    let asked = Asked::of(shared).ok_or_else(stray)?;
    let browser = asked.browser(request.headers());
    let (Some(state), Some(browser)) = (fields.get("state"), browser) else {
        return Err(stray());
    };
    let verifier = shared.logins.windows.verifier(state, &browser);
    let verifier = verifier.ok_or_else(stray)?;
    let code = fields.get("code").map(str::to_owned);
    let code = code.ok_or_else(|| again("You were not logged in."))?;
    let server = asked.server.clone();
    // The file of tokens is written before the answer.
    let work = move || server.end_window(path, &code, &verifier);
    let Ok(ended) = shared.tasks.spawn_blocking(work).await else {
        return Err(page::note(
            StatusCode::SERVICE_UNAVAILABLE,
            "The gateway is ending.",
        ));
    };
    let (token, event) = ended.map_err(|_| again("The login did not count. Try again."))?;
    shared.logins.windows.end(state);
    authorization::note(shared, event.as_ref());
    entered(shared, &token, door)
        .await
        .map_err(|refused| match refused {
            Refused::NotValid(why) => again(why),
            Refused::Denied(denial) => unknown(denial),
        })
}

/// Opens the session of a browser for the token in the form.
async fn enter(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let Some(form) = form(request).await else {
        return page::note(StatusCode::BAD_REQUEST, "The form cannot be read.");
    };
    let server = form.get("server");
    match entered(&shared, form.get("token").unwrap_or_default(), Door::Logins).await {
        Ok(cookies) => with_session(server, cookies),
        Err(Refused::NotValid(why)) => entrance(&shared, server, why),
        Err(Refused::Denied(denial)) => unknown(denial),
    }
}

/// Why a token opens no session.
pub(in crate::downstream::http) enum Refused {
    /// The token does not count, in words.
    NotValid(&'static str),
    Denied(Denial),
}

/// Opens a session of a browser for a token. Returns its cookies.
pub(in crate::downstream::http) async fn entered(
    shared: &Shared,
    token: &str,
    door: Door,
) -> Result<Vec<HeaderValue>, Refused> {
    let value = HeaderValue::try_from(format!("Bearer {}", token.trim()));
    let value = value.map_err(|_| Refused::NotValid("This is not a token."))?;
    let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
    let authenticator = shared.access.authenticator.as_ref();
    let authenticator = authenticator.ok_or(Refused::Denied(Denial::Unavailable))?;
    let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    match authenticator.check(&headers, nowhere, None).await {
        Ok(pass) => {
            let front = shared.proxies.front();
            let url = front.and_then(|front| Url::parse(&front.url(WINDOW)?).ok());
            let path = url.as_ref().map_or(WINDOW, Url::path);
            let browsers = &shared.logins.browsers;
            Ok(browsers.open(pass, is_secure(shared), door, path))
        }
        Err(Denial::Missing | Denial::Invalid) => {
            Err(Refused::NotValid("This token is not valid here."))
        }
        Err(denial) => Err(Refused::Denied(denial)),
    }
}

/// Whether browsers reach the page over HTTPS.
pub(in crate::downstream::http) fn is_secure(shared: &Shared) -> bool {
    if shared.access.is_tls {
        return true;
    }
    let front = shared.proxies.front();
    let url = front.and_then(|front| front.url(""));
    url.is_some_and(|url| url.starts_with("https://"))
}

/// The visitor of a form with the mark of its page, and the form.
async fn marked(shared: &Shared, request: Request) -> Result<(Visitor, Fields), Response> {
    let visitor = Shown::by(&request, Door::Logins).visitor(shared).await;
    let visitor = visitor.map_err(unknown)?;
    let unreadable = || page::note(StatusCode::BAD_REQUEST, "The form cannot be read.");
    let form = form(request).await.ok_or_else(unreadable)?;
    let mark = form.get("mark").unwrap_or_default();
    match shared.logins.browsers.has_mark(&visitor, mark) {
        true => Ok((visitor, form)),
        false => Err(page::note(
            StatusCode::FORBIDDEN,
            "This form is out of date. Open the page again.",
        )),
    }
}

/// Ends the session of a browser.
async fn leave(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (visitor, _) = match marked(&shared, request).await {
        Ok(marked) => marked,
        Err(response) => return response,
    };
    shared.logins.browsers.close(&visitor);
    to_list(None)
}

/// The server that a form names.
fn place(shared: &Shared, visitor: &Visitor, form: &Fields) -> Option<LoginTarget> {
    let name = form.get("server")?;
    let mut places = places(shared, visitor)?.into_iter();
    places.find(|place| place.server.as_str() == name)
}

/// The page for a form that names no such server.
fn no_place() -> Response {
    page::note(StatusCode::NOT_FOUND, "There is no such server.")
}

/// Begins a login at a server.
async fn begin(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (visitor, form) = match marked(&shared, request).await {
        Ok(marked) => marked,
        Err(response) => return response,
    };
    let Some(place) = place(&shared, &visitor, &form) else {
        return no_place();
    };
    let LoginTarget {
        server, account, ..
    } = place;
    let front = shared.proxies.front();
    let Some(url) = front.and_then(|front| front.url(&format!("{LOGINS}{CALLBACK}"))) else {
        return page::note(
            StatusCode::SERVICE_UNAVAILABLE,
            "The gateway does not know its own URL. The administrator sets http.public_url.",
        );
    };
    let flow = Flow::begin_at(account, &LoginRequest::default(), Some(url)).await;
    let flow = match flow {
        Ok(flow) => flow,
        Err(error) => return failed(&server, &error),
    };
    let response = page::onward(server.as_str(), flow.issuer(), flow.url());
    let begun = Begun {
        identity: visitor.identity().to_owned(),
        server,
        at: Instant::now(),
        flow,
    };
    shared.logins.begin(begun);
    let_in(response)
}

/// Takes the answer of a server's login.
async fn callback(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let fields = query(&request);
    let query = request.uri().query().unwrap_or_default().to_owned();
    let visitor = match Shown::by(&request, Door::Logins).visitor(&shared).await {
        Ok(visitor) => visitor,
        Err(denial) => return unknown(denial),
    };
    let state = fields.get("state").unwrap_or_default();
    let Some(begun) = shared.logins.take(state, visitor.identity()) else {
        return page::note(
            StatusCode::FORBIDDEN,
            "This does not belong to a login that you have begun here.",
        );
    };
    let Begun { server, flow, .. } = begun;
    // A browser that leaves must not undo half of it.
    let finishing = shared.tasks.spawn(async move {
        let answer = flow.pasted(&format!("?{query}"))?;
        flow.finish(answer).await
    });
    let outcome = match finishing.await {
        Ok(outcome) => outcome,
        Err(_) => return page::note(StatusCode::SERVICE_UNAVAILABLE, "The gateway is ending."),
    };
    let proxies = shared.proxies.of_identity(visitor.identity());
    match outcome {
        Ok(status) => {
            for proxy in &proxies {
                proxy.inventory.poke(&server);
            }
            let detail = format!("logged in at {}", status.issuer);
            note(&proxies, &server, true, &detail);
            let_in(to_list(Some(server.as_str())))
        }
        Err(error) => {
            note(&proxies, &server, false, &chain(&error));
            failed(&server, &error)
        }
    }
}

/// Ends a person's login at a server.
async fn end(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (visitor, form) = match marked(&shared, request).await {
        Ok(marked) => marked,
        Err(response) => return response,
    };
    let Some(place) = place(&shared, &visitor, &form) else {
        return no_place();
    };
    let ended = match place.account.log_out().await {
        Ok(ended) => ended,
        Err(error) => return failed(&place.server, &error),
    };
    // The server may keep state of the person with the connection.
    for proxy in shared.proxies.of_identity(visitor.identity()) {
        proxy.inventory.disconnect(&place.server);
    }
    place.proxy.note_logout(&place.server);
    let server = place.server.as_str();
    let_in(match ended.reasons() {
        reasons if reasons.is_empty() => to_list(Some(server)),
        reasons => page::logged_out(server, &LoggedOut::still_valid(server, &reasons)),
    })
}

/// Records a login, once.
fn note(proxies: &[Arc<Proxy>], server: &ServerName, is_done: bool, detail: &str) {
    if let Some(proxy) = proxies.first() {
        proxy.note_login(server, is_done, detail);
    }
}

fn failed(server: &ServerName, error: &LoginError) -> Response {
    tracing::warn!(%server, error = chain(error), "a person's login failed");
    let text = format!("The login at {server} failed: {}.", chain(error));
    page::note(StatusCode::BAD_GATEWAY, &text)
}

/// Leads the browser back to the page.
fn to_list(server: Option<&str>) -> Response {
    let mut response = page::note(StatusCode::SEE_OTHER, "Go on.");
    let mut query = Url::parse("http://page").expect("it is a URL");
    if let Some(server) = server {
        query.query_pairs_mut().append_pair("server", server);
    }
    let query = query.query().map(|query| format!("?{query}"));
    // Relative, because a proxy in front may have put the page below another path.
    let location = format!("..{LOGINS}{}", query.unwrap_or_default());
    let location = HeaderValue::try_from(location).expect("a query is ASCII");
    response.headers_mut().insert(LOCATION, location);
    response
}

/// Marks the response to a visitor with an identity.
fn let_in(mut response: Response) -> Response {
    response.extensions_mut().insert(LetIn);
    response
}

/// The fields of a form.
pub(in crate::downstream::http) async fn form(request: Request) -> Option<Fields> {
    let body = Limited::new(request.into_body(), LARGEST).collect().await;
    let text = String::from_utf8(body.ok()?.to_bytes().to_vec()).ok()?;
    Fields::parse(&text).ok()
}

/// The fields of a request's query; without any if they cannot be read.
pub(in crate::downstream::http) fn query(request: &Request) -> Fields {
    let query = request.uri().query().unwrap_or_default();
    Fields::parse(query).unwrap_or_default()
}
