//! Sends the lines of all chains of this state directory to the store that replicas share.
//!
//! The chains are the spool: a line is in its file before a call is answered, and is sent within seconds. A file next to them has the
//! place up to which each file was sent. Lines that were sent before that place was written are sent again, and the store keeps one.
//!
//! *Never*: delays a call; removes or changes a line.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use super::Directories;
use super::chain::{self, Mark};
use crate::files;
use crate::secret::random_bytes;
use crate::shutdown::Tasks;
use crate::store::{AuditLine, Records};

/// The time between two looks at the chains.
const LOOK: Duration = Duration::from_millis(500);

/// The time for the last lines at the end of a run.
const LAST: Duration = Duration::from_secs(2);

/// The most lines, and about the most bytes, of one statement.
const LINES: usize = 500;
const BYTES: usize = 1024 * 1024;

/// The file of places, next to the heads.
const FILE: &str = "sent.json";

/// The largest file of places, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// How far the lines were sent.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Sent {
    /// The id of this state directory among those of other replicas.
    origin: String,
    /// The place in each file, by chain and file.
    places: BTreeMap<String, u64>,
}

/// Lines of one file that were not sent yet.
struct Batch {
    file: String,
    /// The place after them.
    place: u64,
    lines: Vec<AuditLine>,
}

/// The counts of a run.
#[derive(Debug, Default)]
pub(crate) struct Shipped {
    lines: AtomicU64,
    failures: AtomicU64,
}

impl Shipped {
    /// The lines that the store has from this run.
    pub(crate) fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// The attempts that failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

/// Sends lines to `store` until the run ends.
pub(crate) async fn ship(
    directories: Directories,
    store: Arc<dyn Records>,
    shipped: Arc<Shipped>,
    tasks: Tasks,
) {
    loop {
        let ends = tokio::time::timeout(LOOK, tasks.stopped()).await.is_ok();
        let all = send_all(&directories, &store, &shipped, &tasks);
        if ends {
            // The rest is sent by the next run.
            let _ = tokio::time::timeout(LAST, all).await;
            return;
        }
        if let Err(error) = all.await {
            // One line per outage.
            if shipped.failures.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!(%error, "lines of the audit log wait for the store");
            } else {
                tracing::debug!(%error, "lines of the audit log wait for the store");
            }
        }
    }
}

async fn send_all(
    directories: &Directories,
    store: &Arc<dyn Records>,
    shipped: &Shipped,
    tasks: &Tasks,
) -> io::Result<()> {
    loop {
        let spool = directories.clone();
        let read = tasks.spawn_blocking(move || next(&spool));
        let read = read
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))?;
        let Some((mut sent, batch)) = read else {
            return Ok(());
        };
        let count = batch.lines.len() as u64;
        if count > 0 {
            store.write_audit(batch.lines).await?;
        }
        shipped.lines.fetch_add(count, Ordering::Relaxed);
        sent.places.insert(batch.file, batch.place);
        let spool = directories.clone();
        let written = tasks.spawn_blocking(move || write(&spool, &sent));
        written
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))?;
    }
}

fn file(directories: &Directories) -> PathBuf {
    directories.chains.join(FILE)
}

fn read(directories: &Directories) -> io::Result<Sent> {
    let read = match files::read_regular(&file(directories), LARGEST) {
        Ok(bytes) => serde_json::from_slice(&bytes).ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // A damaged file costs a second sending, of which the store keeps one under another origin.
    let mut sent: Sent = read.unwrap_or_default();
    if sent.origin.is_empty() {
        sent.origin = HEXLOWER.encode(&random_bytes::<8>());
        files::create_private_directory(&directories.chains)?;
        write(directories, &sent)?;
    }
    Ok(sent)
}

fn write(directories: &Directories, sent: &Sent) -> io::Result<()> {
    files::replace(&file(directories), &[&serde_json::to_vec(sent)?])
}

/// The next lines that were not sent. `None` if all were.
fn next(directories: &Directories) -> io::Result<Option<(Sent, Batch)>> {
    let mut sent = read(directories)?;
    let mut there = BTreeMap::new();
    let mut found = None;
    for (name, path) in chain::chains(&directories.chains)? {
        for (segment, path) in chain::segments(&path)? {
            let key = format!("{name}/{}", path.file_name().unwrap_or_default().display());
            let place = sent.places.get(&key).copied().unwrap_or(0);
            there.insert(key.clone(), place);
            if found.is_none() && fs::metadata(&path)?.len() > place {
                let chain = format!("{}/{name}", sent.origin);
                let (lines, place) = lines(&path, place, &chain, &segment.day.to_string())?;
                let is_news = Some(&place) != there.get(&key);
                found = is_news.then_some(Batch {
                    file: key,
                    place,
                    lines,
                });
            }
        }
    }
    // Files that were removed since.
    sent.places = there;
    Ok(found.map(|batch| (sent, batch)))
}

/// The complete lines of a file after a place, as many as fit into a statement, and the place after them.
fn lines(path: &Path, from: u64, chain: &str, day: &str) -> io::Result<(Vec<AuditLine>, u64)> {
    let mut file = files::open_regular(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut reader = BufReader::new(file.take(64 * BYTES as u64));
    let (mut lines, mut place, mut bytes) = (Vec::new(), from, 0);
    let mut line = Vec::new();
    while lines.len() < LINES && bytes < BYTES {
        line.clear();
        reader.read_until(b'\n', &mut line)?;
        let Some(text) = line.strip_suffix(b"\n") else {
            break;
        };
        place += line.len() as u64;
        bytes += line.len();
        // A damaged line stays in the file, where `mcpzip audit verify` finds it.
        if let (Ok(mark), Ok(text)) = (
            serde_json::from_slice::<Mark>(text),
            std::str::from_utf8(text),
        ) {
            lines.push(AuditLine {
                chain: chain.to_owned(),
                place: i64::try_from(mark.number).unwrap_or(i64::MAX),
                day: day.to_owned(),
                text: text.to_owned(),
            });
        }
    }
    Ok((lines, place))
}
