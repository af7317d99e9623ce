//! Why an agent may not make a change of the configuration.

use super::restrictions::SETTABLE;
use crate::config::Refusal;

/// Why an agent may not make a change.
#[derive(Debug, thiserror::Error)]
pub(super) enum Denied {
    /// The entry is not an object.
    #[error("its entry must be an object")]
    NoObject,
    /// The entry, or one of its members, is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The change cannot be made by anyone.
    #[error(transparent)]
    Change(#[from] Refusal),
    /// A member that only a person may write.
    #[error(
        "only a person may set `{key}`; agents may set {}",
        SETTABLE.join(", ")
    )]
    Member { key: String },
    /// A reference to a variable that the server would not inherit.
    #[error("variables such as `${{{name}}}` may hold secrets: a person has to write them")]
    Variable { name: String },
    /// The program or URL of a server for which a person has set something else.
    #[error("a person has set its `{person}`, so only a person may set `{key}`")]
    Set { person: String, key: String },
    /// The program or URL of a server that gets credentials.
    #[error("it has credentials, so only a person may set `{key}`")]
    Credentials { key: String },
    /// The removal of a restriction with its server.
    #[error("a person has restricted it by `{restriction}`, so only a person may remove it")]
    Restricted { restriction: String },
    /// Several entries of one name, each of which may restrict its server.
    #[error(
        "the configuration has more than one server `{server}`: a person has to rename or remove all but one before agents may change servers"
    )]
    Repeated { server: String },
    /// A server that a person has disabled.
    #[error("a person has disabled it, so only a person may enable it")]
    SwitchedOff,
    /// A restricted server that cannot be compared with the entry.
    #[error(
        "a person has restricted the server `{server}`, whose program is not known here because a variable is not set; a person has to add this entry"
    )]
    Incomparable { server: String },
    /// A restricted server that the entry names.
    #[error(
        "it may run the server `{server}`, which a person has restricted; a person has to add it"
    )]
    Duplicate { server: String },
    /// An entry from which it cannot be seen what it runs.
    #[error(
        "it has {cause}, so it may run the server `{server}`, which a person has restricted; a person has to add it"
    )]
    Unclear { cause: &'static str, server: String },
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Change(refusal) => refusal,
            other => Self::NotPermitted(Box::new(other)),
        }
    }
}
