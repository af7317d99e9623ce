//! The library: many MCP servers in another Rust program.
//!
//! A [`Runner`] has no global state and reads no environment variable. Its tasks run with a scope of their own for secrets and
//! log lines ([`crate::telemetry::Scope`]), and no process is started except the servers.

mod builder;
mod client;
mod contained;
mod embedder;
mod error;
mod events;
mod exchange;
mod execute;
mod handler;
mod inside;
mod logins;
mod serve;
mod server;
mod status;
mod tool;
mod transport;

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::instrument::WithSubscriber as _;

pub use builder::Builder;
pub use client::Client;
pub use embedder::Embedder;
pub use error::{Error, ErrorKind};
pub use events::{Event, Events};
pub use execute::Execute;
pub use handler::{Capabilities, Consent, Handler, LogMessage, Progress};
pub use inside::{BoxFuture, ToolSource, Tools};
pub use logins::LoginStore;
pub use serve::{HttpOptions, HttpServer};
pub use server::Server;
pub use status::{State, Status};
pub use tool::{Found, Prompt, Resource, SearchResult, Tool, ToolResult};
pub use transport::{Streams, Transport};

use self::client::{LIST_LIMIT, unreadable, with_progress};
use self::exchange::{Exchange, object};
use self::handler::AnyHandler;
use crate::catalog;
use crate::mcp::{ClientCapabilities, ErrorCode, Extensions, Outbox, Revision};
use crate::proxy::{
    self, Agreement, Call, Caller, Failure, Proxy, Reply, RequestContext, Unlisted, View,
};
use crate::shutdown::{self, LogLines, Tasks};
use crate::telemetry::Scope;
use crate::telemetry::trace::Trace;
use crate::tool::ServerName;
use crate::upstream::NotListed;

/// Many MCP servers, as one. Dropping it ends the servers that it started, as does the end of the runtime that it was built in.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mcpzip::Error> {
/// use mcpzip::{Runner, Server};
///
/// let runner = Runner::builder()
///     .server("time", Server::stdio("uvx").args(["mcp-server-time"]))
///     .environment(std::env::vars())
///     .build()
///     .await?;
/// assert_eq!(runner.servers(), ["time"]);
/// runner.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Runner {
    inner: Arc<Inner>,
}

/// The part of a runner that its clients share.
struct Inner {
    proxy: Arc<Proxy>,
    /// It, and those for clients with a profile.
    proxies: Arc<proxy::Proxies>,
    tasks: Tasks,
    scope: Arc<Scope>,
    events: Arc<crate::events::Events>,
    /// The program, as a client of the proxy.
    client: Arc<proxy::Client>,
    handler: Arc<dyn AnyHandler>,
    capabilities: ClientCapabilities,
    /// Cancelled when the runner has ended.
    ended: CancellationToken,
}

impl Runner {
    /// Begins the settings of a runner.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// let runner = mcpzip::Runner::builder().build().await?;
    /// assert!(runner.servers().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The names of the configured servers, sorted.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// assert_eq!(runner.servers(), ["notes"]);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn servers(&self) -> Vec<String> {
        let config = self.inner.proxy.unscoped().config();
        config.servers.keys().map(ToString::to_string).collect()
    }

    /// A client of one server, which starts at the first request.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// let notes = runner.client("notes")?;
    /// assert_eq!(notes.list_tools().await?.len(), 1);
    /// assert!(runner.client("nowhere").is_err());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::UnknownServer`] when it is not configured.
    pub fn client(&self, server: &str) -> Result<Client, Error> {
        Ok(Client {
            server: self.inner.server(server)?,
            inner: self.inner.clone(),
        })
    }

    /// Connects a server, which starts it if it is a program, and lists its tools.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// runner.start("notes").await?;
    /// assert_eq!(runner.status("notes")?.state, mcpzip::State::Ready);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// When it is not configured, or cannot be used.
    pub async fn start(&self, server: &str) -> Result<(), Error> {
        let server = self.inner.server(server)?;
        self.inner.start(&server).await
    }

    /// Starts all servers side by side, and returns the outcome of each.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// for (server, outcome) in runner.start_all().await {
    ///     match outcome {
    ///         Ok(()) => println!("{server} is ready"),
    ///         Err(error) => eprintln!("{server}: {error}"),
    ///     }
    /// }
    /// # Ok(()) });
    /// ```
    pub async fn start_all(&self) -> Vec<(String, Result<(), Error>)> {
        let servers = self.servers().into_iter();
        let started = servers.map(async |server| {
            let outcome = self.start(&server).await;
            (server, outcome)
        });
        join_all(started).await
    }

    /// Ends the connection of a server, and its process, with the calls that it has, or its start in progress, which then fails with
    /// [`ErrorKind::Unavailable`]. The next use starts it again. Returns whether it was connected or starting.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// runner.start("notes").await?;
    /// assert!(runner.stop("notes").await?);
    /// assert!(!runner.stop("notes").await?, "it was not connected");
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::UnknownServer`] when it is not configured.
    pub async fn stop(&self, server: &str) -> Result<bool, Error> {
        let server = self.inner.server(server)?;
        let inner = &self.inner;
        Ok(inner
            .within(async { inner.proxy.inventory.stop(&server) })
            .await)
    }

    /// Ends the connections of all servers; see [`Runner::stop`].
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// runner.start_all().await;
    /// runner.stop_all().await;
    /// assert_eq!(runner.status("notes")?.state, mcpzip::State::Idle);
    /// # Ok(()) });
    /// ```
    pub async fn stop_all(&self) {
        for server in self.servers() {
            // Removed meanwhile is stopped, too.
            let _ = self.stop(&server).await;
        }
    }

    /// Stops a server and starts it again.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// runner.restart("notes").await?;
    /// assert_eq!(runner.status("notes")?.state, mcpzip::State::Ready);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// Like [`Runner::start`].
    pub async fn restart(&self, server: &str) -> Result<(), Error> {
        self.stop(server).await?;
        self.start(server).await
    }

    /// The state of one server.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// runner.start("notes").await?;
    /// assert_eq!(runner.status("notes")?.tools, 1);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::UnknownServer`] when it is not configured.
    pub fn status(&self, server: &str) -> Result<Status, Error> {
        let mut statuses = self.statuses().into_iter();
        let found = statuses.find(|status| status.server == server);
        found.ok_or_else(|| Error::unknown_server(server))
    }

    /// The state of every server.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// for status in runner.statuses() {
    ///     println!("{}: {:?}, {} tools", status.server, status.state, status.tools);
    /// }
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        let proxy = &self.inner.proxy;
        let status = proxy.inventory.status(&proxy.unscoped());
        status.servers.into_iter().map(Status::of).collect()
    }

    /// The events of the servers, beginning with the last earlier ones.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// let mut events = runner.events();
    /// runner.start("notes").await?;
    /// while let Some(event) = events.next().await {
    ///     if matches!(event, mcpzip::Event::Ready { .. }) {
    ///         break;
    ///     }
    /// }
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn events(&self) -> Events {
        Events::of(&self.inner.events, self.inner.ended.clone())
    }

    /// Finds tools of all servers by what is needed, best first. Servers whose tools are not known yet are started, and waited for:
    /// for 4 seconds, and longer while one after the other is listed, up to 15 seconds. The result names those that it lacks; their
    /// listing goes on, so that a later search has them. [`Runner::start`] waits for a slow server.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// let search = runner.search("add a note", 5).await?;
    /// assert_eq!(search.found[0].name, "notes__add");
    /// assert!(search.not_searched.is_empty());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Search`] when the tools cannot be searched.
    pub async fn search(&self, need: &str, limit: usize) -> Result<SearchResult, Error> {
        let inner = &self.inner;
        let work = async {
            // It begins the listings; the search waits for them.
            inner.proxy.inventory.known(None, Duration::ZERO).await;
            let view = inner.proxy.unscoped();
            let answer = inner.proxy.tools.search(&view, need, limit, None).await;
            let answer = answer.map_err(|error| {
                let message = error.to_string();
                Error::new(ErrorKind::Search, message).with_source(error)
            })?;
            let found = answer.found.into_iter().map(|found| Found {
                name: found.name,
                score: found.score,
                signature: found.text,
            });
            Ok(SearchResult {
                found: found.collect(),
                not_searched: answer.missing,
            })
        };
        inner.run(work).await
    }

    /// The whole definition of the tool `server__tool`.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// let tool = runner.describe("notes__add").await?;
    /// assert_eq!(tool.description, "Adds a note");
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// When there is no such tool.
    pub async fn describe(&self, name: &str) -> Result<Tool, Error> {
        let inner = &self.inner;
        let work = async {
            let view = inner.proxy.unscoped();
            let described = inner.proxy.tools.describe(&view, name).await;
            let (tool, json) = described.map_err(|failure| inner.failed(&failure, &view))?;
            inner.tool(&tool, || Ok(json))
        };
        inner.run(work).await
    }

    /// Calls the tool `server__tool` when it is awaited.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// # use serde_json::json;
    /// let result = runner.execute("notes__add", json!({ "text": "milk" })).await?;
    /// assert_eq!(result.structured().unwrap()["text"], "milk");
    /// # Ok(()) });
    /// ```
    pub fn execute<'a>(&'a self, name: &'a str, arguments: impl Serialize) -> Execute<'a> {
        Execute {
            runner: self,
            name,
            arguments: to_raw_value(&arguments).map_err(unreadable),
            select: None,
            timeout: None,
        }
    }

    /// Ends all servers, with the calls that they have, and waits for their end. After it every request fails with
    /// [`ErrorKind::Ended`].
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// runner.shutdown().await;
    /// let error = runner.start("notes").await.unwrap_err();
    /// assert_eq!(error.kind(), mcpzip::ErrorKind::Ended);
    /// # Ok(()) });
    /// ```
    pub async fn shutdown(&self) {
        let inner = &self.inner;
        let end = async {
            inner.tasks.finish().await;
            inner.proxy.close().await;
        };
        inner.within(end).await;
        inner.ended.cancel();
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.inner.tasks.stop().cancel();
        self.inner.ended.cancel();
    }
}

/// Ends a runner with its runtime, which drops the task that holds this.
struct EndOfRuntime {
    stop: CancellationToken,
    ended: CancellationToken,
}

impl EndOfRuntime {
    /// Waits for the end of the runner.
    async fn watch(self) {
        self.stop.cancelled().await;
    }
}

impl Drop for EndOfRuntime {
    fn drop(&mut self) {
        // After `Runner::shutdown`, the last events are to come.
        if !self.stop.is_cancelled() {
            self.ended.cancel();
        }
        self.stop.cancel();
    }
}

impl Inner {
    /// Runs `work` with this runner's secrets and log. It is boxed, so that the program's compiler need not look into it.
    fn within<'a, F>(&self, work: F) -> Pin<Box<dyn Future<Output = F::Output> + Send + 'a>>
    where
        F: Future + Send + 'a,
        F::Output: Send,
    {
        let scope: Arc<dyn LogLines> = self.scope.clone();
        let log = self
            .scope
            .dispatch()
            .unwrap_or_else(tracing::Dispatch::none);
        Box::pin(shutdown::with_log_lines(scope, work).with_subscriber(log))
    }

    /// Like [`Self::within`], until the end of the runner.
    async fn run<'a, T: Send>(
        &'a self,
        work: impl Future<Output = Result<T, Error>> + Send + 'a,
    ) -> Result<T, Error> {
        self.check()?;
        let ended = async {
            tokio::select! {
                biased;
                outcome = work => outcome,
                () = self.tasks.stopped() => Err(Error::ended()),
            }
        };
        self.within(ended).await
    }

    fn check(&self) -> Result<(), Error> {
        match self.tasks.stop().is_cancelled() {
            true => Err(Error::ended()),
            false => Ok(()),
        }
    }

    fn server(&self, name: &str) -> Result<ServerName, Error> {
        let config = self.proxy.unscoped().config();
        let found = config.servers.keys().find(|server| server.as_str() == name);
        found.cloned().ok_or_else(|| Error::unknown_server(name))
    }

    async fn start(&self, server: &ServerName) -> Result<(), Error> {
        let work = async {
            if self.proxy.inventory.start(server, LIST_LIMIT).await {
                let message = format!("server `{server}` was stopped while it was starting");
                return Err(Error::new(ErrorKind::Unavailable, message));
            }
            self.listed(server)
        };
        self.run(work).await
    }

    /// Waits until the lists of `server` are known. If the last attempt failed, there is another one.
    async fn known(&self, server: &ServerName) -> Result<(), Error> {
        let work = async {
            let inventory = &self.proxy.inventory;
            inventory.known_now(Some(server), LIST_LIMIT).await;
            let snapshot = self.proxy.unscoped().snapshot();
            match snapshot.server(server) {
                Some(_) => Ok(()),
                None => self.listed(server),
            }
        };
        self.run(work).await
    }

    /// The outcome of the last listing of `server`.
    fn listed(&self, server: &ServerName) -> Result<(), Error> {
        let mask = |text: &str| {
            let config = self.proxy.unscoped().config();
            config.masker.mask(text).into_owned()
        };
        let unavailable = |message: String| Error::new(ErrorKind::Unavailable, message);
        match self.proxy.inventory.progress().remove(server) {
            Some(proxy::Progress::Listed) => Ok(()),
            Some(proxy::Progress::Failed(reason)) => {
                let kind = match self.proxy.inventory.wants_login(server) {
                    true => ErrorKind::Login,
                    false => ErrorKind::Unavailable,
                };
                let named = match &*reason {
                    NotListed::List(_) => reason.to_string(),
                    _ => format!("server `{server}`: {reason}"),
                };
                Err(Error::new(kind, mask(&named)).with_masked(&*reason, mask))
            }
            Some(_) => Err(unavailable(format!(
                "server `{server}` has not listed its tools within {LIST_LIMIT:?}"
            ))),
            None => Err(unavailable(format!(
                "server `{server}` is disabled in the configuration"
            ))),
        }
    }

    /// The error of a call. If its server was not listed, it is that of the listing, with its causes.
    fn failed(&self, failure: &Failure, view: &View) -> Error {
        let listing = match failure {
            Failure::Unlisted {
                server,
                reason: Unlisted::Failed(_),
            } => self.listed(server).err(),
            _ => None,
        };
        listing.unwrap_or_else(|| Error::of_failure(failure, view))
    }

    /// The definition of a tool.
    fn tool(
        &self,
        tool: &catalog::Tool,
        json: impl FnOnce() -> Result<Box<RawValue>, catalog::ReadError>,
    ) -> Result<Tool, Error> {
        Ok(Tool {
            server: tool.server().name().to_string(),
            ..self.read(json())?
        })
    }

    /// Reads a definition of a server.
    fn read<T: serde::de::DeserializeOwned>(
        &self,
        json: Result<Box<RawValue>, catalog::ReadError>,
    ) -> Result<T, Error> {
        let unusable = |text: String| {
            let message = format!("a definition of the server cannot be read: {text}");
            Error::new(ErrorKind::Answer, message)
        };
        let json = json.map_err(|error| unusable(error.to_string()).with_source(error))?;
        serde_json::from_str(json.get())
            .map_err(|error| unusable(error.to_string()).with_source(error))
    }

    /// The program as the caller of a request, and its exchange with the handler meanwhile.
    fn caller(&self, tool: Option<&str>) -> (Caller, Exchange) {
        let outbox = Outbox::new();
        let caller = Caller {
            client: self.client.clone(),
            revision: Revision::NEWEST_LEGACY,
            shows: None,
            capabilities: self.capabilities,
            extensions: Extensions::default(),
            common: Arc::default(),
            outbox: outbox.clone(),
            log_level: None,
            params: None,
            scopes: None,
            receipt: None,
            received: Instant::now(),
            trace: Trace::None,
        };
        let exchange = Exchange {
            outbox,
            client: self.client.clone(),
            handler: self.handler.clone(),
            tool: tool.map(str::to_owned),
        };
        (caller, exchange)
    }

    async fn call(
        &self,
        name: &str,
        arguments: &RawValue,
        limit: Option<Duration>,
        select: Option<String>,
    ) -> Result<ToolResult, Error> {
        let span = tracing::info_span!(target: "mcpzip", "call", tool = name);
        let work = async {
            let view = self.proxy.unscoped();
            let (caller, exchange) = self.caller(Some(name));
            let params = RawValue::from_string(with_progress(Map::new())).map_err(unreadable)?;
            let context = RequestContext::of(&caller, &view, &object(&params));
            let call = Call {
                name,
                arguments: Some(arguments),
                line: None,
                limit,
                view: &view,
                context: Some(&context),
                agreement: Agreement::Missing,
                is_read_only: false,
                task: None,
            };
            let reply = exchange.around(self.proxy.tools.call_unshaped(call)).await;
            let reply = reply.map_err(|failure| self.failed(&failure, &view))?;
            let result = self.value_of(reply)?;
            match select {
                Some(filter) => self.selected(result, filter).await,
                None => Ok(ToolResult(result)),
            }
        };
        self.run(work).instrument(span).await
    }

    async fn request(&self, method: &str, params: Map<String, Value>) -> Result<Value, Error> {
        let span = tracing::info_span!(target: "mcpzip", "request", method);
        let work = async {
            let (caller, exchange) = self.caller(None);
            let line = bytes::Bytes::from(with_progress(params));
            let raw: &RawValue = serde_json::from_slice(&line).map_err(unreadable)?;
            let params = object(raw);
            let reply = self.proxy.handle(&caller, method, &params, &line);
            self.value_of(exchange.around(reply).await)
        };
        self.run(work).instrument(span).await
    }

    fn value_of(&self, reply: Reply) -> Result<Value, Error> {
        let view = self.proxy.unscoped();
        let value = |result: &[u8]| {
            serde_json::from_slice(result).map_err(|error| {
                let message = format!("the answer of the server is not JSON: {error}");
                Error::new(ErrorKind::Answer, message).with_source(error)
            })
        };
        match reply {
            Reply::Result(result) | Reply::Relayed(result) => value(&result),
            Reply::RelayedContent(result) => value(&result),
            Reply::RelayedError(error) => Err(Error::of_server(&error, &view)),
            Reply::Error {
                message,
                cause: Some(cause),
                ..
            } => Err(Error::of_call(&cause, message, &view)),
            // There is no such prompt or resource, or what was asked for cannot be used.
            Reply::Error {
                code: ErrorCode::INVALID_PARAMS | ErrorCode::RESOURCE_NOT_FOUND,
                message,
                ..
            } => Err(Error::new(ErrorKind::Arguments, message)),
            Reply::Error { message, .. } => Err(Error::new(ErrorKind::Server, message)),
            // The program declares no tasks.
            Reply::Task(_) | Reply::Ended { .. } => Err(Error::ended()),
        }
    }

    /// The part of a result that a filter of the application selects.
    async fn selected(&self, result: Value, filter: String) -> Result<ToolResult, Error> {
        let result = ToolResult(result);
        if result.is_error() {
            return Ok(result);
        }
        let text = result.text();
        let data = match result.structured() {
            Some(structured) => structured.to_string(),
            None => match serde_json::from_str::<&RawValue>(&text) {
                Ok(_) => text,
                Err(_) => Value::String(text).to_string(),
            },
        };
        let run = move || proxy::projection::run_here(&filter, data.as_bytes());
        let ended = self.tasks.spawn_blocking(run).await;
        let text = ended
            .map_err(|error| {
                Error::new(ErrorKind::Filter, "the filter panicked").with_source(error)
            })?
            .map_err(|reason| Error::new(ErrorKind::Filter, reason))?;
        let content = serde_json::json!([{ "type": "text", "text": text }]);
        Ok(ToolResult(serde_json::json!({ "content": content })))
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").finish_non_exhaustive()
    }
}
