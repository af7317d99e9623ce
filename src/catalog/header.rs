//! The header of a cache file: the properties of each definition that are known without reading it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::num::TryFromIntError;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::entries::{Entries, Entry, Kind};
use super::server_tools::{Body, InvalidEntry, Listed, ServerTools, ToolEntry, order};
use crate::mcp::{Object, Revision, ServerCapabilities};
use crate::tool::{Definition, DefinitionError, Effect, Hints, ServerName, ToolHash, ToolName};

/// The header. The definitions follow in the order of the lists: tools, prompts, resources, templates.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header<'a> {
    pub(super) server: String,
    software: Option<String>,
    instructions: Option<String>,
    /// The server's capabilities, in its own JSON.
    capabilities: String,
    revision: Option<String>,
    fresh_for_ms: Option<u64>,
    #[serde(borrow)]
    tools: Vec<HeaderTool<'a>>,
    /// The positions of the tools in the order of their names.
    by_name: Vec<u32>,
    prompts: Vec<HeaderEntry<'a>>,
    resources: Vec<HeaderEntry<'a>>,
    templates: Vec<HeaderEntry<'a>>,
    interfaces: BTreeSet<String>,
    /// The folders of its skills.
    skills: BTreeSet<String>,
    flaws: Vec<(Kind, usize, String)>,
}

/// One tool. Its texts are borrowed from the file, because a start waits for thousands of them.
#[derive(Debug, Serialize, Deserialize)]
struct HeaderTool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    hash: ToolHash,
    length: u32,
    /// `readOnlyHint`, `destructiveHint`, `idempotentHint`.
    hints: (Option<bool>, Option<bool>, Option<bool>),
    /// The guessed effect of a tool without hints.
    guess: Option<Effect>,
    is_app_only: bool,
    needs_task: bool,
    is_skill: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct HeaderEntry<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    hash: ToolHash,
    length: u32,
}

impl<'a> Header<'a> {
    /// Reads what [`Header::write`] wrote.
    pub(super) fn read(bytes: &'a [u8]) -> io::Result<Self> {
        postcard::from_bytes(bytes).map_err(io::Error::other)
    }

    /// The header as bytes: ten thousand tools are read from them in a fifth of the time that JSON takes.
    pub(super) fn write(&self) -> io::Result<Vec<u8>> {
        postcard::to_extend(self, Vec::new()).map_err(io::Error::other)
    }

    /// Sorts out the usable entries and joins their definitions.
    pub(super) fn of(server: &ServerName, listed: &Listed) -> (Self, Vec<u8>) {
        let mut body = Vec::new();
        let mut flaws = Vec::new();
        let found = usable(
            Kind::Tool,
            &listed.tools,
            &mut body,
            &mut flaws,
            HeaderTool::of,
            |(tool, ..)| &tool.name,
        );
        let (mut interfaces, mut skills) = (BTreeSet::new(), BTreeSet::new());
        let tools = found.into_iter().map(|(tool, shown, skill)| {
            interfaces.extend(shown);
            skills.extend(skill);
            tool
        });
        let tools: Vec<HeaderTool<'_>> = tools.collect();
        let mut others = |kind: Kind, entries: &[Bytes]| {
            usable(
                kind,
                entries,
                &mut body,
                &mut flaws,
                |json| HeaderEntry::of(kind, json),
                |entry| &entry.key,
            )
        };
        let prompts = others(Kind::Prompt, &listed.prompts);
        let resources = others(Kind::Resource, &listed.resources);
        let templates = others(Kind::Template, &listed.templates);
        let header = Self {
            server: server.to_string(),
            software: listed.software.clone(),
            instructions: listed.instructions.clone(),
            capabilities: listed.capabilities.as_json().to_owned(),
            revision: listed.revision.map(|revision| revision.to_string()),
            fresh_for_ms: listed
                .fresh_for
                .map(|fresh| u64::try_from(fresh.as_millis()).unwrap_or(u64::MAX)),
            by_name: order(tools.len(), |at| &tools[at].name),
            tools,
            prompts,
            resources,
            templates,
            interfaces,
            skills,
            flaws,
        };
        (header, body)
    }

    /// Converts the header to the catalog's form. `None` if a name or the capabilities are invalid.
    pub(super) fn to_tools(
        &self,
        name: ServerName,
        body: Body,
        listed_at: SystemTime,
    ) -> Option<ServerTools> {
        let mut offset = 0;
        let mut next = |length: u32| {
            let start = offset;
            offset += u64::from(length);
            start
        };
        let tools = self.tools.iter().map(|tool| {
            let (read_only, destructive, idempotent) = tool.hints;
            Some(ToolEntry {
                name: ToolName::new(&tool.name).ok()?,
                hash: tool.hash,
                hints: Hints {
                    read_only,
                    destructive,
                    idempotent,
                    guess: tool.guess,
                },
                is_app_only: tool.is_app_only,
                needs_task: tool.needs_task,
                is_skill: tool.is_skill,
                offset: next(tool.length),
                length: tool.length,
                adaptation: None,
            })
        });
        let entries: Vec<ToolEntry> = tools.collect::<Option<_>>()?;
        let mut others = |list: &[HeaderEntry<'_>]| {
            let entries = list.iter().map(|entry| Entry {
                key: entry.key.as_ref().into(),
                hash: entry.hash,
                offset: next(entry.length),
                length: entry.length,
            });
            Entries::new(entries.collect())
        };
        let (prompts, resources, templates) = (
            others(&self.prompts),
            others(&self.resources),
            others(&self.templates),
        );
        let capabilities: &RawValue = serde_json::from_str(&self.capabilities).ok()?;
        let flaws = self.flaws.iter().map(|(kind, index, reason)| InvalidEntry {
            kind: *kind,
            index: *index,
            reason: reason.clone(),
        });
        Some(ServerTools {
            name,
            by_name: self.order_of(&entries),
            entries,
            prompts,
            resources,
            templates,
            interfaces: self.interfaces.clone(),
            skills: self.skills.clone(),
            body: Arc::new(body),
            software: self.software.clone(),
            instructions: self.instructions.clone(),
            capabilities: ServerCapabilities::new(capabilities),
            revision: self.revision.as_deref().and_then(Revision::parse),
            flaws: flaws.collect(),
            listed_at,
            fresh_for: self.fresh_for_ms.map(Duration::from_millis),
            source: None,
            whole: None,
        })
    }

    /// The positions of `entries`, which are the tools, by name: as they were written if that is their order, because sorting takes longer.
    fn order_of(&self, entries: &[ToolEntry]) -> Vec<u32> {
        let (order, name) = (&self.by_name, |at: u32| &entries[at as usize].name);
        let is_whole = order.len() == entries.len()
            && order.iter().all(|at| (*at as usize) < entries.len())
            && order.is_sorted_by(|a, b| name(*a) < name(*b));
        match is_whole {
            true => order.clone(),
            false => ServerTools::order_by_name(entries),
        }
    }

    /// The length of the definitions that follow, in bytes.
    pub(super) fn body_length(&self) -> u64 {
        let others = [&self.prompts, &self.resources, &self.templates];
        let others = others.into_iter().flatten().map(|entry| entry.length);
        self.tools
            .iter()
            .map(|tool| tool.length)
            .chain(others)
            .map(u64::from)
            .sum()
    }
}

/// The usable entries of a list: the first of each name. The faults of the others go to `flaws`.
fn usable<T>(
    kind: Kind,
    entries: &[Bytes],
    body: &mut Vec<u8>,
    flaws: &mut Vec<(Kind, usize, String)>,
    read: impl Fn(&[u8]) -> Result<T, EntryFault>,
    name: impl Fn(&T) -> &str,
) -> Vec<T> {
    let mut found = Vec::new();
    let mut names = HashSet::new();
    for (index, json) in entries.iter().enumerate() {
        let entry = read(json).and_then(|entry| match names.insert(name(&entry).to_owned()) {
            true => Ok(entry),
            false => Err(EntryFault::Second {
                kind,
                name: name(&entry).to_owned(),
            }),
        });
        match entry {
            Ok(entry) => {
                body.extend_from_slice(json);
                found.push(entry);
            }
            Err(fault) => flaws.push((kind, index, fault.to_string())),
        }
    }
    found
}

/// The fault of a listed entry.
#[derive(Debug, thiserror::Error)]
enum EntryFault {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    #[error("the entry is not an object")]
    NotAnObject,
    #[error("the entry has no `{0}`")]
    NoKey(&'static str),
    #[error("the definition is over 4 GB")]
    TooLong(#[from] TryFromIntError),
    #[error("a second {kind} named `{name}`")]
    Second { kind: Kind, name: String },
}

impl HeaderTool<'_> {
    /// The tool, the URIs of its interfaces, and the folder of the skill that it stands for.
    fn of(json: &[u8]) -> Result<(Self, Vec<String>, Option<String>), EntryFault> {
        let raw: &RawValue = serde_json::from_slice(json)?;
        let definition = Definition::parse(raw)?;
        let hints = definition.hints;
        let tool = Self {
            name: definition.name.as_str().to_owned().into(),
            hash: ToolHash::of(json),
            length: json.len().try_into()?,
            hints: (hints.read_only, hints.destructive, hints.idempotent),
            guess: match hints.is_declared() {
                true => None,
                false => Effect::of(&definition),
            },
            is_app_only: definition.is_app_only,
            needs_task: definition.needs_task,
            is_skill: definition.is_skill,
        };
        Ok((tool, definition.interfaces, definition.skill))
    }
}

impl HeaderEntry<'_> {
    fn of(kind: Kind, json: &[u8]) -> Result<Self, EntryFault> {
        let raw: &RawValue = serde_json::from_slice(json)?;
        let object = Object::parse(raw).map_err(|_| EntryFault::NotAnObject)?;
        let key = object.text(kind.key()).filter(|key| !key.is_empty());
        let key = key.ok_or(EntryFault::NoKey(kind.key()))?;
        Ok(Self {
            key: key.into(),
            hash: ToolHash::of(json),
            length: json.len().try_into()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Kind;

    fn server() -> ServerName {
        ServerName::new("a").unwrap()
    }

    fn list(names: &[&str], key: &str) -> Vec<Bytes> {
        let entries = names.iter();
        let entries = entries.map(|name| serde_json::json!({ key: name }).to_string().into());
        entries.collect()
    }

    fn converted(header: &Header<'_>) -> Option<ServerTools> {
        header.to_tools(server(), Body::Memory(Bytes::new()), SystemTime::now())
    }

    #[test]
    fn an_order_that_is_not_that_of_the_names_is_not_used() {
        let listed = Listed {
            tools: list(&["c", "a", "b"], "name"),
            ..Listed::default()
        };
        let (mut header, _) = Header::of(&server(), &listed);
        assert_eq!(header.by_name, [1, 2, 0]);
        for odd in [
            &[][..],
            &[0],
            &[1, 2],
            &[0, 1, 2],
            &[1, 1, 0],
            &[1, 2, 3],
            &[1, 2, 0, 0],
        ] {
            header.by_name = odd.to_vec();
            let tools = converted(&header).unwrap();
            assert_eq!(tools.by_name().collect::<Vec<_>>(), [1, 2, 0], "{odd:?}");
            assert_eq!(tools.position(&ToolName::new("b").unwrap()), Some(2));
        }
    }

    /// The hash before a header proves that it is as it was written, but not who wrote it.
    #[test]
    fn an_odd_header_is_read_or_refused_but_stops_nothing() {
        let listed = Listed {
            tools: list(&["t", "ü"], "name"),
            resources: list(&["a:b", ""], "uri"),
            instructions: Some("use it".to_owned()),
            ..Listed::default()
        };
        let (header, _) = Header::of(&server(), &listed);
        assert_eq!(header.flaws[0].0, Kind::Resource);
        let whole = header.write().unwrap();
        let tools = converted(&Header::read(&whole).unwrap()).unwrap();
        assert_eq!(tools.entries().len(), 2);
        let (mut refused, mut used) = (0, 0);
        let mut check = |bytes: &[u8]| match Header::read(bytes) {
            Err(_) => refused += 1,
            Ok(header) => {
                let _ = (header.body_length(), converted(&header));
                used += 1;
            }
        };
        for at in 0..whole.len() {
            for byte in 0..=u8::MAX {
                let mut odd = whole.clone();
                odd[at] = byte;
                check(&odd);
            }
            check(&whole[..at]);
        }
        assert!(refused > whole.len() && used > whole.len());
    }
}
