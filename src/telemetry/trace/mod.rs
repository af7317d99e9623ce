//! Traces for OpenTelemetry: one span for each request of a client, and a child span for each request to a server.
//!
//! The exporter is our own: OTLP is a POST of JSON, and the SDK costs more than everything it would be used for. A
//! finished span goes into a queue, or is dropped and counted if the queue is full; a task sends the queue. No request
//! waits for either.
//!
//! *Never*: decides which requests get a span; delays the caller that ends one.

mod context;
mod export;
mod otlp;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use tokio::sync::{Mutex, mpsc};

pub(crate) use context::{Context, Trace};

use crate::config::{Sampler, Traces};
use crate::shutdown::Tasks;
use context::SpanId;

/// The longest text of a span, in bytes.
const LONGEST_TEXT: usize = 1024;

/// Makes spans and queues them for sending.
#[derive(Debug)]
pub(crate) struct Tracer {
    options: Traces,
    queue: mpsc::Sender<Record>,
    waiting: Mutex<export::Waiting>,
    exported: AtomicU64,
    dropped: AtomicU64,
}

/// The relation of a request to a server to a trace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hop<'a> {
    /// The context to send in a header, if the transport has headers.
    pub context: Option<&'a Context>,
    /// The request's span.
    pub span: Option<&'a Span>,
}

/// The side of a request that a span describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The side that answers it.
    Server,
    /// The side that makes it.
    Client,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
}

/// A timed operation. It ends at the latest when it is dropped.
#[derive(Debug)]
pub(crate) struct Span {
    tracer: Arc<Tracer>,
    context: Arc<Context>,
    /// The data to export. `None` if the trace is not recorded.
    record: Option<Box<Record>>,
    since: Instant,
    sent_as: OnceLock<(u64, &'static str)>,
}

/// A span as it is exported.
#[derive(Debug)]
struct Record {
    context: Arc<Context>,
    parent: Option<SpanId>,
    name: String,
    kind: Kind,
    start: SystemTime,
    end: SystemTime,
    attributes: BTreeMap<&'static str, Value>,
    /// The error message, if there is one.
    message: Option<String>,
}

impl Tracer {
    /// Creates a tracer whose background task sends the spans it is given.
    #[must_use]
    pub(crate) fn start(options: Traces, tasks: &Tasks) -> Arc<Self> {
        let (queue, spans) = mpsc::channel(options.queue);
        let tracer = Arc::new(Self {
            waiting: Mutex::new(export::Waiting::new(spans)),
            options,
            queue,
            exported: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        tasks.spawn(tracer.clone().export(tasks.clone()));
        tracer
    }

    /// Starts a span with this name, in the trace of `parent` if there is one.
    #[must_use]
    pub(crate) fn span(
        self: &Arc<Self>,
        parent: Option<&Context>,
        kind: Kind,
        name: impl FnOnce() -> String,
    ) -> Span {
        let context = Arc::new(Context::below(parent, |trace| {
            is_recorded(self.options.sampler, parent, trace)
        }));
        let record = context.is_sampled().then(|| {
            let now = SystemTime::now();
            Box::new(Record {
                context: context.clone(),
                parent: parent.map(|parent| parent.span),
                name: bounded(name()),
                kind,
                start: now,
                end: now,
                attributes: BTreeMap::new(),
                message: None,
            })
        });
        Span {
            tracer: self.clone(),
            context,
            record,
            since: Instant::now(),
            sent_as: OnceLock::new(),
        }
    }

    /// The service name of this process in traces.
    #[must_use]
    pub(crate) fn service(&self) -> &str {
        self.options
            .collector
            .resource
            .get("service.name")
            .map_or("", String::as_str)
    }

    /// The number of spans that a collector has accepted.
    #[must_use]
    pub(crate) fn exported(&self) -> u64 {
        self.exported.load(Ordering::Relaxed)
    }

    /// The number of spans that were not sent, or not accepted.
    #[must_use]
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn drop_spans(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl Span {
    /// The context to pass to its children, in this process and elsewhere.
    #[must_use]
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Whether its attributes are exported.
    #[must_use]
    pub(crate) fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// Sets an attribute.
    pub(crate) fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        if let Some(record) = &mut self.record {
            let value = match value.into() {
                Value::Text(text) => Value::Text(bounded(text)),
                number @ Value::Number(_) => number,
            };
            record.attributes.insert(key, value);
        }
    }

    /// Records the id and the revision with which its request was sent. The first call wins.
    pub(crate) fn sent_as(&self, id: u64, revision: &'static str) {
        // A retry may send it again, which makes no difference to the client.
        let _ = self.sent_as.set((id, revision));
    }

    /// Marks it as failed, with an error class and a message.
    pub(crate) fn fail(&mut self, class: &str, message: Option<String>) {
        self.set("error.type", class);
        if let Some(record) = &mut self.record {
            record.message = message.map(bounded);
        }
    }
}

impl Span {
    /// Clears the failure.
    pub(crate) fn succeed(&mut self) {
        if let Some(record) = &mut self.record {
            record.attributes.remove("error.type");
            record.message = None;
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(mut record) = self.record.take() else {
            return;
        };
        if let Some((id, revision)) = self.sent_as.get() {
            record
                .attributes
                .insert("jsonrpc.request.id", Value::Text(id.to_string()));
            record
                .attributes
                .insert("mcp.protocol.version", (*revision).into());
        }
        record.end = record.start + self.since.elapsed();
        if self.tracer.queue.try_send(*record).is_err() {
            self.tracer.drop_spans(1);
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

/// A text, which may come from a client, cut to the longest that is kept.
fn bounded(text: String) -> String {
    if text.len() <= LONGEST_TEXT {
        return text;
    }
    let mut text = super::masked(&text).into_owned();
    let end = (0..=LONGEST_TEXT.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    text.truncate(end.unwrap_or(0));
    text.shrink_to_fit();
    text
}

/// Whether a trace is recorded, derived from its id: all processes with one ratio decide alike.
fn is_recorded(sampler: Sampler, parent: Option<&Context>, trace: [u8; 16]) -> bool {
    match parent {
        Some(parent) if sampler.follows_parent => parent.is_sampled(),
        _ => {
            let random = u64::from_be_bytes(
                trace[8..]
                    .try_into()
                    .expect("half of sixteen bytes are eight"),
            );
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a share of 1 is handled above, and the last bits of a random number do not matter"
            )]
            let bound = (sampler.share * (u64::MAX >> 1) as f64) as u64;
            sampler.share >= 1.0 || random >> 1 < bound
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_the_traces_is_recorded_and_others_as_they_began() {
        let sampler = |follows_parent, share| Sampler {
            follows_parent,
            share,
        };
        let recorded = |sampler, parent: Option<&Context>| {
            (0..4000)
                .filter(|_| {
                    Context::below(parent, |trace| is_recorded(sampler, parent, trace)).is_sampled()
                })
                .count()
        };
        assert_eq!(recorded(sampler(true, 1.0), None), 4000);
        assert_eq!(recorded(sampler(true, 0.0), None), 0);
        let half = recorded(sampler(true, 0.5), None);
        assert!((1600..2400).contains(&half), "{half}");
        let parent = |text| Context::parse(text, None).unwrap();
        let yes = parent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        let no = parent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00");
        assert_eq!(
            (
                recorded(sampler(true, 0.0), Some(&yes)),
                recorded(sampler(true, 1.0), Some(&no))
            ),
            (4000, 0)
        );
        assert_eq!(
            (
                recorded(sampler(false, 0.0), Some(&yes)),
                recorded(sampler(false, 1.0), Some(&no))
            ),
            (0, 4000)
        );
    }
}
