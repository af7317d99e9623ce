//! What stands before a server and is not needed here, what cannot move at all, and what a program of the desktop lacks.

use serde_json::json;

use super::case::{Case, Machine, user_file, verdict};

#[test]
fn mcp_remote_gives_way_to_its_url() {
    Case::new(
        "claude-desktop",
        r#"{"mcpServers": {
            "a": {"command": "npx", "args": ["-y", "mcp-remote@latest", "https://a.example/mcp", "--header", "Authorization:${AUTH}"], "env": {"AUTH": "Bearer x-1"}},
            "b": {"command": "npx", "args": ["mcp-remote", "https://b.example/sse", "9696", "--ignore-tool", "delete*"]},
            "c": {"command": "npx", "args": ["-y", "mcp-remote", "https://c.example", "--unknown"]}
        }}"#,
    )
    .moves("a", json!({ "url": "https://a.example/mcp", "headers": { "Authorization": "Bearer x-1" } }))
    .moves(
        "b",
        json!({ "type": "sse", "url": "https://b.example/sse", "oauth": { "redirect_port": 9696 }, "tools": { "deny": ["delete*"] } }),
    )
    .moves("c", json!({ "command": "npx", "args": ["-y", "mcp-remote", "https://c.example", "--unknown"] }))
    .check();
}

#[test]
fn no_variable_of_mcp_remote_is_lost() {
    let case = |client| {
        Case::new(
            client,
            r#"{"mcpServers": {
            "a": {"command": "npx", "args": ["mcp-remote", "https://a.example/mcp", "--header", "Authorization:${AUTH_HEADER}"], "env": {"AUTH_HEADER": "Bearer ${TOKEN}"}},
            "b": {"command": "npx", "args": ["mcp-remote", "https://b.example/mcp"], "env": {"NODE_EXTRA_CA_CERTS": "/etc/ca.pem", "HTTPS_PROXY": "http://proxy.example:3128", "PATH": "/opt/node/bin"}},
            "c": {"command": "npx", "args": ["mcp-remote", "https://c.example/mcp"], "env": {"MCP_REMOTE_CONFIG_DIR": "/srv/logins"}}
        }}"#,
        )
        .moves("a", json!({ "url": "https://a.example/mcp", "headers": { "Authorization": "Bearer ${TOKEN}" } }))
        .moves("b", json!({ "url": "https://b.example/mcp", "ca_file": "/etc/ca.pem", "proxy": "http://proxy.example:3128" }))
        .moves(
            "c",
            json!({ "command": "npx", "args": ["mcp-remote", "https://c.example/mcp"], "env": { "MCP_REMOTE_CONFIG_DIR": "/srv/logins" } }),
        )
    };
    for client in ["claude-code", "claude-desktop", "cursor"] {
        case(client).check();
    }
    let machine = Machine::new();
    machine.put(
        user_file("cursor"),
        r#"{"mcpServers": {
            "b": {"command": "npx", "args": ["mcp-remote", "https://b.example/mcp"], "env": {"PATH": "/opt/node/bin"}},
            "c": {"command": "npx", "args": ["mcp-remote", "https://c.example/mcp"], "env": {"MCP_REMOTE_CONFIG_DIR": "/srv/logins"}}
        }}"#,
    );
    let plan = machine.run(&["migrate", "--dry-run"]).code(0).stdout;
    for part in [
        "without `PATH`",
        "`MCP_REMOTE_CONFIG_DIR` has no counterpart",
    ] {
        assert!(
            plan.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(part),
            "{plan}"
        );
    }
}

#[test]
fn no_secret_of_any_server_is_shown() {
    let machine = Machine::new();
    machine.put(
        user_file("vscode"),
        r#"{"servers": {
            "stays": {"url": "https://me:stays-password@s.example/mcp", "headers": {"X-Team": "stays-header", "K": "${input:k}"}},
            "moves": {"command": "x-mcp", "args": ["postgresql://me:moves-password@db.example/x", "--token", "moves-token"], "env": {"NAME": "moves-value"}},
            "docker": {"command": "docker", "args": ["run", "-i", "--rm", "-e", "SLACK_TOKEN=docker-token", "mcp/slack"]},
            "header": {"command": "x-mcp", "args": ["--header", "Authorization: Bearer header-token", "-eX=joined-secret", "--env=Y=equal-secret"]}
        }, "myApiKey": "setting-key"}"#,
    );
    for arguments in [
        &["migrate", "--dry-run"][..],
        &["migrate", "--dry-run", "--json"],
        &["migrate", "--yes"],
    ] {
        let told = machine.run(arguments).code(0);
        for secret in [
            "stays-password",
            "stays-header",
            "moves-password",
            "moves-token",
            "moves-value",
            "setting-key",
            "docker-token",
            "header-token",
            "joined-secret",
            "equal-secret",
        ] {
            assert!(
                !told.stdout.contains(secret) && !told.stderr.contains(secret),
                "{secret} in {told}"
            );
        }
    }
}

#[test]
fn a_command_for_headers_moves_along() {
    Case::new(
        "claude-code",
        r#"{"mcpServers": {"x": {"type": "http", "url": "https://x.example", "headersHelper": "print-headers x"}}}"#,
    )
    .moves("x", json!({ "url": "https://x.example", "headersHelper": "print-headers x" }))
    .check();
}

#[test]
fn what_is_in_no_list_is_named_with_the_reason() {
    let machine = Machine::new();
    let plugin = machine.home("plugins/db");
    machine.put(
        "plugins/db/.mcp.json",
        r#"{"db": {"command": "${CLAUDE_PLUGIN_ROOT}/db"}}"#,
    );
    machine.put(
        ".claude.json",
        r#"{"mcpServers": {}, "claudeAiMcpEverConnected": ["claude.ai Notes"]}"#,
    );
    machine.put(
        ".claude/plugins/installed_plugins.json",
        &json!({ "version": 2, "plugins": { "store@market": [{ "scope": "user", "installPath": plugin }] } })
            .to_string(),
    );
    machine.put(
        ".config/Claude/Claude Extensions/x.y/manifest.json",
        r#"{"name": "files", "display_name": "Files"}"#,
    );
    let before = machine.everything();
    let report = machine.migrate(&[]);
    for (server, reason) in [
        ("claude.ai Notes", "connector"),
        ("plugin:store:db", "plugin"),
        ("Files", "bundle"),
    ] {
        let (said, why) = verdict(&report, server);
        assert!(
            said == "stays" && why.contains(reason),
            "{server} {said}: {why}"
        );
    }
    assert_eq!(machine.everything(), before);
}

#[test]
fn what_a_program_of_the_desktop_would_not_find_is_told() {
    let machine = Machine::new();
    machine.put(
        user_file("cursor"),
        r#"{"mcpServers": {"x": {"command": "no-such-x-mcp", "env": {"K": "${env:X_KEY}", "H": "${env:HOME}"}}, "y": {"command": "/bin/sh"}}}"#,
    );
    let report = machine.migrate(&["--dry-run"]);
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("`no-such-x-mcp` is not on the PATH") && warnings.contains("`X_KEY`"),
        "{warnings}"
    );
    assert!(
        !warnings.contains("`y`") && !warnings.contains("HOME"),
        "{warnings}"
    );
    // A program of the command line has what its shell has.
    let machine = Machine::new();
    machine.put(
        user_file("codex"),
        "[mcp_servers.x]\ncommand = \"no-such-x-mcp\"\n",
    );
    let warnings = machine.migrate(&["--dry-run"])["warnings"].to_string();
    assert!(!warnings.contains("no-such-x-mcp"), "{warnings}");
}

#[test]
fn continue_gets_a_list_where_it_had_none() {
    let machine = Machine::new();
    machine.put(".continue/config.yaml", "name: Mine\nversion: 0.0.1\n");
    let _ = machine.run(&["connect", "continue"]).code(0);
    let text = machine.read(".continue/config.yaml");
    assert!(text.contains("mcpServers:\n  - name: mcpzip\n"), "{text}");
    machine.undo();
    assert_eq!(
        machine.read(".continue/config.yaml"),
        "name: Mine\nversion: 0.0.1\n"
    );
}
