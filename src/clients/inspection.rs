//! Checks our own entries in clients' files: the program they start, their missing keys, and the repair.
//!
//! An entry should have the keys that [`entry::write`] would write now, so only `entry` knows what a client needs.

use std::path::Path;

use super::cache::read_source;
use super::connection::variables_of;
use super::edit::{Edit, PlanError};
use super::{
    Client, CodexApproval, ConfigLocation, Entry, Found, Launch, Node, Survey, Target, Text,
    TextError, entry,
};

/// An entry for mcpzip in a client's file.
#[derive(Debug, Clone)]
pub(crate) struct OwnEntry {
    /// The place of the entry.
    pub location: ConfigLocation,
    /// Its name in the file.
    pub name: String,
    /// The program that it starts, as written.
    pub program: String,
    /// The entry in our form.
    pub entry: Entry,
    /// Whether the client has it switched off.
    pub is_disabled: bool,
    /// The missing keys that the client needs.
    pub lacks: Vec<String>,
    /// The warning, if the client refuses every call through the entry.
    pub refusal: Option<String>,
}

/// The variables that Codex passes on.
const VARIABLES: &str = "env_vars";

/// Keys whose absence changes nothing.
const INDIFFERENT: &[&str] = &[
    "type", "command", "cmd", "args", "env", "envs", "enabled", "name", "timeout",
];

/// Our entries in a survey.
#[must_use]
pub(crate) fn own_entries(survey: &Survey, launch: &Launch, config_file: &Path) -> Vec<OwnEntry> {
    let launch = Launch {
        variables: variables_of(config_file),
        ..launch.clone()
    };
    let own = survey.found.iter().filter(|found| found.is_mcpzip);
    own.filter_map(|found| own_entry(found, survey, &launch))
        .collect()
}

/// Our entry `found` in a survey.
pub(super) fn own_entry(found: &Found, survey: &Survey, launch: &Launch) -> Option<OwnEntry> {
    let entry = found.entry.as_ref().ok()?;
    let Target::Local { command, .. } = &entry.target else {
        return None;
    };
    let source = survey.files.get(&found.location.path)?;
    Some(OwnEntry {
        location: found.location.clone(),
        name: found.name.clone(),
        program: command.clone(),
        entry: entry.clone(),
        is_disabled: found.is_switched_off,
        lacks: lacks(&source.text, &found.location, &found.name, launch),
        refusal: entry::refusal(source.text.node(), &found.location, &found.name),
    })
}

/// Plans to add the missing keys of `own`, and, if it is `dead`, to start this program. `None` if there is nothing to
/// do.
///
/// # Errors
/// When the file cannot be read or edited.
pub(crate) fn repair(
    own: &OwnEntry,
    is_dead: bool,
    launch: &Launch,
    config_file: &Path,
) -> Result<Option<Edit>, PlanError> {
    let location = &own.location;
    let unreadable = PlanError::unreadable(&location.path);
    let failed = PlanError::edit(&location.path);
    let source = read_source(&location.path, location.syntax).map_err(unreadable)?;
    let launch = Launch {
        variables: variables_of(config_file),
        ..launch.clone()
    };
    let mut text = source.text.clone();
    mend(&mut text, own, is_dead, &launch).map_err(failed)?;
    Ok(Edit::at(
        location,
        &source,
        &text,
        entry::paths(text.node(), location, &own.name),
    ))
}

/// Adds the missing keys of `own` to `text`, and, if it is `dead`, has it start this program.
pub(super) fn mend(
    text: &mut Text,
    own: &OwnEntry,
    is_dead: bool,
    launch: &Launch,
) -> Result<(), TextError> {
    let location = &own.location;
    let path = location.path_of(&own.name);
    for (key, value) in fresh(location, &own.name, launch) {
        let current = text
            .node()
            .at(&path)
            .and_then(|entry| entry.get(&key))
            .cloned();
        let is_program = matches!(key.as_str(), "command" | "cmd");
        let wanted = match (current, value) {
            (Some(Node::List(words)), Node::List(fresh)) if is_program && is_dead => {
                Some(Node::List(
                    fresh
                        .into_iter()
                        .take(1)
                        .chain(words.into_iter().skip(1))
                        .collect(),
                ))
            }
            (Some(Node::Text(_)), value) if is_program && is_dead => Some(value),
            (Some(Node::List(known)), Node::List(fresh)) if key == VARIABLES => {
                let new = fresh
                    .into_iter()
                    .filter(|name| !known.contains(name))
                    .collect::<Vec<_>>();
                (!new.is_empty()).then(|| Node::List(known.iter().cloned().chain(new).collect()))
            }
            (Some(Node::Map(known)), Node::Map(fresh)) if own.lacks.contains(&key) => {
                let is_new =
                    |(name, _): &(String, Node)| !known.iter().any(|(there, _)| there == name);
                let new: Vec<_> = fresh.into_iter().filter(is_new).collect();
                (!new.is_empty()).then(|| Node::Map(known.into_iter().chain(new).collect()))
            }
            (None, value) if own.lacks.contains(&key) => Some(value),
            _ => None,
        };
        if let Some(value) = wanted {
            let way: Vec<String> = path.iter().cloned().chain([key]).collect();
            text.set(&way, &value)?;
        }
    }
    if !entry::is_shown_directly(text, location, &own.name) {
        entry::show_directly(text, &own.name);
    }
    Ok(())
}

/// The members of the entry as it would be written now. Codex asks, unless the user has chosen otherwise: a repair permits nothing.
fn fresh(location: &ConfigLocation, name: &str, launch: &Launch) -> Vec<(String, Node)> {
    let Ok(mut text) = Text::parse(location.syntax, "") else {
        return Vec::new();
    };
    let approval = launch.approval.unwrap_or(CodexApproval::Auto);
    let launch = Launch {
        approval: Some(approval),
        ..launch.clone()
    };
    if entry::write(&mut text, location, name, &launch).is_err() {
        return Vec::new();
    }
    let members = text
        .node()
        .at(&location.path_of(name))
        .map(Node::members)
        .unwrap_or_default();
    members
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}

/// Whether a client passes on the variables under `key` alone.
fn is_passed_on(location: &ConfigLocation, key: &str) -> bool {
    location.client == Client::GeminiCli && key == "env"
}

fn lacks(text: &Text, location: &ConfigLocation, name: &str, launch: &Launch) -> Vec<String> {
    let current = text.node().at(&location.path_of(name));
    let is_lacking = |key: &str, value: &Node| match current.and_then(|entry| entry.get(key)) {
        Some(there) if key == VARIABLES => value
            .items()
            .iter()
            .any(|name| !there.items().contains(name)),
        Some(there) if is_passed_on(location, key) => {
            let there = there.members();
            let mut names = value.members().into_iter().map(|(name, _)| name);
            names.any(|name| !there.iter().any(|(known, _)| *known == name))
        }
        None if is_passed_on(location, key) => true,
        there => there.is_none() && !INDIFFERENT.contains(&key),
    };
    let fresh = fresh(location, name, launch).into_iter();
    let mut lacks: Vec<String> = fresh
        .filter_map(|(key, value)| is_lacking(&key, &value).then_some(key))
        .collect();
    if location.client == Client::Codex && !entry::is_shown_directly(text, location, name) {
        lacks.push("features.code_mode.direct_only_tool_namespaces".to_owned());
    }
    lacks
}
