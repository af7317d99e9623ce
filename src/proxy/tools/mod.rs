//! The tools that clients see: the three meta-tools, with some tools of servers next to them, or every tool directly.

mod builtin;
pub(in crate::proxy) mod call;
pub(in crate::proxy) mod definitions;
mod describe;
mod direct;
mod execute;
mod find;
mod folder;
mod habits;
pub(in crate::proxy) mod listable;
mod portable;
mod rendered;
mod reranking;
mod script;
pub(in crate::proxy) mod search;
mod shown;
mod skill;
mod tasks;
mod types;

use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures_util::future::BoxFuture;

use self::builtin::Builtin;
use self::call::Schemas;
use self::direct::DirectNames;
use self::listable::Listables;
use self::rendered::Rendered;
use self::reranking::Reranking;
use self::skill::RefusedSkills;
use self::tasks::{TaskIds, Watches};
use super::answers::{Answers, counting};
use super::callers::caller::Caller;
use super::inventory::Inventory;
use super::ledger::Ledger;
use super::relay::Relay;
use super::view::{Mode, View};
use super::{Directories, Proxy, Reply};
use crate::config::{Config, Environment};
use crate::limits::Limits;
use crate::mcp::Object;
use crate::scripts::Running;
use crate::search::Habits;
use crate::shutdown::Tasks;
use crate::statistics::Statistics;
use crate::tool::tokens_of;

pub(in crate::proxy) use self::builtin::tools as own_tools;
pub(crate) use self::tasks::TaskWatch;

/// Lists and calls tools.
#[derive(Debug)]
pub(crate) struct Tools {
    inventory: Arc<Inventory>,
    relay: Arc<Relay>,
    answers: Arc<Answers>,
    schemas: Schemas,
    reranking: Reranking,
    rendered: Rendered,
    habits: Arc<Habits>,
    direct_names: DirectNames,
    listables: Listables,
    refused_skills: RefusedSkills,
    scripts: Running,
    builtin: Builtin,
    /// The audit log of calls and related events.
    pub(crate) ledger: Arc<Ledger>,
    limits: Arc<Limits>,
    task_ids: TaskIds,
    watches: Watches,
    tasks: Tasks,
}

/// The dependencies of the tools.
pub(super) struct Parts<'a> {
    pub(super) ledger: Arc<Ledger>,
    pub(super) limits: Arc<Limits>,
    pub(super) inventory: Arc<Inventory>,
    pub(super) relay: Arc<Relay>,
    pub(super) answers: Arc<Answers>,
    pub(super) statistics: Arc<Statistics>,
    pub(super) habits: Arc<Habits>,
    pub(super) scripts: Arc<crate::scripts::Figures>,
    pub(super) directories: &'a Directories,
    pub(super) variables: Environment,
    /// Whether the clients come over HTTP.
    pub(super) is_over_http: bool,
    /// Applies a configuration that an agent has changed.
    pub(super) proxy: Weak<Proxy>,
    pub(super) tasks: Tasks,
}

impl Tools {
    pub(super) fn new(parts: Parts<'_>) -> Self {
        let Parts {
            ledger,
            limits,
            inventory,
            relay,
            answers,
            statistics,
            habits,
            scripts,
            directories,
            variables,
            is_over_http,
            proxy,
            tasks,
        } = parts;
        Self {
            schemas: Schemas::default(),
            reranking: Reranking::new(variables.clone(), tasks.clone()),
            rendered: Rendered::default(),
            habits,
            direct_names: DirectNames::default(),
            listables: Listables::default(),
            refused_skills: RefusedSkills::default(),
            scripts: Running::new(scripts),
            ledger,
            limits,
            task_ids: TaskIds::new(directories.tasks.clone(), &variables, is_over_http),
            watches: Watches::default(),
            builtin: Builtin {
                inventory: inventory.clone(),
                answers: answers.clone(),
                statistics,
                logs: directories.logs.clone(),
                variables,
                switches: Arc::default(),
                proxy,
                tasks: tasks.clone(),
            },
            inventory,
            relay,
            answers,
            tasks,
        }
    }

    /// Applies an edited configuration.
    pub(super) fn configure(&self, config: &Config) {
        self.builtin.switches.compare(config);
    }

    /// Removes the stored results of the clients.
    pub(super) fn forget_results(&self) -> std::io::Result<()> {
        self.answers.results.forget()
    }

    /// Answers `tools/list`.
    pub(super) async fn list(&self, view: &View, caller: &Caller, params: &Object<'_>) -> Reply {
        let modern = caller.revision.is_modern();
        match view.mode() {
            Mode::Direct => Box::pin(self.direct_tools(view, params, modern)).await,
            Mode::MetaTools => {
                let definitions = caller.client.definitions(|| definitions::meta_tools(view));
                let more = Box::pin(self.shown_definitions(view)).await;
                let definitions = shown::with_more(&definitions, &more);
                self.answers.count_listing(view, caller, || {
                    tokens_of(&String::from_utf8_lossy(&definitions))
                        + tokens_of(&self.inventory.instructions(view))
                });
                match view.surface().lists_tools_of_servers() {
                    false => Reply::constant(definitions, modern),
                    true => Reply::changing(definitions, modern),
                }
            }
        }
    }

    /// Answers `tools/call` by running the meta-tool that it names, or in direct mode the tool itself. `line` contains
    /// its `params`.
    pub(super) async fn answer_call(
        &self,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
        line: &Bytes,
    ) -> Reply {
        if view.mode() == Mode::Direct {
            // Its type is erased, because the compiler follows the types of futures only so deep.
            let called: BoxFuture<'_, Reply> =
                Box::pin(self.direct_call(view, caller, params, line));
            return called.await;
        }
        let Some(name) = params.text("name") else {
            return Reply::invalid_params("`name` must be a string");
        };
        let arguments = match params.get("arguments").map(|raw| (raw, Object::parse(raw))) {
            None => Object::default(),
            Some((_, Ok(object))) => object,
            Some((raw, Err(_))) if raw.get() == "null" => Object::default(),
            Some((_, Err(_))) => {
                return Reply::invalid_params("`arguments` must be an object");
            }
        };
        match name.as_str() {
            "search_tools" => self.answers.counted(
                counting::Answer::Search,
                Box::pin(self.search_tools(view, &arguments)).await,
            ),
            "describe_tool" => self.answers.counted(
                counting::Answer::Description,
                Box::pin(self.describe_tool(view, &arguments)).await,
            ),
            // Boxed, so that it is moved once and not with each of the futures around it.
            "execute_tool" => {
                Box::pin(self.execute_tool(view, caller, &arguments, params, line)).await
            }
            "execute_read_tool" if view.surface().has_read_tool => {
                Box::pin(self.execute_read_tool(view, caller, &arguments, params, line)).await
            }
            "proxy_status" => {
                Box::pin(
                    self.builtin
                        .older(view, builtin::Tool::Status, &arguments, caller),
                )
                .await
            }
            "proxy_refresh" => {
                Box::pin(
                    self.builtin
                        .older(view, builtin::Tool::Refresh, &arguments, caller),
                )
                .await
            }
            _ => {
                let call = Box::pin(self.shown_call(view, caller, &name, params, line));
                call.await.unwrap_or_else(|| Reply::invalid_params(format!(
                    "unknown tool `{name}`: there are search_tools, describe_tool and execute_tool, which calls all others"
                )))
            }
        }
    }
}
