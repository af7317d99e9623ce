//! Which server named which resource in a result.
//!
//! A link in a result leads to the server that gave it and to no other, though it stands in no list. What is remembered is a
//! keyed hash of each URI, so many per server that a flood of one server pushes out none of another's.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock};

use memchr::memmem::Finder;
use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::catalog::{ServerTools, Snapshot};
use crate::mcp::object::{Object, text};
use crate::tool::ServerName;

/// URIs that are remembered of each server.
const MOST: usize = 4096;

/// Levels of a result that are looked through.
const DEEPEST: usize = 16;

/// What the names of all members end in that hold a URI of a resource.
static ENDINGS: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| {
    [
        Finder::new(b"uri\""),
        Finder::new(b"Uri\""),
        Finder::new(b"outputTemplate\""),
    ]
});

/// The URIs that servers named.
#[derive(Debug, Default)]
pub(in crate::proxy) struct NamedUris {
    keys: RandomState,
    servers: Mutex<HashMap<ServerName, Named>>,
    /// What servers listed when their entries were last taken away or changed.
    retired: Mutex<HashMap<ServerName, Arc<ServerTools>>>,
}

#[derive(Debug, Default)]
struct Named {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl NamedUris {
    /// Notes the URIs in a result of `server`.
    pub(super) fn note(&self, server: &ServerName, result: &[u8]) {
        if !may_name(result) {
            return;
        }
        let Ok(raw) = serde_json::from_slice::<&RawValue>(result) else {
            return;
        };
        let mut hashes = Vec::new();
        walk(raw, DEEPEST, &mut |uri| {
            hashes.push(self.keys.hash_one(uri));
        });
        if hashes.is_empty() {
            return;
        }
        let mut servers = self.servers.lock();
        let named = servers.entry(server.clone()).or_default();
        for hash in hashes {
            if named.known.insert(hash) {
                named.order.push_back(hash);
            }
            if named.order.len() > MOST
                && let Some(oldest) = named.order.pop_front()
            {
                named.known.remove(&oldest);
            }
        }
    }

    /// Remembers what servers of `snapshot` listed whose entries `is_kept` does not hold for.
    pub(super) fn retire(&self, snapshot: &Snapshot, is_kept: impl Fn(&ServerName) -> bool) {
        let gone = snapshot
            .servers()
            .filter(|server| !is_kept(server.name()))
            .map(|server| (server.name().clone(), server.clone()));
        let mut retired = self.retired.lock();
        retired.extend(gone);
    }

    /// The servers that named `uri`, in whatever state they are now.
    pub(in crate::proxy) fn namers(&self, uri: &str) -> Vec<ServerName> {
        let hash = self.keys.hash_one(uri);
        let servers = self.servers.lock();
        let namers = servers
            .iter()
            .filter(|(_, named)| named.known.contains(&hash));
        let retired = self.retired.lock();
        let listed = retired.values().filter(|server| server.names_resource(uri));
        namers
            .map(|(server, _)| server.clone())
            .chain(listed.map(|server| server.name().clone()))
            .collect()
    }
}

/// Whether a member of that kind may be in there; results may be large, and few name a resource.
fn may_name(json: &[u8]) -> bool {
    ENDINGS.iter().any(|ending| ending.find(json).is_some())
}

fn walk(raw: &RawValue, depth: usize, found: &mut impl FnMut(&str)) {
    if depth == 0 || !may_name(raw.get().as_bytes()) {
        return;
    }
    if raw.get().starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
        items
            .into_iter()
            .for_each(|item| walk(item, depth - 1, found));
        return;
    }
    let Ok(object) = Object::parse(raw) else {
        return;
    };
    for (key, value) in object.iter() {
        let names_resource = matches!(
            key.as_ref(),
            "uri" | "resourceUri" | "ui/resourceUri" | "openai/outputTemplate"
        );
        match text(value).filter(|_| names_resource) {
            Some(uri) => found(&uri),
            None => walk(value, depth - 1, found),
        }
    }
}
