//! Reads clients' files: regular files of limited size only. Settings, policies and permissions are read once each.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::string::FromUtf8Error;
use std::sync::Arc;

use super::listed::{USER_LIMIT, crowded, is_missing};
use super::{ConfigLocation, Node, Scope, Syntax, Text, TextError};
use crate::files::{leads_nowhere, read_regular};

/// The largest size of any other file, in bytes; many of them are in repositories.
const OTHER_LIMIT: u64 = 8 * 1024 * 1024;

/// The reason that a file is not read.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum FileError {
    /// The system does not permit it.
    #[error(transparent)]
    Read(Arc<io::Error>),
    /// It is not UTF-8.
    #[error("is not UTF-8")]
    Encoding(#[from] FromUtf8Error),
    /// It is invalid in its syntax.
    #[error(transparent)]
    Text(#[from] TextError),
    /// Its servers are in a form that is not known.
    #[error("has `{0}` in a form that is not known")]
    Form(String),
    /// A project's file that is a file of the user.
    #[error("is a link to a file of your own, and is left alone")]
    Link,
}

impl FileError {
    /// The reason, to follow the file or `it`.
    pub(super) fn predicate(&self) -> String {
        match self {
            Self::Read(_) | Self::Text(_) => format!("cannot be read: {self}"),
            Self::Encoding(_) | Self::Form(_) | Self::Link => self.to_string(),
        }
    }
}

/// A file as it was read.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) before: Option<Arc<String>>,
    pub(super) text: Text,
}

/// The files read so far, and the errors of those that could not be read.
#[derive(Debug, Default)]
pub(super) struct FileCache {
    nodes: RefCell<BTreeMap<PathBuf, Result<Option<Node>, FileError>>>,
    texts: RefCell<BTreeMap<PathBuf, FileError>>,
}

impl ConfigLocation {
    /// Reads the file, which may be missing.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub(super) fn source(&self) -> Result<Source, FileError> {
        let limit = match self.scope {
            Scope::User | Scope::Local => USER_LIMIT,
            Scope::Project => OTHER_LIMIT,
        };
        source(&self.path, self.syntax, limit)
    }
}

impl FileCache {
    /// The content of the file at `path`. `None` if there is no file.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub(super) fn node(&self, path: &Path, syntax: Syntax) -> Result<Option<Node>, FileError> {
        let mut nodes = self.nodes.borrow_mut();
        let read = || {
            let source = source(path, syntax, OTHER_LIMIT)?;
            Ok(source.before.map(|_| source.text.node().clone()))
        };
        nodes.entry(path.to_owned()).or_insert_with(read).clone()
    }

    /// The content of a JSON file. `None` if it cannot be read.
    pub(super) fn json(&self, path: &Path) -> Option<Node> {
        self.node(path, Syntax::Json).ok().flatten()
    }

    /// The text of the file at `path`, where each byte that is not UTF-8 is a replacement character. `None` if there is no file.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub(super) fn text(&self, path: &Path) -> Result<Option<String>, FileError> {
        let text = bytes(path, OTHER_LIMIT).and_then(|read| match read {
            // It has another encoding.
            Some(bytes) if bytes.contains(&0) => Ok(Some(String::from_utf8(bytes)?)),
            read => Ok(read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())),
        });
        if let Err(problem) = &text {
            let mut problems = self.texts.borrow_mut();
            problems.insert(path.to_owned(), problem.clone());
        }
        text
    }

    /// The files that could not be read, with the reasons.
    pub(super) fn unreadable(&self) -> Vec<(PathBuf, FileError)> {
        let nodes = self.nodes.borrow();
        let failed = nodes
            .iter()
            .filter_map(|(path, node)| Some((path.clone(), node.as_ref().err()?.clone())));
        failed.chain(self.texts.borrow().clone()).collect()
    }
}

/// Reads a file that may be missing and is not one of a client's lists of servers.
///
/// # Errors
/// The reason why it cannot be read.
pub(super) fn read_source(path: &Path, syntax: Syntax) -> Result<Source, FileError> {
    source(path, syntax, USER_LIMIT)
}

/// Reads a file of mcpzip, which may be missing.
///
/// # Errors
/// The reason why it cannot be read.
pub(super) fn read_own(path: &Path) -> Result<Source, FileError> {
    read_source(path, Syntax::Json)
}

fn source(path: &Path, syntax: Syntax, limit: u64) -> Result<Source, FileError> {
    let before = content(path, limit)?.map(Arc::new);
    let text = Text::read(syntax, &before.clone().unwrap_or_default())?;
    Ok(Source { before, text })
}

fn content(path: &Path, limit: u64) -> Result<Option<String>, FileError> {
    Ok(bytes(path, limit)?.map(String::from_utf8).transpose()?)
}

fn bytes(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, FileError> {
    match read_regular(path, limit) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_missing(path, &error) => Ok(None),
        Err(source) => {
            // Why a directory cannot be listed says more.
            let unlisted = path.is_dir().then(|| std::fs::read_dir(path).err());
            let error = unlisted.flatten().or_else(|| leads_nowhere(path));
            let error = error.or_else(|| crowded(path).filter(|_| path.is_dir()));
            let error = error.unwrap_or(source);
            Err(FileError::Read(Arc::new(error)))
        }
    }
}
