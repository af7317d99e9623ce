//! The sandbox of a server: the key `sandbox` of its entry.
//!
//! It restricts a program that may be hostile, so a key or value that is not understood is a fault of the entry, never left out.

use std::path::PathBuf;

use jsonc_parser::ast::Value as Written;

use super::error::EntryError;
use super::key::{Table, Value, key, with_default};
use super::reader::{At, Field, Members};

/// The words that stand for a sandbox.
pub(super) const PRESETS: &[&str] = &["strict", "project"];

/// The values of `network`.
const NETWORKS: &[&str] = &["none", "all"];

const EXPECTED: &str = "\"strict\", \"project\", or an object with `preset`, `read`, `write`, `network`, `env` and `image`";

/// The part of this machine that a server may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sandbox {
    /// The part that it reaches without a further key.
    pub preset: SandboxPreset,
    /// Further files and directories that it may read, absolute.
    pub read: Vec<PathBuf>,
    /// Further files and directories that it may change, absolute.
    pub write: Vec<PathBuf>,
    /// Whether it has the network.
    pub has_network: bool,
    /// Further variables of the session that it gets.
    pub env: Vec<String>,
    /// The image of the container that it runs in, in place of this system's own means.
    pub image: Option<String>,
}

/// The part that a sandbox opens without a further key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SandboxPreset {
    /// A data directory of its own and the files of its package.
    #[default]
    Strict,
    /// The session's project, too.
    Project,
}

/// The key as written.
#[derive(Debug, Default)]
pub(super) struct SandboxEntry {
    pub(super) preset: SandboxPreset,
    pub(super) read: Vec<At<String>>,
    pub(super) write: Vec<At<String>>,
    pub(super) has_network: bool,
    pub(super) env: Vec<At<String>>,
    pub(super) image: Option<At<String>>,
    pub(super) offset: usize,
}

/// The keys of `sandbox`.
pub(super) const SANDBOX: Table = &[
    with_default(
        "preset",
        Value::Words(PRESETS),
        "\"strict\"",
        "The server's access without another key: a data directory of its own and the files of its package, or also the session's project.",
    ),
    key(
        "read",
        Value::Texts,
        "Further files and directories that the server may read, relative to that of this file.",
    ),
    key(
        "write",
        Value::Texts,
        "Further files and directories that the server may change, relative to that of this file.",
    ),
    with_default(
        "network",
        Value::Words(NETWORKS),
        "\"none\"",
        "The network that the server has: none, not even this machine's own ports, or all of it.",
    ),
    key(
        "env",
        Value::Texts,
        "Further variables of the session that the server gets, by name.",
    ),
    key(
        "image",
        Value::Text,
        "The image of a container to run `command` in, by `podman` or `docker`.",
    ),
];

impl SandboxPreset {
    /// Its word in the configuration.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Project => "project",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Strict, Self::Project]
            .into_iter()
            .find(|preset| preset.word() == word)
    }
}

impl Sandbox {
    /// Itself in a few words, for a person.
    pub(crate) fn summary(&self) -> String {
        let mut summary = self.preset.word().to_owned();
        for (count, what) in [(self.read.len(), "read"), (self.write.len(), "write")] {
            if count > 0 {
                summary.push_str(&format!(", {what} {count} more"));
            }
        }
        summary.push_str(if self.has_network {
            ", network"
        } else {
            ", no network"
        });
        if self.image.is_some() {
            summary.push_str(", container");
        }
        summary
    }
}

impl SandboxEntry {
    /// Reads the key: a word, or an object.
    pub(super) fn read(field: &Field<'_>) -> Result<Self, At<EntryError>> {
        let offset = field.offset();
        if let Some(word) = field.word() {
            let preset = SandboxPreset::parse(word).ok_or_else(|| field.wrong(EXPECTED))?;
            return Ok(Self {
                preset,
                offset,
                ..Self::default()
            });
        }
        let object = field.object().map_err(|_| field.wrong(EXPECTED))?;
        let mut seen: Vec<&str> = Vec::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let problem = if !SANDBOX.iter().any(|known| known.name == name) {
                "is an unknown key; `sandbox` has `preset`, `read`, `write`, `network`, `env` and `image`"
            } else if seen.contains(&name) {
                "is there twice"
            } else if matches!(property.value, Written::NullKeyword(_)) {
                "is null"
            } else {
                seen.push(name);
                continue;
            };
            let key = format!("sandbox.{name}");
            return Err(At::new(
                property.range.start,
                EntryError::Unusable { key, problem },
            ));
        }
        let scope = field.scope();
        let mut members = Members::new(object, SANDBOX, scope, "sandbox.", field.report());
        let preset = members.read("preset", |field| {
            let preset = field.word().and_then(SandboxPreset::parse);
            preset.ok_or_else(|| field.wrong("\"strict\" or \"project\""))
        })?;
        let read = members.read("read", Field::texts)?;
        let write = members.read("write", Field::texts)?;
        let has_network = members.read("network", |field| match field.word() {
            Some("none") => Ok(false),
            Some("all") => Ok(true),
            _ => Err(field.wrong("\"none\" or \"all\"; single hosts cannot be named")),
        })?;
        let env = members.read("env", Field::texts)?;
        let image = members.read("image", Field::text)?;
        members.finish();
        Ok(Self {
            preset: preset.unwrap_or_default(),
            read: read.unwrap_or_default(),
            write: write.unwrap_or_default(),
            has_network: has_network.unwrap_or(false),
            env: env.unwrap_or_default(),
            image,
            offset,
        })
    }
}
