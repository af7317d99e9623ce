//! `http.auth.authorization_server`: the authorization server of mcpzip itself.

use std::time::Duration;

use reqwest::Url;

use super::error::EntryError;
use super::http_auth::{ResourceServer, URL_EXPECTED, is_protected};
use super::key::{Table, Value, key, with_default};
use super::network::Network;
use super::reader::{At, Field};
use super::server::Resolver;
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
const ORIGIN_EXPECTED: &str = "a URL with `https://` and without a path, such as `https://mcp.example.com`; `http://` on this machine only";
const REDIRECT_EXPECTED: &str =
    "a URL with `https://`, or with the scheme of an application, and without `#`";
const WAY_EXPECTED: &str = "an object with `login`, or without `\"invitations\": false`";

/// Schemes that a browser runs or reads itself, and such without protection.
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

/// `http.auth.authorization_server` as it stands in the file.
#[derive(Default)]
pub(super) struct AuthorizationServerEntry {
    pub(super) offset: usize,
    url: Option<At<String>>,
    login: Option<LoginEntry>,
    invitations: Option<bool>,
    redirects: Vec<At<String>>,
    client_documents: Option<Vec<At<String>>>,
    lifetime: Option<Duration>,
}

#[derive(Default)]
struct LoginEntry {
    offset: usize,
    issuer: Option<At<String>>,
    client_id: Option<At<String>>,
    client_secret: Option<At<String>>,
    user: Option<At<String>>,
    groups: Option<At<String>>,
    scopes: Option<Vec<At<String>>>,
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
                true => Err(wrong(name, "a text that is not empty")),
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
