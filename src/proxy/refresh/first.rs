//! Searches that come while servers are listed for the first time.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::Refresh;

/// How long a search waits for servers that are listed for the first time, from the beginning of that.
const FIRST: Duration = Duration::from_secs(4);

/// How long it waits after another server came, as the next may come soon.
const NEXT: Duration = Duration::from_secs(3);

/// How long it waits in any case at most.
const LONGEST: Duration = Duration::from_secs(15);

impl Refresh {
    /// Waits while servers are listed for the first time: a few seconds, and longer as long as one after the other comes;
    /// of a `server` for that one alone. Where nothing is known yet, the time begins now. Whether it waited.
    pub async fn settled(&self, server: Option<&str>, is_blind: bool) -> bool {
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
