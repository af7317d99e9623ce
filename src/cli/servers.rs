//! `mcpzip servers`: every server asked, its state and the reason shown.

use std::time::Duration;

use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good, strong};
use crate::app::App;

const LIST_LIMIT: Duration = Duration::from_secs(60);

pub(super) async fn run(app: &App, output: &Output) -> Result<(), Exit> {
    let proxy = app.proxy();
    {
        let count = proxy
            .unscoped()
            .config()
            .servers
            .values()
            .filter(|entry| !entry.disabled)
            .count();
        let _spinner = output.spinner(format!("connecting to {count} servers"));
        proxy.refresh().list(None, LIST_LIMIT).await;
    }
    let status = proxy.status(&proxy.unscoped());
    if output.is_json() {
        output.json(&status);
        return Ok(());
    }
    let widest = status
        .servers
        .iter()
        .map(|server| server.name.len())
        .max()
        .unwrap_or(0);
    for server in &status.servers {
        let state = match server.state {
            "ready" => good("ready"),
            "failed" | "faulty" => bad(server.state),
            state => faint(state),
        };
        let pad = " ".repeat(widest - server.name.len());
        let software = server
            .software
            .as_deref()
            .map(|software| faint(format!(" ({software})")))
            .unwrap_or_default();
        let beside = server.beside_tools();
        output.line(format!(
            "{}{pad}  {state}  {} tools{beside}{software}",
            strong(&server.name),
            server.tools
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
            output.line(format!("{}  {line}", " ".repeat(widest)));
        }
    }
    for warning in &status.warnings {
        output.line(format!("{} {warning}", bad("configuration:")));
    }
    output.line(faint(format!(
        "{} tools of {} servers",
        status.tools,
        status.servers.len()
    )));
    if let Some(coverage) = status
        .search_by_meaning
        .filter(|coverage| coverage.embedded < coverage.tools)
    {
        output.line(faint(format!("search by meaning: {coverage}")));
    }
    Ok(())
}
