//! The secrets and rules that log lines obey: those of the process, or those of one runner in another program.

use parking_lot::RwLock;

use crate::secret::Masker;
use crate::shutdown;
use crate::tool::ServerName;

/// Whether a server's words are withheld; `None` once that is no longer known.
pub(super) type Rule = Box<dyn Fn(&ServerName) -> Option<bool> + Send + Sync>;

/// The secrets that log lines must not contain, and the rules that withhold the words of servers.
#[derive(Default)]
pub(super) struct Known {
    pub(super) masker: RwLock<Option<Masker>>,
    pub(super) rules: RwLock<Vec<Rule>>,
}

static PROCESS: Known = Known {
    masker: RwLock::new(None),
    rules: RwLock::new(Vec::new()),
};

/// Calls `use_it` with the secrets and rules for lines of the current task.
pub(super) fn known<T>(use_it: impl FnOnce(&Known) -> T) -> T {
    shutdown::with_log_state::<Known, T>(|own| use_it(own.unwrap_or(&PROCESS)))
}
