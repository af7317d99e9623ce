//! The JSON Schema of the configuration: current, complete, and of one mind with the program.

use serde_json::{Value, json};

use crate::support::{Setup, command};

const COMMITTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/config.schema.json");
const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/config.example.json");

fn schema() -> Value {
    let setup = Setup::new();
    command::run(setup.command(&["config", "schema"]), "")
        .code(0)
        .json()
}

/// The schema of what is at `keys`, from the top.
fn at<'s>(schema: &'s Value, keys: &[&str]) -> Option<&'s Value> {
    keys.iter().try_fold(schema, |place, key| match *key {
        "NAME" => Some(&schema["$defs"]["server"]),
        key => place["properties"].get(key),
    })
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

#[test]
fn every_key_of_the_readme_is_in_it_with_a_description() {
    let (schema, readme) = (schema(), std::fs::read_to_string(README).unwrap());
    let table = readme
        .split("\n| key | meaning | default |\n")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    let mut count = 0;
    for row in table.lines().skip(1) {
        let mut above: Vec<&str> = Vec::new();
        // Of `a.b`, `c` the second is beside `b`.
        for name in row.split('|').nth(1).unwrap().split('`').skip(1).step_by(2) {
            let mut keys: Vec<&str> = name.split('.').collect();
            if keys.len() == 1 && !above.is_empty() {
                keys = above.iter().copied().chain(keys).collect();
            }
            let property =
                at(&schema, &keys).or_else(|| at(&schema, &["mcpServers", "NAME", name]));
            let property =
                property.unwrap_or_else(|| panic!("`{name}` of the README is not in the schema"));
            assert!(
                property["description"]
                    .as_str()
                    .is_some_and(|text| text.len() > 10),
                "{name}"
            );
            above = keys[..keys.len() - 1].to_vec();
            count += 1;
        }
    }
    assert!(count > 30, "only {count} keys were found");
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
