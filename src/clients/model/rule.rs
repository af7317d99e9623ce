//! A client's rule about a server's tools, and what becomes of it behind the proxy.

use std::path::PathBuf;

use super::super::{Client, ConfigLocation};
use super::Found;

/// A rule about servers or tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The file it is in.
    pub path: PathBuf,
    /// The keys that lead to it there.
    pub key: String,
    /// As it is written.
    pub text: String,
    /// What it does.
    pub kind: RuleKind,
    /// The client's name for the server that it is about.
    pub server: String,
    /// Whose server.
    pub client: Client,
    /// What becomes of it.
    pub carried: Carried,
    /// The project in which alone it held, though its server is one for all.
    pub project: Option<PathBuf>,
    pub(in crate::clients) location: ConfigLocation,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RuleKind {
    /// Keeps tools from being used.
    Deny,
    /// A program that looks at each call before it is made.
    Hook,
    /// Has the user asked.
    Ask,
    /// Lets tools be used without a question.
    Allow,
    /// Says which tools an agent, a command or a skill has.
    Tools,
    /// A file of rules that cannot be read.
    Unread,
}

/// What becomes of a rule behind the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Carried {
    /// These tools are withheld (`tools.deny`).
    Deny(Vec<String>),
    /// For these the user is asked (`tools.ask`).
    Ask(Vec<String>),
    /// No others than these are there (`tools.allow`).
    Only(Vec<String>),
    /// The server is not there in this project (`projects`).
    NotIn(PathBuf),
    /// It freed tools from questions: there is nothing to carry, as the client asks about `execute_tool` in their place.
    Needless,
    /// It cannot be carried over, and why.
    Lost(&'static str),
}

impl RuleKind {
    /// In a word.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Hook => "hook",
            Self::Ask => "ask",
            Self::Allow => "allow",
            Self::Tools => "tools",
            Self::Unread => "unread",
        }
    }

    /// Whether something is kept from running by it.
    #[must_use]
    pub(crate) const fn protects(self) -> bool {
        matches!(self, Self::Deny | Self::Hook)
    }
}

impl Rule {
    /// Whether a migration would take away what it protects.
    #[must_use]
    pub(crate) fn is_blocking(&self) -> bool {
        self.kind.protects() && matches!(self.carried, Carried::Lost(_))
    }

    /// Whether it stands for rules that are not known, so that its server must not leave.
    #[must_use]
    pub(crate) fn is_unknown(&self) -> bool {
        self.kind == RuleKind::Unread && !self.is_carried()
    }

    pub(in crate::clients) fn is_about(&self, found: &Found) -> bool {
        self.server == found.name && self.location == found.location
    }

    /// Whether the proxy has it afterwards.
    #[must_use]
    pub(crate) fn is_carried(&self) -> bool {
        !matches!(self.carried, Carried::Needless | Carried::Lost(_))
    }
}

impl Carried {
    /// A value that no rule should have.
    pub(in crate::clients) const UNCLEAR: Self = Self::Lost("is of a form that is not known here");

    /// What the proxy's configuration says in its place, or why nothing.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Deny(tools) => format!("tools.deny {}", tools.join(", ")),
            Self::Ask(tools) => format!("tools.ask {}", tools.join(", ")),
            Self::Only(tools) if tools.is_empty() => "tools.allow nothing".to_owned(),
            Self::Only(tools) => format!("tools.allow {}", tools.join(", ")),
            Self::NotIn(project) => format!("projects !{}", project.display()),
            Self::Needless => "the client asks about `execute_tool` in its place".to_owned(),
            Self::Lost(reason) => (*reason).to_owned(),
        }
    }
}
