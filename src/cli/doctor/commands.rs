//! Check of command lines (`"cli": true`): whether their help says which arguments the subcommands take.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::printable::printable;
use super::Examination;
use super::finding::{Finding, some};
use super::kinds;
use crate::catalog::ServerTools;
use crate::config::{Server, Transport};
use crate::proxy::counted;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    input_schema: Schema,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(default)]
    properties: BTreeMap<String, serde::de::IgnoredAny>,
}

/// Reports a command line most of whose subcommands have only a free list of arguments.
pub(super) fn examine(entry: &Server, known: &ServerTools, examination: &mut Examination) {
    let command_line = match &entry.transport {
        Transport::Stdio(stdio) => stdio.command_line.as_ref(),
        Transport::Http(_) | Transport::Sse(_) | Transport::Folder(_) => None,
    };
    if command_line.is_none_or(|command_line| !command_line.tools.is_empty()) {
        return;
    }
    let has_free_list_only = |json: &str| {
        serde_json::from_str::<Definition>(json).is_ok_and(|definition| {
            let names = definition.input_schema.properties;
            names.contains_key("args") && names.keys().all(|name| name == "args" || name == "stdin")
        })
    };
    let tools = known.entries();
    let poor = tools.iter().filter(|tool| {
        known
            .json(tool)
            .is_ok_and(|json| has_free_list_only(json.get()))
    });
    let poor: Vec<String> = poor
        .map(|tool| format!("`{}`", printable(tool.name.as_str())))
        .collect();
    if poor.len() * 2 > tools.len() {
        let what = format!(
            "{} of {} have a free list of arguments only: {}",
            poor.len(),
            counted(tools.len(), "subcommand"),
            some(&poor)
        );
        let name = known.name().as_str();
        examination.add(Finding::new(&kinds::COMMAND_HELP_POOR, name, what));
    }
}
