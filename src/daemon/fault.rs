//! Faults of a session that tests ask for. Programs without debug assertions have none.

use std::time::Duration;

use super::message::Session;
#[cfg(target_os = "linux")]
use crate::config::Environment;

/// A session with this variable, `panic:FILE` or `loop:FILE`, has the fault when the file appears. With `relay`, its process
/// cannot pass descriptors.
const VARIABLE: &str = "MCPZIP_TEST_FAULT";

const LOOK: Duration = Duration::from_millis(10);

/// Adds the session's fault to `serving`.
pub(super) async fn with_fault<T>(session: &Session, serving: impl Future<Output = T>) -> T {
    let fault = session.variables.get(VARIABLE);
    let Some((kind, file)) = fault.and_then(|fault| fault.split_once(':')) else {
        return serving.await;
    };
    tokio::select! {
        outcome = serving => outcome,
        never = fail(kind, file) => never,
    }
}

/// Whether the process of a session behaves as if the system refused to pass descriptors.
#[cfg(target_os = "linux")]
pub(super) fn refuses_descriptors(environment: &Environment) -> bool {
    environment.get(VARIABLE) == Some("relay")
}

async fn fail(kind: &str, file: &str) -> ! {
    // The file is removed, so that the fault happens once.
    while std::fs::remove_file(file).is_err() {
        tokio::time::sleep(LOOK).await;
    }
    assert_ne!(kind, "panic", "a test asked for this");
    loop {
        std::hint::spin_loop();
    }
}
