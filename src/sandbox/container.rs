//! The sandbox of an entry with an `image`: a container of podman or docker.
//!
//! Variables are named on the command line and reach the engine as its own variables, so no value is seen by other users. A container
//! belongs to the engine and not to the process that started it, so it is ended by its name.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::mounts::{Access, Mounts};
use super::{Launch, Refusal, Start, TRIAL, lookup};
use crate::config::Sandbox;
use crate::config::env::Environment;

/// The program that runs containers.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    name: &'static str,
    pub(super) program: PathBuf,
}

/// A running container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Container {
    /// The engine's file.
    pub(crate) engine: PathBuf,
    /// Its name, which has no spaces.
    pub(crate) name: String,
}

/// Its name and its engine in one line.
impl std::fmt::Display for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.name, self.engine.display())
    }
}

const ENGINES: [&str; 2] = ["podman", "docker"];

/// The beginnings of the names of variables that configure an engine.
const OF_ENGINES: &[&str] = &[
    "BUILDAH_",
    "CONTAINER",
    "DOCKER_",
    "DYLD_",
    "GODEBUG",
    "LD_",
    "PODMAN_",
    "REGISTRY_AUTH_FILE",
    "STORAGE_",
    "TMPDIR",
    "XDG_",
    "_CONTAINERS_",
];

/// The variables of the session for an engine: all but mcpzip's own, which have the keys of its secrets.
pub(crate) fn of_engine(session: &Environment) -> impl Iterator<Item = (&str, &str)> {
    session
        .iter()
        .filter(|(name, _)| !name.starts_with("MCPZIP_"))
}

/// The data directory in a container.
const HOME: &str = "/data";

/// podman if it is there, otherwise docker.
pub(super) fn engine(path: &str, changeable: impl Fn(&Path) -> bool) -> Result<Engine, Refusal> {
    let found = ENGINES.into_iter().find_map(|name| {
        let program = lookup::chosen_tool(name, path, &changeable)?;
        Some(Engine { name, program })
    });
    found.ok_or(Refusal::NoTool {
        tool: "podman or docker",
        advice: "install one of them, or take `image` out of the `sandbox`",
    })
}

/// Asks the engine for its state.
///
/// # Errors
/// When it does not work, as a docker client whose daemon does not run.
pub(super) async fn check(engine: &Engine, session: &Environment) -> Result<(), Refusal> {
    let mut command = Command::new(&engine.program);
    command
        .arg("info")
        .env_clear()
        .envs(of_engine(session))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let said = match tokio::time::timeout(TRIAL, command.output()).await {
        Ok(output) => {
            let output = output?;
            if output.status.success() {
                return Ok(());
            }
            last_line(&output.stderr)
        }
        Err(_) => format!("nothing for {} s", TRIAL.as_secs()),
    };
    Err(Refusal::Tool {
        tool: engine.name,
        said,
        advice: match engine.name {
            "docker" => {
                ": the client is installed, but its daemon does not answer; start it, or install podman, which needs none"
            }
            _ => "",
        },
    })
}

pub(super) fn launch(
    engine: Engine,
    sandbox: &Sandbox,
    start: &Start<'_>,
    mounts: &Mounts<'_>,
) -> Result<Launch, Refusal> {
    let image = sandbox.image.as_deref().unwrap_or_default();
    let name = format!("mcpzip-{:016x}", RandomState::new().hash_one(start.name));
    let mut args: Vec<OsString> = [
        "run",
        "--rm",
        "-i",
        "--init",
        "--name",
        &name,
        "--read-only",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
        "--pids-limit",
        "512",
        "--tmpfs",
        "/tmp",
    ]
    .into_iter()
    .map(OsString::from)
    .collect();
    if !sandbox.has_network {
        args.extend(["--network".into(), "none".into()]);
    }
    args.extend(user(engine.name));
    if engine.name == "podman" {
        // It would give the session's own to the server, with the passwords in them.
        args.push("--http-proxy=false".into());
    }
    for (path, access) in &mounts.opened {
        let inside = if *path == mounts.data {
            PathBuf::from(HOME)
        } else {
            path.clone()
        };
        let (path, inside) = (path.to_string_lossy(), inside.to_string_lossy());
        // A comma separates the fields of a mount.
        if path.contains(',') {
            return Err(Refusal::Path {
                path: path.into_owned().into(),
                problem: "has a comma, which a mount of a container cannot have",
            });
        }
        let mount = match access {
            Access::None if Path::new(&*path).is_dir() => {
                format!("type=tmpfs,target={inside},readonly")
            }
            Access::None => format!("type=bind,source=/dev/null,target={inside},readonly"),
            Access::Read => format!("type=bind,source={path},target={inside},readonly"),
            Access::Write => format!("type=bind,source={path},target={inside}"),
        };
        args.extend(["--mount".into(), mount.into()]);
    }
    let own = start.stdio.env.iter();
    let own = own.map(|(name, value)| (name.clone(), value.expose().clone()));
    let session = sandbox.env.iter().filter_map(|name| {
        let value = start.session.get(name)?;
        Some((name.clone(), value.to_owned()))
    });
    let home = ("HOME".to_owned(), HOME.to_owned());
    let inside: BTreeMap<String, String> =
        std::iter::once(home).chain(session).chain(own).collect();
    // The engine itself is found and configured by these.
    let mut variables: BTreeMap<String, String> = of_engine(start.session)
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    for (name, value) in inside {
        args.push("--env".into());
        if OF_ENGINES.iter().any(|start| name.starts_with(start)) {
            return Err(Refusal::Variable(name));
        }
        if ["PATH", "HOME"].contains(&name.as_str()) {
            // The engine has its own.
            args.push(format!("{name}={value}").into());
        } else {
            args.push(name.clone().into());
            variables.insert(name, value);
        }
    }
    let directory = match mounts.working_directory(start.stdio.cwd.as_deref())? {
        data if data == mounts.data => PathBuf::from(HOME),
        other => other,
    };
    args.extend(["--workdir".into(), directory.into_os_string()]);
    // An image may have an entry point, which would get the command as its argument.
    args.extend(["--entrypoint".into(), start.stdio.command.clone().into()]);
    args.push(image.into());
    args.extend(start.stdio.args.iter().map(OsString::from));
    variables.extend(start.mark.cloned());
    Ok(Launch {
        program: engine.program.clone(),
        args,
        variables: variables.into_iter().collect(),
        directory: PathBuf::from("/"),
        container: Some(Container {
            engine: engine.program,
            name,
        }),
        #[cfg(target_os = "linux")]
        descriptors: Vec::new(),
    })
}

/// The options by which files that the server writes belong to the user.
#[cfg(unix)]
fn user(engine: &str) -> Vec<OsString> {
    let (uid, gid) = (
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    match engine {
        "docker" => vec!["--user".into(), format!("{uid}:{gid}").into()],
        _ if uid != 0 => vec!["--userns".into(), "keep-id".into()],
        _ => Vec::new(),
    }
}

#[cfg(not(unix))]
fn user(_: &str) -> Vec<OsString> {
    Vec::new()
}

/// The last line of an output, for a sentence.
pub(super) fn last_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or("nothing").trim().chars().take(300).collect()
}
