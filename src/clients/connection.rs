//! Connects and disconnects a client: adds our entry to its file, and removes it.

use std::path::{Path, PathBuf};

use super::cache::{Source, read_source};
use super::edit::{Edit, PlanError};
use super::entry::is_mcpzip;
use super::journal::left_empty;
use super::listed::FILE_LIMIT;
use super::{
    ConfigLocation, Journal, Launch, Node, Scope, Surroundings, Text, allowed, entry, reading,
    references, secrets,
};
use crate::config::stored_secrets;
use crate::files::read_regular;
use crate::secret::Masker;

/// The plan of a connection.
#[derive(Debug)]
pub(crate) enum Connected {
    /// The changed files, a note for the user, and the masker of their secrets.
    Edit(Vec<Edit>, Option<String>, Masker),
    /// The client is connected by the entry with this name in this file; with a note for the user.
    Already(String, PathBuf, Option<String>),
    /// The client is connected by the entry with this name, which does not name the profile that was asked for.
    OtherProfile(String),
    /// The name belongs to another server.
    Taken,
}

/// The plan of a disconnection.
#[derive(Debug)]
pub(crate) enum Disconnected {
    /// The changed files, the names of the removed entries, and the masker of their secrets.
    Edit(Vec<Edit>, Vec<String>, Masker),
    /// The client was not connected.
    Already,
}

/// Plans the entry `name` at `location`; without a name, `entry::NAME`.
///
/// # Errors
/// When the file cannot be read or edited.
pub(crate) fn connect(
    location: &ConfigLocation,
    name: Option<&str>,
    launch: &Launch,
    config_file: &Path,
    around: &Surroundings,
) -> Result<Connected, PlanError> {
    let source = read_source(&location.path, location.syntax)
        .map_err(PlanError::unreadable(&location.path))?;
    let others = match location.client.merges_files() {
        true => others(location, around)?,
        false => Vec::new(),
    };
    for (location, source) in [(location.clone(), source.clone())]
        .into_iter()
        .chain(others)
    {
        let (node, location) = (source.text.node(), &location);
        let Some(known) = own_entries(location, node).into_iter().next() else {
            continue;
        };
        if !has_profile(node, location, &known, launch) {
            return Ok(Connected::OtherProfile(known));
        }
        let warning = entry::refusal(node, location, &known);
        let masker = secrets::masker(&source.text);
        return Ok(match permission(node, location, &known, around)? {
            Some(edit) => Connected::Edit(vec![edit], warning, masker),
            None => Connected::Already(known, location.path.clone(), warning),
        });
    }
    let name = name.unwrap_or(entry::NAME);
    if source.text.node().at(&location.path_of(name)).is_some() {
        return Ok(Connected::Taken);
    }
    let launch = Launch {
        variables: variables_of(config_file),
        ..launch.clone()
    };
    let mut text = source.text.clone();
    let failed = PlanError::edit(&location.path);
    entry::write(&mut text, location, name, &launch).map_err(failed)?;
    let edit = Edit::at(
        location,
        &source,
        &text,
        entry::paths(text.node(), location, name),
    );
    let warning = entry::warning(&text, location, name);
    let permission = permission(text.node(), location, name, around)?;
    let edits: Vec<Edit> = permission.into_iter().chain(edit).collect();
    for edit in &edits {
        edit.writable(&location.path)?;
    }
    Ok(if edits.is_empty() {
        Connected::Already(name.to_owned(), location.path.clone(), None)
    } else {
        Connected::Edit(edits, warning, secrets::masker(&source.text))
    })
}

/// Whether our entry `name` of `servers` has the profile of `launch`, if that has one.
fn has_profile(servers: &Node, location: &ConfigLocation, name: &str, launch: &Launch) -> bool {
    let Some(profile) = &launch.profile else {
        return true;
    };
    let entry = servers.at(&location.path_of(name));
    let entry = entry.and_then(|entry| reading::read(location.client, entry, None).ok());
    entry.is_some_and(|entry| entry.profile() == Some(profile))
}

/// The edit of the client's list of permitted servers, if it lacks our entry `name` of `servers`.
pub(super) fn permission(
    servers: &Node,
    location: &ConfigLocation,
    name: &str,
    around: &Surroundings,
) -> Result<Option<Edit>, PlanError> {
    let entry = servers.at(&location.path_of(name));
    match entry.map(|entry| reading::read(location.client, entry, None)) {
        Some(Ok(entry)) => allowed::edit(location.client, name, &entry, around),
        _ => Ok(None),
    }
}

/// The other files of the user that can be read, if `location` is one of the user.
///
/// # Errors
/// When one that cannot be read may have our entry.
pub(super) fn others(
    location: &ConfigLocation,
    around: &Surroundings,
) -> Result<Vec<(ConfigLocation, Source)>, PlanError> {
    let mut found = Vec::new();
    if location.scope == Scope::User {
        for other in location.client.other_places(around) {
            match read_source(&other.path, other.syntax) {
                Ok(source) => found.push((other, source)),
                Err(error) if names_mcpzip(&other.path) => {
                    return Err(PlanError::unreadable(&other.path)(error));
                }
                Err(_) => {}
            }
        }
    }
    Ok(found)
}

/// Whether a file that is not in its format has the name.
fn names_mcpzip(path: &Path) -> bool {
    let bytes = read_regular(path, FILE_LIMIT).unwrap_or_default();
    String::from_utf8_lossy(&bytes).contains(entry::NAME)
}

/// Plans the removal of our entries at `location` and, for one of the user, in the other files of the user, under any name. A list that
/// `journal` knows as made for them goes, too, and so does a file with nothing else.
///
/// # Errors
/// When the file cannot be read or edited.
pub(crate) fn disconnect(
    location: &ConfigLocation,
    journal: &Journal,
    around: &Surroundings,
) -> Result<Disconnected, PlanError> {
    let source = read_source(&location.path, location.syntax)
        .map_err(PlanError::unreadable(&location.path))?;
    let (mut edits, mut names, mut known) = (Vec::new(), Vec::new(), Vec::new());
    for (location, source) in [(location.clone(), source)]
        .into_iter()
        .chain(others(location, around)?)
    {
        let own = own_entries(&location, source.text.node());
        edits.extend(removal(&location, &source, &own, journal)?);
        names.extend(own);
        known.extend(secrets::of(source.text.node()));
    }
    if edits.is_empty() {
        return Ok(Disconnected::Already);
    }
    names.sort();
    names.dedup();
    // The list is the user's, and so are the entries of the user's own file.
    if location.scope == Scope::User {
        edits.extend(allowed::removal(location.client, &names, around)?);
    }
    Ok(Disconnected::Edit(edits, names, Masker::new(known)))
}

/// The edit of one file without our entries `names`.
fn removal(
    location: &ConfigLocation,
    source: &Source,
    names: &[String],
    journal: &Journal,
) -> Result<Option<Edit>, PlanError> {
    let mut text = source.text.clone();
    let (mut paths, mut is_own_file) = (Vec::new(), false);
    for name in names {
        let failed = PlanError::edit(&location.path);
        entry::remove(&mut text, location, name).map_err(failed)?;
        paths.extend(entry::paths(text.node(), location, name));
        let path = location.path_of(name);
        let Some(before) = journal.before_adding(&location.path, &path) else {
            continue;
        };
        is_own_file |= before.is_empty();
        let before = Text::parse(location.syntax, &before);
        let before = before.map_or(Node::Null, |before| before.node().clone());
        while let Some(empty) = left_empty(text.node(), &before, &path) {
            text.remove(&empty).map_err(failed)?;
            paths.push(empty);
        }
    }
    paths.sort();
    paths.dedup();
    let rest: String = text.text().split_whitespace().collect();
    let is_removed = is_own_file && matches!(rest.as_str(), "" | "{}");
    let edit = Edit::at(location, source, &text, paths);
    Ok(edit.map(|edit| if is_removed { edit.removing() } else { edit }))
}

/// The variables that the configuration names; empty if it is missing or cannot be read.
pub(super) fn variables_of(config_file: &Path) -> Vec<String> {
    let config = read_source(config_file, super::Syntax::Json).ok();
    let mut variables = config
        .map(|config| references::variables(&config.text.node().to_json()))
        .unwrap_or_default();
    variables.sort();
    variables.dedup();
    // The configuration reports a file of secrets that cannot be read.
    let stored = stored_secrets(config_file).unwrap_or_default();
    variables.retain(|name| !stored.contains_key(name));
    variables
}

pub(super) fn own_entries(location: &ConfigLocation, node: &Node) -> Vec<String> {
    let servers = node
        .at(&location.container)
        .map(Node::members)
        .unwrap_or_default();
    let is_own = |name: &str, entry: &Node| {
        let entry = reading::read(location.client, entry, None);
        entry.is_ok_and(|entry| is_mcpzip(name, &entry))
    };
    servers
        .into_iter()
        .filter(|(name, entry)| is_own(name, entry))
        .map(|(name, _)| name.to_owned())
        .collect()
}
