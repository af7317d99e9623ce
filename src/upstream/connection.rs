//! An open connection to one server: its wire, and the server's answer to the opening. `link.rs` has the requests under way.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::CallError;
use super::host::Host;
use super::introduction::Introduction;
use super::reply::{ServerReply, code_of};
use super::transport::Target;
use super::wire::Wire;
use crate::mcp::{ErrorCode, Frame, LogLevel};
use crate::telemetry::trace::Hop;

/// How long a server may take for what nobody waits for.
const NOTICE_LIMIT: Duration = Duration::from_secs(10);

/// A wire after its handshake. Dropping the last handle does not close it; its owner, the pool, does.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(super) wire: Wire,
    pub(super) introduction: Introduction,
    /// The sessions that have compared its tools with those that were first seen.
    pub(super) compared: Arc<Mutex<BTreeSet<u64>>>,
}

/// A request to a server on behalf of a client.
#[derive(Clone)]
pub(crate) struct ServerCall<'a> {
    /// The method: `tools/call`, `prompts/get`, `resources/read` and the like.
    pub method: &'a str,
    /// The tool, prompt or resource it names, which HTTP repeats in a header (2026-07-28).
    pub name: Option<&'a str>,
    /// Its parameters without the closing brace, and without `_meta`; those of a tool call have the arguments as body.
    pub params: &'a Frame,
    /// Members for `_meta`, such as `"traceparent":"…"`, without braces; may be empty.
    pub meta: &'a str,
    /// How long the answer may take.
    pub limit: Duration,
    /// The trace that it is a part of; what `_meta` says of that is in `meta`.
    pub hop: Hop<'a>,
    /// The client it is made for; without one nobody hears of progress, and nobody can be asked.
    pub host: Option<Arc<dyn Host>>,
}

impl Connection {
    /// What the server said of itself.
    #[must_use]
    pub(crate) fn introduction(&self) -> &Introduction {
        &self.introduction
    }

    /// Whether the link is over.
    #[must_use]
    pub(crate) fn is_ended(&self) -> bool {
        self.wire.is_ended()
    }

    /// Resolves when the link is over.
    pub(super) async fn ended(&self) {
        self.wire.ended().await;
    }

    /// Sends a request and waits for its answer. Dropping the future cancels it on the server.
    ///
    /// # Errors
    /// When no usable answer comes; see [`CallError`].
    pub(crate) async fn call(&self, call: &ServerCall<'_>) -> Result<ServerReply, CallError> {
        let ServerCall {
            method,
            name,
            params,
            meta,
            limit,
            hop,
            ref host,
        } = *call;
        let host = host.clone();
        let stamp = self.introduction.request_meta(host.as_deref());
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

    /// Whether a refusal for missing headers may be due to our not having listed the tools yet.
    pub(super) fn lacks_headers(&self, refusal: &ServerReply) -> bool {
        let ServerReply::Error(error) = refusal else {
            return false;
        };
        self.wire
            .mirrors()
            .is_some_and(|mirrors| !mirrors.is_listed())
            && code_of(error) == Some(ErrorCode::HEADER_MISMATCH)
    }

    /// Tells a legacy server from which level on log messages are wanted, if it has any.
    pub(super) async fn set_log_level(&self, level: LogLevel) {
        if self.introduction.revision.is_modern() || !self.introduction.capabilities.has("logging")
        {
            return;
        }
        let members = format!(r#""level":"{}""#, level.as_str());
        if let Err(error) = self
            .request("logging/setLevel", &members, NOTICE_LIMIT)
            .await
        {
            tracing::debug!(%error, "the log level was not set");
        }
    }

    /// Sends any other request; `members` are those of its `params`, without braces.
    ///
    /// # Errors
    /// When no usable answer comes; see [`CallError`].
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
        })
        .await
    }
}
