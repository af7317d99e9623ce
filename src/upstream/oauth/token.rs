//! Tokens: their request, their lifetime, and their header.

use reqwest::Url;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};

use super::client::Client;
use super::error::LoginError;
use super::fetcher::{MetadataFetcher, unusable};
use super::now;
use super::refusal::{misses_client_id, refusal};
use super::scopes::scopes_in;
use super::stored_secret::{hidden, plain};
use crate::config::PrivateKey;
use crate::secret::Secret;

/// A token with its lifetime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Token {
    #[serde(with = "plain")]
    pub(super) access: Secret<String>,
    #[serde(with = "hidden", default)]
    pub(super) refresh: Option<Secret<String>>,
    /// The time it was issued, in seconds since 1970 by our own clock.
    pub(super) given: u64,
    /// The time it ends, by our own clock. `None` if the server gave none.
    #[serde(default)]
    pub(super) ends: Option<u64>,
    pub(super) scopes: Vec<String>,
}

/// The token endpoint, and the client and resource of a request.
pub(super) struct TokenEndpoint<'a> {
    pub(super) fetcher: &'a MetadataFetcher<'a>,
    pub(super) issuer: &'a str,
    pub(super) endpoint: &'a Url,
    pub(super) resource: &'a str,
    pub(super) client: &'a Client,
    pub(super) key: Option<&'a PrivateKey>,
}

/// The response (RFC 6749, section 5.1). Some servers write numbers as texts.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    /// The identity of the person who logged in (OpenID Connect Core, section 3.1.3.3).
    id_token: Option<String>,
    token_type: Option<String>,
    refresh_token: Option<String>,
    expires_in: Option<serde_json::Value>,
    /// The kind of token that an exchange gives (RFC 8693, section 2.2.1).
    issued_token_type: Option<String>,
    scope: Option<String>,
}

impl Token {
    /// Whether it should be renewed before use: a tenth of its lifetime is left, at most a minute.
    pub(super) fn is_ending(&self) -> bool {
        self.ends.is_some_and(|end| {
            end.saturating_sub(now()) <= (end.saturating_sub(self.given) / 10).min(60)
        })
    }

    /// The value of the header `Authorization`. `None` if no header can carry it.
    pub(super) fn bearer(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.access.expose())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// When it should be renewed before use, in seconds since 1970; `None` if its end is not known.
    pub(super) fn usable_until(&self) -> Option<u64> {
        let end = self.ends?;
        Some(end - (end.saturating_sub(self.given) / 10).min(60))
    }

    /// Whether it has ended.
    pub(super) fn is_over(&self) -> bool {
        self.ends.is_some_and(|end| end <= now())
    }
}

impl TokenEndpoint<'_> {
    /// Requests an assertion of this type by a token exchange (RFC 8693).
    pub(super) async fn ask_assertion(
        &self,
        grant: &[(&'static str, &str)],
        kind: &str,
    ) -> Result<Secret<String>, LoginError> {
        let response = self.respond(grant).await?;
        match response.issued_token_type.as_deref() == Some(kind) {
            true => Ok(response.access_token.into()),
            false => Err(LoginError::Identity {
                issuer: self.issuer.to_owned(),
                reason: "its answer is another kind of token than an assertion",
            }),
        }
    }

    /// Requests an ID token; the second token is for renewals.
    pub(super) async fn ask_identity(
        &self,
        grant: &[(&'static str, &str)],
    ) -> Result<(Secret<String>, Option<Secret<String>>), LoginError> {
        let response = self.respond(grant).await?;
        let id_token = response.id_token.filter(|token| !token.is_empty());
        let id_token = id_token.ok_or_else(|| unusable(self.endpoint, "issued no ID token"))?;
        let refresh = response.refresh_token.filter(|token| !token.is_empty());
        Ok((id_token.into(), refresh.map(Secret::new)))
    }

    /// Requests a token with `grant`, a list of fields; `scopes` are its scopes if the answer has none.
    pub(super) async fn ask(
        &self,
        grant: &[(&'static str, &str)],
        scopes: &[String],
    ) -> Result<Token, LoginError> {
        let response = self.respond(grant).await?;
        self.token(response, scopes)
    }

    /// The answer to a request with `grant`.
    async fn respond(&self, grant: &[(&'static str, &str)]) -> Result<TokenResponse, LoginError> {
        let mut fields: Vec<_> = grant
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect();
        // RFC 8707, section 2.2: the token is valid for this server only.
        if !self.resource.is_empty() {
            fields.push(("resource", self.resource.to_owned()));
        }
        let authorization = self.client.sign(self.issuer, self.key, &mut fields);
        let secrets: Vec<Secret<String>> = fields
            .iter()
            .filter(|(name, _)| {
                matches!(
                    *name,
                    "code"
                        | "code_verifier"
                        | "refresh_token"
                        | "client_secret"
                        | "client_assertion"
                        | "subject_token"
                        | "actor_token"
                        | "assertion"
                )
            })
            .map(|(_, value)| value.clone().into())
            .chain(self.client.secrets(authorization.as_ref()))
            .collect();
        let mut fields: Vec<(&str, &str)> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let mut answer = self
            .fetcher
            .form(self.endpoint, &fields, authorization.clone())
            .await?;
        // Servers of the Python SDK look for the id in the form, next to the header; others refuse a request that has it in both.
        if authorization.is_some() && misses_client_id(&answer) {
            fields.push(("client_id", &self.client.id));
            answer = self
                .fetcher
                .form(self.endpoint, &fields, authorization)
                .await?;
        }
        match serde_json::from_slice::<TokenResponse>(&answer.body) {
            Ok(response) if answer.status.is_success() => Ok(response),
            _ => Err(refusal(self.issuer, &answer, &secrets)),
        }
    }

    /// The access token in an answer.
    fn token(&self, response: TokenResponse, scopes: &[String]) -> Result<Token, LoginError> {
        if response
            .token_type
            .is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer"))
        {
            return Err(unusable(
                self.endpoint,
                "issues tokens of another type than `Bearer`",
            ));
        }
        let is_access_token = |kind: &String| {
            let kind = kind.strip_prefix("urn:ietf:params:oauth:token-type:");
            matches!(kind, Some("access_token" | "jwt"))
        };
        let kind = response.issued_token_type.as_ref();
        if !kind.is_none_or(is_access_token) {
            return Err(unusable(
                self.endpoint,
                "issued another kind of token than an access token",
            ));
        }
        if response.access_token.is_empty()
            || response
                .access_token
                .contains(|c: char| !c.is_ascii_graphic())
        {
            return Err(unusable(
                self.endpoint,
                "issued a token that no header can carry",
            ));
        }
        let life = response.expires_in.and_then(|value| match value {
            serde_json::Value::Number(number) => number.as_f64(),
            serde_json::Value::String(text) => text.trim().parse().ok(),
            _ => None,
        });
        let now = now();
        // A float becomes the nearest integer, and a negative one becomes zero.
        let ends = life.map(|life| now.saturating_add(life as u64));
        Ok(Token {
            access: response.access_token.into(),
            refresh: response
                .refresh_token
                .filter(|token| !token.is_empty())
                .map(Secret::new),
            given: now,
            ends,
            scopes: response
                .scope
                .map_or_else(|| scopes.to_vec(), |text| scopes_in(&text)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(given_ago: u64, life: Option<u64>) -> Token {
        let given = now() - given_ago;
        let ends = life.map(|life| given + life);
        Token {
            access: "a".to_owned().into(),
            refresh: None,
            given,
            ends,
            scopes: Vec::new(),
        }
    }

    #[test]
    fn a_token_is_renewed_shortly_before_its_end() {
        for (ago, life, is_ending, is_over) in [
            (0, None, false, false),
            (0, Some(3600), false, false),
            (3550, Some(3600), true, false),
            (3600, Some(3600), true, true),
            (0, Some(30), false, false),
            (28, Some(30), true, false),
            (0, Some(0), true, true),
            (9999, Some(10), true, true),
        ] {
            let token = token(ago, life);
            assert_eq!(
                (token.is_ending(), token.is_over()),
                (is_ending, is_over),
                "{ago} s of {life:?} s"
            );
        }
    }
}
