//! The storage of logins: one file per server and URL, open to the user alone, replaced whole, and encrypted if the
//! system's keychain has a key. A plain file is encrypted when it is next written.
//!
//! A lock file lets one process at a time renew a token; the others then read its result, so a refresh token that is
//! valid once is used once.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::client::Client;
use super::error::LoginError;
use super::issuer::is_same;
use super::place::Held;
use super::token::Token;
use super::vault::Vault;
use crate::sealing::Sealed;
use crate::secret::Secret;
use crate::tool::ServerName;

/// The versions of the format: plain, encrypted, and encrypted for one person. Files of other versions are ignored.
const PLAIN: u32 = 1;
const SEALED: u32 = 2;
/// Encrypted, and that of one person.
const PERSONAL: u32 = 3;

/// The name of the records of identity providers, in place of that of a server.
const PROVIDER: &str = "identity-provider";

/// The bytes of the hash in the name of a record of everyone. That of a person is longer.
const SHARED: usize = 6;

/// One server's record.
#[derive(Debug, Clone)]
pub(super) struct Store {
    vault: Arc<Vault>,
    /// The name of the record: of the server, and of its URL.
    name: String,
    server: ServerName,
    url: String,
    /// The identity of the person that it is of, if it is not that of everyone.
    person: Option<String>,
    /// The configured client: its secret is in each record that is read, and in none that is written.
    configured: Option<ConfiguredClient>,
}

/// A client whose secret the configuration has, and the authorization server that it is for, if the configuration names it.
#[derive(Debug, Clone)]
struct ConfiguredClient {
    id: String,
    secret: Secret<String>,
    issuer: Option<String>,
}

/// The data about the logins at one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    server: String,
    url: String,
    /// The issuer of the current login.
    pub(super) current: Option<String>,
    /// The issuer that configured credentials belong to, unless `oauth.issuer` names it. It is written before they are
    /// sent for the first time.
    #[serde(default)]
    pub(super) pinned: Option<String>,
    /// The logins by issuer: data of one are never sent to another.
    #[serde(default)]
    pub(super) logins: BTreeMap<String, Login>,
    /// The scopes that were missing since the last login.
    #[serde(default)]
    pub(super) wanted: Vec<String>,
    /// The URL of the server's metadata, from its last refusal.
    #[serde(default)]
    pub(super) pointer: Option<String>,
    /// Whether it was decrypted with a key of the keychain.
    #[serde(skip)]
    pub(super) is_sealed: bool,
}

/// The outer part of a file.
#[derive(Serialize, Deserialize)]
struct Envelope {
    version: u32,
    server: String,
    url: String,
    sealed: Option<Sealed>,
}

/// The login at one authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Login {
    pub(super) resource: String,
    pub(super) token_endpoint: String,
    #[serde(default)]
    pub(super) revocation_endpoint: Option<String>,
    /// Whether an internet server named it.
    #[serde(default)]
    pub(super) is_public: bool,
    #[serde(default)]
    pub(super) client: Option<Client>,
    #[serde(default)]
    pub(super) token: Option<Token>,
}

impl Record {
    /// The current login, and its issuer.
    pub(super) fn login(&self) -> Option<(&str, &Login)> {
        let issuer = self.current.as_deref()?;
        Some((issuer, self.logins.get(issuer)?))
    }

    /// The issuer that configured credentials belong to; in records without it, that of the login.
    pub(super) fn pinned(&self) -> Option<&str> {
        self.pinned.as_deref().or(self.current.as_deref())
    }

    /// Whether configured credentials may be sent to `issuer`: it is the `configured` one, or else the one that they belong to.
    pub(super) fn is_in_use(&self, configured: Option<&str>, issuer: &str) -> bool {
        let in_use = configured.or(self.pinned());
        in_use.is_some_and(|in_use| is_same(in_use, issuer))
    }

    /// The current token.
    pub(super) fn token(&self) -> Option<&Token> {
        self.login()?.1.token.as_ref()
    }
}

/// The URL in the record of the login at an identity provider. No server has a URL with a space.
fn url_of_provider(issuer: &str, client: &str) -> String {
    format!("{issuer} {client}")
}

/// The name of a record.
fn name_of(server: &str, url: &str, person: Option<&str>) -> String {
    let (text, length) = match person {
        None => (format!("{server}\n{url}"), SHARED),
        Some(person) => (format!("{server}\n{url}\n{person}"), 16),
    };
    let hash = HEXLOWER.encode(&Sha256::digest(text)[..length]);
    format!("{server}-{hash}")
}

/// Whether `written` is the record called `name`, of this person.
#[cfg(feature = "cli")]
pub(super) fn is_of_person((name, written): (&str, &[u8]), person: &str) -> bool {
    let envelope = serde_json::from_slice(written);
    envelope.is_ok_and(|Envelope { server, url, .. }| name == name_of(&server, &url, Some(person)))
}

/// Whether the record called `name` is that of everyone at this server, at any URL.
#[cfg(feature = "cli")]
pub(super) fn is_of_server(name: &str, server: &str) -> bool {
    let rest = name.strip_prefix(server);
    let hash = rest.and_then(|rest| rest.strip_prefix('-'));
    hash.is_some_and(|hash| hash.len() == 2 * SHARED && HEXLOWER.decode(hash.as_bytes()).is_ok())
}

/// The name of the record of everyone at the identity provider `issuer`, where mcpzip is `client`.
#[cfg(feature = "cli")]
pub(super) fn name_at_provider(issuer: &str, client: &str) -> String {
    name_of(PROVIDER, &url_of_provider(issuer, client), None)
}

impl Store {
    /// The storage of the logins of `server` at `url` in `vault`; with `person`, those of this identity alone.
    pub(super) fn new(
        vault: &Arc<Vault>,
        server: &ServerName,
        url: &str,
        person: Option<&str>,
    ) -> Self {
        Self {
            vault: vault.clone(),
            name: name_of(server.as_str(), url, person),
            server: server.clone(),
            url: url.to_owned(),
            person: person.map(str::to_owned),
            configured: None,
        }
    }

    /// The storage of the logins of a client whose `secret` the configuration has, for the authorization server `issuer`, if it names one.
    pub(super) fn of_client(
        self,
        id: Option<&String>,
        secret: Option<&Secret<String>>,
        issuer: Option<&String>,
    ) -> Self {
        let configured = id.cloned().zip(secret.cloned());
        let configured = configured.map(|(id, secret)| ConfiguredClient {
            id,
            secret,
            issuer: issuer.cloned(),
        });
        Self { configured, ..self }
    }

    /// The storage of the login of `client` at the identity provider `issuer`, of the same person, which all servers share that name it.
    pub(super) fn of_provider(&self, issuer: &str, client: &str) -> Self {
        let url = url_of_provider(issuer, client);
        let server = ServerName::new(PROVIDER).expect("it is a name");
        Self::new(&self.vault, &server, &url, self.person.as_deref())
    }

    /// Whether it is that of one person.
    pub(super) fn is_of_person(&self) -> bool {
        self.person.is_some()
    }

    /// The version of its encrypted form.
    fn sealed_version(&self) -> u32 {
        match self.person {
            Some(_) => PERSONAL,
            None => SEALED,
        }
    }

    /// A new record.
    pub(super) fn empty(&self) -> Record {
        Record {
            version: PLAIN,
            server: self.server.to_string(),
            url: self.url.clone(),
            ..Record::default()
        }
    }

    /// Reads the stored login. If it is missing, an empty record. If it is damaged, it is renamed to `.damaged` and
    /// logged, and the record is empty.
    ///
    /// # Errors
    /// When it is encrypted and the keychain does not open it now. Only a new login may then overwrite it.
    pub(super) async fn read(&self) -> Result<Record, LoginError> {
        let read = self.vault.records.load(&self.name).await;
        let Some(bytes) = read.map_err(|source| self.failed(source))? else {
            return Ok(self.empty());
        };
        let record = match serde_json::from_slice::<Envelope>(&bytes) {
            Ok(Envelope {
                version: PLAIN,
                url,
                ..
            }) if url == self.url && self.person.is_none() => {
                serde_json::from_slice::<Record>(&bytes).ok()
            }
            Ok(Envelope {
                version,
                url,
                sealed: Some(sealed),
                ..
            }) if url == self.url && version == self.sealed_version() => {
                match self.vault.open(&self.context(), &sealed).await {
                    Ok(json) => serde_json::from_slice(&json).ok().map(|record| Record {
                        is_sealed: true,
                        ..record
                    }),
                    Err(Some(source)) => return Err(LoginError::Sealed { source }),
                    Err(None) => None,
                }
            }
            _ => None,
        };
        let record = record.unwrap_or_else(|| {
            tracing::warn!(server = %self.server, "the stored login is damaged, and was set aside");
            self.vault.records.set_aside(&self.name);
            self.empty()
        });
        Ok(self.with_secret(record, true))
    }

    /// A record with the secret of the configured client at the authorization server in use, or without it. Another one, where the same
    /// client was known before, never gets it.
    fn with_secret(&self, mut record: Record, has_secret: bool) -> Record {
        let Some(configured) = &self.configured else {
            return record;
        };
        let mut logins = std::mem::take(&mut record.logins);
        for (issuer, login) in &mut logins {
            if let Some(client) = &mut login.client
                && client.id == configured.id
            {
                let is_in_use = record.is_in_use(configured.issuer.as_deref(), issuer);
                client.secret = (has_secret && is_in_use).then(|| configured.secret.clone());
            }
        }
        Record { logins, ..record }
    }

    /// Prepares writing, so that data which cannot be obtained twice is written as soon as it arrives.
    ///
    /// # Errors
    /// When writing would fail now.
    pub(super) async fn prepare(&self) -> Result<(), LoginError> {
        self.vault.sealing_key().await.map(drop)
    }

    /// Replaces the stored record.
    ///
    /// # Cancel safety
    /// The record is written even if this is dropped.
    pub(super) async fn write(&self, record: &Record) -> Result<(), LoginError> {
        let record = self.with_secret(record.clone(), false);
        let json = serde_json::to_vec_pretty(&record).expect("a record is JSON");
        let json = match self.vault.sealing_key().await? {
            None => json,
            Some(key) => {
                let (server, url) = (self.server.to_string(), self.url.clone());
                let sealed = Some(key.seal(&self.context(), &json));
                serde_json::to_vec_pretty(&Envelope {
                    version: self.sealed_version(),
                    server,
                    url,
                    sealed,
                })
                .expect("it is JSON")
            }
        };
        let written = self.vault.records.save(&self.name, json).await;
        written.map_err(|source| self.failed(source))
    }

    /// The context that an encrypted record is bound to.
    fn context(&self) -> String {
        let (version, person) = (self.sealed_version(), self.person.as_deref());
        let context = format!("{version}\n{}\n{}", self.server, self.url);
        match person {
            Some(person) => format!("{context}\n{person}"),
            None => context,
        }
    }

    /// Removes everything. Returns whether there was anything.
    pub(super) async fn remove(&self) -> Result<bool, LoginError> {
        let removed = self.vault.records.remove(&self.name).await;
        removed.map_err(|source| self.failed(source))
    }

    /// Waits until no other process or task renews or replaces the login.
    pub(super) async fn lock(&self) -> Result<Held, LoginError> {
        let held = self.vault.records.lock(&self.name).await;
        held.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => LoginError::Busy {
                server: self.server.to_string(),
            },
            _ => self.failed(error),
        })
    }

    fn failed(&self, source: io::Error) -> LoginError {
        LoginError::Store {
            path: self.vault.records.shown(&self.name),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::place::LoginStorage;
    use super::*;

    fn vault(directory: &Path) -> Arc<Vault> {
        let (variables, tasks) = (
            crate::config::Environment::default(),
            crate::shutdown::Tasks::new(),
        );
        Arc::new(Vault::new(
            LoginStorage::Directory(directory.to_owned()),
            crate::config::Credentials::File,
            &variables,
            tasks,
        ))
    }

    fn path(store: &Store) -> std::path::PathBuf {
        store.vault.records.shown(&store.name)
    }

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
            is_public: true,
            client: None,
            token: Some(token),
        };
        let mut record = store.empty();
        record.current = Some("https://b.com".to_owned());
        record.logins.insert("https://b.com".to_owned(), login);
        record
    }

    #[tokio::test]
    async fn a_login_is_found_again_for_its_own_url_only() {
        let directory = tempfile::tempdir().unwrap();
        let (server, other) = (ServerName::new("a").unwrap(), ServerName::new("b").unwrap());
        let vault = vault(directory.path());
        let store = Store::new(&vault, &server, "https://a.com/mcp", None);
        let record = record(&store);
        store.write(&record).await.unwrap();
        assert_eq!(store.read().await.unwrap(), record);
        assert!(
            !format!("{record:?}").contains("the-access-token"),
            "{record:?}"
        );
        for (server, url) in [
            (&server, "https://evil.com/mcp"),
            (&other, "https://a.com/mcp"),
        ] {
            assert_eq!(
                Store::new(&vault, server, url, None)
                    .read()
                    .await
                    .unwrap()
                    .token(),
                None
            );
        }
        // A copied file is not a login either.
        let stolen = Store::new(&vault, &server, "https://evil.com/mcp", None);
        std::fs::copy(path(&store), path(&stolen)).unwrap();
        assert_eq!(stolen.read().await.unwrap().token(), None);
        assert!(store.remove().await.unwrap());
        assert!(!store.remove().await.unwrap());
    }

    #[tokio::test]
    async fn a_damaged_login_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::new(
            &vault(directory.path()),
            &ServerName::new("a").unwrap(),
            "https://a.com",
            None,
        );
        std::fs::write(path(&store), "{\"version\": 1").unwrap();
        assert_eq!(store.read().await.unwrap().current, None);
        assert!(!path(&store).exists() && path(&store).with_extension("damaged").exists());
    }
}
