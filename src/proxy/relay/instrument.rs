//! Instrumentation of upstream requests: log, metrics and trace spans. If all are off, it costs one check.

use std::sync::Arc;
use std::time::Instant;

use tracing::Instrument as _;

use super::Relay;
use crate::events::Source;
use crate::mcp::ErrorCode;
use crate::proxy::Reply;
use crate::proxy::answers::reply::is_error;
use crate::statistics::{End, Live};
use crate::telemetry::trace::{Hop, Kind, Span, Trace, Tracer};
use crate::tool::ServerName;
use crate::upstream::{CallError, Pool, ServerCall, ServerReply, code_of, message_of};

/// The instrumentation and the pool that it wraps.
#[derive(Debug, Clone)]
pub(in crate::proxy) struct InstrumentedPool {
    pool: Arc<Pool>,
    live: Arc<Live>,
    tracer: Option<Arc<Tracer>>,
    events: Source,
}

impl Relay {
    /// The instrumented pool.
    pub(in crate::proxy) fn instrumented(&self) -> InstrumentedPool {
        let (pool, live) = (self.pool.clone(), self.statistics.live().clone());
        InstrumentedPool {
            pool,
            live,
            tracer: self.tracer.get().cloned(),
            events: self.events.clone(),
        }
    }

    /// Records spans with this tracer from now on. Only the first tracer counts.
    pub(in crate::proxy) fn trace_with(&self, tracer: Arc<Tracer>) {
        // It is set once, when serving begins.
        let _ = self.tracer.set(tracer);
    }

    /// The tracer, if traces are exported.
    pub(in crate::proxy) fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.get()
    }
}

impl InstrumentedPool {
    /// Sends a request; see [`Pool::call`].
    pub(in crate::proxy) async fn call(
        &self,
        server: &ServerName,
        mut call: ServerCall<'_>,
        trace: &Trace,
        is_repeatable: bool,
    ) -> Result<ServerReply, CallError> {
        let log = tracing::debug_span!("call", %server, method = call.method, name = call.label());
        call.hop = Hop {
            context: trace.context().map(|context| &**context),
            span: None,
        };
        let is_watched =
            self.tracer.is_some() || self.live.counts_calls() || self.events.reports_calls();
        if log.is_disabled() && !is_watched {
            return self.pool.call(server, &call, is_repeatable).await;
        }
        Box::pin(self.call_instrumented(server, call, trace, is_repeatable, log)).await
    }

    async fn call_instrumented(
        &self,
        server: &ServerName,
        call: ServerCall<'_>,
        trace: &Trace,
        is_repeatable: bool,
        log: tracing::Span,
    ) -> Result<ServerReply, CallError> {
        let counted = (self.live.counts_calls() && call.method == "tools/call")
            .then(|| self.live.begin(server.as_str(), call.params.len()));
        let mut span = self.span(server, &call, trace);
        let mut meta = call.meta.to_owned();
        if let Some(span) = &span {
            let comma = if meta.is_empty() { "" } else { "," };
            meta = format!("{meta}{comma}{}", span.context().members());
        }
        let hop = match &span {
            Some(span) => Hop {
                context: Some(span.context()),
                span: Some(span),
            },
            None => call.hop,
        };
        let tool = call.name.unwrap_or_default();
        let told = (call.method == "tools/call").then(|| self.events.call(server.as_str(), tool));
        let start = Instant::now();
        let outcome = {
            let call = ServerCall {
                meta: &meta,
                hop,
                ..call
            };
            self.pool
                .call(server, &call, is_repeatable)
                .instrument(log.clone())
                .await
        };
        let (time, end) = (start.elapsed(), end_of(&outcome));
        let received = match &outcome {
            Ok(ServerReply::Result(result)) => result.len(),
            Ok(ServerReply::Error(error)) => error.len(),
            Err(_) => 0,
        };
        log.in_scope(
            || tracing::debug!(%server, outcome = end.as_str(), ?time, bytes = received, "the server answered"),
        );
        if let Some(call) = told.flatten() {
            call.end(end.as_str());
        }
        if let Some(counted) = counted {
            counted.end(end, time, received);
        }
        if let Some(span) = span.as_mut().filter(|span| span.is_recorded()) {
            note(span, &outcome, end);
        }
        outcome
    }

    /// The span of an upstream request (semantic conventions for MCP, "Client").
    fn span(&self, server: &ServerName, call: &ServerCall<'_>, trace: &Trace) -> Option<Span> {
        let (Some(tracer), Trace::Ours(parent)) = (&self.tracer, trace) else {
            return None;
        };
        let mut span = tracer.span(Some(parent), Kind::Client, || {
            span_name(call.method, call.name)
        });
        if span.is_recorded() {
            describe(&mut span, call.method, call.name);
            span.set("mcpzip.server", server.as_str());
            // The status if the request is dropped.
            span.fail("cancelled", None);
            match self.pool.address_of(server) {
                Some((host, port)) => {
                    span.set("network.transport", "tcp");
                    span.set("network.protocol.name", "http");
                    span.set("server.address", host);
                    port.into_iter()
                        .for_each(|port| span.set("server.port", i64::from(port)));
                }
                None => span.set("network.transport", "pipe"),
            }
        }
        Some(span)
    }
}

/// The name of a span: the method, with its target if there are few possible targets.
pub(crate) fn span_name(method: &str, name: Option<&str>) -> String {
    match name.filter(|_| matches!(method, "tools/call" | "prompts/get")) {
        Some(name) => format!("{method} {name}"),
        None => method.to_owned(),
    }
}

/// Records the method and the target of a request.
pub(crate) fn describe(span: &mut Span, method: &str, name: Option<&str>) {
    span.set("mcp.method.name", method);
    let key = match method {
        "tools/call" => {
            span.set("gen_ai.operation.name", "execute_tool");
            "gen_ai.tool.name"
        }
        "prompts/get" => "gen_ai.prompt.name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "mcp.resource.uri",
        _ => return,
    };
    name.into_iter().for_each(|name| span.set(key, name));
}

/// Records the outcome of an upstream request.
fn note(span: &mut Span, outcome: &Result<ServerReply, CallError>, end: End) {
    match outcome {
        Ok(ServerReply::Error(error)) => refused(span, code_of(error), message_of(error)),
        Err(error) => span.fail(end.as_str(), Some(error.to_string())),
        Ok(ServerReply::Result(_)) if end == End::ToolError => span.fail(end.as_str(), None),
        Ok(ServerReply::Result(_)) => span.succeed(),
    }
}

/// Records the answer to a client's request.
pub(crate) fn note_reply(span: &mut Span, reply: &Reply) {
    match reply {
        Reply::Error { code, message, .. } => refused(span, Some(*code), message.clone()),
        Reply::RelayedError(error) => refused(span, code_of(error), message_of(error)),
        Reply::Result(result) | Reply::Relayed(result) if is_error(result) => {
            span.fail(End::ToolError.as_str(), None);
        }
        Reply::Result(_)
        | Reply::Relayed(_)
        | Reply::RelayedContent(_)
        | Reply::Task(_)
        | Reply::Ended { .. } => span.succeed(),
    }
}

/// Records the JSON-RPC error of a request.
fn refused(span: &mut Span, code: Option<ErrorCode>, message: String) {
    let code = code.map_or_else(|| "_OTHER".to_owned(), |code| code.to_string());
    span.set("rpc.response.status_code", code.as_str());
    span.fail(&code, Some(message));
}

fn end_of(outcome: &Result<ServerReply, CallError>) -> End {
    match outcome {
        Ok(ServerReply::Result(result)) if is_error(result) => End::ToolError,
        Ok(ServerReply::Result(_)) => End::Ok,
        Ok(ServerReply::Error(_)) => End::Refused,
        Err(CallError::Timeout { .. } | CallError::Connecting { .. }) => End::TimedOut,
        Err(_) => End::Unavailable,
    }
}
