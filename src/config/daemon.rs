//! Whether sessions share one process that runs the servers.

use std::time::Duration;

use super::env::{self, Environment};
use super::error::ConfigWarning;
use super::reader::{Read, Report};

/// How long a daemon stays without sessions.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// When sessions share a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DaemonMode {
    /// Wherever one can be had.
    Auto,
    /// Never: each session runs its own servers.
    Off,
}

/// The daemon, as the configuration says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DaemonOptions {
    /// When sessions share it.
    pub mode: DaemonMode,
    /// How long it stays without sessions.
    pub idle: Duration,
}

impl Default for DaemonMode {
    /// Elsewhere it was not tried on a real machine.
    fn default() -> Self {
        if cfg!(target_os = "linux") {
            Self::Auto
        } else {
            Self::Off
        }
    }
}

impl Default for DaemonOptions {
    fn default() -> Self {
        Self {
            mode: DaemonMode::default(),
            idle: IDLE,
        }
    }
}

impl DaemonMode {
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "auto" => Some(Self::Auto),
            "off" => Some(Self::Off),
            _ => None,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Off => "off",
        }
    }
}

impl DaemonOptions {
    /// The options that were written; the variable goes before them.
    pub(super) fn of(environment: &Environment, read: Read<Self>, report: &Report) -> Self {
        let written = match read {
            Ok(written) => written.unwrap_or_default(),
            Err(fault) => {
                report.fall_back(fault, DaemonMode::default().text());
                Self::default()
            }
        };
        match variable(environment) {
            None => written,
            Some(Ok(mode)) => Self { mode, ..written },
            Some(Err(())) => {
                let warning = ConfigWarning::Variable {
                    name: env::DAEMON.name,
                    expected: "\"auto\" or \"off\"",
                    used: written.mode.text().to_owned(),
                };
                report.add(0, warning);
                written
            }
        }
    }
}

/// The variable's value, if it is set.
pub(super) fn variable(environment: &Environment) -> Option<Result<DaemonMode, ()>> {
    let word = environment.get(env::DAEMON.name).map(str::trim);
    word.filter(|word| !word.is_empty())
        .map(|word| DaemonMode::parse(word).ok_or(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_documented_defaults_hold() {
        let default = DaemonOptions::default();
        assert_eq!(default.mode.text(), "auto");
        assert_eq!(crate::config::duration::text(default.idle), "300s");
    }
}
