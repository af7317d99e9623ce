//! `mcpzip add --from-registry`: builds a server's entry from its listing in the registry.
//!
//! A secret is asked for only to try the server once. The file gets a reference to a variable instead.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::add::{Addition, Arguments, pairs};
use super::diagnostics::Exit;
use super::output::{Output, faint, strong};
use super::registry::{asked, open};
use crate::config::{EntryText, Environment, Paths};
use crate::registry::{Entry, Given, Input, Listing, Recipe, Registry, Way};

/// Number of candidates shown if a name matches several servers.
const MOST_NAMED: usize = 10;

pub(super) async fn run(
    arguments: &Arguments,
    paths: &Paths,
    environment: &Environment,
    output: &Output,
) -> Result<(), Exit> {
    if arguments.kind.is_some() {
        return Err(Exit::failed(
            "`--type` comes from the registry; choose a package or remote with `--use`",
        ));
    }
    let registry = open(paths, environment)?;
    let id = match arguments.from_registry.as_deref() {
        Some(id) if !id.is_empty() => id.to_owned(),
        _ => choose(&arguments.name, &registry, output).await?,
    };
    let listing = asked(
        output,
        registry.listing(&id, arguments.version.as_deref(), false),
    )
    .await?
    .value;
    let mut hints = Vec::new();
    if listing.is_deleted() {
        return Err(Exit::failed(format!(
            "`{id}` was removed from the registry"
        )));
    }
    if listing.is_deprecated() {
        hints.push(format!(
            "the authors of {id} advise against using it any more"
        ));
    }
    let way = arguments.way.as_deref().and_then(Way::named);
    let recipe = listing
        .recipe(way)
        .map_err(|error| Exit::failed(format!("`{id}`: {error}")))?;
    let inputs = recipe.inputs(&arguments.name);
    check_kind(arguments, recipe.way())?;
    let mut answers = Answers::of(arguments, &inputs)?;
    answers.complete(&inputs, environment, output)?;
    let entry = recipe
        .entry(&arguments.name, &answers.given)
        .map_err(anyhow::Error::new)?;
    if !output.is_json() {
        output.line(format!(
            "{} {}  {}",
            strong(listing.name()),
            listing.version(),
            faint(listing.description())
        ));
        output.line(format!("  {}", entry.target()));
        let names: Vec<&str> = entry.pairs().map(|(name, _)| name.as_str()).collect();
        if !names.is_empty() {
            output.line(faint(format!("  with {}", names.join(", "))));
        }
        if !arguments.yes && output.can_ask() && !output.ask("Add this?")? {
            return Err(Exit::failed("nothing was added"));
        }
    }
    hints.append(&mut answers.hints);
    let text = answers.write(arguments, &listing, &recipe, &entry)?;
    let variables = environment.iter().chain(
        answers
            .secrets
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str())),
    );
    let environment: Environment = variables.collect();
    let addition = Addition {
        name: &arguments.name,
        entry: text,
        force: arguments.force,
        check: !arguments.no_check,
        hints,
    };
    addition.carry_out(paths, &environment, output).await
}

/// The server in the registry that `name` means. Asks the user if several match.
async fn choose(name: &str, registry: &Registry, output: &Output) -> Result<String, Exit> {
    let found = asked(output, registry.search(name, 50)).await?.value;
    let last = |id: &str| id.rsplit('/').next().unwrap_or_default().to_owned();
    let exact: Vec<_> = found
        .iter()
        .filter(|server| last(&server.name).eq_ignore_ascii_case(name))
        .collect();
    match (exact.as_slice(), found.as_slice()) {
        ([one], _) => return Ok(one.name.clone()),
        ([], [one]) => return Ok(one.name.clone()),
        ([], []) => {
            let text = format!(
                "the registry has no server with `{name}` in its name; give one with `--from-registry ID`"
            );
            return Err(Exit::failed(text));
        }
        _ => {}
    }
    // Servers whose own name is exactly `name` come first.
    let mut found: Vec<_> = found.iter().collect();
    found.sort_by_key(|server| !last(&server.name).eq_ignore_ascii_case(name));
    found.truncate(MOST_NAMED);
    if !output.can_ask() || output.is_json() {
        let names: Vec<&str> = found.iter().map(|server| server.name.as_str()).collect();
        let names = names.join(", ");
        return Err(Exit::failed(format!(
            "several servers may be meant; give one with `--from-registry ID`: {names}"
        )));
    }
    for (number, server) in found.iter().enumerate() {
        output.line(format!(
            "{:>3}  {}  {}",
            number + 1,
            strong(&server.name),
            faint(&server.description)
        ));
    }
    let answer = output.ask_text("Which one? (number)")?;
    let chosen = answer
        .parse::<usize>()
        .ok()
        .and_then(|number| found.get(number.checked_sub(1)?));
    chosen
        .map(|server| server.name.clone())
        .ok_or_else(|| Exit::failed("nothing was added"))
}

/// The values for the inputs of an entry, and the user's own variables.
pub(super) struct Answers {
    /// The values by input. For secrets, references to variables.
    pub(super) given: Given,
    /// Values of variables that are not set yet, used for this run only.
    secrets: BTreeMap<String, String>,
    /// Variables and headers that the listing does not know.
    env: Vec<(String, String)>,
    hints: Vec<String>,
}

impl Answers {
    fn of(arguments: &Arguments, inputs: &[Input]) -> Result<Self, Exit> {
        let mut answers = Self {
            given: Given::new(),
            secrets: BTreeMap::new(),
            env: Vec::new(),
            hints: Vec::new(),
        };
        let env = pairs(&arguments.env, '=', "--env NAME=VALUE")?;
        let headers = pairs(&arguments.header, ':', "--header 'NAME: VALUE'")?;
        for (name, value) in env.into_iter().chain(headers) {
            match inputs.iter().find(|input| input.name == name) {
                Some(input) => answers.give(input, value),
                None => answers.env.push((name, value)),
            }
        }
        answers.set(&arguments.set, inputs)?;
        Ok(answers)
    }

    /// Starts with the inputs that an existing entry remembers, and adds those of `set`.
    pub(super) fn again(given: Given, set: &[String], inputs: &[Input]) -> Result<Self, Exit> {
        let mut answers = Self {
            given,
            secrets: BTreeMap::new(),
            env: Vec::new(),
            hints: Vec::new(),
        };
        answers.set(set, inputs)?;
        Ok(answers)
    }

    fn set(&mut self, set: &[String], inputs: &[Input]) -> Result<(), Exit> {
        let mut fresh: Vec<&str> = Vec::new();
        for text in set {
            let (name, value) = text
                .split_once('=')
                .ok_or_else(|| Exit::failed("a value has no name; write --set NAME=VALUE"))?;
            let input = inputs.iter().find(|input| input.name == name);
            let input = input.ok_or_else(|| {
                let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
                let names = if names.is_empty() {
                    "nothing".to_owned()
                } else {
                    names.join(", ")
                };
                Exit::failed(format!(
                    "the server does not ask for `{name}`; it asks for {names}"
                ))
            })?;
            if !fresh.contains(&name) {
                self.given.remove(name);
            }
            fresh.push(name);
            self.give(input, value.to_owned());
        }
        Ok(())
    }

    fn give(&mut self, input: &Input, value: String) {
        let value = if input.is_secret && !value.contains("${") {
            self.hints.push(format!(
                "{} is secret, so its value was not written; set the variable {} to it where mcpzip runs",
                input.name, input.variable
            ));
            self.secrets.insert(input.variable.clone(), value);
            reference(&input.variable)
        } else {
            value
        };
        let values = self.given.entry(input.name.clone()).or_default();
        if !input.is_repeated {
            values.clear();
        }
        values.push(value);
    }

    /// Asks for missing inputs if a person can answer. Fails if an input is still missing.
    pub(super) fn complete(
        &mut self,
        inputs: &[Input],
        environment: &Environment,
        output: &Output,
    ) -> Result<(), Exit> {
        if output.can_ask() && !output.is_json() {
            for input in inputs.iter().filter(|input| input.is_required) {
                let is_set = input.is_secret && environment.get(&input.variable).is_some();
                if is_set || self.given.contains_key(&input.name) {
                    continue;
                }
                if input.is_secret {
                    let question = format!(
                        "{} (not shown, and not written; empty to set {} later)",
                        question(input),
                        input.variable
                    );
                    let value = output.ask_secret(&question)?;
                    if !value.is_empty() {
                        self.give(input, value);
                    }
                } else {
                    while !self.given.contains_key(&input.name) && input.default.is_none() {
                        let value = output.ask_text(&question(input))?;
                        match input.check(&value) {
                            Ok(()) if !value.is_empty() => self.give(input, value),
                            Ok(()) => output.note("a value is required"),
                            Err(error) => output.note(&error.to_string()),
                        }
                    }
                }
            }
        }
        let missing: Vec<&Input> = inputs
            .iter()
            .filter(|input| input.is_missing(&self.given))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let lines = missing
            .iter()
            .map(|input| format!("\n  --set {}=…  {}", input.name, described(input)));
        Err(Exit::failed(format!(
            "the server needs more values; pass{}",
            lines.collect::<String>()
        )))
    }

    /// The whole entry as JSON, with the record of its origin.
    fn write(
        &self,
        arguments: &Arguments,
        listing: &Listing,
        recipe: &Recipe<'_>,
        entry: &Entry,
    ) -> Result<String, Exit> {
        let mut text = entry.text();
        text.text("cwd", arguments.absolute_cwd()?.as_deref());
        arguments.common(&mut text);
        text.json(
            "registry",
            origin(listing, recipe.way(), &self.given, &entry.text()),
        );
        if self.env.is_empty() {
            return Ok(text.to_json());
        }
        // The user's own variables go into the same object as the listing's.
        let is_own = |name: &str| self.env.iter().any(|(own, _)| own == name);
        let theirs = entry.pairs().filter(|(name, _)| !is_own(name)).cloned();
        let all: Vec<(String, String)> = theirs.chain(self.env.iter().cloned()).collect();
        let key = if recipe.way() == Way::Remote {
            "headers"
        } else {
            "env"
        };
        let mut pairs = EntryText::default();
        pairs.map(key, &all);
        Ok(text.with(key, &pairs).to_json())
    }
}

/// Refuses flags for the other kind of server.
fn check_kind(arguments: &Arguments, way: Way) -> Result<(), Exit> {
    let wrong = match way {
        Way::Remote if !arguments.env.is_empty() => "`--env` is",
        Way::Remote if arguments.cwd.is_some() => "`--cwd` is",
        Way::Remote => return Ok(()),
        _ if !arguments.header.is_empty() => {
            return Err(Exit::failed(
                "`--header` is for URLs, but this server is a command; `--env` sets its variables, and `--set` the values that it \
                 asks for",
            ));
        }
        _ => return Ok(()),
    };
    Err(Exit::failed(format!(
        "{wrong} for commands, but this server has a URL; `--header` sets its headers, and `--set` the values that it asks for"
    )))
}

/// The record of an entry's origin, as JSON: listing, version, inputs and the entry as installed. `mcpzip update`
/// starts from it.
pub(super) fn origin(listing: &Listing, way: Way, given: &Given, entry: &EntryText) -> String {
    let mut origin = EntryText::default();
    origin.text("name", Some(listing.name()));
    origin.text("version", Some(listing.version()));
    origin.text("use", Some(way.word()));
    if !given.is_empty() {
        let inputs = given.iter().map(|(name, values)| {
            let value = match values.as_slice() {
                [one] => json!(one),
                several => json!(several),
            };
            (name.clone(), value)
        });
        origin.json("inputs", Value::Object(inputs.collect()).to_string());
    }
    origin.json("given", entry.to_json());
    origin.to_json()
}

fn reference(variable: &str) -> String {
    format!("${{{variable}}}")
}

fn question(input: &Input) -> String {
    let description = described(input);
    if description.is_empty() {
        input.name.clone()
    } else {
        format!("{} ({description})", input.name)
    }
}

fn described(input: &Input) -> String {
    let parts = [input.description.clone(), input.expected()];
    parts
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; ")
}
