//! Measures what fifty thousand tools cost, and whether anything grows faster than their number. Only mcpzip is measured,
//! by words: embedding as many tools would take longer than the rest of the run.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;

use super::memory::resident;
use super::start::group;
use super::{median, percentile};
use crate::home::Home;
use crate::profile::Servers;
use crate::stand::{MCPZIP, Stand};
use crate::table::{Bar, Table};
use crate::tools;
use crate::upstream::PAYLOAD;

/// The tools of a server.
const EACH: usize = 500;

/// Five times the tools may cost five times as much, and a tenth more for longer names and noise.
const MOST_TIMES: f64 = 5.5;

/// The names and units of the figures.
const FIGURES: [(&str, &str); 11] = [
    ("spawn to `initialize` answered", "ms"),
    ("spawn to first search answered", "ms"),
    ("spawn to first call answered", "ms"),
    ("a search by words, p50", "ms"),
    ("a search by words, p99", "ms"),
    ("a description, p50", "ms"),
    ("resident memory, idle", "MB"),
    ("everything listed and indexed, from an empty cache", "ms"),
    ("a new index from the lists in the cache", "ms"),
    ("the index, a file", "MB"),
    ("the lists, files", "MB"),
];

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let sizes = stand.choose([10_000, 50_000], [EACH, 5 * EACH]);
    let servers = sizes.map(|size| stand.servers(size / EACH, size, false));
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..stand.choose(5, 1) {
        for (servers, runs) in servers.iter().zip(&mut runs) {
            runs.push(run(stand, servers)?);
        }
    }
    for (at, (what, unit)) in FIGURES.into_iter().enumerate() {
        let [few, many] = runs
            .each_ref()
            .map(|runs| median(runs.iter().filter_map(|run| run[at]).collect()));
        let what = format!("{} tools: {what}", group(sizes[1]));
        table.add(what.clone(), unit, None, vec![None, None, many]);
        let ratio = many.zip(few).map(|(many, few)| many / few);
        table.add(
            format!("{what}, compared with {} tools", group(sizes[0])),
            "times",
            Some(Bar::AtMost(MOST_TIMES)),
            vec![None, None, ratio],
        );
    }
    Ok(())
}

/// Measures each figure once, in a home of its own.
fn run(stand: &Stand, servers: &Servers) -> Result<[Option<f64>; FIGURES.len()]> {
    let (home, profile) = (Home::new()?, &stand.ways[MCPZIP]);
    let search = |number| {
        let search = profile.search(&tools::query(number));
        search.context("mcpzip has no search")
    };
    let call = profile.call(0, PAYLOAD, json!({ "bytes": 100 }));

    let mut peer = stand.start(MCPZIP, servers, &home)?;
    peer.initialize()?;
    stand.prepare(MCPZIP, &mut peer, servers)?;
    peer.ask(&search(0)?)?;
    let listed = peer.age();
    drop(peer);

    let (cache, index) = (home.path().join("cache"), home.path().join("cache/search"));
    std::fs::remove_dir_all(&index)?;
    let mut peer = stand.start(MCPZIP, servers, &home)?;
    peer.initialize()?;
    peer.ask(&search(1)?)?;
    let indexed = peer.age();
    stand.prepare(MCPZIP, &mut peer, servers)?;
    drop(peer);

    let (mut initialized, mut found, mut called) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..stand.choose(5, 1) {
        let mut peer = stand.start(MCPZIP, servers, &home)?;
        initialized.push(peer.initialize()?);
        peer.ask(&search(3 * round)?)?;
        found.push(peer.age());
        drop(peer);
        let mut peer = stand.start(MCPZIP, servers, &home)?;
        peer.initialize()?;
        peer.ask_until_good(&call)?;
        called.push(peer.age());
    }

    let mut peer = stand.start(MCPZIP, servers, &home)?;
    peer.initialize()?;
    stand.prepare(MCPZIP, &mut peer, servers)?;
    std::thread::sleep(stand.choose(Duration::from_secs(6), Duration::from_millis(300)));
    let idle = resident(peer.process()).ok();
    let (mut searches, mut descriptions) = (Vec::new(), Vec::new());
    for number in 0..stand.choose(1000, 10) {
        searches.push(peer.time(&search(number)?)?);
        let server = number % servers.commands.len();
        let describe = profile.describe(server, &tools::name(server, number % EACH));
        let describe = describe.context("mcpzip describes no tools")?;
        descriptions.push(peer.time(&describe)?);
    }
    let milliseconds = |times: &[Duration], percent| Some(percentile(times, percent) * 1e3);
    Ok([
        milliseconds(&initialized, 50),
        milliseconds(&found, 50),
        milliseconds(&called, 50),
        milliseconds(&searches, 50),
        milliseconds(&searches, 99),
        milliseconds(&descriptions, 50),
        idle,
        milliseconds(&[listed], 50),
        milliseconds(&[indexed], 50),
        Some(megabytes(&index)?),
        Some(megabytes(&cache)? - megabytes(&index)?),
    ])
}

/// The size of all files in a directory.
fn megabytes(directory: &Path) -> Result<f64> {
    let mut sum = 0.0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let data = entry.metadata()?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let own = data.len() as f64 / 1e6;
        sum += if data.is_dir() {
            megabytes(&entry.path())?
        } else {
            own
        };
    }
    Ok(sum)
}
