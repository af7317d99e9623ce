//! Counters of what was done in people's names.

use std::sync::atomic::AtomicU64;

/// Counters of this run.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Logins of people on the page.
    pub(crate) logins: AtomicU64,
    pub(crate) failed_logins: AtomicU64,
    /// Exchanges of tokens.
    pub(crate) exchanges: AtomicU64,
    pub(crate) failed_exchanges: AtomicU64,
}
