//! Clients of the SDKs that log in by themselves, through discovery: at the authorization server of mcpzip, with invitations and with
//! a real OpenID provider behind it, and at that provider itself, whose tokens mcpzip takes as a resource server.

use std::net::TcpListener;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::install::Peers;
use super::served::Served;
use super::{announce, peers, process, table};
use crate::support::authority;
use crate::support::gateway::Gateway;
use crate::support::script::answer;
use crate::support::{Server, Setup, until};

const PATIENCE: Duration = Duration::from_secs(120);

/// The clients: language, generation of the SDK, mode, and the revision that they agree on.
const CLIENTS: [(&str, &str, &str, &str); 6] = [
    ("TypeScript", "1", "legacy", "2025-11-25"),
    ("TypeScript", "2", "legacy", "2025-11-25"),
    ("TypeScript", "2", "auto", "2026-07-28"),
    ("Python", "1", "legacy", "2025-11-25"),
    ("Python", "2", "legacy", "2025-11-25"),
    ("Python", "2", "auto", "2026-07-28"),
];

/// A port that was free just now: URLs that name it are needed before the server starts.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn setup(auth: &Value) -> Setup {
    Setup::new()
        .alone()
        .server("git", Server::new().tool("log", [answer("the log")]))
        .setting("search", json!({ "semantic": false }))
        .setting("audit", json!({}))
        .setting("profiles", json!({ "code": { "servers": ["git"] } }))
        .setting(
            "roles",
            json!({ "dev": { "profiles": ["code"], "groups": ["developers"] } }),
        )
        .setting("http", json!({ "auth": auth }))
}

/// The provider of npm at this port, for tokens of this form.
fn provider(peers: &Peers, port: u16, own: &str, format: &str) -> Served {
    let callback = format!("{own}/oauth/callback");
    let resource = format!("{own}/mcp");
    let mut command = Command::new(&peers.new_node);
    command.arg(peers.script("provider.mjs"));
    command.args([&port.to_string(), &callback, &resource, format]);
    Served::start(&mut command)
}

/// Has a client log in and make two calls, the second one with a token that it had to renew.
#[track_caller]
fn log_in(peers: &Peers, client: (&str, &str, &str, &str), url: &str, link: Option<&str>) -> Value {
    let (language, sdk, mode, protocol) = client;
    let mut command = match language {
        "Python" => {
            let generation = sdk.parse().unwrap();
            let mut command = Command::new(peers.python(generation, "python"));
            command.arg(peers.script("login.py"));
            command.args([sdk, mode, "anna", url]).arg(&peers.new_node);
            command
        }
        _ => {
            let mut command = Command::new(&peers.new_node);
            command.arg(peers.script("login.mjs"));
            command.args([sdk, mode, "anna", url]);
            command
        }
    };
    command.args(link);
    let ended = process::run(&mut command, "", PATIENCE).unwrap();
    assert_eq!(ended.code, Some(0), "{client:?}: {ended}");
    let report: Value =
        serde_json::from_str(ended.stdout.trim()).unwrap_or_else(|_| panic!("{client:?}: {ended}"));
    for text in report["answers"].as_array().unwrap() {
        assert_eq!(text, "the log", "{client:?}: {report}");
    }
    assert_eq!(report["protocol"], protocol, "{client:?}");
    assert_eq!(report["renewed"], true, "{client:?}: {report}");
    report
}

fn served(setup: &Setup, port: u16) -> Gateway {
    setup.serve_at(&format!("127.0.0.1:{port}"), &[])
}

#[test]
fn clients_log_in_by_themselves_at_the_authorization_server_with_an_invitation() {
    let Some(peers) = peers() else { return };
    let port = free_port();
    let own = format!("http://127.0.0.1:{port}");
    let setup = setup(&json!({ "authorization_server": { "url": own } }));
    let _gateway = served(&setup, port);
    let mut rows = vec![["client", "revision"].map(str::to_owned).to_vec()];
    for client in CLIENTS {
        let made = setup.run(&["token", "invite", "anna", "--role", "dev"]);
        let link = made.code(0).stdout.trim().to_owned();
        let report = log_in(peers, client, &format!("{own}/mcp"), Some(&link));
        let name = format!("{} SDK {} {}", client.0, client.1, client.2);
        rows.push(vec![name, report["protocol"].as_str().unwrap().to_owned()]);
    }
    announce(&format!("Clients that log in\n{}", table(&rows)));
}

#[test]
fn people_log_in_at_a_real_provider_behind_the_authorization_server() {
    let Some(peers) = peers() else { return };
    let (port, at) = (free_port(), free_port());
    let own = format!("http://127.0.0.1:{port}");
    let provider = provider(peers, at, &own, "jwt");
    let login =
        json!({ "issuer": provider.address, "client_id": "gateway", "client_secret": "${SECRET}" });
    let auth =
        json!({ "authorization_server": { "url": own, "login": login, "invitations": false } });
    let setup = setup(&auth).variable("SECRET", "secret-of-the-gateway");
    let mut gateway = served(&setup, port);
    for client in [CLIENTS[0], CLIENTS[2], CLIENTS[3], CLIENTS[5]] {
        log_in(peers, client, &format!("{own}/mcp"), None);
    }
    let audit = setup.run(&["audit", "--json"]).code(0).stdout;
    assert!(audit.contains("login:anna"), "{audit}");
    // A provider with new keys is known by them at the next login.
    drop(provider);
    let at = at.to_string();
    let callback = format!("{own}/oauth/callback");
    let mut command = Command::new(&peers.new_node);
    command.arg(peers.script("provider.mjs"));
    command.args([&at, &callback, &format!("{own}/mcp"), "jwt"]);
    let _provider = Served::start(&mut command);
    until("the pause between two requests for keys to be over", || {
        let mut command = Command::new(&peers.new_node);
        command.arg(peers.script("login.mjs"));
        command.args(["2", "auto", "anna", &format!("{own}/mcp")]);
        let ended = process::run(&mut command, "", PATIENCE).unwrap();
        (ended.code == Some(0)).then_some(())
    });
    let stderr = gateway.process().stderr();
    assert!(!stderr.contains("secret-of-the-gateway"), "{stderr}");
}

#[test]
fn a_real_provider_gives_the_tokens_and_rotates_its_keys() {
    let Some(peers) = peers() else { return };
    let (port, at) = (free_port(), free_port());
    let own = format!("http://127.0.0.1:{port}");
    let url = format!("{own}/mcp");
    let first = provider(peers, at, &own, "jwt");
    let issuer = first.address.clone();
    let oauth = json!({ "issuer": issuer, "audience": url, "scopes": ["mcp"] });
    let setup = setup(&json!({ "oauth": oauth }));
    let gateway = served(&setup, port);
    for client in [CLIENTS[1], CLIENTS[2], CLIENTS[3]] {
        log_in(peers, client, &url, None);
    }
    let old = machine_token(peers, &issuer);
    assert_eq!(said(&gateway, &old), "200 the log");
    drop(first);
    let _second = provider(peers, at, &own, "jwt");
    let new = machine_token(peers, &issuer);
    until("the new key to be fetched", || {
        (said(&gateway, &new) == "200 the log").then_some(())
    });
    until("the old key to be forgotten", || {
        said(&gateway, &old).starts_with("401").then_some(())
    });
}

#[test]
fn a_real_provider_is_asked_about_opaque_tokens() {
    let Some(peers) = peers() else { return };
    let (port, at) = (free_port(), free_port());
    let own = format!("http://127.0.0.1:{port}");
    let url = format!("{own}/mcp");
    let provider = provider(peers, at, &own, "opaque");
    let issuer = provider.address.clone();
    let oauth = json!({
        "issuer": issuer, "audience": url, "scopes": ["mcp"],
        "introspection_url": format!("{issuer}/token/introspection"), "client_id": "gateway", "client_secret": "${SECRET}",
    });
    let setup = setup(&json!({ "oauth": oauth })).variable("SECRET", "secret-of-the-gateway");
    let gateway = served(&setup, port);
    log_in(peers, CLIENTS[2], &url, None);
    let token = machine_token(peers, &issuer);
    assert!(!token.contains('.'), "it is no JWT");
    assert_eq!(said(&gateway, &token), "200 the log");
    node(
        peers,
        &format!(
            "await fetch('{issuer}/token/revocation', {{method: 'POST', headers: machine, body: new URLSearchParams({{token: '{token}'}})}})"
        ),
    );
    until("the revoked token to end", || {
        said(&gateway, &token).starts_with("401").then_some(())
    });
}

/// A token of a program, for the tests of keys and answers.
fn machine_token(peers: &Peers, issuer: &str) -> String {
    let script = format!(
        "const answer = await fetch('{issuer}/token', {{method: 'POST', headers: machine, body: new URLSearchParams({{grant_type: 'client_credentials', scope: 'mcp'}})}}); \
         console.log((await answer.json()).access_token)"
    );
    node(peers, &script).trim().to_owned()
}

fn node(peers: &Peers, script: &str) -> String {
    let machine =
        "const machine = {authorization: 'Basic ' + btoa('machine:secret-of-the-machine')};";
    let mut command = Command::new(&peers.new_node);
    command.args(["--input-type=module", "-e", &format!("{machine} {script}")]);
    let ended = process::run(&mut command, "", PATIENCE).unwrap();
    assert_eq!(ended.code, Some(0), "{ended}");
    ended.stdout
}

fn said(gateway: &Gateway, token: &str) -> String {
    let call = gateway.modern_execute("git__log", "");
    let answer = call
        .and_header("Authorization", &format!("Bearer {token}"))
        .send();
    let value: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let text = value["result"]["content"][0]["text"].as_str();
    format!("{} {}", answer.status, text.unwrap_or(&answer.body))
}

#[test]
fn the_conformance_suite_finds_nothing_wrong_with_the_authorization_server() {
    let Some(peers) = peers() else { return };
    let (port, callback) = (free_port(), free_port());
    let own = format!("http://127.0.0.1:{port}");
    let setup = setup(&json!({ "authorization_server": { "url": own } }));
    let _gateway = served(&setup, port);
    let made = setup.run(&["token", "invite", "anna", "--role", "dev"]);
    let link = made.code(0).stdout.trim().to_owned();
    let mut command = Command::new(&peers.new_node);
    command.arg(peers.script("authorization.mjs"));
    command.arg(peers.npm("conformance"));
    command.args([own.as_str(), &callback.to_string(), &link]);
    let ended = process::run(&mut command, "", PATIENCE).unwrap();
    assert_eq!(ended.code, Some(0), "{ended}");
    let is_wrong = ["FAILURE", "WARNING", "SKIPPED"]
        .iter()
        .any(|word| ended.stdout.contains(word));
    assert!(!is_wrong, "{ended}");
}

#[test]
fn a_server_of_the_python_sdk_lets_in_a_client_with_a_secret_and_renews_its_token() {
    let Some(peers) = peers() else { return };
    let mut command = Command::new(peers.python(2, "python"));
    command.arg(peers.script("authorization_server.py"));
    command.arg(free_port().to_string());
    let server = Served::start(&mut command);
    let entry = json!({ "url": format!("{}/mcp", server.address) });
    let setup = Setup::new().alone().entry("web", &entry.to_string());
    authority::log_in(&setup);
    // Its tokens end at once, so each process renews the one of the process before.
    for word in ["hi", "again"] {
        let message = json!({ "message": word }).to_string();
        let called = setup.run(&["call", "web__echo", &message]).code(0);
        assert!(called.stdout.contains(&format!("Echo: {word}")), "{called}");
    }
}
