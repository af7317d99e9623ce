//! The window of the gateway as a client of its own authorization server. It is registered nowhere, and no other client can be it: no
//! request of a client gets this id.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::request::{Asker, Request};
use super::{Answer, AuthorizationServer, EndpointError, Visit};
use crate::config::Claims;
use crate::identity::authorization::Fields;
use crate::identity::tokens::{Grant, random_secret, sha256};

/// The id of the window among clients. It has no seal and is not a URL, so no other client can have it.
pub(super) const ID: &str = "the window";

/// The name that people read.
const NAME: &str = "the window of this gateway";

/// The most grants of one person for windows. A new one replaces the oldest, so that windows never end a grant of a client.
const MOST: usize = 8;

/// A login: the token, and an event for the audit log.
pub(crate) type LoggedIn = (String, Option<(String, String)>);

impl AuthorizationServer {
    /// Begins the login of a browser to the window at `path`. `login` makes its `state` and the verifier of PKCE for the secret of the browser.
    pub(crate) async fn begin_window(
        &self,
        path: &str,
        login: impl FnOnce(&str) -> (String, String),
        browser: Option<&str>,
        offered: &BTreeSet<String>,
        is_entitled: &(dyn Fn(&Claims) -> bool + Sync),
    ) -> Visit {
        let fresh = browser.is_none().then(random_secret);
        let browser = browser.or(fresh.as_deref());
        let (state, verifier) = login(browser.unwrap_or_default());
        let request = Request {
            client: Asker {
                name: NAME.to_owned(),
                host: None,
                sha256: sha256(ID),
            },
            redirect: self.redirect_of_window(path),
            state: Some(state),
            challenge: URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)),
            // The person's roles and the rules decide what each of them gives.
            scopes: offered.clone(),
        };
        let mut visit = self.begin(request, browser, is_entitled).await;
        // A browser that is new here is only sent to the provider.
        if matches!(visit.answer, Answer::Redirect(_)) {
            visit.cookie = visit.cookie.or(fresh.map(|secret| (secret, false)));
        }
        visit
    }

    /// Changes the code of a login to the window into a token. It writes the file of tokens.
    ///
    /// # Errors
    /// When it does not count.
    pub(crate) fn end_window(
        &self,
        path: &str,
        code: &str,
        verifier: &str,
    ) -> Result<LoggedIn, EndpointError> {
        let redirect = self.redirect_of_window(path);
        let fields = Fields::of([
            ("grant_type", "authorization_code"),
            ("client_id", ID),
            ("redirect_uri", &redirect),
            ("code", code),
            ("code_verifier", verifier),
        ]);
        let (answer, event) = self.token(&fields)?;
        let token = answer["access_token"].as_str().unwrap_or_default();
        if let Some((identity, _)) = &event {
            self.change(|people| {
                let window = sha256(ID);
                let is_theirs =
                    |one: &Grant| one.identity == *identity && one.client_sha256 == window;
                let count = people.grants.iter().filter(|one| is_theirs(one)).count();
                let mut over = count.saturating_sub(MOST);
                people.grants.retain(|one| {
                    let goes = over > 0 && is_theirs(one);
                    over -= usize::from(goes);
                    !goes
                });
            })?;
        }
        Ok((token.to_owned(), event))
    }

    fn redirect_of_window(&self, path: &str) -> String {
        format!("{}{path}callback", self.options.url)
    }
}
