//! Memory is not measured on this system.

use anyhow::Result;

use crate::stand::Stand;
use crate::table::Table;

#[expect(clippy::unnecessary_wraps, reason = "as on Linux")]
pub(super) fn measure(stand: &Stand, _table: &mut Table) -> Result<()> {
    stand.say("memory is read from /proc, which is Linux's");
    Ok(())
}
