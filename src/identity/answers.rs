//! The latest answers of an issuer about tokens other than JWTs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Fingerprint;

/// How long an answer counts.
pub(super) const FRESH: Duration = Duration::from_secs(10);

/// The age at which the issuer is asked again about a token in use, so that a slow answer still comes in time.
pub(super) const AGEING: Duration = Duration::from_secs(5);

/// The most refused tokens that are remembered.
const MOST: usize = 10_000;

/// The number of questions to the issuer at one time.
const TURNS: usize = 16;

/// How long a token that is not in use waits for its turn.
const WAIT: Duration = Duration::from_secs(5);

/// The latest answers of an issuer.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// One question at a time about a token; tokens share the turns by their hash.
    turns: [tokio::sync::Mutex<()>; TURNS],
    /// Those of tokens in use, which never wait for unknown ones.
    known_turns: [tokio::sync::Mutex<()>; TURNS],
    refused: Mutex<HashMap<Fingerprint, Instant>>,
    is_failing: AtomicBool,
}

impl Answers {
    /// Records that the issuer does not answer; returns whether that is new.
    pub(super) fn has_failed(&self) -> bool {
        !self.is_failing.swap(true, Ordering::Relaxed)
    }

    /// Records that the issuer answers; returns whether that is new.
    pub(super) fn has_recovered(&self) -> bool {
        self.is_failing.swap(false, Ordering::Relaxed)
    }

    /// Waits for the turn to ask about a token, which may be one in use. `None` if others take too long.
    pub(super) async fn turn(
        &self,
        fingerprint: &Fingerprint,
        is_in_use: bool,
    ) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        let place = usize::from(fingerprint[0]) % TURNS;
        match is_in_use {
            true => Some(self.known_turns[place].lock().await),
            false => tokio::time::timeout(WAIT, self.turns[place].lock())
                .await
                .ok(),
        }
    }

    /// Whether the issuer has refused this token just now.
    pub(super) fn is_refused(&self, fingerprint: &Fingerprint) -> bool {
        let refused = self.refused.lock();
        refused
            .get(fingerprint)
            .is_some_and(|at| at.elapsed() < FRESH)
    }

    /// Remembers that the issuer has refused this token.
    pub(super) fn refuse(&self, fingerprint: Fingerprint) {
        let mut refused = self.refused.lock();
        if refused.len() >= MOST {
            refused.retain(|_, at| at.elapsed() < FRESH);
        }
        if refused.len() < MOST {
            refused.insert(fingerprint, Instant::now());
        }
    }
}
