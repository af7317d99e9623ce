//! Calls that their servers answer with a task (extension `io.modelcontextprotocol/tasks`, revision 2026-07-28).
//!
//! A client that declares the extension gets the task under an id of mcpzip (`handle.rs`), and asks for it, answers its questions and
//! cancels it by that id. Each such request is checked as the call was: the tool has to be one that this client may call now, with
//! these arguments. The result of the task is shown as the result of the call would be.

mod handle;
mod watch;

use std::collections::BTreeMap;
use std::pin::pin;

use bytes::Bytes;
use futures_util::future::{BoxFuture, join_all};
use serde_json::value::RawValue;

use self::handle::{Handle, LONGEST_ID, LONGEST_SELECT};
use self::watch::{Change, MOST_TASKS};
use super::Tools;
use super::call::{TaskWish, has_scopes, size_of_answer};
use crate::catalog::{Adapted, Tool};
use crate::config::Verdict;
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Frame, Object, Revision, TASKS};
use crate::proxy::answers::answer::AnsweredCall;
use crate::proxy::answers::projection::Selector;
use crate::proxy::callers::caller::named;
use crate::proxy::failure::{Failure, Withheld};
use crate::proxy::ledger::CallEvent;
use crate::proxy::relay::{
    Relayed, RequestContext, task_in, without_related_task, without_secrets,
};
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply};
use crate::tool::ServerName;
use crate::upstream::{CallError, Question, ServerReply, Word, code_of};

pub(in crate::proxy) use self::handle::TaskIds;
pub(crate) use self::watch::TaskWatch;
pub(in crate::proxy) use self::watch::Watches;

/// The rule that is named where rules look at arguments which are not kept.
const UNKNOWN_ARGUMENTS: &str =
    "rules look at arguments, and those of this task were too long to keep";

/// The answer to a request about a task.
struct Answered {
    reply: Reply,
    /// The part of it that the audit log is about; `None` for a task that goes on.
    recorded: Option<Reply>,
}

impl Tools {
    /// Whether the server of a call may answer with a task.
    pub(super) fn takes_task(
        &self,
        view: &View,
        context: Option<&RequestContext>,
        (tool, arguments): (&Tool, &RawValue),
        wish: Option<TaskWish<'_>>,
    ) -> bool {
        let takes = |context: &RequestContext| {
            // One of several calls has no result of its own.
            let is_alone = context.is_askable && context.script.is_none();
            is_alone && context.caller.extensions.takes_tasks()
        };
        let fits = |wish: TaskWish<'_>| wish.select.is_none_or(|one| one.len() <= LONGEST_SELECT);
        // Without the arguments, rules about them would keep the result from its caller.
        let is_kept = || {
            arguments.get().len() <= handle::LONGEST_ARGUMENTS
                || !view.config().inspects(tool.server().name())
        };
        wish.is_some_and(fits)
            && context.is_some_and(takes)
            && is_kept()
            && self.task_ids.is_ready()
    }

    /// The reply to a call that its server answered with a task; `None` if it is another answer.
    pub(super) fn made_task(
        &self,
        view: &View,
        context: Option<&RequestContext>,
        (tool, arguments): (&Tool, &RawValue),
        wish: Option<TaskWish<'_>>,
        answered: &Result<ServerReply, CallError>,
    ) -> Option<Result<Reply, Failure>> {
        let Ok(ServerReply::Result(result)) = answered else {
            return None;
        };
        let may_be = result.may_have(Word::Task);
        let task = may_be.then(|| task_in(result))??;
        let takes = self.takes_task(view, context, (tool, arguments), wish);
        let is_modern = tool.server().revision().is_some_and(Revision::is_modern);
        let failed = |message: &str| Failure::Refused {
            name: tool.qualified_name(),
            message: message.to_owned(),
            data: None,
        };
        if !is_modern {
            // Older clients do not know this member of a result, and older servers may have one of their own.
            let is_known = context.is_some_and(|context| context.caller.revision.is_modern());
            let reason = "its result says that it is a task, which its revision does not have";
            return is_known.then(|| Err(failed(reason)));
        }
        let (Some(context), Some(wish)) = (context.filter(|_| takes), wish) else {
            return Some(Err(failed("it made a task that was not asked for")));
        };
        let id = task
            .text("taskId")
            .filter(|id| !id.is_empty() && id.len() <= LONGEST_ID);
        let Some(id) = id else {
            return Some(Err(failed("it made a task without a usable id")));
        };
        let server = tool.server().name();
        let Some(entry) = handle::entry_of(&view.config(), server) else {
            return Some(Err(failed("its server was removed")));
        };
        let handle = Handle::new(
            (&tool.own_name(), entry),
            id,
            arguments,
            (wish.select, wish.is_direct),
        );
        let made = match self.task_ids.seal(view, &context.caller, &handle) {
            Ok(id) => {
                let changed = [("resultType", quoted("task")), ("taskId", quoted(&id))];
                Ok(Reply::Task(shaped(&task, &changed).into()))
            }
            Err(error) => Err(failed(&format!("its task has no id: {error}"))),
        };
        Some(made)
    }

    /// Answers `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(in crate::proxy) async fn task(
        &self,
        view: &View,
        caller: &Caller,
        method: &str,
        params: &Object<'_>,
    ) -> Reply {
        if !caller.extensions.takes_tasks() {
            return missing_extension();
        }
        let Some(id) = params.text("taskId") else {
            return Reply::invalid_params("`taskId` must be a string");
        };
        let handle = match self.task_ids.open(view, caller, &id) {
            Ok(handle) => handle,
            Err(error) => {
                tracing::error!(%error, "the ids of tasks cannot be read");
                let text = "the ids of tasks cannot be read now: the log says why";
                return Reply::error(ErrorCode::INTERNAL, text.to_owned());
            }
        };
        let Some(handle) = handle else {
            return self.unknown_task(view, caller, method);
        };
        match self
            .about_task(view, caller, method, params, &id, &handle)
            .await
        {
            Ok(reply) => reply,
            // Another tool, or none, has its name now.
            Err(failure) if failure.is_unknown() => self.unknown_task(view, caller, method),
            Err(failure) => refusal(failure, view),
        }
    }

    /// Refuses the id of a task that is none of this caller.
    fn unknown_task(&self, view: &View, caller: &Caller, method: &str) -> Reply {
        let reason = "there is no such task";
        match self.refused(view, Some(caller), method, Failure::Unreadable { reason }) {
            Failure::Unreadable { .. } => Reply::invalid_params(reason),
            unwritten => refusal(unwritten, view),
        }
    }

    /// Makes a request about a task, with a line in the audit log if it has an effect or a result.
    async fn about_task(
        &self,
        view: &View,
        caller: &Caller,
        method: &str,
        params: &Object<'_>,
        id: &str,
        handle: &Handle,
    ) -> Result<Reply, Failure> {
        let tool = self.tool_of_task(view, handle).await;
        let found = tool.as_ref().ok().cloned();
        let asked = async {
            let tool = tool?;
            self.ask_about(view, caller, (method, params, id), handle, &tool)
                .await
        };
        if method != "tasks/get" {
            let answered = self.recorded(view, caller, method, handle, found, asked);
            return Ok(answered.await?.reply);
        }
        // Nothing is written while the task goes on.
        match asked.await {
            Ok(Answered {
                reply,
                recorded: None,
            }) => Ok(reply),
            answered => {
                let answered = async { answered };
                let answered = self.recorded(view, caller, method, handle, found, answered);
                Ok(answered.await?.reply)
            }
        }
    }

    /// Makes a request about a task, with a line in the audit log if there is one.
    async fn recorded(
        &self,
        view: &View,
        caller: &Caller,
        method: &str,
        handle: &Handle,
        tool: Option<Tool>,
        asked: impl Future<Output = Result<Answered, Failure>>,
    ) -> Result<Answered, Failure> {
        let Some(audit) = self.ledger.audit() else {
            return asked.await;
        };
        let arguments = handle.arguments.as_deref().map_or("{}", RawValue::get);
        let name = handle.tool().map(|name| name.to_string());
        let name = name.unwrap_or_default();
        let event = CallEvent::begin(audit, view, Some(caller), &name, arguments)?;
        let (event, asked) = (event.about_task(method), pin!(asked));
        event.record(asked, || tool.clone(), about).await
    }

    /// Subscribes a caller to the tasks of `notifications.taskIds` that are its own.
    ///
    /// # Errors
    /// With the answer if the request does not declare the extension.
    pub(in crate::proxy) async fn watch(
        &self,
        view: &View,
        caller: &Caller,
        notifications: &Object<'_>,
    ) -> Result<TaskWatch, Reply> {
        let ids = notifications.get("taskIds");
        if ids.is_some() && !caller.extensions.takes_tasks() {
            return Err(missing_extension());
        }
        let ids = ids.and_then(|raw| serde_json::from_str::<Vec<String>>(raw.get()).ok());
        let ids = ids.unwrap_or_default().into_iter().take(MOST_TASKS);
        let own = ids.filter_map(|id| {
            let handle = self.task_ids.open(view, caller, &id).ok()??;
            Some((id, handle))
        });
        let mut own: BTreeMap<String, Handle> = own.collect();
        let known = own
            .values()
            .map(|handle| self.is_known_task(view, caller, handle));
        let mut known = join_all(known).await.into_iter();
        own.retain(|_, _| known.next().unwrap_or(false));
        Ok(self.watches.add(caller, own))
    }

    /// Whether the caller may have the task, and its server knows it.
    fn is_known_task<'a>(
        &'a self,
        view: &'a View,
        caller: &'a Caller,
        handle: &'a Handle,
    ) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let context = context_of(caller, view, &Object::default());
            let Ok(tool) = self.tool_of_task(view, handle).await else {
                return false;
            };
            let own = tool.own_name();
            if self.may_have(view, &context, handle, &tool).is_err() {
                return false;
            }
            let Ok(_permit) = self.permit(view, Some(&context), &own).await else {
                return false;
            };
            let get = Relayed {
                method: "tasks/get",
                name: Some(&handle.id),
                params: Frame::from(format!(r#"{{"taskId":{}"#, quoted(&handle.id))),
                limit: self.relay.limit(view, &own.server),
                is_repeatable: true,
                takes_task: true,
            };
            let reply = self.relay.request(&own.server, get, Some(&context)).await;
            matches!(reply, Ok(ServerReply::Result(_)))
        })
    }

    /// Receives a server's notification about a task.
    pub(in crate::proxy) fn task_changed(&self, server: &ServerName, params: &RawValue) {
        let id = Object::parse(params)
            .ok()
            .and_then(|object| object.text("taskId"));
        if let Some(id) = id {
            let params = Bytes::copy_from_slice(params.get().as_bytes());
            self.watches.changed(server, &id, &params);
        }
    }

    /// The next notification about a task for its client, as `params`. A task has one end.
    pub(in crate::proxy) async fn next_change(
        &self,
        watch: &mut TaskWatch,
        view: impl Fn() -> View,
    ) -> Option<String> {
        loop {
            let change = watch.next().await?;
            let (caller, view) = (&watch.watched.caller, view());
            let handle = watch.watched.tasks.get(&change.id)?;
            if watch.ended.contains(&change.id) {
                continue;
            }
            match self.change_for(&view, caller, handle, &change).await {
                Ok((params, is_end)) => {
                    if is_end {
                        watch.ended.insert(change.id.clone());
                    }
                    return Some(params);
                }
                Err(failure) => tracing::debug!(
                    reason = failure.text(&view),
                    "a notification about a task is not passed on"
                ),
            }
        }
    }

    async fn change_for(
        &self,
        view: &View,
        caller: &Caller,
        handle: &Handle,
        change: &Change,
    ) -> Result<(String, bool), Failure> {
        let tool = self.tool_of_task(view, handle).await?;
        let context = context_of(caller, view, &Object::default());
        self.may_have(view, &context, handle, &tool)?;
        let server = tool.server().name();
        let params = self.relay.noted_result(server, change.params.clone());
        let params = ServerReply::Result(params.into());
        let malformed = || Failure::Malformed {
            name: tool.qualified_name(),
        };
        let ServerReply::Result(params) = without_secrets(&view.config(), server, params) else {
            return Err(malformed());
        };
        let raw: &RawValue = serde_json::from_slice(&params).map_err(|_| malformed())?;
        let state = Object::parse(raw).map_err(|_| malformed())?;
        let mut answered = self
            .state_for(&context, &change.id, handle, &tool, &state)
            .await?;
        let is_end = answered.recorded.is_some();
        if is_end {
            let (method, found) = ("notifications/tasks", Some(tool.clone()));
            let ready = async { Ok(answered) };
            answered = self
                .recorded(view, caller, method, handle, found, ready)
                .await?;
        }
        let Reply::Relayed(state) = answered.reply else {
            return Err(malformed());
        };
        let raw: &RawValue = serde_json::from_slice(&state).map_err(|_| malformed())?;
        let state = Object::parse(raw).map_err(|_| malformed())?;
        Ok((state.without("resultType"), is_end))
    }

    /// The tool of a task, if the client may call it now.
    async fn tool_of_task(&self, view: &View, handle: &Handle) -> Result<Tool, Failure> {
        let unknown = || Failure::Unknown {
            name: handle
                .tool()
                .map(|name| name.to_string())
                .unwrap_or_default(),
            server: None,
            nearest: Vec::new(),
            denied: None,
        };
        let name = handle.tool().ok_or_else(unknown)?;
        if !handle.is_of(&view.config(), &name.server) {
            return Err(unknown());
        }
        self.inventory.loaded().await;
        let known = || {
            // Tools of interfaces are called by their own names only.
            let snapshot = match handle.is_direct {
                true => view.listable(),
                false => view.snapshot(),
            };
            let server = snapshot.server(&name.server)?;
            let mut entries = server.entries().iter();
            let entry = entries.find(|entry| entry.as_listed().name == name.tool)?;
            snapshot.tool(&name.server, &entry.name)
        };
        if let Some(tool) = known() {
            return Ok(tool);
        }
        // It waits for a server that was not listed yet, and knows why a tool is not available.
        match self.find(view, &name.to_string()).await {
            Ok(_) => known().ok_or_else(unknown),
            Err(failure) => Err(failure),
        }
    }

    /// Asks a server about a task.
    async fn ask_about(
        &self,
        view: &View,
        caller: &Caller,
        (method, params, id): (&str, &Object<'_>, &str),
        handle: &Handle,
        tool: &Tool,
    ) -> Result<Answered, Failure> {
        let context = context_of(caller, view, params);
        self.may_have(view, &context, handle, tool)?;
        let (name, own) = (tool.qualified_name(), tool.own_name());
        let permit = self.permit(view, Some(&context), &own).await?;
        let mut asked = format!(r#"{{"taskId":{}"#, quoted(&handle.id));
        if method == "tasks/update" {
            let responses = params.get("inputResponses").map_or("{}", RawValue::get);
            asked = format!(r#"{asked},"inputResponses":{responses}"#);
        }
        let relayed = Relayed {
            method,
            name: Some(&handle.id),
            params: Frame::from(asked),
            limit: self.relay.limit(view, &own.server),
            is_repeatable: method != "tasks/update",
            takes_task: true,
        };
        let answered = self
            .relay
            .request(&own.server, relayed, Some(&context))
            .await;
        permit.count_bytes(size_of_answer(&answered));
        let reply = answered.map_err(|error| Failure::Call {
            name: name.clone(),
            error: Box::new(error),
        })?;
        let result = match without_secrets(&view.config(), &own.server, reply) {
            ServerReply::Result(result) => result,
            ServerReply::Error(error) => {
                // The server's words about this would name the task as no client knows it.
                let is_unknown =
                    method != "tasks/update" && code_of(&error) == Some(ErrorCode::INVALID_PARAMS);
                let reply = match is_unknown {
                    true => Reply::invalid_params(format!(
                        "server `{}` has no such task any more",
                        own.server
                    )),
                    false => Reply::RelayedError(error),
                };
                return Ok(Answered {
                    recorded: Some(reply.clone()),
                    reply,
                });
            }
        };
        let raw: Option<&RawValue> = serde_json::from_slice(&result).ok();
        let Some(state) = raw.and_then(|raw| Object::parse(raw).ok()) else {
            return Err(Failure::Malformed { name });
        };
        if method != "tasks/get" {
            let done = Reply::Result("{}".into());
            return Ok(Answered {
                reply: done.clone(),
                recorded: Some(done),
            });
        }
        self.state_for(&context, id, handle, tool, &state).await
    }

    /// Whether the caller may have a task of this tool with these arguments.
    fn may_have(
        &self,
        view: &View,
        context: &RequestContext,
        handle: &Handle,
        tool: &Tool,
    ) -> Result<(), Failure> {
        has_scopes(view, Some(context), tool)?;
        let own = tool.own_name();
        let rule = match &handle.arguments {
            Some(arguments) => match view.judge(tool, &own, arguments.get()) {
                (Verdict::Denied, rule) => rule.unwrap_or_default(),
                _ => return Ok(()),
            },
            None if view.config().inspects(&own.server) => UNKNOWN_ARGUMENTS.to_owned(),
            None => return Ok(()),
        };
        Err(Failure::Withheld {
            name: tool.qualified_name(),
            reason: Withheld::ByArguments(rule),
        })
    }

    /// The state of a task for its client: under our id, its questions with the name of the server, its result shown as that of a call.
    async fn state_for(
        &self,
        context: &RequestContext,
        id: &str,
        handle: &Handle,
        tool: &Tool,
        state: &Object<'_>,
    ) -> Result<Answered, Failure> {
        let (view, caller) = (&context.view, &context.caller);
        let malformed = || Failure::Malformed {
            name: tool.qualified_name(),
        };
        let mut changed = vec![
            ("resultType", r#""complete""#.to_owned()),
            ("taskId", quoted(id)),
        ];
        let recorded = match state.text("status").as_deref() {
            Some("completed") => {
                let result = state.get("result").map_or("", RawValue::get);
                if !result.starts_with('{') {
                    return Err(malformed());
                }
                let result = without_related_task(Bytes::copy_from_slice(result.as_bytes()));
                let adapted = tool.adapted();
                let asked = AnsweredCall {
                    name: &tool.own_name(),
                    select: (handle.select.as_deref().map(Selector::Agent))
                        .or_else(|| adapted?.select().map(Selector::User)),
                    budget: adapted.and_then(Adapted::budget),
                    form: adapted.and_then(Adapted::form),
                    caller,
                    view,
                };
                let shown = match handle.is_direct {
                    true => self.answers.direct(result.into(), &asked).await,
                    false => self.answers.answer(result.into(), &asked).await,
                };
                let (Reply::Result(body) | Reply::Relayed(body)) = &shown else {
                    return Err(malformed());
                };
                changed.push(("result", String::from_utf8_lossy(body).into_owned()));
                Some(shown)
            }
            Some("failed") => {
                let error = state.get("error").filter(|raw| raw.get().starts_with('{'));
                let error = error.ok_or_else(malformed)?.get();
                let error = Bytes::copy_from_slice(error.as_bytes());
                let error = context.permitted_error(tool.server().name(), error);
                changed.push(("error", String::from_utf8_lossy(&error).into_owned()));
                Some(Reply::RelayedError(error))
            }
            Some("cancelled") => Some(Reply::Result("{}".into())),
            Some("input_required") => {
                let questions = state.get("inputRequests").ok_or_else(malformed)?;
                let questions = Object::parse(questions).map_err(|_| malformed())?;
                changed.push(("inputRequests", questions_for(context, tool, &questions)));
                None
            }
            Some("working") => None,
            _ => return Err(malformed()),
        };
        Ok(Answered {
            reply: Reply::Relayed(shaped(state, &changed).into()),
            recorded,
        })
    }
}

/// The context of a request about a task, in which the client is not asked anything.
fn context_of(caller: &Caller, view: &View, params: &Object<'_>) -> RequestContext {
    RequestContext {
        is_askable: false,
        progress_token: None,
        responses: None,
        state: None,
        ..RequestContext::of(caller, view, params)
    }
}

/// The part of an answer that the audit log is about.
fn about(answered: &Answered) -> &Reply {
    answered.recorded.as_ref().unwrap_or(&answered.reply)
}

/// The questions of a task that its client can answer, with the name of the server.
fn questions_for(context: &RequestContext, tool: &Tool, questions: &Object<'_>) -> String {
    let questions = questions.members().iter().filter_map(|(key, raw)| {
        let request = Object::parse(raw).ok()?;
        let method = request.text("method")?;
        let able = context.caller.capabilities;
        let is_able = able.permit(&method, request.get("params"));
        let question = Question {
            server: tool.server().name().clone(),
            method,
            params: request
                .get("params")
                .map(|raw| Bytes::copy_from_slice(raw.get().as_bytes())),
        };
        let params = named(&question);
        let named = request.with("params", &String::from_utf8_lossy(&params));
        is_able.then(|| format!("{key}:{named}"))
    });
    format!("{{{}}}", questions.collect::<Vec<_>>().join(","))
}

/// A task of a server for its client: with these members `changed`, without other members that only some states have, and without the
/// server's own id where the protocol has it. Texts of the server stay as they are: an id may be a word or letter of them.
fn shaped(task: &Object<'_>, changed: &[(&str, String)]) -> String {
    const OF_STATES: [&str; 3] = ["result", "error", "inputRequests"];
    let is_new = |name: &str| changed.iter().any(|(changed, _)| *changed == name);
    let members = task.members().iter().zip(task.iter());
    let kept = members.filter(|(_, (name, _))| !is_new(name) && !OF_STATES.contains(&&**name));
    let kept = kept.map(|((key, value), (name, _))| match &*name {
        "_meta" => {
            let only = format!(r#"{{"_meta":{value}}}"#);
            let clean = without_related_task(only.into());
            String::from_utf8_lossy(&clean[1..clean.len() - 1]).into_owned()
        }
        _ => format!("{key}:{value}"),
    });
    let changed = changed
        .iter()
        .map(|(key, value)| format!(r#""{key}":{value}"#));
    let members: Vec<String> = changed.chain(kept).collect();
    format!("{{{}}}", members.join(","))
}

/// The answer to a request about a task that cannot be made.
fn refusal(failure: Failure, view: &View) -> Reply {
    let text = failure.text(view);
    match failure {
        Failure::Scopes { .. } => failure.reply(view),
        Failure::Call { error, .. } => Reply::unanswered(text, *error),
        Failure::Limited { .. } => Reply::error(ErrorCode::TOO_MANY_REQUESTS, text),
        Failure::Unlogged { .. } | Failure::Malformed { .. } => {
            Reply::error(ErrorCode::INTERNAL, text)
        }
        _ => Reply::invalid_params(text),
    }
}

/// The error of a request about tasks that does not declare the extension.
pub(in crate::proxy) fn missing_extension() -> Reply {
    Reply::Error {
        code: ErrorCode::MISSING_CAPABILITY,
        message: format!("the request does not declare the extension `{TASKS}`"),
        data: Some(format!(
            r#"{{"requiredCapabilities":{{"extensions":{{"{TASKS}":{{}}}}}}}}"#
        )),
        cause: None,
    }
}
