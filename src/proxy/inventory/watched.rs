//! The state of one server's listing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::catalog::Key;
use crate::config::{Server, Transport};
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

impl Progress {
    /// Whether nothing is in progress and nothing will be repeated.
    fn is_to_begin(&self) -> bool {
        match self {
            Self::NotAsked => true,
            Self::Failed(reason) => reason.is_stop(),
            Self::UnderWay | Self::Listed => false,
        }
    }
}

/// A listed server: its configuration entry, and the token that ends the listing.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub(super) key: Key,
    pub(super) watch: Arc<Watch>,
    pub(super) stop: CancellationToken,
    /// Whether it is behind a URL.
    pub(super) is_remote: bool,
    /// Whether its first start may take long for once, because it installs or reads something.
    pub(super) prepares: bool,
}

/// The listing of one server, shared by its task and those who wait for it.
#[derive(Debug)]
pub(super) struct Watch {
    asked: Notify,
    /// Whether the server was stopped after the last request.
    is_stopped: AtomicBool,
    /// Notified when the server is stopped.
    pub(super) stopped: Notify,
    /// Notified when a client waits for this listing.
    pub(super) urgent: Notify,
    /// Whether the server is started for the next listing only, and ends afterwards.
    pub(super) is_brief: AtomicBool,
    /// Whether an earlier process failed to list the server a short time ago.
    pub(super) is_doubtful: AtomicBool,
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
    /// The server of a configuration entry.
    pub(super) fn new(key: Key, entry: Option<&Server>) -> Self {
        let prepares = entry.is_some_and(|entry| match &entry.transport {
            Transport::Stdio(program) => {
                program.may_install() || program.reads_help() || program.sandbox.is_some()
            }
            Transport::Http(_) | Transport::Sse(_) | Transport::Folder(_) => false,
        });
        Self {
            key,
            is_remote: entry.is_some_and(|entry| entry.remote().is_some()),
            prepares,
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
            is_stopped: AtomicBool::new(false),
            stopped: Notify::new(),
            urgent: Notify::new(),
            is_brief: AtomicBool::new(false),
            is_doubtful: AtomicBool::new(false),
            state: watch::Sender::new(state),
        })
    }

    /// Requests a first listing, once, or the first after the server was stopped. Returns whether it did.
    pub(super) fn begin(&self) -> bool {
        let is_new = self.state.send_if_modified(|state| {
            let is_new = state.progress.is_to_begin();
            if is_new {
                state.progress = Progress::UnderWay;
                state.since = Some(Instant::now());
            }
            is_new
        });
        if is_new {
            self.ask();
        }
        is_new
    }

    /// Requests a listing soon.
    pub(super) fn ask(&self) {
        self.is_stopped.store(false, Ordering::Relaxed);
        self.asked.notify_one();
    }

    /// Resolves when a listing is requested.
    pub(super) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Whether the server was stopped after the last request.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Ends the listing in progress, or that was requested, and tells those who wait for it.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        // First, so that those who wait know of the stop when they see what it did.
        self.stopped.notify_waiters();
        self.note_stopped();
    }

    /// Tells those who wait for the listing in progress that the server was stopped.
    pub(super) fn note_stopped(&self) {
        self.state.send_if_modified(|state| {
            let is_under_way = state.is_under_way();
            if is_under_way {
                state.progress = Progress::Failed(Arc::new(NotListed::Stopped));
                state.rounds += 1;
            }
            is_under_way
        });
    }

    /// Whether an earlier process failed to list the server a short time ago, and this one has not finished a listing.
    pub(super) fn is_doubtful(&self) -> bool {
        self.is_doubtful.load(Ordering::Relaxed) && self.state.borrow().rounds == 0
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
