//! Receives the notifications of other replicas and of the store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::broadcast;

use super::{Event, Replicas};
use crate::shutdown::Tasks;

/// Notices that wait for the downstream; one that lags behind reads everything again.
pub(super) const WAITING: usize = 4096;

/// The time after which all sessions here are read again.
const REREAD: Duration = Duration::from_secs(60 * 60);

/// Something that happened at another replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The client of a session has cancelled a request, whose id is JSON.
    Cancelled {
        /// The session.
        session: String,
        /// The request.
        request: String,
    },
    /// The client of a session has opened its stream at another replica.
    Listening {
        /// The session.
        session: String,
        /// The replica.
        replica: String,
        /// How long ago.
        age: Duration,
    },
    /// The client of a session works in other directories.
    Moved {
        /// The session.
        session: String,
    },
    /// A session was changed or has ended.
    Changed {
        /// The session.
        session: String,
    },
    /// A server's lists have changed.
    Listed {
        /// The server.
        server: String,
        /// A hash of the lists.
        hash: String,
    },
    /// Any number of sessions may have changed: they are to be read again.
    Reread,
}

impl Replicas {
    /// The notices from now on.
    pub(crate) fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    async fn noticed(&self, event: Event) {
        let notice = match event {
            Event::Reread => Notice::Reread,
            Event::Message {
                topic,
                sender,
                payload,
            } if sender == self.id => {
                let waiting = self.echoes.lock().remove(&(topic, payload));
                for echo in waiting.into_iter().flatten() {
                    // It may have waited for too long.
                    let _ = echo.send(());
                }
                return;
            }
            Event::Message {
                topic,
                sender,
                payload,
            } => {
                let Some(notice) = notice(&topic, sender, payload) else {
                    return;
                };
                match &notice {
                    // An end, too, is believed if the store has it.
                    Notice::Changed { session } => {
                        let is_followed = self.known.lock().changes.contains_key(session);
                        match is_followed {
                            false => return,
                            true => match self.read(std::slice::from_ref(session)).await {
                                Ok(_) => notice,
                                Err(error) => {
                                    tracing::debug!(%error, "a session is read later");
                                    Notice::Reread
                                }
                            },
                        }
                    }
                    Notice::Listening {
                        session,
                        replica,
                        age,
                    } => {
                        let now = Instant::now();
                        let since = now.checked_sub(*age).unwrap_or(now);
                        match self.known.lock().note_stream(session, replica, since) {
                            true => notice,
                            // The message was late: the client has opened another stream since.
                            false => return,
                        }
                    }
                    _ => notice,
                }
            }
        };
        // It fails if nothing follows.
        let _ = self.notices.send(notice);
    }
}

/// Follows the notifications until the run ends.
pub(super) async fn follow(replicas: Arc<Replicas>, tasks: Tasks) {
    let following = async {
        let mut events = replicas.backing.events();
        let begun = tokio::time::Instant::now();
        let mut again = tokio::time::interval_at(begun + REREAD, REREAD);
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                // Sessions that have left this replica are forgotten.
                _ = again.tick() => Some(Event::Reread),
            };
            match event {
                Some(event) => replicas.noticed(event).await,
                None => return,
            }
        }
    };
    tokio::select! {
        () = following => {}
        () = tasks.stopped() => {}
    }
}

fn notice(topic: &str, sender: String, payload: String) -> Option<Notice> {
    Some(match topic {
        "session" | "ended" => Notice::Changed { session: payload },
        "moved" => Notice::Moved { session: payload },
        "stream" => {
            let (session, age) = payload.split_once(' ')?;
            Notice::Listening {
                session: session.to_owned(),
                replica: sender,
                age: Duration::from_millis(age.parse().ok()?),
            }
        }
        "cancel" => {
            let (session, request) = payload.split_once(' ')?;
            Notice::Cancelled {
                session: session.to_owned(),
                request: request.to_owned(),
            }
        }
        "listed" => {
            let (hash, server) = payload.split_once(' ')?;
            Notice::Listed {
                server: server.to_owned(),
                hash: hash.to_owned(),
            }
        }
        _ => return None,
    })
}
