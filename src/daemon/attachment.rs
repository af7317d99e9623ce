//! The process that a client starts. It passes the client's pipes to the daemon and waits; where that is refused, it relays
//! their bytes. If the daemon dies, it finds or starts another one.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::carriage::{self, Carriage, Connection};
use super::detach::DetachReason;
use super::election::{self, Way};
use super::message;
use super::relay::Refused;
use super::session::{self, Opened, SharedResources};
use super::socket_location::SocketLocation;
use super::{Outcome, Request};
use crate::config::Paths;
use crate::events::Events;
use crate::shutdown::{self, apart};

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
    carriage: Carriage,
    /// The times at which daemons died, within the last minute.
    deaths: VecDeque<Instant>,
}

/// Why no daemon can serve the session.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Reach(#[from] election::Error),
    #[error(transparent)]
    Carriage(#[from] carriage::Error),
    #[error("the working directory was deleted, or its name is not valid Unicode")]
    Directory,
    #[error("the daemon does not answer: {0}")]
    Silent(#[source] io::Error),
    #[error("{ATTEMPTS} daemons ended at once: {0}")]
    Ending(#[source] io::Error),
    #[error("{DEATHS} daemons died within a minute")]
    Dying,
    #[error("the daemon was stopped")]
    Stopped,
}

/// Serves the client of this process through the daemon.
///
/// # Errors
/// When the client's pipes cannot be used, or signals cannot be received.
pub(super) async fn attach(paths: &Paths, request: &Request<'_>) -> io::Result<Outcome> {
    let streams = match carriage::examine()? {
        Ok(streams) => streams,
        Err(reason) => return Ok(Outcome::Alone(reason.to_string())),
    };
    let mut attachment = match Attachment::new(paths, request) {
        Ok(attachment) => attachment,
        Err(reason) => return Ok(Outcome::Alone(reason.to_string())),
    };
    let mut connection = match attachment.connect().await {
        Ok(connection) => connection,
        Err(reason) => return Ok(Outcome::Alone(reason.to_string())),
    };
    let signal = shutdown::signal();
    tokio::pin!(signal);
    let ended = loop {
        let parted = tokio::select! {
            parted = attachment.carriage.wait(&mut connection) => parted,
            heard = &mut signal => {
                heard?;
                attachment.leave(&mut connection).await
            }
        };
        let reason = match parted {
            DetachReason::End { error } => break Ok(error),
            DetachReason::Stopped => Error::Stopped.to_string(),
            DetachReason::TakeOver { has_died } => match attachment.take_over(has_died).await {
                Ok(next) => {
                    connection = next;
                    continue;
                }
                Err(reason) => reason.to_string(),
            },
        };
        break Err(reason);
    };
    let outcome = match ended {
        Ok(error) => {
            drop(attachment);
            Outcome::Ended { error }
        }
        Err(reason) => apart(|| attachment.serve_here(&reason)).await?,
    };
    streams.restore();
    Ok(outcome)
}

impl<'a> Attachment<'a> {
    fn new(paths: &'a Paths, request: &'a Request<'a>) -> Result<Self, Error> {
        let session = message::Session::of(paths, request).ok_or(Error::Directory)?;
        let location = SocketLocation::find(paths, &request.env.environment);
        let carriage = Carriage::new(&request.env.environment)?;
        Ok(Self {
            paths,
            request,
            location: location.map_err(election::Error::from)?,
            session,
            carriage,
            deaths: VecDeque::new(),
        })
    }

    /// Connects to a daemon that accepts the session.
    async fn connect(&mut self) -> Result<Connection, Error> {
        let mut attempt = 1;
        loop {
            let environment = &self.request.env.environment;
            let way = Way {
                location: &self.location,
                paths: self.paths,
                environment,
            };
            let connected = self.carriage.connect(&way, &self.session).await;
            match connected {
                Ok(connection) => return Ok(connection),
                Err(Refused::Reach(error)) => return Err(error.into()),
                #[cfg(target_os = "linux")]
                Err(Refused::Carriage) => self.carriage = Carriage::relayed()?,
                // The daemon is ending. The next attempt finds another one or starts it.
                Err(Refused::Daemon(error))
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
                Err(Refused::Daemon(error)) => return Err(Error::Silent(error)),
            }
        }
    }

    /// Ends the session after a signal. Open requests have [`LAST_ANSWERS`] to finish.
    async fn leave(&mut self, connection: &mut Connection) -> DetachReason {
        let end = self.carriage.end(connection);
        match tokio::time::timeout(LAST_ANSWERS, end).await {
            Ok(Some(DetachReason::End { error })) => DetachReason::End { error },
            _ => DetachReason::End { error: None },
        }
    }

    /// Connects to another daemon after one has died (`has_died`) or ended.
    ///
    /// # Errors
    /// When no daemon can be reached, or too many have died.
    async fn take_over(&mut self, has_died: bool) -> Result<Connection, Error> {
        self.session.generation += 1;
        self.carriage.end_line().await;
        if has_died {
            tracing::warn!("the daemon is gone; another takes the session over");
            self.deaths.push_back(Instant::now());
            self.deaths.retain(|death| death.elapsed() < MINUTE);
            if self.deaths.len() >= DEATHS {
                return Err(Error::Dying);
            }
        }
        self.connect().await
    }

    /// Serves the client in this process, from the point at which the last daemon stopped.
    async fn serve_here(mut self, reason: &str) -> io::Result<Outcome> {
        // The session has begun, and a configuration that cannot be used any more does not end it.
        self.session.generation = self.session.generation.max(1);
        tracing::warn!(
            reason,
            "this session is served without a daemon from now on"
        );
        super::alone::remember(&self.paths.state_dir, reason);
        let client = self.carriage.client().await?;
        let shared = SharedResources::new(Events::new(0), &self.paths.cache_dir);
        let app = session::build(&self.session, &shared).map_err(io::Error::other)?;
        let opened = Opened::new(app, client, &shared);
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
