//! Open calls: calls of legacy servers that wait for the answers of modern clients.
//!
//! A legacy server asks during a call; a modern client is asked in the response to its own request. So the call
//! outlives that request: it is stored with a random token until the client repeats the request with the token and
//! the answers, or does not return in time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::permitted::places_of;
use super::task::Task;
use super::{Relay, Relayed, RequestContext, error, with_answers};
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Object};
use crate::proxy::callers::caller::{CallHost, PendingQuestion, Questions, named};
use crate::telemetry::trace::Hop;
use crate::tool::ServerName;
use crate::upstream::{self, CallError, Host, Question, ServerCall, ServerReply};

/// The time that a modern client has to return with answers; a person may be thinking.
pub(super) const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// The maximum number of open calls; the questions of further ones are refused.
pub(super) const MOST_OPEN: usize = 256;

/// The prefix of our own request states, which are never sent to a server.
const STATE_PREFIX: &str = "mcpzip.";

/// A request state without a stored call: the user was sent to a URL, and the request is started again.
const MAKE_ANEW: &str = "mcpzip.anew";

/// The open calls, by the client's token.
#[derive(Debug, Default)]
pub(in crate::proxy) struct OpenCalls(Mutex<HashMap<String, OpenCall>>);

/// A call to a legacy server on behalf of a modern client.
struct OpenCall {
    /// A hash of the request, so that a token is valid for this request only.
    fingerprint: u64,
    host: Arc<CallHost>,
    questions: mpsc::UnboundedReceiver<PendingQuestion>,
    outcome: oneshot::Receiver<Result<ServerReply, CallError>>,
    /// The questions that the client has not answered, by key.
    pending: Vec<(String, PendingQuestion)>,
    /// The task whose result the call waits for, and the fingerprint of the request that made it.
    task: Option<(u64, Task)>,
    /// Cancels the call when dropped.
    _call: DropGuard,
}

impl std::fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenCall")
            .field("pending", &self.pending.len())
            .finish_non_exhaustive()
    }
}

impl Relay {
    /// Relays a request for a client that is asked in the response to its own request.
    pub(in crate::proxy) async fn relay_open(
        &self,
        server: &ServerName,
        relayed: Relayed<'_>,
        context: &RequestContext,
    ) -> Result<ServerReply, CallError> {
        let fingerprint = relayed.fingerprint(server);
        let token: Option<String> = context
            .state
            .as_deref()
            .and_then(|state| serde_json::from_str(state).ok());
        let open = match token.filter(|token| token.starts_with(STATE_PREFIX)) {
            None => self.open_call(server, relayed, context, fingerprint)?,
            Some(token) if token == MAKE_ANEW => {
                self.open_call(server, relayed, &context.unanswered(), fingerprint)?
            }
            Some(token) => match self.open_calls.take(&token, fingerprint) {
                Some(mut open) => {
                    open.host
                        .goes_on(&context.caller, context.progress_token.as_deref());
                    open.answer(context.responses.as_deref());
                    open
                }
                // Starting the call again could act twice.
                None => {
                    let message = "the `requestState` is unknown or has expired, or belongs to another request";
                    return Ok(error(ErrorCode::INVALID_PARAMS, message));
                }
            },
        };
        self.until_asked(server, open).await
    }

    /// Starts a call that outlives its request.
    fn open_call(
        &self,
        server: &ServerName,
        relayed: Relayed<'_>,
        context: &RequestContext,
        fingerprint: u64,
    ) -> Result<OpenCall, CallError> {
        let (asked, questions) = mpsc::unbounded_channel();
        let (answer, outcome) = oneshot::channel();
        let call = CancellationToken::new();
        let host = CallHost::at(
            server,
            &context.caller,
            context.progress_token.as_deref(),
            Questions::Answered(asked),
            context.view.config().masker_of(server),
        );
        let open = OpenCall {
            fingerprint,
            host: host.clone(),
            questions,
            outcome,
            pending: Vec::new(),
            task: None,
            _call: call.clone().drop_guard(),
        };
        let Relayed {
            method,
            name,
            params,
            limit,
            is_repeatable,
            takes_task,
        } = relayed;
        let (method, name) = (method.to_owned(), name.map(str::to_owned));
        let (meta, trace) = (context.meta.clone(), context.trace.clone());
        let agreed = context.agreed;
        let params = with_answers(
            params,
            context.responses.as_deref(),
            context.state.as_deref(),
        );
        let (pool, server, stop) = (
            self.instrumented(),
            server.clone(),
            self.tasks.stop().clone(),
        );
        self.tasks.spawn(async move {
            let host: Arc<dyn Host> = host;
            let (name, host, hop) = (name.as_deref(), Some(host), Hop::default());
            let request = ServerCall {
                method: &method,
                name,
                params: &params,
                meta: &meta,
                limit,
                hop,
                host,
                agreed,
                takes_task,
            };
            let outcome = tokio::select! {
                outcome = pool.call(&server, request, &trace, is_repeatable) => outcome,
                () = call.cancelled() => return,
                () = stop.cancelled() => return,
            };
            // The receiver may have gone.
            let _ = answer.send(outcome);
        });
        Ok(open)
    }

    /// Waits for the outcome of a call, or for the first question that must be answered before.
    async fn until_asked(
        &self,
        server: &ServerName,
        mut open: OpenCall,
    ) -> Result<ServerReply, CallError> {
        // Questions that the server has cancelled need no answer.
        open.pending.retain(|(_, asked)| !asked.answer.is_closed());
        let is_waiting = !open.pending.is_empty();
        tokio::select! {
            biased;
            outcome = &mut open.outcome => {
                return match outcome {
                    Ok(Ok(reply)) => Ok(sent_elsewhere(server, &reply)
                        .filter(|_| open.host.capabilities().elicits_urls())
                        .unwrap_or_else(|| with_server_named(server, self.noted(server, reply)))),
                    Ok(Err(error)) => Err(error),
                    Err(_) => Err(CallError::Connect(Arc::new(crate::upstream::ConnectError::ShuttingDown))),
                };
            }
            Some(asked) = open.questions.recv() => open.note(asked),
            // There is a question already.
            () = std::future::ready(()), if is_waiting => {}
        }
        while let Ok(asked) = open.questions.try_recv() {
            open.note(asked);
        }
        let requests: Vec<String> = open
            .pending
            .iter()
            .map(|(key, asked)| {
                let question = &asked.question;
                let params = named(question);
                format!(
                    r#""{key}":{{"method":{},"params":{}}}"#,
                    quoted(&question.method),
                    String::from_utf8_lossy(&params)
                )
            })
            .collect();
        let token = format!("{STATE_PREFIX}{}", open.host.state_word());
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":{}}}"#,
            requests.join(","),
            quoted(&token)
        );
        if !self.open_calls.keep(token.clone(), open) {
            let message =
                quoted("too many requests wait for answers of clients already; try again later");
            return Ok(ServerReply::Error(
                format!(
                    r#"{{"code":{},"message":{message}}}"#,
                    ErrorCode::TOO_MANY_REQUESTS
                )
                .into(),
            ));
        }
        self.forget_later(token);
        Ok(ServerReply::Result(result.into()))
    }

    /// Cancels the call if its client does not return.
    fn forget_later(&self, token: String) {
        let (calls, stop) = (self.open_calls.clone(), self.tasks.stop().clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(PATIENCE) => {}
                () = stop.cancelled() => {}
            }
            calls.table().remove(&token);
        });
    }
}

impl OpenCalls {
    /// Takes the call with this token, if it exists and was made for this request.
    fn take(&self, token: &str, fingerprint: u64) -> Option<OpenCall> {
        let mut calls = self.table();
        calls
            .get(token)
            .is_some_and(|open| open.fingerprint == fingerprint)
            .then(|| calls.remove(token))?
    }

    /// Whether a call with this token, which is JSON, waits for its client.
    pub(super) fn has(&self, state: &str) -> bool {
        let token: Option<String> = serde_json::from_str(state).ok();
        token.is_some_and(|token| self.table().contains_key(&token))
    }

    fn keep(&self, token: String, open: OpenCall) -> bool {
        let mut calls = self.table();
        let has_room = calls.len() < MOST_OPEN;
        if has_room {
            calls.insert(token, open);
        }
        has_room
    }

    /// Takes the task of the call with this token, which is JSON, if the request that made it is repeated.
    pub(super) fn task(&self, state: &str, request: u64) -> Option<Task> {
        let token: String = serde_json::from_str(state).ok()?;
        let mut calls = self.table();
        let kept = &mut calls.get_mut(&token)?.task;
        let (_, task) = kept.take_if(|(of, _)| *of == request)?;
        Some(task)
    }

    /// Keeps a task with the call that waits for its result. Without that call, the task is cancelled.
    pub(super) fn keep_task(&self, token: &str, request: u64, task: Task) {
        if let Some(open) = self.table().get_mut(token) {
            open.task = Some((request, task));
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, OpenCall>> {
        // Each change is a single step.
        self.0.lock()
    }
}

impl OpenCall {
    fn note(&mut self, asked: PendingQuestion) {
        let key = format!("question-{}", self.pending.len() + 1);
        self.pending.push((key, asked));
    }

    /// Passes the client's answers to the server; unanswered questions are asked again.
    fn answer(&mut self, responses: Option<&str>) {
        let raw: Option<&RawValue> = responses.and_then(|json| serde_json::from_str(json).ok());
        let responses = raw
            .and_then(|raw| Object::parse(raw).ok())
            .unwrap_or_default();
        for (key, asked) in std::mem::take(&mut self.pending) {
            match responses.get(&key).filter(|raw| raw.get().starts_with('{')) {
                Some(raw) => {
                    // The server may have cancelled the question.
                    let _ = asked
                        .answer
                        .send(ServerReply::Result(raw.get().to_owned().into()));
                }
                None => self.pending.push((key, asked)),
            }
        }
    }
}

/// Converts a legacy server's error that the user must visit a URL (2025-11-25, client/elicitation) to the question
/// of the modern era.
fn sent_elsewhere(server: &ServerName, reply: &ServerReply) -> Option<ServerReply> {
    let ServerReply::Error(refusal) = reply else {
        return None;
    };
    if upstream::code_of(refusal) != Some(ErrorCode::URL_ELICITATION_REQUIRED) {
        return None;
    }
    let requests = places_of(refusal)?
        .into_iter()
        .enumerate()
        .map(|(at, raw)| {
            let params = Some(Bytes::copy_from_slice(raw.get().as_bytes()));
            let question = Question {
                server: server.clone(),
                method: "elicitation/create".to_owned(),
                params,
            };
            let params = named(&question);
            format!(
                r#""place-{}":{{"method":"elicitation/create","params":{}}}"#,
                at + 1,
                String::from_utf8_lossy(&params)
            )
        });
    let requests: Vec<String> = requests.collect();
    let result = format!(
        r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":"{MAKE_ANEW}"}}"#,
        requests.join(",")
    );
    Some(ServerReply::Result(result.into()))
}

/// Adds the server's name to a modern server's questions, for the user.
fn with_server_named(server: &ServerName, reply: ServerReply) -> ServerReply {
    let ServerReply::Result(result) = &reply else {
        return reply;
    };
    let Some(object) = result.required_input() else {
        return reply;
    };
    let Some(requests) = object
        .get("inputRequests")
        .and_then(|raw| Object::parse(raw).ok())
    else {
        return reply;
    };
    let members: Vec<String> = requests
        .members()
        .iter()
        .map(|(key, raw)| {
            let request = Object::parse(raw).unwrap_or_default();
            let Some(method) = request.text("method") else {
                return format!("{key}:{raw}");
            };
            let params = request
                .get("params")
                .map(|raw| Bytes::copy_from_slice(raw.get().as_bytes()));
            let params = named(&Question {
                server: server.clone(),
                method,
                params,
            });
            format!(
                "{key}:{}",
                request.with("params", &String::from_utf8_lossy(&params))
            )
        })
        .collect();
    ServerReply::Result(
        object
            .with("inputRequests", &format!("{{{}}}", members.join(",")))
            .into(),
    )
}
