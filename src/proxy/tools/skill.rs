//! A call of a tool that stands for a skill of a server: reads a file of the skill, compares it with what was listed, and gives it as content.
//!
//! Only files of the list are read, and only when an agent asks for one.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Tools;
use crate::catalog::Tool;
use crate::mcp::object::quoted;
use crate::mcp::{Frame, Object};
use crate::proxy::RequestContext;
use crate::proxy::relay::Relayed;
use crate::proxy::skill::{INSTRUCTIONS, Skill};
use crate::tool::ToolHash;
use crate::upstream::{CallError, ServerReply, skill_of_definition};

/// The skills whose instructions were not those that their server listed, with the hash of that entry. The other files of such a skill
/// are not given either, until its instructions are right or the entry is another.
#[derive(Debug, Default)]
pub(super) struct RefusedSkills(Mutex<BTreeMap<String, ToolHash>>);

impl RefusedSkills {
    fn has(&self, tool: &Tool) -> bool {
        let known = self.0.lock();
        known.get(&tool.qualified_name().to_string()) == Some(&tool.entry().hash)
    }

    fn note(&self, tool: &Tool, is_refused: bool) {
        let (name, mut known) = (tool.qualified_name().to_string(), self.0.lock());
        match is_refused {
            true => drop(known.insert(name, tool.entry().hash)),
            false => drop(known.remove(&name)),
        }
    }
}

impl Tools {
    /// Sends a call to its server: reads a skill, or calls a tool.
    pub(super) async fn send(
        &self,
        tool: &Tool,
        relayed: Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<ServerReply, CallError> {
        if !tool.entry().is_skill {
            return self.relay.call(tool, relayed, context).await;
        }
        let arguments: Option<&RawValue> = serde_json::from_slice(&relayed.params.body).ok();
        let arguments = arguments.and_then(|raw| Object::parse(raw).ok());
        let file = arguments.and_then(|arguments| arguments.text("file"));
        let read = Box::pin(self.read_skill(tool, file.as_deref(), &relayed, context));
        Ok(match read.await? {
            Ok(content) => ServerReply::Result(json!({ "content": content }).to_string().into()),
            Err(problem) => {
                let content = json!([{ "type": "text", "text": problem }]);
                let result = json!({ "content": content, "isError": true });
                ServerReply::Result(result.to_string().into())
            }
        })
    }

    /// The content of a file of a skill, or why it is not given.
    async fn read_skill(
        &self,
        tool: &Tool,
        file: Option<&str>,
        relayed: &Relayed<'_>,
        context: Option<&RequestContext>,
    ) -> Result<Result<Value, String>, CallError> {
        let server = tool.server().name();
        let definition = self.inventory.definition(tool);
        let entry = definition
            .as_deref()
            .and_then(|json| skill_of_definition(json.get().as_bytes()));
        let Some(skill) = entry.and_then(Skill::of) else {
            let lost = "the skill's entry is being fetched again; try again in a moment";
            return Ok(Err(lost.to_owned()));
        };
        let name = file.unwrap_or(INSTRUCTIONS);
        let uri = match skill.uri_of(name) {
            Ok(uri) => uri,
            Err(problem) => return Ok(Err(problem)),
        };
        if name != INSTRUCTIONS && self.refused_skills.has(tool) {
            return Ok(Err(format!(
                "`{name}` is not given: the instructions of this skill are not those that server `{server}` has listed"
            )));
        }
        // Another skill may be in the folder of this one.
        let withholds = |context: &RequestContext| {
            (self.inventory).withholds_skill(&context.view, server, &uri)
        };
        if context.is_some_and(withholds) {
            return Ok(Err(format!("`{name}` is not given: a rule withholds it")));
        }
        let reading = Relayed {
            method: "resources/read",
            name: Some(&uri),
            params: Frame::from(format!(r#"{{"uri":{}"#, quoted(&uri))),
            limit: relayed.limit,
            is_repeatable: true,
            takes_task: false,
        };
        let result = match self.relay.request(server, reading, context).await? {
            ServerReply::Result(result) => result,
            refusal @ ServerReply::Error(_) => {
                let problem = format!("server `{server}` does not give `{name}`: ");
                return Ok(Err(match refusal {
                    ServerReply::Error(error) => problem + &crate::upstream::message_of(&error),
                    ServerReply::Result(_) => problem,
                }));
            }
        };
        let read: Value = serde_json::from_slice(&result).unwrap_or_default();
        let content = &read["contents"][0];
        let verified = skill.verified(&uri, content);
        if name == INSTRUCTIONS {
            self.refused_skills.note(tool, verified.is_err());
        }
        if let Err(difference) = verified {
            self.inventory.poke(server);
            return Ok(Err(format!(
                "`{name}` is not given: {difference} than server `{server}` has listed"
            )));
        }
        Ok(Ok(shown(&skill, server.as_str(), name, content)))
    }
}

/// The content of an answer with a file of a skill.
fn shown(skill: &Skill, server: &str, name: &str, content: &Value) -> Value {
    let head = format!("From server {server}, `{name}` of a skill:");
    let mut all = vec![json!({ "type": "text", "text": head })];
    all.push(match content["text"].as_str() {
        Some(text) => json!({ "type": "text", "text": text }),
        None => json!({ "type": "resource", "resource": content }),
    });
    let others: Vec<_> = skill
        .names()
        .into_iter()
        .filter(|name| name != INSTRUCTIONS)
        .collect();
    if name == INSTRUCTIONS && !others.is_empty() {
        let text = format!("Its files, for the argument `file`: {}", others.join(", "));
        all.push(json!({ "type": "text", "text": text }));
    }
    Value::Array(all)
}
