//! `mcpzip status`: how things stand, by what is on the disk. Nothing is connected, so it is there at once.

use clap::Args;

use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good, strong};
use super::printable::printable;
use crate::app::App;
use crate::proxy::{ServerReport, Status};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip status
  mcpzip status --json")]
pub(super) struct Arguments {}

pub(super) async fn run(app: &App, output: &Output) -> Result<(), Exit> {
    let status = app.proxy().status_of_caches().await;
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
    let widest = status
        .servers
        .iter()
        .map(|server| server.name.chars().count())
        .max()
        .unwrap_or(0);
    for server in &status.servers {
        let pad = " ".repeat(widest - server.name.chars().count());
        output.line(format!(
            "  {}{pad}  {}",
            strong(printable(&server.name)),
            known(server)
        ));
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
            output.line(format!("  {}  {}", " ".repeat(widest), printable(line)));
        }
    }
    for warning in &status.warnings {
        output.line(format!("{} {}", bad("configuration:"), printable(warning)));
    }
    output.line(format!(
        "{} tools of {} servers",
        strong(status.tools),
        status.servers.len()
    ));
    if let Some(coverage) = &status.search_by_meaning {
        output.line(format!("search by meaning: {coverage}"));
    }
    output
        .line(faint("nothing was asked for this: `mcpzip servers` connects to all, `mcpzip doctor` looks for faults"));
}

/// What is known of a server without asking it.
fn known(server: &ServerReport) -> String {
    let software = server
        .software
        .as_deref()
        .map(|name| format!(" ({})", printable(name)))
        .unwrap_or_default();
    match (server.state, server.listed_text()) {
        ("disabled", _) => faint("disabled"),
        ("faulty", _) => bad("cannot be used"),
        (_, Some(listed)) => {
            let beside = server.beside_tools();
            format!(
                "{} tools{beside}, {listed}{}",
                good(server.tools),
                faint(software)
            )
        }
        (_, None) => faint("was never asked for its tools"),
    }
}
