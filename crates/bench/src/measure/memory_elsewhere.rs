//! Memory is not measured on this system.

use anyhow::{Result, bail};

use crate::stand::Stand;
use crate::table::Table;

#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(super) fn measure(stand: &Stand, _table: &mut Table) -> Result<()> {
    stand.say("memory is read from /proc, which is Linux's");
    Ok(())
}

/// Resident memory of a process.
pub(super) fn resident(_process: u32) -> Result<f64> {
    bail!("memory is read from /proc, which is Linux's")
}
