//! The pool of connections, by server name.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::connection::ServerCall;
use super::error::ListError;
use super::followed::Followed;
use super::home::{Homes, Wanted};
use super::host::{Audience, Host};
use super::listing::Listing;
use super::oauth::Account;
use super::own::Streams;
use super::placed::Placed;
use super::reply::ServerReply;
use super::sharing::{self, Joined};
use super::slot::{Idle, Lease, ServerState, Slot};
use super::subscription::SubscribeError;
use super::{CallError, ConnectError, INSTALLING, UpstreamContext};
use crate::config::{Config, Placement, Server, Transport, Trust};
use crate::telemetry;
use crate::tool::ServerName;

/// The time by which a limit of several steps is longer than that of its first one, so that the step's own error is seen.
const MARGIN: Duration = Duration::from_secs(1);

/// All configured servers, with their connections.
pub(crate) struct Pool {
    context: Arc<UpstreamContext>,
    servers: RwLock<BTreeMap<ServerName, Joined>>,
    pub(super) audience: Arc<dyn Audience>,
    /// The number of clients that wait for a server to be connected.
    urgent: watch::Sender<usize>,
}

/// Marks that a client waits for a server to be connected, until it is dropped.
#[derive(Debug)]
pub(crate) struct Urgent(watch::Sender<usize>);

impl Drop for Urgent {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

/// The known state of a server, without asking it.
#[derive(Debug, Clone)]
pub(crate) struct ServerStatus {
    /// The server's name.
    pub server: ServerName,
    /// Equal for sessions that share its connections.
    pub instance: usize,
    /// The number of its open connections.
    pub connections: usize,
    /// The state of its connection.
    pub state: ServerState,
    /// How its process is shared with other sessions; `None` if this run has its own.
    pub sharing: Option<String>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// The package that is started for `entry` in place of its runner, with its version.
    #[must_use]
    pub(crate) fn fetched_version(&self, entry: &Server) -> Option<String> {
        let Transport::Stdio(stdio) = &entry.transport else {
            return None;
        };
        super::fetched_version(
            self.context.packages.as_deref()?,
            stdio,
            &self.context.variables,
        )
    }

    /// Creates a pool without servers; [`Pool::configure`] adds them. `audience` receives the servers' own messages.
    #[must_use]
    pub(crate) fn new(context: UpstreamContext, audience: Arc<dyn Audience>) -> Self {
        Self {
            context: Arc::new(context),
            servers: RwLock::default(),
            audience,
            urgent: watch::Sender::new(0),
        }
    }

    /// Learns from the whole configuration which directories servers may change, also those outside of this pool.
    pub(crate) fn note_whole(&self, config: &Config) {
        self.context.sandboxes.note(config);
    }

    /// Applies the servers of `config`. Connections of unchanged entries stay open; those of changed or removed
    /// entries close after their last call. Every server starts from here, so the log masker learns the secrets here.
    pub(crate) fn configure(&self, config: &Config) {
        telemetry::hide(&config.masker);
        let mut servers = self.servers.write();
        let mut next = BTreeMap::new();
        for (server, entry) in &config.servers {
            let kept = match servers.remove(server) {
                Some(joined) if joined.entry == *entry => joined,
                old => {
                    if let Some(old) = old {
                        old.retire();
                    }
                    let shared = &self.context.servers;
                    let idle = Idle::of(entry, config);
                    shared.join(server, entry, idle, &self.context, &self.audience)
                }
            };
            next.insert(server.clone(), kept);
        }
        let removed = std::mem::replace(&mut *servers, next);
        removed.into_values().for_each(Joined::retire);
    }

    /// The cache key of a server's list: the hash of its entry, with the directory if the list depends on it.
    #[must_use]
    pub(crate) fn list_key(&self, entry: &Server) -> String {
        sharing::list_key(entry, &self.context)
    }

    /// The status of every server, by name.
    #[must_use]
    pub(crate) fn status(&self) -> Vec<ServerStatus> {
        let servers = self.servers.read();
        servers
            .iter()
            .map(|(server, joined)| ServerStatus {
                server: server.clone(),
                instance: Arc::as_ptr(&joined.slots) as usize,
                connections: joined.slots.connections(),
                state: joined.slots.state(),
                sharing: joined.sharing(),
            })
            .collect()
    }

    /// Makes the next connection to `server` try the modern era first, because it spoke that last time.
    pub(crate) fn remember_modern(&self, server: &ServerName) {
        if let Some(joined) = self.servers.read().get(server) {
            joined.slots.first.remember_modern();
        }
    }

    /// The configured time limit of a call of `server`, if it has its own.
    #[must_use]
    pub(crate) fn timeout_of(&self, server: &ServerName) -> Option<Duration> {
        self.servers.read().get(server)?.entry.timeout
    }

    /// Host and port of an HTTP server; `None` for stdio servers.
    #[must_use]
    pub(crate) fn address_of(&self, server: &ServerName) -> Option<(String, Option<u16>)> {
        let servers = self.servers.read();
        match &servers.get(server)?.entry.transport {
            Transport::Http(remote) | Transport::Sse(remote) => {
                let url = reqwest::Url::parse(&remote.url).ok()?;
                Some((url.host_str()?.to_owned(), url.port_or_known_default()))
            }
            Transport::Stdio(_) | Transport::Folder(_) => None,
        }
    }

    /// The time limit for connecting `server` and then doing something that takes up to `limit`.
    #[must_use]
    pub(crate) fn connected_within(&self, server: &ServerName, limit: Duration) -> Duration {
        let servers = self.servers.read();
        let Some(joined) = servers.get(server) else {
            return limit;
        };
        // `limit` already includes the usual connection time. The handshake's own end comes first, because its error says more.
        let usual = self.context.handshake_limit;
        limit
            + MARGIN
            + self
                .context
                .handshake_limit_of(&joined.entry.transport)
                .saturating_sub(usual)
    }

    /// The time limit for each page of the tools of `server`: `limit`, or longer if the tools come from the help of a program.
    #[must_use]
    pub(crate) fn pages_within(&self, server: &ServerName, limit: Duration) -> Duration {
        let servers = self.servers.read();
        let transport = servers.get(server).map(|joined| &joined.entry.transport);
        match transport {
            Some(Transport::Stdio(stdio)) if stdio.reads_help() => limit * INSTALLING,
            _ => limit,
        }
    }

    /// Whether the last attempt to connect `server` failed because a login is missing.
    #[must_use]
    pub(crate) fn wants_login(&self, server: &ServerName) -> bool {
        let servers = self.servers.read();
        let state = servers.get(server).map(|joined| joined.slots.state());
        matches!(state, Some(ServerState::Failed { error, .. }) if error.wants_login())
    }

    /// The login at `server`, if it may need one.
    #[must_use]
    pub(crate) fn account(&self, server: &ServerName) -> Option<Account> {
        let entry = self.servers.read().get(server)?.entry.clone();
        Account::of_entry(server, &entry, &self.context).ok()?
    }

    /// Sends a request to a server. The call's limit applies once to connecting and once to the response. The request
    /// is repeated only if it cannot have acted, or, if `repeatable`, once after the connection was lost: a restarted
    /// server does not know the call.
    ///
    /// # Errors
    /// When no usable response arrives.
    pub(crate) async fn call(
        &self,
        server: &ServerName,
        call: &ServerCall<'_>,
        repeatable: bool,
    ) -> Result<ServerReply, CallError> {
        let (slot, user) = self.slot(server, call.host.as_deref())?;
        let _permit = if slot.is_limited() {
            Box::pin(slot.permit()).await?
        } else {
            None
        };
        let lease = match slot.lease_now(user) {
            Some(lease) => lease,
            None => Box::pin(self.lease_within(server, call)).await?,
        };
        if self.is_pinned(server, &lease) || call.agreed.is_some() {
            Box::pin(self.check_pins(server, &lease, call)).await?;
        }
        match lease.call(call).await {
            Ok(reply) if !lease.lacks_headers(&reply) => Ok(reply),
            outcome => Box::pin(self.call_again(server, call, repeatable, lease, outcome)).await,
        }
    }

    /// Decides the outcome of a call after its first attempt failed, or was refused for missing headers.
    async fn call_again(
        &self,
        server: &ServerName,
        call: &ServerCall<'_>,
        repeatable: bool,
        mut lease: Lease,
        mut outcome: Result<ServerReply, CallError>,
    ) -> Result<ServerReply, CallError> {
        let (mut may_resend, mut may_repeat) = (true, repeatable);
        loop {
            let error = match outcome {
                // The server refused it unprocessed, because of headers that the tool's schema requires.
                Ok(refusal) if lease.lacks_headers(&refusal) => {
                    return match lease.list_tools(server, call.limit).await {
                        Ok(_) => lease.call(call).await,
                        Err(_) => Ok(refusal),
                    };
                }
                outcome if lease.is_stopped() => return outcome,
                Err(error) if error.is_unsent() && std::mem::take(&mut may_resend) => error,
                Err(error) if error.is_lost() && std::mem::take(&mut may_repeat) => error,
                outcome => return outcome,
            };
            tracing::info!(%server, method = call.method, name = call.label(), %error, "calling once more");
            drop(lease);
            lease = self.lease_within(server, call).await?;
            self.check_pins(server, &lease, call).await?;
            outcome = lease.call(call).await;
        }
    }

    /// Gets a connection within `limit`. The start of a server may take longer and continues for the next call; this
    /// call does not wait for it.
    async fn lease_within(
        &self,
        server: &ServerName,
        call: &ServerCall<'_>,
    ) -> Result<Lease, CallError> {
        let _urgent = self.urgent();
        let lease =
            tokio::time::timeout(call.limit, self.lease(server, call.host.as_deref())).await;
        Ok(lease.map_err(|_| CallError::Connecting {
            server: server.clone(),
            limit: call.limit,
        })??)
    }

    /// Fetches a server's lists, with the time `limit` for each page of the tools. A connection that was opened for a
    /// `brief` listing only is closed afterwards.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not list its tools.
    pub(crate) async fn list(
        &self,
        server: &ServerName,
        limit: Duration,
        is_brief: bool,
    ) -> Result<Listing, ListError> {
        let mut lease = self.lease(server, None).await.map_err(CallError::from)?;
        let mut listed = lease.list(server, limit, lease.user).await;
        // The session may be gone.
        if matches!(&listed, Err(ListError::Call(error)) if error.is_unsent() && !lease.is_stopped())
        {
            lease = self.lease(server, None).await.map_err(CallError::from)?;
            listed = lease.list(server, limit, lease.user).await;
        }
        if is_brief {
            lease.close_unless_shared();
        }
        listed
    }

    /// Whether `server` has a live connection.
    #[must_use]
    pub(crate) fn is_connected(&self, server: &ServerName) -> bool {
        let servers = self.servers.read();
        let slots = servers.get(server).map(|joined| joined.slots.all());
        let mut slots = slots.into_iter().flatten();
        slots.any(|slot| slot.connection().is_some())
    }

    /// Keeps other servers from being started while a client waits for a server to be connected. Hold it while
    /// waiting.
    #[must_use]
    pub(crate) fn urgent(&self) -> Urgent {
        self.urgent.send_modify(|waiting| *waiting += 1);
        Urgent(self.urgent.clone())
    }

    /// Resolves when no client waits for a server to be connected.
    pub(crate) async fn quiet(&self) {
        let mut urgent = self.urgent.subscribe();
        // The sender lives as long as the pool.
        let _ = urgent.wait_for(|waiting| *waiting == 0).await;
    }

    /// Sets the resources and tasks of a server that this session follows. While there are any, the
    /// connection stays open.
    pub(crate) fn subscribe(&self, server: &ServerName, uris: BTreeSet<Followed>) {
        if let Some(joined) = self.servers.read().get(server) {
            joined.slots.follow(joined.user, uris);
        }
    }

    /// Waits until the subscription to one of those resources is confirmed, for at most `limit`.
    ///
    /// # Errors
    /// The reason why it is not.
    pub(crate) async fn subscribed(
        &self,
        server: &ServerName,
        uri: &str,
        limit: Duration,
    ) -> Result<(), SubscribeError> {
        let outcome = {
            let servers = self.servers.read();
            let subscriptions = servers
                .get(server)
                .and_then(|joined| joined.slots.subscriptions());
            subscriptions.map(|subscriptions| subscriptions.outcome(uri, limit))
        };
        match outcome {
            Some(outcome) => outcome.await,
            None => Err(SubscribeError::Removed),
        }
    }

    /// Sends the current log level to the connected servers; others get it when they connect. Of several sessions,
    /// the most verbose level counts; one that has set none gets all messages.
    pub(crate) fn set_log_level(&self) {
        let servers = self.servers.read();
        for joined in servers.values() {
            let level = joined.slots.users.log_level();
            let slots = joined.slots.all();
            let connections = slots.iter().filter_map(|slot| slot.connection());
            // A client that has set none would miss what others do not want. Without them the server keeps its own level.
            for connection in connections.filter(|one| level.is_some() || one.has_log_level()) {
                let tasks = &self.context.tasks;
                tasks.spawn(async move { connection.set_log_level(level).await });
            }
        }
    }

    /// Ends the connections of `server` now, for all sessions that share them, and cancels attempts to open one. Returns
    /// whether there was any.
    pub(crate) fn stop(&self, server: &ServerName) -> bool {
        let slots = self
            .servers
            .read()
            .get(server)
            .map(|joined| joined.slots.clone());
        slots.is_some_and(|slots| slots.stop())
    }

    /// Reaches servers that run at one of several replicas through `homes` from now on.
    pub(crate) fn join_homes(&self, homes: Arc<dyn Homes>) {
        // A run has them from its start.
        let _ = self.context.homes.set(homes);
    }

    /// Starts a server here for all replicas.
    ///
    /// # Errors
    /// The reason, for a person.
    pub(crate) async fn start_placed(&self, wanted: &Wanted) -> Result<Arc<Placed>, String> {
        let server = &wanted.server;
        let entry = self
            .servers
            .read()
            .get(server)
            .map(|joined| joined.entry.clone());
        let entry = entry.filter(|entry| {
            let is_same = entry.hash.to_string() == wanted.entry;
            is_same && entry.placement == Placement::One && !entry.disabled
        });
        let may_start =
            |entry: &Server| entry.trust != Trust::Unstarted || self.audience.may_start(server);
        let Some(entry) = entry.filter(may_start) else {
            return Err(format!(
                "the replica that should run it has no such entry of `{server}`: the configurations of the replicas must be the same, also the variables in them"
            ));
        };
        let Transport::Stdio(stdio) = &entry.transport else {
            return Err("it has no `command`".to_owned());
        };
        let most = entry.calls_at_once().map(NonZeroUsize::get);
        let started = Placed::start(&self.context, server, stdio, most).await;
        started.map_err(|error| error.to_string())
    }

    /// A new connection to a process of [`Self::start_placed`]; `None` if that ends.
    pub(crate) fn attach_placed(&self, placed: &Arc<Placed>) -> Option<(Streams, u64)> {
        placed.attach(&self.context)
    }

    /// How long ago a new process of `server` replaced one that ended with its replica; `None` if the client need not know of it now.
    #[must_use]
    pub(crate) fn moved(&self, server: &ServerName, session: Option<&str>) -> Option<Duration> {
        let slot = {
            let servers = self.servers.read();
            let joined = servers.get(server)?;
            (joined.entry.placement == Placement::One).then(|| joined.slots.first.clone())?
        };
        let connection = slot.connection()?;
        let moved = connection.moved.as_ref()?;
        moved.concerns(session).then(|| moved.age())
    }

    /// Ends the servers that no other session uses. In a run of its own, connections end with its tasks.
    pub(crate) async fn close(&self) {
        let servers = std::mem::take(&mut *self.servers.write());
        drop(servers);
        self.context.servers.left().await;
    }

    /// A connection for a request of `host`; without a host, any connection.
    async fn lease(
        &self,
        server: &ServerName,
        host: Option<&dyn Host>,
    ) -> Result<Lease, Arc<ConnectError>> {
        let declared = host.map_or_else(|| self.audience.capabilities().into(), Host::declared);
        let (slot, user) = self.slot(server, host)?;
        slot.lease(user, declared).await
    }

    /// A slot for a request of `host`, and this session's id among the users of the server.
    fn slot(
        &self,
        server: &ServerName,
        host: Option<&dyn Host>,
    ) -> Result<(Arc<Slot>, u64), Arc<ConnectError>> {
        let servers = self.servers.read();
        let joined = servers.get(server).ok_or_else(|| {
            Arc::new(ConnectError::Unknown {
                server: server.clone(),
            })
        })?;
        if joined.entry.trust == Trust::Unstarted && !self.audience.may_start(server) {
            return Err(Arc::new(ConnectError::Unapproved {
                server: server.clone(),
            }));
        }
        if let (Some(remote), None) = (joined.entry.remote(), &self.context.person)
            && !remote.identity.is_shared()
        {
            return Err(Arc::new(ConnectError::NoPerson {
                server: server.clone(),
                identity: remote.identity.word(),
            }));
        }
        let slot = joined.slots.suiting(host.map(Host::declared));
        Ok((slot, joined.user))
    }
}
