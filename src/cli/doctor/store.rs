//! Checks whether the store that replicas share can be used.

use super::super::printable::printable;
use super::super::setup::Machine;
use super::super::store;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::config::{Config, Placement};

/// Warns of servers that are to run at one of several replicas, if there is no store by which these know each other.
pub(super) fn examine_placement(config: &Config, examination: &mut Examination) {
    if !matches!(config.store, Ok(None)) {
        return;
    }
    let placed = config
        .servers
        .iter()
        .filter(|(_, entry)| entry.placement == Placement::One);
    for (name, _) in placed {
        let what = "`\"placement\": \"one\"` has no effect without a `store`".to_owned();
        examination.add(Finding::new(&kinds::SERVER_PLACEMENT, name.as_str(), what));
    }
}

pub(super) async fn examine(machine: &Machine, examination: &mut Examination) {
    if let Some(problem) = store::fault(&machine.paths, &machine.around.environment).await {
        let what = printable(&problem);
        examination.add(Finding::new(&kinds::STORE_UNUSABLE, String::new(), what));
    }
}
