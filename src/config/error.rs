//! Problems of a configuration, by their effect: all of it is unusable ([`Error`]), one server is unusable
//! ([`ServerFault`]), or the user gets a warning ([`Warning`]).
//!
//! Messages quote the file as it is written, never a value with its variables filled in, which may be a secret.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::keyring::{SecretFault, SecretName};
use crate::files::leads_nowhere;
use crate::tool::NameError;

/// The reason for which a profile is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProfileRefusal {
    #[error(
        "`profiles` or `clients` of the configuration cannot be read, so it is unknown which profile the session has"
    )]
    Unreadable,
    #[error("there is no profile `{name}`; {known}")]
    Unknown { name: String, known: String },
    #[error("the profile `{name}` cannot be used: {fault}")]
    Fault { name: String, fault: EntryError },
    #[error("no server is left under {names}: add one to `servers`, or choose another profile")]
    Empty { names: String },
}

/// A configuration that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The file does not exist.
    #[error("there is no configuration at `{path}`")]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The file exists and cannot be read.
    #[error("the configuration `{path}` cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not UTF-8.
    #[error("the configuration `{path}` is not UTF-8; save it in that encoding")]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// The file has only space and comments.
    #[error("the configuration `{path}` is empty; the least it can be is `{{}}`")]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The text is not JSON, even with comments and trailing commas.
    #[error("{path}:{position}: {problem}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The position at which the parser failed.
        position: Position,
        /// The parser's message.
        problem: String,
    },
    /// The root, or `mcpServers`, is not an object.
    #[error("{path}:{position}: {fault}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// The position of the value.
        position: Position,
        /// The value found and the one expected; boxed, because an error is a part of every result.
        fault: Box<EntryError>,
    },
    /// The file of secrets cannot be used.
    #[error("the secrets in `{path}` cannot be read")]
    Secrets {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The profile that was asked for is not served.
    #[error(transparent)]
    Profile(#[from] ProfileRefusal),
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
        /// The system's error.
        source: io::Error,
    },
}

impl Error {
    /// The error of a file that is not there, or is behind a link that leads nowhere.
    #[must_use]
    pub(crate) fn absent(path: &Path) -> Self {
        let path = path.to_owned();
        match leads_nowhere(&path) {
            Some(source) => Self::Read { path, source },
            None => Self::Missing { path },
        }
    }

    /// Advice for the user, if the error itself has none.
    #[must_use]
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Syntax { .. } => Some(SYNTAX_HINT),
            Self::Shape { .. } => Some("`mcpzip config edit` opens the file and checks it again"),
            Self::Secrets { .. } => Some(
                "correct the file, or move it away; servers that need a value from it then say which",
            ),
            Self::Read { path, .. } if path.is_dir() => Some(
                "the configuration is a file: move the directory away, or name another file with `--config`",
            ),
            Self::Read { .. } => Some("`mcpzip doctor` checks the permissions of the file"),
            _ => None,
        }
    }
}

/// Advice for a configuration that is not valid JSON.
pub(crate) const SYNTAX_HINT: &str = "the file is JSON, where comments and trailing commas are permitted; `mcpzip config edit` opens it and checks it \
     again";

/// A position in the file; prints as `line:column`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// An entry of `mcpServers` that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerFault {
    /// The name as written, which may be the fault itself.
    pub name: String,
    /// The position of the entry.
    pub position: Position,
    /// The fault.
    pub fault: EntryError,
}

/// A fault of a value. Keys are relative to their server's entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EntryError {
    /// The server's name breaks the rules for names.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The server's name is reserved.
    #[error("the name is reserved for the built-in server")]
    Reserved,
    /// Several servers of one name.
    #[error(
        "its name is there more than once, at {}: rename or remove all but one. Each of them may have the restrictions that were meant, \
         so none is used",
        .places.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
    )]
    Repeated {
        /// The positions of all entries with the name, as `line:column`.
        places: Vec<Position>,
    },
    /// A value of the wrong kind or out of bounds.
    #[error("`{key}` must be {expected}, found {found}")]
    Value {
        /// The value's key.
        key: String,
        /// The permitted values.
        expected: String,
        /// The value found.
        found: String,
    },
    /// `command` is a list, as a few clients write it.
    #[error(
        "`command` must be the program alone, found a list; write the rest of the list as `args`"
    )]
    CommandList,
    /// A key for a command line in the entry of an MCP server.
    #[error("`{key}` has a meaning only with `\"cli\": true`")]
    NeedsCli {
        /// The key.
        key: &'static str,
    },
    /// A key for a description in the entry of another kind of server.
    #[error("`{key}` has a meaning only with `openapi` or `graphql`")]
    NeedsOpenApi {
        /// The key.
        key: &'static str,
    },
    /// `graphql`, and a key of a description.
    #[error("has a `graphql` and an `{other}`; keep one of them")]
    GraphQlAndOther {
        /// The other key.
        other: &'static str,
    },
    /// A description, and a `command` or `url`.
    #[error("has both `{key}` and `{other}`; keep one of them")]
    OpenApiAndTarget {
        /// The key of the interface.
        key: &'static str,
        /// The other key.
        other: &'static str,
    },
    /// A text that must not be empty.
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
        "has neither a `command` (a local server) nor a `url` (a remote one); did you mean `{meant}` instead of `{written}`?"
    )]
    MisspeltTarget {
        /// The key as written.
        written: String,
        /// The similar key.
        meant: &'static str,
    },
    /// An unknown key that resembles one that restricts something, or with which something that restricts may be lost.
    #[error(
        "unknown key `{written}`; did you mean `{meant}`? It may be a restriction: nothing that it may limit runs until the key is \
         corrected or removed"
    )]
    MisspeltRestriction {
        /// The key as written.
        written: String,
        /// The similar key.
        meant: &'static str,
    },
    /// An unknown key of `tools`.
    #[error(
        "unknown key `{written}`: the rules of `tools` are `allow`, `ask`, `deny` and `without_asking`. It may be a restriction: \
         nothing that it may limit runs until the key is corrected"
    )]
    UnknownRule {
        /// The key as written.
        written: String,
    },
    /// An unknown object in `http`.
    #[error(
        "unknown key `{written}`: it may be meant to keep strangers out, as `auth` and `tls` do, so nothing is served until it is \
         corrected or removed"
    )]
    UnknownProtection {
        /// The key as written.
        written: String,
    },
    /// Both `command` and `url`.
    #[error("has both a `command` (a local server) and a `url` (a remote one); keep one of them")]
    BothTargets,
    /// A key that protects something in another program; to ignore it would lift the protection.
    #[error("`{key}` protects something in {program} and has no effect in mcpzip; {advice}")]
    Foreign {
        /// The key.
        key: String,
        /// The other program.
        program: &'static str,
        /// The next step for the user.
        advice: &'static str,
    },
    /// `type` contradicts the keys next to it.
    #[error("is of type `{kind}`, which needs a `{wanted}`, but has a `{found}`")]
    OtherTarget {
        /// The `type`.
        kind: String,
        /// The key that the type needs.
        wanted: &'static str,
        /// The key found.
        found: &'static str,
    },
    /// A variable that is not set.
    #[error(
        "`{key}` needs the variable `{variable}`, which is not set; {}",
        how_to_set(.variable)
    )]
    MissingVariable {
        /// The key that uses the variable.
        key: String,
        /// The variable's name.
        variable: String,
    },
    /// The key of the file of secrets, which would open all secrets of the user.
    #[error(
        "`{key}` has `${{{variable}}}`, which opens all stored secrets and is given to no server; store the value that is needed by \
         `mcpzip secret set NAME`, and write `${{keyring:NAME}}`"
    )]
    KeyOfSecrets {
        /// The key that uses the variable.
        key: String,
        /// The variable's name.
        variable: &'static str,
    },
    /// A secret of `${keyring:NAME}` that cannot be used.
    #[error("`{key}` needs the secret `{name}`, which {fault}")]
    Secret {
        /// The key that uses the secret.
        key: String,
        /// The secret's name.
        name: SecretName,
        /// The reason.
        fault: SecretFault,
    },
    /// `${` with an invalid reference after it.
    #[error(
        "`{key}` has `{written}`, which is neither `${{NAME}}` nor `${{NAME:-default}}`; {hint}"
    )]
    Reference {
        /// The key.
        key: String,
        /// The reference as it is written.
        written: String,
        /// A correction.
        hint: String,
    },
    /// `~/` without a home directory.
    #[error("`{key}` begins with `~/`, and no home directory is known")]
    NoHome {
        /// The key.
        key: String,
    },
    /// Not a URL of a server.
    #[error("`url` must begin with `http://` or `https://` and name a host")]
    Url,
    /// Not a URL of a proxy.
    #[error(
        "`proxy` must be \"none\", or begin with `http://`, `https://` or `socks5://` and name a host"
    )]
    Proxy,
    /// An invalid file of certificates.
    #[error("`ca_file`: `{path}` {problem}")]
    Certificates {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: PemError,
    },
    /// An invalid private key.
    #[error("`oauth.private_key_file`: `{path}` {problem}")]
    PrivateKey {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: PemError,
    },
    /// A name or value that the system or the protocol cannot carry.
    #[error("`{key}` {problem}")]
    Unusable {
        /// The key.
        key: String,
        /// The fault.
        problem: &'static str,
    },
}

/// A fault of a PEM file, worded to follow the file's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PemError {
    /// The system's error.
    #[error("cannot be read ({0})")]
    Read(String),
    /// A section is not base64, or has no end.
    #[error("is damaged: a PEM section in it cannot be read")]
    Damaged,
    /// No certificate among its sections.
    #[error("holds no certificate in PEM form (`-----BEGIN CERTIFICATE-----`)")]
    NoCertificate,
    /// A certificate that is not X.509.
    #[error("holds a certificate that cannot be used")]
    Certificate,
    /// No key among its sections.
    #[error("holds no private key in PEM form")]
    NoKey,
    /// A key in an older form.
    #[error("holds a key that is not in PKCS #8 form (`-----BEGIN PRIVATE KEY-----`)")]
    Form,
    /// A key of another algorithm, or too short.
    #[error("holds a key that is neither of the curve P-256 nor of RSA with 2048 bits or more")]
    Algorithm,
}

impl PemError {
    pub(super) fn read(path: &Path) -> Result<Vec<u8>, Self> {
        std::fs::read(path).map_err(|error| Self::Read(error.to_string()))
    }
}

/// Something in the file that its author probably did not intend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warning {
    /// The position.
    pub position: Position,
    /// The kind of warning.
    pub kind: ConfigWarning,
}

/// The kinds of [`Warning`]. Keys are paths from the top of the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigWarning {
    /// A key that this release does not have.
    #[error("unknown key `{key}`{}", nearest.map(|key| format!("; did you mean `{key}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key's path.
        key: String,
        /// A similar known key.
        nearest: Option<&'static str>,
    },
    /// A key of mcpzip 0.1.
    #[error(
        "`{key}` is a key of mcpzip 0.1 and has no effect; `mcpzip migrate --from mcpzip-0.1 FILE` imports such a file"
    )]
    Older {
        /// The key's path.
        key: String,
    },
    /// A duplicate key.
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
        /// The key that decides the server's kind.
        target: &'static str,
    },
    /// A setting that cannot be used; its default applies.
    #[error("{fault}; the default is used, {default}")]
    Default {
        /// The fault.
        fault: EntryError,
        /// The default, in the syntax of the configuration.
        default: String,
    },
    /// A part that restricts and cannot be used, so that what it may restrict is refused.
    #[error("{fault}; {consequence}")]
    Refused {
        /// The fault.
        fault: EntryError,
        /// The part that is refused, in words.
        consequence: &'static str,
    },
    /// A variable with an invalid value.
    #[error("the variable {name} must be {expected}; `\"{used}\"` is used")]
    Variable {
        /// The variable's name.
        name: &'static str,
        /// The permitted values.
        expected: &'static str,
        /// The value used instead.
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
    /// A server's name in the file that is not a valid name.
    #[error(
        "the server `{written}` is called `{name}` here: a name has at most 64 letters, digits, `-`, `_` and `.`, and no `__`"
    )]
    Renamed {
        /// Its name in the file.
        written: String,
        /// Its name everywhere else.
        name: crate::tool::ServerName,
    },
    /// A faulty entry that is switched off, which changes nothing for the user.
    #[error("the disabled server `{name}` could not be used: {fault}")]
    Disabled {
        /// The server.
        name: String,
        /// The fault.
        fault: EntryError,
    },
}

/// The ways to give a variable of the configuration a value.
pub(crate) fn how_to_set(variable: &str) -> String {
    format!(
        "set it where mcpzip is started, store a value with `mcpzip secret set {variable}` and write `${{keyring:{variable}}}`, or \
         write `${{{variable}:-default}}`"
    )
}

impl ConfigWarning {
    /// The path of the key that it is about, if it names one.
    fn key(&self) -> Option<&str> {
        match self {
            Self::UnknownKey { key, .. }
            | Self::Older { key }
            | Self::Duplicate { key }
            | Self::Unused { key, .. }
            | Self::ManySeconds { key, .. } => Some(key),
            _ => None,
        }
    }

    /// Whether something is refused because of it.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// Whether it is about a key of the server `name`.
    pub(super) fn is_about(&self, name: &str) -> bool {
        let scope = format!("mcpServers.{name}.");
        self.key().is_some_and(|key| key.starts_with(&scope))
    }
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
            // The text of a name error includes the server's name.
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
