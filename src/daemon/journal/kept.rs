//! The lines that restore a session's state: its handshake, its log level, and the resources and lists that it follows.

use std::io;

use bytes::Bytes;

use super::Store;
use crate::mcp;
use crate::mcp::{Envelope, Message, Object, RequestId};

/// Maximum length of a kept line, in bytes.
const LONGEST: usize = 256 * 1024;

/// The kept lines.
#[derive(Debug)]
pub(super) struct Kept(Vec<KeptLine>);

#[derive(Debug)]
pub(super) struct KeptLine {
    /// The end of the line in the client's stream.
    pub(super) end: u64,
    pub(super) line: Bytes,
    role: Role,
}

/// The role of a line. A later line replaces an earlier one of the same role.
#[derive(Debug, PartialEq, Eq)]
enum Role {
    Handshake,
    Initialized,
    LogLevel,
    Resource(String),
    /// An open subscription of the modern era, identified by its request.
    Subscription(RequestId),
}

/// The effect of a line on the kept ones.
enum Effect {
    Keep(Role),
    Forget(Role),
}

impl KeptLine {
    /// The line that ends at `end`. `None` for a line that is not kept.
    pub(super) fn new(end: u64, line: Bytes) -> Option<Self> {
        let effect = Envelope::parse(&line).ok().as_ref().and_then(effect)?;
        let Effect::Keep(role) = effect else {
            return None;
        };
        Some(Self { end, line, role })
    }
}

impl Kept {
    pub(super) fn new(lines: Vec<KeptLine>) -> Self {
        Self(lines)
    }

    /// The lines that end before `done`. Later ones are read again from the stream.
    pub(super) fn before(&self, done: u64) -> Vec<mcp::Kept> {
        let lines = self.0.iter().filter(|kept| kept.end <= done);
        lines
            .map(|kept| mcp::Kept {
                line: kept.line.clone(),
                is_open: matches!(kept.role, Role::Subscription(_)),
            })
            .collect()
    }

    /// Whether the line that ends at `end` is kept.
    pub(super) fn has(&self, end: u64) -> bool {
        self.0.iter().any(|kept| kept.end == end)
    }

    /// Keeps `line`, whose content is `envelope`, if it is part of the session's state. Returns whether it is a
    /// subscription, which stays open.
    pub(super) fn note(
        &mut self,
        line: &Bytes,
        envelope: &Envelope<'_>,
        end: u64,
        store: &mut dyn Store,
    ) -> io::Result<bool> {
        let Some(effect) = effect(envelope).filter(|_| line.len() <= LONGEST) else {
            return Ok(false);
        };
        let before = self.0.len();
        let mut stays_open = false;
        match effect {
            Effect::Keep(role) => {
                stays_open = matches!(role, Role::Subscription(_));
                self.0.retain(|kept| kept.role != role);
                let line = Bytes::copy_from_slice(line);
                self.0.push(KeptLine { end, line, role });
            }
            Effect::Forget(role) => {
                self.0.retain(|kept| kept.role != role);
                if self.0.len() == before {
                    return Ok(false);
                }
            }
        }
        store.keep(&self.0)?;
        Ok(stays_open)
    }
}

/// The effect of a line with this content on the kept ones. `None` for almost all lines.
fn effect(envelope: &Envelope<'_>) -> Option<Effect> {
    let Envelope::Single(message) = envelope else {
        return None;
    };
    match message {
        Message::Request(request) => {
            let uri = || Object::parse(request.params?).ok()?.text("uri");
            match &*request.method {
                "initialize" => Some(Effect::Keep(Role::Handshake)),
                "logging/setLevel" => Some(Effect::Keep(Role::LogLevel)),
                "resources/subscribe" => Some(Effect::Keep(Role::Resource(uri()?))),
                "resources/unsubscribe" => Some(Effect::Forget(Role::Resource(uri()?))),
                "subscriptions/listen" => {
                    Some(Effect::Keep(Role::Subscription(request.id.clone())))
                }
                _ => None,
            }
        }
        Message::Notification { method, params } => match &**method {
            "notifications/initialized" => Some(Effect::Keep(Role::Initialized)),
            "notifications/cancelled" => {
                let id = RequestId::parse(Object::parse((*params)?).ok()?.get("requestId")?)?;
                Some(Effect::Forget(Role::Subscription(id)))
            }
            _ => None,
        },
        Message::Response { .. } => None,
    }
}
