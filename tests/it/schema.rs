//! The JSON Schema of the configuration: current, complete, and of one mind with the program.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Setup, command};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/config.schema.json");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config.example.json");

fn schema() -> Value {
    let setup = Setup::new();
    command::run(setup.command(&["config", "schema"]), "")
        .code(0)
        .json()
}

#[test]
fn the_committed_schema_is_what_the_program_prints() {
    let committed = std::fs::read_to_string(COMMITTED).unwrap();
    let committed: Value = serde_json::from_str(&committed).unwrap();
    assert!(
        committed == schema(),
        "write it anew: cargo run -- config schema > docs/config.schema.json"
    );
}

/// Adds the dotted names of the properties of `node`, and of all below it, with whether they have a description. Alternatives of one
/// object may name a property again without one.
fn described(prefix: &str, node: &Value, found: &mut BTreeMap<String, bool>) {
    for (key, property) in node["properties"].as_object().into_iter().flatten() {
        let name = format!("{prefix}{key}");
        described(&format!("{name}."), property, found);
        *found.entry(name).or_default() |= property["description"]
            .as_str()
            .is_some_and(|text| text.len() > 10);
    }
    for choice in ["anyOf", "oneOf"] {
        for node in node[choice].as_array().into_iter().flatten() {
            described(prefix, node, found);
        }
    }
}

#[test]
fn every_key_has_a_description_for_the_reference() {
    let schema = schema();
    let mut found = BTreeMap::new();
    described("", &schema, &mut found);
    described("mcpServers.NAME.", &schema["$defs"]["server"], &mut found);
    let bare: Vec<_> = found.iter().filter(|(_, has)| !**has).collect();
    assert!(bare.is_empty(), "without a description: {bare:?}");
    assert!(found.len() > 60, "only {} keys were found", found.len());
}

#[test]
fn the_example_fits_and_what_is_wrong_does_not() {
    let schema = jsonschema::validator_for(&schema()).unwrap();
    let example = std::fs::read_to_string(EXAMPLE).unwrap();
    let lines = example
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let example: Value = serde_json::from_str(&lines.collect::<Vec<_>>().join("\n")).unwrap();
    assert!(schema.is_valid(&example));
    let server = |entry: Value| json!({ "mcpServers": { "a": entry } });
    for right in [
        json!({}),
        json!({ "$schema": "./config.schema.json", "mcpServers": {}, "search": { "llm": null } }),
        server(
            json!({ "url": "https://a.example/mcp", "type": "http", "oauth": { "scopes": ["a"], "redirect_port": 80 } }),
        ),
        server(
            json!({ "command": "x", "timeout": 1.5, "idle_timeout": "never", "tools": { "deny": ["@destructive"] } }),
        ),
    ] {
        assert!(schema.is_valid(&right), "{right}");
    }
    for wrong in [
        json!([]),
        json!({ "mcpserver": {} }),
        json!({ "call_timeout": "soon" }),
        json!({ "search": { "default_limit": 51 } }),
        server(json!({})),
        server(json!({ "command": "x", "url": "https://a.example" })),
        server(json!({ "command": ["x", "y"] })),
        server(json!({ "command": "x", "arg": [] })),
        server(json!({ "command": "x", "env": { "A": 1 } })),
        server(json!({ "command": "x", "trust": "all" })),
        server(json!({ "url": "https://a.example", "oauth": { "redirect_port": 65536 } })),
        json!({ "mcpServers": { "a__b": { "command": "x" } } }),
        json!({ "mcpServers": { "MCPzip": { "command": "x" } } }),
    ] {
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}
