//! The options for results.

use super::options::{Duplicates, Lifetime, ResultForm};
use super::reader::{Read, Report};
use super::sections::Results;
use super::{duration, setting, simple_setting};

/// The default budget in characters: about 25,000 tokens, beyond which the tested clients cut results.
const BUDGET: usize = 100_000;

/// The options for results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultOptions {
    /// The characters that a result's text may have before it is stored and answered by its head; 0 means no limit.
    pub budget: usize,
    /// The treatment of a text that only repeats the structured content.
    pub duplicates: Duplicates,
    /// The form in which results are answered.
    pub form: ResultForm,
    /// The lifetime of stored results, and who can read them.
    pub kept_for: Lifetime,
}

impl Default for ResultOptions {
    fn default() -> Self {
        Self {
            budget: BUDGET,
            duplicates: Duplicates::default(),
            form: ResultForm::default(),
            kept_for: Lifetime::default(),
        }
    }
}

impl ResultOptions {
    /// The options as written, with defaults for the others.
    pub(super) fn of(read: Read<Results>, report: &Report) -> Self {
        let default = Self::default();
        match report.value(read, "the defaults for results").flatten() {
            None => default,
            Some(written) => Self {
                budget: simple_setting(written.budget, default.budget, report),
                duplicates: setting(
                    written.duplicates,
                    default.duplicates,
                    Duplicates::text,
                    report,
                ),
                form: setting(written.form, default.form, ResultForm::text, report),
                kept_for: setting(written.kept_for, default.kept_for, Lifetime::text, report),
            },
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

impl ResultForm {
    /// The word in the file.
    fn text(self) -> String {
        match self {
            Self::AsIs => "as_is".to_owned(),
            Self::Compact => "compact".to_owned(),
        }
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
