//! Calls that their servers make only as tasks, for clients that need to know nothing of it: the task is made, and its result waited
//! for. Servers of revision 2025-11-25 say so in the definition of a tool (`execution.taskSupport: "required"`), later ones in the
//! answer to a call (extension `io.modelcontextprotocol/tasks`).

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use memchr::memmem::Finder;
use serde_json::value::RawValue;

use super::asking_tasks::AskingTask;
use super::task::Task;
use super::{Relay, Relayed, RequestContext, error};
use crate::catalog::Tool;
use crate::mcp::object::text;
use crate::mcp::{ErrorCode, Frame, Object, TASKS};
use crate::proxy::callers::caller::{CallHost, Questions};
use crate::tool::ServerName;
use crate::upstream::{
    CallError, Host, Question, ServerReply, code_of, may_have_text, required_input, with_plain_code,
};

/// The limits of the pause between two questions for the state of a task.
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The member of `_meta` with the id of the task that a result belongs to (2025-11-25, basic/utilities/tasks).
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The pause if the server proposes none.
const USUAL_PAUSE: Duration = Duration::from_secs(1);

impl Relay {
    /// [`Self::request`] for a call of `tool`, which may have to be a task.
    pub(in crate::proxy) async fn call(
        &self,
        tool: &Tool,
        relayed: Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        let server = tool.server().name();
        let reply = self.whole_call(tool, relayed, context).await?;
        Ok(match context {
            Some(context) => context.permitted(server, reply),
            None => reply,
        })
    }

    /// [`Self::call`], with answers that the client may not get.
    async fn whole_call(
        &self,
        tool: &Tool,
        relayed: Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        let server = tool.server().name();
        if tool.needs_task() {
            return Box::pin(self.call_as_task(server, relayed, context)).await;
        }
        let call = || relayed.fingerprint(server);
        let repeated = context.and_then(|context| self.asking_task(context, call));
        match (repeated, context) {
            (Some(Ok(asking)), Some(context)) => {
                let goes_on = self.answer_and_wait(server, asking, relayed.limit, context);
                return Box::pin(goes_on).await;
            }
            (Some(Err(refusal)), _) => return Ok(refusal),
            _ => {}
        }
        match self.whole_request(server, relayed.clone(), context).await? {
            // Only servers with the extension refuse a call for the lack of tasks.
            ServerReply::Error(refusal)
                if !relayed.takes_task
                    && needs_tasks(&refusal)
                    && tool.server().capabilities().has_extension(TASKS) =>
            {
                Box::pin(self.call_and_wait(server, relayed, context)).await
            }
            reply => Ok(reply),
        }
    }

    async fn call_as_task(
        &self,
        server: &ServerName,
        mut relayed: Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        let (start, limit) = (Instant::now(), relayed.limit);
        let wish = format!(r#","task":{{"ttl":{}}}"#, limit.as_millis());
        relayed.params.tail.extend_from_slice(wish.as_bytes());
        let call = relayed.fingerprint(server);
        let state = context.and_then(|context| context.state.as_deref());
        let unanswered;
        // A client that was asked repeats the call; the answer belongs to the task that exists.
        let (mut task, context) = match state.and_then(|state| self.open_calls.task(state, call)) {
            Some(known) => (known, context),
            None => {
                let reply = self.whole_request(server, relayed, context).await?;
                let Some(id) = legacy_task_of(&reply) else {
                    return Ok(reply);
                };
                let task = self.waited_for(server, &id, None, context);
                unanswered = context.map(RequestContext::unanswered);
                (task, unanswered.as_ref())
            }
        };
        let result = Relayed {
            method: "tasks/result",
            name: None,
            params: task.params.clone(),
            limit: limit.saturating_sub(start.elapsed()),
            is_repeatable: false,
            takes_task: false,
        };
        let reply = self.whole_request(server, result, context).await?;
        if let ServerReply::Result(result) = &reply
            && let Some(state) =
                (result.required_input()).and_then(|object| object.text("requestState"))
        {
            self.open_calls.keep_task(&state, call, task);
            return Ok(reply);
        }
        task.is_over = true;
        Ok(without_id(reply))
    }

    /// Makes a call as a task of the extension, and asks for its state until it has ended, or its client has to be asked in the answer
    /// to the call.
    async fn call_and_wait(
        &self,
        server: &ServerName,
        relayed: Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        let (limit, call) = (relayed.limit, relayed.fingerprint(server));
        let made = Relayed {
            takes_task: true,
            ..relayed
        };
        let reply = self.whole_request(server, made, context).await?;
        let ServerReply::Result(made) = &reply else {
            return Ok(reply);
        };
        let Some((id, pause)) = task_in(made).and_then(|task| {
            let id = task.get("taskId")?;
            Some((id.get().to_owned(), pause_of(&task)))
        }) else {
            return Ok(reply);
        };
        let raw: Option<&RawValue> = serde_json::from_str(&id).ok();
        let name = raw.and_then(text).unwrap_or_default();
        let task = self.waited_for(server, &id, Some(name), context);
        let asking = AskingTask::new(call, task);
        self.wait(server, asking, (limit, pause), context).await
    }

    /// Goes on with a task whose client has answered its questions.
    async fn answer_and_wait(
        &self,
        server: &ServerName,
        mut asking: AskingTask,
        limit: Duration,
        context: &RequestContext,
    ) -> Result<ServerReply, CallError> {
        let answers = asking.answers(context.responses.as_deref());
        if let Some(refusal) = self
            .pass_on(server, &asking.task, (&answers, limit), Some(context))
            .await?
        {
            return Ok(refusal);
        }
        let context = Some(context);
        self.wait(server, asking, (limit, SHORTEST_PAUSE), context)
            .await
    }

    /// Passes answers on to the server of a task; returns its refusal.
    async fn pass_on(
        &self,
        server: &ServerName,
        task: &Task,
        (answers, limit): (&[String], Duration),
        context: Option<&RequestContext>,
    ) -> Result<Option<ServerReply>, CallError> {
        if answers.is_empty() {
            return Ok(None);
        }
        let mut update = task.request("tasks/update", limit);
        let answers = format!(r#","inputResponses":{{{}}}"#, answers.join(","));
        update.params.tail.extend_from_slice(answers.as_bytes());
        update.is_repeatable = false;
        let reply = self.about(server, &update, context).await?;
        Ok(match reply {
            refusal @ ServerReply::Error(_) => Some(refusal),
            ServerReply::Result(_) => None,
        })
    }

    async fn wait(
        &self,
        server: &ServerName,
        mut asking_task: AskingTask,
        (limit, mut pause): (Duration, Duration),
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        let (start, mut asking) = (Instant::now(), Duration::ZERO);
        loop {
            let left = (limit + asking).saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(CallError::Timeout {
                    server: server.clone(),
                    limit,
                });
            }
            tokio::time::sleep(pause.min(left)).await;
            let get = asking_task.task.request("tasks/get", left);
            let reply = self.about(server, &get, context).await?;
            let ServerReply::Result(result) = &reply else {
                return Ok(without_id(reply));
            };
            let raw: Option<&RawValue> = serde_json::from_slice(result).ok();
            let state = raw.and_then(|raw| Object::parse(raw).ok());
            let state = state.unwrap_or_default();
            let part = |key: &str| {
                let raw = state.get(key)?.get().as_bytes();
                Some(Bytes::copy_from_slice(raw))
            };
            pause = pause_of(&state);
            let status = state.text("status").unwrap_or_default();
            match status.as_str() {
                "working" => continue,
                "input_required" => {
                    let since = Instant::now();
                    let questions = state.get("inputRequests");
                    let questions = questions.and_then(|raw| Object::parse(raw).ok());
                    let questions = questions.unwrap_or_default();
                    let by_answer = context.filter(|context| {
                        context.caller.revision.is_modern() && context.is_askable
                    });
                    if let Some(context) = by_answer {
                        let known = &asking_task.answered;
                        let mut members = questions.members().iter();
                        if members.all(|(key, _)| known.contains(key.get())) {
                            continue;
                        }
                        let asked = self.ask_for_task(server, context, asking_task, &questions);
                        return Ok(asked.unwrap_or_else(unable));
                    }
                    let answered = &mut asking_task.answered;
                    let answers = self.answers(server, context, &questions, answered);
                    let answers = match answers.await {
                        Ok(answers) => answers,
                        Err(refusal) => return Ok(refusal),
                    };
                    asking += since.elapsed();
                    if let Some(refusal) = self
                        .pass_on(server, &asking_task.task, (&answers, limit), context)
                        .await?
                    {
                        return Ok(refusal);
                    }
                    continue;
                }
                _ => {}
            }
            asking_task.task.is_over = true;
            let gone = |message: &str| error(ErrorCode::INTERNAL, message);
            let end = match status.as_str() {
                // A question, or another task, is not the end of a task.
                "completed" => part("result")
                    .filter(|result| required_input(result).is_none() && task_in(result).is_none())
                    .map(|result| ServerReply::Result(result.into())),
                "failed" => part("error").map(|error| ServerReply::Error(with_plain_code(error))),
                "cancelled" => Some(gone("the server cancelled the task of this call")),
                _ => None,
            };
            let end = end.unwrap_or_else(|| gone("the server's task has no result that is known"));
            return Ok(without_id(end));
        }
    }

    /// The client's answers to those questions of a task that it has not answered: members of `inputResponses`.
    async fn answers(
        &self,
        server: &ServerName,
        context: Option<&RequestContext>,
        questions: &Object<'_>,
        answered: &mut BTreeSet<String>,
    ) -> Result<Vec<String>, ServerReply> {
        // A later client is asked in the answer to its call, unless it made several calls.
        let context = context.filter(|context| !context.caller.revision.is_modern());
        let context = context.ok_or_else(unable)?;
        let masker = context.view.config().masker_of(server);
        let host = CallHost::new(&context.caller, None, Questions::Requested, masker);
        let mut answers = Vec::new();
        for (key, raw) in questions.members() {
            if !answered.insert(key.get().to_owned()) {
                continue;
            }
            let request = Object::parse(raw).unwrap_or_default();
            let method = request.text("method").unwrap_or_default();
            let params = request.get("params");
            if !host.capabilities().permit(&method, params) {
                return Err(unable());
            }
            let question = Question {
                server: server.clone(),
                method,
                params: params.map(|raw| Bytes::copy_from_slice(raw.get().as_bytes())),
            };
            match host.ask(question).await {
                ServerReply::Result(answer) => {
                    answers.push(format!("{key}:{}", String::from_utf8_lossy(&answer)));
                }
                refusal @ ServerReply::Error(_) => return Err(refusal),
            }
        }
        Ok(answers)
    }

    /// Sends a request about a task, during which the client is not asked anything.
    async fn about(
        &self,
        server: &ServerName,
        relayed: &Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        let host = context.map(|context| {
            let masker = context.view.config().masker_of(server);
            CallHost::at(server, &context.caller, None, Questions::Refused, masker)
        });
        self.send(server, relayed, context, host).await
    }

    /// A task that is cancelled unless its end is noted. `id` is its id as JSON, `name` the same for a header.
    fn waited_for(
        &self,
        server: &ServerName,
        id: &str,
        name: Option<String>,
        context: Option<&RequestContext>,
    ) -> Task {
        let host = context.map(|context| {
            let masker = context.view.config().masker_of(server);
            CallHost::at(server, &context.caller, None, Questions::Refused, masker)
        });
        Task {
            host,
            pool: self.instrumented(),
            tasks: self.tasks.clone(),
            server: server.clone(),
            params: Frame::from(format!(r#"{{"taskId":{id}"#)),
            name,
            is_over: false,
        }
    }
}

/// The end of a call whose task asks what its client cannot be asked.
fn unable() -> ServerReply {
    let message = "the task of this call has a question that this client cannot be asked";
    error(ErrorCode::METHOD_NOT_FOUND, message)
}

/// The end of a call that was a task, without the task's id where the protocol has it: the client knows of no task.
fn without_id(reply: ServerReply) -> ServerReply {
    match reply {
        ServerReply::Result(result) => {
            ServerReply::Result(without_related_task(result.into_bytes()).into())
        }
        refusal @ ServerReply::Error(_) => refusal,
    }
}

/// The task that `result` is in place of the result of a call; `None` for other results.
pub(in crate::proxy) fn task_in(result: &[u8]) -> Option<Object<'_>> {
    // Results may be large, and tasks are rare.
    static WORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"task\""));
    if !may_have_text(result, &WORD) {
        return None;
    }
    let raw: &RawValue = serde_json::from_slice(result).ok()?;
    let object = Object::parse(raw).ok()?;
    (object.text("resultType").as_deref() == Some("task")).then_some(object)
}

/// `result` without the id of the task that it belongs to, which is its server's own.
pub(in crate::proxy) fn without_related_task(result: Bytes) -> Bytes {
    static WORD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"related"));
    if !may_have_text(&result, &WORD) {
        return result;
    }
    let shaped = || {
        let raw: &RawValue = serde_json::from_slice(&result).ok()?;
        let object = Object::parse(raw).ok()?;
        let meta = Object::parse(object.get("_meta")?).ok()?;
        Some(object.with("_meta", &meta.without(RELATED_TASK)))
    };
    shaped().map_or_else(|| result.clone(), Bytes::from)
}

/// The id of the task that a call of revision 2025-11-25 has made, as JSON.
fn legacy_task_of(reply: &ServerReply) -> Option<String> {
    let ServerReply::Result(result) = reply else {
        return None;
    };
    let raw: &RawValue = serde_json::from_slice(result).ok()?;
    let task = Object::parse(raw).ok()?.get("task")?;
    let id = Object::parse(task).ok()?.get("taskId")?;
    Some(id.get().to_owned())
}

/// Whether a server refuses a call because its client does not declare the extension for tasks.
fn needs_tasks(refusal: &[u8]) -> bool {
    if code_of(refusal) != Some(ErrorCode::MISSING_CAPABILITY) {
        return false;
    }
    let required = |raw| {
        let data = Object::parse(Object::parse(raw).ok()?.get("data")?).ok()?;
        let required = Object::parse(data.get("requiredCapabilities")?).ok()?;
        let extensions = Object::parse(required.get("extensions")?).ok()?;
        Some(extensions.get(TASKS).is_some())
    };
    let raw: Option<&RawValue> = serde_json::from_slice(refusal).ok();
    raw.and_then(required).unwrap_or(false)
}

/// The pause before the next question for the state of a task.
fn pause_of(task: &Object<'_>) -> Duration {
    let proposed = task.get("pollIntervalMs");
    let proposed = proposed.and_then(|raw| raw.get().parse().ok());
    proposed.map_or(USUAL_PAUSE, |milliseconds: u64| {
        Duration::from_millis(milliseconds).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
    })
}
