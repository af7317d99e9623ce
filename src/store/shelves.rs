//! The things that replicas share and keep for a time: stored results, lists that can be made again, and counts.

use std::io;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::Allowance;

/// A kind of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemKind {
    /// Results of calls.
    Result,
    /// The lists of servers.
    Lists,
    /// The vectors of tools.
    Vectors,
}

impl ItemKind {
    /// Its name in the store.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Lists => "lists",
            Self::Vectors => "vectors",
        }
    }
}

/// The name of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) kind: ItemKind,
    /// The hash of those whom it belongs to; items of another scope cannot be read by its key.
    pub(crate) scope: String,
    /// Its key within the scope.
    pub(crate) key: String,
}

impl Item {
    /// The context in which its body is sealed, so that it cannot be opened in place of another item.
    #[must_use]
    pub(crate) fn context(&self) -> String {
        let Self { kind, scope, key } = self;
        format!("{} {scope} {key}", kind.name())
    }
}

/// The bodies of days, by day.
pub(crate) type Days = Vec<(String, Vec<u8>)>;

/// The things that are kept for a time. All functions but [`Shelves::charge`] wait for the store, so they belong on a thread that may block. Their
/// errors are those of [`super::Records`].
pub(crate) trait Shelves {
    /// Keeps an item for `lifetime`, sealed. It is committed when this returns. The oldest items are removed where a scope or a kind has
    /// too many.
    ///
    /// # Errors
    /// When the store does not answer.
    fn keep(&self, item: Item, body: &[u8], lifetime: Duration) -> io::Result<()>;

    /// The body of an item. `None` if there is none, or it cannot be opened.
    ///
    /// # Errors
    /// When the store does not answer.
    fn fetch(&self, item: Item) -> io::Result<Option<Vec<u8>>>;

    /// The keys of all items of a kind that belong to everyone.
    ///
    /// # Errors
    /// When the store does not answer.
    fn keys_of(&self, kind: ItemKind) -> io::Result<Vec<String>>;

    /// Replaces the counts of a day: `merge` gets those of all replicas, and returns the new ones.
    ///
    /// # Errors
    /// When the store does not answer.
    fn count(&self, day: &str, merge: &mut dyn FnMut(Option<Vec<u8>>) -> Vec<u8>)
    -> io::Result<()>;

    /// The counts of all days from `since` on.
    ///
    /// # Errors
    /// When the store does not answer.
    fn counts(&self, since: Option<&str>) -> io::Result<Days>;

    /// Counts what was used without having been granted, also beyond the limit.
    fn charge(&self, used: Allowance) -> BoxFuture<'_, io::Result<()>>;
}
