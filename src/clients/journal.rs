//! The journal of changes to files, from which they are undone.
//!
//! A record is written before the first file changes, and has every file before and after the change. So after a crash
//! each file is the old one or the new one, and the record knows both. An undo restores the old bytes if no other
//! program has written since; otherwise it removes only our changes: by lines while our lines are still there, and by
//! values otherwise.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::macros::format_description;

use super::diff;
use super::edit::{Edit, Step};
use super::history::History;
use super::listed::FILE_LIMIT;
use super::lock::{Lock, exclusive};
use super::servers::SERVERS;
use super::{Client, Node, Syntax, Text, references};
use crate::config::{link_target, secrets_file};
use crate::files::{self, read_regular};
use crate::secret::Secret;

const RECORD: &str = "record.json";
const VERSION: u32 = 1;

/// The records, in the state directory.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    directory: PathBuf,
}

/// Files that were not changed, or not restored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// Another program wrote a file after it was read; nothing was changed.
    #[error("another program has changed `{path}` in the meantime; nothing was done, try again")]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read or written; the changes before it were undone.
    #[error("`{path}` cannot be read or written: {source}")]
    Disk {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// There is no run with this name.
    #[error("there is no run `{id}`; `mcpzip undo --list` shows all")]
    Unknown {
        /// The requested name.
        id: String,
    },
    /// There is no run left to undo.
    #[error("there is nothing to undo")]
    Nothing,
    /// A record is damaged.
    #[error(
        "the record of the run {id} cannot be read: {path}: {problem}. Next to it are {kept}; `.before` is a file as it was before the run. Put \
         back by hand what you want to have back, and remove the directory {}: then the run is forgotten. `mcpzip undo --list` shows the \
         other runs, which `mcpzip undo RUN` reverts",
        path.parent().unwrap_or(path).display()
    )]
    Record {
        /// The run.
        id: String,
        /// The record.
        path: PathBuf,
        /// The fault.
        problem: String,
        /// The files next to it.
        kept: String,
    },
}

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

/// A run, for a list.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    /// Its name.
    pub id: String,
    /// Its command line.
    pub command: String,
    /// Its state.
    pub state: RunState,
    /// The files that it changed.
    pub files: Vec<PathBuf>,
    /// The directory with the previous files.
    pub backups: PathBuf,
    /// The reason why its record cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The effect of an undo on each of the files.
    #[serde(skip)]
    pub effects: Vec<Effect>,
}

/// The values of a file that an undo changes, by their paths.
#[derive(Debug, Default)]
pub(crate) struct Effect {
    /// Values that the run removed.
    pub restored: Vec<String>,
    /// Values that it added.
    pub removed: Vec<String>,
    /// Values that it replaced.
    pub changed: Vec<String>,
}

/// The result of an undo for one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Restored {
    /// It is restored to the byte.
    Whole,
    /// It did not exist before, and is removed.
    Removed,
    /// It had its previous content already.
    Untouched,
    /// It was edited since; only our changes were undone.
    Part,
    /// It was edited since, and these values are no longer ours; all others were restored.
    Kept(Vec<String>),
    /// These values are kept, because a later run relies on them, or, if edited since, are no longer ours; all others were restored.
    Relied(Vec<String>),
    /// Nothing is undone, because what was kept elsewhere refers to these values.
    Needed(Vec<String>),
    /// It was deleted since, and is restored.
    Back,
}

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    version: u32,
    command: String,
    state: RunState,
    files: Vec<FileRecord>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FileRecord {
    path: PathBuf,
    client: Option<String>,
    syntax: String,
    /// The name of the saved file next to the record. `None` if there was no file.
    before: Option<String>,
    after: String,
    steps: Vec<StepRecord>,
    /// As in an [`Edit`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    relied: Vec<String>,
    /// As in an [`Edit`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    off: Vec<String>,
    /// As in an [`Edit`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    moved: Vec<[String; 2]>,
}

/// Values as JSON text, which keeps the order of their keys.
#[derive(Debug, Serialize, Deserialize)]
struct StepRecord {
    path: Vec<String>,
    before: Option<String>,
    after: Option<String>,
}

impl FileRecord {
    /// The effect of an undo if later runs rely on the servers `relied`.
    fn effect(&self, relied: &BTreeSet<String>) -> Effect {
        let mut effect = Effect::default();
        for step in self.steps.iter().filter(|step| !self.holds(step, relied)) {
            let list = match (&step.before, &step.after) {
                (Some(_), None) => &mut effect.restored,
                (None, _) => &mut effect.removed,
                (Some(_), Some(_)) => &mut effect.changed,
            };
            list.push(step.path.join("."));
        }
        effect
    }

    /// Whether a step is about a server of mcpzip that is among `relied`.
    fn holds(&self, step: &StepRecord, relied: &BTreeSet<String>) -> bool {
        let [section, server, ..] = step.path.as_slice() else {
            return false;
        };
        self.client.is_none() && section == SERVERS && relied.contains(server)
    }
}

impl Journal {
    /// Opens the journal in `state_dir`, which may not exist yet.
    #[must_use]
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self {
            directory: state_dir.join("undo"),
        }
    }

    /// Applies all edits or none, and returns the run's name. Blocks on the disk, and for some seconds on other
    /// programs that write the same files.
    ///
    /// # Errors
    /// When a file has changed since it was read, or cannot be written. All files then have their previous content.
    pub(crate) fn apply(&self, command: &str, edits: &[Edit]) -> Result<String, JournalError> {
        let _exclusive = exclusive(&self.directory).map_err(disk(&self.directory))?;
        let _locks = locks(edits.iter().map(|edit| (edit.client, edit.path.as_path())))?;
        for edit in edits {
            check(edit)?;
        }
        let (id, mut record) = self.begin(command, edits)?;
        let directory = self.directory.join(&id);
        let roll_back = |done: &[Edit]| -> Result<(), JournalError> {
            for done in done.iter().rev() {
                match &done.before {
                    Some(before) => put(&done.path, before)?,
                    None => take_out(&done.path)?,
                }
            }
            // Nothing of the run remains.
            let _ = fs::remove_dir_all(&directory);
            Ok(())
        };
        for (number, edit) in edits.iter().enumerate() {
            // A client without a lock may have written a moment ago.
            let done = check(edit).and_then(|()| match (edit.is_removed, edit.is_private) {
                (true, _) => take_out(&edit.path),
                (_, true) => put_private(&edit.path, &edit.after),
                (_, false) => put(&edit.path, &edit.after),
            });
            if let Err(error) = done {
                roll_back(&edits[..number])?;
                return Err(error);
            }
        }
        record.state = RunState::Done;
        if let Err(error) = self.save(&id, &record) {
            roll_back(edits)?;
            return Err(error);
        }
        Ok(id)
    }

    /// Records edits that another part of the program has made, and returns the run's name.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(crate) fn note(&self, command: &str, edits: &[Edit]) -> Result<String, JournalError> {
        let _exclusive = exclusive(&self.directory).map_err(disk(&self.directory))?;
        let (id, mut record) = self.begin(command, edits)?;
        record.state = RunState::Done;
        self.save(&id, &record)?;
        Ok(id)
    }

    /// Writes the record of a run and its files.
    fn begin(&self, command: &str, edits: &[Edit]) -> Result<(String, Record), JournalError> {
        let id = new_id();
        let directory = self.directory.join(&id);
        let mut record = Record {
            version: VERSION,
            command: command.to_owned(),
            state: RunState::Begun,
            files: Vec::new(),
        };
        for (number, edit) in edits.iter().enumerate() {
            let name = edit
                .path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let name = name.trim_start_matches('.');
            let (before, after) = (
                format!("{number}-{name}.before"),
                format!("{number}-{name}.after"),
            );
            if let Some(text) = &edit.before {
                write(&directory.join(&before), text)?;
            }
            write(&directory.join(&after), &edit.after)?;
            record.files.push(FileRecord {
                path: edit.path.clone(),
                client: edit.client.map(|client| client.name().to_owned()),
                syntax: edit.syntax.name().to_owned(),
                before: edit.before.is_some().then_some(before),
                after,
                steps: edit.steps.iter().map(StepRecord::of).collect(),
                relied: edit.relied.clone(),
                off: edit.off.clone(),
                moved: edit.moved.clone(),
            });
        }
        self.save(&id, &record)?;
        Ok((id, record))
    }

    /// The content of a file before the newest run that added a value at `step` and was not undone; an empty text if there was no
    /// file. `None` if no run added it.
    #[must_use]
    pub(crate) fn before_adding(&self, path: &Path, step: &[String]) -> Option<String> {
        self.ids().into_iter().rev().find_map(|id| {
            let record = self.load(&id).ok()?;
            let is_meant = record.state != RunState::Undone;
            let mut files = record.files.into_iter().filter(|_| is_meant);
            let file = files.find(|file| {
                let mut steps = file.steps.iter();
                file.path == path && steps.any(|one| one.path == step && one.before.is_none())
            })?;
            match file.before {
                Some(name) => text_of(&self.backups(&id).join(name)).ok(),
                None => Some(String::new()),
            }
        })
    }

    /// The servers that came over. Runs that were undone do not count.
    #[must_use]
    pub(crate) fn history(&self) -> History {
        let mut history = History::default();
        for id in self.ids() {
            let record = match self.load(&id) {
                Ok(record) => record,
                Err(error) => {
                    history.unread.push(error.to_string());
                    continue;
                }
            };
            let files = record.files.into_iter();
            for file in files.filter(|_| record.state != RunState::Undone) {
                let Some(client) = file.client.as_deref().and_then(Client::named) else {
                    history.limits.extend(file.steps.iter().filter_map(limits));
                    let added = file.steps.into_iter().map(|step| step.path);
                    let added = added.filter(|path| path.len() == 2 && path[0] == SERVERS);
                    history
                        .added
                        .extend(added.filter_map(|mut path| path.pop()));
                    continue;
                };
                let moved = file.moved.into_iter();
                history.moved.extend(moved.map(|names| (client, names)));
                for name in file.off {
                    history.refused.entry(name).or_default().insert(client);
                }
            }
        }
        history
    }

    /// The directory with the previous files of the run `id`.
    #[must_use]
    pub(crate) fn backups(&self, id: &str) -> PathBuf {
        self.directory.join(id)
    }

    /// The directories of runs, the oldest first, that have one of these secrets in a file: as it is, or as JSON has it.
    #[must_use]
    pub(crate) fn with_secrets(&self, secrets: &[&Secret<String>]) -> Vec<PathBuf> {
        let forms = |secret: &&Secret<String>| {
            let json = Node::text(secret.expose()).to_json();
            let inner = json
                .strip_prefix('"')
                .and_then(|json| json.strip_suffix('"'));
            let inner = inner.unwrap_or_default().to_owned();
            [secret.expose().clone(), inner]
        };
        let written: Vec<String> = secrets.iter().flat_map(forms).collect();
        let has_one = |path: &PathBuf| {
            let text = text_of(path).unwrap_or_default();
            written.iter().any(|secret| has_word(&text, secret))
        };
        let mut found = entries_of(&self.directory);
        found.retain(|run| entries_of(run).iter().any(has_one));
        found.sort();
        found
    }

    /// All runs, the newest first.
    #[must_use]
    pub(crate) fn list(&self) -> Vec<Summary> {
        let mut relied = BTreeSet::new();
        let summary = |id: String| {
            let record = match self.load(&id) {
                Ok(record) => record,
                Err(error) => {
                    return Summary {
                        command: String::new(),
                        state: RunState::Damaged,
                        files: Vec::new(),
                        backups: self.backups(&id),
                        problem: Some(error.to_string()),
                        effects: Vec::new(),
                        id,
                    };
                }
            };
            let files = record.files.iter();
            let effects = files.map(|file| file.effect(&relied)).collect();
            relied.extend(record.relied());
            let files = record.files.into_iter().map(|file| file.path).collect();
            let backups = self.backups(&id);
            Summary {
                id,
                command: record.command,
                state: record.state,
                files,
                backups,
                problem: None,
                effects,
            }
        };
        self.ids().into_iter().rev().map(summary).collect()
    }

    /// Succeeds if the record of a run can be read.
    ///
    /// # Errors
    /// When it cannot.
    pub(crate) fn check(&self, id: &str) -> Result<(), JournalError> {
        self.load(id).map(drop)
    }

    /// Undoes the run `id`, or the newest one that was not undone. Returns its name and the result for each file.
    ///
    /// # Errors
    /// When there is no such run, or a file cannot be written. Another call continues the undo.
    pub(crate) fn undo(
        &self,
        id: Option<&str>,
    ) -> Result<(String, Vec<(PathBuf, Restored)>), JournalError> {
        let id = match id {
            Some(id) if self.ids().iter().any(|known| known == id) => id.to_owned(),
            Some(id) => return Err(JournalError::Unknown { id: id.to_owned() }),
            None => {
                let newest = self
                    .list()
                    .into_iter()
                    .find(|run| run.state != RunState::Undone);
                newest.ok_or(JournalError::Nothing)?.id
            }
        };
        let _exclusive = exclusive(&self.directory).map_err(disk(&self.directory))?;
        let mut record = self.load(&id)?;
        let client = |file: &FileRecord| file.client.as_deref().and_then(Client::named);
        let _locks = locks(
            record
                .files
                .iter()
                .map(|file| (client(file), file.path.as_path())),
        )?;
        let mut restored = Vec::new();
        let later = self.ids().into_iter().filter(|other| *other > id);
        let later = later.filter_map(|other| self.load(&other).ok());
        let relied = later.flat_map(|record| record.relied()).collect();
        // Servers return to their clients before they are removed from `mcpzip`.
        for file in record.files.iter().rev() {
            let outcome = match needed(file, &restored) {
                Some(names) => Restored::Needed(names),
                None => self.restore(&id, file, &relied)?,
            };
            restored.push((file.path.clone(), outcome));
        }
        let relied = record.relied();
        record.state = RunState::Undone;
        self.save(&id, &record)?;
        for path in self.release(relied)? {
            if !restored.iter().any(|(known, _)| *known == path) {
                restored.push((path, Restored::Part));
            }
        }
        Ok((id, restored))
    }

    /// Removes the servers `relied` of mcpzip that an earlier run has added, and whose undo has kept them for a later one, if no run relies on
    /// them any more. Returns the changed files.
    fn release(&self, relied: Vec<String>) -> Result<Vec<PathBuf>, JournalError> {
        let mut changed = Vec::new();
        let mut free: BTreeSet<String> = relied.into_iter().collect();
        if free.is_empty() {
            return Ok(changed);
        }
        let mut undone = Vec::new();
        for id in self.ids() {
            // A run whose record is damaged may rely on them.
            let Ok(record) = self.load(&id) else {
                return Ok(changed);
            };
            let needed = record.relied();
            free.retain(|name| !needed.contains(name));
            if record.state == RunState::Undone {
                undone.push((id, record));
            }
        }
        for (id, record) in undone {
            for file in &record.files {
                let added = file.steps.iter().filter(|step| {
                    step.before.is_none() && step.path.len() == 2 && file.holds(step, &free)
                });
                let steps: Option<Vec<Step>> = added.map(StepRecord::read).collect();
                let (Some(steps), Some(syntax)) = (steps, Syntax::named(&file.syntax)) else {
                    continue;
                };
                let Ok(current) = text_of(&file.path) else {
                    continue;
                };
                let of_run = |name: &String| text_of(&self.backups(&id).join(name)).ok();
                let before = file.before.as_ref().and_then(of_run).unwrap_or_default();
                let after = of_run(&file.after).unwrap_or_default();
                let (text, _) = without(&before, &after, &current, syntax, &steps);
                if let Some(text) = text.filter(|text| !steps.is_empty() && *text != current) {
                    // A file that the run made goes with the last of it.
                    match file.before.is_none() && text.trim().is_empty() {
                        true => take_out(&file.path)?,
                        false => put(&file.path, &text)?,
                    }
                    changed.push(file.path.clone());
                }
            }
        }
        Ok(changed)
    }

    fn restore(
        &self,
        id: &str,
        file: &FileRecord,
        relied: &BTreeSet<String>,
    ) -> Result<Restored, JournalError> {
        let directory = self.directory.join(id);
        let load = |name: &String| {
            let path = directory.join(name);
            text_of(&path).map_err(disk(&path))
        };
        let before = file.before.as_ref().map(load).transpose()?;
        let after = load(&file.after)?;
        let current = match read_regular(&file.path, FILE_LIMIT) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => text,
                // We wrote it as UTF-8, so another program changed it.
                Err(_) => {
                    return Ok(Restored::Kept(
                        file.steps.iter().map(|step| step.path.join(".")).collect(),
                    ));
                }
            },
            // Otherwise servers that were moved from it would be in no file at all.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let Some(before) = &before else {
                    return Ok(Restored::Untouched);
                };
                return put(&file.path, before).map(|()| Restored::Back);
            }
            Err(error) => return Err(disk(&file.path)(error)),
        };
        if before.as_ref() == Some(&current) {
            return Ok(Restored::Untouched);
        }
        let (held, ours): (Vec<&StepRecord>, Vec<_>) =
            file.steps.iter().partition(|step| file.holds(step, relied));
        if current == after && held.is_empty() {
            return match &before {
                Some(before) => put(&file.path, before).map(|()| Restored::Whole),
                None => take_out(&file.path).map(|()| Restored::Removed),
            };
        }
        let record = |problem: String| self.damaged(id, problem);
        let syntax = Syntax::named(&file.syntax)
            .ok_or_else(|| record(format!("`{}` is not a syntax", file.syntax)))?;
        let steps: Option<Vec<Step>> = ours.into_iter().map(StepRecord::read).collect();
        let steps = steps.ok_or_else(|| record("a value is not JSON".to_owned()))?;
        let (text, mut kept) = without(
            &before.unwrap_or_default(),
            &after,
            &current,
            syntax,
            &steps,
        );
        match text {
            Some(text) if text != current => put(&file.path, &text)?,
            _ => {}
        }
        Ok(if !held.is_empty() {
            kept.extend(held.iter().map(|step| step.path.join(".")));
            Restored::Relied(kept)
        } else if kept.is_empty() {
            Restored::Part
        } else {
            Restored::Kept(kept)
        })
    }

    fn ids(&self) -> Vec<String> {
        let runs = entries_of(&self.directory).into_iter();
        let runs = runs.filter(|run| run.join(RECORD).symlink_metadata().is_ok());
        let mut ids: Vec<String> = runs
            .filter_map(|run| run.file_name()?.to_str().map(str::to_owned))
            .collect();
        ids.sort();
        ids
    }

    fn load(&self, id: &str) -> Result<Record, JournalError> {
        let path = self.directory.join(id).join(RECORD);
        let text = text_of(&path).map_err(|error| self.damaged(id, error.to_string()))?;
        let problem = match serde_json::from_str::<Record>(&text) {
            Ok(record) if record.version == VERSION => return Ok(record),
            Ok(record) => format!("it is of version {}", record.version),
            Err(error) => error.to_string(),
        };
        Err(self.damaged(id, problem))
    }

    /// The error of a record that cannot be read.
    fn damaged(&self, id: &str, problem: String) -> JournalError {
        let path = self.backups(id).join(RECORD);
        let files = entries_of(&self.backups(id)).into_iter();
        let files = files.filter(|file| *file != path);
        let names = files.filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        let kept = match names.is_empty() {
            true => "no other files".to_owned(),
            false => names.join(", "),
        };
        JournalError::Record {
            id: id.to_owned(),
            path,
            problem,
            kept,
        }
    }

    fn save(&self, id: &str, record: &Record) -> Result<(), JournalError> {
        let text = serde_json::to_string_pretty(record).expect("a record is JSON");
        write(&self.directory.join(id).join(RECORD), &text)
    }
}

/// `current` without our steps, and the keys of the steps that cannot be undone. The text is `None` if none can be.
fn without(
    before: &str,
    after: &str,
    current: &str,
    syntax: Syntax,
    steps: &[Step],
) -> (Option<String>, Vec<String>) {
    let Ok(mut text) = Text::parse(syntax, current) else {
        return (None, steps.iter().map(|step| step.path.join(".")).collect());
    };
    let is_same = |one: Option<&Node>, other: Option<&Node>| match (one, other) {
        (Some(one), Some(other)) => one.is_same(other),
        (one, other) => one.is_none() && other.is_none(),
    };
    let old = Text::parse(syntax, before).map_or(Node::Null, |text| text.node().clone());
    let mut wanted = text.node().clone();
    let (mut ours, mut kept) = (Vec::new(), Vec::new());
    for step in steps.iter().rev() {
        let there = wanted.at(&step.path);
        if is_same(there, step.before.as_ref()) {
            continue;
        }
        let may = is_same(there, step.after.as_ref())
            && match &step.before {
                Some(value) => wanted.set(&step.path, value.clone()),
                None => {
                    wanted.remove(&step.path);
                    while let Some(path) = left_empty(&wanted, &old, &step.path) {
                        wanted.remove(&path);
                    }
                    true
                }
            };
        if may {
            ours.push(step);
        } else {
            kept.push(step.path.join("."));
        }
    }
    if kept.is_empty()
        && let Some(lines) = diff::reversed(before, after, current)
        && Text::parse(syntax, &lines).is_ok_and(|made| made.node().is_same(&wanted))
    {
        return (Some(lines), kept);
    }
    for step in ours {
        let done = match &step.before {
            Some(value) => text.set(&step.path, value),
            None => text.remove(&step.path).and_then(|()| {
                while let Some(path) = left_empty(text.node(), &old, &step.path) {
                    text.remove(&path)?;
                }
                Ok(())
            }),
        };
        if done.is_err() {
            kept.push(step.path.join("."));
        }
    }
    (Some(text.text()), kept)
}

/// The deepest parent of `path` that is empty now and did not exist before.
pub(super) fn left_empty(now: &Node, before: &Node, path: &[String]) -> Option<Vec<String>> {
    let prefixes = (1..path.len()).rev().map(|length| &path[..length]);
    let is_left = |prefix: &&[String]| {
        before.at(prefix).is_none()
            && now
                .at(prefix)
                .is_some_and(|node| node.is_same(&Node::Map(Vec::new())))
    };
    prefixes.into_iter().find(is_left).map(<[String]>::to_vec)
}

impl Record {
    /// The servers of mcpzip that the run relies on; none if it was undone.
    fn relied(&self) -> Vec<String> {
        let files = self.files.iter().filter(|_| self.state != RunState::Undone);
        files.flat_map(|file| file.relied.clone()).collect()
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

    fn read(&self) -> Option<Step> {
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
}

/// The tool rules that a step has written to a server of mcpzip, with its name.
fn limits(step: &StepRecord) -> Option<(String, Node)> {
    let after = step.read()?.after?;
    let tools = match step.path.as_slice() {
        [section, _] if section == SERVERS => after.get("tools")?.clone(),
        [section, _, key] if section == SERVERS && key == "tools" => after,
        _ => return None,
    };
    Some((step.path[1].clone(), Node::map([("tools", tools)])))
}

fn locks<'a>(
    files: impl Iterator<Item = (Option<Client>, &'a Path)>,
) -> Result<Vec<Lock>, JournalError> {
    let mut locks = Vec::new();
    for (client, path) in files {
        locks.extend(Lock::acquire(client, path).map_err(disk(path))?);
    }
    Ok(locks)
}

/// Fails if the file has changed since it was read.
fn check(edit: &Edit) -> Result<(), JournalError> {
    let is_same = match read_regular(&edit.path, FILE_LIMIT) {
        Ok(bytes) => edit
            .before
            .as_ref()
            .is_some_and(|before| before.as_bytes() == bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => edit.before.is_none(),
        Err(error) => return Err(disk(&edit.path)(error)),
    };
    if is_same {
        Ok(())
    } else {
        Err(JournalError::Changed {
            path: edit.path.clone(),
        })
    }
}

/// Whether `text` has `word`, and not only as a part of a longer word.
fn has_word(text: &str, word: &str) -> bool {
    let is_inside = |next: Option<char>| next.is_some_and(char::is_alphanumeric);
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            !is_inside(before.chars().next_back()) && !is_inside(after.chars().next())
        })
}

/// The paths in a directory; none if it cannot be read.
fn entries_of(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The text of a file of the journal.
fn text_of(path: &Path) -> io::Result<String> {
    String::from_utf8(files::read_any(path)?).map_err(io::Error::other)
}

/// The secrets of a file that entries of an edited configuration refer to, which undo has kept.
fn needed(file: &FileRecord, restored: &[(PathBuf, Restored)]) -> Option<Vec<String>> {
    let (config, _) = restored.iter().find(|(path, outcome)| {
        let is_kept = matches!(outcome, Restored::Kept(_) | Restored::Relied(_));
        secrets_file(path) == file.path && is_kept
    })?;
    // A configuration that cannot be read refers to everything.
    let text = fs::read_to_string(config).ok();
    let used = text.map(|text| references::variables(&text));
    let names = file.steps.iter().map(|step| step.path.join("."));
    let needed: Vec<String> = names
        .filter(|name| used.as_ref().is_none_or(|used| used.contains(name)))
        .collect();
    (!needed.is_empty()).then_some(needed)
}

/// Replaces a file atomically, following symbolic links.
fn put(path: &Path, text: &str) -> Result<(), JournalError> {
    let target = link_target(path).map_err(disk(path))?;
    files::replace_in_place(&target, text.as_bytes()).map_err(disk(path))
}

/// Removes a file that we made. A link to it was there before, and stays.
fn take_out(path: &Path) -> Result<(), JournalError> {
    let target = link_target(path).map_err(disk(path))?;
    fs::remove_file(&target).map_err(disk(path))
}

fn put_private(path: &Path, text: &str) -> Result<(), JournalError> {
    let target = link_target(path).map_err(disk(path))?;
    files::replace_in_place_for_owner(&target, text.as_bytes()).map_err(disk(path))
}

fn write(path: &Path, text: &str) -> Result<(), JournalError> {
    files::replace(path, &[text.as_bytes()]).map_err(disk(path))
}

fn disk(path: &Path) -> impl FnOnce(io::Error) -> JournalError {
    let path = path.to_owned();
    |source| JournalError::Disk { path, source }
}

/// The time, as a name that sorts chronologically.
fn new_id() -> String {
    let format =
        format_description!("[year][month][day]-[hour][minute][second]-[subsecond digits:6]");
    OffsetDateTime::now_utc()
        .format(&format)
        .expect("the format has no condition")
}
