//! Server name to connection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::connection::ServerCall;
use super::host::{Audience, Host};
use super::listing::{ListError, Listing};
use super::oauth::Account;
use super::reply::ServerReply;
use super::sharing::{self, Joined};
use super::slot::{Idle, Lease, Slot, State};
use super::subscription::{self, SubscribeError};
use super::{CallError, ConnectError, UpstreamContext};
use crate::config::{Config, Server, Transport};
use crate::telemetry;
use crate::tool::ServerName;

/// All configured servers and the connections to them.
pub(crate) struct Pool {
    environment: Arc<UpstreamContext>,
    servers: RwLock<BTreeMap<ServerName, Joined>>,
    pub(super) audience: Arc<dyn Audience>,
    /// How many clients wait for a server to be connected.
    urgent: watch::Sender<usize>,
}

/// A client waits for a server to be connected, until this is dropped.
#[derive(Debug)]
pub(crate) struct Urgent(watch::Sender<usize>);

impl Drop for Urgent {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

/// What is known of a server without asking it.
#[derive(Debug, Clone)]
pub(crate) struct ServerStatus {
    /// Its name.
    pub server: ServerName,
    /// Whether and how it can be reached.
    pub state: State,
    /// How its process is shared with other sessions; `None` in a run of its own.
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
    /// A pool without servers; [`Pool::configure`] brings them. `audience` hears what servers say by themselves.
    #[must_use]
    pub(crate) fn new(environment: UpstreamContext, audience: Arc<dyn Audience>) -> Self {
        Self {
            environment: Arc::new(environment),
            servers: RwLock::default(),
            audience,
            urgent: watch::Sender::new(0),
        }
    }

    /// Takes over the servers of `config`. Connections of entries that stay the same stay; those of changed or
    /// removed ones close after their last call. Every server is started from here, so the logs learn the secrets here.
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
                    let shared = &self.environment.servers;
                    let idle = Idle::of(entry, config);
                    shared.join(server, entry, idle, &self.environment, &self.audience)
                }
            };
            next.insert(server.clone(), kept);
        }
        let removed = std::mem::replace(&mut *servers, next);
        removed.into_values().for_each(Joined::retire);
    }

    /// The name under which the list of a server is kept: its entry, and the directory if the list is known to depend on that.
    #[must_use]
    pub(crate) fn list_key(&self, entry: &Server) -> String {
        sharing::list_key(entry, &self.environment)
    }

    /// Every server, by name.
    #[must_use]
    pub(crate) fn status(&self) -> Vec<ServerStatus> {
        let servers = self.servers.read();
        servers
            .iter()
            .map(|(server, joined)| ServerStatus {
                server: server.clone(),
                state: joined.slots.state(),
                sharing: joined.sharing(),
            })
            .collect()
    }

    /// Opens `server` in the modern era first, as it was when it was last spoken with.
    pub(crate) fn remember_modern(&self, server: &ServerName) {
        if let Some(joined) = self.servers.read().get(server) {
            joined.slots.first.remember_modern();
        }
    }

    /// The time a call of `server` may take by configuration, if it has its own.
    #[must_use]
    pub(crate) fn timeout_of(&self, server: &ServerName) -> Option<Duration> {
        self.servers.read().get(server)?.entry.timeout
    }

    /// Host and port of a server behind HTTP; nothing of one that is a process of ours.
    #[must_use]
    pub(crate) fn address_of(&self, server: &ServerName) -> Option<(String, Option<u16>)> {
        let servers = self.servers.read();
        match &servers.get(server)?.entry.transport {
            Transport::Http(remote) | Transport::Sse(remote) => {
                let url = reqwest::Url::parse(&remote.url).ok()?;
                Some((url.host_str()?.to_owned(), url.port_or_known_default()))
            }
            Transport::Stdio(_) => None,
        }
    }

    /// How long `server` may take to be connected and then, for `limit`, to do something.
    #[must_use]
    pub(crate) fn connected_within(&self, server: &ServerName, limit: Duration) -> Duration {
        let servers = self.servers.read();
        let Some(joined) = servers.get(server) else {
            return limit;
        };
        // What connecting usually takes is a part of the limit.
        let usual = self.environment.handshake_limit;
        limit
            + self
                .environment
                .handshake_limit_of(&joined.entry.transport)
                .saturating_sub(usual)
    }

    /// Whether `server` could not be reached for want of a login when it was last tried.
    #[must_use]
    pub(crate) fn wants_login(&self, server: &ServerName) -> bool {
        let servers = self.servers.read();
        let state = servers.get(server).map(|joined| joined.slots.state());
        matches!(state, Some(State::Failed { error, .. }) if error.wants_login())
    }

    /// The login at `server`, where it is one that may want it.
    #[must_use]
    pub(crate) fn account(&self, server: &ServerName) -> Option<Account> {
        let entry = self.servers.read().get(server)?.entry.clone();
        Account::of_entry(server, &entry, &self.environment).ok()?
    }

    /// Sends a request to a server, which has the call's limit to be connected, and again to answer. It is sent once more
    /// only when it cannot have acted, and once more when `repeatable`
    /// and the connection went away: a server that restarts knows neither the call nor the session of the next one.
    ///
    /// # Errors
    /// When no usable answer comes.
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
        if lease.is_pinned() {
            Box::pin(self.check_pins(server, &lease, call)).await?;
        }
        match lease.call(call).await {
            Ok(reply) if !lease.lacks_headers(&reply) => Ok(reply),
            outcome => Box::pin(self.call_again(server, call, repeatable, lease, outcome)).await,
        }
    }

    /// What becomes of a call whose first attempt came to nothing, or to a refusal for missing headers.
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
                // It was refused before it was looked into, for headers that the tool's schema asks for.
                Ok(refusal) if lease.lacks_headers(&refusal) => {
                    return match lease.list_tools(server, call.limit).await {
                        Ok(_) => lease.call(call).await,
                        Err(_) => Ok(refusal),
                    };
                }
                Err(error) if error.is_unsent() && std::mem::take(&mut may_resend) => error,
                Err(error) if error.is_lost() && std::mem::take(&mut may_repeat) => error,
                outcome => return outcome,
            };
            tracing::info!(%server, method = call.method, name = call.name, %error, "calling once more");
            drop(lease);
            lease = self.lease_within(server, call).await?;
            self.check_pins(server, &lease, call).await?;
            outcome = lease.call(call).await;
        }
    }

    /// The start of a server takes its own time, and is worth that for the next call; this one need not wait for it.
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

    /// Lists what a server has, its tools within `limit` for each page; a connection that was made for a `brief` listing
    /// alone is closed after it.
    ///
    /// # Errors
    /// When it cannot be reached, or does not list its tools.
    pub(crate) async fn list(
        &self,
        server: &ServerName,
        limit: Duration,
        is_brief: bool,
    ) -> Result<Listing, ListError> {
        let mut lease = self.lease(server, None).await.map_err(CallError::from)?;
        let mut listed = lease.list(server, limit, lease.user).await;
        // A session that is gone, say.
        if matches!(&listed, Err(ListError::Call(error)) if error.is_unsent()) {
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

    /// To be held while a client waits for a server to be connected: other servers are not started meanwhile.
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

    /// Follows these resources of a server, by its own URIs, and no others; where there are any, its connection is kept.
    pub(crate) fn subscribe(&self, server: &ServerName, uris: BTreeSet<String>) {
        if let Some(joined) = self.servers.read().get(server) {
            joined.slots.follow(joined.user, uris);
        }
    }

    /// Waits until the subscription to one of those resources stands, at most for `limit`.
    ///
    /// # Errors
    /// With the reason why it does not.
    pub(crate) async fn subscribed(
        &self,
        server: &ServerName,
        uri: &str,
        limit: Duration,
    ) -> Result<(), SubscribeError> {
        let outcomes = {
            let servers = self.servers.read();
            let joined = servers.get(server);
            joined.and_then(|joined| joined.slots.outcomes())
        };
        match outcomes {
            Some(outcomes) => subscription::outcome(outcomes, uri, limit).await,
            None => Err(SubscribeError::Removed),
        }
    }

    /// Tells the connected servers from which level on log messages are wanted now; those that connect later are told then. Of several
    /// sessions the one that wants most decides.
    pub(crate) fn set_log_level(&self) {
        let servers = self.servers.read();
        for joined in servers.values() {
            let Some(level) = joined.slots.users.log_level() else {
                continue;
            };
            let slots = joined.slots.all();
            for connection in slots.iter().filter_map(|slot| slot.connection()) {
                let tasks = &self.environment.tasks;
                tasks.spawn(async move { connection.set_log_level(level).await });
            }
        }
    }

    /// Ends what no other session uses; connections of a run of its own end with its tasks.
    pub(crate) async fn close(&self) {
        let servers = std::mem::take(&mut *self.servers.write());
        drop(servers);
        self.environment.servers.left().await;
    }

    /// A connection on which a request for `host` can go; for nobody in particular, any will do.
    async fn lease(
        &self,
        server: &ServerName,
        host: Option<&dyn Host>,
    ) -> Result<Lease, Arc<ConnectError>> {
        let capabilities = host.map_or_else(|| self.audience.capabilities(), Host::capabilities);
        let (slot, user) = self.slot(server, host)?;
        slot.lease(user, capabilities).await
    }

    /// A slot for a request for `host`, and this session's number among its users.
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
        let slot = joined.slots.suiting(host.map(Host::capabilities));
        Ok((slot, joined.user))
    }
}
