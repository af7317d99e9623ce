//! The audit log, as the configuration says.

use super::error::ConfigWarning;
use super::options::AuditedArguments;
use super::reader::{At, Read, Report};
use super::sections::AuditEntry;
use super::setting;

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
                is_on: setting(written.enabled, true, |is_on| is_on.to_string(), report),
                arguments: setting(
                    written.arguments,
                    default.arguments,
                    AuditedArguments::text,
                    report,
                ),
                days: setting(written.days, default.days, |days| days.to_string(), report),
                megabytes: setting(
                    written.megabytes,
                    default.megabytes,
                    |megabytes| megabytes.to_string(),
                    report,
                ),
            },
            Err(At {
                offset,
                value: fault,
            }) => {
                report.add(
                    offset,
                    ConfigWarning::Default {
                        fault,
                        default: "the log is on, with its defaults".to_owned(),
                    },
                );
                Self {
                    is_on: true,
                    ..default
                }
            }
        }
    }
}
