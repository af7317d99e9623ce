//! Import of the logins of mcpzip 0.1, one file each next to its configuration. It stored tokens without their client,
//! so they cannot be renewed: each is valid until its end.

use std::path::PathBuf;

use data_encoding::HEXLOWER;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::account::Account;
use super::mcp_remote::{Inherited, json};
use super::now;
use super::token::Token;
use crate::config::{Environment, older_config_file};

/// The number of bytes of the URL's hash in the name of a file.
const NAMED_BY: usize = 16;

/// The content of a file.
#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    /// A date and time (RFC 3339).
    expiry: Option<String>,
}

impl Account {
    /// The login that mcpzip 0.1 has at this server.
    #[must_use]
    pub(crate) fn inherited_from_older(&self) -> Option<Inherited> {
        let path = file(&self.context.variables, &self.remote.url)?;
        let tokens: Tokens = json(&path)?;
        if tokens.access_token.is_empty() {
            return None;
        }
        let end = tokens
            .expiry
            .and_then(|text| OffsetDateTime::parse(&text, &Rfc3339).ok());
        let token = Token {
            access: tokens.access_token.into(),
            refresh: None,
            given: now(),
            // An end before 1970 has passed as well.
            ends: end.map(|end| u64::try_from(end.unix_timestamp()).unwrap_or_default()),
            scopes: Vec::new(),
        };
        Some(Inherited {
            path,
            token,
            client: None,
            issuer: None,
        })
    }
}

/// The file with the login at `url`.
fn file(environment: &Environment, url: &str) -> Option<PathBuf> {
    let name = HEXLOWER.encode(&Sha256::digest(url)[..NAMED_BY]);
    Some(
        older_config_file(environment)?
            .with_file_name("auth")
            .join(name + ".json"),
    )
}
