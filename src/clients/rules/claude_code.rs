//! Claude Code's rules: in settings, hooks, agents, commands and skills of the user, of every known project and of the
//! administrator.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use regex::Regex;

use super::super::cache::FileCache;
use super::super::entry::{META_TOOLS, NAME};
use super::super::fixed::{ALLOWED, installed_plugins, plugins, policy};
use super::super::listed::listed;
use super::super::model::{Found, Survey};
use super::super::{Client, Node, Surroundings, Syntax, Text};
use super::glob::{behind, fits, is_about_all};
use super::matcher::Matcher;
use super::{Carried, HOOK_SEES_EXECUTE_TOOL, Rule, RuleFile, RuleKind, SourceRule, items, plain};

/// Maximum number of directory entries looked at to find agents, commands and skills.
const MOST_ENTRIES: usize = 20_000;

/// The fate of a rule in the front matter of one file.
const OF_ONE: Carried = Carried::Lost("holds for one agent, command or skill alone");

/// A settings file and its project. `None` if it applies to all projects.
type Settings = (PathBuf, Option<PathBuf>);

/// A rule that may be about several servers.
struct Source {
    rule: SourceRule,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A permission for tools.
    Permission,
    /// The matcher of a hook.
    Hook,
    /// A name in a list of tools.
    Listed,
}

/// Adds the rules of Claude Code about `servers`.
pub(super) fn find(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    let user = Client::ClaudeCode.user_location(around).path;
    let projects = survey
        .files
        .get(&user)
        .and_then(|source| source.text.node().get("projects"));
    let projects = projects.map(Node::members).unwrap_or_default();
    let directories = directories(&projects, survey, around);
    let mut sources = Vec::new();
    let managed = around.managed_settings().into_iter();
    let mut files: Vec<Settings> = managed.map(|path| (path, None)).collect();
    for (directory, project) in &directories {
        files.extend(
            ["settings.json", "settings.local.json"]
                .map(|file| (directory.join(file), project.clone())),
        );
        let project = project.as_deref();
        frontmatter(directory, project, servers, cache, &mut sources, rules);
    }
    of_plugins(servers, around, cache, &mut sources, rules);
    let mut settings = Vec::new();
    for (path, project) in &files {
        let file = RuleFile {
            path,
            project: project.as_deref(),
            servers,
        };
        if let Some(node) = file.open(Syntax::Json, cache, rules) {
            permissions(&node, &file, &mut sources, rules);
            hooks(&node, &file, &mut sources, rules);
            policies(&node, &file, rules);
            settings.push((file, node));
        }
    }
    unasked(&settings, survey, rules);
    for (project, node) in &projects {
        settings_of_project(project, node, &user, servers, &mut sources, rules);
    }
    for source in &sources {
        assign(source, servers, rules);
    }
}

/// The directories with settings: those of the user, of every known project and of the directories above the current
/// one.
fn directories(
    projects: &[(&str, &Node)],
    survey: &Survey,
    around: &Surroundings,
) -> Vec<Settings> {
    let own = around.claude_directory();
    let above = around.directory.iter().flat_map(|here| here.ancestors());
    let named = projects.iter().map(|(key, _)| Path::new(*key));
    let locations = above.chain(named.filter(|path| path.is_absolute()));
    let mut directories: Vec<Settings> = vec![(own.clone(), None)];
    directories.extend(
        locations
            .chain(survey.projects.iter().map(PathBuf::as_path))
            .map(|location| (location.join(".claude"), Some(location.to_owned())))
            .filter(|(at, _)| *at != own),
    );
    directories.sort();
    directories.dedup();
    directories
}

/// Adds the hooks and agents of plugins.
fn of_plugins(
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    sources: &mut Vec<Source>,
    rules: &mut Vec<Rule>,
) {
    let installed = installed_plugins(around);
    let list = RuleFile {
        path: &installed,
        project: None,
        servers,
    };
    // The hooks of those that a list which is not understood names are not known.
    if let Some(node) = list.open(Syntax::Json, cache, rules) {
        let named = list.members(&node, &["plugins"], rules).into_iter();
        let mut copies = named.flat_map(|(_, copies)| items(copies));
        if copies.any(|copy| copy.get("installPath").and_then(Node::as_text).is_none()) {
            list.unclear("plugins", rules);
        }
    }
    for (_, directory) in plugins(around, cache) {
        frontmatter(&directory, None, servers, cache, sources, rules);
        let usual = RuleFile {
            path: &directory.join("hooks/hooks.json"),
            ..list
        };
        if let Some(node) = usual.open(Syntax::Json, cache, rules) {
            hooks(&node, &usual, sources, rules);
        }
        let manifest = RuleFile {
            path: &directory.join(".claude-plugin/plugin.json"),
            ..list
        };
        let node = manifest.open(Syntax::Json, cache, rules);
        let named = node.as_ref().and_then(|node| node.get("hooks"));
        for named in named.map(items).unwrap_or_default() {
            match named {
                Node::Null => {}
                Node::Map(_) if matches!(named.get("hooks"), Some(Node::Map(_))) => {
                    hooks(named, &manifest, sources, rules);
                }
                Node::Map(_) => {
                    let node = Node::map([("hooks", named.clone())]);
                    hooks(&node, &manifest, sources, rules);
                }
                Node::Text(path) => {
                    let path = path.replace("${CLAUDE_PLUGIN_ROOT}", ".");
                    let path = directory.join(path.trim_start_matches("./"));
                    let file = RuleFile {
                        path: &path,
                        ..list
                    };
                    if path != usual.path {
                        named_hooks(&file, cache, sources, rules);
                    }
                }
                _ => manifest.unclear("hooks", rules),
            }
        }
    }
}

/// Adds the hooks of a file that the manifest of a plugin names. Without them, the hooks of the plugin are not known.
fn named_hooks(
    file: &RuleFile<'_>,
    cache: &FileCache,
    sources: &mut Vec<Source>,
    rules: &mut Vec<Rule>,
) {
    match cache.node(file.path, Syntax::Json) {
        Ok(Some(node)) if matches!(node.get("hooks"), Some(Node::Map(_))) => {
            hooks(&node, file, sources, rules);
        }
        Ok(Some(Node::Map(members))) if members.iter().all(|(_, it)| it.as_text().is_some()) => {}
        Ok(Some(_)) => file.unread("has no hooks that are understood", rules),
        Ok(None) => file.unread("is not there", rules),
        Err(problem) => file.unread(problem.predicate(), rules),
    }
}

/// Adds the allowed tools and the disabled servers that the `user` file has for a project.
fn settings_of_project(
    project: &str,
    node: &Node,
    user: &Path,
    servers: &[&Found],
    sources: &mut Vec<Source>,
    rules: &mut Vec<Rule>,
) {
    let allowed = node.get("allowedTools").map(Node::items);
    let allowed = allowed.unwrap_or_default().iter().filter_map(Node::as_text);
    for tool in allowed.filter(|tool| tool.contains("mcp__")) {
        let key = format!("projects.{project}.allowedTools");
        let rule = SourceRule {
            project: Some(project.into()),
            ..SourceRule::new(user, key, tool, RuleKind::Allow)
        };
        let form = Form::Listed;
        sources.push(Source { rule, form });
    }
    // A server of this project is already read as disabled; that of a directory above it also runs elsewhere.
    let project_path = Path::new(project);
    let is_elsewhere = |own: &Path| own != project_path && project_path.starts_with(own);
    let elsewhere: Vec<&Found> = servers
        .iter()
        .copied()
        .filter(|found| found.location.project.as_deref().is_none_or(is_elsewhere))
        .collect();
    let file = RuleFile {
        path: user,
        project: Some(Path::new(project)).filter(|path| path.is_absolute()),
        servers: &elsewhere,
    };
    let off = file.texts(node, &["disabledMcpServers"], rules);
    let is_known = Path::new(project).is_absolute();
    for found in elsewhere
        .iter()
        .filter(|found| off.contains(&found.name.as_str()))
    {
        let key = format!("projects.{project}.disabledMcpServers");
        let (text, kind, carried) = match is_known {
            true => (
                found.name.clone(),
                RuleKind::Deny,
                Carried::NotIn(project.into()),
            ),
            false => (
                format!("has `{key}`, which is not the path of a directory"),
                RuleKind::Unread,
                Carried::Lost("its project is not known"),
            ),
        };
        let source = SourceRule::new(user, key, text, kind).named(true);
        rules.push(source.about(found, carried));
    }
}

/// Hides the user's servers in a project whose settings keep them from running. Policies of the user, of an administrator and of the
/// current project already keep their servers in the client.
fn policies(node: &Node, file: &RuleFile<'_>, rules: &mut Vec<Rule>) {
    let Some(project) = file.project else { return };
    let for_all = file.servers.iter();
    for found in for_all.filter(|found| found.location.project.is_none()) {
        if let Some(key) = policy(node, found, false) {
            let text = node.get(key).map(Node::to_json).unwrap_or_default();
            let source = file.source_rule(key, text, RuleKind::Deny);
            let source = source.permitting(key == ALLOWED);
            rules.push(source.about(found, Carried::NotIn(project.to_owned())));
        }
    }
}

/// Adds a rule for each server that `source` concerns.
fn assign(source: &Source, servers: &[&Found], rules: &mut Vec<Rule>) {
    let rule = &source.rule;
    let matcher = (source.form == Form::Hook).then(|| Matcher::new(&rule.text));
    for found in servers.iter().filter(|found| rule.reaches(found)) {
        let tools = match &matcher {
            Some(matcher) if matcher.may_fit(&found.name) => vec!["*".to_owned()],
            Some(_) => Vec::new(),
            None if is_unclear(source) => vec!["*".to_owned()],
            None => tools_of(&rule.text, &found.name),
        };
        if !tools.is_empty() {
            let is_named = !is_unclear(source) && names(&rule.text, &found.name);
            let rule = rule.clone().named(is_named);
            rules.push(rule.about(found, carried(source, tools)));
        }
    }
}

/// Whether a rule or matcher has the name of the server, and no pattern or other name in its place.
fn names(rule: &str, server: &str) -> bool {
    let rule = name_of(rule).trim_start_matches('^');
    let rest = rule.strip_prefix(&format!("mcp__{}", plain(server)));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("__")) && !rule.contains('|')
}

/// Whether a deny or ask rule is not understood. Such a rule may concern any server.
fn is_unclear(source: &Source) -> bool {
    let (form, source) = (source.form, &source.rule);
    let rule = source.text.as_str();
    let name = name_of(rule);
    let is_plain = |c: char| c.is_alphanumeric() || "_-.*?$^+:/@ ".contains(c);
    let has_end = name.len() == rule.len() || rule.ends_with(')');
    let is_named = name.contains("mcp__") && name != "mcp__" || name.contains('*');
    form == Form::Permission
        && source.kind != RuleKind::Allow
        && !(has_end && is_named && name.chars().all(is_plain))
}

fn carried(source: &Source, tools: Vec<String>) -> Carried {
    let is_permission = source.form == Form::Permission;
    match source.rule.kind {
        RuleKind::Allow => Carried::Needless(tools),
        _ if is_unclear(source) => Carried::Lost("is not understood"),
        // A question is asked with any parameters.
        RuleKind::Deny if is_permission && source.rule.text.contains('(') => {
            Carried::Lost("looks at parameters, which are not carried over")
        }
        RuleKind::Deny if is_permission => Carried::Deny(tools),
        RuleKind::Ask if is_permission => Carried::Ask(tools),
        RuleKind::Hook => Carried::Lost(HOOK_SEES_EXECUTE_TOOL),
        RuleKind::Tools if source.form == Form::Hook => Carried::Lost(HOOK_SEES_EXECUTE_TOOL),
        _ => OF_ONE,
    }
}

fn permissions(node: &Node, file: &RuleFile<'_>, sources: &mut Vec<Source>, rules: &mut Vec<Rule>) {
    for (key, kind) in [
        ("deny", RuleKind::Deny),
        ("ask", RuleKind::Ask),
        ("allow", RuleKind::Allow),
    ] {
        let keys = ["permissions", key];
        let listed = match kind {
            RuleKind::Allow => node.at(&keys).map(items).unwrap_or_default(),
            _ => &file
                .texts(node, &keys, rules)
                .into_iter()
                .map(Node::text)
                .collect::<Vec<_>>(),
        };
        let listed = listed.iter().filter_map(Node::as_text).map(str::trim);
        for rule in listed.filter(|rule| rule.contains("mcp__") || name_of(rule).contains('*')) {
            let rule = file.source_rule(keys.join("."), rule, kind);
            let form = Form::Permission;
            sources.push(Source { rule, form });
        }
    }
}

fn hooks(node: &Node, file: &RuleFile<'_>, sources: &mut Vec<Source>, rules: &mut Vec<Rule>) {
    for (event, hooks) in file.members(node, &["hooks"], rules) {
        // Only hooks that run before a call can prevent it.
        let is_before = matches!(event, "PreToolUse" | "PermissionRequest");
        let kind = if is_before {
            RuleKind::Hook
        } else {
            RuleKind::Tools
        };
        // A hook without a matcher concerns every tool.
        let hooks = items(hooks).iter().filter(|hook| **hook != Node::Null);
        let matchers = hooks.map(|hook| {
            let matcher = hook.get("matcher").and_then(Node::as_text);
            matcher.filter(|matcher| !matcher.is_empty()).unwrap_or("*")
        });
        for matcher in matchers.filter(|matcher| is_before || matcher.contains("mcp__")) {
            let rule = file.source_rule(format!("hooks.{event}"), matcher, kind);
            let form = Form::Hook;
            sources.push(Source { rule, form });
        }
    }
}

/// Reads the front matter of agents, commands and skills: lists of tools, servers of an agent, and hooks.
fn frontmatter(
    directory: &Path,
    project: Option<&Path>,
    servers: &[&Found],
    cache: &FileCache,
    sources: &mut Vec<Source>,
    rules: &mut Vec<Rule>,
) {
    let mut files = Vec::new();
    // The directory of a skill has many other files in it and below it.
    markdown(&directory.join("skills"), 1, &mut files);
    files.retain(|path| {
        let is_other = path.extension().is_some_and(|end| end == "md");
        !is_other || path.ends_with("SKILL.md")
    });
    for folder in ["agents", "commands"] {
        markdown(&directory.join(folder), usize::MAX, &mut files);
    }
    for path in files {
        let file = RuleFile {
            path: &path,
            project,
            servers,
        };
        let Some(text) = file.text(cache, rules) else {
            continue;
        };
        for (key, node) in head(&text).map(parts).unwrap_or_default() {
            let kind = match key.as_str() {
                "hooks" => {
                    hooks(&Node::map([("hooks", node)]), &file, sources, rules);
                    continue;
                }
                "mcpServers" => {
                    servers_of_agent(&node, &file, rules);
                    continue;
                }
                "disallowedTools" | "disallowed-tools" => RuleKind::Deny,
                "tools" | "allowed-tools" => RuleKind::Tools,
                _ => continue,
            };
            let is_word = |c: char| c.is_ascii_alphanumeric() || "_-*".contains(c);
            let written = node.to_json();
            let words = written.split(|c: char| !is_word(c));
            for name in words.filter(|word| word.starts_with("mcp__")) {
                let (rule, form) = (file.source_rule(&key, name, kind), Form::Listed);
                sources.push(Source { rule, form });
            }
        }
    }
}

/// Adds a rule for each server that an agent uses by its name. It has others in its own file.
fn servers_of_agent(node: &Node, file: &RuleFile<'_>, rules: &mut Vec<Rule>) {
    let listed: Vec<&str> = items(node).iter().filter_map(Node::as_text).collect();
    for found in file.servers {
        let source = file.source_rule("mcpServers", &found.name, RuleKind::Tools);
        if listed.contains(&found.name.as_str()) && source.reaches(found) {
            rules.push(source.named(true).about(found, OF_ONE));
        }
    }
}

/// The values of a front matter by their keys. Many descriptions are not YAML, so where the whole is none, each key is read apart. A value
/// that is not YAML is a text.
pub(super) fn parts(head: &str) -> Vec<(String, Node)> {
    let parsed = |text: &str| {
        let text = Text::parse(Syntax::Yaml, text).ok()?;
        let members = text.node().members().into_iter();
        let members = members.map(|(key, value)| (key.to_owned(), value.clone()));
        matches!(text.node(), Node::Map(_)).then(|| members.collect::<Vec<_>>())
    };
    if let Some(members) = parsed(head) {
        return members;
    }
    let mut blocks: Vec<String> = Vec::new();
    for line in head.lines() {
        let is_key = line.contains(':') && !line.starts_with([' ', '-', '\t', '#']);
        match blocks.last_mut() {
            Some(block) if !is_key => *block += &format!("\n{line}"),
            _ => blocks.push(line.to_owned()),
        }
    }
    let part = |block: &String| {
        parsed(block).unwrap_or_else(|| {
            let (key, value) = block.split_once(':').unwrap_or(("hooks", block));
            let key = key.trim_matches([' ', '"', '\'', '{']);
            vec![(key.to_owned(), Node::text(value.trim()))]
        })
    };
    blocks.retain(|block| !block.trim().is_empty());
    blocks.iter().flat_map(part).collect()
}

/// The front matter of a Markdown file, between lines of `---`.
pub(super) fn head(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches('\u{feff}').strip_prefix("---")?;
    rest.split("\n---").next()
}

/// Collects the Markdown files below `directory`, down to a depth, each directory once, as links may form cycles. One that cannot be listed
/// is among the files, see [`listed`]; so is one with more than [`MOST_ENTRIES`] entries, as its rules are then not known.
pub(super) fn markdown(directory: &Path, deepest: usize, files: &mut Vec<PathBuf>) {
    let root = directory;
    let mut directories = VecDeque::from([(directory.to_owned(), 0)]);
    let (mut seen, mut left) = (BTreeSet::new(), MOST_ENTRIES);
    while let Some((directory, depth)) = directories.pop_front() {
        if !seen.insert(std::fs::canonicalize(&directory).unwrap_or(directory.clone())) {
            continue;
        }
        let entries = listed(&directory, left);
        left -= entries.len();
        for path in entries {
            if path == directory {
                files.push(path);
            } else if path.is_dir() {
                directories.extend((depth < deepest).then_some((path, depth + 1)));
            } else if path.extension().is_some_and(|end| end == "md") {
                files.push(path);
            }
        }
        if left == 0 {
            files.push(root.to_owned());
            break;
        }
    }
}

/// Why Claude Code refuses the tools of mcpzip, here named `name`, by settings that apply in every project.
pub(in super::super) fn refusal(
    name: &str,
    around: &Surroundings,
    cache: &FileCache,
) -> Option<String> {
    let own = around.claude_directory();
    let own = ["settings.json", "settings.local.json"].map(|file| own.join(file));
    let files = own.into_iter().chain(around.managed_settings());
    let files: Vec<(PathBuf, Node)> = files
        .filter_map(|path| Some((path.clone(), cache.json(&path)?)))
        .collect();
    let denied = files.iter().find_map(|(path, settings)| {
        let rule = is_hidden(settings, name)?;
        let path = path.display();
        let server = format!("mcp__{}", plain(name));
        let way = match is_about_all(&rule, |server| format!("mcp__{server}__")) {
            true => {
                "; deny the servers one by one in its place (`mcp__SERVER`), and mcpzip withholds these"
            }
            false if rule.starts_with(&server) => "",
            false => "; name the servers in its place",
        };
        Some(format!(
            "`permissions.deny` in {path} has `{rule}`, which keeps the tools of mcpzip from being used, too{way}"
        ))
    });
    denied.or_else(|| {
        let (path, _) = files.iter().find(|(_, settings)| asks_never(settings))?;
        let allowed = files.iter().flat_map(|(_, settings)| allowed(settings));
        let allowed: Vec<String> = allowed.flat_map(|rule| allowed_tools(rule, name)).collect();
        let is_free = META_TOOLS
            .iter()
            .all(|tool| allowed.iter().any(|pattern| fits(pattern, tool)));
        let (path, server) = (path.display(), plain(name));
        (!is_free).then(|| {
            format!(
                "`permissions.defaultMode` in {path} is `dontAsk`, which refuses the tools of mcpzip, too; `mcp__{server}` in \
                 `permissions.allow` permits them, and mcpzip permits the tools of each server that this list has"
            )
        })
    })
}

/// The denial that keeps the tools of mcpzip, here named `name`, from being used.
fn is_hidden(settings: &Node, name: &str) -> Option<String> {
    let own = format!("mcp__{}", plain(name));
    let denied = settings.at(&["permissions", "deny"]).map(items);
    let denied = denied.unwrap_or_default().iter().filter_map(Node::as_text);
    let mut denied = denied.map(str::trim).filter(|rule| !rule.contains('('));
    let rule = denied.find(|rule| {
        let mut tools = META_TOOLS.iter().map(|tool| format!("{own}__{tool}"));
        *rule == own || tools.any(|tool| fits(rule, &tool))
    });
    rule.map(str::to_owned)
}

/// Whether settings refuse every tool that no rule permits.
fn asks_never(settings: &Node) -> bool {
    let mode = settings.at(&["permissions", "defaultMode"]);
    mode.and_then(Node::as_text) == Some("dontAsk")
}

/// The permissions of settings that have no parameters.
fn allowed(settings: &Node) -> impl Iterator<Item = &str> {
    let allowed = settings.at(&["permissions", "allow"]).map(items);
    let allowed = allowed.unwrap_or_default().iter().filter_map(Node::as_text);
    allowed.map(str::trim).filter(|rule| !rule.contains('('))
}

/// The tools of `server` that a permission concerns, as patterns.
fn allowed_tools(rule: &str, server: &str) -> Vec<String> {
    match is_about_all(rule, |server| format!("mcp__{server}__")) {
        true => vec!["*".to_owned()],
        false => tools_of(rule, server),
    }
}

/// Adds a rule for each server of whose tools settings refuse all that no rule permits. The settings of a project hold there for the tools of
/// mcpzip as well, unless they permit these.
fn unasked(settings: &[(RuleFile<'_>, Node)], survey: &Survey, rules: &mut Vec<Rule>) {
    let own = survey
        .found
        .iter()
        .filter(|found| found.is_mcpzip && found.location.client == Client::ClaudeCode);
    let names: Vec<&str> = own.map(|found| found.name.as_str()).chain([NAME]).collect();
    for (file, _) in settings.iter().filter(|(_, node)| asks_never(node)) {
        let counts =
            |other: &RuleFile<'_>| other.project.is_none() || other.project == file.project;
        let permitted = settings.iter().filter(|(other, _)| counts(other));
        let permitted: Vec<&str> = permitted.flat_map(|(_, node)| allowed(node)).collect();
        let tools = |server: &str| -> Vec<String> {
            let tools = permitted
                .iter()
                .flat_map(|rule| allowed_tools(rule, server));
            tools.collect()
        };
        let is_open = names.iter().any(|name| !tools(name).is_empty());
        if file.project.is_some() && !is_open {
            continue;
        }
        let key = "permissions.defaultMode";
        let source = file
            .source_rule(key, "dontAsk", RuleKind::Deny)
            .permitting(true);
        for found in file.servers.iter().filter(|found| source.reaches(found)) {
            let tools = tools(&found.name);
            if tools.iter().any(|tool| tool == "*") {
                continue;
            }
            let carried = match file.project {
                Some(_) => file.switched_off(),
                None => Carried::Only(tools),
            };
            rules.push(source.clone().about(found, carried));
        }
    }
}

/// The pattern of names in a rule, without its parameters.
fn name_of(rule: &str) -> &str {
    rule.split('(').next().unwrap_or_default()
}

/// The tools of `server` that a rule concerns, as patterns.
fn tools_of(rule: &str, server: &str) -> Vec<String> {
    if let Some(tool) = tool_of(rule, server) {
        return vec![tool];
    }
    let prefix = |server: &str| format!("mcp__{server}__");
    let name = name_of(rule);
    if is_about_all(name, prefix) {
        return Vec::new();
    }
    behind(name, &prefix(&plain(server)))
}

/// The tools of `server` that a rule with its name, or with a pattern of it, concerns. `None` for a rule about all
/// servers that names no tool, because it still applies behind the proxy.
fn tool_of(rule: &str, server: &str) -> Option<String> {
    let known = plain(server);
    let (_, rest) = rule.split_once("mcp__")?;
    let rest = rest
        .split('(')
        .next()
        .unwrap_or_default()
        .trim_end_matches(['$', ')']);
    let all = || "*".to_owned();
    let tool_pattern = |tool: &str| {
        if tool.is_empty() {
            all()
        } else {
            tool.replace(".*", "*")
        }
    };
    if rest == known {
        return Some(all());
    }
    if let Some(tool) = rest
        .strip_prefix(known.as_str())
        .and_then(|rest| rest.strip_prefix("__"))
    {
        return Some(tool_pattern(tool));
    }
    let (written, tool) = rest.split_once("__").unwrap_or((rest, ""));
    let is_any = |text: &str| matches!(text, "" | "*" | ".*" | ".+");
    if is_any(written) {
        return (!is_any(tool)).then(|| tool_pattern(tool));
    }
    let pattern = if written.contains(".*") {
        written.to_owned()
    } else {
        written.replace('*', ".*")
    };
    let is_match =
        Regex::new(&format!("^(?:{pattern})$")).is_ok_and(|pattern| pattern.is_match(&known));
    is_match.then(|| tool_pattern(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_about_a_server_and_some_of_its_tools() {
        for (rule, server, tools) in [
            ("mcp__github", "github", Some("*")),
            ("mcp__github__*", "github", Some("*")),
            ("mcp__github__delete_repo", "github", Some("delete_repo")),
            ("mcp__github__delete_*", "github", Some("delete_*")),
            ("mcp__github__get.*", "github", Some("get*")),
            ("mcp__my_server__x", "my server", Some("x")),
            ("mcp__a__b__c", "a__b", Some("c")),
            ("mcp__emoji____t3", "emoji😀", Some("t3")),
            ("mcp__caf___t3", "café", Some("t3")),
            ("mcp__git*__x", "github", Some("x")),
            ("mcp__git*", "github", Some("*")),
            ("mcp__*__delete_*", "github", Some("delete_*")),
            ("mcp__*", "github", None),
            ("mcp__*__*", "github", None),
            ("mcp__gitlab__x", "github", None),
            ("mcp__githubber", "github", None),
            ("Bash(rm *)", "github", None),
        ] {
            assert_eq!(tool_of(rule, server).as_deref(), tools, "{rule} {server}");
        }
    }

    /// Reads the files of a home, which is the directory of an administrator's settings, too.
    fn survey(home: &Path) -> Survey {
        let around = Surroundings {
            home: home.to_owned(),
            platform: super::super::super::Platform::Linux,
            environment: crate::config::Environment::default(),
            directory: None,
            managed: Some(home.to_owned()),
            codex_managed: None,
            claude_config: None,
        };
        Survey::of(&[Client::ClaudeCode], &around)
    }

    #[cfg(unix)]
    #[test]
    fn an_administrators_directory_that_cannot_be_listed_is_not_empty() {
        let home = tempfile::tempdir().unwrap();
        let servers = r#"{"mcpServers": {"git": {"command": "x"}}}"#;
        std::fs::write(home.path().join(".claude.json"), servers).unwrap();
        let parts = home.path().join("managed-settings.d");
        std::os::unix::fs::symlink(&parts, &parts).unwrap();
        let survey = survey(home.path());
        assert!(survey.rules.iter().any(Rule::is_unknown), "{survey:?}");
        assert_eq!(survey.unreadable[0].0, parts);
    }

    #[test]
    fn an_administrators_list_of_servers_that_cannot_be_read_keeps_all_others() {
        let home = tempfile::tempdir().unwrap();
        let servers = r#"{"mcpServers": {"git": {"command": "x"}}}"#;
        std::fs::write(home.path().join(".claude.json"), servers).unwrap();
        let list = home.path().join("managed-mcp.json");
        std::fs::write(&list, "{").unwrap();
        let survey = survey(home.path());
        assert!(survey.rules.iter().any(Rule::is_unknown), "{survey:?}");
        assert_eq!(survey.unreadable[0].0, list);
    }

    #[test]
    fn what_an_administrator_denies_is_carried_over() {
        let home = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| std::fs::write(home.path().join(file), text).unwrap();
        write(
            ".claude.json",
            r#"{"mcpServers": {"git": {"command": "x"}}}"#,
        );
        write(
            "managed-settings.json",
            r#"{"permissions": {"deny": ["mcp__git__push"]}}"#,
        );
        std::fs::create_dir(home.path().join("managed-settings.d")).unwrap();
        write(
            "managed-settings.d/10-more.json",
            r#"{"permissions": {"deny": ["mcp__git__rm"]}}"#,
        );
        write(
            "managed-settings.d/notes.txt",
            r#"{"permissions": {"deny": ["mcp__git__x"]}}"#,
        );
        let survey = survey(home.path());
        let denied: Vec<_> = survey.rules.iter().map(|rule| &rule.carried).collect();
        let deny = |tool: &str| Carried::Deny(vec![tool.to_owned()]);
        assert_eq!(denied, [&deny("push"), &deny("rm")]);
    }
}
