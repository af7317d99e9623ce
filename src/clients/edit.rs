//! A planned change of a file, and the errors of planning.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cache::{FileError, Source};
use super::diff::unified_diff;
use super::{Client, ConfigLocation, Node, Syntax, Text, TextError, secrets};
use crate::config::without_tokens;
use crate::files::unwritable;
use crate::secret::{MASK, Masker};
use crate::text::shell_word;

/// A file before and after a change.
#[derive(Debug, Clone)]
pub(crate) struct Edit {
    /// The client of the file. `None` for `mcpzip`'s own.
    pub client: Option<Client>,
    /// The file.
    pub path: PathBuf,
    /// The syntax of the file.
    pub syntax: Syntax,
    /// Its content. `None` if there is no file.
    pub before: Option<Arc<String>>,
    /// Its content after the change.
    pub after: String,
    /// Whether other users must not read the file afterwards.
    pub(super) is_private: bool,
    /// Whether the file is removed. `after` is empty then.
    pub(super) is_removed: bool,
    /// Both contents without the parts that are not about servers.
    pub(super) shown: [Arc<String>; 2],
    /// Both contents for display, without short secrets.
    masked: [Arc<String>; 2],
    pub(super) steps: Vec<Step>,
    /// The servers of mcpzip that clients have after this run in the place of their own, or whose limits stand for their rules.
    pub(super) relied: Vec<String>,
    /// The servers, by mcpzip's names, that leave the file and were switched off in its client.
    pub(super) off: Vec<String>,
    /// All servers that leave the file: their names there, and in mcpzip.
    pub(super) moved: Vec<[String; 2]>,
    /// The paths of their entries there, in the same order.
    pub(super) left: Vec<Vec<String>>,
}

/// A value that an edit changes.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) path: Vec<String>,
    pub(super) before: Option<Node>,
    pub(super) after: Option<Node>,
}

/// A plan that could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    /// A file that must be changed cannot be read.
    #[error("`{path}` cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of reading it.
        source: FileError,
    },
    /// A file that must be changed cannot be edited.
    #[error("`{path}` cannot be edited")]
    Edit {
        /// The file.
        path: PathBuf,
        /// The error.
        source: TextError,
    },
    /// A file that must be changed cannot be written.
    #[error("`{file}` cannot be written")]
    Unwritable {
        /// The client's file, because of which that is another one.
        path: PathBuf,
        /// The file.
        file: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// Two clients have one file, and each would change it in another way.
    #[error("`{path}` and `{other}` are one file, which two clients read")]
    SameFile {
        /// The file.
        path: PathBuf,
        /// Its other path.
        other: PathBuf,
    },
    /// The file of secrets cannot be used.
    #[error(transparent)]
    Secrets(Box<crate::config::Error>),
    /// A secret of a merged server would also reach another server.
    #[error(
        "the secret of `{server}` cannot become the value of `${{{variable}}}`, because `{other}` refers to it, too, and would get it: run this without `--merge {}`",
        shell_word(server)
    )]
    SharedVariable {
        variable: String,
        server: String,
        other: String,
    },
}

impl PlanError {
    /// The error for a file that cannot be read.
    pub(super) fn unreadable(path: &Path) -> impl Fn(FileError) -> Self + Copy {
        |source| {
            let path = path.to_owned();
            Self::Unreadable { path, source }
        }
    }

    /// The error for a file that cannot be edited.
    pub(super) fn edit(path: &Path) -> impl Fn(TextError) -> Self + Copy {
        |source| {
            let path = path.to_owned();
            Self::Edit { path, source }
        }
    }

    /// The file of the error.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Unreadable { path, .. }
            | Self::Edit { path, .. }
            | Self::Unwritable { path, .. }
            | Self::SameFile { path, .. } => Some(path),
            Self::Secrets(_) | Self::SharedVariable { .. } => None,
        }
    }
}

impl Edit {
    /// The edit of a client's file, as [`Edit::new`].
    pub(super) fn at(
        location: &ConfigLocation,
        source: &Source,
        after: &Text,
        paths: Vec<Vec<String>>,
    ) -> Option<Self> {
        let (client, syntax) = (Some(location.client), location.syntax);
        Self::new(client, &location.path, syntax, source, after, paths)
    }

    /// The edit that replaces the content that was read by `after`, changing the values at `paths`. `None` if nothing
    /// changes.
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
            is_private: false,
            is_removed: false,
            shown: [source.text.shown(), after.shown()].map(Arc::clone),
            masked: [&source.text, after].map(secrets::shown),
            steps,
            relied: Vec::new(),
            off: Vec::new(),
            moved: Vec::new(),
            left: Vec::new(),
        };
        (!edit.steps.is_empty()).then_some(edit)
    }

    /// The edit of our configuration. If it brings secrets into the file, other users must not read that afterwards, and `notes` says so if
    /// they could before. `has_literals` is whether a new server has literal secrets.
    pub(super) fn of_config(
        path: &Path,
        source: &Source,
        after: &Text,
        paths: Vec<Vec<String>>,
        has_literals: bool,
        notes: &mut Vec<String>,
    ) -> Option<Self> {
        let mut edit = Self::new(None, path, Syntax::Json, source, after, paths)?;
        let known = secrets::places(source.text.node());
        let now = secrets::places(after.node());
        edit.is_private = has_literals || now.iter().any(|place| !known.contains(place));
        if edit.is_private && is_open_to_others(path) {
            notes.push(format!(
                "other users could read {}; it gets secrets, so only you can read it from now on",
                path.display()
            ));
        }
        Some(edit)
    }

    /// The removal of the file in place of the edit.
    pub(super) fn removing(self) -> Self {
        let ([before, _], [masked, _]) = (self.shown, self.masked);
        Self {
            after: String::new(),
            is_removed: true,
            shown: [before, Arc::default()],
            masked: [masked, Arc::default()],
            ..self
        }
    }

    /// Checks that the file can be written. `path` is the client's file, because of which it is.
    ///
    /// # Errors
    /// When it cannot be.
    pub(super) fn writable(&self, path: &Path) -> Result<(), PlanError> {
        unwritable(&self.path).map_or(Ok(()), |source| {
            Err(PlanError::Unwritable {
                path: path.to_owned(),
                file: self.path.clone(),
                source,
            })
        })
    }

    /// Whether the file has the content before the change.
    #[must_use]
    pub(crate) fn is_undone(&self) -> bool {
        let now = std::fs::read_to_string(&self.path).ok();
        now.as_deref() == self.before.as_ref().map(|before| before.as_str())
    }

    /// Whether the file is removed.
    #[must_use]
    pub(crate) const fn is_removal(&self) -> bool {
        self.is_removed
    }

    /// The edit of a file of secrets: it becomes private, and no value is shown.
    pub(super) fn of_secrets(self, [before, after]: [&Text; 2]) -> Self {
        let names = |text: &Text| {
            let members = text.node().members().into_iter();
            let lines = members.map(|(name, _)| format!("  {name:?}: {MASK:?}\n"));
            Arc::new(lines.collect::<String>())
        };
        let shown = [names(before), names(after)];
        Self {
            is_private: true,
            masked: shown.clone(),
            shown,
            ..self
        }
    }

    /// The changes as a unified diff, without the secrets that `masker` knows and words that look like a token, as a comment may have.
    #[must_use]
    pub(crate) fn diff(&self, masker: &Masker) -> String {
        let [before, after] = &self.shown;
        let [old, new] = &self.masked;
        without_tokens(&masker.mask(&unified_diff([before, old], [after, new])))
    }
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o077 != 0)
}

/// On other systems the user's own directories are private.
#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}
