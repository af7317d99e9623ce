//! Several replicas of one gateway, of which any one answers any request.
//!
//! A session is in its sealed id ([`seal`]), so every replica can serve it without asking the store. The store has what changed since the
//! handshake, and what did not fit into the id ([`change`]). A message for one replica is a [`letter`] over HTTP; a notification of the store
//! only says that something has changed, or that a client has done something that any replica may have to know.
//!
//! *Never*: knows a server or a client's messages; lets a request wait for the store, except where the request changes something.

mod backing;
mod change;
mod letter;
mod peers;
mod seal;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::shutdown::Tasks;
#[cfg(feature = "postgres")]
pub(crate) use backing::of_store;
pub(crate) use backing::{Backing, Event, Unavailable};
pub(crate) use change::Change;
pub(crate) use letter::Content;
use letter::Taken;
use peers::Peers;
pub(crate) use peers::Unreachable;
use seal::Keys;
pub(crate) use seal::{IdentityHash, SessionFacts, VALID, name_of};

/// The path at which replicas get letters.
pub(crate) const LETTERS: &str = "/.mcpzip/replicas";

/// The header by which a letter is known before its body is read.
pub(crate) const SEAL: &str = "mcpzip-letter";

/// The longest id of a request that its client can cancel at any replica, in bytes.
pub(crate) const LONGEST_ID: usize = 1024;

/// Notices that wait for the downstream; one that lags behind reads everything again.
const WAITING: usize = 4096;

/// The number of streams of other replicas that are known.
const MOST_STREAMS: usize = 100_000;

/// The time for which an answer is kept whose client is gone.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// How long a change waits for its notification to come back.
const ECHO: Duration = Duration::from_millis(500);

/// The time after which everything is read again.
const REREAD: Duration = Duration::from_secs(60 * 60);

/// The attempts to pass an answer on, and the pause between two.
const ATTEMPTS: usize = 4;
const PAUSE: Duration = Duration::from_millis(250);

/// Those who wait, by the topic and the text of a notification.
type Echoes = HashMap<(String, String), Vec<oneshot::Sender<()>>>;

/// The replicas, as one of them sees them.
#[derive(Debug)]
pub(crate) struct Replicas {
    id: String,
    keys: Keys,
    backing: Arc<dyn Backing>,
    peers: Peers,
    taken: Taken,
    known: Mutex<Known>,
    notices: broadcast::Sender<Notice>,
    /// Those who wait until a notification of this replica has come back, by its topic and text.
    echoes: Mutex<Echoes>,
    outgoing: mpsc::UnboundedSender<(&'static str, String)>,
}

/// What the store has about sessions.
#[derive(Debug, Default)]
struct Known {
    changes: HashMap<String, Arc<Change>>,
    ended: HashSet<String>,
    /// The other replicas that have the streams of clients.
    streams: HashMap<String, String>,
}

/// Something that happened at another replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The client of a session has cancelled a request, whose id is JSON.
    Cancelled {
        /// The session.
        session: String,
        /// The request.
        request: String,
    },
    /// The client of a session has opened its stream at another replica.
    Listening {
        /// The session.
        session: String,
        /// The replica.
        replica: String,
    },
    /// The client of a session works in other directories.
    Moved {
        /// The session.
        session: String,
    },
    /// A session was changed or has ended.
    Changed {
        /// The session.
        session: String,
    },
    /// A server's lists have changed.
    Listed {
        /// The server.
        server: String,
        /// A hash of the lists.
        hash: String,
    },
    /// Any number of sessions may have changed.
    Reread,
}

/// The client of a request, as all replicas know it.
#[derive(Debug, Clone)]
pub(crate) struct ClientOfReplica {
    replicas: Arc<Replicas>,
    identity: IdentityHash,
    /// Its session, if it has one.
    session: Option<String>,
}

impl Replicas {
    /// Begins to follow the other replicas. `secrets` are the keys of the store, the current one first.
    pub(crate) fn start<'s>(
        backing: Arc<dyn Backing>,
        secrets: impl IntoIterator<Item = &'s [u8; 32]>,
        tasks: &Tasks,
    ) -> Arc<Self> {
        let (outgoing, queue) = mpsc::unbounded_channel();
        let replicas = Arc::new(Self {
            id: backing.id().to_owned(),
            keys: Keys::new(secrets),
            peers: Peers::new(),
            taken: Taken::default(),
            known: Mutex::default(),
            notices: broadcast::channel(WAITING).0,
            echoes: Mutex::default(),
            outgoing,
            backing,
        });
        // Not tasks of the run, because its last requests end with it.
        let own = tasks.clone();
        tasks.spawn(send(replicas.backing.clone(), queue, own));
        tasks.spawn(follow(replicas.clone(), tasks.clone()));
        replicas
    }

    /// The id of this replica.
    #[must_use]
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Whether another replica lives.
    #[must_use]
    pub(crate) fn has(&self, replica: &str) -> bool {
        replica != self.id && self.backing.peer(replica).is_some()
    }

    /// Leaves the others, after the last request has been answered.
    pub(crate) async fn retire(&self) {
        if let Err(error) = self.backing.retire().await {
            tracing::debug!(%error, "other replicas notice the end of this one later");
        }
    }

    /// The notices from now on.
    pub(crate) fn notices(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }

    /// The id of a session with these facts.
    #[must_use]
    pub(crate) fn session_id(&self, facts: &SessionFacts) -> String {
        self.keys.session_id(facts)
    }

    /// The facts in the id of a session, if it is valid.
    #[must_use]
    pub(crate) fn open_session(&self, id: &str) -> Option<SessionFacts> {
        self.keys.open_session(id, seconds())
    }

    /// The replica that a request waits at which was given the word `state`.
    #[must_use]
    pub(crate) fn open_state(&self, state: &str, identity: &IdentityHash) -> Option<String> {
        self.keys.open_state(state, identity)
    }

    /// Whether a session has ended, as far as that is known here.
    #[must_use]
    pub(crate) fn has_ended(&self, session: &str) -> bool {
        self.known.lock().ended.contains(session)
    }

    /// The changes of a session, as far as they are known here.
    #[must_use]
    pub(crate) fn change(&self, session: &str) -> Arc<Change> {
        let known = self.known.lock();
        known.changes.get(session).cloned().unwrap_or_default()
    }

    /// The replica that has the stream of a client, if that is another one.
    #[must_use]
    pub(crate) fn stream_of(&self, session: &str) -> Option<String> {
        let replica = self.known.lock().streams.get(session).cloned();
        replica.filter(|replica| self.has(replica))
    }

    /// The changes of a session, which the store has.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn read_change(&self, session: &str) -> Result<Arc<Change>, Unavailable> {
        self.reread(session).await?;
        Ok(self.change(session))
    }

    /// Changes a session in the store, and tells the other replicas.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn change_session(
        &self,
        session: &str,
        expires: u64,
        edit: impl Fn(&mut Change) + Send + Sync,
    ) -> Result<(), Unavailable> {
        // Another replica may change it at the same time.
        for _ in 0..8 {
            let before = self.backing.session(session.to_owned()).await?;
            if before.as_ref().is_some_and(|(_, has_ended)| *has_ended) {
                return Err(Unavailable("the session has ended".to_owned()));
            }
            let body = before.as_ref().map(|(body, _)| body.clone());
            let mut change = body.as_deref().map(Change::parse).unwrap_or_default();
            edit(&mut change);
            let written = self
                .backing
                .write_session(session.to_owned(), body, change.to_json(), expires)
                .await?;
            if written {
                self.know(session, change);
                self.tell_and_wait("session", session).await;
                return Ok(());
            }
        }
        Err(Unavailable(
            "the session is being changed at other replicas".to_owned(),
        ))
    }

    fn know(&self, session: &str, change: Change) {
        let mut known = self.known.lock();
        known.changes.insert(session.to_owned(), Arc::new(change));
    }

    /// Ends a session at all replicas.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn end_session(&self, session: &str, expires: u64) -> Result<(), Unavailable> {
        self.backing
            .end_session(session.to_owned(), expires)
            .await?;
        self.know_end(session);
        self.tell_and_wait("ended", session).await;
        Ok(())
    }

    fn know_end(&self, session: &str) {
        let mut known = self.known.lock();
        known.changes.remove(session);
        known.ended.insert(session.to_owned());
    }

    /// Tells the other replicas that a client has cancelled a request, whose id is JSON.
    pub(crate) fn cancelled(&self, session: &str, request: &str) {
        if request.len() <= LONGEST_ID {
            self.tell("cancel", format!("{session} {request}"));
        }
    }

    /// Tells the other replicas that this one has the stream of a client.
    pub(crate) fn listening(&self, session: &str) {
        self.known.lock().streams.remove(session);
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
    async fn tell_and_wait(&self, topic: &'static str, session: &str) {
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
        // The queue ends with the run.
        let _ = self.outgoing.send((topic, payload));
    }

    /// Keeps the events of a stream whose client is gone: their numbers, and their texts.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn keep_answer(
        &self,
        session: &str,
        stream: u64,
        events: Vec<(u64, Bytes)>,
    ) -> Result<(), Unavailable> {
        let stream = format!("{}-{stream}", self.id);
        self.backing
            .keep_answer(session.to_owned(), stream, events, KEPT)
            .await
    }

    /// The events behind `number` of a stream that a replica has kept, with their numbers.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn kept_answer(
        &self,
        session: &str,
        (replica, stream, number): (&str, u64, u64),
    ) -> Result<Vec<(u64, Bytes)>, Unavailable> {
        let stream = format!("{replica}-{stream}");
        self.backing
            .kept_answer(session.to_owned(), stream, number)
            .await
    }

    /// Sends a letter to a replica, and returns its response.
    ///
    /// # Errors
    /// When the replica does not live, or cannot be reached.
    pub(crate) async fn send(
        &self,
        replica: &str,
        content: Content,
        body: &[u8],
    ) -> Result<http::Response<reqwest::Body>, Unreachable> {
        let url = self.backing.peer(replica).ok_or(Unreachable::Gone)?;
        let letter = letter::seal(&self.keys, replica, content, body);
        let seal = letter::outer_seal(&self.keys, replica);
        self.peers.send(&url, seal, letter).await
    }

    /// Whether a letter with this outer seal is from a replica, for this one.
    #[must_use]
    pub(crate) fn knows(&self, seal: &str) -> bool {
        letter::is_outer_seal(&self.keys, &self.id, seal)
    }

    /// Sends a short letter, again if it did not arrive. Returns whether it found its session.
    pub(crate) async fn deliver(&self, replica: &str, content: Content, body: Bytes) -> bool {
        for attempt in 1..=ATTEMPTS {
            match self.send(replica, content.clone(), &body).await {
                Ok(response) => return response.status().is_success(),
                Err(Unreachable::Gone) => return false,
                Err(error) if attempt == ATTEMPTS => {
                    tracing::warn!(replica, %error, "a letter did not arrive");
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        false
    }

    /// Opens a letter for this replica. `None` if it is none, or was opened before.
    #[must_use]
    pub(crate) fn open(&self, letter: &[u8]) -> Option<(Content, Bytes)> {
        self.taken.open(&self.keys, &self.id, letter)
    }

    /// Reads what the store has about one session.
    async fn reread(&self, session: &str) -> Result<(), Unavailable> {
        let row = self.backing.session(session.to_owned()).await?;
        let mut known = self.known.lock();
        match row {
            Some((_, true)) => {
                known.changes.remove(session);
                known.ended.insert(session.to_owned());
            }
            Some((body, false)) => {
                let change = Arc::new(Change::parse(&body));
                known.changes.insert(session.to_owned(), change);
            }
            None => drop(known.changes.remove(session)),
        }
        Ok(())
    }

    /// Reads what the store has about all sessions.
    async fn reread_all(&self) -> Result<(), Unavailable> {
        let rows = self.backing.sessions().await?;
        let mut now = Known {
            streams: std::mem::take(&mut self.known.lock().streams),
            ..Known::default()
        };
        for (session, body, has_ended) in rows {
            match has_ended {
                true => drop(now.ended.insert(session)),
                false => drop(now.changes.insert(session, Arc::new(Change::parse(&body)))),
            }
        }
        *self.known.lock() = now;
        Ok(())
    }

    async fn noticed(&self, event: Event) {
        let notice = match event {
            Event::Reread => match self.reread_all().await {
                Ok(()) => Notice::Reread,
                Err(error) => return tracing::debug!(%error, "sessions cannot be read"),
            },
            Event::Message {
                topic,
                sender,
                payload,
            } if sender == self.id => {
                let waiting = self.echoes.lock().remove(&(topic, payload));
                for echo in waiting.into_iter().flatten() {
                    // It may have waited for too long.
                    let _ = echo.send(());
                }
                return;
            }
            Event::Message {
                topic,
                sender,
                payload,
            } => {
                let Some(notice) = notice(&topic, sender, payload) else {
                    return;
                };
                match &notice {
                    Notice::Changed { session } if topic == "ended" => self.know_end(session),
                    Notice::Changed { session } => {
                        if let Err(error) = self.reread(session).await {
                            return tracing::debug!(%error, "a session cannot be read");
                        }
                    }
                    Notice::Listening { session, replica } => {
                        let streams = &mut self.known.lock().streams;
                        if streams.len() >= MOST_STREAMS {
                            streams.retain(|_, replica| self.has(replica));
                        }
                        if streams.len() < MOST_STREAMS {
                            streams.insert(session.clone(), replica.clone());
                        }
                    }
                    _ => {}
                }
                notice
            }
        };
        // It fails if nothing follows.
        let _ = self.notices.send(notice);
    }
}

impl ClientOfReplica {
    /// The client of a request, or of a session.
    pub(crate) fn new(
        replicas: Arc<Replicas>,
        identity: IdentityHash,
        session: Option<String>,
    ) -> Self {
        Self {
            replicas,
            identity,
            session,
        }
    }

    /// The replicas.
    #[must_use]
    pub(crate) fn replicas(&self) -> &Arc<Replicas> {
        &self.replicas
    }

    /// Its session, if it has one.
    #[must_use]
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The hash of its identity, in hexadecimal.
    #[must_use]
    pub(crate) fn identity(&self) -> String {
        crate::text::hex(&self.identity)
    }

    /// A word for a request that waits for its answers here.
    #[must_use]
    pub(crate) fn state_word(&self) -> String {
        self.replicas.keys.state(&self.replicas.id, &self.identity)
    }

    /// The id of a question to it, if it has a session.
    #[must_use]
    pub(crate) fn question(&self, number: u64) -> Option<String> {
        let (session, replicas) = (self.session.as_deref()?, &self.replicas);
        Some(replicas.keys.question(session, &replicas.id, number))
    }

    /// The replica that has asked it the question `id`, and the question's number there. `None` if none has.
    #[must_use]
    pub(crate) fn open_question<'i>(&self, id: &'i str) -> Option<(&'i str, u64)> {
        let session = self.session.as_deref()?;
        self.replicas.keys.open_question(session, id)
    }
}

/// Sends notifications in their order until the run ends. One that cannot be sent is lost: what it is about can be read, or is over.
async fn send(
    backing: Arc<dyn Backing>,
    mut queue: mpsc::UnboundedReceiver<(&'static str, String)>,
    tasks: Tasks,
) {
    loop {
        let (topic, payload) = tokio::select! {
            next = queue.recv() => match next {
                Some(next) => next,
                None => return,
            },
            () = tasks.stopped() => return,
        };
        if let Err(error) = backing.notify(topic, payload).await {
            tracing::debug!(topic, %error, "other replicas are not told");
        }
    }
}

/// Follows the notifications until the run ends.
async fn follow(replicas: Arc<Replicas>, tasks: Tasks) {
    let following = async {
        let mut events = replicas.backing.events();
        replicas.noticed(Event::Reread).await;
        let begun = tokio::time::Instant::now();
        let mut again = tokio::time::interval_at(begun + REREAD, REREAD);
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                // Sessions whose time is over are forgotten.
                _ = again.tick() => Some(Event::Reread),
            };
            match event {
                Some(event) => replicas.noticed(event).await,
                None => return,
            }
        }
    };
    tokio::select! {
        () = following => {}
        () = tasks.stopped() => {}
    }
}

fn notice(topic: &str, sender: String, payload: String) -> Option<Notice> {
    Some(match topic {
        "session" | "ended" => Notice::Changed { session: payload },
        "moved" => Notice::Moved { session: payload },
        "stream" => Notice::Listening {
            session: payload,
            replica: sender,
        },
        "cancel" => {
            let (session, request) = payload.split_once(' ')?;
            Notice::Cancelled {
                session: session.to_owned(),
                request: request.to_owned(),
            }
        }
        "listed" => {
            let (hash, server) = payload.split_once(' ')?;
            Notice::Listed {
                server: server.to_owned(),
                hash: hash.to_owned(),
            }
        }
        _ => return None,
    })
}

/// The time in seconds since 1970.
pub(crate) fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
