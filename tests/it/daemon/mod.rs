//! One daemon for all sessions of a user: it is found or started, sessions attach to it, and any of the processes may die.

mod apart;
mod approvals;
mod attaching;
mod changed_meanwhile;
mod commands;
mod control;
mod doctor;
mod ending;
mod equal;
mod faults;
mod http;
mod killing;
mod limits;
mod load;
mod log_lines;
mod orders;
mod pausing;
mod relaying;
mod service;
mod sharing;
mod taking_over;

use serde_json::{Value, json};

use crate::support::process::{self, Process};
use crate::support::{Setup, until};

/// How sessions reach the daemon: [`Shared::new`] or [`Shared::relayed`].
type Way = fn(Setup) -> Shared;

/// Runs each test with passed descriptors and with relayed bytes.
macro_rules! each_way {
    ($($test:ident,)*) => {
        mod passed {
            $(#[test]
            fn $test() {
                super::$test(super::super::Shared::new);
            })*
        }

        mod relayed {
            $(#[test]
            fn $test() {
                super::$test(super::super::Shared::relayed);
            })*
        }
    };
}
use each_way;

/// A home whose sessions share a daemon. It ends with this.
pub(crate) struct Shared(Setup);

impl Shared {
    pub(crate) fn new(setup: Setup) -> Self {
        let setup = setup
            .setting("daemon", json!({ "mode": "auto", "idle": "60s" }))
            .daemon_as_configured();
        setup.save();
        Self(setup)
    }

    /// A home with its own settings of the daemon.
    pub(crate) fn over(setup: Setup) -> Self {
        Self(setup)
    }

    /// Processes of its sessions relay the bytes of their clients, as on systems that pass no descriptors.
    fn relayed(setup: Setup) -> Self {
        Self::new(setup.variable("MCPZIP_TEST_FAULT", "relay"))
    }

    fn status(&self) -> Value {
        let command = self.0.command(&["daemon", "status", "--json"]);
        crate::support::command::run(command, "").code(0).json()
    }

    /// The daemon's process.
    fn process(&self) -> u32 {
        let status = self.status();
        let process = status["daemon"]["process"].as_u64();
        u32::try_from(process.unwrap_or_else(|| panic!("no daemon: {status}"))).unwrap()
    }

    pub(crate) fn sessions(&self) -> usize {
        self.status()["daemon"]["sessions"]
            .as_array()
            .map_or(0, Vec::len)
    }

    pub(crate) fn kill_daemon(&self) {
        let daemon = self.process();
        process::signal(daemon, rustix::process::Signal::KILL);
        until("the daemon is gone", || is_gone(daemon).then_some(()));
    }

    fn log(&self) -> String {
        let path = self.0.home().path("state/logs/mcpzip.log");
        std::fs::read_to_string(path).unwrap_or_default()
    }
}

impl std::ops::Deref for Shared {
    type Target = Setup;

    fn deref(&self) -> &Setup {
        &self.0
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(daemon) = self.status()["daemon"]["process"].as_u64() {
            process::signal(
                u32::try_from(daemon).unwrap(),
                rustix::process::Signal::KILL,
            );
        }
    }
}

/// Whether a process has ended; one that its parent has not noticed yet has.
fn is_gone(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/stat"));
    Process::read(id).is_none() || status.is_ok_and(|stat| stat.contains(") Z "))
}
