//! The answers of servers that ask their client something, or mean it and not the agent. A client gets none that it has not declared.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{RequestContext, error};
use crate::mcp::object::quoted;
use crate::mcp::{ClientCapabilities, ErrorCode, Object};
use crate::proxy::callers::caller::named;
use crate::tool::ServerName;
use crate::upstream::{Question, ServerReply, code_of, message_of, with_plain_code};

impl RequestContext {
    /// The reply of `server` as this client may get it.
    pub(super) fn permitted(&self, server: &ServerName, reply: ServerReply) -> ServerReply {
        match reply {
            ServerReply::Result(result) => {
                let input = result.required_input();
                if input.is_none_or(|input| self.permits(&input)) {
                    return ServerReply::Result(result);
                }
                let message = format!(
                    "server `{server}` asks for something that this client has not declared or cannot be asked now"
                );
                error(ErrorCode::INTERNAL, &message)
            }
            ServerReply::Error(error) => ServerReply::Error(self.permitted_error(server, error)),
        }
    }

    /// Whether the client can be asked what an answer requires.
    fn permits(&self, input: &Object<'_>) -> bool {
        let requests = input.get("inputRequests");
        let requests = requests.map(|raw| Object::parse(raw).ok());
        // Without questions, the client only repeats its request.
        let Some(requests) = requests.unwrap_or_else(|| Some(Object::default())) else {
            return false;
        };
        let may_ask = |raw: &RawValue| {
            let request = Object::parse(raw).unwrap_or_default();
            let method = request.text("method").unwrap_or_default();
            let able = self.caller.capabilities;
            able.permit(&method, request.get("params"))
        };
        let mut questions = requests.members().iter();
        self.is_askable
            && self.caller.revision.is_modern()
            && questions.all(|(_, raw)| may_ask(raw))
    }

    /// The error of `server` as this client may get it: with a code that means the client only if the client can do what it asks.
    pub(in crate::proxy) fn permitted_error(&self, server: &ServerName, error: Bytes) -> Bytes {
        let error = with_plain_code(error);
        let is_modern = self.caller.revision.is_modern();
        let for_agent = match code_of(&error) {
            Some(ErrorCode::URL_ELICITATION_REQUIRED) => {
                if self.goes_elsewhere(server, &error) {
                    return with_places_named(server, &error).unwrap_or(error);
                }
                true
            }
            Some(ErrorCode::MISSING_CAPABILITY) if is_modern => {
                return self.lacking(server, &error);
            }
            // These are about the connection to mcpzip, which decides on them.
            Some(
                ErrorCode::UNSUPPORTED_VERSION
                | ErrorCode::HEADER_MISMATCH
                | ErrorCode::INSUFFICIENT_SCOPE
                | ErrorCode::TOO_MANY_REQUESTS,
            ) => true,
            _ => false,
        };
        match for_agent {
            true => recoded(&error),
            false => error,
        }
    }

    /// Whether the client can send its user to the places that an error names. Later revisions do not have this error.
    fn goes_elsewhere(&self, server: &ServerName, error: &[u8]) -> bool {
        let Some(places) = places_of(error) else {
            return false;
        };
        let able = self.caller.capabilities;
        let is_url = |place: &&RawValue| {
            let mode = Object::parse(place).ok().and_then(|one| one.text("mode"));
            mode.as_deref() == Some("url")
        };
        let begins = |place: &&RawValue| self.caller.client.begins(server, place);
        self.is_askable
            && !self.caller.revision.is_modern()
            && able.elicits_urls()
            && places.iter().all(is_url)
            && places.iter().all(begins)
    }

    /// The error that a request lacks a capability, in our words: only with those that the client could declare.
    fn lacking(&self, server: &ServerName, error: &Bytes) -> Bytes {
        let required = |raw| {
            let data = Object::parse(Object::parse(raw).ok()?.get("data")?).ok()?;
            Some(ClientCapabilities::parse(data.get("requiredCapabilities")?))
        };
        let raw: Option<&RawValue> = serde_json::from_slice(error).ok();
        let required = raw.and_then(required).unwrap_or_default();
        let lacking = required.lacking_in(self.caller.capabilities);
        if lacking == ClientCapabilities::NONE || !self.is_askable {
            return recoded(error);
        }
        let message = format!(
            "server `{server}` needs a capability that this request does not declare: {}",
            message_of(error)
        );
        let (code, message) = (ErrorCode::MISSING_CAPABILITY, quoted(&message));
        let data = format!(r#"{{"requiredCapabilities":{lacking}}}"#);
        format!(r#"{{"code":{code},"message":{message},"data":{data}}}"#).into()
    }
}

/// The places that the error of 2025-11-25 sends a user to: requests for elicitation.
pub(super) fn places_of(error: &[u8]) -> Option<Vec<&RawValue>> {
    let raw: &RawValue = serde_json::from_slice(error).ok()?;
    let data = Object::parse(Object::parse(raw).ok()?.get("data")?).ok()?;
    serde_json::from_str(data.get("elicitations")?.get()).ok()
}

/// The error with the server's name in each place, as questions have it.
fn with_places_named(server: &ServerName, error: &Bytes) -> Option<Bytes> {
    let object = Object::parse(serde_json::from_slice(error).ok()?).ok()?;
    let data = Object::parse(object.get("data")?).ok()?;
    let places = places_of(error)?;
    let places = places.iter().map(|place| {
        let question = Question {
            server: server.clone(),
            method: "elicitation/create".to_owned(),
            params: Some(Bytes::copy_from_slice(place.get().as_bytes())),
        };
        String::from_utf8_lossy(&named(&question)).into_owned()
    });
    let places: Vec<String> = places.collect();
    let data = data.with("elicitations", &format!("[{}]", places.join(",")));
    Some(object.with("data", &data).into())
}

/// An error for the agent.
fn recoded(error: &[u8]) -> Bytes {
    let raw: Option<&RawValue> = serde_json::from_slice(error).ok();
    let object = raw.and_then(|raw| Object::parse(raw).ok());
    let object = object.unwrap_or_default();
    object.with("code", &ErrorCode::INTERNAL.to_string()).into()
}
