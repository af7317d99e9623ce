//! Direct mode: every tool by itself, everything in its server's own bytes.

use crate::support::gateway::Gateway;
use crate::support::script::{answer, change_tools, echo, error, line, result, sleep};
use crate::support::{Client, Server, Setup};

/// A gateway whose tool `a__t` wants arguments repeated in headers.
fn mirroring() -> Gateway {
    let tool = r#"{"name":"t","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"count":{"type":"integer","x-mcp-header":"Count"},"plain":{"type":"string"}}}}"#;
    Setup::new()
        .server("a", Server::new().tool_as("t", tool, [answer("done")]))
        .serve(&["--direct"])
}

#[test]
fn headers_that_repeat_arguments_say_what_the_arguments_say() {
    let gateway = mirroring();
    let send = |arguments: &str, headers: &[(&str, &str)]| {
        let members = format!(r#""name":"a__t","arguments":{arguments}"#);
        let call = gateway.modern("tools/call", &members);
        let all = headers.iter();
        let call = all.fold(call, |call, (name, value)| call.header(name, value));
        call.send()
    };
    for (arguments, headers) in [
        (
            r#"{"region":"Hello"}"#,
            &[("Mcp-Param-Region", "Hello")][..],
        ),
        (
            r#"{"region":"Hello"}"#,
            &[("mcp-param-region", "=?base64?SGVsbG8=?=")],
        ),
        (
            r#"{"region":"SGVsbG8="}"#,
            &[("Mcp-Param-Region", "SGVsbG8=")],
        ),
        (
            r#"{"region":"a","count":3}"#,
            &[("Mcp-Param-Region", "a"), ("Mcp-Param-Count", "3")],
        ),
        (r#"{"count":3.0}"#, &[("Mcp-Param-Count", "3")]),
        (r#"{"region":null,"plain":"x"}"#, &[]),
        ("{}", &[("Mcp-Param-Other", "nobody's")]),
    ] {
        let answer = send(arguments, headers);
        assert_eq!(answer.status, 200, "{arguments} {headers:?}: {answer:?}");
        assert_eq!(answer.message().text(), "done");
    }
    for (arguments, headers) in [
        (r#"{"region":"Hello"}"#, &[][..]),
        (r#"{"region":"Hello"}"#, &[("Mcp-Param-Region", "other")]),
        (r#"{"region":"Hello"}"#, &[("Mcp-Param-Region", "hello")]),
        (
            r#"{"region":"Hello"}"#,
            &[("Mcp-Param-Region", "=?base64?SGVsbG8?=")],
        ),
        (
            r#"{"region":"Hello"}"#,
            &[("Mcp-Param-Region", "=?base64?SGVs!!!bG8=?=")],
        ),
        (
            r#"{"region":"Hello"}"#,
            &[("Mcp-Param-Region", "Hello"), ("Mcp-Param-Region", "other")],
        ),
        (r#"{"count":3}"#, &[("Mcp-Param-Count", "4")]),
        ("{}", &[("Mcp-Param-Region", "Hello")]),
    ] {
        let answer = send(arguments, headers);
        assert_eq!(answer.fault(), (400, -32020), "{arguments} {headers:?}");
    }
    // A session's calls have no such headers.
    let call = r#"{"name":"a__t","arguments":{"region":"Hello"}}"#;
    let answer = gateway.session().request(1, "tools/call", call).send();
    assert_eq!(answer.message().text(), "done");
}

const DEFINITION: &str = r#"{"description":"odd","name":"t\u0031","inputSchema":{"type":"object","x":1e400},"annotations":{"z":null},"new":"\ud83d"}"#;

fn direct(setup: &Setup) -> Client {
    let mut client = setup.start_with(&["serve", "--direct"]);
    client.shake_hands("2025-11-25");
    client
}

fn names(client: &mut Client) -> Vec<String> {
    let listed = client
        .ask("tools/list", "{}")
        .result()
        .replace("1e400", "1")
        .replace(r"\ud83d", "");
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
fn hear_of_other_tools(client: &mut Client) {
    client.expect("the news", |message| {
        message.is_notification("notifications/tools/list_changed")
    });
}

#[test]
fn every_tool_is_listed_and_called_in_its_servers_own_bytes() {
    let odd = r#"{"content":[{"type":"new"}],"n":1e400,"structuredContent":null,"isError":false}"#;
    let a = Server::new()
        .tool_as("t1", DEFINITION, [result(odd)])
        .tool("echo", [echo()]);
    let b = Server::new().tool(
        "t2",
        [error(
            r#"{"code":-32077,"message":"no","data":{"n":1e400}}"#,
        )],
    );
    let setup = Setup::new().server("a", a).server("b", b);
    let mut client = direct(&setup);
    let listed = client.ask("tools/list", "{}");
    let renamed = DEFINITION.replace(r#""t\u0031""#, r#""a__t1""#);
    assert!(listed.result().contains(&renamed), "{}", listed.as_str());
    assert_eq!(names(&mut client), ["a__t1", "a__echo", "b__t2"]);

    assert_eq!(client.call("a__t1", "{}").result(), odd);
    let refused = client.call("b__t2", "{}");
    assert!(
        refused
            .as_str()
            .ends_with(r#""error":{"code":-32077,"message":"no","data":{"n":1e400}}}"#)
    );
    // Nothing is repaired or filled in.
    let echoed = client.call("a__echo", r#"{"n":"5", "m":1e400}"#);
    assert!(
        echoed
            .result()
            .contains(r#"{"name":"echo","arguments":{"n":"5", "m":1e400}}"#),
        "{}",
        echoed.as_str()
    );
    let bare = client.ask("tools/call", r#"{"name":"a__echo"}"#);
    assert!(
        bare.result()
            .contains(r#""structuredContent":{"name":"echo"}"#),
        "{}",
        bare.as_str()
    );
    client.finish();
}

#[test]
fn names_are_such_that_every_client_takes_them() {
    let long = "x".repeat(80);
    let server = Server::new()
        .tool("dot.ted", [answer("one")])
        .tool(&long, [answer("two")])
        .tool("ok", [answer("three")]);
    let setup = Setup::new().server("s", server);
    let mut client = direct(&setup);
    let listed = names(&mut client);
    assert!(
        listed[0].starts_with("s__dot_ted_") && listed[1].starts_with("s__xxx"),
        "{listed:?}"
    );
    assert_eq!((listed[1].len(), listed[2].as_str()), (64, "s__ok"));
    for (name, text) in listed.iter().zip(["one", "two", "three"]) {
        assert_eq!(client.call(name, "{}").text(), text);
    }
    // A bare name that only one tool has is understood.
    assert_eq!(client.call("ok", "{}").text(), "three");
    for unknown in ["nothing", "search_tools", "mcpzip__status"] {
        assert_eq!(client.call(unknown, "{}").error_code(), -32602, "{unknown}");
    }
    client.finish();

    let mut again = direct(&setup);
    assert_eq!(names(&mut again), listed, "names stay");
    again.finish();
}

#[test]
fn a_long_list_comes_in_pages_and_whole() {
    let many = |prefix: &str, count: usize| {
        (0..count).fold(Server::new(), |server, at| {
            server.tool(&format!("{prefix}{at}"), [answer("fine")])
        })
    };
    let setup = Setup::new()
        .server("a", many("x", 700))
        .server("b", many("y", 400));
    let mut client = direct(&setup);
    let (mut found, mut cursor, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = client.ask("tools/list", &format!("{{{cursor}}}")).value();
        let tools = page["tools"].as_array().unwrap();
        found.extend(
            tools
                .iter()
                .map(|tool| tool["name"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!(r#""cursor":"{next}""#),
            None => break,
        }
    }
    let expected: Vec<String> = (0..700)
        .map(|at| format!("a__x{at}"))
        .chain((0..400).map(|at| format!("b__y{at}")))
        .collect();
    assert_eq!((pages, found), (3, expected));
    assert_eq!(
        client
            .ask("tools/list", r#"{"cursor":"nonsense"}"#)
            .error_code(),
        -32602
    );
    client.finish();
}

#[test]
fn a_modern_server_tells_of_other_tools_and_the_client_hears_of_it() {
    let capabilities = r#"{"tools":{"listChanged":true}}"#;
    let discovered = format!(
        r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{capabilities},"ttlMs":0,"cacheScope":"private"}}"#
    );
    let news = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":$id}}}"#;
    let server = Server::new()
        .modern()
        .tool("old", [answer("old")])
        .on("server/discover", [result(&discovered)])
        .on("subscriptions/listen", [sleep(600), line(news)]);
    let setup = Setup::new().server("s", server);
    let mut client = direct(&setup);
    assert_eq!(names(&mut client), ["s__old"]);
    hear_of_other_tools(&mut client);
    let asked = |text: &str| setup.home().count("s", text);
    crate::support::until("the subscription", || {
        (asked(r#""params":{"notifications":{"toolsListChanged":true},"_meta""#) > 0).then_some(())
    });
    crate::support::until("another list", || {
        (asked(r#""method":"tools/list""#) > 1).then_some(())
    });
    assert_eq!(client.left_over().len(), 0, "nothing is different");
    client.finish();
}

#[test]
fn a_client_is_told_that_the_list_is_another() {
    let other = r#"{"name":"new","inputSchema":{"type":"object"}}"#;
    let setup = Setup::new().server(
        "s",
        Server::new().tool("old", [change_tools(&[other]), answer("changed")]),
    );
    let mut client = direct(&setup);
    assert_eq!(names(&mut client), ["s__old"]);
    hear_of_other_tools(&mut client);
    assert_eq!(client.call("s__old", "{}").text(), "changed");
    hear_of_other_tools(&mut client);
    assert_eq!(names(&mut client), ["s__new"]);
    client.finish();
}

#[test]
fn a_dead_server_is_a_tool_error_and_the_list_holds_the_others() {
    let setup = Setup::new()
        .entry("dead", r#"{"command":"/nowhere/to/be/found"}"#)
        .server("s", Server::new().tool("t", [answer("fine")]));
    let mut client = direct(&setup);
    assert_eq!(names(&mut client), ["s__t"]);
    let text = client.call("dead__t", "{}").tool_error();
    assert!(text.contains("`dead`"), "{text}");
    client.finish();
}

/// Definitions that clients cannot read in a list, each with the same one as it is listed; `None` if it is left out.
fn malformed() -> Vec<(&'static str, Option<&'static str>)> {
    let listed = [
        (
            r#""description":"d""#,
            r#""description":"d","inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"properties":{"a":{}}}"#,
            r#""inputSchema":{"properties":{"a":{}},"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":"object","properties":null,"required":null}"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":"object","properties":{"a":true,"b":false}}"#,
            r#""inputSchema":{"type":"object","properties":{"a":{},"b":{"not":{}}}}"#,
        ),
        (
            r#""inputSchema":{"type":"object"},"description":null"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":"object"},"title":5,"n":1e400"#,
            r#""inputSchema":{"type":"object"},"n":1e400"#,
        ),
        (
            r#""inputSchema":{"type":"object"},"annotations":null"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":"object"},"annotations":{"readOnlyHint":"yes","x":1,"title":"t"}"#,
            r#""inputSchema":{"type":"object"},"annotations":{"x":1,"title":"t"}"#,
        ),
        (
            r#""inputSchema":{"type":"object"},"_meta":"m""#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":"object"},"icons":[{"src":5}]"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":"object"},"execution":{"taskSupport":"x"}"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":"object"},"outputSchema":{"type":"array"}"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r##""inputSchema":{"type":"object"},"outputSchema":{"type":"object","$ref":"#/nosuch"}"##,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"pattern":"("}}}"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"pattern":"(?i)x"}}}"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
        (
            r#""inputSchema":{"type":"object"},"outputSchema":{"type":"object","minProperties":"two"}"#,
            r#""inputSchema":{"type":"object"}"#,
        ),
    ];
    let left_out = [
        r#""inputSchema":5"#,
        r#""inputSchema":{"type":"string"}"#,
        r#""inputSchema":{"type":"object","properties":{"a":5}}"#,
        r#""inputSchema":{"type":"object","required":"a"}"#,
    ];
    let listed = listed.map(|(written, listed)| (written, Some(listed)));
    listed
        .into_iter()
        .chain(left_out.map(|written| (written, None)))
        .collect()
}

#[test]
fn a_malformed_definition_takes_no_other_tool_from_a_client() {
    let mut server = Server::new();
    for (at, (members, _)) in malformed().into_iter().enumerate() {
        let definition = format!(r#"{{"name":"t{at}",{members}}}"#);
        server = server.tool_as(&format!("t{at}"), &definition, [answer("called")]);
    }
    let fine = r#"{"name":"fine","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{"pattern":"^[a-z]{2}$"}}}}"#;
    let setup = Setup::new()
        .server("a", server)
        .server("b", Server::new().tool_as("fine", fine, [answer("done")]));
    let shown = setup
        .clone()
        .setting("show", serde_json::json!(["a__*", "b__*"]));
    let mut clients = [direct(&setup), shown.connect()];
    for client in &mut clients {
        let listed = client.ask("tools/list", "{}");
        let listed = listed.result();
        assert!(
            listed.contains(&fine.replace("fine", "b__fine")),
            "{listed}"
        );
        for (at, (members, expected)) in malformed().into_iter().enumerate() {
            let start = format!(r#"{{"name":"a__t{at}","#);
            match expected {
                Some(expected) => {
                    let whole = format!("{start}{expected}}}");
                    assert!(listed.contains(&whole), "{members}: no {whole} in {listed}");
                }
                None => assert!(!listed.contains(&start), "{members}: {listed}"),
            }
        }
    }
    let [direct, mut shown] = clients;
    assert_eq!(shown.execute("a__t1").text(), "called");
    direct.finish();
    shown.finish();
    let doctor = setup.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("tool-malformed")
            && doctor.stdout.contains("`annotations` must be an object"),
        "{doctor}"
    );
}

#[test]
fn an_error_names_no_tool_that_the_client_does_not_have() {
    let setup = Setup::new().server("a", Server::new().tool("read", [answer("done")]));
    let mut client = direct(&setup);
    let _ = names(&mut client);
    for name in ["zzzzzz", "mcpzip__statu", "tool_stats", "a__zzzzzz"] {
        let error = client.call(name, "{}").as_str().to_owned();
        let text = error.replace(name, "");
        assert!(
            !text.contains("search_tools") && !text.contains("mcpzip__"),
            "{name}: {error}"
        );
    }
    client.finish();
}
