//! Checks whether a client would start mcpzip: a client's lists of permitted and excluded servers apply to our entry,
//! too. Servers that moved behind an entry that does not start would be lost.

use std::path::Path;

use super::cache::FileCache;
use super::rules::{
    SERVER_LISTS, gemini_switches, is_disabled_at_gemini, is_hidden_at_continue,
    is_hidden_at_cursor, is_hidden_at_gemini, is_hidden_at_opencode, refusal_of_claude_code,
    refused_access, zed_permits,
};
use super::{
    Client, Found, Launch, Node, Scope, Surroundings, Survey, Text, allowed, entry, fixed,
};

/// Why `client` would not start our entry or not show its tools. It checks the existing entry, or else the
/// one that would be written.
#[must_use]
pub(crate) fn barrier(
    client: Client,
    survey: &Survey,
    launch: &Launch,
    around: &Surroundings,
) -> Option<String> {
    let location = client.user_location(around);
    if let Some((path, problem)) = survey
        .unreadable
        .iter()
        .find(|(path, _)| *path == location.path)
    {
        return Some(format!("{} {}", path.display(), problem.predicate()));
    }
    let known = survey.found.iter().filter(|found| {
        found.is_mcpzip && found.location.client == client && found.scope() == Scope::User
    });
    let known: Vec<&Found> = known.collect();
    if !known.is_empty() && known.iter().all(|found| found.is_off) {
        let (name, path) = (&known[0].name, known[0].location.path.display());
        return Some(format!(
            "`{name}`, which is mcpzip, is switched off in {path}"
        ));
    }
    let own = own_entry(client, survey, launch, around)?;
    let cache = FileCache::default();
    let settings = survey
        .files
        .get(&location.path)
        .map(|source| source.text.node());
    match client {
        Client::ClaudeCode => fixed::blocked(&own, around, &cache, Some(&allowed::file(around)))
            .map(|reason| format!("mcpzip {reason}; it has to permit `{}`", own.name))
            .or_else(|| refusal_of_claude_code(&own.name, around, &cache)),
        Client::Codex => fixed::blocked(&own, around, &cache, None).map(|reason| format!("mcpzip {reason}")),
        Client::Cursor => {
            around.cursor_permissions().into_iter().find_map(|path| {
                let pattern = is_hidden_at_cursor(cache.json(&path)?.get("permissions")?, &own.name)?;
                Some(denied(&pattern, &path))
            })
        }
        Client::GeminiCli if is_disabled_at_gemini(&own.name, around, &cache) => Some(format!(
            "`{}` is switched off in {}",
            own.name,
            gemini_switches(around).display()
        )),
        Client::GeminiCli => {
            let system = around.gemini_system_files();
            let system = system
                .iter()
                .filter_map(|path| Some((path.as_path(), cache.json(path)?)));
            let own_file = settings.map(|node| (location.path.as_path(), node.clone()));
            own_file
                .into_iter()
                .chain(system)
                .find_map(|(path, node)| gemini(&own.name, path, &node, path == location.path))
                .or_else(|| {
                    let (path, rule) = is_hidden_at_gemini(&own.name, around, &cache)?;
                    Some(withheld(&rule, &path))
                })
        }
        Client::CopilotCli => {
            let path = location.path.with_file_name("settings.json");
            let off = cache.json(&path)?;
            let is_off = has(off.get("disabledMcpServers"), &own.name);
            is_off.then(|| {
                format!(
                    "`disabledMcpServers` in {} has `{}`",
                    path.display(),
                    own.name
                )
            })
        }
        Client::OpenCode => {
            let pattern = is_hidden_at_opencode(&own.name, survey, around, &cache)?;
            Some(format!(
                "{pattern} keeps the tools of mcpzip from being used, too; a later `\"{}_*\": \"allow\"` permits them",
                own.name
            ))
        }
        Client::Continue => {
            let (path, rule) = is_hidden_at_continue(&own.name, around, &cache)?;
            Some(withheld(&rule, &path))
        }
        Client::VsCode => {
            let path = location.path.with_file_name("settings.json");
            let (key, value) = refused_access(&cache.json(&path)?)?;
            Some(format!(
                "`{key}` in {} is {value}, so VS Code does not start mcpzip",
                path.display()
            ))
        }
        Client::Zed => zed(settings?, &own.name).map(|value| {
            format!(
                "`agent.tool_permissions.default` in {} is {value}, which refuses the tools of mcpzip, too; `\"mcp:{}:execute_tool\": \
                 {{\"default\": \"confirm\"}}` in its `tools`, and the other two, permit them",
                location.path.display(),
                own.name
            )
        }),
        // These clients have no known settings that would keep mcpzip out.
        Client::ClaudeDesktop
        | Client::Windsurf
        | Client::Cline
        | Client::Roo
        | Client::Goose
        | Client::Kiro
        | Client::LmStudio => None,
    }
}

/// A rule in a file of its own that is about mcpzip, too.
fn withheld(rule: &str, path: &Path) -> String {
    format!(
        "{} has `{rule}`, which keeps the tools of mcpzip from being used, too; name the servers in its place",
        path.display()
    )
}

/// A denial in a file of permissions that is about mcpzip, too.
fn denied(pattern: &str, path: &Path) -> String {
    format!(
        "`permissions.deny` in {} has `{pattern}`, which keeps the tools of mcpzip from being used, too",
        path.display()
    )
}

/// Gemini CLI: its lists of servers. Our entry is added to those of permitted ones if the file is the user's own.
fn gemini(name: &str, path: &Path, settings: &Node, is_own: bool) -> Option<String> {
    SERVER_LISTS.iter().find_map(|list| {
        let node = settings.at(list.keys)?;
        // Our entry comes into a list, and into no other form.
        let is_editable =
            is_own && entry::GEMINI_ALLOWED.contains(&list.keys) && matches!(node, Node::List(_));
        let is_out = !is_editable && list.keeps_out(node, name);
        let (key, path) = (list.keys.join("."), path.display());
        is_out.then(|| format!("`{key}` in {path} {}", list.says(name)))
    })
}

/// Zed's default for tools if it refuses those of the server `name`, which may be permitted one by one.
fn zed(settings: &Node, name: &str) -> Option<String> {
    let permissions = settings.at(&["agent", "tool_permissions"])?;
    let default = permissions.get("default")?;
    let is_permitted = |tool: &&str| {
        let key = format!("mcp:{name}:{tool}");
        let own = permissions.at(&["tools", key.as_str()]);
        own.is_some_and(|own| own.get("default").is_some_and(zed_permits))
    };
    let is_open = *default == Node::Null || zed_permits(default);
    let refuses = !is_open && !entry::META_TOOLS.iter().all(is_permitted);
    refuses.then(|| default.to_json())
}

/// Whether a list has `name`, or is not understood.
fn has(list: Option<&Node>, name: &str) -> bool {
    list.is_some_and(|list| list.names(name) != Some(false))
}

/// Our entry in the user's file of `client`: the existing one, or else the one that would be written.
pub(super) fn own_entry(
    client: Client,
    survey: &Survey,
    launch: &Launch,
    around: &Surroundings,
) -> Option<Found> {
    let known = survey.found.iter().find(|found| {
        found.is_mcpzip
            && found.location.client == client
            && found.scope() == Scope::User
            && !found.is_off
    });
    Some(match known {
        Some(found) => found.clone(),
        None => {
            let location = client.user_location(around);
            let mut text = Text::parse(location.syntax, "").ok()?;
            entry::write(&mut text, &location, entry::NAME, launch).ok()?;
            let node = text.node().at(&location.path_of(entry::NAME))?;
            Found::read(location, entry::NAME, node)
        }
    })
}
