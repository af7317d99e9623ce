//! `max_concurrent`: how many calls a server gets side by side, and how many may wait for that.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

use super::CallError;
use crate::tool::ServerName;

/// Calls that may wait, per place.
const QUEUE_PER_PLACE: usize = 16;

/// The places of one server, and the queue for them.
#[derive(Debug)]
pub(super) struct Places {
    semaphore: Semaphore,
    total: usize,
    waiting: AtomicUsize,
}

impl Places {
    pub(super) fn new(total: usize) -> Self {
        Self {
            semaphore: Semaphore::new(total),
            total,
            waiting: AtomicUsize::new(0),
        }
    }

    /// Takes a place, when there is one.
    ///
    /// # Errors
    /// When too many wait already.
    pub(super) async fn take(&self, server: &ServerName) -> Result<SemaphorePermit<'_>, CallError> {
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

/// A place in the queue.
struct Queued<'a>(&'a Places);

impl<'a> Queued<'a> {
    fn behind(places: &'a Places, server: &ServerName) -> Result<Self, CallError> {
        let waiting = places.waiting.fetch_add(1, Ordering::Relaxed);
        let queued = Self(places);
        if waiting >= places.total * QUEUE_PER_PLACE {
            return Err(CallError::Busy {
                server: server.clone(),
                running: places.total,
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
