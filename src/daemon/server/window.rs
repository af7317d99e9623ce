//! The daemon as the window shows it, and the decisions that a person makes there.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Daemon, message};
use crate::app::{App, SessionId};
use crate::catalog::Pending;
use crate::config::{Config, SessionEnv};
use crate::daemon::control::{self, Daemon as _, Ordered};
use crate::events::Events;
use crate::keyring::Store;
use crate::text::chain;
use crate::tool::ServerName;
use crate::ui::{Decision, Host, Opening, WindowLink};

/// How long the daemon waits before it follows an order to end, so that the page gets its answer.
const ANSWERING: Duration = Duration::from_millis(200);

/// Time limit for listing a server that was not listed before.
const LIST_LIMIT: Duration = Duration::from_secs(30);

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
        let outcome = decide(&app, decision).await;
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

/// Decides on the differences of a server, if they are still those that the person saw.
async fn decide(app: &App, decision: &Decision) -> Result<Value, String> {
    let proxy = app.proxy();
    let inventory = &proxy.inventory;
    inventory.loaded().await;
    let config = proxy.unscoped().config();
    let server = ServerName::new(&decision.server).ok();
    let server = server.filter(|server| config.servers.contains_key(server));
    let server = server.ok_or_else(|| format!("there is no server `{}`", decision.server))?;
    let failed = |error: io::Error| format!("the decision cannot be kept: {error}");
    let changed =
        || "the differences are not those that were shown any more: look at them again".to_owned();
    if inventory.is_unstarted(&server) {
        if !decision.is_approval {
            return Err("it is not started before it is approved; remove it instead".to_owned());
        }
        let now = config
            .servers
            .get(&server)
            .map(|entry| entry.hash.to_string());
        if now.as_ref() != Some(&decision.digest) {
            return Err(changed());
        }
        inventory.approve_start(&server).map_err(failed)?;
        return Ok(json!({ "server": server.as_str(), "decided": [server.as_str()] }));
    }
    let mut pending = inventory.pending(&server);
    if pending.is_quarantined && pending.tools.is_empty() {
        inventory.list(Some(&server), LIST_LIMIT).await;
        pending = inventory.pending(&server);
    }
    if pending.digest() != decision.digest {
        return Err(changed());
    }
    select(&mut pending, decision);
    let decided = inventory.decide(&server, &pending, decision.is_approval);
    let decided = decided.map_err(failed)?;
    Ok(json!({ "server": server.as_str(), "decided": decided }))
}

/// Keeps the differences that are meant. Those that were rejected before are shown to agents only if they are named.
fn select(pending: &mut Pending, decision: &Decision) {
    let Decision {
        is_approval, tools, ..
    } = decision;
    let is_meant = |name: &String, is_rejected: bool| match tools.is_empty() {
        true => !(*is_approval && is_rejected),
        false => tools.contains(name),
    };
    let before = pending.tools.len() + pending.entries.len();
    pending
        .tools
        .retain(|name, change| is_meant(name, change.is_rejected));
    pending
        .entries
        .retain(|name, change| is_meant(name, change.is_rejected));
    if !tools.is_empty() {
        pending.instructions = None;
        pending.is_quarantined = false;
    }
    // They are approved together with the last of everything else.
    if pending.tools.len() + pending.entries.len() < before {
        pending.features = None;
    }
}
