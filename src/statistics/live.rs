use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};

use super::Answer;

/// The first bound of a call's time, 128 µs; each of the others is twice the one before it.
const FIRST_BOUND: Duration = Duration::from_micros(128);

/// How many there are: the last is about 134 s.
pub(crate) const BOUNDS: usize = 21;

/// What this process has counted since it began, for whoever watches it. Calls are counted only while somebody may ask.
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
    /// Those that are under way.
    pub in_flight: u64,
    /// How many ended how.
    pub ends: [u64; End::ALL.len()],
    /// How many took no longer than the bound of this number and longer than the one before it; the last has no bound.
    pub times: [u64; BOUNDS + 1],
    /// The time of all of them.
    pub time: Duration,
    /// Bytes of arguments.
    pub sent: u64,
    /// Bytes of results.
    pub received: u64,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With a result.
    Ok,
    /// With a result that says that its tool failed.
    ToolError,
    /// With a JSON-RPC error.
    Refused,
    /// With no answer in time.
    TimedOut,
    /// The server could not be reached, or gave no usable answer.
    Unavailable,
    /// Nobody waited any more.
    Cancelled,
}

/// A call under way; it ends when this is dropped, at the latest.
#[derive(Debug)]
pub struct UnderWay {
    live: Arc<Live>,
    server: String,
    end: Option<(End, Duration, usize)>,
}

impl End {
    /// All of them, in order.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::ToolError,
        Self::Refused,
        Self::TimedOut,
        Self::Unavailable,
        Self::Cancelled,
    ];

    /// As a word.
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

/// The bound of this number; the time of a call counts for it when it is not longer.
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
    /// Since when it counts.
    #[must_use]
    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// Says whether calls are counted.
    pub fn count_calls(&self, counts: bool) {
        self.counts_calls.store(counts, Ordering::Relaxed);
    }

    /// Whether calls are counted.
    #[must_use]
    pub fn counts_calls(&self) -> bool {
        self.counts_calls.load(Ordering::Relaxed)
    }

    /// Counts a call of `server` that begins now, with so many bytes of arguments.
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

    /// How many answers of this kind there were.
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
        // Additions are whole, wherever a panic strikes.
        self.servers.lock()
    }
}

impl UnderWay {
    /// Says how it ended, after which time, with so many bytes of a result.
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
                let place = (0..BOUNDS)
                    .find(|number| time <= bound(*number))
                    .unwrap_or(BOUNDS);
                totals.times[place] += 1;
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
