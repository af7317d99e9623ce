//! Server name to connection.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::connection::{Reply, ToolCall};
use super::listing::{ListError, Listing};
use super::slot::{Lease, OnToolsChanged, Slot, State};
use super::{CallError, ConnectError, Environment};
use crate::config::Config;
use crate::tool::ServerName;

/// All configured servers and the connections to them.
pub struct Pool {
    environment: Arc<Environment>,
    slots: RwLock<BTreeMap<ServerName, Arc<Slot>>>,
    on_tools_changed: OnToolsChanged,
}

/// What is known of a server without asking it.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    /// Its name.
    pub server: ServerName,
    /// Whether and how it can be reached.
    pub state: State,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool without servers; [`Pool::configure`] brings them. `on_tools_changed` is told when a server says that its
    /// tools have changed; it must not block.
    #[must_use]
    pub fn new(environment: Environment, on_tools_changed: OnToolsChanged) -> Self {
        Self { environment: Arc::new(environment), slots: RwLock::default(), on_tools_changed }
    }

    /// Takes over the servers of `config`. Connections of entries that stay the same stay; those of changed or
    /// removed ones close after their last call.
    pub fn configure(&self, config: &Config) {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = BTreeMap::new();
        for (server, entry) in &config.servers {
            let slot = match slots.remove(server) {
                Some(slot) if slot.entry == *entry => slot,
                old => {
                    if let Some(old) = old {
                        old.retire();
                    }
                    let changed = self.on_tools_changed.clone();
                    Slot::new(server.clone(), entry.clone(), config.idle_timeout, changed)
                }
            };
            next.insert(server.clone(), slot);
        }
        let removed = std::mem::replace(&mut *slots, next);
        removed.into_values().for_each(|slot| slot.retire());
    }

    /// Every server, by name.
    #[must_use]
    pub fn status(&self) -> Vec<ServerStatus> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.values().map(|slot| ServerStatus { server: slot.server.clone(), state: slot.state() }).collect()
    }

    /// The time a call of `server` may take by configuration, if it has its own.
    #[must_use]
    pub fn timeout_of(&self, server: &ServerName) -> Option<Duration> {
        self.slot(server).ok()?.entry.timeout
    }

    /// Calls a tool. It is sent once more only when it cannot have acted, and once more when `repeatable` and the
    /// connection went away: a server that restarts knows neither the call nor the session of the next one.
    ///
    /// # Errors
    /// When no usable answer comes.
    pub async fn call(&self, server: &ServerName, call: ToolCall<'_>, repeatable: bool) -> Result<Reply, CallError> {
        let slot = self.slot(server)?;
        let _place = slot.place().await?;
        let (mut may_resend, mut may_repeat) = (true, repeatable);
        loop {
            let lease = slot.lease(&self.environment).await?;
            let error = match lease.call_tool(call.clone()).await {
                // It was refused before it was looked into, for headers that the tool's schema asks for.
                Ok(refusal) if lease.lacks_headers(&refusal) => {
                    return match lease.list_tools(server, call.limit).await {
                        Ok(_) => lease.call_tool(call).await,
                        Err(_) => Ok(refusal),
                    };
                }
                Err(error) if error.is_unsent() && std::mem::take(&mut may_resend) => error,
                Err(error) if error.is_lost() && std::mem::take(&mut may_repeat) => error,
                outcome => return outcome,
            };
            tracing::info!(%server, tool = %call.tool, %error, "calling once more");
        }
    }

    /// Lists the tools of a server, each page within `limit`.
    ///
    /// # Errors
    /// When it cannot be reached, or does not list.
    pub async fn list_tools(&self, server: &ServerName, limit: Duration) -> Result<Listing, ListError> {
        match self.connection(server).await?.list_tools(server, limit).await {
            // A session that is gone, say.
            Err(ListError::Call(error)) if error.is_unsent() => {
                self.connection(server).await?.list_tools(server, limit).await
            }
            listed => listed,
        }
    }

    /// Waits until the guard has ended; connections end with the tasks of the run.
    pub async fn close(&self) {
        self.environment.guard.close().await;
    }

    async fn connection(&self, server: &ServerName) -> Result<Lease, CallError> {
        Ok(self.slot(server)?.lease(&self.environment).await?)
    }

    fn slot(&self, server: &ServerName) -> Result<Arc<Slot>, Arc<ConnectError>> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(server).cloned().ok_or_else(|| Arc::new(ConnectError::Unknown { server: server.clone() }))
    }
}
