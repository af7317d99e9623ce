//! The work of a run on the store that replicas share: it sends the audit log there, and says when the store does not answer.

use std::sync::Arc;
use std::time::Duration;

use super::App;
use super::caching::{SharedVectors, share_caches};
use crate::audit::{self, Outcome, Shipping};
use crate::proxy::{ProcessMetric, ProcessMetrics, Proxy};
use crate::shutdown::Tasks;
use crate::store::{Kind, Records};

/// The time between two looks at the state of the store.
const LOOK: Duration = Duration::from_secs(1);

impl App {
    /// Sends the audit log to the store, if there is one, follows its state, and shows figures of it.
    pub(super) fn use_store(&self) {
        let (Some(store), Some(shipping)) =
            (self.session.environment.store(), self.proxy.shipping())
        else {
            return;
        };
        let directories = audit::Directories::below(&self.paths.state_dir);
        let tasks = self.tasks.clone();
        self.tasks
            .spawn(audit::ship(directories, shipping.clone(), tasks));
        let cache = self.paths.cache_dir.clone();
        self.proxy.inventory.share_vectors(Arc::new(SharedVectors {
            directory: cache.clone(),
            store: store.clone(),
        }));
        let share = share_caches(cache, store.clone(), self.tasks.clone());
        self.tasks.spawn(share);
        let follow = follow(store.clone(), self.proxy.clone(), self.tasks.clone());
        self.tasks.spawn(follow);
        let figures: Arc<dyn ProcessMetrics> = Arc::new(StoreFigures {
            store: store.clone(),
            shipping: shipping.clone(),
        });
        self.proxy.metrics.extend(Arc::downgrade(&figures));
        // For as long as the run.
        let tasks = self.tasks.clone();
        self.tasks.spawn(async move {
            tasks.stopped().await;
            drop(figures);
        });
    }
}

/// Writes to the audit log when the store was updated, does not answer, or answers again.
async fn follow(store: Arc<dyn Records>, proxy: Arc<Proxy>, tasks: Tasks) {
    if let Some((before, after)) = store.migrated() {
        let detail = format!("the store was updated from schema {before} to {after}");
        proxy.note_store(Outcome::Ok, &detail);
    }
    let first = store.clone();
    // Later readers find it in memory. A failure is noticed below.
    drop(tasks.spawn_blocking(move || first.all(Kind::Approvals)));
    let mut is_down = false;
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = tasks.stopped() => return,
        }
        let log = proxy.shipping().and_then(|shipping| shipping.fault());
        let fault = match (store.fault(), log) {
            (Some(fault), _) => Some(format!("the store does not answer: {fault}")),
            (None, log) => log
                .map(|fault| format!("the store does not accept lines of the audit log: {fault}")),
        };
        match (fault, is_down) {
            (Some(detail), false) => {
                proxy.note_store(Outcome::Failed, &detail);
                is_down = true;
            }
            (None, true) => {
                proxy.note_store(Outcome::Ok, "the store answers again");
                is_down = false;
            }
            _ => {}
        }
    }
}

/// The figures of the store.
#[derive(Debug)]
struct StoreFigures {
    store: Arc<dyn Records>,
    shipping: Arc<Shipping>,
}

impl ProcessMetrics for StoreFigures {
    fn all(&self) -> Vec<ProcessMetric> {
        vec![
            ProcessMetric {
                name: "mcpzip_store_available",
                help: "Whether the store that replicas share answers: 1 or 0.",
                is_counter: false,
                value: u64::from(self.store.fault().is_none()),
            },
            ProcessMetric {
                name: "mcpzip_store_audit_lines_total",
                help: "Lines of audit logs that the store has taken.",
                is_counter: true,
                value: self.shipping.lines(),
            },
            ProcessMetric {
                name: "mcpzip_store_audit_failures_total",
                help: "Attempts to send lines of audit logs to the store that failed.",
                is_counter: true,
                value: self.shipping.failures(),
            },
        ]
    }
}
