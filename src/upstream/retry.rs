//! When a server that failed is tried again.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// The pause before attempt `failures + 1`: doubling from one second to five minutes, each a random fifth longer or
/// shorter, so that many processes do not try in step. It never says to give up.
#[must_use]
pub(crate) fn backoff(failures: u32) -> Duration {
    let pause = FIRST
        .saturating_mul(
            1_u32
                .checked_shl(failures.saturating_sub(1))
                .unwrap_or(u32::MAX),
        )
        .min(LONGEST);
    // The keys of a fresh RandomState are random: enough to spread attempts, without a crate for it.
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
