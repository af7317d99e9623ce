//! `mcpzip approve` and `mcpzip reject`: show tools that differ from the approved ones, and ask the person at the terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::completions;
use super::diagnostics::Exit;
use super::difference::{difference, patch, whole};
use super::output::{Output, bad, faint, good, strong};
use super::printable::printable;
use super::question::agrees;
use crate::app::App;
use crate::catalog::{Change, ChangeKind, Pending};
use crate::config::{Config, Holds, Paths, Transport};
use crate::proxy::Progress;
use crate::scan;
use crate::secret::Secret;
use crate::sources::saved_script;
use crate::tool::ServerName;

/// Time limit for listing a server that was not listed before.
const LIST_LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
#[command(override_usage = "mcpzip approve [OPTIONS] [SERVER] [TOOLS]...
       mcpzip approve [OPTIONS] --all")]
#[command(after_help = "Examples:
  mcpzip approve
  mcpzip approve github
  mcpzip approve github create_issue
  mcpzip approve github --digest 0f36a1c2b8e94d7755aa0c1e2f3b4d69
  mcpzip approve --all")]
pub(super) struct Approve {
    #[command(flatten)]
    pub(super) selection: Selection,
}

#[derive(Debug, Args)]
#[command(override_usage = "mcpzip reject [OPTIONS] [SERVER] [TOOLS]...
       mcpzip reject [OPTIONS] --all")]
#[command(after_help = "Examples:
  mcpzip reject github
  mcpzip reject github create_issue")]
pub(super) struct Reject {
    #[command(flatten)]
    pub(super) selection: Selection,
}

#[derive(Debug, Args)]
pub(super) struct Selection {
    /// Server whose tools differ from the approved ones [default: only list such servers]
    #[arg(add = completions::of_servers())]
    server: Option<String>,
    /// Only these tools, or prompts and resources by their labels (`prompt: review`)
    tools: Vec<String>,
    /// Show every server with differences
    #[arg(long, conflicts_with = "server")]
    all: bool,
    /// Decide only if the differences still have this digest, which an earlier run has shown
    #[arg(long, requires = "server", conflicts_with = "all")]
    digest: Option<String>,
}

impl Selection {
    /// Whether it is about all servers.
    pub(super) fn is_about_all(&self) -> bool {
        self.server.is_none()
    }
}

/// Lists the servers with differences. Starts none of them.
fn list(is_approval: bool, app: &App, output: &Output) {
    let inventory = &app.proxy().inventory;
    let config = app.proxy().unscoped().config();
    let neighbours = crate::proxy::neighbours(&app.proxy().unscoped().snapshot());
    let (mut rows, mut shown) = (Vec::new(), Vec::new());
    for server in config.servers.keys() {
        let pending = inventory.pending(server);
        let what = if let Some(reason) = inventory.damage(server) {
            let advice = repair(server);
            let reason = format!("{}. {advice}", config.masker.mask(&reason));
            shown.push(
                json!({ "server": server.as_str(), "change": "unreadable", "reason": reason }),
            );
            printable(&reason)
        } else if let Some(reason) = inventory.passing_fault(server) {
            shown.push(
                json!({ "server": server.as_str(), "change": "unreadable", "reason": reason }),
            );
            printable(&reason)
        } else if inventory.is_unstarted(server) {
            shown.extend(added_json(server, &config));
            "was added by an agent, and is not started".to_owned()
        } else if pending.is_quarantined && counted(&pending) == 0 {
            shown.push(json!({ "server": server.as_str(), "change": "quarantine" }));
            "is in quarantine; its tools are not known yet".to_owned()
        } else if pending.is_empty() {
            continue;
        } else {
            shown.extend(json_of(server, &pending, &neighbours, &config));
            let count = crate::proxy::counted(counted(&pending), "difference");
            match pending.is_lost {
                true => format!("{count}; its earlier record is lost, and everything of it waits"),
                false => count,
            }
        };
        rows.push((server, what));
    }
    if output.is_json() {
        return output.json(&shown);
    }
    if rows.is_empty() {
        return output.line(nothing_waits(is_approval));
    }
    for (server, what) in rows {
        output.row(format!("{}  ", strong(server)), what);
    }
    let word = if is_approval { "approve" } else { "reject" };
    output.line(faint(format!(
        "`mcpzip {word} SERVER` shows them, and asks you; `mcpzip {word} --all` does so for all"
    )));
}

fn nothing_waits(is_approval: bool) -> String {
    format!(
        "nothing waits for a decision: nothing differs from what was approved or first seen{}",
        if is_approval {
            ""
        } else {
            "; a rule in `tools.deny` withholds a tool that was approved"
        }
    )
}

/// Shows the differences, and approves or rejects them if the person confirms. Without a server and `--all`, lists the servers that have some.
pub(super) async fn run(
    selection: &Selection,
    is_approval: bool,
    app: &App,
    output: &Output,
) -> Result<(), Exit> {
    let proxy = app.proxy();
    proxy.inventory.loaded().await;
    if selection.server.is_none() && !selection.all {
        list(is_approval, app, output);
        return Ok(());
    }
    let config = proxy.unscoped().config();
    let servers = match &selection.server {
        Some(name) => vec![configured(name, &config, app.paths())?],
        None => config.servers.keys().cloned().collect(),
    };
    let (mut added, mut all, mut unreached) = (Vec::new(), Vec::new(), Vec::new());
    for server in servers {
        match renewed(&server, app, output).await {
            // The others can be decided on.
            Err(exit) if selection.all => {
                unreached.push(exit);
                continue;
            }
            renewed => renewed?,
        }
        if proxy.inventory.is_unstarted(&server) {
            if output.is_json() {
                added.extend(added_json(&server, &config));
                continue;
            }
            if !starts(&server, is_approval, app, output).await? {
                continue;
            }
        }
        let pending = match pending_of(&server, selection, app).await {
            // The others can be decided on.
            Err(exit) if selection.all => {
                unreached.push(exit);
                continue;
            }
            pending => pending?,
        };
        if !pending.is_empty() {
            all.push((server, pending));
        }
    }
    let digests: Vec<String> = all.iter().map(|(_, pending)| pending.digest()).collect();
    if let Some(expected) = &selection.digest
        && !digests.contains(expected)
    {
        return Err(Exit::failed(
            "the differences are not those of this digest any more: run the command without `--digest` to look at them",
        ));
    }
    let neighbours = crate::proxy::neighbours(&proxy.unscoped().snapshot());
    if output.is_json() {
        let differences = all
            .iter()
            .flat_map(|(server, pending)| json_of(server, pending, &neighbours, &config));
        let shown: Vec<Value> = added.into_iter().chain(differences).collect();
        output.json(&shown);
        if let Some(first) = unreached.into_iter().next() {
            return Err(first);
        }
        // A pipe only shows them.
        return match shown.is_empty() || output.is_json_asked() {
            true => Ok(()),
            false => Err(not_at_a_terminal()),
        };
    }
    let error = match all.is_empty() {
        true => unreached.pop(),
        false => None,
    };
    for exit in &unreached {
        output.note(&exit.for_terminal());
    }
    if let Some(exit) = error {
        return Err(exit);
    }
    if all.is_empty() {
        output.line(nothing_waits(is_approval));
        return Ok(());
    }
    for ((server, pending), digest) in all.iter().zip(&digests) {
        if pending.is_lost {
            output.note(&format!(
                "the earlier record of `{server}` is lost, so what you approved or rejected before is not known: everything of it waits for you"
            ));
        }
        show(server, pending, &neighbours, &config, output);
        output.line(faint(format!("digest: {digest}")));
    }
    let word = if is_approval { "approved" } else { "rejected" };
    let seen = all
        .iter()
        .filter(|(server, pending)| is_seen(server, pending, &config));
    let seen: Vec<ServerName> = match is_approval {
        true => seen.map(|(server, _)| server.clone()).collect(),
        false => Vec::new(),
    };
    let is_asked_apart = is_approval && selection.tools.is_empty();
    let rejected = match is_asked_apart {
        true => split_rejected(&mut all),
        false => Vec::new(),
    };
    let count: usize = all.iter().map(|(_, pending)| counted(pending)).sum();
    let of_others = all.iter().any(|(server, _)| !seen.contains(server));
    let agrees = count > 0 && decides(count, is_approval, &seen, of_others).await?;
    if !agrees {
        all.clear();
    }
    if (agrees || count == 0) && !rejected.is_empty() && shows_rejected(&rejected).await? {
        all.extend(rejected);
    }
    if all.is_empty() {
        return Err(Exit::failed(match &seen[..] {
            [] => format!("nothing was {word}"),
            [first, ..] => format!(
                "nothing was {word}; agents still see it: `mcpzip reject {first}` withholds it, `\"trust\": \"pin\"` in a server's \
                 entry holds changes back"
            ),
        }));
    }
    let mut decided = 0;
    for (server, pending) in &all {
        decided += proxy.inventory.decide(server, pending, is_approval)?.len();
    }
    output.line(good(format!("{word}: {decided}")));
    let expected: usize = all
        .iter()
        .map(|(_, pending)| match is_approval {
            true => counted(pending),
            false => pending.tools.len() + pending.entries.len(),
        })
        .sum();
    match expected - decided.min(expected) {
        0 => Ok(()),
        left => Err(Exit::failed(format!(
            "{left} changed while they were shown, or were decided on elsewhere, and were not {word}: run the command again to look at them"
        ))),
    }
}

/// Whether agents see the differences of a server before a person has decided: nothing holds them back.
fn is_seen(server: &ServerName, pending: &Pending, config: &Config) -> bool {
    let entry = config.servers.get(server);
    let mut changes = pending.tools.values().chain(pending.entries.values());
    let has_texts = pending.instructions.is_some() || pending.features.is_some();
    entry.is_some_and(|entry| entry.trust.is_report())
        && !pending.is_quarantined
        && !pending.is_lost
        && (has_texts || changes.any(|change| !change.is_rejected))
}

/// Takes what was rejected before out of `all`, and returns it: a person approves that by a question of its own.
fn split_rejected(all: &mut Vec<(ServerName, Pending)>) -> Vec<(ServerName, Pending)> {
    let mut rejected = Vec::new();
    for (server, pending) in all.iter_mut() {
        let mut before = pending.clone();
        before.tools.retain(|_, change| change.is_rejected);
        before.entries.retain(|_, change| change.is_rejected);
        if before.tools.is_empty() && before.entries.is_empty() {
            continue;
        }
        before.instructions = None;
        pending.tools.retain(|_, change| !change.is_rejected);
        pending.entries.retain(|_, change| !change.is_rejected);
        // They are approved together with the last of everything else, unless that is the end of a lost record.
        match pending.is_lost {
            true => before.features = None,
            false => pending.features = None,
        }
        rejected.push((server.clone(), before));
    }
    all.retain(|(_, pending)| counted(pending) > 0);
    rejected
}

/// Asks whether agents get what was rejected before.
async fn shows_rejected(rejected: &[(ServerName, Pending)]) -> Result<bool, Exit> {
    let names = rejected.iter().flat_map(|(server, pending)| {
        let tools = pending.tools.keys().chain(pending.entries.keys());
        tools.map(move |name| format!("{server}__{}", printable(name)))
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let question = format!("You rejected {names} before. Show this to agents now?");
    confirmed(&question).await
}

/// How a person repairs the record of a server.
fn repair(server: &ServerName) -> String {
    format!(
        "Make that file readable and writable, or put it back from a backup; otherwise `mcpzip approve {server}` at a terminal replaces it, \
         and you decide again on each tool"
    )
}

/// Replaces the record of a server that cannot be used, if the person confirms. Their rejections cannot be guessed, so everything
/// of the server waits then.
async fn renewed(server: &ServerName, app: &App, output: &Output) -> Result<(), Exit> {
    let inventory = &app.proxy().inventory;
    let config = app.proxy().unscoped().config();
    let shown = |reason: String| printable(&config.masker.mask(&reason));
    if let Some(reason) = inventory.passing_fault(server) {
        let reason = shown(reason);
        return Err(Exit::unavailable(format!(
            "it cannot be checked now which tools of `{server}` were approved or rejected: {reason}. Run this again later"
        )));
    }
    let damage = inventory.damage(server);
    let Some(reason) = damage.or_else(|| inventory.loss_elsewhere(server)) else {
        return Ok(());
    };
    let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if output.is_json() || !is_terminal {
        let reason = shown(reason);
        return Err(Exit::failed(format!(
            "of `{server}`, {reason}. {}",
            repair(server)
        )));
    }
    output.line(format!(
        "{}: mcpzip cannot read which tools you approved or rejected:",
        strong(server)
    ));
    let mut faults = inventory.record_faults(server);
    if faults.is_empty() {
        faults.push(reason);
    }
    for fault in faults {
        output.line(format!("  {}", shown(fault)));
    }
    output.line(
        "A file from a backup can be put in its place instead. Without one, all tools of the server wait, and you decide again on each.",
    );
    if !confirmed(
        "Put a new record in its place? The old files stay, with `.damaged` after their names.",
    )
    .await?
    {
        return Err(Exit::failed(
            "nothing was replaced, and the tools stay held back",
        ));
    }
    inventory.renew_record(server)?;
    inventory.list(Some(server), LIST_LIMIT).await;
    Ok(())
}

/// Shows the entry of a server that an agent has added, and asks whether it may be started.
async fn starts(
    server: &ServerName,
    is_approval: bool,
    app: &App,
    output: &Output,
) -> Result<bool, Exit> {
    let config = app.proxy().unscoped().config();
    let Some(entry) = config.servers.get(server) else {
        return Ok(false);
    };
    let way = shown_entry(&entry.transport, &config);
    output.line(format!("{} was added by an agent:", strong(server)));
    for line in way.lines() {
        output.line(format!("  {}", printable(line)));
    }
    if !is_approval {
        output.line("it is not started before it is approved; `mcpzip remove` removes it");
        return Ok(false);
    }
    if !confirmed("Start it, and look at its tools?").await? {
        return Err(Exit::failed("nothing was approved"));
    }
    app.proxy().inventory.approve_start(server)?;
    Ok(true)
}

/// A server that an agent added, as a difference in JSON.
fn added_json(server: &ServerName, config: &Config) -> Option<Value> {
    let entry = config.servers.get(server)?;
    let way = shown_entry(&entry.transport, config);
    let digest = entry.hash.to_string();
    Some(
        json!({ "server": server.as_str(), "change": "added", "after": way, "lines": patch(None, Some(&way)),
            "approve_digest": digest }),
    )
}

fn shown_entry(transport: &Transport, config: &Config) -> String {
    config.masker.mask(&whole_entry(transport)).into_owned()
}

/// Everything of an entry that decides what runs: agents write no secrets into it.
fn whole_entry(transport: &Transport) -> String {
    let pairs = |what: &str, pairs: &BTreeMap<String, Secret<String>>| -> String {
        let lines = pairs.iter().map(|(name, value)| {
            let value = json!(value.expose());
            format!("{what} {}={value}\n", json!(name))
        });
        lines.collect()
    };
    match transport {
        Transport::Stdio(stdio) => {
            let command = json!(stdio.command);
            let cwd = stdio.cwd.as_ref().map(|cwd| format!("in {}\n", json!(cwd)));
            let kind = match &stdio.command_line {
                Some(command_line) => format!("its subcommands are tools: {command_line:?}\n"),
                None => String::new(),
            };
            format!(
                "runs {command} {}\n{kind}{}{}",
                json!(stdio.args),
                cwd.unwrap_or_default(),
                pairs("with", &stdio.env)
            )
        }
        Transport::Http(remote) | Transport::Sse(remote) => format!(
            "connects to {}\n{}",
            json!(remote.url),
            pairs("with header", &remote.headers)
        ),
        Transport::Folder(folder) => format!(
            "reads the {} in {}\n",
            folder.holds.word(),
            json!(folder.path)
        ),
    }
}

/// The number of differences that are no tools.
fn others(pending: &Pending) -> usize {
    pending.entries.len()
        + usize::from(pending.instructions.is_some())
        + usize::from(pending.features.is_some())
}

fn counted(pending: &Pending) -> usize {
    pending.tools.len() + others(pending)
}

/// # Errors
/// When no usable server has this name.
fn configured(name: &str, config: &Config, paths: &Paths) -> Result<ServerName, Exit> {
    if let Some(fault) = config.faults.iter().find(|fault| fault.name == name) {
        let path = paths.config_file.display();
        return Err(Exit::failed(format!("{path}:{fault}")));
    }
    let server = ServerName::new(name)
        .ok()
        .filter(|name| config.servers.contains_key(name));
    server.ok_or_else(|| Exit::unknown_server(name, config))
}

/// The selected differences of a server. If nothing of it was approved and its tools are not known, it is listed first.
async fn pending_of(
    server: &ServerName,
    selection: &Selection,
    app: &App,
) -> Result<Pending, Exit> {
    let inventory = &app.proxy().inventory;
    let mut pending = inventory.pending(server);
    let config = app.proxy().unscoped().config();
    let is_disabled = config
        .servers
        .get(server)
        .is_some_and(|entry| entry.disabled);
    if is_disabled && pending.is_quarantined && counted(&pending) == 0 {
        return match selection.all {
            true => Ok(Pending::default()),
            false => Err(Exit::failed(format!(
                "`{server}` is disabled, so its tools are not known: `mcpzip enable {server}` switches it on, then run this again"
            ))),
        };
    }
    if pending.is_quarantined && pending.tools.is_empty() {
        inventory.list(Some(server), LIST_LIMIT).await;
        pending = inventory.pending(server);
        if counted(&pending) == 0
            && let Some(Progress::Failed(reason)) = inventory.progress().get(server)
        {
            let reason = config.masker.mask(&reason.to_string()).into_owned();
            return Err(Exit::unavailable(format!(
                "`{server}` cannot be reached, so there is nothing to decide on yet: {reason}. Correct that (`mcpzip doctor {server}`), then run \
                 this again; `mcpzip disable {server}` keeps it from starting"
            )));
        }
    }
    let snapshot = app.proxy().unscoped().snapshot();
    let is_known = |tool: &str| {
        let listed = snapshot.servers().find(|known| known.name() == server);
        listed.is_none_or(|listed| {
            let mut names = listed.entries().iter().map(|entry| entry.name.as_str());
            names.any(|name| name == tool)
        })
    };
    for tool in &selection.tools {
        let is_pending = pending.tools.contains_key(tool) || pending.entries.contains_key(tool);
        if !is_pending && !is_known(tool) {
            let tool = printable(tool);
            return Err(Exit::failed(format!(
                "no tool `{tool}` of `{server}` is known: `mcpzip tools {server}` and `mcpzip approve {server}` show the names"
            )));
        }
    }
    if !selection.tools.is_empty() {
        pending
            .tools
            .retain(|name, _| selection.tools.contains(name));
        pending
            .entries
            .retain(|label, _| selection.tools.contains(label));
        pending.instructions = None;
        pending.features = None;
        pending.is_quarantined = false;
    }
    Ok(pending)
}

fn json_of(
    server: &ServerName,
    pending: &Pending,
    neighbours: &scan::Neighbours,
    config: &Config,
) -> Vec<Value> {
    let transport = config.servers.get(server).map(|entry| &entry.transport);
    let found = |findings: Vec<scan::Finding>| -> Vec<Value> {
        let findings = findings.into_iter();
        findings
            .map(|it| json!({ "kind": it.kind.to_string(), "text": it.part }))
            .collect()
    };
    let in_text = |text: &Option<String>| {
        let findings = text.as_deref().map(scan::instructions);
        found(findings.unwrap_or_default())
    };
    let tools = pending.tools.iter().map(|(name, change)| {
        let from = match &change.kind {
            ChangeKind::Renamed { from } => Some(from),
            _ => None,
        };
        json!({ "server": server.as_str(), "tool": name, "change": change.kind.word(), "from": from,
            "before": change.before, "after": change.after, "lines": lines_of(change), "digest": change.now,
            "rejected": change.is_rejected, "approved_under": change.under,
            "files": files(transport, change.after.as_deref()), "findings": found(tool_findings(server, change, neighbours)) })
    });
    let instructions = pending.instructions.iter().map(|change| {
        json!({ "server": server.as_str(), "change": "instructions", "before": change.before,
            "after": change.after, "lines": patch(change.before.as_deref(), change.after.as_deref()),
            "digest": change.now, "findings": in_text(&change.after) })
    });
    let features = pending.features.iter().map(|change| {
        json!({ "server": server.as_str(), "change": "prompts_and_resources", "after": change.after,
            "lines": patch(None, change.after.as_deref()), "digest": change.now })
    });
    let entries = pending.entries.iter().map(|(label, change)| {
        json!({ "server": server.as_str(), "entry": label, "change": change.kind.word(),
            "before": change.before, "after": change.after, "lines": lines_of(change), "digest": change.now,
            "rejected": change.is_rejected, "findings": in_text(&change.after) })
    });
    let texts = instructions.chain(features);
    let mut shown: Vec<Value> = tools.chain(entries).chain(texts).collect();
    let digest = pending.digest();
    for one in &mut shown {
        one["approve_digest"] = json!(digest);
    }
    shown
}

/// The text of a script or the place of a skill's files, in lines, for the definition of a folder's tool.
fn files(transport: Option<&Transport>, definition: Option<&str>) -> Vec<String> {
    let (Some(Transport::Folder(folder)), Some(definition)) = (transport, definition) else {
        return Vec::new();
    };
    match folder.holds {
        Holds::Skills => {
            let path = printable(&folder.path.to_string_lossy());
            vec![format!(
                "its files are in {path}: read them before you approve it"
            )]
        }
        Holds::Scripts => match saved_script(folder, definition) {
            Some(code) => {
                let lines = code.lines();
                lines.map(|line| format!("| {}", printable(line))).collect()
            }
            None => vec!["its file has changed since it was listed: look again".to_owned()],
        },
    }
}

/// Prints each difference.
fn show(
    server: &ServerName,
    pending: &Pending,
    neighbours: &scan::Neighbours,
    config: &Config,
    output: &Output,
) {
    if pending.is_quarantined && pending.tools.is_empty() {
        output.line(format!("{}: no tool of it waits", strong(server)));
    }
    for (name, change) in &pending.tools {
        let kind = match &change.kind {
            ChangeKind::Renamed { from } => {
                format!("renamed; it was probably called {}", printable(from))
            }
            kind => match change.approved_elsewhere(server) {
                Some(elsewhere) => elsewhere,
                None => kind.word().to_owned(),
            },
        };
        let rejected = rejected(change);
        output.line(format!(
            "{}__{} {}",
            strong(server),
            strong(printable(name)),
            faint(format!("({kind}{rejected})"))
        ));
        output.verbatim(text_of(change));
        let transport = config.servers.get(server).map(|entry| &entry.transport);
        for line in files(transport, change.after.as_deref()) {
            output.verbatim(format!("  {line}"));
        }
        show_findings(Some(tool_findings(server, change, neighbours)), output);
    }
    for (label, change) in &pending.entries {
        output.line(format!(
            "{}: {} {}",
            strong(server),
            strong(printable(label)),
            faint(format!("({}{})", change.kind.word(), rejected(change)))
        ));
        output.verbatim(text_of(change));
        show_findings(change.after.as_deref().map(scan::instructions), output);
    }
    if let Some(change) = &pending.instructions {
        output.line(format!("instructions of {}", strong(server)));
        output.verbatim(difference(
            change.before.as_deref(),
            change.after.as_deref(),
        ));
        show_findings(change.after.as_deref().map(scan::instructions), output);
    }
    if let Some(json) = pending.features.as_ref().and_then(|it| it.after.as_ref()) {
        output.line(format!("prompts and resources of {}", strong(server)));
        output.verbatim(whole(json, "new:"));
    }
}

/// Everything that the scanner finds in the new definition of a tool.
fn tool_findings(
    server: &ServerName,
    change: &Change,
    neighbours: &scan::Neighbours,
) -> Vec<scan::Finding> {
    let Some(json) = change.after.as_deref() else {
        return Vec::new();
    };
    let (definition, unreadable) = scan::read(json);
    let shadowed = neighbours.shadowed(server.as_str(), &definition);
    let findings = unreadable.into_iter().chain(scan::tool(&definition));
    findings.chain(shadowed).collect()
}

/// Prints what the scanner finds in a text.
fn show_findings(findings: Option<Vec<scan::Finding>>, output: &Output) {
    for finding in findings.into_iter().flatten() {
        let part = printable(&finding.part);
        output.line(bad(format!(
            "the scanner found {}: \"{part}\"",
            finding.kind
        )));
    }
}

fn rejected(change: &Change) -> &'static str {
    if change.is_rejected {
        ", rejected before"
    } else {
        ""
    }
}

fn text_of(change: &Change) -> String {
    match (&change.before, &change.after, &change.kind) {
        // Before it was in quarantine, the server may have been seen with the same text.
        (_, Some(now), ChangeKind::New) => whole(now, "new:"),
        (None, Some(now), _) => whole(
            now,
            "the earlier definition is not known any more; the current one:",
        ),
        (before, after, _) => difference(before.as_deref(), after.as_deref()),
    }
}

/// The lines of a difference for a page.
fn lines_of(change: &Change) -> Vec<String> {
    let before = change.before.as_deref();
    let before = before.filter(|_| !matches!(change.kind, ChangeKind::New));
    patch(before, change.after.as_deref())
}

/// Asks the person at the terminal to confirm. No flag, pipe or tool call can answer.
///
/// `seen` are the servers whose differences agents see already; `of_others` says whether there are other servers, too.
async fn decides(
    count: usize,
    is_approval: bool,
    seen: &[ServerName],
    of_others: bool,
) -> Result<bool, Exit> {
    let (these, them) = match count {
        1 => ("this difference".to_owned(), "it"),
        count => (format!("these {count} differences"), "them"),
    };
    let question = match (is_approval, seen.is_empty(), of_others) {
        (false, ..) => format!("Withhold {these} from agents?"),
        (true, true, _) => format!("Show {these} to agents from now on?"),
        (true, false, false) => format!("Agents already see {these}. Approve {them}?"),
        (true, false, true) => {
            let names: Vec<String> = seen.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            format!("Show {these} to agents from now on? They already see those of {names}.")
        }
    };
    confirmed(&question).await
}

async fn confirmed(question: &str) -> Result<bool, Exit> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(not_at_a_terminal());
    }
    agrees(question).await
}

fn not_at_a_terminal() -> Exit {
    Exit::failed("only a person at a terminal can approve or reject tools")
}
