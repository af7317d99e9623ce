//! Project scope: a client sees every server except those of projects outside its workspace.
//!
//! Code that works for a client gets a [`View`] with the request and passes it on. A view reads the current
//! configuration and tools, without the servers hidden from its client. Nothing widens a view: a task or thread that
//! gets it sees no more than the request did. Code that works for no client, such as a refresh, uses the unscoped view.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::catalog::{Catalog, ServerTools, Snapshot, Tool};
use crate::config::{self, Config, Exposure, Inspected, Shown, Verdict};
use crate::tool::{Hints, QualifiedName, ServerName};

/// The number of cached scopes; computing one again is fast.
const MOST_SCOPES: usize = 32;

/// The number of workspaces that are remembered after their clients have gone; servers are listed for all of them.
const MOST_WORKSPACES: usize = 256;

/// How clients see the servers' tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Mode {
    /// The three meta-tools.
    #[default]
    MetaTools,
    /// Every tool under its own name.
    Direct,
}

/// The directories that a client works in, sorted.
pub(super) type Workspace = Arc<[PathBuf]>;

/// The longest name that every client and model accepts, in characters.
pub(super) const LONGEST_NAME: usize = 64;

/// How one client sees the servers' tools; it stays the same for the client's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionSurface {
    /// The kind of listing.
    pub(crate) mode: Mode,
    /// Whether `execute_read_tool` is listed next to the meta-tools.
    pub(crate) has_read_tool: bool,
    /// The servers' tools that are listed next to the meta-tools.
    pub(crate) shown: Shown,
    /// Whether the client shows interfaces of tools (MCP Apps), so that tools with one are listed next to the meta-tools.
    pub(crate) shows_interfaces: bool,
    /// The longest name of a server's tool in the list.
    pub(crate) longest_name: usize,
}

impl SessionSurface {
    /// Whether tools of servers are listed under their own names, so that the list can change.
    #[must_use]
    pub(crate) fn lists_tools_of_servers(&self) -> bool {
        self.mode == Mode::Direct || !self.shown.is_empty() || self.shows_interfaces
    }
}

impl Default for SessionSurface {
    fn default() -> Self {
        Self {
            mode: Mode::MetaTools,
            has_read_tool: false,
            shown: Shown::default(),
            shows_interfaces: false,
            longest_name: LONGEST_NAME,
        }
    }
}

/// The configuration and the tools visible to one client.
#[derive(Debug, Clone)]
pub(crate) struct View {
    source: Arc<ViewSource>,
    surface: SessionSurface,
    /// The workspace; `None` sees every server.
    workspace: Option<Workspace>,
}

/// The current configuration and catalog, from which each [`View`] reads its part, and the workspaces of all clients.
#[derive(Debug)]
pub(super) struct ViewSource {
    config: RwLock<Arc<Config>>,
    catalog: Arc<Catalog>,
    /// The workspaces of current clients, and the latest of former ones, oldest first.
    workspaces: Mutex<Vec<Workspace>>,
    scopes: Mutex<Vec<Scope>>,
    /// The latest snapshots, and their copies that show the tools for apps.
    with_app_tools: Mutex<Vec<(Arc<Snapshot>, Arc<Snapshot>)>>,
    /// The default working directory of servers.
    directory: OnceLock<PathBuf>,
}

/// The part of a configuration that is visible from one workspace.
#[derive(Debug, Clone)]
struct Scope {
    of: Arc<Config>,
    workspace: Workspace,
    hidden: Arc<BTreeSet<ServerName>>,
    config: Arc<Config>,
    /// The latest snapshot, and the visible part of it.
    snapshot: Option<(Arc<Snapshot>, Arc<Snapshot>)>,
}

impl View {
    /// How the client sees the servers' tools.
    #[must_use]
    pub(crate) fn mode(&self) -> Mode {
        self.surface.mode
    }

    /// How the client sees the servers' tools, in full.
    #[must_use]
    pub(crate) fn surface(&self) -> &SessionSurface {
        &self.surface
    }

    /// The current configuration, without hidden servers.
    #[must_use]
    pub(crate) fn config(&self) -> Arc<Config> {
        self.seen(|config, scope| scope.map_or(config, |scope| &scope.config).clone())
    }

    /// Words of mcpzip for the client, with the commands that they name as its user can run them; for a person who uses the gateway of
    /// others, with whom to ask.
    #[must_use]
    pub(crate) fn advised<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let config = self.source.config();
        match config.is_for_person() {
            true => config::without_commands(text, config.window_of_manager().as_deref()),
            false => config::with_options(text),
        }
    }

    /// Words that several surfaces show: as [`View::advised`] for a person who uses the gateway of others. Otherwise they are unchanged,
    /// because the surface adds the options.
    #[must_use]
    pub(crate) fn suited(&self, text: String) -> String {
        match self.source.config().is_for_person() {
            true => self.advised(&text).into_owned(),
            false => text,
        }
    }

    /// The current catalog, without hidden servers. The meta-tools show no tools for apps; in direct mode, a client that shows apps hides
    /// these from its model.
    #[must_use]
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        match self.mode() {
            Mode::Direct if self.surface.shows_interfaces => {
                self.source.with_app_tools(self.visible())
            }
            Mode::Direct | Mode::MetaTools => self.visible(),
        }
    }

    /// The tools that the client may have in its list under their own names: with those for apps, if it shows apps.
    #[must_use]
    pub(super) fn listable(&self) -> Arc<Snapshot> {
        match self.surface.shows_interfaces {
            true => self.source.with_app_tools(self.visible()),
            false => self.snapshot(),
        }
    }

    fn visible(&self) -> Arc<Snapshot> {
        let narrow = self.seen(|_, scope| scope.filter(|scope| !scope.hidden.is_empty()).cloned());
        let snapshot = self.source.catalog.snapshot();
        match narrow {
            None => snapshot,
            Some(scope) => self.source.visible_part(&scope, snapshot),
        }
    }

    /// The rules' decision about a call with these arguments of an agent, which are JSON, and the rule that decides. Rules are
    /// about the server's own `name` and all arguments that it gets.
    pub(super) fn judge(
        &self,
        tool: &Tool,
        name: &QualifiedName,
        arguments: &str,
    ) -> (Verdict, Option<String>) {
        let hints = tool.entry().hints;
        match self.config().inspects(&name.server) {
            false => self.config().decide(name, hints, None),
            true => self.judge_inspected(name, hints, &tool.all_arguments(arguments)),
        }
    }

    /// The rules' decision about a request of an extension, as about a call of a tool that declares nothing.
    pub(super) fn judge_request(
        &self,
        name: &QualifiedName,
        arguments: &str,
    ) -> (Verdict, Option<String>) {
        self.judge_inspected(name, Hints::default(), arguments)
    }

    fn judge_inspected(
        &self,
        name: &QualifiedName,
        hints: Hints,
        arguments: &str,
    ) -> (Verdict, Option<String>) {
        let config = self.config();
        let arguments = config::arguments::read(arguments);
        let directory = config.directory_of(&name.server);
        let directory = directory.or_else(|| self.source.directory.get().cloned());
        let call = Inspected {
            arguments: &arguments,
            directory: directory.as_deref(),
            home: config.home.as_deref(),
        };
        config.decide(name, hints, Some(&call))
    }

    /// The scopes that a call of a tool needs and that an access token with `scopes` lacks. `None` is a credential without scopes,
    /// which needs none.
    pub(super) fn lacking_scopes(
        &self,
        scopes: Option<&BTreeSet<String>>,
        name: &QualifiedName,
        hints: Hints,
    ) -> Vec<String> {
        let Some(scopes) = scopes else {
            return Vec::new();
        };
        let config = self.config();
        let written = config.renamed.get(&name.server).map(String::as_str);
        let http = config.http.as_ref().ok();
        let auth = http.and_then(|http| http.auth.as_ref());
        let needed = auth.map(|auth| auth.tool_scopes.needed(name, written, hints));
        let needed = needed.unwrap_or_default();
        match needed.iter().all(|scope| scopes.contains(*scope)) {
            true => Vec::new(),
            false => needed.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The servers hidden from the client.
    pub(super) fn hidden_servers(&self) -> Vec<ServerName> {
        self.seen(|_, scope| {
            scope.map_or_else(Vec::new, |scope| scope.hidden.iter().cloned().collect())
        })
    }

    /// The servers whose entries are exposed according to `is_exposed`, by name.
    pub(super) fn exposing(&self, is_exposed: fn(Exposure) -> bool) -> Vec<Arc<ServerTools>> {
        let (config, snapshot) = (self.config(), self.snapshot());
        snapshot
            .servers()
            .filter(|server| is_exposed(config.exposes(server.name())))
            .filter(|server| !snapshot.hold(server.name()).everything)
            .map(|server| snapshot.reduced(server).clone())
            .collect()
    }

    /// Whether a server is visible from the workspace of any client.
    pub(crate) fn is_reachable(&self, server: &ServerName) -> bool {
        self.source.is_reachable(server)
    }

    /// Masks the secrets of the configuration in a text.
    pub(super) fn masked(&self, text: &str) -> String {
        self.source.config().masker.mask(text).into_owned()
    }

    /// The value of `read` for the current configuration, and for the part of it that is visible from the workspace, if there is one. Each
    /// call reads several times, so nothing is copied here; `read` must take no lock.
    fn seen<T>(&self, read: impl FnOnce(&Arc<Config>, Option<&Scope>) -> T) -> T {
        let config = self.source.config.read();
        match &self.workspace {
            None => read(&config, None),
            Some(workspace) => {
                let mut scopes = self.source.scopes();
                read(&config, Some(scope(&mut scopes, &config, workspace)))
            }
        }
    }
}

impl ViewSource {
    pub(super) fn new(config: Arc<Config>, catalog: Arc<Catalog>) -> Arc<Self> {
        Arc::new(Self {
            config: RwLock::new(config),
            catalog,
            workspaces: Mutex::default(),
            scopes: Mutex::default(),
            with_app_tools: Mutex::default(),
            directory: OnceLock::new(),
        })
    }

    /// Sets the default working directory of servers, once.
    pub(super) fn start_servers_in(&self, directory: Option<&PathBuf>) {
        if let Some(directory) = directory {
            self.directory.get_or_init(|| directory.clone());
        }
    }

    /// The view of a client in `workspace` with this surface.
    pub(super) fn from(self: &Arc<Self>, workspace: Workspace, surface: SessionSurface) -> View {
        View {
            source: self.clone(),
            surface,
            workspace: Some(workspace),
        }
    }

    /// The view of every server, for commands of the user and for work that belongs to no client.
    pub(super) fn unscoped(self: &Arc<Self>) -> View {
        View {
            source: self.clone(),
            surface: SessionSurface::default(),
            workspace: None,
        }
    }

    /// Replaces the configuration and returns the previous one.
    pub(super) fn replace(&self, config: Arc<Config>) -> Arc<Config> {
        let mut current = self.config.write();
        std::mem::replace(&mut *current, config)
    }

    fn config(&self) -> Arc<Config> {
        self.config.read().clone()
    }

    /// The part of `snapshot` that is visible in `scope`, computed once for each snapshot.
    fn visible_part(&self, scope: &Scope, snapshot: Arc<Snapshot>) -> Arc<Snapshot> {
        if let Some((of, visible)) = &scope.snapshot
            && Arc::ptr_eq(of, &snapshot)
        {
            return visible.clone();
        }
        let visible = Arc::new(snapshot.without(&scope.hidden));
        let mut scopes = self.scopes();
        if let Some(known) = scopes
            .iter_mut()
            .find(|known| Arc::ptr_eq(&known.of, &scope.of) && known.workspace == scope.workspace)
        {
            known.snapshot = Some((snapshot, visible.clone()));
        }
        visible
    }

    /// `snapshot` with the tools for apps, computed once for each snapshot.
    fn with_app_tools(&self, snapshot: Arc<Snapshot>) -> Arc<Snapshot> {
        if !snapshot.has_app_tools() {
            return snapshot;
        }
        let mut known = self.with_app_tools.lock();
        if let Some((_, shown)) = known.iter().find(|(of, _)| Arc::ptr_eq(of, &snapshot)) {
            return shown.clone();
        }
        let shown = Arc::new(snapshot.with_app_tools());
        if known.len() >= MOST_SCOPES {
            known.remove(0);
        }
        known.push((snapshot, shown.clone()));
        shown
    }

    /// Remembers a workspace and returns whether it is new. `in_use` has the workspaces of current clients, none of
    /// which is forgotten.
    pub(super) fn remember(
        &self,
        workspace: &Workspace,
        in_use: impl FnOnce() -> Vec<Workspace>,
    ) -> bool {
        let mut workspaces = self.workspaces();
        if workspaces.contains(workspace) {
            return false;
        }
        if workspaces.len() >= MOST_WORKSPACES {
            let in_use = in_use();
            if let Some(oldest) = workspaces.iter().position(|known| !in_use.contains(known)) {
                workspaces.remove(oldest);
            }
        }
        workspaces.push(workspace.clone());
        true
    }

    /// `config` without the servers that no known workspace makes visible.
    pub(super) fn reachable(&self, config: &Config) -> Config {
        let workspaces = self.workspaces().clone();
        let unreachable = config.servers.iter().filter(|(_, entry)| {
            !entry.projects.is_everywhere()
                && !workspaces
                    .iter()
                    .any(|workspace| entry.projects.admit(workspace))
        });
        config.without(&unreachable.map(|(server, _)| server.clone()).collect())
    }

    /// Whether a server is visible from any known workspace.
    pub(super) fn is_reachable(&self, server: &ServerName) -> bool {
        let workspaces = self.workspaces().clone();
        self.config().servers.get(server).is_none_or(|entry| {
            entry.projects.is_everywhere()
                || workspaces
                    .iter()
                    .any(|workspace| entry.projects.admit(workspace))
        })
    }

    /// Whether a server is visible from `workspace`.
    pub(super) fn is_visible_from(&self, workspace: &Workspace, server: &ServerName) -> bool {
        let config = self.config();
        let entry = config.servers.get(server);
        entry.is_none_or(|entry| entry.projects.admit(workspace))
    }

    /// Whether any server or profile belongs to a project.
    pub(super) fn has_projects(&self) -> bool {
        let config = self.config();
        let mut entries = config.servers.values();
        config.has_profiles_of_directories() || entries.any(|entry| !entry.projects.is_everywhere())
    }

    fn scopes(&self) -> MutexGuard<'_, Vec<Scope>> {
        // Each change is a single step.
        self.scopes.lock()
    }

    fn workspaces(&self) -> MutexGuard<'_, Vec<Workspace>> {
        self.workspaces.lock()
    }
}

/// The part of `config` that is visible from `workspace`, computed once.
fn scope<'a>(scopes: &'a mut Vec<Scope>, config: &Arc<Config>, workspace: &Workspace) -> &'a Scope {
    // Paths are compared part by part, and those of one session are the same list.
    let is_known = |scope: &Scope| {
        Arc::ptr_eq(&scope.of, config)
            && (Arc::ptr_eq(&scope.workspace, workspace) || scope.workspace == *workspace)
    };
    if let Some(known) = scopes.iter().position(is_known) {
        return &scopes[known];
    }
    let hidden = Arc::new(config.unseen(workspace));
    let visible = if hidden.is_empty() {
        config.clone()
    } else {
        Arc::new(config.without(&hidden))
    };
    scopes.retain(|scope| Arc::ptr_eq(&scope.of, config));
    if scopes.len() >= MOST_SCOPES {
        scopes.remove(0);
    }
    scopes.push(Scope {
        of: config.clone(),
        workspace: workspace.clone(),
        hidden,
        config: visible,
        snapshot: None,
    });
    &scopes[scopes.len() - 1]
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::catalog::{Cache, Key, Listed};
    use crate::config::Environment;

    fn workspace(directory: &str) -> Workspace {
        [PathBuf::from(directory)].into()
    }

    fn views() -> Arc<ViewSource> {
        let text = r#"{"mcpServers":{"everywhere":{"command":"x"},"here":{"command":"x","projects":["/a"]},"there":{"command":"x","projects":["/b"]}}}"#;
        let path = std::path::Path::new("/config.json");
        let config = Config::parse(text, path, &Environment::default())
            .expect("the text is a configuration");
        let catalog = Arc::new(Catalog::new());
        catalog.update(|servers| {
            for server in config.servers.keys().cloned() {
                let key = Key {
                    server: server.clone(),
                    configuration: String::new(),
                };
                let listed = Cache::new(None).store(&key, &Listed::default());
                servers.insert(server, Arc::new(listed));
            }
        });
        ViewSource::new(Arc::new(config), catalog)
    }

    /// The servers in the configuration and in the snapshot of a view.
    fn visible(view: &View) -> [Vec<String>; 2] {
        let config = view.config();
        let snapshot = view.snapshot();
        [
            config.servers.keys().map(ToString::to_string).collect(),
            snapshot
                .servers()
                .map(|server| server.name().to_string())
                .collect(),
        ]
    }

    #[tokio::test]
    async fn a_view_shows_no_more_to_a_task_or_thread_that_it_is_handed_to() {
        let view = views().from(workspace("/a/src"), SessionSurface::default());
        let expected = [["everywhere", "here"], ["everywhere", "here"]]
            .map(|servers| servers.map(str::to_owned).to_vec());
        assert_eq!(visible(&view), expected);
        assert_eq!(view.hidden_servers(), [ServerName::new("there").unwrap()]);
        let tasks = crate::shutdown::Tasks::new();
        let (one, other) = (view.clone(), view.clone());
        let in_task = tasks.spawn(async move { visible(&one) }).await;
        let in_thread = tasks.spawn_blocking(move || visible(&other)).await;
        assert_eq!(in_task.unwrap(), expected);
        assert_eq!(in_thread.unwrap(), expected);
        assert_eq!(visible(&view.source.unscoped())[0].len(), 3);
    }

    #[test]
    fn a_view_follows_the_configuration_and_the_catalog() {
        let views = views();
        let view = views.from(workspace("/b"), SessionSurface::default());
        assert_eq!(visible(&view)[1], ["everywhere", "there"]);
        views.catalog.update(std::collections::BTreeMap::clear);
        assert!(visible(&view)[1].is_empty());
        views.replace(Arc::new(Config::default()));
        assert!(visible(&view)[0].is_empty());
    }

    #[test]
    fn the_workspace_of_a_client_that_is_still_there_is_not_forgotten() {
        let views = views();
        let (client, here) = (workspace("/a"), ServerName::new("here").unwrap());
        assert!(views.remember(&client, Vec::new));
        for number in 0..2 * MOST_WORKSPACES {
            let other = workspace(&format!("/other/{number}"));
            assert!(views.remember(&other, || vec![client.clone()]));
        }
        assert_eq!(views.workspaces().len(), MOST_WORKSPACES);
        assert!(views.is_reachable(&here));
        assert!(!views.remember(&client, Vec::new));
        assert!(views.remember(&workspace("/one/more"), Vec::new));
        assert!(!views.is_reachable(&here), "the client has gone");
    }
}
