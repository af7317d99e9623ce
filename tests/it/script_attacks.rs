//! Scripts and tools that try to break out, to use everything up, or to hold others up.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::scripts::{run, setup};
use crate::support::Server;
use crate::support::script::{answer, fill, result};

#[test]
fn a_script_that_computes_delays_no_call_of_another_session() {
    let gateway = setup().serve(&[]);
    let (busy, other) = (gateway.session(), gateway.session());
    let endless = json!({ "name": "mcpzip__run", "arguments": { "code": "while (true) {}" } });
    let call = json!({ "name": "execute_tool", "arguments": endless });
    let running: Vec<_> = (0..4)
        .map(|id| busy.request(id, "tools/call", &call.to_string()).begin())
        .collect();
    for id in 10..20 {
        let begin = Instant::now();
        let answered = other.execute(id, "notes__text", "").send().message();
        assert_eq!(answered.text(), "plain words");
        assert!(
            begin.elapsed() < Duration::from_secs(5),
            "{:?}",
            begin.elapsed()
        );
    }
    // Another session's scripts are not among those that run here.
    let own = json!({ "name": "execute_tool", "arguments": { "name": "mcpzip__run", "arguments": { "code": "return 1" } } });
    let answered = other
        .request(30, "tools/call", &own.to_string())
        .send()
        .message();
    assert_eq!(answered.text(), "1");
    drop(running);
}

#[test]
fn tricks_with_prototypes_and_names_change_the_script_alone() {
    let hostile = r#"{"__proto__":{"isAdmin":true},"constructor":{"prototype":{"x":1}},"then":"not a function","toJSON":1}"#;
    let setup = setup().server(
        "evil",
        Server::new().read_only_tool("read", [answer(hostile)]),
    );
    let mut client = setup.connect();
    for (code, expected) in [
        (
            "const a = await tools.evil.read(); return [({}).isAdmin === undefined, a.then]",
            "[true,\"not a function\"]",
        ),
        (
            "Object.prototype.then = (f) => f('taken'); return await tools.notes.text()",
            "",
        ),
        (
            "Array.prototype.toJSON = () => 'taken'; return [1]",
            "taken",
        ),
        (
            "Map.prototype.get = () => null; try { await tools.notes.text() } catch {}; return 1",
            "failed",
        ),
        (
            "Object.defineProperty(globalThis, 'tools', { value: 1 }); return typeof tools",
            "number",
        ),
        ("return typeof tools.__proto__.constructor", "function"),
        ("await tools['__proto__']['__proto__']()", "failed"),
        (
            "await call({ toString: () => { throw new Error('no') } })",
            "no",
        ),
        ("await call(Symbol('a'))", "failed"),
        ("const a = {}; a.a = a; return a", "failed"),
        (
            "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a",
            "failed",
        ),
        ("throw { get message() { while (true) {} } }", "failed"),
        (
            "throw Object.assign(new Error('x'), { stack: 'your-script:99999999999999999999' })",
            "failed",
        ),
        (
            "class E extends Error { get stack() { while (true) {} } }; throw new E('x')",
            "failed",
        ),
        ("return { toJSON() { while (true) {} } }", "failed"),
        ("return 10n", "failed"),
        ("return () => 1", "no value"),
        ("return '\\u2028\\ud800'", ""),
    ] {
        let begin = Instant::now();
        let answered = run(&mut client, code);
        let text = answered.as_str();
        let plain = text.replace("\\\"", "\"");
        assert!(
            plain.contains(expected),
            "{code}: `{expected}` is not in {text}"
        );
        assert!(begin.elapsed() < Duration::from_secs(15), "{code}");
        assert_eq!(
            client.execute("notes__text").text(),
            "plain words",
            "{code}"
        );
    }
    client.finish();
}

#[test]
fn a_huge_result_is_an_error_that_the_script_can_catch() {
    let before = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[{"type":"text","text":""#;
    let setup = setup().server(
        "big",
        Server::new().read_only_tool("read", [fill(before, 9_000_000, r#""}]}}"#)]),
    );
    let mut client = setup.connect();
    let told = run(
        &mut client,
        "try { return (await tools.big.read()).length } catch (error) { return error.message }",
    );
    assert!(
        told.text().contains("ask the tool for less"),
        "{}",
        told.text()
    );
    client.finish();
}

#[test]
fn memory_is_limited_in_every_form() {
    let mut client = setup().connect();
    for code in [
        "new ArrayBuffer(1e9)",
        "'x'.repeat(2 ** 29)",
        "const a = []; for (;;) a.push(new Uint8Array(1e6))",
        "let a = 'x'; for (;;) a += a",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })",
        "for (const a = []; ; ) a.push(Promise.resolve(a.length))",
        "JSON.parse('[' .repeat(1e7))",
        "[...'a'.repeat(5e7)].join('b')",
    ] {
        let told = run(&mut client, code);
        assert!(told.is_tool_error(), "{code}: {}", told.as_str());
        assert_eq!(
            client.execute("notes__text").text(),
            "plain words",
            "{code}"
        );
    }
    client.finish();
}

#[test]
fn thousands_of_calls_are_made_if_the_user_permits_them() {
    let mut client = setup()
        .setting("scripts", json!({ "max_calls": 2000 }))
        .connect();
    let begin = Instant::now();
    let many = "const each = await all([...Array(1000)].map(() => tools.notes.text()));\n\
        for (let i = 0; i < 1000; i++) each.push(await tools.notes.text());\n\
        return each.length";
    assert_eq!(run(&mut client, many).text(), "2000");
    assert!(
        begin.elapsed() < Duration::from_secs(120),
        "{:?}",
        begin.elapsed()
    );
    let logged = "for (let i = 0; i < 2000; i++) log('x'.repeat(100)); return 1";
    let answered = run(&mut client, logged).text();
    assert!(answered.len() < 20_000, "{}", answered.len());
    client.finish();
}

#[test]
fn status_doctor_and_metrics_know_scripts() {
    let setup = setup()
        .setting("http", json!({ "metrics": true }))
        .setting("scripts", json!({ "allow": "all", "max_calls": 7 }));
    let gateway = setup.serve(&[]);
    let session = gateway.session();
    for code in ["return 1", "return 2", "throw 1"] {
        let call = json!({ "name": "execute_tool", "arguments": { "name": "mcpzip__run", "arguments": { "code": code } } });
        session.request(3, "tools/call", &call.to_string()).send();
    }
    let metrics = gateway.call("GET", "/metrics").send().body;
    for line in [
        "mcpzip_scripts_running 0",
        "mcpzip_scripts_total{end=\"answered\"} 2",
        "mcpzip_scripts_total{end=\"failed\"} 1",
        "mcpzip_scripts_total{end=\"refused\"} 0",
    ] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    let status = setup.run(&["status", "--json"]).code(0).json();
    assert_eq!(status["scripts"], json!({ "allow": "all", "max_calls": 7 }));
    let found = |setup: &crate::support::Setup| {
        let report = setup.run(&["doctor", "--json"]);
        let report: Value = serde_json::from_str(&report.stdout).unwrap();
        report.to_string().contains("scripts-all-tools")
    };
    assert!(found(&setup));
    assert!(!found(
        &setup
            .clone()
            .setting("tools", json!({ "ask": ["notes__delete"] }))
    ));
    assert!(!found(&setup.setting("scripts", json!(true))));
}

#[test]
fn a_result_without_content_and_one_with_errors_in_it_have_a_value_or_throw() {
    let setup = setup().server(
        "odd",
        Server::new()
            .read_only_tool("empty", [result("{}")])
            .read_only_tool("list", [result(r#"{"content":[]}"#)])
            .read_only_tool(
                "failed",
                [result(
                    r#"{"content":[{"type":"text","text":"it broke"}],"isError":true}"#,
                )],
            ),
    );
    let mut client = setup.connect();
    for (code, expected) in [
        ("return (await tools.odd.empty()) ?? 'nothing'", "nothing"),
        (
            "try { await tools.odd.failed() } catch (error) { return error.message }",
            "it broke",
        ),
    ] {
        assert_eq!(run(&mut client, code).text(), expected, "{code}");
    }
    client.finish();
}
