use std::fmt;
use std::io;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::upstream::guard::Guard;

/// A process that leads a group of its own, and all that stayed in it; watched by the guard as long as this lives.
#[derive(Debug)]
pub(in crate::upstream) struct ProcessGroup {
    id: Option<GroupId>,
    guard: Arc<Guard>,
}

/// The id of a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upstream) struct GroupId(u32);

impl ProcessGroup {
    /// Starts `command` as the leader of a group.
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

    /// Asks all of them to end; says whether they can be asked here at all.
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
    /// Reads what `Display` printed.
    pub(in crate::upstream) fn parse(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// Asks all of the group to end.
    pub(in crate::upstream) fn terminate(self) {
        self.signal(Signal::TERM);
    }

    /// Ends all of the group.
    pub(in crate::upstream) fn kill(self) {
        self.signal(Signal::KILL);
    }

    fn signal(self, signal: Signal) {
        // 0 and 1 would be our own group and everybody's.
        let id = i32::try_from(self.0)
            .ok()
            .filter(|id| *id > 1)
            .and_then(Pid::from_raw);
        if let Some(id) = id {
            // It fails when nobody is left, which is what is wanted.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
