//! Metrics on their way to a collector, from time to time.
//!
//! An export that fails is not repeated: the next one has the same counters, and more.

use std::time::Duration;

use super::collector::{Sender, Sent};
use crate::config::MetricsExport;
use crate::shutdown::Tasks;

/// The last export of a run has this long to be taken.
const FAREWELL: Duration = Duration::from_millis(100);

/// Sends what `body` makes, an `ExportMetricsServiceRequest`, until the run ends, and once more then.
pub(crate) async fn export(
    options: MetricsExport,
    tasks: Tasks,
    body: impl Fn() -> String + Send + Sync + Clone + 'static,
) {
    let mut sender = Sender::default();
    let mut is_failing = false;
    loop {
        let is_last = tokio::time::timeout(options.interval, tasks.stopped())
            .await
            .is_ok();
        if is_last {
            // There is nowhere left to say that it was not taken.
            let _ = tokio::time::timeout(FAREWELL, sender.post(&options.collector, body())).await;
            return;
        }
        let make = body.clone();
        // Reading what the system says of the process may take a moment.
        let Ok(text) = tasks.spawn_blocking(make).await else {
            continue;
        };
        let sent = tokio::select! {
            sent = sender.post(&options.collector, text) => sent,
            () = tasks.stopped() => continue,
        };
        match sent {
            Sent::Taken => {
                if std::mem::take(&mut is_failing) {
                    tracing::info!("the collector of metrics is back");
                }
            }
            Sent::Later(reason, _) | Sent::Refused(reason) => {
                // Said once, not with every export.
                if !std::mem::replace(&mut is_failing, true) {
                    tracing::warn!(reason, "the collector does not take our metrics");
                }
            }
        }
    }
}
