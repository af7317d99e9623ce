//! The rules by which clients withhold servers that they have only through mcpzip: those of other clients, and those that mcpzip has
//! already. mcpzip's rules hold for all clients, so such a rule becomes one for all; if it withholds a whole server, or cannot be carried
//! over, that server and the client do not come together behind mcpzip.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::cache::FileCache;
use super::model::{Approval, Unmovable};
use super::servers::Servers;
use super::{Carried, Client, Entry, Found, Launch, Node, Rule, Scope, Surroundings, Survey};
use super::{barrier, fixed, reading, rules};

/// The rules of clients about servers of others.
pub(super) struct Withheld {
    /// The servers that mcpzip had before.
    configured: Vec<Found>,
    /// The rules of each client.
    rules: BTreeMap<Client, Vec<Rule>>,
    /// The clients that ran mcpzip before.
    before: BTreeSet<Client>,
    /// The clients that run mcpzip.
    running: BTreeSet<Client>,
    /// The clients that have servers to move, which may run it.
    expected: BTreeSet<Client>,
}

impl Withheld {
    /// Finds the rules of all clients in `survey`, of which `expected` have servers to move; `servers` are those of mcpzip, in
    /// `config_file`.
    pub(super) fn of(
        survey: &Survey,
        expected: &BTreeSet<Client>,
        servers: &Servers,
        config_file: &Path,
        launch: &Launch,
        around: &Surroundings,
    ) -> Self {
        let configured: Vec<Found> = servers
            .all()
            .iter()
            .map(|(name, node)| {
                let mut location = Client::ClaudeCode.user_location(around);
                config_file.clone_into(&mut location.path);
                // Its entries have the form of Claude Code's.
                let entry = reading::read(Client::ClaudeCode, node, None);
                let entry = entry.map_err(|_| Unmovable::Configured);
                Found {
                    location,
                    name: name.clone(),
                    entry,
                    written: reading::written(Client::ClaudeCode, node),
                    is_mcpzip: false,
                    approval: Approval::Given,
                }
            })
            .collect();
        let clients = survey.found.iter().map(|found| found.location.client);
        let clients: BTreeSet<Client> = clients.collect();
        let rules = clients.iter().map(|client| {
            let others = survey.found.iter();
            let others = others.filter(|found| {
                !found.is_mcpzip && found.entry.is_ok() && found.location.client != *client
            });
            let others: Vec<&Found> = others.chain(&configured).collect();
            (*client, rules_of(*client, &others, survey, servers, around))
        });
        let rules = rules.collect();
        let can_run = |client: &Client| barrier(*client, survey, launch, around).is_none();
        let has_it = |client: &Client| {
            let mut own = survey.found.iter().filter(|found| {
                found.is_mcpzip && found.location.client == *client && found.scope() == Scope::User
            });
            own.any(|found| found.entry.as_ref().is_ok_and(|entry| !entry.is_disabled))
        };
        let can_run: BTreeSet<Client> = clients.into_iter().filter(can_run).collect();
        let before: BTreeSet<Client> = can_run.iter().copied().filter(has_it).collect();
        Self {
            configured,
            rules,
            running: before.clone(),
            before,
            expected: expected.intersection(&can_run).copied().collect(),
        }
    }

    /// From now on `client` runs mcpzip.
    pub(super) fn start(&mut self, client: Client) {
        self.running.insert(client);
    }

    fn about<'w>(&'w self, client: Client, found: &'w Found) -> impl Iterator<Item = &'w Rule> {
        let rules = self.rules.get(&client).into_iter().flatten();
        rules.filter(|rule| rule.is_about(found))
    }

    /// The clients that run mcpzip since this migration.
    fn started(&self) -> impl Iterator<Item = Client> {
        self.running.difference(&self.before).copied()
    }

    /// The reason why a server stays: a client would get it, or its own client would get one of `moving` or of mcpzip's, which a rule
    /// withholds as a whole or in a way that cannot be carried over.
    pub(super) fn reason(&self, found: &Found, moving: &[&Found]) -> Option<String> {
        let own = found.location.client;
        // No client can call a server that is switched off.
        let is_on = |found: &Found| !found.entry.as_ref().is_ok_and(|entry| entry.is_disabled);
        // A list of a client's own servers would keep all others in theirs, so those that moved before count.
        let running = self.running.iter();
        let running = running.map(|client| (client, true));
        let expected = self.expected.difference(&self.running);
        let clients = running.chain(expected.map(|client| (client, false)));
        let clients = clients.filter(|(client, _)| **client != own);
        let mut of_others = clients.flat_map(move |(client, is_running)| {
            let rules = self.about(*client, found);
            rules.filter(move |rule| is_kept_apart(rule) && (is_running || !permits_others(rule)))
        });
        let (rule, what) = match of_others.next().filter(|_| is_on(found)) {
            Some(rule) => (rule, "it".to_owned()),
            None if self.running.contains(&own) => return None,
            None => {
                let moving = moving.iter().copied().map(|other| {
                    (
                        other,
                        format!("`{}` of {}", other.name, other.location.client.title()),
                    )
                });
                let configured = self.configured.iter();
                let configured = configured.map(|other| (other, format!("`{}`", other.name)));
                let mut others = moving.chain(configured).filter(|(other, _)| is_on(other));
                others.find_map(|(other, what)| {
                    let mut rules = self.about(own, other);
                    Some((rules.find(|rule| is_kept_apart(rule))?, what))
                })?
            }
        };
        Some(format!(
            "{} could call {what} through mcpzip, where `{}` in {} would not hold: {}; `mcpzip migrate --drop-rules` moves it all the same",
            rule.client.title(),
            rule.key,
            rule.path.display(),
            rule.text
        ))
    }

    /// The rules of the clients that run mcpzip about servers, each with the server's name behind it; `placed` are the moving ones.
    pub(super) fn rules<'w>(&'w self, placed: &'w [(&Found, String)]) -> Vec<(&'w str, &'w Rule)> {
        let placed = placed.iter().flat_map(move |(found, name)| {
            let clients = self.running.iter();
            let clients = clients.filter(move |client| **client != found.location.client);
            let rules = clients.flat_map(move |client| self.about(*client, found));
            rules.map(move |rule| (name.as_str(), rule))
        });
        let configured = self.started().flat_map(move |client| {
            let found = self.configured.iter();
            found.flat_map(move |found| {
                self.about(client, found)
                    .map(|rule| (found.name.as_str(), rule))
            })
        });
        placed.chain(configured).collect()
    }
}

/// Warnings of rules that do not hold.
pub(super) fn given_up(rules: &[(&str, &Rule)]) -> Vec<String> {
    let texts = rules.iter().map(|(name, rule)| {
        format!(
            "{} can call `{name}` through mcpzip, where `{}` in {} does not hold: {}; `projects` and `tools` of its entry at mcpzip limit it for all clients",
            rule.client.title(),
            rule.key,
            rule.path.display(),
            rule.text
        )
    });
    texts.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether a rule withholds the whole server, or protects it and cannot be carried over.
fn is_kept_apart(rule: &Rule) -> bool {
    rule.is_blocking() || withholds_all(rule)
}

/// Whether a rule becomes one of mcpzip's.
pub(super) fn becomes_limit(rule: &Rule) -> bool {
    rule.is_carried() && !withholds_all(rule)
}

/// Whether a rule withholds all servers but those that it permits.
fn permits_others(rule: &Rule) -> bool {
    let is_list = ["allowed", "allowMCPServers"]
        .iter()
        .any(|list| rule.key.contains(list))
        || rule.key == fixed::REQUIRED;
    is_list || matches!(rule.carried, Carried::Only(_))
}

fn withholds_all(rule: &Rule) -> bool {
    match &rule.carried {
        Carried::Deny(tools) => tools.iter().any(|tool| tool == "*"),
        Carried::Only(tools) => tools.is_empty(),
        _ => false,
    }
}

/// The rules of `client` about servers of others. A rule that names one of its own servers is about another program of that name only if
/// a pattern or list says so; and what withholds a server holds for an equal one under any name.
fn rules_of(
    client: Client,
    others: &[&Found],
    survey: &Survey,
    servers: &Servers,
    around: &Surroundings,
) -> Vec<Rule> {
    let cache = FileCache::default();
    let own = survey
        .found
        .iter()
        .filter(|found| found.location.client == client && !found.is_mcpzip);
    let own: Vec<(&Found, Option<Entry>)> =
        own.map(|found| (found, entry_of(found, survey))).collect();
    let node = |found: &Found| found.entry.as_ref().ok().map(Entry::to_node);
    let is_same = |one: Option<&Node>, other: Option<&Entry>| match (one, other) {
        (Some(one), Some(other)) => servers.is_same_program(one, &other.to_node()),
        _ => false,
    };
    // A program that the client runs itself is not withheld.
    let is_run = |node: Option<&Node>| {
        let mut run = own.iter().filter(|(found, _)| {
            let is_on = found.entry.as_ref().is_ok_and(|entry| !entry.is_disabled);
            is_on && found.location.project.is_none()
        });
        run.any(|(_, entry)| {
            let both = node.zip(entry.as_ref());
            both.is_some_and(|(node, entry)| servers.is_equal(node, &entry.to_node()))
        })
    };
    let mut rules = rules::elsewhere(client, others, survey, around, &cache);
    rules.retain(|rule| {
        let about = others.iter().find(|found| rule.is_about(found));
        let about = about.and_then(|found| node(found));
        let is_other_program = own.iter().any(|(found, entry)| {
            found.name == rule.server
                && about.is_some()
                && entry.is_some()
                && !is_same(about.as_ref(), entry.as_ref())
        });
        !(is_other_program && rules::is_named(rule)
            || withholds_all(rule) && is_run(about.as_ref()))
    });
    // Those of its own that a list withholds.
    let withheld = own.iter().filter(|(found, _)| match &found.entry {
        Ok(entry) => entry.is_disabled,
        Err(reason) => matches!(reason, Unmovable::Denied(_)),
    });
    let withheld: Vec<Found> = withheld
        .filter_map(|(found, entry)| {
            let mut found = Found {
                entry: Ok(entry.clone()?),
                ..(*found).clone()
            };
            found.location.path = PathBuf::new();
            Some(found)
        })
        .collect();
    let withheld: Vec<&Found> = withheld.iter().collect();
    for rule in rules::elsewhere(client, &withheld, survey, around, &cache) {
        let known = withheld.iter().find(|found| rule.is_about(found));
        let known = known.and_then(|found| found.entry.as_ref().ok());
        for other in others.iter().filter(|_| withholds_all(&rule)) {
            let other_node = node(other);
            if is_same(other_node.as_ref(), known) && !is_run(other_node.as_ref()) {
                rules.push(Rule {
                    server: other.name.clone(),
                    location: other.location.clone(),
                    ..rule.clone()
                });
            }
        }
    }
    rules
}

/// The entry of a server, also of one that a policy blocks.
fn entry_of(found: &Found, survey: &Survey) -> Option<Entry> {
    let location = &found.location;
    match &found.entry {
        Ok(entry) => Some(entry.clone()),
        Err(_) => {
            let source = survey.files.get(&location.path)?;
            let node = source.text.node().at(&location.path_of(&found.name))?;
            reading::read(location.client, node, location.project.as_deref()).ok()
        }
    }
}
