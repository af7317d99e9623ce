//! Fails at once while PostgreSQL does not answer, and lets one attempt through from time to time.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::StoreError;

/// The failures in a row after which attempts are refused.
const FAILURES: u32 = 3;

/// How long they are refused; then one attempt may show that PostgreSQL is back.
const REST: Duration = Duration::from_secs(1);

/// The state of attempts.
#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    failures: u32,
    reason: String,
    /// The time of the next attempt.
    next: Option<Instant>,
}

impl Breaker {
    /// Permits an attempt.
    ///
    /// # Errors
    /// While attempts are refused.
    pub(super) fn admit(&self) -> Result<(), StoreError> {
        let mut state = self.0.lock();
        let Some(next) = state.next else {
            return Ok(());
        };
        if Instant::now() < next {
            return Err(StoreError::Resting(state.reason.clone()));
        }
        // Others wait for the outcome of this one.
        state.next = Some(Instant::now() + REST);
        Ok(())
    }

    /// An attempt that got no answer.
    pub(super) fn failed(&self, error: &StoreError) {
        if matches!(error, StoreError::Resting(_)) {
            return;
        }
        let mut state = self.0.lock();
        state.failures = state.failures.saturating_add(1);
        state.reason = error.to_string();
        if state.failures >= FAILURES {
            if state.next.is_none() {
                tracing::warn!(%error, "the store is not available");
            }
            state.next = Some(Instant::now() + REST);
        }
    }

    /// An attempt that got an answer.
    pub(super) fn succeeded(&self) {
        let mut state = self.0.lock();
        if state.next.is_some() {
            tracing::info!("the store is available again");
        }
        *state = State::default();
    }

    /// Why attempts are refused, if they are.
    pub(super) fn fault(&self) -> Option<String> {
        let state = self.0.lock();
        state.next.is_some().then(|| state.reason.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_refuses_after_three_failures_until_one_attempt_succeeds() {
        let breaker = Breaker::default();
        for _ in 0..2 {
            breaker.failed(&StoreError::Slow);
        }
        assert!(breaker.admit().is_ok() && breaker.fault().is_none());
        breaker.failed(&StoreError::Slow);
        assert!(breaker.fault().is_some());
        let refused = breaker.admit().unwrap_err();
        assert!(refused.is_unavailable(), "{refused}");
        breaker.0.lock().next = Some(Instant::now());
        assert!(breaker.admit().is_ok());
        // One at a time.
        assert!(breaker.admit().is_err());
        breaker.succeeded();
        assert!(breaker.admit().is_ok() && breaker.admit().is_ok());
        assert!(breaker.fault().is_none());
    }
}
