//! Moves the literal secrets of our configuration to the file of secrets next to it.

use std::path::Path;

use super::cache::read_source;
use super::servers::{Literals, Servers};
use super::stored::Stored;
use super::{Edit, PlanError, Syntax, secrets};
use crate::config::Environment;
use crate::secret::Masker;

/// A planned move of all literal secrets.
#[derive(Debug)]
pub(crate) struct Extraction {
    /// The literal secrets that move.
    pub literals: Literals,
    /// The names under which they are stored.
    pub names: Vec<String>,
    /// The changed files, the one of secrets first.
    pub edits: Vec<Edit>,
    /// Hides the secrets.
    pub masker: Masker,
}

impl Extraction {
    /// Plans to move the literal secrets of the configuration at `config_file`.
    ///
    /// # Errors
    /// When it or the file of secrets cannot be read or edited.
    pub(crate) fn new(config_file: &Path, environment: &Environment) -> Result<Self, PlanError> {
        let config =
            read_source(config_file, Syntax::Json).map_err(PlanError::unreadable(config_file))?;
        let stored = Stored::of(config_file, environment)?;
        let mut servers = Servers::of(&config.text).with_secrets(stored);
        let literals = servers.all_literals();
        let mut text = config.text.clone();
        let steps = servers
            .store_all_literals(&mut text)
            .map_err(PlanError::edit(config_file))?;
        // A secret is stored before an entry refers to it.
        let mut edits = Vec::from_iter(servers.edit_of_secrets(config_file)?);
        let edit = Edit::new(None, config_file, Syntax::Json, &config, &text, steps);
        edits.extend(edit);
        let written = secrets::of(config.text.node()).into_iter();
        Ok(Self {
            literals,
            names: servers.stored().added().keys().cloned().collect(),
            edits,
            masker: Masker::new(written.chain(servers.stored().secrets())),
        })
    }
}

/// The literal secrets of the configuration at `config_file`; none if it cannot be read.
#[must_use]
pub(crate) fn literal_secrets(config_file: &Path) -> Literals {
    let config = read_source(config_file, Syntax::Json).ok();
    config.map_or_else(Vec::new, |config| Servers::of(&config.text).all_literals())
}
