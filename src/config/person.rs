//! `identity` of a server's entry with its references filled in.

use super::access_tokens::is_protected;
use super::error::EntryError;
use super::oauth::Grant;
use super::reader::At;
use super::server::Resolver;
use super::transport::Remote;
use super::upstream_identity::{
    ExchangeEntry, Forward, IdentityEntry, TokenExchange, UpstreamIdentity, unusable,
};
use crate::secret::Secret;

impl Resolver<'_> {
    /// `identity` of the server `remote` with its references filled in.
    pub(super) fn identity(
        &mut self,
        entry: Option<At<IdentityEntry>>,
        remote: &Remote,
    ) -> Result<UpstreamIdentity, At<EntryError>> {
        let Some(At { offset, value }) = entry else {
            return Ok(UpstreamIdentity::Shared);
        };
        let identity = match value {
            IdentityEntry::Shared => return Ok(UpstreamIdentity::Shared),
            IdentityEntry::PerUser => UpstreamIdentity::PerUser,
            IdentityEntry::Forward {
                header,
                is_assertion,
                audience,
            } => {
                let usual = match is_assertion {
                    true => "x-forwarded-assertion",
                    false => "x-forwarded-user",
                };
                let audience = audience.map(|written| self.plain("identity.audience", &written));
                let audience = audience.transpose()?.unwrap_or_else(|| remote.url.clone());
                UpstreamIdentity::Forward(Forward {
                    header: header.unwrap_or_else(|| usual.to_owned()),
                    assertion: is_assertion.then_some(audience),
                })
            }
            IdentityEntry::Exchange(entry) => {
                UpstreamIdentity::Exchange(Box::new(self.exchange(offset, *entry)?))
            }
        };
        let has_header = |name: &str| {
            let mut names = remote.headers.keys();
            names.any(|known| known.eq_ignore_ascii_case(name))
        };
        let problem = match &identity {
            _ if remote.headers_command.is_some() => {
                Some("cannot be used with `headers_command`, whose headers are those of everyone")
            }
            _ if remote
                .openapi
                .as_ref()
                .is_some_and(|it| !it.origins.is_empty()) =>
            {
                Some("cannot be used with `origins`, to which it is not sent")
            }
            UpstreamIdentity::Forward(forward) if has_header(&forward.header) => {
                Some("names a header that `headers` sets for everyone")
            }
            UpstreamIdentity::Exchange(_) | UpstreamIdentity::PerUser
                if has_header("authorization") =>
            {
                Some("cannot be used with `Authorization` in `headers`, which is that of everyone")
            }
            UpstreamIdentity::PerUser if remote.oauth.grant == Grant::ClientCredentials => Some(
                "cannot be used with `oauth.grant` \"client_credentials\", which logs no person in",
            ),
            _ => None,
        };
        match problem {
            None => Ok(identity),
            Some(problem) => Err(unusable(offset, problem)),
        }
    }

    fn exchange(
        &mut self,
        offset: usize,
        entry: ExchangeEntry,
    ) -> Result<TokenExchange, At<EntryError>> {
        let mut text = |key: &str, written: Option<At<String>>| {
            let key = format!("identity.exchange.{key}");
            let filled = written.map(|written| self.plain(&key, &written));
            let filled = filled.transpose()?.map(|text| text.trim().to_owned());
            Ok::<_, At<EntryError>>(filled.filter(|text| !text.is_empty()))
        };
        let (token_url, client_id) = (
            text("token_url", entry.token_url)?,
            text("client_id", entry.client_id)?,
        );
        let (audience, scope) = (
            text("audience", entry.audience)?,
            text("scope", entry.scope)?,
        );
        let client_secret = match entry.client_secret {
            Some(written) => {
                let secret = self.secret("identity.exchange.client_secret", &written)?;
                // An empty variable would make a client without a secret of it.
                if secret.trim().is_empty() {
                    let key = "identity.exchange.client_secret".to_owned();
                    return Err(At::new(written.offset, EntryError::Empty { key }));
                }
                Some(Secret::new(secret.trim().to_owned()))
            }
            None => None,
        };
        self.secrets.extend(client_secret.clone());
        let token_url = token_url.filter(|url| is_protected(url));
        let token_url = token_url.ok_or_else(|| {
            let key = "identity.exchange.token_url".to_owned();
            let problem = "must be a URL with `https://`; `http://` on this machine only";
            At::new(offset, EntryError::Unusable { key, problem })
        })?;
        let client_id = client_id.ok_or_else(|| {
            let key = "identity.exchange.client_id".to_owned();
            At::new(offset, EntryError::Empty { key })
        })?;
        let scopes = scope.unwrap_or_default();
        Ok(TokenExchange {
            token_url,
            client_id,
            client_secret,
            audience,
            scopes: scopes.split_whitespace().map(str::to_owned).collect(),
            has_actor: entry.has_actor,
        })
    }
}
