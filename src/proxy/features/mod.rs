//! Prompts, resources and completions.

mod completion;
mod extensions;
mod forward;
mod not_found;
pub(in crate::proxy) mod page;
mod prompts;
mod resources;
mod skills;
mod subscriptions;
mod uri;

pub(crate) use self::uri::disambiguated as told_apart;

use std::sync::Arc;

use self::page::List;
use self::prompts::PROMPTS;
use self::resources::{RESOURCES, TEMPLATES};
use super::Reply;
use super::callers::Callers;
use super::callers::caller::Caller;
use super::inventory::Inventory;
use super::ledger::{Ledger, Reached, RequestEvent};
use super::relay::Relay;
use super::view::View;
use crate::audit::Kind;
use crate::limits::Limits;
use crate::mcp::Object;
use crate::shutdown::Tasks;
use crate::upstream::Pool;

/// Answers requests for prompts, resources and completions, and manages resource subscriptions.
#[derive(Debug)]
pub(super) struct Features {
    callers: Arc<Callers>,
    inventory: Arc<Inventory>,
    relay: Arc<Relay>,
    pool: Arc<Pool>,
    ledger: Arc<Ledger>,
    limits: Arc<Limits>,
    tasks: Tasks,
}

impl Features {
    pub(super) fn new(
        callers: Arc<Callers>,
        inventory: Arc<Inventory>,
        relay: Arc<Relay>,
        pool: Arc<Pool>,
        ledger: Arc<Ledger>,
        limits: Arc<Limits>,
        tasks: &Tasks,
    ) -> Arc<Self> {
        let features = Arc::new(Self {
            callers,
            inventory,
            relay,
            pool,
            ledger,
            limits,
            tasks: tasks.clone(),
        });
        let keep = subscriptions::keep(Arc::downgrade(&features));
        tasks.spawn(tasks.stop().clone().run_until_cancelled_owned(keep));
        features
    }

    /// Answers a request for prompts, resources or completions, or of an extension; `None` for other methods, and if the configuration
    /// exposes none of them.
    pub(in crate::proxy) async fn answer(
        &self,
        view: &View,
        caller: &Caller,
        method: &str,
        params: &Object<'_>,
    ) -> Option<Reply> {
        let exposed = view.config().exposes_any();
        let legacy = !caller.revision.is_modern();
        let list = |list: List| self.page(view, caller, params, list);
        Some(match method {
            "prompts/list" if exposed.prompts => list(PROMPTS).await,
            "prompts/get" if exposed.prompts => {
                self.audited(Kind::Prompt, view, caller, params).await
            }
            "resources/list" if exposed.resources => list(RESOURCES).await,
            "resources/templates/list" if exposed.resources => list(TEMPLATES).await,
            "resources/read" if exposed.resources => {
                self.audited(Kind::Resource, view, caller, params).await
            }
            "resources/subscribe" if exposed.resources && legacy => {
                self.subscribe(view, caller, params).await
            }
            "resources/unsubscribe" if exposed.resources && legacy => {
                self.unsubscribe(caller, params)
            }
            "completion/complete" if exposed.prompts || exposed.resources => {
                self.complete(view, caller, params).await
            }
            _ => {
                let skill = match exposed.resources {
                    true => self.answer_skills(view, caller, method, params).await,
                    false => None,
                };
                return match skill {
                    Some(reply) => Some(reply),
                    None => Box::pin(self.answer_extension(view, caller, method, params)).await,
                };
            }
        })
    }

    /// Gets a prompt or reads a resource, with a line in the audit log if there is one.
    async fn audited(
        &self,
        kind: Kind,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
    ) -> Reply {
        let reached = Reached::default();
        let event = self
            .ledger
            .audit()
            .map(|audit| RequestEvent::begin(audit, kind, (view, caller), params, &reached));
        let event = match event.transpose() {
            Ok(event) => event,
            Err(refusal) => return refusal,
        };
        let reply = match kind {
            Kind::Resource => self.read_resource(view, caller, params, &reached).await,
            _ => self.get_prompt(view, caller, params, &reached).await,
        };
        match event {
            Some(event) => event.end(reply).await,
            None => reply,
        }
    }
}
