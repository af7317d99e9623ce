//! Projection: the part of a result that a filter selects.
//!
//! An agent's filter is an untrusted program that may run forever or exhaust the memory. So it runs in a process of its own,
//! this binary with a hidden command, with limits that the system enforces, no environment, and only its pipes open. A program
//! that has mcpzip as a library has no such process: it runs the user's own filters on threads, and those of agents not at all.

mod data;
#[cfg(any(test, feature = "fuzzing"))]
pub(in crate::proxy) mod fuzzing;
mod shape;
mod worker;

use std::collections::HashMap;
use std::io;
use std::process::Stdio;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use crate::executable;
use crate::shutdown::spawn_thread;
pub(crate) use data::data_of;
pub(in crate::proxy) use data::{input_of, text_as_data, text_of_block, texts_of};
pub(crate) use shape::shape_of;
pub(crate) use worker::{COMMAND, run as run_worker};

/// The time limit of a filter, including the wait for a worker.
const TIME_LIMIT: Duration = Duration::from_millis(1800);

/// A filter does not start with less than this time left.
const LEAST_TIME: Duration = Duration::from_millis(50);

/// The output limit of a filter, in bytes.
const OUTPUT_LIMIT: u64 = 8 * 1024 * 1024;

/// The most levels of data that a filter in this process reads: it has no stack for any number of them.
const DEEPEST: usize = 128;

/// The maximum number of filters that run in parallel.
const SIDE_BY_SIDE: usize = 4;
/// The maximum number of one client's filters among them, so that it cannot delay the others.
const OF_ONE_CLIENT: usize = 3;

/// A filter, by who wrote it: a jq program.
#[derive(Debug, Clone, Copy)]
pub(in crate::proxy) enum Selector<'a> {
    /// The agent of a call.
    Agent(&'a str),
    /// The user, in the configuration.
    User(&'a str),
}

/// Runs filters.
#[derive(Debug)]
pub(crate) struct Projection {
    workers: Arc<Semaphore>,
    shares: Mutex<HashMap<u64, Weak<Semaphore>>>,
}

/// Why a filter gave no output.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The filter is invalid, or fails on this data.
    #[error("{0}")]
    Filter(String),
    /// It has no output.
    #[error("the filter has no output")]
    Empty,
    /// It exceeded its time limit.
    #[error("the filter was stopped after {TIME_LIMIT:?}")]
    TooLong,
    /// It could not start within its time limit.
    #[error(
        "the filter could not start within {TIME_LIMIT:?}, because other filters used all workers: run fewer at once"
    )]
    NotBegun,
    /// It exceeded its output limit.
    #[error("the filter has an output of more than {} MB", OUTPUT_LIMIT / 1024 / 1024)]
    TooMuch,
    /// The system ended it, most likely because of its memory.
    #[error("the filter needed too much memory")]
    TooLarge,
    /// Its process failed.
    #[error("the filter could not be run: {0}")]
    Process(#[from] io::Error),
}

impl Default for Projection {
    fn default() -> Self {
        Self {
            workers: Arc::new(Semaphore::new(SIDE_BY_SIDE)),
            shares: Mutex::default(),
        }
    }
}

impl Projection {
    /// Runs a filter on `data`. The output has one value per line: strings raw, other values as JSON. `share` identifies the
    /// client.
    ///
    /// # Errors
    /// When it fails, has no output, or exceeds its limits, or if there is no process for an agent's filter.
    pub(in crate::proxy) async fn select(
        &self,
        share: u64,
        filter: Selector<'_>,
        data: &RawValue,
    ) -> Result<String, Error> {
        let end = Instant::now() + TIME_LIMIT;
        let share = self.share(share);
        // The client's own share comes first: while a filter waits for it, it does not block others.
        let begin = async {
            let own = share.acquire_owned().await;
            (own, self.workers.clone().acquire_owned().await)
        };
        let permits = tokio::time::timeout_at(end - LEAST_TIME, begin)
            .await
            .map_err(|_| Error::NotBegun)?;
        let ended = match filter {
            Selector::User(filter) if !executable::is_mcpzip() => {
                let (filter, data) = (filter.to_owned(), data.get().to_owned());
                // A thread cannot be ended. One that takes too long keeps its permits, so that there are few of them.
                let ended = on_thread(move || {
                    let _permits = permits;
                    selected_here(&filter, data.as_bytes())
                });
                tokio::time::timeout_at(end, ended).await
            }
            Selector::Agent(filter) | Selector::User(filter) => {
                tokio::time::timeout_at(end, run(filter, data)).await
            }
        };
        ended.unwrap_or(Err(Error::TooLong))
    }

    /// The workers that one client's filters may use; dropped with its last filter.
    fn share(&self, share: u64) -> Arc<Semaphore> {
        let mut shares = self.shares.lock();
        shares.retain(|_, own| own.strong_count() > 0);
        shares
            .get(&share)
            .and_then(Weak::upgrade)
            .unwrap_or_else(|| {
                let own = Arc::new(Semaphore::new(OF_ONE_CLIENT));
                shares.insert(share, Arc::downgrade(&own));
                own
            })
    }
}

/// Why `filter` is not a filter, if it is none.
pub(crate) fn fault_of(filter: &str) -> Option<String> {
    match worker::compiled(filter) {
        Ok(_) => None,
        Err(worker::Stopped::Filter(reason)) => Some(reason),
        Err(worker::Stopped::Output(error)) => Some(error.to_string()),
    }
}

/// Runs `filter` in this process, without limits of time and memory: for a filter of the program itself.
///
/// # Errors
/// When it fails or has no output.
pub(crate) fn run_here(filter: &str, data: &[u8]) -> Result<String, String> {
    filtered_here(filter, data, Vec::new(), |output| output).map_err(|error| error.to_string())
}

/// Runs a filter of the user in this process, which lacks the memory for a large output.
fn selected_here(filter: &str, data: &[u8]) -> Result<String, Error> {
    let output = Limited(Vec::new());
    let ended = filtered_here(filter, data, output, |output| output.0);
    ended.map_err(|error| match error {
        Error::Process(_) => Error::TooMuch,
        error => error,
    })
}

fn filtered_here<W: io::Write>(
    filter: &str,
    data: &[u8],
    mut output: W,
    text: impl Fn(W) -> Vec<u8>,
) -> Result<String, Error> {
    if levels(data) > DEEPEST {
        let reason = format!("the data have more than {DEEPEST} levels");
        return Err(Error::Filter(reason));
    }
    worker::filtered(filter, data, &mut output).map_err(|stopped| match stopped {
        worker::Stopped::Filter(reason) => Error::Filter(reason),
        worker::Stopped::Output(error) => Error::Process(error),
    })?;
    let output = text(output);
    if output.is_empty() {
        return Err(Error::Empty);
    }
    let text = output.strip_suffix(b"\n").unwrap_or(&output);
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// The number of levels of arrays and objects in JSON.
fn levels(json: &[u8]) -> usize {
    let (mut level, mut most, mut is_text, mut is_escaped) = (0_usize, 0, false, false);
    for byte in json {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => {
                level += 1;
                most = most.max(level);
            }
            b']' | b'}' if !is_text => level = level.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// An output with a limit.
struct Limited(Vec<u8>);

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.0.len() + bytes.len()) as u64 > OUTPUT_LIMIT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The value of `work` on a thread that the end of the run does not wait for.
async fn on_thread(
    work: impl FnOnce() -> Result<String, Error> + Send + 'static,
) -> Result<String, Error> {
    let (sender, receiver) = oneshot::channel();
    // If no one waits any more, the value is not needed.
    spawn_thread("filter", move || drop(sender.send(work())))?;
    // A filter that panics sends nothing.
    let lost = |_| Err(io::Error::other("its thread failed").into());
    receiver.await.unwrap_or_else(lost)
}

async fn run(filter: &str, data: &RawValue) -> Result<String, Error> {
    let mut child = Command::from(executable::command()?)
        .arg(COMMAND)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = child.stdin.take().expect("stdin is piped");
    let output = child.stdout.take().expect("stdout is piped");
    let errors = child.stderr.take().expect("stderr is piped");
    let write = async {
        let filter = crate::mcp::object::quoted(filter);
        // If the worker has ended, its exit status or stderr says why.
        let _ = input.write_all(filter.as_bytes()).await;
        let _ = input.write_all(b"\n").await;
        let _ = input.write_all(data.get().as_bytes()).await;
        drop(input);
    };
    let (mut text, mut said) = (Vec::new(), Vec::new());
    let (mut limited, mut short) = (output.take(OUTPUT_LIMIT + 1), errors.take(4096));
    let ((), read, _) = tokio::join!(
        write,
        limited.read_to_end(&mut text),
        short.read_to_end(&mut said)
    );
    read?;
    if text.len() as u64 > OUTPUT_LIMIT {
        return Err(Error::TooMuch);
    }
    let status = child.wait().await?;
    match status.code() {
        Some(0) if text.is_empty() => Err(Error::Empty),
        Some(0) => {
            Ok(String::from_utf8_lossy(text.strip_suffix(b"\n").unwrap_or(&text)).into_owned())
        }
        Some(worker::FILTER_FAILED) => Err(Error::Filter(
            String::from_utf8_lossy(&said).trim().to_owned(),
        )),
        _ => Err(Error::TooLarge),
    }
}
