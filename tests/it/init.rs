//! `mcpzip init`: from nothing to working, asked or by flags, and taken back as one.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::script::{echo, exit, surroundings};
use crate::support::{Server, Setup};

/// A home without a configuration, in which clients have servers of their own.
struct House {
    setup: Setup,
}

impl House {
    fn new() -> Self {
        let setup = Setup::new().log_level("error");
        let house = Self { setup };
        let _ = std::fs::remove_file(house.setup.config_path());
        house
    }

    fn file(&self, name: &str) -> PathBuf {
        self.setup.home().path("home").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.file(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// The entry of a server that works as its script says.
    fn entry(&self, name: &str, script: Server) -> Value {
        let made = self.setup.clone().server(name, script);
        made.save();
        let config: Value =
            serde_json::from_str(&std::fs::read_to_string(self.setup.config_path()).unwrap())
                .unwrap();
        std::fs::remove_file(self.setup.config_path()).unwrap();
        config["mcpServers"][name].clone()
    }

    /// Runs a command on what is there.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> crate::support::command::Outcome {
        crate::support::command::run(self.setup.command(arguments), "")
    }

    fn config(&self) -> Value {
        serde_json::from_str(&std::fs::read_to_string(self.setup.config_path()).unwrap_or_default())
            .unwrap_or(Value::Null)
    }
}

#[test]
fn a_server_that_is_switched_off_moves_without_its_variable() {
    let house = House::new();
    house.write(
        ".codex/config.toml",
        "[mcp_servers.figma]\nurl = \"http://127.0.0.1:9/mcp\"\nbearer_token_env_var = \"FIGMA_TOKEN\"\nenabled = false\n",
    );
    let report = house.run(&["init", "--yes"]).code(0).json();
    assert_eq!(report["tests"][0]["state"], "disabled", "{report:#}");
    let figma = &house.config()["mcpServers"]["figma"];
    assert_eq!(figma["disabled"], true, "{report:#}");
}

#[test]
fn what_cannot_be_read_or_is_missing_is_no_finished_setup() {
    let house = House::new();
    house.write(".claude.json", "{bad");
    let said = house.run(&["init", "--yes"]).code(1);
    assert!(
        said.stderr.contains(".claude.json cannot be read"),
        "{said}"
    );
    assert!(!said.stdout.contains("set up already"), "{said}");
    assert_eq!(house.config(), Value::Null, "no empty configuration");
    house.write(".claude.json", "{}");
    let connected = house.run(&["init", "--yes"]);
    assert!(!connected.stdout.contains("set up already"), "{connected}");
    let again = house.run(&["init", "--yes"]).code(1);
    assert!(again.stderr.contains("no server is configured"), "{again}");
    assert!(!again.stdout.contains("set up already"), "{again}");
}

/// Claude Code with a server that works and one that does not, and Cursor with none.
fn house() -> House {
    let house = House::new();
    let notes = house.entry(
        "notes",
        Server::new().tool("read", [echo()]).tool("write", [echo()]),
    );
    let dead = house.entry("dead", Server::new().at_start([exit(3)]));
    let servers = json!({ "numStartups": 5, "mcpServers": { "notes": notes, "dead": dead } });
    house.write(
        ".claude.json",
        &serde_json::to_string_pretty(&servers).unwrap(),
    );
    house.write(".cursor/mcp.json", "{\n  \"mcpServers\": {}\n}\n");
    house
}

#[test]
fn by_flags_all_is_set_up_and_undone_as_one() {
    let house = house();
    let before = (house.read(".claude.json"), house.read(".cursor/mcp.json"));
    let looked = house.run(&["init", "--yes", "--dry-run"]).code(0).json();
    assert_eq!(looked["changed"], false);
    assert_eq!(
        (house.read(".claude.json"), house.config()),
        (before.0.clone(), Value::Null)
    );
    let report = house.run(&["init", "--yes"]).code(0).json();
    // Entries that this run writes in place of servers are new ones, too.
    for client in ["claude-code", "cursor"] {
        let expected = json!({ "client": client, "state": "connected", "entry": "mcpzip" });
        let clients = report["clients"].as_array().unwrap();
        assert!(clients.contains(&expected), "{client}: {report:#}");
    }
    let tests = report["tests"].as_array().unwrap();
    let test = |name: &str| {
        tests
            .iter()
            .find(|test| test["server"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&test("notes")["state"], &test("notes")["tools"]),
        (&json!("ready"), &json!(2))
    );
    assert_eq!(test("dead")["state"], "failed");
    assert_eq!(report["new_servers"], json!(["notes"]), "{report:#}");
    assert_eq!(
        house.config()["mcpServers"]
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["notes"]
    );
    let claude: Value = serde_json::from_str(&house.read(".claude.json")).unwrap();
    let left: Vec<_> = claude["mcpServers"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(
        left,
        ["dead", "mcpzip"],
        "what does not work stays with its client"
    );
    assert_eq!(claude["mcpServers"]["mcpzip"]["alwaysLoad"], true);
    assert!(house.read(".cursor/mcp.json").contains("\"serve\""));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(house.setup.config_path())
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
    }
    // Once more: nothing is left to do, and nothing is done.
    let after = (
        house.read(".claude.json"),
        house.read(".cursor/mcp.json"),
        house.config(),
    );
    let again = house.run(&["init", "--yes"]).code(0).json();
    assert_eq!(again["clients"][0]["state"], "already", "{again:#}");
    assert_eq!(
        (&again["changed"], &again["undo"]),
        (&json!(false), &Value::Null),
        "{again:#}"
    );
    assert_eq!(
        (
            house.read(".claude.json"),
            house.read(".cursor/mcp.json"),
            house.config()
        ),
        after
    );
    let _ = house.run(&["undo"]).code(0);
    assert_eq!(
        (house.read(".claude.json"), house.read(".cursor/mcp.json")),
        before
    );
    assert!(!house.setup.config_path().exists());
}

#[test]
fn a_server_of_a_project_is_tried_although_nobody_is_there() {
    let house = House::new();
    let tool = || Server::new().tool("read", [echo()]);
    let (here, away) = (house.entry("here", tool()), house.entry("away", tool()));
    let project = house.file("project");
    std::fs::create_dir_all(&project).unwrap();
    let file = json!({
        "mcpServers": { "away": away },
        "projects": {
            project.to_str().unwrap(): { "mcpServers": { "here": here }, "disabledMcpServers": ["away"] },
        },
    });
    house.write(".claude.json", &file.to_string());
    let report = house.run(&["init", "--yes"]).code(0).json();
    assert_eq!(report["new_servers"], json!(["away", "here"]), "{report:#}");
    for test in report["tests"].as_array().unwrap() {
        assert_eq!(test["state"], "ready", "{report:#}");
    }
    let projects = |name: &str| house.config()["mcpServers"][name]["projects"].to_string();
    assert!(projects("here").contains("project"), "{}", house.config());
    assert!(projects("away").contains("!"), "{}", house.config());
}

#[test]
fn flags_narrow_what_is_done() {
    let house = house();
    let before = house.read(".claude.json");
    let refused = house.run(&["init"]).code(1);
    assert!(refused.stderr.contains("`--yes`"), "{refused}");
    assert!(refused.stderr.contains("a terminal"), "{refused}");
    let arguments = [
        "init",
        "--yes",
        "--client",
        "cursor",
        "--no-migrate",
        "--no-test",
        "--server",
        "git",
        "--server",
        "fetch",
    ];
    let report = house.run(&arguments).code(0).json();
    assert_eq!(report["new_servers"], json!(["git", "fetch"]), "{report:#}");
    assert_eq!(
        report["clients"],
        json!([{ "client": "cursor", "state": "connected", "entry": "mcpzip" }])
    );
    assert_eq!(house.config()["mcpServers"]["git"]["command"], "uvx");
    assert_eq!(house.read(".claude.json"), before);
    assert!(
        house
            .run(&["init", "--yes", "--server", "nothing"])
            .code(2)
            .stderr
            .contains("sequential-thinking")
    );
}

#[test]
fn a_client_without_servers_still_finds_a_configuration() {
    let house = House::new();
    house.write(".cursor/mcp.json", "{}");
    let _ = house.run(&["init", "--yes"]).code(0);
    assert_eq!(house.config(), json!({ "mcpServers": {} }));
    let answered = house.run(&["status"]).code(0).json();
    assert_eq!(answered["servers"], json!([]));
}

/// Claude Code and Cursor with one server that works, once with a variable that is not set and once with a token.
fn twins() -> House {
    let house = House::new();
    let entry = house.entry("notes", Server::new().tool("look", [surroundings()]));
    for (file, token) in [
        (".claude.json", "${NOTES_TOKEN}"),
        (".cursor/mcp.json", TOKEN),
    ] {
        let mut entry = entry.clone();
        entry["env"]["NOTES_TOKEN"] = token.into();
        house.write(
            file,
            &json!({ "mcpServers": { "notes": entry } }).to_string(),
        );
    }
    house
}

const TOKEN: &str = "tok-0123456789abcdefABCDEF";

#[test]
fn without_questions_two_servers_stay_two_and_flags_make_them_one() {
    let house = twins();
    let before = (house.read(".claude.json"), house.read(".cursor/mcp.json"));
    let plan = house
        .run(&["init", "--yes", "--dry-run", "--no-test"])
        .code(0);
    let report = plan.json();
    assert_eq!(report["new_servers"], json!(["notes", "notes-cursor"]));
    let told = report["plan"]["warnings"].to_string();
    assert!(
        told.contains("--merge notes") && told.contains("--extract-secrets"),
        "{told}"
    );
    let merged = house.run(&["init", "--yes", "--merge", "notes", "--extract-secrets"]);
    let report = merged.code(0).json();
    assert_eq!(report["new_servers"], json!(["notes"]), "{report:#}");
    assert_eq!(report["tests"][0]["state"], "ready", "{report:#}");
    assert!(!report.to_string().contains(TOKEN), "{report:#}");
    let called = house.run(&["call", "notes__look", "{}"]).code(0);
    let variable = called.stdout.contains("NOTES_TOKEN");
    assert!(variable, "the server has the value: {called}");
    let secrets = house.setup.config_path().with_extension("secrets.json");
    assert_eq!(
        std::fs::read_to_string(&secrets).unwrap().trim(),
        format!("{{\n  \"NOTES_TOKEN\": \"{TOKEN}\"\n}}")
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&secrets).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let _ = house.run(&["undo"]).code(0);
    assert_eq!(
        (house.read(".claude.json"), house.read(".cursor/mcp.json")),
        before
    );
    assert!(!secrets.exists());
}

#[test]
fn a_changed_secret_reaches_a_running_session_and_one_that_cannot_be_read_is_reported() {
    let setup = Setup::new().server_with(
        "notes",
        Server::new().tool("look", [surroundings()]),
        json!({ "env": { "NOTES_TOKEN": "${NOTES_TOKEN}" } }),
    );
    setup.save();
    let secrets = setup.config_path().with_extension("secrets.json");
    let store = |value: &str| {
        std::fs::write(&secrets, json!({ "NOTES_TOKEN": value }).to_string()).unwrap();
    };
    store("first-value-of-it");
    let mut client = setup.start();
    client.shake_hands("2025-11-25");
    let look =
        |client: &mut crate::support::Client| client.execute("notes__look").result().to_owned();
    let first = look(&mut client);
    assert!(first.contains("first-value-of-it"), "{first}");
    store("second-value-which-is-longer");
    crate::support::until("the second value", || {
        look(&mut client)
            .contains("second-value-which-is-longer")
            .then_some(())
    });
    client.finish();
    std::fs::write(&secrets, "[]").unwrap();
    let refused = crate::support::command::run(setup.command(&["list"]), "").code(3);
    assert!(
        refused.stderr.contains("secrets.json") && refused.stderr.contains("object of texts"),
        "{refused}"
    );
}

#[cfg(unix)]
mod terminal {
    use super::{House, house};
    use crate::support::terminal::Terminal;

    fn show(what: &str, screen: &str) {
        use std::io::Write as _;
        // Nothing is lost for the test when nobody looks.
        let _ = writeln!(std::io::stdout().lock(), "--- {what}\n{screen}\n---");
    }

    #[test]
    fn an_empty_machine_where_nothing_is_chosen_is_not_set_up() {
        let house = House::new();
        let Some(terminal) = wizard(&house) else {
            return;
        };
        if super::has_runner() {
            terminal.shows("Add servers that need no account?");
            terminal.press("Enter");
        }
        let screen = terminal.shows("[exit 1]");
        show("an empty machine", &screen);
        assert!(screen.contains("mcpzip connect CLIENT"), "{screen}");
        assert!(screen.contains("nothing was set up"), "{screen}");
        assert!(screen.contains("mcpzip add NAME"), "{screen}");
        assert!(!screen.contains("set up already"), "{screen}");
        let report = house.run(&["init", "--yes", "--json"]).code(1);
        assert_eq!(report.json()["changed"], false);
        assert!(report.stderr.contains("nothing was set up"), "{report}");
        // Nothing here starts one of the servers that it could name.
        let bare = house.setup.variable("PATH", "/nowhere");
        let bare = crate::support::command::run(bare.command(&["init", "--yes"]), "").code(1);
        assert!(bare.stderr.contains("mcpzip add NAME"), "{bare}");
        assert!(!bare.stderr.contains("--server"), "{bare}");
    }

    #[test]
    fn without_a_client_the_next_step_is_to_connect_one() {
        let house = House::new();
        let arguments = ["init", "--yes", "--no-test", "--server", "fetch"];
        let Some(terminal) = Terminal::run(&house.setup.command(&arguments)) else {
            return;
        };
        let screen = terminal.shows("[exit 0]");
        let end = screen.rsplit("done").next().unwrap();
        assert!(end.contains("mcpzip connect CLIENT"), "{screen}");
    }

    fn wizard(house: &House) -> Option<Terminal> {
        Terminal::run(&house.setup.command(&["init"]))
    }

    /// Accepts the suggested clients and servers.
    fn accept_selections(terminal: &Terminal) {
        for question in ["Which clients", "Which servers"] {
            terminal.shows(question);
            terminal.press("Enter");
        }
    }

    #[test]
    fn servers_of_a_project_that_stay_are_named() {
        let house = house();
        let file = r#"{"mcpServers": {"projsrv": {"command": "true"}}}"#;
        house.write("project/.mcp.json", file);
        let mut command = house.setup.command(&["init", "--yes", "--no-test"]);
        command.current_dir(house.file("project"));
        let Some(terminal) = Terminal::run(&command) else {
            return;
        };
        let screen = terminal.shows("[exit 0]");
        assert!(screen.contains("stay in its files: `projsrv`"), "{screen}");
    }

    /// A package manager that is given up, as it takes too long, may end while a question is open.
    #[test]
    fn a_program_that_ends_while_a_question_is_open_is_no_ctrl_c() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let house = House::new();
        let program = |path: &str, text: &str| {
            house.write(path, text);
            let executable = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(house.file(path), executable).unwrap();
        };
        program("lib/npm/bin/npx-cli.js", "#!/bin/sh\nexit 1\n");
        program("bin/npm", "#!/bin/sh\nexec sleep 300\n");
        symlink("../lib/npm/bin/npx-cli.js", house.file("bin/npx")).unwrap();
        house.write(
            ".cursor/mcp.json",
            r#"{"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes-mcp"]}}}"#,
        );
        let path = format!("{}:/usr/bin:/bin", house.file("bin").display());
        let setup = house.setup.clone().variable("PATH", &path);
        let Some(terminal) = Terminal::run(&setup.command(&["init"])) else {
            return;
        };
        accept_selections(&terminal);
        terminal.shows("Add servers that need no account?");
        terminal.press("Enter");
        terminal.shows("These don't work now.");
        terminal.signals("mcpzip", "CHLD");
        // Enter takes none of them, so that the next question is about Cursor alone.
        terminal.press("Enter");
        terminal.shows("Write this?");
        terminal.types("n");
        terminal.shows("[exit 0]");
    }

    #[test]
    fn a_person_chooses_tries_looks_and_agrees() {
        let house = house();
        let Some(terminal) = wizard(&house) else {
            return;
        };
        let screen = terminal.shows("Which clients should use mcpzip?");
        show("which clients", &screen);
        assert!(
            screen.contains("Claude Code      2 servers")
                && screen.contains("Cursor           no servers"),
            "{screen}"
        );
        // Cursor is taken off.
        terminal.press("Down");
        terminal.press("Space");
        terminal.press("Enter");
        let screen = terminal.shows("Which servers should move here?");
        show("which servers", &screen);
        terminal.press("Enter");
        // Servers are offered where something starts them.
        if super::has_runner() {
            show(
                "which others",
                &terminal.shows("Add servers that need no account?"),
            );
            terminal.press("Enter");
        }
        let screen = terminal.shows("These don't work now.");
        show("what does not work", &screen);
        assert!(
            screen.contains("✓ notes  2 tools") && screen.contains("✗ dead"),
            "{screen}"
        );
        terminal.press("Enter");
        let screen = terminal.shows("Write this?");
        show("the preview", &screen);
        assert!(
            !house.setup.config_path().exists(),
            "it was written before anybody agreed"
        );
        assert!(
            screen.contains("1 server new here, 1 file of clients")
                && !screen.contains("\"mcpServers\""),
            "a summary, and no change line by line:\n{screen}"
        );
        assert!(
            screen.contains("not moving after all: dead"),
            "it is known before the question:\n{screen}"
        );
        assert!(screen.contains("[y/N, d: show the changes]"), "{screen}");
        terminal.types("d");
        show("the changes", &terminal.shows("\"mcpServers\""));
        terminal.types("y");
        let screen = terminal.shows("[exit 0]");
        show("the end", &screen);
        for words in [
            "restart Claude Code",
            "mcpzip undo",
            "dead was left where it is: server `dead` ended",
        ] {
            assert!(screen.contains(words), "`{words}` is missing:\n{screen}");
        }
        assert!(house.config()["mcpServers"]["notes"].is_object());
        assert!(!house.read(".cursor/mcp.json").contains("serve"));
    }

    #[test]
    fn a_person_makes_one_server_of_two_and_moves_its_secret() {
        let house = super::twins();
        let Some(terminal) = wizard(&house) else {
            return;
        };
        accept_selections(&terminal);
        let screen = terminal.shows("Which of these are one server?");
        show("one server", &screen);
        assert!(
            screen.contains("notes (Cursor) is notes but for NOTES_TOKEN"),
            "{screen}"
        );
        // The reference without a value is one with the token at first.
        terminal.press("Enter");
        if super::has_runner() {
            terminal.shows("Add servers that need no account?");
            terminal.press("Enter");
        }
        let screen = terminal.shows("Write this?");
        show("the preview", &screen);
        assert!(screen.contains("1 server new here"), "{screen}");
        assert!(screen.contains("config.secrets.json"), "{screen}");
        terminal.types("d");
        terminal.shows("NOTES_TOKEN");
        terminal.types("y");
        let screen = terminal.shows("[exit 0]");
        assert!(!screen.contains(super::TOKEN), "{screen}");
        assert_eq!(
            house.config()["mcpServers"]["notes"]["env"]["NOTES_TOKEN"],
            "${NOTES_TOKEN}"
        );
    }

    #[test]
    fn a_server_that_moves_while_one_of_its_name_stays_is_told_apart() {
        let house = super::House::new();
        house.write(
            ".claude.json",
            r#"{"mcpServers": {"db": {"command": "x"}}}"#,
        );
        house.write(
            ".codex/config.toml",
            "[mcp_servers.db]\ncommand = \"x\"\nenabled = false\n",
        );
        let Some(terminal) = wizard(&house) else {
            return;
        };
        terminal.shows("Which clients");
        terminal.press("Enter");
        terminal.shows("Which servers");
        terminal.press("Enter");
        let screen = terminal.shows("moving here:");
        assert!(screen.contains("db (Codex, switched off)"), "{screen}");
    }

    #[test]
    fn of_two_servers_of_one_name_the_chosen_one_moves_alone() {
        let house = super::twins();
        let before = house.read(".cursor/mcp.json");
        let Some(terminal) = wizard(&house) else {
            return;
        };
        terminal.shows("Which clients");
        // Claude Code alone uses mcpzip, and of the servers its own moves.
        terminal.press("Enter");
        terminal.shows("Which servers");
        terminal.press("Down");
        terminal.press("Space");
        terminal.press("Enter");
        let screen = terminal.shows("moving here:");
        assert!(screen.contains("notes (Claude Code)"), "{screen}");
        if super::has_runner() {
            terminal.shows("Add servers that need no account?");
            terminal.press("Enter");
        }
        // Its variable is not set.
        terminal.shows("These don't work now.");
        terminal.press("Space");
        terminal.press("Enter");
        terminal.shows("Write this?");
        terminal.types("y");
        terminal.shows("[exit 0]");
        let servers = house.config()["mcpServers"].clone();
        assert_eq!(
            servers.as_object().unwrap().keys().collect::<Vec<_>>(),
            ["notes"]
        );
        let left = house.read(".cursor/mcp.json");
        assert!(left.contains(super::TOKEN) && before.contains(super::TOKEN));
    }

    #[test]
    fn a_person_is_asked_whether_literal_secrets_move() {
        let house = super::twins();
        std::fs::remove_file(house.file(".claude.json")).unwrap();
        let Some(terminal) = wizard(&house) else {
            return;
        };
        accept_selections(&terminal);
        let screen = terminal.shows("write `${NAME}` instead?");
        show("the secrets", &screen);
        assert!(screen.contains("notes (NOTES_TOKEN)"), "{screen}");
        assert!(screen.contains("[y/N]"), "{screen}");
        terminal.types("sure");
        terminal.shows("Please answer `y` or `n`");
        terminal.types("y");
        if super::has_runner() {
            terminal.shows("Add servers that need no account?");
            terminal.press("Enter");
        }
        terminal.shows("Write this?");
        terminal.types("ok");
        terminal.shows("Please answer `y`, `n`, or `d`");
        terminal.types("y");
        terminal.shows("[exit 0]");
        assert_eq!(
            house.config()["mcpServers"]["notes"]["env"]["NOTES_TOKEN"],
            "${NOTES_TOKEN}"
        );
    }

    #[test]
    fn a_server_that_was_just_chosen_is_not_offered_again_under_another_name() {
        let house = House::new();
        house.write(
            ".claude.json",
            r#"{"mcpServers": {
                "my-files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."]},
                "thinking": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-sequential-thinking@latest"]}
            }}"#,
        );
        if !super::has_runner() {
            return;
        }
        let Some(terminal) = wizard(&house) else {
            return;
        };
        accept_selections(&terminal);
        let screen = terminal.shows("Add servers that need no account?");
        show("the others", &screen);
        let offered = screen.rsplit("Add servers").next().unwrap();
        assert!(
            !offered.contains("filesystem") && !offered.contains("sequential-thinking"),
            "{screen}"
        );
        assert!(
            offered.contains("memory") || offered.contains("fetch"),
            "{screen}"
        );
        terminal.press("C-c");
        terminal.shows("[exit 130]");
    }

    #[test]
    fn a_connected_codex_keeps_its_mode_without_a_question() {
        let house = House::new();
        house.write(
            ".codex/config.toml",
            "[mcp_servers.mcpzip]\ncommand = \"mcpzip\"\nargs = [\"serve\"]\n",
        );
        house.setup.save_text("{}");
        let Some(terminal) = wizard(&house) else {
            return;
        };
        terminal.shows("Which clients");
        terminal.press("Enter");
        if super::has_runner() {
            terminal.shows("Add servers that need no account?");
            terminal.press("Enter");
        }
        let screen = terminal.shows("[exit 1]");
        assert!(screen.contains("no server is configured"), "{screen}");
        assert!(!screen.contains("Let Codex run"), "{screen}");
    }

    #[test]
    fn a_person_who_leaves_secrets_where_they_are_is_told_the_command_for_later() {
        let house = super::twins();
        std::fs::remove_file(house.file(".claude.json")).unwrap();
        let Some(terminal) = wizard(&house) else {
            return;
        };
        accept_selections(&terminal);
        terminal.shows("write `${NAME}` instead?");
        terminal.types("n");
        if super::has_runner() {
            terminal.shows("Add servers that need no account?");
            terminal.press("Enter");
        }
        terminal.shows("Write this?");
        terminal.types("n");
        let screen = terminal.shows("[exit 0]");
        assert!(screen.contains("nothing was changed"), "{screen}");
        assert!(!house.setup.config_path().exists(), "{screen}");
        let terminal = wizard(&house).expect("it was there before");
        accept_selections(&terminal);
        terminal.shows("write `${NAME}` instead?");
        terminal.types("n");
        if super::has_runner() {
            terminal.shows("Add servers that need no account?");
            terminal.press("Enter");
        }
        terminal.shows("Write this?");
        terminal.types("y");
        let screen = terminal.shows("[exit 0]");
        show("the end", &screen);
        let end = screen.rsplit("done").next().unwrap();
        assert!(
            end.contains("mcpzip config extract-secrets"),
            "the next steps lack it:\n{screen}"
        );
    }

    #[test]
    fn a_person_who_leaves_while_servers_are_tried_leaves_nothing_behind() {
        use crate::support::Server;
        use crate::support::script::hang;
        let house = House::new();
        let slow = house.entry("slow", Server::new().at_start([hang()]));
        house.write(
            ".claude.json",
            &serde_json::json!({ "mcpServers": { "slow": slow } }).to_string(),
        );
        let before = house.read(".claude.json");
        let Some(terminal) =
            Terminal::run(&house.setup.command(&["init", "--client", "claude-code"]))
        else {
            return;
        };
        terminal.shows("Which servers");
        terminal.press("Enter");
        if super::has_runner() {
            terminal.shows("Add servers");
            terminal.press("Enter");
        }
        crate::support::until("the server's start", || {
            (house.setup.home().starts("slow") > 0).then_some(())
        });
        terminal.press("C-c");
        let screen = terminal.shows("[exit 130]");
        show("Ctrl-C while servers are tried", &screen);
        assert_eq!(house.read(".claude.json"), before);
        assert!(!house.setup.config_path().exists());
        crate::support::until("the servers' end", || {
            house.setup.home().mark.processes().is_empty().then_some(())
        });
    }

    #[test]
    fn keys_typed_while_servers_are_tried_answer_nothing() {
        use crate::support::Server;
        use crate::support::script::{echo, sleep};
        let house = House::new();
        let slow = Server::new().tool("t", [echo()]).at_start([sleep(1500)]);
        let slow = house.entry("slow", slow);
        house.write(
            ".claude.json",
            &serde_json::json!({ "mcpServers": { "slow": slow } }).to_string(),
        );
        let Some(terminal) =
            Terminal::run(&house.setup.command(&["init", "--client", "claude-code"]))
        else {
            return;
        };
        terminal.shows("Which servers");
        terminal.press("Enter");
        if super::has_runner() {
            terminal.shows("Add servers");
            terminal.press("Enter");
        }
        crate::support::until("the server's start", || {
            (house.setup.home().starts("slow") > 0).then_some(())
        });
        terminal.types("y");
        terminal.shows("Write this?");
        std::thread::sleep(std::time::Duration::from_millis(300));
        let screen = terminal.screen();
        assert!(!screen.contains("[exit"), "{screen}");
        terminal.types("n");
        terminal.shows("nothing was changed");
        assert!(!house.setup.config_path().exists());
    }

    #[test]
    fn a_person_may_leave_at_any_question() {
        let house = house();
        let before = house.read(".claude.json");
        let questions: &[&str] = if super::has_runner() {
            &[
                "Which clients",
                "Which servers",
                "Add servers",
                "These don't work",
                "Write this?",
            ]
        } else {
            &[
                "Which clients",
                "Which servers",
                "These don't work",
                "Write this?",
            ]
        };
        for leaving in 0..questions.len() {
            let Some(terminal) = wizard(&house) else {
                return;
            };
            for (at, question) in questions.iter().enumerate().take(leaving + 1) {
                terminal.shows(question);
                terminal.press(if at == leaving { "C-c" } else { "Enter" });
            }
            let screen = terminal.shows("[exit 130]");
            show(&format!("Ctrl-C at `{}`", questions[leaving]), &screen);
            assert_eq!(house.read(".claude.json"), before, "something was written");
            assert!(!house.setup.config_path().exists(), "something was written");
        }
    }
}

/// Whether a program is there that starts one of the offered servers.
#[cfg(unix)]
fn has_runner() -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration of their own"
    )]
    let path = std::env::var_os("PATH").unwrap_or_default();
    ["npx", "uvx"]
        .iter()
        .any(|name| std::env::split_paths(&path).any(|directory| directory.join(name).is_file()))
}
