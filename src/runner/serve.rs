//! Serves all servers as one MCP server.

use std::net::SocketAddr;
use std::path::Path;

use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::IntoResponse as _;
use tokio_util::sync::CancellationToken;

use super::client::LIST_LIMIT;
use super::error::{Error, ErrorKind};
use super::{Inner, Runner};
use crate::config::ListenAddress;
use crate::downstream::{http, stdio};
use crate::secret::Secret;
use crate::shutdown::Tasks;
use crate::store::State;

/// The address and the permitted clients of [`Runner::serve_http`].
///
/// ```
/// use mcpzip::HttpOptions;
///
/// let options = HttpOptions::new("127.0.0.1", 0).token("a long random word").origin("https://app.example.com");
/// # let _ = options;
/// ```
#[derive(Debug, Clone)]
pub struct HttpOptions {
    address: ListenAddress,
    token: Option<Secret<String>>,
    origins: Vec<String>,
    is_protected: bool,
}

impl HttpOptions {
    /// Listens on this host and port; port 0 chooses a free one. An address that other machines reach needs a token.
    ///
    /// ```
    /// let options = mcpzip::HttpOptions::new("127.0.0.1", 3000);
    /// # let _ = options;
    /// ```
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        let host = host.into();
        Self {
            address: ListenAddress { host, port },
            token: None,
            origins: Vec::new(),
            is_protected: false,
        }
    }

    /// Requires `Authorization: Bearer` with this token from every client: one word of printable ASCII. Another one is an
    /// [`ErrorKind::Config`] of the server, so that a variable that is not set opens nothing.
    ///
    /// ```
    /// let options = mcpzip::HttpOptions::new("0.0.0.0", 3000).token("a long random word");
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        Self {
            token: Some(token.into().into()),
            ..self
        }
    }

    /// Permits pages of this origin, such as `https://app.example.com`.
    ///
    /// ```
    /// let options = mcpzip::HttpOptions::new("127.0.0.1", 3000).origin("https://app.example.com");
    /// # let _ = options;
    /// ```
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// For [`Runner::router`] only: the program has its own control of access before the router, so that an address that other
    /// machines reach needs no token.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// let options = mcpzip::HttpOptions::new("0.0.0.0", 80).protected_by_program();
    /// let router = runner.router(options).await?;
    /// # let _ = router;
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn protected_by_program(self) -> Self {
        Self {
            is_protected: true,
            ..self
        }
    }

    fn read(self, inner: &Inner) -> Result<http::Options, Error> {
        let unusable = |message: String| Err(Error::new(ErrorKind::Config, message));
        match &inner.proxy.unscoped().config().http {
            Err(fault) => return unusable(format!("`http`: {fault}")),
            Ok(http) if http.auth.is_some() => {
                return unusable(
                    "`http.auth` asks for identities, which the library does not check: remove it from the configuration, or \
                     serve with the program `mcpzip`"
                        .to_owned(),
                );
            }
            Ok(http) if http.tls.is_some() => {
                return unusable(
                    "`http.tls` is for the program `mcpzip`: remove it from the configuration, or serve with the program"
                        .to_owned(),
                );
            }
            Ok(_) => {}
        }
        let token = self.token.map(|token| {
            let checked = http::token(token.expose(), "`HttpOptions::token`".to_owned());
            checked.map_err(|error| {
                Error::new(ErrorKind::Config, error.to_string()).with_source(error)
            })
        });
        let origins = self.origins.iter().map(|text| {
            let origin = text.parse::<http::Origin>();
            origin.map_err(|error| {
                let message = format!("`{text}`: {error}");
                Error::new(ErrorKind::Config, message).with_source(error)
            })
        });
        Ok(http::Options {
            public_url: None,
            peer: None,
            origins: origins.collect::<Result<_, _>>()?,
            address: self.address,
            token: token.transpose()?,
            auth: None,
            tls: None,
            drain: None,
            ui: false,
        })
    }
}

/// A running HTTP server. It serves until [`HttpServer::shutdown`], its drop, or the end of its runner.
///
/// ```
/// # mcpzip::internals::with_notes(async |runner| {
/// let server = runner.serve_http(mcpzip::HttpOptions::new("127.0.0.1", 0)).await?;
/// println!("clients connect to {}", server.url());
/// server.shutdown().await;
/// # Ok(()) });
/// ```
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    tasks: Tasks,
    _end: tokio_util::sync::DropGuard,
}

impl HttpServer {
    /// The address that it listens on.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// let server = runner.serve_http(mcpzip::HttpOptions::new("127.0.0.1", 0)).await?;
    /// assert_ne!(server.address().port(), 0);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// let server = runner.serve_http(mcpzip::HttpOptions::new("127.0.0.1", 0)).await?;
    /// assert_eq!(server.url(), format!("http://{}/mcp", server.address()));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn url(&self) -> String {
        http::url(self.address)
    }

    /// Ends it, with the requests in progress, and waits for its end.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// let server = runner.serve_http(mcpzip::HttpOptions::new("127.0.0.1", 0)).await?;
    /// let address = server.address();
    /// server.shutdown().await;
    /// assert!(tokio::net::TcpStream::connect(address).await.is_err());
    /// # Ok(()) });
    /// ```
    pub async fn shutdown(self) {
        self.tasks.finish().await;
    }
}

impl Runner {
    /// Serves a client on stdin and stdout until it leaves or the runner ends. Clients get the meta-tools or every tool, as the
    /// configuration says. For their calls, a rule of `tools.ask` asks the client, not [`Handler::consent`](crate::Handler::consent).
    ///
    /// A result over `results.budget` is stored in [`Builder::directories`](crate::Builder::directories). Without them, the client
    /// gets its start, as long as the budget permits, and the rest is lost.
    ///
    /// ```no_run
    /// # mcpzip::internals::with_notes(async |runner| {
    /// runner.serve_stdio().await?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when stdin or stdout cannot be used.
    pub async fn serve_stdio(&self) -> Result<(), Error> {
        let inner = &self.inner;
        inner.check()?;
        let served = inner.within(async {
            inner.list_soon();
            stdio::serve(inner.proxy.clone(), &inner.tasks).await
        });
        served
            .await
            .map_err(|error| Error::new(ErrorKind::Io, error.to_string()).with_source(error))
    }

    /// Serves clients over HTTP, as [`Runner::serve_stdio`] does: Streamable HTTP on `/mcp`, and HTTP+SSE on `/sse`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// # let runner = mcpzip::Runner::builder().build().await?;
    /// let server = runner.serve_http(mcpzip::HttpOptions::new("127.0.0.1", 0)).await?;
    /// println!("add {} to your client", server.url());
    /// server.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when the address cannot be used, and [`ErrorKind::Config`] when it would be open to other machines without a
    /// token.
    pub async fn serve_http(&self, options: HttpOptions) -> Result<HttpServer, Error> {
        let inner = &self.inner;
        inner.check()?;
        inner.within(inner.listen(options.read(inner)?)).await
    }

    /// The endpoints of [`Runner::serve_http`] as a router of axum 0.8, for a service of the program: `/mcp`, `/mcp/p/PROFILE`, `/sse` and
    /// `/message`. `options` have the address at which that service listens, which decides what the header `Host` may be and
    /// whether a token is needed. It answers until the runner ends.
    ///
    /// With `Router::nest`, clients of Streamable HTTP find it below the path; HTTP+SSE works without `nest` only.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), mcpzip::Error> {
    /// # let runner = mcpzip::Runner::builder().build().await?;
    /// use axum::{Router, routing::get};
    ///
    /// let tools = runner.router(mcpzip::HttpOptions::new("127.0.0.1", 8080)).await?;
    /// let service: Router = Router::new().route("/", get(async || "hello")).merge(tools);
    /// # let _ = service;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when the host cannot be resolved, and [`ErrorKind::Config`] when the address would be open to other machines
    /// without a token.
    pub async fn router(&self, options: HttpOptions) -> Result<axum::Router, Error> {
        let inner = self.inner.clone();
        inner.check()?;
        let is_protected = options.is_protected;
        let options = options.read(&inner)?;
        let mount = http::mounted(options, is_protected, inner.proxies.clone(), &inner.tasks);
        let work = async {
            inner.list_soon();
            mount.await.map_err(unusable)
        };
        let router = inner.within(work).await?;
        // Requests run on tasks of the service, which have neither the secrets nor the log of this runner.
        let within = move |request, next: Next| {
            let inner = inner.clone();
            async move {
                match inner.check() {
                    Ok(()) => inner.within(next.run(request)).await,
                    Err(error) => {
                        (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response()
                    }
                }
            }
        };
        Ok(router.layer(middleware::from_fn(within)))
    }
}

fn unusable(error: http::Error) -> Error {
    if let http::Error::Unprotected { address } = &error {
        let message = format!(
            "`{address}` can be reached from other machines, so clients must show a token: `HttpOptions::token`"
        );
        return Error::new(ErrorKind::Config, message);
    }
    let cause = std::error::Error::source(&error);
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    Error::new(ErrorKind::Io, format!("{error}{cause}")).with_source(error)
}

impl Inner {
    async fn listen(&self, options: http::Options) -> Result<HttpServer, Error> {
        let server = http::Server::bind(options).await;
        let server = server.map_err(unusable)?;
        self.list_soon();
        let (address, tasks) = (server.address(), Tasks::new());
        // Identities, which need it, are a matter of the program.
        let state = State::of_files(Path::new(""));
        let _ = server.start(self.proxies.clone(), &tasks, &state, None, None);
        let (ended, stop) = (CancellationToken::new(), tasks.stop().clone());
        let (runner, end) = (self.tasks.stop().clone(), ended.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = runner.cancelled() => {}
                () = end.cancelled() => {}
                () = stop.cancelled() => {}
            }
            stop.cancel();
        });
        Ok(HttpServer {
            address,
            tasks,
            _end: ended.drop_guard(),
        })
    }

    /// Lists the servers whose tools are not known, in the background.
    fn list_soon(&self) {
        let inventory = self.proxy.inventory.clone();
        let listing = async move { inventory.known(None, LIST_LIMIT).await };
        let stop = self.tasks.stop().clone();
        self.tasks.spawn(stop.run_until_cancelled_owned(listing));
    }
}
