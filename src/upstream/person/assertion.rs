//! The key with which the gateway signs its assertions about people (ES256). Its public half is at
//! `/.well-known/mcpzip-keys.json`. Replicas have one key, which is sealed in their store.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::files;
use crate::secret::random_token;
use crate::store::{Kind, Records, State, Table};

/// The lifetime of an assertion, in seconds.
const LIFE: u64 = 60;

/// The file, below the state directory, and the name of the record in the store.
const FILE: &str = "identity.key";

/// The largest file, in bytes.
const LARGEST: u64 = 64 * 1024;

/// The key, made when it is first needed.
pub(crate) struct AssertionKey {
    path: PathBuf,
    /// The store that has it instead, if replicas share one.
    shared: Option<Arc<dyn Records>>,
    /// The key, and the stamp of the store when it was read.
    known: Mutex<Option<(u64, Arc<Known>)>>,
}

struct Known {
    pair: EcdsaKeyPair,
    id: String,
    /// The coordinates of the public key.
    x: String,
    y: String,
}

impl AssertionKey {
    /// The key of a run with this state.
    pub(crate) fn of(state: &State) -> Self {
        Self {
            path: state.directory.join(FILE),
            shared: state.shared.clone(),
            known: Mutex::default(),
        }
    }

    /// The key set that servers check assertions with (RFC 7517).
    ///
    /// # Errors
    /// When the file cannot be read or made.
    pub(crate) fn public(&self) -> io::Result<Value> {
        let known = self.known()?;
        Ok(json!({ "keys": [{
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": known.id, "x": known.x, "y": known.y,
        }] }))
    }

    /// A JWT of `issuer` for `audience` with `claims`, an object.
    ///
    /// # Errors
    /// When the file cannot be read or made.
    pub(super) fn sign(
        &self,
        issuer: &str,
        audience: &str,
        mut claims: Value,
    ) -> io::Result<String> {
        let known = self.known()?;
        // A clock before 1970 makes every assertion one of the past; the server then rejects it.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |time| time.as_secs());
        claims["iss"] = issuer.into();
        claims["aud"] = audience.into();
        claims["iat"] = now.into();
        claims["exp"] = (now + LIFE).into();
        claims["jti"] = random_token().into();
        let head = json!({ "alg": "ES256", "typ": "JWT", "kid": known.id });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&head), part(&claims));
        let signature = known.pair.sign(&SystemRandom::new(), message.as_bytes());
        let signature =
            signature.map_err(|_| io::Error::other("the system gives no random bytes"))?;
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn known(&self) -> io::Result<Arc<Known>> {
        let shared = self.shared.as_deref();
        let stamp = shared.map_or(0, |shared| shared.stamp(Kind::IdentityKeys));
        let mut known = self.known.lock();
        if let Some((at, key)) = &*known
            && *at == stamp
        {
            return Ok(key.clone());
        }
        let read = match shared {
            Some(shared) => of_store(shared),
            None => match self.read() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => self.make(),
                read => read,
            },
        };
        match (read, &*known) {
            (Err(error), Some((_, key))) => {
                tracing::debug!(%error, "the key for assertions is not read again now");
                Ok(key.clone())
            }
            (read, _) => {
                let key = Arc::new(read?);
                *known = Some((stamp, key.clone()));
                Ok(key)
            }
        }
    }

    fn read(&self) -> io::Result<Known> {
        let pem = files::read_private(&self.path, LARGEST)?;
        let unusable = || {
            io::Error::other(format!(
                "`{}` has no key (PKCS #8, P-256)",
                self.path.display()
            ))
        };
        let der = PrivatePkcs8KeyDer::from_pem_slice(&pem).map_err(|_| unusable())?;
        Known::read(der.secret_pkcs8_der()).ok_or_else(unusable)
    }

    /// Makes the key, unless another process was first.
    fn make(&self) -> io::Result<Known> {
        if let Some(directory) = self.path.parent() {
            files::create_private_directory(directory)?;
        }
        let lock = files::open_lock(&self.path.with_extension("lock"))?;
        lock.lock()?;
        if !self.path.exists() {
            let text = STANDARD.encode(generated()?);
            let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
            files::replace(&self.path, &[pem.as_bytes()])?;
        }
        self.read()
    }
}

impl Known {
    /// Reads a key in PKCS #8.
    fn read(der: &[u8]) -> Option<Self> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, der, &SystemRandom::new()).ok()?;
        let point = pair.public_key().as_ref();
        // An uncompressed point has a byte before its coordinates.
        let (x, y) = (&point[1..33], &point[33..65]);
        let id = URL_SAFE_NO_PAD.encode(&Sha256::digest(point)[..12]);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        Some(Self { pair, id, x, y })
    }
}

/// A new key in PKCS #8.
fn generated() -> io::Result<Vec<u8>> {
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
    let key = key.map_err(|_| io::Error::other("the system gives no random bytes"))?;
    Ok(key.as_ref().to_vec())
}

/// The key in the store, which the first replica makes.
fn of_store(shared: &dyn Records) -> io::Result<Known> {
    let read = |table: &Table| {
        let sealed = table.get(FILE)?;
        let known = shared.open(FILE, sealed).and_then(|der| Known::read(&der));
        Some(known.ok_or_else(|| {
            io::Error::other("the key for assertions in the store was sealed with another key than `MCPZIP_STORE_KEY` or `MCPZIP_STORE_KEY_PREVIOUS`")
        }))
    };
    let table = shared.all(Kind::IdentityKeys)?;
    if let Some(known) = read(&table) {
        if table.get(FILE).is_some_and(|sealed| shared.is_old(sealed))
            && let Err(error) = seal_again(shared)
        {
            tracing::debug!(%error, "the key for assertions stays sealed with the previous key");
        }
        return known;
    }
    let der = generated()?;
    let mut found = None;
    shared.change(Kind::IdentityKeys, &mut |table| {
        found = read(table);
        match &found {
            Some(_) => Vec::new(),
            None => vec![(FILE.to_owned(), Some(shared.seal(FILE, &der)))],
        }
    })?;
    let made = || Known::read(&der).ok_or_else(|| io::Error::other("a new key cannot be read"));
    found.unwrap_or_else(made)
}

/// Seals the key in the store with the current key of the store.
fn seal_again(shared: &dyn Records) -> io::Result<()> {
    shared.change(Kind::IdentityKeys, &mut |table| {
        let old = table.get(FILE).filter(|sealed| shared.is_old(sealed));
        let der = old.and_then(|sealed| shared.open(FILE, sealed));
        der.map(|der| (FILE.to_owned(), Some(shared.seal(FILE, &der))))
            .into_iter()
            .collect()
    })
}
