//! Tasks that are waited for, and that wait for answers of their client. A client of the modern era is asked in the answer to its call,
//! and repeats the call with the answers; the task is kept in between. If the client does not return, the task is cancelled.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::value::RawValue;

use super::open_calls::{MOST_OPEN, PATIENCE};
use super::task::Task;
use super::{Relay, RequestContext, error};
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Object};
use crate::proxy::callers::caller::named;
use crate::tool::ServerName;
use crate::upstream::{Question, ServerReply};

/// The beginning of the request states of such calls. None of them is ever sent to a server.
const STATE_PREFIX: &str = "mcpzip.task.";

/// The tasks, by the client's token.
#[derive(Debug, Default)]
pub(super) struct AskingTasks(Mutex<HashMap<String, AskingTask>>);

/// A task that waits for answers.
pub(super) struct AskingTask {
    /// A hash of the call, so that a token is valid for this call only.
    call: u64,
    pub(super) task: Task,
    /// The keys of its questions that were answered, as JSON.
    pub(super) answered: BTreeSet<String>,
    /// The keys of those that the client was asked.
    asked: Vec<String>,
}

impl std::fmt::Debug for AskingTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AskingTask")
            .field("asked", &self.asked.len())
            .finish_non_exhaustive()
    }
}

impl AskingTask {
    pub(super) fn new(call: u64, task: Task) -> Self {
        Self {
            call,
            task,
            answered: BTreeSet::new(),
            asked: Vec::new(),
        }
    }

    /// The client's answers: members of `inputResponses`. Questions without an answer are asked again.
    pub(super) fn answers(&mut self, responses: Option<&str>) -> Vec<String> {
        let raw: Option<&RawValue> = responses.and_then(|json| serde_json::from_str(json).ok());
        let responses = raw.and_then(|raw| Object::parse(raw).ok());
        let responses = responses.unwrap_or_default();
        let mut answers = Vec::new();
        for (key, answer) in responses.members() {
            let key = key.get();
            let is_asked = self.asked.iter().any(|asked| asked == key);
            if is_asked && answer.get().starts_with('{') && self.answered.insert(key.to_owned()) {
                answers.push(format!("{key}:{answer}"));
            }
        }
        answers
    }
}

impl Relay {
    /// The task of the call that a client repeats with its answers; `None` for other calls.
    pub(super) fn asking_task(
        &self,
        context: &RequestContext,
        call: impl FnOnce() -> u64,
    ) -> Option<Result<AskingTask, ServerReply>> {
        let token: String = serde_json::from_str(context.state.as_deref()?).ok()?;
        if !token.starts_with(STATE_PREFIX) {
            return None;
        }
        let call = call();
        let mut tasks = self.asking_tasks.0.lock();
        let is_of = tasks.get(&token).is_some_and(|known| known.call == call);
        let found = is_of.then(|| tasks.remove(&token)).flatten();
        Some(found.ok_or_else(|| {
            let message =
                "the `requestState` is unknown or has expired, or belongs to another request";
            error(ErrorCode::INVALID_PARAMS, message)
        }))
    }

    /// The answer that asks a client the questions of a task which it has not answered. `None` if it cannot be asked one of them, which
    /// ends the task.
    pub(super) fn ask_for_task(
        &self,
        server: &ServerName,
        context: &RequestContext,
        mut asking: AskingTask,
        questions: &Object<'_>,
    ) -> Option<ServerReply> {
        asking.asked.clear();
        let mut requests = Vec::new();
        for (key, raw) in questions.members() {
            if asking.answered.contains(key.get()) {
                continue;
            }
            let request = Object::parse(raw).unwrap_or_default();
            let method = request.text("method").unwrap_or_default();
            let params = request.get("params");
            if !context.caller.capabilities.permit(&method, params) {
                return None;
            }
            let params = params.map(|raw| raw.get().as_bytes().to_vec().into());
            let method_json = quoted(&method);
            let params = named(&Question {
                server: server.clone(),
                method,
                params,
            });
            let params = String::from_utf8_lossy(&params);
            requests.push(format!(
                r#"{key}:{{"method":{method_json},"params":{params}}}"#
            ));
            asking.asked.push(key.get().to_owned());
        }
        let token = format!("{STATE_PREFIX}{}", context.caller.client.state_word());
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":{}}}"#,
            requests.join(","),
            quoted(&token)
        );
        {
            let mut tasks = self.asking_tasks.0.lock();
            if tasks.len() >= MOST_OPEN {
                return None;
            }
            tasks.insert(token.clone(), asking);
        }
        let (tasks, stop) = (self.asking_tasks.clone(), self.tasks.stop().clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(PATIENCE) => {}
                () = stop.cancelled() => {}
            }
            tasks.forget(&token);
        });
        Some(ServerReply::Result(result.into()))
    }
}

impl AskingTasks {
    fn forget(self: &Arc<Self>, token: &str) {
        // It is cancelled when it is dropped, without the lock.
        let forgotten = self.0.lock().remove(token);
        drop(forgotten);
    }
}
