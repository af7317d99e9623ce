//! The prompts of all servers, named `server__prompt`.

use serde_json::value::RawValue;

use super::Features;
use super::not_found::NotFound;
use super::page::{FIRST_LISTING, List};
use crate::catalog::{ServerTools, fold};
use crate::mcp::Object;
use crate::mcp::object::quoted;
use crate::proxy::ledger::Reached;
use crate::proxy::own_uris;
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply, RequestContext};
use crate::text::distance;
use crate::tool::{QualifiedName, SEPARATOR, ServerName};

pub(in crate::proxy) const PROMPTS: List = List {
    member: "prompts",
    entries: ServerTools::prompts,
    is_exposed: |exposure| exposure.prompts,
    show: |json, server, name, _| {
        let seen = own_uris::for_clients(server, json);
        let seen = seen.and_then(|json| RawValue::from_string(json).ok());
        let json = seen.as_deref().unwrap_or(json);
        let object = Object::parse(json).expect("a prompt is an object");
        object.with("name", &quoted(&joined(server, name)))
    },
};

/// The maximum number of names that are compared for suggestions.
const MOST_COMPARED: usize = 2000;

/// A prompt and its server.
#[derive(Debug)]
pub(in crate::proxy) struct Prompt {
    pub(in crate::proxy) server: ServerName,
    /// The prompt's name on that server.
    pub(in crate::proxy) name: String,
}

impl Features {
    /// Answers `prompts/get`.
    pub(in crate::proxy) async fn get_prompt(
        &self,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
        reached: &Reached,
    ) -> Reply {
        let Some(name) = params.text("name") else {
            return Reply::invalid_params("`name` must be a string");
        };
        match self.prompt(view, &name).await {
            Ok(Prompt { server, name: own }) => {
                reached.set(&server, Some(&own));
                let replaced = ("name", quoted(&own));
                let context = RequestContext::of(caller, view, params);
                self.forward(
                    (&context, reached),
                    &server,
                    "prompts/get",
                    Some(&own),
                    params,
                    replaced,
                )
                .await
            }
            Err(error) => error.into(),
        }
    }

    /// Finds a prompt by `server__prompt`, or by its name alone if only one server has it.
    ///
    /// # Errors
    /// With the names that may have been meant.
    pub(in crate::proxy) async fn prompt(
        &self,
        view: &View,
        name: &str,
    ) -> Result<Prompt, NotFound> {
        self.inventory.loaded().await;
        let find = || {
            let snapshot = view.snapshot();
            let servers = view.exposing(PROMPTS.is_exposed);
            let mut found = find(&servers, &snapshot.addressed(name), name);
            let owners: Vec<&str> = found.iter().map(|prompt| prompt.server.as_str()).collect();
            let has = |server: &str, part: &str| {
                let known = servers
                    .iter()
                    .find(|known| known.name().as_str() == server)?;
                let mut prompts = known.prompts().as_slice().iter();
                Some(prompts.any(|prompt| fold(&prompt.key) == part))
            };
            if !name.contains(SEPARATOR) && snapshot.mentions_another(name, &owners, &has) {
                found.clear();
            }
            found
        };
        let mut found = find();
        if found.is_empty() {
            self.inventory.known(None, FIRST_LISTING).await;
            found = find();
        }
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => Err(NotFound::Prompt {
                name: name.to_owned(),
                nearest: nearest(&view.exposing(PROMPTS.is_exposed), name),
            }),
            _ => Err(NotFound::SeveralPrompts {
                name: name.to_owned(),
                names: found
                    .iter()
                    .map(|prompt| joined(&prompt.server, &prompt.name))
                    .collect(),
            }),
        }
    }
}

fn joined(server: &ServerName, name: &str) -> String {
    format!("{server}{SEPARATOR}{name}")
}

/// Finds the prompts that `name` may mean: those of the one server that it addresses (`addressed`), or else of any
/// server.
fn find(servers: &[std::sync::Arc<ServerTools>], addressed: &[String], name: &str) -> Vec<Prompt> {
    let has = |server: &ServerName, name: &str| {
        servers
            .iter()
            .any(|known| known.name() == server && known.prompts().has(name))
    };
    let is_listed = |server: &String| {
        servers
            .iter()
            .any(|known| known.name().as_str() == server.as_str())
    };
    let mut exact = QualifiedName::readings(name)
        .filter(|read| {
            addressed
                .iter()
                .any(|server| server == read.server.as_str())
        })
        .filter(|read| has(&read.server, read.tool.as_str()));
    if let Some(QualifiedName { server, tool }) = exact.next()
        && exact.next().is_none()
        && (addressed.len() == 1 || addressed.iter().all(is_listed))
    {
        return vec![Prompt {
            server,
            name: tool.as_str().to_owned(),
        }];
    }
    if name.contains(SEPARATOR) {
        return Vec::new();
    }
    let is_addressed = |server: &ServerName| {
        addressed.is_empty() || addressed.iter().any(|known| known == server.as_str())
    };
    let bare = servers
        .iter()
        .filter(|server| is_addressed(server.name()) && server.prompts().has(name));
    bare.map(|server| Prompt {
        server: server.name().clone(),
        name: name.to_owned(),
    })
    .collect()
}

/// The most similar names to `name`, at most three.
fn nearest(servers: &[std::sync::Arc<ServerTools>], name: &str) -> Vec<String> {
    let wanted = name.to_lowercase();
    let limit = wanted.chars().count() / 2;
    let all = servers.iter().flat_map(|server| {
        server
            .prompts()
            .as_slice()
            .iter()
            .map(|prompt| (joined(server.name(), &prompt.key), &prompt.key))
    });
    let compared = all.take(MOST_COMPARED).filter_map(|(joined, bare)| {
        let changes = [&*joined, bare]
            .into_iter()
            .filter_map(|name| distance(&wanted, &name.to_lowercase(), limit));
        Some((changes.min()?, joined))
    });
    let mut near: Vec<(usize, String)> = compared.collect();
    near.sort();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}
