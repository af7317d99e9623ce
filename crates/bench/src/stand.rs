//! The measured ways, and the servers behind them.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use std::cell::OnceCell;

use anyhow::{Result, bail};
use serde_json::json;

use crate::home::Home;
use crate::peer::{Peer, Request};
use crate::profile::{Profile, Servers};
use crate::upstream::PAYLOAD;

/// The indexes of the three ways that every run measures.
pub(crate) const DIRECT: usize = 0;
pub(crate) const RELAY: usize = 1;
pub(crate) const MCPZIP: usize = 2;

/// Time limit for listing all tools, or for embedding them.
const PREPARATION: Duration = Duration::from_secs(1800);

#[derive(Debug)]
pub(crate) struct Stand {
    pub(crate) ways: Vec<Profile>,
    pub(crate) is_quick: bool,
    pub(crate) mcpzip: std::path::PathBuf,
    is_verbose: bool,
    own: String,
    /// By way: a home in which all tools of [`Stand::many`] are listed and embedded, and the time that this took.
    homes: Vec<OnceCell<(Home, Duration)>>,
}

/// The processes of one way.
#[derive(Debug)]
pub(crate) struct Line {
    /// One process, or one per server.
    pub(crate) peers: Vec<Peer>,
    servers: usize,
    pub(crate) way: usize,
    _home: Home,
}

impl Stand {
    pub(crate) fn new(
        own: &Path,
        mcpzip: &Path,
        others: Vec<Profile>,
        is_quick: bool,
        is_verbose: bool,
    ) -> Result<Self> {
        let own_text = own.display().to_string();
        let pass = include_str!("../profiles/pass-through.json");
        let mut relay = Profile::parse(pass, &own_text)?;
        "relay".clone_into(&mut relay.name);
        let direct = Profile::parse(
            r#"{"name":"direct","command":["{upstream}"],"call":{"name":"{tool}","arguments":"{arguments}"}}"#,
            "",
        )?;
        let ours = Profile::parse(
            include_str!("../profiles/mcpzip.json"),
            &mcpzip.display().to_string(),
        )?;
        let ways: Vec<Profile> = [direct, relay, ours].into_iter().chain(others).collect();
        let homes = ways.iter().map(|_| OnceCell::new()).collect();
        Ok(Self {
            ways,
            is_quick,
            mcpzip: mcpzip.to_owned(),
            is_verbose,
            own: own_text,
            homes,
        })
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.ways.iter().map(|way| way.name.clone()).collect()
    }

    /// Returns `whole` in a whole run and `quick` in a quick one.
    pub(crate) fn choose<T>(&self, whole: T, quick: T) -> T {
        if self.is_quick { quick } else { whole }
    }

    /// Prints the progress.
    pub(crate) fn say(&self, text: &str) {
        // stderr may be closed.
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    /// Scripted servers with `tools` tools in total, in addition to the one that gives results.
    pub(crate) fn servers(&self, count: usize, tools: usize, is_semantic: bool) -> Servers {
        let each = tools / count;
        let command = |at: usize| {
            [
                &self.own,
                "upstream",
                "--tools",
                &each.to_string(),
                "--server",
                &at.to_string(),
            ]
            .map(str::to_owned)
            .to_vec()
        };
        Servers {
            commands: (0..count).map(command).collect(),
            tools: (each + 1) * count,
            is_semantic,
        }
    }

    /// The servers for the bars with many tools: ten thousand tools on twenty servers.
    pub(crate) fn many(&self) -> Servers {
        self.servers(20, self.choose(10_000, 200), true)
    }

    /// A home in which a way knows all of these tools. The first use takes minutes, because each tool is embedded.
    pub(crate) fn learned(&self, way: usize) -> Result<&Home> {
        Ok(&self.learning(way)?.0)
    }

    /// That home, and the time from the first start in it until every tool was listed and embedded.
    pub(crate) fn learning(&self, way: usize) -> Result<&(Home, Duration)> {
        if let Some(known) = self.homes[way].get() {
            return Ok(known);
        }
        self.say(&format!(
            "{} learns of {} tools …",
            self.ways[way].name,
            self.many().tools
        ));
        let home = Home::new()?;
        let mut peer = self.start(way, &self.many(), &home)?;
        peer.initialize()?;
        self.prepare(way, &mut peer, &self.many())?;
        let time = peer.age();
        drop(peer);
        Ok(self.homes[way].get_or_init(|| (home, time)))
    }

    /// Starts a way in a home, which may have been used before.
    pub(crate) fn start(&self, way: usize, servers: &Servers, home: &Home) -> Result<Peer> {
        let profile = &self.ways[way];
        Peer::start(
            &profile.name,
            &mut profile.command(servers, home)?,
            self.is_verbose,
        )
    }

    /// Starts a way and waits until calls to all servers work.
    pub(crate) fn line(&self, way: usize, servers: &Servers) -> Result<Line> {
        let home = Home::new()?;
        let parts: Vec<Servers> = if self.ways[way].is_gateway() {
            vec![servers.clone()]
        } else {
            servers
                .commands
                .iter()
                .map(|one| Servers {
                    commands: vec![one.clone()],
                    ..servers.clone()
                })
                .collect()
        };
        let mut peers = Vec::new();
        for part in &parts {
            let mut peer = self.start(way, part, &home)?;
            peer.initialize()?;
            peers.push(peer);
        }
        let mut line = Line {
            peers,
            servers: servers.commands.len(),
            way,
            _home: home,
        };
        for server in 0..line.servers {
            let request = line.payload(self, server, 100);
            line.peer(server).ask_until_good(&request)?;
        }
        Ok(line)
    }

    /// Waits until a program knows all tools and, if `servers` say so, can find them by meaning.
    pub(crate) fn prepare(&self, way: usize, peer: &mut Peer, servers: &Servers) -> Result<()> {
        let profile = &self.ways[way];
        let signs = [
            profile.listed.as_ref(),
            profile.understood.as_ref().filter(|_| servers.is_semantic),
        ];
        if profile.listed.is_none() && profile.search("").is_some() {
            std::thread::sleep(Duration::from_secs(20));
        }
        for sign in signs.into_iter().flatten() {
            let (request, text) = sign.of(servers);
            let start = Instant::now();
            while !peer.text(&request)?.contains(&text) {
                if start.elapsed() > PREPARATION {
                    bail!("{} never said `{text}`", profile.name);
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        }
        Ok(())
    }
}

impl Line {
    /// The process through which this server is reached.
    pub(crate) fn peer(&mut self, server: usize) -> &mut Peer {
        let at = if self.peers.len() == 1 { 0 } else { server };
        &mut self.peers[at]
    }

    /// A call that the server answers with `bytes` bytes of text.
    pub(crate) fn payload(&self, stand: &Stand, server: usize, bytes: usize) -> Request {
        stand.ways[self.way].call(server, PAYLOAD, json!({ "bytes": bytes }))
    }

    /// A call that the server answers after `delay` milliseconds.
    pub(crate) fn late(&self, stand: &Stand, server: usize, delay: u64) -> Request {
        stand.ways[self.way].call(server, PAYLOAD, json!({ "bytes": 100, "delay": delay }))
    }
}
