use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::value::RawValue;

use super::Tools;
use super::builtin;
use crate::catalog::Tool;
use crate::mcp::object::quoted;
use crate::mcp::{Frame, Object};
use crate::proxy::answers::answer::Asked;
use crate::proxy::answers::duplicate::repeats;
use crate::proxy::answers::error::{failed_call, refused_call, unfit_arguments};
use crate::proxy::arguments::{Checked, Repair, Schema};
use crate::proxy::relay::Relayed;
use crate::proxy::relay::consent::{Consent, wants_consent};
use crate::proxy::view::View;
use crate::proxy::{Caller, Failure, Reply, RequestContext};
use crate::tool::{Definition, QualifiedName, Signature, ToolHash};
use crate::upstream::{self, message_of};

/// The bounds of a caller's `timeout`, in seconds.
const TIMEOUTS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// Compiled schemas that are kept.
const MOST_SCHEMAS: usize = 512;

/// Calls that one request may hold.
const MOST_CALLS: usize = 32;

/// Where the `_meta` of a result says which arguments were repaired, and how.
const REPAIRS: &str = "mcpzip/repairs";

/// A call that has a reply.
struct Ran {
    /// The tool; none where that is not known before the client has answered a question.
    name: Option<QualifiedName>,
    reply: Reply,
    repairs: Vec<Repair>,
}

/// What the calls of one request share.
struct Shared<'a> {
    line: &'a Bytes,
    limit: Option<Duration>,
    context: RequestContext,
}

/// A call as the agent put it.
pub(crate) struct Call<'a> {
    /// The tool, however it is written.
    pub name: &'a str,
    /// Its arguments.
    pub arguments: Option<&'a RawValue>,
    /// What `arguments` is a part of, so that they need not be copied.
    pub line: Option<&'a Bytes>,
    /// The time it may take, if not the configured one.
    pub limit: Option<Duration>,
    /// What the caller may see.
    pub view: &'a View,
    /// The request it is made in, if there is one.
    pub context: Option<&'a RequestContext>,
    /// The user, who calls in person, has agreed to this very call.
    pub is_agreed: bool,
}

impl Tools {
    /// Calls a tool, `{name, arguments?, select?, timeout?}`, or several, `{calls: [{name, arguments?, select?}]}`.
    pub(in crate::proxy) async fn execute_tool(
        &self,
        view: &View,
        caller: &Caller,
        arguments: &Object<'_>,
        params: &Object<'_>,
        line: &Bytes,
    ) -> Reply {
        let limit = match arguments
            .get("timeout")
            .map(|raw| raw.get().trim_matches('"'))
        {
            None | Some("null") => None,
            Some(text) => match text.parse::<f64>() {
                Ok(seconds) if TIMEOUTS.contains(&seconds) => {
                    Some(Duration::from_secs_f64(seconds))
                }
                _ => {
                    return Reply::tool_error(
                        "`timeout` must be a number of seconds from 0.1 to 3600",
                    );
                }
            },
        };
        let context = RequestContext::of(caller, view, params);
        match arguments.get("calls").filter(|raw| raw.get() != "null") {
            Some(calls) => {
                Box::pin(self.execute_all(
                    calls,
                    &Shared {
                        line,
                        limit,
                        context: context.in_company(),
                    },
                ))
                .await
            }
            None => {
                self.execute_one(
                    arguments,
                    &Shared {
                        line,
                        limit,
                        context,
                    },
                )
                .await
            }
        }
    }

    async fn execute_one(&self, call: &Object<'_>, shared: &Shared<'_>) -> Reply {
        let Some(name) = call.text("name").filter(|name| !name.trim().is_empty()) else {
            return Reply::tool_error(
                "execute_tool needs the `name` of a tool, as search_tools shows it",
            );
        };
        let select = call
            .text("select")
            .filter(|filter| !filter.trim().is_empty());
        let call = Call {
            name: &name,
            arguments: call.get("arguments"),
            line: Some(shared.line),
            limit: shared.limit,
            view: &shared.context.view,
            context: Some(&shared.context),
            is_agreed: false,
        };
        let Ran {
            name,
            reply,
            repairs,
        } = match self.run(call).await {
            Ok(ran) => ran,
            Err(failure) => return Reply::tool_error(failure.text()),
        };
        let reply = match (reply, &name) {
            (Reply::Relayed(result), Some(name)) => {
                let asked = Asked {
                    name,
                    select: select.as_deref(),
                    caller: &shared.context.caller,
                    view: &shared.context.view,
                };
                self.answers.answer(result, &asked).await
            }
            (reply, _) => reply,
        };
        if repairs.is_empty() {
            reply
        } else {
            reply.with_meta(REPAIRS, &listed(&repairs))
        }
    }

    /// Several calls side by side; one answer with the results in order, each under a line that names it.
    async fn execute_all(&self, calls: &RawValue, shared: &Shared<'_>) -> Reply {
        let calls: Result<Vec<&RawValue>, _> = serde_json::from_str(calls.get());
        let calls: Option<Vec<Object<'_>>> = calls.ok().and_then(|calls| {
            calls
                .into_iter()
                .map(|raw| Object::parse(raw).ok())
                .collect()
        });
        let Some(calls) = calls.filter(|calls| (1..=MOST_CALLS).contains(&calls.len())) else {
            return Reply::tool_error(&format!(
                "`calls` must be an array of 1 to {MOST_CALLS} objects, each with a `name`"
            ));
        };
        let replies = join_all(calls.iter().map(|call| self.execute_one(call, shared))).await;
        let names = calls
            .iter()
            .map(|call| call.text("name").unwrap_or_default());
        together(names.zip(replies))
    }

    /// Calls a tool and returns its result as the server gave it.
    ///
    /// # Errors
    /// With the text for the agent, when there is no result.
    pub(crate) async fn execute(&self, call: Call<'_>) -> Result<Reply, Failure> {
        self.run(call).await.map(|ran| ran.reply)
    }

    async fn run(&self, call: Call<'_>) -> Result<Ran, Failure> {
        let view = call.view;
        let tool = match self.known_tool(view, call.name) {
            Some(tool) => tool,
            None => {
                match Box::pin(self.find_logged_in(view, call.name, call.limit, call.context))
                    .await?
                {
                    Ok(tool) => tool,
                    Err(question) => {
                        return Ok(Ran {
                            name: None,
                            reply: question,
                            repairs: Vec::new(),
                        });
                    }
                }
            }
        };
        let schema = match self.schemas.get(tool.entry().hash) {
            Some(schema) => schema,
            None => Box::pin(self.compiled(&tool)).await,
        };
        let checked = self
            .check(&schema, &tool, call.arguments)
            .map_err(Failure::Arguments)?;
        let (arguments, repairs) = match checked {
            Checked::AsSent(raw) => (raw.get(), Vec::new()),
            Checked::Repaired {
                ref arguments,
                ref repairs,
            } => (arguments.get(), repairs.clone()),
        };
        let name = tool.qualified_name();
        let written = arguments;
        let consent = if call.is_agreed || !wants_consent(view, &name, &tool) {
            Consent::Needless
        } else {
            Box::pin(self.relay.consent(view, &tool, written, call.context)).await?
        };
        let context = match &consent {
            Consent::Needless => call.context,
            Consent::Given(context) => Some(context),
            Consent::Asked(reply) => {
                return Ok(Ran {
                    name: Some(name),
                    reply: reply.clone(),
                    repairs,
                });
            }
        };
        if let Some(builtin) = builtin::Tool::of(&tool) {
            let raw: &RawValue =
                serde_json::from_str(arguments).expect("checked arguments are JSON");
            let caller = context.map(|context| &context.caller);
            let reply = Box::pin(self.builtin.run(
                view,
                builtin,
                &Object::parse(raw).unwrap_or_default(),
                caller,
            ))
            .await;
            return Ok(Ran {
                name: Some(name),
                reply,
                repairs,
            });
        }
        for repair in &repairs {
            tracing::info!(tool = %name, path = repair.path, repair = repair.what, "arguments repaired");
        }
        let limit = call
            .limit
            .unwrap_or_else(|| self.relay.limit(view, &name.server));
        let arguments = match call
            .line
            .filter(|line| line.as_ptr_range().contains(&arguments.as_ptr()))
        {
            Some(line) => line.slice_ref(arguments.as_bytes()),
            None => Bytes::copy_from_slice(arguments.as_bytes()),
        };
        let relayed = Relayed {
            method: "tools/call",
            name: Some(name.tool.as_str()),
            params: Frame {
                head: format!(r#"{{"name":{},"arguments":"#, quoted(name.tool.as_str()))
                    .into_bytes(),
                body: arguments,
                tail: Vec::new(),
            },
            limit,
            is_repeatable: tool.entry().hints.is_repeatable(),
        };
        let (sent, start) = (relayed.params.body.len(), Instant::now());
        let answered = self.relay.request(&name.server, relayed, context).await;
        if let (Consent::Given(_), Ok(reply)) = (&consent, &answered) {
            self.relay.agreed(&name, written, reply);
        }
        let result = match &answered {
            Ok(upstream::ServerReply::Result(result)) => Some(&result[..]),
            _ => None,
        };
        self.answers
            .count_call(&name, start.elapsed(), sent, result);
        match answered {
            Ok(upstream::ServerReply::Result(result)) if result.starts_with(b"{") => Ok(Ran {
                name: Some(name),
                reply: Reply::Relayed(result),
                repairs,
            }),
            Ok(upstream::ServerReply::Result(_)) => Err(Failure::Refused(refused_call(
                &name,
                "its result is not a JSON object",
                None,
            ))),
            Ok(upstream::ServerReply::Error(error))
                if context.is_some_and(|context| context.concerns_client(&error)) =>
            {
                Ok(Ran {
                    name: Some(name),
                    reply: Reply::RelayedError(error),
                    repairs,
                })
            }
            Ok(upstream::ServerReply::Error(error)) => {
                let raw: Option<&RawValue> = serde_json::from_slice(&error).ok();
                let object = raw
                    .and_then(|raw| Object::parse(raw).ok())
                    .unwrap_or_default();
                let data = object.get("data").map(RawValue::get);
                Err(Failure::Refused(view.masked(&refused_call(
                    &name,
                    &message_of(&error),
                    data,
                ))))
            }
            Err(error) => Err(Failure::Unavailable(
                view.masked(&failed_call(&name, &error)),
            )),
        }
    }

    /// The schema of a tool that is called for the first time.
    async fn compiled(&self, tool: &Tool) -> Arc<Schema> {
        let json = self.inventory.definition(tool);
        let compile = move || {
            let definition = json
                .as_deref()
                .and_then(|json| Definition::parse(json).ok());
            Schema::compile(definition.and_then(|definition| definition.input_schema))
        };
        // A compilation that panics says nothing about the arguments.
        let schema = self
            .tasks
            .spawn_blocking(compile)
            .await
            .unwrap_or_else(|_| Schema::compile(None));
        self.schemas.insert(tool.entry().hash, schema)
    }

    /// Checks arguments against the tool's schema, and mends what has one meaning.
    fn check<'a>(
        &self,
        schema: &Schema,
        tool: &Tool,
        arguments: Option<&'a RawValue>,
    ) -> Result<Checked<'a>, String> {
        schema.check(arguments).map_err(|faults| {
            let json = self.inventory.definition(tool);
            let definition = json
                .as_deref()
                .and_then(|json| Definition::parse(json).ok());
            let signature = definition
                .map(|definition| Signature::of(tool.server().name(), &definition).to_string());
            unfit_arguments(
                &tool.qualified_name(),
                &faults,
                &signature.unwrap_or_default(),
            )
        })
    }
}

/// Schemas by the hash of their tool.
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
            // Any of them will do: they are compiled again in less time than a call takes.
            schemas.clear();
        }
        schemas.insert(hash, schema.clone());
        schema
    }
}

/// Repairs as JSON.
fn listed(repairs: &[Repair]) -> String {
    let repairs = repairs.iter().map(|repair| {
        format!(
            r#"{{"path":{},"what":{}}}"#,
            quoted(&repair.path),
            quoted(&repair.what)
        )
    });
    format!("[{}]", repairs.collect::<Vec<_>>().join(","))
}

/// One result of several: the content of each in its own bytes, under a text block that names the call. Structured
/// content follows as text where the content does not say the same. What was repaired stands in `_meta`, a list for each call.
fn together(replies: impl Iterator<Item = (String, Reply)>) -> Reply {
    let (mut blocks, mut failed, mut count) = (Vec::new(), 0, 0);
    let mut repairs: Vec<String> = Vec::new();
    for (name, reply) in replies {
        let (Reply::Result(body) | Reply::Relayed(body)) = reply else {
            continue;
        };
        let raw: &RawValue = serde_json::from_slice(&body).expect("a result is JSON");
        let result = Object::parse(raw).unwrap_or_default();
        let is_error = result.get("isError").is_some_and(|raw| raw.get() == "true");
        count += 1;
        failed += usize::from(is_error);
        let mark = if is_error { " failed" } else { "" };
        blocks.push(text_block(&format!("[{count}] {name}{mark}")));
        let content = result
            .get("content")
            .and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
        let content = content.unwrap_or_default();
        blocks.extend(content.iter().map(ToString::to_string));
        let structured = result
            .get("structuredContent")
            .filter(|raw| raw.get() != "null");
        if let Some(structured) =
            structured.filter(|structured| !content.iter().any(|block| repeats(block, structured)))
        {
            blocks.push(text_block(structured.get()));
        }
        let meta = result.get("_meta").and_then(|raw| Object::parse(raw).ok());
        repairs.push(
            meta.and_then(|meta| meta.get(REPAIRS))
                .map_or("[]", RawValue::get)
                .to_owned(),
        );
    }
    let error = if failed == count {
        r#","isError":true"#
    } else {
        ""
    };
    let reply = Reply::Result(format!(r#"{{"content":[{}]{error}}}"#, blocks.join(",")).into());
    let is_repaired = repairs.iter().any(|repairs| repairs != "[]");
    if is_repaired {
        reply.with_meta(REPAIRS, &format!("[{}]", repairs.join(",")))
    } else {
        reply
    }
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_stand_in_order_each_with_its_own_error() {
        let relayed = Bytes::from_static(
            br#"{"content":[{"type":"new","n":1e400},{"type":"text","text":"{ }"}],"structuredContent":{}}"#,
        );
        let structured = Bytes::from_static(br#"{"structuredContent":[1]}"#);
        let replies = [
            ("a".to_owned(), Reply::Relayed(relayed)),
            ("b".to_owned(), Reply::tool_error("no")),
            ("c".to_owned(), Reply::Relayed(structured)),
        ];
        let Reply::Result(body) = together(replies.into_iter()) else {
            panic!("no result")
        };
        assert_eq!(
            body,
            concat!(
                r#"{"content":[{"type":"text","text":"[1] a"},{"type":"new","n":1e400},{"type":"text","text":"{ }"},"#,
                r#"{"type":"text","text":"[2] b failed"},{"type":"text","text":"no"},"#,
                r#"{"type":"text","text":"[3] c"},{"type":"text","text":"[1]"}]}"#
            )
        );
    }
}
