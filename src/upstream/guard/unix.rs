//! The guard: a companion process that ends the servers if mcpzip is killed.
//!
//! Each server leads its own process group. If mcpzip gets SIGKILL it cannot end them, and a server that ignores the
//! end of its stdin, or runs behind a package runner, would stay. So mcpzip starts a guard with the first server: the
//! same binary with a hidden command, in its own session. Over a pipe it learns of each group that starts and ends.
//! When the pipe ends without a farewell, it ends the remaining groups.
//!
//! Two gaps remain: the moment between a server's start and the message to the guard, and servers that leave their
//! group. So each server also has a mark among its environment variables; on Linux, the guard ends every process with
//! that mark.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, PipeWriter, Write as _};
use std::process::Stdio;

use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::config::env::{LOGIN_KEY, SECRET_KEY, TOKEN};
use crate::executable;
use crate::sandbox::Container;
use crate::upstream::process_group::GroupId;

/// The hidden command that runs the guard.
pub(crate) const COMMAND: &str = "__guard";

/// The environment variable with the mark of the mcpzip that started a server.
const MARK: &str = "MCPZIP_PARENT";

/// The message to the guard that no server is left.
const FAREWELL: &str = "bye";

/// The messages that a container was started, and that it is removed.
const STARTED: &str = "container ";
const REMOVED: &str = "removed ";

/// How long the removal of a container may take.
const REMOVAL: std::time::Duration = std::time::Duration::from_secs(30);

/// The time between TERM and KILL.
const GRACE: std::time::Duration = std::time::Duration::from_millis(150);

/// The time limit for reading a dead parent's last lines; they are in the pipe already.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_millis(300);

#[derive(Debug)]
struct Running {
    /// Written synchronously: if mcpzip is killed right after a server's start, the guard must know of the server
    /// already.
    pipe: PipeWriter,
    child: Child,
}

/// The handle to the guard process: tells it which process groups exist.
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
    /// The guard could not be started; servers run without it.
    Missing,
}

impl Guard {
    /// Creates a guard with a mark of its own. The process is not started yet.
    pub(in crate::upstream) fn new() -> Self {
        // The keys of a new RandomState are random, which is sufficient for a mark.
        let random = RandomState::new().hash_one(std::process::id());
        Self {
            mark: format!("{}-{random:x}", std::process::id()),
            state: Mutex::default(),
        }
    }

    /// A guard without a process, for a program that cannot be started again as one.
    pub(in crate::upstream) fn absent() -> Self {
        Self {
            state: Mutex::new(State::Missing),
            ..Self::new()
        }
    }

    /// The environment variable for servers.
    pub(in crate::upstream) fn variable(&self) -> Option<(String, String)> {
        Some((MARK.to_owned(), self.mark.clone()))
    }

    /// Starts the guard process, if it is not running. Call it before starting a server, so that the server can be
    /// watched at once.
    pub(in crate::upstream) fn start(&self) {
        let mut state = self.state();
        if matches!(*state, State::NotStarted) {
            *state = Running::start(&self.mark).map_or_else(
                |error| {
                    tracing::warn!(%error, "the guard process did not start: servers may keep running if mcpzip is killed");
                    State::Missing
                },
                |running| State::Running(Box::new(running)),
            );
        }
    }

    /// Makes the guard end `group` if mcpzip is killed.
    pub(in crate::upstream) fn watch(&self, group: GroupId) {
        self.state().tell('+', group);
    }

    /// Makes the guard forget `group`, which has ended.
    pub(in crate::upstream) fn release(&self, group: GroupId) {
        self.state().tell('-', group);
    }

    /// Makes the guard remove `container` if mcpzip is killed.
    pub(in crate::upstream) fn watch_container(&self, container: &Container) {
        self.state().send(&format!("{STARTED}{container}"));
    }

    /// Makes the guard forget `container`, which is removed.
    pub(in crate::upstream) fn release_container(&self, container: &Container) {
        self.state().send(&format!("{REMOVED}{container}"));
    }

    /// Ends the guard process, after the last server has ended.
    pub(in crate::upstream) async fn close(&self) {
        let state = std::mem::replace(&mut *self.state(), State::Missing);
        if let State::Running(running) = state {
            let Running {
                mut pipe,
                mut child,
            } = *running;
            // If the guard is gone, it needs no farewell.
            let _ = pipe.write_all(format!("{FAREWELL}\n").as_bytes());
            drop(pipe);
            // Reaped, so that no zombie remains; the guard ends at once.
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
        self.send(&format!("{sign}{group}"));
    }

    fn send(&mut self, line: &str) {
        // A few bytes always fit into the pipe of a running guard.
        if let Self::Running(running) = self
            && let Err(error) = running.pipe.write_all(format!("{line}\n").as_bytes())
        {
            tracing::warn!(%error, "the guard process has ended");
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
            // This mcpzip may itself be a server of another one, whose guard must not end this guard.
            .env_remove(MARK)
            // The engine that removes a container inherits its variables.
            .env_remove(SECRET_KEY.name)
            .env_remove(LOGIN_KEY.name)
            .env_remove(TOKEN.name)
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { pipe, child })
    }
}

/// Runs as the guard until the farewell, the end of stdin or the death of the parent. Without a farewell, it then
/// ends the remaining groups and every process that carries `mark`.
///
/// # Errors
/// When stdin cannot be read.
pub(crate) async fn run(mark: &str) -> io::Result<()> {
    // Leaves the client's terminal and process group, so that a signal to those does not end the guard first.
    rustix::process::setsid()?;
    let mut parent_death = ParentDeath::watch()?;
    let (mut groups, mut containers) = (Vec::new(), Vec::new());
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    loop {
        tokio::select! {
            line = lines.next_line() => match line? {
                Some(line) if line == FAREWELL => return Ok(()),
                Some(line) => note(&mut groups, &mut containers, &line),
                None => break,
            },
            () = parent_death.wait() => {
                // The last messages may still be in the pipe, which does not end while another process holds it open.
                while let Ok(Ok(Some(line))) = tokio::time::timeout(LAST_WORDS, lines.next_line()).await {
                    note(&mut groups, &mut containers, &line);
                }
                break;
            }
        }
    }
    groups.iter().copied().for_each(GroupId::terminate);
    tokio::time::sleep(GRACE).await;
    groups.iter().copied().for_each(GroupId::kill);
    end_marked(mark);
    let removals: Vec<_> = containers.iter().filter_map(|one| remove(one)).collect();
    for mut removal in removals {
        // An answer of the engine changes nothing here, and an engine that hangs must not keep the guard alive.
        let _ = tokio::time::timeout(REMOVAL, removal.wait()).await;
    }
    Ok(())
}

/// Ends every process that carries `mark`; repeats until none is found.
#[cfg(target_os = "linux")]
fn end_marked(mark: &str) {
    /// The maximum number of repetitions, for a server that keeps starting processes.
    const LOOKS: usize = 20;
    let variable = format!("{MARK}={mark}");
    for _ in 0..LOOKS {
        // Processes of other users cannot be read, and need not be.
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
            // This fails only for a process that has ended.
            let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[cfg(not(target_os = "linux"))]
fn end_marked(_mark: &str) {}

/// Removes the container of a message.
fn remove(container: &str) -> Option<Child> {
    let (name, engine) = container.split_once(' ')?;
    let mut command = Command::new(engine);
    command
        .args(["rm", "--force", name])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().ok()
}

/// Applies the message `line`: a group or a container that started or ended.
fn note(groups: &mut Vec<GroupId>, containers: &mut Vec<String>, line: &str) {
    if let Some(container) = line.strip_prefix(STARTED) {
        containers.push(container.to_owned());
    } else if let Some(container) = line.strip_prefix(REMOVED) {
        containers.retain(|known| known != container);
    } else if let Some(group) = line.strip_prefix('+').and_then(GroupId::parse) {
        groups.push(group);
    } else if let Some(group) = line.strip_prefix('-').and_then(GroupId::parse) {
        groups.retain(|known| *known != group);
    }
}

/// Linux's signal at the death of the parent. It is needed if another process holds the pipe open.
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
