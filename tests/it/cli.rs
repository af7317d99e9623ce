//! The commands: what they print, and the code they end with.

use std::process::Command;

use serde_json::json;

use crate::support::script::{answer, echo, exit, hang, result};
use crate::support::terminal::Terminal;
use crate::support::{Server, Setup, command, until};

const CREATE_ISSUE: &str = r#"{"name":"create_issue","description":"Create a new issue.","inputSchema":{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}}"#;

fn setup() -> Setup {
    let server = Server::new()
        .tool_as("create_issue", CREATE_ISSUE, [echo()])
        .tool(
            "fails",
            [result(
                r#"{"content":[{"type":"text","text":"no luck"}],"isError":true}"#,
            )],
        )
        .tool("crashes", [exit(1)]);
    Setup::new()
        .server("hub", server)
        .server("other", Server::new().tool("t", [answer("done")]))
        .log_level("error")
}

#[test]
fn search_prints_hits_as_json_where_it_is_piped() {
    for arguments in [
        &["search", "create", "an", "issue"][..],
        &["--json", "search", "create an issue"],
    ] {
        let found = setup().run(arguments).code(0);
        assert_eq!(
            found.json()["hits"][0]["name"],
            "hub__create_issue",
            "{found}"
        );
        assert_eq!(found.stderr, "", "{found}");
    }
    let limited = setup()
        .run(&["search", "-n", "1", "--server", "other", "t"])
        .code(0)
        .json();
    assert_eq!(limited["hits"].as_array().unwrap().len(), 1);
    assert_eq!(limited["hits"][0]["name"], "other__t");
}

#[test]
fn describe_prints_the_definition_verbatim() {
    let described = setup().run(&["describe", "hub__create_issue"]).code(0);
    assert_eq!(described.stdout.trim_end(), CREATE_ISSUE);
    let unknown = setup().run(&["describe", "hub__no_such"]).code(1);
    assert!(
        unknown.stderr.contains("hub__no_such") && unknown.stdout.is_empty(),
        "{unknown}"
    );
}

#[test]
fn call_prints_the_result_as_it_came() {
    let made = setup()
        .run(&["call", "hub__create_issue", r#"{"title":"x"}"#])
        .code(0);
    assert_eq!(
        made.json()["structuredContent"]["arguments"],
        json!({ "title": "x" })
    );
    let made = setup()
        .run_with_input(&["call", "create_issue", "-"], r#"{"title":"piped"}"#)
        .code(0);
    assert_eq!(
        made.json()["structuredContent"]["arguments"],
        json!({ "title": "piped" })
    );
    let odd = r#"{"content":[],"structuredContent":{"z":1e400,"a":18446744073709551617}}"#;
    let setup = Setup::new().server("a", Server::new().tool("t", [result(odd)]));
    assert_eq!(setup.run(&["call", "a__t"]).code(0).stdout.trim_end(), odd);
}

#[test]
fn tools_lists_all_or_those_of_a_server() {
    let all = setup().run(&["tools"]).code(0).json();
    let names: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "hub__create_issue",
            "hub__fails",
            "hub__crashes",
            "other__t"
        ]
    );
    let one = setup().run(&["tools", "other"]).code(0).json();
    assert_eq!(one.as_array().unwrap().len(), 1);
    let _ = setup().run(&["tools", "nobody"]).code(1);
}

#[test]
fn servers_shows_each_with_its_state_and_reason() {
    let setup = setup()
        .server("broken", Server::new().at_start([exit(3)]))
        .server_with("off", Server::new(), json!({ "disabled": true }))
        .entry(
            "secretive",
            r#"{"command":"x","args":["${NO_SUCH_VARIABLE}"]}"#,
        );
    let shown = setup.run(&["servers"]).code(4).json();
    let state = |name: &str| {
        let servers = shown["servers"].as_array().unwrap();
        let server = servers
            .iter()
            .find(|server| server["name"] == name)
            .unwrap_or_else(|| panic!("no {name}: {shown}"));
        (
            server["state"].as_str().unwrap().to_owned(),
            server["reason"].as_str().unwrap_or_default().to_owned(),
        )
    };
    assert_eq!(state("hub").0, "ready");
    assert_eq!(state("off").0, "disabled");
    assert_eq!(state("broken").0, "failed");
    assert!(state("broken").1.contains("exit status: 3"), "{shown}");
    assert_eq!(state("secretive").0, "faulty");
    assert!(state("secretive").1.contains("NO_SUCH_VARIABLE"), "{shown}");
}

#[test]
fn exit_codes_say_what_went_wrong() {
    for (arguments, code) in [
        (&["call", "hub__create_issue", r#"{"title":"x"}"#][..], 0),
        (&["call", "hub__no_such"], 1),
        (&["call", "hub__create_issue", r#"{"title":{}}"#], 2),
        (&["call", "hub__create_issue", "nonsense"], 2),
        (&["search", "--server", "nobody", "x"], 1),
        (&["--no-such-flag"], 2),
        (&["no-such-command"], 2),
        (&[], 2),
        (&["search"], 2),
        (&["search", "-n", "0", "x"], 2),
        (&["call", "hub__crashes"], 4),
        (&["call", "hub__fails"], 5),
        (&["--help"], 0),
        (&["--version"], 0),
    ] {
        let outcome = setup().run(arguments).code(code);
        assert_eq!(outcome.stderr.is_empty(), code == 0, "{outcome}");
    }
}

#[test]
fn a_configuration_that_cannot_be_used_is_its_own_code() {
    let setup = setup();
    for text in ["{", "[]", "", r#"{"mcpServers":5}"#] {
        setup.save_text(text);
        let outcome = command::run(setup.command(&["servers"]), "").code(3);
        assert!(outcome.stderr.contains("config.json"), "{outcome}");
    }
    std::fs::remove_file(setup.config_path()).unwrap();
    for words in [&["servers"][..], &["config", "check"]] {
        let outcome = command::run(setup.command(words), "").code(3);
        assert!(outcome.stderr.contains("config.json"), "{outcome}");
    }
}

#[cfg(unix)]
#[test]
fn a_configuration_that_is_no_regular_file_or_too_large_is_not_read() {
    let setup = setup();
    for kind in ["device", "directory", "pipe", "large"] {
        setup.save_text("{}");
        let path = setup.config_path();
        std::fs::remove_file(&path).unwrap();
        match kind {
            "device" => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
            // Nobody can write next to it.
            "directory" => std::os::unix::fs::symlink("/dev/fd", &path).unwrap(),
            "pipe" => {
                let status = std::process::Command::new("mkfifo").arg(&path).status();
                assert!(status.unwrap().success());
            }
            _ => std::fs::File::create(&path)
                .unwrap()
                .set_len(1 << 33)
                .unwrap(),
        }
        for arguments in [
            &["list"][..],
            &["serve"],
            &["add", "x", "--", "true"],
            &["doctor"],
        ] {
            let outcome = command::run(setup.command(arguments), "");
            let said = outcome.to_string();
            let is_named = said.contains("regular file") || said.contains("larger than 64 MB");
            assert!(outcome.code != Some(0) && is_named, "{kind}: {outcome}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_its_own_code() {
    let setup = Setup::new()
        .entry("absent", r#"{"command":"/no/such/program"}"#)
        .server("stuck", Server::new().tool("t", [hang()]))
        .log_level("off");
    let outcome = setup.run(&["call", "--timeout", "0.2", "stuck__t"]).code(4);
    assert!(outcome.stderr.contains("stuck"), "{outcome}");
    let outcome = setup.run(&["tools", "absent"]).code(4);
    assert!(outcome.stderr.contains("/no/such/program"), "{outcome}");
    let outcome = setup.run(&["call", "absent__t"]).code(4);
    assert!(outcome.stderr.contains("/no/such/program"), "{outcome}");
}

#[test]
fn a_command_whose_terminal_is_closed_ends() {
    let setup = Setup::new().server("stuck", Server::new().at_start([hang()]));
    setup.save();
    let Some(terminal) = Terminal::run(&setup.command(&["search", "read a file"])) else {
        return;
    };
    terminal.shows("searching");
    let process = terminal.process("mcpzip");
    drop(terminal);
    until("the command to end", || {
        let alive = Command::new("kill").args(["-0", &process]).output();
        (!alive.unwrap().status.success()).then_some(())
    });
}

#[test]
fn a_disabled_server_that_could_not_be_used_is_listed() {
    let setup = Setup::new().entry(
        "off",
        r#"{"command": "x", "env": {"TOKEN": "${NOT_SET}"}, "disabled": true}"#,
    );
    setup.save();
    let listed = setup.run(&["list"]).code(0).json();
    let server = &listed["servers"][0];
    assert_eq!(
        (&server["name"], &server["state"]),
        (&"off".into(), &"disabled".into())
    );
    assert!(server["reason"].to_string().contains("NOT_SET"), "{listed}");
}
