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

/// Checks the store, and the gateways that it knows.
pub(super) async fn examine(machine: &Machine, examination: &mut Examination) {
    match store::look(&machine.paths, &machine.around.environment).await {
        None => {}
        Some(Err(problem)) => {
            let what = printable(&problem);
            examination.add(Finding::new(&kinds::STORE_UNUSABLE, String::new(), what));
        }
        Some(Ok(look)) => {
            for (url, fault) in look.faulty {
                let what = format!("the gateway at {}: {fault}", printable(&url));
                examination.add(Finding::new(&kinds::GATEWAY_UNREACHED, String::new(), what));
            }
        }
    }
}
