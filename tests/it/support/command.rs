//! One run of a command.

#[cfg(unix)]
use std::ffi::OsStr;
use std::io::{Read, Write as _};
use std::process::Command;
#[cfg(unix)]
use std::process::Stdio;

use serde_json::Value;

use super::client::until;

/// The outcome of a command.
#[derive(Debug)]
#[must_use]
pub(crate) struct Outcome {
    command: String,
    /// The exit code. `None` if a signal ended the command.
    pub(crate) code: Option<i32>,
    /// The output on stdout.
    pub(crate) stdout: String,
    /// The output on stderr.
    pub(crate) stderr: String,
}

/// A command of `program` with the environment of `plain` and piped streams.
#[cfg(unix)]
pub(crate) fn through(program: impl AsRef<OsStr>, plain: &Command) -> Command {
    let variables = plain.get_envs();
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs `command`, whose streams are pipes, to its end.
#[track_caller]
pub(crate) fn run(mut command: Command, input: &str) -> Outcome {
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = read_all(child.stdout.take().expect("stdout is piped"));
    let stderr = read_all(child.stderr.take().expect("stderr is piped"));
    // A command that needs no input may have ended already.
    let _ = child
        .stdin
        .take()
        .expect("stdin is piped")
        .write_all(input.as_bytes());
    let status = until(&format!("{command:?} to end"), || {
        child.try_wait().expect("it is our child")
    });
    let text =
        |reader: std::thread::JoinHandle<String>| reader.join().expect("reading does not panic");
    Outcome {
        command: format!("{command:?}"),
        code: status.code(),
        stdout: text(stdout),
        stderr: text(stderr),
    }
}

fn read_all(mut reader: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Output before an error is still printed.
        let _ = reader.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Outcome {
    /// The outcome of a command that was run elsewhere.
    pub(crate) fn of(command: &str, code: Option<i32>, stdout: String, stderr: String) -> Self {
        Self {
            command: command.to_owned(),
            code,
            stdout,
            stderr,
        }
    }

    /// Fails unless the exit code is this one.
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, Some(expected), "{self}");
        self
    }

    /// Parses stdout as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not JSON ({error}): {self}"))
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}\ncode {:?}\nstdout: {}\nstderr: {}",
            self.command, self.code, self.stdout, self.stderr
        )
    }
}
