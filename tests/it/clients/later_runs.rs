//! Runs that come after others, or in which a client has mcpzip already: nothing of an earlier one is lost or opened.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::case::{Machine, user_file, verdict};
use crate::support::{command, program};

const GH: &str = r#"{"mcpServers": {"gh": {"command": "x"}}}"#;
const RUNS: &str = r#"{"mcpServers": {"mcpzip": {"command": "mcpzip", "args": ["serve"]}}}"#;
const DENIES: &str = r#"{"permissions": {"deny": ["mcp__gh__rm"]}}"#;

/// The oldest run.
fn first_run(machine: &Machine) -> String {
    let runs = machine.run(&["undo", "--list", "--json"]).code(0).json();
    let first = runs.as_array().unwrap().last().unwrap();
    first["id"].as_str().unwrap().to_owned()
}

#[test]
fn an_undo_keeps_a_server_that_a_later_run_relies_on() {
    let machine = Machine::new();
    machine.put(user_file("claude-code"), GH);
    machine.migrate(&["--client", "claude-code"]);
    machine.put(user_file("cursor"), GH);
    machine.migrate(&["--client", "cursor"]);
    let run = first_run(&machine);
    let shown = machine.run(&["undo", &run, "--dry-run"]).code(0);
    assert!(!shown.stdout.contains("mcpServers.gh\n  "), "{shown}");
    let undone = machine.run(&["undo", &run]).code(0).json();
    assert_eq!(machine.servers()["gh"], json!({ "command": "x" }));
    assert!(
        undone.to_string().contains(r#""kept":["mcpServers.gh"]"#),
        "{undone}"
    );
    assert!(machine.read(user_file("claude-code")).contains("\"gh\""));
    for arguments in [&["undo", &run][..], &["undo", &run, "--dry-run"]] {
        let again = machine.run(arguments).code(1);
        assert!(again.stderr.contains("is undone already"), "{again}");
    }
    // The later one is undone as any other, and nothing needs the server then.
    machine.undo();
    assert_eq!(machine.read(user_file("cursor")), GH);
    assert!(machine.servers()["gh"].is_null(), "{}", machine.servers());
}

#[test]
fn of_undos_of_one_run_at_once_one_reverts_it() {
    let machine = Machine::new();
    machine.put(user_file("claude-code"), GH);
    machine.migrate(&["--client", "claude-code"]);
    let run = first_run(&machine);
    let runs = machine.run(&["undo", "--list", "--json"]).code(0).json();
    let runs = Path::new(runs[0]["backups"].as_str().unwrap()).with_file_name("");
    let lock = File::create(runs.join(".runs.mcpzip-lock")).unwrap();
    lock.lock().unwrap();
    let undone = (0..6).map(|_| {
        let command = machine.setup().command(&["undo", &run]);
        std::thread::spawn(move || command::run(command, ""))
    });
    let undone: Vec<_> = undone.collect();
    // None has ended before the last one has begun.
    std::thread::sleep(Duration::from_secs(3));
    assert!(undone.iter().all(|it| !it.is_finished()));
    drop(lock);
    let undone = undone.into_iter().map(|it| it.join().unwrap());
    let reverting = undone.filter(|it| !it.stderr.contains("is undone already"));
    assert_eq!(reverting.count(), 1);
    assert_eq!(machine.read(user_file("claude-code")), GH);
}

#[test]
fn an_undo_in_order_gives_everything_back() {
    let machine = Machine::new();
    let claude_code = machine.put(user_file("claude-code"), GH);
    machine.migrate(&["--client", "claude-code"]);
    machine.put(user_file("cursor"), GH);
    machine.migrate(&["--client", "cursor"]);
    machine.undo();
    machine.undo();
    assert!(!machine.setup().config_path().exists());
    assert_eq!(std::fs::read_to_string(claude_code).unwrap(), GH);
}

#[test]
fn an_undo_keeps_a_limit_that_a_later_run_relies_on() {
    let machine = Machine::new();
    machine.setup().save_text(GH);
    machine.put(user_file("claude-code"), GH);
    machine.put(".claude/settings.json", DENIES);
    machine.migrate(&["--client", "claude-code"]);
    let limited = r#"{"mcpServers": {"gh": {"command": "x", "disabledTools": ["rm"]}}}"#;
    machine.put(user_file("windsurf"), limited);
    machine.migrate(&["--client", "windsurf"]);
    let undone = machine.run(&["undo", &first_run(&machine)]).code(0);
    assert_eq!(
        machine.servers()["gh"]["tools"]["deny"],
        json!(["rm"]),
        "{undone}"
    );
}

#[test]
fn a_question_of_a_client_is_asked_although_mcpzip_asked_no_more() {
    let machine = Machine::new();
    let tools = json!({ "ask": ["*"], "without_asking": ["other", "rm"] });
    let config = json!({ "mcpServers": { "gh": { "command": "x", "tools": tools } } });
    machine.setup().save_text(&config.to_string());
    machine.put(user_file("claude-code"), GH);
    let asks = r#"{"permissions": {"ask": ["mcp__gh__rm"]}}"#;
    machine.put(".claude/settings.json", asks);
    let told = machine
        .run(&["connect", "claude-code", "--dry-run"])
        .code(0);
    assert!(told.stderr.contains("can call `gh`"), "{told}");
    let report = machine.migrate(&[]);
    let without_asking = &machine.servers()["gh"]["tools"]["without_asking"];
    assert_eq!(*without_asking, json!(["other"]), "{report:#}");
    assert!(
        report["tightened"].to_string().contains("(`rm`)"),
        "{report:#}"
    );
}

#[test]
fn mcpzip_in_one_project_is_not_in_all() {
    for (client, file, rules, rule) in [
        (
            "claude-code",
            ".mcp.json",
            ".claude/settings.json",
            r#"{"deniedMcpServers": [{"serverName": "gh"}]}"#,
        ),
        (
            "cursor",
            ".cursor/mcp.json",
            ".cursor/hooks.json",
            r#"{"version": 1, "hooks": {"beforeMCPExecution": [{"command": "./look.sh"}]}}"#,
        ),
    ] {
        let machine = Machine::new();
        machine.setup().save_text(GH);
        let own = r#"{"mcpServers": {"own": {"command": "own-mcp"}}}"#;
        machine.put(user_file(client), own);
        machine.put(&format!("work/{file}"), RUNS);
        machine.put(rules, rule);
        let run = |arguments: &[&str]| {
            let mut command = machine.setup().command(arguments);
            command.current_dir(machine.home("work"));
            command::run(command, "").json()
        };
        let report = run(&["migrate", "--yes", "--json"]);
        assert_eq!(verdict(&report, "own").0, "stays", "{report:#}");
        let report = run(&["init", "--yes", "--json", "--no-test", "--client", client]);
        assert_eq!(machine.read(user_file(client)), own, "{report:#}");
    }
}

#[test]
fn a_repair_lets_codex_run_nothing_without_asking() {
    let machine = Machine::new();
    let never = "approval_policy = \"never\"\n";
    let entry = |program: &str| {
        format!("{never}[mcp_servers.mcpzip]\ncommand = {program:?}\nargs = [\"serve\"]\n")
    };
    machine.setup().save_text(GH);
    machine.put(
        user_file("codex"),
        &entry(program::mcpzip().to_str().unwrap()),
    );
    let _ = machine.run(&["doctor", "--fix"]);
    let text = machine.read(user_file("codex"));
    assert!(text.contains("approval_mode = \"auto\""), "{text}");
    let own = "[mcp_servers.own]\ncommand = \"own-mcp\"\n";
    let gone = entry("/nonexistent/mcpzip");
    machine.put(user_file("codex"), &format!("{gone}{own}"));
    let report = machine.migrate(&[]);
    let text = machine.read(user_file("codex"));
    assert!(text.contains("approval_mode = \"auto\""), "{text}");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("Codex refuses calls"), "{report:#}");
}

#[test]
fn init_leaves_what_it_says_stays_also_if_another_server_has_its_name() {
    let machine = Machine::new();
    let proxy = r#"{"mcpServers": {"hub": {"command": "mcp-proxy", "args": ["--x"]}}}"#;
    machine.put(user_file("claude-code"), proxy);
    let other = r#"{"mcpServers": {"hub": {"command": "own-mcp"}}}"#;
    machine.put(user_file("cursor"), other);
    let report = machine
        .run(&["init", "--yes", "--json", "--no-test"])
        .code(0)
        .json();
    let own = json!({ "hub": { "command": "own-mcp" } });
    assert_eq!(machine.servers(), own, "{report:#}");
    assert!(machine.read(user_file("claude-code")).contains("mcp-proxy"));
}

#[test]
fn an_import_opens_nothing_that_is_switched_off() {
    let machine = Machine::new();
    let off = r#"{"mcpServers": {"gh": {"command": "x", "disabled": true}}}"#;
    machine.setup().save_text(off);
    let servers = r#"{"mcpServers": {"github": {"command": "x"}}}"#;
    machine.put(".config/mcp/servers.json", servers);
    let refused = machine.run(&["migrate", "--from", "avelino", "--yes"]);
    let all = refused.to_string();
    assert!(all.contains("same server as `gh`"), "{refused}");
    assert!(machine.servers()["github"].is_null(), "{refused}");
    let _ = machine
        .run(&["migrate", "--from", "avelino", "--yes", "--drop-rules"])
        .code(0);
    assert_eq!(machine.servers()["github"]["command"], "x");
}

#[cfg(unix)]
#[test]
fn two_clients_with_one_file_are_migrated_and_given_back_as_one() {
    let machine = Machine::new();
    let file = machine.put("dotfiles/mcp.json", GH);
    for client in ["cursor", "windsurf"] {
        let path = machine.home(user_file(client));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&file, path).unwrap();
    }
    let report = machine.migrate(&[]);
    assert_eq!(machine.servers()["gh"]["command"], "x", "{report:#}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("mcpzip") && !text.contains("\"gh\""),
        "{text}"
    );
    machine.undo();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), GH);
}

#[test]
fn an_interrupted_run_is_mentioned() {
    let machine = Machine::new();
    machine.put(user_file("cursor"), GH);
    machine.migrate(&[]);
    let run = machine.run(&["undo", "--list", "--json"]).code(0).json();
    let backups = run[0]["backups"].as_str().unwrap();
    let record = std::path::Path::new(backups).join("record.json");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replace("\"done\"", "\"begun\"")).unwrap();
    for arguments in [&["doctor"][..], &["migrate", "--dry-run"]] {
        let told = machine.run(arguments);
        let all = format!("{}{}", told.stdout, told.stderr);
        assert!(all.contains("was interrupted"), "{told}");
    }
}

const LIMITED: &str =
    r#"{"mcpServers": {"gh": {"command": "x", "args": ["a"], "disabledTools": ["rm"]}}}"#;

/// Kiro with a limited server, which came over.
fn limited() -> Machine {
    let machine = Machine::new();
    machine.put(user_file("kiro"), LIMITED);
    machine.migrate(&[]);
    machine
}

#[test]
fn a_switch_that_came_over_is_named_when_the_entry_is_replaced_by_one_that_is_on() {
    let machine = Machine::new();
    let off = r#"{"mcpServers": {"gh": {"command": "x", "disabled": true}}}"#;
    machine.put(user_file("kiro"), off);
    machine.migrate(&[]);
    let on = r#"{"command": "x", "disabled": false}"#;
    let add = ["add", "gh", "--force", "--no-check", "--json", on];
    let hints = machine.run(&add).code(0).json()["hints"].to_string();
    assert!(hints.contains("Kiro had `gh` switched off"), "{hints}");
}

#[test]
fn a_rule_that_came_over_is_named_for_a_second_entry_of_its_server_and_reaches_it() {
    let machine = limited();
    let add = ["add", "second", "--no-check", "--", "x", "--plain", "a"];
    let added = machine.run(&add).code(0);
    for word in ["Kiro can call `second`", "mcpServers.gh.tools.deny", "rm"] {
        assert!(added.stderr.contains(word), "{word}: {added}");
    }
    let doctor = machine.run(&["doctor", "--json"]);
    let is_named = doctor.stdout.contains("Kiro can call `second`");
    assert!(is_named, "{doctor}");
    let report = machine.migrate(&[]);
    assert_eq!(
        machine.servers()["second"]["tools"],
        json!({"deny": ["rm"]})
    );
    let told = report["tightened"].to_string();
    assert!(told.contains("`mcpServers.gh.tools.deny`"), "{report:#}");
    assert_eq!(
        machine.run(&["doctor", "--json"]).json()["findings"]
            .to_string()
            .find("client-rule"),
        None
    );
}

#[test]
fn a_rule_that_a_person_gives_to_a_server_here_is_no_rule_for_its_equals() {
    let machine = limited();
    let _ = machine
        .run(&["add", "second", "--no-check", "--", "x", "a"])
        .code(0);
    // The rule that came over is taken back, and there is one more.
    let path = machine.setup().config_path();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"rm\"", "\"mine\"")).unwrap();
    let doctor = machine.run(&["doctor", "--json"]);
    assert!(!doctor.stdout.contains("`second`"), "{doctor}");
    machine.migrate(&[]);
    assert!(machine.servers()["second"]["tools"].is_null());
}

#[test]
fn a_later_run_relies_on_no_rule_that_its_servers_have_anyway() {
    let machine = limited();
    machine.put(
        user_file("cursor"),
        r#"{"mcpServers": {"o": {"command": "o"}}}"#,
    );
    machine.migrate(&[]);
    let run = first_run(&machine);
    let undone = machine.run(&["undo", &run]).code(0);
    assert!(machine.servers()["gh"].is_null(), "{undone}");
}

#[test]
fn a_switch_that_only_an_entry_knows_stays_where_it_is() {
    let codex = "[mcp_servers.gh]\ncommand = \"x\"\nenabled = false\n";
    let kiro = r#"{"mcpServers": {"gh": {"command": "x", "disabled": true}}}"#;
    for (client, own) in [("kiro", kiro), ("codex", codex)] {
        let machine = Machine::new();
        machine.setup().save_text(GH);
        machine.put(user_file(client), own);
        let _ = machine.run(&["connect", client]).code(0);
        let find = |kind: &str| {
            let report = machine.run(&["doctor", "--json"]).json();
            let findings = report["findings"].as_array().unwrap().clone();
            findings.into_iter().find(|found| found["code"] == kind)
        };
        assert_eq!(find("client-duplicate"), None);
        let before = machine.read(user_file(client));
        for only in [&[][..], &["--only", "gh"]] {
            let report = machine.migrate(only);
            let (said, why) = verdict(&report, "gh");
            let is_named = why.contains("`mcpzip disable gh`") && why.contains("--drop-rules");
            assert!(said == "stays" && is_named, "{report:#}");
        }
        assert_eq!(machine.read(user_file(client)), before);
        assert!(find("client-rule-lost").is_some());
        let added = machine
            .run(&["add", "second", "--no-check", "--", "x"])
            .code(0);
        assert!(added.stderr.contains("can call `second`"), "{added}");
        // As the reason says.
        let report = machine.migrate(&["--only", "gh", "--drop-rules"]);
        assert_eq!(verdict(&report, "gh").0, "moves", "{report:#}");
    }
}

#[test]
fn a_rule_by_a_name_is_about_the_server_that_came_over_with_it_alone() {
    let machine = Machine::new();
    machine.put(user_file("claude-code"), GH);
    machine.put(".claude/settings.json", DENIES);
    let other = |program: &str| json!({ "mcpServers": { "gh": { "command": program } } });
    machine.put(user_file("cursor"), &other("y").to_string());
    machine.put(
        ".cursor/cli-config.json",
        r#"{"permissions": {"deny": ["Mcp(gh:drop)"]}}"#,
    );
    machine.migrate(&[]);
    machine.put(user_file("gemini-cli"), &other("z").to_string());
    let report = machine.migrate(&["--client", "gemini-cli"]);
    let servers = machine.servers();
    for (name, denied) in [
        ("gh", json!(["rm"])),
        ("gh-cursor", json!(["drop"])),
        ("gh-gemini-cli", json!(null)),
    ] {
        let tools = &servers[name]["tools"]["deny"];
        assert_eq!(*tools, denied, "{name}: {servers} {report:#}");
    }
}

#[test]
fn a_rule_by_the_name_of_a_server_is_named_for_a_second_entry_of_it() {
    let machine = Machine::new();
    machine.setup().save_text(GH);
    machine.put(user_file("claude-code"), RUNS);
    machine.put(".claude/settings.json", DENIES);
    machine.migrate(&[]);
    assert_eq!(machine.servers()["gh"]["tools"], json!({ "deny": ["rm"] }));
    let added = machine
        .run(&["add", "second", "--no-check", "--", "x", "--plain"])
        .code(0);
    assert!(added.stderr.contains("can call `second`"), "{added}");
    let doctor = machine.run(&["doctor", "--json"]);
    assert!(doctor.stdout.contains("can call `second`"), "{doctor}");
    let report = machine.migrate(&["--client", "claude-code"]);
    let second = &machine.servers()["second"]["tools"];
    assert_eq!(*second, json!({ "deny": ["rm"] }), "{report:#}");
    let other = machine
        .run(&["add", "other", "--no-check", "--", "y"])
        .code(0);
    assert!(!other.stderr.contains("can call"), "{other}");
}
