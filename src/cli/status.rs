//! `mcpzip status`: how things stand, by what is on the disk. Nothing is connected, so it is there at once.

use clap::Args;

use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good, strong};
use super::printable::printable;
use crate::app::App;
use crate::proxy::{ServerReport, Status, counted};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip status
  mcpzip status --json")]
pub(super) struct Arguments {}

pub(super) async fn run(app: &App, output: &Output) -> Result<(), Exit> {
    let status = app.proxy().inventory.status_of_caches().await;
    if output.is_json() {
        output.json(&status);
    } else {
        show(&status, output);
    }
    Ok(())
}

fn show(status: &Status, output: &Output) {
    let path = status.configuration.as_deref().unwrap_or_default();
    output.line(format!(
        "{} {}",
        strong(format!("mcpzip {}", status.version)),
        faint(path)
    ));
    show_servers(&status.servers, "  ", known, output);
    show_warnings(status, output);
    output.line(sum(status));
    if let Some(coverage) = status.search_by_meaning.filter(|_| status.tools > 0) {
        output.line(format!("search by meaning: {coverage}"));
    }
    output.line(faint(
        "nothing was connected for this: `mcpzip servers` connects to all, `mcpzip doctor` looks for faults",
    ));
}

/// A line for each server, what is to be said of it below.
pub(super) fn show_servers(
    servers: &[ServerReport],
    indent: &str,
    state: fn(&ServerReport) -> String,
    output: &Output,
) {
    let widths = servers.iter().map(|server| server.name.chars().count());
    let widest = widths.max().unwrap_or(0);
    let below = format!("{indent}{:widest$}  ", "");
    for server in servers {
        let pad = " ".repeat(widest - server.name.chars().count());
        output.row(
            format!("{indent}{}{pad}  ", strong(printable(&server.name))),
            state(server),
        );
        let withheld =
            (server.withheld > 0).then(|| format!("{} more tools are withheld", server.withheld));
        let changed = server.changed_text();
        for line in server
            .reason
            .iter()
            .chain(&server.flaws)
            .chain(&withheld)
            .chain(&changed)
        {
            output.row(&below, printable(line));
        }
    }
}

pub(super) fn show_warnings(status: &Status, output: &Output) {
    for warning in &status.warnings {
        output.line(format!("{} {}", bad("configuration:"), printable(warning)));
    }
}

pub(super) fn sum(status: &Status) -> String {
    let tools = strong(counted(status.tools, "tool"));
    format!("{tools} of {}", counted(status.servers.len(), "server"))
}

/// What is known of a server without asking it.
fn known(server: &ServerReport) -> String {
    let software = server
        .software
        .as_deref()
        .map(|name| format!(" ({})", printable(name)))
        .unwrap_or_default();
    match (server.state, server.listed_text(), server.failed_text()) {
        ("disabled", ..) => faint("disabled"),
        ("faulty", ..) => bad("cannot be used"),
        (_, Some(listed), failed) => {
            let failed = failed.map(|failed| format!("; {}", bad(printable(&failed))));
            format!(
                "{}{}, {listed}{}{}",
                good(server.tools_text()),
                server.beside_tools(),
                faint(software),
                failed.unwrap_or_default()
            )
        }
        (_, None, Some(failed)) => bad(printable(&failed)),
        (_, None, None) => faint("was never asked for its tools"),
    }
}
