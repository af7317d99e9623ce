//! The names of servers and tools, validated.

use std::fmt;
use std::sync::Arc;

use crate::text::shortened;

/// The separator between server and tool in the names that agents see.
pub(crate) const SEPARATOR: &str = "__";

const MAX_SERVER_NAME: usize = 64;

/// A server's configured name: 1 to 64 letters, digits, `-`, `_` and `.`, without `__`, and not of dots alone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerName(Arc<str>);

/// A tool's name as its server spells it; any text except the empty one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolName(Arc<str>);

/// A tool of a server, written `server__tool`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QualifiedName {
    /// The server.
    pub server: ServerName,
    /// The tool's name on that server.
    pub tool: ToolName,
}

/// Why a text is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is empty.
    #[error("a name cannot be empty")]
    Empty,
    /// The name has more than 64 characters.
    #[error("server name `{name}` is longer than {MAX_SERVER_NAME} characters")]
    TooLong {
        /// The name, as written.
        name: String,
    },
    /// The name contains a character that is not permitted.
    #[error(
        "server name `{name}` contains `{character}`; letters, digits, `-`, `_` and `.` are allowed"
    )]
    Character {
        /// The name, as written.
        name: String,
        /// The first character that is not permitted.
        character: char,
    },
    /// The name has dots only, which is a directory's in paths.
    #[error("server name `{name}` has dots only")]
    Dots {
        /// The name, as written.
        name: String,
    },
    /// The name contains the separator of server and tool.
    #[error("server name `{name}` contains `{SEPARATOR}`, which separates a server from its tool")]
    Separator {
        /// The name, as written.
        name: String,
    },
}

impl ServerName {
    /// Validates `name`.
    ///
    /// # Errors
    /// When it is empty, too long, or has characters that are not permitted.
    pub fn new(name: &str) -> Result<Self, NameError> {
        // It may be of any length.
        let owned = || shortened(name, MAX_SERVER_NAME);
        if name.is_empty() {
            return Err(NameError::Empty);
        }
        if let Some(character) = name
            .chars()
            .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        {
            return Err(NameError::Character {
                name: owned(),
                character,
            });
        }
        if name.len() > MAX_SERVER_NAME {
            return Err(NameError::TooLong { name: owned() });
        }
        // Directories have the names of servers.
        if name.bytes().all(|byte| byte == b'.') {
            return Err(NameError::Dots { name: owned() });
        }
        if name.contains(SEPARATOR) {
            return Err(NameError::Separator { name: owned() });
        }
        Ok(Self(name.into()))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl ToolName {
    /// Wraps `name` unchanged.
    ///
    /// # Errors
    /// When it is empty.
    pub fn new(name: &str) -> Result<Self, NameError> {
        if name.is_empty() {
            Err(NameError::Empty)
        } else {
            Ok(Self(name.into()))
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl QualifiedName {
    /// Every way to split `name` into `server__tool`, at the first separator first.
    ///
    /// A server name may end and a tool name may begin with `_`, so there can be several; the caller, which knows the
    /// servers, decides.
    pub fn readings(name: &str) -> impl Iterator<Item = Self> + '_ {
        (0..name.len())
            .filter(move |at| name.as_bytes()[*at..].starts_with(SEPARATOR.as_bytes()))
            .filter_map(move |at| {
                Some(Self {
                    server: ServerName::new(&name[..at]).ok()?,
                    tool: ToolName::new(&name[at + SEPARATOR.len()..]).ok()?,
                })
            })
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for QualifiedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{SEPARATOR}{}", self.server, self.tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_name_keeps_to_its_characters() {
        for good in ["a", "git-hub", "a.b_c", &"x".repeat(64)] {
            assert_eq!(ServerName::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "ä", "a/b", "a__b", &"x".repeat(65)] {
            assert!(ServerName::new(bad).is_err(), "{bad} was taken");
        }
    }

    #[test]
    fn a_joined_name_is_split_at_the_first_separator_first() {
        let readings: Vec<_> = QualifiedName::readings("git__fetch__doc").collect();
        assert_eq!(readings.len(), 1, "`git__fetch` is no server name");
        assert_eq!(readings[0].server.as_str(), "git");
        assert_eq!(readings[0].tool.as_str(), "fetch__doc");
        assert_eq!(readings[0].to_string(), "git__fetch__doc");
        let both: Vec<_> = QualifiedName::readings("a___b")
            .map(|n| n.server.to_string())
            .collect();
        assert_eq!(both, ["a", "a_"]);
    }
}
