//! The user's consent before a call, if the rules require it (`tools.ask`).
//!
//! A legacy client is asked by a request; a modern one in the response to its own request, which it then repeats. If
//! the server asks something too, the client repeats its request once more; the consent stays valid.

use std::collections::HashMap;

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::question::{question, script_question};
use super::{Relay, RequestContext};
use crate::catalog::Tool;
use crate::config::{RuleList, Verdict};
use crate::events::Event;
use crate::mcp::Object;
use crate::mcp::object::quoted;
use crate::proxy::Reply;
use crate::proxy::callers::caller::{CallHost, Questions, named};
use crate::proxy::failure::{Failure, NoConsent, Withheld};
use crate::proxy::view::View;
use crate::tool::QualifiedName;
use crate::upstream::{self, Host as _, Question};

/// The key of the question.
const KEY: &str = "consent";

/// The prefix of our own request states about consent; those of open calls have another.
const STATE_PREFIX: &str = "mcpzip.consent.";

/// The time that a client has to repeat its request.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// The maximum number of open questions of one client; beyond it, the oldest one is dropped.
const MOST_OF_ONE: usize = 256;

/// The maximum number of open questions of all clients; beyond it, only a client's own questions are replaced.
const MOST: usize = 8192;

/// A collision-resistant hash of a call.
type Fingerprint = [u8; 32];

/// Calls that the user was asked about or has consented to. The key is the client's request state with a hash of the
/// call, so that a state is valid for one call only. The state of an open call does not count as consent.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Consents(Mutex<HashMap<(String, Fingerprint), Known>>);

#[derive(Debug)]
struct Known {
    /// The share of the client (`Client::share`).
    client: u64,
    is_agreed: bool,
    since: Instant,
}

/// A call of a script that a rule asks about.
#[derive(Debug)]
pub(in crate::proxy) struct ScriptCall {
    name: QualifiedName,
    pub(in crate::proxy) shown: QualifiedName,
    subject: String,
    pub(in crate::proxy) arguments: String,
    rule: Option<String>,
}

impl ScriptCall {
    /// The call, if a rule asks about it.
    pub(in crate::proxy) fn asked(view: &View, tool: &Tool, arguments: &str) -> Option<Self> {
        let name = tool.own_name();
        if !needs_decision(view, &name, tool) {
            return None;
        }
        match view.judge(tool, &name, arguments) {
            (Verdict::Asked, rule) => Some(Self {
                name,
                shown: tool.qualified_name(),
                subject: subject(view, tool),
                arguments: arguments.to_owned(),
                rule,
            }),
            _ => None,
        }
    }

    fn fingerprint(&self) -> Fingerprint {
        fingerprint((&self.name, &self.subject, &self.arguments))
    }
}

/// The calls of one script that the user has agreed to and that it has not made.
#[derive(Debug, Default)]
pub(in crate::proxy) struct ScriptConsent(Mutex<Vec<Fingerprint>>);

impl ScriptConsent {
    /// Whether the user has agreed to this call.
    pub(in crate::proxy) fn has(&self, call: &ScriptCall) -> bool {
        self.0.lock().contains(&call.fingerprint())
    }

    fn agree(&self, calls: &[ScriptCall]) {
        self.0
            .lock()
            .extend(calls.iter().map(ScriptCall::fingerprint));
    }

    fn take(&self, call: Fingerprint) -> bool {
        let mut agreed = self.0.lock();
        let at = agreed.iter().position(|known| *known == call);
        at.map(|at| agreed.swap_remove(at)).is_some()
    }
}

/// The decision about a call.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one for the time of a call"
)]
pub(in crate::proxy) enum Consent {
    /// No consent is needed.
    Needless,
    /// The user has consented; the call may be sent with this request context.
    Given(RequestContext),
    /// The client must be asked first, by this answer.
    Asked(Reply),
}

/// A question and the rules that ask it.
pub(super) struct Asking {
    pub(super) question: String,
    pub(super) rule: Option<String>,
    pub(super) lists: Vec<RuleList>,
}

impl Consent {
    /// The request context for sending the call; `own` is that of its request.
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

/// The consent of a user who calls in person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// There is none so far.
    Missing,
    /// There is none so far, and another process would ask, which then has the event for the audit log.
    AskedElsewhere,
    /// The user has consented.
    Given,
}

impl Relay {
    /// Decides whether a call may be sent, and asks the user if the rules require it and the user has not consented
    /// in person. Nothing has been sent so far.
    ///
    /// # Errors
    /// The reason why it may not be sent.
    pub(in crate::proxy) async fn consent(
        &self,
        view: &View,
        tool: &Tool,
        arguments: &str,
        context: Option<&RequestContext>,
        agreement: Agreement,
    ) -> Result<Consent, Failure> {
        let (name, shown) = (&tool.own_name(), tool.qualified_name());
        if !needs_decision(view, name, tool) {
            return Ok(Consent::Needless);
        }
        let rule = match view.judge(tool, name, arguments) {
            (Verdict::Allowed, _) => return Ok(Consent::Needless),
            (Verdict::Asked, _) if agreement == Agreement::Given => return Ok(Consent::Needless),
            (Verdict::Asked, rule) => rule,
            (Verdict::Denied, rule) => {
                let reason = Withheld::ByArguments(rule.unwrap_or_default());
                return Err(Failure::Withheld {
                    name: shown,
                    reason,
                });
            }
        };
        let refusal = |reason| Failure::NoConsent {
            name: shown.clone(),
            reason,
        };
        let subject = subject(view, tool);
        if let Some((context, script)) = context.and_then(|own| Some((own, own.script.as_ref()?))) {
            let call = fingerprint((name, &subject, arguments));
            return match script.take(call) {
                true => of_the_same(Consent::Given(context.clone()), view, tool, &subject),
                false => Err(NoConsent::InScript),
            }
            .map_err(refusal);
        }
        let question = question(&shown.to_string(), arguments).map_err(refusal)?;
        let Some(context) = context else {
            return Err(Failure::Consent {
                name: shown,
                rule,
                question,
                is_asked_here: agreement != Agreement::AskedElsewhere,
            });
        };
        let asked = (name, &subject[..], arguments);
        let consent = if let Some(consenting) = context.caller.client.consenting() {
            self.note_wanted(name);
            match consenting.consents(name, arguments, &question).await {
                Ok(true) => Ok(Consent::Given(context.clone())),
                Ok(false) => Err(NoConsent::Declined),
                Err(message) => Err(NoConsent::Failed { message }),
            }
        } else if context.caller.capabilities.elicits_forms() {
            self.ask_client(context, asked, &question).await
        } else if let Some(given) = self.agreed_before(context, fingerprint(asked)) {
            Ok(given)
        } else {
            let lists = view.config().asking_lists(name, tool.entry().hints);
            let asking = Asking {
                question,
                rule,
                lists,
            };
            // With its type erased, the compiler need not look through all that a request can wait for.
            let waiting: BoxFuture<'_, Result<Consent, NoConsent>> =
                Box::pin(self.approval(view, context, asked, asking));
            waiting.await
        };
        let consent = consent.map_err(refusal)?;
        // The rules may have changed while the call waited.
        if let (Verdict::Denied, rule) = view.judge(tool, name, arguments) {
            let reason = Withheld::ByArguments(rule.unwrap_or_default());
            return Err(Failure::Withheld {
                name: shown,
                reason,
            });
        }
        of_the_same(consent, view, tool, &subject).map_err(refusal)
    }

    /// Asks the user once about several calls of a script; `run` is the tool that runs scripts, and `context` is that of its call.
    /// Consent lets each of the calls be made once with `script`.
    ///
    /// # Errors
    /// The reason why they may not be made.
    pub(in crate::proxy) async fn script_consent(
        &self,
        view: &View,
        run: &QualifiedName,
        calls: &[ScriptCall],
        context: &RequestContext,
        script: &ScriptConsent,
    ) -> Result<Consent, NoConsent> {
        let shown: Vec<(String, &str)> = calls
            .iter()
            .map(|call| (call.shown.to_string(), &call.arguments[..]))
            .collect();
        let question = script_question(&shown)?;
        let listed = shown.iter().map(|(name, arguments)| {
            format!(r#"{{"name":{},"arguments":{arguments}}}"#, quoted(name))
        });
        let arguments = format!("[{}]", listed.collect::<Vec<_>>().join(","));
        let subjects: Vec<&str> = calls.iter().map(|call| &call.subject[..]).collect();
        let subject = subjects.join("\n");
        let asked = (run, &subject[..], &arguments[..]);
        let consent = if context.caller.capabilities.elicits_forms() {
            self.ask_client(context, asked, &question).await?
        } else if let Some(given) = self.agreed_before(context, fingerprint(asked)) {
            given
        } else {
            // No rule can be written from a question about several tools.
            let asking = Asking {
                question,
                rule: calls.first().and_then(|call| call.rule.clone()),
                lists: Vec::new(),
            };
            let waiting: BoxFuture<'_, Result<Consent, NoConsent>> =
                Box::pin(self.approval(view, context, asked, asking));
            waiting.await?
        };
        if matches!(consent, Consent::Given(_)) {
            script.agree(calls);
        }
        Ok(consent)
    }

    /// Says that a person is asked by the client.
    fn note_wanted(&self, name: &QualifiedName) {
        self.events.note(|session| Event::ApprovalWanted {
            server: name.server.to_string(),
            tool: name.tool.to_string(),
            session,
            identity: self.events.identity(),
            approval: None,
        });
    }

    /// Asks the user by the client.
    async fn ask_client(
        &self,
        context: &RequestContext,
        asked: (&QualifiedName, &str, &str),
        question: &str,
    ) -> Result<Consent, NoConsent> {
        let (name, ..) = asked;
        self.note_wanted(name);
        let params = format!(
            r#"{{"message":{},"requestedSchema":{{"type":"object","properties":{{}}}}}}"#,
            quoted(question)
        );
        let question = Question {
            server: name.server.clone(),
            method: "elicitation/create".to_owned(),
            params: Some(params.into()),
        };
        if context.caller.revision.is_modern() {
            self.ask_by_answer(context, &question, fingerprint(asked))
        } else {
            ask_by_request(context, question).await
        }
    }

    /// The consent to a call that its client repeats to answer a question of the server.
    fn agreed_before(&self, context: &RequestContext, call: Fingerprint) -> Option<Consent> {
        let state: String = serde_json::from_str(context.state.as_deref()?).ok()?;
        let known = self.consents.take(context, state, call)?;
        known.is_agreed.then(|| Consent::Given(context.clone()))
    }

    /// Asks a modern client in the response to its own request, or reads the answer from the repeated request.
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
            Some(state) => match self.consents.take(context, state, call) {
                Some(Known {
                    is_agreed: true, ..
                }) => Ok(Consent::Given(context.clone())),
                Some(_) if context.responses.as_deref().is_some_and(has_accepted) => {
                    Ok(Consent::Given(context.unanswered()))
                }
                Some(_) => Err(NoConsent::Declined),
                // The open question was about another call.
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

    /// The answer that asks a modern client; `None` if too many questions are open.
    fn asked(
        &self,
        context: &RequestContext,
        question: &Question,
        call: Fingerprint,
    ) -> Option<Consent> {
        let state = format!("{STATE_PREFIX}{}", context.caller.client.state_word());
        let result = format!(
            r#"{{"resultType":"input_required","inputRequests":{{"{KEY}":{{"method":"elicitation/create","params":{}}}}},"requestState":{}}}"#,
            String::from_utf8_lossy(&named(question)),
            quoted(&state)
        );
        let client = context.caller.client.share();
        let is_kept = self.consents.keep(client, state, call, false);
        is_kept.then(|| Consent::Asked(Reply::Relayed(result.into())))
    }

    /// Records the consent for the request that the client will repeat.
    pub(in crate::proxy) fn agreed(
        &self,
        context: &RequestContext,
        (view, tool): (&View, &Tool),
        arguments: &str,
        reply: &upstream::ServerReply,
    ) {
        let upstream::ServerReply::Result(result) = reply else {
            return;
        };
        if let Some(state) = result
            .required_input()
            .and_then(|object| object.text("requestState"))
        {
            let call = fingerprint((&tool.own_name(), &subject(view, tool), arguments));
            // If there are too many, the user is asked once more.
            let client = context.caller.client.share();
            self.consents.keep(client, state, call, true);
        }
    }
}

/// Asks a legacy client by a request.
async fn ask_by_request(
    context: &RequestContext,
    question: Question,
) -> Result<Consent, NoConsent> {
    let host = CallHost::new(&context.caller, None, Questions::Requested, None);
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

/// Whether a call of this tool may require consent, or be denied because of its arguments.
pub(in crate::proxy) fn needs_decision(view: &View, name: &QualifiedName, tool: &Tool) -> bool {
    let config = view.config();
    config.judge(name, tool.entry().hints) == Verdict::Asked || config.inspects(&name.server)
}

impl Consents {
    /// Stores a question of `client`, if the limits permit; questions of other clients are kept.
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

    /// Takes what is known of this call, if it belongs to the client that repeats its request.
    fn take(&self, context: &RequestContext, state: String, call: Fingerprint) -> Option<Known> {
        let client = context.caller.client.share();
        let key = (state, call);
        let mut known = self.known();
        known.get(&key).filter(|known| known.client == client)?;
        known
            .remove(&key)
            .filter(|known| known.since.elapsed() < PATIENCE)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(String, Fingerprint), Known>> {
        // Each change is a single step.
        self.0.lock()
    }
}

/// A text that changes with the definition of a tool, as its server lists it and as the user has adapted it, and with its server's entry.
fn subject(view: &View, tool: &Tool) -> String {
    let (config, entry) = (view.config(), tool.entry());
    let server = config.servers.get(tool.server().name());
    let server = server.map(|server| server.hash.to_string());
    let (listed, adapted) = (entry.as_listed().hash, entry.hash);
    format!("{listed} {adapted} {}", server.unwrap_or_default())
}

/// The consent, if the tool is still the one that the user was asked about.
fn of_the_same(
    consent: Consent,
    view: &View,
    tool: &Tool,
    asked: &str,
) -> Result<Consent, NoConsent> {
    let Consent::Given(mut context) = consent else {
        return Ok(consent);
    };
    let snapshot = view.snapshot();
    let now = snapshot.tool(tool.server().name(), &tool.entry().name);
    if now.is_none_or(|now| subject(view, &now) != asked) {
        return Err(NoConsent::Changed);
    }
    context.agreed = Some(tool.entry().as_listed().hash);
    Ok(Consent::Given(context))
}

fn is_accepted(answer: &[u8]) -> bool {
    let raw: Option<&RawValue> = serde_json::from_slice(answer).ok();
    raw.and_then(|raw| Object::parse(raw).ok()?.text("action"))
        .as_deref()
        == Some("accept")
}

/// Whether `inputResponses` contain the user's consent.
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

fn fingerprint((name, subject, arguments): (&QualifiedName, &str, &str)) -> Fingerprint {
    Sha256::digest(format!("{name}\0{subject}\0{arguments}")).into()
}
