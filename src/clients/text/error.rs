//! Errors in parsing or editing the text of a client's file.

use crate::config::DocumentError;

/// A text that cannot be parsed, or cannot be edited as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TextError {
    /// The text is invalid in its syntax.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The text is written in a way that cannot be edited.
    #[error("`{key}` {problem}")]
    Edit {
        /// The edited key.
        key: String,
        /// The reason.
        problem: EditError,
    },
}

/// A text that is invalid in its syntax.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SyntaxError {
    /// Invalid JSON.
    #[error(transparent)]
    Json(#[from] DocumentError),
    /// JSON that its second parser rejects.
    #[error("{0}")]
    Value(String),
    /// Invalid TOML; `position` is the parser's text for it.
    #[error("{position}: {problem}")]
    Toml { position: String, problem: String },
    /// Invalid YAML.
    #[error("{line}:{column}: {problem}")]
    Yaml {
        line: usize,
        column: usize,
        problem: String,
    },
    /// YAML with more than one document.
    #[error("several documents in one file")]
    Documents,
    /// YAML that is nested deeper than is read.
    #[error("nested more than {limit} levels deep")]
    Depth { limit: usize },
}

/// Why a key cannot be edited, worded to follow it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EditError {
    /// The path is empty.
    #[error("has no key")]
    NoKey,
    /// The value's parent is a scalar.
    #[error("is in something that is neither a map nor a list")]
    Scalar,
    /// The value's parent in TOML is not a table.
    #[error("is in a value that is not a table")]
    NoTable,
    /// The value has a part that TOML cannot express.
    #[error("would be null, which TOML cannot express")]
    Null,
    /// A parent of the value is missing.
    #[error("is not there")]
    Missing,
    /// The YAML list has no dashes of its own lines.
    #[error("is in a list of an unusual form")]
    List,
    /// The YAML key is not followed by a colon on its line.
    #[error("is below a key of an unusual form")]
    Key,
    /// YAML in flow style.
    #[error("is written in braces; write it with a line for each member first")]
    Braces,
    /// Mixed line ends.
    #[error("is in a file whose lines end now in CR LF, now in LF; make them alike first")]
    LineEnds,
    /// The parser does not reproduce the text.
    #[error("is in a file that cannot be written back as it is; edit it by hand")]
    Unfaithful,
    /// The edited text does not have the intended content.
    #[error("has a form that mcpzip cannot edit safely; edit it by hand")]
    Unintended,
    /// The text is invalid.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// The JSON cannot be edited.
    #[error(transparent)]
    Json(#[from] DocumentError),
}
