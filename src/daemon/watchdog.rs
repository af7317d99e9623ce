//! Ends a daemon whose only thread is stuck, so that its sessions continue in a new one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::shutdown::{Tasks, spawn_thread};

/// The interval between two checks, and the number of checks that may find no progress. The time is counted in checks,
/// so that a suspended machine does not trigger it.
const LOOK: Duration = Duration::from_millis(500);
const LOOKS: u32 = 18;

/// Runs `stuck` on a separate thread if no task has run for about nine seconds.
///
/// # Errors
/// When the system cannot start a thread.
pub(super) fn start(tasks: &Tasks, stuck: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    watch(tasks, LOOK, LOOKS, stuck)
}

fn watch(
    tasks: &Tasks,
    look: Duration,
    looks: u32,
    stuck: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    let steps = Arc::new(AtomicU64::new(0));
    let stop = tasks.stop().clone();
    let counted = steps.clone();
    tasks.spawn(tasks.stop().clone().run_until_cancelled_owned(async move {
        loop {
            tokio::time::sleep(look).await;
            counted.fetch_add(1, Ordering::Relaxed);
        }
    }));
    spawn_thread("watchdog", move || {
        let (mut known, mut idle) = (0, 0);
        while !stop.is_cancelled() {
            std::thread::sleep(look);
            let now = steps.load(Ordering::Relaxed);
            idle = if now == known { idle + 1 } else { 0 };
            known = now;
            if idle >= looks {
                return stuck();
            }
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(20);

    #[tokio::test]
    async fn a_thread_that_is_stuck_is_noticed_and_one_that_waits_is_not() {
        let tasks = Tasks::new();
        let (noticed, seen) = std::sync::mpsc::channel();
        watch(&tasks, SHORT, 5, move || noticed.send(()).unwrap()).unwrap();
        tokio::time::sleep(20 * SHORT).await;
        assert!(
            seen.try_recv().is_err(),
            "a loop that waits was taken for a stuck one"
        );
        // Blocks the thread like an endless loop, so that no other task runs.
        seen.recv_timeout(Duration::from_secs(10)).unwrap();
        tasks.finish().await;
    }
}
