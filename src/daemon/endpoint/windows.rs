//! A named pipe that only its user can open. Both ends prove that they can read a key in the user's state directory, because another
//! user could have made a pipe of that name first.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use interprocess::os::windows::named_pipe::tokio::{DuplexPipeStream, PipeListener};
use interprocess::os::windows::named_pipe::{PipeListenerOptions, PipeMode, pipe_mode};
use interprocess::os::windows::security_descriptor::SecurityDescriptor;
use ring::hmac;
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};
use widestring::U16CString;

use crate::daemon::socket_location::SocketLocation;

/// Full access for the owner, and no access for anyone else.
const OWNER_ONLY: &str = "D:P(A;;GA;;;OW)";

/// The error of a pipe whose instances are all in use: the daemon is about to make the next one, or to end.
const BUSY: i32 = 231;
/// The error of a pipe whose other end is closed.
const NOT_CONNECTED: i32 = 233;

/// How long to wait for a daemon that is busy, and for the pipe of one that ends.
const WAIT: Duration = Duration::from_secs(2);
const ENDING: Duration = Duration::from_secs(10);

/// Interval between two attempts.
const TRY: Duration = Duration::from_millis(5);

/// The length of the key, of a challenge and of its answer, in bytes.
const LENGTH: usize = 32;

/// A connection for work that blocks. Its reads and writes have no time limit; a daemon that is stuck ends itself.
pub(in crate::daemon) type Blocking = File;

/// A connection.
#[derive(Debug)]
pub(in crate::daemon) enum Stream {
    /// The daemon's end.
    Daemon(DuplexPipeStream<pipe_mode::Bytes>, [u8; LENGTH]),
    /// The end of another process.
    Client(NamedPipeClient),
}

/// Why the pipe cannot be connected to.
#[derive(Debug, thiserror::Error)]
#[error("the pipe `{}` cannot be connected to: {source}", .path.display())]
pub(crate) struct Error {
    path: PathBuf,
    source: io::Error,
}

/// The proof of both ends that they are of one user.
struct Proof {
    key: [u8; LENGTH],
    challenge: [u8; LENGTH],
}

impl Proof {
    fn new(location: &SocketLocation) -> io::Result<Self> {
        Ok(Self {
            key: key(location)?,
            challenge: random()?,
        })
    }

    /// Checks the daemon's answer. Returns that to its question.
    fn check(&self, answer: &[u8; LENGTH], question: &[u8; LENGTH]) -> io::Result<[u8; LENGTH]> {
        if is_answer(&self.key, &self.challenge, answer) {
            return Ok(answer_to(&self.key, question));
        }
        Err(io::Error::other("it is not of this user's daemon"))
    }
}

/// The listening side.
#[derive(Debug)]
pub(in crate::daemon) struct Listener {
    pipe: PipeListener<pipe_mode::Bytes, pipe_mode::Bytes>,
    key: [u8; LENGTH],
}

/// Only one process can have the first instance of the pipe, so that there is nothing to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::daemon) struct Claim;

impl Listener {
    /// Makes the pipe. A daemon that ends may still have one of the same name for a moment.
    ///
    /// # Errors
    /// When another daemon has the pipe, or the key cannot be made.
    pub(in crate::daemon) async fn claim(location: &SocketLocation) -> io::Result<Self> {
        let key = made_key(location)?;
        let start = Instant::now();
        loop {
            match listen(location) {
                Ok(pipe) => return Ok(Self { pipe, key }),
                Err(error) if start.elapsed() > ENDING => return Err(error),
                Err(_) => tokio::time::sleep(TRY).await,
            }
        }
    }

    /// Accepts a connection. Dropping the future loses none.
    pub(in crate::daemon) async fn accept(&mut self) -> io::Result<Stream> {
        let stream = self.pipe.accept().await?;
        Ok(Stream::Daemon(stream, self.key))
    }
}

fn listen(
    location: &SocketLocation,
) -> io::Result<PipeListener<pipe_mode::Bytes, pipe_mode::Bytes>> {
    let owner_only = U16CString::from_str(OWNER_ONLY).map_err(io::Error::other)?;
    let address = location.address();
    PipeListenerOptions::new()
        .path(address.as_os_str())
        .mode(PipeMode::Bytes)
        .security_descriptor(Some(SecurityDescriptor::deserialize(&owner_only)?))
        .create_tokio_duplex::<pipe_mode::Bytes>()
}

/// Connects to a running daemon. `None` if there is none, or it is ending.
///
/// # Errors
/// When a pipe exists but cannot be used.
pub(in crate::daemon) fn connect_blocking(
    location: &SocketLocation,
) -> Result<Option<Blocking>, Error> {
    let address = location.address();
    let attempt = || {
        let Some(mut pipe) = opened(|| File::options().read(true).write(true).open(&address))?
        else {
            return Ok(None);
        };
        let proof = Proof::new(location)?;
        let (mut answer, mut question) = ([0; LENGTH], [0; LENGTH]);
        pipe.write_all(&proof.challenge)?;
        pipe.read_exact(&mut answer)?;
        pipe.read_exact(&mut question)?;
        let own = proof.check(&answer, &question)?;
        pipe.write_all(&own)?;
        Ok(Some(pipe))
    };
    unless_ending(&address, attempt())
}

/// Connects to a running daemon, like [`connect_blocking`].
///
/// # Errors
/// When a pipe exists but cannot be used.
pub(in crate::daemon) async fn connect(location: &SocketLocation) -> Result<Option<Stream>, Error> {
    let address = location.address();
    let attempt = async {
        let Some(mut pipe) = opened(|| ClientOptions::new().open(&address))? else {
            return Ok(None);
        };
        let proof = Proof::new(location)?;
        let (mut answer, mut question) = ([0; LENGTH], [0; LENGTH]);
        pipe.write_all(&proof.challenge).await?;
        pipe.read_exact(&mut answer).await?;
        pipe.read_exact(&mut question).await?;
        let own = proof.check(&answer, &question)?;
        pipe.write_all(&own).await?;
        Ok(Some(Stream::Client(pipe)))
    };
    let attempted = tokio::time::timeout(2 * WAIT, attempt).await;
    unless_ending(&address, attempted.unwrap_or_else(|late| Err(late.into())))
}

/// The outcome of an attempt. A pipe that ends meanwhile is that of a daemon that ends.
fn unless_ending<T>(address: &Path, attempted: io::Result<Option<T>>) -> Result<Option<T>, Error> {
    match attempted {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::ConnectionReset
            ) || matches!(error.raw_os_error(), Some(BUSY | NOT_CONNECTED)) =>
        {
            Ok(None)
        }
        attempted => attempted.map_err(|source| Error {
            path: address.to_owned(),
            source,
        }),
    }
}

/// Opens the pipe, and waits a moment if it is busy. `None` if there is none.
fn opened<T>(mut open: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    let start = Instant::now();
    loop {
        match open() {
            Ok(pipe) => return Ok(Some(pipe)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(BUSY) && start.elapsed() < WAIT => {
                std::thread::sleep(TRY);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Reads and writes of a pipe have no time limit.
pub(in crate::daemon) fn limit(_: &Blocking, _: Option<Duration>) -> io::Result<()> {
    Ok(())
}

/// Checks that the process at the other end can read the key, and proves that this one can.
///
/// # Errors
/// When it cannot.
pub(in crate::daemon) async fn check_user(stream: &mut Stream) -> io::Result<()> {
    let Stream::Daemon(_, key) = stream else {
        return Ok(());
    };
    let key = *key;
    let mut challenge = [0; LENGTH];
    stream.read_exact(&mut challenge).await?;
    let question = random()?;
    stream.write_all(&answer_to(&key, &challenge)).await?;
    stream.write_all(&question).await?;
    let mut answer = [0; LENGTH];
    stream.read_exact(&mut answer).await?;
    if is_answer(&key, &question, &answer) {
        Ok(())
    } else {
        Err(io::Error::other("another user connected"))
    }
}

/// The process at the other end.
pub(in crate::daemon) fn peer_process(stream: &Stream) -> Option<i32> {
    let process = match stream {
        Stream::Daemon(stream, _) => stream.client_process_id().ok()?,
        Stream::Client(_) => return None,
    };
    i32::try_from(process).ok()
}

fn answer_to(key: &[u8; LENGTH], challenge: &[u8]) -> [u8; LENGTH] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let mut answer = [0; LENGTH];
    answer.copy_from_slice(hmac::sign(&key, challenge).as_ref());
    answer
}

fn is_answer(key: &[u8; LENGTH], challenge: &[u8], answer: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::verify(&key, challenge, answer).is_ok()
}

fn random() -> io::Result<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| io::Error::other("the system has no random numbers"))?;
    Ok(bytes)
}

fn key(location: &SocketLocation) -> io::Result<[u8; LENGTH]> {
    let mut key = [0; LENGTH];
    File::open(location.key())?.read_exact(&mut key)?;
    Ok(key)
}

/// The key, which is made for the first daemon. The caller holds the lock, or starts with the process that does.
fn made_key(location: &SocketLocation) -> io::Result<[u8; LENGTH]> {
    match key(location) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof
            ) =>
        {
            let made = random()?;
            crate::files::replace(&location.key(), &[&made])?;
            Ok(made)
        }
        key => key,
    }
}

impl Claim {
    /// The pipe of this process.
    pub(in crate::daemon) fn at(_: &SocketLocation) -> Option<Self> {
        Some(Self)
    }

    /// The pipe ends with its last handle.
    pub(in crate::daemon) fn release(_: Option<Self>, _: &SocketLocation) {}
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Daemon(stream, _) => Pin::new(stream).poll_read(context, buffer),
            Self::Client(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Daemon(stream, _) => Pin::new(stream).poll_write(context, bytes),
            Self::Client(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    /// Written bytes are in the pipe. The system's call would wait until the other process has read them.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
