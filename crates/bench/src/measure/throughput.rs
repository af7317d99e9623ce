//! Measures calls per second with many in flight, to one server and to ten.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::median;
use crate::peer::Request;
use crate::stand::{Line, Stand};
use crate::table::{Bar, Table};

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let (slice, rounds) = (
        stand.choose(Duration::from_millis(700), Duration::from_millis(50)),
        stand.choose(5, 1),
    );
    for count in [1, 10] {
        let servers = stand.servers(count, 0, false);
        let mut lines = (0..stand.ways.len())
            .map(|way| stand.line(way, &servers))
            .collect::<Result<Vec<_>>>()?;
        for window in [1, 16, 64, 256] {
            let mut rates = vec![Vec::new(); lines.len()];
            for round in 0..rounds {
                for turn in 0..lines.len() {
                    let way = (round + turn) % lines.len();
                    rates[way].push(rate(stand, &mut lines[way], count, window, slice)?);
                }
            }
            let medians = rates.into_iter().map(median);
            let bar = match (count, window) {
                (1, 64) => Some(Bar::TimesRelayAtLeast(0.4)),
                (1, 256) => Some(Bar::TimesRelayAtLeast(0.3)),
                _ => None,
            };
            let of = if count == 1 {
                "one server".to_owned()
            } else {
                format!("{count} servers")
            };
            table.add(
                format!("{window} in flight over {of}"),
                "calls/s",
                bar,
                medians.collect(),
            );
        }
    }
    Ok(())
}

/// Calls per second over one way. If each server has its own process, each process has a client, and the clients share
/// the window.
fn rate(
    stand: &Stand,
    line: &mut Line,
    count: usize,
    window: usize,
    slice: Duration,
) -> Result<f64> {
    let requests: Vec<Request> = (0..count)
        .map(|server| line.payload(stand, server, 100))
        .collect();
    let peers = line.peers.len();
    let start = Instant::now();
    let answered: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = line
            .peers
            .iter_mut()
            .enumerate()
            .take(window)
            .map(|(at, peer)| {
                let own = window / peers + usize::from(at < window % peers);
                let requests = if peers == 1 {
                    &requests[..]
                } else {
                    &requests[at..=at]
                };
                scope.spawn(move || peer.flood(requests, own.max(1), slice, usize::MAX))
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().ok().context("a client panicked")?)
            .sum::<Result<usize>>()
    })?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok(answered as f64 / start.elapsed().as_secs_f64())
}
