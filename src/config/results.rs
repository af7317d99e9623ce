//! How results are answered, as the configuration says.

use super::error::ConfigWarning;
use super::file::Results;
use super::options::{Duplicates, Lifetime};
use super::reader::{At, Read, Report};
use super::{duration, setting};

/// Characters: about 25,000 tokens, beyond which the clients that were looked at cut by themselves.
const BUDGET: usize = 100_000;

/// How results are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultOptions {
    /// The characters that a result's text may have before it is stored and answered by its head; 0 is no limit.
    pub budget: usize,
    /// What comes of a text that only repeats the structured content.
    pub duplicates: Duplicates,
    /// How long stored results are kept, and for whom.
    pub kept_for: Lifetime,
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
                    ConfigWarning::Default {
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
