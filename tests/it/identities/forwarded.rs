//! A user that a proxy in front names: from its addresses alone, and never from a client.

use serde_json::json;

use super::{As as _, execute, roles, said, setup, token};
use crate::support::gateway::{Call, Gateway};
use crate::support::{Setup, until};

fn with_proxy(from: &str) -> Setup {
    let mut roles = roles();
    roles["dev"]["groups"] = json!(["developers"]);
    roles["ops"]["users"] = json!(["oskar"]);
    let http = json!({ "auth": {
        "tokens": true,
        "forwarded": { "user_header": "X-Forwarded-User", "groups_header": "X-Forwarded-Groups", "from": [from] },
    } });
    setup().setting("http", http).setting("roles", roles)
}

fn call(gateway: &Gateway, user: &str, groups: &str) -> Call {
    let call = gateway.modern_execute("git__log", "");
    let call = call.and_header("X-Forwarded-User", user);
    call.and_header("X-Forwarded-Groups", groups)
}

#[test]
fn a_proxy_names_users_and_groups() {
    let setup = with_proxy("127.0.0.0/8");
    let gateway = setup.serve(&[]);
    assert_eq!(
        said(call(&gateway, "anna", "staff, developers")),
        "200 the log"
    );
    let other = said(call(&gateway, "anna", "staff"));
    assert!(other.starts_with("403"), "{other}");
    let oskar = gateway.modern_execute("vault__read", "");
    let oskar = oskar.and_header("X-Forwarded-User", "oskar");
    assert_eq!(said(oskar), "200 a secret");
    let none = gateway.modern_execute("git__log", "").send();
    assert_eq!(none.status, 401);
    for (user, groups) in [
        ("", "developers"),
        ("an na", "developers"),
        ("anna\u{7f}", "developers"),
    ] {
        let answer = said(call(&gateway, user, groups));
        assert!(answer.starts_with("400"), "{user:?}: {answer}");
    }
    let twice = call(&gateway, "anna", "developers").and_header("x-forwarded-user", "oskar");
    assert_eq!(twice.send().status, 400);
    let groups_alone = gateway.modern_execute("git__log", "");
    let groups_alone = groups_alone.and_header("X-Forwarded-Groups", "developers");
    assert_eq!(groups_alone.send().status, 400);
    let audit = setup
        .run(&["audit", "--user", "anna", "--json"])
        .code(0)
        .stdout;
    assert!(audit.contains("user:anna"), "{audit}");
}

#[test]
fn another_address_than_the_proxys_names_no_user() {
    let setup = with_proxy("10.0.0.0/8");
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let refused = said(call(&gateway, "anna", "developers"));
    assert!(refused.starts_with("400"), "{refused}");
    // Not even with a credential that counts.
    let refused = said(call(&gateway, "oskar", "developers").by(&anna));
    assert!(refused.starts_with("400"), "{refused}");
    assert_eq!(execute(&gateway, "git__log", &anna), "200 the log");
}

#[test]
fn a_user_of_the_proxy_is_another_identity_than_a_token_of_that_name() {
    let setup = with_proxy("127.0.0.1");
    let anna = token(&setup, &["anna", "--role", "dev"]);
    let gateway = setup.serve(&[]);
    let session = super::Session::open(&gateway, &anna);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let ping = gateway.post(ping).and_header("Mcp-Session-Id", &session.id);
    let user = ping.clone().and_header("X-Forwarded-User", "anna");
    let user = user.and_header("X-Forwarded-Groups", "developers");
    assert_eq!(user.send().status, 404);
    assert_eq!(ping.by(&anna).send().status, 200);
}

#[test]
fn a_proxy_that_is_not_trusted_any_more_names_no_user() {
    let setup = with_proxy("127.0.0.1");
    let gateway = setup.serve(&[]);
    assert_eq!(said(call(&gateway, "anna", "developers")), "200 the log");
    setup
        .setting("http", json!({ "auth": { "tokens": true } }))
        .save();
    until("the header to count no more", || {
        said(call(&gateway, "anna", "developers"))
            .starts_with("401")
            .then_some(())
    });
}
