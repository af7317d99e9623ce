//! Commands that run in the user's daemon, over the servers that sessions share. The process of the command prints the
//! output, which is the same as without a daemon, and so is the exit code.

use std::pin::Pin;

use clap::Subcommand;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

use super::daemon_option::DaemonOption;
use super::diagnostics::Exit;
use super::output::{Output, Printed};
use super::{call, describe, search, servers, tools};
use crate::app::{self, App};
use crate::config::{DaemonMode, DaemonOptions, Environment, Paths, SessionEnv, is_inline};
use crate::daemon::{self, Ran};

/// Commands that need the servers.
#[derive(Debug, Subcommand, Serialize, Deserialize)]
pub(super) enum Command {
    /// Find tools by what you need done
    Search(search::Arguments),
    /// Show the full definition of a tool
    Describe(describe::Arguments),
    /// Call a tool
    Call(call::Arguments),
    /// List the tools of all servers, or of one
    Tools(tools::Arguments),
    /// Connect to every server and show its state
    Servers(servers::Arguments),
}

/// A command and the printing settings of its process.
#[derive(Serialize, Deserialize)]
struct CommandRequest<C> {
    command: C,
    is_json: bool,
    is_json_asked: bool,
}

/// Runs the commands of other processes in the daemon.
#[derive(Debug)]
pub(super) struct OverDaemon;

impl Command {
    fn daemon_option(&self) -> &DaemonOption {
        match self {
            Self::Search(arguments) => &arguments.daemon,
            Self::Describe(arguments) => &arguments.daemon,
            Self::Call(arguments) => &arguments.daemon,
            Self::Tools(arguments) => &arguments.daemon,
            Self::Servers(arguments) => &arguments.daemon,
        }
    }

    /// The profile whose part of the configuration it uses.
    pub(super) fn profile(&self, environment: &Environment) -> Option<String> {
        let option = match self {
            Self::Search(arguments) => &arguments.profile,
            Self::Describe(arguments) => &arguments.profile,
            Self::Call(arguments) => &arguments.profile,
            Self::Tools(arguments) => &arguments.profile,
            Self::Servers(arguments) => &arguments.profile,
        };
        option.name(environment)
    }

    /// Whether the faults of the configuration are counted before it runs: it is about all servers, and does not show each with its server.
    /// A command about one server fails if that one has a fault.
    pub(super) fn counts_faults(&self) -> bool {
        match self {
            Self::Search(arguments) => arguments.is_about_all(),
            Self::Tools(arguments) => arguments.is_about_all(),
            Self::Describe(_) | Self::Call(_) | Self::Servers(_) => false,
        }
    }

    pub(super) async fn run(&self, app: &App, output: &Output) -> Result<(), Exit> {
        match self {
            Self::Search(arguments) => search::run(arguments, app, output).await,
            Self::Describe(arguments) => describe::run(arguments, app, output).await,
            Self::Call(arguments) => call::run(arguments, app, output).await,
            Self::Tools(arguments) => tools::run(arguments, app, output).await,
            Self::Servers(arguments) => servers::run(arguments, app, output).await,
        }
    }
}

/// Runs `command` in the daemon if one is running. A daemon is never started for a command, because it would stay behind.
/// `None` if the command did nothing and must run in this process.
pub(super) async fn run(
    command: &mut Command,
    paths: &Paths,
    session: &SessionEnv,
    output: &Output,
) -> Option<Result<(), Exit>> {
    let options = DaemonOptions::load(paths, &session.environment);
    let is_possible = options.mode == DaemonMode::Auto
        && !command.daemon_option().alone
        && !is_inline(&paths.config_file)
        && daemon::is_there(paths, &session.environment);
    if !is_possible {
        return None;
    }
    if let Command::Call(call) = command
        && let Err(exit) = call.read_input().await
    {
        return Some(Err(exit));
    }
    let profile = command.profile(&session.environment);
    let request = daemon::Request {
        env: session,
        surface: None,
        profile: profile.as_deref(),
        idle: options.idle,
    };
    let asked = serde_json::to_string(&CommandRequest {
        command: &*command,
        is_json: output.is_json(),
        is_json_asked: output.is_json_asked(),
    })
    .expect("commands are JSON");
    let (mut spinner, mut odd, mut outcome) = (None, None, Ok(()));
    let ran = daemon::run_command(paths, &request, asked, |text| {
        match serde_json::from_str(text) {
            Ok(Printed::Odd { faults, warnings }) => odd = Some((faults, warnings)),
            Ok(Printed::Failed(reported)) => outcome = Err(Exit::from(reported)),
            Ok(printed) => output.replay(printed, &mut spinner),
            Err(error) => outcome = Err(anyhow::Error::from(error).into()),
        }
    })
    .await;
    drop(spinner);
    let ended = match ran {
        Ok(Ran::Whole) => outcome,
        Ok(Ran::Not) => {
            if let Command::Call(call) = command {
                call.read_on();
            }
            return None;
        }
        Err(error) => Err(Exit::failed(format!(
            "the daemon ended while the command ran, and what it called may have acted: {error}"
        ))),
    };
    if let Command::Call(call) = command {
        call.remark_on_input(output);
    }
    if let Some((faults, warnings)) = odd {
        app::sum(&faults, warnings, paths);
    }
    Some(ended)
}

impl daemon::Commands for OverDaemon {
    fn run<'a>(
        &'a self,
        app: &'a App,
        command: &'a str,
        printed: UnboundedSender<String>,
    ) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        Box::pin(async move {
            let Ok(asked) = serde_json::from_str::<CommandRequest<Command>>(command) else {
                return false;
            };
            // The process removes colours if it prints none.
            console::set_colors_enabled(true);
            let output = Output::elsewhere(printed, asked.is_json, asked.is_json_asked);
            if asked.command.counts_faults() {
                let config = app.proxy().unscoped().config();
                let (faults, warnings) = (app::faulty(&config), config.warnings.len());
                output.send(&Printed::Odd { faults, warnings });
            }
            let Err(exit) = asked.command.run(app, &output).await else {
                return true;
            };
            let report = exit.report();
            if let Some(reported) = report {
                output.send(&Printed::Failed(reported));
                return true;
            }
            false
        })
    }
}
