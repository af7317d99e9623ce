//! The delay before the next attempt to connect a failed server.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// The delay before attempt `failures + 1`: it doubles from one second to five minutes, and varies randomly by a
/// fifth, so that processes do not retry in step. Attempts never stop.
#[must_use]
pub(crate) fn backoff(failures: u32) -> Duration {
    let pause = FIRST
        .saturating_mul(
            1_u32
                .checked_shl(failures.saturating_sub(1))
                .unwrap_or(u32::MAX),
        )
        .min(LONGEST);
    // The keys of a new RandomState are random, which is sufficient to spread attempts.
    let random = RandomState::new().hash_one(failures) % 1024;
    #[expect(clippy::cast_precision_loss, reason = "below 1024")]
    let factor = 0.8 + 0.4 * (random as f64 / 1024.0);
    pause.mul_f64(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_spread_and_have_a_bound() {
        for (failures, seconds) in [
            (1, 1.0),
            (2, 2.0),
            (5, 16.0),
            (20, 300.0),
            (u32::MAX, 300.0),
        ] {
            for _ in 0..50 {
                let pause = backoff(failures).as_secs_f64();
                assert!(
                    (0.8 * seconds..=1.2 * seconds).contains(&pause),
                    "{failures}: {pause}"
                );
            }
        }
    }
}
