//! Servers in sandboxes: what they reach, what is refused, and that all else is as without.

mod containers;
mod entries;
mod hostile;
mod packages;
mod refusals;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::command::through;
use crate::support::{Client, Setup, program, tool};

/// Whether bubblewrap is installed; the tests that need it fail otherwise, and say so.
#[track_caller]
fn has_bubblewrap() -> bool {
    tool::has("bwrap", "bubblewrap")
}

/// A setup with the server that tries everything, under the name `h`.
fn with_hostile(setup: Setup, sandbox: Option<&Value>) -> Setup {
    let mut entry = json!({ "command": program::hostile_server() });
    if let Some(sandbox) = sandbox {
        entry["sandbox"] = sandbox.clone();
    }
    setup.entry("h", &entry.to_string())
}

/// The command of `serve` for an ordinary user, who gets the home.
fn for_nobody(setup: &Setup) -> Command {
    setup.save();
    let owner = Command::new("chown")
        .args(["-R", "65534:65534"])
        .arg(setup.home().path(""))
        .status();
    assert!(owner.unwrap().success());
    let plain = setup.command(&["serve"]);
    let mut command = through("setpriv", &plain);
    command
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(plain.get_current_dir().unwrap());
    command
}

/// The attempts that worked.
#[track_caller]
fn attempts(client: &mut Client, targets: &Value) -> Vec<String> {
    let answer = client.execute_with("h__attempt", &targets.to_string());
    let text = answer.text();
    let done: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"));
    let done = done.as_object().unwrap().iter();
    done.filter(|(_, worked)| **worked == json!(true))
        .map(|(what, _)| what.clone())
        .collect()
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
