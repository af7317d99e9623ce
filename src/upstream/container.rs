//! The container of a server. Its process is a child of the engine, not of mcpzip, so it is ended by its name.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;

use super::UpstreamContext;
use super::guard::Guard;
use crate::config::env::Environment;
use crate::sandbox::{Container, of_engine};

/// The time limit of removing a container; the engine goes on without us.
const LIMIT: Duration = Duration::from_secs(2);

/// A running container. The guard removes it if mcpzip is killed; dropping this removes it in the background.
#[derive(Debug)]
pub(super) struct RunningContainer {
    container: Option<Container>,
    session: Environment,
    guard: Arc<Guard>,
}

impl RunningContainer {
    pub(super) fn new(container: Container, context: &UpstreamContext) -> Self {
        context.guard.watch_container(&container);
        Self {
            container: Some(container),
            session: context.variables.clone(),
            guard: context.guard.clone(),
        }
    }

    /// Removes the container.
    pub(super) async fn end(mut self) {
        let name = self.container.as_ref().map(|one| one.name.clone());
        match self.removal().map(|mut removal| removal.spawn()) {
            Some(Ok(mut child)) => {
                // A container that has ended already is a failure of the engine, and the aim.
                let _ = tokio::time::timeout(LIMIT, child.wait()).await;
            }
            Some(Err(error)) => {
                tracing::warn!(container = name, %error, "the container may still run: its engine does not start");
            }
            None => {}
        }
    }

    /// The command that removes it, once.
    fn removal(&mut self) -> Option<Command> {
        let container = self.container.take()?;
        self.guard.release_container(&container);
        let mut command = Command::new(&container.engine);
        command
            .args(["rm", "--force", &container.name])
            .env_clear()
            .envs(of_engine(&self.session))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Some(command)
    }
}

impl Drop for RunningContainer {
    fn drop(&mut self) {
        // Without an engine there is no container.
        let _ = self.removal().map(|mut removal| removal.spawn());
    }
}
