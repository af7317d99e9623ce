//! Tools of folders: a saved script runs like one that an agent sends, and what changed after a person has approved it is not used.

use std::time::Instant;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::Tools;
use super::call::Call;
use crate::catalog::Tool;
use crate::mcp::object::quoted;
use crate::mcp::{Frame, Object};
use crate::proxy::answers::content::text_of;
use crate::proxy::failure::Failure;
use crate::proxy::relay::Relayed;
use crate::proxy::view::View;
use crate::proxy::{Reply, RequestContext};
use crate::statistics::CallPath;
use crate::upstream::{CallError, DIGEST, ServerReply, message_of};

impl Tools {
    /// Runs a saved script with the arguments of a call.
    ///
    /// # Errors
    /// When there is no script, or another than the one that was listed.
    pub(super) async fn run_saved(
        &self,
        call: &Call<'_>,
        context: Option<&RequestContext>,
        tool: &Tool,
        arguments: &RawValue,
    ) -> Result<Reply, Failure> {
        let name = tool.qualified_name();
        let failed = |error| Failure::Call {
            name: name.clone(),
            error: Box::new(error),
        };
        let (own, start) = (tool.own_name(), Instant::now());
        // Its calls have places of their own, which they would wait for in vain if the script had one.
        drop(self.permit(call.view, context, &name).await?);
        let relayed = Relayed {
            method: "tools/call",
            name: Some(own.tool.as_str()),
            params: Frame {
                head: format!(r#"{{"name":{},"arguments":"#, quoted(own.tool.as_str()))
                    .into_bytes(),
                body: Bytes::from_static(b"{}"),
                tail: Vec::new(),
            },
            limit: self.relay.limit(call.view, &own.server),
            is_repeatable: true,
            takes_task: false,
        };
        // Nothing of the caller's request, such as an answer to a question, is about this one.
        let answered = self.relay.request(&own.server, relayed, None).await;
        let code = match self.unchanged(call.view, tool, answered).map_err(failed)? {
            ServerReply::Result(result) => text_of(&result),
            ServerReply::Error(error) => return Ok(Reply::tool_error(&message_of(&error))),
        };
        let script = (code.as_str(), Some(arguments));
        let reply = self.run_code(call, context, name.clone(), script).await;
        let sent = arguments.get().len();
        let result = match &reply {
            Reply::Result(result) | Reply::Relayed(result) => Some(result),
            _ => None,
        };
        let path = match call.context {
            Some(_) => CallPath::MetaTool,
            None => CallPath::Command,
        };
        self.answers
            .count_call(&own, start.elapsed(), sent, result, path);
        Ok(reply)
    }

    /// Passes an answer on if it was made of the files that the tool's definition was made of. With `"trust": "report"`, every answer passes.
    pub(super) fn unchanged(
        &self,
        view: &View,
        tool: &Tool,
        answered: Result<ServerReply, CallError>,
    ) -> Result<ServerReply, CallError> {
        let config = view.config();
        let own = tool.own_name();
        let entry = config.servers.get(&own.server);
        let is_folder = entry.is_some_and(|entry| entry.holds().is_some());
        let is_held = is_folder && self.inventory.is_pinned(&own.server);
        let Ok(ServerReply::Result(result)) = &answered else {
            return answered;
        };
        // A file of a skill was compared with its entry when it was read.
        if !is_held || tool.entry().is_skill {
            return answered;
        }
        let definition = self.inventory.definition(tool);
        let listed = definition.as_deref().and_then(digest_of);
        if listed.is_some() && listed == serde_json::from_slice(result).ok().and_then(digest_of) {
            return answered;
        }
        self.inventory.poke(&own.server);
        Err(CallError::Withheld {
            server: own.server,
            tool: own.tool.to_string(),
        })
    }
}

/// The digest in the `_meta` of a definition or result.
fn digest_of(json: &RawValue) -> Option<String> {
    let meta = Object::parse(json).ok()?.get("_meta")?;
    Object::parse(meta).ok()?.text(DIGEST)
}
