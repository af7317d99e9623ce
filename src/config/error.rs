//! What can be wrong with a configuration, by how much it costs: all of it ([`Error`]), one server ([`ServerFault`]), or
//! nothing but a word to the user ([`Warning`]).
//!
//! Every text quotes the file as it is written, never a value with its variables filled in: that may be a secret.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::tool::NameError;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The file does not exist.
    #[error("there is no configuration at `{path}`")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file exists and cannot be read.
    #[error("the configuration `{path}` cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is in another encoding than UTF-8.
    #[error("the configuration `{path}` is not UTF-8; save it in that encoding")]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// The file has nothing in it but space and comments.
    #[error("the configuration `{path}` is empty; the least it can be is `{{}}`")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The text is no JSON, comments and trailing commas aside.
    #[error("{path}:{position}: {problem}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where the parser gave up.
        position: Position,
        /// Its words.
        problem: String,
    },
    /// The whole, or `mcpServers`, is not an object.
    #[error("{path}:{position}: {fault}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// Where the value begins.
        position: Position,
        /// What it is and should be; boxed, as an error is a part of every result.
        fault: Box<EntryError>,
    },
    /// A path is not given, and the platform's own cannot be determined.
    #[error("no home directory is known; set HOME or {variable}")]
    NoHome {
        /// The variable that would name it.
        variable: &'static str,
    },
    /// A relative path cannot be made absolute.
    #[error("the path `{path}` cannot be made absolute")]
    Path {
        /// The path as it was given.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Where something stands in the file; prints as `line:column`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// An entry of `mcpServers` that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerFault {
    /// The name as it is written, which may be the fault itself.
    pub name: String,
    /// Where.
    pub position: Position,
    /// Why.
    pub fault: EntryError,
}

/// What is wrong with a value. Keys are relative to their server's entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EntryError {
    /// The server's name breaks the rules for names.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The server's name is taken.
    #[error("the name is reserved for the built-in server")]
    Reserved,
    /// A value is of the wrong kind or out of bounds.
    #[error("`{key}` must be {expected}, found {found}")]
    Value {
        /// The value's key.
        key: String,
        /// What may stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// `command` is a list, as a few clients write it.
    #[error(
        "`command` must be the program alone, found a list; write the rest of the list as `args`"
    )]
    CommandList,
    /// A text that may not be empty is.
    #[error("`{key}` is empty")]
    Empty {
        /// The text's key.
        key: String,
    },
    /// Neither `command` nor `url`.
    #[error("has neither a `command` (a local server) nor a `url` (a remote one)")]
    NoTarget,
    /// Neither `command` nor `url`, and a key that is probably one of them.
    #[error(
        "has neither a `command` (a local server) nor a `url` (a remote one); did you mean `{meant}` by `{written}`?"
    )]
    MisspeltTarget {
        /// The key as it is written.
        written: String,
        /// The key that is like it.
        meant: &'static str,
    },
    /// Both `command` and `url`.
    #[error("has both a `command` (a local server) and a `url` (a remote one); keep one of them")]
    BothTargets,
    /// `type` and what stands beside it disagree.
    #[error("is of type `{kind}`, which needs a `{wanted}`, but has a `{found}`")]
    OtherTarget {
        /// The `type`.
        kind: String,
        /// What the type needs.
        wanted: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A variable that is not set.
    #[error(
        "`{key}` needs the variable `{variable}`, which is not set; set it, or write `${{{variable}:-default}}`"
    )]
    MissingVariable {
        /// Where the variable is used.
        key: String,
        /// Its name.
        variable: String,
    },
    /// `${` with something after it that is not understood.
    #[error(
        "`{key}` has `{written}`, which is neither `${{NAME}}` nor `${{NAME:-default}}`; {hint}"
    )]
    Reference {
        /// Where.
        key: String,
        /// The reference as it is written.
        written: String,
        /// What to write.
        hint: String,
    },
    /// `~/` without a home directory.
    #[error("`{key}` begins with `~/`, and no home directory is known")]
    NoHome {
        /// Where.
        key: String,
    },
    /// No URL of a server.
    #[error("`url` must begin with `http://` or `https://` and name a host")]
    Url,
    /// No URL of a proxy.
    #[error(
        "`proxy` must be \"none\", or begin with `http://`, `https://` or `socks5://` and name a host"
    )]
    Proxy,
    /// A file of certificates that is not one.
    #[error("`ca_file`: `{path}` {problem}")]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A private key that is not one.
    #[error("`oauth.private_key_file`: `{path}` {problem}")]
    PrivateKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A name or value that the system or the protocol cannot carry.
    #[error("`{key}` {problem}")]
    Unusable {
        /// Where.
        key: String,
        /// What it has.
        problem: &'static str,
    },
}

/// Something in the file that is odd, or not what its author thought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warning {
    /// Where.
    pub position: Position,
    /// What.
    pub kind: ConfigWarning,
}

/// What a [`Warning`] is about. Keys are paths from the top of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigWarning {
    /// No feature of this release has such a key.
    #[error("unknown key `{key}`{}", nearest.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key's path.
        key: String,
        /// A known key like it.
        nearest: Option<&'static str>,
    },
    /// A key stands there twice.
    #[error("`{key}` is written twice; this, the last one, counts")]
    Duplicate {
        /// The key's path.
        key: String,
    },
    /// The file has no `mcpServers`.
    #[error("there is no `mcpServers`, so there is no server")]
    NoServers,
    /// A key belongs to the other kind of server.
    #[error("`{key}` has no meaning for a server with a `{target}`")]
    Unused {
        /// The key's path.
        key: String,
        /// What decides the server's kind.
        target: &'static str,
    },
    /// A setting cannot be used, so its default is.
    #[error("{fault}; the default is used, {default}")]
    Default {
        /// What is wrong with it.
        fault: EntryError,
        /// The default as it would be written.
        default: String,
    },
    /// A variable that says how to run has another value than it may have.
    #[error("the variable {name} must be {expected}; `\"{used}\"` is used")]
    Variable {
        /// Its name.
        name: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What holds instead.
        used: String,
    },
    /// A number without a unit that would be a very long time.
    #[error(
        "`{key}` is read as {seconds} seconds; write `\"{seconds}ms\"` if milliseconds are meant"
    )]
    ManySeconds {
        /// The key's path.
        key: String,
        /// The number.
        seconds: u64,
    },
    /// A server is written under a name that it cannot have.
    #[error(
        "the server `{written}` is called `{name}` here: a name has at most 64 letters, digits, `-`, `_` and `.`, and no `__`"
    )]
    Renamed {
        /// Its name in the file.
        written: String,
        /// Its name everywhere else.
        name: crate::tool::ServerName,
    },
    /// A faulty entry that is switched off: nobody misses the server.
    #[error("the disabled server `{name}` could not be used: {fault}")]
    Disabled {
        /// The server.
        name: String,
        /// What is wrong with it.
        fault: EntryError,
    },
}

impl EntryError {
    pub(super) fn value(key: &str, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Value {
            key: key.to_owned(),
            expected: expected.into(),
            found: found.into(),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl fmt::Display for ServerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            // It names the server itself.
            EntryError::Name(error) => write!(f, "{}: {error}", self.position),
            fault => write!(f, "{}: server `{}`: {fault}", self.position, self.name),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.kind)
    }
}
