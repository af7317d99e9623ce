//! The options for results.

use super::error::ConfigWarning;
use super::options::{Duplicates, Lifetime};
use super::reader::{At, Read, Report};
use super::sections::Results;
use super::{duration, setting};

/// The default budget in characters: about 25,000 tokens, beyond which the tested clients cut results.
const BUDGET: usize = 100_000;

/// The options for results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultOptions {
    /// The characters that a result's text may have before it is stored and answered by its head; 0 means no limit.
    pub budget: usize,
    /// The treatment of a text that only repeats the structured content.
    pub duplicates: Duplicates,
    /// The lifetime of stored results, and who can read them.
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
    /// The options as written, with defaults for the others.
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
    /// The word in the file.
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
    /// The text in the file.
    fn text(self) -> String {
        match self {
            Self::Session => "session".to_owned(),
            Self::For(time) => duration::text(time),
        }
    }
}
