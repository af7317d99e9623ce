//! A PostgreSQL for tests: one cluster for the process, a database for each test. It ends with the tests.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Signal;
use tempfile::TempDir;

use super::client::until;
use super::{Setup, tool};

/// Waits for the end of its input, which the tests hold, and then ends its program.
const KEEPER: &str = r#""$@" < /dev/null & read -r _; kill -INT $!; wait $!"#;

/// A running PostgreSQL, reached by a socket in a directory of its own.
#[derive(Debug)]
pub(crate) struct Postgres {
    directory: TempDir,
    programs: PathBuf,
    keeper: Option<Child>,
    /// Whether a commit waits for the disk.
    syncs: bool,
}

/// A database of it.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    directory: PathBuf,
    programs: PathBuf,
    name: String,
}

impl Postgres {
    /// A database of the cluster that tests share. `None` if the test is left out.
    #[track_caller]
    pub(crate) fn database() -> Option<Database> {
        static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
        // The test that finds no program says so, each in its own name.
        programs()?;
        let shared = SHARED.get_or_init(Self::start);
        shared.as_ref().map(Self::create)
    }

    /// A cluster of one test. `None` if the test is left out.
    #[track_caller]
    pub(crate) fn start() -> Option<Self> {
        Self::begin(false)
    }

    /// A cluster of one test whose commits wait for the disk. `None` if the test is left out.
    #[track_caller]
    pub(crate) fn start_syncing() -> Option<Self> {
        Self::begin(true)
    }

    #[track_caller]
    fn begin(syncs: bool) -> Option<Self> {
        let programs = programs()?;
        let directory = TempDir::new().unwrap();
        let mut cluster = Self {
            directory,
            programs,
            keeper: None,
            syncs,
        };
        if rustix::process::geteuid().is_root() {
            // PostgreSQL refuses root.
            let path = cluster.directory.path();
            let status = Command::new("chown").arg("nobody").arg(path).status();
            assert!(status.unwrap().success());
        }
        let mut initdb = cluster.command("initdb");
        initdb.args([
            "--auth=trust",
            "--username=postgres",
            "--no-sync",
            "--pgdata",
        ]);
        let done = initdb.arg(cluster.data()).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        cluster.go_on();
        Some(cluster)
    }

    /// Starts it again.
    #[track_caller]
    pub(crate) fn go_on(&mut self) {
        let server = self.command("postgres");
        let mut keeper = Command::new("sh");
        keeper
            .args(["-c", KEEPER, "keeper"])
            .arg(server.get_program())
            .args(server.get_args());
        keeper
            .arg("-D")
            .arg(self.data())
            .arg("-k")
            .arg(self.directory.path());
        keeper.args([
            "-c",
            "listen_addresses=",
            "-c",
            "max_connections=300",
            "-c",
            if self.syncs { "fsync=on" } else { "fsync=off" },
        ]);
        keeper
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        keeper.current_dir("/");
        self.keeper = Some(keeper.spawn().unwrap());
        let database = self.named("postgres");
        until("PostgreSQL answers", || database.try_run("select 1").ok());
    }

    /// Ends it, as a restart does.
    pub(crate) fn stop(&mut self) {
        let Some(mut keeper) = self.keeper.take() else {
            return;
        };
        drop(keeper.stdin.take());
        keeper.wait().unwrap();
    }

    /// Sends a signal to the whole server, such as one that halts it.
    pub(crate) fn signal(&self, signal: Signal) {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let id: i32 = file.lines().next().unwrap().trim().parse().unwrap();
        let server = rustix::process::Pid::from_raw(id).unwrap();
        for process in super::process::Process::children_of(id.unsigned_abs()) {
            super::process::signal(process.id, signal);
        }
        rustix::process::kill_process(server, signal).unwrap();
    }

    /// A new database.
    pub(crate) fn create(&self) -> Database {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("test{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.named("postgres")
            .run(&format!("create database {name}"));
        self.named(&name)
    }

    fn named(&self, name: &str) -> Database {
        Database {
            directory: self.directory.path().to_owned(),
            programs: self.programs.clone(),
            name: name.to_owned(),
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A program of PostgreSQL, as a user that it accepts.
    fn command(&self, program: &str) -> Command {
        let program = self.programs.join(program);
        let mut command = match rustix::process::geteuid().is_root() {
            true => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
                command.arg(program);
                command
            }
            false => Command::new(program),
        };
        command.current_dir("/").stdin(Stdio::null());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Database {
    /// Its URL.
    pub(crate) fn url(&self) -> String {
        let mut host = String::new();
        for byte in self.directory.to_str().unwrap().bytes() {
            let _ = write!(host, "%{byte:02X}");
        }
        format!("postgres://postgres@/{}?host={host}", self.name)
    }

    /// The rows of a statement, as `psql` shows them.
    #[track_caller]
    pub(crate) fn run(&self, statement: &str) -> String {
        self.try_run(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    fn try_run(&self, statement: &str) -> Result<String, String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args([
            "-X", "-q", "-A", "-t", "-U", "postgres", "-d", &self.name, "-c", statement,
        ]);
        let done = psql.arg("-h").arg(&self.directory).output().unwrap();
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        }
    }
}

impl Setup {
    /// Shares the store in this database, with a key for tests.
    pub(crate) fn store(self, database: &Database) -> Self {
        self.variable("MCPZIP_STORE", &database.url())
            .variable("MCPZIP_STORE_KEY", &"A".repeat(43))
    }
}

/// The directory of PostgreSQL's programs. `None` if the test is left out.
#[track_caller]
fn programs() -> Option<PathBuf> {
    // Debian has them outside of `PATH`.
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let newest = versions
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").is_file());
    if let Some(bin) = newest.max() {
        return Some(bin);
    }
    if !tool::has("initdb", "postgresql") {
        return None;
    }
    let done = Command::new("pg_config").arg("--bindir").output().ok()?;
    Some(Path::new(String::from_utf8(done.stdout).ok()?.trim()).to_owned())
}
