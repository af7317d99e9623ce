//! The command line as people and scripts meet it: how it ends, what its errors say, how its lines break.

use serde_json::{Value, json};

use crate::support::command::Outcome;
use crate::support::script::{self, answer, echo, exit, result, sleep};
use crate::support::{Server, Setup, command};

fn setup() -> Setup {
    Setup::new()
        .server("hub", Server::new().tool("read", [echo()]))
        .log_level("error")
}

/// The last line of stderr, which is the error.
#[track_caller]
fn error(outcome: &Outcome) -> Value {
    let line = outcome.stderr.lines().last().unwrap_or_default();
    let error: Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {outcome}"));
    error["error"].clone()
}

#[cfg(unix)]
#[test]
fn serve_at_a_terminal_ends_by_ctrl_c_and_by_sigterm() {
    use crate::support::terminal::Terminal;
    let setup = setup();
    setup.save();
    let Some(terminal) = Terminal::run(&setup.command(&["serve"])) else {
        return;
    };
    terminal.shows("Ctrl-C ends it");
    terminal.press("C-c");
    terminal.shows("[exit 0]");
    let serve = setup.command(&["serve"]);
    let mut ended = std::process::Command::new("timeout");
    ended
        .args(["--foreground", "--preserve-status", "-s", "TERM", "1"])
        .arg(serve.get_program())
        .args(serve.get_args())
        .envs(
            serve
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    let terminal = Terminal::run(&ended).expect("it was there before");
    terminal.shows("[exit 0]");
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure_and_a_closed_pipe_is_none() {
    use std::process::Stdio;
    let setup = setup();
    setup.save();
    for arguments in [
        &["list"][..],
        &["config", "schema"],
        &["describe", "hub__read"],
        &["man"],
        &["--help"],
        &["completions", "bash"],
    ] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let ended = setup.command(arguments).stdout(full).output().unwrap();
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{arguments:?}: {stderr}");
        let told = stderr.matches("No space left").count();
        assert_eq!(told, 1, "{arguments:?}: {stderr}");
        let mut child = setup
            .command(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}");
    }
    // Its report has said what is wrong, but nobody could read it.
    setup.save_text("{}");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let doctor = setup.command(&["doctor"]).stdout(full.unwrap()).output();
    let doctor = doctor.unwrap();
    let stderr = String::from_utf8_lossy(&doctor.stderr).into_owned();
    assert!(stderr.contains("No space left"), "{stderr}");
    assert_eq!(doctor.status.code(), Some(1), "{stderr}");
    // A server that fails hides nothing of that.
    let setup = setup.server("broken", Server::new().at_start([exit(3)]));
    setup.save();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let servers = setup.command(&["servers"]).stdout(full.unwrap()).output();
    let servers = servers.unwrap();
    let stderr = String::from_utf8_lossy(&servers.stderr).into_owned();
    assert!(
        stderr.contains("not ready") && stderr.contains("No space left"),
        "{stderr}"
    );
    assert_eq!(servers.status.code(), Some(1), "{stderr}");
    // The changes that were made are named.
    let cursor = setup.home().path("home/.cursor/mcp.json");
    std::fs::create_dir_all(cursor.parent().unwrap()).unwrap();
    let list = r#"{"mcpServers": {"moving": {"command": "x"}}}"#;
    std::fs::write(&cursor, list).unwrap();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let mut migrate = setup.command(&["migrate", "--yes"]);
    let moved = migrate.stdout(full.unwrap()).output().unwrap();
    let stderr = String::from_utf8_lossy(&moved.stderr);
    assert_eq!(moved.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("the changes were made, and `mcpzip undo "),
        "{stderr}"
    );
    // A token that was not shown counts all the same.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let mut token = setup.command(&["token", "create", "bob"]);
    let made = token.stdout(full.unwrap()).output().unwrap();
    let stderr = String::from_utf8_lossy(&made.stderr);
    assert_eq!(made.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("`mcpzip token revoke "), "{stderr}");
}

#[test]
fn servers_ends_with_4_when_any_is_not_ready() {
    let setup = setup().entry("off", r#"{"command": "x", "disabled": true}"#);
    let _ = setup.run(&["servers"]).code(0);
    let setup = setup.server("broken", Server::new().at_start([exit(3)]));
    let outcome = setup.run(&["servers"]).code(4);
    assert!(
        outcome
            .stderr
            .contains("not ready: `broken` (1 of 3 servers)"),
        "{outcome}"
    );
    let one = setup.run(&["servers", "hub"]).code(0).json();
    assert_eq!(one["servers"].as_array().unwrap().len(), 1);
    let _ = setup.run(&["servers", "hub", "--health"]).code(0);
    let _ = setup.run(&["servers", "broken", "--health"]).code(4);
    let _ = setup.run(&["servers", "off", "--health"]).code(4);
}

#[test]
fn status_remembers_the_last_failure_until_the_server_answers() {
    let setup = setup().server("late", Server::new().at_start([exit(3)]));
    let _ = setup.run(&["servers"]).code(4);
    let late = |setup: &Setup| {
        let status = setup.run(&["status"]).code(0).json();
        let servers = status["servers"].as_array().unwrap().clone();
        servers
            .into_iter()
            .find(|server| server["name"] == "late")
            .unwrap()
    };
    let failed = late(&setup);
    let failure = &failed["last_failure"];
    assert!(
        failure["reason"]
            .as_str()
            .unwrap_or_default()
            .contains("exit status: 3"),
        "{failed}"
    );
    assert!(failure["seconds_ago"].is_u64(), "{failed}");
    let setup = setup
        .without("late")
        .server("late", Server::new().tool("t", [echo()]));
    let _ = setup.run(&["servers"]).code(0);
    assert_eq!(late(&setup).get("last_failure"), None);
}

#[test]
fn faults_of_the_configuration_are_one_line_with_its_name() {
    let setup = setup()
        .entry("typo", r#"{"comand": "x"}"#)
        .entry("none", r#"{"args": []}"#)
        .entry("unset", r#"{"command": "${NO_SUCH_VARIABLE}"}"#);
    let found = setup.run(&["search", "read"]).code(0);
    assert_eq!(found.stderr.lines().count(), 1, "{found}");
    assert!(
        found.stderr.contains(
            "config.json: 2 entries cannot be used (`none`, `typo`): see `mcpzip doctor`"
        ),
        "{found}"
    );
    // A variable that is not set here is said of the server that needs it.
    let missing = found.json()["missing"].to_string();
    assert!(
        missing.contains("unset (`command` needs the variable `NO_SUCH_VARIABLE`, which is not set; set it where mcpzip is started")
            && missing.contains("`mcpzip secret set NO_SUCH_VARIABLE`"),
        "{missing}"
    );
    // Where each is shown beside its server, nothing is said before; a suggestion stands with its error.
    let status = setup.run(&["status"]).code(0);
    assert_eq!(status.stderr, "");
    let status = status.json();
    let typo = status["servers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|s| s["name"] == "typo")
        .unwrap();
    assert!(
        typo["reason"]
            .as_str()
            .unwrap()
            .ends_with("did you mean `command` instead of `comand`?"),
        "{status}"
    );
    assert_eq!(status["warnings"], json!([]), "{status}");
}

#[cfg(unix)]
#[test]
fn lines_break_between_words() {
    use crate::support::terminal::Terminal;
    let setup = setup()
        .entry("faulty", r#"{"args": []}"#)
        .server("broken", Server::new().at_start([exit(3)]));
    setup.save();
    let commands: [(&[&str], &str); 6] = [
        (
            &["list"],
            "has neither a `command` (a local server) nor a `url` (a remote one)",
        ),
        (
            &["status"],
            "has neither a `command` (a local server) nor a `url` (a remote one)",
        ),
        (
            &["servers"],
            "has neither a `command` (a local server) nor a `url` (a remote one)",
        ),
        (
            &["tools", "nobody"],
            "no server `nobody` is configured; `mcpzip list` shows the configured servers",
        ),
        (
            &["search", "--server", "nobody", "x"],
            "no server `nobody` is configured; `mcpzip list` shows",
        ),
        (
            &["--help"],
            "`serve --http` on this machine, for supervisors and containers",
        ),
    ];
    for columns in [41, 47] {
        for (arguments, text) in commands {
            let Some(terminal) = Terminal::run_in(&setup.command(arguments), columns) else {
                return;
            };
            terminal.shows("[exit ");
            let lines = terminal.lines();
            let words: Vec<&str> = lines
                .iter()
                .flat_map(|line| line.split_whitespace())
                .collect();
            for word in text.split(' ') {
                assert!(
                    words.contains(&word),
                    "{arguments:?}: `{word}` is broken: {lines:#?}"
                );
            }
        }
    }
}

#[test]
fn errors_are_json_where_json_is_asked_for() {
    let setup = setup();
    let unknown = setup.run(&["--json", "call", "hub__no_such"]).code(1);
    let error_of = error(&unknown);
    assert_eq!(
        (&error_of["code"], &error_of["kind"]),
        (&json!(1), &json!("failed"))
    );
    assert!(
        error_of["message"]
            .as_str()
            .unwrap()
            .contains("hub__no_such"),
        "{unknown}"
    );
    let usage = error(&setup.run(&["search", "--json"]).code(2));
    assert_eq!(usage["kind"], "usage");
    std::fs::remove_file(setup.config_path()).unwrap();
    let missing = command::run(setup.command(&["status", "--json"]), "").code(3);
    let error_of = error(&missing);
    assert_eq!(error_of["kind"], "configuration");
    assert!(
        error_of["hints"][0]
            .as_str()
            .unwrap()
            .contains("mcpzip init"),
        "{missing}"
    );
}

#[test]
fn an_unknown_server_gets_the_nearest_name_in_one_wording() {
    let setup = setup();
    for arguments in [
        &["tools", "hubb"][..],
        &["servers", "hubb"],
        &["search", "--server", "hubb", "x"],
        &["login", "hubb"],
        &["approve", "hubb"],
        &["remove", "hubb"],
        &["disable", "hubb"],
        &["doctor", "hubb"],
        &["update", "hubb"],
        &["logs", "hubb"],
        &["stats", "--server", "hubb"],
        &["daemon", "stop", "hubb"],
        &["daemon", "restart", "hubb"],
    ] {
        let outcome = setup.run(arguments).code(1);
        let text = "no server `hubb` is configured; did you mean `hub`?";
        assert!(outcome.stderr.contains(text), "{outcome}");
    }
    let outcome = setup
        .run(&["migrate", "--only", "nosuch", "--dry-run"])
        .code(1);
    assert!(
        outcome.stderr.contains("no client has a server `nosuch`"),
        "{outcome}"
    );
}

#[test]
fn options_for_all_commands_stand_in_the_main_help_alone() {
    let setup = setup();
    let main = setup.run(&["--help"]).code(0);
    for help in [
        &["search", "-h"][..],
        &["search", "--help"],
        &["config", "schema", "-h"],
    ] {
        let own = setup.run(help).code(0);
        assert!(
            own.stdout
                .contains("`mcpzip --help` shows the options for all"),
            "{own}"
        );
        assert!(!own.stdout.contains("--cache-dir"), "{own}");
    }
    for option in [
        "--config <FILE>",
        "--cache-dir <DIR>",
        "--state-dir <DIR>",
        "--json",
        "--log <LEVEL>",
    ] {
        assert!(main.stdout.contains(option), "{main}");
    }
}

#[test]
fn each_exit_code_of_the_help_is_one_that_the_program_ends_with() {
    let server = Server::new()
        .tool("read", [echo()])
        .tool("fail", [result(r#"{"content":[],"isError":true}"#)]);
    let setup = Setup::new()
        .server("hub", server)
        .server("broken", Server::new().at_start([exit(3)]))
        .log_level("error");
    let without_config = ["list", "--config", "nowhere.json"];
    let cases: [(i32, &[&str]); 8] = [
        (0, &["call", "hub__read"]),
        (1, &["tools", "nobody"]),
        (2, &["call"]),
        (3, &without_config),
        (4, &["servers"]),
        (4, &["call", "broken__read"]),
        (5, &["call", "hub__fail"]),
        (6, &["doctor"]),
    ];
    let help = setup.run(&["--help"]).code(0);
    let (_, codes) = help
        .stdout
        .split_once("Exit codes:\n")
        .expect("it has them");
    let documented: Vec<i32> = codes
        .lines()
        .map_while(|line| line.split_whitespace().next()?.parse().ok())
        // The code of a signal, which the tests of questions see.
        .filter(|code| *code != 130)
        .collect();
    let mut tested: Vec<i32> = cases.iter().map(|(code, _)| *code).collect();
    tested.dedup();
    assert_eq!(documented, tested, "{help}");
    for (code, arguments) in cases {
        let setup = setup.clone();
        // A key that is not known is a warning of `doctor`, where nothing else is wrong.
        let setup = match code {
            6 => setup.without("broken").setting("no_such_key", json!(1)),
            _ => setup,
        };
        let _ = setup.run(arguments).code(code);
    }
}

/// The words of each `mcpzip` command in the code blocks of a document, as a shell divides them.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for (number, block) in text.split("```").enumerate() {
        let is_shell = ["sh\n", "bash\n", "console\n"]
            .iter()
            .any(|kind| block.starts_with(kind));
        if number % 2 == 0 || !is_shell {
            continue;
        }
        let joined = block.replace("\\\n", " ");
        for line in joined.lines() {
            let line = line.trim_start().trim_start_matches("$ ");
            let words = words(line);
            let parts = words.split(|word| ["|", "&&", ">", ";"].contains(&word.as_str()));
            let ours = parts
                .map(|part| {
                    let is_variable = |word: &&String| word.contains('=');
                    part.iter().skip_while(is_variable).cloned().collect()
                })
                .filter(|part: &Vec<String>| part.first().is_some_and(|word| word == "mcpzip"));
            commands.extend(ours);
        }
    }
    commands
}

fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (c, quote) {
            ('#', None) if word.is_empty() => break,
            ('\'' | '"', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            (' ', None) => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            (c, _) => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[test]
fn the_commands_of_the_documents_are_understood() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("README.md"), root.join("SECURITY.md")];
    let mut directories = vec![root.join("docs"), root.join("website/src/content/docs")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            match path.extension().and_then(std::ffi::OsStr::to_str) {
                Some("md" | "mdx") => files.push(path),
                None if path.is_dir() => directories.push(path),
                _ => {}
            }
        }
    }
    let setup = setup();
    let mut count = 0;
    let mut wrong = Vec::new();
    for file in files {
        for mut words in commands(&std::fs::read_to_string(&file).unwrap()) {
            let shown = words.join(" ");
            // Words in capitals and in brackets stand for others.
            if words.iter().any(|word| word.contains(['<', '[', '…'])) {
                continue;
            }
            let end = words.iter().position(|word| word == "--");
            words.insert(end.unwrap_or(words.len()), "--help".to_owned());
            let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
            let outcome = setup.run(&arguments);
            if outcome.code != Some(0) {
                wrong.push(format!("{}: {shown}: {}", file.display(), outcome.stderr));
            }
            count += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 50, "only {count} commands were found");
}

#[test]
fn a_configuration_that_is_not_json_is_named_with_the_next_step() {
    let setup = setup();
    setup.save_text("{\"mcpServers\": {\"x\": ");
    for command in ["status", "list", "servers"] {
        let refused = crate::support::command::run(setup.command(&[command]), "").code(3);
        assert!(
            refused.stderr.contains("hint: ") && refused.stderr.contains("mcpzip config edit"),
            "{refused}"
        );
    }
}

#[test]
fn a_person_is_sent_to_the_command_that_searches() {
    let refused = setup().run(&["call", "nope", "{}"]).code(1);
    assert!(refused.stderr.contains("`mcpzip search`"), "{refused}");
    assert!(!refused.stderr.contains("search_tools"), "{refused}");
}

#[test]
fn a_remote_server_that_cannot_be_reached_gets_advice() {
    let port = crate::support::closed_port::ClosedPort::new();
    let url = format!("http://{}/mcp", port.address());
    let setup = setup().entry("web", &json!({ "url": url }).to_string());
    let report = setup.run(&["doctor", "web", "--json"]).code(1).json();
    let finding = &report["findings"][0];
    assert_eq!(finding["code"], "server-unreachable", "{report}");
    assert!(
        finding["advice"].as_str().unwrap().contains("`url` of web"),
        "{finding}"
    );
    let login = setup.run(&["login", "web"]).code(4);
    assert!(login.stderr.contains("check the `url`"), "{login}");
}

#[test]
fn a_command_without_its_arguments_shows_an_example() {
    for (command, example) in [
        (&["search"][..], "mcpzip search "),
        (&["rules", "check"], "mcpzip rules check "),
        (&["daemon", "start"], "`mcpzip daemon run`"),
        (&["resume"], "`mcpzip daemon resume`"),
        (&["rules", "deny", "hub__read"], "`mcpzip config edit`"),
        (
            &["call", "hub", "read", "--a", "1"],
            "`mcpzip call hub__read`",
        ),
        (&["registry", "files"], "`mcpzip registry search files`"),
        (
            &["add", r#"{"mcpServers": {"a": {"command": "a"}}}"#],
            "mcpzip add NAME '",
        ),
        (&["add", "a", "node s.js ok"], "`mcpzip add NAME -- node …`"),
    ] {
        let refused = setup().run(command).code(2);
        assert!(refused.stderr.contains(example), "{refused}");
    }
}

#[test]
fn a_search_where_every_server_failed_is_not_told_to_wait() {
    let setup = Setup::new()
        .log_level("error")
        .server("dead", Server::new().at_start([exit(3)]));
    let mut client = setup.start();
    client.shake_hands("2025-11-25");
    let said = crate::support::until("the failure", || {
        let said = client.search("x");
        said.contains("exit status: 3").then_some(said)
    });
    assert!(said.contains("No server could list its tools."), "{said}");
    client.finish();
}

#[cfg(unix)]
#[test]
fn adding_a_server_that_fails_says_so_once() {
    use crate::support::terminal::Terminal;
    let setup = setup();
    setup.save();
    let Some(terminal) =
        Terminal::run_in(&setup.command(&["add", "bad", "--", "/nonexistent/x"]), 80)
    else {
        return;
    };
    let screen = terminal.shows("[exit 4]");
    assert_eq!(screen.matches("does not work yet").count(), 1, "{screen}");
}

#[test]
fn login_without_a_server_names_those_that_take_a_login() {
    let none = setup().run(&["login"]).code(2);
    assert!(none.stderr.contains("the configuration has none"), "{none}");
    let setup = setup()
        .entry("far", r#"{ "url": "http://127.0.0.1:9/mcp" }"#)
        .entry(
            "keyed",
            r#"{ "url": "http://127.0.0.1:9/x", "headers": { "Authorization": "Bearer k" } }"#,
        );
    for arguments in [&["login"][..], &["login", "--with-token"]] {
        let outcome = setup.run(arguments).code(2);
        let text = "name the server, or give `--all`: far (no login)\n";
        assert!(outcome.stderr.ends_with(text), "{outcome}");
    }
    for (server, reason) in [("hub", "a local program"), ("keyed", "`headers`")] {
        let outcome = setup.run(&["login", server]).code(1);
        assert!(outcome.stderr.contains(reason), "{outcome}");
        assert!(outcome.stderr.contains("mcpzip auth status"), "{outcome}");
    }
    let help = setup.run(&["login", "--help"]).code(0).stdout;
    assert!(help.contains("mcpzip login [OPTIONS] --all"), "{help}");
}

#[test]
fn words_in_the_form_of_another_program_get_the_form_of_this_one() {
    let setup = setup();
    for (arguments, text) in [
        (
            &["call", "hub__read", "title=a b", "n=1"][..],
            "write each parameter as a flag: `--title 'a b' --n 1`",
        ),
        (
            &["call", "hub__read", "{\"a\":", "1}"],
            "put JSON in single quotes",
        ),
        (
            &[
                "add",
                "x",
                "-e",
                "A=topsecret",
                "B=topsecret",
                "--",
                "npx",
                "y",
            ],
            "`B=…` stands where the command or URL belongs; each value needs its own `--env`",
        ),
        (
            &[
                "add",
                "x",
                "--from-registry",
                "y",
                "--set",
                "a=b",
                "c=topsecret",
            ],
            "each value needs its own `--set`: write `--set c=…`",
        ),
        (
            &["add", "x", "--from-registry", "y", "npx"],
            "give either `--from-registry` or a command or URL, not both",
        ),
    ] {
        let outcome = setup.run(arguments).code(2);
        assert!(outcome.stderr.contains(text), "{outcome}");
        assert!(!outcome.stderr.contains("topsecret"), "{outcome}");
    }
    let behind = setup.run(&["call", "hub__read", "--", "title=a"]).code(2);
    assert!(behind.stderr.contains("such as `--title a`"), "{behind}");
}

#[test]
fn a_tool_of_a_server_that_is_not_configured_is_no_misspelt_tool_of_mcpzip() {
    let setup = setup();
    for (name, advice) in [
        ("hubb__read", "did you mean `hub`?"),
        (
            "nothing__status",
            "`mcpzip list` shows the configured servers",
        ),
    ] {
        let server = name.split("__").next().unwrap();
        let text =
            format!("there is no tool `{name}`: no server `{server}` is configured; {advice}");
        for command in ["call", "describe"] {
            let outcome = setup.run(&[command, name]).code(1);
            assert!(outcome.stderr.contains(&text), "{outcome}");
        }
    }
    let mut client = setup.connect();
    client.search("read");
    let answer = client.execute("nothing__status").text();
    assert!(
        answer.contains("no server `nothing` is configured") && !answer.contains("mcpzip__"),
        "{answer}"
    );
    let own = client.execute("mcpzp__status").text();
    assert!(own.contains("did you mean mcpzip__status"), "{own}");
    client.finish();
}

#[test]
fn what_is_so_already_is_not_reported_as_done() {
    let setup = setup();
    let enabled = |screen: &str| screen.contains("hub is enabled already");
    setup.save();
    #[cfg(unix)]
    if let Some(terminal) =
        crate::support::terminal::Terminal::run(&setup.command(&["enable", "hub"]))
    {
        let screen = terminal.shows("[exit 0]");
        assert!(enabled(&screen), "{screen}");
    }
    let idle = setup.run(&["login", "--all"]).code(0);
    assert!(idle.stderr.contains("no server needs a login"), "{idle}");
    let port = crate::support::closed_port::ClosedPort::new();
    let health = setup
        .run(&["healthcheck", &port.address().to_string()])
        .code(4);
    for text in ["refused", "`mcpzip serve --http"] {
        assert!(health.stderr.contains(text), "{health}");
    }
}

#[test]
fn a_configuration_with_a_mistake_has_one_code_and_one_hint() {
    let setup = setup();
    setup.save();
    std::fs::write(setup.config_path(), "{\"mcpServers\": {").unwrap();
    for arguments in [
        &["list"][..],
        &["add", "x", "--", "npx", "y"],
        &["enable", "hub"],
        &["init", "--yes", "--no-test"],
        &["migrate", "--yes"],
    ] {
        let outcome = command::run(setup.command(arguments), "").code(3);
        assert!(outcome.stderr.contains("mcpzip config edit"), "{outcome}");
    }
}

#[test]
fn a_person_reads_of_their_own_rules() {
    let setup = Setup::new().log_level("error").server_with(
        "hub",
        Server::new().tool("read", [echo()]),
        json!({ "tools": { "deny": ["read"] } }),
    );
    let denied = setup.run(&["call", "hub__read", "{}"]).code(1);
    assert!(
        denied
            .stderr
            .contains("`hub__read` is denied by your rules: mcpServers.hub.tools.deny[0]"),
        "{denied}"
    );
}

#[test]
fn a_misspelt_key_that_restricts_keeps_its_server_or_the_file_from_being_used() {
    for (mut entry, written, meant) in [
        (json!({ "tols": { "deny": ["t"] } }), "tols", "tools"),
        (json!({ "tools": { "dney": ["t"] } }), "tools.dney", "deny"),
        (json!({ "trus": "pin" }), "trus", "trust"),
        (json!({ "project": ["/x"] }), "project", "projects"),
    ] {
        entry["command"] = "no-such-program".into();
        let setup = setup().entry("odd", &entry.to_string());
        let _ = setup.run(&["call", "hub__read", "{}"]).code(0);
        let said = format!("unknown key `{written}`; did you mean `{meant}`?");
        let status = setup.run(&["--json", "status"]).code(0);
        assert!(status.stdout.contains(&said), "{status}");
    }
    let refused = setup()
        .setting("tols", json!({ "deny": ["read"] }))
        .run(&["call", "hub__read", "{}"])
        .code(3);
    assert!(
        refused.stderr.contains("did you mean `tools`?"),
        "{refused}"
    );
    // Files of other clients may have this key, which restricts nothing.
    let status = setup()
        .entry("on", r#"{"command": "x", "enabled": true}"#)
        .run(&["--json", "list"])
        .code(0);
    assert!(!status.stdout.contains("is a restriction"), "{status}");
}

#[test]
fn a_rule_that_matches_no_tool_is_remarked_on() {
    let rules = json!({ "tools": { "deny": ["convert_tme", "delete_*"] } });
    let server = Server::new().tool("convert_time", [echo()]);
    let setup = Setup::new().server_with("time", server, rules);
    let said =
        "rule `deny` \"convert_tme\" matches no tool of `time`; did you mean `convert_time`?";
    let listed = setup.run(&["--json", "rules"]).code(0).json();
    assert_eq!(listed[0].get("remark"), None, "its list is not known");
    let found = setup.run(&["--json", "doctor"]).json();
    let findings = found["findings"].as_array().unwrap();
    let found: Vec<_> = findings
        .iter()
        .filter(|finding| finding["code"] == "rule-unmatched")
        .collect();
    assert_eq!(found.len(), 1, "{findings:?}");
    assert!(
        found[0]
            .to_string()
            .contains("did you mean `convert_time`?")
    );
    let listed = setup.run(&["--json", "rules", "list"]).code(0).json();
    assert_eq!(listed[0]["remark"], said, "{listed}");
    let pattern = listed[1]["remark"].as_str().unwrap();
    assert!(pattern.contains("matches no tool of `time`"), "{listed}");
}

#[test]
fn rules_and_approvals_list_without_a_subcommand() {
    let setup = setup();
    for command in ["rules", "approvals"] {
        let bare = setup.run(&["--json", command]).code(0).json();
        assert_eq!(bare, setup.run(&["--json", command, "list"]).code(0).json());
    }
    // How a rule is made is said where a person looks for it.
    let help = setup.run(&["rules", "--help"]).code(0);
    assert!(help.stdout.contains("mcpzip config edit"), "{help}");
    for pair in [["allow", "approve"], ["deny", "reject"]] {
        let [own, other] = pair.map(|word| setup.run(&["approvals", word, "x"]).code(1));
        assert_eq!(own.stderr, other.stderr);
    }
}

#[test]
fn call_prints_the_text_alone_into_a_pipe_on_request() {
    let answer = result(r#"{"content":[{"type":"text","text":"plain"}]}"#);
    let setup = Setup::new().server("hub", Server::new().tool("read", [answer]));
    let json = setup.run(&["call", "hub__read", "{}"]).code(0).json();
    let text = setup.run(&["call", "--text", "hub__read", "{}"]).code(0);
    assert_eq!(
        text.stdout.trim_end(),
        json["content"][0]["text"].as_str().unwrap()
    );
}

#[test]
fn a_misnamed_argument_is_named_beside_the_missing_parameter() {
    let definition = r#"{"name":"read","inputSchema":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}}"#;
    let server = Server::new().tool_as("read", definition, [echo()]);
    let setup = Setup::new().server("files", server);
    let called = setup.run(&["call", "files__read", r#"{"pth": "a.txt"}"#]);
    let said = "`path` is required: string; `pth` is not a parameter: did you mean `path`?";
    assert!(called.stderr.contains(said), "{called}");
}

#[test]
fn an_empty_query_is_a_wrong_command_line() {
    let setup = Setup::new().server("notes", Server::new().tool("find", [echo()]));
    for query in ["", "  "] {
        let refused = setup.run(&["search", query]).code(2);
        assert!(refused.stderr.contains("the query is empty"), "{refused}");
    }
}

#[test]
fn add_says_that_a_relative_path_depends_on_the_client() {
    let setup = Setup::new();
    let added = setup.run(&[
        "add",
        "files",
        "--no-check",
        "--json",
        "--",
        "files-mcp",
        ".",
    ]);
    let hints = added.code(0).json()["hints"].to_string();
    assert!(hints.contains("relative to the directory"), "{hints}");
}

#[test]
fn servers_alone_names_no_next_attempt() {
    let setup = Setup::new().entry("dead", r#"{"command": "false"}"#);
    let told = setup.run(&["servers", "--json"]).code(4).json();
    let reason = told["servers"][0]["reason"].as_str().unwrap();
    assert!(
        !reason.contains("next attempt") && !reason.is_empty(),
        "{reason}"
    );
}

#[test]
fn an_address_without_its_scheme_is_taken_for_no_program() {
    let setup = setup();
    setup.save();
    let refused = setup
        .run(&["add", "linear", "mcp.linear.app/mcp", "--no-check"])
        .code(2);
    assert!(
        refused
            .stderr
            .contains("write `https://mcp.linear.app/mcp`"),
        "{refused}"
    );
    let host = setup.run(&["add", "linear", "mcp.linear.app"]).code(2);
    assert!(
        host.stderr.contains("write `https://mcp.linear.app`"),
        "{host}"
    );
    let _ = setup
        .run(&["add", "py", "--no-check", "--", "python3.99", "server.py"])
        .code(0);
    let mixed = setup
        .run(&[
            "add",
            "x",
            "https://x.example/mcp",
            "--cwd",
            ".",
            "--no-check",
        ])
        .code(2);
    assert!(mixed.stderr.contains("are for commands"), "{mixed}");
}

#[test]
fn a_search_without_servers_says_that_there_are_none() {
    let mut client = Setup::new().log_level("error").connect();
    let answer = client.search("zebra");
    assert!(answer.contains("no server is configured"), "{answer}");
}

#[test]
fn a_program_or_directory_that_is_missing_is_named() {
    let setup = setup();
    setup.save();
    let added = setup.run(&["add", "gone", "--", "no-such-program"]).code(4);
    assert!(
        added
            .stdout
            .contains("`no-such-program` is not on the PATH; install it"),
        "{added}"
    );
    let added = setup
        .run(&["add", "away", "--cwd", "/no/such/place", "--", "sh"])
        .code(4);
    assert!(
        added
            .stdout
            .contains("there is no directory `/no/such/place`"),
        "{added}"
    );
}

#[test]
fn a_client_connected_before_there_is_a_configuration_is_a_thing_to_say() {
    let setup = Setup::new();
    let connect = || command::run(setup.command(&["connect", "cursor", "--dry-run"]), "").code(0);
    let connected = connect();
    assert!(
        connected.stderr.contains("there is no configuration at"),
        "{connected}"
    );
    setup.save_text("{}");
    let connected = connect();
    assert!(
        !connected.stderr.contains("there is no configuration"),
        "{connected}"
    );
}

#[cfg(not(feature = "tray"))]
#[test]
fn a_build_without_the_tray_says_so_and_how_to_get_one() {
    let outcome = Setup::new().run(&["tray", "--json"]).code(1);
    let message = error(&outcome)["message"].to_string();
    assert!(message.contains("`mcpzip ui`"), "{message}");
    assert_eq!(
        message.contains("--features tray"),
        cfg!(target_os = "linux"),
        "{message}"
    );
}

#[test]
fn a_remote_server_that_never_answers_delays_the_first_search_only() {
    // Connections are accepted by the system, and never answered.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", silent.local_addr().unwrap());
    let setup = setup().entry("far", &json!({ "url": url }).to_string());
    setup.save();
    let search = |arguments: &[&str]| {
        let start = std::time::Instant::now();
        let outcome = command::run(setup.command(arguments), "").code(0);
        (outcome, start.elapsed())
    };
    let (first, _) = search(&["search", "read a file"]);
    for shown in ["hub__read", "far (still being listed; it failed"] {
        assert!(first.stdout.contains(shown), "{first}");
    }
    // The fastest of three, as a busy machine delays one.
    let fastest = (0..3).map(|_| search(&["search", "read a file"]).1).min();
    assert!(
        fastest.unwrap() < std::time::Duration::from_secs(4),
        "{fastest:?}"
    );
    let (tools, _) = search(&["tools"]);
    for shown in ["hub__read", "far: it has not listed its tools yet"] {
        assert!(tools.to_string().contains(shown), "{tools}");
    }
    let status = command::run(setup.command(&["status"]), "");
    assert!(
        status.stdout.contains("did not list its tools within"),
        "{status}"
    );
}

#[test]
fn doctor_names_a_pause_and_config_check_a_profile_that_refuses_all() {
    let setup = setup();
    setup.save();
    let _ = setup.run(&["daemon", "pause"]).code(0);
    let doctor = setup.run(&["doctor", "hub", "--json"]);
    assert!(doctor.stdout.contains("\"paused\""), "{doctor}");
    let _ = setup.run(&["daemon", "resume"]).code(0);
    let doctor = setup.run(&["doctor", "hub", "--json"]);
    assert!(!doctor.stdout.contains("\"paused\""), "{doctor}");
    let path = setup.home().path("profiles.json");
    std::fs::write(
        &path,
        r#"{"mcpServers": {}, "profiles": {"r": {"servers": "x"}}}"#,
    )
    .unwrap();
    let config = path.to_str().unwrap();
    let checked = setup.run(&["config", "check", "--config", config]).code(3);
    assert!(
        checked
            .to_string()
            .contains("the profile `r` cannot be used"),
        "{checked}"
    );
}

#[test]
fn a_server_that_failed_before_is_not_only_said_to_be_listed() {
    let setup = setup().server("late", Server::new().at_start([sleep(3000), exit(3)]));
    let _ = setup.run(&["servers"]).code(4);
    let failure = "; it failed ";
    let found = setup.run(&["search", "read"]).code(0).json();
    let missing = found["missing"].to_string();
    assert!(
        missing.contains("late (still being listed; it failed")
            && missing.contains("exit status: 3"),
        "{found}"
    );
    let tools = setup.run(&["tools"]).code(0);
    assert!(
        tools.stderr.contains("it has not listed its tools yet") && tools.stderr.contains(failure),
        "{tools}"
    );
}

#[test]
fn approve_and_reject_alone_list_what_waits_and_decide_nothing() {
    #[cfg(unix)]
    use crate::support::terminal::Terminal;
    let setup = Setup::new().log_level("error").server_with(
        "web",
        Server::new().tool("read", [echo()]),
        json!({ "trust": "quarantine" }),
    );
    let new = setup.run(&["approve", "--json"]).code(0).json();
    assert_eq!(new, json!([{ "server": "web", "change": "quarantine" }]));
    let _ = setup.run(&["servers"]);
    for command in ["approve", "reject"] {
        for arguments in [&[command][..], &[command, "--json"]] {
            let json = setup.run(arguments).code(0).json();
            assert_eq!(json[0]["tool"], "read", "{json}");
        }
        #[cfg(unix)]
        if let Some(terminal) = Terminal::run(&setup.command(&[command])) {
            let shown = terminal.shows("[exit 0]");
            assert!(
                shown.contains("web  ") && shown.contains(&format!("mcpzip {command} SERVER")),
                "{shown}"
            );
        }
    }
    let nothing = self::setup();
    assert_eq!(nothing.run(&["approve"]).code(0).json(), json!([]));
    #[cfg(unix)]
    if let Some(terminal) = Terminal::run(&nothing.command(&["approve"])) {
        terminal.shows("nothing waits for a decision");
    }
    let _ = self::setup().run(&["approve", "--digest", "0123"]).code(2);
}

#[test]
fn a_faulty_entry_is_reported_where_it_matters_alone() {
    let setup = setup().entry("typo", r#"{"comand": "x"}"#);
    for arguments in [
        &["call", "hub__read"][..],
        &["describe", "hub__read"],
        &["tools", "hub"],
        &["search", "--server", "hub", "read"],
    ] {
        let done = setup.run(arguments).code(0);
        assert!(!done.stderr.contains("typo"), "{done}");
    }
    for (arguments, code) in [(&["call", "typo__read"][..], 4), (&["tools", "typo"], 1)] {
        let failed = setup.run(arguments).code(code);
        assert!(
            failed.stderr.contains("server `typo` cannot be used")
                && failed.stderr.contains("comand"),
            "{failed}"
        );
    }
    for arguments in [&["search", "read"][..], &["tools"]] {
        let done = setup.run(arguments).code(0);
        assert!(
            done.stderr.contains("1 entry cannot be used (`typo`)"),
            "{done}"
        );
    }
}

#[cfg(unix)]
#[test]
fn control_codes_of_a_tool_reach_a_pipe_and_no_terminal() {
    use crate::support::terminal::Terminal;
    let setup = Setup::new().log_level("error").server(
        "hub",
        Server::new().tool("red", [answer("\u{1b}[31mred\u{1b}[0m\u{7}\n\tend")]),
    );
    let piped = setup.run(&["call", "--text", "hub__red"]).code(0);
    assert_eq!(piped.stdout, "\u{1b}[31mred\u{1b}[0m\u{7}\n\tend\n");
    let Some(terminal) = Terminal::run(&setup.command(&["call", "hub__red"])) else {
        return;
    };
    let screen = terminal.shows("[exit 0]");
    assert!(
        screen.contains("\\u{1b}[31mred\\u{1b}[0m\\u{7}\n        end"),
        "{screen}"
    );
}

#[test]
fn an_error_of_a_server_looks_like_no_message_of_mcpzip() {
    let message = "boom\u{1b}[0m\n\n\u{1b}[32m\u{2713}\u{1b}[0m et is up to date\nhint: run this";
    let fault = json!({ "code": -32000, "message": message }).to_string();
    let definition = json!({ "name": "t", "description": "Does.", "inputSchema": {
        "type": "object", "properties": { "a\u{1b}[31mb\nhint: c": { "type": "string" } },
        "required": ["a\u{1b}[31mb\nhint: c"] } });
    let server = Server::new().tool("e", [script::error(&fault)]).tool_as(
        "t",
        &definition.to_string(),
        [echo()],
    );
    let setup = Setup::new().log_level("error").server("et", server);
    setup.save();
    for arguments in [
        &["call", "et__e"][..],
        &["call", "et__t", "{}"],
        &["call", "et__t", "--zz", "1"],
    ] {
        // As at a terminal, colours are on.
        let mut command = setup.command(arguments);
        command.env("CLICOLOR_FORCE", "1").env("FORCE_COLOR", "1");
        let done = command::run(command, "");
        let shown = done.stderr.as_str();
        for colour in ["\u{1b}[32m", "boom\u{1b}", "a\u{1b}"] {
            assert!(!shown.contains(colour), "{shown:?}");
        }
        for line in shown.lines().skip(1) {
            assert!(line.is_empty() || line.starts_with("  "), "{shown:?}");
        }
    }
}
