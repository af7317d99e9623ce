//! Servers of projects: seen by clients that are in them, and by nobody else.

use serde_json::{Value, json};

use crate::support::gateway::{Call, HttpSession};
use crate::support::script::{answer, say};
use crate::support::{Client, Message, Server, Setup, until};

fn named(name: &str) -> Server {
    Server::new()
        .tool("greet", [answer(name)])
        .tool(&format!("only_{name}"), [answer(name)])
}

/// Directories `one` and `two` with a server each, one that is not there in `one`, and one for all.
fn setup() -> Setup {
    let setup = Setup::new();
    let at = |name: &str| setup.home().path(name);
    for directory in ["one/deep/er", "two", "none"] {
        std::fs::create_dir_all(at(directory)).unwrap();
    }
    let (one, two) = (at("one"), at("two"));
    let not_one = format!("!{}", one.display());
    setup
        .server("all", named("all"))
        .server_with("first", named("first"), json!({ "projects": [one] }))
        .server_with("second", named("second"), json!({ "projects": [two] }))
        .server_with(
            "elsewhere",
            named("elsewhere"),
            json!({ "projects": [not_one] }),
        )
}

fn project(setup: &Setup, directory: &str) -> Setup {
    setup.clone().variable(
        "CLAUDE_PROJECT_DIR",
        setup.home().path(directory).to_str().unwrap(),
    )
}

/// The servers whose tools a client finds, waiting until `count` are there.
fn seen(client: &mut Client, count: usize) -> Vec<&'static str> {
    until("the servers", || {
        let found = client
            .call("search_tools", r#"{"query":"greet","limit":20}"#)
            .text();
        let known = ["all", "first", "second", "elsewhere"];
        let seen: Vec<_> = known
            .into_iter()
            .filter(|name| found.contains(&format!("{name}__greet")))
            .collect();
        (seen.len() == count).then_some(seen)
    })
}

#[test]
fn a_client_in_a_project_sees_its_servers_and_no_other_projects() {
    let setup = setup();
    for (directory, expected) in [
        ("one", &["all", "first"][..]),
        ("one/deep/er", &["all", "first"]),
        ("two", &["all", "second", "elsewhere"]),
        ("none", &["all", "elsewhere"]),
    ] {
        let mut client = project(&setup, directory).connect();
        assert_eq!(seen(&mut client, expected.len()), expected, "{directory}");
        for name in ["all", "first", "second", "elsewhere"] {
            let answered = client.execute(&format!("{name}__greet"));
            let described = client.call(
                "describe_tool",
                &format!(r#"{{"name":"{name}__only_{name}"}}"#),
            );
            let bare = client.execute(&format!("only_{name}"));
            let is_seen = expected.contains(&name);
            assert_eq!(
                answered.is_tool_error(),
                !is_seen,
                "{directory} {name}: {}",
                answered.as_str()
            );
            assert_eq!(
                described.is_tool_error(),
                !is_seen,
                "{directory} {name}: {}",
                described.as_str()
            );
            assert_eq!(
                bare.is_tool_error(),
                !is_seen,
                "{directory} {name}: {}",
                bare.as_str()
            );
            if !is_seen {
                // It is not told of, by whatever way it was asked for.
                let told = client
                    .call("execute_tool", r#"{"name":"mcpzip__status"}"#)
                    .text();
                assert!(!told.contains(&format!("\n{name}: ready")), "{told}");
            }
        }
        client.finish();
    }
    // Nobody was in `two` but once, and its server was started for that one only.
    assert_eq!(setup.home().starts("second"), 1);
}

#[cfg(unix)]
#[test]
fn links_and_the_working_directory_lead_to_a_project() {
    let setup = setup();
    let link = setup.home().path("link");
    std::os::unix::fs::symlink(setup.home().path("one"), &link).unwrap();
    let mut client = project(&setup, "link/deep").connect();
    assert_eq!(seen(&mut client, 2), ["all", "first"]);
    client.finish();
    // The tests' programs run in `home`.
    let here = setup.home().path("home");
    let setup = setup.server_with("first", named("first"), json!({ "projects": [here] }));
    let mut client = setup.connect();
    assert_eq!(seen(&mut client, 3), ["all", "first", "elsewhere"]);
    client.finish();
}

#[test]
fn the_command_line_sees_what_is_there_and_says_where_the_rest_is() {
    let setup = project(&setup(), "one");
    let found = setup.run(&["tools", "--json"]).code(0).json().to_string();
    assert!(
        found.contains("first__greet") && !found.contains("second__greet"),
        "{found}"
    );
    let refused = setup.run(&["call", "second__greet", "{}"]).code(4);
    assert!(
        refused.stderr.contains("in ") && refused.stderr.contains("two only"),
        "{refused}"
    );
    let servers = setup.run(&["servers", "--json"]).code(0).json();
    let second = servers["servers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|server| server["name"] == "second")
        .unwrap();
    assert_eq!(
        (&second["state"], &second["tools"]),
        (&json!("elsewhere"), &json!(0)),
        "{second}"
    );
    assert_eq!(setup.home().starts("second"), 0);
}

/// Answers the question for roots that comes within the answer to `call`.
fn answered(session: &HttpSession, call: &Call, roots: &[&std::path::Path]) -> Message {
    let mut stream = call.open();
    loop {
        let message = Message::new(stream.event().expect("an answer comes").data);
        if message.is_answer() {
            return message;
        }
        if message.as_str().contains(r#""method":"roots/list""#) {
            let roots: Vec<Value> = roots
                .iter()
                .map(|root| json!({ "uri": format!("file://{}", root.display()) }))
                .collect();
            let id: Value = serde_json::from_str(message.id()).unwrap();
            let reply = json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": roots } });
            assert_eq!(session.post(&reply.to_string()).send().status, 202);
        }
    }
}

#[cfg(unix)]
#[test]
fn over_http_each_client_sees_by_its_own_roots() {
    let setup = setup();
    let gateway = setup.serve(&[]);
    let execute = |session: &HttpSession, id: u64, name: &str, roots: &[&std::path::Path]| {
        let call = session
            .execute(id, name, "")
            .header("Accept", "application/json, text/event-stream");
        if roots.is_empty() {
            call.send().message()
        } else {
            answered(session, &call, roots)
        }
    };
    let (one, two) = (setup.home().path("one/deep"), setup.home().path("two"));
    let with_roots = json!({ "roots": { "listChanged": true } });
    let (first, second) = (
        gateway.session_of("2025-11-25", &with_roots),
        gateway.session_of("2025-11-25", &with_roots),
    );
    let nowhere = gateway.session();
    assert_eq!(execute(&first, 1, "first__greet", &[&one]).text(), "first");
    assert_eq!(
        execute(&second, 1, "second__greet", &[&two]).text(),
        "second"
    );
    // What a client has said holds for its next calls, and for no other client.
    assert!(execute(&first, 2, "second__greet", &[]).is_tool_error());
    assert!(execute(&second, 2, "first__greet", &[]).is_tool_error());
    assert!(execute(&first, 3, "elsewhere__greet", &[]).is_tool_error());
    assert_eq!(
        execute(&second, 3, "elsewhere__greet", &[]).text(),
        "elsewhere"
    );
    assert!(execute(&nowhere, 1, "first__greet", &[]).is_tool_error());
    assert_eq!(execute(&nowhere, 2, "all__greet", &[]).text(), "all");
    // It moves, and says so.
    let moved = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    assert_eq!(first.post(moved).send().status, 202);
    assert_eq!(
        execute(&first, 4, "second__greet", &[&two]).text(),
        "second"
    );
    assert!(execute(&first, 5, "first__greet", &[]).is_tool_error());
}

/// Checks that the server left no request for the client's roots.
#[track_caller]
fn is_not_asked_for_roots(client: &Client) {
    let left = client.left_over();
    let asks = |message: &Message| message.as_str().contains("roots/list");
    assert!(!left.iter().any(asks));
}

#[test]
fn a_client_is_asked_for_its_roots_once_and_only_where_it_matters() {
    let roots = r#"{"roots":{}}"#;
    let setup = setup();
    let mut client = setup.start();
    client.shake_hands_as("2025-11-25", roots);
    let asked = client.expect("a question", |message| {
        message.as_str().contains(r#""method":"roots/list""#)
    });
    let two = format!("file://{}", setup.home().path("two").display());
    client.send(
        &json!({ "jsonrpc": "2.0", "id": serde_json::from_str::<Value>(asked.id()).unwrap(),
        "result": { "roots": [{ "uri": two }] } })
        .to_string(),
    );
    assert_eq!(client.execute("second__greet").text(), "second");
    assert_eq!(seen(&mut client, 3), ["all", "second", "elsewhere"]);
    is_not_asked_for_roots(&client);
    client.finish();

    let setup = Setup::new().server("s", named("s"));
    let mut client = setup.start();
    client.shake_hands_as("2025-11-25", roots);
    assert_eq!(client.execute("s__greet").text(), "s");
    is_not_asked_for_roots(&client);
    client.finish();
}

#[test]
fn an_edit_moves_a_server_from_project_to_project() {
    let setup = project(&setup(), "one");
    let mut client = setup.connect();
    assert_eq!(seen(&mut client, 2), ["all", "first"]);
    let (one, two) = (setup.home().path("one"), setup.home().path("two"));
    let edited = setup
        .server_with("first", named("first"), json!({ "projects": [two] }))
        .server_with("second", named("second"), json!({ "projects": [one] }));
    edited.save();
    until("the edit", || {
        (seen_now(&mut client) == ["all", "second"]).then_some(())
    });
    assert_eq!(client.execute("second__greet").text(), "second");
    assert!(client.execute("first__greet").is_tool_error());
    client.finish();
}

fn seen_now(client: &mut Client) -> Vec<&'static str> {
    let found = client
        .call("search_tools", r#"{"query":"greet","limit":20}"#)
        .text();
    ["all", "first", "second", "elsewhere"]
        .into_iter()
        .filter(|name| found.contains(&format!("{name}__greet")))
        .collect()
}

#[test]
fn a_path_that_is_not_absolute_is_a_fault_of_its_server_alone() {
    let setup = setup().server_with(
        "wrong",
        named("wrong").at_start([say("started")]),
        json!({ "projects": ["here"] }),
    );
    let mut client = project(&setup, "one").connect();
    assert_eq!(seen(&mut client, 2), ["all", "first"]);
    let told = client.execute("wrong__greet").tool_error();
    assert!(
        told.contains("`projects[0]` must be the absolute path"),
        "{told}"
    );
    client.finish();
}

#[test]
fn a_search_on_the_command_line_names_the_servers_that_it_leaves_out() {
    let setup = setup().log_level("error");
    setup.save();
    let run = |arguments: &[&str]| {
        let mut command = setup.command(arguments);
        command.current_dir(setup.home().path("two"));
        crate::support::command::run(command, "")
    };
    let _ = run(&["servers"]);
    let found = run(&["search", "greet", "--json"]).code(0).json();
    assert_eq!(found["elsewhere"], json!(["first"]), "{found}");
    assert!(
        found["hits"].to_string().contains("second__greet"),
        "{found}"
    );
    let named = run(&["search", "greet", "--server", "all", "--json"])
        .code(0)
        .json();
    assert_eq!(named["elsewhere"], json!([]), "it was not to be searched");
}
