//! The programs that servers are: whether they are found, here and where a client is started from the desktop.

use std::path::{Path, PathBuf, is_separator};

use super::super::setup::Machine;
use super::Examination;
use super::finding::Finding;
use super::kinds;
use crate::app::App;
use crate::clients::{Client, Survey, desktop_path};
use crate::config::{Environment, Stdio, Transport};
use crate::tool::ServerName;

pub(super) fn examine(app: &App, machine: &Machine, only: Option<&ServerName>, examination: &mut Examination) {
    let config = app.proxy().config();
    let environment = &machine.around.environment;
    let shell_path = environment.get("PATH").unwrap_or_default();
    // Only a client with windows has the shorter one.
    let graphical = graphical_client(machine);
    for (name, entry) in config.servers.iter().filter(|(name, _)| only.is_none_or(|only| only == *name)) {
        let Transport::Stdio(stdio) = &entry.transport else { continue };
        if entry.disabled {
            continue;
        }
        let own_path = own_path(stdio);
        let path = own_path.as_deref().unwrap_or(shell_path);
        let shown = config.masker.mask(&stdio.command).into_owned();
        if find(&stdio.command, path, environment).is_none() {
            let what = match stdio.command.contains(is_separator) {
                true => format!("`{shown}` is no program that can be run"),
                false => format!("`{shown}` is not on the PATH"),
            };
            examination.add(Finding::new(&kinds::COMMAND_MISSING, name.as_str(), what));
        } else if let (Some(client), None) = (graphical, &own_path)
            && let Some(path) = desktop_path(machine.around.platform)
            && find(&stdio.command, path, environment).is_none()
        {
            let title = client.title();
            let what = format!("`{shown}` is on the PATH of this shell, but {title} may have `{path}` only");
            examination.add(Finding::new(&kinds::COMMAND_DESKTOP_PATH, name.as_str(), what));
        }
    }
}

/// A client with windows that uses us.
fn graphical_client(machine: &Machine) -> Option<Client> {
    let graphical: Vec<Client> = Client::ALL.into_iter().filter(|client| client.is_graphical()).collect();
    let survey = Survey::of(&graphical, &machine.around);
    survey.found.iter().find(|found| found.is_mcpzip).map(|found| found.place.client)
}

/// The PATH that the server's own entry sets.
fn own_path(stdio: &Stdio) -> Option<String> {
    stdio.env.get("PATH").map(|path| path.expose().clone())
}

/// The program that `command` leads to.
pub(in crate::cli) fn find(command: &str, path: &str, environment: &Environment) -> Option<PathBuf> {
    let endings: Vec<String> = match cfg!(windows) {
        // As it is written, and with each ending that makes a program.
        true => [String::new()]
            .into_iter()
            .chain(environment.get("PATHEXT").unwrap_or(".EXE;.CMD;.BAT").split(';').map(str::to_owned))
            .collect(),
        false => vec![String::new()],
    };
    let with_endings = |path: &Path| {
        let text = path.to_string_lossy().into_owned();
        endings.iter().map(|ending| PathBuf::from(format!("{text}{ending}"))).find(|path| is_program(path))
    };
    if command.contains(is_separator) {
        return with_endings(Path::new(command));
    }
    std::env::split_paths(path).find_map(|directory| with_endings(&directory.join(command)))
}

fn is_program(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    metadata.is_file() && may_run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_that_may_not_be_run_is_no_program() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tool");
        std::fs::write(&file, "").unwrap();
        let path = directory.path().to_str().unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(find("tool", path, &Environment::default()), None);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(find("tool", path, &Environment::default()), Some(file.clone()));
        assert_eq!(find(file.to_str().unwrap(), "", &Environment::default()), Some(file));
        assert_eq!(find("tool", "", &Environment::default()), None);
    }
}
