//! The limits of clients over HTTP, and the use that each client has made of them.
//!
//! A [`Permit`] is the right to one request to a server; it holds the request's places among those in flight. The
//! limit per minute is a bucket that fills evenly, up to one minute's amount, which can be used at once. The counts
//! of days and months are kept in a file (`quotas.rs`).

mod bucket;
mod places;
mod quotas;
mod shared;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::config::{Config, Limit, Measure, Subject};
use crate::shutdown::Tasks;
use crate::store::Records;
use crate::tool::ServerName;
use bucket::Bucket;
use places::{Place, Places};
use quotas::{Period, Quotas};
use shared::{AT_CALLS, Counted, Shares};

/// The most identities that the figures name.
const MOST_PEOPLE: usize = 100;

/// The number of counts that are kept. Above it, unused ones without a quota are dropped.
const MOST: usize = 10_000;

/// The time after which an unused bucket is full again.
const FULL: Duration = Duration::from_secs(60);

/// The longest wait for a place among the requests in flight.
const WAIT: Duration = Duration::from_secs(30);

/// The counts of all limits.
#[derive(Debug)]
pub(crate) struct Limits {
    state: Mutex<State>,
    /// The file of the quotas; `None` keeps them in memory.
    file: Option<PathBuf>,
    /// The store in which replicas count together.
    shared: Option<Arc<dyn Records>>,
    shares: Mutex<Shares>,
    tasks: Tasks,
}

#[derive(Debug, Default)]
struct State {
    counts: HashMap<Key, Counts>,
    /// The quotas' state, once one was asked for.
    quotas: Quotas,
    refused: BTreeMap<(String, Measure), u64>,
    /// The requests to servers of each identity, and of all others.
    people: BTreeMap<String, u64>,
    /// The number of the next request that waits.
    next: u64,
}

/// A limit, and whose it is; `None` stands for all people together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    limit: String,
    who: Option<Arc<str>>,
}

/// The use of one limit.
#[derive(Debug, Default)]
struct Counts {
    requests: Bucket,
    calls: Bucket,
    bytes: Bucket,
    places: Places,
    day: Period,
    month: Period,
    used: Option<Instant>,
}

/// A request to a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The caller's identity; empty for clients without one.
    pub(crate) identity: &'a str,
    pub(crate) server: &'a ServerName,
    /// The tool; empty for prompts, resources and completions.
    pub(crate) tool: &'a str,
}

/// The right to one request to a server, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    limits: Arc<Limits>,
    /// The limits that count its bytes.
    keys: Vec<Key>,
    /// Those among them that replicas count together.
    counted: Vec<Counted>,
    /// Held until the request has ended.
    _places: Vec<Place>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Exceeded {
    /// A limit is used up.
    #[error("the limit of {} is used up", measure.of(*most))]
    Used {
        /// The limit, as written.
        limit: String,
        measure: Measure,
        most: u64,
        retry_after: Duration,
    },
    /// The limits, or what was used of them, are not known.
    #[error(
        "the limits of this server cannot be read; its administrator finds the reason in its log"
    )]
    Unknown,
}

impl Exceeded {
    /// The limit, as written.
    #[must_use]
    pub(crate) fn limit(&self) -> Option<&str> {
        match self {
            Self::Used { limit, .. } => Some(limit),
            Self::Unknown => None,
        }
    }

    /// The time after which it makes sense to try again, in words.
    #[must_use]
    pub(crate) fn later(&self) -> String {
        match self.retry_after() {
            1 => "a second".to_owned(),
            seconds @ ..=120 => format!("{seconds} seconds"),
            seconds @ ..=7200 => format!("{} minutes", seconds.div_ceil(60)),
            seconds @ ..=172_800 => format!("{} hours", seconds.div_ceil(3600)),
            seconds => format!("{} days", seconds.div_ceil(86_400)),
        }
    }

    /// The whole seconds after which it makes sense to try again.
    #[must_use]
    pub(crate) fn retry_after(&self) -> u64 {
        match self {
            Self::Used { retry_after, .. } => retry_after.as_secs_f64().ceil().max(1.0) as u64,
            Self::Unknown => 60,
        }
    }
}

impl Limits {
    /// With the quotas that are kept below `state_dir`, and with calls that replicas count together in `shared`.
    #[must_use]
    pub(crate) fn new(
        state_dir: Option<&Path>,
        shared: Option<Arc<dyn Records>>,
        tasks: Tasks,
    ) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            file: state_dir.map(quotas::file_below),
            shared,
            shares: Mutex::default(),
            tasks,
        })
    }

    /// Counts an HTTP request.
    ///
    /// # Errors
    /// When the caller has had too many.
    pub(crate) async fn admit(
        &self,
        config: &Config,
        subject: &Subject,
        identity: &str,
    ) -> Result<(), Exceeded> {
        let Ok(limits) = &config.limits else {
            return Err(Exceeded::Unknown);
        };
        let measure = Measure::RequestsPerMinute;
        let theirs = limits.iter().filter(|limit| limit.is_about(subject));
        let theirs: Vec<(Key, &Limit)> = theirs
            .filter(|limit| limit.most(measure).is_some())
            .map(|limit| (key(limit, identity), limit))
            .collect();
        if theirs.is_empty() {
            return Ok(());
        }
        self.take_request(&theirs)?;
        self.take_shared(&theirs, &[measure]).await
    }

    /// Counts an HTTP request at this replica.
    fn take_request(&self, theirs: &[(Key, &Limit)]) -> Result<(), Exceeded> {
        let measure = Measure::RequestsPerMinute;
        let (now, mut state) = (Instant::now(), self.state.lock());
        for (key, limit) in theirs {
            let Some(most) = limit.most(measure) else {
                continue;
            };
            let counts = state.counts(key, now);
            if let Some(retry_after) = counts.requests.wait(1.0, most, now) {
                return Err(state.refuse(limit, measure, most, retry_after));
            }
        }
        for (key, _) in theirs {
            state.counts(key, now).requests.take(1.0);
        }
        Ok(())
    }

    /// Waits for a place, and counts a request to a server.
    ///
    /// # Errors
    /// When a limit is used up.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        config: &Config,
        request: Request<'_>,
    ) -> Result<Permit, Exceeded> {
        self.count_person(request.identity);
        let Ok(limits) = &config.limits else {
            return match config.subject {
                Subject::Local => Ok(self.permit()),
                _ => Err(Exceeded::Unknown),
            };
        };
        if limits.is_empty() {
            return Ok(self.permit());
        }
        let written = config.renamed.get(request.server).map(String::as_str);
        let is_about = |limit: &&Limit| {
            limit.is_about(&config.subject)
                && limit.is_about_tool(request.server, written, request.tool)
        };
        let theirs = limits.iter().filter(is_about);
        let theirs: Vec<(Key, &Limit)> = theirs
            .map(|limit| (key(limit, request.identity), limit))
            .collect();
        if theirs.is_empty() {
            return Ok(self.permit());
        }
        if theirs.iter().any(|(_, limit)| limit.has_quota()) {
            self.read_quotas()?;
        }
        self.state.lock().check(&theirs)?;
        let mut permit = self.permit();
        // In the order of the configuration, so that no two requests wait for each other.
        for (key, limit) in &theirs {
            let Some(most) = limit.most(Measure::CallsInFlight) else {
                continue;
            };
            let place = self.place(key, most, request.identity);
            match tokio::time::timeout(WAIT, place).await {
                Ok(place) => permit._places.push(place),
                Err(_) => {
                    let mut state = self.state.lock();
                    let wait = Duration::from_secs(1);
                    return Err(state.refuse(limit, Measure::CallsInFlight, most, wait));
                }
            }
        }
        self.state.lock().check(&theirs)?;
        self.take_shared(&theirs, &AT_CALLS).await?;
        let mut state = self.state.lock();
        let now = Instant::now();
        for (key, limit) in &theirs {
            let counts = state.counts(key, now);
            counts.calls.take(1.0);
            counts.day.calls += 1;
            counts.month.calls += 1;
            state.quotas.is_changed |= limit.has_quota();
        }
        drop(state);
        if self.shared.is_some() {
            permit.counted = shared::counted(&theirs);
        }
        permit.keys = theirs.into_iter().map(|(key, _)| key).collect();
        Ok(permit)
    }

    /// Counts a request to a server of this identity, also one that a limit refuses.
    fn count_person(&self, identity: &str) {
        if identity.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let people = &mut state.people;
        let is_full = people.len() >= MOST_PEOPLE && !people.contains_key(identity);
        let identity = if is_full { "other" } else { identity };
        match people.get_mut(identity) {
            Some(count) => *count += 1,
            None => {
                people.insert(identity.to_owned(), 1);
            }
        }
    }

    /// The requests to servers by identity; those of people beyond the first hundred are together.
    #[must_use]
    pub(crate) fn by_person(&self) -> BTreeMap<String, u64> {
        self.state.lock().people.clone()
    }

    /// How often requests were refused, by limit and measure.
    #[must_use]
    pub(crate) fn refused(&self) -> BTreeMap<(String, Measure), u64> {
        self.state.lock().refused.clone()
    }

    fn permit(self: &Arc<Self>) -> Permit {
        Permit {
            limits: self.clone(),
            keys: Vec::new(),
            counted: Vec::new(),
            _places: Vec::new(),
        }
    }
}

impl Permit {
    /// Counts bytes of the request or of its answer.
    pub(crate) fn count_bytes(&self, bytes: usize) {
        if self.keys.is_empty() {
            return;
        }
        let bytes = bytes as u64;
        let mut state = self.limits.state.lock();
        let now = Instant::now();
        for key in &self.keys {
            let counts = state.counts(key, now);
            counts.bytes.take(bytes as f64);
            counts.day.bytes += bytes;
            counts.month.bytes += bytes;
        }
        state.quotas.is_changed |= state.quotas.is_known;
        drop(state);
        self.limits.count_shared(&self.counted, bytes);
    }
}

impl State {
    fn counts(&mut self, key: &Key, now: Instant) -> &mut Counts {
        if self.counts.len() >= MOST && !self.counts.contains_key(key) {
            self.counts.retain(|_, counts| {
                let is_used = counts.used.is_some_and(|used| now - used < FULL);
                is_used
                    || counts.places.are_used()
                    || counts.day.calls > 0
                    || counts.month.calls > 0
            });
        }
        let counts = self.counts.entry(key.clone()).or_default();
        counts.used = Some(now);
        counts.day.turn(quotas::day());
        counts.month.turn(quotas::month());
        counts
    }

    /// Checks all limits but those of requests in flight, for which a request waits.
    fn check(&mut self, theirs: &[(Key, &Limit)]) -> Result<(), Exceeded> {
        let now = Instant::now();
        for (key, limit) in theirs {
            let counts = self.counts(key, now);
            let day = quotas::until_tomorrow();
            let month = quotas::until_next_month();
            let used = |used: u64, most: u64, left: Duration| (used >= most).then_some(left);
            let exceeded = [
                Measure::CallsPerMinute,
                Measure::BytesPerMinute,
                Measure::CallsPerDay,
                Measure::CallsPerMonth,
                Measure::BytesPerDay,
                Measure::BytesPerMonth,
            ]
            .into_iter()
            .find_map(|measure| {
                let most = limit.most(measure)?;
                let wait = match measure {
                    Measure::CallsPerMinute => counts.calls.wait(1.0, most, now),
                    Measure::BytesPerMinute => counts.bytes.wait(1.0, most, now),
                    Measure::CallsPerDay => used(counts.day.calls, most, day),
                    Measure::CallsPerMonth => used(counts.month.calls, most, month),
                    Measure::BytesPerDay => used(counts.day.bytes, most, day),
                    Measure::BytesPerMonth => used(counts.month.bytes, most, month),
                    Measure::RequestsPerMinute | Measure::CallsInFlight => None,
                };
                Some((measure, most, wait?))
            });
            if let Some((measure, most, wait)) = exceeded {
                return Err(self.refuse(limit, measure, most, wait));
            }
        }
        Ok(())
    }

    fn refuse(
        &mut self,
        limit: &Limit,
        measure: Measure,
        most: u64,
        retry_after: Duration,
    ) -> Exceeded {
        let counted = self.refused.entry((limit.text.clone(), measure));
        *counted.or_default() += 1;
        Exceeded::Used {
            limit: limit.text.clone(),
            measure,
            most,
            retry_after,
        }
    }
}

/// The counts of a limit for an identity.
fn key(limit: &Limit, identity: &str) -> Key {
    Key {
        limit: limit.text.clone(),
        who: (!limit.is_shared).then(|| identity.into()),
    }
}
