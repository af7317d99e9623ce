//! Checks of the audit log: that it can be written, and that the targets of its copies take them.

use super::super::printable::printable;
use super::super::setup::Machine;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::app::App;
use crate::audit::{Audit, Directories};
use crate::config::Durability;
use crate::text::chain;

pub(super) async fn examine(app: &App, machine: &Machine, examination: &mut Examination) {
    let config = app.proxy().unscoped().config();
    if !config.audit.is_on {
        return;
    }
    let directories = Directories::below(&machine.paths.state_dir);
    let subject = directories.chains.display().to_string();
    if let Err(error) = Audit::check(&directories) {
        let what = printable(&chain(&error));
        examination.add(Finding::new(&kinds::AUDIT_UNWRITABLE, subject, what));
    }
    if config.audit.durable == Durability::Store && matches!(config.store, Ok(None)) {
        let what = "`audit.durable` is \"store\", and `store` is not set";
        examination.add(Finding::new(&kinds::AUDIT_NOT_DURABLE, "audit", what));
    }
    for (target, reason) in Audit::unreachable(&config.audit_copies).await {
        let what = printable(&config.masker.mask(&reason));
        examination.add(Finding::new(&kinds::AUDIT_TARGET, target, what));
    }
}
