//! The servers that came over in earlier runs, as the journal knows them: their names in the clients, and where they were switched off.

use std::collections::{BTreeMap, BTreeSet};

use super::{Client, Node};

/// The servers of mcpzip that earlier runs have brought, without the runs that were undone.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// Those that clients had switched off, with these clients.
    pub(super) refused: BTreeMap<String, BTreeSet<Client>>,
    /// Each server that left a client: its name there, and here.
    pub(super) moved: Vec<(Client, [String; 2])>,
    /// The servers that a run has added here.
    pub(super) added: BTreeSet<String>,
    /// The rules for tools and the projects that a run has given to a server here, as entries without a program.
    pub(super) limits: Vec<(String, Node)>,
    /// The entries that runs have added here.
    pub(super) brought: Vec<(String, Node)>,
    /// The records that cannot be read, one sentence each.
    pub(super) unread: Vec<String>,
}

impl History {
    /// The clients that had this server switched off before it moved.
    pub(crate) fn refused_by(&self, name: &str) -> impl Iterator<Item = Client> {
        self.refused.get(name).into_iter().flatten().copied()
    }

    /// Whether a client may have had this server, which is off here, switched off: a record that cannot be read may say so.
    pub(super) fn may_refuse(&self, client: Client, name: &str) -> bool {
        !self.unread.is_empty() || self.refused_by(name).any(|refusing| refusing == client)
    }

    /// Whether no run is known that has added this server.
    pub(super) fn is_unknown(&self, name: &str) -> bool {
        !self.added.contains(name)
    }

    /// Whether a client had this server.
    pub(super) fn had(&self, client: Client, name: &str) -> bool {
        let mut moved = self.moved.iter();
        moved.any(|(of, [_, here])| *of == client && here == name)
    }

    /// Whether a client had this server, with the program or URL that `entry` has.
    pub(super) fn had_program(&self, client: Client, name: &str, entry: &Node) -> bool {
        let mut brought = self.brought.iter().filter(|(of, _)| of == name);
        self.had(client, name) && brought.any(|(_, brought)| is_same_program(brought, entry))
    }

    /// Whether a client had this server, and had it on.
    pub(super) fn was_on(&self, client: Client, name: &str) -> bool {
        self.had(client, name) && !self.refused_by(name).any(|refusing| refusing == client)
    }

    /// The names that this server had in its clients.
    pub(super) fn names_of(&self, name: &str) -> impl Iterator<Item = &String> {
        let moved = self.moved.iter();
        moved.filter_map(move |(_, [written, here])| (here == name).then_some(written))
    }

    /// The rules for tools and the projects that runs have given to this server, if the client had it.
    pub(super) fn limits_of(&self, client: Client, name: &str) -> impl Iterator<Item = &Node> {
        let is_its = self.had(client, name);
        let limits = self.limits.iter().filter(move |_| is_its);
        limits.filter_map(move |(of, limits)| (of == name).then_some(limits))
    }

    /// The names here of the servers that a client had under this name.
    pub(super) fn names_here(&self, client: Client, name: &str) -> impl Iterator<Item = &String> {
        let moved = self.moved.iter().filter(move |(of, _)| *of == client);
        moved.filter_map(move |(_, [written, here])| {
            written.eq_ignore_ascii_case(name).then_some(here)
        })
    }

    /// A sentence about the records that cannot be read.
    #[must_use]
    pub(crate) fn warning(&self) -> Option<String> {
        (!self.unread.is_empty()).then(|| {
            format!(
                "the journal cannot be read ({}), so a server that is off here counts as off in every client before it came over",
                self.unread.join("; ")
            )
        })
    }
}

/// Whether two entries of mcpzip have the same program or URL.
pub(super) fn is_same_program(one: &Node, other: &Node) -> bool {
    let mut keys = ["command", "args", "cwd", "url"].iter();
    keys.all(|key| one.get(key) == other.get(key))
}
