//! A call of a tool that stands for a skill of a server: reads a file of the skill, compares it with what was listed, and gives it as content.
//!
//! Only files of the list are read, and only when an agent asks for one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Tools;
use crate::catalog::Tool;
use crate::mcp::object::quoted;
use crate::mcp::{Frame, Object};
use crate::proxy::RequestContext;
use crate::proxy::own_uris;
use crate::proxy::relay::Relayed;
use crate::sources;
use crate::upstream::{CallError, ServerReply, skill_of_definition};

/// The file with a skill's instructions.
const INSTRUCTIONS: &str = "SKILL.md";

/// A skill, as its server listed it.
#[derive(Debug)]
struct Skill {
    /// The URI of its folder, with the `/` at its end.
    folder: String,
    front: Value,
    /// Its files; `None` if the server does not list them.
    files: Option<Vec<Listed>>,
}

/// A file of a skill.
#[derive(Debug)]
struct Listed {
    uri: String,
    digest: String,
    size: u64,
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
        let bytes = match (content["text"].as_str(), content["blob"].as_str()) {
            (Some(text), _) => Some(text.as_bytes().to_vec()),
            (None, Some(blob)) => STANDARD.decode(blob).ok(),
            _ => None,
        };
        let Some(bytes) = bytes else {
            return Ok(Err(format!(
                "the answer of server `{server}` for `{name}` has no content"
            )));
        };
        if let Err(difference) = skill.check(&uri, name, &bytes) {
            self.inventory.poke(server);
            return Ok(Err(format!(
                "`{name}` is not given: {difference} than server `{server}` has listed"
            )));
        }
        Ok(Ok(skill.content(server.as_str(), name, content)))
    }
}

impl Skill {
    fn of(entry: &RawValue) -> Option<Self> {
        let entry: Value = serde_json::from_str(entry.get()).ok()?;
        let uri = entry["uri"].as_str()?;
        let listed = |file: &Value| {
            Some(Listed {
                uri: file["uri"].as_str()?.to_owned(),
                digest: file["digest"].as_str()?.to_owned(),
                size: file["size"].as_u64()?,
            })
        };
        let files = match &entry["resources"] {
            Value::Array(files) => Some(files.iter().map(listed).collect::<Option<_>>()?),
            Value::String(kind) if kind == "dynamic" => None,
            _ => return None,
        };
        Some(Self {
            folder: uri.strip_suffix(INSTRUCTIONS)?.to_owned(),
            front: entry["frontmatter"].clone(),
            files,
        })
    }

    /// The URI of a file by its path in the skill, or why there is none.
    fn uri_of(&self, name: &str) -> Result<String, String> {
        let uri = format!("{}{name}", self.folder);
        let Some(files) = &self.files else {
            let is_inside = name.split('/').all(|part| !part.is_empty());
            return match is_inside && !own_uris::leads_elsewhere(name) {
                true => Ok(uri),
                false => Err(format!("`{name}` is not a path in the skill")),
            };
        };
        match files.iter().any(|file| file.uri == uri) {
            true => Ok(uri),
            false => Err(format!(
                "the skill has no file `{name}`; its files are {}",
                self.names().join(", ")
            )),
        }
    }

    fn names(&self) -> Vec<&str> {
        let files = self.files.iter().flatten();
        files
            .map(|file| file.uri.strip_prefix(&self.folder).unwrap_or(&file.uri))
            .collect()
    }

    /// Compares a file with its entry. The error ends with "than …".
    fn check(&self, uri: &str, name: &str, bytes: &[u8]) -> Result<(), String> {
        if let Some(listed) = self.files.iter().flatten().find(|file| file.uri == uri) {
            if listed.size != bytes.len() as u64 {
                return Err(format!("it has another size, {} bytes,", bytes.len()));
            }
            let digest = data_encoding::HEXLOWER.encode(&Sha256::digest(bytes));
            if listed.digest != format!("sha256:{digest}") {
                return Err("it has other bytes".to_owned());
            }
        }
        if name == INSTRUCTIONS {
            let text = String::from_utf8_lossy(bytes);
            if Value::Object(sources::front_matter(&text)) != self.front {
                return Err("its front matter says something else".to_owned());
            }
        }
        Ok(())
    }

    fn content(&self, server: &str, name: &str, content: &Value) -> Value {
        let head = format!("From server {server}, `{name}` of a skill:");
        let mut all = vec![json!({ "type": "text", "text": head })];
        all.push(match content["text"].as_str() {
            Some(text) => json!({ "type": "text", "text": text }),
            None => json!({ "type": "resource", "resource": content }),
        });
        let others: Vec<_> = self
            .names()
            .into_iter()
            .filter(|name| *name != INSTRUCTIONS)
            .collect();
        if name == INSTRUCTIONS && !others.is_empty() {
            let text = format!("Its files, for the argument `file`: {}", others.join(", "));
            all.push(json!({ "type": "text", "text": text }));
        }
        Value::Array(all)
    }
}
