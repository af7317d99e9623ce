//! The daemon as the window shows it, and the decisions that a person makes there.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Daemon, message};
use crate::app::{App, SessionId};
use crate::config::{Config, SessionEnv};
use crate::daemon::control::{self, Daemon as _, Ordered};
use crate::events::Events;
use crate::keyring::Store;
use crate::text::chain;
use crate::ui::{Decision, Host, Opening, WindowLink, decide};

/// How long the daemon waits before it follows an order to end, so that the page gets its answer.
const ANSWERING: Duration = Duration::from_millis(200);

impl Daemon {
    /// Opens the window. The audit log and the idle time are those of the configuration, as for a session.
    pub(super) fn opened_window(&self, opening: Opening) -> io::Result<WindowLink> {
        let env = self.env(&opening);
        if let Ok(config) = Config::load(&self.paths, &env.environment) {
            *self.idle.lock() = config.daemon.idle;
            self.records.configure("window", &config);
        }
        *self.last_used.lock() = Instant::now();
        self.window.open(opening)
    }

    /// The directory and the variables of the process that opened the window.
    fn env(&self, opening: &Opening) -> SessionEnv {
        let environment = message::environment(&opening.variables);
        SessionEnv {
            directory: Some(opening.directory.clone()),
            environment: Store::around(&self.paths, environment),
            open_files: None,
        }
    }

    async fn decided(&self, opening: &Opening, decision: &Decision) -> Result<Value, String> {
        let (paths, env) = (self.paths.clone(), self.env(opening));
        let id = SessionId::random();
        let app = App::for_command(paths, env, None, id, &self.shared.app);
        let app = app.map_err(|error| chain(&error))?;
        let outcome = decide(app.proxy(), decision).await;
        app.finish().await;
        outcome
    }
}

impl Host for Daemon {
    fn answer(
        &self,
        process: u32,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<String, (i32, String)> {
        let process = i32::try_from(process).ok();
        let (outcome, order) = control::answer(self, process, method, params);
        if let (Some(order), Some(daemon)) = (order, self.this.upgrade()) {
            self.tasks.spawn(async move {
                tokio::time::sleep(ANSWERING).await;
                daemon.order(order);
            });
        }
        outcome
    }

    fn events(&self) -> Arc<Events> {
        self.events.clone()
    }

    fn decide<'a>(
        &'a self,
        opening: &'a Opening,
        decision: &'a Decision,
    ) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(self.decided(opening, decision))
    }

    fn record(&self, process: u32, action: &str, server: Option<&str>) {
        control::Daemon::record(
            self,
            Ordered {
                order: format!("ui.{action}"),
                server: server.map(str::to_owned),
                session: None,
                process: i32::try_from(process).ok(),
            },
        );
    }

    fn stay(&self) -> Box<dyn Send> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        Box::new(Stay(self.this.upgrade()))
    }
}

/// Keeps the daemon alive until it is dropped.
struct Stay(Option<Arc<Daemon>>);

impl Drop for Stay {
    fn drop(&mut self) {
        if let Some(daemon) = &self.0 {
            *daemon.last_used.lock() = Instant::now();
            daemon.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
