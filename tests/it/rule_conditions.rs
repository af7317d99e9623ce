//! Rules that look at a call's arguments, and the command that says which rule decides.

use serde_json::json;

use crate::support::script::echo;
use crate::support::{Server, Setup};

fn files(rules: serde_json::Value) -> Setup {
    let setup = Setup::new().server(
        "files",
        Server::new().tool("write", [echo()]).tool("read", [echo()]),
    );
    setup.setting("tools", rules)
}

#[test]
fn a_call_is_denied_by_where_its_path_leads() {
    let rules = json!({ "deny": [{ "tool": "files__write", "when": { "path": "!~/work/**" } }] });
    let setup = files(rules);
    let home = setup.home().path("home");
    let home = home.to_str().unwrap().trim_end_matches('/').to_owned();
    std::fs::create_dir_all(format!("{home}/work")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc", format!("{home}/work/out")).unwrap();
    let mut client = setup.connect();
    let mut call = |path: serde_json::Value| {
        let arguments = json!({ "path": path }).to_string();
        client.execute_with("files__write", &arguments)
    };
    assert!(!call(json!(format!("{home}/work/a"))).is_tool_error());
    for outside in [
        json!("/etc/passwd"),
        json!(format!("{home}/work/../other")),
        json!(format!("{home}/work/out/passwd")),
        json!("~someone/x"),
        json!(7),
        json!(null),
        json!([format!("{home}/work/a"), "/etc/passwd"]),
    ] {
        let refused = call(outside.clone()).tool_error();
        assert!(refused.contains("tools.deny[0]"), "{outside}: {refused}");
    }
    assert_eq!(setup.home().count("files", "tools/call"), 1);
    // Another tool, and the same tool in a search, are not touched by it.
    assert!(client.search("write").contains("files__write"));
    assert!(
        !client
            .execute_with("files__read", r#"{"path":"/etc/passwd"}"#)
            .is_tool_error()
    );
}

#[test]
fn null_is_a_value_of_another_type() {
    let rules = json!({ "deny": [{ "tool": "files__write", "when": { "mode": "!safe" } }] });
    let setup = files(rules);
    for (arguments, code) in [
        (r#"{"path":"a","mode":"safe"}"#, 0),
        (r#"{"path":"a","mode":null}"#, 1),
        (r#"{"path":"a","mode":"wipe"}"#, 1),
    ] {
        let _ = setup.run(&["call", "files__write", arguments]).code(code);
    }
}

#[test]
fn an_object_is_a_value_of_another_type_than_a_number() {
    const OBJECT: &str = r#"{"n":{"$serde_json::private::Number":"5"}}"#;
    for (kind, value) in [("deny", "!5"), ("allow", "5")] {
        let rule = json!({ "tool": "files__write", "when": { "n": value } });
        let setup = files(json!({ kind: [rule] }));
        let mut client = setup.connect();
        let five = client.execute_with("files__write", r#"{"n":5}"#);
        assert!(!five.is_tool_error(), "{}", five.text());
        for object in [OBJECT, &OBJECT.replace('$', "\\u0024")] {
            let refused = client.execute_with("files__write", object).tool_error();
            assert!(refused.contains(&format!("tools.{kind}")), "{refused}");
        }
        assert_eq!(setup.home().count("files", "tools/call"), 1);
    }
}

#[test]
fn a_relative_path_begins_in_the_servers_directory() {
    let rules = json!({ "deny": [{ "tool": "files__write", "when": { "path": "!./**" } }] });
    let setup = files(rules);
    let write = |path: &str| {
        let arguments = json!({ "path": path }).to_string();
        setup.run(&["call", "files__write", &arguments])
    };
    let _ = write("notes/today.md").code(0);
    let refused = write("../config.json").code(1);
    assert!(refused.stderr.contains("tools.deny[0]"), "{refused}");
    let mut client = setup.connect();
    let inside = client.execute_with("files__write", r#"{"path":"./a"}"#);
    assert!(!inside.is_tool_error(), "{}", inside.text());
    let outside = client.execute_with("files__write", r#"{"path":"a/../../b"}"#);
    assert!(outside.is_tool_error());
}

#[test]
fn a_rule_with_a_condition_asks_or_permits_only_those_calls() {
    let setup =
        files(json!({ "ask": [{ "tool": "write", "when": { "mode": ["force", "wipe*"] } }] }));
    let mut client = setup.connect();
    assert!(
        !client
            .execute_with("files__write", r#"{"mode":"plain"}"#)
            .is_tool_error()
    );
    let asked = client.execute_with("files__write", r#"{"mode":"Wipe-all"}"#);
    assert!(asked.tool_error().contains("tools.ask"), "{}", asked.text());
    let setup =
        files(json!({ "allow": [{ "tool": "files__write", "when": { "mode": "plain" } }] }));
    let mut client = setup.connect();
    assert!(
        !client
            .execute_with("files__write", r#"{"mode":"plain"}"#)
            .is_tool_error()
    );
    for arguments in [r#"{"mode":"other"}"#, "{}", r#"{"mode":{}}"#] {
        let refused = client.execute_with("files__write", arguments);
        assert!(refused.tool_error().contains("tools.allow"), "{arguments}");
    }
}

#[test]
fn a_permission_is_for_calls_of_which_every_value_is_meant() {
    let setup =
        files(json!({ "allow": [{ "tool": "files__read", "when": { "in.path": "./**" } }] }));
    let mut client = setup.connect();
    let inside = r#"{"in":[{"path":"a"},{"path":["b","c"]}]}"#;
    assert!(!client.execute_with("files__read", inside).is_tool_error());
    for arguments in [
        r#"{"in":[{"path":"a"},{"path":"/etc/passwd"}]}"#,
        r#"{"in":[{"path":"a"},{"other":1}]}"#,
        r#"{"in":{"path":["a","/etc/passwd"]}}"#,
        r#"{"in":"{\"path\":\"a\"}"}"#,
        r#"{"in":{"path":"file://localhost/etc/passwd"}}"#,
        r#"{"in":{"path":"/proc/self/cwd/a"}}"#,
        r#"{"in":{"path":"a","PATH":"/etc/passwd"}}"#,
        r#"{"in":[]}"#,
    ] {
        let refused = client.execute_with("files__read", arguments);
        assert!(refused.is_tool_error(), "{arguments}");
        let asked = setup.run(&["rules", "check", "files__read", "--arguments", arguments]);
        assert!(asked.stdout.contains("denied"), "{arguments}: {asked}");
    }
    assert_eq!(setup.home().count("files", "tools/call"), 1);
}

#[test]
fn a_denial_is_not_avoided_by_another_spelling_of_the_argument() {
    let setup = files(json!({ "deny": [
        { "tool": "files__read", "when": { "in.path": "!./**" } },
        { "tool": "files__write", "when": { "path": "./app/[id]/**", "n": "5" } },
    ] }));
    let mut client = setup.connect();
    for arguments in [
        r#"{"in":{"path":"/etc/passwd","path":"a"}}"#,
        r#"{"in":{"path":"a"},"in":{"path":"/etc/passwd"}}"#,
        r#"{"In":{"Path":"/etc/passwd"}}"#,
        r#"{"in":{"path":"FILE:///etc/passwd"}}"#,
        r#"{"in":{"path":"file:/etc/passwd"}}"#,
        r#"{"in":"{\"path\":\"/etc/passwd\"}"}"#,
        r#"{"in":{"path":"/proc/self/root/etc/passwd"}}"#,
        r#"{"in":{"pa-th":"/etc/passwd"}}"#,
        r#"{"i_n":{"PATH ":"/etc/passwd"}}"#,
        r#"{"ｉｎ":{"ｐａｔｈ":"/etc/passwd"}}"#,
        r#"{"in.path":"/etc/passwd"}"#,
        r#"{"in":{"path":"a","p_ath":"/etc/passwd"}}"#,
        r#"{"in":{"path":" /etc/passwd"}}"#,
        r#"{"in":{"path":"/etc/passwd\n"}}"#,
        r#"{"in":{"path":"..\\..\\etc"}}"#,
        r#"{"in":{"path":"%2e%2e/%2e%2e/etc"}}"#,
        r#"{"in":{"path":"$HOME/.ssh/id"}}"#,
    ] {
        let refused = client.execute_with("files__read", arguments).tool_error();
        assert!(refused.contains("tools.deny[0]"), "{arguments}: {refused}");
    }
    let arguments = r#"{"path":"app/[id]/secret","n":5.0}"#;
    let refused = client.execute_with("files__write", arguments).tool_error();
    assert!(refused.contains("tools.deny[1]"), "{refused}");
    assert_eq!(setup.home().count("files", "tools/call"), 0);
}

#[test]
fn a_denial_is_not_avoided_by_another_spelling_of_a_text() {
    let setup = files(json!({ "deny": [
        { "tool": "files__write", "when": { "branch": "main" } },
        { "tool": "files__read", "when": { "straße": "!a" } },
    ] }));
    let mut client = setup.connect();
    for arguments in [
        r#"{"branch":" Main\n"}"#,
        r#"{"branch":"ｍａｉｎ"}"#,
        r#"{"branch":"ma\u200bin"}"#,
        r#"{"br_anch":"main"}"#,
        r#"{"branch":["other","main"]}"#,
    ] {
        let refused = client.execute_with("files__write", arguments).tool_error();
        assert!(refused.contains("tools.deny[0]"), "{arguments}: {refused}");
    }
    let refused = client.execute_with("files__read", r#"{"STRASSE":"b"}"#);
    assert!(refused.tool_error().contains("tools.deny[1]"));
    let other = client.execute_with("files__write", r#"{"branch":"maintenance"}"#);
    assert!(!other.is_tool_error(), "{}", other.text());
    assert_eq!(setup.home().count("files", "tools/call"), 1);
}

#[test]
fn the_command_says_which_rule_decides() {
    let setup = files(json!({
        "deny": ["drop_*", { "tool": "files__write", "when": { "path": "/etc/**" } }],
        "ask": ["files__read"],
    }));
    let check = |arguments: &[&str], code: i32| {
        let all = [&["--json", "rules", "check", "files"], arguments].concat();
        setup.run(&all).code(code).json()
    };
    let denied = check(&["write", "--arguments", r#"{"path":"/etc/x"}"#], 1);
    assert_eq!(denied["verdict"], "denied");
    assert_eq!(
        denied["rule"],
        r#"tools.deny[1] "files__write" when path is /etc/**"#
    );
    let open = check(&["write"], 0);
    assert_eq!(
        (&open["verdict"], &open["arguments_matter"]),
        (&json!("allowed"), &json!(true))
    );
    assert_eq!(check(&["read"], 6)["rule"], r#"tools.ask[0] "files__read""#);
    assert_eq!(check(&["drop_all"], 1)["verdict"], "denied");
    let unknown = setup.run(&["rules", "check", "file", "read"]).code(1);
    assert!(
        unknown.stderr.contains("did you mean `files`?"),
        "{unknown}"
    );
    let bad = setup
        .run(&["rules", "check", "files", "read", "--arguments", "{"])
        .code(1);
    assert!(bad.stderr.contains("--arguments"), "{bad}");
    let rules = setup.run(&["--json", "rules", "list"]).code(0).json();
    assert_eq!(rules.as_array().unwrap().len(), 3, "{rules}");
}

#[test]
fn a_rule_that_is_not_understood_stops_the_program() {
    for wrong in [
        json!([{ "tool": "write" }]),
        json!([{ "when": { "path": "/x" } }]),
        json!([{ "tool": "write", "when": {} }]),
        json!([{ "tool": "write", "when": { "path": [] } }]),
        json!([{ "tool": "write", "when": { "path": "!" } }]),
        json!([{ "tool": "write", "when": { "path": 7 } }]),
        json!([{ "tool": "write", "when": { "path": "/x" }, "unless": {} }]),
        json!([{ "tool": "@nothing", "when": { "path": "/x" } }]),
        json!([7]),
        json!({ "tool": "write" }),
    ] {
        let setup = files(json!({ "deny": wrong }));
        let failed = setup.run(&["list"]).code(3);
        assert!(failed.stderr.contains("tools.deny"), "{wrong}: {failed}");
    }
}
