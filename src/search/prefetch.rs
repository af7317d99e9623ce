//! Prefetches the inputs of a run's first search while the index is still being opened.

use std::thread::JoinHandle;

use parking_lot::Mutex;

use crate::shutdown::spawn_thread;

/// A value that is computed on its own thread and taken once.
pub(super) struct Prefetch<T>(Mutex<Option<JoinHandle<T>>>);

impl<T> Default for Prefetch<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Send + 'static> Prefetch<T> {
    /// Starts the computation, in place of one started before. Without a thread, [`Prefetch::take`] returns `None`.
    pub(super) fn start(&self, make: impl FnOnce() -> T + Send + 'static) {
        let running = spawn_thread("prefetch", make);
        *self.0.lock() = running.ok();
    }

    /// Drops the value, or detaches the thread that computes it.
    pub(super) fn clear(&self) {
        *self.0.lock() = None;
    }

    /// Waits for the value and returns it. `None` if none was started, or its thread panicked.
    pub(super) fn take(&self) -> Option<T> {
        let running = self.0.lock().take();
        running.and_then(|running| running.join().ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_is_taken_once() {
        let prefetch = Prefetch::default();
        assert_eq!(prefetch.take(), None);
        prefetch.start(|| 1);
        prefetch.start(|| 2);
        assert_eq!(prefetch.take(), Some(2));
        assert_eq!(prefetch.take(), None);
        prefetch.start(|| 3);
        prefetch.clear();
        assert_eq!(prefetch.take(), None);
        prefetch.start(|| panic!("as a damaged model might"));
        assert_eq!(prefetch.take(), None);
    }
}
