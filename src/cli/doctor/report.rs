//! What was found, for people and for programs.

use serde_json::json;

use super::super::output::{Output, bad, caution, faint, good, strong};
use super::super::printable::printable;
use super::super::setup::Machine;
use super::Examination;
use super::finding::Finding;
use super::kinds::Severity;

pub(super) fn show(examination: &Examination, machine: &Machine, output: &Output) {
    if output.is_json() {
        output.json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "configuration": machine.paths.config_file,
            "cache": machine.paths.cache_dir,
            "state": machine.paths.state_dir,
            "servers": examination.servers,
            "clients": examination.clients,
            "findings": examination.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
            "worst": examination.worst(),
        }));
        return;
    }
    let path = machine.paths.config_file.display();
    output.line(format!("{} {}", strong(concat!("mcpzip ", env!("CARGO_PKG_VERSION"))), faint(path)));
    servers(examination, output);
    clients(examination, output);
    for finding in &examination.findings {
        output.line("");
        one(finding, output);
    }
    output.line("");
    output.line(sum(examination));
}

fn servers(examination: &Examination, output: &Output) {
    let widest = examination.servers.iter().map(|server| server.name.len()).max().unwrap_or(0);
    for server in &examination.servers {
        let state = match server.state {
            "failed" => bad("failed"),
            "ready" | "idle" => good("works "),
            state => faint(state),
        };
        let pad = " ".repeat(widest - server.name.len());
        let time = server.seconds.map(|seconds| format!(", {seconds:.2} s")).unwrap_or_default();
        let words = server.software.iter().chain(&server.revision).map(String::as_str).collect::<Vec<_>>();
        let aside = if words.is_empty() { String::new() } else { faint(format!(" ({})", words.join(", protocol "))) };
        output.line(format!("  {}{pad}  {state}  {} tools{time}{aside}", strong(&server.name), server.tools));
    }
}

fn clients(examination: &Examination, output: &Output) {
    for client in &examination.clients {
        let aside = faint(format!("({}, {})", client.scope, printable(&client.file)));
        output.line(format!("  {} starts `{}` {aside}", strong(client.client), printable(&client.program)));
    }
}

fn one(finding: &Finding, output: &Output) {
    let label = match (finding.is_mended(), finding.kind.severity) {
        (true, _) => good("mended"),
        (false, Severity::Error) => bad("error"),
        (false, Severity::Warning) => caution("warning"),
        (false, Severity::Note) => faint("note"),
    };
    let subject = printable(&finding.subject);
    output.line(format!("{label} {} {}", strong(&subject), faint(format!("[{}]", finding.kind.code))));
    output.line(format!("  {}", finding.what));
    output.line(format!("  {}", faint(finding.kind.why)));
    match &finding.mended {
        Some(Ok(done)) => output.line(format!("  {}", good(done))),
        Some(Err(reason)) => output.line(format!("  {}", bad(format!("could not be mended: {reason}")))),
        None => {
            output.line(format!("  to mend it: {}", finding.mend()));
            if finding.fix.is_some() {
                output.line(faint("  `--fix` does it"));
            }
        }
    }
}

fn sum(examination: &Examination) -> String {
    let left = |severity| {
        let is_left = move |found: &&Finding| !found.is_mended() && found.kind.severity == severity;
        examination.findings.iter().filter(is_left)
    };
    let counts = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
    let words: Vec<String> = counts
        .into_iter()
        .map(|(severity, word)| (left(severity).count(), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}{}", if count == 1 { "" } else { "s" }))
        .collect();
    let mended = examination.findings.iter().filter(|found| found.is_mended()).count();
    let mended = if mended > 0 { format!("; {mended} mended") } else { String::new() };
    match words.is_empty() {
        true => good(format!("nothing is wrong{mended}")),
        false => format!("{}{mended}", words.join(", ")),
    }
}
