//! The sessions that are followed at this replica, and their changes in the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Change, IdentityHash, Notice, Replicas, Unavailable};

/// The number of streams, and of ended sessions, that are known.
const MOST: usize = 100_000;

/// The time after which a stream that is known goes if there are too many.
const LONG: Duration = Duration::from_secs(60 * 60);

/// How long a session is followed at least, from the last time that it was read.
const FOLLOWED: Duration = Duration::from_secs(60);

/// The store's records about sessions.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The sessions that are followed here.
    pub(super) changes: HashMap<String, Followed>,
    ended: HashSet<String>,
    /// The replicas that have the streams of clients, and since when.
    streams: HashMap<String, (String, Instant)>,
}

/// A session that is followed here.
#[derive(Debug, Clone)]
pub(super) struct Followed {
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
    pub(super) fn note_stream(&mut self, session: &str, replica: &str, since: Instant) -> bool {
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

impl Replicas {
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
    pub(super) async fn read(&self, sessions: &[String]) -> Result<usize, Unavailable> {
        let since = Instant::now();
        let rows = self.backing.sessions(sessions.to_vec()).await?;
        let count = rows.len();
        let mut known = self.known.lock();
        let mut rest: HashSet<&str> = sessions.iter().map(String::as_str).collect();
        for (session, body, has_ended) in rows {
            rest.remove(session.as_str());
            match has_ended {
                true => known.end(&session),
                false => known.take(&session, self.opened(&session, &body), since),
            }
        }
        for session in rest {
            known.take(session, Change::default(), since);
        }
        Ok(count)
    }

    /// A change as the store has it, sealed: it has addresses of resources.
    fn opened(&self, session: &str, sealed: &[u8]) -> Change {
        match self.keys.open(&context(session), sealed) {
            Some(body) => Change::parse(&body),
            None => {
                tracing::warn!("a session in the store was sealed with another key");
                Change::default()
            }
        }
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
            let opened = body.as_deref().map(|body| self.opened(session, body));
            let mut change = opened.unwrap_or_default();
            edit(&mut change);
            let sealed = self.keys.seal(&context(session), &change.to_json());
            let written = self
                .backing
                .write_session((owner, session.to_owned()), body, sealed, expires)
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
}

/// The context in which the changes of a session are sealed.
fn context(session: &str) -> Vec<u8> {
    format!("session\0{session}").into_bytes()
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
