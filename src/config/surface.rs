//! The names of surfaces: how clients see the servers' tools.

use super::error::EntryError;
use super::reader::{At, Field};

pub(super) const SURFACE_EXPECTED: &str = "\"auto\", \"tools\" or \"direct\"";

/// The values of `surface`.
pub(super) const SURFACES: &[&str] = &["auto", "tools", "direct"];

/// The values of `surface.read_tool`.
pub(super) const READ_TOOL: &[&str] = &["auto", "on", "off"];

/// How a client is to see the servers' tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Surface {
    /// Directly if they are few, otherwise by the meta-tools.
    Auto,
    /// By the meta-tools.
    #[default]
    Tools,
    /// Each tool under its own name.
    Direct,
}

/// Whether a client gets `execute_read_tool`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ReadTool {
    /// If its surface is chosen by `auto` and it was seen to help with it.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// The surface that the way to mcpzip asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SurfaceRequest {
    /// That of the command line.
    pub flag: Option<Surface>,
    /// That of the section `http`, for clients over HTTP.
    pub http: Option<Surface>,
}

/// The setting that decides a surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SurfaceSource {
    /// The command line.
    Flag,
    /// A profile of the session.
    Profile,
    /// The client's entry in `clients`.
    Client,
    /// The section `http`.
    Http,
    /// The key `surface`, or its default.
    File,
}

impl Surface {
    /// The surface with this name.
    #[must_use]
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "tools" => Some(Self::Tools),
            "direct" => Some(Self::Direct),
            _ => None,
        }
    }

    /// The name of the surface in the configuration.
    #[must_use]
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Tools => "tools",
            Self::Direct => "direct",
        }
    }
}

impl ReadTool {
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "on" => Some(Self::On),
            "off" => Some(Self::Off),
            _ => None,
        }
    }

    pub(super) fn text(self) -> String {
        let word = match self {
            Self::Auto => "auto",
            Self::On => "on",
            Self::Off => "off",
        };
        word.to_owned()
    }
}

/// Reads the name of a surface.
pub(super) fn surface_name(field: &Field<'_>) -> Result<Surface, At<EntryError>> {
    let surface = field.word().and_then(Surface::parse);
    surface.ok_or_else(|| field.wrong(SURFACE_EXPECTED))
}
