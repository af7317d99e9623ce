//! Counts of this process, for metrics.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};

use super::Answer;

/// The first bound of a call's time, 128 µs. Each further bound is twice as long.
const FIRST_BOUND: Duration = Duration::from_micros(128);

/// The number of bounds. The last is about 134 s.
pub(crate) const BOUNDS: usize = 21;

/// The counts of this process since its start, for metrics. Calls are counted only if a metrics reader is configured.
#[derive(Debug)]
pub struct Live {
    since: SystemTime,
    counts_calls: AtomicBool,
    servers: Mutex<BTreeMap<String, Totals>>,
    answers: [AtomicU64; 4],
}

/// The calls of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls in progress.
    pub in_flight: u64,
    /// Ended calls, by outcome.
    pub ends: [u64; End::ALL.len()],
    /// Calls by time: each counter is for times up to the bound of its number and above the previous one. The last
    /// counter has no bound.
    pub times: [u64; BOUNDS + 1],
    /// The sum of all times.
    pub time: Duration,
    /// Bytes of arguments.
    pub sent: u64,
    /// Bytes of results.
    pub received: u64,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A result.
    Ok,
    /// A result with `isError`.
    ToolError,
    /// A JSON-RPC error.
    Refused,
    /// No answer in time.
    TimedOut,
    /// The server could not be reached, or its answer could not be used.
    Unavailable,
    /// The caller stopped waiting.
    Cancelled,
}

/// A call in progress. It ends when this is dropped, if not before.
#[derive(Debug)]
pub struct UnderWay {
    live: Arc<Live>,
    server: String,
    end: Option<(End, Duration, usize)>,
}

impl End {
    /// All outcomes, in order.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::ToolError,
        Self::Refused,
        Self::TimedOut,
        Self::Unavailable,
        Self::Cancelled,
    ];

    /// The name of the outcome in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Refused => "refused",
            Self::TimedOut => "timeout",
            Self::Unavailable => "unavailable",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The upper bound with this number, inclusive.
#[must_use]
pub(crate) fn bound(number: usize) -> Duration {
    FIRST_BOUND * (1 << number)
}

impl Default for Live {
    fn default() -> Self {
        let counts_calls = AtomicBool::new(false);
        Self {
            since: SystemTime::now(),
            counts_calls,
            servers: Mutex::default(),
            answers: Default::default(),
        }
    }
}

impl Live {
    /// The time when counting began.
    #[must_use]
    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// Switches counting of calls on or off.
    pub fn count_calls(&self, counts: bool) {
        self.counts_calls.store(counts, Ordering::Relaxed);
    }

    /// Whether calls are counted.
    #[must_use]
    pub fn counts_calls(&self) -> bool {
        self.counts_calls.load(Ordering::Relaxed)
    }

    /// Counts the start of a call to `server` with `sent` bytes of arguments.
    #[must_use]
    pub fn begin(self: &Arc<Self>, server: &str, sent: usize) -> UnderWay {
        self.change(server, |totals| {
            totals.in_flight += 1;
            totals.sent += sent as u64;
        });
        UnderWay {
            live: self.clone(),
            server: server.to_owned(),
            end: None,
        }
    }

    /// The calls by server.
    #[must_use]
    pub fn servers(&self) -> BTreeMap<String, Totals> {
        self.table().clone()
    }

    /// The number of answers of this kind.
    #[must_use]
    pub fn answers(&self, answer: Answer) -> u64 {
        self.answers[answer as usize].load(Ordering::Relaxed)
    }

    pub(super) fn answered(&self, answer: Answer) {
        self.answers[answer as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn change(&self, server: &str, change: impl FnOnce(&mut Totals)) {
        let mut table = self.table();
        match table.get_mut(server) {
            Some(totals) => change(totals),
            None => change(table.entry(server.to_owned()).or_default()),
        }
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Totals>> {
        // An addition is one step, so a panic cannot leave the table in a wrong state.
        self.servers.lock()
    }
}

impl UnderWay {
    /// Records the outcome of the call, its time and the bytes of its result.
    pub fn end(mut self, end: End, time: Duration, received: usize) {
        self.end = Some((end, time, received));
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let end = self.end.take();
        self.live.change(&self.server, |totals| {
            totals.in_flight = totals.in_flight.saturating_sub(1);
            let (end, time, received) = end.unwrap_or((End::Cancelled, Duration::ZERO, 0));
            totals.ends[end as usize] += 1;
            if end != End::Cancelled {
                let index = (0..BOUNDS)
                    .find(|number| time <= bound(*number))
                    .unwrap_or(BOUNDS);
                totals.times[index] += 1;
                totals.time += time;
                totals.received += received as u64;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_server_end_and_time() {
        let live = Arc::new(Live::default());
        live.begin("a", 10)
            .end(End::Ok, Duration::from_micros(128), 100);
        live.begin("a", 10)
            .end(End::ToolError, Duration::from_micros(129), 50);
        live.begin("a", 1)
            .end(End::Ok, Duration::from_secs(3600), 0);
        drop(live.begin("a", 1));
        let under_way = live.begin("b", 1);
        let servers = live.servers();
        let a = &servers["a"];
        assert_eq!(
            (a.in_flight, a.ends, a.sent, a.received),
            (0, [2, 1, 0, 0, 0, 1], 22, 150)
        );
        assert_eq!(
            (
                a.times[0],
                a.times[1],
                a.times[BOUNDS],
                a.times.iter().sum::<u64>()
            ),
            (1, 1, 1, 3)
        );
        assert_eq!(a.time, Duration::from_micros(3_600_000_257));
        assert_eq!(servers["b"].in_flight, 1);
        drop(under_way);
        assert_eq!(live.servers()["b"].in_flight, 0);
    }

    #[test]
    fn bounds_are_whole_powers_and_end_after_two_minutes() {
        assert_eq!((bound(0).as_micros(), bound(3).as_micros()), (128, 1024));
        assert_eq!(bound(BOUNDS - 1).as_secs(), 134);
    }
}
