//! Identities of clients over HTTP: which credential belongs to which identity, and which part of the configuration
//! each may use.
//!
//! A request has a credential, for which there is a *pass*: the identity and its part of the configuration
//! (`config/roles.rs`). The pass is kept, so that the next request with this credential costs one hash. Every second
//! all passes are compared with the tokens and the configuration. A pass that these would no longer give ends, with
//! its requests and sessions.

mod answers;
pub(crate) mod authorization;
mod certificate;
pub(crate) mod html;
mod introspection;
mod issuer;
mod jwt_crypto;
mod name;
mod requests;
mod tokens;

pub(crate) use certificate::ClientCertificate;
pub(crate) use issuer::faulty_issuers;
pub(crate) use name::is_name;
#[cfg(feature = "postgres")]
pub(crate) use tokens::check_records;
pub(crate) use tokens::{Grant, Known, NewToken, People, Revoked, Stored, TokenError, TokenFile};

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HeaderName};
use parking_lot::{Mutex, RwLock};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use crate::config::{Claims, Config, Entitlement, Forwarded, HttpAuth, SubjectToken};
use crate::secret::Secret;
use crate::store::State as StateOfRun;
use authorization::AuthorizationServer;
use issuer::Issuer;
use tokens::{PREFIX, Stamp, TOKEN, Tokens};

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
    /// One reader of changes at a time.
    renewing: Mutex<()>,
    start: Instant,
}

/// The configuration and tokens from which passes are made.
#[derive(Debug)]
struct State {
    config: Arc<Config>,
    /// The ways to show an identity; `None` while `http` cannot be read.
    ways: Option<HttpAuth>,
    /// The issuer of `http.auth.oauth`.
    issuer: Option<Arc<Issuer>>,
    /// The authorization server of mcpzip itself.
    server: Option<Arc<AuthorizationServer>>,
    stamp: Stamp,
    /// The tokens; `None` while they cannot be read.
    tokens: Option<Tokens>,
}

/// The identity of a request, for as long as its credential is valid and its part of the configuration stays.
#[derive(Debug)]
pub(crate) struct Pass {
    entitlement: Arc<Entitlement>,
    claims: Claims,
    /// The scopes of an access token; other credentials have none and need none.
    scopes: Option<Arc<BTreeSet<String>>>,
    shown: Shown,
    expires: Option<SystemTime>,
    /// The end of what it opened, if that is later.
    outlasts: Option<SystemTime>,
    ended: CancellationToken,
    /// The time of the last use, in seconds since the authenticator was made.
    used: AtomicU64,
}

/// The identity that a credential shows.
struct Found {
    claims: Claims,
    scopes: Option<BTreeSet<String>>,
    shown: Shown,
    expires: Option<SystemTime>,
    outlasts: Option<SystemTime>,
}

/// A protected resource, as its metadata describe it (RFC 9728).
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    /// The URL of this server.
    pub(crate) url: String,
    /// The issuers at which clients can log in.
    pub(crate) issuers: Vec<String>,
    /// The scopes that every request needs.
    pub(crate) scopes: Vec<String>,
}

/// The way in which an identity was shown.
#[derive(Debug)]
enum Shown {
    /// A token of `mcpzip token create`, and whether it was made for managing.
    Token { manages: bool },
    /// The headers of a proxy.
    Forwarded,
    /// A token of the issuer, signed by the key with this hash.
    Issued(Option<Fingerprint>),
    /// A token that the issuer has called valid.
    Introspected {
        /// The token, to ask again.
        token: Secret<String>,
        /// The time of the latest answer.
        asked: Mutex<Instant>,
    },
    /// A token of the authorization server of mcpzip.
    Granted {
        /// The grant that it is from.
        grant: String,
        /// The key that signed it.
        key: String,
        /// Whether the window of the gateway is the client, and no program of the person.
        is_window: bool,
    },
    /// A certificate of the connection.
    Certificate,
}

/// Why a request has no identity.
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

    /// Whether it manages the gateway: its roles do, and a person has shown it. A credential that stands in the configuration of an agent's
    /// client would let the agent approve its own calls.
    #[must_use]
    pub(crate) fn manages(&self) -> bool {
        let is_for_it = match self.shown {
            Shown::Token { manages } => manages,
            Shown::Granted { is_window, .. } => is_window,
            Shown::Forwarded | Shown::Certificate => true,
            Shown::Issued(_) | Shown::Introspected { .. } => false,
        };
        is_for_it && self.entitlement.manages
    }

    /// Whether a proxy sends it with each request, with the groups of that moment.
    #[must_use]
    pub(crate) fn is_forwarded(&self) -> bool {
        matches!(self.shown, Shown::Forwarded)
    }

    /// The scopes of its access token; `None` for a credential without scopes.
    #[must_use]
    pub(crate) fn scopes(&self) -> Option<&Arc<BTreeSet<String>>> {
        self.scopes.as_ref()
    }

    /// Whether what it opened has ended.
    #[must_use]
    pub(crate) fn has_ended(&self) -> bool {
        let has_passed = |time: SystemTime| SystemTime::now() >= time;
        let is_over = match self.outlasts {
            Some(end) => has_passed(end),
            None => self.expires.is_some_and(has_passed),
        };
        is_over || self.ended.is_cancelled() || self.is_stale(answers::FRESH)
    }

    /// Whether it lets requests in.
    fn counts(&self) -> bool {
        let is_expired = self
            .expires
            .is_some_and(|expires| SystemTime::now() >= expires);
        !is_expired && !self.has_ended()
    }

    /// Whether the issuer's latest answer about it is older than this.
    fn is_stale(&self, age: std::time::Duration) -> bool {
        matches!(&self.shown, Shown::Introspected { asked, .. } if asked.lock().elapsed() >= age)
    }

    /// Resolves when it does not count any more.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.ended.clone().cancelled_owned()
    }
}

impl Authenticator {
    /// For the ways of `auth`, with the tokens of this state.
    #[must_use]
    pub(crate) fn new(auth: &HttpAuth, state: &StateOfRun, config: Arc<Config>) -> Self {
        let tokens = TokenFile::of(state);
        let stamp = tokens.stamp();
        let mut state = State {
            config,
            ways: Some(auth.clone()),
            issuer: None,
            server: None,
            stamp,
            tokens: read(&tokens),
        };
        state.find_issuers(&tokens);
        Self {
            tokens,
            state: RwLock::new(state),
            passes: Mutex::default(),
            renewing: Mutex::default(),
            start: Instant::now(),
        }
    }

    /// The pass of a request with these headers from `peer`. A certificate counts if the headers name no identity.
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
                None => self.admit(fingerprint, |_| {
                    Ok(Found::new(claims, Shown::Forwarded, None))
                }),
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
                let expires = Some(certificate.expires);
                Ok(Found::new(claims, Shown::Certificate, expires))
            });
        };
        let fingerprint = Fingerprint::from(Sha256::digest(credential));
        if let Some(known) = self.known(&fingerprint) {
            return Ok(known);
        }
        if credential.starts_with(PREFIX) {
            let is_known = |state: &State| {
                let tokens = state.tokens.as_ref();
                tokens.is_some_and(|tokens| tokens.find(&fingerprint).is_some())
            };
            if !is_known(&self.state.read()) {
                self.learn().await;
            }
            return self.admit(fingerprint, |state| {
                let is_on = state.ways.as_ref().is_some_and(|ways| ways.tokens);
                let tokens = state.tokens.as_ref();
                let tokens = tokens.filter(|_| is_on).ok_or(match is_on {
                    true => Denial::Unavailable,
                    false => Denial::Invalid,
                })?;
                let token = tokens.find(&fingerprint).ok_or(Denial::Invalid)?;
                let shown = Shown::Token {
                    manages: token.manages,
                };
                Ok(Found::new(claims_of(token), shown, token.expires()))
            });
        }
        let (issuer, server) = {
            let state = self.state.read();
            (state.issuer.clone(), state.server.clone())
        };
        let header = jsonwebtoken::decode_header(credential).ok();
        let key = header.as_ref().and_then(|header| header.kid.as_deref());
        if let (Some(server), Some(key)) = (server, key)
            && server.has_key(key)
        {
            // The grant of a new token may not be known yet.
            let is_known = {
                let state = self.state.read();
                let tokens = state.tokens.as_ref();
                state.stamp == self.tokens.stamp()
                    && tokens.is_some_and(|tokens| server.check(credential, tokens).is_ok())
            };
            if !is_known {
                self.learn().await;
            }
            return self.admit(fingerprint, |state| {
                let tokens = state.tokens.as_ref().ok_or(Denial::Unavailable)?;
                let is_same = is_same(state.server.as_ref(), &server);
                let tokens = is_same.then_some(tokens).ok_or(Denial::Invalid)?;
                server.check(credential, tokens)
            });
        }
        let issuer = issuer.ok_or(Denial::Invalid)?;
        if header.is_none() && issuer.introspects() {
            return self.introspect(&issuer, credential, fingerprint).await;
        }
        let checked = issuer.check(credential).await?;
        self.admit(fingerprint, |state| {
            let shown = Shown::Issued(checked.key);
            let found = Found::new(checked.claims, shown, Some(checked.expires));
            match is_same(state.issuer.as_ref(), &issuer) {
                true => Ok(found.with_scopes(checked.scopes)),
                // The configuration has changed meanwhile.
                false => Err(Denial::Invalid),
            }
        })
    }

    /// The pass of a token that the issuer has to be asked about.
    async fn introspect(
        &self,
        issuer: &Arc<Issuer>,
        token: &str,
        fingerprint: Fingerprint,
    ) -> Result<Arc<Pass>, Denial> {
        let is_in_use = self.passes.lock().contains_key(&fingerprint);
        let turn = issuer.answers.turn(&fingerprint, is_in_use).await;
        let _turn = turn.ok_or(Denial::Unavailable)?;
        // Another request has just asked.
        if let Some(known) = self.known(&fingerprint) {
            return Ok(known);
        }
        if issuer.answers.is_refused(&fingerprint) {
            return Err(Denial::Invalid);
        }
        // The answer is as old as the question.
        let asked = Instant::now();
        let checked = issuer.introspect(token).await.inspect_err(|denial| {
            if *denial == Denial::Invalid {
                issuer.answers.refuse(fingerprint);
            }
        })?;
        self.admit(fingerprint, |state| {
            let shown = Shown::Introspected {
                token: Secret::new(token.to_owned()),
                asked: Mutex::new(asked),
            };
            let found = Found::new(checked.claims, shown, Some(checked.expires));
            match is_same(state.issuer.as_ref(), issuer) {
                true => Ok(found.with_scopes(checked.scopes)),
                false => Err(Denial::Invalid),
            }
        })
    }

    /// Asks the issuer again about the tokens in use whose answers get old.
    async fn ask_again(&self, issuer: &Arc<Issuer>) {
        let ageing: Vec<(Fingerprint, Arc<Pass>)> = {
            let passes = self.passes.lock();
            let ageing = passes.iter().filter(|(_, pass)| {
                Arc::strong_count(pass) > 1 && pass.is_stale(answers::AGEING) && pass.counts()
            });
            ageing.map(|(one, pass)| (*one, pass.clone())).collect()
        };
        let asking = ageing.into_iter().map(|(fingerprint, pass)| async move {
            let Shown::Introspected { token, asked } = &pass.shown else {
                return;
            };
            let _turn = issuer.answers.turn(&fingerprint, true).await;
            // An earlier look may still have waited for its turn.
            if !pass.is_stale(answers::AGEING) {
                return;
            }
            let now = Instant::now();
            match issuer.introspect(token.expose()).await {
                Ok(checked)
                    if checked.claims == pass.claims
                        && pass.scopes.as_deref() == Some(&checked.scopes) =>
                {
                    *asked.lock() = now;
                }
                // Without an answer, the pass ends when the last one is too old.
                Err(Denial::Unavailable) => {}
                // The token may give something else now: the next request finds out.
                Ok(_) | Err(_) => {
                    self.end_passes(|known, _| *known == fingerprint);
                }
            }
        });
        futures_util::future::join_all(asking).await;
    }

    /// Learns of new tokens and grants, because a credential is not known: another process or replica may just have made it.
    async fn learn(&self) {
        // Who is known goes on without the store.
        if let Err(error) = self.tokens.refresh().await {
            tracing::debug!(%error, "new tokens are known later");
        }
        let (is_new, config) = {
            let state = self.state.read();
            (state.stamp != self.tokens.stamp(), state.config.clone())
        };
        if is_new {
            self.renew(&config);
        }
    }

    /// The kept pass of a credential.
    fn known(&self, fingerprint: &Fingerprint) -> Option<Arc<Pass>> {
        let passes = self.passes.lock();
        let known = passes.get(fingerprint).filter(|pass| pass.counts())?;
        known.used.store(self.now(), Ordering::Relaxed);
        Some(known.clone())
    }

    /// Makes and keeps the pass of an identity.
    fn admit(
        &self,
        fingerprint: Fingerprint,
        find: impl FnOnce(&State) -> Result<Found, Denial>,
    ) -> Result<Arc<Pass>, Denial> {
        // Held until the pass is kept, so that no change of the state misses it.
        let state = self.state.read();
        if state.ways.is_none() {
            return Err(Denial::Unavailable);
        }
        let found = find(&state)?;
        let claims = found.claims;
        let entitlement = state.config.entitlement(&claims).map_err(|reason| {
            let identity = &claims.identity;
            tracing::error!(identity, %reason, "an identity is refused");
            Denial::NotEntitled
        })?;
        let pass = Arc::new(Pass {
            entitlement: Arc::new(entitlement),
            claims,
            scopes: found.scopes.map(Arc::new),
            shown: found.shown,
            expires: found.expires,
            outlasts: found.outlasts,
            ended: CancellationToken::new(),
            used: AtomicU64::new(self.now()),
        });
        let mut passes = self.passes.lock();
        if passes.len() >= MOST {
            passes.retain(|_, pass| Arc::strong_count(pass) > 1);
        }
        // One that has expired meanwhile may still be in use.
        if let Some(before) = passes.insert(fingerprint, pass.clone()) {
            before.ended.cancel();
        }
        Ok(pass)
    }

    /// A live token of an identity, to exchange for another: the one that ends last.
    #[must_use]
    pub(crate) fn token_of(&self, entitlement: &Entitlement) -> Option<SubjectToken> {
        let passes = self.passes.lock();
        let theirs = passes
            .values()
            .filter(|pass| *pass.entitlement == *entitlement);
        let live = theirs.filter(|pass| !pass.has_ended());
        let tokens = live.filter_map(|pass| pass.claims.token.as_ref());
        tokens.max_by_key(|token| token.expires).cloned()
    }

    /// The resource for whose tokens clients log in; `None` if no access tokens count.
    #[must_use]
    pub(crate) fn resource(&self) -> Option<Resource> {
        let state = self.state.read();
        let issuer = state.issuer.as_ref().map(|issuer| &issuer.options);
        let server = state.server.as_ref().map(|server| server.options());
        let url = issuer.map(|issuer| issuer.audience.clone());
        let own = server.map(|server| server.url.clone());
        Some(Resource {
            url: url.or_else(|| server.map(|server| server.audience()))?,
            issuers: own
                .into_iter()
                .chain(issuer.map(|issuer| issuer.issuer.clone()))
                .collect(),
            scopes: issuer.map_or_else(Vec::new, |issuer| issuer.scopes.clone()),
        })
    }

    /// The authorization server of mcpzip itself, if it has one.
    #[must_use]
    pub(crate) fn server(&self) -> Option<Arc<AuthorizationServer>> {
        self.state.read().server.clone()
    }

    /// The scopes that a client may ask for in addition to those that every request needs.
    #[must_use]
    pub(crate) fn tool_scopes(&self) -> BTreeSet<String> {
        let state = self.state.read();
        let ways = state.ways.as_ref();
        let scopes = ways.map(|ways| ways.tool_scopes.all()).unwrap_or_default();
        scopes.into_iter().map(str::to_owned).collect()
    }

    /// Fetches the keys of the issuer again if they are old, and asks it again about tokens in use.
    pub(crate) async fn refresh(&self) {
        let issuer = self.state.read().issuer.clone();
        if let Some(issuer) = issuer {
            issuer.refresh().await;
            if issuer.introspects() {
                self.ask_again(&issuer).await;
            }
        }
    }

    /// Renews the keys of the authorization server when they are old. It may wait for the store, on a thread that may block.
    pub(crate) fn renew_keys(&self) {
        if let Some(server) = self.server() {
            server.renew();
        }
    }

    /// Applies changes of the tokens and of the configuration, and ends the passes that do not count any more.
    pub(crate) fn renew(&self, config: &Arc<Config>) {
        if let Some(server) = self.server() {
            server.read_again();
        }
        // One at a time, so that what was read first never replaces what was read later.
        let turn = self.renewing.lock();
        let stamp = self.tokens.stamp();
        let (is_changed, is_missing, is_other) = {
            let state = self.state.read();
            let is_other = !Arc::ptr_eq(&state.config, config);
            (state.stamp != stamp, state.tokens.is_none(), is_other)
        };
        if is_changed || is_missing || is_other {
            // Read before the lock is taken that every request needs; what was there before is freed after it.
            let mut tokens = match (is_changed, is_missing) {
                (true, _) => Some(read(&self.tokens)),
                // The log has the reason already.
                (false, true) => Some(self.tokens.read().ok()),
                (false, false) => None,
            };
            let mut state = self.state.write();
            state.stamp = stamp;
            if let Some(tokens) = &mut tokens {
                std::mem::swap(&mut state.tokens, tokens);
            }
            if !Arc::ptr_eq(&state.config, config) {
                state.configure(config.clone(), &self.tokens);
            }
            let state = parking_lot::RwLockWriteGuard::downgrade(state);
            self.end_passes(|fingerprint, pass| !state.confirms(fingerprint, pass));
        }
        drop(turn);
        let state = self.state.read();
        self.end_passes(|_, pass| match &pass.shown {
            // The issuer has withdrawn the key.
            Shown::Issued(key) => {
                let issuer = state.issuer.as_ref();
                !issuer.is_some_and(|issuer| issuer.has_key(key.as_ref()))
            }
            Shown::Granted { key, .. } => {
                let server = state.server.as_ref();
                !server.is_some_and(|server| server.has_key(key))
            }
            Shown::Token { .. }
            | Shown::Forwarded
            | Shown::Certificate
            | Shown::Introspected { .. } => false,
        });
        drop(state);
        let now = self.now();
        let is_unused = |pass: &Arc<Pass>| {
            Arc::strong_count(pass) == 1 && now - pass.used.load(Ordering::Relaxed) > UNUSED
        };
        // One that outlasts its token stays while it is in use, so that its grant can end it.
        let is_done = |pass: &Arc<Pass>| !pass.counts() && Arc::strong_count(pass) == 1;
        self.end_passes(|_, pass| pass.has_ended() || is_done(pass) || is_unused(pass));
    }

    /// The time since which the one who has this identity now has had it, in seconds since 1970, if it is known here.
    #[must_use]
    pub(crate) fn since(&self, identity: &str) -> Option<u64> {
        self.state.read().tokens.as_ref()?.since(identity)
    }

    /// Whether an identity with these claims gets anything.
    #[must_use]
    pub(crate) fn is_entitled(&self, claims: &Claims) -> bool {
        let state = self.state.read();
        let entitlement = state.config.entitlement(claims);
        let refused = entitlement.inspect_err(|reason| {
            let identity = &claims.identity;
            tracing::error!(identity, %reason, "an identity is refused");
        });
        refused.is_ok()
    }

    /// Ends the identities by certificates, whose authority counts no more.
    pub(crate) fn end_certificates(&self) {
        self.end_passes(|_, pass| matches!(pass.shown, Shown::Certificate));
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
                if Arc::strong_count(pass) > 1 {
                    let identity = &pass.claims.identity;
                    tracing::info!(identity, "the requests and sessions of an identity end");
                }
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
    fn configure(&mut self, config: Arc<Config>, tokens: &TokenFile) {
        match config.http.as_ref().map(|http| &http.auth) {
            Ok(Some(auth)) => {
                self.ways = Some(auth.clone());
                self.find_issuers(tokens);
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

    /// Has the issuers of the ways, with the keys that are known if they are those before.
    fn find_issuers(&mut self, tokens: &TokenFile) {
        let wanted = self.ways.as_ref().and_then(|ways| ways.oauth.as_deref());
        let known = self.issuer.as_ref().map(|issuer| &issuer.options);
        if known != wanted {
            self.issuer = wanted.map(|options| Arc::new(Issuer::new(options.clone())));
        }
        let wanted = self.ways.as_ref().and_then(|ways| ways.server.as_deref());
        let known = self.server.as_ref().map(|server| server.options());
        if known != wanted {
            self.server = wanted
                .map(|options| Arc::new(AuthorizationServer::new(options.clone(), tokens.clone())));
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
            Shown::Token { .. } => {
                let tokens = self.tokens.as_ref().filter(|_| ways.tokens);
                let token = tokens.and_then(|tokens| tokens.find(fingerprint));
                token.is_some_and(|token| {
                    token.expires() == pass.expires && is_entitled(&claims_of(token))
                })
            }
            Shown::Forwarded => ways.forwarded.is_some() && is_entitled(&pass.claims),
            Shown::Certificate => ways.certificates && is_entitled(&pass.claims),
            // The members that say the name and the groups may be others now.
            Shown::Issued(_) | Shown::Introspected { .. } => {
                let issuer = self.issuer.as_ref().map(|issuer| &issuer.options.issuer);
                issuer.is_some()
                    && issuer == pass.claims.issuer.as_ref()
                    && is_entitled(&pass.claims)
            }
            Shown::Granted { grant, .. } => {
                let grant = self.tokens.as_ref().and_then(|tokens| tokens.grant(grant));
                let grant = grant.filter(|grant| {
                    let server = self.server.as_ref();
                    server.is_some_and(|server| server.takes(grant))
                });
                grant.is_some_and(|grant| is_entitled(&grant.claims()))
            }
        }
    }
}

impl Found {
    fn new(claims: Claims, shown: Shown, expires: Option<SystemTime>) -> Self {
        Self {
            claims,
            scopes: None,
            shown,
            expires,
            outlasts: None,
        }
    }

    fn with_scopes(self, scopes: BTreeSet<String>) -> Self {
        Self {
            scopes: Some(scopes),
            ..self
        }
    }
}

/// Whether the issuer is still that which has checked a token: the configuration may have changed meanwhile.
fn is_same<T>(now: Option<&Arc<T>>, then: &Arc<T>) -> bool {
    now.is_some_and(|now| Arc::ptr_eq(now, then))
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

/// The claims of a token about its identity.
#[must_use]
pub(crate) fn claims_of(token: &Stored) -> Claims {
    Claims {
        identity: format!("{TOKEN}{}", token.name),
        name: token.name.clone(),
        roles: token.roles.clone(),
        profile: token.profile.clone(),
        ..Claims::default()
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
