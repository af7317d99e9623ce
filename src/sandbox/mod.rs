//! Sandboxes: turns the entry of a server into the command line that starts it with what `sandbox` permits, and nothing else.
//!
//! Linux uses bubblewrap, macOS `sandbox-exec`; an `image` uses `podman` or `docker`. A sandbox that cannot be had is a
//! [`Refusal`], in words: a server never starts with more than its entry permits.
//!
//! *Invariant*: nothing here starts a server, and nothing is left out of a sandbox because it is missing on this system.

mod container;
#[cfg(feature = "cli")]
mod known;
mod lookup;
mod mounts;
mod runtime;

#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;
#[cfg(target_os = "linux")]
mod syscalls;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;

use crate::config::env::Environment;
use crate::config::{Sandbox, Stdio};
use crate::files::create_private_directory;

pub(crate) use container::Container;
#[cfg(feature = "cli")]
pub(crate) use known::known;
use mounts::Mounts;

/// The time limit of a trial of a tool: bubblewrap takes some milliseconds, a daemon of containers up to seconds.
const TRIAL: Duration = Duration::from_secs(15);

/// The reason why a server does not start in its sandbox.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The tool that makes the sandbox is not installed.
    #[error("its sandbox needs {tool}, which is not installed: {advice}")]
    NoTool {
        /// The tool, as people call it.
        tool: &'static str,
        /// The advice what to install.
        advice: &'static str,
    },
    /// The tool does not work here.
    #[error("its sandbox cannot be made: {tool} says \"{said}\"{advice}")]
    Tool {
        /// The tool.
        tool: &'static str,
        /// The end of its stderr.
        said: String,
        /// The advice, after a separator; empty if that is not known.
        advice: &'static str,
    },
    /// There are no sandboxes on this system.
    #[cfg_attr(
        any(target_os = "linux", target_os = "macos"),
        allow(dead_code, reason = "of other systems")
    )]
    #[error("its sandbox cannot be made: {0}")]
    System(&'static str),
    /// The program is not there.
    #[error("`{0}` is not on the PATH")]
    Program(String),
    /// A path of the entry cannot be opened to the server.
    #[error("`{path}` in its `sandbox` {problem}")]
    Path {
        /// The path.
        path: PathBuf,
        /// The fault.
        problem: &'static str,
    },
    /// The session's project cannot be opened to it.
    #[error("its sandbox is \"project\", but {0}")]
    Project(String),
    /// Its working directory is not in the sandbox.
    #[error("its `cwd` `{0}` is not in its sandbox: name it in `read` or `write`")]
    Directory(PathBuf),
    /// Its data directory, or another file of mcpzip, cannot be made.
    #[error("its sandbox cannot be prepared: {0}")]
    Io(#[from] io::Error),
}

/// The directories of mcpzip, and what is known of the tools.
#[derive(Debug, Default)]
pub(crate) struct Sandboxes {
    /// The directory of the servers' data directories; `None` refuses sandboxes.
    pub(crate) data: Option<PathBuf>,
    /// Files and directories of mcpzip that no server may change.
    pub(crate) closed: Vec<PathBuf>,
    /// The tools that have worked.
    works: Mutex<BTreeSet<PathBuf>>,
}

/// A server that is to be started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its entry.
    pub stdio: &'a Stdio,
    /// The directory of its package, if that was fetched.
    pub package: Option<&'a Path>,
    /// The variables that it would have without a sandbox.
    pub variables: &'a Environment,
    /// All variables of the session.
    pub session: &'a Environment,
    /// The session's directory.
    pub directory: Option<&'a Path>,
    /// The variable by which the guard finds the server's processes.
    pub mark: Option<&'a (String, String)>,
}

/// A command line that starts a server in its sandbox.
#[derive(Debug)]
pub(crate) struct Launch {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// All variables of the program that makes the sandbox.
    pub variables: Vec<(String, String)>,
    pub directory: PathBuf,
    /// The container, which outlives the program that started it.
    pub container: Option<Container>,
    /// Descriptors for the program, by their numbers in it.
    #[cfg(target_os = "linux")]
    pub descriptors: Vec<(i32, std::os::fd::OwnedFd)>,
}

impl Sandboxes {
    /// Sandboxes whose servers keep their data in `data`.
    pub(crate) fn new(data: Option<PathBuf>, closed: Vec<PathBuf>) -> Self {
        Self {
            data,
            closed,
            works: Mutex::default(),
        }
    }

    /// Checks that the sandbox can be made on this machine: its tool is there, and works.
    ///
    /// # Errors
    /// When it cannot, with what to install or to change.
    pub(crate) async fn check(
        &self,
        sandbox: &Sandbox,
        session: &Environment,
    ) -> Result<(), Refusal> {
        if cfg!(windows) {
            return Err(Refusal::System(
                "there are no sandboxes on Windows yet; take `sandbox` out of the entry, or run mcpzip in WSL",
            ));
        }
        let path = session.get("PATH").unwrap_or_default();
        if sandbox.image.is_some() {
            let engine = container::engine(path)?;
            if self.has_worked(&engine.program) {
                return Ok(());
            }
            container::check(&engine, session).await?;
            self.works.lock().insert(engine.program);
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        {
            let tool = bubblewrap::find(path)?;
            if !self.has_worked(&tool) {
                bubblewrap::check(&tool).await?;
                self.works.lock().insert(tool);
            }
            Ok(())
        }
        #[cfg(target_os = "macos")]
        {
            seatbelt::find()
        }
        #[cfg(not(any(target_os = "linux", target_os = "macos")))]
        Err(Refusal::System(
            "this system has none that mcpzip knows; name an `image` for a container",
        ))
    }

    fn has_worked(&self, tool: &Path) -> bool {
        self.works.lock().contains(tool)
    }

    /// The command line that starts a server in `sandbox`. Makes its data directory.
    ///
    /// # Errors
    /// When a path cannot be opened to it, or the program is not there.
    pub(crate) fn launch(&self, sandbox: &Sandbox, start: &Start<'_>) -> Result<Launch, Refusal> {
        let data = self.data.as_ref().ok_or_else(|| {
            io::Error::other("there is no directory for its data (`--state-dir`)")
        })?;
        let data = data.join(start.name);
        create_private_directory(&data)?;
        let data = data.canonicalize()?;
        let mut mounts = Mounts::new(&data, &self.closed);
        if sandbox.preset == crate::config::SandboxPreset::Project {
            mounts.project(start.directory, start.session.home().as_deref())?;
        }
        mounts.named(sandbox)?;
        if sandbox.image.is_some() {
            return container::launch(sandbox, start, &mounts);
        }
        let path = start.variables.get("PATH").unwrap_or_default();
        let program = lookup::find(&start.stdio.command, path)
            .ok_or_else(|| Refusal::Program(start.stdio.command.clone()))?;
        if let Some(package) = start.package {
            mounts.runtime(package.to_owned());
        }
        let home = start.session.home();
        let changeable = |file: &Path| mounts.is_changeable(file);
        for directory in runtime::of(&program, path, home.as_deref(), changeable) {
            mounts.runtime(directory);
        }
        let variables = variables(sandbox, start, &data, &mut mounts);
        let directory = mounts.working_directory(start.stdio.cwd.as_deref())?;
        #[cfg(target_os = "linux")]
        {
            let tool = bubblewrap::find(path)?;
            bubblewrap::launch(
                tool, sandbox, start, &program, &mounts, &variables, &directory,
            )
        }
        #[cfg(target_os = "macos")]
        {
            seatbelt::launch(sandbox, start, &program, &mounts, variables, directory)
        }
        #[cfg(not(any(target_os = "linux", target_os = "macos")))]
        {
            let _ = (variables, directory, program);
            Err(Refusal::System("this system has none that mcpzip knows"))
        }
    }
}

/// Variables that a server gets in any sandbox, if the session has them.
const ALWAYS: &[&str] = &["PATH", "LANG", "TZ", "TERM"];

/// Variables that name files of certificates, which are opened to the server.
const CERTIFICATES: &[&str] = &["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"];

/// Variables that name proxies, for a server with the network.
const PROXIES: &[&str] = &["http_proxy", "https_proxy", "all_proxy", "no_proxy"];

/// The variables of a server in `sandbox`.
fn variables(
    sandbox: &Sandbox,
    start: &Start<'_>,
    home: &Path,
    mounts: &mut Mounts<'_>,
) -> Vec<(String, String)> {
    let is_own = |name: &str| start.stdio.env.contains_key(name);
    let is_kept = |name: &str| {
        ALWAYS.contains(&name)
            || name.starts_with("LC_")
            || CERTIFICATES.contains(&name)
            || sandbox.has_network && PROXIES.contains(&name.to_ascii_lowercase().as_str())
    };
    let mut variables: std::collections::BTreeMap<String, String> = start
        .variables
        .iter()
        .filter(|(name, _)| is_own(name) || is_kept(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    for name in &sandbox.env {
        if let Some(value) = start.session.get(name).filter(|_| !is_own(name)) {
            variables.insert(name.clone(), value.to_owned());
        }
    }
    for name in CERTIFICATES {
        if let Some(path) = variables.get(*name).map(PathBuf::from) {
            mounts.certificates(path);
        }
    }
    if !is_own("HOME") {
        variables.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
    }
    variables.extend(start.mark.cloned());
    variables.into_iter().collect()
}
