//! Prometheus metrics, computed on request.
//!
//! Labels are names of servers and of identities, the `for` of limits, and fixed words. Tool names are not labels,
//! because a server can have any number of tools.

mod otlp;
mod process;
mod text;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

use super::answers::Answers;
use super::inventory::Inventory;
use super::relay::Relay;
use super::surfaces::Figures;
use crate::config::BUILT_IN_SERVER;
use crate::limits::Limits;
use crate::scripts;
use crate::statistics::{Answer, BOUNDS, End, Totals, bound};
use crate::tool::ServerName;
use crate::upstream::{ServerState, ServerStatus, person};
use text::{Family, Kind, Text};

pub(crate) use text::CONTENT_TYPE;

/// A metric of the process that the proxy does not know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProcessMetric {
    pub name: &'static str,
    pub help: &'static str,
    /// Whether it only rises.
    pub is_counter: bool,
    pub value: u64,
}

/// The source of further metrics, for a process with several proxies.
pub(crate) trait ProcessMetrics: Send + Sync + std::fmt::Debug {
    /// The current values.
    fn all(&self) -> Vec<ProcessMetric>;
}

/// The proxies of people, who have connections of their own.
pub(crate) trait OfPeople: Send + Sync + std::fmt::Debug {
    /// The states of their connections.
    fn connections(&self) -> Vec<ServerStatus>;
}

/// The sources of the metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(super) inventory: Arc<Inventory>,
    pub(super) relay: Arc<Relay>,
    pub(super) answers: Arc<Answers>,
    pub(super) limits: Arc<Limits>,
    pub(super) surfaces: Arc<Figures>,
    pub(super) scripts: Arc<scripts::Figures>,
    pub(super) people: Arc<person::Figures>,
    pub(super) process: OnceLock<Weak<dyn ProcessMetrics>>,
    pub(super) of_people: OnceLock<Weak<dyn OfPeople>>,
}

impl Metrics {
    /// Adds the metrics of the process. Only the first source counts.
    pub(crate) fn extend(&self, process: Weak<dyn ProcessMetrics>) {
        // A second source would be the same process.
        let _ = self.process.set(process);
    }

    /// All metrics as text: the counters of this process and the current state; `sessions` is the number of clients
    /// with a session. It blocks briefly to read the process's figures from the system.
    #[must_use]
    pub(crate) fn text(&self, sessions: usize) -> String {
        let mut text = Text::default();
        let family = Family::new(
            "mcpzip_sessions",
            Kind::Gauge,
            "Clients with a session over HTTP.",
        );
        text.family(&family).sample(&[], sessions);
        self.write_all(&mut text);
        text.into_string()
    }

    /// All metrics for an OTLP collector, with the process's attributes `resource`. It blocks as [`Metrics::text`]
    /// does.
    #[must_use]
    pub(crate) fn request(&self, resource: &BTreeMap<String, String>) -> String {
        let mut text = Text::default();
        self.write_all(&mut text);
        otlp::request(&text, resource, self.relay.live().since())
    }

    fn write_all(&self, text: &mut Text) {
        let version = env!("CARGO_PKG_VERSION");
        let family = Family::new("mcpzip_build_info", Kind::Gauge, "The running version.");
        text.family(&family).sample(&[("version", version)], 1);
        self.write_connections(text);
        self.calls(text);
        self.answers(text);
        if let Some(tracer) = self.relay.tracer() {
            let family = Family::new(
                "mcpzip_spans_exported_total",
                Kind::Counter,
                "Spans that a collector has accepted.",
            );
            text.family(&family).sample(&[], tracer.exported());
            let family = Family::new(
                "mcpzip_spans_dropped_total",
                Kind::Counter,
                "Spans that could not be sent.",
            );
            text.family(&family).sample(&[], tracer.dropped());
        }
        let further = self.process.get().and_then(Weak::upgrade);
        for metric in further.iter().flat_map(|process| process.all()) {
            let kind = if metric.is_counter {
                Kind::Counter
            } else {
                Kind::Gauge
            };
            text.family(&Family::new(metric.name, kind, metric.help))
                .sample(&[], metric.value);
        }
        let help = "Logins of people at servers on the page of the gateway, and exchanges of their tokens.";
        text.family(&Family::new("mcpzip_identity_total", Kind::Counter, help));
        let people = &self.people;
        for (what, outcome, figure) in [
            ("login", "ok", &people.logins),
            ("login", "failed", &people.failed_logins),
            ("exchange", "ok", &people.exchanges),
            ("exchange", "failed", &people.failed_exchanges),
        ] {
            let figure = figure.load(Ordering::Relaxed);
            text.sample(&[("what", what), ("outcome", outcome)], figure);
        }
        let help = "Clients that got each surface, once a session.";
        text.family(&Family::new("mcpzip_surfaces_total", Kind::Counter, help));
        let figures = &self.surfaces;
        for (surface, figure) in [("tools", &figures.tools), ("direct", &figures.direct)] {
            text.sample(&[("surface", surface)], figure.load(Ordering::Relaxed));
        }
        self.limits(text);
        self.approvals(text);
        self.scripts(text);
        process::write(text, self.relay.live().since());
    }

    /// The requests that a limit has refused, and those of each identity.
    fn limits(&self, text: &mut Text) {
        let help = "Requests that a limit has refused, by the limit's `for` and its number.";
        text.family(&Family::new("mcpzip_limited_total", Kind::Counter, help));
        for ((limit, measure), count) in &self.limits.refused() {
            text.sample(&[("for", limit), ("limit", measure.key())], count);
        }
        let help = "Requests to servers by the identity of their client; those beyond the first hundred are `other`.";
        text.family(&Family::new(
            "mcpzip_identity_calls_total",
            Kind::Counter,
            help,
        ));
        for (identity, count) in &self.limits.by_person() {
            text.sample(&[("identity", identity)], count);
        }
    }

    /// The calls that wait for a person, those that have waited, and the notifications about them.
    fn approvals(&self, text: &mut Text) {
        let asked = &self.relay.asked;
        let help = "Calls that wait for `mcpzip approvals`.";
        let family = Family::new("mcpzip_approvals_pending", Kind::Gauge, help);
        text.family(&family).sample(&[], asked.pending());
        let help = "Calls that waited for `mcpzip approvals`, by their end.";
        text.family(&Family::new("mcpzip_approvals_total", Kind::Counter, help));
        let figures = &asked.figures;
        for (end, figure) in [
            ("allowed", &figures.allowed),
            ("denied", &figures.denied),
            ("unanswered", &figures.unanswered),
            ("withdrawn", &figures.withdrawn),
        ] {
            text.sample(&[("end", end)], figure.load(Ordering::Relaxed));
        }
        let help = "Notifications on the desktop, by their outcome.";
        text.family(&Family::new(
            "mcpzip_notifications_total",
            Kind::Counter,
            help,
        ));
        let notifier = &self.relay.notifier;
        for (outcome, figure) in [("shown", &notifier.shown), ("failed", &notifier.failed)] {
            text.sample(&[("outcome", outcome)], figure.load(Ordering::Relaxed));
        }
    }

    fn scripts(&self, text: &mut Text) {
        let family = Family::new("mcpzip_scripts_running", Kind::Gauge, "Scripts that run.");
        text.family(&family)
            .sample(&[], self.scripts.running.load(Ordering::Relaxed));
        let help = "Scripts of agents, by their end.";
        text.family(&Family::new("mcpzip_scripts_total", Kind::Counter, help));
        for (end, count) in self.scripts.ends() {
            text.sample(&[("end", end)], count);
        }
    }

    /// Also counts the connections of people.
    pub(crate) fn count_people(&self, people: Weak<dyn OfPeople>) {
        // A run has one set of proxies.
        let _ = self.of_people.set(people);
    }

    /// The most that any connection of each configured server has reached: `ready`, else `connecting`, and so on.
    fn states(&self) -> BTreeMap<ServerName, &'static str> {
        let people = self.of_people.get().and_then(Weak::upgrade);
        let people = people.map(|people| people.connections());
        let own = self.inventory.connections().into_iter();
        let mut states: BTreeMap<ServerName, &'static str> = own
            .map(|status| (status.server, word(&status.state)))
            .collect();
        let rank = |word: &str| STATES.iter().position(|state| *state == word);
        for status in people.into_iter().flatten() {
            let reached = word(&status.state);
            if let Some(known) = states.get_mut(&status.server)
                && rank(reached) < rank(known)
            {
                *known = reached;
            }
        }
        states
    }

    /// The number of configured servers in each connection state.
    #[must_use]
    pub(crate) fn connections(&self) -> [(&'static str, usize); 5] {
        let states = self.states();
        STATES.map(|name| {
            let count = states.values().filter(|state| **state == name);
            (name, count.count())
        })
    }

    /// The number of known tools.
    #[must_use]
    pub(crate) fn tool_count(&self) -> usize {
        let snapshot = self.inventory.snapshot();
        let of_servers = snapshot
            .servers()
            .filter(|server| server.name().as_str() != BUILT_IN_SERVER);
        of_servers.map(|server| server.entries().len()).sum()
    }

    fn write_connections(&self, text: &mut Text) {
        let help = "Servers of the configuration by the state of their connection.";
        text.family(&Family::new("mcpzip_connections", Kind::Gauge, help));
        for (name, count) in self.connections() {
            text.sample(&[("state", name)], count);
        }
        let help = "Whether a server is connected.";
        text.family(&Family::new("mcpzip_server_connected", Kind::Gauge, help));
        for (server, state) in &self.states() {
            let is_connected = u8::from(*state == "ready");
            text.sample(&[("server", server.as_str())], is_connected);
        }
        let snapshot = self.inventory.snapshot();
        text.family(&Family::new(
            "mcpzip_catalog_tools",
            Kind::Gauge,
            "Tools that a server is known to have.",
        ));
        for server in snapshot
            .servers()
            .filter(|server| server.name().as_str() != BUILT_IN_SERVER)
        {
            text.sample(
                &[("server", server.name().as_str())],
                server.entries().len(),
            );
        }
    }

    fn calls(&self, text: &mut Text) {
        let configured = self.inventory.connections();
        let mut servers = self.relay.live().servers();
        servers.retain(|name, _| configured.iter().any(|known| known.server.as_str() == name));
        let mut all = |name, kind, help, value: &dyn Fn(&Totals) -> u64| {
            text.family(&Family::new(name, kind, help));
            for (server, totals) in &servers {
                text.sample(&[("server", server)], value(totals));
            }
        };
        let in_flight = "Calls of tools in progress.";
        all(
            "mcpzip_calls_in_flight",
            Kind::Gauge,
            in_flight,
            &|totals| totals.in_flight,
        );
        let sent = "Bytes of arguments that went to a server's tools.";
        all("mcpzip_sent_bytes_total", Kind::Counter, sent, &|totals| {
            totals.sent
        });
        let received = "Bytes of results that came from a server's tools.";
        all(
            "mcpzip_received_bytes_total",
            Kind::Counter,
            received,
            &|totals| totals.received,
        );
        let help = "Calls of tools that have ended, by server and outcome.";
        text.family(&Family::new("mcpzip_calls_total", Kind::Counter, help));
        for (server, totals) in &servers {
            for (end, count) in End::ALL.iter().zip(totals.ends) {
                text.sample(&[("server", server), ("outcome", end.as_str())], count);
            }
        }
        let help = "How long calls of tools took, from sending them to their answer.";
        text.family(&Family::new(
            "mcpzip_call_duration_seconds",
            Kind::Histogram,
            help,
        ));
        for (server, totals) in &servers {
            let mut count = 0;
            for (number, times) in totals.times.iter().enumerate() {
                count += times;
                let bound = (number < BOUNDS).then(|| bound(number).as_secs_f64().to_string());
                let bound = bound.unwrap_or_else(|| "+Inf".to_owned());
                text.part("_bucket", &[("server", server), ("le", &bound)], count);
            }
            text.part("_sum", &[("server", server)], totals.time.as_secs_f64());
            text.part("_count", &[("server", server)], count);
        }
    }

    fn answers(&self, text: &mut Text) {
        let live = self.relay.live();
        let mut one = |name, help, value: u64| {
            text.family(&Family::new(name, Kind::Counter, help))
                .sample(&[], value);
        };
        one(
            "mcpzip_searches_total",
            "Searches of agents that were answered.",
            live.answers(Answer::Search),
        );
        let cached = self.inventory.index().cached.load(Ordering::Relaxed);
        one(
            "mcpzip_search_cache_hits_total",
            "Searches answered from the cache.",
            cached,
        );
        let descriptions = live.answers(Answer::Description);
        one(
            "mcpzip_descriptions_total",
            "Descriptions of tools that agents asked for.",
            descriptions,
        );
        one(
            "mcpzip_results_stored_total",
            "Results that were stored because they were not shown whole.",
            self.answers.results.stored(),
        );
        one(
            "mcpzip_results_read_total",
            "Parts of stored results that agents read.",
            live.answers(Answer::Part),
        );
    }
}

/// The states of connections, the best first.
const STATES: [&str; 5] = ["ready", "connecting", "failed", "idle", "disabled"];

/// The label of a connection state.
fn word(state: &ServerState) -> &'static str {
    match state {
        ServerState::Disabled => "disabled",
        ServerState::Disconnected => "idle",
        ServerState::Connecting => "connecting",
        ServerState::Ready => "ready",
        ServerState::Failed { .. } => "failed",
    }
}
