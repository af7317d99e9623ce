//! What names a server's tools outside of its entry: permission rules, hooks, lists of tools.
//!
//! Behind the proxy these names are gone, so none of these works any more. What withheld tools, or had the user asked, is
//! carried over into rules of the proxy's own; what cannot be is told, and keeps its server where it is if it protected
//! anything. The client's own lines stay as they are: they name what is not there any more, and after an undo they count again.

mod claude_code;
mod gemini;
mod glob;
mod matcher;
mod opencode;
mod others;
mod rights;

use std::path::{Path, PathBuf};

use super::cache::FileCache;
use super::survey::{Found, Survey};
use super::{Client, ConfigLocation, Node, Surroundings, Syntax};

pub(super) use opencode::is_hidden as is_hidden_at_opencode;
pub(super) use rights::Rights;

/// A rule about servers or tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
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
    pub(super) location: ConfigLocation,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleKind {
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
pub enum Carried {
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
    pub const fn name(self) -> &'static str {
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
    pub const fn protects(self) -> bool {
        matches!(self, Self::Deny | Self::Hook)
    }
}

impl Rule {
    /// Whether a migration would take away what it protects.
    #[must_use]
    pub fn is_blocking(&self) -> bool {
        self.kind.protects() && matches!(self.carried, Carried::Lost(_))
    }

    /// Whether it stands for rules that are not known, so that its server must not leave.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.kind == RuleKind::Unread && !self.is_carried()
    }

    pub(super) fn is_about(&self, found: &Found) -> bool {
        self.server == found.name && self.location == found.location
    }

    /// Whether the proxy has it afterwards.
    #[must_use]
    pub fn is_carried(&self) -> bool {
        !matches!(self.carried, Carried::Needless | Carried::Lost(_))
    }
}

impl Carried {
    /// What the proxy's configuration says in its place, or why nothing.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Deny(tools) => format!("tools.deny {}", tools.join(", ")),
            Self::Ask(tools) => format!("tools.ask {}", tools.join(", ")),
            Self::Only(tools) if tools.is_empty() => "tools.allow nothing".to_owned(),
            Self::Only(tools) => format!("tools.allow {}", tools.join(", ")),
            Self::NotIn(project) => format!("projects !{}", project.display()),
            Self::Needless => "the client asks about `execute_tool` in its location".to_owned(),
            Self::Lost(reason) => (*reason).to_owned(),
        }
    }
}

/// A name in a rule, before it is known whose it is.
#[derive(Clone)]
struct Mention {
    path: PathBuf,
    key: String,
    text: String,
    kind: RuleKind,
    /// The project in which alone it holds.
    project: Option<PathBuf>,
}

impl Mention {
    fn new(path: &Path, key: impl Into<String>, text: impl Into<String>, kind: RuleKind) -> Self {
        Self {
            path: path.to_owned(),
            key: key.into(),
            text: text.into(),
            kind,
            project: None,
        }
    }

    fn about(self, found: &Found, carried: Carried) -> Rule {
        let Self {
            path,
            key,
            text,
            kind,
            project,
        } = self;
        let project = project.filter(|_| found.location.project.is_none());
        let (server, client, location) = (
            found.name.clone(),
            found.location.client,
            found.location.clone(),
        );
        Rule {
            path,
            key,
            text,
            kind,
            server,
            client,
            carried,
            project,
            location,
        }
    }

    /// Whether it holds where the server is.
    fn reaches(&self, found: &Found) -> bool {
        match (&self.project, &found.location.project) {
            (Some(project), Some(own)) => own.starts_with(project) || project.starts_with(own),
            _ => true,
        }
    }
}

pub(super) fn find(
    survey: &Survey,
    clients: &[Client],
    around: &Surroundings,
    cache: &FileCache,
) -> Vec<Rule> {
    let mut rules = Vec::new();
    for found in survey.found.iter().filter(|found| !found.is_mcpzip) {
        let Ok(entry) = &found.entry else { continue };
        for rule in &entry.tool_rules {
            let kind = match &rule.carried {
                Carried::Ask(_) => RuleKind::Ask,
                Carried::Needless => RuleKind::Allow,
                _ => RuleKind::Deny,
            };
            let key = format!(
                "{}.{}",
                found.location.path_of(&found.name).join("."),
                rule.key
            );
            rules.push(
                Mention::new(&found.location.path, key, &rule.value, kind)
                    .about(found, rule.carried.clone()),
            );
        }
    }
    for client in clients {
        let servers: Vec<&Found> = survey
            .found
            .iter()
            .filter(|found| found.location.client == *client && !found.is_mcpzip)
            .collect();
        if servers.is_empty() {
            continue;
        }
        match client {
            Client::ClaudeCode => claude_code::find(survey, &servers, around, cache, &mut rules),
            Client::OpenCode => opencode::find(survey, &servers, &mut rules),
            Client::GeminiCli => gemini::find(&servers, around, cache, &mut rules),
            Client::Goose => others::goose(&servers, around, cache, &mut rules),
            Client::Codex => others::codex(survey, &servers, &mut rules),
            Client::Zed => {
                others::zed(survey, &servers, &mut rules);
                others::zed_profiles(survey, &servers, &mut rules);
            }
            Client::Cursor => others::cursor(&servers, around, cache, &mut rules),
            Client::Kiro => others::kiro(&servers, around, cache, &mut rules),
            _ => {}
        }
    }
    rules.sort_by_key(|rule| rule.kind);
    rules
}

/// What a file of rules says. Where it cannot be read, its rules are not known: servers that it may be about stay, and one
/// for all projects is not there in the project whose file it is.
fn open(
    path: &Path,
    syntax: Syntax,
    project: Option<&Path>,
    servers: &[&Found],
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) -> Option<Node> {
    let problem = match cache.node(path, syntax) {
        Ok(node) => return node,
        Err(problem) => problem,
    };
    let mention = Mention {
        project: project.map(Path::to_owned),
        ..Mention::new(path, "rules", problem, RuleKind::Unread)
    };
    for found in servers.iter().filter(|found| mention.reaches(found)) {
        let carried = match (project, &found.location.project) {
            (Some(project), None) => Carried::NotIn(project.to_owned()),
            _ => Carried::Lost("its rules are not known"),
        };
        rules.push(mention.clone().about(found, carried));
    }
    None
}

/// The files in `directory` that end in `ending`.
fn files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|known| known == ending));
    files.sort();
    files
}

/// A name as clients make it part of a tool's name.
fn plain(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
                c
            } else {
                '_'
            }
        })
        .collect()
}
