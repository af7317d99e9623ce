//! Serves one client over its own descriptors, with a journal: in the daemon, or in the attaching process if no daemon is
//! left.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

#[cfg(target_os = "linux")]
use super::journal::{Files, Input, Output};
use super::journal::{Journal, Progress, Report};
use super::message;
use crate::app::{App, Handle, SessionId, Shared};
use crate::config;
use crate::downstream::pipes;
use crate::downstream::stdio::Streams;
use crate::events::Events;
use crate::mcp::{ByteBudget, Outbox};

/// The descriptors of a session, in the order in which they are passed.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct Descriptors {
    pub(super) stdin: std::os::fd::OwnedFd,
    pub(super) stdout: std::os::fd::OwnedFd,
    pub(super) files: Files,
}

/// The streams of a session's client, with the journal of its input.
pub(super) struct Client {
    input: pipes::Input,
    output: pipes::Output,
    journal: Arc<Journal>,
}

/// The parts of a process that all its sessions share.
#[derive(Debug, Clone)]
pub(super) struct SharedResources {
    pub(super) app: Shared,
    /// Limits the total size of answers that clients have not read yet.
    pub(super) budget: ByteBudget,
}

/// A session that is ready to be served.
pub(super) struct Opened {
    app: App,
    streams: Streams,
    journal: Arc<Journal>,
    handover: CancellationToken,
}

/// Why a session cannot be served.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The session's own process reports this as it does without a daemon.
    #[error("the configuration cannot be used: {0}")]
    Config(#[from] config::Error),
    #[error("the descriptors cannot be used: {0}")]
    Io(#[from] io::Error),
    #[error("the session's name is not valid")]
    Name,
}

#[cfg(target_os = "linux")]
impl Descriptors {
    /// Takes the descriptors of a message, in the order of the fields.
    ///
    /// # Errors
    /// When there are fewer than five.
    pub(super) fn of(passed: Vec<std::os::fd::OwnedFd>) -> io::Result<Self> {
        let wrong = || io::Error::other("a session needs five descriptors");
        let mut passed = passed.into_iter();
        let mut next = || passed.next().ok_or_else(wrong);
        let (stdin, stdout) = (next()?, next()?);
        let files = Files {
            input: std::fs::File::from(next()?),
            marks: std::fs::File::from(next()?),
            kept: std::fs::File::from(next()?),
        };
        Ok(Self {
            stdin,
            stdout,
            files,
        })
    }
}

impl Client {
    /// The client whose descriptors were passed.
    ///
    /// # Errors
    /// When they cannot be used.
    #[cfg(target_os = "linux")]
    pub(super) async fn passed(descriptors: Descriptors) -> io::Result<Self> {
        let Descriptors {
            stdin,
            stdout,
            files,
        } = descriptors;
        let journal = Journal::open(&files)?;
        Ok(Self {
            input: Box::new(Input::open(stdin, &files, &journal)?),
            output: Box::new(Output::open(stdout, &files).await?),
            journal,
        })
    }

    /// A client whose session continues at `progress`, and whose journal is kept by the receiver of `report`.
    pub(super) fn relayed(
        input: pipes::Input,
        output: pipes::Output,
        progress: &Progress,
        report: impl Report + 'static,
    ) -> Self {
        Self {
            input,
            output,
            journal: progress.journal(report),
        }
    }
}

impl SharedResources {
    /// Creates the shared parts of this process.
    #[must_use]
    pub(super) fn new(events: Arc<Events>, cache_dir: &Path) -> Self {
        /// Limits for unread large answers and for unread short ones, in bytes.
        const LARGE: usize = 256 * 1024 * 1024;
        const SHORT: usize = 32 * 1024 * 1024;
        Self {
            app: Shared::new(events, cache_dir),
            budget: ByteBudget::new(LARGE, SHORT),
        }
    }
}

/// Builds the session's run.
///
/// # Errors
/// When the session's configuration cannot be used.
pub(super) fn build(session: &message::Session, shared: &SharedResources) -> Result<App, Error> {
    let (paths, env) = (session.paths(), session.env());
    config::remember_options(&paths, &env.environment);
    let (surface, profile) = (session.surface(), session.profile.clone());
    let id = SessionId::parse(&session.id).ok_or(Error::Name)?;
    let is_continued = session.generation > 0;
    let app = App::for_session(paths, env, surface, profile, id, is_continued, &shared.app)?;
    Ok(app)
}

impl Opened {
    /// Prepares a session, without reading from the client.
    #[must_use]
    pub(super) fn new(app: App, client: Client, shared: &SharedResources) -> Self {
        let Client {
            input,
            output,
            journal,
        } = client;
        let handover = CancellationToken::new();
        let streams = Streams {
            input,
            output,
            outbox: Outbox::within(shared.budget.clone()),
            journal: Some(journal.clone()),
            handover: handover.clone(),
        };
        Self {
            app,
            streams,
            journal,
            handover,
        }
    }

    /// The handle through which the control interface reaches the session.
    pub(super) fn handle(&self) -> Handle {
        self.app.handle()
    }

    /// The session's journal.
    pub(super) fn journal(&self) -> Arc<Journal> {
        self.journal.clone()
    }

    /// Cancel this token to stop reading from the client. Further input is left to the process that takes over.
    pub(super) fn handover(&self) -> CancellationToken {
        self.handover.clone()
    }

    /// Serves the session until its client leaves or `ended` is cancelled.
    ///
    /// # Errors
    /// When a descriptor fails.
    pub(super) async fn serve(self, ended: CancellationToken) -> io::Result<()> {
        self.app.serve_streams(self.streams, ended).await
    }
}
