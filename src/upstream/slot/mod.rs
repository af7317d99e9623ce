//! One server's slot in the pool: its connection, or the reason why it has none.

mod attempt;
mod idle;
mod lease;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{SemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

use self::attempt::Attempt;
pub(in crate::upstream) use self::idle::Idle;
pub(in crate::upstream) use self::lease::Lease;
use super::concurrency::ConcurrencyLimit;
use super::connection::Connection;
use super::followed::Followed;
use super::home::{Homes, Wanted};
use super::host::{Audience as _, Declared};
use super::sharing::Users;
use super::transport::http::mirrors::Mirrors;
use super::{CallError, ConnectError, UpstreamContext};
use crate::config::{self, Era, Placement};
use crate::events::Event;
use crate::mcp::ClientCapabilities;
use crate::shutdown::with_log_lines;
use crate::tool::ServerName;

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
pub(in crate::upstream) struct Slot {
    pub(in crate::upstream) server: ServerName,
    pub(in crate::upstream) entry: config::Server,
    idle: Idle,
    /// Whether a handshake declares the capabilities of the client.
    declares: bool,
    inner: Mutex<Inner>,
    /// The limit shared by all slots of the server.
    limit: Option<Arc<ConcurrencyLimit>>,
    /// The sessions that use it.
    users: Arc<Users>,
    mirrors: Arc<Mirrors>,
    /// The resources and tasks that clients follow.
    pub(in crate::upstream) followed: watch::Sender<BTreeSet<Followed>>,
}

/// The part of a slot that changes.
#[derive(Debug)]
struct Inner {
    phase: Phase,
    /// The part of the client that the connection's handshake declares.
    declared: Declared,
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
    /// The number of times that the server was stopped.
    stops: u64,
}

impl Inner {
    fn is_current(&self, connection: &Arc<Connection>) -> bool {
        matches!(&self.phase, Phase::Ready(current) if Arc::ptr_eq(current, connection))
    }

    /// The connection for the session `user` of `slot`, if it is open; counts one more call that holds it.
    fn used(&mut self, slot: &Arc<Slot>, user: u64) -> Option<Lease> {
        match &self.phase {
            Phase::Ready(connection) if !connection.is_ended() => {
                self.in_use += 1;
                self.uses += 1;
                Some(Lease {
                    slot: slot.clone(),
                    user,
                    connection: connection.clone(),
                    stops: self.stops,
                })
            }
            _ => None,
        }
    }
}

/// The connection, or why there is none.
#[derive(Debug)]
enum Phase {
    Disconnected,
    /// An attempt, and the token that ends it.
    Connecting(watch::Receiver<Attempt>, CancellationToken),
    Ready(Arc<Connection>),
    Failed {
        error: Arc<ConnectError>,
        retry_at: Instant,
    },
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
    pub(in crate::upstream) fn new(
        server: ServerName,
        entry: config::Server,
        idle: Idle,
        users: Arc<Users>,
    ) -> Arc<Self> {
        let limit = entry
            .calls_at_once()
            .map(|total| Arc::new(ConcurrencyLimit::new(total.get())));
        Self::with(server, entry, idle, limit, users, Arc::default())
    }

    /// Creates another slot of the server, for clients with different capabilities.
    pub(in crate::upstream) fn sibling(&self) -> Arc<Self> {
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
            declared: Declared::default(),
            failures: 0,
            is_modern: false,
            in_use: 0,
            uses: 0,
            last_used: Instant::now(),
            heat: 0.0,
            retired: false,
            stops: 0,
        };
        let (inner, followed) = (Mutex::new(inner), watch::Sender::new(BTreeSet::new()));
        Arc::new(Self {
            server,
            declares: entry.declares_capabilities(),
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
    pub(in crate::upstream) fn remember_modern(&self) {
        let mut inner = self.lock();
        if matches!(inner.phase, Phase::Disconnected) {
            inner.is_modern = true;
        }
    }

    pub(in crate::upstream) fn state(&self) -> ServerState {
        if self.entry.disabled {
            return ServerState::Disabled;
        }
        let inner = self.lock();
        match &inner.phase {
            Phase::Connecting(..) => ServerState::Connecting,
            Phase::Ready(connection) if !connection.is_ended() => ServerState::Ready,
            Phase::Disconnected | Phase::Ready(_) => ServerState::Disconnected,
            Phase::Failed { error, retry_at } => ServerState::Failed {
                error: error.clone(),
                retry_at: *retry_at,
            },
        }
    }

    /// The way to the server, if it runs at one of several replicas. Its process is one for all clients.
    pub(super) fn home(&self) -> Option<(Arc<dyn Homes>, Wanted)> {
        if self.entry.placement != Placement::One {
            return None;
        }
        let context = self.context();
        let homes = context.homes.get()?.clone();
        let person = context.person.as_ref().map(|person| &*person.entitlement);
        let wanted = Wanted::new(&self.server, self.entry.hash.to_string(), person);
        Some((homes, wanted))
    }

    /// The context of the session for which the server's processes start.
    pub(in crate::upstream) fn context(&self) -> Arc<UpstreamContext> {
        self.users.context()
    }

    /// The capabilities of the clients of all sessions, for requests without a client.
    pub(in crate::upstream) fn capabilities(&self) -> ClientCapabilities {
        self.users.capabilities()
    }

    /// Sets the resources and tasks that clients follow; a modern server gets all of them at once.
    pub(in crate::upstream) fn follow(&self, uris: &BTreeSet<Followed>) {
        self.followed.send_if_modified(|followed| {
            let differs = followed != uris;
            if differs {
                followed.clone_from(uris);
            }
            differs
        });
    }

    /// The connection, if it is open.
    pub(in crate::upstream) fn connection(&self) -> Option<Arc<Connection>> {
        match &self.lock().phase {
            Phase::Ready(connection) if !connection.is_ended() => Some(connection.clone()),
            _ => None,
        }
    }

    /// Whether the number of parallel calls is limited.
    pub(in crate::upstream) fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Takes one of the server's permits, if calls are limited; waits in a bounded queue.
    pub(in crate::upstream) async fn permit(
        &self,
    ) -> Result<Option<SemaphorePermit<'_>>, CallError> {
        match &self.limit {
            Some(limit) => limit.acquire(&self.server).await.map(Some),
            None => Ok(None),
        }
    }

    /// Whether a request for a client that declares this can use this slot's connection. A handshake declares
    /// it once; a modern server gets them with each request.
    pub(in crate::upstream) fn suits(&self, declared: &Declared) -> bool {
        if !self.declares || self.entry.era == Era::Modern || self.home().is_some() {
            return true;
        }
        let inner = self.lock();
        match &inner.phase {
            Phase::Ready(connection) if connection.is_ended() => true,
            Phase::Ready(connection) => {
                connection.introduction().revision.is_modern() || inner.declared == *declared
            }
            Phase::Connecting(..) => inner.is_modern || inner.declared == *declared,
            Phase::Disconnected | Phase::Failed { .. } => true,
        }
    }

    /// The connection for the session `user`; opens one that declares `declared` if there is none. Concurrent
    /// callers share one attempt.
    ///
    /// # Cancel safety
    /// If the future is dropped, the attempt continues for the other callers.
    pub(in crate::upstream) async fn lease(
        self: &Arc<Self>,
        user: u64,
        declared: Declared,
    ) -> Result<Lease, Arc<ConnectError>> {
        if self.entry.disabled {
            return Err(Arc::new(ConnectError::Disabled {
                server: self.server.clone(),
            }));
        }
        loop {
            let mut attempt = match self.lease_or_attempt(user, &declared) {
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
    pub(in crate::upstream) fn lease_now(self: &Arc<Self>, user: u64) -> Option<Lease> {
        (!self.entry.disabled).then(|| self.lock().used(self, user))?
    }

    fn lease_or_attempt(
        self: &Arc<Self>,
        user: u64,
        declared: &Declared,
    ) -> Result<Lease, watch::Receiver<Attempt>> {
        let home = self.home();
        let mut inner = self.lock();
        if let Some(lease) = inner.used(self, user) {
            return Ok(lease);
        }
        match &inner.phase {
            Phase::Connecting(attempt, _) => Err(attempt.clone()),
            Phase::Disconnected | Phase::Ready(_) | Phase::Failed { .. } => {
                let (outcome, attempt) = watch::channel(None);
                let stopped = CancellationToken::new();
                inner.phase = Phase::Connecting(attempt.clone(), stopped.clone());
                inner.declared = match (self.declares, &home) {
                    (false, _) => Declared::default(),
                    // A client that cannot be asked refuses.
                    (true, Some(_)) => ClientCapabilities::QUESTIONS.into(),
                    (true, None) => declared.clone(),
                };
                drop(inner);
                let (slot, context) = (self.clone(), self.users.context());
                let tasks = context.tasks.clone();
                let server = || self.server.to_string();
                context.note(|| Event::ServerStarting { server: server() });
                // Its log lines, and those of its connection, are for all sessions that use it; a runner has its own log.
                let lines = context.log_lines.as_ref();
                let is_passed_on = lines.is_some_and(|lines| lines.dispatch().is_none());
                let lines = is_passed_on.then(|| self.users.clone());
                let running = async move { slot.attempt(&context, &outcome, &stopped).await };
                match lines {
                    Some(lines) => tasks.spawn(with_log_lines(lines, running)),
                    None => tasks.spawn(running),
                };
                Err(attempt)
            }
        }
    }

    /// Closes the connection now, with the calls on it, or ends the attempt to open one. Returns whether there was either.
    pub(in crate::upstream) fn stop(&self) -> bool {
        let mut inner = self.lock();
        // A request between two attempts must not start the server again either.
        inner.stops += 1;
        match &inner.phase {
            Phase::Ready(connection) => connection.wire.close(),
            Phase::Connecting(_, stopped) => stopped.cancel(),
            Phase::Disconnected | Phase::Failed { .. } => return false,
        }
        inner.phase = Phase::Disconnected;
        true
    }

    /// Closes the connection as soon as its last call has ended.
    pub(in crate::upstream) fn retire(&self) {
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
