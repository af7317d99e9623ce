//! Codex, which sees all tools behind `mcpzip` as one, and calls it without asking or not at all.

use super::case::{Machine, user_file};

const SERVER: &str = "[mcp_servers.x]\ncommand = \"x-mcp\"\n";

fn mode(machine: &Machine) -> String {
    let text = machine.read(user_file("codex"));
    let line = text
        .lines()
        .find(|line| line.starts_with("default_tools_approval_mode"));
    line.unwrap_or_else(|| panic!("no mode in {text}"))
        .to_owned()
}

#[test]
fn codex_may_call_what_it_could_not_ask_about_and_the_user_is_warned() {
    for (policy, flag, expected, warning) in [
        ("", None, "auto", "ask before EVERY call"),
        (
            "approval_policy = \"never\"\n",
            None,
            "approve",
            "EVERY tool",
        ),
        (
            "approval_policy = \"on-request\"\n",
            None,
            "auto",
            "ask before EVERY call",
        ),
        ("", Some("auto"), "auto", "--codex-approval approve"),
        (
            "approval_policy = \"untrusted\"\n",
            Some("approve"),
            "approve",
            "--codex-approval auto",
        ),
    ] {
        let flags: Vec<&str> = flag
            .map(|flag| ["--codex-approval", flag])
            .into_iter()
            .flatten()
            .collect();
        let machine = Machine::new();
        machine.put(user_file("codex"), &format!("{policy}{SERVER}"));
        let report = machine.migrate(&flags);
        assert!(
            report["warnings"].to_string().contains(warning),
            "{policy} {report:#}"
        );
        assert_eq!(
            mode(&machine),
            format!("default_tools_approval_mode = \"{expected}\"")
        );

        let machine = Machine::new();
        machine.put(user_file("codex"), policy);
        let told = machine
            .run(&[&["connect", "codex"], flags.as_slice()].concat())
            .code(0);
        assert!(told.stderr.contains(warning), "{policy} {told}");
        assert_eq!(
            mode(&machine),
            format!("default_tools_approval_mode = \"{expected}\"")
        );
    }
}

#[test]
fn other_clients_are_not_warned_of_codex() {
    let machine = Machine::new();
    machine.put(
        user_file("cursor"),
        r#"{"mcpServers": {"x": {"command": "x-mcp"}}}"#,
    );
    let report = machine.migrate(&[]);
    assert!(
        !report["warnings"].to_string().contains("Codex"),
        "{report:#}"
    );
}

#[test]
fn an_entry_whose_calls_codex_refuses_is_warned_of() {
    let entry = |mode: &str| {
        format!("[mcp_servers.mcpzip]\ncommand = \"mcpzip\"\nargs = [\"serve\"]\n{mode}")
    };
    let auto = "default_tools_approval_mode = \"auto\"\n";
    let approve = "default_tools_approval_mode = \"approve\"\n";
    for (policy, mode, is_refused) in [
        ("", auto, false),
        ("approval_policy = \"never\"\n", auto, true),
        ("approval_policy = \"on-request\"\n", auto, false),
        ("approval_policy = \"never\"\n", approve, false),
    ] {
        let machine = Machine::new();
        machine.put(user_file("codex"), &format!("{policy}{}", entry(mode)));
        let told = machine.run(&["connect", "codex"]).code(0);
        assert_eq!(
            told.stderr.contains("refuses calls"),
            is_refused,
            "{policy}{mode} {told}"
        );
        let found = machine.run(&["doctor", "--json"]).stdout;
        assert_eq!(
            found.contains("client-refuses"),
            is_refused,
            "{policy}{mode} {found}"
        );
    }
    // An entry without a mode gets the one that keeps the user's policy of asking.
    let machine = Machine::new();
    let asking = format!("approval_policy = \"on-request\"\n{}", entry(""));
    machine.put(user_file("codex"), &asking);
    let _ = machine.run(&["doctor", "--fix"]);
    assert_eq!(mode(&machine), "default_tools_approval_mode = \"auto\"");
}
