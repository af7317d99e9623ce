//! What a migration would do: a verdict for each server, and each file as it would be.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::survey::{Source, read_source};
use super::{Client, Entry, Found, Launch, Node, Place, Rule, Scope, Survey, Syntax, Text, TextError};
use super::{entry, names, references};
use crate::config::Environment;
use crate::secret::Masker;

/// What of all that was found is meant.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// These scopes; all where there are none.
    pub scopes: Vec<Scope>,
    /// These servers, by the client's name; all where there are none. A server that is named is moved though it is a proxy.
    pub only: Vec<String>,
    /// Whether servers move that a rule protects.
    pub drop_rules: bool,
}

/// What would be done, all of it.
#[derive(Debug)]
pub struct Plan {
    /// A verdict for each server.
    pub items: Vec<Item>,
    /// The files that change, `mcpzip`'s own first: a server is there before it leaves.
    pub edits: Vec<Edit>,
    /// The rules that keep servers from moving.
    pub blocking: Vec<Rule>,
    /// The rules that would stop working, though they protect nothing.
    pub lost: Vec<Rule>,
    /// Hides the secrets of all servers.
    pub masker: Masker,
}

/// A server, and what becomes of it.
#[derive(Debug)]
pub struct Item {
    /// Whose.
    pub client: Client,
    /// In which scope.
    pub scope: Scope,
    /// In which file.
    pub path: PathBuf,
    /// Its name there.
    pub server: String,
    /// What becomes of it.
    pub verdict: Verdict,
    /// Its keys that have no counterpart.
    pub left_behind: Vec<String>,
}

/// What becomes of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It moves.
    Moves {
        /// Its name in `mcpzip`.
        name: String,
        /// Whether `mcpzip` has it already.
        is_known: bool,
    },
    /// Another server has its name: it moves under another.
    Conflicts {
        /// Its name in `mcpzip`.
        name: String,
    },
    /// It stays, and why.
    Stays(String),
}

/// A file as it is and as it will be.
#[derive(Debug, Clone)]
pub struct Edit {
    /// Whose file; `mcpzip`'s own where there is none.
    pub client: Option<Client>,
    /// The file.
    pub path: PathBuf,
    /// How it is written.
    pub syntax: Syntax,
    /// Its content; nothing where there is no file.
    pub before: Option<String>,
    /// Its content afterwards.
    pub after: String,
    pub(super) steps: Vec<Step>,
}

/// One value that an edit changes.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) path: Vec<String>,
    pub(super) before: Option<Node>,
    pub(super) after: Option<Node>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// A file that has to be changed cannot be read.
    #[error("`{path}` cannot be read: {problem}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        problem: String,
    },
    /// A file that has to be changed cannot be edited.
    #[error("`{path}` cannot be edited")]
    Edit {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: TextError,
    },
}

impl Edit {
    /// The edit that makes `after` of what was read, changing the values at `paths`; nothing where all stays.
    pub(super) fn new(
        client: Option<Client>,
        path: &Path,
        syntax: Syntax,
        source: &Source,
        after: &Text,
        paths: Vec<Vec<String>>,
    ) -> Option<Self> {
        let mut steps = Vec::new();
        for path in paths {
            let (before, after) = (source.text.node().at(&path).cloned(), after.node().at(&path).cloned());
            if before != after {
                steps.push(Step { path, before, after });
            }
        }
        let edit = Self {
            client,
            path: path.to_owned(),
            syntax,
            before: source.before.clone(),
            after: after.text().to_owned(),
            steps,
        };
        (!edit.steps.is_empty()).then_some(edit)
    }
}

impl Plan {
    /// Plans to move what `survey` found and `choice` means into the configuration at `config_file`.
    ///
    /// # Errors
    /// When a file that has to change cannot be read or edited.
    pub fn new(
        survey: &Survey,
        choice: &Choice,
        config_file: &Path,
        launch: &Launch,
        environment: &Environment,
    ) -> Result<Self, PlanError> {
        let unreadable = |problem| PlanError::Unreadable { path: config_file.to_owned(), problem };
        let config = read_source(config_file, Syntax::Json).map_err(unreadable)?;
        let mut servers = Servers::of(&config.text);
        let (mut items, mut moving, mut blocking) = (Vec::new(), Vec::new(), Vec::new());
        let is_meant = |found: &&Found| {
            (choice.scopes.is_empty() || choice.scopes.contains(&found.scope()))
                && (choice.only.is_empty() || choice.only.contains(&found.name))
        };
        for found in survey.found.iter().filter(is_meant) {
            let verdict = match stays(found, survey, choice, &mut blocking) {
                Some(reason) => Verdict::Stays(reason),
                None => {
                    let entry = found.entry.as_ref().expect("what cannot be read stays");
                    moving.push(found);
                    servers.take(entry, found)
                }
            };
            let left_behind = found.entry.as_ref().map(|entry| entry.left_behind.clone()).unwrap_or_default();
            items.push(Item {
                client: found.place.client,
                scope: found.scope(),
                path: found.place.path.clone(),
                server: found.name.clone(),
                verdict,
                left_behind,
            });
        }
        let launch = Launch { variables: servers.variables(), ..launch.clone() };
        let mut edits = Vec::new();
        edits.extend(servers.edit(config_file, &config)?);
        let mut places: Vec<&Place> = Vec::new();
        for found in &moving {
            if !places.contains(&&found.place) {
                places.push(&found.place);
            }
        }
        for place in places {
            let leaving: Vec<&str> =
                moving.iter().filter(|found| found.place == *place).map(|found| found.name.as_str()).collect();
            edits.extend(client_edit(survey, place, &leaving, &launch, environment)?);
        }
        let is_lost =
            |rule: &&Rule| moving.iter().any(|found| found.name == rule.server && found.place.client == rule.client);
        let lost = survey.rules.iter().filter(is_lost).cloned().collect();
        let secrets = survey.found.iter().filter_map(|found| found.entry.as_ref().ok()).flat_map(Entry::secrets);
        Ok(Self { items, edits, blocking, lost, masker: Masker::new(secrets) })
    }
}

/// Why a server stays, if it does; the rules that keep it are added to `blocking`.
fn stays(found: &Found, survey: &Survey, choice: &Choice, blocking: &mut Vec<Rule>) -> Option<String> {
    let entry = match &found.entry {
        Err(reason) => return Some(reason.clone()),
        Ok(_) if found.is_mcpzip => return Some("is mcpzip itself".to_owned()),
        Ok(entry) => entry,
    };
    if found.scope() != Scope::User {
        let project = found.place.project.as_deref().unwrap_or(Path::new("")).display();
        return Some(format!("belongs to the project {project}; mcpzip would show it in every other one too"));
    }
    if let Some(proxy) = entry.other_proxy()
        && !choice.only.contains(&found.name)
    {
        return Some(format!("is another proxy, `{proxy}`; `--only {}` moves it", found.name));
    }
    let about = |rule: &&Rule| rule.kind.protects() && rule.server == found.name && rule.client == found.place.client;
    let protecting: Vec<Rule> = survey.rules.iter().filter(about).cloned().collect();
    let first = protecting.first()?;
    if choice.drop_rules {
        return None;
    }
    let reason = format!("`{}` in {} would stop working: {}", first.key, first.path.display(), first.text);
    blocking.extend(protecting);
    Some(reason)
}

/// The client's file with our entry and without those that leave.
fn client_edit(
    survey: &Survey,
    place: &Place,
    leaving: &[&str],
    launch: &Launch,
    environment: &Environment,
) -> Result<Option<Edit>, PlanError> {
    let failed = |source| PlanError::Edit { path: place.path.clone(), source };
    let source = survey.files.get(&place.path).expect("its servers were read from it");
    let mut text = source.text.clone();
    let mut paths: Vec<Vec<String>> = leaving.iter().map(|name| place.path_of(name)).collect();
    let is_connected = survey.found.iter().any(|found| found.place == *place && found.is_mcpzip);
    if !is_connected {
        let is_taken = |name: &str| text.node().at(&place.path_of(name)).is_some() && !leaving.contains(&name);
        let name = names::free(entry::NAME, "proxy", is_taken);
        // One that leaves may have the name: then it goes first.
        if leaving.contains(&name.as_str()) {
            text.remove(&place.path_of(&name)).map_err(failed)?;
        }
        entry::write(&mut text, place, &name, launch, environment).map_err(failed)?;
        paths.extend(entry::paths(place, &name));
        paths.sort();
        paths.dedup();
        for other in leaving.iter().filter(|other| **other != name) {
            text.remove(&place.path_of(other)).map_err(failed)?;
        }
    } else {
        for name in leaving {
            text.remove(&place.path_of(name)).map_err(failed)?;
        }
    }
    Ok(Edit::new(Some(place.client), &place.path, place.syntax, source, &text, paths))
}

/// The servers of `mcpzip`, those to come included.
struct Servers {
    all: Vec<(String, Node)>,
    new: BTreeSet<String>,
}

const SERVERS: &str = "mcpServers";

impl Servers {
    fn of(config: &Text) -> Self {
        let known = config.node().get(SERVERS).map(Node::members).unwrap_or_default();
        let all = known.into_iter().map(|(name, node)| (name.to_owned(), node.clone())).collect();
        Self { all, new: BTreeSet::new() }
    }

    fn get(&self, name: &str) -> Option<&(String, Node)> {
        self.all.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// Takes a server in, unless it is there.
    fn take(&mut self, entry: &Entry, found: &Found) -> Verdict {
        let node = entry.to_node();
        let name = names::valid(&found.name);
        let told_apart = format!("{name}-{}", found.place.client.name());
        for known in [&name, &told_apart] {
            if let Some((known, there)) = self.get(known)
                && is_same_server(there, &node)
            {
                return Verdict::Moves { name: known.clone(), is_known: true };
            }
        }
        let is_conflict = self.get(&name).is_some();
        let name = names::free(&name, found.place.client.name(), |name| self.get(name).is_some());
        self.all.push((name.clone(), node));
        self.new.insert(name.clone());
        if is_conflict { Verdict::Conflicts { name } } else { Verdict::Moves { name, is_known: false } }
    }

    fn variables(&self) -> Vec<String> {
        let names = self.all.iter().flat_map(|(_, node)| references::variables(&node.to_json()));
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn edit(&self, path: &Path, source: &Source) -> Result<Option<Edit>, PlanError> {
        let mut text = source.text.clone();
        let mut paths = Vec::new();
        for (name, node) in self.all.iter().filter(|(name, _)| self.new.contains(name)) {
            let way = vec![SERVERS.to_owned(), name.clone()];
            text.set(&way, node).map_err(|source| PlanError::Edit { path: path.to_owned(), source })?;
            paths.push(way);
        }
        Ok(Edit::new(None, path, Syntax::Json, source, &text, paths))
    }
}

/// Whether two entries lead to the same server, however it is used.
fn is_same_server(one: &Node, other: &Node) -> bool {
    let plain = |node: &Node| {
        let aside =
            ["disabled", "description", "timeout", "idle_timeout", "max_concurrent", "expose", "tools", "trust"];
        let is_default = |key: &str, value: &Node| {
            matches!((key, value), ("args" | "env" | "headers", Node::List(_) | Node::Map(_)) if value.is_same(&Node::Null))
                || key == "type" && value.as_text().is_some_and(|kind| kind != "sse")
        };
        let members = node.members().into_iter();
        Node::map(
            members
                .filter(|(key, value)| !aside.contains(key) && !is_default(key, value))
                .map(|(key, value)| (key, value.clone())),
        )
    };
    plain(one).is_same(&plain(other))
}
