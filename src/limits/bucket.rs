//! The remaining amount of a limit per minute. It refills evenly, up to one minute's amount.

use std::time::{Duration, Instant};

/// A bucket; full when it is made.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// The remaining amount, and its time; negative after an answer that was larger than it.
    left: Option<(f64, Instant)>,
}

impl Bucket {
    /// The time until `wanted` of `most` a minute can be taken; `None` if they can be now.
    pub(super) fn wait(&mut self, wanted: f64, most: u64, now: Instant) -> Option<Duration> {
        let most = most as f64;
        let per_second = most / 60.0;
        let left = self.left.map_or(most, |(left, since)| {
            (left + (now - since).as_secs_f64() * per_second).min(most)
        });
        self.left = Some((left, now));
        let missing = wanted - left;
        (missing > 1e-9).then(|| Duration::from_secs_f64((missing / per_second).min(1e6)))
    }

    /// Takes what [`Self::wait`] has permitted. A bucket that no limit has asked about counts nothing.
    pub(super) fn take(&mut self, taken: f64) {
        if let Some((left, _)) = &mut self.left {
            *left -= taken;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_can_be_used_at_once_and_fills_evenly() {
        let (mut bucket, start) = (Bucket::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        for _ in 0..6 {
            assert_eq!(bucket.wait(1.0, 6, start), None);
            bucket.take(1.0);
        }
        assert_eq!(bucket.wait(1.0, 6, start), Some(Duration::from_secs(10)));
        assert_eq!(bucket.wait(1.0, 6, after(4)), Some(Duration::from_secs(6)));
        assert_eq!(bucket.wait(1.0, 6, after(10)), None);
        bucket.take(1.0);
        assert!(bucket.wait(1.0, 6, after(11)).is_some());
        // A larger answer than what was left is paid for later.
        bucket.take(6.0);
        assert!(bucket.wait(1.0, 6, after(60)).is_some());
        assert_eq!(bucket.wait(6.0, 6, after(300)), None);
    }
}
