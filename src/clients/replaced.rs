//! An entry of our configuration that a command has replaced: the difference, and a run of the journal that can be undone.

use std::path::Path;

use super::cache::{Source, read_source};
use super::servers::SERVERS;
use super::{Edit, Journal, JournalError, Syntax, secrets};
use crate::secret::Masker;

/// The configuration before a change.
#[derive(Debug)]
pub(crate) struct BeforeChange(Option<Source>);

impl BeforeChange {
    /// Reads the configuration at `config_file`.
    #[must_use]
    pub(crate) fn of(config_file: &Path) -> Self {
        // The change itself says why it cannot be read.
        Self(read_source(config_file, Syntax::Json).ok())
    }

    /// The change of the entry `server` that was made since; `None` if it is as it was.
    #[must_use]
    pub(crate) fn edit_of(&self, server: &str, config_file: &Path) -> Option<Replaced> {
        let before = self.0.as_ref()?;
        let now = read_source(config_file, Syntax::Json).ok()?;
        let steps = vec![vec![SERVERS.to_owned(), server.to_owned()]];
        let edit = Edit::new(None, config_file, Syntax::Json, before, &now.text, steps)?;
        let all = [&before.text, &now.text].into_iter();
        let masker = Masker::new(all.flat_map(|text| secrets::of(text.node())));
        Some(Replaced { edit, masker })
    }
}

/// A change of an entry, which is in its file already.
#[derive(Debug)]
pub(crate) struct Replaced {
    edit: Edit,
    masker: Masker,
}

impl Replaced {
    /// The difference, without secrets.
    #[must_use]
    pub(crate) fn diff(&self) -> String {
        self.edit.diff(&self.masker)
    }

    /// Records it, so that it can be undone. Returns the run's name.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(crate) fn record(&self, command: &str, journal: &Journal) -> Result<String, JournalError> {
        journal.note(command, std::slice::from_ref(&self.edit))
    }
}
