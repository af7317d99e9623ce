//! Runs a program to its end.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio as Stream};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::UpstreamContext;
use super::guard::Guard;
use super::process_group::ProcessGroup;
use crate::config::Stdio;
use crate::config::program;

/// The wait for the rest of the output of a program that has ended: a descendant may keep the pipes open.
const REST: Duration = Duration::from_millis(500);

/// A run of a configured program.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// The program, with its fixed arguments and variables.
    pub(crate) program: &'a Stdio,
    /// Further arguments.
    pub(crate) arguments: &'a [String],
    /// Further variables, for which the entry has no value.
    pub(crate) variables: &'a [(&'a str, &'a str)],
    /// The working directory, in place of the program's own.
    pub(crate) directory: Option<&'a Path>,
    /// The bytes for its stdin; `None` closes it.
    pub(crate) input: Option<&'a str>,
    /// The size limit of stdout and of stderr, in bytes.
    pub(crate) limit: usize,
}

/// The output of a program that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Its exit status; `None` if it was ended because its output exceeded the limit.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// A running program with its descendants; dropping it ends them.
pub(super) struct Running {
    _group: ProcessGroup,
    pub(super) child: Child,
}

impl Running {
    /// Starts `command` with piped output.
    pub(super) fn start(command: &mut Command, guard: &Arc<Guard>) -> io::Result<Self> {
        command
            .stdout(Stream::piped())
            .stderr(Stream::piped())
            .kill_on_drop(true);
        let (child, group) = ProcessGroup::spawn(command, guard)?;
        Ok(Self {
            child,
            _group: group,
        })
    }

    pub(super) fn streams(&mut self) -> (ChildStdout, ChildStderr) {
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        (
            stdout.expect("stdout is piped"),
            stderr.expect("stderr is piped"),
        )
    }
}

impl UpstreamContext {
    /// Runs a program to its end. Dropping the future ends it with all its descendants.
    ///
    /// # Errors
    /// When it cannot be started or waited for.
    pub(crate) async fn run(&self, run: Run<'_>) -> io::Result<Finished> {
        let variables = self.of_child(run.program);
        let of_entry = variables.iter();
        let own_variables = of_entry.filter(|(name, _)| run.program.env.contains_key(*name));
        let mut command = Command::new(program::to_start(&run.program.command, &variables));
        command
            .args(&run.program.args)
            .args(run.arguments)
            .env_clear()
            .envs(variables.iter())
            .envs(run.variables.iter().copied())
            .envs(own_variables)
            .stdin(match run.input {
                Some(_) => Stream::piped(),
                None => Stream::null(),
            });
        let own = run.program.cwd.as_deref().or(self.directory.as_deref());
        if let Some(directory) = run.directory.or(own) {
            command.current_dir(directory);
        }
        let mut running = Running::start(&mut command, &self.guard)?;
        let (out, err) = running.streams();
        let stdin = running.child.stdin.take();
        let write = async {
            if let (Some(mut stdin), Some(input)) = (stdin, run.input) {
                // A program need not read its input.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let status = {
            let read = async {
                let (out, err) = (
                    within(out, &mut stdout, run.limit),
                    within(err, &mut stderr, run.limit),
                );
                tokio::try_join!(out, err).is_ok()
            };
            tokio::pin!(read, write);
            let mut is_written = false;
            loop {
                tokio::select! {
                    () = &mut write, if !is_written => is_written = true,
                    is_whole = &mut read => {
                        break if is_whole { Some(running.child.wait().await?) } else { None };
                    }
                    status = running.child.wait() => {
                        let is_whole = tokio::time::timeout(REST, &mut read).await.unwrap_or(true);
                        break if is_whole { Some(status?) } else { None };
                    }
                }
            }
        };
        Ok(Finished {
            status,
            stdout,
            stderr,
        })
    }
}

/// Reads all of `stream`.
///
/// # Errors
/// When it has more than `limit` bytes; the first ones are in `bytes`.
async fn within(
    stream: impl AsyncRead + Unpin,
    bytes: &mut Vec<u8>,
    limit: usize,
) -> Result<(), ()> {
    // A read error ends the output as its end does.
    let _ = stream.take(limit as u64 + 1).read_to_end(bytes).await;
    if bytes.len() > limit {
        bytes.truncate(limit);
        return Err(());
    }
    Ok(())
}
