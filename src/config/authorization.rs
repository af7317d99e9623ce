//! `http.auth.authorization_server`: the authorization server of mcpzip itself.

use std::time::Duration;

use super::access_tokens::ResourceServer;
use super::error::EntryError;
use super::key::{Table, Value, key, with_default};
use super::network::Network;
use super::reader::{At, Field};
use crate::secret::Secret;

/// The keys of `http.auth.authorization_server`.
pub(super) const AUTHORIZATION: Table = &[
    key(
        "url",
        Value::Text,
        "The URL of this server as clients and browsers have it, without a path, such as `https://mcp.example.com`. Required.",
    ),
    key(
        "login",
        Value::Complete(&["issuer", "client_id", "client_secret"], LOGIN),
        "The OpenID Connect provider at which people log in. Without it they come by the links of `mcpzip token invite`.",
    ),
    with_default(
        "invitations",
        Value::Flag,
        "true",
        "Whether people may come by the links of `mcpzip token invite`.",
    ),
    key(
        "redirects",
        Value::Texts,
        "Redirect URLs that clients may have in addition to those of this machine (`http://127.0.0.1`, `http://[::1]`, `http://localhost`): exact ones, `https` or of an application's own scheme.",
    ),
    with_default(
        "client_documents",
        Value::Texts,
        "[\"*\"]",
        "The hosts whose documents may describe a client, by a URL in place of its id; `*` is every public host, `[]` none. Only a host that is named here may be in a private network.",
    ),
    with_default(
        "lifetime",
        Value::Time,
        "\"720h\"",
        "How long a client goes on without its user logging in again.",
    ),
];

const LOGIN: Table = &[
    key(
        "issuer",
        Value::Text,
        "The provider's URL, exactly as in the `iss` of its tokens. Required.",
    ),
    key(
        "client_id",
        Value::Text,
        "The id of this server at the provider, which permits the redirect URL `URL/oauth/callback`. Required.",
    ),
    key(
        "client_secret",
        Value::Text,
        "Its secret there, as `${VARIABLE}`. Required.",
    ),
    with_default(
        "user",
        Value::Text,
        "\"sub\"",
        "The member of the ID token with the name of the person; `email` counts only with `email_verified`.",
    ),
    with_default(
        "groups",
        Value::Text,
        "\"groups\"",
        "The member of the ID token with the person's groups; a path such as `realm_access.roles`, too.",
    ),
    with_default(
        "scopes",
        Value::Texts,
        "[\"openid\", \"profile\", \"email\"]",
        "The scopes that are asked for at the provider.",
    ),
];

const SERVER_EXPECTED: &str =
    "one of the keys `url`, `login`, `invitations`, `redirects`, `client_documents` and `lifetime`";
const LOGIN_EXPECTED: &str =
    "one of the keys `issuer`, `client_id`, `client_secret`, `user`, `groups` and `scopes`";
const WAY_EXPECTED: &str = "an object with `login`, or without `\"invitations\": false`";

/// `http.auth.authorization_server` as it stands in the file.
#[derive(Default)]
pub(super) struct AuthorizationServerEntry {
    pub(super) offset: usize,
    pub(super) url: Option<At<String>>,
    pub(super) login: Option<LoginEntry>,
    pub(super) invitations: Option<bool>,
    pub(super) redirects: Vec<At<String>>,
    pub(super) client_documents: Option<Vec<At<String>>>,
    pub(super) lifetime: Option<Duration>,
}

#[derive(Default)]
pub(super) struct LoginEntry {
    pub(super) offset: usize,
    pub(super) issuer: Option<At<String>>,
    pub(super) client_id: Option<At<String>>,
    pub(super) client_secret: Option<At<String>>,
    pub(super) user: Option<At<String>>,
    pub(super) groups: Option<At<String>>,
    pub(super) scopes: Option<Vec<At<String>>>,
}

/// The authorization server of mcpzip itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AuthorizationServer {
    /// The URL of this server, without a slash at the end: its issuer.
    pub(crate) url: String,
    /// The provider at which people log in.
    pub(crate) login: Option<LoginProvider>,
    /// Whether people come by invitations.
    pub(crate) invitations: bool,
    /// The redirect URLs in addition to those of this machine.
    pub(crate) redirects: Vec<String>,
    /// The hosts whose documents may describe clients; `*` is every public one.
    pub(crate) client_documents: Vec<String>,
    /// How long a client goes on without its user.
    pub(crate) lifetime: Duration,
    /// The way to clients' documents.
    pub(crate) network: Network,
}

/// An OpenID Connect provider at which people log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoginProvider {
    /// The provider, and the members of its ID tokens; the audience is our id there.
    pub(crate) issuer: ResourceServer,
    /// Our secret there.
    pub(crate) client_secret: Secret<String>,
    /// The scopes to ask for.
    pub(crate) scopes: Vec<String>,
}

impl AuthorizationServer {
    /// The URL of the endpoint, which its tokens are for.
    #[must_use]
    pub(crate) fn audience(&self) -> String {
        format!("{}/mcp", self.url)
    }
}

/// Reads `http.auth.authorization_server`.
pub(super) fn authorization_server(
    field: &Field<'_>,
) -> Result<AuthorizationServerEntry, At<EntryError>> {
    let mut entry = AuthorizationServerEntry {
        offset: field.offset(),
        ..AuthorizationServerEntry::default()
    };
    field.object()?;
    field.members(|name, field| {
        match name {
            "url" => entry.url = Some(field.text()?),
            "login" => entry.login = Some(login(field)?),
            "invitations" => entry.invitations = Some(field.flag()?),
            "redirects" => entry.redirects = field.texts()?,
            "client_documents" => entry.client_documents = Some(field.texts()?),
            "lifetime" => entry.lifetime = Some(field.positive_duration()?),
            _ => return Err(field.wrong(SERVER_EXPECTED)),
        }
        Ok(())
    })?;
    match entry.login.is_none() && entry.invitations == Some(false) {
        true => Err(field.wrong(WAY_EXPECTED)),
        false => Ok(entry),
    }
}

fn login(field: &Field<'_>) -> Result<LoginEntry, At<EntryError>> {
    let mut entry = LoginEntry {
        offset: field.offset(),
        ..LoginEntry::default()
    };
    field.object()?;
    field.members(|name, field| {
        match name {
            "issuer" => entry.issuer = Some(field.text()?),
            "client_id" => entry.client_id = Some(field.text()?),
            "client_secret" => entry.client_secret = Some(field.text()?),
            "user" => entry.user = Some(field.text()?),
            "groups" => entry.groups = Some(field.text()?),
            "scopes" => entry.scopes = Some(field.texts()?),
            _ => return Err(field.wrong(LOGIN_EXPECTED)),
        }
        Ok(())
    })?;
    Ok(entry)
}
