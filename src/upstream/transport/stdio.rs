//! A server as a child process: messages over stdin and stdout; the end of its stderr is kept for errors.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use crate::config::program;
use crate::config::{Environment, Sandbox};
use crate::mcp::{LineReader, Outbox, Widen};
use crate::sandbox::{Container, Start};
use crate::shutdown::Tasks;
use crate::tool::ServerName;
use crate::upstream::container::RunningContainer;
use crate::upstream::error::{LastWords, is_noise, missing_package};
use crate::upstream::packages::Prepared;
use crate::upstream::process_group::ProcessGroup;
use crate::upstream::receiver::Receiver;
use crate::upstream::{ConnectError, MESSAGE_LIMIT, ServerLog, UpstreamContext};

/// The size of the kept end of stderr, in bytes.
const STDERR_KEPT: usize = 2048;

/// The wait for the exit status of a process whose output has ended. After it, its calls fail without a status.
const STATUS_LIMIT: Duration = Duration::from_millis(200);

/// A server's process with all its descendants.
#[derive(Debug)]
pub(in crate::upstream) struct Process {
    /// Declared before `child`, so that it is dropped while the leader still exists and its id is not reused.
    group: Option<ProcessGroup>,
    child: Child,
    stderr: Stderr,
    /// Its container, which does not end with the process that started it.
    container: Option<RunningContainer>,
}

/// The end of a server's stderr, without secrets.
#[derive(Debug, Clone, Default)]
pub(in crate::upstream) struct Stderr(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    lines: String,
    /// The unfinished line.
    unfinished: String,
}

/// The time limits of the steps that end a process: after closing its stdin, and after TERM.
struct Grace {
    end_of_input: Duration,
    terminate: Duration,
}

/// For a server that is not needed any more: it has time to clean up.
const UNHURRIED: Grace = Grace {
    end_of_input: Duration::from_secs(2),
    terminate: Duration::from_secs(2),
};

/// For the end of mcpzip: a client that ends us sends KILL half a second after its first signal.
const HURRIED: Grace = Grace {
    end_of_input: Duration::from_millis(40),
    terminate: Duration::from_millis(140),
};

/// Gives a server that has just started, and inherited the daemon's limits, the soft limit of open files of its session. The hard limit stays;
/// some programs raise the soft one to it.
#[cfg(target_os = "linux")]
fn limit_open_files(child: &Child, soft: Option<u64>) {
    use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let limit = Rlimit {
        current: soft,
        maximum,
    };
    let process = child
        .id()
        .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let (Some(_), Some(_)) = (soft, process) {
        // If this fails, the process has ended.
        let _ = prlimit(process, Resource::Nofile, limit);
    }
}

/// Elsewhere a daemon that clients start runs no local servers, or the system has no such limit.
#[cfg(not(target_os = "linux"))]
fn limit_open_files(_: &Child, _: Option<u64>) {}

impl Process {
    /// Starts the server. Returns its stdin and stdout for the link.
    pub(in crate::upstream) fn start(
        server: &ServerName,
        prepared: &Prepared<'_>,
        context: &UpstreamContext,
        log: ServerLog,
    ) -> Result<(Self, ChildStdin, ChildStdout), ConnectError> {
        let transport = &*prepared.stdio;
        let (mut command, directory, container) = match &transport.sandbox {
            None => {
                let variables = context.of_child(transport);
                let mut command = Command::new(program::to_start(&transport.command, &variables));
                command
                    .args(&transport.args)
                    .env_clear()
                    .envs(variables.iter());
                let directory = transport.cwd.as_ref().or(context.directory.as_ref());
                if let Some(directory) = directory {
                    command.current_dir(directory);
                }
                (command, directory, None)
            }
            Some(sandbox) => {
                let (command, container) = sandboxed(sandbox, server, prepared, context)?;
                (command, None, container)
            }
        };
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let (mut child, group) =
            ProcessGroup::spawn(&mut command, &context.guard).map_err(|source| {
                // The system has one error for a missing program and a missing directory.
                let missing = directory.filter(|directory| !directory.is_dir());
                ConnectError::Spawn {
                    server: server.clone(),
                    command: transport.command.clone(),
                    source: missing.map_or(source, |directory| {
                        let directory = directory.display();
                        std::io::Error::other(format!("there is no directory `{directory}`"))
                    }),
                }
            })?;
        limit_open_files(&child, context.open_files);
        let container = container.map(|container| RunningContainer::new(container, context));
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = Stderr::default();
        context.tasks.spawn(
            stderr
                .clone()
                .drain(child.stderr.take().expect("stderr is piped"), log),
        );
        Ok((
            Self {
                child,
                group: Some(group),
                stderr,
                container,
            },
            stdin,
            stdout,
        ))
    }

    /// Starts the tasks that write `outbox` to it, pass on what it writes, and wait for its end.
    pub(in crate::upstream) fn attend(
        self,
        (stdin, stdout): (ChildStdin, ChildStdout),
        outbox: Outbox,
        receiver: Arc<impl Receiver>,
        tasks: &Tasks,
    ) {
        let unwritable = CancellationToken::new();
        let broken = unwritable.clone();
        tasks.spawn(async move {
            if outbox.write_widening(stdin, Widen::widen).await.is_err() {
                broken.cancel();
            }
        });
        let stop = tasks.stop().clone();
        tasks.spawn(async move {
            let mut process = self;
            let mut lines = LineReader::new(stdout, MESSAGE_LIMIT).with_widening(Widen::widen);
            let reason = tokio::select! {
                read = receiver.read(&mut lines) => {
                    let status = tokio::time::timeout(STATUS_LIMIT, process.ended()).await;
                    status.ok().unwrap_or_else(|| read.err().map_or("it closed its output".into(), |e| e.to_string()))
                }
                status = process.ended() => {
                    // The last output may still be in the pipe.
                    let _ = tokio::time::timeout(STATUS_LIMIT, receiver.read(&mut lines)).await;
                    status
                }
                () = unwritable.cancelled() => {
                    // Usually the process has ended, and its exit status says more.
                    let _ = tokio::time::timeout(STATUS_LIMIT, receiver.read(&mut lines)).await;
                    let status = tokio::time::timeout(STATUS_LIMIT, process.ended()).await;
                    status.unwrap_or_else(|_| "it closed its input".to_owned())
                }
                () = receiver.close_requested() => "the connection was closed".to_owned(),
                () = stop.cancelled() => "mcpzip is shutting down".to_owned(),
            };
            receiver.end(&reason);
            process.end(&stop).await;
            receiver.gone();
        });
    }

    /// The end of its stderr.
    pub(in crate::upstream) fn stderr(&self) -> &Stderr {
        &self.stderr
    }

    /// Waits until the process ends on its own, then ends its descendants.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the process unchanged.
    pub(in crate::upstream) async fn ended(&mut self) -> String {
        let status = self.child.wait().await;
        self.group = None;
        describe(status.ok())
    }

    /// Ends the process and its descendants. Its stdin is closed already; then follow TERM, where it exists, and
    /// KILL. Once `stop` is cancelled, each step is short.
    pub(in crate::upstream) async fn end(mut self, stop: &CancellationToken) {
        self.end_process(stop).await;
        if let Some(container) = self.container.take() {
            container.end().await;
        }
    }

    async fn end_process(&mut self, stop: &CancellationToken) {
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
        // This fails only for a process that has ended.
        let _ = self.child.start_kill();
        self.group = None;
        let _ = self.child.wait().await;
    }
}

/// The command that starts a server in its sandbox.
fn sandboxed(
    sandbox: &Sandbox,
    server: &ServerName,
    prepared: &Prepared<'_>,
    context: &UpstreamContext,
) -> Result<(Command, Option<Container>), ConnectError> {
    let not_started = |reason: String| ConnectError::NotStarted {
        server: server.clone(),
        reason,
    };
    let stdio = &*prepared.stdio;
    let mark = context.guard.variable();
    let launch = context.sandboxes.launch(
        sandbox,
        &Start {
            name: server.as_str(),
            stdio,
            package: prepared.package.as_deref(),
            variables: &context.of_child(stdio),
            session: &context.variables,
            directory: context.directory.as_deref(),
            mark: mark.as_ref(),
        },
    );
    let launch = launch.map_err(|refusal| not_started(refusal.to_string()))?;
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.args)
        .env_clear()
        .envs(launch.variables)
        .current_dir(&launch.directory);
    #[cfg(target_os = "linux")]
    if !launch.descriptors.is_empty() {
        use command_fds::{CommandFdExt as _, FdMapping};
        let mappings = launch.descriptors.into_iter();
        let mappings = mappings.map(|(child_fd, parent_fd)| FdMapping {
            parent_fd,
            child_fd,
        });
        command
            .fd_mappings(mappings.collect())
            .map_err(|error| not_started(error.to_string()))?;
    }
    Ok((command, launch.container))
}

impl Stderr {
    /// The last lines, as one short text, and the hints in them. `variables` are those of the session, and `own` those of the process.
    pub(in crate::upstream) fn last_words(
        &self,
        variables: &Environment,
        own: &Environment,
    ) -> LastWords {
        let text = {
            let kept = self.0.lock();
            format!("{}{}", kept.lines, kept.unfinished)
        };
        let lines: Vec<_> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !is_noise(line))
            .collect();
        LastWords {
            stderr: lines[lines.len().saturating_sub(3)..].join(" | "),
            missing: missing_package(&text),
            withheld: withheld(&lines, variables, own),
        }
    }

    /// Reads everything, so that the server never blocks on its stderr.
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

/// The end of `text` that is kept.
fn end_of(text: &str) -> &str {
    let start = text.len().saturating_sub(STDERR_KEPT);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[start.unwrap_or(text.len())..]
}

/// The variables that a server misses by its own words, and that the session has: at most three.
fn withheld(lines: &[&str], variables: &Environment, own: &Environment) -> Vec<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = lines.iter().flat_map(|line| line.split(|c| !is_part(c)));
    // Names in capital letters: a word such as `path` is seldom one.
    let is_name = |word: &&str| {
        word.len() > 2
            // Those of mcpzip are for no server.
            && !word.starts_with("MCPZIP_")
            && word.starts_with(|c: char| c.is_ascii_uppercase())
            && !word.contains(|c: char| c.is_ascii_lowercase())
    };
    let mut names: Vec<String> = Vec::new();
    for word in words.filter(is_name) {
        let is_set = |all: &Environment| all.get(word).is_some_and(|value| !value.is_empty());
        if names.len() < 3
            && is_set(variables)
            && own.get(word).is_none()
            && !names.iter().any(|name| name == word)
        {
            names.push(word.to_owned());
        }
    }
    names
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

    #[test]
    fn a_failure_names_variables_that_are_withheld_and_leaves_out_advertisements() {
        let stderr = Stderr::default();
        stderr.keep(
            "npm notice\nnpm notice To update run: npm install -g npm@11\nError: MY_KEY, HOME and UNSET are required (see API)\n\
             npm error A complete log of this run can be found in: /x\n",
            "",
        );
        let session = [
            ("MY_KEY", "secret"),
            ("HOME", "/h"),
            ("is", "x"),
            ("API", ""),
        ];
        let session = Environment::from_iter(session);
        let words = stderr.last_words(&session, &Environment::from_iter([("HOME", "/h")]));
        assert_eq!(words.withheld, ["MY_KEY"]);
        assert_eq!(
            words.stderr,
            "Error: MY_KEY, HOME and UNSET are required (see API)"
        );
        assert!(!words.to_string().contains("secret"));
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
