//! A finding of the doctor and its fix.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::kinds::{Kind, Severity};
use crate::clients::OwnEntry;
use crate::text::chain;

/// Number of examples shown of one kind.
const SHOWN: usize = 5;

/// An instance of a [`Kind`].
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) kind: &'static Kind,
    /// The server, client or file that it concerns.
    pub(super) subject: String,
    /// A description of what was found, in one line.
    pub(super) what: String,
    /// The repair that `--fix` would make.
    pub(super) fix: Option<Fix>,
    /// The result of the repair: what was done, or why it failed.
    pub(super) fixed: Option<anyhow::Result<String>>,
}

/// A repair that needs no question.
#[derive(Debug)]
pub(super) enum Fix {
    /// Removes the permissions of group and others from these files and directories.
    #[cfg(unix)]
    Close(Vec<PathBuf>),
    /// Removes a file that is not used.
    RemoveFile(PathBuf),
    /// Removes a directory that is not used.
    RemoveDirectory(PathBuf),
    /// Completes mcpzip's entry in a client's file, recorded in the journal.
    Entry {
        entry: Box<OwnEntry>,
        /// Whether the program of the entry is missing.
        is_dead: bool,
    },
    /// Computes the vectors that search by meaning lacks.
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

    /// The advice for this subject.
    pub(super) fn advice(&self) -> String {
        self.kind.advice.replace("SERVER", &self.subject)
    }

    pub(super) fn is_fixed(&self) -> bool {
        matches!(self.fixed, Some(Ok(_)))
    }

    /// The severity after the repair.
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
                Some(Ok(text)) => Some(text.clone()),
                Some(Err(error)) => Some(chain(error.as_ref())),
                None => self.fix.as_ref().and(self.kind.fix).map(str::to_owned),
            },
        })
    }
}

/// The first few texts, and the number of the others.
pub(super) fn some(texts: &[String]) -> String {
    let rest = texts.len().saturating_sub(SHOWN);
    let more = if rest > 0 {
        format!("; and {rest} more")
    } else {
        String::new()
    };
    format!("{}{more}", texts[..texts.len() - rest].join("; "))
}
