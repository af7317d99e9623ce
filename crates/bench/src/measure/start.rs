//! Measures the time from the start of the process to its first answers, with an empty cache and with ten thousand
//! tools in the cache.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::percentile;
use crate::home::Home;
use crate::stand::Stand;
use crate::table::{Bar, Table};
use crate::tools;
use crate::upstream::PAYLOAD;

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let servers = stand.many();
    let tools = servers.tools / 100 * 100;
    for (is_warm, rounds) in [(false, stand.choose(5, 1)), (true, stand.choose(25, 2))] {
        let ways = stand.ways.len();
        let mut answered = vec![Vec::new(); ways];
        let (mut found, mut called) = (answered.clone(), answered.clone());
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
                // A start of its own: the search before would have prepared the call.
                drop(peer);
                let fresh = Home::new()?;
                let home = if is_warm { stand.learned(way)? } else { &fresh };
                let mut peer = stand.start(way, &servers, home)?;
                peer.initialize()?;
                peer.ask_until_good(&stand.ways[way].call(0, PAYLOAD, json!({ "bytes": 100 })))?;
                called[way].push(peer.age());
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
                [3.0, 12.0, 25.0].map(|most| Some(Bar::AtMost(most))),
            )
        } else {
            ("cold start", [None; 3])
        };
        let with = format!("{kind}, {} tools: spawn to", group(tools));
        let rows = [
            ("`initialize`", answered),
            ("first search", found),
            ("first call", called),
        ];
        for ((what, times), bar) in rows.into_iter().zip(bars) {
            table.add(
                format!("{with} {what} answered, p50"),
                "ms",
                bar,
                milliseconds(&times),
            );
        }
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
