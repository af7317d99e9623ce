//! The audit log, as the configuration says.

use super::options::AuditedArguments;
use super::reader::{Read, Report};
use super::sections::AuditEntry;
use super::{setting, simple_setting};

/// The content and the retention of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AuditOptions {
    /// Whether it is written.
    pub is_on: bool,
    /// The form of a call's arguments in a line.
    pub arguments: AuditedArguments,
    /// The days that are kept, today among them.
    pub days: u32,
    /// The size of all files together, in megabytes, above which the oldest days are removed.
    pub megabytes: u32,
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self {
            is_on: false,
            arguments: AuditedArguments::default(),
            days: 30,
            megabytes: 200,
        }
    }
}

impl AuditOptions {
    /// The size of all files together, in bytes.
    #[must_use]
    pub(crate) const fn bytes(self) -> u64 {
        self.megabytes as u64 * 1024 * 1024
    }

    /// The options that were written, defaults for the others. A part that cannot be read leaves the log on.
    pub(super) fn of(read: Read<AuditEntry>, report: &Report) -> Self {
        let default = Self::default();
        match read {
            Ok(None) => default,
            Ok(Some(written)) => Self {
                is_on: simple_setting(written.enabled, true, report),
                arguments: setting(
                    written.arguments,
                    default.arguments,
                    AuditedArguments::text,
                    report,
                ),
                days: simple_setting(written.days, default.days, report),
                megabytes: simple_setting(written.megabytes, default.megabytes, report),
            },
            Err(fault) => {
                report.fall_back(fault, "the log is on, with its defaults");
                Self {
                    is_on: true,
                    ..default
                }
            }
        }
    }
}
