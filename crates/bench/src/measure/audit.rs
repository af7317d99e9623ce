//! The time that the audit log adds to a call: programs with it and programs without it, in turn.
//!
//! On a machine that is not quiet, run it with a priority above all others: `chrt -f 10 mcpzip-bench audit`.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::percentile;
use crate::home::Home;
use crate::peer::{Peer, Request};
use crate::profile::Profile;
use crate::stand::Stand;
use crate::table::{Bar, Table};
use crate::upstream::PAYLOAD;

/// The processes with the log, and as many without it: any two processes differ by more than the log costs.
const PAIRS: usize = 4;

/// One program, before one server.
struct Side {
    peer: Peer,
    request: Request,
    times: Vec<Duration>,
    _home: Home,
}

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    for (bytes, name) in [(0, "100 B"), (10_000, "10 kB")] {
        let mut sides = (0..2 * stand.choose(PAIRS, 1))
            .map(|side| Side::start(stand, side % 2 == 1, bytes))
            .collect::<Result<Vec<_>>>()?;
        place(&sides);
        let rounds = stand.choose(4000, 5);
        let warm_up = rounds / 10 + 1;
        let count = sides.len();
        for round in 0..rounds + warm_up {
            for turn in 0..count {
                let side = &mut sides[(round + turn) % count];
                let time = side.peer.time(&side.request)?;
                if round >= warm_up {
                    side.times.push(time);
                }
            }
        }
        let times = |parity: usize| -> Vec<Duration> {
            let sides = sides.iter().skip(parity).step_by(2);
            sides.flat_map(|side| side.times.clone()).collect()
        };
        let [without, with] = [0, 1].map(times);
        for (percent, bar) in [(50, Some(Bar::AtMost(5.0))), (99, None)] {
            table.add_own(
                format!("a call with arguments of {name}, p{percent}, added by the audit log"),
                "µs",
                bar,
                (percentile(&with, percent) - percentile(&without, percent)) * 1e6,
            );
        }
    }
    Ok(())
}

/// Gives the client, the programs and their servers a processor each, so that where the system puts them makes no difference. Where
/// there is no `taskset`, the figures are less exact.
fn place(sides: &[Side]) {
    let pin = |process: u32, processor: &str| {
        let mut taskset = Command::new("taskset");
        let process = process.to_string();
        let taskset = taskset.args(["-cp", processor, &process]);
        let _ = taskset.stdout(Stdio::null()).stderr(Stdio::null()).status();
    };
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() < 3) {
        return;
    }
    pin(std::process::id(), "0");
    for side in sides {
        let id = side.peer.process();
        pin(id, "1");
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            if let Ok(child) = child.parse() {
                pin(child, "2");
            }
        }
    }
}

impl Side {
    /// Starts the program, whose calls have so many bytes of arguments beyond the necessary ones.
    fn start(stand: &Stand, is_audited: bool, bytes: usize) -> Result<Self> {
        let mut profile: Value = serde_json::from_str(include_str!("../../profiles/mcpzip.json"))?;
        // The process that is started is the one that is measured and placed.
        profile["command"] = json!(["{program}", "serve", "--alone"]);
        if is_audited {
            profile["files"]["config.json"]["audit"] = json!({});
        }
        let program = stand.mcpzip.display().to_string();
        let profile = Profile::parse(&profile.to_string(), &program)?;
        let home = Home::new()?;
        let servers = stand.servers(1, 0, false);
        let mut peer = Peer::start("mcpzip", &mut profile.command(&servers, &home)?, false)?;
        peer.initialize()?;
        let arguments = json!({ "bytes": 100, "padding": "x".repeat(bytes) });
        let request = profile.call(0, PAYLOAD, arguments);
        peer.ask_until_good(&request)?;
        Ok(Self {
            peer,
            request,
            times: Vec::new(),
            _home: home,
        })
    }
}
