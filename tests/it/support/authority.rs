//! An authorization server with an MCP server behind it. It registers clients, accepts logins, and issues tokens that
//! expire, rotate with each use and can be revoked. It rejects every violation of the protocol as a strict server
//! would.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Setup;
use super::client::until;
use super::command::Outcome;
use super::http::{HttpServer, Reply, Request, legacy};

/// The behaviour of both servers. A default is the best behaviour.
#[derive(Debug, Clone)]
pub(crate) struct Manner {
    /// The issuer's path that the MCP server names.
    pub(crate) issuer: &'static str,
    /// The stated lifetime of a token in seconds, and the real one.
    pub(crate) expires_in: Option<u64>,
    pub(crate) life: Duration,
    /// The scopes that a call of the tool `t` requires, and whether the first 401 names them.
    pub(crate) needed: &'static [&'static str],
    /// Whether the MCP server refuses its own tokens, as for an account without access; with `needed`, those that lack a scope.
    pub(crate) has_no_access: bool,
    /// The method of client authentication.
    pub(crate) method: &'static str,
    /// Whether the form of a token request names the client, where the header does.
    pub(crate) form: ClientIdInForm,
    pub(crate) registers: bool,
    /// Additional members of the authorization server's metadata.
    pub(crate) metadata: Value,
    /// The `iss` of the authorization response. `None` for the real one.
    pub(crate) iss: Option<&'static str>,
    /// The granted scopes, regardless of the requested ones.
    pub(crate) grants: Option<&'static str>,
    /// The pause before a token is issued.
    pub(crate) pause: Duration,
    /// The delay of the answer with a token, after the token was issued.
    pub(crate) late: Duration,
    /// A part of paths whose requests get no answer while it is set.
    pub(crate) stall: Option<&'static str>,
    /// Whether a refresh token can be used only once.
    pub(crate) is_strict: bool,
    /// The public key (P-256, as a point) of a client that signs assertions.
    pub(crate) key: Vec<u8>,
    /// A client that was registered by hand: its id and secret.
    pub(crate) known: Option<(&'static str, &'static str)>,
}

/// Whether a form names the client next to the header `Authorization`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ClientIdInForm {
    #[default]
    MayBe,
    /// As for servers of the Python SDK.
    Must,
    /// As for Notion and strict settings of Keycloak.
    MustNot,
}

/// The authorization server and the MCP server.
#[derive(Clone)]
pub(crate) struct Authority {
    pub(crate) web: HttpServer,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) manner: Manner,
    clients: BTreeMap<String, Client>,
    codes: BTreeMap<String, Grant>,
    access: BTreeMap<String, (Instant, BTreeSet<String>)>,
    refresh: BTreeMap<String, Grant>,
    /// Every secret that was ever issued. Tests check that it appears nowhere else.
    pub(crate) secrets: Vec<String>,
    pub(crate) registrations: usize,
    pub(crate) refreshes: usize,
    /// The number of refresh tokens that were used twice.
    pub(crate) reuses: usize,
    pub(crate) token_requests: usize,
    next: usize,
}

#[derive(Debug, Clone)]
struct Client {
    secret: Option<String>,
    redirects: Vec<String>,
    issuer: String,
}

#[derive(Debug, Clone, Default)]
struct Grant {
    client: String,
    redirect: String,
    challenge: String,
    scopes: BTreeSet<String>,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            issuer: "/one",
            expires_in: Some(3600),
            life: Duration::from_secs(3600),
            needed: &[],
            has_no_access: false,
            method: "none",
            form: ClientIdInForm::default(),
            registers: true,
            metadata: json!({}),
            iss: None,
            grants: None,
            pause: Duration::ZERO,
            late: Duration::ZERO,
            stall: None,
            is_strict: true,
            key: Vec::new(),
            known: None,
        }
    }
}

impl Authority {
    /// Starts both servers.
    pub(crate) fn start(manner: Manner) -> Self {
        let mut clients = BTreeMap::new();
        if let Some((id, secret)) = manner.known {
            let client = Client {
                secret: Some(secret.to_owned()),
                redirects: Vec::new(),
                issuer: manner.issuer.to_owned(),
            };
            clients.insert(id.to_owned(), client);
        }
        let state = Arc::new(Mutex::new(State {
            secrets: manner
                .known
                .map(|(_, secret)| secret.to_owned())
                .into_iter()
                .collect(),
            manner,
            clients,
            codes: BTreeMap::new(),
            access: BTreeMap::new(),
            refresh: BTreeMap::new(),
            registrations: 0,
            refreshes: 0,
            reuses: 0,
            token_requests: 0,
            next: 0,
        }));
        let shared = state.clone();
        let web = HttpServer::start(move |request, reply| answer(&shared, request, reply));
        Self { web, state }
    }

    /// A home with the MCP server configured as `web`.
    pub(crate) fn setup(&self, members: Value) -> Setup {
        Setup::new()
            .entry("web", &self.web.entry(members))
            .variable("MCPZIP_BROWSER", "none")
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Reads the state. Calling this twice in one expression would deadlock.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state())
    }

    /// Revokes all access tokens, and refresh tokens too if `all`.
    pub(crate) fn revoke(&self, all: bool) {
        let mut state = self.state();
        state.access.clear();
        if all {
            state.refresh.clear();
        }
    }

    /// Uses the login of `setup` in so many processes after its access token has ended; one of them renews it.
    #[track_caller]
    pub(crate) fn renews_once(&self, setup: &Setup, processes: usize) {
        let mut clients: Vec<_> = (0..processes).map(|_| setup.connect()).collect();
        for client in &mut clients {
            assert_eq!(client.execute("web__t").text(), "fine");
        }
        self.revoke(false);
        let calls = clients.iter_mut();
        let calls: Vec<u64> = calls.map(|client| client.begin_execute("web__t")).collect();
        for (client, call) in clients.iter_mut().zip(calls) {
            assert_eq!(client.answer(call).text(), "fine");
        }
        assert_eq!(self.read(|state| (state.refreshes, state.reuses)), (1, 0));
    }

    /// Moves the registered clients to the issuer at `path`.
    pub(crate) fn move_clients(&self, path: &str) {
        for client in self.state().clients.values_mut() {
            client.issuer = path.to_owned();
        }
    }

    /// Fails if `text` contains a secret.
    #[track_caller]
    pub(crate) fn is_silent(&self, what: &str, text: &str) {
        for secret in &self.state().secrets {
            assert!(
                !text.contains(secret.as_str()),
                "{secret} is in {what}:\n{text}"
            );
        }
    }

    fn url(&self, path: &str) -> String {
        self.web.url(path)
    }

    /// The URL of the issuer at `path`.
    pub(crate) fn issuer(&self, path: &str) -> String {
        self.url(path)
    }
}

impl State {
    fn secret(&mut self, kind: &str) -> String {
        self.next += 1;
        let secret = format!("{kind}-{}-0f6c1e9a77", self.next);
        self.secrets.push(secret.clone());
        secret
    }

    fn tokens(&mut self, grant: Grant, refreshes: bool) -> Value {
        let access = self.secret("access");
        self.access.insert(
            access.clone(),
            (Instant::now() + self.manner.life, grant.scopes.clone()),
        );
        let scopes: Vec<&str> = grant.scopes.iter().map(String::as_str).collect();
        let mut given =
            json!({ "access_token": access, "token_type": "bearer", "scope": scopes.join(" ") });
        if let Some(life) = self.manner.expires_in {
            given["expires_in"] = life.into();
        }
        if refreshes {
            let refresh = self.secret("refresh");
            self.refresh.insert(refresh.clone(), grant);
            given["refresh_token"] = refresh.into();
        }
        given
    }
}

fn answer(state: &Mutex<State>, request: &Request, reply: &mut Reply) {
    let origin = format!("http://{}", request.header("host"));
    let url = Url::parse(&format!("{origin}{}", request.path)).unwrap();
    let fields: BTreeMap<String, String> = match request.method.as_str() {
        "POST" => Url::parse(&format!("http://form?{}", request.text)).unwrap(),
        _ => url.clone(),
    }
    .query_pairs()
    .into_owned()
    .collect();
    let path = url.path();
    let manner = state.lock().unwrap().manner.clone();
    while state
        .lock()
        .unwrap()
        .manner
        .stall
        .is_some_and(|part| path.contains(part))
    {
        std::thread::sleep(Duration::from_millis(10));
    }
    if path.trim_end_matches('/') == "/mcp" {
        return mcp(state, &origin, request, reply);
    }
    if path == "/.well-known/oauth-protected-resource/mcp" {
        let document = json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [format!("{origin}{}", manner.issuer)] });
        return reply.json(&document.to_string());
    }
    if let Some(issuer) = path.strip_prefix("/.well-known/oauth-authorization-server") {
        let mut document = json!({
            "issuer": format!("{origin}{issuer}"),
            "authorization_endpoint": format!("{origin}{issuer}/authorize"),
            "token_endpoint": format!("{origin}{issuer}/token"),
            "revocation_endpoint": format!("{origin}{issuer}/revoke"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [manner.method],
        });
        if manner.registers {
            document["registration_endpoint"] = format!("{origin}{issuer}/register").into();
        }
        for (key, value) in manner.metadata.as_object().unwrap() {
            document[key] = value.clone();
        }
        return reply.json(&document.to_string());
    }
    let Some((issuer, step)) = path.rsplit_once('/') else {
        return reply.whole("404 Not Found", "", "");
    };
    match step {
        "register" => register(state, issuer, request, reply),
        "authorize" => authorize(state, issuer, &origin, &fields, reply),
        "token" => token(state, issuer, &origin, request, &fields, reply),
        "revoke" => {
            let mut state = state.lock().unwrap();
            state.refresh.remove(&fields["token"]);
            state.access.clear();
            reply.whole("200 OK", "", "");
        }
        _ => reply.whole("404 Not Found", "", ""),
    }
}

fn mcp(state: &Mutex<State>, origin: &str, request: &Request, reply: &mut Reply) {
    let token = request.header("authorization").strip_prefix("Bearer ");
    let (known, needed, has_no_access) = {
        let state = state.lock().unwrap();
        let known = token
            .and_then(|token| state.access.get(token))
            .filter(|(end, _)| *end > Instant::now())
            .cloned();
        let manner = &state.manner;
        (known, manner.needed, manner.has_no_access)
    };
    let metadata =
        format!(r#"resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp""#);
    let Some((_, scopes)) = known else {
        let headers = format!("www-authenticate: Bearer {metadata}, scope=\"basic\"\r\n");
        // The answer repeats the token, as a careless server does.
        return reply.whole(
            "401 Unauthorized",
            &headers,
            &format!("not good: {}", token.unwrap_or("nothing")),
        );
    };
    if has_no_access && needed.is_empty() {
        return reply.whole("403 Forbidden", "", "no seat for you");
    }
    let is_tool =
        has_no_access || request.rpc() == "tools/call" && request.body["params"]["name"] == "t";
    if is_tool && needed.iter().any(|scope| !scopes.contains(*scope)) {
        let wanted = needed.join(" ");
        let headers = format!(
            "www-authenticate: Bearer error=\"insufficient_scope\", scope=\"{wanted}\", {metadata}\r\n"
        );
        return reply.whole(
            "403 Forbidden",
            &headers,
            &format!("not for {}", token.unwrap_or_default()),
        );
    }
    legacy(request, reply);
}

fn register(state: &Mutex<State>, issuer: &str, request: &Request, reply: &mut Reply) {
    let mut state = state.lock().unwrap();
    // A gateway is a web site, which a redirect to its page shows.
    let redirect = request.body["redirect_uris"][0].as_str().unwrap();
    let is_page = redirect.ends_with("/logins/callback");
    let kind = if is_page { "web" } else { "native" };
    assert_eq!(request.body["application_type"], kind);
    state.registrations += 1;
    let id = format!("client-{}", state.registrations);
    let redirects: Vec<String> =
        serde_json::from_value(request.body["redirect_uris"].clone()).unwrap();
    let secret = (state.manner.method != "none").then(|| state.secret("client-secret"));
    let mut given = request.body.clone();
    given["client_id"] = id.clone().into();
    if let Some(secret) = &secret {
        given["client_secret"] = secret.clone().into();
    }
    state.clients.insert(
        id,
        Client {
            secret,
            redirects,
            issuer: issuer.to_owned(),
        },
    );
    reply.whole(
        "201 Created",
        "content-type: application/json\r\n",
        &given.to_string(),
    );
}

fn authorize(
    state: &Mutex<State>,
    issuer: &str,
    origin: &str,
    fields: &BTreeMap<String, String>,
    reply: &mut Reply,
) {
    let mut state = state.lock().unwrap();
    let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let client = state
        .clients
        .get(&field("client_id"))
        .filter(|client| client.issuer == issuer)
        .cloned();
    let Some(client) = client else {
        return reply.whole("400 Bad Request", "", "unknown client");
    };
    let redirect = field("redirect_uri");
    let is_known = client.redirects.is_empty() || client.redirects.contains(&redirect);
    let is_good =
        field("code_challenge_method") == "S256" && field("resource") == format!("{origin}/mcp");
    if !is_known || !is_good || field("response_type") != "code" {
        return reply.whole("400 Bad Request", "", "not so");
    }
    let grant = Grant {
        client: field("client_id"),
        redirect: redirect.clone(),
        challenge: field("code_challenge"),
        scopes: state
            .manner
            .grants
            .unwrap_or(&field("scope"))
            .split_whitespace()
            .map(str::to_owned)
            .collect(),
    };
    let code = state.secret("code");
    state.codes.insert(code.clone(), grant);
    let iss = state
        .manner
        .iss
        .map_or_else(|| format!("{origin}{issuer}"), str::to_owned);
    let mut back = Url::parse(&redirect).unwrap();
    back.query_pairs_mut()
        .append_pair("code", &code)
        .append_pair("state", &field("state"))
        .append_pair("iss", &iss);
    reply.whole("302 Found", &format!("location: {back}\r\n"), "");
}

fn token(
    state: &Mutex<State>,
    issuer: &str,
    origin: &str,
    request: &Request,
    fields: &BTreeMap<String, String>,
    reply: &mut Reply,
) {
    let pause = state.lock().unwrap().manner.pause;
    std::thread::sleep(pause);
    let mut state = state.lock().unwrap();
    state.token_requests += 1;
    let mut refuse = |error: &str, words: &str| {
        let body = json!({ "error": error, "error_description": words }).to_string();
        reply.whole(
            "400 Bad Request",
            "content-type: application/json\r\n",
            &body,
        );
    };
    let field = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let basic = request
        .header("authorization")
        .strip_prefix("Basic ")
        .map(|text| {
            let pair = String::from_utf8(STANDARD.decode(text).unwrap()).unwrap();
            let (id, secret) = pair.split_once(':').unwrap();
            (id.to_owned(), secret.to_owned())
        });
    let (id, secret) = match state.manner.method {
        "client_secret_basic" => basic.unwrap_or_default(),
        "private_key_jwt" => {
            match signer(
                &field("client_assertion"),
                &format!("{origin}{issuer}"),
                &state.manner.key,
            ) {
                Some(id) => (id, String::new()),
                None => return refuse("invalid_client", "not your signature"),
            }
        }
        _ => (field("client_id"), field("client_secret")),
    };
    let names_client = fields.contains_key("client_id");
    match (state.manner.form, state.manner.method) {
        (ClientIdInForm::Must, _) if !names_client => {
            return refuse("invalid_client", "Missing client_id");
        }
        (ClientIdInForm::MustNot, "client_secret_basic") if names_client => {
            return refuse("invalid_request", "two credentials of the client");
        }
        _ => {}
    }
    let client = state
        .clients
        .get(&id)
        .filter(|client| client.issuer == issuer)
        .cloned();
    if client.is_none_or(|client| client.secret.unwrap_or_default() != secret) {
        return refuse("invalid_client", "who are you");
    }
    if field("resource") != format!("{origin}/mcp") {
        return refuse("invalid_target", "for whom");
    }
    let given = match field("grant_type").as_str() {
        "authorization_code" => {
            let Some(grant) = state.codes.remove(&field("code")) else {
                return refuse("invalid_grant", "no such code");
            };
            let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier")));
            if grant.client != id
                || grant.redirect != field("redirect_uri")
                || grant.challenge != challenge
            {
                return refuse("invalid_grant", "not your code");
            }
            state.tokens(grant, true)
        }
        "refresh_token" => {
            let token = field("refresh_token");
            let Some(grant) = state
                .refresh
                .remove(&token)
                .filter(|grant| grant.client == id)
            else {
                state.reuses += 1;
                // The error repeats the token.
                return refuse("invalid_grant", &format!("{token} is no good"));
            };
            state.refreshes += 1;
            if !state.manner.is_strict {
                state.refresh.insert(token, grant.clone());
            }
            state.tokens(grant, true)
        }
        "client_credentials" => {
            let scopes = field("scope")
                .split_whitespace()
                .map(str::to_owned)
                .collect();
            state.tokens(
                Grant {
                    client: id,
                    scopes,
                    ..Grant::default()
                },
                false,
            )
        }
        "urn:ietf:params:oauth:grant-type:jwt-bearer" => {
            let assertion = field("assertion");
            state.secrets.push(assertion.clone());
            let own = format!("{origin}{issuer}");
            if !is_assertion(&assertion, &own, &id, &field("resource")) {
                return refuse("invalid_grant", &format!("{assertion} is no good"));
            }
            let scopes = field("scope")
                .split_whitespace()
                .map(str::to_owned)
                .collect();
            state.tokens(
                Grant {
                    client: id,
                    scopes,
                    ..Grant::default()
                },
                false,
            )
        }
        _ => return refuse("unsupported_grant_type", ""),
    };
    let late = state.manner.late;
    drop(state);
    std::thread::sleep(late);
    reply.json(&given.to_string());
}

/// Whether a token is an assertion about a person (ID-JAG) for this client, at this issuer, for this resource.
fn is_assertion(token: &str, issuer: &str, client: &str, resource: &str) -> bool {
    let part = |at: usize| -> Option<Value> {
        let bytes = URL_SAFE_NO_PAD.decode(token.split('.').nth(at)?).ok()?;
        serde_json::from_slice(&bytes).ok()
    };
    let (Some(head), Some(claims)) = (part(0), part(1)) else {
        return false;
    };
    head["typ"] == "oauth-id-jag+jwt"
        && claims["aud"] == issuer
        && claims["client_id"] == client
        && claims["resource"] == resource
}

/// The client that signed an assertion for `issuer` (RFC 7523, section 3). `None` if the assertion is invalid.
fn signer(assertion: &str, issuer: &str, key: &[u8]) -> Option<String> {
    let (message, signature) = assertion.rsplit_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    let key =
        ring::signature::UnparsedPublicKey::new(&ring::signature::ECDSA_P256_SHA256_FIXED, key);
    key.verify(message.as_bytes(), &signature).ok()?;
    let claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(message.split('.').nth(1)?).ok()?).ok()?;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .ok()?
        .as_secs();
    let is_good = claims["iss"] == claims["sub"]
        && claims["aud"] == issuer
        && claims["iat"].as_u64()? <= now
        && (now..now + 600).contains(&claims["exp"].as_u64()?)
        && claims["jti"].as_str().is_some_and(|id| id.len() > 10);
    claims["sub"]
        .as_str()
        .filter(|_| is_good)
        .map(str::to_owned)
}

/// A login that waits for its browser.
pub(crate) struct Login {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
    /// The URL of the login page.
    pub(crate) url: String,
}

impl Login {
    /// Starts `mcpzip login web` and waits for the URL of the login page.
    #[track_caller]
    pub(crate) fn start(setup: &Setup, more: &[&str]) -> Self {
        Self::start_with(setup, &[&["login", "web"], more].concat())
    }

    /// Starts `mcpzip login` with any arguments and waits for the URL of the login page.
    #[track_caller]
    pub(crate) fn start_with(setup: &Setup, arguments: &[&str]) -> Self {
        setup.save();
        let mut command = setup.command(arguments);
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let url = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended: {said}");
            said.push_str(&line);
            if line.starts_with("http") {
                break line.trim().to_owned();
            }
        };
        Self {
            child,
            stderr,
            said,
            url,
        }
    }

    /// Opens the page like a browser. Returns the last page.
    #[track_caller]
    pub(crate) fn browse(&self) -> String {
        browse(&self.url)
    }

    /// Writes a line to the command's prompt.
    pub(crate) fn paste(&mut self, text: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{text}").unwrap();
    }

    /// Starts `mcpzip login web` without waiting.
    pub(crate) fn spawn(setup: &Setup) -> Child {
        setup.save();
        setup.command(&["login", "web"]).spawn().unwrap()
    }

    /// Kills the command.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end of the command.
    #[track_caller]
    pub(crate) fn end(mut self) -> Outcome {
        let status = until("the login to end", || self.child.try_wait().unwrap());
        let mut stdout = String::new();
        self.child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut stdout)
            .unwrap();
        self.stderr.read_to_string(&mut self.said).unwrap();
        Outcome::of("mcpzip login web", status.code(), stdout, self.said)
    }
}

/// Logs in at `web`. Returns the command's output.
#[track_caller]
pub(crate) fn log_in(setup: &Setup) -> Value {
    let login = Login::start(setup, &[]);
    let page = login.browse();
    let outcome = login.end().code(0);
    assert!(page.contains("logged in"), "{page}");
    outcome.json()
}

/// Kills a session with four calls in progress after `delay` milliseconds. Returns what `auth status` then prints.
#[track_caller]
pub(crate) fn status_after_kill(setup: &Setup, delay: u64) -> Value {
    let mut client = setup.connect();
    client.execute("web__t").text();
    let calls: Vec<_> = (0..4).map(|_| client.begin_execute("web__u")).collect();
    std::thread::sleep(Duration::from_millis(delay));
    drop((client, calls));
    setup.run(&["auth", "status"]).code(0).json()
}

/// Gets a page and follows its redirects.
#[track_caller]
pub(crate) fn browse(url: &str) -> String {
    let page = get(url);
    match location(&page) {
        Some(next) => browse(&next),
        None => page,
    }
}

/// The `Location` of a redirect.
pub(crate) fn location(page: &str) -> Option<String> {
    let lines = page.split("\r\n").take_while(|line| !line.is_empty());
    lines
        .filter_map(|line| line.strip_prefix("location: "))
        .map(str::to_owned)
        .next()
}

/// Gets a page.
#[track_caller]
pub(crate) fn get(url: &str) -> String {
    let url = Url::parse(url).unwrap();
    let mut stream = TcpStream::connect((url.host_str().unwrap(), url.port().unwrap())).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let query = url
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();
    let head = format!(
        "GET {}{query} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
        url.path(),
        url.authority()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut page = Vec::new();
    // The scripted server keeps connections open, so the length tells where a page ends.
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&page).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |n| n.parse().unwrap());
            if body.len() >= length {
                return text;
            }
        }
        match stream.read(&mut buffer).unwrap() {
            0 => return text,
            count => page.extend_from_slice(&buffer[..count]),
        }
    }
}
