//! The process's stdin and stdout, without a thread in between if the system permits that.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::mcp::Widen;

/// The stream that a client's messages come from.
pub(crate) trait ClientOutput: AsyncRead + Widen + Send + Unpin {}
impl<T: AsyncRead + Widen + Send + Unpin> ClientOutput for T {}

/// The stream that a client reads messages from.
pub(crate) trait ClientInput: AsyncWrite + Widen + Send + Unpin {}
impl<T: AsyncWrite + Widen + Send + Unpin> ClientInput for T {}

/// The type of stdin.
pub(crate) type Input = Box<dyn ClientOutput>;
/// The type of stdout.
pub(crate) type Output = Box<dyn ClientInput>;

/// Opens stdin and stdout. Pipes and sockets, which clients use, are polled directly: tokio's own handles pass every
/// read through a thread, which costs more than the rest of a call. Files and terminals still use those.
///
/// # Errors
/// When a pipe or socket cannot be registered.
pub(crate) fn open() -> io::Result<(Input, Output)> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd as _;
        let input = unix::input(io::stdin().as_fd().try_clone_to_owned()?)?;
        let output = unix::output(io::stdout().as_fd().try_clone_to_owned()?)?;
        Ok((
            input.unwrap_or_else(|| Box::new(tokio::io::stdin())),
            output.unwrap_or_else(|| Box::new(tokio::io::stdout())),
        ))
    }
    #[cfg(not(unix))]
    Ok((Box::new(tokio::io::stdin()), Box::new(tokio::io::stdout())))
}

#[cfg(target_os = "linux")]
pub(crate) use unix::output;

#[cfg(unix)]
mod unix {
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::fs::{FileType, fstat};
    use rustix::net::SocketType;
    use rustix::net::sockopt::socket_type;
    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{Input, Output};

    enum Kind {
        Pipe,
        Socket,
        Other,
    }

    fn kind(descriptor: &OwnedFd) -> io::Result<Kind> {
        Ok(match FileType::from_raw_mode(fstat(descriptor)?.st_mode) {
            FileType::Fifo => Kind::Pipe,
            // It neither has an end, nor keeps the bytes of a message that exceed a read.
            FileType::Socket if socket_type(descriptor)? == SocketType::DGRAM => {
                return Err(io::Error::other(
                    "stdin and stdout cannot be datagram sockets: use pipes or stream sockets",
                ));
            }
            FileType::Socket => Kind::Socket,
            _ => Kind::Other,
        })
    }

    pub(super) fn input(descriptor: OwnedFd) -> io::Result<Option<Input>> {
        Ok(match kind(&descriptor)? {
            Kind::Pipe => Some(Box::new(pipe::Receiver::from_owned_fd(descriptor)?)),
            Kind::Socket => Some(Box::new(socket(descriptor)?)),
            Kind::Other => None,
        })
    }

    /// A writer for a pipe or socket; `None` for any other file.
    ///
    /// # Errors
    /// When it cannot be registered.
    pub(crate) fn output(descriptor: OwnedFd) -> io::Result<Option<Output>> {
        Ok(match kind(&descriptor)? {
            Kind::Pipe => Some(Box::new(pipe::Sender::from_owned_fd(descriptor)?)),
            Kind::Socket => Some(Box::new(socket(descriptor)?)),
            Kind::Other => None,
        })
    }

    fn socket(descriptor: OwnedFd) -> io::Result<UnixStream> {
        let stream = std::os::unix::net::UnixStream::from(descriptor);
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    }
}
