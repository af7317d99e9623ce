//! The notes server: a notebook in one file.

mod notebook;
mod organise;
mod write;

use std::path::Path;

use serde_json::{Value, json};

use self::notebook::Note;
use super::file::JsonFile;
use super::moment;
use super::schema::{COUNT, Field, IDENTIFIER, Kind, TEXTS, required};
use super::server::Service;
use super::tool::Output;

pub(super) const SERVICE: Service = Service {
    name: "notes",
    title: "Notes",
    instructions: "A notebook that lasts. Write, read, search, tag, pin and export notes. Notes have numbers: find one \
                   with search_notes or list_notes, then use its id. Tags are lower case, `#` is optional.",
    groups: &[write::TOOLS, organise::TOOLS],
};

const NOTE: &[Field] = &[
    required("id", IDENTIFIER, "The note's number."),
    required("title", Kind::Text, "Its title."),
    required("body", Kind::Text, "Its text, Markdown."),
    required("tags", TEXTS, "Its tags."),
    required("pinned", Kind::Flag, "Whether it is pinned."),
    required("created", Kind::Moment, "When it was written."),
    required("updated", Kind::Moment, "When it was last changed."),
];

/// A note in a list: what it takes to choose one.
const ENTRY: &[Field] = &[
    required("id", IDENTIFIER, "The note's number."),
    required("title", Kind::Text, "Its title."),
    required("excerpt", Kind::Text, "A piece of its text."),
    required("tags", TEXTS, "Its tags."),
    required("pinned", Kind::Flag, "Whether it is pinned."),
    required("updated", Kind::Moment, "When it was last changed."),
];

const ENTRIES: &[Field] = &[
    required("notes", Kind::List(&Kind::Object(ENTRY)), "The notes."),
    required(
        "total",
        COUNT,
        "How many notes there are in all, also beyond the limit.",
    ),
];

const ID: Field = required(
    "id",
    IDENTIFIER,
    "The note's number, from list_notes or search_notes.",
);

fn file(store: &Path) -> JsonFile {
    JsonFile::new(store, "notes")
}

fn data(note: &Note) -> Output {
    Output::Data(serde_json::to_value(note).unwrap_or_default())
}

fn entry(note: &Note, query: &str) -> Value {
    json!({
        "id": note.id,
        "title": note.title,
        "excerpt": note.excerpt(query),
        "tags": note.tags,
        "pinned": note.pinned,
        "updated": moment::written(note.updated),
    })
}

/// The first `limit` of the notes, and how many there are.
fn entries<'a>(notes: impl IntoIterator<Item = &'a Note>, limit: usize, query: &str) -> Output {
    let notes: Vec<_> = notes.into_iter().collect();
    let shown: Vec<_> = notes
        .iter()
        .take(limit)
        .map(|note| entry(note, query))
        .collect();
    Output::Data(json!({ "notes": shown, "total": notes.len() }))
}

#[cfg(test)]
mod tests {
    use super::super::{Server, trial};
    use super::*;

    #[test]
    fn every_tool_does_what_it_says() {
        let note = |id| json!({ "id": id });
        trial::check(
            Server::Notes,
            &[
                (
                    "create_note",
                    json!({"title": "Trip", "body": "Book the train\nPack", "tags": ["#Travel", "travel"]}),
                    json!({"id": 1, "tags": ["travel"], "pinned": false, "created": "2026-03-04T10:00:00Z"}),
                ),
                (
                    "create_note",
                    json!({"title": "Shopping"}),
                    json!({"id": 2, "body": ""}),
                ),
                (
                    "create_note",
                    json!({"title": " "}),
                    json!({"error": "needs a title"}),
                ),
                (
                    "append_to_note",
                    json!({"id": 2, "text": "- milk"}),
                    json!({"body": "- milk"}),
                ),
                (
                    "append_to_note",
                    json!({"id": 2, "text": "- train ticket"}),
                    json!({"body": "- milk\n- train ticket"}),
                ),
                (
                    "update_note",
                    json!({"id": 1, "title": "Trip to Oslo"}),
                    json!({"body": "Book the train\nPack"}),
                ),
                (
                    "update_note",
                    json!({"id": 1}),
                    json!({"error": "nothing to change"}),
                ),
                ("get_note", note(1), json!({"title": "Trip to Oslo"})),
                ("get_note", note(9), json!({"error": "There is no note 9"})),
                (
                    "search_notes",
                    json!({"query": "TRAIN"}),
                    json!({"notes": [{"id": 1, "excerpt": "Book the train Pack"}, {"id": 2}], "total": 2}),
                ),
                (
                    "search_notes",
                    json!({"query": "train oslo"}),
                    json!({"notes": [{"id": 1}], "total": 1}),
                ),
                (
                    "search_notes",
                    json!({"query": "train", "limit": 1}),
                    json!({"notes": [{"id": 1}], "total": 2}),
                ),
                (
                    "add_tags",
                    json!({"id": 2, "tags": ["home", "Travel"]}),
                    json!({"tags": ["home", "travel"]}),
                ),
                (
                    "remove_tags",
                    json!({"id": 2, "tags": ["#TRAVEL"]}),
                    json!({"tags": ["home"]}),
                ),
                ("pin_note", note(2), json!({"pinned": true})),
                (
                    "list_notes",
                    json!({}),
                    json!({"notes": [{"id": 2}, {"id": 1}], "total": 2}),
                ),
                (
                    "list_notes",
                    json!({"tag": "travel"}),
                    json!({"notes": [{"id": 1}]}),
                ),
                (
                    "list_notes",
                    json!({"pinned": false}),
                    json!({"notes": [{"id": 1}]}),
                ),
                ("unpin_note", note(2), json!({"pinned": false})),
                (
                    "list_notes",
                    json!({"sort": "title"}),
                    json!({"notes": [{"id": 2}, {"id": 1}]}),
                ),
                (
                    "rename_tag",
                    json!({"from": "home", "to": "Travel"}),
                    json!({"changed": 1}),
                ),
                (
                    "rename_tag",
                    json!({"from": "none", "to": "x"}),
                    json!({"error": "No note has the tag"}),
                ),
                (
                    "list_tags",
                    json!({}),
                    json!({"tags": [{"tag": "travel", "notes": 2}]}),
                ),
                (
                    "merge_notes",
                    json!({"into": 1, "from": 2}),
                    json!({"id": 1, "body": "Book the train\nPack\n\n- milk\n- train ticket"}),
                ),
                (
                    "merge_notes",
                    json!({"into": 1, "from": 1}),
                    json!({"error": "itself"}),
                ),
                ("get_note", note(2), json!({"error": "There is no note 2"})),
                (
                    "export_notes",
                    json!({"format": "markdown"}),
                    json!(
                        "# Trip to Oslo\n\nNote 1, 2026-03-04T10:00:00Z #travel\n\nBook the train\nPack\n\n- milk\n- train ticket\n\n"
                    ),
                ),
                (
                    "delete_note",
                    note(1),
                    json!({"id": 1, "title": "Trip to Oslo"}),
                ),
                (
                    "delete_note",
                    note(1),
                    json!({"error": "There is no note 1"}),
                ),
                ("create_note", json!({"title": "New"}), json!({"id": 3})),
            ],
        );
    }

    #[test]
    fn an_excerpt_is_cut_between_characters() {
        let mut book = super::notebook::Notebook::default();
        let body = format!("{} needle {}", "İß".repeat(60), "ü".repeat(300));
        let note = book.add("t", &body, &[], time::OffsetDateTime::UNIX_EPOCH);
        assert!(
            note.excerpt("NEEDLE").contains("needle"),
            "{}",
            note.excerpt("NEEDLE")
        );
    }
}
