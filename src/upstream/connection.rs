//! An open connection to one server: its wire, and the server's response to the opening. `link.rs` has the requests
//! in flight.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::CallError;
use super::home::Moved;
use super::host::Host;
use super::introduction::Introduction;
use super::listing::SharedListing;
use super::reply::{ServerReply, code_of};
use super::transport::Target;
use super::wire::Wire;
use crate::mcp::{ErrorCode, Frame, LogLevel};
use crate::telemetry::trace::Hop;
use crate::tool::ToolHash;

/// The time limit for requests whose response no client waits for.
const NOTICE_LIMIT: Duration = Duration::from_secs(10);

/// A wire after its handshake. Dropping the last handle does not close it; the pool does.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) wire: Wire,
    pub(super) introduction: Introduction,
    /// Whether requests of the newer era declare what their client can be asked.
    pub(super) may_ask: bool,
    /// The sessions that have compared the server's tools with their pins.
    pub(super) compared: Arc<Mutex<BTreeSet<u64>>>,
    /// The listing in progress, which several sessions may wait for.
    pub(super) listing: SharedListing,
    /// Whether the server got a log level.
    pub(super) has_log_level: AtomicBool,
    /// Whether the server's process is there in place of one that ended with its replica.
    pub(super) moved: Option<Moved>,
}

/// A request to a server on behalf of a client.
#[derive(Clone)]
pub(crate) struct ServerCall<'a> {
    /// The method: `tools/call`, `prompts/get`, `resources/read` and the like.
    pub method: &'a str,
    /// The tool, prompt or resource it names; HTTP repeats it in a header (2026-07-28).
    pub name: Option<&'a str>,
    /// The parameters without the closing brace and without `_meta`. For a tool call, the frame's body is the
    /// arguments.
    pub params: &'a Frame,
    /// Members for `_meta` without braces, such as `"traceparent":"…"`; may be empty.
    pub meta: &'a str,
    /// The time limit for the response.
    pub limit: Duration,
    /// The trace that the call belongs to. Its part of `_meta` is in `meta`.
    pub hop: Hop<'a>,
    /// The client that the request is for. `None`: progress is not reported, and the server's questions cannot be
    /// asked.
    pub host: Option<Arc<dyn Host>>,
    /// The hash of the tool's definition, if the user has agreed to this call of it.
    pub agreed: Option<ToolHash>,
    /// Whether the server may answer with a task, or the request is about one (extension `io.modelcontextprotocol/tasks`).
    pub takes_task: bool,
}

impl ServerCall<'_> {
    /// The name for logs. The id of a task is none: it may be all that is needed to use the task.
    #[must_use]
    pub(crate) fn label(&self) -> Option<&str> {
        self.name.filter(|_| !self.method.starts_with("tasks/"))
    }
}

impl Connection {
    /// The server's description of itself.
    #[must_use]
    pub(crate) fn introduction(&self) -> &Introduction {
        &self.introduction
    }

    /// Whether the connection has ended.
    #[must_use]
    pub(crate) fn is_ended(&self) -> bool {
        self.wire.is_ended()
    }

    /// Resolves when the connection has ended.
    pub(super) async fn ended(&self) {
        self.wire.ended().await;
    }

    /// Sends a request and waits for the response. Dropping the future cancels the request on the server.
    ///
    /// # Errors
    /// When no usable response arrives; see [`CallError`].
    pub(crate) async fn call(&self, call: &ServerCall<'_>) -> Result<ServerReply, CallError> {
        let ServerCall {
            method,
            name,
            params,
            meta,
            limit,
            hop,
            ref host,
            agreed: _,
            takes_task,
        } = *call;
        let host = host.clone();
        let stamp = self
            .introduction
            .request_meta(host.as_deref(), self.may_ask, takes_task);
        let wants_progress = host.as_ref().is_some_and(|host| host.wants_progress());
        let mirrors = self.wire.mirrors().filter(|_| method == "tools/call");
        let headers = mirrors
            .map(|mirrors| mirrors.headers(name.unwrap_or_default(), &params.body))
            .unwrap_or_default();
        let is_bare = params.len() == 1;
        let revision = self.introduction.revision;
        let params = move |id: u64| {
            if let Some(span) = hop.span {
                span.sent_as(id, revision.as_str());
            }
            let Frame {
                head,
                body,
                mut tail,
            } = params.clone();
            let token = if wants_progress {
                format!(r#""progressToken":{id}"#)
            } else {
                String::new()
            };
            let members: Vec<&str> = [token.as_str(), stamp.as_str(), meta]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect();
            if !members.is_empty() {
                let comma = if is_bare { "" } else { "," };
                // Writing to memory cannot fail.
                let _ = write!(tail, r#"{comma}"_meta":{{{}}}"#, members.join(","));
            }
            tail.push(b'}');
            Frame { head, body, tail }
        };
        let target = Target {
            method,
            name,
            headers: &headers,
            context: hop.context,
        };
        if let Some(host) = &host {
            host.handing_over();
        }
        self.wire.request(target, params, limit, host).await
    }

    /// Whether the server may have refused a call for missing headers because we have not listed its tools yet.
    pub(super) fn lacks_headers(&self, refusal: &ServerReply) -> bool {
        let ServerReply::Error(error) = refusal else {
            return false;
        };
        self.wire
            .mirrors()
            .is_some_and(|mirrors| !mirrors.is_listed())
            && code_of(error) == Some(ErrorCode::HEADER_MISMATCH)
    }

    /// Whether the server got a log level.
    pub(super) fn has_log_level(&self) -> bool {
        self.has_log_level.load(Ordering::Relaxed)
    }

    /// Sets the log level of a legacy server that supports logging; `None` lets it send all messages.
    pub(super) async fn set_log_level(&self, level: Option<LogLevel>) {
        if self.introduction.revision.is_modern() || !self.introduction.capabilities.has("logging")
        {
            return;
        }
        self.has_log_level.store(true, Ordering::Relaxed);
        let level = level.unwrap_or(LogLevel::Debug);
        let members = format!(r#""level":"{}""#, level.as_str());
        if let Err(error) = self
            .request("logging/setLevel", &members, NOTICE_LIMIT)
            .await
        {
            tracing::debug!(error = error.kind(), "the log level was not set");
        }
    }

    /// Sends any other request; `members` are the members of its `params`, without braces.
    ///
    /// # Errors
    /// When no usable response arrives; see [`CallError`].
    pub(crate) async fn request(
        &self,
        method: &str,
        members: &str,
        limit: Duration,
    ) -> Result<ServerReply, CallError> {
        let params = Frame::from(format!("{{{members}"));
        let hop = Hop::default();
        self.call(&ServerCall {
            method,
            name: None,
            params: &params,
            meta: "",
            limit,
            hop,
            host: None,
            agreed: None,
            takes_task: false,
        })
        .await
    }
}
