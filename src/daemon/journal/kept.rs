//! The lines that restore a session's state: its handshake, its log level, and the resources and lists that it follows.
//!
//! When one changes, all of them are written again after the previous copy. Then the head of the marks is set to the new
//! copy, so that a kill leaves one of both.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use bytes::Bytes;

use super::marks::Marks;
use crate::mcp;
use crate::mcp::{Envelope, Message, Object, RequestId};

/// Maximum length of a kept line, in bytes.
const LONGEST: usize = 256 * 1024;

/// Beyond this position, the lines are written to the start of the file again.
const TURN: u64 = 1024 * 1024;

/// The kept lines and their file. A record is the line's end (8 bytes), its length (8 bytes) and its text.
#[derive(Debug)]
pub(super) struct Kept {
    file: File,
    lines: Vec<KeptLine>,
    /// The byte offset of the current records in the file.
    offset: u64,
    /// The length of the current records, in bytes.
    length: u64,
}

#[derive(Debug)]
struct KeptLine {
    /// The end of the line in the client's stream.
    end: u64,
    line: Bytes,
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

impl Kept {
    /// Reads the records at `offset`, which take `length` bytes.
    pub(super) fn open(file: File, (offset, length): (u64, u64)) -> io::Result<Self> {
        let mut text = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        file.read_exact_at(&mut text, offset)?;
        let mut text = Bytes::from(text);
        let mut lines = Vec::new();
        while text.len() >= 16 {
            let (end, length) = (number(&text[..8]), number(&text[8..16]));
            let length = usize::try_from(length).map_err(io::Error::other)?;
            let mut record = text.split_to(text.len().min(16 + length));
            let line = record.split_off(16);
            let role = Envelope::parse(&line).ok().as_ref().and_then(effect);
            if let Some(Effect::Keep(role)) = role {
                lines.push(KeptLine { end, line, role });
            }
        }
        Ok(Self {
            file,
            lines,
            offset,
            length,
        })
    }

    /// The lines that end before `done`. Later ones are read again from the stream.
    pub(super) fn before(&self, done: u64) -> Vec<mcp::Kept> {
        let lines = self.lines.iter().filter(|kept| kept.end <= done);
        lines
            .map(|kept| mcp::Kept {
                line: kept.line.clone(),
                is_open: matches!(kept.role, Role::Subscription(_)),
            })
            .collect()
    }

    /// Whether the line that ends at `end` is kept.
    pub(super) fn has(&self, end: u64) -> bool {
        self.lines.iter().any(|kept| kept.end == end)
    }

    /// Keeps `line`, whose content is `envelope`, if it is part of the session's state. Returns whether it is a
    /// subscription, which stays open.
    pub(super) fn note(
        &mut self,
        line: &Bytes,
        envelope: &Envelope<'_>,
        end: u64,
        marks: &Marks,
    ) -> io::Result<bool> {
        let Some(effect) = effect(envelope).filter(|_| line.len() <= LONGEST) else {
            return Ok(false);
        };
        let before = self.lines.len();
        let mut stays_open = false;
        match effect {
            Effect::Keep(role) => {
                stays_open = matches!(role, Role::Subscription(_));
                self.lines.retain(|kept| kept.role != role);
                let line = Bytes::copy_from_slice(line);
                self.lines.push(KeptLine { end, line, role });
            }
            Effect::Forget(role) => {
                self.lines.retain(|kept| kept.role != role);
                if self.lines.len() == before {
                    return Ok(false);
                }
            }
        }
        self.write(marks)?;
        Ok(stays_open)
    }

    /// Writes all lines to a new offset and sets `marks` to it.
    fn write(&mut self, marks: &Marks) -> io::Result<()> {
        let mut text = Vec::new();
        for KeptLine { end, line, .. } in &self.lines {
            text.extend_from_slice(&end.to_le_bytes());
            text.extend_from_slice(&(line.len() as u64).to_le_bytes());
            text.extend_from_slice(line);
        }
        let length = text.len() as u64;
        // The current lines are never overwritten.
        let next = self.offset + self.length;
        let offset = if next > TURN && length <= self.offset {
            0
        } else {
            next
        };
        self.file.write_all_at(&text, offset)?;
        marks.set_kept(offset, length)?;
        (self.offset, self.length) = (offset, length);
        Ok(())
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

fn number(bytes: &[u8]) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[..8]);
    u64::from_le_bytes(eight)
}
