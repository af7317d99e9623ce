//! The audit log, as the configuration says.

use std::path::PathBuf;

use super::error::EntryError;
use super::options::{AuditedArguments, Durability};
use super::reader::{At, Read, Report};
use super::sections::AuditEntry;
use super::{Collector, setting, simple_setting};

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
    /// The copies that were asked for; `collector` is where logs go if `otlp` is among them. A target that cannot be used is reported and left out.
    fn of(
        to: Option<Vec<At<String>>>,
        syslog: Option<&At<String>>,
        collector: Option<&Collector>,
        report: &Report,
    ) -> Self {
        let leave_out = |at: &At<String>, key: &str, expected: &str| {
            let fault = EntryError::value(key, expected, format!("`\"{}\"`", at.value));
            let default = "no copy goes there; the log itself is written";
            report.fall_back(At::new(at.offset, fault), default);
        };
        let mut copies = Self::default();
        for target in to.into_iter().flatten() {
            match target.value.as_str() {
                "stdout" => copies.stdout = true,
                "syslog" => match syslog {
                    None => copies.syslog = Some(Syslog::System),
                    Some(address) => {
                        copies.syslog = Syslog::parse(&address.value);
                        if copies.syslog.is_none() {
                            leave_out(address, "audit.syslog", "a path or `host:port`");
                        }
                    }
                },
                "otlp" => {
                    copies.otlp = collector.cloned();
                    if copies.otlp.is_none() {
                        let expected = "`otlp` only with a collector, which `otlp.endpoint` or a variable of OpenTelemetry names";
                        leave_out(&target, "audit.to", expected);
                    }
                }
                _ => leave_out(&target, "audit.to", "`stdout`, `syslog` or `otlp`"),
            }
        }
        copies
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

    /// The options that were written, defaults for the others. A part that cannot be read leaves the log on.
    pub(super) fn of(
        read: Read<AuditEntry>,
        collector: Option<&Collector>,
        report: &Report,
    ) -> (Self, AuditCopies) {
        let default = Self::default();
        let mut copies = AuditCopies::default();
        let options = match read {
            Ok(None) => default,
            Ok(Some(mut written)) => {
                let (to, syslog) = (written.to.take(), written.syslog.take());
                copies = AuditCopies::of(to, syslog.as_ref(), collector, report);
                Self::written(written, report)
            }
            Err(fault) => {
                report.fall_back(fault, "the log is on, with its defaults");
                Self {
                    is_on: true,
                    ..default
                }
            }
        };
        (options, copies)
    }

    fn written(written: AuditEntry, report: &Report) -> Self {
        let default = Self::default();
        // A value that cannot be read asks for the stricter one.
        let durable = match &written.durable {
            Err(_) => Durability::Store,
            Ok(_) => default.durable,
        };
        Self {
            is_on: simple_setting(written.enabled, true, report),
            arguments: setting(
                written.arguments,
                default.arguments,
                AuditedArguments::text,
                report,
            ),
            days: simple_setting(written.days, default.days, report),
            megabytes: simple_setting(written.megabytes, default.megabytes, report),
            durable: setting(written.durable, durable, Durability::text, report),
        }
    }
}
