//! The built-in tool that reads stored results.

use std::ops::Range;

use regex::RegexBuilder;
use serde_json::value::RawValue;

use super::Answers;
use super::answer::place;
use super::content::{Content, HEAD, head};
use super::projection::{Selector, input_of, shape_of};
use crate::mcp::Object;
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply};
use crate::results::{ResultLocation, Shelf};
use crate::statistics::Answer;

/// The maximum number of lines that a search in a stored result shows.
const MOST_LINES: usize = 200;

/// The share of the filter workers for a command of the user, which has no client.
const COMMAND_LINE: u64 = u64::MAX;

/// The requested part of a stored result.
enum Part {
    /// The output of a filter on its data or text.
    Data,
    /// A range of characters.
    Range(Range<usize>),
    /// The lines that match.
    Lines(String),
}

impl Answers {
    /// Reads a stored result: `{id, select | offset, limit | grep}`.
    pub(in crate::proxy) async fn read_result(
        &self,
        view: &View,
        arguments: &Object<'_>,
        caller: Option<&Caller>,
    ) -> Reply {
        let reply = self.part(view, arguments, caller).await;
        self.counted(Answer::Part, reply)
    }

    async fn part(&self, view: &View, arguments: &Object<'_>, caller: Option<&Caller>) -> Reply {
        let Some(id) = arguments.text("id") else {
            return Reply::tool_error("read_result needs the `id` of a stored result");
        };
        let number = |key: &str| {
            arguments
                .get(key)
                .and_then(|raw| raw.get().parse::<usize>().ok())
        };
        let filter = arguments.text("select");
        let part = match (&filter, arguments.text("grep")) {
            (Some(_), _) => Part::Data,
            (None, Some(pattern)) => Part::Lines(pattern),
            (None, None) => {
                let offset = number("offset").unwrap_or(0);
                Part::Range(offset..offset.saturating_add(number("limit").unwrap_or(HEAD)))
            }
        };
        let without_caller = || ResultLocation {
            shelf: Shelf::Run,
            holder: None,
        };
        let place = caller.map_or_else(without_caller, |caller| place(view, caller));
        let results = self.results.clone();
        let read = self
            .tasks
            .spawn_blocking(move || match results.load(&place, &id) {
                Ok(result) => read(&result, &id, &part),
                Err(error) => Err(Reply::tool_error(&error.to_string())),
            });
        let data = match read.await {
            Ok(Ok(data)) => data,
            Ok(Err(reply)) => return reply,
            Err(_) => return Reply::tool_error("the stored result cannot be read"),
        };
        match filter {
            Some(filter) => self.selection(view, caller, &data, &filter).await,
            None => Reply::tool_error("the stored result cannot be read"),
        }
    }

    async fn selection(
        &self,
        view: &View,
        caller: Option<&Caller>,
        data: &RawValue,
        filter: &str,
    ) -> Reply {
        let share = caller.map_or(COMMAND_LINE, |caller| caller.client.share());
        let filter = Selector::Agent(filter);
        match self.projection.select(share, filter, data).await {
            Ok(text) => {
                let length = text.chars().count();
                let budget = view.config().results.budget;
                if budget == 0 || length <= budget {
                    Reply::text(&text)
                } else {
                    Reply::text(&format!(
                        "{}\n… the selection has {length} characters; narrow it",
                        head(&text, HEAD)
                    ))
                }
            }
            Err(error) => Reply::tool_error(&format!("{error}\nThe data: {}", shape_of(data))),
        }
    }
}

/// The input of a filter, or else the answer.
fn read(result: &[u8], id: &str, part: &Part) -> Result<Box<RawValue>, Reply> {
    let Ok(raw) = serde_json::from_slice::<&RawValue>(result) else {
        return Err(Reply::tool_error(&format!(
            "the stored result `{id}` is damaged"
        )));
    };
    let object = Object::parse(raw).unwrap_or_default();
    match part {
        Part::Data => input_of(&object)
            .map(std::borrow::Cow::into_owned)
            .ok_or_else(|| Reply::tool_error("the stored result has neither text nor data")),
        Part::Range(range) => Err(characters(&Content::of(&object).readable(), range)),
        Part::Lines(pattern) => Err(grep(&Content::of(&object).readable(), pattern)),
    }
}

fn characters(text: &str, range: &Range<usize>) -> Reply {
    let part: String = text.chars().skip(range.start).take(range.len()).collect();
    let (end, total) = (range.start + part.chars().count(), text.chars().count());
    if end >= total {
        return Reply::text(&part);
    }
    Reply::text(&format!(
        "{part}\n… {end} of {total} characters; read on with \"offset\":{end}"
    ))
}

fn grep(text: &str, pattern: &str) -> Reply {
    let pattern = match RegexBuilder::new(pattern)
        .case_insensitive(true)
        .size_limit(1 << 20)
        .build()
    {
        Ok(pattern) => pattern,
        Err(error) => {
            return Reply::tool_error(&format!(
                "`grep` is not a valid regular expression: {error}"
            ));
        }
    };
    let mut found = text
        .lines()
        .enumerate()
        .filter(|(_, line)| pattern.is_match(line));
    let lines: Vec<String> = found
        .by_ref()
        .take(MOST_LINES)
        .map(|(number, line)| format!("{}: {}", number + 1, head(line, 500)))
        .collect();
    let more = found.count();
    match (lines.is_empty(), more) {
        (true, _) => Reply::text("no line matches"),
        (false, 0) => Reply::text(&lines.join("\n")),
        (false, more) => Reply::text(&format!("{}\n… {more} more lines match", lines.join("\n"))),
    }
}
