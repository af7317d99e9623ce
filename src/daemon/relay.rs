//! The relay of a client's bytes, used if its descriptors cannot be passed to the daemon. A second connection
//! carries them: from the process in frames, of which an empty one is the end of the client's input, and to the
//! process unframed.
//!
//! The process keeps the session's journal in its memory. When the daemon dies, everything that it sent is still in
//! the two connections, and the process delivers it before the next daemon takes over.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use futures_util::{StreamExt as _, future};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::oneshot;
use tokio_util::codec::{FramedRead, LengthDelimitedCodec};
use tokio_util::io::StreamReader;

use super::detach::DetachReason;
use super::election::{self, Way};
use super::endpoint;
use super::journal::{Memory, Progress, Report};
use super::message::{self, FromSession, Hello, ToSession};
use super::session::Client;
use crate::downstream::pipes;

/// Time limit for a daemon to accept the session. A new daemon has to start within it.
pub(super) const WELCOME: Duration = Duration::from_secs(5);

/// The size of a piece that is read or written, in bytes.
const PIECE: usize = 64 * 1024;

/// A connection to the daemon.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

/// The sessions of a daemon that wait for the connection of their bytes, by id.
#[derive(Debug)]
pub(super) struct Expected<S>(Mutex<HashMap<String, oneshot::Sender<S>>>);

/// The connection that a session waits for.
pub(super) struct Bytes<'a, S> {
    expected: &'a Expected<S>,
    session: String,
    received: oneshot::Receiver<S>,
}

impl<S> Default for Expected<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S> Expected<S> {
    pub(super) fn expect(&self, session: &str) -> Bytes<'_, S> {
        let (sender, received) = oneshot::channel();
        self.0.lock().insert(session.to_owned(), sender);
        Bytes {
            expected: self,
            session: session.to_owned(),
            received,
        }
    }

    /// Gives `connection` to the session that waits for it.
    pub(super) fn offer(&self, session: &str, connection: S) {
        if let Some(waiting) = self.0.lock().remove(session) {
            // The session may just have ended.
            let _ = waiting.send(connection);
        }
    }
}

impl<S> Bytes<'_, S> {
    /// Waits for the connection at most for `limit`.
    pub(super) async fn receive(mut self, limit: Duration) -> io::Result<S> {
        let received = tokio::time::timeout(limit, &mut self.received).await?;
        received.map_err(io::Error::other)
    }
}

impl<S> Drop for Bytes<'_, S> {
    fn drop(&mut self) {
        self.expected.0.lock().remove(&self.session);
    }
}

/// The client of a session at the daemon's end of the connection.
pub(super) fn client(
    bytes: impl Stream,
    progress: &Progress,
    report: impl Report + 'static,
) -> Client {
    let (reader, writer) = tokio::io::split(bytes);
    let frames = frames(reader);
    let input = frames
        .take_while(|frame| future::ready(!frame.as_ref().is_ok_and(|frame| frame.is_empty())));
    let (input, output) = (Box::new(StreamReader::new(input)), Box::new(writer));
    Client::relayed(input, output, progress, report)
}

fn frames<R: AsyncRead>(reader: R) -> FramedRead<R, LengthDelimitedCodec> {
    LengthDelimitedCodec::builder()
        .little_endian()
        .max_frame_length(message::LONGEST)
        .new_read(reader)
}

/// The client of this process, whose bytes are relayed.
pub(super) struct Relay {
    input: pipes::Input,
    output: pipes::Output,
    memory: Mutex<Memory>,
    has_input_ended: bool,
    /// Bytes of the daemon that are not written yet.
    pending: BytesMut,
    /// Whether the last line that was written to the client is incomplete.
    is_line_open: bool,
}

/// Both connections of a relayed session.
pub(super) struct Connections<S> {
    messages: FramedRead<ReadHalf<S>, LengthDelimitedCodec>,
    commands: WriteHalf<S>,
    reader: ReadHalf<S>,
    writer: WriteHalf<S>,
}

impl Relay {
    /// Takes the client of this process.
    ///
    /// # Errors
    /// When its pipes cannot be polled.
    pub(super) fn new() -> io::Result<Self> {
        let (input, output) = pipes::open()?;
        Ok(Self {
            input,
            output,
            memory: Mutex::default(),
            has_input_ended: false,
            pending: BytesMut::new(),
            is_line_open: false,
        })
    }

    /// Describes the session to a daemon, and opens the connection for the client's bytes.
    ///
    /// # Errors
    /// When no daemon can be reached, or it is ending or silent.
    pub(super) async fn connect(
        &self,
        way: &Way<'_>,
        session: &message::Session,
    ) -> Result<Connections<endpoint::Stream>, Refused> {
        let connect = async |location: &_| endpoint::connect(location).await;
        let control = election::reach(way, connect).await?;
        let attaching = self.attach(way, session, control);
        let attached = tokio::time::timeout(WELCOME, attaching).await;
        Ok(attached.map_err(io::Error::from)??)
    }

    async fn attach(
        &self,
        way: &Way<'_>,
        session: &message::Session,
        mut control: endpoint::Stream,
    ) -> io::Result<Connections<endpoint::Stream>> {
        let progress = Some(self.memory.lock().resume());
        let session = message::Session {
            relayed: progress,
            ..session.clone()
        };
        let (id, generation) = (session.id.clone(), session.generation);
        message::send_async(&mut control, &Hello::Session(Box::new(session))).await?;
        let ToSession::Welcome { process } = message::receive_async(&mut control).await? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let bytes = endpoint::connect(way.location).await;
        let bytes = bytes.map_err(io::Error::other)?;
        let mut bytes = bytes.ok_or(io::ErrorKind::UnexpectedEof)?;
        message::send_async(&mut bytes, &Hello::Bytes(id)).await?;
        let (reader, commands) = tokio::io::split(control);
        let messages = frames(reader);
        let (reader, writer) = tokio::io::split(bytes);
        // Logged last: the client does not have to wait for the log file.
        tracing::info!(
            process,
            generation,
            is_relayed = true,
            "attached to the daemon"
        );
        Ok(Connections {
            messages,
            commands,
            reader,
            writer,
        })
    }

    /// Relays until the daemon no longer serves the session, and delivers all that it sent.
    pub(super) async fn carry<S: Stream>(
        &mut self,
        connections: &mut Connections<S>,
    ) -> DetachReason {
        let Self {
            input,
            output,
            memory,
            has_input_ended,
            pending,
            is_line_open,
        } = self;
        let up = send(input, has_input_ended, memory, &mut connections.writer);
        let reader = &mut connections.reader;
        let down = async {
            let delivered = deliver(reader, output, pending, is_line_open).await;
            delivered.err().as_ref().map(client_gone)
        };
        let told = follow(&mut connections.messages, memory);
        let ended = async {
            let (told, delivered) = (std::pin::pin!(told), std::pin::pin!(down));
            match future::select(told, delivered).await {
                future::Either::Left((told, down)) => down.await.unwrap_or(told),
                future::Either::Right((Some(gone), _)) => gone,
                future::Either::Right((None, told)) => told.await,
            }
        };
        tokio::select! {
            reason = ended => reason,
            () = up => DetachReason::TakeOver { has_died: true },
        }
    }

    /// Asks the daemon to end the session, and delivers the last answers.
    pub(super) async fn end<S: Stream>(
        &mut self,
        connections: &mut Connections<S>,
    ) -> Option<DetachReason> {
        let end = message::send_async(&mut connections.commands, &FromSession::End);
        end.await.ok()?;
        Some(self.carry(connections).await)
    }

    /// The client without a daemon, from the first unfinished line on. A line that a dead daemon left incomplete is ended.
    ///
    /// # Errors
    /// When the client does not read any more.
    pub(super) async fn client(mut self) -> io::Result<Client> {
        self.output.write_all(&self.pending).await?;
        self.end_line().await?;
        let progress = self.memory.lock().resume();
        let read = self.memory.lock().send(usize::MAX);
        let input = Box::new(AsyncReadExt::chain(io::Cursor::new(read), self.input));
        Ok(Client::relayed(input, self.output, &progress, ()))
    }

    /// Ends a line that a dead daemon left incomplete.
    pub(super) async fn end_line(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_line_open) {
            self.output.write_all(b"\n").await?;
            self.output.flush().await?;
        }
        Ok(())
    }
}

/// Why a daemon did not get the session.
pub(super) enum Refused {
    /// There is none.
    Reach(election::Error),
    /// The daemon is ending or silent.
    Daemon(io::Error),
    /// The system does not let this process pass descriptors.
    #[cfg(target_os = "linux")]
    Carriage,
}

impl From<election::Error> for Refused {
    fn from(error: election::Error) -> Self {
        Self::Reach(error)
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Daemon(error)
    }
}

/// The end of a session whose client does not read any more.
fn client_gone(error: &io::Error) -> DetachReason {
    let error = (error.kind() != io::ErrorKind::BrokenPipe).then(|| error.to_string());
    DetachReason::End { error }
}

/// Sends the client's input to the daemon, first what an earlier daemon did not finish. Never returns: the end of the daemon is noticed
/// elsewhere.
async fn send(
    input: &mut pipes::Input,
    has_ended: &mut bool,
    memory: &Mutex<Memory>,
    writer: &mut (impl AsyncWrite + Unpin),
) {
    let mut buffer = BytesMut::with_capacity(PIECE);
    loop {
        let piece = memory.lock().send(PIECE);
        if !piece.is_empty() || *has_ended {
            if send_frame(writer, &piece).await.is_err() || piece.is_empty() {
                return std::future::pending().await;
            }
            continue;
        }
        match input.read_buf(&mut buffer).await {
            // An input that fails has ended, too.
            Ok(0) | Err(_) => *has_ended = true,
            Ok(_) => memory.lock().add(&buffer),
        }
        buffer.clear();
    }
}

async fn send_frame(writer: &mut (impl AsyncWrite + Unpin), piece: &[u8]) -> io::Result<()> {
    let length = u32::try_from(piece.len()).map_err(io::Error::other)?;
    let mut frame = Vec::with_capacity(4 + piece.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(piece);
    writer.write_all(&frame).await
}

/// Writes what the daemon sends to the client, until the daemon closes the connection.
///
/// # Errors
/// When the client does not read any more.
async fn deliver(
    reader: &mut (impl AsyncRead + Unpin),
    output: &mut pipes::Output,
    pending: &mut BytesMut,
    is_line_open: &mut bool,
) -> io::Result<()> {
    loop {
        while !pending.is_empty() {
            let written = output.write(pending).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            *is_line_open = pending[written - 1] != b'\n';
            pending.advance(written);
        }
        output.flush().await?;
        pending.reserve(PIECE);
        // An error is the end of the daemon.
        if reader.read_buf(pending).await.unwrap_or(0) == 0 {
            return Ok(());
        }
    }
}

/// Follows the messages of the daemon until it no longer serves the session.
async fn follow<R: AsyncRead + Unpin>(
    messages: &mut FramedRead<R, LengthDelimitedCodec>,
    memory: &Mutex<Memory>,
) -> DetachReason {
    while let Some(Ok(message)) = messages.next().await {
        let reason = match serde_json::from_slice(&message) {
            Ok(ToSession::Step(step)) => {
                memory.lock().apply(step);
                continue;
            }
            Ok(message) => DetachReason::of(message),
            Err(_) => break,
        };
        if let Some(reason) = reason {
            return reason;
        }
    }
    DetachReason::TakeOver { has_died: true }
}
