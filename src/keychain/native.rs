//! The keychains of macOS and Windows.

#[cfg(target_os = "macos")]
use apple_native_keyring_store::keychain::Store as System;
use keyring_core::api::CredentialStoreApi as _;
use keyring_core::{Entry, Error};
#[cfg(windows)]
use windows_native_keyring_store::Store as System;

use super::{KeychainError, SERVICE};
use crate::config::Environment;

/// The keychain, which always exists on these systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Store;

impl Store {
    pub(super) fn of(_: &Environment) -> Option<Self> {
        Some(Self)
    }

    pub(super) fn get(&self, name: &str) -> Result<Option<Vec<u8>>, KeychainError> {
        match entry(name).and_then(|entry| entry.get_secret()) {
            Ok(secret) => Ok(Some(secret)),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(failed(&error)),
        }
    }

    pub(super) fn set(&self, name: &str, _label: &str, secret: &[u8]) -> Result<(), KeychainError> {
        entry(name)
            .and_then(|entry| entry.set_secret(secret))
            .map_err(|error| failed(&error))
    }

    pub(super) fn remove(&self, name: &str) -> Result<(), KeychainError> {
        match entry(name).and_then(|entry| entry.delete_credential()) {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(failed(&error)),
        }
    }
}

fn entry(name: &str) -> Result<Entry, Error> {
    System::new()?.build(SERVICE, name, None)
}

fn failed(error: &Error) -> KeychainError {
    match error {
        Error::NoStorageAccess(_) => KeychainError::Locked,
        other => KeychainError::Broken {
            reason: other.to_string(),
        },
    }
}
