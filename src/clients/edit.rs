//! A file as a plan would leave it, and why there may be no such plan.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cache::Source;
use super::diff::unified_diff;
use super::{Client, Node, Syntax, Text, TextError};
use crate::secret::Masker;

/// A file as it is and as it will be.
#[derive(Debug, Clone)]
pub(crate) struct Edit {
    /// Whose file; `mcpzip`'s own where there is none.
    pub client: Option<Client>,
    /// The file.
    pub path: PathBuf,
    /// How it is written.
    pub syntax: Syntax,
    /// Its content; nothing where there is no file.
    pub before: Option<Arc<String>>,
    /// Its content afterwards.
    pub after: String,
    /// Both without what concerns no server, as they are shown.
    pub(super) shown: [Arc<String>; 2],
    pub(super) steps: Vec<Step>,
}

/// One value that an edit changes.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) path: Vec<String>,
    pub(super) before: Option<Node>,
    pub(super) after: Option<Node>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    /// A file that has to be changed cannot be read.
    #[error("`{path}` cannot be read: {problem}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// A file that has to be changed cannot be edited.
    #[error("`{path}` cannot be edited")]
    Edit {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: TextError,
    },
}

impl PlanError {
    /// The file that it is about.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Unreadable { path, .. } | Self::Edit { path, .. } => path,
        }
    }
}

impl Edit {
    /// The edit that makes `after` of what was read, changing the values at `paths`; nothing where all stays.
    pub(super) fn new(
        client: Option<Client>,
        path: &Path,
        syntax: Syntax,
        source: &Source,
        after: &Text,
        paths: Vec<Vec<String>>,
    ) -> Option<Self> {
        let mut steps = Vec::new();
        for path in paths {
            let (before, after) = (
                source.text.node().at(&path).cloned(),
                after.node().at(&path).cloned(),
            );
            if before != after {
                steps.push(Step {
                    path,
                    before,
                    after,
                });
            }
        }
        let edit = Self {
            client,
            path: path.to_owned(),
            syntax,
            before: source.before.clone(),
            after: after.text(),
            shown: [source.text.shown(), after.shown()].map(Arc::clone),
            steps,
        };
        (!edit.steps.is_empty()).then_some(edit)
    }

    /// The changes as a text with `-` and `+`, without the secrets that `masker` knows.
    #[must_use]
    pub(crate) fn diff(&self, masker: &Masker) -> String {
        let [before, after] = &self.shown;
        masker.mask(&unified_diff(before, after)).into_owned()
    }
}
