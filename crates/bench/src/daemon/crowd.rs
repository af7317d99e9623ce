//! Processes and memory of many sessions at once.

use anyhow::Result;
use serde_json::json;

use super::rows::Rows;
use super::{MODES, SERVERS, Stand, Started};
use crate::peer::Request;
use crate::usage;

/// Sessions that are started together.
struct Crowd {
    sessions: usize,
    is_known: bool,
    is_one_directory: bool,
}

const CROWDS: [Crowd; 5] = [
    Crowd::new(8, false, true),
    Crowd::new(8, false, false),
    Crowd::new(8, true, true),
    Crowd::new(8, true, false),
    Crowd::new(32, true, false),
];

/// The processes and the memory of a crowd.
struct Taken {
    servers: usize,
    processes: usize,
    /// Proportional memory of all of its processes, in megabytes.
    memory: f64,
}

impl Crowd {
    const fn new(sessions: usize, is_known: bool, is_one_directory: bool) -> Self {
        Self {
            sessions,
            is_known,
            is_one_directory,
        }
    }

    fn name(&self) -> String {
        let servers = if self.is_known { "known" } else { "unknown" };
        let directories = if self.is_one_directory {
            "one directory"
        } else {
            "a directory each"
        };
        format!(
            "{} sessions of {SERVERS} {servers} servers, {directories}",
            self.sessions
        )
    }

    /// Starts the sessions, each of which calls each server.
    fn run(&self, stand: &Stand, mode: &str) -> Result<Taken> {
        let mut peers = Vec::new();
        for session in 0..self.sessions {
            let number = if self.is_one_directory { 0 } else { session };
            let directory = stand.home.path().join(format!("d{number}"));
            std::fs::create_dir_all(&directory)?;
            let started = Started {
                servers: SERVERS,
                is_known: self.is_known,
                directory: &directory,
            };
            let mut peer = stand.start(mode, &started)?;
            peer.initialize()?;
            for server in 0..SERVERS {
                let name = format!("s{server}__payload");
                let arguments = json!({ "name": name, "arguments": { "bytes": 1 } });
                peer.ask_until_good(&Request::call(
                    &json!({ "name": "execute_tool", "arguments": arguments }),
                ))?;
            }
            peers.push(peer);
        }
        let processes = usage::processes_of(stand.home.path())?;
        let taken = Taken {
            servers: processes
                .iter()
                .filter(|process| process.command.contains(" upstream "))
                .count(),
            processes: processes.len(),
            memory: processes.iter().map(|process| process.memory).sum(),
        };
        drop(peers);
        stand.stop(SERVERS, self.is_known);
        Ok(taken)
    }
}

pub(super) fn measure(stand: &Stand, rows: &mut Rows) -> Result<()> {
    for crowd in CROWDS {
        let [alone, attached] = MODES.map(|mode| crowd.run(stand, mode));
        let (alone, attached) = (alone?, attached?);
        let name = crowd.name();
        let count = |count: usize| count as f64;
        rows.add(
            format!("{name}: server processes"),
            None,
            Some(count(alone.servers)),
            count(attached.servers),
        );
        rows.add(
            format!("{name}: all processes"),
            None,
            Some(count(alone.processes)),
            count(attached.processes),
        );
        rows.add(
            format!("{name}: memory (PSS), MB"),
            None,
            Some(alone.memory),
            attached.memory,
        );
    }
    Ok(())
}
