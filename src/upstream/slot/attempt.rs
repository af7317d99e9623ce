//! One attempt to connect, on behalf of all callers that wait for it.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Phase, Slot};
use crate::config::Era;
use crate::events::Event;
use crate::telemetry;
use crate::upstream::connection::Connection;
use crate::upstream::connector::{Connector, MayAsk};
use crate::upstream::{Audience, ConnectError, UpstreamContext, backoff, server_events};

/// The outcome of an attempt; `None` until it is known.
pub(super) type Attempt = Option<Result<Arc<Connection>, Arc<ConnectError>>>;

impl Slot {
    /// Connects and starts the tasks of the new connection, unless the server is `stopped` meanwhile.
    pub(super) async fn attempt(
        self: Arc<Self>,
        context: &Arc<UpstreamContext>,
        outcome: &watch::Sender<Attempt>,
        stopped: &CancellationToken,
    ) {
        let server = self.server.clone();
        let mut result = tokio::select! {
            result = self.connect(context) => result.map(Arc::new).map_err(Arc::new),
            () = context.tasks.stopped() => Err(Arc::new(ConnectError::ShuttingDown)),
            () = stopped.cancelled() => Err(Arc::new(ConnectError::Stopped { server })),
        };
        {
            let mut inner = self.lock();
            match &result {
                // The slot may have another attempt already.
                _ if stopped.is_cancelled() => {
                    let server = self.server.clone();
                    let stopped = Err(Arc::new(ConnectError::Stopped { server }));
                    if let Ok(connection) = std::mem::replace(&mut result, stopped) {
                        connection.wire.close();
                    }
                    context.note(|| Event::ServerStopped {
                        server: self.server.to_string(),
                    });
                }
                Ok(connection) => {
                    inner.failures = 0;
                    inner.is_modern = connection.introduction().revision.is_modern();
                    inner.last_used = Instant::now();
                    inner.uses = 0;
                    inner.phase = Phase::Ready(connection.clone());
                    context.note(|| Event::ServerReady {
                        server: self.server.to_string(),
                    });
                    let closing = self
                        .clone()
                        .close_when_idle(context.clone(), connection.clone());
                    let (server, noting) = (self.server.clone(), context.clone());
                    context.tasks.spawn(async move {
                        closing.await;
                        let server = || server.to_string();
                        noting.note(|| Event::ServerStopped { server: server() });
                    });
                    if let Some(interval) = self.idle.check {
                        self.clone()
                            .check_while_open(context, connection.clone(), interval);
                    }
                    if connection.introduction().revision.is_modern() {
                        let (server, followed) = (self.server.clone(), self.followed.subscribe());
                        let events = server_events::listen(server, connection.clone(), followed);
                        let stop = context.tasks.stop().clone();
                        context.tasks.spawn(stop.run_until_cancelled_owned(events));
                    }
                    if let Some(level) = self.users.log_level() {
                        let connection = connection.clone();
                        context
                            .tasks
                            .spawn(async move { connection.set_log_level(Some(level)).await });
                    }
                }
                Err(error) => {
                    inner.failures += 1;
                    inner.is_modern = false;
                    let retry_at = Instant::now() + backoff(inner.failures);
                    inner.phase = Phase::Failed {
                        error: error.clone(),
                        retry_at,
                    };
                    if !matches!(**error, ConnectError::ShuttingDown) {
                        tracing::warn!(server = %self.server, %error, "no connection");
                        self.note_failure(context, error);
                    }
                }
            }
        }
        // The caller may have gone.
        let _ = outcome.send(Some(result));
    }

    async fn connect(&self, context: &Arc<UpstreamContext>) -> Result<Connection, ConnectError> {
        let (is_modern, declared) = {
            let inner = self.lock();
            (inner.is_modern, inner.declared.clone())
        };
        let transport = self.users.renewed(&self.entry.transport);
        let audience: Arc<dyn Audience> = self.users.clone();
        let mut connector = Connector {
            server: &self.server,
            transport: &transport,
            era: self.entry.era,
            mirrors: &self.mirrors,
            context,
            declared,
            may_ask: MayAsk {
                after_handshake: self.declares,
                in_requests: self.entry.client_capabilities != Some(false),
            },
            audience: &audience,
            home: self.home(),
        };
        if !is_modern || self.entry.era != Era::Auto {
            return connector.connect().await;
        }
        connector.era = Era::Modern;
        match connector.connect().await {
            // The server may be another version by now.
            Err(error) if error.may_be_of_era() => {
                tracing::info!(server = %self.server, %error, "it was modern before; asking with a handshake");
                connector.era = Era::Auto;
                connector.connect().await
            }
            outcome => outcome,
        }
    }

    fn note_failure(&self, context: &UpstreamContext, error: &ConnectError) {
        let server = || self.server.to_string();
        // An agent with a shell may listen, and has to read nothing that a server in quarantine wrote.
        let reason = || match telemetry::is_withheld(self.server.as_str()) {
            true => error.outline(&self.server),
            false => error.to_string(),
        };
        context.note(|| Event::ServerFailed {
            server: server(),
            reason: telemetry::masked(&reason()).into_owned(),
        });
        if error.wants_login() {
            context.note(|| Event::LoginWanted { server: server() });
        }
    }
}
