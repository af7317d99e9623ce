//! The extension for tasks (revision 2026-07-28): a call that a server answers with a task is one for the client, too.

use serde_json::{Value, json};

use crate::support::gateway::{Call, Gateway};
use crate::support::script::{Step, answer, echo, error, hang, if_params, line, result, up_to};
use crate::support::{Client, Message, Server, Setup, until};

/// The capabilities of a client with tasks, and with forms.
const TASKS: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
const ASKABLE: &str = r#"{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

const ABLE: &str = r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;

/// The server's own id, which no client may see.
const OWN: &str = "t-1/own?ü";

fn state(kind: &str, status: &str, members: Value) -> Step {
    let mut state = json!({
        "resultType": kind, "taskId": OWN, "status": status, "createdAt": "2026-11-26T00:00:00Z",
        "lastUpdatedAt": "2026-11-26T00:00:00Z", "ttlMs": 60000, "pollIntervalMs": 500,
    });
    let members = members.as_object().unwrap().clone();
    state.as_object_mut().unwrap().extend(members);
    result(&state.to_string())
}

fn completed() -> Step {
    let text = r#"{"rows":[1,2],"name":"all"}"#;
    let found = json!({ "content": [{ "type": "text", "text": text }] });
    state("complete", "completed", json!({ "result": found }))
}

/// A call that becomes a task if that was declared, and is answered by `otherwise` if not.
fn becomes_a_task(otherwise: Step) -> [Step; 1] {
    [if_params(
        "io.modelcontextprotocol/tasks",
        [state("task", "working", json!({}))],
        [otherwise],
    )]
}

fn lab() -> Server {
    lab_with(answer("at once"))
}

/// A server with a tool that is a task if that is possible, and has this answer if not.
fn lab_with(otherwise: Step) -> Server {
    Server::new()
        .modern()
        .capabilities(ABLE)
        .tool("research", becomes_a_task(otherwise))
        .tool("plain", [echo()])
        .on("tasks/get", [completed()])
        .on("tasks/update", [result(r#"{"resultType":"complete"}"#)])
        .on("tasks/cancel", [result(r#"{"resultType":"complete"}"#)])
}

fn setup(server: Server) -> Setup {
    Setup::new()
        .server("lab", server)
        .setting("audit", json!({}))
}

fn asked(client: &mut Client, method: &str, members: &str) -> Message {
    let id = client.begin_modern(method, members, ASKABLE, "");
    client.answer(id)
}

/// Makes a task, and returns its id.
#[track_caller]
fn begin(client: &mut Client, more: &str) -> String {
    let call = format!(r#""name":"execute_tool","arguments":{{"name":"lab__research"{more}}}"#);
    id_of(&asked(client, "tools/call", &call).value())
}

#[track_caller]
fn id_of(task: &Value) -> String {
    assert_eq!(task["resultType"], "task", "{task}");
    let id = task["taskId"].as_str().unwrap();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    assert!(id.bytes().all(is_plain) && id.len() < 4096, "{id}");
    id.to_owned()
}

fn named(id: &str) -> String {
    format!(r#""taskId":{}"#, json!(id))
}

fn get(client: &mut Client, id: &str) -> Message {
    asked(client, "tasks/get", &named(id))
}

/// The lines of the audit log: kind, outcome, tool, detail.
fn audited(setup: &Setup) -> Vec<String> {
    let shown = setup.run(&["audit", "--json"]).code(0);
    let lines = shown.stdout.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        let part = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
        let parts = ["kind", "outcome", "tool", "detail"].map(part);
        parts.join(" ")
    });
    let own = |line: &String| !line.starts_with("session") && !line.starts_with("log");
    lines.filter(own).collect()
}

#[test]
fn a_task_is_the_clients_and_its_result_is_that_of_a_direct_answer() {
    let going_on = up_to(
        1,
        r#""method":"tasks/get""#,
        [state(
            "complete",
            "working",
            json!({ "statusMessage": "busy" }),
        )],
        [completed()],
    );
    let setup = setup(lab().on("tasks/get", [going_on]));
    let mut client = setup.start();
    let found = client.ask_modern("server/discover", "").value();
    let declared = &found["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"];
    assert_eq!(*declared, json!({}), "{found}");
    let id = begin(&mut client, r#","select":".rows[1]""#);
    let first = get(&mut client, &id).value();
    assert_eq!(first["status"], "working");
    assert_eq!(first["statusMessage"], "busy");
    assert_eq!(first["taskId"], id.as_str());
    let last = get(&mut client, &id).value();
    assert_eq!(last["status"], "completed");
    let text = last["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("2"), "{last}");
    assert!(!last.to_string().contains(OWN), "{last}");
    client.finish();
    let log = setup.home().log("lab");
    let got: Vec<_> = log
        .lines()
        .filter(|line| line.contains("tasks/get"))
        .collect();
    assert!(got.iter().all(|line| line.contains(OWN)), "{got:?}");
    let lines = audited(&setup);
    assert_eq!(
        lines,
        [
            "call ok research became a task",
            "task ok research tasks/get"
        ]
    );
}

#[test]
fn a_task_by_a_tools_own_name_has_its_servers_result() {
    let setup = setup(lab());
    let mut client = setup.start_with(&["serve", "--direct"]);
    let made = asked(&mut client, "tools/call", r#""name":"lab__research""#);
    let id = id_of(&made.value());
    let last = get(&mut client, &id).value();
    let text = r#"{"rows":[1,2],"name":"all"}"#;
    assert_eq!(
        last["result"],
        json!({ "content": [{ "type": "text", "text": text }] })
    );
    client.finish();
}

#[test]
fn a_task_survives_the_end_of_mcpzip() {
    let setup = setup(lab());
    let mut client = setup.start();
    let id = begin(&mut client, "");
    client.finish();
    let mut client = setup.start();
    assert_eq!(get(&mut client, &id).value()["status"], "completed");
    client.finish();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let key = std::fs::metadata(setup.home().path("state/tasks.key")).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }
    std::fs::write(setup.home().path("state/tasks.key"), "no key").unwrap();
    let mut client = setup.start();
    // Without a key there are no ids, so the call has its result.
    let call = r#""name":"execute_tool","arguments":{"name":"lab__research"}"#;
    assert_eq!(asked(&mut client, "tools/call", call).text(), "at once");
    assert_eq!(get(&mut client, &id).error_code(), -32603);
    client.finish();
}

#[cfg(target_os = "linux")]
#[test]
fn a_task_is_there_in_the_next_session_of_a_daemon() {
    let setup = setup(lab())
        .setting("daemon", json!({ "mode": "auto", "idle": "60s" }))
        .daemon_as_configured();
    let mut client = setup.start();
    let id = begin(&mut client, "");
    client.finish();
    let mut client = setup.start();
    assert_eq!(get(&mut client, &id).value()["status"], "completed");
    client.finish();
    let _ = setup.run(&["daemon", "stop"]).code(0);
    let mut client = setup.alone().start();
    assert_eq!(get(&mut client, &id).value()["status"], "completed");
    client.finish();
}

#[test]
fn ids_of_others_and_garbage_are_unknown() {
    let setup = setup(lab()).setting("profiles", json!({ "review": { "servers": ["lab"] } }));
    let mut client = setup.start();
    let id = begin(&mut client, "");
    let changed = format!("{}A", &id[..id.len() - 1]);
    let changed = if changed == id {
        id.replace('A', "B")
    } else {
        changed
    };
    for odd in [
        changed.as_str(),
        "",
        "mcpzip-",
        "mcpzip-!",
        OWN,
        "mcpzip-AAAA",
        &"x".repeat(100_000),
    ] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let refused = asked(&mut client, method, &named(odd));
            assert_eq!(refused.error_code(), -32602, "{odd}: {refused:?}");
            assert_eq!(refused.error()["message"], "there is no such task");
        }
    }
    for odd in ["", r#""taskId":7"#, r#""taskId":null"#] {
        assert_eq!(asked(&mut client, "tasks/get", odd).error_code(), -32602);
    }
    for gone in ["tasks/list", "tasks/result"] {
        assert_eq!(asked(&mut client, gone, &named(&id)).error_code(), -32601);
    }
    client.finish();
    // Another profile is another caller.
    let mut client = setup.start_with(&["serve", "--profile", "review"]);
    assert_eq!(get(&mut client, &id).error_code(), -32602);
    client.finish();
    assert_eq!(setup.home().count("lab", "tasks/"), 0);
    let refused = "refusal failed tasks/get -";
    assert!(audited(&setup).iter().any(|line| line == refused));
}

#[test]
fn a_request_about_a_task_declares_the_extension() {
    let setup = setup(lab());
    let mut client = setup.start();
    let id = begin(&mut client, "");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = client.ask_modern(method, &named(&id)).error();
        assert_eq!(refused["code"], -32021, "{refused}");
        let required = &refused["data"]["requiredCapabilities"]["extensions"];
        assert_eq!(*required, json!({ "io.modelcontextprotocol/tasks": {} }));
    }
    client.finish();
    let mut client = setup.start();
    client.shake_hands_as("2025-11-25", TASKS);
    let refused = client.ask("tasks/get", &format!("{{{}}}", named(&id)));
    assert_eq!(refused.error_code(), -32601);
    // A handshake does not declare tasks.
    assert_eq!(client.execute("lab__research").text(), "at once");
    client.finish();
}

#[test]
fn a_call_is_a_task_only_if_this_request_takes_one() {
    let setup = setup(lab());
    let mut client = setup.start();
    let one = r#""name":"execute_tool","arguments":{"name":"lab__research"}"#;
    assert_eq!(client.ask_modern("tools/call", one).text(), "at once");
    let several = r#""name":"execute_tool","arguments":{"calls":[{"name":"lab__research"},{"name":"lab__research"}]}"#;
    let text = asked(&mut client, "tools/call", several)
        .result()
        .to_owned();
    assert_eq!(text.matches("at once").count(), 2, "{text}");
    let long = "x".repeat(600);
    let call = format!(
        r#""name":"execute_tool","arguments":{{"name":"lab__research","select":"\"{long}\""}}"#
    );
    assert!(
        asked(&mut client, "tools/call", &call)
            .text()
            .contains("xxx")
    );
    client.finish();
    assert_eq!(
        setup
            .home()
            .count("lab", r#"clientCapabilities":{"extensions"#),
        0
    );
}

#[test]
fn a_task_that_was_not_asked_for_is_no_answer() {
    let forced = Server::new()
        .modern()
        .tool("research", [state("task", "working", json!({}))]);
    let setup = setup(forced);
    let mut client = setup.start();
    let one = r#""name":"execute_tool","arguments":{"name":"lab__research"}"#;
    let told = client.ask_modern("tools/call", one).tool_error();
    assert!(told.contains("a task that was not asked for"), "{told}");
    assert!(!told.contains(OWN), "{told}");
    client.finish();
}

#[test]
fn a_rule_that_denies_the_tool_denies_its_task() {
    let setup = setup(lab());
    setup.save();
    let mut client = setup.start();
    let id = begin(&mut client, r#","arguments":{"path":"/secret/x"}"#);
    let long = format!(r#","arguments":{{"path":"{}"}}"#, "y".repeat(2000));
    let long = begin(&mut client, &long);
    assert_eq!(get(&mut client, &id).value()["status"], "completed");
    let by_argument = json!({ "deny": [{ "tool": "lab__*", "when": { "path": "/secret/**" } }] });
    for rules in [json!({ "deny": ["lab__research"] }), by_argument] {
        setup.clone().setting("tools", rules.clone()).save();
        until("the rule", || {
            let refused = get(&mut client, &id);
            refused.as_str().contains("error").then_some(())
        });
        let gets = setup.home().count("lab", "tasks/");
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let refused = asked(&mut client, method, &named(&id)).error();
            assert_eq!(refused["code"], -32602, "{rules}: {refused}");
            assert!(!refused.to_string().contains("rows"), "{refused}");
        }
        // Arguments that were too long to keep may be such.
        assert_eq!(get(&mut client, &long).error_code(), -32602);
        assert_eq!(setup.home().count("lab", "tasks/"), gets);
        setup.save();
        until("no rule", || {
            let state = get(&mut client, &id);
            (!state.as_str().contains("error")).then_some(())
        });
    }
    client.finish();
    let lines = audited(&setup);
    let refused = "refusal refused research tasks/get";
    assert!(lines.iter().any(|line| line == refused), "{lines:#?}");
}

#[test]
fn questions_answers_and_the_end_of_a_task_find_their_server() {
    let question = json!({ "method": "elicitation/create", "params": { "message": "Which?", "requestedSchema": { "type": "object", "properties": {} } } });
    let other = json!({ "method": "sampling/createMessage", "params": { "messages": [] } });
    let asks = state(
        "complete",
        "input_required",
        json!({ "inputRequests": { "q-1": question, "q-2": other } }),
    );
    let setup = setup(lab().on("tasks/get", [asks]));
    let mut client = setup.start();
    let id = begin(&mut client, "");
    let state = get(&mut client, &id).value();
    let questions = &state["inputRequests"];
    assert_eq!(questions["q-1"]["params"]["message"], "lab: Which?");
    // The client has not declared sampling.
    assert!(questions["q-2"].is_null(), "{state}");
    let given = format!(
        r#"{},"inputResponses":{{"q-1":{{"action":"accept","content":{{}}}}}}"#,
        named(&id)
    );
    let done = asked(&mut client, "tasks/update", &given).value();
    assert_eq!(done["resultType"], "complete");
    asked(&mut client, "tasks/cancel", &named(&id)).result();
    client.finish();
    let home = setup.home();
    assert_eq!(
        home.count(
            "lab",
            r#""inputResponses":{"q-1":{"action":"accept","content":{}}}"#
        ),
        1
    );
    assert_eq!(home.count("lab", "tasks/cancel"), 1);
    assert_eq!(
        audited(&setup)[1..],
        [
            "task ok research tasks/update",
            "task ok research tasks/cancel"
        ]
    );
}

#[test]
fn a_failed_task_has_its_servers_error_and_odd_states_are_none() {
    let fails = state(
        "complete",
        "failed",
        json!({ "error": { "code": -32000, "message": "burned down" } }),
    );
    let odd = [
        state("complete", "completed", json!({})),
        state("complete", "completed", json!({ "result": [1] })),
        state("complete", "unheard of", json!({})),
        result("[]"),
    ];
    let setup_of = |step: Step| setup(lab().on("tasks/get", [step]));
    let setup = setup_of(fails);
    let mut client = setup.start();
    let id = begin(&mut client, "");
    let state = get(&mut client, &id).value();
    assert_eq!(state["error"]["message"], "burned down");
    client.finish();
    assert_eq!(audited(&setup)[1], "task failed research tasks/get");
    for step in odd {
        let setup = setup_of(step);
        let mut client = setup.start();
        let id = begin(&mut client, "");
        assert_eq!(get(&mut client, &id).error_code(), -32603);
        client.finish();
    }
}

#[test]
fn a_server_that_demands_tasks_is_waited_for_by_other_clients() {
    let demand = r#"{"code":-32021,"message":"a task is required","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}"#;
    let question = json!({ "method": "elicitation/create", "params": { "message": "Which?", "requestedSchema": { "type": "object", "properties": {} } } });
    let asks = state(
        "complete",
        "input_required",
        json!({ "inputRequests": { "q-1": question } }),
    );
    let demanding = lab_with(error(demand)).on(
        "tasks/get",
        [up_to(
            0,
            r#""method":"tasks/update""#,
            [asks],
            [completed()],
        )],
    );
    let setup = setup(demanding.clone());
    let mut client = setup.start();
    client.shake_hands_as("2025-11-25", r#"{"elicitation":{}}"#);
    let call = client.begin_execute("lab__research");
    let question = client.expect("the question", |message| {
        message.as_str().contains("Which?")
    });
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"accept","content":{{"a":1}}}}}}"#,
        question.id()
    ));
    assert!(client.answer(call).text().contains("rows"));
    assert_eq!(
        setup
            .home()
            .count("lab", r#""q-1":{"action":"accept","content":{"a":1}}"#),
        1
    );
    client.finish();
    // A client that cannot be asked gets an error that says so, and the task is cancelled.
    let setup = Setup::new().server("lab", demanding);
    let mut client = setup.connect();
    let told = client.execute("lab__research").tool_error();
    assert!(told.contains("cannot be asked"), "{told}");
    setup.home().wait_for("lab", "tasks/cancel");
    client.finish();
    // A command waits, too.
    let setup = Setup::new().server("lab", lab_with(error(demand)));
    let outcome = setup.run(&["call", "lab__research"]).code(0);
    assert!(outcome.stdout.contains("rows"), "{}", outcome.stdout);
}

#[test]
fn a_waited_task_asks_a_client_of_its_era_in_the_answer_to_the_call() {
    let demand = r#"{"code":-32021,"message":"a task is required","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}"#;
    let question = |text: &str| json!({ "method": "elicitation/create", "params": { "message": text, "requestedSchema": { "type": "object", "properties": {} } } });
    let asks = state(
        "complete",
        "input_required",
        json!({ "inputRequests": { "q-1": question("Which?"), "q-2": question("How?") } }),
    );
    let once_more = up_to(0, r#""q-2":{"action""#, [asks.clone()], [completed()]);
    let demanding = lab_with(error(demand)).on("tasks/get", [once_more]);
    let setup = setup(demanding);
    let mut client = setup.start();
    let askable = r#"{"elicitation":{}}"#;
    let call = r#""name":"execute_tool","arguments":{"name":"lab__research"}"#;
    let mut asked = |members: &str, capabilities: &str| {
        let id = client.begin_modern("tools/call", &format!("{call}{members}"), capabilities, "");
        client.answer(id)
    };
    let first = asked("", askable).value();
    assert_eq!(first["resultType"], "input_required", "{first}");
    let questions = first["inputRequests"].as_object().unwrap();
    assert_eq!(questions.len(), 2, "{first}");
    assert_eq!(questions["q-1"]["params"]["message"], "lab: Which?");
    assert!(!first.to_string().contains(OWN), "{first}");
    let said = r#"{"action":"accept","content":{"a":1}}"#;
    let state = first["requestState"].to_string();
    // A token is for its call alone.
    let other = format!(
        r#""name":"execute_tool","arguments":{{"name":"lab__plain"}},"requestState":{state}"#
    );
    let refused = {
        let id = client.begin_modern("tools/call", &other, askable, "");
        client.answer(id)
    };
    assert!(
        refused.as_str().contains("unknown or has expired"),
        "{refused:?}"
    );
    let mut asked = |members: &str, capabilities: &str| {
        let id = client.begin_modern("tools/call", &format!("{call}{members}"), capabilities, "");
        client.answer(id)
    };
    // What is not answered is asked again, and a key that was not asked is no answer.
    let one = format!(r#","inputResponses":{{"q-1":{said},"q-9":{said}}},"requestState":{state}"#);
    let second = asked(&one, askable).value();
    let questions = second["inputRequests"].as_object().unwrap();
    assert_eq!(questions.keys().collect::<Vec<_>>(), ["q-2"], "{second}");
    // The first token was for once.
    assert!(
        asked(&one, askable)
            .as_str()
            .contains("unknown or has expired")
    );
    let state = second["requestState"].to_string();
    let two =
        format!(r#","inputResponses":{{"q-2":{{"action":"decline"}}}},"requestState":{state}"#);
    assert!(asked(&two, askable).text().contains("rows"));
    // A client that cannot be asked gets an error, and the task is cancelled.
    let setup = Setup::new().server("lab", lab_with(error(demand)).on("tasks/get", [asks]));
    let mut other = setup.start();
    let id = other.begin_modern("tools/call", call, "{}", "");
    let told = other.answer(id).tool_error();
    assert!(told.contains("cannot be asked"), "{told}");
    setup.home().wait_for("lab", "tasks/cancel");
    other.finish();
    client.finish();
}

#[test]
fn a_waited_task_ends_with_the_time_limit_of_its_call() {
    let demand = r#"{"code":-32021,"message":"a task is required","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}"#;
    let slow = lab_with(error(demand)).on("tasks/get", [hang()]);
    let setup = Setup::new().server("lab", slow);
    let mut client = setup.connect();
    let call = r#"{"name":"lab__research","timeout":1}"#;
    let told = client.call("execute_tool", call).tool_error();
    assert!(told.contains("no answer within"), "{told}");
    setup.home().wait_for("lab", "tasks/cancel");
    client.finish();
}

/// A request of a client with tasks over HTTP.
fn over_http(gateway: &Gateway, method: &str, members: &str) -> Call {
    gateway.modern_with("test", TASKS, method, members)
}

#[test]
fn over_http_a_task_is_its_persons_only() {
    let setup = setup(lab())
        .alone()
        .setting("http", json!({ "auth": { "tokens": true } }))
        .setting("roles", json!({ "dev": { "profiles": ["*"] } }));
    setup.save();
    let token = |name: &str| {
        let made = setup.run(&["token", "create", name, "--role", "dev"]);
        format!("Bearer {}", made.code(0).stdout.trim())
    };
    let [ann, bob] = ["ann", "bob"].map(token);
    let gateway = setup.serve(&[]);
    let call = r#""name":"execute_tool","arguments":{"name":"lab__research"}"#;
    let made = over_http(&gateway, "tools/call", call)
        .and_header("Authorization", &ann)
        .send();
    let id = id_of(&made.message().value());
    let about = |method: &str, id: &str, token: &str| {
        over_http(&gateway, method, &named(id))
            .and_header("Authorization", token)
            .and_header("Mcp-Name", id)
    };
    let state = about("tasks/get", &id, &ann).send().message().value();
    assert_eq!(state["status"], "completed");
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = about(method, &id, &bob).send();
        assert_eq!(refused.fault(), (200, -32602), "{method}");
    }
    assert_eq!(
        about("tasks/get", &id, &ann)
            .header("Mcp-Name", "x")
            .send()
            .fault(),
        (400, -32020)
    );
    let bare = about("tasks/get", &id, &ann).without("Mcp-Name");
    assert_eq!(bare.send().fault(), (400, -32020));
    let undeclared = gateway
        .modern("tasks/get", &named(&id))
        .and_header("Authorization", &ann)
        .and_header("Mcp-Name", &id);
    assert_eq!(undeclared.send().fault(), (400, -32021));
    assert_eq!(setup.home().count("lab", "tasks/"), 1);
    drop(gateway);
    let gateway = setup.serve(&[]);
    let state = over_http(&gateway, "tasks/get", &named(&id))
        .and_header("Authorization", &ann)
        .and_header("Mcp-Name", &id)
        .send();
    assert_eq!(state.message().value()["status"], "completed");
    // A session on this machine is none of these people.
    let mut client = setup.start();
    assert_eq!(get(&mut client, &id).error_code(), -32602);
    client.finish();
}

#[test]
fn an_upstream_over_http_gets_its_own_id_in_the_header() {
    use crate::support::http::{HttpServer, modern};
    let web = HttpServer::start(|request, reply| {
        match request.rpc() {
        "server/discover" => reply.json(&request.answer(&json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": { "tools": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } },
        }))),
        "tools/list" => reply.json(&request.answer(&json!({
            "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
            "tools": [{ "name": "research", "inputSchema": { "type": "object" } }],
        }))),
        "tools/call" => reply.json(&request.answer(&json!({
            "resultType": "task", "taskId": "t-9", "status": "working", "ttlMs": null,
        }))),
        "tasks/get" => reply.json(&request.answer(&json!({
            "resultType": "complete", "taskId": "t-9", "status": "working", "ttlMs": null,
        }))),
        _ => modern(request, reply),
    }
    });
    let setup = Setup::new().entry("lab", &web.entry(json!({ "era": "modern" })));
    let mut client = setup.start();
    let id = begin(&mut client, "");
    assert_eq!(get(&mut client, &id).value()["status"], "working");
    client.finish();
    assert_eq!(web.first("tasks/get").header("mcp-name"), "t-9");
}

fn execute(client: &mut Client, name: &str) {
    let call = format!(r#""name":"execute_tool","arguments":{{"name":"{name}"}}"#);
    assert_eq!(client.ask_modern("tools/call", &call).text(), "ok");
}

/// A notification of a task of the server.
fn notified(status: &str, members: &str) -> Step {
    let task = format!(
        r#""taskId":{},"status":"{status}","createdAt":"2026-11-26T00:00:00Z","lastUpdatedAt":"2026-11-26T00:00:00Z","ttlMs":null{members}"#,
        json!(OWN)
    );
    line(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/tasks","params":{{{task}}}}}"#
    ))
}

#[test]
fn a_client_that_listens_to_its_tasks_hears_of_them_as_it_would_ask() {
    let result = r#","result":{"content":[{"type":"text","text":"{\"rows\":[1,2]}"}]}"#;
    let server = lab()
        .on("subscriptions/listen", [hang()])
        .tool("go_on", [notified("working", ""), answer("ok")])
        .tool("finish", [notified("completed", result), answer("ok")]);
    let setup = setup(server);
    let mut client = setup.start();
    let id = begin(&mut client, r#","select":".rows[1]""#);
    let filter = json!({ "taskIds": [id, "mcpzip-garbage", OWN] });
    let members = format!(r#""notifications":{filter}"#);
    let refused = client.ask_modern("subscriptions/listen", &members);
    assert_eq!(refused.error_code(), -32021);
    let listening = client.begin_modern("subscriptions/listen", &members, TASKS, "");
    let acknowledged = client.expect("the acknowledgement", |message| {
        message.is_notification("notifications/subscriptions/acknowledged")
    });
    let agreed: Value = serde_json::from_str(acknowledged.params()).unwrap();
    assert_eq!(agreed["notifications"], json!({ "taskIds": [id] }));
    setup
        .home()
        .wait_for("lab", &format!(r#""taskIds":["{OWN}"]"#));
    let heard = |client: &mut Client| -> Value {
        let heard = client.expect("the task", |one| one.is_notification("notifications/tasks"));
        serde_json::from_str(heard.params()).unwrap()
    };
    execute(&mut client, "lab__go_on");
    let state = heard(&mut client);
    assert_eq!(
        (&state["taskId"], &state["status"]),
        (&json!(id), &json!("working"))
    );
    let mark = &state["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(*mark, json!(listening));
    assert!(state["resultType"].is_null(), "{state}");
    // Its end is one, however often the server says so.
    execute(&mut client, "lab__finish");
    execute(&mut client, "lab__finish");
    let state = heard(&mut client);
    assert!(
        state["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with('2'),
        "{state}"
    );
    assert!(!state.to_string().contains(OWN), "{state}");
    // A rule that denies the tool keeps its task from being heard of.
    let denied = setup
        .clone()
        .setting("tools", json!({ "deny": ["lab__research"] }));
    denied.save();
    until("the rule", || {
        let refused = get(&mut client, &id);
        refused.as_str().contains("error").then_some(())
    });
    execute(&mut client, "lab__finish");
    execute(&mut client, "lab__go_on");
    let heard_again = |one: &Message| one.is_notification("notifications/tasks");
    assert!(!client.left_over().iter().any(heard_again));
    client.finish();
    let lines = audited(&setup);
    let line = "task ok research notifications/tasks";
    assert_eq!(
        lines.iter().filter(|one| *one == line).count(),
        1,
        "{lines:#?}"
    );
}

#[test]
fn the_servers_id_of_a_task_is_in_no_answer_and_members_belong_to_their_state() {
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": OWN }, "x": 1 });
    let found = json!({ "content": [], "_meta": related });
    let question = json!({ "q": { "method": "elicitation/create", "params": { "message": "Your password?" } } });
    let more = json!({ "result": found, "inputRequests": question, "error": { "code": 1 }, "_meta": related, "statusMessage": "runs" });
    let made = state("task", "working", more.clone());
    let gone = json!({ "code": -32602, "message": format!("Task {OWN} not found"), "data": { "id": OWN } });
    let failed = json!({ "code": -32000, "message": "it broke" });
    let steps = [
        state("complete", "working", more.clone()),
        state("complete", "completed", more),
        state("complete", "failed", json!({ "error": failed })),
        error(&gone.to_string()),
    ];
    for step in steps {
        let server = Server::new()
            .modern()
            .capabilities(ABLE)
            .tool("research", [made.clone()])
            .on("tasks/get", [step.clone()]);
        let setup = setup(server);
        let mut client = setup.start();
        let call = r#""name":"execute_tool","arguments":{"name":"lab__research"}"#;
        let task = asked(&mut client, "tools/call", call);
        let id = id_of(&task.value());
        let state = get(&mut client, &id);
        for answer in [&task, &state] {
            let text = answer.as_str();
            assert!(
                !text.contains("t-1") && !text.contains("password"),
                "{text}"
            );
        }
        let value: Value = serde_json::from_str(state.as_str()).unwrap();
        let state = &value["result"];
        let has = |key: &str| state.get(key).is_some();
        match state["status"].as_str() {
            Some("working") => assert!(!has("result") && !has("error") && !has("inputRequests")),
            Some("completed") => assert!(has("result") && !has("error") && !has("inputRequests")),
            Some("failed") => assert!(has("error") && !has("result"), "{value}"),
            _ => assert!(
                value["error"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("no such task")
            ),
        }
        client.finish();
        let home = setup.home();
        // Its questions can be answered, so the server may have some.
        assert!(
            home.log("lab")
                .lines()
                .filter(|line| line.contains("tasks/get"))
                .all(|line| line.contains(r#""elicitation""#))
        );
    }
}

#[test]
fn a_short_id_of_a_task_makes_no_answer_longer() {
    let text = "e".repeat(100_000);
    let failure = json!({ "code": -32000, "message": text, "data": { "text": text } });
    let short = |status: &str, members: Value| {
        let mut state = json!({
            "resultType": "complete", "taskId": "e", "status": status, "ttlMs": null,
            "createdAt": "2026-11-26T00:00:00Z", "lastUpdatedAt": "2026-11-26T00:00:00Z",
        });
        let members = members.as_object().unwrap().clone();
        state.as_object_mut().unwrap().extend(members);
        state
    };
    let mut made = short("working", json!({ "statusMessage": text }));
    made["resultType"] = json!("task");
    for step in [
        result(&short("working", json!({ "statusMessage": text })).to_string()),
        result(&short("failed", json!({ "error": failure })).to_string()),
        error(&failure.to_string()),
    ] {
        let server = Server::new()
            .modern()
            .capabilities(ABLE)
            .tool("research", [result(&made.to_string())])
            .on("tasks/get", [step]);
        let setup = setup(server);
        let mut client = setup.start();
        let call = r#""name":"execute_tool","arguments":{"name":"lab__research"}"#;
        let task = asked(&mut client, "tools/call", call);
        let id = id_of(&task.value());
        let state = get(&mut client, &id);
        for answer in [&task, &state] {
            assert!(answer.as_str().contains(&text), "the server's text stays");
            assert!(answer.as_str().len() < 210_000, "{}", answer.as_str().len());
        }
        client.finish();
    }
    // A call that waits for such a task is no longer either.
    let demand = r#"{"code":-32021,"message":"a task is required","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}"#;
    let made = if_params(
        "io.modelcontextprotocol/tasks",
        [result(&made.to_string())],
        [error(demand)],
    );
    let server = Server::new()
        .modern()
        .capabilities(ABLE)
        .tool("research", [made])
        .on("tasks/get", [error(&failure.to_string())])
        .on("tasks/cancel", [result(r#"{"resultType":"complete"}"#)]);
    let setup = Setup::new().server("lab", server);
    let mut client = setup.connect();
    let told = client.execute("lab__research");
    assert!(told.as_str().len() < 210_000, "{}", told.as_str().len());
    client.finish();
}

#[test]
fn a_task_is_one_however_its_server_spells_that() {
    let spelled = format!(
        r#"{{"resultType":"t\u0061sk","taskId":{},"status":"working","createdAt":"2026-11-26T00:00:00Z","ttlMs":null}}"#,
        json!(OWN)
    );
    let server = lab().hidden("research", [result(&spelled)]);
    let forced = Server::new().modern().tool("research", [result(&spelled)]);
    let setup = setup(server);
    let mut client = setup.start();
    begin(&mut client, "");
    client.finish();
    let setup = Setup::new().server("lab", forced);
    let mut client = setup.start();
    let one = r#""name":"execute_tool","arguments":{"name":"lab__research"}"#;
    let told = client.ask_modern("tools/call", one).tool_error();
    assert!(told.contains("a task that was not asked for"), "{told}");
    client.finish();
}

#[test]
fn a_task_belongs_to_its_server_and_not_to_another_one_with_its_name() {
    let setup = setup(lab());
    setup.save();
    let mut client = setup.start();
    let id = begin(&mut client, "");
    client.finish();
    let gets = setup.home().count("lab", "tasks/get");
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    let entry = &mut config["mcpServers"]["lab"];
    entry["env"] = json!({ "ANOTHER": "one" });
    let setup = setup.entry("lab", &entry.to_string());
    let mut client = setup.start();
    let refused = get(&mut client, &id);
    assert_eq!(refused.error_code(), -32602, "{refused:?}");
    client.finish();
    assert_eq!(setup.home().count("lab", "tasks/get"), gets);
}

#[test]
fn a_waited_task_does_not_end_with_a_question() {
    let demand = r#"{"code":-32021,"message":"a task is required","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}"#;
    let question = json!({ "q": { "method": "elicitation/create", "params": { "message": "Your password?" } } });
    for odd in [
        json!({ "resultType": "input_required", "inputRequests": question, "requestState": "s" }),
        json!({ "resultType": "task", "taskId": "x", "status": "working" }),
    ] {
        let ends = state("complete", "completed", json!({ "result": odd }));
        let setup = setup(lab_with(error(demand)).on("tasks/get", [ends]));
        let mut client = setup.start();
        let call = r#""name":"execute_tool","arguments":{"name":"lab__research"}"#;
        let id = client.begin_modern("tools/call", call, r#"{"elicitation":{}}"#, "");
        let told = client.answer(id);
        assert!(
            told.as_str().contains("no result that is known"),
            "{told:?}"
        );
        assert!(!told.as_str().contains("password"), "{told:?}");
        client.finish();
    }
}

#[test]
fn a_server_that_refuses_a_task_is_listened_to_for_the_rest() {
    let refusal = error(r#"{"code":-32602,"message":"no such task"}"#);
    let listens = if_params("taskIds", [refusal], [hang()]);
    let server = Server::new()
        .modern()
        .tool("research", becomes_a_task(answer("at once")))
        .on("tasks/get", [completed()])
        .capabilities(
            r#"{"tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
        )
        .on("subscriptions/listen", [listens]);
    let setup = setup(server);
    let mut client = setup.start();
    let id = begin(&mut client, "");
    let members = format!(r#""notifications":{}"#, json!({ "taskIds": [id] }));
    client.begin_modern("subscriptions/listen", &members, TASKS, "");
    setup.home().wait_for("lab", "taskIds");
    until("a subscription to the rest", || {
        let log = setup.home().log("lab");
        let last = log
            .lines()
            .rfind(|line| line.contains("subscriptions/listen"))?;
        (setup.home().count("lab", "taskIds") == 3 && !last.contains("taskIds")).then_some(())
    });
    client.finish();
}
