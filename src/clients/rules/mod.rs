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
use super::model::{Carried, Found, Rule, RuleKind, Survey};
use super::{Client, Node, Surroundings, Syntax};

pub(super) use opencode::is_hidden as is_hidden_at_opencode;
pub(super) use rights::Rights;

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
