//! A server as a child process: messages over its stdin and stdout, its stderr kept for when something goes wrong.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use crate::config;
use crate::tool::ServerName;
use crate::upstream::process_group::ProcessGroup;
use crate::upstream::program;
use crate::upstream::{ConnectError, ServerLog, UpstreamContext};

/// The room of a pipe, in bytes: the most that Linux gives to every user, and what it gives without being asked.
#[cfg(target_os = "linux")]
const WIDE: usize = 1024 * 1024;
#[cfg(target_os = "linux")]
const NARROW: usize = 64 * 1024;

/// How much of a server's stderr is kept for error texts, in bytes.
const STDERR_KEPT: usize = 2048;

/// A server's process with all that it starts.
#[derive(Debug)]
pub(in crate::upstream) struct Process {
    /// Before its leader, which then is still there to be told apart.
    group: Option<ProcessGroup>,
    child: Child,
    stderr: Stderr,
}

/// The end of a server's stderr, without secrets.
#[derive(Debug, Clone, Default)]
pub(in crate::upstream) struct Stderr(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    lines: String,
    /// A line that has not ended.
    unfinished: String,
}

/// How long a process has for each step of its end: after its stdin was closed, and after TERM.
struct Grace {
    end_of_input: Duration,
    terminate: Duration,
}

/// A server that is not needed any more has time to put its things away.
const UNHURRIED: Grace = Grace {
    end_of_input: Duration::from_secs(2),
    terminate: Duration::from_secs(2),
};

/// A client that ends us sends KILL half a second after its first signal.
const HURRIED: Grace = Grace {
    end_of_input: Duration::from_millis(40),
    terminate: Duration::from_millis(140),
};

/// Gives the pipe of a server that sends large messages more room, and takes it back. A process's turn ends whenever a pipe is
/// full or empty; with sixteen times the room a result of 10 MB comes in two thirds of the time. Not for all servers at all times: Linux counts
/// the room of all of a user's pipes, and makes new ones tiny when it is too much.
pub(in crate::upstream) fn widen(stdout: &ChildStdout, is_large: bool) {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsFd as _;
        // What the system does not give is done without.
        let _ =
            rustix::pipe::fcntl_setpipe_size(stdout.as_fd(), if is_large { WIDE } else { NARROW });
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (stdout, is_large);
}

impl Process {
    /// Starts the server; its ends of stdin and stdout go to whoever speaks with it.
    pub(in crate::upstream) fn start(
        server: &ServerName,
        transport: &config::Stdio,
        environment: &UpstreamContext,
        log: ServerLog,
    ) -> Result<(Self, ChildStdin, ChildStdout), ConnectError> {
        let variables = environment.of_child(transport);
        let mut command = Command::new(program::to_start(&transport.command, &variables));
        command
            .args(&transport.args)
            .env_clear()
            .envs(variables.iter())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(directory) = transport.cwd.as_ref().or(environment.directory.as_ref()) {
            command.current_dir(directory);
        }
        let (mut child, group) =
            ProcessGroup::spawn(&mut command, &environment.guard).map_err(|source| {
                ConnectError::Spawn {
                    server: server.clone(),
                    command: transport.command.clone(),
                    source,
                }
            })?;
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = Stderr::default();
        environment.tasks.spawn(
            stderr
                .clone()
                .drain(child.stderr.take().expect("stderr is piped"), log),
        );
        Ok((
            Self {
                child,
                group: Some(group),
                stderr,
            },
            stdin,
            stdout,
        ))
    }

    /// The end of its stderr.
    pub(in crate::upstream) fn stderr(&self) -> &Stderr {
        &self.stderr
    }

    /// Waits for the process to end by itself, then ends what it left behind.
    ///
    /// # Cancel safety
    /// The process is as it was when the future is dropped.
    pub(in crate::upstream) async fn ended(&mut self) -> String {
        let status = self.child.wait().await;
        self.group = None;
        describe(status.ok())
    }

    /// Ends the process and all it started: its stdin is closed already; then TERM, where there is such a thing, then KILL.
    /// Once `stop` is cancelled, each step is short.
    pub(in crate::upstream) async fn end(mut self, stop: &CancellationToken) {
        let patience = async |unhurried: Duration, hurried: Duration| {
            tokio::select! {
                () = tokio::time::sleep(unhurried) => {}
                () = async { stop.cancelled().await; tokio::time::sleep(hurried).await } => {}
            }
        };
        tokio::select! {
            _ = self.child.wait() => return,
            () = patience(UNHURRIED.end_of_input, HURRIED.end_of_input) => {}
        }
        if self.group.as_ref().is_some_and(ProcessGroup::terminate) {
            tokio::select! {
                _ = self.child.wait() => return,
                () = patience(UNHURRIED.terminate, HURRIED.terminate) => {}
            }
        }
        // Only fails for a process that has ended, which is what is wanted.
        let _ = self.child.start_kill();
        self.group = None;
        let _ = self.child.wait().await;
    }
}

impl Stderr {
    /// The last lines, as one short text.
    pub(in crate::upstream) fn tail(&self) -> String {
        let kept = self.0.lock();
        let text = format!("{}{}", kept.lines, kept.unfinished);
        let lines: Vec<_> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        lines[lines.len().saturating_sub(3)..].join(" | ")
    }

    /// Reads all there is, whatever comes, so that the server never waits for us to.
    async fn drain(self, mut stderr: impl AsyncRead + Unpin, mut log: ServerLog) {
        let mut chunk = vec![0; 8 * 1024];
        loop {
            match stderr.read(&mut chunk).await {
                Ok(0) | Err(_) => return,
                Ok(length) => {
                    let lines = log.write(&chunk[..length]);
                    self.keep(&lines, &log.unfinished());
                }
            }
        }
    }

    fn keep(&self, lines: &str, unfinished: &str) {
        let mut kept = self.0.lock();
        kept.lines.push_str(lines);
        kept.lines = end_of(&kept.lines).to_owned();
        kept.unfinished = end_of(unfinished).to_owned();
    }
}

/// As much of the end of `text` as is kept.
fn end_of(text: &str) -> &str {
    let start = text.len().saturating_sub(STDERR_KEPT);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[start.unwrap_or(text.len())..]
}

fn describe(status: Option<ExitStatus>) -> String {
    status.map_or_else(
        || "its end could not be observed".to_owned(),
        |status| status.to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_pipe_is_widened_and_narrowed() {
        let mut command = Command::new("cat");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        for (is_large, room) in [(true, WIDE), (false, NARROW)] {
            widen(&stdout, is_large);
            assert_eq!(rustix::pipe::fcntl_getpipe_size(&stdout).unwrap(), room);
        }
    }

    #[test]
    fn whoever_is_in_a_hurry_leaves_room_before_the_clients_kill() {
        let steps = HURRIED.end_of_input + HURRIED.terminate;
        assert!(
            steps <= Duration::from_millis(200),
            "of 300 ms, the rest is for the machine: {steps:?}"
        );
    }
}
