//! `mcpzip migrate`: takes over the servers that clients have.

use clap::Args;
use serde_json::{Value, json};

use super::diagnostics::Exit;
use super::output::{Output, bad, faint, good, strong};
use super::setup::{Machine, client_names, clients_of, scope_names};
use crate::clients::{Choice, Edit, Item, Plan, Rule, Scope, Survey, Verdict, unified_diff};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  mcpzip migrate --dry-run
  mcpzip migrate --client claude-code --client cursor --only github --yes")]
pub(super) struct Arguments {
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
    /// Do it without asking
    #[arg(long, short)]
    yes: bool,
    /// Only this client; may be given several times
    #[arg(long, value_name = "CLIENT", value_parser = client_names())]
    client: Vec<String>,
    /// Only servers of this scope; may be given several times
    #[arg(long, value_name = "SCOPE", value_parser = scope_names())]
    scope: Vec<String>,
    /// Only the server of this name, even if it is a proxy; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Move servers also where a rule of the client that protects them would stop working
    #[arg(long)]
    drop_rules: bool,
}

pub(super) fn run(arguments: &Arguments, machine: &Machine, output: &Output) -> Result<(), Exit> {
    let survey = Survey::of(&clients_of(&arguments.client), &machine.around);
    let choice = Choice {
        scopes: arguments.scope.iter().filter_map(|scope| Scope::named(scope)).collect(),
        only: arguments.only.clone(),
        drop_rules: arguments.drop_rules,
    };
    let launch = machine.launch()?;
    let environment = &machine.around.environment;
    let plan = Plan::new(&survey, &choice, &machine.paths.config_file, &launch, environment);
    let plan = plan.map_err(anyhow::Error::from)?;
    if !output.is_json() {
        show(&survey, &plan, output);
    }
    let outcome = carry_out(arguments, &plan, machine, output);
    if output.is_json() {
        let mut report = report(&survey, &plan);
        report["undo"] = outcome.as_ref().ok().and_then(Option::as_ref).map_or(Value::Null, |run| json!(run));
        output.json(&report);
    } else if let Ok(Some(run)) = &outcome {
        output.line(good("done; restart the clients"));
        output.line(faint(format!("`mcpzip undo` takes it back (run {run})")));
    }
    outcome.map(drop)
}

/// Does it, if it is wanted; gives the run's name.
fn carry_out(arguments: &Arguments, plan: &Plan, machine: &Machine, output: &Output) -> Result<Option<String>, Exit> {
    if arguments.dry_run {
        return Ok(None);
    }
    if !plan.blocking.is_empty() {
        let servers: Vec<&str> = plan.blocking.iter().map(|rule| rule.server.as_str()).collect();
        return Err(Exit::failed(format!(
            "nothing was done: rules of the clients that protect {} would stop working behind mcpzip.\n\
             Move other servers alone with `--only NAME`, or these without their rules with `--drop-rules`",
            names(&servers)
        )));
    }
    if plan.edits.is_empty() {
        return Ok(None);
    }
    if !arguments.yes {
        if output.is_json() || !output.can_ask() {
            return Err(Exit::failed("nothing was done: `--yes` does it without asking, `--dry-run` only looks"));
        }
        if !output.ask("Do this?")? {
            output.note("nothing was done");
            return Ok(None);
        }
    }
    Ok(Some(machine.journal().apply("migrate", &plan.edits).map_err(anyhow::Error::from)?))
}

pub(super) fn show(survey: &Survey, plan: &Plan, output: &Output) {
    for (path, problem) in &survey.unreadable {
        output.line(format!("{} {}: {problem}", bad("not read"), path.display()));
    }
    let mut last = None;
    for item in &plan.items {
        let place = (item.client, item.scope, &item.path);
        if last != Some(place) {
            output.line(format!("{} {}", strong(item.client.title()), faint(item.path.display())));
            last = Some(place);
        }
        output.line(format!("  {}", plan.masker.mask(&line(item))));
    }
    if plan.items.is_empty() {
        output.line(faint("no client has a server that could move"));
    }
    rules("These protect a server, and would stop working:", &plan.blocking, plan, output);
    rules("These will not match any more:", &plan.lost, plan, output);
    for edit in &plan.edits {
        output.line(format!("\n{}", strong(edit.path.display())));
        for line in diff(edit, plan).lines() {
            output.line(match line.as_bytes().first() {
                Some(b'+') => good(line),
                Some(b'-') => bad(line),
                _ => faint(line),
            });
        }
    }
}

pub(super) fn line(item: &Item) -> String {
    let left = match item.left_behind.as_slice() {
        [] => String::new(),
        keys => faint(format!(" (without {})", keys.join(", "))),
    };
    let server = strong(&item.server);
    match &item.verdict {
        Verdict::Moves { name, is_known: true } => {
            format!("{} {server}, which mcpzip has as `{name}`{left}", good("moves"))
        }
        Verdict::Moves { name, .. } if *name == item.server => format!("{} {server}{left}", good("moves")),
        Verdict::Moves { name, .. } => format!("{} {server} as `{name}`{left}", good("moves")),
        Verdict::Conflicts { name } => {
            format!("{} {server}: mcpzip has another of this name, so it becomes `{name}`{left}", bad("conflicts"))
        }
        Verdict::Stays(reason) => format!("{} {server}: {reason}", faint("stays")),
    }
}

fn rules(title: &str, rules: &[Rule], plan: &Plan, output: &Output) {
    if rules.is_empty() {
        return;
    }
    output.line(format!("\n{}", bad(title)));
    for rule in rules {
        let text =
            format!("  {} {} {}", rule.kind.name(), rule.text, faint(format!("{} {}", rule.path.display(), rule.key)));
        output.line(plan.masker.mask(&text));
    }
}

fn diff(edit: &Edit, plan: &Plan) -> String {
    let diff = unified_diff(edit.before.as_deref().unwrap_or_default(), &edit.after);
    plan.masker.mask(&diff).into_owned()
}

pub(super) fn report(survey: &Survey, plan: &Plan) -> Value {
    let masked = |text: &str| plan.masker.mask(text).into_owned();
    let servers = plan.items.iter().map(|item| {
        let (verdict, name, reason) = match &item.verdict {
            Verdict::Moves { name, .. } => ("moves", Some(name), None),
            Verdict::Conflicts { name } => ("conflicts", Some(name), None),
            Verdict::Stays(reason) => ("stays", None, Some(masked(reason))),
        };
        json!({
            "client": item.client.name(),
            "scope": item.scope.name(),
            "file": item.path,
            "server": item.server,
            "verdict": verdict,
            "name": name,
            "reason": reason,
            "left_behind": item.left_behind,
        })
    });
    let rules = |rules: &[Rule]| -> Vec<Value> {
        let rule = |rule: &Rule| {
            json!({
                "client": rule.client.name(),
                "server": rule.server,
                "kind": rule.kind.name(),
                "rule": masked(&rule.text),
                "file": rule.path,
                "key": rule.key,
            })
        };
        rules.iter().map(rule).collect()
    };
    let unreadable = survey.unreadable.iter().map(|(path, problem)| json!({ "file": path, "problem": problem }));
    json!({
        "servers": servers.collect::<Vec<_>>(),
        "blocking_rules": rules(&plan.blocking),
        "lost_rules": rules(&plan.lost),
        "unreadable": unreadable.collect::<Vec<_>>(),
        "files": plan.edits.iter().map(|edit| json!({ "file": edit.path, "diff": diff(edit, plan) })).collect::<Vec<_>>(),
    })
}

fn names(servers: &[&str]) -> String {
    let mut quoted: Vec<String> = servers.iter().map(|server| format!("`{server}`")).collect();
    quoted.sort();
    quoted.dedup();
    quoted.join(", ")
}
