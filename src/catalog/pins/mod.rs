//! Pins: the approved definitions of servers' tools, with which every later list is compared.
//!
//! Pins belong to the server's name, so an edit of its entry keeps them. A new name starts with the pins of the
//! other servers that run the same program; if there are none, its own first list is pinned. `record.rs` is a
//! record, `store.rs` has those of a server, `files.rs` and `home.rs` their place, `lists.rs` which servers had one, `known.rs` what a process knows of them; `held.rs` judges by that; `comparing.rs` and `change.rs` compare, and `deciding.rs` keeps a
//! person's decisions. A record that is damaged or gone holds everything of its server (`fault.rs`) until a person has one made in its place
//! (`renewing.rs`), under which everything waits.
//!
//! While the store of several replicas does not answer, the decisions that a replica knows stay in force, and a definition that it cannot
//! compare is held back until the store answers.

mod change;
mod comparing;
mod deciding;
mod fault;
mod files;
mod held;
mod home;
mod known;
mod lists;
mod older;
mod record;
mod renewing;
mod store;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};

use self::change::Listed;
pub(crate) use self::change::{Change, ChangeKind, Pending};
use self::comparing::{compare, rejected_elsewhere, waiting};
use self::deciding::{approve_start, decide};
use self::fault::Fault;
use self::held::Held;
pub(crate) use self::home::PinHome;
use self::home::Seen;
use self::known::Known;
use self::record::{Record, Rejections};
use self::renewing::renew;
use super::{Key, ServerTools, ToolEntry};
use crate::config::Trust;
use crate::tool::ServerName;

/// The time between two attempts to compare what could not be compared.
const AGAIN: Duration = Duration::from_secs(5);

const NO_DIRECTORY: &str = "there is no directory in which pins could be kept";

/// The approved tools, and those that differ.
#[derive(Debug)]
pub(crate) struct Pins {
    /// `None` if nothing is kept. Then every tool that needs an approval is held.
    home: Option<PinHome>,
    known: RwLock<BTreeMap<ServerName, Arc<Known>>>,
    /// The servers whose tools must be approved, or unchanged.
    required: RwLock<BTreeMap<ServerName, Trust>>,
    /// The last write at the last read.
    seen: RwLock<Option<Seen>>,
    /// The servers whose last lists could not be compared, as the store did not answer or a record could not be opened, and the last attempt.
    uncompared: Mutex<(BTreeSet<ServerName>, Option<Instant>)>,
    /// How often one server's pins became others than were read with all.
    learned: AtomicU64,
}

impl Pins {
    /// Creates the pins in this place. `None` keeps none.
    #[must_use]
    pub(crate) fn new(home: Option<PinHome>) -> Self {
        Self {
            home,
            known: RwLock::default(),
            required: RwLock::default(),
            seen: RwLock::default(),
            uncompared: Mutex::default(),
            learned: AtomicU64::default(),
        }
    }

    /// Sets the servers whose tools must be approved, or unchanged.
    pub(crate) fn require(&self, servers: BTreeMap<ServerName, Trust>) {
        *self.required.write() = servers;
    }

    /// The pins of a server as they stand.
    #[must_use]
    pub(crate) fn held(&self, server: &ServerName) -> Held {
        let trust = self.trust(server);
        Held::new(self.known.read().get(server).cloned(), trust)
    }

    /// Whether a tool must not be used as things stand; see [`Pins::held`] for many of them.
    #[must_use]
    pub(crate) fn is_held(&self, server: &ServerName, tool: &ToolEntry) -> bool {
        self.held(server).tool(tool)
    }

    /// As [`Held::is_pinned`], as things stand.
    #[must_use]
    pub(crate) fn is_pinned(&self, server: &ServerName) -> bool {
        self.held(server).is_pinned()
    }

    /// As [`Held::is_quarantined`], as things stand.
    #[must_use]
    pub(crate) fn is_quarantined(&self, server: &ServerName) -> bool {
        self.held(server).is_quarantined()
    }

    /// As [`Pins::is_quarantined`], for lines of a log: it never waits, as the pins are being changed when some are written.
    #[must_use]
    pub(crate) fn may_be_quarantined(&self, server: &ServerName) -> bool {
        let Some(required) = self.required.try_read() else {
            return true;
        };
        let trust = required.get(server).copied().unwrap_or_default();
        let known = self.known.try_read();
        known.is_none_or(|known| Known::is_held_whole(known.get(server).map(Arc::as_ref), trust))
    }

    /// Whether a server must not be started, as no person has approved its entry.
    #[must_use]
    pub(crate) fn is_unstarted(&self, server: &ServerName) -> bool {
        let may_start = || self.known.read().get(server).is_some_and(|it| it.may_start);
        self.trust(server) == Trust::Unstarted && !may_start()
    }

    /// Approves the start of a server by its entry. Its tools stay held.
    ///
    /// # Errors
    /// When the pins cannot be read or written.
    pub(crate) fn approve_start(&self, key: &Key) -> io::Result<()> {
        let Some(home) = &self.home else {
            return Err(io::Error::other(NO_DIRECTORY));
        };
        let (record, pending) = home.edit(key, approve_start)?;
        let known = Known::of(&record, pending, self.trust(&key.server), None);
        self.learn(key, known);
        Ok(())
    }

    /// Why a server's pins are not known, if they are not.
    #[must_use]
    pub(crate) fn fault(&self, server: &ServerName) -> Option<String> {
        if self.home.is_none() {
            return Some(NO_DIRECTORY.to_owned());
        }
        let known = self.known.read();
        known.get(server)?.fault.as_ref().map(Fault::to_string)
    }

    /// As [`Pins::fault`], if tools are held back because of it.
    #[must_use]
    pub(crate) fn holding_fault(&self, server: &ServerName) -> Option<String> {
        let is_unknown = |known: &Arc<Known>| known.is_unknown();
        let is_unknown = || self.known.read().get(server).is_some_and(is_unknown);
        let is_holding = !self.trust(server).is_report() || is_unknown();
        self.fault(server).filter(|_| is_holding)
    }

    /// As [`Pins::holding_fault`], if it stays until a person acts.
    #[must_use]
    pub(crate) fn damage(&self, server: &ServerName) -> Option<String> {
        let is_shared = self.home.as_ref()?.shared().is_some();
        let stays = |fault: &Fault| fault.is_loss() || !is_shared && !fault.is_passing();
        let is_lasting = {
            let known = self.known.read();
            known.get(server)?.fault.as_ref().is_some_and(stays)
        };
        self.holding_fault(server).filter(|_| is_lasting)
    }

    /// Why a server's pins are not known for the moment.
    #[must_use]
    pub(crate) fn passing_fault(&self, server: &ServerName) -> Option<String> {
        let known = self.known.read();
        let fault = known.get(server)?.fault.as_ref();
        fault
            .filter(|fault| fault.is_passing())
            .map(Fault::to_string)
    }

    /// Everything that keeps the records of a server from being used, each with its file. Blocks on the disk.
    #[must_use]
    pub(crate) fn faults(&self, key: &Key, program: &str) -> Vec<String> {
        let view = self.home.as_ref().map(PinHome::view);
        let Some(Ok(view)) = view else {
            return Vec::new();
        };
        let mut faults = view.store(key).faults::<Pending>(program);
        let known = self.known.read();
        let known = known.get(&key.server).and_then(|known| known.fault.clone());
        faults.extend(known);
        let mut texts: Vec<String> = faults.iter().map(Fault::to_string).collect();
        let mut seen = BTreeSet::new();
        texts.retain(|text| seen.insert(text.clone()));
        texts
    }

    /// The fault of a list of the program, or of the record of another server with it, for a server without a record, which would inherit from
    /// that.
    #[must_use]
    pub(crate) fn loss_elsewhere(&self, key: &Key, program: &str) -> Option<String> {
        if !self.is_unrecorded(&key.server) {
            return None;
        }
        let view = self.home.as_ref()?.view().ok()?;
        let store = view.store(key);
        let own = store.read_of(program).err();
        let fault = own.or_else(|| rejected_elsewhere(&store, program).1);
        let fault = fault.map(|error| Fault::of(&error));
        let fault = fault.filter(|fault| !fault.is_passing());
        fault.map(|fault| fault.to_string())
    }

    /// Puts a record in the place of those of a server that cannot be used, under which everything of it waits for a person.
    ///
    /// # Errors
    /// When the records could not be opened for the moment, or cannot be replaced.
    pub(crate) fn renew(&self, key: &Key, program: &str) -> io::Result<()> {
        let Some(home) = &self.home else {
            return Err(io::Error::other(NO_DIRECTORY));
        };
        let servers: Vec<ServerName> = self.known.read().keys().cloned().collect();
        let record = home.edit(key, |store| {
            renew(store, program, &servers)?;
            store.read()
        })?;
        let record = record.unwrap_or_default();
        let known = Known::of(&record, Pending::default(), self.trust(&key.server), None);
        self.learn(key, known);
        Ok(())
    }

    /// Whether a server was read, and has no record: its list says nothing of what was approved or rejected, nor by which name.
    #[must_use]
    pub(crate) fn is_unrecorded(&self, server: &ServerName) -> bool {
        let known = self.known.read();
        known.get(server).is_some_and(|known| known.is_unrecorded)
    }

    /// How a tool is known to differ from the approved one, in this list or in that of another session.
    #[must_use]
    pub(crate) fn change(&self, server: &ServerName, tool: &ToolEntry) -> Option<Change> {
        let known = self.known.read();
        let change = known.get(server)?.pending.tools.get(tool.name.as_str())?;
        let is_everywhere = change.kind == ChangeKind::Changed;
        (is_everywhere || change.now == tool.hash.to_string()).then(|| change.clone())
    }

    /// The other server under whose name a definition waits or was rejected, because of which it waits as a new one, too.
    #[must_use]
    pub(crate) fn waits_under(&self, key: &Key, hash: &str) -> Option<String> {
        let view = self.home.as_ref()?.view().ok()?;
        let store = view.store(key);
        let mut waiting = waiting(&store).ok()?;
        let own = key.server.as_str();
        let (record, _) =
            waiting.find(|(record, it)| it == hash && record.split('~').next() != Some(own))?;
        record.split('~').next().map(str::to_owned)
    }

    /// Everything of a server that waits for a person, or is reported.
    #[must_use]
    pub(crate) fn pending(&self, server: &ServerName) -> Pending {
        let trust = self.trust(server);
        // One lock only: a second reader of this thread would wait for a writer that waits for the first.
        let known = self.known.read();
        let known = known.get(server).map(Arc::as_ref);
        Pending {
            is_quarantined: Known::is_held_whole(known, trust),
            is_lost: known.is_some_and(|known| known.is_lost),
            ..known.map(|known| known.pending.clone()).unwrap_or_default()
        }
    }

    /// Whether a person's decision about a server is missing, without which agents do not get all of it. Pins that were not read yet
    /// are read, and not kept. Where differences are only reported, nothing waits but a record that cannot be read, or is lost.
    #[must_use]
    pub(crate) fn waits(&self, key: &Key) -> bool {
        let trust = self.trust(&key.server);
        let is_damaged = self.damage(&key.server).is_some();
        if is_damaged {
            return true;
        }
        let is_waiting = |known: &Known| {
            if Known::trust(Some(known), trust).is_report() {
                return false;
            }
            let is_unstarted = trust == Trust::Unstarted && !known.may_start;
            let is_held = known.is_quarantined && !known.pending.is_rejected();
            is_unstarted || is_held || known.pending.waits()
        };
        if let Some(known) = self.known.read().get(&key.server) {
            return is_waiting(known);
        }
        if trust == Trust::Report {
            return false;
        }
        let Some(Ok(view)) = self.home.as_ref().map(PinHome::view) else {
            return trust != Trust::Unset;
        };
        let store = view.store(key);
        let was_quarantined = || {
            let known = store.rejections().ok().flatten();
            known.is_some_and(|known| known.quarantined)
        };
        if trust == Trust::Unset && !was_quarantined() {
            return false;
        }
        let (Ok(record), Ok(pending)) = (store.read(), store.read_pending()) else {
            return true;
        };
        let record = record.unwrap_or_default();
        is_waiting(&Known::of(
            &record,
            pending.unwrap_or_default(),
            trust,
            None,
        ))
    }

    fn learn(&self, key: &Key, known: Known) {
        let mut all = self.known.write();
        all.insert(key.server.clone(), Arc::new(known));
        self.learned.fetch_add(1, Ordering::Relaxed);
    }

    fn trust(&self, server: &ServerName) -> Trust {
        let required = self.required.read();
        required.get(server).copied().unwrap_or_default()
    }

    /// Reads the pins of these servers again if a process has written some, or some could not be opened. Returns whether any of them is another now.
    pub(crate) fn load_again<'k>(&self, keys: impl Iterator<Item = &'k Key>) -> bool {
        let is_passing = |known: &Arc<Known>| known.fault.as_ref().is_some_and(Fault::is_passing);
        let is_to_repeat = || self.known.read().values().any(is_passing);
        let is_other = *self.seen.read() != self.home.as_ref().map(PinHome::seen);
        (is_other || is_to_repeat()) && self.load(keys)
    }

    /// Reads the pins of these servers and forgets all others. Returns whether any of them is another now.
    pub(crate) fn load<'k>(&self, keys: impl Iterator<Item = &'k Key>) -> bool {
        let Some(home) = &self.home else {
            return false;
        };
        let mut keys = keys.peekable();
        if let (PinHome::Directory(_), Some(key), Ok(view)) = (home, keys.peek(), home.view())
            && view.store(key).is_older()
            && let Err(error) = home.edit(key, |store| store.complete())
        {
            tracing::debug!(%error, "the records of an older version stay as they are");
        }
        *self.seen.write() = Some(home.seen());
        let learned = self.learned.load(Ordering::Relaxed);
        let view = match home.view() {
            Ok(view) => view,
            Err(error) => {
                tracing::warn!(%error, "approvals of tools cannot be read, so those that are known stay");
                return self.keep_known(keys, &error);
            }
        };
        let mut all = BTreeMap::new();
        for key in keys {
            let store = view.store(key);
            let trust = self.trust(&key.server);
            let before = self.known.read().get(&key.server).map(|it| it.unread());
            // Of a server whose changes are reported only, no more of its record is needed before it is listed.
            let record = match trust {
                Trust::Unset | Trust::Report if !before.as_ref().is_some_and(Known::is_unknown) => {
                    match store.rejections() {
                        Ok(Some(it)) if it.lost || it.quarantined && trust == Trust::Unset => {
                            store.read()
                        }
                        rejections => rejections.map(|rejections| {
                            let Rejections {
                                rejected,
                                rejected_entries,
                                ..
                            } = rejections?;
                            Some(Record {
                                rejected,
                                rejected_entries,
                                ..Record::default()
                            })
                        }),
                    }
                }
                _ => store.read(),
            };
            let mut known = Known::kept(&store, record, trust);
            if let Some(error) = &known.fault {
                tracing::warn!(server = %key.server, %error, "it is not known which tools have changed");
            }
            // Without a record, the next comparison says again what was rejected.
            if let Some(before) = before.filter(|_| known.is_unrecorded) {
                known.rejected = before.rejected;
                known.rejected_entries = before.rejected_entries;
                known.fault = known.fault.or(before.fault);
            }
            all.insert(key.server.clone(), Arc::new(known));
        }
        let required = self.required.read().clone();
        let trust = |server| required.get(server).copied().unwrap_or_default();
        let mut known = self.known.write();
        let is_same = known.len() == all.len()
            && all.iter().all(|(server, now)| {
                let before = known.get(server);
                before.is_some_and(|before| before.is_same(now, trust(server)))
            });
        *known = all;
        // Newer pins may have been learned meanwhile.
        if self.learned.load(Ordering::Relaxed) != learned {
            *self.seen.write() = None;
        }
        !is_same
    }

    /// Holds the tools of servers whose records cannot be read, and were not before. Returns whether there are any.
    fn keep_known<'k>(&self, keys: impl Iterator<Item = &'k Key>, error: &io::Error) -> bool {
        let mut known = self.known.write();
        let before = known.len();
        for key in keys {
            let unknown = || Arc::new(Known::unknown(Fault::of(error)));
            known.entry(key.server.clone()).or_insert_with(unknown);
        }
        known.len() > before
    }

    /// The servers that could not be compared, once the store answers, or after a while. They are to be listed again.
    pub(crate) fn take_uncompared(&self) -> BTreeSet<ServerName> {
        let shared = self.home.as_ref().and_then(PinHome::shared);
        let is_away = || shared.is_some_and(|shared| shared.fault().is_some());
        let mut uncompared = self.uncompared.lock();
        let (servers, last) = &mut *uncompared;
        let is_early = last.is_some_and(|last| last.elapsed() < AGAIN);
        if servers.is_empty() || is_early || is_away() {
            return BTreeSet::new();
        }
        *last = Some(Instant::now());
        std::mem::take(servers)
    }

    /// Compares the current list of a server, which runs `program`, with its pins. Blocks on the disk. Returns whether something waits
    /// for a person that no process has noticed before.
    ///
    /// # Errors
    /// When the pins cannot be read or written. [`Pins::is_held`] then holds every tool that is not known to be
    /// unchanged.
    pub(crate) fn note(&self, key: &Key, program: &str, now: &ServerTools) -> io::Result<bool> {
        let trust = self.trust(&key.server);
        let Some(home) = &self.home else {
            return match trust {
                Trust::Unset | Trust::Report => Ok(false),
                _ => Err(io::Error::other(NO_DIRECTORY)),
            };
        };
        let listed = Listed::of(now);
        let compared = home.edit(key, |store| compare(store, program, &listed, trust));
        let is_to_repeat = |error: &io::Error| {
            let fault = Fault::of(error);
            fault.is_passing() || home.shared().is_some() && !fault.is_loss()
        };
        let known = match &compared {
            Ok(compared) => {
                compared.report(&key.server);
                Known::of(&compared.record, compared.pending.clone(), trust, None)
            }
            Err(error) if is_to_repeat(error) => {
                self.uncompared.lock().0.insert(key.server.clone());
                let mut all = self.known.write();
                // The known decisions are by the hashes of definitions, so a definition that is not known is held.
                let known = Arc::make_mut(all.entry(key.server.clone()).or_default());
                known.fault = Some(Fault::of(error));
                if known.is_unrecorded {
                    known.rejected = None;
                    known.rejected_entries = None;
                }
                return compared.map(|_| false);
            }
            Err(error) => {
                let view = home.view()?;
                let store = view.store(key);
                let mut known = Known::kept(&store, store.read(), trust);
                if known.is_unrecorded {
                    let (others, fault) = rejected_elsewhere(&store, program);
                    let others = fault.is_none().then_some(others);
                    let others = others.map(|it| (it.rejected, it.rejected_entries));
                    (known.rejected, known.rejected_entries) = others.unzip();
                }
                let before = self.known.read();
                let before = before.get(&key.server);
                Known {
                    pending: before.map(|it| it.pending.clone()).unwrap_or_default(),
                    has_free_instructions: false,
                    fault: Some(Fault::of(error)),
                    ..known
                }
            }
        };
        self.learn(key, known);
        compared.map(|compared| compared.is_news() && !trust.is_report())
    }

    /// Approves or rejects those changes in `seen` that are still pending, and returns the names of their tools. An empty
    /// name stands for the instructions, or for the prompts and resources.
    ///
    /// # Errors
    /// When the pins cannot be read or written.
    pub(crate) fn decide(
        &self,
        key: &Key,
        seen: &Pending,
        is_approved: bool,
    ) -> io::Result<Vec<String>> {
        let Some(home) = &self.home else {
            return Err(io::Error::other(NO_DIRECTORY));
        };
        let (record, pending, decided) =
            home.edit(key, |store| decide(store, seen, is_approved))?;
        let known = Known::of(&record, pending, self.trust(&key.server), None);
        self.learn(key, known);
        Ok(decided)
    }
}
