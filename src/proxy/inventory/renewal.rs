//! Renews lists that are too old.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

use super::{Inventory, changes};
use crate::catalog::{Key, ServerTools};
use crate::tool::ServerName;

/// The time after the start before old lists are renewed, so that clients' first requests are not slowed down.
const LATER: Duration = Duration::from_secs(30);

/// The pause between two renewals.
const BETWEEN: Duration = Duration::from_secs(2);

/// The interval of checks for lists that are too old.
const LOOK: Duration = Duration::from_secs(60);

/// The time before a failed renewal is tried again.
const AGAIN: Duration = Duration::from_secs(60 * 60);

/// The tolerated difference between the clocks of machines that share a cache.
const SKEW: Duration = Duration::from_secs(60 * 60);

/// The time limit of one renewal.
const LIMIT: Duration = Duration::from_secs(200);

/// Renews lists that are too old, one at a time; never ends.
pub(super) async fn run(inventory: Arc<Inventory>) {
    inventory.released.cancelled().await;
    inventory.loaded().await;
    let mut tried = HashMap::new();
    sleep(LATER.min(inventory.max_age())).await;
    loop {
        inventory.pool.quiet().await;
        let pause = match inventory.overdue(&tried) {
            Some(key) => {
                tried.insert(key.server.clone(), Instant::now());
                inventory.renew_one(key).await;
                BETWEEN
            }
            None => LOOK,
        };
        sleep(pause.min(inventory.max_age())).await;
    }
}

impl Inventory {
    /// Lists running servers again whose lists are too old, or older than the server's own limit.
    pub(in crate::proxy) fn renew(&self) {
        let snapshot = self.catalog.snapshot();
        let is_old = |tools: &ServerTools| {
            let age = age(tools);
            age >= self.max_age() || tools.fresh_for().is_some_and(|limit| age >= limit)
        };
        for tools in snapshot.servers().filter(|tools| is_old(tools)) {
            if self.pool.is_connected(tools.name()) {
                self.poke(tools.name());
            }
        }
    }

    /// Whether a list can be used without starting its server for a new one.
    pub(in crate::proxy) fn is_fresh(&self, tools: &ServerTools) -> bool {
        let limit = self.max_age().max(tools.fresh_for().unwrap_or_default());
        age(tools) < limit
    }

    fn max_age(&self) -> Duration {
        *self.max_age.lock()
    }

    /// The server whose list has been too old for the longest time, without a recent attempt.
    fn overdue(&self, tried: &HashMap<ServerName, Instant>) -> Option<Key> {
        let again = AGAIN.min(self.max_age());
        let was_tried = |server| {
            let at: Option<&Instant> = tried.get(server);
            at.is_some_and(|at| at.elapsed() < again)
        };
        let snapshot = self.catalog.snapshot();
        let watched = self.watched();
        let overdue = snapshot
            .servers()
            .filter(|tools| !self.is_fresh(tools) && !was_tried(tools.name()));
        overdue
            .filter_map(|tools| Some((tools.listed_at(), watched.get(tools.name())?.key.clone())))
            .min_by_key(|(listed_at, _)| *listed_at)
            .map(|(_, key)| key)
    }

    /// Reads the list that another process has renewed, or lists the server.
    async fn renew_one(&self, key: Key) {
        let server = key.server.clone();
        let lists = self.lists.clone();
        let kept = self.tasks.spawn_blocking(move || lists.load(&key));
        if let Ok(Some(kept)) = kept.await
            && self.is_fresh(&kept)
        {
            let before = self.catalog.snapshot();
            let snapshot = self.catalog.update(|servers| {
                servers.insert(server.clone(), kept);
            });
            self.index.catalog_changed();
            return self
                .callers
                .lists_changed(&changes::by_listing(&server, &before, &snapshot));
        }
        let mut state = {
            let watched = self.watched();
            let Some(watched) = watched.get(&server) else {
                return;
            };
            watched.watch.is_brief.store(true, Ordering::Relaxed);
            watched.watch.ask();
            watched.watch.state.subscribe()
        };
        let rounds = state.borrow().rounds;
        let listed = state.wait_for(|state| state.rounds > rounds && !state.is_under_way());
        // A renewal that exceeds the limit continues in parallel.
        let _ = tokio::time::timeout(LIMIT, listed).await;
    }
}

/// The age of a list. A list from the far future was written with another clock, and counts as too old.
fn age(tools: &ServerTools) -> Duration {
    match SystemTime::now().duration_since(tools.listed_at()) {
        Ok(age) => age,
        Err(ahead) if ahead.duration() < SKEW => Duration::ZERO,
        Err(_) => Duration::MAX,
    }
}
