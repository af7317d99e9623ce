//! Requests of extensions that mcpzip does not know, for the one server that has the extension.

use super::Features;
use super::forward::parameters;
use crate::audit::Kind;
use crate::config::Verdict;
use crate::limits::Request;
use crate::mcp::extensions::may_be;
use crate::mcp::{ErrorCode, Object};
use crate::proxy::ledger::{Reached, RequestEvent};
use crate::proxy::relay::{Relayed, task_in, without_secrets};
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply, RequestContext, extensions};
use crate::tool::{Hints, QualifiedName};
use crate::upstream::ServerReply;

impl Features {
    /// Answers a request of an extension that the caller has in common with one server; `None` for others.
    pub(super) async fn answer_extension(
        &self,
        view: &View,
        caller: &Caller,
        method: &str,
        params: &Object<'_>,
    ) -> Option<Reply> {
        if caller.common.is_empty() || !may_be(method) {
            return None;
        }
        let server = caller.common.server_of(method)?;
        let name = extensions::as_tool(server, method)?;
        let reached = Reached::default();
        reached.set(server, Some(method));
        let audit = self.ledger.audit();
        let begin =
            |audit| RequestEvent::begin(audit, Kind::Extension, (view, caller), params, &reached);
        let event = match audit.map(begin).transpose() {
            Ok(event) => event,
            Err(refusal) => return Some(refusal),
        };
        let reply = self
            .ask_extension(view, caller, &name, params, &reached)
            .await;
        Some(match event {
            Some(event) => event.end(reply).await,
            None => reply,
        })
    }

    async fn ask_extension(
        &self,
        view: &View,
        caller: &Caller,
        name: &QualifiedName,
        params: &Object<'_>,
        reached: &Reached,
    ) -> Reply {
        let method = name.tool.as_str();
        let refused = |message: String| Reply::error(ErrorCode::INVALID_REQUEST, message);
        let arguments = params.without("_meta");
        match view.judge_request(name, &arguments) {
            (Verdict::Allowed, _) => {}
            // A person is asked about calls of tools only.
            (Verdict::Asked | Verdict::Denied, rule) => {
                reached.refuse(rule.as_deref());
                let rule = rule.unwrap_or_default();
                return refused(format!("the user's rules do not allow `{method}` ({rule})"));
            }
        }
        let lacking = view.lacking_scopes(caller.scopes.as_deref(), name, Hints::default());
        if !lacking.is_empty() {
            return Reply::Error {
                code: ErrorCode::INSUFFICIENT_SCOPE,
                message: format!("`{method}` needs scopes that the access token lacks"),
                data: Some(serde_json::json!({ "scopes": lacking }).to_string()),
                cause: None,
            };
        }
        let config = view.config();
        let request = Request {
            identity: caller.client.person().unwrap_or_default(),
            server: &name.server,
            tool: method,
        };
        let permit = match self.limits.begin(&config, request).await {
            Ok(permit) => permit,
            Err(exceeded) => {
                reached.refuse(exceeded.limit());
                let text = format!("{exceeded}; try again in {}", exceeded.later());
                return Reply::error(ErrorCode::TOO_MANY_REQUESTS, text);
            }
        };
        let relayed = Relayed {
            method,
            name: None,
            params: parameters(params, "", ""),
            limit: self.relay.limit(view, &name.server),
            is_repeatable: false,
            takes_task: false,
        };
        let context = RequestContext::of(caller, view, params).in_company();
        let outcome = self
            .relay
            .request(&name.server, relayed, Some(&context))
            .await;
        if let Ok(ServerReply::Result(result)) = &outcome {
            permit.count_bytes(arguments.len() + result.len());
        }
        let outcome = outcome.map(|reply| without_secrets(&config, &name.server, reply));
        // A question would not have the server's name, and a task is not one of this client.
        if let Ok(ServerReply::Result(result)) = &outcome
            && (result.required_input().is_some() || task_in(result).is_some())
        {
            let text = format!(
                "the answer of server `{}` to `{method}` is a question or a task, which an extension cannot have",
                name.server
            );
            return Reply::error(ErrorCode::INTERNAL, text);
        }
        self.relayed(view, outcome, &format!("`{method}`"))
    }
}
