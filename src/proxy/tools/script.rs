//! The built-in tool `mcpzip__run`: a script whose calls go the way of the session's own.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::value::RawValue;

use super::Tools;
use super::builtin;
use super::call::Call;
use crate::mcp::Object;
use crate::mcp::object::quoted;
use crate::proxy::answers::answer::place;
use crate::proxy::answers::content::text_of;
use crate::proxy::answers::projection::input_of;
use crate::proxy::answers::reply::is_error;
use crate::proxy::failure::{Failure, NoConsent};
use crate::proxy::relay::consent::{Agreement, Consent, ScriptCall};
use crate::proxy::{Reply, RequestContext, counted};
use crate::scripts::{self, End, Ended, Fault, Host, Limits};
use crate::tool::{QualifiedName, ToolName};

/// The time limit of a script without a `timeout` of its call.
const TIME: Duration = Duration::from_secs(300);

/// The size in bytes of all answers that are kept until a script ends, for the case that it fails.
const KEPT: usize = 8 * 1024 * 1024;

/// The characters of a script's own error that stand before its calls.
const LONGEST_REASON: usize = 2000;

/// The calls of one script.
struct ScriptCalls<'a> {
    tools: &'a Tools,
    /// The context of its calls, and that of the request that runs it.
    context: RequestContext,
    asking: &'a RequestContext,
    /// The name of the tool that runs it.
    run: QualifiedName,
    /// The calls that the user is to be asked about, and whether the user was.
    held: Mutex<Vec<ScriptCall>>,
    was_asked: AtomicBool,
    /// The first tool it called that does not declare to be read-only.
    acted: OnceLock<QualifiedName>,
    /// The question that ends this run: the client repeats its request with the answer.
    question: Mutex<Option<Reply>>,
    /// Whether the script itself was called by the tool for read-only calls.
    is_read_only: bool,
    made: Mutex<Vec<Made>>,
}

/// A call that a script has made.
struct Made {
    name: String,
    /// The result, while there is room for it; the reason if there is none. `None` until it is answered.
    answer: Option<Result<Option<Bytes>, String>>,
}

impl Tools {
    /// Runs the script of a call of `mcpzip__run`.
    pub(super) async fn run_script(
        &self,
        call: &Call<'_>,
        context: Option<&RequestContext>,
        arguments: &RawValue,
    ) -> Reply {
        let code = Object::parse(arguments)
            .ok()
            .and_then(|object| object.text("code"));
        let Some(code) = code.filter(|code| !code.trim().is_empty()) else {
            return Reply::tool_error("`code` has no script");
        };
        let run = QualifiedName {
            server: builtin::name(),
            tool: ToolName::new("run").expect("the constant is a name"),
        };
        self.run_code(call, context, run, (&code, None)).await
    }

    /// Runs a script for a call of the tool `run`, with the value of its variable `args`.
    ///
    /// The future is boxed with its type erased, because it contains calls, and a call can contain it.
    pub(super) fn run_code<'a>(
        &'a self,
        call: &Call<'a>,
        context: Option<&'a RequestContext>,
        run: QualifiedName,
        (code, args): (&'a str, Option<&'a RawValue>),
    ) -> BoxFuture<'a, Reply> {
        let (view, limit, is_read_only) = (call.view, call.limit, call.is_read_only);
        Box::pin(async move {
            let options = view.config().scripts;
            if !options.is_on {
                return Reply::tool_error(
                    "scripts are off: the user switches them on with `\"scripts\": true`",
                );
            }
            let Some(context) = context else {
                return Reply::tool_error("a script runs in the session of a client only");
            };
            let permit = self.scripts.permit(context.caller.client.share());
            let mut permit = match permit {
                Ok(permit) => permit,
                Err(reason) => return Reply::tool_error(&reason),
            };
            let host = ScriptCalls {
                tools: self,
                context: context.in_script(),
                asking: context,
                run,
                held: Mutex::default(),
                was_asked: AtomicBool::new(false),
                acted: OnceLock::new(),
                question: Mutex::default(),
                is_read_only,
                made: Mutex::default(),
            };
            let limits = Limits {
                calls: usize::try_from(options.max_calls).unwrap_or(usize::MAX),
                time: limit.unwrap_or(TIME),
            };
            let Ended { log, value } = scripts::run(code, args, limits, &host).await;
            permit.end = match value {
                Ok(_) => End::Answered,
                Err(_) => End::Failed,
            };
            if let Some(question) = host.question.into_inner() {
                permit.end = End::Asked;
                return question;
            }
            let mut log: String = log.iter().map(|line| format!("\nlog: {line}")).collect();
            let made = host.made.into_inner();
            match value {
                Ok(value) => {
                    log.push_str(&self.left(context, &made));
                    Reply::Relayed(answer(value.as_deref(), &log).into())
                }
                Err(fault) => {
                    let has_calls = !made.is_empty();
                    let made = self.told(context, made).await;
                    let failed = failed(&fault);
                    let is_long = has_calls && failed.chars().nth(LONGEST_REASON).is_some();
                    let text = match is_long {
                        false => format!("{failed}{made}{log}"),
                        // Which calls may have acted must not be in the part that is left out.
                        true => {
                            let begin: String = failed.chars().take(LONGEST_REASON).collect();
                            format!("{begin}…{made}\n\nIn full: {failed}{log}")
                        }
                    };
                    // As of any tool, so that a long text is shortened.
                    match Reply::tool_error(&text) {
                        Reply::Result(result) => Reply::Relayed(result),
                        other => other,
                    }
                }
            }
        })
    }

    /// Whether a call without an answer may have acted.
    fn may_have_acted(&self, context: &RequestContext, name: &str) -> bool {
        let tool = self.known_tool(&context.view, name);
        tool.is_none_or(|tool| !tool.entry().hints.declares_read_only())
    }

    /// The calls in words that may have acted, and that a script did not wait for.
    fn left(&self, context: &RequestContext, made: &[Made]) -> String {
        let left = made
            .iter()
            .filter(|call| call.answer.is_none() && self.may_have_acted(context, &call.name));
        let names: Vec<&str> = left.map(|call| call.name.as_str()).collect();
        match names[..] {
            [] => String::new(),
            _ => format!(
                "\nThe script ended before the answer of {}, which may have acted.",
                names.join(", ")
            ),
        }
    }

    /// The calls of a failed script in words; their answers are stored.
    async fn told(&self, context: &RequestContext, made: Vec<Made>) -> String {
        /// The number of calls that are named.
        const SHOWN: usize = 20;
        if made.is_empty() {
            return "\nIt had made no call.".to_owned();
        }
        let (count, mut is_stored) = (made.len(), false);
        let place = place(&context.view, &context.caller);
        let mut text = format!("\nIt had made {}:", counted(count, "call"));
        for Made { name, answer } in made.into_iter().rev().take(SHOWN).rev() {
            let outcome = match answer {
                None if self.may_have_acted(context, &name) => {
                    "no answer yet; it may have acted".to_owned()
                }
                None => "no answer yet".to_owned(),
                Some(Ok(Some(result))) => match self.answers.stored(&place, &result).await {
                    Some(id) => {
                        is_stored = true;
                        format!("answered, stored as `{id}`")
                    }
                    None => "answered".to_owned(),
                },
                Some(Ok(None)) => "answered".to_owned(),
                Some(Err(reason)) => format!("failed: {}", first_line(&reason)),
            };
            text.push_str(&format!("\n- {name}: {outcome}"));
        }
        if count > SHOWN {
            text.push_str(&format!("\nThese are the last {SHOWN}."));
        }
        if is_stored {
            text.push_str(
                "\nRead a stored answer with mcpzip__read_result, also in the next script.",
            );
        }
        text
    }
}

impl ScriptCalls<'_> {
    /// Whether a call waits until the user was asked.
    async fn is_held(&self, name: &str, arguments: &RawValue) -> bool {
        if !is_object(arguments) {
            return false;
        }
        let view = &self.context.view;
        let asked = self.tools.asked_in_script(view, name, arguments).await;
        let agreed = self.context.script.as_ref();
        if let Some(asked) = asked
            && !agreed.is_some_and(|agreed| agreed.has(&asked))
            && !self.was_asked.load(Relaxed)
            && self.tools.relay.paused().is_none()
        {
            self.held.lock().push(asked);
            return true;
        }
        false
    }

    /// Makes a call.
    async fn made(&self, name: &str, arguments: &RawValue) -> Result<Bytes, String> {
        let view = &self.context.view;
        if !is_object(arguments) {
            let reason = "it was not called: its arguments must be one object";
            let failure = Failure::Unreadable { reason };
            let caller = Some(&self.context.caller);
            let refused = self.tools.refused(view, caller, name, failure);
            return Err(format!("`{name}`: {}", refused.text(view)));
        }
        let call = Call {
            name,
            arguments: Some(arguments),
            line: None,
            limit: None,
            view,
            context: Some(&self.context),
            agreement: Agreement::Missing,
            is_read_only: self.is_read_only,
            task: None,
        };
        let reply = self.tools.call_unshaped(call).await;
        // After the call, when its server is listed; the user is asked only while no call is in progress.
        if let Some(tool) = self.tools.known_tool(view, name)
            && !tool.entry().hints.declares_read_only()
        {
            self.acted.get_or_init(|| tool.qualified_name());
        }
        match reply.map_err(|failure| failure.text(view))? {
            Reply::Result(result) | Reply::Relayed(result) if is_error(&result) => {
                Err(text_of(&result))
            }
            Reply::Result(result) | Reply::Relayed(result) if has_content(&result) => {
                Ok(result.into_bytes())
            }
            _ => Err(format!(
                "`{name}` needs an answer of the user first: call it with execute_tool, outside of the script"
            )),
        }
    }

    /// Notes a call that begins. Returns its place in the list.
    fn begin(&self, name: &str) -> usize {
        let mut made = self.made.lock();
        made.push(Made {
            name: name.to_owned(),
            answer: None,
        });
        made.len() - 1
    }

    /// Notes the answer to a call, and keeps it while there is room.
    fn note(&self, at: usize, answer: Result<Bytes, String>) {
        let mut made = self.made.lock();
        let kept: usize = made
            .iter()
            .filter_map(|call| {
                call.answer
                    .as_ref()?
                    .as_ref()
                    .ok()?
                    .as_ref()
                    .map(Bytes::len)
            })
            .sum();
        let answer = answer.map(|result| (kept + result.len() <= KEPT).then_some(result));
        if let Some(call) = made.get_mut(at) {
            call.answer = Some(answer);
        }
    }
}

impl Host for ScriptCalls<'_> {
    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a RawValue,
    ) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            if self.is_held(name, arguments).await {
                return Ok(None);
            }
            let at = self.begin(name);
            let answer = self.made(name, arguments).await;
            self.note(at, answer.clone());
            answer.map(|result| Some(value_of(&result)))
        })
    }

    fn ask(&self) -> BoxFuture<'_, scripts::Consent> {
        Box::pin(async move {
            self.was_asked.store(true, Relaxed);
            let mut calls = std::mem::take(&mut *self.held.lock());
            // A script that runs again has the same list, although its calls may come in another order.
            calls.sort_by_cached_key(|call| (call.shown.to_string(), call.arguments.clone()));
            let refused = |reason| {
                let name = calls.first().map_or(&self.run, |call| &call.shown).clone();
                let failure = Failure::NoConsent { name, reason };
                scripts::Consent::Refused(failure.text(&self.context.view))
            };
            let Some(agreed) = &self.context.script else {
                return refused(NoConsent::InScript);
            };
            let caller = &self.asking.caller;
            let is_asked_at_once =
                caller.capabilities.elicits_forms() && !caller.revision.is_modern();
            if let Some(tool) = self.acted.get().filter(|_| !is_asked_at_once) {
                return refused(NoConsent::Acted { tool: tool.clone() });
            }
            let (view, relay) = (&self.context.view, &self.tools.relay);
            let consent = relay.script_consent(view, &self.run, &calls, self.asking, agreed);
            match consent.await {
                Ok(Consent::Given(_) | Consent::Needless) => scripts::Consent::Given,
                Ok(Consent::Asked(question)) => {
                    *self.question.lock() = Some(question);
                    scripts::Consent::Ended
                }
                Err(reason) => refused(reason),
            }
        })
    }

    fn search<'a>(&'a self, need: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let view = &self.context.view;
            let limit = view.config().search.default_limit;
            let found = self.tools.search(view, need, limit, None).await;
            let found = found.map_err(|error| error.to_string())?.found;
            let hits = found.iter().map(|hit| {
                format!(
                    r#"{{"name":{},"text":{}}}"#,
                    quoted(&hit.name),
                    quoted(&hit.text)
                )
            });
            Ok(format!("[{}]", hits.collect::<Vec<_>>().join(",")))
        })
    }
}

fn is_object(arguments: &RawValue) -> bool {
    arguments.get().trim_start().starts_with('{')
}

/// Whether a result is a tool's, and not a question to the client.
fn has_content(result: &[u8]) -> bool {
    crate::upstream::required_input(result).is_none()
}

/// The value of a call: its structured content, else its text read as JSON, else its text, else its content.
fn value_of(result: &[u8]) -> String {
    let raw: Option<&RawValue> = serde_json::from_slice(result).ok();
    let object = raw
        .and_then(|raw| Object::parse(raw).ok())
        .unwrap_or_default();
    match input_of(&object) {
        Some(value) => value.get().to_owned(),
        None => object
            .get("content")
            .map_or("null", RawValue::get)
            .to_owned(),
    }
}

/// The result of a script that has ended.
fn answer(value: Option<&RawValue>, log: &str) -> Bytes {
    let text = match value {
        None => "The script has no value: end it with `return value`.".to_owned(),
        Some(value) => serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned()),
    };
    let block = |text: &str| format!(r#"{{"type":"text","text":{}}}"#, quoted(text));
    let log = match log.is_empty() {
        true => String::new(),
        false => format!(",{}", block(log.trim_start())),
    };
    format!(r#"{{"content":[{}{log}]}}"#, block(&text)).into()
}

fn failed(fault: &Fault) -> String {
    let place = fault
        .line
        .map_or(String::new(), |line| format!(" at line {line}"));
    format!("The script failed{place}: {}", fault.message)
}

fn first_line(text: &str) -> String {
    /// The number of characters of a reason that are shown; the whole is in the script's own error.
    const SHOWN: usize = 200;
    text.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(SHOWN)
        .collect()
}
