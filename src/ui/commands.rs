//! Runs the command of an action, with the variables and in the directory of the process that opened the window.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::time::error::Elapsed;

use super::actions::{Prepared, Work};
use super::{Host, Opening};
use crate::executable;

/// The most that is kept of each output of a command, in bytes.
const MOST: u64 = 64 * 1024 * 1024;

/// The answer to the page.
#[derive(Default, Serialize)]
struct Answer {
    command: String,
    exit: Option<i32>,
    /// The JSON that the command printed.
    output: Option<Box<RawValue>>,
    /// The text that it printed, if that was not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    error: String,
}

/// Carries out an action. `note` gets each line of the command's messages. The answer is JSON.
pub(super) async fn run(
    host: &dyn Host,
    opening: &Opening,
    prepared: Prepared,
    note: impl FnMut(&str),
) -> String {
    let mut answer = Answer {
        command: prepared.shown,
        ..Answer::default()
    };
    match prepared.work {
        Work::Method(method, params) => {
            let params = serde_json::value::to_raw_value(&params).ok();
            let outcome = host.answer(opening.process, method, params.as_deref());
            answer.inside(outcome.map_err(|(_, message)| message));
        }
        Work::Decide(decision) => {
            let outcome = host.decide(opening, &decision).await;
            answer.inside(outcome.map(|value| value.to_string()));
        }
        Work::Command { arguments, input } => {
            let ran = process(opening, &arguments, input, note);
            let ran = tokio::time::timeout(prepared.limit, ran);
            answer.ran(ran.await, prepared.limit, prepared.has_lines);
        }
    }
    serde_json::to_string(&answer).expect("answers are JSON")
}

/// Runs the command of an action that only prints. The answer is JSON, without the command, which is for the machine of `opening`.
pub(super) async fn print(opening: &Opening, prepared: Prepared) -> String {
    let mut answer = Answer::default();
    if let Work::Command { arguments, input } = prepared.work {
        let ran = process(opening, &arguments, input, |_| ());
        let ran = tokio::time::timeout(prepared.limit, ran);
        answer.ran(ran.await, prepared.limit, prepared.has_lines);
    }
    serde_json::to_string(&answer).expect("answers are JSON")
}

/// A command that has ended: its exit code, output and messages.
struct Ended {
    exit: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs this program. It ends when the future is dropped.
async fn process(
    opening: &Opening,
    arguments: &[String],
    input: Option<String>,
    mut note: impl FnMut(&str),
) -> io::Result<Ended> {
    let mut command = Command::from(executable::command()?);
    command
        .args(arguments)
        .env_clear()
        .envs(&opening.variables)
        .current_dir(&opening.directory)
        .stdin(input.as_ref().map_or_else(Stdio::null, |_| Stdio::piped()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A command that reads nothing says why.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let read = async {
        let mut bytes = Vec::new();
        if let Some(stdout) = stdout {
            stdout.take(MOST).read_to_end(&mut bytes).await?;
        }
        Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let listen = async {
        let mut messages = String::new();
        let Some(stderr) = stderr else {
            return Ok(messages);
        };
        let mut lines = BufReader::new(stderr.take(MOST)).split(b'\n');
        while let Some(line) = lines.next_segment().await? {
            let line = String::from_utf8_lossy(&line);
            let line = console::strip_ansi_codes(&line);
            note(&line);
            messages.push_str(&line);
            messages.push('\n');
        }
        Ok::<_, io::Error>(messages)
    };
    let ((), stdout, stderr) = tokio::join!(write, read, listen);
    Ok(Ended {
        stdout: stdout?,
        stderr: stderr?,
        exit: child.wait().await?.code(),
    })
}

impl Answer {
    /// The outcome of an action inside the program.
    fn inside(&mut self, outcome: Result<String, String>) {
        match outcome {
            Ok(json) => {
                self.exit = Some(0);
                self.output = RawValue::from_string(json).ok();
            }
            Err(message) => {
                self.exit = Some(1);
                self.error = message;
            }
        }
    }

    /// The outcome of a process, or that it took longer than `limit`.
    fn ran(&mut self, ran: Result<io::Result<Ended>, Elapsed>, limit: Duration, has_lines: bool) {
        match ran {
            Ok(Ok(ended)) => self.ended(&ended, has_lines),
            Ok(Err(error)) => self.error = format!("the command cannot be run: {error}"),
            Err(_) => {
                let seconds = limit.as_secs();
                self.error = format!("the command was ended after {seconds} seconds");
            }
        }
    }

    fn ended(&mut self, ended: &Ended, has_lines: bool) {
        self.exit = ended.exit;
        self.error = ended.stderr.trim_end().to_owned();
        let text = match has_lines {
            true => {
                let lines = ended.stdout.lines().filter(|line| !line.is_empty());
                format!("[{}]", lines.collect::<Vec<_>>().join(","))
            }
            // An answer is one line. A line break in JSON is never a part of a text.
            false => ended.stdout.trim().replace(['\n', '\r'], " "),
        };
        match serde_json::from_str(&text) {
            Ok(json) => self.output = Some(json),
            Err(_) if text.is_empty() => {}
            Err(_) => {
                let text = console::strip_ansi_codes(ended.stdout.trim());
                self.text = Some(text.into_owned());
            }
        }
    }
}
