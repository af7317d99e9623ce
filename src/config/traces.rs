//! The destinations of traces and metrics, from the variables of OpenTelemetry and from `otlp` in the file.
//!
//! The variables are those of its specification ("Environment Variable Specification" and "OpenTelemetry Protocol
//! Exporter"). They are often set for another program, such as a client that starts us. So a value that cannot be
//! meant for us, such as a collector that needs gRPC, is not a fault: it leaves traces off.

use std::collections::BTreeMap;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use super::env::{self, Environment, Variable};
use super::error::{ConfigWarning, EntryError};
use super::reader::{At, Read};
use super::sections::OtlpEntry;
use super::server::{Resolver, is_url};
use super::{Network, simple_setting};
use crate::secret::Secret;

/// A kind of data that a collector takes, and the variables for that kind alone.
#[derive(Debug)]
struct Signal {
    /// The path after a collector's address.
    path: &'static str,
    endpoint: Variable,
    headers: Variable,
    protocol: Variable,
    timeout: Variable,
}

const TRACES: Signal = Signal {
    path: "/v1/traces",
    endpoint: env::OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    headers: env::OTEL_EXPORTER_OTLP_TRACES_HEADERS,
    protocol: env::OTEL_EXPORTER_OTLP_TRACES_PROTOCOL,
    timeout: env::OTEL_EXPORTER_OTLP_TRACES_TIMEOUT,
};

const METRICS: Signal = Signal {
    path: "/v1/metrics",
    endpoint: env::OTEL_EXPORTER_OTLP_METRICS_ENDPOINT,
    headers: env::OTEL_EXPORTER_OTLP_METRICS_HEADERS,
    protocol: env::OTEL_EXPORTER_OTLP_METRICS_PROTOCOL,
    timeout: env::OTEL_EXPORTER_OTLP_METRICS_TIMEOUT,
};

const LOGS: Signal = Signal {
    path: "/v1/logs",
    endpoint: env::OTEL_EXPORTER_OTLP_LOGS_ENDPOINT,
    headers: env::OTEL_EXPORTER_OTLP_LOGS_HEADERS,
    protocol: env::OTEL_EXPORTER_OTLP_LOGS_PROTOCOL,
    timeout: env::OTEL_EXPORTER_OTLP_LOGS_TIMEOUT,
};

/// The default service name.
const SERVICE: &str = "mcpzip";

const TIMEOUT: Duration = Duration::from_secs(10);
const DELAY: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_secs(60);
const QUEUE: usize = 2048;
const BATCH: usize = 512;

const URL_EXPECTED: &str = "a URL with `http://` or `https://`";

/// The destination of one signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collector {
    /// The URL that it is posted to.
    pub endpoint: String,
    /// Sent with each request.
    pub headers: BTreeMap<String, Secret<String>>,
    /// The attributes of the process, its name (`service.name`) among them.
    pub resource: BTreeMap<String, String>,
    /// How long the collector has for an answer.
    pub timeout: Duration,
    /// By which proxies the collector is reached.
    pub network: Network,
}

/// The destination of metrics, and the interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MetricsExport {
    /// The collector.
    pub collector: Collector,
    /// The time between two exports.
    pub interval: Duration,
}

/// The destination of traces, and which are sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Traces {
    /// The collector.
    pub collector: Collector,
    /// Which traces are recorded.
    pub sampler: Sampler,
    /// How long spans wait for others.
    pub delay: Duration,
    /// The number of waiting spans; more are dropped.
    pub queue: usize,
    /// The number of spans in a batch.
    pub batch: usize,
}

/// The destinations of all signals; `None` unless a collector is named.
#[derive(Debug, Default)]
pub(super) struct Otlp {
    pub(super) traces: Option<Traces>,
    pub(super) metrics: Option<MetricsExport>,
    /// For the audit log, if that goes there.
    pub(super) logs: Option<Collector>,
}

/// The choice of traces that are recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampler {
    /// Whether the sampled flag of a parent decides for traces that another process began.
    pub follows_parent: bool,
    /// The share of all other traces, from 0 to 1.
    pub share: f64,
}

impl Sampler {
    const ALWAYS: Self = Self {
        follows_parent: true,
        share: 1.0,
    };

    /// Parses `OTEL_TRACES_SAMPLER` and its argument.
    fn parse(name: &str, argument: Option<&str>) -> Option<Self> {
        let share = || match argument {
            None => Some(1.0),
            Some(text) => text
                .parse()
                .ok()
                .filter(|share| (0.0..=1.0).contains(share)),
        };
        let (follows_parent, kind) = name
            .strip_prefix("parentbased_")
            .map_or((false, name), |kind| (true, kind));
        let share = match kind {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => share()?,
            _ => return None,
        };
        Some(Self {
            follows_parent,
            share,
        })
    }
}

impl Resolver<'_> {
    /// The settings of traces, metrics and logs. Variables take precedence over the file.
    pub(super) fn otlp(&mut self, read: Read<OtlpEntry>) -> Otlp {
        let written = self
            .report
            .value(read, "traces and metrics go nowhere")
            .flatten();
        let environment = self.environment;
        let is_disabled = set(environment, env::OTEL_SDK_DISABLED)
            .is_some_and(|text| text.eq_ignore_ascii_case("true"));
        if is_disabled {
            return Otlp::default();
        }
        let mut entry = written.unwrap_or_default();
        let has_metrics = simple_setting(
            std::mem::replace(&mut entry.metrics, Ok(None)),
            false,
            self.report,
        );
        let percent = simple_setting(
            std::mem::replace(&mut entry.sample_percent, Ok(None)),
            100,
            self.report,
        );
        let common = self.common(entry);
        let traces = is_exported(environment, env::OTEL_TRACES_EXPORTER, true)
            .then(|| self.collector(&TRACES, &common))
            .flatten();
        let metrics = is_exported(environment, env::OTEL_METRICS_EXPORTER, has_metrics)
            .then(|| self.collector(&METRICS, &common))
            .flatten();
        let logs = is_exported(environment, env::OTEL_LOGS_EXPORTER, true)
            .then(|| self.collector(&LOGS, &common))
            .flatten();
        #[expect(clippy::cast_precision_loss, reason = "it is at most 100")]
        let own = Sampler {
            share: percent as f64 / 100.0,
            ..Sampler::ALWAYS
        };
        let traces = traces.map(|collector| Traces {
            collector,
            sampler: self.sampler().unwrap_or(own),
            delay: milliseconds(environment, env::OTEL_BSP_SCHEDULE_DELAY).unwrap_or(DELAY),
            queue: QUEUE,
            batch: BATCH,
        });
        let metrics = metrics.map(|collector| MetricsExport {
            collector,
            interval: milliseconds(environment, env::OTEL_METRIC_EXPORT_INTERVAL)
                .unwrap_or(INTERVAL),
        });
        Otlp {
            traces,
            metrics,
            logs,
        }
    }

    /// The settings for all signals, of the file and the variables; the endpoint is the file's, without an added path.
    fn common(&mut self, entry: OtlpEntry) -> Collector {
        let environment = self.environment;
        let variable = |variable: Variable| set(environment, variable);
        let endpoint = entry
            .endpoint
            .and_then(|written| self.otlp_endpoint(&written));
        let headers = entry.headers.and_then(|texts| {
            self.report
                .value(self.trace_headers(texts), "no headers are sent")
        });
        let mut resource: BTreeMap<String, String> =
            pairs(variable(env::OTEL_RESOURCE_ATTRIBUTES).unwrap_or_default()).collect();
        let service = variable(env::OTEL_SERVICE_NAME)
            .map(str::to_owned)
            .or(entry.service_name.map(|at| at.value));
        match service {
            Some(service) => _ = resource.insert("service.name".to_owned(), service),
            None => {
                _ = resource
                    .entry("service.name".to_owned())
                    .or_insert_with(|| SERVICE.to_owned());
            }
        }
        Collector {
            endpoint: endpoint.unwrap_or_default(),
            headers: headers.unwrap_or_default(),
            resource,
            timeout: milliseconds(environment, env::OTEL_EXPORTER_OTLP_TIMEOUT).unwrap_or(TIMEOUT),
            network: Network::of(environment),
        }
    }

    /// The collector of one signal, if one is named.
    fn collector(&mut self, signal: &Signal, common: &Collector) -> Option<Collector> {
        let environment = self.environment;
        let own =
            (!common.endpoint.is_empty()).then(|| format!("{}{}", common.endpoint, signal.path));
        let endpoint = self.named_endpoint(signal).or(own)?;
        let mut collector = Collector {
            endpoint,
            ..common.clone()
        };
        for variable in [env::OTEL_EXPORTER_OTLP_HEADERS, signal.headers] {
            let text = set(environment, variable).unwrap_or_default();
            let headers = pairs(text).map(|(name, value)| (name, Secret::new(value)));
            collector.headers.extend(headers);
        }
        self.secrets.extend(collector.headers.values().cloned());
        if let Some(timeout) = milliseconds(environment, signal.timeout) {
            collector.timeout = timeout;
        }
        Some(collector)
    }

    /// The endpoint that a variable names, if it is meant for our protocol.
    fn named_endpoint(&self, signal: &Signal) -> Option<String> {
        let variable = |variable: Variable| set(self.environment, variable);
        let protocol =
            variable(signal.protocol).or_else(|| variable(env::OTEL_EXPORTER_OTLP_PROTOCOL));
        if protocol == Some("grpc") {
            return None;
        }
        let (named, url) = match variable(signal.endpoint) {
            Some(url) => (signal.endpoint, url.to_owned()),
            None => {
                let base = variable(env::OTEL_EXPORTER_OTLP_ENDPOINT)?;
                (
                    env::OTEL_EXPORTER_OTLP_ENDPOINT,
                    format!("{}{}", base.trim_end_matches('/'), signal.path),
                )
            }
        };
        if is_url(&url, &["http", "https"]) {
            return Some(url);
        }
        self.report.add(
            0,
            ConfigWarning::Variable {
                name: named.name,
                expected: URL_EXPECTED,
                used: "none".to_owned(),
            },
        );
        None
    }

    fn otlp_endpoint(&mut self, written: &At<String>) -> Option<String> {
        let filled = self.plain("otlp.endpoint", written).and_then(|url| {
            let url = url.trim().trim_end_matches('/').to_owned();
            let unusable = || {
                EntryError::value(
                    "otlp.endpoint",
                    URL_EXPECTED,
                    format!("`\"{}\"`", written.value),
                )
            };
            if is_url(&url, &["http", "https"]) {
                Ok(url)
            } else {
                Err(At::new(written.offset, unusable()))
            }
        });
        self.report.value(filled, "traces and metrics go nowhere")
    }

    fn trace_headers(
        &mut self,
        texts: BTreeMap<String, At<String>>,
    ) -> Result<BTreeMap<String, Secret<String>>, At<EntryError>> {
        let filled = texts.into_iter().map(|(name, written)| {
            let value = self.plain(&format!("otlp.headers.{name}"), &written)?;
            Ok((name, Secret::new(value)))
        });
        filled.collect()
    }

    fn sampler(&self) -> Option<Sampler> {
        let name = set(self.environment, env::OTEL_TRACES_SAMPLER)?;
        let sampler = Sampler::parse(name, set(self.environment, env::OTEL_TRACES_SAMPLER_ARG));
        if sampler.is_none() {
            let expected = "`always_on`, `always_off` or `traceidratio`, with or without `parentbased_`, and its argument from 0 to 1";
            let name = env::OTEL_TRACES_SAMPLER.name;
            self.report.add(
                0,
                ConfigWarning::Variable {
                    name,
                    expected,
                    used: "parentbased_always_on".to_owned(),
                },
            );
        }
        sampler
    }
}

/// Whether a signal is to be sent as OTLP; `default` is the answer where the variable says nothing.
fn is_exported(environment: &Environment, variable: Variable, default: bool) -> bool {
    set(environment, variable).map_or(default, |exporters| {
        exporters
            .split(',')
            .any(|exporter| exporter.trim() == "otlp")
    })
}

/// A variable with a value; an empty one counts as unset (general requirements of the specification).
fn set(environment: &Environment, variable: Variable) -> Option<&str> {
    environment
        .get(variable.name)
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

fn milliseconds(environment: &Environment, variable: Variable) -> Option<Duration> {
    set(environment, variable)?
        .parse()
        .ok()
        .filter(|time| *time > 0)
        .map(Duration::from_millis)
}

/// `key=value,key=value`, the values percent-encoded.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split(',').filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((key.trim().to_owned(), value.into_owned())).filter(|(key, _)| !key.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn config(text: &str, variables: &[(&str, &str)]) -> Config {
        let environment = Environment::from_iter(variables.iter().copied());
        Config::parse(text, Path::new("/c.json"), &environment).unwrap()
    }

    fn traces(variables: &[(&str, &str)]) -> Option<Traces> {
        config(r#"{"mcpServers":{}}"#, variables).traces
    }

    #[test]
    fn traces_go_nowhere_until_a_collector_is_named() {
        assert_eq!(traces(&[]), None);
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");
        assert_eq!(
            traces(&[base]).unwrap().collector.endpoint,
            "http://collector:4318/v1/traces"
        );
        let own = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://collector/own");
        assert_eq!(
            traces(&[base, own]).unwrap().collector.endpoint,
            "http://collector/own"
        );
        for off in [
            ("OTEL_SDK_DISABLED", "TRUE"),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc"),
        ] {
            assert_eq!(traces(&[base, off]), None, "{off:?}");
        }
        assert!(traces(&[base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]).is_some());
        let odd = config(
            r#"{"mcpServers":{}}"#,
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")],
        );
        assert!(
            odd.traces.is_none()
                && odd.warnings[0]
                    .to_string()
                    .contains("OTEL_EXPORTER_OTLP_ENDPOINT")
        );
    }

    #[test]
    fn the_file_says_where_and_variables_go_before_it() {
        let text = r#"{"mcpServers":{},"otlp":{"endpoint":"https://c/","headers":{"x-key":"${K}"},"service_name":"s","sample_percent":25}}"#;
        let own = config(text, &[("K", "secret-key")]);
        let traces = own.traces.unwrap();
        assert_eq!(
            (
                traces.collector.endpoint.as_str(),
                traces.collector.headers["x-key"].expose().as_str()
            ),
            ("https://c/v1/traces", "secret-key")
        );
        assert_eq!(
            (
                traces.collector.resource["service.name"].as_str(),
                traces.sampler.share
            ),
            ("s", 0.25)
        );
        assert_eq!(own.masker.mask("secret-key"), "***");
        let variables = [
            ("K", "secret-key"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://d"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b, y = c"),
            ("OTEL_SERVICE_NAME", "other"),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "deployment.environment=test,service.name=third",
            ),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
        ];
        let traces = config(text, &variables).traces.unwrap();
        let headers: Vec<_> = traces
            .collector
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.expose().as_str()))
            .collect();
        assert_eq!(
            (traces.collector.endpoint.as_str(), headers),
            ("http://d/v1/traces", vec![("x-key", "a b"), ("y", "c")])
        );
        assert_eq!(traces.collector.resource["deployment.environment"], "test");
        assert_eq!(
            (
                traces.collector.resource["service.name"].as_str(),
                traces.collector.timeout
            ),
            ("other", Duration::from_millis(250))
        );
        assert_eq!(
            traces.sampler,
            Sampler {
                follows_parent: false,
                share: 0.5
            }
        );
    }

    #[test]
    fn metrics_go_nowhere_until_they_are_asked_for() {
        let text = r#"{"mcpServers":{},"otlp":{"endpoint":"https://c/","metrics":true}}"#;
        let metrics = |text: &str, variables: &[(&str, &str)]| {
            config(text, variables)
                .metrics_export
                .map(|metrics| metrics.collector.endpoint)
        };
        assert_eq!(metrics(text, &[]).as_deref(), Some("https://c/v1/metrics"));
        let plain = text.replace(",\"metrics\":true", "");
        assert_eq!(metrics(&plain, &[]), None);
        let asked = ("OTEL_METRICS_EXPORTER", "otlp");
        let named = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://d/m");
        assert_eq!(
            metrics(&plain, &[asked, named]).as_deref(),
            Some("http://d/m")
        );
        for off in [
            ("OTEL_METRICS_EXPORTER", "none"),
            ("OTEL_SDK_DISABLED", "true"),
        ] {
            assert_eq!(metrics(text, &[off]), None, "{off:?}");
        }
        let only = config(text, &[("OTEL_TRACES_EXPORTER", "none")]);
        assert!(only.traces.is_none() && only.metrics_export.is_some());
    }

    #[test]
    fn samplers_have_the_names_of_the_specification() {
        let parsed = |name, argument| {
            Sampler::parse(name, argument).map(|sampler| (sampler.follows_parent, sampler.share))
        };
        assert_eq!(parsed("parentbased_always_on", None), Some((true, 1.0)));
        assert_eq!(parsed("always_off", Some("1")), Some((false, 0.0)));
        assert_eq!(
            parsed("parentbased_traceidratio", Some("0.1")),
            Some((true, 0.1))
        );
        assert_eq!(parsed("traceidratio", Some("2")), None);
        assert_eq!(parsed("jaeger_remote", None), None);
    }
}
