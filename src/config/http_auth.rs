//! `http.auth`: how clients over HTTP show who they are. Nothing in it is guessed: a key that is not known could have been a
//! restriction, so it is a fault, and the server does not start.

use std::net::IpAddr;

use ipnet::IpNet;

use super::access_tokens::ResourceServer;
use super::authorization::{
    AUTHORIZATION, AuthorizationServer, AuthorizationServerEntry, authorization_server,
};
use super::error::EntryError;
use super::key::{Table, Value, key, with_default};
use super::reader::{At, Field};
use super::tool_scopes::{ToolScopes, tool_scopes};

/// The keys of `http.auth`.
pub(super) const AUTH: Table = &[
    key(
        "tokens",
        Value::Flag,
        "Whether clients may show a token of `mcpzip token create`.",
    ),
    key(
        "forwarded",
        Value::Object(FORWARDED),
        "The user that a proxy in front has identified, in headers.",
    ),
    key(
        "oauth",
        Value::Object(OAUTH),
        "Access tokens of an OAuth issuer.",
    ),
    key(
        "authorization_server",
        Value::Complete(&["url"], AUTHORIZATION),
        "The authorization server of mcpzip itself, at which people and their clients log in.",
    ),
    key(
        "tool_scopes",
        Value::TextMap,
        "The scopes that an access token must have for calls of a tool, with spaces between them, by the tool's name or class as in a rule: {\"git__push\": \"git:write\", \"@destructive\": \"admin\"}. Other credentials have no scopes and need none.",
    ),
    key(
        "certificates",
        Value::Flag,
        "Whether clients may show a certificate of an authority in `http.tls.client_ca`; its common name is the person's name.",
    ),
];

const FORWARDED: Table = &[
    key(
        "user_header",
        Value::Text,
        "The header with the user's name. The proxy has to set it itself, also if its client sends one. Required.",
    ),
    key(
        "groups_header",
        Value::Text,
        "The header with the user's groups, with commas between them.",
    ),
    key(
        "from",
        Value::Texts,
        "The addresses of the proxy, such as `10.0.0.0/8` or `127.0.0.1`. A request from elsewhere with one of these headers is refused. Required.",
    ),
];

const OAUTH: Table = &[
    key(
        "issuer",
        Value::Text,
        "The issuer's URL, exactly as in the `iss` of its tokens. Required.",
    ),
    key(
        "audience",
        Value::Text,
        "The URL of this server as clients have it, such as `https://mcp.example.com/mcp`; the tokens have it in `aud`. Required.",
    ),
    key(
        "jwks_url",
        Value::Text,
        "The URL of the issuer's keys, if its metadata do not say it.",
    ),
    with_default(
        "user",
        Value::Text,
        "\"sub\"",
        "The member of a token with the name of the person; `email` counts only with `email_verified`.",
    ),
    with_default(
        "groups",
        Value::Text,
        "\"groups\"",
        "The member of a token with the person's groups; a path such as `realm_access.roles`, too.",
    ),
    key("scopes", Value::Texts, "The scopes that a token must have."),
    key(
        "introspection_url",
        Value::Text,
        "The URL at which the issuer says whether a token other than a JWT is valid (RFC 7662). Its answers count for ten seconds.",
    ),
    key(
        "client_id",
        Value::Text,
        "The id of this server at `introspection_url`.",
    ),
    key(
        "client_secret",
        Value::Text,
        "Its secret there, as `${VARIABLE}`.",
    ),
];

const EXPECTED: &str =
    "\"tokens\", or an object like {\"tokens\": true} in which at least one way is on";
const HEADER_EXPECTED: &str =
    "the name of a header, such as X-Forwarded-User; not one that HTTP itself or MCP uses";

/// Headers that are in requests for other reasons.
const TAKEN: [&str; 8] = [
    "authorization",
    "host",
    "origin",
    "cookie",
    "accept",
    "content-type",
    "connection",
    "last-event-id",
];

/// `http.auth` as it stands in the file.
#[derive(Default)]
pub(super) struct AuthEntry {
    pub(super) tokens: bool,
    pub(super) forwarded: Option<Forwarded>,
    pub(super) oauth: Option<ResourceServerEntry>,
    pub(super) certificates: bool,
    pub(super) server: Option<AuthorizationServerEntry>,
    pub(super) tool_scopes: ToolScopes,
}

/// `http.auth.oauth` as it stands in the file.
#[derive(Default)]
pub(super) struct ResourceServerEntry {
    pub(super) offset: usize,
    pub(super) issuer: Option<At<String>>,
    pub(super) audience: Option<At<String>>,
    pub(super) jwks_url: Option<At<String>>,
    pub(super) user: Option<At<String>>,
    pub(super) groups: Option<At<String>>,
    pub(super) scopes: Vec<At<String>>,
    pub(super) introspection_url: Option<At<String>>,
    pub(super) client_id: Option<At<String>>,
    pub(super) client_secret: Option<At<String>>,
}

/// How clients over HTTP show who they are; each way that is on may be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HttpAuth {
    /// Tokens of `mcpzip token create`.
    pub(crate) tokens: bool,
    /// A user that a proxy in front names.
    pub(crate) forwarded: Option<Box<Forwarded>>,
    /// Tokens of an OAuth issuer.
    pub(crate) oauth: Option<Box<ResourceServer>>,
    /// Certificates of clients.
    pub(crate) certificates: bool,
    /// The authorization server of mcpzip itself.
    pub(crate) server: Option<Box<AuthorizationServer>>,
    /// The scopes that calls of tools need.
    pub(crate) tool_scopes: ToolScopes,
}

/// A user that a proxy in front names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Forwarded {
    /// The header with the name, in lower case.
    pub(crate) user_header: String,
    /// The header with the groups, in lower case.
    pub(crate) groups_header: Option<String>,
    from: Vec<IpNet>,
}

impl Forwarded {
    /// Whether the proxy has this address.
    #[must_use]
    pub(crate) fn is_proxy(&self, address: IpAddr) -> bool {
        // A socket for both versions shows an address of version 4 as one of version 6.
        let address = address.to_canonical();
        self.from.iter().any(|network| network.contains(&address))
    }
}

/// Reads `http.auth`. `null`, like a missing key, switches it off; everything else that names no way to show an identity is a fault.
pub(super) fn auth(field: &Field<'_>) -> Result<AuthEntry, At<EntryError>> {
    let mut entry = AuthEntry::default();
    if field.word().is_some() {
        entry.tokens = field.word() == Some("tokens");
    } else {
        field.object().map_err(|_| field.wrong(EXPECTED))?;
        field.members(|name, field| {
            match name {
                "tokens" => entry.tokens = field.flag()?,
                "forwarded" => entry.forwarded = Some(forwarded(field)?),
                "oauth" => entry.oauth = Some(resource_server(field)?),
                "certificates" => entry.certificates = field.flag()?,
                "authorization_server" => entry.server = Some(authorization_server(field)?),
                "tool_scopes" => entry.tool_scopes = tool_scopes(field)?,
                _ => {
                    return Err(field.wrong(
                        "one of the keys `tokens`, `forwarded`, `oauth`, `authorization_server`, `certificates` and `tool_scopes`",
                    ));
                }
            }
            Ok(())
        })?;
    }
    match &entry {
        AuthEntry {
            tokens: false,
            forwarded: None,
            oauth: None,
            certificates: false,
            server: None,
            tool_scopes: _,
        } => Err(field.wrong(EXPECTED)),
        _ => Ok(entry),
    }
}

fn forwarded(field: &Field<'_>) -> Result<Forwarded, At<EntryError>> {
    let mut forwarded = Forwarded::default();
    field.object()?;
    field.members(|name, field| {
        match name {
            "user_header" => forwarded.user_header = header(field)?,
            "groups_header" => forwarded.groups_header = Some(header(field)?),
            "from" => {
                for text in field.texts()? {
                    forwarded.from.push(network(&text.value).ok_or_else(|| {
                        let found = format!("`\"{}\"`", text.value);
                        let expected = "addresses such as 10.0.0.0/8, fd00::/8 or 127.0.0.1";
                        let key = "http.auth.forwarded.from";
                        At::new(text.offset, EntryError::value(key, expected, found))
                    })?);
                }
            }
            _ => return Err(field.wrong("one of the keys `user_header`, `groups_header` and `from`")),
        }
        Ok(())
    })?;
    let is_same = forwarded.groups_header.as_ref() == Some(&forwarded.user_header);
    if forwarded.user_header.is_empty() || forwarded.from.is_empty() || is_same {
        // Without addresses, every client could name itself.
        return Err(
            field.wrong("an object with a `user_header`, and with at least one address in `from`")
        );
    }
    Ok(forwarded)
}

/// Reads the name of a header for something about a person.
pub(super) fn header(field: &Field<'_>) -> Result<String, At<EntryError>> {
    let name = field.text()?.value.to_ascii_lowercase();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let is_plain = !name.is_empty() && name.bytes().all(is_token);
    match is_plain && !TAKEN.contains(&name.as_str()) && !name.starts_with("mcp-") {
        true => Ok(name),
        false => Err(field.wrong(HEADER_EXPECTED)),
    }
}

fn network(text: &str) -> Option<IpNet> {
    let text = text.trim();
    let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse::<IpNet>().ok().or_else(address)
}

fn resource_server(field: &Field<'_>) -> Result<ResourceServerEntry, At<EntryError>> {
    let mut entry = ResourceServerEntry {
        offset: field.offset(),
        ..ResourceServerEntry::default()
    };
    field.object()?;
    field.members(|name, field| {
        match name {
            "issuer" => entry.issuer = Some(field.text()?),
            "audience" => entry.audience = Some(field.text()?),
            "jwks_url" => entry.jwks_url = Some(field.text()?),
            "user" => entry.user = Some(field.text()?),
            "groups" => entry.groups = Some(field.text()?),
            "scopes" => entry.scopes = field.texts()?,
            "introspection_url" => entry.introspection_url = Some(field.text()?),
            "client_id" => entry.client_id = Some(field.text()?),
            "client_secret" => entry.client_secret = Some(field.text()?),
            _ => {
                let expected = "one of the keys `issuer`, `audience`, `jwks_url`, `user`, `groups`, `scopes`, `introspection_url`, `client_id` and `client_secret`";
                return Err(field.wrong(expected));
            }
        }
        Ok(())
    })?;
    Ok(entry)
}
