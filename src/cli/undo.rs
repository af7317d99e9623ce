//! `mcpzip undo`: reverts the files that `init`, `migrate`, `connect`, `disconnect`, `add --force` or `secret migrate` changed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good, strong};
use super::printable::printable;
use super::setup::{Machine, below_home};
use crate::clients::{Restored, RunState, Summary, Undone};
use crate::config::{Config, secrets_file};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip undo
  mcpzip undo --list

`undo` also reverts `add --force`, but not `add` without it, `remove`, `enable` or `disable`.")]
pub(super) struct Arguments {
    /// Run to undo [default: the latest]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Show all runs without reverting any
    #[arg(long, conflicts_with = "run")]
    list: bool,
    /// Show what would be reverted without doing it
    #[arg(long, conflicts_with = "list")]
    dry_run: bool,
    /// Do it without asking, as without a terminal
    #[arg(long, short)]
    yes: bool,
}

impl Arguments {
    /// Undoes this run.
    pub(super) fn of_run(run: String, yes: bool) -> Self {
        Self {
            run: Some(run),
            list: false,
            dry_run: false,
            yes,
        }
    }
}

pub(super) fn run(arguments: &Arguments, machine: &Machine, output: &Output) -> Result<(), Exit> {
    if arguments.list {
        list(machine, output);
        return Ok(());
    }
    if arguments.dry_run || !arguments.yes && !output.is_json() && output.can_ask() {
        let run = machine.journal().preview(arguments.run.as_deref());
        let run = run.map_err(anyhow::Error::from)?;
        if arguments.dry_run && output.is_json() {
            output.json(&run);
            return Ok(());
        }
        output.line(format!(
            "this reverts {} (run {}) in",
            strong(format!("mcpzip {}", run.command)),
            run.id
        ));
        for (file, effect) in run.files.iter().zip(&run.effects) {
            output.line(format!("  {}", below_home(file, &machine.around.home)));
            for (word, values) in [
                ("restores", &effect.restored),
                ("removes", &effect.removed),
                ("changes back", &effect.changed),
                ("keeps", &effect.kept),
            ] {
                if !values.is_empty() {
                    output.row(format!("    {word} "), printable(&values.join(", ")));
                }
            }
        }
        output.line(faint(
            "changes by `add`, `remove`, `enable` and `disable` are no runs of this list, and stay",
        ));
        if arguments.dry_run {
            output.note("nothing was done");
            return Ok(());
        }
        if !output.ask("Do this?")? {
            output.note("nothing was done");
            return Ok(());
        }
    }
    let undone = machine.journal().undo(arguments.run.as_deref());
    let Undone {
        id,
        restored,
        mut remaining,
    } = undone.map_err(anyhow::Error::from)?;
    for name in kept_servers(&restored, machine) {
        remaining.remove(&name);
        output.note(&format!(
            "`{name}` stays in mcpzip, as its entry was changed there: `mcpzip remove {name}` removes it"
        ));
    }
    if !remaining.is_empty() {
        let names = Vec::from_iter(remaining.iter().map(String::as_str)).join(" ");
        output.note(&format!(
            "all runs are undone, and these servers that they brought are still in mcpzip: `mcpzip remove {names}` removes them"
        ));
    }
    if output.is_json() {
        let files = restored.iter().map(|(path, restored)| {
            let (outcome, kept) = words(restored);
            let reverted = match restored {
                Restored::Released(keys) => json!(keys),
                _ => Value::Null,
            };
            json!({ "file": path, "outcome": outcome, "kept": kept, "reverted": reverted })
        });
        output.json(
            &json!({ "run": id, "files": files.collect::<Vec<_>>(), "remaining": remaining }),
        );
        return Ok(());
    }
    for (path, restored) in &restored {
        let text = match restored {
            Restored::Whole => good("restored"),
            Restored::Removed => good("removed, because it did not exist before"),
            Restored::Untouched => faint("unchanged"),
            Restored::Part => good("edited since: only mcpzip's changes were reverted"),
            Restored::Values => {
                good("what was kept of it is damaged or gone: only mcpzip's changes were reverted")
            }
            Restored::Released(keys) => good(format!(
                "no run relies on these changes of earlier runs any more, so they were reverted: {}",
                keys.join(", ")
            )),
            Restored::Kept(keys) => bad(format!(
                "edited since, so these keys were kept: {}",
                keys.join(", ")
            )),
            Restored::Relied(keys) => bad(format!(
                "kept, because a later run relies on it or cannot be read, or edited since: {}",
                keys.join(", ")
            )),
            Restored::Needed(names) => bad(format!(
                "kept, because servers that were kept use it: {}",
                names.join(", ")
            )),
            Restored::Back => good("deleted since; restored"),
        };
        let path = below_home(path, &machine.around.home);
        output.line(format!("{} {text}", strong(path)));
    }
    output.line(faint(format!(
        "run {id} is undone; backups are in {}",
        backups(machine, &id)
    )));
    let config = &machine.paths.config_file;
    let is_own = |path: &PathBuf| path == config || *path == secrets_file(config);
    if !restored.iter().all(|(path, _)| is_own(path)) {
        output.line("restart the clients whose files changed");
    }
    Ok(())
}

/// The runs that did not record their end, one sentence each.
pub(super) fn interrupted(machine: &Machine) -> Vec<(String, String)> {
    let runs = machine.journal().list().into_iter();
    let begun = runs.filter(|run| run.state == RunState::Begun);
    let sentence = |run: Summary| {
        let (command, id) = (&run.command, &run.id);
        let text = format!(
            "`mcpzip {command}` was interrupted, and may have changed some of its files; `mcpzip undo {id}` reverts them"
        );
        (run.id, text)
    };
    begun.map(sentence).collect()
}

/// The runs of which the record or a kept file cannot be read, with the reasons.
pub(super) fn damaged(machine: &Machine) -> Vec<(String, String)> {
    let runs = machine.journal().list().into_iter();
    runs.filter_map(|run| Some((run.id, run.problem?)))
        .collect()
}

/// The servers that were kept in mcpzip's configuration.
fn kept_servers(restored: &[(PathBuf, Restored)], machine: &Machine) -> BTreeSet<String> {
    let ours = restored
        .iter()
        .filter(|(path, _)| *path == machine.paths.config_file);
    let kept = ours.filter_map(|(_, restored)| match restored {
        Restored::Kept(keys) => Some(keys),
        _ => None,
    });
    let servers = kept
        .flatten()
        .filter_map(|key| key.strip_prefix("mcpServers."));
    // Those of which the run only changed a value were there before.
    let config = Config::load(&machine.paths, &machine.around.environment);
    let names = config.map(|config| config.names).unwrap_or_default();
    let added = servers.filter(|name| names.contains(*name) || !name.contains('.'));
    added.map(str::to_owned).collect()
}

fn backups(machine: &Machine, id: &str) -> String {
    below_home(&machine.journal().backups(id), &machine.around.home)
}

fn list(machine: &Machine, output: &Output) {
    let runs = machine.journal().list();
    if output.is_json() {
        output.json(&runs);
        return;
    }
    if runs.is_empty() {
        output.line(faint("nothing was changed yet"));
    }
    for run in &runs {
        let state = match run.state {
            RunState::Begun => bad("was interrupted; `mcpzip undo` reverts its changes"),
            RunState::Done => good("done"),
            RunState::Undone => faint("undone"),
            RunState::Damaged => bad("its record cannot be read"),
        };
        output.line(format!("{}  {}  {state}", strong(&run.id), run.command));
        if let Some(problem) = &run.problem {
            output.line(faint(format!("  {}", printable(problem))));
        }
        run.files
            .iter()
            .map(|file| below_home(file, &machine.around.home))
            .for_each(|file| output.line(faint(format!("  {file}"))));
    }
}

/// The outcome's name in the JSON, and the keys that were kept.
fn words(restored: &Restored) -> (&'static str, Value) {
    match restored {
        Restored::Whole => ("restored", Value::Null),
        Restored::Removed => ("removed", Value::Null),
        Restored::Untouched => ("untouched", Value::Null),
        Restored::Part => ("partly", Value::Null),
        Restored::Values => ("values", Value::Null),
        Restored::Released(_) => ("released", Value::Null),
        Restored::Kept(keys) | Restored::Relied(keys) | Restored::Needed(keys) => {
            ("kept", json!(keys))
        }
        Restored::Back => ("back", Value::Null),
    }
}
