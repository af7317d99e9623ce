//! The reasons why a secret cannot be stored or read. None has a part of a secret.

use std::io;
use std::path::PathBuf;

use crate::config::SecretName;
use crate::keychain::KeychainError;

/// A secret that cannot be stored or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyringError {
    /// There is no such secret.
    #[error("there is no secret `{0}`; `mcpzip secret set {0}` sets it")]
    Unset(SecretName),
    /// The list has the secret, and the keychain does not.
    #[error("the keychain has no secret `{0}` any more; `mcpzip secret set {0}` sets it")]
    Lost(SecretName),
    /// Another program has stored something else.
    #[error("the keychain has a value that is not text")]
    NoText,
    /// The file cannot be read.
    #[error("the secrets in `{path}` cannot be read")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file has another form.
    #[error(
        "the secrets in `{path}` are damaged: {problem}. Restore the file from a backup, or move it away and set the secrets again"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        problem: &'static str,
    },
    /// A newer release has written the file.
    #[error(
        "the secrets in `{path}` have the form {version} of a newer mcpzip; this one reads the form 1"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file's form.
        version: u64,
    },
    /// The file cannot be written.
    #[error("`{path}` cannot be written")]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another process holds the lock.
    #[error("another process has been changing `{path}` for ten seconds; try again")]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// The keychain cannot be used.
    #[error(transparent)]
    Keychain(#[from] KeychainError),
    /// The session has no keychain.
    #[error("there is no keychain in this session")]
    NoKeychain,
    /// The file needs its passphrase.
    #[error("the file of secrets is locked; `mcpzip secret unlock` asks for its passphrase")]
    Locked,
    /// The file has no key yet.
    #[error("the file of secrets has no key")]
    NoKey,
    /// The file has a key already.
    #[error("the file of secrets got a key in the meantime; try again")]
    HasKey,
    /// The file got another key.
    #[error("the file of secrets has another key now; try again")]
    OtherKey,
    /// The file needs the variable.
    #[error(
        "the file of secrets is locked; set MCPZIP_SECRET_KEY, or give its value to `mcpzip secret unlock`"
    )]
    NoVariable,
    /// The value is not a key.
    #[error("the key is not one that `mcpzip secret key` makes")]
    NotAKey,
    /// The key is another.
    #[error("this is not the key of the file of secrets")]
    WrongKey,
    /// The passphrase is another.
    #[error("this is not the passphrase of the file of secrets")]
    WrongPassphrase,
    /// An encrypted value was changed.
    #[error("the encrypted value of `{0}` is damaged; `mcpzip secret set {0}` sets it again")]
    Altered(SecretName),
    /// Other users could read the key of the session.
    #[error("the key of this session in `{path}` is not used, because {problem}")]
    Unsafe {
        /// The file or directory.
        path: PathBuf,
        /// The fault.
        problem: &'static str,
    },
}
