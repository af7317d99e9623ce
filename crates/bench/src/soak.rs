//! A soak test: an hour of mixed load with faults on thirty servers. At its end, `mcpzip` must use no more of the
//! machine than at its beginning.
//!
//! Two thirds of the servers are good, one third fails on request. With `--real`, packages of npm and PyPI are added.
//! During the load, another process with the same files is killed and restarted, and the configuration is replaced by
//! other ones and by an invalid one. A line is printed each minute, and the verdict at the end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::faulty::FAULTS;
use crate::home::Home;
use crate::peer::{Peer, Request};
use crate::profile::{Profile, Servers};
use crate::usage::Usage;

const GOOD: usize = 20;
const FAULTY: usize = 10;
const TOOLS: usize = 20;

/// Pause before the figures at both ends are taken, in which unused servers are closed.
const SETTLING: Duration = Duration::from_secs(45);

/// Permitted growth of a process, in megabytes and descriptors. The number of pool threads varies.
const MORE_MEMORY: f64 = 12.0;
const MORE_DESCRIPTORS: usize = 4;
const MORE_THREADS: usize = 4;

/// Real servers: the command, and a tool with its argument.
const REAL: [(&[&str], &str, &str, &str); 2] = [
    (
        &[
            "npx",
            "-y",
            "@modelcontextprotocol/server-everything@2026.8.31",
            "stdio",
        ],
        "echo",
        "message",
        "hello",
    ),
    (
        &["uvx", "mcp-server-time"],
        "get_current_time",
        "timezone",
        "UTC",
    ),
];

/// The requests sent so far and their outcomes.
struct Load {
    peer: Peer,
    rival: Option<Peer>,
    profile: Profile,
    command: Command,
    home: Home,
    random: u64,
    /// Directories of the real servers that can be run.
    real: Vec<usize>,
    answered: usize,
    failed: usize,
    /// Failed calls of good servers. There must be none.
    broken: usize,
    /// The slowest answer of a good server.
    slowest: Duration,
}

/// Parses the arguments after `soak` and runs it.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let own = std::env::current_exe()?;
    let mut mcpzip = own
        .with_file_name("mcpzip")
        .with_extension(std::env::consts::EXE_EXTENSION);
    let (mut minutes, mut is_real) = (60, false);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || {
            words
                .next()
                .with_context(|| format!("{word} needs a value"))
        };
        match word.as_str() {
            "--minutes" => minutes = value()?.parse()?,
            "--mcpzip" => mcpzip = PathBuf::from(value()?),
            "--real" => is_real = true,
            _ => bail!("usage: mcpzip-bench soak [--minutes N] [--mcpzip FILE] [--real]"),
        }
    }
    soak(&own, &std::path::absolute(mcpzip)?, minutes, is_real)
}

fn soak(own: &Path, mcpzip: &Path, minutes: u64, is_real: bool) -> Result<()> {
    println(&format!("{}\n", crate::machine::describe(mcpzip)))?;
    let profile = Profile::parse(
        include_str!("../profiles/mcpzip.json"),
        &mcpzip.display().to_string(),
    )?;
    let mut load = Load::start(own, profile, is_real)?;
    load.settle()?;
    let before = Usage::of(load.peer.process())?;
    println(
        "minute  resident MB  descriptors  threads  processes  answered  failed  slowest good answer",
    )?;
    println(&line("start", &before, &load))?;
    for minute in 1..=minutes {
        let end = Instant::now() + Duration::from_secs(60);
        load.disturb(minute)?;
        while Instant::now() < end {
            load.round()?;
            std::thread::sleep(Duration::from_millis(100));
        }
        println(&line(
            &minute.to_string(),
            &Usage::of(load.peer.process())?,
            &load,
        ))?;
        load.slowest = Duration::ZERO;
    }
    load.rival = None;
    load.settle()?;
    let after = Usage::of(load.peer.process())?;
    println(&line("end", &after, &load))?;
    let id = load.peer.process();
    let broken = load.broken;
    drop(load);
    verdict(&before, &after, broken, Usage::of(id).is_ok())
}

fn verdict(before: &Usage, after: &Usage, broken: usize, is_left: bool) -> Result<()> {
    let mut faults = Vec::new();
    if broken > 0 {
        faults.push(format!("{broken} calls of good servers failed"));
    }
    if after.resident > before.resident + MORE_MEMORY {
        faults.push(format!(
            "memory grew from {:.1} to {:.1} MB",
            before.resident, after.resident
        ));
    }
    let counts = [
        (
            "descriptors",
            before.descriptors,
            after.descriptors,
            MORE_DESCRIPTORS,
        ),
        ("threads", before.threads, after.threads, MORE_THREADS),
        ("processes", before.processes, after.processes, 0),
    ];
    for (what, before, after, more) in counts {
        if after > before + more {
            faults.push(format!("{what}: {before} before, {after} after"));
        }
    }
    if is_left {
        faults.push("it did not end".to_owned());
    }
    match faults.is_empty() {
        true => println("\nat the end all is as it was at the beginning"),
        false => bail!("at the end not all is as it was: {}", faults.join("; ")),
    }
}

fn line(when: &str, usage: &Usage, load: &Load) -> String {
    format!(
        "{when:>6}  {:>11.1}  {:>11}  {:>7}  {:>9}  {:>8}  {:>6}  {:>16.1} ms",
        usage.resident,
        usage.descriptors,
        usage.threads,
        usage.processes,
        load.answered,
        load.failed,
        load.slowest.as_secs_f64() * 1000.0
    )
}

/// Whether a program is on the `PATH`.
fn is_found(program: &str) -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "the soak has no configuration of its own"
    )]
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn println(text: &str) -> Result<()> {
    use std::io::Write as _;
    let mut output = std::io::stdout().lock();
    writeln!(output, "{text}")?;
    Ok(output.flush()?)
}

impl Load {
    fn start(own: &Path, profile: Profile, is_real: bool) -> Result<Self> {
        let own = own.display().to_string();
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<_>>()
        };
        let good = (0..GOOD).map(|at| {
            words(&[
                &own,
                "upstream",
                "--tools",
                &TOOLS.to_string(),
                "--server",
                &at.to_string(),
            ])
        });
        let faulty = (0..FAULTY).map(|_| words(&[&own, "faulty"]));
        let mut commands: Vec<Vec<String>> = good.chain(faulty).collect();
        let real: Vec<usize> = (0..REAL.len())
            .filter(|at| is_real && is_found(REAL[*at].0[0]))
            .collect();
        commands.extend(real.iter().map(|at| words(REAL[*at].0)));
        let servers = Servers {
            commands,
            tools: 0,
            is_semantic: false,
        };
        let home = Home::new()?;
        let mut command = profile.command(&servers, &home)?;
        let config = home.path().join("config.json");
        let mut settings: Value = serde_json::from_slice(&std::fs::read(&config)?)?;
        for (name, value) in [("call_timeout", "2s"), ("idle_timeout", "10s")] {
            settings[name] = value.into();
        }
        std::fs::write(&config, settings.to_string())?;
        let mut peer = Peer::start("mcpzip", &mut command, false)?;
        peer.initialize()?;
        let random = 0x9e37_79b9_7f4a_7c15;
        let (answered, failed, broken, slowest) = (0, 0, 0, Duration::ZERO);
        let mut load = Self {
            peer,
            rival: None,
            profile,
            command,
            home,
            random,
            real,
            answered,
            failed,
            broken,
            slowest,
        };
        // Each server is called once before anything is counted.
        for server in 0..GOOD {
            let request = load.payload(server, 100);
            load.peer.ask_until_good(&request)?;
        }
        for server in GOOD..GOOD + FAULTY {
            let request = load.profile.call(server, "answer", json!({}));
            load.peer.ask_until_good(&request)?;
        }
        Ok(load)
    }

    /// Waits until unused servers are closed.
    fn settle(&mut self) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < SETTLING {
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(())
    }

    /// Makes the disturbance of a minute: starts or kills another process, or changes the configuration.
    fn disturb(&mut self, minute: u64) -> Result<()> {
        let config = self.home.path().join("config.json");
        let good = std::fs::read(&config)?;
        match minute % 4 {
            0 => {
                // The file is invalid for three seconds. Running programs must continue.
                std::fs::write(&config, "{ nonsense")?;
                for _ in 0..20 {
                    self.round()?;
                    std::thread::sleep(Duration::from_millis(150));
                }
            }
            1 => {
                // Adds a server, or removes it again.
                let mut settings: Value = serde_json::from_slice(&good)?;
                settings["mcpServers"]["extra"] = settings["mcpServers"]["server0"].clone();
                std::fs::write(&config, settings.to_string())?;
                for _ in 0..20 {
                    self.round()?;
                    std::thread::sleep(Duration::from_millis(150));
                }
            }
            _ => {}
        }
        std::fs::write(&config, good)?;
        if let Some(mut rival) = self.rival.take() {
            rival.kill();
        } else {
            let mut rival = Peer::start("another mcpzip", &mut self.command, false)?;
            rival.initialize()?;
            rival.ask(&self.profile.search("invoice").context("it searches")?)?;
            self.rival = Some(rival);
        }
        Ok(())
    }

    /// Sends a mixture of requests at once, then one timed call of a good server.
    fn round(&mut self) -> Result<()> {
        let mut requests = Vec::new();
        for _ in 0..6 {
            requests.push(self.next_request());
        }
        let failed = self.peer.burst(&requests)?;
        self.answered += requests.len();
        self.failed += failed;
        let server = self.below(GOOD);
        let request = self.payload(server, 100);
        let start = Instant::now();
        self.broken += self.peer.burst(&[request])?;
        self.slowest = self.slowest.max(start.elapsed());
        self.answered += 1;
        Ok(())
    }

    fn next_request(&mut self) -> Request {
        let server = self.below(GOOD);
        match self.below(100) {
            0..50 => self.payload(server, 100),
            50..60 => self.payload(server, 100_000),
            60..62 => self.payload(server, 2_000_000),
            62..65 => self.profile.call(
                server,
                crate::upstream::PAYLOAD,
                json!({ "bytes": 100, "delay": 700 }),
            ),
            65..75 => {
                let query = [
                    "invoice",
                    "calendar event",
                    "send a message to a customer",
                    "zzz",
                ][self.below(4)];
                self.profile
                    .search(query)
                    .unwrap_or_else(|| Request::method("ping"))
            }
            75..78 => Request::method("tools/list"),
            78..80 => Request::call(&json!({
                "name": "execute_tool",
                "arguments": { "name": "mcpzip__status" },
            })),
            80..83 => Request::call(
                &json!({ "name": "execute_tool", "arguments": { "name": "no_such__tool" } }),
            ),
            83..85 => Request::call(
                &json!({ "name": "describe_tool", "arguments": { "name": "payload" } }),
            ),
            85..87 if !self.real.is_empty() => {
                let at = self.below(self.real.len());
                let (_, tool, name, value) = REAL[self.real[at]];
                self.profile
                    .call(GOOD + FAULTY + at, tool, json!({ name: value }))
            }
            _ => {
                let (server, fault) = (GOOD + self.below(FAULTY), self.below(FAULTS.len()));
                self.profile.call(server, FAULTS[fault], json!({}))
            }
        }
    }

    fn payload(&self, server: usize, bytes: usize) -> Request {
        self.profile
            .call(server, crate::upstream::PAYLOAD, json!({ "bytes": bytes }))
    }

    /// A repeatable random number below `limit` (xorshift).
    fn below(&mut self, limit: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % limit as u64) as usize
    }
}
