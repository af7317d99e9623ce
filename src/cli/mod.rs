//! The command line, with one file per command. A command reads its arguments, does its work and prints a few lines.

mod add;
mod approvals;
mod approve;
mod audit;
mod auth;
mod browser;
mod call;
mod call_arguments;
mod clients;
mod completions;
mod config;
mod config_text;
mod connect;
mod daemon;
mod daemon_option;
mod daemon_unit;
mod demo;
mod describe;
mod diagnostics;
mod difference;
mod doctor;
mod explanation;
mod extract_secrets;
mod from_registry;
mod gain;
mod healthcheck;
mod help;
mod identity_token;
mod init;
mod list;
mod login;
mod logs;
mod man;
mod migrate;
mod output;
mod over_daemon;
mod printable;
mod profile_option;
mod question;
mod recorder;
mod registry;
mod remove;
mod rules;
mod search;
mod secret;
mod serve;
mod servers;
mod setup;
mod stats;
mod status;
mod status_identities;
mod status_profiles;
mod status_store;
mod store;
mod tokens;
mod tools;
mod top;
mod tray;
mod trial;
mod twins;
mod ui;
mod undo;
mod unknown;
mod update;
mod wrap;
mod written_entry;

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tracing::level_filters::LevelFilter;

use crate::app::{App, LOGS};
use crate::config::{
    EditError, Environment, LOG_LEVELS, LogFormat, PathFlags, Paths, SessionEnv, env, is_inline,
    log_level, remember_options,
};
use crate::keyring::Store;
use crate::shutdown::apart;
use crate::telemetry;
use approve::{Approve, Reject};
use diagnostics::Exit;
use output::Output;
use over_daemon::OverDaemon;
use recorder::Before;

/// Number of threads for blocking work. On Windows each pipe that is read occupies one, which makes two per server.
const BLOCKING_THREADS: usize = if cfg!(windows) { 1024 } else { 4 };

/// How long the process waits for blocking threads at its end.
const LAST_WRITES: Duration = Duration::from_millis(200);

const EXIT_CODES: &str = "Exit codes:
  0  it worked
  1  it failed
  2  the command line is wrong, or the arguments of a call
  3  the configuration is missing or wrong
  4  a server could not be reached, or gave no answer
  5  the tool reported an error
  6  doctor found only warnings, or migrate could not read a client's file
  130  it was interrupted; `serve` ends with 0 when it is stopped";

/// One MCP server in front of all the others: search, describe and execute their tools.
#[derive(Debug, Parser)]
#[command(name = "mcpzip", bin_name = "mcpzip", version, after_help = EXIT_CODES, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: Global,
}

/// `serve` parsed without the other commands, because building their parsers would take most of the start, and the
/// client waits for it.
#[derive(Debug, Parser)]
#[command(name = "mcpzip", bin_name = "mcpzip")]
struct Serve {
    #[command(flatten)]
    arguments: serve::Arguments,
    #[command(flatten)]
    global: Global,
}

/// `call` parsed without the other commands, to distinguish its flags from those of the tool.
#[derive(Debug, Parser)]
#[command(name = "mcpzip", bin_name = "mcpzip")]
struct Call {
    #[command(flatten)]
    arguments: call::Arguments,
    #[command(flatten)]
    global: Global,
}

#[derive(Debug, Clone, Default, Args)]
struct Global {
    /// Configuration file
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help_heading = "Options for all commands"
    )]
    config: Option<PathBuf>,
    /// Directory for tool lists and the search index
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Options for all commands"
    )]
    cache_dir: Option<PathBuf>,
    /// Directory for logs, logins, stored results and the journal of `undo`
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Options for all commands"
    )]
    state_dir: Option<PathBuf>,
    /// Print JSON (default when output is not a terminal)
    #[arg(long, global = true, help_heading = "Options for all commands")]
    json: bool,
    /// Log level on stderr: off, error, warn, info, debug or trace
    #[arg(long, global = true, value_name = "LEVEL", value_parser = LOG_LEVELS, help_heading = "Options for all commands")]
    log: Option<String>,
}

/// All commands, sorted by what they need to run. [`help`] groups them for readers.
#[derive(Debug, Subcommand)]
enum Command {
    /// Try it: servers from inside the binary, searched and called as an agent would
    #[command(after_help = "Examples:
  mcpzip demo
  mcpzip demo --json")]
    Demo,
    #[command(flatten)]
    Configured(Configured),
    #[command(flatten)]
    Text(Text),
    #[command(flatten)]
    Worker(Worker),
}

/// Commands that use a configuration and its directories.
#[derive(Debug, Subcommand)]
enum Configured {
    /// Serve an MCP client on stdin and stdout, or many over HTTP
    Serve(serve::Arguments),
    /// Show or control the process that serves all sessions
    #[command(subcommand)]
    Daemon(daemon::Command),
    /// Open the window in the browser: servers, activity, approvals, savings
    Ui(ui::Arguments),
    /// Show servers, calls in flight, approvals and the log in the terminal, live
    Top(top::Arguments),
    /// Show an item in the panel of the desktop: state, approvals, pause
    Tray(tray::Arguments),
    /// Run the daemon on a listener that another process passes
    #[command(name = crate::daemon::COMMAND, hide = true)]
    StartedDaemon,
    #[command(flatten)]
    Machine(Machine),
    #[command(flatten)]
    Live(Live),
    #[command(flatten)]
    Files(Files),
    #[command(flatten)]
    Accounts(Accounts),
}

/// Commands that use this machine's clients and their files.
#[derive(Debug, Subcommand)]
enum Machine {
    /// Set everything up: find clients, take over their servers, try them, connect
    Init(init::Arguments),
    /// Look for problems, and fix the safe ones with `--fix`
    Doctor(doctor::Arguments),
    /// Take over the servers that clients have
    Migrate(migrate::Arguments),
    /// Show which clients this machine has, and which use mcpzip
    Clients(clients::Arguments),
    /// Add mcpzip's entry to a client
    Connect(connect::ConnectArguments),
    /// Remove mcpzip's entry from a client
    Disconnect(connect::DisconnectArguments),
    /// Set, list and remove secrets, or move them out of files
    Secret(secret::Arguments),
    /// Revert the last run of init, migrate, connect, disconnect or secret migrate
    Undo(undo::Arguments),
}

/// Commands that start the program as `serve` does, for one request.
#[derive(Debug, Subcommand)]
enum Live {
    #[command(flatten)]
    Shared(over_daemon::Command),
    /// Show servers, tools and the daemon, without connecting to anything
    Status(status::Arguments),
    /// Show tools that differ from the approved ones, and approve them
    Approve(Approve),
    /// Show tools that differ from the approved ones, and reject them
    Reject(Reject),
}

/// Commands that use the configuration file, logs and statistics.
#[derive(Debug, Subcommand)]
enum Files {
    /// Add a server to the configuration and try it
    Add(Box<add::Arguments>),
    /// Update servers from the registry
    Update(update::Arguments),
    /// Search the registry for servers
    #[command(subcommand)]
    Registry(registry::Command),
    /// Remove servers from the configuration
    Remove(remove::RemoveArguments),
    /// Enable servers that were disabled
    Enable(remove::EnableArguments),
    /// Disable servers but keep them in the configuration
    Disable(remove::DisableArguments),
    /// List the servers of the configuration, without connecting
    List(list::Arguments),
    /// Find or edit the configuration, or move secrets out of it
    #[command(subcommand)]
    Config(config::Command),
    /// Show the rules for tools, and what they decide for a call
    Rules(rules::Arguments),
    /// Show and decide calls that wait for approval
    Approvals(approvals::Arguments),
    /// Make, show and revoke tokens of people and programs that use `serve --http`
    Token(identity_token::Arguments),
    /// Check, migrate and copy the database that several gateways share
    Store(store::Arguments),
    /// Show what was called: calls, errors, times and bytes
    Stats(stats::Arguments),
    /// Show the audit log: calls, refusals, approvals, logins and changes
    Audit(Box<audit::Arguments>),
    /// Show how many tokens mcpzip saved, and how many it cost
    Gain(gain::Arguments),
    /// Show what mcpzip and its servers wrote to their logs
    Logs(logs::Arguments),
    /// Check a `serve --http` on this machine, for supervisors and containers
    Healthcheck(healthcheck::Arguments),
}

/// Commands for logins.
#[derive(Debug, Subcommand)]
enum Accounts {
    /// Log in to a remote server, in the browser
    Login(login::LoginArguments),
    /// Log out of a server and remove the login
    Logout(login::LogoutArguments),
    /// Show logins and store API keys
    #[command(subcommand)]
    Auth(auth::Command),
}

/// Commands that need no configuration.
#[derive(Debug, Subcommand)]
enum Text {
    /// Print a shell's completion script
    Completions(completions::Arguments),
    /// Print or write the manual pages
    Man(man::Arguments),
}

/// Processes that the program starts for itself.
#[derive(Debug, Subcommand)]
enum Worker {
    /// Watch over the servers' processes
    #[cfg(unix)]
    #[command(name = crate::upstream::GUARD_COMMAND, hide = true)]
    Guard {
        /// Mark of the servers' processes
        mark: String,
    },
    /// Run one jq filter under limits
    #[command(name = crate::proxy::projection::COMMAND, hide = true)]
    Select,
    /// Run one script under limits
    #[command(name = crate::scripts::COMMAND, hide = true)]
    Script,
    /// Run one of the demo's servers
    #[command(name = demo::SERVER_COMMAND, hide = true)]
    DemoServer(demo::ServerArguments),
}

/// Runs the program. `arguments` begin with the program's name.
#[must_use]
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let Some(code) = completions::answer(&arguments, &Environment::process()) {
        return code;
    }
    let cli = match parse(&arguments) {
        Ok(cli) => cli,
        Err(error) => return refuse(&error, &arguments),
    };
    // `--json` before an entry of `add` marks the entry, not the output format.
    let is_entry = matches!(
        &cli.command,
        Command::Configured(Configured::Files(Files::Add(add))) if add.has_json()
    );
    let output = Output::new(cli.global.json && !is_entry);
    let outcome = match cli.command {
        Command::Worker(worker) => worker.run(),
        Command::Text(text) => text.run(&output).map(|()| 0),
        Command::Demo => cli
            .global
            .run("error", |environment| demo::run(environment, &output)),
        Command::Configured(command) => {
            let has_own_config = cli.global.config.is_some();
            let (flags, has_log) = (cli.global.paths(), cli.global.log.is_some());
            cli.global.run(command.log_level(), |environment| {
                command.run(flags, [has_own_config, has_log], environment, &output)
            })
        }
    };
    let code = outcome.unwrap_or_else(|exit| {
        if !exit.is_printed() {
            output.error(&exit);
        }
        exit.code()
    });
    let code = output.finish().map_or_else(
        |unwritten| {
            output.error(&unwritten);
            unwritten.code()
        },
        |()| code,
    );
    ExitCode::from(code)
}

/// Prints help, the version, or an error in the arguments.
fn refuse(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    let output = Output::new(arguments.iter().any(|argument| argument == "--json"));
    if error.use_stderr() && output.is_json_asked() {
        let exit = Exit::usage(error);
        output.error(&exit);
        return ExitCode::from(exit.code());
    }
    let shown = match error.use_stderr() {
        true => output.rejection(error),
        false => error.print(),
    };
    match shown {
        Err(failure) if failure.kind() != std::io::ErrorKind::BrokenPipe => {
            let exit = Exit::from(failure);
            output.error(&exit);
            ExitCode::from(exit.code())
        }
        _ => {
            if let Some(tip) = help::tip(error, arguments) {
                output.note(&tip);
            }
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))
        }
    }
}

/// `serve` as the entries of clients have it: with files and directories only. Building a parser takes half a millisecond,
/// for which the client would wait. `None` leaves the arguments to the parser.
fn usual_serve(arguments: &[OsString]) -> Option<Cli> {
    let [_, word, rest @ ..] = arguments else {
        return None;
    };
    if word != "serve" {
        return None;
    }
    let mut global = Global::default();
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        let place = match flag.to_str()? {
            "--config" => &mut global.config,
            "--cache-dir" => &mut global.cache_dir,
            "--state-dir" => &mut global.state_dir,
            _ => return None,
        };
        let value = rest.next()?;
        let is_usual = !value.is_empty() && !value.as_encoded_bytes().starts_with(b"-");
        if !is_usual || place.replace(value.into()).is_some() {
            return None;
        }
    }
    Some(Cli {
        command: Command::Configured(Configured::Serve(serve::Arguments::default())),
        global,
    })
}

fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    if let Some(cli) = usual_serve(arguments) {
        return Ok(cli);
    }
    if let [program, word, rest @ ..] = arguments
        && word == "serve"
        && let Ok(Serve { arguments, global }) =
            Serve::try_parse_from(std::iter::once(program).chain(rest))
    {
        return Ok(Cli {
            command: Command::Configured(Configured::Serve(arguments)),
            global,
        });
    }
    let sorted = match arguments.iter().any(|word| word == "call") {
        true => call_arguments::with_parameters_last(arguments.to_vec(), &Call::command()),
        false => arguments.to_vec(),
    };
    // Arguments that `serve` rejects, and its help, are left to the whole program's parser.
    let mut cli = Cli::from_arg_matches(&help::command().try_get_matches_from(sorted)?)?;
    if let Command::Configured(Configured::Live(Live::Shared(over_daemon::Command::Call(call)))) =
        &mut cli.command
    {
        call.own_options = call_arguments::own_options(arguments, &Call::command());
    }
    Ok(cli)
}

impl Worker {
    /// Runs the worker. The exit code reports the outcome to the parent process.
    fn run(self) -> Result<u8, Exit> {
        match self {
            // The filter's limits apply to the whole process, so nothing else is set up first.
            Self::Select => {
                let code = crate::proxy::projection::run_worker()?;
                return Ok(u8::try_from(code).unwrap_or(1));
            }
            Self::Script => {
                let code = crate::scripts::run_worker()?;
                return Ok(u8::try_from(code).unwrap_or(1));
            }
            #[cfg(unix)]
            Self::Guard { mark } => runtime()?.block_on(crate::upstream::run_guard(&mark))?,
            Self::DemoServer(arguments) => demo::serve(&arguments)?,
        }
        Ok(0)
    }
}

/// The runtime. Messages are handled on one thread, so that a call wakes no other. Computations and disk access have a
/// few threads: enough that a search need not wait for an index, but few, because each keeps memory that it has freed.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        // Its first thread stays, because the system may refuse to start it again.
        .thread_keep_alive(Duration::MAX)
        .build()
}

impl Global {
    fn paths(&self) -> PathFlags {
        PathFlags {
            config_file: self.config.clone(),
            cache_dir: self.cache_dir.clone(),
            state_dir: self.state_dir.clone(),
        }
    }

    /// Runs a command that logs from `level` on, unless the user sets another level.
    fn run<F: Future<Output = Result<(), Exit>>>(
        self,
        level: &str,
        command: impl FnOnce(Environment) -> F,
    ) -> Result<u8, Exit> {
        let environment = Environment::process();
        let given = |variable: env::Variable| {
            environment
                .get(variable.name)
                .filter(|level| !level.is_empty())
        };
        let filter = |name: &str| log_level(name).unwrap_or(LevelFilter::WARN);
        let named = self.log.as_deref().or_else(|| given(env::LOG)).map(filter);
        let asked = named.or_else(|| telemetry::level_of_filter(given(env::RUST_LOG)?));
        telemetry::start(asked, filter(level));
        telemetry::print_by(output::log_line);
        telemetry::write_as(LogFormat::of(&environment).unwrap_or_default());
        let runtime = runtime()?;
        let outcome = runtime.block_on(command(environment)).map(|()| 0);
        // A read of a terminal may never end. A write in progress gets a moment.
        runtime.shutdown_timeout(LAST_WRITES);
        outcome
    }
}

impl Configured {
    fn log_level(&self) -> &'static str {
        match self {
            Self::Serve(_) | Self::Daemon(_) | Self::StartedDaemon => "warn",
            _ => "error",
        }
    }

    async fn run(
        self,
        flags: PathFlags,
        [has_own_config, has_log]: [bool; 2],
        environment: Environment,
        output: &Output,
    ) -> Result<(), Exit> {
        let paths = Paths::resolve(flags.clone(), &environment)?;
        // The daemon has the variables of its first session.
        if !matches!(self, Self::StartedDaemon) {
            remember_options(&paths, &environment);
        }
        telemetry::keep_in(&paths.state_dir.join(LOGS));
        let environment = Store::around(&paths, environment);
        match self {
            Self::Serve(arguments) => {
                let serve = || {
                    serve::run(
                        arguments,
                        &flags,
                        paths,
                        has_own_config,
                        environment,
                        output,
                    )
                };
                apart(serve).await
            }
            Self::Daemon(command) => {
                let commands = Arc::new(OverDaemon);
                apart(|| daemon::run(command, paths, &environment, output, commands)).await
            }
            Self::Top(_) => top::run(&paths, &environment),
            #[cfg(all(feature = "tray", target_os = "linux"))]
            Self::Tray(_) => apart(|| tray::run(&flags, &paths, &environment, output)).await,
            #[cfg(not(all(feature = "tray", target_os = "linux")))]
            Self::Tray(_) => Err(tray::absent()),
            Self::Ui(arguments) => {
                apart(|| ui::run(&arguments, &flags, &paths, &environment, output)).await
            }
            Self::StartedDaemon => {
                apart(|| daemon::run_started(paths, &environment, Arc::new(OverDaemon))).await
            }
            Self::Machine(command) => {
                if command.writes_entries() && is_inline(&paths.config_file) {
                    return Err(anyhow::Error::from(EditError::Inline).into());
                }
                let before = Before::of(&paths, &environment);
                let (files, variables) = (paths.clone(), environment.clone());
                let machine = setup::Machine::new(paths, environment, has_own_config)?;
                let outcome = apart(|| command.run(machine, output)).await;
                before.note_edit(&files, &variables, output).await;
                outcome
            }
            Self::Live(command) => apart(|| command.run(paths, environment, has_log, output)).await,
            Self::Files(command) => {
                let before = Before::of(&paths, &environment);
                let outcome = apart(|| command.run(&paths, &environment, output)).await;
                before.note_edit(&paths, &environment, output).await;
                outcome
            }
            Self::Accounts(command) => {
                let opened = apart(|| store::attach(&paths, environment, store::Opening::Use));
                let environment = opened.await?;
                apart(|| command.run(&paths, environment, output)).await
            }
        }
    }
}

impl Machine {
    /// Whether it writes the configuration, or a client's entry that relies on it.
    fn writes_entries(&self) -> bool {
        matches!(self, Self::Init(_) | Self::Migrate(_) | Self::Connect(_))
    }

    /// Most of these commands block on files, which is harmless because nothing else runs.
    async fn run(self, mut machine: setup::Machine, output: &Output) -> Result<(), Exit> {
        match self {
            Self::Init(arguments) => {
                machine.check_configuration()?;
                init::run(&arguments, &machine, output).await
            }
            Self::Doctor(arguments) => {
                let environment = machine.around.environment.clone();
                let environment = store::attach(&machine.paths, environment, store::Opening::Look);
                machine.around.environment = environment.await?;
                doctor::run(&arguments, machine, output).await
            }
            Self::Migrate(arguments) => {
                machine.check_configuration()?;
                machine.around.claude_config = arguments.claude_config()?;
                migrate::run(&arguments, &machine, output).await
            }
            Self::Clients(_) => clients::run(&machine, output),
            Self::Connect(arguments) => connect::run_connect(&arguments, &machine, output),
            Self::Disconnect(arguments) => connect::run_disconnect(&arguments, &machine, output),
            Self::Secret(arguments) => secret::run(&arguments, &machine, output).await,
            Self::Undo(arguments) => undo::run(&arguments, &machine, output),
        }
    }
}

impl Live {
    async fn run(
        mut self,
        paths: Paths,
        environment: Environment,
        has_log: bool,
        output: &Output,
    ) -> Result<(), Exit> {
        let environment = match &self {
            Self::Status(_) => store::attach(&paths, environment, store::Opening::Look).await?,
            Self::Approve(_) | Self::Reject(_) => {
                store::attach(&paths, environment, store::Opening::Use).await?
            }
            Self::Shared(_) => environment,
        };
        let session = SessionEnv::here(environment);
        // The log of a command is that of its own process.
        if let Self::Shared(command) = &mut self
            && !has_log
        {
            let outcome = tokio::select! {
                outcome = over_daemon::run(command, &paths, &session, output) => outcome,
                signal = crate::shutdown::signal() => Some(Err(Exit::interrupted(signal))),
            };
            if let Some(outcome) = outcome {
                return outcome;
            }
        }
        let counts_faults = match &self {
            Self::Shared(command) => command.counts_faults(),
            Self::Status(_) => false,
            Self::Approve(Approve { selection }) | Self::Reject(Reject { selection }) => {
                selection.is_about_all()
            }
        };
        let profile = match &self {
            Self::Shared(command) => command.profile(&session.environment),
            Self::Status(_) | Self::Approve(_) | Self::Reject(_) => None,
        };
        let app = match counts_faults {
            true => App::new(paths, session, profile),
            false => App::quiet(paths, session, profile),
        };
        let app = app.inspect_err(|error| {
            let advice = match (error, &self) {
                (
                    crate::config::Error::Profile(_),
                    Self::Shared(over_daemon::Command::Call(call)),
                ) => call.advice_about("profile"),
                _ => None,
            };
            advice.iter().for_each(|advice| output.note(advice));
        })?;
        app.set_workspace();
        let outcome = tokio::select! {
            outcome = self.ask(&app, output) => outcome,
            signal = crate::shutdown::signal() => Err(Exit::interrupted(signal)),
        };
        app.finish().await;
        outcome
    }

    async fn ask(self, app: &App, output: &Output) -> Result<(), Exit> {
        match self {
            Self::Shared(command) => command.run(app, output).await,
            Self::Status(_) => status::run(app, output).await,
            Self::Approve(Approve { selection }) => {
                approve::run(&selection, true, app, output).await
            }
            Self::Reject(Reject { selection }) => {
                approve::run(&selection, false, app, output).await
            }
        }
    }
}

impl Files {
    /// Most of these commands block on files, which is harmless because nothing else runs.
    async fn run(
        self,
        paths: &Paths,
        environment: &Environment,
        output: &Output,
    ) -> Result<(), Exit> {
        let entries = remove::Context {
            paths,
            environment,
            output,
        };
        match self {
            Self::Add(arguments) => {
                arguments.check_target()?;
                if arguments.from_registry.is_some() {
                    from_registry::run(&arguments, paths, environment, output).await
                } else {
                    add::run(&arguments, paths, environment, output).await
                }
            }
            Self::Update(arguments) => update::run(&arguments, paths, environment, output).await,
            Self::Registry(command) => registry::run(&command, paths, environment, output).await,
            Self::Remove(arguments) => remove::run_remove(&arguments, &entries),
            Self::Enable(arguments) => remove::run_enable(&arguments, &entries),
            Self::Disable(arguments) => remove::run_disable(&arguments, &entries),
            Self::List(_) => list::run(paths, environment, output),
            Self::Config(command) => config::run(&command, paths, environment, output),
            Self::Rules(command) => {
                let opening = store::Opening::Look;
                let environment = store::attach(paths, environment.clone(), opening).await?;
                rules::run(&command, paths, &environment, output)
            }
            Self::Approvals(command) => {
                let opening = store::Opening::Use;
                let environment = store::attach(paths, environment.clone(), opening).await?;
                approvals::run(&command, paths, &environment, output).await
            }
            Self::Token(command) => {
                let opening = store::Opening::Use;
                let environment = store::attach(paths, environment.clone(), opening).await?;
                identity_token::run(command, paths, &environment, output).await
            }
            Self::Store(command) => store::run(&command, paths, environment, output).await,
            Self::Stats(arguments) => {
                let opening = store::Opening::Use;
                let environment = store::attach(paths, environment.clone(), opening).await?;
                stats::run(&arguments, paths, &environment, output)
            }
            Self::Audit(arguments) => audit::run(*arguments, paths, environment, output),
            Self::Gain(arguments) => {
                let opening = store::Opening::Use;
                let environment = store::attach(paths, environment.clone(), opening).await?;
                gain::run(arguments, paths, &environment, output)
            }
            Self::Logs(arguments) => logs::run(&arguments, paths, environment, output),
            Self::Healthcheck(arguments) => {
                healthcheck::run(arguments, paths, environment, output).await
            }
        }
    }
}

impl Accounts {
    async fn run(
        self,
        paths: &Paths,
        environment: Environment,
        output: &Output,
    ) -> Result<(), Exit> {
        let accounts = login::Accounts::new(paths, environment)?;
        let asked = async {
            match self {
                Self::Login(arguments) => login::log_in(&arguments, &accounts, output).await,
                Self::Logout(arguments) => login::log_out(&arguments, &accounts, output).await,
                Self::Auth(command) => auth::run(&command, &accounts, output).await,
            }
        };
        let outcome = tokio::select! {
            outcome = asked => outcome,
            signal = crate::shutdown::signal() => Err(Exit::interrupted(signal)),
        };
        accounts.finish().await;
        outcome
    }
}

impl Text {
    fn run(self, output: &Output) -> Result<(), Exit> {
        match self {
            Self::Completions(arguments) => completions::run(&arguments, output),
            Self::Man(arguments) => man::run(&arguments, output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }

    #[test]
    fn each_action_of_the_window_is_a_command() {
        for (action, words) in crate::ui::samples() {
            let words = std::iter::once("mcpzip".to_owned()).chain(words);
            let words: Vec<OsString> = words.map(Into::into).collect();
            let parsed = parse(&words).map(drop);
            let error = parsed.err().filter(clap::Error::use_stderr);
            assert!(error.is_none(), "{action}: {}", error.unwrap());
        }
    }

    #[test]
    fn the_usual_arguments_of_serve_mean_what_the_parser_says() {
        let arguments = |line: &str| -> Vec<OsString> {
            ["mcpzip"]
                .into_iter()
                .chain(line.split(' '))
                .map(Into::into)
                .collect()
        };
        for line in [
            "serve",
            "serve --config a.json",
            "serve --state-dir s --config a.json --cache-dir c",
        ] {
            let usual = usual_serve(&arguments(line)).unwrap();
            let parsed = Cli::try_parse_from(arguments(line)).unwrap();
            assert_eq!(format!("{usual:?}"), format!("{parsed:?}"), "{line}");
        }
        for line in [
            "call",
            "serve --alone",
            "serve --config",
            "serve --config --alone",
            "serve --config a --config b",
            "serve --config=a",
            "serve a",
            "serve --help",
        ] {
            assert!(usual_serve(&arguments(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn each_command_has_two_examples_that_parse() {
        let mut command = <Cli as clap::CommandFactory>::command();
        command.build();
        let mut count = 0;
        walk(&command, &mut |name, help| {
            let examples: Vec<&str> = help
                .split_once("Examples:\n")
                .map(|(_, examples)| {
                    examples
                        .lines()
                        .take_while(|line| line.starts_with("  "))
                        .collect()
                })
                .unwrap_or_default();
            assert!(
                examples.len() >= 2,
                "`{name}` has {} examples in its help, and needs two",
                examples.len()
            );
            for example in examples {
                assert!(example.len() <= 80, "too long for a terminal: {example}");
                let words = words(example);
                assert!(
                    words.join(" ").starts_with(name),
                    "an example of another command for `{name}`: {example}"
                );
                let words: Vec<OsString> = words.iter().map(OsString::from).collect();
                if let Err(error) = parse(&words) {
                    panic!("`{name}`: {example}: {error}");
                }
                count += 1;
            }
        });
        assert!(count > 30, "only {count} examples were found");
    }

    /// Every command that can be run and is shown, with its help.
    fn walk(command: &clap::Command, look: &mut impl FnMut(&str, &str)) {
        for below in command
            .get_subcommands()
            .filter(|below| !below.is_hide_set() && below.get_name() != "help")
        {
            if below.has_subcommands() {
                walk(below, look);
            } else {
                let help = below
                    .get_after_help()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                look(below.get_bin_name().unwrap_or_default(), &help);
            }
        }
    }

    /// The words of mcpzip's own command in a shell line. Other commands of a pipe are cut off, and so is a remark,
    /// which four spaces separate.
    fn words(line: &str) -> Vec<String> {
        let line = line.trim_start().split("    ").next().unwrap_or_default();
        let (mut commands, mut word, mut quote) = (vec![Vec::new()], String::new(), None);
        let end = |word: &mut String, commands: &mut Vec<Vec<String>>| {
            let word = std::mem::take(word);
            match (word.as_str(), commands.last_mut()) {
                ("", _) | (_, None) => {}
                ("|" | "&&" | ">" | ">>" | "<", _) => commands.push(Vec::new()),
                (_, Some(command)) => command.push(word),
            }
        };
        for c in line.chars() {
            match (c, quote) {
                ('\'' | '"', None) => quote = Some(c),
                (c, Some(open)) if c == open => quote = None,
                (' ', None) => end(&mut word, &mut commands),
                (c, _) => word.push(c),
            }
        }
        end(&mut word, &mut commands);
        commands
            .into_iter()
            .find(|command| command.first().is_some_and(|name| name == "mcpzip"))
            .unwrap_or_default()
    }
}
