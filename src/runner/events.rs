//! Events of servers, for the application.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::stream::{self, Stream, StreamExt as _};
use tokio_util::sync::CancellationToken;

use crate::events::{Event as Known, Events as Source, Heard, Listener, Numbered};

/// The number of events that are kept for later listeners.
pub(super) const KEPT: usize = 256;

/// An event of a server.
///
/// ```
/// use mcpzip::Event;
///
/// fn line(event: &Event) -> String {
///     match event {
///         Event::Ready { server } => format!("{server} is ready"),
///         Event::Failed { server, reason } => format!("{server}: {reason}"),
///         other => format!("{other:?}"),
///     }
/// }
///
/// let event = Event::Ready { server: "github".to_owned() };
/// assert_eq!(line(&event), "github is ready");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A connection to the server begins.
    Starting {
        /// The server.
        server: String,
    },
    /// The server answered the handshake.
    Ready {
        /// The server.
        server: String,
    },
    /// The server could not be reached, or stopped answering.
    Failed {
        /// The server.
        server: String,
        /// The reason, without secrets.
        reason: String,
    },
    /// The connection to the server ended.
    Stopped {
        /// The server.
        server: String,
    },
    /// The server has other tools now.
    ToolsChanged {
        /// The server.
        server: String,
    },
    /// The server needs a login.
    LoginNeeded {
        /// The server.
        server: String,
    },
    /// The program was slow and has missed this number of events.
    Missed(u64),
}

/// The events of a runner: up to 256 of the past, and then each new one. It is a [`Stream`], and ends with the runner.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), mcpzip::Error> {
/// use mcpzip::{Event, Runner, Server};
///
/// let runner = Runner::builder().server("x", Server::stdio("/no/such/program")).build().await?;
/// let mut events = runner.events();
/// assert!(runner.start("x").await.is_err());
/// while let Some(event) = events.next().await {
///     if let Event::Failed { server, reason } = event {
///         println!("{server}: {reason}");
///         break;
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Events(Pin<Box<dyn Stream<Item = Event> + Send>>);

impl Events {
    /// The next event; `None` after the end of the runner.
    ///
    /// ```
    /// # mcpzip::internals::with_notes(async |runner| {
    /// let mut events = runner.events();
    /// runner.start("notes").await?;
    /// let starting = mcpzip::Event::Starting { server: "notes".to_owned() };
    /// assert_eq!(events.next().await, Some(starting));
    /// # Ok(()) });
    /// ```
    pub async fn next(&mut self) -> Option<Event> {
        self.0.next().await
    }

    pub(super) fn of(source: &Arc<Source>, ended: CancellationToken) -> Self {
        let (past, listener) = source.listen(Some(0));
        let past: VecDeque<_> = past.events.into_iter().collect();
        let stream = stream::unfold((past, listener, ended), next);
        Self(Box::pin(stream.filter_map(std::future::ready)))
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.as_mut().poll_next(context)
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

type State = (VecDeque<Arc<Numbered>>, Listener, CancellationToken);

async fn next((mut past, mut listener, ended): State) -> Option<(Option<Event>, State)> {
    if let Some(event) = past.pop_front() {
        return Some((shown(&event.event), (past, listener, ended)));
    }
    let heard = tokio::select! {
        biased;
        heard = listener.next() => heard,
        () = ended.cancelled() => return None,
    };
    let event = match heard {
        Heard::Event(event) => shown(&event.event),
        Heard::Lagged(count) => Some(Event::Missed(count)),
    };
    Some((event, (past, listener, ended)))
}

fn shown(event: &Known) -> Option<Event> {
    Some(match event.clone() {
        Known::ServerStarting { server } => Event::Starting { server },
        Known::ServerReady { server } => Event::Ready { server },
        Known::ServerFailed { server, reason } => Event::Failed { server, reason },
        Known::ServerStopped { server } => Event::Stopped { server },
        Known::ToolsChanged { server, .. } => Event::ToolsChanged { server },
        Known::LoginWanted { server } => Event::LoginNeeded { server },
        _ => return None,
    })
}
