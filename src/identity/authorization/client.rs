//! The clients of the authorization server. All are public: they have no secret, and PKCE protects their codes.
//!
//! A registration (RFC 7591) is not stored: the client's id contains the registered data, sealed. So anyone may
//! register, and it takes no space. An id that is a URL refers to a document that describes the client (client id
//! metadata documents, 2025-11-25 and 2026-07-28).

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use reqwest::Url;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::keys::Keys;
use crate::config::AuthorizationServer as Options;
use crate::tool::is_hidden;
use crate::upstream::oauth::{Unfetched, public_document};

/// The purpose of the seal of an id.
const PURPOSE: &str = "client";

/// The beginning of the id of a registered client.
const PREFIX: &str = "mcpzip_client_";

/// The most redirect URLs of a client, and the longest one in bytes.
const MOST_REDIRECTS: usize = 10;
const LONGEST_REDIRECT: usize = 512;

/// The longest name of a client in characters.
const LONGEST_NAME: usize = 80;

/// How long a document counts, and how long one that cannot be used is not fetched again.
const FRESH: Duration = Duration::from_secs(5 * 60);
const PAUSE: Duration = Duration::from_secs(10);

/// The most documents that are kept, and that are fetched at one time: of hosts that the configuration names, and of others.
const MOST_DOCUMENTS: usize = 1000;
const MOST_FETCHES: usize = 4;

/// How long a client waits until its document can be fetched.
const WAIT: Duration = Duration::from_secs(3);

/// The code of a fault that may pass.
pub(super) const NOT_NOW: &str = "temporarily_unavailable";

/// A client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    /// The client's id.
    pub(crate) id: String,
    /// The name that it gives itself.
    pub(crate) name: String,
    /// The host of the document that describes it.
    pub(crate) host: Option<String>,
    redirects: Vec<String>,
}

/// Why a client is refused, in the words of RFC 6749 and RFC 7591.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientFault {
    /// The code.
    pub(crate) code: &'static str,
    /// The reason, for its author.
    pub(crate) reason: String,
}

/// A document, and when it was fetched.
type Fetched = (Instant, Result<Client, ClientFault>);

/// The documents that were fetched.
#[derive(Debug)]
pub(super) struct Documents {
    known: Mutex<HashMap<String, Fetched>>,
    /// Held while a document of the host is fetched: a host that stalls holds one place.
    hosts: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
    /// The places for hosts that the configuration names, and for others.
    fetches: [Semaphore; 2],
}

fn fault(code: &'static str, reason: impl Into<String>) -> ClientFault {
    let reason = reason.into();
    ClientFault { code, reason }
}

impl Client {
    /// Whether a redirect URL is one of its own; on this machine, the port may be another one (RFC 8252, 7.3).
    pub(super) fn has_redirect(&self, asked: &str, options: &Options) -> bool {
        let is_same = |own: &String| {
            own == asked
                || matches!((without_port(own), without_port(asked)), (Some(own), Some(asked)) if own == asked)
        };
        // The list may have become shorter.
        is_permitted(asked, options) && self.redirects.iter().any(is_same)
    }

    /// The client of a registration or a document.
    fn of(members: &Value, id: String, options: &Options) -> Result<Self, ClientFault> {
        const REDIRECT: &str = "invalid_redirect_uri";
        let redirects = members["redirect_uris"].as_array();
        let redirects = redirects
            .filter(|list| !list.is_empty() && list.len() <= MOST_REDIRECTS)
            .ok_or_else(|| fault(REDIRECT, "`redirect_uris` must be a list with 1 to 10 URLs"))?;
        let redirects: Option<Vec<String>> = redirects
            .iter()
            .map(|url| url.as_str().map(str::to_owned))
            .collect();
        let redirects = redirects.unwrap_or_default();
        // A document names all redirects of its client; those that may not be used here are left to others.
        let is_document = id.starts_with("https://");
        let permitted: Vec<String> = redirects
            .iter()
            .filter(|url| is_permitted(url, options))
            .cloned()
            .collect();
        if permitted.is_empty() || !is_document && permitted.len() < redirects.len() {
            return Err(fault(
                REDIRECT,
                "redirects lead to this machine (`http://127.0.0.1`, `http://[::1]` or `http://localhost`); the administrator of the server permits others in `redirects`",
            ));
        }
        const METADATA: &str = "invalid_client_metadata";
        let has = |key: &str, wanted: &str| {
            members[key]
                .as_array()
                .is_none_or(|list| list.iter().any(|one| one == wanted))
        };
        if !has("grant_types", "authorization_code") || !has("response_types", "code") {
            return Err(fault(
                METADATA,
                "only the authorization code grant is there",
            ));
        }
        let method = members["token_endpoint_auth_method"].as_str();
        if is_document && method.is_some_and(|method| method != "none") {
            return Err(fault(
                METADATA,
                "clients authenticate by PKCE alone: `token_endpoint_auth_method` must be `none`",
            ));
        }
        Ok(Self {
            id,
            name: plain(members["client_name"].as_str().unwrap_or_default()),
            host: None,
            redirects: permitted,
        })
    }

    /// Registers a client; the answer is that of RFC 7591, 3.2.1.
    pub(super) fn register(
        members: &Value,
        keys: &Keys,
        options: &Options,
    ) -> Result<Value, ClientFault> {
        let client = Self::of(members, String::new(), options)?;
        if client
            .redirects
            .iter()
            .any(|url| url.len() > LONGEST_REDIRECT)
        {
            return Err(fault("invalid_redirect_uri", "a redirect is too long"));
        }
        let content = json!({ "n": client.name, "r": client.redirects }).to_string();
        let content = URL_SAFE_NO_PAD.encode(content);
        let seal = keys.seal(PURPOSE, &content);
        Ok(json!({
            "client_id": format!("{PREFIX}{content}.{seal}"),
            "client_name": client.name,
            "redirect_uris": client.redirects,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }))
    }

    /// The registered client with this id.
    fn registered(id: &str, keys: &Keys) -> Option<Self> {
        let (content, seal) = id.strip_prefix(PREFIX)?.split_once('.')?;
        if !keys.is_sealed(PURPOSE, content, seal) {
            return None;
        }
        let content = URL_SAFE_NO_PAD.decode(content).ok()?;
        let content: Value = serde_json::from_slice(&content).ok()?;
        let redirects = content["r"].as_array()?.iter();
        let redirects = redirects.map(|url| url.as_str().map(str::to_owned));
        Some(Self {
            id: id.to_owned(),
            name: content["n"].as_str()?.to_owned(),
            host: None,
            redirects: redirects.collect::<Option<_>>()?,
        })
    }
}

impl Documents {
    pub(super) fn new() -> Self {
        Self {
            known: Mutex::default(),
            hosts: Mutex::default(),
            fetches: [MOST_FETCHES, MOST_FETCHES].map(Semaphore::new),
        }
    }

    /// The lock of a host.
    fn host(&self, host: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut hosts = self.hosts.lock();
        if let Some(lock) = hosts.get(host).and_then(Weak::upgrade) {
            return lock;
        }
        hosts.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        hosts.insert(host.to_owned(), Arc::downgrade(&lock));
        lock
    }

    /// The client with this id.
    ///
    /// # Errors
    /// When there is none, or its document cannot be used.
    pub(super) async fn client(
        &self,
        id: &str,
        keys: &Keys,
        options: &Options,
    ) -> Result<Client, ClientFault> {
        if id.starts_with("https://") {
            return self.described(id, options).await;
        }
        let unknown = || {
            fault(
                "invalid_client",
                "there is no client with this id: register again",
            )
        };
        Client::registered(id, keys).ok_or_else(unknown)
    }

    async fn described(&self, id: &str, options: &Options) -> Result<Client, ClientFault> {
        let unusable = |reason: String| fault("invalid_client", reason);
        let url = Url::parse(id).ok().filter(|url| {
            // The URL is shown and compared as text.
            let is_plain = url.username().is_empty()
                && url.password().is_none()
                && url.fragment().is_none()
                && url.as_str() == id;
            is_plain && url.path().len() > 1 && id.len() <= LONGEST_REDIRECT
        });
        let url = url.ok_or_else(|| {
            unusable(
                "a client id that is a URL has `https` and a path, in its plain form".to_owned(),
            )
        })?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let is_named = options.client_documents.contains(&host);
        if !is_named && !options.client_documents.iter().any(|one| one == "*") {
            return Err(unusable(format!(
                "documents of `{host}` do not describe clients here"
            )));
        }
        let known = |known: &HashMap<String, (Instant, Result<Client, ClientFault>)>| {
            let (at, client) = known.get(id)?;
            let limit = if client.is_ok() { FRESH } else { PAUSE };
            (at.elapsed() < limit).then(|| client.clone())
        };
        if let Some(client) = known(&self.known.lock()) {
            // The list may have become shorter.
            return client;
        }
        let lock = self.host(&host);
        let turn = tokio::time::timeout(WAIT, async {
            let turn = lock.lock().await;
            let place = self.fetches[usize::from(is_named)].acquire().await;
            (turn, place)
        });
        let Ok(_turn) = turn.await else {
            let reason = "too many descriptions of clients are being fetched; try again later";
            return Err(fault(NOT_NOW, reason));
        };
        if let Some(client) = known(&self.known.lock()) {
            return client;
        }
        let fetched = public_document(&url, &options.network, is_named).await;
        let client = match fetched {
            Err(Unfetched::Forbidden(reason)) => Err(unusable(format!(
                "its document cannot be fetched: {reason}"
            ))),
            // Strangers must not learn by it what the network around the server looks like.
            Err(Unfetched::Failed(reason)) => {
                tracing::info!(
                    client = id,
                    reason,
                    "the document of a client cannot be fetched"
                );
                let reason = "its document cannot be fetched; the log of the server has the reason";
                Err(unusable(reason.to_owned()))
            }
            Ok(document) if document["client_id"] != id => Err(unusable(
                "the `client_id` in its document is not the document's URL".to_owned(),
            )),
            Ok(document) => {
                let client = Client::of(&document, id.to_owned(), options);
                client.map(|client| Client {
                    host: Some(host),
                    ..client
                })
            }
        };
        let mut all = self.known.lock();
        if all.len() >= MOST_DOCUMENTS {
            // Those of clients stay, as far as possible.
            all.retain(|_, (at, client)| client.is_ok() && at.elapsed() < FRESH);
        }
        if all.len() >= MOST_DOCUMENTS {
            all.clear();
        }
        all.insert(id.to_owned(), (Instant::now(), client.clone()));
        client
    }
}

/// Whether clients may have this redirect URL.
fn is_permitted(text: &str, options: &Options) -> bool {
    if options.redirects.iter().any(|listed| listed == text) {
        return true;
    }
    Url::parse(text).is_ok_and(|url| {
        let is_plain =
            url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        url.scheme() == "http" && is_plain && is_loopback(&url)
    })
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// A redirect URL of this machine without its port.
fn without_port(text: &str) -> Option<Url> {
    let mut url = Url::parse(text).ok()?;
    let is_ours = url.scheme() == "http" && is_loopback(&url);
    (is_ours && url.set_port(None).is_ok()).then_some(url)
}

/// A name as a page can show it: short, and without characters that hide or reorder text.
fn plain(name: &str) -> String {
    let shown = name.chars().filter(|c| !c.is_control() && !is_hidden(*c));
    let name: String = shown.take(LONGEST_NAME).collect();
    match name.trim() {
        "" => "a client without a name".to_owned(),
        name => name.to_owned(),
    }
}
