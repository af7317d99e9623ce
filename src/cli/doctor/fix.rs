//! The repairs of `--fix`. They are safe, and each is reported.

use std::io;
#[cfg(unix)]
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

use super::super::output::Output;
use super::super::setup::Machine;
use super::Examination;
use super::finding::Fix;
use crate::app::App;
use crate::clients::{OwnEntry, repair};

/// Time limit for computing vectors.
const EMBEDDING: Duration = Duration::from_secs(120);

pub(super) async fn all(
    app: Option<&App>,
    machine: &Machine,
    examination: &mut Examination,
    output: &Output,
) {
    for finding in &mut examination.findings {
        let Some(fix) = &finding.fix else { continue };
        let fixed = match fix {
            #[cfg(unix)]
            Fix::Close(paths) => close(paths),
            Fix::RemoveFile(path) => outcome(std::fs::remove_file(path), "it is removed"),
            Fix::RemoveDirectory(path) => outcome(std::fs::remove_dir_all(path), "it is removed"),
            Fix::Entry { entry, is_dead } => complete(machine, entry, *is_dead),
            Fix::Embed => embed(app, output).await,
        };
        finding.fixed = Some(fixed);
    }
}

/// Plans on the file's current content, because an earlier repair may have changed it.
fn complete(machine: &Machine, entry: &OwnEntry, is_dead: bool) -> anyhow::Result<String> {
    let launch = machine
        .launch()
        .map_err(|exit| anyhow::Error::msg(exit.to_string()))?;
    let planned = repair(entry, is_dead, &launch, &machine.paths.config_file);
    let Some(edit) = planned? else {
        return Ok("nothing is left to do".to_owned());
    };
    let run = machine
        .journal()
        .apply("doctor --fix", std::slice::from_ref(&edit))?;
    Ok(format!(
        "`{}` is edited; `mcpzip undo {run}` reverts it",
        edit.path.display()
    ))
}

async fn embed(app: Option<&App>, output: &Output) -> anyhow::Result<String> {
    let app = app.context("there is no configuration")?;
    {
        let _spinner = output.spinner("computing missing vectors");
        app.proxy().inventory.vectors_made(EMBEDDING).await;
    }
    let proxy = app.proxy();
    match proxy.inventory.status(&proxy.unscoped()).search_by_meaning {
        Some(coverage) if coverage.embedded < coverage.tools => {
            Err(anyhow::anyhow!("not in time: {coverage}"))
        }
        _ => Ok("every tool is ready now".to_owned()),
    }
}

fn outcome(done: io::Result<()>, words: &str) -> anyhow::Result<String> {
    done?;
    Ok(words.to_owned())
}

/// Removes the permissions of group and others.
#[cfg(unix)]
fn close(paths: &[PathBuf]) -> anyhow::Result<String> {
    use std::os::unix::fs::PermissionsExt as _;
    // An earlier repair may have removed some of them.
    for path in paths.iter().filter(|path| path.exists()) {
        let failed = || format!("`{}`", path.display());
        let mode = path.metadata().with_context(failed)?.permissions().mode() & 0o700;
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, permissions).with_context(failed)?;
    }
    Ok("only you can open it now".to_owned())
}
