//! Limits on the number of connections, and which connection is closed for a new one.
//!
//! A connection without a request in flight, or with a request whose body is incomplete, holds a permit without need.
//! When permits are short, such a connection is closed: first one that never had a permitted request, then one of the
//! address with the most connections, then the one that was silent for longest.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// The maximum number of connections.
const MOST: usize = 512;
/// The maximum number of connections of one address. Loopback has no such limit, because all local clients and
/// reverse proxies share it.
const MOST_OF_ONE_ADDRESS: usize = 384;

/// The time limit for the first permitted request on a connection.
const UNKNOWN_TIME: Duration = Duration::from_secs(5);

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Mutex<HashMap<u64, Entry>>,
}

#[derive(Debug)]
struct Entry {
    address: IpAddr,
    /// Whether a request on it was permitted.
    is_known: bool,
    /// The number of requests whose responses have not been sent completely.
    requests: usize,
    /// The number of those whose bodies it waits for, so that nothing is being processed for them.
    incomplete: usize,
    silent_since: Instant,
    end: CancellationToken,
}

/// A handle to a connection; dropping it removes the connection.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    end: CancellationToken,
    connections: Arc<Connections>,
}

/// A request in flight on a connection, until its response has been sent.
#[derive(Debug)]
pub(super) struct Ongoing(Arc<Connection>);

impl Connections {
    /// Registers a connection from `address`. `None` if all permits are held by requests in flight.
    pub(super) fn admit(self: &Arc<Self>, number: u64, address: IpAddr) -> Option<Connection> {
        let address = network(address);
        let mut all = self.all();
        let mut counts = HashMap::new();
        for entry in all.values() {
            *counts.entry(entry.address).or_insert(0) += 1;
        }
        let own = counts.get(&address).copied().unwrap_or(0);
        let is_own_limit = own >= MOST_OF_ONE_ADDRESS && !address.is_loopback();
        if is_own_limit || all.len() >= MOST {
            let (&least, _) = all
                .iter()
                .filter(|(_, entry)| entry.requests <= entry.incomplete)
                .filter(|(_, entry)| !is_own_limit || entry.address == address)
                .min_by_key(|(_, entry)| {
                    let count = counts[&entry.address];
                    (entry.is_known, Reverse(count), entry.silent_since)
                })?;
            if let Some(entry) = all.remove(&least) {
                entry.end.cancel();
            }
        }
        let end = CancellationToken::new();
        let entry = Entry {
            address,
            is_known: false,
            requests: 0,
            incomplete: 0,
            silent_since: Instant::now(),
            end: end.clone(),
        };
        all.insert(number, entry);
        Some(Connection {
            number,
            end,
            connections: self.clone(),
        })
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Entry>> {
        // Each change is a single step.
        self.all.lock()
    }
}

impl Connection {
    /// Resolves when the connection must be closed: for a new one, or because no request on it was permitted in time.
    pub(super) async fn over(&self) {
        let unknown = async {
            loop {
                tokio::time::sleep(UNKNOWN_TIME).await;
                match self.with(|entry| (entry.is_known, entry.requests)) {
                    Some((true, _)) => return std::future::pending().await,
                    Some((false, 1..)) => {}
                    _ => return,
                }
            }
        };
        tokio::select! {
            () = self.end.cancelled() => {}
            () = unknown => {}
        }
    }

    /// Registers a request.
    pub(super) fn begin(self: &Arc<Self>) -> Ongoing {
        self.with(|entry| entry.requests += 1);
        Ongoing(self.clone())
    }

    /// Records that the connection waits for the rest of a request's body, or not any more.
    pub(super) fn set_incomplete(&self, is_incomplete: bool) {
        self.with(|entry| {
            if is_incomplete {
                entry.incomplete += 1;
            } else {
                entry.silent_since = Instant::now();
                entry.incomplete -= 1;
            }
        });
    }

    fn with<T>(&self, change: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.connections.all().get_mut(&self.number).map(change)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.all().remove(&self.number);
    }
}

impl Ongoing {
    /// Records that a request was permitted.
    pub(super) fn let_in(&self) {
        self.0.with(|entry| entry.is_known = true);
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.0.with(|entry| {
            entry.requests -= 1;
            entry.silent_since = Instant::now();
        });
    }
}

/// The address that counts for the limit: for IPv6 its /64 prefix, because one host has all addresses in it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Registers `count` connections from `address`.
    fn many(
        all: &Arc<Connections>,
        first: u64,
        count: usize,
        address: &str,
    ) -> Vec<Arc<Connection>> {
        let numbers = first..first + count as u64;
        let admitted = numbers.map(|number| all.admit(number, address.parse().unwrap()));
        admitted.flatten().map(Arc::new).collect()
    }

    fn gone(connections: &[Arc<Connection>]) -> usize {
        let gone = connections.iter().filter(|one| one.end.is_cancelled());
        gone.count()
    }

    #[test]
    fn a_silent_connection_gives_way_and_one_at_work_does_not() {
        let all = Arc::default();
        let mut silent = many(&all, 0, MOST, "127.0.0.1");
        silent[0].begin().let_in();
        let work: Vec<_> = silent[1..3].iter().map(Connection::begin).collect();
        assert_eq!(many(&all, 1000, MOST - 3, "127.0.0.1").len(), MOST - 3);
        assert_eq!(gone(&silent), MOST - 3);
        assert!(!silent[0].end.is_cancelled());
        silent.truncate(3);
        drop(work);
        assert_eq!(all.all().len(), 3);
    }

    #[test]
    fn where_all_are_at_work_there_is_no_place() {
        let all = Arc::default();
        let connections = many(&all, 0, MOST, "127.0.0.1");
        let work: Vec<_> = connections.iter().map(Connection::begin).collect();
        assert!(many(&all, 1000, 1, "127.0.0.1").is_empty());
        drop(work);
        assert_eq!(many(&all, 1000, 1, "127.0.0.1").len(), 1);
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        for (address, other) in [
            ("10.0.0.1", "10.0.0.2"),
            ("::ffff:10.0.0.1", "10.0.0.2"),
            ("2001:db8::1", "2001:db8:0:1::1"),
        ] {
            let all = Arc::default();
            let connections = many(&all, 0, MOST_OF_ONE_ADDRESS, address);
            let work: Vec<_> = connections.iter().map(Connection::begin).collect();
            let neighbour = address.replace("db8::1", "db8::2");
            assert!(many(&all, 1000, 1, &neighbour).is_empty(), "{address}");
            let others = many(&all, 2000, MOST - MOST_OF_ONE_ADDRESS, other);
            assert_eq!(others.len(), MOST - MOST_OF_ONE_ADDRESS, "{address}");
            drop(work);
            // The address with the most connections loses one.
            assert_eq!(many(&all, 3000, 1, "10.9.9.9").len(), 1);
            assert_eq!((gone(&connections), gone(&others)), (1, 0), "{address}");
        }
    }
}
