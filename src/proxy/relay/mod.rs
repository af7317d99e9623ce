//! Relays a client's request to one server, in every combination of protocol eras.
//!
//! A server may ask the client something before it answers: elicitation, sampling, roots. A legacy server sends a
//! request of its own; a modern one responds with the questions, and gets the request again with the answers. This
//! module joins all four combinations. If a legacy server asks a modern client, `open_calls.rs` keeps the call open.

pub(in crate::proxy) mod approval;
mod asking_tasks;
pub(in crate::proxy) mod consent;
pub(crate) mod instrument;
pub(in crate::proxy) mod login;
mod named_uris;
pub(in crate::proxy) mod open_calls;
pub(in crate::proxy) mod pausing;
mod permitted;
mod question;
mod task;
mod tasks;

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::value::RawValue;

use self::approval::Asked;
use self::asking_tasks::AskingTasks;
use self::consent::{Consents, ScriptConsent};
use self::login::{LoggedIn, Logins};
use self::named_uris::NamedUris;
use self::open_calls::OpenCalls;
pub(in crate::proxy) use self::tasks::{task_in, without_related_task};
use crate::catalog::{Catalog, Snapshot};
use crate::config::Config;
use crate::events::Source;
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Frame, Object};
use crate::notify::Notifier;
use crate::pause::Pause;
use crate::proxy::Directories;
use crate::proxy::callers::caller::{CallHost, Caller, Questions};
use crate::proxy::own_uris;
use crate::proxy::view::View;
use crate::shutdown::Tasks;
use crate::statistics::{Live, Statistics};
use crate::telemetry::trace::{Context, Hop, Trace, Tracer};
use crate::tool::{ServerName, ToolHash};
use crate::upstream::{self, CallError, Host, Pool, Question, ServerCall, ServerReply, Word};

/// The maximum number of times that one request may ask back.
const MOST_ROUNDS: usize = 16;

/// Sends requests to servers, after the user's consent and a login if these are required.
#[derive(Debug)]
pub(super) struct Relay {
    pool: Arc<Pool>,
    statistics: Arc<Statistics>,
    pub(super) events: Source,
    pub(super) notifier: Arc<Notifier>,
    /// The URIs that servers named in results.
    pub(super) named_uris: NamedUris,
    open_calls: Arc<OpenCalls>,
    asking_tasks: Arc<AskingTasks>,
    consents: Consents,
    /// The questions to users whose client cannot ask.
    pub(super) asked: Asked,
    /// The user's switch that holds all calls.
    pause: Option<Pause>,
    logins: Arc<Logins>,
    /// The lists of all servers.
    catalog: Arc<Catalog>,
    /// The tracer, once a collector is configured.
    tracer: OnceLock<Arc<Tracer>>,
    tasks: Tasks,
}

/// The context of a client's request.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    pub(super) caller: Caller,
    /// The view of the caller.
    pub(super) view: View,
    /// Whether the client can be asked.
    pub(super) is_askable: bool,
    /// The consent of the user to calls of a script, if a script makes the call.
    pub(super) script: Option<Arc<ScriptConsent>>,
    /// Members for the server's `_meta`; without the trace context if mcpzip has a span of its own.
    pub(super) meta: String,
    pub(super) trace: Trace,
    /// The client's progress token, as JSON.
    pub(super) progress_token: Option<String>,
    /// `inputResponses` and `requestState` as JSON, if the client repeats a request to answer a question.
    pub(super) responses: Option<String>,
    pub(super) state: Option<String>,
    /// The hash of the tool's definition, if the user has agreed to this call of it.
    pub(super) agreed: Option<ToolHash>,
}

/// The request to relay.
#[derive(Clone)]
pub(super) struct Relayed<'a> {
    pub(super) method: &'a str,
    /// The tool, prompt or resource, by the server's name for it.
    pub(super) name: Option<&'a str>,
    /// The parameters without the closing brace and `_meta`.
    pub(super) params: Frame,
    pub(super) limit: Duration,
    /// Whether it may be repeated if the connection was lost.
    pub(super) is_repeatable: bool,
    /// Whether the server may answer with a task, or the request is about one.
    pub(super) takes_task: bool,
}

impl Relayed<'_> {
    /// A hash of the request to `server`.
    fn fingerprint(&self, server: &ServerName) -> u64 {
        let mut hasher = DefaultHasher::new();
        (server, self.method, self.name).hash(&mut hasher);
        (&self.params.head, &self.params.body, &self.params.tail).hash(&mut hasher);
        hasher.finish()
    }
}

impl RequestContext {
    /// Reads the context from the `params` of a request of `caller`.
    #[must_use]
    pub(crate) fn of(caller: &Caller, view: &View, params: &Object<'_>) -> Self {
        let meta = params
            .get("_meta")
            .and_then(|raw| Object::parse(raw).ok())
            .unwrap_or_default();
        // Clients with a handshake are asked by requests, and have no such members.
        let is_modern = caller.revision.is_modern();
        let json = |key: &str| {
            let raw = params.get(key).filter(|_| is_modern)?;
            Some(raw.get().to_owned())
        };
        let (relayed, trace) = traced_meta(&caller.trace, &meta);
        Self {
            caller: caller.clone(),
            view: view.clone(),
            is_askable: true,
            script: None,
            meta: relayed,
            trace,
            progress_token: meta
                .get("progressToken")
                .map(|token| token.get().to_owned()),
            responses: json("inputResponses"),
            state: json("requestState"),
            agreed: None,
        }
    }

    /// Whether an error of the server is meant for the client and not for the agent: a URL to visit, a missing
    /// capability, or a lost request state.
    pub(super) fn concerns_client(&self, refusal: &[u8]) -> bool {
        let is_modern = self.caller.revision.is_modern();
        match upstream::code_of(refusal) {
            Some(ErrorCode::URL_ELICITATION_REQUIRED) => {
                self.is_askable && self.caller.capabilities.elicits_urls()
            }
            Some(ErrorCode::MISSING_CAPABILITY) => is_modern,
            _ => is_modern && self.state.is_some(),
        }
    }

    /// The context for one of several calls in a request: a modern client cannot be asked about one of them, and
    /// their progress would be mixed.
    #[must_use]
    pub(crate) fn in_company(&self) -> Self {
        let is_askable = !self.caller.revision.is_modern();
        Self {
            is_askable,
            progress_token: None,
            responses: None,
            state: None,
            ..self.clone()
        }
    }

    /// The context for the calls of a script in this request.
    #[must_use]
    pub(super) fn in_script(&self) -> Self {
        Self {
            script: Some(Arc::default()),
            // That was about the script, not about the tools that it calls.
            agreed: None,
            ..self.in_company()
        }
    }
}

impl Relay {
    pub(super) fn new(
        pool: Arc<Pool>,
        statistics: Arc<Statistics>,
        events: Source,
        notifier: Arc<Notifier>,
        directories: &Directories,
        catalog: Arc<Catalog>,
        tasks: Tasks,
    ) -> Self {
        Self {
            pool,
            statistics,
            events,
            notifier,
            named_uris: NamedUris::default(),
            open_calls: Arc::default(),
            asking_tasks: Arc::default(),
            consents: Consents::default(),
            asked: Asked::new(directories.approvals.clone(), tasks.clone()),
            pause: directories.pause.clone(),
            logins: Arc::default(),
            catalog,
            tracer: OnceLock::new(),
            tasks,
        }
    }

    /// Applies an edited configuration; `known` is the catalog before it.
    pub(super) fn configure(&self, before: &Config, now: &Config, known: &Snapshot) {
        let is_kept = |server: &ServerName| before.servers.get(server) == now.servers.get(server);
        self.named_uris.retire(known, is_kept);
        if !before.profile_names().eq(now.profile_names()) {
            let is_there = |server: &ServerName| now.servers.contains_key(server);
            self.named_uris.forget(is_there);
        }
        self.statistics.live().count_calls(now.counts_calls());
    }

    /// Closes the connections and stores the statistics. Call it after the tasks of the run have ended.
    pub(super) async fn close(&self) {
        let statistics = self.statistics.clone();
        // In parallel, because a slow disk must not delay the end of the servers.
        self.asked.close();
        let written = self.tasks.spawn_blocking(move || statistics.flush());
        let ((), _) = tokio::join!(self.pool.close(), written);
    }

    /// See [`Pool::note_whole`].
    pub(in crate::proxy) fn note_whole(&self, config: &Config) {
        self.pool.note_whole(config);
    }

    /// Sends the clients' log level to the servers.
    pub(super) fn set_log_level(&self) {
        self.pool.set_log_level();
    }

    /// The connections to the servers.
    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The time since the process of `server` lost its state, if a client has to know of it now; see [`Pool::moved`].
    pub(super) fn moved(&self, server: &ServerName, session: Option<&str>) -> Option<Duration> {
        self.pool.moved(server, session)
    }

    /// The default time limit of a request to `server`.
    pub(super) fn limit(&self, view: &View, server: &ServerName) -> Duration {
        self.pool
            .timeout_of(server)
            .unwrap_or(view.config().call_timeout)
    }

    /// The live statistics of this process.
    pub(super) fn live(&self) -> &Arc<Live> {
        self.statistics.live()
    }

    /// Sends a request to `server` and returns the response; relays messages and questions in between. If the server
    /// requires a login and the client can help, the request is repeated after it, because a request that is refused
    /// for its credentials has not acted.
    ///
    /// # Errors
    /// When no usable response arrives, and when the user has paused mcpzip and this would be something new.
    pub(super) async fn request(
        &self,
        server: &ServerName,
        relayed: Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        let reply = self.whole_request(server, relayed, context).await?;
        Ok(match context {
            Some(context) => context.permitted(server, reply),
            None => reply,
        })
    }

    /// [`Self::request`], with answers that the client may not get.
    async fn whole_request(
        &self,
        server: &ServerName,
        relayed: Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        self.may_begin(relayed.method, context)?;
        let Some(able) = context.filter(|context| context.can_log_in()) else {
            return self.relay_once(server, relayed, context).await;
        };
        if able.answers_login() {
            // The result of the login is ignored: the server decides whether it suffices.
            Box::pin(self.returned(server, able)).await;
            return Box::pin(self.relay_once(server, relayed, Some(&able.unanswered()))).await;
        }
        match Box::pin(self.relay_once(server, relayed.clone(), context)).await {
            Err(error) if error.wants_login() => match Box::pin(self.log_in(server, able)).await {
                LoggedIn::Yes => Box::pin(self.relay_once(server, relayed, context)).await,
                LoggedIn::Asked(result) => Ok(ServerReply::Result(result.into())),
                LoggedIn::No => Err(error),
            },
            outcome => outcome,
        }
    }

    async fn relay_once(
        &self,
        server: &ServerName,
        relayed: Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        match context {
            Some(context) if !context.caller.revision.is_modern() => {
                self.relay_rounds(server, relayed, context).await
            }
            Some(context)
                if !context.is_askable
                    || (context.caller.capabilities.answers_nothing()
                        && context.state.is_none()) =>
            {
                let host = CallHost::at(
                    server,
                    &context.caller,
                    context.progress_token.as_deref(),
                    Questions::Refused,
                    context.view.config().masker_of(server),
                );
                Box::pin(self.send(server, &relayed, Some(context), Some(host))).await
            }
            Some(context) => Box::pin(self.relay_open(server, relayed, context)).await,
            None => Box::pin(self.send(server, &relayed, None, None)).await,
        }
    }

    /// Relays a request for a client that is asked by requests: answers a modern server's questions by asking the
    /// client, and repeats the request with the answers.
    async fn relay_rounds(
        &self,
        server: &ServerName,
        relayed: Relayed<'_>,
        context: &RequestContext,
    ) -> Result<ServerReply, CallError> {
        let host = CallHost::at(
            server,
            &context.caller,
            context.progress_token.as_deref(),
            Questions::Requested,
            context.view.config().masker_of(server),
        );
        let reply = self
            .send(server, &relayed, Some(context), Some(host.clone()))
            .await?;
        match Needs::of(&reply) {
            None => Ok(reply),
            Some(needs) => Box::pin(self.relay_again(server, relayed, context, host, needs)).await,
        }
    }

    /// Asks the client and repeats the request as long as the server has questions.
    async fn relay_again(
        &self,
        server: &ServerName,
        mut relayed: Relayed<'_>,
        context: &RequestContext,
        host: Arc<CallHost>,
        mut needs: Needs,
    ) -> Result<ServerReply, CallError> {
        let params = relayed.params.clone();
        for _ in 1..MOST_ROUNDS {
            let questions = needs.questions.into_iter().map(|(key, method, params)| {
                let (server, host) = (server.clone(), &host);
                async move {
                    let raw = params.as_deref();
                    let raw = raw.and_then(|params| serde_json::from_slice(params).ok());
                    if !host.capabilities().permit(&method, raw) {
                        let message = format!(
                            "the client does not support `{method}`, or not this kind of it"
                        );
                        return (key, error(ErrorCode::METHOD_NOT_FOUND, &message));
                    }
                    (
                        key,
                        host.ask(Question {
                            server,
                            method,
                            params,
                        })
                        .await,
                    )
                }
            });
            let mut responses = Vec::new();
            for (key, answer) in Box::pin(join_all(questions)).await {
                match answer {
                    ServerReply::Result(result) => {
                        responses.push(format!("{key}:{}", String::from_utf8_lossy(&result)));
                    }
                    // The protocol has no form for a refused question.
                    refusal @ ServerReply::Error(_) => return Ok(refusal),
                }
            }
            let responses = (!responses.is_empty()).then(|| format!("{{{}}}", responses.join(",")));
            relayed.params =
                with_answers(params.clone(), responses.as_deref(), needs.state.as_deref());
            let reply = self
                .send(server, &relayed, Some(context), Some(host.clone()))
                .await?;
            match Needs::of(&reply) {
                None => return Ok(reply),
                Some(more) => needs = more,
            }
        }
        let message = format!("the server asked {MOST_ROUNDS} times without giving an answer");
        Ok(error(ErrorCode::INTERNAL, &message))
    }

    async fn send(
        &self,
        server: &ServerName,
        relayed: &Relayed<'_>,
        context: Option<&RequestContext>,
        host: Option<Arc<CallHost>>,
    ) -> Result<ServerReply, CallError> {
        let Relayed {
            method,
            name,
            limit,
            is_repeatable,
            takes_task,
            ..
        } = *relayed;
        let host = host.map(|host| host as Arc<dyn Host>);
        let (meta, trace) = context.map_or(("", &Trace::None), |context| {
            (&context.meta, &context.trace)
        });
        let call = ServerCall {
            method,
            name,
            params: &relayed.params,
            meta,
            limit,
            hop: Hop::default(),
            host,
            agreed: context.and_then(|context| context.agreed),
            takes_task,
        };
        let reply = self
            .instrumented()
            .call(server, call, trace, is_repeatable)
            .await;
        reply.map(|reply| self.noted(server, reply))
    }

    /// A reply of `server` as clients see it; the resources that it names are noted.
    fn noted(&self, server: &ServerName, reply: ServerReply) -> ServerReply {
        match reply {
            ServerReply::Result(result) if result.may_have(Word::Uri) => {
                let noted = self.noted_result(server, result.into_bytes());
                ServerReply::Result(noted.into())
            }
            ServerReply::Result(result) => ServerReply::Result(result),
            ServerReply::Error(error) => {
                let error = upstream::with_plain_code(error);
                let raw: Option<&RawValue> = serde_json::from_slice(&error).ok();
                let renamed = raw.and_then(|raw| own_uris::for_clients(server, raw));
                ServerReply::Error(renamed.map_or(error, Bytes::from))
            }
        }
    }

    /// A result of `server`, or a part of one, as clients see it; the resources that it names are noted.
    pub(in crate::proxy) fn noted_result(&self, server: &ServerName, result: Bytes) -> Bytes {
        let known = || self.catalog.snapshot();
        let renamed = self.named_uris.note(server, &result, known);
        renamed.unwrap_or(result)
    }
}

/// An answer of `server` without values of variables that the user set as arguments of its tools: it may repeat them.
pub(in crate::proxy) fn without_secrets(
    config: &Config,
    server: &ServerName,
    reply: ServerReply,
) -> ServerReply {
    let Some(masker) = config.masker_of(server) else {
        return reply;
    };
    let bytes: &Bytes = match &reply {
        ServerReply::Result(result) => result,
        ServerReply::Error(error) => error,
    };
    let Ok(json) = std::str::from_utf8(bytes) else {
        return reply;
    };
    let masked = match masker.mask_json(json) {
        Some(Cow::Borrowed(_)) => return reply,
        Some(Cow::Owned(masked)) => Bytes::from(masked),
        None => {
            let message = "the answer cannot be shown, because it has a secret of the configuration that cannot be taken out of it";
            return error(ErrorCode::INTERNAL, message);
        }
    };
    match reply {
        ServerReply::Result(_) => ServerReply::Result(masked.into()),
        ServerReply::Error(_) => ServerReply::Error(masked),
    }
}

/// The questions of a modern server (2026-07-28, basic/patterns/mrtr).
struct Needs {
    /// The questions: key as JSON, method, parameters.
    questions: Vec<(String, String, Option<Bytes>)>,
    /// `requestState`, as JSON.
    state: Option<String>,
}

impl Needs {
    fn of(reply: &ServerReply) -> Option<Self> {
        let ServerReply::Result(result) = reply else {
            return None;
        };
        let object = result.required_input()?;
        let requests = object
            .get("inputRequests")
            .and_then(|raw| Object::parse(raw).ok())
            .unwrap_or_default();
        let questions = requests.members().iter().filter_map(|(key, raw)| {
            let request = Object::parse(raw).ok()?;
            let params = request
                .get("params")
                .map(|raw| Bytes::copy_from_slice(raw.get().as_bytes()));
            Some((key.get().to_owned(), request.text("method")?, params))
        });
        let state = object.get("requestState").map(|raw| raw.get().to_owned());
        Some(Self {
            questions: questions.collect(),
            state,
        })
    }
}

pub(super) fn error(code: ErrorCode, message: &str) -> ServerReply {
    ServerReply::Error(format!(r#"{{"code":{code},"message":{}}}"#, quoted(message)).into())
}

/// Adds the answers that a server asked for to the parameters.
pub(super) fn with_answers(
    mut params: Frame,
    responses: Option<&str>,
    state: Option<&str>,
) -> Frame {
    let mut add = |key: &str, json: Option<&str>| {
        if let Some(json) = json {
            params
                .tail
                .extend_from_slice(format!(r#","{key}":{json}"#).as_bytes());
        }
    };
    add("inputResponses", responses);
    add("requestState", state);
    params
}

/// The parts of a request's `_meta` for the server, and the request's trace. A client's trace context is relayed
/// unchanged, unless the request has a span of mcpzip.
fn traced_meta(own: &Trace, meta: &Object<'_>) -> (String, Trace) {
    if let Trace::Ours(_) = own {
        return (
            relayed_meta(meta, |key| !matches!(key, "traceparent" | "tracestate")),
            own.clone(),
        );
    }
    let members = relayed_meta(meta, |_| true);
    match (meta.get("traceparent"), own) {
        (Some(_), _) => (
            members,
            Context::of_meta(meta).map_or(Trace::None, |context| Trace::Passed(context.into())),
        ),
        (None, Trace::Passed(context)) => {
            let comma = if members.is_empty() { "" } else { "," };
            (
                format!("{members}{comma}{}", context.members()),
                own.clone(),
            )
        }
        (None, _) => (members, Trace::None),
    }
}

/// The members of a request's `_meta` except those of this hop; of the others, those for which `wanted` is true.
fn relayed_meta(meta: &Object<'_>, wanted: impl Fn(&str) -> bool) -> String {
    let members = meta
        .members()
        .iter()
        .zip(meta.iter())
        .filter(|(_, (key, _))| {
            key != "progressToken"
                && !matches!(
                    key.as_ref(),
                    "io.modelcontextprotocol/protocolVersion"
                        | "io.modelcontextprotocol/clientInfo"
                        | "io.modelcontextprotocol/clientCapabilities"
                        | "io.modelcontextprotocol/logLevel"
                        // Ids of tasks as the client knows them.
                        | "io.modelcontextprotocol/relatedTaskIds"
                )
                && wanted(key)
        });
    members
        .map(|((key, value), _)| format!("{key}:{value}"))
        .collect::<Vec<_>>()
        .join(",")
}
