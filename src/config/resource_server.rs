//! `http.auth` and `http.tls` with their references filled in.

use std::path::PathBuf;

use super::Network;
use super::access_tokens::{Introspection, ResourceServer, URL_EXPECTED, is_protected};
use super::error::EntryError;
use super::http_auth::{AuthEntry, HttpAuth, ResourceServerEntry};
use super::reader::At;
use super::server::Resolver;
use super::tls::{EXPECTED as TLS_EXPECTED, TlsEntry, TlsOptions};
use crate::secret::Secret;

impl Resolver<'_> {
    /// `http.auth` with its references filled in.
    pub(super) fn auth(&mut self, entry: AuthEntry) -> Result<HttpAuth, At<EntryError>> {
        let AuthEntry {
            tokens,
            forwarded,
            oauth,
            certificates,
            server,
            tool_scopes,
        } = entry;
        let offset = server.as_ref().map_or(0, |server| server.offset);
        let oauth = oauth.map(|entry| self.resource_server(entry)).transpose()?;
        let server = server
            .map(|entry| self.authorization_server(entry))
            .transpose()?;
        if let (Some(oauth), Some(server)) = (&oauth, &server)
            && oauth.audience != server.audience()
        {
            // Metadata name one resource.
            let key = "http.auth.authorization_server.url";
            let expected = "the URL of which `http.auth.oauth.audience` is the endpoint `/mcp`";
            let fault = EntryError::value(key, expected, format!("`{}`", server.url));
            return Err(At::new(offset, fault));
        }
        Ok(HttpAuth {
            tokens,
            forwarded: forwarded.map(Box::new),
            oauth: oauth.map(Box::new),
            certificates,
            server: server.map(Box::new),
            tool_scopes,
        })
    }

    /// `http.tls` with its references filled in.
    pub(super) fn tls(&mut self, entry: TlsEntry) -> Result<TlsOptions, At<EntryError>> {
        let offset = entry.offset;
        let mut file = |key: &str, written: Option<At<String>>| {
            let key = format!("http.tls.{key}");
            let path = written.map(|written| self.file(&key, &written));
            path.transpose().map(|path| path.map(PathBuf::from))
        };
        let missing = || {
            let found = "nothing".to_owned();
            At::new(offset, EntryError::value("http.tls", TLS_EXPECTED, found))
        };
        Ok(TlsOptions {
            cert: file("cert", entry.cert)?.ok_or_else(missing)?,
            key: file("key", entry.key)?.ok_or_else(missing)?,
            client_ca: file("client_ca", entry.client_ca)?,
        })
    }

    fn resource_server(
        &mut self,
        entry: ResourceServerEntry,
    ) -> Result<ResourceServer, At<EntryError>> {
        let offset = entry.offset;
        let secret = entry
            .client_secret
            .map(|written| self.secret("http.auth.oauth.client_secret", &written))
            .transpose()?
            .map(Secret::new);
        self.secrets.extend(secret.clone());
        let mut text = |name: &str, written: Option<At<String>>| {
            let key = format!("http.auth.oauth.{name}");
            let filled = written
                .map(|written| self.plain(&key, &written))
                .transpose();
            filled.map(|text| text.map(|text| text.trim().to_owned()))
        };
        let issuer = text("issuer", entry.issuer)?;
        let audience = text("audience", entry.audience)?;
        let jwks_url = text("jwks_url", entry.jwks_url)?;
        let user = text("user", entry.user)?;
        let groups = text("groups", entry.groups)?;
        let introspection_url = text("introspection_url", entry.introspection_url)?;
        let client_id = text("client_id", entry.client_id)?.filter(|id| !id.is_empty());
        let scopes = entry.scopes.into_iter().map(|scope| scope.value);
        let url = |name: &str, text: Option<String>| {
            let key = format!("http.auth.oauth.{name}");
            let found = || {
                text.as_ref()
                    .map_or("nothing".to_owned(), |text| format!("`{text}`"))
            };
            match &text {
                Some(text) if is_protected(text) => Ok(text.clone()),
                _ => Err(At::new(
                    offset,
                    EntryError::value(&key, URL_EXPECTED, found()),
                )),
            }
        };
        let named = |name: &str, text: Option<String>, usual: &str| match text {
            None => Ok(usual.to_owned()),
            Some(text) if !text.is_empty() => Ok(text),
            Some(_) => {
                let key = format!("http.auth.oauth.{name}");
                let fault =
                    EntryError::value(&key, "the name of a member of the token", "an empty text");
                Err(At::new(offset, fault))
            }
        };
        let audience_url = url("audience", audience)?;
        let introspection_url = introspection_url
            .map(|text| url("introspection_url", Some(text)))
            .transpose()?;
        let introspection = match (introspection_url, client_id, secret) {
            (None, None, None) => None,
            (Some(url), Some(client_id), Some(client_secret))
                if !client_secret.expose().is_empty() =>
            {
                Some(Introspection {
                    url,
                    client_id,
                    client_secret,
                })
            }
            _ => {
                let key = "http.auth.oauth.introspection_url";
                let expected = "together with `client_id` and `client_secret`";
                let found = "one of the three without the others".to_owned();
                return Err(At::new(offset, EntryError::value(key, expected, found)));
            }
        };
        Ok(ResourceServer {
            issuer: url("issuer", issuer)?,
            audience: audience_url,
            jwks_url: jwks_url
                .map(|text| url("jwks_url", Some(text)))
                .transpose()?,
            user: named("user", user, "sub")?,
            groups: named("groups", groups, "groups")?,
            scopes: scopes.collect(),
            introspection,
            network: Network::of(self.environment),
        })
    }
}
