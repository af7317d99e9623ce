//! A histogram of call times.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Steps per doubling of a time, so that a time is known to about 10 %.
const STEPS: f64 = 4.0;

/// The last step: all times from about 70 minutes on.
const LAST: u8 = 128;

/// Counts of call times on a logarithmic scale, as pairs of step and count in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram(Vec<(u8, u64)>);

impl Histogram {
    /// Counts a time.
    pub fn add(&mut self, time: Duration) {
        self.count_in(step(time), 1);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (step, count) in &other.0 {
            self.count_in((*step).min(LAST), *count);
        }
    }

    /// The number of counted times.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// The time that `share` of all times do not exceed. `share` is from 0 to 1. `None` without any times.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "what is counted stays far below 2^52"
        )]
        let wanted = self.count() as f64 * share;
        let mut seen = 0;
        self.0.iter().find_map(|(step, count)| {
            seen += count;
            #[expect(
                clippy::cast_precision_loss,
                reason = "what is counted stays far below 2^52"
            )]
            (seen as f64 >= wanted).then(|| middle(*step))
        })
    }

    fn count_in(&mut self, step: u8, count: u64) {
        match self.0.binary_search_by_key(&step, |(step, _)| *step) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(count),
            Err(at) => self.0.insert(at, (step, count)),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is bounded before it is converted"
)]
fn step(time: Duration) -> u8 {
    let micros = (time.as_secs_f64() * 1e6).max(1.0);
    (micros.log2() * STEPS).floor().clamp(0.0, f64::from(LAST)) as u8
}

fn middle(step: u8) -> Duration {
    Duration::from_secs_f64(((f64::from(step) + 0.5) / STEPS).exp2() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_tenth_and_the_size_is_bounded() {
        let mut all = Histogram::default();
        assert_eq!(all.quantile(0.5), None);
        let mut half = Histogram::default();
        for micros in 1..=100_000_u64 {
            let part = if micros % 2 == 0 { &mut all } else { &mut half };
            part.add(Duration::from_micros(micros));
        }
        all.merge(&half);
        assert_eq!(all.count(), 100_000);
        for (share, expected) in [(0.5, 0.05), (0.95, 0.095), (0.99, 0.099)] {
            let found = all.quantile(share).unwrap().as_secs_f64();
            assert!(
                (found / expected - 1.0).abs() < 0.1,
                "{share}: {found} for {expected}"
            );
        }
        for time in [
            Duration::ZERO,
            Duration::from_secs(100_000_000),
            Duration::MAX,
        ] {
            all.add(time);
        }
        assert!(all.0.len() <= usize::from(LAST) + 1);
    }
}
