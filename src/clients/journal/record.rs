//! The record of a run, and the files that are kept with it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::error::{JournalError, disk};
use crate::clients::edit::{Edit, Step};
use crate::clients::servers::SERVERS;
use crate::clients::{Client, Node, Syntax, Text};
use crate::config::link_target;
use crate::files::{self, leads_nowhere};

const RECORD: &str = "record.json";
const VERSION: u32 = 1;

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RunState {
    /// It started, and did not record its end.
    Begun,
    /// It is complete.
    Done,
    /// It was undone.
    Undone,
    /// Its record cannot be read. No record has this.
    Damaged,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    version: u32,
    pub(super) command: String,
    pub(super) state: RunState,
    pub(super) files: Vec<FileRecord>,
    /// The servers of mcpzip that the undo kept, because a client did not get them back.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) unreturned: BTreeSet<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileRecord {
    pub(super) path: PathBuf,
    pub(super) client: Option<String>,
    pub(super) syntax: String,
    /// The name of the saved file next to the record. `None` if there was no file.
    pub(super) before: Option<String>,
    /// The digest of that file. Older records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    pub(super) after: String,
    /// The digest of that file, as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest_after: Option<String>,
    pub(super) steps: Vec<StepRecord>,
    /// As in an [`Edit`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    relied: Vec<String>,
    /// As in an [`Edit`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) off: Vec<String>,
    /// As in an [`Edit`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) moved: Vec<[String; 2]>,
    /// As in an [`Edit`]. Older records have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left: Vec<Vec<String>>,
}

/// Values as JSON text, which keeps the order of their keys.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StepRecord {
    pub(super) path: Vec<String>,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

/// The directories of the runs.
#[derive(Debug, Clone)]
pub(super) struct Runs {
    pub(super) directory: PathBuf,
}

impl Record {
    pub(super) fn new(command: &str) -> Self {
        Self {
            version: VERSION,
            command: command.to_owned(),
            state: RunState::Begun,
            files: Vec::new(),
            unreturned: BTreeSet::new(),
        }
    }

    /// The servers of mcpzip that the run relies on; none if it was undone.
    pub(super) fn relied(&self) -> Vec<String> {
        let files = self.files.iter().filter(|_| self.state != RunState::Undone);
        files.flat_map(|file| file.relied.clone()).collect()
    }
}

impl FileRecord {
    pub(super) fn is_of(&self, client: Client) -> bool {
        self.client.as_deref() == Some(client.name())
    }

    pub(super) fn new(edit: &Edit, before: &str, after: &str) -> Self {
        Self {
            path: edit.path.clone(),
            client: edit.client.map(|client| client.name().to_owned()),
            syntax: edit.syntax.name().to_owned(),
            before: edit.before.as_ref().map(|_| before.to_owned()),
            digest: edit.before.as_ref().map(|text| digest(text)),
            after: after.to_owned(),
            digest_after: Some(digest(&edit.after)),
            steps: edit.steps.iter().map(StepRecord::of).collect(),
            relied: edit.relied.clone(),
            off: edit.off.clone(),
            moved: edit.moved.clone(),
            left: edit.left.clone(),
        }
    }

    /// Whether a step is about a server of mcpzip that is among `servers`.
    pub(super) fn holds(&self, step: &StepRecord, servers: &BTreeSet<String>) -> bool {
        let [section, server, ..] = step.path.as_slice() else {
            return false;
        };
        self.client.is_none() && section == SERVERS && servers.contains(server)
    }

    /// The servers that the run has added to mcpzip.
    pub(super) fn added(&self) -> impl Iterator<Item = &String> {
        let steps = self.steps.iter().filter(|step| {
            let is_server = step.path.len() == 2 && step.path[0] == SERVERS;
            self.client.is_none() && step.before.is_none() && is_server
        });
        steps.map(|step| &step.path[1])
    }

    /// The rules for tools and the projects that the run has written to servers of mcpzip, each with the server's name.
    pub(super) fn limits(&self) -> impl Iterator<Item = (String, Node)> {
        self.steps.iter().filter_map(StepRecord::limits)
    }

    /// The entries that the run has written to mcpzip, each with its name.
    pub(super) fn brought(&self) -> impl Iterator<Item = (String, Node)> {
        self.steps
            .iter()
            .filter_map(|step| match step.path.as_slice() {
                [section, name] if section == SERVERS => Some((name.clone(), step.read()?.after?)),
                _ => None,
            })
    }

    /// All servers of mcpzip that the run has changed.
    pub(super) fn servers(&self) -> impl Iterator<Item = &String> {
        let steps = self.steps.iter().filter(|_| self.client.is_none());
        steps.filter_map(|step| match step.path.as_slice() {
            [section, server, ..] if section == SERVERS => Some(server),
            _ => None,
        })
    }

    /// Fails if the file is behind a link that leads nowhere, so that the undo of the run `id` cannot put it back. A link to a file that
    /// the run itself has removed is not meant.
    pub(super) fn check_link(&self, id: &str) -> Result<(), JournalError> {
        let is_there = || {
            let target = link_target(&self.path).ok();
            target.is_some_and(|it| it.parent().is_some_and(Path::is_dir))
        };
        let is_ours = self.before.is_some() && self.is_after("") && is_there();
        match leads_nowhere(&self.path).filter(|_| !is_ours) {
            Some(error) => Err(self.blocked(id, error.to_string())),
            None => Ok(()),
        }
    }

    /// The error of a file that cannot be put back now.
    pub(super) fn blocked(&self, id: &str, problem: String) -> JournalError {
        JournalError::Blocked {
            id: id.to_owned(),
            path: self.path.clone(),
            problem,
        }
    }

    /// Whether a text is known to be the file after the run.
    pub(super) fn is_after(&self, text: &str) -> bool {
        let known = self.digest_after.as_ref();
        known.is_some_and(|known| *known == digest(text))
    }

    /// Whether a text is the file before the run: by its digest, or by the values that the run changed.
    fn is_before(&self, text: &str) -> bool {
        if let Some(known) = &self.digest {
            return *known == digest(text);
        }
        let parsed = Syntax::named(&self.syntax).and_then(|it| Text::parse(it, text).ok());
        parsed.is_some_and(|parsed| {
            self.steps.iter().all(|step| {
                let step = step.read();
                step.is_some_and(|step| is_same(parsed.node().at(&step.path), step.before.as_ref()))
            })
        })
    }
}

impl StepRecord {
    fn of(step: &Step) -> Self {
        let json = |node: &Option<Node>| node.as_ref().map(Node::to_json);
        Self {
            path: step.path.clone(),
            before: json(&step.before),
            after: json(&step.after),
        }
    }

    pub(super) fn read(&self) -> Option<Step> {
        // A document is an object, so the value is wrapped in one.
        let node = |json: &Option<String>| match json {
            None => Some(None),
            Some(json) => {
                let wrapped = Text::parse(Syntax::Json, &format!("{{\"value\":{json}}}")).ok()?;
                Some(Some(wrapped.node().get("value")?.clone()))
            }
        };
        Some(Step {
            path: self.path.clone(),
            before: node(&self.before)?,
            after: node(&self.after)?,
        })
    }

    /// The rules for tools and the projects that the step has written to a server of mcpzip, with its name.
    fn limits(&self) -> Option<(String, Node)> {
        const KEYS: [&str; 2] = ["tools", "projects"];
        let after = self.read()?.after?;
        let limits = match self.path.as_slice() {
            [section, _] if section == SERVERS => {
                let limits = KEYS.map(|key| Some((key, after.get(key)?.clone())));
                Node::map(limits.into_iter().flatten())
            }
            [section, _, key] if section == SERVERS && KEYS.contains(&key.as_str()) => {
                Node::map([(key.as_str(), after)])
            }
            _ => return None,
        };
        Some((self.path[1].clone(), limits))
    }
}

impl Runs {
    /// The names of all runs, the oldest first. A run that is only being written has a name with a dot.
    ///
    /// # Errors
    /// When the directory is there and cannot be read, or is behind a link that leads nowhere.
    pub(super) fn ids(&self) -> Result<Vec<String>, JournalError> {
        let unread = match fs::read_dir(&self.directory) {
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => leads_nowhere(&self.directory),
            Err(error) => Some(error),
        };
        if let Some(error) = unread {
            return Err(disk(&self.directory)(error));
        }
        let runs = entries_of(&self.directory).into_iter();
        let runs = runs.filter(|run| !entries_of(run).is_empty());
        let names = runs.filter_map(|run| run.file_name()?.to_str().map(str::to_owned));
        let mut ids: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        ids.sort();
        Ok(ids)
    }

    pub(super) fn of(&self, id: &str) -> PathBuf {
        self.directory.join(id)
    }

    pub(super) fn load(&self, id: &str) -> Result<Record, JournalError> {
        let path = self.of(id).join(RECORD);
        let damaged = |problem: String| {
            let problem = format!("its record {} cannot be read: {problem}", path.display());
            self.damaged(id, problem)
        };
        let text = text_of(&path).map_err(|error| damaged(error.to_string()))?;
        match serde_json::from_str::<Record>(&text) {
            Ok(record) if record.version == VERSION => Ok(record),
            Ok(record) => Err(damaged(format!("it is of version {}", record.version))),
            Err(error) => Err(damaged(error.to_string())),
        }
    }

    pub(super) fn save(&self, id: &str, record: &Record) -> Result<(), JournalError> {
        let path = self.of(id).join(RECORD);
        // A path that is not Unicode has no place in it.
        let text = serde_json::to_string_pretty(record);
        let text = text.map_err(|error| disk(&path)(error.into()))?;
        write(&path, &text)
    }

    /// A file as it was before the run `id`; `None` if there was none.
    ///
    /// # Errors
    /// With the reason, when what was kept of it is not that.
    pub(super) fn before(&self, id: &str, file: &FileRecord) -> Result<Option<String>, String> {
        let Some(name) = &file.before else {
            return Ok(None);
        };
        let path = self.of(id).join(name);
        match text_of(&path) {
            Ok(text) if file.is_before(&text) => Ok(Some(text)),
            Ok(_) => Err(format!("{} is not what was kept there", path.display())),
            Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
        }
    }

    /// The error of a run whose files cannot be used.
    pub(super) fn damaged(&self, id: &str, problem: String) -> JournalError {
        let directory = self.of(id);
        let files = entries_of(&directory).into_iter();
        let names = files.filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned()));
        let mut names: Vec<String> = names.filter(|name| name != RECORD).collect();
        names.sort();
        let kept = match names.is_empty() {
            true => "no files of the run".to_owned(),
            false => names.join(", "),
        };
        JournalError::Damaged {
            id: id.to_owned(),
            directory,
            problem,
            kept,
        }
    }
}

pub(super) fn is_same(one: Option<&Node>, other: Option<&Node>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same(other),
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// The paths in a directory; none if it cannot be read.
pub(super) fn entries_of(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The text of a file of the journal.
pub(super) fn text_of(path: &Path) -> io::Result<String> {
    String::from_utf8(files::read_any(path)?).map_err(io::Error::other)
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), JournalError> {
    files::replace(path, &[text.as_bytes()]).map_err(disk(path))
}

fn digest(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text))
}
