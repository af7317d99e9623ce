//! Rules about tools that declare nothing, by what their texts suggest.

use serde_json::{Value, json};

use crate::support::script::echo;
use crate::support::{Server, Setup};

/// Tools without annotations, and one that declares to read whatever its name says.
fn tools() -> Server {
    let tool = |name: &str, description: &str, annotations: Value| {
        let definition = json!({ "name": name, "description": description, "inputSchema": { "type": "object" },
            "annotations": annotations });
        definition.to_string()
    };
    let none = || json!({});
    Server::new()
        .tool_as(
            "list_files",
            &tool("list_files", "Files.", none()),
            [echo()],
        )
        .tool_as("save_file", &tool("save_file", "A file.", none()), [echo()])
        .tool_as("wipe_disk", &tool("wipe_disk", "A disk.", none()), [echo()])
        .tool_as("zork", &tool("zork", "It.", none()), [echo()])
        .tool_as(
            "erase_mark",
            &tool("erase_mark", "A mark.", json!({ "readOnlyHint": true })),
            [echo()],
        )
}

const ALL: [&str; 5] = ["erase_mark", "list_files", "save_file", "wipe_disk", "zork"];

/// The tools that a client can call under these rules.
fn callable(rules: Value) -> Vec<&'static str> {
    let setup = Setup::new().server("disk", tools()).setting("tools", rules);
    let mut client = setup.connect();
    let called = ALL.into_iter().filter(|tool| {
        let name = format!("disk__{tool}");
        !client.execute_with(&name, "{}").is_tool_error()
    });
    called.collect()
}

#[test]
fn rules_use_the_texts_of_undeclared_tools_only_where_they_say_so() {
    assert_eq!(callable(json!({ "deny": ["@destructive"] })), ALL);
    assert_eq!(callable(json!({ "allow": ["@read"] })), ["erase_mark"]);
    // A declaration stands, and texts that suggest nothing count as destructive.
    assert_eq!(
        callable(json!({ "deny": ["@destructive?"] })),
        ["erase_mark", "list_files", "save_file"]
    );
    assert_eq!(
        callable(json!({ "deny": ["@write?"] })),
        ["erase_mark", "list_files"]
    );
    // They permit nothing.
    assert_eq!(
        callable(json!({ "allow": ["@read?"] })),
        ["erase_mark", "list_files"]
    );
    assert_eq!(
        callable(json!({ "allow": ["@write?"] })),
        ["save_file", "wipe_disk"]
    );
}

#[test]
fn the_rules_command_shows_what_texts_suggest_and_takes_a_name_in_one_word() {
    let rules = json!({ "ask": ["@destructive?"], "allow": ["@read?", "disk__*"] });
    let setup = Setup::new().server("disk", tools()).setting("tools", rules);
    let before = setup
        .run(&["--json", "rules", "check", "disk__list_files"])
        .code(6)
        .json();
    assert_eq!(
        before["is_listed"], false,
        "a tool that is not listed counts as destructive"
    );
    let _ = setup.run(&["servers"]).code(0);
    let check = |name: &str, code| {
        setup
            .run(&["--json", "rules", "check", name])
            .code(code)
            .json()
    };
    let listed = check("disk__list_files", 0);
    assert_eq!(
        (&listed["verdict"], &listed["texts_suggest"]),
        (&json!("allowed"), &json!("read"))
    );
    let wiped = check("disk__wipe_disk", 6);
    assert_eq!(wiped["rule"], r#"tools.ask[0] "@destructive?""#);
    assert_eq!(check("disk__zork", 6)["texts_suggest"], Value::Null);
    assert_eq!(check("disk__erase_mark", 0)["declares"], "read");
    let two = setup
        .run(&["--json", "rules", "check", "disk", "wipe_disk"])
        .code(6)
        .json();
    assert_eq!(two, wiped);
    for (wrong, said) in [
        ("disc__wipe", "did you mean `disk`?"),
        ("disk", "SERVER TOOL"),
    ] {
        let refused = setup.run(&["rules", "check", wrong]).code(1);
        assert!(refused.stderr.contains(said), "{refused}");
    }
    let list = setup.run(&["--json", "rules", "list"]).code(0).json();
    assert_eq!(list[0]["classified"], json!(["disk__wipe_disk"]), "{list}");
    assert_eq!(list[0]["unclassified"], json!(["disk__zork"]), "{list}");
}
