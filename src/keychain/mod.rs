//! The keychain of the system: a few secrets of ours, in the care of whatever the user unlocks when they log in.
//!
//! On Linux and its like that is the Secret Service, on macOS the login keychain, on Windows the Credential Manager. The Secret
//! Service is spoken with directly: it takes five calls over a socket, where the libraries for it bring a whole D-Bus or a C
//! library. Nobody is ever asked for a password from here: a keychain that is locked is one that cannot be used now.
//!
//! *Invariant*: every call blocks for a known time at most; callers keep it off the threads that others need.

#[cfg(all(unix, not(target_os = "macos")))]
mod dbus;
#[cfg(any(target_os = "macos", windows))]
mod native;
#[cfg(all(unix, not(target_os = "macos")))]
mod secret_service;

#[cfg(any(target_os = "macos", windows))]
use native as system;
#[cfg(all(unix, not(target_os = "macos")))]
use secret_service as system;

use crate::config::Environment;

/// Under which name all of our secrets are kept.
const SERVICE: &str = "mcpzip";

/// The keychain of the user.
#[derive(Debug, Clone)]
pub(crate) struct Keychain {
    system: system::Store,
}

/// Why a keychain gives or takes nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeychainError {
    /// Nobody is there.
    #[error("there is no keychain here ({reason})")]
    Absent {
        /// What was looked for.
        reason: String,
    },
    /// The user would have to unlock it.
    #[error("the keychain is locked")]
    Locked,
    /// It took too long.
    #[error("the keychain gave no answer within {limit:?}")]
    Silent {
        /// How long it had.
        limit: std::time::Duration,
    },
    /// It answered with an error, or with something else.
    #[error("the keychain does not work: {reason}")]
    Broken {
        /// What it said, without any secret.
        reason: String,
    },
}

impl Keychain {
    /// The keychain, where there can be one; it is not asked for anything yet.
    #[must_use]
    pub(crate) fn of(environment: &Environment) -> Option<Self> {
        system::Store::of(environment).map(|system| Self { system })
    }

    /// The secret of this name; nothing where there is none.
    ///
    /// # Errors
    /// When the keychain cannot be used now.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        self.system.get(name)
    }

    /// Keeps a secret under this name; `label` is what the user sees of it.
    ///
    /// # Errors
    /// When the keychain cannot be used now.
    pub(crate) fn set(&self, name: &str, label: &str, secret: &[u8]) -> Result<(), KeychainError> {
        self.system.set(name, label, secret)
    }
}
