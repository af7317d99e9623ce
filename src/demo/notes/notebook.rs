//! The notes and what can be asked of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::demo::letter_case::prefix_length;
use crate::demo::moment;

/// All notes, oldest first.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Notebook {
    /// The last number given to a note. Numbers of deleted notes are not given again.
    last_id: i64,
    pub(super) notes: Vec<Note>,
}

/// A note; also the shape in which tools answer it.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Note {
    pub(super) id: i64,
    pub(super) title: String,
    pub(super) body: String,
    pub(super) tags: Vec<String>,
    pub(super) pinned: bool,
    #[serde(with = "moment")]
    pub(super) created: OffsetDateTime,
    #[serde(with = "moment")]
    pub(super) updated: OffsetDateTime,
}

impl Notebook {
    pub(super) fn add(
        &mut self,
        title: &str,
        body: &str,
        tags: &[&str],
        now: OffsetDateTime,
    ) -> &mut Note {
        self.last_id += 1;
        let mut note = Note {
            id: self.last_id,
            title: title.to_owned(),
            body: body.to_owned(),
            tags: Vec::new(),
            pinned: false,
            created: now,
            updated: now,
        };
        note.add_tags(tags);
        self.notes.push(note);
        self.notes
            .last_mut()
            .expect("a note was added in the line above")
    }

    /// The note of that number.
    ///
    /// # Errors
    /// When there is none, with how to find one.
    pub(super) fn note(&mut self, id: i64) -> Result<&mut Note, String> {
        self.notes
            .iter_mut()
            .find(|note| note.id == id)
            .ok_or_else(|| no_note(id))
    }

    /// Takes the note of that number out.
    ///
    /// # Errors
    /// When there is none, with how to find one.
    pub(super) fn remove(&mut self, id: i64) -> Result<Note, String> {
        let at = self
            .notes
            .iter()
            .position(|note| note.id == id)
            .ok_or_else(|| no_note(id))?;
        Ok(self.notes.remove(at))
    }

    /// Notes that contain every word of `query`, the ones with more of them in the title first.
    pub(super) fn search(&self, query: &str) -> Vec<&Note> {
        let words: Vec<_> = query.split_whitespace().map(str::to_lowercase).collect();
        let mut found: Vec<(usize, &Note)> = self
            .notes
            .iter()
            .filter_map(|note| Some((note.score(&words)?, note)))
            .collect();
        found.sort_by_key(|(score, note)| (std::cmp::Reverse(*score), note.id));
        found.into_iter().map(|(_, note)| note).collect()
    }

    /// Every tag with the number of notes that have it.
    pub(super) fn tags(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for tag in self.notes.iter().flat_map(|note| &note.tags) {
            *counts.entry(tag.as_str()).or_default() += 1;
        }
        counts
    }

    /// All notes as one Markdown document.
    pub(super) fn markdown(&self) -> String {
        let mut document = String::new();
        for note in &self.notes {
            let tags: String = note.tags.iter().map(|tag| format!(" #{tag}")).collect();
            // Writing to a `String` cannot fail.
            let _ = write!(
                document,
                "# {}\n\nNote {}, {}{tags}\n\n",
                note.title,
                note.id,
                moment::written(note.updated)
            );
            if !note.body.is_empty() {
                let _ = write!(document, "{}\n\n", note.body.trim_end());
            }
        }
        document
    }
}

impl Note {
    pub(super) fn has_tag(&self, tag: &str) -> bool {
        self.tags.contains(&tag_text(tag))
    }

    pub(super) fn add_tags(&mut self, tags: &[&str]) {
        self.tags.extend(
            tags.iter()
                .map(|tag| tag_text(tag))
                .filter(|tag| !tag.is_empty()),
        );
        self.tags.sort();
        self.tags.dedup();
    }

    pub(super) fn remove_tags(&mut self, tags: &[&str]) {
        self.tags
            .retain(|tag| tags.iter().all(|gone| tag_text(gone) != *tag));
    }

    /// A piece of the body around the first of the words that stands in it.
    pub(super) fn excerpt(&self, query: &str) -> String {
        const BEFORE: usize = 40;
        const LENGTH: usize = 160;
        let words: Vec<_> = query.split_whitespace().collect();
        let is_match = |(at, _): (usize, char)| {
            words
                .iter()
                .any(|word| prefix_length(&self.body[at..], word).is_some())
        };
        let start = self
            .body
            .char_indices()
            .position(is_match)
            .unwrap_or_default()
            .saturating_sub(BEFORE);
        let piece: String = self.body.chars().skip(start).take(LENGTH).collect();
        piece.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// How many of the words stand in the title; `None` when one stands nowhere.
    fn score(&self, words: &[String]) -> Option<usize> {
        let title = self.title.to_lowercase();
        let rest = format!("{}\n{}", self.body.to_lowercase(), self.tags.join("\n"));
        let everywhere = words
            .iter()
            .all(|word| title.contains(word) || rest.contains(word));
        everywhere.then(|| words.iter().filter(|word| title.contains(*word)).count())
    }
}

/// A tag is the same with and without `#` and in any letter case.
pub(super) fn tag_text(tag: &str) -> String {
    tag.trim().trim_start_matches('#').to_lowercase()
}

fn no_note(id: i64) -> String {
    format!("There is no note {id}. list_notes and search_notes show which there are.")
}
