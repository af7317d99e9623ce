//! A program whose subcommands are tools: the keys `cli` and `cli_…` of a server's entry.
//!
//! `cli_only` restricts what agents may call, so a value that is not understood is a fault of the entry, never left out.

use super::adaptation::{NAME, json_of, plain_name};
use super::error::EntryError;
use super::reader::{At, Field, Members};
use crate::tool::ToolName;

/// The default of `cli_depth`.
pub(super) const DEPTH: usize = 4;

/// How a program's subcommands become tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandLine {
    /// The argument that prints the help of the program, or of a subcommand; several are tried if it is absent.
    pub help: Option<String>,
    /// The number of levels of help that are read: 1 is the program's own, 2 those of its subcommands.
    pub depth: usize,
    /// The subcommands that are tools, with all below them; empty means all.
    pub only: Vec<Vec<String>>,
    /// The subcommands that the user declares to be read-only, with all below them.
    pub read: Vec<Vec<String>>,
    /// The tools, in place of those that the help names.
    pub tools: Vec<CommandTool>,
}

/// A tool that the entry defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandTool {
    /// The tool's name.
    pub name: ToolName,
    /// The arguments of each call. `{name}` stands for the value of the argument `name`.
    pub args: Vec<String>,
    /// The tool's description.
    pub description: Option<String>,
    /// The JSON Schema of its arguments, as JSON.
    pub input_schema: Option<String>,
}

const TOOLS: &str = "a list of tools like [{\"name\": \"export\", \"args\": [\"export\", \"--to\", \"{file}\"], \"input_schema\": {…}}]";
const SCHEMA: &str = "a JSON Schema of an object";

/// Reads the keys of an entry. `None` if the entry is an MCP server.
pub(super) fn read(members: &mut Members<'_>) -> Result<Option<CommandLine>, At<EntryError>> {
    let is_cli = members.read("cli", Field::flag);
    let help = members.read("cli_help", Field::text);
    let depth = members.read("cli_depth", |field| {
        let depth = field.positive_number()?;
        Ok(usize::try_from(depth).unwrap_or(usize::MAX))
    });
    let only = members.read("cli_only", Field::texts);
    let read = members.read("cli_read", Field::texts);
    let tools = members.read("cli_tools", tools);
    // All are read before the first fault is reported.
    let (is_cli, help, depth) = (is_cli?, help?, depth?);
    let (only, read, tools) = (only?, read?, tools?);
    let stray = [
        ("cli_help", help.as_ref().map(|at| at.offset)),
        ("cli_only", only.as_deref().and_then(first)),
        ("cli_read", read.as_deref().and_then(first)),
    ];
    if is_cli != Some(true) {
        let stray = stray.into_iter().find_map(|(key, at)| Some((key, at?)));
        return match stray {
            Some((key, offset)) => Err(At::new(offset, EntryError::NeedsCli { key })),
            None => Ok(None),
        };
    }
    let paths = |texts: Option<Vec<At<String>>>| -> Vec<Vec<String>> {
        let path = |text: At<String>| text.value.split_whitespace().map(str::to_owned).collect();
        let paths = texts.unwrap_or_default().into_iter().map(path);
        paths
            .filter(|path: &Vec<String>| !path.is_empty())
            .collect()
    };
    Ok(Some(CommandLine {
        help: help.map(|help| help.value),
        depth: depth.unwrap_or(DEPTH),
        only: paths(only),
        read: paths(read),
        tools: tools.unwrap_or_default(),
    }))
}

fn first(texts: &[At<String>]) -> Option<usize> {
    texts.first().map(|text| text.offset)
}

fn tools(field: &Field<'_>) -> Result<Vec<CommandTool>, At<EntryError>> {
    field.elements(TOOLS)?.map(|field| tool(&field)).collect()
}

fn tool(field: &Field<'_>) -> Result<CommandTool, At<EntryError>> {
    field.object().map_err(|_| field.wrong(TOOLS))?;
    let (mut name, mut args, mut description, mut input_schema) = (None, None, None, None);
    field.members(|key, value| {
        match key {
            _ if value.is_null() => {}
            "name" => {
                let text = value.text_as(NAME)?.value;
                name = Some(plain_name(&text).ok_or_else(|| value.wrong(NAME))?);
            }
            "args" => args = Some(value.texts()?.into_iter().map(|at| at.value).collect()),
            "description" => description = Some(value.text()?.value),
            "input_schema" => {
                value.object().map_err(|_| value.wrong(SCHEMA))?;
                input_schema = Some(json_of(value.value()).ok_or_else(|| value.wrong(SCHEMA))?);
            }
            _ => return Err(field.wrong(TOOLS)),
        }
        Ok(())
    })?;
    match (name, args) {
        (Some(name), Some(args)) => Ok(CommandTool {
            name,
            args,
            description,
            input_schema,
        }),
        _ => Err(field.wrong(TOOLS)),
    }
}
