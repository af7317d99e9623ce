//! Updates the pages in the documentation.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::table::Table;

const PAGE: &str = "docs/performance.md";
#[cfg(any(target_os = "linux", test))]
const DAEMON_PAGE: &str = "docs/daemon.md";
const MEASURED: &str = "measured";
/// Parts that have a table of their own, in runs that measure nothing else.
const AUDIT: &str = "audit";
const SANDBOX: &str = "sandbox";

/// Writes the results to a clone of the repository.
pub(crate) fn update(repository: &Path, table: &Table, parts: &[String]) -> Result<()> {
    let measured = format!("{}\n\n{}", table.machine, table.to_markdown());
    let own = [AUDIT, SANDBOX].into_iter().find(|part| parts == [*part]);
    replace_in(&repository.join(PAGE), own.unwrap_or(MEASURED), &measured)?;
    if own.is_some() {
        return Ok(());
    }
    Ok(std::fs::write(
        repository.join("docs/performance.json"),
        table.to_json(),
    )?)
}

/// Writes the figures of the daemon into a clone of the repository.
#[cfg(target_os = "linux")]
pub(crate) fn update_daemon(repository: &Path, measured: &str) -> Result<()> {
    replace_in(&repository.join(DAEMON_PAGE), MEASURED, measured)
}

/// Replaces what a page has between the marks of this name.
fn replace_in(path: &Path, mark: &str, measured: &str) -> Result<()> {
    let page = path.display();
    let text = std::fs::read_to_string(path).with_context(|| page.to_string())?;
    let text = replaced(&text, mark, measured)
        .with_context(|| format!("{page} has no place for the table `{mark}`"))?;
    Ok(std::fs::write(path, text)?)
}

/// `text` with `measured` between the two marks of this name. `None` if a mark is missing.
fn replaced(text: &str, mark: &str, measured: &str) -> Option<String> {
    let begin = format!("<!-- {mark}: written by mcpzip-bench -->\n");
    let end = format!("<!-- end of {mark} -->\n");
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{measured}{end}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = |table: &str| {
            format!("a\n<!-- audit: written by mcpzip-bench -->\n{table}<!-- end of audit -->\nb\n")
        };
        assert_eq!(
            replaced(&text("old\n"), AUDIT, "new\n").unwrap(),
            text("new\n")
        );
        assert_eq!(replaced(&text("old\n"), MEASURED, "new\n"), None);
    }

    #[test]
    fn the_pages_have_a_place_for_it() {
        let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        for (page, mark) in [
            (PAGE, MEASURED),
            (PAGE, AUDIT),
            (PAGE, SANDBOX),
            (DAEMON_PAGE, MEASURED),
        ] {
            let text = std::fs::read_to_string(repository.join(page)).unwrap();
            assert!(replaced(&text, mark, "x").is_some(), "{page}, {mark}");
        }
    }
}
