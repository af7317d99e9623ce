//! `http.auth.authorization_server` with its references filled in.

use std::time::Duration;

use reqwest::Url;

use super::access_tokens::{ResourceServer, URL_EXPECTED, is_protected};
use super::authorization::{
    AuthorizationServer, AuthorizationServerEntry, LoginEntry, LoginProvider,
};
use super::error::EntryError;
use super::network::Network;
use super::reader::At;
use super::server::Resolver;
use crate::secret::Secret;

const ORIGIN_EXPECTED: &str = "a URL with `https://` and without a path, such as `https://mcp.example.com`; `http://` on this machine only";
const REDIRECT_EXPECTED: &str =
    "a URL with `https://`, or with the scheme of an application, and without `#`";
/// Schemes that a browser runs or reads itself, and schemes without protection.
const UNSAFE_SCHEMES: [&str; 12] = [
    "http",
    "javascript",
    "data",
    "file",
    "blob",
    "vbscript",
    "about",
    "ws",
    "wss",
    "ftp",
    "view-source",
    "filesystem",
];

impl Resolver<'_> {
    /// `http.auth.authorization_server` with its references filled in.
    pub(super) fn authorization_server(
        &mut self,
        entry: AuthorizationServerEntry,
    ) -> Result<AuthorizationServer, At<EntryError>> {
        let wrong = |key: &str, expected: &str, found: Option<&str>| {
            let key = format!("http.auth.authorization_server.{key}");
            let found = found.map_or("nothing".to_owned(), |found| format!("`{found}`"));
            At::new(entry.offset, EntryError::value(&key, expected, found))
        };
        let url = entry
            .url
            .map(|written| self.plain("http.auth.authorization_server.url", &written))
            .transpose()?;
        let url = url.as_deref().map(|url| url.trim().trim_end_matches('/'));
        let is_origin = |url: &&str| {
            let parsed = Url::parse(url).ok();
            let origin = parsed.map(|url| url.origin().ascii_serialization());
            is_protected(url) && origin.as_deref() == Some(*url)
        };
        let origin = url
            .filter(is_origin)
            .ok_or_else(|| wrong("url", ORIGIN_EXPECTED, url))?;
        let mut redirects = Vec::new();
        for written in entry.redirects {
            let text = self.plain("http.auth.authorization_server.redirects", &written)?;
            let url = Url::parse(&text).ok().filter(is_redirect);
            url.ok_or_else(|| wrong("redirects", REDIRECT_EXPECTED, Some(&text)))?;
            redirects.push(text);
        }
        let documents = entry.client_documents.map(|hosts| {
            let hosts = hosts
                .into_iter()
                .map(|host| host.value.to_ascii_lowercase());
            hosts.collect()
        });
        let login = entry.login.map(|login| self.login(login)).transpose()?;
        Ok(AuthorizationServer {
            url: origin.to_owned(),
            login,
            invitations: entry.invitations.unwrap_or(true),
            redirects,
            client_documents: documents.unwrap_or_else(|| vec!["*".to_owned()]),
            lifetime: entry
                .lifetime
                .unwrap_or(Duration::from_secs(30 * 24 * 60 * 60)),
            network: Network::of(self.environment),
        })
    }

    fn login(&mut self, entry: LoginEntry) -> Result<LoginProvider, At<EntryError>> {
        const KEY: &str = "http.auth.authorization_server.login";
        let offset = entry.offset;
        let wrong = |name: &str, expected: &str| {
            let found = "nothing, or another value".to_owned();
            let fault = EntryError::value(&format!("{KEY}.{name}"), expected, found);
            At::new(offset, fault)
        };
        let mut text = |name: &str, written: Option<At<String>>| {
            let key = format!("{KEY}.{name}");
            let filled = written.map(|written| match name {
                "client_secret" => self.secret(&key, &written),
                _ => self.plain(&key, &written),
            });
            let filled = filled.transpose();
            filled.map(|text| text.map(|text| text.trim().to_owned()))
        };
        let issuer = text("issuer", entry.issuer)?.filter(|url| is_protected(url));
        let issuer = issuer.ok_or_else(|| wrong("issuer", URL_EXPECTED))?;
        let mut named = |name: &str, written: Option<At<String>>, usual: &str| {
            let text = text(name, written)?.unwrap_or_else(|| usual.to_owned());
            match text.is_empty() {
                true => Err(wrong(name, "a string that is not empty")),
                false => Ok(text),
            }
        };
        let client_id = named("client_id", entry.client_id, "")?;
        let client_secret = Secret::new(named("client_secret", entry.client_secret, "")?);
        let user = named("user", entry.user, "sub")?;
        let groups = named("groups", entry.groups, "groups")?;
        self.secrets.push(client_secret.clone());
        let scopes = entry.scopes.map(|scopes| {
            let scopes = scopes.into_iter().map(|scope| scope.value);
            scopes.collect()
        });
        let usual = || ["openid", "profile", "email"].map(str::to_owned).to_vec();
        let scopes: Vec<String> = scopes.unwrap_or_else(usual);
        if !scopes.iter().any(|scope| scope == "openid") {
            return Err(wrong("scopes", "a list that has \"openid\""));
        }
        Ok(LoginProvider {
            issuer: ResourceServer {
                issuer,
                audience: client_id,
                user,
                groups,
                network: Network::of(self.environment),
                ..ResourceServer::default()
            },
            client_secret,
            scopes,
        })
    }
}

fn is_redirect(url: &Url) -> bool {
    let is_safe = !UNSAFE_SCHEMES.contains(&url.scheme());
    let is_plain =
        url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    is_safe && is_plain && (url.scheme() != "https" || url.host().is_some())
}
