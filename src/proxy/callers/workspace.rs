//! The clients' workspaces: the directories of this process, and the clients' `roots`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use tokio::time::timeout;

use super::Callers;
use super::caller::Caller;
use super::client::Client;
use crate::config::real;
use crate::mcp::{ClientCapabilities, Object, Outbox};
use crate::proxy::view::Workspace;
use crate::tool::ServerName;
use crate::upstream::ServerReply;

/// The time limit of a client's response to `roots/list`.
const ROOTS_LIMIT: Duration = Duration::from_secs(3);

/// The time for which a later response still counts.
const LATE_ROOTS: Duration = Duration::from_secs(600);

impl Callers {
    /// Sets the workspace of this process, which its only client shares; see [`Callers::enter`].
    pub(in crate::proxy) fn set_workspace(&self, directories: &[PathBuf]) -> bool {
        let mut directories: Vec<PathBuf> = directories
            .iter()
            .map(|directory| real(directory))
            .collect();
        directories.sort();
        directories.dedup();
        let workspace: Workspace = directories.into();
        *self.workspace.lock() = workspace.clone();
        self.enter(&workspace)
    }

    /// The workspace of this process.
    pub(in crate::proxy) fn workspace(&self) -> Workspace {
        self.workspace.lock().clone()
    }

    /// The clients that see `server`, as far as their workspaces are known.
    pub(in crate::proxy) fn seeing(&self, server: &ServerName) -> Vec<Arc<Client>> {
        let mut clients = self.clients();
        clients.retain(|client| {
            self.view_source
                .is_visible_from(&client.workspace(), server)
        });
        clients
    }

    /// Whether a request may wait for its client's `roots`.
    pub(in crate::proxy) fn may_fetch_roots(&self, caller: &Caller) -> bool {
        // A modern client can only be asked in the response to its own request, and its answer is not valid for other
        // requests.
        !caller.revision.is_modern() && self.view_source.has_projects()
    }

    /// Fetches the `roots` of a request's client if they are not known yet.
    pub(in crate::proxy) async fn know_roots(&self, caller: &Caller) {
        self.ask_roots(&caller.client, caller.capabilities, &caller.outbox)
            .await;
    }

    /// Requests the client's `roots` right after the handshake, so that no later call waits for them, and takes an answer that
    /// comes after the limit. Returns whether it was asked.
    pub(in crate::proxy) async fn fetch_roots(&self, client: &Client) -> bool {
        if let (true, Some(outbox), Some(able)) = (
            self.view_source.has_projects(),
            client.listener().outbox(),
            client.capabilities(),
        ) {
            let roots = client.roots();
            if let Some(late) = self.ask_roots(client, able, &outbox).await
                && let Ok(ServerReply::Result(result)) = timeout(LATE_ROOTS, late).await
            {
                client.roots_came(&roots, directories(&result));
            }
            return true;
        }
        false
    }

    /// Asks for the `roots`, unless they are known. Returns the open question if the client does not answer in time.
    async fn ask_roots<'c>(
        &self,
        client: &'c Client,
        able: ClientCapabilities,
        outbox: &'c Outbox,
    ) -> Option<BoxFuture<'c, ServerReply>> {
        if !able.allow("roots/list") {
            return None;
        }
        let (roots, mut late) = (client.roots(), None);
        roots
            .get_or_init(|| async {
                let asked = client.ask(outbox, "roots/list", Bytes::from_static(b"{}"));
                let mut asked: BoxFuture<'c, ServerReply> = Box::pin(asked);
                match timeout(ROOTS_LIMIT, &mut asked).await {
                    Ok(ServerReply::Result(result)) => directories(&result),
                    Ok(ServerReply::Error(_)) => Vec::new(),
                    Err(_) => {
                        tracing::warn!("the client does not say which directories it works in");
                        late = Some(asked);
                        Vec::new()
                    }
                }
            })
            .await;
        late
    }

    /// Records a workspace in use. Returns whether it may have made more servers reachable, which must then be
    /// listed.
    pub(in crate::proxy) fn enter(&self, workspace: &Workspace) -> bool {
        let in_use = || {
            let clients = self.clients();
            let mut in_use: Vec<_> = clients.iter().map(|client| client.workspace()).collect();
            in_use.push(self.workspace());
            in_use
        };
        self.view_source.remember(workspace, in_use) && self.view_source.has_projects()
    }
}

/// The directories in the response to `roots/list` (2025-11-25, client/roots), with symbolic links resolved.
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
