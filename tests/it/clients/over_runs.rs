//! Rules and switches that hold over several runs.

use serde_json::{Value, json};

use super::case::{Machine, user_file, verdict};

const SETTINGS: &str = ".claude/settings.json";

fn servers(servers: &Value) -> String {
    json!({ "mcpServers": servers }).to_string()
}

fn runs() -> Value {
    json!({ "command": "mcpzip", "args": ["serve"] })
}

fn deny(rules: &[&str]) -> String {
    json!({ "permissions": { "deny": rules } }).to_string()
}

fn npx(words: &[&str]) -> Value {
    let args: Vec<&str> = ["-y"].iter().chain(words).copied().collect();
    json!({ "command": "npx", "args": args })
}

fn off(entry: &Value) -> Value {
    let mut entry = entry.clone();
    entry["disabled"] = json!(true);
    entry
}

/// Windsurf with `gh` switched off, which has moved.
fn refused(gh: &Value) -> Machine {
    let machine = Machine::new();
    let file = servers(&json!({ "gh": off(gh) }));
    machine.put(user_file("windsurf"), &file);
    machine.migrate(&["--client", "windsurf"]);
    machine
}

#[test]
fn a_server_that_was_switched_off_before_it_moved_stays_closed_in_any_form() {
    let plain = npx(&["pkg"]);
    let with = |mode: &str| json!({ "command": "x", "env": { "MODE": mode } });
    for (gh, name, other) in [
        (&plain, "h", json!({ "command": "bunx", "args": ["pkg"] })),
        (&npx(&["pkg", "--ro"]), "h", plain.clone()),
        (&with("a"), "h", with("b")),
        (&with("a"), "gh", with("b")),
    ] {
        let machine = refused(gh);
        machine.put(user_file("cursor"), &servers(&json!({ name: other })));
        let report = machine.migrate(&["--client", "cursor"]);
        let (said, why) = verdict(&report, name);
        assert!(
            said == "stays" && why.contains("Windsurf"),
            "{other}: {report:#}"
        );
        // One that comes on another way is named.
        let entry = other.to_string();
        let added = machine.run(&["add", "k", "--no-check", &entry]).code(0);
        assert!(added.stderr.contains("Windsurf can call `k`"), "{added}");
        if other["command"] == "x" {
            let examined = machine.run(&["doctor"]);
            let all = format!("{}{}", examined.stdout, examined.stderr);
            assert!(all.contains("Windsurf can call `k`"), "{examined}");
        }
    }
}

#[test]
fn an_account_that_its_client_has_on_is_not_closed_by_another_one_that_is_off() {
    let account = |name: &str| json!({ "command": "gh-mcp", "args": ["--account", name] });
    let machine = Machine::new();
    let own = json!({ "work": off(&account("work")), "home": account("home") });
    machine.put(user_file("windsurf"), &servers(&own));
    machine.migrate(&["--client", "windsurf"]);
    let other = servers(&json!({ "mine": account("home"), "work": account("work") }));
    machine.put(user_file("cursor"), &other);
    let report = machine.migrate(&["--client", "cursor"]);
    assert_eq!(verdict(&report, "mine").0, "moves", "{report:#}");
    assert_eq!(verdict(&report, "work").0, "stays", "{report:#}");
    let examined = machine.run(&["doctor"]);
    let all = format!("{}{}", examined.stdout, examined.stderr);
    assert!(!all.contains("Windsurf can call"), "{examined}");
}

#[test]
fn a_server_that_is_hidden_in_a_project_is_hidden_there_in_each_order_of_runs_and_in_any_form() {
    let gh = json!({ "command": "x-mcp", "args": ["a"] });
    let other = json!({ "command": "x-mcp", "args": ["a", "-v"] });
    for first in ["claude-code", "cursor", ""] {
        let machine = Machine::new();
        let project = machine.home("p").display().to_string();
        let hidden = json!([format!("!{project}")]);
        let own = json!({
            "mcpServers": { "gh": gh, "shown": { "command": "x-mcp", "args": ["a", "-s"] } },
            "projects": { &project: { "disabledMcpServers": ["gh"] } },
        });
        machine.put(user_file("claude-code"), &own.to_string());
        machine.put(user_file("cursor"), &servers(&json!({ "g2": other })));
        let before = match first {
            "" => Value::Null,
            first => machine.migrate(&["--client", first]),
        };
        if first == "claude-code" {
            // The client showed this one there.
            let again = machine.migrate(&["--client", first]);
            let shown = &machine.servers()["shown"]["projects"];
            assert!(shown.is_null(), "{again:#}");
        }
        let report = machine.migrate(&[]);
        let here = machine.servers();
        assert_eq!(here["gh"]["projects"], hidden, "{first}: {before:#}");
        assert_eq!(here["g2"]["projects"], hidden, "{first}: {report:#}");
    }
}

#[test]
fn a_limit_to_projects_is_named_for_an_entry_that_is_added_later() {
    let gh = json!({ "command": "x-mcp", "args": ["a"] });
    let machine = Machine::new();
    let project = machine.home("p").display().to_string();
    let own = json!({
        "mcpServers": { "gh": gh, "foo": { "command": "z" } },
        "projects": { &project: { "disabledMcpServers": ["gh"] } },
    });
    machine.put(user_file("claude-code"), &own.to_string());
    machine.migrate(&[]);
    // The client had another program under the second name.
    for (name, entry) in [
        ("g4", json!({ "command": "x-mcp", "args": ["a", "-v"] })),
        ("foo", json!({ "command": "x-mcp", "args": ["a", "-w"] })),
        ("g5", gh),
    ] {
        let add = ["add", name, "--no-check", "--force", &entry.to_string()];
        let added = machine.run(&add).code(0);
        let told = format!("Claude Code can call `{name}`");
        assert!(added.stderr.contains(&told), "{added}");
    }
    let examined = machine.run(&["doctor"]);
    let all = format!("{}{}", examined.stdout, examined.stderr);
    assert!(
        all.contains("Claude Code can call `foo`, `g4`, `g5`"),
        "{examined}"
    );
    let report = machine.migrate(&[]);
    for name in ["g4", "foo", "g5"] {
        let projects = &machine.servers()[name]["projects"];
        assert_eq!(
            *projects,
            json!([format!("!{project}")]),
            "{name}: {report:#}"
        );
    }
}

#[test]
fn a_journal_that_cannot_be_read_or_is_gone_opens_nothing() {
    let other = servers(&json!({ "h": { "command": "bunx", "args": ["pkg"] } }));
    for is_gone in [false, true] {
        let machine = refused(&npx(&["pkg"]));
        let record = record(&machine);
        let undo = record.parent().unwrap().parent().unwrap();
        match is_gone {
            true => std::fs::remove_dir_all(undo).unwrap(),
            false => std::fs::write(&record, "{").unwrap(),
        }
        machine.put(user_file("cursor"), &other);
        let report = machine.migrate(&["--client", "cursor"]);
        assert_eq!(verdict(&report, "h").0, "stays", "{report:#}");
        if !is_gone {
            let path = record.display().to_string();
            assert!(report["warnings"].to_string().contains(&path), "{report:#}");
            let enabled = machine.run(&["enable", "gh"]).code(0);
            assert!(enabled.stderr.contains(&path), "{enabled}");
        }
    }
}

/// The record of the only run.
fn record(machine: &Machine) -> std::path::PathBuf {
    let run = machine.run(&["undo", "--list", "--json"]).code(0).json();
    let backups = run[0]["backups"].as_str().unwrap();
    std::path::Path::new(backups).join("record.json")
}

/// Claude Code, which runs mcpzip and has refused the server of a project, which has moved.
fn refused_in_project() -> (Machine, String) {
    let machine = Machine::new();
    let project = machine.home("p").display().to_string();
    let x = json!({ "x": { "command": "mem-mcp" } });
    machine.put("p/.mcp.json", &servers(&x));
    let own = json!({
        "mcpServers": { "mcpzip": runs() },
        "projects": { &project: { "disabledMcpjsonServers": ["x"] } },
    });
    machine.put(user_file("claude-code"), &own.to_string());
    let there = ["migrate", "--yes", "--json", "--client", "claude-code"];
    let mut command = machine.setup().command(&there);
    command.current_dir(machine.home("p"));
    let _ = crate::support::command::run(command, "").code(0);
    (machine, format!("!{project}"))
}

#[test]
fn a_server_that_was_refused_in_a_project_is_hidden_there_in_each_later_run() {
    let mem = json!({ "mem": { "command": "mem-mcp" } });
    for (how, is_damaged) in [
        ("migrate", false),
        ("migrate", true),
        ("import", false),
        ("import", true),
    ] {
        let (machine, hidden) = refused_in_project();
        if is_damaged {
            std::fs::write(record(&machine), "{").unwrap();
        }
        let report = match how {
            "migrate" => {
                machine.put(user_file("cursor"), &servers(&mem));
                machine.migrate(&["--client", "cursor"])
            }
            _ => {
                machine.put(".config/mcp/servers.json", &servers(&mem));
                machine.migrate(&["--from", "avelino"])
            }
        };
        let projects = &machine.servers()["mem"]["projects"];
        assert_eq!(*projects, json!([hidden]), "{how}: {report:#}");
    }
}

#[test]
fn an_entry_of_a_project_takes_no_denial_off_the_server_of_its_name() {
    let gh = json!({ "command": "gh-mcp" });
    let rules = json!({ "permissions": { "deny": ["mcp__gh__drop"], "ask": ["mcp__gh__push"] } });
    let expected = json!({ "deny": ["drop"], "ask": ["push"] });
    for is_first in [false, true] {
        let machine = Machine::new();
        let project = machine.home("p").display().to_string();
        let projects = json!({ &project: { "disabledMcpjsonServers": ["gh"] } });
        let other = servers(&json!({ "gh": { "command": "other-mcp" } }));
        if is_first {
            let own = json!({ "mcpServers": { "mcpzip": runs() }, "projects": projects });
            machine.put(user_file("claude-code"), &own.to_string());
            machine.put(user_file("cursor"), &servers(&json!({ "gh": gh })));
        } else {
            let own = json!({ "mcpServers": { "gh": gh }, "projects": projects });
            machine.put(user_file("claude-code"), &own.to_string());
            machine.migrate(&[]);
        }
        machine.put("p/.mcp.json", &other);
        machine.put(SETTINGS, &rules.to_string());
        let report = machine.migrate(&["--scope", "user"]);
        let servers = machine.servers();
        assert_eq!(servers["gh"]["tools"], expected, "{report:#}");
    }
}

#[test]
fn an_entry_of_a_codex_or_gemini_project_takes_no_denial_off_either() {
    for (client, own, project, other, file, rule) in [
        (
            "codex",
            "[mcp_servers.gh]\ncommand = \"gh-mcp\"\n[projects.\"HOME/p\"]\ntrust_level = \"trusted\"\n",
            "p/.codex/config.toml",
            "[mcp_servers.gh]\ncommand = \"other-mcp\"\n",
            ".codex/managed_config.toml",
            "[mcp_servers.gh]\ndisabled_tools = [\"drop\"]\n",
        ),
        (
            "gemini-cli",
            r#"{"mcpServers": {"gh": {"command": "gh-mcp"}}}"#,
            "p/.gemini/settings.json",
            r#"{"mcpServers": {"gh": {"command": "other-mcp"}}}"#,
            ".gemini/policies/a.toml",
            "[[rule]]\nmcpName = \"gh\"\ntoolName = \"drop\"\ndecision = \"deny\"\npriority = 1\n",
        ),
    ] {
        let machine = Machine::new();
        let home = machine.home("").display().to_string();
        let own = own.replace("HOME/", &home);
        machine.put(user_file(client), &own);
        machine.put(
            ".gemini/trustedFolders.json",
            &json!({ format!("{home}p"): "TRUST_FOLDER" }).to_string(),
        );
        machine.migrate(&[]);
        machine.put(project, other);
        machine.put(file, rule);
        let report = machine.migrate(&[]);
        let denied = &machine.servers()["gh"]["tools"]["deny"];
        assert_eq!(*denied, json!(["drop"]), "{client}: {report:#}");
    }
}

#[test]
fn init_relies_on_servers_and_limits_like_a_migration() {
    let machine = Machine::new();
    let gh = json!({ "gh": { "command": "x" } });
    machine.setup().save_text(&servers(&gh));
    machine.put(user_file("claude-code"), &servers(&gh));
    machine.put(SETTINGS, &deny(&["mcp__gh__rm"]));
    machine.migrate(&["--client", "claude-code"]);
    let limited = json!({ "gh": { "command": "x", "disabledTools": ["rm"] } });
    machine.put(user_file("windsurf"), &servers(&limited));
    let _ = machine
        .run(&[
            "init",
            "--yes",
            "--json",
            "--no-test",
            "--client",
            "windsurf",
        ])
        .code(0);
    let list = machine.run(&["undo", "--list", "--json"]).code(0).json();
    let first = list.as_array().unwrap().last().unwrap();
    let first = first["id"].as_str().unwrap();
    let undone = machine.run(&["undo", first]).code(0);
    let denied = &machine.servers()["gh"]["tools"]["deny"];
    assert_eq!(*denied, json!(["rm"]), "{undone}");
}

#[test]
fn a_rule_by_the_name_in_the_client_holds_however_that_was_changed() {
    let long = "x".repeat(70);
    for (name, rule) in [
        ("café", "mcp__caf___rm"),
        ("my  server", "mcp__my__server__rm"),
        ("@scope/gh", "mcp___scope_gh__rm"),
        ("gh ", "mcp__gh___rm"),
        (&long, &format!("mcp__{long}__rm")),
        (
            "my very own data base server",
            "mcp__my_very_own_data_base_server__rm",
        ),
    ] {
        let machine = Machine::new();
        let file = servers(&json!({ name: { "command": "x" } }));
        machine.put(user_file("claude-code"), &file);
        machine.migrate(&[]);
        machine.put(SETTINGS, &deny(&[rule]));
        let examined = machine.run(&["doctor"]);
        let all = format!("{}{}", examined.stdout, examined.stderr);
        assert!(all.contains("Claude Code can call"), "{name}: {examined}");
        let report = machine.migrate(&[]);
        let all = machine.servers();
        let (_, entry) = all.as_object().unwrap().iter().next().unwrap();
        let denied = entry["tools"]["deny"].to_string();
        assert!(denied.contains(r#""rm""#), "{name}: {report:#}");
    }
}

#[test]
fn the_clients_that_had_a_removed_server_off_are_named() {
    let machine = refused(&npx(&["pkg"]));
    let removed = machine.run(&["remove", "gh"]).code(0);
    let said = "Windsurf had `gh` switched off, which is forgotten with it";
    assert!(removed.stderr.contains(said), "{removed}");
}
