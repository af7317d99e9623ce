//! The user's word before a call, where the rules want it (`tools.ask`).
//!
//! A client of the handshake era is asked by a request, one of the modern era by the answer to its own request, which it
//! then repeats. A server that asks back makes it repeat the request once more; the user has agreed to that already.

use std::collections::HashMap;

use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::question::question;
use super::{Relay, RequestContext};
use crate::catalog::Tool;
use crate::config::Verdict;
use crate::mcp::Object;
use crate::mcp::object::quoted;
use crate::proxy::Reply;
use crate::proxy::callers::caller::{CallHost, Questions, named};
use crate::proxy::failure::{Failure, NoConsent, Withheld};
use crate::proxy::view::View;
use crate::secret::random_token;
use crate::tool::QualifiedName;
use crate::upstream::{self, Host as _, Question, required_input};

/// What a question is asked under.
const KEY: &str = "consent";

/// What our own request states begin with; those of calls that wait for a client begin otherwise.
const STATE_PREFIX: &str = "mcpzip.consent.";

/// How long a client may take to come back.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// The open questions of one client; beyond that, its oldest one is dropped.
const MOST_OF_ONE: usize = 256;

/// The open questions of all clients; beyond that, no other client's question is opened.
const MOST: usize = 8192;

/// The hash of a call, which nobody finds another for.
type Fingerprint = [u8; 32];

/// Calls that the user was asked about, or has agreed to, by the request state that the client holds and a hash of the
/// call, so that a state opens nothing else.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Consents(Mutex<HashMap<(String, Fingerprint), Known>>);

#[derive(Debug)]
struct Known {
    /// The share of the client (`Client::share`).
    client: u64,
    is_agreed: bool,
    since: Instant,
}

/// What the rules say of a call.
pub(in crate::proxy) enum Consent {
    /// It may go out, and nobody need be asked.
    Needless,
    /// The user has agreed: the call may be sent with this request context.
    Given(RequestContext),
    /// The client is to be asked first, by this answer.
    Asked(Reply),
}

impl Consent {
    /// The request context with which the call is sent; `own` is that of its request.
    pub(in crate::proxy) fn context<'a>(
        &'a self,
        own: Option<&'a RequestContext>,
    ) -> Option<&'a RequestContext> {
        match self {
            Self::Given(context) => Some(context),
            Self::Needless | Self::Asked(_) => own,
        }
    }
}

impl Relay {
    /// Whether a call may go out; the user is asked where the rules want it and has not agreed in person. Nothing was sent when
    /// it may not.
    ///
    /// # Errors
    /// When it may not, with the reason.
    pub(in crate::proxy) async fn consent(
        &self,
        view: &View,
        tool: &Tool,
        arguments: &str,
        context: Option<&RequestContext>,
        is_agreed: bool,
    ) -> Result<Consent, Failure> {
        let name = tool.qualified_name();
        if !needs_decision(view, &name, tool) {
            return Ok(Consent::Needless);
        }
        match view.judge(tool, &name, arguments) {
            (Verdict::Allowed, _) => return Ok(Consent::Needless),
            (Verdict::Asked, _) if is_agreed => return Ok(Consent::Needless),
            (Verdict::Asked, _) => {}
            (Verdict::Denied, rule) => {
                let reason = Withheld::ByArguments(rule.unwrap_or_default());
                return Err(Failure::Withheld { name, reason });
            }
        }
        let refusal = |reason| Failure::NoConsent {
            name: name.clone(),
            reason,
        };
        let question = question(name.tool.as_str(), arguments).map_err(refusal)?;
        let Some(context) = context else {
            return Err(Failure::Consent { question });
        };
        if !context.caller.capabilities.elicits_forms() {
            return Err(refusal(NoConsent::Unable));
        }
        let params = format!(
            r#"{{"message":{},"requestedSchema":{{"type":"object","properties":{{}}}}}}"#,
            quoted(&question)
        );
        let question = Question {
            server: name.server.clone(),
            method: "elicitation/create".to_owned(),
            params: Some(params.into()),
        };
        let consent = if context.caller.revision.is_modern() {
            self.ask_by_answer(context, &question, fingerprint(&name, arguments))
        } else {
            ask_by_request(context, question).await
        };
        consent.map_err(refusal)
    }

    /// Asks a client of the modern era by the answer to its own request, or reads what it answers in repeating that.
    fn ask_by_answer(
        &self,
        context: &RequestContext,
        question: &Question,
        call: Fingerprint,
    ) -> Result<Consent, NoConsent> {
        if !context.is_askable {
            return Err(NoConsent::InCompany);
        }
        let state: Option<String> = context
            .state
            .as_deref()
            .and_then(|state| serde_json::from_str(state).ok());
        match state {
            // A call that waits for the client was agreed to before it went out, and its state opens no other.
            Some(state) if self.open_calls.has(&state) => Ok(Consent::Given(context.clone())),
            Some(state) => match self.consents.take(state, call) {
                Some(Known {
                    is_agreed: true, ..
                }) => Ok(Consent::Given(context.clone())),
                Some(_) if context.responses.as_deref().is_some_and(has_accepted) => {
                    Ok(Consent::Given(context.unanswered()))
                }
                Some(_) => Err(NoConsent::Declined),
                // What was asked before is not what is asked now.
                None if context.answers_login() => self
                    .asked(context, question, call)
                    .ok_or(NoConsent::TooMany),
                None => Err(NoConsent::UnknownState),
            },
            None => self
                .asked(context, question, call)
                .ok_or(NoConsent::TooMany),
        }
    }

    /// The answer that asks a client of the modern era; nothing if too many questions are open.
    fn asked(
        &self,
        context: &RequestContext,
        question: &Question,
        call: Fingerprint,
    ) -> Option<Consent> {
        let state = format!("{STATE_PREFIX}{}", random_token());
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{"{KEY}":{{"method":"elicitation/create","params":{}}}}},"requestState":{}}}"#,
            String::from_utf8_lossy(&named(question)),
            quoted(&state)
        );
        let client = context.caller.client.share();
        let is_kept = self.consents.keep(client, state, call, false);
        is_kept.then(|| Consent::Asked(Reply::Relayed(result.into())))
    }

    /// Notes what the client will repeat a call with that the user has agreed to.
    pub(in crate::proxy) fn agreed(
        &self,
        context: &RequestContext,
        name: &QualifiedName,
        arguments: &str,
        reply: &upstream::ServerReply,
    ) {
        let upstream::ServerReply::Result(result) = reply else {
            return;
        };
        if let Some(state) = required_input(result).and_then(|object| object.text("requestState")) {
            let call = fingerprint(name, arguments);
            // Without room, the user is asked once more.
            let client = context.caller.client.share();
            self.consents.keep(client, state, call, true);
        }
    }
}

/// Asks a client of the handshake era by a request.
async fn ask_by_request(
    context: &RequestContext,
    question: Question,
) -> Result<Consent, NoConsent> {
    let host = CallHost::new(&context.caller, None, Questions::Requested);
    match host.ask(question).await {
        upstream::ServerReply::Result(answer) if is_accepted(&answer) => {
            Ok(Consent::Given(context.clone()))
        }
        upstream::ServerReply::Result(_) => Err(NoConsent::Declined),
        upstream::ServerReply::Error(error) => Err(NoConsent::Failed {
            message: upstream::message_of(&error),
        }),
    }
}

/// Whether a call of this tool may be asked about, or denied for its arguments.
pub(in crate::proxy) fn needs_decision(view: &View, name: &QualifiedName, tool: &Tool) -> bool {
    let config = view.config();
    config.judge(name, tool.entry().hints) == Verdict::Asked || config.inspects(&name.server)
}

impl Consents {
    /// Keeps a question of `client`, if there is room; questions of other clients stay.
    fn keep(&self, client: u64, state: String, call: Fingerprint, is_agreed: bool) -> bool {
        let mut known = self.known();
        known.retain(|_, known| known.since.elapsed() < PATIENCE);
        let own = || known.iter().filter(|(_, known)| known.client == client);
        let is_full = known.len() >= MOST;
        if is_full || own().count() >= MOST_OF_ONE {
            let oldest = own().min_by_key(|(_, known)| known.since);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return false;
            };
            known.remove(&oldest);
        }
        let since = Instant::now();
        let asked = Known {
            client,
            is_agreed,
            since,
        };
        known.insert((state, call), asked);
        true
    }

    fn take(&self, state: String, call: Fingerprint) -> Option<Known> {
        self.known()
            .remove(&(state, call))
            .filter(|known| known.since.elapsed() < PATIENCE)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(String, Fingerprint), Known>> {
        // Each change is a single step.
        self.0.lock()
    }
}

fn is_accepted(answer: &[u8]) -> bool {
    let raw: Option<&RawValue> = serde_json::from_slice(answer).ok();
    raw.and_then(|raw| Object::parse(raw).ok()?.text("action"))
        .as_deref()
        == Some("accept")
}

/// Whether `inputResponses` hold the user's consent.
fn has_accepted(responses: &str) -> bool {
    let raw: Option<&RawValue> = serde_json::from_str(responses).ok();
    let answer = raw.and_then(|raw| {
        Object::parse(raw)
            .ok()?
            .get(KEY)
            .map(|raw| raw.get().to_owned())
    });
    answer.is_some_and(|answer| is_accepted(answer.as_bytes()))
}

fn fingerprint(name: &QualifiedName, arguments: &str) -> Fingerprint {
    Sha256::digest(format!("{name}\0{arguments}")).into()
}
