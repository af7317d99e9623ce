//! One server's slot in the pool: its connection, or the reason why it has none.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{SemaphorePermit, watch};

use super::concurrency::ConcurrencyLimit;
use super::connection::Connection;
use super::connector::Connector;
use super::host::Audience as _;
use super::sharing::Users;
use super::transport::http::mirrors::Mirrors;
use super::{CallError, ConnectError, UpstreamContext, backoff, health};
use crate::config::{self, Config, Era, IdleBounds, IdleTimeout, Transport, Trust};
use crate::events::Event;
use crate::mcp::ClientCapabilities;
use crate::telemetry;
use crate::tool::ServerName;

/// The interval at which a connection without an idle limit is looked at, as its entry may have been removed.
const CHECK_INTERVAL_WITHOUT_LIMIT: Duration = Duration::from_secs(450);

/// The state of a server that the rest of the program sees: its [`Phase`] without the connection.
#[derive(Debug, Clone)]
pub(crate) enum ServerState {
    /// Disabled in the configuration.
    Disabled,
    /// Not connected; the next call connects.
    Disconnected,
    /// A connection is being opened.
    Connecting,
    /// Connected; calls are sent at once.
    Ready,
    /// The last attempt failed; a call tries again at once.
    Failed {
        /// The error.
        error: Arc<ConnectError>,
        /// The time of the next automatic attempt.
        retry_at: Instant,
    },
}

/// A server's configuration entry and connection.
pub(super) struct Slot {
    pub(super) server: ServerName,
    pub(super) entry: config::Server,
    idle: Idle,
    inner: Mutex<Inner>,
    /// The limit shared by all slots of the server.
    limit: Option<Arc<ConcurrencyLimit>>,
    /// The sessions that use it.
    users: Arc<Users>,
    mirrors: Arc<Mirrors>,
    /// The resources that clients follow, by the server's own URIs.
    pub(super) followed: watch::Sender<BTreeSet<String>>,
}

type Attempt = Option<Result<Arc<Connection>, Arc<ConnectError>>>;

/// The part of a slot that changes.
#[derive(Debug)]
struct Inner {
    phase: Phase,
    /// The client capabilities that the connection's handshake declares.
    capabilities: ClientCapabilities,
    failures: u32,
    /// Whether the server was found to speak the modern era, now or in an earlier run. Then that era is tried first.
    is_modern: bool,
    /// The number of calls that hold the connection.
    in_use: usize,
    /// The number of times this connection was taken for use.
    uses: u64,
    last_used: Instant,
    /// The recent number of calls, halved every quarter of an hour.
    heat: f64,
    /// Whether the entry was removed from the configuration: the connection closes after its last call.
    retired: bool,
}

impl Inner {
    fn is_current(&self, connection: &Arc<Connection>) -> bool {
        matches!(&self.phase, Phase::Ready(current) if Arc::ptr_eq(current, connection))
    }

    /// The connection, if it is open; counts one more call that holds it.
    fn used(&mut self) -> Option<Arc<Connection>> {
        match &self.phase {
            Phase::Ready(connection) if !connection.is_ended() => {
                self.in_use += 1;
                self.uses += 1;
                Some(connection.clone())
            }
            _ => None,
        }
    }
}

/// The connection, or why there is none.
#[derive(Debug)]
enum Phase {
    Disconnected,
    Connecting(watch::Receiver<Attempt>),
    Ready(Arc<Connection>),
    Failed {
        error: Arc<ConnectError>,
        retry_at: Instant,
    },
}

/// The idle limit of a connection, and the interval at which it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Idle {
    timeout: IdleTimeout,
    bounds: IdleBounds,
    check: Option<Duration>,
}

impl Idle {
    /// The settings of the entry, or else of the configuration.
    pub(super) fn of(entry: &config::Server, config: &Config) -> Self {
        Self {
            timeout: entry.idle_timeout.unwrap_or(config.idle_timeout),
            bounds: entry.idle_bounds.or(config.idle_bounds),
            // The end of a process is noticed when it happens.
            check: match entry.transport {
                Transport::Stdio(_) => None,
                Transport::Http(_) | Transport::Sse(_) => config.health_check.interval(),
            },
        }
    }
}

/// A connection in use: it is not closed for idleness while this exists.
#[derive(Debug)]
pub(super) struct Lease {
    slot: Arc<Slot>,
    /// The session that it is for.
    pub(super) user: u64,
    connection: Arc<Connection>,
}

impl std::fmt::Debug for Slot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slot")
            .field("server", &self.server)
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}

impl Slot {
    pub(super) fn new(
        server: ServerName,
        entry: config::Server,
        idle: Idle,
        users: Arc<Users>,
    ) -> Arc<Self> {
        let limit = entry
            .max_concurrent
            .map(|total| Arc::new(ConcurrencyLimit::new(total.get())));
        Self::with(server, entry, idle, limit, users, Arc::default())
    }

    /// Creates another slot of the server, for clients with different capabilities.
    pub(super) fn sibling(&self) -> Arc<Self> {
        Self::with(
            self.server.clone(),
            self.entry.clone(),
            self.idle,
            self.limit.clone(),
            self.users.clone(),
            self.mirrors.clone(),
        )
    }

    fn with(
        server: ServerName,
        entry: config::Server,
        idle: Idle,
        limit: Option<Arc<ConcurrencyLimit>>,
        users: Arc<Users>,
        mirrors: Arc<Mirrors>,
    ) -> Arc<Self> {
        let inner = Inner {
            phase: Phase::Disconnected,
            capabilities: ClientCapabilities::NONE,
            failures: 0,
            is_modern: false,
            in_use: 0,
            uses: 0,
            last_used: Instant::now(),
            heat: 0.0,
            retired: false,
        };
        let (inner, followed) = (Mutex::new(inner), watch::Sender::new(BTreeSet::new()));
        Arc::new(Self {
            server,
            entry,
            idle,
            inner,
            limit,
            users,
            mirrors,
            followed,
        })
    }

    /// Records that the server spoke the modern era last time.
    pub(super) fn remember_modern(&self) {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::Disconnected) {
            inner.is_modern = true;
        }
    }

    pub(super) fn state(&self) -> ServerState {
        if self.entry.disabled {
            return ServerState::Disabled;
        }
        let inner = self.lock();
        match &inner.phase {
            Phase::Connecting(_) => ServerState::Connecting,
            Phase::Ready(connection) if !connection.is_ended() => ServerState::Ready,
            Phase::Disconnected | Phase::Ready(_) => ServerState::Disconnected,
            Phase::Failed { error, retry_at } => ServerState::Failed {
                error: error.clone(),
                retry_at: *retry_at,
            },
        }
    }

    /// The context of the session for which the server's processes start.
    pub(super) fn context(&self) -> Arc<UpstreamContext> {
        self.users.context()
    }

    /// The capabilities of the clients of all sessions, for requests without a client.
    pub(super) fn capabilities(&self) -> ClientCapabilities {
        self.users.capabilities()
    }

    /// Sets the resources that clients follow; a modern server gets all of them at once.
    pub(super) fn follow(&self, uris: &BTreeSet<String>) {
        self.followed.send_if_modified(|followed| {
            let differs = followed != uris;
            if differs {
                followed.clone_from(uris);
            }
            differs
        });
    }

    /// The connection, if it is open.
    pub(super) fn connection(&self) -> Option<Arc<Connection>> {
        match &self.lock().phase {
            Phase::Ready(connection) if !connection.is_ended() => Some(connection.clone()),
            _ => None,
        }
    }

    /// Whether the number of parallel calls is limited.
    pub(super) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Takes one of the server's permits, if calls are limited; waits in a bounded queue.
    pub(super) async fn permit(&self) -> Result<Option<SemaphorePermit<'_>>, CallError> {
        match &self.limit {
            Some(limit) => limit.acquire(&self.server).await.map(Some),
            None => Ok(None),
        }
    }

    /// Whether a request for a client with these capabilities can use this slot's connection. A handshake declares
    /// capabilities once; a modern server gets them with each request.
    pub(super) fn suits(&self, capabilities: ClientCapabilities) -> bool {
        let inner = self.lock();
        match &inner.phase {
            Phase::Ready(connection) if connection.is_ended() => true,
            Phase::Ready(connection) => {
                connection.introduction().revision.is_modern() || inner.capabilities == capabilities
            }
            Phase::Connecting(_) => inner.is_modern || inner.capabilities == capabilities,
            Phase::Disconnected | Phase::Failed { .. } => true,
        }
    }

    /// The connection for the session `user`; opens one that declares `capabilities` if there is none. Concurrent
    /// callers share one attempt.
    ///
    /// # Cancel safety
    /// If the future is dropped, the attempt continues for the other callers.
    pub(super) async fn lease(
        self: &Arc<Self>,
        user: u64,
        capabilities: ClientCapabilities,
    ) -> Result<Lease, Arc<ConnectError>> {
        if self.entry.disabled {
            return Err(Arc::new(ConnectError::Disabled {
                server: self.server.clone(),
            }));
        }
        loop {
            let mut attempt = match self.lease_or_attempt(user, capabilities) {
                Ok(lease) => return Ok(lease),
                Err(attempt) => attempt,
            };
            // An attempt whose task was dropped at shutdown has no outcome.
            let Ok(outcome) = attempt.wait_for(Option::is_some).await else {
                return Err(Arc::new(ConnectError::ShuttingDown));
            };
            if let Some(Err(error)) = &*outcome {
                return Err(error.clone());
            }
        }
    }

    /// The connection, if it is open already.
    pub(super) fn lease_now(self: &Arc<Self>, user: u64) -> Option<Lease> {
        let connection = (!self.entry.disabled).then(|| self.lock().used())??;
        Some(Lease {
            slot: self.clone(),
            user,
            connection,
        })
    }

    fn lease_or_attempt(
        self: &Arc<Self>,
        user: u64,
        capabilities: ClientCapabilities,
    ) -> Result<Lease, watch::Receiver<Attempt>> {
        let mut inner = self.lock();
        if let Some(connection) = inner.used() {
            drop(inner);
            return Ok(Lease {
                slot: self.clone(),
                user,
                connection,
            });
        }
        match &inner.phase {
            Phase::Connecting(attempt) => Err(attempt.clone()),
            Phase::Disconnected | Phase::Ready(_) | Phase::Failed { .. } => {
                let (outcome, attempt) = watch::channel(None);
                inner.phase = Phase::Connecting(attempt.clone());
                inner.capabilities = capabilities;
                drop(inner);
                let (slot, context) = (self.clone(), self.users.context());
                let tasks = context.tasks.clone();
                let server = || self.server.to_string();
                context
                    .events()
                    .note(|| Event::ServerStarting { server: server() });
                tasks.spawn(async move { slot.attempt(&context, &outcome).await });
                Err(attempt)
            }
        }
    }

    async fn attempt(
        self: Arc<Self>,
        context: &Arc<UpstreamContext>,
        outcome: &watch::Sender<Attempt>,
    ) {
        let result = tokio::select! {
            result = self.connect(context) => result.map(Arc::new).map_err(Arc::new),
            () = context.tasks.stopped() => Err(Arc::new(ConnectError::ShuttingDown)),
        };
        {
            let mut inner = self.lock();
            match &result {
                Ok(connection) => {
                    inner.failures = 0;
                    inner.is_modern = connection.introduction().revision.is_modern();
                    inner.last_used = Instant::now();
                    inner.uses = 0;
                    inner.phase = Phase::Ready(connection.clone());
                    context.events().note(|| Event::ServerReady {
                        server: self.server.to_string(),
                    });
                    let closing = self
                        .clone()
                        .close_when_idle(context.clone(), connection.clone());
                    let (server, events) = (self.server.clone(), context.events().clone());
                    context.tasks.spawn(async move {
                        closing.await;
                        let server = || server.to_string();
                        events.note(|| Event::ServerStopped { server: server() });
                    });
                    if let Some(interval) = self.idle.check {
                        self.clone()
                            .check_while_open(context, connection.clone(), interval);
                    }
                    if connection.introduction().revision.is_modern() {
                        let events = super::server_events::listen(
                            connection.clone(),
                            self.followed.subscribe(),
                        );
                        let stop = context.tasks.stop().clone();
                        context.tasks.spawn(stop.run_until_cancelled_owned(events));
                    }
                    if let Some(level) = self.users.log_level() {
                        let connection = connection.clone();
                        context
                            .tasks
                            .spawn(async move { connection.set_log_level(level).await });
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
        let (is_modern, capabilities) = {
            let inner = self.lock();
            (inner.is_modern, inner.capabilities)
        };
        let transport = self.users.renewed(&self.entry.transport);
        let audience: Arc<dyn super::Audience> = self.users.clone();
        let mut connector = Connector {
            server: &self.server,
            transport: &transport,
            era: self.entry.era,
            mirrors: &self.mirrors,
            context,
            capabilities,
            audience: &audience,
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

    /// Closes `connection` when it has not been used for its idle limit.
    async fn close_when_idle(
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

    fn check_while_open(
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

    /// Closes the connection now, with the calls on it, and returns whether it was open.
    pub(super) fn stop(&self) -> bool {
        let mut inner = self.lock();
        let Phase::Ready(connection) = &inner.phase else {
            return false;
        };
        let connection = connection.clone();
        inner.phase = Phase::Disconnected;
        drop(inner);
        connection.wire.close();
        true
    }

    fn note_failure(&self, context: &UpstreamContext, error: &ConnectError) {
        let server = || self.server.to_string();
        context.events().note(|| Event::ServerFailed {
            server: server(),
            reason: telemetry::masked(&error.to_string()).into_owned(),
        });
        if error.wants_login() {
            context
                .events()
                .note(|| Event::LoginWanted { server: server() });
        }
    }

    /// Closes the connection as soon as its last call has ended.
    pub(super) fn retire(&self) {
        let connection = {
            let mut inner = self.lock();
            inner.retired = true;
            match &inner.phase {
                Phase::Ready(connection) if inner.in_use == 0 => Some(connection.clone()),
                _ => None,
            }
        };
        if let Some(connection) = connection {
            connection.wire.close();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Each change is complete before anything can panic.
        self.inner.lock()
    }
}

impl Lease {
    /// Whether only approved tools may be called.
    pub(super) fn is_pinned(&self) -> bool {
        self.slot.entry.trust != Trust::Report
    }

    /// Closes the connection, unless another call has used it or its entry keeps it open.
    pub(super) fn close_unless_shared(self) {
        let mut inner = self.slot.lock();
        if inner.is_current(&self.connection)
            && inner.uses == 1
            && self.slot.idle.timeout != IdleTimeout::Never
        {
            inner.phase = Phase::Disconnected;
            self.connection.wire.close();
        }
    }
}

impl Deref for Lease {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut inner = self.slot.lock();
        inner.in_use -= 1;
        let minutes = inner.last_used.elapsed().as_secs_f64() / 60.0;
        inner.heat = inner.heat * 0.5_f64.powf(minutes / 15.0) + 1.0;
        inner.last_used = Instant::now();
        if inner.retired && inner.in_use == 0 {
            self.connection.wire.close();
        }
    }
}
