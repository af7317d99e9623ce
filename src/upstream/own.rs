//! Servers of the program that uses this crate as a library: tools inside it, and servers that it connects.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::coop;

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

/// The most bytes of one read. A turn of the task has some hundred reads.
const PART: usize = 8 * 1024;

/// The input of a transport, which may always be ready: each read is small and takes from the budget of its task, so that the task gives way to
/// others, and its connection can be closed.
pub(super) struct Cooperative<R>(pub(super) R);

impl<R: AsyncRead + Unpin> AsyncRead for Cooperative<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let budget = ready!(coop::poll_proceed(context));
        let mut bytes = [0; PART];
        let length = PART.min(buffer.remaining());
        let mut part = ReadBuf::new(&mut bytes[..length]);
        let read = Pin::new(&mut self.0).poll_read(context, &mut part);
        if read.is_ready() {
            budget.made_progress();
        }
        buffer.put_slice(part.filled());
        read
    }
}
