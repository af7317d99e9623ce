//! The words of a plan: where a server is on, what becomes of a rule, and no secret, however short.

use std::process::Command;

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};
use crate::support::command::{self, Outcome};
use crate::support::program;
use crate::support::terminal::Terminal;

/// A command in the project `work` of the home.
fn command_there(machine: &Machine, arguments: &[&str]) -> Command {
    let there = machine.home("work");
    std::fs::create_dir_all(&there).unwrap();
    let mut command = machine.setup().command(arguments);
    command.current_dir(there);
    command
}

fn run_there(machine: &Machine, arguments: &[&str]) -> Outcome {
    command::run(command_there(machine, arguments), "")
}

/// A plan as a person sees it, in one line. `None` where there is no terminal.
fn screen(machine: &Machine) -> Option<String> {
    let terminal = Terminal::run_in(&command_there(machine, &["migrate", "--dry-run"]), 400)?;
    let screen = terminal.shows("[exit 0]");
    Some(screen.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn an_entry_of_a_project_is_switched_off_only_if_its_client_says_so() {
    let own = json!({ "command": program::mcpzip(), "args": ["serve"] });
    let entry = |more: Value| {
        let mut entry = own.clone();
        entry
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({ "mcpServers": { "mcpzip": entry } }).to_string()
    };
    for (file, more, is_off) in [
        (".cursor/mcp.json", json!({}), false),
        (".mcp.json", json!({}), false),
        (".kiro/settings/mcp.json", json!({}), false),
        (".kiro/settings/mcp.json", json!({ "disabled": true }), true),
    ] {
        let machine = Machine::new();
        machine.put(&format!("work/{file}"), &entry(more));
        let shown = run_there(&machine, &["clients", "--json"]).code(0).json();
        let clients = shown["clients"].as_array().unwrap().iter();
        let mut entries = clients.flat_map(|client| client["entries"].as_array().unwrap());
        let found = entries.find(|entry| entry["scope"] == "project").unwrap();
        assert_eq!(found["disabled"], is_off, "{file}: {shown:#}");
        assert_eq!(found["project"], "~/work", "{file}: {shown:#}");
        let report = run_there(&machine, &["doctor", "--json"]).stdout;
        assert_eq!(
            report.contains("client-disabled"),
            is_off,
            "{file}: {report}"
        );
    }
}

#[test]
fn a_plan_tells_where_a_projects_server_is_on_and_that_it_comes_switched_off() {
    let machine = Machine::new();
    let server = r#"{"mcpServers": {"web": {"command": "web-mcp"}}}"#;
    machine.put("work/.cursor/mcp.json", server);
    machine.put(
        "work/.kiro/settings/mcp.json",
        r#"{"mcpServers": {"off": {"command": "off-mcp", "disabled": true}}}"#,
    );
    let work = machine.home("work");
    let on = format!(
        "moves web, on in the project {}, comes over switched off",
        work.display()
    );
    if let Some(screen) = screen(&machine) {
        for part in [
            on.as_str(),
            "no file of your own approves it; `mcpzip enable web`",
            "moves off, switched off",
        ] {
            assert!(screen.contains(part), "{part}: {screen}");
        }
    }
    let report = run_there(&machine, &["migrate", "--dry-run", "--json"])
        .code(0)
        .json();
    let state = |name: &str| {
        let servers = report["servers"].as_array().unwrap();
        let server = servers.iter().find(|it| it["server"] == name).unwrap();
        (
            server["disabled"].clone(),
            server["disabled_in_client"].clone(),
        )
    };
    assert_eq!(state("web"), (json!(true), json!(false)), "{report:#}");
    assert_eq!(state("off"), (json!(true), json!(true)), "{report:#}");
    // Where mcpzip has it on, its client has not switched it off.
    machine.setup().save_text(server);
    let plan = run_there(&machine, &["migrate", "--dry-run"]).code(0);
    assert!(!plan.stdout.contains("is switched off in Cursor"), "{plan}");
}

#[test]
fn a_plan_tells_who_denies_or_asks_after_it() {
    let machine = Machine::new();
    machine.put(
        user_file("claude-code"),
        r#"{"mcpServers": {"gh": {"command": "gh-mcp"}}}"#,
    );
    machine.put(
        ".claude/settings.json",
        r#"{"permissions": {
            "deny": ["mcp__gh__rm", "mcp__gh__both"],
            "ask": ["mcp__gh__push", "mcp__gh__both"],
            "allow": ["mcp__gh__rm", "mcp__gh__push", "mcp__gh__get", "mcp__gh__p*", "mcp__gh"]}}"#,
    );
    let report = machine
        .run(&["migrate", "--dry-run", "--json"])
        .code(0)
        .json();
    let of = |list: &str| -> Vec<(String, String)> {
        let rules = report[list].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let kind = |rule: &Value| format!("{} {}", text(&rule["kind"]), text(&rule["rule"]));
        rules
            .map(|rule| (kind(rule), text(&rule["outcome"])))
            .collect()
    };
    let expected = |rules: &[(&str, &str)]| -> Vec<(String, String)> {
        let rules = rules.iter();
        rules
            .map(|(rule, outcome)| ((*rule).to_owned(), (*outcome).to_owned()))
            .collect()
    };
    assert_eq!(
        of("carried_rules"),
        expected(&[
            ("deny mcp__gh__rm", "denied"),
            ("deny mcp__gh__both", "denied"),
            ("ask mcp__gh__push", "asked"),
            ("ask mcp__gh__both", "denied"),
        ])
    );
    assert_eq!(
        of("lost_rules"),
        expected(&[
            ("allow mcp__gh__rm", "denied"),
            ("allow mcp__gh__push", "asked"),
            ("allow mcp__gh__get", "client"),
            ("allow mcp__gh__p*", "mixed"),
            ("allow mcp__gh", "mixed"),
        ])
    );
    let Some(screen) = screen(&machine) else {
        return;
    };
    for part in [
        "deny mcp__gh__rm becomes tools.deny rm: mcpzip denies it",
        "ask mcp__gh__push becomes tools.ask push: mcpzip asks about it",
        "ask mcp__gh__both becomes tools.ask both: mcpzip denies it",
        "allow mcp__gh__rm is lost: mcpzip denies it",
        "allow mcp__gh__push is lost: mcpzip asks about it",
        "allow mcp__gh__get is lost: the client asks about `execute_tool` in its place",
        "allow mcp__gh is lost: mcpzip denies or asks about some of its tools",
    ] {
        assert!(screen.contains(part), "{part}: {screen}");
    }
}

/// Values that no other text of these files has.
const SHORT: [&str; 6] = ["q7", "w8x", "e9yz", "r1zwv", "t2", "u3"];

#[test]
fn a_short_secret_is_masked_in_its_place_in_each_syntax() {
    let [token, header, option, password, query, short] = SHORT;
    let json = format!(
        r#"{{
  "mcpServers": {{
    "a": {{
      "command": "redis-cli",
      "args": ["run", "--api-token", "{option}", "--port=1", "-a", "{short}"],
      "env": {{"MY_TOKEN": "{token}", "MODE": "abc"}}
    }},
    "b": {{
      "url": "https://u:{password}@h.example/x?token={query}&page=2",
      "headers": {{"Authorization": "Bearer {header}", "X-Team": "abc"}}
    }}
  }}
}}
"#
    );
    let toml = format!(
        "[mcp_servers.a]\ncommand = \"a-mcp\"\nargs = [\"run\", \"--api-token\", \"{option}\"]\n\n\
         [mcp_servers.a.env]\nMY_TOKEN = \"{token}\"\nMODE = \"abc\"\n"
    );
    let yaml = format!(
        "extensions:\n  a:\n    type: stdio\n    cmd: a-mcp\n    args:\n      - --api-token\n      - {option}\n    \
         envs:\n      MY_TOKEN: {token}\n      MODE: abc\n"
    );
    for (client, text) in [("cursor", json), ("codex", toml), ("goose", yaml)] {
        let machine = Machine::new();
        machine.put(user_file(client), &text);
        let plan = machine.run(&["migrate", "--dry-run"]).code(0);
        for secret in SHORT {
            assert!(!plan.stdout.contains(secret), "{client}, {secret}: {plan}");
        }
        // Other values are shown.
        for plain in ["MY_TOKEN", "MODE", "abc", "--api-token", "***"] {
            assert!(plan.stdout.contains(plain), "{client}, {plain}: {plan}");
        }
        // The files have them.
        machine.migrate(&[]);
        assert!(machine.servers().to_string().contains(token), "{client}");
        machine.undo();
        assert_eq!(machine.read(user_file(client)), text);
    }
}

#[test]
fn a_short_secret_hides_no_other_text() {
    let machine = Machine::new();
    machine.put(
        user_file("cursor"),
        "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"a\",\n      \"env\": {\n        \"KEY\": \"a\",\n        \"MODE\": \"a\"\n      }\n    }\n  }\n}\n",
    );
    let report = machine.run(&["migrate", "--dry-run"]).code(0).json();
    let plan = report["files"][1]["diff"].as_str().unwrap();
    for line in [
        "-    \"a\": {",
        "-      \"command\": \"a\",",
        "-        \"KEY\": \"***\",",
        "-        \"MODE\": \"a\"",
    ] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
}

#[test]
fn a_plan_shows_the_lines_that_change_also_where_masks_move_lines() {
    let machine = Machine::new();
    // One list becomes a line, and one map becomes several, so that the number of lines stays.
    machine.put(
        user_file("goose"),
        "extensions:\n  a:\n    type: stdio\n    cmd: a-mcp\n    args:\n      - --token\n      - o1z\n    envs: {ARR: [x]}\n  \
         b:\n    type: stdio\n    cmd: b-mcp\n    args: [run]\n    envs: {MODE: abc}\n  \
         c:\n    type: stdio\n    cmd: c-mcp\n    envs: {API_KEY: p1z, ARR: [y]}\n",
    );
    let report = machine.run(&["migrate", "--dry-run"]).code(0).json();
    assert_eq!(verdict(&report, "b").0, "moves", "{report:#}");
    let files = report["files"].as_array().unwrap().iter();
    let mut diff = files.filter_map(|file| file["diff"].as_str());
    let diff = diff.next_back().unwrap();
    for secret in ["o1z", "p1z"] {
        assert!(!diff.contains(secret), "{diff}");
    }
    let removed = diff.lines().filter(|line| line.starts_with('-'));
    let removed: Vec<&str> = removed.collect();
    let of_b = [
        "-  b:",
        "-    type: stdio",
        "-    cmd: b-mcp",
        "-    args: [run]",
        "-    envs: {MODE: abc}",
    ];
    assert_eq!(removed, of_b, "{diff}");
}

#[test]
fn a_short_secret_is_masked_in_lists_and_lines_and_under_names_that_only_variables_have() {
    let machine = Machine::new();
    machine.put(
        user_file("cursor"),
        r#"{
  "mcpServers": {
    "a": {
      "command": "npx -y foo --token k8z",
      "env": {"SESSION": "m4z", "DOOR_PIN": "4711", "MODE": "abc"}
    },
    "b": {"env": {"ARR_TOKEN": ["l3z"]}, "command": "b-mcp"}
  }
}
"#,
    );
    let report = machine.run(&["migrate", "--dry-run"]).code(0).json();
    let (diffs, all) = (report["files"].to_string(), report.to_string());
    for secret in ["k8z", "l3z", "m4z", "4711"] {
        assert!(!all.contains(secret), "{secret}: {report:#}");
    }
    for plain in ["npx -y foo --token ***", "ARR_TOKEN", "DOOR_PIN", "abc"] {
        assert!(diffs.contains(plain), "{plain}: {report:#}");
    }
}

#[test]
fn a_secret_in_a_whole_line_as_command_is_shown_by_no_command() {
    let machine = Machine::new();
    machine.put(
        user_file("cursor"),
        r#"{"mcpServers": {
            "a": {"command": "npx foo --token longsecret69abcdef"},
            "b": {"command": "npx foo --header 'Authorization: Bearer longsecret66abcdef'"},
            "c": {"command": "npx foo --token k8z"},
            "d": {"command": "https://u:longsecret63abcdef@h.example/x?token=longsecret62abcdef"}
        }}"#,
    );
    let plan = machine.run(&["migrate", "--dry-run"]).to_string();
    assert!(!plan.contains("longsecret"), "{plan}");
    let report = machine.migrate(&[]);
    assert_eq!(verdict(&report, "a").0, "moves", "{report:#}");
    for command in [
        &["list", "--json"][..],
        &["config", "show", "--json"],
        &["doctor", "--json"],
        &["status", "--json"],
    ] {
        let told = machine.run(command).to_string();
        // The text of the configuration shows short ones.
        let of_all = ["longsecret69abcdef", "longsecret66abcdef"].into_iter();
        let of_all = of_all.chain(["longsecret63abcdef", "longsecret62abcdef"]);
        let short = Some("k8z").filter(|_| command[0] != "config");
        for secret in of_all.chain(short) {
            assert!(!told.contains(secret), "{command:?}, {secret}: {told}");
        }
        assert!(told.contains("npx foo") || command[0] == "config", "{told}");
    }
}
