//! A rule or switch of a client is not lost after the first migration: when a server is enabled, added or connected later, or when
//! another client's equal server moves.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

const SETTINGS: &str = ".claude/settings.json";
const MEM: &str = r#"{"mcpServers": {"mem": {"command": "mem-mcp"}}}"#;
const DENIES_RM: &str = r#"{"permissions": {"deny": ["mcp__mem__rm"]}}"#;
const DENIES_DB: &str = r#"{"permissions": {"deny": ["mcp__db"]}}"#;

#[test]
fn a_server_that_its_client_had_switched_off_is_enabled_with_that_clients_name() {
    for (client, title, off) in [
        (
            "codex",
            "Codex",
            "[mcp_servers.weather]\ncommand = \"mem-mcp\"\nenabled = false\n",
        ),
        (
            "windsurf",
            "Windsurf",
            r#"{"mcpServers": {"weather": {"command": "mem-mcp", "disabled": true}}}"#,
        ),
    ] {
        let machine = Machine::new();
        machine.put(user_file(client), off);
        machine.put(user_file("cursor"), MEM);
        let first = machine.migrate(&[]);
        assert_eq!(verdict(&first, "mem").0, "stays", "{first:#}");
        assert_eq!(machine.servers()["weather"]["disabled"], true, "{first:#}");
        let again = machine.run(&["migrate", "--dry-run"]).code(0).json();
        let (said, why) = verdict(&again, "mem");
        let advice = format!(
            "`mcpzip enable weather` switches it on, also for {title}, which had it switched off"
        );
        assert!(said == "stays" && why.contains(&advice), "{again:#}");
        let enabled = machine.run(&["enable", "weather"]).code(0);
        for part in [
            format!("{title} had `weather` switched off"),
            format!("`mcpzip connect {client} --profile NAME`"),
        ] {
            assert!(enabled.stderr.contains(&part), "{part}: {enabled}");
        }
        // After an undo, the client's own file says it.
        let _ = machine.run(&["disable", "weather"]).code(0);
        machine.undo();
        machine
            .setup()
            .save_text(r#"{"mcpServers": {"weather": {"command": "x"}}}"#);
        let enabled = machine.run(&["enable", "weather"]).code(0);
        assert!(!enabled.stderr.contains("switched off"), "{enabled}");
    }
}

#[test]
fn a_rule_of_a_connected_client_is_carried_to_a_server_that_mcpzip_has() {
    for (rules, tools) in [
        (DENIES_RM, json!({ "deny": ["rm"] })),
        (
            r#"{"permissions": {"ask": ["mcp__mem__rm"]}}"#,
            json!({ "ask": ["rm"] }),
        ),
    ] {
        for connects_first in [true, false] {
            let machine = Machine::new();
            machine.put(SETTINGS, rules);
            let mut said = String::new();
            let mut connect = || said += &machine.run(&["connect", "claude-code"]).code(0).stderr;
            if connects_first {
                connect();
                machine.setup().save_text("{}");
                let add = ["add", "mem", "--no-check", r#"{"command": "mem-mcp"}"#];
                said += &machine.run(&add).code(0).stderr;
            } else {
                machine.setup().save_text(MEM);
                connect();
            }
            for part in [
                "Claude Code can call `mem` through mcpzip",
                "`mcpzip migrate --client claude-code` makes it a rule",
            ] {
                assert!(said.contains(part), "{part}: {said}");
            }
            let doctor = || machine.run(&["doctor"]).json()["findings"].to_string();
            let before = doctor();
            assert!(
                before.contains("\"client-rule\"")
                    && before.contains("mcpzip migrate --client claude-code"),
                "{before}"
            );
            let report = machine.migrate(&["--client", "claude-code"]);
            assert_eq!(machine.servers()["mem"]["tools"], tools, "{report:#}");
            let told = report["tightened"].to_string();
            assert!(told.contains("because of Claude Code's"), "{told}");
            assert!(!doctor().contains("client-rule"), "{}", doctor());
            let settled = machine.everything();
            machine.migrate(&[]);
            assert_eq!(machine.everything(), settled);
        }
    }
}

#[test]
fn a_rule_that_cannot_be_carried_to_a_server_that_mcpzip_has_is_named_again() {
    let machine = Machine::new();
    machine.put(
        user_file("gemini-cli"),
        r#"{"mcp": {"allowed": ["own", "mcpzip"]}}"#,
    );
    machine.setup().save_text(MEM);
    let connected = machine.run(&["connect", "gemini-cli"]).code(0);
    let part = "Gemini CLI can call `mem` through mcpzip, where `mcp.allowed`";
    let way = "`mcpzip connect gemini-cli --profile NAME` gives Gemini CLI a profile without it";
    for said in [
        connected.stderr,
        machine.migrate(&[])["warnings"].to_string(),
        machine.run(&["doctor"]).json()["findings"].to_string(),
    ] {
        assert!(said.contains(part) && said.contains(way), "{said}");
    }
    // A client's profile may be without the server.
    machine.setup().save_text(
        r#"{"mcpServers": {"mem": {"command": "mem-mcp"}, "own": {"command": "x"}}, "profiles": {"p": {"servers": ["own"]}}}"#,
    );
    let _ = machine.run(&["disconnect", "gemini-cli"]).code(0);
    let connect = ["connect", "gemini-cli", "--profile", "p"];
    let connected = machine.run(&connect).code(0);
    assert!(!connected.stderr.contains("can call"), "{connected}");
    let found = machine.run(&["doctor"]).json()["findings"].to_string();
    assert!(!found.contains("client-rule"), "{found}");
}

#[test]
fn a_rule_about_a_name_stays_with_the_server_that_had_it() {
    let machine = Machine::new();
    machine.setup().save_text(MEM);
    machine.put(
        user_file("claude-code"),
        r#"{"mcpServers": {"mem": {"command": "other-mcp"}}}"#,
    );
    machine.put(SETTINGS, DENIES_RM);
    machine.migrate(&[]);
    let report = machine.migrate(&[]);
    let servers = machine.servers();
    assert_eq!(servers["mem"]["tools"], Value::Null, "{report:#}");
    assert_eq!(
        servers["mem-claude-code"]["tools"],
        json!({ "deny": ["rm"] }),
        "{report:#}"
    );
}

#[test]
fn a_server_of_which_another_client_denies_all_tools_stays_where_it_works() {
    const DB: &str = r#"{"mcpServers": {"db": {"command": "db-mcp", "args": ["a"]}}}"#;
    const DB_C: &str = r#"{"mcpServers": {"db-c": {"command": "db-mcp", "args": ["a"]}}}"#;
    let machine = Machine::new();
    machine.put(user_file("claude-code"), DB);
    machine.put(SETTINGS, DENIES_DB);
    machine.put(user_file("cursor"), DB_C);
    let report = machine.migrate(&[]);
    let (said, why) = verdict(&report, "db-c");
    assert!(
        said == "stays" && why.contains("Claude Code could call it") && why.contains("mcp__db"),
        "{report:#}"
    );
    assert_eq!(
        machine.servers()["db"]["tools"],
        json!({ "deny": ["*"] }),
        "{report:#}"
    );
    // Nor later.
    let report = machine.migrate(&[]);
    let (said, why) = verdict(&report, "db-c");
    assert!(
        said == "stays" && why.contains("mcpzip has the same program or URL as `db`"),
        "{report:#}"
    );
    assert!(machine.read(user_file("cursor")).contains("db-mcp"));
    // Where it comes first, the other client stays away.
    machine.undo();
    let report = machine.migrate(&["--client", "cursor"]);
    assert_eq!(verdict(&report, "db-c").0, "moves", "{report:#}");
    assert_eq!(
        machine.servers()["db-c"]["tools"],
        Value::Null,
        "{report:#}"
    );
    let report = machine.migrate(&[]);
    let (said, why) = verdict(&report, "db");
    assert!(
        said == "stays" && why.contains("Claude Code could call `db-c`"),
        "{report:#}"
    );
    assert!(!machine.read(user_file("claude-code")).contains("mcpzip"));
    // A denial in the entry counts like one in the settings.
    let machine = Machine::new();
    machine.put(
        user_file("codex"),
        "[mcp_servers.db]\ncommand = \"db-mcp\"\nargs = [\"a\"]\nenabled_tools = []\n",
    );
    machine.put(user_file("cursor"), DB_C);
    let report = machine.migrate(&[]);
    assert_eq!(verdict(&report, "db-c").0, "stays", "{report:#}");
}

#[test]
fn a_list_of_permitted_servers_is_told_all_that_it_lacks_at_once() {
    let machine = Machine::new();
    machine.put(
        user_file("claude-code"),
        r#"{"mcpServers": {"db": {"command": "db-mcp"}, "one": {"command": "one-mcp"}, "off": {"command": "off-mcp"}}}"#,
    );
    machine.put(SETTINGS, DENIES_DB);
    machine.put(
        user_file("windsurf"),
        r#"{"mcpServers": {"two": {"command": "two-mcp"}, "three": {"command": "three-mcp", "disabled": true}}}"#,
    );
    let gemini = |list: &str| {
        let settings = format!(
            r#"{{"mcpServers": {{"files": {{"command": "files-mcp"}}}}, "mcp": {{"allowed": [{list}]}}}}"#
        );
        machine.put(user_file("gemini-cli"), &settings);
    };
    gemini(r#""files""#);
    let dry = ["migrate", "--dry-run", "--json"];
    let report = machine.run(&dry).code(0).json();
    let (said, why) = verdict(&report, "files");
    assert!(
        said == "stays" && why.contains("add `off`, `one`, `two` to that list"),
        "{report:#}"
    );
    gemini(r#""files", "off", "one", "two""#);
    let report = machine.migrate(&[]);
    assert_eq!(verdict(&report, "files").0, "moves", "{report:#}");
}

#[test]
fn the_command_without_the_client_that_keeps_a_server_is_printed_once() {
    let machine = Machine::new();
    machine.put(
        user_file("codex"),
        "[mcp_servers.weather]\ncommand = \"mem-mcp\"\nenabled = false\n",
    );
    for client in ["cursor", "windsurf"] {
        machine.put(user_file(client), MEM);
    }
    let shown = machine.run(&["migrate", "--dry-run"]);
    let report = shown.code(0).json();
    let command = "`mcpzip migrate --without codex` leaves out Codex, so `mem` can move";
    assert_eq!(report.to_string().matches(command).count(), 1, "{report:#}");
    let only = ["migrate", "--dry-run", "--only", "mem", "--client"];
    let only = [&only[..], &["codex", "--client", "cursor"]].concat();
    let report = machine.run(&only).code(0).json();
    assert_eq!(verdict(&report, "mem").0, "moves", "{report:#}");
    let narrow = [
        "migrate",
        "--dry-run",
        "--client",
        "codex",
        "--client",
        "cursor",
    ];
    let report = machine.run(&narrow).code(0).json();
    let command = "`mcpzip migrate --client cursor` leaves out Codex";
    assert!(
        report["warnings"].to_string().contains(command),
        "{report:#}"
    );
    let report = machine.migrate(&["--without", "codex"]);
    assert_eq!(verdict(&report, "mem").0, "moves", "{report:#}");
    assert!(machine.read(user_file("codex")).contains("enabled = false"));
    // Nor does the client get it later.
    let report = machine.migrate(&[]);
    let (said, why) = verdict(&report, "weather");
    assert!(
        said == "stays" && why.contains("Codex could call `mem`"),
        "{report:#}"
    );
}

#[test]
fn init_prints_the_command_without_the_client_that_keeps_a_server() {
    let machine = Machine::new();
    machine.put(
        user_file("codex"),
        "[mcp_servers.weather]\ncommand = \"mem-mcp\"\nenabled = false\n",
    );
    machine.put(user_file("cursor"), MEM);
    let init = ["init", "--yes", "--no-test", "--dry-run", "--json"];
    let report = machine.run(&init).code(0).json();
    let warnings = report["plan"]["warnings"].to_string();
    let part = "--without codex` leaves out Codex, so `mem` can move";
    let narrow = "--client cursor` leaves out Codex, so `mem` can move";
    assert!(
        warnings.contains(part) || warnings.contains(narrow),
        "{warnings}"
    );
}

#[test]
fn a_twin_under_another_name_is_offered_as_one_or_named_as_there_twice() {
    let with = |token: &str| json!({ "command": "github-mcp", "env": { "GITHUB_TOKEN": token } });
    let token = "ghp_0123456789abcdefABCDEF0123456789abcd";
    let machine = Machine::new();
    for (client, name, token) in [
        ("claude-code", "github", token),
        ("cursor", "gh", "${env:GITHUB_TOKEN}"),
        ("gemini-cli", "github", "$GITHUB_TOKEN"),
    ] {
        let file = json!({ "mcpServers": { name: with(token) } });
        machine.put(user_file(client), &file.to_string());
    }
    let merged = ["--merge", "github", "--extract-secrets"];
    let report = machine.migrate(&merged);
    let told = report["warnings"].to_string();
    for part in [
        "`gh` of Cursor differs from `github` in GITHUB_TOKEN alone",
        "`--merge gh` makes them one server",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    machine.undo();
    let report = machine.migrate(&[]);
    let told = report["warnings"].to_string();
    let part = "`github-gemini-cli` is `gh` under another name";
    assert!(told.contains(part), "{told}");
    machine.undo();
    let all = ["--merge", "github", "--merge", "gh", "--extract-secrets"];
    let report = machine.migrate(&all);
    let names: Vec<String> = machine
        .servers()
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(names, ["github"], "{report:#}");
    // Two accounts under two names are no twins.
    let machine = Machine::new();
    let other = "ghp_zyxwvutsrqponmlkZYXWVU9876543210dcba";
    for (client, name, token) in [("claude-code", "work", token), ("cursor", "home", other)] {
        let file = json!({ "mcpServers": { name: with(token) } });
        machine.put(user_file(client), &file.to_string());
    }
    let report = machine.migrate(&[]);
    assert_eq!(report["secrets"]["twins"], json!([]), "{report:#}");
}

#[test]
fn a_denial_of_a_whole_server_in_one_project_hides_it_there() {
    for (client, file, rule) in [
        (
            "cursor",
            "p/.cursor/cli.json",
            r#"{"permissions": {"deny": ["Mcp(mem:*)"]}}"#,
        ),
        (
            "claude-code",
            "p/.claude/settings.json",
            r#"{"permissions": {"deny": ["mcp__mem"]}}"#,
        ),
    ] {
        let machine = Machine::new();
        let project = machine.home("p");
        let mut own: Value = serde_json::from_str(MEM).unwrap();
        let known = json!({ project.to_str().unwrap(): {} });
        if client == "claude-code" {
            own["projects"] = known.clone();
        }
        machine.put(
            user_file("claude-code"),
            &json!({ "projects": known }).to_string(),
        );
        machine.put(user_file(client), &own.to_string());
        machine.put(file, rule);
        let report = machine.migrate(&["--client", client]);
        let mem = &machine.servers()["mem"];
        assert_eq!(mem["tools"], Value::Null, "{client}: {report:#}");
        assert_eq!(
            mem["projects"],
            json!([format!("!{}", project.display())]),
            "{client}: {report:#}"
        );
    }
}

#[test]
fn small_words_of_a_plan_are_right() {
    let machine = Machine::new();
    machine.put(user_file("cursor"), MEM);
    machine.put(
        ".config/Code/User/mcp.json",
        r#"{"servers": {"odd": {"command": "x", "envFile": "/e"}}}"#,
    );
    machine.put(
        ".config/Code/User/profiles/a/settings.json",
        r#"{"mcp": {"servers": {"old": {"command": "x"}}}}"#,
    );
    let wrong = machine.run(&["migrate", "--only", "mem,x"]).code(1);
    assert!(wrong.stderr.contains("`--only` takes one name"), "{wrong}");
    let report = machine.migrate(&[]);
    assert_eq!(verdict(&report, "old").0, "stays", "{report:#}");
    let warnings = report["warnings"].to_string();
    assert!(
        warnings.contains("Cursor shows interfaces") && !warnings.contains("VS Code shows"),
        "{warnings}"
    );
    // What was changed after a run stays in mcpzip, and the way out is named.
    let _ = machine.run(&["disable", "mem"]).code(0);
    let undone = machine.run(&["undo"]).code(0);
    assert!(undone.stderr.contains("`mcpzip remove mem`"), "{undone}");
}

#[test]
fn a_switched_off_api_at_mcpzip_keeps_no_client_away() {
    let machine = Machine::new();
    machine.setup().save_text(
        r#"{"mcpServers": {"api": {"openapi": "https://api.example/openapi.json", "disabled": true}}}"#,
    );
    machine.put(
        user_file("gemini-cli"),
        r#"{"mcpServers": {"g": {"command": "g-mcp"}}, "mcp": {"allowed": ["g"]}}"#,
    );
    let report = machine.migrate(&[]);
    assert_eq!(verdict(&report, "g").0, "moves", "{report:#}");
}
