//! What there is: every client's files, read once, and the servers in them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::reading::{self, Entry};
use super::rules::{self, Rule};
use super::{Client, Fixed, Node, Place, Scope, Surroundings, Syntax, Text, fixed};

/// All that was found.
#[derive(Debug)]
pub struct Survey {
    /// The servers, in the order of clients and files.
    pub found: Vec<Found>,
    /// What names single servers or tools of theirs outside of their entries, or in them.
    pub rules: Vec<Rule>,
    /// The servers that are in no list that could be edited.
    pub fixed: Vec<Fixed>,
    /// The files that could not be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
    pub(super) files: BTreeMap<PathBuf, Source>,
    pub(super) places: Vec<Place>,
}

/// A server in a client's file.
#[derive(Debug, Clone)]
pub struct Found {
    /// Where.
    pub place: Place,
    /// Its name there.
    pub name: String,
    /// What it is, or why it has to stay.
    pub entry: Result<Entry, String>,
    /// Whether that is `mcpzip`.
    pub is_mcpzip: bool,
    /// Whether the user has yet to say at the client that it may run.
    pub is_unapproved: bool,
}

/// A file as it was read.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) before: Option<String>,
    pub(super) text: Text,
}

impl Survey {
    /// Reads the files of `clients`.
    #[must_use]
    pub fn of(clients: &[Client], around: &Surroundings) -> Self {
        let mut survey = Self {
            found: Vec::new(),
            rules: Vec::new(),
            fixed: Vec::new(),
            unreadable: Vec::new(),
            files: BTreeMap::new(),
            places: Vec::new(),
        };
        for client in clients {
            let user = client.user_place(around);
            let mut places = vec![user.clone()];
            if let Some(text) = survey.open(&user) {
                // Claude Code has them in the same file, by project.
                let projects = text
                    .node()
                    .get("projects")
                    .map(Node::members)
                    .unwrap_or_default();
                let projects = projects
                    .into_iter()
                    .filter_map(|(key, _)| client.local_place(around, Path::new(key)));
                places.extend(projects.collect::<Vec<_>>());
            }
            // In the home directory, the user's own file is where a project's would be.
            let projects = client
                .project_places(around)
                .into_iter()
                .filter(|place| place.path != user.path);
            places.extend(projects.collect::<Vec<_>>());
            for place in places {
                survey.read(place, around);
            }
        }
        survey.fixed = fixed::find(&survey, clients, around);
        survey.rules = rules::find(&survey, clients, around);
        survey
    }

    /// The file's text; nothing when it is not there or cannot be read, which is noted.
    fn open(&mut self, place: &Place) -> Option<Text> {
        if let Some(source) = self.files.get(&place.path) {
            return Some(source.text.clone());
        }
        if self.unreadable.iter().any(|(path, _)| *path == place.path) {
            return None;
        }
        match read_source(&place.path, place.syntax) {
            Ok(source) => {
                source.before.as_ref()?;
                let text = source.text.clone();
                self.files.insert(place.path.clone(), source);
                Some(text)
            }
            Err(problem) => {
                self.unreadable.push((place.path.clone(), problem));
                None
            }
        }
    }

    fn read(&mut self, place: Place, around: &Surroundings) {
        let Some(text) = self.open(&place) else {
            return;
        };
        let servers = text
            .node()
            .at(&place.container)
            .map(Node::members)
            .unwrap_or_default();
        for (name, node) in servers {
            let mut entry = reading::read(place.client, node, place.project.as_deref());
            let user = self
                .files
                .get(&place.client.user_place(around).path)
                .map(|source| source.text.node());
            let approval = approval(&place, name, user, around);
            if (is_switched_off(&place, name, text.node()) || approval != Approval::Given)
                && let Ok(entry) = &mut entry
            {
                entry.is_disabled = true;
            }
            let is_mcpzip = entry.as_ref().is_ok_and(Entry::is_mcpzip);
            let mut found = Found {
                place: place.clone(),
                name: name.to_owned(),
                entry,
                is_mcpzip,
                is_unapproved: approval == Approval::Missing,
            };
            if let Some(reason) = fixed::blocked(&found, around).filter(|_| !is_mcpzip) {
                found.entry = Err(reason);
            }
            self.found.push(found);
        }
        self.places.push(place);
    }
}

impl Found {
    /// Where its rules and the user look for it.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.place.scope
    }
}

/// What the user said of a server that somebody else put into the project.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Approval {
    Given,
    Missing,
    Refused,
}

/// Claude Code asks before it starts a server of `.mcp.json`, and keeps the answers in settings and, formerly, by project.
fn approval(place: &Place, name: &str, user: Option<&Node>, around: &Surroundings) -> Approval {
    if place.client != Client::ClaudeCode || place.scope != Scope::Project {
        return Approval::Given;
    }
    let project = place.project.as_deref().unwrap_or(Path::new(""));
    let directories = [around.claude_directory(), project.join(".claude")];
    let files = directories
        .iter()
        .flat_map(|at| ["settings.json", "settings.local.json"].map(|file| at.join(file)));
    let settings: Vec<Source> = files
        .filter_map(|path| read_source(&path, Syntax::Json).ok())
        .collect();
    let older = user.and_then(|user| user.get("projects")?.get(&project.to_string_lossy()));
    let places: Vec<&Node> = settings
        .iter()
        .map(|source| source.text.node())
        .chain(older)
        .collect();
    let has = |key: &str| {
        places.iter().any(|node| {
            node.get(key)
                .is_some_and(|list| list.items().contains(&Node::text(name)))
        })
    };
    if has("disabledMcpjsonServers") {
        Approval::Refused
    } else if has("enabledMcpjsonServers")
        || places
            .iter()
            .any(|node| node.get("enableAllProjectMcpServers") == Some(&Node::Flag(true)))
    {
        Approval::Given
    } else {
        Approval::Missing
    }
}

/// Whether the client keeps a server from starting by a list outside of the server's entry.
fn is_switched_off(place: &Place, name: &str, node: &Node) -> bool {
    let is_in =
        |node: Option<&Node>| node.is_some_and(|list| list.items().contains(&Node::text(name)));
    match place.client {
        Client::GeminiCli => {
            let allowed = node
                .at(&["mcp", "allowed"])
                .filter(|allowed| matches!(allowed, Node::List(_)));
            is_in(node.at(&["mcp", "excluded"]))
                || allowed.is_some_and(|allowed| !is_in(Some(allowed)))
        }
        Client::ClaudeCode if place.scope == Scope::Local => {
            let project = place
                .project
                .as_deref()
                .unwrap_or(Path::new(""))
                .to_string_lossy();
            is_in(node.at(&["projects", &project, "disabledMcpServers"]))
        }
        Client::CopilotCli => {
            let settings = read_source(&place.path.with_file_name("settings.json"), Syntax::Json);
            settings.is_ok_and(|settings| is_in(settings.text.node().get("disabledMcpServers")))
        }
        _ => false,
    }
}

/// Reads a file that may not be there.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn read_source(path: &Path, syntax: Syntax) -> Result<Source, String> {
    let before = match std::fs::read(path) {
        Ok(bytes) => Some(String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.to_string()),
    };
    let text = Text::parse(syntax, before.as_deref().unwrap_or_default())
        .map_err(|error| error.to_string())?;
    Ok(Source { before, text })
}
