//! What `mcpzip serve` says to its client: handshakes of all revisions, and requests of both eras on one pipe.

use serde_json::{Value, json};

use crate::support::script::{answer, await_cancel, hang, line, sleep};
use crate::support::{Server, Setup, until};

#[test]
fn each_revision_with_a_handshake_is_served_and_an_unknown_one_gets_the_newest() {
    let setup = Setup::new().server("a", Server::new().tool("t", [answer("done")]));
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut client = setup.start();
        let introduction = client.shake_hands(asked).value();
        assert_eq!(introduction["protocolVersion"], agreed, "asked for {asked}");
        assert_eq!(introduction["serverInfo"]["name"], "mcpzip");
        assert!(introduction["capabilities"]["tools"].is_object());
        assert!(
            introduction["instructions"]
                .as_str()
                .unwrap()
                .starts_with('a'),
            "{introduction}"
        );
        assert_eq!(client.execute("a__t").text(), "done", "asked for {asked}");
        client.finish();
    }
}

#[test]
fn the_handshake_and_the_list_are_answered_before_any_server_is_up() {
    let setup = Setup::new().server("slow", Server::new().at_start([hang()]));
    let mut client = setup.connect();
    let tools = client.ask("tools/list", "{}").value();
    let names: Vec<&str> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["search_tools", "describe_tool", "execute_tool"]);
}

#[test]
fn the_list_of_tools_depends_on_the_configuration_alone() {
    let tool = || Server::new().tool("t", [answer("done")]);
    let one = Setup::new().server("a", tool());
    let mut lists = Vec::new();
    // The second client finds a catalog on the disk.
    for version in ["2024-11-05", "2025-11-25"] {
        let mut client = one.start();
        client.shake_hands(version);
        lists.push(client.ask("tools/list", "{}").result().to_owned());
        client.search("anything");
        lists.push(client.ask("tools/list", "{}").result().to_owned());
        client.finish();
    }
    assert!(lists.iter().all(|list| *list == lists[0]), "{lists:#?}");
    let mut client = Setup::new().start();
    client.shake_hands("2025-06-18");
    let none = client.ask("tools/list", "{}").result().to_owned();
    assert_eq!(none, lists[0].replacen(" Servers: a.", "", 1));
    client.finish();
}

#[test]
fn the_list_of_tools_names_the_servers_that_the_client_may_see_and_stays() {
    let tool = || Server::new().tool("t", [answer("done")]);
    let setup = Setup::new()
        .server("here", tool())
        .server_with("off", tool(), json!({ "disabled": true }))
        .server_with("elsewhere", tool(), json!({ "projects": ["/nowhere"] }));
    let mut client = setup.connect();
    let list = client.ask("tools/list", "{}").result().to_owned();
    assert!(list.contains(" Servers: here."), "{list}");
    let setup = setup.server("off", tool());
    setup.save();
    until("the other server", || {
        client.search("t").contains("off__t").then_some(())
    });
    assert_eq!(client.ask("tools/list", "{}").result(), list);
    client.finish();
    let mut client = setup.connect();
    let list = client.ask("tools/list", "{}").result().to_owned();
    assert!(list.contains(" Servers: here, off."), "{list}");
    client.finish();
}

#[test]
fn both_eras_are_served_in_turn_on_one_pipe() {
    let mut client = Setup::new()
        .server("a", Server::new().tool("t", [answer("done")]))
        .start();
    let call = r#""name":"execute_tool","arguments":{"name":"a__t"}"#;
    for _ in 0..2 {
        let discovered = client.ask_modern("server/discover", "").value();
        assert_eq!(discovered["supportedVersions"], json!(["2026-07-28"]));
        assert_eq!(discovered["resultType"], "complete");
        assert_eq!(discovered["cacheScope"], "private");
        assert!(discovered["ttlMs"].as_u64().unwrap() >= 60_000);
        let listed = client.ask_modern("tools/list", "").value();
        assert_eq!(listed["resultType"], "complete");
        assert_eq!(listed["tools"].as_array().unwrap().len(), 3);
        assert_eq!(client.ask_modern("tools/call", call).text(), "done");

        assert_eq!(
            client.shake_hands("2025-06-18").value()["protocolVersion"],
            "2025-06-18"
        );
        let legacy = client.ask("tools/call", &format!("{{{call}}}"));
        assert_eq!(legacy.value().get("resultType"), None);
        assert_eq!(legacy.text(), "done");
    }
    client.finish();
}

#[test]
fn a_modern_request_must_say_its_revision_and_capabilities() {
    let mut client = Setup::new().start();
    let meta = |version: &str, more: &str| {
        format!(r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}"{more}}}}}"#)
    };
    assert_eq!(
        client
            .ask("tools/list", &meta("2026-07-28", ""))
            .error_code(),
        -32602
    );
    assert_eq!(client.ask("server/discover", "{}").error_code(), -32602);
    let capabilities = r#","io.modelcontextprotocol/clientCapabilities":{}"#;
    for version in ["2025-11-25", "2027-01-01", "nonsense"] {
        let error = client
            .ask("tools/list", &meta(version, capabilities))
            .error();
        assert_eq!(error["code"], -32022);
        assert_eq!(
            error["data"],
            json!({ "supported": ["2026-07-28"], "requested": version })
        );
    }
    assert_eq!(
        client
            .ask("tools/list", &meta("2026-07-28", capabilities))
            .value()["tools"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    client.finish();
}

#[test]
fn ping_is_answered_where_the_revision_has_it() {
    let mut client = Setup::new().connect();
    assert_eq!(client.ask("ping", "{}").result(), "{}");
    client.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    assert_eq!(client.answer_to(r#""p""#).result(), "{}");
    assert_eq!(client.ask_modern("ping", "").error_code(), -32601);
    client.finish();
}

#[test]
fn an_id_comes_back_as_it_was_written() {
    let mut client = Setup::new().connect();
    for id in [
        r#""text \u00e9""#,
        "-5",
        "7.0",
        "1e3",
        "99999999999999999999",
        "0",
        r#""""#,
    ] {
        client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
        assert_eq!(client.answer_to(id).result(), "{}", "{id}");
    }
    client.finish();
}

#[test]
fn a_batch_is_answered_as_an_array_where_the_revision_has_batches() {
    let mut client = Setup::new().start();
    client.shake_hands("2025-03-26");
    client.send(
        r#"[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"},7,{"jsonrpc":"2.0","id":"b","method":"tools/list"}]"#,
    );
    let line = client.next();
    let answers: Vec<Value> = serde_json::from_str(line.as_str()).unwrap();
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(answers.len(), 3, "{answers:#?}");
    assert!(
        ids.contains(&&json!("a")) && ids.contains(&&json!("b")) && ids.contains(&&Value::Null),
        "{ids:?}"
    );
    assert_eq!(client.ask("ping", "{}").result(), "{}");
    client.finish();
}

#[test]
fn answers_come_as_they_are_ready() {
    let server = Server::new()
        .tool("slow", [sleep(400), answer("slow")])
        .tool("fast", [answer("fast")]);
    let mut client = Setup::new().server("a", server).connect();
    client.execute("a__fast");
    let slow = client.begin_execute("a__slow");
    let fast = client.begin_execute("a__fast");
    assert_eq!(client.next().id(), fast.to_string());
    assert_eq!(client.next().id(), slow.to_string());
    client.finish();
}

#[test]
fn a_cancelled_call_is_cancelled_at_its_server_and_not_answered() {
    let server = Server::new()
        .tool("t", [await_cancel(), answer("late")])
        .tool("u", [answer("done")]);
    let mut client = Setup::new().server("a", server).connect();
    let id = client.begin_execute("a__t");
    until("the call to arrive", || {
        (client.home().count("a", "tools/call") == 1).then_some(())
    });
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"enough"}}}}"#
    ));
    until("the cancellation to arrive", || {
        (client.home().count("a", "heard ") == 1).then_some(())
    });
    assert_eq!(client.home().count("a", "never heard"), 0);
    assert_eq!(client.execute("a__u").text(), "done");
    assert!(client.left_over().is_empty(), "{:?}", client.left_over());
    client.finish();
}

#[test]
fn progress_comes_under_the_token_of_the_client() {
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1e0,"later":"x"}}"#;
    let server = Server::new().tool("t", [line(progress), answer("done")]);
    let mut client = Setup::new().server("a", server).connect();
    for token in [r#""tok\u00e9n""#, "17"] {
        let params = format!(
            r#"{{"name":"execute_tool","arguments":{{"name":"a__t"}},"_meta":{{"progressToken":{token}}}}}"#
        );
        let id = client.request("tools/call", &params);
        let notified = client.expect("progress", |message| {
            message.is_notification("notifications/progress")
        });
        assert_eq!(
            notified.params(),
            format!(r#"{{"progressToken":{token},"progress":1e0,"later":"x"}}"#)
        );
        assert_eq!(client.answer(id).text(), "done");
    }
    let id = client.begin_execute("a__t");
    assert_eq!(client.answer(id).text(), "done");
    assert!(
        client.left_over().is_empty(),
        "progress that nobody asked for: {:?}",
        client.left_over()
    );
    client.finish();
}

#[test]
fn what_was_asked_just_before_the_end_of_input_is_answered() {
    let server = Server::new().tool("t", [sleep(300), answer("done")]);
    let setup = Setup::new().server("a", server);
    let mut client = setup.start();
    let introduction = client.request(
        "initialize",
        r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#,
    );
    let listed = client.request("tools/list", "{}");
    let executed = client.begin_execute("a__t");
    let searched = client.begin("search_tools", r#"{"query":"does t"}"#);
    client.close_stdin();
    for id in [introduction, listed, searched] {
        client.answer(id).result();
    }
    assert_eq!(client.answer(executed).text(), "done");
    assert!(client.wait().success());
}

#[test]
fn stdout_carries_messages_only() {
    let server = Server::new().tool("t", [line("noise on stdout"), answer("done")]);
    let setup = Setup::new()
        .server("a", server)
        .entry("b", r#"{"command":"/no/such/program"}"#)
        .log_level("trace");
    let mut client = setup.connect();
    client.execute("a__t");
    client.search("anything");
    client.send("nonsense");
    client.ask("tools/list", "{}");
    client.close_stdin();
    client.wait();
    for line in client.stdout().lines() {
        let message: Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("no message: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
    }
}

#[test]
fn a_subscription_is_acknowledged_and_ends_with_the_process() {
    let mut client = Setup::new().start();
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    client.request(
        "subscriptions/listen",
        &format!(r#"{{"notifications":{{"toolsListChanged":true}},{meta}}}"#),
    );
    client.expect("the acknowledgement", |message| {
        message.is_notification("notifications/subscriptions/acknowledged")
    });
    assert_eq!(
        client.ask_modern("tools/list", "").value()["resultType"],
        "complete"
    );
    client.finish();
}
