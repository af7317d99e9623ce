//! Input that is no proper request: each gets the right error, and the next request works.

use crate::support::script::{answer, await_cancel};
use crate::support::{Client, Server, Setup, until};

/// Sends `line` and fails unless it is answered with this id and error, and the next request works.
#[track_caller]
fn check(client: &mut Client, line: &[u8], id: &str, code: i64) {
    client.send_bytes(&[line, b"\n"].concat());
    let answer = client.next();
    assert_eq!(
        (answer.id(), answer.error_code()),
        (id, code),
        "{} for {}",
        answer.as_str(),
        shown(line)
    );
    assert_eq!(
        client.ask("ping", "{}").result(),
        "{}",
        "after {}",
        shown(line)
    );
}

fn shown(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned()
}

#[test]
fn a_malformed_line_gets_its_error_and_costs_no_other() {
    let mut client = Setup::new().connect();
    for (line, id, code) in [
        ("nonsense", "null", -32700),
        ("{", "null", -32700),
        (
            r#"{"jsonrpc":"2.0","id":40,"method":"ping","params":{"a":}}"#,
            "40",
            -32700,
        ),
        (
            r#"{"jsonrpc":"2.0","id":41,"method":"ping"}}"#,
            "41",
            -32700,
        ),
        (
            r#"{"jsonrpc":"2.0","id":42,"method":"tools/call","params":{"x":NaN}}"#,
            "42",
            -32700,
        ),
        ("7", "null", -32600),
        (r#""text""#, "null", -32600),
        ("null", "null", -32600),
        (r#"{"id":43,"method":"ping"}"#, "43", -32600),
        (r#"{"jsonrpc":"1.0","id":44,"method":"ping"}"#, "44", -32600),
        (r#"{"jsonrpc":2.0,"id":45,"method":"ping"}"#, "45", -32600),
        (r#"{"jsonrpc":"2.0","id":46,"method":5}"#, "46", -32600),
        (
            r#"{"jsonrpc":"2.0","id":47,"method":"ping","params":[1]}"#,
            "47",
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":48,"method":"ping","params":"x"}"#,
            "48",
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            "null",
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            "null",
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
            "null",
            -32600,
        ),
        (
            r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
            "null",
            -32600,
        ),
        (r#"{"jsonrpc":"2.0","id":49}"#, "49", -32600),
        (
            r#"{"jsonrpc":"2.0","id":50,"method":"no/such"}"#,
            "50",
            -32601,
        ),
        (r#"{"jsonrpc":"2.0","id":51,"method":""}"#, "51", -32601),
        (
            r#"{"jsonrpc":"2.0","id":52,"method":"tools/call"}"#,
            "52",
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":53,"method":"tools/call","params":{"name":5}}"#,
            "53",
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":54,"method":"tools/call","params":{"name":"no_such"}}"#,
            "54",
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":55,"method":"tools/call","params":{"name":"search_tools","arguments":[]}}"#,
            "55",
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":56,"method":"tools/call","params":{"name":"search_tools","arguments":"{}"}}"#,
            "56",
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":57,"method":"initialize"}"#,
            "57",
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":58,"method":"initialize","params":{"protocolVersion":5}}"#,
            "58",
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":59,"method":"tasks/list"}"#,
            "59",
            -32601,
        ),
        (
            r#"[{"jsonrpc":"2.0","id":60,"method":"ping"}]"#,
            "null",
            -32600,
        ),
        ("[]", "null", -32600),
        ("[", "null", -32700),
    ] {
        check(&mut client, line.as_bytes(), id, code);
    }
    check(
        &mut client,
        b"{\"jsonrpc\":\"2.0\",\"id\":61,\"method\":\"p\xff\"}",
        "61",
        -32700,
    );
    check(&mut client, b"\xfe\xff\x00", "null", -32700);
    client.finish();
}

#[test]
fn blank_lines_and_answers_nobody_waits_for_are_passed_over() {
    let mut client = Setup::new().connect();
    client.send_bytes(b"\n\r\n   \n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/no_such","params":{}}"#);
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":999}}"#);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#);
    assert_eq!(client.ask("ping", "{}").result(), "{}");
    assert!(client.left_over().is_empty(), "{:?}", client.left_over());
    client.finish();
}

#[test]
fn the_arguments_of_a_meta_tool_are_for_the_agent_to_correct() {
    let mut client = Setup::new().connect();
    for (tool, arguments) in [
        ("search_tools", "{}"),
        ("search_tools", r#"{"query":""}"#),
        ("search_tools", r#"{"query":5}"#),
        ("search_tools", r#"{"query":"x","limit":0}"#),
        ("search_tools", r#"{"query":"x","limit":"many"}"#),
        ("search_tools", r#"{"query":"x","server":"no-such"}"#),
        ("describe_tool", "{}"),
        ("describe_tool", r#"{"names":"x"}"#),
        ("describe_tool", r#"{"name":"no_such__tool"}"#),
        ("execute_tool", "{}"),
        ("execute_tool", r#"{"name":5}"#),
        ("execute_tool", r#"{"name":"a__t","timeout":-1}"#),
        ("execute_tool", r#"{"name":"no_such__tool"}"#),
    ] {
        let answer = client.call(tool, arguments);
        assert!(!answer.tool_error().is_empty(), "{tool} {arguments}");
    }
    client.finish();
}

#[test]
fn a_line_of_100_mb_is_refused_by_its_size() {
    let mut client = Setup::new().connect();
    let line = [
        br#"{"jsonrpc":"2.0","id":70,"method":"ping","params":{"x":""#.as_slice(),
        &vec![b'x'; 100_000_000],
        br#""}}"#,
    ]
    .concat();
    client.send_bytes(&[&line[..], b"\n"].concat());
    let answer = client.next();
    assert_eq!((answer.id(), answer.error_code()), ("70", -32600));
    assert!(
        answer.as_str().contains(&line.len().to_string()),
        "{}",
        answer.as_str()
    );
    assert_eq!(client.ask("ping", "{}").result(), "{}");
    client.finish();
}

#[test]
fn an_id_may_be_used_again_only_after_its_answer() {
    let server = Server::new()
        .tool("t", [await_cancel()])
        .tool("u", [answer("done")]);
    let mut client = Setup::new().server("a", server).connect();
    let call = |tool: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"execute_tool","arguments":{{"name":"a__{tool}"}}}}}}"#
        )
    };
    client.send(&call("t"));
    until("the call to arrive", || {
        (client.home().count("a", "tools/call") == 1).then_some(())
    });
    client.send(&call("u"));
    assert_eq!(client.answer_to(r#""x""#).error_code(), -32600);
    client
        .send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}"#);
    until("the cancellation to arrive", || {
        (client.home().count("a", "heard") == 1).then_some(())
    });
    client.send(&call("u"));
    assert_eq!(client.answer_to(r#""x""#).text(), "done");
    client.finish();
}
