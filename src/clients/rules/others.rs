//! The rules of Codex, Zed, Cursor, Kiro and Goose.

use super::super::cache::FileCache;
use super::super::entry::{META_TOOLS, NAME, has_all_servers, zed_profile};
use super::super::model::{Found, Survey};
use super::super::{Client, Node, Surroundings, Syntax};
use super::glob::fits;
use super::{Carried, Rule, RuleFile, RuleKind, SourceRule, files, items, plain_by_character};

pub(super) const OF_AN_AGENT: Carried = Carried::Lost("holds for one agent alone");

/// Codex's rules: `tools.NAME` in a server's table, of the user or of a project.
pub(super) fn codex(survey: &Survey, servers: &[&Found], rules: &mut Vec<Rule>) {
    let locations = survey.locations.iter();
    for location in locations.filter(|location| location.client == Client::Codex) {
        let Some(source) = survey.files.get(&location.path) else {
            continue;
        };
        let file = RuleFile {
            path: &location.path,
            project: location.project.as_deref(),
            servers,
        };
        // Those of a project about a server of the user are read with the projects' entries.
        let is_own = |found: &&&Found| location.project.is_none() || found.location == *location;
        for found in servers.iter().filter(is_own) {
            let path = location.path_of(&found.name);
            if let Some(entry) = source.text.node().at(&path) {
                codex_tools(&path.join("."), entry, &file, found, rules);
            }
        }
    }
}

/// Adds the rules for single tools in the `entry` at `key` about a server.
pub(super) fn codex_tools(
    key: &str,
    entry: &Node,
    file: &RuleFile<'_>,
    found: &Found,
    rules: &mut Vec<Rule>,
) {
    let tools = entry.get("tools").map(Node::members);
    for (tool, node) in tools.unwrap_or_default() {
        let (kind, carried) = codex_tool(tool, node);
        let source = file.source_rule(format!("{key}.tools.{tool}"), node.to_json(), kind);
        rules.push(source.named(true).about(found, carried));
    }
}

fn codex_tool(tool: &str, node: &Node) -> (RuleKind, Carried) {
    let named = || vec![tool.to_owned()];
    let enabled = node.get("enabled").map(Node::as_flag);
    let mode = node.get("approval_mode").map(Node::as_text);
    match (enabled, mode) {
        _ if !matches!(node, Node::Map(_)) => (RuleKind::Deny, Carried::UNCLEAR),
        (Some(Some(false)), _) => (RuleKind::Deny, Carried::Deny(named())),
        (Some(None), _) => (RuleKind::Deny, Carried::UNCLEAR),
        (_, None | Some(Some("approve" | "auto"))) => (RuleKind::Allow, Carried::Needless(named())),
        (_, Some(Some("prompt" | "writes"))) => (RuleKind::Ask, Carried::Ask(named())),
        _ => (RuleKind::Deny, Carried::UNCLEAR),
    }
}

/// Parts of Zed's settings that apply to one release channel or system.
const ZED_PARTS: &[&str] = &[
    "stable", "preview", "nightly", "dev", "linux", "macos", "windows",
];

/// Zed's rules: `agent.tool_permissions.tools` has keys such as `mcp:github:create_issue`.
pub(super) fn zed(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let user = Client::Zed.user_location(around);
    let projects = survey.projects.iter();
    let projects = projects.filter_map(|directory| Client::Zed.project_location(directory));
    let projects: Vec<_> = projects.filter(|it| it.path != user.path).collect();
    for location in [user].iter().chain(&projects) {
        let node = match survey.files.get(&location.path) {
            Some(source) => Some(source.text.node().clone()),
            // One that cannot be read is reported with the entries of the projects.
            None => cache.node(&location.path, location.syntax).ok().flatten(),
        };
        let Some(node) = &node else { continue };
        let file = RuleFile {
            path: &location.path,
            project: location.project.as_deref(),
            servers,
        };
        for part in ZED_PARTS {
            if node.at(&[part, "agent"]).is_some() {
                file.unclear(&format!("{part}.agent"), rules);
            }
        }
        let permitted = file.members(node, &["agent", "tool_permissions", "tools"], rules);
        zed_default(node, &permitted, &file, rules);
        for (name, value) in permitted {
            let (kind, known) = zed_permission(value);
            let source = file.source_rule(
                format!("agent.tool_permissions.tools.{name}"),
                value.to_json(),
                kind,
            );
            for found in servers.iter().filter(|found| source.reaches(found)) {
                let rest = name
                    .strip_prefix("mcp:")
                    .and_then(|rest| rest.strip_prefix(found.name.as_str()));
                let tool = match rest.map(|rest| (rest, rest.strip_prefix(':'))) {
                    Some(("", _)) => "*",
                    Some((_, Some(tool))) => tool,
                    _ => continue,
                };
                let carried = match kind {
                    _ if known.is_some() => known.clone().unwrap_or(Carried::UNCLEAR),
                    RuleKind::Deny => Carried::Deny(vec![tool.to_owned()]),
                    RuleKind::Ask => Carried::Ask(vec![tool.to_owned()]),
                    _ => Carried::Needless(vec![tool.to_owned()]),
                };
                rules.push(source.clone().named(true).about(found, carried));
            }
        }
    }
}

/// Adds the rule of a default that refuses tools: it holds for every tool without a default of its own, of which `tools` has the
/// settings.
fn zed_default(node: &Node, tools: &[(&str, &Node)], file: &RuleFile<'_>, rules: &mut Vec<Rule>) {
    let keys = ["agent", "tool_permissions", "default"];
    let Some(default) = file.at(node, &keys, rules).filter(|it| !zed_permits(it)) else {
        return;
    };
    let source = file.source_rule(keys.join("."), default.to_json(), RuleKind::Deny);
    for found in file.servers.iter().filter(|found| source.reaches(found)) {
        let prefix = format!("mcp:{}:", found.name);
        let own = tools
            .iter()
            .filter(|(_, own)| own.get("default").is_some_and(zed_permits));
        let own = own.filter_map(|(name, _)| name.strip_prefix(&prefix));
        let carried = match file.project {
            Some(_) => file.switched_off(),
            None => Carried::Only(own.map(str::to_owned).collect()),
        };
        rules.push(source.clone().about(found, carried));
    }
}

/// Whether a default of Zed lets it use tools.
pub(in super::super) fn zed_permits(default: &Node) -> bool {
    matches!(default.as_text(), Some("allow" | "confirm"))
}

/// The kind of a permission of Zed, and the outcome if it cannot be carried over.
fn zed_permission(value: &Node) -> (RuleKind, Option<Carried>) {
    const CONDITIONAL: Carried = Carried::Lost("looks at parameters, which are not carried over");
    let default = match value {
        Node::Map(_) => value.get("default"),
        Node::Null => None,
        other => Some(other),
    };
    let is_plain = value
        .members()
        .iter()
        .all(|(key, value)| *key == "default" || value.is_same(&Node::Null));
    match default.map(Node::as_text) {
        Some(Some("deny")) => (RuleKind::Deny, None),
        None | Some(Some("allow" | "confirm")) if !is_plain && value.to_json().contains("deny") => {
            (RuleKind::Deny, Some(CONDITIONAL))
        }
        Some(Some("confirm")) => (RuleKind::Ask, None),
        None | Some(Some("allow")) if is_plain => (RuleKind::Allow, None),
        None | Some(Some("allow")) => (RuleKind::Ask, Some(CONDITIONAL)),
        _ => (RuleKind::Deny, Some(Carried::UNCLEAR)),
    }
}

/// Cursor's rules: `Mcp(server:tool)` in the permissions of its command line agent, and `server:tool` in the lists of its editor.
pub(super) fn cursor(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    cursor_allowlists(survey, servers, around, cache, rules);
    let user = around.cursor_permissions().map(|path| (path, None));
    let projects = survey.projects.iter();
    let projects =
        projects.map(|project| (project.join(".cursor/cli.json"), Some(project.clone())));
    for (path, project) in user.into_iter().chain(projects) {
        let file = RuleFile {
            path: &path,
            project: project.as_deref(),
            servers,
        };
        let Some(node) = file.open(Syntax::Json, cache, rules) else {
            continue;
        };
        for (key, listed) in file.members(&node, &["permissions"], rules) {
            let kind = match key {
                "allow" => RuleKind::Allow,
                "ask" => RuleKind::Ask,
                _ => RuleKind::Deny,
            };
            for item in items(listed).iter().filter(|item| **item != Node::Null) {
                let text = item.as_text().map_or_else(|| item.to_json(), str::to_owned);
                let source = file.source_rule(format!("permissions.{key}"), &text, kind);
                let is_known = matches!(key, "allow" | "ask" | "deny");
                // In its project, such a denial also keeps Cursor from mcpzip's tools, and so it goes on to hold.
                let holds = key == "deny" && project.is_some() && denies_all(&text);
                let about = servers.iter().filter(|found| source.reaches(found));
                for found in about.filter(|_| !holds) {
                    if let Some(carried) = cursor_rule(&source, &found.name, is_known) {
                        let pattern = cursor_pattern(&text);
                        let is_named = pattern.is_some_and(|(server, _)| server == found.name);
                        rules.push(source.clone().named(is_named).about(found, carried));
                    }
                }
            }
        }
    }
}

/// The tools that Cursor's editor runs without a question.
fn cursor_allowlists(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let projects = survey.projects.iter().filter(|path| **path != around.home);
    let projects = projects.map(|project| (project, Some(project.as_path())));
    for (directory, project) in [(&around.home, None)].into_iter().chain(projects) {
        let path = directory.join(".cursor/permissions.json");
        let file = RuleFile {
            path: &path,
            project,
            servers,
        };
        // No server stays because this one cannot be read: it only permits.
        let node = cache.json(&path).unwrap_or(Node::Null);
        let listed = node.get("mcpAllowlist").map(items).unwrap_or_default();
        for text in listed.iter().filter_map(Node::as_text) {
            let source = file.source_rule("mcpAllowlist", text, RuleKind::Allow);
            let pattern = format!("Mcp({text})");
            let Some((server, tool)) = cursor_pattern(&pattern) else {
                continue;
            };
            for found in servers.iter().filter(|found| source.reaches(found)) {
                if fits(server, &found.name) && (server != "*" || tool != "*") {
                    let carried = Carried::Needless(vec![tool.to_owned()]);
                    let source = source.clone().named(server == found.name);
                    rules.push(source.about(found, carried));
                }
            }
        }
    }
}

/// The permission of Cursor that denies the tools of the server `name`.
pub(in super::super) fn is_hidden_at_cursor(permissions: &Node, name: &str) -> Option<String> {
    let denied = permissions.get("deny").map(items).unwrap_or_default();
    let mut denied = denied.iter().filter_map(Node::as_text);
    let hides = |text: &&str| cursor_pattern(text).is_some_and(|pattern| hides(pattern, name));
    denied.find(hides).map(str::to_owned)
}

/// Whether a pattern matches the meta-tools of the server `name`.
fn hides((server, tool): (&str, &str), name: &str) -> bool {
    fits(server, name) && META_TOOLS.iter().any(|own| fits(tool, own))
}

/// Whether a denial is about every tool of every server.
fn denies_all(text: &str) -> bool {
    // No server and no tool has this name.
    cursor_pattern(text).is_some_and(|(server, tool)| fits(server, "\u{1}") && fits(tool, "\u{1}"))
}

/// The server and the tool in a permission of Cursor. `None` if it is not understood.
fn cursor_pattern(text: &str) -> Option<(&str, &str)> {
    let is_plain = |part: &str| {
        let is_known = |c: char| c.is_alphanumeric() || "-_.*?".contains(c);
        !part.is_empty() && part.chars().all(is_known)
    };
    let inner = text.strip_prefix("Mcp(")?.strip_suffix(')')?;
    let named = inner.split_once(':').unwrap_or((inner, "*"));
    (is_plain(named.0) && is_plain(named.1)).then_some(named)
}

/// The outcome of a rule of Cursor for `server`. `None` if the rule does not concern it. A deny or ask rule that is not
/// understood may concern every server.
fn cursor_rule(source: &SourceRule, server: &str, is_known: bool) -> Option<Carried> {
    let (text, kind) = (source.text.as_str(), source.kind);
    let is_of_user = source.project.is_none();
    match (cursor_pattern(text).filter(|_| is_known), kind) {
        (Some((pattern, tool)), RuleKind::Allow) => {
            let is_about = fits(pattern, server) && (pattern != "*" || tool != "*");
            is_about.then(|| Carried::Needless(vec![tool.to_owned()]))
        }
        (None, RuleKind::Allow) => None,
        (Some(pattern), RuleKind::Deny) if is_of_user && hides(pattern, NAME) => {
            Some(Carried::Lost("would keep Cursor from mcpzip's own tools"))
        }
        (Some((pattern, tool)), _) => fits(pattern, server).then(|| {
            let tools = vec![tool.to_owned()];
            if kind == RuleKind::Ask {
                Carried::Ask(tools)
            } else {
                Carried::Deny(tools)
            }
        }),
        (None, _) => {
            let lower = text.to_lowercase();
            let is_unclear = lower.contains("mcp") || !lower.contains('(');
            is_unclear.then_some(Carried::Lost("is not understood"))
        }
    }
}

/// Kiro's rules: agents name tools as `@server/tool`.
pub(super) fn kiro(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let projects = survey.projects.iter().filter(|path| **path != around.home);
    for directory in [&around.home].into_iter().chain(projects) {
        for path in files(&directory.join(".kiro/agents"), "json") {
            // One that cannot be read is read, and reported, with the hooks.
            let Some(node) = cache.json(&path) else {
                continue;
            };
            for (key, kind) in [
                ("allowedTools", RuleKind::Allow),
                ("tools", RuleKind::Tools),
            ] {
                let listed = node.get(key).map(items).unwrap_or_default();
                for rule in listed.iter().filter_map(Node::as_text) {
                    let server = rule
                        .strip_prefix('@')
                        .map(|rest| rest.split('/').next().unwrap_or_default());
                    for found in servers
                        .iter()
                        .filter(|found| server == Some(found.name.as_str()))
                    {
                        let carried = if kind == RuleKind::Allow {
                            let tool = rule.split_once('/').map_or("*", |(_, tool)| tool);
                            Carried::Needless(vec![tool.to_owned()])
                        } else {
                            OF_AN_AGENT
                        };
                        rules.push(SourceRule::new(&path, key, rule, kind).about(found, carried));
                    }
                }
            }
        }
    }
}

/// Goose's rules: `permission.yaml` names tools as `extension__tool`, both for the user's decisions and for Goose's
/// own.
pub(super) fn goose(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let path = Client::Goose
        .user_location(around)
        .path
        .with_file_name("permission.yaml");
    let file = RuleFile {
        path: &path,
        project: None,
        servers,
    };
    let Some(node) = file.open(Syntax::Yaml, cache, rules) else {
        return;
    };
    // Goose writes an extension's name in lower case and without spaces.
    let key = |name: &str| {
        let shown = name.chars().filter(|c| !c.is_whitespace());
        plain_by_character(&shown.collect::<String>()).to_lowercase()
    };
    for (who, _) in node.members() {
        for (list, _) in file.members(&node, &[who], rules) {
            let kind = match list {
                "never_allow" => RuleKind::Deny,
                "ask_before" => RuleKind::Ask,
                "always_allow" => RuleKind::Allow,
                other => {
                    file.unclear(&format!("{who}.{other}"), rules);
                    continue;
                }
            };
            for rule in file.texts(&node, &[who, list], rules) {
                for found in servers {
                    let source = survey.files.get(&found.location.path);
                    let written = source
                        .and_then(|source| {
                            let path = found.location.path_of(&found.name);
                            source.text.node().at(&path)?.get("name")?.as_text()
                        })
                        .unwrap_or(&found.name);
                    let tool = [written, &found.name]
                        .into_iter()
                        .find_map(|name| goose_tool(rule, &key(name)));
                    let Some(tools) = tool.map(|tool| vec![tool]) else {
                        continue;
                    };
                    let carried = match kind {
                        RuleKind::Deny => Carried::Deny(tools),
                        RuleKind::Ask => Carried::Ask(tools),
                        _ => Carried::Needless(tools),
                    };
                    let source = file.source_rule(format!("{who}.{list}"), rule, kind);
                    rules.push(source.named(true).about(found, carried));
                }
            }
        }
    }
}

/// The tool in a rule of Goose, if it belongs to the extension whose tools begin with `start`.
fn goose_tool(rule: &str, start: &str) -> Option<String> {
    let own = rule.get(..start.len())?;
    let rest = &rule[start.len()..];
    match (own.eq_ignore_ascii_case(start), rest) {
        (true, "") => Some("*".to_owned()),
        (true, rest) => rest.strip_prefix("__").map(str::to_owned),
        (false, _) => None,
    }
}

/// Zed's profiles: a profile has all tools of servers except those that it disables, or only those that it enables. A
/// profile other than the default has no tool of mcpzip unless it has all.
pub(super) fn zed_profiles(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    rules: &mut Vec<Rule>,
) {
    let path = Client::Zed.user_location(around).path;
    let Some(source) = survey.files.get(&path) else {
        return;
    };
    let node = source.text.node();
    let file = RuleFile {
        path: &path,
        project: None,
        servers,
    };
    let default = zed_profile(node);
    for (name, profile) in file.members(node, &["agent", "profiles"], rules) {
        let key = format!("agent.profiles.{name}");
        if !matches!(profile, Node::Map(_) | Node::Null) {
            file.unclear(&key, rules);
            continue;
        }
        let has_all = match profile.get("enable_all_context_servers") {
            None | Some(Node::Null) => has_all_servers(name),
            Some(flag) => *flag == Node::Flag(true),
        };
        for found in servers {
            let presets = profile.get("context_servers").unwrap_or(&Node::Null);
            let preset = match presets {
                Node::Map(_) | Node::Null => presets.get(&found.name).unwrap_or(&Node::Null),
                other => other,
            };
            let Some(carried) = zed_preset(preset, has_all, name == default) else {
                if !has_all && name != default && presets.get(NAME).is_none() && enables(preset) {
                    let source = file.source_rule(&key, preset.to_json(), RuleKind::Allow);
                    let lost = Carried::Lost(
                        "this profile has no tools of mcpzip until it names that, too",
                    );
                    rules.push(source.named(true).about(found, lost));
                }
                continue;
            };
            let text = match preset {
                Node::Null => "enable_all_context_servers: false".to_owned(),
                preset => preset.to_json(),
            };
            let source = file.source_rule(&key, text, RuleKind::Deny);
            let is_list = *preset == Node::Null;
            let source = source.named(!is_list).permitting(is_list);
            rules.push(source.about(found, carried));
        }
    }
}

/// Whether a profile that does not have all servers has tools of one with the settings `preset`.
fn enables(preset: &Node) -> bool {
    let is_on = |flag: Option<&Node>| flag == Some(&Node::Flag(true));
    let tools = preset.get("tools").map(Node::members).unwrap_or_default();
    is_on(preset.get("enabled")) || tools.iter().any(|(_, flag)| is_on(Some(flag)))
}

/// The tools that a profile withholds from a server with the settings `preset`.
fn zed_preset(preset: &Node, has_all: bool, is_default: bool) -> Option<Carried> {
    let present = |key: &str| preset.get(key).filter(|value| **value != Node::Null);
    let (enabled, tools) = (present("enabled"), present("tools"));
    let is_form = |node: &Node| matches!(node, Node::Map(_) | Node::Null);
    let is_off = enabled.is_some_and(|flag| *flag != Node::Flag(true));
    if is_off || !is_form(preset) || !tools.is_none_or(is_form) {
        return Some(Carried::Deny(vec!["*".to_owned()]));
    }
    let tools = tools.map(Node::members).unwrap_or_default();
    // A value that is not a boolean disables the tool.
    let switched = |on: bool| -> Vec<String> {
        let those = tools
            .iter()
            .filter(|(_, flag)| (**flag == Node::Flag(true)) == on);
        those.map(|(tool, _)| (*tool).to_owned()).collect()
    };
    match has_all {
        _ if enabled.is_some() && switched(false).is_empty() => None,
        true if switched(false).is_empty() => None,
        true => Some(Carried::Deny(switched(false))),
        // A profile without mcpzip's entry has no tool of this server either.
        false if !is_default => None,
        false => Some(Carried::Only(switched(true))),
    }
}
