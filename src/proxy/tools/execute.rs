//! The meta-tool `execute_tool`.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::value::RawValue;

use super::Tools;
use super::call::{Call, CallOutcome, TaskWish};
use crate::catalog::Adapted;
use crate::executable;
use crate::mcp::Object;
use crate::mcp::object::quoted;
use crate::proxy::answers::answer::AnsweredCall;
use crate::proxy::answers::duplicate::repeats;
use crate::proxy::answers::projection::Selector;
use crate::proxy::arguments::Repair;
use crate::proxy::relay::consent::Agreement;
use crate::proxy::view::View;
use crate::proxy::{Caller, Failure, Reply, RequestContext};

/// The range of a caller's `timeout`, in seconds.
const TIMEOUTS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// The name for requests that name no tool.
const EXECUTE: &str = "execute_tool";

/// The maximum number of calls in one request.
const MOST_CALLS: usize = 32;

/// The answer to a request with another number of calls.
const NO_CALLS: &str = "`calls` must be an array of 1 to 32 objects, each with a `name`";

/// The answer to a call with a filter that no process of mcpzip can run.
const NO_FILTERS: &str = "`select` cannot be used here, so nothing was called: call without it";

/// The key in a result's `_meta` for the repairs of arguments.
const REPAIRS: &str = "mcpzip/repairs";

/// The data that the calls of one request share.
struct BatchContext<'a> {
    line: &'a Bytes,
    limit: Option<Duration>,
    context: RequestContext,
    /// Whether only tools that declare to be read-only may be called.
    is_read_only: bool,
    /// Whether the request makes one call.
    is_alone: bool,
}

impl Tools {
    /// Runs the meta-tool: calls a tool, `{name, arguments?, select?, timeout?}`, or several, `{calls: [{name, arguments?,
    /// select?}]}`.
    pub(in crate::proxy) async fn execute_tool(
        &self,
        view: &View,
        caller: &Caller,
        arguments: &Object<'_>,
        params: &Object<'_>,
        line: &Bytes,
    ) -> Reply {
        let context = RequestContext::of(caller, view, params);
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
                    return self.unreadable(
                        &context,
                        &called_name(arguments),
                        "`timeout` must be a number of seconds from 0.1 to 3600",
                    );
                }
            },
        };
        match arguments.get("calls").filter(|raw| raw.get() != "null") {
            Some(calls) => {
                Box::pin(self.execute_all(
                    calls,
                    &BatchContext {
                        line,
                        limit,
                        context: context.in_company(),
                        is_read_only: false,
                        is_alone: false,
                    },
                ))
                .await
            }
            None => {
                self.call_shaped(
                    arguments,
                    &BatchContext {
                        line,
                        limit,
                        context,
                        is_read_only: false,
                        is_alone: true,
                    },
                )
                .await
            }
        }
    }

    /// Runs the meta-tool that calls a tool only if it declares to be read-only: `{name, arguments?, select?}`.
    pub(in crate::proxy) async fn execute_read_tool(
        &self,
        view: &View,
        caller: &Caller,
        arguments: &Object<'_>,
        params: &Object<'_>,
        line: &Bytes,
    ) -> Reply {
        let context = RequestContext::of(caller, view, params);
        let more = [
            (
                "calls",
                "execute_read_tool makes one call and takes no `calls`: use execute_tool for that",
            ),
            (
                "timeout",
                "execute_read_tool makes one call and takes no `timeout`: use execute_tool for that",
            ),
        ];
        let more = more.into_iter().find(|(key, _)| {
            let given = arguments.get(key);
            given.is_some_and(|raw| raw.get() != "null")
        });
        if let Some((_, reason)) = more {
            return self.unreadable(&context, &called_name(arguments), reason);
        }
        let shared = BatchContext {
            line,
            limit: None,
            context,
            is_read_only: true,
            is_alone: true,
        };
        self.call_shaped(arguments, &shared).await
    }

    /// [`Self::call_audited`] for an agent: reads the call, and selects from, shortens or stores its result.
    async fn call_shaped(&self, call: &Object<'_>, shared: &BatchContext<'_>) -> Reply {
        let Some(name) = call.text("name").filter(|name| !name.trim().is_empty()) else {
            return Reply::tool_error(
                "execute_tool needs the `name` of a tool, as search_tools shows it",
            );
        };
        let select = call
            .text("select")
            .filter(|filter| !filter.trim().is_empty());
        let arguments = match arguments_of(call).and_then(|arguments| {
            let is_text = |raw: &RawValue| raw.get().starts_with('"') || raw.get() == "null";
            let is_filter = call.get("select").is_none_or(is_text);
            is_filter
                .then_some(arguments)
                .ok_or("`select` must be a jq filter, as a string")
        }) {
            Ok(arguments) => arguments,
            Err(reason) => return self.unreadable(&shared.context, &name, reason),
        };
        if select.is_some() && !executable::is_mcpzip() {
            return self.unreadable(&shared.context, &name, NO_FILTERS);
        }
        let call = Call {
            name: &name,
            arguments,
            line: Some(shared.line),
            limit: shared.limit,
            view: &shared.context.view,
            context: Some(&shared.context),
            agreement: Agreement::Missing,
            is_read_only: shared.is_read_only,
            task: Some(TaskWish {
                select: select.as_deref(),
                is_direct: false,
            }),
        };
        let CallOutcome {
            tool,
            reply,
            repairs,
        } = match self.call_audited(call).await {
            Ok(outcome) => outcome,
            Err(failure) if shared.is_alone => return failure.reply(&shared.context.view),
            Err(failure) => return Reply::tool_error(&failure.text(&shared.context.view)),
        };
        let reply = match (reply, &tool) {
            (Reply::Relayed(result), Some(tool)) => {
                let adapted = tool.adapted();
                let asked = AnsweredCall {
                    name: &tool.own_name(),
                    select: (select.as_deref().map(Selector::Agent))
                        .or_else(|| adapted?.select().map(Selector::User)),
                    budget: adapted.and_then(Adapted::budget),
                    form: adapted.and_then(Adapted::form),
                    caller: &shared.context.caller,
                    view: &shared.context.view,
                };
                self.answers.answer(result, &asked).await
            }
            (reply, _) => reply,
        };
        let caller = &shared.context.caller;
        let reply = match &tool {
            Some(tool) => self.with_loss(caller, tool.server().name(), reply),
            None => reply,
        };
        if repairs.is_empty() {
            reply
        } else {
            reply.with_meta(REPAIRS, &listed(&repairs))
        }
    }

    /// Refuses a request that cannot be read as a call, with a line in the audit log.
    fn unreadable(&self, context: &RequestContext, name: &str, reason: &'static str) -> Reply {
        let failure = Failure::Unreadable { reason };
        let refused = self.refused(&context.view, Some(&context.caller), name, failure);
        Reply::tool_error(&refused.text(&context.view))
    }

    /// Makes several calls in parallel; one answer has the results in order, each under a line with the tool's name.
    async fn execute_all(&self, calls: &RawValue, shared: &BatchContext<'_>) -> Reply {
        let calls: Result<Vec<&RawValue>, _> = serde_json::from_str(calls.get());
        let calls: Option<Vec<Object<'_>>> = calls.ok().and_then(|calls| {
            calls
                .into_iter()
                .map(|raw| Object::parse(raw).ok())
                .collect()
        });
        let Some(calls) = calls.filter(|calls| (1..=MOST_CALLS).contains(&calls.len())) else {
            return self.unreadable(&shared.context, EXECUTE, NO_CALLS);
        };
        let replies = join_all(calls.iter().map(|call| self.call_shaped(call, shared))).await;
        let names = calls
            .iter()
            .map(|call| call.text("name").unwrap_or_default());
        together(names.zip(replies))
    }
}

/// The tool that a request names, or the meta-tool if it names none.
fn called_name(arguments: &Object<'_>) -> String {
    let name = arguments.text("name");
    let name = name.filter(|name| !name.trim().is_empty());
    name.unwrap_or_else(|| EXECUTE.to_owned())
}

/// The arguments of a call; `args` is an alias of `arguments`.
fn arguments_of<'a>(call: &Object<'a>) -> Result<Option<&'a RawValue>, &'static str> {
    let given = |key: &str| call.get(key).filter(|raw| raw.get() != "null");
    match (given("arguments"), given("args")) {
        (Some(_), Some(_)) => Err("give either `arguments` or `args`, not both"),
        (arguments, args) => Ok(arguments.or(args)),
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

/// Combines several results: the content of each in its own bytes, under a text block that names the call. Structured
/// content follows as text, unless the content equals it. `_meta` has a list of repairs for each call.
fn together(replies: impl Iterator<Item = (String, Reply)>) -> Reply {
    let (mut blocks, mut failed, mut count) = (Vec::new(), 0, 0);
    let mut repairs: Vec<String> = Vec::new();
    for (name, reply) in replies {
        let body = match reply {
            Reply::Result(body) | Reply::Relayed(body) => body.into_bytes(),
            Reply::RelayedError(body) => error_as_result(&body),
            Reply::Error { message, .. } => tool_error(&message),
            // No tool call ends like that.
            Reply::RelayedContent(_) | Reply::Task(_) | Reply::Ended { .. } => {
                tool_error("the call has no result")
            }
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

/// A server's JSON-RPC error as a result, since one of several calls cannot end with an error of its own.
fn error_as_result(error: &[u8]) -> Bytes {
    let raw: Option<&RawValue> = serde_json::from_slice(error).ok();
    let object = raw
        .and_then(|raw| Object::parse(raw).ok())
        .unwrap_or_default();
    let message = object.text("message").unwrap_or_default();
    tool_error(&format!("{message}; call this tool alone"))
}

fn tool_error(message: &str) -> Bytes {
    format!(r#"{{"content":[{}],"isError":true}}"#, text_block(message)).into()
}

fn text_block(text: &str) -> String {
    format!(r#"{{"type":"text","text":{}}}"#, quoted(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::RawResult;

    #[test]
    fn results_stand_in_order_each_with_its_own_error() {
        let relayed = RawResult::from(
            r#"{"content":[{"type":"new","n":1e400},{"type":"text","text":"{ }"}],"structuredContent":{}}"#,
        );
        let structured = RawResult::from(r#"{"structuredContent":[1]}"#);
        let replies = [
            ("a".to_owned(), Reply::Relayed(relayed)),
            ("b".to_owned(), Reply::tool_error("no")),
            ("c".to_owned(), Reply::Relayed(structured)),
        ];
        let Reply::Result(body) = together(replies.into_iter()) else {
            panic!("no result")
        };
        assert_eq!(
            String::from_utf8_lossy(&body),
            concat!(
                r#"{"content":[{"type":"text","text":"[1] a"},{"type":"new","n":1e400},{"type":"text","text":"{ }"},"#,
                r#"{"type":"text","text":"[2] b failed"},{"type":"text","text":"no"},"#,
                r#"{"type":"text","text":"[3] c"},{"type":"text","text":"[1]"}]}"#
            )
        );
    }

    #[test]
    fn each_of_several_calls_has_its_number_also_one_that_ends_with_an_error() {
        let done = r#"{"content":[{"type":"text","text":"done"}]}"#;
        let error = r#"{"code":-32042,"message":"a login is needed","data":{}}"#;
        let replies = [
            ("a__x".to_owned(), Reply::RelayedError(error.into())),
            ("a__y".to_owned(), Reply::Relayed(done.into())),
        ];
        let Reply::Result(body) = together(replies.into_iter()) else {
            panic!("no result")
        };
        let text = String::from_utf8_lossy(&body).into_owned();
        let expected = [
            "[1] a__x failed",
            "a login is needed; call this tool alone",
            "[2] a__y",
            "done",
        ];
        assert!(expected.iter().all(|part| text.contains(part)), "{text}");
        assert!(!text.contains("isError"), "{text}");
    }
}
