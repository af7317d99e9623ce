//! The receiver of the messages of a process.

use std::future::Future;
use std::io;

use tokio::io::AsyncRead;

use crate::mcp::LineReader;

/// Gets what a process writes, line by line.
pub(super) trait Receiver: Send + Sync + 'static {
    /// Reads messages until the stream ends.
    fn read<R: AsyncRead + Unpin + Send>(
        &self,
        lines: &mut LineReader<R>,
    ) -> impl Future<Output = io::Result<()>> + Send;

    /// Resolves when the process is to be ended.
    fn close_requested(&self) -> impl Future<Output = ()> + Send;

    /// Nothing more comes, for this reason.
    fn end(&self, reason: &str);

    /// The process has ended.
    fn gone(&self) {}
}
