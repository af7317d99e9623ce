//! Notices that files of a source have changed.

use std::sync::Arc;
use std::time::Duration;

use crate::upstream::UpstreamContext;

/// The interval at which files are looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Calls `changed` each time that `state` has another value than before, until the source or the program ends.
pub(super) fn watch<S: Send + Sync + 'static, V: PartialEq + Send + 'static>(
    source: &Arc<S>,
    state: fn(&S) -> V,
    changed: Box<dyn Fn() + Send + Sync>,
    context: &UpstreamContext,
) {
    let (source, tasks) = (Arc::downgrade(source), context.tasks.clone());
    let stop = tasks.stop().clone();
    let watching = async move {
        let mut last = None;
        while let Some(source) = source.upgrade() {
            let Ok(now) = tasks.spawn_blocking(move || state(&source)).await else {
                break;
            };
            if last.as_ref().is_some_and(|last| *last != now) {
                changed();
            }
            last = Some(now);
            tokio::time::sleep(LOOK).await;
        }
    };
    context.tasks.spawn(async move {
        tokio::select! {
            () = watching => {}
            () = stop.cancelled() => {}
        }
    });
}
