//! Servers of the program that uses this crate as a library: tools inside it, and servers that it connects.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use super::Source;
use crate::tool::ServerName;

/// The servers of the program by name. They come before the transport of the entry of that name.
pub(crate) type OwnServers = BTreeMap<ServerName, OwnServer>;

/// A server of the program.
#[derive(Debug, Clone)]
pub(crate) enum OwnServer {
    /// Tools inside the program.
    Source(Arc<dyn Source>),
    /// A server that the program connects.
    Streams(Arc<dyn OpenStreams>),
}

/// The two directions of a connection; messages are lines.
pub(crate) type Streams = (
    Box<dyn AsyncRead + Send + Unpin>,
    Box<dyn AsyncWrite + Send + Unpin>,
);

/// Connects a server.
pub(crate) trait OpenStreams: fmt::Debug + Send + Sync {
    /// Opens a connection.
    ///
    /// # Errors
    /// The reason, for a person.
    fn open(&self) -> BoxFuture<'_, Result<Streams, String>>;
}
