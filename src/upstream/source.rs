//! Servers that run inside the program. Pool, catalog and calls know no difference to other servers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::reply::ServerReply;
use super::{CallError, ConnectError, Introduction, UpstreamContext};
use crate::config::{CommandLine, Stdio};
use crate::mcp::{ErrorCode, Frame, Object};
use crate::tool::ServerName;

/// A server inside the program: it lists tools and calls them.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// Its description of itself.
    fn introduction(&self) -> Introduction;

    /// The definitions of its tools, each a JSON object as in `tools/list`.
    ///
    /// # Errors
    /// The reason why they are not known, for a person.
    fn tools(&self) -> BoxFuture<'_, Result<Vec<String>, String>>;

    /// Calls a tool. Returns the result, a JSON object as in the response to `tools/call`. Dropping the future cancels
    /// the call.
    ///
    /// # Errors
    /// See [`SourceError`]. A tool that failed has a result with `isError`.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a RawValue,
    ) -> BoxFuture<'a, Result<String, SourceError>>;
}

/// The reason why a source did not call a tool.
#[derive(Debug)]
pub(crate) enum SourceError {
    /// It has no tool of this name.
    UnknownTool,
    /// The arguments cannot be used, for this reason.
    Arguments(String),
}

/// Makes sources of entries.
pub(crate) trait OpenSource: Send + Sync {
    /// Makes a program's subcommands the tools of `server`.
    fn open<'a>(
        &'a self,
        server: &'a ServerName,
        program: &'a Stdio,
        command_line: &'a CommandLine,
        context: &'a Arc<UpstreamContext>,
    ) -> BoxFuture<'a, Result<Arc<dyn Source>, ConnectError>>;
}

/// The connection to a source.
#[derive(Debug)]
pub(super) struct Inside {
    server: ServerName,
    source: Arc<dyn Source>,
    closed: CancellationToken,
}

impl Inside {
    pub(super) fn new(server: ServerName, source: Arc<dyn Source>) -> Arc<Self> {
        Arc::new(Self {
            server,
            source,
            closed: CancellationToken::new(),
        })
    }

    /// The source's description of itself.
    pub(super) fn introduction(&self) -> Introduction {
        self.source.introduction()
    }

    pub(super) fn is_ended(&self) -> bool {
        self.closed.is_cancelled()
    }

    pub(super) fn close(&self) {
        self.closed.cancel();
    }

    pub(super) async fn ended(&self) {
        self.closed.cancelled().await;
    }

    /// Answers a request within `limit`. Dropping the future cancels it.
    pub(super) async fn request(
        &self,
        method: &str,
        params: &Frame,
        limit: Duration,
    ) -> Result<ServerReply, CallError> {
        if self.is_ended() {
            return Err(self.lost(false));
        }
        let answer = async {
            match method {
                "tools/list" => Ok(self.list().await),
                "tools/call" => self.call(params).await,
                "ping" => Ok(result("{}".to_owned())),
                _ => Ok(error(
                    ErrorCode::METHOD_NOT_FOUND,
                    "there is no such method",
                )),
            }
        };
        tokio::select! {
            answer = tokio::time::timeout(limit, answer) => {
                let server = || self.server.clone();
                answer.unwrap_or_else(|_| Err(CallError::Timeout { server: server(), limit }))
            }
            () = self.closed.cancelled() => Err(self.lost(true)),
        }
    }

    async fn list(&self) -> ServerReply {
        match self.source.tools().await {
            Ok(tools) => result(format!(r#"{{"tools":[{}]}}"#, tools.join(","))),
            Err(reason) => error(ErrorCode::INTERNAL, &reason),
        }
    }

    async fn call(&self, params: &Frame) -> Result<ServerReply, CallError> {
        let bytes = [&params.head[..], &params.body, &params.tail].concat();
        let malformed = |reason: &str| CallError::Malformed {
            server: self.server.clone(),
            reason: reason.to_owned(),
        };
        let raw: &RawValue =
            serde_json::from_slice(&bytes).map_err(|_| malformed("the request is not JSON"))?;
        let params = Object::parse(raw).map_err(|_| malformed("the request is not an object"))?;
        let name = params.text("name").unwrap_or_default();
        let none = RawValue::from_string("{}".to_owned()).map_err(|_| malformed("no arguments"))?;
        let arguments = params.get("arguments").unwrap_or(&none);
        Ok(match self.source.call(&name, arguments).await {
            Ok(answer) => result(answer),
            Err(SourceError::UnknownTool) => {
                let message = format!("there is no tool `{name}`");
                error(ErrorCode::INVALID_PARAMS, &message)
            }
            Err(SourceError::Arguments(reason)) => error(ErrorCode::INVALID_PARAMS, &reason),
        })
    }

    fn lost(&self, may_have_acted: bool) -> CallError {
        CallError::Lost {
            server: self.server.clone(),
            reason: "the connection was closed".to_owned(),
            may_have_acted,
        }
    }
}

fn result(json: String) -> ServerReply {
    ServerReply::Result(Bytes::from(json))
}

fn error(code: ErrorCode, message: &str) -> ServerReply {
    ServerReply::Error(Bytes::from(
        json!({ "code": code.0, "message": message }).to_string(),
    ))
}
