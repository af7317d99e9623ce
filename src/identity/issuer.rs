//! The tokens of an OAuth issuer: JWTs, checked with the keys that the issuer publishes, and others, about which the
//! issuer is asked (`introspection.rs`).
//!
//! Keys are fetched when the first token arrives, again from time to time, and at once for an unknown key id, at
//! most every ten seconds. While the issuer cannot be reached, the last keys are used for a day.

use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{DecodingKey, Header, Validation, decode, decode_header};
use parking_lot::Mutex;
use reqwest::Url;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::answers::Answers;
use super::jwt_crypto::{ALGORITHMS, family, install};
use super::requests::{RequestError, Requests};
use super::{Denial, Fingerprint, is_name};
use crate::config::{Claims, HttpAuth, ResourceServer, SubjectToken, is_protected};
use crate::secret::{Secret, random_token};

/// The longest token in bytes.
pub(super) const LONGEST: usize = 16 * 1024;
/// The tolerance for clocks that differ, in seconds.
pub(super) const SKEW: u64 = 60;
/// The age at which keys are fetched again.
const FRESH: Duration = Duration::from_secs(5 * 60);
/// The shortest time between two requests for the keys.
const PAUSE: Duration = Duration::from_secs(10);
/// The age at which keys that could not be fetched again count no more.
const OLDEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The time limit of an examination.
const EXAMINATION: Duration = Duration::from_secs(5);
/// The endpoints of a provider at which people log in.
const OF_LOGIN: &[&str] = &["authorization_endpoint", "token_endpoint"];

/// Asks the issuers of `auth` for all that a gateway needs of them. Returns those that do not answer, or are not what the configuration
/// says, with the reason.
pub(crate) async fn faulty_issuers(auth: &HttpAuth) -> Vec<(String, String)> {
    let of_tokens = auth.oauth.iter().map(|options| (&**options, &[][..]));
    let logins = auth
        .server
        .iter()
        .filter_map(|server| server.login.as_ref());
    let of_people = logins.map(|login| (&login.issuer, OF_LOGIN));
    let asked = of_tokens
        .chain(of_people)
        .map(|(options, endpoints)| async move {
            let issuer = Issuer::new(options.clone());
            let examined = tokio::time::timeout(EXAMINATION, issuer.examine(endpoints));
            let fault = match examined.await {
                Ok(Ok(())) => return None,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("it gave no answer within {EXAMINATION:?}"),
            };
            Some((options.issuer.clone(), fault))
        });
    join_all(asked).await.into_iter().flatten().collect()
}

/// An OAuth issuer, and what it has published.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) options: ResourceServer,
    pub(super) requests: Requests,
    /// The latest answers about tokens other than JWTs.
    pub(super) answers: Answers,
    keys: Mutex<Keys>,
    /// Held while keys are fetched, so that one request does it for all.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Keys {
    set: Option<(JwkSet, Instant)>,
    /// Their hashes.
    hashes: HashSet<Fingerprint>,
    /// The last attempt to fetch them.
    tried: Option<Instant>,
}

/// A token that was checked.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) claims: Claims,
    pub(super) scopes: BTreeSet<String>,
    pub(super) expires: SystemTime,
    /// The hash of the key that signed it.
    pub(super) key: Option<Fingerprint>,
}

impl Issuer {
    pub(super) fn new(options: ResourceServer) -> Self {
        install();
        Self {
            requests: Requests::new(options.network.clone()),
            answers: Answers::default(),
            options,
            keys: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    /// Whether the key with this hash still is one of the issuer's.
    pub(super) fn has_key(&self, hash: Option<&Fingerprint>) -> bool {
        let keys = self.keys.lock();
        let is_recent = matches!(&keys.set, Some((_, at)) if at.elapsed() < OLDEST);
        is_recent && hash.is_some_and(|hash| keys.hashes.contains(hash))
    }

    /// Fetches the keys again if they are old.
    pub(super) async fn refresh(&self) {
        let is_old = {
            let keys = self.keys.lock();
            keys.set
                .as_ref()
                .is_some_and(|(_, at)| at.elapsed() > FRESH)
        };
        if is_old {
            self.fetch().await;
        }
    }

    /// Checks an access token.
    ///
    /// # Errors
    /// When it is not one of the issuer's for this server, or the keys are not known.
    pub(super) async fn check(&self, token: &str) -> Result<Checked, Denial> {
        let (key, members) = self.members(token).await?;
        // A token that is bound to a key counts only with a proof of it (RFC 7800), which clients do not send here.
        if members.contains_key("cnf") {
            return Err(Denial::Invalid);
        }
        let expires = time(members.get("exp")).ok_or(Denial::Invalid)?;
        let expires = expires + Duration::from_secs(SKEW);
        let (claims, scopes) = self.claims(&members)?;
        let token = SubjectToken {
            token: Secret::new(token.to_owned()),
            grant: grant_of(&members),
            expires,
        };
        Ok(Checked {
            claims: Claims {
                token: Some(token),
                ..claims
            },
            scopes,
            expires,
            key: Some(key),
        })
    }

    /// The hash of the key, and the members, of a token that the issuer has signed for the audience.
    ///
    /// # Errors
    /// When it is not such a token, or the keys are not known.
    pub(super) async fn members(
        &self,
        token: &str,
    ) -> Result<(Fingerprint, Map<String, Value>), Denial> {
        if token.len() > LONGEST {
            return Err(Denial::Invalid);
        }
        let header = decode_header(token).map_err(|_| Denial::Invalid)?;
        let is_access_token = header.typ.as_deref().is_none_or(|kind| {
            let kind = kind.to_ascii_lowercase();
            matches!(kind.trim_start_matches("application/"), "jwt" | "at+jwt")
        });
        // An extension that must be understood is not.
        if !ALGORITHMS.contains(&header.alg) || !is_access_token || header.crit.is_some() {
            return Err(Denial::Invalid);
        }
        let (hash, key) = match self.key(&header) {
            Some(key) => key,
            None => {
                self.fetch().await;
                if self.keys.lock().set.is_none() {
                    return Err(Denial::Unavailable);
                }
                self.key(&header).ok_or(Denial::Invalid)?
            }
        };
        let mut validation = Validation::new(header.alg);
        validation.leeway = SKEW;
        validation.validate_nbf = true;
        validation.set_issuer(&[&self.options.issuer]);
        validation.set_audience(&[&self.options.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let decoded = decode::<Map<String, Value>>(token, &key, &validation);
        Ok((hash, decoded.map_err(|_| Denial::Invalid)?.claims))
    }

    /// The key that a header names, or the only one of its kind, with its hash.
    fn key(&self, header: &Header) -> Option<(Fingerprint, DecodingKey)> {
        let keys = self.keys.lock();
        let (set, at) = keys.set.as_ref()?;
        if at.elapsed() > OLDEST {
            return None;
        }
        let is_usable = |key: &&Jwk| {
            let common = &key.common;
            let is_for_signatures = common
                .public_key_use
                .as_ref()
                .is_none_or(|usage| *usage == PublicKeyUse::Signature);
            let is_its_algorithm = common
                .key_algorithm
                .is_none_or(|algorithm| algorithm.to_string() == format!("{:?}", header.alg));
            is_for_signatures && is_its_algorithm
        };
        let family = family(header.alg)?;
        let decoding = |key: &Jwk| {
            let hash = hash_of(key)?;
            let key = DecodingKey::from_jwk(key).ok()?;
            (key.family() == family).then_some((hash, key))
        };
        match &header.kid {
            Some(id) => set.find(id).filter(is_usable).and_then(decoding),
            None => {
                let mut fitting = set.keys.iter().filter(is_usable).filter_map(decoding);
                let only = fitting.next()?;
                fitting.next().is_none().then_some(only)
            }
        }
    }

    /// The identity that a token's members say, and its scopes.
    pub(super) fn claims(
        &self,
        members: &Map<String, Value>,
    ) -> Result<(Claims, BTreeSet<String>), Denial> {
        let options = &self.options;
        let text = |name: &str| member(members, name).and_then(Value::as_str);
        let subject = text("sub").filter(|subject| is_name(subject));
        let subject = subject.ok_or(Denial::Invalid)?;
        let name = text(&options.user).filter(|name| is_name(name));
        let name = name.ok_or(Denial::NotEntitled)?;
        let is_verified = members.get("email_verified") == Some(&Value::Bool(true));
        if options.user == "email" && !is_verified {
            return Err(Denial::NotEntitled);
        }
        let scopes = texts(members.get("scope").or(members.get("scp")));
        let scopes = scopes.iter().flat_map(|text| text.split_whitespace());
        let scopes: BTreeSet<String> = scopes.map(str::to_owned).collect();
        if !options.scopes.iter().all(|scope| scopes.contains(scope)) {
            return Err(Denial::InsufficientScope);
        }
        let identity = match options.user.as_str() {
            "sub" => format!("oauth:{}", escaped(subject)),
            _ => format!("oauth:{}/{}", escaped(name), escaped(subject)),
        };
        let claims = Claims {
            identity,
            issuer: Some(options.issuer.clone()),
            name: name.to_owned(),
            groups: texts(member(members, &options.groups))
                .into_iter()
                .collect(),
            ..Claims::default()
        };
        Ok((claims, scopes))
    }

    /// Fetches the keys, unless that was tried just now.
    async fn fetch(&self) {
        let asked = Instant::now();
        let _turn = self.fetching.lock().await;
        {
            let mut keys = self.keys.lock();
            // Another request has just done it, or it is too soon.
            if keys
                .tried
                .is_some_and(|tried| tried >= asked || tried.elapsed() < PAUSE)
            {
                return;
            }
            keys.tried = Some(Instant::now());
        }
        match self.fetched().await {
            Ok(set) => {
                let mut keys = self.keys.lock();
                keys.hashes = set.keys.iter().filter_map(hash_of).collect();
                keys.set = Some((set, Instant::now()));
            }
            Err(error) => {
                let issuer = &self.options.issuer;
                tracing::error!(issuer, %error, "the keys of the issuer could not be fetched");
            }
        }
    }

    async fn fetched(&self) -> Result<JwkSet, RequestError> {
        let keys = match &self.options.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let wrong = |reason| RequestError::Wrong {
            url: keys.clone(),
            reason,
        };
        let Value::Object(mut document) = self.requests.get(&keys).await? else {
            return Err(wrong("it is not a JSON object"));
        };
        let Some(Value::Array(list)) = document.remove("keys") else {
            return Err(wrong("it has no `keys`"));
        };
        // A key of an unknown kind does not keep the others from being used.
        let known = list
            .into_iter()
            .filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let keys: Vec<Jwk> = known.collect();
        match keys.is_empty() {
            true => Err(wrong("it has no key that can be used")),
            false => Ok(JwkSet { keys }),
        }
    }

    /// Asks for the metadata with these endpoints, if there are any, and for the keys; in place of these, an issuer that is asked about tokens is
    /// asked about one that no client has.
    async fn examine(&self, endpoints: &[&str]) -> Result<(), RequestError> {
        if !endpoints.is_empty() {
            let metadata = self.metadata().await?;
            for name in endpoints {
                self.endpoint(&metadata, name)?;
            }
        }
        match &self.options.introspection {
            Some(endpoint) => self.ask(endpoint, &random_token()).await.map(drop),
            None => self.fetched().await.map(drop),
        }
    }

    /// The URL of the keys, by the issuer's metadata.
    async fn discover(&self) -> Result<String, RequestError> {
        self.endpoint(&self.metadata().await?, "jwks_uri")
    }

    /// The URL of an endpoint in the issuer's metadata.
    pub(super) fn endpoint(&self, metadata: &Value, name: &str) -> Result<String, RequestError> {
        let wrong = |reason| RequestError::Wrong {
            url: self.options.issuer.clone(),
            reason,
        };
        let url = metadata[name].as_str();
        let url = url.ok_or_else(|| wrong("its metadata lack an endpoint that is needed"))?;
        match is_protected(url) {
            true => Ok(url.to_owned()),
            false => Err(wrong("an endpoint in its metadata is not `https`")),
        }
    }

    /// The issuer's metadata (OpenID Connect Discovery, then RFC 8414).
    pub(super) async fn metadata(&self) -> Result<Value, RequestError> {
        let issuer = self.options.issuer.trim_end_matches('/');
        let openid = format!("{issuer}/.well-known/openid-configuration");
        let document = match self.requests.get(&openid).await {
            Err(RequestError::Status { .. }) => {
                let wrong = |_| RequestError::Wrong {
                    url: issuer.to_owned(),
                    reason: "it is not a URL",
                };
                let mut url = Url::parse(issuer).map_err(wrong)?;
                let path = url.path().trim_end_matches('/').to_owned();
                url.set_path(&format!("/.well-known/oauth-authorization-server{path}"));
                self.requests.get(url.as_str()).await?
            }
            document => document?,
        };
        let wrong = |reason| RequestError::Wrong {
            url: openid.clone(),
            reason,
        };
        // RFC 8414, 3.3.
        if document["issuer"].as_str() != Some(&self.options.issuer) {
            return Err(wrong(
                "its `issuer` is another one than that of the configuration",
            ));
        }
        Ok(document)
    }
}

/// The hash of the key itself, because an issuer may give an id to another key.
fn hash_of(key: &Jwk) -> Option<Fingerprint> {
    let text = serde_json::to_vec(&key.algorithm).ok()?;
    Some(Sha256::digest(text).into())
}

/// A part of an identity, without the character that separates parts.
fn escaped(part: &str) -> String {
    part.replace('%', "%25").replace('/', "%2F")
}

/// A time in seconds since 1970, as tokens have it.
pub(super) fn time(value: Option<&Value>) -> Option<SystemTime> {
    // Far times would overflow sums.
    let seconds = value?.as_f64().filter(|seconds| *seconds < 1e12)?;
    let since = Duration::try_from_secs_f64(seconds).ok()?;
    UNIX_EPOCH.checked_add(since)
}

/// The grant of a token: its scopes, and the client that it was given to.
fn grant_of(members: &Map<String, Value>) -> String {
    let scopes = texts(members.get("scope").or(members.get("scp")));
    let scopes: BTreeSet<&str> = scopes.iter().flat_map(|text| text.split(' ')).collect();
    let client = members.get("client_id").or(members.get("azp"));
    let client = client.and_then(Value::as_str).unwrap_or_default();
    let scopes: Vec<&str> = scopes.into_iter().collect();
    format!("{client}\n{}", scopes.join(" "))
}

/// A member by its name, or by a path with dots, such as `realm_access.roles`.
fn member<'m>(members: &'m Map<String, Value>, path: &str) -> Option<&'m Value> {
    if let Some(value) = members.get(path) {
        return Some(value);
    }
    let (first, rest) = path.split_once('.')?;
    let mut value = members.get(first)?;
    for part in rest.split('.') {
        value = value.get(part)?;
    }
    Some(value)
}

/// A list of texts, or a single one.
pub(super) fn texts(value: Option<&Value>) -> Vec<String> {
    let one = |value: &Value| value.as_str().map(str::to_owned);
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(one).collect(),
        Some(value) => one(value).into_iter().collect(),
        None => Vec::new(),
    }
}
