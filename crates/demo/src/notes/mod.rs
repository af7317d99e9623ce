//! The notes server: a notebook in one file.

use std::cmp::Reverse;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;
use time::serde::rfc3339;

use crate::store::{self, Record, Records};
use crate::tool::Output::Data;
use crate::tool::{Arguments, Context, Outcome, Output, Service};

pub(crate) static SERVICE: Service = Service {
    name: "notes",
    title: "Notes",
    instructions: "A notebook that lasts. Write, read, search, tag and pin notes. Notes have numbers: find one \
                   with search_notes or list_notes, then use its id. Tags are lower case, `#` is optional.",
    definitions: include_str!("tools.json"),
    tools: OnceLock::new(),
    call,
};

const FILE: &str = "notes.json";

type Notebook = Records<Note>;

/// A note. Tools return it in this form.
#[derive(Serialize, Deserialize)]
struct Note {
    id: i64,
    title: String,
    body: String,
    tags: Vec<String>,
    pinned: bool,
    #[serde(with = "rfc3339")]
    created: OffsetDateTime,
    #[serde(with = "rfc3339")]
    updated: OffsetDateTime,
}

fn call(tool: &str, context: &Context, args: &Arguments) -> Outcome {
    match tool {
        "create_note" => create(context, args),
        "get_note" => {
            let mut book: Notebook = store::read(&context.store, FILE)?;
            book.get(args.integer("id")).map(|note| Output::of(note))
        }
        "search_notes" => search(context, args),
        "update_note" => update(context, args),
        "append_to_note" => edit(context, args, |note| {
            if !note.body.is_empty() && !note.body.ends_with('\n') {
                note.body.push('\n');
            }
            note.body.push_str(args.text("text"));
        }),
        "delete_note" => store::change(&context.store, FILE, |book: &mut Notebook| {
            book.remove(args.integer("id"))
                .map(|note| Output::of(&note))
        }),
        "list_notes" => list(context, args),
        "add_tags" => edit(context, args, |note| {
            note.tags.append(&mut tags(args));
            note.tags.sort();
            note.tags.dedup();
        }),
        "pin_note" => edit(context, args, |note| note.pinned = true),
        "unpin_note" => edit(context, args, |note| note.pinned = false),
        _ => Err(format!("there is no tool `{tool}`")),
    }
}

fn create(context: &Context, args: &Arguments) -> Outcome {
    let title = args.title()?.unwrap_or_default();
    let now = (context.now)();
    let note = Note {
        id: 0,
        title,
        body: args.text("body").to_owned(),
        tags: tags(args),
        pinned: false,
        created: now,
        updated: now,
    };
    store::change(&context.store, FILE, |book: &mut Notebook| {
        Ok(Output::of(book.add(note)))
    })
}

fn update(context: &Context, args: &Arguments) -> Outcome {
    let title = args.title()?;
    let body = args.optional_text("body");
    if title.is_none() && body.is_none() {
        return Err("There is nothing to change: give a `title`, a `body` or both.".to_owned());
    }
    edit(context, args, |note| {
        note.title = title.unwrap_or_else(|| std::mem::take(&mut note.title));
        body.unwrap_or(&note.body.clone())
            .clone_into(&mut note.body);
    })
}

/// Changes the note with the given `id` and returns it.
fn edit(context: &Context, args: &Arguments, change: impl FnOnce(&mut Note)) -> Outcome {
    store::change(&context.store, FILE, |book: &mut Notebook| {
        let note = book.get(args.integer("id"))?;
        change(note);
        note.updated = (context.now)();
        Ok(Output::of(note))
    })
}

/// Notes that contain every word of the query. Those with all words in the title come first.
fn search(context: &Context, args: &Arguments) -> Outcome {
    let mut book: Notebook = store::read(&context.store, FILE)?;
    let text = |note: &Note| format!("{}\n{}\n{}", note.title, note.body, note.tags.join("\n"));
    book.items.retain(|note| args.is_sought(&text(note)));
    book.items.sort_by_key(|note| !args.is_sought(&note.title));
    Ok(entries(&book, args))
}

fn list(context: &Context, args: &Arguments) -> Outcome {
    let mut book: Notebook = store::read(&context.store, FILE)?;
    let tag = args.optional_text("tag").map(plain_tag);
    book.items.retain(|note| {
        tag.as_ref().is_none_or(|tag| note.tags.contains(tag))
            && (args.get("pinned").is_none() || note.pinned == args.flag("pinned"))
    });
    let notes = &mut book.items;
    match args.text("sort") {
        "title" => notes.sort_by_key(|note| note.title.to_lowercase()),
        "created" => notes.sort_by_key(|note| Reverse((note.created, note.id))),
        _ => notes.sort_by_key(|note| Reverse((note.updated, note.id))),
    }
    notes.sort_by_key(|note| !note.pinned);
    Ok(entries(&book, args))
}

/// The first notes up to the limit, with the fields that help to choose one, and their total number.
fn entries(book: &Notebook, args: &Arguments) -> Output {
    let entry = |note: &Note| {
        let excerpt: String = note.body.chars().take(160).collect();
        let excerpt = excerpt.split_whitespace().collect::<Vec<_>>().join(" ");
        json!({ "id": note.id, "title": note.title, "excerpt": excerpt, "tags": note.tags, "pinned": note.pinned })
    };
    let shown: Vec<_> = book
        .items
        .iter()
        .take(args.size("limit"))
        .map(entry)
        .collect();
    Data(json!({ "notes": shown, "total": book.items.len() }))
}

impl Record for Note {
    const NAME: &str = "note";
    fn id(&mut self) -> &mut i64 {
        &mut self.id
    }
}

/// The `tags` of a call without duplicates.
fn tags(args: &Arguments) -> Vec<String> {
    let mut tags: Vec<_> = args
        .texts("tags")
        .iter()
        .map(|tag| plain_tag(tag))
        .collect();
    tags.retain(|tag| !tag.is_empty());
    tags.sort();
    tags.dedup();
    tags
}

/// A tag without `#` and in lower case.
fn plain_tag(tag: &str) -> String {
    tag.trim().trim_start_matches('#').to_lowercase()
}
