//! A process group: a server's process and its descendants on Unix.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::upstream::guard::Guard;

/// The leader of a process group and all processes that stay in the group. The guard watches it while this exists.
#[derive(Debug)]
pub(in crate::upstream) struct ProcessGroup {
    id: Option<GroupId>,
    guard: Arc<Guard>,
}

/// The id of a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upstream) struct GroupId(u32);

impl ProcessGroup {
    /// Starts `command` as the leader of a new group.
    pub(in crate::upstream) fn spawn(
        command: &mut Command,
        guard: &Arc<Guard>,
    ) -> io::Result<(Child, Self)> {
        command.process_group(0);
        guard.start();
        let child = command.spawn()?;
        let id = child.id().map(GroupId);
        if let Some(id) = id {
            guard.watch(id);
        }
        Ok((
            child,
            Self {
                id,
                guard: guard.clone(),
            },
        ))
    }

    /// Sends TERM to the group. Returns whether the platform has such a signal.
    pub(in crate::upstream) fn terminate(&self) -> bool {
        self.id.is_some_and(|id| {
            id.terminate();
            true
        })
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            id.kill();
            self.guard.release(id);
        }
    }
}

impl GroupId {
    /// Parses the output of `Display`.
    pub(in crate::upstream) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// Sends TERM to the group.
    pub(in crate::upstream) fn terminate(self) {
        self.signal(Signal::TERM);
    }

    /// Sends KILL to the group.
    pub(in crate::upstream) fn kill(self) {
        self.signal(Signal::KILL);
    }

    fn signal(self, signal: Signal) {
        // 0 would be our own group and 1 every process.
        let id = i32::try_from(self.0)
            .ok()
            .filter(|id| *id > 1)
            .and_then(Pid::from_raw);
        if let Some(id) = id {
            // This fails only if the group is empty.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
