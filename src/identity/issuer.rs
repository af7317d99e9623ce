//! The tokens of an OAuth issuer: JWTs, checked with the keys that the issuer publishes.
//!
//! Keys are fetched when the first token comes, again after a while, and at once for a key id that is not known, at most every ten
//! seconds. While the issuer cannot be reached, the last keys count for a day.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http_body_util::{BodyExt as _, Limited};
use jsonwebtoken::jwk::{Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{DecodingKey, Header, Validation, decode, decode_header};
use parking_lot::Mutex;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde_json::{Map, Value};

use super::jwt_crypto::{ALGORITHMS, family, install};
use super::{Denial, is_name};
use crate::config::{Claims, ResourceServer, is_protected};
use crate::tls;

/// The longest token in bytes.
const LONGEST: usize = 16 * 1024;
/// The tolerance for clocks that differ, in seconds.
const SKEW: u64 = 60;
/// The time limit of one request to the issuer.
const LIMIT: Duration = Duration::from_secs(10);
/// The size limit of an answer, in bytes.
const LARGEST: usize = 256 * 1024;
/// The age at which keys are fetched again.
const FRESH: Duration = Duration::from_secs(5 * 60);
/// The shortest time between two requests for the keys.
const PAUSE: Duration = Duration::from_secs(10);
/// The age at which keys that could not be fetched again count no more.
const OLDEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The reason why the keys of an issuer are not known.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeyError {
    #[error("`{url}` cannot be reached: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("`{url}` answered with HTTP {status}")]
    Status { url: String, status: u16 },
    #[error("the answer of `{url}` is not understood: {reason}")]
    Wrong { url: String, reason: &'static str },
    #[error("this machine has no certificates to trust for `{0}`")]
    Certificates(String),
}

/// An OAuth issuer, and what it has published.
#[derive(Debug)]
pub(super) struct Issuer {
    options: ResourceServer,
    keys: Mutex<Keys>,
    /// Held while keys are fetched, so that one request does it for all.
    fetching: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Keys {
    set: Option<(JwkSet, Instant)>,
    /// The last attempt to fetch them.
    tried: Option<Instant>,
}

/// A token that was checked.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) claims: Claims,
    pub(super) expires: SystemTime,
    /// The id of the key that signed it.
    pub(super) key: Option<String>,
}

impl Issuer {
    pub(super) fn new(options: ResourceServer) -> Self {
        install();
        Self {
            options,
            keys: Mutex::default(),
            fetching: tokio::sync::Mutex::default(),
        }
    }

    pub(super) fn options(&self) -> &ResourceServer {
        &self.options
    }

    /// Whether the key with this id still is one of the issuer's.
    pub(super) fn has_key(&self, id: Option<&str>) -> bool {
        let keys = self.keys.lock();
        let Some((set, at)) = &keys.set else {
            return false;
        };
        at.elapsed() < OLDEST && id.is_none_or(|id| set.find(id).is_some())
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

    /// Checks a token.
    ///
    /// # Errors
    /// When it is not one of the issuer's for this server, or the keys are not known.
    pub(super) async fn check(&self, token: &str) -> Result<Checked, Denial> {
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
        let key = match self.key(&header) {
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
        let members = decoded.map_err(|_| Denial::Invalid)?.claims;
        let expires = members.get("exp").and_then(Value::as_f64);
        let expires = expires.filter(|expires| expires.is_finite() && *expires >= 0.0);
        let expires = expires.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let expires = expires.and_then(|expires| UNIX_EPOCH.checked_add(expires));
        let expires = expires.ok_or(Denial::Invalid)? + Duration::from_secs(SKEW);
        Ok(Checked {
            claims: self.claims(&members)?,
            expires,
            key: header.kid,
        })
    }

    /// The key that a header names, or the only one of its kind.
    fn key(&self, header: &Header) -> Option<DecodingKey> {
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
            let key = DecodingKey::from_jwk(key).ok()?;
            (key.family() == family).then_some(key)
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

    /// The identity that a token's members say.
    fn claims(&self, members: &Map<String, Value>) -> Result<Claims, Denial> {
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
        let scopes: BTreeSet<&str> = scopes.iter().flat_map(|text| text.split(' ')).collect();
        if !options
            .scopes
            .iter()
            .all(|scope| scopes.contains(scope.as_str()))
        {
            return Err(Denial::InsufficientScope);
        }
        let identity = match options.user.as_str() {
            "sub" => format!("oauth:{subject}"),
            _ => format!("oauth:{name}/{subject}"),
        };
        Ok(Claims {
            identity,
            name: name.to_owned(),
            groups: texts(member(members, &options.groups))
                .into_iter()
                .collect(),
            ..Claims::default()
        })
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
            Ok(set) => self.keys.lock().set = Some((set, Instant::now())),
            Err(error) => {
                let issuer = &self.options.issuer;
                tracing::error!(issuer, %error, "the keys of the issuer could not be fetched");
            }
        }
    }

    async fn fetched(&self) -> Result<JwkSet, KeyError> {
        let keys = match &self.options.jwks_url {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let wrong = |reason| KeyError::Wrong {
            url: keys.clone(),
            reason,
        };
        let Value::Object(mut document) = self.get(&keys).await? else {
            return Err(wrong("it is no object"));
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

    /// The URL of the keys, by the issuer's metadata (OpenID Connect Discovery, then RFC 8414).
    async fn discover(&self) -> Result<String, KeyError> {
        let issuer = self.options.issuer.trim_end_matches('/');
        let openid = format!("{issuer}/.well-known/openid-configuration");
        let document = match self.get(&openid).await {
            Err(KeyError::Status { .. }) => {
                let wrong = |_| KeyError::Wrong {
                    url: issuer.to_owned(),
                    reason: "it is no URL",
                };
                let mut url = Url::parse(issuer).map_err(wrong)?;
                let path = url.path().trim_end_matches('/').to_owned();
                url.set_path(&format!("/.well-known/oauth-authorization-server{path}"));
                self.get(url.as_str()).await?
            }
            document => document?,
        };
        let wrong = |reason| KeyError::Wrong {
            url: openid.clone(),
            reason,
        };
        // RFC 8414, 3.3.
        if document["issuer"].as_str() != Some(&self.options.issuer) {
            return Err(wrong(
                "its `issuer` is another one than that of the configuration",
            ));
        }
        let keys = document["jwks_uri"].as_str();
        let keys = keys.ok_or_else(|| wrong("it has no `jwks_uri`"))?;
        match is_protected(keys) {
            true => Ok(keys.to_owned()),
            false => Err(wrong("its `jwks_uri` is not `https`")),
        }
    }

    async fn get(&self, url: &str) -> Result<Value, KeyError> {
        let unreachable = |reason: String| KeyError::Unreachable {
            url: url.to_owned(),
            reason,
        };
        let client = self.client(url)?;
        let answer = client
            .get(url)
            .header("accept", "application/json")
            .send()
            .await;
        let answer = answer.map_err(|error| unreachable(error.without_url().to_string()))?;
        let status = answer.status().as_u16();
        if status != 200 {
            return Err(KeyError::Status {
                url: url.to_owned(),
                status,
            });
        }
        let body = Limited::new(reqwest::Body::from(answer), LARGEST)
            .collect()
            .await;
        let body =
            body.map_err(|_| unreachable("the answer is too large, or broke off".to_owned()))?;
        let reason = "it is not JSON";
        serde_json::from_slice(&body.to_bytes()).map_err(|_| KeyError::Wrong {
            url: url.to_owned(),
            reason,
        })
    }

    /// A client that follows no redirect: the issuer names its own URLs.
    fn client(&self, url: &str) -> Result<Client, KeyError> {
        let builder = tls::begin()
            .user_agent(concat!("mcpzip/", env!("CARGO_PKG_VERSION")))
            .timeout(LIMIT)
            .redirect(Policy::none())
            .referer(false);
        let builder = self.options.network.with_proxies(builder);
        let none = || KeyError::Certificates(url.to_owned());
        let builder = if url.starts_with("http://") {
            tls::plain(builder)
        } else {
            let trusting = self.options.network.with_certificates(builder, None);
            trusting.map_err(|_| none())?
        };
        builder.build().map_err(|_| none())
    }
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
fn texts(value: Option<&Value>) -> Vec<String> {
    let one = |value: &Value| value.as_str().map(str::to_owned);
    match value {
        Some(Value::Array(list)) => list.iter().filter_map(one).collect(),
        Some(value) => one(value).into_iter().collect(),
        None => Vec::new(),
    }
}
