//! `mcpzip undo`: reverts the files that `init`, `migrate`, `connect`, `disconnect`, `add --force` or `secret migrate` changed.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good, strong};
use super::printable::printable;
use super::setup::{Machine, below_home};
use crate::clients::{
    Client, CutOff, Kept, KeptFor, NO_RUNS, Restored, RunState, Summary, Undone, Unreturned,
    Whereabouts,
};
use crate::config::secrets_file;
use crate::text::shell_word;

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
    /// Do not ask; without a terminal, `undo` never asks
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
        return list(machine, output);
    }
    if arguments.dry_run || !arguments.yes && !output.is_json() && output.can_ask() {
        let (meant, around) = (arguments.run.as_deref(), &machine.around);
        let run = machine.journal().preview(meant, around);
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
        for CutOff {
            client,
            servers,
            run,
        } in &run.cut_off
        {
            let title = Client::named(client).map_or("the client", Client::title);
            output.notable(&printable(&format!(
                "{title} will no longer reach what a later run moved: {}; `mcpzip undo {run}` gives it back",
                servers.join(", ")
            )));
        }
        output.line(faint(format!("{NO_RUNS}, and stay")));
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
        kept,
        unreturned,
        mut remaining,
    } = undone.map_err(anyhow::Error::from)?;
    for server in &kept {
        remaining.remove(&server.name);
        output.note(&printable(&kept_text(server, &backups(machine, &id))));
    }
    for server in &unreturned {
        remaining.remove(&server.here);
        output.note(&printable(&unreturned_text(server, machine)));
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
            json!({ "file": path.display().to_string(), "outcome": outcome, "kept": kept, "reverted": reverted })
        });
        let kept = kept
            .iter()
            .map(|it| json!({ "server": it.name, "reason": reason(it.reason) }));
        let unreturned = unreturned.iter().map(|it| {
            json!({
                "client": it.client, "file": it.path.display().to_string(), "server": it.name, "name": it.here,
                "in_mcpzip": it.whereabouts == Whereabouts::Here, "backup": it.backup.display().to_string(),
            })
        });
        output.json(&json!({
            "run": id,
            "files": files.collect::<Vec<_>>(),
            "kept": kept.collect::<Vec<_>>(),
            "unreturned": unreturned.collect::<Vec<_>>(),
            "remaining": remaining,
        }));
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
            Restored::Relied(keys) => bad(format!("these keys were kept: {}", keys.join(", "))),
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
    let runs = machine.journal().list().unwrap_or_default().into_iter();
    let begun = runs.filter(|run| run.state == RunState::Begun);
    let sentence = |run: Summary| {
        let (command, id) = (&run.command, &run.id);
        let text = format!(
            "`mcpzip {command}` or its undo was interrupted, and may have changed some of its files; `mcpzip undo {id}` reverts them"
        );
        (run.id, text)
    };
    begun.map(sentence).collect()
}

/// The runs of which the record or a kept file cannot be read, with the reasons; `undo` stands for all of them.
pub(super) fn damaged(machine: &Machine) -> Vec<(String, String)> {
    match machine.journal().list() {
        Ok(runs) => {
            let runs = runs.into_iter();
            runs.filter_map(|run| Some((run.id, run.problem?)))
                .collect()
        }
        Err(error) => vec![("undo".to_owned(), error.to_string())],
    }
}

/// A sentence about a server of mcpzip that is not as before the run.
fn kept_text(server: &Kept, backups: &str) -> String {
    let name = &server.name;
    let word = shell_word(name);
    match server.reason {
        KeptFor::Changed => format!(
            "`{name}` stays in mcpzip, as its entry was changed there: `mcpzip remove {word}` removes it"
        ),
        KeptFor::ChangedAgain => format!(
            "`{name}` stays in mcpzip as it is, as its entry was changed there again since; its entry from before the run is in {backups}"
        ),
        KeptFor::Gone => format!(
            "`{name}` was removed from mcpzip since, and stays removed; its entry from before the run is in {backups}"
        ),
        KeptFor::Relied => format!(
            "`{name}` stays in mcpzip, as a later run relies on it: the undo of that run removes it"
        ),
        KeptFor::Unread => format!(
            "`{name}` stays in mcpzip, as a later run, which cannot be read, may rely on it; if no client needs it, `mcpzip remove {word}` removes it"
        ),
    }
}

const fn reason(reason: KeptFor) -> &'static str {
    match reason {
        KeptFor::Changed | KeptFor::ChangedAgain => "changed",
        KeptFor::Gone => "removed",
        KeptFor::Relied => "relied on",
        KeptFor::Unread => "unread run",
    }
}

/// A sentence about a server that a client does not get back.
fn unreturned_text(server: &Unreturned, machine: &Machine) -> String {
    let Unreturned { name, here, .. } = server;
    let title = Client::named(&server.client).map_or("the client", Client::title);
    let [file, backup] =
        [&server.path, &server.backup].map(|path| below_home(path, &machine.around.home));
    let place = match server.whereabouts {
        Whereabouts::Here => format!("it stays in mcpzip as `{here}`"),
        Whereabouts::Replaced => {
            format!("mcpzip has another `{here}`, too, so its entry is in {backup} alone")
        }
        Whereabouts::Removed => {
            format!("mcpzip does not have it any more, so its entry is in {backup} alone")
        }
    };
    format!(
        "`{name}` of {title} is not put back into {file}, which has another value under that name now; {place}"
    )
}

fn backups(machine: &Machine, id: &str) -> String {
    below_home(&machine.journal().backups(id), &machine.around.home)
}

fn list(machine: &Machine, output: &Output) -> Result<(), Exit> {
    let runs = machine.journal().list().map_err(anyhow::Error::from)?;
    if output.is_json() {
        output.json(&runs);
        return Ok(());
    }
    if runs.is_empty() {
        output.line(faint(format!("nothing was changed yet; {NO_RUNS}")));
    }
    for run in &runs {
        let state = match run.state {
            RunState::Begun => {
                bad("was interrupted, or its undo was; `mcpzip undo` reverts its changes")
            }
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
    Ok(())
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
