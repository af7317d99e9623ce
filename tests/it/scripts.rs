//! Scripts: a chain of calls in one, under the rules of their session.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::script::{answer, await_cancel, echo, error, result, sleep};
use crate::support::{Client, Message, Server, Setup};

/// A session with scripts, and a server with tools of each kind.
pub(super) fn setup() -> Setup {
    Setup::new()
        .server(
            "notes",
            Server::new()
                .read_only_tool(
                    "list",
                    [result(
                        r#"{"content":[{"type":"text","text":"[{\"id\":1},{\"id\":2}]"}]}"#,
                    )],
                )
                .read_only_tool("get", [echo()])
                .read_only_tool("text", [answer("plain words")])
                .read_only_tool(
                    "broken",
                    [error(r#"{"code":-32000,"message":"no such note"}"#)],
                )
                .tool("delete", [answer("deleted")]),
        )
        .setting("scripts", json!(true))
}

pub(super) fn run(client: &mut Client, code: &str) -> Message {
    client.execute_with("mcpzip__run", &json!({ "code": code }).to_string())
}

/// Checks the value of a script, as JSON or text.
#[track_caller]
fn check(code: &str, expected: &str) {
    let mut client = setup().connect();
    let answered = run(&mut client, code);
    assert!(!answered.is_tool_error(), "{code}: {}", answered.text());
    assert_eq!(answered.text(), expected, "{code}");
    client.finish();
}

#[test]
fn a_script_that_ends_names_the_calls_that_it_left() {
    let slow = Server::new()
        .tool("write", [sleep(20_000), answer("written")])
        .read_only_tool("read", [sleep(20_000), answer("read")]);
    let setup = setup()
        .server("slow", slow)
        .setting("scripts", json!({ "allow": "all" }));
    let mut client = setup.connect();
    let mut run_for = |code: &str| {
        let call = json!({ "name": "mcpzip__run", "arguments": { "code": code }, "timeout": 3 });
        client.call("execute_tool", &call.to_string())
    };
    let all = "await all([tools.slow.write({}), tools.slow.read({}), tools.notes.delete({})])";
    let told = run_for(all).tool_error();
    for text in [
        "It had made 3 calls:",
        "- slow__write: no answer yet; it may have acted",
        "- slow__read: no answer yet\n",
        "- notes__delete: answered",
    ] {
        assert!(
            format!("{told}\n").contains(text),
            "`{text}` is not in: {told}"
        );
    }
    // One that is left behind while another one is awaited.
    let left = "tools.slow.write({}); tools.slow.read({}); await tools.notes.delete({}); ";
    let told = run_for(&format!("{left} throw new Error('x')")).tool_error();
    assert!(
        told.contains("slow__write: no answer yet; it may have acted"),
        "{told}"
    );
    let done = run_for(&format!("{left} return 1"));
    let shown = done.value().to_string();
    assert!(
        shown.contains("before the answer of slow__write, which may have acted"),
        "{shown}"
    );
    client.finish();
}

/// Checks that a script fails with these texts.
#[track_caller]
fn check_failed(setup: Setup, code: &str, expected: &[&str]) {
    let mut client = setup.connect();
    let told = run(&mut client, code).tool_error();
    for text in expected {
        assert!(told.contains(text), "{code}: `{text}` is not in: {told}");
    }
    // The session goes on.
    assert_eq!(client.execute("notes__text").text(), "plain words");
    client.finish();
}

#[test]
fn a_script_joins_the_results_of_calls_and_answers_with_its_value() {
    check(
        "const notes = await tools.notes.list();\n\
         const each = await all(notes.map(({ id }) => tools.notes.get({ id })));\n\
         return each.map(({ arguments: { id } }) => id * 10);",
        "[10,20]",
    );
    check("await call('notes__text')", "plain words");
    check("await tools.notes__text({})", "plain words");
    check("log('seen', 2); return { a: 1 }", "{\"a\":1}\nlog: seen 2");
    check("1;", "1");
    check(
        "for (const x of []) {}",
        "The script has no value: end it with `return value`.",
    );
}

#[test]
fn a_failed_call_throws_and_can_be_caught() {
    check(
        "try { await tools.notes.broken() } catch (error) { return error.message.includes('no such note') }",
        "true",
    );
}

#[test]
fn scripts_are_off_until_the_user_switches_them_on() {
    for scripts in [
        Value::Null,
        json!(false),
        json!("yes"),
        json!({ "allow": "some" }),
    ] {
        let mut client = setup().setting("scripts", scripts.clone()).connect();
        let told = run(&mut client, "1").tool_error();
        assert!(told.contains("there is no tool"), "{scripts}: {told}");
        assert!(
            !client
                .search("run a script in JavaScript")
                .contains("mcpzip__run")
        );
        client.finish();
    }
    let mut client = setup().connect();
    let found = client.search("run a script that calls several tools");
    assert!(found.contains("mcpzip__run("), "{found}");
    client.finish();
    for (is_on, setup) in [
        (true, setup()),
        (false, setup().setting("scripts", json!(false))),
    ] {
        let mut client = setup.start();
        let greeted = client.shake_hands("2025-11-25");
        assert_eq!(greeted.result().contains("mcpzip__run"), is_on);
        client.finish();
    }
}

#[test]
fn a_script_calls_only_tools_that_declare_to_be_read_only_unless_the_user_permits_all() {
    let delete = "return await tools.notes.delete({})";
    check_failed(
        setup(),
        delete,
        &[
            "line 1",
            "does not declare to be read-only",
            "\"allow\": \"all\"",
        ],
    );
    let mut client = setup()
        .setting("scripts", json!({ "allow": "all" }))
        .connect();
    assert_eq!(run(&mut client, delete).text(), "deleted");
    client.finish();
}

#[test]
fn the_rules_of_the_session_hold_in_a_script() {
    let rules = |tools: Value| {
        setup()
            .setting("scripts", json!({ "allow": "all" }))
            .setting("tools", tools)
    };
    check_failed(
        rules(json!({ "deny": ["notes__delete"] })),
        "await tools.notes.delete({})",
        &["notes__delete", "deny"],
    );
    let mut client = rules(json!({ "deny": ["mcpzip__run"] })).connect();
    let told = run(&mut client, "1").tool_error();
    assert!(told.contains("mcpzip__run"), "{told}");
    client.finish();
}

#[test]
fn a_script_does_not_manage_mcpzip_or_run_another() {
    for tool in ["run", "status", "servers", "refresh", "tail_log"] {
        check_failed(
            setup()
                .setting("management", json!("full"))
                .setting("scripts", json!({ "allow": "all" })),
            &format!(
                "await tools.mcpzip.{tool}({{ code: '1', operation: 'list', server: 'notes' }})"
            ),
            &["calls no tool of mcpzip"],
        );
    }
}

#[test]
fn an_error_names_the_line_and_the_calls_and_keeps_their_answers() {
    let mut client = setup().connect();
    let told = run(
        &mut client,
        "const notes = await tools.notes.list();\nconst all = 1;\nnotes.missing.forEach(x => x);",
    )
    .tool_error();
    assert!(told.contains("failed at line 3"), "{told}");
    assert!(
        told.contains("- notes__list: answered, stored as `"),
        "{told}"
    );
    let (_, rest) = told.split_once("stored as `").unwrap();
    let id = rest.split('`').next().unwrap();
    let read = client.execute_with(
        "mcpzip__read_result",
        &json!({ "id": id, "select": "length" }).to_string(),
    );
    assert!(read.text().starts_with('2'), "{}", read.text());
    client.finish();
    check_failed(
        setup(),
        "const a = 1;\nawait tools.notes.nothing()",
        &["line 2", "notes__nothing"],
    );
    check_failed(
        setup(),
        "await tools.notes.get([1])",
        &["must be one object"],
    );
    check_failed(
        setup(),
        "const x: number = 1; return x",
        &["SyntaxError", "plain JavaScript, without types"],
    );
    check_failed(setup(), "throw 5", &["the script threw 5", "no call"]);
    check_failed(setup(), "  ", &["`code` has no script"]);
}

#[test]
fn a_long_error_is_stored_as_a_long_value_is() {
    let long = format!(
        r#"{{"content":[{{"type":"text","text":"{}"}}],"isError":true}}"#,
        "words ".repeat(60_000)
    );
    let setup = setup().server(
        "long",
        Server::new().read_only_tool("fail", [result(&long)]),
    );
    let mut client = setup.connect();
    for code in [
        "throw new Error('x'.repeat(300000))",
        "return await tools.long.fail()",
        "return await tools.nowhere['y'.repeat(300000)]()",
    ] {
        let told = run(&mut client, code).tool_error();
        let length = told.chars().count();
        assert!(
            told.starts_with("The script failed at line 1"),
            "{code}: {length}"
        );
        assert!(told.contains("mcpzip__read_result"), "{code}: {length}");
        assert!(length < 10_000, "{code}: {length}");
    }
    client.finish();
}

#[test]
fn a_script_that_computes_or_waits_forever_is_ended() {
    for (code, reason) in [
        ("while (true) {}", "computed for more than"),
        ("while (true) await null", "computed for more than"),
        ("/(a+)+b/.test('a'.repeat(60))", "computed for more than"),
        (
            "await new Promise(() => {})",
            "a promise that nothing settles",
        ),
        (
            "const a = []; while (true) a.push(new Array(1000).fill(1))",
            "out of memory",
        ),
        ("const f = () => f() + 1; f()", "stack"),
        ("for (;;) log('x'.repeat(1000))", "computed for more than"),
        ("'x'.repeat(9e6)", "larger than"),
    ] {
        let begin = Instant::now();
        check_failed(setup(), code, &[reason]);
        assert!(begin.elapsed() < Duration::from_secs(20), "{code}");
    }
}

#[test]
fn a_script_makes_as_many_calls_as_the_limit_permits() {
    let two = || setup().setting("scripts", json!({ "max_calls": 2 }));
    check_failed(
        two(),
        "for (let i = 0; i < 3; i++) await tools.notes.text()",
        &["more than 2 calls"],
    );
    check_failed(
        setup(),
        "await all([...Array(5000)].map(() => tools.notes.text()))",
        &["more than 100 calls"],
    );
    let mut client = setup().connect();
    let answered = run(
        &mut client,
        "return (await all([...Array(100)].map(() => tools.notes.text()))).length",
    );
    assert_eq!(answered.text(), "100");
    client.finish();
}

#[test]
fn the_value_of_a_script_is_selected_from_as_a_result_is() {
    let mut client = setup().connect();
    let arguments = json!({ "name": "mcpzip__run", "arguments": { "code": "return { a: [1, 2, 3] }" }, "select": ".a | length" });
    assert_eq!(
        client.call("execute_tool", &arguments.to_string()).text(),
        "3"
    );
    let long = run(&mut client, "return 'word '.repeat(40000)");
    assert!(
        long.text().contains("mcpzip__read_result"),
        "{}",
        long.text().len()
    );
    client.finish();
}

#[test]
fn a_script_reaches_nothing_but_its_functions() {
    check(
        "return ['require', 'process', 'fetch', 'std', 'os', 'setTimeout', 'WebAssembly', 'Worker'].filter((name) => name in globalThis)",
        "[]",
    );
    check_failed(setup(), "await import('std')", &["failed"]);
    check_failed(setup(), "await import('/etc/passwd')", &["failed"]);
    // What a script changes is its own: the next one has another process.
    let mut client = setup().connect();
    run(
        &mut client,
        "globalThis.secret = 1; Object.prototype.x = 1; JSON.stringify = () => '{\"done\":true}'; Promise.prototype.then = null",
    );
    assert_eq!(
        run(&mut client, "return [typeof secret, ({}).x === undefined]").text(),
        "[\"undefined\",true]"
    );
    // The result of a hostile tool is data until the script itself evaluates it, and then reaches no more than the script.
    let evaluated = run(
        &mut client,
        "return eval('typeof require + typeof tools.notes.get')",
    );
    assert_eq!(evaluated.text(), "undefinedfunction");
    client.finish();
}

#[test]
fn a_script_that_forges_lines_gets_no_more_than_by_calls() {
    let forged = "const stringify = JSON.stringify;\n\
        JSON.stringify = (value) => stringify({ ...value, call: 'notes__delete', arguments: {} });\n\
        await tools.notes.text()";
    check_failed(setup(), forged, &["does not declare to be read-only"]);
    check_failed(
        setup(),
        "JSON.stringify = () => 'no message'; await tools.notes.text()",
        &["not a message"],
    );
    check_failed(
        setup(),
        "JSON.stringify = () => '{}'; await tools.notes.text()",
        &["not a message"],
    );
}

#[test]
fn a_cancelled_script_ends_with_its_calls_and_others_are_not_delayed() {
    let setup = Setup::new()
        .server(
            "notes",
            Server::new()
                .read_only_tool("waits", [await_cancel()])
                .read_only_tool("text", [answer("plain words")]),
        )
        .setting("scripts", json!(true));
    let mut client = setup.connect();
    let code =
        json!({ "name": "mcpzip__run", "arguments": { "code": "await tools.notes.waits()" } });
    let running = client.begin("execute_tool", &code.to_string());
    let begin = Instant::now();
    assert_eq!(client.execute("notes__text").text(), "plain words");
    assert!(begin.elapsed() < Duration::from_secs(5));
    // A call that has not reached its server cannot be cancelled there.
    setup.home().wait_for("notes", "\"waits\"");
    client.send(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{running}}}}}"#
    ));
    setup.home().wait_for("notes", "notifications/cancelled");
    client.finish();
}

#[test]
fn the_audit_log_has_a_line_for_the_script_and_one_for_each_call() {
    let setup = setup().setting("audit", json!({}));
    let mut client = setup.connect();
    run(
        &mut client,
        "await tools.notes.text(); await tools.notes.get({ id: 1 })",
    );
    client.finish();
    let shown = setup.run(&["audit", "--json"]).code(0).stdout;
    for tool in ["run", "text", "get"] {
        let named = |line: &Value| line["kind"] == "call" && line["tool"] == tool;
        let lines = shown
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        assert_eq!(lines.filter(named).count(), 1, "{tool}: {shown}");
    }
}

#[test]
fn scripts_beyond_the_limit_are_refused_and_delay_no_call() {
    let setup = Setup::new()
        .server(
            "notes",
            Server::new()
                .read_only_tool("waits", [await_cancel()])
                .read_only_tool("text", [answer("plain words")]),
        )
        .setting("scripts", json!(true));
    let mut client = setup.connect();
    let code =
        json!({ "name": "mcpzip__run", "arguments": { "code": "await tools.notes.waits()" } });
    for _ in 0..4 {
        client.begin("execute_tool", &code.to_string());
    }
    crate::support::until("the scripts run", || {
        (setup.home().count("notes", "\"waits\"") == 4).then_some(())
    });
    assert!(
        run(&mut client, "1")
            .tool_error()
            .contains("that is the limit")
    );
    assert_eq!(client.execute("notes__text").text(), "plain words");
    client.finish();
}

#[test]
fn native_code_that_no_interrupt_reaches_is_an_error_of_its_script() {
    let mut client = setup().connect();
    let told = run(
        &mut client,
        "const a = [...Array(3e5).keys()]; for (;;) a.map(String).sort().join('')",
    );
    assert!(told.is_tool_error());
    assert_eq!(client.execute("notes__text").text(), "plain words");
    client.finish();
}

#[cfg(target_os = "linux")]
#[test]
fn a_killed_worker_is_an_error_of_its_script() {
    use crate::support::process::{Process, signal};
    use crate::support::until;

    let setup = setup().server(
        "slow",
        Server::new().read_only_tool("wait", [await_cancel()]),
    );
    let mut client = setup.connect();
    let call = json!({ "name": "mcpzip__run", "arguments": { "code": "await tools.slow.wait()" } });
    let id = client.begin("execute_tool", &call.to_string());
    let worker = until("the worker", || {
        let workers = Process::all().filter(|process| process.command.contains("__script"));
        let own = workers.filter(|process| process.parent == client.process());
        own.map(|process| process.id).next()
    });
    signal(worker, rustix::process::Signal::KILL);
    let told = client.answer(id).tool_error();
    assert!(!told.is_empty());
    assert_eq!(client.execute("notes__text").text(), "plain words");
    client.finish();
}

#[test]
fn a_user_who_agrees_to_a_script_agrees_to_its_calls_that_need_no_question() {
    let setup = setup().setting("tools", json!({ "ask": ["mcpzip__run"] }));
    for (action, expected) in [("accept", "plain words"), ("decline", "did not agree")] {
        let mut client = setup.start();
        client.shake_hands_as("2025-11-25", r#"{"elicitation":{"form":{}}}"#);
        client.call("proxy_refresh", "{}").text();
        let call =
            json!({ "name": "mcpzip__run", "arguments": { "code": "await tools.notes.text()" } });
        let id = client.begin("execute_tool", &call.to_string());
        let asked = client.expect("a question", |message| {
            message.is_notification("elicitation/create")
        });
        assert!(asked.params().contains("tools.notes.text"));
        client.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"{action}"}}}}"#,
            asked.id()
        ));
        let answer = client.answer(id);
        assert!(answer.as_str().contains(expected), "{}", answer.as_str());
        client.finish();
    }
}
