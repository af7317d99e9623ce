//! Sends the lines of all chains of this state directory to the store that replicas share.
//!
//! The chains are the spool: a line is in its file before a call is answered, and is sent within seconds. A file next to them has the
//! place up to which each file was sent. Lines that were sent before that place was written are sent again, and the store keeps one.
//!
//! A call whose line must be in the store waits for the next statement, which takes the lines of all calls that wait.
//!
//! *Never*: delays a call that does not ask for that; removes or changes a line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

use super::chain::{self, Mark};
use super::{Directories, Written};
use crate::files;
use crate::secret::random_bytes;
use crate::shutdown::Tasks;
use crate::store::{AuditLine, AuditTaken, Records};

/// The time between two looks at the chains.
const LOOK: Duration = Duration::from_millis(500);

/// The time for the last lines at the end of a run.
const LAST: Duration = Duration::from_secs(2);

/// The longest wait for a line to be in the store.
const PATIENCE: Duration = Duration::from_secs(5);

/// The most lines, and about the most bytes, of one statement.
const LINES: usize = 500;
const BYTES: usize = 1024 * 1024;

/// The file of places, next to the heads.
const FILE: &str = "sent.json";

/// The largest file of places, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// How far the lines were sent.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Sent {
    /// The id of this state directory among those of other replicas.
    origin: String,
    /// The place in each file, by chain and file.
    places: BTreeMap<String, u64>,
}

/// Lines of one file that were not sent yet.
struct Batch {
    file: String,
    /// The name of the chain in this state directory.
    chain: String,
    /// The place after them.
    place: u64,
    lines: Vec<AuditLine>,
    /// The day of the line before them, if that is still in a file.
    before: Option<String>,
}

/// The way of lines from the files to the store.
#[derive(Debug)]
pub(crate) struct Shipping {
    store: Arc<dyn Records>,
    lines: AtomicU64,
    failures: AtomicU64,
    /// Lines wait that must be in the store.
    wanted: Notify,
    progress: watch::Sender<Progress>,
}

/// The state of the way.
#[derive(Debug, Default)]
struct Progress {
    /// Whether lines are sent in this run.
    is_running: bool,
    /// The number of the current or last attempt, and of the last one that failed, with its reason.
    attempt: u64,
    failed: Option<(u64, String)>,
    /// Why lines wait, until an attempt succeeds.
    fault: Option<String>,
    /// The last line of each chain that is in the store.
    places: BTreeMap<String, u64>,
    /// The chain with lines that are waited for.
    own: Option<String>,
}

/// Why a run has no way to the store.
pub(super) fn nowhere() -> io::Result<()> {
    Err(io::Error::other(
        "only `mcpzip serve --http` with a `store` sends the log there",
    ))
}

impl Shipping {
    /// The way to `store`; nothing is sent before [`ship`] runs.
    #[must_use]
    pub(crate) fn new(store: Arc<dyn Records>) -> Arc<Self> {
        Arc::new(Self {
            store,
            lines: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            wanted: Notify::new(),
            progress: watch::Sender::new(Progress::default()),
        })
    }

    /// The lines that the store has from this run.
    pub(crate) fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// The attempts that failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Why the store takes no lines now, if it does not.
    pub(crate) fn fault(&self) -> Option<String> {
        self.progress.borrow().fault.clone()
    }

    /// Checks before a call that its line can be committed, as far as that is known.
    pub(super) fn ready(&self) -> io::Result<()> {
        if !self.progress.borrow().is_running {
            return nowhere();
        }
        match self.store.fault().or_else(|| self.fault()) {
            None => Ok(()),
            Some(fault) => Err(io::Error::new(io::ErrorKind::NotConnected, fault)),
        }
    }

    /// Waits until a line is in the store. An attempt that begins after this call and fails ends the wait.
    pub(super) async fn committed(&self, line: &Written) -> io::Result<()> {
        let mut progress = self.progress.subscribe();
        let mut before = 0;
        self.progress.send_if_modified(|progress| {
            before = progress.attempt;
            progress.own = Some(line.chain.clone());
            false
        });
        self.wanted.notify_one();
        let is_over = |progress: &Progress| {
            let known = progress.places.get(&line.chain);
            let failed = progress.failed.as_ref();
            known.is_some_and(|known| *known >= line.number)
                || failed.is_some_and(|(attempt, _)| *attempt > before)
        };
        let Ok(over) = tokio::time::timeout(PATIENCE, progress.wait_for(is_over)).await else {
            return Err(io::ErrorKind::TimedOut.into());
        };
        let over = over.map_err(io::Error::other)?;
        if over
            .places
            .get(&line.chain)
            .is_some_and(|known| *known >= line.number)
        {
            return Ok(());
        }
        let reason = over.failed.as_ref().map(|(_, reason)| reason.clone());
        Err(io::Error::other(reason.unwrap_or_default()))
    }
}

impl Shipping {
    fn succeeded(&self) {
        let had_failed = self
            .progress
            .send_if_modified(|progress| progress.fault.take().is_some());
        if had_failed {
            tracing::info!("the store takes lines of the audit log again");
        }
    }

    /// Says that old lines are sent first. Calls that wait for their line would wait too long.
    fn begins_again(&self) {
        let fault = "its lines are being sent to the store again".to_owned();
        self.progress
            .send_modify(|progress| progress.fault = Some(fault));
    }

    fn failed(&self, error: &io::Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        let mut is_first = false;
        self.progress.send_modify(|progress| {
            progress.failed = Some((progress.attempt, error.to_string()));
            is_first = progress.fault.replace(error.to_string()).is_none();
        });
        match is_first {
            true => tracing::warn!(%error, "lines of the audit log wait for the store"),
            false => tracing::debug!(%error, "lines of the audit log wait for the store"),
        }
    }
}

/// Sends lines to the store until the run ends: within half a second, and at once where a call waits for it.
pub(crate) async fn ship(directories: Directories, shipping: Arc<Shipping>, tasks: Tasks) {
    shipping
        .progress
        .send_modify(|progress| progress.is_running = true);
    let mut spool = Spool::default();
    loop {
        let ends = tokio::select! {
            () = tokio::time::sleep(LOOK) => false,
            () = shipping.wanted.notified() => false,
            () = tasks.stopped() => true,
        };
        let all = send_all(&directories, &shipping, &tasks, &mut spool);
        if ends {
            // The rest is sent by the next run.
            let _ = tokio::time::timeout(LAST, all).await;
            return;
        }
        match all.await {
            Ok(()) => shipping.succeeded(),
            Err(error) => {
                spool.sent_again.clear();
                shipping.failed(&error);
            }
        }
    }
}

/// The places in memory, which are written from time to time. Lines behind a place that was not written are sent again.
#[derive(Debug, Default)]
struct Spool {
    sent: Option<Sent>,
    written: Option<Instant>,
    /// The chains that are sent again since the last failure, because the store had lost lines.
    sent_again: BTreeSet<String>,
}

async fn send_all(
    directories: &Directories,
    shipping: &Shipping,
    tasks: &Tasks,
    spool: &mut Spool,
) -> io::Result<()> {
    let ended = || io::Error::from(io::ErrorKind::Interrupted);
    loop {
        let mut own = None;
        shipping.progress.send_modify(|progress| {
            progress.attempt += 1;
            own.clone_from(&progress.own);
        });
        let (of, known) = (directories.clone(), spool.sent.take());
        let read = tasks.spawn_blocking(move || {
            let sent = known.map_or_else(|| read(&of), Ok)?;
            next(&of, sent, own.as_deref())
        });
        let (mut sent, batch) = read.await.unwrap_or_else(|_| Err(ended()))?;
        let is_last = batch.is_none();
        if let Some(Batch {
            file,
            chain,
            place,
            lines,
            before,
        }) = batch
        {
            let (count, of_chain) = (lines.len() as u64, format!("{chain}/"));
            let last = lines.iter().map(|line| line.place.unsigned_abs()).max();
            let taken = match count {
                0 => AuditTaken::All,
                // A failure leaves the places to be read again.
                _ => shipping.store.write_audit(lines, before).await?,
            };
            match taken {
                AuditTaken::All | AuditTaken::Gap => {}
                AuditTaken::Again => {
                    spool.sent = Some(sent);
                    continue;
                }
                AuditTaken::Foreign => {
                    tracing::warn!(
                        "the store has other lines under the name of this gateway, as if its state directory were a copy of another one's: all lines are sent under a new name"
                    );
                    shipping.begins_again();
                    let of = directories.clone();
                    let named = tasks.spawn_blocking(move || begin(&of));
                    spool.sent = Some(named.await.unwrap_or_else(|_| Err(ended()))?);
                    continue;
                }
            }
            shipping.lines.fetch_add(count, Ordering::Relaxed);
            sent.places.insert(file, place);
            shipping.progress.send_modify(|progress| {
                let known = progress.places.entry(chain).or_default();
                *known = (*known).max(last.unwrap_or_default());
            });
            spool.written.get_or_insert_with(Instant::now);
            if taken == AuditTaken::Gap && spool.sent_again.insert(of_chain.clone()) {
                tracing::warn!(
                    "the store has lost lines of the audit log, as one that was restored from a copy: those that are in files here are sent again"
                );
                shipping.begins_again();
                sent.places.retain(|file, _| !file.starts_with(&of_chain));
            }
        }
        let is_due = spool.written.is_some_and(|since| since.elapsed() > LOOK);
        if is_due || is_last && spool.written.is_some() && tasks.stop().is_cancelled() {
            let (of, now) = (directories.clone(), sent.clone());
            let written = tasks.spawn_blocking(move || write(&of, &now));
            written.await.unwrap_or_else(|_| Err(ended()))?;
            spool.written = None;
        }
        spool.sent = Some(sent);
        if is_last {
            return Ok(());
        }
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
    // A damaged file costs a second sending, under another name.
    match read.filter(|sent: &Sent| !sent.origin.is_empty()) {
        Some(sent) => Ok(sent),
        None => begin(directories),
    }
}

/// Nothing was sent, under a new name.
fn begin(directories: &Directories) -> io::Result<Sent> {
    let sent = Sent {
        origin: HEXLOWER.encode(&random_bytes::<8>()),
        places: BTreeMap::new(),
    };
    files::create_private_directory(&directories.chains)?;
    write(directories, &sent)?;
    Ok(sent)
}

/// The bytes of a file that the store does not have, of `length`. 0 if this state directory has never been used with a store.
pub(super) fn unsent(directories: &Directories, chain: &str, path: &Path, length: u64) -> u64 {
    let sent = files::read_regular(&file(directories), LARGEST).ok();
    let sent = sent.and_then(|bytes| serde_json::from_slice::<Sent>(&bytes).ok());
    sent.map_or(0, |sent| {
        let place = sent.places.get(&key(chain, path)).copied();
        length.saturating_sub(place.unwrap_or_default())
    })
}

/// The name of a file among the places.
fn key(chain: &str, path: &Path) -> String {
    format!("{chain}/{}", path.file_name().unwrap_or_default().display())
}

fn write(directories: &Directories, sent: &Sent) -> io::Result<()> {
    files::replace(&file(directories), &[&serde_json::to_vec(sent)?])
}

/// The next lines that were not sent, those of chain `own` first. `None` if all were.
fn next(
    directories: &Directories,
    mut sent: Sent,
    own: Option<&str>,
) -> io::Result<(Sent, Option<Batch>)> {
    let mut there = BTreeMap::new();
    let mut found = None;
    let mut chains = chain::chains(&directories.chains)?;
    chains.sort_by_key(|(name, _)| own != Some(name.as_str()));
    for (name, path) in chains {
        let mut day = None;
        for (segment, path) in chain::segments(&path)? {
            let key = key(&name, &path);
            let place = sent.places.get(&key).copied().unwrap_or(0);
            there.insert(key.clone(), place);
            if found.is_none() && fs::metadata(&path)?.len() > place {
                let chain = format!("{}/{name}", sent.origin);
                let from = place;
                let (lines, place) = lines(&path, from, &chain, &segment.day.to_string())?;
                let is_news = Some(&place) != there.get(&key);
                found = is_news.then(|| Batch {
                    file: key,
                    chain: name.clone(),
                    place,
                    lines,
                    before: match from {
                        0 => day.clone(),
                        _ => Some(segment.day.to_string()),
                    },
                });
            }
            day = Some(segment.day.to_string());
        }
    }
    // Files that were removed since.
    sent.places = there;
    Ok((sent, found))
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
