//! Checks of the tool lists, the search index and the vectors on disk.

use std::path::Path;
use std::time::Duration;

use super::super::setup::Machine;
use super::Examination;
use super::finding::{Finding, Fix};
use super::kinds;
use crate::app::App;
use crate::catalog;
use crate::tool::ServerName;

/// Discards damaged tool lists, so that their servers are listed again.
pub(super) async fn before(app: &App, only: Option<&ServerName>) {
    let proxy = app.proxy();
    proxy.inventory.loaded().await;
    let snapshot = proxy.unscoped().snapshot();
    for known in snapshot
        .servers()
        .filter(|known| only.is_none_or(|only| only == known.name()))
    {
        if known
            .entries()
            .iter()
            .any(|entry| known.json(entry).is_err())
        {
            proxy.inventory.discard(known.name());
        }
    }
}

/// Checks the caches after the servers were listed.
pub(super) async fn after(
    app: &App,
    machine: &Machine,
    only: Option<&ServerName>,
    examination: &mut Examination,
) {
    if only.is_some() {
        return;
    }
    let lists = machine.paths.cache_dir.join(catalog::DIRECTORY);
    for format in entries(&lists) {
        let name = format
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name != catalog::FORMAT && format.is_dir() {
            let what = format!("`{}` is of an older version", format.display());
            let finding =
                Finding::new(&kinds::CACHE_OLD_FORMAT, format.display().to_string(), what);
            examination.add(finding.with_fix(Fix::RemoveDirectory(format)));
        }
    }
    for file in entries(&lists.join(catalog::FORMAT)) {
        if file.extension().is_some_and(|ending| ending == "damaged") {
            let what = format!("`{}` was set aside", file.display());
            let finding = Finding::new(&kinds::CACHE_DAMAGED, file.display().to_string(), what);
            examination.add(finding.with_fix(Fix::RemoveFile(file)));
        }
    }
    for directory in [&machine.paths.cache_dir, &machine.paths.state_dir] {
        if let Err(error) = write_probe(directory) {
            let path = directory.display().to_string();
            examination.add(Finding::new(
                &kinds::CACHE_UNWRITABLE,
                path.clone(),
                format!("`{path}`: {error}"),
            ));
        }
    }
    let proxy = app.proxy();
    if let Err(reason) = proxy.inventory.index_ready(Duration::from_secs(20)).await {
        examination.add(Finding::new(
            &kinds::SEARCH_INDEX,
            "search",
            reason.to_string(),
        ));
    }
    let status = proxy.inventory.status_of_caches().await;
    if let Some(coverage) = status
        .search_by_meaning
        .filter(|coverage| coverage.embedded < coverage.tools)
    {
        let finding = Finding::new(&kinds::SEARCH_MEANING, "search", coverage.to_string());
        examination.add(finding.with_fix(Fix::Embed));
    }
}

fn entries(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

/// Writes an empty file with the function that writes all others, and removes it.
fn write_probe(directory: &Path) -> std::io::Result<()> {
    let path = directory.join(format!(".doctor-{}", std::process::id()));
    crate::files::replace(&path, &[b""])?;
    std::fs::remove_file(&path)
}
