//! A request of a person to the window, and what it may reach.

use std::sync::Arc;

use axum::body::to_bytes;
use serde_json::{Value, json};

use crate::config::{Entitlement, Subject};
use crate::downstream::Exchange;
use crate::downstream::http::admission::Admission;
use crate::downstream::http::answer::{PostedRequest, answer};
use crate::downstream::http::forms::Forms;
use crate::downstream::http::logins::Visitor;
use crate::downstream::http::sessions::ClientSession;
use crate::downstream::http::shared::Shared;
use crate::downstream::http::stream::Stream;
use crate::downstream::session::{CAPABILITIES_KEY, CLIENT_KEY, REVISION_KEY};
use crate::limits::Exceeded;
use crate::mcp::Outbox;
use crate::proxy::{Proxies, Proxy};

/// The name of the window among clients.
const CLIENT: &str = "mcpzip-window";

/// The largest answer to a call, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;

/// A request of a person to the window.
#[derive(Debug)]
pub(crate) struct Visit {
    shared: Arc<Shared>,
    visitor: Visitor,
}

impl Visit {
    pub(super) fn new(shared: Arc<Shared>, visitor: Visitor) -> Self {
        Self { shared, visitor }
    }

    /// The person, and their part of the configuration.
    pub(crate) fn entitlement(&self) -> &Arc<Entitlement> {
        self.visitor.entitlement()
    }

    /// Whether the person manages the gateway.
    pub(crate) fn manages(&self) -> bool {
        self.visitor.pass().manages()
    }

    /// All proxies of the gateway.
    pub(crate) fn proxies(&self) -> &Arc<Proxies> {
        &self.shared.proxies
    }

    /// The person's own proxy.
    ///
    /// # Errors
    /// When a profile cannot be used.
    pub(crate) fn proxy(&self) -> Result<Arc<Proxy>, String> {
        let own = self
            .shared
            .proxies
            .of(None, CLIENT, Some(self.entitlement()));
        own.map_err(|_| "your profile cannot be used; the administrator of the gateway has to correct the configuration".to_owned())
    }

    /// Whether a proxy in front says with each request who it is from.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.visitor.pass().is_forwarded()
    }

    /// The time since which the person has had their identity, in seconds since 1970, if it is known. Older records may be another person's.
    pub(crate) fn since(&self) -> Option<u64> {
        let authenticator = self.shared.access.authenticator.as_ref()?;
        authenticator.since(&self.entitlement().identity)
    }

    /// Does work that blocks, without holding up the other clients; `None` when the gateway ends. The work goes on when the future is dropped.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.shared.tasks.spawn_blocking(work).await.ok()
    }

    /// Counts a request of the person, as one over MCP.
    ///
    /// # Errors
    /// When there were too many.
    pub(crate) async fn admit(&self) -> Result<(), Exceeded> {
        let entitlement = self.entitlement();
        let subject = Subject::Person(entitlement.person.clone());
        let limits = &self.shared.main().limits;
        let whole = self.shared.proxies.whole();
        limits.admit(&whole, &subject, &entitlement.identity).await
    }

    /// Sends a request as a client of the person does, which uses the meta-tools. Dropping the future cancels it.
    ///
    /// # Errors
    /// With the reason if there is no result.
    pub(crate) async fn ask(&self, method: &str, mut params: Value) -> Result<Value, String> {
        let proxy = self.proxy()?;
        let admission = Admission {
            profile: None,
            pass: Some(self.visitor.pass().clone()),
            arrival: None,
        };
        let session = admission.session(proxy, &self.shared.tasks);
        session.uses_meta_tools();
        params["_meta"] = json!({
            REVISION_KEY: "2026-07-28",
            CAPABILITIES_KEY: {},
            CLIENT_KEY: { "name": CLIENT, "version": env!("CARGO_PKG_VERSION") },
        });
        let line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let outbox = Outbox::within(self.shared.outgoing.clone());
        let exchange = Exchange::Own {
            outbox: outbox.clone(),
            passed: None,
            params: None,
            scopes: admission.scopes().cloned(),
        };
        session.receive(&line.to_string().into(), &exchange);
        let question = PostedRequest {
            id: None,
            is_modern: true,
            forms: Forms {
                json: true,
                events: false,
            },
            pass: admission.pass.as_deref(),
        };
        let response = answer(&self.shared, Stream::cancelling(outbox, session), question).await;
        let body = to_bytes(response.into_body(), LARGEST).await;
        let body = body.map_err(|_| "the answer is too large for the window".to_owned())?;
        let mut answer: Value = serde_json::from_slice(&body)
            .map_err(|_| "the call ended without an answer".to_owned())?;
        match answer["error"]["message"].as_str() {
            Some(message) => Err(message.to_owned()),
            None => Ok(answer["result"].take()),
        }
    }

    /// The sessions of clients: all of them, or those of the person.
    pub(crate) fn sessions(&self) -> Vec<ClientSession> {
        let mut sessions = self.shared.sessions.list();
        let own = self.visitor.identity();
        if !self.manages() {
            let limit = &self.entitlement().limit;
            sessions.retain(|session| {
                let is_within = limit.is_none() || session.limit == *limit;
                session.identity.as_deref() == Some(own) && is_within
            });
        }
        sessions
    }

    /// Ends the session of the browser. Returns whether it was in one.
    pub(crate) fn leave(&self) -> bool {
        self.shared.logins.browsers.close(&self.visitor);
        self.visitor.is_in_session()
    }

    /// Whether there still is a window, and the browser's session is still open, which this counts as a use of.
    pub(crate) fn is_current(&self) -> bool {
        super::is_on(&self.shared) && self.shared.logins.browsers.is_open(&self.visitor)
    }

    /// Waits until the identity does not count any more, or the gateway ends.
    pub(crate) async fn ended(&self) {
        tokio::select! {
            () = self.visitor.pass().ended() => {}
            () = self.shared.tasks.stopped() => {}
        }
    }
}
