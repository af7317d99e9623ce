//! Replicas, their database, and the balancer before them.

use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use crate::support::gateway::Gateway;
use crate::support::postgres::{Database, Postgres};
use crate::support::{Setup, tool, until};

/// Replicas behind a balancer.
pub(crate) struct Cluster {
    pub(crate) replicas: Vec<Replica>,
    balancer: Option<Balancer>,
    pub(crate) database: Database,
    /// The PostgreSQL, if it is of this test alone.
    pub(crate) postgres: Option<Postgres>,
}

/// A replica, which keeps its port when it is started again.
pub(crate) struct Replica {
    pub(crate) setup: Setup,
    port: u16,
    options: Vec<&'static str>,
    pub(crate) gateway: Option<Gateway>,
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
        let database = Postgres::database()?;
        Self::on(database, None, count, options, configure)
    }

    /// [`Cluster::start`] with a PostgreSQL that the test stops.
    #[track_caller]
    pub(crate) fn start_alone(
        count: usize,
        configure: impl Fn(Setup, usize) -> Setup,
    ) -> Option<Self> {
        let postgres = Postgres::start()?;
        let database = postgres.create();
        Self::on(database, Some(postgres), count, &[], configure)
    }

    #[track_caller]
    fn on(
        database: Database,
        postgres: Option<Postgres>,
        count: usize,
        options: &[&'static str],
        configure: impl Fn(Setup, usize) -> Setup,
    ) -> Option<Self> {
        if !tool::has("haproxy", "haproxy") {
            return None;
        }
        let replicas = (0..count).map(|number| {
            let setup = Setup::new().alone().log_level("info").store(&database);
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
            database: database.clone(),
            postgres,
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

    /// Stops PostgreSQL.
    pub(crate) fn stop_database(&mut self) {
        self.postgres.as_mut().expect("it is of this test").stop();
    }

    /// Starts PostgreSQL again.
    #[track_caller]
    pub(crate) fn start_database(&mut self) {
        self.postgres.as_mut().expect("it is of this test").go_on();
    }

    /// Waits until each replica knows all others, which the next signs of life tell.
    fn wait_until_known(&self) {
        let count = self.replicas.len().to_string();
        let known = "select count(*) from replica where heartbeat - started > interval '3 seconds'";
        until("all replicas to have given signs of life", || {
            (self.database.run(known) == count).then_some(())
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

impl Balancer {
    #[track_caller]
    fn start(ports: &[u16]) -> Self {
        let directory = TempDir::new().expect("there is a directory for temporary files");
        let port = free_port();
        let mut text = format!(
            "global\n  maxconn 4000\ndefaults\n  mode http\n  timeout connect 2s\n  timeout check 3s\n  timeout client 1h\n  timeout server 1h\n  timeout tunnel 1h\n\
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

/// Waits a moment until a notification has reached other replicas; nothing at the caller shows when.
pub(crate) fn settle() {
    std::thread::sleep(Duration::from_millis(300));
}

/// A tool with a form of its own.
pub(crate) fn form() -> String {
    json!({ "message": "name?", "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } } })
        .to_string()
}
