//! Lines as log records of OTLP (opentelemetry-proto, `logs.proto`), as JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use time::PrimitiveDateTime;

use super::event::TIME;
use crate::telemetry::collector::{resource, scope, text_attribute};
use crate::telemetry::masked;

/// The name of these events.
const EVENT: &str = "mcpzip.audit";

/// `INFO` and `WARN` (opentelemetry-proto, `SeverityNumber`).
const INFO: (u8, &str) = (9, "INFO");
const WARN: (u8, &str) = (13, "WARN");

/// The body of an `ExportLogsServiceRequest`.
#[must_use]
pub(super) fn request(attributes: &BTreeMap<String, String>, lines: &[String]) -> String {
    let records: Vec<Value> = lines.iter().map(|line| record(line.trim_end())).collect();
    json!({
        "resourceLogs": [{
            "resource": resource(attributes),
            "scopeLogs": [{ "scope": scope(), "logRecords": records }],
        }],
    })
    .to_string()
}

/// A line as a record: the line is its body, and each member with a text or number is an attribute.
fn record(line: &str) -> Value {
    let members: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
    let text = |key: &str| members.get(key).and_then(Value::as_str);
    let time = text("time")
        .and_then(|time| PrimitiveDateTime::parse(time, TIME).ok())
        .map_or(0, |time| time.assume_utc().unix_timestamp_nanos());
    let (number, severity) = match text("outcome") {
        Some("ok") => INFO,
        _ => WARN,
    };
    let attributes = members.iter().filter_map(|(key, value)| {
        let key = format!("{EVENT}.{key}");
        match value {
            Value::String(text) => Some(text_attribute(&key, text)),
            Value::Number(number) => Some(match number.as_i64() {
                Some(number) => json!({ "key": key, "value": { "intValue": number.to_string() } }),
                None => json!({ "key": key, "value": { "doubleValue": number } }),
            }),
            _ => None,
        }
    });
    json!({
        "timeUnixNano": time.to_string(),
        "observedTimeUnixNano": time.to_string(),
        "severityNumber": number,
        "severityText": severity,
        "eventName": EVENT,
        "body": { "stringValue": masked(line) },
        "attributes": attributes.collect::<Vec<_>>(),
    })
}
