//! The servers that `agent mcp disable` of Cursor's command line agent switched off: a list for each project, in
//! `~/.cursor/projects`. The name of the project's directory there is short for its path.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::super::cache::FileCache;
use super::super::listed::listed;
use super::super::model::{Found, Survey};
use super::super::{Client, Node, Surroundings};
use super::{Carried, Rule, RuleFile, RuleKind};

/// The length of a short name; a longer one is cut off, and a hash follows.
const LONGEST: usize = 84;

/// A list of servers that are off in a project.
struct List {
    path: PathBuf,
    /// The projects that it may be for; none if that is not known.
    projects: Vec<PathBuf>,
}

pub(super) fn find(
    survey: &Survey,
    servers: &[&Found],
    around: &Surroundings,
    cache: &FileCache,
    rules: &mut Vec<Rule>,
) {
    // Cursor's own server of one project is approved in no file, so it comes over disabled, or merges with an equal one that is there already.
    let comes_over =
        |found: &Found| found.location.client == Client::Cursor && found.location.project.is_some();
    let servers = servers.iter().copied();
    let servers: Vec<&Found> = servers.filter(|found| !comes_over(found)).collect();
    for list in lists(&survey.projects, around, cache) {
        let projects = list.projects.iter().map(|project| Some(project.as_path()));
        let none = list.projects.is_empty().then_some(None);
        for project in projects.chain(none) {
            let file = RuleFile {
                path: &list.path,
                project,
                servers: &servers,
            };
            let node = match read(&list.path, cache) {
                Ok(node) => node,
                Err(problem) => {
                    file.unread(problem, rules);
                    continue;
                }
            };
            for found in servers.iter().filter(|found| has(&node, &found.name)) {
                let name = &found.name;
                let (text, kind, carried) = match project {
                    Some(project) => (
                        name.clone(),
                        RuleKind::Deny,
                        Carried::NotIn(project.to_owned()),
                    ),
                    None => (
                        format!("switches `{name}` off in a project, and which one is not known"),
                        RuleKind::Unread,
                        Carried::Lost("its project is not known"),
                    ),
                };
                let source = file.source_rule("disabled", text, kind).named(true);
                if source.reaches(found) {
                    rules.push(source.about(found, carried));
                }
            }
        }
    }
}

/// The content of an existing list, which is not an object as that of other files.
fn read(path: &Path, cache: &FileCache) -> Result<Node, String> {
    let text = cache.text(path).map_err(|error| error.predicate())?;
    let text = text.ok_or("cannot be read")?;
    let value: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| format!("is not JSON: {error}"))?;
    Ok(Node::from(&value))
}

/// Whether a list has the server `name`, or is not understood.
fn has(list: &Node, name: &str) -> bool {
    let is_meant = |id: &str| {
        let of_project = id.strip_prefix("project-");
        id == name
            || id.strip_prefix("user-") == Some(name)
            || of_project.is_some_and(|id| id.ends_with(&format!("-{name}")))
    };
    match list {
        Node::Null => false,
        Node::List(ids) => ids.iter().any(|id| id.as_text().is_none_or(is_meant)),
        _ => true,
    }
}

/// The existing lists, each with the projects among `known` that it may be for, or the one that Cursor wrote next to it.
fn lists(known: &[PathBuf], around: &Surroundings, cache: &FileCache) -> Vec<List> {
    let directories = listed(&around.home.join(".cursor/projects"), usize::MAX).into_iter();
    // A list that may be there, behind a directory that cannot be entered, is one that cannot be read.
    let has_list =
        |directory: &PathBuf| match directory.join("mcp-disabled.json").symlink_metadata() {
            Ok(_) => true,
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
    let mut lists: Vec<List> = directories
        .filter(has_list)
        .map(|directory| {
            let name = directory.file_name().unwrap_or_default().to_string_lossy();
            let projects = match project_of(&directory, cache) {
                Some(project) => vec![project],
                None => {
                    let known = known.iter().filter(|project| is_short_for(&name, project));
                    known.cloned().collect()
                }
            };
            List {
                path: directory.join("mcp-disabled.json"),
                projects,
            }
        })
        .collect();
    lists.sort_by(|one, other| one.path.cmp(&other.path));
    lists
}

/// The files in which Cursor writes the projects that the user trusts.
pub(super) fn trusting(around: &Surroundings) -> Vec<PathBuf> {
    let directories = listed(&around.home.join(".cursor/projects"), usize::MAX).into_iter();
    directories
        .map(|directory| trusting_in(&directory))
        .collect()
}

fn trusting_in(directory: &Path) -> PathBuf {
    directory.join(".workspace-trusted")
}

/// The project that Cursor wrote into one of its directories.
fn project_of(directory: &Path, cache: &FileCache) -> Option<PathBuf> {
    let trusted = cache.json(&trusting_in(directory))?;
    let written = trusted.get("workspacePath")?.as_text().map(PathBuf::from);
    written.filter(|path| path.is_absolute())
}

/// The existing directories that the user trusts in Cursor.
pub(in super::super) fn trusted(around: &Surroundings, cache: &FileCache) -> Vec<PathBuf> {
    let directories = listed(&around.home.join(".cursor/projects"), usize::MAX).into_iter();
    let trusted = directories.filter_map(|directory| project_of(&directory, cache));
    trusted.filter(|project| project.is_dir()).collect()
}

/// Whether `name` is the short name of a project: its letters and digits, with one `-` between them for everything else.
fn is_short_for(name: &str, project: &Path) -> bool {
    let real = std::fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
    [project, &real].into_iter().any(|path| {
        let path = path.to_string_lossy();
        let words = path.split(|c: char| !c.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let whole = words.join("-");
        let start = name.get(..LONGEST).filter(|_| whole.len() > LONGEST);
        name == whole || start.is_some_and(|start| whole.starts_with(start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_found_by_the_short_name_and_has_servers_by_their_ids() {
        let long = format!("/work/{}", "long/".repeat(30));
        let cut = format!("work-{}-0123456", "long-".repeat(16).trim_end_matches('-'));
        for (name, project, is_it) in [
            ("work-My-app-2", "/work/My.app_2", true),
            ("work-my-app-2", "/work/My.app_2", false),
            ("work-My-app", "/work/My.app_2", false),
            (cut.as_str(), long.as_str(), true),
        ] {
            assert_eq!(is_short_for(name, Path::new(project)), is_it, "{name}");
        }
        for (list, has_it) in [
            (r#"["gh"]"#, true),
            (r#"["user-gh"]"#, true),
            (r#"["project-0-app-gh"]"#, true),
            (r#"["github", "plugin-x-gh"]"#, false),
            ("[]", false),
            ("null", false),
            (r#"[{"id": "gh"}]"#, true),
            (r#"{"gh": true}"#, true),
        ] {
            let list = Node::from(&serde_json::from_str::<serde_json::Value>(list).unwrap());
            assert_eq!(has(&list, "gh"), has_it, "{list:?}");
        }
    }
}
