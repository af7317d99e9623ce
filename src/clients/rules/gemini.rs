//! Gemini CLI's rules: `policies/*.toml` of the user, the workspace and the administrator. Tools are named
//! `mcp_SERVER_TOOL` there, or `SERVER__TOOL` in older versions. The rule with the highest priority applies. Settings exclude tools and
//! servers by name, and name further policies. A file of its own has the servers that `gemini mcp disable` switched off.

use std::path::PathBuf;

use super::super::cache::FileCache;
use super::super::entry::{META_TOOLS, NAME};
use super::super::listed::listed;
use super::super::model::{Found, Survey};
use super::super::{Client, Node, Surroundings, Syntax};
use super::glob::{behind, fits, is_about_all};
use super::{Carried, Rule, RuleFile, RuleKind, files, items, plain};

/// Conditions on a call that mcpzip's rules do not have.
const CONDITIONS: &[&str] = &[
    "argsPattern",
    "commandPrefix",
    "commandRegex",
    "toolAnnotations",
];

/// A list of servers in settings.
pub(in super::super) struct ServerList {
    /// The path of keys to it.
    pub keys: &'static [&'static str],
    /// Whether it names the servers that do not run; otherwise it names the only ones that do.
    excludes: bool,
}

/// The lists of servers. The last two are the names that old versions had for them.
pub(in super::super) const SERVER_LISTS: [ServerList; 4] = [
    ServerList {
        keys: &["mcp", "excluded"],
        excludes: true,
    },
    ServerList {
        keys: &["mcp", "allowed"],
        excludes: false,
    },
    ServerList {
        keys: &["excludeMCPServers"],
        excludes: true,
    },
    ServerList {
        keys: &["allowMCPServers"],
        excludes: false,
    },
];

impl ServerList {
    /// Whether `list` keeps the server `name` from running. A list that is not understood does.
    pub(in super::super) fn keeps_out(&self, list: &Node, name: &str) -> bool {
        let is_meant = |item: &Node| {
            item.as_text()
                .is_none_or(|listed| listed == "*" || folded(listed) == folded(name))
        };
        match list {
            Node::Null => false,
            list if self.excludes => items(list).iter().any(is_meant),
            list => list.names(name) != Some(true),
        }
    }

    /// Why a server does not run, with the name of the list.
    pub(in super::super) fn says(&self, name: &str) -> String {
        let has = if self.excludes {
            "has"
        } else {
            "does not have"
        };
        format!("{has} `{name}`")
    }
}

/// Whether the settings keep the server `name` from running.
pub(in super::super) fn is_kept_out(settings: &Node, name: &str) -> bool {
    let mut lists = SERVER_LISTS.iter();
    lists.any(|list| {
        let node = settings.at(list.keys);
        node.is_some_and(|node| list.keeps_out(node, name))
    })
}

/// The file of the servers that `gemini mcp disable` switched off.
pub(in super::super) fn switches(around: &Surroundings) -> PathBuf {
    around.home.join(".gemini/mcp-server-enablement.json")
}

/// Whether `gemini mcp disable` switched the server `name` off.
pub(in super::super) fn is_disabled(name: &str, around: &Surroundings, cache: &FileCache) -> bool {
    let switches = cache.json(&switches(around)).unwrap_or(Node::Null);
    let is_off = |state: &Node| match state {
        Node::Null => false,
        Node::Map(_) => !matches!(
            state.get("enabled"),
            None | Some(Node::Null | Node::Flag(true))
        ),
        _ => true,
    };
    let mut members = switches.members().into_iter();
    members.any(|(key, state)| folded(key) == folded(name) && is_off(state))
}

/// A server's name as Gemini CLI compares it.
fn folded(name: &str) -> String {
    name.trim().to_lowercase()
}

pub(super) fn find(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let off = RuleFile {
        path: &switches(around),
        project: None,
        servers,
    };
    // Its content is read with each server.
    off.open(Syntax::Json, cache, rules);
    let mut directories = vec![
        (around.home.join(".gemini/policies"), None),
        (around.gemini_system().join("policies"), None),
    ];
    for (path, project) in settings(survey, around) {
        let file = RuleFile {
            path: &path,
            project: project.as_deref(),
            servers,
        };
        excluded(&file, cache, rules);
        if let Some(node) = file.open(Syntax::Json, cache, &mut Vec::new()) {
            let base = project.as_deref().unwrap_or(&around.home);
            for key in ["policyPaths", "adminPolicyPaths"] {
                let named = file.texts(&node, &[key], rules).into_iter();
                directories.extend(named.map(|named| {
                    let path = match named.strip_prefix("~/") {
                        Some(rest) => around.home.join(rest),
                        None => base.join(named),
                    };
                    (path, project.clone())
                }));
            }
        }
    }
    let extensions = extensions(around).into_iter();
    directories.extend(extensions.map(|directory| (directory.join("policies"), None)));
    let projects = survey.projects.iter();
    let projects =
        projects.map(|project| (project.join(".gemini/policies"), Some(project.clone())));
    let projects: Vec<_> = projects
        .filter(|(directory, _)| *directory != directories[0].0)
        .collect();
    directories.extend(projects);
    let mut policies = Vec::new();
    for (place, (directory, project)) in directories.into_iter().enumerate() {
        let named = [directory.clone()]
            .into_iter()
            .filter(|path| path.is_file());
        for path in files(&directory, "toml").into_iter().chain(named) {
            let file = RuleFile {
                path: &path,
                project: project.as_deref(),
                servers,
            };
            let node = file.open(Syntax::Toml, cache, rules);
            policies.extend(node.map(|node| (path, project.clone(), place, node)));
        }
    }
    let permits_mcpzip = policies.iter().any(|(.., node)| permits_mcpzip(node));
    for (path, project, place, node) in &policies {
        let file = RuleFile {
            path,
            project: project.as_deref(),
            servers,
        };
        for section in ["rule", "safety_checker"] {
            for rule in node.get(section).map(items).unwrap_or_default() {
                // Those of another place are all above or all below these.
                let nearby = policies.iter().filter(|(_, _, other, _)| other == place);
                let nearby =
                    nearby.flat_map(|(.., node)| node.get("rule").map(items).unwrap_or_default());
                let nearby: Vec<&Node> = nearby.filter(|other| outranks(other, rule)).collect();
                read(section, (rule, &nearby), permits_mcpzip, &file, rules);
            }
        }
    }
}

/// Whether a rule permits mcpzip's own tools. Then a rule about all tools does not apply to them.
fn permits_mcpzip(policies: &Node) -> bool {
    let mut rules = policies.get("rule").map(items).unwrap_or_default().iter();
    rules.any(|rule| {
        let is_allowed = rule.get("decision").and_then(Node::as_text) == Some("allow");
        is_allowed && !tools(rule, NAME).is_empty() && tools(rule, "\u{1}").is_empty()
    })
}

/// The exclusion or policy that keeps the tools of mcpzip, here named `name`, from being used, with its file.
pub(in super::super) fn is_hidden(
    name: &str,
    around: &Surroundings,
    cache: &FileCache,
) -> Option<(PathBuf, String)> {
    let withholds = |rule: &Node| {
        let patterns = tools(rule, name);
        META_TOOLS
            .iter()
            .any(|tool| patterns.iter().any(|pattern| fits(pattern, tool)))
    };
    let own = Client::GeminiCli.user_location(around).path;
    let settings = [own].into_iter().chain(around.gemini_system_files());
    let excluded = settings.into_iter().find_map(|path| {
        let node = cache.json(&path)?;
        let lists = [&["tools", "exclude"][..], &["excludeTools"]];
        let named = lists
            .into_iter()
            .filter_map(|keys| node.at(keys))
            .flat_map(items);
        let mut named = named.filter_map(Node::as_text);
        let hides = |tool: &&str| {
            let rule = Node::map([("toolName", Node::text(*tool))]);
            META_TOOLS.contains(tool) || withholds(&rule)
        };
        let tool = named.find(hides)?.to_owned();
        Some((path, tool))
    });
    excluded.or_else(|| {
        let directories = [around.home.join(".gemini"), around.gemini_system()];
        let files = directories
            .iter()
            .flat_map(|it| files(&it.join("policies"), "toml"));
        let policies: Vec<(PathBuf, Node)> = files
            .filter_map(|path| Some((path.clone(), cache.node(&path, Syntax::Toml).ok()??)))
            .collect();
        if policies.iter().any(|(_, node)| permits_mcpzip(node)) {
            return None;
        }
        policies.iter().find_map(|(path, node)| {
            let mut rules = node.get("rule").map(items).unwrap_or_default().iter();
            let is_plain = |rule: &Node| CONDITIONS.iter().all(|key| rule.get(key).is_none());
            let is_denial =
                |rule: &Node| rule.get("decision").and_then(Node::as_text) == Some("deny");
            let rule = rules.find(|rule| is_denial(rule) && is_plain(rule) && withholds(rule))?;
            Some((path.clone(), rule.to_json()))
        })
    })
}

/// The directories of the extensions.
pub(super) fn extensions(around: &Surroundings) -> Vec<PathBuf> {
    listed(&around.home.join(".gemini/extensions"), usize::MAX)
}

/// The settings files, each with its project. The manifests of extensions exclude tools, too.
pub(super) fn settings(survey: &Survey, around: &Surroundings) -> Vec<(PathBuf, Option<PathBuf>)> {
    let own = Client::GeminiCli.user_location(around).path;
    let system = around.gemini_system_files().map(|path| (path, None));
    let projects = survey.projects.iter().map(|directory| {
        let path = directory.join(".gemini/settings.json");
        (path, Some(directory.clone()))
    });
    let projects: Vec<_> = projects.filter(|(path, _)| *path != own).collect();
    let manifests = extensions(around).into_iter();
    let manifests = manifests.map(|directory| (directory.join("gemini-extension.json"), None));
    [(own, None)]
        .into_iter()
        .chain(system)
        .chain(projects)
        .chain(manifests)
        .collect()
}

/// Reads the tools and servers that settings exclude by name, and the tools that they always ask about.
fn excluded(file: &RuleFile<'_>, cache: &FileCache, rules: &mut Vec<Rule>) {
    let Some(node) = file.open(Syntax::Json, cache, rules) else {
        return;
    };
    for (keys, kind) in [
        (&["tools", "exclude"][..], RuleKind::Deny),
        (&["excludeTools"], RuleKind::Deny),
        (&["tools", "confirmationRequired"], RuleKind::Ask),
    ] {
        let written = file.texts(&node, keys, rules);
        // A tool may be named without its server; it is then left out at each server.
        let is_bare = |name: &&str| {
            !name.contains(['(', '*', '?']) && !name.contains("__") && !name.starts_with("mcp_")
        };
        let bare: Vec<&str> = written.iter().copied().filter(is_bare).collect();
        // A condition in parentheses may follow the name of a built-in tool.
        let named = written
            .iter()
            .map(|name| name.split('(').next().unwrap_or(name));
        let rule = Node::map([("toolName", Node::texts(named))]);
        let source = file.source_rule(keys.join("."), rule.to_json(), kind);
        // It applies to mcpzip's three tools, too.
        let asks_anyway = kind == RuleKind::Ask && tools(&rule, "\u{1}") == ["*"];
        for found in file.servers.iter().filter(|found| source.reaches(found)) {
            let mut tools = tools(&rule, &found.name);
            tools.extend(bare.iter().map(|name| (*name).to_owned()));
            tools.sort();
            tools.dedup();
            let carried = match kind {
                _ if tools.is_empty() => continue,
                _ if asks_anyway => Carried::Needless(tools),
                RuleKind::Ask => Carried::Ask(tools),
                _ => Carried::Deny(tools),
            };
            let is_named = bare.is_empty() && is_named(&rule);
            rules.push(source.clone().named(is_named).about(found, carried));
        }
    }
    for list in &SERVER_LISTS {
        let Some(node) = file.at(&node, list.keys, rules) else {
            continue;
        };
        let source = file.source_rule(list.keys.join("."), node.to_json(), RuleKind::Deny);
        // The lists in the file of a server are read with it.
        let others = file.servers.iter();
        let others = others.filter(|found| file.path != found.location.path);
        for found in others.filter(|found| source.reaches(found)) {
            if list.keeps_out(node, &found.name) {
                let has_it = node.names(&found.name) == Some(true);
                let source = source.clone().named(has_it).permitting(!list.excludes);
                rules.push(source.about(found, file.switched_off()));
            }
        }
    }
}

/// Whether a rule names its servers without a pattern.
fn is_named(rule: &Node) -> bool {
    let names = rule.get("mcpName").or_else(|| rule.get("toolName"));
    let names = names.map(items).unwrap_or_default();
    let is_plain = |name: &Node| {
        let name = name.as_text();
        name.is_some_and(|name| !name.contains(['*', '?']))
    };
    !names.is_empty() && names.iter().all(is_plain)
}

/// Reads a rule; the rules in `above` apply before it.
fn read(
    section: &str,
    (rule, above): (&Node, &[&Node]),
    permits_mcpzip: bool,
    file: &RuleFile<'_>,
    rules: &mut Vec<Rule>,
) {
    let kind = match rule.get("decision").and_then(Node::as_text) {
        Some("allow") => RuleKind::Allow,
        Some("ask_user") => RuleKind::Ask,
        _ => RuleKind::Deny,
    };
    let is_text = ["toolName", "mcpName"]
        .iter()
        .all(|key| match rule.get(key) {
            None | Some(Node::Text(_)) => true,
            Some(Node::List(items)) => items.iter().all(|item| item.as_text().is_some()),
            Some(_) => false,
        });
    if !is_text && kind != RuleKind::Allow || !matches!(rule, Node::Map(_)) {
        file.unclear(section, rules);
        return;
    }
    // A safety checker inspects a call before it is made.
    let is_conditional = section != "rule" || CONDITIONS.iter().any(|key| rule.get(key).is_some());
    let source = file.source_rule(section, rule.to_json(), kind);
    for found in file.servers.iter().filter(|found| source.reaches(found)) {
        let tools = tools(rule, &found.name);
        if tools.is_empty() {
            continue;
        }
        // A rule about all tools also applies to mcpzip's three tools.
        let is_about_all = !permits_mcpzip && tools == ["*"] && self::tools(rule, "\u{1}") == ["*"];
        let freed = || {
            above
                .iter()
                .flat_map(|above| plain_tools(above, &found.name))
        };
        let carried = match kind {
            RuleKind::Allow => Carried::Needless(tools),
            RuleKind::Ask if is_about_all && !is_conditional => Carried::Needless(tools),
            _ if is_conditional => {
                Carried::Lost("looks at parameters or claims, which are not carried over")
            }
            RuleKind::Deny if freed().any(|tool| tool == "*" || tools == [tool.as_str()]) => {
                continue;
            }
            RuleKind::Ask => Carried::Ask(tools),
            _ if tools == ["*"] && freed().next().is_some() => Carried::Only(freed().collect()),
            _ => Carried::Deny(tools),
        };
        let source = source.clone().named(is_named(rule));
        rules.push(source.about(found, carried));
    }
}

/// Whether a rule lets tools be used, in every mode and with any parameters, and its priority is above that of `rule`.
fn outranks(above: &Node, rule: &Node) -> bool {
    const KNOWN: [&str; 4] = ["toolName", "mcpName", "decision", "priority"];
    let priority = |rule: &Node| match rule.get("priority")? {
        Node::Number(number) => number.parse::<f64>().ok(),
        _ => None,
    };
    let is_open = matches!(
        above.get("decision").and_then(Node::as_text),
        Some("allow" | "ask_user")
    );
    let mut members = above.members().into_iter();
    let both = priority(above).zip(priority(rule));
    is_open
        && members.all(|(key, _)| KNOWN.contains(&key))
        && both.is_some_and(|(above, below)| above > below)
}

/// The tools of `server` that a rule names, without patterns, or `*` for all.
fn plain_tools(rule: &Node, server: &str) -> Vec<String> {
    let mut tools = tools(rule, server);
    tools.retain(|tool| tool == "*" || !tool.contains(['*', '?', '@']));
    tools
}

/// The tools of `server` that a rule concerns, as patterns.
fn tools(rule: &Node, server: &str) -> Vec<String> {
    let texts = |key: &str| match rule.get(key) {
        None => None,
        Some(Node::Text(text)) => Some(vec![text.clone()]),
        Some(node) => Some(
            node.items()
                .iter()
                .filter_map(Node::as_text)
                .map(str::to_owned)
                .collect(),
        ),
    };
    let named = texts("toolName");
    if named.is_none() && rule.get("mcpName").is_none() {
        return vec!["*".to_owned()];
    }
    if let Some(meant) = texts("mcpName") {
        let is_meant = meant
            .iter()
            .any(|name| fits(name, server) || fits(name, &plain(server)));
        return match named {
            _ if !is_meant => Vec::new(),
            Some(tools) => tools,
            None => vec!["*".to_owned()],
        };
    }
    let server = plain(server);
    let mut tools = Vec::new();
    for pattern in named.unwrap_or_default() {
        for prefix in [
            format!("mcp_{server}_"),
            format!("{server}__"),
            format!("mcp__{server}__"),
        ] {
            tools.extend(behind(&pattern, &prefix));
        }
        let is_everything = is_about_all(&pattern, |server| format!("mcp_{server}_"));
        if is_everything {
            return vec!["*".to_owned()];
        }
    }
    tools.sort();
    tools.dedup();
    tools
}
