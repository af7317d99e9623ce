//! `mcpzip connect` and `disconnect`: add and remove mcpzip's entry in a client's file.

use std::path::Path;

use clap::Args;
use serde_json::json;

use super::completions;
use super::diagnostics::Exit;
use super::output::{Output, faint, good, strong};
use super::setup::{
    Machine, approvals, ask_for_approval, client_names, clients_of, rule_warnings, scope_names,
};
use crate::clients::{
    Client, CodexApproval, ConfigLocation, Connected, Disconnected, Edit, Launch, Scope, Survey,
    barrier, connect, disconnect,
};
use crate::config::{self, Config};
use crate::files::leads_nowhere;
use crate::secret::Masker;
use crate::tool::ServerName;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip connect claude-code
  mcpzip connect cursor --scope project --dry-run
  mcpzip connect codex --profile review")]
pub(super) struct ConnectArguments {
    #[command(flatten)]
    location: LocationArguments,
    /// Name of the entry
    #[arg(long, value_name = "NAME", default_value = "mcpzip", value_parser = entry_name)]
    name: String,
    /// Codex's approval mode for mcpzip's tools: ask before each call (`auto`), or call without asking (`approve`)
    #[arg(long, value_name = "MODE", value_parser = approvals())]
    codex_approval: Option<String>,
    /// Profile of the client's sessions, an entry of `profiles` in the configuration
    #[arg(long, value_name = "NAME", add = completions::of_profiles())]
    profile: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip disconnect claude-code
  mcpzip disconnect codex --dry-run")]
pub(super) struct DisconnectArguments {
    #[command(flatten)]
    location: LocationArguments,
}

#[derive(Debug, Args)]
struct LocationArguments {
    /// The client
    #[arg(value_name = "CLIENT", value_parser = client_names())]
    client: String,
    /// Scope of the entry: you in all projects, you in this project, or everyone in this project
    #[arg(long, value_name = "SCOPE", value_parser = scope_names(), default_value = "user")]
    scope: String,
    /// Show the change without making it
    #[arg(long)]
    dry_run: bool,
    /// Do not ask; only `connect codex` asks, at a terminal, for `--codex-approval`
    #[arg(long, short)]
    yes: bool,
}

/// Parses the name of an entry. Clients make it a part of the names of tools.
fn entry_name(text: &str) -> Result<String, String> {
    let name = ServerName::new(text).map_err(|error| error.to_string())?;
    Ok(name.to_string())
}

pub(super) fn run_connect(
    arguments: &ConnectArguments,
    machine: &Machine,
    output: &Output,
) -> Result<(), Exit> {
    let location = arguments.location.find(machine)?;
    let mut launch = machine.launch()?;
    let config_file = &machine.paths.config_file;
    if let Some(error) = leads_nowhere(config_file) {
        output.note(&format!(
            "the client finds no servers until {} can be read: {error}",
            config_file.display()
        ));
    } else if !config::is_inline(config_file) && !config_file.exists() {
        let older = config::older_config_file(&machine.around.environment);
        output.note(&match older.filter(|_| !machine.has_own_config()) {
            Some(older) => format!(
                "until there is a configuration at {}, the client gets the servers of mcpzip 0.1 in {}; `mcpzip migrate --from mcpzip-0.1` \
                 imports them",
                config_file.display(),
                older.display()
            ),
            None => format!(
                "there is no configuration at {} yet; until `mcpzip add` or `mcpzip init` makes one, the client finds no servers",
                config_file.display()
            ),
        });
    }
    if let Some(profile) = &arguments.profile {
        let config = Config::load(&machine.paths, &machine.around.environment)?;
        let usable = config.narrowed(std::slice::from_ref(profile));
        usable.map_err(config::Error::from)?;
        launch = launch.under(profile);
    }
    launch.approval = arguments
        .codex_approval
        .as_deref()
        .and_then(CodexApproval::named);
    if location.scope == Scope::User {
        let survey = Survey::of(&[location.client], &machine.around);
        let mut unreadable = survey.unreadable.iter();
        if let Some((path, problem)) = unreadable.find(|(path, _)| *path == location.path) {
            let title = location.client.title();
            return Err(Exit::failed(format!(
                "the file of {title} cannot be changed: {}: {problem}. Correct it first, because {title} may not read it either; nothing was \
                 changed",
                path.display()
            )));
        }
        if let Some(reason) = barrier(location.client, &survey, &launch, &machine.around) {
            let title = location.client.title();
            return Err(Exit::failed(format!(
                "{title} would not run mcpzip: {reason}; nothing was done"
            )));
        }
    }
    for warning in rule_warnings(location.client, arguments.profile.as_deref(), None, machine) {
        output.notable(&warning);
    }
    let plan = |launch: &Launch| {
        let (name, file) = (Some(arguments.name.as_str()), &machine.paths.config_file);
        connect(&location, name, launch, file, &machine.around).map_err(anyhow::Error::from)
    };
    let mut connected = plan(&launch)?;
    let LocationArguments { dry_run, yes, .. } = arguments.location;
    let is_open = launch.approval.is_none() && !dry_run && !yes;
    if is_open && matches!(connected, Connected::Edit(_, Some(_), _)) {
        launch.approval = ask_for_approval(arguments.profile.as_deref(), machine, output)?;
        connected = plan(&launch)?;
    }
    match connected {
        Connected::Already(name, path, warning) => {
            let location = ConfigLocation { path, ..location };
            if let Some(warning) = warning {
                output.notable(&warning);
            }
            report(
                output,
                &location,
                std::slice::from_ref(&name),
                None,
                None,
                &format!("is already connected, as `{name}`"),
            );
        }
        Connected::OtherProfile(name) => {
            let title = location.client.title();
            return Err(Exit::failed(format!(
                "{title} is connected by the entry `{name}`, which does not have this profile; nothing was changed. `mcpzip disconnect \
                 {}` removes the entry, then connect again",
                location.client.name()
            )));
        }
        Connected::Taken => {
            let (name, path) = (&arguments.name, location.path.display());
            return Err(Exit::failed(format!(
                "`{path}` has another server `{name}`; give the entry another name with `--name`"
            )));
        }
        Connected::Edit(edits, warning, masker) => {
            if let Some(warning) = warning {
                output.notable(&warning);
            }
            let words = if arguments.location.dry_run {
                "would be connected"
            } else {
                "is connected; restart it"
            };
            let names = [arguments.name.clone()];
            carry_out(
                "connect",
                &arguments.location,
                machine,
                output,
                &location,
                (&edits, &masker, &names, words),
            )?;
            if let Some(note) = launch
                .path_note(location.client)
                .filter(|_| !output.is_json())
            {
                output.note(&note);
            }
        }
    }
    Ok(())
}

pub(super) fn run_disconnect(
    arguments: &DisconnectArguments,
    machine: &Machine,
    output: &Output,
) -> Result<(), Exit> {
    let location = arguments.location.find(machine)?;
    match disconnect(&location, &machine.journal(), &machine.around).map_err(anyhow::Error::from)? {
        Disconnected::Already => {
            report(output, &location, &[], None, None, "is not connected");
            for other in other_scopes(&location, machine) {
                let (client, scope) = (location.client.name(), other.name());
                output.note(&format!(
                    "it is connected in the scope `{scope}`: `mcpzip disconnect {client} --scope {scope}` removes that entry"
                ));
            }
        }
        Disconnected::Edit(edits, names, masker) => {
            let is_removed = edits.iter().any(Edit::is_removal);
            let words = match (arguments.location.dry_run, is_removed) {
                (true, false) => "would be disconnected",
                (true, true) => {
                    "would be disconnected; its file, which mcpzip made, would be removed"
                }
                (false, false) => "is disconnected",
                (false, true) => "is disconnected; its file, which mcpzip made, is removed",
            };
            let changed = ConfigLocation {
                path: edits[0].path.clone(),
                ..location.clone()
            };
            // While the files are there.
            let moves = moves(location.client, &edits, machine);
            carry_out(
                "disconnect",
                &arguments.location,
                machine,
                output,
                &changed,
                (&edits, &masker, &names, words),
            )?;
            moves.iter().for_each(|said| output.notable(said));
        }
    }
    Ok(())
}

/// The other scopes in which the client has mcpzip's entry.
fn other_scopes(here: &ConfigLocation, machine: &Machine) -> Vec<Scope> {
    let scopes = [Scope::User, Scope::Local, Scope::Project].into_iter();
    let others = scopes.filter(|scope| *scope != here.scope);
    let is_connected = |scope: &Scope| {
        let other = location(here.client, *scope, machine);
        let found = other.map(|other| disconnect(&other, &machine.journal(), &machine.around));
        matches!(found, Some(Ok(Disconnected::Edit(..))))
    };
    others.filter(is_connected).collect()
}

/// Sentences about servers of the `edited` files of the client that are still in mcpzip, and how they come back.
fn moves(client: Client, edited: &[Edit], machine: &Machine) -> Vec<String> {
    let survey = Survey::of(&[client], &machine.around);
    let is_back = |path: &Path, name: &str| {
        let mut found = survey.found.iter();
        found.any(|found| found.location.path == path && found.name == name)
    };
    let runs = machine.journal().moves(edited, is_back, &machine.around);
    let said = runs.into_iter().map(|(run, command)| {
        let title = client.title();
        format!(
            "servers that {title} had before `mcpzip {command}` are in mcpzip's configuration, and no longer in {title}'s file: \
             `mcpzip undo {run}` gives them back"
        )
    });
    said.collect()
}

fn carry_out(
    command: &str,
    arguments: &LocationArguments,
    machine: &Machine,
    output: &Output,
    location: &ConfigLocation,
    (edits, masker, names, words): (&[Edit], &Masker, &[String], &str),
) -> Result<(), Exit> {
    let diff: String = edits.iter().map(|edit| edit.diff(masker)).collect();
    if arguments.dry_run {
        report(output, location, names, Some(&diff), None, words);
        return Ok(());
    }
    let line = format!("{command} {} --scope {}", arguments.client, arguments.scope);
    let run = machine
        .journal()
        .apply(&line, edits)
        .map_err(anyhow::Error::from)?;
    report(output, location, names, Some(&diff), Some(&run), words);
    Ok(())
}

/// The added and removed lines of a diff, without their context.
fn changed_lines(diff: Option<&str>) -> Vec<&str> {
    let lines = diff.unwrap_or_default().lines();
    lines.filter(|line| line.starts_with(['+', '-'])).collect()
}

fn report(
    output: &Output,
    location: &ConfigLocation,
    names: &[String],
    diff: Option<&str>,
    run: Option<&str>,
    words: &str,
) {
    if output.is_json() {
        output.json(&json!({
            "client": location.client.name(),
            "scope": location.scope.name(),
            "file": location.path.display().to_string(),
            "entries": names,
            "diff": changed_lines(diff),
            "changed": run.is_some(),
            "undo": run,
        }));
        return;
    }
    output.line(format!("{} {words}", strong(location.client.title())));
    output.line(faint(format!("  {}", location.path.display())));
    // Only changed lines are printed, because lines around them may hold secrets of other entries.
    for line in changed_lines(diff) {
        output.line(format!(
            "  {}",
            if line.starts_with('+') {
                good(line)
            } else {
                faint(line)
            }
        ));
    }
    if run.is_some() {
        output.line(faint("  `mcpzip undo` reverts it"));
    }
}

impl LocationArguments {
    fn find(&self, machine: &Machine) -> Result<ConfigLocation, Exit> {
        let client = clients_of(std::slice::from_ref(&self.client))[0];
        let scope = Scope::named(&self.scope).expect("clap lets no other through");
        location(client, scope, machine).ok_or_else(|| {
            let (title, scope) = (client.title(), scope.name());
            Exit::failed(format!("{title} has no servers of the scope `{scope}`"))
        })
    }
}

fn location(client: Client, scope: Scope, machine: &Machine) -> Option<ConfigLocation> {
    let around = &machine.around;
    match scope {
        Scope::User => Some(client.user_location(around)),
        Scope::Local => client.local_location(around, &around.project()?),
        Scope::Project => client.project_location(around.directory.as_deref()?),
    }
}
