//! A server's lists: tools, prompts, resources and resource templates. `paging.rs` fetches them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::error::CallError;
use super::introduction::Introduction;
use crate::tool::ServerName;

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

/// The reason why a list is missing.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ListError {
    /// The request for a page failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server does not have this list.
    #[error("server `{server}` has no {list}")]
    Missing {
        /// The server's name.
        server: ServerName,
        /// The method.
        list: &'static str,
    },
    /// The list took much longer than the tools.
    #[error("server `{server}` did not list its {list} in time")]
    Late {
        /// The server's name.
        server: ServerName,
        /// The method.
        list: &'static str,
    },
    /// The server refused, or its response is not a list.
    #[error("server `{server}` did not list its {list}: {reason}")]
    Refused {
        /// The server's name.
        server: ServerName,
        /// The method.
        list: &'static str,
        /// The server's message, or the fault of the response.
        reason: String,
    },
}
