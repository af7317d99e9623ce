//! The process that a client starts: it hands its client to the daemon, and waits. Where a daemon dies it finds the next one.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use tokio_util::sync::CancellationToken;

use super::election::{self, Reached};
use super::journal::Files;
use super::message::{self, FromSession, Hello, ToSession};
use super::session::{Descriptors, Opened, SharedResources};
use super::socket_location::SocketLocation;
use super::{Outcome, Request};
use crate::config::Paths;
use crate::events::Events;
use crate::shutdown;

/// How long a daemon may take to say that it takes the session; a new one has to start first.
const WELCOME: Duration = Duration::from_secs(5);

/// How often a daemon may turn out to be ending before one is found that is not.
const ATTEMPTS: usize = 5;

/// So many deaths of daemons within this time are enough.
const DEATHS: usize = 3;
const MINUTE: Duration = Duration::from_secs(60);

/// How long the last answers may take when the system asks this process to end.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// A client whose session daemons serve.
struct Attachment<'a> {
    paths: &'a Paths,
    request: &'a Request<'a>,
    location: SocketLocation,
    session: message::Session,
    files: Files,
    /// The daemons that this process started, which end as its children.
    started: Vec<Child>,
    deaths: VecDeque<Instant>,
}

/// How the time with one daemon ended.
enum DetachReason {
    /// The session is over.
    End { error: Option<String> },
    /// The daemon is gone, or wants another to go on.
    TakeOver { has_died: bool },
    /// No daemon is wanted.
    Alone(String),
}

/// Serves the client of this process through the daemon.
///
/// # Errors
/// When the signals cannot be listened to.
pub(super) async fn attach(paths: &Paths, request: &Request<'_>) -> io::Result<Outcome> {
    let mut attachment = match Attachment::new(paths, request) {
        Ok(attachment) => attachment,
        Err(reason) => return Ok(Outcome::Alone(reason)),
    };
    let flags = [fcntl_getfl(io::stdin())?, fcntl_getfl(io::stdout())?];
    let mut connection = match attachment.connect() {
        Ok(connection) => connection,
        Err(reason) => return Ok(Outcome::Alone(reason)),
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
        break attachment.serve_here(&reason).await?;
    };
    restore(flags);
    Ok(outcome)
}

impl<'a> Attachment<'a> {
    fn new(paths: &'a Paths, request: &'a Request<'a>) -> Result<Self, String> {
        check_kind(io::stdin().as_fd(), "stdin")?;
        check_kind(io::stdout().as_fd(), "stdout")?;
        let session = message::Session::of(paths, request)
            .ok_or("the working directory is gone, or its name is no Unicode")?;
        let failed = |error: io::Error| format!("the session's journal cannot be made: {error}");
        Ok(Self {
            paths,
            request,
            location: SocketLocation::find(paths, &request.env.environment)?,
            session,
            files: Files::new().map_err(failed)?,
            started: Vec::new(),
            deaths: VecDeque::new(),
        })
    }

    /// Attaches to a daemon that takes the session.
    fn connect(&mut self) -> Result<tokio::net::UnixStream, String> {
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let environment = &self.request.env.environment;
            let Reached { socket, started } =
                election::reach(&self.location, self.paths, environment)?;
            self.started.extend(started);
            match self.hand_over(&socket) {
                Ok(()) => {
                    let connected = socket
                        .set_read_timeout(None)
                        .and_then(|()| socket.set_write_timeout(None))
                        .and_then(|()| socket.set_nonblocking(true))
                        .and_then(|()| tokio::net::UnixStream::from_std(socket));
                    return connected.map_err(|error| error.to_string());
                }
                // It is ending; the next attempt finds another, or starts it.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::UnexpectedEof
                            | io::ErrorKind::BrokenPipe
                            | io::ErrorKind::ConnectionReset
                    ) =>
                {
                    last = error.to_string();
                    self.reap();
                }
                Err(error) => return Err(format!("the daemon does not answer: {error}")),
            }
        }
        Err(format!("{ATTEMPTS} daemons ended at once: {last}"))
    }

    /// Says who this is, and passes the descriptors once the daemon has answered: one that does not answer never gets them.
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
        // The client waits for no log file: its session is in progress.
        tracing::info!(
            process,
            generation = self.session.generation,
            "attached to the daemon"
        );
        Ok(())
    }

    /// Waits for the end of the time with one daemon.
    async fn wait(&self, connection: &mut tokio::net::UnixStream) -> DetachReason {
        loop {
            return match message::receive_async(connection).await {
                Ok(ToSession::Welcome { .. }) => continue,
                Ok(ToSession::End { error }) => DetachReason::End { error },
                Ok(ToSession::TakeOver) => DetachReason::TakeOver { has_died: false },
                Ok(ToSession::Alone) => DetachReason::Alone("the daemon was stopped".to_owned()),
                Err(_) => DetachReason::TakeOver { has_died: true },
            };
        }
    }

    /// The system asks this process to end: the last answers have a moment.
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

    /// Finds another daemon after one is gone.
    fn take_over(&mut self, has_died: bool) -> Result<tokio::net::UnixStream, String> {
        self.reap();
        self.session.generation += 1;
        if has_died {
            tracing::warn!("the daemon is gone; another takes the session over");
            self.deaths.push_back(Instant::now());
            self.deaths.retain(|death| death.elapsed() < MINUTE);
            if self.deaths.len() >= DEATHS {
                return Err(format!("{DEATHS} daemons died within a minute"));
            }
        }
        self.connect()
    }

    /// Takes notice of the ends of daemons that this process started.
    fn reap(&mut self) {
        self.started
            .retain_mut(|child| !matches!(child.try_wait(), Ok(Some(_))));
    }

    /// Serves the client in this process, from where the last daemon left it.
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
        let shared = SharedResources::new(Events::new(0));
        let opened = Opened::new(&self.session, descriptors, &shared).await;
        let opened = opened.map_err(io::Error::other)?;
        let ended = CancellationToken::new();
        let serving = opened.serve(ended.clone());
        tokio::pin!(serving);
        let outcome = tokio::select! {
            outcome = &mut serving => outcome,
            heard = shutdown::signal() => {
                ended.cancel();
                // It has a moment to end; the process ends with it or without it.
                let _ = tokio::time::timeout(LAST_ANSWERS, serving).await;
                heard
            }
        };
        shared.servers.finish().await;
        super::alone::forget(&self.paths.state_dir);
        outcome.map(|()| Outcome::Ended { error: None })
    }
}

/// Whether a descriptor is one that can be passed.
fn check_kind(descriptor: BorrowedFd<'_>, name: &str) -> Result<(), String> {
    let stat = fstat(descriptor).map_err(|error| format!("{name} cannot be used: {error}"))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo | FileType::Socket => Ok(()),
        _ => Err(format!("{name} is neither a pipe nor a socket")),
    }
}

/// Gives stdin and stdout back as they were: whoever else has them may not expect that they do not block.
fn restore([input, output]: [OFlags; 2]) {
    // The client is gone where that fails.
    if !input.contains(OFlags::NONBLOCK) {
        let _ = fcntl_setfl(io::stdin(), input);
    }
    if !output.contains(OFlags::NONBLOCK) {
        let _ = fcntl_setfl(io::stdout(), output);
    }
}
