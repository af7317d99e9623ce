//! The audit log, as the configuration says.

use std::path::PathBuf;

use super::Collector;
use super::error::EntryError;
use super::options::{AuditedArguments, Durability};
use super::reader::{At, Report};
use super::sections::AuditEntry;

/// The content and the retention of the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AuditOptions {
    /// Whether it is written.
    pub is_on: bool,
    /// The form of a call's arguments in a line.
    pub arguments: AuditedArguments,
    /// The days that are kept, today among them.
    pub days: u32,
    /// The size of all files together, in megabytes, above which the oldest ones are removed.
    pub megabytes: u32,
    /// The place of a line before its call is answered.
    pub durable: Durability,
}

/// The targets of copies of the lines.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct AuditCopies {
    /// To stdout, where that is free.
    pub stdout: bool,
    /// To syslog.
    pub syslog: Option<Syslog>,
    /// To a collector of logs.
    pub otlp: Option<Collector>,
}

/// A syslog server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Syslog {
    /// The system's own.
    System,
    /// A socket of this machine.
    Socket(PathBuf),
    /// A `host:port` that takes UDP.
    Udp(String),
}

impl Syslog {
    fn parse(text: &str) -> Option<Self> {
        if text.starts_with('/') {
            return Some(Self::Socket(text.into()));
        }
        let (host, port) = text.rsplit_once(':')?;
        let is_address = !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0);
        is_address.then(|| Self::Udp(text.to_owned()))
    }
}

impl AuditCopies {
    /// The copies that were asked for; `collector` is where logs go if `otlp` is among them. Without a collector that copy is reported and left
    /// out, because a variable of another process may name one.
    ///
    /// # Errors
    /// When a target is not known, or the syslog server is not one.
    fn of(
        to: Option<Vec<At<String>>>,
        syslog: Option<&At<String>>,
        collector: Option<&Collector>,
        report: &Report,
    ) -> Result<Self, At<EntryError>> {
        let wrong = |at: &At<String>, key: &str, expected: &str| {
            let found = format!("`\"{}\"`", at.value);
            At::new(at.offset, EntryError::value(key, expected, found))
        };
        let mut copies = Self::default();
        for target in to.into_iter().flatten() {
            match target.value.as_str() {
                "stdout" => copies.stdout = true,
                "syslog" => {
                    let server = match syslog {
                        None => Ok(Syslog::System),
                        Some(address) => Syslog::parse(&address.value)
                            .ok_or_else(|| wrong(address, "audit.syslog", "a path or `host:port`")),
                    };
                    copies.syslog = Some(server?);
                }
                "otlp" => {
                    copies.otlp = collector.cloned();
                    if copies.otlp.is_none() {
                        let expected = "`otlp` only with a collector, which `otlp.endpoint` or a variable of OpenTelemetry names";
                        let fault = wrong(&target, "audit.to", expected);
                        let default = "no copy goes there; the log itself is written";
                        report.fall_back(fault, default);
                    }
                }
                _ => return Err(wrong(&target, "audit.to", "`stdout`, `syslog` or `otlp`")),
            }
        }
        Ok(copies)
    }
}

impl Default for AuditOptions {
    fn default() -> Self {
        Self {
            is_on: false,
            arguments: AuditedArguments::default(),
            days: 30,
            megabytes: 200,
            durable: Durability::File,
        }
    }
}

impl AuditOptions {
    /// The size of all files together, in bytes.
    #[must_use]
    pub(crate) const fn bytes(self) -> u64 {
        self.megabytes as u64 * 1024 * 1024
    }

    /// The options that were written, defaults for the others; it is off if there are none.
    ///
    /// # Errors
    /// When a target of copies cannot be used.
    pub(super) fn of(
        written: Option<AuditEntry>,
        collector: Option<&Collector>,
        report: &Report,
    ) -> Result<(Self, AuditCopies), At<EntryError>> {
        let default = Self::default();
        let Some(written) = written else {
            return Ok((default, AuditCopies::default()));
        };
        let copies = AuditCopies::of(written.to, written.syslog.as_ref(), collector, report)?;
        let options = Self {
            is_on: written.enabled.unwrap_or(true),
            arguments: written.arguments.unwrap_or(default.arguments),
            days: written.days.unwrap_or(default.days),
            megabytes: written.megabytes.unwrap_or(default.megabytes),
            durable: written.durable.unwrap_or(default.durable),
        };
        Ok((options, copies))
    }
}
