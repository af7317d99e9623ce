//! Leases by which something is at one replica at a time: the process of a server, and the turns to list a server and to embed tools.

use std::sync::Arc;
use std::time::Duration;

use super::{Home, LeaseKey, Replicas, Unavailable};

/// How long a replica is the home of a server, unless it prolongs that.
pub(crate) const LEASE: Duration = Duration::from_secs(20);

/// The owner of the leases by which replicas do something one after another: they list a server, and embed tools.
const TURN: &[u8] = b"turn";
const EMBEDDING: &str = "embedding";

/// How long a replica waits for another one that lists the server.
const LISTED_MEANWHILE: Duration = Duration::from_secs(5);

/// The pause between two attempts to get a turn.
const PAUSE: Duration = Duration::from_millis(250);

/// The right of this replica alone to do one piece of work. If the turn is not ended, its lease expires.
#[derive(Debug)]
pub(crate) struct Turn {
    replicas: Arc<Replicas>,
    place: LeaseKey,
    fence: u64,
}

impl Turn {
    /// Prolongs it.
    pub(crate) async fn keep(&self) {
        let lease = (self.place.clone(), self.fence);
        if let Err(error) = self.replicas.keep_homes(vec![lease]).await {
            tracing::debug!(%error, "a turn is not prolonged");
        }
    }

    /// Lets others have it.
    pub(crate) async fn end(self) {
        let left = self.replicas.leave_home(self.place, self.fence, true);
        if let Err(error) = left.await {
            tracing::debug!(%error, "a turn ends after its time");
        }
    }
}

impl Replicas {
    /// Takes the lease of a home if it is free, and returns who has it then.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn take_home(&self, place: LeaseKey) -> Result<Home, Unavailable> {
        self.backing.take_home(place, LEASE).await
    }

    /// Prolongs leases of this replica, each with its fence; returns those that it still has.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn keep_homes(
        &self,
        leases: Vec<(LeaseKey, u64)>,
    ) -> Result<Vec<LeaseKey>, Unavailable> {
        self.backing.keep_homes(leases, LEASE).await
    }

    /// Gives a lease back. With `is_over`, the next one is the first again.
    ///
    /// # Errors
    /// When the store does not answer; then the lease ends after its time.
    pub(crate) async fn leave_home(
        &self,
        place: LeaseKey,
        fence: u64,
        is_over: bool,
    ) -> Result<(), Unavailable> {
        self.backing.leave_home(place, fence, is_over).await
    }

    /// Waits until no other replica lists the server with this name and entry, but not for long. Others wait until the turn has ended.
    pub(crate) async fn listing_turn(self: &Arc<Self>, name: String) -> Option<Turn> {
        let until = tokio::time::Instant::now() + LISTED_MEANWHILE;
        loop {
            match self.turn(name.clone()).await {
                Ok(Some(turn)) => return Some(turn),
                Ok(None) if tokio::time::Instant::now() < until => {
                    tokio::time::sleep(PAUSE).await;
                }
                // It only spares the server, so a listing never depends on it.
                Ok(None) => return None,
                Err(error) => {
                    tracing::debug!(%error, "listing without a turn");
                    return None;
                }
            }
        }
    }

    /// The turn to embed tools; `None` if another replica has it.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn embedding_turn(self: &Arc<Self>) -> Result<Option<Turn>, Unavailable> {
        self.turn(EMBEDDING.to_owned()).await
    }

    async fn turn(self: &Arc<Self>, name: String) -> Result<Option<Turn>, Unavailable> {
        let owner = TURN.to_vec();
        let place = LeaseKey { owner, name };
        let home = self.take_home(place.clone()).await?;
        Ok(home.is_new.then(|| Turn {
            replicas: self.clone(),
            place,
            fence: home.fence,
        }))
    }
}
