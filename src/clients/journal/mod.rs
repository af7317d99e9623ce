//! The journal of changes to files, from which they are undone.
//!
//! A record is written before the first file changes, and has every file before and after the change. So after a crash
//! each file is the old one or the new one, and the record knows both. An undo restores the old bytes if no other
//! program has written since; otherwise it removes only our changes: by lines while our lines are still there, and by
//! values otherwise.

mod error;
mod record;
mod reversal;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use time::OffsetDateTime;
use time::macros::format_description;

use self::error::disk;
pub(crate) use self::error::{JournalError, NO_RUNS};
pub(crate) use self::record::RunState;
use self::record::{FileRecord, Record, Runs, entries_of, text_of, write};
use self::reversal::Reversal;
pub(super) use self::reversal::left_empty;
pub(crate) use self::reversal::{Effect, Kept, KeptFor, Restored, Unreturned, Whereabouts};
use super::edit::Edit;
use super::history::History;
use super::listed::FILE_LIMIT;
use super::lock::{Lock, exclusive};
use super::{Client, Node, Surroundings};
use crate::config::link_target;
use crate::files::{self, leads_nowhere, read_regular};
use crate::secret::Secret;
use crate::text::write_path;

/// The records, in the state directory.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    runs: Runs,
}

/// The result of an undo.
#[derive(Debug)]
pub(crate) struct Undone {
    /// The name of the run.
    pub id: String,
    /// The result for each file.
    pub restored: Vec<(PathBuf, Restored)>,
    /// The servers of mcpzip that are not as before the run.
    pub kept: Vec<Kept>,
    /// The servers that clients did not get back.
    pub unreturned: Vec<Unreturned>,
    /// The servers of mcpzip that no run needs any more, and that stay.
    pub remaining: BTreeSet<String>,
}

/// A run, for a list.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    /// The id of the run.
    pub id: String,
    /// Its command line.
    pub command: String,
    /// The state of the run.
    pub state: RunState,
    /// The files that it changed.
    pub files: Vec<PathBuf>,
    /// The directory with the previous files.
    #[serde(serialize_with = "write_path")]
    pub backups: PathBuf,
    /// Why its record cannot be read, or a file that was kept with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The effect of an undo on each of the files, in a preview.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// The servers that clients will no longer reach after an undo, in a preview.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cut_off: Vec<CutOff>,
}

/// Servers that a later run has moved out of a client, from which an undo takes mcpzip's entry.
#[derive(Debug, Serialize)]
pub(crate) struct CutOff {
    /// The name of the client.
    pub client: String,
    /// Their names in the client.
    pub servers: Vec<String>,
    /// The later run.
    pub run: String,
}

impl Journal {
    /// Opens the journal in `state_dir`, which may not exist yet.
    #[must_use]
    pub(crate) fn new(state_dir: &Path) -> Self {
        let directory = state_dir.join("undo");
        Self {
            runs: Runs { directory },
        }
    }

    /// Applies all edits or none, and returns the run's name. Blocks on the disk, and for some seconds on other
    /// programs that write the same files.
    ///
    /// # Errors
    /// When a file has changed since it was read, or cannot be written. All files then have their previous content.
    pub(crate) fn apply(&self, command: &str, edits: &[Edit]) -> Result<String, JournalError> {
        let _exclusive = exclusive(&self.runs.directory).map_err(disk(&self.runs.directory))?;
        // Before the locks, for which directories are made.
        for edit in edits {
            leads_nowhere(&edit.path).map_or(Ok(()), |error| Err(disk(&edit.path)(error)))?;
        }
        let _locks = locks(
            edits.iter().map(|edit| (edit.client, edit.path.as_path())),
            |path, error| disk(path)(error),
        )?;
        for edit in edits {
            remove_temporary(&edit.path);
            check(edit)?;
        }
        let (id, mut record) = self.begin(command, edits)?;
        let directory = self.runs.of(&id);
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
        if let Err(error) = self.runs.save(&id, &record) {
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
        let _exclusive = exclusive(&self.runs.directory).map_err(disk(&self.runs.directory))?;
        let (id, mut record) = self.begin(command, edits)?;
        record.state = RunState::Done;
        self.runs.save(&id, &record)?;
        Ok(id)
    }

    /// Writes the record of a run and its files. The directory gets its name when it has all of them.
    fn begin(&self, command: &str, edits: &[Edit]) -> Result<(String, Record), JournalError> {
        let id = new_id();
        let unfinished = format!(".{id}");
        let directory = self.runs.of(&unfinished);
        let mut record = Record::new(command);
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
            record.files.push(FileRecord::new(edit, &before, &after));
        }
        self.runs.save(&unfinished, &record)?;
        fs::rename(&directory, self.runs.of(&id)).map_err(disk(&directory))?;
        Ok((id, record))
    }

    /// The content of a file before the newest run that added a value at `step` and was not undone; an empty text if there was no
    /// file. `None` if no run added it.
    #[must_use]
    pub(crate) fn before_adding(&self, path: &Path, step: &[String]) -> Option<String> {
        let ids = self.runs.ids().unwrap_or_default();
        ids.into_iter().rev().find_map(|id| {
            let record = self.runs.load(&id).ok()?;
            let is_meant = record.state != RunState::Undone;
            let mut files = record.files.into_iter().filter(|_| is_meant);
            let file = files.find(|file| {
                let mut steps = file.steps.iter();
                file.path == path && steps.any(|one| one.path == step && one.before.is_none())
            })?;
            let before = self.runs.before(&id, &file).ok()?;
            Some(before.unwrap_or_default())
        })
    }

    /// The servers that came over. Runs that were undone do not count.
    #[must_use]
    pub(crate) fn history(&self) -> History {
        let mut history = History::default();
        let ids = self.runs.ids().unwrap_or_else(|error| {
            history.unread.push(error.to_string());
            Vec::new()
        });
        for id in ids {
            let record = match self.runs.load(&id) {
                Ok(record) => record,
                Err(error) => {
                    history.unread.push(error.to_string());
                    continue;
                }
            };
            let files = record.files.into_iter();
            for file in files.filter(|_| record.state != RunState::Undone) {
                let Some(client) = file.client.as_deref().and_then(Client::named) else {
                    history.limits.extend(file.limits());
                    history.brought.extend(file.brought());
                    history.added.extend(file.added().cloned());
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
        self.runs.of(id)
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
        let mut found = entries_of(&self.runs.directory);
        found.retain(|run| entries_of(run).iter().any(has_one));
        found.sort();
        found
    }

    /// All runs, the newest first.
    ///
    /// # Errors
    /// When the directory of the records cannot be read.
    pub(crate) fn list(&self) -> Result<Vec<Summary>, JournalError> {
        let ids = self.runs.ids()?.into_iter().rev();
        Ok(ids.map(|id| self.summary(id)).collect())
    }

    /// The runs that have moved servers out of a file which an entry in one of the `edited` files served, and were not undone, the newest
    /// first: their ids and commands. A server that `is_back` there does not count.
    pub(crate) fn moves(
        &self,
        edited: &[Edit],
        is_back: impl Fn(&Path, &str) -> bool,
        around: &Surroundings,
    ) -> Vec<(String, String)> {
        let ids = self.runs.ids().unwrap_or_default().into_iter().rev();
        let runs = ids.filter_map(|id| Some((self.runs.load(&id).ok()?, id)));
        let is_served = |file: &FileRecord| {
            edited.iter().any(|edit| {
                let client = edit.client.filter(|client| file.is_of(*client));
                client.is_some_and(|client| client.serves(&edit.path, &file.path, around))
            })
        };
        let has_moved = |file: &FileRecord| {
            let mut moved = file.moved.iter();
            moved.any(|[there, _]| !is_back(&file.path, there)) && is_served(file)
        };
        let runs = runs.filter(|(record, _)| {
            record.state != RunState::Undone && record.files.iter().any(has_moved)
        });
        runs.map(|(record, id)| (id, record.command)).collect()
    }

    fn summary(&self, id: String) -> Summary {
        let record = match self.runs.load(&id) {
            Ok(record) => record,
            Err(error) => {
                return Summary {
                    command: String::new(),
                    state: RunState::Damaged,
                    files: Vec::new(),
                    backups: self.backups(&id),
                    problem: Some(error.to_string()),
                    effects: Vec::new(),
                    cut_off: Vec::new(),
                    id,
                };
            }
        };
        let mut files = record.files.iter();
        let lost = files.find_map(|file| self.runs.before(&id, file).err());
        let lost = lost.filter(|_| record.state != RunState::Undone);
        let problem = lost.map(|problem| {
            format!(
                "{problem}: `mcpzip undo {id}` then takes back the values that the run changed and leaves the rest of the file as it is, or \
                 changes nothing and says why"
            )
        });
        Summary {
            backups: self.backups(&id),
            id,
            command: record.command,
            state: record.state,
            files: record.files.into_iter().map(|file| file.path).collect(),
            problem,
            effects: Vec::new(),
            cut_off: Vec::new(),
        }
    }

    /// The run `id`, or the newest one that was not undone, with the effects of an undo.
    ///
    /// # Errors
    /// When there is no such run, or it cannot be undone.
    pub(crate) fn preview(
        &self,
        id: Option<&str>,
        around: &Surroundings,
    ) -> Result<Summary, JournalError> {
        let id = self.meant(id)?;
        let record = self.runs.load(&id)?;
        let reversal = Reversal::of(&self.runs, &id, &record)?;
        let mut summary = self.summary(id);
        // As the run has changed them: ours first.
        let outcomes = reversal.outcomes.into_iter().rev();
        (summary.files, summary.effects) = outcomes.map(|(path, _, it)| (path, it)).unzip();
        summary.cut_off = self.cut_off(&summary, around)?;
        Ok(summary)
    }

    /// The servers that later runs have moved out of files from which an undo of the run in `preview` removes values: mcpzip's entry is
    /// the one that a run adds to a client. A later run that has added another for the same file is not meant.
    fn cut_off(
        &self,
        preview: &Summary,
        around: &Surroundings,
    ) -> Result<Vec<CutOff>, JournalError> {
        let both = preview.files.iter().zip(&preview.effects);
        let losing = both.filter(|(_, effect)| !effect.removed.is_empty());
        let losing: Vec<&PathBuf> = losing.map(|(path, _)| path).collect();
        let mut found = Vec::new();
        for run in self.runs.ids()?.into_iter().filter(|run| *run > preview.id) {
            let record = self.runs.load(&run).ok();
            let record = record.filter(|record| record.state != RunState::Undone);
            let files = record.map(|record| record.files).unwrap_or_default();
            let is_new = |file: &&FileRecord| file.steps.iter().any(|step| step.before.is_none());
            let with_own: Vec<&PathBuf> = files.iter().filter(is_new).map(|it| &it.path).collect();
            found.extend(files.iter().filter_map(|file| {
                let client = file.client.as_deref().and_then(Client::named)?;
                let serves = |path: &&PathBuf| client.serves(path, &file.path, around);
                let is_cut_off = losing.iter().any(serves) && !with_own.iter().any(serves);
                (is_cut_off && !file.moved.is_empty()).then(|| CutOff {
                    client: client.name().to_owned(),
                    servers: file.moved.iter().map(|[there, _]| there.clone()).collect(),
                    run: run.clone(),
                })
            }));
        }
        Ok(found)
    }

    fn meant(&self, id: Option<&str>) -> Result<String, JournalError> {
        let mut ids = self.runs.ids()?;
        let is_open = |id: &String| {
            let record = self.runs.load(id);
            record.map_or(true, |record| record.state != RunState::Undone)
        };
        match id {
            Some(id) if ids.iter().any(|known| known == id) => match is_open(&id.to_owned()) {
                true => Ok(id.to_owned()),
                false => Err(JournalError::Over { id: id.to_owned() }),
            },
            Some(id) => Err(JournalError::Unknown { id: id.to_owned() }),
            None => {
                ids.reverse();
                let newest = ids.into_iter().find(is_open);
                newest.ok_or(JournalError::Nothing)
            }
        }
    }

    /// Undoes the run `id`, or the newest one that was not undone.
    ///
    /// # Errors
    /// When there is no such run, or a file cannot be restored: then nothing was written. When a file cannot be written, another call
    /// continues the undo.
    pub(crate) fn undo(&self, id: Option<&str>) -> Result<Undone, JournalError> {
        let id = self.meant(id)?;
        let _exclusive = exclusive(&self.runs.directory).map_err(disk(&self.runs.directory))?;
        let mut record = self.runs.load(&id)?;
        // Another process may just have undone it.
        if record.state == RunState::Undone {
            return Err(JournalError::Over { id });
        }
        // As in `apply`.
        for file in &record.files {
            file.check_link(&id)?;
        }
        let client = |file: &FileRecord| file.client.as_deref().and_then(Client::named);
        let files = record.files.iter();
        let _locks = locks(
            files.map(|file| (client(file), file.path.as_path())),
            |path, error| JournalError::blocked(&id, path, &error),
        )?;
        for file in &record.files {
            remove_temporary(&file.path);
        }
        let reversal = Reversal::of(&self.runs, &id, &record)?;
        let paths = || reversal.contents.iter().map(|(path, _)| path.clone());
        for (number, (path, content)) in reversal.contents.iter().enumerate() {
            let written = match content {
                Some(text) => put(path, text),
                None => take_out(path),
            };
            let Err(error) = written else { continue };
            return Err(match (number, error) {
                (0, JournalError::Disk { path, source }) => {
                    JournalError::blocked(&id, &path, &source)
                }
                (_, error) => {
                    // For the list of runs. The error says it anyway.
                    record.state = RunState::Begun;
                    let _ = self.runs.save(&id, &record);
                    JournalError::Partly {
                        done: paths().take(number).collect(),
                        rest: paths().skip(number).collect(),
                        reason: Box::new(error),
                        id,
                    }
                }
            });
        }
        record.state = RunState::Undone;
        let unreturned = reversal.unreturned.iter();
        record.unreturned = unreturned.map(|left| left.here.clone()).collect();
        let saved = self.runs.save(&id, &record);
        saved.map_err(|error| JournalError::Unrecorded {
            id: id.clone(),
            reason: Box::new(error),
        })?;
        let outcomes = reversal.outcomes.into_iter();
        Ok(Undone {
            id,
            restored: outcomes.map(|(path, it, _)| (path, it)).collect(),
            kept: reversal.kept,
            unreturned: reversal.unreturned,
            remaining: reversal.remaining,
        })
    }
}

fn locks<'a>(
    files: impl Iterator<Item = (Option<Client>, &'a Path)>,
    failed: impl Fn(&Path, io::Error) -> JournalError,
) -> Result<Vec<Lock>, JournalError> {
    let mut locks = Vec::new();
    for (client, path) in files {
        locks.extend(Lock::acquire(client, path).map_err(|error| failed(path, error))?);
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

/// Replaces a file atomically, following symbolic links.
fn put(path: &Path, text: &str) -> Result<(), JournalError> {
    let target = link_target(path).map_err(disk(path))?;
    files::replace_in_place(&target, text.as_bytes()).map_err(disk(path))
}

/// Removes what a killed run has left next to a file. The locks of the journal and of the file are held, so that no other process of mcpzip
/// writes it now.
fn remove_temporary(path: &Path) {
    if let Ok(target) = link_target(path) {
        files::remove_temporary(&target);
    }
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

/// The time, as a name that sorts chronologically.
fn new_id() -> String {
    let format =
        format_description!("[year][month][day]-[hour][minute][second]-[subsecond digits:6]");
    OffsetDateTime::now_utc()
        .format(&format)
        .expect("the format has no condition")
}
