//! The extensions of servers that mcpzip does not know, as they were last listed. They are stored in a file, because a handshake is
//! answered before the catalog is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::catalog::Snapshot;
use crate::files;
use crate::mcp::Others;
use crate::tool::ServerName;

/// The extensions by server; those without any are left out.
#[derive(Debug, Default)]
pub(in crate::proxy) struct KnownExtensions {
    path: Option<PathBuf>,
    known: Mutex<BTreeMap<String, Others>>,
}

impl KnownExtensions {
    /// Reads those stored in the cache directory.
    pub(in crate::proxy) fn load(cache: Option<&Path>) -> Self {
        let path = cache.map(|cache| cache.join("catalog").join("extensions.json"));
        // A missing or damaged file does no harm: the next listing writes it again.
        let known = path
            .as_deref()
            .and_then(|path| serde_json::from_slice(&files::read_any(path).ok()?).ok());
        Self {
            path,
            known: Mutex::new(known.unwrap_or_default()),
        }
    }

    /// Those of a server that was not listed yet.
    pub(in crate::proxy) fn of(&self, server: &ServerName) -> Others {
        let known = self.known.lock();
        known.get(server.as_str()).cloned().unwrap_or_default()
    }

    /// Updates those of all servers in `snapshot`.
    pub(in crate::proxy) fn note(&self, snapshot: &Snapshot) {
        let mut known = self.known.lock();
        let before = known.clone();
        for server in snapshot.servers() {
            let name = server.name().to_string();
            let others = match snapshot.hold(server.name()).everything {
                true => Others::new(),
                false => server.capabilities().other_extensions(),
            };
            match others.is_empty() {
                true => drop(known.remove(&name)),
                false => drop(known.insert(name, others)),
            }
        }
        let changed = *known != before;
        let json = serde_json::to_vec(&*known).expect("text is JSON");
        drop(known);
        if let Some(path) = self.path.as_deref().filter(|_| changed)
            && let Err(error) = files::replace(path, &[&json])
        {
            tracing::warn!(path = %path.display(), %error, "the servers' extensions cannot be stored");
        }
    }
}
