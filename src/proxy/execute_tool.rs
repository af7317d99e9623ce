use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::arguments::{Checked, Schema};
use super::error::{failed_call, refused_call, unfit_arguments};
use super::{Caller, Proxy, Reply, builtin};
use crate::catalog::Tool;
use crate::mcp::{Frame, Object, Outbox};
use crate::tool::{Definition, Signature, ToolHash};
use crate::upstream::{self, ProgressSink, ToolCall, message_of};

/// The bounds of a caller's `timeout`, in seconds.
const TIMEOUTS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// Compiled schemas that are kept.
const MOST_SCHEMAS: usize = 512;

/// A call as the agent put it.
pub struct Call<'a> {
    /// The tool, however it is written.
    pub name: &'a str,
    /// Its arguments.
    pub arguments: Option<&'a RawValue>,
    /// What `arguments` is a part of, so that they need not be copied.
    pub line: Option<&'a Bytes>,
    /// The time it may take, if not the configured one.
    pub limit: Option<Duration>,
    /// Members for the call's `_meta`.
    pub meta: String,
    /// Where progress goes.
    pub progress: Option<ProgressSink>,
}

/// Why a call has no result; each with a text for whoever called.
#[derive(Debug, Clone)]
pub enum Failure {
    /// No such tool, or more than one, among those that are known.
    Unknown(String),
    /// The arguments do not fit; nothing was sent.
    Arguments(String),
    /// The server could not be reached, or gave no usable answer.
    Unavailable(String),
    /// The server answered with a protocol error.
    Refused(String),
}

impl Failure {
    /// What happened, to which server, and what to do next.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Unknown(text) | Self::Arguments(text) | Self::Unavailable(text) | Self::Refused(text) => text,
        }
    }
}

impl Proxy {
    /// Calls a tool: `{name, arguments?, timeout?}`.
    pub(super) async fn execute_tool(
        &self,
        caller: &Caller,
        arguments: &Object<'_>,
        params: &Object<'_>,
        line: &Bytes,
    ) -> Reply {
        let Some(name) = arguments.text("name").filter(|name| !name.trim().is_empty()) else {
            return Reply::tool_error("execute_tool needs the `name` of a tool, as search_tools shows it");
        };
        let limit = match arguments.get("timeout").map(|raw| raw.get().trim_matches('"')) {
            None | Some("null") => None,
            Some(text) => match text.parse::<f64>() {
                Ok(seconds) if TIMEOUTS.contains(&seconds) => Some(Duration::from_secs_f64(seconds)),
                _ => return Reply::tool_error("`timeout` must be a number of seconds from 0.1 to 3600"),
            },
        };
        let meta = params.get("_meta").and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
        let call = Call {
            name: &name,
            arguments: arguments.get("arguments"),
            line: Some(line),
            limit,
            meta: relayed_meta(&meta),
            progress: meta.get("progressToken").map(|token| progress_to(caller.outbox.clone(), token.get().to_owned())),
        };
        self.execute(call).await.unwrap_or_else(|failure| Reply::tool_error(failure.text()))
    }

    /// Calls a tool and returns its result as the server gave it.
    ///
    /// # Errors
    /// With the text for the agent, when there is no result.
    pub async fn execute(&self, call: Call<'_>) -> Result<Reply, Failure> {
        let tool = self.find(call.name).await?;
        let checked = self.check(&tool, call.arguments).await.map_err(Failure::Arguments)?;
        let (arguments, repairs) = match checked {
            Checked::AsSent(raw) => (raw.get(), Vec::new()),
            Checked::Repaired { ref arguments, ref repairs } => (arguments.get(), repairs.clone()),
        };
        if let Some(builtin) = builtin::Tool::of(&tool) {
            let raw: &RawValue = serde_json::from_str(arguments).expect("checked arguments are JSON");
            return Ok(self.builtin(builtin, &Object::parse(raw).unwrap_or_default()).await);
        }
        let name = tool.qualified_name();
        for repair in &repairs {
            tracing::info!(tool = %name, path = repair.path, repair = repair.what, "arguments repaired");
        }
        let limit = call.limit.or_else(|| self.pool.timeout_of(&name.server)).unwrap_or(self.config().call_timeout);
        let arguments = match call.line.filter(|line| line.as_ptr_range().contains(&arguments.as_ptr())) {
            Some(line) => line.slice_ref(arguments.as_bytes()),
            None => Bytes::copy_from_slice(arguments.as_bytes()),
        };
        let request = ToolCall { tool: &name.tool, arguments, meta: &call.meta, limit, progress: call.progress };
        match self.pool.call(&name.server, request, tool.entry().hints.is_repeatable()).await {
            Ok(upstream::Reply::Result(result)) if result.starts_with(b"{") => Ok(Reply::Relayed(result)),
            Ok(upstream::Reply::Result(_)) => {
                Err(Failure::Refused(refused_call(&name, "its result is not a JSON object", None)))
            }
            Ok(upstream::Reply::Error(error)) => {
                let raw: Option<&RawValue> = serde_json::from_slice(&error).ok();
                let object = raw.and_then(|raw| Object::parse(raw).ok()).unwrap_or_default();
                let data = object.get("data").map(RawValue::get);
                Err(Failure::Refused(self.masked(&refused_call(&name, &message_of(&error), data))))
            }
            Err(error) => Err(Failure::Unavailable(self.masked(&failed_call(&name, &error)))),
        }
    }

    /// Checks arguments against the tool's schema, and mends what has one meaning.
    async fn check<'a>(&self, tool: &Tool, arguments: Option<&'a RawValue>) -> Result<Checked<'a>, String> {
        let schema = match self.schemas.get(tool.entry().hash) {
            Some(schema) => schema,
            None => {
                let json = self.definition(tool);
                let compile = move || {
                    let definition = json.as_deref().and_then(|json| Definition::parse(json).ok());
                    Schema::compile(definition.and_then(|definition| definition.input_schema))
                };
                // A compilation that panics says nothing about the arguments.
                let schema = self.tasks.spawn_blocking(compile).await.unwrap_or_else(|_| Schema::compile(None));
                self.schemas.insert(tool.entry().hash, schema)
            }
        };
        schema.check(arguments).map_err(|faults| {
            let json = self.definition(tool);
            let definition = json.as_deref().and_then(|json| Definition::parse(json).ok());
            let signature = definition.map(|definition| Signature::of(tool.server().name(), &definition).to_string());
            unfit_arguments(&tool.qualified_name(), &faults, &signature.unwrap_or_default())
        })
    }

    /// A text without the secrets of the configuration.
    pub(super) fn masked(&self, text: &str) -> String {
        self.config().masker.mask(text).into_owned()
    }
}

/// Schemas by the hash of their tool.
#[derive(Debug, Default)]
pub(super) struct Schemas(Mutex<HashMap<ToolHash, Arc<Schema>>>);

impl Schemas {
    fn get(&self, hash: ToolHash) -> Option<Arc<Schema>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).cloned()
    }

    fn insert(&self, hash: ToolHash, schema: Schema) -> Arc<Schema> {
        let schema = Arc::new(schema);
        let mut schemas = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if schemas.len() >= MOST_SCHEMAS {
            // Any of them will do: they are compiled again in less time than a call takes.
            schemas.clear();
        }
        schemas.insert(hash, schema.clone());
        schema
    }
}

/// What of a request's `_meta` concerns the tool: all but what belongs to this hop.
fn relayed_meta(meta: &Object<'_>) -> String {
    let members = meta.members().iter().zip(meta.iter()).filter(|(_, (key, _))| {
        key != "progressToken"
            && !matches!(
                key.as_ref(),
                "io.modelcontextprotocol/protocolVersion"
                    | "io.modelcontextprotocol/clientInfo"
                    | "io.modelcontextprotocol/clientCapabilities"
                    | "io.modelcontextprotocol/logLevel"
            )
    });
    members.map(|((key, value), _)| format!("{key}:{value}")).collect::<Vec<_>>().join(",")
}

/// Passes progress on under the token that the client chose; everything else in it stays as it is.
fn progress_to(outbox: Outbox, token: String) -> ProgressSink {
    Arc::new(move |params: &RawValue| {
        let Ok(object) = Object::parse(params) else { return };
        let members: Vec<String> = object
            .members()
            .iter()
            .zip(object.iter())
            .map(
                |((key, value), (name, _))| {
                    if name == "progressToken" { format!("{key}:{token}") } else { format!("{key}:{value}") }
                },
            )
            .collect();
        outbox.offer(&Frame::notification("notifications/progress", &format!("{{{}}}", members.join(","))));
    })
}
