//! Tools as the user adapted them (`tools.override` in a server's entry).
//!
//! Clients see the adapted form only: search, descriptions, listings and the check of arguments use it like any other
//! tool. The server's own form stays in [`ToolEntry::as_listed`]; rules, pins, statistics and the audit log use that,
//! and the server gets its own name and all arguments. An override that cannot be applied withholds its tool, because
//! it may protect something.

mod definition;
pub(super) mod form;

use std::sync::Arc;

use form::Adapted;

use super::names::fold;
use super::server_tools::{Adaptation, Source};
use super::{ServerTools, ToolEntry};
use crate::config::{Override, Overrides};
use crate::tool::{ToolHash, ToolName};

/// The server with the tools that `overrides` make of its own; `None` if `server` is that already.
pub(super) fn adapted(
    server: &Arc<ServerTools>,
    overrides: Option<&Arc<Overrides>>,
) -> Option<Arc<ServerTools>> {
    let listed = server.source.as_ref().map_or(server, |from| &from.listed);
    let Some(overrides) = overrides.filter(|overrides| !overrides.is_empty()) else {
        return server.source.is_some().then(|| listed.clone());
    };
    let source = server.source.as_ref();
    if source.is_some_and(|from| Arc::ptr_eq(&from.overrides, overrides)) {
        return None;
    }
    let entries = listed.entries.iter();
    let mut entries: Vec<ToolEntry> = entries
        .map(|entry| match overrides.get(entry.name.as_str()) {
            None => entry.clone(),
            Some(wanted) => changed(listed, entry, wanted),
        })
        .collect();
    refuse_equal_names(&mut entries);
    Some(Arc::new(ServerTools {
        by_name: ServerTools::order_by_name(&entries),
        entries,
        source: Some(Source {
            listed: listed.clone(),
            overrides: overrides.clone(),
        }),
        ..ServerTools::clone(listed)
    }))
}

/// The entry of an adapted tool, or of one whose override cannot be applied.
fn changed(server: &ServerTools, listed: &ToolEntry, wanted: &Override) -> ToolEntry {
    let json = server.json(listed).map_err(|error| error.to_string());
    let json = json.and_then(|json| definition::adapted(&json, wanted));
    match json {
        Err(reason) => failed(listed, &reason),
        Ok(json) => ToolEntry {
            name: wanted.name.clone().unwrap_or_else(|| listed.name.clone()),
            hash: ToolHash::of(json.get().as_bytes()),
            adaptation: Some(Adaptation::Done {
                listed: Arc::new(listed.clone()),
                form: Arc::new(Adapted {
                    json,
                    arguments: wanted.arguments.clone(),
                    select: wanted.select.clone(),
                    budget: wanted.budget,
                    form: wanted.form,
                }),
            }),
            ..listed.clone()
        },
    }
}

fn failed(listed: &ToolEntry, reason: &str) -> ToolEntry {
    ToolEntry {
        adaptation: Some(Adaptation::Failed(reason.into())),
        ..listed.clone()
    }
}

/// Withholds each renamed tool whose new name another tool has, in any letter case.
fn refuse_equal_names(entries: &mut [ToolEntry]) {
    let names: Vec<ToolName> = entries.iter().map(|entry| entry.name.clone()).collect();
    for (index, entry) in entries.iter_mut().enumerate() {
        let listed = entry.as_listed().clone();
        if listed.name == entry.name {
            continue;
        }
        let name = fold(entry.name.as_str());
        let is_equal =
            |(other, known): (usize, &ToolName)| other != index && fold(known.as_str()) == name;
        if names.iter().enumerate().any(is_equal) {
            let reason = format!("another tool has the name `{}`, too", entry.name);
            *entry = failed(&listed, &reason);
        }
    }
}

impl ServerTools {
    /// The server with the tools that `overrides` make of its own.
    #[must_use]
    pub(crate) fn adapted_by(self, overrides: &Arc<Overrides>) -> Arc<Self> {
        let listed = Arc::new(self);
        adapted(&listed, Some(overrides)).unwrap_or(listed)
    }
}

#[cfg(test)]
mod tests;
