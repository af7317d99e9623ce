//! Copies of the lines for other programs: on stdout, to syslog and to a collector of OpenTelemetry.
//!
//! The log is the files. A copy is queued after its line was written and sent by a task; no call waits for it. Copies that a
//! target does not take in time are dropped and counted.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex as Lock;
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::otlp;
use super::syslog::Connection;
use crate::config::{AuditCopies, Collector};
use crate::shutdown::Tasks;
use crate::telemetry::collector::{Sender, Sent};

/// The lines that wait for one target; more are dropped.
const QUEUE: usize = 4096;
/// The lines of one request.
const BATCH: usize = 256;
/// How long a line for a collector waits for others.
const DELAY: Duration = Duration::from_secs(1);
/// The attempts to send a batch that a target does not take for now.
const MOST_ATTEMPTS: u32 = 4;
/// The longest pause that a collector can request.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The time for the lines that are left at the end.
const FAREWELL: Duration = Duration::from_millis(150);

/// The targets of one log.
#[derive(Debug, Default)]
pub(super) struct Copies {
    targets: Vec<Arc<Target>>,
    /// Cancelled when no more lines come.
    end: CancellationToken,
}

/// One target, and the lines that wait for it.
#[derive(Debug)]
struct Target {
    name: &'static str,
    queue: mpsc::Sender<String>,
    waiting: Mutex<Waiting>,
    dropped: AtomicU64,
    tasks: Tasks,
}

#[derive(Debug)]
struct Waiting {
    lines: mpsc::Receiver<String>,
    batch: Vec<String>,
    sink: Sink,
    /// The target failed lately, and this was logged.
    is_failing: bool,
}

#[derive(Debug)]
enum Sink {
    /// Our own stdout, once it belongs to nothing else.
    Stdout(Arc<AtomicBool>),
    Syslog(Arc<Lock<Connection>>),
    Collector(Box<Collector>, Sender),
}

impl Copies {
    /// The targets of `options`; lines go to stdout only while `is_stdout_free`.
    #[must_use]
    pub(super) fn new(
        options: &AuditCopies,
        is_stdout_free: &Arc<AtomicBool>,
        tasks: &Tasks,
    ) -> Self {
        let stdout = options
            .stdout
            .then(|| ("stdout", Sink::Stdout(is_stdout_free.clone())));
        let syslog = options
            .syslog
            .clone()
            .map(|address| Arc::new(Lock::new(Connection::new(address))))
            .map(|connection| ("syslog", Sink::Syslog(connection)));
        let collector = options.otlp.clone().map(|collector| {
            let sink = Sink::Collector(Box::new(collector), Sender::default());
            ("the collector of logs", sink)
        });
        let targets = [stdout, syslog, collector].into_iter().flatten();
        Self {
            targets: targets
                .map(|(name, sink)| Target::new(name, sink, tasks.clone()))
                .collect(),
            end: tasks.stop().child_token(),
        }
    }

    /// Queues a line that was written.
    pub(super) fn send(&self, line: &str) {
        for target in &self.targets {
            if target.queue.try_send(line.to_owned()).is_err() {
                target.drop_lines(1);
            }
        }
    }

    /// Sends what is queued until the run ends; the rest is left to [`Copies::flush`].
    pub(super) fn start(&self) {
        for target in &self.targets {
            target.tasks.spawn(target.clone().run(self.end.clone()));
        }
    }

    /// Ends the tasks of the targets, and sends what is left.
    pub(super) async fn flush(&self) {
        self.end.cancel();
        for target in &self.targets {
            let mut waiting = target.waiting.lock().await;
            waiting.take_more(usize::MAX);
            let lines = std::mem::take(&mut waiting.batch);
            if lines.is_empty() {
                continue;
            }
            let sent =
                tokio::time::timeout(FAREWELL, waiting.sink.send(&lines, &target.tasks)).await;
            if !matches!(sent, Ok(Sent::Taken)) {
                target.drop_lines(lines.len());
            }
            let dropped = target.dropped.load(Ordering::Relaxed);
            if dropped > 0 {
                let name = target.name;
                tracing::warn!(dropped, "lines of the audit log did not reach {name}");
            }
        }
    }
}

impl Target {
    fn new(name: &'static str, sink: Sink, tasks: Tasks) -> Arc<Self> {
        let (queue, lines) = mpsc::channel(QUEUE);
        Arc::new(Self {
            name,
            queue,
            waiting: Mutex::new(Waiting {
                lines,
                batch: Vec::new(),
                sink,
                is_failing: false,
            }),
            dropped: AtomicU64::new(0),
            tasks,
        })
    }

    fn drop_lines(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    async fn run(self: Arc<Self>, end: CancellationToken) {
        let mut waiting = self.waiting.lock().await;
        loop {
            tokio::select! {
                () = waiting.gather() => {}
                () = end.cancelled() => return,
            }
            tokio::select! {
                () = self.deliver(&mut waiting) => waiting.batch.clear(),
                // The batch stays for the last attempt.
                () = end.cancelled() => return,
            }
        }
    }

    /// Sends the batch, with pauses where it is not taken for now.
    async fn deliver(&self, waiting: &mut Waiting) {
        let name = self.name;
        for attempt in 1..=MOST_ATTEMPTS {
            let Waiting { batch, sink, .. } = waiting;
            match sink.send(batch, &self.tasks).await {
                Sent::Taken => {
                    if std::mem::take(&mut waiting.is_failing) {
                        tracing::info!("{name} takes lines of the audit log again");
                    }
                    return;
                }
                Sent::Later(_, pause) if attempt < MOST_ATTEMPTS => {
                    let pause = pause.unwrap_or(Duration::from_secs(1) * 2_u32.pow(attempt - 1));
                    tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
                }
                Sent::Later(reason, _) | Sent::Refused(reason) => {
                    self.drop_lines(waiting.batch.len());
                    // Logged once, not with every batch.
                    if !std::mem::replace(&mut waiting.is_failing, true) {
                        tracing::warn!(
                            reason,
                            "{name} does not take copies of the audit log; the log itself is written"
                        );
                    }
                    return;
                }
            }
        }
    }
}

impl Waiting {
    /// Waits for a line, and for those that come soon after it.
    ///
    /// # Cancel safety
    /// The lines are kept.
    async fn gather(&mut self) {
        if self.batch.is_empty() {
            match self.lines.recv().await {
                Some(line) => self.batch.push(line),
                None => std::future::pending().await,
            }
        }
        if matches!(self.sink, Sink::Collector(..)) {
            tokio::time::sleep(DELAY).await;
        }
        self.take_more(BATCH);
    }

    fn take_more(&mut self, most: usize) {
        while self.batch.len() < most
            && let Ok(line) = self.lines.try_recv()
        {
            self.batch.push(line);
        }
    }
}

impl Sink {
    async fn send(&mut self, lines: &[String], tasks: &Tasks) -> Sent {
        let connection = match self {
            Self::Stdout(is_free) if is_free.load(Ordering::Relaxed) => None,
            Self::Stdout(_) => return Sent::Refused("it belongs to the protocol".to_owned()),
            Self::Syslog(connection) => Some(connection.clone()),
            Self::Collector(collector, sender) => {
                let body = otlp::request(&collector.resource, lines);
                return sender.post(collector, body).await;
            }
        };
        let lines = lines.to_vec();
        let write = move || match connection {
            None => print(&lines),
            Some(connection) => connection.lock().send(&lines),
        };
        match tasks.spawn_blocking(write).await {
            Ok(Ok(())) => Sent::Taken,
            Ok(Err(error)) => Sent::Later(error.to_string(), None),
            Err(error) => Sent::Refused(error.to_string()),
        }
    }
}

fn print(lines: &[String]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(lines.concat().as_bytes())?;
    stdout.flush()
}
