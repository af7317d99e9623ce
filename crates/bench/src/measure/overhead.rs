//! Measures the additional time of a call compared with a direct one. Calls are sequential, and the ways alternate.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::{added, median, percentile};
use crate::stand::{Line, Stand};
use crate::table::{Bar, Table};
use crate::upstream;

/// The part of a call that is large.
#[derive(Clone, Copy)]
enum Large {
    Result(usize),
    Arguments(usize),
}

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let servers = stand.servers(1, 0, false);
    let mut lines = (0..stand.ways.len())
        .map(|way| stand.line(way, &servers))
        .collect::<Result<Vec<_>>>()?;
    let bar = |factor| Some(Bar::TimesRelayAtMost(factor));
    // The rounds are those of one of the runs.
    for (large, name, rounds, p50, p99) in [
        (Large::Result(100), "of 100 B", 800, bar(1.2), bar(2.0)),
        (Large::Result(100_000), "of 100 kB", 300, None, None),
        (Large::Result(1_000_000), "of 1 MB", 60, bar(1.4), None),
        (Large::Result(10_000_000), "of 10 MB", 12, bar(1.4), None),
        (
            Large::Arguments(1_000_000),
            "with arguments of 1 MB",
            60,
            bar(1.4),
            None,
        ),
    ] {
        let rounds = stand.choose(rounds, 1);
        let warm_up = rounds / 10 + 1;
        let requests: Vec<_> = lines
            .iter()
            .map(|line| match large {
                Large::Result(bytes) => line.payload(stand, 0, bytes),
                Large::Arguments(bytes) => with_arguments(stand, line, bytes),
            })
            .collect();
        let (mut halves, mut tails) = (Vec::new(), Vec::new());
        for _ in 0..stand.choose(5, 1) {
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
                let each = times
                    .iter()
                    .map(|times| Some(percentile(times, percent) * 1e6));
                added(&each.collect::<Vec<_>>())
            };
            halves.push(figures(50));
            tails.push(figures(99));
        }
        for (percent, runs, bar) in [(50, halves, p50), (99, tails, p99)] {
            table.add(
                format!("a call {name}, p{percent}, added to direct"),
                "µs",
                bar,
                medians(&runs),
            );
        }
    }
    Ok(())
}

/// The median of the runs for each way.
fn medians(runs: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
    let ways = runs.first().map_or(0, Vec::len);
    (0..ways)
        .map(|way| median(runs.iter().filter_map(|run| run[way]).collect()))
        .collect()
}

/// A call whose arguments have a text of this size.
fn with_arguments(stand: &Stand, line: &Line, bytes: usize) -> crate::peer::Request {
    let arguments = json!({ "bytes": 100, "text": upstream::plain_text_of(bytes) });
    stand.ways[line.way].call(0, upstream::PAYLOAD, arguments)
}
