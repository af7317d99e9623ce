//! Secrets that the configuration refers to by `${keyring:NAME}`. A higher layer stores them; an [`Environment`] carries it.
//!
//! [`Environment`]: super::Environment

use std::fmt;

use super::watch::Stamp;
use crate::secret::Secret;

/// The start of a reference, after `${`.
pub(super) const PREFIX: &str = "keyring:";

/// The rule for names, for a sentence.
pub(crate) const NAME_RULE: &str =
    "1 to 128 letters, digits, `-`, `_`, `.` and `/`, the first of them a letter, a digit or `_`";

const LONGEST_NAME: usize = 128;

/// The name of a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SecretName(String);

/// A store of secrets.
pub(crate) trait Keyring: fmt::Debug + Send + Sync {
    /// The secret of this name, as it is stored now. It may block for seconds, and never asks anyone.
    ///
    /// # Errors
    /// When there is none, or it cannot be read now.
    fn secret(&self, name: &SecretName) -> Result<Secret<String>, SecretFault>;

    /// The state of the files that change with the secrets. A different one means that secrets may have changed.
    fn stamp(&self) -> Vec<Option<Stamp>>;
}

/// Why a secret cannot be used, worded to follow "the secret `NAME`, which".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SecretFault {
    /// No secret has the name.
    #[error("is not set; `mcpzip secret set {0}` sets it")]
    Unset(SecretName),
    /// The store is locked, or does not work.
    #[error("cannot be read: {reason}")]
    Unavailable {
        /// The reason, without any secret.
        reason: String,
    },
    /// The program has no store of secrets.
    #[error("cannot be read: this program has no store of secrets")]
    Absent,
}

impl SecretName {
    /// Checks the rule for names.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let is_name = text.len() <= LONGEST_NAME
            && text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && text.chars().all(is_plain);
        is_name.then(|| Self(text.to_owned()))
    }

    /// The name as a text.
    #[must_use]
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The names of the secrets that a text in our syntax refers to.
#[must_use]
pub(super) fn secrets_in(text: &str) -> Vec<SecretName> {
    let references = text.match_indices("${").filter_map(|(at, _)| {
        let inner = text[at + 2..].strip_prefix(PREFIX)?;
        let name = SecretName::parse(&inner[..inner.find('}')?])?;
        (!text[..at].ends_with('$')).then_some(name)
    });
    references.collect()
}
