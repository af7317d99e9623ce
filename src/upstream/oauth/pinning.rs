//! The authorization server that may get the client's configured credentials: that of `oauth.issuer`, or else the
//! first one, until a person logs in by name. A server that names another one later gets an error.
//!
//! The endpoints of an issuer may be on other hosts, as is common: its metadata names them, and comes from the
//! issuer's own origin, under the issuer's own name (RFC 8414, section 3.3).

use super::account::Account;
use super::challenge::Challenge;
use super::discovery::{Authority, discover};
use super::error::LoginError;
use super::fetcher::MetadataFetcher;
use super::issuer::{IssuerChange, is_same};
use super::store::Record;

impl Account {
    /// The authorization server that the server names, if our credentials may be sent to it. `record` is the stored
    /// one, if it can be read; of several servers, `preferred` precedes that of the stored login.
    ///
    /// # Errors
    /// When these credentials belong to another one, or if that is unknown.
    pub(super) async fn authority(
        &self,
        fetcher: &MetadataFetcher<'_>,
        challenge: &Challenge,
        record: Result<&Record, LoginError>,
        preferred: Option<&str>,
        change: IssuerChange,
    ) -> Result<Authority, LoginError> {
        let configured = self.remote.oauth.issuer.as_deref();
        let is_pinned = self.is_pinned() && change == IssuerChange::Refused;
        let record = match record {
            Ok(record) => Some(record),
            Err(error) if is_pinned => return Err(error),
            Err(_) => None,
        };
        let pinned = record.and_then(Record::pinned).filter(|_| is_pinned);
        let current = record.and_then(|record| record.current.as_deref());
        let known = configured.or(pinned).or(preferred).or(current);
        let authority = discover(fetcher, &self.url, challenge, known).await?;
        match configured.or(pinned) {
            Some(expected) if !is_same(expected, &authority.issuer) => {
                Err(self.other_issuer(&authority.issuer, expected))
            }
            _ => Ok(authority),
        }
    }

    /// Records that the configured credentials belong to `issuer`, before they are sent there.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub(super) async fn pin(&self, record: &mut Record, issuer: &str) -> Result<(), LoginError> {
        if !self.is_pinned() || record.pinned.as_deref() == Some(issuer) {
            return Ok(());
        }
        record.pinned = Some(issuer.to_owned());
        self.store.write(record).await
    }

    /// Whether a stored login at `issuer` may continue: it is at the configured one, if there is one.
    pub(super) fn may_go_on(&self, issuer: &str) -> bool {
        let configured = self.remote.oauth.issuer.as_deref();
        configured.is_none_or(|configured| is_same(configured, issuer))
    }

    /// The issuer that had the configured credentials so far, if `issuer` differs.
    pub(super) fn moved_from(&self, record: &Record, issuer: &str) -> Option<String> {
        record
            .pinned()
            .filter(|pinned| self.is_pinned() && !is_same(pinned, issuer))
            .map(str::to_owned)
    }

    /// Whether configured credentials are limited to the first issuer.
    fn is_pinned(&self) -> bool {
        let oauth = &self.remote.oauth;
        oauth.issuer.is_none() && (oauth.client_secret.is_some() || oauth.private_key.is_some())
    }

    fn other_issuer(&self, named: &str, expected: &str) -> LoginError {
        let server = self.server.to_string();
        let advice = match &self.remote.oauth.issuer {
            Some(_) => "if it has really moved, change its `oauth.issuer`".to_owned(),
            None => format!(
                "if it has really moved, run `mcpzip login {server}`, or set `oauth.issuer`"
            ),
        };
        LoginError::Issuer {
            server,
            named: named.to_owned(),
            expected: expected.to_owned(),
            advice,
        }
    }
}
