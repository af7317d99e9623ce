//! A server's lists: tools, prompts, resources and resource templates. `paging.rs` fetches them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;

use super::error::ListError;
use super::introduction::Introduction;

/// A server's lists. Each entry keeps its original bytes.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    /// The server's description of itself.
    pub introduction: Introduction,
    /// The entries of `tools/list`.
    pub tools: Vec<Bytes>,
    /// The entries of `prompts/list`; empty if the server declares no prompts. Likewise for the lists below.
    pub prompts: Result<Vec<Bytes>, ListError>,
    /// The entries of `resources/list`.
    pub resources: Result<Vec<Bytes>, ListError>,
    /// The entries of `resources/templates/list`.
    pub templates: Result<Vec<Bytes>, ListError>,
    /// How long the lists stay fresh (`ttlMs`, 2026-07-28), if the server gives a time.
    pub fresh_for: Option<Duration>,
    /// The session that it was fetched for.
    pub(super) user: u64,
    pub(super) compared: Arc<Mutex<BTreeSet<u64>>>,
}

/// The fetching of a server's lists, once for all sessions that ask for them at the same time.
#[derive(Debug, Default)]
pub(super) struct SharedListing {
    /// The last listing and when it began, as long as a session waits that may use it.
    last: tokio::sync::Mutex<Option<(Instant, Result<Listing, ListError>)>>,
    waiting: AtomicUsize,
}

/// Counts a session that waits, until it is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SharedListing {
    /// The result of a listing that began after this was called: of `fetch`, or one that another session began.
    pub(super) async fn get<F>(&self, fetch: impl FnOnce() -> F) -> Result<Listing, ListError>
    where
        F: Future<Output = Result<Listing, ListError>>,
    {
        let asked = Instant::now();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waits = Waits(&self.waiting);
        let mut last = self.last.lock().await;
        drop(waits);
        // The server may have changed its lists after an earlier listing had begun.
        let known = last.take().filter(|(began, _)| *began >= asked);
        let (began, fetched) = match known {
            Some(known) => known,
            None => (Instant::now(), fetch().await),
        };
        if self.waiting.load(Ordering::Relaxed) > 0 {
            *last = Some((began, fetched.clone()));
        }
        fetched
    }
}

impl Listing {
    /// Records that the tools were compared with the pins, so that this session may send calls over the connection.
    pub(crate) fn set_compared(&self) {
        self.compared.lock().insert(self.user);
    }
}
