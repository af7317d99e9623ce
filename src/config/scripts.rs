//! The options for scripts.

use super::error::EntryError;
use super::reader::{At, Field};

/// The default number of calls that one script may make.
const CALLS: u32 = 100;

/// The options for scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScriptOptions {
    /// Whether agents can run scripts.
    pub is_on: bool,
    pub allow: ScriptTools,
    /// The number of calls that one script may make.
    pub max_calls: u32,
}

/// The tools that a script may call, as far as the rules permit them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ScriptTools {
    /// Those that declare to be read-only.
    #[default]
    ReadOnly,
    All,
}

impl Default for ScriptOptions {
    fn default() -> Self {
        Self {
            is_on: false,
            allow: ScriptTools::default(),
            max_calls: CALLS,
        }
    }
}

impl ScriptOptions {
    pub(super) fn text(self) -> String {
        self.is_on.to_string()
    }
}

/// Reads `allow`.
pub(super) fn script_tools(field: &Field<'_>) -> Result<ScriptTools, At<EntryError>> {
    match field.word() {
        Some("read_only") => Ok(ScriptTools::ReadOnly),
        Some("all") => Ok(ScriptTools::All),
        _ => Err(field.wrong("\"read_only\" or \"all\"")),
    }
}
