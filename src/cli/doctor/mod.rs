//! `mcpzip doctor`: checks the configuration, servers, logins, caches, files and clients, and reports what is wrong.
//!
//! Each part checks one thing and adds findings. The checks change nothing, except that servers are listed again and
//! damaged lists are discarded. Repairs are made afterwards, with `--fix` only. The table [`kinds`] has all kinds of
//! findings.

mod audit;
mod caches;
mod clients;
mod commands;
mod configuration;
mod daemon;
mod files;
mod finding;
mod fix;
mod identities;
mod kinds;
mod logins;
mod notify;
mod profiles;
mod programs;
mod report;
mod sandboxes;
mod scripts;
mod secrets;
mod servers;
mod shown;
mod store;

use clap::Args;

use super::completions;
use super::diagnostics::Exit;
use super::output::Output;
use super::printable::printable;
use super::setup::Machine;
use crate::app::App;
use crate::config::{Config, SessionEnv};
use crate::pause::Pause;
use crate::proxy::{Request, Start};
use crate::shutdown;
use crate::tool::ServerName;
use finding::Finding;
use kinds::Severity;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip doctor
  mcpzip doctor github
  mcpzip doctor --fix --json

It ends with 0 when at most notes are left, with 6 for warnings, and with 1 for errors. docs/doctor.md has an entry for each finding.")]
pub(super) struct Arguments {
    /// Check only this server
    #[arg(value_name = "SERVER", add = completions::of_servers())]
    server: Option<String>,
    /// Fix the problems that are safe to fix, and print each
    #[arg(long)]
    fix: bool,
}

/// The results of all checks.
#[derive(Debug, Default)]
struct Examination {
    findings: Vec<Finding>,
    servers: Vec<servers::ListedServer>,
    clients: Vec<clients::ClientReport>,
}

impl Examination {
    fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// The highest severity that is left.
    fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(Finding::severity).max()
    }
}

pub(super) async fn run(
    arguments: &Arguments,
    machine: Machine,
    output: &Output,
) -> Result<(), Exit> {
    let mut examination = Examination::default();
    let config = configuration::examine(&machine, arguments.server.as_deref(), &mut examination);
    if let Some(name) = &arguments.server {
        check_name(name, config.as_ref(), &examination)?;
    }
    let app = config.map(|config| {
        let session = SessionEnv::here(machine.around.environment.clone());
        let paths = machine.paths.clone();
        let app = App::with_config(config, paths, session, Start::Nothing, Request::default());
        // Servers of a project are tested in it.
        app.set_workspace();
        app
    });
    let outcome = tokio::select! {
        biased;
        signal = shutdown::signal() => Err(Exit::interrupted(signal)),
        () = examine(arguments, &machine, app.as_ref(), &mut examination, output) => Ok(()),
    };
    if let Some(app) = app {
        app.finish().await;
    }
    outcome?;
    examination
        .findings
        .sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
    report::show(&examination, &machine, output);
    match examination.worst() {
        Some(Severity::Error) => Err(Exit::found(true)),
        Some(Severity::Warning) => Err(Exit::found(false)),
        Some(Severity::Note) | None => Ok(()),
    }
}

async fn examine(
    arguments: &Arguments,
    machine: &Machine,
    app: Option<&App>,
    examination: &mut Examination,
    output: &Output,
) {
    let only = arguments
        .server
        .as_deref()
        .and_then(|name| ServerName::new(name).ok());
    if let Some(paused) = Pause::below(&machine.paths.state_dir).state() {
        let what = printable(&paused.to_string());
        examination.add(Finding::new(&kinds::PAUSED, "mcpzip", what));
    }
    if let Some(app) = app {
        programs::examine(app, machine, only.as_ref(), examination);
        caches::before(app, only.as_ref()).await;
        servers::examine(app, only.as_ref(), examination, output).await;
        sandboxes::examine(app, machine, only.as_ref(), examination).await;
        logins::examine(app, machine, only.as_ref(), examination).await;
        caches::after(app, machine, only.as_ref(), examination).await;
    }
    if arguments.server.is_none() {
        if let Some(app) = app {
            store::examine_placement(&app.proxy().unscoped().config(), examination);
            profiles::examine(&app.proxy().unscoped().config(), examination);
            scripts::examine(&app.proxy().unscoped().config(), examination).await;
            identities::examine(app, examination).await;
            shown::examine(app, examination);
            audit::examine(app, machine, examination).await;
            notify::examine(app, machine, examination).await;
        }
        store::examine(machine, examination).await;
        secrets::examine(machine, examination);
        files::examine(machine, examination);
        daemon::examine(machine, app, examination);
        clients::examine(machine, app, examination);
    }
    if arguments.fix {
        fix::all(app, machine, examination, output).await;
    }
}

/// An unknown server name is an error of the command line, not a finding.
fn check_name(name: &str, config: Option<&Config>, examination: &Examination) -> Result<(), Exit> {
    let Some(config) = config else { return Ok(()) };
    let is_known = config.servers.keys().any(|known| known.as_str() == name);
    let is_faulty = examination
        .findings
        .iter()
        .any(|finding| finding.subject == name);
    if is_known || is_faulty {
        Ok(())
    } else {
        Err(Exit::unknown_server(name, config))
    }
}
