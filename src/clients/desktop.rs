//! The environment of programs that are started from the desktop, which is smaller than that of a shell.

use std::path::Path;

use super::servers::Servers;
use super::{Client, Node, Platform, Surroundings, references};
use crate::config::env::is_inherited;
use crate::config::shown_command;

/// The `PATH` of programs that are started from the desktop, if it differs from a shell's. On Linux it differs between
/// systems; this is the common part.
#[must_use]
pub(crate) const fn desktop_path(platform: Platform) -> Option<&'static str> {
    match platform {
        Platform::Mac => Some("/usr/bin:/bin:/usr/sbin:/sbin"),
        Platform::Linux => {
            Some("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin")
        }
        Platform::Windows => None,
    }
}

/// Warnings about those of `servers` that would not work in clients started from the desktop, one sentence each.
pub(super) fn warnings(
    servers: &Servers,
    clients: &[Client],
    around: &Surroundings,
) -> Vec<String> {
    let Some(path) = desktop_path(around.platform) else {
        return Vec::new();
    };
    let graphical: Vec<&str> = clients
        .iter()
        .filter(|client| client.is_graphical())
        .map(|client| client.title())
        .collect();
    if graphical.is_empty() {
        return Vec::new();
    }
    let who = graphical.join(" and ");
    let is_file = |directory: &str, name: &str| Path::new(directory).join(name).is_file();
    // One sentence for all servers that it is about.
    let mut warnings: Vec<(String, Vec<&str>)> = Vec::new();
    let mut warn = |name, text: String| match warnings.iter_mut().find(|(known, _)| *known == text)
    {
        Some((_, names)) => names.push(name),
        None => warnings.push((text, vec![name])),
    };
    for (name, entry) in servers
        .all()
        .iter()
        .filter(|(_, entry)| entry.get("disabled") != Some(&Node::Flag(true)))
    {
        let command = entry
            .get("command")
            .and_then(Node::as_text)
            .filter(|command| !command.contains(['/', '\\', '$']));
        if let Some(command) = command
            && !path.split(':').any(|directory| is_file(directory, command))
        {
            let shell = around.environment.get("PATH").unwrap_or_default();
            let here = shell
                .split(':')
                .find(|directory| is_file(directory, command));
            let advice = here.map_or_else(
                || "it is not on this shell's PATH either".to_owned(),
                |directory| {
                    format!(
                        "its whole path, {}, works from everywhere",
                        Path::new(directory).join(command).display()
                    )
                },
            );
            warn(
                name.as_str(),
                format!(
                    "started by {who}, `{}` is not on the PATH of the desktop; {advice}",
                    shown_command(command)
                ),
            );
        }
        // A variable with a default, or one that every process has, is harmless.
        let json = entry.to_json();
        let is_needed = |variable: &String| {
            json.contains(&format!("${{{variable}}}"))
                && !is_inherited(variable)
                && !servers.stored().has(variable)
        };
        let mut variables: Vec<String> = references::variables(&json)
            .into_iter()
            .filter(is_needed)
            .collect();
        variables.sort();
        variables.dedup();
        if !variables.is_empty() {
            let list = variables
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ");
            warn(
                name.as_str(),
                format!(
                    "started by {who}, it needs {list}, which must be set for the desktop too and not in a shell alone"
                ),
            );
        }
    }
    let sentences = warnings.into_iter();
    sentences
        .map(|(text, names)| format!("`{}`: {text}", names.join("`, `")))
        .collect()
}
