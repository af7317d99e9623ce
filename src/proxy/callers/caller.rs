//! The caller of a request, and how servers reach that client with progress, log messages and questions.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::client::{Client, Shows, refusal};
use super::common::Common;
use crate::mcp::extensions::may_notify;
use crate::mcp::object::quoted;
use crate::mcp::{
    ClientCapabilities, Extensions, Frame, LogLevel, Object, Others, Outbox, Receipt, Revision,
    headers,
};
use crate::proxy::own_uris;
use crate::secret::Masker;
use crate::telemetry::trace::Trace;
use crate::tool::ServerName;
use crate::upstream::{Asking, Host, Question, ServerReply};

/// The caller of a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The client.
    pub client: Arc<Client>,
    /// The request's protocol revision.
    pub revision: Revision,
    /// The part of a result that the client shows to its model, if known.
    pub shows: Option<Shows>,
    /// The client's capabilities.
    pub capabilities: ClientCapabilities,
    /// Its extensions that are not among those.
    pub extensions: Extensions,
    /// Those of them that it has in common with a server.
    pub common: Arc<Common>,
    /// The outbox for notifications and questions that belong to the request.
    pub outbox: Outbox,
    /// The lowest log level that a modern request asks for.
    pub log_level: Option<LogLevel>,
    /// The headers that repeat arguments of a call, if the request came with such headers.
    pub params: Option<Arc<headers::Params>>,
    /// The scopes of the request's access token; `None` for a credential without scopes, which needs none.
    pub scopes: Option<Arc<BTreeSet<String>>>,
    /// The receipt of the line that the request came in, if a journal records it.
    pub receipt: Option<Receipt>,
    /// The time at which the request was received.
    pub received: Instant,
    /// The request's trace, without the trace context in its `_meta`.
    pub trace: Trace,
}

/// A question to a modern client, which is asked in the response to its own request.
#[derive(Debug)]
pub(in crate::proxy) struct PendingQuestion {
    pub(in crate::proxy) question: Question,
    pub(in crate::proxy) answer: oneshot::Sender<ServerReply>,
}

/// A caller, as the server of its call sees it.
pub(in crate::proxy) struct CallHost {
    capabilities: ClientCapabilities,
    /// The extensions that it has in common with the server.
    extensions: Others,
    /// The server, and the extensions with all servers, if it has such extensions.
    of: Option<(ServerName, Arc<Common>)>,
    now: Mutex<CurrentRequest>,
    questions: Questions,
    masker: Option<Masker>,
}

/// How a client is asked during a request.
pub(in crate::proxy) enum Questions {
    /// It cannot be asked.
    Refused,
    /// By a request of mcpzip.
    Requested,
    /// By the response to its own request; the receiver of these questions sends it.
    Answered(mpsc::UnboundedSender<PendingQuestion>),
}

/// The current request of a caller. It changes when the client repeats its request to answer a question.
#[derive(Clone)]
struct CurrentRequest {
    caller: Caller,
    /// The client's progress token, as JSON.
    progress_token: Option<String>,
}

impl CallHost {
    /// `masker` applies to all that the server sends before its response.
    pub(in crate::proxy) fn new(
        caller: &Caller,
        progress_token: Option<&str>,
        questions: Questions,
        masker: Option<Masker>,
    ) -> Arc<Self> {
        let now = CurrentRequest {
            caller: caller.clone(),
            progress_token: progress_token.map(str::to_owned),
        };
        Arc::new(Self {
            capabilities: caller.capabilities,
            extensions: Others::new(),
            of: None,
            now: Mutex::new(now),
            questions,
            masker,
        })
    }

    /// [`Self::new`] for a request to `server`.
    pub(in crate::proxy) fn at(
        server: &ServerName,
        caller: &Caller,
        progress_token: Option<&str>,
        questions: Questions,
        masker: Option<Masker>,
    ) -> Arc<Self> {
        let mut host = Self::new(caller, progress_token, questions, masker);
        let common = caller.common.with(server);
        if let (Some(common), Some(host)) = (common, Arc::get_mut(&mut host)) {
            host.extensions.clone_from(common);
            host.of = Some((server.clone(), caller.common.clone()));
        }
        host
    }

    /// Continues with another request of the same client.
    pub(in crate::proxy) fn goes_on(&self, caller: &Caller, progress_token: Option<&str>) {
        *self.current() = CurrentRequest {
            caller: caller.clone(),
            progress_token: progress_token.map(str::to_owned),
        };
    }

    /// A word by which the client continues its request.
    pub(in crate::proxy) fn state_word(&self) -> String {
        self.current().caller.client.state_word()
    }

    fn current(&self) -> MutexGuard<'_, CurrentRequest> {
        self.now.lock()
    }
}

impl Host for CallHost {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    fn extensions(&self) -> Others {
        self.extensions.clone()
    }

    fn notified(&self, method: &str, params: Option<&RawValue>) {
        let is_its = |(server, common): &&(ServerName, Arc<Common>)| common.is_of(server, method);
        let Some((server, _)) = self.of.as_ref().filter(is_its) else {
            return;
        };
        if may_notify(method) {
            let empty = RawValue::from_string("{}".to_owned()).expect("it is JSON");
            let Some(params) = masked(self.masker.as_ref(), params.unwrap_or(&empty)) else {
                return;
            };
            let seen = own_uris::for_clients(server, &params);
            let outbox = self.current().caller.outbox.clone();
            outbox.offer(Frame::notification(
                method,
                seen.as_deref().unwrap_or(params.get()),
            ));
        }
    }

    fn is_askable(&self) -> bool {
        !matches!(self.questions, Questions::Refused)
    }

    fn client(&self) -> u64 {
        self.current().caller.client.number()
    }

    fn response_outbox(&self) -> Option<Outbox> {
        Some(self.current().caller.outbox.clone()).filter(Outbox::is_alone)
    }

    fn handing_over(&self) {
        if let Some(receipt) = &self.current().caller.receipt {
            receipt.handed_over();
        }
    }

    fn wants_progress(&self) -> bool {
        self.current().progress_token.is_some()
    }

    fn log_level(&self) -> Option<String> {
        let line = self.current();
        // A client with a handshake gets all messages until it sets a level; a modern server sends none unless asked.
        let level = if line.caller.revision.is_modern() {
            line.caller.log_level
        } else {
            Some(line.caller.client.log_level().unwrap_or(LogLevel::Info))
        };
        level.map(|level| quoted(level.as_str()))
    }

    fn progress(&self, params: &RawValue) {
        let line = self.current().clone();
        let Some(params) = masked(self.masker.as_ref(), params) else {
            return;
        };
        let (Some(token), Ok(object)) = (line.progress_token, Object::parse(&params)) else {
            return;
        };
        line.caller.outbox.offer(Frame::notification(
            "notifications/progress",
            &object.with("progressToken", &token),
        ));
    }

    fn log(&self, server: &ServerName, params: &RawValue) {
        let CurrentRequest { caller, .. } = self.current().clone();
        let level = if caller.revision.is_modern() {
            let Some(level) = caller.log_level else {
                return;
            };
            Some(level)
        } else {
            caller.client.log_level()
        };
        if let Some(frame) = named_log(server, params, level, self.masker.as_ref()) {
            caller.outbox.offer(frame);
        }
    }

    fn ask(&self, question: Question) -> Asking {
        let Some(question) = masked_question(self.masker.as_ref(), question) else {
            return Box::pin(async { refusal(BEYOND_MASKING) });
        };
        if !begins(&self.current().caller.client, &question) {
            return Box::pin(async { refusal(ANOTHERS_ID) });
        }
        match &self.questions {
            Questions::Refused => {
                Box::pin(async { refusal("the client cannot be asked in this request") })
            }
            Questions::Answered(questions) => {
                let (answer, answered) = oneshot::channel();
                // If the questions have no receiver any more, the dropped sender becomes a refusal.
                let _ = questions.send(PendingQuestion { question, answer });
                Box::pin(async move {
                    answered
                        .await
                        .unwrap_or_else(|_| refusal("the request was given up"))
                })
            }
            Questions::Requested => {
                let CurrentRequest { caller, .. } = self.current().clone();
                Box::pin(async move {
                    caller
                        .client
                        .ask(&caller.outbox, &question.method, named(&question))
                        .await
                })
            }
        }
    }
}

/// A client with a handshake, outside of any request.
pub(in crate::proxy) struct StandingHost {
    pub(in crate::proxy) client: Arc<Client>,
    /// Applies to all that the server sends.
    pub(in crate::proxy) masker: Option<Masker>,
}

impl Host for StandingHost {
    fn capabilities(&self) -> ClientCapabilities {
        self.client.capabilities().unwrap_or_default()
    }

    fn client(&self) -> u64 {
        self.client.number()
    }

    fn wants_progress(&self) -> bool {
        false
    }

    fn log_level(&self) -> Option<String> {
        None
    }

    fn progress(&self, _: &RawValue) {}

    fn log(&self, server: &ServerName, params: &RawValue) {
        let frame = named_log(
            server,
            params,
            self.client.log_level(),
            self.masker.as_ref(),
        );
        if let (Some(frame), Some(outbox)) = (frame, self.client.listener().outbox()) {
            outbox.offer(frame);
        }
    }

    fn ask(&self, question: Question) -> Asking {
        let client = self.client.clone();
        let Some(question) = masked_question(self.masker.as_ref(), question) else {
            return Box::pin(async { refusal(BEYOND_MASKING) });
        };
        if !begins(&client, &question) {
            return Box::pin(async { refusal(ANOTHERS_ID) });
        }
        Box::pin(async move {
            match client.listener().any_outbox() {
                Some(outbox) => {
                    client
                        .ask(&outbox, &question.method, named(&question))
                        .await
                }
                None => refusal("the client has opened no stream for requests"),
            }
        })
    }
}

/// The refusal of a question with a secret that cannot be taken out of it.
const BEYOND_MASKING: &str = "the question contains a secret of the configuration";

/// The refusal of a question under an id that another server has used.
const ANOTHERS_ID: &str =
    "another server has a question to this client with the same `elicitationId`";

/// Notes a question that sends the user to another place, so that its server alone can say that this is done.
fn begins(client: &Client, question: &Question) -> bool {
    if question.method != "elicitation/create" {
        return true;
    }
    let params = question.params.as_deref();
    let params: Option<&RawValue> = params.and_then(|params| serde_json::from_slice(params).ok());
    params.is_none_or(|params| client.begins(&question.server, params))
}

/// The parameters of a message of a server without the secrets of the masker; `None` if they cannot be taken out of it.
pub(in crate::proxy) fn masked<'p>(
    masker: Option<&Masker>,
    params: &'p RawValue,
) -> Option<Cow<'p, RawValue>> {
    match masker.map(|masker| masker.mask_json(params.get())) {
        None | Some(Some(Cow::Borrowed(_))) => Some(Cow::Borrowed(params)),
        Some(Some(Cow::Owned(masked))) => RawValue::from_string(masked).ok().map(Cow::Owned),
        Some(None) => None,
    }
}

fn masked_question(masker: Option<&Masker>, question: Question) -> Option<Question> {
    let params = question
        .params
        .as_deref()
        .and_then(|params| serde_json::from_slice(params).ok());
    match params.map(|params: &RawValue| masked(masker, params)) {
        None | Some(Some(Cow::Borrowed(_))) => Some(question),
        Some(Some(Cow::Owned(masked))) => Some(Question {
            params: Some(Bytes::copy_from_slice(masked.get().as_bytes())),
            ..question
        }),
        Some(None) => None,
    }
}

/// The parameters of a question with its server's name: for the user in the text of an elicitation, for the client in
/// `_meta`; without a wish that the answer be a task, because clients make none for us. URIs are those that clients see. All other bytes
/// are unchanged.
pub(in crate::proxy) fn named(question: &Question) -> Bytes {
    let empty = Bytes::from_static(b"{}");
    let raw: &RawValue = serde_json::from_slice(question.params.as_ref().unwrap_or(&empty))
        .expect("they were read as JSON");
    let seen = own_uris::for_clients(&question.server, raw);
    let seen = seen.and_then(|json| RawValue::from_string(json).ok());
    let raw = seen.as_deref().unwrap_or(raw);
    let Ok(object) = Object::parse(raw) else {
        return empty;
    };
    let plain = object.without("task");
    let plain: &RawValue = serde_json::from_str(&plain).expect("an object without a member is one");
    let object = Object::parse(plain).unwrap_or_default();
    let meta = object
        .get("_meta")
        .and_then(|raw| Object::parse(raw).ok())
        .unwrap_or_default();
    let meta = meta.with("mcpzip/server", &quoted(question.server.as_str()));
    let marked = object.with("_meta", &meta);
    let message = object
        .text("message")
        .filter(|_| question.method == "elicitation/create");
    let Some(message) = message else {
        return marked.into();
    };
    let raw: &RawValue =
        serde_json::from_str(&marked).expect("an object with a member replaced is one");
    let message = format!("{}: {message}", question.server);
    Object::parse(raw)
        .unwrap_or_default()
        .with("message", &quoted(&message))
        .into()
}

/// A server's log message for a client that accepts messages from `level` on, without the secrets of the masker; its `logger`
/// names the server.
pub(in crate::proxy) fn named_log(
    server: &ServerName,
    params: &RawValue,
    level: Option<LogLevel>,
    masker: Option<&Masker>,
) -> Option<Frame> {
    let params = masked(masker, params)?;
    let object = Object::parse(&params).ok()?;
    let own = object
        .text("level")
        .and_then(|level| LogLevel::parse(&level));
    if let (Some(level), Some(own)) = (level, own)
        && own < level
    {
        return None;
    }
    let logger = object
        .text("logger")
        .map_or_else(|| server.to_string(), |logger| format!("{server}/{logger}"));
    Some(Frame::notification(
        "notifications/message",
        &object.with("logger", &quoted(&logger)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn a_user_is_told_which_server_asks() {
        let question = |method: &str, params: &'static str| Question {
            server: ServerName::new("github").unwrap(),
            method: method.to_owned(),
            params: Some(Bytes::from_static(params.as_bytes())),
        };
        let elicitation = question(
            "elicitation/create",
            r#"{"requestedSchema":{"n":1e400},"message":"Which?"}"#,
        );
        assert_eq!(
            named(&elicitation),
            r#"{"requestedSchema":{"n":1e400},"message":"github: Which?","_meta":{"mcpzip/server":"github"}}"#
        );
        let sampling = question(
            "sampling/createMessage",
            r#"{"messages":[],"_meta":{"a":1}}"#,
        );
        assert_eq!(
            named(&sampling),
            r#"{"messages":[],"_meta":{"a":1,"mcpzip/server":"github"}}"#
        );
    }

    #[test]
    fn log_messages_below_the_wanted_level_are_left_out() {
        let server = ServerName::new("s").unwrap();
        let info = raw(r#"{"level":"info","logger":"db","data":{}}"#);
        assert!(named_log(&server, &info, Some(LogLevel::Error), None).is_none());
        let frame = named_log(&server, &info, Some(LogLevel::Info), None).unwrap();
        assert!(
            String::from_utf8(frame.head)
                .unwrap()
                .contains(r#""logger":"s/db""#)
        );
        assert!(named_log(&server, &raw(r#"{"data":1}"#), Some(LogLevel::Error), None).is_some());
    }
}
