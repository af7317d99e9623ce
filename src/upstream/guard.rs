//! A companion process that outlives us by a moment, to end the servers we could not.
//!
//! A server is a process group of its own. When `mcpzip` is killed hard it can end nothing any more, and a server that
//! ignores the end of its stdin, or runs behind a package runner, would stay. So with the first server a guard is
//! started: the same binary under a hidden command, in a session of its own, which is told each group that comes and
//! goes through a pipe. When the pipe ends, however that came about, it ends the groups that are left.

use std::io;
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::process_group::ProcessGroup;
use crate::mcp::{Frame, Outbox};
use crate::shutdown::Tasks;

/// The hidden command under which the binary is a guard.
pub const COMMAND: &str = "__guard";

/// The guard's lead: between TERM and KILL.
const GRACE: std::time::Duration = std::time::Duration::from_millis(150);

#[derive(Debug)]
struct Running {
    outbox: Outbox,
    child: Child,
    /// Writes to the guard; it outlives the tasks of the run, whose servers it watches.
    tasks: Tasks,
}

/// The near end: tells the guard which process groups there are.
#[derive(Debug, Default)]
pub(super) struct Guard {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    NotStarted,
    Running(Box<Running>),
    /// It could not be started; servers run without it.
    Missing,
}

impl Guard {
    /// Has `group` ended should we be killed.
    pub(super) fn watch(&self, group: &ProcessGroup) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::NotStarted) {
            *state = Running::start().map_or_else(
                |error| {
                    tracing::warn!(%error, "no guard process: servers may stay behind if mcpzip is killed");
                    State::Missing
                },
                |running| State::Running(Box::new(running)),
            );
        }
        state.tell('+', group);
    }

    /// Forgets `group`, which has ended.
    pub(super) fn release(&self, group: &ProcessGroup) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).tell('-', group);
    }

    /// Ends the guard, after the last server has ended.
    pub(super) async fn close(&self) {
        let state = std::mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), State::Missing);
        if let State::Running(mut running) = state {
            running.outbox.close();
            running.tasks.finish().await;
            // Reaped, so that no zombie is left where nobody else would do it; it ends at once.
            let _ = tokio::time::timeout(GRACE, running.child.wait()).await;
        }
    }
}

impl State {
    fn tell(&self, sign: char, group: &ProcessGroup) {
        if let Self::Running(running) = self {
            // A guard that is gone was reported when its pipe broke.
            let _ = running.outbox.push(&Frame::from(format!("{sign}{group}")));
        }
    }
}

impl Running {
    fn start() -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let stdin = child.stdin.take().expect("stdin is piped");
        let (outbox, tasks) = (Outbox::new(), Tasks::new());
        let writer = outbox.clone();
        tasks.spawn(async move {
            if let Err(error) = writer.write_to(stdin).await {
                tracing::warn!(%error, "the guard process is gone");
            }
        });
        Ok(Self { outbox, child, tasks })
    }
}

/// Runs as the guard: until stdin ends or the parent is dead, then ends the groups that are left.
///
/// # Errors
/// When stdin cannot be read.
pub async fn run() -> io::Result<()> {
    // Away from the client's terminal and process group, so that what ends those does not end the guard first.
    #[cfg(unix)]
    rustix::process::setsid()?;
    let mut parent_death = ParentDeath::watch()?;
    let mut groups = Vec::<ProcessGroup>::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    loop {
        let line = tokio::select! {
            line = lines.next_line() => line?,
            () = parent_death.wait() => None,
        };
        let Some(line) = line else { break };
        if let Some(group) = line.strip_prefix('+').and_then(ProcessGroup::parse) {
            groups.push(group);
        } else if let Some(group) = line.strip_prefix('-').and_then(ProcessGroup::parse) {
            groups.retain(|known| *known != group);
        }
    }
    if groups.is_empty() {
        return Ok(());
    }
    groups.iter().for_each(ProcessGroup::terminate);
    tokio::time::sleep(GRACE).await;
    groups.iter().for_each(ProcessGroup::kill);
    Ok(())
}

/// Linux tells a process when its parent dies: heard beside the end of the pipe, should that be held open by another.
#[cfg(target_os = "linux")]
struct ParentDeath {
    signal: tokio::signal::unix::Signal,
    parent: Option<rustix::process::Pid>,
}

#[cfg(target_os = "linux")]
impl ParentDeath {
    fn watch() -> io::Result<Self> {
        use rustix::process::{Signal, getppid, set_parent_process_death_signal};
        let signal = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        set_parent_process_death_signal(Some(Signal::TERM))?;
        Ok(Self { signal, parent: getppid() })
    }

    async fn wait(&mut self) {
        loop {
            self.signal.recv().await;
            if rustix::process::getppid() != self.parent {
                return;
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
struct ParentDeath;

#[cfg(not(target_os = "linux"))]
impl ParentDeath {
    #[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
    fn watch() -> io::Result<Self> {
        Ok(Self)
    }

    async fn wait(&mut self) {
        std::future::pending().await
    }
}
