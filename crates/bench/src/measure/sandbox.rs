//! The cost of a sandbox: the start of a server with the first call of it, and a later call, each compared with a server without one.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::percentile;
use crate::home::Home;
use crate::peer::{Peer, Request};
use crate::profile::{Profile, Servers, server_name};
use crate::stand::Stand;
use crate::table::Table;
use crate::upstream::PAYLOAD;

pub(super) fn measure(stand: &Stand, table: &mut Table) -> Result<()> {
    let plain = Way::new(stand, None)?;
    let boxed = Way::new(stand, Some("strict"))?;
    let (starts, rounds) = (stand.choose(40, 3), stand.choose(2000, 20));
    let mut times: [Vec<Duration>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..starts {
        // In turn, so that other load affects both alike.
        for (way, times) in [&plain, &boxed].into_iter().zip(&mut times) {
            times.push(way.first_call()?);
        }
    }
    let mut peers = [plain.peer()?, boxed.peer()?];
    let mut calls: [Vec<Duration>; 2] = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        for (peer, calls) in peers.iter_mut().zip(&mut calls) {
            calls.push(peer.time(&plain.call)?);
        }
    }
    for percent in [50, 90] {
        let [without, with] = times
            .each_ref()
            .map(|times| percentile(times, percent) * 1e3);
        table.add_own(
            format!("a start of mcpzip and a server until the first answer of a tool, p{percent}"),
            "ms",
            None,
            without,
        );
        table.add_own(
            format!("the same with the server in the sandbox \"strict\", p{percent}, added"),
            "ms",
            None,
            with - without,
        );
    }
    for percent in [50, 99] {
        let [without, with] = calls
            .each_ref()
            .map(|times| percentile(times, percent) * 1e6);
        table.add_own(
            format!(
                "a call of a server in the sandbox \"strict\", p{percent}, added to a plain call"
            ),
            "µs",
            None,
            with - without,
        );
    }
    Ok(())
}

/// mcpzip with one server, in a sandbox or without.
struct Way {
    profile: Profile,
    home: Home,
    call: Request,
    servers: Servers,
}

impl Way {
    fn new(stand: &Stand, sandbox: Option<&str>) -> Result<Self> {
        let servers = stand.servers(1, 0, false);
        let mut profile: Value = serde_json::from_str(include_str!("../../profiles/mcpzip.json"))?;
        let command = &servers.commands[0];
        let mut entry = json!({ "command": command[0], "args": command[1..] });
        if let Some(sandbox) = sandbox {
            entry["sandbox"] = json!(sandbox);
        }
        profile["files"]["config.json"]["mcpServers"] = json!({ server_name(0): entry });
        let profile = Profile::parse(&profile.to_string(), &stand.mcpzip.display().to_string())?;
        let call = profile.call(0, PAYLOAD, json!({ "bytes": 100 }));
        let way = Self {
            profile,
            home: Home::new()?,
            call,
            servers,
        };
        // Lists the tools, so that later starts know them.
        way.peer().map(|_| way)
    }

    fn peer(&self) -> Result<Peer> {
        let mut command = self.profile.command(&self.servers, &self.home)?;
        let mut peer = Peer::start("mcpzip", &mut command, false)?;
        peer.initialize()?;
        peer.ask_until_good(&self.call)?;
        Ok(peer)
    }

    /// The time from the start of mcpzip to the answer of a tool.
    fn first_call(&self) -> Result<Duration> {
        self.peer().map(|peer| peer.age())
    }
}
