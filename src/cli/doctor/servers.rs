//! Checks of the servers: lists all of them at once, and looks through their names, texts and tools.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde::Serialize;

use super::super::output::Output;
use super::super::printable::{around_hidden, hidden_in, printable};
use super::super::rules;
use super::Examination;
use super::commands;
use super::finding::{Finding, some};
use super::kinds;
use crate::app::App;
use crate::catalog::ServerTools;
use crate::config::{Config, Server, Trust};
use crate::proxy::{self, Progress, ServerReport, counted};
use crate::scan;
use crate::tool::ServerName;
use crate::upstream::oauth::LoginStatus;

/// Time limit for a server. The listing itself has a shorter one.
const LIMIT: Duration = Duration::from_secs(45);

/// A server is slow beyond this time. An agent waits as long at its first call.
const SLOW: Duration = Duration::from_secs(8);

/// A server's state after it was listed.
#[derive(Debug, Serialize)]
pub(super) struct ListedServer {
    pub(super) name: String,
    pub(super) state: &'static str,
    pub(super) tools: usize,
    pub(super) seconds: Option<f64>,
    /// The protocol revision of its connection.
    pub(super) revision: Option<String>,
    pub(super) software: Option<String>,
    /// The login at this server.
    pub(super) login: Option<LoginStatus>,
    /// Its sandbox, in words; `None` without one.
    pub(super) sandbox: Option<String>,
    /// The package that is started in place of its runner, with its version.
    pub(super) package: Option<String>,
    /// The projects of a server that is not for this directory, which is not tested here.
    pub(super) reason: Option<String>,
}

pub(super) async fn examine(
    app: &App,
    only: Option<&ServerName>,
    examination: &mut Examination,
    output: &Output,
) {
    let proxy = app.proxy();
    let config = proxy.unscoped().config();
    let is_meant = |name: &ServerName| only.is_none_or(|only| only == name);
    let used = config
        .servers
        .iter()
        // A server that is used in people's names has a list for each of them, and none for this command.
        .filter(|(name, entry)| !entry.disabled && !entry.is_for_people() && is_meant(name))
        .filter(|(name, _)| proxy.unscoped().is_reachable(name));
    let names: Vec<ServerName> = used.map(|(name, _)| name.clone()).collect();
    let times = list(app, &names, output).await;
    let status = proxy.inventory.status(&proxy.unscoped());
    let snapshot = proxy.unscoped().snapshot();
    let progress = proxy.inventory.progress();
    let neighbours = proxy::neighbours(&snapshot);
    for server in &status.servers {
        let Ok(name) = ServerName::new(&server.name) else {
            continue;
        };
        if !is_meant(&name) {
            continue;
        }
        if server.state == "faulty" {
            examination.servers.push(ListedServer {
                name: server.name.clone(),
                state: server.state,
                tools: 0,
                seconds: None,
                revision: None,
                software: None,
                login: None,
                sandbox: None,
                package: None,
                reason: None,
            });
            continue;
        }
        let known = snapshot.server(&name);
        let time = times.get(&name).copied();
        examination.servers.push(ListedServer {
            name: server.name.clone(),
            state: server.state,
            tools: server.tools,
            seconds: time.map(|time| (time.as_secs_f64() * 100.0).round() / 100.0),
            revision: known
                .and_then(|known| known.revision())
                .map(|revision| revision.to_string()),
            software: server.software.as_deref().map(printable),
            login: None,
            sandbox: server.sandbox.clone(),
            package: server.package.clone(),
            reason: server.reason.clone().filter(|_| is_elsewhere(server)),
        });
        if proxy.inventory.damage(&name).is_some() {
            let faults = proxy.inventory.record_faults(&name).into_iter();
            let faults: Vec<String> = faults
                .map(|fault| printable(&config.masker.mask(&fault)))
                .collect();
            let what = format!(
                "it cannot be checked which tools were approved or rejected: {}",
                faults.join("; ")
            );
            examination.add(Finding::new(&kinds::RECORD_DAMAGED, name.as_str(), what));
        }
        let Some(time) = time else { continue };
        if proxy.inventory.wants_login(&name) {
            let reason = reason(progress.get(&name), &config);
            examination.add(Finding::new(&kinds::SERVER_LOGIN, name.as_str(), reason));
        } else if server.state == "failed" || server.stale {
            failure(server, progress.get(&name), &config, examination);
        } else {
            listing(server, time, examination);
        }
        if !server.flaws.is_empty() {
            let flaws: Vec<String> = server.flaws.iter().map(|flaw| printable(flaw)).collect();
            let what = some(&flaws);
            examination.add(Finding::new(&kinds::SERVER_FLAWED, name.as_str(), what));
        }
        let malformed = known.map(|known| malformed(known)).unwrap_or_default();
        if !malformed.is_empty() {
            let what = some(&malformed);
            examination.add(Finding::new(&kinds::TOOL_MALFORMED, name.as_str(), what));
        }
        if !server.override_faults.is_empty() {
            let faults = server.override_faults.iter().map(|fault| printable(fault));
            let what = some(&faults.collect::<Vec<_>>());
            examination.add(Finding::new(&kinds::TOOL_OVERRIDE, name.as_str(), what));
        }
        let entry = config.servers.get(&name);
        let filters = entry.map(faulty_filters).unwrap_or_default();
        if !filters.is_empty() {
            let what = some(&filters);
            examination.add(Finding::new(&kinds::TOOL_FILTER, name.as_str(), what));
        }
        let trust = entry.map(|entry| entry.trust);
        changes(server, trust, examination);
        if let Some(known) = known {
            texts(known.as_listed(), &neighbours, examination);
            if let Some(entry) = config.servers.get(&name) {
                commands::examine(entry, known.as_listed(), examination);
            }
        }
    }
    let lists: Vec<ServerTools> = names
        .iter()
        .filter_map(|name| Some(snapshot.server(name)?.as_listed().clone()))
        .collect();
    for (server, remark) in rules::remarks(&config, &lists) {
        if only.is_none() || server.as_ref() == only {
            let subject = server.map_or_else(|| "tools".to_owned(), |name| name.to_string());
            examination.add(Finding::new(
                &kinds::RULE_UNMATCHED,
                subject,
                printable(&remark),
            ));
        }
    }
    if only.is_none() {
        server_names(&status.servers, examination);
    }
}

/// Lists all servers at once. Returns the time that each took.
async fn list(app: &App, names: &[ServerName], output: &Output) -> BTreeMap<ServerName, Duration> {
    let _spinner = output.spinner(format!("asking {}", counted(names.len(), "server")));
    let inventory = &app.proxy().inventory;
    let asked = names.iter().map(|name| async move {
        let start = Instant::now();
        inventory.list(Some(name), LIMIT).await;
        (name.clone(), start.elapsed())
    });
    join_all(asked).await.into_iter().collect()
}

/// Why a server was not listed.
fn reason(progress: Option<&Progress>, config: &Config) -> String {
    match progress {
        Some(Progress::Failed(reason)) => printable(&config.masker.mask(&reason.to_string())),
        _ => "it gave no answer in time".to_owned(),
    }
}

/// Reports that a server cannot be listed.
fn failure(
    server: &ServerReport,
    progress: Option<&Progress>,
    config: &Config,
    examination: &mut Examination,
) {
    let name = &server.name;
    // A missing program is already reported as the reason.
    let is_reported =
        |found: &Finding| found.kind == &kinds::COMMAND_MISSING && found.subject == *name;
    if !examination.findings.iter().any(is_reported) {
        let kind = match progress {
            Some(Progress::Failed(failed)) if failed.is_unreachable() => &kinds::SERVER_UNREACHABLE,
            _ => &kinds::SERVER_FAILED,
        };
        examination.add(Finding::new(kind, name, reason(progress, config)));
    }
    if let Some(listed) = server.listed_text() {
        let what = format!("its list of {} was {listed}", counted(server.tools, "tool"));
        examination.add(Finding::new(&kinds::CACHE_STALE, name, what));
    }
}

/// Whether a server is not for this directory.
fn is_elsewhere(server: &ServerReport) -> bool {
    server.state == "elsewhere"
}

/// Reports a slow listing, with the time that it took, and an empty one.
fn listing(server: &ServerReport, time: Duration, examination: &mut Examination) {
    if time > SLOW {
        let what = format!("it took {:.1} s", time.as_secs_f64());
        examination.add(Finding::new(&kinds::SERVER_SLOW, &server.name, what));
    }
    if server.tools + server.withheld == 0 {
        let what = format!("it lists no tools{}", server.other_entries());
        examination.add(Finding::new(&kinds::SERVER_EMPTY, &server.name, what));
    }
}

/// Reports tools that changed, or are held back until the user approves them.
fn changes(server: &ServerReport, trust: Option<Trust>, examination: &mut Examination) {
    let is_held = trust.is_some_and(|trust| !trust.is_report());
    let waits = is_held && server.pending.iter().any(|one| !one.rejected);
    if server.quarantined || waits && server.changed.is_empty() {
        let what = server.changed_text().unwrap_or_default();
        examination.add(Finding::new(&kinds::TOOL_HELD_BACK, &server.name, what));
    } else if !server.changed.is_empty() {
        let kind = if is_held {
            &kinds::TOOL_HELD_BACK
        } else {
            &kinds::TOOL_CHANGED
        };
        let what = some(&quoted(&server.changed));
        examination.add(Finding::new(kind, &server.name, what));
    }
}

/// The overrides with a `select` that is not a filter.
fn faulty_filters(entry: &Server) -> Vec<String> {
    let filters = entry.overrides.iter().filter_map(|(tool, wanted)| {
        let fault = proxy::projection::fault_of(wanted.select.as_deref()?)?;
        Some(printable(&format!("`{tool}`: {fault}")))
    });
    filters.collect()
}

/// The tools with definitions that clients could not read in their lists, each with the parts that are left out there.
fn malformed(known: &ServerTools) -> Vec<String> {
    let known = known.as_listed();
    let faults = known.entries().iter().filter_map(|entry| {
        let json = known.json(entry).ok()?;
        let name = printable(entry.name.as_str());
        match proxy::Listable::of(&json) {
            Err(reason) => Some(format!("`{name}`: {}", printable(&reason))),
            Ok(listable) if listable.left_out.is_empty() => None,
            Ok(listable) => Some(format!(
                "`{name}`: {}",
                printable(&listable.left_out.join("; "))
            )),
        }
    });
    faults.collect()
}

/// Reports servers whose names are easily confused.
fn server_names(servers: &[ServerReport], examination: &mut Examination) {
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    for alike in alike(&names) {
        let what = quoted(&alike).join(" and ");
        examination.add(Finding::new(&kinds::SERVER_NAMES_ALIKE, alike[0], what));
    }
}

/// Looks for hidden characters and similar names in the server's definitions and instructions.
fn texts(known: &ServerTools, neighbours: &scan::Neighbours, examination: &mut Examination) {
    let server = known.name().as_str();
    let (mut hidden, mut suspicious) = (Vec::new(), Vec::new());
    for entry in known.entries() {
        let Ok(json) = known.json(entry) else {
            continue;
        };
        let (value, unreadable) = scan::read(json.get());
        let findings = unreadable.into_iter().chain(scan::tool(&value));
        let findings = findings.chain(neighbours.shadowed(server, &value));
        for finding in visible(findings.collect()) {
            suspicious.push(format!(
                "`{}` has {finding}",
                printable(entry.name.as_str())
            ));
        }
        let mut found = None;
        walk(&value, &mut |text| {
            if found.is_none() {
                found = hidden_in(text).map(|characters| (characters, around_hidden(text)));
            }
        });
        if let Some((characters, part)) = found {
            hidden.push(format!(
                "`{}` has {characters}: \"{part}\"",
                printable(entry.name.as_str())
            ));
        }
    }
    if let Some((characters, text)) = known
        .instructions()
        .and_then(|text| Some((hidden_in(text)?, text)))
    {
        hidden.push(format!(
            "its instructions have {characters}: \"{}\"",
            around_hidden(text)
        ));
    }
    for finding in visible(
        known
            .instructions()
            .map(scan::instructions)
            .unwrap_or_default(),
    ) {
        suspicious.push(format!("its instructions have {finding}"));
    }
    if !suspicious.is_empty() {
        let what = some(&suspicious);
        examination.add(Finding::new(&kinds::TOOL_SUSPICIOUS_TEXT, server, what));
    }
    if !hidden.is_empty() {
        examination.add(Finding::new(
            &kinds::TOOL_HIDDEN_TEXT,
            server,
            some(&hidden),
        ));
    }
    let names: Vec<&str> = known
        .entries()
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    let pairs = alike(&names);
    let pairs: Vec<String> = pairs
        .iter()
        .map(|names| quoted(names).join(" and "))
        .collect();
    if !pairs.is_empty() {
        examination.add(Finding::new(&kinds::TOOL_NAMES_ALIKE, server, some(&pairs)));
    }
}

/// The findings other than hidden characters, which are a kind of their own here.
fn visible(findings: Vec<scan::Finding>) -> impl Iterator<Item = String> {
    let others = findings
        .into_iter()
        .filter(|finding| finding.kind != scan::Kind::Hidden);
    others.map(|finding| format!("{}: \"{}\"", finding.kind, printable(&finding.part)))
}

/// Calls `look` with every text in a definition, including member names.
fn walk(value: &serde_json::Value, look: &mut impl FnMut(&str)) {
    match value {
        serde_json::Value::String(text) => look(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| walk(item, look)),
        serde_json::Value::Object(members) => members.iter().for_each(|(key, value)| {
            look(key);
            walk(value, look);
        }),
        _ => {}
    }
}

/// Groups the names that differ only in dashes, underscores, dots and letter case.
fn alike<'n>(names: &[&'n str]) -> Vec<Vec<&'n str>> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names {
        let plain: String = name
            .chars()
            .filter(|c| !matches!(c, '-' | '_' | '.'))
            .flat_map(char::to_lowercase)
            .collect();
        groups.entry(plain).or_default().push(name);
    }
    groups
        .into_values()
        .filter(|names| names.len() > 1)
        .collect()
}

/// The names in backticks.
fn quoted(names: &[impl AsRef<str>]) -> Vec<String> {
    let names = names.iter();
    names
        .map(|name| format!("`{}`", printable(name.as_ref())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_agents_take_for_one_another_are_found() {
        assert_eq!(
            alike(&["my-db", "notes", "My_DB", "note"]),
            [vec!["my-db", "My_DB"]]
        );
        assert!(alike(&["a", "b"]).is_empty());
    }

    #[test]
    fn many_are_counted() {
        let texts: Vec<String> = (0..7).map(|number| number.to_string()).collect();
        assert_eq!(some(&texts), "0; 1; 2; 3; 4; and 2 more");
        assert_eq!(some(&texts[..1]), "0");
    }
}
