//! Notifications to the other replicas, which a task sends in their order.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::{Backing, LONGEST_ID, Replicas};
use crate::shutdown::Tasks;

/// Notifications that wait for the store, and the time after which one that has waited is of no use.
pub(super) const OUTGOING: usize = 1024;
const LATE: Duration = Duration::from_secs(5);

/// How long a change waits for its notification to come back.
const ECHO: Duration = Duration::from_millis(500);

/// Those who wait, by the topic and the text of a notification.
pub(super) type Echoes = HashMap<(String, String), Vec<oneshot::Sender<()>>>;

/// A notification that waits for the store: its topic, its text, and when it was made.
pub(super) type Outgoing = (&'static str, String, Instant);

impl Replicas {
    /// Tells the other replicas that a client has cancelled a request, whose id is JSON.
    pub(crate) fn cancelled(&self, session: &str, request: &str) {
        if request.len() <= LONGEST_ID {
            self.tell("cancel", format!("{session} {request}"));
        }
    }

    /// Tells the other replicas that this one has the stream of a client.
    pub(crate) fn listening(&self, session: &str) {
        let since = Instant::now();
        self.known.lock().note_stream(session, &self.id, since);
        self.tell("stream", session.to_owned());
    }

    /// Tells the other replicas that a client works in other directories.
    pub(crate) fn moved(&self, session: &str) {
        self.tell("moved", session.to_owned());
    }

    /// Tells the other replicas that a server's lists have changed.
    pub(crate) fn listed(&self, server: &str, hash: &str) {
        self.tell("listed", format!("{hash} {server}"));
    }

    /// Tells the other replicas, and waits until the notification has come back: then it has come to the others, too, unless they are slow.
    pub(super) async fn tell_and_wait(&self, topic: &'static str, session: &str) {
        let key = (topic.to_owned(), session.to_owned());
        let heard = self.await_echo(key.clone());
        self.tell(topic, session.to_owned());
        // It may be lost with the connection.
        let _ = tokio::time::timeout(ECHO, heard).await;
        self.echoes.lock().remove(&key);
    }

    /// Resolves when the notification with this topic and text has come back.
    fn await_echo(&self, key: (String, String)) -> oneshot::Receiver<()> {
        let (echo, heard) = oneshot::channel();
        self.echoes.lock().entry(key).or_default().push(echo);
        heard
    }

    fn tell(&self, topic: &'static str, payload: String) {
        // The queue is full while the store does not answer, and ends with the run.
        if self
            .outgoing
            .try_send((topic, payload, Instant::now()))
            .is_err()
        {
            tracing::debug!(topic, "other replicas are not told");
        }
    }
}

/// Sends notifications in their order until the run ends. One that cannot be sent is lost: what it is about can be read, or is over.
pub(super) async fn send(
    backing: Arc<dyn Backing>,
    mut queue: mpsc::Receiver<Outgoing>,
    tasks: Tasks,
) {
    loop {
        let (topic, mut payload, made) = tokio::select! {
            next = queue.recv() => match next {
                Some(next) => next,
                None => return,
            },
            () = tasks.stopped() => return,
        };
        let age = made.elapsed();
        if age > LATE && topic == "cancel" {
            tracing::debug!("the store is slow, so other replicas do not cancel a request");
            continue;
        }
        if topic == "stream" {
            payload = format!("{payload} {}", age.as_millis());
        }
        if let Err(error) = backing.notify(topic, payload).await {
            tracing::debug!(topic, %error, "other replicas are not told");
        }
    }
}
