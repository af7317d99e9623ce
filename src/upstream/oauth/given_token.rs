//! A token that a person made at the server, kept in place of a login: for servers that offer no login, or no registration.

use super::account::{Account, LoginStatus};
use super::error::LoginError;
use super::issuer::IssuerChange;
use super::now;
use super::store::Login;
use super::token::Token;
use crate::secret::Secret;

impl Account {
    /// Keeps `token` as the login, once the server has accepted it. It is sent to the server alone, and not renewed. With an identity
    /// provider, it is an ID token of that one.
    ///
    /// # Errors
    /// When the server does not accept it, or it cannot be kept.
    pub(crate) async fn keep_token(
        &self,
        token: Secret<String>,
    ) -> Result<LoginStatus, LoginError> {
        if let Some(identity) = self.identity_login()? {
            identity.take(token).await?;
            return self.log_in_alone(IssuerChange::Allowed).await;
        }
        let refused = |reason: &str| LoginError::TokenRefused {
            server: self.server.to_string(),
            reason: reason.to_owned(),
        };
        let token = Token {
            access: token,
            refresh: None,
            given: now(),
            ends: None,
            scopes: Vec::new(),
        };
        let is_word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
        if !is_word(token.access.expose()) {
            return Err(refused("a token is one word of printable ASCII"));
        }
        if self.probe(Some(&token)).await?.is_some() {
            return Err(refused("it answers that a login is needed"));
        }
        let _lock = self.store.lock().await?;
        let mut record = match self.store.read().await {
            Ok(record) => record,
            Err(_) => self.store.empty(),
        };
        // The server itself gave it, in the hands of a person.
        let issuer = self.url.origin().ascii_serialization();
        record.current = Some(issuer.clone());
        record.wanted.clear();
        record.logins.insert(
            issuer,
            Login {
                resource: self.url.to_string(),
                token_endpoint: String::new(),
                revocation_endpoint: None,
                is_public: false,
                client: None,
                token: Some(token),
            },
        );
        self.store.write(&record).await?;
        self.status().await?.ok_or(LoginError::NothingToRenew)
    }

    /// A hint on where a person makes a token for the server.
    #[must_use]
    pub(crate) fn token_hint(&self) -> String {
        if let Some(provider) = self.identity_provider() {
            return format!("give an ID token of {provider} for the client in `oauth.idp`");
        }
        let host = self.url.host_str().unwrap_or_default();
        let is_of = |domain: &str| {
            host.strip_suffix(domain)
                .is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        let page = [
            (
                "github.com",
                "https://github.com/settings/personal-access-tokens",
            ),
            (
                "githubcopilot.com",
                "https://github.com/settings/personal-access-tokens",
            ),
            (
                "gitlab.com",
                "https://gitlab.com/-/user_settings/personal_access_tokens",
            ),
            ("huggingface.co", "https://huggingface.co/settings/tokens"),
        ]
        .into_iter()
        .find(|(domain, _)| is_of(domain));
        match page {
            Some((_, page)) => format!("make a token at {page}"),
            None => format!(
                "look in your account at {host} for \"access tokens\", \"API keys\" or \"developer settings\", and make one \
                 with as few rights as you need"
            ),
        }
    }
}
