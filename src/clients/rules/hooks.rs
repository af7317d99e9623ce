//! Hooks of clients other than Claude Code: programs that inspect each call before it is made and may refuse it. Behind
//! the proxy they see `execute_tool` instead of the tool that it runs.

use std::path::{Path, PathBuf};

use super::super::cache::FileCache;
use super::super::model::{Found, Survey};
use super::super::{Client, Node, Platform, Surroundings, Syntax};
use super::gemini::extensions;
use super::matcher::Matcher;
use super::{
    Carried, HOOK_SEES_EXECUTE_TOOL, Rule, RuleFile, RuleKind, files, items, plain,
    plain_by_character,
};

/// The events before a call, in lower case and without `_`.
const BEFORE: &[&str] = &[
    "beforemcpexecution",
    "beforetool",
    "beforetoolselection",
    "permissionrequest",
    "premcptooluse",
    "pretooluse",
];

pub(super) fn find(
    client: Client,
    servers: &[&Found],
    survey: &Survey,
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    for (path, project) in files_with_hooks(client, survey, around) {
        let file = RuleFile {
            path: &path,
            project: project.as_deref(),
            servers,
        };
        let is_of_other = is_of_claude_code(client, &path);
        if is_of_other && FileCache::default().json(&path).is_none() {
            continue;
        }
        // The others have files of settings, of any name.
        let is_program = client == Client::Cline && path.is_file();
        if is_program {
            add(client, &file, "hooks", &Node::Null, rules);
        }
        let syntax = if path.extension().is_some_and(|ending| ending == "toml") {
            Syntax::Toml
        } else {
            Syntax::Json
        };
        let Some(node) = (!is_program)
            .then(|| file.open(syntax, cache, rules))
            .flatten()
        else {
            continue;
        };
        let named = match node.get("hooks") {
            Some(Node::List(hooks)) => hooks.iter().map(|hook| (trigger(hook), hook)).collect(),
            _ => file.members(&node, &["hooks"], rules),
        };
        let own = (trigger(&node), &node);
        for (event, hooks) in named.into_iter().chain(node.members()).chain([own]) {
            let plain = event.replace('_', "").to_lowercase();
            if BEFORE.contains(&plain.as_str()) {
                for hook in items(hooks).iter().filter(|hook| **hook != Node::Null) {
                    add(client, &file, event, hook, rules);
                }
            }
        }
    }
}

/// Whether Cursor runs the hooks of a file only if a setting, which it keeps in a database, says so.
fn is_of_claude_code(client: Client, path: &Path) -> bool {
    client == Client::Cursor && !path.ends_with("hooks.json")
}

/// The event of a hook that contains its event.
fn trigger(hook: &Node) -> &str {
    let named = hook.get("trigger").or_else(|| hook.at(&["when", "type"]));
    named.and_then(Node::as_text).unwrap_or_default()
}

/// Adds a hook to the rules of the servers whose tools it may see.
fn add(client: Client, file: &RuleFile<'_>, event: &str, hook: &Node, rules: &mut Vec<Rule>) {
    if hook.get("enabled") == Some(&Node::Flag(false)) {
        return;
    }
    let matcher = hook.get("matcher").and_then(Node::as_text).unwrap_or("*");
    let known = Matcher::new(matcher);
    let kind = match is_of_claude_code(client, file.path) {
        true => RuleKind::Tools,
        false => RuleKind::Hook,
    };
    let source = file.source_rule(format!("hooks.{event}"), matcher, kind);
    for found in file.servers.iter().filter(|found| source.reaches(found)) {
        let server = plain(&found.name);
        let starts = match client {
            Client::GeminiCli => vec![format!("mcp_{server}_"), format!("{server}__")],
            // In files of Claude Code the names are those that it uses.
            Client::Cursor => vec!["MCP:".to_owned(), format!("mcp__{server}__")],
            Client::Kiro => vec![format!("@{}/", found.name)],
            Client::Codex => vec![format!("mcp__{}__", plain_by_character(&found.name))],
            // The tool names of other clients are not known.
            _ => Vec::new(),
        };
        if starts.is_empty() || starts.iter().any(|start| known.may_begin(start)) {
            rules.push(
                source
                    .clone()
                    .about(found, Carried::Lost(HOOK_SEES_EXECUTE_TOOL)),
            );
        }
    }
}

/// The files with a client's hooks, each with its project.
fn files_with_hooks(
    client: Client,
    survey: &Survey,
    around: &Surroundings,
) -> Vec<(PathBuf, Option<PathBuf>)> {
    let own = of_user(client, around).into_iter();
    let own = own.map(|path| (path, None));
    let of_projects = survey.projects.iter().flat_map(|directory| {
        let files = of_project(client, directory).into_iter();
        files.map(|path| (path, Some(directory.clone())))
    });
    let mut found: Vec<(PathBuf, Option<PathBuf>)> = Vec::new();
    for (path, project) in own.chain(of_projects) {
        // In the home directory a project's file may be the user's own.
        if !found.iter().any(|(known, _)| *known == path) {
            found.push((path, project));
        }
    }
    found
}

/// The files with the hooks of the user and of an administrator.
fn of_user(client: Client, around: &Surroundings) -> Vec<PathBuf> {
    let user = client.user_location(around).path;
    let sibling = |file: &str| user.with_file_name(file);
    let in_home = |file: &str| around.home.join(file);
    let system = |file: &str| match around.platform {
        Platform::Linux => Path::new("/etc").join(file.to_lowercase()),
        Platform::Mac => Path::new("/Library/Application Support").join(file),
        Platform::Windows => Path::new(r"C:\ProgramData").join(file),
    };
    match client {
        Client::Cursor => {
            let own = [in_home(".cursor/hooks.json"), system("Cursor/hooks.json")];
            let of_claude_code = around.claude_directory().join("settings.json");
            own.into_iter().chain([of_claude_code]).collect()
        }
        Client::Windsurf => vec![sibling("hooks.json"), system("Windsurf/hooks.json")],
        Client::Codex => {
            let required = around.codex_requirements();
            let own = [user.clone(), sibling("hooks.json")];
            let managed = around.codex_overlays();
            own.into_iter().chain(required).chain(managed).collect()
        }
        Client::GeminiCli => {
            let [settings, _] = around.gemini_system_files();
            let extensions = extensions(around).into_iter();
            let of_extensions = extensions.map(|directory| directory.join("hooks/hooks.json"));
            [user.clone(), settings]
                .into_iter()
                .chain(of_extensions)
                .collect()
        }
        Client::Kiro => kiro(&around.home),
        Client::CopilotCli => {
            let mut own = files(&sibling("hooks"), "json");
            own.extend([sibling("settings.json"), sibling("config.json")]);
            own
        }
        Client::VsCode => files(&in_home(".copilot/hooks"), "json"),
        Client::Cline => vec![in_home("Documents/Cline/Hooks/PreToolUse")],
        // Those of Claude Code are read with its settings, those of opencode are programs. The others have none.
        Client::ClaudeCode
        | Client::ClaudeDesktop
        | Client::Zed
        | Client::OpenCode
        | Client::Roo
        | Client::Continue
        | Client::Goose
        | Client::LmStudio => Vec::new(),
    }
}

/// The files with the hooks of the project in `directory`.
fn of_project(client: Client, directory: &Path) -> Vec<PathBuf> {
    let file = |file: &str| vec![directory.join(file)];
    match client {
        // Cursor also runs those of Claude Code.
        Client::Cursor => [
            ".cursor/hooks.json",
            ".claude/settings.json",
            ".claude/settings.local.json",
        ]
        .map(|file| directory.join(file))
        .to_vec(),
        Client::Windsurf => file(".windsurf/hooks.json"),
        Client::Codex => [file(".codex/config.toml"), file(".codex/hooks.json")].concat(),
        Client::GeminiCli => file(".gemini/settings.json"),
        Client::Kiro => kiro(directory),
        Client::CopilotCli | Client::VsCode => files(&directory.join(".github/hooks"), "json"),
        Client::Cline => file(".clinerules/hooks/PreToolUse"),
        Client::ClaudeCode
        | Client::ClaudeDesktop
        | Client::Zed
        | Client::OpenCode
        | Client::Roo
        | Client::Continue
        | Client::Goose
        | Client::LmStudio => Vec::new(),
    }
}

/// The files of Kiro's hooks: separate ones and those of agents.
fn kiro(directory: &Path) -> Vec<PathBuf> {
    let hooks = directory.join(".kiro/hooks");
    [
        files(&hooks, "json"),
        files(&hooks, "hook"),
        files(&directory.join(".kiro/agents"), "json"),
    ]
    .concat()
}
