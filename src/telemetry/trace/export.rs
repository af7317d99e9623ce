//! Sends spans to the collector, in a background task.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;

use super::super::collector::{Sender, Sent};
use super::{Record, Tracer, otlp};
use crate::shutdown::Tasks;

/// The number of attempts to send a batch that the collector rejects for now.
const MOST_ATTEMPTS: u32 = 4;

/// The longest pause that a collector can request.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The time limit for sending the batch that is in flight at shutdown.
const HURRY: Duration = Duration::from_millis(100);

/// The spans that have not been sent.
#[derive(Debug)]
pub(super) struct Waiting {
    spans: mpsc::Receiver<Record>,
    batch: Vec<Record>,
    sender: Sender,
    /// The collector failed lately, and this was logged.
    is_failing: bool,
}

impl Waiting {
    pub(super) fn new(spans: mpsc::Receiver<Record>) -> Self {
        Self {
            spans,
            batch: Vec::new(),
            sender: Sender::default(),
            is_failing: false,
        }
    }
}

impl Tracer {
    /// Sends spans until shutdown.
    pub(super) async fn export(self: Arc<Self>, tasks: Tasks) {
        let mut waiting = self.waiting.lock().await;
        loop {
            tokio::select! {
                () = self.gather(&mut waiting) => {}
                () = tasks.stopped() => return,
            }
            let batch = std::mem::take(&mut waiting.batch);
            let count = batch.len();
            let hurry = async {
                tasks.stopped().await;
                tokio::time::sleep(HURRY).await;
            };
            tokio::select! {
                () = self.send(&mut waiting, batch, &tasks) => {}
                () = hurry => {
                    self.drop_spans(count);
                    waiting.is_failing = true;
                    return;
                }
            }
        }
    }

    /// Sends the remaining spans after all tasks have ended, within `limit`.
    pub(crate) async fn flush(&self, limit: Duration) {
        let mut waiting = self.waiting.lock().await;
        while let Ok(span) = waiting.spans.try_recv() {
            waiting.batch.push(span);
        }
        let batch = std::mem::take(&mut waiting.batch);
        let count = batch.len();
        if count == 0 {
            return;
        }
        if waiting.is_failing {
            return self.drop_spans(count);
        }
        let sent = async {
            let body = otlp::request(&self.options.collector.resource, &batch);
            self.post(&mut waiting, body).await
        };
        match tokio::time::timeout(limit, sent).await {
            Ok(Sent::Taken) => _ = self.exported.fetch_add(count as u64, Ordering::Relaxed),
            _ => {
                self.drop_spans(count);
                tracing::debug!(count, "the last spans were not taken");
            }
        }
    }

    /// Waits for one span, then collects others for a while or until there are enough.
    ///
    /// # Cancel safety
    /// Collected spans are kept.
    async fn gather(&self, waiting: &mut Waiting) {
        if waiting.batch.is_empty() {
            match waiting.spans.recv().await {
                Some(span) => waiting.batch.push(span),
                // The channel cannot close while its receiver is here.
                None => std::future::pending().await,
            }
        }
        let more = async {
            while waiting.batch.len() < self.options.batch {
                let Some(span) = waiting.spans.recv().await else {
                    return;
                };
                waiting.batch.push(span);
            }
        };
        // The delay is over, or the batch is full.
        let _ = tokio::time::timeout(self.options.delay, more).await;
    }

    async fn send(&self, waiting: &mut Waiting, batch: Vec<Record>, tasks: &Tasks) {
        let count = batch.len();
        let resource = self.options.collector.resource.clone();
        // On a blocking thread, where it delays no message.
        let body = tasks
            .spawn_blocking(move || otlp::request(&resource, &batch))
            .await;
        let body = body.expect("writing to memory does not panic");
        for attempt in 1..=MOST_ATTEMPTS {
            match self.post(waiting, body.clone()).await {
                Sent::Taken => {
                    self.exported.fetch_add(count as u64, Ordering::Relaxed);
                    if std::mem::take(&mut waiting.is_failing) {
                        tracing::info!("the collector of traces is back");
                    }
                    return;
                }
                Sent::Later(_, pause) if attempt < MOST_ATTEMPTS => {
                    let pause = pause.unwrap_or(Duration::from_secs(1) * 2_u32.pow(attempt - 1));
                    tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
                }
                Sent::Later(reason, _) | Sent::Refused(reason) => {
                    self.drop_spans(count);
                    // Logged once, not with every batch.
                    if !std::mem::replace(&mut waiting.is_failing, true) {
                        tracing::warn!(
                            reason,
                            "the collector does not take our traces; calls go on as ever"
                        );
                    }
                    return;
                }
            }
        }
    }

    async fn post(&self, waiting: &mut Waiting, body: String) -> Sent {
        waiting.sender.post(&self.options.collector, body).await
    }
}
