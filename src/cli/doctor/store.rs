//! Checks whether the store that replicas share can be used.

use super::super::printable::printable;
use super::super::setup::Machine;
use super::super::store;
use super::Examination;
use super::finding::Finding;
use super::kinds;

pub(super) async fn examine(machine: &Machine, examination: &mut Examination) {
    if let Some(problem) = store::fault(&machine.paths, &machine.around.environment).await {
        let what = printable(&problem);
        examination.add(Finding::new(&kinds::STORE_UNUSABLE, String::new(), what));
    }
}
