//! The files as an undo leaves them. All are known before the first one is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::JournalError;
use super::record::{FileRecord, Record, RunState, Runs, StepRecord, is_same, text_of};
use crate::clients::diff;
use crate::clients::edit::Step;
use crate::clients::history::is_same_program;
use crate::clients::listed::FILE_LIMIT;
use crate::clients::servers::SERVERS;
use crate::clients::{Node, Syntax, Text, TextError, references};
use crate::config::secrets_file;
use crate::files::read_regular;

/// The values of a file that an undo changes, by their paths.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Effect {
    /// Values that the run removed.
    pub restored: Vec<String>,
    /// Values that it added.
    pub removed: Vec<String>,
    /// Values that it replaced.
    pub changed: Vec<String>,
    /// Values that stay as they are.
    pub kept: Vec<String>,
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
    /// Its copy is damaged or gone, so only our changes were undone.
    Values,
    /// It was edited since, and these values are no longer ours; all others were restored.
    Kept(Vec<String>),
    /// These values are kept, because a later run relies on them, or a client did not get them back, or, if edited since, are no longer
    /// ours; all others were restored.
    Relied(Vec<String>),
    /// Nothing is undone, because what was kept elsewhere refers to these values.
    Needed(Vec<String>),
    /// These values of earlier runs, which were undone, are undone as well, because no run relies on them any more.
    Released(Vec<String>),
    /// It was deleted since, and is restored.
    Back,
}

/// A server of mcpzip that an undo leaves as it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The server's name.
    pub name: String,
    /// The reason.
    pub reason: KeptFor,
}

/// Why an undo leaves a server of mcpzip as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeptFor {
    /// The run added it, and its entry was changed since.
    Changed,
    /// The run replaced it, and its entry was changed since.
    ChangedAgain,
    /// The run replaced it, and it was removed since.
    Gone,
    /// A later run relies on it.
    Relied,
    /// A later run cannot be read, and may rely on it.
    Unread,
}

/// A server that a client does not get back, because its file has another value under that name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unreturned {
    /// The client's name on the command line.
    pub client: String,
    /// The client's file.
    pub path: PathBuf,
    /// The server's name there.
    pub name: String,
    /// Its name in mcpzip.
    pub here: String,
    /// The place where it is now.
    pub whereabouts: Whereabouts,
    /// The copy of the client's file from before the run.
    pub backup: PathBuf,
}

/// The place of a server that its client does not get back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// In mcpzip, where the run has put it.
    Here,
    /// In the backup alone: mcpzip has another server of its name.
    Replaced,
    /// In the backup alone: it was removed from mcpzip.
    Removed,
}

/// The files as an undo leaves them.
#[derive(Debug, Default)]
pub(super) struct Reversal {
    /// The new contents, in the order in which they are written. `None` if it is removed.
    pub(super) contents: Vec<(PathBuf, Option<String>)>,
    pub(super) outcomes: Vec<(PathBuf, Restored, Effect)>,
    /// The servers of mcpzip that are not as before the run.
    pub(super) kept: Vec<Kept>,
    /// The servers that clients do not get back.
    pub(super) unreturned: Vec<Unreturned>,
    /// The servers of mcpzip that runs have added, and that stay although all of them are undone.
    pub(super) remaining: BTreeSet<String>,
}

impl Effect {
    /// The effect of an outcome on the file, which has the values `current` if it is there and can be read.
    fn of(file: &FileRecord, outcome: &Restored, current: Option<&Node>) -> Self {
        let mut effect = Self::default();
        if *outcome == Restored::Untouched {
            return effect;
        }
        if let Restored::Kept(keys) | Restored::Relied(keys) | Restored::Needed(keys) = outcome {
            effect.kept.clone_from(keys);
        }
        let is_all_kept = matches!(outcome, Restored::Needed(_));
        // Values that are as before already do not change.
        let changes = |step: &&StepRecord| {
            let before = step.read().map(|step| step.before);
            let is_as_before = |now: &Node| {
                before
                    .as_ref()
                    .is_some_and(|before| is_same(now.at(&step.path), before.as_ref()))
            };
            !is_all_kept && !current.is_some_and(is_as_before)
        };
        for step in file.steps.iter().filter(changes) {
            let list = match (&step.before, &step.after) {
                _ if effect.kept.contains(&step.path.join(".")) => continue,
                (Some(_), None) => &mut effect.restored,
                (None, _) => &mut effect.removed,
                (Some(_), Some(_)) => &mut effect.changed,
            };
            list.push(step.path.join("."));
        }
        effect
    }
}

impl Reversal {
    /// Plans the undo of the run `id`.
    ///
    /// # Errors
    /// When a file cannot be read, or cannot be restored by what is kept.
    pub(super) fn of(runs: &Runs, id: &str, record: &Record) -> Result<Self, JournalError> {
        let ids = runs.ids()?;
        let others: Vec<(String, Record)> = ids
            .iter()
            .filter(|other| other.as_str() != id)
            .filter_map(|other| Some((other.clone(), runs.load(other).ok()?)))
            .collect();
        let later = others.iter().filter(|(other, _)| other.as_str() > id);
        let relied: BTreeSet<String> = later.flat_map(|(_, record)| record.relied()).collect();
        // A later run whose record is damaged may rely on any server.
        let is_later = |other: &String| other.as_str() > id;
        let is_unread = ids
            .iter()
            .filter(|it| is_later(it))
            .any(|it| runs.load(it).is_err());
        let all = record.files.iter().flat_map(FileRecord::servers);
        let unread: BTreeSet<String> = all.filter(|_| is_unread).cloned().collect();
        let mut reversal = Self::default();
        // Servers return to their clients before they are removed from `mcpzip`.
        for file in record.files.iter().rev() {
            let current = text_of(&file.path).ok();
            let current =
                current.and_then(|text| Text::parse(Syntax::named(&file.syntax)?, &text).ok());
            let returned = reversal.unreturned.iter().map(|left| left.here.clone());
            let held = relied.union(&unread).cloned().chain(returned).collect();
            let outcome = match reversal.needed(file) {
                Some(names) => Restored::Needed(names),
                None => reversal.restore(runs, id, file, &held)?,
            };
            if let Restored::Kept(keys) | Restored::Relied(keys) = &outcome {
                reversal
                    .unreturned
                    .extend(unreturned(file, keys, &runs.of(id)));
                reversal.keep(file, keys, &relied, &unread);
            }
            let current = current.as_ref().map(Text::node);
            let effect = Effect::of(file, &outcome, current);
            reversal.outcomes.push((file.path.clone(), outcome, effect));
        }
        let others_files = others.iter().flat_map(|(_, other)| &other.files);
        let mut configs = record.files.iter().chain(others_files);
        if let Some(config) = configs.find(|file| file.servers().next().is_some()) {
            reversal.find_unreturned(config, record);
        }
        if others.len() + 1 == ids.len() {
            reversal.release(runs, record.relied(), &others);
            reversal.remain(record, &others);
        }
        Ok(reversal)
    }

    fn restore(
        &mut self,
        runs: &Runs,
        id: &str,
        file: &FileRecord,
        relied: &BTreeSet<String>,
    ) -> Result<Restored, JournalError> {
        file.check_link(id)?;
        let before = runs.before(id, file);
        let after = text_of(&runs.of(id).join(&file.after)).ok();
        let current = match read_regular(&file.path, FILE_LIMIT) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(_) => {
                    let problem = "it is not UTF-8; save it as such";
                    return Err(file.blocked(id, problem.to_owned()));
                }
            },
            // Otherwise servers that were moved from it would be in no file at all.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let before = before.map_err(|problem| {
                    let path = file.path.display();
                    runs.damaged(
                        id,
                        format!("{path} is not there, and {problem}, so it cannot be put back"),
                    )
                })?;
                let Some(before) = before else {
                    return Ok(Restored::Untouched);
                };
                self.set(&file.path, Some(before));
                return Ok(Restored::Back);
            }
            Err(error) => return Err(JournalError::blocked(id, &file.path, &error)),
        };
        if before
            .as_ref()
            .is_ok_and(|it| it.as_ref() == Some(&current))
        {
            return Ok(Restored::Untouched);
        }
        let (held, ours): (Vec<&StepRecord>, Vec<_>) =
            file.steps.iter().partition(|step| file.holds(step, relied));
        if let Ok(before) = &before
            && (after.as_ref() == Some(&current) || file.is_after(&current))
            && held.is_empty()
        {
            self.set(&file.path, before.clone());
            return Ok(match before {
                Some(_) => Restored::Whole,
                None => Restored::Removed,
            });
        }
        let damaged =
            |problem: String| runs.damaged(id, format!("its record is damaged: {problem}"));
        let syntax = Syntax::named(&file.syntax)
            .ok_or_else(|| damaged(format!("`{}` is not a syntax", file.syntax)))?;
        let steps: Option<Vec<Step>> = ours.into_iter().map(StepRecord::read).collect();
        let steps = steps.ok_or_else(|| damaged("a value is not JSON".to_owned()))?;
        let is_lost = before.is_err();
        // Without it, it is not known which keys were empty before, so none is removed for that.
        let old = before.unwrap_or_else(|_| Some(current.clone()));
        let is_made = old.is_none();
        let (old, after) = (old.unwrap_or_default(), after.unwrap_or_default());
        let (text, mut kept) =
            without(&old, &after, &current, syntax, &steps).map_err(|problem| {
                file.blocked(id, format!("{problem}; put that right in the file"))
            })?;
        let text = Some(text).filter(|text| *text != current);
        let is_gone = is_made && held.is_empty() && text.as_deref().is_some_and(is_blank);
        if let Some(text) = text {
            self.set(&file.path, (!is_gone).then_some(text));
        }
        Ok(if !held.is_empty() {
            kept.extend(held.iter().map(|step| step.path.join(".")));
            Restored::Relied(kept)
        } else if !kept.is_empty() {
            Restored::Kept(kept)
        } else if is_gone {
            Restored::Removed
        } else if is_lost {
            Restored::Values
        } else {
            Restored::Part
        })
    }

    /// Notes the servers of mcpzip among the `keys` of its configuration that are kept. One that the run has added and that was removed since
    /// is as before.
    fn keep(
        &mut self,
        file: &FileRecord,
        keys: &[String],
        relied: &BTreeSet<String>,
        unread: &BTreeSet<String>,
    ) {
        let is_kept = |step: &&StepRecord| {
            let is_server = step.path.len() == 2 && step.path[0] == SERVERS;
            file.client.is_none() && is_server && keys.contains(&step.path.join("."))
        };
        let kept: Vec<&StepRecord> = file.steps.iter().filter(is_kept).collect();
        let text = self.text(&file.path).unwrap_or_default();
        let config = Syntax::named(&file.syntax).and_then(|it| Text::parse(it, &text).ok());
        for step in kept {
            let name = &step.path[1];
            let is_there = config
                .as_ref()
                .is_none_or(|it| it.node().at(&step.path).is_some());
            let reason = match step.before {
                _ if self.unreturned.iter().any(|left| left.here == *name) => continue,
                _ if is_there && relied.contains(name) => KeptFor::Relied,
                _ if is_there && unread.contains(name) => KeptFor::Unread,
                None if !is_there => continue,
                None => KeptFor::Changed,
                Some(_) if is_there => KeptFor::ChangedAgain,
                Some(_) => KeptFor::Gone,
            };
            let name = name.clone();
            self.kept.push(Kept { name, reason });
        }
    }

    /// Looks for the servers that clients do not get back in the configuration of mcpzip as the undo leaves it.
    fn find_unreturned(&mut self, config: &FileRecord, record: &Record) {
        let text = self.text(&config.path).unwrap_or_default();
        let parsed = Syntax::named(&config.syntax).and_then(|it| Text::parse(it, &text).ok());
        let brought: Vec<(String, Node)> =
            record.files.iter().flat_map(FileRecord::brought).collect();
        for left in &mut self.unreturned {
            let there = parsed
                .as_ref()
                .and_then(|it| it.node().at(&[SERVERS, left.here.as_str()]));
            let mut brought = brought.iter().filter(|(name, _)| *name == left.here);
            left.whereabouts = match there {
                None => Whereabouts::Removed,
                Some(there) if !brought.all(|(_, entry)| is_same_program(entry, there)) => {
                    Whereabouts::Replaced
                }
                Some(_) => Whereabouts::Here,
            };
        }
    }

    /// Takes back the changes of the servers `relied` of mcpzip by earlier runs, whose undo has kept them for a later one, if no run relies on
    /// them any more.
    fn release(&mut self, runs: &Runs, relied: Vec<String>, others: &[(String, Record)]) {
        let mut free: BTreeSet<String> = relied.into_iter().collect();
        for (_, record) in others {
            let needed = record.relied();
            free.retain(|name| !needed.contains(name) && !record.unreturned.contains(name));
        }
        free.retain(|name| !self.unreturned.iter().any(|left| left.here == *name));
        let undone = others.iter().rev();
        let undone = undone.filter(|(_, record)| record.state == RunState::Undone);
        let files = undone.flat_map(|(id, record)| record.files.iter().map(move |it| (id, it)));
        let mut configs = BTreeMap::new();
        for (id, file) in files {
            let held = file.steps.iter().filter(|step| file.holds(step, &free));
            let steps: Option<Vec<Step>> = held.map(StepRecord::read).collect();
            let (Some(steps), Some(syntax)) = (steps, Syntax::named(&file.syntax)) else {
                continue;
            };
            let Some(current) = self.text(&file.path).filter(|_| !steps.is_empty()) else {
                continue;
            };
            let is_made = file.before.is_none();
            let before = runs.before(id, file);
            let before = before.unwrap_or_else(|_| Some(current.clone()));
            let after = text_of(&runs.of(id).join(&file.after)).unwrap_or_default();
            let before = before.unwrap_or_default();
            let made = without(&before, &after, &current, syntax, &steps).ok();
            let text = made.map(|(text, _)| text);
            if let Some(text) = text.filter(|text| *text != current) {
                // A file that a run made goes with the last of it.
                let is_gone = is_made && is_blank(&text);
                self.set(&file.path, (!is_gone).then_some(text));
                configs.entry(&file.path).or_insert((syntax, current));
            }
        }
        for (path, (syntax, was)) in configs {
            let [was, is] = [was, self.text(path).unwrap_or_default()].map(|text| {
                let parsed = Text::parse(syntax, &text);
                parsed.map_or(Node::Null, |text| text.node().clone())
            });
            let mut effect = Effect::default();
            for name in &free {
                let at = [SERVERS.to_owned(), name.clone()];
                let list = match (was.at(&at), is.at(&at)) {
                    (was, is) if is_same(was, is) => continue,
                    (_, None) => &mut effect.removed,
                    _ => &mut effect.changed,
                };
                list.push(at.join("."));
            }
            let names = effect.removed.iter().chain(&effect.changed).cloned();
            let outcome = Restored::Released(names.collect());
            self.outcomes.push((path.clone(), outcome, effect));
        }
    }

    /// Finds the servers that no run needs.
    fn remain(&mut self, record: &Record, others: &[(String, Record)]) {
        if others.iter().any(|(_, it)| it.state != RunState::Undone) {
            return;
        }
        let all = others.iter().map(|(_, record)| record).chain([record]);
        for file in all.flat_map(|record| &record.files) {
            let text = self.text(&file.path).unwrap_or_default();
            let config = Syntax::named(&file.syntax).and_then(|it| Text::parse(it, &text).ok());
            let is_there = |name: &&String| config.as_ref()?.node().get(SERVERS)?.get(name);
            let added = file.added().filter(|name| is_there(name).is_some());
            self.remaining.extend(added.cloned());
        }
    }

    /// The secrets of a file that entries of an edited configuration refer to, which the undo keeps.
    fn needed(&self, file: &FileRecord) -> Option<Vec<String>> {
        let (config, ..) = self.outcomes.iter().find(|(path, outcome, _)| {
            let is_kept = matches!(outcome, Restored::Kept(_) | Restored::Relied(_));
            secrets_file(path) == file.path && is_kept
        })?;
        // A configuration that cannot be read refers to everything.
        let used = self.text(config).map(|text| references::variables(&text));
        let names = file.steps.iter().map(|step| step.path.join("."));
        let needed: Vec<String> = names
            .filter(|name| used.as_ref().is_none_or(|used| used.contains(name)))
            .collect();
        (!needed.is_empty()).then_some(needed)
    }

    /// A file as the undo leaves it so far.
    fn text(&self, path: &Path) -> Option<String> {
        match self.contents.iter().find(|(known, _)| known == path) {
            Some((_, content)) => content.clone(),
            None => fs::read_to_string(path).ok(),
        }
    }

    fn set(&mut self, path: &Path, content: Option<String>) {
        self.contents.retain(|(known, _)| known != path);
        self.contents.push((path.to_owned(), content));
    }
}

/// The servers that left the file of a client and are among the `keys` that an undo keeps; `directory` has the files of the run.
fn unreturned(file: &FileRecord, keys: &[String], directory: &Path) -> Vec<Unreturned> {
    let is_kept = |at: usize, name: &String| {
        let mut kept = file
            .steps
            .iter()
            .filter(|step| keys.contains(&step.path.join(".")));
        kept.any(|step| match file.left.get(at) {
            Some(path) => step.path == *path,
            None => step.path.last() == Some(name),
        })
    };
    let left = file.moved.iter().enumerate();
    let left = left.filter(|(at, [name, _])| is_kept(*at, name));
    let left = left.map(|(_, [name, here])| Unreturned {
        client: file.client.clone().unwrap_or_default(),
        path: file.path.clone(),
        name: name.clone(),
        here: here.clone(),
        whereabouts: Whereabouts::Here,
        backup: directory.join(file.before.as_deref().unwrap_or_default()),
    });
    left.collect()
}

/// Whether a file has nothing in it.
fn is_blank(text: &str) -> bool {
    let rest: String = text.split_whitespace().collect();
    rest.is_empty() || rest == "{}"
}

/// `current` without our steps, and the keys of the steps that are no longer ours.
///
/// # Errors
/// When it cannot be parsed, or a value that we have taken out cannot be put back.
fn without(
    before: &str,
    after: &str,
    current: &str,
    syntax: Syntax,
    steps: &[Step],
) -> Result<(String, Vec<String>), TextError> {
    let mut text = Text::parse(syntax, current)?;
    let old = Text::parse(syntax, before).map_or(Node::Null, |text| text.node().clone());
    let mut wanted = text.node().clone();
    let (mut ours, mut kept) = (Vec::new(), Vec::new());
    for step in steps.iter().rev() {
        let there = wanted.at(&step.path);
        let is_gone = there.is_none() && step.after.is_none();
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
        if let Some(value) = step.before.as_ref().filter(|_| is_gone && !may) {
            // It says why there is no place for the value.
            text.set(&step.path, value)?;
        }
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
        return Ok((lines, kept));
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
        match done {
            Err(error) if step.before.is_some() && step.after.is_none() => return Err(error),
            Err(_) => kept.push(step.path.join(".")),
            Ok(()) => {}
        }
    }
    Ok((text.text(), kept))
}

/// The deepest parent of `path` that is empty now and did not exist before.
pub(in crate::clients) fn left_empty(
    now: &Node,
    before: &Node,
    path: &[String],
) -> Option<Vec<String>> {
    let prefixes = (1..path.len()).rev().map(|length| &path[..length]);
    let is_left = |prefix: &&[String]| {
        before.at(prefix).is_none()
            && now
                .at(prefix)
                .is_some_and(|node| node.is_same(&Node::Map(Vec::new())))
    };
    prefixes.into_iter().find(is_left).map(<[String]>::to_vec)
}
