//! Permissions of people over HTTP, with `--always` and without: each is for the person who asked.

use serde_json::{Value, json};

use super::{execute, setup, token};
use crate::support::terminal::Terminal;
use crate::support::{Setup, until};

const NAME: &str = "vault__read";

fn asking(setup: Setup) -> Setup {
    setup.setting("approvals", json!({ "wait": "200ms" }))
}

/// The question that waits about a call of this person.
fn question_of(setup: &Setup, person: Option<&str>) -> Value {
    until("a question", || {
        let listed = run(setup, &["approvals", "list", "--json"]).code(0).json();
        let mut all = listed.as_array().unwrap().iter();
        all.find(|one| one["person"].as_str() == person).cloned()
    })
}

/// Allows a question at a terminal; `None` if the test is skipped.
fn allow(setup: &Setup, question: &Value, options: &[&str]) -> Option<String> {
    let id = question["id"].as_str().unwrap();
    let command = [&["approvals", "allow", id], options].concat();
    let terminal = Terminal::run(&setup.command(&command))?;
    let screen = terminal.shows("[y/N]");
    terminal.types("y");
    terminal.shows("allowed vault__read");
    Some(screen)
}

/// Runs a command with the file as it is: `Setup::run` would write it anew.
fn run(setup: &Setup, arguments: &[&str]) -> crate::support::command::Outcome {
    crate::support::command::run(setup.command(arguments), "")
}

fn waits(said: &str) -> bool {
    said.contains("waits for approval")
}

/// The lists of tools that are not asked about, in the file.
fn unasked(setup: &Setup) -> (Value, Value) {
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let of = |scope: &Value| scope["tools"]["without_asking"].clone();
    (of(&file), of(&file["profiles"]["secrets"]))
}

/// Checks that `oskar` is not asked any more once `--always` was given for his call, and that others are.
fn check(setup: &Setup, expected: (Value, Value)) {
    let oskar = token(setup, &["oskar", "--role", "ops"]);
    let olga = token(setup, &["olga", "--role", "ops"]);
    let gateway = setup.serve(&[]);
    assert!(waits(&execute(&gateway, NAME, &oskar)));
    let question = question_of(setup, Some("oskar"));
    let Some(screen) = allow(setup, &question, &["--always"]) else {
        return;
    };
    assert!(screen.contains("by @user:oskar"), "{screen}");
    assert_eq!(unasked(setup), expected);
    // The first of these calls uses the permission for one.
    assert_eq!(execute(&gateway, NAME, &oskar), "200 a secret");
    until("a call without a question", || {
        (execute(&gateway, NAME, &oskar) == "200 a secret").then_some(())
    });
    assert!(waits(&execute(&gateway, NAME, &olga)));
    let check = |user: &str, code| {
        let check = ["rules", "check", NAME, "--user", user, "--role", "ops"];
        let _ = run(setup, &check).code(code);
    };
    check("oskar", 0);
    check("olga", 6);
}

#[test]
fn always_is_for_the_person_who_asked() {
    let setup = asking(setup().setting("tools", json!({ "ask": ["vault__*"] })));
    check(&setup, (json!(["@user:oskar vault__read"]), Value::Null));
    // Neither is it for the user of the machine.
    let mut client = setup.start_command(setup.command(&["serve"]));
    client.shake_hands("2025-11-25");
    assert!(waits(&client.execute(NAME).tool_error()));
    client.finish();
}

#[test]
fn always_for_a_rule_of_a_roles_profile_is_for_the_person_who_asked() {
    let rules = json!({
        "secrets": { "servers": ["vault"], "tools": { "ask": ["vault__*"] } },
        "other": { "servers": ["git"], "tools": { "ask": ["git__*"] } },
    });
    let setup = asking(setup().setting("profiles", rules))
        .setting(
            "roles",
            json!({ "ops": { "profiles": ["secrets", "other"] } }),
        )
        .setting("tools", json!({ "ask": ["git__*"] }));
    // The other lists ask about other tools.
    check(&setup, (Value::Null, json!(["@user:oskar vault__read"])));
    let audit = run(&setup, &["audit", "--json"]).code(0).stdout;
    assert!(audit.contains("by a command: profiles changed"), "{audit}");
}

#[test]
fn always_of_the_user_of_the_machine_is_for_no_person_over_http() {
    let setup = asking(setup().setting("tools", json!({ "ask": [NAME] })));
    let mut client = setup.connect();
    assert!(waits(&client.execute(NAME).tool_error()));
    let question = question_of(&setup, None);
    let Some(screen) = allow(&setup, &question, &["--always"]) else {
        return;
    };
    assert!(screen.contains("by @local"), "{screen}");
    assert_eq!(client.execute(NAME).text(), "a secret");
    until("a call without a question", || {
        let said = client.execute(NAME).value();
        (said["isError"] != true).then_some(())
    });
    client.finish();
    assert_eq!(unasked(&setup).0, json!(["@local vault__read"]));
    let _ = run(&setup, &["rules", "check", NAME]).code(0);
    for user in ["admin", "local", "@local"] {
        let check = ["rules", "check", NAME, "--user", user, "--role", "admin"];
        let _ = run(&setup, &check).code(6);
    }
}

#[test]
fn an_approval_of_one_person_is_none_of_another_with_the_same_client() {
    let setup = asking(setup().setting("tools", json!({ "ask": [NAME] })));
    let oskar = token(&setup, &["oskar", "--role", "ops"]);
    let olga = token(&setup, &["olga", "--role", "ops"]);
    let gateway = setup.serve(&[]);
    assert!(waits(&execute(&gateway, NAME, &oskar)));
    let question = question_of(&setup, Some("oskar"));
    if allow(&setup, &question, &[]).is_none() {
        return;
    }
    assert!(waits(&execute(&gateway, NAME, &olga)));
    assert_eq!(execute(&gateway, NAME, &oskar), "200 a secret");
    assert!(waits(&execute(&gateway, NAME, &oskar)));
}

#[test]
fn a_name_with_callers_is_exact_and_anything_else_stops_the_program() {
    for wrong in [
        "@user:oskar",
        "@user: vault__read",
        "@role:ops *",
        "@local @read",
        "!@local",
        "@users:a x",
        "",
    ] {
        let setup = setup().setting("tools", json!({ "ask": [NAME], "without_asking": [wrong] }));
        let refused = setup.run(&["rules", "check", NAME]).code(3).stderr;
        assert!(
            refused.contains("the exact name of a tool"),
            "{wrong}: {refused}"
        );
    }
    let rules = json!({ "ask": [NAME], "without_asking": ["@role:ops vault__read"] });
    let setup = setup().setting("tools", rules);
    for (options, code) in [
        (&["--role", "ops"][..], 0),
        (&["--role", "admin"][..], 6),
        (&[][..], 6),
    ] {
        let _ = setup
            .run(&[&["rules", "check", NAME], options].concat())
            .code(code);
    }
}
