//! The keys of the authorization server, in a private file: key pairs that sign access tokens, and one key that seals the ids of clients
//! and refresh tokens.
//!
//! A new key pair is published for a day before it signs, and an old one for a day after. `mcpzip token rotate-keys`
//! replaces all keys at once; everything that the old ones signed becomes invalid.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, encode};
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::FileLock;
use crate::files;
use crate::identity::jwt_crypto::install;
use crate::identity::tokens::{Stamp, TokenFile, now};
use crate::secret::{Secret, random_bytes};
use crate::store::{Kind, Records, Table};

/// The name of the file.
const FILE: &str = "keys.json";

/// The largest file, in bytes.
const LARGEST: u64 = 64 * 1024;

const DAY: u64 = 24 * 60 * 60;

/// The age at which a key pair gets a successor.
const OLD: u64 = 30 * DAY;

/// Why the keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyFault {
    #[error("the file of keys `{}` cannot be used: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the file of keys `{}` is damaged; `mcpzip token rotate-keys` makes a new one", path.display())]
    Damaged { path: PathBuf },
    #[error("other users can read the file of keys `{}`: run `chmod 600`, and `mcpzip token rotate-keys` if they may have read it", path.display())]
    Open { path: PathBuf },
    #[error("another process is changing the file of keys `{}`; try again", path.display())]
    Locked { path: PathBuf },
    #[error("the keys in the store cannot be used: {source}")]
    Store { source: io::Error },
    #[error(
        "the keys in the store were sealed with another key than `MCPZIP_STORE_KEY` or `MCPZIP_STORE_KEY_PREVIOUS`: set the key that they were sealed with"
    )]
    Sealed,
}

/// The file of keys.
#[derive(Debug, Clone)]
pub(crate) struct KeyFile {
    path: PathBuf,
    /// The store, in which the keys are sealed, if replicas share them.
    shared: Option<Arc<dyn Records>>,
}

/// The keys.
pub(super) struct Keys {
    /// In the order of their making.
    pairs: Vec<Pair>,
    seal: hmac::Key,
}

struct Pair {
    id: String,
    created: u64,
    encoding: EncodingKey,
    decoding: DecodingKey,
    public: Value,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    seal: Secret64,
    pairs: Vec<WrittenPair>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPair {
    id: String,
    created: u64,
    pkcs8: Secret64,
}

/// Bytes in base64 that are not printed.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Secret64(Secret<Vec<u8>>);

impl TryFrom<String> for Secret64 {
    type Error = base64::DecodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Ok(Self(Secret::new(URL_SAFE_NO_PAD.decode(text)?)))
    }
}

impl From<Secret64> for String {
    fn from(secret: Secret64) -> Self {
        URL_SAFE_NO_PAD.encode(secret.0.expose())
    }
}

impl WrittenPair {
    fn new() -> Self {
        let pkcs8 =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
                .expect("the system gives random bytes");
        Self {
            id: format!("mcpzip-{}", HEXLOWER.encode(&random_bytes::<8>())),
            created: now(),
            pkcs8: Secret64(Secret::new(pkcs8.as_ref().to_vec())),
        }
    }
}

impl Written {
    fn new() -> Self {
        Self {
            version: 1,
            seal: Secret64(Secret::new(random_bytes::<32>().to_vec())),
            pairs: vec![WrittenPair::new()],
        }
    }

    /// Adds a successor of an old key pair, and removes those that have had one for long. Returns whether anything changed.
    fn renew(&mut self) -> bool {
        let (now, before) = (now(), self.pairs.len());
        let newest = self.pairs.iter().map(|pair| pair.created).max();
        if newest.is_none_or(|created| created + OLD <= now) {
            self.pairs.push(WrittenPair::new());
        }
        // One that has signed alone for a day has replaced those before it.
        let settled = self
            .pairs
            .iter()
            .rposition(|pair| pair.created + 2 * DAY <= now);
        self.pairs.drain(..settled.unwrap_or(0));
        self.pairs.len() != before
    }
}

impl KeyFile {
    /// The file next to that of tokens.
    #[must_use]
    pub(crate) fn next_to(tokens: &TokenFile) -> Self {
        Self {
            path: tokens.sibling(FILE),
            shared: tokens.shared().cloned(),
        }
    }

    pub(super) fn stamp(&self) -> Stamp {
        match &self.shared {
            None => Stamp::of(&self.path),
            Some(shared) => Stamp::Shared(shared.stamp(Kind::IdentityKeys)),
        }
    }

    fn failed(&self, source: io::Error) -> KeyFault {
        let path = self.path.clone();
        KeyFault::File { path, source }
    }

    /// The keys as they are; `None` if there are none.
    pub(super) fn read_keys(&self) -> Result<Option<Keys>, KeyFault> {
        let written = self.read()?;
        written.map(|written| self.keys(&written)).transpose()
    }

    /// The keys; the file is made, and its keys renewed, as needed.
    pub(super) fn read_renewed(&self) -> Result<Keys, KeyFault> {
        let written = self.read()?;
        if let Some(known) = &written
            && !known.clone().renew()
            && !self.is_old()
        {
            return self.keys(known);
        }
        match (self.write_renewed(), written) {
            // Old keys sign until the next attempt.
            (Err(error), Some(known)) => {
                tracing::warn!(%error, "the keys of the authorization server are renewed later");
                self.keys(&known)
            }
            (renewed, _) => self.keys(&renewed?),
        }
    }

    /// Whether the keys in the store are sealed with the key before the current one.
    fn is_old(&self) -> bool {
        let Some(shared) = &self.shared else {
            return false;
        };
        let table = shared.all(Kind::IdentityKeys).ok();
        let sealed = table.as_ref().and_then(|table| table.get(FILE));
        sealed.is_some_and(|sealed| shared.is_old(sealed))
    }

    fn write_renewed(&self) -> Result<Written, KeyFault> {
        if let Some(shared) = &self.shared {
            return change_shared(shared.as_ref(), |written| {
                let mut written = written?.unwrap_or_else(Written::new);
                written.renew();
                Ok(written)
            });
        }
        let _lock = self.lock()?;
        let mut written = self.read()?.unwrap_or_else(Written::new);
        written.renew();
        self.write(&written)?;
        Ok(written)
    }

    /// Replaces all keys.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn replace(&self) -> Result<(), KeyFault> {
        if let Some(shared) = &self.shared {
            return change_shared(shared.as_ref(), |_| Ok(Written::new())).map(drop);
        }
        let _lock = self.lock()?;
        self.write(&Written::new())
    }

    /// Takes the keys of `files` into the store, if it has none.
    ///
    /// # Errors
    /// When the file cannot be read, or the store cannot be written.
    #[cfg(feature = "postgres")]
    pub(crate) fn take_over(&self, files: &Self) -> Result<(), KeyFault> {
        let (Some(written), Some(shared)) = (files.read()?, &self.shared) else {
            return Ok(());
        };
        change_shared(shared.as_ref(), |known| {
            Ok(known?.unwrap_or_else(|| written.clone()))
        })
        .map(drop)
    }

    /// Why the keys of an existing file cannot be used.
    #[must_use]
    pub(crate) fn fault(&self) -> Option<KeyFault> {
        let written = self.read().transpose()?;
        written.and_then(|written| self.keys(&written)).err()
    }

    fn lock(&self) -> Result<FileLock, KeyFault> {
        let path = || self.path.clone();
        let lock = FileLock::acquire(&self.path).map_err(|source| self.failed(source))?;
        lock.ok_or_else(|| KeyFault::Locked { path: path() })
    }

    fn read(&self) -> Result<Option<Written>, KeyFault> {
        let path = || self.path.clone();
        if let Some(shared) = &self.shared {
            let table = shared.all(Kind::IdentityKeys);
            let table = table.map_err(|source| KeyFault::Store { source })?;
            return read_shared(shared.as_ref(), &table);
        }
        let bytes = match files::read_regular(&self.path, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(self.failed(source)),
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let metadata = std::fs::metadata(&self.path);
            let mode = metadata.map(|metadata| metadata.permissions().mode());
            if mode.is_ok_and(|mode| mode & 0o077 != 0) {
                return Err(KeyFault::Open { path: path() });
            }
        }
        let written = serde_json::from_slice(&bytes).ok();
        let written = written.filter(|written: &Written| written.version == 1);
        match written {
            Some(written) => Ok(Some(written)),
            None => Err(KeyFault::Damaged { path: path() }),
        }
    }

    fn write(&self, written: &Written) -> Result<(), KeyFault> {
        let text = serde_json::to_vec_pretty(written).map_err(|error| self.failed(error.into()))?;
        files::replace(&self.path, &[&text, b"\n"]).map_err(|source| self.failed(source))
    }

    fn keys(&self, written: &Written) -> Result<Keys, KeyFault> {
        let damaged = || KeyFault::Damaged {
            path: self.path.clone(),
        };
        let pair = |pair: &WrittenPair| {
            let pkcs8 = pair.pkcs8.0.expose();
            let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
            let read = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8, &SystemRandom::new()).ok()?;
            // An uncompressed point: 4, x, y.
            let point = read.public_key().as_ref();
            let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
            let (x, y) = (part(point.get(1..33)?), part(point.get(33..65)?));
            Some(Pair {
                id: pair.id.clone(),
                created: pair.created,
                encoding: EncodingKey::from_ec_der(pkcs8),
                decoding: DecodingKey::from_ec_components(&x, &y).ok()?,
                public: json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": pair.id, "x": x, "y": y }),
            })
        };
        let pairs: Option<Vec<Pair>> = written.pairs.iter().map(pair).collect();
        let pairs = pairs.filter(|pairs| !pairs.is_empty());
        let seal = written.seal.0.expose();
        match (pairs, seal.len() >= 32) {
            (Some(pairs), true) => Ok(Keys {
                pairs,
                seal: hmac::Key::new(hmac::HMAC_SHA256, seal),
            }),
            _ => Err(damaged()),
        }
    }
}

/// The keys among the records of the store.
fn read_shared(shared: &dyn Records, table: &Table) -> Result<Option<Written>, KeyFault> {
    let Some(sealed) = table.get(FILE) else {
        return Ok(None);
    };
    let plain = shared.open(FILE, sealed).ok_or(KeyFault::Sealed)?;
    let written = serde_json::from_slice(&plain).ok();
    let written = written.filter(|written: &Written| written.version == 1);
    written.map(Some).ok_or_else(|| KeyFault::Store {
        source: io::Error::other("another version of mcpzip wrote them"),
    })
}

/// Replaces the keys in the store by what `change` makes of them, and returns those.
fn change_shared(
    shared: &dyn Records,
    change: impl Fn(Result<Option<Written>, KeyFault>) -> Result<Written, KeyFault>,
) -> Result<Written, KeyFault> {
    let mut outcome = Err(KeyFault::Sealed);
    let write = shared.change(Kind::IdentityKeys, &mut |table| {
        outcome = change(read_shared(shared, table));
        let Ok(written) = &outcome else {
            return Vec::new();
        };
        let plain = serde_json::to_vec(written).expect("texts and numbers are JSON");
        vec![(FILE.to_owned(), Some(shared.seal(FILE, &plain)))]
    });
    write.map_err(|source| KeyFault::Store { source })?;
    outcome
}

impl Keys {
    /// Signs an access token with these members.
    pub(super) fn sign(&self, members: &Value) -> String {
        install();
        let settled = self.pairs.iter().rfind(|pair| pair.created + DAY <= now());
        let pair = settled.unwrap_or(&self.pairs[0]);
        let mut header = Header::new(Algorithm::ES256);
        header.typ = Some("at+jwt".to_owned());
        header.kid = Some(pair.id.clone());
        encode(&header, members, &pair.encoding).expect("a key that was read signs every text")
    }

    /// The key that checks the signature of a token.
    pub(super) fn find(&self, id: &str) -> Option<&DecodingKey> {
        let mut pairs = self.pairs.iter();
        let pair = pairs.find(|pair| pair.id == id)?;
        Some(&pair.decoding)
    }

    /// The public keys, as they are published (RFC 7517).
    pub(super) fn public(&self) -> Value {
        let keys: Vec<&Value> = self.pairs.iter().map(|pair| &pair.public).collect();
        json!({ "keys": keys })
    }

    /// The seal of a text, which no one else can make. `purpose` keeps the texts of one purpose apart from those of another.
    pub(super) fn seal(&self, purpose: &str, text: &str) -> String {
        let tag = hmac::sign(&self.seal, format!("{purpose}\n{text}").as_bytes());
        URL_SAFE_NO_PAD.encode(tag)
    }

    /// Whether a text has this seal.
    pub(super) fn is_sealed(&self, purpose: &str, text: &str, seal: &str) -> bool {
        let message = format!("{purpose}\n{text}");
        URL_SAFE_NO_PAD
            .decode(seal)
            .is_ok_and(|tag| hmac::verify(&self.seal, message.as_bytes(), &tag).is_ok())
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Keys({})", self.pairs.len())
    }
}
