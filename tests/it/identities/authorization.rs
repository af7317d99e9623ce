//! The authorization server of mcpzip itself, by the requests of clients and of a browser.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use reqwest::Url;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::issued::{Key, now};
use super::{Session, execute, roles, setup};
use crate::support::gateway::{Answer, Call, Gateway};
use crate::support::http::HttpServer;
use crate::support::{Setup, until};

const URL: &str = "https://mcp.example.com";
const REDIRECT: &str = "http://127.0.0.1:3333/callback";
const VERIFIER: &str = "a-verifier-of-at-least-forty-three-characters-is-here";

pub(crate) fn with_server(more: &Value) -> Setup {
    let mut server = json!({ "url": URL });
    server
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let auth =
        json!({ "authorization_server": server, "tool_scopes": { "git__push": "git:write" } });
    setup()
        .setting("http", json!({ "auth": auth }))
        .setting("roles", roles())
}

/// A request as a proxy in front passes it on.
pub(crate) fn call(gateway: &Gateway, method: &str, path: &str) -> Call {
    gateway.call(method, path).header("Host", "mcp.example.com")
}

fn form(gateway: &Gateway, path: &str, fields: &[(&str, &str)]) -> Call {
    let mut url = Url::parse("http://form").unwrap();
    url.query_pairs_mut().extend_pairs(fields);
    let body = url.query().unwrap_or_default().to_owned();
    let call = call(gateway, "POST", path).body(&body);
    call.header("Content-Type", "application/x-www-form-urlencoded")
}

fn json_of(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("no JSON: {answer:?}"))
}

#[track_caller]
fn register(gateway: &Gateway, redirects: &[&str]) -> Answer {
    let body = json!({ "client_name": "Editor <b>", "redirect_uris": redirects, "token_endpoint_auth_method": "none" });
    let call = call(gateway, "POST", "/oauth/register").body(&body.to_string());
    call.header("Content-Type", "application/json").send()
}

#[track_caller]
pub(crate) fn registered(gateway: &Gateway) -> String {
    let answer = register(gateway, &[REDIRECT]);
    assert_eq!(answer.status, 201, "{answer:?}");
    json_of(&answer)["client_id"].as_str().unwrap().to_owned()
}

/// A browser with its cookies.
#[derive(Default)]
pub(crate) struct Browser {
    cookies: BTreeMap<String, String>,
}

impl Browser {
    #[track_caller]
    fn send(&mut self, call: Call) -> Answer {
        let cookies = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let cookies = cookies.collect::<Vec<_>>().join("; ");
        let answer = call.header("Cookie", &cookies).send();
        for set in answer.header("set-cookie").lines() {
            let (name, rest) = set.split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            assert!(
                set.contains("HttpOnly") && set.contains("SameSite=Lax") && set.contains("Secure"),
                "{set}"
            );
            self.cookies.insert(name.to_owned(), value.to_owned());
        }
        answer
    }

    /// Opens the invitation at `link` and accepts it.
    #[track_caller]
    pub(crate) fn accept(&mut self, gateway: &Gateway, link: &str) -> Answer {
        let path = link.strip_prefix(URL).expect("it is a link of this server");
        let page = self.send(call(gateway, "GET", path));
        assert_eq!(page.status, 200, "{page:?}");
        let proof = hidden(&page, "proof");
        self.send(form(gateway, path, &[("proof", proof.as_str())]).header("Origin", URL))
    }

    /// Asks for a code; the answer to the request.
    #[track_caller]
    pub(crate) fn authorize(&mut self, gateway: &Gateway, changes: &[(&str, &str)]) -> Answer {
        self.send(call(gateway, "GET", &authorize_path(changes)))
    }

    /// Consents on a page, and returns the members of the redirect.
    #[track_caller]
    pub(crate) fn consent(
        &mut self,
        gateway: &Gateway,
        page: &Answer,
        decision: &str,
    ) -> BTreeMap<String, String> {
        assert_eq!(page.status, 200, "{page:?}");
        let (flow, proof) = (hidden(page, "flow"), hidden(page, "proof"));
        let fields = [
            ("flow", flow.as_str()),
            ("proof", proof.as_str()),
            ("decision", decision),
        ];
        let answer = self.send(form(gateway, "/oauth/consent", &fields).header("Origin", URL));
        assert_eq!(answer.status, 303, "{answer:?}");
        members(answer.header("location"))
    }
}

fn authorize_path(changes: &[(&str, &str)]) -> String {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
    let mut fields = BTreeMap::from([
        ("response_type", "code"),
        ("redirect_uri", REDIRECT),
        ("code_challenge", challenge.as_str()),
        ("code_challenge_method", "S256"),
        ("state", "xyz &=?"),
        ("resource", "https://mcp.example.com/mcp"),
        ("scope", "git:write unknown"),
    ]);
    fields.extend(changes.iter().copied());
    fields.retain(|_, value| !value.is_empty());
    let mut url = Url::parse("http://x/oauth/authorize").unwrap();
    url.query_pairs_mut().extend_pairs(fields);
    format!("{}?{}", url.path(), url.query().unwrap())
}

/// The value of a hidden member of a page's form.
#[track_caller]
fn hidden(page: &Answer, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    let (_, rest) = page
        .body
        .split_once(&start)
        .unwrap_or_else(|| panic!("no {name}: {page:?}"));
    rest.split('"').next().unwrap().to_owned()
}

fn members(location: &str) -> BTreeMap<String, String> {
    let url = Url::parse(location).unwrap();
    let mut members: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
    members.insert(
        "at".to_owned(),
        location.split('?').next().unwrap().to_owned(),
    );
    members
}

pub(crate) fn invite(setup: &Setup, arguments: &[&str]) -> String {
    let made = setup.run(&[&["token", "invite"], arguments].concat());
    made.code(0).stdout.trim().to_owned()
}

#[track_caller]
pub(crate) fn exchange(gateway: &Gateway, client: &str, code: &str) -> Answer {
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", code),
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
        ("resource", "https://mcp.example.com/mcp"),
    ];
    form(gateway, "/oauth/token", &fields).send()
}

#[track_caller]
pub(crate) fn refresh(gateway: &Gateway, client: &str, token: &str) -> Answer {
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("client_id", client),
    ];
    form(gateway, "/oauth/token", &fields).send()
}

/// The access and the refresh token of an answer.
#[track_caller]
pub(crate) fn tokens(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-store");
    let body = json_of(answer);
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

/// Logs a client in, in a browser that is known.
#[track_caller]
fn logged_in(gateway: &Gateway, browser: &mut Browser) -> (String, String, String) {
    let client = registered(gateway);
    let page = browser.authorize(gateway, &[("client_id", client.as_str())]);
    let back = browser.consent(gateway, &page, "allow");
    let (access, refresh) = tokens(&exchange(gateway, &client, &back["code"]));
    (client, access, refresh)
}

#[test]
fn a_person_who_was_invited_lets_a_client_in() {
    let setup = with_server(&json!({}));
    let mut gateway = setup.serve(&[]);
    let answer = gateway.modern_execute("git__log", "").send();
    assert_eq!(answer.status, 401);
    let challenge = answer.header("www-authenticate");
    assert!(
        challenge.contains("https://mcp.example.com/.well-known/oauth-protected-resource/mcp"),
        "{challenge}"
    );
    let resource = call(&gateway, "GET", "/.well-known/oauth-protected-resource/mcp").send();
    assert_eq!(json_of(&resource)["authorization_servers"], json!([URL]));
    let metadata =
        json_of(&call(&gateway, "GET", "/.well-known/oauth-authorization-server").send());
    assert_eq!(metadata["issuer"], URL);
    assert_eq!(
        metadata["code_challenge_methods_supported"],
        json!(["S256"])
    );
    assert_eq!(metadata["client_id_metadata_document_supported"], true);

    // A stranger is shown the way.
    let client = registered(&gateway);
    let mut browser = Browser::default();
    let page = browser.authorize(&gateway, &[("client_id", client.as_str())]);
    assert_eq!(page.status, 403);
    assert!(page.body.contains("for an invitation"), "{page:?}");
    // The stranger cannot run a command there.
    assert!(!page.body.contains("mcpzip token"), "{page:?}");

    let link = invite(&setup, &["anna", "--role", "dev"]);
    let page = browser.accept(&gateway, &link);
    assert!(page.body.contains("You are anna"), "{page:?}");
    // It works once.
    let path = link.strip_prefix(URL).unwrap();
    let again = Browser::default().send(call(&gateway, "GET", path));
    assert_eq!(again.status, 404, "{again:?}");

    let page = browser.authorize(
        &gateway,
        &[
            ("client_id", client.as_str()),
            ("redirect_uri", "http://127.0.0.1:4444/callback"),
        ],
    );
    for expected in [
        "Editor &lt;b&gt;",
        "anna",
        "a program on this computer",
        "git:write",
    ] {
        assert!(page.body.contains(expected), "{expected}: {page:?}");
    }
    assert!(
        !page.body.contains("<script") && !page.body.contains("unknown"),
        "{page:?}"
    );
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-"),
        "{policy}"
    );
    assert!(
        policy.contains("form-action 'self' http://127.0.0.1:4444;")
            && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert_eq!(
        (page.header("x-frame-options"), page.header("cache-control")),
        ("DENY", "no-store")
    );

    let page = browser.authorize(&gateway, &[("client_id", client.as_str())]);
    let back = browser.consent(&gateway, &page, "allow");
    assert_eq!(
        (&*back["at"], &*back["state"], &*back["iss"]),
        (REDIRECT, "xyz &=?", URL)
    );
    let answer = exchange(&gateway, &client, &back["code"]);
    assert_eq!(json_of(&answer)["scope"], "git:write");
    let (access, _) = tokens(&answer);
    assert_eq!(execute(&gateway, "git__log", &access), "200 the log");
    // The role decides, not the scope.
    assert!(!execute(&gateway, "git__push", &access).contains("pushed"));
    assert!(!execute(&gateway, "vault__read", &access).contains("a secret"));

    let listed = setup.run(&["token", "list", "--json"]).code(0).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let kinds: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["browser", "client"]);
    assert_eq!(listed[1]["client"], "Editor <b>");
    let audit = setup.run(&["audit", "--json"]).code(0).stdout;
    for expected in [
        "anna was invited",
        "accepted an invitation",
        "let in Editor",
        "got tokens",
        "person:anna",
    ] {
        assert!(audit.contains(expected), "{expected}: {audit}");
    }
    let stderr = gateway.process().stderr();
    for secret in [
        access.as_str(),
        back["code"].as_str(),
        link.rsplit('/').next().unwrap(),
    ] {
        assert!(
            !stderr.contains(secret) && !audit.contains(secret),
            "{secret} is in a log"
        );
    }
}

#[test]
fn a_refresh_token_counts_once_and_its_reuse_ends_the_family() {
    let setup = with_server(&json!({}));
    let gateway = setup.serve(&[]);
    let mut browser = Browser::default();
    browser.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let (client, access, first) = logged_in(&gateway, &mut browser);
    let (_, second) = tokens(&refresh(&gateway, &client, &first));
    // A client that has not got the answer asks again, and gets the same refresh token.
    let (_, repeated) = tokens(&refresh(&gateway, &client, &first));
    assert_eq!(second, repeated);
    let other = registered(&gateway);
    assert_eq!(
        json_of(&refresh(&gateway, &client[..client.len() - 1], &second))["error"],
        "invalid_grant"
    );
    let (newer, third) = tokens(&refresh(&gateway, &client, &second));
    assert_eq!(execute(&gateway, "git__log", &newer), "200 the log");
    let session = Session::open(&gateway, &newer);
    let mut stream = session.listen(&gateway);
    let _ = other;
    // Two turns later, the first one is stolen.
    let answer = refresh(&gateway, &client, &first);
    assert_eq!(
        (answer.status, &json_of(&answer)["error"]),
        (400, &json!("invalid_grant"))
    );
    assert_eq!(
        json_of(&refresh(&gateway, &client, &third))["error"],
        "invalid_grant"
    );
    while stream.event().is_some() {}
    for token in [&access, &newer] {
        assert!(execute(&gateway, "git__log", token).starts_with("401"));
    }
    let audit = setup.run(&["audit", "--json"]).code(0).stdout;
    assert!(
        audit.contains("was used twice: its grant has ended"),
        "{audit}"
    );
    for wrong in ["", "x", "a.1.b", format!("{third}x").as_str()] {
        assert_eq!(
            json_of(&refresh(&gateway, &client, wrong))["error"],
            "invalid_grant"
        );
    }
}

#[test]
fn a_code_counts_once_for_its_client_with_its_verifier() {
    let setup = with_server(&json!({}));
    let gateway = setup.serve(&[]);
    let mut browser = Browser::default();
    browser.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let client = registered(&gateway);
    let other = json_of(&register(&gateway, &[REDIRECT, "http://localhost/x"]))["client_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut code = || {
        let page = browser.authorize(&gateway, &[("client_id", client.as_str())]);
        browser
            .consent(&gateway, &page, "allow")
            .remove("code")
            .unwrap()
    };
    let right = |code: &str| -> Vec<(&'static str, String)> {
        [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", client.as_str()),
            ("redirect_uri", REDIRECT),
            ("code_verifier", VERIFIER),
        ]
        .map(|(name, value)| (name, value.to_owned()))
        .to_vec()
    };
    for (name, value) in [
        ("code_verifier", ""),
        (
            "code_verifier",
            "another-verifier-of-at-least-forty-three-characters",
        ),
        ("client_id", other.as_str()),
        ("redirect_uri", "http://127.0.0.1:4444/callback"),
        ("resource", "https://other.example.com/mcp"),
    ] {
        let code = code();
        let mut fields = right(&code);
        fields.retain(|(known, _)| *known != name);
        fields.push((name, value.to_owned()));
        let fields: Vec<(&str, &str)> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let answer = form(&gateway, "/oauth/token", &fields).send();
        assert_eq!(answer.status, 400, "{name} {value}: {answer:?}");
        if name != "resource" {
            // Whoever guesses has one attempt.
            assert_eq!(
                exchange(&gateway, &client, &code).status,
                400,
                "{name} {value}"
            );
        }
    }
    let code = code();
    let (access, refresh_token) = tokens(&exchange(&gateway, &client, &code));
    assert_eq!(execute(&gateway, "git__log", &access), "200 the log");
    // The second use ends what the first one gave.
    assert_eq!(exchange(&gateway, &client, &code).status, 400);
    assert_eq!(refresh(&gateway, &client, &refresh_token).status, 400);
    until("the access token to end", || {
        execute(&gateway, "git__log", &access)
            .starts_with("401")
            .then_some(())
    });
}

#[test]
fn requests_that_are_wrong_are_refused_where_that_is_safe() {
    let setup =
        with_server(&json!({ "redirects": ["https://app.example.com/cb", "cursor://app/cb"] }));
    let gateway = setup.serve(&[]);
    let mut browser = Browser::default();
    browser.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    for redirect in [
        "https://app.example.com/cb",
        "cursor://app/cb",
        "http://localhost:1/x",
        "http://[::1]:1/x",
    ] {
        assert_eq!(register(&gateway, &[redirect]).status, 201, "{redirect}");
    }
    for redirect in [
        "https://evil.example.com/cb",
        "https://app.example.com/cb/",
        "https://app.example.com/cb#x",
        "http://app.example.com/cb",
        "javascript:alert(1)",
        "http://127.0.0.1.example.com/",
        "http://me@127.0.0.1/",
        "http://10.0.0.1/x",
        "vscode://x",
        "",
        "data:text/html,x",
    ] {
        let answer = register(&gateway, &[REDIRECT, redirect]);
        assert_eq!(
            (answer.status, &json_of(&answer)["error"]),
            (400, &json!("invalid_redirect_uri")),
            "{redirect}"
        );
    }
    assert_eq!(register(&gateway, &[]).status, 400);
    let client = registered(&gateway);
    // Nothing is sent to a redirect that is not the client's.
    let forged = format!("{}x", &client[..client.len() - 1]);
    for changes in [
        vec![("client_id", "")],
        vec![("client_id", "unknown")],
        vec![("client_id", forged.as_str())],
        vec![
            ("client_id", client.as_str()),
            ("redirect_uri", "https://app.example.com/cb"),
        ],
        vec![
            ("client_id", client.as_str()),
            ("redirect_uri", "http://127.0.0.1:3333/other"),
        ],
        vec![
            ("client_id", client.as_str()),
            ("redirect_uri", "http://localhost:3333/callback"),
        ],
        vec![("client_id", client.as_str()), ("redirect_uri", "")],
    ] {
        let page = browser.authorize(&gateway, &changes);
        assert_eq!(
            (page.status, page.header("location")),
            (400, ""),
            "{changes:?}: {page:?}"
        );
    }
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
    for (name, value, error) in [
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        (
            "resource",
            "https://other.example.com/mcp",
            "invalid_target",
        ),
        ("prompt", "none", "consent_required"),
        ("request", "a.b.c", "request_not_supported"),
    ] {
        let answer = browser.authorize(&gateway, &[("client_id", client.as_str()), (name, value)]);
        assert_eq!(answer.status, 303, "{name} {value}: {answer:?}");
        let back = members(answer.header("location"));
        assert_eq!(
            (
                &*back["at"],
                &*back["error"],
                &*back["state"],
                &*back["iss"]
            ),
            (REDIRECT, error, "xyz &=?", URL)
        );
    }
    let twice = format!(
        "{}&code_challenge={challenge}",
        authorize_path(&[("client_id", client.as_str())])
    );
    assert_eq!(browser.send(call(&gateway, "GET", &twice)).status, 400);
    // Another host, and one without an authorization server.
    let foreign = gateway.call("GET", "/.well-known/oauth-authorization-server");
    assert_eq!(
        foreign.header("Host", "evil.example.com").send().status,
        403
    );
    let without = super::setup().serve(&[]);
    assert_eq!(
        without
            .call("GET", "/.well-known/oauth-authorization-server")
            .send()
            .status,
        404
    );
}

#[test]
fn nobody_else_consents_for_a_person() {
    let setup = with_server(&json!({}));
    let gateway = setup.serve(&[]);
    let mut browser = Browser::default();
    browser.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let client = registered(&gateway);
    let page = browser.authorize(&gateway, &[("client_id", client.as_str())]);
    let (flow, proof) = (hidden(&page, "flow"), hidden(&page, "proof"));
    let fields = [
        ("flow", flow.as_str()),
        ("proof", proof.as_str()),
        ("decision", "allow"),
    ];
    let mut stranger = Browser::default();
    let consent = |fields: &[(&str, &str)]| form(&gateway, "/oauth/consent", fields);
    assert_eq!(
        stranger.send(consent(&fields)).status,
        400,
        "without the cookie"
    );
    let forged = [
        ("flow", flow.as_str()),
        ("proof", "AAAAAAAAAAAAAAAAAAAAAA"),
        ("decision", "allow"),
    ];
    assert_eq!(
        browser.send(consent(&forged)).status,
        400,
        "without the proof"
    );
    assert_eq!(
        browser
            .send(consent(&fields).header("Origin", "https://evil.example.com"))
            .status,
        403
    );
    assert_eq!(
        browser
            .send(consent(&fields).header("Sec-Fetch-Site", "cross-site"))
            .status,
        403
    );
    let denied = browser.consent(&gateway, &page, "deny");
    assert_eq!(
        (&*denied["error"], denied.get("code")),
        ("access_denied", None)
    );
    assert_eq!(
        browser.send(consent(&fields)).status,
        400,
        "a decision counts once"
    );
    // An invitation is not accepted by a form of another site.
    let link = invite(&setup, &["mallory", "--role", "admin"]);
    let path = link.strip_prefix(URL).unwrap();
    let theirs = Browser::default().send(call(&gateway, "GET", path));
    let proof = hidden(&theirs, "proof");
    assert_eq!(
        browser
            .send(form(&gateway, path, &[("proof", proof.as_str())]))
            .status,
        400
    );
    assert_eq!(browser.send(form(&gateway, path, &[])).status, 400);
}

#[test]
fn revoking_a_person_or_removing_the_role_ends_what_they_opened() {
    let setup = with_server(&json!({}));
    let gateway = setup.serve(&[]);
    let mut anna = Browser::default();
    anna.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let mut bo = Browser::default();
    bo.accept(&gateway, &invite(&setup, &["bo", "--role", "ops"]));
    let (client, of_anna, refresh_token) = logged_in(&gateway, &mut anna);
    let (_, of_bo, _) = logged_in(&gateway, &mut bo);
    let mut stream = Session::open(&gateway, &of_anna).listen(&gateway);
    assert_eq!(execute(&gateway, "vault__read", &of_bo), "200 a secret");
    let _ = setup.run(&["token", "revoke", "anna"]).code(0);
    let start = std::time::Instant::now();
    while stream.event().is_some() {}
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(execute(&gateway, "git__log", &of_anna).starts_with("401"));
    assert_eq!(refresh(&gateway, &client, &refresh_token).status, 400);
    let page = anna.authorize(&gateway, &[("client_id", client.as_str())]);
    assert_eq!(page.status, 403, "her browser is nobody's");
    let mut fewer = roles();
    fewer.as_object_mut().unwrap().remove("ops");
    let setup = setup.setting("roles", fewer);
    setup.save();
    until("the role to be gone", || {
        execute(&gateway, "vault__read", &of_bo)
            .starts_with("403")
            .then_some(())
    });
}

/// Consents on a page that may have ended; the status of the answer.
fn try_consent(gateway: &Gateway, browser: &mut Browser, page: &Answer) -> u16 {
    let (flow, proof) = (hidden(page, "flow"), hidden(page, "proof"));
    let fields = [("flow", &*flow), ("proof", &*proof), ("decision", "allow")];
    let answer = browser.send(form(gateway, "/oauth/consent", &fields).header("Origin", URL));
    answer.status
}

#[test]
fn revoking_a_person_ends_open_consent_pages_and_unused_codes() {
    let setup = with_server(&json!({}));
    let gateway = setup.serve(&[]);
    let mut anna = Browser::default();
    anna.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let client = registered(&gateway);
    let ask = |browser: &mut Browser| browser.authorize(&gateway, &[("client_id", &*client)]);
    let open = ask(&mut anna);
    let page = ask(&mut anna);
    let code = anna
        .consent(&gateway, &page, "allow")
        .remove("code")
        .unwrap();
    let _ = setup.run(&["token", "revoke", "anna"]).code(0);
    assert_eq!(try_consent(&gateway, &mut anna, &open), 400);
    let answer = exchange(&gateway, &client, &code);
    assert_eq!(json_of(&answer)["error"], "invalid_grant");
    let listed = setup.run(&["token", "list", "--json"]).code(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&listed).unwrap(), json!([]));
    // Invited again, she can.
    anna.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let _ = logged_in(&gateway, &mut anna);
}

#[test]
fn revoking_a_browser_ends_the_clients_that_it_let_in() {
    let setup = with_server(&json!({}));
    let gateway = setup.serve(&[]);
    let mut one = Browser::default();
    one.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let (client, of_one, refresh_token) = logged_in(&gateway, &mut one);
    let listed = setup.run(&["token", "list", "--json"]).code(0).stdout;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(listed[0]["kind"], "browser");
    let mut two = Browser::default();
    two.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let (_, of_two, _) = logged_in(&gateway, &mut two);
    let mut stream = Session::open(&gateway, &of_one).listen(&gateway);
    let page = one.authorize(&gateway, &[("client_id", &*client)]);
    let code = one
        .consent(&gateway, &page, "allow")
        .remove("code")
        .unwrap();
    let _ = setup.run(&["token", "revoke", id]).code(0);
    while stream.event().is_some() {}
    assert!(execute(&gateway, "git__log", &of_one).starts_with("401"));
    assert_eq!(refresh(&gateway, &client, &refresh_token).status, 400);
    assert_eq!(exchange(&gateway, &client, &code).status, 400);
    assert_eq!(execute(&gateway, "git__log", &of_two), "200 the log");
}

#[test]
fn a_grant_of_a_file_that_names_no_browser_counts() {
    let setup = with_server(&json!({}));
    let gateway = setup.serve(&[]);
    let mut browser = Browser::default();
    browser.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let (_, access, _) = logged_in(&gateway, &mut browser);
    let file = setup.home().path("state/identity/tokens.json");
    let mut written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let grant = written["people"]["grants"][0].as_object_mut().unwrap();
    assert!(grant.remove("browser").is_some());
    std::fs::write(&file, written.to_string()).unwrap();
    assert_eq!(execute(&gateway, "git__log", &access), "200 the log");
}

/// An OpenID Connect provider; the members of the next ID token are set before it is asked for.
struct Provider {
    server: HttpServer,
    next: Arc<Mutex<Value>>,
}

impl Provider {
    fn start() -> Self {
        let next: Arc<Mutex<Value>> = Arc::default();
        let (members, key) = (next.clone(), Key::new("one"));
        let server = HttpServer::start(move |request, reply| {
            let own = format!("http://{}", request.header("host"));
            let answer = match request.path.as_str() {
                "/.well-known/openid-configuration" => json!({
                    "issuer": own, "jwks_uri": format!("{own}/keys"),
                    "authorization_endpoint": format!("{own}/authorize"), "token_endpoint": format!("{own}/token"),
                }),
                "/keys" => json!({ "keys": [key.public()] }),
                _ => json!({ "id_token": key.token(&members.lock()) }),
            };
            reply.json(&answer.to_string());
        });
        Self { server, next }
    }

    fn url(&self) -> String {
        self.server.url("").trim_end_matches('/').to_owned()
    }

    fn setup(&self) -> Setup {
        let login = json!({ "issuer": self.url(), "client_id": "gateway", "client_secret": "s3cret", "user": "login" });
        let mut roles = roles();
        roles["dev"]["groups"] = json!(["developers"]);
        with_server(&json!({ "login": login })).setting("roles", roles)
    }

    /// Logs anna in; the page that asks for her consent.
    #[track_caller]
    fn log_in(&self, gateway: &Gateway, browser: &mut Browser, client: &str) -> Answer {
        let onward = browser.authorize(gateway, &[("client_id", client)]);
        self.come_back(gateway, browser, &onward)
    }

    /// Brings anna back from where she was sent.
    #[track_caller]
    fn come_back(&self, gateway: &Gateway, browser: &mut Browser, onward: &Answer) -> Answer {
        let page = self.come_back_of(gateway, browser, onward, &json!(["developers"]));
        assert_eq!(page.status, 200, "{page:?}");
        page
    }

    /// Brings anna back as a member of these groups.
    fn come_back_of(
        &self,
        gateway: &Gateway,
        browser: &mut Browser,
        onward: &Answer,
        groups: &Value,
    ) -> Answer {
        let asked = members(onward.header("location"));
        *self.next.lock() = json!({
            "iss": self.url(), "aud": "gateway", "sub": "7", "login": "anna", "nonce": asked["nonce"],
            "groups": groups, "exp": now() + 600,
        });
        let back = format!("/oauth/callback?state={}&code=x", asked["state"]);
        browser.send(call(gateway, "GET", &back))
    }
}

#[test]
fn the_groups_of_the_latest_login_count_and_without_a_role_there_is_no_consent() {
    let provider = Provider::start();
    let setup = provider.setup();
    let gateway = setup.serve(&[]);
    let client = registered(&gateway);
    let (mut anna, mut elsewhere) = (Browser::default(), Browser::default());
    let page = provider.log_in(&gateway, &mut anna, &client);
    let back = anna.consent(&gateway, &page, "allow");
    let (access, _) = tokens(&exchange(&gateway, &client, &back["code"]));
    assert_eq!(execute(&gateway, "git__log", &access), "200 the log");
    // Her name is enough to find what she did, although her identity has the `sub` as well.
    for (who, is_found) in [
        ("anna", true),
        ("login:anna", true),
        ("login:anna/7", true),
        ("oauth:anna", false),
        ("7", false),
        ("ann", false),
    ] {
        let lines = setup
            .run(&["audit", "--json", "--user", who])
            .code(0)
            .stdout;
        assert_eq!(
            lines.contains(r#""tool":"log""#),
            is_found,
            "{who}: {lines}"
        );
    }
    let open = provider.log_in(&gateway, &mut anna, &client);
    // Meanwhile she has left the group.
    let onward = elsewhere.authorize(&gateway, &[("client_id", &client)]);
    let page = provider.come_back_of(&gateway, &mut elsewhere, &onward, &json!([]));
    assert_eq!(page.status, 403, "{page:?}");
    assert!(
        page.body.contains("may use nothing here") && !page.body.contains("<form"),
        "{page:?}"
    );
    until("the earlier login to end", || {
        execute(&gateway, "git__log", &access)
            .starts_with("403")
            .then_some(())
    });
    // Nor does a page that was open get the group back.
    let back = anna.consent(&gateway, &open, "allow");
    let (access, _) = tokens(&exchange(&gateway, &client, &back["code"]));
    assert!(execute(&gateway, "git__log", &access).starts_with("403"));
}

#[test]
fn what_a_login_opened_ends_when_the_provider_is_replaced_or_removed() {
    let provider = Provider::start();
    let setup = provider.setup();
    let gateway = setup.serve(&[]);
    let client = registered(&gateway);
    let mut anna = Browser::default();
    let page = provider.log_in(&gateway, &mut anna, &client);
    let back = anna.consent(&gateway, &page, "allow");
    let (access, refresh_token) = tokens(&exchange(&gateway, &client, &back["code"]));
    assert_eq!(execute(&gateway, "git__log", &access), "200 the log");
    let file = setup.home().path("state/identity/tokens.json");
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains(&provider.url()), "{kept}");
    let ends = |with: Setup| {
        with.save();
        until("the login to end", || {
            execute(&gateway, "git__log", &access)
                .starts_with("401")
                .then_some(())
        });
        assert_eq!(refresh(&gateway, &client, &refresh_token).status, 400);
        with
    };
    let other = json!({ "issuer": Provider::start().url(), "client_id": "gateway", "client_secret": "s3cret" });
    let server = |login: Option<&Value>| {
        let mut server = json!({ "url": URL });
        if let Some(login) = login {
            server["login"] = login.clone();
        }
        json!({ "auth": { "authorization_server": server } })
    };
    let setup = ends(setup.setting("http", server(Some(&other))));
    let setup = ends(setup.setting("http", server(None)));
    // It counts again where it was made.
    let own =
        json!({ "issuer": provider.url(), "client_id": "gateway", "client_secret": "s3cret" });
    let setup = setup.setting("http", server(Some(&own)));
    setup.save();
    until("the provider to be back", || {
        (execute(&gateway, "git__log", &access) == "200 the log").then_some(())
    });
    // A login of which the provider is not known ends.
    let unknown = kept.replace(&format!("\"issuer\": \"{}\",", provider.url()), "");
    assert_ne!(kept, unknown);
    std::fs::write(&file, unknown).unwrap();
    let _setup = ends(setup);
}

#[test]
fn a_host_that_stalls_delays_no_client_of_another() {
    let documents = json!({ "client_documents": ["127.0.0.1", "localhost"] });
    let setup = with_server(&documents);
    let gateway = setup.serve(&[]);
    let stalling = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = stalling.local_addr().unwrap().port();
    let path = |id: String| authorize_path(&[("client_id", id.as_str())]);
    let stalled = |number: u32| path(format!("https://127.0.0.1:{port}/{number}"));
    let waiting: Vec<_> = (0..24)
        .map(|number| call(&gateway, "GET", &stalled(number)).begin())
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    let start = std::time::Instant::now();
    let other = path("https://localhost:9/client".to_owned());
    let page = call(&gateway, "GET", &other).send();
    assert!(start.elapsed() < Duration::from_secs(2), "{page:?}");
    // A stranger does not learn how the network answered.
    assert_eq!(page.status, 400);
    assert!(
        page.body.contains("the log of the server has the reason")
            && !page.body.contains("refused:")
            && !page.body.contains("connect"),
        "{page:?}"
    );
    let page = call(&gateway, "GET", &stalled(100)).send();
    assert_eq!(page.status, 503, "{page:?}");
    assert!(start.elapsed() < Duration::from_secs(8));
    drop(waiting);
}

#[test]
fn a_state_that_is_too_long_is_an_error_with_the_state() {
    let setup = with_server(&json!({}));
    let gateway = setup.serve(&[]);
    let client = registered(&gateway);
    let state = "s".repeat(2049);
    let changes = [("client_id", client.as_str()), ("state", state.as_str())];
    let back = Browser::default().authorize(&gateway, &changes);
    let back = members(back.header("location"));
    assert_eq!(
        (&*back["error"], &*back["state"]),
        ("invalid_request", &*state)
    );
}

#[test]
fn a_revocation_ends_logins_at_the_provider_that_began_before() {
    let provider = Provider::start();
    let setup = provider.setup();
    let gateway = setup.serve(&[]);
    let client = registered(&gateway);
    let mut anna = Browser::default();
    let open = provider.log_in(&gateway, &mut anna, &client);
    // There is nothing to list yet, and still something to end.
    let revoked = setup.run(&["token", "revoke", "anna"]).code(1).stderr;
    assert!(revoked.contains("no valid token"), "{revoked}");
    assert_eq!(try_consent(&gateway, &mut anna, &open), 400);
    let mut code = || {
        // A revocation ends everything that began in its second.
        std::thread::sleep(Duration::from_millis(1100));
        let page = provider.log_in(&gateway, &mut anna, &client);
        anna.consent(&gateway, &page, "allow")
            .remove("code")
            .unwrap()
    };
    let (access, _) = tokens(&exchange(&gateway, &client, &code()));
    assert_eq!(execute(&gateway, "git__log", &access), "200 the log");
    let unused = code();
    let _ = setup.run(&["token", "revoke", "anna"]).code(0);
    let answer = exchange(&gateway, &client, &unused);
    assert_eq!(json_of(&answer)["error"], "invalid_grant");
    until("what she opened to end", || {
        execute(&gateway, "git__log", &access)
            .starts_with("401")
            .then_some(())
    });
}

#[test]
fn logins_of_strangers_end_nothing_and_ask_the_provider_little() {
    let provider = Provider::start();
    let setup = provider.setup();
    let gateway = setup.serve(&[]);
    let client = registered(&gateway);
    let mut anna = Browser::default();
    let mut elsewhere = Browser::default();
    let page = provider.log_in(&gateway, &mut anna, &client);
    let away = elsewhere.authorize(&gateway, &[("client_id", &client)]);
    let before = provider.server.requests().len();
    let path = authorize_path(&[("client_id", client.as_str())]);
    for _ in 0..1100 {
        let answer = call(&gateway, "GET", &path).send();
        assert!(
            answer.header("location").contains("/authorize?"),
            "{answer:?}"
        );
    }
    let asked = provider.server.requests().len() - before;
    assert!(asked <= 5, "the provider was asked {asked} times");
    assert_eq!(try_consent(&gateway, &mut anna, &page), 303);
    let page = provider.come_back(&gateway, &mut elsewhere, &away);
    assert_eq!(try_consent(&gateway, &mut elsewhere, &page), 303);
    // The state is of this browser and of this gateway.
    let state = &members(away.header("location"))["state"];
    let changed = format!("{state}AAAA");
    for (browser, state) in [(&mut Browser::default(), state), (&mut elsewhere, &changed)] {
        let back = format!("/oauth/callback?state={state}&code=x");
        assert_eq!(browser.send(call(&gateway, "GET", &back)).status, 400);
    }
}

#[test]
fn a_person_who_opens_many_consent_pages_loses_only_their_own() {
    let provider = Provider::start();
    let setup = provider.setup();
    let gateway = setup.serve(&[]);
    let client = registered(&gateway);
    let mut anna = Browser::default();
    let first = provider.log_in(&gateway, &mut anna, &client);
    let pages: Vec<Answer> = (0..10)
        .map(|_| provider.log_in(&gateway, &mut anna, &client))
        .collect();
    assert_eq!(try_consent(&gateway, &mut anna, &first), 400);
    for page in &pages {
        assert_eq!(try_consent(&gateway, &mut anna, page), 303);
    }
}

#[test]
fn keys_are_private_published_and_replaced_at_once_on_demand() {
    let setup = with_server(&json!({}));
    let gateway = setup.serve(&[]);
    let mut browser = Browser::default();
    browser.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let (client, access, _) = logged_in(&gateway, &mut browser);
    let keys = || json_of(&call(&gateway, "GET", "/oauth/jwks").send());
    let before = keys();
    assert_eq!(before["keys"][0]["alg"], "ES256");
    assert_eq!(before["keys"][0].get("d"), None, "{before}");
    let header = access.split('.').next().unwrap();
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    assert_eq!(
        (&header["typ"], &header["kid"]),
        (&json!("at+jwt"), &before["keys"][0]["kid"])
    );
    let file = setup.home().path("state/identity/keys.json");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(execute(&gateway, "git__log", &access), "200 the log");
    let _ = setup.run(&["token", "rotate-keys"]).code(0);
    until("the token to end", || {
        execute(&gateway, "git__log", &access)
            .starts_with("401")
            .then_some(())
    });
    assert_ne!(keys()["keys"][0]["kid"], before["keys"][0]["kid"]);
    assert_eq!(
        browser
            .authorize(&gateway, &[("client_id", client.as_str())])
            .status,
        400
    );
    assert_eq!(
        browser
            .authorize(&gateway, &[("client_id", registered(&gateway).as_str())])
            .status,
        200
    );
    // An old key gets a successor, which is published and does not sign yet.
    let mut written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let created = written["pairs"][0]["created"].as_u64().unwrap();
    written["pairs"][0]["created"] = json!(created - 31 * 24 * 60 * 60);
    std::fs::write(&file, written.to_string()).unwrap();
    until("the successor", || {
        (keys()["keys"].as_array().unwrap().len() == 2).then_some(())
    });
    let (_, access, _) = logged_in(&gateway, &mut browser);
    let header = access.split('.').next().unwrap();
    let header: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(header).unwrap()).unwrap();
    assert_eq!(header["kid"], keys()["keys"][0]["kid"]);
    // A file that others can read is not used.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        until("the keys to be refused", || {
            (call(&gateway, "GET", "/oauth/jwks").send().status == 503).then_some(())
        });
        assert!(!execute(&gateway, "git__log", &access).starts_with("200"));
        let found = setup.run(&["doctor", "--json"]).stdout;
        assert!(found.contains("keys-unusable"), "{found}");
    }
}

#[test]
fn documents_of_clients_are_fetched_from_public_hosts_only() {
    let setup = with_server(&json!({ "client_documents": ["*"] }));
    let gateway = setup.serve(&[]);
    let mut browser = Browser::default();
    browser.accept(&gateway, &invite(&setup, &["anna", "--role", "dev"]));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for (id, words) in [
        (
            format!("https://127.0.0.1:{port}/client.json"),
            "private address",
        ),
        (
            format!("https://localhost:{port}/client.json"),
            "private address",
        ),
        (
            format!("https://[::1]:{port}/client.json"),
            "private address",
        ),
        (
            format!("https://[::ffff:127.0.0.1]:{port}/client.json"),
            "plain form",
        ),
        (
            "https://169.254.169.254/latest".to_owned(),
            "private address",
        ),
        ("https://10.0.0.1/client.json".to_owned(), "private address"),
        ("https://example.com".to_owned(), "plain form"),
        ("https://me:x@example.com/c".to_owned(), "plain form"),
        ("https://example.com/a/../b".to_owned(), "plain form"),
        (
            format!("http://127.0.0.1:{port}/client.json"),
            "no client with this id",
        ),
    ] {
        let page = browser.authorize(&gateway, &[("client_id", id.as_str())]);
        assert_eq!(page.status, 400, "{id}: {page:?}");
        assert!(page.body.contains(words), "{id}: {page:?}");
    }
    assert!(
        listener.accept().is_err(),
        "something reached the private address"
    );
    let setup = with_server(&json!({ "client_documents": ["app.example.com"] }));
    let gateway = setup.serve(&[]);
    let page = browser.authorize(&gateway, &[("client_id", "https://other.example.com/c")]);
    assert!(
        page.body.contains("do not describe clients here"),
        "{page:?}"
    );
}

#[test]
fn settings_of_the_authorization_server_that_are_not_understood_keep_the_server_from_starting() {
    let login =
        json!({ "issuer": "https://id.example.com", "client_id": "x", "client_secret": "y" });
    let with_login = |key: &str, value: Value| {
        let mut login = login.clone();
        login[key] = value;
        json!({ "url": URL, "login": login })
    };
    for server in [
        json!({}),
        json!({ "url": "mcp.example.com" }),
        json!({ "url": "http://mcp.example.com" }),
        json!({ "url": "https://mcp.example.com/path" }),
        json!({ "url": URL, "invitations": false }),
        json!({ "url": URL, "redirects": ["http://app.example.com/cb"] }),
        json!({ "url": URL, "redirects": ["javascript:alert(1)"] }),
        json!({ "url": URL, "redirects": ["https://app.example.com/cb#x"] }),
        json!({ "url": URL, "lifetime": "0s" }),
        json!({ "url": URL, "open": true }),
        json!({ "url": URL, "login": {} }),
        with_login("issuer", json!("http://id.example.com")),
        with_login("client_id", json!("")),
        with_login("client_secret", json!("")),
        with_login("scopes", json!(["profile"])),
        with_login("trust", json!(true)),
    ] {
        let setup = setup().setting(
            "http",
            json!({ "auth": { "authorization_server": server } }),
        );
        let said = super::settings::refused(&setup, 3);
        assert!(said.contains("does not start"), "{server}: {said}");
    }
    let auth = json!({
        "oauth": { "issuer": "https://id.example.com", "audience": "https://other.example.com/mcp" },
        "authorization_server": { "url": URL },
    });
    let said = super::settings::refused(&setup().setting("http", json!({ "auth": auth })), 3);
    assert!(
        said.contains("http.auth.authorization_server.url"),
        "{said}"
    );
    // Without a server, nobody is invited.
    let made = setup().run(&["token", "invite", "anna", "--role", "dev"]);
    assert!(made.code(1).stderr.contains("authorization_server"));
    let made = with_server(&json!({})).run(&["token", "invite", "anna", "--role", "nothing"]);
    assert!(made.code(2).stderr.contains("no role `nothing`"));
}

#[test]
fn a_person_who_logs_in_gets_a_window_of_their_own() {
    let auth = json!({ "authorization_server": { "url": URL } });
    let setup = setup().setting("http", json!({ "auth": auth, "ui": true }));
    let link = invite(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let mut browser = Browser::default();
    let entrance = browser.send(call(&gateway, "GET", "/ui/"));
    assert_eq!(entrance.status, 401, "{entrance:?}");
    assert!(
        entrance.body.contains("href=\"login\""),
        "{}",
        entrance.body
    );
    // No one was invited in this browser yet.
    assert_eq!(browser.send(call(&gateway, "GET", "/ui/login")).status, 403);
    browser.accept(&gateway, &link);
    let page = browser.send(call(&gateway, "GET", "/ui/login"));
    assert!(
        page.body.contains("the window of this gateway"),
        "{}",
        page.body
    );
    // Strangers begin as many logins as they like.
    for _ in 0..1_010 {
        assert_eq!(call(&gateway, "GET", "/ui/login").send().status, 403);
    }
    let back = browser.consent(&gateway, &page, "allow");
    assert_eq!(back["at"], format!("{URL}/ui/callback"));
    let path = format!("/ui/callback?code={}&state={}", back["code"], back["state"]);
    // The receiver of the link does not visit as its sender.
    let mut other = Browser::default();
    let link = invite(&setup, &["oskar", "--role", "ops"]);
    other.accept(&gateway, &link);
    assert_eq!(other.send(call(&gateway, "GET", &path)).status, 403);
    let entered = browser.send(call(&gateway, "GET", &path));
    assert_eq!(
        (entered.status, entered.header("location")),
        (303, "./"),
        "{entered:?}"
    );
    for name in ["__Host-mcpzip-window", "__Host-mcpzip-logins"] {
        assert!(browser.cookies.contains_key(name), "{name}");
    }
    assert_eq!(browser.send(call(&gateway, "GET", &path)).status, 403);
    let ask = |browser: &mut Browser| {
        let call = call(&gateway, "POST", "/ui/api/control").header("Origin", URL);
        let call = call
            .header("Content-Type", "application/json")
            .header("X-Mcpzip", "1");
        browser.send(call.body(&json!({ "method": "ui.offered" }).to_string()))
    };
    let offered = json_of(&ask(&mut browser));
    assert_eq!(
        offered["result"]["person"],
        json!({ "name": "anna", "roles": ["dev"], "manages": false })
    );
    assert_eq!(ask(&mut other).status, 401);
    let listed = setup.run(&["token", "list", "--json"]).code(0).stdout;
    assert!(listed.contains("the window of this gateway"), "{listed}");
    let _ = setup.run(&["token", "revoke", "anna"]).code(0);
    until("the end of the visit", || {
        (ask(&mut browser).status == 401).then_some(())
    });
}

#[test]
fn a_person_who_logs_in_gets_the_page_of_their_logins() {
    let setup = with_server(&json!({}));
    let link = invite(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let mut browser = Browser::default();
    let entrance = browser.send(call(&gateway, "GET", "/logins?server=git"));
    assert_eq!(entrance.status, 401, "{entrance:?}");
    assert!(
        entrance.body.contains("href=\"logins/login\""),
        "{}",
        entrance.body
    );
    let begin = || call(&gateway, "GET", "/logins/login");
    assert_eq!(browser.send(begin()).status, 403);
    browser.accept(&gateway, &link);
    let page = browser.send(begin());
    let back = browser.consent(&gateway, &page, "deny");
    let path = format!(
        "/logins/login-callback?error={}&state={}",
        back["error"], back["state"]
    );
    let again = browser.send(call(&gateway, "GET", &path));
    assert!(
        again.body.contains("You were not logged in") && again.body.contains("href=\"login\""),
        "{again:?}"
    );
    let page = browser.send(begin());
    let back = browser.consent(&gateway, &page, "allow");
    assert_eq!(back["at"], format!("{URL}/logins/login-callback"));
    let path = format!(
        "/logins/login-callback?code={}&state={}",
        back["code"], back["state"]
    );
    // The receiver of the link does not visit as its sender.
    let mut other = Browser::default();
    let link = invite(&setup, &["oskar", "--role", "ops"]);
    other.accept(&gateway, &link);
    assert_eq!(other.send(call(&gateway, "GET", &path)).status, 403);
    let entered = browser.send(call(&gateway, "GET", &path));
    assert_eq!(
        (entered.status, entered.header("location")),
        (303, "../logins"),
        "{entered:?}"
    );
    let shown = browser.send(call(&gateway, "GET", "/logins"));
    assert!(shown.body.contains("You are <b>anna</b> here"), "{shown:?}");
    // It is no way into the window.
    assert!(!browser.cookies.contains_key("__Host-mcpzip-window"));
    assert_eq!(browser.send(call(&gateway, "GET", &path)).status, 403);
}

#[test]
fn a_client_that_a_manager_lets_in_does_not_manage() {
    let auth = json!({ "authorization_server": { "url": URL } });
    let setup = setup()
        .setting("http", json!({ "auth": auth, "ui": true }))
        .setting(
            "roles",
            json!({ "admin": { "profiles": ["*"], "manage": true } }),
        );
    let link = invite(&setup, &["zoe", "--role", "admin"]);
    let gateway = setup.serve(&[]);
    let mut browser = Browser::default();
    browser.accept(&gateway, &link);
    let client = registered(&gateway);
    let page = browser.authorize(&gateway, &[("client_id", &client)]);
    let back = browser.consent(&gateway, &page, "allow");
    let (access, _) = tokens(&exchange(&gateway, &client, &back["code"]));
    let ask = |method: &str| {
        let call = call(&gateway, "POST", "/ui/api/control").header("Origin", URL);
        call.header("Content-Type", "application/json")
            .header("X-Mcpzip", "1")
            .body(&json!({ "method": method }).to_string())
    };
    let bearer = |method| ask(method).header("Authorization", &format!("Bearer {access}"));
    let offered = json_of(&bearer("ui.offered").send());
    assert_eq!(offered["result"]["person"]["manages"], false, "{offered}");
    assert_eq!(bearer("approvals.list").send().status, 403);
    // Nor does the cookie of its token.
    let mut agent = Browser::default();
    let entered = form(&gateway, "/ui/enter", &[("token", &access)]).header("Origin", URL);
    assert_eq!(agent.send(entered).status, 303);
    assert_eq!(agent.send(ask("approvals.list")).status, 403);
    // The person does, who has logged in to the window.
    let page = browser.send(call(&gateway, "GET", "/ui/login"));
    let back = browser.consent(&gateway, &page, "allow");
    let path = format!("/ui/callback?code={}&state={}", back["code"], back["state"]);
    assert_eq!(browser.send(call(&gateway, "GET", &path)).status, 303);
    assert_eq!(browser.send(ask("approvals.list")).status, 200);
}

#[test]
fn doctor_asks_the_provider_at_which_people_log_in() {
    let provider = Provider::start();
    let report = |setup: &Setup| setup.run(&["doctor", "--json"]).stdout;
    let fine = report(&provider.setup());
    assert!(!fine.contains("issuer-unusable"), "{fine}");
    let issuer = provider.server.url("/other");
    let login = json!({ "issuer": issuer, "client_id": "gateway", "client_secret": "s3cret" });
    let other = report(&with_server(&json!({ "login": login })));
    assert!(
        other.contains("issuer-unusable") && other.contains("its `issuer` is another one"),
        "{other}"
    );
}
