//! The command line: one file per command, each arguments in, work, a few lines out.

mod approve;
mod auth;
mod browser;
mod call;
mod connect;
mod demo;
mod describe;
mod diagnostics;
mod explanation;
mod gain;
mod login;
mod migrate;
mod output;
mod search;
mod serve;
mod servers;
mod setup;
mod since;
mod stats;
mod tokens;
mod tools;
mod undo;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::app::App;
use crate::config::{Environment, PathFlags, Paths, env};
use crate::proxy::{Mode, Start};
use crate::{telemetry, upstream};
use diagnostics::Exit;
use output::Output;

/// Threads for what would hold up messages.
const BLOCKING_THREADS: usize = 4;

const EXIT_CODES: &str = "Exit codes:
  0  it worked
  1  it failed
  2  the command line is wrong
  3  the configuration is missing or wrong
  4  the server could not be reached, or gave no answer
  5  the tool reported an error";

/// One MCP server in front of all the others: search, describe and execute their tools.
#[derive(Debug, Parser)]
#[command(name = "mcpzip", version, after_help = EXIT_CODES, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: Global,
}

#[derive(Debug, Clone, Args)]
struct Global {
    /// The configuration file
    #[arg(long, global = true, value_name = "FILE", help_heading = "Options for all commands")]
    config: Option<PathBuf>,
    /// Where tool lists and the search index are kept
    #[arg(long, global = true, value_name = "DIR", help_heading = "Options for all commands")]
    cache_dir: Option<PathBuf>,
    /// Where logs are kept
    #[arg(long, global = true, value_name = "DIR", help_heading = "Options for all commands")]
    state_dir: Option<PathBuf>,
    /// Print JSON, as is done without being asked when the output is no terminal
    #[arg(long, global = true, help_heading = "Options for all commands")]
    json: bool,
    /// How much to log on stderr: off, error, warn, info, debug or trace
    #[arg(long, global = true, value_name = "LEVEL", value_parser = telemetry::LEVELS, help_heading = "Options for all commands")]
    log: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve an MCP client on stdin and stdout, or many over HTTP
    Serve(serve::Arguments),
    /// Find tools by what you need done
    Search(search::Arguments),
    /// Show the whole definition of a tool
    Describe(describe::Arguments),
    /// Call a tool
    Call(call::Arguments),
    /// List the tools of all servers, or of one
    Tools(tools::Arguments),
    /// Connect to every server and show its state
    Servers,
    /// Show what was called: calls, errors, times and bytes
    Stats(stats::Arguments),
    /// Show what agents were spared, and what they paid for it
    Gain(gain::Arguments),
    /// Look at tools that changed after they were first seen, and approve them
    Approve(approve::Arguments),
    /// Log in to a remote server, in the browser
    Login(login::LoginArguments),
    /// Forget the login at a server, and end it there
    Logout(login::LogoutArguments),
    /// Look after logins
    #[command(subcommand)]
    Auth(auth::Command),
    /// Take over the servers that clients have
    Migrate(migrate::Arguments),
    /// Put the entry of mcpzip into a client
    Connect(connect::ConnectArguments),
    /// Take the entry of mcpzip out of a client
    Disconnect(connect::DisconnectArguments),
    /// Take back what the last migrate, connect or disconnect did to files
    Undo(undo::Arguments),
    /// Try it: real servers from inside the binary, searched and called as an agent would
    Demo,
    /// Watch over the servers' processes
    #[command(name = upstream::GUARD_COMMAND, hide = true)]
    Guard {
        /// What the servers carry
        mark: String,
    },
    /// Run one jq filter under limits
    #[command(name = crate::proxy::projection::COMMAND, hide = true)]
    Select,
    /// Be one of the demo's servers
    #[command(name = demo::SERVER_COMMAND, hide = true)]
    DemoServer(demo::ServerArguments),
}

/// Runs the program with `arguments`, its own name first.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            // Help that cannot be printed has nobody to read it.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
        }
    };
    let output = Output::new(cli.global.json);
    match execute(cli, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => {
            output.error(&exit);
            ExitCode::from(exit.code())
        }
    }
}

fn execute(cli: Cli, output: &Output) -> Result<(), Exit> {
    if let Command::Select = cli.command {
        // Before anything else is there: a filter's limits are those of its process.
        return Exit::with_code(crate::proxy::projection::run_worker()?);
    }
    // Messages pass on one thread, so that a call wakes no other. What computes or touches the disk has a few of its
    // own: enough that a search need not wait for an index, and few, because each keeps memory that it has freed.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(BLOCKING_THREADS).build()?;
    match cli.command {
        Command::Guard { mark } => return Ok(runtime.block_on(upstream::run_guard(&mark))?),
        Command::DemoServer(arguments) => return demo::serve(&arguments),
        _ => {}
    }
    let environment = Environment::process();
    let named = cli.global.log.as_deref().or_else(|| environment.get(env::LOG.name));
    let quiet = if matches!(cli.command, Command::Serve(_)) { "warn" } else { "error" };
    telemetry::start(telemetry::level(named.unwrap_or(quiet)).unwrap_or(tracing::level_filters::LevelFilter::WARN));
    runtime.block_on(dispatch(cli.command, cli.global, environment, output))
}

async fn dispatch(command: Command, global: Global, environment: Environment, output: &Output) -> Result<(), Exit> {
    if let Command::Demo = command {
        return demo::run(environment, output).await;
    }
    let has_own_config = global.config.is_some();
    let flags = PathFlags { config_file: global.config, cache_dir: global.cache_dir, state_dir: global.state_dir };
    let paths = Paths::resolve(flags, &environment)?;
    match command {
        Command::Stats(arguments) => return stats::run(&arguments, &paths, output),
        Command::Gain(arguments) => return gain::run(arguments, &paths, &environment, output),
        _ => {}
    }
    if let Command::Serve(arguments) = command {
        let mode = arguments.mode();
        let way = arguments.way(&environment, output)?;
        return serve::run(way, App::new(paths, environment, Start::Everything, mode)?, output).await;
    }
    if matches!(command, Command::Login(_) | Command::Logout(_) | Command::Auth(_)) {
        let accounts = login::Accounts::new(&paths, environment)?;
        let outcome = tokio::select! {
            outcome = of_accounts(&command, &accounts, output) => outcome,
            signal = crate::shutdown::signal() => Err(Exit::interrupted(signal)),
        };
        accounts.finish().await;
        return outcome;
    }
    if matches!(command, Command::Migrate(_) | Command::Connect(_) | Command::Disconnect(_) | Command::Undo(_)) {
        return of_clients(&command, &setup::Machine::new(paths, environment, has_own_config)?, output).await;
    }
    let app = App::new(paths, environment, Start::Unknown, Mode::MetaTools)?;
    app.stand_here();
    let outcome = tokio::select! {
        outcome = one_shot(command, &app, output) => outcome,
        signal = crate::shutdown::signal() => Err(Exit::interrupted(signal)),
    };
    app.finish().await;
    outcome
}

async fn of_accounts(command: &Command, accounts: &login::Accounts, output: &Output) -> Result<(), Exit> {
    match command {
        Command::Login(arguments) => login::log_in(arguments, accounts, output).await,
        Command::Logout(arguments) => login::log_out(arguments, accounts, output).await,
        Command::Auth(command) => auth::run(command, accounts, output).await,
        _ => unreachable!("only these have to do with accounts"),
    }
}

/// These block on files, and nothing else runs meanwhile.
async fn of_clients(command: &Command, machine: &setup::Machine, output: &Output) -> Result<(), Exit> {
    match command {
        Command::Migrate(arguments) => migrate::run(arguments, machine, output).await,
        Command::Connect(arguments) => connect::run_connect(arguments, machine, output),
        Command::Disconnect(arguments) => connect::run_disconnect(arguments, machine, output),
        Command::Undo(arguments) => undo::run(arguments, machine, output),
        _ => unreachable!("only these have to do with clients' files"),
    }
}

async fn one_shot(command: Command, app: &App, output: &Output) -> Result<(), Exit> {
    match command {
        Command::Search(arguments) => search::run(&arguments, app, output).await,
        Command::Describe(arguments) => describe::run(&arguments, app, output).await,
        Command::Call(arguments) => call::run(&arguments, app, output).await,
        Command::Tools(arguments) => tools::run(&arguments, app, output).await,
        Command::Servers => servers::run(app, output).await,
        Command::Approve(arguments) => approve::run(&arguments, app, output).await,
        Command::Serve(_)
        | Command::Stats(_)
        | Command::Gain(_)
        | Command::Login(_)
        | Command::Logout(_)
        | Command::Auth(_)
        | Command::Migrate(_)
        | Command::Connect(_)
        | Command::Disconnect(_)
        | Command::Undo(_)
        | Command::Demo
        | Command::Guard { .. }
        | Command::Select
        | Command::DemoServer(_) => unreachable!("handled before"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
