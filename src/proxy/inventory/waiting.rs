//! Those who wait for the listing of servers: calls, searches and commands.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{Inventory, Progress};
use crate::tool::ServerName;
use crate::upstream::Urgent;

/// How long a search waits for servers that are listed for the first time, from the beginning of that.
const FIRST: Duration = Duration::from_secs(4);

/// How long it waits after another server came, as the next may come soon.
const NEXT: Duration = Duration::from_secs(3);

/// How long it waits in any case at most.
const LONGEST: Duration = Duration::from_secs(15);

impl Inventory {
    /// Asks for new lists of `servers`, all if there is no name, and waits until each was asked once, at most for
    /// `limit`.
    pub(crate) async fn list(&self, server: Option<&ServerName>, limit: Duration) {
        self.release();
        self.loaded().await;
        let rounds: Vec<_> = self
            .watched()
            .iter()
            .filter(|(name, _)| server.is_none_or(|server| server == *name))
            .map(|(_, watched)| {
                let watch = &watched.watch;
                let state = watch.state.subscribe();
                let until = state.borrow().rounds + 1;
                if !watch.is_first() {
                    watch.asked.notify_one();
                }
                (state, until)
            })
            .collect();
        let all = async {
            for (mut state, until) in rounds {
                // A server that is taken out of the configuration meanwhile has no more rounds.
                let _ = state.wait_for(|state| state.rounds >= until).await;
            }
        };
        // What is not through by then is seen in the progress of each.
        let _ = tokio::time::timeout(limit, all).await;
    }

    /// Resolves when the cache is read and, where it knew nothing of a server, that server was asked, at most after
    /// `limit`.
    pub(crate) async fn known(&self, server: Option<&ServerName>, limit: Duration) {
        self.release();
        self.loaded().await;
        let snapshot = self.catalog.snapshot();
        let missing: Vec<_> = self
            .watched()
            .iter()
            .filter(|(name, _)| {
                server.is_none_or(|server| server == *name) && snapshot.server(name).is_none()
            })
            .map(|(_, watched)| {
                watched.watch.begin();
                watched.watch.state.subscribe()
            })
            .collect();
        let _urgent = server
            .filter(|_| !missing.is_empty())
            .map(|server| self.hurry(server));
        let all = async {
            for mut state in missing {
                // As above.
                let _ = state.wait_for(|state| state.rounds > 0).await;
            }
        };
        let _ = tokio::time::timeout(limit, all).await;
    }

    /// Lists `server` before any other, for a client that waits for it, at most for `limit`.
    pub(in crate::proxy) async fn list_now(&self, server: &ServerName, limit: Duration) {
        let _urgent = self.hurry(server);
        self.list(Some(server), limit).await;
    }

    /// Lets the listing of `server` go before all others, which begin no more of them until this is dropped.
    fn hurry(&self, server: &ServerName) -> Urgent {
        if let Some(watched) = self.watched().get(server) {
            watched.watch.urgent.notify_one();
        }
        self.pool.urgent()
    }

    /// The same for a client that wants to use `server`: where it failed before, or fails in an attempt that was under way
    /// already, it is asked once more at once, whatever its backoff.
    pub(in crate::proxy) async fn known_now(&self, server: Option<&ServerName>, limit: Duration) {
        let state = server.and_then(|server| {
            let watched = self.watched();
            watched
                .get(server)
                .map(|known| known.watch.state.subscribe())
        });
        let (Some(server), Some(state)) = (server, state) else {
            return self.known(server, limit).await;
        };
        let has_failed = || matches!(state.borrow().progress, Progress::Failed(_));
        let until = Instant::now() + limit;
        let was_under_way = state.borrow().is_under_way();
        if !has_failed() {
            self.known(Some(server), limit).await;
            if !was_under_way || !has_failed() {
                return;
            }
        }
        let rest = until.saturating_duration_since(Instant::now());
        self.list_now(server, rest).await;
    }

    /// Waits while servers are listed for the first time: a few seconds, and longer as long as one after the other comes;
    /// of a `server` for that one alone. Where nothing is known yet, the time begins now. Whether it waited.
    pub(crate) async fn settled(&self, server: Option<&str>, is_blind: bool) -> bool {
        let start = Instant::now();
        let mut came = self.came.subscribe();
        let mut has_waited = false;
        loop {
            let last = *came.borrow_and_update();
            let Some(since) = self.first_asked(server) else {
                return has_waited;
            };
            let began = if is_blind { start } else { since };
            let until = last
                .map_or(began + FIRST, |last| (last + NEXT).max(began + FIRST))
                .min(began + LONGEST);
            has_waited |= Instant::now() < until;
            if timeout_at(until, came.changed()).await.is_err() {
                return has_waited;
            }
        }
    }

    /// When the latest of those servers was first asked that did not come yet, if there is one.
    fn first_asked(&self, server: Option<&str>) -> Option<Instant> {
        let watched = self.watched();
        let first = watched.iter().filter(|(name, watched)| {
            server.is_none_or(|server| server == name.as_str()) && watched.watch.is_first()
        });
        first
            .filter_map(|(_, watched)| watched.watch.state.borrow().since)
            .max()
    }
}
