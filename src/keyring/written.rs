//! The form of the file of secrets, which `docs/secrets.md` describes.
//!
//! Names, stores and times are not encrypted. Each value is encrypted with its name as context, so that it cannot be
//! put under another name.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::passphrase::Cost;
use super::{KeyringError, Location};
use crate::config::SecretName;
use crate::files::{self, Replacement};
use crate::sealing::{Key, Sealed};
use crate::secret::{Secret, random_bytes};

const VERSION: u64 = 1;

/// Larger files are not ours.
const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// The context for which the key of the file is encrypted.
const KEY_CONTEXT: &str = "mcpzip-secrets-1/key";

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    version: u64,
    /// The key of the encrypted values, itself encrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<FileKey>,
    pub(super) secrets: BTreeMap<String, Entry>,
}

/// The encrypted key, and the way to open it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum FileKey {
    /// `MCPZIP_SECRET_KEY`.
    Variable { id: String, sealed: Sealed },
    /// A passphrase.
    Passphrase {
        id: String,
        salt: String,
        argon2id: Cost,
        sealed: Sealed,
    },
}

/// A secret.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    /// When it was set, in seconds since 1970.
    pub(super) changed: u64,
    /// The encrypted value; without it, the value is in the keychain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<Sealed>,
}

/// The part of the file that all versions have.
#[derive(Deserialize)]
struct Versioned {
    version: u64,
}

impl Written {
    /// Reads the file at `path`. Without a file there are no secrets.
    pub(super) fn read(path: &Path) -> Result<Self, KeyringError> {
        let damaged = |problem| KeyringError::Damaged {
            path: path.to_owned(),
            problem,
        };
        let bytes = match files::read_regular(path, LARGEST_FILE) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    version: VERSION,
                    key: None,
                    secrets: BTreeMap::new(),
                });
            }
            Err(source) => {
                return Err(KeyringError::Read {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        let versioned: Result<Versioned, _> = serde_json::from_slice(&bytes);
        match versioned.map(|it| it.version) {
            Ok(VERSION) => {}
            Ok(version) if version > VERSION => {
                return Err(KeyringError::Newer {
                    path: path.to_owned(),
                    version,
                });
            }
            _ => return Err(damaged("it is not JSON with a version")),
        }
        let written: Self = serde_json::from_slice(&bytes)
            .map_err(|_| damaged("it does not have the form of its version"))?;
        if let Some(FileKey::Passphrase { argon2id, .. }) = &written.key
            && !argon2id.is_bearable()
        {
            return Err(damaged("its passphrase would cost too much time or memory"));
        }
        match written
            .secrets
            .keys()
            .all(|name| SecretName::parse(name).is_some())
        {
            true => Ok(written),
            false => Err(damaged("it has a name that a secret cannot have")),
        }
    }

    /// Prepares the replacement of the file at `path`.
    pub(super) fn prepare(&self, path: &Path) -> io::Result<Replacement> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        // A link leads to the file that the user has chosen: that file is replaced, not the link.
        match path.is_symlink() {
            true => files::prepare_in_place_for_owner(&path.canonicalize()?, &bytes),
            false => files::prepare(path, &[&bytes]),
        }
    }
}

impl FileKey {
    pub(super) fn by_variable(key: &Key, variable: &Key) -> Self {
        Self::Variable {
            id: key.id().to_owned(),
            sealed: variable.seal(KEY_CONTEXT, key.bytes()),
        }
    }

    pub(super) fn by_passphrase(
        key: &Key,
        passphrase: &Secret<String>,
    ) -> Result<Self, KeyringError> {
        let (salt, cost) = (random_bytes::<16>(), Cost::RECOMMENDED);
        let outer = cost.derive(passphrase, &salt);
        let outer = outer.ok_or(KeyringError::WrongPassphrase)?;
        Ok(Self::Passphrase {
            id: key.id().to_owned(),
            salt: URL_SAFE_NO_PAD.encode(salt),
            argon2id: cost,
            sealed: outer.seal(KEY_CONTEXT, key.bytes()),
        })
    }

    /// The id of the key.
    pub(super) fn id(&self) -> &str {
        match self {
            Self::Variable { id, .. } | Self::Passphrase { id, .. } => id,
        }
    }

    /// The outer key of a passphrase.
    pub(super) fn derive(&self, passphrase: &Secret<String>) -> Result<Key, KeyringError> {
        let Self::Passphrase { salt, argon2id, .. } = self else {
            return Err(KeyringError::WrongPassphrase);
        };
        let salt = URL_SAFE_NO_PAD.decode(salt).ok();
        let key = salt.and_then(|salt| argon2id.derive(passphrase, &salt));
        key.ok_or(KeyringError::WrongPassphrase)
    }

    /// Opens the key by the outer one.
    pub(super) fn open(&self, outer: &Key) -> Result<Key, KeyringError> {
        let (sealed, wrong) = match self {
            Self::Variable { sealed, .. } => (sealed, KeyringError::WrongKey),
            Self::Passphrase { sealed, .. } => (sealed, KeyringError::WrongPassphrase),
        };
        let bytes = outer.open(KEY_CONTEXT, sealed);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Key::of).ok_or(wrong)
    }
}

impl Entry {
    pub(super) fn in_keychain() -> Self {
        Self {
            changed: now(),
            sealed: None,
        }
    }

    pub(super) fn sealed(name: &SecretName, value: &Secret<String>, key: &Key) -> Self {
        Self {
            changed: now(),
            sealed: Some(key.seal(&context(name), value.expose().as_bytes())),
        }
    }

    pub(super) const fn location(&self) -> Location {
        match self.sealed {
            Some(_) => Location::File,
            None => Location::Keychain,
        }
    }

    /// Decrypts the value.
    pub(super) fn open(
        &self,
        name: &SecretName,
        key: &Key,
    ) -> Result<Secret<String>, KeyringError> {
        let plain = self
            .sealed
            .as_ref()
            .and_then(|sealed| key.open(&context(name), sealed));
        let text = plain.and_then(|plain| String::from_utf8(plain).ok());
        text.map(Secret::new)
            .ok_or_else(|| KeyringError::Altered(name.clone()))
    }
}

fn context(name: &SecretName) -> String {
    format!("mcpzip-secrets-1/secret/{name}")
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
