use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use serde_json::value::RawValue;

use super::entries::{Entries, Entry, Kind};
use crate::mcp::{Revision, ServerCapabilities};
use crate::tool::{Hints, ServerName, ToolHash, ToolName};

/// The tools that one server listed, and its prompts, resources and templates; the definitions left where they are: in
/// its cache file.
#[derive(Debug)]
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
    pub(super) body: Body,
    pub(super) software: Option<String>,
    pub(super) instructions: Option<String>,
    pub(super) capabilities: ServerCapabilities,
    pub(super) revision: Option<Revision>,
    pub(super) flaws: Vec<InvalidEntry>,
    pub(super) listed_at: SystemTime,
    pub(super) fresh_for: Option<Duration>,
}

/// The lists of a server as they came; each entry in its own bytes.
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
    /// The server's name and version for itself.
    pub software: Option<String>,
    /// What it tells agents about itself.
    pub instructions: Option<String>,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// The revision it speaks.
    pub revision: Option<Revision>,
    /// How long all of it stays fresh.
    pub fresh_for: Option<Duration>,
}

/// One tool: what is needed to find, check and call it.
#[derive(Debug, Clone)]
pub struct ToolEntry {
    /// Its name on the server.
    pub name: ToolName,
    /// The hash of its definition.
    pub hash: ToolHash,
    /// What its annotations claim.
    pub hints: Hints,
    /// Whether no model may see it.
    pub is_app_only: bool,
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// An entry of one of a server's lists that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidEntry {
    /// What it should have been.
    pub kind: Kind,
    /// Which entry, counted from zero.
    pub index: usize,
    /// What is wrong with it.
    pub reason: String,
}

/// Where the definitions are.
#[derive(Debug)]
pub(super) enum Body {
    /// In the cache file, from `start` on. It stays readable when it is replaced, as the file is held open.
    File {
        file: File,
        start: u64,
        path: PathBuf,
    },
    /// Here, where no cache can be written.
    Memory(Bytes),
}

/// A definition cannot be read.
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

    /// Whether it has named a resource in one of its lists, or as the interface of one of its tools.
    #[must_use]
    pub fn names_resource(&self, uri: &str) -> bool {
        self.resources.has(uri) || self.interfaces.contains(uri)
    }

    /// Entries of the lists that cannot be used.
    #[must_use]
    pub fn flaws(&self) -> &[InvalidEntry] {
        &self.flaws
    }

    /// The server's name and version for itself.
    #[must_use]
    pub fn software(&self) -> Option<&str> {
        self.software.as_deref()
    }

    /// What the server tells agents about itself.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// What the server offers.
    #[must_use]
    pub fn capabilities(&self) -> &ServerCapabilities {
        &self.capabilities
    }

    /// The revision it spoke when it listed.
    #[must_use]
    pub fn revision(&self) -> Option<Revision> {
        self.revision
    }

    /// When the list came from the server.
    #[must_use]
    pub fn listed_at(&self) -> SystemTime {
        self.listed_at
    }

    /// How long after that it is fresh, if the server said so.
    #[must_use]
    pub fn fresh_for(&self) -> Option<Duration> {
        self.fresh_for
    }

    /// Where in the list the tool stands.
    #[must_use]
    pub fn position(&self, tool: &ToolName) -> Option<usize> {
        let at = self
            .by_name
            .binary_search_by(|index| self.entries[*index as usize].name.cmp(tool))
            .ok()?;
        Some(self.by_name[at] as usize)
    }

    /// The definition of one of the tools, in the server's own bytes.
    ///
    /// # Errors
    /// When the cache file is damaged or gone.
    pub fn json(&self, entry: &ToolEntry) -> Result<Box<RawValue>, ReadError> {
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
        let (bytes, path) = match &self.body {
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

    /// The positions of the tools in the order of their names.
    pub(super) fn by_name(&self) -> impl Iterator<Item = usize> {
        self.by_name.iter().map(|index| *index as usize)
    }

    /// The positions of `entries` in the order of their names.
    pub(super) fn order_by_name(entries: &[ToolEntry]) -> Vec<u32> {
        let mut order: Vec<u32> =
            (0..u32::try_from(entries.len()).expect("a list fits into memory")).collect();
        order.sort_by(|a, b| entries[*a as usize].name.cmp(&entries[*b as usize].name));
        order
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
