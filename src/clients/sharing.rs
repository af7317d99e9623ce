//! The tool rules that servers of one program have in common, so that a rule of one is not avoided by another's name.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::model::{Reach, RuleKind};
use super::rules::Rights;
use super::servers::{Servers, plain};
use super::{Client, Found, Node, Rule};
use crate::config::{addresses_of, any_program, programs_in, programs_of, way};

/// A server of a client.
pub(super) struct Ruled<'s> {
    /// Its name there.
    pub name: &'s str,
    /// The client.
    pub client: Client,
    /// The client's title, with the project that it is limited to if the migration leaves that alone.
    pub title: String,
    /// Its name in mcpzip, if it moves.
    pub placed: Option<&'s str>,
    /// The program or URL that it runs, if that is known.
    pub form: Option<&'s Node>,
    /// The rules about it that can be carried over.
    pub rights: Rights,
}

/// Sentences for the user about the rules that servers share.
#[derive(Default)]
pub(super) struct Shared {
    /// The limits that servers got from others: their names, each with the rest of the sentence.
    limits: Vec<(String, String)>,
    /// Notes, also about servers that are not equal and were written under one name.
    pub notes: Vec<String>,
}

/// An entry in the forms by which it is compared with others, each worked out once.
struct Form<'s> {
    servers: &'s Servers,
    node: &'s Node,
    /// The programs that it may start, or its URL, and its [`program`].
    programs: OnceCell<(BTreeSet<String>, Node)>,
    /// The ways in which it runs them, see [`Servers::way`].
    ways: OnceCell<[Node; 2]>,
}

impl<'s> Form<'s> {
    const fn of(node: &'s Node, servers: &'s Servers) -> Self {
        Self {
            servers,
            node,
            programs: OnceCell::new(),
            ways: OnceCell::new(),
        }
    }

    fn is_same_program(&self, other: &Self) -> bool {
        let ((programs, entry), (theirs, there)) = (self.programs(), other.programs());
        !programs.is_disjoint(theirs) || self.servers.stored().difference(entry, there).is_some()
    }

    fn is_equal(&self, other: &Self) -> bool {
        self.ways().iter().zip(other.ways()).any(|(one, other)| {
            let difference = self.servers.stored().difference(one, other);
            difference.is_some_and(|difference| !difference.is_known)
        })
    }

    fn programs(&self) -> &(BTreeSet<String>, Node) {
        let form = || (self.servers.programs(self.node), program(self.node));
        self.programs.get_or_init(form)
    }

    fn ways(&self) -> &[Node; 2] {
        let way = |resolves| self.servers.way(self.node, resolves);
        self.ways.get_or_init(|| [false, true].map(way))
    }
}

impl Shared {
    /// The limits that servers got from others. Those that are equal are one sentence.
    pub(super) fn limits(&self) -> Vec<String> {
        let mut all: Vec<(Vec<String>, &str)> = Vec::new();
        for (name, limit) in &self.limits {
            let name = format!("`{name}`");
            match all.iter_mut().find(|(_, known)| known == limit) {
                Some((names, _)) => names.push(name),
                None => all.push((vec![name], limit)),
            }
        }
        let sentence = |(names, limit): (Vec<String>, &str)| match names.as_slice() {
            [name] => format!("{name} {limit}"),
            names => format!("each of {} {limit}", names.join(", ")),
        };
        all.into_iter().map(sentence).collect()
    }
}

/// The rules of one server, with those that it takes over from others.
struct Sharing {
    before: Rights,
    joined: Rights,
    /// The servers whose rules it has taken over.
    causes: Vec<String>,
    /// The servers of the same program whose `allow` it may not have, with their rules.
    unlike: Vec<(String, Rights)>,
}

impl Sharing {
    fn new(entry: &Node) -> Self {
        let before = Rights::read(entry);
        Self {
            joined: before.clone(),
            before,
            causes: Vec::new(),
            unlike: Vec::new(),
        }
    }

    /// Takes over the rules of a server that runs the same program. `allow` is only taken from an equal one. With `hides`, the server is
    /// hidden in the same projects.
    fn take(&mut self, rights: &Rights, (is_equal, hides): (bool, bool), server: String) {
        let mut joined = match is_equal {
            true => self.joined.with_tools_of(rights),
            false => self.joined.with_tools_of(&rights.without_allow()),
        };
        if hides {
            joined = joined.hidden_with(rights);
        }
        if !is_equal && !self.unlike.iter().any(|(known, _)| *known == server) {
            self.unlike.push((server.clone(), rights.clone()));
        }
        if joined != self.joined {
            if !self.causes.contains(&server) {
                self.causes.push(server);
            }
            self.joined = joined;
        }
    }

    fn tell(self, name: &str, shared: &mut Shared) {
        let limits = self.joined.limits_beyond(&self.before);
        if !limits.is_empty() {
            let limits: Vec<String> = limits.iter().map(|limit| limit.as_limit()).collect();
            let limit = format!(
                "{} for all clients, because of {}, which {} the same program or URL",
                limits.join(" and "),
                self.causes.join(" and "),
                match self.causes.len() {
                    1 => "runs",
                    _ => "run",
                }
            );
            shared.limits.push((name.to_owned(), limit));
        }
        for (other, rights) in self.unlike {
            if self.joined.with_tools_of(&rights) != self.joined {
                shared.notes.push(format!(
                    "`{name}` is not limited to the allowed tools of {other}, which runs the same program or URL with other arguments, \
                     variables or secrets: each client may call all of its tools"
                ));
            }
        }
    }
}

impl Servers {
    /// Gives servers with different names that run the same program or URL the tool rules of each other, if one of them is new. As for
    /// `trust`, variables, headers, versions and the directory do not make it another one, nor does a secret. But an `allow` reaches only
    /// entries that are equal in all of these: a list for an entry that other arguments or variables limit is not about an unlimited one.
    /// A server also gets the rules of clients about one that is `ruled` and moves, and one that was `placed` those about one that stays
    /// in its client, which can call it here: their rules for tools, and the projects in which they are hidden. Another way to run the
    /// program that the same client shows in such a project is not hidden. `withheld` are the rules of clients about servers that they do
    /// not have themselves.
    pub(super) fn share_rules(
        &mut self,
        ruled: &[Ruled<'_>],
        placed: &[(&Found, String)],
        withheld: &[(&str, &Rule)],
    ) -> Shared {
        let mut shared = Shared::default();
        // The rules about servers that are the same come last: the name of such a server says more.
        let is_own = |(_, rule): &(&str, &Rule)| rule.reach == Reach::Own;
        let (own, others): (Vec<_>, Vec<_>) = withheld.iter().copied().partition(is_own);
        self.withhold(&others, &mut shared);
        let servers = &*self;
        let form = |node| Form::of(node, servers);
        let forms: Vec<Form<'_>> = self.all.iter().map(|(_, node)| form(node)).collect();
        let ruled = ruled.iter().map(|other| (other, other.form.map(form)));
        let ruled: Vec<(&Ruled<'_>, Option<Form<'_>>)> = ruled.collect();
        let mut joined = Vec::new();
        for (at, (name, node)) in self.all.iter().enumerate() {
            let mut sharing = Sharing::new(node);
            for (other, (other_name, there)) in self.all.iter().enumerate() {
                let is_new = self.new.contains(name) || self.new.contains(other_name);
                if other != at && is_new && forms[at].is_same_program(&forms[other]) {
                    let is_equal = forms[at].is_equal(&forms[other]);
                    let ways = (is_equal, is_equal);
                    sharing.take(&Rights::read(there), ways, format!("`{other_name}`"));
                }
            }
            let here = placed.iter().filter(|(_, placed)| placed == name);
            let here: Vec<&Found> = here.map(|(found, _)| *found).collect();
            let names: Vec<&str> = here.iter().map(|found| found.name.as_str()).collect();
            for (other, there) in &ruled {
                let reaches = match other.placed {
                    Some(placed) => placed != name,
                    None => !here.is_empty(),
                };
                let is_same = reaches
                    && match there {
                        Some(there) => forms[at].is_same_program(there),
                        None => names
                            .iter()
                            .any(|name| name.eq_ignore_ascii_case(other.name)),
                    };
                if is_same {
                    let there = there.as_ref();
                    let is_equal = there.is_none_or(|there| forms[at].is_equal(there));
                    let server = match other.placed {
                        Some(placed) => format!("`{placed}`"),
                        None => format!("`{}` of {}", other.name, other.title),
                    };
                    let mut here = here.iter();
                    let is_shown = here.any(|found| found.location.client == other.client);
                    sharing.take(&other.rights, (is_equal, is_equal || !is_shown), server);
                }
            }
            if sharing.joined != sharing.before {
                joined.push((at, sharing.joined.write(node)));
            }
            sharing.tell(name, &mut shared);
        }
        for (at, node) in joined {
            self.changed.insert(self.all[at].0.clone());
            self.all[at].1 = node;
        }
        self.withhold(&own, &mut shared);
        shared.notes.extend(self.unlike_namesakes());
        shared.notes.extend(self.twice());
        shared
    }

    /// Limits servers, and those of the same program, as clients would that do not have them.
    fn withhold(&mut self, withheld: &[(&str, &Rule)], shared: &mut Shared) {
        let servers = &*self;
        let forms = self.all.iter().map(|(_, node)| Form::of(node, servers));
        let forms: Vec<Form<'_>> = forms.collect();
        let mut reached = Vec::new();
        for (about, rule) in withheld {
            let there = self.all.iter().position(|(name, _)| name == about);
            let Some(there) = there else { continue };
            for (at, form) in forms.iter().enumerate() {
                let is_it = self.all[at].0 == *about;
                if is_it || form.is_same_program(&forms[there]) {
                    reached.push((*rule, at, is_it || form.is_equal(&forms[there])));
                }
            }
        }
        for (rule, at, is_equal) in reached {
            let rights = Rights::of(std::iter::once(rule), None);
            let known = Rights::read(&self.all[at].1);
            let mut sharing = Sharing::new(&self.all[at].1);
            sharing.take(&rights, (is_equal, true), String::new());
            if sharing.joined == known {
                continue;
            }
            self.all[at].1 = sharing.joined.write(&self.all[at].1);
            let name = self.all[at].0.clone();
            self.changed.insert(name.clone());
            let limits = sharing.joined.limits_beyond(&known);
            let limits: Vec<String> = limits.iter().map(|limit| limit.as_limit()).collect();
            // A tool that is denied is not asked about.
            if limits.is_empty() {
                continue;
            }
            let client = rule.client.title();
            let cause = match rule.kind {
                RuleKind::Unread => {
                    let path = rule.path.display();
                    format!("rules of {client} are not known: {path} {}", rule.text)
                }
                // It is one of mcpzip's own.
                _ if rule.path == rule.location.path => format!("of `{}`", rule.key),
                _ => {
                    let key = rule.key.rsplit('.').next().unwrap_or(&rule.key);
                    format!("of {client}'s `{key}`")
                }
            };
            let limit = format!("{} for all clients, because {cause}", limits.join(" and "));
            shared.limits.push((name, limit));
        }
    }

    /// Whether two entries run the same program or URL; variables, headers and secrets may differ.
    pub(super) fn is_same_program(&self, one: &Node, other: &Node) -> bool {
        Form::of(one, self).is_same_program(&Form::of(other, self))
    }

    /// Whether two entries run the same program or URL in the same way. Versions, the directory, and a secret of which it is not known
    /// whether it is another one do not count.
    pub(super) fn is_equal(&self, one: &Node, other: &Node) -> bool {
        Form::of(one, self).is_equal(&Form::of(other, self))
    }

    /// The programs that an entry may start, or its URL, by which `trust` compares entries, too.
    fn programs(&self, node: &Node) -> BTreeSet<String> {
        let text = |key: &str| Some(self.stored().filled(node.get(key)?.as_text()?));
        match (text("url"), text("command")) {
            (Some(url), _) => addresses_of(&url),
            (None, Some(command)) => {
                let both = [false, true].map(|resolves| self.args(node, resolves));
                let both = both.map(|args| self.programs_of(&command, args));
                let all = both.iter().flat_map(|it| it.iter().cloned());
                let there = text("cwd")
                    .map(|cwd| programs_in(Path::new(&cwd), &command, &self.args(node, false)));
                // A rule for a program that is not known would be one for every server: `doctor` names such an entry instead.
                let mut all: BTreeSet<String> = all.chain(there.into_iter().flatten()).collect();
                all.remove(&any_program());
                all
            }
            (None, None) => BTreeSet::new(),
        }
    }

    /// As each entry is compared with all others, its programs are kept.
    fn programs_of(&self, command: &str, args: Vec<String>) -> Rc<BTreeSet<String>> {
        let line = [vec![command.to_owned()], args].concat();
        let mut compared = self.compared.borrow_mut();
        let of = |line: &Vec<String>| Rc::new(programs_of(&line[0], &line[1..]));
        let known = compared.get(&line).cloned();
        known.unwrap_or_else(|| compared.entry(line.clone()).or_insert(of(&line)).clone())
    }

    /// The arguments of an entry. With `resolves`, those that name a file are its path.
    fn args(&self, node: &Node, resolves: bool) -> Vec<String> {
        let cwd = node.get("cwd").and_then(Node::as_text);
        let cwd = cwd.map(|cwd| self.stored().filled(cwd));
        let args = node.get("args").map(Node::items).unwrap_or_default().iter();
        let args = args.map(|arg| self.stored().filled(arg.as_text().unwrap_or_default()));
        let resolved = |arg: String| match resolves
            .then(|| self.path_of(cwd.as_deref(), &arg))
            .flatten()
        {
            Some(path) => path,
            None => arg,
        };
        args.map(resolved).collect()
    }

    /// The path of the file or directory that an argument names, if it is there. As each entry is compared with all others, it is kept.
    fn path_of(&self, cwd: Option<&str>, arg: &str) -> Option<String> {
        let path = Path::new(cwd.unwrap_or_default()).join(arg);
        if !path.is_absolute() {
            return None;
        }
        let of = |path: &PathBuf| Some(path.canonicalize().ok()?.to_string_lossy().into_owned());
        let mut named = self.named.borrow_mut();
        named.entry(path).or_insert_with_key(of).clone()
    }

    /// An entry in a form that is equal for all entries that run one program in one way.
    fn way(&self, node: &Node, resolves: bool) -> Node {
        let command = node.get("command").and_then(Node::as_text);
        let command = command.map(|command| self.stored().filled(command));
        let entry = program(node);
        let way = command.map(|command| way(&command, &self.args(node, resolves)));
        let own = ["command", "args", "env"];
        let members = entry.members().into_iter();
        let others = members.filter(|(key, _)| way.is_none() || !own.contains(key));
        let others = others.map(|(key, value)| match (key, value.as_text()) {
            ("url", Some(url)) => (key, Node::text(spelled(&self.stored().filled(url)))),
            _ => (key, value.clone()),
        });
        let Some(way) = &way else {
            return plain(&Node::map(others));
        };
        let env = entry.get("env").map(Node::members).unwrap_or_default();
        let env = env.into_iter().map(|(name, value)| (name, value.clone()));
        let set = way.env.iter();
        let set = set.map(|(name, value)| (name.as_str(), Node::text(value.as_str())));
        let args = way.args.iter().cloned();
        let started = [
            ("command", Node::text(way.command.as_str())),
            ("args", Node::texts(args)),
            ("env", Node::map(env.chain(set))),
        ];
        plain(&Node::map(others.chain(started)))
    }

    /// Notes about new servers that are equal to one with another name, if both are on: agents would get each of their tools twice.
    fn twice(&self) -> Vec<String> {
        let new = self.all.iter().enumerate();
        let new = new.filter(|(_, (name, _))| self.new.contains(name));
        let on = new.filter(|(_, (name, _))| !self.is_off(name));
        on.filter_map(|(at, (name, node))| {
            let (other, _) = self.all[..at].iter().find(|(other, there)| {
                let difference = self.stored().difference(&plain(there), &plain(node));
                let is_equal = difference.is_some_and(|found| !found.is_open);
                is_equal && !self.is_off(other) && there.get("projects") == node.get("projects")
            })?;
            Some(format!(
                "`{name}` is `{other}` under another name, so its tools are there twice: `mcpzip remove {name}` removes one of them"
            ))
        })
        .collect()
    }

    /// Notes about servers that have one name in the clients, but not the same tool rules.
    fn unlike_namesakes(&self) -> Vec<String> {
        let written = |name: &str| {
            let renamed = self.renamed.iter().find(|(new, _)| new == name);
            renamed
                .map_or(name, |(_, wanted)| wanted.as_str())
                .to_ascii_lowercase()
        };
        let mut notes = Vec::new();
        let all = self.all.iter().map(|all| (all, written(&all.0)));
        let all: Vec<(&(String, Node), String)> = all.collect();
        for ((name, node), wanted) in &all {
            let own = Rights::read(node);
            let namesakes = all.iter().filter(|(_, name)| name == wanted);
            for ((other, there), _) in namesakes.filter(|(all, _)| all.0 != *name) {
                let is_new = self.new.contains(name) || self.new.contains(other);
                let lacks = own.with_tools_of(&Rights::read(there)) != own;
                if is_new && lacks && !self.is_same_program(node, there) {
                    notes.push(format!(
                        "`{name}` does not have the rules of `{other}`, which has the same name in its client but is another server"
                    ));
                }
            }
        }
        notes
    }
}

/// The part of an entry that decides what its tools do: not its directory, nor how it is shared and spoken to.
fn program(node: &Node) -> Node {
    let aside = [
        "cwd",
        "era",
        "share",
        "placement",
        "client_capabilities",
        "added_by",
        "registry",
    ];
    let entry = plain(node);
    let members = entry.members().into_iter();
    Node::map(
        members
            .filter(|(key, _)| !aside.contains(key))
            .map(|(key, value)| (key, value.clone())),
    )
}

/// A URL with scheme and host in lower case and without a slash at its end.
fn spelled(url: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    let path = url[host..]
        .find(['/', '?', '#'])
        .map_or(url.len(), |at| host + at);
    let (address, rest) = url.split_at(path);
    let spelled = address.to_ascii_lowercase() + rest;
    spelled.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clients::{Syntax, Text};
    use crate::day::processor_time;

    /// The programs of each server are worked out once, and not for each pair: that took 30 times as long.
    #[test]
    fn rules_of_hundreds_of_servers_are_shared_in_a_short_time() {
        let entry = |at: usize| {
            let tools = if at == 0 {
                r#", "tools": {"deny": ["rm"]}"#
            } else {
                ""
            };
            let package = at % 299;
            format!(
                r#""s{at}": {{"command": "npx", "args": ["-y", "pkg{package}", "/data/{package}", "--x"]{tools}}}"#
            )
        };
        let entries: Vec<String> = (0..300).map(entry).collect();
        let text = format!(r#"{{"mcpServers": {{{}}}}}"#, entries.join(","));
        let mut servers = Servers::of(&Text::parse(Syntax::Json, &text).unwrap());
        servers.new = servers.all.iter().map(|(name, _)| name.clone()).collect();
        let start = processor_time();
        let shared = servers.share_rules(&[], &[], &[]);
        if let (Some(start), Some(end)) = (start, processor_time()) {
            let taken = end - start;
            assert!(taken < Duration::from_secs(4), "{taken:?}");
        }
        let [limit] = &shared.limits()[..] else {
            panic!("{:?}", shared.limits());
        };
        assert!(
            limit.starts_with("`s299` has one denied tool (`rm`)"),
            "{limit}"
        );
    }
}
