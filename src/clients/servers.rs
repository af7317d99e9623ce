//! The servers of our own configuration during a migration or an import.

use std::collections::BTreeSet;

use super::rules::Rights;
use super::{Entry, Found, Node, Text, TextError, Verdict, names, references};
use crate::config::safe_name;

/// The servers of `mcpzip`, including new ones.
pub(super) struct Servers {
    all: Vec<(String, Node)>,
    changed: BTreeSet<String>,
    /// The servers added in this run.
    new: BTreeSet<String>,
}

const SERVERS: &str = "mcpServers";

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
        }
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

    /// Adds a server with its rules. If it exists, its rules are merged into the existing entry.
    pub(super) fn take(
        &mut self,
        entry: &Entry,
        found: &Found,
        rights: &Rights,
        notes: &mut Vec<String>,
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
        for known in suffixed.chain(numbered) {
            let Some(at) = self
                .position(&known)
                .filter(|at| is_same_server(&self.all[*at].1, &node))
            else {
                continue;
            };
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
            if !both.has_rules_of(&before) {
                notes.push("with stricter rules than it had there".to_owned());
            }
            if !both.has_rules_of(rights) {
                notes.push("under the stricter rules that it has there".to_owned());
            }
            return Verdict::Moves {
                name: known,
                is_known: true,
            };
        }
        let is_conflict = self.position(&name).is_some();
        let name = names::free(&name, &origin, |name| self.position(name).is_some());
        self.all.push((name.clone(), rights.write(&node)));
        self.changed.insert(name.clone());
        self.new.insert(name.clone());
        if is_conflict {
            Verdict::Conflicts { name }
        } else {
            Verdict::Moves {
                name,
                is_known: false,
            }
        }
    }

    /// The server of this name, if `node` leads to the same server.
    pub(super) fn same_as(&self, name: &str, node: &Node) -> Option<&Node> {
        let known = &self.all[self.position(&safe_name(name))?].1;
        is_same_server(known, node).then_some(known)
    }

    /// Adds a server unchanged, unless its name is taken.
    pub(super) fn add(&mut self, name: &str, node: Node) -> Verdict {
        let name = safe_name(name);
        match self.position(&name) {
            Some(at) if is_same_server(&self.all[at].1, &node) => Verdict::Moves {
                name: self.all[at].0.clone(),
                is_known: true,
            },
            known => {
                let free = names::free(&name, "older", |name| self.position(name).is_some());
                self.all.push((free.clone(), node));
                self.changed.insert(free.clone());
                if known.is_some() {
                    Verdict::Conflicts { name: free }
                } else {
                    Verdict::Moves {
                        name: free,
                        is_known: false,
                    }
                }
            }
        }
    }

    /// The variables that they refer to.
    pub(super) fn variables(&self) -> Vec<String> {
        let names = self
            .all
            .iter()
            .flat_map(|(_, node)| references::variables(&node.to_json()));
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

/// Whether two entries connect to one server, with any settings.
fn is_same_server(one: &Node, other: &Node) -> bool {
    let plain = |node: &Node| {
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
    };
    plain(one).is_same(&plain(other))
}
