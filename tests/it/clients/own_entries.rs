//! A client's own server and mcpzip's are one if they run one program, whether or not the client's entry moves or can be converted: its
//! rules and its switch hold for both, or the client and the server do not come together.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

const GH: &str = r#"{"mcpServers": {"gh": {"command": "gh-mcp"}}}"#;
const SETTINGS: &str = ".claude/settings.json";

/// Servers of a client.
fn servers(servers: &Value) -> String {
    json!({ "mcpServers": servers }).to_string()
}

fn own() -> Value {
    json!({ "command": "mcpzip", "args": ["serve"] })
}

/// mcpzip with `gh`, and files of clients.
fn machine(config: &str, files: &[(&str, &str)]) -> Machine {
    let machine = Machine::new();
    machine.setup().save_text(config);
    for (file, content) in files {
        machine.put(file, content);
    }
    machine
}

#[track_caller]
fn assert_stays(report: &Value, server: &str, parts: &[&str]) {
    let (said, why) = verdict(report, server);
    let has_all = parts.iter().all(|part| why.contains(part));
    assert!(said == "stays" && has_all, "{report:#}");
}

#[test]
fn a_list_of_an_entry_that_stays_limits_mcpzips_server_of_the_program() {
    let limited = json!({ "command": "gh-mcp", "disabledTools": ["delete_repo"] });
    let both = servers(&json!({ "gh": limited, "other": { "command": "other-mcp" } }));
    let machine = machine(GH, &[(user_file("windsurf"), &both)]);
    for connect in [
        &["connect", "windsurf", "--dry-run"][..],
        &["connect", "windsurf"],
    ] {
        let said = machine.run(connect).code(0).stderr;
        let part = "Windsurf can call `gh` through mcpzip, where `mcpServers.gh.disabledTools`";
        assert!(said.contains(part), "{connect:?}: {said}");
    }
    let _ = machine.run(&["disconnect", "windsurf"]).code(0);
    let report = machine.migrate(&["--client", "windsurf", "--only", "other"]);
    assert_eq!(verdict(&report, "other").0, "moves", "{report:#}");
    let tools = &machine.servers()["gh"]["tools"];
    assert_eq!(*tools, json!({ "deny": ["delete_repo"] }), "{report:#}");
    let told = report["tightened"].to_string();
    assert!(told.contains("because of Windsurf's"), "{told}");
}

#[test]
fn rules_about_an_entry_that_stays_hold_for_mcpzips_server_of_the_program() {
    let both = servers(&json!({
        "github": { "type": "stdio", "command": "gh-mcp", "args": [], "env": {} },
        "other": { "type": "stdio", "command": "other-mcp", "args": [], "env": {} },
    }));
    let user = user_file("claude-code");
    let denies = r#"{"permissions": {"deny": ["mcp__github__delete_repo"]}}"#;
    let denied = machine(GH, &[(user, &both), (SETTINGS, denies)]);
    let report = denied.migrate(&["--only", "other"]);
    let tools = &denied.servers()["gh"]["tools"];
    assert_eq!(*tools, json!({ "deny": ["delete_repo"] }), "{report:#}");

    let hook = r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__github__.*", "hooks": [{"type": "command", "command": "./guard.sh"}]}]}}"#;
    let hooked = machine(GH, &[(user, &both), (SETTINGS, hook)]);
    let before = hooked.read(user);
    let report = hooked.run(&["migrate", "--only", "other", "--yes", "--json"]);
    let parts = ["Claude Code could call `gh`", "hooks.PreToolUse"];
    assert_stays(&report.json(), "other", &parts);
    let report = hooked.run(&["init", "--yes", "--no-test", "--json"]);
    let said = report.json()["plan"]["warnings"].to_string();
    for part in [
        "`other` of Claude Code stays: Claude Code could call `gh`",
        "Claude Code is not connected",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(hooked.read(user), before);

    let codex = "[mcp_servers.gh]\ncommand = \"gh-mcp\"\ndefault_tools_enabled = false\n\
                 [mcp_servers.gh.tools.get_item]\nenabled = true\n\
                 [mcp_servers.own]\ncommand = \"own-mcp\"\n";
    let listed = machine(GH, &[(user_file("codex"), codex)]);
    let init = ["init", "--yes", "--no-test", "--json", "--client", "codex"];
    let said = listed.run(&init).json()["plan"]["warnings"].to_string();
    assert!(
        said.contains("`own` of Codex stays: Codex could call `gh`"),
        "{said}"
    );
    assert_eq!(listed.read(user_file("codex")), codex);
}

#[test]
fn two_accounts_of_one_program_do_not_keep_a_client_away() {
    let account = |name: &str| json!({ "command": "gh-mcp", "args": ["--account", name] });
    let config = servers(&json!({ "gh": account("work") }));
    let other = servers(&json!({ "gh": account("home"), "more": account("third") }));
    let machine = machine(&config, &[(user_file("windsurf"), &other)]);
    let report = machine.migrate(&[]);
    for name in ["gh", "more"] {
        assert_ne!(verdict(&report, name).0, "stays", "{report:#}");
    }
    assert_eq!(machine.servers()["gh"], account("work"), "{report:#}");
}

/// The extensions of Goose: `gh` with its further lines, and another one.
fn goose(gh: &str, other: &str) -> String {
    let start = "    type: stdio\n    args: []\n    timeout: 300\n";
    format!(
        "extensions:\n  gh:\n{start}    name: gh\n    cmd: gh-mcp\n    env_keys: [GITHUB_TOKEN]\n{gh}{other}"
    )
}

#[test]
fn an_entry_that_cannot_be_converted_keeps_its_list_and_its_switch() {
    let start = "    type: stdio\n    enabled: true\n    timeout: 300\n";
    let other = format!("  other:\n{start}    name: other\n    cmd: other-mcp\n    args: []\n");
    let runs = format!("  mcpzip:\n{start}    name: mcpzip\n    cmd: mcpzip\n    args: [serve]\n");
    let listed = "    enabled: true\n    available_tools: [get_item]\n";
    let windsurf = |key: &str, value: Value| {
        let gh = json!({ "command": "gh-mcp", "env": { "T": "${file:/x}" }, key: value });
        servers(&json!({ "mcpzip": own(), "gh": gh }))
    };
    for (client, file, tools) in [
        (
            "goose",
            goose(listed, &other),
            Some(json!({ "allow": ["get_item"] })),
        ),
        ("goose", goose("    enabled: false\n", &runs), None),
        (
            "windsurf",
            windsurf("disabledTools", json!(["delete_repo"])),
            Some(json!({ "deny": ["delete_repo"] })),
        ),
        ("windsurf", windsurf("disabled", json!(true)), None),
    ] {
        let machine = machine(
            "{}",
            &[(user_file(client), &file), (".cursor/mcp.json", GH)],
        );
        let report = machine.run(&["migrate", "--yes", "--json"]).json();
        match tools {
            Some(tools) => assert_eq!(machine.servers()["gh"]["tools"], tools, "{report:#}"),
            None => {
                let of_cursor = report["servers"].as_array().unwrap().iter();
                let mut of_cursor = of_cursor.filter(|item| item["client"] == "cursor");
                let item = of_cursor.next().unwrap();
                let why = item["reason"].as_str().unwrap_or_default();
                assert!(why.contains("could call it through mcpzip"), "{report:#}");
                assert_eq!(machine.servers()["gh"], Value::Null, "{report:#}");
            }
        }
    }
}

#[test]
fn a_switch_counts_for_the_program_of_its_name_in_any_form() {
    let token = "ghp_abcdefghijklmnop1234567890abcdefghij";
    let codex = |more: &str| {
        format!(
            "[mcp_servers.gh]\ncommand = \"gh-mcp\"\nenabled = false\n{more}\
             [mcp_servers.own]\ncommand = \"own-mcp\"\n"
        )
    };
    let with_token = codex(&format!("env = {{GH_TOKEN = \"{token}\"}}\n"));
    for (entry, file) in [
        (
            json!({ "command": "gh-mcp", "sandbox": "strict" }),
            codex(""),
        ),
        (
            json!({ "command": "gh-mcp", "env": { "GH_TOKEN": "${keyring:GH_TOKEN}" } }),
            with_token.clone(),
        ),
        (
            json!({ "command": "gh-mcp", "args": ["--read-only"] }),
            codex(""),
        ),
    ] {
        let config = servers(&json!({ "gh": entry }));
        let machine = machine(&config, &[(user_file("codex"), &file)]);
        let report = machine.run(&["migrate", "--yes", "--json"]).json();
        let parts = ["Codex could call `gh`", "mcp_servers.gh.enabled"];
        assert_stays(&report, "own", &parts);
        assert_eq!(machine.read(user_file("codex")), file, "{report:#}");
    }
    // Of those that differ in secrets, none is on for the client that has one off, whether they are merged or not.
    for arguments in [&["--merge", "gh"][..], &[]] {
        let other = json!({ "command": "gh-mcp", "env": { "GH_TOKEN": "ghp_zzzzzzzzzzzzzzzzzzzz1234567890abcdefghij" } });
        let cursor = servers(&json!({ "gh": other }));
        let files = [
            (user_file("codex"), with_token.as_str()),
            (".cursor/mcp.json", &cursor),
        ];
        let machine = machine("{}", &files);
        let report = machine.run(&[&["migrate", "--yes", "--json"], arguments].concat());
        let report = report.json();
        for (name, server) in machine.servers().as_object().unwrap() {
            let is_off = server["disabled"] == true;
            assert!(name == "own" || is_off, "{report:#}");
        }
    }
    let off = json!({ "command": "gh-mcp", "args": ["--read-only"], "disabled": true });
    let windsurf = servers(&json!({ "mcpzip": own(), "gh": off }));
    let files = [
        (user_file("windsurf"), windsurf.as_str()),
        (".cursor/mcp.json", GH),
    ];
    let machine = machine("{}", &files);
    let report = machine.run(&["migrate", "--yes", "--json", "--client", "cursor"]);
    assert_stays(&report.json(), "gh", &["Windsurf could call it"]);
}

#[test]
fn a_client_runs_mcpzip_from_any_file_that_it_reads() {
    let runs = servers(&json!({ "mcpzip": own() }));
    let opencode = r#"{"mcp": {"mcpzip": {"type": "local", "command": ["mcpzip", "serve"]}}}"#;
    let extension = json!({ "name": "x", "version": "1.0.0", "mcpServers": { "mcpzip": own() } });
    let extension = extension.to_string();
    let denies = r#"{"permissions": {"deny": ["mcp__gh__delete_repo"]}}"#;
    let limited = Some(json!({ "deny": ["delete*"] }));
    for (files, tools) in [
        (
            vec![
                (".config/opencode/config.json", opencode),
                (
                    ".config/opencode/opencode.json",
                    r#"{"permission": {"gh_delete*": "deny"}}"#,
                ),
            ],
            limited.clone(),
        ),
        (
            vec![
                (".opencode/opencode.json", opencode),
                (
                    ".config/opencode/opencode.json",
                    r#"{"permission": {"gh_delete*": "deny"}}"#,
                ),
            ],
            limited,
        ),
        (
            vec![
                (".gemini/extensions/x/gemini-extension.json", &extension),
                (".gemini/settings.json", r#"{"mcp": {"excluded": ["gh"]}}"#),
            ],
            None,
        ),
        (
            vec![("pl/.mcp.json", &runs), (SETTINGS, denies)],
            Some(json!({ "deny": ["delete_repo"] })),
        ),
        (
            vec![
                ("p/.mcp.json", &runs),
                (
                    ".copilot/settings.json",
                    r#"{"disabledMcpServers": ["gh"]}"#,
                ),
                (user_file("copilot-cli"), r#"{"mcpServers": {}}"#),
            ],
            None,
        ),
    ] {
        let machine = machine("{}", &files);
        machine.put(".cursor/mcp.json", GH);
        let plugin = machine.home("pl");
        machine.put(
            ".claude/plugins/installed_plugins.json",
            &json!({ "version": 1, "plugins": { "x@m": [{ "installPath": plugin }] } }).to_string(),
        );
        let project = machine.home("p");
        std::fs::create_dir_all(&project).unwrap();
        machine.put(
            user_file("claude-code"),
            &json!({ "projects": { project.to_str().unwrap(): {} } }).to_string(),
        );
        let report = machine.run(&["migrate", "--yes", "--json", "--client", "cursor"]);
        let report = report.json();
        match tools {
            Some(tools) => assert_eq!(
                machine.servers()["gh"]["tools"],
                tools,
                "{files:?} {report:#}"
            ),
            None => assert_stays(&report, "gh", &["could call it through mcpzip"]),
        }
    }
}

#[test]
fn servers_of_plugins_and_extensions_are_the_clients_own() {
    let gh = servers(&json!({ "github": { "command": "gh-mcp" } }));
    let limited = json!({ "github": { "command": "gh-mcp", "excludeTools": ["delete_repo"] } });
    let extension = json!({ "name": "x", "version": "1.0.0", "mcpServers": limited }).to_string();
    let runs = servers(&json!({ "mcpzip": own() }));
    for files in [
        vec![
            ("pl/.mcp.json", gh.as_str()),
            (user_file("claude-code"), &runs),
            (
                SETTINGS,
                r#"{"permissions": {"deny": ["mcp__plugin_x_github__delete_repo"]}}"#,
            ),
        ],
        vec![
            (".gemini/extensions/x/gemini-extension.json", &extension),
            (user_file("gemini-cli"), &runs),
        ],
    ] {
        let machine = machine("{}", &files);
        machine.put(".cursor/mcp.json", GH);
        machine.put(
            ".claude/plugins/installed_plugins.json",
            &json!({ "version": 1, "plugins": { "x@m": [{ "installPath": machine.home("pl") }] } })
                .to_string(),
        );
        let report = machine.migrate(&["--client", "cursor"]);
        let tools = &machine.servers()["gh"]["tools"];
        assert_eq!(*tools, json!({ "deny": ["delete_repo"] }), "{report:#}");
    }
}

/// Claude Code with servers of the user's, and of one project.
fn with_project(machine: &Machine, users: &Value, local: &Value) -> String {
    let project = machine.home("p").to_str().unwrap().to_owned();
    std::fs::create_dir_all(machine.home("p/.git")).unwrap();
    machine.put(
        user_file("claude-code"),
        &json!({ "mcpServers": users, "projects": { &project: { "mcpServers": local } } })
            .to_string(),
    );
    project
}

#[test]
fn a_server_of_a_project_stays_there_if_another_client_excludes_it_in_that_project() {
    let db = json!({ "db": { "type": "stdio", "command": "db-mcp", "args": [], "env": {} } });
    let runs = servers(&json!({ "mcpzip": own() }));
    for (client, title) in [("gemini-cli", "Gemini CLI"), ("cursor", "Cursor")] {
        let machine = machine("{}", &[(user_file(client), &runs)]);
        let project = with_project(&machine, &json!({}), &db);
        machine.put(
            ".gemini/trustedFolders.json",
            &json!({ &project: "TRUST_FOLDER" }).to_string(),
        );
        if client == "gemini-cli" {
            machine.put(
                "p/.gemini/settings.json",
                r#"{"mcp": {"excluded": ["db"]}}"#,
            );
        } else {
            let words = project.split(|c: char| !c.is_ascii_alphanumeric());
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            let directory = words.join("-");
            let directory = &directory[..directory.len().min(84)];
            machine.put(
                &format!(".cursor/projects/{directory}/mcp-disabled.json"),
                r#"["db"]"#,
            );
        }
        let report = machine.run(&["migrate", "--yes", "--json"]).json();
        assert_stays(&report, "db", &[&format!("{title} could call it")]);
        assert_eq!(machine.servers()["db"], Value::Null, "{report:#}");
    }
}

#[test]
fn a_server_that_a_project_replaces_is_hidden_there() {
    let db = |flag: &str| json!({ "type": "stdio", "command": "db-mcp", "args": [flag] });
    let machine = machine("{}", &[]);
    let local = json!({ "db": db("--test") });
    let project = with_project(&machine, &json!({ "db": db("--prod") }), &local);
    let report = machine.migrate(&[]);
    let servers = machine.servers();
    let hidden = json!([format!("!{project}")]);
    assert_eq!(servers["db"]["projects"], hidden, "{report:#}");
    assert_eq!(servers["db-p"]["projects"], json!([project]), "{report:#}");
    let told = report["tightened"].to_string();
    assert!(
        told.contains("Claude Code has another `db` in its place there"),
        "{told}"
    );
    // An equal one is the same server.
    let machine = Machine::new();
    with_project(
        &machine,
        &json!({ "db": db("--prod") }),
        &json!({ "db": db("--prod") }),
    );
    let report = machine.migrate(&[]);
    let hidden = machine.servers()["db"]["projects"].to_string();
    assert!(!hidden.contains('!'), "{report:#}");
}

#[test]
fn a_rule_finds_a_server_by_the_name_that_it_had() {
    let spaced = servers(&json!({ "my db": { "command": "db-mcp" } }));
    let db = servers(&json!({ "db": { "command": "db-mcp" } }));
    for (config, cursor, denied, name) in [
        ("{}", spaced, "mcp__my_db__delete_repo", "my-db"),
        (
            r#"{"mcpServers": {"db": {"command": "other-mcp"}}}"#,
            db,
            "mcp__db__delete_repo",
            "db-cursor",
        ),
    ] {
        let machine = machine(config, &[(".cursor/mcp.json", &cursor)]);
        machine.migrate(&["--client", "cursor"]);
        machine.put(user_file("claude-code"), "{}");
        machine.put(
            SETTINGS,
            &json!({ "permissions": { "deny": [denied] } }).to_string(),
        );
        let said = machine.run(&["connect", "claude-code"]).code(0).stderr;
        assert!(said.contains(&format!("`{name}`")), "{said}");
        let report = machine.migrate(&[]);
        let tools = &machine.servers()[name]["tools"];
        assert_eq!(*tools, json!({ "deny": ["delete_repo"] }), "{report:#}");
    }
}
