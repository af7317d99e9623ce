//! `mcpzip daemon install` and `uninstall`: the files of a service for systemd, launchd or Windows' Task Scheduler.

mod launchd;
mod service;
mod systemd;
mod task;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use self::service::{Installed, Program, Service};
use super::diagnostics::Exit;
use super::output::{Output, faint};
use crate::config::{Environment, Paths, is_inline};
use crate::files;

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Print the files, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print those of another system
    #[arg(long = "for", value_name = "SYSTEM", requires = "dry_run")]
    system: Option<System>,
}

/// A system with services of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum System {
    /// User units of systemd
    Linux,
    /// An agent of launchd
    Macos,
    /// A task of the Task Scheduler
    Windows,
}

impl System {
    /// # Errors
    /// When this is none of these systems.
    fn here() -> Result<Self, Exit> {
        if cfg!(target_os = "linux") {
            Ok(Self::Linux)
        } else if cfg!(target_os = "macos") {
            Ok(Self::Macos)
        } else if cfg!(windows) {
            Ok(Self::Windows)
        } else {
            Err(Exit::failed(
                "mcpzip has no service for this system: `mcpzip serve --http` serves HTTP clients",
            ))
        }
    }

    fn service(self, paths: &Paths, environment: &Environment) -> Result<Service, Exit> {
        let program = Program::of(paths)?;
        match self {
            Self::Linux => systemd::service(&program, paths, environment),
            Self::Macos => launchd::service(&program, environment),
            Self::Windows => task::service(&program, paths, environment),
        }
    }

    fn installed(self, paths: &Paths, environment: &Environment) -> Result<Installed, Exit> {
        match self {
            Self::Linux => systemd::installed(environment),
            Self::Macos => launchd::installed(environment),
            Self::Windows => Ok(task::installed(paths)),
        }
    }
}

impl Arguments {
    fn system(&self) -> Result<System, Exit> {
        self.system.map_or_else(System::here, Ok)
    }
}

pub(super) fn install(
    arguments: &Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    if is_inline(&paths.config_file) {
        return Err(Exit::failed(
            "the configuration is in a variable, which a service does not have: write it to a file first",
        ));
    }
    let service = arguments.system()?.service(paths, environment)?;
    for file in &service.files {
        check_own(&file.path)?;
    }
    if let Some(directory) = service
        .log_directory
        .as_ref()
        .filter(|_| !arguments.dry_run)
    {
        files::create_private_directory(directory)?;
    }
    for file in service.files.iter().filter(|_| !arguments.dry_run) {
        let directory = file.path.parent().unwrap_or(&file.path);
        std::fs::create_dir_all(directory)?;
        files::replace(&file.path, &[&file.bytes()])?;
    }
    if output.is_json() {
        let files = service.files.iter();
        let files: Vec<_> = files
            .map(|file| json!({ "path": file.path, "text": file.text }))
            .collect();
        output.json(
            &json!({ "written": !arguments.dry_run, "socket": service.socket, "files": files }),
        );
        return Ok(());
    }
    for file in &service.files {
        output.line(faint(file.path.display()));
        if arguments.dry_run {
            output.verbatim(&file.text);
        }
    }
    if !arguments.dry_run {
        output.line(service.start);
    }
    Ok(())
}

pub(super) fn uninstall(
    arguments: &Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let Installed { files, end } = arguments.system()?.installed(paths, environment)?;
    for path in &files {
        check_own(path)?;
    }
    let removed: Vec<PathBuf> = files.into_iter().filter(|path| path.exists()).collect();
    for path in removed.iter().filter(|_| !arguments.dry_run) {
        std::fs::remove_file(path)?;
    }
    if output.is_json() {
        output.json(&json!({ "removed": removed, "written": !arguments.dry_run }));
    } else if removed.is_empty() {
        output.line("no service of mcpzip is installed");
    } else {
        for path in &removed {
            output.line(faint(path.display()));
        }
        output.line(end);
    }
    Ok(())
}

/// # Errors
/// When another program or a person wrote the file.
fn check_own(path: &Path) -> Result<(), Exit> {
    match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(bytes) if service::is_ours(&bytes) => Ok(()),
        _ => Err(Exit::failed(format!(
            "`{}` was not written by mcpzip, and is left as it is: remove or rename it first",
            path.display()
        ))),
    }
}
