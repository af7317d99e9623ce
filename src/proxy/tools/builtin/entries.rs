//! The changes that an agent may make to the configuration, if it may make any.
//!
//! Adding a server lets a program run, so that much is permitted. An agent may not change what restricts a server
//! (`tools`, `trust`, `projects`, `disabled`) or remove a restricted one, use the user's secrets, or send a server's
//! credentials elsewhere. The rules list the permitted changes, so an unknown member is refused.

use serde_json::Value;
use serde_json::value::RawValue;

use super::denied::Denied;
use super::duplicates::refusal;
use super::restrictions::{ADDED_BY, AGENT, SETTABLE, beyond, is_disabled, restrictions};
use super::switches::Switches;
use crate::config::env::is_inherited;
use crate::config::{Change, Config, Document, EntryError};
use crate::mcp::Object;
use crate::secret::Masker;

/// The members that determine who gets a server's credentials.
const DESTINATION: &[&str] = &["type", "command", "args", "env", "cwd", "url", "headers"];

/// The members that an agent may set and that may contain credentials.
const CREDENTIALS: &[&str] = &["env", "headers"];

/// Parses an agent's update, an object of members.
///
/// # Errors
/// When it is not an object.
pub(super) fn update(entry: &RawValue) -> Result<Change, Denied> {
    let members = Object::parse(entry).map_err(|_| Denied::NoObject)?;
    Ok(Change::Update(
        members
            .iter()
            .map(|(key, value)| (vec![key.into_owned()], value.get().to_owned()))
            .collect(),
    ))
}

/// Marks every entry that `change` lets start something else as written by an agent, so that a person has to approve it.
pub(super) fn marked(change: Change) -> Change {
    match change {
        Change::Add(entry) => {
            let raw: Option<&RawValue> = serde_json::from_str(&entry).ok();
            let marked = raw.and_then(|raw| Some(Object::parse(raw).ok()?.with(ADDED_BY, AGENT)));
            Change::Add(marked.unwrap_or(entry))
        }
        Change::Update(mut members) => {
            let redirects = |(keys, _): &(Vec<String>, String)| {
                keys.first()
                    .is_some_and(|key| DESTINATION.contains(&key.as_str()))
            };
            if members.iter().any(redirects) {
                members.push((vec![ADDED_BY.to_owned()], AGENT.to_owned()));
            }
            Change::Update(members)
        }
        other => other,
    }
}

/// Checks that an agent may make a change of `document`, which parses as `config`; `switches` has the servers that
/// agents have disabled.
///
/// # Errors
/// The reason why not, for the agent.
pub(super) fn permit(
    change: &Change,
    name: &str,
    document: &Document,
    config: &Config,
    switches: &Switches,
) -> Result<(), Denied> {
    let mut faults = config.faults.iter();
    // The document shows the last of the entries alone.
    if let Some(fault) = faults.find(|at| matches!(at.fault, EntryError::Repeated { .. })) {
        let server = fault.name.clone();
        return Err(Denied::Repeated { server });
    }
    match change {
        Change::Add(entry) | Change::Put(entry) => {
            let entry: &RawValue = serde_json::from_str(entry)?;
            let members = Object::parse(entry).map_err(|_| Denied::NoObject)?;
            members
                .iter()
                .try_for_each(|(key, value)| check(&key, value.get()))?;
            refuse_held(name, document, config, entry.get())
        }
        Change::Update(entry) => {
            let members = || entry.iter().map(|(keys, value)| (keys[0].as_str(), value));
            members().try_for_each(|(key, value)| check(key, value))?;
            let mut keys = members().map(|(key, _)| key);
            let Some(key) = keys.find(|key| DESTINATION.contains(key)) else {
                return Ok(());
            };
            let key = key.to_owned();
            let persons = beyond(name, document, SETTABLE).into_iter();
            if let Some(person) = persons.into_iter().find(|key| key != ADDED_BY) {
                return Err(Denied::Set { person, key });
            }
            if has_credentials(document, name, &config.masker) {
                return Err(Denied::Credentials { key });
            }
            // The whole entry after the change.
            let mut whole = document.clone();
            change.make(name, &mut whole)?;
            let whole = whole.get(&["mcpServers", name]).unwrap_or_default();
            refuse_held(name, document, config, &whole)
        }
        Change::Remove => {
            let restriction = restrictions(name, document)
                .into_iter()
                .find(|key| key != "disabled" || !switches.is_agents(name, document));
            restriction.map_or(Ok(()), |restriction| {
                Err(Denied::Restricted { restriction })
            })
        }
        Change::Switch { disabled: false }
            if is_disabled(name, document) && !switches.is_agents(name, document) =>
        {
            Err(Denied::SwitchedOff)
        }
        Change::Switch { .. } => Ok(()),
    }
}

/// # Errors
/// When an entry with this JSON may run a restricted server under another name.
fn refuse_held(name: &str, document: &Document, config: &Config, json: &str) -> Result<(), Denied> {
    let entry: Value = serde_json::from_str(json)?;
    refusal(name, &entry, document, config).map_or(Ok(()), Err)
}

/// Whether an entry contains credentials, which only its server may see.
fn has_credentials(document: &Document, name: &str, masker: &Masker) -> bool {
    let json = document.get(&["mcpServers", name]).unwrap_or_default();
    let has_own = CREDENTIALS
        .iter()
        .any(|key| !document.keys(&["mcpServers", name, key]).is_empty());
    has_own || json.contains("${") || masker.mask(&json) != json
}

/// Checks that an agent may write this member.
fn check(key: &str, json: &str) -> Result<(), Denied> {
    if key == ADDED_BY && json == AGENT {
        return Ok(());
    }
    if !SETTABLE.contains(&key) {
        let key = key.to_owned();
        return Err(Denied::Member { key });
    }
    let value: Value = serde_json::from_str(json)?;
    variable_in(&value).map_or(Ok(()), |name| Err(Denied::Variable { name }))
}

/// A variable or secret in a text of `value` that a server's process would not inherit anyway.
fn variable_in(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::String(text) => text.match_indices("${").find_map(|(at, _)| {
            let inner = &text[at + 2..];
            let is_secret = inner.starts_with("keyring:");
            let is_name =
                |c: &char| c.is_alphanumeric() || *c == '_' || is_secret && "-./:".contains(*c);
            let name: String = inner.chars().take_while(is_name).collect();
            (is_secret || !is_inherited(&name)).then_some(name)
        }),
        serde_json::Value::Array(items) => items.iter().find_map(variable_in),
        serde_json::Value::Object(members) => members.values().find_map(variable_in),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Refusal;

    const FILE: &str = r#"{
  // mine
  "mcpServers": {
    "plain": {"command": "x"}, // a note
    "fenced": {"command": "x", "tools": {"deny": ["rm"]}},
    "keyed": {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}},
  },
  "management": "full",
}"#;

    fn update(json: &str) -> Change {
        super::update(&RawValue::from_string(json.to_owned()).unwrap()).unwrap()
    }

    fn add(json: &str) -> Change {
        Change::Add(json.to_owned())
    }

    fn make(change: &Change, name: &str, document: &mut Document) -> Result<(), Refusal> {
        let path = std::path::Path::new("/home/me/config.json");
        let environment = crate::config::Environment::default();
        let config = Config::parse(&document.text(), path, &environment).unwrap();
        permit(change, name, document, &config, &Switches::default())?;
        change.make(name, document)
    }

    #[track_caller]
    fn refused(change: &Change, name: &str, reason: &str) {
        let mut document = Document::parse(FILE).unwrap();
        let told = make(change, name, &mut document).unwrap_err().to_string();
        assert!(told.contains(reason), "{told}");
        assert_eq!(document.text(), FILE);
    }

    #[track_caller]
    fn made(change: &Change, name: &str, old: &str, new: &str) {
        let mut document = Document::parse(FILE).unwrap();
        make(change, name, &mut document).unwrap();
        assert_eq!(document.text(), FILE.replace(old, new));
    }

    #[test]
    fn an_agent_changes_what_is_no_bound_of_its_own() {
        let with_timeout = update(r#"{"timeout":"5s"}"#);
        made(
            &with_timeout,
            "plain",
            r#""x"}, // a"#,
            r#""x", "timeout": "5s"}, // a"#,
        );
        made(
            &with_timeout,
            "fenced",
            r#"["rm"]}}"#,
            r#"["rm"]}, "timeout": "5s"}"#,
        );
        made(
            &update(r#"{"command":"y"}"#),
            "plain",
            r#""plain": {"command": "x"}"#,
            r#""plain": {"command": "y"}"#,
        );
        made(
            &Change::Switch { disabled: true },
            "plain",
            r#""x"}, // a"#,
            r#""x", "disabled": true}, // a"#,
        );
        made(
            &Change::Remove,
            "plain",
            "    \"plain\": {\"command\": \"x\"}, // a note\n",
            "",
        );
        let added = r#""${TOKEN}"}},"#.replace("\"$", "Bearer $");
        made(
            &add(r#"{"command":"z","args":["here"]}"#),
            "new",
            &added,
            &format!(
                "{added}\n    \"new\": {{\n      \"command\": \"z\",\n      \"args\": [\"here\"]\n    }},"
            ),
        );
    }

    #[test]
    fn an_agent_cannot_widen_its_rights_or_get_at_secrets() {
        let command = r#"{"command":"evil"}"#;
        refused(&update(command), "fenced", "`tools`");
        refused(&Change::Remove, "fenced", "`tools`");
        refused(
            &update(r#"{"tools":null}"#),
            "fenced",
            "only a person may set",
        );
        refused(
            &update(r#"{"trust":"all"}"#),
            "plain",
            "only a person may set",
        );
        refused(
            &update(r#"{"url":"https://evil.example"}"#),
            "keyed",
            "credentials",
        );
        refused(
            &update(r#"{"env":{"NODE_OPTIONS":"-r evil"}}"#),
            "keyed",
            "credentials",
        );
        refused(
            &add(r#"{"command":"x","env":{"T":"a ${TOKEN}"}}"#),
            "new",
            "${TOKEN}",
        );
        refused(
            &add(r#"{"command":"x","args":["\u0024{TOKEN:-x}"]}"#),
            "new",
            "${TOKEN}",
        );
        for json in [
            r#"{"command":"x","args":["\u0024{keyring:git/hub-1}"]}"#,
            r#"{"url":"https://evil.example/?${keyring:git/hub-1}"}"#,
            r#"{"command":"x","env":{"T":"$${keyring:git/hub-1}"}}"#,
        ] {
            refused(&add(json), "new", "${keyring:git/hub-1}");
            refused(&update(json), "plain", "${keyring:git/hub-1}");
        }
        refused(
            &add(r#"{"command":"x","oauth":{}}"#),
            "new",
            "only a person may set",
        );
        refused(&add(command), "plain", "there is a server");
        refused(&Change::Remove, "nobody", "there is no server");
        refused(&add("[1]"), "new", "object");
    }
}
