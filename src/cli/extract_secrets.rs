//! `mcpzip config extract-secrets`: moves literal secrets out of the configuration.

use clap::Args;
use serde_json::json;

use super::diagnostics::Exit;
use super::migrate::diff_lines;
use super::output::{Output, faint, good};
use super::printable::printable;
use super::setup::below_home;
use super::twins::{about_staying, listed};
use crate::clients::{Destination, Extraction, Journal};
use crate::config::{EditError, Environment, Paths, is_inline, secrets_file};
use crate::proxy::counted;

#[derive(Debug, Args)]
#[command(
    after_help = "The file of secrets is config.secrets.json next to config.json. Only you can read it, and its values take the place of `${NAME}` before variables of the environment do.

Examples:
  mcpzip config extract-secrets --dry-run
  mcpzip config extract-secrets --yes"
)]
pub(super) struct Arguments {
    /// Show the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Make the changes without asking
    #[arg(long, short)]
    yes: bool,
}

pub(super) fn run(
    arguments: &Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    let file = &paths.config_file;
    if is_inline(file) {
        return Err(anyhow::Error::from(EditError::Inline).into());
    }
    if !file.exists() {
        return Err(crate::config::Error::absent(file).into());
    }
    let extraction =
        Extraction::to(Destination::File, file, environment).map_err(anyhow::Error::from)?;
    if !output.is_json() {
        show(&extraction, paths, environment, output);
    }
    let run = apply(arguments, &extraction, paths, output)?;
    if output.is_json() {
        let mask = |text: &str| extraction.masker.mask(text).into_owned();
        let files = extraction
            .edits
            .iter()
            .map(|edit| json!({ "file": edit.path.display().to_string(), "diff": edit.diff(&extraction.masker) }));
        let literals = extraction
            .literals
            .iter()
            .map(|(server, keys)| json!({ "server": mask(server), "secrets": keys }));
        let names: Vec<&String> = extraction.stored.iter().map(|(name, _)| name).collect();
        output.json(&json!({
            "file": secrets_file(file).display().to_string(),
            "literal": literals.collect::<Vec<_>>(),
            "stored": names,
            "files": files.collect::<Vec<_>>(),
            "remarks": Vec::from_iter(about_staying(&extraction.staying)),
            "changed": run.is_some(),
            "undo": run,
        }));
    } else if let Some(run) = run {
        output.line(good("done"));
        output.line(faint(format!("`mcpzip undo` reverts it (run {run})")));
    }
    Ok(())
}

fn show(extraction: &Extraction, paths: &Paths, environment: &Environment, output: &Output) {
    let remark = about_staying(&extraction.staying);
    let remark = remark.map(|remark| extraction.masker.mask(&printable(&remark)).into_owned());
    match (extraction.literals.is_empty(), remark) {
        (true, Some(remark)) => {
            output.line(format!(
                "nothing moves, as no value is surely a secret; {remark}"
            ));
            return;
        }
        (true, None) => {
            output.line("no server has a literal secret");
            return;
        }
        (false, Some(remark)) => output.note(&remark),
        (false, None) => {}
    }
    let home = environment.home().unwrap_or_default();
    output.line(format!(
        "literal secrets in {}: {}",
        below_home(&paths.config_file, &home),
        printable(&listed(&extraction.literals))
    ));
    for edit in &extraction.edits {
        output.line(format!("\n{}", below_home(&edit.path, &home)));
        diff_lines(&edit.diff(&extraction.masker), output);
    }
}

/// Makes the changes after a confirmation. Returns the name of the journal's run.
fn apply(
    arguments: &Arguments,
    extraction: &Extraction,
    paths: &Paths,
    output: &Output,
) -> Result<Option<String>, Exit> {
    if arguments.dry_run || extraction.edits.is_empty() {
        return Ok(None);
    }
    if !arguments.yes {
        if output.is_json() || !output.can_ask() {
            return Err(Exit::failed(
                "nothing was done: pass `--yes` to do it without asking, or `--dry-run` for a preview",
            ));
        }
        let secrets = counted(extraction.moved.len(), "secret");
        if !output.ask(&format!("Move {secrets}?"))? {
            output.note("nothing was done");
            return Ok(None);
        }
    }
    let journal = Journal::new(&paths.state_dir);
    let run = journal.apply("config extract-secrets", &extraction.edits);
    Ok(Some(run.map_err(anyhow::Error::from)?))
}
