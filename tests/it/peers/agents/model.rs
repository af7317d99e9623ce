//! A stand-in for the models of agents. It plays a fixed list of calls over the protocols of three vendors.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::http::{HttpServer, Reply, Request};

/// A model does not wait longer for the others.
const PATIENCE: Duration = Duration::from_secs(90);

/// The words that end a task.
pub(super) const DONE: &str = "FINAL: the task is done.";

/// Tool calls, in order; the number is how many results every agent must have before the call is made.
pub(super) type Script = Vec<(usize, &'static str, Value)>;

/// The number of results that each agent has, and its last request.
type Agents = BTreeMap<&'static str, (usize, String)>;

/// How far the agents are, and whether they may end.
#[derive(Debug, Default)]
pub(super) struct Progress {
    agents: Mutex<(Agents, bool)>,
    changed: Condvar,
}

impl Progress {
    /// The agents that have at least so many results.
    pub(super) fn with(&self, results: usize) -> usize {
        let agents = self.agents.lock().unwrap();
        let far = agents.0.values().filter(|agent| agent.0 >= results);
        far.count()
    }

    /// The last request of each agent.
    pub(super) fn requests(&self) -> BTreeMap<&'static str, String> {
        let agents = self.agents.lock().unwrap();
        let requests = agents.0.iter();
        requests
            .map(|(agent, (_, request))| (*agent, request.clone()))
            .collect()
    }

    /// Lets all agents end.
    pub(super) fn release(&self) {
        self.agents.lock().unwrap().1 = true;
        self.changed.notify_all();
    }

    fn note(&self, agent: &'static str, results: usize, request: &str) {
        let mut agents = self.agents.lock().unwrap();
        agents.0.insert(agent, (results, request.to_owned()));
        self.changed.notify_all();
    }

    fn wait(&self, is_over: impl Fn(&Agents, bool) -> bool) {
        let agents = self.agents.lock().unwrap();
        let wait = |agents: &mut (Agents, bool)| !is_over(&agents.0, agents.1);
        drop(self.changed.wait_timeout_while(agents, PATIENCE, wait));
    }
}

/// Whether a request is a step of the task, and not about a title or which model to take.
pub(super) fn is_of_task(request: &Request) -> bool {
    let wants_json = request.body["generationConfig"]["responseMimeType"].is_string();
    Protocol::of(request).is_some() && !names(&request.body["tools"]).is_empty() && !wants_json
}

/// Starts the model of `agent`, one of `count`. After the last call it waits for the release.
pub(super) fn start(
    agent: &'static str,
    count: usize,
    script: Script,
    progress: &Arc<Progress>,
) -> HttpServer {
    let progress = progress.clone();
    HttpServer::start(move |request, reply| {
        let Some(protocol) = Protocol::of(request) else {
            let none = json!({ "object": "list", "data": [], "models": [] });
            return reply.json(&none.to_string());
        };
        let tools = names(&request.body["tools"]);
        if !is_of_task(request) {
            // A title, or which model to take.
            return protocol.answer(request, reply, "{}", None);
        }
        let results = results(&request.body);
        progress.note(agent, results, &request.text);
        let Some((needed, name, arguments)) = script.get(results) else {
            progress.wait(|_, is_released| is_released);
            return protocol.answer(request, reply, DONE, None);
        };
        progress.wait(|agents, _| agents.values().filter(|had| had.0 >= *needed).count() == count);
        let tool = tools.iter().find(|(_, tool)| tool.ends_with(name));
        let Some((namespace, tool)) = tool else {
            return protocol.answer(request, reply, &format!("no {name} in {tools:?}"), None);
        };
        let call = Call {
            id: format!("call_{agent}_{results}"),
            namespace: namespace.clone(),
            tool: tool.clone(),
            arguments: arguments.clone(),
        };
        protocol.answer(request, reply, "", Some(&call));
    })
}

/// A tool call of the model.
struct Call {
    id: String,
    namespace: Option<String>,
    tool: String,
    arguments: Value,
}

#[derive(Clone, Copy)]
enum Protocol {
    Messages,
    Responses,
    Completions,
    Gemini,
}

impl Protocol {
    fn of(request: &Request) -> Option<Self> {
        let path = request.path.split('?').next()?;
        match path {
            _ if path.ends_with("/messages") => Some(Self::Messages),
            _ if path.ends_with("/responses") => Some(Self::Responses),
            _ if path.ends_with("/chat/completions") => Some(Self::Completions),
            _ if path.contains("enerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    /// Answers with words, or with a call.
    fn answer(self, request: &Request, reply: &mut Reply, words: &str, call: Option<&Call>) {
        let is_stream =
            request.body["stream"] == true || request.path.contains("streamGenerateContent");
        let (whole, events) = match self {
            Self::Messages => messages(words, call),
            Self::Responses => responses(words, call),
            Self::Completions => completions(words, call),
            Self::Gemini => gemini(words, call),
        };
        if !is_stream {
            return reply.json(&whole.to_string());
        }
        reply.events("");
        for event in events {
            let name = event["type"]
                .as_str()
                .map(|name| format!("event: {name}\n"));
            let data = format!("{}data: {event}\n\n", name.unwrap_or_default());
            reply.raw(data.as_bytes());
        }
        if matches!(self, Self::Completions) {
            reply.raw(b"data: [DONE]\n\n");
        }
        reply.vanish();
    }
}

/// The tools of a request, with the namespace that Codex gives them.
fn names(tools: &Value) -> Vec<(Option<String>, String)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut found = Vec::new();
    for tool in tools.as_array().into_iter().flatten() {
        let declared = tool["functionDeclarations"].as_array();
        let nested = tool["tools"].as_array();
        match (declared, nested) {
            (Some(tools), _) => found.extend(tools.iter().map(|tool| (None, text(&tool["name"])))),
            (_, Some(tools)) => {
                let namespace = text(&tool["name"]);
                found.extend(
                    tools
                        .iter()
                        .map(|tool| (namespace.clone(), text(&tool["name"]))),
                );
            }
            _ => found.push((
                None,
                text(&tool["name"]).or_else(|| text(&tool["function"]["name"])),
            )),
        }
    }
    let named = found.into_iter();
    named
        .filter_map(|(namespace, name)| Some((namespace, name?)))
        .collect()
}

/// The number of results of tools in the conversation.
fn results(value: &Value) -> usize {
    match value {
        Value::Array(values) => values.iter().map(results).sum(),
        Value::Object(members) => {
            let is_result = value["type"] == "tool_result"
                || value["type"] == "function_call_output"
                || value["role"] == "tool"
                || value["functionResponse"].is_object();
            match is_result {
                true => 1,
                false => members.values().map(results).sum(),
            }
        }
        _ => 0,
    }
}

fn messages(words: &str, call: Option<&Call>) -> (Value, Vec<Value>) {
    let usage = json!({ "input_tokens": 10, "output_tokens": 10 });
    let (block, start, delta, reason) = match call {
        None => (
            json!({ "type": "text", "text": words }),
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": words }),
            "end_turn",
        ),
        Some(call) => (
            json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments }),
            json!({ "type": "tool_use", "id": call.id, "name": call.tool, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": call.arguments.to_string() }),
            "tool_use",
        ),
    };
    let mut message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "mock", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let events = vec![
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": start }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null }, "usage": usage }),
        json!({ "type": "message_stop" }),
    ];
    message["content"] = json!([block]);
    message["stop_reason"] = json!(reason);
    (message, events)
}

fn responses(words: &str, call: Option<&Call>) -> (Value, Vec<Value>) {
    let mut item = match call {
        None => {
            let content = json!([{ "type": "output_text", "text": words, "annotations": [] }]);
            json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content })
        }
        Some(call) => json!({
            "type": "function_call", "id": "fc_1", "call_id": call.id, "name": call.tool,
            "arguments": call.arguments.to_string(), "status": "completed",
        }),
    };
    if let Some(namespace) = call.and_then(|call| call.namespace.as_ref()) {
        item["namespace"] = json!(namespace);
    }
    let usage = json!({ "input_tokens": 10, "output_tokens": 10, "total_tokens": 20 });
    let response = json!({ "id": "resp_1", "object": "response", "status": "completed", "model": "mock", "output": [item], "usage": usage });
    let events = vec![
        json!({ "type": "response.created", "response": { "id": "resp_1", "object": "response", "status": "in_progress", "output": [] } }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": response }),
    ];
    (response, events)
}

fn completions(words: &str, call: Option<&Call>) -> (Value, Vec<Value>) {
    let mut message = json!({ "role": "assistant", "content": words });
    if let Some(call) = call {
        let function = json!({ "name": call.tool, "arguments": call.arguments.to_string() });
        message["tool_calls"] =
            json!([{ "index": 0, "id": call.id, "type": "function", "function": function }]);
    }
    let reason = if call.is_some() { "tool_calls" } else { "stop" };
    let of = |kind: &str, choice: &Value| {
        let usage = json!({ "prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20 });
        json!({ "id": "chatcmpl-1", "object": kind, "created": 1, "model": "mock", "choices": [choice], "usage": usage })
    };
    let part = |delta: &Value, reason: Option<&str>| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        of("chat.completion.chunk", &choice)
    };
    let whole = json!({ "index": 0, "message": message, "finish_reason": reason });
    let events = vec![part(&message, None), part(&json!({}), Some(reason))];
    (of("chat.completion", &whole), events)
}

fn gemini(words: &str, call: Option<&Call>) -> (Value, Vec<Value>) {
    let part = match call {
        None => json!({ "text": words }),
        Some(call) => json!({ "functionCall": { "name": call.tool, "args": call.arguments } }),
    };
    let content = json!({ "role": "model", "parts": [part] });
    let usage =
        json!({ "promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20 });
    let answer = json!({
        "candidates": [{ "index": 0, "finishReason": "STOP", "content": content }],
        "usageMetadata": usage, "modelVersion": "mock",
    });
    (answer.clone(), vec![answer])
}
