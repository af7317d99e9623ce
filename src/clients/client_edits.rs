//! The edits of the clients' files in a migration: the servers leave, and our entry comes in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cache::read_source;
use super::connection::{own_entries, permission};
use super::edit::{Edit, PlanError};
use super::{
    Client, ConfigLocation, Found, Launch, Scope, Surroundings, Survey, Text, TextError, entry,
    inspection, names,
};

/// The clients' files without the migrated servers. Our entry is written to the user's own file only: a project's file
/// may be shared, and would start a program that others do not have.
pub(super) fn client_edits(
    survey: &Survey,
    moving: &[&Found],
    launch: &Launch,
    around: &Surroundings,
    mended: &[(&Found, String)],
    warnings: &mut Vec<String>,
) -> Result<Vec<Edit>, PlanError> {
    let mut locations: Vec<ConfigLocation> = Vec::new();
    for found in moving {
        // A profile gets its own entry; the entry in the user's file serves everything else, and the files that are merged with it.
        let client = found.location.client;
        let user = (found.scope() != Scope::User || client.merges_files())
            .then(|| client.user_location(around));
        for location in user.into_iter().chain([found.location.clone()]) {
            if !locations.contains(&location) {
                locations.push(location);
            }
        }
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    let own_at = |location: &ConfigLocation| {
        let mended = mended.iter().map(|(found, _)| *found);
        let mended = mended.filter(|found| found.location == *location);
        let own = mended.filter_map(|found| inspection::own_entry(found, survey, launch));
        own.collect::<Vec<_>>()
    };
    for location in locations.iter().filter(|location| {
        is_touched(location, survey, around, moving)
            || location.client == Client::ClaudeCode
            || !own_at(location).is_empty()
    }) {
        if !paths.contains(&location.path) {
            paths.push(location.path.clone());
        }
    }
    let mut edits = Vec::new();
    for path in paths {
        let inside: Vec<&ConfigLocation> = locations
            .iter()
            .filter(|location| location.path == path)
            .collect();
        let first = inside[0];
        let unreadable = PlanError::unreadable(&path);
        let source = match survey.files.get(&path) {
            Some(source) => source.clone(),
            None => read_source(&path, first.syntax).map_err(unreadable)?,
        };
        let mut text = source.text.clone();
        let (mut steps, mut removals) = (Vec::new(), Vec::new());
        for location in &inside {
            let failed = PlanError::edit(&path);
            let leaving: Vec<&str> = moving
                .iter()
                .filter(|found| found.location == **location)
                .map(|found| found.name.as_str())
                .collect();
            let needs_entry = needs_entry(location, survey, around);
            let (paths, own) =
                leave(&mut text, location, &leaving, needs_entry, launch).map_err(failed)?;
            for own in own_at(location) {
                inspection::mend(&mut text, &own, true, launch).map_err(failed)?;
                warnings.extend(entry::refusal(text.node(), location, &own.name));
                steps.extend(entry::paths(text.node(), location, &own.name));
            }
            let others = leaving.iter().filter(|name| **name != own);
            removals.extend(others.map(|name| location.path_of(name)));
            steps.extend(paths);
            warnings.extend(entry::warning(&text, location, &own).filter(|_| needs_entry));
        }
        // All at once: a file may be large.
        let failed = PlanError::edit(&path);
        text.remove_all(&removals).map_err(failed)?;
        let user = first.client.user_location(around);
        if path == user.path
            && let Some(known) = own_entries(&user, text.node()).first()
        {
            edits.extend(permission(text.node(), &user, known, around)?);
        }
        steps.sort();
        steps.dedup();
        edits.extend(Edit::new(
            Some(first.client),
            &path,
            first.syntax,
            &source,
            &text,
            steps,
        ));
    }
    for edit in &edits {
        let is_list = locations.iter().any(|it| it.path == edit.path);
        let client = edit.client.filter(|_| !is_list);
        let path = client.map(|client| client.user_location(around).path);
        edit.writable(path.as_ref().unwrap_or(&edit.path))?;
    }
    of_files(edits)
}

/// One edit for each file, which several clients may read under paths of their own.
fn of_files(edits: Vec<Edit>) -> Result<Vec<Edit>, PlanError> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (mut files, mut known) = (Vec::<Edit>::new(), BTreeMap::new());
    for edit in edits {
        let at = *known.entry(real(&edit.path)).or_insert(files.len());
        match files.get(at) {
            Some(other) if other.path != edit.path && other.after != edit.after => {
                let (path, other) = (edit.path, other.path.clone());
                return Err(PlanError::SameFile { path, other });
            }
            Some(other) if other.path != edit.path => {}
            _ => files.push(edit),
        }
    }
    Ok(files)
}

fn is_touched(
    location: &ConfigLocation,
    survey: &Survey,
    around: &Surroundings,
    moving: &[&Found],
) -> bool {
    needs_entry(location, survey, around) || moving.iter().any(|found| found.location == *location)
}

fn needs_entry(location: &ConfigLocation, survey: &Survey, around: &Surroundings) -> bool {
    let client = location.client;
    let is_merged = client.merges_files();
    let is_connected = |found: &Found| {
        let is_there = is_merged && found.location.client == client && found.scope() == Scope::User;
        found.is_mcpzip && (found.location == *location || is_there)
    };
    let is_own = || !is_merged || location.path == client.user_location(around).path;
    location.scope == Scope::User && is_own() && !survey.found.iter().any(is_connected)
}

/// Removes servers and adds our entry. Returns the changed values, and the entry's name.
fn leave(
    text: &mut Text,
    location: &ConfigLocation,
    leaving: &[&str],
    needs_entry: bool,
    launch: &Launch,
) -> Result<(Vec<Vec<String>>, String), TextError> {
    let mut paths: Vec<Vec<String>> = leaving.iter().map(|name| location.path_of(name)).collect();
    let mut own = String::new();
    if needs_entry {
        let is_taken = |name: &str| {
            text.node().at(&location.path_of(name)).is_some() && !leaving.contains(&name)
        };
        own = names::free(entry::NAME, "proxy", is_taken);
        // A migrated server may have the name; then it is removed first.
        if leaving.contains(&own.as_str()) {
            text.remove(&location.path_of(&own))?;
        }
        entry::write(text, location, &own, launch)?;
        paths.extend(entry::paths(text.node(), location, &own));
    }
    Ok((paths, own))
}
