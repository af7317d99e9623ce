//! Profiles: a session under one sees a part of the configuration, and cannot notice that there is more.

mod refused;
mod ways;

use serde_json::{Value, json};

use crate::support::script::{answer, result};
use crate::support::{Client, Message, Server, Setup, until};

/// The visible server. With `whole`, it has a tool that the profile denies.
fn open(whole: bool) -> Server {
    let server = Server::new()
        .tool("read", [answer("opened")])
        .tool("write_notes", [answer("noted")])
        .prompt("greeting", [result(r#"{"messages":[]}"#)])
        .resource("open:///a", [result(r#"{"contents":[]}"#)]);
    match whole {
        true => server.tool("drop_table", [answer("dropped")]),
        false => server,
    }
}

/// A server outside the profile.
fn vault() -> Server {
    Server::new()
        .tool("read", [answer("vault opened")])
        .tool("unseal", [answer("unsealed")])
        .prompt("unsealing", [result(r#"{"messages":[]}"#)])
        .resource("vault:///key", [result(r#"{"contents":[]}"#)])
        .resource("open:///a", [result(r#"{"contents":[]}"#)])
        .template("vault:///{id}")
        .instructions("The vault.")
}

fn with_exposure(setup: Setup) -> Setup {
    setup
        .setting("expose", json!({ "prompts": true, "resources": true }))
        .setting("management", json!("full"))
        // Vectors are made in the background, and change what a search finds.
        .setting("search", json!({ "semantic": false }))
}

/// A configuration with servers and tools outside the profile `review`.
fn whole() -> Setup {
    let setup = Setup::new()
        .server("open", open(true))
        .server("vault", vault())
        .entry("broken", r#"{"command":7}"#)
        .entry("asleep", r#"{"command":"vault-server","disabled":true}"#)
        .setting(
            "profiles",
            json!({
                "review": { "servers": ["open"], "tools": { "deny": ["open__drop_*"] } },
                "vaults": { "servers": ["vault"] },
                "empty": { "servers": [] },
                "gone": { "servers": ["gone"] },
            }),
        );
    with_exposure(setup)
}

/// The configuration that a session under `review` is to believe in.
fn part() -> Setup {
    let setup = Setup::new().server("open", open(false)).setting(
        "profiles",
        json!({ "review": { "servers": ["open"], "tools": { "deny": ["open__drop_*"] } } }),
    );
    with_exposure(setup)
}

const PROFILE: &[&str] = &["serve", "--profile", "review"];

/// What a session is asked, in this order, to reach or notice anything else.
fn attempts() -> Vec<(&'static str, Value)> {
    let execute = |name: &str| {
        let arguments = json!({ "name": name, "arguments": {} });
        (
            "tools/call",
            json!({ "name": "execute_tool", "arguments": arguments }),
        )
    };
    let meta = |tool: &str, arguments: Value| {
        (
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        )
    };
    let own = |tool: &str, arguments: Value| {
        let arguments = json!({ "name": format!("mcpzip__{tool}"), "arguments": arguments });
        (
            "tools/call",
            json!({ "name": "execute_tool", "arguments": arguments }),
        )
    };
    let mut all = vec![("tools/list", json!({}))];
    // Names, in any spelling.
    for name in [
        "vault__unseal",
        "vault__read",
        "vault:unseal",
        "vault.unseal",
        "vault/unseal",
        "Vault__Unseal",
        "vault_unseal",
        "VaultUnseal",
        "mcp__zip__vault__unseal",
        "mcp__vault__unseal",
        "unseal_vault",
        "functions.vault.unseal",
        "unseal",
        "vault__",
        "vault__nothing",
        "broken__x",
        "asleep__x",
        "read",
        "drop_table",
        "open__drop_table",
        "open__dropTable",
        "open__read",
        "nothing__unseal",
        "vault_read",
        "read_vault",
    ] {
        all.push(execute(name));
        all.push(meta("describe_tool", json!({ "name": name })));
    }
    all.push(meta(
        "describe_tool",
        json!({ "names": ["vault__unseal", "open__read", "x__y"] }),
    ));
    for query in [
        "unseal the vault",
        "vault",
        "read",
        "drop table",
        "broken",
        "zzz",
    ] {
        all.push(meta("search_tools", json!({ "query": query, "limit": 50 })));
        all.push(meta("search_tools", json!({ "query": query, "limit": 1 })));
    }
    for server in ["vault", "VAULT", "broken", "asleep", "nothing", "open"] {
        all.push(meta(
            "search_tools",
            json!({ "query": "read", "server": server }),
        ));
        all.push(own("tail_log", json!({ "server": server })));
        all.push(own("stats", json!({ "server": server })));
        all.push(own("refresh", json!({ "server": server })));
        let change = json!({ "operation": "disable", "names": [server] });
        all.push(own("servers", change));
    }
    let entry = json!({ "command": "vault-server" });
    all.push(own(
        "servers",
        json!({ "operation": "add", "servers": { "mine": entry } }),
    ));
    all.push(own("servers", json!({ "operation": "list" })));
    all.push(own("stats", json!({})));
    all.push(own("refresh", json!({})));
    all.push(own("status", json!({})));
    all.push(meta("proxy_status", json!({})));
    all.push(own("read_result", json!({ "id": "r1k3x9q" })));
    // Prompts, resources, completions and subscriptions.
    for name in [
        "vault__unsealing",
        "unsealing",
        "vault:unsealing",
        "greeting",
        "nothing",
    ] {
        all.push(("prompts/get", json!({ "name": name })));
        let reference = json!({ "type": "ref/prompt", "name": name });
        let argument = json!({ "name": "a", "value": "b" });
        all.push((
            "completion/complete",
            json!({ "ref": reference, "argument": argument }),
        ));
    }
    for uri in [
        "vault:///key",
        "vault:///other",
        "vault:///{id}",
        "open:///a",
        "mcpzip://vault/vault%3A%2F%2F%2Fkey",
        "mcpzip://vault/open%3A%2F%2F%2Fa",
        "mcpzip://nothing/open%3A%2F%2F%2Fa",
    ] {
        all.push(("resources/read", json!({ "uri": uri })));
        all.push(("resources/subscribe", json!({ "uri": uri })));
        let reference = json!({ "type": "ref/resource", "uri": uri });
        let argument = json!({ "name": "id", "value": "b" });
        all.push((
            "completion/complete",
            json!({ "ref": reference, "argument": argument }),
        ));
    }
    all.extend(
        ["prompts/list", "resources/list", "resources/templates/list"]
            .map(|method| (method, json!({}))),
    );
    all
}

/// An answer without what differs between any two runs.
fn plain(text: &str, setup: &Setup) -> String {
    let home = setup.home().path("").display().to_string();
    let mut text = text.replace(home.trim_end_matches('/'), "HOME");
    for (pattern, plain) in [
        // It is made in the background.
        (r#"\\nsearch by meaning: [^"\\]*"#, ""),
        (r#"listed [^,;"\\]*"#, "listed"),
        (r"\d+(\.\d+)? (µs|ms|s)\b", "T"),
        (" +", " "),
    ] {
        let pattern = regex::Regex::new(pattern).unwrap();
        text = pattern.replace_all(&text, plain).into_owned();
    }
    text
}

/// Waits until the tools of the visible server, and of others if there are any, are known to every later session.
fn know_all(setup: &Setup) {
    setup.save();
    // Its exit code says that an entry has a fault.
    let _ = setup.run(&["servers", "--alone"]);
}

/// The answers to all attempts, by a way to ask.
fn answers(setup: &Setup, mut ask: impl FnMut(&str, &Value) -> Message) -> Vec<String> {
    let query = json!({ "name": "search_tools", "arguments": { "query": "read" } });
    until("the tools", || {
        let said = ask("tools/call", &query).as_str().to_owned();
        // With the direct surface, there is no search.
        let is_known = said.contains("open__read") || said.contains("there is no tool");
        is_known.then_some(())
    });
    let ask = |(method, params): (&str, Value)| {
        let said = ask(method, &params);
        let id = regex::Regex::new(r#""id":\d+"#).unwrap();
        let said = plain(&id.replace(said.as_str(), ""), setup);
        format!("{method} {params}\n  {said}")
    };
    attempts().into_iter().map(ask).collect()
}

/// The answers to all attempts in a session over stdio, from the handshake on.
fn answers_of(setup: &Setup, mut client: Client, name: &str) -> Vec<String> {
    let hello = client.shake_hands_named(name);
    let hello = plain(hello.as_str(), setup);
    let mut all = vec![hello];
    all.extend(answers(setup, |method, params| {
        client.ask(method, &params.to_string())
    }));
    client.finish();
    all
}

/// Checks that sessions of this way see the same under the profile, whether or not there is more.
#[track_caller]
fn check(of: impl Fn(&Setup) -> Vec<String>) {
    let [inside, believed] = [whole(), part()].map(|setup| {
        know_all(&setup);
        of(&setup)
    });
    assert!(inside.len() > 120, "{}", inside.len());
    for (inside, believed) in inside.iter().zip(&believed) {
        assert_eq!(inside, believed);
    }
    let all = inside.join("\n");
    assert!(all.contains("opened"), "nothing could be called at all");
    assert!(
        !all.contains("vault opened") && !all.contains("dropped"),
        "{all}"
    );
}

#[test]
fn a_session_under_a_profile_cannot_reach_or_notice_anything_else() {
    check(|setup| answers_of(setup, setup.start_with(PROFILE), "test"));
}

#[test]
fn without_a_profile_all_of_it_is_there() {
    let setup = whole();
    know_all(&setup);
    let all = answers_of(&setup, setup.start(), "test").join("\n");
    for text in [
        "vault opened",
        "dropped",
        "unsealed",
        "vault__unsealing",
        "broken",
    ] {
        assert!(all.contains(text), "{text}");
    }
}
