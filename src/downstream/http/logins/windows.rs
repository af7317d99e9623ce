//! The logins to the window that browsers have begun at the authorization server of mcpzip. They are kept nowhere, since anyone can begin
//! one: what has to come back is encrypted in their `state`.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::sealing::{Key, Sealed};
use crate::secret::{is_same_secret, random_token};

/// How long a login may take.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// The context in which logins are encrypted.
const CONTEXT: &str = "login to the window";

/// The logins of browsers to the window.
#[derive(Debug)]
pub(in crate::downstream::http) struct Windows {
    /// For the life of the process.
    key: Key,
    /// The hashes of `state` of the logins that were ended by a person, and when: a code that is shown twice would end the grant.
    ended: Mutex<HashMap<[u8; 32], Instant>>,
}

/// A login in progress.
#[derive(Serialize, Deserialize)]
struct Login {
    /// The verifier of PKCE.
    verifier: String,
    /// The hash of the secret of the browser.
    browser: String,
    /// In seconds since 1970.
    since: u64,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            key: Key::random(),
            ended: Mutex::default(),
        }
    }
}

impl Windows {
    /// The `state` and the verifier of PKCE of a login in the browser with this secret.
    pub(in crate::downstream::http) fn begin(&self, browser: &str) -> (String, String) {
        let verifier = random_token() + &random_token();
        let login = Login {
            verifier: verifier.clone(),
            browser: hash(browser),
            since: now(),
        };
        let plain = serde_json::to_vec(&login).expect("texts and numbers are JSON");
        (self.key.seal(CONTEXT, &plain).to_text(), verifier)
    }

    /// The verifier of the login with this `state`, if it began in this browser and has not ended.
    pub(in crate::downstream::http) fn verifier(
        &self,
        state: &str,
        browser: &str,
    ) -> Option<String> {
        let plain = self.key.open(CONTEXT, &Sealed::parse(state)?)?;
        let login: Login = serde_json::from_slice(&plain).ok()?;
        let is_theirs = is_same_secret(&login.browser, &hash(browser));
        let age = now().checked_sub(login.since)?;
        let has_ended = self.ended.lock().contains_key(&id(state));
        (is_theirs && age < LIMIT.as_secs() && !has_ended).then_some(login.verifier)
    }

    /// Ends the login with this `state`, whose code has counted. Only people get so far, so that there are few.
    pub(in crate::downstream::http) fn end(&self, state: &str) {
        let mut ended = self.ended.lock();
        ended.retain(|_, at| at.elapsed() < LIMIT * 2);
        ended.insert(id(state), Instant::now());
    }
}

fn id(state: &str) -> [u8; 32] {
    Sha256::digest(state).into()
}

fn hash(secret: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(secret))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
