//! The state of one server's listing.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::catalog::Key;
use crate::upstream::NotListed;

/// The progress of one server's listing.
#[derive(Debug, Clone)]
pub(crate) enum Progress {
    /// It was not requested in this run.
    NotAsked,
    /// It is in progress.
    UnderWay,
    /// It succeeded.
    Listed,
    /// It failed for this reason, and will be repeated.
    Failed(Arc<NotListed>),
}

/// A listed server: its configuration entry, and the token that ends the listing.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) key: Key,
    pub(super) watch: Arc<Watch>,
    pub(super) stop: CancellationToken,
}

/// The listing of one server, shared by its task and those who wait for it.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) asked: Notify,
    /// Notified when a client waits for this listing.
    pub(super) urgent: Notify,
    /// Whether the server is started for the next listing only, and ends afterwards.
    pub(super) is_brief: AtomicBool,
    pub(super) state: watch::Sender<State>,
}

#[derive(Debug, Clone)]
pub(super) struct State {
    pub(super) progress: Progress,
    /// The number of finished listings, including failed ones.
    pub(super) rounds: u64,
    /// When it was first requested in this run.
    pub(super) since: Option<Instant>,
}

impl Watched {
    pub(super) fn new(key: Key) -> Self {
        Self {
            key,
            watch: Watch::new(),
            stop: CancellationToken::new(),
        }
    }
}

impl Watch {
    fn new() -> Arc<Self> {
        let state = State {
            progress: Progress::NotAsked,
            rounds: 0,
            since: None,
        };
        Arc::new(Self {
            asked: Notify::new(),
            urgent: Notify::new(),
            is_brief: AtomicBool::new(false),
            state: watch::Sender::new(state),
        })
    }

    /// Requests a first listing, once.
    pub(super) fn begin(&self) {
        let is_new = self.state.send_if_modified(|state| {
            let is_new = matches!(state.progress, Progress::NotAsked);
            if is_new {
                state.progress = Progress::UnderWay;
                state.since = Some(Instant::now());
            }
            is_new
        });
        if is_new {
            self.asked.notify_one();
        }
    }

    /// Whether it was requested and has not succeeded in this run.
    pub(super) fn is_first(&self) -> bool {
        let state = self.state.borrow();
        state.is_under_way() && state.rounds == 0
    }
}

impl State {
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self.progress, Progress::UnderWay)
    }
}
