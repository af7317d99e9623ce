//! Tools as the user adapted them (`tools.override`).

use serde_json::{Value, json};

use crate::support::http::{HttpServer, legacy};
use crate::support::script::{answer, ask, echo, line, result};
use crate::support::{Client, Server, Setup};

const SECRET: &str = "acme-very-secret-repository";

fn tracker() -> Server {
    let create = json!({
        "name": "create_issue",
        "description": "Creates an issue in any repository.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "title": { "type": "string" },
                "repo": { "type": "string", "description": "The repository." },
                "labels": { "type": "array", "items": { "type": "string" } },
                "draft": { "type": "boolean", "description": "Whether it is a draft." },
            },
            "required": ["title", "repo", "labels"],
            "additionalProperties": false,
        },
    });
    let other = |name: &str| json!({ "name": name, "description": "Another.", "inputSchema": { "type": "object" } });
    Server::new()
        .tool_as("create_issue", &create.to_string(), [echo()])
        .tool_as("close_issue", &other("close_issue").to_string(), [echo()])
}

fn overridden(tools: Value) -> Setup {
    Setup::new().variable("THE_REPO", SECRET).server_with(
        "tracker",
        tracker(),
        json!({ "tools": tools }),
    )
}

fn adapted() -> Setup {
    overridden(json!({ "override": { "create_issue": {
        "name": "new_ticket",
        "description": "Files a ticket for the team.",
        "arguments": {
            "repo": { "fixed": "${THE_REPO}" },
            "labels": { "default": ["triage"] },
            "draft": { "hidden": true },
        },
    } } }))
}

/// The arguments that the server got last.
fn got(setup: &Setup) -> Value {
    let log = setup.home().log("tracker");
    let mut calls = log.lines().filter(|line| line.contains("tools/call"));
    let last = calls.next_back().unwrap().trim_start_matches("< ");
    let last: Value = serde_json::from_str(last).unwrap();
    last["params"].clone()
}

fn full(title: &str, labels: &Value) -> Value {
    json!({ "title": title, "labels": labels, "repo": SECRET })
}

fn direct(setup: &Setup) -> Client {
    let mut client = setup.start_with(&["serve", "--direct"]);
    client.shake_hands("2025-11-25");
    client
}

#[track_caller]
fn shows_the_adapted_form_only(text: &str) {
    for hidden in [SECRET, "THE_REPO", "draft", "repo", "any repository"] {
        assert!(!text.contains(hidden), "{hidden} in {text}");
    }
}

#[test]
fn an_adapted_tool_is_found_described_and_called_in_its_new_form_only() {
    let setup = adapted();
    let mut client = setup.connect();
    let found = client.search("file a ticket for the team");
    assert!(found.contains("tracker__new_ticket"), "{found}");
    assert!(!found.contains("create_issue"), "{found}");
    shows_the_adapted_form_only(&found);
    let described = client
        .call("describe_tool", r#"{"name":"tracker__new_ticket"}"#)
        .text();
    assert!(described.contains(r#""required":["title"]"#), "{described}");
    assert!(described.contains(r#""default":["triage"]"#), "{described}");
    shows_the_adapted_form_only(&described);
    let called = client.execute_with("tracker__new_ticket", r#"{"title":"a"}"#);
    assert!(!called.is_tool_error(), "{}", called.text());
    // The server repeats its arguments.
    let repeated = called.result();
    assert!(repeated.contains("***"), "{repeated}");
    assert!(!repeated.contains(SECRET), "{repeated}");
    assert_eq!(got(&setup)["name"], "create_issue");
    assert_eq!(got(&setup)["arguments"], full("a", &json!(["triage"])));
    // A text for the list is repaired by the adapted schema.
    client.execute_with("tracker__new_ticket", r#"{"title":"b","labels":"bug"}"#);
    assert_eq!(got(&setup)["arguments"], full("b", &json!(["bug"])));
    let calls = r#"{"calls":[{"name":"tracker__new_ticket","arguments":{"title":"c"}}]}"#;
    client.call("execute_tool", calls);
    assert_eq!(got(&setup)["arguments"], full("c", &json!(["triage"])));
    let old = client
        .execute_with("tracker__create_issue", r#"{"title":"d"}"#)
        .tool_error();
    assert!(
        old.starts_with("there is no tool `tracker__create_issue`"),
        "{old}"
    );
    client.finish();
}

#[test]
fn an_argument_that_the_user_sets_cannot_be_given_in_any_surface() {
    let setup = adapted();
    let mut client = setup.connect();
    let before = setup.home().count("tracker", "tools/call");
    for arguments in [
        r#"{"title":"a","repo":"other"}"#,
        r#"{"title":"a","draft":true}"#,
        r#"{"title":"a","rep\u006f":"other"}"#,
        r#"{"title":"a","Repo":"other"}"#,
        r#"{"title":"a","DRAFT ":true}"#,
        r#"{"title":"a","re_po":"other"}"#,
        r#"{"title":"a","re-Po\u200b":"other"}"#,
        r#"{"title":"a","ｒｅｐｏ":"other"}"#,
        r#"{"title":"a","rêpo":"other"}"#,
        r#""{\"title\":\"a\",\"repo\":\"other\"}""#,
    ] {
        let refused = client
            .execute_with("tracker__new_ticket", arguments)
            .tool_error();
        assert!(
            refused.contains("was not called") || refused.contains("repo"),
            "{refused}"
        );
        assert!(!refused.contains(SECRET), "{refused}");
    }
    let refused = client.execute_with("tracker__new_ticket", r#"{"title":"a","repo":"other"}"#);
    assert_eq!(
        refused.tool_error(),
        "`tracker__new_ticket` was not called: its argument `repo` is set by the user's configuration and cannot be given; leave it out"
    );
    client.finish();
    let mut client = direct(&setup);
    for arguments in [
        r#"{"title":"a","repo":"other"}"#,
        r#""{\"repo\":1}""#,
        r#"{"title":"a","REPO":"other"}"#,
        r#"{"title":"a","re.po":"other"}"#,
        "[1]",
    ] {
        let call = format!(r#"{{"name":"tracker__new_ticket","arguments":{arguments}}}"#);
        let refused = client.ask("tools/call", &call).tool_error();
        assert!(refused.contains("was not called"), "{refused}");
    }
    client.finish();
    let refused = setup
        .run(&["call", "tracker__new_ticket", r#"{"title":"a","repo":"x"}"#])
        .code(1);
    assert!(
        refused
            .stderr
            .contains("is set by the user's configuration"),
        "{}",
        refused.stderr
    );
    assert_eq!(setup.home().count("tracker", "tools/call"), before);
}

#[test]
fn commands_and_clients_of_all_tools_see_and_call_the_adapted_form() {
    let setup = adapted();
    let mut client = direct(&setup);
    let listed = client.ask("tools/list", "{}").result().to_owned();
    assert!(
        listed.contains(r#""name":"tracker__new_ticket""#),
        "{listed}"
    );
    assert!(!listed.contains("create_issue"), "{listed}");
    shows_the_adapted_form_only(&listed);
    let call = r#"{"name":"tracker__new_ticket","arguments":{"title":"a"}}"#;
    let called = client.ask("tools/call", call);
    assert!(
        !called.is_tool_error() && !called.result().contains(SECRET),
        "{}",
        called.result()
    );
    assert_eq!(got(&setup)["name"], "create_issue");
    assert_eq!(got(&setup)["arguments"], full("a", &json!(["triage"])));
    let without = r#"{"name":"tracker__close_issue"}"#;
    assert!(!client.ask("tools/call", without).is_tool_error());
    client.finish();
    for command in [
        &["tools"][..],
        &["describe", "tracker__new_ticket"],
        &["search", "ticket"],
    ] {
        let shown = setup.run(command).code(0).stdout;
        assert!(shown.contains("new_ticket"), "{command:?}: {shown}");
        shows_the_adapted_form_only(&shown);
    }
    drop(
        setup
            .run(&["call", "tracker__new_ticket", "--title", "b"])
            .code(0),
    );
    assert_eq!(got(&setup)["arguments"], full("b", &json!(["triage"])));
    let unknown = setup.run(&["describe", "tracker__create_issue"]).code(1);
    assert!(
        unknown.stderr.contains("there is no tool"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn an_override_that_cannot_be_applied_withholds_its_tool_and_doctor_says_why() {
    for (tool, wanted, reason) in [
        (
            "create_issue",
            json!({ "name": "Close-Issue" }),
            "another tool has the name `Close-Issue`",
        ),
        (
            "create_issue",
            json!({ "arguments": { "nosuch": { "fixed": 1 } } }),
            "has no argument `nosuch`",
        ),
        (
            "create_issue",
            json!({ "arguments": { "title": { "hidden": true } } }),
            "requires the argument `title`",
        ),
        (
            "nosuch",
            json!({ "name": "other" }),
            "the server has no such tool",
        ),
    ] {
        let setup = overridden(json!({ "override": { tool: wanted } }));
        let mut client = setup.connect();
        client.execute("tracker__close_issue");
        if tool == "create_issue" {
            let refused = client.execute_with(
                "tracker__create_issue",
                r#"{"title":"a","repo":"b","labels":[]}"#,
            );
            let refused = refused.tool_error();
            assert!(
                refused.contains("`tracker__create_issue` is held back"),
                "{refused}"
            );
            let found = client.search("create issue");
            assert!(!found.contains("create_issue"), "{found}");
        }
        client.finish();
        let status = setup.run(&["status"]).stdout;
        assert!(status.contains(reason), "{status}");
        let doctor = setup.run(&["doctor"]).stdout;
        assert!(doctor.contains(reason), "{doctor}");
        assert!(doctor.contains("tool-override"), "{doctor}");
    }
}

#[test]
fn an_override_that_is_not_understood_disables_its_server() {
    for (wanted, key) in [
        (json!({ "nmae": "x" }), "tools.override"),
        (json!({ "name": "a b" }), "name"),
        (json!({ "name": "a__b" }), "name"),
        (
            json!({ "arguments": { "repo": { "fixed": 1, "hidden": true } } }),
            "repo",
        ),
        (
            json!({ "arguments": { "repo": { "fixed": "${NO_SUCH_VARIABLE}" } } }),
            "NO_SUCH_VARIABLE",
        ),
        (json!({ "budget": "many" }), "budget"),
    ] {
        let setup = overridden(json!({ "override": { "create_issue": wanted } }));
        let status = setup.run(&["status"]).stdout;
        assert!(
            status.contains("faulty") && status.contains(key),
            "{key}: {status}"
        );
        assert_eq!(setup.home().starts("tracker"), 0);
    }
}

#[test]
fn rules_pins_and_the_audit_log_use_the_servers_own_name_and_all_arguments() {
    let setup = adapted().setting("audit", json!({ "arguments": "redacted" }));
    let mut client = setup.connect();
    client.execute_with("tracker__new_ticket", r#"{"title":"a"}"#);
    assert!(!client.stderr().contains(SECRET), "{}", client.stderr());
    client.finish();
    let audit = setup.run(&["audit", "--json"]).code(0).stdout;
    assert!(
        audit.contains("create_issue") && !audit.contains(SECRET),
        "{audit}"
    );
    let setup = setup.setting(
        "tools",
        json!({ "deny": [{ "tool": "tracker__create_issue", "when": { "repo": SECRET } }] }),
    );
    let mut client = setup.connect();
    let refused = client
        .execute_with("tracker__new_ticket", r#"{"title":"a"}"#)
        .tool_error();
    assert!(
        refused.contains("`tracker__new_ticket` was not called"),
        "{refused}"
    );
    client.finish();
}

#[test]
fn a_rule_for_the_servers_own_name_denies_the_renamed_tool() {
    let setup = adapted().setting("tools", json!({ "deny": ["tracker__create_issue"] }));
    let mut client = setup.connect();
    assert!(
        client
            .execute_with("tracker__new_ticket", r#"{"title":"a"}"#)
            .is_tool_error()
    );
    assert!(!client.search("ticket").contains("new_ticket"));
    client.finish();
    let mut client = direct(&setup);
    let listed = client.ask("tools/list", "{}").result().to_owned();
    assert!(
        !listed.contains("new_ticket") && !listed.contains("create_issue"),
        "{listed}"
    );
    client.finish();
}

#[test]
fn a_rule_that_restricts_may_name_a_renamed_tool_as_agents_see_it() {
    let renamed = json!({ "create_issue": { "name": "new_ticket" } });
    let one = |list: &str, rule: &str, place: &str| {
        let rules = json!({ list: [rule] });
        match place {
            "server" => overridden(json!({ list: [rule], "override": renamed })),
            "file" => overridden(json!({ "override": renamed })).setting("tools", rules),
            _ => overridden(json!({ "override": renamed })).setting(
                "profiles",
                json!({ "p": { "servers": ["*"], "tools": rules, "projects": ["/"] } }),
            ),
        }
    };
    for place in ["server", "file", "profile"] {
        for (list, rule, code) in [
            ("deny", "new_ticket", 1),
            ("deny", "create_issue", 1),
            ("ask", "NEW_ticket", 6),
            ("allow", "new_ticket", 1),
            ("allow", "create_issue", 0),
        ] {
            let setup = one(list, rule, place);
            let mut client = setup.connect();
            let called =
                client.execute_with("tracker__new_ticket", &full("t", &json!([])).to_string());
            assert_eq!(
                called.is_tool_error(),
                code != 0,
                "{place} {list} {rule}: {called:?}"
            );
            client.finish();
            for name in ["new_ticket", "create_issue"] {
                let check = ["--json", "rules", "check", "tracker", name];
                let checked = setup.run(&check).code(code).json();
                assert_eq!(checked["seen_as"], "new_ticket", "{checked}");
            }
            let doctor = setup.run(&["doctor"]);
            let is_remarked = doctor.stdout.contains("rule-unmatched");
            let is_wrong = (list, rule) == ("allow", "new_ticket");
            assert_eq!(
                is_remarked, is_wrong,
                "{place} {list} {rule}: {}",
                doctor.stdout
            );
            assert!(!is_wrong || doctor.stdout.contains("write `create_issue`"));
        }
    }
}

#[test]
fn a_tool_has_its_own_filter_and_budget_in_each_surface() {
    let items = r#"{"content":[{"type":"text","text":"{\"items\":[{\"id\":1},{\"id\":2}]}"}],"structuredContent":{"items":[{"id":1},{"id":2}]}}"#;
    let list =
        r#"{"name":"list","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}"#;
    let server = Server::new()
        .tool_as("list", list, [result(items)])
        .tool("long", [answer(&"word ".repeat(400))])
        .tool("odd", [answer("just words")]);
    let setup = Setup::new().server_with(
        "shop",
        server,
        json!({ "tools": { "override": {
            "list": { "select": ".items[].id" },
            "long": { "budget": 100 },
            "odd": { "select": ".nosuch.thing" },
        } } }),
    );
    let mut client = setup.connect();
    assert_eq!(client.execute("shop__list").text(), "1\n2");
    let own = r#"{"name":"shop__list","select":".items[1].id"}"#;
    assert_eq!(client.call("execute_tool", own).text(), "2");
    assert!(
        client
            .execute("shop__long")
            .text()
            .contains("mcpzip__read_result")
    );
    client.finish();
    let mut client = direct(&setup);
    let listed = client.ask("tools/list", "{}").result().to_owned();
    assert!(!listed.contains("outputSchema"), "{listed}");
    let called = |client: &mut Client, name: &str| {
        client
            .ask("tools/call", &format!(r#"{{"name":"{name}"}}"#))
            .text()
    };
    assert_eq!(called(&mut client, "shop__list"), "1\n2");
    assert!(called(&mut client, "shop__long").ends_with("of 2000 characters."));
    assert_eq!(called(&mut client, "shop__odd"), "just words");
    client.finish();
    let printed = setup.run(&["call", "shop__list"]).code(0).json();
    assert_eq!(printed["content"][0]["text"], "1\n2");
}

#[test]
fn an_edited_override_holds_for_the_next_call_without_a_restart() {
    let setup = adapted();
    let mut client = setup.connect();
    client.execute_with("tracker__new_ticket", r#"{"title":"a"}"#);
    let tools = json!({ "override": { "create_issue": { "arguments": {
        "repo": { "fixed": { "deep": [1.50, null, "x"] } }, "labels": { "default": [] } } } } });
    let edited = setup
        .clone()
        .server_with("tracker", tracker(), json!({ "tools": tools }));
    edited.save();
    crate::support::until("the edit holds", || {
        let called = client.execute_with("tracker__create_issue", r#"{"title":"b"}"#);
        (!called.is_tool_error()).then_some(())
    });
    assert_eq!(
        got(&setup)["arguments"]["repo"],
        json!({ "deep": [1.50, null, "x"] })
    );
    assert!(
        client
            .execute_with("tracker__new_ticket", r#"{"title":"a"}"#)
            .is_tool_error()
    );
    client.finish();
}

#[test]
fn over_http_an_adapted_tool_is_called_in_its_new_form() {
    let setup = adapted();
    let gateway = setup.serve(&[]);
    let called = gateway
        .session()
        .request(1, "tools/call", r#"{"name":"execute_tool","arguments":{"name":"tracker__new_ticket","arguments":{"title":"a"}}}"#)
        .send();
    assert_eq!(called.status, 200, "{called:?}");
    assert_eq!(got(&setup)["arguments"], full("a", &json!(["triage"])));
    let refused = gateway
        .modern("tools/call", r#""name":"execute_tool","arguments":{"name":"tracker__new_ticket","arguments":{"title":"a","repo":"b"}}"#)
        .send();
    assert!(refused.message().tool_error().contains("cannot be given"));
}

#[test]
fn doctor_finds_a_filter_of_the_user_that_is_none() {
    let doctor = |select: &str| {
        let setup = overridden(json!({ "override": { "create_issue": { "select": select } } }));
        setup.run(&["doctor"]).stdout
    };
    let found = doctor(".[");
    assert!(
        found.contains("tool-filter") && found.contains("not valid jq"),
        "{found}"
    );
    assert!(!doctor(".arguments | keys").contains("tool-filter"));
}

#[test]
fn null_for_an_argument_with_a_default_gives_none_in_each_surface() {
    let setup = adapted();
    let sent = r#"{"title":"a","labels":null}"#;
    let mut client = setup.connect();
    let _ = client.execute_with("tracker__new_ticket", sent);
    assert_eq!(got(&setup)["arguments"], full("a", &json!(["triage"])));
    client.finish();
    let mut client = direct(&setup);
    let _ = client.call("tracker__new_ticket", r#"{"title":"b","labels":null}"#);
    assert_eq!(got(&setup)["arguments"], full("b", &json!(["triage"])));
    client.finish();
}

#[test]
fn a_value_of_the_user_is_masked_in_an_error_that_is_cut_within_it() {
    let properties = json!({ "k": { "type": "string" }, "own": { "type": "string" } });
    let schema = json!({ "type": "object", "properties": properties });
    let web = HttpServer::start(move |request, reply| match request.rpc() {
        "tools/list" => {
            let tools = json!([{ "name": "t", "inputSchema": schema }]);
            reply.json(&request.answer(&json!({ "tools": tools })));
        }
        // A careless server repeats what it got, in a header, too.
        "tools/call" => {
            let arguments = &request.body["params"]["arguments"];
            let said = format!("{} {}", arguments["own"], arguments["k"]);
            let headers = format!("content-type: text/plain\r\nretry-after: {said}\r\n");
            reply.whole("400 Bad Request", &headers, &said);
        }
        _ => legacy(request, reply),
    });
    let wanted = json!({ "t": { "arguments": { "k": { "fixed": "${THE_REPO}" } } } });
    let entry = web.entry(json!({ "tools": { "override": wanted } }));
    let mut client = Setup::new()
        .variable("THE_REPO", SECRET)
        .entry("web", &entry)
        .connect();
    for length in [1, 175, 185, 195] {
        let arguments = json!({ "own": "x".repeat(length) }).to_string();
        let answer = client.execute_with("web__t", &arguments).tool_error();
        assert!(answer.contains("HTTP 400"), "{answer}");
        assert!(!answer.contains(&SECRET[..4]), "{answer}");
    }
    client.finish();
}

#[test]
fn a_value_of_the_user_is_masked_in_all_that_its_server_sends() {
    let secret = "p&ss/w<rd>é\"q";
    let in_json = json!(secret).to_string();
    let in_json = &in_json[1..in_json.len() - 1];
    let text = |text: &str| {
        line(&format!(
            r#"{{"jsonrpc":"2.0","id":$id,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        ))
    };
    let answers = [
        text(r#"plain p&ss/w<rd>é\"q"#),
        text(r#"Go p\u0026ss/w\u003crd\u003eé\"q"#),
        text(r#"PHP p&ss\/w<rd>é\"q"#),
        text(r#"Python p&ss/w<rd>\u00e9\"q"#),
        text(r#"nested {\"k\":\"p\\u0026ss/w<rd>é\\\"q\"}"#),
    ];
    let definition = |name: &str| {
        json!({ "name": name, "inputSchema": { "type": "object", "properties": { "k": { "type": "string" } } } })
            .to_string()
    };
    let mut server = Server::new();
    let mut overrides = serde_json::Map::new();
    for (at, answered) in answers.iter().enumerate() {
        let name = format!("t{at}");
        let message = format!("notifications/message: {in_json}");
        let steps = [
            line(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"error","data":"{message}"}}}}"#
            )),
            line(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":$token,"progress":1,"message":"{in_json}"}}}}"#
            )),
            ask(
                "q",
                "elicitation/create",
                &json!({ "message": format!("Use {secret}?"), "requestedSchema": { "type": "object", "properties": {} } })
                    .to_string(),
            ),
            answered.clone(),
        ];
        server = server.tool_as(&name, &definition(&name), steps);
        overrides.insert(
            name,
            json!({ "arguments": { "k": { "fixed": "${THE_SECRET}" } } }),
        );
    }
    let count = answers.len();
    let setup = Setup::new().variable("THE_SECRET", secret).server_with(
        "s",
        server,
        json!({ "tools": { "override": overrides } }),
    );
    for arguments in [&["serve"][..], &["serve", "--direct"]] {
        let mut client = setup.start_with(arguments);
        client.shake_hands_as("2025-11-25", r#"{"elicitation":{}}"#);
        for at in 0..count {
            let meta = r#""_meta":{"progressToken":"tk"}"#;
            let params = match arguments.len() {
                1 => format!(
                    r#"{{"name":"execute_tool","arguments":{{"name":"s__t{at}","arguments":{{}}}},{meta}}}"#
                ),
                _ => format!(r#"{{"name":"s__t{at}","arguments":{{}},{meta}}}"#),
            };
            let id = client.request("tools/call", &params);
            for method in [
                "notifications/message",
                "notifications/progress",
                "elicitation/create",
            ] {
                let heard = client.expect(method, |message| message.is_notification(method));
                assert!(heard.params().contains("***"), "{heard:?}");
                assert!(!heard.params().contains("ss/w"), "{heard:?}");
                if method == "elicitation/create" {
                    let decline = format!(
                        r#"{{"jsonrpc":"2.0","id":{},"result":{{"action":"decline"}}}}"#,
                        heard.id()
                    );
                    client.send(&decline);
                }
            }
            let answered = client.answer(id).text();
            assert!(answered.contains("***"), "{answered}");
        }
        client.finish();
    }
}
