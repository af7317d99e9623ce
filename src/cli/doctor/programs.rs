//! Checks of the servers' programs: whether they are found, here and by a client that is started from the desktop.

use std::path::is_separator;

use super::super::setup::Machine;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::app::App;
use crate::clients::{Client, Survey, desktop_path};
use crate::config::{Stdio, Transport};
use crate::config::{find_program, shown_command};
use crate::tool::ServerName;

pub(super) fn examine(
    app: &App,
    machine: &Machine,
    only: Option<&ServerName>,
    examination: &mut Examination,
) {
    let config = app.proxy().unscoped().config();
    let environment = &machine.around.environment;
    let shell_path = environment.get("PATH").unwrap_or_default();
    // Only graphical clients have the shorter `PATH` of the desktop.
    let graphical = graphical_client(machine);
    for (name, entry) in config
        .servers
        .iter()
        .filter(|(name, _)| only.is_none_or(|only| only == *name))
    {
        let Transport::Stdio(stdio) = &entry.transport else {
            continue;
        };
        if entry.disabled {
            continue;
        }
        let own_path = own_path(stdio);
        let path = own_path.as_deref().unwrap_or(shell_path);
        let shown = shown_command(&stdio.command);
        let shown = config.masker.mask(&shown).into_owned();
        if find_program(&stdio.command, path, environment).is_none() {
            let first = stdio.command.split_whitespace().next().unwrap_or_default();
            let is_line =
                first != stdio.command && find_program(first, path, environment).is_some();
            let what = match stdio.command.contains(is_separator) {
                _ if is_line => format!(
                    "`{shown}` is a whole command line; split it: `{first}` as `command`, the rest as `args`"
                ),
                true => format!("`{shown}` is not a program that can be run"),
                false => format!("`{shown}` is not on the PATH"),
            };
            examination.add(Finding::new(&kinds::COMMAND_MISSING, name.as_str(), what));
        } else if let (Some(client), None) = (graphical, &own_path)
            && let Some(path) = desktop_path(machine.around.platform)
            && find_program(&stdio.command, path, environment).is_none()
        {
            let title = client.title();
            let what = format!(
                "`{shown}` is on the PATH of this shell, but {title} may have only `{path}`"
            );
            examination.add(Finding::new(
                &kinds::COMMAND_DESKTOP_PATH,
                name.as_str(),
                what,
            ));
        }
    }
}

/// A graphical client that has an entry for mcpzip.
fn graphical_client(machine: &Machine) -> Option<Client> {
    let graphical: Vec<Client> = Client::ALL
        .into_iter()
        .filter(|client| client.is_graphical())
        .collect();
    let survey = Survey::of(&graphical, &machine.around);
    survey
        .found
        .iter()
        .find(|found| found.is_mcpzip)
        .map(|found| found.location.client)
}

/// The `PATH` that the server's own entry sets.
fn own_path(stdio: &Stdio) -> Option<String> {
    stdio.env.get("PATH").map(|path| path.expose().clone())
}
