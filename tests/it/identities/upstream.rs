//! Servers that are used in the name of each person: by a name, an assertion, a token got in exchange, or the person's own login.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use reqwest::Url;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};

use super::issued::{Issuer, Key, now, with};
use super::{As as _, Session, execute, said, token};
use crate::support::authority::{self, Authority, Manner, get, location};
use crate::support::gateway::{Call, Gateway};
use crate::support::http::{HttpServer, Reply, Request};
use crate::support::identity_provider::{Conduct, IdentityProvider};
use crate::support::{Server, Setup, until};

/// A server that tells each person apart, and notes what crosses from one to another.
struct Apart {
    web: HttpServer,
    crossed: Arc<Mutex<Vec<String>>>,
}

impl Apart {
    /// The person of a request is found by `who`; requests of others are refused.
    fn start(who: impl Fn(&Request) -> Option<String> + Send + Sync + 'static) -> Self {
        let crossed: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = crossed.clone();
        let web = HttpServer::start(move |request, reply| match who(request) {
            None => reply.whole("401 Unauthorized", "www-authenticate: Bearer\r\n", "no one"),
            Some(person) => {
                let session = request.header("mcp-session-id");
                if !session.is_empty() && session != format!("session-{person}") {
                    let found = format!("{person} in {session}: {}", request.text);
                    noted.lock().push(found);
                }
                serve(&person, request, reply);
            }
        });
        Self { web, crossed }
    }

    #[track_caller]
    fn has_kept_them_apart(&self) {
        let crossed = self.crossed.lock().clone();
        assert!(crossed.is_empty(), "{crossed:#?}");
    }
}

fn serve(person: &str, request: &Request, reply: &mut Reply) {
    let answer = match request.rpc() {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {}, "resources": { "subscribe": true }, "prompts": {}, "logging": {} },
                "serverInfo": { "name": "apart", "version": "1" },
                "instructions": format!("for {person}"),
            });
            let headers =
                format!("content-type: application/json\r\nmcp-session-id: session-{person}\r\n");
            return reply.whole("200 OK", &headers, &request.answer(&result));
        }
        "tools/list" => {
            let tool = |name: &str| json!({ "name": name, "description": format!("{name} of {person}"), "inputSchema": { "type": "object" } });
            json!({ "tools": [tool("t"), tool("long"), tool(&format!("only_{person}"))] })
        }
        "tools/call" if request.body["params"]["name"] == "long" => {
            let text = format!("{person} ").repeat(1000);
            json!({ "content": [{ "type": "text", "text": text }] })
        }
        "tools/call" => {
            json!({ "content": [{ "type": "text", "text": format!("I am {person}") }] })
        }
        "resources/list" => {
            json!({ "resources": [{ "uri": format!("apart://{person}/own"), "name": person }, { "uri": "apart://all/one", "name": "one" }] })
        }
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/read" => {
            let uri = &request.body["params"]["uri"];
            json!({ "contents": [{ "uri": uri, "text": format!("read by {person}") }] })
        }
        "prompts/list" => {
            json!({ "prompts": [{ "name": format!("prompt_{person}") }, { "name": "prompt" }] })
        }
        "prompts/get" => {
            json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": format!("asked by {person}") } }] })
        }
        "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" | "ping" => json!({}),
        "GET" => return reply.whole("405 Method Not Allowed", "", ""),
        _ => return reply.whole("202 Accepted", "", ""),
    };
    reply.json(&request.answer(&answer));
}

/// A gateway of tokens with one server.
fn setup(server: &HttpServer, members: Value) -> Setup {
    Setup::new()
        .alone()
        .entry("apart", &server.entry(members))
        .setting("search", json!({ "semantic": false }))
        .setting("expose", json!({ "prompts": true, "resources": true }))
        .setting("results", json!({ "budget": 1000, "kept_for": "1h" }))
        .setting("audit", json!({}))
        .setting("http", json!({ "auth": "tokens", "metrics": true }))
        .setting("roles", json!({ "all": { "profiles": ["*"] } }))
}

fn named(request: &Request) -> Option<String> {
    let name = request.header("x-user");
    (!name.is_empty()).then(|| name.to_owned())
}

fn ask(gateway: &Gateway, method: &str, members: &str, token: &str) -> String {
    let call = gateway.modern(method, members).by(token);
    let params: Value = serde_json::from_str(&format!("{{{members}}}")).unwrap();
    match params["uri"].as_str() {
        Some(uri) => call.header("Mcp-Name", uri).send().body,
        None => call.send().body,
    }
}

fn search(gateway: &Gateway, query: &str, token: &str) -> String {
    let members = format!(r#""name":"search_tools","arguments":{{"query":"{query}"}}"#);
    said(gateway.modern("tools/call", &members).by(token))
}

/// Tries each way across between two people, in both directions.
#[track_caller]
fn are_apart(gateway: &Gateway, people: [(&str, &str); 2]) {
    for (name, credential) in people {
        until("the tools to be known", || {
            let hits = search(gateway, "only", credential);
            hits.contains(&format!("only_{name}")).then_some(())
        });
    }
    let mut stored = Vec::new();
    for ((name, credential), (other, _)) in [(people[0], people[1]), (people[1], people[0])] {
        let is_own = |what: &str, text: &str| {
            assert!(!text.contains(other), "{what} of {name}: {text}");
        };
        let call = execute(gateway, "apart__t", credential);
        assert_eq!(call, format!("200 I am {name}"));
        let theirs = execute(gateway, &format!("apart__only_{other}"), credential);
        assert!(theirs.contains("there is no tool"), "{theirs}");
        for query in ["only", "t", "long", other] {
            is_own(
                "search",
                &search(gateway, query, credential).replace(&format!("`{other}`"), ""),
            );
        }
        let describe = r#""name":"describe_tools","arguments":{"names":["apart__t"]}"#;
        is_own(
            "describe",
            &ask(gateway, "tools/call", describe, credential),
        );
        for method in [
            "resources/list",
            "prompts/list",
            "tools/list",
            "server/discover",
        ] {
            let text = ask(gateway, method, "", credential);
            is_own(method, &text);
        }
        let read = ask(
            gateway,
            "resources/read",
            r#""uri":"apart://all/one""#,
            credential,
        );
        assert!(read.contains(&format!("read by {name}")), "{read}");
        let prompt = ask(gateway, "prompts/get", r#""name":"prompt""#, credential);
        assert!(prompt.contains(&format!("asked by {name}")), "{prompt}");
        let status = execute(gateway, "mcpzip__status", credential);
        is_own("status", &status);
        let session = Session::open(gateway, credential);
        let call = said(session.execute(gateway, "apart__t", credential));
        assert_eq!(call, format!("200 I am {name}"));
        let uri = r#"{"uri":"apart://all/one"}"#;
        let _ = session
            .request(gateway, "resources/subscribe", uri, credential)
            .send();
        let cut = said(session.execute(gateway, "apart__long", credential));
        is_own("long", &cut);
        let id = cut.split(r#""id":""#).nth(1).expect("it is stored");
        stored.push(id.split('"').next().unwrap().to_owned());
    }
    // Results that are kept beyond a session.
    for (index, (name, credential)) in people.into_iter().enumerate() {
        let read = |id: &str| {
            let arguments =
                format!(r#"{{"name":"mcpzip__read_result","arguments":{{"id":"{id}"}}}}"#);
            let members = format!(r#""name":"execute_tool","arguments":{arguments}"#);
            said(gateway.modern("tools/call", &members).by(credential))
        };
        assert!(
            read(&stored[index]).contains(name),
            "{}",
            read(&stored[index])
        );
        let other = read(&stored[1 - index]);
        assert!(other.contains("there is no stored result"), "{other}");
    }
}

/// What a session without an identity gets: words, and no request to the server.
#[track_caller]
fn nobody_is_refused(setup: &Setup, server: &HttpServer) {
    let before = server.requests().len();
    let mut client = setup.connect();
    let text = client.execute("apart__t").text();
    assert!(text.contains("in the name of each person"), "{text}");
    client.finish();
    let call = setup.run(&["call", "apart__t"]);
    assert!(
        format!("{call}").contains("in the name of each person"),
        "{call}"
    );
    assert_eq!(server.requests().len(), before, "nothing was sent");
}

#[test]
fn a_server_that_gets_the_name_serves_each_person_apart() {
    let apart = Apart::start(named);
    let forward = json!({ "identity": { "forward": { "header": "X-User" } }, "headers": { "X-Gateway": "ours" } });
    let setup = setup(&apart.web, forward);
    let anna = token(&setup, &["anna", "--role", "all"]);
    let bob = token(&setup, &["bob", "--role", "all"]);
    let gateway = setup.serve(&[]);
    are_apart(&gateway, [("anna", &anna), ("bob", &bob)]);
    apart.has_kept_them_apart();
    let all = apart.web.requests();
    assert!(
        all.iter()
            .all(|request| request.header("x-gateway") == "ours")
    );
    assert!(
        all.iter().all(|request| named(request).is_some()),
        "no request without a name"
    );
    drop(gateway);
    nobody_is_refused(&setup, &apart.web);
    // The lists that are kept on disk are each person's own, too.
    let gateway = setup.serve(&[]);
    are_apart(&gateway, [("bob", &bob), ("anna", &anna)]);
    apart.has_kept_them_apart();
}

#[test]
fn the_list_of_one_person_is_none_of_another_who_has_none() {
    // The server refuses bob, so that he has no list of his own.
    let apart = Apart::start(|request| named(request).filter(|name| name != "bob"));
    let forward = json!({ "identity": { "forward": { "header": "X-User" } } });
    let setup = setup(&apart.web, forward);
    let anna = token(&setup, &["anna", "--role", "all"]);
    let bob = token(&setup, &["bob", "--role", "all"]);
    let sees_nothing = |gateway: &Gateway| {
        for query in ["only", "anna", "t"] {
            let hits = search(gateway, query, &bob).replace("`anna`", "");
            assert!(!hits.contains("anna"), "{hits}");
        }
        for method in [
            "tools/list",
            "resources/list",
            "prompts/list",
            "server/discover",
        ] {
            let text = ask(gateway, method, "", &bob);
            assert!(!text.contains("anna"), "{method}: {text}");
        }
    };
    let gateway = setup.serve(&[]);
    until("the tools of anna to be known", || {
        let hits = search(&gateway, "only", &anna);
        hits.contains("only_anna").then_some(())
    });
    sees_nothing(&gateway);
    drop(gateway);
    let gateway = setup.serve(&[]);
    sees_nothing(&gateway);
}

/// The claims of an assertion for `audience`, checked with the published keys.
#[track_caller]
fn claims(jwt: &str, keys: &Value, audience: &str) -> Value {
    let part = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
    let parts: Vec<&str> = jwt.split('.').collect();
    let head: Value = serde_json::from_slice(&part(parts[0])).unwrap();
    let key = keys["keys"].as_array().unwrap().iter();
    let key = key.clone().find(|key| key["kid"] == head["kid"]).unwrap();
    assert_eq!(head["alg"], "ES256");
    let coordinate = |name: &str| part(key[name].as_str().unwrap());
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    let message = format!("{}.{}", parts[0], parts[1]);
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(message.as_bytes(), &part(parts[2]))
        .expect("the signature is good");
    let claims: Value = serde_json::from_slice(&part(parts[1])).unwrap();
    assert_eq!(claims["aud"], audience);
    let life = claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap();
    assert!(
        life <= 60 && claims["exp"].as_u64().unwrap() >= now(),
        "{claims}"
    );
    claims
}

/// The person in the body of a JWT, without a check.
fn subject(jwt: &str) -> Option<String> {
    let body = URL_SAFE_NO_PAD.decode(jwt.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&body).ok()?;
    claims["sub"].as_str().map(str::to_owned)
}

#[test]
fn an_assertion_is_signed_and_short_and_its_key_is_published() {
    let apart = Apart::start(|request| subject(request.header("x-who")));
    let identity = json!({ "identity": { "forward": { "header": "X-Who", "as": "assertion", "audience": "apart" } } });
    let setup = setup(&apart.web, identity);
    let anna = token(&setup, &["anna", "--role", "all"]);
    let bob = token(&setup, &["bob", "--role", "all"]);
    let gateway = setup.serve(&[]);
    are_apart(&gateway, [("anna", &anna), ("bob", &bob)]);
    apart.has_kept_them_apart();
    let keys = gateway.call("GET", "/.well-known/mcpzip-keys.json").send();
    assert_eq!(keys.status, 200);
    let keys: Value = serde_json::from_str(&keys.body).unwrap();
    assert!(!keys.to_string().contains("\"d\""), "{keys}");
    let shown = apart.web.requests();
    let shown: Vec<&str> = shown.iter().map(|one| one.header("x-who")).collect();
    for jwt in &shown {
        let claims = claims(jwt, &keys, "apart");
        let name = claims["sub"].as_str().unwrap();
        assert_eq!(claims["identity"], format!("token:{name}"));
        assert_eq!(claims["roles"], json!(["all"]));
        assert_eq!(claims["iss"], format!("http://{}", gateway.address()));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let key = setup.home().path("state/identity.key");
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    drop(gateway);
    nobody_is_refused(&setup, &apart.web);
}

/// A token endpoint that exchanges tokens (RFC 8693), and the requests that it got.
struct Exchanger {
    web: HttpServer,
    given: Arc<Mutex<BTreeMap<String, String>>>,
}

fn form(text: &str) -> BTreeMap<String, String> {
    let url = Url::parse(&format!("http://form?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

impl Exchanger {
    fn start() -> Self {
        let given: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
        let known = given.clone();
        let web = HttpServer::start(move |request, reply| {
            let fields = form(&request.text);
            let basic = STANDARD.encode("gateway:the-exchange-secret");
            let is_right = request.header("authorization") == format!("Basic {basic}")
                && fields["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
                && fields["subject_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
                && fields["audience"] == "apart"
                && fields["scope"] == "read write";
            let person = subject(&fields["subject_token"]).unwrap_or_default();
            let refuse = |reply: &mut Reply, code: &str| {
                let body = json!({ "error": code, "error_description": format!("not {} {}", fields["subject_token"], request.header("authorization")) });
                let kind = "content-type: application/json\r\n";
                reply.whole("400 Bad Request", kind, &body.to_string());
            };
            match person.as_str() {
                _ if !is_right => refuse(reply, "invalid_client"),
                "mallory" => refuse(reply, "invalid_grant"),
                "echo" => {
                    let body = json!({ "access_token": fields["subject_token"], "token_type": "Bearer", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" });
                    reply.json(&body.to_string());
                }
                "refresh" => {
                    let body = json!({ "access_token": "r", "token_type": "N_A", "issued_token_type": "urn:ietf:params:oauth:token-type:refresh_token" });
                    reply.json(&body.to_string());
                }
                _ => {
                    let mut known = known.lock();
                    let token = format!("exchanged-{person}-{}", known.len());
                    known.insert(token.clone(), person);
                    let body = json!({ "access_token": token, "token_type": "Bearer", "expires_in": 600, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" });
                    reply.json(&body.to_string());
                }
            }
        });
        Self { web, given }
    }

    fn identity(&self) -> Value {
        json!({ "identity": { "exchange": {
            "token_url": self.web.url("/token"), "client_id": "gateway", "client_secret": "the-exchange-secret",
            "audience": "apart", "scope": "read write", "actor": true,
        } } })
    }
}

#[test]
fn a_token_is_got_in_exchange_for_each_persons_own() {
    let key = Key::new("one");
    let issuer = Issuer::start(&[&key]);
    let exchanger = Exchanger::start();
    let given = exchanger.given.clone();
    let apart = Apart::start(move |request| {
        let token = request.header("authorization").strip_prefix("Bearer ")?;
        given.lock().get(token).cloned()
    });
    let setup = setup(&apart.web, exchanger.identity());
    let oauth = json!({ "issuer": issuer.url(), "audience": "https://mcp.example.com/mcp", "jwks_url": issuer.keys() });
    let auth = json!({ "oauth": oauth, "tokens": true });
    let setup = setup.setting("http", json!({ "auth": auth, "metrics": true }));
    let setup = setup.setting(
        "roles",
        json!({ "all": { "profiles": ["*"], "groups": ["developers"] } }),
    );
    let token_of = |name: &str| key.token(&issuer.members(name));
    let (anna, bob) = (token_of("anna"), token_of("bob"));
    let by_hand = token(&setup, &["anna", "--role", "all"]);
    let gateway = setup.serve(&[]);
    are_apart(&gateway, [("anna", &anna), ("bob", &bob)]);
    apart.has_kept_them_apart();
    // One exchange each, with an actor that the gateway has signed.
    let exchanges = exchanger.web.requests();
    assert_eq!(exchanges.len(), 2, "{exchanges:#?}");
    let keys = gateway.call("GET", "/.well-known/mcpzip-keys.json").send();
    let keys: Value = serde_json::from_str(&keys.body).unwrap();
    for exchange in &exchanges {
        let fields = form(&exchange.text);
        assert_eq!(
            fields["actor_token_type"],
            "urn:ietf:params:oauth:token-type:jwt"
        );
        let actor = claims(&fields["actor_token"], &keys, &exchanger.web.url("/token"));
        assert_eq!(
            (&actor["sub"], &actor["iss"]),
            (&json!("gateway"), &json!("https://mcp.example.com"))
        );
    }
    // A token that the server refuses is got anew, once.
    exchanger.given.lock().retain(|_, person| person != "anna");
    assert_eq!(execute(&gateway, "apart__t", &anna), "200 I am anna");
    assert_eq!(exchanger.web.requests().len(), 3);
    // A token of the person with other scopes or for another client gets a token of its own.
    let narrow = key.token(&with(&issuer.members("anna"), "scope", json!("mcp")));
    assert_eq!(execute(&gateway, "apart__t", &narrow), "200 I am anna");
    let elsewhere = key.token(&with(&issuer.members("anna"), "client_id", json!("other")));
    assert_eq!(execute(&gateway, "apart__t", &elsewhere), "200 I am anna");
    assert_eq!(exchanger.web.requests().len(), 5);
    let fields: Vec<_> = exchanger
        .web
        .requests()
        .iter()
        .map(|one| form(&one.text))
        .collect();
    assert_eq!(
        (&fields[3]["subject_token"], &fields[4]["subject_token"]),
        (&narrow, &elsewhere)
    );
    // Without a token of the issuer, or when the exchange is refused, nothing is sent.
    let before = apart.web.count("tools/call");
    for (credential, words) in [
        (&by_hand, "no access token of the person"),
        (&token_of("mallory"), "was not exchanged"),
        (&token_of("echo"), "person's own token"),
        (&token_of("refresh"), "was not exchanged"),
    ] {
        let said = execute(&gateway, "apart__t", credential);
        assert!(said.contains(words), "{said}");
        assert!(!said.contains("I am"), "{said}");
        let secret = STANDARD.encode("gateway:the-exchange-secret");
        assert!(!said.contains(&secret), "{said}");
    }
    assert_eq!(apart.web.count("tools/call"), before);
    let metrics = gateway.call("GET", "/metrics").by(&by_hand).send().body;
    assert!(
        metrics.contains(r#"mcpzip_identity_total{what="exchange",outcome="ok"} 5"#),
        "{metrics}"
    );
    drop(gateway);
    nobody_is_refused(&setup, &apart.web);
    // No token is written down anywhere.
    let state = everything(&setup);
    let exchanged: Vec<String> = exchanger.given.lock().keys().cloned().collect();
    for secret in exchanged
        .iter()
        .chain([&anna, &bob])
        .map(String::as_str)
        .chain(["the-exchange-secret"])
    {
        let found = state.iter().filter(|(_, text)| text.contains(secret));
        let found: Vec<_> = found
            .map(|(path, _)| path)
            .filter(|path| !path.contains("config"))
            .collect();
        assert!(found.is_empty(), "{secret} is in {found:?}");
    }
}

/// All files of a home as text.
fn everything(setup: &Setup) -> Vec<(String, String)> {
    let listing = setup.home().listing();
    let paths = listing.lines().filter_map(|line| line.split_once(" /"));
    let paths = paths.map(|(_, path)| format!("/{path}"));
    let read = |path: String| {
        let bytes = std::fs::read(&path).unwrap_or_default();
        (path, String::from_utf8_lossy(&bytes).into_owned())
    };
    paths.map(read).collect()
}

/// A form of the page, as its browser sends it.
fn submit(gateway: &Gateway, path: &str, fields: &[(&str, &str)]) -> Call {
    let mut url = Url::parse("http://form").unwrap();
    url.query_pairs_mut().extend_pairs(fields);
    gateway
        .call("POST", path)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("Origin", &format!("http://{}", gateway.address()))
        .body(url.query().unwrap_or_default())
}

/// The mark of the forms on a page.
#[track_caller]
fn mark(page: &str) -> String {
    let after = page
        .split("name=mark value=\"")
        .nth(1)
        .expect("the page has forms");
    after.split('"').next().unwrap().to_owned()
}

/// Begins a login at `web` on the page; returns the URL that the browser comes back to.
#[track_caller]
fn log_in(gateway: &Gateway, token: &str) -> String {
    let page = gateway.call("GET", "/logins").by(token).send();
    assert_eq!(page.status, 200, "{page:?}");
    let fields = [("mark", &*mark(&page.body)), ("server", "web")];
    let onward = submit(gateway, "/logins/begin", &fields).by(token).send();
    assert_eq!(onward.status, 200, "{onward:?}");
    let link = onward.body.split("<a href=\"").nth(1).unwrap();
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    let back = location(&get(&link)).expect("the authorization server sends the browser back");
    let back = Url::parse(&back).unwrap();
    assert_eq!(back.port(), Some(gateway.address().port()));
    format!("{}?{}", back.path(), back.query().unwrap())
}

fn people(authority: &Authority) -> Setup {
    of_people(authority.setup(json!({ "identity": "per_user" })))
}

/// A gateway of people.
fn of_people(setup: Setup) -> Setup {
    setup
        .alone()
        .setting("search", json!({ "semantic": false }))
        .setting("audit", json!({}))
        .setting("http", json!({ "auth": "tokens", "metrics": true }))
        .setting("roles", json!({ "all": { "profiles": ["*"] } }))
}

#[test]
fn each_person_logs_in_once_at_the_identity_provider() {
    let provider = IdentityProvider::start(Conduct::default());
    let authority = Authority::start(Manner {
        method: "client_secret_basic",
        known: Some(("me", "hand-made-secret")),
        ..Manner::default()
    });
    let members = json!({ "identity": "per_user", "oauth": provider.oauth("hand-made-secret") });
    let two = authority.web.entry(members.clone());
    let setup = of_people(authority.setup(members).entry("two", &two));
    let anna = token(&setup, &["anna", "--role", "all"]);
    let bob = token(&setup, &["bob", "--role", "all"]);
    let gateway = setup.serve(&[]);
    assert!(execute(&gateway, "web__t", &anna).contains("login needed"));
    let back = log_in(&gateway, &anna);
    assert_eq!(gateway.call("GET", &back).by(&anna).send().status, 303);
    for tool in ["web__t", "two__t"] {
        until("anna's login to be noticed", || {
            (execute(&gateway, tool, &anna) == "200 fine").then_some(())
        });
        assert!(
            execute(&gateway, tool, &bob).contains("login needed"),
            "{tool}"
        );
    }
    assert_eq!(provider.known().logins, 1);
    for (path, text) in everything(&setup) {
        let secrets = &provider.known().secrets;
        let found = secrets.iter().find(|secret| text.contains(secret.as_str()));
        assert!(
            found.is_none() || path.contains("config"),
            "{found:?} is in {path}"
        );
    }
}

#[test]
fn each_person_logs_in_for_himself_on_the_page() {
    let authority = Authority::start(Manner::default());
    let setup = people(&authority);
    let anna = token(&setup, &["anna", "--role", "all"]);
    let bob = token(&setup, &["bob", "--role", "all"]);
    let gateway = setup.serve(&[]);
    let url = format!("http://{}/logins?server=web", gateway.address());
    let needed = |credential: &str| {
        let said = execute(&gateway, "web__t", credential);
        assert!(
            said.contains(&url) && said.contains("login needed"),
            "{said}"
        );
        assert!(!said.contains("mcpzip login"), "{said}");
    };
    needed(&anna);
    needed(&bob);
    // The page is for those who show who they are, and its forms are its own.
    let page = gateway.call("GET", "/logins?server=web").send();
    assert_eq!(
        (page.status, page.body.contains("type=password")),
        (401, true)
    );
    let policy = page.header("content-security-policy");
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert_eq!(page.header("cache-control"), "no-store");
    let page = gateway.call("GET", "/logins").by(&anna).send();
    assert!(
        page.body.contains("not logged in") && page.body.contains("anna"),
        "{page:?}"
    );
    let own = mark(&page.body);
    let fields = [("mark", &*own), ("server", "web")];
    let foreign =
        submit(&gateway, "/logins/begin", &fields).header("Origin", "https://evil.example.com");
    assert_eq!(foreign.by(&anna).send().status, 403);
    let bare = submit(&gateway, "/logins/begin", &fields)
        .without("Origin")
        .by(&anna);
    assert_eq!(bare.send().status, 403);
    for (mark, credential) in [("", &anna), ("x", &anna), (&*own, &bob)] {
        let fields = [("mark", mark), ("server", "web")];
        let form = submit(&gateway, "/logins/begin", &fields).by(credential);
        assert_eq!(form.send().status, 403, "{mark}");
    }
    let nothing = submit(
        &gateway,
        "/logins/begin",
        &[("mark", &*own), ("server", "none")],
    );
    assert_eq!(nothing.by(&anna).send().status, 404);
    assert_eq!(
        submit(&gateway, "/logins/begin", &fields).send().status,
        401
    );
    // A login belongs to the one who began it.
    let back = log_in(&gateway, &anna);
    assert_eq!(gateway.call("GET", &back).send().status, 401);
    assert_eq!(gateway.call("GET", &back).by(&bob).send().status, 403);
    needed(&bob);
    needed(&anna);
    let done = gateway.call("GET", &back).by(&anna).send();
    assert_eq!(
        (done.status, done.header("location")),
        (303, "../logins?server=web")
    );
    assert_eq!(
        gateway.call("GET", &back).by(&anna).send().status,
        403,
        "it is used up"
    );
    until("anna's login to be noticed", || {
        (execute(&gateway, "web__t", &anna) == "200 fine").then_some(())
    });
    needed(&bob);
    let page = gateway.call("GET", "/logins").by(&bob).send();
    assert!(page.body.contains("not logged in"), "{page:?}");
    let back = log_in(&gateway, &bob);
    assert_eq!(gateway.call("GET", &back).by(&bob).send().status, 303);
    until("bob's login to be noticed", || {
        (execute(&gateway, "web__t", &bob) == "200 fine").then_some(())
    });
    // Each call has the token of its person.
    let used = |credential: &str| {
        let before = authority.web.requests().len();
        assert_eq!(execute(&gateway, "web__t", credential), "200 fine");
        let calls = authority.web.requests().split_off(before);
        let calls = calls.iter().filter(|call| call.rpc() == "tools/call");
        calls
            .map(|call| call.header("authorization").to_owned())
            .collect::<Vec<_>>()
    };
    let (hers, his) = (used(&anna), used(&bob));
    assert!(
        hers != his && hers == used(&anna) && his == used(&bob),
        "{hers:?} {his:?}"
    );
    // Nothing of it is readable on disk, and no login serves another person.
    for (path, text) in everything(&setup) {
        authority.is_silent(&path, &text);
    }
    let logins = setup.home().path("state/logins/people");
    let files = std::fs::read_dir(&logins)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    assert_eq!(files.len(), 2, "{files:?}");
    std::fs::copy(&files[0], &files[1]).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let after: Vec<String> = [&anna, &bob]
        .map(|one| execute(&gateway, "web__t", one))
        .into();
    assert_eq!(
        after.iter().filter(|said| *said == "200 fine").count(),
        1,
        "{after:?}"
    );
    // The end of a login.
    let theirs = if after[0] == "200 fine" { &anna } else { &bob };
    let page = gateway.call("GET", "/logins").by(theirs).send();
    let fields = [("mark", &*mark(&page.body)), ("server", "web")];
    let ended = submit(&gateway, "/logins/end", &fields).by(theirs).send();
    assert_eq!(ended.status, 303, "{ended:?}");
    until("the end of the login to be noticed", || {
        execute(&gateway, "web__t", theirs)
            .contains("login needed")
            .then_some(())
    });
    let lines = setup.run(&["audit", "--json"]).code(0).stdout;
    let logins = lines
        .lines()
        .filter(|line| line.contains(r#""kind":"login""#));
    let logins: Vec<Value> = logins
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(logins.len(), 3, "{logins:?}");
    assert!(
        logins.iter().all(|line| line["identity"]
            .as_str()
            .is_some_and(|it| it.starts_with("token:"))),
        "{logins:?}"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let key = setup.home().path("state/people.key");
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Without an identity there is no login at all.
    let mut client = setup.connect();
    let text = client.execute("web__t").text();
    assert!(text.contains("in the name of each person"), "{text}");
    client.finish();
    let refused = setup.run(&["login", "web"]).code(1);
    assert!(refused.stderr.contains("/logins"), "{refused}");
}

#[test]
fn the_page_says_which_tokens_a_logout_leaves_valid() {
    for (endpoint, words) in [
        (
            json!("http://127.0.0.1:9/revoke"),
            "`http://127.0.0.1:9/revoke`",
        ),
        (json!(null), "revokes no tokens of this login"),
    ] {
        let authority = Authority::start(Manner {
            metadata: json!({ "revocation_endpoint": endpoint }),
            ..Manner::default()
        });
        let setup = people(&authority);
        let anna = token(&setup, &["anna", "--role", "all"]);
        let gateway = setup.serve(&[]);
        logged_in(&gateway, &anna);
        let page = gateway.call("GET", "/logins").by(&anna).send();
        let fields = [("mark", &*mark(&page.body)), ("server", "web")];
        let ended = submit(&gateway, "/logins/end", &fields).by(&anna).send();
        assert_eq!(ended.status, 200, "{ended:?}");
        for words in [
            "logged out of <b>web</b>",
            "stay valid until they end",
            words,
        ] {
            assert!(ended.body.contains(words), "{words}: {ended:?}");
        }
        let page = gateway.call("GET", "/logins").by(&anna).send();
        assert!(page.body.contains("not logged in"), "{page:?}");
    }
}

#[test]
fn people_read_whom_to_ask_about_a_server_and_no_command() {
    let authority = Authority::start(Manner::default());
    let apart = Apart::start(named);
    let forward = json!({ "identity": { "forward": { "header": "X-User" } } });
    let keys = HttpServer::start(|request, reply| match request.path.as_str() {
        "/mcp" => reply.whole("401 Unauthorized", "", "an API key, please"),
        _ => reply.whole("404 Not Found", "", ""),
    });
    let setup = of_people(authority.setup(json!({})))
        .entry("apart", &apart.web.entry(forward))
        .entry("keys", &keys.entry(json!({ "identity": "per_user" })))
        .entry(
            "bad",
            r#"{ "command": "bad", "env": { "K": "${NO_SUCH}" } }"#,
        )
        // Without a closing backtick, this would reach into the text of the next server.
        .server("evil", Server::new().entry(r#"{ "name": "a", "description": "Reads nonsense quickly with `mcpzip x fast", "inputSchema": {} }"#))
        .server("good", Server::new().entry(r#"{ "name": "b", "description": "Reads nonsense in `p`; see `mcpzip doctor`.", "inputSchema": {} }"#))
        .setting("expose", json!({ "prompts": true }));
    authority::log_in(&setup);
    let anna = token(&setup, &["anna", "--role", "all"]);
    let gateway = setup.serve(&[]);
    let asks = |said: &str, words: &str| {
        assert!(said.contains(words), "{words}: {said}");
        assert!(!said.contains("`mcpzip "), "{said}");
    };
    assert_eq!(execute(&gateway, "web__t", &anna), "200 fine");
    let prompt = || ask(&gateway, "prompts/get", r#""name":"prompt""#, &anna);
    until("the prompt to be known", || {
        prompt().contains("asked by anna").then_some(())
    });
    // The login of a server that all share has ended.
    authority.revoke(true);
    let needed =
        "login needed: ask who runs this gateway, because the previous login has ended. Next:";
    asks(&execute(&gateway, "web__t", &anna), needed);
    let several =
        r#""name":"execute_tool","arguments":{"calls":[{"name":"web__t"},{"name":"web__u"}]}"#;
    let several = gateway.modern("tools/call", several).by(&anna).send();
    asks(&several.body, "login needed: ask who runs this gateway");
    // An entry of the configuration cannot be used.
    let unset = "set it where mcpzip is started, ask who runs this gateway, or write";
    asks(&execute(&gateway, "bad__t", &anna), unset);
    until("the tools to be found", || {
        let found = search(&gateway, "nonsense", &anna);
        let has = |text: &str| found.contains(text);
        let is_whole =
            has("with `mcpzip x fast") && has("good__b") && has("in `p`; see `mcpzip doctor`");
        (is_whole && has(unset)).then_some(())
    });
    for tool in ["mcpzip__status", "mcpzip__servers"] {
        asks(&execute(&gateway, tool, &anna), unset);
    }
    // A page of the gateway.
    let page = gateway.call("GET", "/logins").by(&anna).send();
    let fields = [("mark", &*mark(&page.body)), ("server", "keys")];
    let failed = submit(&gateway, "/logins/begin", &fields).by(&anna).send();
    asks(
        &failed.body,
        "it needs a token or a key: ask who runs this gateway",
    );
    // Nothing reaches a server.
    let _ = setup.run(&["daemon", "pause"]).code(0);
    let paused = "until the user resumes it (ask who runs this gateway)";
    asks(&prompt(), paused);
    asks(&execute(&gateway, "web__t", &anna), paused);
}

#[test]
fn a_browser_shows_a_token_once_and_is_out_when_that_ends() {
    let authority = Authority::start(Manner::default());
    let setup = people(&authority);
    let anna = token(&setup, &["anna", "--role", "all"]);
    let gateway = setup.serve(&[]);
    let enter = |token: &str| {
        submit(
            &gateway,
            "/logins/enter",
            &[("token", token), ("server", "web")],
        )
    };
    let wrong = enter("nonsense").send();
    assert_eq!((wrong.status, wrong.header("set-cookie")), (401, ""));
    let foreign = enter(&anna)
        .header("Origin", "http://evil.example.com")
        .send();
    assert_eq!((foreign.status, foreign.header("set-cookie")), (403, ""));
    let entered = enter(&anna).send();
    assert_eq!(
        (entered.status, entered.header("location")),
        (303, "../logins?server=web")
    );
    let cookie = entered.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(&anna));
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let list = || {
        gateway
            .call("GET", "/logins")
            .header("Cookie", &cookie)
            .send()
    };
    let page = list();
    assert!(page.status == 200 && page.body.contains("anna"), "{page:?}");
    // The cookie is for the page alone.
    let call = gateway
        .modern_execute("web__t", "")
        .header("Cookie", &cookie);
    assert_eq!(call.send().status, 401);
    // It is no way to another identity's forms.
    let by_header = gateway.call("GET", "/logins").by(&anna).send();
    let fields = [("mark", &*mark(&by_header.body)), ("server", "web")];
    let crossed = submit(&gateway, "/logins/begin", &fields).header("Cookie", &cookie);
    assert_eq!(crossed.send().status, 403);
    let _ = setup.run(&["token", "revoke", "anna"]).code(0);
    until("the browser to be out", || {
        (list().status == 401).then_some(())
    });
}

#[test]
fn over_https_a_browser_is_known_by_the_cookie_that_no_other_host_can_set() {
    let authority = Authority::start(Manner::default());
    let http = json!({ "auth": "tokens", "public_url": "https://mcp.example.com" });
    let setup = people(&authority).setting("http", http);
    let anna = token(&setup, &["anna", "--role", "all"]);
    let gateway = setup.serve(&[]);
    let entered = submit(&gateway, "/logins/enter", &[("token", &*anna)]).send();
    let cookie = entered.header("set-cookie").split(';').next().unwrap();
    let value = cookie.strip_prefix("__Host-mcpzip-logins=").expect(cookie);
    for (name, status) in [("__Host-mcpzip-logins", 200), ("mcpzip-logins", 401)] {
        let page = gateway.call("GET", "/logins");
        let page = page.header("Cookie", &format!("{name}={value}")).send();
        assert_eq!(page.status, status, "{name}: {page:?}");
    }
}

#[test]
fn a_client_that_opens_urls_is_sent_to_the_page() {
    let authority = Authority::start(Manner::default());
    let setup = people(&authority);
    let anna = token(&setup, &["anna", "--role", "all"]);
    let gateway = setup.serve(&[]);
    let page = format!("http://{}/logins?server=web", gateway.address());
    let call = |more: &str| {
        let able = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}},"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"}}"#;
        let params =
            format!(r#"{{"name":"execute_tool","arguments":{{"name":"web__t"}}{more},{able}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
        let call = gateway
            .post(&body)
            .header("MCP-Protocol-Version", "2026-07-28");
        let call = call
            .header("Mcp-Method", "tools/call")
            .header("Mcp-Name", "execute_tool");
        call.by(&anna).send().body
    };
    let asked: Value = serde_json::from_str(&call("")).unwrap();
    let question = &asked["result"]["inputRequests"]["login"]["params"];
    assert_eq!(
        (&question["mode"], &question["url"]),
        (&json!("url"), &json!(page)),
        "{asked}"
    );
    let state = asked["result"]["requestState"].as_str().unwrap().to_owned();
    let back = log_in(&gateway, &anna);
    assert_eq!(gateway.call("GET", &back).by(&anna).send().status, 303);
    let more =
        format!(r#","inputResponses":{{"login":{{"action":"accept"}}}},"requestState":"{state}""#);
    let answer = call(&more);
    assert!(answer.contains("fine"), "{answer}");
}

#[test]
fn a_name_with_other_characters_than_ascii_is_not_forwarded() {
    let apart = Apart::start(named);
    let forward = json!({ "identity": { "forward": { "header": "X-User" } } });
    let setup = setup(&apart.web, forward);
    let jose = token(&setup, &["josé", "--role", "all"]);
    let gateway = setup.serve(&[]);
    let said = execute(&gateway, "apart__whoami", &jose);
    assert!(!said.starts_with("200 jos"), "{said}");
    let said = search(&gateway, "whoami", &jose);
    assert!(!said.contains("josé"), "{said}");
    let seen = apart.web.requests();
    assert!(seen.is_empty(), "{seen:?}");
    // The other form of the letter would be another name to rules, and the same to people.
    let made = setup.run(&["token", "create", "jose\u{301}", "--role", "all"]);
    assert!(made.code(2).stderr.contains("accents"));
}

/// Logs a person in at `web`, and waits until that is noticed.
#[track_caller]
fn logged_in(gateway: &Gateway, token: &str) {
    let back = log_in(gateway, token);
    assert_eq!(gateway.call("GET", &back).by(token).send().status, 303);
    until("the login to be noticed", || {
        (execute(gateway, "web__t", token) == "200 fine").then_some(())
    });
}

#[test]
fn a_new_person_with_an_old_name_has_none_of_the_old_logins() {
    let authority = Authority::start(Manner::default());
    let setup = people(&authority);
    let old = token(&setup, &["alex", "--role", "all"]);
    let bob = token(&setup, &["bob", "--role", "all"]);
    let gateway = setup.serve(&[]);
    logged_in(&gateway, &old);
    logged_in(&gateway, &bob);
    // Another token of the person keeps the login.
    let second = token(&setup, &["alex", "--role", "all"]);
    let listed = setup.run(&["token", "list", "--json"]).code(0).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(listed[0]["name"], "alex");
    let _ = setup.run(&["token", "revoke", id]).code(0);
    until("the tokens to be read again", || {
        (execute(&gateway, "web__t", &second) == "200 fine").then_some(())
    });
    let _ = setup.run(&["token", "revoke", "alex"]).code(0);
    let new = token(&setup, &["alex", "--role", "all"]);
    until("the login to be gone", || {
        let said = execute(&gateway, "web__t", &new);
        said.contains("login needed").then_some(())
    });
    assert_eq!(execute(&gateway, "web__t", &bob), "200 fine");
    // A token that has expired leaves nothing to the next person either.
    logged_in(&gateway, &new);
    let file = setup.home().path("state/identity/tokens.json");
    let mut written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for token in written["tokens"].as_array_mut().unwrap() {
        if token["name"] == "alex" {
            token["expires"] = json!(now() - 10);
        }
    }
    std::fs::write(&file, written.to_string()).unwrap();
    let next = token(&setup, &["alex", "--role", "all"]);
    until("the login to be gone", || {
        let said = execute(&gateway, "web__t", &next);
        said.contains("login needed").then_some(())
    });
}

#[test]
fn a_login_of_one_issuers_person_is_none_of_another_issuers() {
    let authority = Authority::start(Manner::default());
    let (key, other_key) = (Key::new("one"), Key::new("two"));
    let (issuer, other) = (Issuer::start(&[&key]), Issuer::start(&[&other_key]));
    let by = |issuer: &Issuer| {
        let oauth = json!({ "issuer": issuer.url(), "jwks_url": issuer.keys(), "audience": "https://mcp.example.com/mcp" });
        json!({ "auth": { "oauth": oauth } })
    };
    let all = json!({ "all": { "profiles": ["*"], "groups": ["developers"] } });
    let setup = people(&authority).setting("roles", all);
    let setup = setup.setting("http", by(&issuer));
    // The public URL, by which the browser comes back, is that of the audience: the path is the same.
    let gateway = setup.serve(&[]);
    let hers = key.token(&issuer.members("1001"));
    let page = gateway.call("GET", "/logins").by(&hers).send();
    assert_eq!(page.status, 200, "{page:?}");
    let fields = [("mark", &*mark(&page.body)), ("server", "web")];
    let onward = submit(&gateway, "/logins/begin", &fields).by(&hers).send();
    let link = onward.body.split("<a href=\"").nth(1).unwrap();
    let link = link.split('"').next().unwrap().replace("&amp;", "&");
    let back = Url::parse(&location(&get(&link)).unwrap()).unwrap();
    let back = format!("{}?{}", back.path(), back.query().unwrap());
    assert_eq!(gateway.call("GET", &back).by(&hers).send().status, 303);
    until("the login to be noticed", || {
        (execute(&gateway, "web__t", &hers) == "200 fine").then_some(())
    });
    let setup = setup.setting("http", by(&other));
    setup.save();
    let theirs = other_key.token(&other.members("1001"));
    until("the other issuer to count", || {
        let said = execute(&gateway, "web__t", &theirs);
        assert!(!said.contains("fine"), "{said}");
        said.contains("login needed").then_some(())
    });
    assert!(execute(&gateway, "web__t", &hers).starts_with("401"));
}
