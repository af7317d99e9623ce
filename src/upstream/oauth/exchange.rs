//! The exchange of a person's access token for one of a server (RFC 8693). The result is kept in memory until it ends, or the person's
//! token does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use parking_lot::Mutex;
use reqwest::Url;
use reqwest::header::HeaderValue;

use super::client::Client;
use super::fetcher::MetadataFetcher;
use super::now;
use super::token::{Token, TokenEndpoint};
use crate::config::{Remote, SubjectToken, TokenExchange};
use crate::secret::Masker;
use crate::text::chain;
use crate::tool::ServerName;
use crate::upstream::UpstreamContext;
use crate::upstream::person::error::IdentityError;
use crate::upstream::person::figures::Figures;

/// The grant of an exchange.
pub(super) const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

/// How long a token without a stated end is used, in seconds.
const SHORT: u64 = 5 * 60;

/// The exchanges of one person, by server. They outlive connections.
#[derive(Debug, Default)]
pub(in crate::upstream) struct Exchanges(Mutex<BTreeMap<ServerName, Arc<Exchange>>>);

/// The exchange of one person's tokens for one server.
#[derive(Debug)]
pub(in crate::upstream) struct Exchange {
    options: TokenExchange,
    remote: Remote,
    /// Held while a token is requested, so that one request does it for all.
    known: tokio::sync::Mutex<Option<Known>>,
    /// The last token, for the masker.
    last: Mutex<Option<Token>>,
}

#[derive(Debug)]
struct Known {
    token: Token,
    /// When it is used last, in seconds since 1970.
    ends: u64,
}

impl Exchanges {
    pub(in crate::upstream) fn of(
        &self,
        server: &ServerName,
        options: &TokenExchange,
        remote: &Remote,
    ) -> Arc<Exchange> {
        let mut known = self.0.lock();
        if let Some(exchange) = known.get(server).filter(|known| known.remote == *remote) {
            return exchange.clone();
        }
        let exchange = Arc::new(Exchange {
            options: options.clone(),
            remote: remote.clone(),
            known: tokio::sync::Mutex::default(),
            last: Mutex::default(),
        });
        known.insert(server.clone(), exchange.clone());
        exchange
    }
}

impl Exchange {
    /// The client that an `actor_token` is about and its audience, if the exchange has one.
    pub(in crate::upstream) fn actor(&self) -> Option<(&str, &str)> {
        let options = &self.options;
        let actor = (options.client_id.as_str(), options.token_url.as_str());
        options.has_actor.then_some(actor)
    }

    /// The header with the token that `subject` was exchanged for.
    ///
    /// # Errors
    /// When the token endpoint gives none that may be used.
    pub(in crate::upstream) async fn token(
        &self,
        subject: &SubjectToken,
        actor: impl FnOnce() -> Option<Result<String, IdentityError>>,
        context: &UpstreamContext,
        figures: &Figures,
    ) -> Result<HeaderValue, IdentityError> {
        let mut known = self.known.lock().await;
        let unusable = || IdentityError::Exchange("no header can carry the token".to_owned());
        if let Some(known) = known.as_ref().filter(|known| known.ends > now()) {
            return known.token.bearer().ok_or_else(unusable);
        }
        *known = None;
        let actor = actor().transpose()?;
        let token = self.exchanged(subject, actor, context).await?;
        if token.access == subject.token {
            // A server must not get a token that is for the gateway (2025-11-25, basic/security best practices).
            let reason = "the answer is the person's own token".to_owned();
            return Err(IdentityError::Exchange(reason));
        }
        let value = token.bearer().ok_or_else(unusable)?;
        figures.exchanges.fetch_add(1, Ordering::Relaxed);
        let subject_ends = subject.expires.duration_since(UNIX_EPOCH);
        let subject_ends = subject_ends.map_or(0, |time| time.as_secs());
        let ends = token.usable_until().unwrap_or(now() + SHORT);
        *self.last.lock() = Some(token.clone());
        *known = Some(Known {
            token,
            ends: ends.min(subject_ends),
        });
        Ok(value)
    }

    async fn exchanged(
        &self,
        subject: &SubjectToken,
        actor: Option<String>,
        context: &UpstreamContext,
    ) -> Result<Token, IdentityError> {
        let failed = |reason: String| IdentityError::Exchange(reason);
        let options = &self.options;
        let endpoint = Url::parse(&options.token_url)
            .map_err(|error| failed(format!("`token_url` is not a URL ({error})")))?;
        let fetcher = MetadataFetcher::of(&endpoint, &self.remote, context).await;
        let client = Client::given(&options.client_id, options.client_secret.clone());
        let endpoint = TokenEndpoint {
            fetcher: &fetcher,
            issuer: &options.token_url,
            endpoint: &endpoint,
            resource: match options.audience {
                Some(_) => "",
                None => &self.remote.url,
            },
            client: &client,
            key: None,
        };
        let scope = options.scopes.join(" ");
        let mut grant = vec![
            ("grant_type", TOKEN_EXCHANGE),
            ("subject_token", subject.token.expose().as_str()),
            ("subject_token_type", ACCESS_TOKEN),
            ("requested_token_type", ACCESS_TOKEN),
        ];
        if let Some(actor) = &actor {
            grant.extend([("actor_token", actor.as_str()), ("actor_token_type", JWT)]);
        }
        grant.extend(options.audience.as_deref().map(|text| ("audience", text)));
        grant.extend((!scope.is_empty()).then_some(("scope", scope.as_str())));
        let asked = endpoint.ask(&grant, &options.scopes).await;
        asked.map_err(|error| failed(chain(&error)))
    }

    /// Forgets the token that a server has refused.
    pub(in crate::upstream) async fn forget(&self, refused: &HeaderValue) {
        let mut known = self.known.lock().await;
        let is_refused = |known: &mut Known| known.token.bearer().as_ref() == Some(refused);
        known.take_if(is_refused);
    }

    /// `text`, written by a server, without the token.
    pub(in crate::upstream) fn masked(&self, text: &str) -> String {
        let last = self.last.lock().clone();
        let secrets = last.map(|token| token.access);
        Masker::new(secrets).mask(text).into_owned()
    }
}
