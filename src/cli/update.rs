//! `mcpzip update`: updates entries that came from the registry. The user's changes stay. A change of what would run is
//! shown and confirmed first.

use clap::Args;
use serde_json::{Value, json};

use super::completions;
use super::diagnostics::Exit;
use super::from_registry::{Answers, origin};
use super::output::{Output, bad, faint, good, strong};
use super::printable::printable;
use super::registry::{asked, open};
use super::trial::Trial;
use super::unknown::unknown;
use crate::config::{
    Change, Config, Document, Environment, LARGEST_FILE, Paths, Refusal, change_servers,
    safe_names, written_name,
};
use crate::files::read_regular;
use crate::registry::{Given, Listing, Merged, Registry, Way, merge};

#[derive(Debug, Args)]
#[command(
    override_usage = "mcpzip update [OPTIONS] <NAME>...\n       mcpzip update [OPTIONS] --all"
)]
#[command(after_help = "Examples:
  mcpzip update weather
  mcpzip update --all --dry-run")]
pub(super) struct Arguments {
    /// Names of the servers
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all", add = completions::of_servers())]
    names: Vec<String>,
    /// Update all servers that came from the registry
    #[arg(long)]
    all: bool,
    /// Show the changes without making them
    #[arg(long, alias = "check")]
    dry_run: bool,
    /// Value of an input that a new version asks for; may be given several times
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "all")]
    set: Vec<String>,
    /// Make the changes without asking
    #[arg(long, short)]
    yes: bool,
    /// Do not connect to the servers afterwards
    #[arg(long)]
    no_check: bool,
}

/// An update of one server.
struct Update {
    name: String,
    /// The entry as it was read.
    before: String,
    versions: (String, String),
    merged: Merged,
    change: Change,
    is_deprecated: bool,
}

pub(super) async fn run(
    arguments: &Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    Config::load(paths, environment)?;
    let registry = open(paths, environment)?;
    let text = read_regular(&paths.config_file, LARGEST_FILE)?;
    let document = Document::parse(&String::from_utf8_lossy(&text)).map_err(anyhow::Error::from)?;
    let keys = document.keys(&["mcpServers"]);
    let written: Vec<&str> = keys.iter().map(String::as_str).collect();
    let known: Vec<(&str, String)> = written.iter().copied().zip(safe_names(&written)).collect();
    let names: Vec<String> = match arguments.all {
        true => {
            let from_there = known
                .into_iter()
                .filter(|(key, _)| has_origin(&document, key));
            from_there.map(|(_, name)| name).collect()
        }
        false => {
            let name = |given: &String| {
                let key = written_name(&keys, given);
                let server = known.iter().find(|(known, _)| Some(*known) == key);
                server.map_or_else(|| given.clone(), |(_, name)| name.clone())
            };
            arguments.names.iter().map(name).collect()
        }
    };
    if names.is_empty() && !output.is_json() {
        output.line("no server came from the registry");
    }
    let (mut reports, mut failures) = (Vec::new(), Vec::new());
    for name in &names {
        let done = one(
            name,
            arguments,
            &document,
            &registry,
            paths,
            environment,
            output,
        )
        .await;
        match done {
            Ok(report) => reports.push(report),
            // The other servers are updated even if one fails.
            Err(exit) => {
                reports
                    .push(json!({ "server": name, "change": "none", "reason": exit.to_string() }));
                failures.push((name, exit));
            }
        }
    }
    if output.is_json() {
        output.json(&json!({ "servers": reports, "dry_run": arguments.dry_run }));
    }
    match failures.len() {
        0 => Ok(()),
        1 if names.len() == 1 => Err(failures.remove(0).1),
        _ => {
            let lines: Vec<String> = failures
                .iter()
                .map(|(name, exit)| format!("`{name}`: {exit}"))
                .collect();
            Err(Exit::failed(lines.join("\n")))
        }
    }
}

async fn one(
    name: &str,
    arguments: &Arguments,
    document: &Document,
    registry: &Registry,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<Value, Exit> {
    let update = Update::find(name, arguments, document, registry, environment, output).await?;
    let (from, to) = &update.versions;
    let changed: Vec<String> = update
        .merged
        .changes
        .iter()
        .map(|(path, _)| path.join("."))
        .collect();
    let is_current = from == to && changed.is_empty();
    let done = match (is_current, arguments.dry_run) {
        (true, _) => "current",
        (false, true) => "possible",
        (false, false) => "updated",
    };
    if done == "updated" {
        if !changed.is_empty() && !arguments.yes {
            update.confirm(output)?;
        }
        let changes = [(name.to_owned(), update.change.clone())];
        change_servers(
            &paths.config_file,
            &changes,
            environment,
            true,
            |_, name, document| match document.get(&["mcpServers", name]) {
                Some(now) if now == update.before => Ok(()),
                _ => Err(Refusal::NotPermitted(
                    "another process changed it just now; run this again".into(),
                )),
            },
        )?;
    }
    if !output.is_json() {
        update.show(done, &changed, output);
    }
    let trial = match done == "updated" && !arguments.no_check {
        true => Some(Trial::run(name, paths, environment, output).await?),
        false => None,
    };
    if let Some(trial) = trial.as_ref().filter(|_| !output.is_json()) {
        trial.show(name, output);
    }
    let check = trial.as_ref().map(Trial::to_json);
    Ok(json!({
        "server": name, "change": done, "from": from, "to": to,
        "members": changed, "kept": update.merged.kept, "check": check,
    }))
}

impl Update {
    async fn find(
        name: &str,
        arguments: &Arguments,
        document: &Document,
        registry: &Registry,
        environment: &Environment,
        output: &Output,
    ) -> Result<Self, Exit> {
        let failed = |text: &str| Exit::failed(format!("`{name}`: {text}"));
        let keys = document.keys(&["mcpServers"]);
        let key = written_name(&keys, name);
        let before = key
            .and_then(|key| document.get(&["mcpServers", key]))
            .ok_or_else(|| Exit::failed(unknown(name, keys.iter().map(String::as_str))))?;
        let entry: Value =
            serde_json::from_str(&before).map_err(|error| failed(&error.to_string()))?;
        let stored = &entry["registry"];
        let (Some(id), Some(version), true) = (
            stored["name"].as_str(),
            stored["version"].as_str(),
            stored["given"].is_object(),
        ) else {
            return Err(failed(
                "it did not come from the registry; `mcpzip add NAME --from-registry --force` replaces it with the registry's",
            ));
        };
        let listing: Listing = asked(output, registry.listing(id, None, true)).await?.value;
        if listing.is_deleted() {
            return Err(failed("it was removed from the registry"));
        }
        let way = stored["use"].as_str().and_then(Way::named);
        let recipe = listing
            .recipe(way)
            .map_err(|error| failed(&error.to_string()))?;
        let inputs = recipe.inputs(name);
        let mut answers = Answers::again(given(&stored["inputs"]), &arguments.set, &inputs)?;
        answers
            .given
            .retain(|known, _| inputs.iter().any(|input| input.name == *known));
        answers.complete(&inputs, environment, output)?;
        let today = recipe
            .entry(name, &answers.given)
            .map_err(|error| failed(&error.to_string()))?
            .text();
        let today_value: Value =
            serde_json::from_str(&today.to_json()).expect("it was written as JSON");
        let merged = merge(&stored["given"], &entry, &today_value);
        let own = |keys: &[String], value: String| (keys.to_vec(), value);
        let members = merged.changes.iter().map(|(path, value)| {
            own(
                path,
                value
                    .as_ref()
                    .map_or_else(|| "null".to_owned(), Value::to_string),
            )
        });
        let mut members: Vec<_> = members.collect();
        members.push(own(
            &["registry".to_owned()],
            origin(&listing, recipe.way(), &answers.given, &today),
        ));
        let versions = (version.to_owned(), listing.version().to_owned());
        let is_deprecated = listing.is_deprecated();
        Ok(Self {
            name: name.to_owned(),
            before,
            versions,
            merged,
            change: Change::Update(members),
            is_deprecated,
        })
    }

    /// Shows the changes of what would run, and asks for confirmation.
    fn confirm(&self, output: &Output) -> Result<(), Exit> {
        let (name, (from, to)) = (&self.name, &self.versions);
        let differences = self.differences().join("\n");
        let failed = |text: &str| Exit::failed(format!("`{name}`: {text}"));
        if output.is_json() || !output.can_ask() {
            return Err(failed(&format!(
                "{from} → {to} changes what runs:\n{differences}\nnothing was changed: pass `--yes` to do it without asking, or `--dry-run` for a preview"
            )));
        }
        output.line(format!(
            "{} {from} → {to} changes what runs:\n{differences}",
            strong(name)
        ));
        match output.ask("Take it?")? {
            true => Ok(()),
            false => Err(failed("nothing was changed")),
        }
    }

    /// The changed members as lines of a diff.
    fn differences(&self) -> Vec<String> {
        let before: Value = serde_json::from_str(&self.before).unwrap_or_default();
        let mut lines = Vec::new();
        for (path, now) in &self.merged.changes {
            let then = path.iter().fold(&before, |value, key| &value[key.as_str()]);
            let (then, now) = (shown(then), now.as_ref().map(shown).unwrap_or_default());
            let start = then.iter().zip(&now).take_while(|(a, b)| a == b).count();
            let ends = then[start..].iter().rev().zip(now[start..].iter().rev());
            let end = ends.take_while(|(a, b)| a == b).count();
            let marked = |mark: char, texts: &[String]| -> Vec<String> {
                texts
                    .iter()
                    .map(|text| format!("    {mark} {text}"))
                    .collect()
            };
            lines.push(format!("  {}:", printable(&path.join("."))));
            lines.extend(marked(' ', &then[..start]));
            lines.extend(marked('-', &then[start..then.len() - end]));
            lines.extend(marked('+', &now[start..now.len() - end]));
            lines.extend(marked(' ', &then[then.len() - end..]));
        }
        lines
    }

    fn show(&self, done: &str, changed: &[String], output: &Output) {
        let (name, (from, to)) = (strong(&self.name), &self.versions);
        output.line(match done {
            "current" => format!("{name} is current: {from}"),
            "possible" => format!("{name} {from} → {to} would change {}", listed(changed)),
            _ => format!(
                "{} updated {name} {from} → {to}: {}",
                good("✓"),
                listed(changed)
            ),
        });
        if done == "possible" {
            self.differences().iter().for_each(|line| output.line(line));
        }
        for kept in &self.merged.kept {
            output.line(format!(
                "  {} {kept}: you changed it, and so did the registry",
                bad("kept yours:")
            ));
        }
        if self.is_deprecated {
            output.line(faint("  its authors advise against using it any more"));
        }
    }
}

fn has_origin(document: &Document, name: &str) -> bool {
    document
        .get(&["mcpServers", name, "registry", "name"])
        .is_some()
}

/// The texts of a member, one per line.
fn shown(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) => items.iter().flat_map(shown).collect(),
        Value::String(text) => vec![printable(text)],
        other => vec![printable(&other.to_string())],
    }
}

/// The inputs recorded in an entry.
fn given(inputs: &Value) -> Given {
    let texts = |value: &Value| match value {
        Value::Array(values) => values
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        value => value.as_str().map(str::to_owned).into_iter().collect(),
    };
    inputs
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), texts(value)))
        .collect()
}

fn listed(changed: &[String]) -> String {
    if changed.is_empty() {
        "nothing of its entry".to_owned()
    } else {
        changed.join(", ")
    }
}
