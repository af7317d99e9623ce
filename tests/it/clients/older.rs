//! The layout of mcpzip 0.1.

use serde_json::json;

use super::case::{Machine, verdict};

const OLDER: &str = ".config/compressed-mcp-proxy/config.json";

#[test]
fn an_older_configuration_is_taken_over_and_stays_there() {
    let machine = Machine::new();
    let content = r#"{
  "gemini_api_key": "AIza-secret-7",
  "search": { "model": "gemini-2.0-flash", "default_limit": 7 },
  "idle_timeout_minutes": 5,
  "call_timeout_seconds": 60,
  "mcpServers": {
    "slack": { "command": "npx", "args": ["-y", "slack-mcp"], "env": { "SLACK_TOKEN": "xoxb-secret-8" }, "extra": 1 },
    "todo": { "type": "http", "url": "https://todo.example/mcp" },
    "old": { "type": "sse", "url": "https://old.example/sse" },
    "self": { "command": "mcpzip", "args": ["serve"] },
    "none": {}
  },
  "strange": true
}"#;
    machine.put(OLDER, content);
    machine.put(
        ".config/compressed-mcp-proxy/auth/0123.json",
        r#"{"access_token": "t"}"#,
    );
    machine.put(".config/compressed-mcp-proxy/cache/tools.json", "{}");
    let before = machine.everything();
    let mentioned = machine.run(&["migrate", "--dry-run"]).code(0);
    assert!(
        mentioned.stderr.contains("--from mcpzip-0.1"),
        "{mentioned}"
    );
    let mentioned = machine.run(&["status"]).code(3);
    assert!(
        mentioned.stderr.contains("--from mcpzip-0.1"),
        "{mentioned}"
    );
    let looked = machine
        .run(&["migrate", "--from", "mcpzip-0.1", "--dry-run"])
        .code(0);
    assert!(!looked.to_string().contains("-secret-"), "{looked}");
    assert_eq!(machine.everything(), before);

    let report = machine.migrate(&["--from", "mcpzip-0.1"]);
    let config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(machine.setup().config_path()).unwrap())
            .unwrap();
    assert_eq!(
        config,
        json!({
            "mcpServers": {
                "slack": { "command": "npx", "args": ["-y", "slack-mcp"], "env": { "SLACK_TOKEN": "xoxb-secret-8" } },
                "todo": { "url": "https://todo.example/mcp" },
                "old": { "type": "sse", "url": "https://old.example/sse" },
            },
            "idle_timeout": "5m",
            "call_timeout": "60s",
            "search": {
                "default_limit": 7,
                "llm": { "provider": "gemini", "model": "gemini-2.0-flash", "api_key": "AIza-secret-7" },
            },
        })
    );
    assert_eq!(verdict(&report, "self").0, "stays");
    assert!(verdict(&report, "none").1.contains("neither"));
    let notes = report["notes"].to_string();
    for told in ["`strange`", "1 login there", "cached lists"] {
        assert!(notes.contains(told), "{notes}");
    }
    let understood = machine.run(&["auth", "status"]).code(0);
    assert!(
        understood.stderr.is_empty(),
        "what was written is understood: {understood}"
    );
    assert_eq!(machine.read(OLDER), content);
    let again = machine.migrate(&["--from", "mcpzip-0.1"]);
    assert_eq!(again["files"], json!([]));
    machine.undo();
    assert_eq!(machine.everything(), before);
}

#[test]
fn odd_values_are_told_and_cost_nothing_else() {
    let machine = Machine::new();
    let _ = machine.run(&["migrate", "--from", "mcpzip-0.1"]).code(1);
    machine.put(
        OLDER,
        r#"{"idle_timeout_minutes": "five", "mcpServers": {"a": {"command": "a"}, "b": 7}}"#,
    );
    let report = machine.migrate(&["--from", "mcpzip-0.1"]);
    assert_eq!(machine.servers(), json!({ "a": { "command": "a" } }));
    assert!(
        report["notes"].to_string().contains("idle_timeout_minutes"),
        "{report:#}"
    );
    assert_eq!(verdict(&report, "b").0, "stays");
}

#[test]
fn doctor_advises_to_take_over_what_was_not_taken_over() {
    let machine = Machine::new();
    machine.put(OLDER, r#"{"mcpServers": {"gh": {"command": "x"}}}"#);
    let advised = || {
        let report = machine.run(&["doctor", "--json"]);
        report.stdout.contains("config-older-layout")
    };
    assert!(advised());
    machine.migrate(&["--from", "mcpzip-0.1"]);
    assert!(!advised());
    machine.undo();
    assert!(advised());
}
