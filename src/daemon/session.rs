//! One client's session over its own descriptors, with a journal: in the daemon, or in the attaching process where no daemon is left.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::journal::{Files, Input, Journal, Output};
use super::message;
use crate::app::{App, Handle, SessionId, SharedServers};
use crate::config;
use crate::downstream::stdio::Streams;
use crate::events::Events;
use crate::mcp::{ByteBudget, Outbox};
use crate::proxy::Mode;

/// The descriptors of a session, in the order in which they are passed.
#[derive(Debug)]
pub(super) struct Descriptors {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) files: Files,
}

/// What a session is served with, beside its own descriptors.
#[derive(Debug, Clone)]
pub(super) struct SharedResources {
    pub(super) servers: Arc<SharedServers>,
    /// What all clients together may leave unread.
    pub(super) budget: ByteBudget,
}

/// A session that is about to be served.
pub(super) struct Opened {
    app: App,
    streams: Streams,
    journal: Arc<Journal>,
    handover: CancellationToken,
}

/// Why a session cannot be served.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The process of the session says it as it always did.
    #[error("the configuration cannot be used: {0}")]
    Config(#[from] config::Error),
    #[error("the descriptors cannot be used: {0}")]
    Io(#[from] io::Error),
    #[error("the session's name is none")]
    Name,
}

impl Descriptors {
    /// The descriptors that came with a message.
    ///
    /// # Errors
    /// When their number is another.
    pub(super) fn of(passed: Vec<OwnedFd>) -> io::Result<Self> {
        let wrong = || io::Error::other("a session needs five descriptors");
        let mut passed = passed.into_iter();
        let mut next = || passed.next().ok_or_else(wrong);
        let (stdin, stdout) = (next()?, next()?);
        let files = Files {
            input: File::from(next()?),
            marks: File::from(next()?),
            kept: File::from(next()?),
        };
        Ok(Self {
            stdin,
            stdout,
            files,
        })
    }
}

impl SharedResources {
    /// For all sessions of this process.
    #[must_use]
    pub(super) fn new(events: Arc<Events>) -> Self {
        /// What all clients may leave unread of large answers, and of short ones, in bytes.
        const LARGE: usize = 256 * 1024 * 1024;
        const SHORT: usize = 32 * 1024 * 1024;
        Self {
            servers: SharedServers::new(events),
            budget: ByteBudget::new(LARGE, SHORT),
        }
    }
}

impl Opened {
    /// Prepares everything that a session needs, and reads nothing of its client yet but what the journal has.
    ///
    /// # Errors
    /// When its configuration or its descriptors cannot be used.
    pub(super) async fn new(
        session: &message::Session,
        descriptors: Descriptors,
        shared: &SharedResources,
    ) -> Result<Self, Error> {
        let Descriptors {
            stdin,
            stdout,
            files,
        } = descriptors;
        let (paths, env) = (session.paths(), session.env());
        let mode = if session.is_direct {
            Mode::Direct
        } else {
            Mode::MetaTools
        };
        let id = SessionId::parse(&session.id).ok_or(Error::Name)?;
        let app = App::for_session(paths, env, mode, id, &shared.servers)?;
        let journal = Journal::open(&files)?;
        let handover = CancellationToken::new();
        let streams = Streams {
            input: Box::new(Input::open(stdin, &journal)?),
            output: Box::new(Output::open(stdout, &journal).await?),
            outbox: Outbox::within(shared.budget.clone()),
            journal: Some(journal.clone()),
            handover: handover.clone(),
        };
        Ok(Self {
            app,
            streams,
            journal,
            handover,
        })
    }

    /// What others may do with it.
    pub(super) fn handle(&self) -> Handle {
        self.app.handle()
    }

    /// Notes how far each line has come.
    pub(super) fn journal(&self) -> Arc<Journal> {
        self.journal.clone()
    }

    /// Stops reading, and leaves what comes to the process that takes over.
    pub(super) fn handover(&self) -> CancellationToken {
        self.handover.clone()
    }

    /// Serves the session until its client leaves, or `ended`.
    ///
    /// # Errors
    /// When a descriptor fails.
    pub(super) async fn serve(self, ended: CancellationToken) -> io::Result<()> {
        self.app.serve_streams(self.streams, ended).await
    }
}
