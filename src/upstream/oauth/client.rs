//! Our client identity at an authorization server: registered by hand, described by a document, or registered
//! dynamically, in this order (2025-11-25, basic/authorization, client registration approaches).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Url;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::assertion;
use super::discovery::Authority;
use super::error::LoginError;
use super::fetcher::MetadataFetcher;
use super::now;
use super::refusal::refusal;
use super::stored_secret::hidden;
use crate::config::{OAuth, PrivateKey};
use crate::secret::Secret;

/// A client of one authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    #[serde(with = "hidden", default)]
    pub(super) secret: Option<Secret<String>>,
    pub(super) method: AuthMethod,
    /// The redirect URL of a dynamic registration; other clients may use any.
    #[serde(default)]
    pub(super) redirect: Option<String>,
    /// When its secret ends, in seconds since 1970.
    #[serde(default)]
    secret_ends: Option<u64>,
}

/// The client authentication method at the token endpoint, by the names of OpenID Connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AuthMethod {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "private_key_jwt")]
    PrivateKey,
}

/// The response to a registration (RFC 7591, section 3.2.1).
#[derive(Deserialize)]
struct Registration {
    client_id: String,
    client_secret: Option<String>,
    #[serde(default)]
    client_secret_expires_at: u64,
    token_endpoint_auth_method: Option<String>,
}

impl Client {
    /// The configured client, or the one described by a document, if the server accepts such documents.
    pub(super) fn configured(oauth: &OAuth, authority: &Authority) -> Option<Self> {
        let named = |id: &str, secret: Option<Secret<String>>, method| Self {
            id: id.to_owned(),
            secret,
            method,
            redirect: None,
            secret_ends: None,
        };
        if let Some(id) = &oauth.client_id {
            let method = match (&oauth.private_key, &oauth.client_secret) {
                (Some(_), _) => AuthMethod::PrivateKey,
                (None, Some(_)) => authority.method_of_secret(),
                (None, None) => AuthMethod::None,
            };
            return Some(named(id, oauth.client_secret.clone(), method));
        }
        let url = oauth
            .client_metadata_url
            .as_ref()
            .filter(|_| authority.takes_metadata_urls)?;
        let method = if oauth.private_key.is_some() {
            AuthMethod::PrivateKey
        } else {
            AuthMethod::None
        };
        Some(named(url, None, method))
    }

    /// A client whose id and secret the configuration gives for one token endpoint.
    pub(super) fn given(id: &str, secret: Option<Secret<String>>) -> Self {
        let method = match secret {
            Some(_) => AuthMethod::Basic,
            None => AuthMethod::None,
        };
        Self {
            id: id.to_owned(),
            secret,
            method,
            redirect: None,
            secret_ends: None,
        }
    }

    /// A client that was registered by hand at `authority`.
    pub(super) fn known(authority: &Authority, id: String, secret: Option<Secret<String>>) -> Self {
        Self::registered_elsewhere(authority, id, secret, None, None)
    }

    /// Registers a client for `redirect` (RFC 7591), which is a page of a gateway or on this machine.
    pub(super) async fn register(
        fetcher: &MetadataFetcher<'_>,
        authority: &Authority,
        endpoint: &Url,
        redirect: &str,
        is_web: bool,
    ) -> Result<Self, LoginError> {
        let wanted = authority.method_of_registration();
        let description = json!({
            "client_name": "mcpzip",
            "redirect_uris": [redirect],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": wanted.as_str(),
            // Otherwise a server may treat us as a web site, which may not have such a redirect (2026-07-28).
            "application_type": if is_web { "web" } else { "native" },
        });
        let answer = fetcher.json(endpoint, &description).await?;
        if !answer.status.is_success() {
            return Err(refusal(&authority.issuer, &answer, &[]));
        }
        let Ok(response) = serde_json::from_slice::<Registration>(&answer.body) else {
            return Err(super::fetcher::unusable(
                endpoint,
                "sent a registration without a client id",
            ));
        };
        let method = match (
            response
                .token_endpoint_auth_method
                .as_deref()
                .and_then(AuthMethod::parse),
            &response.client_secret,
        ) {
            (_, None) => AuthMethod::None,
            (Some(method), Some(_)) => method,
            (None, Some(_)) => authority.method_of_secret(),
        };
        Ok(Self {
            id: response.client_id,
            secret: response
                .client_secret
                .filter(|secret| !secret.is_empty())
                .map(Secret::new),
            method,
            redirect: Some(redirect.to_owned()),
            secret_ends: Some(response.client_secret_expires_at).filter(|time| *time > 0),
        })
    }

    /// A client that another program registered. Its redirect belongs to that program, so no login of mcpzip can use it.
    pub(super) fn registered_elsewhere(
        authority: &Authority,
        id: String,
        secret: Option<Secret<String>>,
        method: Option<&str>,
        secret_ends: Option<u64>,
    ) -> Self {
        let method = match (method.and_then(AuthMethod::parse), &secret) {
            (_, None) => AuthMethod::None,
            (Some(method), Some(_)) => method,
            (None, Some(_)) => authority.method_of_secret(),
        };
        Self {
            id,
            secret,
            method,
            redirect: None,
            secret_ends,
        }
    }

    /// Whether its credentials are still valid.
    pub(super) fn is_valid(&self) -> bool {
        self.secret_ends.is_none_or(|end| end > now() + 60)
    }

    /// Whether it has what its method of authentication needs, which may be `key`.
    pub(super) fn is_able_to_sign(&self, key: Option<&PrivateKey>) -> bool {
        match self.method {
            AuthMethod::None => true,
            AuthMethod::Basic | AuthMethod::Post => self.secret.is_some(),
            AuthMethod::PrivateKey => key.is_some(),
        }
    }

    /// The secrets of a request with this header, which a server may repeat: the header, the secret in it, and that as it is written
    /// in a form.
    pub(super) fn secrets(&self, authorization: Option<&HeaderValue>) -> Vec<Secret<String>> {
        let header = authorization.and_then(|header| header.to_str().ok());
        let header = header.map(|header| header.trim_start_matches("Basic ").to_owned());
        let encoded = self.secret.as_ref();
        let encoded = encoded.map(|secret| form_encoded(secret.expose()));
        let texts = header.into_iter().chain(encoded).map(Secret::new);
        texts.chain(self.secret.clone()).collect()
    }

    /// Adds the client authentication to the fields of a token request, or returns the header for it.
    pub(super) fn sign(
        &self,
        issuer: &str,
        key: Option<&PrivateKey>,
        fields: &mut Vec<(&'static str, String)>,
    ) -> Option<HeaderValue> {
        let secret = self.secret.as_ref().map_or("", |secret| secret.expose());
        match self.method {
            AuthMethod::Basic => {
                // RFC 6749, section 2.3.1: both are form-encoded before they are joined.
                let pair = format!("{}:{}", form_encoded(&self.id), form_encoded(secret));
                let mut value =
                    HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair))).ok()?;
                value.set_sensitive(true);
                return Some(value);
            }
            AuthMethod::Post => fields.push(("client_secret", secret.to_owned())),
            AuthMethod::PrivateKey => {
                if let Some(key) = key {
                    fields.push(("client_assertion_type", assertion::TYPE.to_owned()));
                    fields.push(("client_assertion", assertion::signed(&self.id, issuer, key)));
                }
            }
            AuthMethod::None => {}
        }
        fields.push(("client_id", self.id.clone()));
        None
    }
}

impl AuthMethod {
    fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKey => "private_key_jwt",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post]
            .into_iter()
            .find(|method| method.as_str() == name)
    }
}

impl Authority {
    fn takes(&self, method: AuthMethod) -> Option<bool> {
        let methods = self.auth_methods.as_ref()?;
        Some(methods.iter().any(|name| name == method.as_str()))
    }

    /// The method for a secret: the header, unless only the form is supported (RFC 8414, section 2 has the default).
    fn method_of_secret(&self) -> AuthMethod {
        match (self.takes(AuthMethod::Basic), self.takes(AuthMethod::Post)) {
            (Some(false), Some(true)) => AuthMethod::Post,
            _ => AuthMethod::Basic,
        }
    }

    /// A native application cannot keep a secret, so registration asks for none if that is possible.
    fn method_of_registration(&self) -> AuthMethod {
        match self.takes(AuthMethod::None) {
            Some(false) => self.method_of_secret(),
            _ => AuthMethod::None,
        }
    }
}

/// A text as it is written in a form.
fn form_encoded(text: &str) -> String {
    let mut url = Url::parse("http://form").expect("it is a URL");
    url.query_pairs_mut().append_key_only(text);
    url.query().unwrap_or_default().to_owned()
}
