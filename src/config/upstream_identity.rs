//! `identity` of a server's entry: in whose name requests are sent to it. A key that is not known could have been a restriction, so it
//! is a fault of the entry.

use super::error::EntryError;
use super::http_auth;
use super::key::{Table, Value, key, with_default};
use super::reader::{At, Field};
use crate::secret::Secret;

/// The values of `identity` that are words.
pub(super) const WORDS: &[&str] = &["shared", "forward", "per_user"];

/// The objects that `identity` may be.
pub(super) const IDENTITY: Table = &[
    key(
        "forward",
        Value::Object(FORWARD),
        "Each request has the person's name in a header.",
    ),
    key(
        "exchange",
        Value::Complete(&["token_url", "client_id"], EXCHANGE),
        "The person's own access token is exchanged for one of the server (RFC 8693).",
    ),
];

const FORWARD: Table = &[
    key(
        "header",
        Value::Text,
        "The header; X-Forwarded-User for a name and X-Forwarded-Assertion for an assertion by default.",
    ),
    with_default(
        "as",
        Value::Words(&["name", "assertion"]),
        "\"name\"",
        "Its value: the name, or a JWT of a minute about the person, signed by the gateway.",
    ),
    key(
        "audience",
        Value::Text,
        "The `aud` of the assertion; the server's URL by default.",
    ),
];

const EXCHANGE: Table = &[
    key(
        "token_url",
        Value::Text,
        "The token endpoint, an `https` URL. Required.",
    ),
    key(
        "client_id",
        Value::Text,
        "The gateway's client id at `token_url`. Required.",
    ),
    key(
        "client_secret",
        Value::Text,
        "The secret of the client `client_id`.",
    ),
    key(
        "audience",
        Value::Text,
        "The `audience` to ask for; without it, the server's URL is the `resource`.",
    ),
    key(
        "scope",
        Value::Text,
        "The scopes to ask for, with spaces between them.",
    ),
    with_default(
        "actor",
        Value::Flag,
        "false",
        "Whether the gateway also identifies itself, by an `actor_token`: a JWT that it has signed.",
    ),
];

const EXPECTED: &str =
    "\"shared\", \"forward\" or \"per_user\", or an object with one of `forward` and `exchange`";

/// In whose name requests are sent to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum UpstreamIdentity {
    /// In that of the configured credentials.
    #[default]
    Shared,
    /// In that of the configured credentials, with the person's name.
    Forward(Forward),
    /// In that of the person, by a token that the person's own was exchanged for.
    Exchange(Box<TokenExchange>),
    /// In that of the person, by the person's own login there.
    PerUser,
}

/// How a person is named to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forward {
    /// The header, in lower case.
    pub(crate) header: String,
    /// The `aud` of a signed assertion; `None` sends the bare name.
    pub(crate) assertion: Option<String>,
}

/// The exchange of a person's access token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenExchange {
    pub(crate) token_url: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<Secret<String>>,
    pub(crate) audience: Option<String>,
    pub(crate) scopes: Vec<String>,
    /// Whether the gateway shows an `actor_token`.
    pub(crate) has_actor: bool,
}

/// `identity` as it stands in the file.
pub(super) enum IdentityEntry {
    Shared,
    Forward {
        header: Option<String>,
        is_assertion: bool,
        audience: Option<At<String>>,
    },
    Exchange(Box<ExchangeEntry>),
    PerUser,
}

/// `identity.exchange` as it stands in the file.
#[derive(Default)]
pub(super) struct ExchangeEntry {
    pub(super) token_url: Option<At<String>>,
    pub(super) client_id: Option<At<String>>,
    pub(super) client_secret: Option<At<String>>,
    pub(super) audience: Option<At<String>>,
    pub(super) scope: Option<At<String>>,
    pub(super) has_actor: bool,
}

impl UpstreamIdentity {
    /// Whether all requests are sent in one name.
    #[must_use]
    pub(crate) fn is_shared(&self) -> bool {
        *self == Self::Shared
    }

    /// Its name in the configuration.
    #[must_use]
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Forward(_) => "forward",
            Self::Exchange(_) => "exchange",
            Self::PerUser => "per_user",
        }
    }
}

/// Reads `identity`.
pub(super) fn identity(field: &Field<'_>) -> Result<At<IdentityEntry>, At<EntryError>> {
    let word = match field.word() {
        Some("shared") => Some(IdentityEntry::Shared),
        Some("per_user") => Some(IdentityEntry::PerUser),
        Some("forward") => Some(IdentityEntry::Forward {
            header: None,
            is_assertion: false,
            audience: None,
        }),
        _ => None,
    };
    if let Some(entry) = word {
        return Ok(At::new(field.offset(), entry));
    }
    field.object().map_err(|_| field.wrong(EXPECTED))?;
    let mut entries = field.members(|name, member| match name {
        "forward" => forward(member),
        "exchange" => exchange(member),
        _ => Err(member.wrong("one of the keys `forward` and `exchange`")),
    })?;
    match (entries.pop(), entries.is_empty()) {
        (Some(entry), true) => Ok(At::new(field.offset(), entry)),
        _ => Err(field.wrong(EXPECTED)),
    }
}

fn forward(field: &Field<'_>) -> Result<IdentityEntry, At<EntryError>> {
    let (mut header, mut is_assertion, mut audience) = (None, false, None);
    field.object()?;
    field.members(|name, member| {
        match name {
            "header" => header = Some(http_auth::header(member)?),
            "as" => {
                is_assertion = match member.word() {
                    Some("name") => false,
                    Some("assertion") => true,
                    _ => return Err(member.wrong("\"name\" or \"assertion\"")),
                }
            }
            "audience" => audience = Some(member.text()?),
            _ => return Err(member.wrong("one of the keys `header`, `as` and `audience`")),
        }
        Ok(())
    })?;
    Ok(IdentityEntry::Forward {
        header,
        is_assertion,
        audience,
    })
}

fn exchange(field: &Field<'_>) -> Result<IdentityEntry, At<EntryError>> {
    let mut entry = ExchangeEntry::default();
    field.object()?;
    field.members(|name, member| {
        match name {
            "token_url" => entry.token_url = Some(member.text()?),
            "client_id" => entry.client_id = Some(member.text()?),
            "client_secret" => entry.client_secret = Some(member.text()?),
            "audience" => entry.audience = Some(member.text()?),
            "scope" => entry.scope = Some(member.text()?),
            "actor" => entry.has_actor = member.flag()?,
            _ => {
                let expected = "one of the keys `token_url`, `client_id`, `client_secret`, `audience`, `scope` and `actor`";
                return Err(member.wrong(expected));
            }
        }
        Ok(())
    })?;
    match (&entry.token_url, &entry.client_id) {
        (Some(_), Some(_)) => Ok(IdentityEntry::Exchange(Box::new(entry))),
        _ => Err(field.wrong("an object with a `token_url` and a `client_id`")),
    }
}

/// The fault of an entry without a remote server.
pub(super) fn without_url(entry: Option<&At<IdentityEntry>>) -> Result<(), At<EntryError>> {
    match entry {
        None => Ok(()),
        Some(at) if matches!(at.value, IdentityEntry::Shared) => Ok(()),
        Some(at) => Err(unusable(
            at.offset,
            "is for servers with a `url`: a local program has no request that could carry it, and acts with the rights of the gateway",
        )),
    }
}

pub(super) fn unusable(offset: usize, problem: &'static str) -> At<EntryError> {
    let key = "identity".to_owned();
    At::new(offset, EntryError::Unusable { key, problem })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use crate::config::{Config, Environment, UpstreamIdentity};

    fn parsed(entry: &Value) -> Config {
        let text = json!({ "mcpServers": { "s": entry } }).to_string();
        Config::parse(&text, Path::new("/config.json"), &Environment::default()).unwrap()
    }

    #[test]
    fn an_identity_that_is_not_understood_or_not_one_persons_is_a_fault() {
        let exchange = json!({ "exchange": { "token_url": "https://a/token", "client_id": "x" } });
        for (members, words) in [
            (json!({ "identity": "user" }), "\"shared\""),
            (json!({ "identity": "exchange" }), "\"shared\""),
            (json!({ "identity": {} }), "an object with one of"),
            (
                json!({ "identity": { "forward": {}, "exchange": exchange["exchange"] } }),
                "an object with one of",
            ),
            (
                json!({ "identity": { "forward": { "as": "jwt" } } }),
                "\"assertion\"",
            ),
            (
                json!({ "identity": { "forward": { "heder": "X-User" } } }),
                "one of the keys",
            ),
            (
                json!({ "identity": { "forward": { "header": "Authorization" } } }),
                "header",
            ),
            (
                json!({ "identity": { "forward": { "header": "Mcp-Session-Id" } } }),
                "header",
            ),
            (
                json!({ "identity": { "exchange": { "token_url": "https://a/token" } } }),
                "client_id",
            ),
            (
                json!({ "identity": { "exchange": { "token_url": "http://a/token", "client_id": "x" } } }),
                "https://",
            ),
            (
                json!({ "identity": { "exchange": { "token_url": "https://a/token", "client_id": "" } } }),
                "client_id",
            ),
            (
                json!({ "identity": { "exchange": { "token_url": "https://a/token", "client_id": "x", "client_secret": "" } } }),
                "client_secret",
            ),
            (
                json!({ "identity": "per_user", "headers": { "authorization": "Bearer all" } }),
                "everyone",
            ),
            (
                json!({ "identity": exchange, "headers": { "Authorization": "Bearer all" } }),
                "everyone",
            ),
            (
                json!({ "identity": "forward", "headers": { "x-forwarded-user": "all" } }),
                "everyone",
            ),
            (
                json!({ "identity": "per_user", "headers_command": "print" }),
                "everyone",
            ),
            (
                json!({ "identity": "per_user", "oauth": { "grant": "client_credentials", "client_id": "x", "client_secret": "y" } }),
                "client_credentials",
            ),
            (json!({ "identty": "per_user" }), "identity"),
        ] {
            let mut entry = json!({ "url": "https://s.example.com/mcp" });
            entry
                .as_object_mut()
                .unwrap()
                .extend(members.as_object().unwrap().clone());
            let config = parsed(&entry);
            let faults: Vec<String> = config.faults.iter().map(ToString::to_string).collect();
            assert!(
                faults.iter().any(|fault| fault.contains(words)),
                "{members}: {faults:?}"
            );
            assert!(config.servers.is_empty(), "{members}");
        }
        for target in [json!({ "command": "x" }), json!({ "skills": "x" })] {
            let mut entry = target;
            entry["identity"] = json!("per_user");
            let config = parsed(&entry);
            assert!(
                config.servers.is_empty() && config.faults.len() == 1,
                "{entry}"
            );
            entry["identity"] = json!("shared");
            assert_eq!(parsed(&entry).faults.len(), 0, "{entry}");
        }
    }

    #[test]
    fn an_identity_changes_which_list_is_found() {
        let hash = |identity: &str| {
            let entry = json!({ "url": "https://s.example.com/mcp", "identity": identity });
            let config = parsed(&entry);
            config.servers.values().next().unwrap().hash
        };
        assert_ne!(hash("shared"), hash("forward"));
        assert_ne!(hash("per_user"), hash("forward"));
        assert!(UpstreamIdentity::default().is_shared());
    }
}
