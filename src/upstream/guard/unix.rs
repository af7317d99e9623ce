//! A companion process that outlives us by a moment, to end the servers we could not.
//!
//! A server is a process group of its own. When `mcpzip` is killed hard it can end nothing any more, and a server that
//! ignores the end of its stdin, or runs behind a package runner, would stay. So with the first server a guard is
//! started: the same binary under a hidden command, in a session of its own, which is told each group that comes and
//! goes through a pipe. When the pipe ends without a farewell, however that came about, it ends the groups that are left.
//!
//! Between a server's start and the word to the guard there is a moment, and a server can leave its group. So each
//! server also carries a mark among its variables, by which the guard finds on Linux what it was not told of.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, PipeWriter, Write as _};
use std::process::Stdio;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::executable;
use crate::upstream::process_group::GroupId;

/// The hidden command under which the binary is a guard.
pub(crate) const COMMAND: &str = "__guard";

/// The variable that holds the mark of whoever started a server.
const MARK: &str = "MCPZIP_PARENT";

/// What is said to the guard when all is over.
const FAREWELL: &str = "bye";

/// The guard's lead: between TERM and KILL.
const GRACE: std::time::Duration = std::time::Duration::from_millis(150);

/// How long a dead parent's last lines are waited for; they are in the pipe already.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_millis(300);

#[derive(Debug)]
struct Running {
    /// Written to at once, not by a task: whoever is killed right after a server's start must have told of it.
    pipe: PipeWriter,
    child: Child,
}

/// The near end: tells the guard which process groups there are.
#[derive(Debug)]
pub(in crate::upstream) struct Guard {
    mark: String,
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
    /// A guard that is not started yet, with a mark of its own.
    pub(in crate::upstream) fn new() -> Self {
        // The keys of a fresh RandomState are random, which is all that is asked of a mark.
        let random = RandomState::new().hash_one(std::process::id());
        Self {
            mark: format!("{}-{random:x}", std::process::id()),
            state: Mutex::default(),
        }
    }

    /// The variable that a server is to carry.
    pub(in crate::upstream) fn variable(&self) -> Option<(String, String)> {
        Some((MARK.to_owned(), self.mark.clone()))
    }

    /// Starts the guard, if it is not there; to be done before a server is started, so that nothing is in between
    /// when that is to be watched.
    pub(in crate::upstream) fn start(&self) {
        let mut state = self.state();
        if matches!(*state, State::NotStarted) {
            *state = Running::start(&self.mark).map_or_else(
                |error| {
                    tracing::warn!(%error, "no guard process: servers may stay behind if mcpzip is killed");
                    State::Missing
                },
                |running| State::Running(Box::new(running)),
            );
        }
    }

    /// Has `group` ended should we be killed.
    pub(in crate::upstream) fn watch(&self, group: GroupId) {
        self.state().tell('+', group);
    }

    /// Forgets `group`, which has ended.
    pub(in crate::upstream) fn release(&self, group: GroupId) {
        self.state().tell('-', group);
    }

    /// Ends the guard, after the last server has ended.
    pub(in crate::upstream) async fn close(&self) {
        let state = std::mem::replace(&mut *self.state(), State::Missing);
        if let State::Running(running) = state {
            let Running {
                mut pipe,
                mut child,
            } = *running;
            // A guard that is gone needs no farewell.
            let _ = pipe.write_all(format!("{FAREWELL}\n").as_bytes());
            drop(pipe);
            // Reaped, so that no zombie is left where nobody else would do it; it ends at once.
            let _ = tokio::time::timeout(GRACE, child.wait()).await;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is a single step.
        self.state.lock()
    }
}

impl State {
    fn tell(&mut self, sign: char, group: GroupId) {
        // A few bytes always find room in the pipe of a guard that lives.
        if let Self::Running(running) = self
            && let Err(error) = running
                .pipe
                .write_all(format!("{sign}{group}\n").as_bytes())
        {
            tracing::warn!(%error, "the guard process is gone");
            *self = Self::Missing;
        }
    }
}

impl Running {
    fn start(mark: &str) -> io::Result<Self> {
        let (stdin, pipe) = io::pipe()?;
        let child = Command::from(executable::command()?)
            .arg(COMMAND)
            .arg(mark)
            // Not to be ended by the guard of another mcpzip, before which this one may stand as a server.
            .env_remove(MARK)
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { pipe, child })
    }
}

/// Runs as the guard: until the farewell, the end of stdin or the death of the parent, then ends the groups that are
/// left and what carries `mark`.
///
/// # Errors
/// When stdin cannot be read.
pub(crate) async fn run(mark: &str) -> io::Result<()> {
    // Away from the client's terminal and process group, so that what ends those does not end the guard first.
    rustix::process::setsid()?;
    let mut parent_death = ParentDeath::watch()?;
    let mut groups = Vec::new();
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    loop {
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) if line == FAREWELL => return Ok(()),
                Some(line) => note(&mut groups, &line),
                None => break,
            },
            () = parent_death.wait() => {
                // What was told last may still be in the pipe, which has no end where another holds it open.
                while let Ok(Ok(Some(line))) = tokio::time::timeout(LAST_WORDS, lines.next_line()).await {
                    note(&mut groups, &line);
                }
                break;
            }
        }
    }
    groups.iter().copied().for_each(GroupId::terminate);
    tokio::time::sleep(GRACE).await;
    groups.iter().copied().for_each(GroupId::kill);
    end_marked(mark);
    Ok(())
}

/// Ends every process that carries `mark`, until a look finds none.
#[cfg(target_os = "linux")]
fn end_marked(mark: &str) {
    /// A server that starts processes faster than this many looks is left to the system.
    const LOOKS: usize = 20;
    let variable = format!("{MARK}={mark}");
    for _ in 0..LOOKS {
        // Processes of others cannot be read, and need not be.
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let marked = processes.filter_map(|entry| {
            let id: i32 = entry.file_name().to_str()?.parse().ok()?;
            let variables = std::fs::read(entry.path().join("environ")).ok()?;
            variables
                .split(|byte| *byte == 0)
                .any(|one| one == variable.as_bytes())
                .then_some(id)
        });
        let found: Vec<_> = marked.filter_map(rustix::process::Pid::from_raw).collect();
        if found.is_empty() {
            return;
        }
        for process in found {
            // It fails for one that has ended, which is what is wanted.
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[cfg(not(target_os = "linux"))]
fn end_marked(_mark: &str) {}

/// Takes over what `line` tells: a group that came or went.
fn note(groups: &mut Vec<GroupId>, line: &str) {
    if let Some(group) = line.strip_prefix('+').and_then(GroupId::parse) {
        groups.push(group);
    } else if let Some(group) = line.strip_prefix('-').and_then(GroupId::parse) {
        groups.retain(|known| *known != group);
    }
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
        Ok(Self {
            signal,
            parent: getppid(),
        })
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
