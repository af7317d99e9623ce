//! Measures what sharing costs and saves: sessions that attach to a daemon and sessions that run alone, alternating.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::home::Home;
use crate::peer::{Peer, Request};

/// Numbers of measured starts, calls and sessions.
const STARTS: usize = 60;
const COLD_STARTS: usize = 15;
const CALLS: usize = 4000;
const SERVERS: usize = 10;
const SESSIONS: usize = 8;

struct Stand {
    mcpzip: PathBuf,
    home: Home,
}

/// Measures, and prints the table.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mcpzip = match arguments {
        [] => std::env::current_exe()?.with_file_name("mcpzip"),
        [name, file] if name == "--mcpzip" => file.into(),
        _ => bail!("usage: mcpzip-bench daemon [--mcpzip FILE]"),
    };
    let stand = Stand {
        mcpzip: mcpzip.canonicalize().context("the program to measure")?,
        home: Home::new()?,
    };
    let mut rows = Vec::new();
    stand.starts(&mut rows)?;
    stand.calls(&mut rows)?;
    stand.processes(&mut rows)?;
    stand.stop();
    let mut out = std::io::stdout().lock();
    for (what, alone, attached) in rows {
        writeln!(out, "{what:58} alone {alone:>10}  attached {attached:>10}")?;
    }
    Ok(())
}

impl Stand {
    fn command(&self, servers: usize, mode: &str, directory: &Path) -> Result<Command> {
        let home = self.home.path();
        let own = std::env::current_exe()?;
        let entries: serde_json::Map<_, _> = (0..servers)
            .map(|number| (format!("s{number}"), json!({ "command": own, "args": ["upstream", "--tools", "3", "--server", number.to_string()] })))
            .collect();
        let config = home.join(format!("config-{servers}.json"));
        std::fs::write(
            &config,
            json!({ "mcpServers": entries, "daemon": { "mode": mode, "idle": "1h" } }).to_string(),
        )?;
        let mut command = Command::new(&self.mcpzip);
        command
            .arg("serve")
            .arg("--config")
            .arg(config)
            .arg("--cache-dir")
            .arg(home.join("cache"))
            .arg("--state-dir")
            .arg(home.join("state"))
            .current_dir(directory)
            .env_clear()
            .env("HOME", home)
            .env("PATH", "/usr/bin:/bin");
        Ok(command)
    }

    fn peer(&self, servers: usize, mode: &str) -> Result<Peer> {
        Peer::start(
            mode,
            &mut self.command(servers, mode, self.home.path())?,
            false,
        )
    }

    /// Stops the daemon, if there is one.
    fn stop(&self) {
        for servers in [1, SERVERS] {
            let home = self.home.path();
            let _ = Command::new(&self.mcpzip)
                .args(["daemon", "stop", "--json", "--config"])
                .arg(home.join(format!("config-{servers}.json")))
                .arg("--cache-dir")
                .arg(home.join("cache"))
                .arg("--state-dir")
                .arg(home.join("state"))
                .env_clear()
                .env("HOME", home)
                .output();
        }
    }

    fn starts(&self, rows: &mut Vec<(String, String, String)>) -> Result<()> {
        let mut keeper = self.peer(1, "auto")?;
        keeper.initialize()?;
        let (mut alone, mut attached) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            alone.push(self.peer(1, "off")?.initialize()?);
            attached.push(self.peer(1, "auto")?.initialize()?);
        }
        drop(keeper);
        let mut cold = Vec::new();
        for _ in 0..COLD_STARTS {
            self.stop();
            // Its sessions have to end first.
            std::thread::sleep(Duration::from_millis(300));
            cold.push(self.peer(1, "auto")?.initialize()?);
        }
        for (name, percent) in [("min", 0), ("p50", 50), ("p95", 95)] {
            rows.push((
                format!("spawn to `initialize` answered, {name}, ms"),
                milliseconds(&alone, percent),
                milliseconds(&attached, percent),
            ));
        }
        rows.push((
            "the same with the start of the daemon, p50, ms".to_owned(),
            String::new(),
            milliseconds(&cold, 50),
        ));
        Ok(())
    }

    fn calls(&self, rows: &mut Vec<(String, String, String)>) -> Result<()> {
        let call = Request::call(
            &json!({ "name": "execute_tool", "arguments": { "name": "s0__payload", "arguments": { "bytes": 100 } } }),
        );
        let mut peers = [self.peer(1, "off")?, self.peer(1, "auto")?];
        let mut times = [Vec::new(), Vec::new()];
        for peer in &mut peers {
            peer.initialize()?;
            peer.ask_until_good(&call)?;
        }
        for round in 0..CALLS {
            for at in [round % 2, 1 - round % 2] {
                times[at].push(peers[at].time(&call)?);
            }
        }
        for (name, percent) in [("min", 0), ("p50", 50), ("p95", 95)] {
            rows.push((
                format!("a call, {name}, ms"),
                milliseconds(&times[0], percent),
                milliseconds(&times[1], percent),
            ));
        }
        Ok(())
    }

    /// Counts processes of sessions with ten servers, in one directory and in a directory each.
    fn processes(&self, rows: &mut Vec<(String, String, String)>) -> Result<()> {
        for is_one in [true, false] {
            let mut figures = Vec::new();
            for mode in ["off", "auto"] {
                let mut peers = Vec::new();
                for session in 0..SESSIONS {
                    let directory = self
                        .home
                        .path()
                        .join(format!("d{}", if is_one { 0 } else { session }));
                    std::fs::create_dir_all(&directory)?;
                    let mut peer =
                        Peer::start(mode, &mut self.command(SERVERS, mode, &directory)?, false)?;
                    peer.initialize()?;
                    for server in 0..SERVERS {
                        let name = format!("s{server}__payload");
                        peer.ask_until_good(&Request::call(&json!({ "name": "execute_tool", "arguments": { "name": name, "arguments": { "bytes": 1 } } })))?;
                    }
                    peers.push(peer);
                }
                figures.push(format!("{}", self.servers()?));
                drop(peers);
                self.stop();
                std::thread::sleep(Duration::from_millis(500));
            }
            let place = if is_one {
                "one directory"
            } else {
                "a directory each"
            };
            rows.push((
                format!("server processes of {SESSIONS} sessions of {SERVERS} servers, {place}"),
                figures[0].clone(),
                figures[1].clone(),
            ));
        }
        Ok(())
    }

    /// The number of scripted servers of this home that are running.
    fn servers(&self) -> Result<usize> {
        let mut count = 0;
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let Ok(environment) = std::fs::read(entry.path().join("environ")) else {
                continue;
            };
            let Ok(command) = std::fs::read(entry.path().join("cmdline")) else {
                continue;
            };
            let has = |text: &[u8], part: &[u8]| memchr::memmem::find(text, part).is_some();
            let home = self.home.path().to_string_lossy().into_owned();
            if has(&command, b"upstream\0--tools")
                && has(&environment, format!("HOME={home}").as_bytes())
            {
                count += 1;
            }
        }
        Ok(count)
    }
}

fn milliseconds(times: &[Duration], percent: usize) -> String {
    let mut times = times.to_vec();
    times.sort_unstable();
    let time = times[(times.len() - 1) * percent / 100];
    format!("{:.3}", time.as_secs_f64() * 1e3)
}
