//! Servers that are in no editable list of a client, and administrators' policies about all others.

use std::path::{Path, PathBuf};

use super::cache::FileCache;
use super::model::{Fixed, Found, Invocation, Survey, Unmovable};
use super::rules::refused_access;
use super::{Client, Node, Surroundings, Syntax};

/// The servers that Claude Code does not run, and the only ones that it does.
const DENIED: &str = "deniedMcpServers";
pub(super) const ALLOWED: &str = "allowedMcpServers";

/// The only servers that Codex runs.
pub(super) const REQUIRED: &str = "mcp_servers";

const CONNECTOR: &str = "is a connector of the claude.ai account, which is set up there";
const PLUGIN: &str = "comes with a plugin, and goes with it";
const BUNDLE: &str = "is a bundle (`.mcpb`), which the client installs and starts itself";
const OLD_PLACE: &str = "is in `mcp.servers`, where old versions had it: a current VS Code moves it to `mcp.json` when it starts; run this again then";
const MANAGED: &str = "is set by an administrator (`managed-mcp.json`)";

/// The fixed servers of `clients`.
pub(super) fn find(
    survey: &Survey,
    clients: &[Client],
    around: &Surroundings,
    cache: &FileCache,
) -> Vec<Fixed> {
    let mut found = Vec::new();
    let mut add = |client: Client, path: &Path, name: &str, reason: &'static str| {
        let one = Fixed {
            client,
            path: path.to_owned(),
            name: name.to_owned(),
            reason,
        };
        if !found.contains(&one) {
            found.push(one);
        }
    };
    if clients.contains(&Client::ClaudeCode) {
        let user = Client::ClaudeCode.user_location(around).path;
        let connected = survey
            .files
            .get(&user)
            .and_then(|source| source.text.node().get("claudeAiMcpEverConnected"));
        for name in connected
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .filter_map(Node::as_text)
        {
            add(Client::ClaudeCode, &user, name, CONNECTOR);
        }
        let managed = around.managed_list();
        let staying = survey.staying.iter().filter(|found| {
            let location = &found.location;
            location.client == Client::ClaudeCode && location.project.is_none()
        });
        for found in staying {
            match managed.as_ref() == Some(&found.location.path) {
                true => add(
                    Client::ClaudeCode,
                    &found.location.path,
                    &found.name,
                    MANAGED,
                ),
                false => add(
                    Client::ClaudeCode,
                    &installed_plugins(around),
                    &found.name,
                    PLUGIN,
                ),
            }
        }
    }
    if clients.contains(&Client::VsCode) {
        let profiles = around.vs_code_profile_directories().into_iter();
        let projects = survey.projects.iter();
        let places = [around.vs_code()].into_iter().chain(profiles);
        let places = places.chain(projects.map(|project| project.join(".vscode")));
        for place in places {
            let path = place.join("settings.json");
            let settings = cache.json(&path).unwrap_or(Node::Null);
            let servers = settings.at(&["mcp", "servers"]).map(Node::members);
            for (server, _) in servers.unwrap_or_default() {
                add(Client::VsCode, &path, server, OLD_PLACE);
            }
        }
    }
    if clients.contains(&Client::ClaudeDesktop) {
        let own = Client::ClaudeDesktop.user_location(around).path;
        let bundles = own.with_file_name("Claude Extensions");
        let mut manifests: Vec<PathBuf> = std::fs::read_dir(&bundles)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join("manifest.json"))
            .collect();
        manifests.sort();
        for path in manifests {
            let Some(manifest) = cache.json(&path) else {
                continue;
            };
            let name = ["display_name", "name"]
                .iter()
                .find_map(|key| manifest.get(key)?.as_text());
            add(
                Client::ClaudeDesktop,
                &path,
                name.unwrap_or("a bundle"),
                BUNDLE,
            );
        }
    }
    found
}

/// Claude Code's list of its plugins.
pub(super) fn installed_plugins(around: &Surroundings) -> PathBuf {
    let directory = around.claude_directory();
    directory.join("plugins/installed_plugins.json")
}

/// Claude Code's plugins, each with its directory.
pub(super) fn plugins(around: &Surroundings, cache: &FileCache) -> Vec<(String, PathBuf)> {
    let installed = cache.json(&installed_plugins(around)).unwrap_or(Node::Null);
    let mut found = Vec::new();
    for (plugin, node) in installed
        .get("plugins")
        .map(Node::members)
        .unwrap_or_default()
    {
        let plugin = plugin.split('@').next().unwrap_or_default();
        let listed = match node {
            Node::List(items) => items,
            one => std::slice::from_ref(one),
        };
        let paths = listed
            .iter()
            .filter_map(|one| one.get("installPath")?.as_text());
        found.extend(paths.map(|path| (plugin.to_owned(), PathBuf::from(path))));
    }
    found
}

/// The servers that an administrator has set. If there are any, Claude Code loads no others.
pub(super) fn managed_servers(around: &Surroundings, cache: &FileCache) -> Option<(PathBuf, Node)> {
    let path = around.managed_list()?;
    let node = cache.json(&path)?;
    Some((path, node))
}

/// Why a policy keeps a server from running in its client, if one does: it must not run behind the proxy
/// either. The list of permitted servers in the file `editable` is ignored.
pub(super) fn blocked(
    found: &Found,
    around: &Surroundings,
    cache: &FileCache,
    editable: Option<&Path>,
) -> Option<Unmovable> {
    if found.location.client == Client::Codex {
        return required(found, around, cache).map(Unmovable::NotRequired);
    }
    if found.location.client == Client::VsCode {
        let profiles = Client::VsCode.other_places(around);
        let path = found.location.path.with_file_name("settings.json");
        let settings = cache
            .json(&path)
            .filter(|_| profiles.contains(&found.location));
        let (key, _) = refused_access(settings.as_ref()?)?;
        return Some(Unmovable::NotStarted { key, path });
    }
    if found.location.client != Client::ClaudeCode {
        return None;
    }
    if let Some((path, _)) = managed_servers(around, cache) {
        return Some(Unmovable::NotLoaded(path));
    }
    let own = around.claude_directory();
    let project = found
        .location
        .project
        .as_deref()
        .or(around.directory.as_deref())
        .map(|project| project.join(".claude"));
    let directories = [Some(own), project].into_iter().flatten();
    let files = directories
        .flat_map(|at| ["settings.json", "settings.local.json"].map(|file| at.join(file)));
    for path in around.managed_settings().into_iter().chain(files) {
        let Some(node) = cache.json(&path) else {
            continue;
        };
        match policy(&node, found, editable == Some(path.as_path())) {
            Some(DENIED) => return Some(Unmovable::Denied(path)),
            Some(_) => return Some(Unmovable::NotAllowed(path)),
            None => {}
        }
    }
    None
}

/// Codex's `requirements.toml`, if it has a list of the only servers that may run, without this one. A server needs an
/// entry with its name, and with its program or URL as `identity`. Matchers in their place are not read, and permit nothing.
fn required(found: &Found, around: &Surroundings, cache: &FileCache) -> Option<PathBuf> {
    let path = around.codex_requirements()?;
    let node = cache.node(&path, Syntax::Toml).ok().flatten()?;
    let list = node.get(REQUIRED)?;
    let identity = list.at(&[found.name.as_str(), "identity"]);
    let is_meant = match (identity.map(Node::members).as_deref(), &found.written) {
        (Some([("command", known)]), Invocation::Command(words)) => words.first() == Some(*known),
        (Some([("url", known)]), Invocation::Url(url)) => known.as_text() == Some(url.as_str()),
        _ => false,
    };
    (!is_meant).then_some(path)
}

/// The list in Claude Code's `settings` that keeps a server from running. The list of permitted servers is ignored if it `is_editable`.
///
/// Claude Code compares an entry as it is written. A denial is also compared with the converted entry: that is what runs
/// behind mcpzip.
pub(super) fn policy(settings: &Node, found: &Found, is_editable: bool) -> Option<&'static str> {
    let converted = found.entry.as_ref().ok();
    let converted = converted.map(|entry| entry.target.invocation());
    let forms = [Some(&found.written), converted.as_ref()];
    let is_denied = |rule: &Node| {
        let mut forms = forms.into_iter().flatten();
        forms.any(|form| is_meant(rule, &found.name, form))
    };
    let matches = |list: &Node| {
        let mut rules = list.items().iter();
        !matches!(list, Node::List(_) | Node::Null)
            || rules.any(|rule| is_denied(rule) || is_unclear(rule))
    };
    if settings.get(DENIED).is_some_and(matches) {
        return Some(DENIED);
    }
    let allowed = settings.get(ALLOWED).filter(|list| match list {
        Node::Null => false,
        Node::List(_) => !is_editable,
        _ => true,
    });
    allowed
        .is_some_and(|list| !is_permitted(list, &found.name, &found.written))
        .then_some(ALLOWED)
}

/// Whether a list of permitted servers contains a server. If the list has commands or URLs, a name alone does not
/// permit such a server.
pub(super) fn is_permitted(list: &Node, name: &str, written: &Invocation) -> bool {
    let keys: &[&str] = match written {
        Invocation::Command(_) => &["serverCommand"],
        Invocation::Url(_) => &["serverUrl"],
        Invocation::Unknown => &["serverCommand", "serverUrl"],
    };
    let rules = list.items();
    let has_one = |rule: &Node| keys.iter().any(|key| rule.get(key).is_some());
    if rules.iter().any(has_one) {
        rules.iter().any(|rule| is_meant_by_target(rule, written))
    } else {
        rules.iter().any(|rule| is_meant(rule, name, written))
    }
}

/// Whether the servers that a rule of a policy matches are unclear.
fn is_unclear(rule: &Node) -> bool {
    let is_known = |(key, value): (&str, &Node)| match key {
        "serverName" | "serverUrl" => value.as_text().is_some(),
        "serverCommand" => value.items().iter().any(|word| word.as_text().is_some()),
        _ => false,
    };
    let members = rule.members();
    members.is_empty() || !members.into_iter().all(is_known)
}

/// Whether a rule of a policy matches a server: by name, command or URL.
fn is_meant(rule: &Node, name: &str, written: &Invocation) -> bool {
    rule.get("serverName").and_then(Node::as_text) == Some(name)
        || is_meant_by_target(rule, written)
}

fn is_meant_by_target(rule: &Node, written: &Invocation) -> bool {
    match written {
        Invocation::Command(line) => {
            let words = rule.get("serverCommand").map(Node::items);
            words.is_some_and(|words| words == line)
        }
        Invocation::Url(url) => {
            let pattern = rule
                .get("serverUrl")
                .and_then(Node::as_text)
                .map(|pattern| {
                    let parts: Vec<String> = pattern.split('*').map(regex::escape).collect();
                    format!("^{}$", parts.join(".*"))
                });
            pattern.is_some_and(|pattern| {
                regex::Regex::new(&pattern).is_ok_and(|pattern| pattern.is_match(url))
            })
        }
        Invocation::Unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Choice, Launch, Plan, Platform, Verdict};
    use super::*;
    use crate::config::Environment;

    /// Codex with `servers` and Cursor with `mem`, under an administrator's `requirements`: the reasons why `gh` and `mem`
    /// stay. No other test can write to the system's directory.
    fn reasons(servers: &str, requirements: &str) -> [Option<String>; 2] {
        let home = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let path = home.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(".codex/config.toml", servers);
        write(
            ".cursor/mcp.json",
            r#"{"mcpServers": {"mem": {"command": "mem-mcp"}}}"#,
        );
        write("admin/requirements.toml", requirements);
        let around = Surroundings {
            home: home.path().to_owned(),
            platform: Platform::Linux,
            environment: Environment::default(),
            directory: None,
            managed: None,
            codex_managed: Some(home.path().join("admin")),
            claude_config: None,
        };
        let launch = Launch {
            program: "/bin/mcpzip".to_owned(),
            is_on_path: true,
            args: vec!["serve".to_owned()],
            variables: Vec::new(),
            approval: None,
            profile: None,
        };
        let survey = Survey::for_moving(&Client::ALL, &around);
        let config = home.path().join("config.json");
        let plan = Plan::new(&survey, &Choice::default(), &config, &launch, &around).unwrap();
        ["gh", "mem"].map(|name| {
            let item = plan.items.iter().find(|item| item.server == name).unwrap();
            match &item.verdict {
                Verdict::Stays(reason) => Some(reason.clone()),
                _ => None,
            }
        })
    }

    #[test]
    fn codex_runs_what_its_requirements_have_by_name_and_identity() {
        const GH: &str = "[mcp_servers.gh]\ncommand = \"gh-mcp\"\n";
        const OWN: &str = "[mcp_servers.mcpzip.identity]\ncommand = \"mcpzip\"\n";
        const RUNS: &str = "[mcp_servers.mcpzip]\ncommand = \"mcpzip\"\nargs = [\"serve\"]\n";
        let gh = "[mcp_servers.gh.identity]\ncommand = \"gh-mcp\"\n";
        let has = |reason: &Option<String>, text: &str| {
            assert!(
                reason.as_ref().is_some_and(|reason| reason.contains(text)),
                "{text}: {reason:?}"
            );
        };
        for (servers, requirements, of_gh, of_mem) in [
            (GH, "", "", ""),
            (GH, "allowed_sandbox_modes = [\"read-only\"]\n", "", ""),
            (GH, "[mcp_servers]\n", "is blocked: `mcp_servers`", ""),
            (GH, OWN, "is blocked: `mcp_servers`", ""),
            (
                GH,
                "[mcp_servers.gh.identity]\ncommand = \"other\"\n",
                "is blocked: `mcp_servers`",
                "",
            ),
            (
                "[mcp_servers.gh]\nurl = \"https://gh.example/mcp\"\n",
                gh,
                "is blocked: `mcp_servers`",
                "",
            ),
            // mcpzip would not run in its place.
            (GH, gh, "mcpzip is blocked: `mcp_servers`", ""),
            (
                &[GH, RUNS].concat(),
                &[gh, OWN].concat(),
                "",
                "Codex could call it",
            ),
            (
                GH,
                "[[hooks.PreToolUse]]\nmatcher = \"mcp__gh__.*\"\n",
                "`hooks.PreToolUse`",
                "",
            ),
            (GH, "mcp_servers = [", "are not known", "?"),
        ] {
            let reasons = reasons(servers, requirements);
            for (reason, text) in reasons.iter().zip([of_gh, of_mem]) {
                match text {
                    "" => assert_eq!(*reason, None, "{requirements}"),
                    // Another test has this.
                    "?" => {}
                    text => has(reason, text),
                }
            }
        }
    }
}
