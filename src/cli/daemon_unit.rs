//! `mcpzip daemon install` and `uninstall`: user units of systemd, which listens on the daemon's socket and starts it on demand.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::diagnostics::Exit;
use super::output::{Output, faint};
use crate::config::{Environment, Paths, env, is_inline};
use crate::{daemon, executable, files};

/// The first line of our units; other files are not touched.
const MARK: &str = "# Written by `mcpzip daemon install`.";
const SOCKET: &str = "mcpzip.socket";
const SERVICE: &str = "mcpzip.service";

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Print the files, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// The two units with their paths.
struct Units {
    listens_at: PathBuf,
    files: [(PathBuf, String); 2],
}

impl Units {
    /// # Errors
    /// When there is no directory for units or for the socket, or a path cannot be written into a unit.
    fn of(paths: &Paths, environment: &Environment) -> Result<Self, Exit> {
        let listens_at = daemon::socket(paths, environment).map_err(anyhow::Error::from)?;
        let directory = directory(environment)?;
        let program = executable::path()?;
        let [program, config, cache, state] = [
            &program,
            &paths.config_file,
            &paths.cache_dir,
            &paths.state_dir,
        ]
        .map(|path| quoted(path));
        let socket = format!(
            "{MARK}\n[Unit]\nDescription=Socket of the mcpzip daemon\n\n[Socket]\nListenStream={}\nSocketMode=0600\nDirectoryMode=0700\nRemoveOnStop=yes\n\n[Install]\nWantedBy=sockets.target\n",
            specifiers_escaped(&listens_at)?
        );
        let service = format!(
            "{MARK}\n[Unit]\nDescription=mcpzip daemon: one set of servers for all sessions\nRequires={SOCKET}\nAfter={SOCKET}\n\n[Service]\nType=exec\nExecStart={} daemon run --config {} --cache-dir {} --state-dir {}\nStandardInput=socket\nStandardOutput=journal\nStandardError=journal\nKillMode=mixed\n",
            program?, config?, cache?, state?
        );
        Ok(Self {
            listens_at,
            files: [
                (directory.join(SOCKET), socket),
                (directory.join(SERVICE), service),
            ],
        })
    }
}

pub(super) fn install(
    arguments: &Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    check_system()?;
    if is_inline(&paths.config_file) {
        return Err(Exit::failed(
            "the configuration is in a variable, which a service does not have: write it to a file first",
        ));
    }
    let units = Units::of(paths, environment)?;
    for (path, _) in &units.files {
        check_own(path)?;
    }
    for (path, text) in &units.files {
        if !arguments.dry_run {
            let directory = path.parent().unwrap_or(path);
            std::fs::create_dir_all(directory)?;
            files::replace(path, &[text.as_bytes()])?;
        }
    }
    if output.is_json() {
        let files: Vec<_> = units
            .files
            .iter()
            .map(|(path, text)| json!({ "path": path, "text": text }))
            .collect();
        output.json(
            &json!({ "written": !arguments.dry_run, "socket": units.listens_at, "files": files }),
        );
        return Ok(());
    }
    for (path, text) in &units.files {
        output.line(faint(path.display()));
        if arguments.dry_run {
            output.verbatim(text);
        }
    }
    if !arguments.dry_run {
        output.line("`systemctl --user daemon-reload && systemctl --user enable --now mcpzip.socket` starts it; install it again after each update of mcpzip");
    }
    Ok(())
}

pub(super) fn uninstall(
    arguments: &Arguments,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    check_system()?;
    let directory = directory(environment)?;
    let units = [directory.join(SOCKET), directory.join(SERVICE)];
    for path in &units {
        check_own(path)?;
    }
    let removed: Vec<PathBuf> = units.into_iter().filter(|path| path.exists()).collect();
    for path in removed.iter().filter(|_| !arguments.dry_run) {
        std::fs::remove_file(path)?;
    }
    if output.is_json() {
        output.json(&json!({ "removed": removed, "written": !arguments.dry_run }));
    } else if removed.is_empty() {
        output.line("no units of mcpzip are installed");
    } else {
        for path in &removed {
            output.line(faint(path.display()));
        }
        output.line("`systemctl --user stop mcpzip.socket mcpzip.service; systemctl --user daemon-reload` ends what runs");
    }
    Ok(())
}

/// # Errors
/// On a system without a daemon, or without systemd.
fn check_system() -> Result<(), Exit> {
    if cfg!(target_os = "linux") {
        return Ok(());
    }
    Err(Exit::failed(
        "sessions share a daemon on Linux only, so there is nothing to install: each session runs its own servers",
    ))
}

/// # Errors
/// When another program or a person wrote the file.
fn check_own(path: &Path) -> Result<(), Exit> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(text) if text.starts_with(MARK) => Ok(()),
        _ => Err(Exit::failed(format!(
            "`{}` was not written by mcpzip, and is left as it is: remove or rename it first",
            path.display()
        ))),
    }
}

/// The directory of the user's units.
fn directory(environment: &Environment) -> Result<PathBuf, Exit> {
    let given = |name: &str| {
        environment
            .get(name)
            .map(Path::new)
            .filter(|path| path.is_absolute())
    };
    let configuration = given(env::XDG_CONFIG_HOME.name).map(Path::to_owned);
    configuration
        .or_else(|| Some(given("HOME")?.join(".config")))
        .map(|configuration| configuration.join("systemd/user"))
        .ok_or_else(|| Exit::failed("there is no home directory: set HOME to an absolute path"))
}

/// A word of a command line in a unit.
fn quoted(path: &Path) -> Result<String, Exit> {
    let text = specifiers_escaped(path)?;
    let text = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('$', "$$");
    Ok(format!("\"{text}\""))
}

/// A path as text in which `%` names nothing.
fn specifiers_escaped(path: &Path) -> Result<String, Exit> {
    let text = path.to_str().filter(|text| !text.contains(['\n', '\r']));
    let unusable = || {
        Exit::failed(format!(
            "the path `{}` cannot be written into a unit: it is not Unicode, or has a line break",
            path.display()
        ))
    };
    Ok(text.ok_or_else(unusable)?.replace('%', "%%"))
}
