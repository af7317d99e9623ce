//! A letter: one sealed message from one replica to another, in the body of a POST. The seal refuses every sender without the key of the
//! store, and hides credentials that are passed on. A letter is for one replica, is valid for a short time, and is accepted once.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::seal::Keys;
use crate::secret::random_bytes;

/// How far the clocks of two replicas may be apart, including the way of a letter.
const TOLERANCE: Duration = Duration::from_secs(60);

/// The content of a letter, without the body of a request.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Content {
    /// A client's HTTP request, to be answered as if it had come to this replica.
    Request {
        /// The method.
        method: String,
        /// The path with its query.
        path: String,
        /// The headers.
        headers: Vec<(String, String)>,
        /// The address of the client's connection.
        address: String,
        /// The client's certificate, in base64.
        certificate: Option<String>,
    },
    /// A client's answer to a question of this replica; the body is the message.
    Answer {
        /// The session.
        session: String,
        /// The number of the question.
        number: u64,
    },
    /// A message for the stream of a client which this replica has; the body is the message.
    Message {
        /// The session.
        session: String,
    },
    /// A question for a connection to the process of a server that runs at this replica; the response has what the server writes.
    Attach(Tunnel),
    /// The next bytes of such a connection, in the body; none at its end.
    Piece {
        /// The connection.
        tunnel: String,
        /// The number of this piece.
        number: u64,
    },
    /// A question for the events after one that a client has got of its stream of this replica.
    Missed {
        /// The session.
        session: String,
        /// The stream.
        stream: u64,
        /// The number of the event.
        number: u64,
    },
}

/// A connection to the process of a server at another replica.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Tunnel {
    /// Its name, chosen at random by the replica that asks for it.
    pub(crate) name: String,
    /// The server.
    pub(crate) server: String,
    /// The hash of its entry.
    pub(crate) entry: String,
    /// The person that the process is for.
    pub(crate) person: String,
    /// The fence of the lease by which this replica has the process.
    pub(crate) fence: u64,
}

#[derive(Serialize, Deserialize)]
struct Envelope {
    to: String,
    /// Milliseconds since 1970.
    at: u64,
    nonce: String,
    content: Content,
}

/// The letters that were taken, so that none is taken twice.
#[derive(Debug, Default)]
pub(super) struct Taken(Mutex<Nonces>);

#[derive(Debug, Default)]
struct Nonces {
    known: HashSet<String>,
    /// In the order of their arrival.
    order: VecDeque<(u64, String)>,
}

/// Seals a letter for the replica `to`.
pub(super) fn seal(keys: &Keys, to: &str, content: Content, body: &[u8]) -> Bytes {
    let envelope = Envelope {
        to: to.to_owned(),
        at: now(),
        nonce: HEXLOWER.encode(&random_bytes::<12>()),
        content,
    };
    let head = serde_json::to_vec(&envelope).expect("texts and numbers can be written");
    let length = u32::try_from(head.len()).expect("headers are short");
    let plain = [&length.to_be_bytes(), &head[..], body].concat();
    keys.seal(b"letter", &plain).into()
}

/// The outer seal of a letter for the replica `to`: it shows before the body is read that the sender has the key.
pub(super) fn outer_seal(keys: &Keys, to: &str) -> String {
    let at = now();
    format!("{at}.{}", keys.tag(&format!("letter\0{to}\0{at}")))
}

/// Whether `seal` is the outer seal of a letter for the replica `own`, and fresh.
pub(super) fn is_outer_seal(keys: &Keys, own: &str, seal: &str) -> bool {
    let Some((at, tag)) = seal.split_once('.') else {
        return false;
    };
    let Ok(at) = at.parse::<u64>() else {
        return false;
    };
    let is_fresh = u128::from(now().abs_diff(at)) <= TOLERANCE.as_millis();
    is_fresh && keys.is_tag(&format!("letter\0{own}\0{at}"), tag)
}

/// The tag of a replica that has taken the letter with this outer seal.
pub(super) fn receipt(keys: &Keys, seal: &str) -> String {
    keys.tag(&format!("taken\0{seal}"))
}

/// Whether `tag` is from a replica that has taken the letter with this outer seal.
pub(super) fn is_receipt(keys: &Keys, seal: &str, tag: &str) -> bool {
    keys.is_tag(&format!("taken\0{seal}"), tag)
}

impl Taken {
    /// Opens a letter for the replica `own`. `None` if it was not sealed by a replica, is for another one, too old, or was taken before.
    pub(super) fn open(&self, keys: &Keys, own: &str, sealed: &[u8]) -> Option<(Content, Bytes)> {
        let plain = Bytes::from(keys.open(b"letter", sealed)?);
        let length = u32::from_be_bytes(plain.get(..4)?.try_into().ok()?);
        let end = 4 + usize::try_from(length).ok()?;
        let envelope: Envelope = serde_json::from_slice(plain.get(4..end)?).ok()?;
        let tolerance = u64::try_from(TOLERANCE.as_millis()).ok()?;
        let now = now();
        let is_fresh = envelope.to == own && now.abs_diff(envelope.at) <= tolerance;
        // A piece has a number, by which one that comes again is known.
        let is_piece = matches!(envelope.content, Content::Piece { .. });
        if !is_fresh || !is_piece && !self.note(envelope.nonce, now, 2 * tolerance) {
            return None;
        }
        Some((envelope.content, plain.slice(end..)))
    }

    /// Whether it is the first letter with this nonce.
    fn note(&self, nonce: String, now: u64, kept: u64) -> bool {
        let mut nonces = self.0.lock();
        while let Some((at, _)) = nonces.order.front()
            && at + kept < now
        {
            let old = nonces.order.pop_front();
            old.iter().for_each(|(_, old)| {
                nonces.known.remove(old);
            });
        }
        let is_first = nonces.known.insert(nonce.clone());
        if is_first {
            nonces.order.push_back((now, nonce));
        }
        is_first
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_taken_once_by_the_replica_that_it_is_for() {
        let keys = Keys::new([&[1; 32]]);
        let content = Content::Answer {
            session: "s".to_owned(),
            number: 7,
        };
        let letter = seal(&keys, "r2", content.clone(), b"body");
        let (of_two, of_three) = (Taken::default(), Taken::default());
        assert!(of_three.open(&keys, "r3", &letter).is_none());
        let opened = of_two.open(&keys, "r2", &letter);
        assert_eq!(opened, Some((content.clone(), Bytes::from_static(b"body"))));
        assert!(of_two.open(&keys, "r2", &letter).is_none());
        let other = Keys::new([&[2; 32]]);
        assert!(
            of_two
                .open(&keys, "r2", &seal(&other, "r2", content, b""))
                .is_none()
        );
        for at in 0..letter.len() {
            let mut changed = letter.to_vec();
            changed[at] ^= 1;
            assert!(of_three.open(&keys, "r2", &changed).is_none());
        }
        for short in [&b""[..], b"a", &letter[..20]] {
            assert!(of_two.open(&keys, "r2", short).is_none());
        }
        let seal = outer_seal(&keys, "r2");
        assert!(is_outer_seal(&keys, "r2", &seal) && !is_outer_seal(&keys, "r3", &seal));
        assert!(!is_outer_seal(&other, "r2", &seal) && !is_outer_seal(&keys, "r2", "1.0"));
        let tag = receipt(&keys, &seal);
        assert!(is_receipt(&keys, &seal, &tag) && !is_receipt(&other, &seal, &tag));
        assert!(!is_receipt(&keys, &outer_seal(&keys, "r3"), &tag));
    }

    #[test]
    fn what_was_taken_is_remembered_for_as_long_as_it_is_fresh() {
        let taken = Taken::default();
        assert!(taken.note("a".to_owned(), 1_000, 100) && !taken.note("a".to_owned(), 1_050, 100));
        assert!(taken.note("b".to_owned(), 1_200, 100));
        assert_eq!(taken.0.lock().known.len(), 1);
    }
}
