//! One server's entry in the pool: its connection, or the reason that it has none.

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
use crate::mcp::ClientCapabilities;
use crate::tool::ServerName;

/// How often the use of a connection that never closes is looked at, at most.
const LONGEST_LOOK: Duration = Duration::from_secs(30 * 60);

/// A server's state, for display and decisions.
#[derive(Debug, Clone)]
pub(crate) enum State {
    /// Switched off in the configuration.
    Disabled,
    /// Nothing runs; the next call connects.
    Disconnected,
    /// A first or new connection is being made.
    Connecting,
    /// Calls go out at once.
    Ready,
    /// The last attempt failed; a call tries again at once.
    Failed {
        /// What went wrong.
        error: Arc<ConnectError>,
        /// When a refresh tries again.
        retry_at: Instant,
    },
}

/// A server's entry and connection.
pub(super) struct Slot {
    pub(super) server: ServerName,
    pub(super) entry: config::Server,
    idle: Idle,
    link: Mutex<LinkState>,
    /// Shared by all slots of the server.
    limit: Option<Arc<ConcurrencyLimit>>,
    /// The sessions that use it.
    users: Arc<Users>,
    mirrors: Arc<Mirrors>,
    /// The resources that somebody follows, by the server's own URIs.
    pub(super) followed: watch::Sender<BTreeSet<String>>,
}

type Attempt = Option<Result<Arc<Connection>, Arc<ConnectError>>>;

#[derive(Debug)]
struct LinkState {
    phase: Phase,
    /// What the handshake of the connection declares.
    capabilities: ClientCapabilities,
    failures: u32,
    /// The server was found to speak the modern era, now or before the last start: it is opened in that first.
    is_modern: bool,
    /// Calls that hold the connection.
    in_use: usize,
    /// How often this connection was taken for use.
    uses: u64,
    last_used: Instant,
    /// Calls in the recent past, halved with every quarter of an hour.
    heat: f64,
    /// The entry is gone from the configuration: the connection closes with its last call.
    retired: bool,
}

impl LinkState {
    fn is_current(&self, connection: &Arc<Connection>) -> bool {
        matches!(&self.phase, Phase::Ready(current) if Arc::ptr_eq(current, connection))
    }

    /// The connection if it is live, with one more call that holds it.
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

/// When an unused connection closes, and how often it is checked until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Idle {
    timeout: IdleTimeout,
    bounds: IdleBounds,
    check: Option<Duration>,
}

impl Idle {
    /// As the entry says, otherwise the configuration.
    pub(super) fn of(entry: &config::Server, config: &Config) -> Self {
        Self {
            timeout: entry.idle_timeout.unwrap_or(config.idle_timeout),
            bounds: entry.idle_bounds.or(config.idle_bounds),
            // The end of a process is seen when it happens.
            check: match entry.transport {
                Transport::Stdio(_) => None,
                Transport::Http(_) | Transport::Sse(_) => config.health_check.interval(),
            },
        }
    }
}

/// A connection in use: it is not closed for idleness while this is held.
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
            .field("link", &self.link)
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

    /// Another slot of the same server, for clients that can be asked other things.
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
        let link = LinkState {
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
        let (link, followed) = (Mutex::new(link), watch::Sender::new(BTreeSet::new()));
        Arc::new(Self {
            server,
            entry,
            idle,
            link,
            limit,
            users,
            mirrors,
            followed,
        })
    }

    /// Notes that the server spoke the modern era when it was last spoken with.
    pub(super) fn remember_modern(&self) {
        let mut link = self.link();
        if matches!(link.phase, Phase::Disconnected) {
            link.is_modern = true;
        }
    }

    pub(super) fn state(&self) -> State {
        if self.entry.disabled {
            return State::Disabled;
        }
        let link = self.link();
        match &link.phase {
            Phase::Connecting(_) => State::Connecting,
            Phase::Ready(connection) if !connection.is_ended() => State::Ready,
            Phase::Disconnected | Phase::Ready(_) => State::Disconnected,
            Phase::Failed { error, retry_at } => State::Failed {
                error: error.clone(),
                retry_at: *retry_at,
            },
        }
    }

    /// The session that its processes are started for.
    pub(super) fn context(&self) -> Arc<UpstreamContext> {
        self.users.context()
    }

    /// What the clients of all its sessions can be asked, where nothing says more.
    pub(super) fn capabilities(&self) -> ClientCapabilities {
        self.users.capabilities()
    }

    /// Notes which of the server's resources somebody follows; a modern server is told of all of them at once.
    pub(super) fn follow(&self, uris: &BTreeSet<String>) {
        self.followed.send_if_modified(|followed| {
            let differs = followed != uris;
            if differs {
                followed.clone_from(uris);
            }
            differs
        });
    }

    /// The connection, if it is live.
    pub(super) fn connection(&self) -> Option<Arc<Connection>> {
        match &self.link().phase {
            Phase::Ready(connection) if !connection.is_ended() => Some(connection.clone()),
            _ => None,
        }
    }

    /// Whether only so many calls may be under way.
    pub(super) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Takes one of the server's permits, if it has a limit; waits in a bounded queue.
    pub(super) async fn permit(&self) -> Result<Option<SemaphorePermit<'_>>, CallError> {
        match &self.limit {
            Some(limit) => limit.take(&self.server).await.map(Some),
            None => Ok(None),
        }
    }

    /// Whether a request for a client of these capabilities can go over this slot's connection: a handshake declares them
    /// once, a modern server is told anew with each request.
    pub(super) fn suits(&self, capabilities: ClientCapabilities) -> bool {
        let link = self.link();
        match &link.phase {
            Phase::Ready(connection) if connection.is_ended() => true,
            Phase::Ready(connection) => {
                connection.introduction().revision.is_modern() || link.capabilities == capabilities
            }
            Phase::Connecting(_) => link.is_modern || link.capabilities == capabilities,
            Phase::Disconnected | Phase::Failed { .. } => true,
        }
    }

    /// The connection for the session `user`, made if there is none; everybody who asks meanwhile gets the same attempt. A new one
    /// declares `capabilities`.
    ///
    /// # Cancel safety
    /// The attempt goes on for the others when the future is dropped.
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
            // An attempt whose task was dropped at shutdown leaves no outcome.
            let Ok(outcome) = attempt.wait_for(Option::is_some).await else {
                return Err(Arc::new(ConnectError::ShuttingDown));
            };
            if let Some(Err(error)) = &*outcome {
                return Err(error.clone());
            }
        }
    }

    /// The connection, if there is one already.
    pub(super) fn lease_now(self: &Arc<Self>, user: u64) -> Option<Lease> {
        let connection = (!self.entry.disabled).then(|| self.link().used())??;
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
        let mut link = self.link();
        if let Some(connection) = link.used() {
            drop(link);
            return Ok(Lease {
                slot: self.clone(),
                user,
                connection,
            });
        }
        match &link.phase {
            Phase::Connecting(attempt) => Err(attempt.clone()),
            Phase::Disconnected | Phase::Ready(_) | Phase::Failed { .. } => {
                let (outcome, attempt) = watch::channel(None);
                link.phase = Phase::Connecting(attempt.clone());
                link.capabilities = capabilities;
                drop(link);
                let (slot, environment) = (self.clone(), self.users.context());
                let tasks = environment.tasks.clone();
                tasks.spawn(async move { slot.attempt(&environment, &outcome).await });
                Err(attempt)
            }
        }
    }

    async fn attempt(
        self: Arc<Self>,
        environment: &Arc<UpstreamContext>,
        outcome: &watch::Sender<Attempt>,
    ) {
        let result = tokio::select! {
            result = self.connect(environment) => result.map(Arc::new).map_err(Arc::new),
            () = environment.tasks.stopped() => Err(Arc::new(ConnectError::ShuttingDown)),
        };
        {
            let mut link = self.link();
            match &result {
                Ok(connection) => {
                    link.failures = 0;
                    link.is_modern = connection.introduction().revision.is_modern();
                    link.last_used = Instant::now();
                    link.uses = 0;
                    link.phase = Phase::Ready(connection.clone());
                    environment.tasks.spawn(
                        self.clone()
                            .close_when_idle(environment.clone(), connection.clone()),
                    );
                    if let Some(interval) = self.idle.check {
                        self.clone()
                            .check_while_open(environment, connection.clone(), interval);
                    }
                    if connection.introduction().revision.is_modern() {
                        let events = super::server_events::listen(
                            connection.clone(),
                            self.followed.subscribe(),
                        );
                        let stop = environment.tasks.stop().clone();
                        environment
                            .tasks
                            .spawn(stop.run_until_cancelled_owned(events));
                    }
                    if let Some(level) = self.users.log_level() {
                        let connection = connection.clone();
                        environment
                            .tasks
                            .spawn(async move { connection.set_log_level(level).await });
                    }
                }
                Err(error) => {
                    link.failures += 1;
                    link.is_modern = false;
                    let retry_at = Instant::now() + backoff(link.failures);
                    link.phase = Phase::Failed {
                        error: error.clone(),
                        retry_at,
                    };
                    if !matches!(**error, ConnectError::ShuttingDown) {
                        tracing::warn!(server = %self.server, %error, "no connection");
                    }
                }
            }
        }
        // Whoever asked may have gone.
        let _ = outcome.send(Some(result));
    }

    async fn connect(
        &self,
        environment: &Arc<UpstreamContext>,
    ) -> Result<Connection, ConnectError> {
        let (is_modern, capabilities) = {
            let link = self.link();
            (link.is_modern, link.capabilities)
        };
        let transport = self.users.renewed(&self.entry.transport);
        let audience: Arc<dyn super::Audience> = self.users.clone();
        let mut connector = Connector {
            server: &self.server,
            transport: &transport,
            era: self.entry.era,
            mirrors: &self.mirrors,
            environment,
            capabilities,
            audience: &audience,
        };
        if !is_modern || self.entry.era != Era::Auto {
            return connector.connect().await;
        }
        connector.era = Era::Modern;
        match connector.connect().await {
            // It may be another version of the server by now.
            Err(error) if error.may_be_of_era() => {
                tracing::info!(server = %self.server, %error, "it was modern before; asking with a handshake");
                connector.era = Era::Auto;
                connector.connect().await
            }
            outcome => outcome,
        }
    }

    /// Closes `connection` once nobody has used it for its idle time.
    async fn close_when_idle(
        self: Arc<Self>,
        environment: Arc<UpstreamContext>,
        connection: Arc<Connection>,
    ) {
        loop {
            let pause = {
                let mut link = self.link();
                let idle = match (link.retired, self.idle.timeout) {
                    (true, _) => Some(Duration::ZERO),
                    (false, IdleTimeout::Never) => None,
                    (false, IdleTimeout::After(limit)) => Some(limit),
                    (false, IdleTimeout::Adaptive) => Some(self.idle.bounds.after(link.heat)),
                };
                let unused = link.last_used.elapsed();
                match idle {
                    Some(limit) if link.in_use == 0 && unused >= limit => {
                        if !connection.is_ended() {
                            tracing::debug!(server = %self.server, "closed while idle");
                        }
                        link.phase = match std::mem::replace(&mut link.phase, Phase::Disconnected) {
                            Phase::Ready(current) if !Arc::ptr_eq(&current, &connection) => {
                                Phase::Ready(current)
                            }
                            Phase::Ready(_) => Phase::Disconnected,
                            other => other,
                        };
                        connection.wire.close();
                        return;
                    }
                    Some(limit) if link.in_use == 0 => limit.saturating_sub(unused),
                    _ => Duration::from_secs(1).max(idle.unwrap_or(LONGEST_LOOK) / 4),
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = connection.wire.close_requested() => return,
                () = environment.tasks.stopped() => return,
            }
        }
    }

    fn check_while_open(
        self: Arc<Self>,
        environment: &UpstreamContext,
        connection: Arc<Connection>,
        interval: Duration,
    ) {
        let (slot, checked) = (self.clone(), connection.clone());
        let is_used = move || slot.is_used(&checked);
        let checked = connection.clone();
        let give_up = move |error: &CallError| self.give_up(&checked, error);
        let tasks = environment.tasks.clone();
        let checks = health::watch(connection, interval, tasks, is_used, give_up);
        environment.tasks.spawn(checks);
    }

    /// Whether calls hold `connection`, or another one has taken its place.
    fn is_used(&self, connection: &Arc<Connection>) -> bool {
        let link = self.link();
        link.in_use > 0 || !link.is_current(connection)
    }

    /// Closes `connection`, whose server did not answer, unless calls hold it: they find out themselves.
    fn give_up(&self, connection: &Arc<Connection>, error: &CallError) {
        let mut link = self.link();
        if link.in_use > 0 || !link.is_current(connection) {
            return;
        }
        link.failures += 1;
        let error = ConnectError::Unhealthy {
            server: self.server.clone(),
            reason: error.to_string(),
        };
        tracing::warn!(server = %self.server, %error, "the connection is closed");
        link.phase = Phase::Failed {
            error: Arc::new(error),
            retry_at: Instant::now() + backoff(link.failures),
        };
        connection.wire.close();
    }

    /// Closes the connection as soon as its last call is through.
    pub(super) fn retire(&self) {
        let connection = {
            let mut link = self.link();
            link.retired = true;
            match &link.phase {
                Phase::Ready(connection) if link.in_use == 0 => Some(connection.clone()),
                _ => None,
            }
        };
        if let Some(connection) = connection {
            connection.wire.close();
        }
    }

    fn link(&self) -> MutexGuard<'_, LinkState> {
        // Each change is whole before anything can panic.
        self.link.lock()
    }
}

impl Lease {
    /// Whether a tool that has changed since it was first seen must not be called.
    pub(super) fn is_pinned(&self) -> bool {
        self.slot.entry.trust == Trust::Pin
    }

    /// Closes the connection if nobody else has used it, and its entry does not say that it stays.
    pub(super) fn close_unless_shared(self) {
        let mut link = self.slot.link();
        if link.is_current(&self.connection)
            && link.uses == 1
            && self.slot.idle.timeout != IdleTimeout::Never
        {
            link.phase = Phase::Disconnected;
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
        let mut link = self.slot.link();
        link.in_use -= 1;
        let minutes = link.last_used.elapsed().as_secs_f64() / 60.0;
        link.heat = link.heat * 0.5_f64.powf(minutes / 15.0) + 1.0;
        link.last_used = Instant::now();
        if link.retired && link.in_use == 0 {
            self.connection.wire.close();
        }
    }
}
