//! The skills of all servers (extension `io.modelcontextprotocol/skills`). Each stands for a tool in the catalog, so a skill that rules
//! or approvals withhold is neither listed nor read.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Features;
use super::page::{Cursor, FIRST_LISTING};
use crate::audit::Kind;
use crate::catalog::{ServerTools, Tool};
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Object};
use crate::proxy::inventory::Inventory;
use crate::proxy::ledger::{Reached, RequestEvent};
use crate::proxy::own_uris;
use crate::proxy::skill::INSTRUCTIONS;
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply, RequestContext};
use crate::tool::ServerName;
use crate::upstream::{SKILLS, skill_of_definition};

/// The number of skills on a page; an entry may have 512 files.
const PAGE: usize = 100;

/// The media type of a directory.
const DIRECTORY: &str = "inode/directory";

impl Features {
    /// Answers a request of the extension; `None` for other methods.
    pub(super) async fn answer_skills(
        &self,
        view: &View,
        caller: &Caller,
        method: &str,
        params: &Object<'_>,
    ) -> Option<Reply> {
        let uri = || params.text("uri").unwrap_or_default();
        Some(match method {
            "skills/list" => self.list_skills(view, caller, params).await,
            "skills/get" => self.get_skill(view, caller, params, &uri()).await,
            "resources/directory/read" => self.read_directory(view, caller, params, &uri()).await,
            _ => return None,
        })
    }

    async fn list_skills(&self, view: &View, caller: &Caller, params: &Object<'_>) -> Reply {
        let cursor = match Cursor::of(params) {
            Ok(cursor) => cursor,
            Err(refusal) => return refusal,
        };
        self.inventory.known(None, FIRST_LISTING).await;
        self.inventory.renew();
        let all = self.skills(view);
        let is_last = |tool: &Tool, cursor: &Cursor| {
            *tool.server().name() == cursor.server && tool.entry().name.as_str() == cursor.key
        };
        let start = cursor.as_ref().map_or(0, |cursor| {
            let last = all.iter().position(|tool| is_last(tool, cursor));
            last.map_or(cursor.index, |at| at + 1)
        });
        let page: Vec<Tool> = all.iter().skip(start).take(PAGE).cloned().collect();
        let end = start + page.len();
        let next = page.last().filter(|_| end < all.len()).map(|last| {
            let (server, key) = (last.server().name().clone(), last.entry().name.to_string());
            let index = end;
            Cursor { server, index, key }.next_member()
        });
        let inventory = self.inventory.clone();
        let entries = self.tasks.spawn_blocking(move || {
            let entries = page.iter().filter_map(|tool| entry_of(&inventory, tool));
            entries.collect::<Vec<String>>()
        });
        let Ok(entries) = entries.await else {
            return Reply::error(ErrorCode::INTERNAL, "the list could not be read".to_owned());
        };
        let (entries, next) = (entries.join(","), next.unwrap_or_default());
        Reply::changing(
            format!(r#"{{"skills":[{entries}]{next}}}"#).into(),
            caller.revision.is_modern(),
        )
    }

    async fn get_skill(
        &self,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
        uri: &str,
    ) -> Reply {
        self.inventory.loaded().await;
        let unknown = || Reply::invalid_params(format!("there is no skill `{uri}`"));
        let exposed = self.exposed(view);
        let Some((server, own)) = own_uris::without_server(uri)
            .filter(|(server, _)| exposed.iter().any(|known| known.name() == server))
        else {
            return unknown();
        };
        let skills = self.inventory.visible_skills(view, &server);
        if let Some(known) = skills.into_iter().find(|one| one.skill.uri() == own) {
            let all = self.skills(view).into_iter();
            let entry = all
                .filter(|tool| *tool.server().name() == server)
                .find(|tool| tool.own_name().tool == known.tool)
                .and_then(|tool| entry_of(&self.inventory, &tool));
            return match entry {
                Some(entry) => {
                    let skill = format!(r#"{{"skill":{entry}}}"#);
                    Reply::changing(skill.into(), caller.revision.is_modern())
                }
                None => unknown(),
            };
        }
        // A server may have skills that it does not list. A person cannot approve one of these.
        let is_able = exposed
            .iter()
            .any(|known| *known.name() == server && known.capabilities().has_extension(SKILLS));
        if !is_able
            || self.inventory.compares_skills(&view.config(), &server)
            || self.inventory.withholds_skill(view, &server, &own)
        {
            return unknown();
        }
        self.forward_about(view, caller, (&server, &own), "skills/get", params)
            .await
    }

    /// Answers `resources/directory/read` from the list of a skill's files.
    async fn read_directory(
        &self,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
        uri: &str,
    ) -> Reply {
        self.inventory.loaded().await;
        let unknown = || Reply::invalid_params(format!("`{uri}` is not a directory of a skill"));
        let exposed = self.exposed(view);
        let Some((server, own)) = own_uris::without_server(uri).filter(|(server, own)| {
            !own_uris::leads_elsewhere(own) && exposed.iter().any(|known| known.name() == server)
        }) else {
            return unknown();
        };
        let folder = format!("{}/", own.trim_end_matches('/'));
        let Some(skill) = self.inventory.skill_with(view, &server, &folder) else {
            return unknown();
        };
        let Some(files) = skill.skill.files() else {
            // A file in it would have to be one that the client may read.
            let inside = format!("{folder}{INSTRUCTIONS}");
            if self.inventory.withholds_skill(view, &server, &inside) {
                return unknown();
            }
            let is_able = exposed.iter().any(|known| {
                let capabilities = known.capabilities();
                *known.name() == server
                    && capabilities.has_part_of_extension(SKILLS, "directoryRead")
            });
            if !is_able {
                return Reply::error(
                    ErrorCode::INVALID_PARAMS,
                    format!("server `{server}` does not say what is in `{uri}`"),
                );
            }
            let method = "resources/directory/read";
            return self
                .forward_about(view, caller, (&server, &own), method, params)
                .await;
        };
        let mut children: BTreeMap<String, Value> = BTreeMap::new();
        for (file, size) in files {
            let Some(rest) = file.strip_prefix(&folder) else {
                continue;
            };
            let child = match rest.split_once('/') {
                Some((name, _)) => {
                    let uri = own_uris::of_skill(&server, &format!("{folder}{name}"));
                    json!({ "uri": uri, "name": name, "mimeType": DIRECTORY })
                }
                None => {
                    let uri = own_uris::of_skill(&server, file);
                    json!({ "uri": uri, "name": rest, "size": size })
                }
            };
            children.insert(child["uri"].to_string(), child);
        }
        if children.is_empty() {
            return unknown();
        }
        let children: Vec<Value> = children.into_values().collect();
        Reply::changing(
            json!({ "resources": children }).to_string().into(),
            caller.revision.is_modern(),
        )
    }

    /// Forwards a request about `own`, something of a skill, to its server; the answer has the URIs that clients see.
    async fn forward_about(
        &self,
        view: &View,
        caller: &Caller,
        (server, own): (&ServerName, &str),
        method: &str,
        params: &Object<'_>,
    ) -> Reply {
        let reached = Reached::default();
        reached.set(server, None);
        let begin =
            |audit| RequestEvent::begin(audit, Kind::Resource, (view, caller), params, &reached);
        let event = match self.ledger.audit().map(begin).transpose() {
            Ok(event) => event,
            Err(refusal) => return refusal,
        };
        let context = RequestContext::of(caller, view, params);
        let replaced = ("uri", quoted(own));
        let reply = self.forward(
            (&context, &reached),
            server,
            method,
            Some(own),
            params,
            replaced,
        );
        let reply = match reply.await {
            Reply::Relayed(result) => {
                Reply::Relayed(own_uris::of_skills(server, result.into_bytes()).into())
            }
            reply => reply,
        };
        match event {
            Some(event) => event.end(reply).await,
            None => reply,
        }
    }

    /// The servers whose skills a client may see.
    fn exposed(&self, view: &View) -> Vec<Arc<ServerTools>> {
        view.exposing(|exposure| exposure.resources)
    }

    /// The tools of the skills that a client may see.
    fn skills(&self, view: &View) -> Vec<Tool> {
        let exposed = self.exposed(view);
        let snapshot = view.snapshot();
        let tools = snapshot.tools().filter(|tool| tool.entry().is_skill);
        let is_exposed = |tool: &Tool| {
            let mut exposed = exposed.iter();
            exposed.any(|known| known.name() == tool.server().name())
        };
        tools.filter(is_exposed).collect()
    }
}

/// The entry of a skill as clients see it, by its tool.
fn entry_of(inventory: &Inventory, tool: &Tool) -> Option<String> {
    let definition = inventory.definition(tool)?;
    let entry = skill_of_definition(definition.get().as_bytes())?;
    Some(own_uris::skill_for_clients(tool.server().name(), entry))
}
