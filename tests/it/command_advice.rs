//! What commands say about a wrong command line or an empty configuration, and the commands that they tell to run.

use serde_json::json;

use crate::support::script::{echo, exit};
use crate::support::{Server, Setup, command};

fn setup() -> Setup {
    Setup::new()
        .server("hub", Server::new().read_only_tool("read", [echo()]))
        .log_level("error")
}

#[cfg(unix)]
#[test]
fn log_lines_break_between_words_at_a_terminal() {
    use crate::support::terminal::Terminal;
    let setup = setup()
        .entry("faulty", r#"{"args": []}"#)
        .server("broken", Server::new().at_start([exit(3)]))
        .log_level("warn");
    setup.save();
    for columns in [45, 53] {
        let Some(terminal) = Terminal::run_in(&setup.command(&["tools"]), columns) else {
            return;
        };
        terminal.shows("[exit 0]");
        let screen = terminal.lines().join("\n");
        let words: Vec<&str> = screen.split_whitespace().collect();
        for word in
            "ERROR WARN entry cannot used `mcpzip connection error=server handshake".split(' ')
        {
            assert!(words.contains(&word), "`{word}` is broken:\n{screen}");
        }
        assert!(
            !screen.contains("asking servers"),
            "a progress indicator is left:\n{screen}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_terminal_shows_the_failure_of_a_server_once_though_it_is_tried_again() {
    use crate::support::terminal::Terminal;
    let setup = setup()
        .server("broken", Server::new().at_start([exit(3)]))
        .log_level("warn");
    setup.save();
    let Some(terminal) = Terminal::run(&setup.command(&["serve"])) else {
        return;
    };
    crate::support::until("two attempts", || {
        (setup.home().starts("broken") > 1).then_some(())
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    let screen = terminal.shows("no connection server=broken");
    assert_eq!(screen.matches("no connection").count(), 1, "{screen}");
    terminal.press("C-c");
    terminal.shows("[exit 0]");
}

#[test]
fn commands_that_messages_name_have_the_options_of_the_users_own() {
    let setup = setup().entry("faulty", r#"{"args": []}"#);
    setup.save();
    let config = setup.config_path();
    let (config, moved) = (config.to_str().unwrap(), setup.home().path("other.json"));
    std::fs::copy(config, &moved).unwrap();
    let moved = moved.to_str().unwrap();
    let found = setup.run(&["search", "read", "--config", moved]).code(0);
    let told = format!("see `mcpzip --config {moved} doctor`");
    assert!(found.stderr.contains(&told), "{found}");
    let found = setup.run(&["search", "read"]).code(0);
    assert!(found.stderr.contains("see `mcpzip doctor`"), "{found}");
    let unknown = setup
        .run(&["tools", "x", "--json", "--config", moved])
        .code(1);
    let told = format!("`mcpzip --config {moved} list` shows");
    assert!(unknown.stderr.contains(&told), "{unknown}");
    // An agent passes on what it is told.
    let missing = setup.home().path("missing.json");
    let missing = missing.to_str().unwrap();
    let mut client = setup.start_with(&["serve", "--config", missing]);
    let answer = client.shake_hands("2025-11-25").value();
    let told = format!("run `mcpzip --config {missing} init`");
    let instructions = answer["instructions"].as_str().unwrap();
    assert!(instructions.contains(&told), "{instructions}");
    client.finish();
    // A variable cannot be written, so the advice is another.
    let inline = setup.variable("MCPZIP_CONFIG_JSON", "{}");
    let none = inline.run(&["search", "x"]).code(0);
    assert!(
        none.stderr.contains("change or unset that instead"),
        "{none}"
    );
}

#[test]
fn an_empty_configuration_is_said_with_the_next_step() {
    let setup = Setup::new().log_level("error");
    setup.save();
    let found = setup.run(&["search", "x"]).code(0);
    assert!(
        found
            .stderr
            .contains("no server is configured; `mcpzip add` adds one"),
        "{found}"
    );
}

#[test]
fn a_fault_has_the_name_of_its_file() {
    let setup = setup().entry("faulty", r#"{"args": []}"#);
    let refused = setup.run(&["approve", "faulty"]).code(1);
    assert!(refused.stderr.contains("config.json:1:"), "{refused}");
    let servers = setup.run(&["servers", "faulty"]).code(4).json();
    assert!(
        servers["servers"][0]["position"]
            .as_str()
            .is_some_and(|position| position.starts_with("1:")),
        "{servers}"
    );
    #[cfg(unix)]
    {
        use crate::support::terminal::Terminal;
        let Some(terminal) = Terminal::run(&setup.command(&["servers"])) else {
            return;
        };
        let screen = terminal.shows("[exit 4]");
        assert!(screen.contains("config.json:1:"), "{screen}");
    }
}

#[test]
fn a_disabled_server_that_is_named_is_called_disabled() {
    let setup = setup().entry("off", r#"{"command": "x", "disabled": true}"#);
    let named = setup.run(&["servers", "off"]).code(4);
    let text = "`off` is disabled; `mcpzip enable off` uses it again";
    assert!(named.stderr.contains(text), "{named}");
}

#[test]
fn numbers_and_names_that_cannot_be_meant_are_refused_in_words() {
    let setup = setup();
    for arguments in [&["logs", "-n", "-3"][..], &["daemon", "logs", "-n", "-3"]] {
        let refused = setup.run(arguments).code(2);
        assert!(
            refused.stderr.contains("a number of lines is 0 or more"),
            "{refused}"
        );
    }
    let refused = setup.run(&["search", "x", "-n", "-1"]).code(2);
    assert!(refused.stderr.contains("1..=50"), "{refused}");
    let refused = setup
        .run(&["connect", "cursor", "--name", "bad name"])
        .code(2);
    assert!(refused.stderr.contains("`bad name`"), "{refused}");
    assert!(!setup.home().path("home/.cursor").exists());
    let refused = setup.run(&["update"]).code(2);
    assert!(
        refused.stderr.contains("mcpzip update [OPTIONS] --all"),
        "{refused}"
    );
}

#[test]
fn a_flag_without_its_value_is_a_wrong_command_line() {
    let text = json!({
        "name": "note",
        "annotations": { "readOnlyHint": true },
        "inputSchema": {
            "type": "object",
            "properties": { "title": { "type": "string" }, "draft": { "type": "boolean" } },
        },
    });
    let text = text.to_string();
    let setup = setup().server("notes", Server::new().tool_as("note", &text, [echo()]));
    let refused = setup.run(&["call", "notes__note", "--title"]).code(2);
    assert!(
        refused
            .stderr
            .contains("`--title` of `notes__note` needs a value, such as `--title x`"),
        "{refused}"
    );
    let _ = setup.run(&["call", "notes__note", "--draft"]).code(0);
}

#[cfg(unix)]
#[test]
fn a_pipe_that_is_left_alone_is_remarked_on() {
    let setup = setup();
    let said = |arguments: &[&str], input: &str| {
        let called = setup.run_with_input(arguments, input).code(0);
        called.stderr.contains("stdin was not read")
    };
    // Enough for the pipe to have content until the end.
    let input = format!("{{\"a\": \"{}\"}}", "x".repeat(1000));
    assert!(said(&["call", "hub__read", "--a", "b"], &input));
    assert!(said(&["call", "hub__read", "{}"], &input));
    assert!(!said(&["call", "hub__read"], &input));
    assert!(!said(&["call", "hub__read", "-"], &input));
    assert!(!said(&["call", "hub__read", "--a", "b"], ""));
}

#[cfg(unix)]
#[test]
fn the_end_of_input_answers_no() {
    use crate::support::terminal::Terminal;
    let setup = Setup::new().log_level("error");
    let directory = setup.home().path("home/.cursor");
    std::fs::create_dir_all(&directory).unwrap();
    let entry = r#"{"mcpServers": {"notes": {"command": "sh", "args": ["-c", "x"]}}}"#;
    std::fs::write(directory.join("mcp.json"), entry).unwrap();
    let Some(terminal) = Terminal::run(&setup.command(&["migrate"])) else {
        return;
    };
    terminal.shows("Do this?");
    terminal.press("C-d");
    let screen = terminal.shows("[exit 0]");
    assert!(
        screen.lines().any(|line| line == "nothing was done"),
        "{screen}"
    );
    assert!(!setup.config_path().exists());
}

#[test]
fn help_has_no_line_ends_within_sentences() {
    let setup = setup();
    setup.save();
    for arguments in [
        &["servers"][..],
        &["call"],
        &["completions"],
        &["config", "extract-secrets"],
        &[],
    ] {
        let help = [arguments, &["--help"]].concat();
        let mut help = setup.command(&help);
        help.env("COLUMNS", "100");
        let help = command::run(help, "").code(0);
        let lines: Vec<&str> = help.stdout.lines().collect();
        for pair in lines.windows(2) {
            let is_text = |line: &str| line.starts_with(|c: char| c.is_alphanumeric() || c == '`');
            // A line that has room for the next word was ended by hand.
            let next = pair[1].split(' ').next().unwrap_or_default();
            let has_room = pair[0].len() + 1 + next.len() <= 100;
            let is_split =
                is_text(pair[0]) && is_text(pair[1]) && has_room && !pair[0].ends_with(':');
            assert!(!is_split, "{pair:?}: {help}");
        }
    }
}
