//! Waits for a change of a directory.
//!
//! On Linux the kernel reports it. Elsewhere, and if the kernel has no more watches, the caller looks again every second.

use std::path::Path;
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::fs::inotify;
#[cfg(target_os = "linux")]
use tokio::net::unix::pipe::Receiver;

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
        let changes = changes().ok();
        Self { changes }
    }

    /// Resolves after a change, or after some time.
    pub(crate) async fn changed(&self) {
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
        Self {}
    }

    /// Resolves after some time.
    #[expect(clippy::unused_self, reason = "as on Linux")]
    pub(crate) async fn changed(&self) {
        tokio::time::sleep(PAUSE).await;
    }
}
