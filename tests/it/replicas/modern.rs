//! Clients of the modern era, whose requests stand alone: a call that waits for answers is at one replica, and its client comes to any.

use serde_json::Value;

use super::cluster::Cluster;
use super::sessions::configure;
use crate::support::gateway::Gateway;

/// The call of `fake__ask`, with the members `more` in its parameters.
fn ask(gateway: &Gateway, more: &str) -> Value {
    let members = format!(r#""name":"execute_tool","arguments":{{"name":"fake__ask"}}{more}"#);
    let call = gateway.modern_with("test", r#"{"elicitation":{}}"#, "tools/call", &members);
    let answer = call.send();
    let data = answer
        .body
        .lines()
        .find_map(|line| line.strip_prefix("data: {"));
    let json = data.map_or_else(|| answer.body.clone(), |rest| format!("{{{rest}"));
    serde_json::from_str(&json).unwrap_or_else(|_| panic!("{answer:?}"))
}

/// The members that answer the question of `asked`.
fn answered(asked: &Value) -> String {
    let state = &asked["result"]["requestState"];
    let answer = r#"{"action":"accept","content":{"name":"x"}}"#;
    format!(r#","requestState":{state},"inputResponses":{{"question-1":{answer}}}"#)
}

#[test]
fn a_request_that_goes_on_at_another_replica_reaches_its_call_once() {
    let Some(mut cluster) = Cluster::start(3, &[], configure) else {
        return;
    };
    let asked = ask(cluster.at(0), "");
    let more = answered(&asked);
    let done = ask(cluster.at(1), &more);
    assert_eq!(done["result"]["content"][0]["text"], "asked at 0", "{done}");
    for number in 0..3 {
        let again = ask(cluster.at(number), &more);
        let text = again["error"]["message"].to_string();
        assert!(text.contains("unknown or has expired"), "{again}");
    }
    for _ in 0..6 {
        let asked = ask(&cluster.balanced(), "");
        let done = ask(&cluster.balanced(), &answered(&asked));
        let text = done["result"]["content"][0]["text"].to_string();
        assert!(text.contains("asked at"), "{done}");
    }
    // The replica with the call is killed: no other one starts it again.
    let asked = ask(cluster.at(2), "");
    cluster.replicas[2].kill();
    let runs = |cluster: &Cluster| -> usize {
        let count = |at: usize| cluster.setup(at).home().count("fake", "tools/call");
        (0..2).map(count).sum()
    };
    let before = runs(&cluster);
    let lost = ask(cluster.at(1), &answered(&asked));
    let text = lost["error"]["message"].to_string();
    assert!(text.contains("unknown or has expired"), "{lost}");
    assert_eq!(runs(&cluster), before);
}
