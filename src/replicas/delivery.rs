//! Letters to other replicas and from them, and the answers that are kept for clients that are gone.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use super::letter::{self, Content};
use super::peers::{Answer, Death, Unreachable};
use super::{Replicas, TAKEN, Unavailable};

/// The time for which an answer is kept whose client is gone.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// The time between two looks whether a replica that was asked has died, and the number of looks that must miss it.
const LOOK: Duration = Duration::from_secs(1);
const MISSED: usize = 4;

/// The attempts to pass an answer on, and the pause between two.
const ATTEMPTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(250);

impl Replicas {
    /// Sends a letter to a replica, and returns its response.
    ///
    /// # Errors
    /// When the replica does not live, dies before it answers, or cannot be reached.
    pub(crate) async fn send(
        &self,
        replica: &str,
        content: Content,
        body: &[u8],
    ) -> Result<http::Response<Answer>, Unreachable> {
        let url = self.backing.peer(replica).ok_or(Unreachable::Gone)?;
        let letter = letter::seal(&self.keys, replica, content, body);
        let seal = letter::outer_seal(&self.keys, replica);
        let mut death = self.death_of(replica);
        let mut response = tokio::select! {
            sent = self.peers.send(&url, seal.clone(), letter) => sent?,
            () = &mut death => return Err(Unreachable::Died),
        };
        let taken = response.headers_mut().remove(TAKEN);
        let is_taken = taken.is_some_and(|tag| {
            tag.to_str()
                .is_ok_and(|tag| letter::is_receipt(&self.keys, &seal, tag))
        });
        if is_taken {
            return Ok(response.map(|body| Answer::new(body, death)));
        }
        // A replica whose connections are all in use refuses a new one before it knows whose it is.
        if response.status() == StatusCode::SERVICE_UNAVAILABLE {
            return Err(Unreachable::Busy);
        }
        if self.misled.lock().insert(replica.to_owned()) {
            tracing::warn!(
                replica,
                url,
                "this replica does not take letters: another process has its address, its clock differs by more than a minute, or it has another `MCPZIP_STORE_KEY`"
            );
        }
        Err(Unreachable::Gone)
    }

    /// Resolves when a replica that lives has died: it has given no sign of life for ten seconds, and does not come back.
    fn death_of(&self, replica: &str) -> Death {
        let (backing, replica) = (self.backing.clone(), replica.to_owned());
        Box::pin(async move {
            // After an outage of the store, all others are dead until their next signs of life.
            let mut missed = 0;
            while missed < MISSED {
                tokio::time::sleep(LOOK).await;
                missed = match backing.peer(&replica) {
                    Some(_) => 0,
                    None => missed + 1,
                };
            }
        })
    }

    /// The tag that shows the sender of a letter with this outer seal that this replica has taken it.
    #[must_use]
    pub(crate) fn receipt(&self, seal: &str) -> String {
        letter::receipt(&self.keys, seal)
    }

    /// Whether a letter with this outer seal is from a replica, for this one.
    #[must_use]
    pub(crate) fn knows(&self, seal: &str) -> bool {
        letter::is_outer_seal(&self.keys, &self.id, seal)
    }

    /// Sends a short letter, again if it did not arrive. Returns whether it found its session. A message that may have arrived is not sent
    /// again, because its client would see it twice; an answer counts once in any case.
    pub(crate) async fn deliver(&self, replica: &str, content: Content, body: Bytes) -> bool {
        let counts_once = matches!(content, Content::Answer { .. });
        for attempt in 1..=ATTEMPTS {
            match self.send(replica, content.clone(), &body).await {
                Ok(response) if response.status() != StatusCode::SERVICE_UNAVAILABLE => {
                    let is_there = response.status().is_success();
                    if counts_once && !is_there {
                        let status = response.status().as_u16();
                        tracing::warn!(
                            replica,
                            status,
                            "an answer of a client is lost: the session that has asked is not there"
                        );
                    }
                    return is_there;
                }
                Ok(_) if attempt == ATTEMPTS => {
                    tracing::warn!(
                        replica,
                        "a letter is dropped: the replica is full, or its client reads too slowly"
                    );
                    return true;
                }
                Err(Unreachable::Gone) => {
                    if counts_once {
                        tracing::warn!(
                            replica,
                            "an answer of a client is lost: the replica that has asked does not take it"
                        );
                    }
                    return false;
                }
                Err(error) if attempt == ATTEMPTS || !(counts_once || error.is_before()) => {
                    tracing::warn!(replica, %error, "a letter did not arrive");
                    return false;
                }
                Ok(_) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        false
    }

    /// Opens a letter for this replica. `None` if it is none, or was opened before.
    #[must_use]
    pub(crate) fn open(&self, letter: &[u8]) -> Option<(Content, Bytes)> {
        self.taken.open(&self.keys, &self.id, letter)
    }

    /// Keeps the events of a stream whose client is gone: their numbers, and their texts, which are sealed.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn keep_answer(
        &self,
        session: &str,
        stream: u64,
        events: Vec<(u64, Bytes)>,
    ) -> Result<(), Unavailable> {
        let stream = format!("{}-{stream}", self.id);
        let sealed = events.into_iter().map(|(number, text)| {
            let context = answer(session, &stream, number);
            (number, self.keys.seal(context.as_bytes(), &text).into())
        });
        let sealed = sealed.collect();
        self.backing
            .keep_answer(session.to_owned(), stream, sealed, KEPT)
            .await
    }

    /// The events behind `number` of a stream that a replica has kept, with their numbers.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn kept_answer(
        &self,
        session: &str,
        (replica, stream, number): (&str, u64, u64),
    ) -> Result<Vec<(u64, Bytes)>, Unavailable> {
        let stream = format!("{replica}-{stream}");
        let of = stream.clone();
        let kept = self
            .backing
            .kept_answer(session.to_owned(), stream, number)
            .await?;
        let opened = kept.into_iter().map(|(number, sealed)| {
            let context = answer(session, &of, number);
            let text = self.keys.open(context.as_bytes(), &sealed)?;
            Some((number, text.into()))
        });
        // A part of an answer is none.
        Ok(opened.collect::<Option<_>>().unwrap_or_default())
    }
}

/// The context of a kept event.
fn answer(session: &str, stream: &str, number: u64) -> String {
    format!("answer\0{session}\0{stream}\0{number}")
}
