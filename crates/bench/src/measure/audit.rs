//! The time that the audit log adds to a call: programs with it and programs without it, in turn.
//!
//! The client, the programs and their servers have a processor each. In the last rows all of them share one, so that nothing is done
//! while the server works, and the time is that of the processor; in the very last ones, a program has several calls in a row.
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

/// The processors of the client, the programs and their servers.
type Processors = [&'static str; 3];
const OWN: Processors = ["0", "1", "2"];
const SHARED: Processors = ["0", "0", "0"];

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let before = affinity();
    // Counted before this process is given one of them.
    let has_three = std::thread::available_parallelism().is_ok_and(|count| count.get() >= 3);
    let own = has_three.then_some(OWN);
    let bar = Some(Bar::AtMost(5.0));
    let (small, large) = ((0, "100 B"), (10_000, "10 kB"));
    for ((bytes, size), place, processors, in_a_row, bar) in [
        (small, "", own, 1, bar),
        (large, "", own, 1, bar),
        (small, " on one processor", Some(SHARED), 1, None),
        (large, " on one processor", Some(SHARED), 1, None),
        (
            small,
            " on one processor, 50 in a row",
            Some(SHARED),
            50,
            None,
        ),
        (
            large,
            " on one processor, 50 in a row",
            Some(SHARED),
            50,
            None,
        ),
    ] {
        let name = format!("arguments of {size}{place}");
        let [without, with] = times(stand, bytes, processors, in_a_row)?;
        // The programs of the next row may use all processors again.
        pin(std::process::id(), &before);
        for (percent, bar) in [(50, bar), (99, None)] {
            table.add_own(
                format!("a call with {name}, p{percent}, added by the audit log"),
                "µs",
                bar,
                (percentile(&with, percent) - percentile(&without, percent)) * 1e6,
            );
        }
    }
    Ok(())
}

/// The times of calls without the log and with it. Each program gets so many calls in a row before it is another's turn: with one, it has
/// nothing in the caches of the processor any more.
fn times(
    stand: &Stand,
    bytes: usize,
    processors: Option<Processors>,
    in_a_row: usize,
) -> Result<[Vec<Duration>; 2]> {
    let mut sides = (0..2 * stand.choose(PAIRS, 1))
        .map(|side| Side::start(stand, side % 2 == 1, bytes))
        .collect::<Result<Vec<_>>>()?;
    if let Some(processors) = processors {
        place(&sides, processors);
    }
    let rounds = (stand.choose(4000, 5) / in_a_row).max(1);
    let warm_up = rounds / 10 + 1;
    let count = sides.len();
    for round in 0..rounds + warm_up {
        for turn in 0..count {
            let side = &mut sides[(round + turn) % count];
            for _ in 0..in_a_row {
                let time = side.peer.time(&side.request)?;
                if round >= warm_up {
                    side.times.push(time);
                }
            }
        }
    }
    Ok([0, 1].map(|parity| {
        let sides = sides.iter().skip(parity).step_by(2);
        sides.flat_map(|side| side.times.clone()).collect()
    }))
}

/// Gives the client, the programs and their servers their processors, so that where the system puts them makes no difference. Without
/// `taskset`, the figures are less exact.
fn place(sides: &[Side], [client, program, server]: Processors) {
    pin(std::process::id(), client);
    for side in sides {
        let id = side.peer.process();
        pin(id, program);
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            if let Ok(child) = child.parse() {
                pin(child, server);
            }
        }
    }
}

/// Lets the main thread of a process run on these processors only.
fn pin(process: u32, processors: &str) {
    let mut taskset = Command::new("taskset");
    let process = process.to_string();
    let taskset = taskset.args(["-cp", processors, &process]);
    let _ = taskset.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// The processors that this process may use, as `taskset` takes them.
fn affinity() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    allowed.unwrap_or_default().trim().to_owned()
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
