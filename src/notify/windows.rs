//! Windows, where mcpzip shows no notifications.

use super::Shown;
use crate::config::Environment;

const NONE: &str = "mcpzip shows no notifications on Windows";

pub(super) fn show(_: &Environment, _: &Shown) -> Result<(), String> {
    Err(NONE.to_owned())
}

pub(super) fn check(_: &Environment) -> Result<(), String> {
    Err(NONE.to_owned())
}
