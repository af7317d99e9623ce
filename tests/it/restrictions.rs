//! Keys that restrict: one that is misspelt, `null` or there twice lifts nothing, wherever it stands.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::identities;
use crate::support::Setup;
use crate::support::command::{self, Outcome};

/// The keys without which no more is permitted: a key that stands with a star here is free with all below it. Every other key of the schema
/// restricts.
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
    "search*",
    "results*",
    "scripts",
    "proxy",
    "ca_file",
    "credentials",
    "registry",
    "log",
    "logs*",
    "daemon*",
    "otlp*",
    "audit*",
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
    "server.args",
    "server.env",
    "server.cwd",
    "server.fetch",
    "server.cli",
    "server.cli_help",
    "server.cli_read",
    "server.cli_tools.*",
    "server.url",
    "server.openapi",
    "server.graphql",
    "server.skills",
    "server.base_url",
    "server.origins",
    "server.headers",
    "server.headers_command",
    "server.headersHelper",
    "server.proxy",
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
            object.insert(format!("{key}x"), json!({}));
        });
        let null = with_key(path, |object, key| {
            object.insert(key.to_owned(), Value::Null);
        });
        for (how, file) in [("misspelt", misspelt), ("null", null)] {
            if check(&setup, &file).code != Some(3) {
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
    ] {
        let setup = identities::setup().setting(key, value.clone());
        let doctor = setup.run(&["doctor", "--json"]).code(1);
        assert!(doctor.stdout.contains("config-syntax"), "{key}: {doctor}");
        let serve = setup.command(&["serve", "--http", "127.0.0.1:0"]);
        let refused = command::run(serve, "").code(3).stderr;
        assert!(
            refused.contains("did you mean") || refused.contains("would lift"),
            "{key} {value}: {refused}"
        );
    }
}

#[test]
fn roles_that_are_there_twice_are_refused() {
    let setup = identities::setup();
    setup.save();
    let text = std::fs::read_to_string(setup.config_path()).unwrap();
    let text = text.strip_suffix('}').unwrap();
    setup.save_text(&format!("{text},\"roles\":{{}}}}"));
    let refused = command::run(setup.command(&["config", "check"]), "").code(3);
    assert!(refused.stdout.contains("is there twice"), "{refused}");
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
    for (written, said) in [
        ("\"role\":", "did you mean `roles`"),
        ("\"roles\":null,\"$schema\":", "would lift"),
    ] {
        setup.save_text(&text.replacen("\"roles\":", written, 1));
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
