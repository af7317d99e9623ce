//! Identities of clients over HTTP: who shows which, and what each of them may use.
//!
//! A request shows a credential. Its *pass* has the identity's part of the configuration (`config/roles.rs`). It is kept, so that the next
//! request with this credential costs one hash. Every second all passes are compared with the tokens and the configuration, and
//! those that would be another one now end, with their requests and sessions.

mod certificate;
mod issuer;
mod jwt_crypto;
mod name;
mod tokens;

pub(crate) use certificate::ClientCertificate;
pub(crate) use name::is_name;
pub(crate) use tokens::{NewToken, Stored, TokenError, TokenFile};

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HeaderName};
use parking_lot::{Mutex, RwLock};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use crate::config::{Claims, Config, Entitlement, Forwarded, HttpAuth, ResourceServer};
use issuer::Issuer;
use tokens::{PREFIX, Stamp, Tokens};

/// The seconds after which an unused pass is forgotten.
const UNUSED: u64 = 10 * 60;

/// The most passes that are kept; above it, unused ones go at once.
const MOST: usize = 10_000;

/// The hash of a credential.
type Fingerprint = [u8; 32];

/// Finds out who sends a request.
#[derive(Debug)]
pub(crate) struct Authenticator {
    tokens: TokenFile,
    state: RwLock<State>,
    passes: Mutex<HashMap<Fingerprint, Arc<Pass>>>,
    start: Instant,
}

/// What passes are made from.
#[derive(Debug)]
struct State {
    config: Arc<Config>,
    /// The ways to show an identity; `None` while `http` cannot be read.
    ways: Option<HttpAuth>,
    /// The issuer of `http.auth.oauth`.
    issuer: Option<Arc<Issuer>>,
    stamp: Stamp,
    /// The tokens; `None` while they cannot be read.
    tokens: Option<Tokens>,
}

/// The identity of a request, for as long as its credential is valid and its part of the configuration stays.
#[derive(Debug)]
pub(crate) struct Pass {
    entitlement: Arc<Entitlement>,
    claims: Claims,
    shown: Shown,
    expires: Option<SystemTime>,
    ended: CancellationToken,
    /// The time of the last use, in seconds since the authenticator was made.
    used: AtomicU64,
}

/// The way in which an identity was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shown {
    /// A token of `mcpzip token create`.
    Token,
    /// The headers of a proxy.
    Forwarded,
    /// A token of the issuer, signed by the key with this id.
    Issued(Option<String>),
    /// A certificate of the connection.
    Certificate,
}

/// The reason why a request has no identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    /// It shows no credential.
    Missing,
    /// Its credential is not valid (any more).
    Invalid,
    /// The identity is known, and gets nothing.
    NotEntitled,
    /// The token lacks a scope.
    InsufficientScope,
    /// A header names a user, and the request does not come from the proxy, or the header cannot be read.
    BadHeader,
    /// Identities cannot be checked now; the log has the reason.
    Unavailable,
}

impl Pass {
    /// The identity's part of the configuration.
    #[must_use]
    pub(crate) fn entitlement(&self) -> &Arc<Entitlement> {
        &self.entitlement
    }

    /// Whether it does not count any more.
    #[must_use]
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled() || self.is_expired()
    }

    /// Resolves when it does not count any more.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.ended.clone().cancelled_owned()
    }

    fn is_expired(&self) -> bool {
        self.expires
            .is_some_and(|expires| SystemTime::now() >= expires)
    }
}

impl Authenticator {
    /// For the ways of `auth`, with the tokens below `state_dir`.
    #[must_use]
    pub(crate) fn new(auth: &HttpAuth, state_dir: &Path, config: Arc<Config>) -> Self {
        let tokens = TokenFile::below(state_dir);
        let stamp = tokens.stamp();
        let mut state = State {
            config,
            ways: Some(auth.clone()),
            issuer: None,
            stamp,
            tokens: read(&tokens),
        };
        state.find_issuer();
        Self {
            tokens,
            state: RwLock::new(state),
            passes: Mutex::default(),
            start: Instant::now(),
        }
    }

    /// The pass of a request with these headers from `peer`. A certificate counts where the headers name nobody.
    ///
    /// # Errors
    /// When it shows no identity, or one that gets nothing.
    pub(crate) async fn check(
        &self,
        headers: &HeaderMap,
        peer: IpAddr,
        certificate: Option<&ClientCertificate>,
    ) -> Result<Arc<Pass>, Denial> {
        let user = {
            let state = self.state.read();
            let ways = state.ways.as_ref().ok_or(Denial::Unavailable)?;
            let forwarded = ways.forwarded.as_ref();
            forwarded
                .map(|forwarded| forwarded_user(forwarded, headers, peer))
                .transpose()?
                .flatten()
        };
        if let Some(claims) = user {
            let fingerprint = fingerprint_of(&claims);
            return match self.known(&fingerprint) {
                Some(known) => Ok(known),
                None => self.admit(fingerprint, |_| Ok((claims, Shown::Forwarded, None))),
            };
        }
        let Some(credential) = bearer(headers) else {
            let certificate = certificate
                .filter(|_| !headers.contains_key(AUTHORIZATION))
                .ok_or(Denial::Missing)?;
            if let Some(known) = self.known(&certificate.fingerprint) {
                return Ok(known);
            }
            return self.admit(certificate.fingerprint, |state| {
                let is_on = state.ways.as_ref().is_some_and(|ways| ways.certificates);
                if !is_on || certificate.expires <= SystemTime::now() {
                    return Err(Denial::Invalid);
                }
                let claims = certificate.claims.clone();
                Ok((claims, Shown::Certificate, Some(certificate.expires)))
            });
        };
        let fingerprint = Fingerprint::from(Sha256::digest(credential));
        if let Some(known) = self.known(&fingerprint) {
            return Ok(known);
        }
        if credential.starts_with(PREFIX) {
            return self.admit(fingerprint, |state| {
                let is_on = state.ways.as_ref().is_some_and(|ways| ways.tokens);
                let tokens = state.tokens.as_ref();
                let tokens = tokens.filter(|_| is_on).ok_or(match is_on {
                    true => Denial::Unavailable,
                    false => Denial::Invalid,
                })?;
                let token = tokens.find(&fingerprint).ok_or(Denial::Invalid)?;
                Ok((claims_of(token), Shown::Token, token.expires()))
            });
        }
        let issuer = self.state.read().issuer.clone().ok_or(Denial::Invalid)?;
        let checked = issuer.check(credential).await?;
        self.admit(fingerprint, |state| {
            let is_same = state
                .issuer
                .as_ref()
                .is_some_and(|one| Arc::ptr_eq(one, &issuer));
            let shown = Shown::Issued(checked.key);
            match is_same {
                true => Ok((checked.claims, shown, Some(checked.expires))),
                // The configuration has changed meanwhile.
                false => Err(Denial::Invalid),
            }
        })
    }

    /// The kept pass of a credential.
    fn known(&self, fingerprint: &Fingerprint) -> Option<Arc<Pass>> {
        let passes = self.passes.lock();
        let known = passes.get(fingerprint).filter(|pass| !pass.has_ended())?;
        known.used.store(self.now(), Ordering::Relaxed);
        Some(known.clone())
    }

    /// Makes and keeps the pass of an identity.
    fn admit(
        &self,
        fingerprint: Fingerprint,
        find: impl FnOnce(&State) -> Result<(Claims, Shown, Option<SystemTime>), Denial>,
    ) -> Result<Arc<Pass>, Denial> {
        // Held until the pass is kept, so that no change of the state misses it.
        let state = self.state.read();
        if state.ways.is_none() {
            return Err(Denial::Unavailable);
        }
        let (claims, shown, expires) = find(&state)?;
        let entitlement = state.config.entitlement(&claims).map_err(|reason| {
            let identity = &claims.identity;
            tracing::error!(identity, %reason, "an identity is refused");
            Denial::NotEntitled
        })?;
        let pass = Arc::new(Pass {
            entitlement: Arc::new(entitlement),
            claims,
            shown,
            expires,
            ended: CancellationToken::new(),
            used: AtomicU64::new(self.now()),
        });
        let mut passes = self.passes.lock();
        if passes.len() >= MOST {
            passes.retain(|_, pass| Arc::strong_count(pass) > 1);
        }
        passes.insert(fingerprint, pass.clone());
        Ok(pass)
    }

    /// The issuer whose tokens count, and what they need.
    #[must_use]
    pub(crate) fn issuer(&self) -> Option<ResourceServer> {
        let state = self.state.read();
        state.issuer.as_ref().map(|issuer| issuer.options().clone())
    }

    /// Fetches the keys of the issuer again if they are old.
    pub(crate) async fn refresh(&self) {
        let issuer = self.state.read().issuer.clone();
        if let Some(issuer) = issuer {
            issuer.refresh().await;
        }
    }

    /// Applies changes of the tokens and of the configuration, and ends the passes that do not count any more.
    pub(crate) fn renew(&self, config: &Arc<Config>) {
        let stamp = self.tokens.stamp();
        let is_new = {
            let state = self.state.read();
            state.stamp != stamp || state.tokens.is_none() || !Arc::ptr_eq(&state.config, config)
        };
        if is_new {
            let mut state = self.state.write();
            if state.stamp != stamp {
                state.stamp = stamp;
                state.tokens = read(&self.tokens);
            } else if state.tokens.is_none() {
                // The log has the reason already.
                state.tokens = self.tokens.read().ok();
            }
            if !Arc::ptr_eq(&state.config, config) {
                state.configure(config.clone());
            }
            let state = parking_lot::RwLockWriteGuard::downgrade(state);
            self.end_passes(|fingerprint, pass| !state.confirms(fingerprint, pass));
        }
        let state = self.state.read();
        self.end_passes(|_, pass| match &pass.shown {
            // The issuer has withdrawn the key.
            Shown::Issued(key) => {
                let issuer = state.issuer.as_ref();
                !issuer.is_some_and(|issuer| issuer.has_key(key.as_deref()))
            }
            Shown::Token | Shown::Forwarded | Shown::Certificate => false,
        });
        drop(state);
        let now = self.now();
        let is_unused = |pass: &Arc<Pass>| {
            Arc::strong_count(pass) == 1 && now - pass.used.load(Ordering::Relaxed) > UNUSED
        };
        self.end_passes(|_, pass| pass.is_expired() || is_unused(pass));
    }

    /// Whether a pass has this part of the configuration.
    #[must_use]
    pub(crate) fn is_in_use(&self, entitlement: &Entitlement) -> bool {
        let passes = self.passes.lock();
        passes
            .values()
            .any(|pass| *pass.entitlement == *entitlement)
    }

    fn end_passes(&self, is_over: impl Fn(&Fingerprint, &Arc<Pass>) -> bool) {
        self.passes.lock().retain(|fingerprint, pass| {
            let ends = is_over(fingerprint, pass);
            if ends {
                let identity = &pass.claims.identity;
                tracing::info!(identity, "the requests and sessions of an identity end");
                pass.ended.cancel();
            }
            !ends
        });
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_secs()
    }
}

impl State {
    /// Takes over an edited configuration.
    fn configure(&mut self, config: Arc<Config>) {
        match config.http.as_ref().map(|http| &http.auth) {
            Ok(Some(auth)) => {
                self.ways = Some(auth.clone());
                self.find_issuer();
            }
            // Removing the key while clients are served must not open the server.
            Ok(None) => tracing::warn!(
                "`http.auth` was removed: clients still have to show who they are, until the server is started again"
            ),
            Err(fault) => {
                tracing::error!(%fault, "`http` cannot be used any more, so every client is refused");
                self.ways = None;
            }
        }
        self.config = config;
    }

    /// Has the issuer of the ways, with the keys that are known if it is the one before.
    fn find_issuer(&mut self) {
        let wanted = self.ways.as_ref().and_then(|ways| ways.oauth.as_deref());
        let known = self.issuer.as_ref().map(|issuer| issuer.options());
        if known != wanted {
            self.issuer = wanted.map(|options| Arc::new(Issuer::new(options.clone())));
        }
    }

    /// Whether a pass would be made in this form now.
    fn confirms(&self, fingerprint: &Fingerprint, pass: &Pass) -> bool {
        let Some(ways) = &self.ways else {
            return false;
        };
        let is_entitled = |claims: &Claims| {
            let entitlement = self.config.entitlement(claims);
            entitlement.is_ok_and(|entitlement| entitlement == *pass.entitlement)
        };
        match &pass.shown {
            Shown::Token => {
                let tokens = self.tokens.as_ref().filter(|_| ways.tokens);
                let token = tokens.and_then(|tokens| tokens.find(fingerprint));
                token.is_some_and(|token| {
                    token.expires() == pass.expires && is_entitled(&claims_of(token))
                })
            }
            Shown::Forwarded => ways.forwarded.is_some() && is_entitled(&pass.claims),
            Shown::Certificate => ways.certificates && is_entitled(&pass.claims),
            // The members that say the name and the groups may be others now.
            Shown::Issued(_) => self.issuer.is_some() && is_entitled(&pass.claims),
        }
    }
}

/// The tokens, unless they cannot be read, which the log says.
fn read(file: &TokenFile) -> Option<Tokens> {
    match file.read() {
        Ok(tokens) => Some(tokens),
        Err(error) => {
            tracing::error!(%error, "every client with a token is refused");
            None
        }
    }
}

/// What a token says about its identity.
#[must_use]
pub(crate) fn claims_of(token: &Stored) -> Claims {
    Claims {
        identity: format!("token:{}", token.name),
        name: token.name.clone(),
        groups: BTreeSet::new(),
        roles: token.roles.clone(),
        profile: token.profile.clone(),
    }
}

/// The credential of the `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, credential) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let credential = credential.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !credential.is_empty()).then_some(credential)
}

/// The user that a proxy names; `None` if it names none.
fn forwarded_user(
    forwarded: &Forwarded,
    headers: &HeaderMap,
    peer: IpAddr,
) -> Result<Option<Claims>, Denial> {
    let value = |name: &str| {
        let name = HeaderName::try_from(name).map_err(|_| Denial::BadHeader)?;
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (value, None) => {
                let value = value.map(|value| value.to_str().map_err(|_| Denial::BadHeader));
                value.transpose()
            }
            // The proxy may have set one, and its client the other.
            _ => Err(Denial::BadHeader),
        }
    };
    let user = value(&forwarded.user_header)?;
    let groups = match &forwarded.groups_header {
        Some(name) => value(name)?,
        None => None,
    };
    if user.is_none() && groups.is_none() {
        return Ok(None);
    }
    let name = user.map(str::trim).filter(|name| is_name(name));
    let name = name
        .filter(|_| forwarded.is_proxy(peer))
        .ok_or(Denial::BadHeader)?;
    let groups = groups.unwrap_or_default().split(',').map(str::trim);
    let groups = groups.filter(|group| !group.is_empty()).map(str::to_owned);
    Ok(Some(Claims {
        identity: format!("user:{name}"),
        name: name.to_owned(),
        groups: groups.collect(),
        ..Claims::default()
    }))
}

/// The fingerprint of a user that a proxy names. A credential has no line breaks, so none has this fingerprint.
fn fingerprint_of(claims: &Claims) -> Fingerprint {
    let mut hash = Sha256::new();
    hash.update(&claims.identity);
    for group in &claims.groups {
        hash.update("\n");
        hash.update(group);
    }
    hash.update("\n");
    hash.finalize().into()
}
