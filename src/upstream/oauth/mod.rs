//! Logins at remote servers: OAuth 2.1 as MCP specifies it (2025-11-25 and 2026-07-28, basic/authorization).
//!
//! A `TokenSource` gives a server's requests their token and renews it; a [`Flow`] is one login by a person. Both use an
//! [`Account`], which knows where the server's login is stored. No request of a login is sent before the server has
//! answered 401, or 403 for missing scopes.
//!
//! The OAuth client is our own: one of many processes renews a token while the others wait, client secrets survive a
//! restart, and every fetch has limits. A library leaves exactly these parts to its user.
//!
//! *Invariant*: a token is sent only to the origin and the issuer it was issued for, and appears in no output. A
//! configured secret or key goes to one issuer, even if the server names another one later.

mod account;
mod address;
mod assertion;
mod auth_required;
mod callback;
mod challenge;
mod client;
mod discovery;
mod error;
mod exchange;
mod fetcher;
mod flow;
#[cfg(feature = "cli")]
mod forgetting;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod given_token;
mod identity_login;
mod issuer;
mod lock;
mod mcp_remote;
mod older;
mod pinning;
mod place;
mod public_document;
mod refusal;
mod scopes;
mod session;
mod shared;
mod store;
mod stored_secret;
mod token;
mod vault;

pub(crate) use account::{Account, LoggedOut, LoginStatus};
pub(super) use address::AddressGuard;
pub(crate) use auth_required::AuthRequired;
pub(crate) use error::LoginError;
pub(super) use exchange::{Exchange, Exchanges};
pub(crate) use flow::{Flow, LoginRequest, RedirectAnswer};
#[cfg(feature = "cli")]
pub(crate) use forgetting::{at_server, forget, forget_shared, of_people};
pub(crate) use issuer::IssuerChange;
pub(crate) use mcp_remote::Inherited;
pub(crate) use place::{LoginPlace, LoginStorage};
pub(crate) use public_document::{Unfetched, public_document};
pub(super) use session::TokenSource;
pub(crate) use shared::SharedLogins;
pub(crate) use vault::{OwnKey, Vault};

/// The directory of people's logins, below that of the logins.
pub(crate) const PEOPLE: &str = "people";

/// The directory of the logins, below the state directory.
pub(crate) const DIRECTORY: &str = "logins";

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
fn now() -> u64 {
    // A clock before 1970 makes every token look fresh; the server then rejects it.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}
