//! The token of a running server's requests: taken from the stored login, renewed before it ends, and requested again after
//! a refusal. A refusal that needs the user becomes an [`AuthRequired`], which the error to the client explains.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use reqwest::Response;
use reqwest::header::HeaderValue;

use super::account::Account;
use super::auth_required::AuthRequired;
use super::challenge::Challenge;
use super::error::LoginError;
use super::issuer::IssuerChange;
use super::token::Token;
use crate::config::{OAuth, Remote};
use crate::secret::Masker;
use crate::text::chain;
use crate::tool::ServerName;
use crate::upstream::UpstreamContext;

/// The interval at which the stored login is read again: another process may have logged in or out.
const CHECK: Duration = Duration::from_secs(1);

/// A running server's login: it gives requests their token, renews it, and decides the next step after a refusal.
#[derive(Debug)]
pub(in crate::upstream) struct TokenSource {
    account: Account,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    token: Option<Token>,
    checked: Option<Instant>,
    /// The reason that the stored login could not be read at the last attempt.
    sealed: Option<String>,
    /// The step that the last refusal requires.
    need: AuthRequired,
}

/// A token for a request.
#[derive(Debug, Clone)]
pub(in crate::upstream) struct Bearer {
    token: Token,
    /// The value of the header `Authorization`.
    pub(in crate::upstream) value: HeaderValue,
}

impl Bearer {
    fn new(token: Token) -> Option<Self> {
        let value = token.bearer()?;
        Some(Self { token, value })
    }
}

impl TokenSource {
    /// The session of `server`, if it may have one.
    pub(in crate::upstream) fn of(
        server: &ServerName,
        remote: &Remote,
        context: &Arc<UpstreamContext>,
    ) -> Option<Arc<Self>> {
        // An unusable URL is reported by the connection.
        let account = Account::of(server, remote, context).ok()??;
        Some(Arc::new(Self {
            account,
            state: Mutex::default(),
        }))
    }

    /// The token to send, renewed if it is about to end. `None` before the first login.
    pub(in crate::upstream) async fn bearer(self: &Arc<Self>) -> Option<Bearer> {
        let is_checked = self
            .state()
            .checked
            .is_some_and(|time| time.elapsed() < CHECK);
        let token = if is_checked {
            self.state().token.clone()
        } else {
            self.look().await
        };
        let token = token?;
        if !token.is_ending() {
            return Bearer::new(token);
        }
        match self.renewed(&token).await {
            Some(renewed) => Bearer::new(renewed),
            // It may be valid for a moment longer, because the server's clock may differ.
            None => self.state().token.clone().and_then(Bearer::new),
        }
    }

    /// The token for repeating a refused request. `None` if that is useless.
    pub(in crate::upstream) async fn after_refusal(
        self: &Arc<Self>,
        response: &Response,
        sent: Option<&Bearer>,
    ) -> Option<Bearer> {
        let challenge = Challenge::in_response(response);
        let sent = sent.map(|bearer| &bearer.token);
        // Another process may have logged in meanwhile.
        let kept = self.look().await;
        if let Some(other) = kept
            .filter(|kept| sent.is_none_or(|sent| sent.access != kept.access) && !kept.is_over())
        {
            self.state().need = AuthRequired::Refused;
            return Bearer::new(other);
        }
        if response.status().as_u16() == 403 {
            return if challenge.wants_more_scopes() {
                self.step_up(challenge, sent).await
            } else {
                // Without a login, one may help.
                self.give_up(sent.map_or(AuthRequired::Login, |_| AuthRequired::Rights))
            };
        }
        if self.account.logs_in_alone() {
            return self.obtain(challenge, sent.cloned()).await;
        }
        match sent {
            None => {
                let sealed = self.state().sealed.clone();
                if let Some(reason) = sealed {
                    return self.give_up(AuthRequired::Sealed(reason));
                }
                self.note(&challenge.scopes, &challenge).await;
                self.give_up(AuthRequired::Login)
            }
            Some(sent) if sent.refresh.is_some() => self.renewed(sent).await.and_then(Bearer::new),
            Some(_) => self.give_up(AuthRequired::Renewal),
        }
    }

    /// The step that is required after a refusal.
    pub(in crate::upstream) fn need(&self) -> AuthRequired {
        let need = self.state().need.clone();
        match need {
            AuthRequired::Login
            | AuthRequired::Sealed(_)
            | AuthRequired::Renewal
            | AuthRequired::Refused
            | AuthRequired::Scopes(_)
                if self.account.is_of_person() =>
            {
                AuthRequired::Page(self.account.page())
            }
            AuthRequired::Refused if self.account.logs_in_alone() => AuthRequired::Client,
            need => need,
        }
    }

    /// Whether there is a token, or the entry says how to log in.
    pub(in crate::upstream) fn is_configured(&self) -> bool {
        self.state().token.is_some() || self.account.remote.oauth != OAuth::default()
    }

    /// `text`, written by a server, without our token.
    pub(in crate::upstream) fn masked(&self, text: &str) -> String {
        let token = self.state().token.clone();
        let secrets = token
            .into_iter()
            .flat_map(|token| [Some(token.access), token.refresh])
            .flatten();
        Masker::new(secrets).mask(text).into_owned()
    }

    async fn step_up(
        self: &Arc<Self>,
        challenge: Challenge,
        sent: Option<&Token>,
    ) -> Option<Bearer> {
        let Some(sent) = sent else {
            return self.give_up(AuthRequired::Login);
        };
        let missing: Vec<String> = challenge
            .scopes
            .iter()
            .filter(|scope| !sent.scopes.contains(scope))
            .cloned()
            .collect();
        if missing.is_empty() {
            return self.give_up(AuthRequired::Rights);
        }
        if self.account.logs_in_alone() {
            return self.obtain(challenge, Some(sent.clone())).await;
        }
        self.note(&missing, &challenge).await;
        self.give_up(AuthRequired::Scopes(missing))
    }

    async fn note(&self, scopes: &[String], challenge: &Challenge) {
        if let Err(error) = self
            .account
            .note(scopes, challenge.resource_metadata.as_deref())
            .await
        {
            tracing::warn!(server = %self.account.server, %error, "the scopes that the server requires could not be stored");
        }
    }

    /// Gets a token without a person; it is not aborted midway.
    async fn obtain(self: &Arc<Self>, challenge: Challenge, sent: Option<Token>) -> Option<Bearer> {
        let account = self.account.clone();
        let asking = async move {
            account
                .obtain(&challenge, sent.as_ref(), IssuerChange::Refused)
                .await
        };
        match self.account.context.tasks.spawn(asking).await {
            Ok(Ok(token)) => Bearer::new(self.keep(token)),
            Ok(Err(error)) => self.give_up(match error {
                LoginError::NoIdentity { .. } => AuthRequired::Login,
                LoginError::Sealed { .. } => AuthRequired::Sealed(error.to_string()),
                error => AuthRequired::Patience(chain(&error)),
            }),
            Err(_) => None,
        }
    }

    /// Renews `token`. The request runs in its own task: if it were dropped with the call that needs it, the new
    /// refresh token would be lost, and the old one is invalid.
    async fn renewed(self: &Arc<Self>, token: &Token) -> Option<Token> {
        let (session, token) = (self.clone(), token.clone());
        let renewing = async move {
            if session.account.logs_in_alone() {
                session
                    .account
                    .obtain(&Challenge::default(), Some(&token), IssuerChange::Refused)
                    .await
            } else {
                session.account.renew(&token).await
            }
        };
        match self.account.context.tasks.spawn(renewing).await {
            Ok(Ok(token)) => Some(self.keep(token)),
            Ok(Err(error)) => {
                if !matches!(error, LoginError::NothingToRenew) {
                    tracing::warn!(server = %self.account.server, error = chain(&error), "the login was not renewed");
                }
                let mut state = self.state();
                if error.is_final() {
                    state.need = AuthRequired::Renewal;
                    state.token = state.token.take().filter(|token| !token.is_over());
                } else if matches!(error, LoginError::NothingToRenew) {
                    // Our clock may say that it has ended; the server's clock counts.
                    state.need = AuthRequired::Renewal;
                } else {
                    state.need = AuthRequired::Patience(chain(&error));
                }
                None
            }
            // The process is ending.
            Err(_) => None,
        }
    }

    /// Reads the stored login.
    async fn look(self: &Arc<Self>) -> Option<Token> {
        let read = self.account.store.read().await;
        let mut state = self.state();
        state.checked = Some(Instant::now());
        state.sealed = None;
        state.token = match read {
            Ok(record) => record.token().cloned(),
            // The token of this process is as good as the unreadable one.
            Err(error) => {
                state.sealed = Some(error.to_string());
                state.token.take()
            }
        };
        state.token.clone()
    }

    fn keep(&self, token: Token) -> Token {
        let mut state = self.state();
        state.token = Some(token.clone());
        state.checked = Some(Instant::now());
        // It is new, so a refusal of it has another reason than its age.
        state.need = AuthRequired::Refused;
        token
    }

    fn give_up(&self, need: AuthRequired) -> Option<Bearer> {
        self.state().need = need;
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is complete before anything can panic.
        self.state.lock()
    }
}
