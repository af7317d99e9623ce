//! The lists of a server: its tools, prompts, resources and templates. `paging.rs` fetches them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::error::CallError;
use super::introduction::Introduction;
use crate::tool::ServerName;

/// The lists of a server; the entries of all pages, each in its own bytes.
#[derive(Debug, Clone)]
pub(crate) struct Listing {
    /// What it says of itself.
    pub introduction: Introduction,
    /// The entries of `tools/list`.
    pub tools: Vec<Bytes>,
    /// The entries of `prompts/list`, none where the server declares no prompts; the same holds for those below.
    pub prompts: Result<Vec<Bytes>, ListError>,
    /// The entries of `resources/list`.
    pub resources: Result<Vec<Bytes>, ListError>,
    /// The entries of `resources/templates/list`.
    pub templates: Result<Vec<Bytes>, ListError>,
    /// How long all of it stays fresh (`ttlMs`, 2026-07-28), if the server says so.
    pub fresh_for: Option<Duration>,
    /// The session that it was made for.
    pub(super) user: u64,
    pub(super) compared: Arc<Mutex<BTreeSet<u64>>>,
}

impl Listing {
    /// Notes that its tools were compared with those that were first seen: calls of this session may go over the connection.
    pub(crate) fn set_compared(&self) {
        self.compared.lock().insert(self.user);
    }
}

/// The reason that a list is missing.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ListError {
    /// A page did not come.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server has no such list.
    #[error("server `{server}` has no {list}")]
    Missing {
        /// Its name.
        server: ServerName,
        /// What was to be listed.
        list: &'static str,
    },
    /// It took much longer than the tools.
    #[error("server `{server}` did not list its {list} in time")]
    Late {
        /// Its name.
        server: ServerName,
        /// What was to be listed.
        list: &'static str,
    },
    /// The server refused, or its answer is no list.
    #[error("server `{server}` did not list its {list}: {reason}")]
    Refused {
        /// Its name.
        server: ServerName,
        /// What was to be listed.
        list: &'static str,
        /// What it said, or what is wrong with it.
        reason: String,
    },
}
