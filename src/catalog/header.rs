//! The header of a cache file: the properties of each definition that are known without reading it.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::num::TryFromIntError;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::entries::{Entries, Entry, Kind};
use super::server_tools::{Body, InvalidEntry, Listed, ServerTools, ToolEntry};
use crate::mcp::{Object, Revision, ServerCapabilities};
use crate::tool::{Definition, DefinitionError, Effect, Hints, ServerName, ToolHash, ToolName};

/// The header. The definitions follow in the order of the lists: tools, prompts, resources, templates.
#[derive(Debug, Serialize, Deserialize, PartialEq)]
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
    prompts: Vec<HeaderEntry<'a>>,
    resources: Vec<HeaderEntry<'a>>,
    templates: Vec<HeaderEntry<'a>>,
    interfaces: BTreeSet<String>,
    /// The folders of its skills. Lists of older versions have none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    skills: BTreeSet<String>,
    flaws: Vec<(Kind, usize, String)>,
}

/// One tool. Its texts are borrowed from the file, because a start waits for thousands of them.
#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct HeaderTool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    hash: ToolHash,
    length: u32,
    /// `readOnlyHint`, `destructiveHint`, `idempotentHint`.
    hints: (Option<bool>, Option<bool>, Option<bool>),
    /// The guessed effect of a tool without hints. Lists of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guess: Option<Effect>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_app_only: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    needs_task: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_skill: bool,
    #[serde(skip)]
    interfaces: Vec<String>,
    #[serde(skip)]
    skill: Option<String>,
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct HeaderEntry<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    hash: ToolHash,
    length: u32,
}

impl Header<'_> {
    /// Sorts out the usable entries and joins their definitions.
    pub(super) fn of(server: &ServerName, listed: &Listed) -> (Self, Vec<u8>) {
        let mut body = Vec::new();
        let mut flaws = Vec::new();
        let mut tools = usable(
            Kind::Tool,
            &listed.tools,
            &mut body,
            &mut flaws,
            HeaderTool::of,
            |tool| &tool.name,
        );
        let interfaces = tools
            .iter_mut()
            .flat_map(|tool: &mut HeaderTool<'_>| std::mem::take(&mut tool.interfaces))
            .collect();
        let skills = tools.iter_mut().filter_map(|tool| tool.skill.take());
        let skills = skills.collect();
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
            by_name: ServerTools::order_by_name(&entries),
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
    fn of(json: &[u8]) -> Result<Self, EntryFault> {
        let raw: &RawValue = serde_json::from_slice(json)?;
        let definition = Definition::parse(raw)?;
        let hints = definition.hints;
        Ok(Self {
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
            interfaces: definition.interfaces,
            skill: definition.skill,
        })
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
