//! Servers of two clients that differ in a secret alone, and literal secrets that move to a file of their own.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};
use crate::support::{Setup, command};

const LITERAL: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";
const OTHER: &str = "ghp_zyxwvutsrqponmlkZYXWVU9876543210dcba";
/// The key of the encrypted file of secrets.
const KEY: (&str, &str) = (
    "MCPZIP_SECRET_KEY",
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE",
);

/// Claude Code and Cursor with one server and these tokens.
fn machine(of_claude: &str, of_cursor: &str) -> Machine {
    let machine = Machine::new();
    for (client, token) in [("claude-code", of_claude), ("cursor", of_cursor)] {
        let entry =
            json!({ "command": "github-mcp", "env": { "GITHUB_TOKEN": token, "MODE": "all" } });
        let file = json!({ "mcpServers": { "github": entry } });
        machine.put(user_file(client), &file.to_string());
    }
    machine
}

fn names(machine: &Machine) -> Vec<String> {
    let servers = machine.servers();
    servers.as_object().unwrap().keys().cloned().collect()
}

fn stored(machine: &Machine) -> Value {
    let file = machine.setup().config_path().with_extension("secrets.json");
    std::fs::read_to_string(file).map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

#[test]
fn servers_with_two_secrets_stay_two_unless_the_user_says_that_they_are_one() {
    let machine = machine(LITERAL, OTHER);
    let before = machine.everything();
    let looked = machine.run(&["migrate", "--dry-run"]).code(0);
    let plan = looked.json();
    assert_eq!(
        plan["secrets"]["twins"],
        json!([{ "server": "github", "client": "Cursor", "same_as": "github", "secrets": ["GITHUB_TOKEN"] }])
    );
    let told = plan["warnings"].to_string();
    assert!(told.contains("`--merge github`"), "{told}");
    for secret in [LITERAL, OTHER] {
        assert!(!looked.stdout.contains(secret), "{looked}");
    }
    machine.migrate(&[]);
    assert_eq!(names(&machine), ["github", "github-cursor"]);
    machine.undo();
    let report = machine.migrate(&["--merge", "github"]);
    assert_eq!(names(&machine), ["github"]);
    assert_eq!(machine.servers()["github"]["env"]["GITHUB_TOKEN"], LITERAL);
    let notes = report["servers"].to_string();
    assert!(notes.contains("no longer used"), "{notes}");
    machine.undo();
    assert_eq!(machine.everything(), before, "undo brings both back");
}

#[test]
fn a_name_in_the_advice_is_one_word_of_a_shell() {
    let machine = Machine::new();
    for (client, token) in [("claude-code", LITERAL), ("cursor", OTHER)] {
        let entry = json!({ "command": "github-mcp", "env": { "GITHUB_TOKEN": token } });
        let file = json!({ "mcpServers": { "my srv": entry } });
        machine.put(user_file(client), &file.to_string());
    }
    let plan = machine.run(&["migrate", "--dry-run"]).code(0).json();
    let told = plan["warnings"].to_string();
    assert!(told.contains("`--merge 'my srv'`"), "{told}");
    machine.migrate(&["--merge", "my srv"]);
    assert_eq!(names(&machine).len(), 1);
}

#[test]
fn a_variable_that_is_not_set_gets_the_value_that_the_other_server_has() {
    let machine = machine("${GITHUB_TOKEN}", LITERAL);
    let before = machine.everything();
    let report = machine.migrate(&["--merge", "github"]);
    assert_eq!(names(&machine), ["github"]);
    assert_eq!(
        machine.servers()["github"]["env"]["GITHUB_TOKEN"],
        "${GITHUB_TOKEN}"
    );
    assert_eq!(stored(&machine), json!({ "GITHUB_TOKEN": LITERAL }));
    assert!(!report.to_string().contains(LITERAL), "{report:#}");
    let listed = machine.run(&["list"]).json();
    assert_eq!(listed["servers"][0]["name"], "github", "{listed:#}");
    assert_ne!(listed["servers"][0]["state"], "invalid", "{listed:#}");
    machine.undo();
    assert_eq!(machine.everything(), before);
    assert_eq!(stored(&machine), Value::Null);
}

#[test]
fn a_variable_that_another_server_uses_is_given_no_value() {
    let machine = machine("${TOKEN}", LITERAL);
    let other = json!({ "command": "other-mcp", "env": { "OTHER": "${TOKEN}" } });
    let github =
        json!({ "command": "github-mcp", "env": { "GITHUB_TOKEN": "${TOKEN}", "MODE": "all" } });
    let file = json!({ "mcpServers": { "another": other, "github": github } });
    machine.put(user_file("claude-code"), &file.to_string());
    machine.migrate(&["--merge", "github"]);
    assert_eq!(names(&machine), ["another", "github", "github-cursor"]);
    assert_eq!(stored(&machine), Value::Null);
}

#[test]
fn a_value_for_a_variable_of_a_later_server_stops_the_merge() {
    let machine = machine("${TOKEN}", LITERAL);
    let github =
        json!({ "command": "github-mcp", "env": { "GITHUB_TOKEN": LITERAL, "MODE": "all" } });
    let other = json!({ "command": "other-mcp", "env": { "OTHER": "${env:TOKEN}" } });
    let file = format!(r#"{{"mcpServers":{{"github":{github},"other":{other}}}}}"#);
    machine.put(user_file("cursor"), &file);
    let before = machine.everything();
    let refused = machine
        .run(&["migrate", "--yes", "--merge", "github"])
        .code(1);
    let told = &refused.stderr;
    assert!(
        told.contains("`other` refers to it") && !told.contains(LITERAL),
        "{refused}"
    );
    assert_eq!(machine.everything(), before);
    machine.migrate(&[]);
    assert_eq!(names(&machine), ["github", "github-cursor", "other"]);
}

#[test]
fn a_stored_secret_gets_no_variable_that_another_part_of_the_configuration_uses() {
    let machine = machine(LITERAL, LITERAL);
    let config = json!({
        "mcpServers": {},
        "otlp": { "endpoint": "http://127.0.0.1:9", "headers": { "x-key": "${GITHUB_TOKEN:-}" } },
    });
    std::fs::create_dir_all(machine.setup().config_path().parent().unwrap()).unwrap();
    std::fs::write(machine.setup().config_path(), config.to_string()).unwrap();
    machine.migrate(&["--extract-secrets"]);
    let stored = stored(&machine);
    let names: Vec<&String> = stored.as_object().unwrap().keys().collect();
    assert!(names.len() == 1 && names[0] != "GITHUB_TOKEN", "{names:?}");
}

#[test]
fn servers_that_differ_in_more_than_a_secret_are_not_one() {
    let machine = machine(LITERAL, OTHER);
    let entry =
        json!({ "command": "github-mcp", "env": { "GITHUB_TOKEN": OTHER, "MODE": "some" } });
    machine.put(
        user_file("cursor"),
        &json!({ "mcpServers": { "github": entry } }).to_string(),
    );
    let report = machine.migrate(&["--merge", "github"]);
    assert_eq!(names(&machine), ["github", "github-cursor"]);
    assert_eq!(report["secrets"]["twins"], json!([]));
}

#[test]
fn literal_secrets_move_to_a_file_of_their_own_and_servers_get_them_from_there() {
    let machine = machine(LITERAL, LITERAL);
    let remote = json!({ "url": "https://example.com/mcp", "headers": { "Authorization": format!("Bearer {OTHER}") } });
    machine.put(
        user_file("windsurf"),
        &json!({ "mcpServers": { "remote": { "serverUrl": remote["url"], "headers": remote["headers"] } } })
            .to_string(),
    );
    let before = machine.everything();
    let told = machine.run(&["migrate", "--dry-run"]).json()["warnings"].to_string();
    assert!(
        told.contains(
            "literal secrets in new servers: github (GITHUB_TOKEN), remote (Authorization)"
        ) && told.contains("--extract-secrets"),
        "{told}"
    );
    let report = machine.migrate(&["--extract-secrets"]);
    assert_eq!(verdict(&report, "remote").0, "moves");
    let servers = machine.servers();
    assert_eq!(servers["github"]["env"]["GITHUB_TOKEN"], "${GITHUB_TOKEN}");
    assert_eq!(
        servers["remote"]["headers"]["Authorization"],
        "Bearer ${REMOTE_AUTHORIZATION}"
    );
    assert_eq!(
        stored(&machine),
        json!({ "GITHUB_TOKEN": LITERAL, "REMOTE_AUTHORIZATION": OTHER })
    );
    for secret in [LITERAL, OTHER] {
        assert!(!report.to_string().contains(secret), "{report:#}");
        assert!(!machine.servers().to_string().contains(secret));
    }
    machine.undo();
    assert_eq!(machine.everything(), before);
}

#[test]
fn a_token_moves_under_any_name_and_what_may_be_a_secret_and_stays_is_named() {
    let machine = Machine::new();
    let env = json!({ "GH": LITERAL, "K": "word-with-1-digit" });
    let list = json!({ "mcpServers": { "gh": { "command": "gh-mcp", "args": ["--k", OTHER], "env": env } } });
    machine.put(user_file("cursor"), &list.to_string());
    let report = machine.migrate(&["--extract-secrets"]);
    let gh = &machine.servers()["gh"];
    assert_eq!(gh["env"]["GH"], "${GH}", "{gh}");
    assert!(!gh.to_string().contains(OTHER), "{gh}");
    let told = report["warnings"].to_string();
    let staying = "these may be secrets and stay in the file: mcpServers.gh.env.K;";
    assert!(told.contains(staying), "{told}");
    // An equal entry of another client is the same server.
    for client in ["windsurf", "kiro"] {
        let bot = json!({ "command": "bot-mcp", "env": { "BOT": LITERAL } });
        let list = json!({ "mcpServers": { "bot": bot } });
        machine.put(user_file(client), &list.to_string());
        machine.migrate(&["--extract-secrets"]);
        assert_eq!(names(&machine), ["bot", "gh"], "{client}");
    }
}

#[test]
fn undo_keeps_the_secrets_of_a_server_that_it_keeps() {
    let machine = machine(LITERAL, LITERAL);
    machine.migrate(&["--extract-secrets"]);
    let path = machine.setup().config_path();
    let edited = std::fs::read_to_string(&path)
        .unwrap()
        .replace("github-mcp", "github-mcp-2");
    std::fs::write(&path, &edited).unwrap();
    let undone = machine.run(&["undo"]);
    assert!(undone.stdout.contains("GITHUB_TOKEN"), "{undone}");
    assert_eq!(names(&machine), ["github"]);
    assert_eq!(stored(&machine), json!({ "GITHUB_TOKEN": LITERAL }));
}

#[test]
fn a_denial_reaches_every_entry_of_the_same_program_or_url() {
    let npx = json!({ "command": "npx", "args": ["-y", "@x/pk"], "env": { "TOKEN": LITERAL } });
    let url = json!({ "type": "http", "url": "https://m.example/mcp" });
    for (claude, cursor) in [
        (
            &npx,
            json!({ "command": "npx", "args": ["-y", "@x/pk"], "env": { "TOKEN": OTHER } }),
        ),
        (&npx, json!({ "command": "npx", "args": ["@x/pk"] })),
        (
            &npx,
            json!({ "command": "/usr/bin/npx", "args": ["-y", "@x/pk@latest"] }),
        ),
        (
            &npx,
            json!({ "command": "npx", "args": ["-y", "@x/pk"], "env": { "DEBUG": "1" } }),
        ),
        (&url, json!({ "url": "https://m.example/mcp/" })),
        (
            &url,
            json!({ "url": "https://m.example/mcp", "headers": { "X-Team": "a" } }),
        ),
    ] {
        let machine = Machine::new();
        for (client, name, entry) in [("claude-code", "pk", claude), ("cursor", "other", &cursor)] {
            let file = json!({ "mcpServers": { name: entry } });
            machine.put(user_file(client), &file.to_string());
        }
        machine.put(
            ".claude/settings.json",
            r#"{"permissions": {"deny": ["mcp__pk__rm"], "ask": ["mcp__pk__push"]}}"#,
        );
        let report = machine.migrate(&[]);
        let tools = json!({ "ask": ["push"], "deny": ["rm"] });
        let servers = machine.servers();
        assert_eq!(servers["other"]["tools"], tools, "{cursor}: {report:#}");
        assert_eq!(servers["pk"]["tools"], tools, "{cursor}: {report:#}");
        let told = report["tightened"].to_string();
        let line = "`other` asks the user before tools (`push`) and has one denied tool (`rm`) for all clients, because of `pk`";
        assert!(told.contains(line), "{told}");
    }
}

#[test]
fn a_denial_stays_with_its_program() {
    let machine = Machine::new();
    for (client, name, package) in [
        ("claude-code", "pk", "@x/pk"),
        ("cursor", "other", "@x/other"),
    ] {
        let entry = json!({ "command": "npx", "args": ["-y", package] });
        machine.put(
            user_file(client),
            &json!({ "mcpServers": { name: entry } }).to_string(),
        );
    }
    machine.put(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__pk__rm"]}}"#,
    );
    machine.migrate(&[]);
    assert_eq!(machine.servers()["other"]["tools"], Value::Null);
}

#[test]
fn a_tool_that_one_client_denies_is_not_said_to_be_asked_about() {
    let machine = Machine::new();
    let entry = json!({ "mcpServers": { "shop": { "command": "shop-mcp" } } });
    machine.put(user_file("claude-code"), &entry.to_string());
    let mut other = entry;
    other["mcpServers"]["shop"]["excludeTools"] = json!(["create_item"]);
    machine.put(user_file("gemini-cli"), &other.to_string());
    machine.put(
        ".claude/settings.json",
        r#"{"permissions": {"ask": ["mcp__shop__create_item", "mcp__shop__push"]}}"#,
    );
    let report = machine.migrate(&[]);
    let told = report["tightened"].to_string();
    assert!(
        told.contains("has one denied tool (`create_item`)"),
        "{told}"
    );
    assert!(
        told.contains("asks the user before tools (`push`)"),
        "{told}"
    );
}

/// Gemini CLI and Cursor with one server, of which Gemini CLI allows one tool: Gemini CLI's is moved first, and its secrets go where
/// `arguments` say. Returns the report of Cursor's migration in `later`, and the servers after it.
#[track_caller]
fn moved_apart(entry: &Value, arguments: &[&str], later: &[(&str, &str)]) -> (String, Value) {
    let machine = Machine::new();
    let with_key = |variables: &[(&str, &str)], arguments: &[&str]| {
        let setup = machine.setup().clone();
        let set = |setup: Setup, (name, value): &(&str, &str)| setup.variable(name, value);
        let setup = variables.iter().fold(setup, set);
        let ended = command::run(setup.command(arguments), "").code(0);
        assert!(!ended.to_string().contains(LITERAL), "{ended}");
        ended.to_string()
    };
    let mut limited = entry.clone();
    limited["includeTools"] = json!(["ok"]);
    if let Some(url) = limited["url"].take().as_str() {
        limited["httpUrl"] = json!(url);
    }
    limited
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    let file = |entry: &Value| json!({ "mcpServers": { "gh": entry } }).to_string();
    machine.put(user_file("gemini-cli"), &file(&limited));
    let migrate = ["migrate", "--yes", "--client"];
    let first = arguments
        .contains(&"--extract-secrets")
        .then_some("--extract-secrets");
    let first: Vec<&str> = migrate
        .into_iter()
        .chain(["gemini-cli"])
        .chain(first)
        .collect();
    with_key(&[KEY], &first);
    if arguments.first() == Some(&"secret") {
        with_key(&[KEY], arguments);
    }
    assert!(!machine.servers().to_string().contains(LITERAL), "{entry}");
    machine.put(user_file("cursor"), &file(entry));
    let report = with_key(later, &[&migrate[..], &["cursor"]].concat());
    (report, machine.servers())
}

/// Servers with a secret in each place of an entry.
fn with_secrets() -> [Value; 6] {
    let url = format!("postgres://me:{LITERAL}@h/db");
    [
        json!({ "command": "pg", "env": { "DATABASE_URI": url } }),
        json!({ "url": "https://x.test/mcp", "headers": { "X-Database": url } }),
        json!({ "command": "pg", "args": [LITERAL] }),
        json!({ "command": "npx", "args": ["-y", "pkg", LITERAL] }),
        json!({ "command": "pg", "args": ["--dsn", url] }),
        json!({ "url": format!("https://x.test/mcp?api_key={LITERAL}") }),
    ]
}

#[test]
fn a_secret_that_moved_out_of_any_place_leaves_one_server_with_its_rules() {
    for entry in with_secrets() {
        for arguments in [&["--extract-secrets"][..], &["secret", "migrate", "--yes"]] {
            let (report, servers) = moved_apart(&entry, arguments, &[KEY]);
            let all: Vec<&String> = servers.as_object().unwrap().keys().collect();
            assert_eq!(all, ["gh"], "{entry}: {report}");
            assert_eq!(servers["gh"]["tools"]["allow"], json!(["ok"]), "{report}");
        }
    }
}

#[test]
fn a_secret_that_cannot_be_read_leaves_two_servers_with_the_rules_of_both() {
    for entry in with_secrets() {
        let (report, servers) = moved_apart(&entry, &["secret", "migrate", "--yes"], &[]);
        for name in ["gh", "gh-cursor"] {
            let rules = &servers[name]["tools"]["allow"];
            assert_eq!(rules, &json!(["ok"]), "{entry}: {name}: {report}");
        }
        assert!(report.contains("cannot be read now"), "{entry}: {report}");
    }
    // Another server is not limited by it.
    let file = |entry: Value| json!({ "mcpServers": { "gh": entry } }).to_string();
    let machine = Machine::new();
    let known = json!({ "command": "pg", "env": { "DB": "pg://me:${keyring:A}@h/db" }, "tools": { "allow": ["ok"] } });
    machine.setup().save_text(&file(known));
    machine.put(
        user_file("cursor"),
        &file(json!({ "command": "pg", "env": { "DB": "pg://me:x@other/db" } })),
    );
    machine.migrate(&[]);
    assert_eq!(machine.servers()["gh-cursor"]["tools"], Value::Null);
}
