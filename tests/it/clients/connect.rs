//! The one entry alone.

use serde_json::{Value, json};

use super::case::{CLIENTS, Machine, new_file, user_file};
use crate::support::command;
use crate::support::terminal::Terminal;

#[test]
fn a_client_file_that_cannot_be_read_is_named_and_stays_as_it_is() {
    for client in ["claude-code", "cursor", "codex", "vscode"] {
        let machine = Machine::new();
        let broken = "{\"mcpServers\": { [\n";
        machine.put(user_file(client), broken);
        let outcome = machine.run(&["connect", client]).code(1);
        for text in [
            "cannot be changed",
            user_file(client),
            "nothing was changed",
        ] {
            assert!(outcome.stderr.contains(text), "{client}: {outcome}");
        }
        assert!(!outcome.stderr.contains("would not run"), "{outcome}");
        assert_eq!(machine.read(user_file(client)), broken, "{client}");
        let _ = machine.run(&["undo"]).code(1);
    }
}

#[test]
fn every_client_is_connected_once_and_disconnected_again() {
    for client in CLIENTS {
        let machine = Machine::new();
        let before = match client {
            "codex" => "# c\nmodel = \"m\"\n\n[tui]\na = 1\n",
            "goose" => {
                "# c\nGOOSE_MODE: auto\nextensions:\n  developer:\n    type: builtin\n    enabled: true\nEND: 1\n"
            }
            "continue" => "# c\nname: a\nmcpServers:\n- name: x\n  command: x\nrules: []\n",
            "zed" | "vscode" => "// c\n{\n  \"a\": 1,\n}\n",
            _ => "{\n    \"a\": 1\n}\n",
        };
        machine.put(user_file(client), before);
        let looked = machine
            .run(&["connect", client, "--dry-run"])
            .code(0)
            .json();
        assert_eq!(
            (&looked["changed"], machine.read(user_file(client)).as_str()),
            (&json!(false), before),
            "{client}"
        );
        let done = machine.run(&["connect", client]).code(0).json();
        assert_eq!(done["changed"], true, "{client}");
        let connected = machine.read(user_file(client));
        assert!(
            connected.contains("serve") && connected.len() > before.len(),
            "{client}: {connected}"
        );
        let again = machine
            .run(&["connect", client, "--name", "other"])
            .code(0)
            .json();
        assert_eq!(
            (&again["changed"], &again["entries"]),
            (&json!(false), &json!(["mcpzip"])),
            "{client}"
        );
        let _ = machine.run(&["disconnect", client]).code(0);
        let apart = machine.read(user_file(client));
        assert!(!apart.contains("mcpzip"), "{client}: {apart}");
        assert_eq!(
            machine.run(&["disconnect", client]).code(0).json()["changed"],
            false,
            "{client}"
        );
        machine.undo();
        assert_eq!(machine.read(user_file(client)), connected, "{client}");
        machine.undo();
        assert_eq!(machine.read(user_file(client)), before, "{client}");
        let _ = machine.run(&["undo"]).code(1);
    }
}

#[test]
fn a_client_without_a_file_gets_one_and_loses_it_again() {
    for client in CLIENTS {
        let machine = Machine::new();
        let _ = machine.run(&["connect", client]).code(0);
        let text = machine.read(new_file(client));
        assert!(
            text.contains("mcpzip") && text.ends_with('\n'),
            "{client}: {text}"
        );
        machine.undo();
        assert!(!machine.home(new_file(client)).exists(), "{client}");
    }
}

#[test]
fn disconnect_leaves_nothing_of_a_file_or_a_list_that_connect_made() {
    for client in CLIENTS {
        let machine = Machine::new();
        let _ = machine.run(&["connect", client]).code(0);
        let made = machine.read(new_file(client));
        let _ = machine.run(&["disconnect", client]).code(0);
        let path = machine.home(new_file(client));
        // Lists and the switches of some clients are not only ours.
        if matches!(
            client,
            "cursor" | "claude-code" | "windsurf" | "vscode" | "zed" | "continue"
        ) {
            assert!(
                !path.exists(),
                "{client}: {}",
                machine.read(new_file(client))
            );
            machine.undo();
            assert_eq!(machine.read(new_file(client)), made, "{client}");
        }
    }
    let machine = Machine::new();
    for before in ["{\n  \"a\": 1\n}\n", "{\n  \"mcpServers\": {}\n}\n", "{}\n"] {
        machine.put(user_file("cursor"), before);
        let _ = machine.run(&["connect", "cursor"]).code(0);
        let _ = machine.run(&["disconnect", "cursor"]).code(0);
        let after: serde_json::Value =
            serde_json::from_str(&machine.read(user_file("cursor"))).unwrap();
        let expected: serde_json::Value = serde_json::from_str(before).unwrap();
        assert_eq!(after, expected);
    }
}

#[test]
fn scopes_have_files_of_their_own() {
    let machine = Machine::new();
    machine.put(".git/HEAD", "");
    let _ = machine
        .run(&["connect", "claude-code", "--scope", "local"])
        .code(0);
    let _ = machine
        .run(&["connect", "claude-code", "--scope", "project"])
        .code(0);
    let text: serde_json::Value = serde_json::from_str(&machine.read(".claude.json")).unwrap();
    let project = std::fs::canonicalize(machine.home("")).unwrap();
    let key = text["projects"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    assert_eq!(std::fs::canonicalize(key).unwrap(), project);
    assert!(machine.read(".mcp.json").contains("alwaysLoad"));
    let refused = machine
        .run(&["connect", "windsurf", "--scope", "project"])
        .code(1);
    assert!(refused.stderr.contains("Windsurf"), "{refused}");
    let _ = machine.run(&["connect", "no-such-client"]).code(2);
}

#[test]
fn the_place_of_a_client_can_be_elsewhere() {
    let machine = Machine::new();
    let other = machine.home("elsewhere");
    for (client, variable, file) in [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("copilot-cli", "COPILOT_HOME", "mcp-config.json"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/opencode.json"),
    ] {
        let setup = machine
            .setup()
            .clone()
            .variable(variable, other.to_str().unwrap());
        let _ = crate::support::command::run(setup.command(&["connect", client]), "").code(0);
        assert!(
            machine
                .read(&format!("elsewhere/{file}"))
                .contains("mcpzip"),
            "{client}"
        );
        assert!(!machine.home(user_file(client)).exists(), "{client}");
    }
}

#[test]
fn a_name_that_another_server_has_is_left_to_it() {
    let machine = Machine::new();
    machine.put(
        user_file("kiro"),
        r#"{"mcpServers": {"mcpzip": {"command": "not-it"}}}"#,
    );
    let refused = machine.run(&["connect", "kiro"]).code(1);
    assert!(refused.stderr.contains("--name"), "{refused}");
    let _ = machine.run(&["connect", "kiro", "--name", "zip"]).code(0);
    assert!(machine.read(user_file("kiro")).contains("\"zip\""));
}

#[test]
fn a_configuration_elsewhere_and_its_variables_are_named_in_the_entry() {
    let machine = Machine::new();
    machine.setup().save_text(
        r#"{"mcpServers": {"x": {"command": "x", "env": {"A": "${A_TOKEN}", "B": "${B:-c}"}}}}"#,
    );
    let config = machine.setup().config_path();
    let config = config.to_str().unwrap();
    let _ = machine
        .run(&["connect", "codex", "--config", config])
        .code(0);
    let text = machine.read(user_file("codex"));
    assert!(
        text.contains(r#"env_vars = ["A_TOKEN", "B"]"#)
            && text.contains(&format!("\"--config\", \"{config}\"")),
        "{text}"
    );
    let setup = machine.setup().clone().variable("A_TOKEN", "secret");
    let _ = crate::support::command::run(setup.command(&["connect", "gemini-cli"]), "").code(0);
    let text = machine.read(user_file("gemini-cli"));
    assert!(
        text.contains(r#""A_TOKEN": "${A_TOKEN}""#)
            && text.contains(r#""B": "${B}""#)
            && !text.contains("secret"),
        "{text}"
    );
    machine.put(user_file("gemini-cli"), "{}");
    let _ = machine.run(&["connect", "gemini-cli"]).code(0);
    assert_eq!(
        machine.read(user_file("gemini-cli")).trim(),
        text.trim(),
        "the variables of the shell decide nothing"
    );
}

/// LM Studio's file in one line: the line that changes has the other server's secrets.
#[test]
fn no_secret_of_another_server_is_shown() {
    let machine = Machine::new();
    machine.put(
        user_file("lm-studio"),
        r#"{"mcpServers": {"x": {"command": "x", "args": ["-e", "A_TOKEN=in-arguments"], "env": {"NAME": "in-a-variable"}}}}"#,
    );
    for arguments in [
        &["connect", "lm-studio", "--dry-run"][..],
        &["connect", "lm-studio"],
        &["disconnect", "lm-studio", "--dry-run"],
        &["disconnect", "lm-studio"],
    ] {
        let Some(terminal) = Terminal::run(&machine.setup().command(arguments)) else {
            return;
        };
        let screen = terminal.shows("A_TOKEN=***");
        for secret in ["in-arguments", "in-a-variable"] {
            assert!(!screen.contains(secret), "{secret} in {screen}");
        }
        drop(terminal);
    }
}

#[test]
fn disconnect_takes_out_all_entries_of_the_user_that_clients_shows() {
    const FOLDER: &str = ".continue/mcpServers/x.json";
    const PROFILE: &str = ".config/Code/User/profiles/a/mcp.json";
    let own = |key: &str| {
        format!(
            r#"{{"{key}": {{"mcpzip": {{"command": "mcpzip", "args": ["serve"]}}, "x": {{"command": "x"}}}}}}"#
        )
    };
    for (client, file, key) in [
        ("continue", FOLDER, "mcpServers"),
        ("vscode", PROFILE, "servers"),
    ] {
        for is_in_usual in [true, false] {
            let machine = Machine::new();
            let entries = || {
                let clients = machine.run(&["clients", "--json"]).code(0).json();
                let mut all = clients["clients"].as_array().unwrap().iter();
                let of_client = all.find(|it| it["client"] == client).unwrap();
                of_client["entries"].as_array().unwrap().len()
            };
            if is_in_usual {
                let _ = machine.run(&["connect", client]).code(0);
            }
            machine.put(file, &own(key));
            let before = machine.read(file);
            assert_eq!(entries(), 1 + usize::from(is_in_usual), "{client}");
            // Continue merges the files of its folder; a profile of VS Code is apart.
            if client == "continue" {
                let again = machine.run(&["connect", client]).code(0).json();
                assert_eq!(again["changed"], false, "{again:#}");
            }
            let apart = machine.run(&["disconnect", client]).code(0).json();
            assert_eq!(apart["changed"], true, "{apart:#}");
            assert_eq!(entries(), 0, "{client}, {is_in_usual}: {apart:#}");
            assert!(machine.read(file).contains("\"x\""), "{apart:#}");
            machine.undo();
            assert_eq!(machine.read(file), before, "{client}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_directory_of_runs_that_leads_nowhere_is_named_as_such() {
    let machine = Machine::new();
    let state = machine.setup().home().path("state");
    std::fs::create_dir_all(&state).unwrap();
    std::os::unix::fs::symlink("/gone/undo", state.join("undo")).unwrap();
    let told = machine.run(&["connect", "cursor"]).code(1);
    let text = "it is a link to `/gone/undo`, which is not there";
    assert!(told.stderr.contains(text), "{told}");
}

#[test]
fn disconnect_says_how_moved_servers_come_back() {
    let machine = Machine::new();
    let own = r#"{"mcpServers": {"x": {"command": "x-mcp"}}}"#;
    machine.put(user_file("cursor"), own);
    let report = machine.migrate(&[]);
    let run = report["undo"].as_str().unwrap();
    let told = machine.run(&["disconnect", "cursor"]).code(0);
    assert!(
        told.stderr.contains(&format!("mcpzip undo {run}")),
        "{told}"
    );
    machine.undo();
    machine.undo();
    assert_eq!(machine.read(user_file("cursor")), own);
    // Without such servers there is nothing to say.
    let _ = machine.run(&["connect", "cursor"]).code(0);
    let told = machine.run(&["disconnect", "cursor"]).code(0);
    assert!(!told.stderr.contains("mcpzip undo"), "{told}");
    // Also after a run that has only added the entry.
    machine.put(user_file("cursor"), "{}");
    let _ = machine.run(&["init", "--yes"]).code(0);
    let told = machine.run(&["disconnect", "cursor"]).code(0);
    assert!(!told.stderr.contains("mcpzip undo"), "{told}");
    // The servers of each run are named, until the user has put them back.
    machine.put(user_file("cursor"), own);
    let first = machine.migrate(&[])["undo"].clone();
    let mut both: Value = serde_json::from_str(&machine.read(user_file("cursor"))).unwrap();
    both["mcpServers"]["y"] = json!({ "command": "y-mcp" });
    machine.put(user_file("cursor"), &both.to_string());
    let second = machine.migrate(&[])["undo"].clone();
    both["mcpServers"]["x"] = json!({ "command": "x-mcp" });
    let both = both.to_string();
    for (file, runs) in [(None, &[&first, &second][..]), (Some(&both), &[])] {
        if let Some(file) = file {
            machine.put(user_file("cursor"), file);
        }
        let told = machine.run(&["disconnect", "cursor"]).code(0);
        let named = told.stderr.matches("gives them back").count();
        let has = |run: &&&Value| told.stderr.contains(run.as_str().unwrap());
        let all = runs.iter().all(|run| has(&run));
        assert!(named == runs.len() && all, "{told}");
    }
}

#[cfg(unix)]
#[test]
fn connect_and_disconnect_ask_nothing_on_request() {
    let machine = Machine::new();
    machine.put(user_file("codex"), "");
    let line = ["connect", "codex", "--yes"];
    if let Some(terminal) = Terminal::run(&machine.setup().command(&line)) {
        let screen = terminal.shows("[exit 0]");
        assert!(!screen.contains("[y/N]"), "{screen}");
    }
    let _ = machine.run(&["connect", "cursor", "--yes"]).code(0);
    let _ = machine.run(&["disconnect", "cursor", "--yes"]).code(0);
}

#[cfg(unix)]
#[test]
fn undo_of_an_older_run_names_the_servers_that_its_client_then_loses() {
    let machine = Machine::new();
    let own = r#"{"mcpServers": {"alpha": {"command": "x"}, "beta": {"command": "y"}}}"#;
    machine.put(user_file("cursor"), own);
    let [first, later] = ["alpha", "beta"].map(|name| {
        let report = machine.migrate(&["--client", "cursor", "--only", name]);
        report["undo"].as_str().unwrap().to_owned()
    });
    let preview = machine.run(&["undo", &first, "--dry-run"]).code(0).json();
    let expected = json!([{ "client": "cursor", "servers": ["beta"], "run": later }]);
    assert_eq!(preview["cut_off"], expected, "{preview}");
    let latest = machine.run(&["undo", "--dry-run"]).code(0).json();
    assert_eq!(latest["cut_off"], Value::Null, "{latest}");
    let Some(terminal) = Terminal::run(&machine.setup().command(&["undo", &first])) else {
        return;
    };
    let screen = terminal.shows("[y/N]");
    assert!(
        screen.contains("Cursor will no longer reach what a later run moved: beta"),
        "{screen}"
    );
}

/// The file of Cursor or VS Code that has lost a server to mcpzip is the one whose entry counts.
#[test]
fn an_entry_in_another_file_of_a_client_neither_hides_nor_is_a_loss() {
    let run = |report: &Value| report["undo"].as_str().unwrap().to_owned();
    let cut_off = |machine: &Machine, run: &str| {
        let preview = machine.run(&["undo", run, "--dry-run"]).code(0).json();
        preview["cut_off"].clone()
    };
    // An entry that a later run added to a profile of VS Code does not serve the default profile.
    let machine = Machine::new();
    let default = user_file("vscode");
    machine.put(default, r#"{"servers": {}}"#);
    let first = run(&machine.run(&["connect", "vscode"]).code(0).json());
    let mut file: Value = serde_json::from_str(&machine.read(default)).unwrap();
    file["servers"]["a"] = json!({ "command": "a" });
    machine.put(default, &file.to_string());
    machine.put(
        ".config/Code/User/profiles/p1/mcp.json",
        r#"{"servers": {"b": {"command": "b"}}}"#,
    );
    let later = run(&machine.migrate(&[]));
    let expected = json!([{ "client": "vscode", "servers": ["a"], "run": later }]);
    assert_eq!(cut_off(&machine, &first), expected);
    // The entry of a project goes, and that of the user still serves what has left the user's file.
    let machine = Machine::new();
    let project = machine.home("project");
    std::fs::create_dir(&project).unwrap();
    let in_project = |command: &str| {
        let mut command = machine
            .setup()
            .command(&[command, "cursor", "--scope", "project"]);
        command.current_dir(&project);
        command::run(command, "").code(0)
    };
    machine.put(user_file("cursor"), r#"{"mcpServers": {}}"#);
    let _ = machine.run(&["connect", "cursor"]).code(0);
    let second = run(&in_project("connect").json());
    let mut own: Value = serde_json::from_str(&machine.read(user_file("cursor"))).unwrap();
    own["mcpServers"]["a"] = json!({ "command": "a" });
    machine.put(user_file("cursor"), &own.to_string());
    let _ = machine.migrate(&[]);
    assert_eq!(cut_off(&machine, &second), Value::Null);
    let told = in_project("disconnect");
    assert!(!told.stderr.contains("gives them back"), "{told}");
    let told = machine.run(&["disconnect", "cursor"]).code(0);
    assert!(told.stderr.contains("gives them back"), "{told}");
}

#[cfg(unix)]
#[test]
fn undo_at_a_terminal_shows_what_it_reverts_and_asks() {
    let machine = Machine::new();
    let own = r#"{"mcpServers": {"x": {"command": "x-mcp"}}}"#;
    machine.put(user_file("cursor"), own);
    let _ = machine.migrate(&[]);
    let moved = machine.read(user_file("cursor"));
    let preview = machine.run(&["undo", "--dry-run"]).code(0).json();
    assert_eq!(preview["command"], "migrate", "{preview}");
    assert_eq!(machine.read(user_file("cursor")), moved);
    let Some(terminal) = Terminal::run(&machine.setup().command(&["undo"])) else {
        return;
    };
    let screen = terminal.shows("[y/N]");
    assert!(screen.contains("this reverts mcpzip migrate"), "{screen}");
    assert!(screen.contains("restores mcpServers.x"), "{screen}");
    assert!(screen.contains("removes mcpServers.x"), "{screen}");
    assert!(screen.contains("`remove`"), "{screen}");
    terminal.types("sure");
    terminal.shows("Please answer `y` or `n`");
    terminal.types("n");
    terminal.shows("nothing was done");
    assert_eq!(machine.read(user_file("cursor")), moved);
    let _ = machine.run(&["undo", "--yes"]).code(0);
    assert_eq!(machine.read(user_file("cursor")), own);
    let _ = machine.run(&["undo", "--dry-run"]).code(1);
}

#[cfg(unix)]
#[test]
fn migrate_at_a_terminal_shows_its_plan_before_it_asks() {
    let machine = Machine::new();
    let own = r#"{"mcpServers": {"x": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${X_KEY}"}}}}"#;
    machine.put(user_file("cursor"), own);
    machine.put(user_file("gemini-cli"), &own.replace("url", "httpUrl"));
    let Some(terminal) = Terminal::run(&machine.setup().command(&["migrate"])) else {
        return;
    };
    let screen = terminal.shows("[y/N, d: show the changes]");
    assert!(
        screen.contains("moves x, the same server as `x` above"),
        "{screen}"
    );
    assert!(screen.contains("Files that change:"), "{screen}");
    assert!(!screen.contains("X_KEY\""), "{screen}");
    terminal.types("d");
    let screen = terminal.shows("+        \"Authorization\": \"Bearer ${X_KEY}\"");
    assert!(!screen.contains("***"), "{screen}");
    terminal.types("sure");
    terminal.shows("Please answer `y`, `n`, or `d`");
    terminal.types("n");
    terminal.shows("nothing was done");
    assert_eq!(machine.read(user_file("cursor")), own);
}

#[test]
fn disconnect_names_the_scope_in_which_the_client_is_connected() {
    let machine = Machine::new();
    let _ = machine
        .run(&["connect", "zed", "--scope", "project"])
        .code(0);
    let told = machine.run(&["disconnect", "zed"]).code(0);
    assert!(
        told.stderr
            .contains("`mcpzip disconnect zed --scope project`"),
        "{told}"
    );
    let _ = machine
        .run(&["disconnect", "zed", "--scope", "project"])
        .code(0);
    let told = machine.run(&["disconnect", "zed"]).code(0);
    assert!(!told.stderr.contains("--scope"), "{told}");
}
