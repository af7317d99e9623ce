//! `completion/complete`: suggestions for an argument, from the server of the prompt or template.

use super::Features;
use super::forward::parameters;
use super::prompts::Prompt;
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Object, Revision};
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply, RequestContext};
use crate::tool::ServerName;
use crate::upstream::{self, code_of};

/// The empty answer. Clients request completions with every letter that a person types and show every error, so a
/// server without completions gets this, too.
const NOTHING: &str = r#"{"completion":{"values":[],"total":0,"hasMore":false}}"#;

impl Features {
    /// Answers `completion/complete`.
    pub(in crate::proxy) async fn complete(
        &self,
        view: &View,
        caller: &Caller,
        params: &Object<'_>,
    ) -> Reply {
        let Some(reference) = params.get("ref").and_then(|raw| Object::parse(raw).ok()) else {
            return Reply::invalid_params("`ref` must be an object");
        };
        let (server, key, own) = match reference.text("type").as_deref() {
            Some("ref/prompt") => {
                let Some(name) = reference.text("name") else {
                    return Reply::invalid_params("`ref.name` must be a string");
                };
                match self.prompt(view, &name).await {
                    Ok(Prompt { server, name }) => (server, "name", name),
                    Err(error) => return error.into(),
                }
            }
            Some("ref/resource") => {
                let Some(uri) = reference.text("uri") else {
                    return Reply::invalid_params("`ref.uri` must be a string");
                };
                match self.template(view, &uri).await {
                    Ok((server, own)) => (server, "uri", own),
                    Err(error) => return error.into(),
                }
            }
            _ => return Reply::invalid_params("`ref.type` must be `ref/prompt` or `ref/resource`"),
        };
        if !completes(view, &server) {
            return Reply::Result(NOTHING.into());
        }
        let context = RequestContext::of(caller, view, params);
        let params = parameters(params, "ref", &reference.with(key, &quoted(&own)));
        match self
            .send_on(
                &server,
                "completion/complete",
                None,
                params,
                (&context, None),
            )
            .await
        {
            Ok(upstream::ServerReply::Error(error))
                if code_of(&error) == Some(ErrorCode::METHOD_NOT_FOUND) =>
            {
                Reply::Result(NOTHING.into())
            }
            outcome => self.relayed(view, outcome, &format!("the completion of `{own}`")),
        }
    }
}

/// Whether a server may have completions; the first revision did not declare them.
fn completes(view: &View, server: &ServerName) -> bool {
    view.snapshot().server(server).is_some_and(|known| {
        known.capabilities().has("completions") || known.revision() == Some(Revision::V2024_11_05)
    })
}
