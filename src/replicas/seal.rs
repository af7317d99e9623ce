//! Sealed ids: of sessions, of questions to clients, and of requests that wait for answers. Each replica opens the ids that another one gave.
//!
//! A session's id has in it what a replica needs to serve the session: base64url of `version, key, nonce (12) | random (16), opened (4),
//! identity (16), revision, capabilities, surface, software (at most 24) | tag (16)`, so at most 128 characters.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::hmac;
use sha2::{Digest as _, Sha256};

use crate::mcp::Revision;
use crate::secret::{is_same_secret, random_bytes};

/// The version of the form.
const VERSION: u8 = 1;

/// The longest name and version of a client that an id has in it, in bytes.
const LONGEST_SOFTWARE: usize = 24;

/// The longest id of a session.
const LONGEST: usize = 128;

/// The time for which an id is valid, in seconds.
pub(crate) const VALID: u64 = 7 * 24 * 60 * 60;

/// How far the clock of the replica that opened a session may be ahead, in seconds.
const AHEAD: u64 = 5 * 60;

/// The length of a tag of a question, in bytes.
const TAG: usize = 8;

/// A hash of the identity that an id belongs to.
pub(crate) type IdentityHash = [u8; 16];

/// The keys of all replicas: new ids are sealed with the first, and every one opens.
#[derive(Debug)]
pub(crate) struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: u8,
    cipher: LessSafeKey,
    tags: hmac::Key,
}

/// The facts of a session that its id carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionFacts {
    /// When it was opened, in seconds since 1970.
    pub(crate) opened: u32,
    /// The identity that opened it.
    pub(crate) identity: IdentityHash,
    /// The negotiated revision.
    pub(crate) revision: Revision,
    /// The client's capabilities.
    pub(crate) capabilities: u8,
    /// How the client sees the tools.
    pub(crate) surface: u8,
    /// Whether the store has facts that did not fit into the id.
    pub(crate) is_incomplete: bool,
    /// The client's name.
    pub(crate) name: String,
    /// The client's version; empty if it did not fit into the id.
    pub(crate) version: String,
}

impl SessionFacts {
    /// Whether the client's name fits into an id.
    pub(crate) fn fits(name: &str) -> bool {
        name.len() <= LONGEST_SOFTWARE && !name.contains('\0')
    }
}

/// The length of the bytes of a derived key.
struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        32
    }
}

impl Keys {
    /// The keys that are derived from these secrets of the store, of which the first is the current one.
    pub(crate) fn new<'s>(secrets: impl IntoIterator<Item = &'s [u8; 32]>) -> Self {
        Self(secrets.into_iter().map(Key::new).collect())
    }

    fn current(&self) -> &Key {
        self.0.first().expect("the store has a key")
    }

    /// Seals `plain` for `context`.
    pub(super) fn seal(&self, context: &[u8], plain: &[u8]) -> Vec<u8> {
        let key = self.current();
        let nonce = random_bytes::<NONCE_LEN>();
        let mut sealed = Vec::with_capacity(2 + NONCE_LEN + plain.len() + 16);
        sealed.extend_from_slice(&[VERSION, key.id]);
        sealed.extend_from_slice(&nonce);
        let mut text = plain.to_vec();
        let aad = Aad::from([&sealed[..2], context].concat());
        key.cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), aad, &mut text)
            .expect("a message is far smaller than the cipher can take");
        sealed.extend_from_slice(&text);
        sealed
    }

    /// Opens what [`Keys::seal`] sealed for `context`. `None` for everything else.
    pub(super) fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (head, rest) = sealed.split_at_checked(2)?;
        let (nonce, text) = rest.split_at_checked(NONCE_LEN)?;
        if head[0] != VERSION {
            return None;
        }
        let nonce: [u8; NONCE_LEN] = nonce.try_into().ok()?;
        let keys = self.0.iter().filter(|key| key.id == head[1]);
        keys.into_iter().find_map(|key| {
            let mut text = text.to_vec();
            let aad = Aad::from([head, context].concat());
            let nonce = Nonce::assume_unique_for_key(nonce);
            let plain = key.cipher.open_in_place(nonce, aad, &mut text).ok()?;
            Some(plain.to_vec())
        })
    }

    /// The id of a new session.
    pub(crate) fn session_id(&self, facts: &SessionFacts) -> String {
        let mut plain = random_bytes::<16>().to_vec();
        plain.extend_from_slice(&facts.opened.to_be_bytes());
        plain.extend_from_slice(&facts.identity);
        plain.push(number_of(facts.revision));
        plain.push(facts.capabilities);
        plain.push(facts.surface << 1 | u8::from(facts.is_incomplete));
        let mut software = facts.name.clone();
        if !SessionFacts::fits(&software) {
            software.clear();
        } else if software.len() + 1 + facts.version.len() <= LONGEST_SOFTWARE {
            software.push('\0');
            software.push_str(&facts.version);
        }
        plain.extend_from_slice(software.as_bytes());
        URL_SAFE_NO_PAD.encode(self.seal(b"session", &plain))
    }

    /// The facts in the id of a session, if it is valid at `now`, in seconds since 1970.
    pub(crate) fn open_session(&self, id: &str, now: u64) -> Option<SessionFacts> {
        if id.len() > LONGEST {
            return None;
        }
        let plain = self.open(b"session", &URL_SAFE_NO_PAD.decode(id).ok()?)?;
        let (fixed, software) = plain.split_at_checked(39)?;
        let opened = u32::from_be_bytes(fixed[16..20].try_into().ok()?);
        let is_valid = u64::from(opened) <= now + AHEAD && now <= u64::from(opened) + VALID;
        let software = str::from_utf8(software).ok()?;
        let (name, version) = software.split_once('\0').unwrap_or((software, ""));
        is_valid.then_some(SessionFacts {
            opened,
            identity: fixed[20..36].try_into().ok()?,
            revision: revision_of(fixed[36])?,
            capabilities: fixed[37],
            surface: fixed[38] >> 1,
            is_incomplete: fixed[38] & 1 == 1,
            name: name.to_owned(),
            version: version.to_owned(),
        })
    }

    /// A word for a request that waits for its client's answers at `replica`. Each word is unique and cannot be guessed.
    pub(crate) fn state(&self, replica: &str, identity: &IdentityHash) -> String {
        let plain = [&random_bytes::<16>()[..], replica.as_bytes()].concat();
        URL_SAFE_NO_PAD.encode(self.seal(&[&b"state"[..], identity].concat(), &plain))
    }

    /// The replica in a word of [`Keys::state`] that was given to the same identity.
    pub(crate) fn open_state(&self, word: &str, identity: &IdentityHash) -> Option<String> {
        let sealed = URL_SAFE_NO_PAD.decode(word).ok()?;
        let plain = self.open(&[&b"state"[..], identity].concat(), &sealed)?;
        Some(str::from_utf8(plain.get(16..)?).ok()?.to_owned())
    }

    /// The id of a question to the client of `session`: `replica.number.tag`.
    pub(crate) fn question(&self, session: &str, replica: &str, number: u64) -> String {
        let tag = self.tag(&question(session, replica, number));
        format!("{replica}.{number}.{tag}")
    }

    /// The replica and the number in the id of a question that was asked in `session`.
    pub(crate) fn open_question<'i>(&self, session: &str, id: &'i str) -> Option<(&'i str, u64)> {
        let mut parts = id.split('.');
        let (replica, number, tag) = (parts.next()?, parts.next()?, parts.next()?);
        let number = number.parse().ok().filter(|_| parts.next().is_none())?;
        self.is_tag(&question(session, replica, number), tag)
            .then_some((replica, number))
    }

    /// A tag of `text`, which only those who have the keys can make.
    pub(super) fn tag(&self, text: &str) -> String {
        self.current().tag(text)
    }

    /// Whether `tag` is a tag of `text`.
    pub(super) fn is_tag(&self, text: &str, tag: &str) -> bool {
        self.0.iter().any(|key| is_same_secret(&key.tag(text), tag))
    }
}

/// The text of the tag of a question.
fn question(session: &str, replica: &str, number: u64) -> String {
    format!("question\0{session}\0{replica}\0{number}")
}

impl Key {
    fn new(secret: &[u8; 32]) -> Self {
        let derived = |purpose: &[u8]| -> [u8; 32] {
            let mut bytes = [0; 32];
            Salt::new(HKDF_SHA256, b"mcpzip replicas")
                .extract(secret)
                .expand(&[purpose], Length)
                .and_then(|key| key.fill(&mut bytes))
                .expect("the length is that of the key");
            bytes
        };
        let cipher = UnboundKey::new(&AES_256_GCM, &derived(b"seal"));
        Self {
            id: derived(b"id")[0],
            cipher: LessSafeKey::new(cipher.expect("the key has 32 bytes")),
            tags: hmac::Key::new(hmac::HMAC_SHA256, &derived(b"tag")),
        }
    }

    fn tag(&self, text: &str) -> String {
        HEXLOWER.encode(&hmac::sign(&self.tags, text.as_bytes()).as_ref()[..TAG])
    }
}

/// The name of a session in the store, in notifications and in logs: a hash of the id, which itself gives access.
pub(crate) fn name_of(id: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(id)[..16])
}

fn number_of(revision: Revision) -> u8 {
    let position = Revision::ALL.iter().rev().position(|one| *one == revision);
    position.and_then(|at| u8::try_from(at).ok()).unwrap_or(0)
}

fn revision_of(number: u8) -> Option<Revision> {
    Revision::ALL.iter().rev().nth(usize::from(number)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> SessionFacts {
        SessionFacts {
            opened: 1_000_000,
            identity: [7; 16],
            revision: Revision::V2025_06_18,
            capabilities: 0b1010_0101,
            surface: 3,
            is_incomplete: true,
            name: "claude-code".to_owned(),
            version: "2.1.19".to_owned(),
        }
    }

    #[test]
    fn the_id_of_a_session_carries_its_facts_at_every_replica_that_has_the_key() {
        let (old, new) = ([1; 32], [2; 32]);
        let before = Keys::new([&old]);
        let id = before.session_id(&facts());
        assert!(
            id.len() <= 128 && id.bytes().all(|byte| byte.is_ascii_graphic()),
            "{id}"
        );
        let rotated = Keys::new([&new, &old]);
        assert_eq!(rotated.open_session(&id, 1_000_000), Some(facts()));
        assert_ne!(before.session_id(&facts()), id);
        assert!(Keys::new([&new]).open_session(&id, 1_000_000).is_none());
        for now in [1_000_000 + VALID + 1, 1_000_000 - AHEAD - 1] {
            assert!(rotated.open_session(&id, now).is_none());
        }
        for at in 0..id.len() {
            let mut other = id.clone().into_bytes();
            other[at] = if other[at] == b'A' { b'B' } else { b'A' };
            let other = String::from_utf8(other).unwrap();
            assert!(rotated.open_session(&other, 1_000_000).is_none(), "{at}");
        }
        for other in ["", "AAAA", "!", &before.state("r1", &[7; 16])] {
            assert!(rotated.open_session(other, 1_000_000).is_none());
        }
    }

    #[test]
    fn the_longest_id_has_128_characters() {
        let keys = Keys::new([&[1; 32]]);
        let of = |name: &str, version: &str| {
            let id = keys.session_id(&SessionFacts {
                name: name.to_owned(),
                version: version.to_owned(),
                ..facts()
            });
            assert!(id.len() <= 128, "{}", id.len());
            let facts = keys.open_session(&id, 1_000_000).unwrap();
            (facts.name, facts.version)
        };
        let whole = "n".repeat(LONGEST_SOFTWARE);
        assert_eq!(of(&whole, "1"), (whole, String::new()));
        assert_eq!(of("a", &"2".repeat(22)), ("a".into(), "2".repeat(22)));
        assert_eq!(of(&"n".repeat(25), "1"), (String::new(), String::new()));
    }

    #[test]
    fn questions_and_states_lead_to_their_replica_for_their_own_client_only() {
        let keys = Keys::new([&[1; 32]]);
        let id = keys.question("s1", "r7", 9);
        assert_eq!(keys.open_question("s1", &id), Some(("r7", 9)));
        for (session, id) in [
            ("s2", id.as_str()),
            ("s1", "r7.9"),
            ("s1", "9"),
            ("s1", &id.replace("r7", "r8")),
            ("s1", &id.replace(".9.", ".8.")),
            ("s1", &format!("{id}.0")),
        ] {
            assert_eq!(keys.open_question(session, id), None, "{id}");
        }
        let state = keys.state("r7", &[1; 16]);
        assert_eq!(keys.open_state(&state, &[1; 16]).as_deref(), Some("r7"));
        assert_eq!(keys.open_state(&state, &[2; 16]), None);
        assert_ne!(keys.state("r7", &[1; 16]), state);
    }
}
