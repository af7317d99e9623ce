//! Changes of servers' entries in a configuration file, by a command or by an agent.
//!
//! A set of changes is made completely or not at all: the text is changed first, parsed as a configuration, and
//! written if the changed servers are usable. The caller decides which changes are permitted.

use std::fmt;
use std::path::Path;

use serde_json::Value;

use super::document::{Document, DocumentError};
use super::edit::{EditError, edit};
use super::error::{EntryError, Error, ServerFault};
use super::key::restricts;
use super::names::written_name;
use super::{Config, Environment, keys};
use crate::tool::{NameError, ServerName};

const SERVERS: &str = "mcpServers";

/// The keys that decide which program or interface a server is.
const TARGET: [&str; 6] = ["command", "args", "url", "openapi", "graphql", "skills"];

/// A change of one server's entry; entries are JSON texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A new server.
    Add(String),
    /// Adds or replaces a server. The keys that restrict it stay ([`kept_restrictions`]).
    Put(String),
    /// Sets members of the entry, each by its path of keys; `null` removes a member.
    Update(Vec<(Vec<String>, String)>),
    /// Removes a server.
    Remove,
    /// Disables or enables a server.
    Switch {
        /// The new value of `disabled`.
        disabled: bool,
    },
}

/// A change that was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    /// The file cannot be edited.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The file is invalid before or after the change.
    #[error(transparent)]
    Configuration(#[from] Error),
    /// Changes that cannot be made, or give entries that cannot be used.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Refused(Vec<Refused>),
}

/// A refused change of one server.
#[derive(Debug)]
pub(crate) struct Refused {
    server: String,
    reason: Refusal,
}

/// Why a change is not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// A new server has the name of a present one.
    #[error("there is a server of this name; update or remove it")]
    Exists,
    /// The server to change is not there.
    #[error("there is no server of this name")]
    Absent,
    /// The name of a new server breaks the rules for names.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The file is written in a way that cannot be edited.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The changed entry cannot be used.
    #[error(transparent)]
    Unusable(EntryError),
    /// The file is invalid after an earlier change.
    #[error(transparent)]
    Configuration(#[from] Error),
    /// The caller does not permit it.
    #[error(transparent)]
    NotPermitted(Box<dyn std::error::Error + Send + Sync>),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            // The text of a name error includes the server's name.
            Refusal::Name(error) | Refusal::Unusable(EntryError::Name(error)) => error.fmt(f),
            reason => write!(f, "`{}`: {reason}", self.server),
        }
    }
}

/// The result of a change.
#[derive(Debug)]
pub(crate) struct Changed {
    /// The new configuration.
    pub config: Config,
    /// Whether each server of the changes existed before.
    pub was_there: Vec<bool>,
}

impl Change {
    /// Makes the change to the server `name` in `document`.
    ///
    /// # Errors
    /// The reason why it is not made.
    pub(crate) fn make(&self, name: &str, document: &mut Document) -> Result<(), Refusal> {
        let path = [SERVERS, name];
        match (self, is_there(document, name)) {
            (Self::Add(_), true) => return Err(Refusal::Exists),
            (Self::Add(_) | Self::Put(_), false) => drop(ServerName::new(name)?),
            (_, true) => {}
            (_, false) => return Err(Refusal::Absent),
        }
        match self {
            Self::Add(entry) => document.set(&path, entry)?,
            Self::Put(entry) => {
                let kept = kept_restrictions(document, name, &Document::parse(entry)?);
                document.set(&path, entry)?;
                for (key, value) in kept {
                    document.set(&[SERVERS, name, key], &value)?;
                }
            }
            Self::Update(members) => members.iter().try_for_each(|(keys, value)| {
                let path: Vec<&str> = path
                    .into_iter()
                    .chain(keys.iter().map(String::as_str))
                    .collect();
                match value.as_str() {
                    "null" => document.remove(&path).map(drop),
                    json => document.set(&path, json),
                }
            })?,
            Self::Remove => drop(document.remove(&path)?),
            Self::Switch { disabled: true } => {
                document.set(&[SERVERS, name, "disabled"], "true")?;
            }
            Self::Switch { disabled: false } => {
                document.remove(&[SERVERS, name, "disabled"])?;
            }
        }
        Ok(())
    }

    /// Whether the entry must be usable afterwards.
    fn makes_entry(&self) -> bool {
        matches!(self, Self::Add(_) | Self::Put(_) | Self::Update(_))
    }
}

/// Makes `changes` in the file at `path`, each to the server it names; a missing file is created. `permits` may return
/// a reason to refuse a change; it gets the text after the previous changes. With `may_lack_variables` a missing
/// variable or secret does not make an entry unusable, because it may be set later, or where the servers run.
///
/// Blocks on the disk, and up to ten seconds on other processes.
///
/// # Errors
/// When the file cannot be edited, or a change cannot be made. Nothing is changed then.
pub(crate) fn change_servers(
    path: &Path,
    changes: &[(String, Change)],
    environment: &Environment,
    may_lack_variables: bool,
    permits: impl Fn(&Change, &str, &Document) -> Result<(), Refusal>,
) -> Result<Changed, ChangeError> {
    edit(path, |document| {
        // Faults of the file are reported before faults of the change.
        Config::parse(&document.text(), path, environment)?;
        let written = document.keys(&[SERVERS]);
        let keys = changes.iter().map(|(name, _)| written_name(&written, name));
        let was_there = keys.map(|key| key.is_some()).collect();
        let refusals = changes.iter().filter_map(|(name, change)| {
            // The server may have another name in the file.
            let keys = document.keys(&[SERVERS]);
            let key = written_name(&keys, name).unwrap_or(name);
            let made = permits(change, key, document).and_then(|()| change.make(key, document));
            made.err().map(|reason| Refused {
                server: name.clone(),
                reason,
            })
        });
        let refusals: Vec<_> = refusals.collect();
        if !refusals.is_empty() {
            return Err(ChangeError::Refused(refusals));
        }
        let config = Config::parse(&document.text(), path, environment)?;
        // To switch one of several entries would change nothing.
        let must_be_usable = |change: &Change, fault: &EntryError| {
            change.makes_entry() || matches!(fault, EntryError::Repeated { .. })
        };
        let is_unusable = |fault: &&ServerFault| {
            let is_lacking = matches!(
                fault.fault,
                EntryError::MissingVariable { .. } | EntryError::Secret { .. }
            );
            !(may_lack_variables && is_lacking)
                && changes.iter().any(|(name, change)| {
                    must_be_usable(change, &fault.fault) && *name == fault.name
                })
        };
        let unusable = config.faults.iter().filter(is_unusable);
        let unusable = unusable.map(|fault| Refused {
            server: fault.name.clone(),
            reason: Refusal::Unusable(fault.fault.clone()),
        });
        let refusals: Vec<_> = unusable.collect();
        if refusals.is_empty() {
            Ok(Changed { config, was_there })
        } else {
            Err(ChangeError::Refused(refusals))
        }
    })
}

/// The keys of a server that restrict it, with their values as JSON.
pub(crate) fn restrictions(document: &Document, name: &str) -> Vec<(&'static str, String)> {
    let keys = keys::ENTRY.iter().map(|key| key.name);
    // In an entry, `registry` is its origin, and who replaces an entry has added the new one.
    let keys = keys.filter(|key| restricts(key) && !matches!(*key, "registry" | "added_by"));
    let value = |key| Some((key, document.get(&[SERVERS, name, key])?));
    keys.filter_map(value).collect()
}

/// The restrictions of the server `name` that stay if `entry` replaces its entry: those that `entry` does not have itself and that can apply to
/// it. Keys that belong to one program or interface stay only with the same one.
pub(crate) fn kept_restrictions(
    document: &Document,
    name: &str,
    entry: &Document,
) -> Vec<(&'static str, String)> {
    let has = |key: &str| entry.get(&[key]).is_some();
    let json = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
    let is_same = TARGET
        .iter()
        .all(|key| document.get(&[SERVERS, name, key]).map(json) == entry.get(&[key]).map(json));
    let has_operations = has("openapi") || has("graphql");
    let is_command_line = entry.get(&["cli"]).is_some_and(|cli| cli == "true");
    let can_apply = |key: &str| match key {
        "sandbox" | "placement" => has("command"),
        "identity" | "proxy" => has("url") || has_operations,
        "include" | "exclude" => has_operations,
        "cli_depth" | "cli_only" => is_command_line,
        "cli_tools" => is_command_line && is_same,
        "base_url" | "oauth" => is_same,
        _ => true,
    };
    let mut kept = restrictions(document, name);
    kept.retain(|(key, _)| !has(key) && can_apply(key));
    kept
}

fn is_there(document: &Document, name: &str) -> bool {
    document.keys(&[SERVERS]).iter().any(|key| key == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str =
        "// mine\n{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}, // a note\n  },\n}\n";

    fn change(changes: &[(&str, Change)], permits: bool) -> (Result<Changed, ChangeError>, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.json");
        std::fs::write(&path, FILE).unwrap();
        let changes: Vec<_> = changes
            .iter()
            .map(|(name, change)| ((*name).to_owned(), change.clone()))
            .collect();
        let permit = |_: &Change, _: &str, _: &Document| {
            if permits {
                Ok(())
            } else {
                Err(Refusal::NotPermitted("not you".into()))
            }
        };
        let changed = change_servers(&path, &changes, &Environment::default(), true, permit);
        (changed, std::fs::read_to_string(&path).unwrap())
    }

    #[test]
    fn all_changes_are_made_or_none() {
        let add = Change::Add("{\"command\":\"y\",\"args\":[\"${UNSET}\"]}".to_owned());
        let (changed, text) = change(&[("b", add.clone()), ("a", Change::Remove)], true);
        assert_eq!(changed.unwrap().was_there, [false, true]);
        assert_eq!(
            text,
            "// mine\n{\n  \"mcpServers\": {\n    \"b\": {\n      \"command\": \"y\",\n      \"args\": [\"${UNSET}\"]\n    },\n  },\n}\n"
        );
        for (changes, reason) in [
            (
                vec![("b", add.clone()), ("nobody", Change::Remove)],
                "`nobody`: there is no server",
            ),
            (vec![("a", add.clone())], "`a`: there is a server"),
            (vec![("b__c", add.clone())], "`b__c`"),
            (
                vec![("b", Change::Add("{}".to_owned()))],
                "`b`: has neither",
            ),
            (
                vec![
                    ("b", add.clone()),
                    ("c", Change::Add("{\"command\": 1}".to_owned())),
                ],
                "`c`: `command` must be",
            ),
        ] {
            let (changed, text) = change(&changes, true);
            let told = changed.unwrap_err().to_string();
            assert!(told.contains(reason), "{told}");
            assert_eq!(text, FILE);
        }
        let (changed, text) = change(&[("b", add)], false);
        assert_eq!(
            (changed.unwrap_err().to_string().as_str(), text.as_str()),
            ("`b`: not you", FILE)
        );
    }

    #[test]
    fn a_put_keeps_the_place_and_a_switch_the_rest() {
        let (_, text) = change(
            &[("a", Change::Put("{\"command\":\"y\"}".to_owned()))],
            true,
        );
        assert_eq!(
            text,
            FILE.replace("{\"command\": \"x\"}", "{\n      \"command\": \"y\"\n    }")
        );
        let (_, text) = change(&[("a", Change::Switch { disabled: true })], true);
        assert_eq!(text, FILE.replace("\"x\"", "\"x\", \"disabled\": true"));
        let (_, text) = change(&[("a", Change::Switch { disabled: false })], true);
        assert_eq!(text, FILE);
    }
}
