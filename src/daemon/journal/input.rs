//! Reads a client's input through its journal: the system call that removes bytes from the client's pipe or socket
//! writes them into the journal's memory, so that a kill cannot lose them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::{FileType, fstat};
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use vm_memory::{FileOffset, MmapRegion, ReadVolatile as _, VolatileMemory as _, VolatileSlice};

use super::marks::Head;
use super::{Files, Journal};
use crate::mcp::Widen;

/// Size of the mapped part of the input file, in bytes.
const WINDOW: usize = 1024 * 1024;

/// Reads a client's pipe or socket.
#[derive(Debug)]
pub(in crate::daemon) struct Input {
    source: Source,
    head: Head,
    file: Arc<File>,
    window: Window,
    /// The number of bytes of the stream that the journal has.
    captured: u64,
    /// The position up to which this process has read the journal.
    read: u64,
    has_ended: bool,
}

#[derive(Debug)]
enum Source {
    Pipe(pipe::Receiver),
    Socket(UnixStream),
}

/// The mapped part of the input file.
#[derive(Debug)]
struct Window {
    /// The position of its first byte.
    base: u64,
    memory: MmapRegion,
}

impl Window {
    /// Maps the window that contains `position`. The file grows to the window's end, but unwritten pages take no memory.
    fn at(file: &Arc<File>, position: u64) -> io::Result<Self> {
        let base = position / WINDOW as u64 * WINDOW as u64;
        let end = base + WINDOW as u64;
        if file.metadata()?.len() < end {
            file.set_len(end)?;
        }
        let offset = FileOffset::from_arc(file.clone(), base);
        let memory = MmapRegion::from_file(offset, WINDOW).map_err(io::Error::other)?;
        Ok(Self { base, memory })
    }

    /// The memory for at most `length` bytes from `position`. It ends at the end of the window.
    fn slice(&self, position: u64, length: usize) -> io::Result<VolatileSlice<'_>> {
        let at = usize::try_from(position - self.base).map_err(io::Error::other)?;
        let slice = self.memory.get_slice(at, length.min(WINDOW - at));
        slice.map_err(|error| io::Error::other(error.to_string()))
    }
}

impl Input {
    /// Starts at the first line that is not finished. `source` is a pipe or a socket.
    ///
    /// # Errors
    /// When the source cannot be polled, or the journal cannot be read.
    pub(in crate::daemon) fn open(
        source: OwnedFd,
        files: &Files,
        journal: &Journal,
    ) -> io::Result<Self> {
        let file = Arc::new(files.input.try_clone()?);
        let head = Head::open(&files.marks)?;
        let captured = captured(&file, head.captured()?)?;
        head.set_captured(captured)?;
        let source = match FileType::from_raw_mode(fstat(&source)?.st_mode) {
            FileType::Socket => {
                let socket = std::os::unix::net::UnixStream::from(source);
                socket.set_nonblocking(true)?;
                Source::Socket(UnixStream::from_std(socket)?)
            }
            _ => Source::Pipe(pipe::Receiver::from_owned_fd(source)?),
        };
        Ok(Self {
            source,
            head,
            window: Window::at(&file, captured)?,
            file,
            captured,
            read: journal.start,
            has_ended: false,
        })
    }

    /// Moves at most `length` bytes from the source to the end of the journal. Returns their number, which is 0 at the end
    /// of the stream.
    fn capture(&mut self, length: usize) -> io::Result<usize> {
        if self.captured >= self.window.base + WINDOW as u64 {
            self.window = Window::at(&self.file, self.captured)?;
        }
        let slice = self.window.slice(self.captured, length)?;
        let mut taken = Err(io::ErrorKind::WouldBlock.into());
        // A short read has emptied the source. `WouldBlock` makes tokio wait for more instead of trying again. The end of
        // the stream (0 bytes) leaves the source readable.
        let noted = |taken: &io::Result<usize>| match taken {
            Ok(0) => Ok(()),
            Ok(taken) if *taken >= slice.len() => Ok(()),
            Ok(_) => Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => Err(error.kind().into()),
        };
        // The result is in `taken`.
        let _ = match &self.source {
            Source::Pipe(pipe) => pipe.try_io(|| {
                taken = take(pipe.as_fd(), slice);
                noted(&taken)
            }),
            Source::Socket(socket) => socket.try_io(Interest::READABLE, || {
                taken = take(socket.as_fd(), slice);
                noted(&taken)
            }),
        };
        let taken = taken?;
        self.captured += taken as u64;
        self.head.set_captured(self.captured)?;
        Ok(taken)
    }

    /// Copies unread bytes of the journal to `buffer`: from the window, or from the file if they are before the window.
    fn hand_out(&mut self, buffer: &mut ReadBuf<'_>) -> io::Result<()> {
        let there = usize::try_from(self.captured - self.read).unwrap_or(usize::MAX);
        let length = there.min(buffer.remaining());
        let room = buffer.initialize_unfilled_to(length);
        if self.read >= self.window.base {
            self.window.slice(self.read, length)?.copy_to(room);
        } else {
            self.file.read_exact_at(room, self.read)?;
        }
        buffer.advance(length);
        self.read += length as u64;
        Ok(())
    }
}

impl Widen for Input {
    fn widen(&self, is_large: bool) {
        match &self.source {
            Source::Pipe(pipe) => pipe.widen(is_large),
            Source::Socket(socket) => socket.widen(is_large),
        }
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
            if this.captured > this.read {
                return Poll::Ready(this.hand_out(buffer));
            }
            if this.has_ended || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            ready!(match &this.source {
                Source::Pipe(pipe) => pipe.poll_read_ready(context),
                Source::Socket(socket) => socket.poll_read_ready(context),
            })?;
            match this.capture(buffer.remaining()) {
                Ok(0) => this.has_ended = true,
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                _ => {}
            }
        }
    }
}

/// The number of bytes in the input file. A killed process has recorded `noted`, but may have captured more. These bytes
/// end at the last one that is not zero: unwritten memory is zero, and JSON has no zero bytes.
fn captured(file: &File, noted: u64) -> io::Result<u64> {
    let length = file.metadata()?.len().saturating_sub(noted);
    let mut rest = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut rest, noted)?;
    let more = rest.iter().rposition(|byte| *byte != 0);
    Ok(noted + more.map_or(0, |last| last as u64 + 1))
}

/// Reads from `source` into `slice`.
fn take(mut source: BorrowedFd<'_>, mut slice: VolatileSlice<'_>) -> io::Result<usize> {
    loop {
        match source.read_volatile(&mut slice) {
            Ok(read) => return Ok(read),
            Err(vm_memory::VolatileMemoryError::IOError(error)) => {
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            Err(error) => return Err(io::Error::other(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn input(files: &Files, source: &std::io::PipeReader) -> Input {
        let journal = Journal::open(files).unwrap();
        Input::open(source.try_clone().unwrap().into(), files, &journal).unwrap()
    }

    #[tokio::test]
    async fn what_was_taken_and_not_noted_is_read_by_the_next_process() {
        let files = Files::new().unwrap();
        let (source, mut client) = std::io::pipe().unwrap();
        let mut first = input(&files, &source);
        client.write_all(b"first\nsecond\nthi").unwrap();
        let mut bytes = [0; 64];
        assert_eq!(first.read(&mut bytes).await.unwrap(), 16);
        // The state after a kill between the system call and its record.
        first.head.set_captured(6).unwrap();
        drop(first);
        client.write_all(b"rd\n").unwrap();
        drop(client);
        let mut text = String::new();
        let mut next = input(&files, &source);
        next.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "first\nsecond\nthird\n");
    }

    #[tokio::test]
    async fn input_of_several_windows_is_the_same() {
        let files = Files::new().unwrap();
        let (source, mut client) = std::io::pipe().unwrap();
        let sent: Vec<u8> = (0..5 * WINDOW / 2)
            .map(|at| b'a' + u8::try_from(at % 23).unwrap())
            .collect();
        let expected = sent.clone();
        let write = move || client.write_all(&sent).unwrap();
        let writing = crate::shutdown::spawn_thread("client", write).unwrap();
        let mut read = Vec::new();
        input(&files, &source).read_to_end(&mut read).await.unwrap();
        writing.join().unwrap();
        assert!(read == expected);
        // No line is finished, so the next process reads everything again.
        let mut again = Vec::new();
        input(&files, &source)
            .read_to_end(&mut again)
            .await
            .unwrap();
        assert!(again == expected);
    }
}
