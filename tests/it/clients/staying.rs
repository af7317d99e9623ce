//! What must not move, and why.

use serde_json::json;

use super::case::{Case, Machine, user_file, verdict};

#[test]
fn what_only_the_client_can_do_keeps_a_server_there() {
    for (client, entry, reason) in [
        (
            "vscode",
            r#"{"command": "x", "env": {"K": "${input:key}"}}"#,
            "${input:key}",
        ),
        (
            "vscode",
            r#"{"command": "x", "args": ["${workspaceFolder}/a"]}"#,
            "${workspaceFolder}",
        ),
        ("vscode", r#"{"command": "x", "envFile": "/e"}"#, "envFile"),
        (
            "vscode",
            r#"{"command": "x", "sandboxEnabled": true}"#,
            "sandbox",
        ),
        (
            "vscode",
            r#"{"type": "http", "url": "unix:///run/x.sock"}"#,
            "unix",
        ),
        ("vscode", r#"{"url": "pipe://x"}"#, "pipe"),
        (
            "cursor",
            r#"{"command": "${workspaceFolder}/run"}"#,
            "${workspaceFolder}",
        ),
        (
            "cursor",
            r#"{"command": "x", "env": {"P": "a${pathSeparator}b"}}"#,
            "${pathSeparator}",
        ),
        (
            "cursor",
            r#"{"url": "https://x.example", "auth": {"CLIENT_ID": "a", "strange": 1}}"#,
            "strange",
        ),
        (
            "windsurf",
            r#"{"serverUrl": "https://x.example", "headers": {"A": "${file:/k}"}}"#,
            "${file:/k}",
        ),
        (
            "opencode",
            r#"{"type": "remote", "url": "https://x.example", "headers": {"A": "{file:./k}"}}"#,
            "{file:./k}",
        ),
        (
            "cursor",
            r#"{"type": "http", "url": "https://x.example", "headersHelper": "h"}"#,
            "headersHelper",
        ),
        (
            "claude-code",
            r#"{"type": "ws", "url": "wss://x.example"}"#,
            "WebSocket",
        ),
        (
            "claude-code",
            r#"{"command": "${CLAUDE_PLUGIN_ROOT}/x"}"#,
            "CLAUDE_PLUGIN_ROOT",
        ),
        (
            "claude-code",
            r#"{"command": "x", "env": {"A": "$${B}"}}"#,
            "something else",
        ),
        (
            "gemini-cli",
            r#"{"httpUrl": "https://x.example", "authProviderType": "google_credentials"}"#,
            "authProviderType",
        ),
        ("kiro", r#"{"command": "./bin/x"}"#, "relative"),
        ("kiro", r#"{"command": "x", "cwd": "sub"}"#, "relative"),
        (
            "kiro",
            r#"{"command": "x", "url": "https://x.example"}"#,
            "both",
        ),
        ("kiro", r#"{"disabled": false}"#, "neither"),
        ("kiro", r#"{"command": ""}"#, "no program"),
        ("kiro", r#"{"command": "x", "args": [{}]}"#, "argument"),
        (
            "kiro",
            r#"{"command": "x", "env": ["A=b"]}"#,
            "form of `env`",
        ),
        (
            "kiro",
            r#"{"type": "quic", "url": "https://x.example"}"#,
            "quic",
        ),
        ("kiro", r#""x-mcp""#, "not an entry"),
        (
            "kiro",
            r#"{"command": "mcpzip", "args": ["serve"]}"#,
            "mcpzip itself",
        ),
        (
            "kiro",
            r#"{"command": "/opt/x/mcpzip.exe", "args": ["serve", "--direct"]}"#,
            "mcpzip itself",
        ),
        (
            "kiro",
            r#"{"command": "sh", "args": ["-c", "exec mcpzip serve"]}"#,
            "mcpzip itself",
        ),
        (
            "kiro",
            r#"{"command": "npx", "args": ["-y", "mcpzip@latest", "serve"]}"#,
            "mcpzip itself",
        ),
        (
            "claude-code",
            r#"{"command": "npx", "args": ["mcp-remote", "https://x.example", "--static-oauth-client-info", "${input:a}"]}"#,
            "${input:a}",
        ),
        (
            "kiro",
            r#"{"command": "uvx", "args": ["mcp-proxy", "--named", "x"]}"#,
            "another proxy",
        ),
        (
            "kiro",
            r#"{"command": "docker", "args": ["mcp", "gateway", "run"]}"#,
            "another proxy",
        ),
    ] {
        let machine = Machine::new();
        let key = match client {
            "vscode" => "servers",
            "opencode" => "mcp",
            _ => "mcpServers",
        };
        machine.put(
            user_file(client),
            &format!(r#"{{"{key}": {{"x": {entry}}}}}"#),
        );
        let before = machine.everything();
        let report = machine.migrate(&[]);
        let (verdict, why) = verdict(&report, "x");
        assert!(
            verdict == "stays" && why.contains(reason),
            "{client} {entry}: {verdict}: {why}"
        );
        assert_eq!(machine.everything(), before);
    }
}

#[test]
fn secrets_of_other_stores_stay_with_their_client() {
    Case::new(
        "goose",
        "extensions:\n  x:\n    type: stdio\n    cmd: x\n    env_keys: [TOKEN]\n",
    )
    .stays("x", "keyring")
    .check();
    Case::new(
        "continue",
        "mcpServers:\n  - name: x\n    command: x\n    env:\n      K: ${{ secrets.K }}\n",
    )
    .stays("x", "${{ secrets.K }}")
    .check();
    Case::new(
        "codex",
        "[mcp_servers.x]\ncommand = \"x\"\nenv_vars = [{ name = \"A\", source = \"remote\" }]\n",
    )
    .stays("x", "env_vars")
    .check();
}

#[test]
fn a_directory_called_mcpzip_makes_no_mcpzip() {
    Case::new(
        "kiro",
        r#"{"mcpServers": {"files": {"command": "files-mcp", "args": ["/home/me/mcpzip", "/x/mcp-proxy"]}}}"#,
    )
    .moves("files", json!({ "command": "files-mcp", "args": ["/home/me/mcpzip", "/x/mcp-proxy"] }))
    .check();
}

#[test]
fn another_proxy_moves_when_it_is_named() {
    Case::new(
        "kiro",
        r#"{"mcpServers": {"x": {"command": "mcp-proxy", "args": ["a"]}}}"#,
    )
    .argument("--only=x")
    .moves("x", json!({ "command": "mcp-proxy", "args": ["a"] }))
    .check();
}

#[test]
fn only_what_is_meant_moves() {
    let machine = Machine::new();
    machine.put(
        user_file("kiro"),
        r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}"#,
    );
    machine.put(
        user_file("cursor"),
        r#"{"mcpServers": {"a": {"command": "c"}}}"#,
    );
    machine.migrate(&["--client", "kiro", "--only", "b"]);
    assert_eq!(machine.servers(), json!({ "b": { "command": "b" } }));
    assert!(!machine.read(user_file("cursor")).contains("mcpzip"));
    assert!(
        machine
            .read(user_file("kiro"))
            .contains(r#""a": {"command": "a"}"#)
    );
}

#[test]
fn references_stay_references_and_other_dollars_stay_as_they_are() {
    Case::new(
        "claude-desktop",
        r#"{"mcpServers": {"x": {"command": "sh", "args": ["-c", "run ${HOME}/x $1"], "env": {"T": "${T}", "P": "a$b"}}}}"#,
    )
    .moves("x", json!({ "command": "sh", "args": ["-c", "run $${HOME}/x $1"], "env": { "T": "${T}", "P": "a$b" } }))
    .check();
    Case::new(
        "gemini-cli",
        r#"{"mcpServers": {"x": {"command": "x", "args": ["$A-b", "$$", "${C:-d}", "$1"]}}}"#,
    )
    .moves(
        "x",
        json!({ "command": "x", "args": ["${A}-b", "$$", "${C:-d}", "$1"] }),
    )
    .check();
    Case::new(
        "claude-code",
        r#"{"mcpServers": {"x": {"command": "x", "args": ["${env:A}", "{env:B}", "${not closed"]}}}"#,
    )
    .moves("x", json!({ "command": "x", "args": ["$${env:A}", "{env:B}", "$${not closed"] }))
    .check();
    // Codex fills in nothing: a whole value is meant as a reference, a part of one stays as its server got it.
    Case::new(
        "codex",
        "[mcp_servers.x]\ncommand = \"x\"\nenv = { T = \"${T}\", M = \"a ${B} c\" }\n",
    )
    .moves(
        "x",
        json!({ "command": "x", "env": { "T": "${T}", "M": "a $${B} c" } }),
    )
    .check();
}

#[test]
fn nothing_is_done_without_a_yes_and_no_secret_is_shown() {
    let machine = Machine::new();
    machine.put(
        user_file("kiro"),
        r#"{"mcpServers": {"x": {"command": "x", "args": ["--token", "arg-secret-1"], "env": {"API_KEY": "env-secret-2"}}, "y": {"url": "https://y.example/?key=url-secret-3", "headers": {"Authorization": "Bearer head-secret-4"}}}}"#,
    );
    let before = machine.everything();
    let refused = machine.run(&["migrate"]).code(1);
    assert!(
        refused.stderr.contains("--yes") && refused.stdout.contains("\"moves\""),
        "{refused}"
    );
    assert_eq!(machine.everything(), before);
    for secret in [
        "arg-secret-1",
        "env-secret-2",
        "url-secret-3",
        "head-secret-4",
    ] {
        assert!(!refused.to_string().contains(secret), "{refused}");
    }
    machine.migrate(&[]);
    assert_eq!(machine.servers()["x"]["env"]["API_KEY"], "env-secret-2");
}
