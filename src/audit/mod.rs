//! The audit log: one line of JSON per call, refusal, approval, login and change, each with the hash of the line before
//! it.
//!
//! Each session's log appends to a *chain*: a directory that it holds a lock on, with a file per day. The next
//! session continues a chain that is not locked, so there are as many chains as there were sessions at the same
//! time. The last hash of each chain, its head, is stored in another directory, from which it can be copied off the
//! machine. `verify` compares the two.
//!
//! A line is written before the answer that it describes, and synced within a second. A killed process loses nothing; a
//! power failure loses at most that second. With `audit.durable` `"store"`, the line is also committed in the store of several
//! replicas before the answer (`shipping.rs`).

mod chain;
mod check;
mod copies;
mod event;
mod otlp;
mod reader;
mod retention;
mod shipping;
mod syslog;
#[cfg(test)]
mod tests;
mod verify;
mod writer;

pub(crate) use event::{Event, Kind, Outcome};
pub(crate) use reader::{Filter, Line, Reader};
pub(crate) use retention::delete_before;
pub(crate) use shipping::{Shipping, ship};
pub(crate) use verify::verify;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;

use crate::config::{AuditCopies, AuditOptions, AuditedArguments, Durability};
#[cfg(test)]
use crate::day::Day;
use crate::shutdown::Tasks;
use copies::Copies;
use writer::Writer;

/// Interval between two syncs to disk.
const SYNC: Duration = Duration::from_secs(1);

/// Directory of the chains, below the state directory.
pub(crate) const CHAINS: &str = "audit";
/// Directory of the heads, below the state directory.
pub(crate) const HEADS: &str = "audit-heads";

/// The audit log of this process.
#[derive(Debug)]
pub(crate) struct Audit {
    directories: Directories,
    options: AuditOptions,
    writer: Mutex<State>,
    copies: Copies,
    /// The way of lines to the store, if this run sends them there.
    shipping: Option<Arc<Shipping>>,
}

/// A line that must be in the store before its call is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    chain: String,
    number: u64,
}

/// The directories of the log.
#[derive(Debug, Clone)]
pub(crate) struct Directories {
    /// A directory per chain.
    pub(crate) chains: PathBuf,
    /// A file per chain.
    pub(crate) heads: PathBuf,
}

#[derive(Debug, Default)]
struct State {
    /// Opened at the first event.
    writer: Option<Writer>,
    /// Events that could not be written since the last written one.
    lost: u64,
}

/// An event could not be written to the audit log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Not to its file.
    #[error("the audit log in `{}` cannot be written", .directory.display())]
    File {
        /// The directory of the chains.
        directory: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Not to the store.
    #[error("the audit log cannot be committed in the store, as `audit.durable` asks for")]
    Store {
        /// The reason.
        source: io::Error,
    },
}

/// The line of an event of the log itself.
fn log_line(detail: &str) -> String {
    let event = Event::of_log(detail);
    event.ending(event.beginning(AuditedArguments::None, String::new()))
}

impl Directories {
    /// The directories below `state_dir`.
    #[must_use]
    pub(crate) fn below(state_dir: &Path) -> Self {
        Self {
            chains: state_dir.join(CHAINS),
            heads: state_dir.join(HEADS),
        }
    }
}

impl Audit {
    /// Creates a log in `directories`. Nothing is opened before the first event.
    #[cfg(test)]
    fn new(directories: Directories, options: AuditOptions) -> Arc<Self> {
        Arc::new(Self::with_copies(directories, options, Copies::default()))
    }

    /// The log of a run, synced every second until the run ends. Copies of its lines go where `copies` says, to stdout while `is_stdout_free`.
    #[must_use]
    pub(crate) fn start(
        directories: Directories,
        options: AuditOptions,
        copies: &AuditCopies,
        is_stdout_free: &Arc<AtomicBool>,
        shipping: Option<Arc<Shipping>>,
        tasks: &Tasks,
    ) -> Arc<Self> {
        let copies = Copies::new(copies, is_stdout_free, tasks);
        let audit = Arc::new(Self {
            shipping,
            ..Self::with_copies(directories, options, copies)
        });
        audit.copies.start();
        audit.sync_each_second(tasks);
        audit
    }

    fn with_copies(directories: Directories, options: AuditOptions, copies: Copies) -> Self {
        Self {
            directories,
            options,
            writer: Mutex::default(),
            copies,
            shipping: None,
        }
    }

    /// Starts the task that syncs every second. At the end of the run, the last sync is left to [`Audit::sync`]. A log that nothing
    /// else uses any more, because other settings replaced it, is synced a last time and closed.
    fn sync_each_second(self: &Arc<Self>, tasks: &Tasks) {
        let (audit, owner) = (self.clone(), tasks.clone());
        tasks.spawn(async move {
            while tokio::time::timeout(SYNC, owner.stopped()).await.is_err() {
                // Counted before the sync, which then has every line.
                let is_replaced = Arc::strong_count(&audit) == 1;
                let synced = audit.clone();
                // A panic while syncing is printed to stderr, and the next second tries again.
                let _ = owner.spawn_blocking(move || synced.sync()).await;
                if is_replaced {
                    audit.flush().await;
                    return;
                }
            }
        });
    }

    /// Appends an event. Blocks for one write to the file system's cache.
    ///
    /// # Errors
    /// When it cannot be written. The call must then not be answered as if it were logged. The next event says how many
    /// are missing.
    pub(crate) fn record(&self, event: &Event<'_>) -> Result<Option<Written>, Error> {
        self.finish(self.prepare(event), event)
    }

    /// Waits until a line is in the store, if it must be there.
    ///
    /// # Errors
    /// When it does not get there in time. The call must not be answered then.
    pub(crate) async fn committed(&self, written: Option<Written>) -> Result<(), Error> {
        let Some(written) = written else {
            return Ok(());
        };
        let committed = match &self.shipping {
            Some(shipping) => shipping.committed(&written).await,
            None => shipping::nowhere(),
        };
        committed.map_err(|source| Error::Store { source })
    }

    /// The part of an event's line that does not depend on its outcome. Other work before the line is written is done here,
    /// too, because a caller has the time while a server works.
    #[must_use]
    pub(crate) fn prepare(&self, event: &Event<'_>) -> String {
        // A log that cannot be opened is an error where the line is written.
        let spent = match self.writer_of(&mut self.writer.lock()) {
            Ok(writer) => writer.settle(),
            Err(_) => None,
        };
        event.beginning(self.options.arguments, spent.unwrap_or_default())
    }

    /// Appends the event whose line begins with `prepared`, as [`Audit::record`] does. Returns the line if it must be in the store.
    ///
    /// # Errors
    /// As [`Audit::record`].
    pub(crate) fn finish(
        &self,
        prepared: String,
        event: &Event<'_>,
    ) -> Result<Option<Written>, Error> {
        let mut state = self.writer.lock();
        let written = self.append(&mut state, event.ending(prepared));
        if let Err(source) = written {
            state.lost += 1;
            let directory = self.directories.chains.clone();
            return Err(Error::File { directory, source });
        }
        Ok(self.must_be_in_store().then(|| {
            let writer = state.writer.as_ref();
            let place = writer.map(|writer| (writer.name().to_owned(), writer.number()));
            let (chain, number) = place.unwrap_or_default();
            Written { chain, number }
        }))
    }

    fn must_be_in_store(&self) -> bool {
        self.options.durable == Durability::Store
    }

    /// Checks before an action that its event can be written: the log is open, and after an event that could not be
    /// written there is space for the next ones.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(crate) fn ready(&self) -> Result<(), Error> {
        let mut state = self.writer.lock();
        if self.must_be_in_store() {
            let shipping = self.shipping.as_ref();
            let ready = shipping.map_or_else(shipping::nowhere, |shipping| shipping.ready());
            if let Err(source) = ready {
                state.lost += 1;
                return Err(Error::Store { source });
            }
        }
        let is_ready = match (&state.writer, state.lost) {
            (Some(_), 0) => Ok(()),
            (None, 0) => self.writer_of(&mut state).map(drop),
            _ => self
                .writer_of(&mut state)
                .and_then(|writer| writer.reserve())
                .and_then(|()| self.report_lost(&mut state)),
        };
        is_ready.map_err(|source| {
            // The refused action has no line.
            state.lost += 1;
            let directory = self.directories.chains.clone();
            Error::File { directory, source }
        })
    }

    /// Syncs the written lines and the head of the chain. Blocks on the disk.
    pub(crate) fn sync(&self) {
        let pending = self
            .writer
            .lock()
            .writer
            .as_mut()
            .and_then(Writer::unsynced);
        let Some(pending) = pending else {
            return;
        };
        if let Err(error) = pending.sync(&self.directories.heads) {
            tracing::error!(%error, "the audit log could not be synced to the disk");
        }
    }

    /// Sends the copies that still wait. No copy is sent afterwards.
    pub(crate) async fn flush(&self) {
        self.copies.flush().await;
    }

    fn append(&self, state: &mut State, line: String) -> io::Result<()> {
        if state.lost > 0 {
            self.report_lost(state)?;
        }
        let line = self.writer_of(state)?.append(line)?;
        self.copies.send(line);
        Ok(())
    }

    /// Writes an event with the number of missing events.
    fn report_lost(&self, state: &mut State) -> io::Result<()> {
        let detail = format!("{} events could not be written before this one", state.lost);
        let line = self.writer_of(state)?.append(log_line(&detail))?;
        self.copies.send(line);
        state.lost = 0;
        Ok(())
    }

    fn writer_of<'s>(&self, state: &'s mut State) -> io::Result<&'s mut Writer> {
        let writer = match state.writer.take() {
            Some(writer) => writer,
            None => Writer::open(&self.directories, self.options)?,
        };
        Ok(state.writer.insert(writer))
    }
}
