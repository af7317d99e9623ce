//! The rules by which clients withhold servers that they have only through mcpzip: those of other clients, and those that mcpzip has
//! already. mcpzip's rules hold for all clients, so such a rule becomes one for all; if it withholds a whole server, is not known, or cannot
//! be carried over, that server and the client do not come together behind mcpzip.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::cache::{FileCache, USER_LIMIT};
use super::model::{Approval, Reach, RuleKind, Unmovable};
use super::servers::Servers;
use super::survey::switched_off_by_name;
use super::{
    Carried, Client, Entry, Found, Launch, Node, Rule, Scope, Surroundings, Survey, Syntax, Text,
};
use super::{barrier, reading, rules};
use crate::config::safe_name;
use crate::files::read_regular;

/// The rules of clients about servers of others.
pub(super) struct Withheld {
    /// The servers that mcpzip had before.
    configured: Vec<Found>,
    /// The rules of each client. Of those that withhold a whole server, only those about servers that a client could call.
    rules: BTreeMap<Client, Vec<Rule>>,
    /// The clients that had mcpzip in all projects before.
    before: BTreeSet<Client>,
    /// The clients that run mcpzip, also in one project alone.
    running: BTreeSet<Client>,
    /// The clients that have mcpzip in all projects.
    everywhere: BTreeSet<Client>,
    /// The clients that may get it in this run: they have servers to move, or are to be connected.
    expected: BTreeSet<Client>,
}

/// The reason why a server and a client do not come together behind mcpzip.
pub(super) struct Reason {
    /// The reason, as a sentence.
    pub text: String,
    /// The ways to change that, apart from giving the rule up.
    pub remedies: Vec<String>,
    /// The clients without which the server could move in this run.
    pub leaving: BTreeSet<Client>,
}

impl Reason {
    /// The reason and all ways out, of which `last` is one.
    pub(super) fn with(mut self, last: String) -> String {
        self.remedies.push(last);
        format!("{}; {}", self.text, self.remedies.join(", or "))
    }
}

impl Withheld {
    /// Finds the rules of all clients in `survey`, of which `expected` may get mcpzip; `servers` are those of mcpzip, in `config_file`, and
    /// `more` those of other files that move.
    pub(super) fn of(
        survey: &Survey,
        expected: &BTreeSet<Client>,
        (servers, config_file): (&Servers, &Path),
        more: &[Found],
        launch: &Launch,
        around: &Surroundings,
    ) -> Self {
        let configured = configured(servers, config_file, around);
        let running = running(survey, launch, around);
        let mut before = running.clone();
        before.retain(|client| is_everywhere(*client, survey, around));
        // All tools of such a server are denied behind mcpzip, too.
        let denials = survey.rules.iter();
        let denials: Vec<&Rule> = denials.filter(|rule| withholds_all(rule)).collect();
        let is_callable =
            |other: &Found| is_on(other) && !denials.iter().any(|denial| denial.is_about(other));
        let can_run = |client: &&Client| barrier(**client, survey, launch, around).is_none();
        let expected: BTreeSet<Client> = expected.iter().filter(can_run).copied().collect();
        let cache = FileCache::default();
        let rules = running.union(&expected).map(|client| {
            let others = survey.found.iter();
            let others = others.filter(|found| {
                !found.is_mcpzip && found.entry.is_ok() && found.location.client != *client
            });
            let others: Vec<&Found> = others.chain(&configured).chain(more).collect();
            let mut rules = about_others(*client, &others, survey, servers, around, &cache);
            rules.retain(|rule| {
                let mut about = others.iter().filter(|other| rule.is_about(other));
                becomes_limit(rule) || about.any(|other| is_callable(other))
            });
            (*client, rules)
        });
        let rules = rules.collect();
        Self {
            configured,
            rules,
            running,
            everywhere: before.clone(),
            before,
            expected,
        }
    }

    /// From now on `client` runs mcpzip.
    pub(super) fn start(&mut self, client: Client) {
        self.running.insert(client);
        self.everywhere.insert(client);
    }

    fn about<'w>(&'w self, client: Client, found: &'w Found) -> impl Iterator<Item = &'w Rule> {
        let rules = self.rules.get(&client).into_iter().flatten();
        rules.filter(|rule| rule.is_about(found))
    }

    /// `rule` would not hold for `what`, which its client could call.
    fn because(&self, rule: &Rule, what: &str) -> Reason {
        let (key, path, text) = (&rule.key, rule.path.display(), &rule.text);
        let mut remedies = Vec::new();
        let why = match rule.is_unknown() {
            true => {
                remedies.push(format!("correct {path}"));
                format!("and its rules in {path} are not known: it {text}")
            }
            false => format!("where `{key}` in {path} would not hold: {text}"),
        };
        if rule.reach == Reach::Others {
            let rules = self.rules.get(&rule.client).into_iter().flatten();
            let of_list = rules.filter(|other| (&other.path, &other.key) == (&rule.path, key));
            let missing = of_list.filter(|other| is_kept_apart(other));
            let missing: BTreeSet<String> =
                missing.map(|other| format!("`{}`", other.server)).collect();
            let missing = Vec::from_iter(missing).join(", ");
            remedies.push(format!("add {missing} to that list"));
        }
        let client = rule.client.title();
        Reason {
            text: format!("{client} could call {what} through mcpzip, {why}"),
            remedies,
            leaving: BTreeSet::new(),
        }
    }

    /// The reason why a server stays: a client would get it, or its own client would get one of `moving` or of mcpzip's, which a rule
    /// withholds as a whole or in a way that cannot be carried over.
    pub(super) fn reason(&self, found: &Found, moving: &[&Found]) -> Option<Reason> {
        let own = found.location.client;
        let clients = self.running.union(&self.expected);
        let of_others = clients.filter(|client| **client != own).flat_map(|client| {
            let is_running = self.running.contains(client);
            let rules = self.about(*client, found);
            rules.filter(move |rule| is_kept_apart(rule) && (is_running || !yields(rule)))
        });
        let (running, others): (Vec<_>, Vec<_>) =
            of_others.partition(|rule| self.running.contains(&rule.client));
        let Some(rule) = running.first().or(others.first()) else {
            return self.apart(own, moving);
        };
        let leaving = others.iter().filter(|_| running.is_empty());
        Some(Reason {
            leaving: leaving.map(|rule| rule.client).collect(),
            ..self.because(rule, "it")
        })
    }

    /// The reason why `client` does not get mcpzip: it would get a server of `moving` or of mcpzip's that a rule withholds. A list of its own
    /// servers would keep all others in their clients, so those that moved before count.
    pub(super) fn apart(&self, client: Client, moving: &[&Found]) -> Option<Reason> {
        if self.everywhere.contains(&client) {
            return None;
        }
        let moving = moving.iter().copied().map(|other| {
            let title = other.location.client.title();
            (other, format!("`{}` of {title}", other.name), false)
        });
        let configured = self.configured.iter();
        let configured = configured.map(|other| (other, format!("`{}`", other.name), true));
        moving
            .chain(configured)
            .find_map(|(other, what, is_configured)| {
                let mut rules = self.about(client, other);
                // A server of another client stays there if this one has it switched off, so only one of mcpzip's comes with it.
                let counts = |rule: &Rule| is_configured || rule.reach != Reach::Switch;
                let rule = rules.find(|rule| is_kept_apart(rule) && counts(rule))?;
                Some(self.because(rule, &what))
            })
    }

    /// The clients of `wanted` that do not get mcpzip, with the reasons. The others run it from now on.
    pub(super) fn connect(
        &mut self,
        wanted: &BTreeSet<Client>,
        moving: &[&Found],
    ) -> BTreeMap<Client, String> {
        let mut apart = BTreeMap::new();
        for client in wanted.intersection(&self.expected.clone()) {
            match self.apart(*client, moving) {
                Some(reason) => {
                    let command = format!("`mcpzip connect {}`", client.name());
                    let way = format!("{command} connects it all the same");
                    apart.insert(*client, reason.with(way));
                }
                None => self.start(*client),
            }
        }
        apart
    }

    /// The rules of the clients that run mcpzip about servers, each with the server's name behind it; `placed` are the moving ones.
    pub(super) fn rules<'w>(&'w self, placed: &'w [(&Found, String)]) -> Vec<(&'w str, &'w Rule)> {
        let placed = placed.iter().flat_map(move |(found, name)| {
            let clients = self.running.iter();
            let clients = clients.filter(move |client| **client != found.location.client);
            let rules = clients.flat_map(move |client| self.about(*client, found));
            rules.map(move |rule| (name.as_str(), rule))
        });
        let configured = self.running.iter().flat_map(move |client| {
            let found = self.configured.iter();
            found.flat_map(move |found| {
                let rules = self.about(*client, found);
                // A file that cannot be read for once hides no server that was there before.
                let is_known = |rule: &&Rule| {
                    !self.before.contains(client) || !becomes_limit(rule) || is_protecting(rule)
                };
                rules
                    .filter(is_known)
                    .map(|rule| (found.name.as_str(), rule))
            })
        });
        placed.chain(configured).collect()
    }
}

/// The servers of mcpzip in `config_file`, as those of a client.
fn configured(servers: &Servers, config_file: &Path, around: &Surroundings) -> Vec<Found> {
    let of = |(name, node): &(String, Node)| {
        let mut location = Client::ClaudeCode.user_location(around);
        config_file.clone_into(&mut location.path);
        // Its entries have the form of Claude Code's.
        let entry = reading::read(Client::ClaudeCode, node, None);
        let is_off = node.get("disabled") == Some(&Node::Flag(true)) || servers.denies_all(name);
        Found {
            location,
            name: name.clone(),
            entry: entry.map_err(|_| Unmovable::Configured),
            written: reading::written(Client::ClaudeCode, node),
            is_mcpzip: false,
            approval: match is_off {
                true => Approval::Refused,
                false => Approval::Given,
            },
        }
    };
    servers.all().iter().map(of).collect()
}

/// The clients that run mcpzip, in any scope, as far as their settings let them. One whose file cannot be read does if its text names
/// mcpzip.
pub(crate) fn running(survey: &Survey, launch: &Launch, around: &Surroundings) -> BTreeSet<Client> {
    let own = survey.found.iter().chain(&survey.in_projects);
    // Whether a project's entry may run is known of Claude Code alone.
    let own = own
        .filter(|found| found.is_mcpzip && (is_on(found) || found.approval == Approval::Missing));
    let own = own.filter(|found| {
        let client = found.location.client;
        found.scope() != Scope::User || barrier(client, survey, launch, around).is_none()
    });
    let unread = Client::ALL.into_iter().filter(|client| {
        let path = client.user_location(around).path;
        let mut unreadable = survey.unreadable.iter();
        unreadable.any(|(known, _)| *known == path) && may_have_mcpzip(&path)
    });
    own.map(|found| found.location.client)
        .chain(unread)
        .collect()
}

/// Whether a client that runs mcpzip has it in all projects, as far as its file can be read.
fn is_everywhere(client: Client, survey: &Survey, around: &Surroundings) -> bool {
    let path = client.user_location(around).path;
    let mut unreadable = survey.unreadable.iter();
    let mut own = survey.found.iter().filter(|found| found.is_mcpzip);
    unreadable.any(|(known, _)| *known == path)
        || own.any(|found| {
            found.location.client == client && found.scope() == Scope::User && is_on(found)
        })
}

/// Whether a file that cannot be understood may have an entry for mcpzip.
fn may_have_mcpzip(path: &Path) -> bool {
    match read_regular(path, USER_LIMIT) {
        Ok(bytes) => bytes.windows(6).any(|window| window == b"mcpzip"),
        Err(_) => path.is_file(),
    }
}

/// Whether a server is on. No client can call one that is off.
fn is_on(found: &Found) -> bool {
    let is_disabled = found.entry.as_ref().is_ok_and(|entry| entry.is_disabled);
    !is_disabled && found.approval != Approval::Refused
}

/// Warnings of the rules of a client that do not hold for the servers of mcpzip.
#[derive(Debug, Default)]
pub(crate) struct Guards {
    /// Of those that a migration makes rules of mcpzip.
    pub carried: Vec<String>,
    /// Of all others.
    pub lost: Vec<String>,
}

impl Guards {
    /// Compares the rules of `client` with those servers of `config`, the text of `config_file`, that it gets.
    #[must_use]
    pub(crate) fn of(
        client: Client,
        survey: &Survey,
        (config, config_file): (&str, &Path),
        gets: impl Fn(&str) -> bool,
        around: &Surroundings,
    ) -> Self {
        let Ok(text) = Text::parse(Syntax::Json, config) else {
            return Self::default();
        };
        let servers = Servers::of(&text);
        let configured = configured(&servers, config_file, around);
        let others = configured.iter();
        let others: Vec<&Found> = others
            .filter(|found| is_on(found) && gets(&found.name))
            .collect();
        let cache = FileCache::default();
        let rules = about_others(client, &others, survey, &servers, around, &cache);
        let rules = rules.iter().map(|rule| (rule.server.as_str(), rule));
        let open = rules.filter(|(name, rule)| !servers.has_rule(name, rule));
        let (carried, lost): (Vec<_>, Vec<_>) = open.partition(|(_, rule)| is_protecting(rule));
        Self {
            carried: given_up(&carried),
            lost: given_up(&lost),
        }
    }

    /// All of them.
    pub(crate) fn all(self) -> impl Iterator<Item = String> {
        self.carried.into_iter().chain(self.lost)
    }
}

/// Warnings of rules that do not hold, each with the name of a server that it is about.
pub(super) fn given_up(rules: &[(&str, &Rule)]) -> Vec<String> {
    let mut texts: BTreeMap<(Client, String), BTreeSet<String>> = BTreeMap::new();
    for (name, rule) in rules {
        let (key, path, text) = (&rule.key, rule.path.display(), &rule.text);
        let why = match rule.kind {
            RuleKind::Unread => format!("and its rules in {path} are not known: it {text}"),
            _ => format!("where `{key}` in {path} does not hold: {text}"),
        };
        let command = rule.client.name();
        let way = match is_protecting(rule) {
            true => format!("`mcpzip migrate --client {command}` makes it a rule of mcpzip"),
            false => format!(
                "`projects` and `tools` of an entry at mcpzip limit it for all clients, and `mcpzip connect {command} --profile NAME` gives {} a \
                 profile without it",
                rule.client.title()
            ),
        };
        let names = texts.entry((rule.client, format!("{why}; {way}")));
        names.or_default().insert(format!("`{name}`"));
    }
    let warnings = texts.into_iter().map(|((client, why), names)| {
        let (title, names) = (client.title(), Vec::from_iter(names).join(", "));
        format!("{title} can call {names} through mcpzip, {why}")
    });
    warnings.collect()
}

/// Whether a rule withholds the whole server, is not known, or protects the server and cannot be carried over.
fn is_kept_apart(rule: &Rule) -> bool {
    rule.is_blocking() || rule.is_unknown() || withholds_all(rule)
}

/// Whether a rule becomes one of mcpzip's.
pub(super) fn becomes_limit(rule: &Rule) -> bool {
    rule.is_carried() && !withholds_all(rule)
}

/// Whether a rule is known, and becomes one of mcpzip's also for a server that its client has through mcpzip already.
fn is_protecting(rule: &Rule) -> bool {
    becomes_limit(rule) && rule.kind != RuleKind::Unread
}

/// Whether its client, if it does not run mcpzip yet, rather keeps its own servers: the rule is about most servers of others.
fn yields(rule: &Rule) -> bool {
    let is_about_most = match rule.reach {
        Reach::Others => true,
        Reach::Pattern => rule.is_blocking(),
        Reach::Name | Reach::Switch => false,
    };
    is_about_most || rule.is_unknown() || matches!(rule.carried, Carried::Only(_))
}

/// Whether a rule denies all tools.
pub(super) fn withholds_all(rule: &Rule) -> bool {
    match &rule.carried {
        Carried::Deny(tools) => tools.iter().any(|tool| tool == "*"),
        Carried::Only(tools) => tools.is_empty(),
        _ => false,
    }
}

/// The rules of `client` about servers of others. A rule that names one of its own servers is about another program of that name only if
/// a pattern or list says so; and what withholds a server holds for an equal one under any name.
fn about_others(
    client: Client,
    others: &[&Found],
    survey: &Survey,
    servers: &Servers,
    around: &Surroundings,
    cache: &FileCache,
) -> Vec<Rule> {
    let refused = refused_in_projects(client, servers);
    let own = survey.found.iter().chain(&survey.in_projects);
    let own = own.chain(&refused);
    let own = own.filter(|found| found.location.client == client && !found.is_mcpzip);
    let own: Vec<(&Found, Option<Entry>)> =
        own.map(|found| (found, entry_of(found, survey))).collect();
    let node = |found: &Found| found.entry.as_ref().ok().map(Entry::to_node);
    let is_same = |one: Option<&Node>, other: Option<&Entry>| match (one, other) {
        (Some(one), Some(other)) => servers.is_same_program(one, &other.to_node()),
        _ => false,
    };
    let is_equal = |one: Option<&Node>, other: Option<&Entry>| match (one, other) {
        (Some(one), Some(other)) => servers.is_equal(one, &other.to_node()),
        _ => false,
    };
    let denials: Vec<&Rule> = survey
        .rules
        .iter()
        .filter(|rule| withholds_all(rule))
        .collect();
    // A program that the client runs itself is not withheld.
    let is_run = |node: Option<&Node>| {
        let mut run = own.iter().filter(|(found, _)| {
            let is_on = found.entry.as_ref().is_ok_and(|entry| !entry.is_disabled);
            let is_denied = denials.iter().any(|denial| denial.is_about(found));
            is_on && !is_denied && found.location.project.is_none()
        });
        run.any(|(_, entry)| is_equal(node, entry.as_ref()))
    };
    // The client's own one of the name may have moved, under another name and with its rules.
    let has_moved = |rule: &Rule| {
        let name = format!("{}-{}", safe_name(&rule.server), client.name());
        servers.has_rule(&name, rule)
    };
    let is_other_program = |about: &Found| {
        let about_node = node(about);
        own.iter().any(|(found, entry)| {
            found.name == about.name
                && about_node.is_some()
                && entry.is_some()
                && !is_same(about_node.as_ref(), entry.as_ref())
        })
    };
    let mut rules = rules::elsewhere(client, others, survey, around, cache);
    rules.retain(|rule| {
        let about = others.iter().find(|found| rule.is_about(found));
        let is_other = has_moved(rule) || about.is_some_and(|about| is_other_program(about));
        let about = about.and_then(|found| node(found));
        !(is_other && rule.reach == Reach::Name || withholds_all(rule) && is_run(about.as_ref()))
    });
    // Those of its own of which it has denied all tools.
    for (found, entry) in &own {
        for rule in denials.iter().filter(|rule| rule.is_about(found)) {
            rules.extend(others.iter().filter_map(|other| {
                let other_node = node(other);
                let is_it = is_same(other_node.as_ref(), entry.as_ref());
                (is_it && !is_run(other_node.as_ref())).then(|| Rule {
                    server: other.name.clone(),
                    location: other.location.clone(),
                    carried: Carried::Deny(vec!["*".to_owned()]),
                    ..(*rule).clone()
                })
            }));
        }
    }
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
    for rule in rules::elsewhere(client, &withheld, survey, around, cache) {
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
    // Those that are switched off.
    for other in others {
        let other_node = node(other);
        let mut known = rules.iter().filter(|rule| rule.is_about(other));
        if known.any(withholds_all) || is_run(other_node.as_ref()) {
            continue;
        }
        let off = own.iter().filter(|(found, entry)| {
            let is_equal = is_equal(other_node.as_ref(), entry.as_ref());
            found.entry.is_ok() && !is_on(found) && is_equal
        });
        rules.extend(off.filter_map(|(found, _)| switch(found, other, survey)));
        let by_name = switched_off_by_name(client, &other.name, around, cache);
        rules.extend(by_name.filter(|_| !is_other_program(other)).map(|path| {
            let place = (client, path, other.name.as_str());
            switch_of(place, "it is switched off", None, other)
        }));
    }
    rules
}

/// The servers of projects that `client` refused before they moved, as it had them. They are off at mcpzip as well.
fn refused_in_projects(client: Client, servers: &Servers) -> Vec<Found> {
    let mut found = Vec::new();
    for (name, node) in servers.all() {
        let is_off = node.get("disabled") == Some(&Node::Flag(true));
        if !is_off || !servers.refused_by(name).any(|refusing| refusing == client) {
            continue;
        }
        let projects = node.get("projects").map(Node::items).unwrap_or_default();
        let projects = projects.iter().filter_map(Node::as_text);
        let projects = projects.map(Path::new).filter(|path| path.is_absolute());
        let locations = projects.filter_map(|project| client.project_location(project));
        found.extend(locations.map(|location| Found {
            location,
            name: name.clone(),
            entry: reading::read(Client::ClaudeCode, node, None),
            written: reading::written(Client::ClaudeCode, node),
            is_mcpzip: false,
            approval: Approval::Refused,
        }));
    }
    found
}

/// The rule that withholds `other` because of its equal `found`, which its client has switched off. `None` if the user has only not
/// approved it yet.
fn switch(found: &Found, other: &Found, survey: &Survey) -> Option<Rule> {
    let location = &found.location;
    let project = location.project.as_deref();
    let path = location.path_of(&found.name);
    let source = survey.files.get(&location.path);
    let written = source.and_then(|source| source.text.node().at(&path));
    let part = written.and_then(|written| reading::part(location.client, written, project));
    let key = path.join(".");
    let (key, text) = match part.and_then(|part| part.switch) {
        Some((switch, value)) => (format!("{key}.{switch}"), value),
        None if found.approval == Approval::Missing => return None,
        None => (key, "it is switched off".to_owned()),
    };
    let place = (location.client, location.path.clone(), key.as_str());
    Some(switch_of(place, &text, project, other))
}

/// The rule that withholds `other` in `project`, or everywhere, because of a switch at a key of a client's file.
fn switch_of(
    (client, path, key): (Client, PathBuf, &str),
    text: &str,
    project: Option<&Path>,
    other: &Found,
) -> Rule {
    let within = other.location.project.as_deref();
    let carried = match project {
        // A server of one project alone cannot be hidden there.
        Some(project) if !within.is_some_and(|within| within.starts_with(project)) => {
            Carried::NotIn(project.to_owned())
        }
        _ => Carried::Deny(vec!["*".to_owned()]),
    };
    Rule {
        path,
        key: key.to_owned(),
        text: text.to_owned(),
        kind: RuleKind::Deny,
        reach: Reach::Switch,
        server: other.name.clone(),
        client,
        carried,
        project: None,
        location: other.location.clone(),
    }
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
