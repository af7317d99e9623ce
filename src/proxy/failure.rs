//! Why a call has no result, as data. `answers/error.rs` has the words.

use std::sync::Arc;

use super::arguments::Fault;
use crate::config::{EntryError, Projects};
use crate::tool::{QualifiedName, ServerName};
use crate::upstream::{CallError, NotListed};

/// Why a call has no result.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// No tool has this name; these have the nearest.
    Unknown { name: String, nearest: Vec<String> },
    /// Several tools have this name.
    Ambiguous { name: String, names: Vec<String> },
    /// The tool is one of mcpzip's own, which clients do not see in direct mode.
    NotShown { name: String },
    /// The tool is withheld.
    Withheld {
        name: QualifiedName,
        reason: Withheld,
    },
    /// The tools of its server are not known.
    Unlisted {
        server: ServerName,
        reason: Unlisted,
    },
    /// The entry of its server cannot be used.
    Faulty { server: String, fault: EntryError },
    /// The cache has lost the tool's definition, which is fetched again.
    DefinitionLost { name: String },
    /// The arguments do not fit; nothing was sent.
    Arguments {
        name: QualifiedName,
        faults: Vec<Fault>,
        signature: String,
    },
    /// The rules want the user's word first, and there is no client that could ask; this is the question.
    Consent { question: String },
    /// The rules want the user's word, which there is none of; nothing was sent.
    NoConsent {
        name: QualifiedName,
        reason: NoConsent,
    },
    /// The server could not be reached, or gave no usable answer.
    Call {
        name: QualifiedName,
        error: Box<CallError>,
    },
    /// The server answered with a JSON-RPC error.
    Refused {
        name: QualifiedName,
        message: String,
        /// JSON.
        data: Option<String>,
    },
    /// The server's result is not a JSON object.
    Malformed { name: QualifiedName },
    /// The audit log cannot be written.
    Unlogged { name: String, cause: String },
}

/// Why a tool is withheld.
#[derive(Debug, Clone)]
pub(crate) enum Withheld {
    /// This rule of the user denies it.
    Denied(String),
    /// This rule of the user denies calls with such arguments.
    ByArguments(String),
    /// Its server keeps it for its own interface.
    AppOnly,
    /// Its definition has changed since it was first seen.
    Changed,
    /// Its definition cannot be compared, for this reason or because its server was not listed yet.
    Uncompared(Option<String>),
}

/// Why the tools of a server are not known.
#[derive(Debug, Clone)]
pub(crate) enum Unlisted {
    /// Listing them failed.
    Failed(Arc<NotListed>),
    /// They are being listed.
    UnderWay,
    /// The server is disabled in the configuration.
    Disabled,
    /// The server is there for other projects.
    Elsewhere(Projects),
}

/// Why there is no word of the user.
#[derive(Debug, Clone)]
pub(crate) enum NoConsent {
    /// The arguments are too large to be shown.
    TooLarge { characters: usize, limit: usize },
    /// The client cannot ask.
    Unable,
    /// The client's question failed.
    Failed { message: String },
    /// The call is one of several in a request, of which none can be asked for.
    InCompany,
    /// The questions of other clients leave no room for this one.
    TooMany,
    /// The request state of the client is not one of a question about this call.
    UnknownState,
    /// The user did not agree.
    Declined,
}

impl Failure {
    /// The tool that is meant, where that is known.
    pub(super) fn tool(&self) -> Option<&QualifiedName> {
        match self {
            Self::Withheld { name, .. }
            | Self::Arguments { name, .. }
            | Self::NoConsent { name, .. }
            | Self::Call { name, .. }
            | Self::Refused { name, .. }
            | Self::Malformed { name } => Some(name),
            _ => None,
        }
    }

    /// The rule that denies the call.
    pub(super) fn rule(&self) -> Option<&str> {
        match self {
            Self::Withheld {
                reason: Withheld::Denied(rule) | Withheld::ByArguments(rule),
                ..
            } => Some(rule),
            _ => None,
        }
    }

    /// Whether the name is to blame.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. } | Self::Ambiguous { .. } | Self::NotShown { .. }
        )
    }

    /// Whether a server is to blame that cannot be reached, or gave no usable answer.
    #[must_use]
    pub(crate) fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::Unlisted { .. }
                | Self::Faulty { .. }
                | Self::DefinitionLost { .. }
                | Self::Call { .. }
        )
    }
}
