//! A file of a client that cannot be read may have a switch or a list of tools for any server, and a server may be the same one although
//! its command line is another.

use serde_json::{Value, json};

use super::case::{CLIENTS, Machine, user_file, verdict};

/// Not understood in any syntax.
const BROKEN: &str = "mcpzip: {\n,,}[\n";

#[test]
fn a_file_of_a_client_that_may_run_mcpzip_keeps_servers_until_it_can_be_read() {
    for client in CLIENTS {
        let own = match client {
            "gemini-cli" => "cursor",
            _ => "gemini-cli",
        };
        let machine = Machine::new();
        machine.put(
            user_file(own),
            r#"{"mcpServers": {"w": {"command": "w-mcp"}}}"#,
        );
        let file = machine.put(user_file(client), BROKEN);
        let report = machine.migrate_readable();
        let (said, why) = verdict(&report, "w");
        let path = file.display().to_string();
        for part in ["are not known", &format!("correct {path}"), "--drop-rules"] {
            assert!(
                said == "stays" && why.contains(part),
                "{client}: {part}: {report:#}"
            );
        }
        machine.setup().save_text("{}");
        let add = ["add", "v", "--no-check", r#"{"command": "v-mcp"}"#];
        let added = machine.run(&add).code(0).stderr;
        assert!(
            added.contains("can call `v` through mcpzip")
                && added.contains(&path)
                && added.contains(&format!("`mcpzip migrate --client {client}`")),
            "{client}: {added}"
        );
        let way_out = ["migrate", "--yes", "--json", "--only", "w", "--drop-rules"];
        let report = machine.run(&way_out).code(6).json();
        assert_eq!(verdict(&report, "w").0, "moves", "{client}: {report:#}");
    }
}

/// The tools of two servers, of Claude Code and Cursor, of which Claude Code denies one.
fn tools(one: &str, other: &str) -> [Value; 2] {
    let machine = Machine::new();
    for (client, name, line) in [("claude-code", "a", one), ("cursor", "b", other)] {
        let words: Vec<String> = line.split(' ').map(|word| word.replace('_', " ")).collect();
        let entry = match line.starts_with("http") {
            true => json!({ "type": "http", "url": line }),
            false => json!({ "command": words[0], "args": words[1..] }),
        };
        let file = json!({ "mcpServers": { name: entry } });
        machine.put(user_file(client), &file.to_string());
    }
    machine.put(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__a__rm"]}}"#,
    );
    machine.migrate(&[]);
    let servers = machine.servers();
    ["a", "b"].map(|name| servers[name]["tools"].clone())
}

#[test]
fn a_denial_reaches_the_same_package_whoever_starts_it() {
    // `_` is a space in an argument.
    for (one, other) in [
        (
            "docker run -i --rm -e TOKEN ghcr.io/x/y",
            "docker run -i --rm -e TOKEN -e HOST ghcr.io/x/y:v1",
        ),
        (
            "docker run -i --rm x/y",
            "podman run -i -v /a:/b x/y:latest",
        ),
        ("uvx pkg", "uvx --from pkg pkg"),
        ("uvx pkg", "uvx --python 3.12 pkg"),
        ("uvx pkg", "uv tool run pkg"),
        ("npx -y pkg", "npx -p pkg pkg"),
        ("npx -y pkg", "npm exec pkg"),
        ("npx -y pkg", "bunx pkg"),
        ("npx -y pkg", "pnpm dlx pkg"),
        ("npx -y pkg", "cmd /c npx -y pkg"),
        ("w-mcp", "env w-mcp"),
        ("w-mcp x", "env A=1 timeout 99 w-mcp x"),
        ("w-mcp x", "sh -c w-mcp_x"),
        ("npx -y pkg", "bash -lc exec_npx_-y_pkg"),
        ("https://a.example/mcp", "https://a.example:443/mcp"),
        // Options and programs around it that may be unknown, and other spellings.
        ("npx -y pkg", "npx --unheard-of x pkg"),
        ("npx -y pkg", "npx -c pkg"),
        ("npx -y pkg", "deno run -A npm:pkg"),
        ("npx -y pkg", "sudo -u me NPX.CMD pkg"),
        ("npx -y pkg", "op run --env-file=.env -- npx pkg"),
        ("npx -y pkg", "unheard-of --for 1 npx pkg"),
        ("npx -y pkg", "bash -c cd_/x_&&_exec_npx_pkg_2>/dev/null"),
        ("npx -y pkg", "env -S A=1_npx pkg"),
        ("npx -y pkg", "npx alias@npm:pkg"),
        ("uvx mcp-server-git", "uvx -w extra MCP.Server.Git"),
        ("docker run -i x/y", "finch run -itd index.docker.io/x/y"),
        (
            "docker run postgres",
            "docker -H tcp://a run docker.io/library/postgres",
        ),
        ("w-mcp x", "sh -c w-mcp_x_|_log"),
        ("https://a.example/mcp", "https://me:pw@a.example.//%6Dcp"),
        (
            "https://a.example/mcp",
            "npx mcp-remote https://a.example/mcp --unheard-of",
        ),
    ] {
        for (one, other) in [(one, other), (other, one)] {
            let denied = json!({ "deny": ["rm"] });
            let expected = [denied.clone(), denied];
            assert_eq!(tools(one, other), expected, "{one}, {other}");
        }
    }
}

#[test]
fn another_image_argument_or_address_is_another_server() {
    for (one, other) in [
        ("docker run -i --rm x/y", "docker run -i --rm x/z"),
        ("docker run -i x/y /a", "docker run -i x/y /b"),
        ("npx -y pkg", "npx -y other"),
        ("w-mcp x", "sh -c cd_/x_&&_v-mcp_x"),
        ("npx --unheard-of x pkg", "npx --unheard-of x other"),
        ("https://a.example/mcp", "https://a.example:8443/mcp"),
    ] {
        let expected = [json!({ "deny": ["rm"] }), Value::Null];
        assert_eq!(tools(one, other), expected, "{one}, {other}");
    }
}
