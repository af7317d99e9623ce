//! Why a call has no result, as data. `answers/error.rs` has the texts.

use super::arguments::Fault;
use crate::catalog::{ChangeKind, Rejected};
use crate::config::{EntryError, Projects};
use crate::limits::Exceeded;
use crate::pause::Paused;
use crate::tool::{QualifiedName, ServerName};
use crate::upstream::CallError;

/// Why a call has no result.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// No tool has this name; `nearest` has the most similar names.
    Unknown {
        name: String,
        /// The server that it names, if there is none of this name.
        server: Option<String>,
        nearest: Vec<String>,
    },
    /// Several tools have this name.
    Ambiguous { name: String, names: Vec<String> },
    /// The tool is one of mcpzip's own, which are hidden in direct mode.
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
    /// The tool's definition is missing from the cache and is being fetched again.
    DefinitionLost { name: String },
    /// The arguments are invalid; nothing was sent.
    Arguments {
        name: QualifiedName,
        faults: Vec<Fault>,
        signature: String,
    },
    /// `execute_read_tool` was asked for a tool that does not declare to be read-only; nothing was sent.
    NotReadOnly { name: QualifiedName },
    /// A script called a tool that it may not call; nothing was sent.
    NotInScript {
        name: QualifiedName,
        is_builtin: bool,
    },
    /// The call is not one of this form; nothing was sent.
    Unreadable { reason: &'static str },
    /// The arguments have one that only the user sets; nothing was sent.
    Preset {
        name: QualifiedName,
        rejected: Rejected,
    },
    /// The rules require the user's consent, and there is no client to ask; `question` is the question.
    Consent {
        name: QualifiedName,
        rule: Option<String>,
        question: String,
        /// Otherwise another process asks, and writes the event.
        is_asked_here: bool,
    },
    /// The rules require the user's consent, and there is none; nothing was sent.
    NoConsent {
        name: QualifiedName,
        reason: NoConsent,
    },
    /// The user has paused mcpzip; nothing was sent.
    Paused { name: String, paused: Paused },
    /// The server could not be reached, or gave no usable response.
    Call {
        name: QualifiedName,
        error: Box<CallError>,
    },
    /// The server answered with a JSON-RPC error.
    Refused {
        name: QualifiedName,
        message: String,
        /// JSON, if the error has data.
        data: Option<String>,
    },
    /// The server's result is not a JSON object.
    Malformed { name: QualifiedName },
    /// A limit of the caller is used up; nothing was sent.
    Limited {
        name: QualifiedName,
        exceeded: Exceeded,
    },
    /// The caller's access token lacks these scopes; nothing was sent.
    Scopes {
        name: QualifiedName,
        needed: Vec<String>,
    },
    /// The audit log cannot be written.
    Unlogged {
        name: String,
        cause: String,
        /// Whether the call may have been made.
        was_begun: bool,
    },
}

/// Why a tool is withheld.
#[derive(Debug, Clone)]
pub(crate) enum Withheld {
    /// This rule denies it.
    Denied(String),
    /// This rule denies calls with such arguments.
    ByArguments(String),
    /// Its server offers it to its own interface only.
    AppOnly,
    /// Its definition differs in this way from the approved one, or this is said of it.
    Unapproved(ChangeKind, Option<String>),
    /// A person has rejected its definition.
    Rejected,
    /// The user's override of it cannot be applied. The reason is for a person: it may name a hidden argument.
    NotAdapted,
    /// Its definition cannot be compared, for this reason or because its server was not listed yet.
    Uncompared(Option<String>),
}

/// Why the tools of a server are not known.
#[derive(Debug, Clone)]
pub(crate) enum Unlisted {
    /// Listing them failed for this reason, as an agent may read it.
    Failed(String),
    /// The listing is in progress.
    UnderWay,
    /// The server is disabled in the configuration.
    Disabled,
    /// The server belongs to other projects.
    Elsewhere(Projects),
}

/// Why there is no consent.
#[derive(Debug, Clone)]
pub(crate) enum NoConsent {
    /// The arguments are too large to show.
    TooLarge { characters: usize, limit: usize },
    /// The client does not support elicitation, and there is no state directory.
    Unable,
    /// The client does not support elicitation, and the call waits for a decision.
    Waiting { id: String },
    /// The user has paused mcpzip while the call waited; a decision is kept for its repetition.
    Paused { paused: Paused },
    /// The question could not be stored, or a decision not be read.
    Unkept { error: String },
    /// The elicitation failed.
    Failed { message: String },
    /// The call is one of several in a request, so the client cannot be asked.
    InCompany,
    /// A script makes the call, and the user was not asked about it with its other calls.
    InScript,
    /// To ask the user, the script would have to run again, and it has called this tool, which may have acted.
    Acted { tool: QualifiedName },
    /// There are too many open questions of other clients.
    TooMany,
    /// The request state is unknown, or belongs to another call.
    UnknownState,
    /// The user did not consent.
    Declined,
    /// The tool or its server's entry is another one than that which the user was asked about.
    Changed,
}

impl Failure {
    /// The tool, if it is known.
    pub(super) fn tool(&self) -> Option<&QualifiedName> {
        match self {
            Self::Withheld { name, .. }
            | Self::Arguments { name, .. }
            | Self::Preset { name, .. }
            | Self::Consent { name, .. }
            | Self::NoConsent { name, .. }
            | Self::NotInScript { name, .. }
            | Self::Call { name, .. }
            | Self::Refused { name, .. }
            | Self::Limited { name, .. }
            | Self::Scopes { name, .. }
            | Self::Malformed { name } => Some(name),
            _ => None,
        }
    }

    /// The rule or limit that denies the call.
    pub(super) fn rule(&self) -> Option<&str> {
        match self {
            Self::Withheld {
                reason: Withheld::Denied(rule) | Withheld::ByArguments(rule),
                ..
            } => Some(rule),
            Self::Limited { exceeded, .. } => exceeded.limit(),
            Self::Consent { rule, .. } => rule.as_deref(),
            _ => None,
        }
    }

    /// Whether the failure is about the name.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(
            self,
            Self::Unknown { .. } | Self::Ambiguous { .. } | Self::NotShown { .. }
        )
    }

    /// Whether the server could not be reached, or gave no usable response.
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
