//! Tools that a server runs as tasks only (revision 2025-11-25): called as any other, because mcpzip makes the task and waits.

use serde_json::json;

use crate::support::script::{answer, ask, error, hang, result};
use crate::support::{Server, Setup, until};

const MADE: &str = r#"{"task":{"taskId":"t-1","status":"working","createdAt":"2026-11-26T00:00:00Z","lastUpdatedAt":"2026-11-26T00:00:00Z","ttl":60000}}"#;
const CAPABLE: &str = r#"{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}"#;

fn definition(support: &str) -> String {
    json!({
        "name": "research", "description": "Researches a topic.", "inputSchema": { "type": "object" },
        "execution": { "taskSupport": support }
    })
    .to_string()
}

fn server(capabilities: &str, support: &str) -> Server {
    Server::new()
        .capabilities(capabilities)
        .tool_as("research", &definition(support), [result(MADE)])
        .on("tasks/cancel", [result(MADE)])
}

#[test]
fn a_tool_that_runs_as_a_task_only_is_called_like_any_other() {
    let done = r#"{"content":[{"type":"text","text":"found"}]}"#;
    let setup = Setup::new().server(
        "lab",
        server(CAPABLE, "required").on("tasks/result", [result(done)]),
    );
    let mut client = setup.connect();
    assert_eq!(client.execute("lab__research").text(), "found");
    client.finish();
    let mut client = setup.start_with(&["serve", "--direct"]);
    client.shake_hands("2025-11-25");
    assert_eq!(client.call("lab__research", "{}").text(), "found");
    client.finish();
    let home = setup.home();
    assert_eq!(home.count("lab", r#""task":{"ttl":"#), 2);
    assert_eq!(home.count("lab", r#""taskId":"t-1""#), 2);
    assert_eq!(home.count("lab", "tasks/cancel"), 0);
}

#[test]
fn a_call_is_a_task_only_where_its_server_demands_it() {
    for (capabilities, support) in [
        (r#"{"tools":{}}"#, "required"),
        (CAPABLE, "optional"),
        (CAPABLE, "forbidden"),
    ] {
        let plain = Server::new().capabilities(capabilities).tool_as(
            "research",
            &definition(support),
            [answer("at once")],
        );
        let setup = Setup::new().server("lab", plain);
        let mut client = setup.connect();
        assert_eq!(client.execute("lab__research").text(), "at once");
        client.finish();
        assert_eq!(setup.home().count("lab", r#""task":"#), 0, "{support}");
    }
}

#[test]
fn a_task_that_fails_says_why_and_one_that_nobody_waits_for_is_cancelled() {
    let refusing = server(CAPABLE, "required").on(
        "tasks/result",
        [error(r#"{"code":-32603,"message":"the lab burned down"}"#)],
    );
    let setup = Setup::new().server("lab", refusing);
    let mut client = setup.connect();
    let told = client.execute("lab__research").tool_error();
    assert!(told.contains("the lab burned down"), "{told}");
    client.finish();

    let setup = Setup::new().server(
        "lab",
        server(CAPABLE, "required").on("tasks/result", [hang()]),
    );
    let mut client = setup.connect();
    let id = client.begin_execute("lab__research");
    setup.home().wait_for("lab", "tasks/result");
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    until("the task is cancelled", || {
        (setup.home().count("lab", "tasks/cancel") == 1).then_some(())
    });
    client.finish();
}

#[test]
fn a_question_of_a_task_comes_back_to_its_call_without_the_servers_id() {
    let question = r#"{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}"#;
    let done = r#"{"content":[{"type":"text","text":"found"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}}"#;
    let asking = server(CAPABLE, "required").on(
        "tasks/result",
        [ask("q", "elicitation/create", question), result(done)],
    );
    let setup = Setup::new().server("lab", asking);
    let mut client = setup.start_with(&["serve", "--direct"]);
    let askable = r#"{"elicitation":{}}"#;
    let call = r#""name":"lab__research","arguments":{}"#;
    let asked = until("the tool", || {
        let id = client.begin_modern("tools/call", call, askable, "");
        let answer = client.answer(id);
        (!answer.as_str().contains(r#""error""#)).then(|| answer.value())
    });
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let key = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let given = json!({ key: { "action": "accept", "content": {} } });
    let again = format!(
        r#"{call},"inputResponses":{given},"requestState":{}"#,
        asked["requestState"]
    );
    let id = client.begin_modern("tools/call", &again, askable, "");
    let answer = client.answer(id);
    assert_eq!(answer.text(), "found");
    assert!(!answer.as_str().contains("t-1"), "{answer:?}");
    client.finish();
    assert_eq!(setup.home().count("lab", r#""method":"tools/call""#), 1);
    assert_eq!(setup.home().count("lab", "tasks/cancel"), 0);
}
