//! One call, step by step: find the tool, check the arguments, ask the user, send the call.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::value::RawValue;

use super::describe::is_partial;
use super::{Tools, builtin};
use crate::audit::{Kind, Outcome};
use crate::catalog::{Rejected, Tool};
use crate::limits::{Permit, Request};
use crate::mcp::object::quoted;
use crate::mcp::{Frame, Object};
use crate::proxy::answers::projection::Selector;
use crate::proxy::arguments::{Checked, Repair, Schema};
use crate::proxy::failure::Failure;
use crate::proxy::ledger::CallEvent;
use crate::proxy::relay::consent::{Agreement, Consent, ScriptCall, needs_decision};
use crate::proxy::relay::{Relayed, without_secrets};
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply, RequestContext};
use crate::replicas::ClientOfReplica;
use crate::statistics::CallPath;
use crate::tool::{Definition, QualifiedName, ServerName, Signature, ToolHash};
use crate::upstream::{CallError, ServerReply, message_of};

/// The number of compiled schemas that are kept.
const MOST_SCHEMAS: usize = 512;

/// A call, as requested by the agent.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The tool's name, in any spelling.
    pub name: &'a str,
    /// The arguments.
    pub arguments: Option<&'a RawValue>,
    /// The line that contains `arguments`, so that they need not be copied.
    pub line: Option<&'a Bytes>,
    /// The time limit, if not the configured one.
    pub limit: Option<Duration>,
    /// The view of the caller.
    pub view: &'a View,
    /// The context of its request, if there is one.
    pub context: Option<&'a RequestContext>,
    /// Whether the user, calling in person, has consented to this call.
    pub agreement: Agreement,
    /// Whether only a tool that declares to be read-only may be called.
    pub is_read_only: bool,
    /// How the result is shown later, if the call may become a task.
    pub task: Option<TaskWish<'a>>,
}

/// How the result of a task is shown once it is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaskWish<'a> {
    /// The caller's selection.
    pub select: Option<&'a str>,
    /// Whether the tool was called by its own name.
    pub is_direct: bool,
}

/// The reply to a call.
pub(super) struct CallOutcome {
    /// The tool; `None` if it is unknown until the client has answered a question.
    pub(super) tool: Option<Tool>,
    pub(super) reply: Reply,
    pub(super) repairs: Vec<Repair>,
}

impl Tools {
    /// [`Self::call_audited`] for a command of the user: the result is returned unchanged, but for the user's own `select` of the tool.
    ///
    /// # Errors
    /// When there is no result.
    pub(crate) async fn call_unshaped(&self, call: Call<'_>) -> Result<Reply, Failure> {
        let outcome = self.call_audited(call).await?;
        let select = outcome
            .tool
            .as_ref()
            .and_then(|tool| tool.adapted()?.select());
        Ok(match (outcome.reply, select) {
            (Reply::Relayed(result), Some(select)) => {
                let select = Some(Selector::User(select));
                self.answers.selected(result, select, None).await
            }
            (reply, _) => reply,
        })
    }

    /// [`Self::call_checked`] with a line in the audit log, if there is one.
    pub(super) async fn call_audited(&self, call: Call<'_>) -> Result<CallOutcome, Failure> {
        let found = OnceLock::new();
        let checked = pin!(self.call_checked(call, &found));
        let Some(audit) = self.ledger.audit() else {
            return checked.await;
        };
        let caller = call.context.map(|context| &context.caller);
        let arguments = call.arguments.map_or("{}", RawValue::get);
        let entry = CallEvent::begin(audit, call.view, caller, call.name, arguments)?;
        let tool = || found.get().cloned();
        entry.record(checked, tool, |outcome| &outcome.reply).await
    }

    /// Writes the line of a call that was refused before its arguments were known, if there is an audit log. Returns the failure to
    /// answer with.
    pub(crate) fn refused(
        &self,
        view: &View,
        caller: Option<&Caller>,
        name: &str,
        failure: Failure,
    ) -> Failure {
        let Some(audit) = self.ledger.audit() else {
            return failure;
        };
        match CallEvent::begin(audit, view, caller, name, "{}") {
            Ok(event) => event.refuse(failure),
            Err(unwritten) => unwritten,
        }
    }

    /// Finds the tool, checks the arguments, gets the user's consent if a rule requires it, and then calls the server or
    /// the built-in tool. The tool is put into `found` as soon as it is known.
    async fn call_checked(
        &self,
        call: Call<'_>,
        found: &OnceLock<Tool>,
    ) -> Result<CallOutcome, Failure> {
        let Call { view, context, .. } = call;
        let known = self.known_tool(view, call.name);
        if !known.as_ref().is_some_and(builtin::only_shows) {
            self.may_begin(call.name, context)?;
        }
        let tool = match known {
            Some(tool) => tool,
            None => {
                let name = current_name(view, call.name);
                let found = self.find_logged_in(view, name, call.limit, context);
                match Box::pin(found).await? {
                    Ok(tool) => tool,
                    Err(question) => {
                        return Ok(CallOutcome {
                            tool: None,
                            reply: question,
                            repairs: Vec::new(),
                        });
                    }
                }
            }
        };
        let tool = found.get_or_init(|| tool).clone();
        if call.is_read_only && !tool.entry().hints.declares_read_only() {
            return Err(Failure::NotReadOnly {
                name: tool.qualified_name(),
            });
        }
        if context.is_some_and(|context| context.script.is_some()) {
            builtin::permitted_in_script(view, &tool)?;
        }
        has_scopes(view, context, &tool)?;
        let checked = self.check_arguments(view, &tool, call.arguments).await?;
        let (arguments, repairs) = match &checked {
            Checked::AsSent(raw) => (*raw, Vec::new()),
            Checked::Repaired { arguments, repairs } => (&**arguments, repairs.clone()),
        };
        let name = tool.qualified_name();
        let completed = completed(&tool, arguments)?;
        let consent = if needs_decision(view, &tool.own_name(), &tool) {
            let (relay, text) = (&self.relay, arguments.get());
            Box::pin(relay.consent(view, &tool, text, context, call.agreement)).await?
        } else {
            Consent::Needless
        };
        let reply = match (&consent, builtin::Tool::of(&tool)) {
            (Consent::Asked(reply), _) => reply.clone(),
            (_, own)
                if own == Some(builtin::Tool::Run)
                    || view.config().has_scripts(tool.server().name()) =>
            {
                let (is_saved, own) = (own.is_none(), consent.context(context));
                let reply = match is_saved {
                    true => self.run_saved(&call, own, &tool, arguments).await?,
                    false => self.run_script(&call, own, arguments).await,
                };
                // Its question ends the run, and the client repeats the request: the consent to it stays valid.
                if let (Consent::Given(given), Reply::Relayed(result)) = (&consent, &reply) {
                    let result = ServerReply::Result(result.clone());
                    self.relay
                        .agreed(given, (view, &tool), arguments.get(), &result);
                }
                reply
            }
            (_, Some(own)) => {
                let arguments = Object::parse(arguments).unwrap_or_default();
                let caller = consent.context(context).map(|context| &context.caller);
                Box::pin(self.builtin.run(view, own, &arguments, caller)).await
            }
            (_, None) => {
                for repair in &repairs {
                    tracing::info!(tool = %name, path = repair.path, repair = repair.what, "arguments repaired");
                }
                // Limits, as rules, are about the server's own name.
                let permit = self.permit(view, context, &tool.own_name()).await?;
                let answered = self
                    .call_server(&call, &tool, (arguments, completed.as_deref()), &consent)
                    .await;
                permit.count_bytes(arguments.get().len() + size_of_answer(&answered));
                match self.made_task(view, context, (&tool, arguments), call.task, &answered) {
                    Some(made) => made?,
                    None => reply_of(&name, answered, consent.context(context))?,
                }
            }
        };
        if context.is_some() {
            self.note_call(view, &tool, &reply);
        }
        Ok(CallOutcome {
            tool: Some(tool),
            reply,
            repairs,
        })
    }

    /// Refuses a call while the user has paused mcpzip: before a person is asked about it, a server started, or a login begun.
    pub(super) fn may_begin(
        &self,
        name: &str,
        context: Option<&RequestContext>,
    ) -> Result<(), Failure> {
        match self.relay.holds(context) {
            Some(paused) => Err(Failure::Paused {
                name: name.trim().to_owned(),
                paused,
            }),
            None => Ok(()),
        }
    }

    /// A call of a script as the rules ask about it; `None` if they do not, or it will fail before.
    pub(super) async fn asked_in_script(
        &self,
        view: &View,
        name: &str,
        arguments: &RawValue,
    ) -> Option<ScriptCall> {
        // Its server may be listed only now.
        let tool = self.find(view, name).await.ok()?;
        if !needs_decision(view, &tool.own_name(), &tool) {
            return None;
        }
        builtin::permitted_in_script(view, &tool).ok()?;
        let checked = self.check_arguments(view, &tool, Some(arguments)).await;
        let arguments = match &checked {
            Ok(Checked::AsSent(raw)) => raw.get(),
            Ok(Checked::Repaired { arguments, .. }) => arguments.get(),
            Err(_) => return None,
        };
        ScriptCall::asked(view, &tool, arguments)
    }

    /// The right to a call, by the limits of its caller.
    pub(super) async fn permit(
        &self,
        view: &View,
        context: Option<&RequestContext>,
        name: &QualifiedName,
    ) -> Result<Permit, Failure> {
        let person = context.and_then(|context| context.caller.client.person());
        let request = Request {
            identity: person.unwrap_or_default(),
            server: &name.server,
            tool: name.tool.as_str(),
        };
        let permit = self.limits.begin(&view.config(), request).await;
        permit.map_err(|exceeded| Failure::Limited {
            name: name.clone(),
            exceeded,
        })
    }

    /// Checks arguments against the tool's schema, and repairs unambiguous mistakes.
    pub(super) async fn check_arguments<'a>(
        &self,
        view: &View,
        tool: &Tool,
        arguments: Option<&'a RawValue>,
    ) -> Result<Checked<'a>, Failure> {
        let schema = match self.schemas.get(tool.entry().hash) {
            Some(schema) => schema,
            None => Box::pin(self.compiled(view, tool)).await,
        };
        let adapted = tool.adapted().zip(arguments);
        if let Some((adapted, Ok(sent))) =
            adapted.map(|(adapted, raw)| (adapted, Object::parse(raw)))
        {
            adapted
                .check(&sent)
                .map_err(|rejected| preset(tool, rejected))?;
        }
        schema.check(arguments).map_err(|faults| {
            let json = self.inventory.definition(tool);
            let definition = json
                .as_deref()
                .and_then(|json| Definition::parse(json).ok());
            let signature = definition
                .map(|definition| Signature::of(tool.server().name(), &definition).to_string());
            Failure::Arguments {
                name: tool.qualified_name(),
                faults,
                signature: signature.unwrap_or_default(),
            }
        })
    }

    /// The compiled schema of a tool, created at its first call.
    async fn compiled(&self, view: &View, tool: &Tool) -> Arc<Schema> {
        let json = self.inventory.definition(tool);
        let whole = match json.as_deref().is_some_and(is_partial) {
            true => self.schema_part(view, tool, "#").await.ok(),
            false => None,
        };
        let whole: Option<Box<RawValue>> =
            whole.and_then(|schema| RawValue::from_string(schema).ok());
        let compile = move || {
            if whole.is_some() {
                return Schema::compile(whole.as_deref());
            }
            let definition = json
                .as_deref()
                .and_then(|json| Definition::parse(json).ok());
            Schema::compile(definition.and_then(|definition| definition.input_schema))
        };
        // If the compilation panics, the arguments are not checked.
        let schema = self
            .tasks
            .spawn_blocking(compile)
            .await
            .unwrap_or_else(|_| Schema::compile(None));
        self.schemas.insert(tool.entry().hash, schema)
    }

    /// Tells a client that the process of a server has lost its state, once in each session.
    pub(super) fn with_loss(&self, caller: &Caller, server: &ServerName, reply: Reply) -> Reply {
        let session = caller.client.replica().and_then(ClientOfReplica::session);
        match self.relay.moved(server, session) {
            Some(age) => reply.with_text(&format!(
                "Note from mcpzip: server `{server}` was started again {} seconds ago, because its process, or the replica that it ran at, had ended. Its earlier state in memory is lost.",
                age.as_secs()
            )),
            None => reply,
        }
    }

    /// Sends a call to its server and counts it. The arguments are the agent's, and all of them if the user sets others.
    async fn call_server(
        &self,
        call: &Call<'_>,
        tool: &Tool,
        (arguments, completed): (&RawValue, Option<&RawValue>),
        consent: &Consent,
    ) -> Result<ServerReply, CallError> {
        let name = tool.own_name();
        let written = completed.unwrap_or(arguments).get();
        let own = |line: &&Bytes| line.as_ptr_range().contains(&written.as_ptr());
        let body = match call.line.filter(own) {
            Some(line) => line.slice_ref(written.as_bytes()),
            None => Bytes::copy_from_slice(written.as_bytes()),
        };
        let limit = call.limit;
        let relayed = Relayed {
            method: "tools/call",
            name: Some(name.tool.as_str()),
            params: Frame {
                head: format!(r#"{{"name":{},"arguments":"#, quoted(name.tool.as_str()))
                    .into_bytes(),
                body,
                tail: Vec::new(),
            },
            limit: limit.unwrap_or_else(|| self.relay.limit(call.view, &name.server)),
            is_repeatable: tool.entry().hints.is_repeatable(),
            takes_task: self.takes_task(call.view, call.context, (tool, arguments), call.task),
        };
        let (sent, start) = (relayed.params.body.len(), Instant::now());
        let context = consent.context(call.context);
        let answered = self.send(tool, relayed, context).await;
        let answered =
            answered.map(|reply| without_secrets(&call.view.config(), tool.server().name(), reply));
        let answered = self.unchanged(call.view, tool, answered);
        if let (Consent::Given(given), Ok(reply)) = (consent, &answered) {
            self.relay
                .agreed(given, (call.view, tool), arguments.get(), reply);
        }
        let failed = answered.as_ref().err();
        if let Some(reason) = failed.and_then(CallError::failed_exchange) {
            let (ledger, detail) = (&self.ledger, reason.to_string());
            ledger.note(Kind::Login, Outcome::Failed, &name.server, None, &detail);
        }
        if let Err(CallError::Changed { server, .. }) = &answered {
            self.inventory.poke(server);
        }
        let result = match &answered {
            Ok(ServerReply::Result(result)) => Some(result),
            _ => None,
        };
        let path = match call.context {
            Some(_) => CallPath::MetaTool,
            None => CallPath::Command,
        };
        self.answers
            .count_call(&name, start.elapsed(), sent, result, path);
        answered
    }
}

/// Checks that the access token of the caller has the scopes that the tool needs. Other credentials have none and need none.
pub(super) fn has_scopes(
    view: &View,
    context: Option<&RequestContext>,
    tool: &Tool,
) -> Result<(), Failure> {
    let scopes = context.and_then(|context| context.caller.scopes.as_deref());
    let needed = view.lacking_scopes(scopes, &tool.own_name(), tool.entry().hints);
    match needed.is_empty() {
        true => Ok(()),
        false => Err(Failure::Scopes {
            name: tool.qualified_name(),
            needed,
        }),
    }
}

/// The bytes of an answer.
pub(super) fn size_of_answer(answered: &Result<ServerReply, CallError>) -> usize {
    match answered {
        Ok(ServerReply::Result(result)) => result.len(),
        Ok(ServerReply::Error(error)) => error.len(),
        Err(_) => 0,
    }
}

/// All arguments for the server of an adapted tool; `None` if they are the agent's.
pub(super) fn completed(tool: &Tool, sent: &RawValue) -> Result<Option<Box<RawValue>>, Failure> {
    let adapted = tool.adapted().map(|adapted| adapted.complete(sent));
    let adapted = adapted.transpose();
    adapted.map_err(|rejected| preset(tool, rejected))
}

fn preset(tool: &Tool, rejected: Rejected) -> Failure {
    let name = tool.qualified_name();
    Failure::Preset { name, rejected }
}

/// The current name of a built-in tool that mcpzip 0.1 called `name`, unless the name addresses a configured server.
fn current_name<'n>(view: &View, name: &'n str) -> &'n str {
    match builtin::name_since_older(name.trim()) {
        Some(now) if view.snapshot().addressed(name).is_empty() => now,
        _ => name,
    }
}

/// The reply to a call that was sent.
fn reply_of(
    name: &QualifiedName,
    answered: Result<ServerReply, CallError>,
    context: Option<&RequestContext>,
) -> Result<Reply, Failure> {
    let name = || name.clone();
    match answered {
        Ok(ServerReply::Result(result)) if result.starts_with(b"{") => Ok(Reply::Relayed(result)),
        Ok(ServerReply::Result(_)) => Err(Failure::Malformed { name: name() }),
        Ok(ServerReply::Error(error))
            if context.is_some_and(|context| context.concerns_client(&error)) =>
        {
            Ok(Reply::RelayedError(error))
        }
        Ok(ServerReply::Error(error)) => {
            let raw: Option<&RawValue> = serde_json::from_slice(&error).ok();
            let object = raw
                .and_then(|raw| Object::parse(raw).ok())
                .unwrap_or_default();
            Err(Failure::Refused {
                name: name(),
                message: message_of(&error),
                data: object.get("data").map(|data| data.get().to_owned()),
            })
        }
        Err(error) => Err(Failure::Call {
            name: name(),
            error: Box::new(error),
        }),
    }
}

/// Compiled schemas, by the hash of their tool.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Schemas(Mutex<HashMap<ToolHash, Arc<Schema>>>);

impl Schemas {
    fn get(&self, hash: ToolHash) -> Option<Arc<Schema>> {
        self.0.lock().get(&hash).cloned()
    }

    fn insert(&self, hash: ToolHash, schema: Schema) -> Arc<Schema> {
        let schema = Arc::new(schema);
        let mut schemas = self.0.lock();
        if schemas.len() >= MOST_SCHEMAS {
            // All of them: compiling one again takes less time than a call.
            schemas.clear();
        }
        schemas.insert(hash, schema.clone());
        schema
    }
}
