//! How many bytes the messages of many peers may take together.
//!
//! A message's reservation is released with its last byte, wherever that is dropped: the reservation is a part of the bytes
//! themselves. Short messages have a budget of their own, so that large ones that are not read leave them theirs.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Messages up to this size are short ones, in bytes.
pub(crate) const SHORT: usize = 64 * 1024;

/// What a message takes at least that is to be worked on: that needs more than its bytes.
pub(crate) const LEAST: usize = 4 * 1024;

/// A total that is shared; cheap to clone.
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
    /// What there is in all, in bytes.
    most: usize,
}

/// A part of the budget, reserved until it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation(OwnedSemaphorePermit);

/// The bytes are not free now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the messages that wait take the whole budget")]
pub(crate) struct OverBudget;

/// Bytes and their reservation.
struct Held {
    bytes: Bytes,
    _reservation: Reservation,
}

impl ByteBudget {
    /// A budget of so many bytes of large messages, and of short ones.
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

    /// A reservation for the next `length` bytes of a message of `total` bytes that comes in, as soon as they are free.
    ///
    /// # Cancel safety
    /// A dropped future has taken nothing.
    pub(crate) async fn take(&self, length: usize, total: usize) -> Reservation {
        let reservation = self
            .half(total)
            .free
            .clone()
            .acquire_many_owned(permits(length))
            .await;
        Reservation(reservation.expect("the semaphore is never closed"))
    }

    /// `length` bytes now.
    ///
    /// # Errors
    /// When they are not free.
    pub(crate) fn try_take(&self, length: usize) -> Result<Reservation, OverBudget> {
        let half = self.half(length);
        half.free
            .clone()
            .try_acquire_many_owned(permits(length))
            .map(Reservation)
            .map_err(|_| OverBudget)
    }

    /// `bytes` with a reservation of their own.
    ///
    /// # Errors
    /// When there is none now.
    pub(crate) fn hold(&self, bytes: Bytes) -> Result<Bytes, OverBudget> {
        let half = self.half(bytes.len());
        let is_first = half.free.available_permits() == half.most;
        let reservation = self.try_take(bytes.len())?;
        // What came in a row with others shares its memory with them, which is as much again. One by itself is not worth a copy.
        let bytes = if bytes.len() > SHORT && !is_first {
            Bytes::copy_from_slice(&bytes)
        } else {
            bytes
        };
        Ok(reservation.with(bytes))
    }

    /// Whether more than half of it is taken, by large messages or by short ones.
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

/// No message has so many bytes that they could not be counted.
fn permits(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

impl Reservation {
    /// Adds another reservation of the same kind.
    pub(crate) fn add(&mut self, other: Self) {
        self.0.merge(other.0);
    }

    /// `bytes`, which release the reservation when the last of them is dropped.
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
        let _short = (budget.take(1, 1).await, budget.take(1, 1).await);
        assert_eq!(budget.hold(bytes(1)), Err(OverBudget));
    }

    #[tokio::test]
    async fn a_message_that_comes_in_pieces_waits_for_the_budget() {
        let budget = ByteBudget::new(3 * LARGE, 0);
        let mut reservation = budget.take(LARGE, 2 * LARGE).await;
        reservation.add(budget.take(LARGE, 2 * LARGE).await);
        let held = reservation.with(bytes(2 * LARGE));
        let mut later = std::pin::pin!(budget.take(2 * LARGE, 2 * LARGE));
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
