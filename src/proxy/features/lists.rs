//! What clients see of the servers beside their tools: which method is answered where, and how a request goes on to the
//! server it is for.

use super::page::List;
use super::prompts::PROMPTS;
use super::resources::{RESOURCES, TEMPLATES};
use crate::config::Config;
use crate::mcp::{ErrorCode, Frame, Object};
use crate::proxy::answers::error;
use crate::proxy::relay::Relayed;
use crate::proxy::view::View;
use crate::proxy::{Caller, Change, Mode, Proxy, Reply, RequestContext};
use crate::tool::ServerName;
use crate::upstream::{self, CallError};

impl Proxy {
    /// Answers a request for prompts, resources or completions; `None` for any other method, and where the configuration
    /// shows none of them.
    pub(in crate::proxy) async fn answer_list(
        &self,
        view: &View,
        caller: &Caller,
        method: &str,
        params: &Object<'_>,
    ) -> Option<Reply> {
        let exposed = view.config().exposes_any();
        let legacy = !caller.revision.is_modern();
        let list = |list: List| self.page(view, caller, params, list);
        Some(match method {
            "prompts/list" if exposed.prompts => list(PROMPTS).await,
            "prompts/get" if exposed.prompts => self.get_prompt(view, caller, params).await,
            "resources/list" if exposed.resources => list(RESOURCES).await,
            "resources/templates/list" if exposed.resources => list(TEMPLATES).await,
            "resources/read" if exposed.resources => self.read_resource(view, caller, params).await,
            "resources/subscribe" if exposed.resources && legacy => {
                self.subscribe(view, caller, params).await
            }
            "resources/unsubscribe" if exposed.resources && legacy => {
                self.unsubscribe(caller, params)
            }
            "completion/complete" if exposed.prompts || exposed.resources => {
                self.complete(view, caller, params).await
            }
            _ => return None,
        })
    }

    /// Tells the clients which of the lists that they see have changed, and has what they follow looked up anew.
    pub(in crate::proxy) fn lists_changed(&self, changes: &[Change]) {
        let exposed = self.unscoped().config().exposes_any();
        for change in changes {
            let is_shown = match change {
                Change::Tools => self.mode == Mode::Direct,
                Change::Prompts => exposed.prompts,
                Change::Resources | Change::Resource { .. } => exposed.resources,
            };
            if is_shown {
                self.audience.tell(change);
            }
        }
        self.audience.interests_changed();
    }

    /// Sends a request on to its server, with one of its parameters replaced, and answers with what comes back.
    pub(in crate::proxy) async fn forward(
        &self,
        context: &RequestContext,
        server: &ServerName,
        method: &str,
        name: Option<&str>,
        params: &Object<'_>,
        (key, value): (&str, String),
    ) -> Reply {
        let outcome = self
            .send_on(
                server,
                method,
                name,
                parameters(params, key, &value),
                context,
            )
            .await;
        self.relayed(
            &context.view,
            outcome,
            &format!("`{}`", name.unwrap_or(method)),
        )
    }

    /// Sends a request on that only reads, so that it may be sent again when the connection is lost under it.
    pub(in crate::proxy) async fn send_on(
        &self,
        server: &ServerName,
        method: &str,
        name: Option<&str>,
        params: Frame,
        context: &RequestContext,
    ) -> Result<upstream::ServerReply, CallError> {
        let limit = self
            .pool
            .timeout_of(server)
            .unwrap_or(context.view.config().call_timeout);
        self.relay
            .request(
                server,
                Relayed {
                    method,
                    name,
                    params,
                    limit,
                    is_repeatable: true,
                },
                Some(context),
            )
            .await
    }

    /// The answer to a request for `what`, from what came of it.
    pub(in crate::proxy) fn relayed(
        &self,
        view: &View,
        outcome: Result<upstream::ServerReply, CallError>,
        what: &str,
    ) -> Reply {
        match outcome {
            Ok(upstream::ServerReply::Result(result)) if result.starts_with(b"{") => {
                Reply::Relayed(result)
            }
            Ok(upstream::ServerReply::Result(_)) => Reply::error(
                ErrorCode::INTERNAL,
                format!("the server's result for {what} is not a JSON object"),
            ),
            Ok(upstream::ServerReply::Error(error)) => Reply::RelayedError(error),
            Err(failure) => Reply::error(
                ErrorCode::INTERNAL,
                view.masked(&error::failed_request(what, &failure)),
            ),
        }
    }
}

/// Which lists look different because the configuration shows others.
pub(in crate::proxy) fn changes(before: &Config, now: &Config) -> &'static [Change] {
    let shown = |config: &Config| -> Vec<_> {
        config
            .servers
            .keys()
            .map(|server| config.exposes(server))
            .collect()
    };
    if shown(before) == shown(now) {
        &[]
    } else {
        &[Change::Prompts, Change::Resources]
    }
}

/// The parameters of a request as its server gets them: `value`, which is JSON, for `key`, everything else in its own
/// bytes, and nothing of what belongs to this hop.
pub(in crate::proxy) fn parameters(params: &Object<'_>, key: &str, value: &str) -> Frame {
    let own = params.members().iter().zip(params.iter());
    let own = own.filter(|(_, (name, _))| {
        !matches!(name.as_ref(), "_meta" | "inputResponses" | "requestState")
    });
    let members: Vec<String> = own
        .map(|((raw_key, raw), (name, _))| {
            format!("{raw_key}:{}", if name == key { value } else { raw.get() })
        })
        .collect();
    Frame::from(format!("{{{}", members.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    #[test]
    fn a_servers_parameters_are_the_clients_with_one_replaced() {
        let json = r#"{"uri":"a","x": 1e400,"_meta":{"progressToken":1},"requestState":"s","inputResponses":{},"y":"\ud83d"}"#;
        let raw = RawValue::from_string(json.to_owned()).unwrap();
        let frame = parameters(&Object::parse(&raw).unwrap(), "uri", r#""b""#);
        assert_eq!(frame.head, br#"{"uri":"b","x":1e400,"y":"\ud83d""#);
    }
}
