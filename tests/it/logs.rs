//! What is written to the logs, what is hidden in them, and how they are read.

use std::io::{BufRead as _, BufReader};

use serde_json::json;

use super::support::script::{Step, result, text};
use super::support::{Server, Setup, until};

fn log(setup: &Setup, name: &str) -> String {
    std::fs::read_to_string(setup.home().path(&format!("state/logs/{name}.log"))).unwrap_or_default()
}
