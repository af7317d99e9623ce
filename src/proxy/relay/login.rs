//! Logins with the client's help: a client that supports elicitation by URL is asked to open the login page, and the
//! call continues after the login (2025-11-25 and 2026-07-28, client/elicitation, URL mode). Other clients get the
//! command to run, or whom to ask at a gateway.
//!
//! All calls that need a login at one server share one page. mcpzip does not open the page itself: that is between
//! the client and its user.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Relay, RequestContext};
use crate::mcp::object::quoted;
use crate::mcp::{Frame, Object};
use crate::proxy::callers::caller::{CallHost, Questions, named};
use crate::secret::random_token;
use crate::tool::ServerName;
use crate::upstream::oauth::{Account, Flow, LoginError, LoginRequest};
use crate::upstream::{self, Host as _, Question};

/// The request state of a client that was sent to a login page; it has the prefix of all our states.
pub(in crate::proxy) const LOGIN_STATE: &str = "mcpzip.login";

/// The key of the question.
const QUESTION: &str = "login";

/// The time that a call waits for a login; the login itself ends a moment earlier.
const PATIENCE: Duration = Duration::from_secs(5 * 60 + 15);

/// The time that a person has for a login on the page of the gateway.
const PAGE: Duration = Duration::from_secs(5 * 60);

/// The logins in progress.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Logins(Mutex<HashMap<ServerName, Attempt>>);

/// One login, which several calls may wait for.
#[derive(Debug, Clone)]
struct Attempt {
    /// The id of its elicitation.
    id: String,
    phase: watch::Receiver<Phase>,
    /// The clients that were asked already.
    asked: Arc<Mutex<BTreeSet<u64>>>,
    stop: CancellationToken,
}

#[derive(Debug, Clone)]
enum Phase {
    Preparing,
    Waiting { url: String, issuer: String },
    Done,
    Failed,
}

/// The result of asking the client.
pub(in crate::proxy) enum LoggedIn {
    /// The login succeeded.
    Yes,
    /// The client is asked by this result, and repeats its request.
    Asked(Bytes),
    /// There is no login.
    No,
}

impl RequestContext {
    /// Whether the client returns from a login page.
    pub(in crate::proxy) fn answers_login(&self) -> bool {
        self.state
            .as_deref()
            .is_some_and(|state| state.trim_matches('"') == LOGIN_STATE)
    }

    /// The request context without the answers to our own questions, which are not for the server.
    pub(in crate::proxy) fn unanswered(&self) -> Self {
        Self {
            responses: None,
            state: None,
            ..self.clone()
        }
    }

    /// Whether its client supports elicitation by URL.
    pub(in crate::proxy) fn can_log_in(&self) -> bool {
        self.is_askable && self.caller.capabilities.elicits_urls()
    }

    /// Whether the user agreed to open the page.
    fn agrees(&self) -> bool {
        let raw: Option<&RawValue> = self
            .responses
            .as_deref()
            .and_then(|json| serde_json::from_str(json).ok());
        let responses = raw
            .and_then(|raw| Object::parse(raw).ok())
            .unwrap_or_default();
        responses
            .get(QUESTION)
            .is_some_and(|raw| is_accepted(raw.get().as_bytes()))
    }
}

/// The question that asks a client to open `url`.
fn question(server: &ServerName, id: &str, url: &str, issuer: &str, is_modern: bool) -> Question {
    let message = format!("a login is needed before it can be used. Log in at {issuer}?");
    // The modern era has no elicitation ids (2026-07-28, changelog).
    let id = if is_modern {
        String::new()
    } else {
        format!(r#","elicitationId":{}"#, quoted(id))
    };
    let params = format!(
        r#"{{"mode":"url","message":{},"url":{}{id}}}"#,
        quoted(&message),
        quoted(url)
    );
    Question {
        server: server.clone(),
        method: "elicitation/create".to_owned(),
        params: Some(params.into()),
    }
}

impl Relay {
    /// Asks the client of `context` to open the page of a login at `server`.
    pub(in crate::proxy) async fn log_in(
        &self,
        server: &ServerName,
        context: &RequestContext,
    ) -> LoggedIn {
        if !context.can_log_in() {
            return LoggedIn::No;
        }
        let Some(mut attempt) = self.attempt(server) else {
            return LoggedIn::No;
        };
        let phase = attempt
            .phase
            .wait_for(|phase| !matches!(phase, Phase::Preparing))
            .await
            .map(|phase| phase.clone());
        let (url, issuer) = match phase {
            Ok(Phase::Waiting { url, issuer }) => (url, issuer),
            Ok(Phase::Done) => return LoggedIn::Yes,
            _ => return LoggedIn::No,
        };
        let is_modern = context.caller.revision.is_modern();
        let question = question(server, &attempt.id, &url, &issuer, is_modern);
        if is_modern {
            return LoggedIn::Asked(in_result(&question));
        }
        let is_first = attempt.asked.lock().insert(context.caller.client.number());
        if is_first {
            let host = CallHost::new(&context.caller, None, Questions::Requested, None);
            let mut finished = attempt.phase.clone();
            let answer = tokio::select! {
                answer = host.ask(question) => Some(answer),
                // The user may log in without answering the client.
                _ = finished.wait_for(|phase| !matches!(phase, Phase::Waiting { .. })) => None,
            };
            if answer.is_some_and(
                |answer| !matches!(answer, upstream::ServerReply::Result(json) if is_accepted(&json)),
            ) {
                attempt.stop.cancel();
                return LoggedIn::No;
            }
        }
        let outcome = attempt.outcome().await;
        if is_first && matches!(outcome, LoggedIn::Yes) {
            let params = format!(r#"{{"elicitationId":{}}}"#, quoted(&attempt.id));
            context.caller.outbox.offer(Frame::notification(
                "notifications/elicitation/complete",
                &params,
            ));
        }
        outcome
    }

    /// Waits for the login of a client that returns, if one is in progress.
    pub(in crate::proxy) async fn returned(
        &self,
        server: &ServerName,
        context: &RequestContext,
    ) -> LoggedIn {
        let Some(mut attempt) = self.logins.table().get(server).cloned() else {
            return LoggedIn::Yes;
        };
        if !context.agrees() {
            attempt.stop.cancel();
            return LoggedIn::No;
        }
        attempt.outcome().await
    }

    /// The login at `server` in progress; starts one if there is none. `None` if no person can log in.
    fn attempt(&self, server: &ServerName) -> Option<Attempt> {
        let mut table = self.logins.table();
        if let Some(attempt) = table.get(server) {
            return Some(attempt.clone());
        }
        let account = self.pool.account(server).filter(Account::needs_person)?;
        if account.is_of_person() {
            account.page()?;
        }
        let (phase, seen) = watch::channel(Phase::Preparing);
        let attempt = Attempt {
            id: random_token(),
            phase: seen,
            asked: Arc::default(),
            // The end of the run ends it, too.
            stop: self.tasks.stop().child_token(),
        };
        table.insert(server.clone(), attempt.clone());
        let (logins, server, stop) = (self.logins.clone(), server.clone(), attempt.stop.clone());
        self.tasks.spawn(async move {
            let outcome = stop.run_until_cancelled(person(account, &phase)).await;
            logins.table().remove(&server);
            let last = match outcome {
                Some(Ok(())) => Phase::Done,
                Some(Err(error)) => {
                    tracing::warn!(%server, error = error_text(&error), "the login was not completed");
                    Phase::Failed
                }
                None => Phase::Failed,
            };
            phase.send_replace(last);
        });
        Some(attempt)
    }
}

impl Attempt {
    /// Waits for its result, within the time limit.
    async fn outcome(&mut self) -> LoggedIn {
        let ended = self
            .phase
            .wait_for(|phase| matches!(phase, Phase::Done | Phase::Failed));
        match tokio::time::timeout(PATIENCE, ended).await {
            Ok(Ok(phase)) if matches!(*phase, Phase::Done) => LoggedIn::Yes,
            _ => LoggedIn::No,
        }
    }
}

impl Logins {
    fn table(&self) -> MutexGuard<'_, HashMap<ServerName, Attempt>> {
        // Each change is a single step.
        self.0.lock()
    }
}

/// Runs one login, from its page to its token.
async fn person(account: Account, phase: &watch::Sender<Phase>) -> Result<(), LoginError> {
    if account.is_of_person() {
        // The page makes the login, for the identity that its browser shows.
        let url = account.page().unwrap_or_default();
        let issuer = url.split_once(crate::upstream::person::LOGINS);
        let issuer = issuer.map_or("", |(gateway, _)| gateway).to_owned();
        phase.send_replace(Phase::Waiting { url, issuer });
        return account.logged_in(PAGE).await;
    }
    let flow = Flow::begin(account, &LoginRequest::default()).await?;
    phase.send_replace(Phase::Waiting {
        url: flow.url().to_owned(),
        issuer: flow.issuer().to_owned(),
    });
    let answer = flow.answer().await?;
    flow.finish(answer).await.map(drop)
}

/// A question as the response to its client's own request.
fn in_result(question: &Question) -> Bytes {
    let params = named(question);
    format!(
        r#"{{"resultType":"input_required","inputRequests":{{"{QUESTION}":{{"method":{},"params":{}}}}},"requestState":"{LOGIN_STATE}"}}"#,
        quoted(&question.method),
        String::from_utf8_lossy(&params)
    )
    .into()
}

/// Whether the response to an elicitation is `accept`.
fn is_accepted(json: &[u8]) -> bool {
    let raw: Option<&RawValue> = serde_json::from_slice(json).ok();
    raw.and_then(|raw| Object::parse(raw).ok())
        .is_some_and(|answer| answer.text("action").as_deref() == Some("accept"))
}

fn error_text(error: &LoginError) -> String {
    let source = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", source.unwrap_or_default())
}
