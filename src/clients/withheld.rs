//! The rules by which clients withhold servers that they have only through mcpzip: those of other clients, and those that mcpzip has
//! already. mcpzip's rules hold for all clients, so such a rule becomes one for all; if it withholds a whole server, is not known, or cannot
//! be carried over, that server and the client do not come together behind mcpzip.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::cache::FileCache;
use super::came_over::{at_mcpzip, moved_on, refused};
use super::listed::USER_LIMIT;
use super::model::{Approval, OWN_PROGRAMS, Reach, RuleKind, Unmovable};
use super::nearness::Nearness;
use super::rules::Rights;
use super::servers::Servers;
use super::survey::switched_off_by_name;
use super::{
    Carried, Client, Found, History, Launch, Node, Rule, Scope, Surroundings, Survey, Syntax, Text,
};
use super::{barrier, rules};
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
    /// The names of the servers that mcpzip has, or may have after this run.
    names: BTreeSet<String>,
}

/// Why a server and a client do not come together behind mcpzip.
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
            let ours = (servers, config_file);
            let mut rules = about_others(*client, &others, survey, ours, around, &cache);
            rules.retain(|rule| {
                let mut about = others.iter().filter(|other| rule.is_about(other));
                becomes_limit(rule) || about.any(|other| is_callable(other))
            });
            (*client, rules)
        });
        let rules = rules.collect();
        let names = survey.candidates().chain(&configured).chain(more);
        Self {
            names: names.map(|found| found.name.clone()).collect(),
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
            let missing =
                of_list.filter(|other| is_kept_apart(other) && self.names.contains(&other.server));
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

    /// Why a server stays: a client would get it, or its own client would get one of `moving` or of mcpzip's, which a rule
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

    /// Why `client` does not get mcpzip: it would get a server of `moving` or of mcpzip's that a rule withholds. A list of its own
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
        let location = at_mcpzip(Client::ClaudeCode, config_file, around);
        let found = Found::read(location, name, node);
        Found {
            // It is compared as it is.
            form: Some(node.clone()),
            origins: servers.origins(name, node),
            entry: found.entry.map_err(|_| Unmovable::Configured),
            is_mcpzip: false,
            is_off: found.is_off || servers.denies_all(name),
            tool_rules: Vec::new(),
            ..found
        }
    };
    servers.all().iter().map(of).collect()
}

/// The clients that run mcpzip, in any scope, as far as their settings let them. One whose file cannot be read does if its text names
/// mcpzip.
pub(crate) fn running(survey: &Survey, launch: &Launch, around: &Surroundings) -> BTreeSet<Client> {
    let own = survey.found.iter().filter(|found| {
        let client = found.location.client;
        found.scope() != Scope::User || barrier(client, survey, launch, around).is_none()
    });
    // Whether a project's entry may run is known of Claude Code alone.
    let own = own
        .chain(&survey.staying)
        .filter(|found| found.is_mcpzip && (is_on(found) || found.approval == Approval::Missing));
    let unread = Client::ALL.into_iter().filter(|client| {
        let mut unread = survey.unread(*client, around);
        unread.any(|(path, _)| may_have_mcpzip(path))
    });
    own.map(|found| found.location.client)
        .chain(unread)
        .collect()
}

/// Whether a client that runs mcpzip has it in all projects, as far as its file can be read.
fn is_everywhere(client: Client, survey: &Survey, around: &Surroundings) -> bool {
    let all = survey.found.iter().chain(&survey.staying);
    let mut own = all.filter(|found| found.is_mcpzip);
    survey.unread(client, around).next().is_some()
        || own.any(|found| {
            found.location.client == client && found.scope() == Scope::User && is_on(found)
        })
}

/// Whether a file that is there and cannot be understood may have an entry for mcpzip.
fn may_have_mcpzip(path: &Path) -> bool {
    let Ok(bytes) = read_regular(path, USER_LIMIT) else {
        return true;
    };
    let text = String::from_utf8_lossy(&bytes);
    // In another encoding than UTF-8 it is not known.
    bytes.contains(&0) || OWN_PROGRAMS.iter().any(|program| text.contains(program))
}

/// Whether a server is on. No client can call one that is off.
fn is_on(found: &Found) -> bool {
    !found.is_off
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
        history: &History,
        gets: impl Fn(&str) -> bool,
        around: &Surroundings,
    ) -> Self {
        let Ok(text) = Text::parse(Syntax::Json, config) else {
            return Self::default();
        };
        let servers = Servers::of(&text).with_history(history.clone());
        let configured = configured(&servers, config_file, around);
        let others: Vec<&Found> = configured.iter().filter(|found| is_on(found)).collect();
        let cache = FileCache::default();
        let ours = (&servers, config_file);
        let rules = about_others(client, &others, survey, ours, around, &cache);
        // A rule for tools is one for each server of the program, and a list of the only permitted ones for its equals.
        let reaches = |rule: &Rule, other: &Found| {
            let mut about = others.iter().filter(|about| rule.is_about(about));
            let near =
                about.find_map(|about| Nearness::here(about.form.as_ref()?, other, &servers));
            let is_list = matches!(rule.carried, Carried::Only(_));
            is_protecting(rule)
                && near
                    >= Some(if is_list {
                        Nearness::Equal
                    } else {
                        Nearness::Program
                    })
        };
        let rules = rules.iter().flat_map(|rule| {
            let about = others
                .iter()
                .filter(|other| rule.is_about(other) || reaches(rule, other));
            about.map(move |other| (other.name.as_str(), rule))
        });
        let open = rules.filter(|(name, rule)| gets(name) && !servers.has_rule(name, rule));
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
            false if rule.kind == RuleKind::Unread => format!(
                "correct it, then `mcpzip migrate --client {command}` makes its rules those of mcpzip"
            ),
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
        Reach::Name | Reach::Switch | Reach::Own => false,
    };
    is_about_most || rule.is_unknown() || matches!(rule.carried, Carried::Only(_))
}

/// Whether a rule denies all tools.
pub(super) fn withholds_all(rule: &Rule) -> bool {
    rule.carried.withholds_all()
}

/// The rules of `client` about servers of others: those about their names, and those about servers of its own that are the same. A rule
/// that names one of its own servers is about another program of that name only if a pattern or list says so.
fn about_others(
    client: Client,
    others: &[&Found],
    survey: &Survey,
    (servers, config_file): (&Servers, &Path),
    around: &Surroundings,
    cache: &FileCache,
) -> Vec<Rule> {
    let refused = refused(client, servers, config_file, around);
    let own = survey.found.iter().chain(&survey.staying).chain(&refused);
    let own = own.filter(|found| found.location.client == client && !found.is_mcpzip);
    let own: Vec<&Found> = own.collect();
    let mut lists = lists_of(client, &own, survey, around, cache);
    let own = own.into_iter().enumerate().map(|(at, found)| {
        let lists = lists.remove(&number(at)).unwrap_or_default();
        (found, about_own(found, survey, lists))
    });
    let own: Vec<(&Found, Vec<Rule>)> = own.collect();
    let nearby = others.iter().map(|other| {
        let near = own.iter();
        let near = near.map(|(found, _)| Nearness::of(found, other, servers));
        near.collect()
    });
    let nearby: Vec<Vec<Option<Nearness>>> = nearby.collect();
    // A program that the client runs itself is not withheld, unless one that is nearer to it is.
    let run = nearby.iter().map(|near| {
        let run = own.iter().zip(near).filter(|((found, rules), _)| {
            let is_withheld = rules.iter().any(withholds_all);
            found.entry.is_ok() && is_on(found) && !is_withheld && found.location.project.is_none()
        });
        run.filter_map(|(_, near)| *near).max()
    });
    let run: Vec<Option<Nearness>> = run.collect();
    // The client's own one of the name may have moved, with its rules and perhaps under another name.
    let has_moved = |rule: &Rule| {
        let name = format!("{}-{}", safe_name(&rule.server), client.name());
        let mut moved = servers.history.names_here(client, &rule.server);
        servers.has_rule(&name, rule) || moved.any(|here| servers.has_rule(here, rule))
    };
    // An entry in a project's file says nothing about the name in a rule for all projects.
    let is_other_program = |name: &str, at: usize, project: Option<&Path>| {
        let mut own = own.iter().zip(&nearby[at]);
        own.any(|((found, _), near)| {
            let of_project = found.location.project.as_deref();
            let is_its = found.scope() != Scope::Project || of_project == project;
            found.name == name && near.is_none() && is_its && found.location.path != config_file
        })
    };
    let names = others.iter().enumerate().flat_map(|(at, other)| {
        let names = [&other.name].into_iter().chain(&other.origins);
        let one = |name: &String| Found {
            name: name.clone(),
            ..(**other).clone()
        };
        names.map(move |name| (one(name), at))
    });
    let names: Vec<(Found, usize)> = names.collect();
    let named: Vec<&Found> = names.iter().map(|(named, _)| named).collect();
    let mut rules: Vec<Rule> = Vec::new();
    for rule in rules::elsewhere(client, &named, survey, around, cache) {
        for (named, at) in names.iter().filter(|(named, _)| rule.is_about(named)) {
            let other = others[*at];
            // A list without another name says nothing about the server.
            let is_missing = named.name != other.name && rule.reach == Reach::Others;
            let is_other =
                has_moved(&rule) || is_other_program(&named.name, *at, rule.project.as_deref());
            let is_run = run[*at] == Some(Nearness::Equal);
            let rule = Rule {
                server: other.name.clone(),
                ..rule.clone()
            };
            if is_missing
                || is_other && rule.reach == Reach::Name
                || withholds_all(&rule) && is_run
                || rules.contains(&rule)
            {
                continue;
            }
            rules.push(rule);
        }
    }
    for (at, other) in others.iter().enumerate() {
        let moved = moved_on(client, other, servers);
        for ((found, about_own), near) in own.iter().zip(&nearby[at]) {
            let Some(nearness) = *near else { continue };
            // A part of an entry is about the client's own server of that name.
            let project = found.location.project.as_deref();
            if found.form.is_none() && is_other_program(&other.name, at, project) {
                continue;
            }
            let was_here = refused.iter().any(|refused| refused.is(found));
            let run = run[at].max(moved.filter(|_| was_here));
            for rule in about_own {
                if withholds_all(rule) && run.is_some_and(|run| run >= nearness) {
                    continue;
                }
                let rule = instead(rule, found, (other, nearness));
                if !rules.contains(&rule) {
                    rules.push(rule);
                }
            }
        }
        for rule in limits_of_moved(client, other, servers, config_file, around) {
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        let mut known = rules.iter().filter(|rule| rule.is_about(other));
        if run[at] == Some(Nearness::Equal) || known.any(withholds_all) {
            continue;
        }
        let here = names
            .iter()
            .filter(|(named, of)| *of == at && !is_other_program(&named.name, at, None));
        let by_name = here.filter_map(|(named, _)| {
            let path = switched_off_by_name(client, &named.name, around, cache)?;
            let text = "it is switched off".to_owned();
            Some(Rule {
                client,
                ..switch_of(other, path, named.name.clone(), text)
            })
        });
        rules.extend(by_name);
    }
    rules
}

/// Whether a client keeps one of its own servers off.
fn is_kept_off(found: &Found) -> bool {
    !is_on(found) || matches!(found.entry, Err(Unmovable::Denied(_)))
}

/// A path that no file of a client has.
fn number(at: usize) -> PathBuf {
    PathBuf::from(at.to_string())
}

/// The lists that withhold those of a client's `own` servers that it keeps off, by [`number`]. All are searched for at once, as each search
/// reads the files of all projects.
fn lists_of(
    client: Client,
    own: &[&Found],
    survey: &Survey,
    around: &Surroundings,
    cache: &FileCache,
) -> BTreeMap<PathBuf, Vec<Rule>> {
    let off = own.iter().enumerate().filter(|(_, own)| is_kept_off(own));
    // As of other files, so that the lists in their own are read as well.
    let apart = off.map(|(at, own)| {
        let mut apart = (*own).clone();
        apart.location.path = number(at);
        apart
    });
    let apart: Vec<Found> = apart.collect();
    let mut lists = BTreeMap::<PathBuf, Vec<Rule>>::new();
    if apart.is_empty() {
        return lists;
    }
    let apart: Vec<&Found> = apart.iter().collect();
    let rules = rules::elsewhere(client, &apart, survey, around, cache).into_iter();
    for rule in rules.filter(withholds_all) {
        let number = rule.location.path.clone();
        lists.entry(number).or_default().push(rule);
    }
    lists
}

/// The rules of a client about one of its own servers that withhold or guard it, with the `lists` or the switch that keeps it off.
fn about_own(found: &Found, survey: &Survey, lists: Vec<Rule>) -> Vec<Rule> {
    let rules = survey.rules.iter().filter(|rule| rule.is_about(found));
    let mut rules: Vec<Rule> = rules
        .filter(|rule| rules::is_guard(rule))
        .cloned()
        .collect();
    if !is_kept_off(found) {
        return rules;
    }
    rules.extend(lists);
    let key = found.location.path_of(&found.name).join(".");
    let path = found.location.path.clone();
    match &found.switch {
        Some((switch, value)) => rules.push(switch_of(
            found,
            path,
            format!("{key}.{switch}"),
            value.clone(),
        )),
        // The user has only not approved it yet.
        None if found.approval == Approval::Missing => {}
        None if rules.iter().any(withholds_all) => {}
        None => rules.push(switch_of(found, path, key, "it is switched off".to_owned())),
    }
    rules
}

/// The rule about `found` for another server that is the same. A list of the only permitted tools is not one for all tools of that
/// program; a warning names it then.
fn instead(rule: &Rule, found: &Found, (other, nearness): (&Found, Nearness)) -> Rule {
    let is_apart = nearness == Nearness::Program && !withholds_all(rule);
    let (kind, carried) = match rule.carried.clone() {
        Carried::Only(_) if is_apart => (
            RuleKind::Tools,
            Carried::Lost("is about other arguments, variables or secrets"),
        ),
        carried => (rule.kind, carried),
    };
    let carried = match carried.withholds_all() {
        true => Carried::Deny(vec!["*".to_owned()]),
        false => carried,
    };
    let rule = Rule {
        kind,
        carried: carried.of(other, found.location.project.as_deref()),
        server: other.name.clone(),
        location: other.location.clone(),
        ..rule.clone()
    };
    match becomes_limit(&rule) {
        true => Rule {
            reach: Reach::Own,
            ..rule
        },
        false => rule,
    }
}

/// The rule of a switch at a key of a client's file, which keeps `found` off.
fn switch_of(found: &Found, path: PathBuf, key: String, text: String) -> Rule {
    Rule {
        path,
        key,
        text,
        kind: RuleKind::Deny,
        reach: Reach::Switch,
        server: found.name.clone(),
        client: found.location.client,
        carried: Carried::Deny(vec!["*".to_owned()]),
        decided: None,
        is_idle: false,
        project: None,
        location: found.location.clone(),
    }
}

/// The rules for tools and the projects that servers have got here in earlier runs and still have, for another one that is the same.
/// `client` had those servers; another way to run the program that it had as well is not hidden with them.
fn limits_of_moved(
    client: Client,
    other: &Found,
    servers: &Servers,
    config_file: &Path,
    around: &Surroundings,
) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (name, node) in servers.all() {
        let Some(nearness) = Nearness::here(node, other, servers) else {
            continue;
        };
        let (now, there) = (Rights::read(node), other.form.as_ref().map(Rights::read));
        let found = Found::read(at_mcpzip(client, config_file, around), name, node);
        let is_here = other.location.path == config_file;
        let had = |form| servers.history.had_program(client, &other.name, form);
        let is_shown =
            is_here && nearness != Nearness::Equal && other.form.as_ref().is_some_and(had);
        for limits in servers.history.limits_of(client, name) {
            for (key, carried) in Rights::read(limits).limits() {
                if is_shown && matches!(carried, Carried::NotIn(_)) {
                    continue;
                }
                let one = Rights::of_one(&carried);
                let has_it =
                    |rights: &Rights| rights.with_tools_of(&one).hidden_with(&one) == *rights;
                let is_list = matches!(carried, Carried::Only(_));
                // A server of another client stays there if all tools of its equal are denied.
                let counts = is_here || !carried.withholds_all();
                let is_meant = counts && (!is_list || nearness == Nearness::Equal);
                if !is_meant || !has_it(&now) || there.as_ref().is_some_and(has_it) {
                    continue;
                }
                let rule = Rule {
                    key: format!("{}.{key}", found.location.path_of(name).join(".")),
                    kind: match carried {
                        Carried::Ask(_) => RuleKind::Ask,
                        _ => RuleKind::Deny,
                    },
                    carried: carried.clone(),
                    ..switch_of(
                        &found,
                        config_file.to_owned(),
                        String::new(),
                        carried.text(),
                    )
                };
                rules.push(instead(&rule, &found, (other, nearness)));
            }
        }
    }
    rules
}
