//! The user's approval of a project's servers. Only the user's own files count: files in the project's directory may
//! have come with it.

use std::path::Path;

use super::cache::FileCache;
use super::model::Approval;
use super::{Client, ConfigLocation, Found, Item, Known, Node, Scope, Surroundings, Verdict};

/// The approval of the server `name` at `location`; `user` is the content of the client's user file. Only Claude Code
/// keeps these decisions in files: in settings and, formerly, by project.
pub(super) fn of(
    location: &ConfigLocation,
    name: &str,
    user: Option<&Node>,
    around: &Surroundings,
    cache: &FileCache,
) -> Approval {
    if location.scope != Scope::Project {
        return Approval::Given;
    }
    if location.client != Client::ClaudeCode {
        return Approval::Missing;
    }
    let project = location.project.as_deref().unwrap_or(Path::new(""));
    let settings = |directory: &Path| {
        let files = ["settings.json", "settings.local.json"].map(|file| directory.join(file));
        let read = |path: &std::path::PathBuf| Some((path.clone(), cache.json(path)?));
        files.iter().filter_map(read).collect::<Vec<_>>()
    };
    let own = settings(&around.claude_directory());
    let theirs = settings(&project.join(".claude"));
    let user_file = location.client.user_location(around).path;
    let projects = user.and_then(|user| user.get("projects"));
    let older = projects.and_then(|projects| projects.get(&project.to_string_lossy()));
    let own: Vec<(&Path, &Node)> = own
        .iter()
        .map(|(path, node)| (path.as_path(), node))
        .chain(older.map(|node| (user_file.as_path(), node)))
        .collect();
    let has = |node: &Node, key: &str| node.get(key).map_or(Some(false), |list| list.names(name));
    let mut all = own
        .iter()
        .map(|(_, node)| *node)
        .chain(theirs.iter().map(|(_, node)| node));
    if all.any(|node| has(node, "disabledMcpjsonServers") != Some(false)) {
        return Approval::Refused;
    }
    // Claude Code may keep its decisions by the root of the repository.
    let root = around.project().unwrap_or_default();
    let is_about =
        |key: &Path| key == project || project.starts_with(key) && key.starts_with(&root);
    let mut projects = projects.map(Node::members).unwrap_or_default().into_iter();
    if projects.any(|(key, node)| {
        is_about(Path::new(key)) && has(node, "disabledMcpServers") != Some(false)
    }) {
        return Approval::Refused;
    }
    let approves = |(path, node): &(&Path, &Node)| {
        (has(node, "enabledMcpjsonServers") == Some(true)
            || node.get("enableAllProjectMcpServers") == Some(&Node::Flag(true)))
            && is_users_own(path, project, around)
    };
    if own.iter().any(approves) {
        Approval::Given
    } else {
        Approval::Missing
    }
}

/// The beginning of the note about a server without an approval.
const UNAPPROVED: &str = "no file of your own approves it";

/// Explains why a migrated server is switched off, and how to switch it on.
pub(super) fn note(found: &Found, verdict: &Verdict) -> Option<String> {
    let (Verdict::Moves {
        name,
        known: Known::New,
    }
    | Verdict::Conflicts { name }) = verdict
    else {
        return None;
    };
    let why = match found.approval {
        Approval::Given => return None,
        Approval::Missing => UNAPPROVED,
        Approval::Refused => "`disabledMcpjsonServers` of Claude Code refuses it",
    };
    Some(format!("{why}; `mcpzip enable {name}` switches it on"))
}

/// Warns that servers of projects which the user has not approved are migrated switched off.
pub(super) fn warning(items: &[Item]) -> Option<String> {
    let is_unapproved = |item: &&Item| {
        let mut notes = item.notes.iter();
        notes.any(|note| note.starts_with(UNAPPROVED))
    };
    let name = |item: &Item| match &item.verdict {
        Verdict::Moves { name, .. } | Verdict::Conflicts { name } => Some(format!("`{name}`")),
        Verdict::Stays(_) => None,
    };
    let names: Vec<String> = items
        .iter()
        .filter(is_unapproved)
        .filter_map(name)
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "no file of your own approves these servers of projects, so they come over switched off: {}; look at what each of them starts, then `mcpzip enable NAME` switches it on",
            names.join(", ")
        )
    })
}

/// Whether a file is outside of the project after links and relative names are resolved. In the home directory all
/// files are the user's.
fn is_users_own(path: &Path, project: &Path, around: &Surroundings) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path);
    let (Ok(path), Ok(project)) = (real(path), real(project)) else {
        return false;
    };
    let is_home = real(&around.home).is_ok_and(|home| home.starts_with(&project));
    is_home || !path.starts_with(&project)
}
