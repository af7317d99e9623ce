//! The trace span of a client's request (semantic conventions for MCP, "Server").

use serde_json::value::RawValue;

use super::exchange::Exchange;
use crate::mcp::{Object, RequestId, Revision};
use crate::proxy::{Proxy, Reply, instrument};
use crate::telemetry::trace::{Context, Kind, Span, Trace};

/// A request with its span, if traces are exported.
#[derive(Debug)]
pub(super) struct Traced {
    span: Option<Box<Span>>,
    trace: Trace,
}

impl Traced {
    /// Begins the span of a request with this `_meta`, whose trace context precedes that of its HTTP request.
    pub(super) fn begin(proxy: &Proxy, meta: &Object<'_>, of: &Of<'_>) -> Self {
        let passed = of.exchange.passed();
        let Some(tracer) = proxy.tracer() else {
            let trace = passed.map_or(Trace::None, |context| Trace::Passed(context.clone()));
            return Self { span: None, trace };
        };
        let said = Context::of_meta(meta);
        let parent = said.as_ref().or(passed.map(|context| &**context));
        let name = match of.method {
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                of.params.text("uri")
            }
            _ => of.params.text("name"),
        };
        let mut span = tracer.span(parent, Kind::Server, || {
            instrument::span_name(of.method, name.as_deref())
        });
        if span.is_recorded() {
            instrument::describe(&mut span, of.method, name.as_deref());
            of.describe(&mut span);
            // The status if the request is dropped.
            span.fail("cancelled", None);
        }
        let trace = Trace::Ours(span.context().clone());
        Self {
            span: Some(Box::new(span)),
            trace,
        }
    }

    /// The trace for requests that are made on its behalf.
    pub(super) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Records the response.
    pub(super) fn answered(&mut self, revision: Revision, reply: &Reply) {
        if let Some(span) = self.span.as_mut().filter(|span| span.is_recorded()) {
            span.set("mcp.protocol.version", revision.as_str());
            instrument::note_reply(span, reply);
        }
    }
}

/// The request's data for the span.
#[derive(Debug)]
pub(super) struct Of<'a> {
    /// The name of its session in traces.
    pub(super) session: Option<&'a str>,
    /// The identity of its client.
    pub(super) person: Option<&'a str>,
    pub(super) exchange: &'a Exchange,
    pub(super) id: &'a RequestId,
    pub(super) method: &'a str,
    pub(super) params: &'a Object<'a>,
}

impl Of<'_> {
    fn describe(&self, span: &mut Span) {
        // The text of a string id, without the quotes.
        let id: Option<String> = serde_json::from_str(self.id.as_json()).ok();
        span.set(
            "jsonrpc.request.id",
            id.unwrap_or_else(|| self.id.as_json().to_owned()),
        );
        if self.exchange.is_over_http() {
            span.set("network.transport", "tcp");
            span.set("network.protocol.name", "http");
        } else {
            span.set("network.transport", "pipe");
        }
        if let Some(name) = self.session {
            span.set("mcp.session.id", name);
        }
        if let Some(person) = self.person {
            span.set("user.id", person);
        }
    }
}

/// The members of a request's parameters; empty if they are not an object.
pub(super) fn object(params: Option<&RawValue>) -> Object<'_> {
    params
        .and_then(|raw| Object::parse(raw).ok())
        .unwrap_or_default()
}
