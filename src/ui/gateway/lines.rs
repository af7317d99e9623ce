//! The audit log, as a person at a gateway may read it.
//!
//! The log may be large, so it is read off the threads that serve clients: one reading of a person at a time, and few of all. A reading
//! counts or keeps a limited number of lines, however many there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::macros::format_description;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Gateway;
use super::acts::{seen, text};
use crate::audit::{Directories, Filter, Line, Reader};
use crate::config::BUILT_IN_SERVER;
use crate::day::{Day, since};
use crate::downstream::http::Visit;

/// The most lines of one answer.
const MOST_LINES: usize = 20_000;

/// The most readings at one time.
const MOST_READINGS: usize = 2;

/// The days that are counted, if not told otherwise.
const DAYS: u32 = 30;

/// The readings of the log.
#[derive(Debug)]
pub(super) struct Readings {
    all: Arc<Semaphore>,
    /// The turns of each identity.
    own: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// Gives the lines of a reading away, one by one.
type Reading<'r> = dyn Fn(&mut dyn FnMut(Line)) -> Result<(), String> + 'r;

/// The turn of a reading.
type Turn = (OwnedSemaphorePermit, OwnedSemaphorePermit);

impl Default for Readings {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MOST_READINGS)),
            own: Mutex::default(),
        }
    }
}

impl Readings {
    /// Waits until the identity may read. Others wait for two readings of it at most.
    async fn turn(&self, identity: &str) -> Option<Turn> {
        let own = {
            let mut own = self.own.lock();
            own.retain(|_, turns| Arc::strong_count(turns) > 1);
            let turns = own.entry(identity.to_owned());
            turns.or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
        };
        let own = own.acquire_owned().await.ok()?;
        Some((own, self.all.clone().acquire_owned().await.ok()?))
    }
}

/// The lines that a person may see.
struct Scope {
    /// The identity; `None` shows those of all people, for one who manages the gateway. Lines without one are of the machine's own user.
    identity: Option<String>,
    /// The servers that the person has.
    servers: BTreeSet<String>,
    /// The profile that the credential is limited to.
    limit: Option<String>,
    /// The time of the first line, as the log has it.
    since: Option<String>,
}

impl Scope {
    fn of(visit: &Visit) -> Result<Self, String> {
        let config = seen(visit)?.unscoped().config();
        let entitlement = visit.entitlement();
        let own = (!visit.manages()).then(|| entitlement.identity.clone());
        let since = own.is_some().then(|| visit.since()).flatten();
        Ok(Self {
            identity: own,
            servers: config.servers.keys().map(ToString::to_string).collect(),
            limit: entitlement.limit.clone(),
            since: since.map(time),
        })
    }

    fn shows(&self, line: &Line) -> bool {
        let is_theirs = match &self.identity {
            Some(own) => line.identity == *own,
            None => !line.identity.is_empty(),
        };
        let server = line.server.as_str();
        let is_there =
            server.is_empty() || server == BUILT_IN_SERVER || self.servers.contains(server);
        let is_within = |limit: &String| line.profile.split(", ").any(|name| name == limit);
        is_theirs
            && is_there
            && self.limit.as_ref().is_none_or(is_within)
            && self.since.as_ref().is_none_or(|since| line.time >= *since)
    }
}

/// A time in UTC, as lines begin theirs.
fn time(seconds: u64) -> String {
    let form = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]");
    let time = i64::try_from(seconds).ok();
    let time = time.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    let text = time.and_then(|time| time.format(form).ok());
    // After every line.
    text.unwrap_or_else(|| "~".to_owned())
}

/// The newest lines of those that come, at most so many.
struct Newest {
    most: usize,
    lines: Vec<Line>,
}

impl Newest {
    fn add(&mut self, line: Line) {
        self.lines.push(line);
        if self.lines.len() >= self.most.saturating_mul(2).max(64) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.lines.sort_by(|one, other| one.time.cmp(&other.time));
        let over = self.lines.len().saturating_sub(self.most);
        self.lines.drain(..over);
    }
}

impl Gateway {
    /// The lines of the audit log that the person may see.
    pub(super) async fn audit(
        &self,
        visit: &Visit,
        arguments: &Map<String, Value>,
    ) -> Result<Value, String> {
        let limit = arguments.get("limit").and_then(Value::as_u64);
        let limit = limit.and_then(|limit| usize::try_from(limit).ok());
        let mut newest = Newest {
            most: limit.unwrap_or(MOST_LINES).min(MOST_LINES),
            lines: Vec::new(),
        };
        self.read(visit, arguments, Day::today(), move |read| {
            read(&mut |line| newest.add(line))?;
            newest.cut();
            let lines = newest.lines.iter().map(|line| {
                let mut line: Value = serde_json::from_str(&line.raw).unwrap_or_default();
                // The place of the line among those of others is nothing of the person.
                if let Some(members) = line.as_object_mut() {
                    members.retain(|name, _| !matches!(name.as_str(), "n" | "prev" | "hash"));
                }
                line
            });
            Ok(lines.collect())
        })
        .await
    }

    /// The person's own calls by tool, from their lines of the audit log.
    pub(super) async fn stats(
        &self,
        visit: &Visit,
        arguments: &Map<String, Value>,
    ) -> Result<Value, String> {
        let first = Day::today().minus(DAYS - 1);
        self.read(visit, arguments, first, |read| {
            let mut tools: BTreeMap<(String, String), Tally> = BTreeMap::new();
            read(&mut |line| {
                if line.kind == "call" {
                    tools.entry((line.server, line.tool)).or_default().add(
                        &line.outcome,
                        (line.sent, line.received),
                        line.ms,
                    );
                }
            })?;
            let rows = tools.into_iter().map(|((server, tool), mut tally)| {
                tally.times.sort_by(f64::total_cmp);
                json!({
                    "server": server,
                    "tool": tool,
                    "calls": tally.calls,
                    "errors": tally.errors,
                    "p50_ms": tally.quantile(50),
                    "p95_ms": tally.quantile(95),
                    "sent_bytes": tally.sent,
                    "received_bytes": tally.received,
                })
            });
            Ok(json!({ "tools": rows.collect::<Vec<_>>() }))
        })
        .await
    }

    /// Reads the lines from the day `first` on, if the arguments have no other. `work` gets the reading, and gives each line away at once.
    async fn read(
        &self,
        visit: &Visit,
        arguments: &Map<String, Value>,
        first: Day,
        work: impl FnOnce(&Reading<'_>) -> Result<Value, String> + Send + 'static,
    ) -> Result<Value, String> {
        let chains = Directories::below(&self.state.directory).chains;
        if !chains.exists() {
            return Err("there is no audit log: the gateway writes none".to_owned());
        }
        let scope = Scope::of(visit)?;
        let filter = filter(arguments, first, scope.identity.clone())?;
        let turn = self.readings.turn(&visit.entitlement().identity).await;
        let reading = move || {
            let _turn = turn;
            work(&|take: &mut dyn FnMut(Line)| read(&chains, filter.clone(), &scope, take))
        };
        let ended = visit.blocking(reading).await;
        ended.ok_or_else(|| "the gateway is ending".to_owned())?
    }
}

fn read(
    chains: &Path,
    filter: Filter,
    scope: &Scope,
    take: &mut dyn FnMut(Line),
) -> Result<(), String> {
    let read = Reader::new(chains, filter).each(|line| {
        if scope.shows(&line) {
            take(line);
        }
    });
    read.map_err(|error| format!("the audit log cannot be read: {error}"))
}

/// The selection that a person has asked for, among the lines of `own` if that is one identity.
fn filter(
    arguments: &Map<String, Value>,
    first: Day,
    own: Option<String>,
) -> Result<Filter, String> {
    let given = |name: &str| Some(text(arguments, name)).filter(|text| !text.is_empty());
    let is_set = |name: &str| arguments.get(name).and_then(Value::as_bool) == Some(true);
    let day = given("since").map(|text| since(&text)).transpose()?;
    Ok(Filter {
        server: given("server"),
        tool: given("tool"),
        client: given("client"),
        user: own.or_else(|| given("user")),
        kind: given("kind"),
        denied: is_set("denied"),
        errors: is_set("errors"),
        since: Some(day.unwrap_or(first)),
    })
}

/// The calls of one tool.
#[derive(Default)]
struct Tally {
    calls: u64,
    errors: u64,
    sent: u64,
    received: u64,
    /// In milliseconds, sorted at the end.
    times: Vec<f64>,
}

impl Tally {
    fn add(
        &mut self,
        outcome: &str,
        (sent, received): (Option<u64>, Option<u64>),
        ms: Option<f64>,
    ) {
        self.calls += 1;
        self.errors += u64::from(outcome != "ok");
        self.sent += sent.unwrap_or(0);
        self.received += received.unwrap_or(0);
        self.times.extend(ms);
    }

    fn quantile(&self, percent: usize) -> Option<f64> {
        let at = (self.times.len() * percent).div_ceil(100);
        self.times.get(at.saturating_sub(1)).copied()
    }
}
