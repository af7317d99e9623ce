//! The rules of Continue's command line agent: lists of tools in `permissions.yaml`. It names the tools of servers as
//! the servers do. The first list that has a tool decides, in the order `exclude`, `ask`, `allow`.

use std::path::PathBuf;

use super::super::cache::FileCache;
use super::super::entry::META_TOOLS;
use super::super::model::Found;
use super::super::{Node, Surroundings, Syntax};
use super::glob::{behind, fits};
use super::{Carried, Rule, RuleFile, RuleKind, items, plain};

/// Its own tools. A rule that names one of them is only about that.
const BUILT_IN: &[&str] = &[
    "AskQuestion",
    "Bash",
    "CheckBackgroundJob",
    "Checklist",
    "Diff",
    "Edit",
    "Event",
    "Exit",
    "Fetch",
    "List",
    "MultiEdit",
    "Read",
    "ReportFailure",
    "Search",
    "Skills",
    "Status",
    "Subagent",
    "UploadArtifact",
    "Write",
];

pub(super) fn find(
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let path = around.home.join(".continue/permissions.yaml");
    let file = RuleFile {
        path: &path,
        project: None,
        servers,
    };
    let Some(node) = file.open(Syntax::Yaml, cache, rules) else {
        return;
    };
    for (list, _) in node.members() {
        let kind = match list {
            "exclude" => RuleKind::Deny,
            "ask" => RuleKind::Ask,
            // Without a server's name it is not known which one a permitted tool is of.
            "allow" => continue,
            other => {
                file.unclear(other, rules);
                continue;
            }
        };
        for rule in file.texts(&node, &[list], rules) {
            for found in servers {
                if let Some(carried) = carried(rule, kind, &found.name) {
                    rules.push(file.source_rule(list, rule, kind).about(found, carried));
                }
            }
        }
    }
}

/// The exclusion that keeps the tools of mcpzip from being used, with its file.
pub(in super::super) fn is_hidden(
    name: &str,
    around: &Surroundings,
    cache: &FileCache,
) -> Option<(PathBuf, String)> {
    let path = around.home.join(".continue/permissions.yaml");
    let node = cache.node(&path, Syntax::Yaml).ok()??;
    let excluded = node.get("exclude").map(items).unwrap_or_default().iter();
    let mut excluded = excluded.filter_map(Node::as_text);
    let rule = excluded.find(|rule| match carried(rule, RuleKind::Deny, name) {
        Some(Carried::Deny(tools)) => {
            let mut tools = tools.iter();
            tools.any(|pattern| META_TOOLS.iter().any(|own| fits(pattern, own)))
        }
        _ => false,
    })?;
    Some((path, rule.to_owned()))
}

/// The outcome of a rule for a server. `None` if it is about a tool of Continue.
fn carried(rule: &str, kind: RuleKind, server: &str) -> Option<Carried> {
    let (name, condition) = rule.split_once('(').unwrap_or((rule, ""));
    let (name, condition) = (name.trim(), condition.trim().trim_end_matches(')').trim());
    if BUILT_IN.contains(&name) {
        return None;
    }
    let is_about_all = !name.is_empty() && name.chars().all(|c| c == '*');
    // Its editor extension puts the server's name before the tool's.
    let prefixes = [
        format!("mcp__{}__", plain(server)),
        format!("{}_", plain(server)),
        format!("{}_", plain(server).to_lowercase()),
    ];
    let mut tools = vec![name.to_owned()];
    tools.extend(prefixes.iter().flat_map(|prefix| behind(name, prefix)));
    tools.sort();
    tools.dedup();
    if is_about_all || tools.iter().any(|tool| tool == "*") {
        tools = vec!["*".to_owned()];
    }
    Some(match kind {
        _ if name.is_empty() => Carried::UNCLEAR,
        _ if !matches!(condition, "" | "*") => {
            Carried::Lost("looks at parameters, which are not carried over")
        }
        // It applies to mcpzip's tools, too.
        RuleKind::Ask if is_about_all => Carried::Needless(tools),
        RuleKind::Ask => Carried::Ask(tools),
        _ => Carried::Deny(tools),
    })
}
