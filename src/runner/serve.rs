//! Serving the servers on, as one MCP server.

use std::net::SocketAddr;

use tokio_util::sync::CancellationToken;

use super::client::LIST_LIMIT;
use super::error::{Error, ErrorKind};
use super::{Inner, Runner};
use crate::config::ListenAddress;
use crate::downstream::{http, stdio};
use crate::secret::Secret;
use crate::shutdown::Tasks;

/// Where and to whom [`Runner::serve_http`] serves.
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
}

impl HttpOptions {
    /// Listens on this host and port; port 0 chooses a free one. An address that other machines reach needs a token.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        let host = host.into();
        Self {
            address: ListenAddress { host, port },
            token: None,
            origins: Vec::new(),
        }
    }

    /// Requires `Authorization: Bearer` with this token from every client.
    #[must_use]
    pub fn token(self, token: impl Into<String>) -> Self {
        Self {
            token: Some(token.into().into()),
            ..self
        }
    }

    /// Permits pages of this origin, such as `https://app.example.com`.
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }
}

/// A running HTTP server. It serves until [`HttpServer::shutdown`], its drop, or the end of its runner.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    tasks: Tasks,
    _end: tokio_util::sync::DropGuard,
}

impl HttpServer {
    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients.
    #[must_use]
    pub fn url(&self) -> String {
        http::url(self.address)
    }

    /// Ends it, with the requests in progress, and waits for its end.
    pub async fn shutdown(self) {
        self.tasks.finish().await;
    }
}

impl Runner {
    /// Serves a client on stdin and stdout until it leaves or the runner ends. Clients get the meta-tools or every tool, as the
    /// configuration says.
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
            .map_err(|error| Error::new(ErrorKind::Io, error.to_string()).with(error))
    }

    /// Serves clients over HTTP: Streamable HTTP on `/mcp`, and HTTP+SSE on `/sse`.
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
    /// [`ErrorKind::Io`] when the address cannot be used, or would be open to other machines without a token.
    pub async fn serve_http(&self, options: HttpOptions) -> Result<HttpServer, Error> {
        let inner = &self.inner;
        inner.check()?;
        let unusable = |text: String| Error::new(ErrorKind::Io, text);
        let origins = options.origins.iter().map(|text| {
            let origin = text.parse::<http::Origin>();
            origin.map_err(|error| unusable(format!("`{text}`: {error}")).with(error))
        });
        let options = http::Options {
            address: options.address,
            token: options.token,
            origins: origins.collect::<Result<_, _>>()?,
        };
        inner.within(inner.listen(options)).await
    }
}

impl Inner {
    async fn listen(&self, options: http::Options) -> Result<HttpServer, Error> {
        let server = http::Server::bind(options).await;
        let server = server.map_err(|error| {
            let cause = std::error::Error::source(&error);
            let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
            Error::new(ErrorKind::Io, format!("{error}{cause}")).with(error)
        })?;
        self.list_soon();
        let (address, tasks) = (server.address(), Tasks::new());
        server.start(self.proxies.clone(), &tasks);
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
