//! Logins at remote servers: OAuth 2.1 as MCP asks for it (2025-11-25 and 2026-07-28, basic/authorization).
//!
//! A `Session` gives a server's requests their token and renews it; a [`Flow`] is one login of a person. Both stand on an
//! [`Account`], which knows where the server's login is kept. Nothing is asked of anybody before the server has said 401, or
//! 403 for want of scopes.
//!
//! It is our own small client rather than a library's: a token is renewed by one of many processes while the others wait
//! for it, secrets of clients outlive a restart, and every fetch has limits; a library leaves just these to its user.
//!
//! *Invariant*: a token goes to the origin it was given for and to its issuer, and into no text that anybody reads. A
//! configured secret or key goes to one issuer, whichever one the server names later.

mod account;
mod address;
mod assertion;
mod auth_required;
mod callback;
mod challenge;
mod client;
mod discovery;
mod error;
mod fetcher;
mod flow;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) mod fuzzing;
mod issuer;
mod lock;
mod mcp_remote;
mod older;
mod pinning;
mod refusal;
mod scopes;
mod session;
mod store;
mod stored_secret;
mod token;
mod vault;

pub(crate) use account::{Account, LoginStatus};
pub(super) use address::Guard;
pub(crate) use auth_required::AuthRequired;
pub(crate) use error::LoginError;
pub(crate) use flow::{Answer, Flow, LoginRequest};
pub(crate) use issuer::IssuerChange;
pub(crate) use mcp_remote::Inherited;
pub(super) use session::Session;
pub(crate) use vault::Vault;

/// The directory of the logins, within that of the state.
pub(crate) const DIRECTORY: &str = "logins";

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
fn now() -> u64 {
    // A clock before 1970 makes every token look fresh; the server then says that it is not.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}
