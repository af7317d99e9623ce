//! A separate home for `mcpzip`, with servers in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::client::{Client, until};
use super::command::{self, Outcome};
use super::process::Mark;
#[cfg(target_os = "linux")]
use super::process::{self, Process};
use super::program;
use super::script::Server;

/// The configuration and environment of `mcpzip`. Several processes may run with one, in parallel or in sequence.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Setup {
    home: Arc<Home>,
    servers: BTreeMap<String, String>,
    settings: Vec<String>,
    variables: Vec<(String, String)>,
    log: &'static str,
    /// The value of `MCPZIP_DAEMON`; `None` leaves the mode to the configuration.
    daemon: Option<String>,
}

/// The directory of a home. It is removed with its last user.
#[derive(Debug)]
pub(crate) struct Home {
    directory: TempDir,
    /// The mark of every process of this home, which finds those that are left behind.
    pub(crate) mark: Mark,
}

impl Setup {
    /// An empty home.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mark = Mark::new(format!(
            "{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        ));
        let directory = TempDir::new().expect("there is a directory for temporary files");
        let setup = Self {
            home: Arc::new(Home { directory, mark }),
            servers: BTreeMap::new(),
            settings: Vec::new(),
            variables: Vec::new(),
            log: "debug",
            daemon: Some(usual_mode()),
        };
        for directory in ["home", "cache", "state"] {
            std::fs::create_dir(setup.home.path(directory)).unwrap();
        }
        setup
    }

    /// Configures a fake server, or replaces the script of an existing one.
    pub(crate) fn server(self, name: &str, script: Server) -> Self {
        self.server_with(name, script, json!({}))
    }

    /// Configures a fake server with additional members in its entry.
    pub(crate) fn server_with(
        self,
        name: &str,
        script: Server,
        members: serde_json::Value,
    ) -> Self {
        let path = self.home.path(&format!("{name}.script.json"));
        std::fs::write(&path, script.to_json()).unwrap();
        let mut entry = json!({
            "command": program::fake_server(),
            "args": [path, self.home.path(&format!("{name}.log"))],
            "env": { Mark::VARIABLE: self.home.mark.to_string() },
        });
        for (key, value) in members.as_object().expect("members are an object") {
            match (entry[key].as_object_mut(), value.as_object()) {
                (Some(known), Some(more)) => known.extend(more.clone()),
                _ => entry[key] = value.clone(),
            }
        }
        self.entry(name, &entry.to_string())
    }

    /// Configures a server by the text of its entry.
    pub(crate) fn entry(mut self, name: &str, entry: &str) -> Self {
        self.servers.insert(name.to_owned(), entry.to_owned());
        self
    }

    /// Removes a server.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.servers.remove(name);
        self
    }

    /// Sets a setting outside of the servers, in place of an earlier one.
    pub(crate) fn setting(mut self, key: &str, value: serde_json::Value) -> Self {
        let key = format!("{}:", json!(key));
        self.settings.retain(|setting| !setting.starts_with(&key));
        self.settings.push(format!("{key}{value}"));
        self
    }

    /// Sets a variable for `mcpzip`.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the log level of `mcpzip`.
    pub(crate) fn log_level(mut self, level: &'static str) -> Self {
        self.log = level;
        self
    }

    /// Sessions run without a daemon, in every run of the tests: for tests of the processes of one session.
    pub(crate) fn alone(mut self) -> Self {
        self.daemon = Some("off".to_owned());
        self
    }

    /// The configuration decides whether sessions share a daemon.
    pub(crate) fn daemon_as_configured(mut self) -> Self {
        self.daemon = None;
        self
    }

    /// Writes the configuration, as an editor would while `mcpzip` is running.
    pub(crate) fn save(&self) {
        let servers: Vec<String> = self
            .servers
            .iter()
            .map(|(name, entry)| format!("{}:{entry}", json!(name)))
            .collect();
        let mut members = vec![format!(r#""mcpServers":{{{}}}"#, servers.join(","))];
        members.extend(self.settings.iter().cloned());
        self.save_text(&format!("{{{}}}", members.join(",")));
    }

    /// Writes any text as the configuration.
    pub(crate) fn save_text(&self, text: &str) {
        let (new, path) = (self.home.path("config.new"), self.config_path());
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    /// Starts `mcpzip serve`.
    #[track_caller]
    pub(crate) fn start(&self) -> Client {
        self.start_with(&["serve"])
    }

    /// Starts `mcpzip` with other arguments that make it serve stdin and stdout.
    #[track_caller]
    pub(crate) fn start_with(&self, arguments: &[&str]) -> Client {
        self.save();
        Client::start(self.home.clone(), self.command(arguments))
    }

    /// Starts a command that serves stdin and stdout, with the existing configuration.
    #[track_caller]
    pub(crate) fn start_command(&self, command: Command) -> Client {
        Client::start(self.home.clone(), command)
    }

    /// Starts `mcpzip serve` and does the handshake as a client of the newest revision that has one.
    #[track_caller]
    pub(crate) fn connect(&self) -> Client {
        let mut client = self.start();
        client.shake_hands("2025-11-25");
        client
    }

    /// Runs a command to its end.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        self.run_with_input(arguments, "")
    }

    /// Runs a command with this input to its end.
    #[track_caller]
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Outcome {
        self.save();
        command::run(self.command(arguments), input)
    }

    /// The command `mcpzip` with `arguments` in this home. Its streams are pipes.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program::mcpzip());
        // A daemon's socket is in the home, even if the machine has a runtime directory.
        let may_share = self.daemon.as_deref() != Some("off");
        let runtime = may_share.then_some(("XDG_RUNTIME_DIR", ""));
        // Windows needs its own directories to find anything.
        let inherited = ["PATH", "SYSTEMROOT", "SYSTEMDRIVE", "TEMP", "TMP"];
        #[expect(
            clippy::disallowed_methods,
            reason = "tests have no configuration of their own"
        )]
        let inherited = inherited
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?)));
        command
            .args(arguments)
            .current_dir(self.home.path("home"))
            .env_clear()
            .envs(inherited)
            .env("HOME", self.home.path("home"))
            .env("USERPROFILE", self.home.path("home"))
            .env("MCPZIP_CONFIG", self.config_path())
            .env("MCPZIP_CACHE_DIR", self.cache_path())
            .env("MCPZIP_STATE_DIR", self.home.path("state"))
            .env("MCPZIP_LOG", self.log)
            // The keychain belongs to the user who runs the tests.
            .env("MCPZIP_CREDENTIALS", "file")
            .env("RUST_BACKTRACE", "1")
            .env(Mark::VARIABLE, self.home.mark.to_string())
            .envs(runtime)
            .envs(self.daemon.iter().map(|mode| ("MCPZIP_DAEMON", mode)))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The home.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// The path of the configuration.
    pub(crate) fn config_path(&self) -> PathBuf {
        self.home.path("config.json")
    }

    /// The path of the cache.
    pub(crate) fn cache_path(&self) -> PathBuf {
        self.home.path("cache")
    }
}

/// Whether sessions share a daemon in tests that do not say so: `off`, or the value of `MCPZIP_TEST_DAEMON`.
#[expect(
    clippy::disallowed_methods,
    reason = "tests have no configuration of their own"
)]
fn usual_mode() -> String {
    std::env::var("MCPZIP_TEST_DAEMON").unwrap_or_else(|_| "off".to_owned())
}

/// A test that leaves a daemon fails, and the daemon goes with the home.
#[cfg(target_os = "linux")]
impl Drop for Home {
    fn drop(&mut self) {
        if usual_mode() == "auto" {
            // Each daemon of such a run stays for the next session of its home.
            for daemon in self.daemons() {
                process::signal(daemon.id, rustix::process::Signal::KILL);
            }
        }
        let start = Instant::now();
        while !self.daemons().is_empty() {
            if start.elapsed() > Duration::from_secs(5) {
                let left = self.daemons();
                for daemon in &left {
                    process::signal(daemon.id, rustix::process::Signal::KILL);
                }
                assert!(std::thread::panicking(), "the test left a daemon: {left:?}");
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Home {
    /// A path in the home.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The log of a fake server: its starts, and the messages that it received.
    pub(crate) fn log(&self, server: &str) -> String {
        std::fs::read_to_string(self.path(&format!("{server}.log"))).unwrap_or_default()
    }

    /// The number of lines in a fake server's log that contain `text`.
    pub(crate) fn count(&self, server: &str, text: &str) -> usize {
        self.log(server)
            .lines()
            .filter(|line| line.contains(text))
            .count()
    }

    /// Waits until a fake server's log contains `text`.
    #[track_caller]
    pub(crate) fn wait_for(&self, server: &str, text: &str) {
        until(&format!("`{text}` in the log of `{server}`"), || {
            (self.count(server, text) > 0).then_some(())
        });
    }

    /// The number of times that a fake server was started.
    pub(crate) fn starts(&self, server: &str) -> usize {
        self.log(server)
            .lines()
            .filter(|line| line.starts_with("start "))
            .count()
    }

    /// All files in the home, with their sizes.
    pub(crate) fn listing(&self) -> String {
        fn walk(directory: &Path, lines: &mut Vec<String>) {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    walk(&path, lines);
                } else {
                    lines.push(format!(
                        "{:>9} {}",
                        entry.metadata().map_or(0, |m| m.len()),
                        path.display()
                    ));
                }
            }
        }
        let mut lines = Vec::new();
        walk(self.directory.path(), &mut lines);
        lines.sort();
        lines.join("\n")
    }

    /// The daemons of this home that are alive. They have nothing of the environment that marks its other processes.
    #[cfg(target_os = "linux")]
    fn daemons(&self) -> Vec<Process> {
        // A process that starts one opens this first.
        if !self.path("state/logs/mcpzip__daemon.log").exists() {
            return Vec::new();
        }
        let state = self.path("state");
        let is_own = |process: &Process| {
            process.state != 'Z'
                && process.command.contains(" __daemon ")
                && process.command.contains(&format!("{} ", state.display()))
        };
        Process::all().filter(is_own).collect()
    }

    /// The logs of all fake servers, shortened.
    pub(crate) fn logs(&self) -> String {
        let entries = std::fs::read_dir(self.directory.path())
            .into_iter()
            .flatten()
            .flatten();
        let logs = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "log"));
        logs.map(|path| {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<String> = text.lines().map(super::message::start).collect();
            format!("--- {}\n{}\n", path.display(), lines.join("\n"))
        })
        .collect()
    }
}
