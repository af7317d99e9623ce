//! The process that a client starts. It passes the client's pipes to the daemon and waits. If the daemon dies, it finds or
//! starts another one.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use rustix::io::Errno;
use rustix::net::SocketType;
use rustix::net::sockopt::socket_type;
use tokio_util::sync::CancellationToken;

use super::election;
use super::journal::Files;
use super::message::{self, FromSession, Hello, ToSession};
use super::session::{self, Descriptors, Opened, SharedResources};
use super::socket_location::SocketLocation;
use super::{Outcome, Request};
use crate::config::Paths;
use crate::events::Events;
use crate::shutdown;

/// Time limit for a daemon to accept the session. A new daemon has to start within it.
const WELCOME: Duration = Duration::from_secs(5);

/// Maximum number of attempts. An attempt fails if the daemon it reaches is ending.
const ATTEMPTS: usize = 5;

/// Number of daemons that may die within a minute before the session continues without one.
const DEATHS: usize = 3;
const MINUTE: Duration = Duration::from_secs(60);

/// Time limit for open requests after a signal to end.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// A client's session, which one daemon after another serves.
struct Attachment<'a> {
    paths: &'a Paths,
    request: &'a Request<'a>,
    location: SocketLocation,
    session: message::Session,
    files: Files,
    /// The times at which daemons died, within the last minute.
    deaths: VecDeque<Instant>,
}

/// The reason why no daemon can serve the session.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Reach(#[from] election::Error),
    /// stdin or stdout cannot be inspected.
    #[error("{name} cannot be used: {source}")]
    Stream { name: &'static str, source: Errno },
    #[error("{0} is neither a pipe nor a socket")]
    StreamKind(&'static str),
    #[error("{0} is a datagram socket")]
    Datagrams(&'static str),
    #[error("the working directory is gone, or its name is no Unicode")]
    Directory,
    #[error("the session's journal cannot be made: {0}")]
    Journal(#[source] io::Error),
    #[error("the daemon does not answer: {0}")]
    Silent(#[source] io::Error),
    /// The connection to the daemon cannot be polled.
    #[error(transparent)]
    Connection(io::Error),
    #[error("{ATTEMPTS} daemons ended at once: {0}")]
    Ending(#[source] io::Error),
    #[error("{DEATHS} daemons died within a minute")]
    Dying,
    #[error("the daemon was stopped")]
    Stopped,
}

/// The reason why a daemon stopped serving the session.
enum DetachReason {
    /// The session has ended.
    End { error: Option<String> },
    /// Another daemon has to take over: this one died (`has_died`) or asked for it.
    TakeOver { has_died: bool },
    /// The session continues without a daemon, for this reason.
    Alone(Error),
}

/// Serves the client of this process through the daemon.
///
/// # Errors
/// When the client's pipes cannot be used, or signals cannot be received.
pub(super) async fn attach(paths: &Paths, request: &Request<'_>) -> io::Result<Outcome> {
    let mut attachment = match Attachment::new(paths, request) {
        Ok(attachment) => attachment,
        Err(reason) => return Ok(Outcome::Alone(reason.to_string())),
    };
    let flags = [fcntl_getfl(io::stdin())?, fcntl_getfl(io::stdout())?];
    let mut connection = match attachment.connect() {
        Ok(connection) => connection,
        Err(reason) => return Ok(Outcome::Alone(reason.to_string())),
    };
    let signal = shutdown::signal();
    tokio::pin!(signal);
    let outcome = loop {
        let parted = tokio::select! {
            parted = attachment.wait(&mut connection) => parted,
            heard = &mut signal => {
                heard?;
                attachment.leave(&mut connection).await
            }
        };
        let reason = match parted {
            DetachReason::End { error } => break Outcome::Ended { error },
            DetachReason::Alone(reason) => reason,
            DetachReason::TakeOver { has_died } => match attachment.take_over(has_died) {
                Ok(next) => {
                    connection = next;
                    continue;
                }
                Err(reason) => reason,
            },
        };
        break Box::pin(attachment.serve_here(&reason.to_string())).await?;
    };
    restore(flags);
    Ok(outcome)
}

impl<'a> Attachment<'a> {
    fn new(paths: &'a Paths, request: &'a Request<'a>) -> Result<Self, Error> {
        check_kind(io::stdin().as_fd(), "stdin")?;
        check_kind(io::stdout().as_fd(), "stdout")?;
        let session = message::Session::of(paths, request).ok_or(Error::Directory)?;
        let location = SocketLocation::find(paths, &request.env.environment);
        Ok(Self {
            paths,
            request,
            location: location.map_err(election::Error::from)?,
            session,
            files: Files::new().map_err(Error::Journal)?,
            deaths: VecDeque::new(),
        })
    }

    /// Connects to a daemon that accepts the session.
    fn connect(&mut self) -> Result<tokio::net::UnixStream, Error> {
        let mut attempt = 1;
        loop {
            let environment = &self.request.env.environment;
            let socket = election::reach(&self.location, self.paths, environment)?;
            match self.hand_over(&socket) {
                Ok(()) => {
                    let connected = socket
                        .set_read_timeout(None)
                        .and_then(|()| socket.set_write_timeout(None))
                        .and_then(|()| socket.set_nonblocking(true))
                        .and_then(|()| tokio::net::UnixStream::from_std(socket));
                    return connected.map_err(Error::Connection);
                }
                // The daemon is ending. The next attempt finds another one or starts it.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::UnexpectedEof
                            | io::ErrorKind::BrokenPipe
                            | io::ErrorKind::ConnectionReset
                    ) =>
                {
                    if attempt == ATTEMPTS {
                        return Err(Error::Ending(error));
                    }
                    attempt += 1;
                }
                Err(error) => return Err(Error::Silent(error)),
            }
        }
    }

    /// Describes the session to the daemon. Passes the descriptors only after its answer, so that a stuck daemon never gets
    /// them.
    fn hand_over(&self, socket: &std::os::unix::net::UnixStream) -> io::Result<()> {
        socket.set_read_timeout(Some(WELCOME))?;
        socket.set_write_timeout(Some(WELCOME))?;
        message::send(socket, &Hello::Session(Box::new(self.session.clone())), &[])?;
        let ToSession::Welcome { process } = message::receive(socket)? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let (stdin, stdout) = (io::stdin(), io::stdout());
        let Files { input, marks, kept } = &self.files;
        let passed = [
            stdin.as_fd(),
            stdout.as_fd(),
            input.as_fd(),
            marks.as_fd(),
            kept.as_fd(),
        ];
        message::send(socket, &FromSession::Descriptors, &passed)?;
        // Logged last: the client does not have to wait for the log file.
        tracing::info!(
            process,
            generation = self.session.generation,
            "attached to the daemon"
        );
        Ok(())
    }

    /// Waits until the daemon no longer serves the session.
    async fn wait(&self, connection: &mut tokio::net::UnixStream) -> DetachReason {
        loop {
            return match message::receive_async(connection).await {
                Ok(ToSession::Welcome { .. }) => continue,
                Ok(ToSession::Log(line)) => {
                    // Without a reader of stderr, the line is in the log files only.
                    let _ = io::stderr().lock().write_all(line.as_bytes());
                    continue;
                }
                Ok(ToSession::End { error }) => DetachReason::End { error },
                Ok(ToSession::TakeOver) => DetachReason::TakeOver { has_died: false },
                Ok(ToSession::Alone) => DetachReason::Alone(Error::Stopped),
                Err(_) => DetachReason::TakeOver { has_died: true },
            };
        }
    }

    /// Ends the session after a signal. Open requests have [`LAST_ANSWERS`] to finish.
    async fn leave(&self, connection: &mut tokio::net::UnixStream) -> DetachReason {
        let end = async {
            message::send_async(connection, &FromSession::End)
                .await
                .ok()?;
            Some(self.wait(connection).await)
        };
        match tokio::time::timeout(LAST_ANSWERS, end).await {
            Ok(Some(DetachReason::End { error })) => DetachReason::End { error },
            _ => DetachReason::End { error: None },
        }
    }

    /// Connects to another daemon after one has died (`has_died`) or ended.
    ///
    /// # Errors
    /// When no daemon can be reached, or too many have died.
    fn take_over(&mut self, has_died: bool) -> Result<tokio::net::UnixStream, Error> {
        self.session.generation += 1;
        if has_died {
            tracing::warn!("the daemon is gone; another takes the session over");
            self.deaths.push_back(Instant::now());
            self.deaths.retain(|death| death.elapsed() < MINUTE);
            if self.deaths.len() >= DEATHS {
                return Err(Error::Dying);
            }
        }
        self.connect()
    }

    /// Serves the client in this process, from the point at which the last daemon stopped.
    async fn serve_here(&self, reason: &str) -> io::Result<Outcome> {
        tracing::warn!(
            reason,
            "this session is served without a daemon from now on"
        );
        super::alone::remember(&self.paths.state_dir, reason);
        let descriptors = Descriptors {
            stdin: io::stdin().as_fd().try_clone_to_owned()?,
            stdout: io::stdout().as_fd().try_clone_to_owned()?,
            files: self.files.try_clone()?,
        };
        let shared = SharedResources::new(Events::new(0), &self.paths.cache_dir);
        let app = session::build(&self.session, &shared).map_err(io::Error::other)?;
        let opened = Opened::new(app, descriptors, &shared).await;
        let opened = opened.map_err(io::Error::other)?;
        let (ended, proxy) = (CancellationToken::new(), opened.handle().proxy);
        let serving = opened.serve(ended.clone());
        tokio::pin!(serving);
        let outcome = tokio::select! {
            outcome = &mut serving => outcome,
            heard = shutdown::signal() => {
                ended.cancel();
                // After the limit the process ends anyway.
                let _ = tokio::time::timeout(LAST_ANSWERS, serving).await;
                heard
            }
        };
        proxy.forget_session();
        drop(proxy);
        shared.app.servers.finish().await;
        super::alone::forget(&self.paths.state_dir);
        outcome.map(|()| Outcome::Ended { error: None })
    }
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

/// Makes stdin and stdout blocking again if they were, because other processes may share them.
fn restore([input, output]: [OFlags; 2]) {
    // If this fails, the client is gone.
    if !input.contains(OFlags::NONBLOCK) {
        let _ = fcntl_setfl(io::stdin(), input);
    }
    if !output.contains(OFlags::NONBLOCK) {
        let _ = fcntl_setfl(io::stdout(), output);
    }
}
