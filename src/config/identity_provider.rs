//! `oauth.idp` of a server's entry: the identity provider of an enterprise, at which a person logs in once for all servers that name it
//! (`oauth.grant` "id-jag").

use super::error::EntryError;
use super::key::{Table, Value, key};
use super::reader::{At, Field};
use crate::secret::Secret;

/// The keys of `oauth.idp`.
pub(super) const IDP: Table = &[
    key(
        "issuer",
        Value::Text,
        "The provider's URL, exactly as in the `iss` of its tokens. Required.",
    ),
    key(
        "client_id",
        Value::Text,
        "The id of mcpzip at the provider. Required.",
    ),
    key("client_secret", Value::Text, "Its secret there."),
    key(
        "scopes",
        Value::Texts,
        "Scopes of the login in addition to `openid`, and `offline_access` where the provider has it.",
    ),
];

const EXPECTED: &str = "an object with an `issuer` and a `client_id`";

/// `oauth.idp` as it stands in the file.
#[derive(Default)]
pub(super) struct IdpEntry {
    pub(super) offset: usize,
    pub(super) issuer: Option<At<String>>,
    pub(super) client_id: Option<At<String>>,
    pub(super) client_secret: Option<At<String>>,
    pub(super) scopes: Vec<At<String>>,
}

/// An enterprise's identity provider, and the client that mcpzip is registered as there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdentityProvider {
    /// Its issuer identifier.
    pub(crate) issuer: String,
    /// The id of mcpzip there.
    pub(crate) client_id: String,
    /// The client secret of mcpzip.
    pub(crate) client_secret: Option<Secret<String>>,
    /// The scopes of a login in addition to those that it always has.
    pub(crate) scopes: Vec<String>,
}

/// Reads `oauth.idp`.
pub(super) fn idp(field: &Field<'_>) -> Result<IdpEntry, At<EntryError>> {
    let mut entry = IdpEntry {
        offset: field.offset(),
        ..IdpEntry::default()
    };
    field.object()?;
    field.members(|name, member| {
        match name {
            "issuer" => entry.issuer = Some(member.text()?),
            "client_id" => entry.client_id = Some(member.text()?),
            "client_secret" => entry.client_secret = Some(member.text()?),
            "scopes" => entry.scopes = member.texts()?,
            _ => {
                let expected =
                    "one of the keys `issuer`, `client_id`, `client_secret` and `scopes`";
                return Err(member.wrong(expected));
            }
        }
        Ok(())
    })?;
    match (&entry.issuer, &entry.client_id) {
        (Some(_), Some(_)) => Ok(entry),
        _ => Err(field.wrong(EXPECTED)),
    }
}
