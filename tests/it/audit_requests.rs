//! Requests for prompts and resources in the audit log.

use serde_json::{Value, json};

use crate::support::script::{echo, error, hang};
use crate::support::{Server, Setup, until};

fn setup() -> Setup {
    let server = Server::new()
        .prompt("greet", [echo()])
        .prompt("fails", [error(r#"{"code":-32000,"message":"no luck"}"#)])
        .prompt("hangs", [hang()])
        .resource("memo://one", [echo()]);
    Setup::new()
        .alone()
        .server("hub", server)
        .setting("audit", json!({}))
}

/// The lines about prompts and resources, oldest first.
fn requests(setup: &Setup) -> Vec<Value> {
    let shown = setup.run(&["audit", "--json"]).code(0).stdout;
    let lines = shown.lines().filter(|line| !line.is_empty());
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line["kind"] == "prompt" || line["kind"] == "resource")
        .collect()
}

fn ends(lines: &[Value]) -> Vec<String> {
    let lines = lines.iter().map(|line| {
        let part = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
        format!(
            "{} {} {} {}",
            part("kind"),
            part("outcome"),
            part("server"),
            part("tool")
        )
    });
    lines.collect()
}

#[test]
fn a_redacted_line_about_a_resource_has_no_password_of_its_uri() {
    let uri = "db://me:hidden-word@host/table?api_key=hidden-word2&row=1";
    let server = Server::new().resource(uri, [echo()]).tool("get", [echo()]);
    let setup = Setup::new()
        .alone()
        .server("hub", server)
        .setting("audit", json!({ "arguments": "redacted" }));
    let mut client = setup.connect();
    let params = json!({ "uri": uri }).to_string();
    client.ask("resources/read", &params).result();
    client.execute_with("hub__get", &params).value();
    client.finish();
    let shown = setup.run(&["audit", "--json"]).code(0).stdout;
    let expected = "db://***@host/table?api_key=***&row=1";
    assert_eq!(shown.matches(expected).count(), 2, "{shown}");
    assert!(!shown.contains("hidden-word"), "{shown}");
}

#[test]
fn prompts_and_resources_have_lines_in_both_eras() {
    let setup = setup();
    let mut client = setup.connect();
    let arguments = r#"{"name":"hub__greet","arguments":{"token":"hunter22"}}"#;
    client.ask("prompts/get", arguments).result();
    let _ = client
        .ask("prompts/get", r#"{"name":"hub__fails"}"#)
        .error();
    let _ = client.ask("prompts/get", r#"{"name":"nothing"}"#).error();
    client
        .ask("resources/read", r#"{"uri":"memo://one"}"#)
        .result();
    client.finish();
    let mut client = setup.start();
    client.ask_modern("prompts/get", r#""name":"hub__greet""#);
    client.ask_modern("resources/read", r#""uri":"memo://one""#);
    client.finish();
    let lines = requests(&setup);
    assert_eq!(
        ends(&lines),
        [
            "prompt ok hub greet",
            "prompt failed hub fails",
            "prompt failed - nothing",
            "resource ok hub -",
            "prompt ok hub greet",
            "resource ok hub -",
        ]
    );
    let first = &lines[0];
    assert_eq!(first["sent"], 20, "{first}");
    assert!(first["received"].as_u64().unwrap() > 2, "{first}");
    assert!(first["session"].as_str().unwrap().len() > 10, "{first}");
    for line in [first, &lines[3]] {
        let hash = line["arguments"].as_str().unwrap();
        assert!(hash.starts_with("sha256:"), "{line}");
    }
    // The same resource has the same hash.
    assert_eq!(lines[3]["arguments"], lines[5]["arguments"]);
    let all: String = lines.iter().map(Value::to_string).collect();
    assert!(!all.contains("hunter22") && !all.contains("memo:"), "{all}");
    let verified = setup.run(&["--json", "audit", "verify"]).code(0).json();
    assert_eq!(verified["whole"], true);
    let rows = setup.run(&["audit", "--json", "--tool", "greet"]).code(0);
    assert_eq!(rows.stdout.matches(r#""kind":"prompt""#).count(), 2);
}

#[test]
fn a_cancelled_request_for_a_prompt_has_a_line() {
    let setup = setup();
    let mut client = setup.connect();
    let id = client.request("prompts/get", r#"{"name":"hub__hangs"}"#);
    until("the server has it", || {
        (setup.home().count("hub", "prompts/get") == 1).then_some(())
    });
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    until("its line", || {
        (ends(&requests(&setup)) == ["prompt cancelled hub hangs"]).then_some(())
    });
    client.finish();
}

#[test]
fn without_a_log_no_prompt_is_got_and_no_resource_read() {
    let setup = setup();
    std::fs::create_dir_all(setup.home().path("state")).unwrap();
    std::fs::write(setup.home().path("state/audit"), "in the way").unwrap();
    let mut client = setup.connect();
    for (method, params) in [
        ("prompts/get", r#"{"name":"hub__greet"}"#),
        ("resources/read", r#"{"uri":"memo://one"}"#),
    ] {
        let refused = client.ask(method, params).error().to_string();
        assert!(refused.contains("audit log"), "{method}: {refused}");
        assert_eq!(setup.home().count("hub", method), 0);
    }
}
