//! The resources and tasks of a server that clients follow.
//!
//! One task per server holds a connection while any of them is followed, so that it does not close for idleness.
//! When the connection is lost, the task subscribes to everything again on the next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use super::connection::Connection;
use super::followed::Followed;
use super::reply::ServerReply;
use super::slot::{Lease, Slot};
use super::{CallError, backoff, message_of};
use crate::mcp::object::quoted;

/// The time limit of each subscription request.
const LIMIT: Duration = Duration::from_secs(20);

/// The session id of a connection that is held for no session.
const NOBODY: u64 = u64::MAX;

/// The outcome of each subscription on the current connection; absent while it is pending.
type Outcomes = BTreeMap<Followed, Result<(), SubscribeError>>;

/// Why a resource cannot be followed.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum SubscribeError {
    /// The server cannot be reached, or sent no response.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server refused.
    #[error("{reason}")]
    Refused {
        /// The message of its error.
        reason: String,
    },
    /// The server was removed from the configuration.
    #[error("the server is not configured any more")]
    Removed,
    /// The outcome did not arrive in time.
    #[error("it was not subscribed within {limit:?}")]
    Late {
        /// The time limit.
        limit: Duration,
    },
}

/// The followed resources of one server. Dropping it ends its task.
#[derive(Debug)]
pub(super) struct Subscriptions {
    slot: Arc<Slot>,
    outcomes: watch::Receiver<Outcomes>,
    _keeper: DropGuard,
}

/// The task.
struct Keeper {
    slot: Arc<Slot>,
    wanted: watch::Receiver<BTreeSet<Followed>>,
    outcomes: watch::Sender<Outcomes>,
}

impl Subscriptions {
    /// Creates the subscriptions of a server, with no resource followed yet.
    pub(super) fn new(slot: Arc<Slot>) -> Self {
        let (sender, outcomes) = watch::channel(Outcomes::new());
        let keeper = Keeper {
            wanted: slot.followed.subscribe(),
            slot: slot.clone(),
            outcomes: sender,
        };
        let context = slot.context();
        let stop = context.tasks.stop().child_token();
        context
            .tasks
            .spawn(stop.clone().run_until_cancelled_owned(keeper.keep()));
        Self {
            slot,
            outcomes,
            _keeper: stop.drop_guard(),
        }
    }

    /// Sets what to follow.
    pub(super) fn want(&self, uris: BTreeSet<Followed>) {
        self.slot.followed.send_if_modified(|wanted| {
            let differs = *wanted != uris;
            *wanted = uris;
            differs
        });
    }

    /// Waits for the outcome of the subscription to `uri`, for at most `limit`. The future does not borrow from `self`.
    pub(super) fn outcome(
        &self,
        uri: &str,
        limit: Duration,
    ) -> impl Future<Output = Result<(), SubscribeError>> + use<> {
        let (slot, mut outcomes, uri) = (
            self.slot.clone(),
            self.outcomes.clone(),
            Followed::Resource(uri.to_owned()),
        );
        // A confirmation by a connection that has ended does not count; its end clears the outcomes.
        let is_valid = move |outcome: &Result<(), SubscribeError>| {
            outcome.is_err() || slot.connection().is_some()
        };
        async move {
            let known = async {
                let outcomes = outcomes
                    .wait_for(|outcomes| outcomes.get(&uri).is_some_and(&is_valid))
                    .await
                    .ok()?;
                outcomes.get(&uri).cloned()
            };
            match tokio::time::timeout(limit, known).await {
                Ok(Some(outcome)) => outcome,
                Ok(None) => Err(SubscribeError::Removed),
                Err(_) => Err(SubscribeError::Late { limit }),
            }
        }
    }
}

impl Keeper {
    async fn keep(mut self) {
        let mut failures = 0;
        while self
            .wanted
            .wait_for(|wanted| !wanted.is_empty())
            .await
            .is_ok()
        {
            match self
                .slot
                .lease(NOBODY, self.slot.capabilities().into())
                .await
            {
                Ok(lease) => {
                    failures = 0;
                    self.outcomes.send_replace(Outcomes::new());
                    self.follow(lease).await;
                    self.outcomes.send_replace(Outcomes::new());
                }
                Err(error) => {
                    failures += 1;
                    let error = SubscribeError::from(CallError::from(error));
                    let wanted = self.wanted.borrow_and_update().clone();
                    self.outcomes.send_replace(
                        wanted
                            .into_iter()
                            .map(|uri| (uri, Err(error.clone())))
                            .collect(),
                    );
                }
            }
            if !self.wanted.borrow().is_empty() {
                tokio::select! {
                    () = tokio::time::sleep(backoff(failures)) => {}
                    _ = self.wanted.changed() => {}
                }
            }
        }
    }

    /// Keeps the subscriptions of one connection equal to the followed URIs, until there are none or the connection
    /// ends.
    async fn follow(&mut self, lease: Lease) {
        let mut active = BTreeSet::new();
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            for uri in active.difference(&wanted) {
                self.outcomes
                    .send_modify(|outcomes| drop(outcomes.remove(uri)));
                // The result makes no difference: the resource is not followed any more.
                let _ = ask(&lease, "resources/unsubscribe", uri).await;
            }
            for uri in wanted.difference(&active) {
                match ask(&lease, "resources/subscribe", uri).await {
                    // The next connection subscribes again.
                    Err(error) if error.is_lost() => return,
                    outcome => {
                        let outcome = match outcome {
                            Ok(ServerReply::Result(_)) => Ok(()),
                            Ok(ServerReply::Error(error)) => Err(SubscribeError::Refused {
                                reason: message_of(&error),
                            }),
                            Err(error) => Err(error.into()),
                        };
                        if let Err(error) = &outcome {
                            tracing::info!(server = %self.slot.server, ?uri, reason = %error, "not subscribed");
                        }
                        self.outcomes
                            .send_modify(|outcomes| drop(outcomes.insert(uri.clone(), outcome)));
                    }
                }
            }
            if wanted.is_empty() {
                return;
            }
            active = wanted;
            tokio::select! {
                _ = self.wanted.changed() => {}
                () = lease.ended() => return,
            }
        }
    }
}

/// Subscribes or unsubscribes on a legacy server. A modern server gets all URIs at once, from `server_events.rs`.
async fn ask(
    connection: &Connection,
    method: &str,
    followed: &Followed,
) -> Result<ServerReply, CallError> {
    let uri = match followed {
        Followed::Resource(uri) if !connection.introduction().revision.is_modern() => uri,
        // A server with a handshake has no such tasks.
        _ => return Ok(ServerReply::Result("{}".to_owned().into())),
    };
    connection
        .request(method, &format!(r#""uri":{}"#, quoted(uri)), LIMIT)
        .await
}
