//! The settings of a runner.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::embedder::{Embedder, Own};
use super::error::{Error, ErrorKind};
use super::events;
use super::exchange::Exchange;
use super::handler::{AnyHandler, Deciding, Handler, NoHandler};
use super::logins::{self, LoginStore};
use super::server::Server;
use super::{EndOfRuntime, Inner, Runner};
use crate::catalog::PinHome;
use crate::config::{
    self, Config, ConfigWarning, DescriptionLocation, Document, Environment, Holds, LARGEST_FILE,
    Management, ScriptOptions, SessionEnv, Transport, kept_restrictions,
};
use crate::events::Events;
use crate::files::read_regular;
use crate::mcp::{ClientCapabilities, Outbox, Revision};
use crate::proxy::{
    Client, Directories, ProfileChoice, Proxies, Proxy, Request, SharedFigures, SharedLists, Start,
};
use crate::results::Owner;
use crate::search::habits;
use crate::shutdown::{self, Tasks};
use crate::statistics;
use crate::telemetry::Scope;
use crate::tls;
use crate::tool::ServerName;
use crate::upstream::oauth::{self, LoginStorage};
use crate::upstream::{OwnServer, OwnServers, SharedServers};

/// The settings of a [`Runner`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mcpzip::Error> {
/// use mcpzip::{Runner, Server};
///
/// let runner = Runner::builder()
///     .config_str(r#"{ "mcpServers": { "time": { "command": "uvx", "args": ["mcp-server-time"] } } }"#)
///     .server("docs", Server::http("https://example.com/mcp"))
///     .environment([("PATH", "/usr/bin:/bin")])
///     .build()
///     .await?;
/// assert_eq!(runner.servers(), ["docs", "time"]);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Builder {
    source: Source,
    servers: Map<String, Value>,
    own: BTreeMap<String, OwnServer>,
    environment: Environment,
    directory: Option<PathBuf>,
    directories: Option<(PathBuf, PathBuf)>,
    handler: Option<Arc<dyn AnyHandler>>,
    embedder: Option<Arc<dyn Embedder>>,
    logins: Option<LoginStorage>,
}

/// The name of a configuration without a file, in errors.
const TEXT: &str = "configuration";

#[derive(Default)]
enum Source {
    #[default]
    None,
    File(PathBuf),
    Text(String),
}

impl Builder {
    /// Reads the servers and settings from a configuration file of mcpzip, or of another program that has `mcpServers`. It takes the place
    /// of an earlier file or text.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// # let home = tempfile::tempdir().unwrap();
    /// # let file = home.path().join("mcp.json");
    /// std::fs::write(&file, r#"{ "mcpServers": { "time": { "command": "time-server" } } }"#).unwrap();
    /// let runner = mcpzip::Runner::builder().config_file(&file).build().await?;
    /// assert_eq!(runner.servers(), ["time"]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn config_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.source = Source::File(path.into());
        self
    }

    /// Uses the content of a configuration file, in place of an earlier file or text.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// let text = r#"{ "mcpServers": {}, "tools": { "deny": ["*__delete_*"] } }"#;
    /// let runner = mcpzip::Runner::builder().config_str(text).build().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn config_str(mut self, text: impl Into<String>) -> Self {
        self.source = Source::Text(text.into());
        self
    }

    /// Adds a server. It replaces one of the same name in the configuration, whose restrictions (`tools`, `trust`, `sandbox` and
    /// others) stay if `server` has no such member.
    ///
    /// ```
    /// use mcpzip::{Runner, Server};
    ///
    /// let builder = Runner::builder()
    ///     .server("time", Server::stdio("uvx").args(["mcp-server-time"]))
    ///     .server("docs", Server::http("http://localhost:8080/mcp"));
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub fn server(mut self, name: impl Into<String>, server: Server) -> Self {
        let name = name.into();
        let (entry, own) = server.into_parts(&name);
        self.own.remove(&name);
        self.own.extend(own.map(|own| (name.clone(), own)));
        self.servers.insert(name, entry);
        self
    }

    /// Sets the variables that the configuration may refer to and that servers may inherit, such as `PATH`. There are none
    /// by default; `std::env::vars()` passes those of the program.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// let path = std::env::var("PATH").unwrap_or_default();
    /// let runner = mcpzip::Runner::builder().environment([("PATH", path)]).build().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn environment<N: Into<String>, V: Into<String>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let variables = variables.into_iter();
        self.environment = variables
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        self
    }

    /// Sets the directory in which servers start that have none of their own. By default it is that of the program.
    ///
    /// ```
    /// let builder = mcpzip::Runner::builder().working_directory("/srv/project");
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub fn working_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Keeps lists and indexes in `cache`; and logs, statistics, logins, large results for served clients and the audit log in `state`.
    /// Without directories, nothing is written to disk.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// # let home = tempfile::tempdir().unwrap();
    /// # let (cache, state) = (home.path().join("cache"), home.path().join("state"));
    /// let runner = mcpzip::Runner::builder().directories(cache, state).build().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn directories(mut self, cache: impl Into<PathBuf>, state: impl Into<PathBuf>) -> Self {
        self.directories = Some((cache.into(), state.into()));
        self
    }

    /// Answers the questions of servers with `handler`, which also receives their messages.
    ///
    /// ```
    /// struct Log;
    ///
    /// impl mcpzip::Handler for Log {
    ///     fn log(&self, message: mcpzip::LogMessage) {
    ///         eprintln!("{}: {}", message.logger, message.data);
    ///     }
    /// }
    ///
    /// let builder = mcpzip::Runner::builder().handler(Log);
    /// # let _ = builder;
    /// ```
    #[must_use]
    pub fn handler(mut self, handler: impl Handler) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Searches by meaning with this model instead of the bundled one. A model without a name or usable dimensions is an error of
    /// [`Builder::build`].
    #[must_use]
    pub fn embedder(mut self, embedder: impl Embedder) -> Self {
        self.embedder = Some(Arc::new(embedder));
        self
    }

    /// Keeps logins in this store instead of files.
    #[must_use]
    pub fn login_store(mut self, store: impl LoginStore) -> Self {
        self.logins = Some(LoginStorage::of_program(logins::Own(store)));
        self
    }

    /// Builds the runner, within a tokio runtime of either flavor, with timers and I/O (`enable_all`). Its tasks run there, so that it makes no
    /// progress while that runtime does not run. A server starts at its first use.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// let error = mcpzip::Runner::builder().config_str("{").build().await.unwrap_err();
    /// assert_eq!(error.kind(), mcpzip::ErrorKind::Config);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`] when the configuration, or the entry of one of its servers, cannot be used, or there is no runtime with
    /// timers.
    #[expect(
        clippy::unused_async,
        reason = "it needs a runtime, and may come to wait"
    )]
    pub async fn build(self) -> Result<Runner, Error> {
        if tokio::runtime::Handle::try_current().is_err() {
            let message = "a runner is built within a tokio runtime, and there is none";
            return Err(Error::new(ErrorKind::Config, message));
        }
        if !has_timers() {
            let message = "a runner needs the timers of its runtime: make that with `enable_all`";
            return Err(Error::new(ErrorKind::Config, message));
        }
        let config = self.config()?;
        let program = tracing::dispatcher::get_default(Clone::clone);
        let scope = Scope::new(&program);
        let directories = self.data()?;
        check(&config, self.directories.is_some())?;
        check_urls(&config)?;
        let session = SessionEnv {
            // As the system gives it to a program.
            directory: self.directory.map(|at| match cfg!(unix) {
                true => at.canonicalize().unwrap_or(at),
                false => at,
            }),
            environment: self.environment,
            open_files: None,
        };
        let own = self.own.into_iter();
        let own = own.filter_map(|(name, own)| Some((ServerName::new(&name).ok()?, own)));
        let own: OwnServers = own.collect();
        let handler = self.handler;
        let inner = shutdown::with_log_lines_now(scope.clone(), || {
            for warning in &config.warnings {
                tracing::warn!("the configuration, {warning}");
            }
            let (tasks, events) = (Tasks::new(), Events::new(events::KEPT));
            let servers = SharedServers::of_library(tasks.clone(), events.clone(), own);
            let all_tasks = tasks.clone();
            let make =
                move |config, profiles, figures: Option<SharedFigures>, _: Option<&Tasks>| {
                    let mut directories = directories.clone();
                    if figures.is_some() {
                        // Results that one profile has stored cannot be read under another.
                        directories.owner = Owner::default();
                    }
                    let request = Request {
                        profiles,
                        figures,
                        ..Request::default()
                    };
                    let session = session.clone();
                    let start = Start::Nothing;
                    Proxy::new(
                        config,
                        &directories,
                        session,
                        &all_tasks,
                        &servers,
                        start,
                        request,
                    )
                };
            let proxies = Proxies::new(config, ProfileChoice::default(), Box::new(make));
            let proxy = proxies.main().clone();
            let capabilities = capabilities(handler.as_deref());
            let has_handler = handler.is_some();
            let handler = handler.unwrap_or_else(|| Arc::new(NoHandler));
            let client = Client::of_program(Arc::new(Deciding(handler.clone())));
            if has_handler {
                listen(&proxy, &client, &handler, capabilities, &tasks);
            }
            let ended = CancellationToken::new();
            let runtime = EndOfRuntime {
                stop: tasks.stop().clone(),
                ended: ended.clone(),
            };
            tasks.spawn(runtime.watch());
            Inner {
                proxy,
                proxies: Arc::new(proxies),
                tasks,
                scope,
                events,
                client,
                handler,
                capabilities,
                ended,
            }
        });
        Ok(Runner {
            inner: Arc::new(inner),
        })
    }

    fn config(&self) -> Result<Config, Error> {
        let (text, path) = match &self.source {
            Source::None => (r#"{"mcpServers":{}}"#.to_owned(), Path::new(TEXT)),
            Source::Text(text) => (text.clone(), Path::new(TEXT)),
            Source::File(path) => (read(path)?, path.as_path()),
        };
        let mut config = parse(&text, path, &self.environment, str::to_owned)?;
        if !self.servers.is_empty() {
            let mut servers = self.servers.clone();
            let replaced = Document::parse(&text).ok();
            for (name, entry) in &mut servers {
                let own = Document::parse(&entry.to_string()).ok();
                let kept = replaced.as_ref().zip(own);
                let kept = kept.map(|(replaced, own)| kept_restrictions(replaced, name, &own));
                for (key, value) in kept.unwrap_or_default() {
                    entry[key] = serde_json::from_str(&value).unwrap_or_default();
                }
            }
            let text = json!({ "mcpServers": servers }).to_string();
            let added = parse(&text, path, &self.environment, |text| {
                unplaced(text).to_owned()
            })?;
            // A setting without an effect is a mistake of the program.
            if let Some(warning) = added
                .warnings
                .iter()
                .find(|warning| !matches!(warning.kind, ConfigWarning::Variable { .. }))
            {
                let message = added.masker.mask(&warning.kind.to_string()).into_owned();
                return Err(Error::new(ErrorKind::Config, message));
            }
            let has_servers =
                |warning: &ConfigWarning| !matches!(warning, ConfigWarning::NoServers);
            config.warnings.retain(|warning| has_servers(&warning.kind));
            config.names.extend(added.names);
            config.masker = config.masker.and(&added.masker);
            config.servers.extend(added.servers);
            config.share_trust();
        }
        // The program manages the configuration; its tools are those of the servers.
        config.management = Management::Off;
        config.scripts = ScriptOptions::default();
        config
            .servers
            .retain(|_, server| server.holds() != Some(Holds::Scripts));
        Ok(config)
    }

    fn data(&self) -> Result<Directories, Error> {
        let cache = self.directories.as_ref().map(|(cache, _)| cache.as_path());
        let embedder = self.embedder.clone().map(Own::of).transpose()?;
        let shared = embedder.map(|own| Arc::new(SharedLists::with_embedder(cache, Arc::new(own))));
        let Some((cache, state)) = &self.directories else {
            return Ok(Directories {
                shared,
                logins: self.logins.clone(),
                ..Directories::default()
            });
        };
        let files = || LoginStorage::Directory(state.join(oauth::DIRECTORY));
        let logins = self.logins.clone().unwrap_or_else(files);
        Ok(Directories {
            shared,
            cache: Some(cache.clone()),
            logs: Some(state.join("logs")),
            results: Some(state.join("results")),
            statistics: Some(statistics::StatisticsStorage::Directory(
                state.join("statistics"),
            )),
            habits: Some(state.join(habits::DIRECTORY)),
            pins: Some(PinHome::Directory(state.join("pins"))),
            sharing: Some(state.join("sharing")),
            sandboxes: Some(state.join(crate::sandbox::DIRECTORY)),
            closed: vec![cache.clone(), state.clone()],
            audit: Some(state.clone()),
            logins: Some(logins),
            ..Directories::default()
        })
    }
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("servers", &self.servers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Whether the current runtime has timers. Tokio says so by a panic alone, which the program's hook prints.
fn has_timers() -> bool {
    std::panic::catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok()
}

/// Passes the messages of servers outside of any request to the handler.
fn listen(
    proxy: &Arc<Proxy>,
    client: &Arc<Client>,
    handler: &Arc<dyn AnyHandler>,
    capabilities: ClientCapabilities,
    tasks: &Tasks,
) {
    // The result is for a client that speaks the protocol.
    let _ = proxy.initialize(client, Revision::NEWEST_LEGACY, capabilities);
    let outbox = Outbox::new();
    client.listener().attach(outbox.clone());
    let exchange = Exchange {
        outbox,
        client: client.clone(),
        handler: handler.clone(),
        tool: None,
    };
    let serve = async move { exchange.serve().await };
    tasks.spawn(tasks.stop().clone().run_until_cancelled_owned(serve));
}

fn capabilities(handler: Option<&dyn AnyHandler>) -> ClientCapabilities {
    let json = handler.map(|handler| handler.capabilities().to_json());
    let raw = json.and_then(|json| serde_json::value::RawValue::from_string(json).ok());
    raw.map_or(ClientCapabilities::NONE, |raw| {
        ClientCapabilities::parse(&raw)
    })
}

fn read(path: &Path) -> Result<String, Error> {
    let fault = |problem: &str| {
        let message = format!("{}: {problem}", path.display());
        Error::new(ErrorKind::Config, message)
    };
    let bytes = read_regular(path, LARGEST_FILE)
        .map_err(|error| fault(&error.to_string()).with_source(error))?;
    String::from_utf8(bytes)
        .map_err(|error| fault("it is not UTF-8").with_source(error.utf8_error()))
}

/// Reads a configuration; a server that cannot be used is an error.
fn parse(
    text: &str,
    path: &Path,
    environment: &Environment,
    shown: fn(&str) -> String,
) -> Result<Config, Error> {
    let fault = |problem: String| Error::new(ErrorKind::Config, problem);
    let config = Config::parse(text, path, environment);
    let config = config.map_err(|error| fault(error.to_string()))?;
    match config.faults.first() {
        Some(found) => Err(fault(shown(&config.masker.mask(&found.to_string())))),
        None => Ok(config),
    }
}

/// A fault without its position in a text that the program did not write.
fn unplaced(fault: &str) -> &str {
    fault.split_once(": ").map_or(fault, |(_, rest)| rest)
}

/// Refuses a configuration whose rules need directories that there are not.
fn check(config: &Config, has_directories: bool) -> Result<(), Error> {
    let pinned = config.servers.iter();
    let mut pinned = pinned.filter(|(_, entry)| !entry.trust.is_report());
    let need = match pinned.next() {
        Some((name, _)) => format!("the `trust` of server `{name}`"),
        None if config.audit.is_on => "the audit log".to_owned(),
        None => return Ok(()),
    };
    if has_directories {
        return Ok(());
    }
    let message = format!("{need} needs a place on disk: set `Builder::directories`");
    Err(Error::new(ErrorKind::Config, message))
}

/// Refuses URLs that this build cannot reach.
fn check_urls(config: &Config) -> Result<(), Error> {
    let is_https = |url: &str| {
        let scheme = url.trim().get(..6);
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
    };
    let is_secure = |entry: &config::Server| match &entry.transport {
        Transport::Http(remote) | Transport::Sse(remote) => {
            let openapi = remote.openapi.as_ref();
            let described = openapi.and_then(|openapi| match &openapi.description {
                DescriptionLocation::Url(url) => Some(url),
                _ => None,
            });
            let origins = openapi
                .map(|openapi| &openapi.origins)
                .into_iter()
                .flatten();
            let proxy = match &remote.proxy {
                config::Proxy::Url(url) => Some(url),
                _ => None,
            };
            let all = std::iter::once(&remote.url).chain(described);
            all.chain(origins).chain(proxy).any(|url| is_https(url))
        }
        Transport::Stdio(_) | Transport::Folder(_) => false,
    };
    let mut secure = config.servers.iter().filter(|(_, entry)| is_secure(entry));
    match secure.next().filter(|_| !tls::IS_PRESENT) {
        None => Ok(()),
        Some((server, _)) => {
            let message = format!(
                "server `{server}` has an `https` URL, for which `mcpzip-cli` needs its feature `tls`"
            );
            Err(Error::new(ErrorKind::Config, message))
        }
    }
}
