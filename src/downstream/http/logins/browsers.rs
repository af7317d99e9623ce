//! The browsers on the page: the sessions of those that have shown a token in the form, and the marks of forms.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use ring::hmac;
use sha2::{Digest as _, Sha256};

use crate::config::Entitlement;
use crate::identity::Pass;
use crate::secret::{is_same_secret, random_bytes, random_token};

/// The place to which a cookie of a session gives access. A session that begins at the window has a cookie for each place. That of the
/// page of logins follows from that of the window, and not the other way round, since the window lets people do more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::downstream::http) enum Door {
    Logins,
    Window,
}

/// How long an unused session stays.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// The most sessions, of all and of one identity. A new one replaces the one that is unused for longest.
const MOST: usize = 10_000;
const MOST_OF_ONE: usize = 32;

/// The sessions, by the hash of their cookie.
#[derive(Debug)]
pub(in crate::downstream::http) struct Browsers {
    open: Mutex<HashMap<[u8; 32], Open>>,
    /// Signs marks of forms, for the life of the process.
    key: hmac::Key,
}

#[derive(Debug)]
struct Open {
    pass: Arc<Pass>,
    used: Instant,
}

/// Who looks at the page.
#[derive(Debug)]
pub(in crate::downstream::http) struct Visitor {
    pass: Arc<Pass>,
    /// The hash of the cookie, if the browser is in a session.
    session: Option<[u8; 32]>,
}

impl Visitor {
    pub(super) fn new(pass: Arc<Pass>, session: Option<[u8; 32]>) -> Self {
        Self { pass, session }
    }

    pub(in crate::downstream::http) fn pass(&self) -> &Arc<Pass> {
        &self.pass
    }

    pub(in crate::downstream::http) fn entitlement(&self) -> &Arc<Entitlement> {
        self.pass.entitlement()
    }

    pub(in crate::downstream::http) fn identity(&self) -> &str {
        &self.entitlement().identity
    }

    pub(in crate::downstream::http) fn is_in_session(&self) -> bool {
        self.session.is_some()
    }
}

impl Default for Browsers {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            key: hmac::Key::new(hmac::HMAC_SHA256, &random_bytes::<32>()),
        }
    }
}

impl Browsers {
    /// Opens a session. Returns its cookies. `window` is the path of the window, for browsers that come without HTTPS.
    pub(super) fn open(
        &self,
        pass: Arc<Pass>,
        is_secure: bool,
        door: Door,
        window: &str,
    ) -> Vec<HeaderValue> {
        let shown = random_token();
        let value = self.value(&shown, door);
        let mut open = self.open.lock();
        open.retain(|_, one| one.is_open());
        let identity = &pass.entitlement().identity;
        let is_theirs = |one: &Open| one.pass.entitlement().identity == *identity;
        let theirs = open.values().filter(|one| is_theirs(one)).count();
        if theirs >= MOST_OF_ONE || open.len() >= MOST {
            let among = open.iter();
            let among = among.filter(|(_, one)| theirs < MOST_OF_ONE || is_theirs(one));
            let oldest = among.min_by_key(|(_, one)| one.used);
            let oldest = oldest.map(|(hash, _)| *hash);
            oldest.and_then(|hash| open.remove(&hash));
        }
        let used = Instant::now();
        open.insert(Sha256::digest(&value).into(), Open { pass, used });
        let cookie = |door: Door, value: &str| {
            // Cookies know no ports. With HTTPS, the name keeps other hosts out, and asks for this path.
            let path = match door {
                Door::Window if !is_secure => window,
                Door::Window | Door::Logins => "/",
            };
            let (name, secure) = (
                door.name(is_secure),
                if is_secure { "; Secure" } else { "" },
            );
            // Lax, because the browser comes back from another site.
            let cookie = format!("{name}={value}; Path={path}; HttpOnly; SameSite=Lax{secure}");
            HeaderValue::try_from(cookie).expect("tokens and paths of URLs are ASCII")
        };
        let own = (door == Door::Window).then(|| cookie(Door::Window, &shown));
        own.into_iter()
            .chain([cookie(Door::Logins, &value)])
            .collect()
    }

    /// The value for the page of logins, for the one that a browser shows at a door.
    fn value(&self, shown: &str, door: Door) -> String {
        match door {
            Door::Logins => shown.to_owned(),
            Door::Window => {
                let about = [b"session\0", shown.as_bytes()].concat();
                URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, &about))
            }
        }
    }

    /// The visitor whose session a cookie names. Over HTTPS, it has to be the cookie that no other host can set.
    pub(super) fn find(&self, headers: &HeaderMap, is_secure: bool, door: Door) -> Option<Visitor> {
        let mut open = self.open.lock();
        let texts = headers.get_all(COOKIE).iter();
        let texts = texts.filter_map(|value| value.to_str().ok());
        let pairs = texts.flat_map(|text| text.split(';'));
        for pair in pairs {
            let pair = pair.trim().split_once('=');
            let Some((_, value)) = pair.filter(|(own, _)| *own == door.name(is_secure)) else {
                continue;
            };
            let hash = <[u8; 32]>::from(Sha256::digest(self.value(value, door)));
            if let Some(one) = open.get_mut(&hash).filter(|one| one.is_open()) {
                one.used = Instant::now();
                return Some(Visitor::new(one.pass.clone(), Some(hash)));
            }
        }
        None
    }

    /// Whether the visitor's session is still open, which this counts as a use of. A visitor without a session shows an identity each time.
    pub(in crate::downstream::http) fn is_open(&self, visitor: &Visitor) -> bool {
        let Some(session) = &visitor.session else {
            return true;
        };
        let mut open = self.open.lock();
        let one = open.get_mut(session).filter(|one| one.is_open());
        one.map(|one| one.used = Instant::now()).is_some()
    }

    pub(in crate::downstream::http) fn close(&self, visitor: &Visitor) {
        if let Some(session) = &visitor.session {
            self.open.lock().remove(session);
        }
    }

    /// The mark of this visitor's forms.
    pub(super) fn mark(&self, visitor: &Visitor) -> String {
        let session = visitor.session.unwrap_or_default();
        let about = [visitor.identity().as_bytes(), b"\0", &session].concat();
        URL_SAFE_NO_PAD.encode(hmac::sign(&self.key, &about))
    }

    /// Whether a form has the mark of this visitor.
    pub(super) fn has_mark(&self, visitor: &Visitor, mark: &str) -> bool {
        is_same_secret(mark, &self.mark(visitor))
    }
}

impl Door {
    /// The name of the cookie: over TLS, and on this machine without.
    const fn name(self, is_secure: bool) -> &'static str {
        match (self, is_secure) {
            (Self::Logins, true) => "__Host-mcpzip-logins",
            (Self::Logins, false) => "mcpzip-logins",
            (Self::Window, true) => "__Host-mcpzip-window",
            (Self::Window, false) => "mcpzip-window",
        }
    }
}

impl Open {
    fn is_open(&self) -> bool {
        self.used.elapsed() < IDLE && !self.pass.has_ended()
    }
}
