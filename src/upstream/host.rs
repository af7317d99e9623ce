//! The clients behind the requests of a connection, as their servers see them.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{Listing, ServerReply};
use crate::mcp::{ClientCapabilities, LogLevel, Outbox};
use crate::tool::ServerName;

/// An answer that a client has yet to give.
pub(crate) type Asking = Pin<Box<dyn Future<Output = ServerReply> + Send>>;

/// A comparison of a listing with what was first seen.
pub(crate) type Comparing = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// A request of a server to the client it works for.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    /// Which server asks.
    pub server: ServerName,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// Its parameters, as they came.
    pub params: Option<Bytes>,
}

/// The client for whom a request is made.
pub(crate) trait Host: Send + Sync {
    /// What it can be asked, which decides over which connection the request goes.
    fn capabilities(&self) -> ClientCapabilities;

    /// Whether it can be asked in this request.
    fn is_askable(&self) -> bool {
        true
    }

    /// Tells clients apart: equal for the requests of one client.
    fn client(&self) -> u64;

    /// Where what it asked for goes, if it is the only client: a server whose answers it does not take is not read from.
    fn response_outbox(&self) -> Option<Outbox> {
        None
    }

    /// Its request is about to be written to a server.
    fn handing_over(&self) {}

    /// Whether it wants to hear of progress.
    fn wants_progress(&self) -> bool;

    /// The level from which on it wants log messages of this request (2026-07-28), as a JSON string.
    fn log_level(&self) -> Option<String>;

    /// Takes the `params` of a progress notification; must not block.
    fn progress(&self, params: &RawValue);

    /// Takes the `params` of a log message; must not block.
    fn log(&self, server: &ServerName, params: &RawValue);

    /// Asks it. Dropping the future takes the question back.
    fn ask(&self, question: Question) -> Asking;
}

/// All clients there are, as servers see them outside of any request.
pub(crate) trait Audience: Send + Sync {
    /// What a new connection declares where no request says more: what the client that came last can be asked.
    fn capabilities(&self) -> ClientCapabilities;

    /// The level from which on log messages are wanted of servers that can be told, if somebody said so.
    fn log_level(&self) -> Option<LogLevel>;

    /// The clients that can be asked `method` outside of any request: with more than one, nothing says which is meant.
    fn hosts(&self, server: &ServerName, method: &str) -> Vec<Arc<dyn Host>>;

    /// The directories that a server is told that asks for roots, where it serves several sessions; otherwise its client is asked.
    fn roots(&self) -> Option<Vec<PathBuf>> {
        None
    }

    /// Compares what `server` lists with what was first seen, and keeps it; an error says why that cannot be done.
    fn compare(&self, server: &ServerName, listing: Listing) -> Comparing;

    /// Whether a tool of `server` must not be called as things stand now.
    fn is_withheld(&self, server: &ServerName, tool: &str) -> bool;

    /// Hears what `server` says unasked; must not block.
    fn noticed(&self, server: &ServerName, notice: Notice<'_>);
}

/// What a server says to whom it may concern.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Notice<'a> {
    /// Its tools are others now.
    ToolsChanged,
    /// Its prompts are others now.
    PromptsChanged,
    /// Its resources are others now.
    ResourcesChanged,
    /// A resource has another content; `params` names it by `uri`.
    ResourceUpdated(&'a RawValue),
    /// A log message, by its `params`.
    Message(&'a RawValue),
    /// What the user was sent to a URL for is through (2025-11-25), by its `params`.
    ElicitationComplete(&'a RawValue),
}

impl<'a> Notice<'a> {
    /// Reads a notification; `None` for one that concerns nobody.
    #[must_use]
    pub(crate) fn read(method: &str, params: Option<&'a RawValue>) -> Option<Self> {
        match (method, params) {
            ("notifications/tools/list_changed", _) => Some(Self::ToolsChanged),
            ("notifications/prompts/list_changed", _) => Some(Self::PromptsChanged),
            ("notifications/resources/list_changed", _) => Some(Self::ResourcesChanged),
            ("notifications/resources/updated", Some(params)) => {
                Some(Self::ResourceUpdated(params))
            }
            ("notifications/message", Some(params)) => Some(Self::Message(params)),
            ("notifications/elicitation/complete", Some(params)) => {
                Some(Self::ElicitationComplete(params))
            }
            _ => None,
        }
    }
}
