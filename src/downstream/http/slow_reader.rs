//! Closes the connection of a client that does not read, but only if its unread messages leave too little of the
//! budget for others.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::mcp::ByteBudget;

/// A connection that fails when its client reads nothing for too long while the budget is scarce.
#[derive(Debug)]
pub(super) struct SlowReaderGuard<T> {
    inner: T,
    budget: ByteBudget,
    longest: Duration,
    /// Runs since the client last took any of the bytes that are ready for it.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<T> SlowReaderGuard<T> {
    /// Wraps `inner`. `budget` is that of outgoing messages; `longest` is the time for which a client may read
    /// nothing while it is scarce.
    pub(super) fn new(inner: T, budget: ByteBudget, longest: Duration) -> Self {
        Self {
            inner,
            budget,
            longest,
            stalled: None,
        }
    }

    /// The result of a write, or an error if the client has taken nothing for too long.
    fn judged<R>(
        &mut self,
        outcome: Poll<io::Result<R>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(self.longest)));
        loop {
            ready!(stalled.as_mut().poll(context));
            if self.budget.is_scarce() {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the client does not read, and others need the memory",
                )));
            }
            // Checked again soon, because the budget may become scarce at any moment.
            stalled.as_mut().reset(Instant::now() + self.longest / 10);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for SlowReaderGuard<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for SlowReaderGuard<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.judged(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.judged(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A budget of one large message.
    const LARGE: usize = 100_000;

    #[tokio::test]
    async fn a_client_that_does_not_read_is_left_alone_until_the_budget_is_scarce() {
        let budget = ByteBudget::new(LARGE, 1);
        let (near, mut far) = tokio::io::duplex(16);
        let longest = Duration::from_millis(5);
        let mut connection = SlowReaderGuard::new(near, budget.clone(), longest);
        let writing = tokio::time::timeout(10 * longest, connection.write_all(&[0; 64])).await;
        assert!(writing.is_err(), "it was not left alone");
        far.read_exact(&mut [0; 16]).await.unwrap();
        connection.write_all(&[0; 16]).await.unwrap();

        let _held = budget.hold(vec![0; LARGE].into()).unwrap();
        let error = connection.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
