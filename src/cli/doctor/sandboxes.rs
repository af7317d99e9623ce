//! Checks of sandboxes: whether they can be had here, and which servers are known to work in one.

use super::super::setup::Machine;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::app::App;
use crate::config::{Stdio, Transport};
use crate::sandbox::{Known, Named, Proposal, Sandboxes, known};
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
                if let Some((known, proposal)) = proposed(stdio, machine) {
                    let what = format!(
                        "`{}` works with `\"sandbox\": {proposal}` (seen with {})",
                        known.package, known.version
                    );
                    examination.add(Finding::new(&kinds::SANDBOX_POSSIBLE, name.as_str(), what));
                }
            }
        }
    }
}

/// The sandbox in which the package of an entry is known to work, with the files that the entry names.
fn proposed(stdio: &Stdio, machine: &Machine) -> Option<(Known, Proposal)> {
    // In a sandbox it could store nothing.
    if stdio.kept_data().is_some() {
        return None;
    }
    let package = stdio.package()?;
    let known = known(&package)?;
    let values = stdio.env.values().map(|value| value.expose().as_str());
    let values: Vec<&str> = values.collect();
    let named = Named {
        args: &package.args,
        values: &values,
        cwd: stdio.cwd.as_deref(),
    };
    let (paths, home) = (&machine.paths, &machine.around.home);
    let own = [
        paths.config_file.as_path(),
        &paths.state_dir,
        &paths.cache_dir,
    ];
    Some((known, known.proposal(named, Some(home), &own)?))
}
