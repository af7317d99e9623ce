//! Logins by way of the client: one that can send its user to a page is asked to, and the call goes on when they have been there
//! (2025-11-25 and 2026-07-28, client/elicitation, URL mode). Others read which command to run.
//!
//! However many calls want a login at one server, there is one page for it. Nothing is opened from here: whether the user goes
//! there is between the client and them.

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

/// The request state of a client that was sent to a login's page; it begins as all of ours do.
pub(in crate::proxy) const LOGIN_STATE: &str = "mcpzip.login";

/// The key of the question.
const QUESTION: &str = "login";

/// How long a call waits for a person; a login ends a moment before.
const PATIENCE: Duration = Duration::from_secs(5 * 60 + 15);

/// The logins under way.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Logins(Mutex<HashMap<ServerName, Attempt>>);

/// One login, which several calls may wait for.
#[derive(Debug, Clone)]
struct Attempt {
    /// Names it to clients.
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

/// What a client's help came to.
pub(in crate::proxy) enum LoggedIn {
    /// There is a login now.
    Yes,
    /// The client is asked by this result, and comes back.
    Asked(Bytes),
    /// There is none.
    No,
}

impl RequestContext {
    /// Whether the client comes back from a login's page.
    pub(in crate::proxy) fn answers_login(&self) -> bool {
        self.state
            .as_deref()
            .is_some_and(|state| state.trim_matches('"') == LOGIN_STATE)
    }

    /// The request context without the answers to our questions, which concern no server.
    pub(in crate::proxy) fn unanswered(&self) -> Self {
        Self {
            responses: None,
            state: None,
            ..self.clone()
        }
    }

    /// Whether its client can send its user to a page.
    pub(in crate::proxy) fn can_log_in(&self) -> bool {
        self.is_askable && self.caller.capabilities.elicits_urls()
    }

    /// Whether the user agreed to go there.
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

impl Relay {
    /// Asks the client of `context` to send its user to the page of a login at `server`.
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
        let message = format!("a login is needed before it can be used. Log in at {issuer}?");
        // The modern era has no ids of questions (2026-07-28, changelog).
        let id = if is_modern {
            String::new()
        } else {
            format!(r#","elicitationId":{}"#, quoted(&attempt.id))
        };
        let params = format!(
            r#"{{"mode":"url","message":{},"url":{}{id}}}"#,
            quoted(&message),
            quoted(&url)
        );
        let method = "elicitation/create".to_owned();
        let question = Question {
            server: server.clone(),
            method,
            params: Some(params.into()),
        };
        if is_modern {
            return LoggedIn::Asked(in_result(&question));
        }
        let is_first = attempt.asked.lock().insert(context.caller.client.number());
        if is_first {
            let host = CallHost::new(&context.caller, None, Questions::Requested);
            let mut finished = attempt.phase.clone();
            let answer = tokio::select! {
                answer = host.ask(question) => Some(answer),
                // The user may have been there without telling their client.
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

    /// Waits for the login of a client that comes back, if one is under way.
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

    /// The login at `server` that is under way, begun where there is none; nothing where no person could log in.
    fn attempt(&self, server: &ServerName) -> Option<Attempt> {
        let mut table = self.logins.table();
        if let Some(attempt) = table.get(server) {
            return Some(attempt.clone());
        }
        let account = self.pool.account(server).filter(Account::needs_person)?;
        let (phase, seen) = watch::channel(Phase::Preparing);
        let attempt = Attempt {
            id: random_token(),
            phase: seen,
            asked: Arc::default(),
            // The end of the run ends it too.
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
                    tracing::warn!(%server, error = error_text(&error), "nobody logged in");
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
    /// How it ends; no later than a person may take.
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

/// One login, from its page to its token.
async fn person(account: Account, phase: &watch::Sender<Phase>) -> Result<(), LoginError> {
    let flow = Flow::begin(account, &LoginRequest::default()).await?;
    phase.send_replace(Phase::Waiting {
        url: flow.url().to_owned(),
        issuer: flow.issuer().to_owned(),
    });
    let answer = flow.answer().await?;
    flow.finish(answer).await.map(drop)
}

/// A question as the answer to its client's own request.
fn in_result(question: &Question) -> Bytes {
    let params = named(question);
    format!(
        r#"{{"resultType":"input_required","inputRequests":{{"{QUESTION}":{{"method":{},"params":{}}}}},"requestState":"{LOGIN_STATE}"}}"#,
        quoted(&question.method),
        String::from_utf8_lossy(&params)
    )
    .into()
}

/// Whether an answer to an elicitation is that the user goes there.
fn is_accepted(json: &[u8]) -> bool {
    let raw: Option<&RawValue> = serde_json::from_slice(json).ok();
    raw.and_then(|raw| Object::parse(raw).ok())
        .is_some_and(|answer| answer.text("action").as_deref() == Some("accept"))
}

fn error_text(error: &LoginError) -> String {
    let source = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", source.unwrap_or_default())
}
