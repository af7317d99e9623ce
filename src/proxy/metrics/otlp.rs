//! The metrics in OTLP's JSON encoding (opentelemetry-proto, `metrics.proto`): sums, gauges and histograms, all
//! cumulative.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::text::{Family, Kind, Sample, Text};
use crate::telemetry::collector;

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;

/// The time span of the metrics.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: SystemTime,
    now: SystemTime,
}

/// The body of an `ExportMetricsServiceRequest`, for a process that started at `start`.
pub(super) fn request(
    text: &Text,
    resource: &BTreeMap<String, String>,
    start: SystemTime,
) -> String {
    let span = Span {
        start,
        now: SystemTime::now(),
    };
    let metrics: Vec<Value> = text
        .families
        .iter()
        .filter(|(_, samples)| !samples.is_empty())
        .map(|(family, samples)| metric(family, samples, span))
        .collect();
    json!({
        "resourceMetrics": [{
            "resource": collector::resource(resource),
            "scopeMetrics": [{ "scope": collector::scope(), "metrics": metrics }],
        }],
    })
    .to_string()
}

fn metric(family: &Family, samples: &[Sample], span: Span) -> Value {
    // A collector that exports to Prometheus appends this suffix again.
    let name = family.name.strip_suffix("_total").unwrap_or(family.name);
    let mut metric = json!({ "name": name, "description": family.help });
    if let Some(unit) = unit(name) {
        metric["unit"] = unit.into();
    }
    let points = || -> Vec<Value> { samples.iter().map(|sample| point(sample, span)).collect() };
    match family.kind {
        Kind::Gauge => metric["gauge"] = json!({ "dataPoints": points() }),
        Kind::Counter => {
            metric["sum"] = json!({
                "dataPoints": points(), "aggregationTemporality": CUMULATIVE, "isMonotonic": true,
            });
        }
        Kind::Histogram => {
            metric["histogram"] = json!({
                "dataPoints": histograms(samples, span), "aggregationTemporality": CUMULATIVE,
            });
        }
    }
    metric
}

fn unit(name: &str) -> Option<&'static str> {
    if name.ends_with("_seconds") {
        Some("s")
    } else if name.ends_with("_bytes") {
        Some("By")
    } else {
        None
    }
}

fn point(sample: &Sample, span: Span) -> Value {
    let mut point = head(&sample.labels, span);
    // In this encoding, 64-bit integers are strings.
    match sample.value.parse::<i64>() {
        Ok(number) => point["asInt"] = number.to_string().into(),
        Err(_) => point["asDouble"] = number(&sample.value),
    }
    point
}

/// The histograms of a family, one for each set of labels. Prometheus's cumulative buckets become separate ones.
fn histograms(samples: &[Sample], span: Span) -> Vec<Value> {
    let mut all: Vec<(Vec<(&'static str, String)>, Value)> = Vec::new();
    let mut before = 0;
    for sample in samples {
        let labels: Vec<_> = sample
            .labels
            .iter()
            .filter(|(name, _)| *name != "le")
            .cloned()
            .collect();
        if all.last().is_none_or(|(known, _)| *known != labels) {
            let mut point = head(&labels, span);
            point["explicitBounds"] = json!([]);
            point["bucketCounts"] = json!([]);
            all.push((labels, point));
            before = 0;
        }
        let Some((_, point)) = all.last_mut() else {
            continue;
        };
        let count: u64 = sample.value.parse().unwrap_or_default();
        match sample.part {
            "_bucket" => {
                let bound = sample.labels.iter().find(|(name, _)| *name == "le");
                if let (Some((_, bound)), Some(bounds)) =
                    (bound, point["explicitBounds"].as_array_mut())
                    && bound != "+Inf"
                {
                    bounds.push(number(bound));
                }
                if let Some(counts) = point["bucketCounts"].as_array_mut() {
                    counts.push((count - before).to_string().into());
                }
                before = count;
            }
            "_sum" => point["sum"] = number(&sample.value),
            _ => point["count"] = count.to_string().into(),
        }
    }
    all.into_iter().map(|(_, point)| point).collect()
}

fn head(labels: &[(&'static str, String)], span: Span) -> Value {
    let attributes: Vec<Value> = labels
        .iter()
        .map(|(name, value)| collector::text_attribute(name, value))
        .collect();
    json!({
        "attributes": attributes,
        "startTimeUnixNano": nanoseconds(span.start),
        "timeUnixNano": nanoseconds(span.now),
    })
}

fn number(text: &str) -> Value {
    text.parse::<f64>().unwrap_or_default().into()
}

fn nanoseconds(time: SystemTime) -> String {
    // A clock before 1970 counts as 1970.
    let time = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    time.as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_form_of_the_specification() {
        let mut text = Text::default();
        text.family(&Family::new("calls_total", Kind::Counter, "Calls."))
            .sample(&[("server", "a")], 5);
        text.family(&Family::new("open", Kind::Gauge, "Open."))
            .sample(&[], 0.5);
        text.family(&Family::new("time_seconds", Kind::Histogram, "Time."));
        for (part, le, value) in [
            ("_bucket", Some("0.1"), "2"),
            ("_bucket", Some("+Inf"), "3"),
            ("_sum", None, "1.5"),
            ("_count", None, "3"),
        ] {
            let mut labels = vec![("server", "a")];
            labels.extend(le.map(|le| ("le", le)));
            text.part(part, &labels, value);
        }
        let resource = BTreeMap::from([("service.name".to_owned(), "s".to_owned())]);
        let json: Value = serde_json::from_str(&request(&text, &resource, UNIX_EPOCH)).unwrap();
        let all = &json["resourceMetrics"][0];
        assert_eq!(
            all["resource"]["attributes"][0],
            json!({ "key": "service.name", "value": { "stringValue": "s" } })
        );
        let metrics = &all["scopeMetrics"][0]["metrics"];
        let sum = &metrics[0]["sum"];
        assert_eq!(metrics[0]["name"], "calls");
        assert_eq!(sum["isMonotonic"], true);
        assert_eq!(sum["dataPoints"][0]["asInt"], "5");
        assert_eq!(sum["dataPoints"][0]["startTimeUnixNano"], "0");
        assert_eq!(metrics[1]["gauge"]["dataPoints"][0]["asDouble"], 0.5);
        assert_eq!(metrics[2]["unit"], "s");
        let mut point = metrics[2]["histogram"]["dataPoints"][0].clone();
        point
            .as_object_mut()
            .unwrap()
            .retain(|key, _| !key.to_lowercase().contains("time"));
        assert_eq!(
            point,
            json!({
                "attributes": [{ "key": "server", "value": { "stringValue": "a" } }],
                "explicitBounds": [0.1], "bucketCounts": ["2", "1"], "sum": 1.5, "count": "3",
            })
        );
    }
}
