//! The rules of a server hold for another that runs the same program, and an `allow` only for one that runs it in the same way.

use serde_json::{Value, json};

use super::case::{Machine, user_file};

/// Claude Code with the server `github`, and Gemini CLI with `github-ro`, which has an `allow`, a `deny` and an `ask`.
fn machine(github: &Value, limited: &Value) -> Machine {
    let machine = Machine::new();
    let file = json!({ "mcpServers": { "github": github } });
    machine.put(user_file("claude-code"), &file.to_string());
    let mut limited = limited.clone();
    limited["includeTools"] = json!(["get_me", "list"]);
    limited["excludeTools"] = json!(["list"]);
    let file = json!({ "mcpServers": { "github-ro": limited } });
    machine.put(user_file("gemini-cli"), &file.to_string());
    machine
}

#[test]
fn an_allow_list_for_a_server_that_is_run_in_another_way_takes_no_tools_from_the_first() {
    let with_token = |token: &str| json!({ "command": "gh-mcp", "env": { "TOKEN": token } });
    for (github, limited) in [
        (
            json!({ "command": "gh-mcp" }),
            json!({ "command": "gh-mcp", "env": { "GITHUB_READ_ONLY": "1" } }),
        ),
        (
            json!({ "command": "gh-mcp", "args": ["stdio"] }),
            json!({ "command": "gh-mcp", "args": ["stdio", "--read-only"] }),
        ),
        (
            json!({ "type": "http", "url": "https://m.example/mcp" }),
            json!({ "httpUrl": "https://m.example/mcp?readonly=1" }),
        ),
        (
            json!({ "command": "npx", "args": ["gh-mcp"] }),
            json!({ "command": "env", "args": ["MODE=ro", "npx", "gh-mcp"] }),
        ),
        (
            json!({ "command": "npx", "args": ["gh-mcp"] }),
            json!({ "command": "npx", "args": ["--unheard-of", "gh-mcp"] }),
        ),
        (
            with_token("ghp_0123456789abcdefABCDEF0123456789abcd"),
            with_token("ghp_zyxwvutsrqponmlkZYXWVU9876543210dcba"),
        ),
    ] {
        let machine = machine(&github, &limited);
        let report = machine.migrate(&[]);
        let servers = machine.servers();
        // What may not be called at all may not be called by the other name.
        assert_eq!(
            servers["github"]["tools"],
            json!({ "deny": ["list"] }),
            "{limited}: {report:#}"
        );
        assert_eq!(
            servers["github-ro"]["tools"],
            json!({ "allow": ["get_me", "list"], "deny": ["list"] }),
            "{limited}: {report:#}"
        );
        assert_eq!(
            report["tightened"],
            json!([
                "`github` has one denied tool (`list`) for all clients, because of `github-ro`, which runs the same program or URL"
            ]),
            "{limited}"
        );
        let told = report["warnings"].to_string();
        assert!(
            told.contains("`github` is not limited to the allowed tools of `github-ro`"),
            "{told}"
        );
    }
}

#[test]
fn an_allow_list_holds_for_an_equal_server_of_another_client_and_the_plan_says_so() {
    for (github, limited) in [
        (
            json!({ "command": "gh-mcp", "env": { "MODE": "a" } }),
            json!({ "command": "gh-mcp", "env": { "MODE": "a" }, "cwd": "/" }),
        ),
        (
            json!({ "command": "npx", "args": ["-y", "@x/gh@1"] }),
            json!({ "command": "/usr/bin/npx", "args": ["@x/gh@latest"] }),
        ),
        (
            json!({ "command": "bunx", "args": ["@x/gh"] }),
            json!({ "command": "npx", "args": ["-q", "@x/gh@1"] }),
        ),
        (
            json!({ "command": "podman", "args": ["run", "-i", "--rm", "x/y:v2"] }),
            json!({ "command": "docker", "args": ["run", "--rm", "-i", "x/y"] }),
        ),
        // It may be the same token.
        (
            json!({ "command": "gh-mcp", "env": { "TOKEN": "${NO_SUCH_TOKEN}" } }),
            json!({ "command": "gh-mcp", "env": { "TOKEN": "ghp_0123456789abcdefABCDEF0123456789abcd" } }),
        ),
        (
            json!({ "type": "http", "url": "https://m.example/mcp/" }),
            json!({ "httpUrl": "https://m.example/mcp" }),
        ),
    ] {
        let machine = machine(&github, &limited);
        let report = machine.migrate(&[]);
        let tools = json!({ "allow": ["get_me", "list"], "deny": ["list"] });
        for name in ["github", "github-ro"] {
            assert_eq!(
                machine.servers()[name]["tools"],
                tools,
                "{name} {limited}: {report:#}"
            );
        }
        assert_eq!(
            report["tightened"],
            json!([
                "`github` has 2 allowed tools and has one denied tool (`list`) for all clients, because of `github-ro`, which runs the \
                 same program or URL"
            ]),
            "{limited}"
        );
    }
}

#[test]
fn a_script_is_the_same_program_by_its_path_and_by_the_directory_that_it_is_in() {
    let base = Machine::new();
    let script = base.put("scripts/d.py", "");
    let directory = script.parent().unwrap();
    for relative in ["./d.py", "d.py", "../scripts/d.py"] {
        let machine = machine(
            &json!({ "command": "python3", "args": [script] }),
            &json!({ "command": "python3", "args": [relative], "cwd": directory }),
        );
        let report = machine.migrate(&[]);
        for name in ["github", "github-ro"] {
            assert_eq!(
                machine.servers()[name]["tools"]["allow"],
                json!(["get_me", "list"]),
                "{name} {relative}: {report:#}"
            );
        }
    }
}

#[test]
fn a_server_that_stays_in_its_client_gives_its_allow_list_to_an_equal_one_alone() {
    for (limited, tools) in [
        (
            json!({ "command": "gh-mcp" }),
            json!({ "allow": ["get_me", "list"], "deny": ["list"] }),
        ),
        (
            json!({ "command": "gh-mcp", "args": ["--read-only"] }),
            json!({ "deny": ["list"] }),
        ),
    ] {
        let machine = machine(&json!({ "command": "gh-mcp" }), &limited);
        let report = machine.migrate(&["--only", "github"]);
        assert_eq!(machine.servers()["github"]["tools"], tools, "{report:#}");
        let told = report["tightened"].to_string();
        assert!(
            told.contains("because of `github-ro` of Gemini CLI"),
            "{told}"
        );
    }
}

#[test]
fn an_ask_of_another_way_opens_no_tool_that_an_allow_list_withholds() {
    let machine = Machine::new();
    let file = json!({ "mcpServers": { "github": { "command": "gh-mcp", "args": ["--all"] } } });
    machine.put(user_file("claude-code"), &file.to_string());
    machine.put(
        ".claude/settings.json",
        r#"{"permissions": {"ask": ["mcp__github__rm", "mcp__github__get_me"]}}"#,
    );
    let limited = json!({ "command": "gh-mcp", "includeTools": ["get_me"] });
    let file = json!({ "mcpServers": { "github-ro": limited } });
    machine.put(user_file("gemini-cli"), &file.to_string());
    let report = machine.migrate(&[]);
    assert_eq!(
        machine.servers()["github-ro"]["tools"],
        json!({ "allow": ["get_me"], "ask": ["get_me"] }),
        "{report:#}"
    );
    assert_eq!(
        machine.servers()["github"]["tools"],
        json!({ "ask": ["get_me", "rm"] }),
        "{report:#}"
    );
}

/// Rules under a condition, fixed arguments and consents of an entry stay when rules of a client are added, and the denials hold for
/// another name of the program, too.
#[test]
fn what_only_mcpzip_knows_of_an_entry_stays() {
    let push = json!({ "tool": "push", "when": { "branch": "main" } });
    let fixed = json!({ "create_issue": { "arguments": { "repo": { "fixed": "me/safe" } } } });
    let github = json!({
        "command": "gh-mcp",
        "tools": { "override": fixed, "deny": [push], "without_asking": ["get_me"] },
    });
    for name in ["github", "github-ro"] {
        let machine = Machine::new();
        let file = json!({ "mcpServers": { "github": github } });
        std::fs::write(machine.setup().config_path(), file.to_string()).unwrap();
        let file =
            json!({ "mcpServers": { name: { "command": "gh-mcp", "excludeTools": ["list"] } } });
        machine.put(user_file("gemini-cli"), &file.to_string());
        let report = machine.migrate(&[]);
        let servers = machine.servers();
        let tools =
            json!({ "override": fixed, "deny": ["list", push], "without_asking": ["get_me"] });
        assert_eq!(servers["github"]["tools"], tools, "{report:#}");
        if name == "github-ro" {
            let tools = json!({ "deny": ["list", push] });
            assert_eq!(servers[name]["tools"], tools, "{report:#}");
            let limits = report["tightened"].to_string();
            assert!(limits.contains("push when"), "{limits}");
        }
    }
}

#[test]
fn two_servers_of_a_program_are_the_cause_together() {
    let machine = Machine::new();
    let file = |name: &str, denied: &[&str]| {
        let entry = json!({ "command": "gh-mcp", "args": ["--x"], "disabledTools": denied });
        json!({ "mcpServers": { name: entry } }).to_string()
    };
    machine.put(user_file("windsurf"), &file("one", &["a"]));
    machine.put(user_file("kiro"), &file("two", &["b"]));
    machine.put(
        user_file("cursor"),
        &file("three", &[]).replace("--x", "--y"),
    );
    let report = machine.migrate(&[]);
    let limits = report["tightened"].to_string();
    let cause = "because of `one` and `two`, which run the same program or URL";
    assert!(limits.contains(cause), "{report:#}");
}
