//! Waits for a change of a directory, or of records in the store.
//!
//! On Linux the kernel reports that of a directory. Elsewhere, and if the kernel has no more watches, the caller looks again every second.
//! Changes of the store come to the memory of this process by notifications.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::fs::inotify;
#[cfg(target_os = "linux")]
use tokio::net::unix::pipe::Receiver;

use crate::store::{Kind, Records};

/// The time between two looks at the memory of this process.
const LOOK: Duration = Duration::from_millis(50);

/// The time after which the caller looks again if nothing reports changes.
const PAUSE: Duration = Duration::from_secs(1);

/// The time after which it looks again all the same: a file system over the network reports no changes of other machines.
#[cfg(target_os = "linux")]
const LONG_PAUSE: Duration = Duration::from_secs(5);

/// Reports changes since it was made.
#[derive(Debug)]
pub(crate) struct Watch {
    #[cfg(target_os = "linux")]
    changes: Option<Receiver>,
    shared: Option<Shared>,
}

/// The records, and the number of the last change that was reported.
#[derive(Debug)]
struct Shared {
    records: Arc<dyn Records>,
    seen: AtomicU64,
}

impl Shared {
    /// Resolves after a change, or after some time.
    async fn changed(&self) {
        for _ in 0..PAUSE.as_millis() / LOOK.as_millis() {
            let stamp = self.records.stamp(Kind::Approvals);
            if self.seen.swap(stamp, Ordering::Relaxed) != stamp {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Watch {
    /// Watches the store.
    pub(super) fn of(records: Arc<dyn Records>) -> Self {
        let seen = AtomicU64::new(records.stamp(Kind::Approvals));
        Self {
            #[cfg(target_os = "linux")]
            changes: None,
            shared: Some(Shared { records, seen }),
        }
    }
}

#[cfg(target_os = "linux")]
impl Watch {
    /// Call it in the runtime.
    pub(super) fn new(directory: &Path) -> Self {
        let changes = || -> std::io::Result<_> {
            let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
            let changes = inotify::init(flags)?;
            let events = inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::DELETE;
            inotify::add_watch(&changes, directory, events)?;
            // It is read like a pipe.
            Receiver::from_owned_fd_unchecked(changes)
        };
        Self {
            changes: changes().ok(),
            shared: None,
        }
    }

    /// Resolves after a change, or after some time.
    pub(crate) async fn changed(&self) {
        if let Some(shared) = &self.shared {
            return shared.changed().await;
        }
        let Some(changes) = &self.changes else {
            return tokio::time::sleep(PAUSE).await;
        };
        let Ok(Ok(())) = tokio::time::timeout(LONG_PAUSE, changes.readable()).await else {
            return;
        };
        // Their content does not matter.
        let mut events = [0; 4096];
        while changes.try_read(&mut events).is_ok_and(|length| length > 0) {}
    }
}

#[cfg(not(target_os = "linux"))]
impl Watch {
    pub(super) fn new(_: &Path) -> Self {
        Self { shared: None }
    }

    /// Resolves after some time.
    pub(crate) async fn changed(&self) {
        if let Some(shared) = &self.shared {
            return shared.changed().await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
