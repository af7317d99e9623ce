//! Servers behind a transport of the application.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncWrite};

use super::contained::{Panicked, contained};
use super::error::Error;
use super::inside::BoxFuture;
use crate::text::chain;
use crate::upstream::{self, OpenStreams};

/// A way to a server, for [`Server::over`](crate::Server::over): a socket, a container, a channel of the program.
///
/// Messages are JSON, each on a line of its own, as on the stdin and stdout of a program. A transport with other frames converts
/// them behind `tokio::io::duplex`.
///
/// ```
/// use mcpzip::{BoxFuture, Error, ErrorKind, Runner, Server, Streams, Transport};
/// use tokio::net::TcpStream;
///
/// struct Tcp(String);
///
/// impl Transport for Tcp {
///     fn connect(&self) -> BoxFuture<'_, Result<Streams, Error>> {
///         Box::pin(async {
///             let stream = TcpStream::connect(&self.0).await;
///             let unreachable = |error| Error::new(ErrorKind::Unavailable, &self.0).with_source(error);
///             let stream = stream.map_err(unreachable)?;
///             let (reader, writer) = stream.into_split();
///             Ok(Streams::new(reader, writer))
///         })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let server = Server::over(Tcp("127.0.0.1:7000".to_owned()));
/// let runner = Runner::builder().server("remote", server).build().await?;
/// # Ok(())
/// # }
/// ```
pub trait Transport: Send + Sync + 'static {
    /// Opens a connection. It is called at the first use of the server, after the end of a connection, and once more for a server
    /// that speaks only the newer era of the protocol. An error or a panic makes the server unavailable.
    fn connect(&self) -> BoxFuture<'_, Result<Streams, Error>>;
}

/// The two directions of a connection of a [`Transport`].
///
/// ```
/// let (near, _far) = tokio::io::duplex(64 * 1024);
/// let (reader, writer) = tokio::io::split(near);
/// let streams = mcpzip::Streams::new(reader, writer);
/// # let _ = streams;
/// ```
pub struct Streams(upstream::Streams);

impl Streams {
    /// `reader` has the messages of the server, `writer` takes those to it. Both are dropped at the end of the connection.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self((Box::new(reader), Box::new(writer)))
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

/// A transport of the program, as a connection opens it.
pub(super) struct Outside(pub(super) Arc<dyn Transport>);

impl OpenStreams for Outside {
    fn open(&self) -> BoxFuture<'_, Result<upstream::Streams, String>> {
        let opening = contained(async { self.0.connect().await });
        Box::pin(opening.map(|opened| {
            match opened {
                Ok(opened) => opened
                    .map(|streams| streams.0)
                    .map_err(|error| chain(&error)),
                Err(Panicked) => Err("the transport panicked".to_owned()),
            }
        }))
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").finish_non_exhaustive()
    }
}
