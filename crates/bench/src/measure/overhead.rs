//! Measures the additional time of a call compared with a direct one. Calls are sequential, and the ways alternate.

use std::time::Duration;

use anyhow::Result;

use super::{added, percentile};
use crate::stand::Stand;
use crate::table::{Bar, Table};

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let servers = stand.servers(1, 0, false);
    let mut lines = (0..stand.ways.len())
        .map(|way| stand.line(way, &servers))
        .collect::<Result<Vec<_>>>()?;
    for (bytes, name, rounds) in [
        (100, "100 B", 4000),
        (100_000, "100 kB", 1500),
        (1_000_000, "1 MB", 300),
        (10_000_000, "10 MB", 60),
    ] {
        let rounds = stand.choose(rounds, 5);
        let warm_up = rounds / 10 + 1;
        let requests: Vec<_> = lines
            .iter()
            .map(|line| line.payload(stand, 0, bytes))
            .collect();
        let mut times: Vec<Vec<Duration>> = vec![Vec::new(); lines.len()];
        for round in 0..rounds + warm_up {
            // The order changes each round, because a call after a large result finds other caches.
            for turn in 0..lines.len() {
                let way = (round + turn) % lines.len();
                let time = lines[way].peer(0).time(&requests[way])?;
                if round >= warm_up {
                    times[way].push(time);
                }
            }
        }
        let figures = |percent| {
            times
                .iter()
                .map(|times| Some(percentile(times, percent) * 1e6))
                .collect::<Vec<_>>()
        };
        let (p50, p99) = match bytes {
            100 => (
                Some(Bar::TimesRelayAtMost(1.4)),
                Some(Bar::TimesRelayAtMost(2.0)),
            ),
            10_000_000 => (Some(Bar::TimesRelayAtMost(1.4)), None),
            _ => (None, None),
        };
        table.add(
            format!("a call of {name}, p50, added to direct"),
            "µs",
            p50,
            added(&figures(50)),
        );
        table.add(
            format!("a call of {name}, p99, added to direct"),
            "µs",
            p99,
            added(&figures(99)),
        );
    }
    Ok(())
}
