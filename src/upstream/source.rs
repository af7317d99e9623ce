//! Servers that run inside the program. Pool, catalog and calls use them like other servers.

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
use crate::config::{CommandLine, Folder, OpenApi, Remote, Stdio};
use crate::mcp::{ErrorCode, Frame, Object};
use crate::tool::ServerName;

/// A server inside the program: it lists tools and calls them.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// Its description of itself.
    fn introduction(&self) -> Introduction;

    /// The definitions of its tools, each a JSON object as in `tools/list`.
    ///
    /// # Errors
    /// The reason why they are not known; [`SourceError::Arguments`] has a text for a person.
    fn tools(&self) -> BoxFuture<'_, Result<Vec<String>, SourceError>>;

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

    /// A part of a tool's input schema that its definition leaves out, by its path in the whole schema: `#/$defs/Pod`;
    /// `#` is the whole one.
    fn schema<'a>(
        &'a self,
        _tool: &'a str,
        _path: &'a str,
    ) -> BoxFuture<'a, Result<String, SourceError>> {
        Box::pin(async { Err(SourceError::UnknownTool) })
    }

    /// The definitions of its resources, each a JSON object as in `resources/list`; `None` if it has none.
    fn resources(&self) -> BoxFuture<'_, Option<Vec<String>>> {
        Box::pin(async { None })
    }

    /// The entries of its skills, each a JSON object as in `skills/list`; `None` if it has none.
    fn skills(&self) -> BoxFuture<'_, Option<Vec<String>>> {
        Box::pin(async { None })
    }

    /// Reads a resource. Returns the result, a JSON object as in the response to `resources/read`; `None` if there is no such one.
    fn read<'a>(&'a self, _uri: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async { None })
    }
}

/// The request for a part of a schema, which only sources answer: `{name, path}`.
pub(crate) const SCHEMA_REQUEST: &str = "mcpzip/schema";

/// The member of `_meta` of a definition that leaves out parts of its input schema: the hash of the whole schema.
pub(crate) const SCHEMA_MARK: &str = "mcpzip/schema";

/// The member of `_meta` of a definition, and of a call's result, with the digest of the files that it was made of.
pub(crate) const DIGEST: &str = "mcpzip/digest";

/// Why a source did not call a tool.
#[derive(Debug)]
pub(crate) enum SourceError {
    /// It has no tool of this name.
    UnknownTool,
    /// The request, or the entry, cannot be used, for this reason.
    Arguments(String),
    /// The request failed, so the tool's server counts as failed.
    Call(CallError),
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

    /// Makes the operations of an interface the tools of `server`. `changed` is called when the description has changed.
    fn open_interface(
        &self,
        server: &ServerName,
        remote: &Remote,
        openapi: &OpenApi,
        changed: Box<dyn Fn() + Send + Sync>,
        context: &Arc<UpstreamContext>,
    ) -> Result<Arc<dyn Source>, ConnectError>;

    /// Makes the files of a folder tools. `changed` is called when they have changed.
    fn open_folder(
        &self,
        folder: &Folder,
        changed: Box<dyn Fn() + Send + Sync>,
        context: &Arc<UpstreamContext>,
    ) -> Arc<dyn Source>;
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
                "tools/list" => self.list().await,
                "tools/call" => self.call(params).await,
                SCHEMA_REQUEST => self.schema(params).await,
                "resources/list" => Ok(listed("resources", self.source.resources().await)),
                "skills/list" => Ok(listed("skills", self.source.skills().await)),
                "resources/read" => self.read(params).await,
                "ping" => Ok(result("{}".to_owned())),
                _ => Ok(no_method()),
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

    async fn list(&self) -> Result<ServerReply, CallError> {
        match self.source.tools().await {
            Ok(tools) => Ok(result(format!(r#"{{"tools":[{}]}}"#, tools.join(",")))),
            Err(SourceError::Call(failure)) => Err(failure),
            Err(SourceError::Arguments(reason)) => Ok(error(ErrorCode::INTERNAL, &reason)),
            Err(SourceError::UnknownTool) => Ok(result(r#"{"tools":[]}"#.to_owned())),
        }
    }

    async fn call(&self, params: &Frame) -> Result<ServerReply, CallError> {
        let (name, arguments) = self.params(params, "arguments")?;
        let none =
            RawValue::from_string("{}".to_owned()).map_err(|_| self.malformed("no arguments"))?;
        let arguments = arguments.unwrap_or(none);
        answered(&name, self.source.call(&name, &arguments).await)
    }

    async fn read(&self, params: &Frame) -> Result<ServerReply, CallError> {
        let uri = self.member(params, "uri")?;
        Ok(match self.source.read(&uri).await {
            Some(content) => result(content),
            None => error(ErrorCode::RESOURCE_NOT_FOUND, "there is no such resource"),
        })
    }

    async fn schema(&self, params: &Frame) -> Result<ServerReply, CallError> {
        let (name, path) = self.params(params, "path")?;
        let path: Option<String> = path.and_then(|path| serde_json::from_str(path.get()).ok());
        let path = path.unwrap_or_else(|| "#".to_owned());
        answered(&name, self.source.schema(&name, &path).await)
    }

    /// The tool's name and another member of a request's parameters.
    fn params(
        &self,
        params: &Frame,
        member: &str,
    ) -> Result<(String, Option<Box<RawValue>>), CallError> {
        let name = self.member(params, "name")?;
        let bytes = [&params.head[..], &params.body, &params.tail].concat();
        let params = self.object(&bytes)?;
        Ok((name, params.get(member).map(ToOwned::to_owned)))
    }

    /// A text of a request's parameters.
    fn member(&self, params: &Frame, name: &str) -> Result<String, CallError> {
        let bytes = [&params.head[..], &params.body, &params.tail].concat();
        Ok(self.object(&bytes)?.text(name).unwrap_or_default())
    }

    fn object<'b>(&self, params: &'b [u8]) -> Result<Object<'b>, CallError> {
        let raw: &RawValue = serde_json::from_slice(params)
            .map_err(|_| self.malformed("the request is not JSON"))?;
        Object::parse(raw).map_err(|_| self.malformed("the request is not an object"))
    }

    fn malformed(&self, reason: &str) -> CallError {
        CallError::Malformed {
            server: self.server.clone(),
            reason: reason.to_owned(),
        }
    }

    fn lost(&self, may_have_acted: bool) -> CallError {
        CallError::Lost {
            server: self.server.clone(),
            reason: "the connection was closed".to_owned(),
            may_have_acted,
        }
    }
}

fn answered(name: &str, answer: Result<String, SourceError>) -> Result<ServerReply, CallError> {
    match answer {
        Ok(answer) => Ok(result(answer)),
        Err(SourceError::UnknownTool) => {
            let message = format!("there is no tool `{name}`");
            Ok(error(ErrorCode::INVALID_PARAMS, &message))
        }
        Err(SourceError::Arguments(reason)) => Ok(error(ErrorCode::INVALID_PARAMS, &reason)),
        Err(SourceError::Call(failure)) => Err(failure),
    }
}

fn listed(list: &str, entries: Option<Vec<String>>) -> ServerReply {
    match entries {
        Some(all) => result(format!(r#"{{"{list}":[{}]}}"#, all.join(","))),
        None => no_method(),
    }
}

fn no_method() -> ServerReply {
    error(ErrorCode::METHOD_NOT_FOUND, "there is no such method")
}

fn result(json: String) -> ServerReply {
    ServerReply::Result(json.into())
}

fn error(code: ErrorCode, message: &str) -> ServerReply {
    ServerReply::Error(Bytes::from(
        json!({ "code": code.0, "message": message }).to_string(),
    ))
}
