//! The bytes of each session are relayed.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use super::Error;
use crate::config::Environment;
use crate::daemon::detach::DetachReason;
use crate::daemon::election::Way;
use crate::daemon::endpoint::Stream;
use crate::daemon::message::Session;
use crate::daemon::outgoing::Outgoing;
use crate::daemon::relay::{self, Refused, Relay};
use crate::daemon::session::Client;

pub(in crate::daemon) type Connection = relay::Connections<Stream>;

/// The client of this process.
pub(in crate::daemon) struct Carriage(Relay);

/// The client of a session, in the daemon.
pub(in crate::daemon) struct Carried(Stream);

/// The client's streams, which need no restoring.
pub(in crate::daemon) struct Streams;

/// Checks that a daemon can serve the client. A terminal is served alone.
///
/// # Errors
/// Never.
pub(in crate::daemon) fn examine() -> io::Result<Result<Streams, Error>> {
    if io::stdin().is_terminal() {
        return Ok(Err(Error::Terminal("stdin")));
    }
    Ok(Ok(Streams))
}

impl Streams {
    pub(in crate::daemon) fn restore(self) {}
}

impl Carriage {
    pub(in crate::daemon) fn new(_: &Environment) -> Result<Self, Error> {
        Self::relayed()
    }

    pub(in crate::daemon) fn relayed() -> Result<Self, Error> {
        Relay::new().map(Self).map_err(Error::Relay)
    }

    pub(in crate::daemon) async fn connect(
        &mut self,
        way: &Way<'_>,
        session: &Session,
    ) -> Result<Connection, Refused> {
        self.0.connect(way, session).await
    }

    pub(in crate::daemon) async fn wait(&mut self, connection: &mut Connection) -> DetachReason {
        self.0.carry(connection).await
    }

    pub(in crate::daemon) async fn end(
        &mut self,
        connection: &mut Connection,
    ) -> Option<DetachReason> {
        self.0.end(connection).await
    }

    pub(in crate::daemon) async fn end_line(&mut self) {
        // If the client does not read any more, the relay notices that next.
        let _ = self.0.end_line().await;
    }

    pub(in crate::daemon) async fn client(self) -> io::Result<Client> {
        self.0.client().await
    }
}

impl Carried {
    /// Descriptors are not passed.
    ///
    /// # Errors
    /// Always.
    pub(in crate::daemon) async fn passed(_: &mut Stream, _: Duration) -> io::Result<Option<Self>> {
        Err(io::Error::other("this system passes no descriptors"))
    }

    pub(in crate::daemon) async fn relayed(
        bytes: relay::Bytes<'_, Stream>,
        limit: Duration,
    ) -> io::Result<Self> {
        bytes.receive(limit).await.map(Self)
    }

    pub(in crate::daemon) async fn client(
        self,
        session: &Session,
        outgoing: &Outgoing,
    ) -> io::Result<Client> {
        let progress = session.relayed.clone().unwrap_or_default();
        Ok(relay::client(self.0, &progress, outgoing.clone()))
    }
}
