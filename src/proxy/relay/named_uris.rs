//! The resources that servers named in results.
//!
//! A link in a result belongs to the server that returned it, even if no list has it. A keyed hash of each URI is
//! stored. The limit applies to each server, so that many URIs of one server do not displace those of others. A URI that another server
//! lists stays that server's: the link gets a URI that names the server which returned it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::value::RawValue;

use crate::catalog::{ServerTools, Snapshot};
use crate::proxy::own_uris;
use crate::tool::ServerName;

/// The maximum number of stored URIs of one server.
const MOST: usize = 4096;

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
    /// Stores the URIs in a result of `server`, and returns the result as clients see it if that differs. `known` are the lists of all
    /// servers.
    pub(in crate::proxy) fn note(
        &self,
        server: &ServerName,
        result: &[u8],
        known: impl FnOnce() -> Arc<Snapshot>,
    ) -> Option<Bytes> {
        if !own_uris::may_have_uri(result) {
            return None;
        }
        let raw: &RawValue = serde_json::from_slice(result).ok()?;
        let known = known();
        let own = known.server(server);
        let is_anothers = |uri: &str| {
            let mut others = known.servers().filter(|other| other.name() != server);
            !own.is_some_and(|own| own.claims_resource(uri))
                && others.any(|other| other.claims_resource(uri))
        };
        let mut hashes = Vec::new();
        let renamed = own_uris::replaced(raw, &mut |uri| {
            let seen = own_uris::seen(server, uri);
            if seen.is_none() && is_anothers(uri) {
                return Some(own_uris::told_apart(server, uri));
            }
            hashes.push(self.keys.hash_one(uri));
            seen
        });
        self.store(server, hashes);
        renamed.map(Bytes::from)
    }

    fn store(&self, server: &ServerName, hashes: Vec<u64>) {
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

    /// The servers that named `uri` in results.
    pub(in crate::proxy) fn namers(&self, uri: &str) -> Vec<ServerName> {
        let hash = self.keys.hash_one(uri);
        let servers = self.servers.lock();
        let namers = servers
            .iter()
            .filter(|(_, named)| named.known.contains(&hash));
        namers.map(|(server, _)| server.clone()).collect()
    }

    /// The servers whose lists had `uri` until they were removed or changed.
    pub(in crate::proxy) fn listed_before(&self, uri: &str) -> Vec<ServerName> {
        let retired = self.retired.lock();
        let listed = retired.values().filter(|server| server.names_resource(uri));
        listed.map(|server| server.name().clone()).collect()
    }
}
