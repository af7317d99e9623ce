//! The secrets of `${keyring:NAME}`: in the keychain of the system, or encrypted in a file.
//!
//! One file in the state directory has the names of all secrets, and the encrypted values of those that are not in
//! the keychain (`written.rs`, [docs/secrets.md](../../docs/secrets.md)). Because it has all names, it changes
//! whenever a secret does. `MCPZIP_SECRET_KEY` or a passphrase opens the file. The key that a passphrase opens stays in
//! the user's runtime directory until the session ends (`session.rs`), because a process without a terminal cannot ask for it.
//!
//! *Never*: asks a person; puts a value in an error or a log; falls back to another store for a secret that it cannot
//! read.

mod error;
mod passphrase;
mod session;
mod written;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(not(any(windows, target_os = "macos")))]
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub(crate) use error::KeyringError;
use session::SessionKey;
use written::{Entry, FileKey, Written};

use crate::config::{Environment, FileLock, Keyring, Paths, SecretFault, SecretName, Stamp, env};
use crate::keychain::{Keychain, KeychainError};
use crate::sealing::Key;
use crate::secret::Secret;

/// The largest value, in bytes.
pub(crate) const LARGEST_SECRET: usize = 64 * 1024;

/// For this time a keychain that did not answer is not asked again.
#[cfg(not(any(windows, target_os = "macos")))]
const PAUSE: Duration = Duration::from_secs(10);

/// The place of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    /// The keychain of the system.
    Keychain,
    /// The encrypted file.
    File,
}

/// A stored secret.
#[derive(Debug, Clone)]
pub(crate) struct Listed {
    /// The secret's name.
    pub(crate) name: SecretName,
    /// The store that has the secret.
    pub(crate) location: Location,
    /// When it was set, in seconds since 1970.
    pub(crate) changed: u64,
}

/// The way in which the encrypted file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    /// The file has no secret yet.
    None,
    /// By `MCPZIP_SECRET_KEY`.
    Key,
    /// By a passphrase.
    Passphrase,
}

/// The secrets of a user.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    session: Option<SessionKey>,
    /// The value of `MCPZIP_SECRET_KEY`.
    variable: Option<Secret<String>>,
    keychain: Option<Keychain>,
    /// The values that were read last, for a keychain that was locked since.
    read: Mutex<BTreeMap<SecretName, Secret<String>>>,
    #[cfg(not(any(windows, target_os = "macos")))]
    silent: Mutex<Option<(Instant, Duration)>>,
}

impl Location {
    /// The word for the place.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Keychain => "keychain",
            Self::File => "file",
        }
    }
}

impl Store {
    /// The secrets in the state directory of `paths`, for a session with `environment`. Nothing is read yet.
    #[must_use]
    pub(crate) fn of(paths: &Paths, environment: &Environment) -> Self {
        let path = paths.state_dir.join("secrets.json");
        let variable = environment.get(env::SECRET_KEY.name);
        let variable = variable.map(str::trim).filter(|key| !key.is_empty());
        Self {
            session: SessionKey::of(environment, &path),
            path,
            variable: variable.map(|key| Secret::new(key.to_owned())),
            keychain: Keychain::of(environment),
            read: Mutex::default(),
            #[cfg(not(any(windows, target_os = "macos")))]
            silent: Mutex::default(),
        }
    }

    /// `environment` with the secrets in the state directory of `paths`.
    #[must_use]
    pub(crate) fn around(paths: &Paths, environment: Environment) -> Environment {
        let store = Arc::new(Self::of(paths, &environment));
        environment.with_keyring(store)
    }

    /// The path of the file.
    #[must_use]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All secrets, by name.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn list(&self) -> Result<Vec<Listed>, KeyringError> {
        let entries = Written::read(&self.path)?.secrets.into_iter();
        let listed = entries.filter_map(|(name, entry)| {
            Some(Listed {
                name: SecretName::parse(&name)?,
                location: entry.location(),
                changed: entry.changed,
            })
        });
        Ok(listed.collect())
    }

    /// The way in which the file is opened.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn lock_kind(&self) -> Result<Lock, KeyringError> {
        Ok(match Written::read(&self.path)?.key {
            None => Lock::None,
            Some(FileKey::Variable { .. }) => Lock::Key,
            Some(FileKey::Passphrase { .. }) => Lock::Passphrase,
        })
    }

    /// The key that opens the file now. `None` if the file has no key yet.
    ///
    /// # Errors
    /// When the file is locked, or the key at hand is another.
    pub(crate) fn key(&self) -> Result<Option<Key>, KeyringError> {
        self.key_of(&Written::read(&self.path)?)
    }

    fn key_of(&self, written: &Written) -> Result<Option<Key>, KeyringError> {
        let Some(key) = &written.key else {
            return Ok(None);
        };
        let opened = match key {
            FileKey::Passphrase { .. } => Err(KeyringError::Locked),
            FileKey::Variable { .. } => self.variable_key().and_then(|outer| key.open(&outer)),
        };
        opened.map(Some).or_else(|error| {
            let session = self.session.as_ref().map_or(Ok(None), SessionKey::read);
            match session {
                Ok(Some(known)) if known.id() == key.id() => Ok(Some(known)),
                // The variable is not the key either, and that is what a person set.
                Err(_) if !matches!(error, KeyringError::Locked | KeyringError::NoVariable) => {
                    Err(error)
                }
                Err(unfit) => Err(unfit),
                Ok(_) => Err(error),
            }
        })
    }

    fn variable_key(&self) -> Result<Key, KeyringError> {
        let text = self.variable.as_ref().ok_or(KeyringError::NoVariable)?;
        Key::parse(text.expose().as_bytes()).ok_or(KeyringError::NotAKey)
    }

    /// Whether `MCPZIP_SECRET_KEY` is set.
    #[must_use]
    pub(crate) fn has_variable(&self) -> bool {
        self.variable.is_some()
    }

    /// Opens the file by `text`: its passphrase, or the value of `MCPZIP_SECRET_KEY`.
    ///
    /// # Errors
    /// When it is another, or the file has no key.
    pub(crate) fn open(&self, text: &Secret<String>) -> Result<Key, KeyringError> {
        match Written::read(&self.path)?.key {
            None => Err(KeyringError::NoKey),
            Some(key @ FileKey::Variable { .. }) => {
                let outer = Key::parse(text.expose().trim().as_bytes());
                key.open(&outer.ok_or(KeyringError::NotAKey)?)
            }
            Some(key @ FileKey::Passphrase { .. }) => key.open(&key.derive(text)?),
        }
    }

    /// Keeps `key` for the other processes of the user's session, until [`Store::lock`] or its end. Returns false where the system
    /// has no place that ends with the session.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn unlock(&self, key: &Key) -> Result<bool, KeyringError> {
        match &self.session {
            Some(session) => session.write(key).map(|()| true),
            None => Ok(false),
        }
    }

    /// Whether the system has a place for an opened key that ends with the session.
    #[must_use]
    pub(crate) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Removes the key from the user's session. Returns whether it was there.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub(crate) fn lock(&self) -> Result<bool, KeyringError> {
        let session = self.session.as_ref();
        session.map_or(Ok(false), SessionKey::remove)
    }

    /// Gives a file without secrets a key, by `MCPZIP_SECRET_KEY` or, if that is not set, by `passphrase`. Returns the key.
    ///
    /// # Errors
    /// When neither is there, or the file cannot be written.
    pub(crate) fn make_key(
        &self,
        passphrase: Option<&Secret<String>>,
    ) -> Result<Key, KeyringError> {
        self.change(|written| {
            if written.key.is_some() {
                return Err(KeyringError::HasKey);
            }
            let key = Key::random();
            written.key = Some(match passphrase {
                Some(passphrase) => FileKey::by_passphrase(&key, passphrase)?,
                None => FileKey::by_variable(&key, &self.variable_key()?),
            });
            Ok(key)
        })
    }

    /// Stores a secret at `location`, where an existing one of the name has to be. The file needs its `key`.
    ///
    /// # Errors
    /// When it cannot be stored. An existing one is then unchanged.
    pub(crate) fn set(
        &self,
        name: &SecretName,
        value: &Secret<String>,
        location: Location,
        key: Option<&Key>,
    ) -> Result<(), KeyringError> {
        let change = |written: &mut Written| {
            let entry = match location {
                Location::Keychain => Entry::in_keychain(),
                Location::File => {
                    let key = key.ok_or(KeyringError::Locked)?;
                    // Another process may have made a key in the meantime.
                    if written.key.as_ref().map(FileKey::id) != Some(key.id()) {
                        return Err(KeyringError::OtherKey);
                    }
                    Entry::sealed(name, value, key)
                }
            };
            written.secrets.insert(name.to_string(), entry);
            Ok(())
        };
        self.change_with_keychain(change, |(), keychain| match location {
            Location::Keychain => {
                let keychain = keychain.ok_or(KeyringError::NoKeychain)?;
                let label = format!("mcpzip: {name}");
                let value = value.expose().as_bytes();
                Ok(keychain.set(&keychain_name(name), &label, value)?)
            }
            Location::File => Ok(()),
        })
    }

    /// Checks that the keychain answers a question about the secret `name`.
    ///
    /// # Errors
    /// When there is no keychain, or it cannot be used now.
    pub(crate) fn check_keychain(&self, name: &SecretName) -> Result<(), KeyringError> {
        let keychain = self.keychain.as_ref().ok_or(KeyringError::NoKeychain)?;
        keychain.get(&keychain_name(name))?;
        Ok(())
    }

    /// Removes a secret. Returns false if there is none. The file needs no key for that.
    ///
    /// # Errors
    /// When it cannot be removed. It is then unchanged.
    pub(crate) fn remove(&self, name: &SecretName) -> Result<bool, KeyringError> {
        let change = |written: &mut Written| Ok(written.secrets.remove(name.as_str()));
        let removed = self.change_with_keychain(change, |removed, keychain| {
            if removed.as_ref().map(Entry::location) != Some(Location::Keychain) {
                return Ok(());
            }
            let keychain = keychain.ok_or(KeyringError::NoKeychain)?;
            Ok(keychain.remove(&keychain_name(name))?)
        });
        Ok(removed?.is_some())
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&mut Written) -> Result<T, KeyringError>,
    ) -> Result<T, KeyringError> {
        self.change_with_keychain(change, |_, _| Ok(()))
    }

    /// Changes the file and the keychain, or neither: the new file is complete before the keychain changes, and replaces the old one
    /// afterwards, when a value that is read by its new list is there.
    fn change_with_keychain<T>(
        &self,
        change: impl FnOnce(&mut Written) -> Result<T, KeyringError>,
        change_keychain: impl FnOnce(&T, Option<&Keychain>) -> Result<(), KeyringError>,
    ) -> Result<T, KeyringError> {
        let failed = |source| KeyringError::Write {
            path: self.path.clone(),
            source,
        };
        let _lock = FileLock::acquire(&self.path)
            .map_err(failed)?
            .ok_or_else(|| KeyringError::Busy {
                path: self.path.clone(),
            })?;
        let mut written = Written::read(&self.path)?;
        let outcome = change(&mut written)?;
        let replacement = written.prepare(&self.path).map_err(failed)?;
        change_keychain(&outcome, self.keychain.as_ref())?;
        replacement.commit().map_err(failed)?;
        Ok(outcome)
    }

    fn value(&self, name: &SecretName, written: &Written) -> Result<Secret<String>, KeyringError> {
        let entry = written.secrets.get(name.as_str());
        let entry = entry.ok_or_else(|| KeyringError::Unset(name.clone()))?;
        match entry.location() {
            Location::File => {
                let key = self.key_of(written)?.ok_or(KeyringError::NoKey)?;
                entry.open(name, &key)
            }
            Location::Keychain => self.in_the_keychain(name),
        }
    }

    /// Asks the keychain. One that does not answer costs its time limit once, not once for each secret.
    #[cfg(not(any(windows, target_os = "macos")))]
    fn ask(&self, keychain: &Keychain, name: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        let silent = *self.silent.lock();
        if let Some((at, limit)) = silent
            && at.elapsed() < PAUSE
        {
            return Err(KeychainError::Silent { limit });
        }
        let found = keychain.get(name);
        if let Err(KeychainError::Silent { limit }) = found {
            *self.silent.lock() = Some((Instant::now(), limit));
        }
        found
    }

    #[cfg(any(windows, target_os = "macos"))]
    #[expect(clippy::unused_self, reason = "as elsewhere")]
    fn ask(&self, keychain: &Keychain, name: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        keychain.get(name)
    }

    fn in_the_keychain(&self, name: &SecretName) -> Result<Secret<String>, KeyringError> {
        let keychain = self.keychain.as_ref().ok_or(KeyringError::NoKeychain)?;
        let found = match self.ask(keychain, &keychain_name(name)) {
            Ok(found) => found,
            Err(error) => return self.read.lock().get(name).cloned().ok_or(error.into()),
        };
        let bytes = found.ok_or_else(|| KeyringError::Lost(name.clone()))?;
        let text = String::from_utf8(bytes).map_err(|_| KeyringError::NoText)?;
        let value = Secret::new(text);
        self.read.lock().insert(name.clone(), value.clone());
        Ok(value)
    }
}

impl Keyring for Store {
    fn secret(&self, name: &SecretName) -> Result<Secret<String>, SecretFault> {
        let value = Written::read(&self.path).and_then(|written| self.value(name, &written));
        value.map_err(|error| match error {
            KeyringError::Unset(name) => SecretFault::Unset(name),
            error => SecretFault::Unavailable {
                reason: crate::text::chain(&error),
            },
        })
    }

    fn stamp(&self) -> Vec<Option<Stamp>> {
        let session = self.session.as_ref().map(SessionKey::path);
        let paths = std::iter::once(self.path.as_path()).chain(session);
        paths.map(Stamp::of).collect()
    }
}

/// The name of a secret in the keychain, which also has other entries of mcpzip.
fn keychain_name(name: &SecretName) -> String {
    format!("secret/{name}")
}
