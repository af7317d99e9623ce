//! The encryption of logins with one key in the system's keychain.
//!
//! The logins themselves are files, which are replaced whole under a lock. A keychain would be slow, may be locked
//! at any moment, holds as little as 2,560 bytes per item (Windows), and does not notify other processes of changes.
//! It is asked once per process, for the key; the protection is equal, because without the key the files are unreadable.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, oneshot};

use super::error::{LoginError, VaultError};
use super::lock::lock_file;
use super::place::{LoginStorage, Records};
use crate::config::{Credentials, Environment};
use crate::files;
use crate::keychain::Keychain;
use crate::sealing::{Key, Sealed};
use crate::secret::Secret;
use crate::shutdown::{Tasks, spawn_thread};

/// The name of the key in the keychain, and its label for the user.
const NAME: &str = "logins";
const LABEL: &str = "mcpzip: the key of its logins";

/// The largest file of a key, in bytes.
const LARGEST: u64 = 4096;

/// The time limit for the keychain; some ask the user first, who may be away.
const LIMIT: Duration = Duration::from_secs(3);

/// The time for which a failed keychain is not asked again.
const PAUSE: Duration = Duration::from_secs(30);

/// The records of the logins, and their encryption.
#[derive(Debug)]
pub(crate) struct Vault {
    pub(super) records: Records,
    credentials: Credentials,
    keychain: Option<Keychain>,
    /// The key of people's logins, in place of the keychain.
    own: Option<OwnKey>,
    /// Locked while the keychain is asked, so that it is asked once.
    state: Mutex<State>,
    has_warned: AtomicBool,
}

#[derive(Debug)]
enum State {
    Unasked,
    /// The first one encrypts.
    Known(Vec<Key>),
    Failed {
        error: VaultError,
        at: Instant,
    },
}

/// The key of people's logins: a variable, or a file that is made when it is first needed.
#[derive(Debug)]
pub(crate) struct OwnKey {
    /// The value of the variable.
    pub(crate) given: Option<Secret<String>>,
    /// The name of the variable.
    pub(crate) variable: &'static str,
    pub(crate) path: PathBuf,
}

impl Vault {
    /// Creates the vault of the logins in `place`; the keychain is asked at the first read or write. Records with the program are
    /// not encrypted here.
    #[must_use]
    pub(crate) fn new(
        place: LoginStorage,
        credentials: Credentials,
        variables: &Environment,
        tasks: Tasks,
    ) -> Self {
        let (state, has_warned) = (Mutex::new(State::Unasked), AtomicBool::new(false));
        let credentials = match &place {
            LoginStorage::Directory(_) => credentials,
            LoginStorage::Program(_) => Credentials::File,
        };
        Self {
            records: Records::new(place, tasks),
            credentials,
            keychain: Keychain::of(variables),
            own: None,
            state,
            has_warned,
        }
    }

    /// The vault of logins in the store of replicas, which are always encrypted, with its keys.
    #[must_use]
    pub(crate) fn of_store(place: LoginStorage, keys: Secret<String>, tasks: Tasks) -> Self {
        let key = OwnKey {
            given: Some(keys),
            variable: "MCPZIP_STORE_KEY",
            path: PathBuf::new(),
        };
        Self::of_people(place, key, tasks)
    }

    /// The vault of people's logins, which are always encrypted, with `key`.
    #[must_use]
    pub(crate) fn of_people(place: LoginStorage, key: OwnKey, tasks: Tasks) -> Self {
        Self {
            records: Records::new(place, tasks),
            credentials: Credentials::Keychain,
            keychain: None,
            own: Some(key),
            state: Mutex::new(State::Unasked),
            has_warned: AtomicBool::new(false),
        }
    }

    /// The keychain, if the configuration lets logins use one.
    #[must_use]
    pub(in crate::upstream) fn keychain(&self) -> Option<&Keychain> {
        let keychain = self.keychain.as_ref();
        keychain.filter(|_| self.credentials != Credentials::File)
    }

    /// The key for writing. `None` for a plain file.
    ///
    /// # Errors
    /// When the configuration requires a keychain and none is usable.
    pub(super) async fn sealing_key(&self) -> Result<Option<Key>, LoginError> {
        if self.credentials == Credentials::File {
            return Ok(None);
        }
        match self.keys(true).await {
            Ok(keys) => Ok(keys.into_iter().next()),
            Err(source) if self.own.is_some() => Err(LoginError::NoKey { source }),
            Err(source) if self.credentials == Credentials::Keychain => {
                Err(LoginError::Keychain { source })
            }
            Err(error) => {
                // A missing keychain is as normal as a present one.
                if self.keychain.is_some() && !self.has_warned.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        reason = %error,
                        "logins are kept in plain files, for you alone to read"
                    );
                }
                Ok(None)
            }
        }
    }

    /// Decrypts data that was encrypted for `context`.
    ///
    /// # Errors
    /// The reason why it cannot be decrypted now; `None` if it never can.
    pub(super) async fn open(
        &self,
        context: &str,
        sealed: &Sealed,
    ) -> Result<Vec<u8>, Option<VaultError>> {
        let keys = self.keys(false).await.map_err(Some)?;
        let Some(key) = keys.iter().find(|key| key.has_sealed(sealed)) else {
            return Err(Some(match &self.own {
                Some(own) => VaultError::LostKey { place: own.place() },
                None => VaultError::OtherKey,
            }));
        };
        key.open(context, sealed).ok_or(None)
    }

    /// The keys, of which the first one encrypts; creates one if there is none and `may_make`.
    async fn keys(&self, may_make: bool) -> Result<Vec<Key>, VaultError> {
        let mut state = self.state.lock().await;
        match &*state {
            State::Known(keys) => return Ok(keys.clone()),
            State::Failed { error, at } if at.elapsed() < PAUSE => return Err(error.clone()),
            State::Failed { .. } | State::Unasked => {}
        }
        let found = match self.fetch().await {
            Ok(None) if may_make => self.make().await,
            Ok(found) => Ok(found),
            Err(error) => Err(error),
        };
        match found {
            Ok(Some(keys)) => {
                *state = State::Known(keys.clone());
                Ok(keys)
            }
            Ok(None) => Err(VaultError::NoKey),
            Err(error) => {
                *state = State::Failed {
                    error: error.clone(),
                    at: Instant::now(),
                };
                Err(error)
            }
        }
    }

    async fn fetch(&self) -> Result<Option<Vec<Key>>, VaultError> {
        if let Some(own) = &self.own {
            return own.read();
        }
        let Some(keychain) = self.keychain.clone() else {
            return Err(VaultError::NoKeychain);
        };
        let text = aside(move || keychain.get(NAME)).await??;
        let key = text.map(|text| Key::parse(&text).ok_or(VaultError::NotAKey));
        key.map(|key| key.map(|key| vec![key])).transpose()
    }

    /// Creates a key. If several processes try, the first one wins.
    async fn make(&self) -> Result<Option<Vec<Key>>, VaultError> {
        let _lock = match self.records.directory() {
            Some(directory) => Some(lock_file(&directory.join("key.lock")).await?),
            None => None,
        };
        if let Some(key) = self.fetch().await? {
            return Ok(Some(key));
        }
        let text = Key::random().to_text();
        if let Some(own) = &self.own {
            files::replace(&own.path, &[text.expose().as_bytes(), b"\n"])?;
            return self.fetch().await;
        }
        let Some(keychain) = self.keychain.clone() else {
            return Ok(None);
        };
        aside(move || keychain.set(NAME, LABEL, text.expose().as_bytes())).await??;
        // The keychain's own answer counts.
        self.fetch().await
    }
}

impl OwnKey {
    /// Its place, in words.
    fn place(&self) -> String {
        match self.given {
            Some(_) => format!("`{}`", self.variable),
            None => format!("`{}`", self.path.display()),
        }
    }

    /// The keys; `None` if there is no file yet.
    fn read(&self) -> Result<Option<Vec<Key>>, VaultError> {
        let text = match &self.given {
            Some(text) => text.expose().clone().into_bytes(),
            None => match files::read_private(&self.path, LARGEST) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error.into()),
            },
        };
        let keys = text.split(|byte| *byte == b',');
        let keys = keys.map(|key| Key::parse(key.trim_ascii()));
        let keys = keys.collect::<Option<Vec<_>>>();
        let wrong = || VaultError::WrongKey {
            place: self.place(),
        };
        keys.map(Some).ok_or_else(wrong)
    }
}

/// Runs a slow operation on a thread with a time limit: a keychain may show a dialog.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, VaultError> {
    let (sender, receiver) = oneshot::channel();
    // The receiver is gone after the time limit.
    spawn_thread("keychain", move || drop(sender.send(work())))?;
    tokio::time::timeout(LIMIT, receiver)
        .await
        .map_err(|_| VaultError::Silent { limit: LIMIT })?
        .map_err(|_| VaultError::Lost)
}
