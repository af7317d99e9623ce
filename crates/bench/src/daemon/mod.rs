//! Measures sessions that attach to a daemon and sessions that run alone, in turn.

mod crowd;
mod rows;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::json;

use crate::home::Home;
use crate::machine;
use crate::peer::{Peer, Request};
use crate::{page, usage};
use rows::{Bar, Rows};

/// Starts that are measured.
const STARTS: usize = 60;
const COLD_STARTS: usize = 15;

/// Pairs of a session alone and an attached one, each with so many calls in turn.
const PAIRS: usize = 9;
const CALLS: usize = 1500;

/// Commands that are measured, as processes.
const COMMANDS: usize = 40;

const SERVERS: usize = 10;

/// The modes, in the order of the columns.
const MODES: [&str; 2] = ["off", "auto"];

struct Stand {
    mcpzip: PathBuf,
    home: Home,
}

/// The servers and the directory of a session.
struct Started<'a> {
    servers: usize,
    /// Whether the table of packages knows the servers, which belong to all sessions then.
    is_known: bool,
    directory: &'a Path,
}

/// Prints the figures.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (mut mcpzip, mut repository) = (None, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let place = match word.as_str() {
            "--mcpzip" => &mut mcpzip,
            "--update" => &mut repository,
            _ => bail!("usage: mcpzip-bench daemon [--mcpzip FILE] [--update DIR]"),
        };
        *place = Some(PathBuf::from(
            words
                .next()
                .with_context(|| format!("{word} needs a value"))?,
        ));
    }
    let mcpzip = match mcpzip {
        Some(file) => file,
        None => std::env::current_exe()?.with_file_name("mcpzip"),
    };
    let stand = Stand {
        mcpzip: mcpzip.canonicalize().context("the program to measure")?,
        home: Home::new()?,
    };
    stand.prepare()?;
    let mut rows = Rows::new(machine::describe(&stand.mcpzip));
    stand.starts(&mut rows).context("starts")?;
    stand.calls(&mut rows).context("calls")?;
    stand.commands(&mut rows).context("commands")?;
    crowd::measure(&stand, &mut rows).context("many sessions")?;
    rows.print()?;
    match repository {
        Some(repository) => page::update_daemon(&repository, &rows.to_markdown()),
        None => Ok(()),
    }
}

impl Stand {
    /// Writes the configurations, and an `npx` that runs the scripted server.
    fn prepare(&self) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let programs = self.home.path().join("programs");
        std::fs::create_dir_all(&programs)?;
        let npx = programs.join("npx");
        let own = std::env::current_exe()?;
        let script = format!(
            "#!/bin/sh\nexec '{}' upstream --tools 3 --server \"$3\"\n",
            own.display()
        );
        std::fs::write(&npx, script)?;
        std::fs::set_permissions(&npx, std::fs::Permissions::from_mode(0o755))?;
        for (servers, is_known) in [(1, false), (SERVERS, false), (SERVERS, true)] {
            self.configure(servers, is_known)?;
        }
        Ok(())
    }

    fn configure(&self, servers: usize, is_known: bool) -> Result<()> {
        let own = std::env::current_exe()?;
        let entry = |number: usize| {
            let number = number.to_string();
            if is_known {
                json!({ "command": "npx", "args": ["-y", "@upstash/context7-mcp", number] })
            } else {
                json!({ "command": own, "args": ["upstream", "--tools", "3", "--server", number] })
            }
        };
        let entries: serde_json::Map<_, _> = (0..servers)
            .map(|number| (format!("s{number}"), entry(number)))
            .collect();
        let text = json!({ "mcpServers": entries, "daemon": { "mode": "auto", "idle": "1h" } });
        Ok(std::fs::write(
            self.config(servers, is_known),
            text.to_string(),
        )?)
    }

    fn config(&self, servers: usize, is_known: bool) -> PathBuf {
        let kind = if is_known { "known" } else { "unknown" };
        self.home.path().join(format!("{kind}-{servers}.json"))
    }

    /// `mcpzip` with these words, in a mode.
    fn command(&self, words: &[&str], mode: &str, started: &Started<'_>) -> Command {
        let home = self.home.path();
        let path = format!("{}:/usr/bin:/bin", home.join("programs").display());
        let mut command = Command::new(&self.mcpzip);
        command
            .args(words)
            .args((mode == "off").then_some("--alone"))
            .arg("--config")
            .arg(self.config(started.servers, started.is_known))
            .arg("--cache-dir")
            .arg(home.join("cache"))
            .arg("--state-dir")
            .arg(home.join("state"))
            .current_dir(started.directory)
            .env_clear()
            .env("HOME", home)
            .env("PATH", path);
        command
    }

    fn start(&self, mode: &str, started: &Started<'_>) -> Result<Peer> {
        Peer::start(mode, &mut self.command(&["serve"], mode, started), false)
    }

    /// One server, in the home.
    fn one(&self) -> Started<'_> {
        Started {
            servers: 1,
            is_known: false,
            directory: self.home.path(),
        }
    }

    /// A session of one server.
    fn peer(&self, mode: &str) -> Result<Peer> {
        self.start(mode, &self.one())
    }

    /// Ends the daemon of a configuration. A failure means that none runs.
    fn stop(&self, servers: usize, is_known: bool) {
        let home = self.home.path();
        let _ = Command::new(&self.mcpzip)
            .args(["daemon", "stop", "--json", "--config"])
            .arg(self.config(servers, is_known))
            .arg("--cache-dir")
            .arg(home.join("cache"))
            .arg("--state-dir")
            .arg(home.join("state"))
            .env_clear()
            .env("HOME", home)
            .output();
        // Its sessions part first.
        std::thread::sleep(Duration::from_millis(300));
    }

    fn starts(&self, rows: &mut Rows) -> Result<()> {
        let mut keeper = self.peer("auto")?;
        keeper.initialize()?;
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..STARTS {
            for at in [round % 2, 1 - round % 2] {
                times[at].push(self.peer(MODES[at])?.initialize()?);
            }
        }
        let mut private = Vec::new();
        for mode in MODES {
            let mut peer = self.peer(mode)?;
            peer.initialize()?;
            std::thread::sleep(Duration::from_millis(200));
            private.push(usage::private(peer.process())?);
        }
        drop(keeper);
        let mut cold = Vec::new();
        for _ in 0..COLD_STARTS {
            self.stop(1, false);
            cold.push(self.peer("auto")?.initialize()?);
        }
        self.stop(1, false);
        for (name, percent) in [("min", 0), ("p50", 50), ("p95", 95)] {
            rows.add(
                format!("start of `serve` to `initialize` answered, {name}, ms"),
                (percent == 50).then_some(Bar::AtMost(3.0)),
                Some(milliseconds(&times[0], percent)),
                milliseconds(&times[1], percent),
            );
        }
        rows.add(
            "the same with the start of the daemon, p50, ms",
            Some(Bar::AtMost(15.0)),
            None,
            milliseconds(&cold, 50),
        );
        rows.add(
            "private memory of the process that the client started, MB",
            Some(Bar::AtMost(1.0)),
            Some(private[0]),
            private[1],
        );
        Ok(())
    }

    /// Calls of an attached session and of one alone, in turn. Each pair starts a new daemon; the ratio is the median of all pairs.
    fn calls(&self, rows: &mut Rows) -> Result<()> {
        let call = Request::call(
            &json!({ "name": "execute_tool", "arguments": { "name": "s0__payload", "arguments": { "bytes": 100 } } }),
        );
        let (mut ratios, mut all) = (Vec::new(), [Vec::new(), Vec::new()]);
        for _ in 0..PAIRS {
            let mut peers = [self.peer(MODES[0])?, self.peer(MODES[1])?];
            for peer in &mut peers {
                peer.initialize()?;
                peer.ask_until_good(&call)?;
            }
            let mut times = [Vec::new(), Vec::new()];
            for round in 0..CALLS {
                for at in [round % 2, 1 - round % 2] {
                    times[at].push(peers[at].time(&call)?);
                }
            }
            ratios.push(milliseconds(&times[1], 50) / milliseconds(&times[0], 50));
            for (all, times) in all.iter_mut().zip(times) {
                all.extend(times);
            }
        }
        self.stop(1, false);
        for (name, percent) in [("min", 0), ("p50", 50), ("p95", 95)] {
            let [alone, attached] = [0, 1].map(|at| 1e3 * milliseconds(&all[at], percent));
            rows.add(format!("a call, {name}, µs"), None, Some(alone), attached);
        }
        ratios.sort_unstable_by(f64::total_cmp);
        rows.add(
            format!("a call: times the session alone, median of {PAIRS} pairs"),
            Some(Bar::AtMost(1.05)),
            Some(1.0),
            ratios[PAIRS / 2],
        );
        Ok(())
    }
    /// `mcpzip call` as a process: to a server that a session has started, and with a server of its own.
    fn commands(&self, rows: &mut Rows) -> Result<()> {
        let mut keeper = self.peer("auto")?;
        keeper.initialize()?;
        keeper.ask_until_good(&Request::call(
            &json!({ "name": "execute_tool", "arguments": { "name": "s0__payload", "arguments": { "bytes": 100 } } }),
        ))?;
        let words = ["call", "s0__payload", r#"{"bytes":100}"#];
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..COMMANDS {
            for at in [round % 2, 1 - round % 2] {
                let mut command = self.command(&words, MODES[at], &self.one());
                let start = Instant::now();
                let output = command.output()?;
                times[at].push(start.elapsed());
                if !output.status.success() {
                    bail!("{}", String::from_utf8_lossy(&output.stderr));
                }
            }
        }
        drop(keeper);
        self.stop(1, false);
        for (name, percent) in [("min", 0), ("p50", 50), ("p95", 95)] {
            rows.add(
                format!("`mcpzip call` as a process, {name}, ms"),
                (percent == 50).then_some(Bar::AtMost(15.0)),
                Some(milliseconds(&times[0], percent)),
                milliseconds(&times[1], percent),
            );
        }
        Ok(())
    }
}

fn milliseconds(times: &[Duration], percent: usize) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let time = times[(times.len() - 1) * percent / 100];
    time.as_secs_f64() * 1e3
}
