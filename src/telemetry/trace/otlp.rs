//! Spans as OTLP JSON (opentelemetry-proto, docs/specification.md, "JSON Protobuf Encoding"): keys in lower camel
//! case, ids in hexadecimal, 64-bit numbers as text, enumerations as numbers.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use serde_json::{Value as Json, json};

use super::{Kind, Record, Value};
use crate::telemetry::{collector, masked};

const STATUS_ERROR: u8 = 2;

/// The body of an `ExportTraceServiceRequest`.
pub(super) fn request(resource: &BTreeMap<String, String>, records: &[Record]) -> String {
    let spans: Vec<Json> = records.iter().map(span).collect();
    json!({
        "resourceSpans": [{
            "resource": collector::resource(resource),
            "scopeSpans": [{ "scope": collector::scope(), "spans": spans }],
        }],
    })
    .to_string()
}

fn span(record: &Record) -> Json {
    let context = &record.context;
    let attributes: Vec<Json> = record
        .attributes
        .iter()
        .map(|(key, value)| attribute(key, value))
        .collect();
    let mut span = json!({
        "traceId": HEXLOWER.encode(&context.trace),
        "spanId": HEXLOWER.encode(&context.span),
        // Bits 0 to 7 are the W3C flags.
        "flags": u32::from(context.flags()),
        "name": record.name,
        "kind": match record.kind {
            Kind::Server => 2,
            Kind::Client => 3,
        },
        "startTimeUnixNano": nanoseconds(record.start),
        "endTimeUnixNano": nanoseconds(record.end),
        "attributes": attributes,
    });
    if let Some(parent) = record.parent {
        span["parentSpanId"] = HEXLOWER.encode(&parent).into();
    }
    if let Some(state) = context.state() {
        span["traceState"] = state.into();
    }
    if record.attributes.contains_key("error.type") {
        span["status"] = match &record.message {
            Some(message) => json!({ "code": STATUS_ERROR, "message": masked(message) }),
            None => json!({ "code": STATUS_ERROR }),
        };
    }
    span
}

fn attribute(key: &str, value: &Value) -> Json {
    match value {
        Value::Text(text) => collector::text_attribute(key, text),
        Value::Number(number) => {
            json!({ "key": key, "value": { "intValue": number.to_string() } })
        }
    }
}

fn nanoseconds(time: SystemTime) -> String {
    // A clock before 1970 counts as 1970.
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos()
        .to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::Context;
    use super::*;

    #[test]
    fn a_span_has_the_form_of_the_specification() {
        let parent = "00-5b8efff798038103d269b633813fc60c-eee19b7ec3c1b173-01";
        let context = Context::parse(parent, Some("a=1")).unwrap();
        // Windows counts in steps of 100 ns.
        let start = UNIX_EPOCH + Duration::from_nanos(1_544_712_660_000_000_100);
        let record = Record {
            context: Arc::new(context),
            parent: Some([0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x74]),
            name: "tools/call x".to_owned(),
            kind: Kind::Client,
            start,
            end: start + Duration::from_secs(1),
            attributes: BTreeMap::from([
                ("error.type", "timeout".into()),
                ("server.port", Value::Number(443)),
            ]),
            message: Some("too \"late\"".to_owned()),
        };
        let resource = BTreeMap::from([("service.name".to_owned(), "s".to_owned())]);
        let json: Json = serde_json::from_str(&request(&resource, &[record])).unwrap();
        let all = &json["resourceSpans"][0];
        assert_eq!(
            all["resource"]["attributes"][0],
            json!({ "key": "service.name", "value": { "stringValue": "s" } })
        );
        assert_eq!(
            all["scopeSpans"][0]["spans"][0],
            json!({
                "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b173",
                "parentSpanId": "eee19b7ec3c1b174", "flags": 1, "traceState": "a=1",
                "name": "tools/call x", "kind": 3,
                "startTimeUnixNano": "1544712660000000100", "endTimeUnixNano": "1544712661000000100",
                "attributes": [
                    { "key": "error.type", "value": { "stringValue": "timeout" } },
                    { "key": "server.port", "value": { "intValue": "443" } },
                ],
                "status": { "code": 2, "message": "too \"late\"" },
            })
        );
    }
}
