//! Checks of sandboxes: whether they can be had here, and which servers are known to work in one.

use super::super::setup::Machine;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::app::App;
use crate::config::Transport;
use crate::sandbox::{Sandboxes, known};
use crate::tool::ServerName;

pub(super) async fn examine(
    app: &App,
    machine: &Machine,
    only: Option<&ServerName>,
    examination: &mut Examination,
) {
    let config = app.proxy().unscoped().config();
    let environment = &machine.around.environment;
    let sandboxes = Sandboxes::new(None, Vec::new(), &config, app.session());
    for (name, entry) in &config.servers {
        let Transport::Stdio(stdio) = &entry.transport else {
            continue;
        };
        if entry.disabled || only.is_some_and(|only| only != name) {
            continue;
        }
        match &stdio.sandbox {
            Some(sandbox) => {
                if let Err(refusal) = sandboxes.check(sandbox, environment).await {
                    // It would report this reason a second time.
                    let is_start = |found: &Finding| {
                        found.kind == &kinds::SERVER_FAILED && found.subject == name.as_str()
                    };
                    examination.findings.retain(|found| !is_start(found));
                    let what = refusal.to_string();
                    examination.add(Finding::new(
                        &kinds::SANDBOX_UNAVAILABLE,
                        name.as_str(),
                        what,
                    ));
                }
            }
            None if cfg!(windows) => {}
            None => {
                if let Some(known) = stdio.package().and_then(|package| known(&package)) {
                    let what = format!(
                        "`{}` works with `\"sandbox\": {}` (seen with {})",
                        known.package,
                        known.value(),
                        known.version
                    );
                    examination.add(Finding::new(&kinds::SANDBOX_POSSIBLE, name.as_str(), what));
                }
            }
        }
    }
}
