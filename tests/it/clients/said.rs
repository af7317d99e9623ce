//! Plans, undos and errors say what is so, and no more than once.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

const GH: &str = r#"{"mcpServers": {"gh": {"command": "gh-mcp"}}}"#;

/// The rules of a part of a report: what each says, and what becomes of it.
fn rules(report: &Value, part: &str) -> Vec<(String, String)> {
    let rules = report[part].as_array().unwrap().iter();
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap().to_owned();
    rules
        .map(|rule| (text(rule, "rule"), text(rule, "becomes")))
        .collect()
}

#[test]
fn equal_limits_of_many_servers_are_one_line() {
    let machine = Machine::new();
    machine.put(
        user_file("claude-code"),
        r#"{"mcpServers": {"a": {"command": "a-mcp"}, "b": {"command": "b-mcp"}, "c": {"command": "c-mcp"}}}"#,
    );
    machine.put(
        user_file("continue"),
        "name: a\nversion: 0.0.1\nschema: v1\nmcpServers:\n  - name: d\n    command: d-mcp\n",
    );
    machine.put(".continue/permissions.yaml", "exclude:\n  - some_tool\n");
    let report = machine.migrate(&[]);
    let tightened = report["tightened"].as_array().unwrap();
    let lines = tightened.iter().filter_map(Value::as_str);
    let lines: Vec<&str> = lines.filter(|line| line.contains("some_tool")).collect();
    assert_eq!(lines.len(), 1, "{report:#}");
    assert!(
        lines[0].starts_with("each of `a`, `b`, `c` has"),
        "{report:#}"
    );
}
