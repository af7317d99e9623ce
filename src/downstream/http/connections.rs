//! Limits on the number of connections, and which connection is closed for a new one.
//!
//! A connection is known once a request on it was permitted. Unknown ones hold no place: when there are too many, the oldest is closed,
//! also if its request waits for an answer. So a health check is always answered, and no stranger takes a place.
//!
//! A known connection without a request in flight, or with a request whose body is incomplete, holds its place without need. When places
//! are short, such a connection is closed: first one of the client with the most connections, then the one that was silent for longest.
//! Where all are at work, an identity with more than its share loses its oldest one.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

/// The maximum number of known connections.
const MOST: usize = 512;
/// The number of unknown connections that there is always room for.
const UNKNOWN: usize = 32;
/// The maximum number of connections of one address. Loopback has no such limit, because all local clients and
/// reverse proxies share it.
const MOST_OF_ONE_ADDRESS: usize = 384;
/// The number of connections that an identity keeps for its requests in flight when places are short.
const SHARE: usize = MOST / 8;

/// The time limit for the first permitted request on a connection.
const UNKNOWN_TIME: Duration = Duration::from_secs(5);

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Connections {
    all: Mutex<All>,
}

/// The connections by their numbers, which are in the order of their opening.
#[derive(Debug, Default)]
struct All(HashMap<u64, Entry>);

#[derive(Debug)]
struct Entry {
    address: IpAddr,
    /// Who sent the requests that were permitted; `None` before the first.
    client: Option<Client>,
    /// The number of requests whose responses have not been sent completely.
    requests: usize,
    /// The number of those whose bodies it waits for, so that nothing is being processed for them.
    incomplete: usize,
    silent_since: Instant,
    end: CancellationToken,
}

/// The sender of permitted requests.
#[derive(Debug, PartialEq, Eq)]
enum Client {
    Identity(String),
    /// One without an identity, or several by way of a proxy.
    Any,
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
    /// Registers a connection from `address`. `None` if that has too many, all with requests in flight.
    pub(super) fn admit(self: &Arc<Self>, number: u64, address: IpAddr) -> Option<Connection> {
        let address = network(address);
        let mut all = self.all();
        let is_own = |entry: &Entry| entry.address == address;
        let own = all.0.values().filter(|entry| is_own(entry)).count();
        if own >= MOST_OF_ONE_ADDRESS && !address.is_loopback() {
            let unknown = all.oldest_unknown(is_own);
            let least = unknown.or_else(|| all.idlest(is_own))?;
            all.close(least);
        } else if all.0.len() >= MOST + UNKNOWN {
            let least = all.oldest_unknown(|_| true)?;
            all.close(least);
        }
        let end = CancellationToken::new();
        let entry = Entry {
            address,
            client: None,
            requests: 0,
            incomplete: 0,
            silent_since: Instant::now(),
            end: end.clone(),
        };
        all.0.insert(number, entry);
        Some(Connection {
            number,
            end,
            connections: self.clone(),
        })
    }

    fn all(&self) -> MutexGuard<'_, All> {
        // Each change is a single step.
        self.all.lock()
    }
}

impl All {
    /// The unknown connection to close first: of the address with the most connections the oldest.
    fn oldest_unknown(&self, is_meant: impl Fn(&Entry) -> bool) -> Option<u64> {
        let mut counts = HashMap::new();
        for entry in self.0.values() {
            *counts.entry(entry.address).or_insert(0) += 1;
        }
        let all = self.0.iter();
        let unknown = all.filter(|(_, entry)| entry.client.is_none() && is_meant(entry));
        let oldest =
            unknown.min_by_key(|(number, entry)| (Reverse(counts[&entry.address]), **number));
        oldest.map(|(number, _)| *number)
    }

    /// The known connection to close first among those that do nothing.
    fn idlest(&self, is_meant: impl Fn(&Entry) -> bool) -> Option<u64> {
        let mut counts = HashMap::new();
        for entry in self.0.values() {
            *counts.entry(entry.owner()).or_insert(0) += 1;
        }
        let all = self.0.iter();
        let idle =
            all.filter(|(_, entry)| entry.is_idle() && entry.client.is_some() && is_meant(entry));
        let idlest =
            idle.min_by_key(|(_, entry)| (Reverse(counts[&entry.owner()]), entry.silent_since));
        idlest.map(|(number, _)| *number)
    }

    /// The oldest connection of the identity with the most, if it has more than its share.
    fn oldest_of_most(&self) -> Option<u64> {
        let mut counts: HashMap<&str, (usize, u64)> = HashMap::new();
        for (number, entry) in &self.0 {
            if let Some(Client::Identity(identity)) = &entry.client {
                let (count, oldest) = counts.entry(identity).or_insert((0, *number));
                *count += 1;
                *oldest = (*number).min(*oldest);
            }
        }
        let most = counts.into_values().max_by_key(|(count, _)| *count);
        most.filter(|(count, _)| *count > SHARE)
            .map(|(_, oldest)| oldest)
    }

    fn close(&mut self, number: u64) {
        if let Some(entry) = self.0.remove(&number) {
            entry.end.cancel();
        }
    }
}

impl Entry {
    /// Whether nothing is being processed for it.
    fn is_idle(&self) -> bool {
        self.requests <= self.incomplete
    }

    /// The identity, or the address of a client without one.
    fn owner(&self) -> (Option<&str>, Option<IpAddr>) {
        match &self.client {
            Some(Client::Identity(identity)) => (Some(identity), None),
            Some(Client::Any) | None => (None, Some(self.address)),
        }
    }
}

impl Connection {
    /// Resolves when the connection must be closed: for a new one, or because no request on it was permitted in time.
    pub(super) async fn over(&self) {
        let unknown = async {
            loop {
                tokio::time::sleep(UNKNOWN_TIME).await;
                match self.with(|entry| (entry.client.is_some(), entry.requests)) {
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

    /// Gives the connection a place, as a request of `identity`, or of no identity, is permitted. `false` if all places are held by
    /// requests in flight, or the connection was closed for another.
    pub(super) fn let_in(&self, identity: Option<&str>) -> bool {
        let mut all = self.connections.all();
        let Some(entry) = all.0.get_mut(&self.number) else {
            return false;
        };
        match &mut entry.client {
            Some(Client::Identity(known)) if Some(known.as_str()) == identity => return true,
            Some(client) => {
                *client = Client::Any;
                return true;
            }
            None => {}
        }
        let known = all.0.values().filter(|entry| entry.client.is_some());
        if known.count() >= MOST {
            let idlest = all.idlest(|_| true);
            let Some(least) = idlest.or_else(|| all.oldest_of_most()) else {
                return false;
            };
            all.close(least);
        }
        if let Some(entry) = all.0.get_mut(&self.number) {
            let identity = identity.map(|identity| Client::Identity(identity.to_owned()));
            entry.client = Some(identity.unwrap_or(Client::Any));
        }
        true
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
        self.connections.all().0.get_mut(&self.number).map(change)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.all().0.remove(&self.number);
    }
}

impl Ongoing {
    /// Gives the connection a place, as the request was permitted. Without one it stays unknown.
    pub(super) fn let_in(&self) {
        self.0.let_in(None);
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

    /// Registers connections, each with a permitted request in flight.
    fn at_work(
        all: &Arc<Connections>,
        first: u64,
        count: usize,
        identity: Option<&str>,
    ) -> (Vec<Arc<Connection>>, Vec<Ongoing>) {
        let connections = many(all, first, count, "127.0.0.1");
        let begun = connections.iter().map(|one| {
            assert!(one.let_in(identity));
            one.begin()
        });
        let work = begun.collect();
        (connections, work)
    }

    fn gone(connections: &[Arc<Connection>]) -> usize {
        let gone = connections.iter().filter(|one| one.end.is_cancelled());
        gone.count()
    }

    #[test]
    fn an_unknown_connection_gives_way_also_with_a_request_in_flight() {
        let all = Arc::default();
        let (known, work) = at_work(&all, 0, 3, Some("token:anna"));
        let strangers = many(&all, 10, MOST + UNKNOWN - 3, "127.0.0.1");
        let waiting: Vec<_> = strangers.iter().map(Connection::begin).collect();
        let late = many(&all, 1000, 5, "127.0.0.1");
        assert_eq!((late.len(), gone(&late), gone(&strangers)), (5, 0, 5));
        assert!(strangers[..5].iter().all(|one| one.end.is_cancelled()));
        assert!(!strangers[0].let_in(None) && late[0].let_in(None));
        assert_eq!(gone(&known), 0);
        drop((work, waiting, known, strangers));
        assert_eq!(all.all().0.len(), 5);
    }

    #[test]
    fn a_silent_known_connection_gives_way_to_a_known_one_and_one_at_work_does_not() {
        let all = Arc::default();
        let (connections, mut work) = at_work(&all, 0, MOST, None);
        let late = many(&all, 1000, 2, "127.0.0.1");
        assert!(!late[0].let_in(None));
        drop(work.remove(7));
        assert_eq!(gone(&connections), 0);
        let _more = late[0].begin();
        assert!(late[0].let_in(None) && !late[1].let_in(None));
        assert_eq!(gone(&connections), 1);
        assert!(connections[7].end.is_cancelled());
        // Health checks need no place.
        assert_eq!(many(&all, 2000, 100, "127.0.0.1").len(), 100);
        assert_eq!(gone(&connections), 1);
    }

    #[test]
    fn an_identity_with_more_than_its_share_gives_way_also_at_work() {
        let all = Arc::default();
        let (few, _few) = at_work(&all, 0, SHARE, Some("token:anna"));
        let (many_of_one, _work) = at_work(&all, 1000, MOST - SHARE, Some("token:mallory"));
        let (late, _late) = at_work(&all, 2000, 20, Some("token:bo"));
        assert_eq!((gone(&few), gone(&many_of_one), gone(&late)), (0, 20, 0));
        assert!(many_of_one[..20].iter().all(|one| one.end.is_cancelled()));
        // It also gives way to its own newer ones.
        let (_, _own) = at_work(&all, 3000, 5, Some("token:mallory"));
        assert_eq!((gone(&few), gone(&many_of_one), gone(&late)), (0, 25, 0));
    }

    #[test]
    fn a_connection_of_several_identities_is_that_of_none() {
        let all = Arc::default();
        let (proxy, _work) = at_work(&all, 0, MOST, Some("user:anna"));
        assert!(proxy.iter().all(|one| one.let_in(Some("user:bo"))));
        let late = many(&all, 1000, 1, "127.0.0.1");
        assert!(!late[0].let_in(Some("user:bo")));
        assert_eq!(gone(&proxy), 0);
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
            assert!(connections.iter().all(|one| one.let_in(None)));
            let work: Vec<_> = connections.iter().map(Connection::begin).collect();
            let neighbour = address.replace("db8::1", "db8::2");
            assert!(many(&all, 1000, 1, &neighbour).is_empty(), "{address}");
            let others = many(&all, 2000, MOST - MOST_OF_ONE_ADDRESS, other);
            assert_eq!(others.len(), MOST - MOST_OF_ONE_ADDRESS, "{address}");
            assert!(others.iter().all(|one| one.let_in(None)));
            drop(work);
            // The address with the most connections loses one.
            let late = many(&all, 3000, 1, "10.9.9.9");
            assert!(late[0].let_in(None));
            assert_eq!((gone(&connections), gone(&others)), (1, 0), "{address}");
        }
    }
}
