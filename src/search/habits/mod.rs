//! Habits: a tool that was called after a search is raised a little in later searches for such needs.
//!
//! Counts are by tool and word of the query, each word as twelve bits of its salted hash. Neither a query nor an argument is
//! stored. Each person has counts of their own, which change no order for others. Only hits of the search itself are raised, after it,
//! so habits add no tool to an answer, and an answer that nothing fits stays as it is. A raise is at most a
//! fifth of the best score.

mod file;
mod table;

#[cfg(test)]
mod tests;

pub(crate) use file::{Learnt, forget, learnt};

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

use self::file::{HabitsFile, Salt, warn_once};
use self::table::{Lesson, Table, Word};
use super::Hit;
use super::lexical::{EXACT, distinct_stems};
use super::query::Query;
use crate::shutdown::Tasks;

/// The directory of the files, below the state directory.
pub(crate) const DIRECTORY: &str = "habits";
/// The largest raise, as a share of the best score.
const RAISE: f32 = 0.2;
/// The smallest share of a tool in the calls after such searches that counts.
const LEAST: f32 = 0.5;
/// The number of hits of a search that are considered.
const CONSIDERED: usize = 50;
/// A call belongs to a search of this time that showed its tool.
const RECENT: Duration = Duration::from_secs(600);
const SEARCHES: usize = 32;
/// More words of a query do not count.
const MOST_WORDS: usize = 12;
/// The most bytes of the names of a server and a tool together, so that a file of habits stays small enough to be read.
const LONGEST_NAME: usize = 512;
/// Lessons that wait for a disk; more of them are dropped.
const MOST_PENDING: usize = 1_000;
/// How long counts are used before the file is read again: other processes add theirs, and a person may erase them.
const FRESH: Duration = Duration::from_secs(30);
/// How long a lesson waits for others before it is written.
const DELAY: Duration = Duration::from_secs(2);

/// The habits of one person, or of the user.
pub struct Habits {
    /// `None` keeps them in memory.
    place: Option<HabitsFile>,
    state: Mutex<State>,
    /// Held while the file is read or written.
    turn: Mutex<()>,
    is_write_due: AtomicBool,
}

struct State {
    salt: Salt,
    table: Table,
    /// Lessons that are in the table, but not in the file.
    pending: Vec<Lesson>,
    /// The latest searches, oldest first.
    recent: VecDeque<Searched>,
    /// When the file was read.
    read: Option<Instant>,
}

/// A search, and the tools that it showed.
struct Searched {
    words: Vec<Word>,
    shown: Vec<(String, String)>,
    at: Instant,
}

impl fmt::Debug for Habits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Habits").finish_non_exhaustive()
    }
}

impl Habits {
    /// Habits that are kept in memory. Equal calls give equal habits.
    #[must_use]
    pub fn in_memory() -> Self {
        let habits = Self::at(None);
        habits.state.lock().salt = Salt([0; 16]);
        habits
    }

    fn at(place: Option<HabitsFile>) -> Self {
        Self {
            place,
            state: Mutex::new(State {
                salt: Salt::random(),
                table: Table::default(),
                pending: Vec::new(),
                recent: VecDeque::new(),
                read: None,
            }),
            turn: Mutex::default(),
            is_write_due: AtomicBool::new(false),
        }
    }

    /// Remembers a search for ten minutes. A query with several needs teaches nothing, since a call serves one of them.
    pub fn searched(&self, query: &str, hits: &[Hit]) {
        let query = Query::parse(query);
        let [need] = &query.needs[..] else { return };
        let mut state = self.state.lock();
        let searched = Searched {
            words: words(state.salt, &distinct_stems(&need.words)),
            shown: hits
                .iter()
                .map(|hit| (hit.server.to_string(), hit.tool.to_string()))
                .collect(),
            at: Instant::now(),
        };
        state.recent.push_back(searched);
        if state.recent.len() > SEARCHES {
            state.recent.pop_front();
        }
    }

    /// Learns from a call of a tool, if a recent search has shown it; the latest one counts, and each once. `has_succeeded` is asked
    /// only then. Returns whether there is something new to write. A tool with a very long name, which its server chooses, teaches nothing.
    pub fn called(&self, server: &str, tool: &str, has_succeeded: impl FnOnce() -> bool) -> bool {
        if server.len() + tool.len() > LONGEST_NAME {
            return false;
        }
        let mut state = self.state.lock();
        let is_it = |(of, name): &(String, String)| of == server && name == tool;
        let mut searches = state.recent.iter_mut().rev();
        let search =
            searches.find(|search| search.at.elapsed() < RECENT && search.shown.iter().any(is_it));
        let Some(search) = search.filter(|_| has_succeeded()) else {
            return false;
        };
        search.shown.retain(|shown| !is_it(shown));
        let lesson = Lesson {
            server: server.to_owned(),
            tool: tool.to_owned(),
            words: search.words.clone(),
        };
        state.table.learn(&lesson);
        let is_kept = self.place.is_some();
        if is_kept && state.pending.len() < MOST_PENDING {
            state.pending.push(lesson);
        }
        is_kept
    }

    /// The number of hits of a search from which the best `limit` are chosen; `None` if nothing has been learnt.
    #[must_use]
    pub fn considered(&self, limit: usize) -> Option<usize> {
        let is_empty = self.state.lock().table.is_empty();
        (!is_empty).then_some(limit.max(CONSIDERED))
    }

    /// Raises hits in their scores and in their order. Does not change which ones there are.
    pub fn raise(&self, query: &str, hits: &mut [Hit]) {
        let raises = self.raises(query, hits.iter());
        for (hit, raise) in hits.iter_mut().zip(&raises) {
            hit.score += raise;
        }
        if raises.iter().any(|raise| *raise > 0.0) {
            // Equal scores keep their order.
            hits.sort_by(|a, b| b.score.total_cmp(&a.score));
        }
    }

    /// The amounts that are added to the scores of hits.
    pub(crate) fn raises<'h>(&self, query: &str, hits: impl Iterator<Item = &'h Hit>) -> Vec<f32> {
        let hits: Vec<&Hit> = hits.collect();
        let mut shares = vec![0.0f32; hits.len()];
        let state = self.state.lock();
        if state.table.is_empty() {
            return shares;
        }
        for need in Query::parse(query).needs {
            let words = words(state.salt, &distinct_stems(&need.words));
            for (share, of_need) in shares.iter_mut().zip(state.table.shares(&words, &hits)) {
                *share = share.max(of_need);
            }
        }
        let scores = hits.iter().map(|hit| hit.score);
        let best = scores.filter(|score| *score < EXACT).fold(0.0, f32::max);
        for share in &mut shares {
            *share = if *share < LEAST {
                0.0
            } else {
                *share * RAISE * best
            };
        }
        shares
    }

    /// Reads the file, if that was not done lately.
    pub(crate) async fn refresh(self: &Arc<Self>, tasks: &Tasks) {
        let is_fresh = self
            .state
            .lock()
            .read
            .is_some_and(|read| read.elapsed() < FRESH);
        if is_fresh || self.place.is_none() {
            return;
        }
        let habits = self.clone();
        // It fails only at the end of the run.
        let _ = tasks.spawn_blocking(move || habits.read()).await;
    }

    /// Writes lessons in a moment, together with those that come until then.
    pub(crate) fn write_soon(self: &Arc<Self>, tasks: &Tasks) {
        if self.is_write_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let (habits, owner) = (self.clone(), tasks.clone());
        tasks.spawn(async move {
            let is_time = tokio::time::timeout(DELAY, owner.stopped()).await.is_err();
            habits.is_write_due.store(false, Ordering::Release);
            // The end of the run writes them otherwise.
            if is_time {
                let _ = owner.spawn_blocking(move || habits.flush()).await;
            }
        });
    }

    fn read(&self) {
        let Some(place) = &self.place else { return };
        let _turn = self.turn.lock();
        match place.read() {
            Ok(Some((salt, table))) => self.replace(salt, table, 0),
            Ok(None) => {
                let salt = self.state.lock().salt;
                self.replace(salt, Table::default(), 0);
            }
            Err(error) => {
                warn_once(&error, "what search has learnt cannot be read");
                self.state.lock().read = Some(Instant::now());
            }
        }
    }

    /// Whether lessons wait to be written.
    pub(crate) fn is_unwritten(&self) -> bool {
        !self.state.lock().pending.is_empty()
    }

    /// Writes the lessons that wait. Blocks. Those that cannot be written are kept for the next time.
    pub(crate) fn flush(&self) {
        let Some(place) = &self.place else { return };
        let _turn = self.turn.lock();
        let (salt, lessons) = {
            let state = self.state.lock();
            (state.salt, state.pending.clone())
        };
        if lessons.is_empty() {
            return;
        }
        match place.add(salt, &lessons) {
            Ok((salt, table)) => self.replace(salt, table, lessons.len()),
            Err(error) => warn_once(&error, "what search has learnt is not written yet"),
        }
    }

    /// Takes over the file's counts, which have the first `written` of the pending lessons.
    fn replace(&self, salt: Salt, mut table: Table, written: usize) {
        let mut state = self.state.lock();
        state.pending.drain(..written);
        if state.salt != salt {
            state.pending.clear();
            state.recent.clear();
            state.salt = salt;
        }
        state.pending.iter().for_each(|lesson| table.learn(lesson));
        state.table = table;
        state.read = Some(Instant::now());
    }
}

/// The words of a need, as they are counted.
fn words(salt: Salt, stems: &[String]) -> Vec<Word> {
    let hash = |stem: &String| {
        let digest = Sha256::new()
            .chain_update(salt.0)
            .chain_update(stem)
            .finalize();
        Word::from_le_bytes([digest[0], digest[1]]) & 0xfff
    };
    let mut words: Vec<Word> = stems.iter().take(MOST_WORDS).map(hash).collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The habits of everyone whom a run serves.
#[derive(Debug)]
pub(crate) struct HabitsOfAll {
    /// `None` keeps them in memory.
    directory: Option<PathBuf>,
    known: Mutex<BTreeMap<Option<String>, Weak<Habits>>>,
}

impl HabitsOfAll {
    /// Habits that are stored below `directory`.
    pub(crate) fn new(directory: Option<PathBuf>) -> Self {
        Self {
            directory,
            known: Mutex::default(),
        }
    }

    /// The habits of an identity; of the user without one.
    pub(crate) fn of(&self, identity: Option<&str>) -> Arc<Habits> {
        let mut known = self.known.lock();
        let key = identity.map(str::to_owned);
        if let Some(habits) = known.get(&key).and_then(Weak::upgrade) {
            return habits;
        }
        known.retain(|_, habits| habits.strong_count() > 0);
        let place = self
            .directory
            .as_deref()
            .map(|root| HabitsFile::of(root, identity));
        let habits = Arc::new(Habits::at(place));
        known.insert(key, Arc::downgrade(&habits));
        habits
    }
}
