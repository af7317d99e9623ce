//! The person in whose name a server is used (`identity` of its entry), and the name or token by which requests show
//! that person to the server.
//!
//! *Invariant*: without a person, such a server is not connected. If the entry asks for the person's name or token,
//! no request is sent without it, and never with that of another person.

mod assertion;
pub(super) mod error;
pub(super) mod figures;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::json;

use super::oauth::Exchange;
use super::{ConnectError, UpstreamContext};
use crate::config::{Entitlement, Forward, Remote, SubjectToken, UpstreamIdentity};
use crate::tool::ServerName;
pub(crate) use assertion::AssertionKey;
pub(crate) use error::IdentityError;
pub(crate) use figures::Figures;

/// The path of the page with people's logins, below the URL of the gateway.
pub(crate) const LOGINS: &str = "/logins";

/// The person that connections are for.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) entitlement: Arc<Entitlement>,
    /// `None` before the gateway serves.
    pub(crate) front: Option<Arc<Front>>,
    pub(crate) figures: Arc<Figures>,
}

/// Finds a live access token of an identity.
type Tokens = dyn Fn(&Entitlement) -> Option<SubjectToken> + Send + Sync;

/// The side of the gateway that people and other servers see.
pub(crate) struct Front {
    tokens: Box<Tokens>,
    /// The URL by which they reach it; `None` if it is not known.
    public_url: Option<String>,
    /// Signs what the gateway says about people.
    pub(crate) key: AssertionKey,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front")
            .field("public_url", &self.public_url)
            .finish_non_exhaustive()
    }
}

impl Front {
    pub(crate) fn new(tokens: Box<Tokens>, public_url: Option<String>, key: AssertionKey) -> Self {
        Self {
            tokens,
            public_url,
            key,
        }
    }

    /// The URL of a page of the gateway.
    pub(crate) fn url(&self, path: &str) -> Option<String> {
        let base = self.public_url.as_deref()?;
        Some(format!("{base}{path}"))
    }
}

impl Person {
    /// The identity, unique among all ways to show one.
    pub(crate) fn identity(&self) -> &str {
        &self.entitlement.identity
    }

    /// The URL of the page on which the person logs in at `server`; `None` if the gateway does not know its own.
    pub(super) fn page(&self, server: &ServerName) -> Option<String> {
        let url = self.front.as_ref()?.url(LOGINS)?;
        let mut url = Url::parse(&url).ok()?;
        url.query_pairs_mut().append_pair("server", server.as_str());
        Some(url.into())
    }

    /// The name of the gateway in assertions.
    fn issuer(&self) -> Option<String> {
        self.front.as_ref()?.url("")
    }

    fn token(&self) -> Option<SubjectToken> {
        (self.front.as_ref()?.tokens)(&self.entitlement)
    }

    /// A JWT of the gateway for `audience`.
    fn signed(&self, audience: &str, claims: serde_json::Value) -> Result<String, IdentityError> {
        let (Some(front), Some(issuer)) = (&self.front, self.issuer()) else {
            return Err(IdentityError::NoUrl);
        };
        let signed = front.key.sign(&issuer, audience, claims);
        signed.map_err(|error| IdentityError::Key(error.to_string()))
    }
}

/// The part of a peer's requests that is about a person.
#[derive(Debug, Clone)]
pub(super) enum OnBehalf {
    /// The name.
    Named(HeaderName, HeaderValue),
    /// An assertion for this audience.
    Asserted(HeaderName, String, Person),
    /// A token that the person's own was exchanged for.
    Exchanged(Arc<Exchange>, Person, Arc<UpstreamContext>),
}

impl OnBehalf {
    /// For requests to `server`. `None` if they show nothing of anyone, or the person's own login.
    ///
    /// # Errors
    /// When the server is used in people's names, and there is no person, or no place for the person's login.
    pub(super) fn of(
        server: &ServerName,
        remote: &Remote,
        context: &Arc<UpstreamContext>,
    ) -> Result<Option<Self>, ConnectError> {
        if remote.identity.is_shared() {
            return Ok(None);
        }
        let Some(person) = &context.person else {
            return Err(ConnectError::NoPerson {
                server: server.clone(),
                identity: remote.identity.word(),
            });
        };
        let person = (**person).clone();
        Ok(match &remote.identity {
            UpstreamIdentity::Shared => None,
            UpstreamIdentity::PerUser if context.logins_of_people.is_some() => None,
            UpstreamIdentity::PerUser => {
                return Err(ConnectError::Configuration {
                    server: server.to_string(),
                    reason: "there is no place for the logins of people here".to_owned(),
                });
            }
            UpstreamIdentity::Forward(forward) => Some(Self::forward(server, forward, person)?),
            UpstreamIdentity::Exchange(options) => {
                let exchange = context.exchanges.of(server, options, remote);
                Some(Self::Exchanged(exchange, person, context.clone()))
            }
        })
    }

    fn forward(
        server: &ServerName,
        forward: &Forward,
        person: Person,
    ) -> Result<Self, ConnectError> {
        let unusable = |reason: String| ConnectError::Configuration {
            server: server.to_string(),
            reason,
        };
        let header = HeaderName::try_from(&forward.header)
            .map_err(|error| unusable(format!("`identity` names no header ({error})")))?;
        match &forward.assertion {
            Some(audience) => Ok(Self::Asserted(header, audience.clone(), person)),
            None => {
                let name = &person.entitlement.person.name;
                // A name with other characters would be read differently by different servers.
                let value = HeaderValue::from_str(name).ok().filter(|_| name.is_ascii());
                let value = value.ok_or_else(|| unusable(IdentityError::Name.to_string()))?;
                Ok(Self::Named(header, value))
            }
        }
    }

    /// The header for the next request.
    pub(super) async fn header(&self) -> Result<(HeaderName, HeaderValue), IdentityError> {
        match self {
            Self::Named(name, value) => Ok((name.clone(), value.clone())),
            Self::Asserted(name, audience, person) => {
                let (identity, person_of) = (person.identity(), &person.entitlement.person);
                let claims = json!({
                    "sub": person_of.name, "identity": identity, "roles": person_of.roles,
                });
                let signed = person.signed(audience, claims)?;
                let mut value = HeaderValue::try_from(signed).map_err(|_| IdentityError::Name)?;
                value.set_sensitive(true);
                Ok((name.clone(), value))
            }
            Self::Exchanged(exchange, person, context) => {
                let subject = person.token().ok_or(IdentityError::NoToken)?;
                let actor = || {
                    let (client, audience) = exchange.actor()?;
                    Some(person.signed(audience, json!({ "sub": client })))
                };
                let figures = &person.figures;
                // Boxed, because its future is much larger than that of any other request.
                let asked: BoxFuture<'_, _> =
                    Box::pin(exchange.token(&subject, actor, context, figures));
                let token = asked.await;
                if token.is_err() {
                    figures.failed_exchanges.fetch_add(1, Ordering::Relaxed);
                }
                token.map(|value| (AUTHORIZATION, value))
            }
        }
    }

    /// A header for the repetition of a request that was refused with `refused`; `None` if that is useless.
    pub(super) async fn after_refusal(
        &self,
        refused: &HeaderValue,
    ) -> Result<Option<(HeaderName, HeaderValue)>, IdentityError> {
        let Self::Exchanged(exchange, ..) = self else {
            return Ok(None);
        };
        exchange.forget(refused).await;
        let (name, value) = self.header().await?;
        Ok((value != refused).then_some((name, value)))
    }

    /// `text` without the token that the server was sent.
    pub(super) fn masked(&self, text: &str) -> String {
        match self {
            Self::Named(..) | Self::Asserted(..) => text.to_owned(),
            Self::Exchanged(exchange, ..) => exchange.masked(text),
        }
    }
}
