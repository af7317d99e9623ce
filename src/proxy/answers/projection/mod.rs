//! The part of a result that the agent asked for.
//!
//! A filter is a program by somebody else: it may never end, or fill the memory. So it runs in a process of its own, this
//! binary under a hidden command, with limits that the system enforces, no environment and nothing open but its pipes.

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
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::executable;
pub(crate) use data::data_of;
pub(in crate::proxy) use data::texts_of;
pub(crate) use shape::shape_of;
pub(crate) use worker::{COMMAND, run as run_worker};

/// How long a filter may take, the wait for a worker included.
const TIME_LIMIT: Duration = Duration::from_millis(1800);

/// With less than this left, a filter is not begun.
const LEAST_TIME: Duration = Duration::from_millis(50);

/// What a filter may put out, in bytes.
const OUTPUT_LIMIT: u64 = 8 * 1024 * 1024;

/// Filters that run side by side,
const SIDE_BY_SIDE: usize = 4;
/// and those of one client among them, so that it cannot keep the others waiting.
const OF_ONE_CLIENT: usize = 3;

/// Runs filters.
#[derive(Debug)]
pub(crate) struct Projection {
    workers: Semaphore,
    shares: Mutex<HashMap<u64, Weak<Semaphore>>>,
}

/// Why a filter gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The filter is wrong, or fails on this data.
    #[error("{0}")]
    Filter(String),
    /// It put out nothing.
    #[error("the filter put out nothing")]
    Empty,
    /// It took too long.
    #[error("the filter was ended after {TIME_LIMIT:?}")]
    TooLong,
    /// It had not begun by the time it had to end.
    #[error(
        "the filter was not begun within {TIME_LIMIT:?}, as other filters took all workers: run fewer at once"
    )]
    NotBegun,
    /// It put out too much.
    #[error("the filter put out more than {} MB", OUTPUT_LIMIT / 1024 / 1024)]
    TooMuch,
    /// It was ended by the system, most likely for the memory it took.
    #[error("the filter needed too much memory")]
    TooLarge,
    /// It could not be run.
    #[error("the filter could not be run: {0}")]
    Process(#[from] io::Error),
}

impl Default for Projection {
    fn default() -> Self {
        Self {
            workers: Semaphore::new(SIDE_BY_SIDE),
            shares: Mutex::default(),
        }
    }
}

impl Projection {
    /// What `filter`, in the language of jq, makes of `data`: strings as they are, all else as JSON, a line each. `share`
    /// tells clients apart.
    ///
    /// # Errors
    /// When it fails, puts out nothing, or goes beyond its limits.
    pub(crate) async fn select(
        &self,
        share: u64,
        filter: &str,
        data: &RawValue,
    ) -> Result<String, Error> {
        let end = Instant::now() + TIME_LIMIT;
        let share = self.share(share);
        // A client's own share comes first: what waits for that does not stand in the way of others.
        let begin = async { (share.acquire().await, self.workers.acquire().await) };
        let (_own, _worker) = tokio::time::timeout_at(end - LEAST_TIME, begin)
            .await
            .map_err(|_| Error::NotBegun)?;
        tokio::time::timeout_at(end, run(filter, data))
            .await
            .unwrap_or(Err(Error::TooLong))
    }

    /// The workers that the filters of one client may take; they are forgotten with the last of these.
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
        // A worker that has ended, or was ended, says why in other ways.
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
