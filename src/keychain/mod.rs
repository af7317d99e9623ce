//! The keychain of the system, which holds a few secrets of mcpzip. The user unlocks it by logging in.
//!
//! It is the Secret Service on Linux and similar systems, the login keychain on macOS, and the Credential Manager on
//! Windows. The Secret Service is called directly, because six methods over a socket are enough, whereas its
//! libraries bring a whole D-Bus stack or a C library. The user is never asked for a password: a locked keychain counts as
//! unusable.
//!
//! *Invariant*: every call blocks for a limited time. Callers run it off the threads that other tasks need.

#[cfg(any(target_os = "macos", windows))]
mod native;
#[cfg(all(unix, not(target_os = "macos")))]
mod secret_service;

#[cfg(any(target_os = "macos", windows))]
use native as system;
#[cfg(all(unix, not(target_os = "macos")))]
use secret_service as system;

use crate::config::Environment;

/// The service name of all of mcpzip's secrets.
const SERVICE: &str = "mcpzip";

/// The user's keychain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keychain {
    system: system::Store,
}

/// Why a keychain could not be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeychainError {
    /// There is no keychain.
    #[cfg(not(any(windows, target_os = "macos")))]
    #[error("there is no keychain on this machine ({reason})")]
    Absent {
        /// The reason.
        reason: String,
    },
    /// The keychain is locked.
    #[error("the keychain is locked")]
    Locked,
    /// The keychain did not answer in time.
    #[cfg(not(any(windows, target_os = "macos")))]
    #[error("the keychain gave no answer within {limit:?}")]
    Silent {
        /// The time limit.
        limit: std::time::Duration,
    },
    /// The keychain answered with an error, or with something unexpected.
    #[error("the keychain does not work: {reason}")]
    Broken {
        /// The reason, without any secret.
        reason: String,
    },
}

impl Keychain {
    /// The keychain of this system. `None` if there cannot be one. Nothing is sent to it yet.
    #[must_use]
    pub(crate) fn of(environment: &Environment) -> Option<Self> {
        system::Store::of(environment).map(|system| Self { system })
    }

    /// The secret with this name. `None` if there is no such secret.
    ///
    /// # Errors
    /// When the keychain cannot be used now.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        self.system.get(name)
    }

    /// Stores a secret under this name. Keychain programs show it as `label`.
    ///
    /// # Errors
    /// When the keychain cannot be used now.
    pub(crate) fn set(&self, name: &str, label: &str, secret: &[u8]) -> Result<(), KeychainError> {
        self.system.set(name, label, secret)
    }

    /// Removes the secret with this name, if there is one.
    ///
    /// # Errors
    /// When the keychain cannot be used now.
    pub(crate) fn remove(&self, name: &str) -> Result<(), KeychainError> {
        self.system.remove(name)
    }
}
