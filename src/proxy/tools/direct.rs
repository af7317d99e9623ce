//! Direct mode: every tool under its own name with its server's own definition, for clients that search themselves.
//!
//! Rules and consent apply. Arguments are not checked or repaired, and results are not selected or shortened: the client
//! gets the server's response.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::Tools;
use super::call::{Call, TaskWish, completed, has_scopes, size_of_answer};
use super::shown::is_listed;
use crate::catalog::{Adapted, ServerTools, Snapshot, Tool};
use crate::config::{BUILT_IN_SERVER, Server};
use crate::mcp::headers::Mismatch;
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Frame, Object};
use crate::proxy::answers::answer::AnsweredCall;
use crate::proxy::answers::projection::Selector;
use crate::proxy::features::page::{Cursor, FIRST_LISTING, PAGE};
use crate::proxy::ledger::CallEvent;
use crate::proxy::own_uris;
use crate::proxy::relay::consent::{Agreement, Consent};
use crate::proxy::relay::{Relayed, RequestContext, without_secrets};
use crate::proxy::view::View;
use crate::proxy::{Caller, Failure, Reply};
use crate::statistics::CallPath;
use crate::tool::{SEPARATOR, ToolName};
use crate::upstream::{self, mirrored};

/// The number of snapshots whose names are held.
const MOST_NAMED: usize = 8;

/// The tools of the latest snapshots by the names that clients see; computed on first use.
#[derive(Debug, Default)]
pub(in crate::proxy) struct DirectNames(Mutex<Vec<Named>>);

#[derive(Debug)]
struct Named {
    of: Arc<Snapshot>,
    longest: usize,
    tools: Arc<HashMap<String, Tool>>,
}

impl DirectNames {
    /// The names of `snapshot` of at most `longest` characters, computed once.
    pub(super) fn of(
        &self,
        snapshot: &Arc<Snapshot>,
        longest: usize,
    ) -> Arc<HashMap<String, Tool>> {
        let mut known = self.0.lock();
        if let Some(named) = known
            .iter()
            .find(|named| Arc::ptr_eq(&named.of, snapshot) && named.longest == longest)
        {
            return named.tools.clone();
        }
        let foreign = snapshot
            .tools()
            .filter(|tool| tool.server().name().as_str() != BUILT_IN_SERVER);
        let mut named: HashMap<String, Vec<Tool>> = HashMap::new();
        for tool in foreign {
            named
                .entry(direct_name(&tool, longest))
                .or_default()
                .push(tool);
        }
        let only = |(name, mut tools): (String, Vec<Tool>)| {
            if tools.len() > 1 {
                tracing::warn!(
                    name,
                    "several tools get this name, so none of them is listed"
                );
            }
            tools
                .pop()
                .filter(|_| tools.is_empty())
                .map(|tool| (name, tool))
        };
        let tools: Arc<HashMap<_, _>> = Arc::new(named.into_iter().filter_map(only).collect());
        if known.len() >= MOST_NAMED {
            known.remove(0);
        }
        known.push(Named {
            of: snapshot.clone(),
            longest,
            tools: tools.clone(),
        });
        tools
    }
}

const NO_DEFINITION: &str =
    "the tool's definition cannot be read now, so no headers can be compared with it; try again";

impl Tools {
    /// A page of all tools of all servers. Each entry has its server's own bytes, except for the name.
    pub(in crate::proxy) async fn direct_tools(
        &self,
        view: &View,
        params: &Object<'_>,
        modern: bool,
    ) -> Reply {
        let cursor = match Cursor::of(params) {
            Ok(cursor) => cursor,
            Err(refusal) => return refusal,
        };
        self.inventory.known(None, FIRST_LISTING).await;
        self.inventory.renew();
        let snapshot = view.snapshot();
        let start = |server: &ServerTools| match &cursor {
            None => Some(0),
            Some(cursor) => cursor.start(server.name(), |key| {
                server.position(&ToolName::new(key).ok()?)
            }),
        };
        let servers = snapshot
            .servers()
            .filter(|server| server.name().as_str() != BUILT_IN_SERVER);
        let behind = servers.flat_map(|server| {
            let count = server.entries().len();
            (start(server).unwrap_or(count)..count).map(move |index| (server, index))
        });
        let mut positions: Vec<_> = behind.take(PAGE + 1).collect();
        let has_more = positions.len() > PAGE;
        positions.truncate(PAGE);
        let next = positions
            .last()
            .filter(|_| has_more)
            .map(|(server, index)| {
                let key = server.entries()[*index].name.to_string();
                Cursor {
                    server: server.name().clone(),
                    index: *index,
                    key,
                }
                .next_member()
            });
        let tools = positions.iter().filter_map(|(server, index)| {
            snapshot.tool(server.name(), &server.entries()[*index].name)
        });
        let longest = view.surface().longest_name;
        let named = self.direct_names.of(&snapshot, longest);
        let entries: Vec<String> = tools
            .filter_map(|tool| self.direct_definition(view, &named, &tool))
            .collect();
        let next = next.unwrap_or_default();
        Reply::changing(
            format!(r#"{{"tools":[{}]{next}}}"#, entries.join(",")).into(),
            modern,
        )
    }

    /// The definition of a tool under the name that clients see; `None` if another tool has that name, too, or clients cannot read it.
    pub(super) fn direct_definition(
        &self,
        view: &View,
        named: &HashMap<String, Tool>,
        tool: &Tool,
    ) -> Option<String> {
        let name = direct_name(tool, view.surface().longest_name);
        named.get(&name)?;
        let json = self.inventory.definition(tool)?;
        let server = tool.server().name();
        let json = self.listables.of(tool, &json)?;
        let renamed =
            own_uris::for_clients(server, &json).and_then(|json| RawValue::from_string(json).ok());
        // An entry in the catalog was parsed as an object.
        let named = Object::parse(renamed.as_deref().unwrap_or(&json))
            .ok()?
            .with("name", &quoted(&name));
        let config = view.config();
        let entry = config.servers.get(server);
        if !entry.is_some_and(Server::is_interface) {
            return Some(named);
        }
        // Clients refuse an answer that differs from its schema, and those of HTTP interfaces may.
        let raw: &RawValue = serde_json::from_str(&named).ok()?;
        Some(Object::parse(raw).ok()?.without("outputSchema"))
    }

    /// Calls a tool with the client's arguments, and returns the server's response.
    pub(in crate::proxy) async fn direct_call(
        &self,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
        line: &Bytes,
    ) -> Reply {
        let Some(name) = params.text("name") else {
            return Reply::invalid_params("`name` must be a string");
        };
        match self.called_by_name(view, caller, &name, params, line).await {
            // An unknown name is a protocol error.
            Err(failure) if failure.is_unknown() => Reply::invalid_params(failure.text(view)),
            called => called.unwrap_or_else(|failure| failure.reply(view)),
        }
    }

    /// [`Self::call_by_name`] with a line in the audit log, if there is one.
    pub(super) async fn called_by_name(
        &self,
        view: &View,
        caller: &Caller,
        name: &str,
        params: &Object<'_>,
        line: &Bytes,
    ) -> Result<Reply, Failure> {
        let call = pin!(self.call_by_name(view, caller, name, params, line));
        let Some(audit) = self.ledger.audit() else {
            return call.await;
        };
        let sent = params.get("arguments").map_or("{}", RawValue::get);
        let tool = || {
            let listed = self.listed_directly(view, name);
            listed.or_else(|| self.called_by_view(view, name).ok().flatten())
        };
        let entry = CallEvent::begin(audit, view, Some(caller), name, sent)?;
        entry.record(call, tool, |reply| reply).await
    }

    /// Calls the tool that clients see as `name`.
    async fn call_by_name(
        &self,
        view: &View,
        caller: &Caller,
        tool_name: &str,
        params: &Object<'_>,
        line: &Bytes,
    ) -> Result<Reply, Failure> {
        let context = RequestContext::of(caller, view, params);
        self.may_begin(tool_name, Some(&context))?;
        let tool = self.direct_tool(view, tool_name).await?;
        if let Err(mismatch) = self.check_params(caller, &tool, params) {
            let text = mismatch.map_or_else(|| NO_DEFINITION.to_owned(), |error| error.to_string());
            return Ok(Reply::error(ErrorCode::HEADER_MISMATCH, text));
        }
        let (name, shown) = (tool.own_name(), tool.qualified_name());
        let sent = params.get("arguments").map_or("{}", RawValue::get);
        let raw: &RawValue = serde_json::from_str(sent).unwrap_or(RawValue::NULL);
        let completed = completed(&tool, raw)?;
        has_scopes(view, Some(&context), &tool)?;
        let is_script = view.config().has_scripts(tool.server().name());
        if is_script {
            // Its server is this program, so nothing else checks them.
            self.check_arguments(view, &tool, params.get("arguments"))
                .await?;
        }
        let missing = Agreement::Missing;
        let consent = (self.relay).consent(view, &tool, sent, Some(&context), missing);
        let consent = match consent.await? {
            Consent::Asked(reply) => return Ok(reply),
            consent => consent,
        };
        let adapted = tool.adapted();
        let asked = AnsweredCall {
            name: &name,
            select: adapted.and_then(Adapted::select).map(Selector::User),
            budget: adapted.and_then(Adapted::budget),
            form: adapted.and_then(Adapted::form),
            caller,
            view,
        };
        if is_script {
            let arguments = completed.as_deref().unwrap_or(raw);
            let call = Call {
                name: tool_name,
                arguments: Some(arguments),
                line: None,
                limit: None,
                view,
                context: Some(&context),
                agreement: Agreement::Missing,
                is_read_only: false,
                task: None,
            };
            let own = consent.context(Some(&context));
            let reply = self.run_saved(&call, own, &tool, arguments).await?;
            return Ok(match reply {
                Reply::Relayed(result) => {
                    if let Consent::Given(given) = &consent {
                        let result = upstream::ServerReply::Result(result.clone());
                        self.relay.agreed(given, (view, &tool), sent, &result);
                    }
                    self.answers.direct(result, &asked).await
                }
                reply => reply,
            });
        }
        let head = format!(r#"{{"name":{}"#, quoted(name.tool.as_str()));
        // The arguments are the body: headers for the server are made of it.
        let body = match (params.get("arguments"), completed) {
            (_, Some(all)) => Some(Bytes::copy_from_slice(all.get().as_bytes())),
            (Some(raw), None) => Some(line.slice_ref(raw.get().as_bytes())),
            (None, None) => None,
        };
        let frame = match body {
            None => Frame::from(head),
            Some(body) => Frame {
                head: format!(r#"{head},"arguments":"#).into_bytes(),
                body,
                tail: Vec::new(),
            },
        };
        let wish = Some(TaskWish {
            select: None,
            is_direct: true,
        });
        let relayed = Relayed {
            method: "tools/call",
            name: Some(name.tool.as_str()),
            params: frame,
            limit: self.relay.limit(view, &name.server),
            is_repeatable: tool.entry().hints.is_repeatable(),
            takes_task: self.takes_task(view, Some(&context), (&tool, raw), wish),
        };
        let permit = self.permit(view, Some(&context), &name).await?;
        let (bytes, start) = (sent.len(), Instant::now());
        let context = consent.context(Some(&context));
        let outcome = self.send(&tool, relayed, context).await;
        let outcome = self.unchanged(view, &tool, outcome);
        permit.count_bytes(bytes + size_of_answer(&outcome));
        let result = match &outcome {
            Ok(upstream::ServerReply::Result(result)) => Some(result),
            _ => None,
        };
        self.answers
            .count_call(&name, start.elapsed(), bytes, result, CallPath::OwnName);
        if let (Consent::Given(given), Ok(reply)) = (&consent, &outcome) {
            self.relay.agreed(given, (view, &tool), sent, reply);
        }
        if let Err(upstream::CallError::Changed { server, .. }) = &outcome {
            self.inventory.poke(server);
        }
        let outcome =
            outcome.map(|reply| without_secrets(&view.config(), tool.server().name(), reply));
        if let Some(made) = self.made_task(view, context, (&tool, raw), wish, &outcome) {
            return made;
        }
        match outcome {
            Ok(upstream::ServerReply::Result(result)) if result.starts_with(b"{") => {
                let reply = self.answers.direct(result, &asked).await;
                Ok(self.with_loss(caller, tool.server().name(), reply))
            }
            Ok(upstream::ServerReply::Result(_)) => Ok(Reply::error(
                ErrorCode::INTERNAL,
                format!(
                    "the result of server `{}` is not a JSON object",
                    shown.server
                ),
            )),
            Ok(upstream::ServerReply::Error(error)) => Ok(Reply::RelayedError(error)),
            Err(error) => {
                let error = Box::new(error);
                Err(Failure::Call { name: shown, error })
            }
        }
    }

    /// Checks that headers of the call equal its arguments (2026-07-28, basic/transports/streamable-http), because a
    /// server or a proxy in front may use either.
    fn check_params(
        &self,
        caller: &Caller,
        tool: &Tool,
        params: &Object<'_>,
    ) -> Result<(), Option<Mismatch>> {
        let Some(sent) = &caller.params else {
            return Ok(());
        };
        let entry = self.inventory.definition(tool).ok_or(None)?;
        mirrored(&entry, params.get("arguments"))
            .into_iter()
            .try_for_each(|(header, argument)| sent.check(&header, argument.as_deref()))
            .map_err(Some)
    }

    /// The tool that the client sees as `name`.
    pub(super) fn listed_directly(&self, view: &View, name: &str) -> Option<Tool> {
        let longest = view.surface().longest_name;
        let named = self.direct_names.of(&view.listable(), longest);
        let tool = named.get(name).cloned();
        tool.filter(|tool| is_listed(view, tool))
    }

    /// The tool that an interface means by its server's own name for it, if one server with interfaces has such a tool. A request
    /// does not say which interface it comes from.
    ///
    /// # Errors
    /// When several servers have one.
    pub(super) fn called_by_view(&self, view: &View, name: &str) -> Result<Option<Tool>, Failure> {
        if !view.surface().shows_interfaces {
            return Ok(None);
        }
        let snapshot = view.listable();
        let tools = snapshot
            .tools()
            .filter(|tool| tool.server().has_interfaces());
        let named = tools.filter(|tool| tool.entry().as_listed().name.as_str() == name);
        let mut found: Vec<Tool> = named.filter(Tool::is_for_interfaces).collect();
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => Err(Failure::Ambiguous {
                name: name.to_owned(),
                names: found
                    .iter()
                    .map(Tool::qualified_name)
                    .map(|name| name.to_string())
                    .collect(),
            }),
        }
    }

    /// The tool that clients see as `name`, or may mean by it.
    async fn direct_tool(&self, view: &View, name: &str) -> Result<Tool, Failure> {
        self.inventory.loaded().await;
        let listed = || self.listed_directly(view, name);
        if let Some(tool) = listed() {
            return Ok(tool);
        }
        match self.called_by_view(view, name)? {
            Some(tool) => Ok(tool),
            // It may be a bare name, or a tool of a server that was never listed.
            None => match self.find(view, name).await {
                Ok(tool)
                    if tool.server().name().as_str() != BUILT_IN_SERVER
                        && is_listed(view, &tool) =>
                {
                    Ok(tool)
                }
                Ok(_) => Err(Failure::NotShown {
                    name: name.to_owned(),
                }),
                Err(failure) => listed().ok_or(failure),
            },
        }
    }
}

/// `server__tool`, if every client accepts it; else as much of it as they accept, with a unique suffix.
fn direct_name(tool: &Tool, longest: usize) -> String {
    let name = tool.qualified_name();
    shortened(name.server.as_str(), name.tool.as_str(), longest)
}

fn shortened(server: &str, tool: &str, longest: usize) -> String {
    let name = format!("{server}{SEPARATOR}{tool}");
    // `a_` with `x` would be parsed as `a` with `_x`.
    let is_clear = !server.ends_with('_');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if is_clear && name.len() <= longest && name.chars().all(is_plain) {
        return name;
    }
    let hash = match is_clear {
        true => Sha256::digest(&name),
        false => Sha256::digest(format!("{server}\0{tool}")),
    };
    let mark = HEXLOWER.encode(&hash[..4]);
    let plain: String = name
        .chars()
        .map(|c| if is_plain(c) { c } else { '_' })
        .take(longest - mark.len() - 1)
        .collect();
    format!("{plain}_{mark}")
}

#[cfg(test)]
mod tests {
    use crate::proxy::view::LONGEST_NAME as LONGEST;

    fn shortened(server: &str, tool: &str) -> String {
        super::shortened(server, tool, LONGEST)
    }

    #[test]
    fn names_are_kept_or_shortened_stably_and_apart() {
        assert_eq!(shortened("github", "create_issue"), "github__create_issue");
        let long = "x".repeat(70);
        let (one, other) = (
            shortened("server", &format!("{long}a")),
            shortened("server", &format!("{long}b")),
        );
        assert_eq!((one.len(), other.len()), (LONGEST, LONGEST));
        assert_ne!(one, other);
        assert_eq!(one, shortened("server", &format!("{long}a")));
        assert_ne!(shortened("a", "b.c"), shortened("a", "b_c"));
        assert_ne!(shortened("a_", "x"), shortened("a", "_x"));
        assert_ne!(shortened("a_", &long), shortened("a", &format!("_{long}")));
        for tool in ["b.c", "ü", "b/c d"] {
            let short = shortened("a", tool);
            assert!(
                short
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')),
                "{short}"
            );
        }
    }
}
