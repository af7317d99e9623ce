//! The tools of a program: their definitions, and the conversion of their arguments to the program's.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::page::{Flag, Kind, Page, Pages, Positional, Positionals};
use crate::config::{CommandLine, CommandTool, Stdio, program_name};

/// The longest name of a tool.
const LONGEST_NAME: usize = 64;

/// Subcommands that are tools only if `cli_only` names them: they print no answer, or run something else.
const HELD_BACK: &[&str] = &[
    "help",
    "completion",
    "completions",
    "alias",
    "shell",
    "repl",
    "console",
    "interactive",
    "exec",
    "autocomplete",
    "version-check",
    "login-shell",
];

/// Flags that are no arguments: they print help, or the version, in place of an answer.
const NO_ARGUMENTS: &[&str] = &["help", "h", "version", "V", "?", "help-all", "usage"];

/// The argument for the rest of the command line.
pub(super) const REST: &str = "args";
/// The last positional argument of a program whose flags follow its paths.
const EXPRESSION: &str = "expression";
/// The argument for standard input.
pub(super) const INPUT: &str = "stdin";

/// All tools of a program.
#[derive(Debug)]
pub(super) struct Toolset {
    tools: BTreeMap<String, Tool>,
}

/// A tool.
#[derive(Debug)]
pub(super) struct Tool {
    definition: String,
    pub(super) form: Form,
}

/// How a tool's arguments become the program's.
#[derive(Debug)]
pub(super) enum Form {
    /// A subcommand.
    Subcommand {
        path: Vec<String>,
        /// The flags by argument.
        flags: Vec<(String, Flag)>,
        /// The positional arguments, in order; `None` is a free list.
        positionals: Option<Vec<Positional>>,
        /// Whether long flags are an expression that follows them, as for find.
        has_expression: bool,
        /// Whether `--` ends the flags.
        has_end_of_flags: bool,
    },
    /// The words of the entry, with `{name}` for arguments.
    Words(Vec<String>),
}

/// Whether a subcommand is a tool only if `cli_only` names it.
pub(super) fn is_held_back(name: &str) -> bool {
    HELD_BACK.contains(&name)
}

impl Toolset {
    /// The tools of a program's help.
    pub(super) fn of_pages(pages: &Pages, program: &Stdio, command_line: &CommandLine) -> Self {
        let names = names(pages, program, command_line);
        let root = program_name(&program.command);
        let mut tools = BTreeMap::new();
        for (path, name) in names {
            let Some(page) = pages
                .get(&path)
                .or_else(|| pages.get(&path[..path.len().saturating_sub(1)]))
            else {
                continue;
            };
            let own = pages.get(&path);
            let about = own
                .map(|page| page.about.as_str())
                .filter(|about| !about.is_empty());
            let parent = path.split_last().and_then(|(last, parent)| {
                let named = pages
                    .get(parent)?
                    .commands
                    .iter()
                    .find(|command| command.name == *last)?;
                Some(named.about.as_str()).filter(|about| !about.is_empty())
            });
            let words: Vec<&str> = std::iter::once(root)
                .chain(path.iter().map(String::as_str))
                .collect();
            let line = words.join(" ");
            let about = match (parent, about) {
                (Some(short), Some(long)) if !long.starts_with(short) => format!("{short}. {long}"),
                (Some(text), None) | (_, Some(text)) => text.to_owned(),
                (None, None) => format!("Runs `{line}`."),
            };
            let tool = subcommand(
                &name,
                &path,
                own.map(|_| page),
                &words,
                &about,
                command_line,
            );
            tools.insert(name, tool);
        }
        Self { tools }
    }

    /// The tools that the entry defines.
    pub(super) fn of_entry(command_line: &CommandLine) -> Self {
        let tools = command_line.tools.iter().map(|tool| {
            let name = tool.name.as_str().to_owned();
            let is_read = is_below(&command_line.read, std::slice::from_ref(&name));
            (name, of_words(tool, is_read))
        });
        Self {
            tools: tools.collect(),
        }
    }

    /// The definitions of all tools, as JSON.
    pub(super) fn definitions(&self) -> Vec<String> {
        self.tools
            .values()
            .map(|tool| tool.definition.clone())
            .collect()
    }

    /// The tool of this name.
    pub(super) fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }
}

/// The subcommands that are tools, with their names: all that have none below them.
fn names(pages: &Pages, program: &Stdio, command_line: &CommandLine) -> Vec<(Vec<String>, String)> {
    let is_wanted = |path: &[String]| {
        let only = &command_line.only;
        let held_back = path.last().is_some_and(|last| is_held_back(last));
        if only.is_empty() {
            !held_back
        } else {
            is_below(only, path)
        }
    };
    let mut paths = BTreeSet::new();
    for (path, page) in pages {
        if page.commands.is_empty() {
            paths.insert(path.clone());
            continue;
        }
        for command in &page.commands {
            let mut below = path.clone();
            below.push(command.name.clone());
            // Its page is missing if it is too deep, or prints no help.
            let is_known = pages.contains_key(&below);
            if !is_known && below.len() >= command_line.depth {
                paths.insert(below);
            }
        }
    }
    let wanted = paths.into_iter().filter(|path| is_wanted(path));
    let named: Vec<(Vec<String>, String)> = wanted
        .map(|path| {
            let words = if path.is_empty() {
                program_name(&program.command).to_owned()
            } else {
                path.join("_")
            };
            let name = legal(&words);
            (path, name)
        })
        .collect();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (_, name) in &named {
        *counts.entry(name.clone()).or_default() += 1;
    }
    named
        .into_iter()
        .map(|(path, name)| {
            let is_unique = counts.get(&name) == Some(&1) && name.len() <= LONGEST_NAME;
            let name = if is_unique {
                name
            } else {
                hashed(&name, &path)
            };
            (path, name)
        })
        .collect()
}

/// Whether `path` is one of `all`, or below one.
fn is_below(all: &[Vec<String>], path: &[String]) -> bool {
    all.iter().any(|one| path.starts_with(one))
}

/// A name of letters, digits, `-` and single `_`.
fn legal(words: &str) -> String {
    let mut name = String::new();
    for c in words.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        };
        if c != '_' || !name.ends_with('_') {
            name.push(c);
        }
    }
    name.trim_matches('_').to_owned()
}

/// A name cut to make room for a hash of the subcommand.
fn hashed(name: &str, path: &[String]) -> String {
    let hash = HEXLOWER.encode(&Sha256::digest(path.join("\0"))[..3]);
    let kept: String = name.chars().take(LONGEST_NAME - hash.len() - 1).collect();
    format!("{}_{hash}", kept.trim_end_matches('_'))
}

fn subcommand(
    name: &str,
    path: &[String],
    page: Option<&Page>,
    words: &[&str],
    about: &str,
    command_line: &CommandLine,
) -> Tool {
    let own = page.map(|page| page.narrowed(words));
    let page = own.as_ref();
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let mut flags = Vec::new();
    for flag in page.map(|page| &page.flags).into_iter().flatten() {
        if NO_ARGUMENTS.contains(&flag.name().as_str()) {
            continue;
        }
        let argument = argument_name(&flag.name(), &properties);
        properties.insert(argument.clone(), schema_of(flag));
        if flag.is_required {
            required.push(argument.clone());
        }
        flags.push((argument, flag.clone()));
    }
    let mut positionals = match page.map(|page| page.positionals(words)) {
        Some(Positionals::Named(list)) => Some(list),
        Some(Positionals::Free) | None => None,
    };
    let is_expression = |one: &mut Positional| one.name == EXPRESSION;
    let has_expression = positionals
        .as_mut()
        .is_some_and(|list| list.pop_if(is_expression).is_some());
    let positionals = positionals.map(|list| {
        let rename = |mut one: Positional| {
            one.name = argument_name(&one.name, &properties);
            let text = json!({ "type": "string" });
            let mut schema = if one.is_repeated {
                json!({ "type": "array", "items": text })
            } else {
                text
            };
            schema["description"] = match one.about.is_empty() {
                true => json!("Positional argument"),
                false => json!(one.about),
            };
            properties.insert(one.name.clone(), schema);
            if one.is_required {
                required.push(one.name.clone());
            }
            one
        };
        list.into_iter().map(rename).collect::<Vec<_>>()
    });
    if positionals.is_none() {
        let description = "The positional arguments";
        properties.insert(
            REST.to_owned(),
            json!({ "type": "array", "items": { "type": "string" }, "description": description }),
        );
    }
    properties.insert(
        INPUT.to_owned(),
        json!({ "type": "string", "description": "Text for standard input" }),
    );
    let usage = page.map(|page| page.usage.join("\n")).unwrap_or_default();
    let description = match usage.is_empty() {
        true => about.to_owned(),
        false => format!("{about}\nUsage: {usage}"),
    };
    let has_end_of_flags = ["[OPTIONS]", "[flags]", "[-h]"]
        .iter()
        .any(|word| usage.contains(word))
        && !usage.contains("-- ")
        && !usage.contains("[--]");
    let is_read = is_below(&command_line.read, path);
    Tool {
        definition: definition(name, &description, &schema(&properties, &required), is_read),
        form: Form::Subcommand {
            path: path.to_vec(),
            flags,
            positionals,
            has_expression,
            has_end_of_flags,
        },
    }
}

fn schema(properties: &Map<String, Value>, required: &[String]) -> Value {
    let mut schema =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn definition(name: &str, description: &str, schema: &Value, is_read: bool) -> String {
    let mut definition = json!({ "name": name, "description": description, "inputSchema": schema });
    if is_read {
        definition["annotations"] = json!({ "readOnlyHint": true });
    }
    definition.to_string()
}

/// The name of an argument, different from the others and from those with a meaning.
fn argument_name(written: &str, others: &Map<String, Value>) -> String {
    let mut name: String = written
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    while [REST, INPUT].contains(&name.as_str()) || others.contains_key(&name) || name.is_empty() {
        name.push('_');
    }
    name
}

fn schema_of(flag: &Flag) -> Value {
    let mut schema = match &flag.value {
        None => json!({ "type": "boolean" }),
        Some(value) => {
            let mut one = json!({ "type": match value.kind {
                Kind::Text => "string",
                Kind::Integer => "integer",
                Kind::Number => "number",
            } });
            if !value.choices.is_empty() {
                one["enum"] = json!(value.choices);
            }
            if value.is_optional {
                // `true` is the flag without a value.
                one = json!({ "anyOf": [one, { "const": true }] });
            }
            match value.more {
                0 if flag.is_repeated => json!({ "type": "array", "items": one }),
                0 => one,
                more => {
                    json!({ "type": "array", "items": { "type": "string" }, "minItems": more + 1 })
                }
            }
        }
    };
    if !flag.about.is_empty() {
        schema["description"] = json!(flag.about);
    }
    schema
}

fn of_words(tool: &CommandTool, is_read: bool) -> Tool {
    let names: BTreeSet<String> = tool
        .args
        .iter()
        .flat_map(|word| placeholders(word))
        .collect();
    let own: Option<Value> = tool
        .input_schema
        .as_deref()
        .and_then(|json| serde_json::from_str(json).ok());
    let schema = own.unwrap_or_else(|| {
        let properties = names
            .iter()
            .map(|name| (name.clone(), json!({ "type": "string" })));
        let required: Vec<String> = names.iter().cloned().collect();
        schema(&properties.collect(), &required)
    });
    let description = tool.description.clone();
    let description = description.unwrap_or_else(|| format!("Runs `{}`.", tool.args.join(" ")));
    Tool {
        definition: definition(tool.name.as_str(), &description, &schema, is_read),
        form: Form::Words(tool.args.clone()),
    }
}

/// The names in `{name}`.
pub(super) fn placeholders(word: &str) -> Vec<String> {
    let pieces = word.split('{').skip(1);
    let names = pieces.filter_map(|piece| Some(piece.split_once('}')?.0));
    let is_name = |name: &&str| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    };
    names.filter(is_name).map(str::to_owned).collect()
}
