//! The limit `max_concurrent`: permits for parallel calls of one server, and a bounded queue of calls that wait.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::CallError;
use crate::tool::ServerName;

/// The number of calls that may wait, per permit.
const QUEUE_PER_PERMIT: usize = 16;

/// The permits of one server, and the queue for them.
#[derive(Debug)]
pub(super) struct ConcurrencyLimit {
    semaphore: Semaphore,
    total: usize,
    waiting: AtomicUsize,
}

impl ConcurrencyLimit {
    pub(super) fn new(total: usize) -> Self {
        Self {
            semaphore: Semaphore::new(total),
            total,
            waiting: AtomicUsize::new(0),
        }
    }

    /// Takes a permit; waits in the queue until one is free.
    ///
    /// # Errors
    /// [`CallError::Busy`] if the queue is full.
    pub(super) async fn acquire(
        &self,
        server: &ServerName,
    ) -> Result<SemaphorePermit<'_>, CallError> {
        if let Ok(permit) = self.semaphore.try_acquire() {
            return Ok(permit);
        }
        let _queued = Queued::behind(self, server)?;
        Ok(self
            .semaphore
            .acquire()
            .await
            .expect("the semaphore is never closed"))
    }
}

/// A position in the queue, released on drop.
struct Queued<'a>(&'a ConcurrencyLimit);

impl<'a> Queued<'a> {
    fn behind(limit: &'a ConcurrencyLimit, server: &ServerName) -> Result<Self, CallError> {
        let waiting = limit.waiting.fetch_add(1, Ordering::Relaxed);
        let queued = Self(limit);
        if waiting >= limit.total * QUEUE_PER_PERMIT {
            return Err(CallError::Busy {
                server: server.clone(),
                running: limit.total,
                waiting,
            });
        }
        Ok(queued)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
