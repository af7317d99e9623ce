//! Checks of sandboxes: whether they can be had here, which servers are known to work in one, and which servers without one run what a server in
//! one may change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::printable::printable;
use super::super::setup::Machine;
use super::Examination;
use super::finding::{Finding, some};
use super::kinds;
use crate::app::App;
use crate::config::{Stdio, Transport, find_program, script_of};
use crate::files::is_program;
use crate::sandbox::{self, Known, Named, Proposal, Sandboxes, known};
use crate::tool::ServerName;

pub(super) async fn examine(
    app: &App,
    machine: &Machine,
    only: Option<&ServerName>,
    examination: &mut Examination,
) {
    let config = app.proxy().unscoped().config();
    let environment = &machine.around.environment;
    let data = machine.paths.state_dir.join(sandbox::DIRECTORY);
    let sandboxes = Sandboxes::new(Some(data), Vec::new(), &config, app.session());
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
                let changeable = changeable(stdio, app, machine, &sandboxes);
                if !changeable.is_empty() {
                    let what = printable(&config.masker.mask(&some(&changeable)));
                    examination.add(Finding::new(
                        &kinds::PROGRAM_CHANGEABLE,
                        name.as_str(),
                        what,
                    ));
                }
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

/// The endings of files that interpreters run.
const SCRIPTS: &[&str] = &[
    "cjs", "jar", "js", "mjs", "mts", "php", "pl", "ps1", "py", "rb", "sh", "ts",
];

/// The program of an entry without a sandbox, and the scripts and programs among its arguments, that a server in a sandbox may change.
fn changeable(stdio: &Stdio, app: &App, machine: &Machine, sandboxes: &Sandboxes) -> Vec<String> {
    let environment = &machine.around.environment;
    let own_path = stdio.env.get("PATH").map(|path| path.expose().as_str());
    let path = own_path.or(environment.get("PATH")).unwrap_or_default();
    let here = stdio.cwd.as_ref().or(app.session().directory.as_ref());
    let here = here.cloned().unwrap_or_default();
    let is_run = |file: &Path| {
        let ending = file.extension().and_then(|ending| ending.to_str());
        let is_script = ending.is_some_and(|ending| SCRIPTS.contains(&ending)) && file.is_file();
        is_script || is_program(file)
    };
    let arguments = stdio.args.iter().map(|argument| {
        let value = argument.split_once('=').map(|(_, value)| value);
        here.join(value.unwrap_or(argument))
    });
    let script = script_of(&stdio.command, &stdio.args).map(|script| here.join(script));
    let program = find_program(&stdio.command, path, environment);
    let files = arguments.filter(|file| is_run(file)).chain(script);
    let files: BTreeSet<PathBuf> = files.chain(program).collect();
    let depends = |file: PathBuf| {
        let part = sandboxes.changeable_part(&file)?;
        Some(format!(
            "`{}` by way of `{}`",
            file.display(),
            part.display()
        ))
    };
    files.into_iter().filter_map(depends).collect()
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
