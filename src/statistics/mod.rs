//! Statistics of calls and of tokens: counted in memory, stored by day.
//!
//! Counting takes a lock and a few additions. Every half minute a task adds the counts to the file of the day, to
//! which other processes add as well. Several replicas add theirs to the record of the day in their store. A killed process loses the
//! counts of at most half a minute. Only names and numbers are stored, no arguments and no results.

mod histogram;
mod live;
mod record;
mod store;
mod table;

pub(crate) use histogram::Histogram;
pub(crate) use live::{BOUNDS, End, Live, Totals, bound};
pub(crate) use record::{DayRecord, Tally};
pub(crate) use store::{Error, History, StatisticsStorage};
pub(crate) use table::{Row, aligned, bytes};

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::day::Day;
use crate::shutdown::Tasks;

/// Interval between two writes.
const FLUSH: Duration = Duration::from_secs(30);

/// Counts calls and answers, and writes the counts to disk.
#[derive(Debug)]
pub struct Statistics {
    /// `None` if nothing is written.
    place: Option<StatisticsStorage>,
    pending: Mutex<BTreeMap<Day, DayRecord>>,
    live: Arc<Live>,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy)]
pub struct CallOutcome {
    /// Whether the tool reported an error or did not answer.
    pub failed: bool,
    /// The time from sending the request to its answer.
    pub latency: Duration,
    /// Bytes of arguments.
    pub sent: usize,
    /// Bytes of the result.
    pub received: usize,
    /// The way that the call came.
    pub path: CallPath,
}

/// The way that a call came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPath {
    /// An agent, through a meta-tool.
    MetaTool,
    /// An agent, by the tool's own name.
    OwnName,
    /// A command of the user.
    Command,
}

/// Kinds of texts for an agent other than tools' results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The definitions and instructions of mcpzip itself.
    Own,
    /// Hits of a search.
    Search,
    /// Descriptions of tools.
    Description,
    /// A part of a stored result.
    Part,
}

impl Statistics {
    /// Creates empty statistics. `directory` is where they are written; `None` keeps them in memory.
    #[must_use]
    pub fn new(directory: Option<&Path>) -> Arc<Self> {
        Self::at(directory.map(|directory| StatisticsStorage::Directory(directory.to_owned())))
    }

    /// Creates empty statistics, which are written to this place; `None` keeps them in memory.
    #[must_use]
    pub(crate) fn at(place: Option<StatisticsStorage>) -> Arc<Self> {
        Arc::new(Self {
            place,
            pending: Mutex::default(),
            live: Arc::default(),
        })
    }

    /// Starts the task that writes the counts at intervals. The last write is left to [`Statistics::flush`], which must
    /// not delay the end of other tasks.
    pub fn start(self: &Arc<Self>, tasks: &Tasks) {
        let (statistics, owner) = (self.clone(), tasks.clone());
        tasks.spawn(async move {
            while tokio::time::timeout(FLUSH, owner.stopped()).await.is_err() {
                let statistics = statistics.clone();
                // A panic while writing is printed to stderr and loses only these counts.
                let _ = owner.spawn_blocking(move || statistics.flush()).await;
            }
        });
    }

    /// Counts a call.
    pub fn called(&self, server: &str, tool: &str, outcome: &CallOutcome) {
        let mut pending = self.pending();
        let tally = pending.entry(Day::today()).or_default().tally(server, tool);
        tally.calls += 1;
        tally.by_hand += u64::from(outcome.path == CallPath::Command);
        tally.by_own_name += u64::from(outcome.path == CallPath::OwnName);
        tally.errors += u64::from(outcome.failed);
        tally.sent += outcome.sent as u64;
        tally.received += outcome.received as u64;
        tally.latency.add(outcome.latency);
    }

    /// Counts a result of which the agent got a part. Both sizes are in estimated tokens.
    pub fn reduced(&self, server: &str, tool: &str, is_stored: bool, whole: usize, shown: usize) {
        let mut pending = self.pending();
        let tally = pending.entry(Day::today()).or_default().tally(server, tool);
        let reduced = if is_stored {
            &mut tally.stored
        } else {
            &mut tally.projected
        };
        reduced.results += 1;
        reduced.whole += whole as u64;
        reduced.shown += shown as u64;
    }

    /// The counts of this process since its start.
    #[must_use]
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Counts another text for an agent, in estimated tokens.
    pub fn answered(&self, answer: Answer, tokens: usize) {
        self.live.answered(answer);
        let mut pending = self.pending();
        let answers = &mut pending.entry(Day::today()).or_default().answers;
        let count = match answer {
            Answer::Own => &mut answers.own,
            Answer::Search => &mut answers.searches,
            Answer::Description => &mut answers.descriptions,
            Answer::Part => &mut answers.parts,
        };
        count.times += 1;
        count.tokens += tokens as u64;
    }

    /// Counts a client that listed the tools while `servers` were configured.
    pub fn listed<'s>(&self, servers: impl IntoIterator<Item = &'s str>) {
        let mut pending = self.pending();
        let answers = &mut pending.entry(Day::today()).or_default().answers;
        answers.clients += 1;
        for server in servers {
            *answers.servers.entry(server.to_owned()).or_default() += 1;
        }
    }

    /// Writes the counts, which blocks. Counts that cannot be written are kept for the next time.
    pub fn flush(&self) {
        let counted = std::mem::take(&mut *self.pending());
        let Some(place) = &self.place else {
            return;
        };
        for (day, record) in counted {
            if let Err(error) = place.add(day, &record) {
                tracing::warn!(%error, "the statistics are not written yet");
                self.pending().entry(day).or_default().merge(&record);
            }
        }
    }

    /// Writes the counts, then loads all statistics since `since`. Blocks.
    ///
    /// # Errors
    /// When the disk or the store fails.
    pub fn history(&self, since: Option<Day>) -> Result<History, Error> {
        self.flush();
        match &self.place {
            Some(place) => place.load(since),
            None => Ok(History::default()),
        }
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<Day, DayRecord>> {
        // An addition is one step, so a panic cannot leave the counts in a wrong state.
        self.pending.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::store::load;
    use super::*;

    fn outcome(milliseconds: u64, failed: bool) -> CallOutcome {
        CallOutcome {
            failed,
            latency: Duration::from_millis(milliseconds),
            sent: 10,
            received: 1000,
            path: CallPath::MetaTool,
        }
    }

    #[test]
    fn what_several_processes_count_comes_together() {
        let directory = tempfile::tempdir().unwrap();
        for round in 0..3 {
            // Each is a separate process, first in sequence, then in parallel.
            let (one, other) = (
                Statistics::new(Some(directory.path())),
                Statistics::new(Some(directory.path())),
            );
            one.called("a", "t", &outcome(10, false));
            other.called("a", "t", &outcome(1000, round == 0));
            other.reduced("a", "t", true, 500, 50);
            other.listed(["a", "b"]);
            one.answered(Answer::Search, 300);
            one.flush();
            other.flush();
            other.flush();
        }
        let history = load(directory.path(), None).unwrap();
        let total = history.total();
        let tally = &total.tools["a"]["t"];
        assert_eq!(
            (tally.calls, tally.errors, tally.sent, tally.received),
            (6, 1, 60, 6000)
        );
        assert_eq!(
            (tally.stored.results, tally.stored.whole, tally.stored.shown),
            (3, 1500, 150)
        );
        assert_eq!(tally.latency.count(), 6);
        assert_eq!(
            (
                total.answers.clients,
                total.answers.servers["b"],
                total.answers.searches.tokens
            ),
            (3, 3, 900)
        );
        let tomorrow = Day::today().plus(1);
        assert!(
            load(directory.path(), Some(tomorrow))
                .unwrap()
                .days
                .is_empty()
        );
    }

    #[test]
    fn threads_that_write_at_once_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let statistics = Statistics::new(Some(directory.path()));
                    for _ in 0..10 {
                        statistics.called("a", "t", &outcome(1, false));
                        statistics.flush();
                    }
                });
            }
        });
        assert_eq!(
            load(directory.path(), None).unwrap().total().tools["a"]["t"].calls,
            60
        );
    }

    #[test]
    fn a_damaged_file_is_set_aside_and_the_rest_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let statistics = Statistics::new(Some(directory.path()));
        statistics.called("a", "t", &outcome(1, false));
        statistics.flush();
        let file = std::fs::read_dir(directory.path())
            .unwrap()
            .flatten()
            .map(|entry| entry.path());
        let file = file
            .into_iter()
            .find(|path| path.extension().is_some_and(|end| end == "json"))
            .unwrap();
        std::fs::write(&file, "{\"tools\":").unwrap();
        assert!(load(directory.path(), None).unwrap().days.is_empty());
        statistics.called("a", "t", &outcome(1, false));
        statistics.flush();
        assert_eq!(
            load(directory.path(), None).unwrap().total().tools["a"]["t"].calls,
            1
        );
        assert!(file.with_extension("damaged").exists());
    }
}
