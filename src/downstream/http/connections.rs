//! How many connections there may be, and which of them gives way to a new one.
//!
//! A connection without a request under way, or with one whose body has not come whole, holds a permit for nothing. Where permits
//! are short, such a one ends: first one that never showed a request that was let in, then one of the address with the most, then
//! the one that was silent for longest.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// Connections at once,
const MOST: usize = 512;
/// and those of one address among them. This machine's own address has no such limit: every client on it, and whatever comes
/// through a reverse proxy on it, has that address.
const MOST_OF_ONE_ADDRESS: usize = 384;

/// How long a connection may be there without a request that is let in.
const UNKNOWN_TIME: Duration = Duration::from_secs(5);

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Mutex<HashMap<u64, Entry>>,
}

#[derive(Debug)]
struct Entry {
    address: IpAddr,
    /// A request on it was let in.
    is_known: bool,
    /// Requests whose answers have not gone out whole.
    requests: usize,
    /// The rest of a request's body is waited for: until it comes, nothing is worked on.
    is_incomplete: bool,
    silent_since: Instant,
    end: CancellationToken,
}

/// One connection, until this is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    number: u64,
    end: CancellationToken,
    connections: Arc<Connections>,
}

/// A request on a connection, until its answer has gone out.
#[derive(Debug)]
pub(super) struct Ongoing(Arc<Connection>);

impl Connections {
    /// A permit for a connection from `address`; `None` where all are taken, each by a request under way.
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
                .filter(|(_, entry)| entry.requests == 0 || entry.is_incomplete)
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
            is_incomplete: false,
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
    /// Waits until it has to go: for others, or since no request on it was let in.
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

    /// A request has come on it.
    pub(super) fn begin(self: &Arc<Self>) -> Ongoing {
        self.with(|entry| entry.requests += 1);
        Ongoing(self.clone())
    }

    /// The rest of a request's body has to be waited for, or some of it has come.
    pub(super) fn set_incomplete(&self, is_incomplete: bool) {
        self.with(|entry| {
            if !is_incomplete {
                entry.silent_since = Instant::now();
            }
            entry.is_incomplete = is_incomplete;
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
    /// The request was let in.
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

/// An address, or what counts as one: whoever has one of IPv6 has its 2^64 neighbours as well.
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

    /// So many connections from `address`.
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
            // The address with the most gives way.
            assert_eq!(many(&all, 3000, 1, "10.9.9.9").len(), 1);
            assert_eq!((gone(&connections), gone(&others)), (1, 0), "{address}");
        }
    }
}
