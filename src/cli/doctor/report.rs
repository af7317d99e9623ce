//! Prints the report, as text or JSON.

use serde_json::json;

use super::super::output::{Output, bad, caution, faint, good, strong};
use super::super::printable::printable;
use super::super::setup::Machine;
use super::Examination;
use super::finding::Finding;
use super::kinds::Severity;
use crate::proxy::counted;
use crate::text::chain;

pub(super) fn show(examination: &Examination, machine: &Machine, output: &Output) {
    if output.is_json() {
        output.json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "configuration": machine.paths.config_file.display().to_string(),
            "cache": machine.paths.cache_dir.display().to_string(),
            "state": machine.paths.state_dir.display().to_string(),
            "servers": examination.servers,
            "clients": examination.clients,
            "findings": examination.findings.iter().map(Finding::to_json).collect::<Vec<_>>(),
            "worst": examination.worst(),
        }));
        return;
    }
    let path = machine.paths.config_file.display();
    output.line(format!(
        "{} {}",
        strong(concat!("mcpzip ", env!("CARGO_PKG_VERSION"))),
        faint(path)
    ));
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
    let widest = examination
        .servers
        .iter()
        .map(|server| server.name.len())
        .max()
        .unwrap_or(0);
    for server in &examination.servers {
        let state = match server.state {
            "failed" => bad("failed"),
            "ready" | "idle" => good("works "),
            state => faint(state),
        };
        let pad = " ".repeat(widest - server.name.len());
        let time = server
            .seconds
            .map(|seconds| format!(", {seconds:.2} s"))
            .unwrap_or_default();
        let login = server
            .login
            .as_ref()
            .map(|login| format!("logged in at {}", printable(&login.issuer)));
        let revision = server
            .revision
            .as_ref()
            .map(|revision| format!("protocol {revision}"));
        let words: Vec<String> = server
            .software
            .iter()
            .cloned()
            .chain(revision)
            .chain(login)
            .chain(server.package.as_deref().map(printable))
            .chain(
                server
                    .sandbox
                    .as_ref()
                    .map(|sandbox| format!("sandbox {sandbox}")),
            )
            .collect();
        let aside = if words.is_empty() {
            String::new()
        } else {
            faint(format!(" ({})", words.join(", ")))
        };
        output.row(
            format!("  {}{pad}  ", strong(&server.name)),
            format!("{state}  {}{time}{aside}", counted(server.tools, "tool")),
        );
        if let Some(reason) = &server.reason {
            let below = format!("  {:widest$}  ", "");
            output.row(below, printable(reason));
        }
    }
}

fn clients(examination: &Examination, output: &Output) {
    for client in &examination.clients {
        let aside = faint(format!("({}, {})", client.scope, printable(&client.file)));
        output.line(format!(
            "  {} starts `{}` {aside}",
            strong(client.client),
            printable(&client.program)
        ));
    }
}

fn one(finding: &Finding, output: &Output) {
    let label = match (finding.is_fixed(), finding.kind.severity) {
        (true, _) => good("fixed"),
        (false, Severity::Error) => bad("error"),
        (false, Severity::Warning) => caution("warning"),
        (false, Severity::Note) => faint("note"),
    };
    let subject = printable(&finding.subject);
    output.line(format!(
        "{label} {} {}",
        strong(&subject),
        faint(format!("[{}]", finding.kind.code))
    ));
    let paragraph = |text: &str, style: &dyn Fn(&str) -> String| {
        output.row(INDENT, style(text));
    };
    let (plain, quiet) = (|line: &str| line.to_owned(), |line: &str| faint(line));
    paragraph(&finding.what, &plain);
    paragraph(finding.kind.why, &quiet);
    match &finding.fixed {
        Some(Ok(done)) => paragraph(done, &|line| good(line)),
        Some(Err(error)) => {
            let reason = chain(error.as_ref());
            paragraph(&format!("could not be fixed: {reason}"), &|line| bad(line));
        }
        None => {
            paragraph(&format!("to fix it: {}", finding.advice()), &plain);
            if let (Some(_), Some(fix)) = (&finding.fix, finding.kind.fix) {
                paragraph(&format!("`--fix`: {fix}"), &quiet);
            }
        }
    }
}

const INDENT: &str = "  ";

fn sum(examination: &Examination) -> String {
    let left = |severity| {
        let is_left = move |found: &&Finding| !found.is_fixed() && found.kind.severity == severity;
        examination.findings.iter().filter(is_left)
    };
    let counts = [
        (Severity::Error, "error"),
        (Severity::Warning, "warning"),
        (Severity::Note, "note"),
    ];
    let words: Vec<String> = counts
        .into_iter()
        .map(|(severity, word)| (left(severity).count(), word))
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| counted(count, word))
        .collect();
    let fixed = examination
        .findings
        .iter()
        .filter(|found| found.is_fixed())
        .count();
    let fixed = if fixed > 0 {
        format!("; {fixed} fixed")
    } else {
        String::new()
    };
    match words.is_empty() {
        true => good(format!("nothing is wrong{fixed}")),
        false => format!("{}{fixed}", words.join(", ")),
    }
}
