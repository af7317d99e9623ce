//! Tools that keep the notebook in order.

use std::cmp::Reverse;

use serde_json::json;

use super::notebook::{Notebook, tag_text};
use super::write::edit;
use super::{ENTRIES, ID, NOTE, entries, file};
use crate::demo::arguments::Arguments;
use crate::demo::schema::{COUNT, Field, Kind, TEXTS, optional, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool};

const TAG_COUNT: &[Field] = &[
    required("tag", Kind::Text, "The tag."),
    required("notes", COUNT, "How many notes have it."),
];

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "list_notes",
        title: "List notes",
        description: "List notes with title, tags and the beginning of their text, pinned ones first; only those with a \
                      certain tag, or only pinned ones, if so wanted.",
        effect: Effect::Reads,
        parameters: &[
            optional("tag", Kind::Text, "Only notes with this tag."),
            optional(
                "pinned",
                Kind::Flag,
                "Only pinned notes (true) or only others (false).",
            ),
            with_default(
                "sort",
                Kind::Choice(&["updated", "created", "title"]),
                "\"updated\"",
                "The order; times latest first.",
            ),
            with_default(
                "limit",
                Kind::Integer(1, 1000),
                "50",
                "How many notes to return at most.",
            ),
        ],
        returns: ENTRIES,
        run: list,
    },
    Tool {
        name: "add_tags",
        title: "Tag note",
        description: "Add tags to a note. Tags that it has already are kept.",
        effect: Effect::Marks,
        parameters: &[
            ID,
            required("tags", TEXTS, "The tags to add, with or without `#`."),
        ],
        returns: NOTE,
        run: |context, arguments| {
            edit(context, arguments.integer("id"), |note| {
                note.add_tags(&arguments.texts("tags"));
            })
        },
    },
    Tool {
        name: "remove_tags",
        title: "Untag note",
        description: "Take tags off a note. Tags that it does not have are passed over.",
        effect: Effect::Replaces,
        parameters: &[ID, required("tags", TEXTS, "The tags to take off.")],
        returns: NOTE,
        run: |context, arguments| {
            edit(context, arguments.integer("id"), |note| {
                note.remove_tags(&arguments.texts("tags"));
            })
        },
    },
    Tool {
        name: "list_tags",
        title: "List tags",
        description: "List all tags in use, by name, with the number of notes that carry each.",
        effect: Effect::Reads,
        parameters: &[],
        returns: &[required(
            "tags",
            Kind::List(&Kind::Object(TAG_COUNT)),
            "The tags.",
        )],
        run: |context, _| {
            let book: Notebook = file(&context.store).read()?;
            let tags: Vec<_> = book
                .tags()
                .into_iter()
                .map(|(tag, notes)| json!({ "tag": tag, "notes": notes }))
                .collect();
            Ok(Output::Data(json!({ "tags": tags })))
        },
    },
    Tool {
        name: "rename_tag",
        title: "Rename tag",
        description: "Rename a tag on every note that has it. If the new name is in use, the two tags become one.",
        effect: Effect::Replaces,
        parameters: &[
            required("from", Kind::Text, "The tag as it is now."),
            required("to", Kind::Text, "What it shall be called."),
        ],
        returns: &[required("changed", COUNT, "How many notes were changed.")],
        run: rename_tag,
    },
    Tool {
        name: "pin_note",
        title: "Pin note",
        description: "Pin a note, so that it comes first in lists.",
        effect: Effect::Marks,
        parameters: &[ID],
        returns: NOTE,
        run: |context, arguments| edit(context, arguments.integer("id"), |note| note.pinned = true),
    },
    Tool {
        name: "unpin_note",
        title: "Unpin note",
        description: "Take the pin off a note, so that it is sorted among the others.",
        effect: Effect::Marks,
        parameters: &[ID],
        returns: NOTE,
        run: |context, arguments| {
            edit(context, arguments.integer("id"), |note| note.pinned = false)
        },
    },
    Tool {
        name: "export_notes",
        title: "Export notes",
        description: "Return the whole notebook in full, as one Markdown document or as JSON. The result can be large.",
        effect: Effect::Reads,
        parameters: &[with_default(
            "format",
            Kind::Choice(&["markdown", "json"]),
            "\"markdown\"",
            "The format.",
        )],
        returns: &[],
        run: |context, arguments| {
            let book: Notebook = file(&context.store).read()?;
            Ok(Output::Text(match arguments.text("format") {
                "json" => serde_json::to_string_pretty(&book.notes).unwrap_or_default(),
                _ => book.markdown(),
            }))
        },
    },
];

fn list(context: &Context, arguments: &Arguments) -> Outcome {
    let mut book: Notebook = file(&context.store).read()?;
    match arguments.text("sort") {
        "title" => book
            .notes
            .sort_by_key(|note| (!note.pinned, note.title.to_lowercase())),
        "created" => book
            .notes
            .sort_by_key(|note| (!note.pinned, Reverse((note.created, note.id)))),
        _ => book
            .notes
            .sort_by_key(|note| (!note.pinned, Reverse((note.updated, note.id)))),
    }
    let pinned = arguments.get("pinned").map(|_| arguments.flag("pinned"));
    let chosen = book.notes.iter().filter(|note| {
        arguments
            .optional_text("tag")
            .is_none_or(|tag| note.has_tag(tag))
            && pinned.is_none_or(|p| note.pinned == p)
    });
    Ok(entries(chosen, arguments.size("limit"), ""))
}

fn rename_tag(context: &Context, arguments: &Arguments) -> Outcome {
    let (from, to) = (arguments.text("from"), arguments.text("to"));
    if tag_text(to).is_empty() {
        return Err("A tag needs a name.".to_owned());
    }
    file(&context.store).change(|book: &mut Notebook| {
        let mut changed = 0;
        for note in book.notes.iter_mut().filter(|note| note.has_tag(from)) {
            note.remove_tags(&[from]);
            note.add_tags(&[to]);
            changed += 1;
        }
        if changed == 0 {
            return Err(format!(
                "No note has the tag `{}`. list_tags shows which there are.",
                tag_text(from)
            ));
        }
        Ok(Output::Data(json!({ "changed": changed })))
    })
}
