//! The logins to the window that browsers have begun at the authorization server of mcpzip.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};

/// How long a login may take.
const LIMIT: Duration = Duration::from_secs(10 * 60);
/// The most logins in progress.
const MOST: usize = 1000;

/// The logins that browsers have begun, by `state`.
#[derive(Debug, Default)]
pub(in crate::downstream::http) struct Windows(Mutex<HashMap<String, Login>>);

#[derive(Debug)]
struct Login {
    /// The verifier of PKCE.
    verifier: String,
    /// The hash of the secret of the browser.
    browser: [u8; 32],
    at: Instant,
}

impl Windows {
    pub(in crate::downstream::http) fn add(&self, state: String, verifier: String, browser: &str) {
        let login = Login {
            verifier,
            browser: Sha256::digest(browser).into(),
            at: Instant::now(),
        };
        let mut all = self.0.lock();
        all.retain(|_, one| one.at.elapsed() < LIMIT);
        if all.len() >= MOST {
            let oldest = all.iter().min_by_key(|(_, one)| one.at);
            let oldest = oldest.map(|(state, _)| state.clone());
            oldest.and_then(|state| all.remove(&state));
        }
        all.insert(state, login);
    }

    /// The verifier of the login with this `state`, if it began in this browser.
    pub(in crate::downstream::http) fn take(&self, state: &str, browser: &str) -> Option<String> {
        let mut all = self.0.lock();
        let browser = <[u8; 32]>::from(Sha256::digest(browser));
        let is_theirs = |one: &Login| one.browser == browser && one.at.elapsed() < LIMIT;
        if !all.get(state).is_some_and(is_theirs) {
            return None;
        }
        all.remove(state).map(|login| login.verifier)
    }
}
