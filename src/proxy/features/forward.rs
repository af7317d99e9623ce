//! Forwards a request for a feature to its server.

use bytes::Bytes;

use super::Features;
use crate::limits::{Exceeded, Request};
use crate::mcp::object::quoted;
use crate::mcp::{ErrorCode, Frame, Object};
use crate::proxy::answers::error;
use crate::proxy::ledger::Reached;
use crate::proxy::relay::{Relayed, without_secrets};
use crate::proxy::view::View;
use crate::proxy::{Reply, RequestContext};
use crate::tool::ServerName;
use crate::upstream::{self, CallError};

impl Features {
    /// Forwards a request to its server with one parameter replaced, and returns the response.
    pub(in crate::proxy) async fn forward(
        &self,
        (context, reached): (&RequestContext, &Reached),
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
                (context, Some(reached)),
            )
            .await;
        self.relayed(
            &context.view,
            outcome,
            &format!("`{}`", name.unwrap_or(method)),
        )
    }

    /// Forwards a read-only request, which may be repeated if the connection is lost.
    pub(in crate::proxy) async fn send_on(
        &self,
        server: &ServerName,
        method: &str,
        name: Option<&str>,
        params: Frame,
        (context, reached): (&RequestContext, Option<&Reached>),
    ) -> Result<upstream::ServerReply, CallError> {
        let request = Request {
            identity: context.caller.client.person().unwrap_or_default(),
            server,
            tool: "",
        };
        let permit = self.limits.begin(&context.view.config(), request).await;
        let permit = match permit {
            Ok(permit) => permit,
            // The client gets it as it gets a refusal of the server.
            Err(exceeded) => {
                if let Some(reached) = reached {
                    reached.refuse(exceeded.limit());
                }
                return Ok(upstream::ServerReply::Error(refusal(&exceeded)));
            }
        };
        let limit = self.relay.limit(&context.view, server);
        let sent = params.body.len() + params.head.len();
        let outcome = self
            .relay
            .request(
                server,
                Relayed {
                    method,
                    name,
                    params,
                    limit,
                    is_repeatable: true,
                    takes_task: false,
                },
                Some(context),
            )
            .await;
        if let Ok(upstream::ServerReply::Result(result)) = &outcome {
            permit.count_bytes(sent + result.len());
        }
        let config = context.view.config();
        outcome.map(|reply| without_secrets(&config, server, reply))
    }

    /// The answer to a request for `what`.
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
            Err(failure) => {
                Reply::unanswered(view.masked(&error::failed_request(what, &failure)), failure)
            }
        }
    }
}

/// The JSON-RPC error for a request that a limit refuses.
fn refusal(exceeded: &Exceeded) -> Bytes {
    let message = format!("{exceeded}; try again in {}", exceeded.later());
    let (code, message) = (ErrorCode::TOO_MANY_REQUESTS, quoted(&message));
    format!(r#"{{"code":{code},"message":{message}}}"#).into()
}

/// The parameters of a request for its server, with `value`, which is JSON, for `key`. Other members are unchanged;
/// those of this hop are removed.
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
