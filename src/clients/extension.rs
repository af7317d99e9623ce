//! Additions to a plan: new servers, and our entry in more clients. They are part of one run, which is undone as a
//! whole.

use std::path::Path;
use std::sync::Arc;

use super::cache::read_source;
use super::connection::{self, own_entries};
use super::edit::{Edit, PlanError};
use super::plan::Plan;
use super::{
    Client, ConfigLocation, Launch, Node, Surroundings, Syntax, Text, TextError, entry, names,
    references,
};
use crate::config::stored_secrets;

const SERVERS: &str = "mcpServers";

/// The change of a client's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Connection {
    /// Our entry is added, with this name.
    New(String),
    /// The client has our entry, with this name.
    Already(String),
}

impl Plan {
    /// Our configuration after the plan.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn configuration(&self, config_file: &Path) -> Result<String, PlanError> {
        if let Some(edit) = self.edits.iter().find(|edit| edit.path == config_file) {
            return Ok(edit.after.clone());
        }
        let unreadable = PlanError::unreadable(config_file);
        Ok(read_source(config_file, Syntax::Json)
            .map_err(unreadable)?
            .before
            .map(Arc::unwrap_or_clone)
            .unwrap_or_default())
    }

    /// Adds servers to our configuration, each with its name and its entry in JSON; existing names stay unchanged.
    /// Returns the names that are new.
    ///
    /// # Errors
    /// When the configuration cannot be read or edited.
    pub(crate) fn add_servers(
        &mut self,
        config_file: &Path,
        servers: &[(String, String)],
    ) -> Result<Vec<String>, PlanError> {
        let mut added = Vec::new();
        self.amend(None, config_file, Syntax::Json, |text| {
            let mut paths = Vec::new();
            // The configuration file must exist, even if servers are only added later.
            if servers.is_empty() && text.node().get(SERVERS).is_none() {
                text.set(&[SERVERS.to_owned()], &Node::Map(Vec::new()))?;
                paths.push(vec![SERVERS.to_owned()]);
            }
            for (name, json) in servers {
                let path = vec![SERVERS.to_owned(), name.clone()];
                if text.node().at(&path).is_none() {
                    let entry = Text::parse(Syntax::Json, json)?.node().clone();
                    text.set(&path, &entry)?;
                    paths.push(path);
                    added.push(name.clone());
                }
            }
            Ok(paths)
        })?;
        Ok(added)
    }

    /// Adds our entry at `location`, unless there is one.
    ///
    /// # Errors
    /// When the client's file cannot be read or edited.
    pub(crate) fn add_connection(
        &mut self,
        location: &ConfigLocation,
        launch: &Launch,
        config_file: &Path,
        around: &Surroundings,
    ) -> Result<Connection, PlanError> {
        if location.client.merges_files() {
            let others = connection::others(location, around)?.into_iter();
            let own = others
                .flat_map(|(other, source)| own_entries(&other, source.text.node()))
                .next();
            if let Some(known) = own {
                return Ok(Connection::Already(known));
            }
        }
        let mut variables = references::variables(&self.configuration(config_file)?);
        variables.sort();
        variables.dedup();
        let stored = stored_secrets(config_file);
        let stored = stored.map_err(|error| PlanError::Secrets(Box::new(error)))?;
        let is_stored = |name: &str| {
            stored.contains_key(name) || self.secrets.stored.iter().any(|(known, _)| known == name)
        };
        variables.retain(|name| !is_stored(name));
        let launch = Launch {
            variables,
            ..launch.clone()
        };
        let (mut outcome, mut warning, mut permission) = (None, None, Ok(None));
        self.amend(
            Some(location.client),
            &location.path,
            location.syntax,
            |text| {
                if let Some(known) = own_entries(location, text.node()).into_iter().next() {
                    permission = connection::permission(text.node(), location, &known, around);
                    outcome = Some(Connection::Already(known));
                    return Ok(Vec::new());
                }
                let name = names::free(entry::NAME, "proxy", |name| {
                    text.node().at(&location.path_of(name)).is_some()
                });
                entry::write(text, location, &name, &launch)?;
                let paths = entry::paths(text.node(), location, &name);
                warning = entry::warning(text, location, &name);
                permission = connection::permission(text.node(), location, &name, around);
                outcome = Some(Connection::New(name));
                Ok(paths)
            },
        )?;
        self.warnings.extend(warning);
        let is_new = |edit: &Edit| self.edits.iter().all(|known| known.path != edit.path);
        let permission = permission?.filter(is_new);
        self.edits.extend(permission);
        Ok(outcome.expect("the change has run"))
    }

    /// Applies `change` to the planned content of the file, also if the plan edits it already. `change` returns the
    /// paths that it may have changed.
    fn amend(
        &mut self,
        client: Option<Client>,
        path: &Path,
        syntax: Syntax,
        change: impl FnOnce(&mut Text) -> Result<Vec<Vec<String>>, TextError>,
    ) -> Result<(), PlanError> {
        let source = read_source(path, syntax).map_err(PlanError::unreadable(path))?;
        let failed = PlanError::edit(path);
        let at = self.edits.iter().position(|edit| edit.path == path);
        let (mut text, mut paths) = match at {
            Some(at) => {
                let edit = &self.edits[at];
                let text = Text::parse(syntax, &edit.after).map_err(failed)?;
                (
                    text,
                    edit.steps.iter().map(|step| step.path.clone()).collect(),
                )
            }
            None => (source.text.clone(), Vec::new()),
        };
        paths.extend(change(&mut text).map_err(failed)?);
        paths.sort();
        paths.dedup();
        let mut edit = Edit::new(client, path, syntax, &source, &text, paths);
        if let (Some(at), Some(edit)) = (at, &mut edit) {
            let before = &self.edits[at];
            edit.is_private |= before.is_private;
            edit.relied.clone_from(&before.relied);
            edit.off.clone_from(&before.off);
            edit.moved.clone_from(&before.moved);
            edit.left.clone_from(&before.left);
        }
        match (at, edit) {
            (Some(at), Some(edit)) => self.edits[at] = edit,
            // A server is added here before it is removed from its client.
            (None, Some(edit)) if client.is_none() => self.edits.insert(0, edit),
            (None, Some(edit)) => {
                edit.writable(path)?;
                self.edits.push(edit);
            }
            (_, None) => {}
        }
        Ok(())
    }
}
