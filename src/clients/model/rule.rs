//! A client's rule about a server's tools, and its fate behind the proxy.

use std::path::{Path, PathBuf};

use super::super::{Client, ConfigLocation};
use super::Found;

/// A rule about servers or tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The file it is in.
    pub path: PathBuf,
    /// The path of keys to it.
    pub key: String,
    /// Its text, as written.
    pub text: String,
    /// The effect of the rule.
    pub kind: RuleKind,
    /// The way in which it says which servers it is about.
    pub(in crate::clients) reach: Reach,
    /// The client's name for the server.
    pub server: String,
    /// The client.
    pub client: Client,
    /// Its fate after a migration.
    pub carried: Carried,
    /// The outcome for its tools by all rules that its server gets, if that moves.
    pub(in crate::clients) decided: Option<Outcome>,
    /// Whether its server does not get it, because another rule denies the tools that it asks about.
    pub is_idle: bool,
    /// The only project in which it applied, if its server is one for all projects.
    pub project: Option<PathBuf>,
    pub(in crate::clients) location: ConfigLocation,
}

/// The way in which a rule says which servers it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::clients) enum Reach {
    /// By a pattern, or it is about all servers; also if that is not known.
    Pattern,
    /// By the server's name alone.
    Name,
    /// By a list of the only permitted ones: it is about all others.
    Others,
    /// It is the switch of the client's own entry, which is off.
    Switch,
    /// It limits the client's own server that is the same.
    Own,
}

/// The effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RuleKind {
    /// Keeps tools from being used.
    Deny,
    /// A hook: a program that examines each call.
    Hook,
    /// The client asks the user.
    Ask,
    /// Tools are used without a question.
    Allow,
    /// The tools of an agent, a command or a skill.
    Tools,
    /// A file of rules that cannot be read.
    Unread,
}

/// The fate of a rule behind the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Carried {
    /// These tools are denied (`tools.deny`).
    Deny(Vec<String>),
    /// The user is asked before these tools are called (`tools.ask`).
    Ask(Vec<String>),
    /// Only these tools are permitted (`tools.allow`).
    Only(Vec<String>),
    /// The server is hidden in this project (`projects`).
    NotIn(PathBuf),
    /// It permitted these tools without a question, or asked about all. It needs no counterpart, because the client now asks about
    /// `execute_tool`.
    Needless(Vec<String>),
    /// It cannot be carried over, for this reason.
    Lost(&'static str),
}

/// The outcome of a rule: how calls of its tools end behind the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// mcpzip denies them, or all others if the rule is a list of the permitted ones.
    Denied,
    /// mcpzip asks the user.
    Asked,
    /// mcpzip denies or asks about some of them, and the client asks about `execute_tool` for the others.
    Mixed,
    /// The client asks about `execute_tool`.
    Client,
    /// mcpzip hides the server in a project.
    Hidden,
    /// The rule stops working.
    Lost,
}

impl Outcome {
    /// The outcome of a rule if there is no other one.
    pub(in crate::clients) const fn of(carried: &Carried) -> Self {
        match carried {
            Carried::Deny(_) | Carried::Only(_) => Self::Denied,
            Carried::Ask(_) => Self::Asked,
            Carried::NotIn(_) => Self::Hidden,
            Carried::Needless(_) => Self::Client,
            Carried::Lost(_) => Self::Lost,
        }
    }

    /// The name of the outcome, as a plan shows it.
    #[must_use]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Asked => "asked",
            Self::Mixed => "mixed",
            Self::Client => "client",
            Self::Hidden => "hidden",
            Self::Lost => "lost",
        }
    }
}

impl RuleKind {
    /// The name of the fate.
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

    /// Whether it keeps something from running.
    #[must_use]
    pub(crate) const fn protects(self) -> bool {
        matches!(self, Self::Deny | Self::Hook)
    }
}

impl Rule {
    /// Whether a migration would remove its protection.
    #[must_use]
    pub(crate) fn is_blocking(&self) -> bool {
        self.kind.protects() && matches!(self.carried, Carried::Lost(_))
    }

    /// Whether it stands for unreadable rules, so that its server must stay.
    #[must_use]
    pub(crate) fn is_unknown(&self) -> bool {
        self.kind == RuleKind::Unread && !self.is_carried()
    }

    pub(in crate::clients) fn is_about(&self, found: &Found) -> bool {
        self.server == found.name && self.location == found.location
    }

    /// Its counterpart in the proxy's configuration with its outcome, or the reason why there is none.
    #[must_use]
    pub(crate) fn becomes(&self) -> String {
        if self.is_idle {
            return "nothing: mcpzip denies it by another rule".to_owned();
        }
        let happens = match (&self.carried, self.outcome()) {
            (Carried::Only(_), _) => "mcpzip denies all others",
            (Carried::Needless(_), Outcome::Client) => {
                "the client asks about `execute_tool` in its place"
            }
            (_, Outcome::Denied) => "mcpzip denies it",
            (_, Outcome::Asked) => "mcpzip asks about it",
            (_, Outcome::Mixed) => {
                "mcpzip denies or asks about some of its tools, and the client asks about `execute_tool` for the others"
            }
            (_, Outcome::Client | Outcome::Hidden | Outcome::Lost) => return self.carried.text(),
        };
        match &self.carried {
            Carried::Needless(_) => happens.to_owned(),
            carried => format!("{}: {happens}", carried.text()),
        }
    }

    /// The outcome for its tools after a migration.
    #[must_use]
    pub(crate) fn outcome(&self) -> Outcome {
        self.decided.unwrap_or(Outcome::of(&self.carried))
    }

    /// Whether the proxy applies it afterwards.
    #[must_use]
    pub(crate) fn is_carried(&self) -> bool {
        !matches!(self.carried, Carried::Needless(_) | Carried::Lost(_))
    }
}

impl Carried {
    /// The fate of a rule with an unknown form.
    pub(in crate::clients) const UNCLEAR: Self = Self::Lost("is of a form that is not known here");

    /// Whether all tools are denied.
    pub(in crate::clients) fn withholds_all(&self) -> bool {
        match self {
            Self::Deny(tools) => tools.iter().any(|tool| tool == "*"),
            Self::Only(tools) => tools.is_empty(),
            _ => false,
        }
    }

    /// The fate of a rule about `found` that applies in `project` alone, if there is one: a denial of all tools hides the server there. A
    /// server of that project alone cannot be hidden in it, so all of its tools are denied.
    pub(in crate::clients) fn of(self, found: &Found, project: Option<&Path>) -> Self {
        let hidden = match (self.writable(), project) {
            (Self::NotIn(project), _) => project,
            (carried, Some(project)) if carried.withholds_all() && project.is_absolute() => {
                project.to_owned()
            }
            (carried, _) => return carried,
        };
        let within = found.location.project.as_deref();
        match within.is_some_and(|within| within.starts_with(&hidden)) {
            true => Self::Deny(vec!["*".to_owned()]),
            false => Self::NotIn(hidden),
        }
    }

    /// This fate with names that a rule of the proxy can have: `?` stands for what would end a name or begin a class there.
    fn writable(self) -> Self {
        let is_foreign = |c: char| c.is_whitespace() || c == ',';
        let written = |tools: Vec<String>| {
            let tools = tools.iter().map(|tool| tool.trim());
            let tools = tools.filter(|tool| !tool.is_empty());
            tools
                .map(|tool| match tool.strip_prefix('@') {
                    Some(rest) => format!("?{}", rest.replace(is_foreign, "?")),
                    None => tool.replace(is_foreign, "?"),
                })
                .collect()
        };
        match self {
            Self::Deny(tools) => Self::Deny(written(tools)),
            Self::Ask(tools) => Self::Ask(written(tools)),
            // A pattern would permit more.
            Self::Only(tools) if written(tools.clone()) != tools => Self::UNCLEAR,
            other => other,
        }
    }

    /// Its counterpart in the proxy's configuration, or the reason why there is none.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Deny(tools) => format!("tools.deny {}", tools.join(", ")),
            Self::Ask(tools) => format!("tools.ask {}", tools.join(", ")),
            Self::Only(tools) if tools.is_empty() => "tools.allow nothing".to_owned(),
            Self::Only(tools) => format!("tools.allow {}", tools.join(", ")),
            Self::NotIn(project) => format!("projects !{}", project.display()),
            Self::Needless(_) => "no rule".to_owned(),
            Self::Lost(reason) => (*reason).to_owned(),
        }
    }

    /// The limit that it sets, as the end of a sentence about a server.
    #[must_use]
    pub(in crate::clients) fn as_limit(&self) -> String {
        let counted = |tools: &[String], word: &str| match tools {
            [one] => format!("one {word} tool (`{one}`)"),
            tools if tools.iter().any(|tool| tool.contains(['*', '?', '@'])) => {
                format!("{word} tools by patterns (`{}`)", tools.join("`, `"))
            }
            tools => format!("{} {word} tools", tools.len()),
        };
        match self {
            Self::Only(tools) if tools.is_empty() => "has no allowed tool".to_owned(),
            Self::Only(tools) => format!("has {}", counted(tools, "allowed")),
            Self::Deny(tools) if tools.iter().any(|tool| tool == "*") => {
                "has all tools denied".to_owned()
            }
            Self::Deny(tools) => format!("has {}", counted(tools, "denied")),
            Self::Ask(tools) => format!("asks the user before tools (`{}`)", tools.join("`, `")),
            Self::NotIn(project) => format!("is hidden in {}", project.display()),
            Self::Needless(_) | Self::Lost(_) => "is limited".to_owned(),
        }
    }
}
