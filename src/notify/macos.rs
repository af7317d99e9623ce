//! Notifications on macOS: `osascript`, which comes with the system, shows them. The texts are arguments of its script, never part of it.

use std::process::{Command, Stdio};

use super::Shown;
use crate::config::Environment;

const PROGRAM: &str = "/usr/bin/osascript";

const SCRIPT: [&str; 3] = [
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
];

pub(super) fn show(_: &Environment, shown: &Shown) -> Result<(), String> {
    let mut command = Command::new(PROGRAM);
    command.args(SCRIPT.iter().flat_map(|line| ["-e", line]));
    command.args([shown.title, &shown.text]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.stderr(Stdio::null()).status();
    match status.map_err(|error| format!("{PROGRAM} cannot be run: {error}"))? {
        status if status.success() => Ok(()),
        status => Err(format!("{PROGRAM} failed: {status}")),
    }
}

pub(super) fn check(_: &Environment) -> Result<(), String> {
    match std::path::Path::new(PROGRAM).exists() {
        true => Ok(()),
        false => Err(format!("there is no {PROGRAM}")),
    }
}
