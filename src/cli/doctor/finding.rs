//! One thing that the doctor found.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::kinds::{Kind, Severity};
use crate::clients::OwnEntry;

/// A finding.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) kind: &'static Kind,
    /// What it is about: a server, a client or a file.
    pub(super) subject: String,
    /// What was found.
    pub(super) what: String,
    /// What `--fix` would do.
    pub(super) fix: Option<Fix>,
    /// What came of that: done, or why not.
    pub(super) fixed: Option<Result<String, String>>,
}

/// What can be fixed without asking.
#[derive(Debug)]
pub(super) enum Fix {
    /// The rights of others go.
    #[cfg(unix)]
    Close(PathBuf),
    /// A file goes that nobody needs.
    RemoveFile(PathBuf),
    /// A directory goes that nobody needs.
    RemoveDirectory(PathBuf),
    /// An entry of ours in a client's file is completed, under the journal.
    Entry {
        entry: Box<OwnEntry>,
        /// Whether what it starts is gone.
        is_dead: bool,
    },
    /// What is missing for search by meaning is made.
    Embed,
}

impl Finding {
    pub(super) fn new(
        kind: &'static Kind,
        subject: impl Into<String>,
        what: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            subject: subject.into(),
            what: what.into(),
            fix: None,
            fixed: None,
        }
    }

    pub(super) fn with_fix(mut self, fix: Fix) -> Self {
        self.fix = Some(fix);
        self
    }

    /// What to do, for this very subject.
    pub(super) fn advice(&self) -> String {
        self.kind.advice.replace("SERVER", &self.subject)
    }

    pub(super) fn is_fixed(&self) -> bool {
        matches!(self.fixed, Some(Ok(_)))
    }

    /// How bad it still is.
    pub(super) fn severity(&self) -> Severity {
        if self.is_fixed() {
            Severity::Note
        } else {
            self.kind.severity
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "code": self.kind.code,
            "severity": self.kind.severity,
            "subject": self.subject,
            "what": self.what,
            "why": self.kind.why,
            "advice": self.advice(),
            "fixable": self.fix.is_some(),
            "fixed": self.fixed.as_ref().map(Result::is_ok),
            "fix": match &self.fixed {
                Some(Ok(text) | Err(text)) => Some(text.as_str()),
                None => self.fix.as_ref().and(self.kind.fix),
            },
        })
    }
}
