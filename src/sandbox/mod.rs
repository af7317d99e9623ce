//! Sandboxes: turns the entry of a server into the command line that starts it with only the access that its `sandbox` permits.
//!
//! Linux uses bubblewrap, macOS `sandbox-exec`; an `image` uses `podman` or `docker`. If a sandbox cannot be made,
//! there is a [`Refusal`] with the reason: a server never starts with more access than its entry permits.
//!
//! *Invariant*: nothing here starts a server or makes a weaker sandbox because this system lacks a part of it.

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

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use crate::config::env::Environment;
use crate::config::{Config, Sandbox, SandboxPreset, SessionEnv, Stdio, Transport};
use crate::files::create_private_directory;

pub(crate) use container::{Container, of_engine};
#[cfg(feature = "cli")]
pub(crate) use known::{Known, Named, Proposal, known};
use mounts::Mounts;

/// The time limit of a trial of a tool: bubblewrap takes some milliseconds, a daemon of containers up to seconds.
const TRIAL: Duration = Duration::from_secs(15);

/// Why a server does not start in its sandbox.
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
    /// The program is in a directory that another server may change.
    #[error(
        "its program `{0}` is in a directory that another server may change, which could put another one there"
    )]
    Changeable(PathBuf),
    /// A path of the entry cannot be opened to the server.
    #[error("`{path}` in its `sandbox` {problem}")]
    Path {
        /// The path.
        path: PathBuf,
        /// The fault.
        problem: &'static str,
    },
    /// A variable would change the engine, and could reach the server on a command line only.
    #[error(
        "the variable `{0}` cannot be given to a container: names of this kind configure podman and docker"
    )]
    Variable(String),
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

pub(crate) use mounts::OWN_NAME;

/// The directory of the data of servers in sandboxes, in the state directory.
pub(crate) const DIRECTORY: &str = "sandboxes";

/// The directories of mcpzip, and the tools.
#[derive(Debug, Default)]
pub(crate) struct Sandboxes {
    /// The directory of the servers' data directories; `None` refuses sandboxes.
    pub(crate) data: Option<PathBuf>,
    around: mounts::Around,
    /// The session's project, by all names: no tool that runs outside is taken from there, as from directories that a server may change.
    project: Vec<PathBuf>,
    /// The tools, once they have worked. They are looked up once, so that no server can put others in their place later.
    #[cfg(target_os = "linux")]
    bubblewrap: OnceLock<PathBuf>,
    engine: OnceLock<container::Engine>,
}

/// A server that is to be started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    /// The server's name.
    pub name: &'a str,
    /// The server's entry.
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
    /// Sandboxes of a session whose servers keep their data in `data`.
    pub(crate) fn new(
        data: Option<PathBuf>,
        closed: Vec<PathBuf>,
        config: &Config,
        session: &SessionEnv,
    ) -> Self {
        let home = session.environment.home();
        let project = session.directory.as_ref();
        // One with the home directory in it has programs of the user's own, and is opened to no server.
        let project = project.filter(|at| match &home {
            Some(home) => mounts::project(at, Some(home)).is_ok(),
            None => !mounts::is_of_system(at),
        });
        let by_all_names = |path: &PathBuf| [Some(path.clone()), path.canonicalize().ok()];
        let project = project.into_iter().flat_map(by_all_names).flatten();
        let sandboxes = Self {
            data,
            project: project.collect(),
            around: mounts::Around {
                closed,
                ..mounts::Around::default()
            },
            ..Self::default()
        };
        sandboxes.note(config);
        sandboxes
    }

    /// Adds the directories that servers of a configuration may change. Those of an earlier one stay: a server may have left a link there.
    /// It is the whole configuration, because servers that one session does not see run in others.
    pub(crate) fn note(&self, config: &Config) {
        let transports = config.servers.values().map(|entry| &entry.transport);
        let boxed: Vec<&Sandbox> = transports
            .filter_map(|transport| match transport {
                Transport::Stdio(stdio) => stdio.sandbox.as_deref(),
                _ => None,
            })
            .collect();
        let has_project = boxed.iter().any(|one| one.preset == SandboxPreset::Project);
        let written = boxed.iter().flat_map(|sandbox| &sandbox.write);
        // A path with files of mcpzip refuses its server.
        let written = written.filter(|path| {
            let real = path.canonicalize().unwrap_or_else(|_| (*path).clone());
            !mounts::has_closed(&real, &self.around.closed)
        });
        let project = self.project.iter().filter(|_| has_project);
        let changeable = written.chain(project).chain(&self.data);
        let by_all_names = |path: &PathBuf| [Some(path.clone()), path.canonicalize().ok()];
        let changeable: Vec<PathBuf> = changeable.flat_map(by_all_names).flatten().collect();
        self.around.changeable.write().extend(changeable);
    }

    /// Whether a server could have put the file of `path` there.
    fn is_changeable(&self, path: &Path) -> bool {
        let steps = mounts::steps(path);
        let changeable = self.around.changeable.read();
        steps.iter().any(|step| {
            let mut all = changeable.iter().chain(&self.project);
            all.any(|at| step.starts_with(at))
        })
    }

    /// The path that a server in a sandbox may change, and by which it decides what `path` leads to.
    pub(crate) fn changeable_part(&self, path: &Path) -> Option<PathBuf> {
        let steps = mounts::steps(path);
        let changeable = self.around.changeable.read();
        let is_on_way = |at: &&PathBuf| steps.iter().any(|step| step.starts_with(at));
        changeable.iter().find(is_on_way).cloned()
    }

    /// The directories of `path` whose programs may run outside of a sandbox.
    pub(crate) fn trusted(&self, path: &str) -> String {
        let directories = std::env::split_paths(path);
        let directories = directories.filter(|at| at.is_absolute() && !self.is_changeable(at));
        // They were separated before.
        let joined = std::env::join_paths(directories).unwrap_or_default();
        joined.to_string_lossy().into_owned()
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
            if self.engine.get().is_none() {
                let engine = container::engine(path, |file| self.is_changeable(file))?;
                container::check(&engine, session).await?;
                self.engine.get_or_init(|| engine);
            }
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        {
            if self.bubblewrap.get().is_none() {
                let tool = bubblewrap::find(path, |file| self.is_changeable(file))?;
                bubblewrap::check(&tool).await?;
                self.bubblewrap.get_or_init(|| tool);
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

    /// The data directory of a server, which is made if it is missing.
    fn data_of(&self, name: &str) -> Result<PathBuf, Refusal> {
        let all = self.data.as_ref().ok_or_else(|| {
            io::Error::other("there is no directory for its data (`--state-dir`)")
        })?;
        let data = all.join(name);
        create_private_directory(&data)?;
        let (all, data) = (all.canonicalize()?, data.canonicalize()?);
        // Not all of them, and nothing that a link leads to.
        if data.parent() != Some(&all) {
            let problem = format!("`{}` is not a directory of its own", data.display());
            return Err(Refusal::Io(io::Error::other(problem)));
        }
        Ok(data)
    }

    /// The command line that starts a server in `sandbox`, after [`Self::check`]. Makes its data directory.
    ///
    /// # Errors
    /// When a path cannot be opened to it, or the program is not there.
    pub(crate) fn launch(&self, sandbox: &Sandbox, start: &Start<'_>) -> Result<Launch, Refusal> {
        let not_checked = || io::Error::other("its tool was not looked for");
        let data = self.data_of(start.name)?;
        let mut mounts = Mounts::new(&data, &self.around);
        if sandbox.preset == SandboxPreset::Project {
            mounts.project(start.directory, start.session.home().as_deref())?;
        }
        mounts.named(sandbox)?;
        if sandbox.image.is_some() {
            let engine = self.engine.get().cloned().ok_or_else(not_checked)?;
            return container::launch(engine, sandbox, start, &mounts);
        }
        let path = start.variables.get("PATH").unwrap_or_default();
        let command = &start.stdio.command;
        let program = lookup::find(command, path, |file| mounts.is_foreign(file))
            .ok_or_else(|| Refusal::Program(command.clone()))?;
        if mounts.is_foreign(&program) {
            return Err(Refusal::Changeable(program));
        }
        if let Some(package) = start.package {
            mounts.runtime(package.to_owned());
        }
        let needs = runtime::Needs {
            path,
            homes: homes(start.session),
            package: start.package,
        };
        for directory in needs.of(&program, |file| mounts.is_changeable(file)) {
            mounts.runtime(directory);
        }
        let variables = variables(sandbox, start, &data, &mut mounts);
        let directory = mounts.working_directory(start.stdio.cwd.as_deref())?;
        #[cfg(target_os = "linux")]
        {
            let tool = self.bubblewrap.get().cloned().ok_or_else(not_checked)?;
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

/// The home directory, by its name and as the system knows it.
fn homes(session: &Environment) -> Vec<PathBuf> {
    let home = session.home();
    let real = home.as_ref().and_then(|home| home.canonicalize().ok());
    home.into_iter().chain(real).collect()
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
