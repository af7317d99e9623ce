//! The time from a call of `mcpzip__run` to the value of its script, and of a call inside a script compared with a plain one.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::percentile;
use crate::home::Home;
use crate::peer::{Peer, Request};
use crate::profile::{Profile, server_name};
use crate::stand::Stand;
use crate::table::{Bar, Table};
use crate::upstream::PAYLOAD;

/// The calls of the longer script.
const CALLS: usize = 50;

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let mut profile: Value = serde_json::from_str(include_str!("../../profiles/mcpzip.json"))?;
    profile["files"]["config.json"]["scripts"] = json!({ "allow": "all" });
    let profile = Profile::parse(&profile.to_string(), &stand.mcpzip.display().to_string())?;
    let home = Home::new()?;
    let servers = stand.servers(1, 0, false);
    let mut peer = Peer::start("mcpzip", &mut profile.command(&servers, &home)?, false)?;
    peer.initialize()?;
    let plain = profile.call(0, PAYLOAD, json!({ "bytes": 100 }));
    peer.ask_until_good(&plain)?;
    let tool = format!("{}__{PAYLOAD}", server_name(0));
    let start = script("return 1");
    let many = script(&format!(
        "for (let at = 0; at < {CALLS}; at += 1) await call('{tool}', {{ bytes: 100 }}); return 1"
    ));
    for request in [&start, &many] {
        peer.ask_until_good(request)?;
    }
    let rounds = stand.choose(200, 3);
    let mut times = |request: &Request| -> Result<Vec<Duration>> {
        (0..rounds).map(|_| peer.time(request)).collect()
    };
    let (plain, start, many) = (times(&plain)?, times(&start)?, times(&many)?);
    for (percent, bar) in [(50, Some(Bar::AtMost(15.0))), (99, None)] {
        let time = percentile(&start, percent) * 1e3;
        table.add_own(
            format!("a script without calls, p{percent}"),
            "ms",
            bar,
            time,
        );
    }
    let calls = percentile(&many, 50) - percentile(&start, 50);
    #[expect(clippy::cast_precision_loss, reason = "it is a small number")]
    let inside = calls / CALLS as f64;
    let added = (inside - percentile(&plain, 50)) * 1e6;
    table.add_own(
        "a call inside a script, p50, added to a plain call".to_owned(),
        "µs",
        None,
        added,
    );
    Ok(())
}

fn script(code: &str) -> Request {
    let run = json!({ "name": "mcpzip__run", "arguments": { "code": code } });
    Request::call(&json!({ "name": "execute_tool", "arguments": run }))
}
