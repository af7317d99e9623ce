//! Where logins are kept: a file for each server and URL, open to the user alone, replaced whole.
//!
//! A lock beside it lets one process at a time renew a token; the others then read what the winner wrote, so that a refresh
//! token that is good once is used once.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::client::Client;
use super::error::LoginError;
use super::token::Token;
use crate::files;
use crate::tool::ServerName;

/// The version of the form, in the file; another one is no login of ours.
const VERSION: u32 = 1;

/// How long another process may be busy with a login.
const LOCK_LIMIT: Duration = Duration::from_secs(30);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// One server's file.
#[derive(Debug, Clone)]
pub(super) struct Store {
    path: PathBuf,
    server: ServerName,
    url: String,
}

/// All that is known of the logins at one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    server: String,
    url: String,
    /// Whose login counts.
    pub(super) current: Option<String>,
    /// By issuer: what one gave is never shown to another.
    #[serde(default)]
    pub(super) logins: BTreeMap<String, Login>,
    /// The scopes that were missing since the last login.
    #[serde(default)]
    pub(super) wanted: Vec<String>,
    /// Where the server's metadata is, by its last refusal.
    #[serde(default)]
    pub(super) pointer: Option<String>,
}

/// The login at one authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Login {
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    #[serde(default)]
    pub(super) revocation_endpoint: Option<String>,
    #[serde(default)]
    pub(super) client: Option<Client>,
    #[serde(default)]
    pub(super) token: Option<Token>,
}

/// The right to renew, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Record {
    /// The login that counts, and its issuer.
    pub(super) fn login(&self) -> Option<(&str, &Login)> {
        let issuer = self.current.as_deref()?;
        Some((issuer, self.logins.get(issuer)?))
    }

    /// The token that counts.
    pub(super) fn token(&self) -> Option<&Token> {
        self.login()?.1.token.as_ref()
    }
}

impl Store {
    /// The place of the logins of `server` at `url` under `directory`.
    pub(super) fn new(directory: &Path, server: &ServerName, url: &str) -> Self {
        let digest = Sha256::digest(format!("{server}\n{url}"));
        let mut hash = String::new();
        for byte in &digest[..6] {
            // Writing to a text cannot fail.
            let _ = write!(hash, "{byte:02x}");
        }
        let path = directory.join(format!("{server}-{hash}.json"));
        Self { path, server: server.clone(), url: url.to_owned() }
    }

    /// What is kept; an empty record where there is nothing, or nothing that can be read. That is set aside and said.
    pub(super) fn read(&self) -> Record {
        let empty =
            || Record { version: VERSION, server: self.server.to_string(), url: self.url.clone(), ..Record::default() };
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return empty(),
            Err(error) => {
                tracing::warn!(server = %self.server, %error, "the kept login cannot be read");
                return empty();
            }
        };
        match serde_json::from_slice::<Record>(&bytes) {
            Ok(record) if record.version == VERSION && record.url == self.url => record,
            _ => {
                tracing::warn!(server = %self.server, "the kept login is damaged, and was set aside");
                // If that does not work, the next login overwrites it.
                let _ = std::fs::rename(&self.path, self.path.with_extension("damaged"));
                empty()
            }
        }
    }

    /// Replaces what is kept.
    pub(super) fn write(&self, record: &Record) -> Result<(), LoginError> {
        let json = serde_json::to_vec_pretty(record).expect("a record is JSON");
        files::replace(&self.path, &[&json]).map_err(|source| self.failed(source))
    }

    /// Removes all of it; whether there was anything.
    pub(super) fn remove(&self) -> Result<bool, LoginError> {
        match std::fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(self.failed(source)),
        }
    }

    /// Waits until no other process, nor another task of this one, renews or replaces the login.
    pub(super) async fn lock(&self) -> Result<Lock, LoginError> {
        let path = self.path.with_extension("lock");
        let directory = path.parent().unwrap_or(Path::new(""));
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        files::private(&mut options);
        let file = files::create_private_directory(directory).and_then(|()| options.open(&path));
        let file = file.map_err(|source| self.failed(source))?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_LIMIT => tokio::time::sleep(LOCK_PAUSE).await,
                Err(TryLockError::WouldBlock) => return Err(LoginError::Busy { server: self.server.to_string() }),
                Err(TryLockError::Error(source)) => return Err(self.failed(source)),
            }
        }
    }

    fn failed(&self, source: io::Error) -> LoginError {
        LoginError::Store { path: self.path.clone(), source }
    }
}

/// A secret as the file has it, which is the only place that shows it.
pub(super) mod plain {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::secret::Secret;

    pub(in super::super) fn serialize<S: Serializer>(secret: &Secret<String>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(secret.expose())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Secret<String>, D::Error> {
        String::deserialize(from).map(Secret::new)
    }
}

/// The same for one that may be absent.
pub(super) mod hidden {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::secret::Secret;

    pub(in super::super) fn serialize<S: Serializer>(
        secret: &Option<Secret<String>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        secret.as_ref().map(Secret::expose).serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Secret<String>>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(Secret::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(store: &Store) -> Record {
        let token = Token {
            access: "the-access-token".to_owned().into(),
            refresh: Some("the-refresh-token".to_owned().into()),
            given: 1,
            ends: Some(2),
            scopes: vec!["a".to_owned()],
        };
        let login = Login {
            resource: "https://a.com/mcp".to_owned(),
            token_endpoint: "https://b.com/token".to_owned(),
            revocation_endpoint: None,
            client: None,
            token: Some(token),
        };
        let mut record = store.read();
        record.current = Some("https://b.com".to_owned());
        record.logins.insert("https://b.com".to_owned(), login);
        record
    }

    #[test]
    fn a_login_is_found_again_for_its_own_url_only() {
        let directory = tempfile::tempdir().unwrap();
        let (server, other) = (ServerName::new("a").unwrap(), ServerName::new("b").unwrap());
        let store = Store::new(directory.path(), &server, "https://a.com/mcp");
        let record = record(&store);
        store.write(&record).unwrap();
        assert_eq!(store.read(), record);
        assert!(!format!("{record:?}").contains("the-access-token"), "{record:?}");
        for (server, url) in [(&server, "https://evil.com/mcp"), (&other, "https://a.com/mcp")] {
            assert_eq!(Store::new(directory.path(), server, url).read().token(), None);
        }
        // A file that was copied is no login either.
        let stolen = Store::new(directory.path(), &server, "https://evil.com/mcp");
        std::fs::copy(&store.path, &stolen.path).unwrap();
        assert_eq!(stolen.read().token(), None);
        assert!(store.remove().unwrap());
        assert!(!store.remove().unwrap());
    }

    #[test]
    fn a_damaged_login_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(directory.path(), &ServerName::new("a").unwrap(), "https://a.com");
        std::fs::write(&store.path, "{\"version\": 1").unwrap();
        assert_eq!(store.read().current, None);
        assert!(!store.path.exists() && store.path.with_extension("damaged").exists());
    }
}
