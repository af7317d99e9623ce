//! The catalog: all tools, prompts and resources that the servers listed last. It is available right after a start and
//! is replaced whole when it changes.
//!
//! Readers take a [`Snapshot`] and keep it for their request; a refresh builds the next one. Only names, URIs, hashes
//! and hints are held in memory; definitions are read from the cache on demand.
//!
//! *Invariant*: nothing here connects to a server, and nothing here parses a tool beyond its [`Definition`].
//!
//! [`Definition`]: crate::tool::Definition

mod adapted;
mod cache;
mod entries;
mod failures;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod header;
mod lists;
mod mention;
mod names;
mod pins;
mod sameness;
mod server_tools;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::value::RawValue;

pub(crate) use adapted::form::{Adapted, Rejected};
pub use cache::{Cache, Key};
pub(crate) use cache::{DIRECTORY, FORMAT};
pub(crate) use entries::{Entries, Entry, Kind};
pub(crate) use failures::{Failure, Failures};
pub(crate) use lists::Lists;
pub(crate) use names::{Resolution, fold};
pub(crate) use pins::{Change, ChangeKind, Pending, PinHome, Pins};
pub use server_tools::Listed;
pub(crate) use server_tools::{ReadError, ServerTools, ToolEntry};

use crate::config::Overrides;
use crate::mcp::Revision;
use crate::tool::{Definition, QualifiedName, ServerName, ToolHash, ToolName};

/// The current snapshot, and the way to replace it.
#[derive(Debug, Default)]
pub struct Catalog {
    current: RwLock<Arc<Snapshot>>,
}

/// All known tools at one moment. Withheld tools are left out of lookups by name and of iteration.
#[derive(Debug, Default)]
pub struct Snapshot {
    servers: BTreeMap<ServerName, Arc<ServerTools>>,
    /// The positions of withheld tools.
    withheld: BTreeMap<ServerName, BTreeSet<usize>>,
    /// The positions of those that are withheld only because they are for an app.
    for_apps: BTreeMap<ServerName, BTreeSet<usize>>,
    /// The servers of which more than tools is withheld.
    holds: BTreeMap<ServerName, Hold>,
    /// The servers of which some prompts, resources or templates are withheld, without those.
    reduced: BTreeMap<ServerName, Arc<ServerTools>>,
    rules: Option<Rules>,
    /// The names of all servers that are or were configured. A tool name that contains one of them never reaches
    /// another server.
    reserved: Arc<BTreeSet<String>>,
}

/// Decides which tools are withheld or adapted, and of which servers everything else is withheld.
#[derive(Clone)]
pub struct Rules {
    servers: Arc<ServerJudge>,
    hidden: Option<Arc<Judge>>,
    overrides: Arc<BTreeMap<ServerName, Arc<Overrides>>>,
}

type ServerJudge = dyn Fn(&ServerName) -> ServerRules + Send + Sync;

/// The parts of one server that are withheld.
pub(crate) struct ServerRules {
    /// The parts other than tools, as a whole.
    pub hold: Hold,
    /// Whether a tool is withheld.
    pub tools: Box<dyn Fn(&ToolEntry) -> bool>,
    /// Whether a prompt, resource or template is withheld.
    pub entries: Box<EntryJudge>,
}

type EntryJudge = dyn Fn(Kind, &Entry) -> bool;

/// The parts of a server, other than tools, that are withheld.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Hold {
    /// Everything: prompts, resources and instructions.
    pub everything: bool,
    /// The server's instructions.
    pub instructions: bool,
}

type Judge = dyn Fn(&ServerName, &ToolEntry) -> bool + Send + Sync;

/// A tool in the catalog: its entry and its server.
#[derive(Debug, Clone)]
pub struct Tool {
    server: Arc<ServerTools>,
    index: usize,
}

impl Catalog {
    /// Creates an empty catalog.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The current snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.read().clone()
    }

    /// Replaces the tools of some servers and removes others, in one step.
    pub fn update(
        &self,
        change: impl FnOnce(&mut BTreeMap<ServerName, Arc<ServerTools>>),
    ) -> Arc<Snapshot> {
        let mut current = self.current.write();
        let mut servers = current.servers.clone();
        change(&mut servers);
        let (rules, reserved) = (current.rules.clone(), current.reserved.clone());
        *current = Arc::new(Snapshot::new(servers, rules, reserved));
        current.clone()
    }

    /// Reserves the names of servers for as long as this process runs.
    pub fn reserve(&self, names: impl IntoIterator<Item = String>) {
        let mut current = self.current.write();
        let mut reserved = (*current.reserved).clone();
        reserved.extend(names);
        let (servers, rules) = (current.servers.clone(), current.rules.clone());
        *current = Arc::new(Snapshot::new(servers, rules, reserved.into()));
    }

    /// Reserves these names of servers and no others, because clients see another part of the configuration from now on.
    pub(crate) fn reserve_only(&self, names: BTreeSet<String>) {
        let mut current = self.current.write();
        let (servers, rules) = (current.servers.clone(), current.rules.clone());
        *current = Arc::new(Snapshot::new(servers, rules, names.into()));
    }

    /// Replaces the rules by which tools are withheld.
    pub fn restrict(&self, rules: Option<Rules>) {
        let mut current = self.current.write();
        let (servers, reserved) = (current.servers.clone(), current.reserved.clone());
        *current = Arc::new(Snapshot::new(servers, rules, reserved));
    }
}

impl Rules {
    /// Creates rules that withhold of each server what `judge` says, which is asked once for all of its tools.
    #[must_use]
    pub(crate) fn new(judge: impl Fn(&ServerName) -> ServerRules + Send + Sync + 'static) -> Self {
        Self {
            servers: Arc::new(judge),
            hidden: None,
            overrides: Arc::default(),
        }
    }

    /// The rules, under which the tools for which `is_hidden` is true do not exist.
    #[must_use]
    pub(crate) fn hiding(
        self,
        is_hidden: impl Fn(&ServerName, &ToolEntry) -> bool + Send + Sync + 'static,
    ) -> Self {
        let hidden = Some(Arc::new(is_hidden) as Arc<Judge>);
        Self { hidden, ..self }
    }

    /// The rules, which also adapt the tools of servers.
    #[must_use]
    pub(crate) fn adapting(self, overrides: BTreeMap<ServerName, Arc<Overrides>>) -> Self {
        let overrides = Arc::new(overrides);
        Self { overrides, ..self }
    }

    /// The server as clients see it; `None` if it is that already.
    fn adapted(&self, server: &Arc<ServerTools>) -> Option<Arc<ServerTools>> {
        adapted::adapted(server, self.overrides.get(server.name()))
    }

    /// The server without the tools that do not exist for clients; `None` if it has none of those.
    fn without_hidden(&self, server: &Arc<ServerTools>) -> Option<ServerTools> {
        let is_hidden = self.hidden.as_ref()?;
        server.without_tools(|entry| is_hidden(server.name(), entry.as_listed()))
    }
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rules")
    }
}

impl Snapshot {
    /// Whether at most one server has ever been known, in any state.
    #[must_use]
    pub fn has_one_server(&self) -> bool {
        self.reserved.len() <= 1
    }

    fn new(
        mut servers: BTreeMap<ServerName, Arc<ServerTools>>,
        rules: Option<Rules>,
        reserved: Arc<BTreeSet<String>>,
    ) -> Self {
        for server in servers.values_mut() {
            if let Some(whole) = server.whole.clone() {
                *server = whole;
            }
            if let Some(adapted) = rules.as_ref().and_then(|rules| rules.adapted(server)) {
                *server = adapted;
            }
            let rest = rules
                .as_ref()
                .and_then(|rules| rules.without_hidden(server));
            if let Some(rest) = rest {
                *server = Arc::new(rest);
            }
        }
        let (mut withheld, mut holds) = (BTreeMap::new(), BTreeMap::new());
        let mut for_apps = BTreeMap::new();
        let mut reduced = BTreeMap::new();
        let judged = servers.values().filter_map(|server| {
            let rules = rules.as_ref()?;
            Some((server, (rules.servers)(server.name())))
        });
        for (server, judged) in judged {
            let is_withheld = |entry: &ToolEntry| {
                entry.override_fault().is_some() || (judged.tools)(entry.as_listed())
            };
            if judged.hold != Hold::default() {
                holds.insert(server.name().clone(), judged.hold);
            }
            if let Some(rest) = server.without_entries(&judged.entries) {
                reduced.insert(server.name().clone(), Arc::new(rest));
            }
            let (mut found, mut of_apps) = (BTreeSet::new(), BTreeSet::new());
            for (at, entry) in server.entries().iter().enumerate() {
                let by_rule = is_withheld(entry);
                if by_rule || entry.is_app_only {
                    found.insert(at);
                }
                if entry.is_app_only && !by_rule {
                    of_apps.insert(at);
                }
            }
            if !of_apps.is_empty() {
                for_apps.insert(server.name().clone(), of_apps);
            }
            if !found.is_empty() {
                withheld.insert(server.name().clone(), found);
            }
        }
        Self {
            servers,
            withheld,
            for_apps,
            holds,
            reduced,
            rules,
            reserved,
        }
    }

    /// Whether there are tools that are withheld only because they are for an app.
    #[must_use]
    pub fn has_app_tools(&self) -> bool {
        !self.for_apps.is_empty()
    }

    /// A copy that shows the tools for apps, for clients that hide them from their models.
    #[must_use]
    pub fn with_app_tools(&self) -> Self {
        let mut withheld = self.withheld.clone();
        for (server, shown) in &self.for_apps {
            if let Some(withheld) = withheld.get_mut(server) {
                withheld.retain(|at| !shown.contains(at));
            }
        }
        withheld.retain(|_, positions| !positions.is_empty());
        Self {
            servers: self.servers.clone(),
            withheld,
            for_apps: BTreeMap::new(),
            holds: self.holds.clone(),
            reduced: self.reduced.clone(),
            rules: self.rules.clone(),
            reserved: self.reserved.clone(),
        }
    }

    /// The parts of a server, other than tools, that are withheld.
    #[must_use]
    pub fn hold(&self, server: &ServerName) -> Hold {
        self.holds.get(server).copied().unwrap_or_default()
    }

    /// A server without its withheld prompts, resources and templates.
    #[must_use]
    pub(crate) fn reduced<'a>(&'a self, server: &'a Arc<ServerTools>) -> &'a Arc<ServerTools> {
        self.reduced.get(server.name()).unwrap_or(server)
    }

    /// A copy that includes the withheld tools, to explain why a tool is not visible.
    #[must_use]
    pub fn unrestricted(&self) -> Self {
        Self {
            servers: self.servers.clone(),
            withheld: BTreeMap::new(),
            for_apps: BTreeMap::new(),
            holds: BTreeMap::new(),
            reduced: BTreeMap::new(),
            rules: None,
            reserved: self.reserved.clone(),
        }
    }

    /// The tool that `name` means among those that do not exist for clients.
    #[must_use]
    pub(crate) fn hidden(&self, name: &str) -> Option<Tool> {
        let mut all = self.unrestricted();
        let hiding = all.servers.values_mut();
        for server in hiding.filter(|server| server.whole.is_some()) {
            *server = server.whole.clone()?;
            let rules = self.rules.as_ref();
            if let Some(adapted) = rules.and_then(|rules| rules.adapted(server)) {
                *server = adapted;
            }
        }
        match all.resolve(name) {
            Resolution::Tool(tool) => Some(tool),
            Resolution::Ambiguous(_) | Resolution::Unknown => None,
        }
    }

    /// A copy without some servers, as if they did not exist.
    #[must_use]
    pub fn without(&self, servers: &BTreeSet<ServerName>) -> Self {
        let (mut all, mut withheld) = (self.servers.clone(), self.withheld.clone());
        let mut for_apps = self.for_apps.clone();
        all.retain(|server, _| !servers.contains(server));
        withheld.retain(|server, _| !servers.contains(server));
        for_apps.retain(|server, _| !servers.contains(server));
        Self {
            servers: all,
            withheld,
            for_apps,
            holds: self.holds.clone(),
            reduced: self.reduced.clone(),
            rules: self.rules.clone(),
            reserved: self.reserved.clone(),
        }
    }

    /// The number of a server's withheld tools.
    #[must_use]
    pub fn withheld(&self, server: &ServerName) -> usize {
        self.withheld.get(server).map_or(0, BTreeSet::len)
    }

    /// The servers with known tools, by name.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<ServerTools>> {
        self.servers.values()
    }

    /// The tools of one server.
    #[must_use]
    pub fn server(&self, name: &ServerName) -> Option<&Arc<ServerTools>> {
        self.servers.get(name)
    }

    /// The tool with exactly this name.
    #[must_use]
    pub fn tool(&self, server: &ServerName, tool: &ToolName) -> Option<Tool> {
        let server = self.servers.get(server)?;
        let index = server.position(tool)?;
        self.is_shown(server, index).then(|| Tool {
            server: server.clone(),
            index,
        })
    }

    /// All tools, by server, in the server's own order.
    pub fn tools(&self) -> impl Iterator<Item = Tool> + '_ {
        self.servers
            .values()
            .flat_map(|server| (0..server.entries().len()).map(move |index| (server, index)))
            .filter(|(server, index)| self.is_shown(server, *index))
            .map(|(server, index)| Tool {
                server: server.clone(),
                index,
            })
    }

    /// The number of tools.
    #[must_use]
    pub fn len(&self) -> usize {
        let known: usize = self
            .servers
            .values()
            .map(|server| server.entries().len())
            .sum();
        known - self.withheld.values().map(BTreeSet::len).sum::<usize>()
    }

    /// Whether no tool is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The identity of this state: every tool with its hash, by server and tool name.
    pub fn identities(&self) -> impl Iterator<Item = (&ServerName, &ToolName, ToolHash)> {
        let positions = self
            .servers
            .values()
            .flat_map(|server| server.by_name().map(move |index| (server, index)));
        positions
            .filter(|(server, index)| self.is_shown(server, *index))
            .map(|(server, index)| {
                let entry = &server.entries()[index];
                (server.name(), &entry.name, entry.hash)
            })
    }

    fn is_shown(&self, server: &ServerTools, index: usize) -> bool {
        self.withheld
            .get(server.name())
            .is_none_or(|withheld| !withheld.contains(&index))
    }
}

impl Tool {
    /// The tool's server.
    #[must_use]
    pub fn server(&self) -> &Arc<ServerTools> {
        &self.server
    }

    /// The tool's entry.
    #[must_use]
    pub fn entry(&self) -> &ToolEntry {
        &self.server.entries()[self.index]
    }

    /// The name that agents see.
    #[must_use]
    pub fn qualified_name(&self) -> QualifiedName {
        QualifiedName {
            server: self.server.name().clone(),
            tool: self.entry().name.clone(),
        }
    }

    /// The name that its server gave it, which rules, pins, statistics and the audit log use.
    #[must_use]
    pub fn own_name(&self) -> QualifiedName {
        QualifiedName {
            server: self.server.name().clone(),
            tool: self.entry().as_listed().name.clone(),
        }
    }

    /// How the user has adapted it.
    #[must_use]
    pub(crate) fn adapted(&self) -> Option<&Adapted> {
        self.entry().adapted()
    }

    /// All arguments that the server gets if an agent sends these; these alone if they cannot be sent.
    #[must_use]
    pub(crate) fn all_arguments<'a>(&self, sent: &'a str) -> Cow<'a, str> {
        let complete = |adapted: &Adapted| {
            let raw: &RawValue = serde_json::from_str(sent).ok()?;
            adapted.complete(raw).ok()
        };
        match self.adapted().and_then(complete) {
            Some(all) => Cow::Owned(all.get().to_owned()),
            None => Cow::Borrowed(sent),
        }
    }

    /// The tool's definition: in the server's own bytes, or as the user adapted it.
    ///
    /// # Errors
    /// When its cache file can no longer be read.
    pub fn json(&self) -> Result<Box<RawValue>, ReadError> {
        self.server.json(self.entry())
    }

    /// Whether it has an interface (MCP Apps). A definition that cannot be read has none.
    #[must_use]
    pub(crate) fn has_interface(&self) -> bool {
        let names_one = |raw: Box<RawValue>| {
            Definition::parse(&raw).is_ok_and(|definition| !definition.interfaces.is_empty())
        };
        self.server.has_interfaces() && self.json().is_ok_and(names_one)
    }

    /// Whether a call of it has to be a task. In later revisions the server alone decides that.
    #[must_use]
    pub(crate) fn needs_task(&self) -> bool {
        let is_older = |revision: Revision| !revision.is_modern();
        self.entry().needs_task
            && self.server.revision().is_some_and(is_older)
            && self.server.capabilities().has("tasks")
    }

    /// Whether interfaces may call it. One whose definition cannot be read is not for them.
    #[must_use]
    pub(crate) fn is_for_interfaces(&self) -> bool {
        let for_models = |raw: Box<RawValue>| {
            Definition::parse(&raw).is_ok_and(|definition| !definition.is_model_only)
        };
        self.json().is_ok_and(for_models)
    }
}
