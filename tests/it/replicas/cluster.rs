//! Replicas, their database, and the balancer before them.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::support::gateway::Gateway;
use crate::support::{Setup, tool, until};

/// 32 bytes in base64url.
const KEY: &str = "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s";

/// Replicas behind a balancer.
pub(crate) struct Cluster {
    pub(crate) replicas: Vec<Replica>,
    balancer: Option<Balancer>,
    pub(crate) database: Database,
}

/// A replica, which keeps its port when it is started again.
pub(crate) struct Replica {
    pub(crate) setup: Setup,
    port: u16,
    options: Vec<&'static str>,
    pub(crate) gateway: Option<Gateway>,
}

/// A PostgreSQL of its own; it ends with this.
pub(crate) struct Database {
    directory: TempDir,
    programs: PathBuf,
    port: u16,
}

/// A running HAProxy.
struct Balancer {
    process: Child,
    port: u16,
    _directory: TempDir,
}

impl Cluster {
    /// Starts `count` replicas, each with what `configure` adds to its home. `None` if a program is missing, and its tests are left out.
    #[track_caller]
    pub(crate) fn start(
        count: usize,
        options: &[&'static str],
        configure: impl Fn(Setup, usize) -> Setup,
    ) -> Option<Self> {
        if !tool::has("haproxy", "haproxy") {
            return None;
        }
        let database = Database::start()?;
        let replicas = (0..count).map(|number| {
            let setup = Setup::new()
                .alone()
                .log_level("info")
                .variable("MCPZIP_STORE", &database.url())
                .variable("MCPZIP_STORE_KEY", KEY);
            let mut replica = Replica {
                setup: configure(setup, number),
                port: free_port(),
                options: options.to_vec(),
                gateway: None,
            };
            replica.start();
            replica
        });
        let mut cluster = Self {
            replicas: replicas.collect(),
            balancer: None,
            database,
        };
        cluster.wait_until_known();
        let ports: Vec<u16> = cluster.replicas.iter().map(|one| one.port).collect();
        cluster.balancer = Some(Balancer::start(&ports));
        Some(cluster)
    }

    /// The replica with this number.
    #[track_caller]
    pub(crate) fn at(&self, number: usize) -> &Gateway {
        self.replicas[number].gateway()
    }

    /// The home of a replica.
    pub(crate) fn setup(&self, number: usize) -> &Setup {
        &self.replicas[number].setup
    }

    /// The balancer before the replicas.
    pub(crate) fn balanced(&self) -> Gateway {
        let port = self.balancer.as_ref().expect("it was started").port;
        Gateway::at(&format!("http://127.0.0.1:{port}/mcp"))
    }

    /// The URL of the balancer.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.balanced().address())
    }

    /// Waits until each replica knows all others, which the next signs of life tell.
    fn wait_until_known(&self) {
        let count = self.replicas.len().to_string();
        let known = "select count(*) from replica where heartbeat - started > interval '3 seconds'";
        until("all replicas to have given signs of life", || {
            (self.database.ask(known) == count).then_some(())
        });
    }
}

impl Replica {
    #[track_caller]
    pub(crate) fn start(&mut self) {
        let address = format!("127.0.0.1:{}", self.port);
        self.gateway = Some(
            self.setup
                .serve_by(&[&["serve", "--http", &address], &self.options[..]].concat()),
        );
    }

    #[track_caller]
    pub(crate) fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().expect("it is running")
    }

    /// Kills it, so that it can do nothing more.
    pub(crate) fn kill(&mut self) {
        if let Some(mut gateway) = self.gateway.take() {
            gateway.process().signal(Signal::KILL);
            gateway.process().wait();
        }
    }
}

impl Database {
    /// Starts one. `None` if PostgreSQL is missing, and the tests with it are left out.
    #[track_caller]
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            // Says so, or fails.
            tool::has("initdb", "postgresql");
            return None;
        };
        let directory = TempDir::new().expect("there is a directory for temporary files");
        let database = Self {
            port: free_port(),
            directory,
            programs,
        };
        if rustix::process::geteuid().is_root() {
            let mut owner = Command::new("chown");
            succeed(owner.arg("postgres").arg(database.directory.path()));
        }
        let data = database.data();
        let mut init = database.command("initdb");
        succeed(
            init.args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"])
                .arg(&data),
        );
        database.control("start");
        Some(database)
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!(
            "postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable",
            self.port
        )
    }

    /// The one value that a statement gives.
    #[track_caller]
    pub(crate) fn ask(&self, statement: &str) -> String {
        let mut command = self.command("psql");
        command.args([
            "-h",
            "127.0.0.1",
            "-U",
            "postgres",
            "-A",
            "-t",
            "-c",
            statement,
            "-p",
        ]);
        let output = command.arg(self.port.to_string()).output();
        let output = output.expect("psql is there");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Stops it or starts it.
    #[track_caller]
    pub(crate) fn control(&self, order: &str) {
        let mut command = self.command("pg_ctl");
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c max_connections=200 -k {}",
            self.port,
            self.directory.path().display()
        );
        command.arg("-D").arg(self.data()).arg("-w");
        match order {
            "start" => command
                .args(["-o", &options, "-l"])
                .arg(self.directory.path().join("log")),
            _ => command.args(["-m", "fast"]),
        };
        // The database keeps the streams of the program that starts it.
        succeed(
            command
                .arg(order)
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A program of PostgreSQL, which does not run as root.
    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = match rustix::process::geteuid().is_root() {
            false => Command::new(path),
            true => {
                let mut command = Command::new("setpriv");
                let user = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];
                command.args(user).arg(path);
                command
            }
        };
        command
            .current_dir(self.directory.path())
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let mut command = self.command("pg_ctl");
        command
            .arg("-D")
            .arg(self.data())
            .args(["-m", "immediate", "stop"]);
        // It may have been stopped by its test.
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

impl Balancer {
    #[track_caller]
    fn start(ports: &[u16]) -> Self {
        let directory = TempDir::new().expect("there is a directory for temporary files");
        let port = free_port();
        let mut text = format!(
            "global\n  maxconn 4000\ndefaults\n  mode http\n  timeout connect 2s\n  timeout client 1h\n  timeout server 1h\n  timeout tunnel 1h\n\
             frontend mcp\n  bind 127.0.0.1:{port}\n  default_backend replicas\n\
             backend replicas\n  balance roundrobin\n  option httpchk GET /readyz\n  default-server inter 500ms fall 1 rise 1\n  \
             option redispatch 1\n  retries 3\n  retry-on conn-failure\n"
        );
        for (number, port) in ports.iter().enumerate() {
            let _ = writeln!(text, "  server replica{number} 127.0.0.1:{port} check");
        }
        let path = directory.path().join("haproxy.cfg");
        std::fs::write(&path, text).unwrap();
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let mut command = Command::new("haproxy");
        let process = command
            .args(["-db", "-f"])
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("haproxy starts");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let balancer = Self {
            process,
            port,
            _directory: directory,
        };
        until("the balancer to listen", || {
            TcpStream::connect(address).ok()
        });
        balancer
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // It ends by a signal only.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().unwrap().port()
}

/// The directory of PostgreSQL's programs; Debian keeps them out of `PATH`.
fn programs() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").ok();
    let versions = debian.into_iter().flatten().flatten();
    let mut directories: Vec<PathBuf> = versions.map(|one| one.path().join("bin")).collect();
    directories.sort();
    #[expect(
        clippy::disallowed_methods,
        reason = "tests have no configuration of their own"
    )]
    let path = std::env::var_os("PATH").unwrap_or_default();
    directories.extend(std::env::split_paths(&path));
    let has = |directory: &Path| directory.join("initdb").is_file();
    directories.into_iter().find(|directory| has(directory))
}

#[track_caller]
fn succeed(command: &mut Command) {
    let status = command.status();
    let has_succeeded = status.as_ref().is_ok_and(std::process::ExitStatus::success);
    assert!(has_succeeded, "{command:?}: {status:?}");
}

/// Waits a moment for what other replicas are told, which nothing at the caller shows.
pub(crate) fn settle() {
    std::thread::sleep(Duration::from_millis(300));
}

/// A tool with a form of its own.
pub(crate) fn form() -> String {
    json!({ "message": "name?", "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } } })
        .to_string()
}
