//! `mcpzip secret migrate`: moves literal secrets to the keychain or the encrypted file.
//!
//! Those of mcpzip's own files are replaced by `${keyring:NAME}` where they stand. A client cannot read such a reference, so with
//! `--clients` the servers move, too, as `mcpzip migrate` moves them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::super::diagnostics::Exit;
use super::super::migrate::diff_lines;
use super::super::output::{Output, faint, good, strong};
use super::super::printable::printable;
use super::super::setup::{Machine, approvals, below_home, clients_of};
use super::super::twins::{about_staying, listed};
use super::super::undo;
use super::{Store, check_place, failed, keep, record};
use crate::clients::{
    Choice, CodexApproval, Destination, Edit, Extraction, Launch, Plan, RunState, Survey, Verdict,
    client_literals,
};
use crate::config::{Config, Credentials, EditError, Keyring as _, SecretName, is_inline};
use crate::keyring::Location;
use crate::proxy::counted;
use crate::secret::{Masker, Secret};

/// The command in the journal.
const COMMAND: &str = "secret migrate";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip secret migrate --dry-run
  mcpzip secret migrate --clients
  mcpzip secret migrate --undo

It finds secrets in mcpzip's configuration, in the file of secrets next to it,
and in the files of clients. Clients cannot use a keychain of mcpzip: with
--clients their servers that have secrets move to mcpzip.
`--undo` restores the files byte for byte, from backups that have the secrets.")]
pub(super) struct Arguments {
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Make the changes without asking
    #[arg(long, short)]
    yes: bool,
    /// Also move the servers with secrets that clients have
    #[arg(long)]
    clients: bool,
    /// With `--clients`: let Codex ask before each call, or let it run every tool [default: as its `approval_policy`]
    #[arg(long, value_name = "MODE", value_parser = approvals(), requires = "clients")]
    codex_approval: Option<String>,
    /// Revert the latest run
    #[arg(long, conflicts_with_all = ["clients", "dry_run"])]
    undo: bool,
}

/// A planned move.
struct Move {
    /// The owners of the secrets in mcpzip's files, with the names of their keys.
    own: Vec<(String, Vec<String>)>,
    /// Those in clients' files, which move with `--clients` only.
    in_clients: Vec<(String, Vec<String>)>,
    stored: Vec<(String, Secret<String>)>,
    /// All secrets that leave a file: those, and the ones that are stored already.
    moved: Vec<(String, Secret<String>)>,
    edits: Vec<Edit>,
    masker: Masker,
    /// Reasons why servers of clients stay, and the texts that stay.
    remarks: Vec<String>,
}

pub(super) async fn run(
    arguments: &Arguments,
    store: &Store,
    machine: &Machine,
    output: &Output,
) -> Result<(), Exit> {
    if arguments.undo {
        return revert(arguments, machine, output);
    }
    if is_inline(&machine.paths.config_file) {
        return Err(anyhow::Error::from(EditError::Inline).into());
    }
    let plan = plan(arguments, store, machine)?;
    if !output.is_json() {
        show(&plan, arguments, machine, output);
    }
    let run = apply(arguments, &plan, store, machine, output)?;
    if let Some(run) = &run {
        let secrets = counted(plan.moved.len(), "secret");
        record(&format!("{secrets} moved out of files"), machine, output).await;
        if !output.is_json() {
            output.line(good("done"));
            output.line(faint(format!(
                "`mcpzip secret migrate --undo` reverts it (run {run})"
            )));
        }
    }
    let backups = backups(&plan, machine);
    if output.is_json() {
        output.json(&to_json(&plan, &backups, run.as_deref()));
    } else if run.is_some() {
        remark_on(&backups, machine, output);
    }
    Ok(())
}

fn plan(arguments: &Arguments, store: &Store, machine: &Machine) -> Result<Move, Exit> {
    let (file, around) = (&machine.paths.config_file, &machine.around);
    let survey = Survey::of(&clients_of(&[]), around);
    let in_clients = client_literals(&survey);
    let destination = Destination::Keyring(known(store)?);
    if arguments.clients {
        machine.check_configuration()?;
        let found = in_clients.iter();
        let choice = Choice {
            only: found.map(|(_, server, _)| server.clone()).collect(),
            extracts_secrets: true,
            destination: destination.clone(),
            history: machine.journal().history(),
            ..Choice::default()
        };
        if !choice.only.is_empty() {
            let named = arguments.codex_approval.as_deref();
            let launch = Launch {
                approval: named.and_then(CodexApproval::named),
                ..machine.launch()?
            };
            let plan = Plan::new(&survey, &choice, file, &launch, around);
            let plan = plan.map_err(anyhow::Error::from)?;
            let staying = plan.items.iter().filter_map(|item| match &item.verdict {
                Verdict::Stays(reason) => Some(format!("`{}` stays: {reason}", item.server)),
                _ => None,
            });
            return Ok(Move {
                remarks: staying
                    .chain(plan.warnings.iter().cloned())
                    .chain(about_staying(&plan.secrets.staying))
                    .collect(),
                own: plan.secrets.own,
                in_clients: with_files(&in_clients, machine),
                stored: plan.secrets.stored,
                moved: plan.secrets.moved,
                edits: plan.edits,
                masker: plan.masker,
            });
        }
    }
    let in_clients = with_files(&in_clients, machine);
    if !file.exists() {
        return Ok(Move {
            own: Vec::new(),
            in_clients,
            stored: Vec::new(),
            moved: Vec::new(),
            edits: Vec::new(),
            masker: Masker::default(),
            remarks: Vec::new(),
        });
    }
    let made =
        Extraction::to(destination, file, &around.environment).map_err(anyhow::Error::from)?;
    Ok(Move {
        own: made.literals,
        in_clients,
        stored: made.stored,
        moved: made.moved,
        edits: made.edits,
        masker: made.masker,
        remarks: about_staying(&made.staying).into_iter().collect(),
    })
}

/// The directories of backups that have one of the secrets that move, of this run and of earlier ones.
fn backups(plan: &Move, machine: &Machine) -> Vec<PathBuf> {
    let secrets: Vec<_> = plan.moved.iter().map(|(_, secret)| secret).collect();
    machine.journal().with_secrets(&secrets)
}

/// Says that backups have the secrets, as no undo is possible without them.
fn remark_on(backups: &[PathBuf], machine: &Machine, output: &Output) {
    if backups.is_empty() {
        return;
    }
    output.line("these backups have the secrets as text; remove them when everything works, as nothing can be undone without them:");
    for backup in backups {
        output.line(format!("  {}", below_home(backup, &machine.around.home)));
    }
}

/// The secrets that are stored already, with the values of those that can be read.
fn known(store: &Store) -> Result<BTreeMap<String, Option<Secret<String>>>, Exit> {
    let all = store.list().map_err(failed)?.into_iter();
    Ok(all
        .map(|known| (known.name.to_string(), store.secret(&known.name).ok()))
        .collect())
}

/// The servers of clients with their files, for display.
fn with_files(
    found: &[(std::path::PathBuf, String, Vec<String>)],
    machine: &Machine,
) -> Vec<(String, Vec<String>)> {
    let home = &machine.around.home;
    let shown = found.iter().map(|(path, server, keys)| {
        (
            format!("{server} in {}", below_home(path, home)),
            keys.clone(),
        )
    });
    shown.collect()
}

fn show(plan: &Move, arguments: &Arguments, machine: &Machine, output: &Output) {
    if plan.own.is_empty() && plan.edits.is_empty() {
        output.line("mcpzip's own files have no literal secret that can move");
    }
    if !plan.own.is_empty() {
        output.line(format!(
            "literal secrets: {}",
            printable(&listed(&plan.own))
        ));
    }
    if !plan.in_clients.is_empty() {
        output.line(format!(
            "literal secrets in clients' files: {}",
            printable(&listed(&plan.in_clients))
        ));
        if !arguments.clients {
            output.line(faint(
                "`mcpzip secret migrate --clients` moves these servers to mcpzip, and their secrets out of files",
            ));
        }
    }
    for edit in &plan.edits {
        let path = below_home(&edit.path, &machine.around.home);
        output.line(format!("\n{}", strong(path)));
        diff_lines(&edit.diff(&plan.masker), output);
    }
    for remark in &plan.remarks {
        output.note(&plan.masker.mask(&printable(remark)));
    }
}

/// Stores the secrets and makes the changes, after a confirmation. Returns the name of the journal's run.
fn apply(
    arguments: &Arguments,
    plan: &Move,
    store: &Store,
    machine: &Machine,
    output: &Output,
) -> Result<Option<String>, Exit> {
    if plan.edits.is_empty() {
        return Ok(None);
    }
    if let Some(name) = plan
        .stored
        .iter()
        .find_map(|(name, _)| SecretName::parse(name))
    {
        check_place(&name, None, store, machine)?;
    }
    if arguments.dry_run {
        return Ok(None);
    }
    if !arguments.yes {
        if output.is_json() || !output.can_ask() {
            return Err(Exit::failed(
                "nothing was done: pass `--yes` to do it without asking, or `--dry-run` for a preview",
            ));
        }
        let secrets = counted(plan.moved.len(), "secret");
        let place = place(machine)?;
        if !output.ask(&format!("Move {secrets} to {place}?"))? {
            output.note("nothing was done");
            return Ok(None);
        }
    }
    // A secret is stored before an entry refers to it.
    let mut done: Vec<SecretName> = Vec::new();
    let mut location: Option<Location> = None;
    for (name, value) in &plan.stored {
        let name = SecretName::parse(name)
            .ok_or_else(|| Exit::failed(format!("`{name}` cannot be the name of a secret")))?;
        match keep(&name, value, location, store, machine, output) {
            // All of them go to one place.
            Ok(at) => location = Some(at),
            Err(error) => {
                take_back(&done, store, output);
                return Err(error);
            }
        }
        done.push(name);
    }
    match machine.journal().apply(COMMAND, &plan.edits) {
        Ok(run) => Ok(Some(run)),
        Err(error) => {
            take_back(&done, store, output);
            Err(anyhow::Error::from(error).into())
        }
    }
}

/// The place of new secrets, in words.
fn place(machine: &Machine) -> Result<&'static str, Exit> {
    let config = Config::load_or_default(&machine.paths, &machine.around.environment)?;
    Ok(match config.credentials {
        Credentials::Auto => "the keychain, or to the encrypted file if there is no keychain",
        Credentials::Keychain => "the keychain",
        Credentials::File => "the encrypted file",
    })
}

/// Removes secrets that no file refers to, because the files were not changed.
fn take_back(names: &[SecretName], store: &Store, output: &Output) {
    for name in names {
        if let Err(error) = store.remove(name) {
            output.note(&format!(
                "the secret `{name}` was stored and stays: {error}"
            ));
        }
    }
}

/// Reverts the latest run that was not reverted. The secrets stay stored.
fn revert(arguments: &Arguments, machine: &Machine, output: &Output) -> Result<(), Exit> {
    let mut runs = machine.journal().list().map_err(anyhow::Error::from)?;
    runs.retain(|run| run.command == COMMAND && run.state != RunState::Undone);
    let newest = runs.into_iter().max_by(|one, other| one.id.cmp(&other.id));
    let run = newest.ok_or_else(|| Exit::failed("there is no run of `secret migrate` to undo"))?;
    undo::run(
        &undo::Arguments::of_run(run.id, arguments.yes),
        machine,
        output,
    )?;
    output.note("the files have the secrets as text again. They stay stored, too: `mcpzip secret list` shows those that are not used, `mcpzip secret rm` removes them");
    Ok(())
}

fn to_json(plan: &Move, backups: &[PathBuf], run: Option<&str>) -> Value {
    let mask = |text: &str| plan.masker.mask(text).into_owned();
    let owners = |found: &[(String, Vec<String>)]| -> Vec<Value> {
        let shown = found
            .iter()
            .map(|(owner, keys)| json!({ "server": mask(owner), "secrets": keys }));
        shown.collect()
    };
    let files = plan.edits.iter().map(
        |edit| json!({ "file": edit.path.display().to_string(), "diff": edit.diff(&plan.masker) }),
    );
    json!({
        "literal": owners(&plan.own),
        "in_clients": owners(&plan.in_clients),
        "moved": plan.moved.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "stored": plan.stored.iter().map(|(name, _)| name).collect::<Vec<_>>(),
        "files": files.collect::<Vec<_>>(),
        "remarks": plan.remarks.iter().map(|remark| mask(remark)).collect::<Vec<_>>(),
        "changed": run.is_some(),
        "undo": run,
        "backups": backups.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
    })
}
