//! The three tools as an agent uses them.

use serde_json::json;

use crate::support::script::{answer, echo, exit, hang, sleep};
use crate::support::{Server, Setup, until};

const CREATE_ISSUE: &str = r#"{"name":"create_issue","description":"Create a new issue in a repository. More follows.","inputSchema":{"type":"object","properties":{"title":{"type":"string"},"count":{"type":"integer"},"draft":{"type":"boolean"},"labels":{"type":"array","items":{"type":"string"}},"kind":{"enum":["bug","task"]}},"required":["title"]},"annotations":{"readOnlyHint":false}}"#;
const GET_WEATHER: &str = r#"{"name":"get_weather","description":"Current weather of a city.","inputSchema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]},"annotations":{"readOnlyHint":true}}"#;

fn two_servers() -> Setup {
    Setup::new()
        .server(
            "git-hub",
            Server::new().tool_as("create_issue", CREATE_ISSUE, [echo()]),
        )
        .server(
            "weather",
            Server::new().tool_as("get_weather", GET_WEATHER, [echo()]),
        )
}

#[test]
fn search_describe_and_execute_work_together() {
    let mut client = two_servers().connect();
    let found = client.search("open an issue in a repository");
    let first = found.lines().next().unwrap();
    assert!(
        first.starts_with("git-hub__create_issue(title: string, "),
        "{found}"
    );
    assert!(first.ends_with("[write]"), "{found}");
    assert_eq!(
        found.lines().nth(1),
        Some("  Create a new issue in a repository."),
        "{found}"
    );
    let described = client
        .call("describe_tool", r#"{"name":"git-hub__create_issue"}"#)
        .text();
    assert!(described.contains(CREATE_ISSUE), "{described}");
    let made = client.execute_with("git-hub__create_issue", r#"{"title":"x"}"#);
    assert_eq!(
        made.value()["structuredContent"]["arguments"],
        json!({ "title": "x" })
    );
    client.finish();
}

#[test]
fn search_narrows_to_a_server_and_a_number() {
    let mut client = two_servers().connect();
    let search = |arguments: serde_json::Value| arguments.to_string();
    client.search("weather");
    for server in ["weather", "Weather", "WEATHER"] {
        let found = client.call(
            "search_tools",
            &search(json!({ "query": "create an issue about weather", "server": server })),
        );
        assert!(
            found.text().starts_with("weather__get_weather"),
            "{server}: {}",
            found.text()
        );
        assert!(
            !found.text().contains("git-hub__"),
            "{server}: {}",
            found.text()
        );
    }
    let found = client
        .call(
            "search_tools",
            &search(json!({ "query": "issue weather", "limit": 1 })),
        )
        .text();
    assert_eq!(
        found.lines().filter(|line| line.contains("__")).count(),
        1,
        "{found}"
    );
    let refused = client
        .call(
            "search_tools",
            &search(json!({ "query": "x", "server": "nobody" })),
        )
        .tool_error();
    assert!(
        refused.contains("nobody") && refused.contains("git-hub"),
        "{refused}"
    );
    client.finish();
}

#[test]
fn when_nothing_fits_search_says_so_and_names_the_servers() {
    let mut client = two_servers().connect();
    let found = client.search("zzyzx qwertyuiop");
    assert!(!found.contains("__"), "{found}");
    assert!(
        found.contains("git-hub") && found.contains("weather"),
        "{found}"
    );
    client.finish();
}

#[test]
fn the_first_search_of_all_waits_for_the_listing() {
    let server = Server::new()
        .at_start([sleep(500)])
        .tool_as("get_weather", GET_WEATHER, [echo()]);
    let mut client = Setup::new().server("weather", server).connect();
    assert!(client.search("weather").starts_with("weather__get_weather"));
    client.finish();
}

#[test]
fn search_answers_from_the_cache_when_no_server_starts() {
    let setup = two_servers();
    let mut client = setup.connect();
    assert!(
        client
            .search("weather of a city")
            .starts_with("weather__get_weather")
    );
    until("both lists", || {
        client
            .search("create an issue")
            .contains("git-hub__create_issue")
            .then_some(())
    });
    client.finish();
    // The same entries, whose programs now never answer.
    let setup = setup
        .server("git-hub", Server::new().at_start([hang()]))
        .server("weather", Server::new().at_start([hang()]));
    let starts = setup.home().starts("weather");
    let mut client = setup.connect();
    assert!(
        client
            .search("weather of a city")
            .starts_with("weather__get_weather")
    );
    assert!(
        client
            .call("describe_tool", r#"{"name":"git-hub__create_issue"}"#)
            .text()
            .contains(CREATE_ISSUE)
    );
    assert!(setup.home().starts("weather") <= starts + 1);
}

#[test]
fn servers_whose_tools_are_missing_are_named_with_the_reason() {
    let setup = Setup::new()
        .server(
            "weather",
            Server::new().tool_as("get_weather", GET_WEATHER, [echo()]),
        )
        .server("broken", Server::new().at_start([exit(3)]))
        .entry("absent", r#"{"command":"/no/such/program"}"#)
        .entry(
            "secretive",
            r#"{"command":"x","env":{"TOKEN":"${NO_SUCH_VARIABLE}"}}"#,
        );
    let mut client = setup.connect();
    let found = until("the reasons", || {
        let found = client.search("weather");
        (!found.contains("still being listed")).then_some(found)
    });
    assert!(found.starts_with("weather__get_weather"), "{found}");
    let missing = found.lines().last().unwrap();
    for part in [
        "broken (",
        "exit status: 3",
        "absent (",
        "secretive (",
        "NO_SUCH_VARIABLE",
    ] {
        assert!(missing.contains(part), "`{part}` is not in {missing}");
    }
    client.finish();
}

#[test]
fn a_name_is_understood_however_it_is_written() {
    let mut client = two_servers().connect();
    for name in [
        "git-hub__create_issue",
        "git-hub:create_issue",
        "git-hub.create_issue",
        "git-hub/create_issue",
        "create_issue",
        "createIssue",
        "CREATE-ISSUE",
        "GitHub__create_issue",
        "mcp__mcpzip__git-hub__create_issue",
    ] {
        let made = client.execute_with(name, r#"{"title":"x"}"#);
        assert_eq!(
            made.value()["structuredContent"]["name"],
            "create_issue",
            "{name}"
        );
    }
    client.finish();
}

#[test]
fn an_unknown_tool_gets_the_nearest() {
    let mut client = two_servers().connect();
    client.search("issue");
    for name in ["git-hub__create_isue", "git-hub__make_issue"] {
        let text = client.execute(name).tool_error();
        assert!(
            text.contains(name) && text.contains("git-hub__create_issue"),
            "{text}"
        );
    }
    let ambiguous = Setup::new()
        .server("a", Server::new().tool("same", [answer("a")]))
        .server("b", Server::new().tool("same", [answer("b")]));
    let mut client = ambiguous.connect();
    until("both lists", || {
        client.search("same").contains("b__same").then_some(())
    });
    let text = client.execute("same").tool_error();
    assert!(
        text.contains("a__same") && text.contains("b__same"),
        "{text}"
    );
}

#[test]
fn arguments_with_one_meaning_are_repaired() {
    let mut client = two_servers().connect();
    for (sent, expected) in [
        (json!(r#"{"title":"x"}"#), json!({ "title": "x" })),
        (json!(r#""{\"title\":\"x\"}""#), json!({ "title": "x" })),
        (
            json!({ "title": "x", "count": "3" }),
            json!({ "title": "x", "count": 3 }),
        ),
        (
            json!({ "title": "x", "draft": "true" }),
            json!({ "title": "x", "draft": true }),
        ),
        (
            json!({ "title": "x", "labels": "one" }),
            json!({ "title": "x", "labels": ["one"] }),
        ),
        (
            json!({ "title": "x", "count": null }),
            json!({ "title": "x" }),
        ),
    ] {
        let made = client.execute_with("git-hub__create_issue", &sent.to_string());
        assert_eq!(
            made.value()["structuredContent"]["arguments"],
            expected,
            "{sent}"
        );
    }
    client.finish();
}

#[test]
fn arguments_that_do_not_fit_are_not_sent_and_each_fault_is_named() {
    let setup = two_servers();
    let mut client = setup.connect();
    for (sent, parts) in [
        (json!({}), vec!["title", "required"]),
        (json!({ "title": 5, "kind": "other" }), vec!["kind", "bug"]),
        (
            json!({ "title": "x", "labels": [1, {}] }),
            vec!["labels[1]"],
        ),
        (json!([1]), vec!["object"]),
    ] {
        let text = client
            .execute_with("git-hub__create_issue", &sent.to_string())
            .tool_error();
        assert!(
            text.contains("git-hub__create_issue(title: string"),
            "no signature: {text}"
        );
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in {text}");
        }
    }
    assert_eq!(setup.home().count("git-hub", "tools/call"), 0);
    client.finish();
}

#[test]
fn a_schema_that_does_not_compile_blocks_nothing() {
    let broken =
        r#"{"name":"t","inputSchema":{"type":"nonsense","properties":{"a":{"pattern":"("}}}}"#;
    let mut client = Setup::new()
        .server("a", Server::new().tool_as("t", broken, [echo()]))
        .connect();
    let answer = client.execute_with("a__t", r#"{"a":[1]}"#);
    assert_eq!(
        answer.value()["structuredContent"]["arguments"],
        json!({ "a": [1] })
    );
    client.finish();
}

#[test]
fn the_timeout_of_a_call_shortens_and_lengthens() {
    let server = Server::new()
        .tool("hang", [hang()])
        .tool("slow", [sleep(1500), answer("done")]);
    let setup = Setup::new()
        .server("a", server)
        .setting("call_timeout", json!("1s"));
    let mut client = setup.connect();
    client.search("hang");
    let id = client.begin("execute_tool", r#"{"name":"a__slow","timeout":20}"#);
    let text = client
        .call("execute_tool", r#"{"name":"a__hang","timeout":0.2}"#)
        .tool_error();
    assert!(text.contains("200ms") && text.contains("`a`"), "{text}");
    assert!(client.execute("a__slow").tool_error().contains("1s"));
    assert_eq!(client.answer(id).text(), "done");
    client.finish();
}

#[test]
fn status_shows_every_server_under_each_of_its_names() {
    let setup = two_servers()
        .server("broken", Server::new().at_start([exit(3)]))
        .server_with("off", Server::new(), json!({ "disabled": true }))
        .entry(
            "secretive",
            r#"{"command":"x","env":{"TOKEN":"${NO_SUCH_VARIABLE}"}}"#,
        );
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    let direct = client.call("proxy_status", "{}").text();
    let found = client.execute("mcpzip__status").text();
    for status in [direct, found] {
        for part in [
            "git-hub: ready, 1 tool",
            "weather: ready, 1 tool",
            "broken: failed, 0 tools",
            "off: disabled",
            "secretive: faulty",
            "NO_SUCH_VARIABLE",
        ] {
            assert!(status.contains(part), "`{part}` is not in {status}");
        }
    }
    assert!(
        client
            .search("state of the connected servers")
            .contains("mcpzip__status")
    );
    client.finish();
}

#[test]
fn the_names_of_built_in_tools_in_mcpzip_0_1_are_executed_by_the_same_rules() {
    let mut client = two_servers().connect();
    assert!(client.execute("proxy_status").text().contains("weather: "));
    let one = client.execute_with("proxy_refresh", r#"{"server":"weather"}"#);
    assert!(one.text().contains("weather: ready"));
    client.finish();
    let mut client = two_servers()
        .setting("tools", json!({ "deny": ["mcpzip__*"] }))
        .connect();
    for name in ["proxy_status", "proxy_refresh"] {
        assert!(client.execute(name).is_tool_error(), "{name}");
    }
    client.finish();
    // A server that is meant by the name goes first, also one that does not work.
    let mut client = two_servers()
        .server("proxy", Server::new().at_start([exit(3)]))
        .connect();
    let told = client.execute("proxy_status");
    assert!(told.is_tool_error(), "{}", told.as_str());
    client.finish();
}

#[test]
fn args_is_another_name_for_the_arguments_of_a_call() {
    let mut client = two_servers().connect();
    let call = r#"{"name":"git-hub__create_issue","args":{"title":"x"}}"#;
    let received =
        |answer: crate::support::Message| answer.value()["structuredContent"]["arguments"].clone();
    assert_eq!(
        received(client.call("execute_tool", call)),
        json!({ "title": "x" })
    );
    let several = client.call("execute_tool", &format!(r#"{{"calls":[{call}]}}"#));
    assert!(several.as_str().contains(r#"title"#) && !several.is_tool_error());
    let both = r#"{"name":"git-hub__create_issue","args":{"title":"x"},"arguments":{"title":"y"}}"#;
    let told = client.call("execute_tool", both).tool_error();
    assert!(told.contains("give either"), "{told}");
    let none = r#"{"name":"git-hub__create_issue","args":{"title":"x"},"arguments":null}"#;
    assert_eq!(
        received(client.call("execute_tool", none)),
        json!({ "title": "x" })
    );
    client.finish();
}

#[test]
fn a_refresh_lists_anew_one_server_or_all() {
    let setup = two_servers();
    let mut client = setup.connect();
    client.call("proxy_refresh", "{}").text();
    let listed = |server: &str| setup.home().count(server, "tools/list");
    let before = (listed("git-hub"), listed("weather"));
    client
        .call("proxy_refresh", r#"{"server":"weather"}"#)
        .text();
    assert_eq!(
        (listed("git-hub"), listed("weather")),
        (before.0, before.1 + 1)
    );
    client.execute_with("mcpzip__refresh", "{}").text();
    assert!(listed("git-hub") > before.0 && listed("weather") > before.1 + 1);
    assert!(
        client
            .call("proxy_refresh", r#"{"server":"nobody"}"#)
            .is_tool_error()
    );
    client.finish();
}

#[test]
fn a_disabled_server_is_not_started_and_says_so() {
    let tool = Server::new().tool("t", [answer("done")]);
    let setup = Setup::new().server_with("off", tool, json!({ "disabled": true }));
    let mut client = setup.connect();
    let text = client.execute("off__t").tool_error();
    assert!(text.contains("disabled"), "{text}");
    assert!(!client.search("t").contains("off__t"));
    client.finish();
    assert_eq!(setup.home().starts("off"), 0);
}

#[test]
fn a_missing_variable_costs_its_server_alone() {
    let setup = two_servers().entry(
        "secretive",
        r#"{"command":"x","env":{"TOKEN":"${NO_SUCH_VARIABLE}"}}"#,
    );
    let mut client = setup.connect();
    assert!(client.search("weather").starts_with("weather__get_weather"));
    let text = client.execute("secretive__t").tool_error();
    assert!(
        text.contains("secretive") && text.contains("NO_SUCH_VARIABLE"),
        "{text}"
    );
    client.finish();
}

#[test]
fn a_search_finds_mcpzips_own_tools_only_when_it_is_about_them() {
    let files = Server::new()
        .tool("read_file", [answer("text")])
        .tool("list_directory", [answer("names")]);
    let mut client = Setup::new().server("files", files).connect();
    for query in [
        "order a pizza",
        "read a document",
        "weather tomorrow",
        "status of my order",
        "result of the match",
        "log a workout",
    ] {
        let found = client.search(query);
        assert!(!found.contains("mcpzip__"), "{query}: {found}");
    }
    for (query, tool) in [
        ("status of the servers", "mcpzip__status"),
        ("mcpzip statistics", "mcpzip__stats"),
        ("the log of a server", "mcpzip__tail_log"),
        ("read on in a stored result", "mcpzip__read_result"),
        ("reconnect a failed server", "mcpzip__refresh"),
    ] {
        let found = client.search(query);
        assert!(found.contains(tool), "{query}: {found}");
    }
    let own = client.call("search_tools", r#"{"query":"read on","server":"mcpzip"}"#);
    assert!(own.text().contains("mcpzip__read_result"), "{own:?}");
    client.finish();
}
