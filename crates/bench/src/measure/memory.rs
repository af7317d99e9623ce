//! Measures resident memory: idle with ten thousand known tools, after large results, and after many calls.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::start::group;
use crate::peer::Peer;
use crate::stand::{MCPZIP, RELAY, Stand};
use crate::table::{Bar, Table};

/// A megabyte of 1024 × 1024 bytes.
const MEGABYTE: f64 = 1024.0 * 1024.0;

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let servers = stand.many();
    let ways = stand.ways.len();
    let mut rows = vec![vec![None; ways]; 5];
    for (way, profile) in stand.ways.iter().enumerate().skip(RELAY) {
        let mut peer = stand.start(way, &servers, stand.learned(way)?)?;
        peer.initialize()?;
        stand.prepare(way, &mut peer, &servers)?;
        let settle =
            || std::thread::sleep(stand.choose(Duration::from_secs(6), Duration::from_millis(300)));
        settle();
        let id = peer.process();
        let idle = resident(id)?;
        rows[0][way] = Some(idle);
        rows[1][way] = (way == MCPZIP).then(|| companions(id));
        let large = profile.call(
            0,
            crate::upstream::PAYLOAD,
            serde_json::json!({ "bytes": 10_000_000 }),
        );
        peer.ask_until_good(&profile.call(
            0,
            crate::upstream::PAYLOAD,
            serde_json::json!({ "bytes": 1 }),
        ))?;
        // Resets the peak value.
        std::fs::write(format!("/proc/{id}/clear_refs"), "5")?;
        for _ in 0..10 {
            peer.ask(&large)?;
        }
        rows[2][way] = Some(field(id, "VmHWM:")?);
        settle();
        rows[3][way] = Some(resident(id)? - idle);
        let small = [profile.call(
            0,
            crate::upstream::PAYLOAD,
            serde_json::json!({ "bytes": 100 }),
        )];
        calls(&mut peer, &small, stand.choose(10_000, 100))?;
        let before = resident(id)?;
        calls(&mut peer, &small, stand.choose(100_000, 1000))?;
        rows[4][way] = Some(resident(id)? - before);
    }
    let known = format!("{} tools known", group(servers.tools / 100 * 100));
    let mut rows = rows.into_iter();
    let mut add = |what: String, bar| table.add(what, "MB", bar, rows.next().unwrap_or_default());
    add(
        format!("resident memory, idle, {known}"),
        Some(Bar::AtMost(20.0)),
    );
    add("the same of its companion process".to_owned(), None);
    add(
        "peak during ten results of 10 MB".to_owned(),
        Some(Bar::AtMost(45.0)),
    );
    add(
        "what is left of that afterwards".to_owned(),
        Some(Bar::AtMost(10.0)),
    );
    // The bar allows for the noise of pages. One byte per call would be 0.1.
    add(
        "growth over 100,000 calls".to_owned(),
        Some(Bar::AtMost(0.3)),
    );
    Ok(())
}

fn calls(peer: &mut Peer, requests: &[crate::peer::Request], count: usize) -> Result<()> {
    peer.flood(requests, 16, Duration::from_secs(600), count)?;
    std::thread::sleep(Duration::from_millis(500));
    Ok(())
}

/// Resident memory of a process, in megabytes.
pub(super) fn resident(id: u32) -> Result<f64> {
    field(id, "VmRSS:")
}

/// A figure of a process, in megabytes.
fn field(id: u32, name: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status
        .lines()
        .find(|line| line.starts_with(name))
        .context("no such figure")?;
    let kilobytes: f64 = line
        .split_whitespace()
        .nth(1)
        .context("no number")?
        .parse()?;
    Ok(kilobytes * 1024.0 / MEGABYTE)
}

/// Memory of child processes that run the same program.
fn companions(id: u32) -> f64 {
    let program = |id: &str| std::fs::read_link(format!("/proc/{id}/exe")).ok();
    let own = program(&id.to_string());
    let parent = |id: &str| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let children = names.filter(|name| parent(name) == Some(id) && program(name) == own);
    children
        .filter_map(|child| resident(child.parse().ok()?).ok())
        .sum()
}
