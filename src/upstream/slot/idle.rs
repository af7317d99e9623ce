//! The end of a connection that is not used, or whose server does not respond.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Phase, Slot};
use crate::config::{self, Config, IdleBounds, IdleTimeout, Transport};
use crate::upstream::connection::Connection;
use crate::upstream::{CallError, ConnectError, UpstreamContext, backoff, health};

/// The interval at which a connection without an idle limit is looked at, as its entry may have been removed.
const CHECK_INTERVAL_WITHOUT_LIMIT: Duration = Duration::from_secs(450);

/// The idle limit of a connection, and the interval at which it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::upstream) struct Idle {
    pub(super) timeout: IdleTimeout,
    bounds: IdleBounds,
    pub(super) check: Option<Duration>,
}

impl Idle {
    /// The settings of the entry, or else of the configuration.
    pub(in crate::upstream) fn of(entry: &config::Server, config: &Config) -> Self {
        Self {
            timeout: match entry.transport {
                // It has no process, and its files are watched while it is open.
                Transport::Folder(_) => IdleTimeout::Never,
                _ => entry.idle_timeout.unwrap_or(config.idle_timeout),
            },
            bounds: entry.idle_bounds.or(config.idle_bounds),
            // The end of a process is noticed when it happens.
            check: match entry.transport {
                Transport::Stdio(_) | Transport::Folder(_) => None,
                Transport::Http(_) | Transport::Sse(_) => config.health_check.interval(),
            },
        }
    }
}

impl Slot {
    /// Closes `connection` when it has not been used for its idle limit.
    pub(super) async fn close_when_idle(
        self: Arc<Self>,
        context: Arc<UpstreamContext>,
        connection: Arc<Connection>,
    ) {
        loop {
            let pause = {
                let mut inner = self.lock();
                let idle = match (inner.retired, self.idle.timeout) {
                    (true, _) => Some(Duration::ZERO),
                    (false, IdleTimeout::Never) => None,
                    (false, IdleTimeout::After(limit)) => Some(limit),
                    (false, IdleTimeout::Adaptive) => Some(self.idle.bounds.after(inner.heat)),
                };
                let unused = inner.last_used.elapsed();
                match idle {
                    Some(limit) if inner.in_use == 0 && unused >= limit => {
                        if !connection.is_ended() {
                            tracing::debug!(server = %self.server, "closed while idle");
                        }
                        if inner.is_current(&connection) {
                            inner.phase = Phase::Disconnected;
                        }
                        connection.wire.close();
                        return;
                    }
                    Some(limit) if inner.in_use == 0 => limit.saturating_sub(unused),
                    Some(limit) => Duration::from_secs(1).max(limit / 4),
                    None => CHECK_INTERVAL_WITHOUT_LIMIT,
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = connection.wire.close_requested() => return,
                () = context.tasks.stopped() => return,
            }
        }
    }

    /// Checks at `interval` that the server of `connection` responds.
    pub(super) fn check_while_open(
        self: Arc<Self>,
        context: &UpstreamContext,
        connection: Arc<Connection>,
        interval: Duration,
    ) {
        let (slot, checked) = (self.clone(), connection.clone());
        let is_used = move || slot.is_used(&checked);
        let checked = connection.clone();
        let give_up = move |error: &CallError| self.give_up(&checked, error);
        let tasks = context.tasks.clone();
        let checks = health::watch(connection, interval, tasks, is_used, give_up);
        context.tasks.spawn(checks);
    }

    /// Whether calls hold `connection`, or another connection has replaced it.
    fn is_used(&self, connection: &Arc<Connection>) -> bool {
        let inner = self.lock();
        inner.in_use > 0 || !inner.is_current(connection)
    }

    /// Closes `connection`, whose server did not respond, unless calls hold it; those notice it themselves.
    fn give_up(&self, connection: &Arc<Connection>, error: &CallError) {
        let mut inner = self.lock();
        if inner.in_use > 0 || !inner.is_current(connection) {
            return;
        }
        inner.failures += 1;
        let error = ConnectError::Unhealthy {
            server: self.server.clone(),
            reason: error.to_string(),
        };
        tracing::warn!(server = %self.server, %error, "the connection is closed");
        inner.phase = Phase::Failed {
            error: Arc::new(error),
            retry_at: Instant::now() + backoff(inner.failures),
        };
        connection.wire.close();
    }
}
