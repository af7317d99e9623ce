//! What an agent may write into the configuration, where it may write at all.
//!
//! Whoever adds a server lets a program run, so that much is granted. What is not: to change what restricts a server
//! (`tools`, `trust`, `projects`) or get rid of it, to use the user's secrets, and to send a server's credentials elsewhere.

use serde_json::value::RawValue;

use crate::config::Document;
use crate::config::env::is_inherited;
use crate::mcp::Object;
use crate::secret::Masker;

/// The members of an entry that an agent may set.
const SETTABLE: &[&str] = &[
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "timeout",
    "idle_timeout",
    "max_concurrent",
    "era",
    "description",
];

/// What a person sets to keep a server within bounds.
const RESTRICTIONS: &[&str] = &["tools", "trust", "projects"];

/// What decides who gets a server's credentials.
const DESTINATION: &[&str] = &["type", "command", "args", "env", "cwd", "url", "headers"];

/// What an entry may have credentials in.
const CREDENTIALS: &[&str] = &["env", "headers", "oauth", "proxy"];

/// A change of one server's entry.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Add(Box<RawValue>),
    Update(Box<RawValue>),
    Remove,
    Switch { disabled: bool },
}

/// Makes a change in the document.
///
/// # Errors
/// Why it is not made, for the agent.
pub(super) fn make(change: &Change, name: &str, document: &mut Document, masker: &Masker) -> Result<(), String> {
    let path = ["mcpServers", name];
    let known = document.keys(&["mcpServers"]).iter().any(|key| key == name);
    match change {
        Change::Add(_) if known => return Err("there is a server of this name; update or remove it".to_owned()),
        Change::Add(_) => {}
        _ if !known => return Err("there is no server of this name".to_owned()),
        _ => {}
    }
    let members = document.keys(&path);
    let restriction = RESTRICTIONS.iter().find(|key| members.iter().any(|member| member == *key));
    match change {
        Change::Add(entry) => {
            check(entry)?;
            document.set(&path, entry.get()).map_err(|error| error.to_string())
        }
        Change::Update(entry) => {
            check(entry)?;
            let entry = Object::parse(entry).map_err(|_| "its entry must be an object".to_owned())?;
            let moved = entry.iter().map(|(key, _)| key).find(|key| DESTINATION.contains(&key.as_ref()));
            if let Some(key) = moved {
                if let Some(restriction) = restriction {
                    return Err(format!(
                        "a person has restricted it by `{restriction}`, so only a person may set `{key}`"
                    ));
                }
                if has_credentials(document, name, masker) {
                    return Err(format!("it has credentials, so only a person may set `{key}`"));
                }
            }
            for (key, value) in entry.iter() {
                let path = ["mcpServers", name, key.as_ref()];
                let done = match value.get() {
                    "null" => document.remove(&path).map(drop),
                    json => document.set(&path, json),
                };
                done.map_err(|error| error.to_string())?;
            }
            Ok(())
        }
        Change::Remove => match restriction {
            Some(restriction) => {
                Err(format!("a person has restricted it by `{restriction}`, so only a person may remove it"))
            }
            None => document.remove(&path).map(drop).map_err(|error| error.to_string()),
        },
        Change::Switch { disabled } => {
            let path = ["mcpServers", name, "disabled"];
            let done = if *disabled { document.set(&path, "true") } else { document.remove(&path).map(drop) };
            done.map_err(|error| error.to_string())
        }
    }
}

/// Whether an entry holds what only its server may see.
fn has_credentials(document: &Document, name: &str, masker: &Masker) -> bool {
    let json = document.get(&["mcpServers", name]).unwrap_or_default();
    let has_own = CREDENTIALS.iter().any(|key| !document.keys(&["mcpServers", name, key]).is_empty());
    has_own || json.contains("${") || masker.mask(&json) != json
}

/// Whether an agent may write this.
fn check(entry: &RawValue) -> Result<(), String> {
    let members = Object::parse(entry).map_err(|_| "its entry must be an object".to_owned())?;
    if let Some((key, _)) = members.iter().find(|(key, _)| !SETTABLE.contains(&key.as_ref())) {
        return Err(format!("`{key}` is not for agents to set; there are {}", SETTABLE.join(", ")));
    }
    let value: serde_json::Value = serde_json::from_str(entry.get()).map_err(|error| error.to_string())?;
    match variable_in(&value) {
        Some(name) => Err(format!("variables such as `${{{name}}}` may hold secrets: a person has to write them")),
        None => Ok(()),
    }
}

/// A variable in a text of `value` that a server's process would not get anyway.
fn variable_in(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) => text.match_indices("${").find_map(|(at, _)| {
            let name: String = text[at + 2..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            (!is_inherited(&name)).then_some(name)
        }),
        serde_json::Value::Array(items) => items.iter().find_map(variable_in),
        serde_json::Value::Object(members) => members.values().find_map(variable_in),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{
  // mine
  "mcpServers": {
    "plain": {"command": "x"}, // a note
    "fenced": {"command": "x", "tools": {"deny": ["rm"]}},
    "keyed": {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
  },
  "management": "full",
}"#;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[track_caller]
    fn refused(change: &Change, name: &str, reason: &str) {
        let mut document = Document::parse(FILE).unwrap();
        let told = make(change, name, &mut document, &Masker::default()).unwrap_err();
        assert!(told.contains(reason), "{told}");
        assert_eq!(document.text(), FILE);
    }

    #[track_caller]
    fn made(change: &Change, name: &str, old: &str, new: &str) {
        let mut document = Document::parse(FILE).unwrap();
        make(change, name, &mut document, &Masker::default()).unwrap();
        assert_eq!(document.text(), FILE.replace(old, new));
    }

    #[test]
    fn an_agent_changes_what_is_no_bound_of_its_own() {
        let with_timeout = raw(r#"{"timeout":"5s"}"#);
        made(&Change::Update(with_timeout.clone()), "plain", r#""x"}, // a"#, r#""x", "timeout": "5s"}, // a"#);
        made(&Change::Update(with_timeout), "fenced", r#"["rm"]}}"#, r#"["rm"]}, "timeout": "5s"}"#);
        made(
            &Change::Update(raw(r#"{"command":"y"}"#)),
            "plain",
            r#""plain": {"command": "x"}"#,
            r#""plain": {"command": "y"}"#,
        );
        made(&Change::Switch { disabled: true }, "plain", r#""x"}, // a"#, r#""x", "disabled": true}, // a"#);
        made(&Change::Remove, "plain", "    \"plain\": {\"command\": \"x\"}, // a note\n", "");
        let added = r#""${TOKEN}"}},"#.replace("\"$", "Bearer $");
        made(
            &Change::Add(raw(r#"{"command":"z","args":["${HOME}"]}"#)),
            "new",
            &added,
            &format!("{added}\n    \"new\": {{\n      \"command\": \"z\",\n      \"args\": [\"${{HOME}}\"]\n    }},"),
        );
    }

    #[test]
    fn an_agent_cannot_widen_its_rights_or_get_at_secrets() {
        let command = raw(r#"{"command":"evil"}"#);
        refused(&Change::Update(command.clone()), "fenced", "`tools`");
        refused(&Change::Remove, "fenced", "`tools`");
        refused(&Change::Update(raw(r#"{"tools":null}"#)), "fenced", "not for agents");
        refused(&Change::Update(raw(r#"{"trust":"all"}"#)), "plain", "not for agents");
        refused(&Change::Update(raw(r#"{"url":"https://evil.example"}"#)), "keyed", "credentials");
        refused(&Change::Update(raw(r#"{"env":{"NODE_OPTIONS":"-r evil"}}"#)), "keyed", "credentials");
        refused(&Change::Add(raw(r#"{"command":"x","env":{"T":"a ${TOKEN}"}}"#)), "new", "${TOKEN}");
        refused(&Change::Add(raw(r#"{"command":"x","args":["\u0024{TOKEN:-x}"]}"#)), "new", "${TOKEN}");
        refused(&Change::Add(raw(r#"{"command":"x","oauth":{}}"#)), "new", "not for agents");
        refused(&Change::Add(command), "plain", "there is a server");
        refused(&Change::Remove, "nobody", "there is no server");
        refused(&Change::Add(raw("[1]")), "new", "object");
    }
}
