//! The built-in server: what an agent sees of `mcpzip` itself, and what it may change.

use serde_json::json;

use crate::support::script::{answer, echo, error, exit, result, say, sleep};
#[cfg(unix)]
use crate::support::terminal::Terminal;
use crate::support::{Client, Server, Setup, until};

fn full(setup: Setup) -> Setup {
    setup.setting("management", json!("full"))
}

fn servers(client: &mut Client, arguments: serde_json::Value) -> crate::support::Message {
    client.execute_with("mcpzip__servers", &arguments.to_string())
}

/// Approves the start and the tools of a server that an agent has added, as a person at a terminal, if there is one.
#[cfg(unix)]
pub(crate) fn approved(setup: &Setup, server: &str) -> bool {
    let Some(terminal) = Terminal::run(&setup.command(&["approve", server])) else {
        return false;
    };
    terminal.shows("was added by an agent");
    terminal.shows("Start it, and look at its tools? [y/N]");
    terminal.types("y");
    terminal.shows("from now on? [y/N]");
    terminal.types("y");
    terminal.shows("approved: 1");
    true
}

#[cfg(not(unix))]
pub(crate) fn approved(_: &Setup, _: &str) -> bool {
    false
}

/// The text of a fake server's entry.
fn entry_of(setup: &Setup, name: &str) -> serde_json::Value {
    setup.save();
    let config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(setup.config_path()).unwrap()).unwrap();
    config["mcpServers"][name].clone()
}

#[test]
fn what_an_agent_may_do_is_found_and_described_and_the_rest_is_not_there() {
    for (management, there, missing) in [
        (
            "off",
            vec!["read_result"],
            vec!["status", "refresh", "stats", "tail_log", "servers"],
        ),
        (
            "read",
            vec![
                "read_result",
                "status",
                "refresh",
                "stats",
                "tail_log",
                "servers",
            ],
            vec![],
        ),
        ("full", vec!["servers", "tail_log"], vec![]),
    ] {
        let setup = Setup::new()
            .server("a", Server::new().tool("t", [echo()]))
            .setting("management", json!(management));
        let mut client = setup.connect();
        for tool in there {
            let described = client.call(
                "describe_tool",
                &json!({ "name": format!("mcpzip__{tool}") }).to_string(),
            );
            assert!(
                described.text().contains("inputSchema"),
                "{management} {tool}"
            );
        }
        for tool in missing {
            let told = client
                .execute_with(&format!("mcpzip__{tool}"), r#"{"server":"a"}"#)
                .tool_error();
            assert!(
                told.contains("there is no tool"),
                "{management} {tool}: {told}"
            );
        }
        let found = client.search("disable an MCP server in the configuration");
        assert_eq!(
            found.contains("mcpzip__servers("),
            management != "off",
            "{found}"
        );
        assert_eq!(
            found.contains("\"disable\""),
            management == "full",
            "{found}"
        );
        if management == "off" {
            let told = client.call("proxy_status", "{}").tool_error();
            assert!(told.contains("management"), "{told}");
        }
        client.finish();
    }
}

#[test]
fn reading_is_all_that_is_allowed_unless_the_user_says_more() {
    let setup = Setup::new().server_with(
        "a",
        Server::new().tool("t", [echo()]),
        json!({ "env": { "API_TOKEN": "hunter2-secret" }, "disabled": false }),
    );
    let mut client = setup.connect();
    let listed = servers(&mut client, json!({})).text();
    assert!(
        listed.starts_with("a: fake_server") && listed.ends_with(" with 2 arguments"),
        "{listed}"
    );
    assert!(!listed.contains("hunter2"), "{listed}");
    let before = std::fs::read_to_string(setup.config_path()).unwrap();
    for operation in ["add", "remove", "update", "enable", "disable"] {
        let told = servers(
            &mut client,
            json!({ "operation": operation, "names": ["a"] }),
        )
        .tool_error();
        assert!(told.contains("operation"), "{told}");
    }
    assert_eq!(
        std::fs::read_to_string(setup.config_path()).unwrap(),
        before
    );
    client.finish();
}

#[test]
fn servers_are_added_changed_and_removed_and_the_file_keeps_what_it_says() {
    let other = Setup::new()
        .server("b", Server::new().tool("greet", [answer("hello")]))
        .server("c", Server::new().tool("t", [echo()]));
    let (mut b, mut c) = (entry_of(&other, "b"), entry_of(&other, "c"));
    // Variables are the test's own; an agent may set plain ones.
    for entry in [&mut b, &mut c] {
        entry
            .as_object_mut()
            .unwrap()
            .retain(|key, _| key != "type");
    }
    let setup = full(Setup::new().server("a", Server::new().tool("t", [echo()])));
    let mut client = setup.connect();
    client.execute("a__t");
    let written = format!(
        "// my servers\n{{\n  \"mcpServers\": {{\n    // first\n    \"a\": {}, // keep\n  }},\n  \"management\": \"full\", // mine\n}}\n",
        entry_of(&setup, "a")
    );
    setup.save_text(&written);
    until("the edit to be seen", || {
        client.stderr().contains("read again").then_some(())
    });

    let added = servers(
        &mut client,
        json!({ "operation": "add", "servers": { "b": b, "c": c } }),
    )
    .text();
    assert_eq!(
        added,
        "b: unapproved, 0 tools; waits for a person's approval (`mcpzip approve b`)\nc: unapproved, 0 tools; waits for a person's approval (`mcpzip approve c`)"
    );
    assert_eq!((setup.home().starts("b"), setup.home().starts("c")), (0, 0));
    let refused = client.execute("b__greet").tool_error();
    assert!(!refused.contains("hello"), "{refused}");
    if !approved(&setup, "b") {
        return;
    }
    until("the approval is seen", || {
        let answer = client.execute("b__greet");
        (!answer.is_tool_error()).then_some(())
    });
    assert_eq!(client.execute("b__greet").text(), "hello");
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    assert!(
        text.starts_with("// my servers\n{\n  \"mcpServers\": {\n    // first\n    \"a\": "),
        "{text}"
    );
    assert!(
        text.ends_with("    },\n  },\n  \"management\": \"full\", // mine\n}\n"),
        "{text}"
    );

    // A person has approved what runs, not when it is given up.
    let changed = servers(
        &mut client,
        json!({ "operation": "update", "servers": { "b": { "timeout": "7s", "description": "polite" } } }),
    );
    assert_eq!(changed.text(), "b: ready, 1 tool");
    let off = servers(
        &mut client,
        json!({ "operation": "disable", "names": ["b", "c"] }),
    )
    .text();
    assert_eq!(off, "b: disabled, 0 tools\nc: disabled, 0 tools");
    assert!(client.execute("b__greet").tool_error().contains("disabled"));
    let on = servers(
        &mut client,
        json!({ "operation": "enable", "names": ["b"] }),
    )
    .text();
    assert_eq!(on, "b: ready, 1 tool");
    let removed = servers(
        &mut client,
        json!({ "operation": "remove", "names": ["b", "c"] }),
    )
    .text();
    assert_eq!(removed, "b: removed\nc: removed");
    assert_eq!(
        std::fs::read_to_string(setup.config_path()).unwrap(),
        written,
        "something of the edits stayed"
    );
    assert_eq!(
        client.execute("a__t").value()["structuredContent"]["name"],
        "t",
        "the others go on"
    );
    client.finish();
}

#[test]
fn an_edit_that_cannot_work_changes_nothing_and_says_why() {
    let setup = full(Setup::new().server("a", Server::new().tool("t", [echo()])));
    let mut client = setup.connect();
    let before = std::fs::read_to_string(setup.config_path()).unwrap();
    for (arguments, reason) in [
        (
            json!({ "operation": "add", "servers": { "x": { "command": "x" }, "y": {} } }),
            "`y`: has neither",
        ),
        (
            json!({ "operation": "add", "servers": { "x__y": { "command": "x" } } }),
            "`x__y`",
        ),
        (
            json!({ "operation": "add", "servers": { "mcpzip": { "command": "x" } } }),
            "reserved",
        ),
        (
            json!({ "operation": "add", "servers": { "a": { "command": "x" } } }),
            "there is a server",
        ),
        (
            json!({ "operation": "add", "servers": { "x": { "command": "x", "env": { "T": "${HIDDEN}" } } } }),
            "a person",
        ),
        (
            json!({ "operation": "add", "servers": { "x": { "command": "x", "trust": "all" } } }),
            "`trust`",
        ),
        (
            json!({ "operation": "update", "servers": { "a": { "command": "evil" } } }),
            "credentials",
        ),
        (
            json!({ "operation": "remove", "names": ["nobody"] }),
            "there is no server",
        ),
        (json!({ "operation": "remove" }), "names"),
        (json!({ "operation": "update", "servers": {} }), "1 to 50"),
    ] {
        let told = servers(&mut client, arguments.clone()).tool_error();
        assert!(told.contains(reason), "{arguments}: {told}");
        assert_eq!(
            std::fs::read_to_string(setup.config_path()).unwrap(),
            before,
            "{arguments}"
        );
    }
    client.finish();
}

#[test]
fn the_end_of_a_log_is_shown_without_secrets() {
    let lines: Vec<_> = (0..80)
        .map(|number| say(&format!("line {number}")))
        .collect();
    let server = Server::new().at_start(lines).tool(
        "t",
        [say("the key is hunter2-secret, take care"), answer("done")],
    );
    let setup = Setup::new()
        .server_with(
            "a",
            server,
            json!({ "env": { "API_TOKEN": "hunter2-secret" } }),
        )
        .server("quiet", Server::new().tool("t", [echo()]))
        .server(
            "broken",
            Server::new().at_start([say("no such database"), exit(3)]),
        );
    let mut client = setup.connect();
    client.execute("a__t");
    client.execute("quiet__t");
    let mut tail = |arguments: serde_json::Value| {
        client.execute_with("mcpzip__tail_log", &arguments.to_string())
    };
    let shown = until("the line in the log", || {
        Some(tail(json!({ "server": "a", "lines": 3 })).text())
            .filter(|text| text.contains("take care"))
    });
    assert_eq!(
        shown.lines().collect::<Vec<_>>(),
        ["line 78", "line 79", "the key is ***, take care"]
    );
    assert_eq!(tail(json!({ "server": "a" })).text().lines().count(), 50);
    assert_eq!(
        tail(json!({ "server": "a", "lines": 500 }))
            .text()
            .lines()
            .count(),
        81
    );
    assert!(
        tail(json!({ "server": "quiet" }))
            .text()
            .contains("nothing")
    );
    assert!(
        tail(json!({ "server": "broken" }))
            .text()
            .contains("no such database")
    );
    for wrong in [
        json!({ "server": "../config" }),
        json!({ "server": "nobody" }),
        json!({ "server": "a", "lines": 501 }),
    ] {
        tail(wrong).tool_error();
    }
    client.finish();
}

#[test]
fn calls_are_counted_across_runs_and_processes() {
    let setup = Setup::new().server(
        "a",
        Server::new()
            .tool("good", [answer("fine")])
            .tool("slow", [sleep(60), answer("late")])
            .tool("bad", [result(r#"{"content":[],"isError":true}"#)])
            .tool("refused", [error(r#"{"code":-32000,"message":"no"}"#)]),
    );
    let (mut one, mut other) = (setup.connect(), setup.connect());
    for client in [&mut one, &mut other] {
        client.execute_with("a__good", r#"{"x":12}"#);
        client.execute("a__slow");
        client.execute("a__bad").tool_error();
        client.execute("a__refused").tool_error();
        // What never reached a server is no call.
        client.execute("a__nothing").tool_error();
    }
    other.finish();
    let shown = one.execute("mcpzip__stats").text();
    let row = |tool: &str| -> Vec<String> {
        let line = shown
            .lines()
            .find(|line| line.starts_with(&format!("a__{tool} ")));
        line.unwrap_or_else(|| panic!("no {tool}: {shown}"))
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(row("good")[1..3], ["2", "0"]);
    assert_eq!(row("bad")[1..3], ["2", "2"]);
    assert_eq!(row("refused")[1..3], ["2", "2"]);
    assert!(row("slow")[3].parse::<u64>().unwrap() >= 55, "{shown}");
    assert!(!shown.contains("nothing"), "{shown}");
    one.finish();
    let kept = setup.run(&["stats", "--json"]).code(0).json();
    let good = kept["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["tool"] == "good")
        .unwrap()
        .clone();
    assert_eq!(
        (&good["calls"], &good["errors"], &good["sent_bytes"]),
        (&json!(2), &json!(0), &json!(16))
    );
    let table = setup.run(&["stats", "--since", "1d"]).code(0);
    assert!(table.stdout.contains("slow"), "{table}");
}

#[test]
fn an_agent_moves_no_server_that_a_person_gave_credentials_or_bounds() {
    let held = json!({
        "helped": { "url": "https://a.example/mcp", "headersHelper": "printf '{}'" },
        "commanded": { "url": "https://a.example/mcp", "headers_command": ["printf", "{}"] },
        "certified": { "url": "https://a.example/mcp", "ca_file": "/dev/null" },
        "proxied": { "url": "https://a.example/mcp", "proxy": "none" },
        "logged": { "url": "https://a.example/mcp", "oauth": { "client_id": "me" } },
        "odd": { "url": "https://a.example/mcp", "a_key_of_tomorrow": 1 },
        "quiet": { "url": "https://a.example/mcp", "expose": { "prompts": false } },
    });
    let mut setup = full(Setup::new().server("a", Server::new().tool("t", [echo()])));
    for (name, entry) in held.as_object().unwrap() {
        setup = setup.entry(name, &entry.to_string());
    }
    let mut client = setup.connect();
    let before = std::fs::read_to_string(setup.config_path()).unwrap();
    for name in held.as_object().unwrap().keys() {
        for member in [
            json!({ "url": "https://evil.example/mcp" }),
            json!({ "headers": { "X-A": "b" } }),
            json!({ "url": null, "command": "evil" }),
        ] {
            let told = servers(
                &mut client,
                json!({ "operation": "update", "servers": { name.as_str(): member } }),
            )
            .tool_error();
            assert!(told.contains("only a person"), "{name}: {told}");
        }
    }
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    assert_eq!(text, before);
    client.finish();
}

#[test]
fn an_agent_switches_on_only_what_an_agent_switched_off() {
    let script = || Server::new().tool("t", [echo()]);
    let setup = full(
        Setup::new()
            .server_with("off", script(), json!({ "disabled": true }))
            .server("on", script()),
    );
    let mut client = setup.connect();
    let before = std::fs::read_to_string(setup.config_path()).unwrap();
    let mut refused = |arguments: serde_json::Value| {
        let told = servers(&mut client, arguments.clone()).tool_error();
        assert!(told.contains("a person"), "{arguments}: {told}");
        let text = std::fs::read_to_string(setup.config_path()).unwrap();
        assert_eq!(text, before, "{arguments}");
    };
    let same = entry_of(&setup, "off");
    refused(json!({ "operation": "enable", "names": ["off"] }));
    refused(json!({ "operation": "update", "servers": { "off": { "disabled": null } } }));
    // Neither is it had by another way: taken out and put in again.
    refused(json!({ "operation": "remove", "names": ["off"] }));
    // Or under another name, with an argument more, by a shell.
    let args = same["args"].clone();
    let more = json!([args[0], args[1], "--more"]);
    let line = format!(
        "{} {} x",
        same["command"].as_str().unwrap(),
        args[0].as_str().unwrap()
    );
    for entry in [
        json!({ "command": same["command"], "args": args }),
        json!({ "command": same["command"], "args": more }),
        json!({ "command": "sh", "args": ["-c", line] }),
    ] {
        refused(json!({ "operation": "add", "servers": { "other": entry } }));
    }
    let update = json!({ "command": same["command"], "args": args });
    // `on` has a variable of the test's.
    refused(json!({ "operation": "update", "servers": { "on": update } }));
    let done = |client: &mut crate::support::Client, operation: &str| {
        servers(client, json!({ "operation": operation, "names": ["on"] })).text()
    };
    assert_eq!(done(&mut client, "disable"), "on: disabled, 0 tools");
    assert_eq!(done(&mut client, "enable"), "on: ready, 1 tool");
    // Switched off by the agent, then on and off again by a person: it is the person's.
    done(&mut client, "disable");
    let off = std::fs::read_to_string(setup.config_path()).unwrap();
    setup.save_text(&before);
    until("the edit to be seen", || {
        let listed = servers(&mut client, json!({ "operation": "list" })).text();
        listed
            .ends_with("on: fake_server with 2 arguments")
            .then_some(())
    });
    setup.save_text(&off);
    until("the edit to be seen", || {
        let listed = servers(&mut client, json!({ "operation": "list" })).text();
        listed.ends_with("disabled").then_some(())
    });
    let told = servers(
        &mut client,
        json!({ "operation": "enable", "names": ["on"] }),
    )
    .tool_error();
    assert!(told.contains("a person"), "{told}");
    client.finish();
}

#[test]
fn what_a_person_restricted_runs_under_no_other_name() {
    let setup = full(
        Setup::new()
            .entry("pinned", r#"{"command":"npx","args":["-y","@a/pkg@1.0.0","stdio"],"trust":"pin","disabled":true}"#)
            .entry("web", r#"{"url":"https://a.example/mcp","tools":{"deny":["rm"]},"disabled":true}"#),
    );
    let mut client = setup.connect();
    let before = std::fs::read_to_string(setup.config_path()).unwrap();
    for entry in [
        json!({ "command": "npx", "args": ["-y", "@a/pkg@1.0.0", "stdio"] }),
        json!({ "command": "/usr/bin/npx", "args": ["@a/pkg@latest"] }),
        json!({ "command": "bunx", "args": ["--package=@A/pkg"] }),
        json!({ "command": "npx", "args": ["mcp-remote", "https://a.example:443/mcp/"] }),
        json!({ "url": "https://A.example/mcp/?x=1" }),
        json!({ "url": "https://u@a.example./other" }),
    ] {
        let told = servers(
            &mut client,
            json!({ "operation": "add", "servers": { "other": entry } }),
        )
        .tool_error();
        assert!(told.contains("a person"), "{entry}: {told}");
        let text = std::fs::read_to_string(setup.config_path()).unwrap();
        assert_eq!(text, before, "{entry}");
    }
    client.finish();
}

#[test]
fn no_other_spelling_runs_what_a_person_restricted() {
    let setup = full(
        Setup::new()
            .variable("HOST", "b.example")
            .entry(
                "local",
                r#"{"url":"http://localhost:9123/mcp","disabled":true}"#,
            )
            .entry(
                "named",
                r#"{"url":"https://a.example/mcp","disabled":true}"#,
            )
            .entry(
                "variable",
                r#"{"url":"https://${HOST}/mcp","disabled":true}"#,
            )
            .entry(
                "program",
                r#"{"command":"uvx","args":["mcp-server_git"],"disabled":true}"#,
            ),
    );
    let mut client = setup.connect();
    let before = std::fs::read_to_string(setup.config_path()).unwrap();
    let urls = [
        "http://127.0.0.1:9123/mcp",
        "http://127.1.2.3:9123/",
        "http://[::1]:9123/mcp",
        "http://[::ffff:127.0.0.1]:9123/mcp",
        "http://2130706433:9123/mcp",
        "http://0:9123/mcp",
        "http:\\\\LOCALHOST.:9123/mcp",
        "https:a.example/mcp",
        "https://%61.example:8443/mcp",
        "https://x,@a.example/mcp",
        "https://b.example/mcp",
    ];
    let commands = [
        ("mcp-proxy", json!(["127.0.0.1:9123"])),
        ("uvx", json!(["mcp.x", "${HOME}/x"])),
        ("python3", json!(["-m", "mcp_server_git"])),
        ("python3", json!(["/opt/mcp_server_git/main.py"])),
        ("npx", json!(["https://npm.example/%6dcp-server-git"])),
        ("env", json!(["x"])),
        ("/bin/dash", json!(["-c", "uv''x mcp-ser''ver-git"])),
        ("timeout", json!(["9", "sh", "x"])),
        ("python3", json!(["-c", "print(1)"])),
    ];
    let urls = urls.iter().map(|url| json!({ "url": url }));
    let commands = commands
        .iter()
        .map(|(command, args)| json!({ "command": command, "args": args }));
    for entry in urls.chain(commands) {
        let told = servers(
            &mut client,
            json!({ "operation": "add", "servers": { "other": entry } }),
        )
        .tool_error();
        assert!(
            told.contains("which a person has restricted"),
            "{entry}: {told}"
        );
        let text = std::fs::read_to_string(setup.config_path()).unwrap();
        assert_eq!(text, before, "{entry}");
    }
    // A neighbour is none of them.
    let other =
        json!({ "operation": "add", "servers": { "other": { "url": "http://127.0.0.1:9/mcp" } } });
    assert!(servers(&mut client, other).text().starts_with("other: "));
    client.finish();
}
