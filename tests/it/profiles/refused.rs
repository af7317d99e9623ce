//! Profiles that cannot be used are refused.

use serde_json::json;

use super::whole;

#[test]
fn an_unknown_empty_or_faulty_profile_is_refused_at_the_start() {
    let setup = whole();
    for (name, reason) in [
        (
            "other",
            "there is no profile `other`; the configuration has empty, gone, review, vaults",
        ),
        ("empty", "the profile `empty` cannot be used"),
        ("gone", "`gone` leave no server"),
        ("", "there is no profile ``"),
        ("../review", "there is no profile `../review`"),
    ] {
        for arguments in [
            vec!["serve", "--profile", name],
            vec!["serve", "--http", "127.0.0.1:0", "--profile", name],
            vec!["search", "read", "--profile", name],
            vec!["call", "open__read", "{}", "--profile", name],
            vec!["tools", "--profile", name],
        ] {
            let refused = setup.run(&arguments).code(3);
            assert!(refused.stderr.contains(reason), "{arguments:?}: {refused}");
            assert!(!refused.stdout.contains("open"), "{arguments:?}: {refused}");
        }
    }
}

#[test]
fn a_url_of_an_unusable_profile_is_not_there() {
    let gateway = whole().serve(&[]);
    for name in [
        "other",
        "empty",
        "gone",
        "",
        "..",
        "review/x",
        "%00",
        "review%2F",
        "Review",
    ] {
        let path = format!("/mcp/p/{name}");
        let said = gateway.modern("tools/list", "").to(&path).send();
        assert_eq!(said.status, 404, "{path}: {said:?}");
        assert!(
            !said.body.contains("review,") && !said.body.contains("vault"),
            "{said:?}"
        );
    }
}

#[test]
fn a_client_whose_profile_is_unusable_is_refused() {
    let setup = whole().setting(
        "clients",
        json!({ "agent": { "profile": "other" }, "odd": { "profile": 7 } }),
    );
    for name in ["agent", "odd"] {
        let mut client = setup.start();
        let said = client.shake_hands_named(name);
        assert!(
            said.error()["message"]
                .as_str()
                .unwrap()
                .contains("cannot be used"),
            "{name}"
        );
        let said = client.ask("tools/list", "{}");
        assert!(
            said.as_str().contains("cannot be used"),
            "{}",
            said.as_str()
        );
        client.finish();
    }
    let gateway = setup.serve(&[]);
    let said = gateway.modern_of("agent", "tools/list", "").send();
    assert_eq!(said.status, 403, "{said:?}");
    assert_eq!(gateway.modern("tools/list", "").send().status, 200);
}

#[test]
fn commands_use_the_part_of_a_profile() {
    let setup = whole();
    super::know_all(&setup);
    let tools = setup.run(&["tools", "--profile", "review"]).code(0).stdout;
    assert!(
        tools.contains("open__read") && !tools.contains("vault") && !tools.contains("drop"),
        "{tools}"
    );
    let called = setup
        .run(&["call", "vault__read", "{}", "--profile", "review"])
        .code(1);
    assert!(!called.stdout.contains("vault opened"), "{called}");
    let found = setup.run(&["search", "unseal", "--profile", "review"]);
    assert!(!found.stdout.contains("vault"), "{found}");
    let described = setup
        .run(&["describe", "open__drop_table", "--profile", "review"])
        .code(1);
    assert!(!described.stdout.contains("drop"), "{described}");
}
