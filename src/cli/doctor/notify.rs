//! Checks of desktop notifications: that they can be shown, if the configuration asks for them.

use super::super::printable::printable;
use super::super::setup::Machine;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::app::App;
use crate::notify;

pub(super) async fn examine(app: &App, machine: &Machine, examination: &mut Examination) {
    if !app.proxy().unscoped().config().notify {
        return;
    }
    let environment = machine.around.environment.clone();
    let check = tokio::task::spawn_blocking(move || notify::check(&environment));
    let outcome = check.await.unwrap_or_else(|error| Err(error.to_string()));
    if let Err(reason) = outcome {
        let what = printable(&reason);
        examination.add(Finding::new(&kinds::NOTIFY_UNAVAILABLE, "notify", what));
    }
}
