//! The part of the store that replicas use.

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::seal::IdentityHash;

/// The store does not answer, or refuses.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unavailable(pub(crate) String);

/// An event of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// A replica has sent a notification.
    Message {
        /// The topic of the notification.
        topic: String,
        /// The replica.
        sender: String,
        /// The text of the notification.
        payload: String,
    },
    /// Notifications may be missing.
    Reread,
}

/// Something that is at one replica at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LeaseKey {
    /// Whose it is, as bytes of any length.
    pub(crate) owner: Vec<u8>,
    /// The name of the lease.
    pub(crate) name: String,
}

/// The lease of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    /// The replica that has it.
    pub(crate) replica: String,
    /// The number of leases so far: a later one has a higher number.
    pub(crate) fence: u64,
    /// The time until it ends, unless it is prolonged.
    pub(crate) left: Duration,
    /// Whether it was taken just now.
    pub(crate) is_new: bool,
}

type Answer<T> = BoxFuture<'static, Result<T, Unavailable>>;

/// The store, as replicas use it. Each function that asks it has a time limit.
pub(crate) trait Backing: Debug + Send + Sync {
    /// The id of this replica: one word of letters and digits.
    fn id(&self) -> &str;

    /// Notes for `mcpzip store check` whether this replica reaches itself at its URL.
    fn note_reached(&self, is_reached: bool);

    /// The URL of a replica that lives. It asks nothing.
    fn peer(&self, replica: &str) -> Option<String>;

    /// Removes this replica, which has ended its work.
    fn retire(&self) -> Answer<()>;

    /// Sends a notification to all replicas.
    fn notify(&self, topic: &'static str, payload: String) -> Answer<()>;

    /// The notifications from now on.
    fn events(&self) -> mpsc::Receiver<Event>;

    /// Those of these sessions that have changes: the name, the body, and whether it has ended.
    fn sessions(&self, names: Vec<String>) -> Answer<Vec<(String, Vec<u8>, bool)>>;

    /// The body of a session with changes, and whether it has ended.
    fn session(&self, name: String) -> Answer<Option<(Vec<u8>, bool)>>;

    /// Writes the body of a session, which is named after its identity, if it was `before` until now; returns whether it was. `expires` is in seconds since 1970.
    fn write_session(
        &self,
        session: (IdentityHash, String),
        before: Option<Vec<u8>>,
        body: Vec<u8>,
        expires: u64,
    ) -> Answer<bool>;

    /// Marks a session of `owner` as ended.
    fn end_session(&self, owner: IdentityHash, name: String, expires: u64) -> Answer<()>;

    /// Keeps events of a stream for a time.
    fn keep_answer(
        &self,
        session: String,
        stream: String,
        events: Vec<(u64, Bytes)>,
        kept: Duration,
    ) -> Answer<()>;

    /// Takes the lease of a home for `lasting` if it is free, and returns who has it then.
    fn take_home(&self, place: LeaseKey, lasting: Duration) -> Answer<Home>;

    /// Prolongs leases of this replica, each with its fence; returns those that it still has.
    fn keep_homes(&self, leases: Vec<(LeaseKey, u64)>, lasting: Duration) -> Answer<Vec<LeaseKey>>;

    /// Gives a lease back. With `is_over`, the next one is the first again.
    fn leave_home(&self, place: LeaseKey, fence: u64, is_over: bool) -> Answer<()>;

    /// The kept events of a stream behind `number`.
    fn kept_answer(
        &self,
        session: String,
        stream: String,
        number: u64,
    ) -> Answer<Vec<(u64, Bytes)>>;
}

/// The store on PostgreSQL.
#[cfg(feature = "postgres")]
pub(crate) fn of_store(store: crate::store::Store, tasks: crate::shutdown::Tasks) -> impl Backing {
    postgres::OnPostgres { store, tasks }
}

#[cfg(feature = "postgres")]
mod postgres;
