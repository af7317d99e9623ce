//! The file of tokens. It has only their hashes, so a copy of it grants no access.
//!
//! A token has 256 random bits, so one round of SHA-256 protects it: there is nothing to guess. The file is replaced whole under a lock.
//! A file that cannot be read, was written by a newer version, or can be changed by other users denies every token.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Fingerprint;
use crate::config::FileLock;
use crate::files;
use crate::secret::{Secret, random_bytes};

/// The directory of the file, below the state directory.
const DIRECTORY: &str = "identity";
/// The name of the file.
const FILE: &str = "tokens.json";

/// The beginning of every token, by which scanners for leaked secrets can find it.
pub(super) const PREFIX: &str = "mcpzip_";

/// The version of the file's form.
const VERSION: u32 = 1;

/// The largest file, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// How long a token that does not count any more is shown.
const SHOWN: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The file of tokens.
#[derive(Debug, Clone)]
pub(crate) struct TokenFile(PathBuf);

/// The state of the file's content, as far as the directory shows it; `None` without a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp(Option<(Option<SystemTime>, u64, [u64; 2])>);

/// All tokens.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    list: Vec<Stored>,
    valid: BTreeMap<Fingerprint, usize>,
}

/// A token as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stored {
    /// Its id, by which it can be revoked.
    pub(crate) id: String,
    /// The name of the person or program that it is for.
    pub(crate) name: String,
    sha256: String,
    /// The roles that it gives.
    pub(crate) roles: BTreeSet<String>,
    /// The profile that it is limited to.
    pub(crate) profile: Option<String>,
    /// In seconds since 1970, like the others.
    pub(crate) created: u64,
    pub(crate) expires: Option<u64>,
    pub(crate) revoked: Option<u64>,
}

/// The file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    version: u32,
    tokens: Vec<Stored>,
}

/// The version alone, to say what is wrong with a file of a newer one.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// A token to make.
#[derive(Debug, Default)]
pub(crate) struct NewToken {
    /// The name of the person or program that it is for.
    pub(crate) name: String,
    /// The roles that it gives.
    pub(crate) roles: BTreeSet<String>,
    /// The profile that it is limited to.
    pub(crate) profile: Option<String>,
    /// How long it counts.
    pub(crate) lifetime: Option<Duration>,
}

/// The reason why the tokens cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("the file of tokens `{}` cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the file of tokens `{}` is damaged: {problem}", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error("the file of tokens `{}` was written by a newer version of mcpzip", path.display())]
    Newer { path: PathBuf },
    #[error("other users can change the file of tokens `{}`; `chmod 600` prevents that, after you have looked at `mcpzip token list`", path.display())]
    Open { path: PathBuf },
    #[error("the file of tokens `{}` cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("another process is changing the file of tokens `{}`; try again", path.display())]
    Locked { path: PathBuf },
    #[error("no valid token has the name or id `{0}`; `mcpzip token list` shows them")]
    Unknown(String),
}

impl Stored {
    /// The time from which it does not count.
    pub(super) fn expires(&self) -> Option<SystemTime> {
        // A time that cannot be represented has passed.
        let time = |seconds| UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
        self.expires
            .map(|seconds| time(seconds).unwrap_or(UNIX_EPOCH))
    }

    /// Whether it counts.
    #[must_use]
    pub(crate) fn is_valid(&self) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|expires| expires > now())
    }

    /// The time since which it does not count.
    fn ended(&self) -> Option<u64> {
        let ends = self.revoked.into_iter().chain(self.expires).min()?;
        (ends <= now()).then_some(ends)
    }
}

impl Tokens {
    /// The valid token with this hash.
    pub(super) fn find(&self, fingerprint: &Fingerprint) -> Option<&Stored> {
        let token = self.list.get(*self.valid.get(fingerprint)?)?;
        token.is_valid().then_some(token)
    }

    /// All tokens, also those that do not count any more.
    pub(crate) fn list(&self) -> &[Stored] {
        &self.list
    }
}

impl TokenFile {
    /// The file below a state directory.
    #[must_use]
    pub(crate) fn below(state_dir: &Path) -> Self {
        Self(state_dir.join(DIRECTORY).join(FILE))
    }

    pub(super) fn stamp(&self) -> Stamp {
        let metadata = std::fs::metadata(&self.0).ok();
        Stamp(metadata.map(|metadata| {
            #[cfg(unix)]
            let file = {
                use std::os::unix::fs::MetadataExt as _;
                [metadata.ino(), u64::from(metadata.mode())]
            };
            #[cfg(not(unix))]
            let file = [0; 2];
            (metadata.modified().ok(), metadata.len(), file)
        }))
    }

    /// The tokens; none without a file.
    ///
    /// # Errors
    /// When there is a file that cannot be trusted.
    pub(crate) fn read(&self) -> Result<Tokens, TokenError> {
        let path = || self.0.clone();
        let damaged = |problem: String| TokenError::Damaged {
            path: path(),
            problem,
        };
        let bytes = match files::read_regular(&self.0, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tokens::default()),
            Err(source) => {
                let path = path();
                return Err(TokenError::Read { path, source });
            }
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let metadata = std::fs::metadata(&self.0);
            let mode = metadata.map(|metadata| metadata.permissions().mode());
            if mode.is_ok_and(|mode| mode & 0o022 != 0) {
                return Err(TokenError::Open { path: path() });
            }
        }
        // The text of an error could have a part of the file.
        let problem =
            |error: serde_json::Error| damaged(format!("it is wrong near line {}", error.line()));
        let versioned: Versioned = serde_json::from_slice(&bytes).map_err(problem)?;
        if versioned.version > VERSION {
            return Err(TokenError::Newer { path: path() });
        }
        let written: Written = serde_json::from_slice(&bytes).map_err(problem)?;
        let mut valid = BTreeMap::new();
        for (index, token) in written.tokens.iter().enumerate() {
            let hash = HEXLOWER.decode(token.sha256.as_bytes()).ok();
            let hash = hash.and_then(|hash| Fingerprint::try_from(hash).ok());
            let hash =
                hash.ok_or_else(|| damaged(format!("the hash of `{}` is wrong", token.id)))?;
            if valid.insert(hash, index).is_some() {
                return Err(damaged(format!(
                    "the hash of `{}` is there twice",
                    token.id
                )));
            }
        }
        Ok(Tokens {
            list: written.tokens,
            valid,
        })
    }

    /// Makes a token. Its text is returned once and is stored nowhere.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub(crate) fn create(&self, new: NewToken) -> Result<(Stored, Secret<String>), TokenError> {
        let text = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random_bytes::<32>()));
        let stored = Stored {
            id: HEXLOWER.encode(&random_bytes::<4>()),
            name: new.name,
            sha256: HEXLOWER.encode(&Sha256::digest(&text)),
            roles: new.roles,
            profile: new.profile,
            created: now(),
            expires: new
                .lifetime
                .map(|lifetime| now().saturating_add(lifetime.as_secs())),
            revoked: None,
        };
        let made = stored.clone();
        self.change(|tokens| {
            tokens.push(stored);
            Ok(())
        })?;
        Ok((made, Secret::new(text)))
    }

    /// Revokes the tokens with this name or id, and returns them.
    ///
    /// # Errors
    /// When there is none, or the file cannot be read or written.
    pub(crate) fn revoke(&self, name: &str) -> Result<Vec<Stored>, TokenError> {
        self.change(|tokens| {
            let mut revoked = Vec::new();
            // An id goes before a name, which could be chosen to look like one.
            let is_id = tokens
                .iter()
                .any(|token| token.id == name && token.is_valid());
            let meant = tokens.iter_mut().filter(|token| token.is_valid());
            for token in meant.filter(|token| match is_id {
                true => token.id == name,
                false => token.name == name,
            }) {
                token.revoked = Some(now());
                revoked.push(token.clone());
            }
            match revoked.is_empty() {
                true => Err(TokenError::Unknown(name.to_owned())),
                false => Ok(revoked),
            }
        })
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Stored>) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let path = || self.0.clone();
        let failed = |source| TokenError::Write {
            path: path(),
            source,
        };
        let _lock = FileLock::acquire(&self.0)
            .map_err(failed)?
            .ok_or_else(|| TokenError::Locked { path: path() })?;
        let mut tokens = self.read()?.list;
        let outcome = change(&mut tokens)?;
        let oldest = now().saturating_sub(SHOWN.as_secs());
        tokens.retain(|token| token.ended().is_none_or(|ended| ended >= oldest));
        let written = Written {
            version: VERSION,
            tokens,
        };
        let mut text = serde_json::to_vec_pretty(&written).map_err(|error| failed(error.into()))?;
        text.push(b'\n');
        files::replace(&self.0, &[&text]).map_err(failed)?;
        Ok(outcome)
    }
}

/// The time in seconds since 1970.
fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| elapsed.as_secs())
}
