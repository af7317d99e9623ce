//! What a client writes, read through its journal: bytes get there in the step in which they leave the pipe.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, splice};
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use super::Journal;

/// What is taken at once.
const PIECE: usize = 256 * 1024;

/// Reads a client's pipe or socket.
#[derive(Debug)]
pub(in crate::daemon) struct Input {
    source: Source,
    journal: File,
    /// How much of the stream is in the journal.
    captured: u64,
    /// How much of it was read.
    read: u64,
    has_ended: bool,
}

#[derive(Debug)]
enum Source {
    Pipe(pipe::Receiver),
    Socket { socket: UnixStream, relay: Relay },
}

/// A pipe on the way from a socket, which the system does not move into a file. The attaching process holds it, too, so that nothing in
/// it is lost with this process.
#[derive(Debug)]
pub(in crate::daemon) struct Relay {
    pub(in crate::daemon) reader: OwnedFd,
    pub(in crate::daemon) writer: OwnedFd,
}

impl Input {
    /// Goes on with the first line that is not done.
    ///
    /// # Errors
    /// When the source cannot be awaited.
    pub(in crate::daemon) fn open(
        source: OwnedFd,
        relay: Option<Relay>,
        journal: &Journal,
    ) -> io::Result<Self> {
        let start = journal.start;
        let journal = journal.input.try_clone()?;
        let mut captured = journal.metadata()?.len();
        let source = match relay {
            None => Source::Pipe(pipe::Receiver::from_owned_fd(source)?),
            Some(relay) => {
                let socket = std::os::unix::net::UnixStream::from(source);
                socket.set_nonblocking(true)?;
                // What an earlier process left on the way.
                match into_journal(&relay.reader, &journal, &mut captured) {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                    _ => {}
                }
                let socket = UnixStream::from_std(socket)?;
                Source::Socket { socket, relay }
            }
        };
        Ok(Self {
            source,
            read: start,
            captured,
            journal,
            has_ended: false,
        })
    }

    /// Moves what there is to the end of the journal: how many bytes, none at the end of the stream.
    fn capture(&mut self) -> io::Result<usize> {
        let (journal, captured) = (&self.journal, &mut self.captured);
        let mut moved = Err(io::ErrorKind::WouldBlock.into());
        // The source is taken for empty with what it had, so that it need not be asked again; the end of a stream stays noted.
        let noted = |moved: &io::Result<usize>| match moved {
            Ok(0) => Ok(()),
            Ok(moved) if *moved >= PIECE => Ok(()),
            Ok(_) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error.kind().into()),
        };
        // What came of it is in `moved`.
        let _ = match &self.source {
            Source::Pipe(pipe) => pipe.try_io(|| {
                moved = into_journal(pipe, journal, captured);
                noted(&moved)
            }),
            Source::Socket { socket, relay } => socket.try_io(Interest::READABLE, || {
                moved = through(relay, socket, journal, captured);
                noted(&moved)
            }),
        };
        moved
    }
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let there = usize::try_from(this.captured - this.read).unwrap_or(usize::MAX);
            if there > 0 || this.has_ended {
                let length = there.min(buffer.remaining());
                let room = buffer.initialize_unfilled_to(length);
                this.journal.read_exact_at(room, this.read)?;
                buffer.advance(length);
                this.read += length as u64;
                return Poll::Ready(Ok(()));
            }
            ready!(match &this.source {
                Source::Pipe(pipe) => pipe.poll_read_ready(context),
                Source::Socket { socket, .. } => socket.poll_read_ready(context),
            })?;
            match this.capture() {
                Ok(0) => this.has_ended = true,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                _ => {}
            }
        }
    }
}

/// Moves what a socket has through `relay`. It gives as much as that has room for, which says nothing of what is left.
fn through(
    relay: &Relay,
    socket: &UnixStream,
    journal: &File,
    captured: &mut u64,
) -> io::Result<usize> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    let moved = retried(|| splice(socket, None, &relay.writer, None, PIECE, flags))?;
    let mut left = moved;
    while left > 0 {
        left = left.saturating_sub(into_journal(&relay.reader, journal, captured)?);
    }
    Ok(if moved == 0 { 0 } else { PIECE })
}

/// Moves what `pipe` has to the end of the journal, at `captured`, which moves with it.
fn into_journal(pipe: &impl AsFd, journal: &File, captured: &mut u64) -> io::Result<usize> {
    let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
    retried(|| splice(pipe, None, journal, Some(&mut *captured), PIECE, flags))
}

fn retried(mut splice: impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
    loop {
        match splice() {
            Err(Errno::INTR) => {}
            outcome => return Ok(outcome?),
        }
    }
}
