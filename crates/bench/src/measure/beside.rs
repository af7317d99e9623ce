//! Measures whether a slow call delays others to the same server.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::percentile;
use crate::stand::{Line, Stand};
use crate::table::{Bar, Table};

/// Duration of the slow call, in milliseconds.
const SLOW: u64 = 1500;

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let servers = stand.servers(1, 0, false);
    let rounds = stand.choose(4, 1);
    let mut lines = (0..stand.ways.len())
        .map(|way| stand.line(way, &servers))
        .collect::<Result<Vec<_>>>()?;
    let (mut alone, mut beside) = (vec![Vec::new(); lines.len()], vec![Vec::new(); lines.len()]);
    for _ in 0..rounds {
        for (way, line) in lines.iter_mut().enumerate() {
            alone[way].extend(calls(stand, line)?);
            let slow = line.late(stand, 0, SLOW);
            line.peer(0).send(&slow)?;
            beside[way].extend(calls(stand, line)?);
            // The next call skips the answer of the slow one.
            std::thread::sleep(Duration::from_millis(SLOW / 3));
        }
    }
    let delay = |percent: usize| {
        let ways = alone.iter().zip(&beside);
        ways.map(|(alone, beside)| {
            Some((percentile(beside, percent) - percentile(alone, percent)) * 1e3)
        })
        .collect()
    };
    table.add(
        "a 1.5 s call in flight: delay of the others, p50",
        "ms",
        Some(Bar::AtMost(1.0)),
        delay(50),
    );
    table.add(
        "a 1.5 s call in flight: delay of the others, p99",
        "ms",
        Some(Bar::AtMost(1.0)),
        delay(99),
    );
    Ok(())
}

/// Makes calls one after the other for a little more than a second.
fn calls(stand: &Stand, line: &mut Line) -> Result<Vec<Duration>> {
    let request = line.payload(stand, 0, 100);
    let limit = Duration::from_millis(stand.choose(SLOW - 300, 200));
    let (start, mut times) = (Instant::now(), Vec::new());
    while start.elapsed() < limit {
        times.push(line.peer(0).time(&request)?);
    }
    Ok(times)
}
