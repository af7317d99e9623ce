//! The parts of an entry that decide which tools may be used.

use super::Reader;
use crate::clients::model::{Carried, ToolRule};
use crate::clients::{Client, Node};

pub(super) const DENYING_KEYS: &[&str] = &["disabledTools", "disabled_tools", "excludeTools"];
pub(super) const ALLOWING_KEYS: &[&str] = &["enabled_tools", "includeTools", "available_tools"];
pub(super) const FREEING_KEYS: &[&str] = &[
    "autoApprove",
    "alwaysAllow",
    "trust",
    "default_tools_approval_mode",
    "default_tools_enabled",
];

impl Reader<'_> {
    pub(super) fn tool_rules(&self) -> Vec<ToolRule> {
        let mut rules = Vec::new();
        let mut add = |key: &str, value: &Node, carried: Carried| {
            rules.push(ToolRule {
                key: key.to_owned(),
                carried,
                value: value.to_json(),
            });
        };
        let present = |key: &str| {
            self.entry
                .get(key)
                .filter(|value| !matches!(value, Node::Null))
        };
        let named = |key: &'static str| Some((key, present(key)?));
        for (key, value) in DENYING_KEYS.iter().filter_map(|key| named(key)) {
            match names(value) {
                Some(tools) if tools.is_empty() => {}
                Some(tools) => add(key, value, Carried::Deny(tools)),
                None => add(key, value, Carried::UNCLEAR),
            }
        }
        for (key, value) in ALLOWING_KEYS.iter().filter_map(|key| named(key)) {
            match names(value) {
                // In that client, an empty list means all tools.
                Some(tools) if tools.is_empty() && key == "available_tools" => {}
                // There it is a name, here it would stand for many.
                Some(tools) if tools.iter().any(|tool| is_pattern(tool)) => {
                    add(key, value, Carried::UNCLEAR);
                }
                Some(tools) => add(key, value, Carried::Only(tools)),
                None => add(key, value, Carried::UNCLEAR),
            }
        }
        let says_something = |value: &Node| match value {
            Node::List(items) => !items.is_empty(),
            Node::Flag(flag) => *flag,
            _ => true,
        };
        for (key, value) in FREEING_KEYS.iter().filter_map(|key| named(key)) {
            match (key, value) {
                ("default_tools_approval_mode", Node::Text(mode))
                    if matches!(mode.as_str(), "prompt" | "writes") =>
                {
                    add(key, value, Carried::Ask(vec!["*".to_owned()]));
                }
                ("default_tools_approval_mode", mode)
                    if !matches!(mode.as_text(), Some("auto" | "approve")) =>
                {
                    add(key, value, Carried::UNCLEAR);
                }
                ("default_tools_enabled", enabled) if enabled.as_flag().is_none() => {
                    add(key, value, Carried::UNCLEAR);
                }
                ("default_tools_enabled", Node::Flag(false)) => {
                    add(
                        key,
                        value,
                        Carried::Lost("leaves tools that are switched on one by one"),
                    );
                }
                _ if says_something(value) => {
                    let tools = names(value).unwrap_or_else(|| vec!["*".to_owned()]);
                    add(key, value, Carried::Needless(tools));
                }
                _ => {}
            }
        }
        match (self.client, present("tools")) {
            // Rules for single tools are read with the client's other rules.
            (Client::Codex, Some(Node::Map(_))) | (_, None) => {}
            (_, Some(tools)) if *tools == Node::texts(["*"]) => {}
            // A list without tools is a limit as well.
            (Client::CopilotCli, Some(tools)) if names(tools).is_some() => {
                add(
                    "tools",
                    tools,
                    Carried::Only(names(tools).unwrap_or_default()),
                );
            }
            (_, Some(tools)) => add("tools", tools, Carried::UNCLEAR),
        }
        rules
    }
}

/// Whether a rule of the proxy with this text stands for more than one tool.
fn is_pattern(tool: &str) -> bool {
    tool.contains(['*', '?']) || tool.starts_with('@')
}

/// The names of tools. Some clients have parameters after them, which only restrict further.
fn names(list: &Node) -> Option<Vec<String>> {
    let Node::List(items) = list else { return None };
    let name = |item: &Node| {
        item.as_text()?
            .split('(')
            .next()
            .map(|name| name.trim().to_owned())
    };
    items.iter().map(name).collect()
}
