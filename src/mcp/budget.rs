//! A byte budget shared by the messages of many peers.
//!
//! The reservation is part of the buffer itself (`Bytes::from_owner`), so it is released when the last clone or slice
//! is dropped. Short messages have a separate budget, so that large unread messages cannot use it up.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The largest short message, in bytes.
pub(crate) const SHORT: usize = 64 * 1024;

/// The smallest reservation for a message that is to be processed, in bytes: processing takes more memory than the
/// text.
pub(crate) const LEAST: usize = 4 * 1024;

/// The shared budget; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ByteBudget(Arc<Halves>);

#[derive(Debug)]
struct Halves {
    large: Half,
    short: Half,
}

#[derive(Debug)]
struct Half {
    free: Arc<Semaphore>,
    /// The total, in bytes.
    most: usize,
}

/// A part of the budget, reserved until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation(OwnedSemaphorePermit);

/// The bytes are not available now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the waiting messages use the whole byte budget")]
pub(crate) struct OverBudget;

/// Bytes and their reservation.
struct Held {
    bytes: Bytes,
    _reservation: Reservation,
}

impl ByteBudget {
    /// Creates a budget of `large` bytes for large messages and `short` bytes for short ones.
    #[must_use]
    pub(crate) fn new(large: usize, short: usize) -> Self {
        let half = |most| Half {
            free: Arc::new(Semaphore::new(most)),
            most,
        };
        Self(Arc::new(Halves {
            large: half(large),
            short: half(short),
        }))
    }

    /// Reserves the next `length` bytes of an incoming message of `total` bytes; waits until they are free.
    ///
    /// # Cancel safety
    /// A dropped future has reserved nothing.
    pub(crate) async fn reserve(&self, length: usize, total: usize) -> Reservation {
        let reservation = self
            .half(total)
            .free
            .clone()
            .acquire_many_owned(permits(length))
            .await;
        Reservation(reservation.expect("the semaphore is never closed"))
    }

    /// Reserves `length` bytes if they are free now.
    ///
    /// # Errors
    /// When they are not free.
    pub(crate) fn try_reserve(&self, length: usize) -> Result<Reservation, OverBudget> {
        let half = self.half(length);
        half.free
            .clone()
            .try_acquire_many_owned(permits(length))
            .map(Reservation)
            .map_err(|_| OverBudget)
    }

    /// Returns `bytes` with a reservation attached.
    ///
    /// # Errors
    /// When the bytes are not free now.
    pub(crate) fn hold(&self, bytes: Bytes) -> Result<Bytes, OverBudget> {
        let half = self.half(bytes.len());
        let is_first = half.free.available_permits() == half.most;
        let reservation = self.try_reserve(bytes.len())?;
        // Messages that arrived together share one buffer, so one of them may keep twice its size alive: copy it. The
        // only message in flight is not worth a copy.
        let bytes = if bytes.len() > SHORT && !is_first {
            Bytes::copy_from_slice(&bytes)
        } else {
            bytes
        };
        Ok(reservation.with(bytes))
    }

    /// Whether more than half of either budget is reserved.
    #[must_use]
    pub(crate) fn is_scarce(&self) -> bool {
        [&self.0.large, &self.0.short]
            .iter()
            .any(|half| half.free.available_permits() < half.most / 2)
    }

    fn half(&self, total: usize) -> &Half {
        if total > SHORT {
            &self.0.large
        } else {
            &self.0.short
        }
    }
}

/// Converts a length to permits. Lengths beyond `u32` are capped; no message is that long.
fn permits(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl Reservation {
    /// Merges another reservation of the same budget into this one.
    pub(crate) fn add(&mut self, other: Self) {
        self.0.merge(other.0);
    }

    /// Attaches the reservation to `bytes`; it is released when the last clone is dropped.
    #[must_use]
    pub(crate) fn with(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Held {
            bytes,
            _reservation: self,
        })
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: usize = SHORT + 1;

    fn bytes(length: usize) -> Bytes {
        vec![b'x'; length].into()
    }

    #[test]
    fn a_reservation_is_released_with_the_last_byte() {
        let budget = ByteBudget::new(LARGE, LEAST);
        let held = budget.hold(bytes(LARGE)).unwrap();
        assert_eq!(held.len(), LARGE);
        let part = held.slice(5..6);
        drop(held);
        assert_eq!(budget.hold(bytes(LARGE)), Err(OverBudget));
        assert!(budget.is_scarce());
        drop(part);
        assert!(budget.hold(bytes(LARGE)).is_ok() && !budget.is_scarce());
    }

    #[tokio::test]
    async fn short_messages_have_a_budget_of_their_own() {
        let budget = ByteBudget::new(LARGE, 2);
        let _large = budget.hold(bytes(LARGE)).unwrap();
        let _short = (budget.reserve(1, 1).await, budget.reserve(1, 1).await);
        assert_eq!(budget.hold(bytes(1)), Err(OverBudget));
    }

    #[tokio::test]
    async fn a_message_that_comes_in_pieces_waits_for_the_budget() {
        let budget = ByteBudget::new(3 * LARGE, 0);
        let mut reservation = budget.reserve(LARGE, 2 * LARGE).await;
        reservation.add(budget.reserve(LARGE, 2 * LARGE).await);
        let held = reservation.with(bytes(2 * LARGE));
        let mut later = std::pin::pin!(budget.reserve(2 * LARGE, 2 * LARGE));
        assert!(
            tokio::time::timeout(std::time::Duration::ZERO, later.as_mut())
                .await
                .is_err(),
            "it did not wait"
        );
        drop(held);
        later.await;
    }
}
