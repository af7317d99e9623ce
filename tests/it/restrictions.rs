//! Keys that restrict: one that is misspelt, `null` or there twice lifts nothing, wherever it stands.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::identities;
use crate::support::command::{self, Outcome};
use crate::support::script::answer;
use crate::support::{Server, Setup, until};

/// The keys without which no more is permitted or sent elsewhere, and no less is recorded: a key that stands with a star here is free with all
/// below it. Every other key of the schema restricts.
const FREE: &[&str] = &[
    "$schema",
    "mcpServers",
    "call_timeout",
    "idle_timeout",
    "min_idle_timeout",
    "max_idle_timeout",
    "health_check",
    "catalog*",
    "surface*",
    "show",
    "search",
    "search.default_limit",
    "search.semantic",
    "search.learn",
    "search.llm",
    "search.llm.provider",
    "search.llm.model",
    "search.llm.api_key",
    "search.llm.timeout",
    "results*",
    "scripts",
    "ca_file",
    "log",
    "logs*",
    "daemon*",
    "otlp*",
    "audit.enabled",
    "approvals*",
    "notify",
    "tools.without_asking",
    "clients.*.surface",
    "clients.*.show",
    "clients.*.form",
    // A slip refuses the client alone: `profiles::refused`.
    "clients.*.profile",
    "http.address",
    "http.origins",
    "http.public_url",
    "http.peer",
    "http.drain",
    "http.surface",
    "http.direct",
    "http.ui",
    "http.metrics",
    "server.type",
    "server.command",
    "server.fetch",
    "server.cli",
    "server.cli_help",
    "server.cli_read",
    "server.cli_tools.*",
    "server.url",
    "server.openapi",
    "server.graphql",
    "server.skills",
    "server.origins",
    "server.headers_command",
    "server.headersHelper",
    "server.ca_file",
    "server.oauth.grant",
    "server.oauth.idp",
    "server.oauth.client_id",
    "server.oauth.client_secret",
    "server.oauth.client_metadata_url",
    "server.oauth.private_key_file",
    "server.oauth.redirect_port",
    "server.timeout",
    "server.idle_timeout",
    "server.min_idle_timeout",
    "server.max_idle_timeout",
    "server.max_concurrent",
    "server.era",
    "server.description",
    "server.registry*",
    "server.tools.without_asking",
];

/// Keys whose values may restrict, and for which programs write `null` if there is no value.
const CARRIERS: &[&str] = &["server.args", "server.env", "server.cwd", "server.headers"];

fn is_free(path: &str) -> bool {
    FREE.iter().any(|free| match free.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == *free,
    })
}

/// Adds the paths of all keys below `node`.
fn keys(prefix: &str, node: &Value, found: &mut BTreeSet<String>) {
    for (key, property) in node["properties"].as_object().into_iter().flatten() {
        let path = format!("{prefix}{key}");
        keys(&format!("{path}."), property, found);
        found.insert(path);
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        for node in node[choice].as_array().into_iter().flatten() {
            keys(prefix, node, found);
        }
    }
    if node["additionalProperties"].is_object() {
        keys(&format!("{prefix}*."), &node["additionalProperties"], found);
    }
    if node["items"].is_object() {
        keys(&format!("{prefix}0."), &node["items"], found);
    }
}

/// A valid file with each object that has a key which restricts.
fn whole() -> Value {
    json!({
      "mcpServers": {
        "a": { "command": "x", "tools": { "deny": ["q"], "override": {} }, "expose": {}, "sandbox": { "preset": "strict" } },
        "b": { "url": "https://b", "oauth": {}, "identity": { "forward": { "header": "X-User" } } },
        "c": { "url": "https://c", "identity": { "exchange": { "token_url": "https://t/token", "client_id": "i" } } },
        "d": { "command": "x", "cli": true },
        "e": { "openapi": "https://e/openapi.json" },
        "f": { "url": "https://f", "oauth": { "grant": "id-jag", "client_id": "c", "client_secret": "s", "idp": { "issuer": "https://i", "client_id": "i" } } }
      },
      "expose": {},
      "scripts": {},
      "audit": {},
      "search": { "llm": { "provider": "openai", "model": "m", "api_key": "k" } },
      "tools": { "deny": ["q"] },
      "clients": { "test": {} },
      "profiles": { "all": { "servers": ["*"], "tools": { "deny": ["q"] } } },
      "roles": { "dev": { "profiles": ["all"] } },
      "limits": [{ "calls_per_day": 9 }],
      "http": {
        "auth": {
          "tokens": true,
          "certificates": true,
          "forwarded": { "user_header": "X-User", "from": ["127.0.0.1"] },
          "oauth": { "issuer": "https://i", "audience": "https://m/mcp" },
          "authorization_server": { "url": "https://m", "login": { "issuer": "https://i", "client_id": "i", "client_secret": "s" } }
        },
        "tls": { "cert": "c.pem", "key": "k.pem", "client_ca": "ca.pem" }
      }
    })
}

/// The server of [`whole`] that may have the key at this path.
fn server_with(path: &str) -> &'static str {
    let servers = [
        ("oauth.idp", "f"),
        ("oauth", "b"),
        ("identity.exchange", "c"),
        ("identity", "b"),
        ("cli", "d"),
        ("include", "e"),
        ("exclude", "e"),
    ];
    let found = servers.iter().find(|(start, _)| path.starts_with(start));
    found.map_or("a", |(_, server)| server)
}

/// [`whole`] with one more key next to that at `path`, or in its place.
fn with_key(path: &str, change: impl FnOnce(&mut serde_json::Map<String, Value>, &str)) -> Value {
    let mut file = whole();
    let (mut node, rest) = match path.strip_prefix("server.") {
        Some(rest) => (&mut file["mcpServers"][server_with(rest)], rest),
        None => (&mut file, path),
    };
    let mut steps = rest.split('.').collect::<Vec<_>>();
    let key = steps.pop().unwrap();
    for step in steps {
        node = match step {
            "*" => node.as_object_mut().unwrap().values_mut().next().unwrap(),
            "0" => &mut node[0],
            step => &mut node[step],
        };
    }
    let object = node.as_object_mut();
    change(
        object.unwrap_or_else(|| panic!("no object for {path}")),
        key,
    );
    file
}

fn check(setup: &Setup, file: &Value) -> Outcome {
    let path = setup.home().path("checked.json");
    std::fs::write(&path, file.to_string()).unwrap();
    setup.run(&["config", "check", path.to_str().unwrap()])
}

#[test]
fn no_key_that_restricts_can_be_misspelt_or_null() {
    let setup = Setup::new();
    let _ = check(&setup, &whole()).code(0);
    let schema = setup.run(&["config", "schema"]).code(0).json();
    let mut found = BTreeSet::new();
    keys("", &schema, &mut found);
    keys("server.", &schema["$defs"]["server"], &mut found);
    let restricting: Vec<&String> = found.iter().filter(|path| !is_free(path)).collect();
    assert!(restricting.len() > 70, "{restricting:?}");
    let mut lifted = Vec::new();
    for path in restricting {
        let misspelt = with_key(path, |object, key| {
            object.insert(format!("{key}x"), json!({ "a": 1 }));
        });
        let null = with_key(path, |object, key| {
            object.insert(key.to_owned(), Value::Null);
        });
        for (how, file) in [("misspelt", misspelt), ("null", null)] {
            let is_meant = how == "misspelt" || !CARRIERS.contains(&path.as_str());
            if is_meant && check(&setup, &file).code != Some(3) {
                lifted.push(format!("{path} {how}"));
            }
        }
    }
    assert!(lifted.is_empty(), "{lifted:#?}");
}

#[test]
fn a_restriction_that_is_lost_keeps_the_gateway_and_doctor_from_going_on() {
    for (key, value) in [
        ("role", json!({})),
        ("rolls", json!({})),
        ("roles", Value::Null),
        ("limit", json!([{ "calls_per_minute": 1 }])),
        ("limits", Value::Null),
        ("tools", Value::Null),
        ("profile", json!({})),
        ("http", json!({ "aut": { "tokens": true } })),
        ("http", json!({ "auth": null })),
        ("http", json!({ "identities": { "tokens": true } })),
        ("http", json!({ "security": { "who": "all" } })),
        ("http", json!({ "token_path": "tokens" })),
        ("http", json!({ "oidc": "https://i" })),
        ("http", json!({ "ssl": { "cert": "c.pem" } })),
        ("http", json!({ "https": true })),
        ("http", json!({ "cert": "c.pem" })),
        ("auth", json!({ "tokens": true })),
        ("authentication", json!({ "tokens": true })),
        ("identities", json!(["anna"])),
        ("tls", json!({ "cert": "c.pem", "key": "k.pem" })),
        ("rate_limits", json!([{ "calls_per_minute": 1 }])),
        ("audti", json!({})),
        ("audit", Value::Null),
        ("audit", json!("yes")),
        ("audit", json!({ "argument": "none" })),
        ("audit", json!({ "arguments": "all" })),
        ("audit", json!({ "to": ["sylog"] })),
        ("audit", json!({ "durable": true })),
        ("credential", json!("keychain")),
        ("credentials", json!("keychian")),
        ("credentials", Value::Null),
        ("proxi", json!("socks5://127.0.0.1:1")),
        ("registry", json!("registry.example.com")),
    ] {
        let setup = identities::setup().setting(key, value.clone());
        let doctor = setup.run(&["doctor", "--json"]).code(1);
        let is_found = ["config-syntax", "config-refused"]
            .iter()
            .any(|code| doctor.stdout.contains(code));
        assert!(is_found, "{key}: {doctor}");
        let serve = setup.command(&["serve", "--http", "127.0.0.1:0"]);
        let refused = command::run(serve, "").code(3).stderr;
        assert!(
            [
                "did you mean",
                "would lift",
                "must be",
                "protects something",
                "keep strangers out"
            ]
            .iter()
            .any(|said| refused.contains(said)),
            "{key} {value}: {refused}"
        );
    }
    for (key, value, said) in [
        ("management", json!("none"), "agents can neither read nor"),
        ("expose", json!(false), "clients see neither"),
        ("expose", json!({ "prompts": 1 }), "clients see none"),
        ("clients", json!([]), "no client has settings"),
    ] {
        let setup = Setup::new().setting(key, value);
        let doctor = setup.run(&["doctor", "--json"]).code(1).json();
        let mut findings = doctor["findings"].as_array().unwrap().iter();
        let found = findings.find(|finding| finding["code"] == "config-refused");
        assert!(found.unwrap().to_string().contains(said), "{doctor}");
        let checked = setup.run(&["config", "check"]).code(3).stdout;
        assert!(checked.contains(said), "{checked}");
    }
}

#[test]
fn a_word_that_does_not_switch_on_is_taken_for_one_that_switches_off() {
    let setup = Setup::new();
    let entry = |key: &str, value: Value| {
        let file = json!({ "mcpServers": { "a": { "url": "https://a", key: value } } });
        check(&setup, &file)
    };
    for (key, value) in [
        ("enabled", json!("false")),
        ("enabled", json!(0)),
        ("isActive", json!(false)),
        ("auth", json!("oauth")),
        ("environment", json!({ "READ_ONLY": "1" })),
        (
            "tools",
            json!({ "override": { "t": { "argument": null } } }),
        ),
    ] {
        let _ = entry(key, value).code(3);
    }
    for (key, value) in [
        ("enabled", json!(true)),
        ("enabled", json!("true")),
        ("isActive", Value::Null),
        ("auth", json!(false)),
        // Entries of README files have keys of other clients without a value.
        ("registryUrl", json!("https://registry.example.com")),
        ("working_directory", Value::Null),
        ("baseUrl", json!("")),
        ("environment", json!({})),
        ("env_vars", json!([])),
        ("auth", json!("none")),
        ("tools", json!({ "override": { "t": { "name": null } } })),
    ] {
        let _ = entry(key, value).code(0);
    }
}

#[test]
fn a_key_that_restricts_and_is_there_twice_is_refused() {
    let setup = identities::setup();
    setup.save();
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    let text = text.strip_suffix('}').unwrap();
    for again in ["roles", "audit", "mcpServers"] {
        setup.save_text(&format!("{text},\"{again}\":{{}}}}"));
        let refused = command::run(setup.command(&["config", "check"]), "").code(3);
        assert!(refused.stdout.contains("is there twice"), "{refused}");
    }
}

#[test]
fn a_server_whose_name_is_there_twice_is_not_started_and_others_are() {
    let server = || Server::new().tool("read", [answer("read")]);
    let deny = json!({ "tools": { "deny": ["read"] } });
    let setup = Setup::new()
        .server_with("a", server(), deny)
        .server("b", server())
        .server("c", server())
        .setting("management", json!("full"));
    setup.save();
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    let twice = text.replace("\"b\":", "\n  \"a\":");
    let run = |arguments: &[&str]| command::run(setup.command(arguments), "");
    let has_all = |said: &str| {
        ["more than once", "1:16 and 2:3", "rename or remove"]
            .iter()
            .all(|part| said.contains(part))
    };
    setup.save_text(&twice);
    let checked = run(&["config", "check"]).code(3);
    assert!(has_all(&checked.stdout), "{checked}");
    let mut client = setup.start_command(setup.command(&["serve"]));
    client.shake_hands("2025-11-25");
    let refused = client.execute("a__read").tool_error();
    assert!(has_all(&refused), "{refused}");
    assert_eq!(client.execute("c__read").text(), "read");
    for change in [
        json!({ "operation": "remove", "names": ["a"] }),
        json!({ "operation": "add", "servers": { "d": { "command": "x" } } }),
    ] {
        let refused = client.execute_with("mcpzip__servers", &change.to_string());
        let refused = refused.tool_error();
        assert!(refused.contains("more than one server `a`"), "{refused}");
    }
    client.finish();
    assert_eq!((setup.home().starts("a"), setup.home().starts("b")), (0, 0));
    let found = run(&["doctor", "--json"]).code(1).json();
    let mut findings = found["findings"].as_array().unwrap().iter();
    let found = findings.find(|finding| finding["code"] == "server-entry");
    assert!(has_all(&found.unwrap()["what"].to_string()), "{found:?}");
    for refused in [
        &["disable", "a"][..],
        &["enable", "a"],
        &["add", "a", "--force", "--no-check", "--", "x"],
    ] {
        let refused = run(refused).code(1);
        assert!(has_all(&refused.stderr), "{refused}");
        let now = std::fs::read_to_string(setup.config_path()).unwrap();
        assert_eq!(now, twice);
    }
    let rules = run(&["rules", "check", "a", "read"]);
    assert_ne!(rules.code, Some(0), "{rules}");
    let _ = run(&["remove", "a"]).code(0);
    let now = std::fs::read_to_string(setup.config_path()).unwrap();
    assert!(!now.contains("\"a\"") && now.contains("\"c\""), "{now}");
    let _ = run(&["config", "check"]).code(0);
}

#[test]
fn a_second_entry_that_an_edit_adds_ends_the_use_of_the_first() {
    let setup = Setup::new().server("a", Server::new().tool("read", [answer("read")]));
    let mut client = setup.connect();
    assert_eq!(client.execute("a__read").text(), "read");
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    setup.save_text(&text.replacen("\"a\":", "\"a\":{\"command\":\"x\"},\"a\":", 1));
    let refused = until("the edit to be noticed", || {
        let answer = client.execute("a__read");
        answer.is_tool_error().then(|| answer.tool_error())
    });
    assert!(refused.contains("more than once"), "{refused}");
}

#[test]
fn an_edit_that_would_lift_a_restriction_changes_nothing() {
    let people = json!({ "dev": { "profiles": ["code"], "users": ["anna"] } });
    let setup = identities::setup().setting("roles", people);
    let anna = identities::token(&setup, &["anna"]);
    let mut gateway = setup.serve(&[]);
    let pushed = identities::execute(&gateway, "git__push", &anna);
    assert!(pushed.contains("there is no tool"), "{pushed}");
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    for (key, written, said) in [
        ("\"roles\":", "\"role\":", "did you mean `roles`"),
        ("\"roles\":", "\"roles\":null,\"$schema\":", "would lift"),
        ("\"audit\":", "\"audti\":", "did you mean `audit`"),
        (
            "\"http\":{",
            "\"http\":{\"security\":{\"tokens\":true},",
            "`http.security`",
        ),
    ] {
        assert!(text.contains(key), "{key}: {text}");
        setup.save_text(&text.replacen(key, written, 1));
        gateway.process().wait_for_stderr(said);
        for tool in ["git__push", "vault__read"] {
            let called = identities::execute(&gateway, tool, &anna);
            assert!(
                !called.contains("pushed") && !called.contains("a secret"),
                "{called}"
            );
        }
        assert_eq!(
            identities::execute(&gateway, "git__log", &anna),
            "200 the log"
        );
    }
    // All lines are there, also those of calls after the edit that would have ended the log.
    let log = setup.run(&["audit", "--json"]).code(0).stdout;
    assert_eq!(log.matches("\"tool\":\"log\"").count(), 4, "{log}");
}

#[test]
fn doctor_says_what_keeps_a_gateway_from_starting() {
    for (http, code, said) in [
        (
            json!({ "auth": { "tokens": true }, "tls": { "cert": "no.pem", "key": "no.key" } }),
            1,
            "the file of `http.tls.cert`",
        ),
        (
            json!({ "auth": { "token": true } }),
            3,
            "one of the keys `tokens`",
        ),
        (json!({ "auth": {} }), 3, "`http.auth` must be"),
        (
            json!({ "auth": { "tokens": true }, "tls": { "cert": "s.pem" } }),
            3,
            "`http.tls` must be",
        ),
        (
            json!({ "auth": { "tokens": true }, "token_file": "one" }),
            3,
            "`http.auth` asks for identities",
        ),
    ] {
        let setup = identities::setup().setting("http", http.clone());
        let serve = setup.command(&["serve", "--http", "127.0.0.1:0"]);
        setup.save();
        let refused = command::run(serve, "").code(code).stderr;
        let doctor = setup.run(&["doctor", "--json"]).code(1).json();
        let mut errors = doctor["findings"].as_array().unwrap().iter();
        let found = errors.any(|one| {
            one["severity"] == "error" && one.to_string().replace("\\\"", "\"").contains(said)
        });
        assert!(refused.contains(said), "{http}: {refused}");
        assert!(found, "{http}: {doctor}");
    }
}
