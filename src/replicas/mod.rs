//! Several replicas of one gateway. Each of them can answer every request.
//!
//! The sealed id of a session contains the session ([`seal`]), so every replica can serve it without asking the store. The store has the changes
//! since the handshake, and the parts that did not fit into the id ([`change`]). A message for one replica is a [`letter`] over HTTP; a notification
//! of the store only says that something has changed, or that a client has done something that other replicas may have to know.
//!
//! *Never*: knows a server or a client's messages; lets a request wait for the store, except where the request changes something.

mod backing;
mod change;
mod letter;
mod peers;
mod seal;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::StatusCode;
use parking_lot::Mutex;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::shutdown::Tasks;
#[cfg(feature = "postgres")]
pub(crate) use backing::of_store;
pub(crate) use backing::{Backing, Event, Home, Place, Unavailable};
pub(crate) use change::Change;
use letter::Taken;
pub(crate) use letter::{Content, Tunnel};
pub(crate) use peers::Unreachable;
use peers::{Answer, Death, Peers};
use seal::Keys;
pub(crate) use seal::{IdentityHash, SessionFacts, VALID, name_of};

/// The path at which replicas get letters.
pub(crate) const LETTERS: &str = "/.mcpzip/replicas";

/// The header by which a letter is known before its body is read.
pub(crate) const SEAL: &str = "mcpzip-letter";

/// The header of a response that shows that a replica has taken the letter.
pub(crate) const TAKEN: &str = "mcpzip-letter-taken";

/// The longest id of a request that its client can cancel at any replica, in bytes.
pub(crate) const LONGEST_ID: usize = 1024;

/// Notices that wait for the downstream; one that lags behind reads everything again.
const WAITING: usize = 4096;

/// Notifications that wait for the store, and the time after which one that has waited is of no use.
const OUTGOING: usize = 1024;
const LATE: Duration = Duration::from_secs(5);

/// The number of streams, and of ended sessions, that are known.
const MOST: usize = 100_000;

/// The time after which a stream that is known goes if there are too many.
const LONG: Duration = Duration::from_secs(60 * 60);

/// How long a session is followed at least, from the last time that it was read.
const FOLLOWED: Duration = Duration::from_secs(60);

/// The time for which an answer is kept whose client is gone.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// How long a change waits for its notification to come back.
const ECHO: Duration = Duration::from_millis(500);

/// The time after which all sessions here are read again.
const REREAD: Duration = Duration::from_secs(60 * 60);

/// How long a replica is the home of a server, unless it prolongs that.
pub(crate) const LEASE: Duration = Duration::from_secs(20);

/// The owner of the leases by which replicas list servers one after another, and how long one waits for another.
const LISTING: &[u8] = b"listing";
const LISTED_MEANWHILE: Duration = Duration::from_secs(5);

/// The time between two looks whether a replica that was asked has died, and the number of looks that must miss it.
const LOOK: Duration = Duration::from_secs(1);
const MISSED: usize = 4;

/// How often a replica tries to reach itself after its start, and the letters that must arrive.
const REACHES: usize = 40;
const LETTERS_TO_ITSELF: usize = 4;

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
    outgoing: mpsc::Sender<Outgoing>,
    /// The replicas that did not take a letter, each of which the log has once.
    misled: Mutex<HashSet<String>>,
}

/// A notification that waits for the store: its topic, its text, and when it was made.
type Outgoing = (&'static str, String, Instant);

/// What the store has about sessions.
#[derive(Debug, Default)]
struct Known {
    /// The sessions that are followed here.
    changes: HashMap<String, Followed>,
    ended: HashSet<String>,
    /// The replicas that have the streams of clients, and since when.
    streams: HashMap<String, (String, Instant)>,
}

/// A session that is followed here.
#[derive(Debug, Clone)]
struct Followed {
    change: Arc<Change>,
    /// When the read or the change that it is from was begun.
    since: Instant,
}

impl Known {
    fn end(&mut self, session: &str) {
        self.changes.remove(session);
        self.streams.remove(session);
        if self.ended.len() >= MOST {
            // The store has them.
            self.ended.clear();
        }
        self.ended.insert(session.to_owned());
    }

    /// Takes what was read of a session by a read that was begun at `since`, unless it is older than what is known.
    fn take(&mut self, session: &str, change: Change, since: Instant) {
        let known = self.changes.get(session);
        if known.is_none_or(|known| known.since <= since) {
            let change = Arc::new(change);
            self.changes
                .insert(session.to_owned(), Followed { change, since });
        }
    }

    /// Notes who has the stream of a session. Returns whether that is news.
    fn note_stream(&mut self, session: &str, replica: &str, since: Instant) -> bool {
        let known = self.streams.get(session);
        if known.is_some_and(|(_, at)| *at > since) {
            return false;
        }
        if self.streams.len() >= MOST && known.is_none() {
            self.streams.retain(|_, (_, at)| at.elapsed() < LONG);
            if self.streams.len() > MOST / 2 {
                // Their clients are known again with their next streams.
                self.streams.clear();
            }
        }
        let stream = (replica.to_owned(), since);
        self.streams.insert(session.to_owned(), stream);
        true
    }
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
        /// How long ago.
        age: Duration,
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
    /// Any number of sessions may have changed: they are to be read again.
    Reread,
}

/// The turn to list a server, while other replicas do not. Without its end, the lease ends after its time.
#[derive(Debug)]
pub(crate) struct Turn {
    replicas: Arc<Replicas>,
    place: Place,
    fence: u64,
}

impl Turn {
    /// Lets others list the server.
    pub(crate) async fn end(self) {
        let left = self.replicas.leave_home(self.place, self.fence, true);
        if let Err(error) = left.await {
            tracing::debug!(%error, "a turn ends after its time");
        }
    }
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
        let (outgoing, queue) = mpsc::channel(OUTGOING);
        let replicas = Arc::new(Self {
            id: backing.id().to_owned(),
            keys: Keys::new(secrets),
            peers: Peers::new(),
            taken: Taken::default(),
            known: Mutex::default(),
            notices: broadcast::channel(WAITING).0,
            echoes: Mutex::default(),
            outgoing,
            misled: Mutex::default(),
            backing,
        });
        // They end with the run, whose last requests still use them.
        let own = tasks.clone();
        tasks.spawn(send(replicas.backing.clone(), queue, own));
        tasks.spawn(follow(replicas.clone(), tasks.clone()));
        let (itself, own) = (replicas.clone(), tasks.clone());
        tasks.spawn(async move {
            tokio::select! {
                () = itself.reach_itself() => {}
                () = own.stopped() => {}
            }
        });
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
        let followed = known.changes.get(session);
        followed.map_or_else(Arc::default, |followed| followed.change.clone())
    }

    /// The replica that has the stream of a client, if that is another one.
    #[must_use]
    pub(crate) fn stream_of(&self, session: &str) -> Option<String> {
        let (replica, _) = self.known.lock().streams.get(session).cloned()?;
        self.has(&replica).then_some(replica)
    }

    /// Reads what the store has about a session, and follows that from now on. Returns the changes, if it has any.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn read_change(
        &self,
        session: &str,
    ) -> Result<Option<Arc<Change>>, Unavailable> {
        let there = self.read(&[session.to_owned()]).await?;
        Ok((there > 0).then(|| self.change(session)))
    }

    /// Follows a session from now on.
    pub(crate) fn begin(&self, session: &str) {
        let mut known = self.known.lock();
        let unread = || Followed {
            change: Arc::default(),
            since: Instant::now(),
        };
        let session = session.to_owned();
        known.changes.entry(session).or_insert_with(unread);
    }

    /// Has the sessions here read again, because the store did not answer.
    pub(crate) fn doubt(&self) {
        // It fails if nothing follows.
        let _ = self.notices.send(Notice::Reread);
    }

    /// Reads again what the store has about these sessions, which are all that are here.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn read_again(&self, sessions: &[String]) -> Result<(), Unavailable> {
        self.read(sessions).await?;
        let here: HashSet<&String> = sessions.iter().collect();
        let mut known = self.known.lock();
        known.changes.retain(|session, followed| {
            here.contains(session) || followed.since.elapsed() < FOLLOWED
        });
        Ok(())
    }

    /// Reads what the store has about these sessions. Returns the number of those that it has something about.
    async fn read(&self, sessions: &[String]) -> Result<usize, Unavailable> {
        let since = Instant::now();
        let rows = self.backing.sessions(sessions.to_vec()).await?;
        let count = rows.len();
        let mut known = self.known.lock();
        let mut rest: HashSet<&str> = sessions.iter().map(String::as_str).collect();
        for (session, body, has_ended) in rows {
            rest.remove(session.as_str());
            match has_ended {
                true => known.end(&session),
                false => known.take(&session, Change::parse(&body), since),
            }
        }
        for session in rest {
            known.take(session, Change::default(), since);
        }
        Ok(count)
    }

    /// Changes a session in the store, and tells the other replicas.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn change_session(
        &self,
        owner: IdentityHash,
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
                .write_session((owner, session.to_owned()), body, change.to_json(), expires)
                .await?;
            if written {
                let since = Instant::now();
                self.known.lock().take(session, change, since);
                self.tell_and_wait("session", session).await;
                return Ok(());
            }
        }
        Err(Unavailable(
            "the session is being changed at other replicas".to_owned(),
        ))
    }

    /// Ends a session at all replicas.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn end_session(
        &self,
        owner: IdentityHash,
        session: &str,
        expires: u64,
    ) -> Result<(), Unavailable> {
        self.backing
            .end_session(owner, session.to_owned(), expires)
            .await?;
        self.known.lock().end(session);
        self.tell_and_wait("ended", session).await;
        Ok(())
    }

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
        // The queue is full while the store does not answer, and ends with the run.
        if self
            .outgoing
            .try_send((topic, payload, Instant::now()))
            .is_err()
        {
            tracing::debug!(topic, "other replicas are not told");
        }
    }

    /// Keeps the events of a stream whose client is gone: their numbers, and their texts, which are sealed.
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
        let sealed = events.into_iter().map(|(number, text)| {
            let context = answer(session, &stream, number);
            (number, self.keys.seal(context.as_bytes(), &text).into())
        });
        let sealed = sealed.collect();
        self.backing
            .keep_answer(session.to_owned(), stream, sealed, KEPT)
            .await
    }

    /// Takes the lease of a home if it is free, and returns who has it then.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn take_home(&self, place: Place) -> Result<Home, Unavailable> {
        self.backing.take_home(place, LEASE).await
    }

    /// Prolongs leases of this replica, each with its fence; returns those that it still has.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(crate) async fn keep_homes(
        &self,
        leases: Vec<(Place, u64)>,
    ) -> Result<Vec<Place>, Unavailable> {
        self.backing.keep_homes(leases, LEASE).await
    }

    /// Gives a lease back. With `is_over`, the next one is the first again.
    ///
    /// # Errors
    /// When the store does not answer; then the lease ends after its time.
    pub(crate) async fn leave_home(
        &self,
        place: Place,
        fence: u64,
        is_over: bool,
    ) -> Result<(), Unavailable> {
        self.backing.leave_home(place, fence, is_over).await
    }

    /// Waits until no other replica lists the server with this name and entry, but not for long. Others wait until the turn has ended.
    pub(crate) async fn listing_turn(self: &Arc<Self>, name: String) -> Option<Turn> {
        let place = Place {
            owner: LISTING.to_vec(),
            name,
        };
        let until = tokio::time::Instant::now() + LISTED_MEANWHILE;
        loop {
            match self.take_home(place.clone()).await {
                Ok(home) if home.is_new => {
                    return Some(Turn {
                        replicas: self.clone(),
                        place,
                        fence: home.fence,
                    });
                }
                Ok(_) if tokio::time::Instant::now() < until => tokio::time::sleep(PAUSE).await,
                // It only spares the server, so a listing never depends on it.
                Ok(_) => return None,
                Err(error) => {
                    tracing::debug!(%error, "listing without a turn");
                    return None;
                }
            }
        }
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
        let of = stream.clone();
        let kept = self
            .backing
            .kept_answer(session.to_owned(), stream, number)
            .await?;
        let opened = kept.into_iter().map(|(number, sealed)| {
            let context = answer(session, &of, number);
            let text = self.keys.open(context.as_bytes(), &sealed)?;
            Some((number, text.into()))
        });
        // A part of an answer is none.
        Ok(opened.collect::<Option<_>>().unwrap_or_default())
    }

    /// Sends a letter to a replica, and returns its response.
    ///
    /// # Errors
    /// When the replica does not live, dies before it answers, or cannot be reached.
    pub(crate) async fn send(
        &self,
        replica: &str,
        content: Content,
        body: &[u8],
    ) -> Result<http::Response<Answer>, Unreachable> {
        let url = self.backing.peer(replica).ok_or(Unreachable::Gone)?;
        let letter = letter::seal(&self.keys, replica, content, body);
        let seal = letter::outer_seal(&self.keys, replica);
        let mut death = self.death_of(replica);
        let mut response = tokio::select! {
            sent = self.peers.send(&url, seal.clone(), letter) => sent?,
            () = &mut death => return Err(Unreachable::Died),
        };
        let taken = response.headers_mut().remove(TAKEN);
        let is_taken = taken.is_some_and(|tag| {
            tag.to_str()
                .is_ok_and(|tag| letter::is_receipt(&self.keys, &seal, tag))
        });
        if is_taken {
            return Ok(response.map(|body| Answer::new(body, death)));
        }
        if self.misled.lock().insert(replica.to_owned()) {
            tracing::warn!(
                replica,
                url,
                "this replica does not take letters: another process has its address, its clock differs by more than a minute, or it has another `MCPZIP_STORE_KEY`"
            );
        }
        Err(Unreachable::Gone)
    }

    /// Resolves when a replica that lives has died: it has given no sign of life for ten seconds, and does not come back.
    fn death_of(&self, replica: &str) -> Death {
        let (backing, replica) = (self.backing.clone(), replica.to_owned());
        Box::pin(async move {
            // After an outage of the store, all others are dead until their next signs of life.
            let mut missed = 0;
            while missed < MISSED {
                tokio::time::sleep(LOOK).await;
                missed = match backing.peer(&replica) {
                    Some(_) => 0,
                    None => missed + 1,
                };
            }
        })
    }

    /// Writes letters to this replica at the URL by which others reach it, until one arrives. One that never does is in the log and in `mcpzip store check`.
    async fn reach_itself(&self) {
        let mut reason = String::new();
        for _ in 0..REACHES {
            // Several, because a balancer sends some of them here.
            let mut arrived = 0;
            while arrived < LETTERS_TO_ITSELF {
                let (session, stream, number) = (String::new(), 0, 0);
                let content = Content::Missed {
                    session,
                    stream,
                    number,
                };
                match self.send(&self.id, content, b"").await {
                    Ok(_) => arrived += 1,
                    Err(error) => {
                        reason = error.to_string();
                        break;
                    }
                }
            }
            if arrived == LETTERS_TO_ITSELF {
                self.backing.note_reached(true);
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.backing.note_reached(false);
        let url = self.backing.peer(&self.id).unwrap_or_default();
        tracing::error!(
            url,
            reason,
            "this replica does not reach itself at `http.peer`, and others may not either: what they pass on is lost. Set it to the URL of this replica alone, not to that of a balancer"
        );
    }

    /// The tag that shows the sender of a letter with this outer seal that this replica has taken it.
    #[must_use]
    pub(crate) fn receipt(&self, seal: &str) -> String {
        letter::receipt(&self.keys, seal)
    }

    /// Whether a letter with this outer seal is from a replica, for this one.
    #[must_use]
    pub(crate) fn knows(&self, seal: &str) -> bool {
        letter::is_outer_seal(&self.keys, &self.id, seal)
    }

    /// Sends a short letter, again if it did not arrive. Returns whether it found its session. A message that may have arrived is not sent
    /// again, because its client would see it twice; an answer counts once in any case.
    pub(crate) async fn deliver(&self, replica: &str, content: Content, body: Bytes) -> bool {
        let counts_once = matches!(content, Content::Answer { .. });
        for attempt in 1..=ATTEMPTS {
            match self.send(replica, content.clone(), &body).await {
                Ok(response) if response.status() != StatusCode::SERVICE_UNAVAILABLE => {
                    let is_there = response.status().is_success();
                    if counts_once && !is_there {
                        let status = response.status().as_u16();
                        tracing::warn!(
                            replica,
                            status,
                            "an answer of a client is lost: the session that has asked is not there"
                        );
                    }
                    return is_there;
                }
                Ok(_) if attempt == ATTEMPTS => {
                    tracing::warn!(
                        replica,
                        "a letter is dropped: the replica is full, or its client reads too slowly"
                    );
                    return true;
                }
                Err(Unreachable::Gone) => {
                    if counts_once {
                        tracing::warn!(
                            replica,
                            "an answer of a client is lost: the replica that has asked does not take it"
                        );
                    }
                    return false;
                }
                Err(error) if attempt == ATTEMPTS || !(counts_once || error.is_before()) => {
                    tracing::warn!(replica, %error, "a letter did not arrive");
                    return false;
                }
                Ok(_) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        false
    }

    /// Opens a letter for this replica. `None` if it is none, or was opened before.
    #[must_use]
    pub(crate) fn open(&self, letter: &[u8]) -> Option<(Content, Bytes)> {
        self.taken.open(&self.keys, &self.id, letter)
    }

    async fn noticed(&self, event: Event) {
        let notice = match event {
            Event::Reread => Notice::Reread,
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
                    Notice::Changed { session } if topic == "ended" => {
                        self.known.lock().end(session);
                        notice
                    }
                    Notice::Changed { session } => {
                        let is_followed = self.known.lock().changes.contains_key(session);
                        match is_followed {
                            false => return,
                            true => match self.read(std::slice::from_ref(session)).await {
                                Ok(_) => notice,
                                Err(error) => {
                                    tracing::debug!(%error, "a session is read later");
                                    Notice::Reread
                                }
                            },
                        }
                    }
                    Notice::Listening {
                        session,
                        replica,
                        age,
                    } => {
                        let now = Instant::now();
                        let since = now.checked_sub(*age).unwrap_or(now);
                        match self.known.lock().note_stream(session, replica, since) {
                            true => notice,
                            // The message was late: the client has opened another stream since.
                            false => return,
                        }
                    }
                    _ => notice,
                }
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

    /// Its identity.
    #[must_use]
    pub(crate) fn identity(&self) -> IdentityHash {
        self.identity
    }

    /// Its session, if it has one.
    #[must_use]
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The hash of its identity, in hexadecimal.
    #[must_use]
    pub(crate) fn identity_name(&self) -> String {
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
async fn send(backing: Arc<dyn Backing>, mut queue: mpsc::Receiver<Outgoing>, tasks: Tasks) {
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

/// Follows the notifications until the run ends.
async fn follow(replicas: Arc<Replicas>, tasks: Tasks) {
    let following = async {
        let mut events = replicas.backing.events();
        let begun = tokio::time::Instant::now();
        let mut again = tokio::time::interval_at(begun + REREAD, REREAD);
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                // Sessions that have left this replica are forgotten.
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

/// The context of a kept event.
fn answer(session: &str, stream: &str, number: u64) -> String {
    format!("answer\0{session}\0{stream}\0{number}")
}

fn notice(topic: &str, sender: String, payload: String) -> Option<Notice> {
    Some(match topic {
        "session" | "ended" => Notice::Changed { session: payload },
        "moved" => Notice::Moved { session: payload },
        "stream" => {
            let (session, age) = payload.split_once(' ')?;
            Notice::Listening {
                session: session.to_owned(),
                replica: sender,
                age: Duration::from_millis(age.parse().ok()?),
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn level(text: &str) -> Change {
        Change {
            log_level: Some(text.to_owned()),
            ..Change::default()
        }
    }

    #[test]
    fn what_was_read_before_replaces_nothing_that_is_newer() {
        let mut known = Known::default();
        let begun = Instant::now();
        let later = begun + Duration::from_millis(1);
        known.take("s", level("error"), later);
        known.take("s", level("debug"), begun);
        assert_eq!(*known.changes["s"].change, level("error"));
        // An end here is known also if a read that was begun before comes after it.
        known.end("s");
        known.take("s", level("debug"), begun);
        assert!(known.ended.contains("s"));
    }

    #[test]
    fn the_newest_stream_of_a_session_counts_in_any_order() {
        let mut known = Known::default();
        let begun = Instant::now();
        let later = begun + Duration::from_millis(1);
        assert!(known.note_stream("s", "here", later));
        assert!(!known.note_stream("s", "there", begun));
        assert_eq!(known.streams["s"].0, "here");
        for number in 0..=MOST {
            known.note_stream(&number.to_string(), "there", later);
        }
        assert!(known.streams.len() <= MOST);
        known.note_stream("s", "here", later);
        known.end("s");
        assert!(!known.streams.contains_key("s"));
    }
}
