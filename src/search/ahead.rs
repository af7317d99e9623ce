//! What the first search of a run will need, made while it still waits for the index.

use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::shutdown::spawn_thread;

/// Something that a thread of its own makes, until somebody takes it.
pub(super) struct Ahead<T>(Mutex<Option<JoinHandle<T>>>);

impl<T> Default for Ahead<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Send + 'static> Ahead<T> {
    /// Begins to make it. Where there can be no thread, there will be nothing to take.
    pub(super) fn start(&self, make: impl FnOnce() -> T + Send + 'static) {
        let running = spawn_thread("prefetch", make);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = running.ok();
    }

    /// Lets go what was begun.
    pub(super) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Waits for what was begun and gives it away; `None` where nothing was, or where it panicked.
    pub(super) fn take(&self) -> Option<T> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        running.and_then(|running| running.join().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_is_taken_once() {
        let ahead = Ahead::default();
        assert_eq!(ahead.take(), None);
        ahead.start(|| 1);
        ahead.start(|| 2);
        assert_eq!(ahead.take(), Some(2));
        assert_eq!(ahead.take(), None);
        ahead.start(|| 3);
        ahead.clear();
        assert_eq!(ahead.take(), None);
        ahead.start(|| panic!("as a damaged model might"));
        assert_eq!(ahead.take(), None);
    }
}
