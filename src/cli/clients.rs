//! `mcpzip clients`: which clients this machine has, and which of them use mcpzip.

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::diagnostics::Exit;
use super::output::{Output, faint, good, strong};
use super::printable::printable;
use super::setup::{Machine, below_home};
use crate::clients::{Client, OwnEntry, Survey, own_entries};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip clients
  mcpzip clients --json | jq '.clients[] | select(.entries == [])'")]
pub(super) struct Arguments {}

/// A client of this machine.
#[derive(Debug, Serialize)]
struct Shown {
    client: &'static str,
    title: &'static str,
    installed: bool,
    /// The file of its servers.
    file: String,
    /// Its entries for mcpzip.
    entries: Vec<Entry>,
    /// The servers that it starts itself.
    servers: Vec<String>,
    /// Why a file of it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct Entry {
    scope: &'static str,
    file: String,
    entry: String,
    program: String,
    /// The project, if the entry is for one only.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    /// Whether the client has it switched off.
    disabled: bool,
}

/// Told where there is none.
pub(super) const NO_CLIENT: &str = "no client was found on this machine; `mcpzip connect CLIENT` also writes the file of one that you \
     install later, and `mcpzip connect --help` lists the clients that it knows";

pub(super) fn run(machine: &Machine, output: &Output) -> Result<(), Exit> {
    let survey = Survey::of(&Client::ALL, &machine.around);
    let launch = machine.launch()?;
    let own = own_entries(&survey, &launch, &machine.paths.config_file);
    let all = Client::ALL.map(|client| shown(client, &survey, &own, machine));
    if output.is_json() {
        output.json(&json!({ "clients": all }));
        return Ok(());
    }
    let mut is_empty = true;
    for client in all.iter().filter(|client| client.installed) {
        is_empty = false;
        let state = match (&client.problem, client.entries.as_slice()) {
            (Some(problem), _) => format!("cannot be read: {}", printable(problem)),
            (None, []) => faint(format!("not connected: `mcpzip connect {}`", client.client)),
            (None, entries) => {
                let names = entries.iter().map(|entry| {
                    let (name, program) = (printable(&entry.entry), printable(&entry.program));
                    let project = entry.project.as_deref().map(printable);
                    let project = project.map(|it| format!(" in the project {it}"));
                    let off = if entry.disabled { ", switched off" } else { "" };
                    format!(
                        "{name}{}, which starts {program}{off}",
                        project.unwrap_or_default()
                    )
                });
                good(format!(
                    "connected as {}",
                    names.collect::<Vec<_>>().join(", ")
                ))
            }
        };
        output.row(format!("{}  ", strong(client.title)), state);
        if !client.servers.is_empty() {
            let names = printable(&client.servers.join(", "));
            output.line(faint(format!("  starts itself: {names}")));
        }
    }
    if is_empty {
        output.line(NO_CLIENT);
    }
    Ok(())
}

fn shown(client: Client, survey: &Survey, own: &[OwnEntry], machine: &Machine) -> Shown {
    let home = &machine.around.home;
    let location = client.user_location(&machine.around);
    let entries = own.iter().filter(|entry| entry.location.client == client);
    let entries: Vec<Entry> = entries
        .map(|entry| Entry {
            scope: entry.location.scope.name(),
            file: below_home(&entry.location.path, home),
            entry: entry.name.clone(),
            program: entry.program.clone(),
            project: entry
                .location
                .project
                .as_deref()
                .map(|it| below_home(it, home)),
            disabled: entry.is_disabled,
        })
        .collect();
    let servers = survey.found.iter();
    let servers = servers.filter(|found| found.location.client == client && !found.is_mcpzip);
    let problem = survey.unreadable.iter();
    let problem = problem.filter(|(path, _)| *path == location.path);
    Shown {
        client: client.name(),
        title: client.title(),
        installed: client.is_installed(&machine.around) || !entries.is_empty(),
        file: below_home(&location.path, home),
        entries,
        servers: servers.map(|found| found.name.clone()).collect(),
        problem: problem.map(|(_, problem)| problem.to_string()).next(),
    }
}
