//! Messages to all replicas, by `NOTIFY`. They say that something has changed, and never carry the thing itself.
//!
//! One connection listens. When it was lost and is back, [`Signal::Reread`] says that messages may be missing.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::poll_fn;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::broadcast;
use tokio_postgres::{AsyncMessage, Connection, Socket};

use super::connecting::Drive;
use super::{GIVEN_UP, Inner, ReplicaId, Store, StoreError};

/// The time between two checks of the connection that listens.
const CHECK: Duration = Duration::from_secs(2);

/// The time between two attempts to listen again.
const AGAIN: Duration = Duration::from_millis(250);

/// The longest payload; PostgreSQL refuses 8,000 bytes.
const LONGEST: usize = 7_900;

/// Sends a message. Within a transaction, it is sent when that is committed.
pub(super) const NOTIFY: &str = "select pg_notify('mcpzip', $1)";

/// A message to all replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Another replica, or this one, has sent a message.
    Message {
        /// The subject, such as `record`.
        topic: String,
        /// The replica that has sent it.
        sender: ReplicaId,
        /// An id, never the thing itself.
        payload: String,
    },
    /// Messages may have been missed: everything that follows from them is read again.
    Reread,
}

impl Store {
    /// Receives the messages from now on. A receiver that lags behind must read everything again, as after [`Signal::Reread`].
    pub(crate) fn notifications(&self) -> broadcast::Receiver<Signal> {
        self.0.signals.subscribe()
    }

    /// Sends a message to all replicas, this one included. It is a transaction of its own. `topic` is a word, and both together have less
    /// than 8,000 bytes.
    ///
    /// # Errors
    /// When PostgreSQL does not answer, or the message is too long.
    pub(crate) async fn notify(&self, topic: &str, payload: &str) -> Result<(), StoreError> {
        let message = self.message(topic, payload);
        if message.len() > LONGEST {
            return Err(StoreError::Refused(format!(
                "a message of {} bytes is too long",
                message.len()
            )));
        }
        self.execute(NOTIFY, &[&message]).await?;
        Ok(())
    }

    /// The text of a message, for [`NOTIFY`].
    pub(super) fn message(&self, topic: &str, payload: &str) -> String {
        format!("{topic} {} {payload}", self.id().as_str())
    }

    /// Begins to listen, for as long as the store is open.
    pub(super) fn listen(&self) {
        let inner = Arc::downgrade(&self.0);
        self.spawn(listen(inner));
    }
}

/// Listens again and again until the store ends.
async fn listen(store: Weak<Inner>) {
    loop {
        let Some(opening) = open(&store) else { return };
        match opening.await {
            Ok((client, task)) => {
                if let Some(inner) = store.upgrade() {
                    inner.breaker.succeeded();
                    // It fails without receivers.
                    let _ = inner.signals.send(Signal::Reread);
                }
                let mut task = task;
                loop {
                    if store.strong_count() == 0 {
                        return;
                    }
                    if tokio::time::timeout(CHECK, &mut task).await.is_ok() {
                        break;
                    }
                    let check = tokio::time::timeout(GIVEN_UP, client.simple_query(""));
                    if !matches!(check.await, Ok(Ok(_))) {
                        task.abort();
                        break;
                    }
                }
                tracing::debug!("the store's notifications are interrupted");
            }
            Err(error) => tracing::debug!(%error, "the store's notifications cannot be received"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}

type Opening =
    futures_util::future::BoxFuture<'static, Result<super::connecting::Opened, StoreError>>;

/// A connection that listens. `None` if the store has ended.
fn open(store: &Weak<Inner>) -> Option<Opening> {
    let inner = store.upgrade()?;
    let (connector, config) = (inner.connector.clone(), inner.url.config().clone());
    let drive = Messages(inner.signals.clone());
    Some(Box::pin(async move {
        let (client, task) = connector.open(&config, drive).await?;
        let listening = tokio::time::timeout(GIVEN_UP, client.batch_execute("listen mcpzip"));
        match listening.await {
            Ok(outcome) => outcome?,
            Err(_) => return Err(StoreError::Slow),
        }
        Ok((client, task))
    }))
}

/// Passes notifications on.
struct Messages(broadcast::Sender<Signal>);

impl Drive for Messages {
    async fn drive<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self,
        mut connection: Connection<Socket, T>,
    ) {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notification(notification)) => {
                    if let Some(signal) = parse(notification.payload()) {
                        // It fails without receivers.
                        let _ = self.0.send(signal);
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "the connection that listens has ended");
                    return;
                }
            }
        }
    }
}

/// Reads a message of [`Store::notify`]. `None` if it is none.
fn parse(text: &str) -> Option<Signal> {
    let (topic, rest) = text.split_once(' ')?;
    let (sender, payload) = rest.split_once(' ')?;
    Some(Signal::Message {
        topic: topic.to_owned(),
        sender: ReplicaId::parse(sender)?,
        payload: payload.to_owned(),
    })
}
