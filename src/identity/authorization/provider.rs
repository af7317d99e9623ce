//! The login of a person at an OpenID Connect provider, as a step of a client's authorization.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::config::{Claims, LoginProvider};
use crate::identity::Denial;
use crate::identity::issuer::Issuer;
use crate::identity::requests::RequestError;
use crate::secret::{is_same_secret, random_token};

/// The age at which metadata are fetched again.
const FRESH: Duration = Duration::from_secs(60);

/// An OpenID Connect provider.
#[derive(Debug)]
pub(super) struct Provider {
    issuer: Issuer,
    options: LoginProvider,
    redirect: String,
    /// Its latest metadata: strangers can begin logins, too.
    metadata: Mutex<Option<(Value, Instant)>>,
}

/// The secrets of a login: its end has to show that it belongs to its beginning.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Login {
    nonce: String,
    verifier: String,
}

impl Login {
    pub(super) fn new() -> Self {
        Self {
            nonce: random_token(),
            verifier: format!("{}{}", random_token(), random_token()),
        }
    }
}

/// Why a login did not identify a person.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoginFault {
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("the provider's answer has no ID token")]
    NoToken,
    #[error("the ID token is not one of this login ({0:?})")]
    Token(Denial),
}

impl Provider {
    /// The provider, which sends people back to `redirect`.
    pub(super) fn new(options: LoginProvider, redirect: String) -> Self {
        Self {
            issuer: Issuer::new(options.issuer.clone()),
            options,
            redirect,
            metadata: Mutex::default(),
        }
    }

    /// The URL by which it is known.
    pub(super) fn url(&self) -> &str {
        &self.options.issuer.issuer
    }

    async fn metadata(&self) -> Result<Value, RequestError> {
        let known = self.metadata.lock().clone();
        if let Some((known, _)) = known.filter(|(_, at)| at.elapsed() < FRESH) {
            return Ok(known);
        }
        let metadata = self.issuer.metadata().await?;
        *self.metadata.lock() = Some((metadata.clone(), Instant::now()));
        Ok(metadata)
    }

    /// Begins a login: the URL at which the person goes on.
    pub(super) async fn begin(&self, login: &Login, state: &str) -> Result<String, LoginFault> {
        let metadata = self.metadata().await?;
        let url = self.issuer.endpoint(&metadata, "authorization_endpoint")?;
        let mut url = Url::parse(&url).map_err(|_| RequestError::Wrong {
            url,
            reason: "it is not a URL",
        })?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&login.verifier));
        let scopes = self.options.scopes.join(" ");
        url.query_pairs_mut().extend_pairs([
            ("response_type", "code"),
            ("client_id", self.options.issuer.audience.as_str()),
            ("redirect_uri", self.redirect.as_str()),
            ("scope", scopes.as_str()),
            ("state", state),
            ("nonce", login.nonce.as_str()),
            ("code_challenge", challenge.as_str()),
            ("code_challenge_method", "S256"),
        ]);
        Ok(url.to_string())
    }

    /// The person who comes back with this code; `issuer` is the `iss` of the response, if it has one (RFC 9207).
    pub(super) async fn end(
        &self,
        login: &Login,
        code: &str,
        issuer: Option<&str>,
    ) -> Result<Claims, LoginFault> {
        let own = &self.options.issuer;
        if issuer.is_some_and(|issuer| issuer != own.issuer) {
            return Err(LoginFault::Token(Denial::Invalid));
        }
        let metadata = self.metadata().await?;
        let endpoint = self.issuer.endpoint(&metadata, "token_endpoint")?;
        let methods = metadata["token_endpoint_auth_methods_supported"].as_array();
        let has =
            |method: &str| methods.is_some_and(|methods| methods.iter().any(|one| one == method));
        let is_in_form = has("client_secret_post") && !has("client_secret_basic");
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", self.redirect.as_str()),
            ("code_verifier", login.verifier.as_str()),
        ];
        let credentials = (own.audience.as_str(), &self.options.client_secret);
        let answer = self
            .issuer
            .requests
            .post(&endpoint, &fields, credentials, is_in_form)
            .await?;
        let token = answer["id_token"].as_str().ok_or(LoginFault::NoToken)?;
        let members = self.issuer.members(token).await;
        let (_, members) = members.map_err(LoginFault::Token)?;
        let nonce = members.get("nonce").and_then(Value::as_str);
        let is_this_login = nonce.is_some_and(|nonce| is_same_secret(nonce, &login.nonce));
        let is_for_us = members
            .get("azp")
            .is_none_or(|party| *party == own.audience.as_str());
        if !is_this_login || !is_for_us {
            return Err(LoginFault::Token(Denial::Invalid));
        }
        let claims = self.issuer.claims(&members);
        let (claims, _) = claims.map_err(LoginFault::Token)?;
        let own = claims.identity.strip_prefix("oauth:");
        let identity = format!("login:{}", own.unwrap_or(&claims.identity));
        Ok(Claims { identity, ..claims })
    }
}
