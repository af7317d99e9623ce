//! The login of a person at the identity provider of an enterprise (`oauth.grant` "id-jag"). It is kept once for all servers that name
//! the provider, and exchanged there for an assertion that the authorization server of one server takes in place of a login of its own
//! (draft-ietf-oauth-identity-assertion-authz-grant; MCP's extension `enterprise-managed-authorization`).
//!
//! *Invariant*: the ID token and the refresh token go to the provider alone. An assertion goes to the authorization server that it
//! names, for the client and the server that it names, and is not kept.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use serde_json::Value;

use super::account::{Account, LoggedOut};
use super::client::Client;
use super::discovery::{Authority, identity_provider};
use super::error::LoginError;
use super::exchange::TOKEN_EXCHANGE;
use super::fetcher::MetadataFetcher;
use super::issuer::is_same;
use super::now;
use super::scopes::add_scopes;
use super::store::{Login, Store};
use super::token::{Token, TokenEndpoint};
use crate::config::IdentityProvider;
use crate::secret::Secret;

const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const REFRESH_TOKEN: &str = "urn:ietf:params:oauth:token-type:refresh_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// The `typ` of an assertion's header.
const ASSERTION: &str = "oauth-id-jag+jwt";

/// The seconds that an ID token has to be valid still when it is sent.
const LEEWAY: u64 = 30;

/// The login at an identity provider that a server's entry names.
pub(super) struct IdentityLogin<'a> {
    account: &'a Account,
    provider: &'a IdentityProvider,
    store: Store,
    url: Url,
}

impl Account {
    /// The login at the identity provider of the entry, if it names one.
    ///
    /// # Errors
    /// When the provider's URL cannot be used.
    pub(super) fn identity_login(&self) -> Result<Option<IdentityLogin<'_>>, LoginError> {
        let Some(provider) = self.remote.oauth.idp.as_deref() else {
            return Ok(None);
        };
        let url = Url::parse(&provider.issuer).map_err(|_| LoginError::Metadata {
            reason: format!("`{}` is not a URL", provider.issuer),
        })?;
        Ok(Some(IdentityLogin {
            account: self,
            provider,
            store: self
                .store
                .of_provider(&provider.issuer, &provider.client_id)
                .of_client(
                    Some(&provider.client_id),
                    provider.client_secret.as_ref(),
                    Some(&provider.issuer),
                ),
            url,
        }))
    }
}

impl IdentityLogin<'_> {
    /// The provider's issuer identifier.
    pub(super) fn issuer(&self) -> &str {
        &self.provider.issuer
    }

    /// The fetcher for the provider, whose URL is the user's own.
    pub(super) async fn fetcher(&self) -> MetadataFetcher<'_> {
        let account = self.account;
        MetadataFetcher::of(&self.url, &account.remote, &account.context).await
    }

    /// The provider with its endpoints.
    pub(super) async fn authority(
        &self,
        fetcher: &MetadataFetcher<'_>,
    ) -> Result<Authority, LoginError> {
        identity_provider(fetcher, &self.provider.issuer).await
    }

    /// The client that we are there.
    pub(super) fn client(&self, authority: &Authority) -> Client {
        let IdentityProvider {
            client_id,
            client_secret,
            ..
        } = self.provider;
        Client::known(authority, client_id.clone(), client_secret.clone())
    }

    /// The scopes of a login.
    pub(super) fn scopes(&self, authority: &Authority) -> Vec<String> {
        let mut scopes = vec!["openid".to_owned()];
        if authority.has_offline_access {
            scopes.push("offline_access".to_owned());
        }
        add_scopes(&mut scopes, &self.provider.scopes);
        scopes
    }

    /// Whether there is a login that has not ended, as far as it is known.
    pub(super) async fn is_usable(&self) -> bool {
        let read = self.store.read().await;
        let token = read.ok().and_then(|record| record.token().cloned());
        token.is_some_and(|token| !subjects(&token).is_empty())
    }

    /// Completes a login of a person: `grant` has its code, and `nonce` is what its request said.
    ///
    /// # Errors
    /// When the provider refuses, or its ID token is not that of this login.
    pub(super) async fn log_in(
        &self,
        authority: &Authority,
        client: &Client,
        grant: &[(&'static str, &str)],
        nonce: &Secret<String>,
    ) -> Result<(), LoginError> {
        let fetcher = self.fetcher().await;
        let endpoint = TokenEndpoint {
            fetcher: &fetcher,
            issuer: &authority.issuer,
            endpoint: &authority.token_endpoint,
            resource: "",
            client,
            key: None,
        };
        let (id_token, refresh) = endpoint.ask_identity(grant).await?;
        self.keep(authority, id_token, refresh, Some(nonce)).await
    }

    /// Keeps an ID token that a person or a program got elsewhere.
    ///
    /// # Errors
    /// When it is not a valid one of the provider for us.
    pub(super) async fn take(&self, id_token: Secret<String>) -> Result<(), LoginError> {
        let authority = self.authority(&self.fetcher().await).await?;
        self.keep(&authority, id_token, None, None).await
    }

    /// Keeps the login of `id_token`. `nonce` is that of the login's request; a token that was given has none.
    ///
    /// # Errors
    /// When it is not a valid ID token of the provider for us, or cannot be kept.
    async fn keep(
        &self,
        authority: &Authority,
        id_token: Secret<String>,
        refresh: Option<Secret<String>>,
        nonce: Option<&Secret<String>>,
    ) -> Result<(), LoginError> {
        let refused = |reason| {
            let issuer = self.provider.issuer.clone();
            LoginError::Identity { issuer, reason }
        };
        let (_, claims) = parts(&id_token).ok_or_else(|| refused("its ID token is not a JWT"))?;
        let own = Some(self.provider.client_id.as_str());
        let is_for_us = has(&claims["aud"], |audience| Some(audience) == own)
            && claims.get("azp").is_none_or(|party| party.as_str() == own);
        let ends = claims["exp"].as_f64().map(|end| end as u64);
        let problem = match &claims["iss"] {
            Value::String(issuer) if is_same(issuer, &authority.issuer) => {
                let is_asked_for = nonce
                    .is_none_or(|nonce| claims["nonce"].as_str() == Some(nonce.expose().as_str()));
                match ends {
                    _ if !is_for_us => Some("its ID token is for another client"),
                    _ if !is_asked_for => Some("its ID token belongs to another login"),
                    Some(end) if end > now() => None,
                    _ => Some("its ID token has ended"),
                }
            }
            _ => Some("its ID token is one of another issuer"),
        };
        if let Some(problem) = problem {
            return Err(refused(problem));
        }
        let issuer = authority.issuer.clone();
        let login = Login {
            resource: String::new(),
            token_endpoint: authority.token_endpoint.to_string(),
            revocation_endpoint: authority.revocation_endpoint.as_ref().map(Url::to_string),
            is_public: authority.is_public,
            client: Some(self.client(authority)),
            token: Some(Token {
                access: id_token,
                refresh,
                given: now(),
                ends,
                scopes: Vec::new(),
            }),
        };
        let _lock = self.store.lock().await?;
        let mut record = self.store.empty();
        record.current = Some(issuer.clone());
        record.logins.insert(issuer, login);
        self.store.write(&record).await
    }

    /// An assertion for `client` at `authority`, the authorization server of a server.
    ///
    /// # Errors
    /// [`LoginError::NoIdentity`] if there is no login, or the provider does not accept it any more; or what it answers.
    pub(super) async fn assertion(
        &self,
        authority: &Authority,
        client: &Client,
        scopes: &[String],
    ) -> Result<Secret<String>, LoginError> {
        let token = self.store.read().await?.token().cloned();
        let token = token.ok_or_else(|| self.missing())?;
        let fetcher = self.fetcher().await;
        let provider = self.authority(&fetcher).await?;
        let own = self.client(&provider);
        let endpoint = TokenEndpoint {
            fetcher: &fetcher,
            issuer: &provider.issuer,
            endpoint: &provider.token_endpoint,
            resource: &authority.resource,
            client: &own,
            key: None,
        };
        let scope = scopes.join(" ");
        for (subject, kind) in subjects(&token) {
            let mut grant = vec![
                ("grant_type", TOKEN_EXCHANGE),
                ("requested_token_type", ID_JAG),
                ("audience", authority.issuer.as_str()),
                ("subject_token", subject.expose().as_str()),
                ("subject_token_type", kind),
            ];
            grant.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
            match endpoint.ask_assertion(&grant, ID_JAG).await {
                Ok(assertion) => return checked(assertion, authority, client, &provider),
                // The next one may be valid still.
                Err(error) if error.is_invalid_grant() => {}
                // Not each provider exchanges refresh tokens.
                Err(error) if kind == REFRESH_TOKEN && error.refuses_kind() => {}
                Err(error) => return Err(error),
            }
        }
        self.forget(&token).await?;
        Err(self.missing())
    }

    /// Removes the login, and revokes it if the provider supports that.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub(super) async fn log_out(&self) -> Result<LoggedOut, LoginError> {
        let _lock = self.store.lock().await?;
        let mut record = self.store.read().await;
        let was_there = self.store.remove().await?;
        if let Ok(record) = &mut record {
            // An ID token cannot be revoked.
            let has_refresh = |token: &Token| token.refresh.is_some();
            let logins = &mut record.logins;
            logins.retain(|_, login| login.token.as_ref().is_some_and(has_refresh));
        }
        let mut ended = LoggedOut {
            was_there,
            ..LoggedOut::default()
        };
        let fetcher = self.fetcher().await;
        let ending = self.account.revoke_all(&fetcher, record, &mut ended);
        ending.await;
        Ok(ended)
    }

    /// Removes the login that the provider does not accept any more, unless it was replaced meanwhile.
    async fn forget(&self, refused: &Token) -> Result<(), LoginError> {
        let _lock = self.store.lock().await?;
        let record = self.store.read().await?;
        if record.token() == Some(refused) {
            self.store.remove().await?;
        }
        Ok(())
    }

    fn missing(&self) -> LoginError {
        LoginError::NoIdentity {
            server: self.account.server.to_string(),
            provider: self.provider.issuer.clone(),
        }
    }
}

/// The tokens of a login that the provider may take, with their types: the ID token until it ends, then the refresh token.
fn subjects(login: &Token) -> Vec<(&Secret<String>, &'static str)> {
    let is_valid = login.ends.is_some_and(|end| end > now() + LEEWAY);
    let id_token = is_valid.then_some((&login.access, ID_TOKEN));
    let refresh = login.refresh.as_ref().map(|token| (token, REFRESH_TOKEN));
    id_token.into_iter().chain(refresh).collect()
}

/// `assertion`, if it is one for `client` at `authority`, for its resource. Another one is not sent there.
fn checked(
    assertion: Secret<String>,
    authority: &Authority,
    client: &Client,
    provider: &Authority,
) -> Result<Secret<String>, LoginError> {
    let problem = match parts(&assertion) {
        None => Some("its assertion is not a JWT"),
        Some((head, _)) if head["typ"] != ASSERTION => Some("its assertion is of another type"),
        Some((_, claims)) => {
            let others = claims["client_id"] != client.id.as_str()
                || !has(&claims["aud"], |audience| {
                    is_same(audience, &authority.issuer)
                })
                || claims.get("resource").is_some_and(|resource| {
                    !has(resource, |one| is_same(one, &authority.resource))
                });
            others
                .then_some("its assertion is for another client, authorization server or resource")
        }
    };
    match problem {
        None => Ok(assertion),
        Some(reason) => Err(LoginError::Identity {
            issuer: provider.issuer.clone(),
            reason,
        }),
    }
}

/// Whether a claim that is a text or a list has a text that `fits`.
fn has(claim: &Value, fits: impl Fn(&str) -> bool) -> bool {
    match claim {
        Value::String(text) => fits(text),
        Value::Array(all) => all.iter().filter_map(Value::as_str).any(fits),
        _ => false,
    }
}

/// The header and the claims of a JWT. Its signature is for those who rely on it.
fn parts(jwt: &Secret<String>) -> Option<(Value, Value)> {
    let mut parts = jwt.expose().split('.');
    let mut part = || {
        let bytes = URL_SAFE_NO_PAD.decode(parts.next()?).ok()?;
        serde_json::from_slice::<Value>(&bytes).ok()
    };
    Some((part()?, part()?))
}
