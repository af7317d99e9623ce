//! The clients behind the requests of a connection, as traits, so that this module does not depend on them.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{Listing, NotListed, ServerReply};
use crate::mcp::extensions::may_notify;
use crate::mcp::{ClientCapabilities, LogLevel, Others, Outbox};
use crate::tool::{ServerName, ToolHash};

/// The pending response of a client.
pub(crate) type Asking = Pin<Box<dyn Future<Output = ServerReply> + Send>>;

/// A pending comparison of a listing with the pins.
pub(crate) type Comparing = Pin<Box<dyn Future<Output = Result<(), NotListed>> + Send>>;

/// A server's request to the client that it works for.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// The server that asks.
    pub server: ServerName,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// The parameters, in their original bytes.
    pub params: Option<Bytes>,
}

/// The part of a client that a handshake declares to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    /// The client's capabilities.
    pub capabilities: ClientCapabilities,
    /// The extensions that it has in common with the server.
    pub extensions: Others,
}

impl From<ClientCapabilities> for Declared {
    fn from(capabilities: ClientCapabilities) -> Self {
        Self {
            capabilities,
            extensions: Others::new(),
        }
    }
}

/// The client that a request is made for.
pub(crate) trait Host: Send + Sync {
    /// The capabilities it declared. They decide which connection the request uses.
    fn capabilities(&self) -> ClientCapabilities;

    /// The extensions that it has in common with the server of this request, without those of its capabilities.
    fn extensions(&self) -> Others {
        Others::new()
    }

    /// All that a connection for it declares in a handshake.
    fn declared(&self) -> Declared {
        Declared {
            capabilities: self.capabilities(),
            extensions: self.extensions(),
        }
    }

    /// Receives a notification of an extension; must not block.
    fn notified(&self, _method: &str, _params: Option<&RawValue>) {}

    /// Whether it can be asked during this request.
    fn is_askable(&self) -> bool {
        true
    }

    /// The id of the client; equal for all its requests.
    fn client(&self) -> u64;

    /// The queue of the responses it requested, if it is the only client. A server is not read from while its client
    /// does not take the responses.
    fn response_outbox(&self) -> Option<Outbox> {
        None
    }

    /// Called when its request is about to be written to a server.
    fn handing_over(&self) {}

    /// Whether it requested progress notifications.
    fn wants_progress(&self) -> bool;

    /// The lowest level of log messages for this request (2026-07-28), as a JSON string.
    fn log_level(&self) -> Option<String>;

    /// Receives the `params` of a progress notification; must not block.
    fn progress(&self, params: &RawValue);

    /// Receives the `params` of a log message; must not block.
    fn log(&self, server: &ServerName, params: &RawValue);

    /// Asks the client. Dropping the future cancels the question.
    fn ask(&self, question: Question) -> Asking;
}

/// All connected clients, for messages of servers outside of any request.
pub(crate) trait Audience: Send + Sync {
    /// The capabilities that a new connection declares if the request has none: those of the latest client.
    fn capabilities(&self) -> ClientCapabilities;

    /// The lowest log level to request from servers that support one, if a client has set a level.
    fn log_level(&self) -> Option<LogLevel>;

    /// The clients that can be asked `method` outside of any request. If there are several, the addressee is unknown.
    fn hosts(&self, server: &ServerName, method: &str) -> Vec<Arc<dyn Host>>;

    /// The directories to answer `roots/list` with, for a server that serves several sessions. `None`: the client is
    /// asked.
    fn roots(&self) -> Option<Vec<PathBuf>> {
        None
    }

    /// Compares the listing of `server` with the pins and stores it.
    ///
    /// # Errors
    /// The reason why that is not possible.
    fn compare(&self, server: &ServerName, listing: Listing) -> Comparing;

    /// Whether only approved, or unchanged, tools of `server` may be called, in its current state.
    fn is_pinned(&self, server: &ServerName) -> bool;

    /// Whether a tool of `server` must not be called in its current state.
    fn is_withheld(&self, server: &ServerName, tool: &str) -> bool;

    /// The hash of a tool's definition in the latest list of `server`.
    fn definition(&self, server: &ServerName, tool: &str) -> Option<ToolHash>;

    /// Whether `server` may be started, or connected to. Asked of servers that an agent has added.
    fn may_start(&self, server: &ServerName) -> bool;

    /// Receives a notification of `server` that belongs to no request; must not block.
    fn noticed(&self, server: &ServerName, notice: Notice<'_>);
}

/// A server's notification that belongs to no request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notice<'a> {
    /// The list of tools has changed.
    ToolsChanged,
    /// The list of prompts has changed.
    PromptsChanged,
    /// The list of resources has changed.
    ResourcesChanged,
    /// The content of a resource has changed; `params` has its `uri`.
    ResourceUpdated(&'a RawValue),
    /// The state of a task, as its `params`.
    TaskChanged(&'a RawValue),
    /// A log message, as its `params`.
    Message(&'a RawValue),
    /// A notification of an extension: the method and the `params`.
    Extension(&'a str, Option<&'a RawValue>),
    /// An elicitation by URL is complete (2025-11-25), as its `params`.
    ElicitationComplete(&'a RawValue),
}

impl<'a> Notice<'a> {
    /// Parses a notification; `None` for methods that are not relayed.
    #[must_use]
    pub(crate) fn read(method: &'a str, params: Option<&'a RawValue>) -> Option<Self> {
        match (method, params) {
            ("notifications/tools/list_changed", _) => Some(Self::ToolsChanged),
            ("notifications/prompts/list_changed", _) => Some(Self::PromptsChanged),
            ("notifications/resources/list_changed", _) => Some(Self::ResourcesChanged),
            ("notifications/resources/updated", Some(params)) => {
                Some(Self::ResourceUpdated(params))
            }
            ("notifications/tasks", Some(params)) => Some(Self::TaskChanged(params)),
            ("notifications/message", Some(params)) => Some(Self::Message(params)),
            ("notifications/elicitation/complete", Some(params)) => {
                Some(Self::ElicitationComplete(params))
            }
            (method, params) if may_notify(method) => Some(Self::Extension(method, params)),
            _ => None,
        }
    }
}
