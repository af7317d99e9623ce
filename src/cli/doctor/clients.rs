//! Checks of the clients: which have an entry for mcpzip, which program it starts, and which keys it lacks.

use std::collections::BTreeSet;

use serde::Serialize;

use super::super::clients::NO_CLIENT;
use super::super::printable::printable;
use super::super::setup::{Machine, may_get};
use super::super::undo::{damaged, interrupted};
use super::Examination;
use super::finding::{Finding, Fix};
use super::kinds;
use crate::app::App;
use crate::clients::{
    Choice, Client, Guards, Known, Launch, OwnEntry, Plan, Started, Survey, Verdict, other_config,
    own_entries, repair, running,
};
use crate::config::Config;
use crate::text::shell_word;

/// An entry for mcpzip in a client's file.
#[derive(Debug, Serialize)]
pub(super) struct ClientReport {
    pub(super) client: &'static str,
    pub(super) scope: &'static str,
    pub(super) file: String,
    pub(super) entry: String,
    pub(super) program: String,
}

pub(super) fn examine(machine: &Machine, app: Option<&App>, examination: &mut Examination) {
    let survey = Survey::of(&Client::ALL, &machine.around);
    for (path, problem) in &survey.unreadable {
        let path = path.display().to_string();
        let what = format!("`{path}`: {}", printable(&problem.to_string()));
        examination.add(Finding::new(&kinds::CLIENT_UNREADABLE, path, what));
    }
    let Ok(launch) = machine.launch() else { return };
    let entries = own_entries(&survey, &launch, &machine.paths.config_file);
    if entries.is_empty() {
        let installed: Vec<&str> = Client::ALL
            .into_iter()
            .filter(|client| client.is_installed(&machine.around))
            .map(Client::title)
            .collect();
        let what = match installed.as_slice() {
            [] => NO_CLIENT.to_owned(),
            installed => format!("installed: {}", installed.join(", ")),
        };
        examination.add(Finding::new(&kinds::CLIENT_NONE, "clients", what));
    }
    for (run, text) in damaged(machine) {
        examination.add(Finding::new(&kinds::RUN_DAMAGED, run, printable(&text)));
    }
    for (run, text) in interrupted(machine) {
        examination.add(Finding::new(&kinds::RUN_INTERRUPTED, &run, text));
    }
    for entry in &entries {
        examination.clients.push(ClientReport {
            client: entry.location.client.name(),
            scope: entry.location.scope.name(),
            file: entry.location.path.display().to_string(),
            entry: entry.name.clone(),
            program: entry.program.clone(),
        });
        look(entry, &launch, machine, app, examination);
    }
    for (at, entry) in entries.iter().enumerate() {
        let is_first = !entries[..at]
            .iter()
            .any(|other| other.location == entry.location);
        let names: Vec<String> = entries
            .iter()
            .filter(|other| other.location == entry.location)
            .map(|other| format!("`{}`", printable(&other.name)))
            .collect();
        if is_first && names.len() > 1 {
            let what = format!(
                "{} in `{}`",
                names.join(" and "),
                entry.location.path.display()
            );
            examination.add(Finding::new(
                &kinds::CLIENT_TWICE,
                entry.location.client.name(),
                what,
            ));
        }
    }
    duplicates(&survey, &entries, &launch, machine, examination);
    unheld_rules(&survey, &entries, &launch, machine, examination);
}

/// Reports rules of the clients that run mcpzip which do not hold for its servers.
fn unheld_rules(
    survey: &Survey,
    entries: &[OwnEntry],
    launch: &Launch,
    machine: &Machine,
    examination: &mut Examination,
) {
    let Machine { around, paths, .. } = machine;
    let Ok(text) = Config::text(paths, &around.environment) else {
        return;
    };
    let config = Config::load(paths, &around.environment).ok();
    let history = machine.journal().history();
    for client in running(survey, launch, around) {
        let own = entries
            .iter()
            .filter(|entry| entry.location.client == client);
        let profiles: BTreeSet<Option<&str>> = own.map(|own| own.entry.profile()).collect();
        let gets = |name: &str| {
            let mut profiles = profiles.iter();
            profiles.len() == 0
                || profiles.any(|profile| may_get(client, *profile, name, config.as_ref()))
        };
        let ours = (text.as_str(), paths.config_file.as_path());
        let guards = Guards::of(client, survey, ours, &history, gets, around);
        for (kind, warnings) in [
            (&kinds::CLIENT_RULE, guards.carried),
            (&kinds::CLIENT_RULE_LOST, guards.lost),
        ] {
            for what in warnings {
                examination.add(Finding::new(kind, client.name(), printable(&what)));
            }
        }
    }
}

/// Checks one entry for mcpzip: whether it can be used, and which program and configuration it starts.
fn look(
    entry: &OwnEntry,
    launch: &Launch,
    machine: &Machine,
    app: Option<&App>,
    examination: &mut Examination,
) {
    let subject = entry.location.client.name();
    let location = format!(
        "`{}` in `{}`",
        printable(&entry.name),
        entry.location.path.display()
    );
    if entry.is_disabled {
        examination.add(Finding::new(
            &kinds::CLIENT_DISABLED,
            subject,
            match &entry.location.project {
                Some(project) => format!(
                    "{location} is switched off in the project {}",
                    printable(&project.display().to_string())
                ),
                None => format!("{location} is switched off"),
            },
        ));
    }
    let around = &machine.around;
    let started = Started::by(entry.location.client, &entry.program, launch, around);
    if matches!(started, Started::Gone) {
        let written = printable(&entry.program);
        let what = format!("{location} starts `{written}`, which does not exist");
        let finding = Finding::new(&kinds::CLIENT_PROGRAM_GONE, subject, what);
        examination.add(with_repair(finding, entry, true, launch, machine));
    } else if !entry.lacks.is_empty() {
        let keys = entry
            .lacks
            .iter()
            .map(|key| format!("`{key}`"))
            .collect::<Vec<_>>()
            .join(", ");
        let what = format!("{location} lacks {keys}");
        let finding = Finding::new(&kinds::CLIENT_LACKS, subject, what);
        examination.add(with_repair(finding, entry, false, launch, machine));
    }
    if let Some(refusal) = &entry.refusal {
        examination.add(Finding::new(&kinds::CLIENT_REFUSES, subject, refusal));
    }
    match started {
        Started::Own | Started::Gone => {}
        Started::Copy(found) => {
            let what = format!(
                "{location} starts `{}`, of the same version",
                found.display()
            );
            examination.add(Finding::new(&kinds::CLIENT_OTHER_COPY, subject, what));
        }
        Started::Version(found, version) => {
            let is_newer = version.as_deref().is_some_and(is_newer);
            let version = version.map_or("unknown".to_owned(), |version| printable(&version));
            let what = format!(
                "{location} starts `{}`, version {version}; this is {}",
                found.display(),
                env!("CARGO_PKG_VERSION")
            );
            let finding = Finding::new(&kinds::CLIENT_OTHER_VERSION, subject, what);
            examination.add(match is_newer {
                true => finding,
                false => with_repair(finding, entry, true, launch, machine),
            });
        }
    }
    if let (Some(config), Some(_)) = (other_config(&entry.entry, &machine.paths.config_file), app) {
        let what = format!("{location} uses `{}`", printable(config));
        examination.add(Finding::new(&kinds::CLIENT_OTHER_CONFIG, subject, what));
    }
}

/// Whether a version is newer than this one.
fn is_newer(version: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> {
        let parts = version.split(['.', '-', '+']);
        parts.map_while(|part| part.parse().ok()).collect()
    };
    numbers(version) > numbers(env!("CARGO_PKG_VERSION"))
}

/// `finding` with the repair of the entry, if there is one. `is_dead` if this program has to take the place of the entry's.
fn with_repair(
    finding: Finding,
    entry: &OwnEntry,
    is_dead: bool,
    launch: &Launch,
    machine: &Machine,
) -> Finding {
    let planned = repair(entry, is_dead, launch, &machine.paths.config_file);
    if !planned.is_ok_and(|edit| edit.is_some()) {
        return finding;
    }
    finding.with_fix(Fix::Entry {
        entry: Box::new(entry.clone()),
        is_dead,
    })
}

/// Reports servers that a client starts directly although mcpzip has them, too.
fn duplicates(
    survey: &Survey,
    entries: &[OwnEntry],
    launch: &Launch,
    machine: &Machine,
    examination: &mut Examination,
) {
    let plan = Plan::new(
        survey,
        &Choice {
            history: machine.journal().history(),
            ..Choice::default()
        },
        &machine.paths.config_file,
        launch,
        &machine.around,
    );
    let Ok(plan) = plan else { return };
    for item in &plan.items {
        let is_connected = entries
            .iter()
            .any(|entry| entry.location.client == item.client);
        if let Verdict::Moves {
            name,
            known: Known::Before,
        } = &item.verdict
            && is_connected
        {
            let (title, path) = (item.client.title(), item.path.display());
            let what = format!(
                "{title} has `{}` in `{path}`, which mcpzip has as `{name}`",
                printable(&item.server)
            );
            let server = printable(&shell_word(&item.server));
            examination.add(Finding::new(&kinds::CLIENT_DUPLICATE, server, what));
        }
    }
}
