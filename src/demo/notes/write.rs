//! Tools that write and read notes.

use super::notebook::Notebook;
use super::{ENTRIES, ID, NOTE, data, entries, file};
use crate::demo::arguments::Arguments;
use crate::demo::schema::{IDENTIFIER, Kind, TEXTS, optional, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "create_note",
        title: "Create note",
        description: "Write a new note with a title, a Markdown body and tags. Returns the note with the id it was given.",
        effect: Effect::Adds,
        parameters: &[
            required("title", Kind::Text, "A short title."),
            with_default("body", Kind::Text, "\"\"", "The text, Markdown."),
            with_default("tags", TEXTS, "[]", "Tags to find it by."),
        ],
        returns: NOTE,
        run: create,
    },
    Tool {
        name: "get_note",
        title: "Read note",
        description: "Read one note in full by its id: the whole text, its tags, and when it was written and changed.",
        effect: Effect::Reads,
        parameters: &[ID],
        returns: NOTE,
        run: |context, arguments| {
            let mut book: Notebook = file(&context.store).read()?;
            Ok(data(book.note(arguments.integer("id"))?))
        },
    },
    Tool {
        name: "search_notes",
        title: "Search notes",
        description: "Find notes that contain all words of a query in title, text or tags, letter case aside. The best \
                      matches come first, each with an excerpt around the match.",
        effect: Effect::Reads,
        parameters: &[
            required("query", Kind::Text, "Words to look for."),
            with_default(
                "limit",
                Kind::Integer(1, 100),
                "10",
                "How many notes to return at most.",
            ),
        ],
        returns: ENTRIES,
        run: |context, arguments| {
            let book: Notebook = file(&context.store).read()?;
            let query = arguments.text("query");
            Ok(entries(book.search(query), arguments.size("limit"), query))
        },
    },
    Tool {
        name: "update_note",
        title: "Update note",
        description: "Replace a note's title, its body, or both. What is left out stays as it is; the old text is lost.",
        effect: Effect::Replaces,
        parameters: &[
            ID,
            optional("title", Kind::Text, "The new title."),
            optional("body", Kind::Text, "The new text, in place of the old."),
        ],
        returns: NOTE,
        run: update,
    },
    Tool {
        name: "append_to_note",
        title: "Append to note",
        description: "Add text at the end of a note, on a new line, leaving what it says already.",
        effect: Effect::Adds,
        parameters: &[ID, required("text", Kind::Text, "The text to add.")],
        returns: NOTE,
        run: append,
    },
    Tool {
        name: "merge_notes",
        title: "Merge notes",
        description: "Move the text and the tags of one note to the end of another, and delete the first.",
        effect: Effect::Replaces,
        parameters: &[
            required("into", IDENTIFIER, "The id of the note that stays."),
            required(
                "from",
                IDENTIFIER,
                "The id of the note that is added to it and deleted.",
            ),
        ],
        returns: NOTE,
        run: merge,
    },
    Tool {
        name: "delete_note",
        title: "Delete note",
        description: "Delete a note for good. Returns the note as it was, so that it can be written again.",
        effect: Effect::Replaces,
        parameters: &[ID],
        returns: NOTE,
        run: |context, arguments| {
            let gone = file(&context.store)
                .change(|book: &mut Notebook| book.remove(arguments.integer("id")))?;
            Ok(data(&gone))
        },
    },
];

fn create(context: &Context, arguments: &Arguments) -> Outcome {
    let title = titled(arguments.text("title"))?;
    file(&context.store).change(|book: &mut Notebook| {
        Ok(data(book.add(
            title,
            arguments.text("body"),
            &arguments.texts("tags"),
            (context.now)(),
        )))
    })
}

fn update(context: &Context, arguments: &Arguments) -> Outcome {
    let title = arguments.optional_text("title").map(titled).transpose()?;
    let body = arguments.optional_text("body");
    if title.is_none() && body.is_none() {
        return Err("There is nothing to change: give a `title`, a `body` or both.".to_owned());
    }
    edit(context, arguments.integer("id"), |note| {
        if let Some(title) = title {
            title.clone_into(&mut note.title);
        }
        if let Some(body) = body {
            body.clone_into(&mut note.body);
        }
    })
}

fn append(context: &Context, arguments: &Arguments) -> Outcome {
    edit(context, arguments.integer("id"), |note| {
        if !note.body.is_empty() && !note.body.ends_with('\n') {
            note.body.push('\n');
        }
        note.body.push_str(arguments.text("text"));
    })
}

fn merge(context: &Context, arguments: &Arguments) -> Outcome {
    let (into, from) = (arguments.integer("into"), arguments.integer("from"));
    if into == from {
        return Err("A note cannot be merged into itself.".to_owned());
    }
    file(&context.store).change(|book: &mut Notebook| {
        // Both must exist before either is touched.
        book.note(into)?;
        let gone = book.remove(from)?;
        let note = book.note(into)?;
        note.body = format!("{}\n\n{}", note.body.trim_end(), gone.body)
            .trim()
            .to_owned();
        note.add_tags(&gone.tags.iter().map(String::as_str).collect::<Vec<_>>());
        note.updated = (context.now)();
        Ok(data(note))
    })
}

/// Changes a note and answers it.
pub(super) fn edit(
    context: &Context,
    id: i64,
    change: impl FnOnce(&mut super::Note),
) -> Result<Output, String> {
    file(&context.store).change(|book: &mut Notebook| {
        let note = book.note(id)?;
        change(note);
        note.updated = (context.now)();
        Ok(data(note))
    })
}

fn titled(title: &str) -> Result<&str, String> {
    let title = title.trim();
    if title.is_empty() {
        Err("A note needs a title.".to_owned())
    } else {
        Ok(title)
    }
}
