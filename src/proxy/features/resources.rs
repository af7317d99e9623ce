//! The resources of all servers, by URI. A URI of several servers is disambiguated (see [`super::uri`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::Features;
use super::forward::parameters;
use super::not_found::NotFound;
use super::page::{FIRST_LISTING, List};
use super::uri::{self, Template};
use crate::catalog::{ServerTools, Snapshot};
use crate::config::Verdict;
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Object};
use crate::proxy::inventory::KnownSkill;
use crate::proxy::ledger::Reached;
use crate::proxy::own_uris;
use crate::proxy::skill::INSTRUCTIONS;
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply, RequestContext};
use crate::tool::ServerName;
use crate::upstream::{Followed, code_of};

pub(in crate::proxy) const RESOURCES: List = List {
    member: "resources",
    entries: ServerTools::resources,
    is_exposed: |exposure| exposure.resources,
    show: |json, server, own, is_shared| {
        let seen = match is_shared {
            true => Some(uri::disambiguated(server, own)),
            false => own_uris::seen(server, own),
        };
        shown(json, server, "uri", seen)
    },
};

pub(in crate::proxy) const TEMPLATES: List = List {
    member: "resourceTemplates",
    entries: ServerTools::templates,
    is_exposed: |exposure| exposure.resources,
    show: |json, server, own, is_shared| {
        let template = Template::new(own);
        let seen = match is_shared {
            true => Some(template.disambiguated(server)),
            false => template.seen(server),
        };
        shown(json, server, "uriTemplate", seen)
    },
};

/// An entry of a list of `server` as clients see it, with its own URI under `member`.
fn shown(json: &RawValue, server: &ServerName, member: &str, seen: Option<String>) -> String {
    let renamed = own_uris::for_clients(server, json);
    let renamed = renamed.and_then(|json| RawValue::from_string(json).ok());
    let json = renamed.as_deref().unwrap_or(json);
    match seen {
        Some(seen) => {
            let object = Object::parse(json).expect("only an object has a URI");
            object.with(member, &quoted(&seen))
        }
        None => json.get().to_owned(),
    }
}

/// The servers that named a URI, in any state: those that are hidden from a client, hide their resources, or were removed as well, so
/// that no other server answers for them.
#[derive(Debug, Default)]
struct Owners {
    /// In a list, as a tool's interface, or by a skill.
    by_list: BTreeSet<ServerName>,
    /// In a result only. A link takes no resource from the server that lists it.
    by_link: BTreeSet<ServerName>,
}

impl Owners {
    /// The owners.
    fn names(&self) -> &BTreeSet<ServerName> {
        match self.by_list.is_empty() {
            true => &self.by_link,
            false => &self.by_list,
        }
    }
}

/// The target of a URI.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::proxy) enum ResourceTarget {
    /// A resource of one server, by the server's own URI.
    At(ServerName, String),
    /// Resources of several servers, by the URIs that distinguish them.
    Several(Vec<String>),
    /// A URI that no server has listed; the servers that may have it nevertheless, likeliest first.
    Unlisted(Vec<ServerName>),
}

impl Features {
    /// Answers `resources/read`.
    pub(in crate::proxy) async fn read_resource(
        &self,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
        reached: &Reached,
    ) -> Reply {
        let Some(uri) = params.text("uri") else {
            return Reply::invalid_params("`uri` must be a string");
        };
        let context = RequestContext::of(caller, view, params);
        let (server, own) = match self.target(view, &uri).await {
            ResourceTarget::At(server, own) => (server, own),
            ResourceTarget::Several(uris) => return several(&uri, &uris),
            ResourceTarget::Unlisted(mut servers) if servers.len() == 1 => {
                (servers.remove(0), uri.clone())
            }
            ResourceTarget::Unlisted(servers) => {
                let asked = (servers.as_slice(), reached);
                return self.read_unlisted(view, caller, params, &uri, asked).await;
            }
        };
        reached.set(&server, None);
        match self
            .read_from(&server, &own, params, (&context, reached))
            .await
        {
            Reply::RelayedError(error) if caller.revision.is_modern() => {
                Reply::RelayedError(in_modern(error, &uri))
            }
            reply => reply,
        }
    }

    /// Asks one server after the other; reading has no side effects. The first one that has the resource answers.
    async fn read_unlisted(
        &self,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
        uri: &str,
        (servers, reached): (&[ServerName], &Reached),
    ) -> Reply {
        // The intended server is unknown, so none of them may ask the client back.
        let context = RequestContext::of(caller, view, params).in_company();
        let mut refusal = None;
        for server in servers {
            reached.set(server, None);
            match self
                .read_from(server, uri, params, (&context, reached))
                .await
            {
                Reply::RelayedError(error)
                    if code_of(&error) == Some(ErrorCode::RESOURCE_NOT_FOUND) => {}
                content @ Reply::RelayedContent(_) => return content,
                // The error of the likeliest server counts.
                reply => refusal = refusal.or(Some(reply)),
            }
        }
        refusal.unwrap_or_else(|| not_found(caller, uri))
    }

    async fn read_from(
        &self,
        server: &ServerName,
        own: &str,
        params: &Object<'_>,
        (context, reached): (&RequestContext, &Reached),
    ) -> Reply {
        let view = &context.view;
        let skill = self.inventory.skill_with(view, server, own);
        if let Some(refusal) = skill
            .as_ref()
            .and_then(|one| refused(view, server, one, own))
        {
            return refusal;
        }
        let is_of_skill = skill.is_some();
        let guarded = skill.filter(|_| self.inventory.compares_skills(&view.config(), server));
        let is_same = params.text("uri").as_deref() == Some(own);
        // The client's JSON may contain invalid Unicode.
        let json = params
            .get("uri")
            .filter(|_| is_same)
            .map_or_else(|| quoted(own), |raw| raw.get().to_owned());
        let params = parameters(params, "uri", &json);
        match self.relayed(
            &context.view,
            self.send_on(
                server,
                "resources/read",
                Some(own),
                params,
                (context, Some(reached)),
            )
            .await,
            &format!("`{own}`"),
        ) {
            Reply::Relayed(result) => {
                match guarded.map(|one| one.skill.verified_result(own, &result)) {
                    None | Some(Ok(())) if is_of_skill => {
                        Reply::RelayedContent(own_uris::of_skills(server, result.into_bytes()))
                    }
                    None | Some(Ok(())) => Reply::RelayedContent(result.into_bytes()),
                    Some(Err(difference)) => {
                        self.inventory.poke(server);
                        Reply::error(
                            ErrorCode::INTERNAL,
                            format!(
                                "`{own}` is not given: {difference} than server `{server}` has listed"
                            ),
                        )
                    }
                }
            }
            reply => reply,
        }
    }

    /// Finds the target of `uri`, after waiting for the servers that were never listed.
    pub(in crate::proxy) async fn target(&self, view: &View, uri: &str) -> ResourceTarget {
        self.inventory.loaded().await;
        match self.target_now(view, uri) {
            ResourceTarget::Unlisted(_) => {
                self.inventory.known(None, FIRST_LISTING).await;
                self.target_now(view, uri)
            }
            target => target,
        }
    }

    fn target_now(&self, view: &View, uri: &str) -> ResourceTarget {
        let (servers, owners) = (view.exposing(RESOURCES.is_exposed), self.owners(uri));
        let everything = self.inventory.snapshot();
        if owners.names().is_empty()
            && own_uris::split(uri).is_none()
            && is_claimed_elsewhere(&everything, &servers, uri)
        {
            return ResourceTarget::Unlisted(Vec::new());
        }
        if let Some((name, _)) = own_uris::without_server(uri)
            && everything.server(&name).is_none()
            && (view.config().servers.get(&name)).is_some_and(|entry| !entry.disabled)
        {
            // Its server was not listed yet, and no other one answers for it.
            return ResourceTarget::Unlisted(Vec::new());
        }
        let is_alone = everything.has_one_server();
        let target = target(&servers, uri, &owners, is_alone, &|server, own| {
            self.has_named(server, own)
        });
        match without_held(target, &everything, &servers, uri) {
            ResourceTarget::At(server, own)
                if self.inventory.withholds_skill(view, &server, &own) =>
            {
                ResourceTarget::Unlisted(Vec::new())
            }
            ResourceTarget::Unlisted(mut servers) => {
                servers.retain(|server| !self.inventory.withholds_skill(view, server, uri));
                ResourceTarget::Unlisted(servers)
            }
            target => target,
        }
    }

    /// The servers that named `uri`.
    fn owners(&self, uri: &str) -> Owners {
        let snapshot = self.inventory.snapshot();
        let listing = snapshot
            .servers()
            .filter(|server| server.names_resource(uri));
        let listing = listing.map(|server| server.name().clone());
        let named = &self.relay.named_uris;
        Owners {
            by_list: listing.chain(named.listed_before(uri)).collect(),
            by_link: named.namers(uri).into_iter().collect(),
        }
    }

    /// Whether `server` named its URI `own` in a list, as a tool's interface, in a result, or by a template that does not match every
    /// URI of the scheme.
    fn has_named(&self, server: &ServerTools, own: &str) -> bool {
        let scheme = own.find("://").map_or(0, |end| end + "://".len());
        let matches =
            |template: &Template<'_>| template.beginning().len() > scheme && template.matches(own);
        server.names_resource(own)
            || best_template(server, matches).is_some()
            || (self.relay.named_uris.namers(own)).contains(server.name())
            || (self.relay.named_uris.listed_before(own)).contains(server.name())
    }

    /// Resolves a client's URI of a template or resource to its server and the server's own form.
    ///
    /// # Errors
    /// A description of the fault.
    pub(in crate::proxy) async fn template(
        &self,
        view: &View,
        uri: &str,
    ) -> Result<(ServerName, String), NotFound> {
        self.inventory.known(None, FIRST_LISTING).await;
        let servers = view.exposing(TEMPLATES.is_exposed);
        let named = |is_meant: &dyn Fn(&ServerName, &str) -> bool| -> Vec<(ServerName, String)> {
            let own = |server: &Arc<ServerTools>| {
                let mut templates = server.templates().as_slice().iter();
                let named = templates.find(|template| is_meant(server.name(), &template.key));
                Some((server.name().clone(), named?.key.to_string()))
            };
            servers.iter().filter_map(own).collect()
        };
        // A server's own template may read as if it was another's for clients.
        let mut found =
            named(&|server, template| Template::new(template).disambiguated(server) == uri);
        if found.is_empty() {
            found = named(&|_, template| template == uri);
        }
        let uri = uri.to_owned();
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => match self.template_target(&servers, &uri) {
                ResourceTarget::At(server, own) => Ok((server, own)),
                ResourceTarget::Several(uris) => Err(NotFound::SeveralResources { uri, uris }),
                ResourceTarget::Unlisted(_) => Err(NotFound::Template { uri }),
            },
            _ => {
                let apart = found
                    .iter()
                    .map(|(server, own)| Template::new(own).disambiguated(server));
                let uris = apart.collect();
                Err(NotFound::SeveralResources { uri, uris })
            }
        }
    }

    /// The target of the URI of a resource, for completions.
    fn template_target(&self, servers: &[Arc<ServerTools>], uri: &str) -> ResourceTarget {
        let target = target(servers, uri, &self.owners(uri), false, &|server, own| {
            self.has_named(server, own)
        });
        without_held(target, &self.inventory.snapshot(), servers, uri)
    }

    /// The resources and tasks that clients follow, by server, if the server supports subscriptions.
    pub(in crate::proxy) fn all_wanted(
        &self,
        view: &View,
    ) -> BTreeMap<ServerName, BTreeSet<Followed>> {
        let mut wanted: BTreeMap<ServerName, BTreeSet<Followed>> = BTreeMap::new();
        for uri in self.callers.wanted_uris() {
            if let Some((server, own)) = self.followed(view, self.target_now(view, &uri), &uri) {
                let resource = Followed::Resource(own);
                wanted.entry(server).or_default().insert(resource);
            }
        }
        for (server, id) in self.callers.wanted_tasks() {
            let task = Followed::Task(id);
            wanted.entry(server).or_default().insert(task);
        }
        wanted
    }

    /// The resources and tasks of `server` that clients follow.
    pub(in crate::proxy) fn wanted_at(&self, server: &ServerName) -> BTreeSet<Followed> {
        self.all_wanted(&self.callers.unscoped())
            .remove(server)
            .unwrap_or_default()
    }

    /// The server that announces changes of the resource `uri`, and its own URI of it.
    pub(in crate::proxy) fn followed(
        &self,
        view: &View,
        target: ResourceTarget,
        uri: &str,
    ) -> Option<(ServerName, String)> {
        let (server, own) = match target {
            ResourceTarget::At(server, own) => (server, own),
            ResourceTarget::Unlisted(servers) => (servers.into_iter().next()?, uri.to_owned()),
            ResourceTarget::Several(_) => return None,
        };
        let snapshot = view.snapshot();
        let offers = snapshot
            .server(&server)?
            .capabilities()
            .has_part("resources", "subscribe");
        offers.then_some((server, own))
    }

    /// The URIs by which clients may know the resource `own` of `server`.
    pub(in crate::proxy) fn seen_uris(
        &self,
        view: &View,
        server: &ServerName,
        own: &str,
    ) -> Vec<String> {
        let is_plain = match self.target_now(view, own) {
            ResourceTarget::At(found, _) => found == *server,
            ResourceTarget::Unlisted(servers) => servers.first() == Some(server),
            ResourceTarget::Several(_) => false,
        };
        let snapshot = view.snapshot();
        let apart = snapshot
            .server(server)
            .map(|known| disambiguated(known, own));
        is_plain
            .then(|| own.to_owned())
            .into_iter()
            .chain(apart)
            .collect()
    }
}

/// The refusal to read a file of a skill, if rules do not allow a call of its tool for this file. A person is asked about calls of tools
/// only.
fn refused(view: &View, server: &ServerName, known: &KnownSkill, uri: &str) -> Option<Reply> {
    let snapshot = view.snapshot();
    let entries = snapshot.server(server)?.entries().iter();
    let mut named = entries.filter(|entry| entry.as_listed().name == known.tool);
    let tool = named.find_map(|entry| snapshot.tool(server, &entry.name))?;
    let path = known.skill.path_of(uri);
    let mut calls = vec![serde_json::json!({ "file": path }).to_string()];
    calls.extend((path == INSTRUCTIONS).then(|| "{}".to_owned()));
    let judged = calls
        .iter()
        .map(|arguments| view.judge(&tool, &tool.own_name(), arguments));
    let (_, rule) = judged
        .max_by_key(|(verdict, _)| *verdict)
        .filter(|(verdict, _)| *verdict != Verdict::Allowed)?;
    let rule = rule.unwrap_or_default();
    let text = format!(
        "the user's rules do not allow this file of a skill to be read as a resource ({rule}); call its tool `{}`",
        tool.qualified_name()
    );
    Some(Reply::error(ErrorCode::INVALID_REQUEST, text))
}

/// Finds the target of `uri`, which `owners` have named, among the resources of `servers`. An interface or a skill
/// belongs to a server that named it, or to the only server (`is_alone`); neither a template nor a guess suffices. A view may
/// use its server's own URI of an interface. If that begins with another server's name, it is read from that server if it `has_named`
/// the rest, and is ambiguous otherwise.
fn target(
    servers: &[Arc<ServerTools>],
    uri: &str,
    owners: &Owners,
    is_alone: bool,
    has_named: &dyn Fn(&ServerTools, &str) -> bool,
) -> ResourceTarget {
    if let Some((name, rest)) = own_uris::split(uri)
        && let Some(server) = servers.iter().find(|server| *server.name() == name)
    {
        return ResourceTarget::At(name, own_uri(server, rest));
    }
    if let Some((name, own)) = own_uris::without_server(uri)
        && let Some(server) = servers.iter().find(|server| *server.name() == name)
    {
        // A page of any server uses that server's own URIs, also such as it has only linked to.
        let all = || owners.by_list.iter().chain(&owners.by_link);
        if all().next().is_none() || has_named(server, &own) {
            return ResourceTarget::At(name, own);
        }
        if !all().any(|owner| *owner == name) {
            let is_other = |other: &&Arc<ServerTools>| all().any(|owner| owner == other.name());
            let others = servers.iter().filter(is_other);
            let others = others.map(|other| disambiguated(other, uri));
            return ResourceTarget::Several([uri.to_owned()].into_iter().chain(others).collect());
        }
    }
    let owners = owners.names();
    if own_uris::is_ours(uri) || owners.is_empty() && !is_alone && own_uris::is_owned(uri) {
        return ResourceTarget::Unlisted(Vec::new());
    }
    let found: Vec<_> = if owners.is_empty() {
        match by_template(servers, uri) {
            none if none.is_empty() => {
                let holding = servers.iter().filter(|server| server.holds_in_skill(uri));
                holding.collect()
            }
            found => found,
        }
    } else {
        let is_owner = |server: &&Arc<ServerTools>| owners.contains(server.name());
        servers.iter().filter(is_owner).collect()
    };
    match found[..] {
        [] if !owners.is_empty() => ResourceTarget::Unlisted(Vec::new()),
        [] => ResourceTarget::Unlisted(likely(servers, uri)),
        [server] if owners.len() <= 1 => ResourceTarget::At(server.name().clone(), uri.to_owned()),
        _ => ResourceTarget::Several(
            found
                .iter()
                .map(|server| disambiguated(server, uri))
                .collect(),
        ),
    }
}

/// The target without the servers whose resource or most specific template for `uri` is withheld; `shown` has the others.
fn without_held(
    target: ResourceTarget,
    everything: &Snapshot,
    shown: &[Arc<ServerTools>],
    uri: &str,
) -> ResourceTarget {
    let is_held = |name: &ServerName, own: &str| {
        let listed = everything.server(name);
        let rest = shown.iter().find(|server| server.name() == name);
        let Some((listed, rest)) = listed.zip(rest) else {
            return false;
        };
        let lists = listed.resources().has(own);
        let best = |server| best_template(server, |template| template.matches(own));
        let weight = |server| best(server).map(|template| template.weight());
        match lists {
            true => !rest.resources().has(own),
            false => weight(listed) != weight(rest),
        }
    };
    match target {
        ResourceTarget::At(server, own) if is_held(&server, &own) => {
            ResourceTarget::Unlisted(Vec::new())
        }
        ResourceTarget::Unlisted(mut servers) => {
            servers.retain(|server| !is_held(server, uri));
            ResourceTarget::Unlisted(servers)
        }
        target => target,
    }
}

/// Whether a server outside `shown` has a template that matches `uri` as specifically as any of those servers' templates.
fn is_claimed_elsewhere(everything: &Snapshot, shown: &[Arc<ServerTools>], uri: &str) -> bool {
    let weight = |server: &Arc<ServerTools>| {
        Some(best_template(server, |template| template.matches(uri))?.weight())
    };
    let most = shown.iter().filter_map(weight).max().unwrap_or(0);
    let is_shown =
        |server: &Arc<ServerTools>| shown.iter().any(|known| known.name() == server.name());
    let hidden = everything.servers().filter(|server| !is_shown(server));
    hidden
        .filter_map(weight)
        .any(|weight| weight > 0 && weight >= most)
}

/// The servers with the most specific matching template for `uri`.
fn by_template<'a>(servers: &'a [Arc<ServerTools>], uri: &str) -> Vec<&'a Arc<ServerTools>> {
    let weights: Vec<_> = servers
        .iter()
        .filter_map(|server| {
            Some((
                best_template(server, |template| template.matches(uri))?.weight(),
                server,
            ))
        })
        .collect();
    let most = weights.iter().map(|(weight, _)| *weight).max();
    weights
        .into_iter()
        .filter(|(weight, _)| Some(*weight) == most)
        .map(|(_, server)| server)
        .collect()
}

fn best_template(
    server: &ServerTools,
    matches: impl Fn(&Template<'_>) -> bool,
) -> Option<Template<'_>> {
    let templates = server
        .templates()
        .as_slice()
        .iter()
        .map(|entry| Template::new(&entry.key));
    templates.filter(matches).max_by_key(Template::weight)
}

/// The server's own URI for `rest` of a disambiguated URI.
fn own_uri(server: &ServerTools, rest: &str) -> String {
    let whole = uri::decoded(rest);
    if let Some(whole) = whole.as_ref().filter(|whole| server.resources().has(whole)) {
        return whole.clone();
    }
    let template = best_template(server, |template| template.own_uri(rest).is_some());
    template
        .and_then(|template| template.own_uri(rest))
        .or(whole)
        .unwrap_or_else(|| rest.to_owned())
}

/// The disambiguated URI for the server's own URI.
fn disambiguated(server: &ServerTools, own: &str) -> String {
    let is_seen = || own_uris::seen(server.name(), own).is_some();
    let template = if server.resources().has(own) || is_seen() {
        None
    } else {
        best_template(server, |template| template.matches(own))
    };
    let expanded = template.and_then(|template| template.disambiguate(server.name(), own));
    expanded.unwrap_or_else(|| uri::disambiguated(server.name(), own))
}

/// The servers with resources; those with the longest common prefix with `uri` first.
fn likely(servers: &[Arc<ServerTools>], uri: &str) -> Vec<ServerName> {
    let in_common = |server: &ServerTools| {
        let resources = server
            .resources()
            .as_slice()
            .iter()
            .map(|entry| uri::in_common(&entry.key, uri));
        let templates = server.templates().as_slice().iter();
        let templates =
            templates.map(|entry| uri::in_common(Template::new(&entry.key).beginning(), uri));
        resources.chain(templates).max().unwrap_or(0)
    };
    let able = servers
        .iter()
        .filter(|server| server.capabilities().has("resources"));
    let mut ranked: Vec<_> = able
        .map(|server| (Reverse(in_common(server)), server.name().clone()))
        .collect();
    ranked.sort();
    ranked.into_iter().map(|(_, server)| server).collect()
}

pub(in crate::proxy) fn several(uri: &str, uris: &[String]) -> Reply {
    let (uri, uris) = (uri.to_owned(), uris.to_vec());
    NotFound::SeveralResources { uri, uris }.into()
}

/// The error that no server has the resource: a code of its own before 2026-07-28, an invalid parameter since
/// (server/resources).
pub(in crate::proxy) fn not_found(caller: &Caller, uri: &str) -> Reply {
    let code = if caller.revision.is_modern() {
        ErrorCode::INVALID_PARAMS
    } else {
        ErrorCode::RESOURCE_NOT_FOUND
    };
    Reply::Error {
        code,
        message: format!("there is no resource `{uri}`"),
        data: Some(format!(r#"{{"uri":{}}}"#, quoted(uri))),
        cause: None,
    }
}

/// Converts a server's error for a modern client, which has no error code for a missing resource but has the URI in
/// `data`.
fn in_modern(error: Bytes, uri: &str) -> Bytes {
    if code_of(&error) != Some(ErrorCode::RESOURCE_NOT_FOUND) {
        return error;
    }
    let raw: &RawValue =
        serde_json::from_slice(&error).expect("a reply's payload was read as JSON");
    let coded = Object::parse(raw)
        .unwrap_or_default()
        .with("code", &ErrorCode::INVALID_PARAMS.to_string());
    let raw: &RawValue =
        serde_json::from_str(&coded).expect("an object with a member replaced is one");
    let object = Object::parse(raw).unwrap_or_default();
    match object.get("data") {
        Some(_) => coded.into(),
        None => object
            .with("data", &format!(r#"{{"uri":{}}}"#, quoted(uri)))
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Cache, Key, Listed};
    use crate::mcp::ServerCapabilities;

    fn server(name: &str, resources: &[&str], templates: &[&str]) -> Arc<ServerTools> {
        let key = Key {
            server: ServerName::new(name).unwrap(),
            configuration: String::new(),
        };
        let entries = |key: &str, uris: &[&str]| {
            uris.iter()
                .map(|uri| format!(r#"{{"{key}":"{uri}"}}"#).into())
                .collect()
        };
        let capabilities = RawValue::from_string(r#"{"resources":{}}"#.to_owned()).unwrap();
        let listed = Listed {
            resources: entries("uri", resources),
            templates: entries("uriTemplate", templates),
            capabilities: ServerCapabilities::new(&capabilities),
            ..Listed::default()
        };
        Arc::new(Cache::new(None).store(&key, &listed))
    }

    #[test]
    fn a_uri_is_found_where_it_is_listed_then_by_template_then_where_it_is_likely() {
        let servers = [
            server("a", &["file:///x", "a:1"], &["t:{+any}", "s:{id}"]),
            server(
                "b",
                &["file:///x", "file:///docs/y"],
                &["t:long/{id}", "s:{name}"],
            ),
        ];
        #[track_caller]
        fn check(servers: &[Arc<ServerTools>], uri: &str, expected: &str) {
            let listing = servers.iter().filter(|server| server.names_resource(uri));
            let owners = Owners {
                by_list: listing.map(|server| server.name().clone()).collect(),
                by_link: BTreeSet::new(),
            };
            let found = match target(servers, uri, &owners, false, &ServerTools::names_resource) {
                ResourceTarget::At(server, own) => format!("{server} {own}"),
                ResourceTarget::Several(uris) => uris.join(" or "),
                ResourceTarget::Unlisted(likely) => format!("unlisted {likely:?}"),
            };
            assert_eq!(found, expected, "{uri}");
        }
        check(&servers, "a:1", "a a:1");
        check(
            &servers,
            "file:///x",
            "mcpzip://a/file%3A%2F%2F%2Fx or mcpzip://b/file%3A%2F%2F%2Fx",
        );
        check(&servers, "mcpzip://b/file%3A%2F%2F%2Fx", "b file:///x");
        check(&servers, "t:short/1", "a t:short/1");
        check(&servers, "t:long/1", "b t:long/1");
        check(
            &servers,
            "s:a%20b",
            "mcpzip://a/s%3Aa%20b or mcpzip://b/s%3Aa%20b",
        );
        check(&servers, "mcpzip://a/s%3Aa%20b", "a s:a%20b");
        check(&servers, "mcpzip://a/new%3Athing", "a new:thing");
        check(&servers, "mcpzip://c/x", "unlisted []");
        check(&servers, "file:///docs/z", "unlisted [b, a]");
        check(&servers, "other:z", "unlisted [a, b]");
    }

    #[test]
    fn a_missing_resource_is_said_in_the_words_of_the_era() {
        let check = |error: &'static str, expected: &str| {
            assert_eq!(in_modern(error.into(), "x:1"), expected);
        };
        check(
            r#"{"code":-32002,"message":"no","x":1e400}"#,
            r#"{"code":-32602,"message":"no","x":1e400,"data":{"uri":"x:1"}}"#,
        );
        check(
            r#"{"code":-32002,"data":{"n":1}}"#,
            r#"{"code":-32602,"data":{"n":1}}"#,
        );
        check(r#"{"code": -32603}"#, r#"{"code": -32603}"#);
    }
}
