//! Each way to a profile leads to the same part.

use serde_json::{Value, json};

use super::{PROFILE, answers, answers_of, check, whole};
use crate::support::gateway::{Gateway, initialize};
use crate::support::{Client, Setup, until};

/// Asks in requests of 2026-07-28 at this URL.
fn asked_at(setup: &Setup, gateway: &Gateway, path: &str, client: &str) -> Vec<String> {
    answers(setup, |method, params| {
        let text = params.to_string();
        let call = gateway.modern_of(client, method, &text[1..text.len() - 1]);
        let call = match params["uri"].as_str() {
            Some(uri) => call.header("Mcp-Name", uri),
            None => call,
        };
        call.to(path).send().message()
    })
}

/// Asks in a session of 2025-11-25 at this URL.
fn in_session_at(setup: &Setup, gateway: &Gateway, path: &str) -> Vec<String> {
    let hello = gateway
        .post(&initialize("2025-11-25", &json!({})))
        .to(path)
        .send();
    let id = hello.header("mcp-session-id").to_owned();
    answers(setup, |method, params| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let call = gateway.post(&body.to_string()).to(path);
        call.header("Mcp-Session-Id", &id).send().message()
    })
}

#[test]
fn a_url_leads_to_a_profile_in_both_eras() {
    check(|setup| asked_at(setup, &setup.serve(&[]), "/mcp/p/review", "test"));
    check(|setup| in_session_at(setup, &setup.serve(&[]), "/mcp/p/review"));
}

#[test]
fn a_gateway_under_a_profile_serves_nothing_else_at_any_url() {
    check(|setup| {
        let gateway = setup.serve(&PROFILE[1..]);
        let vaults = gateway.modern("tools/list", "").to("/mcp/p/vaults").send();
        assert_eq!(vaults.status, 404, "{vaults:?}");
        asked_at(setup, &gateway, "/mcp", "test")
    });
}

#[test]
fn the_name_of_a_client_leads_to_its_profile() {
    let clients = json!({ "claude-code": { "profile": "review" } });
    let with = |setup: &Setup| {
        let setup = setup.clone().setting("clients", clients.clone());
        setup.save();
        setup
    };
    check(|setup| answers_of(setup, with(setup).start(), "claude-code"));
    check(|setup| asked_at(setup, &with(setup).serve(&[]), "/mcp", "claude-code"));
    // Another client of the same gateway is not narrowed.
    let setup = with(&whole());
    let gateway = setup.serve(&[]);
    let opened = |client: &str| {
        let arguments = r#""name":"execute_tool","arguments":{"name":"vault__read"}"#;
        let said = gateway.modern_of(client, "tools/call", arguments).send();
        said.message().as_str().contains("vault opened")
    };
    assert!(!opened("claude-code") && opened("other") && !opened("Claude-Code"));
}

#[test]
fn a_directory_leads_to_its_profile() {
    check(|setup| {
        let home = setup.home().path("home");
        let config = std::fs::read_to_string(setup.config_path()).unwrap();
        let mut config: Value = serde_json::from_str(&config).unwrap();
        config["profiles"]["review"]["projects"] = json!([home]);
        let setup = setup
            .clone()
            .setting("profiles", config["profiles"].clone());
        answers_of(&setup, setup.start(), "test")
    });
}

/// The answers to a client that says only after it was served what directory it works in; the directory has the profile.
#[cfg(unix)]
fn answers_of_late(setup: &Setup, is_late: bool) -> Vec<String> {
    let there = setup.home().path("there");
    std::fs::create_dir_all(&there).unwrap();
    let config = std::fs::read_to_string(setup.config_path()).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["profiles"]["review"]["projects"] = json!([there]);
    let setup = setup
        .clone()
        .setting("profiles", config["profiles"].clone());
    let mut client = setup.start();
    let hello = client.shake_hands_as("2025-11-25", r#"{"roots":{}}"#);
    let mut all = vec![super::plain(hello.as_str(), &setup)];
    let asked = client.expect("a question", |message| {
        message.is_notification("roots/list")
    });
    if is_late {
        // The first request waits for the answer, but not for ever.
        client.search("unseal the vault");
        client.ask("resources/read", r#"{"uri":"vault:///key"}"#);
        client.ask("tools/list", "{}");
    }
    let id: Value = serde_json::from_str(asked.id()).unwrap();
    let roots = json!([{ "uri": format!("file://{}", there.display()) }]);
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": roots } });
    client.send(&answer.to_string());
    if is_late {
        until("the profile", || {
            let own = client.call("describe_tool", r#"{"name":"mcpzip__servers"}"#);
            own.text().contains("Lists the configured").then_some(())
        });
        // At once, as the index may still be the one before.
        let nearest = client.execute("unseal_vault").tool_error();
        assert!(!nearest.contains("vault__"), "{nearest}");
        let found = client.search("unseal the vault");
        assert!(!found.contains("vault__"), "{found}");
    }
    all.extend(answers(&setup, |method, params| {
        client.ask(method, &params.to_string())
    }));
    client.finish();
    all
}

#[cfg(unix)]
#[test]
fn roots_lead_to_the_profile_of_their_directory() {
    check(|setup| answers_of_late(setup, false));
}

#[cfg(unix)]
#[test]
fn roots_that_come_late_narrow_as_if_they_had_been_there_from_the_start() {
    check(|setup| answers_of_late(setup, true));
}

#[cfg(unix)]
#[test]
fn roots_decide_the_surface_of_a_profile() {
    let setup = whole();
    let there = setup.home().path("there");
    std::fs::create_dir_all(&there).unwrap();
    let review = json!({ "servers": ["open"], "surface": "direct", "projects": [there] });
    let setup = setup.setting("profiles", json!({ "review": review }));
    let mut client = setup.start();
    client.shake_hands_as("2025-11-25", r#"{"roots":{}}"#);
    let asked = client.expect("a question", |message| {
        message.is_notification("roots/list")
    });
    let id: Value = serde_json::from_str(asked.id()).unwrap();
    let roots = json!([{ "uri": format!("file://{}", there.display()) }]);
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": roots } });
    client.send(&answer.to_string());
    let listed = client.ask("tools/list", "{}");
    let listed = listed.as_str();
    assert!(
        listed.contains("open__read") && !listed.contains("execute_tool"),
        "{listed}"
    );
    client.finish();
}

#[cfg(unix)]
#[test]
fn roots_that_come_late_change_no_surface_and_status_says_so() {
    let setup = whole();
    let there = setup.home().path("there");
    std::fs::create_dir_all(&there).unwrap();
    let review = json!({ "servers": ["open"], "surface": "direct", "projects": [there] });
    let setup = setup.setting("profiles", json!({ "review": review }));
    let mut client = setup.start();
    client.shake_hands_as("2025-11-25", r#"{"roots":{}}"#);
    let asked = client.expect("a question", |message| {
        message.is_notification("roots/list")
    });
    // It waits for the answer, but not for ever.
    let before = client.ask("tools/list", "{}").value();
    assert_eq!(before["tools"][0]["name"], "search_tools", "{before}");
    let id: Value = serde_json::from_str(asked.id()).unwrap();
    let roots = json!([{ "uri": format!("file://{}", there.display()) }]);
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": roots } });
    client.send(&answer.to_string());
    until("the profile", || {
        let found = client.search("unseal the vault");
        (!found.contains("vault__")).then_some(())
    });
    let after = client.ask("tools/list", "{}").value();
    let names = |listed: &Value| -> Vec<Value> {
        let tools = listed["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].clone()).collect()
    };
    assert_eq!(names(&after), names(&before));
    client.execute("vault__read").tool_error();
    client.finish();
    let status = setup.run(&["status", "--json"]).code(0).json();
    let review = &status["profiles"][0];
    assert_eq!(review["surface"], "direct", "{status}");
    assert_eq!(review["by_directory"], true, "{status}");
}

#[test]
fn a_tool_that_show_names_is_as_unknown_as_any_outside_the_profile() {
    let shown = json!(["vault__unseal", "open__drop_table", "vault__*"]);
    let setup = whole().setting("show", shown);
    super::know_all(&setup);
    let mut client = setup.start_with(PROFILE);
    client.shake_hands("2025-11-25");
    let mut call = |name: &str| {
        let said = client.call(name, "{}");
        let id = regex::Regex::new(r#""id":\d+"#).unwrap();
        id.replace(said.as_str(), "").replace(name, "NAME")
    };
    let unknown = call("nothing__here");
    for name in ["vault__unseal", "open__drop_table", "vault__nothing"] {
        assert_eq!(call(name), unknown, "{name}");
    }
    client.finish();
}

#[test]
fn audit_lines_and_the_list_of_rules_name_the_profile() {
    let setup = whole().setting("audit", json!({}));
    let mut client = setup.start_with(PROFILE);
    client.shake_hands("2025-11-25");
    client.execute("open__read").value();
    client.execute("vault__read").tool_error();
    client.ask("resources/read", r#"{"uri":"open:///a"}"#);
    client.finish();
    let lines = setup.run(&["audit", "--json"]).code(0).stdout;
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |kind: &str| {
        let lines = lines.iter().filter(|line| line["kind"] == kind);
        lines
            .map(|line| line["profile"].clone())
            .collect::<Vec<_>>()
    };
    for kind in ["call", "refusal", "resource"] {
        assert_eq!(of(kind), ["review"], "{kind}: {lines:?}");
    }
    let csv = setup.run(&["audit", "--csv"]).code(0).stdout;
    assert!(csv.lines().next().unwrap().ends_with(",profile"), "{csv}");
    assert!(csv.contains(r#","review""#), "{csv}");
    let rules = setup.run(&["rules", "list", "--json"]).code(0).json();
    let rules = rules.as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["profile"] == "review");
    assert_eq!(rule.unwrap()["rule"], r#""open__drop_*""#);
}

#[test]
fn a_variable_leads_to_a_profile() {
    check(|setup| {
        let setup = setup.clone().variable("MCPZIP_PROFILE", "review");
        answers_of(&setup, setup.start(), "test")
    });
}

#[test]
fn the_direct_surface_lists_only_the_profile() {
    check(|setup| {
        let arguments = [PROFILE, &["--surface", "direct"]].concat();
        let mut client = setup.start_with(&arguments);
        client.shake_hands("2025-11-25");
        let listed = client.ask("tools/list", "{}");
        let mut all = vec![listed.as_str().to_owned()];
        for name in [
            "open__read",
            "vault__read",
            "open__drop_table",
            "read",
            "unseal",
        ] {
            all.push(client.call(name, "{}").as_str().to_owned());
        }
        all.extend(answers(setup, |method, params| {
            client.ask(method, &params.to_string())
        }));
        client.finish();
        all
    });
}

#[test]
fn a_profiles_surface_comes_before_those_of_clients_and_of_http() {
    let setup = whole()
        .setting("http", json!({ "surface": "tools" }))
        .setting("clients", json!({ "test": { "surface": "tools" } }))
        .setting(
            "profiles",
            json!({ "wide": { "servers": ["open"], "surface": "direct" } }),
        );
    let gateway = setup.serve(&[]);
    for (path, is_direct) in [("/mcp/p/wide", true), ("/mcp", false)] {
        let listed = gateway.modern("tools/list", "").to(path).send().message();
        let listed = listed.as_str();
        assert_eq!(listed.contains("open__read"), is_direct, "{path}: {listed}");
        assert_eq!(
            listed.contains("execute_tool"),
            !is_direct,
            "{path}: {listed}"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_daemon_keeps_the_profile_of_each_session() {
    use crate::daemon::Shared;
    check(|setup| {
        let shared = Shared::new(setup.clone());
        // A session without a profile uses the same daemon.
        let mut other = shared.connect();
        let answers = answers_of(&shared, shared.start_with(PROFILE), "test");
        assert_eq!(shared.sessions(), 1);
        assert!(!other.execute("open__read").is_tool_error());
        other.finish();
        answers
    });
}

#[test]
fn a_session_of_one_url_is_not_reachable_from_another() {
    let setup = whole();
    let gateway = setup.serve(&[]);
    let opened = |path: &str| {
        let hello = gateway
            .post(&initialize("2025-11-25", &json!({})))
            .to(path)
            .send();
        hello.header("mcp-session-id").to_owned()
    };
    let paths = ["/mcp", "/mcp/p/review", "/mcp/p/vaults"];
    let ids = paths.map(opened);
    for (path, id) in paths.iter().zip(&ids) {
        for other in paths {
            let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
            let call = |call: crate::support::gateway::Call| {
                call.to(other).header("Mcp-Session-Id", id).send().status
            };
            let expected = if *path == other { 200 } else { 404 };
            assert_eq!(call(gateway.post(list)), expected, "{path} at {other}");
            if expected == 404 {
                assert_eq!(call(gateway.call("DELETE", "/mcp")), 404);
                let stream = gateway
                    .call("GET", "/mcp")
                    .header("Accept", "text/event-stream");
                assert_eq!(call(stream), 404);
            }
        }
    }
}

#[test]
fn results_stored_under_one_profile_are_not_read_under_another() {
    let setup = whole().setting("results", json!({ "budget": 1000, "kept_for": "1h" }));
    let long = crate::support::script::answer(&"x".repeat(5000));
    let setup = setup.server("vault", crate::support::Server::new().tool("read", [long]));
    let gateway = setup.serve(&[]);
    let text = |path: &str, name: &str, arguments: &str| {
        let members = format!(
            r#""name":"execute_tool","arguments":{{"name":"{name}","arguments":{arguments}}}"#
        );
        let said = gateway.modern("tools/call", &members).to(path).send();
        said.message().as_str().to_owned()
    };
    let stored = text("/mcp", "vault__read", "{}");
    let id = regex::Regex::new(r"\br[0-9a-z]{6,}\b").unwrap();
    let id = id
        .find(&stored)
        .unwrap_or_else(|| panic!("{stored}"))
        .as_str();
    let arguments = format!(r#"{{"id":"{id}"}}"#);
    assert!(text("/mcp", "mcpzip__read_result", &arguments).contains("xxx"));
    for path in ["/mcp/p/review", "/mcp/p/vaults"] {
        let said = text(path, "mcpzip__read_result", &arguments);
        assert!(said.contains("there is no stored result"), "{path}: {said}");
    }
}

#[test]
fn an_edit_of_the_file_narrows_a_running_session_and_never_widens_it_past_its_profile() {
    let setup = whole();
    super::know_all(&setup);
    let mut client = setup.start_with(PROFILE);
    client.shake_hands("2025-11-25");
    until("the tool", || {
        (!client.execute("open__read").is_tool_error()).then_some(())
    });
    let profiles = |value: Value| setup.clone().setting("profiles", value).save();
    profiles(json!({ "review": { "servers": ["open"], "tools": { "deny": ["open__read"] } } }));
    until("the rule", || {
        client.execute("open__read").is_tool_error().then_some(())
    });
    // The profile is gone: nothing is served, not everything.
    profiles(json!({}));
    until("the refusal", || {
        let said = client.ask("tools/list", "{}");
        said.as_str().contains("cannot be used").then_some(())
    });
    for name in ["open__read", "vault__read", "mcpzip__status"] {
        let said = client.ask(
            "tools/call",
            &json!({ "name": "execute_tool", "arguments": { "name": name } }).to_string(),
        );
        assert!(
            said.as_str()
                .contains("the profile of this session cannot be used"),
            "{}",
            said.as_str()
        );
    }
    profiles(json!({ "review": { "servers": ["open"] } }));
    until("the tool again", || {
        let said = client.ask(
            "tools/call",
            r#"{"name":"execute_tool","arguments":{"name":"open__read"}}"#,
        );
        said.as_str().contains("opened").then_some(())
    });
    assert!(client.execute("vault__read").is_tool_error());
    client.finish();
}

#[test]
fn a_session_keeps_the_profile_of_its_directory_or_client_whatever_is_edited() {
    let setup = whole();
    let home = setup.home().path("home");
    let review = json!({ "servers": ["open"] });
    let here = json!({ "servers": ["open"], "projects": [home] });
    let all = json!({ "claude-code": { "profile": "review" } });
    for (profiles, clients, edited, edited_clients) in [
        (json!({ "review": here }), json!({}), json!({}), json!({})),
        (
            json!({ "review": here }),
            json!({}),
            json!({ "other": here }),
            json!({}),
        ),
        (
            json!({ "review": here }),
            json!({}),
            json!({ "review": review }),
            json!({}),
        ),
        (
            json!({ "review": review }),
            all,
            json!({ "review": review }),
            json!({}),
        ),
    ] {
        let with = |profiles: &Value, clients: &Value| {
            let setup = setup.clone().setting("profiles", profiles.clone());
            let setup = setup.setting("clients", clients.clone());
            setup.save();
            setup
        };
        let setup = with(&profiles, &clients);
        let mut client = setup.start();
        client.shake_hands_named("claude-code");
        client.execute("open__read").value();
        assert!(client.execute("vault__read").is_tool_error());
        // An edit that is seen: the wait shows when it is in force.
        drop(with(&edited, &edited_clients));
        let until_now = std::time::Instant::now();
        while until_now.elapsed() < std::time::Duration::from_secs(3) {
            let said = client.execute("vault__read");
            assert!(!said.as_str().contains("vault opened"), "{edited}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        client.finish();
    }
}

#[test]
fn results_stored_before_an_edit_that_narrows_are_gone() {
    let long = crate::support::script::answer(&"x".repeat(5000));
    let setup = whole()
        .setting("results", json!({ "budget": 1000 }))
        .setting(
            "profiles",
            json!({ "review": { "servers": ["open", "vault"] } }),
        )
        .server("vault", crate::support::Server::new().tool("read", [long]));
    let mut client = setup.start_with(PROFILE);
    client.shake_hands("2025-11-25");
    let stored = client.execute("vault__read").text();
    let id = regex::Regex::new(r"\br[0-9a-z]{6,}\b").unwrap();
    let id = id
        .find(&stored)
        .unwrap_or_else(|| panic!("{stored}"))
        .as_str();
    let arguments = json!({ "id": id }).to_string();
    let read = |client: &mut Client| client.execute_with("mcpzip__read_result", &arguments);
    assert!(read(&mut client).text().contains("xxx"));
    let narrowed = json!({ "review": { "servers": ["open"] } });
    setup.setting("profiles", narrowed).save();
    until("the edit", || {
        client.execute("vault__read").is_tool_error().then_some(())
    });
    let said = read(&mut client).tool_error();
    assert!(said.contains("there is no stored result"), "{said}");
    client.finish();
}

#[test]
fn changes_outside_the_profile_are_not_announced() {
    let setup = whole().setting("surface", json!("direct"));
    super::know_all(&setup);
    let mut client = setup.start_with(PROFILE);
    client.shake_hands("2025-11-25");
    until("the tools", || {
        client
            .ask("tools/list", "{}")
            .as_str()
            .contains("open__read")
            .then_some(())
    });
    let config = std::fs::read_to_string(setup.config_path()).unwrap();
    // The entry is there after the next look at the file; a session without the profile hears of it.
    let mut other = setup.connect();
    other.ask("tools/list", "{}");
    setup.clone().server("more", super::vault()).save();
    assert_ne!(
        std::fs::read_to_string(setup.config_path()).unwrap(),
        config
    );
    other.expect("the change", |message| {
        message.is_notification("notifications/tools/list_changed")
    });
    other.finish();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    client.ask("tools/list", "{}");
    let heard = client.left_over();
    assert!(heard.is_empty(), "{heard:?}");
    client.finish();
}

#[test]
fn calls_under_every_profile_of_a_gateway_are_counted() {
    let gateway = whole()
        .setting("http", json!({ "metrics": true }))
        .serve(&[]);
    for path in ["/mcp", "/mcp/p/review"] {
        let said = gateway.modern_execute("open__read", "").to(path).send();
        assert_eq!(said.message().text(), "opened");
    }
    let metrics = gateway.call("GET", "/metrics").send().body;
    let count = r#"mcpzip_calls_total{server="open",outcome="ok"} 2"#;
    assert!(metrics.contains(count), "{metrics}");
}

#[test]
fn a_client_of_the_older_transport_gets_the_profile_of_its_name() {
    let clients = json!({ "claude-code": { "profile": "review" } });
    let gateway = whole().setting("clients", clients).serve(&[]);
    for (name, is_reached) in [("claude-code", false), ("other", true)] {
        let mut stream = gateway
            .call("GET", "/sse")
            .header("Accept", "text/event-stream")
            .open();
        let path = stream.event().unwrap().data;
        let mut ask = |method: &str, params: Value| {
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            let sent = gateway.post(&body.to_string()).to(&path).send();
            assert_eq!(sent.status, 202, "{sent:?}");
            let mut said = stream.message();
            while !said.is_answer() {
                said = stream.message();
            }
            said
        };
        ask(
            "initialize",
            json!({ "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": name, "version": "1" } }),
        );
        let call = json!({ "name": "execute_tool", "arguments": { "name": "vault__read" } });
        let said = ask("tools/call", call);
        let is_opened = said.as_str().contains("vault opened");
        assert_eq!(is_opened, is_reached, "{name}: {}", said.as_str());
    }
}
