//! Clients with a handshake: each message comes to another replica than the one before.

use std::thread;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::cluster::{Cluster, form, settle};
use crate::support::gateway::Gateway;
use crate::support::script::{answer, ask, await_cancel, change_tools, line, note, result, sleep};
use crate::support::{Message, Server, Setup, until};

const UPDATED: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test:a"}}"#;

/// A server whose answers name its replica.
pub(super) fn configure(setup: Setup, number: usize) -> Setup {
    let server = Server::new()
        .tool("who", [answer(&format!("replica {number}"))])
        .tool(
            "ask",
            [
                ask("q", "elicitation/create", &form()),
                note("answered $answer"),
                answer(&format!("asked at {number}")),
            ],
        )
        .tool(
            "hang",
            [note("hanging"), await_cancel(), note("was cancelled")],
        )
        .tool(
            "slow",
            [
                note("slow began"),
                sleep(4000),
                answer(&format!("slow at {number}")),
            ],
        )
        .tool("touch", [line(UPDATED), answer("touched")])
        .resource("test:a", [result(r#"{"contents":[]}"#)])
        .capabilities(r#"{"tools":{},"resources":{"subscribe":true},"logging":{}}"#)
        .on("resources/subscribe", [result("{}")])
        .on("resources/unsubscribe", [result("{}")])
        .on("logging/setLevel", [result("{}")]);
    setup.server("fake", server)
}

fn start() -> Option<Cluster> {
    Cluster::start(3, &[], configure)
}

#[test]
fn any_replica_answers_any_request_of_a_session() {
    let Some(cluster) = start() else { return };
    let session = cluster
        .at(0)
        .session_of("2025-11-25", &json!({ "elicitation": {} }));
    assert!(session.id().len() <= 128);
    for number in 0..3 {
        let at = session.at(cluster.at(number).address());
        let said = at.execute(10, "fake__who", "").send().message();
        assert_eq!(said.text(), format!("replica {number}"));
    }
    // The balancer sends each one to the next.
    let balanced = session.at(cluster.balanced().address());
    let said: Vec<String> = (0..6)
        .map(|id| {
            balanced
                .execute(id, "fake__who", "")
                .send()
                .message()
                .text()
        })
        .collect();
    for number in 0..3 {
        let own = format!("replica {number}");
        assert_eq!(
            said.iter().filter(|text| **text == own).count(),
            2,
            "{said:?}"
        );
    }
    // An id that no replica gave, or with another key, is unknown.
    let mut foreign = session.id().to_owned();
    foreign.replace_range(40..41, if &foreign[40..41] == "A" { "B" } else { "A" });
    let foreign = session.named(&foreign);
    assert_eq!(foreign.execute(1, "fake__who", "").send().status, 404);
    // Its end is known everywhere.
    assert_eq!(session.at(cluster.at(2).address()).delete().status, 200);
    for number in 0..3 {
        let at = session.at(cluster.at(number).address());
        until("the session to have ended", || {
            (at.execute(20, "fake__who", "").send().status == 404).then_some(())
        });
    }
}

#[test]
fn a_question_and_its_answer_find_their_way() {
    let Some(cluster) = start() else { return };
    let session = cluster
        .at(0)
        .session_of("2025-11-25", &json!({ "elicitation": {} }));
    let mut call = session.execute(1, "fake__ask", "").open();
    // The id of a question, which is a text.
    let asked = |question: &Message| {
        let question: Value = serde_json::from_str(question.as_str()).unwrap();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        question["id"].as_str().unwrap().to_owned()
    };
    let id = asked(&call.message());
    let answer = |id: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "accept", "content": { "name": "x" } } }).to_string()
    };
    // An answer from another session does not count, nor does an invented id of a question.
    let other = cluster.at(1).session();
    assert_eq!(other.post(&answer(&id)).send().status, 202);
    let at = session.at(cluster.at(1).address());
    let forged = format!("{}0", &id[..id.len() - 1]);
    let forged = if forged == id {
        format!("{}1", &id[..id.len() - 1])
    } else {
        forged
    };
    assert_eq!(at.post(&answer(&forged)).send().status, 202);
    settle();
    assert_eq!(cluster.setup(0).home().count("fake", "answered"), 0);
    assert_eq!(at.post(&answer(&id)).send().status, 202);
    assert_eq!(call.message().text(), "asked at 0");
    // Through the balancer, whose replicas take turns.
    let balanced = session.at(cluster.balanced().address());
    for number in 2..8 {
        let mut call = balanced.execute(number, "fake__ask", "").open();
        let id = asked(&call.message());
        assert_eq!(balanced.post(&answer(&id)).send().status, 202);
        assert!(call.message().text().starts_with("asked at"));
    }
}

#[test]
fn a_call_is_cancelled_from_any_replica() {
    let Some(cluster) = start() else { return };
    let session = cluster.at(0).session();
    let call = session.execute(30, "fake__hang", "").begin();
    cluster.setup(0).home().wait_for("fake", "hanging");
    let at = session.at(cluster.at(2).address());
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":30}}"#;
    assert_eq!(at.post(cancel).send().status, 202);
    cluster.setup(0).home().wait_for("fake", "was cancelled");
    drop(call);
    // An id that is too long for other replicas is refused.
    let id = "x".repeat(2000);
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"ping"}}"#);
    assert_eq!(session.post(&long).send().status, 400);
}

#[test]
fn subscriptions_and_the_stream_belong_to_the_session_not_to_a_replica() {
    let Some(cluster) = start() else { return };
    let session = cluster.at(0).session();
    let at = |number: usize| session.at(cluster.at(number).address());
    let mut stream = at(2).listen();
    let _ = stream.priming_event();
    let subscribed = at(1)
        .request(1, "resources/subscribe", r#"{"uri":"test:a"}"#)
        .send();
    assert_eq!(subscribed.message().result(), "{}");
    settle();
    for number in 0..3 {
        let said = at(number).execute(2, "fake__touch", "").send().message();
        assert_eq!(said.text(), "touched");
        let told = stream.message();
        assert!(
            told.is_notification("notifications/resources/updated"),
            "{told:?}"
        );
    }
    // The newest stream is the one; what came after the last event is sent first.
    let last = stream.last_id().to_owned();
    let mut second = at(1).resume(&last).open();
    let _ = second.priming_event();
    assert!(stream.event().is_none());
    settle();
    let _ = at(0).execute(3, "fake__touch", "").send();
    assert!(
        second
            .message()
            .is_notification("notifications/resources/updated")
    );
    let unsubscribed = at(0)
        .request(4, "resources/unsubscribe", r#"{"uri":"test:a"}"#)
        .send();
    assert_eq!(unsubscribed.message().result(), "{}");
    settle();
    let _ = at(1).execute(5, "fake__touch", "").send();
    // A level is known everywhere, too.
    let level = at(2)
        .request(6, "logging/setLevel", r#"{"level":"error"}"#)
        .send();
    assert_eq!(level.message().result(), "{}");
    settle();
    // The level alone is left, and sealed: addresses of resources can have secrets in them.
    let known = "select count(*), max(position('error' in encode(body, 'escape'))), max(octet_length(body)) < 64 from session";
    assert_eq!(cluster.database.run(known), "1|0|t");
}

#[test]
fn a_lost_stream_is_resumed_at_another_replica() {
    let Some(mut cluster) = start() else { return };
    let session = cluster.at(1).session();
    let address = cluster.at(2).address();
    let mut call = session.execute(70, "fake__slow", "").open();
    let id = call.priming_event();
    drop(call);
    // Its replica lives, and is asked.
    let mut resumed = session.at(address).resume(&id).open();
    assert_eq!(resumed.message().text(), "slow at 1");
    // Its replica is killed: the client gets an error that says that the call may have acted, and nothing runs again.
    let mut call = session.execute(71, "fake__slow", "").open();
    let id = call.priming_event();
    cluster.replicas[1].kill();
    drop(call);
    let mut resumed = session.at(address).resume(&id).open();
    let lost = resumed.message();
    assert_eq!(lost.id(), "71");
    assert!(
        lost.error().to_string().contains("may have acted"),
        "{lost:?}"
    );
    let runs = [0, 1, 2].map(|at| cluster.setup(at).home().count("fake", "slow began"));
    assert_eq!(runs, [0, 2, 0]);
    // The session goes on.
    let said = session.at(address).execute(72, "fake__who", "").send();
    assert_eq!(said.message().text(), "replica 2");
}

#[test]
fn a_replica_that_stops_loses_nothing() {
    let Some(mut cluster) = start() else { return };
    let session = cluster.at(1).session();
    let elsewhere = session.at(cluster.at(2).address());
    let mut stream = session.listen();
    let _ = stream.priming_event();
    let mut gone = session.execute(1, "fake__slow", "").open();
    let id = gone.priming_event();
    drop(gone);
    let call = session.execute(2, "fake__slow", "");
    let call = thread::spawn(move || call.send());
    cluster.setup(1).home().wait_for("fake", r#""id":2"#);
    let mut stopped = cluster.replicas[1].gateway.take().unwrap();
    stopped.process().signal(Signal::TERM);
    until("the balancer to be told", || {
        (stopped.call("GET", "/readyz").send().status == 503).then_some(())
    });
    // It still serves what comes before the balancer has noticed.
    let said = session.execute(3, "fake__who", "").send();
    assert_eq!(said.message().text(), "replica 1");
    // The stream ends with the time after which the client comes back, and the call is answered.
    assert!(stream.event().is_none());
    let answered = call.join().unwrap();
    assert!(answered.body.contains("slow at 1"), "{answered:?}");
    assert_eq!(stopped.process().wait().code(), Some(0));
    // The answer whose client was gone is kept for the next replica.
    let mut resumed = elsewhere.resume(&id).open();
    assert_eq!(resumed.message().text(), "slow at 1");
}

#[test]
fn an_answer_that_is_kept_is_sealed() {
    let Some(cluster) = start() else { return };
    let session = cluster.at(1).session();
    let mut call = session.execute(1, "fake__slow", "").open();
    let _ = call.priming_event();
    drop(call);
    let kept =
        "select count(*), count(*) filter (where position('slow'::bytea in body) > 0) from answer";
    until("the answer to be kept", || {
        let counts = cluster.database.run(kept);
        (!counts.starts_with('0')).then(|| assert!(counts.ends_with("|0"), "{counts}"))
    });
}

#[test]
fn without_the_database_what_needs_it_not_goes_on() {
    let Some(mut cluster) = Cluster::start_alone(3, configure) else {
        return;
    };
    let session = cluster.at(0).session();
    let addresses = [0, 1, 2].map(|number| cluster.at(number).address());
    let at = |number: usize| session.at(addresses[number]);
    cluster.stop_database();
    for number in 0..3 {
        let said = at(number).execute(1, "fake__who", "").send();
        assert_eq!(said.message().text(), format!("replica {number}"));
        assert_eq!(cluster.at(number).call("GET", "/readyz").send().status, 200);
    }
    let new = cluster.at(1).session();
    let said = new
        .at(cluster.at(2).address())
        .execute(1, "fake__who", "")
        .send();
    assert_eq!(said.message().text(), "replica 2");
    let refused = at(0)
        .request(2, "resources/subscribe", r#"{"uri":"test:a"}"#)
        .send();
    let text = refused.message().error().to_string();
    assert!(
        text.contains("the store of the gateway does not answer"),
        "{text}"
    );
    assert_eq!(at(1).delete().status, 503);
    cluster.start_database();
    until("the store to be used again", || {
        let answer = at(0)
            .request(3, "resources/subscribe", r#"{"uri":"test:a"}"#)
            .send();
        answer.body.contains(r#""result""#).then_some(())
    });
}

#[test]
fn what_others_send_to_the_path_of_replicas_is_refused() {
    let Some(cluster) = start() else { return };
    let letter = |gateway: &Gateway, seal: &str| {
        let call = gateway.call("POST", "/.mcpzip/replicas").body("letter");
        call.header("Mcpzip-Letter", seal).send().status
    };
    for seal in ["", "1.0", "99999999999999.00"] {
        assert_eq!(letter(cluster.at(0), seal), 404);
    }
    let alone = Setup::new().serve(&[]);
    assert_eq!(letter(&alone, "1.0"), 404);
}

#[test]
fn a_list_that_one_replica_sees_changed_is_listed_again_by_the_others() {
    let configure = |setup: Setup, _| {
        let tool = |name: &str| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
        let (one, other) = (tool("grow"), tool("grown"));
        let server = Server::new()
            .tool("grow", [change_tools(&[&one, &other]), answer("grown")])
            .capabilities(r#"{"tools":{"listChanged":true}}"#);
        setup.server("fake", server)
    };
    let Some(cluster) = Cluster::start(2, &[], configure) else {
        return;
    };
    let listed = |number: usize| cluster.setup(number).home().count("fake", "tools/list");
    until("both to be listed", || {
        (listed(0) > 0 && listed(1) > 0).then_some(())
    });
    let before = listed(1);
    let session = cluster.at(0).session();
    let said = session.execute(1, "fake__grow", "").send().message();
    assert_eq!(said.text(), "grown");
    until("the other replica to list again", || {
        (listed(1) > before).then_some(())
    });
}

/// HTTP+SSE: the stream is at one replica, and messages come to any.
#[test]
fn messages_of_the_oldest_transport_reach_the_replica_with_the_stream() {
    let Some(cluster) = start() else { return };
    let accept = |gateway: &Gateway, path: &str| {
        let call = gateway.call("GET", path);
        call.header("Accept", "text/event-stream")
    };
    let mut stream = accept(cluster.at(0), "/sse").open();
    let endpoint = stream.event().unwrap().data;
    let post = |number: usize, body: &str| {
        let call = cluster.at(number).post(body).to(&endpoint);
        call.send().status
    };
    let params = r#"{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#;
    let hello = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
    assert_eq!(post(1, &hello), 202);
    assert_eq!(stream.message().id(), "1");
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_tool","arguments":{"name":"fake__who"}}}"#;
    assert_eq!(post(2, call), 202);
    assert_eq!(stream.message().text(), "replica 0");
}
