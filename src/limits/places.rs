//! The limit of requests in flight, as places with a fair queue.
//!
//! A free place goes to the waiting identity with the fewest places, and among equal ones to the one that got its
//! last place longest ago. So an identity that sends many requests delays no other.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use super::{Key, Limits};

/// The places of one limit.
#[derive(Debug, Default)]
pub(super) struct Places {
    most: u64,
    /// The taken places of each identity.
    taken: HashMap<Arc<str>, u64>,
    waiting: Vec<Waiting>,
    /// The number of the last place that each identity got.
    served: HashMap<Arc<str>, u64>,
    turns: u64,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    who: Arc<str>,
    wake: oneshot::Sender<()>,
}

/// A taken place, or the wait for one. Dropping it gives up either.
#[derive(Debug)]
pub(super) struct Place {
    limits: Arc<Limits>,
    key: Key,
    who: Arc<str>,
    /// The number of the wait.
    number: u64,
}

impl Places {
    pub(super) fn are_used(&self) -> bool {
        !self.taken.is_empty() || !self.waiting.is_empty()
    }

    fn is_full(&self) -> bool {
        self.taken.values().sum::<u64>() >= self.most
    }

    fn take(&mut self, who: &Arc<str>) {
        self.turns += 1;
        self.served.insert(who.clone(), self.turns);
        *self.taken.entry(who.clone()).or_default() += 1;
    }

    /// Gives free places to those whose turn it is.
    fn give(&mut self) {
        while !self.is_full() {
            let taken = |who: &Arc<str>| self.taken.get(who).copied().unwrap_or(0);
            let all = self.waiting.iter().enumerate();
            let served = |who: &Arc<str>| self.served.get(who).copied().unwrap_or(0);
            let next = all.min_by_key(|(_, one)| (taken(&one.who), served(&one.who), one.number));
            let Some((index, _)) = next else { return };
            let next = self.waiting.remove(index);
            self.take(&next.who);
            // One that has given up gives its place back when it is dropped.
            let _ = next.wake.send(());
        }
    }

    fn give_up(&mut self, place: &Place) {
        let before = self.waiting.len();
        self.waiting.retain(|one| one.number != place.number);
        if self.waiting.len() == before
            && let Some(taken) = self.taken.get_mut(&place.who)
        {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(&place.who);
            }
        }
        self.give();
        if !self.are_used() {
            self.served.clear();
        }
    }
}

impl Limits {
    /// A place among `most`; waits for it.
    ///
    /// # Cancel safety
    /// Dropped while it waits, it takes no place.
    pub(super) async fn place(self: &Arc<Self>, key: &Key, most: u64, who: &str) -> Place {
        let (place, woken) = {
            let mut state = self.state.lock();
            state.next += 1;
            let place = Place {
                limits: self.clone(),
                key: key.clone(),
                who: who.into(),
                number: state.next,
            };
            let places = &mut state.counts(key, Instant::now()).places;
            places.most = most;
            let (wake, woken) = oneshot::channel();
            places.waiting.push(Waiting {
                number: place.number,
                who: place.who.clone(),
                wake,
            });
            places.give();
            (place, woken)
        };
        // The sender is only dropped after it was used.
        let _ = woken.await;
        place
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.limits.state.lock();
        if let Some(counts) = state.counts.get_mut(&self.key) {
            counts.places.give_up(self);
        }
    }
}
