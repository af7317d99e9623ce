//! Waiting for servers to be listed, in calls, searches and commands.

use std::time::Duration;

use futures_util::future::OptionFuture;
use tokio::time::{Instant, timeout_at};

use super::{Inventory, Progress};
use crate::tool::ServerName;
use crate::upstream::{NotListed, Urgent};

/// How long a search waits for servers that are listed for the first time, from the start of the listing.
const FIRST: Duration = Duration::from_secs(4);

/// How long it waits after another server was listed, because the next one may follow soon.
const NEXT: Duration = Duration::from_secs(3);

/// The longest time that it waits.
const LONGEST: Duration = Duration::from_secs(15);

/// How long a server behind a URL is waited for together with others; there is nothing to install.
const REMOTE: Duration = Duration::from_secs(5);

/// How long a server is waited for together with others if it failed a short time ago.
const DOUBTFUL: Duration = Duration::from_millis(1500);

impl Inventory {
    /// Lists `server`, or all servers for `None`, and waits for the result for at most `limit`.
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
                    watch.ask();
                }
                (state, until)
            })
            .collect();
        let all = async {
            for (mut state, until) in rounds {
                // It fails if the server is removed from the configuration meanwhile.
                let _ = state.wait_for(|state| state.rounds >= until).await;
            }
        };
        // Listings that are not finished by then can be seen in the progress of each server.
        let _ = tokio::time::timeout(limit, all).await;
    }

    /// Lists `server`, like [`Self::list`]. Returns whether it was stopped meanwhile.
    pub(crate) async fn start(&self, server: &ServerName, limit: Duration) -> bool {
        let watch = self.watched().get(server).map(|it| it.watch.clone());
        let stopped = watch.as_ref().map(|watch| watch.stopped.notified());
        let stopped = OptionFuture::from(stopped);
        tokio::select! {
            biased;
            Some(()) = stopped => true,
            () = self.list(Some(server), limit) => false,
        }
    }

    /// Resolves when the cache has been read and the servers without a list have been listed, or after `limit`. Without
    /// `server`, one that does not answer delays the others for a shorter time, and is remembered as failed unless it prepares its start.
    pub(crate) async fn known(&self, server: Option<&ServerName>, limit: Duration) {
        self.release();
        self.loaded().await;
        let snapshot = self.catalog.snapshot();
        let start = Instant::now();
        let missing: Vec<_> = self
            .watched()
            .iter()
            .filter(|(name, _)| {
                server.is_none_or(|server| server == *name) && snapshot.server(name).is_none()
            })
            .map(|(name, watched)| {
                let patience = match server {
                    Some(_) => limit,
                    None if watched.watch.is_doubtful() => DOUBTFUL,
                    None if watched.is_remote => REMOTE,
                    None => limit,
                };
                let state = watched.watch.state.subscribe();
                let rounds = state.borrow().rounds;
                let until = if watched.watch.begin() { rounds + 1 } else { 1 };
                let is_counted = !watched.prepares;
                (name.clone(), state, until, patience.min(limit), is_counted)
            })
            .collect();
        let _urgent = server
            .filter(|_| !missing.is_empty())
            .map(|server| self.hurry(server));
        for (name, mut state, until, patience, is_counted) in missing {
            let listed = state.wait_for(|state| state.rounds >= until);
            // It fails if the server is removed from the configuration meanwhile.
            let is_late = timeout_at(start + patience, listed).await.is_err();
            // A short wait says nothing new of a server that was late before.
            if is_late && is_counted && patience > DOUBTFUL {
                let late = NotListed::Late(patience);
                self.remember_failure(&name, &late).await;
            }
        }
    }

    /// Lists `server` before all others, for a client that waits for it, and waits for at most `limit`.
    pub(in crate::proxy) async fn list_now(&self, server: &ServerName, limit: Duration) {
        let _urgent = self.hurry(server);
        self.list(Some(server), limit).await;
    }

    /// Lists `server` before all others: no other listing begins until the result is dropped.
    fn hurry(&self, server: &ServerName) -> Urgent {
        if let Some(watched) = self.watched().get(server) {
            watched.watch.urgent.notify_one();
        }
        self.pool.urgent()
    }

    /// Like `known`, for a client that is about to use `server`: if its last attempt failed, or the one in progress
    /// fails, it is tried again at once, regardless of its backoff.
    pub(crate) async fn known_now(&self, server: Option<&ServerName>, limit: Duration) {
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

    /// Waits while servers, or only `server`, are listed for the first time: a few seconds, and longer while others
    /// finish one after the other. With `is_blind`, the time starts now. Returns whether it waited.
    pub(crate) async fn settled(&self, server: Option<&str>, is_blind: bool) -> bool {
        let start = Instant::now();
        let mut came = self.came.subscribe();
        let mut has_waited = false;
        loop {
            let last = *came.borrow_and_update();
            let Some((since, is_doubtful)) = self.first_asked(server) else {
                return has_waited;
            };
            let began = if is_blind { start } else { since };
            let until = match is_doubtful {
                true => began + DOUBTFUL,
                false => last
                    .map_or(began + FIRST, |last| (last + NEXT).max(began + FIRST))
                    .min(began + LONGEST),
            };
            has_waited |= Instant::now() < until;
            if timeout_at(until, came.changed()).await.is_err() {
                return has_waited;
            }
        }
    }

    /// The latest start of a first listing that is not finished; `None` if there is none. Servers that failed a short time ago
    /// count only if there is no other, and if `server` is not named; the second value says so.
    fn first_asked(&self, server: Option<&str>) -> Option<(Instant, bool)> {
        let watched = self.watched();
        let first = watched.iter().filter(|(name, watched)| {
            server.is_none_or(|server| server == name.as_str()) && watched.watch.is_first()
        });
        let asked = first.filter_map(|(_, watched)| {
            let since = watched.watch.state.borrow().since?;
            Some((since, server.is_none() && watched.watch.is_doubtful()))
        });
        asked.max_by_key(|(since, is_doubtful)| (!is_doubtful, *since))
    }
}
