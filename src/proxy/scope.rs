//! Project scope: a client sees every server except those of projects outside its workspace.
//!
//! The directories of a client go along with each of its requests as a value of the task that answers it. Whoever asks for
//! the configuration or the tools in there gets those of that client, so that no way to a server has to remember to look.
//! Outside of requests everything is seen.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{Caller, Client, Proxy};
use crate::catalog::Snapshot;
use crate::config::{Config, real};
use crate::mcp::{ClientCapabilities, Object, Outbox};
use crate::tool::ServerName;
use crate::upstream::ServerReply;

/// How long a client has to say which directories it works in.
const ROOTS_LIMIT: Duration = Duration::from_secs(3);

/// Views that are kept; each is made anew in no time.
const MOST_VIEWS: usize = 32;

/// Workspaces that are remembered; servers are listed for all of them.
const MOST_WORKSPACES: usize = 256;

tokio::task_local! {
    static DIRECTORIES: Arc<[PathBuf]>;
}

/// The workspaces of all clients, and the view from each.
#[derive(Debug, Default)]
pub(super) struct ProjectScope {
    /// The directories this process was started in, if its only client shares them.
    home: Mutex<Arc<[PathBuf]>>,
    /// The workspaces of current and former clients.
    workspaces: Mutex<Vec<Arc<[PathBuf]>>>,
    views: Mutex<Vec<View>>,
}

/// The configuration and tools visible from one workspace.
#[derive(Debug, Clone)]
struct View {
    of: Arc<Config>,
    from: Arc<[PathBuf]>,
    unseen: Arc<BTreeSet<ServerName>>,
    config: Arc<Config>,
    snapshot: Option<(Arc<Snapshot>, Arc<Snapshot>)>,
}

impl ProjectScope {
    /// What of `config` is seen by whoever this task works for; nothing where that is all of it.
    fn view(&self, config: &Arc<Config>) -> Option<View> {
        let from = DIRECTORIES.try_with(Arc::clone).ok()?;
        let mut views = self.views();
        let is_known = |view: &View| Arc::ptr_eq(&view.of, config) && view.from == from;
        if let Some(view) = views.iter().find(|view| is_known(view)) {
            return Some(view.clone());
        }
        let unseen = Arc::new(config.unseen(&from));
        let shown = if unseen.is_empty() {
            config.clone()
        } else {
            Arc::new(config.without(&unseen))
        };
        let view = View {
            of: config.clone(),
            from,
            unseen,
            config: shown,
            snapshot: None,
        };
        views.retain(|view| Arc::ptr_eq(&view.of, config));
        if views.len() >= MOST_VIEWS {
            views.remove(0);
        }
        views.push(view.clone());
        Some(view)
    }

    /// What of `config` is seen.
    pub(super) fn config(&self, config: Arc<Config>) -> Arc<Config> {
        self.view(&config).map_or(config, |view| view.config)
    }

    /// What of `snapshot` is seen.
    pub(super) fn snapshot(&self, config: &Arc<Config>, snapshot: Arc<Snapshot>) -> Arc<Snapshot> {
        let Some(view) = self.view(config).filter(|view| !view.unseen.is_empty()) else {
            return snapshot;
        };
        if let Some((of, seen)) = &view.snapshot
            && Arc::ptr_eq(of, &snapshot)
        {
            return seen.clone();
        }
        let seen = Arc::new(snapshot.without(&view.unseen));
        let mut views = self.views();
        if let Some(known) = views
            .iter_mut()
            .find(|known| Arc::ptr_eq(&known.of, config) && known.from == view.from)
        {
            known.snapshot = Some((snapshot, seen.clone()));
        }
        seen
    }

    /// The servers that are not seen.
    pub(super) fn unseen(&self, config: &Arc<Config>) -> Vec<ServerName> {
        self.view(config)
            .map_or_else(Vec::new, |view| view.unseen.iter().cloned().collect())
    }

    /// Notes a workspace; whether it is new.
    fn note(&self, workspace: &Arc<[PathBuf]>) -> bool {
        let mut workspaces = self
            .workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let is_new = !workspaces.contains(workspace);
        if is_new {
            if workspaces.len() >= MOST_WORKSPACES {
                workspaces.remove(0);
            }
            workspaces.push(workspace.clone());
        }
        is_new
    }

    /// What of `config` anybody sees.
    pub(super) fn reachable(&self, config: &Config) -> Config {
        let workspaces = self
            .workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let unseen = config.servers.iter().filter(|(_, entry)| {
            !entry.projects.is_everywhere()
                && !workspaces
                    .iter()
                    .any(|workspace| entry.projects.admit(workspace))
        });
        config.without(&unseen.map(|(server, _)| server.clone()).collect())
    }

    fn views(&self) -> MutexGuard<'_, Vec<View>> {
        // Each change is a single step.
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work` for a client in `place`. No `async fn`: that would hold `work` twice.
pub(super) fn scoped<F: Future>(
    workspace: Arc<[PathBuf]>,
    work: F,
) -> impl Future<Output = F::Output> {
    DIRECTORIES.scope(workspace, work)
}

/// The same for what waits for nothing.
pub(super) fn scoped_now<T>(workspace: Arc<[PathBuf]>, work: impl FnOnce() -> T) -> T {
    DIRECTORIES.sync_scope(workspace, work)
}

impl Proxy {
    /// Sets the workspace of this process, which its only client shares.
    pub fn set_workspace(&self, directories: &[PathBuf]) {
        let mut directories: Vec<PathBuf> = directories
            .iter()
            .map(|directory| real(directory))
            .collect();
        directories.sort();
        directories.dedup();
        let workspace: Arc<[PathBuf]> = directories.into();
        *self
            .scope
            .home
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = workspace.clone();
        self.entered(&workspace);
    }

    /// The workspace of this process.
    #[must_use]
    pub fn home(&self) -> Arc<[PathBuf]> {
        self.scope
            .home
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The servers hidden from the client of this request.
    pub(super) fn hidden_servers(&self) -> Vec<ServerName> {
        self.scope.unseen(&self.whole_config())
    }

    /// Whether a server is visible from any known workspace.
    #[must_use]
    pub fn is_reachable(&self, server: &ServerName) -> bool {
        let config = self.whole_config();
        let workspaces = self
            .scope
            .workspaces
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        config.servers.get(server).is_none_or(|entry| {
            entry.projects.is_everywhere()
                || workspaces
                    .iter()
                    .any(|workspace| entry.projects.admit(workspace))
        })
    }

    /// Whether a server is visible from a client's workspace, as far as that is known.
    pub(super) fn is_visible_to(&self, client: &Client, server: &ServerName) -> bool {
        let config = self.whole_config();
        config
            .servers
            .get(server)
            .is_none_or(|entry| entry.projects.admit(&client.workspace()))
    }

    /// Whether a request may wait for its client's `roots`.
    pub(super) fn may_fetch_roots(&self, caller: &Caller) -> bool {
        // A client of the modern era is asked by the answer to its own request only, and what it says holds for no other.
        !caller.revision.is_modern() && self.has_projects()
    }

    /// The workspace of a request's client; fetches the client's `roots` if they are not known yet.
    pub(super) async fn workspace_of(&self, caller: &Caller) -> Arc<[PathBuf]> {
        self.ask_roots(&caller.client, caller.capabilities, &caller.outbox)
            .await;
        self.known_workspace(caller)
    }

    /// The workspace of a request's client, as far as it is known.
    pub(super) fn known_workspace(&self, caller: &Caller) -> Arc<[PathBuf]> {
        let workspace = caller.client.workspace();
        self.entered(&workspace);
        workspace
    }

    /// Requests the client's `roots` right after the handshake, so that no later call waits for them.
    pub async fn fetch_roots(&self, client: &Client) {
        if let (true, Some(outbox), Some(able)) = (
            self.has_projects(),
            client.listener().outbox(),
            client.capabilities(),
        ) {
            self.ask_roots(client, able, &outbox).await;
            self.entered(&client.workspace());
        }
    }

    async fn ask_roots(&self, client: &Client, able: ClientCapabilities, outbox: &Outbox) {
        if !able.allow("roots/list") {
            return;
        }
        let roots = client.roots();
        roots
            .get_or_init(|| async {
                let asked = client.ask(outbox, "roots/list", Bytes::from_static(b"{}"));
                match tokio::time::timeout(ROOTS_LIMIT, asked).await {
                    Ok(ServerReply::Result(result)) => directories(&result),
                    Ok(ServerReply::Error(_)) => Vec::new(),
                    Err(_) => {
                        tracing::warn!("the client does not say which directories it works in");
                        Vec::new()
                    }
                }
            })
            .await;
    }

    /// Notes a workspace in use; the servers visible from it are listed too.
    fn entered(&self, workspace: &Arc<[PathBuf]>) {
        if self.scope.note(workspace) && self.has_projects() {
            self.refresh
                .configure(&self.scope.reachable(&self.whole_config()));
        }
    }

    fn has_projects(&self) -> bool {
        self.whole_config()
            .servers
            .values()
            .any(|entry| !entry.projects.is_everywhere())
    }
}

/// The directories in the answer to `roots/list` (2025-11-25, client/roots), without links in them.
fn directories(result: &[u8]) -> Vec<PathBuf> {
    let raw: Option<&RawValue> = serde_json::from_slice(result).ok();
    let roots = raw.and_then(|raw| {
        serde_json::from_str::<Vec<&RawValue>>(Object::parse(raw).ok()?.get("roots")?.get()).ok()
    });
    let uris = roots
        .unwrap_or_default()
        .into_iter()
        .filter_map(|root| Object::parse(root).ok()?.text("uri"));
    uris.filter_map(|uri| reqwest::Url::parse(&uri).ok()?.to_file_path().ok())
        .map(|path| real(Path::new(&path)))
        .collect()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn roots_are_directories() {
        let result = br#"{"roots":[{"uri":"file:///a%20b/c","name":"x"},{"uri":"https://x"},{"uri":"/plain"},7,{"uri":"file:///d/"}]}"#;
        assert_eq!(
            directories(result),
            [PathBuf::from("/a b/c"), PathBuf::from("/d")]
        );
        assert!(directories(b"{}").is_empty() && directories(b"[1]").is_empty());
    }
}
