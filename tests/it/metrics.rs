//! What `/metrics` says, who is told, and that all of it is as Prometheus reads it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::gateway::Gateway;
use crate::support::http::HttpServer;
use crate::support::script::{answer, error, exit, hang, result};
use crate::support::{Server, Setup, until};

/// A family of samples.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    /// By name and labels, as they are written.
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

type Families = BTreeMap<String, Family>;

fn is_name(text: &str) -> bool {
    let is_start = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(is_start) && text.chars().all(|c| is_start(c) || c.is_ascii_digit())
}

/// The labels of `name="value",…`, of which each is read to its end.
fn labels(mut text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    while !text.is_empty() {
        let (name, rest) = text
            .split_once("=\"")
            .unwrap_or_else(|| panic!("no label: {text:?}"));
        assert!(is_name(name), "{name:?}");
        let (mut value, mut characters) = (String::new(), rest.char_indices());
        let end = loop {
            match characters
                .next()
                .unwrap_or_else(|| panic!("a value without an end: {rest:?}"))
            {
                (at, '"') => break at,
                (_, '\\') => match characters.next() {
                    Some((_, 'n')) => value.push('\n'),
                    Some((_, c @ ('\\' | '"'))) => value.push(c),
                    other => panic!("an odd escape: {other:?}"),
                },
                (_, c) => value.push(c),
            }
        };
        assert!(
            labels.insert(name.to_owned(), value).is_none(),
            "{name} twice"
        );
        text = &rest[end + 1..];
        text = text.strip_prefix(',').unwrap_or_else(|| {
            assert!(text.is_empty(), "behind a label: {text:?}");
            text
        });
    }
    labels
}

/// Reads the text format 0.0.4, and nothing that only looks like it.
fn parse(text: &str) -> Families {
    assert!(text.ends_with('\n'), "the last line has no end");
    let mut families = Families::new();
    let (mut current, mut helped) = (String::new(), None);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("a family has a help");
            assert!(is_name(name) && !help.is_empty(), "{line}");
            helped = Some(name.to_owned());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a family has a type");
            assert_eq!(helped.take().as_deref(), Some(name), "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let family = Family {
                kind: kind.to_owned(),
                samples: Vec::new(),
            };
            assert!(
                families.insert(name.to_owned(), family).is_none(),
                "{name} twice"
            );
            current = name.to_owned();
        } else {
            assert!(
                !line.starts_with('#') && !line.is_empty() && helped.is_none(),
                "{line:?}"
            );
            let (series, value) = line.rsplit_once(' ').expect("a sample has a value");
            let (name, labelled) = match series.split_once('{') {
                None => (series, BTreeMap::new()),
                Some((name, rest)) => (name, labels(rest.strip_suffix('}').expect("labels end"))),
            };
            let family = families
                .get_mut(&current)
                .expect("a sample stands in a family");
            let part = name
                .strip_prefix(&current)
                .unwrap_or_else(|| panic!("{name} in {current}"));
            let parts: &[&str] = if family.kind == "histogram" {
                &["_bucket", "_sum", "_count"]
            } else {
                &[""]
            };
            assert!(parts.contains(&part), "{line}");
            assert!(
                !family
                    .samples
                    .iter()
                    .any(|(n, l, _)| n == name && *l == labelled),
                "twice: {line}"
            );
            let value: f64 = value
                .parse()
                .unwrap_or_else(|_| panic!("no number: {line}"));
            assert!(value >= 0.0 && value.is_finite(), "{line}");
            family.samples.push((name.to_owned(), labelled, value));
        }
    }
    for (name, family) in &families {
        assert_eq!(family.kind == "counter", name.ends_with("_total"), "{name}");
        if family.kind == "histogram" {
            check_histogram(name, family);
        }
    }
    families
}

/// Buckets are cumulative, in order, and the last has all.
fn check_histogram(name: &str, family: &Family) {
    let servers: BTreeSet<_> = family
        .samples
        .iter()
        .map(|(_, labels, _)| labels["server"].clone())
        .collect();
    for server in servers {
        let of = |part: &str| -> Vec<_> {
            let name = format!("{name}{part}");
            family
                .samples
                .iter()
                .filter(|(n, l, _)| *n == name && l["server"] == server)
                .collect()
        };
        let buckets: Vec<(f64, f64)> = of("_bucket")
            .iter()
            .map(|(_, l, v)| (l["le"].parse().unwrap(), *v))
            .collect();
        assert!(
            buckets.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1),
            "{buckets:?}"
        );
        let (bound, all) = *buckets.last().expect("there are buckets");
        assert!(bound.is_infinite(), "{buckets:?}");
        assert_eq!(
            (of("_count").len(), of("_sum").len()),
            (1, 1),
            "{name} of {server}"
        );
        assert_eq!(of("_count")[0].2, all, "{name} of {server}");
    }
}

fn scrape(gateway: &Gateway) -> Families {
    let answer = gateway.call("GET", "/metrics").send();
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "text/plain; version=0.0.4; charset=utf-8")
    );
    parse(&answer.body)
}

/// The number of calls of server `a` that succeeded.
#[track_caller]
fn good_calls(families: &Families) -> f64 {
    let labels = [("server", "a"), ("outcome", "ok")];
    value(families, "mcpzip_calls_total", &labels)
}

/// The value of the one sample of `name` with these labels, and no others.
#[track_caller]
fn value(families: &Families, name: &str, labels: &[(&str, &str)]) -> f64 {
    let family = name
        .trim_end_matches("_count")
        .trim_end_matches("_sum")
        .to_owned();
    let family = families
        .get(name)
        .or_else(|| families.get(&family))
        .unwrap_or_else(|| panic!("no {name}"));
    let wanted: BTreeMap<String, String> = labels
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let found = family
        .samples
        .iter()
        .find(|(known, own, _)| known == name && *own == wanted);
    found
        .unwrap_or_else(|| panic!("no {name} {labels:?} in {family:?}"))
        .2
}

fn setup() -> Setup {
    let server = Server::new()
        .tool("fine", [answer("done")])
        .tool("fails", [result(r#"{"content":[],"isError":true}"#)])
        .tool("refuses", [error(r#"{"code":-32000,"message":"no"}"#)])
        .tool("hangs", [hang()]);
    Setup::new()
        .server("a", server)
        .server("dead", Server::new().at_start([exit(3)]))
        .setting("http", json!({ "metrics": true }))
}

#[test]
fn figures_are_what_happened_and_as_prometheus_reads_them() {
    let setup = setup();
    let gateway = setup.serve(&[]);
    let session = gateway.session();
    for (id, tool) in ["a__fine", "a__fine", "a__fails", "a__refuses", "dead__t"]
        .into_iter()
        .enumerate()
    {
        session.execute(id as u64, tool, "").send();
    }
    let search = r#"{"name":"search_tools","arguments":{"query":"fine"}}"#;
    for id in [10, 11] {
        session.request(id, "tools/call", search).send();
    }
    let waiting = session.execute(20, "a__hangs", "").begin();
    let all = until("the call under way", || {
        let all = scrape(&gateway);
        (value(&all, "mcpzip_calls_in_flight", &[("server", "a")]) > 0.0).then_some(all)
    });
    let calls = |outcome| {
        value(
            &all,
            "mcpzip_calls_total",
            &[("server", "a"), ("outcome", outcome)],
        )
    };
    let outcomes = [
        "ok",
        "tool_error",
        "refused",
        "timeout",
        "unavailable",
        "cancelled",
    ];
    assert_eq!(outcomes.map(calls), [2.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(
        value(
            &all,
            "mcpzip_call_duration_seconds_count",
            &[("server", "a")]
        ),
        4.0
    );
    assert!(value(&all, "mcpzip_call_duration_seconds_sum", &[("server", "a")]) > 0.0);
    assert!(value(&all, "mcpzip_received_bytes_total", &[("server", "a")]) > 50.0);
    assert!(value(&all, "mcpzip_sent_bytes_total", &[("server", "a")]) > 0.0);
    assert_eq!(
        value(&all, "mcpzip_connections", &[("state", "ready")]),
        1.0
    );
    assert_eq!(
        value(&all, "mcpzip_server_connected", &[("server", "a")]),
        1.0
    );
    assert_eq!(
        value(&all, "mcpzip_server_connected", &[("server", "dead")]),
        0.0
    );
    assert_eq!(value(&all, "mcpzip_catalog_tools", &[("server", "a")]), 4.0);
    assert_eq!(value(&all, "mcpzip_searches_total", &[]), 2.0);
    assert_eq!(value(&all, "mcpzip_sessions", &[]), 1.0);
    let surfaces = |surface| value(&all, "mcpzip_surfaces_total", &[("surface", surface)]);
    assert_eq!((surfaces("tools"), surfaces("direct")), (1.0, 0.0));
    assert_eq!(
        value(
            &all,
            "mcpzip_build_info",
            &[("version", env!("CARGO_PKG_VERSION"))]
        ),
        1.0
    );
    assert!(value(&all, "process_start_time_seconds", &[]) > 1.6e9);
    if cfg!(target_os = "linux") {
        assert!(value(&all, "process_resident_memory_bytes", &[]) > 1e6);
        assert!(value(&all, "process_open_fds", &[]) > 3.0);
        assert!(value(&all, "process_cpu_seconds_total", &[]) > 0.0);
    }
    // No label says more than which server of the configuration, and words of our own.
    let labels: BTreeSet<_> = all
        .values()
        .flat_map(|family| &family.samples)
        .flat_map(|(_, labels, _)| labels.iter())
        .filter(|(name, _)| !matches!(name.as_str(), "le" | "version"))
        .map(|(_, value)| value.as_str())
        .collect();
    let own = ["ready", "connecting", "idle", "failed", "disabled"]
        .into_iter()
        .chain(outcomes)
        .chain(["allowed", "denied", "unanswered", "withdrawn"])
        .chain(["a", "dead", "shown", "tools", "direct"])
        // The ways to a server in a person's name.
        .chain(["login", "exchange"])
        // The ends of scripts.
        .chain(["answered", "failed", "refused", "cancelled", "asked"]);
    assert!(labels.is_subset(&own.collect()), "{labels:?}");
    drop(waiting);
    session.delete();
    until("the call is given up", || {
        let all = scrape(&gateway);
        let cancelled = value(
            &all,
            "mcpzip_calls_total",
            &[("server", "a"), ("outcome", "cancelled")],
        );
        (cancelled == 1.0 && value(&all, "mcpzip_calls_in_flight", &[("server", "a")]) == 0.0)
            .then_some(())
    });
}

#[test]
fn results_that_are_stored_are_counted() {
    let server = Server::new().tool("long", [answer(&"a long text ".repeat(200))]);
    let setup = Setup::new()
        .server("a", server)
        .setting("results", json!({ "budget": 500 }));
    let gateway = setup.setting("http", json!({ "metrics": true })).serve(&[]);
    gateway.modern_execute("a__long", "").send();
    let all = scrape(&gateway);
    assert_eq!(value(&all, "mcpzip_results_stored_total", &[]), 1.0);
    assert_eq!(good_calls(&all), 1.0);
}

#[test]
fn figures_are_for_whoever_may_speak_to_the_server() {
    let setup = setup().variable("MCPZIP_TOKEN", "s3cret-token");
    let gateway = setup.serve(&[]);
    let call = gateway.call("GET", "/metrics");
    assert_eq!(call.send().status, 401);
    let shown = call.header("Authorization", "Bearer s3cret-token");
    assert_eq!(shown.send().status, 200);
    assert_eq!(
        shown
            .clone()
            .header("Host", "evil.example.com")
            .send()
            .status,
        403
    );
    assert_eq!(
        shown
            .header("Origin", "https://evil.example.com")
            .send()
            .status,
        403
    );
    let posted = gateway
        .call("POST", "/metrics")
        .header("Authorization", "Bearer s3cret-token")
        .send();
    assert_eq!((posted.status, posted.header("allow")), (405, "GET"));
}

#[test]
fn there_are_no_figures_unless_they_are_wanted_and_an_edit_counts_at_once() {
    let server = || Server::new().tool("t", [answer("done")]);
    let setup = Setup::new().server("a", server());
    let gateway = setup.serve(&[]);
    assert_eq!(gateway.call("GET", "/metrics").send().status, 404);
    let setup = setup.setting("http", json!({ "metrics": true }));
    setup.save();
    until("figures", || {
        (gateway.call("GET", "/metrics").send().status == 200).then_some(())
    });
    gateway.modern_execute("a__t", "").send();
    let all = scrape(&gateway);
    assert_eq!(good_calls(&all), 1.0);
}

/// The newest figure of a name that a collector got.
fn exported(collector: &HttpServer, name: &str) -> Option<Value> {
    let requests = collector.requests();
    let newest = requests.iter().rev().find(|r| r.path == "/v1/metrics")?;
    let scope = &newest.body["resourceMetrics"][0]["scopeMetrics"][0];
    let mut metrics = scope["metrics"].as_array()?.iter();
    metrics.find(|metric| metric["name"] == name).cloned()
}

#[test]
fn a_collector_gets_the_figures_over_otlp() {
    let collector = HttpServer::start(|_, reply| reply.json("{}"));
    let setup = Setup::new()
        .server("a", Server::new().tool("t", [answer("done")]))
        .setting(
            "otlp",
            json!({ "endpoint": collector.url(""), "headers": { "x-key": "sesame" }, "metrics": true }),
        )
        .variable("OTEL_TRACES_EXPORTER", "none")
        .variable("OTEL_METRIC_EXPORT_INTERVAL", "100")
        .variable("OTEL_SERVICE_NAME", "mine");
    let mut client = setup.connect();
    assert_eq!(client.execute("a__t").text(), "done");
    let calls = until("the call to be exported", || {
        let calls = exported(&collector, "mcpzip_calls")?;
        let points = calls["sum"]["dataPoints"].as_array()?;
        points.iter().any(|p| p["asInt"] == "1").then_some(calls)
    });
    assert_eq!(calls["sum"]["isMonotonic"], true, "{calls}");
    let times = exported(&collector, "mcpzip_call_duration_seconds").unwrap();
    let point = &times["histogram"]["dataPoints"][0];
    assert_eq!(point["count"], "1", "{times}");
    let counts = point["bucketCounts"].as_array().unwrap();
    let bounds = point["explicitBounds"].as_array().unwrap();
    assert_eq!(counts.len(), bounds.len() + 1, "{times}");
    let request = collector.requests().pop().unwrap();
    assert_eq!(request.header("x-key"), "sesame");
    assert_eq!(request.header("content-type"), "application/json");
    assert!(request.text.contains(r#""stringValue":"mine""#));
    assert!(collector.requests().iter().all(|r| r.path == "/v1/metrics"));
    client.finish();
}

#[test]
fn what_is_counted_last_is_exported_at_the_end() {
    let collector = HttpServer::start(|_, reply| reply.json("{}"));
    let setup = Setup::new()
        .server("a", Server::new().tool("t", [answer("done")]))
        .variable(
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
            &collector.url("/v1/metrics"),
        )
        .variable("OTEL_METRICS_EXPORTER", "otlp");
    let mut client = setup.connect();
    assert_eq!(client.execute("a__t").text(), "done");
    assert!(collector.requests().is_empty());
    client.finish();
    let calls = exported(&collector, "mcpzip_calls").unwrap();
    assert!(calls.to_string().contains(r#""asInt":"1""#), "{calls}");
}
