//! What clients see of the servers beside their tools: which method is answered where, and how a request goes on to the
//! server it is for.

use super::page::List;
use super::prompts::PROMPTS;
use super::resources::{RESOURCES, TEMPLATES};
use crate::config::Config;
use crate::mcp::Object;
use crate::proxy::view::View;
use crate::proxy::{Caller, Change, Mode, Proxy, Reply};

impl Proxy {
    /// Answers a request for prompts, resources or completions; `None` for any other method, and where the configuration
    /// shows none of them.
    pub(in crate::proxy) async fn answer_list(
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
            "prompts/get" if exposed.prompts => self.get_prompt(view, caller, params).await,
            "resources/list" if exposed.resources => list(RESOURCES).await,
            "resources/templates/list" if exposed.resources => list(TEMPLATES).await,
            "resources/read" if exposed.resources => self.read_resource(view, caller, params).await,
            "resources/subscribe" if exposed.resources && legacy => {
                self.subscribe(view, caller, params).await
            }
            "resources/unsubscribe" if exposed.resources && legacy => {
                self.unsubscribe(caller, params)
            }
            "completion/complete" if exposed.prompts || exposed.resources => {
                self.complete(view, caller, params).await
            }
            _ => return None,
        })
    }

    /// Tells the clients which of the lists that they see have changed, and has what they follow looked up anew.
    pub(in crate::proxy) fn lists_changed(&self, changes: &[Change]) {
        let exposed = self.unscoped().config().exposes_any();
        for change in changes {
            let is_shown = match change {
                Change::Tools => self.mode == Mode::Direct,
                Change::Prompts => exposed.prompts,
                Change::Resources | Change::Resource { .. } => exposed.resources,
            };
            if is_shown {
                self.audience.tell(change);
            }
        }
        self.audience.interests_changed();
    }
}

/// Which lists look different because the configuration shows others.
pub(in crate::proxy) fn changes(before: &Config, now: &Config) -> &'static [Change] {
    let shown = |config: &Config| -> Vec<_> {
        config
            .servers
            .keys()
            .map(|server| config.exposes(server))
            .collect()
    };
    if shown(before) == shown(now) {
        &[]
    } else {
        &[Change::Prompts, Change::Resources]
    }
}
