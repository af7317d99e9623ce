//! The daemon gets the client's descriptors and serves it directly. Where the system refuses that, the bytes are relayed.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;

use super::Error;
use crate::config::Environment;
use crate::daemon::detach::DetachReason;
use crate::daemon::election::{self, Way};
use crate::daemon::endpoint::{self, Blocking, Stream};
use crate::daemon::journal::Files;
use crate::daemon::message::{self, FromSession, Hello, Session, ToSession};
use crate::daemon::outgoing::Outgoing;
use crate::daemon::passing;
use crate::daemon::relay::{self, Refused, Relay, WELCOME};
use crate::daemon::session::{Client, Descriptors};

/// The client of this process.
pub(in crate::daemon) enum Carriage {
    /// The daemon gets the client's descriptors.
    Passed(Files),
    /// This process relays the bytes.
    Relayed(Box<Relay>),
}

/// The connection to the daemon that serves the session.
pub(in crate::daemon) enum Connection {
    Passed(Stream),
    Relayed(Box<relay::Connections<Stream>>),
}

/// The client of a session, in the daemon.
pub(in crate::daemon) enum Carried {
    Passed(Descriptors),
    Relayed(Stream),
}

/// The flags of the client's streams, which other processes may share.
pub(in crate::daemon) struct Streams([OFlags; 2]);

/// Checks that a daemon can serve the client.
///
/// # Errors
/// When the flags of the streams cannot be read.
pub(in crate::daemon) fn examine() -> io::Result<Result<Streams, Error>> {
    let checked = check_kind(io::stdin().as_fd(), "stdin");
    if let Err(reason) = checked.and_then(|()| check_kind(io::stdout().as_fd(), "stdout")) {
        return Ok(Err(reason));
    }
    let flags = [fcntl_getfl(io::stdin())?, fcntl_getfl(io::stdout())?];
    Ok(Ok(Streams(flags)))
}

/// Checks that `descriptor` is a pipe or a socket, which a daemon can serve.
fn check_kind(descriptor: BorrowedFd<'_>, name: &'static str) -> Result<(), Error> {
    let stat = fstat(descriptor).map_err(|source| Error::Stream { name, source })?;
    let is_datagram = || socket_type(descriptor).is_ok_and(|kind| kind == SocketType::DGRAM);
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Socket if is_datagram() => Err(Error::Datagrams(name)),
        FileType::Fifo | FileType::Socket => Ok(()),
        _ => Err(Error::StreamKind(name)),
    }
}

impl Streams {
    /// Makes stdin and stdout blocking again if they were.
    pub(in crate::daemon) fn restore(self) {
        let [input, output] = self.0;
        // If this fails, the client is gone.
        if !input.contains(OFlags::NONBLOCK) {
            let _ = fcntl_setfl(io::stdin(), input);
        }
        if !output.contains(OFlags::NONBLOCK) {
            let _ = fcntl_setfl(io::stdout(), output);
        }
    }
}

impl Carriage {
    /// Descriptors are passed, unless the system has no memory that outlives a process.
    pub(in crate::daemon) fn new(environment: &Environment) -> Result<Self, Error> {
        #[cfg(debug_assertions)]
        let is_refused = crate::daemon::fault::refuses_descriptors(environment);
        #[cfg(not(debug_assertions))]
        let (is_refused, _) = (false, environment);
        if is_refused {
            return Self::relayed();
        }
        match Files::new() {
            Ok(files) => Ok(Self::Passed(files)),
            Err(error) => {
                tracing::warn!(%error, "the session's journal cannot be shared; the client's bytes are relayed");
                Self::relayed()
            }
        }
    }

    pub(in crate::daemon) fn relayed() -> Result<Self, Error> {
        let relay = Relay::new().map_err(Error::Relay)?;
        Ok(Self::Relayed(Box::new(relay)))
    }

    /// Connects to a daemon that accepts the session.
    pub(in crate::daemon) async fn connect(
        &mut self,
        way: &Way<'_>,
        session: &Session,
    ) -> Result<Connection, Refused> {
        match self {
            Self::Relayed(relay) => {
                let connections = relay.connect(way, session).await?;
                Ok(Connection::Relayed(Box::new(connections)))
            }
            Self::Passed(files) => {
                let connect = async |location: &_| endpoint::connect_blocking(location);
                let socket = election::reach(way, connect).await?;
                hand_over(socket, session, files)
            }
        }
    }

    /// Waits until the daemon no longer serves the session.
    pub(in crate::daemon) async fn wait(&mut self, connection: &mut Connection) -> DetachReason {
        match (connection, self) {
            (Connection::Relayed(connections), Self::Relayed(relay)) => {
                relay.carry(connections).await
            }
            (Connection::Passed(socket), _) => wait(socket).await,
            // Cannot happen: a connection is made for its carriage.
            (Connection::Relayed(_), Self::Passed(_)) => DetachReason::End { error: None },
        }
    }

    /// Asks the daemon to end the session.
    pub(in crate::daemon) async fn end(
        &mut self,
        connection: &mut Connection,
    ) -> Option<DetachReason> {
        match (connection, self) {
            (Connection::Relayed(connections), Self::Relayed(relay)) => {
                relay.end(connections).await
            }
            (Connection::Passed(socket), _) => {
                let end = message::send_async(socket, &FromSession::End);
                end.await.ok()?;
                Some(wait(socket).await)
            }
            (Connection::Relayed(_), Self::Passed(_)) => None,
        }
    }

    /// Ends a line that a dead daemon left incomplete. If the descriptors were passed, the next process does that.
    pub(in crate::daemon) async fn end_line(&mut self) {
        if let Self::Relayed(relay) = self {
            // If the client does not read any more, the relay notices that next.
            let _ = relay.end_line().await;
        }
    }

    /// The client, for this process alone.
    ///
    /// # Errors
    /// When the client's streams cannot be used.
    pub(in crate::daemon) async fn client(self) -> io::Result<Client> {
        match self {
            Self::Passed(files) => {
                let descriptors = Descriptors {
                    stdin: io::stdin().as_fd().try_clone_to_owned()?,
                    stdout: io::stdout().as_fd().try_clone_to_owned()?,
                    files,
                };
                Client::passed(descriptors).await
            }
            Self::Relayed(relay) => relay.client().await,
        }
    }
}

/// Describes the session to the daemon. Passes the descriptors only after its answer, so that a stuck daemon never gets
/// them.
fn hand_over(socket: Blocking, session: &Session, files: &Files) -> Result<Connection, Refused> {
    endpoint::limit(&socket, Some(WELCOME))?;
    let hello = Hello::Session(Box::new(session.clone()));
    message::send(&socket, &hello)?;
    let ToSession::Welcome { process } = message::receive(&socket)? else {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    };
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let Files { input, marks, kept } = files;
    let passed = [
        stdin.as_fd(),
        stdout.as_fd(),
        input.as_fd(),
        marks.as_fd(),
        kept.as_fd(),
    ];
    match passing::send(&socket, &FromSession::Descriptors, &passed) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::WouldBlock
            ) =>
        {
            tracing::warn!(%error, "the client's descriptors cannot be passed; its bytes are relayed");
            return Err(Refused::Carriage);
        }
        sent => sent?,
    }
    endpoint::limit(&socket, None)?;
    // Logged last: the client does not have to wait for the log file.
    tracing::info!(
        process,
        generation = session.generation,
        "attached to the daemon"
    );
    Ok(Connection::Passed(endpoint::asynchronous(socket)?))
}

/// Waits until the daemon that has the client's descriptors no longer serves the session.
async fn wait(connection: &mut Stream) -> DetachReason {
    loop {
        match message::receive_async(connection).await {
            Ok(message) => {
                if let Some(reason) = DetachReason::of(message) {
                    return reason;
                }
            }
            Err(_) => return DetachReason::TakeOver { has_died: true },
        }
    }
}

impl Carried {
    /// Receives the descriptors of a session. `None` if its process no longer needs a daemon.
    ///
    /// # Errors
    /// When its process sends something else, or nothing within `limit`.
    pub(in crate::daemon) async fn passed(
        socket: &mut Stream,
        limit: Duration,
    ) -> io::Result<Option<Self>> {
        let passed = passing::receive(socket);
        let (said, descriptors) = tokio::time::timeout(limit, passed).await??;
        match said {
            FromSession::Descriptors => {
                Descriptors::of(descriptors).map(|all| Some(Self::Passed(all)))
            }
            FromSession::End => Ok(None),
        }
    }

    /// Receives the connection for the bytes of a session.
    ///
    /// # Errors
    /// When its process opens none within `limit`.
    pub(in crate::daemon) async fn relayed(
        bytes: relay::Bytes<'_, Stream>,
        limit: Duration,
    ) -> io::Result<Self> {
        bytes.receive(limit).await.map(Self::Relayed)
    }

    /// The client, whose journal is reported over `outgoing` if its process keeps it.
    ///
    /// # Errors
    /// When the descriptors cannot be used.
    pub(in crate::daemon) async fn client(
        self,
        session: &Session,
        outgoing: &Outgoing,
    ) -> io::Result<Client> {
        match self {
            Self::Passed(descriptors) => Client::passed(descriptors).await,
            Self::Relayed(bytes) => {
                let progress = session.relayed.clone().unwrap_or_default();
                Ok(relay::client(bytes, &progress, outgoing.clone()))
            }
        }
    }
}
