//! The lists of one server, and their tools: names, hints and hashes in memory, definitions in the cache file, from which each is read when
//! a client asks for it. An adapted list keeps the one that the server sent.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::value::RawValue;

use super::adapted::form::Adapted;
use super::entries::{Entries, Entry, Kind};
use crate::config::Overrides;
use crate::mcp::{Revision, ServerCapabilities};
use crate::tool::{Hints, ServerName, ToolHash, ToolName};

/// The tools, prompts, resources and templates that one server listed. Their definitions stay in its cache file.
#[derive(Debug, Clone)]
pub struct ServerTools {
    pub(super) name: ServerName,
    pub(super) entries: Vec<ToolEntry>,
    /// Positions in `entries`, by name.
    pub(super) by_name: Vec<u32>,
    pub(super) prompts: Entries,
    pub(super) resources: Entries,
    pub(super) templates: Entries,
    /// The URIs of its tools' interfaces.
    pub(super) interfaces: BTreeSet<String>,
    /// The URIs of the folders of its skills.
    pub(super) skills: BTreeSet<String>,
    pub(super) body: Arc<Body>,
    pub(super) software: Option<String>,
    pub(super) instructions: Option<String>,
    pub(super) capabilities: ServerCapabilities,
    pub(super) revision: Option<Revision>,
    pub(super) flaws: Vec<InvalidEntry>,
    pub(super) listed_at: SystemTime,
    pub(super) fresh_for: Option<Duration>,
    /// The list before it was adapted.
    pub(super) source: Option<Source>,
    /// The server with the tools that do not exist for the clients.
    pub(super) whole: Option<Arc<ServerTools>>,
}

/// The lists of a server as received; each entry in its own bytes.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// The entries of `tools/list`.
    pub tools: Vec<Bytes>,
    /// The entries of `prompts/list`.
    pub prompts: Vec<Bytes>,
    /// The entries of `resources/list`.
    pub resources: Vec<Bytes>,
    /// The entries of `resources/templates/list`.
    pub templates: Vec<Bytes>,
    /// The server's name and version, as it reports them.
    pub software: Option<String>,
    /// Its instructions for agents.
    pub instructions: Option<String>,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// The protocol revision of the listing.
    pub revision: Option<Revision>,
    /// The time for which the lists are fresh.
    pub fresh_for: Option<Duration>,
}

/// One tool: the data needed to find, check and call it.
#[derive(Debug, Clone)]
pub struct ToolEntry {
    /// Its name on the server.
    pub name: ToolName,
    /// The hash of its definition.
    pub hash: ToolHash,
    /// The hints of its annotations.
    pub hints: Hints,
    /// Whether it is meant for an app only and hidden from models.
    pub is_app_only: bool,
    /// Whether it stands for a skill of its server.
    pub(crate) is_skill: bool,
    /// Whether a call of it has to be a task.
    pub(crate) needs_task: bool,
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) adaptation: Option<Adaptation>,
}

/// The effect of an override on a tool.
#[derive(Debug, Clone)]
pub(crate) enum Adaptation {
    /// The tool is shown in this form.
    Done {
        listed: Arc<ToolEntry>,
        form: Arc<Adapted>,
    },
    /// The tool is withheld for this reason.
    Failed(Arc<str>),
}

/// A server's list before it was adapted, and the overrides that were applied.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) listed: Arc<ServerTools>,
    pub(super) overrides: Arc<Overrides>,
}

/// An entry of a server's lists that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidEntry {
    /// The list it is in.
    pub kind: Kind,
    /// Its position, counted from zero.
    pub index: usize,
    /// The fault.
    pub reason: String,
}

/// The location of the definitions.
#[derive(Debug)]
pub(super) enum Body {
    /// In the cache file, from `start` on. The file is held open, so it stays readable when it is replaced.
    File {
        file: File,
        start: u64,
        path: PathBuf,
    },
    /// In memory, because no cache can be written.
    Memory(Bytes),
}

/// A definition that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("the definition of `{name}` in the cache file {} cannot be read: {reason}", .path.display())]
pub struct ReadError {
    name: String,
    path: PathBuf,
    reason: String,
}

impl ServerTools {
    /// The server's name.
    #[must_use]
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// The tools, in the server's own order.
    #[must_use]
    pub fn entries(&self) -> &[ToolEntry] {
        &self.entries
    }

    /// The prompts, by name.
    #[must_use]
    pub fn prompts(&self) -> &Entries {
        &self.prompts
    }

    /// The resources, by URI.
    #[must_use]
    pub fn resources(&self) -> &Entries {
        &self.resources
    }

    /// The resource templates, by URI template.
    #[must_use]
    pub fn templates(&self) -> &Entries {
        &self.templates
    }

    /// Whether the server named the resource in one of its lists, as the interface of one of its tools, or by a skill in whose folder it is.
    /// A folder of another scheme than that of skills may be a part of a disk or host that other servers have as well.
    #[must_use]
    pub fn names_resource(&self, uri: &str) -> bool {
        self.resources.has(uri)
            || self.interfaces.contains(uri)
            || uri.starts_with("skill://") && self.holds_in_skill(uri)
    }

    /// Whether the resource is in the folder of one of its skills.
    #[must_use]
    pub(crate) fn holds_in_skill(&self, uri: &str) -> bool {
        self.skills.iter().any(|folder| uri.starts_with(folder))
    }

    /// Whether the server lists the resource, or has a template with its beginning, which is more than a scheme.
    #[must_use]
    pub(crate) fn claims_resource(&self, uri: &str) -> bool {
        let is_longer = |beginning: &str| {
            let scheme = beginning.find("://").map(|end| end + "://".len());
            scheme.is_some_and(|scheme| beginning.len() > scheme)
        };
        let mut templates = self.templates.as_slice().iter().map(|entry| {
            let end = entry.key.find('{').unwrap_or(entry.key.len());
            &entry.key[..end]
        });
        self.names_resource(uri)
            || templates.any(|beginning| is_longer(beginning) && uri.starts_with(beginning))
    }

    /// Whether one of its tools has an interface.
    #[must_use]
    pub(crate) fn has_interfaces(&self) -> bool {
        !self.interfaces.is_empty()
    }

    /// Entries of the lists that cannot be used.
    #[must_use]
    pub fn flaws(&self) -> &[InvalidEntry] {
        &self.flaws
    }

    /// The server's name and version, as it reports them.
    #[must_use]
    pub fn software(&self) -> Option<&str> {
        self.software.as_deref()
    }

    /// The server's instructions for agents.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// The server's capabilities.
    #[must_use]
    pub fn capabilities(&self) -> &ServerCapabilities {
        &self.capabilities
    }

    /// The revision it spoke when it listed.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// The time at which the server sent the list.
    #[must_use]
    pub fn listed_at(&self) -> SystemTime {
        self.listed_at
    }

    /// Tools of a list that is to be renewed as soon as possible.
    pub(super) fn outdated(self) -> Self {
        Self {
            listed_at: SystemTime::UNIX_EPOCH,
            ..self
        }
    }

    /// The time for which the list is fresh, if the server gave one.
    #[must_use]
    pub fn fresh_for(&self) -> Option<Duration> {
        self.fresh_for
    }

    /// The tool's position in the list.
    #[must_use]
    pub fn position(&self, tool: &ToolName) -> Option<usize> {
        let at = self
            .by_name
            .binary_search_by(|index| self.entries[*index as usize].name.cmp(tool))
            .ok()?;
        Some(self.by_name[at] as usize)
    }

    /// The definition of one of the tools, in the server's own bytes or as the user adapted it.
    ///
    /// # Errors
    /// When the cache file is damaged or gone.
    pub fn json(&self, entry: &ToolEntry) -> Result<Box<RawValue>, ReadError> {
        if let Some(adapted) = entry.adapted() {
            return Ok(adapted.json().to_owned());
        }
        self.read(entry.name.as_str(), entry.hash, entry.offset, entry.length)
    }

    /// The definition of one of the prompts, resources or templates, in the server's own bytes.
    ///
    /// # Errors
    /// When the cache file is damaged or gone.
    pub fn json_of(&self, entry: &Entry) -> Result<Box<RawValue>, ReadError> {
        self.read(&entry.key, entry.hash, entry.offset, entry.length)
    }

    fn read(
        &self,
        name: &str,
        hash: ToolHash,
        offset: u64,
        length: u32,
    ) -> Result<Box<RawValue>, ReadError> {
        let (bytes, path) = match &*self.body {
            Body::Memory(bytes) => {
                let start = usize::try_from(offset).expect("what is in memory has an address");
                (
                    Ok(bytes[start..start + length as usize].to_vec()),
                    PathBuf::new(),
                )
            }
            Body::File { file, start, path } => {
                let mut bytes = vec![0; length as usize];
                (
                    read_exact_at(file, &mut bytes, start + offset).map(|()| bytes),
                    path.clone(),
                )
            }
        };
        let failed = |reason: String| ReadError {
            name: name.to_owned(),
            path: path.clone(),
            reason,
        };
        let bytes = match bytes {
            Ok(bytes) if ToolHash::of(&bytes) == hash => bytes,
            Ok(_) => return Err(failed("its content has changed".to_owned())),
            Err(error) => return Err(failed(error.to_string())),
        };
        let json = String::from_utf8(bytes).map_err(|error| failed(error.to_string()))?;
        RawValue::from_string(json).map_err(|error| failed(error.to_string()))
    }

    /// The server without the prompts, resources and templates for which `is_held` is true; `None` if there are none of those.
    pub(super) fn without_entries(&self, is_held: impl Fn(Kind, &Entry) -> bool) -> Option<Self> {
        let rest = |kind: Kind, entries: &Entries| {
            let kept = entries.as_slice().iter();
            let kept: Vec<Entry> = kept.filter(|it| !is_held(kind, it)).cloned().collect();
            (kept.len() < entries.len()).then(|| Entries::new(kept))
        };
        let prompts = rest(Kind::Prompt, &self.prompts);
        let resources = rest(Kind::Resource, &self.resources);
        let templates = rest(Kind::Template, &self.templates);
        if prompts.is_none() && resources.is_none() && templates.is_none() {
            return None;
        }
        let mut reduced = self.clone();
        reduced.prompts = prompts.unwrap_or(reduced.prompts);
        reduced.resources = resources.unwrap_or(reduced.resources);
        reduced.templates = templates.unwrap_or(reduced.templates);
        Some(reduced)
    }

    /// The server without the tools for which `is_hidden` is true; `None` if there are none of those.
    pub(super) fn without_tools(
        self: &Arc<Self>,
        is_hidden: impl Fn(&ToolEntry) -> bool,
    ) -> Option<Self> {
        let shown = self.entries.iter().filter(|entry| !is_hidden(entry));
        let entries: Vec<ToolEntry> = shown.cloned().collect();
        (entries.len() < self.entries.len()).then(|| Self {
            by_name: Self::order_by_name(&entries),
            entries,
            // They may be about hidden tools.
            flaws: Vec::new(),
            whole: Some(self.clone()),
            ..Self::clone(self)
        })
    }

    /// The positions of the tools in the order of their names.
    pub(super) fn by_name(&self) -> impl Iterator<Item = usize> {
        self.by_name.iter().map(|index| *index as usize)
    }

    /// The positions of `entries` in the order of their names.
    pub(super) fn order_by_name(entries: &[ToolEntry]) -> Vec<u32> {
        order(entries.len(), |at| entries[at].name.as_str())
    }
}

/// The positions of `count` entries in the order of their names.
pub(super) fn order<'n>(count: usize, name: impl Fn(usize) -> &'n str) -> Vec<u32> {
    let count = u32::try_from(count).expect("a list fits into memory");
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_by(|a, b| name(*a as usize).cmp(name(*b as usize)));
    order
}

impl ToolEntry {
    /// The entry as its server listed it.
    #[must_use]
    pub(crate) fn as_listed(&self) -> &Self {
        match &self.adaptation {
            Some(Adaptation::Done { listed, .. }) => listed,
            Some(Adaptation::Failed(_)) | None => self,
        }
    }

    /// How the user has adapted the tool.
    #[must_use]
    pub(crate) fn adapted(&self) -> Option<&Adapted> {
        match &self.adaptation {
            Some(Adaptation::Done { form, .. }) => Some(form),
            Some(Adaptation::Failed(_)) | None => None,
        }
    }

    /// Why the tool's override cannot be applied.
    #[must_use]
    pub(crate) fn override_fault(&self) -> Option<&str> {
        match &self.adaptation {
            Some(Adaptation::Failed(reason)) => Some(reason),
            Some(Adaptation::Done { .. }) | None => None,
        }
    }
}

impl ServerTools {
    /// The server as it listed its tools.
    #[must_use]
    pub(crate) fn as_listed(&self) -> &Self {
        if let Some(whole) = &self.whole {
            return whole.as_listed();
        }
        self.source.as_ref().map_or(self, |from| &from.listed)
    }

    /// The overrides that cannot be applied: the server's own name of the tool, and the reason.
    #[must_use]
    pub(crate) fn override_faults(&self) -> Vec<(String, String)> {
        let entries = self.entries.iter();
        let failed = entries.filter_map(|entry| {
            let reason = entry.override_fault()?.to_owned();
            Some((entry.name.to_string(), reason))
        });
        let has = |name: &str| {
            let mut entries = self.as_listed().entries.iter();
            entries.any(|entry| entry.name.as_str() == name)
        };
        let overrides = self.source.iter().flat_map(|from| from.overrides.keys());
        let unknown = overrides.filter(|name| !has(name));
        let unknown = unknown.map(|name| (name.clone(), "the server has no such tool".to_owned()));
        failed.chain(unknown).collect()
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, buffer, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => {
                buffer = &mut buffer[length..];
                offset += length as u64;
            }
        }
    }
    Ok(())
}
