//! A server's lists: tools, prompts, resources and resource templates. `paging.rs` fetches them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

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

impl Listing {
    /// Records that the tools were compared with the pins, so that this session may send calls over the connection.
    pub(crate) fn set_compared(&self) {
        self.compared.lock().insert(self.user);
    }
}
