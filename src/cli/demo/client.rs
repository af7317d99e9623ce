//! A minimal MCP client over a child process's stdin and stdout.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde_json::value::RawValue;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::mcp::object::quoted;
use crate::mcp::{Envelope, Line, LineReader, Message, Outcome, Revision};

/// Time limit for an answer, far above the usual time.
const LIMIT: Duration = Duration::from_secs(30);

/// How long a process may take to exit after its stdin is closed.
const GRACE: Duration = Duration::from_secs(2);

/// Largest accepted answer, in bytes.
const LARGEST: usize = 16 * 1024 * 1024;

/// An MCP server process and the client side of its pipes. The process is killed on drop.
#[derive(Debug)]
pub(super) struct Client {
    child: Child,
    stdin: ChildStdin,
    lines: LineReader<ChildStdout>,
    last_id: i64,
    started: Instant,
}

/// An answer, and the time since its request was written.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) result: Box<RawValue>,
    pub(super) took: Duration,
}

impl Client {
    /// Starts the process without sending anything.
    pub(super) fn start(mut command: Command) -> anyhow::Result<Self> {
        let started = Instant::now();
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command
            .spawn()
            .context("the program could not be started a second time")?;
        let stdin = child.stdin.take().context("the process has no stdin")?;
        let stdout = child.stdout.take().context("the process has no stdout")?;
        Ok(Self {
            child,
            stdin,
            lines: LineReader::new(stdout, LARGEST),
            last_id: 0,
            started,
        })
    }

    /// Time since the process was started.
    pub(super) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    /// Does the `initialize` handshake.
    pub(super) async fn greet(&mut self) -> anyhow::Result<()> {
        let revision = Revision::V2025_11_25;
        let info = format!(
            r#"{{"name":"mcpzip-demo","version":{}}}"#,
            quoted(env!("CARGO_PKG_VERSION"))
        );
        let params = format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{{}},"clientInfo":{info}}}"#
        );
        self.ask("initialize", &params).await?;
        self.stdin
            .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
            .await?;
        Ok(())
    }

    /// Sends one request and waits for its answer.
    pub(super) async fn ask(&mut self, method: &str, params: &str) -> anyhow::Result<Answer> {
        let mut answers = self.ask_all(method, &[params.to_owned()]).await?;
        answers.pop().context("there is no answer")
    }

    /// Sends one request of `method` for each of `params`, all in one write, and waits for all answers.
    pub(super) async fn ask_all(
        &mut self,
        method: &str,
        params: &[String],
    ) -> anyhow::Result<Vec<Answer>> {
        let first = self.last_id + 1;
        let mut text = String::new();
        for params in params {
            self.last_id += 1;
            let id = self.last_id;
            text.push_str(&format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n"
            ));
        }
        let sent = Instant::now();
        self.stdin
            .write_all(text.as_bytes())
            .await
            .context("the process reads nothing more")?;
        let answers = self.collect(first, params.len(), sent);
        tokio::time::timeout(LIMIT, answers)
            .await
            .with_context(|| format!("no answer within {LIMIT:?}"))?
    }

    async fn collect(
        &mut self,
        first: i64,
        count: usize,
        sent: Instant,
    ) -> anyhow::Result<Vec<Answer>> {
        let mut answers: Vec<Option<Answer>> = (0..count).map(|_| None).collect();
        while answers.iter().any(Option::is_none) {
            let line = match self.lines.next().await? {
                Some(Line::Message(line)) => line,
                Some(Line::TooLong { length, .. }) => {
                    bail!("an answer of {length} bytes is too long")
                }
                None => bail!("the process has ended"),
            };
            let took = sent.elapsed();
            let Envelope::Single(Message::Response { id, outcome }) = Envelope::parse(&line)?
            else {
                continue;
            };
            let result = match outcome {
                Outcome::Result(result) => result.to_owned(),
                Outcome::Error(error) => bail!("a request was refused: {error}"),
            };
            let index = id
                .and_then(|id| id.as_integer())
                .and_then(|id| usize::try_from(id - first).ok());
            if let Some(answer) = index.and_then(|index| answers.get_mut(index)) {
                *answer = Some(Answer { result, took });
            }
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// Closes the process's stdin, as a client does at its end, and waits for the exit. Kills the process after
    /// [`GRACE`].
    pub(super) async fn close(self) {
        let Self {
            mut child,
            stdin,
            mut lines,
            ..
        } = self;
        drop(stdin);
        let end = async {
            // Reads on, so that the process is not blocked by answers that it still writes.
            while let Ok(Some(_)) = lines.next().await {}
            child.wait().await
        };
        if tokio::time::timeout(GRACE, end).await.is_err() {
            // This fails if the process has exited in the meantime.
            let _ = child.kill().await;
        }
    }
}
