//! The state that all HTTP requests share.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use axum::http::StatusCode;
use serde_json::value::RawValue;

use super::access::Access;
use super::admission::Admission;
use super::draining::Draining;
use super::logins::Logins;
use super::refusal::Refusal;
use super::sessions::Sessions;
use crate::downstream::Session;
use crate::downstream::session::name_of;
use crate::mcp::ByteBudget;
use crate::proxy::{Proxies, Proxy};
use crate::replicas::{ClientOfReplica, Replicas};
use crate::shutdown::Tasks;
use crate::store::Records;

/// The state that all HTTP requests share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) proxies: Arc<Proxies>,
    pub(super) tasks: Tasks,
    pub(super) access: Arc<Access>,
    pub(super) sessions: Arc<Sessions>,
    /// The budget for incoming messages, until they are answered.
    pub(super) incoming: ByteBudget,
    /// The budget for messages that wait for clients.
    pub(super) outgoing: ByteBudget,
    pub(super) was_ready: AtomicBool,
    /// The store that replicas share.
    pub(super) store: Option<Arc<dyn Records>>,
    pub(super) draining: Draining,
    /// The browsers on the page of logins, and the logins that they have begun.
    pub(super) logins: Logins,
    /// The other replicas of the gateway, if there may be some.
    pub(super) replicas: Option<Arc<Replicas>>,
}

impl Shared {
    /// The proxy of the run's own profiles.
    pub(super) fn main(&self) -> &Arc<Proxy> {
        self.proxies.main()
    }

    /// A new session of the client that was let in. `name` is that of the session at all replicas, if there are several.
    pub(super) fn session(
        &self,
        admission: &Admission,
        proxy: Arc<Proxy>,
        name: Option<String>,
    ) -> Arc<Session> {
        let session = admission.session(proxy, &self.tasks);
        if let Some(replicas) = &self.replicas {
            let client = ClientOfReplica::new(replicas.clone(), admission.hash(), name);
            session.join_replicas(client, self.draining.token().clone());
        }
        session
    }

    /// The proxy for the client with this name, as it was let in.
    ///
    /// # Errors
    /// When a profile of the client cannot be used; the log has the reason.
    pub(super) fn proxy(
        &self,
        admission: &Admission,
        client: Option<&RawValue>,
    ) -> Result<Arc<Proxy>, Refusal> {
        let name = client.and_then(name_of).unwrap_or_default();
        let (profile, entitlement) = (admission.profile.as_deref(), admission.entitlement());
        let proxy = self.proxies.of(profile, &name, entitlement);
        proxy.map_err(|refusal| {
            tracing::error!(client = name, %refusal, "a client is refused");
            Refusal::new(
                StatusCode::FORBIDDEN,
                "the profile of this client cannot be used; the user has to correct the configuration",
            )
        })
    }
}
