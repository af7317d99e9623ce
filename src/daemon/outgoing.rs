//! The daemon's messages to the process of a session. A step of the journal is sent before the code that reports it
//! does anything else, so that a kill cannot lose the step.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf as _, BytesMut};
use parking_lot::Mutex;
use tokio::io::AsyncWrite;

use super::journal::{Report, Step};
use super::message::{self, ToSession};

/// The size of unsent messages, in bytes, above which log lines wait.
const MOST_WAITING: usize = 256 * 1024;

/// The sending side of the connection to a session's process.
#[derive(Clone)]
pub(super) struct Outgoing(Arc<Mutex<Queue>>);

struct Queue {
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    waiting: BytesMut,
    /// Wakes [`Outgoing::drive`].
    driver: Option<Waker>,
}

impl Outgoing {
    pub(super) fn new(writer: impl AsyncWrite + Send + Unpin + 'static) -> Self {
        Self(Arc::new(Mutex::new(Queue {
            writer: Box::new(writer),
            waiting: BytesMut::new(),
            driver: None,
        })))
    }

    /// Sends waiting messages while `sending` runs, and the last ones after it.
    ///
    /// # Errors
    /// When the process is gone.
    pub(super) async fn drive<T>(
        &self,
        sending: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        let driving = std::future::poll_fn(|context| {
            let mut queue = self.0.lock();
            queue.driver = Some(context.waker().clone());
            match queue.poll_send(context) {
                Poll::Ready(Err(error)) => Poll::Ready(error),
                _ => Poll::Pending,
            }
        });
        let sending = async {
            let sent = sending.await?;
            std::future::poll_fn(|context| self.0.lock().poll_send(context)).await?;
            Ok(sent)
        };
        tokio::select! {
            sent = sending => sent,
            error = driving => Err(error),
        }
    }
}

impl std::fmt::Debug for Outgoing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Outgoing").finish_non_exhaustive()
    }
}

impl Report for Outgoing {
    fn report(&self, step: Step) -> io::Result<()> {
        let message = message::encoded(&ToSession::Step(step))?;
        let mut queue = self.0.lock();
        queue.waiting.extend_from_slice(&message);
        let sent = queue.poll_send(&mut Context::from_waker(Waker::noop()));
        // The driver waits for the rest, or reports the error to the session.
        if (sent.is_pending() || matches!(sent, Poll::Ready(Err(_))))
            && let Some(driver) = queue.driver.take()
        {
            driver.wake();
        }
        Ok(())
    }
}

impl Queue {
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.waiting.is_empty() {
            let writer = Pin::new(&mut self.writer);
            match std::task::ready!(writer.poll_write(context, &self.waiting))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.waiting.advance(sent),
            }
        }
        Pin::new(&mut self.writer).poll_flush(context)
    }
}

/// Writes whole messages: each call takes all bytes, so that a step never lands inside of a message.
impl AsyncWrite for Outgoing {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut queue = self.0.lock();
        if queue.waiting.len() > MOST_WAITING {
            std::task::ready!(queue.poll_send(context))?;
        }
        queue.waiting.extend_from_slice(bytes);
        if let Poll::Ready(Err(error)) = queue.poll_send(context) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().poll_send(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut queue = self.0.lock();
        std::task::ready!(queue.poll_send(context))?;
        Pin::new(&mut queue.writer).poll_shutdown(context)
    }
}
