//! Reads `logs`: the form of log lines, and what is kept of log files.

use std::time::Duration;

use super::env::{self, Environment};
use super::error::ConfigWarning;
use super::options::FORMAT_EXPECTED;
use super::reader::{Read, Report};
use super::sections::LogsEntry;
use super::{LogFormat, setting, simple_setting};

/// How logs are written and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogOptions {
    /// The form of a line.
    pub format: LogFormat,
    /// A file beyond this size, in bytes, is put aside.
    pub largest: u64,
    /// Files of one log.
    pub kept: usize,
    /// A file that was not written to for so long is removed.
    pub oldest: Duration,
}

impl LogFormat {
    /// The form that `MCPZIP_LOG_FORMAT` names, if it names one.
    #[must_use]
    pub(crate) fn of(environment: &Environment) -> Option<Self> {
        environment.get(env::LOG_FORMAT.name).and_then(Self::parse)
    }
}

impl LogOptions {
    const MEGABYTE: u64 = 1024 * 1024;
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    /// The options that were written, defaults for the others. The variable of the form goes before the file.
    pub(super) fn of(read: Read<LogsEntry>, environment: &Environment, report: &Report) -> Self {
        let mut options = Self::default();
        match read {
            Ok(None) => {}
            Ok(Some(entry)) => {
                options.format = setting(entry.format, options.format, LogFormat::text, report);
                let number = |read: Read<u64>, default: u64| simple_setting(read, default, report);
                let megabytes = number(entry.max_megabytes, options.largest / Self::MEGABYTE);
                options.largest = megabytes.saturating_mul(Self::MEGABYTE);
                let kept = number(entry.max_files, options.kept as u64);
                options.kept = usize::try_from(kept).unwrap_or(options.kept);
                let days = number(entry.max_days, 30);
                options.oldest = Self::DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX));
            }
            Err(fault) => report.fall_back(fault, "the defaults for logs"),
        }
        let named = environment
            .get(env::LOG_FORMAT.name)
            .filter(|word| !word.trim().is_empty());
        match named.map(LogFormat::parse) {
            None => {}
            Some(Some(format)) => options.format = format,
            Some(None) => report.add(
                0,
                ConfigWarning::Variable {
                    name: env::LOG_FORMAT.name,
                    expected: FORMAT_EXPECTED,
                    used: options.format.text(),
                },
            ),
        }
        options
    }
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            format: LogFormat::Text,
            largest: 10 * Self::MEGABYTE,
            kept: 5,
            oldest: 30 * Self::DAY,
        }
    }
}
