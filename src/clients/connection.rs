//! The one entry alone: into a client's file, and out of it.

use std::path::PathBuf;

use super::plan::{Edit, PlanError};
use super::survey::read_source;
use super::{Launch, Node, Place, entry, reading, references};
use crate::config::Environment;

/// What connecting comes to.
#[derive(Debug)]
pub enum Connected {
    /// The file as it would be, and what the user should know of it.
    Edit(Edit, Option<String>),
    /// It is connected, by the entry of this name.
    Already(String),
    /// The name belongs to another server.
    Taken,
}

/// What disconnecting comes to.
#[derive(Debug)]
pub enum Disconnected {
    /// The file as it would be, without these entries.
    Edit(Edit, Vec<String>),
    /// It was not connected.
    Already,
}

/// Plans the entry `name` at `place`; `entry::NAME` where there is no name.
///
/// # Errors
/// When the file cannot be read or edited.
pub fn connect(
    place: &Place,
    name: Option<&str>,
    launch: &Launch,
    config_file: &std::path::Path,
    environment: &Environment,
) -> Result<Connected, PlanError> {
    let source = read_source(&place.path, place.syntax).map_err(unreadable(&place.path))?;
    if let Some(known) = own_entries(place, source.text.node()).into_iter().next() {
        return Ok(Connected::Already(known));
    }
    let name = name.unwrap_or(entry::NAME);
    if source.text.node().at(&place.path_of(name)).is_some() {
        return Ok(Connected::Taken);
    }
    let launch = Launch {
        variables: variables_of(config_file),
        ..launch.clone()
    };
    let mut text = source.text.clone();
    let failed = |source| PlanError::Edit {
        path: place.path.clone(),
        source,
    };
    entry::write(&mut text, place, name, &launch, environment).map_err(failed)?;
    let edit = Edit::new(
        Some(place.client),
        &place.path,
        place.syntax,
        &source,
        &text,
        entry::paths(text.node(), place, name),
    );
    let warning = entry::warning(&text, place, name);
    Ok(edit.map_or_else(
        || Connected::Already(name.to_owned()),
        |edit| Connected::Edit(edit, warning),
    ))
}

/// Plans the removal of our entries at `place`, whatever their names.
///
/// # Errors
/// When the file cannot be read or edited.
pub fn disconnect(place: &Place) -> Result<Disconnected, PlanError> {
    let source = read_source(&place.path, place.syntax).map_err(unreadable(&place.path))?;
    let names = own_entries(place, source.text.node());
    let mut text = source.text.clone();
    let mut paths = Vec::new();
    for name in &names {
        let failed = |source| PlanError::Edit {
            path: place.path.clone(),
            source,
        };
        entry::remove(&mut text, place, name).map_err(failed)?;
        paths.extend(entry::paths(text.node(), place, name));
    }
    paths.sort();
    paths.dedup();
    let edit = Edit::new(
        Some(place.client),
        &place.path,
        place.syntax,
        &source,
        &text,
        paths,
    );
    Ok(edit.map_or(Disconnected::Already, |edit| {
        Disconnected::Edit(edit, names)
    }))
}

/// The variables that our servers need. A configuration that cannot be read, or is not there yet, needs none.
pub(super) fn variables_of(config_file: &std::path::Path) -> Vec<String> {
    let config = read_source(config_file, super::Syntax::Json).ok();
    let servers = config
        .as_ref()
        .and_then(|config| config.text.node().get("mcpServers"))
        .map(Node::to_json);
    let mut variables = servers
        .map(|json| references::variables(&json))
        .unwrap_or_default();
    variables.sort();
    variables.dedup();
    variables
}

pub(super) fn own_entries(place: &Place, node: &Node) -> Vec<String> {
    let servers = node
        .at(&place.container)
        .map(Node::members)
        .unwrap_or_default();
    let is_own = |entry: &Node| {
        reading::read(place.client, entry, None).is_ok_and(|entry| entry.is_mcpzip())
    };
    servers
        .into_iter()
        .filter(|(_, entry)| is_own(entry))
        .map(|(name, _)| name.to_owned())
        .collect()
}

fn unreadable(path: &std::path::Path) -> impl FnOnce(String) -> PlanError {
    let path: PathBuf = path.to_owned();
    |problem| PlanError::Unreadable { path, problem }
}
