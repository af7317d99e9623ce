//! The grants of people to clients: codes, which are exchanged for grants, and the tokens of a grant.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::keys::Keys;
use super::request::{Fields, Request, is_resource};
use super::waiting::{By, Person};
use super::window::ID as WINDOW;
use super::{AuthorizationServer, CODE, EndpointError};
use crate::identity::issuer::time;
use crate::identity::tokens::{Grant, People, TokenError, Tokens, now, sha256};
use crate::identity::{Denial, Found, Shown};
use crate::secret::{is_same_secret, random_bytes, random_token};

/// How long an access token counts.
const ACCESS: Duration = Duration::from_secs(600);

/// How long the refresh token before is answered like the current one, in seconds: a client may not have got the answer.
const GRACE: u64 = 10;

/// The most grants of one person; the oldest end.
const MOST_GRANTS: usize = 100;

/// An attempt to use a code.
enum Use {
    /// The first one, which is right: the request, the person, and when the code was given.
    Right(Box<(Request, Person, u64)>),
    /// A second one: the grant of the first, and the identity.
    Again(String, String),
    /// A wrong one.
    Wrong,
}

impl AuthorizationServer {
    /// Changes a code or a refresh token into tokens. The second value is an event for the audit log.
    ///
    /// # Errors
    /// When it does not count.
    pub(crate) fn token(
        &self,
        fields: &Fields,
    ) -> Result<(Value, Option<(String, String)>), EndpointError> {
        let keys = self.keys().ok_or_else(EndpointError::unavailable)?;
        if !is_resource(fields, &self.options.audience()) {
            let reason = "`resource` must be the URL of this server";
            return Err(EndpointError::new("invalid_target", reason));
        }
        match fields.get("grant_type") {
            Some("authorization_code") => self.change_code(fields, &keys),
            Some("refresh_token") => Ok((self.rotate(fields, &keys)?, None)),
            _ => Err(EndpointError::new(
                "unsupported_grant_type",
                "`grant_type` must be `authorization_code` or `refresh_token`",
            )),
        }
    }

    /// Ends the grant of a refresh or access token (RFC 7009). Unknown tokens have ended already.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn revoke(
        &self,
        fields: &Fields,
    ) -> Result<Option<(String, String)>, EndpointError> {
        let keys = self.keys().ok_or_else(EndpointError::unavailable)?;
        let token = fields.get("token").unwrap_or_default();
        let grant = match parsed_refresh(token, &keys) {
            Some((grant, _)) => Some(grant.to_owned()),
            None => self.members(token, &keys).ok().and_then(|members| {
                members
                    .get("sid")
                    .and_then(Value::as_str)
                    .map(str::to_owned)
            }),
        };
        let client = fields.get("client_id").map(sha256);
        let Some(id) = grant else { return Ok(None) };
        let ended = self.file.change_people(|people| {
            let at = people.grants.iter().position(|grant| {
                grant.id == id
                    && client
                        .as_ref()
                        .is_none_or(|client| *client == grant.client_sha256)
            })?;
            Some(people.grants.remove(at))
        });
        let ended = ended.map_err(|error| {
            tracing::error!(%error, "a grant cannot be ended");
            EndpointError::unavailable()
        })?;
        Ok(ended.map(|grant| (grant.identity, format!("{} logged out", grant.client))))
    }

    /// The identity of an access token, whose key is one of its own.
    pub(in crate::identity) fn check(&self, token: &str, tokens: &Tokens) -> Result<Found, Denial> {
        let keys = self.keys().ok_or(Denial::Unavailable)?;
        let members = self.members(token, &keys)?;
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let grant = text("sid").and_then(|id| tokens.grant(id));
        let grant = grant.filter(|grant| self.takes(grant));
        let grant = grant.ok_or(Denial::Invalid)?;
        let header = decode_header(token).map_err(|_| Denial::Invalid)?;
        let shown = Shown::Granted {
            grant: grant.id.clone(),
            key: header.kid.ok_or(Denial::Invalid)?,
            is_window: grant.client_sha256 == sha256(WINDOW),
        };
        let scopes = text("scope").unwrap_or_default().split_whitespace();
        let found = Found::new(grant.claims(), shown, time(members.get("exp")));
        Ok(Found {
            outlasts: Some(UNIX_EPOCH + Duration::from_secs(grant.expires)),
            ..found.with_scopes(scopes.map(str::to_owned).collect())
        })
    }

    /// The members of an access token that counts.
    fn members(&self, token: &str, keys: &Keys) -> Result<Map<String, Value>, Denial> {
        let header = decode_header(token).map_err(|_| Denial::Invalid)?;
        let key = header.kid.as_deref().and_then(|id| keys.find(id));
        let key = key.ok_or(Denial::Invalid)?;
        if header.crit.is_some() || header.typ.as_deref() != Some("at+jwt") {
            return Err(Denial::Invalid);
        }
        let mut validation = Validation::new(Algorithm::ES256);
        // The clock is our own.
        validation.leeway = 0;
        validation.set_issuer(&[&self.options.url]);
        validation.set_audience(&[&self.options.audience()]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let decoded = decode::<Map<String, Value>>(token, key, &validation);
        Ok(decoded.map_err(|_| Denial::Invalid)?.claims)
    }

    fn change_code(
        &self,
        fields: &Fields,
        keys: &Keys,
    ) -> Result<(Value, Option<(String, String)>), EndpointError> {
        let invalid = || EndpointError::new("invalid_grant", "the code does not count");
        let code = sha256(fields.get("code").ok_or_else(invalid)?);
        let id = HEXLOWER.encode(&random_bytes::<8>());
        let outcome = self.waiting.use_code(&code, |given| {
            if let Some(used) = &given.used {
                // The code was stolen by one of the two.
                let identity = given.person.claims.identity.clone();
                given.again = true;
                return (Use::Again(used.clone(), identity), true);
            }
            let request = &given.request;
            let is_right = fields
                .get("client_id")
                .is_some_and(|id| sha256(id) == request.client.sha256)
                && fields.get("redirect_uri") == Some(request.redirect.as_str())
                && now().saturating_sub(given.given) < CODE.as_secs()
                && fields.get("code_verifier").is_some_and(|verifier| {
                    let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
                    (43..=128).contains(&verifier.len())
                        && is_same_secret(&hash, &request.challenge)
                });
            // A wrong attempt is the last one.
            if !is_right {
                return (Use::Wrong, false);
            }
            given.used = Some(id.clone());
            let used = (request.clone(), given.person.clone(), given.given);
            (Use::Right(Box::new(used)), true)
        });
        let outcome = outcome.map_err(|_| EndpointError::unavailable())?;
        let (request, mut person, given) = match outcome {
            Some(Use::Right(used)) => *used,
            Some(Use::Again(used, identity)) => {
                self.end(&used);
                return Err(EndpointError {
                    event: Some((
                        identity,
                        "a code was used twice: what it gave has ended".to_owned(),
                    )),
                    ..invalid()
                });
            }
            Some(Use::Wrong) | None => return Err(invalid()),
        };
        self.waiting
            .regroup_code(&mut person, given)
            .map_err(|_| EndpointError::unavailable())?;
        let claims = person.claims.clone();
        let grant = Grant {
            id,
            name: claims.name,
            identity: claims.identity,
            issuer: claims.issuer,
            groups: claims.groups,
            roles: claims.roles,
            profile: claims.profile,
            browser: match &person.by {
                By::Browser(id) => Some(id.clone()),
                By::Login(_) => None,
            },
            client: request.client.name,
            client_sha256: request.client.sha256,
            scopes: request.scopes,
            created: now(),
            expires: now().saturating_add(self.options.lifetime.as_secs()),
            turn: 1,
            turned: now(),
        };
        let ended = grant.id.clone();
        let tokens = self.tokens(&grant, fields.get("client_id").unwrap_or_default(), keys);
        let event = format!("{} got tokens for {}", grant.client, grant.name);
        let event = (grant.identity.clone(), event);
        // Under the lock, so that no revocation comes between.
        let is_known = self.change(|people| {
            if !person.is_known(people) {
                return false;
            }
            let is_theirs = |one: &&Grant| one.identity == grant.identity;
            if people.grants.iter().filter(is_theirs).count() >= MOST_GRANTS
                && let Some(at) = people.grants.iter().position(|one| is_theirs(&one))
            {
                people.grants.remove(at);
            }
            people.grants.push(grant);
            true
        })?;
        // A second use may have come before the grant was there to be ended.
        let again = self.waiting.use_code(&code, |given| (given.again, true));
        if again.map_err(|_| EndpointError::unavailable())? == Some(true) {
            self.end(&ended);
            return Err(invalid());
        }
        match is_known {
            true => Ok((tokens, Some(event))),
            false => Err(invalid()),
        }
    }

    fn rotate(&self, fields: &Fields, keys: &Keys) -> Result<Value, EndpointError> {
        let invalid = || EndpointError::new("invalid_grant", "the refresh token does not count");
        let token = fields.get("refresh_token").unwrap_or_default();
        let (id, turn) = parsed_refresh(token, keys).ok_or_else(invalid)?;
        let client = fields.get("client_id").ok_or_else(invalid)?;
        let hash = sha256(client);
        let rotated = self.file.change_grant(id, |grant, now| {
            if grant.client_sha256 != hash || !self.takes(grant) {
                return (Err(None), true);
            }
            if turn == grant.turn {
                (grant.turn, grant.turned) = (turn + 1, now);
            } else if turn + 1 != grant.turn || now > grant.turned + GRACE {
                return (Err(Some(Box::new(grant.clone()))), false);
            }
            (Ok(grant.clone()), true)
        });
        let rotated = rotated.map_err(|error| unavailable(&error))?;
        match rotated.unwrap_or(Err(None)) {
            Ok(grant) => Ok(self.tokens(&grant, client, keys)),
            Err(None) => Err(invalid()),
            Err(Some(grant)) => {
                let grant = *grant;
                let identity = &grant.identity;
                tracing::error!(
                    identity,
                    client = grant.client,
                    "a refresh token was used twice: its grant has ended"
                );
                let event = format!(
                    "a refresh token of {} was used twice: its grant has ended",
                    grant.client
                );
                Err(EndpointError {
                    event: Some((grant.identity, event)),
                    ..invalid()
                })
            }
        }
    }

    /// The answer with tokens of a grant.
    fn tokens(&self, grant: &Grant, client: &str, keys: &Keys) -> Value {
        let scopes: Vec<&str> = grant.scopes.iter().map(String::as_str).collect();
        let scope = scopes.join(" ");
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        // The grant may end before.
        let left = grant.expires.saturating_sub(now.as_secs());
        let lifetime = ACCESS.as_secs().min(left);
        let access = keys.sign(&json!({
            "iss": self.options.url,
            "aud": self.options.audience(),
            "sub": grant.identity,
            "client_id": client,
            "sid": grant.id,
            "scope": scope,
            "jti": random_token(),
            "iat": now.as_secs(),
            "exp": now.as_secs() + lifetime,
        }));
        let refresh = format!("{}.{}", grant.id, grant.turn);
        let seal = keys.seal("refresh", &refresh);
        json!({
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": lifetime,
            "refresh_token": format!("{refresh}.{seal}"),
            "scope": scope,
        })
    }

    /// Ends a grant.
    pub(super) fn end(&self, id: &str) {
        // A failure is in the log.
        let _ = self.change(|people| people.grants.retain(|grant| grant.id != id));
    }

    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut People) -> T,
    ) -> Result<T, EndpointError> {
        let changed = self.file.change_people(change);
        changed.map_err(|error| unavailable(&error))
    }
}

fn unavailable(error: &TokenError) -> EndpointError {
    tracing::error!(%error, "the authorization server gives no tokens");
    EndpointError::unavailable()
}

/// The grant and the number of a refresh token with our seal.
fn parsed_refresh<'t>(token: &'t str, keys: &Keys) -> Option<(&'t str, u64)> {
    let (content, seal) = token.rsplit_once('.')?;
    let (grant, turn) = content.split_once('.')?;
    let turn = turn.parse().ok()?;
    keys.is_sealed("refresh", content, seal)
        .then_some((grant, turn))
}
