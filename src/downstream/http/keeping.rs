//! Keeps answers whose clients have gone, so that they can get them from another replica.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::draining::{Draining, InProgress};
use crate::replicas::Replicas;

/// The time after which the answer to a client that has gone is kept in the store.
const AWAY: Duration = Duration::from_secs(5);

/// Keeps the answers of a session for other replicas.
#[derive(Debug, Clone)]
pub(super) struct AnswerKeeper {
    replicas: Arc<Replicas>,
    session: String,
    draining: Draining,
}

/// An answer that comes while its client is gone. The end of the run waits for it.
pub(super) struct Keeping {
    keeper: AnswerKeeper,
    _held: InProgress,
}

impl AnswerKeeper {
    /// The keeper of the answers of `session`. The end of the run waits for those that have not come yet.
    pub(super) fn new(replicas: Arc<Replicas>, session: String, draining: Draining) -> Self {
        Self {
            replicas,
            session,
            draining,
        }
    }

    /// The id of this replica.
    pub(super) fn replica(&self) -> &str {
        self.replicas.id()
    }

    /// The session.
    pub(super) fn session(&self) -> &str {
        &self.session
    }

    /// Begins to wait for an answer.
    pub(super) fn begin(&self) -> Keeping {
        Keeping {
            keeper: self.clone(),
            _held: self.draining.hold(),
        }
    }
}

impl Keeping {
    /// Resolves when the client has been gone for long, or the run is about to end.
    pub(super) async fn due(&self) {
        tokio::select! {
            () = tokio::time::sleep(AWAY) => {}
            () = self.keeper.draining.begun() => {}
        }
    }

    /// Keeps the events of a stream.
    pub(super) async fn keep(self, stream: u64, events: Vec<(u64, Bytes)>) {
        let AnswerKeeper {
            replicas, session, ..
        } = &self.keeper;
        if events.is_empty() {
            return;
        }
        if let Err(error) = replicas.keep_answer(session, stream, events).await {
            tracing::warn!(%error, "an answer whose client is gone is kept in memory only");
        }
    }
}
