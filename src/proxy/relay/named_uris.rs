//! The resources that servers named in results.
//!
//! A link in a result belongs to the server that returned it, even if no list has it. A keyed hash of each URI is
//! stored. The limit applies to each server, so that many URIs of one server do not displace those of others.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use memchr::memmem::Finder;
use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::catalog::{ServerTools, Snapshot};
use crate::mcp::object::{Object, text};
use crate::proxy::own_uris;
use crate::tool::ServerName;

/// The maximum number of stored URIs of one server.
const MOST: usize = 4096;

/// The depth to which a result is searched.
const DEEPEST: usize = 16;

/// The endings of the names of all members that contain the URI of a resource.
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
    /// The lists of servers whose entries were removed or changed.
    retired: Mutex<HashMap<ServerName, Arc<ServerTools>>>,
}

#[derive(Debug, Default)]
struct Named {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl NamedUris {
    /// Stores the URIs in a result of `server`, and returns the result as clients see it if that differs.
    pub(in crate::proxy) fn note(&self, server: &ServerName, result: &[u8]) -> Option<Bytes> {
        if !may_name(result) {
            return None;
        }
        let raw: &RawValue = serde_json::from_slice(result).ok()?;
        self.store(server, raw);
        own_uris::for_clients(server, raw).map(Bytes::from)
    }

    fn store(&self, server: &ServerName, raw: &RawValue) {
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

    /// Stores the lists of servers in `snapshot` for which `is_kept` is false.
    pub(super) fn retire(&self, snapshot: &Snapshot, is_kept: impl Fn(&ServerName) -> bool) {
        let gone = snapshot
            .servers()
            .filter(|server| !is_kept(server.name()))
            .map(|server| (server.name().clone(), server.clone()));
        let mut retired = self.retired.lock();
        retired.extend(gone);
    }

    /// Forgets the servers for which `is_there` is false: for the clients they never existed.
    pub(super) fn forget(&self, is_there: impl Fn(&ServerName) -> bool) {
        self.servers.lock().retain(|server, _| is_there(server));
        self.retired.lock().retain(|server, _| is_there(server));
    }

    /// The servers that named `uri`, in any state.
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

/// Whether a result may contain such a member. It may be large, and few results name a resource.
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
        match text(value).filter(|_| own_uris::has_uri(&key)) {
            Some(uri) => found(&uri),
            None => walk(value, depth - 1, found),
        }
    }
}
