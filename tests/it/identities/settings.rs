//! `http.auth` and `roles`: what cannot be read keeps the server from starting, or gives nothing.

use serde_json::json;

use super::{execute, setup, token};
use crate::support::Setup;
use crate::support::command;
use crate::support::script::answer;
use crate::support::{Server, until};

/// Runs `serve --http`, which must not start, and returns what it says.
#[track_caller]
pub(super) fn refused(setup: &Setup, code: i32) -> String {
    setup.save();
    let command = setup.command(&["serve", "--http", "127.0.0.1:0"]);
    command::run(command, "").code(code).stderr
}

#[test]
fn an_auth_that_is_not_understood_keeps_the_server_from_starting() {
    for auth in [
        json!({}),
        json!({ "tokens": false }),
        json!({ "tokens": "yes" }),
        json!({ "token": true }),
        json!({ "tokens": true, "no_such": 1 }),
        json!({ "forwarded": {} }),
        json!({ "forwarded": { "user_header": "X-User" } }),
        json!({ "forwarded": { "user_header": "X-User", "from": [] } }),
        json!({ "forwarded": { "user_header": "X-User", "from": ["everywhere"] } }),
        json!({ "forwarded": { "user_header": "X-User", "from": ["10.0.0.0/33"] } }),
        json!({ "forwarded": { "user_header": "Authorization", "from": ["10.0.0.1"] } }),
        json!({ "forwarded": { "user_header": "Mcp-Session-Id", "from": ["10.0.0.1"] } }),
        json!({ "forwarded": { "user_header": "X User", "from": ["10.0.0.1"] } }),
        json!({ "forwarded": { "user_header": "X-User", "groups_header": "x-user", "from": ["10.0.0.1"] } }),
        json!({ "forwarded": { "user_header": "X-User", "from": ["10.0.0.1"], "trust": true } }),
        json!({ "oauth": {} }),
        json!({ "oauth": { "issuer": "https://a.example.com" } }),
        json!({ "oauth": { "issuer": "http://a.example.com", "audience": "https://b/mcp" } }),
        json!({ "oauth": { "issuer": "https://a.example.com", "audience": "mcp" } }),
        json!({ "oauth": { "issuer": "https://a.example.com", "audience": "https://b/mcp", "jwks_url": "http://c/keys" } }),
        json!({ "oauth": { "issuer": "https://a.example.com", "audience": "https://b/mcp", "user": "" } }),
        json!({ "oauth": { "issuer": "https://a.example.com", "audience": "https://b/mcp", "algorithm": "none" } }),
        json!({ "tokens": true, "oauth": { "issuer": "https://a.example.com" } }),
        json!("none"),
        json!(true),
        json!([]),
    ] {
        let setup = setup().setting("http", json!({ "auth": auth }));
        let said = refused(&setup, 3);
        assert!(said.contains("does not start"), "{auth}: {said}");
    }
    let _ = token(
        &setup().setting("http", json!({ "auth": "tokens" })),
        &["a", "--role", "dev"],
    );
}

#[test]
fn one_token_for_all_and_identities_exclude_each_other() {
    let with_file = setup();
    let path = with_file.home().path("one-token");
    std::fs::write(&path, "secret-of-everyone").unwrap();
    let http = json!({ "auth": { "tokens": true }, "token_file": path });
    let said = refused(&with_file.setting("http", http), 3);
    assert!(said.contains("mcpzip token create"), "{said}");
    let said = refused(&setup().variable("MCPZIP_TOKEN", "secret-of-everyone"), 3);
    assert!(
        said.contains("MCPZIP_TOKEN") && !said.contains("secret-of"),
        "{said}"
    );
}

#[test]
fn a_role_that_cannot_be_read_gives_nothing() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let setup = setup.setting(
        "roles",
        json!({
            "dev": { "profiles": ["code"], "user": ["everyone"] },
            "Ops": { "profiles": ["*"], "users": ["anna"] },
            "empty": { "profiles": [], "users": ["anna"] },
            "none": { "users": ["anna"] },
            "blank": { "profiles": ["*"], "groups": [""] },
            "gone": { "profiles": ["gone"], "users": ["anna"] },
        }),
    );
    let mut gateway = setup.serve(&[]);
    let said = execute(&gateway, "git__log", &anna);
    assert!(said.starts_with("403"), "{said}");
    assert!(!said.contains("gone"), "{said}");
    gateway.process().wait_for_stderr("an identity is refused");
    gateway.process().wait_for_stderr("no profile `gone`");
}

#[test]
fn without_roles_everyone_with_a_token_gets_everything_and_a_removed_auth_does_not_open_the_server()
{
    let setup = Setup::new()
        .alone()
        .server("git", Server::new().tool("log", [answer("the log")]))
        .setting("http", json!({ "auth": "tokens" }));
    let anna = token(&setup, &["anna"]);
    let mut gateway = setup.serve(&[]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    let setup = setup.setting("http", json!({}));
    setup.save();
    gateway.process().wait_for_stderr("`http.auth` was removed");
    assert!(execute(&gateway, "git__log", "x").starts_with("401"));
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    setup.setting("http", json!({ "auth": {} })).save();
    until("everyone to be refused", || {
        execute(&gateway, "git__log", &anna)
            .starts_with("503")
            .then_some(())
    });
}

#[test]
fn another_machine_may_reach_a_server_with_identities() {
    let setup = setup();
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve_at("0.0.0.0:0", &[]);
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
    assert!(execute(&gateway, "git__log", "x").starts_with("401"));
}
