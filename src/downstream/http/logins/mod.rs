//! The page `/logins`: each person's own logins at servers with `"identity": "per_user"`.
//!
//! A browser shows who it is as every client does: by the proxy in front, a certificate, or a token. For a token there is a form, which
//! opens a session of the browser. A login belongs to the identity that began it: the browser that comes back from the server has to
//! show the same identity. Otherwise a person who opens the link of another person would log in for that person.

mod browsers;
pub(super) mod page;
pub(super) mod routes;
mod windows;

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use self::browsers::Browsers;
pub(super) use self::browsers::{Door, Visitor};
use self::windows::Windows;
use crate::tool::ServerName;
use crate::upstream::oauth::Flow;

/// How long a login may take.
const LIMIT: Duration = Duration::from_secs(10 * 60);
/// The most logins in progress.
const MOST: usize = 1000;

/// The browsers on the page, and the logins that they have begun.
#[derive(Debug, Default)]
pub(super) struct Logins {
    pub(super) browsers: Browsers,
    /// By `state`.
    begun: Mutex<HashMap<String, Begun>>,
    /// Logins to the window of the gateway.
    pub(super) windows: Windows,
}

/// A login that waits for its browser to come back.
#[derive(Debug)]
struct Begun {
    identity: String,
    server: ServerName,
    flow: Flow,
    at: Instant,
}

impl Logins {
    fn begin(&self, begun: Begun) {
        let mut all = self.begun.lock();
        let is_same = |one: &Begun| one.identity == begun.identity && one.server == begun.server;
        all.retain(|_, one| one.at.elapsed() < LIMIT && !is_same(one));
        if all.len() >= MOST {
            let oldest = all.iter().min_by_key(|(_, one)| one.at);
            let oldest = oldest.map(|(state, _)| state.clone());
            oldest.and_then(|state| all.remove(&state));
        }
        all.insert(begun.flow.state().to_owned(), begun);
    }

    /// The login with this `state`, if this identity has begun it.
    fn take(&self, state: &str, identity: &str) -> Option<Begun> {
        let mut all = self.begun.lock();
        let is_theirs = |begun: &Begun| begun.identity == identity && begun.at.elapsed() < LIMIT;
        if !all.get(state).is_some_and(is_theirs) {
            return None;
        }
        all.remove(state)
    }
}
