//! What search learns from calls: a tool that was called after a search is raised for such needs, for its caller alone.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

#[cfg(unix)]
use crate::identities::{As as _, said, token};
#[cfg(unix)]
use crate::support::gateway::Gateway;
use crate::support::script::{answer, result};
use crate::support::{Client, Server, Setup, until};

const ISSUES: &str = r#"{"name":"list_issues","description":"List the open issues of a repository","inputSchema":{"type":"object"}}"#;
const TICKETS: &str = r#"{"name":"list_issues","description":"List the open issues of a project","inputSchema":{"type":"object"}}"#;

/// Both tools match it as well, and the tool of `code` comes first by its name.
const NEED: &str = "list open issues";
/// The same need in other words.
const OTHER: &str = "open issues please";

fn setup() -> Setup {
    let tickets = Server::new().tool_as("list_issues", TICKETS, vec![answer("none"); 20]);
    let code = Server::new().tool_as("list_issues", ISSUES, vec![answer("none"); 20]);
    Setup::new()
        .alone()
        .server("tickets", tickets)
        .server("code", code)
        .setting("search", json!({ "semantic": false }))
}

fn files(setup: &Setup) -> PathBuf {
    setup.home().path("state/habits/v1")
}

/// The names of the tools that a search finds, in order.
fn found(client: &mut Client, query: &str) -> Vec<String> {
    let names = |line: &str| Some(line.split_once('(')?.0.to_owned());
    client.search(query).lines().filter_map(names).collect()
}

fn use_tickets(client: &mut Client, times: usize) {
    for _ in 0..times {
        client.search(NEED);
        client.execute("tickets__list_issues");
    }
}

#[test]
fn a_tool_that_was_called_after_a_search_is_first_the_next_time() {
    let setup = setup();
    let mut client = setup.connect();
    let before = ["code__list_issues", "tickets__list_issues"];
    assert_eq!(found(&mut client, NEED), before);
    use_tickets(&mut client, 4);
    let after = ["tickets__list_issues", "code__list_issues"];
    assert_eq!(found(&mut client, NEED), after);
    assert_eq!(found(&mut client, OTHER), after);
    // A server that is named, and a need of nothing, stay what they were.
    assert_eq!(found(&mut client, "code: list open issues"), before);
    assert!(client.search("xyzzy plugh").contains("No tool fits"));
    client.finish();

    // The next session has it, and an explanation shows it.
    let mut client = setup.connect();
    assert_eq!(found(&mut client, NEED), after);
    client.finish();
    let explained = setup
        .run(&["search", "--explain", "--json", NEED])
        .code(0)
        .json();
    let (first, second) = (&explained["hits"][0], &explained["hits"][1]);
    assert_eq!(first["name"], "tickets__list_issues", "{explained}");
    assert!(
        first["habit"].as_f64().unwrap() > 0.0 && second["habit"] == 0.0,
        "{explained}"
    );
    let shown = setup.run(&["stats"]).code(0).json();
    assert!(shown["tools"].as_array().unwrap().len() == 1, "{shown}");

    // No word of a query is on the disk.
    for entry in fs::read_dir(files(&setup)).unwrap().flatten() {
        let text = fs::read_to_string(entry.path())
            .unwrap()
            .replace("list_issues", "");
        assert!(!text.contains("issue") && !text.contains("open"), "{text}");
    }

    let forgotten = setup.run(&["stats", "--forget"]).code(0).json();
    assert_eq!(forgotten, json!({ "forgotten_tools": 1, "people": 1 }));
    let mut client = setup.connect();
    assert_eq!(found(&mut client, NEED), before);
    client.finish();
    assert_eq!(
        setup.run(&["stats"]).code(0).json()["tools"][0]["calls"],
        4,
        "counts stay"
    );
}

#[cfg(unix)]
#[test]
fn lessons_reach_other_sessions_and_a_killed_one_has_written_them() {
    let setup = setup();
    let mut client = setup.connect();
    use_tickets(&mut client, 4);
    until("the lessons on the disk", || {
        files(&setup).join("own.json").exists().then_some(())
    });
    client.signal(rustix::process::Signal::KILL);
    client.wait();
    let mut client = setup.connect();
    assert_eq!(found(&mut client, NEED)[0], "tickets__list_issues");
    client.finish();
}

#[test]
fn nothing_is_learnt_from_failures_or_when_it_is_off() {
    let failed = result(r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#);
    let tickets = Server::new().tool_as("list_issues", TICKETS, vec![failed; 20]);
    for (setup, why) in [
        (setup().server("tickets", tickets), "failures"),
        (
            setup().setting("search", json!({ "semantic": false, "learn": false })),
            "off",
        ),
    ] {
        let mut client = setup.connect();
        use_tickets(&mut client, 4);
        assert_eq!(found(&mut client, NEED)[0], "code__list_issues", "{why}");
        client.finish();
        assert!(!files(&setup).join("own.json").exists(), "{why}");
    }
}

#[cfg(unix)]
#[test]
fn one_persons_habits_change_no_order_for_others() {
    let setup = setup()
        .setting("http", json!({ "auth": { "tokens": true } }))
        .setting("roles", json!({ "dev": { "profiles": ["*"] } }));
    let [anna, ben] = ["anna", "ben"].map(|name| token(&setup, &[name, "--role", "dev"]));
    let mut gateway = setup.serve(&[]);
    let search = |gateway: &Gateway, token: &str| {
        let arguments = format!(r#""name":"search_tools","arguments":{{"query":"{NEED}"}}"#);
        said(gateway.modern("tools/call", &arguments).by(token))
    };
    let first = |text: &str| {
        text.split_once(' ')
            .unwrap()
            .1
            .split_once('(')
            .unwrap()
            .0
            .to_owned()
    };
    for _ in 0..4 {
        search(&gateway, &anna);
        let said = said(gateway.modern_execute("tickets__list_issues", "").by(&anna));
        assert!(said.contains("none"), "{said}");
    }
    // A call of another person belongs to no search of anna's.
    said(gateway.modern_execute("tickets__list_issues", "").by(&ben));
    assert_eq!(first(&search(&gateway, &anna)), "tickets__list_issues");
    assert_eq!(first(&search(&gateway, &ben)), "code__list_issues");
    gateway.process().close_stdin();
    gateway.process().signal(rustix::process::Signal::TERM);
    gateway.process().wait();
    let mut gateway = setup.serve(&[]);
    assert_eq!(first(&search(&gateway, &anna)), "tickets__list_issues");
    assert_eq!(first(&search(&gateway, &ben)), "code__list_issues");
    let names = fs::read_dir(files(&setup)).unwrap().flatten();
    let names: Vec<String> = names
        .map(|entry| format!("{:?}", entry.file_name()))
        .collect();
    assert!(
        !names
            .iter()
            .any(|name| name.contains("anna") || name.contains("ben")),
        "{names:?}"
    );
    let forgotten = setup.run(&["stats", "--forget"]).code(0).json();
    assert_eq!(forgotten["forgotten_tools"], 1);
    gateway.process().signal(rustix::process::Signal::KILL);
    gateway.process().wait();
}

#[test]
fn lessons_that_cannot_be_written_are_warned_of_once() {
    let setup = setup().log_level("warn");
    setup.save();
    let state = setup.home().path("state");
    fs::create_dir_all(&state).unwrap();
    fs::write(state.join("habits"), "").unwrap();
    let mut client = setup.connect();
    use_tickets(&mut client, 1);
    client.wait_for_stderr("what search has learnt is not written yet");
    use_tickets(&mut client, 1);
    client.close_stdin();
    client.wait();
    let said = client.stderr();
    assert_eq!(said.matches("is not written yet").count(), 1, "{said}");
}
