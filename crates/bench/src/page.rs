//! Updates the pages in the documentation.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::table::Table;

const PAGE: &str = "docs/performance.md";
#[cfg(any(target_os = "linux", test))]
const DAEMON_PAGE: &str = "docs/daemon.md";
const BEGIN: &str = "<!-- measured: written by mcpzip-bench -->\n";
const END: &str = "<!-- end of measured -->\n";

/// Writes the results to a clone of the repository.
pub(crate) fn update(repository: &Path, table: &Table) -> Result<()> {
    let measured = format!("{}\n\n{}", table.machine, table.to_markdown());
    let path = repository.join(PAGE);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let text =
        replaced(&text, &measured).with_context(|| format!("{PAGE} has no place for the table"))?;
    std::fs::write(&path, text)?;
    Ok(std::fs::write(
        repository.join("docs/performance.json"),
        table.to_json(),
    )?)
}

/// Writes the figures of the daemon into a clone of the repository.
#[cfg(target_os = "linux")]
pub(crate) fn update_daemon(repository: &Path, measured: &str) -> Result<()> {
    let path = repository.join(DAEMON_PAGE);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let text = replaced(&text, measured)
        .with_context(|| format!("{DAEMON_PAGE} has no place for the table"))?;
    Ok(std::fs::write(&path, text)?)
}

/// `text` with `measured` between the two marks. `None` if a mark is missing.
fn replaced(text: &str, measured: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{measured}{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = format!("a\n{BEGIN}old\n{END}b\n");
        assert_eq!(
            replaced(&text, "new\n").unwrap(),
            format!("a\n{BEGIN}new\n{END}b\n")
        );
        assert_eq!(replaced("no marks", "new"), None);
    }

    #[test]
    fn the_pages_have_a_place_for_it() {
        let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        for page in [PAGE, DAEMON_PAGE] {
            let text = std::fs::read_to_string(repository.join(page)).unwrap();
            assert!(replaced(&text, "x").is_some(), "{page}");
        }
    }
}
