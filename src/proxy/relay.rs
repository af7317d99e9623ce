//! A client's request on its way to one server, whatever eras the two speak.
//!
//! A server may need something of the client before it answers: the user's word, a model's, the roots. A legacy server
//! asks by a request of its own, a modern one by an answer that says what it needs, after which the request is made
//! again. All four pairs are joined here. Where a legacy server's question meets a modern client, the call stays open
//! behind a random token, until the client repeats its request with that token and the answers.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::caller::{Asked, CallHost, Caller, Questions, named};
use super::{Proxy, join_all};
use crate::mcp::frame::quoted;
use crate::mcp::{ErrorCode, Frame, Object};
use crate::secret::random_token;
use crate::tool::ServerName;
use crate::upstream::{self, Call, CallError, Host, Question, Reply};

/// How often one request may ask back.
const MOST_ROUNDS: usize = 16;

/// How long a modern client has to come back with answers; a person may be thinking.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// Calls that may wait for answers of modern clients at once; more are refused their questions.
const MOST_OPEN: usize = 256;

/// What our own request states begin with: none of them ever goes to a server.
const STATE_PREFIX: &str = "mcpzip.";

/// A request state that stands for nothing: the user was sent somewhere, and the request is made anew.
const MAKE_ANEW: &str = "mcpzip.anew";

/// What a client's request says besides what it asks for.
#[derive(Debug, Clone)]
pub struct Errand {
    caller: Caller,
    /// Whether the client can be asked back.
    is_askable: bool,
    /// Members for the server's `_meta`.
    meta: String,
    /// The client's token for progress, as JSON.
    progress_token: Option<String>,
    /// `inputResponses` and `requestState`, as JSON, where the client repeats a request to answer a question.
    responses: Option<String>,
    state: Option<String>,
}

/// What is relayed.
pub(super) struct Relayed<'a> {
    pub(super) method: &'a str,
    /// The tool, prompt or resource, as its server knows it.
    pub(super) name: Option<&'a str>,
    /// The parameters without the closing brace and `_meta`.
    pub(super) params: Frame,
    pub(super) limit: Duration,
    /// Whether it may be sent again when the connection was lost under it.
    pub(super) is_repeatable: bool,
}

/// The calls that wait for answers of modern clients, by the token that the client holds.
#[derive(Debug, Default)]
pub(super) struct OpenCalls(Mutex<HashMap<String, OpenCall>>);

/// A call of a legacy server for a modern client.
struct OpenCall {
    /// What was asked for, so that a token opens nothing else.
    fingerprint: u64,
    host: Arc<CallHost>,
    questions: mpsc::UnboundedReceiver<Asked>,
    outcome: oneshot::Receiver<Result<Reply, CallError>>,
    /// What the client has yet to answer, by the key it was asked under.
    pending: Vec<(String, Asked)>,
    /// Ends the call when nobody holds this any more.
    _call: DropGuard,
}

impl std::fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenCall").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

impl Errand {
    /// Reads what `params` of a request of `caller` say besides what it asks for.
    #[must_use]
    pub fn of(caller: &Caller, params: &Object<'_>) -> Self {
        let meta = params.get("_meta").and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        let json = |key: &str| params.get(key).map(|raw| raw.get().to_owned());
        Self {
            caller: caller.clone(),
            is_askable: true,
            meta: relayed_meta(&meta),
            progress_token: meta.get("progressToken").map(|token| token.get().to_owned()),
            responses: json("inputResponses"),
            state: json("requestState"),
        }
    }

    /// Whether an error of the server is for the client rather than for the agent: a place to send the user to, a capability
    /// that the client did not declare, a state that it did not keep.
    pub(super) fn concerns_client(&self, refusal: &[u8]) -> bool {
        let is_modern = self.caller.revision.is_modern();
        match upstream::code_of(refusal) {
            Some(ErrorCode::URL_ELICITATION_REQUIRED) => self.is_askable && self.caller.capabilities.elicits_urls(),
            Some(ErrorCode::MISSING_CAPABILITY) => is_modern,
            _ => is_modern && self.state.is_some(),
        }
    }

    /// The same for one of several calls in one request: a modern client cannot be asked back for one of them, and
    /// progress would be several at once.
    #[must_use]
    pub fn in_company(&self) -> Self {
        let is_askable = !self.caller.revision.is_modern();
        Self { is_askable, progress_token: None, responses: None, state: None, ..self.clone() }
    }
}

impl Proxy {
    /// Sends a request to `server` and brings its answer, and whatever it says or asks before that.
    ///
    /// # Errors
    /// When no usable answer comes.
    pub(super) async fn relay(
        &self,
        server: &ServerName,
        relayed: Relayed<'_>,
        errand: Option<&Errand>,
    ) -> Result<Reply, CallError> {
        match errand {
            Some(errand) if !errand.caller.revision.is_modern() => self.relay_rounds(server, relayed, errand).await,
            Some(errand) if !errand.is_askable || (errand.caller.capabilities.is_empty() && errand.state.is_none()) => {
                let host = CallHost::new(&errand.caller, errand.progress_token.as_deref(), Questions::Refused);
                self.send(server, &relayed, &errand.meta, Some(host)).await
            }
            Some(errand) => self.relay_open(server, relayed, errand).await,
            None => self.send(server, &relayed, "", None).await,
        }
    }

    /// For a client that is asked by requests: where a modern server needs something, it is asked, and the request made
    /// again with the answers.
    async fn relay_rounds(
        &self,
        server: &ServerName,
        mut relayed: Relayed<'_>,
        errand: &Errand,
    ) -> Result<Reply, CallError> {
        let host = CallHost::new(&errand.caller, errand.progress_token.as_deref(), Questions::Requested);
        let params = relayed.params.clone();
        for _ in 0..MOST_ROUNDS {
            let reply = self.send(server, &relayed, &errand.meta, Some(host.clone())).await?;
            let Some(needs) = Needs::of(&reply) else { return Ok(reply) };
            let questions = needs.questions.into_iter().map(|(key, method, params)| {
                let (server, host) = (server.clone(), &host);
                async move {
                    if !host.capabilities().allow(&method) {
                        let message = format!("the client does not support `{method}`");
                        return (key, error(ErrorCode::METHOD_NOT_FOUND, &message));
                    }
                    (key, host.ask(Question { server, method, params }).await)
                }
            });
            let mut responses = Vec::new();
            for (key, answer) in join_all(questions).await {
                match answer {
                    Reply::Result(result) => responses.push(format!("{key}:{}", String::from_utf8_lossy(&result))),
                    // There is no form in which a modern server could be told.
                    refusal @ Reply::Error(_) => return Ok(refusal),
                }
            }
            let responses = (!responses.is_empty()).then(|| format!("{{{}}}", responses.join(",")));
            relayed.params = with_answers(params.clone(), responses.as_deref(), needs.state.as_deref());
        }
        let message = format!("the server asked back {MOST_ROUNDS} times without coming to an answer");
        Ok(error(ErrorCode::INTERNAL, &message))
    }

    /// For a client that is asked by the answer to its own request.
    async fn relay_open(&self, server: &ServerName, relayed: Relayed<'_>, errand: &Errand) -> Result<Reply, CallError> {
        let fingerprint = fingerprint(server, &relayed);
        let token: Option<String> = errand.state.as_deref().and_then(|state| serde_json::from_str(state).ok());
        let open = match token.filter(|token| token.starts_with(STATE_PREFIX)) {
            None => self.open_call(server, relayed, errand, fingerprint)?,
            Some(token) if token == MAKE_ANEW => {
                let anew = Errand { responses: None, state: None, ..errand.clone() };
                self.open_call(server, relayed, &anew, fingerprint)?
            }
            Some(token) => match self.open_calls.take(&token, fingerprint) {
                Some(mut open) => {
                    open.host.goes_on(&errand.caller, errand.progress_token.as_deref());
                    open.answer(errand.responses.as_deref());
                    open
                }
                // To begin anew could act twice.
                None => {
                    let message = "the `requestState` is unknown or has expired, or belongs to another request";
                    return Ok(error(ErrorCode::INVALID_PARAMS, message));
                }
            },
        };
        self.until_asked(server, open).await
    }

    /// Starts a call that outlives the request it is made for.
    fn open_call(
        &self,
        server: &ServerName,
        relayed: Relayed<'_>,
        errand: &Errand,
        fingerprint: u64,
    ) -> Result<OpenCall, CallError> {
        let (asked, questions) = mpsc::unbounded_channel();
        let (answer, outcome) = oneshot::channel();
        let call = CancellationToken::new();
        let host = CallHost::new(&errand.caller, errand.progress_token.as_deref(), Questions::Answered(asked));
        let open = OpenCall {
            fingerprint,
            host: host.clone(),
            questions,
            outcome,
            pending: Vec::new(),
            _call: call.clone().drop_guard(),
        };
        let Relayed { method, name, params, limit, is_repeatable } = relayed;
        let (method, name, meta) = (method.to_owned(), name.map(str::to_owned), errand.meta.clone());
        let params = with_answers(params, errand.responses.as_deref(), errand.state.as_deref());
        let (pool, server, stop) = (self.pool.clone(), server.clone(), self.tasks.stop().clone());
        self.tasks.spawn(async move {
            let host: Arc<dyn Host> = host;
            let request = Call { method: &method, name: name.as_deref(), params, meta: &meta, limit, host: Some(host) };
            let outcome = tokio::select! {
                outcome = pool.call(&server, request, is_repeatable) => outcome,
                () = call.cancelled() => return,
                () = stop.cancelled() => return,
            };
            // Whoever waited may have gone.
            let _ = answer.send(outcome);
        });
        Ok(open)
    }

    /// Waits for the outcome of a call, or for the first question that has to be answered before.
    async fn until_asked(&self, server: &ServerName, mut open: OpenCall) -> Result<Reply, CallError> {
        // What the server has taken back meanwhile need not be answered.
        open.pending.retain(|(_, asked)| !asked.answer.is_closed());
        let is_waiting = !open.pending.is_empty();
        tokio::select! {
            biased;
            outcome = &mut open.outcome => {
                return match outcome {
                    Ok(Ok(reply)) => Ok(sent_elsewhere(server, &reply).unwrap_or_else(|| with_server_named(server, reply))),
                    Ok(Err(error)) => Err(error),
                    Err(_) => Err(CallError::Connect(Arc::new(crate::upstream::ConnectError::ShuttingDown))),
                };
            }
            Some(asked) = open.questions.recv() => open.note(asked),
            // There is something to answer already.
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
        let token = format!("{STATE_PREFIX}{}", random_token());
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":{}}}"#,
            requests.join(","),
            quoted(&token)
        );
        if !self.open_calls.keep(token.clone(), open) {
            let message = quoted("too many requests wait for answers of clients already; try again later");
            return Ok(Reply::Error(
                format!(r#"{{"code":{},"message":{message}}}"#, ErrorCode::TOO_MANY_REQUESTS).into(),
            ));
        }
        self.forget_later(token);
        Ok(Reply::Result(result.into()))
    }

    /// Gives up a call whose client does not come back.
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

    async fn send(
        &self,
        server: &ServerName,
        relayed: &Relayed<'_>,
        meta: &str,
        host: Option<Arc<CallHost>>,
    ) -> Result<Reply, CallError> {
        let Relayed { method, name, limit, is_repeatable, .. } = *relayed;
        let host = host.map(|host| host as Arc<dyn Host>);
        let call = Call { method, name, params: relayed.params.clone(), meta, limit, host };
        self.pool.call(server, call, is_repeatable).await
    }
}

impl OpenCalls {
    /// Takes the call behind a token, if it is there and was made for the same thing.
    fn take(&self, token: &str, fingerprint: u64) -> Option<OpenCall> {
        let mut calls = self.table();
        calls.get(token).is_some_and(|open| open.fingerprint == fingerprint).then(|| calls.remove(token))?
    }

    fn keep(&self, token: String, open: OpenCall) -> bool {
        let mut calls = self.table();
        let has_room = calls.len() < MOST_OPEN;
        if has_room {
            calls.insert(token, open);
        }
        has_room
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, OpenCall>> {
        // Each change is a single step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenCall {
    fn note(&mut self, asked: Asked) {
        let key = format!("question-{}", self.pending.len() + 1);
        self.pending.push((key, asked));
    }

    /// Hands the client's answers to whoever asked; what it did not answer is asked again.
    fn answer(&mut self, responses: Option<&str>) {
        let raw: Option<&RawValue> = responses.and_then(|json| serde_json::from_str(json).ok());
        let responses = raw.and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        for (key, asked) in std::mem::take(&mut self.pending) {
            match responses.get(&key).filter(|raw| raw.get().starts_with('{')) {
                Some(raw) => {
                    // The server may have taken the question back.
                    let _ = asked.answer.send(Reply::Result(Bytes::copy_from_slice(raw.get().as_bytes())));
                }
                None => self.pending.push((key, asked)),
            }
        }
    }
}

/// What a modern server needs before it answers (2026-07-28, basic/patterns/mrtr).
struct Needs {
    /// Key as JSON, method, parameters.
    questions: Vec<(String, String, Option<Bytes>)>,
    /// `requestState`, as JSON.
    state: Option<String>,
}

impl Needs {
    fn of(reply: &Reply) -> Option<Self> {
        let Reply::Result(result) = reply else { return None };
        let object = required_input(result)?;
        let requests = object.get("inputRequests").and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        let questions = requests.members().iter().filter_map(|(key, raw)| {
            let request = Object::parse(raw).ok()?;
            let params = request.get("params").map(|raw| Bytes::copy_from_slice(raw.get().as_bytes()));
            Some((key.get().to_owned(), request.text("method")?, params))
        });
        let state = object.get("requestState").map(|raw| raw.get().to_owned());
        Some(Self { questions: questions.collect(), state })
    }
}

/// The members of a result that is no answer yet but says what is needed for one.
pub(super) fn required_input(result: &[u8]) -> Option<Object<'_>> {
    // Results may be large, and those that need input are rare.
    memchr::memmem::find(result, b"input_required")?;
    let raw: &RawValue = serde_json::from_slice(result).ok()?;
    let object = Object::parse(raw).ok()?;
    let is_required = object.text("resultType").as_deref() == Some("input_required")
        && (object.get("inputRequests").is_some() || object.get("requestState").is_some());
    is_required.then_some(object)
}

/// A legacy server's refusal until the user has been at a URL (2025-11-25, client/elicitation), as the question that it is
/// in the modern era.
fn sent_elsewhere(server: &ServerName, reply: &Reply) -> Option<Reply> {
    let Reply::Error(refusal) = reply else { return None };
    if upstream::code_of(refusal) != Some(ErrorCode::URL_ELICITATION_REQUIRED) {
        return None;
    }
    let refusal: &RawValue = serde_json::from_slice(refusal).ok()?;
    let data = Object::parse(refusal).ok()?.get("data").and_then(|raw| Object::parse(raw).ok())?;
    let places: Vec<&RawValue> = serde_json::from_str(data.get("elicitations")?.get()).ok()?;
    let requests = places.into_iter().enumerate().map(|(at, raw)| {
        let params = Some(Bytes::copy_from_slice(raw.get().as_bytes()));
        let question = Question { server: server.clone(), method: "elicitation/create".to_owned(), params };
        let params = named(&question);
        format!(r#""place-{}":{{"method":"elicitation/create","params":{}}}"#, at + 1, String::from_utf8_lossy(&params))
    });
    let requests: Vec<String> = requests.collect();
    let result = format!(
        r#"{{"resultType":"input_required","inputRequests":{{{}}},"requestState":"{MAKE_ANEW}"}}"#,
        requests.join(",")
    );
    Some(Reply::Result(result.into()))
}

fn error(code: ErrorCode, message: &str) -> Reply {
    Reply::Error(format!(r#"{{"code":{code},"message":{}}}"#, quoted(message)).into())
}

/// A modern server's questions, with the server named to the user.
fn with_server_named(server: &ServerName, reply: Reply) -> Reply {
    let Reply::Result(result) = &reply else { return reply };
    let Some(object) = required_input(result) else { return reply };
    let Some(requests) = object.get("inputRequests").and_then(|raw| Object::parse(raw).ok()) else { return reply };
    let members: Vec<String> = requests
        .members()
        .iter()
        .map(|(key, raw)| {
            let request = Object::parse(raw).unwrap_or_default();
            let Some(method) = request.text("method") else { return format!("{key}:{raw}") };
            let params = request.get("params").map(|raw| Bytes::copy_from_slice(raw.get().as_bytes()));
            let params = named(&Question { server: server.clone(), method, params });
            format!("{key}:{}", request.with("params", &String::from_utf8_lossy(&params)))
        })
        .collect();
    Reply::Result(object.with("inputRequests", &format!("{{{}}}", members.join(","))).into())
}

/// Parameters with the answers that a server asked for; what was not there is not added.
fn with_answers(mut params: Frame, responses: Option<&str>, state: Option<&str>) -> Frame {
    let mut add = |key: &str, json: Option<&str>| {
        if let Some(json) = json {
            params.tail.extend_from_slice(format!(r#","{key}":{json}"#).as_bytes());
        }
    };
    add("inputResponses", responses);
    add("requestState", state);
    params
}

fn fingerprint(server: &ServerName, relayed: &Relayed<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (server, relayed.method, relayed.name).hash(&mut hasher);
    (&relayed.params.head, &relayed.params.body, &relayed.params.tail).hash(&mut hasher);
    hasher.finish()
}

/// What of a request's `_meta` concerns the server: all but what belongs to this hop.
fn relayed_meta(meta: &Object<'_>) -> String {
    let members = meta.members().iter().zip(meta.iter()).filter(|(_, (key, _))| {
        key != "progressToken"
            && !matches!(
                key.as_ref(),
                "io.modelcontextprotocol/protocolVersion"
                    | "io.modelcontextprotocol/clientInfo"
                    | "io.modelcontextprotocol/clientCapabilities"
                    | "io.modelcontextprotocol/logLevel"
            )
    });
    members.map(|((key, value), _)| format!("{key}:{value}")).collect::<Vec<_>>().join(",")
}
