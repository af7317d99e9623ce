//! The skills of all servers (extension `io.modelcontextprotocol/skills`). Each stands for a tool in the catalog, so a skill that rules
//! or approvals withhold is neither listed nor read.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Features;
use super::page::{Cursor, FIRST_LISTING};
use crate::catalog::Snapshot;
use crate::config::Trust;
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Object};
use crate::proxy::own_uris;
use crate::proxy::skill::Skill;
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply, RequestContext};
use crate::tool::ServerName;
use crate::upstream::{SKILLS, skill_of_definition};

/// The number of skills on a page; an entry may have 512 files.
const PAGE: usize = 100;

/// The media type of a directory.
const DIRECTORY: &str = "inode/directory";

/// A skill of a server.
struct Listed {
    server: ServerName,
    /// The name of the tool that it stands for.
    tool: String,
    /// Its entry, as clients see it.
    entry: Box<RawValue>,
}

/// The members of an entry that are used here.
struct Entry {
    /// The URI of the skill's folder, with the `/` at its end.
    folder: String,
    /// The URIs of its files and their sizes; `None` if its server does not list them.
    files: Option<Vec<(String, Option<u64>)>>,
}

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
        let start = cursor.as_ref().map_or(0, |cursor| {
            let is_last = |one: &Listed| one.server == cursor.server && one.tool == cursor.key;
            all.iter()
                .position(is_last)
                .map_or(cursor.index, |at| at + 1)
        });
        let page: Vec<_> = all.iter().skip(start).take(PAGE).collect();
        let end = start + page.len();
        let next = page.last().filter(|_| end < all.len()).map(|last| {
            let (server, key) = (last.server.clone(), last.tool.clone());
            let index = end;
            Cursor { server, index, key }.next_member()
        });
        let entries: Vec<_> = page.iter().map(|one| one.entry.get()).collect();
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
        let known = self.skills(view).into_iter().find(|one| {
            let uri_of = Object::parse(&one.entry)
                .ok()
                .and_then(|entry| entry.text("uri"));
            uri_of.as_deref() == Some(uri)
        });
        if let Some(known) = known {
            let skill = format!(r#"{{"skill":{}}}"#, known.entry);
            return Reply::changing(skill.into(), caller.revision.is_modern());
        }
        // A server may have skills that it does not list. A person cannot approve one of these.
        let config = view.config();
        let able = view.exposing(|exposure| exposure.resources);
        let is_able = |server: &ServerName| {
            let known = able.iter().find(|known| known.name() == server);
            known.is_some_and(|known| known.capabilities().has_extension(SKILLS))
                && config
                    .servers
                    .get(server)
                    .is_some_and(|entry| entry.trust == Trust::Report)
        };
        match own_uris::without_server(uri).filter(|(server, _)| is_able(server)) {
            Some((server, own)) if !self.is_withheld(view, &server, &own) => {
                let context = RequestContext::of(caller, view, params);
                let replaced = ("uri", quoted(&own));
                self.forward(
                    &context,
                    &server,
                    "skills/get",
                    Some(&own),
                    params,
                    replaced,
                )
                .await
            }
            _ => Reply::invalid_params(format!("there is no skill `{uri}`")),
        }
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
        if own_uris::leads_elsewhere(uri) {
            return unknown();
        }
        let folder = format!("{}/", uri.trim_end_matches('/'));
        let skills = self.skills(view);
        let found = skills.iter().find_map(|one| {
            let entry = Entry::of(&one.entry)?;
            let is_inside = folder.starts_with(&entry.folder);
            is_inside.then_some((one, entry))
        });
        let Some((skill, entry)) = found else {
            return unknown();
        };
        let Some(files) = entry.files else {
            let (server, own) = match own_uris::without_server(uri) {
                Some(found) if found.0 == skill.server => found,
                _ => return unknown(),
            };
            let snapshot = view.snapshot();
            let known = snapshot.server(&server);
            if !known.is_some_and(|known| {
                known
                    .capabilities()
                    .has_part_of_extension(SKILLS, "directoryRead")
            }) {
                return Reply::error(
                    ErrorCode::INVALID_PARAMS,
                    format!("server `{server}` does not say what is in `{uri}`"),
                );
            }
            let context = RequestContext::of(caller, view, params);
            let replaced = ("uri", quoted(&own));
            let method = "resources/directory/read";
            return self
                .forward(&context, &server, method, Some(&own), params, replaced)
                .await;
        };
        let mut children: BTreeMap<String, Value> = BTreeMap::new();
        for (file, size) in files {
            let Some(rest) = file.strip_prefix(&folder) else {
                continue;
            };
            let child = match rest.split_once('/') {
                Some((name, _)) => {
                    json!({ "uri": format!("{folder}{name}"), "name": name, "mimeType": DIRECTORY })
                }
                None => {
                    let mut child = json!({ "uri": file, "name": rest });
                    if let Some(size) = size {
                        child["size"] = size.into();
                    }
                    child
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

    /// The skills that a client may see.
    fn skills(&self, view: &View) -> Vec<Listed> {
        let exposing = view.exposing(|exposure| exposure.resources);
        let is_exposed = |server: &ServerName| exposing.iter().any(|known| known.name() == server);
        self.skills_in(&view.snapshot(), is_exposed)
    }

    fn skills_in(
        &self,
        snapshot: &Snapshot,
        is_wanted: impl Fn(&ServerName) -> bool,
    ) -> Vec<Listed> {
        let tools = snapshot.tools().filter(|tool| tool.entry().is_skill);
        let tools = tools.filter(|tool| is_wanted(tool.server().name()));
        let listed = tools.filter_map(|tool| {
            let server = tool.server().name().clone();
            let definition = self.inventory.definition(&tool)?;
            let entry = skill_of_definition(definition.get().as_bytes())?;
            let entry = own_uris::skill_for_clients(&server, entry);
            Some(Listed {
                server,
                tool: tool.entry().name.to_string(),
                entry: RawValue::from_string(entry).ok()?,
            })
        });
        listed.collect()
    }

    /// The skill of `server` in which `own` is, if what is read of it has to be what was listed: where a person has approved that, and in a
    /// folder of this machine.
    pub(super) fn guarded(&self, view: &View, server: &ServerName, own: &str) -> Option<Skill> {
        let entry = view.config().servers.get(server).cloned()?;
        if entry.holds().is_none() && entry.trust == Trust::Report {
            return None;
        }
        let snapshot = view.snapshot();
        let tools = snapshot.tools().filter(|tool| tool.entry().is_skill);
        let skills = tools
            .filter(|tool| tool.server().name() == server)
            .filter_map(|tool| {
                let definition = self.inventory.definition(&tool)?;
                Skill::of(skill_of_definition(definition.get().as_bytes())?)
            });
        // A skill may be in the folder of another one.
        let holding = skills.filter(|skill| skill.has(own));
        holding.max_by_key(|skill| skill.folder().len())
    }

    /// Whether `own` is a file of a skill of `server` that the client may not see.
    pub(super) fn is_withheld(&self, view: &View, server: &ServerName, own: &str) -> bool {
        let visible = view.snapshot();
        let known = visible.server(server);
        if !known.is_some_and(|known| known.capabilities().has_extension(SKILLS)) {
            return false;
        }
        // The server could read it as the URI of a skill that is withheld.
        if own_uris::leads_elsewhere(own) {
            return true;
        }
        let everything = visible.unrestricted();
        let count = |snapshot: &Snapshot| {
            let tools = snapshot.tools().filter(|tool| tool.entry().is_skill);
            tools.filter(|tool| tool.server().name() == server).count()
        };
        if count(&visible) == count(&everything) {
            return false;
        }
        let seen = own_uris::of_skill(server, own);
        let folders = |snapshot: &Snapshot| -> Vec<String> {
            let skills = self.skills_in(snapshot, |name| name == server);
            let entries = skills.iter().filter_map(|skill| Entry::of(&skill.entry));
            let folders = entries.map(|entry| entry.folder);
            folders.filter(|folder| seen.starts_with(folder)).collect()
        };
        folders(&everything).len() != folders(&visible).len()
    }
}

impl Entry {
    fn of(json: &RawValue) -> Option<Self> {
        let entry: Value = serde_json::from_str(json.get()).ok()?;
        let file = |file: &Value| Some((file["uri"].as_str()?.to_owned(), file["size"].as_u64()));
        let uri = entry["uri"].as_str()?;
        Some(Self {
            folder: uri.strip_suffix("SKILL.md")?.to_owned(),
            files: entry["resources"]
                .as_array()
                .map(|files| files.iter().filter_map(file).collect()),
        })
    }
}
