//! Writes to the client. A line that a kill could cut is marked as incomplete while it is being written.

use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use super::Files;
use super::marks::Head;
use crate::downstream::pipes;
use crate::mcp::Widen;

/// Writes of up to this size are atomic (`PIPE_BUF`).
const WHOLE: usize = 4096;

/// Writes to a client's pipe or socket.
pub(in crate::daemon) struct Output {
    sink: pipes::Output,
    marks: Head,
    /// Whether the current line is marked as incomplete.
    is_open: bool,
}

impl Output {
    /// Creates an output to `sink`, a pipe or socket. Ends a line that an earlier process left incomplete.
    ///
    /// # Errors
    /// When the sink cannot be polled or written.
    pub(in crate::daemon) async fn open(sink: OwnedFd, files: &Files) -> io::Result<Self> {
        let Some(mut sink) = pipes::output(sink)? else {
            return Err(io::Error::other("stdout is neither a pipe nor a socket"));
        };
        let marks = Head::open(&files.marks)?;
        if marks.is_line_open()? {
            sink.write_all(b"\n").await?;
            marks.set_line_open(false)?;
        }
        Ok(Self {
            sink,
            marks,
            is_open: false,
        })
    }

    /// Marks the line as incomplete before `length` bytes are written, if the write may not be atomic. The bytes end with a
    /// line.
    fn before(&mut self, length: usize) -> io::Result<()> {
        if length > WHOLE && !self.is_open {
            self.marks.set_line_open(true)?;
            self.is_open = true;
        }
        Ok(())
    }

    /// Removes the mark if all of the `length` bytes are written.
    fn after(&mut self, written: usize, length: usize) -> io::Result<()> {
        if written == length && self.is_open {
            self.marks.set_line_open(false)?;
            self.is_open = false;
        }
        Ok(())
    }
}

impl Widen for Output {
    fn widen(&self, is_large: bool) {
        self.sink.widen(is_large);
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum();
        self.before(length)?;
        let written = ready!(Pin::new(&mut self.sink).poll_write_vectored(context, slices))?;
        self.after(written, length)?;
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.sink.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.sink).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.sink).poll_shutdown(context)
    }
}
