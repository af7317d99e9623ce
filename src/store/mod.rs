//! The state that must last, and that several replicas may share.
//!
//! [`Records`] is the interface to the state that replicas share. A PostgreSQL database implements it (feature `postgres`). A run without
//! a store keeps the same state in files below its state directory. [`State`] says which of the two a run uses.
//!
//! *Never*: knows the purpose of a record; writes a secret that is neither sealed nor hashed.

#[cfg(feature = "postgres")]
mod postgres;
mod shelves;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::secret::Secret;
#[cfg(feature = "postgres")]
pub(crate) use postgres::{Copied, Keys, LATEST, Store, StoreError, StoreUrl};
#[cfg(feature = "postgres")]
#[allow(unused_imports, reason = "replicas talk to each other by them")]
pub(crate) use postgres::{PlacedAt, Replica, ReplicaId, Signal};
pub(crate) use shelves::{Item, ItemKind, Shelves};

/// The kinds of records that every replica keeps in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Tokens, invitations, browsers and grants.
    Identity,
    /// The keys of the authorization server.
    IdentityKeys,
    /// The definitions of tools that a person has approved, by server.
    Pins,
    /// The questions about calls that wait for a person, and the decisions.
    Approvals,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Self; 4] = [
        Self::Identity,
        Self::IdentityKeys,
        Self::Pins,
        Self::Approvals,
    ];

    /// Its name in the store.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::IdentityKeys => "identity-keys",
            Self::Pins => "pins",
            Self::Approvals => "approvals",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The records of a kind, by key.
pub(crate) type Table = BTreeMap<String, Arc<[u8]>>;

/// A change of one record: its key, and its new body, or `None` to remove it.
pub(crate) type Change = (String, Option<Vec<u8>>);

/// Makes the change of one record from its body and the time of the store in seconds since 1970.
pub(crate) type OneChange<'c> = dyn FnMut(Option<&[u8]>, u64) -> Option<Change> + 'c;

/// A lease of one record: who has it may replace the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    /// The key of the record.
    pub(crate) key: String,
    /// The fencing token, new for each lease.
    pub(crate) fence: String,
}

/// A share of a limit that a replica asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// The limit, and whose it is.
    pub(crate) key: String,
    /// The number of the period.
    pub(crate) period: i64,
    /// The time until its end.
    pub(crate) ends: Duration,
    /// The whole limit.
    pub(crate) most: u64,
    /// The share that is asked for.
    pub(crate) wanted: u64,
}

/// A line of an audit log, for the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuditLine {
    /// The chain that it is in.
    pub(crate) chain: String,
    /// Its number in the chain.
    pub(crate) place: i64,
    /// The day of the file, such as `2026-11-21`.
    pub(crate) day: String,
    /// The line, which has the hash of the one before it.
    pub(crate) text: String,
}

/// The outcome of an attempt to write lines of an audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditTaken {
    /// All of them are in the store.
    All,
    /// They are, and the line before them is not: the store has lost lines, as one that was restored from a copy.
    Gap,
    /// None was written: other lines are at their places, of another log with the name of this one.
    Foreign,
    /// Others have just been written to some of their places. The next attempt finds them.
    Again,
}

/// The bodies of records, by key.
pub(crate) type Bodies = Vec<(String, Vec<u8>)>;

/// The records that replicas share. Errors are in words; [`io::ErrorKind::TimedOut`] and [`io::ErrorKind::NotConnected`] mean that the store does not
/// answer now.
///
/// Functions that are not futures wait for the store, so they belong on a thread that may block, except [`Records::stamp`],
/// [`Records::fault`], and [`Records::all`] once it has been called.
pub(crate) trait Records: Shelves + fmt::Debug + Send + Sync {
    /// A version of the kind's records: it changes whenever this replica learns of a change.
    fn stamp(&self, kind: Kind) -> u64;

    /// This replica's copy of the kind's records, milliseconds old at most while the store answers.
    ///
    /// # Errors
    /// When the store has never answered, or not for five minutes, so that a revocation may be unknown.
    fn all(&self, kind: Kind) -> io::Result<Arc<Table>>;

    /// Learns of all changes that were committed before this was called. A failure leaves the records as they were.
    ///
    /// # Errors
    /// When the store does not answer.
    fn refresh(&self, kind: Kind) -> BoxFuture<'_, io::Result<()>>;

    /// Changes records of the kind while no other replica can. The change is committed when this returns.
    ///
    /// # Errors
    /// When the store does not answer; then nothing was changed, unless it failed during the commit.
    fn change(&self, kind: Kind, change: &mut dyn FnMut(&Table) -> Vec<Change>) -> io::Result<()>;

    /// Changes one record, as [`Records::change`] does, without the others. `change` gets its body and the time of the store in seconds since
    /// 1970, and returns the change, if there is one.
    ///
    /// # Errors
    /// As for [`Records::change`].
    fn change_one(&self, kind: Kind, key: &str, change: &mut OneChange<'_>) -> io::Result<()>;

    /// Replaces a ticket, which ends after `lifetime`: `swap` gets its body and returns the new one, or `None` to remove it. No other
    /// replica changes it meanwhile. It is committed when this returns.
    ///
    /// # Errors
    /// When the store does not answer.
    fn swap(
        &self,
        kind: &'static str,
        key: &str,
        lifetime: Duration,
        swap: &mut dyn FnMut(Option<Vec<u8>>) -> Option<Vec<u8>>,
    ) -> io::Result<()>;

    /// Seals a secret for this context.
    fn seal(&self, context: &str, plain: &[u8]) -> Vec<u8>;

    /// Opens a secret. `None` if it was changed, or is for another context or key.
    fn open(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>>;

    /// Whether a secret was sealed with the key before the current one.
    fn is_old(&self, sealed: &[u8]) -> bool;

    /// The keys that seal, each in base64url, with a comma between them; the first one is for new values.
    fn keys(&self) -> Secret<String>;

    /// The body of a login's record.
    fn load_login<'a>(&'a self, key: &'a str) -> BoxFuture<'a, io::Result<Option<Vec<u8>>>>;

    /// The bodies of all logins, by key.
    fn logins(&self) -> BoxFuture<'_, io::Result<Bodies>>;

    /// Waits until no other replica has the lease of a login's record, and takes it.
    fn lease_login<'a>(&'a self, key: &'a str) -> BoxFuture<'a, io::Result<Lease>>;

    /// Replaces a login's record under its lease; `None` removes it.
    fn save_login<'a>(
        &'a self,
        lease: &'a Lease,
        body: Option<Vec<u8>>,
    ) -> BoxFuture<'a, io::Result<()>>;

    /// Gives a lease back, soon.
    fn release_login(&self, lease: Lease);

    /// The granted share of a limit; 0 if it is used up. The shares of a period together never exceed the limit.
    fn allow(&self, allowance: Allowance) -> BoxFuture<'_, io::Result<u64>>;

    /// Writes lines of an audit log. Lines that are there already stay as they are. `before` is the day of the line before them, if that is
    /// still in its file.
    fn write_audit(
        &self,
        lines: Vec<AuditLine>,
        before: Option<String>,
    ) -> BoxFuture<'_, io::Result<AuditTaken>>;

    /// Why the store cannot be used now; `None` if it can be used.
    fn fault(&self) -> Option<String>;

    /// The schemas before and after the update that this process has made, if it has made one.
    fn migrated(&self) -> Option<(i32, i32)>;

    /// The database itself, for what replicas tell each other.
    #[cfg(feature = "postgres")]
    fn database(&self) -> Option<&Store>;
}

/// The place where the state of a run lasts: files below a directory, and the store for the state that replicas share.
#[derive(Debug, Clone)]
pub(crate) struct State {
    /// The state directory.
    pub(crate) directory: PathBuf,
    /// The store, if there is one.
    pub(crate) shared: Option<Arc<dyn Records>>,
}

impl State {
    /// All of it is in files below `directory`.
    #[must_use]
    pub(crate) fn of_files(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            shared: None,
        }
    }
}
