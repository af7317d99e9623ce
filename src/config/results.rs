//! How results are answered, as the configuration says.

use std::time::Duration;

use super::error::Oddity;
use super::file::Results;
use super::reader::{At, Read, Report};
use super::{duration, setting};

/// Characters: about 25,000 tokens, beyond which the clients that were looked at cut by themselves.
const BUDGET: usize = 100_000;

/// How results are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultOptions {
    /// The characters that a result's text may have before it is stored and answered by its head; 0 is no limit.
    pub budget: usize,
    /// What comes of a text that only repeats the structured content.
    pub duplicates: Duplicates,
    /// How long stored results are kept, and for whom.
    pub kept_for: Lifetime,
}

/// What comes of a text block that is only the serialisation of a result's structured content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// The one that the client does not show its model is left out, where it is known which that is.
    #[default]
    Auto,
    /// Both pass, as the server sent them.
    Keep,
    /// The text passes.
    Text,
    /// The structured content passes.
    Structured,
}

/// How long stored results are kept, and for whom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// For the client that made the call, as long as `mcpzip` runs, and no more than a day.
    #[default]
    Session,
    /// So long, for whoever knows their id.
    For(Duration),
}

impl Default for ResultOptions {
    fn default() -> Self {
        Self {
            budget: BUDGET,
            duplicates: Duplicates::default(),
            kept_for: Lifetime::default(),
        }
    }
}

impl ResultOptions {
    /// The options that were written, defaults for the others.
    pub(super) fn of(read: Read<Results>, report: &Report) -> Self {
        let default = Self::default();
        match read {
            Ok(None) => default,
            Ok(Some(written)) => Self {
                budget: setting(
                    written.budget,
                    default.budget,
                    |budget| budget.to_string(),
                    report,
                ),
                duplicates: setting(
                    written.duplicates,
                    default.duplicates,
                    Duplicates::text,
                    report,
                ),
                kept_for: setting(written.kept_for, default.kept_for, Lifetime::text, report),
            },
            Err(At {
                offset,
                value: fault,
            }) => {
                report.add(
                    offset,
                    Oddity::Default {
                        fault,
                        default: "the defaults for results".to_owned(),
                    },
                );
                default
            }
        }
    }
}

impl Duplicates {
    /// As the file would have it.
    fn text(self) -> String {
        let word = match self {
            Self::Auto => "auto",
            Self::Keep => "keep",
            Self::Text => "text",
            Self::Structured => "structured",
        };
        word.to_owned()
    }
}

impl Lifetime {
    /// As the file would have it.
    fn text(self) -> String {
        match self {
            Self::Session => "session".to_owned(),
            Self::For(time) => duration::text(time),
        }
    }
}
