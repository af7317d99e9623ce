//! Measures the time from the start of the process to its first answers, with an empty cache and with ten thousand
//! tools in the cache.

use std::time::Duration;

use anyhow::Result;

use super::percentile;
use crate::home::Home;
use crate::stand::Stand;
use crate::table::{Bar, Table};
use crate::tools;

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let servers = stand.many();
    let tools = servers.tools / 100 * 100;
    for (is_warm, rounds) in [(false, stand.choose(5, 1)), (true, stand.choose(25, 2))] {
        let ways = stand.ways.len();
        let (mut answered, mut found) = (vec![Vec::new(); ways], vec![Vec::new(); ways]);
        for round in 0..rounds {
            for way in 0..ways {
                let fresh = Home::new()?;
                let home = if is_warm { stand.learned(way)? } else { &fresh };
                let mut peer = stand.start(way, &servers, home)?;
                answered[way].push(peer.initialize()?);
                if let Some(search) = stand.ways[way].search(&tools::query(3 * round)) {
                    peer.text(&search)?;
                    found[way].push(peer.age());
                }
            }
        }
        let milliseconds = |times: &[Vec<Duration>]| -> Vec<Option<f64>> {
            times
                .iter()
                .map(|times| (!times.is_empty()).then(|| percentile(times, 50) * 1e3))
                .collect()
        };
        let (kind, bars) = if is_warm {
            (
                "warm start",
                (Some(Bar::AtMost(3.0)), Some(Bar::AtMost(12.0))),
            )
        } else {
            ("cold start", (None, None))
        };
        let with = format!("{kind}, {} tools: spawn to", group(tools));
        table.add(
            format!("{with} `initialize` answered, p50"),
            "ms",
            bars.0,
            milliseconds(&answered),
        );
        table.add(
            format!("{with} first search answered, p50"),
            "ms",
            bars.1,
            milliseconds(&found),
        );
    }
    Ok(())
}

/// A number with commas: 10000 as 10,000.
pub(super) fn group(number: usize) -> String {
    if number < 1000 {
        number.to_string()
    } else {
        format!("{},{:03}", number / 1000, number % 1000)
    }
}
