//! Installs what `tests/peers` pins, once: under the build directory, in directories that carry the pins they were made of.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use super::{announce, process};

/// Leaves out the tests that need what is installed here.
const SKIP: &str = "MCPZIP_TEST_SKIP_PEERS";

/// Where the pins and the client scripts are.
const PINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers");

/// What the server on rmcp is made of.
const RMCP: [&str; 3] = [
    "rmcp-server/Cargo.toml",
    "rmcp-server/Cargo.lock",
    "rmcp-server/src/main.rs",
];

/// A slow net is no reason to fail.
const INSTALLATION: Duration = Duration::from_secs(900);

/// The oldest Node.js for the servers, and for the Inspector and the conformance suite.
const NODE: Version = Version(20, 0);
const NEW_NODE: Version = Version(22, 19);
const PYTHON: Version = Version(3, 10);

/// What is installed.
#[derive(Debug)]
pub(super) struct Peers {
    root: PathBuf,
    /// A Node.js that is new enough for the Inspector and the conformance suite.
    pub(super) new_node: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(u32, u32);

/// What is installed; `None` when it is not wanted. The text of the error is for whoever runs the tests.
pub(super) fn peers() -> Result<Option<&'static Peers>, &'static str> {
    static PEERS: LazyLock<Result<Option<Peers>, String>> = LazyLock::new(|| {
        #[expect(
            clippy::disallowed_methods,
            reason = "tests have no configuration of their own"
        )]
        let skip = std::env::var_os(SKIP);
        if skip.is_some_and(|value| !value.is_empty() && value != "0") {
            announce(&format!(
                "LEFT OUT: the tests with real servers and clients, because {SKIP} is set"
            ));
            return Ok(None);
        }
        install().map(Some).map_err(|problem| {
            format!(
                "{problem}\nTo leave out the tests with real servers and clients, set {SKIP}=1."
            )
        })
    });
    PEERS.as_ref().map(Option::as_ref).map_err(String::as_str)
}

impl Peers {
    /// A program that an npm package brought.
    pub(super) fn npm(&self, program: &str) -> PathBuf {
        self.node_directory()
            .join("node_modules/.bin")
            .join(program)
    }

    /// A program in the environment of `python-1.txt` or `python-2.txt`.
    pub(super) fn python(&self, generation: u32, program: &str) -> PathBuf {
        self.root
            .join(format!("python-{generation}/bin"))
            .join(program)
    }

    /// A script of `tests/peers`, where it finds what it imports.
    pub(super) fn script(&self, name: &str) -> PathBuf {
        self.node_directory().join(name)
    }

    /// The server on rmcp.
    pub(super) fn rmcp_server(&self) -> PathBuf {
        self.root.join("rmcp/debug/rmcp-server")
    }

    /// What `PYTHONPATH` must be for the server `mcp_everything_server`, which runs in the environment of `python-2.txt`.
    pub(super) fn fixture(&self) -> PathBuf {
        self.root.join("fixture/server")
    }

    /// The directory of the npm packages.
    pub(super) fn node_directory(&self) -> PathBuf {
        self.root.join("node")
    }
}

fn install() -> Result<Peers, String> {
    let node = version(
        "node",
        &["--version"],
        NODE,
        "Node.js 20 or newer, with npm (nodejs.org, or Debian 13: apt-get install nodejs npm)",
    )?;
    version(
        "npm",
        &["--version"],
        Version(8, 0),
        "npm 8 or newer (Debian: apt-get install npm)",
    )?;
    version(
        "git",
        &["--version"],
        Version(2, 28),
        "git 2.28 or newer (Debian: apt-get install git)",
    )?;
    let venv = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])";
    let python =
        "Python 3.10 or newer with its venv module (Debian: apt-get install python3 python3-venv)";
    version("python3", &["-c", venv], PYTHON, python)?;

    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
    let failed =
        |what: &str, error: std::io::Error| format!("{what} under {}: {error}", root.display());
    fs::create_dir_all(&root).map_err(|error| failed("no directory", error))?;
    let lock = File::create(root.join("lock")).map_err(|error| failed("no lock file", error))?;
    // Other test processes wait here until everything is there.
    lock.lock()
        .map_err(|error| failed("the lock file cannot be locked", error))?;
    std::thread::scope(|scope| {
        let parts = [
            scope.spawn(|| {
                made_of(
                    &root.join("node"),
                    &["package.json", "package-lock.json"],
                    npm,
                )
            }),
            scope.spawn(|| made_of(&root.join("python-1"), &["python-1.txt"], pip)),
            scope.spawn(|| {
                made_of(&root.join("python-2"), &["python-2.txt"], pip)?;
                made_of(&root.join("fixture"), &["fixture.txt"], fixture)
            }),
            scope.spawn(|| made_of(&root.join("rmcp"), &RMCP, cargo)),
        ];
        parts
            .into_iter()
            .try_for_each(|part| part.join().expect("an installation does not panic"))
    })?;
    copy_scripts(&root.join("node")).map_err(|error| failed("no copy of the scripts", error))?;
    let new_node = if node >= NEW_NODE {
        "node".into()
    } else {
        packaged_node(&root.join("node"))?
    };
    Ok(Peers { root, new_node })
}

/// The directory of the packages of the agents, which only their test needs: they are large.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(super) fn agents() -> Result<PathBuf, String> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers/agents");
    let pins = ["agents/package.json", "agents/package-lock.json"];
    made_of(&directory, &pins, npm)?;
    Ok(directory.join("node_modules"))
}

/// The directory of the packages of the agent that shows interfaces.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(super) fn apps_host() -> Result<PathBuf, String> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers/apps-host");
    let pins = ["apps-host/package.json", "apps-host/package-lock.json"];
    made_of(&directory, &pins, npm)?;
    Ok(directory.join("node_modules"))
}

/// The Python of the server with tasks, which only its own test needs.
pub(super) fn python_with_tasks() -> Result<PathBuf, String> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers/python-tasks");
    made_of(&directory, &["python-tasks.txt"], pip)?;
    Ok(directory.join("bin/python"))
}

/// Copies the scripts of `tests/peers` to where they find what they import.
fn copy_scripts(directory: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(PINS)? {
        let script = entry?.path();
        if script
            .extension()
            .is_some_and(|extension| extension == "mjs" || extension == "py")
        {
            let name = script.file_name().expect("a script is a file");
            fs::copy(&script, directory.join(name))?;
        }
    }
    Ok(())
}

/// Makes `directory` with `make`, unless it was made of the same pins before.
fn made_of(
    directory: &Path,
    pins: &[&str],
    make: fn(&Path, &[PathBuf]) -> Result<(), String>,
) -> Result<(), String> {
    // Tests that run side by side need the same directory.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let io = |error: std::io::Error| format!("{} cannot be made: {error}", directory.display());
    let pins: Vec<PathBuf> = pins.iter().map(|name| Path::new(PINS).join(name)).collect();
    let wanted = pins
        .iter()
        .map(fs::read_to_string)
        .collect::<Result<String, _>>()
        .map_err(io)?;
    // The directory's path is part of what a virtual environment is made of.
    let wanted = format!("{}\n{wanted}", directory.display());
    let stamp = directory.join("made-of");
    if fs::read_to_string(&stamp).is_ok_and(|made_of| made_of == wanted) {
        return Ok(());
    }
    announce(&format!(
        "installing {} into {}",
        file_names(&pins),
        directory.display()
    ));
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(io)?;
    }
    fs::create_dir_all(directory).map_err(io)?;
    make(directory, &pins)?;
    fs::write(stamp, wanted).map_err(io)
}

fn npm(directory: &Path, pins: &[PathBuf]) -> Result<(), String> {
    for pin in pins {
        let name = pin.file_name().expect("a pin is a file");
        fs::copy(pin, directory.join(name))
            .map_err(|error| format!("{} cannot be copied: {error}", pin.display()))?;
    }
    let mut command = Command::new("npm");
    command
        .args([
            "ci",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel=error",
        ])
        .current_dir(directory);
    succeed(command)
}

fn pip(directory: &Path, pins: &[PathBuf]) -> Result<(), String> {
    let mut venv = Command::new("python3");
    venv.args(["-m", "venv"]).arg(directory);
    succeed(venv)?;
    let mut pip = Command::new(directory.join("bin/pip"));
    pip.args([
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
    ])
    .args(pins);
    succeed(pip)
}

/// Takes the server out of the source distribution, which is unpacked but not installed.
fn fixture(directory: &Path, pins: &[PathBuf]) -> Result<(), String> {
    let python = directory.with_file_name("python-2").join("bin/python");
    let mut pip = Command::new(&python);
    pip.args([
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-binary",
        "mcp",
    ]);
    pip.args(["--require-hashes", "--dest"])
        .arg(directory)
        .arg("--requirement")
        .args(pins);
    succeed(pip)?;
    let io = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut archives = fs::read_dir(directory)
        .map_err(io)?
        .flatten()
        .map(|entry| entry.path());
    let archive = archives.find(|path| path.extension().is_some_and(|extension| extension == "gz"));
    let mut unpack = Command::new(&python);
    unpack
        .args(["-m", "tarfile", "--extract"])
        .arg(archive.ok_or("pip brought no archive")?)
        .arg(directory);
    succeed(unpack)?;
    let mut unpacked = fs::read_dir(directory)
        .map_err(io)?
        .flatten()
        .map(|entry| entry.path());
    let unpacked = unpacked.find(|path| path.is_dir());
    let server = unpacked
        .ok_or("the archive is empty")?
        .join("examples/servers/everything-server");
    fs::rename(&server, directory.join("server"))
        .map_err(|error| format!("no {}: {error}", server.display()))
}

fn cargo(directory: &Path, pins: &[PathBuf]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["build", "--quiet", "--locked", "--manifest-path"])
        .arg(&pins[0])
        .arg("--target-dir")
        .arg(directory);
    succeed(command)
}

fn succeed(mut command: Command) -> Result<(), String> {
    let ended = process::run(&mut command, "", INSTALLATION)?;
    if ended.code == Some(0) {
        Ok(())
    } else {
        Err(format!("{command:?} failed: {ended}"))
    }
}

/// The Node.js that npm brought, for machines whose own is too old for the Inspector and the conformance suite.
fn packaged_node(directory: &Path) -> Result<PathBuf, String> {
    let packages = fs::read_dir(directory.join("node_modules"))
        .map_err(|error| error.to_string())?
        .flatten();
    let node = packages
        .filter(|package| {
            package
                .file_name()
                .to_string_lossy()
                .starts_with("node-linux-")
        })
        .map(|package| package.path().join("bin/node"))
        .find(|node| node.is_file());
    node.ok_or_else(|| {
        "the Inspector and the conformance suite need Node.js 22.19 or newer, and npm has none for this system: install it".to_owned()
    })
}

/// The version of a program, which must be there and not too old.
fn version(
    program: &str,
    arguments: &[&str],
    oldest: Version,
    needed: &str,
) -> Result<Version, String> {
    let problem =
        |what: String| format!("The tests with real servers and clients need {needed}; {what}.");
    let mut command = Command::new(program);
    command.args(arguments);
    let ended = process::run(&mut command, "", Duration::from_secs(60)).map_err(problem)?;
    let found = Version::parse(&ended.stdout).filter(|_| ended.code == Some(0));
    let found =
        found.ok_or_else(|| problem(format!("`{program}` does not say its version: {ended}")))?;
    if found < oldest {
        return Err(problem(format!(
            "`{program}` here is {}.{}",
            found.0, found.1
        )));
    }
    Ok(found)
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text
            .split_whitespace()
            .map(|word| word.trim_start_matches('v'));
        let mut parts = numbers
            .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?
            .split('.');
        Some(Self(
            parts.next()?.parse().ok()?,
            parts.next()?.parse().ok()?,
        ))
    }
}

fn file_names(paths: &[PathBuf]) -> String {
    let names = paths
        .iter()
        .filter_map(|path| path.file_name())
        .map(|name| name.to_string_lossy().into_owned());
    names.collect::<Vec<_>>().join(", ")
}
