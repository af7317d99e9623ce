//! Questions for consent, and codes: they wait for a person or a client for a short time.
//!
//! A run without a store has them in memory. Replicas share them: a question for consent is sealed into its own id, so that asking writes
//! nothing, and the store only has which were answered; codes are in the store, by their hash.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::request::Request;
use super::{CODE, FLOW};
use crate::config::Claims;
use crate::identity::tokens::{now, sha256};
use crate::sealing::{Key, Sealed};
use crate::secret::random_token;
use crate::store::Records;

/// The most questions for consent that wait: of one person, and of all.
const MOST_OF_ONE: usize = 10;
const MOST: usize = 1000;

const MICROS: u64 = 1_000_000;

/// The current time in microseconds since 1970.
pub(super) fn micros() -> u64 {
    let elapsed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    elapsed.map_or(0, |elapsed| {
        u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
    })
}

/// The context of sealed questions.
const CONSENT: &str = "consent";
/// The kinds of tickets in the store.
const ANSWERED: &str = "consent";
const CODES: &str = "code";
const GROUPS: &str = "groups";

/// A person, and by what they are known.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Person {
    pub(super) claims: PersonClaims,
    pub(super) by: By,
}

/// The claims of a person who logs in here. They have no token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PersonClaims {
    pub(super) identity: String,
    pub(super) issuer: Option<String>,
    pub(super) name: String,
    pub(super) groups: BTreeSet<String>,
    pub(super) roles: BTreeSet<String>,
    pub(super) profile: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum By {
    /// The browser with this id, in which they accepted an invitation.
    Browser(String),
    /// A login at the provider, for an authorization that began then.
    Login(u64),
}

/// A person who is asked for consent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Consent {
    pub(super) request: Request,
    /// The hash of the secret of the browser in which it began.
    pub(super) browser: String,
    /// In microseconds since 1970, so that the oldest one is known.
    pub(super) begun: u64,
    pub(super) person: Person,
    /// The proof that the form came from the page.
    pub(super) proof: String,
}

/// A code that was given.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Code {
    pub(super) request: Request,
    pub(super) person: Person,
    pub(super) given: u64,
    /// The grant that it was changed into.
    pub(super) used: Option<String>,
    /// Whether it was shown once more after that.
    pub(super) again: bool,
}

/// The groups of a person at their latest login.
#[derive(Debug, Serialize, Deserialize)]
struct Groups {
    groups: BTreeSet<String>,
    since: u64,
}

/// Nothing can be kept now; the log has the reason.
#[derive(Debug)]
pub(super) struct Unavailable;

/// All that waits. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Waiting(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Option<Arc<dyn Records>>,
    /// Encrypts logins in progress, which are kept nowhere: anyone can begin one. Without a store, those of an earlier run have ended.
    key: Key,
    consents: Mutex<HashMap<String, Consent>>,
    codes: Mutex<HashMap<String, Code>>,
}

impl From<Claims> for PersonClaims {
    fn from(claims: Claims) -> Self {
        Self {
            identity: claims.identity,
            issuer: claims.issuer,
            name: claims.name,
            groups: claims.groups,
            roles: claims.roles,
            profile: claims.profile,
        }
    }
}

impl From<&PersonClaims> for Claims {
    fn from(claims: &PersonClaims) -> Self {
        let claims = claims.clone();
        Self {
            identity: claims.identity,
            issuer: claims.issuer,
            name: claims.name,
            groups: claims.groups,
            roles: claims.roles,
            profile: claims.profile,
            token: None,
        }
    }
}

impl PersonClaims {
    fn account(&self) -> String {
        Claims::from(self).account()
    }
}

impl Waiting {
    pub(super) fn new(shared: Option<Arc<dyn Records>>) -> Self {
        Self(Arc::new(Inner {
            shared,
            key: Key::random(),
            consents: Mutex::default(),
            codes: Mutex::default(),
        }))
    }

    /// Forgets what has ended in memory.
    pub(super) fn tidy(&self) {
        let is_younger = |since: u64, limit: Duration| now() < since + limit.as_secs();
        self.0
            .consents
            .lock()
            .retain(|_, consent| is_younger(consent.begun / MICROS, FLOW));
        self.0
            .codes
            .lock()
            .retain(|_, code| is_younger(code.given, CODE * 2));
    }

    /// Encrypts a value for this context, so that it can be kept elsewhere.
    pub(super) fn seal(&self, context: &str, value: &impl Serialize) -> String {
        let plain = serde_json::to_vec(value).expect("texts and numbers are JSON");
        match &self.0.shared {
            None => self.0.key.seal(context, &plain).to_text(),
            Some(shared) => {
                let sealed = shared.seal(context, &plain);
                String::from_utf8(sealed).expect("a sealed value is text")
            }
        }
    }

    /// Opens a value of [`Waiting::seal`]. `None` if it is none.
    pub(super) fn open<T: DeserializeOwned>(&self, context: &str, sealed: &str) -> Option<T> {
        let plain = match &self.0.shared {
            None => self.0.key.open(context, &Sealed::parse(sealed)?)?,
            Some(shared) => shared.open(context, sealed.as_bytes())?,
        };
        serde_json::from_slice(&plain).ok()
    }

    /// Keeps a question for consent and returns its id. In memory, a person who has many loses the oldest; `None` if there is no room.
    pub(super) fn keep(&self, consent: Consent) -> Option<String> {
        if self.0.shared.is_some() {
            return Some(self.seal(CONSENT, &consent));
        }
        let id = random_token();
        let mut consents = self.0.consents.lock();
        let identity = &consent.person.claims.identity;
        let theirs = consents
            .iter()
            .filter(|(_, one)| one.person.claims.identity == *identity);
        if theirs.clone().count() >= MOST_OF_ONE {
            let oldest = theirs.min_by_key(|(_, one)| one.begun);
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.map(|id| consents.remove(&id));
        }
        if consents.len() >= MOST {
            return None;
        }
        consents.insert(id.clone(), consent);
        Some(id)
    }

    /// Takes the question with this id, if `is_theirs` and it has not ended: it is answered once.
    pub(super) fn take(
        &self,
        id: &str,
        is_theirs: impl Fn(&Consent) -> bool,
    ) -> Result<Option<Consent>, Unavailable> {
        let is_theirs = |consent: &Consent| {
            is_theirs(consent) && now().saturating_sub(consent.begun / MICROS) < FLOW.as_secs()
        };
        let Some(shared) = &self.0.shared else {
            let mut consents = self.0.consents.lock();
            let is_theirs = consents.get(id).is_some_and(is_theirs);
            return Ok(is_theirs.then(|| consents.remove(id)).flatten());
        };
        let consent = self.open::<Consent>(CONSENT, id);
        let Some(mut consent) = consent.filter(is_theirs) else {
            return Ok(None);
        };
        let mut is_first = false;
        let answered = shared.swap(ANSWERED, &sha256(id), FLOW, &mut |before| {
            is_first = before.is_none();
            Some(before.unwrap_or_default())
        });
        answered.map_err(|error| unavailable(&error))?;
        regroup_late(shared.as_ref(), &mut consent.person, consent.begun / MICROS)?;
        Ok(is_first.then_some(consent))
    }

    /// Keeps a code by its hash.
    pub(super) fn keep_code(&self, hash: String, code: Code) -> Result<(), Unavailable> {
        match &self.0.shared {
            None => {
                self.0.codes.lock().insert(hash, code);
                Ok(())
            }
            Some(shared) => {
                let mut sealed = Some(self.seal(CODES, &code).into_bytes());
                let kept = shared.swap(CODES, &hash, CODE * 2, &mut |_| sealed.take());
                kept.map_err(|error| unavailable(&error))
            }
        }
    }

    /// Uses the code with this hash: `work` may change it, and returns whether it stays. No other request uses it meanwhile. `None` if
    /// there is no such code.
    pub(super) fn use_code<T>(
        &self,
        hash: &str,
        work: impl FnOnce(&mut Code) -> (T, bool),
    ) -> Result<Option<T>, Unavailable> {
        let Some(shared) = &self.0.shared else {
            let mut codes = self.0.codes.lock();
            let Some(code) = codes.get_mut(hash) else {
                return Ok(None);
            };
            let (outcome, stays) = work(code);
            if !stays {
                codes.remove(hash);
            }
            return Ok(Some(outcome));
        };
        let (mut work, mut outcome) = (Some(work), None);
        let used = shared.swap(CODES, hash, CODE * 2, &mut |body| {
            let sealed = String::from_utf8(body?).ok()?;
            let Some(mut code) = self.open::<Code>(CODES, &sealed) else {
                // A replica with another key can open it.
                return Some(sealed.into_bytes());
            };
            let (result, stays) = work.take()?(&mut code);
            outcome = Some(result);
            stays.then(|| self.seal(CODES, &code).into_bytes())
        });
        used.map_err(|error| unavailable(&error))?;
        Ok(outcome)
    }

    /// Gives what waits the groups of the person's latest login.
    pub(super) fn regroup(&self, claims: &Claims) -> Result<(), Unavailable> {
        let account = claims.account();
        let Some(shared) = &self.0.shared else {
            let regroup = |person: &mut Person| {
                if person.claims.account() == account {
                    person.claims.groups.clone_from(&claims.groups);
                }
            };
            for consent in self.0.consents.lock().values_mut() {
                regroup(&mut consent.person);
            }
            for code in self.0.codes.lock().values_mut() {
                regroup(&mut code.person);
            }
            return Ok(());
        };
        let groups = Groups {
            groups: claims.groups.clone(),
            since: now(),
        };
        let body = serde_json::to_vec(&groups).expect("texts and numbers are JSON");
        let kept = shared.swap(GROUPS, &sha256(&account), FLOW + CODE, &mut |_| {
            Some(body.clone())
        });
        kept.map_err(|error| unavailable(&error))
    }

    /// Gives the person of a code the groups of a login after it.
    pub(super) fn regroup_code(&self, person: &mut Person, given: u64) -> Result<(), Unavailable> {
        match &self.0.shared {
            None => Ok(()),
            Some(shared) => regroup_late(shared.as_ref(), person, given),
        }
    }
}

/// Gives a person the groups of their latest login, if that was not before `since`.
fn regroup_late(shared: &dyn Records, person: &mut Person, since: u64) -> Result<(), Unavailable> {
    if matches!(person.by, By::Browser(_)) {
        return Ok(());
    }
    let mut latest: Option<Groups> = None;
    let read = shared.swap(
        GROUPS,
        &sha256(&person.claims.account()),
        FLOW + CODE,
        &mut |body| {
            latest = body
                .as_deref()
                .and_then(|body| serde_json::from_slice(body).ok());
            body
        },
    );
    read.map_err(|error| unavailable(&error))?;
    if let Some(latest) = latest.filter(|latest| latest.since >= since) {
        person.claims.groups = latest.groups;
    }
    Ok(())
}

fn unavailable(error: &std::io::Error) -> Unavailable {
    tracing::error!(%error, "the authorization server cannot use the store");
    Unavailable
}
