//! The form of a log line: text for people, or a JSON object for programs.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::{DefaultFields, Format, Full, Writer};
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::{TIME, withheld, written};

/// Whether lines are JSON, for the whole process.
static JSON: AtomicBool = AtomicBool::new(false);

/// Makes all lines from now on JSON, or text.
pub(super) fn set_json(is_json: bool) {
    JSON.store(is_json, Ordering::Relaxed);
}

/// Formats an event in the form that holds now.
#[derive(Debug)]
pub(super) struct Lines<T> {
    pub(super) format: Format<Full, T>,
    pub(super) timer: T,
}

impl<S, T> FormatEvent<S, DefaultFields> for Lines<T>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    T: FormatTime,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, DefaultFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut seen = Members::default();
        event.record(&mut seen);
        let is_withheld = withheld::remove(&mut seen.0, *event.metadata().level());
        match (JSON.load(Ordering::Relaxed), is_withheld) {
            (true, _) => {}
            (false, true) => return self.write_text(writer, event, seen.0),
            (false, false) => return self.format.format_event(context, writer, event),
        }
        let time = OffsetDateTime::now_utc();
        let mut line = json!({
            "timestamp": time.format(TIME).map_err(|_| fmt::Error)?,
            "level": event.metadata().level().as_str(),
            "pid": std::process::id(),
            "message": seen.0.remove("message").unwrap_or_default(),
        });
        if let Some(server) = seen.0.remove("server") {
            line["server"] = server;
        }
        if !seen.0.is_empty() {
            line["fields"] = seen.0.into();
        }
        let spans: Vec<Value> = context
            .event_scope()
            .into_iter()
            .flat_map(|scope| scope.from_root())
            .map(|span| {
                let extensions = span.extensions();
                let fields = extensions.get::<FormattedFields<DefaultFields>>();
                let fields = fields.map(|fields| shown(&fields.fields));
                json!({ "name": span.name(), "fields": fields.unwrap_or_default() })
            })
            .collect();
        if !spans.is_empty() {
            line["spans"] = spans.into();
        }
        writeln!(writer, "{line}")
    }
}

impl<T: FormatTime> Lines<T> {
    /// Writes a line of these fields only.
    fn write_text(
        &self,
        mut writer: Writer<'_>,
        event: &Event<'_>,
        mut fields: Map<String, Value>,
    ) -> fmt::Result {
        self.timer.format_time(&mut writer)?;
        write!(writer, " {:>5}", event.metadata().level())?;
        if let Some(Value::String(message)) = fields.remove("message") {
            write!(writer, " {message}")?;
        }
        for (name, value) in &fields {
            match value {
                Value::String(text) => write!(writer, " {name}={text}")?,
                other => write!(writer, " {name}={other}")?,
            }
        }
        writeln!(writer)
    }
}

/// The fields of an event.
#[derive(Debug, Default)]
struct Members(Map<String, Value>);

impl Members {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Members {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, shown(&format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, shown(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }
}

/// A text as it may stand in a log. Secrets are masked here, as JSON may write their characters in another way.
fn shown(text: &str) -> String {
    written(text.as_bytes())
}
