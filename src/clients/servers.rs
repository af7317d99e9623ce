//! The servers of our own configuration during a migration or an import.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::edit::{Edit, PlanError};
use super::rules::Rights;
use super::stored::{Difference, Stored};
use super::{
    Carried, Client, Entry, Found, History, Known, Node, Rule, Text, TextError, Verdict, names,
    references, secrets, stored,
};
use crate::config::safe_name;

/// The servers of `mcpzip`, including new ones.
pub(super) struct Servers {
    pub(super) all: Vec<(String, Node)>,
    pub(super) changed: BTreeSet<String>,
    /// The servers added in this run.
    pub(super) new: BTreeSet<String>,
    /// The servers whose name was taken here, with that name.
    pub(super) renamed: Vec<(String, String)>,
    stored: Stored,
    /// The servers that got a stored secret of an equal one, and the variable that has it.
    merged: Vec<(String, String)>,
    /// The variables that other parts of the configuration refer to.
    elsewhere: BTreeSet<String>,
    /// The servers that came over before.
    pub(super) history: History,
    /// The programs of command lines that were compared before.
    pub(super) compared: RefCell<BTreeMap<Vec<String>, Rc<BTreeSet<String>>>>,
    /// The files and directories that arguments were found to name.
    pub(super) named: RefCell<BTreeMap<PathBuf, Option<String>>>,
}

/// A server that differs from another only in its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Twin {
    /// Its name in the client.
    pub server: String,
    /// Its title in the plan.
    pub client: &'static str,
    /// The other one's name in `mcpzip`.
    pub known: String,
    /// The places of the secrets: names of variables, headers or options.
    pub secrets: Vec<String>,
    /// Whether the secret of one is only a reference to a variable that is not set.
    pub is_complement: bool,
    /// Whether the secret of one is in a keychain that cannot be read.
    pub is_unread: bool,
}

/// Literal secrets: the name of each server, and where it has them.
pub(crate) type Literals = Vec<(String, Vec<String>)>;

/// The key of the servers in our configuration.
pub(super) const SERVERS: &str = "mcpServers";

/// Maximum number of names that a server may have had.
const MOST_NAMES: usize = 16;

impl Servers {
    /// The servers of a configuration.
    pub(super) fn of(config: &Text) -> Self {
        let known = config
            .node()
            .get(SERVERS)
            .map(Node::members)
            .unwrap_or_default();
        let all = known
            .into_iter()
            .map(|(name, node)| (name.to_owned(), node.clone()))
            .collect();
        Self {
            all,
            changed: BTreeSet::new(),
            new: BTreeSet::new(),
            renamed: Vec::new(),
            stored: Stored::default(),
            merged: Vec::new(),
            elsewhere: variables_elsewhere(config.node()),
            history: History::default(),
            compared: RefCell::default(),
            named: RefCell::default(),
        }
    }

    /// These servers, whose secrets may be in `stored`.
    pub(super) fn with_secrets(self, stored: Stored) -> Self {
        Self { stored, ..self }
    }

    /// These servers, of which some came over before.
    pub(super) fn with_history(self, history: History) -> Self {
        Self { history, ..self }
    }

    /// All servers, by name.
    pub(super) fn all(&self) -> &[(String, Node)] {
        &self.all
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.all
            .iter()
            .position(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// Adds a server with its rules. If it exists, its rules are merged into the existing entry. With `is_merged`, a
    /// server that differs from it only in secrets counts as the same; otherwise it is added to `twins`.
    pub(super) fn merge(
        &mut self,
        entry: &Entry,
        found: &Found,
        rights: &Rights,
        notes: &mut Vec<String>,
        (is_merged, twins): (bool, &mut Vec<Twin>),
    ) -> Verdict {
        let node = entry.to_node();
        let name = safe_name(&found.name);
        let origin = match &found.location.project {
            Some(project) => safe_name(&project.file_name().unwrap_or_default().to_string_lossy()),
            None => found.location.client.name().to_owned(),
        };
        // A number was appended for each other server with its name.
        let suffixed = [name.clone(), format!("{name}-{origin}")].into_iter();
        let numbered = (2..10).map(|number| format!("{name}-{number}"));
        let of_name: Vec<String> = suffixed.chain(numbered).collect();
        let is_other = |known: &&String| !of_name.contains(known);
        let others = self.all.iter().map(|(known, _)| known).filter(is_other);
        let others: Vec<String> = others.cloned().collect();
        let mut twin = None;
        for known in of_name.iter().chain(&others) {
            let Some(at) = self.position(known) else {
                continue;
            };
            let Some(difference) = self.difference(at, &node) else {
                continue;
            };
            // One of another name is perhaps the same if one of both only refers to a secret that is not there.
            if others.contains(known) && (!difference.is_open || difference.is_other) {
                continue;
            }
            if difference.is_open && !is_merged {
                twin.get_or_insert((self.all[at].0.clone(), difference));
                continue;
            }
            let (known, there) = self.all[at].clone();
            let before = Rights::read(&there);
            // A server that the user limited to some projects stays limited.
            if rights.is_for_all() && !before.is_for_all() && !self.new.contains(&known) {
                continue;
            }
            // A server that is switched off in a project must neither be switched on there nor switch off another one
            // that is equal to it.
            let is_off = there.get("disabled") == Some(&Node::Flag(true));
            if is_off != entry.is_disabled && !before.is_where(rights) {
                continue;
            }
            let both = before.and(rights);
            if both != before {
                self.all[at].1 = both.write(&there);
                self.changed.insert(known.clone());
            }
            notes.extend(difference.note());
            notes.extend(other_state(is_off, found));
            notes.extend(other_timeout(&node, &there));
            self.keep_secrets(&known, difference);
            if !both.has_rules_of(&before) {
                notes.push("with stricter rules than it had in mcpzip".to_owned());
            }
            if !both.has_rules_of(rights) {
                notes.push("under the stricter rules that it has in mcpzip".to_owned());
            }
            return Verdict::Moves {
                known: self.known(&known),
                name: known,
            };
        }
        twins.extend(twin.map(|(known, difference)| Twin {
            server: found.name.clone(),
            client: found.location.client.title(),
            known,
            secrets: difference.keys,
            is_complement: !difference.is_other,
            is_unread: difference.is_unread,
        }));
        let wanted = name;
        let is_conflict = self.position(&wanted).is_some();
        let name = names::free(&wanted, &origin, |name| self.position(name).is_some());
        self.all.push((name.clone(), rights.write(&node)));
        self.changed.insert(name.clone());
        self.new.insert(name.clone());
        if is_conflict {
            self.renamed.push((name.clone(), wanted));
            Verdict::Conflicts { name }
        } else {
            Verdict::Moves {
                name,
                known: Known::New,
            }
        }
    }

    fn keep_secrets(&mut self, server: &str, difference: Difference) {
        let names = difference.values.iter().map(|(name, _)| name.clone());
        self.merged
            .extend(names.map(|name| (server.to_owned(), name)));
        self.stored.add(difference.values);
    }

    /// The edit of the file of secrets, once all servers are known.
    ///
    /// # Errors
    /// When a value would also reach another part of the configuration that refers to its variable.
    pub(super) fn edit_of_secrets(&self, config_file: &Path) -> Result<Option<Edit>, PlanError> {
        for (server, variable) in &self.merged {
            let others = self.all.iter().filter(|(name, _)| name != server);
            let mut others = others
                .filter(|(_, node)| references::variables(&node.to_json()).contains(variable));
            if let Some((other, _)) = others.next() {
                return Err(PlanError::SharedVariable {
                    variable: variable.clone(),
                    server: server.clone(),
                    other: other.clone(),
                });
            }
        }
        self.stored.edit(config_file)
    }

    /// The difference between the server at `at` and `node`, if they are one server with any secrets.
    fn difference(&self, at: usize, node: &Node) -> Option<Difference> {
        let there = &self.all[at].1;
        let difference = self.stored.difference(&plain(there), &plain(node))?;
        // A value for the variable of one server must not reach another that refers to it.
        let others = self
            .all
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at);
        let others = others.flat_map(|(_, (_, node))| references::variables(&node.to_json()));
        let is_elsewhere = |name: &String| difference.values.iter().any(|(known, _)| known == name);
        let mut others = others.chain(self.elsewhere.iter().cloned());
        (!others.any(|name| is_elsewhere(&name))).then_some(difference)
    }

    /// The literal secrets of the new servers.
    pub(super) fn literals(&self) -> Literals {
        literals_of(self.all.iter().filter(|(name, _)| self.new.contains(name)))
    }

    /// The paths of the texts of new servers that are hidden as secrets and stay.
    pub(super) fn staying(&self) -> Vec<String> {
        let new = self.all.iter().filter(|(name, _)| self.new.contains(name));
        let new = Node::Map(new.cloned().collect());
        secrets::places(&Node::Map(vec![(SERVERS.to_owned(), new)]))
    }

    /// The literal secrets of all servers.
    pub(super) fn all_literals(&self) -> Literals {
        literals_of(self.all.iter())
    }

    /// Replaces the literal secrets of the new servers by references to stored ones.
    pub(super) fn store_literals(&mut self) {
        let new = self.new.clone();
        // The whole entries are written anyway.
        self.store_literals_of(|name| new.contains(name));
    }

    /// Replaces the literal secrets of all servers by references to stored ones, and writes the changed values to `text`.
    /// Returns their paths.
    pub(super) fn store_all_literals(
        &mut self,
        text: &mut Text,
    ) -> Result<Vec<Vec<String>>, TextError> {
        let changed = self.store_literals_of(|_| true);
        let mut paths = Vec::new();
        for (at, inner) in changed {
            let (name, node) = &self.all[at];
            if let Some(value) = node.at(&inner) {
                let path = [vec![SERVERS.to_owned(), name.clone()], inner.clone()].concat();
                text.set(&path, value)?;
                paths.push(path);
            }
        }
        paths.dedup();
        Ok(paths)
    }

    /// Returns the index of each changed server with the path of the changed value in its entry.
    fn store_literals_of(&mut self, is_meant: impl Fn(&str) -> bool) -> Vec<(usize, Vec<String>)> {
        let taken = self.taken();
        let mut changed = Vec::new();
        for (at, (name, node)) in self.all.iter_mut().enumerate() {
            if is_meant(name) {
                let paths = self.stored.store(name, node, &taken);
                changed.extend(paths.into_iter().map(|path| (at, path)));
            }
        }
        changed
    }

    /// Stores the secret `value` of another part of the configuration, and returns a reference to it.
    pub(super) fn store_value(&mut self, owner: &str, variable: String, value: String) -> String {
        let taken = self.taken();
        self.stored.store_value(owner, (variable, value), &taken)
    }

    /// The variables that the configuration refers to.
    fn taken(&self) -> BTreeSet<String> {
        let written = self.all.iter();
        written
            .flat_map(|(_, node)| references::variables(&node.to_json()))
            .chain(self.elsewhere.iter().cloned())
            .collect()
    }

    /// The stored secrets.
    pub(super) const fn stored(&self) -> &Stored {
        &self.stored
    }

    /// The server of this name, if [`Servers::add`] would take `node` for it.
    pub(super) fn same_as(&self, name: &str, node: &Node, is_merged: bool) -> Option<&Node> {
        let at = self.position(&safe_name(name))?;
        let difference = self.difference(at, node)?;
        (!difference.is_open || is_merged).then_some(&self.all[at].1)
    }

    /// Adds a server of the program `title` unchanged, unless its name is taken. With `is_merged`, a server that differs
    /// from the known one only in secrets counts as the same; otherwise it is added to `twins`.
    pub(super) fn add(
        &mut self,
        (name, title): (&str, &'static str),
        node: Node,
        notes: &mut Vec<String>,
        (is_merged, twins): (bool, &mut Vec<Twin>),
    ) -> Verdict {
        let (written, name) = (name, safe_name(name));
        let known = self.position(&name);
        let found = known.and_then(|at| Some((at, self.difference(at, &node)?)));
        if let Some((at, difference)) = found {
            let known = self.all[at].0.clone();
            if !difference.is_open || is_merged {
                notes.extend(difference.note());
                self.keep_secrets(&known, difference);
                return Verdict::Moves {
                    known: self.known(&known),
                    name: known,
                };
            }
            twins.push(Twin {
                server: written.to_owned(),
                client: title,
                known,
                secrets: difference.keys,
                is_complement: !difference.is_other,
                is_unread: difference.is_unread,
            });
        }
        let wanted = name;
        let name = names::free(&wanted, "older", |name| self.position(name).is_some());
        self.all.push((name.clone(), node));
        self.changed.insert(name.clone());
        self.new.insert(name.clone());
        match known {
            Some(_) => {
                self.renamed.push((name.clone(), wanted));
                Verdict::Conflicts { name }
            }
            None => Verdict::Moves {
                name,
                known: Known::New,
            },
        }
    }

    /// Whether the server `name` is disabled.
    pub(super) fn is_off(&self, name: &str) -> bool {
        let node = self.position(name).map(|at| &self.all[at].1);
        node.is_some_and(|node| node.get("disabled") == Some(&Node::Flag(true)))
    }

    /// The server that mcpzip had before, runs the same program in the same way, and is switched off everywhere. If it is not known whether
    /// clients had it so, it is the same one in any way, unless an equal one is on.
    pub(super) fn off_equal(&self, node: &Node) -> Option<&str> {
        let before = self
            .all
            .iter()
            .filter(|(name, there)| !self.new.contains(name) && Rights::read(there).is_for_all());
        let (off, on): (Vec<_>, Vec<_>) =
            before.partition(|(_, there)| there.get("disabled") == Some(&Node::Flag(true)));
        let is_on = on.iter().any(|(_, there)| self.is_equal(node, there));
        let is_it = |(name, there): &&&(String, Node)| {
            let is_same = !is_on && self.history.is_unknown(name);
            self.is_equal(node, there) || is_same && self.is_same_program(node, there)
        };
        let (name, _) = off.iter().find(is_it)?;
        Some(name)
    }

    /// The server that mcpzip had before, has on for all projects, and would take for this one.
    pub(super) fn on_equal(&self, node: &Node) -> Option<&str> {
        let mut on = self.all.iter().filter(|(name, there)| {
            !self.new.contains(name) && !self.is_off(name) && Rights::read(there).is_for_all()
        });
        let is_it = |there: &Node| {
            let difference = self.stored.difference(&plain(there), &plain(node));
            self.is_equal(node, there) || difference.is_some()
        };
        Some(&on.find(|(_, there)| is_it(there))?.0)
    }

    /// Whether the entry of a server has this rule of a client.
    pub(super) fn has_rule(&self, name: &str, rule: &Rule) -> bool {
        let rights = Rights::of(std::iter::once(rule), None);
        let mut here = self.all.iter().filter(|(known, _)| known == name);
        let has_it = |there: &Rights| there.with_tools_of(&rights).hidden_with(&rights) == *there;
        rule.is_carried() && here.any(|(_, node)| has_it(&Rights::read(node)))
    }

    /// The rules of a server.
    pub(super) fn rights(&self, name: &str) -> Option<Rights> {
        Some(Rights::read(&self.all[self.position(name)?].1))
    }

    /// Whether all tools of a server are denied.
    pub(super) fn denies_all(&self, name: &str) -> bool {
        self.rights(name).is_some_and(|rights| rights.denies_all())
    }

    /// A server that mcpzip had before, of the same program or URL, all of whose tools are denied.
    pub(super) fn denied_equal(&self, node: &Node) -> Option<&str> {
        let before = self.all.iter().filter(|(name, _)| !self.new.contains(name));
        let mut denied = before.filter(|(name, _)| self.denies_all(name));
        let (name, _) = denied.find(|(_, there)| self.is_same_program(node, there))?;
        Some(name)
    }

    /// The other names that the server `name` may have had in its client: here, `-` stands for characters that a name cannot have, and the
    /// client, its project or a number follows a name that was taken.
    pub(super) fn origins(&self, name: &str, node: &Node) -> Vec<String> {
        let projects = node.get("projects").map(Node::items).unwrap_or_default();
        let projects = projects.iter().filter_map(Node::as_text);
        let projects = projects.filter_map(|project| Path::new(project).file_name());
        let projects = projects.map(|project| safe_name(&project.to_string_lossy()));
        let clients = Client::ALL.map(|client| client.name().to_owned());
        let numbers = (2..10).map(|number| number.to_string());
        let added = projects.chain(clients).chain(numbers);
        let before = added.filter_map(|added| name.strip_suffix(&added)?.strip_suffix('-'));
        let taken = before.filter(|name| self.position(name).is_some());
        let mut all = Vec::new();
        for known in [name].into_iter().chain(taken) {
            let mut names = vec![String::new()];
            for c in known.chars() {
                let others = names.clone().into_iter();
                names.iter_mut().for_each(|name| name.push(c));
                if c == '-' && names.len() < MOST_NAMES {
                    names.extend(others.map(|name| name + " "));
                }
            }
            all.extend(names);
        }
        all.extend(self.history.names_of(name).cloned());
        all.retain(|other| other != name);
        all
    }

    /// Hides a server in `project`. Returns whether that changed it.
    pub(super) fn hide(&mut self, name: &str, project: &Path) -> bool {
        let Some(at) = self.position(name) else {
            return false;
        };
        let before = Rights::read(&self.all[at].1);
        let hidden = Rights::of_one(&Carried::NotIn(project.to_owned()));
        let hidden = before.hidden_with(&hidden);
        let changes = hidden != before;
        if changes {
            self.all[at].1 = hidden.write(&self.all[at].1);
            self.changed.insert(self.all[at].0.clone());
        }
        changes
    }

    fn known(&self, name: &str) -> Known {
        if self.new.contains(name) {
            Known::InThisRun
        } else {
            Known::Before
        }
    }

    /// The variables of the environment that they refer to.
    pub(super) fn variables(&self) -> Vec<String> {
        let names = self
            .all
            .iter()
            .flat_map(|(_, node)| references::variables(&node.to_json()))
            .filter(|name| !self.stored.has(name));
        names.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Writes the changed servers to `text`. Returns the changed values.
    pub(super) fn write(&self, text: &mut Text) -> Result<Vec<Vec<String>>, TextError> {
        let mut paths = Vec::new();
        for (name, node) in self
            .all
            .iter()
            .filter(|(name, _)| self.changed.contains(name))
        {
            let entry = vec![SERVERS.to_owned(), name.clone()];
            if text.node().at(&entry).is_none() {
                text.set(&entry, node)?;
                paths.push(entry);
                continue;
            }
            // All other keys of an existing server stay as written.
            for key in ["tools", "projects"] {
                let path = [entry.clone(), vec![key.to_owned()]].concat();
                match node.get(key) {
                    Some(value) => text.set(&path, value)?,
                    None if text.node().at(&path).is_some() => text.remove(&path)?,
                    None => continue,
                }
                paths.push(path);
            }
        }
        Ok(paths)
    }
}

/// The variables that a configuration refers to outside of its servers.
fn variables_elsewhere(config: &Node) -> BTreeSet<String> {
    let members = config.members().into_iter();
    let others = members.filter(|(name, _)| *name != SERVERS);
    others
        .flat_map(|(_, node)| references::variables(&node.to_json()))
        .collect()
}

/// The names of the keys of the literal secrets in the entry of `server`.
pub(super) fn literal_keys(server: &str, node: &Node) -> Vec<String> {
    let literals = stored::literals(server, node).into_iter();
    let mut keys: Vec<String> = literals.map(|literal| literal.key).collect();
    keys.dedup();
    keys
}

fn literals_of<'s>(servers: impl Iterator<Item = &'s (String, Node)>) -> Literals {
    let found = servers.map(|(name, node)| (name.clone(), literal_keys(name, node)));
    found
        .filter(|(_, keys): &(String, Vec<String>)| !keys.is_empty())
        .collect()
}

/// The difference if an equal server is on in one place and disabled in the other.
fn other_state(is_off: bool, found: &Found) -> Option<String> {
    let title = found.location.client.title();
    match (found.is_switched_off, is_off) {
        (true, false) => Some(format!("is switched off in {title}, and on here")),
        (false, true) => Some(format!("is on in {title}, and switched off here")),
        _ => None,
    }
}

/// The time limit of `node` that is lost, because the equal entry here has another or none.
fn other_timeout(node: &Node, there: &Node) -> Option<String> {
    let time = node.get("timeout")?;
    if there.get("timeout") == Some(time) {
        return None;
    }
    let written = time.as_text()?;
    let seconds = written
        .strip_suffix("000ms")
        .filter(|seconds| !seconds.is_empty());
    let time = seconds.map_or_else(|| written.to_owned(), |seconds| format!("{seconds}s"));
    Some(format!(
        "its time limit of {time} is not taken over; `timeout` of the entry here counts"
    ))
}

/// An entry without the settings that do not identify the server.
pub(super) fn plain(node: &Node) -> Node {
    let aside = [
        "disabled",
        "description",
        "timeout",
        "idle_timeout",
        "min_idle_timeout",
        "max_idle_timeout",
        "max_concurrent",
        "expose",
        "tools",
        "trust",
        "projects",
    ];
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
}
