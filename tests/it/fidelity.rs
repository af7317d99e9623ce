//! What a server says reaches the client in the server's own bytes, and the other way round: the table of
//! what typed models lose.

use serde_json::json;

use crate::support::script::{answer, echo, result};
use crate::support::{Message, Server, Setup};

/// Results that a careless reader drops, rewrites, misreads or chokes on.
fn odd_results() -> Vec<String> {
    let deep = format!(
        r#"{{"content":[],"structuredContent":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let written = [
        r#"{"content":[{"type":"text","text":"x","later":{"b":1,"a":2},"annotations":{"audience":["user"],"x":2}}],"extra":[1]}"#,
        r#"{"content":[{"type":"hologram","data":[1,2],"size":{"z":1}}]}"#,
        r#"{"content":[{"type":"resource","resource":{"uri":"x:y","text":"t","blob":"AA==","annotations":{"a":1}}}]}"#,
        r#"{"structuredContent":{"z":1,"a":{"y":1,"b":2}},"_meta":{"z":1,"a":2},"content":[]}"#,
        r#"{ "content" :	[ {"text":"\u00e9\/\u0041é","type":"text"} ] , "isError" : false }"#,
        r#"{"content":[],"structuredContent":{"a":1.0,"b":1,"c":-0.0,"d":1E+2,"e":9223372036854775809}}"#,
        r#"{"content":[],"structuredContent":{"big":18446744073709551617}}"#,
        r#"{"content":[],"structuredContent":{"huge":1e400}}"#,
        r#"{"content":[{"type":"text","text":"cut \ud83d"}]}"#,
        r#"{"content":[],"structuredContent":null}"#,
        r#"{"content":[],"structuredContent":{"a":1,"a":2},"extra":1,"extra":2}"#,
        r#"{"content":[{"type":"text","text":"kept"}],"tools":[{"name":"not a list"}],"nextCursor":"x"}"#,
        r#"{"messages":[{"role":"user","content":{"type":"text","text":"no prompt"}}],"content":[]}"#,
        r#"{"contents":[{"uri":"x:y","text":"not read"}],"action":"accept","content":[]}"#,
        r#"{"content":[{"type":"text","text":"it failed"}],"isError":true}"#,
        r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"},{"type":"resource_link","uri":"x:y","name":"n"}]}"#,
        r#"{"id":99,"method":"notifications/cancelled","jsonrpc":"1.0","content":[]}"#,
        "{\"content\":[{\"type\":\"text\",\"text\":\"\u{2028}\u{1f600}\u{7f}\"}]}",
        "{}",
    ];
    written
        .into_iter()
        .map(str::to_owned)
        .chain([deep])
        .collect()
}

fn server_of(results: &[String]) -> Server {
    let tool = |server: Server, (at, json): (usize, &String)| {
        server.tool(&format!("t{at}"), [result(json)])
    };
    results.iter().enumerate().fold(Server::new(), tool)
}

/// A home in which no result is too large.
fn whole(server: Server) -> Setup {
    Setup::new()
        .server("a", server)
        .setting("results", json!({ "budget": 0 }))
}

#[track_caller]
fn is_same(answer: &Message, expected: &str) {
    let came = answer.result();
    assert!(came == expected, "wanted {expected:.300}\ncame {came:.300}");
}

#[test]
fn a_result_passes_byte_for_byte() {
    let results = odd_results();
    let mut client = whole(server_of(&results)).connect();
    for (at, expected) in results.iter().enumerate() {
        let answer = client.execute(&format!("a__t{at}"));
        is_same(&answer, expected);
    }
    client.finish();
}

#[test]
fn a_modern_client_gets_what_its_revision_requires_in_front_and_the_rest_untouched() {
    let results = odd_results();
    let mut client = whole(server_of(&results)).start();
    for (at, sent) in results.iter().enumerate() {
        let members = format!(r#""name":"execute_tool","arguments":{{"name":"a__t{at}"}}"#);
        let answer = client.ask_modern("tools/call", &members);
        let rest = sent.strip_prefix('{').unwrap().trim_start();
        let comma = if rest == "}" { "" } else { "," };
        let expected = format!(r#"{{"resultType":"complete"{comma}{rest}"#);
        is_same(&answer, &expected);
    }
    client.finish();
}

#[test]
fn a_result_that_has_its_type_keeps_it_as_it_is() {
    let sent = r#"{"content":[],"resultType":"input_required","inputRequests":{}}"#;
    let mut client = Setup::new()
        .server("a", Server::new().modern().tool("t", [result(sent)]))
        .start();
    let answer = client.ask_modern(
        "tools/call",
        r#""name":"execute_tool","arguments":{"name":"a__t"}"#,
    );
    assert_eq!(answer.result(), sent);
    client.finish();
}

#[test]
fn arguments_pass_byte_for_byte() {
    let deep = format!(
        r#"{{"deep":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let written = [
        r#"{"z":1,"a":{"y":1,"b":2}}"#,
        r#"{ "spaced" : [ 1 , 2 ] }"#,
        r#"{"n":1.0,"m":-0.0,"e":1E+2}"#,
        r#"{"big":18446744073709551617}"#,
        r#"{"huge":1e400}"#,
        r#"{"cut":"\ud83d"}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"escaped":"\u00e9\/\u0041é"}"#,
        r#"{"name":"inner","arguments":{"timeout":5},"_meta":{}}"#,
        r#"{}"#,
        &deep,
    ];
    let mut client = whole(Server::new().tool("t", [echo()])).connect();
    for sent in written {
        let answer = client.execute_with("a__t", sent);
        let expected =
            format!(r#"{{"content":[],"structuredContent":{{"name":"t","arguments":{sent}}}}}"#);
        is_same(&answer, &expected);
    }
    client.finish();
}

#[test]
fn a_megabyte_of_text_passes_whole_in_both_directions() {
    let text = "é\\n".repeat(500_000);
    let mut client = whole(Server::new().tool("t", [echo()])).connect();
    let answer = client.execute_with("a__t", &format!(r#"{{"text":"{text}"}}"#));
    assert!(answer.result().contains(&text));
    client.finish();
}

#[test]
fn meta_of_the_request_reaches_the_tool_without_what_belongs_to_this_hop() {
    let mut client = whole(Server::new().tool("t", [echo()])).connect();
    let params = r#"{"_meta":{"traceparent":"00-1-2-3","progressToken":"p","x":1e400},"name":"execute_tool","arguments":{"name":"a__t"}}"#;
    let answer = client.ask("tools/call", params);
    assert!(
        answer
            .result()
            .contains(r#""traceparent":"00-1-2-3","x":1e400"#),
        "{}",
        answer.result()
    );
    assert!(
        !answer.result().contains(r#""progressToken":"p""#),
        "the token is this hop's: {}",
        answer.result()
    );
    client.finish();
}

#[test]
fn a_tool_is_described_in_its_own_bytes() {
    let definition = r#"{"name":"t", "inputSchema":{"type":"object","properties":{"z":{"const":1e400},"a":{"default":"\ud83d"}},"x-later":[1.0]},"later":{"b":1,"a":2},"execution":{"taskSupport":"optional"}}"#;
    let server = Server::new()
        .tool_as("t", definition, [answer("done")])
        .instructions("Mind the gap.");
    let mut client = Setup::new().server("a", server).connect();
    let described = client.call("describe_tool", r#"{"name":"a__t"}"#).text();
    assert!(described.contains(definition), "{described}");
    assert!(described.contains("Mind the gap."), "{described}");
    let twice = client
        .call("describe_tool", r#"{"names":["a__t","t"]}"#)
        .text();
    assert_eq!(twice.matches("Mind the gap.").count(), 1, "{twice}");
    assert_eq!(twice.matches(definition).count(), 2, "{twice}");
    client.finish();
}
