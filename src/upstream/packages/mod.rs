//! Packages that are installed first and then started without `npx` or `uvx`.
//!
//! `npx` and `uvx` need the network and a writable cache at each start, which a server in a sandbox does not have,
//! and they take most of the time of a start. So the package of such an entry is installed into a directory of its
//! own, once for each version and each set of settings of the package manager, and its program is started from
//! there. If the entry fixes no version, the version is looked up once a day.
//!
//! No code of a package runs outside of the sandbox of its server: npm installs without scripts, and Python packages
//! are installed only as wheels. Without a sandbox, the scripts run as they do under `npx`.

mod npm;
mod pypi;
mod record;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::error::{is_noise, missing_package};
use super::run::{Finished, Run};
use super::{ConnectError, UpstreamContext};
use crate::config::{Ecosystem, Environment, PackageRun, Stdio, find_program};
use crate::files;
use crate::secret::Secret;
use crate::tool::ServerName;
use record::Record;

/// The directory of packages in the cache.
pub(crate) const DIRECTORY: &str = "packages";

/// The time limit of a lookup, and of an installation.
const LOOKUP_LIMIT: Duration = Duration::from_secs(20);
const INSTALL_LIMIT: Duration = Duration::from_secs(300);

/// How long a version that is not started any more is kept.
const KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Settings of npm by which no code of a package runs while it is fetched for a sandbox, and no file of this machine or of another host than
/// the registry's becomes a part of it. They go before the files of settings, also those in the repository of a dependency: npm would run
/// its `git` there, and the scripts of the dependency itself.
const WITHOUT_CODE: &[(&str, &str)] = &[
    ("npm_config_ignore_scripts", "true"),
    ("npm_config_allow_directory", "none"),
    ("npm_config_allow_file", "none"),
    ("npm_config_allow_git", "none"),
    ("npm_config_allow_remote", "none"),
    ("npm_config_git", NO_GIT),
];

/// A setting that is left out for a sandbox: uv refuses it next to the option that says the contrary.
const LEFT_OUT: &str = "uv_compile_bytecode";

/// A program that fails, or is not there, in place of git.
const NO_GIT: &str = "/bin/false";

/// Settings of npm that change neither what is installed nor its source. npm itself sets some of them for everything that it starts.
const INDIFFERENT: &[&str] = &[
    "audit",
    "cache",
    "call",
    "color",
    "fund",
    "global_prefix",
    "init_module",
    "local_prefix",
    "loglevel",
    "logs_dir",
    "logs_max",
    "npm_version",
    "package",
    "progress",
    "timing",
    "unicode",
    "update_notifier",
    "user_agent",
    "yes",
];

/// The file that an installation has once it is whole, and the one that is changed at each start.
const WHOLE: &str = ".mcpzip-whole";
const STARTED: &str = ".mcpzip-started";

/// The size limit of a package manager's output, in bytes.
const OUTPUT: usize = 1024 * 1024;

/// Why a package is not fetched.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("`{program}` is not on the PATH; install {package}")]
    NoProgram {
        program: &'static str,
        package: &'static str,
    },
    #[error("`{command}` failed: {said}")]
    Failed { command: String, said: String },
    #[error("`{command}` did not end within {limit:?}")]
    Timeout { command: String, limit: Duration },
    #[error(
        "the package `{package}` depends on `{dependency}`, which is not of the registry: a sandbox gets none of it"
    )]
    Outside { package: String, dependency: String },
    #[error("the package `{package}` has no program `{program}`")]
    NoEntryPoint { package: String, program: String },
    #[error("the package `{0}` has several programs: name one, as in `npx --package {0} PROGRAM`")]
    SeveralEntryPoints(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The program that is started for an entry.
#[derive(Debug)]
pub(super) struct Prepared<'a> {
    /// The entry, with the installed program in place of its runner if it was fetched.
    pub(super) stdio: Cow<'a, Stdio>,
    /// The directory of the package, if it was fetched.
    pub(super) package: Option<PathBuf>,
}

/// An installed package.
struct Installed {
    program: PathBuf,
    /// The directory of its programs, which the runner puts into `PATH`.
    programs: PathBuf,
    directory: PathBuf,
    version: String,
}

impl UpstreamContext {
    /// Checks that the sandbox of an entry can be had, and fetches its package.
    pub(super) async fn prepare<'a>(
        &self,
        server: &ServerName,
        stdio: &'a Stdio,
    ) -> Result<Prepared<'a>, ConnectError> {
        let plain = Prepared {
            stdio: Cow::Borrowed(stdio),
            package: None,
        };
        let not_started = |reason: String| ConnectError::NotStarted {
            server: server.clone(),
            reason,
        };
        let Some(sandbox) = &stdio.sandbox else {
            return match self.fetched(stdio).await {
                Ok(Some(installed)) => Ok(self.started_from(stdio, installed)),
                Ok(None) => Ok(plain),
                Err(error) => {
                    tracing::warn!(%server, %error, "the package is not fetched: its runner starts it");
                    Ok(plain)
                }
            };
        };
        let checked = self.sandboxes.check(sandbox, &self.variables).await;
        checked.map_err(|refusal| not_started(refusal.to_string()))?;
        if sandbox.image.is_some() {
            return Ok(plain);
        }
        if let Some(data) = stdio.kept_data() {
            return Err(not_started(format!(
                "it keeps its data in its package, which a sandbox cannot change; set `{}` in its `env` to the absolute path of a file that its \
                 sandbox can write",
                data.variable
            )));
        }
        match self.fetched(stdio).await {
            Ok(Some(installed)) => Ok(self.started_from(stdio, installed)),
            Ok(None) if stdio.may_install() && !sandbox.has_network => Err(not_started(
                "its sandbox has no network, and its package cannot be fetched before the start, as the options of its runner are not \
                 known or `fetch` is false; write `npx` or `uvx` with the package alone, or the installed program"
                    .to_owned(),
            )),
            Ok(None) => Ok(plain),
            Err(error) => Err(not_started(format!("its package cannot be fetched: {error}"))),
        }
    }

    fn started_from<'a>(&self, stdio: &'a Stdio, installed: Installed) -> Prepared<'a> {
        let mut started = stdio.clone();
        started.command = installed.program.to_string_lossy().into_owned();
        started.args = stdio
            .package()
            .map_or_else(Vec::new, |package| package.args);
        let path = self.of_child(stdio);
        let path = path.get("PATH").unwrap_or_default();
        let joined = std::env::join_paths(
            std::iter::once(installed.programs).chain(std::env::split_paths(path)),
        );
        if let Ok(joined) = joined {
            let joined = joined.to_string_lossy().into_owned();
            started.env.insert("PATH".to_owned(), Secret::new(joined));
        }
        tracing::debug!(version = %installed.version, "started from the cache of packages");
        Prepared {
            stdio: Cow::Owned(started),
            package: Some(installed.directory),
        }
    }

    /// Installs the package of an entry, if it is not there yet. `None` if its runner starts it.
    async fn fetched(&self, stdio: &Stdio) -> Result<Option<Installed>, FetchError> {
        let (Some(directory), Some(package)) = (&self.packages, fetchable(stdio)) else {
            return Ok(None);
        };
        if stdio.sandbox.is_none() && !self.is_runner(stdio, &package) {
            return Ok(None);
        }
        // Scripts of a Python package name its directory, and a link to it may lead elsewhere later.
        let directory = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.clone());
        let fetch = Fetch {
            context: self,
            stdio,
            package: &package,
            settings: Settings::of(stdio, &self.variables),
            home: directory.join(record::directory_name(&package)),
        };
        fetch.installed().await.map(Some)
    }

    /// Whether `command` is the runner that it seems to be, with the package manager next to it, and would fetch the package itself: a
    /// project that has the package installed has its own version.
    fn is_runner(&self, stdio: &Stdio, package: &PackageRun) -> bool {
        let variables = self.of_child(stdio);
        let path = variables.get("PATH").unwrap_or_default();
        let Some(runner) = find_program(&stdio.command, path, &variables) else {
            return false;
        };
        match package.ecosystem {
            Ecosystem::Npm => {
                let directory = stdio.cwd.as_deref().or(self.directory.as_deref());
                let mut above = directory.into_iter().flat_map(Path::ancestors);
                let is_local = above.any(|at| at.join("node_modules").join(&package.name).is_dir());
                let real = runner.canonicalize().unwrap_or(runner);
                !is_local && real.ends_with("npm/bin/npx-cli.js")
            }
            Ecosystem::Pypi => runner.parent().is_some_and(|at| at.join("uv").is_file()),
        }
    }
}

/// The package of an entry, if it may be fetched. One with data inside would lose them with its version: its runner starts it, as that of a
/// client would, from the same directory.
fn fetchable(stdio: &Stdio) -> Option<PackageRun> {
    let is_left = cfg!(windows) || stdio.fetch == Some(false);
    if is_left || stdio.kept_data().is_some() {
        return None;
    }
    stdio.package()
}

/// The settings of the package manager for an entry. Two entries share an installation only under equal ones, so that no entry runs code
/// that another one's registry gave.
struct Settings {
    /// Whether scripts of packages run at the installation.
    has_scripts: bool,
    /// Those that go before all others.
    fixed: &'static [(&'static str, &'static str)],
    /// The hash of all of them.
    hash: String,
}

impl Settings {
    fn of(stdio: &Stdio, session: &Environment) -> Self {
        let own = stdio.env.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.expose().as_str()));
        let all = session.iter().chain(own);
        let mut variables: BTreeMap<&str, &str> =
            all.filter(|(name, _)| is_setting(name)).collect();
        let path = stdio.env.get("PATH").map(|path| path.expose().as_str());
        let path = path.or_else(|| session.get("PATH")).unwrap_or_default();
        variables.retain(|name, value| !is_indifferent(name, value, path, session));
        let has_scripts = stdio.sandbox.is_none();
        let fixed: &[_] = match has_scripts {
            true => &[],
            false => WITHOUT_CODE,
        };
        Self {
            has_scripts,
            fixed,
            hash: record::hash(&format!("{fixed:?} {variables:?}")),
        }
    }
}

/// Whether a variable is a setting of a package manager.
fn is_setting(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut starts = ["npm_config_", "uv_", "pip_"].iter();
    starts.any(|start| name.starts_with(start))
}

/// Whether a setting is empty, which npm ignores, one that npm gives to all that it starts with its own default, or one that changes neither
/// what is installed nor its source.
fn is_indifferent(name: &str, value: &str, path: &str, session: &Environment) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let Some(name) = name.strip_prefix("npm_config_") else {
        return false;
    };
    // `npm` is in `lib/node_modules/npm/bin` below its prefix.
    let above_npm = |levels: usize| {
        let npm = find_program("npm", path, session)?;
        let real = npm.canonicalize().ok()?;
        let is_own = real.ends_with("lib/node_modules/npm/bin/npm-cli.js");
        is_own.then(|| real.ancestors().nth(levels).map(Path::to_owned))?
    };
    let default = || match name {
        "userconfig" => Some(session.home()?.join(".npmrc")),
        "prefix" => above_npm(5),
        "globalconfig" => Some(above_npm(5)?.join("etc/npmrc")),
        "node_gyp" => Some(above_npm(2)?.join("node_modules/node-gyp/bin/node-gyp.js")),
        _ => None,
    };
    value.is_empty()
        || INDIFFERENT.contains(&name)
        || default().is_some_and(|default| Path::new(value) == default)
}

/// Removes the versions of a package, below `home`, that were not started for long. One with files that its server has written stays.
fn remove_unused(home: &Path) {
    let versions = std::fs::read_dir(home).into_iter().flatten().flatten();
    for version in versions {
        let directory = version.path();
        let modified = |name: &str| directory.join(name).metadata()?.modified();
        let Ok(installed) = modified(WHOLE) else {
            continue;
        };
        let used = modified(STARTED).unwrap_or(installed);
        if used.elapsed().is_ok_and(|age| age > KEPT) {
            if has_newer(&directory, installed) {
                tracing::warn!(directory = %directory.display(), "an old version of a package has files that its server wrote: it is kept");
                continue;
            }
            // The rest is removed another time.
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// Whether a directory has a file that was changed after `time`, except those of mcpzip and of the Python that ran there. One that cannot
/// be read may have.
fn has_newer(directory: &Path, time: SystemTime) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return true;
    };
    entries.into_iter().any(|entry| {
        let Ok(entry) = entry else { return true };
        let name = entry.file_name();
        if [WHOLE, STARTED, "__pycache__"]
            .iter()
            .any(|own| name == *own)
        {
            return false;
        }
        // Of a link itself.
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => has_newer(&entry.path(), time),
            Ok(metadata) => metadata.modified().map_or(true, |modified| modified > time),
            Err(_) => true,
        }
    })
}

/// The package of an entry that is being fetched.
struct Fetch<'a> {
    context: &'a UpstreamContext,
    stdio: &'a Stdio,
    package: &'a PackageRun,
    settings: Settings,
    /// The directory of all versions of it.
    home: PathBuf,
}

impl Fetch<'_> {
    async fn installed(&self) -> Result<Installed, FetchError> {
        files::create_private_directory(&self.home)?;
        // Sessions of several processes may want it at once.
        let lock = files::open_lock(&self.home.join("lock"))?;
        loop {
            match lock.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        let version = self.version().await?;
        let directory =
            self.home
                .join(record::version_name(self.package, &version, &self.settings));
        if !directory.join(WHOLE).exists() {
            // An installation that was ended midway has left it.
            if directory.exists() {
                let left = directory.clone();
                let removed = self
                    .context
                    .tasks
                    .spawn_blocking(move || std::fs::remove_dir_all(left));
                removed.await.map_err(io::Error::other)??;
            }
            files::create_private_directory(&directory)?;
            tracing::info!(package = %self.package.name, %version, "fetching the package");
            match self.package.ecosystem {
                Ecosystem::Npm => self.install_npm(&directory, &version).await?,
                Ecosystem::Pypi => self.install_pypi(&directory, &version).await?,
            }
            std::fs::write(directory.join(WHOLE), "")?;
            let home = self.home.clone();
            drop(
                self.context
                    .tasks
                    .spawn_blocking(move || remove_unused(&home)),
            );
        }
        // A cache that is read-only still has the package.
        let _ = std::fs::write(directory.join(STARTED), "");
        let (program, programs) = match self.package.ecosystem {
            Ecosystem::Npm => self.npm_program(&directory)?,
            Ecosystem::Pypi => self.pypi_program(&directory)?,
        };
        Ok(Installed {
            program,
            programs,
            directory,
            version,
        })
    }

    /// Whether scripts of packages run at the installation.
    fn has_scripts(&self) -> bool {
        self.settings.has_scripts
    }

    /// The version to start: the pinned one, or the one that was last looked up, at most a day ago.
    async fn version(&self) -> Result<String, FetchError> {
        if let Some(pinned) = self.package.pinned() {
            return Ok(pinned.to_owned());
        }
        let file = self
            .home
            .join(record::file_name(self.package, &self.settings));
        let known = Record::read(&file);
        if let Some(known) = known.as_ref().filter(|known| known.is_fresh()) {
            return Ok(known.version.clone());
        }
        let found = match self.package.ecosystem {
            Ecosystem::Npm => self.newest_npm().await,
            Ecosystem::Pypi => self.newest_pypi().await,
        };
        match (found, known) {
            (Ok(version), _) => {
                Record::now(&version).write(&file)?;
                Ok(version)
            }
            (Err(error), Some(known)) => {
                tracing::warn!(package = %self.package.name, version = %known.version, %error, "the newest version cannot be looked up: the last one is used");
                Record::retried(&known.version).write(&file)?;
                Ok(known.version)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// Runs a package manager.
    async fn run(
        &self,
        program: (&'static str, &'static str),
        args: &[&str],
        directory: &Path,
        input: Option<&str>,
        limit: Duration,
    ) -> Result<String, FetchError> {
        let (name, package) = program;
        let variables = self.context.of_child(self.stdio);
        let path = variables.get("PATH").unwrap_or_default();
        let path = match self.has_scripts() {
            true => path.to_owned(),
            // A server in a sandbox could have put a program there.
            false => self.context.sandboxes.trusted(path),
        };
        let Some(file) = find_program(name, &path, &variables) else {
            return Err(FetchError::NoProgram {
                program: name,
                package,
            });
        };
        let fixed = self.settings.fixed;
        // A package manager gets its own settings, and none of the server's secrets.
        let is_given = |name: &str| {
            let is_fixed = fixed.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
                || !self.has_scripts() && name.eq_ignore_ascii_case(LEFT_OUT);
            !is_fixed && is_setting(name)
        };
        let own = self.stdio.env.iter();
        let own = own
            .filter(|(name, _)| is_given(name))
            .map(|(name, value)| (name.clone(), value.clone()));
        let fixed = fixed.iter().copied().chain([("PATH", path.as_str())]);
        let fixed = fixed.map(|(name, value)| (name.to_owned(), Secret::new(value.to_owned())));
        let runner = Stdio {
            command: file.to_string_lossy().into_owned(),
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            env: own.chain(fixed).collect(),
            cwd: None,
            command_line: None,
            sandbox: None,
            fetch: None,
        };
        let session: Vec<(&str, &str)> = self
            .context
            .variables
            .iter()
            .filter(|(name, _)| is_given(name))
            .collect();
        let run = self.context.run(Run {
            program: &runner,
            arguments: &[],
            variables: &session,
            directory: Some(directory),
            input,
            limit: OUTPUT,
        });
        let command = || format!("{name} {}", args.first().copied().unwrap_or_default());
        let finished = tokio::time::timeout(limit, run).await;
        let finished = finished.map_err(|_| FetchError::Timeout {
            command: command(),
            limit,
        })??;
        match finished.status {
            Some(status) if status.success() => {
                Ok(String::from_utf8_lossy(&finished.stdout).into_owned())
            }
            _ => Err(FetchError::Failed {
                command: command(),
                said: said(&finished),
            }),
        }
    }
}

/// The first lines of what a failed package manager said.
fn said(finished: &Finished) -> String {
    let text = [&finished.stderr, &finished.stdout]
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .join("\n");
    if let Some(package) = missing_package(&text) {
        return format!("npm has no package `{package}`");
    }
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !is_noise(line))
        .take(4)
        .collect();
    lines.join(" | ").chars().take(400).collect()
}

/// The version of an entry's package that was fetched last, and is started next in a `session` with these variables; `None` if its runner
/// starts it.
pub(crate) fn fetched_version(
    directory: &Path,
    stdio: &Stdio,
    session: &Environment,
) -> Option<String> {
    let package = fetchable(stdio)?;
    let settings = Settings::of(stdio, session);
    let home = directory.join(record::directory_name(&package));
    let version = match package.pinned() {
        Some(pinned) => pinned.to_owned(),
        None => Record::read(&home.join(record::file_name(&package, &settings)))?.version,
    };
    let name = record::version_name(&package, &version, &settings);
    let is_whole = home.join(name).join(WHOLE).exists();
    is_whole.then(|| format!("{}@{version}", package.name))
}
