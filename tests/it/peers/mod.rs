//! Real servers behind `mcpzip` and real clients before it, at the pinned versions of `tests/peers`.
//!
//! The first test that needs them installs them into the build directory. Where Node.js or Python is missing the tests
//! fail and say what to install; only `MCPZIP_TEST_SKIP_PEERS=1` leaves them out, and that is said too.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod agents;
mod chains;
mod clients;
#[cfg(target_os = "linux")]
mod command_help;
mod conformance;
mod direct;
mod example;
mod extensions;
mod install;
#[cfg(target_os = "linux")]
mod kill;
mod login;
mod page;
mod process;
mod real_servers;
#[cfg(target_os = "linux")]
mod replicas;
#[cfg(target_os = "linux")]
mod sandboxed;
mod served;
mod servers;
mod suite;
mod upstreams;

use install::Peers;

/// Writes to the terminal past the test runner, which shows nothing of tests that pass.
fn announce(text: &str) {
    use std::io::Write as _;
    // Nothing is lost for the test when nobody listens.
    let _ = std::io::stderr()
        .lock()
        .write_all(format!("\n{text}\n").as_bytes());
}

/// What is installed; `None` when these tests are to be left out.
#[track_caller]
fn peers() -> Option<&'static Peers> {
    install::peers().unwrap_or_else(|problem| panic!("{problem}"))
}

/// Rows below each other, each column as wide as its longest cell.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
    };
    let widths: Vec<usize> = (0..columns)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
