//! Measures the time of a search as the client sees it, by words alone and by meaning.

use std::time::Duration;

use anyhow::Result;

use super::percentile;
use super::start::group;
use crate::home::Home;
use crate::peer::Request;
use crate::stand::{MCPZIP, Stand};
use crate::table::{Bar, Table};
use crate::tools;

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let sizes: &[usize] = stand.choose(&[500, 5_000, 10_000, 50_000], &[500]);
    for size in sizes {
        searches(stand, table, *size, false)?;
    }
    searches(stand, table, stand.choose(10_000, 200), true)?;
    table.add_own(
        format!(
            "listing and embedding {} new tools",
            group(stand.choose(10_000, 200))
        ),
        "s",
        Some(Bar::AtMost(120.0)),
        stand.learning(MCPZIP)?.1.as_secs_f64(),
    );
    Ok(())
}

fn searches(stand: &Stand, table: &mut Table, size: usize, is_semantic: bool) -> Result<()> {
    let servers = if is_semantic {
        stand.many()
    } else {
        stand.servers(stand.choose(20, 2), size, false)
    };
    let bars = match (size, is_semantic) {
        (10_000, false) => [
            Some(Bar::AtMost(1.0)),
            Some(Bar::AtMost(3.0)),
            Some(Bar::AtMost(0.1)),
        ],
        (10_000, true) => [Some(Bar::AtMost(10.0)), Some(Bar::AtMost(25.0)), None],
        _ => [None; 3],
    };
    let mut rows = [
        vec![None; stand.ways.len()],
        vec![None; stand.ways.len()],
        vec![None; stand.ways.len()],
    ];
    for (way, profile) in stand.ways.iter().enumerate() {
        // Search by meaning is measured for mcpzip only, where it can be switched.
        if profile.search("").is_none() || (is_semantic && way != MCPZIP) {
            continue;
        }
        let fresh = Home::new()?;
        let home = if is_semantic {
            stand.learned(way)?
        } else {
            &fresh
        };
        let mut peer = stand.start(way, &servers, home)?;
        peer.initialize()?;
        stand.prepare(way, &mut peer, &servers)?;
        let mut times = Vec::new();
        for number in 0..stand.choose(1020, 12) {
            let Some(search) = profile.search(&tools::query(number)) else {
                continue;
            };
            let time = peer.time(&search)?;
            if number >= stand.choose(20, 2) {
                times.push(time);
            }
        }
        let rounds = stand.choose(500, 5);
        let Some(same) = profile.search(&tools::query(1)) else {
            continue;
        };
        let again = (0..rounds)
            .map(|_| peer.time(&same))
            .collect::<Result<Vec<Duration>>>()?;
        let pings = (0..rounds)
            .map(|_| peer.time(&Request::method("ping")))
            .collect::<Result<Vec<Duration>>>()?;
        rows[0][way] = Some(percentile(&times, 50) * 1e3);
        rows[1][way] = Some(percentile(&times, 99) * 1e3);
        rows[2][way] = Some((percentile(&again, 50) - percentile(&pings, 50)) * 1e3);
    }
    let [p50, p99, repeated] = rows;
    let how = if is_semantic {
        "with the embedding"
    } else {
        "by words"
    };
    let what = format!("search of {} tools {how}", group(size));
    table.add(format!("{what}, p50"), "ms", bars[0], p50);
    table.add(format!("{what}, p99"), "ms", bars[1], p99);
    if size == 10_000 && !is_semantic || stand.is_quick {
        table.add(
            format!("{what}, the same query again, compared with a ping"),
            "ms",
            bars[2],
            repeated,
        );
    }
    Ok(())
}
