//! `mcpzip serve`: serves clients over stdio or HTTP.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::PathFlags;
use super::daemon::url as daemon_url;
use super::diagnostics::Exit;
use super::output::Output;
use super::profile_option::ProfileOption;
use super::store;
use super::ui::options;
use crate::app::{App, request_of, take_caches};
use crate::clients::{Choice, Import, Origin as ImportOrigin, Wanted};
use crate::config::{
    self, Config, DaemonMode, DaemonOptions, EntryError, Environment, HttpOptions, ListenAddress,
    Paths, RemoteServer, SessionEnv, StandIn, Surface, SurfaceRequest, env, is_inline,
    older_config_file,
};
use crate::daemon;
use crate::downstream::http::{self, Options, OptionsError, Origin, WINDOW};
use crate::proxy::{ProfileChoice, Request, Start};
use crate::shutdown::apart;
use crate::telemetry;
use crate::text::chain;
use crate::ui::{Gateway, Opening};

#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  mcpzip serve
  mcpzip serve --http 127.0.0.1:8080 --token-file ~/.mcpzip-token
  mcpzip serve --http :9090
  mcpzip serve --server notes=https://notes.example.com/mcp
  mcpzip serve --profile review
  mcpzip serve --surface direct --config ./mcpzip.json")]
pub(super) struct Arguments {
    /// Serve clients over HTTP [default address: MCPZIP_HTTP_ADDRESS, `http.address` of the configuration, 127.0.0.1:8080];
    /// `:9090` is that port on the loopback address, and port 0 is any free one
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1)]
    http: Option<Option<ListenAddress>>,
    /// File with the token that HTTP clients must send [default: MCPZIP_TOKEN, then `http.token_file`]
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// Web origin that may call the server, in addition to those of MCPZIP_HTTP_ORIGINS and of `http.origins`; may be given
    /// several times
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<Origin>,
    /// Serve this remote server as well, even without a configuration; may be given several times
    #[arg(long, value_name = "NAME=URL")]
    server: Vec<RemoteServer>,
    /// Run separate servers, even if the configuration lets sessions share them
    #[arg(long)]
    alone: bool,
    /// How the client sees the tools: `tools` (the three meta-tools), `direct` (each under its own name), or `auto` (directly if
    /// they are few) [default: `surface` of the configuration, tools]
    #[arg(long, value_name = "SURFACE", value_parser = surface)]
    surface: Option<Surface>,
    /// Short for `--surface direct`
    #[arg(long, conflicts_with = "surface")]
    direct: bool,
    #[command(flatten)]
    profile: ProfileOption,
}

/// The note if no token is required.
const OPEN: &str = "without a token, every user and every program of this machine can call all tools; `--token-file` or \
                    `MCPZIP_TOKEN` sets one, and `http.auth.tokens` has one for each person";

/// The transport for clients.
#[derive(Debug)]
enum Transport {
    Stdio,
    Http(Box<Options>),
}

impl Arguments {
    /// The surface that the command line asks for.
    fn surface(&self) -> Option<Surface> {
        self.surface
            .or_else(|| self.direct.then_some(Surface::Direct))
    }

    fn is_over_http(&self) -> bool {
        self.http.is_some()
    }

    /// Whether the command line lets this session share the daemon's servers. Servers that it names are never shared.
    fn may_share(&self) -> bool {
        !self.is_over_http() && !self.alone && self.server.is_empty()
    }

    /// The transport, from arguments, variables and the configuration, in this order.
    ///
    /// # Errors
    /// When a token that is named cannot be used, or a setting is invalid.
    fn transport(
        self,
        environment: &Environment,
        configured: &Result<HttpOptions, EntryError>,
        output: &Output,
    ) -> Result<Transport, Exit> {
        let Some(address) = self.http else {
            return Ok(Transport::Stdio);
        };
        let arguments = http::Arguments {
            address,
            token_file: self.token_file,
            origins: self.allow_origin,
        };
        // This is not an error, because containers get secrets as files that every user of the container can read.
        let open_file = |path: &Path| {
            output.note(&format!(
                "other users can read the token file `{}`; `chmod 600` prevents that",
                path.display()
            ));
        };
        let options = Options::new(arguments, environment, configured, open_file);
        let options = options.map(|options| Transport::Http(Box::new(options)));
        options.map_err(|error| exit(&error))
    }
}

fn surface(word: &str) -> Result<Surface, String> {
    Surface::parse(word).ok_or_else(|| "it must be auto, tools or direct".to_owned())
}

/// The exit code of a setting that cannot be used.
fn exit(error: &OptionsError) -> Exit {
    match error {
        OptionsError::File { .. } | OptionsError::Token { .. } => Exit::failed(error.to_string()),
        _ => Exit::of_setting(error),
    }
}

/// Reads `MCPZIP_HTTP_ADDRESS`, if it is set.
///
/// # Errors
/// When it is not an address.
pub(super) fn of_variable(environment: &Environment) -> Result<Option<ListenAddress>, Exit> {
    http::of_variable(environment).map_err(|error| exit(&error))
}

/// Builds the app if there is no configuration. It serves the servers of mcpzip 0.1 or the built-in server alone. The
/// handshake mentions it, because clients show no exit codes.
fn without_configuration(
    paths: Paths,
    session: SessionEnv,
    has_own_config: bool,
    request: Request,
) -> Result<App, Exit> {
    let is_named = has_own_config
        || session
            .environment
            .get(env::CONFIG.name)
            .is_some_and(|path| !path.is_empty());
    let config = stand_in(&paths, &session.environment, is_named);
    telemetry::hide(&config.masker);
    if let Some(advice) = config.advice() {
        tracing::warn!("{advice}");
    }
    request
        .profiles
        .narrow(&config)
        .map_err(config::Error::from)?;
    Ok(App::with_config(
        config,
        paths,
        session,
        Start::Serving,
        request,
    ))
}

/// The settings without a configuration: those of mcpzip 0.1 unless the user names a file, otherwise the defaults.
fn stand_in(paths: &Paths, environment: &Environment, is_named: bool) -> Config {
    let older = older_config_file(environment).filter(|_| !is_named);
    let config = older.and_then(|older| match of_older(&older, paths, environment) {
        Ok(config) => Some(config),
        Err(error) => {
            tracing::error!("the configuration of mcpzip 0.1 is not used: {error:#}");
            None
        }
    });
    config.unwrap_or_else(|| Config {
        path: Some(paths.config_file.clone()),
        stand_in: Some(StandIn::Nothing),
        ..Config::default()
    })
}

/// The configuration that `migrate --from mcpzip-0.1` would make from that file.
fn of_older(older: &Path, paths: &Paths, environment: &Environment) -> anyhow::Result<Config> {
    let wanted = Wanted {
        origin: ImportOrigin::Older,
        file: older,
        choice: &Choice::default(),
    };
    let import = Import::new(wanted, &paths.config_file, environment, None)?;
    let mut edits = import.edits.into_iter();
    let text = edits
        .find(|edit| edit.path == paths.config_file)
        .map_or_else(|| "{}".to_owned(), |edit| edit.after);
    let config = Config::parse(&text, &paths.config_file, environment)?;
    Ok(Config {
        stand_in: Some(StandIn::Older(older.to_owned())),
        masker: config.masker.and(&import.masker),
        ..config
    })
}

/// Serves the client through the daemon, if the configuration says so and the daemon is available.
async fn share(
    paths: &Paths,
    env: &SessionEnv,
    surface: Option<Surface>,
    profile: Option<&str>,
) -> Result<Shared, Exit> {
    let options = DaemonOptions::load(paths, &env.environment);
    // The daemon reads a file. A configuration in a variable belongs to this process.
    if options.mode == DaemonMode::Off || is_inline(&paths.config_file) {
        return Ok(Shared::No);
    }
    let request = daemon::Request {
        env,
        surface,
        profile,
        idle: options.idle,
    };
    match daemon::attach(paths, &request).await? {
        daemon::Outcome::Alone(_) => Ok(Shared::NotNow),
        daemon::Outcome::Ended { error: None } => Ok(Shared::Served),
        daemon::Outcome::Ended { error: Some(error) } => Err(Exit::failed(error)),
    }
}

/// The outcome of [`share`].
#[derive(Debug, PartialEq, Eq)]
enum Shared {
    /// The session does not use the daemon.
    No,
    /// The daemon is not available.
    NotNow,
    /// The daemon served the session, which has ended.
    Served,
}

pub(super) async fn run(
    arguments: Arguments,
    flags: &PathFlags,
    paths: Paths,
    has_own_config: bool,
    environment: Environment,
    output: &Output,
) -> Result<(), Exit> {
    let over_http = arguments.is_over_http();
    // Only a gateway is one of several: a session of one client has its files.
    let environment = match over_http {
        true => apart(|| store::attach(&paths, environment, store::Opening::Serve)).await?,
        false => environment,
    };
    // Nothing else runs yet.
    take_caches(&paths, &environment);
    let env = SessionEnv::here(environment);
    let shared = if arguments.may_share() {
        let (surface, profile) = (
            arguments.surface(),
            arguments.profile.name(&env.environment),
        );
        apart(|| share(&paths, &env, surface, profile.as_deref())).await?
    } else {
        Shared::No
    };
    if shared == Shared::Served {
        return Ok(());
    }
    let outcome = apart(|| serve_here(arguments, flags, &paths, has_own_config, env, output)).await;
    if shared == Shared::NotNow {
        daemon::ended_alone(&paths);
    }
    outcome
}

/// Serves clients by this process alone.
async fn serve_here(
    arguments: Arguments,
    flags: &PathFlags,
    paths: &Paths,
    has_own_config: bool,
    env: SessionEnv,
    output: &Output,
) -> Result<(), Exit> {
    let (flag, over_http) = (arguments.surface(), arguments.is_over_http());
    let profile = arguments.profile.name(&env.environment);
    let surface_of = |config: &Config| SurfaceRequest {
        flag,
        http: config
            .http
            .as_ref()
            .ok()
            .filter(|_| over_http)
            .and_then(|http| http.surface),
    };
    let request_of = |config: &Config| match over_http {
        false => request_of(&env, surface_of(config), profile.clone()),
        true => Request {
            surface: surface_of(config),
            profiles: ProfileChoice {
                named: profile.iter().cloned().collect(),
                is_over_http: true,
                ..ProfileChoice::default()
            },
            ..Request::default()
        },
    };
    let servers = arguments.server.clone();
    let app = match App::serving(paths.clone(), env.clone(), servers, request_of) {
        Err(config::Error::Missing { .. }) if !over_http => {
            let request = request_of(&Config::default());
            without_configuration(paths.clone(), env.clone(), has_own_config, request)?
        }
        app => app?,
    };
    let configured = app.proxy().unscoped().config().http.clone();
    let is_address_given = matches!(arguments.http, Some(Some(_)));
    match arguments.transport(&env.environment, &configured, output) {
        Ok(transport) => apart(|| serve(transport, app, flags, is_address_given, output)).await,
        Err(exit) => {
            app.finish().await;
            Err(exit)
        }
    }
}

/// The window of this gateway, whose commands find the same files.
fn window(app: &App, flags: &PathFlags) -> Arc<Gateway> {
    let session = app.session();
    let variables = session.environment.iter();
    let opening = Opening {
        process: std::process::id(),
        directory: session.directory.clone().unwrap_or_else(|| "/".into()),
        variables: variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        options: options(flags),
    };
    Gateway::new(opening, session.environment.state(&app.paths().state_dir))
}

async fn serve(
    transport: Transport,
    app: App,
    flags: &PathFlags,
    is_address_given: bool,
    output: &Output,
) -> Result<(), Exit> {
    match transport {
        Transport::Stdio => {
            let ready = || {
                if std::io::stdin().is_terminal() {
                    output
                        .note("waiting for an MCP client on stdin; clients start this command themselves. Ctrl-C ends it.");
                }
            };
            Ok(app.serve_stdio(ready).await?)
        }
        Transport::Http(options) => {
            let (is_open, has_window) = (options.is_open(), options.ui);
            let listening = |url: &str| {
                output.note(&format!("serving MCP on {url}"));
                if has_window {
                    let base = url.strip_suffix("/mcp").unwrap_or(url);
                    output.note(&format!("the window is at {base}{WINDOW}"));
                }
                if is_open {
                    output.note(OPEN);
                }
            };
            let (paths, environment) = (app.paths().clone(), app.session().environment.clone());
            let wanted = options.address.to_string();
            let pages = window(&app, flags);
            let outcome = app.serve_http(*options, pages, listening).await;
            if let Err(http::Error::Bind { .. }) = &outcome
                && daemon_url(&paths, &environment).is_some_and(|url| url.contains(&wanted))
            {
                return Err(Exit::failed(format!(
                    "the daemon serves this address: `http.address` of the configuration is `{wanted}`. Clients can use it, or \
                     give `serve --http` another address; `mcpzip daemon status` shows the daemon"
                )));
            }
            if let Err(http::Error::Bind { address, source }) = &outcome
                && source.kind() == std::io::ErrorKind::AddrInUse
            {
                return Err(Exit::failed(format!(
                    "another program uses `{address}`: give `serve --http` another port, or port 0 for any free one"
                )));
            }
            if let Err(error @ http::Error::Resolve { .. }) = &outcome
                && is_address_given
            {
                return Err(Exit::bad_usage(chain(error)));
            }
            Ok(outcome?)
        }
    }
}
