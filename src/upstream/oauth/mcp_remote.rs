//! Import of logins from `mcp-remote`, which many configurations use for remote servers. A login is imported at the
//! user's request, for exactly its URL.
//!
//! `mcp-remote` keeps two files per server, named by a hash of the URL and of its options. All its versions now share
//! one directory; earlier ones had a directory each.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use md5::{Digest as _, Md5};
use serde::Deserialize;
use serde_json::Value;

use super::account::{Account, LoginStatus};
use super::client::Client;
use super::error::LoginError;
use super::issuer::IssuerChange;
use super::scopes::scopes_in;
use super::stored_secret::hidden;
use super::token::Token;
use crate::config::env::{Environment, MCP_REMOTE_CONFIG_DIR};
use crate::config::{Grant, Remote};
use crate::secret::Secret;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 256 * 1024;

/// A login of another program: of `mcp-remote`, or of an older mcpzip.
#[derive(Debug)]
pub(crate) struct Inherited {
    /// The file it is in.
    pub path: PathBuf,
    pub(super) token: Token,
    pub(super) client: Option<GivenClient>,
    pub(super) issuer: Option<String>,
}

/// `…_tokens.json`.
#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<Value>,
    /// Milliseconds since 1970; older versions have none.
    expires_at: Option<Value>,
    scope: Option<String>,
    issuer: Option<String>,
}

/// `…_client_info.json`: what a registration gave.
#[derive(Debug, Deserialize)]
pub(super) struct GivenClient {
    client_id: String,
    #[serde(with = "hidden", default)]
    client_secret: Option<Secret<String>>,
    #[serde(default)]
    client_secret_expires_at: u64,
    token_endpoint_auth_method: Option<String>,
    issuer: Option<String>,
}

impl Inherited {
    /// The latest login of `mcp-remote` at the URL of `remote`.
    #[must_use]
    pub(crate) fn find(environment: &Environment, remote: &Remote) -> Option<Self> {
        let configured = environment
            .get(MCP_REMOTE_CONFIG_DIR.name)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from);
        let base = configured.or_else(|| Some(environment.home()?.join(".mcp-auth")))?;
        let entries = std::fs::read_dir(&base).into_iter().flatten().flatten();
        let is_version = |path: &Path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with("mcp-remote-"))
        };
        let directories = entries
            .map(|entry| entry.path())
            .filter(|path| is_version(path))
            .chain([base]);
        let names = hashes(remote);
        let written = |path: &Path| {
            std::fs::metadata(path)
                .and_then(|file| file.modified())
                .ok()
        };
        directories
            .flat_map(|directory| {
                names
                    .iter()
                    .map(move |name| directory.join(format!("{name}_tokens.json")))
            })
            .filter_map(|path| Some((written(&path)?, path)))
            .filter_map(|(time, path)| Some((time, Self::read(path, time)?)))
            .max_by_key(|(time, _)| *time)
            .map(|(_, found)| found)
    }

    fn read(path: PathBuf, written: SystemTime) -> Option<Self> {
        let tokens: Tokens = json(&path)?;
        let client = path
            .to_str()?
            .strip_suffix("_tokens.json")
            .map(|start| format!("{start}_client_info.json"));
        let client: Option<GivenClient> = client.and_then(|path| json(Path::new(&path)));
        let number = |value: Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
        let given = written
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| time.as_secs());
        let life = tokens.expires_in.and_then(number).map(|life| life as u64);
        let ends = tokens
            .expires_at
            .and_then(number)
            .map(|end| (end / 1000.0) as u64);
        let token = Token {
            access: tokens.access_token.into(),
            refresh: tokens
                .refresh_token
                .filter(|token| !token.is_empty())
                .map(Secret::new),
            given,
            ends: ends.or(life.map(|life| given.saturating_add(life))),
            scopes: tokens
                .scope
                .map(|text| scopes_in(&text))
                .unwrap_or_default(),
        };
        let issuer = tokens.issuer.or_else(|| client.as_ref()?.issuer.clone());
        Some(Self {
            path,
            token,
            client,
            issuer,
        })
    }
}

impl Account {
    /// The login of `mcp-remote` at this server.
    #[must_use]
    pub(crate) fn inherited(&self) -> Option<Inherited> {
        Inherited::find(&self.context.variables, &self.remote)
    }

    /// Imports a login of another program and tests it. If it fails, the previous login stays. A token of an unknown
    /// client lasts until its end.
    ///
    /// # Errors
    /// When it has ended, or belongs to another authorization server than the server names now.
    pub(crate) async fn take_over(&self, inherited: Inherited) -> Result<LoginStatus, LoginError> {
        if self.remote.oauth.grant != Grant::AuthorizationCode {
            return Err(self.not_offered("uses its own credentials, and needs no other login"));
        }
        let challenge = self.probe(None).await?.unwrap_or_default();
        let fetcher = self.fetcher().await;
        let (record, unread) = match self.store.read().await {
            Ok(record) => (record, None),
            Err(error) => (self.store.empty(), Some(error)),
        };
        let authority = self
            .authority(
                &fetcher,
                &challenge,
                unread.map_or(Ok(&record), Err),
                inherited.issuer.as_deref(),
                IssuerChange::Refused,
            )
            .await?;
        if inherited
            .issuer
            .as_ref()
            .is_some_and(|issuer| *issuer != authority.issuer)
        {
            return Err(self.not_offered("names another authorization server now; log in again"));
        }
        drop(fetcher);
        let client = Client::configured(&self.remote.oauth, &authority).or_else(|| {
            let client = inherited.client?;
            let (id, secret) = (client.client_id, client.client_secret);
            let method = client.token_endpoint_auth_method;
            let ends = Some(client.client_secret_expires_at).filter(|end| *end > 0);
            Some(Client::registered_elsewhere(
                &authority,
                id,
                secret,
                method.as_deref(),
                ends,
            ))
        });
        if client.is_none() && inherited.token.is_ending() {
            return Err(
                self.not_offered("has a login of an unknown client, which has ended; log in again")
            );
        }
        let before = {
            let _lock = self.store.lock().await?;
            let before = self
                .store
                .read()
                .await
                .unwrap_or_else(|_| self.store.empty());
            let mut record = before.clone();
            self.keep(
                &mut record,
                &authority,
                client,
                Some(inherited.token.clone()),
            )
            .await?;
            before
        };
        if let Err(error) = self.try_out(&inherited.token).await {
            let _lock = self.store.lock().await?;
            self.store.write(&before).await?;
            return Err(error);
        }
        self.status().await?.ok_or(LoginError::NothingToRenew)
    }

    async fn try_out(&self, token: &Token) -> Result<(), LoginError> {
        if !token.is_ending() && self.probe(Some(token)).await?.is_none() {
            return Ok(());
        }
        self.renew(token).await.map(drop)
    }
}

/// The names of the login's files: of the URL alone, and of the URL with the entry's headers, if it has any.
fn hashes(remote: &Remote) -> Vec<String> {
    let mut texts = vec![remote.url.clone()];
    if !remote.headers.is_empty() {
        // In the order of their names, as in `mcp-remote`.
        let headers: serde_json::Map<String, Value> = remote
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.expose().clone().into()))
            .collect();
        texts.push(format!("{}|{}", remote.url, Value::Object(headers)));
    }
    let hash = |text: &String| HEXLOWER.encode(&Md5::digest(text));
    texts.iter().map(hash).collect()
}

/// Reads a JSON file. `None` if it is missing or unreadable.
pub(super) fn json<T: for<'de> Deserialize<'de>>(path: &Path) -> Option<T> {
    let file = File::open(path)
        .ok()
        .filter(|file| file.metadata().is_ok_and(|data| data.is_file()))?;
    let mut text = Vec::new();
    file.take(LARGEST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{OAuth, Proxy};

    fn remote(url: &str, headers: &[(&str, &str)]) -> Remote {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned().into()));
        let (url, headers, oauth) = (url.to_owned(), headers.collect(), OAuth::default());
        Remote {
            url,
            headers,
            headers_command: None,
            openapi: None,
            proxy: Proxy::None,
            certificates: None,
            oauth,
            identity: crate::config::UpstreamIdentity::Shared,
            masker: crate::secret::Masker::default(),
        }
    }

    /// The hashes are those of `getServerUrlHash` in mcp-remote 0.15.1.
    #[test]
    fn files_are_named_as_there() {
        assert_eq!(
            hashes(&remote("https://mcp.example.com/mcp", &[])),
            ["94baabe3c3fadb285b26c035e4e86046"]
        );
        let remote = remote(
            "https://mcp.example.com/mcp",
            &[("X-Tenant", "a"), ("A-Key", "b\"c")],
        );
        assert_eq!(hashes(&remote)[1], "725c293b5eeaaf897e157b266c37504b");
    }

    #[test]
    fn the_login_written_last_is_found_for_its_own_url_only() {
        let home = tempfile::tempdir().unwrap();
        let variables =
            |name: &str| Environment::from_iter([(name, home.path().to_str().unwrap())]);
        let write = |directory: &str, url: &str, token: &str| {
            let directory = home.path().join(directory);
            std::fs::create_dir_all(&directory).unwrap();
            let name = &hashes(&remote(url, &[]))[0];
            let tokens = serde_json::json!({ "access_token": token, "token_type": "bearer", "expires_in": 60 });
            std::fs::write(
                directory.join(format!("{name}_tokens.json")),
                tokens.to_string(),
            )
            .unwrap();
        };
        let find =
            |url: &str| Inherited::find(&variables(MCP_REMOTE_CONFIG_DIR.name), &remote(url, &[]));
        assert!(find("https://a.com/mcp").is_none());
        write("mcp-remote-0.1.29", "https://a.com/mcp", "older");
        std::thread::sleep(std::time::Duration::from_millis(20));
        write("mcp-remote-v1", "https://a.com/mcp", "newer");
        let found = find("https://a.com/mcp").unwrap();
        assert_eq!(found.token.access.expose(), "newer");
        assert_eq!(found.token.ends, Some(found.token.given + 60));
        assert!(!format!("{found:?}").contains("newer"), "{found:?}");
        for other in [
            "https://a.com/mcp/",
            "https://a.com/sse",
            "https://b.com/mcp",
        ] {
            assert!(find(other).is_none(), "{other}");
        }
        let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        assert!(Inherited::find(&variables(name), &remote("https://a.com/mcp", &[])).is_none());
    }
}
