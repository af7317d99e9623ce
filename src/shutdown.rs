//! The tasks of a run, and the signals that end it.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::instrument::WithSubscriber as _;

/// A future that is made and polled by functions of their own. Inlined into the function that waits for it, each would have its stack
/// in every process, also in one that takes another way and then waits for hours.
#[inline(never)]
pub(crate) fn apart<'a, F: Future + 'a>(
    make: impl FnOnce() -> F,
) -> Pin<Box<dyn Future<Output = F::Output> + 'a>> {
    Box::pin(make())
}

/// Time limit for the tasks of a run that ends. Blocking work, such as a read from a disk that does not answer, cannot be
/// interrupted; the process ends without it.
const ENDING: Duration = Duration::from_secs(3);

/// Whether the blocking pool has a thread. The runtime keeps its threads, so that from then on work is queued for them when the system
/// starts no more.
static HAS_THREAD: AtomicBool = AtomicBool::new(false);

/// Whether signals are received, so that they no longer end the process.
static HANDLES_SIGNALS: AtomicBool = AtomicBool::new(false);

/// Receives the log lines of the tasks that run for it, in addition to the log of the process.
pub(crate) trait LogLines: Send + Sync {
    /// Whether it receives lines of this level.
    fn is_wanted(&self, level: tracing::Level) -> bool;

    /// Receives a line of this level. It must not log anything itself.
    fn line(&self, level: tracing::Level, line: &str);

    /// Sets the level of the configuration.
    fn configure(&self, level: Option<tracing::level_filters::LevelFilter>);

    /// The log that the tasks have instead of that of the process.
    fn dispatch(&self) -> Option<tracing::Dispatch> {
        None
    }

    /// State that its implementation keeps for the log of the tasks.
    fn state(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}

tokio::task_local! {
    static LOG_LINES: Arc<dyn LogLines>;
}

/// The receiver of the log lines of the current task.
pub(crate) fn log_lines() -> Option<Arc<dyn LogLines>> {
    LOG_LINES.try_with(Clone::clone).ok()
}

/// Calls `read` with what the receiver of the current task's log lines keeps for it.
pub(crate) fn with_log_state<S: 'static, T>(read: impl FnOnce(Option<&S>) -> T) -> T {
    let lines = log_lines();
    let state = lines.as_deref().and_then(LogLines::state);
    read(state.and_then(|state| state.downcast_ref()))
}

/// Runs `work` with a receiver for its log lines, and those of all tasks that it starts.
pub(crate) fn with_log_lines<F: Future>(
    lines: Arc<dyn LogLines>,
    work: F,
) -> impl Future<Output = F::Output> {
    LOG_LINES.scope(lines, work)
}

/// Like [`with_log_lines`], for work that does not wait.
pub(crate) fn with_log_lines_now<T>(lines: Arc<dyn LogLines>, work: impl FnOnce() -> T) -> T {
    let dispatch = lines.dispatch();
    for_log_lines(lines, || match dispatch {
        Some(dispatch) => tracing::dispatcher::with_default(&dispatch, work),
        None => work(),
    })
}

/// Runs `work` with this receiver, but with the current log.
pub(crate) fn for_log_lines<T>(lines: Arc<dyn LogLines>, work: impl FnOnce() -> T) -> T {
    LOG_LINES.sync_scope(lines, work)
}

/// The tasks of one run. Every task is spawned here, so that the end of the run can wait for all of them.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Creates an empty set of tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a task of this run. Its log lines have the same receiver as those of the current task.
    pub fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match log_lines() {
            Some(lines) => match lines.dispatch() {
                Some(dispatch) => {
                    let task = LOG_LINES.scope(lines, task);
                    self.tracker.spawn(task.with_subscriber(dispatch))
                }
                None => self.tracker.spawn(LOG_LINES.scope(lines, task)),
            },
            None => self.tracker.spawn(task),
        }
    }

    /// Runs blocking or computing work on the blocking pool, or as a task if the system starts no thread.
    pub fn spawn_blocking<F, T>(&self, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if !HAS_THREAD.load(Ordering::Relaxed) && !can_start_thread() {
            tracing::warn!("the system starts no thread, so work blocks this one");
            return self.spawn(async move { work() });
        }
        let lines = log_lines();
        self.tracker.spawn_blocking(move || {
            HAS_THREAD.store(true, Ordering::Relaxed);
            match lines {
                Some(lines) => with_log_lines_now(lines, work),
                None => work(),
            }
        })
    }

    /// The token that is cancelled when the run must end.
    #[must_use]
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Resolves when the run must end.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Ends all tasks and waits for them, at most [`ENDING`].
    pub async fn finish(&self) {
        self.stop.cancel();
        self.tracker.close();
        if tokio::time::timeout(ENDING, self.tracker.wait())
            .await
            .is_err()
        {
            let tasks = self.tracker.len();
            tracing::warn!(tasks, "work that does not end is left behind");
        }
    }
}

/// Starts a thread for work that does not suit the blocking pool: it has its own priority, is needed before the runtime
/// exists, or may block without limit. The run ends without waiting for the thread, so the thread must own nothing that
/// has to be finished.
///
/// # Errors
/// When the system cannot start a thread.
pub(crate) fn spawn_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<T>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
}

/// Whether the system starts threads now. The runtime panics if the first thread of its pool cannot be started.
fn can_start_thread() -> bool {
    spawn_thread("probe", || ()).is_ok_and(|thread| thread.join().is_ok())
}

/// Resolves when the system asks the process to end: SIGINT, SIGTERM or SIGHUP; on Windows Ctrl-C, Ctrl-Break, or the
/// end of the console, the user's session or the system. From the call on, these no longer end the process.
///
/// # Errors
/// When the signals cannot be received.
pub(crate) fn signal() -> impl Future<Output = std::io::Result<()>> {
    HANDLES_SIGNALS.store(true, Ordering::Relaxed);
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (interrupt, terminate, hangup) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
            signal(SignalKind::hangup()),
        );
        async {
            let (mut interrupt, mut terminate, mut hangup) = (interrupt?, terminate?, hangup?);
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
            Ok(())
        }
    }
    #[cfg(windows)]
    {
        use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown};
        let (interrupt, terminate, close) = (ctrl_c(), ctrl_break(), ctrl_close());
        let (logoff, shutdown) = (ctrl_logoff(), ctrl_shutdown());
        async {
            let (mut interrupt, mut terminate, mut close) = (interrupt?, terminate?, close?);
            let (mut logoff, mut shutdown) = (logoff?, shutdown?);
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = close.recv() => {}
                _ = logoff.recv() => {}
                _ = shutdown.recv() => {}
            }
            Ok(())
        }
    }
}

/// Calls `ask`, which waits for a person at the terminal, and ends the process by `end` if a signal comes first that would be
/// lost otherwise.
pub(crate) fn interruptible<T>(ask: impl FnOnce() -> T, end: fn() -> !) -> T {
    if !HANDLES_SIGNALS.load(Ordering::Relaxed) {
        return ask();
    }
    let (answered, answer) = tokio::sync::oneshot::channel::<()>();
    // The caller's runtime receives no signal while its thread waits for the person.
    let watch = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let is_interrupted = |runtime: tokio::runtime::Runtime| {
            runtime.block_on(async {
                tokio::select! {
                    _ = answer => false,
                    signal = signal() => signal.is_ok(),
                }
            })
        };
        if runtime.is_ok_and(is_interrupted) {
            end()
        }
    };
    // Without a thread or a runtime the question is asked all the same, and the next line answers it.
    let _ = spawn_thread("signal", watch);
    let asked = ask();
    drop(answered);
    asked
}
