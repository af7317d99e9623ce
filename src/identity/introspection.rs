//! Tokens other than JWTs: the issuer is asked whether a token is valid, and for whom (RFC 7662). An answer is used
//! for ten seconds, so a revoked token ends within this time. Without an answer the client is refused.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use super::Denial;
use super::issuer::{Checked, Issuer, LONGEST, SKEW, texts, time};
use super::requests::RequestError;
use crate::config::Introspection;

impl Issuer {
    /// Whether it says of a token whether it is valid.
    pub(super) fn introspects(&self) -> bool {
        self.options.introspection.is_some()
    }

    /// Asks whether a token is valid for this server.
    ///
    /// # Errors
    /// When it is not, or there is no answer.
    pub(super) async fn introspect(&self, token: &str) -> Result<Checked, Denial> {
        let endpoint = self.options.introspection.as_ref();
        let endpoint = endpoint.ok_or(Denial::Invalid)?;
        let is_token = |byte: u8| byte.is_ascii_graphic();
        if token.len() > LONGEST || !token.bytes().all(is_token) {
            return Err(Denial::Invalid);
        }
        let members = self.ask(endpoint, token).await.map_err(|error| {
            // One line for an outage, however many tokens come meanwhile.
            if self.answers.has_failed() {
                let issuer = &self.options.issuer;
                tracing::error!(issuer, %error, "tokens cannot be checked at the issuer");
            }
            Denial::Unavailable
        })?;
        if self.answers.has_recovered() {
            let issuer = &self.options.issuer;
            tracing::info!(issuer, "tokens are checked at the issuer again");
        }
        self.introspected(&members)
    }

    /// The answer about a token.
    pub(super) async fn ask(
        &self,
        endpoint: &Introspection,
        token: &str,
    ) -> Result<Map<String, Value>, RequestError> {
        let fields = [("token", token), ("token_type_hint", "access_token")];
        let credentials = (endpoint.client_id.as_str(), &endpoint.client_secret);
        let url = &endpoint.url;
        match self.requests.post(url, &fields, credentials, false).await? {
            Value::Object(members) if members.get("active").is_some_and(Value::is_boolean) => {
                Ok(members)
            }
            _ => Err(RequestError::Wrong {
                url: url.clone(),
                reason: "it has no `active`",
            }),
        }
    }

    /// Reads an answer about a token, if it is one for this server.
    fn introspected(&self, members: &Map<String, Value>) -> Result<Checked, Denial> {
        let options = &self.options;
        let now = SystemTime::now();
        let is_active = members["active"] == Value::Bool(true);
        let is_bearer = members.get("token_type").is_none_or(|kind| {
            let kind = kind.as_str().unwrap_or_default();
            ["bearer", "access_token"]
                .iter()
                .any(|one| kind.eq_ignore_ascii_case(one))
        });
        // A token that is bound to a key counts only with a proof of it.
        let is_bound = members.contains_key("cnf");
        let is_issuers = members
            .get("iss")
            .is_none_or(|issuer| *issuer == options.issuer.as_str());
        let is_for_us = texts(members.get("aud")).contains(&options.audience);
        let skew = Duration::from_secs(SKEW);
        let begins = members
            .get("nbf")
            .map_or(Some(UNIX_EPOCH), |nbf| time(Some(nbf)));
        let has_begun = begins.is_some_and(|begins| begins <= now + skew);
        let ends = match members.get("exp") {
            Some(ends) => time(Some(ends)).ok_or(Denial::Invalid)? + skew,
            // The answer itself has an end.
            None => now + Duration::from_secs(24 * 60 * 60),
        };
        if !is_active
            || !is_bearer
            || is_bound
            || !is_issuers
            || !is_for_us
            || !has_begun
            || ends <= now
        {
            return Err(Denial::Invalid);
        }
        let (claims, scopes) = self.claims(members)?;
        Ok(Checked {
            claims,
            scopes,
            expires: ends,
            key: None,
        })
    }
}
