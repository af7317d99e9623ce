//! Tools for lines.

use std::cmp::Ordering;
use std::collections::HashSet;

use serde_json::json;

use super::TEXT;
use super::diff::{Change, diff};
use crate::demo::arguments::Arguments;
use crate::demo::schema::{COUNT, Kind, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "diff_texts",
        title: "Compare texts",
        description: "Compare two versions of a text line by line and show which lines were added and removed, as a diff.",
        effect: Effect::Reads,
        parameters: &[
            required("old", Kind::Text, "The text before."),
            required("new", Kind::Text, "The text after."),
            with_default(
                "changes_only",
                Kind::Flag,
                "false",
                "Whether to leave out lines that stayed the same.",
            ),
        ],
        returns: &[
            required(
                "diff",
                Kind::Text,
                "The lines, each after `+ `, `- ` or two spaces.",
            ),
            required("added", COUNT, "How many lines are new."),
            required("removed", COUNT, "How many lines are gone."),
            required("same", Kind::Flag, "Whether both have the same lines."),
        ],
        run: compare,
    },
    Tool {
        name: "sort_lines",
        title: "Sort lines",
        description: "Sort the lines of a text, by letters or by the number that each begins with.",
        effect: Effect::Reads,
        parameters: &[
            TEXT,
            with_default(
                "descending",
                Kind::Flag,
                "false",
                "Whether the last comes first.",
            ),
            with_default(
                "ignore_case",
                Kind::Flag,
                "false",
                "Whether letter case does not matter.",
            ),
            with_default(
                "numeric",
                Kind::Flag,
                "false",
                "Whether to go by the numbers at the beginning.",
            ),
        ],
        returns: &[],
        run: sort,
    },
    Tool {
        name: "dedupe_lines",
        title: "Remove duplicate lines",
        description: "Keep the first of equal lines and remove the others, wherever they stand.",
        effect: Effect::Reads,
        parameters: &[
            TEXT,
            with_default(
                "ignore_case",
                Kind::Flag,
                "false",
                "Whether letter case does not matter.",
            ),
            with_default(
                "trim",
                Kind::Flag,
                "false",
                "Whether white space around a line does not matter.",
            ),
        ],
        returns: &[
            required("text", Kind::Text, "The lines that stay."),
            required("removed", COUNT, "How many were removed."),
        ],
        run: dedupe,
    },
];

fn compare(_: &Context, arguments: &Arguments) -> Outcome {
    let changes = diff(arguments.text("old"), arguments.text("new")).ok_or(
        "The texts differ in too many lines to compare them: more than 4000 on each side.",
    )?;
    let changes_only = arguments.flag("changes_only");
    let mut text = String::new();
    let (mut added, mut removed) = (0, 0);
    for change in changes {
        let (mark, line) = match change {
            Change::Kept(_) if changes_only => continue,
            Change::Kept(line) => ("  ", line),
            Change::Added(line) => {
                added += 1;
                ("+ ", line)
            }
            Change::Removed(line) => {
                removed += 1;
                ("- ", line)
            }
        };
        text.extend([mark, line, "\n"]);
    }
    Ok(Output::Data(
        json!({ "diff": text, "added": added, "removed": removed, "same": added + removed == 0 }),
    ))
}

fn sort(_: &Context, arguments: &Arguments) -> Outcome {
    let key = |line: &str| {
        if arguments.flag("ignore_case") {
            line.to_lowercase()
        } else {
            line.to_owned()
        }
    };
    let by_text = |a: &&str, b: &&str| key(a).cmp(&key(b));
    let mut lines: Vec<_> = arguments.text("text").lines().collect();
    if arguments.flag("numeric") {
        lines.sort_by(|a, b| match (leading_number(a), leading_number(b)) {
            (Some(x), Some(y)) => x.total_cmp(&y),
            (Some(_), None) => Ordering::Greater,
            (None, Some(_)) => Ordering::Less,
            (None, None) => by_text(a, b),
        });
    } else {
        lines.sort_by(by_text);
    }
    if arguments.flag("descending") {
        lines.reverse();
    }
    Ok(Output::Text(lines.join("\n")))
}

fn leading_number(line: &str) -> Option<f64> {
    let line = line.trim_start();
    let end = line
        .find(|c: char| !(c.is_ascii_digit() || "+-.".contains(c)))
        .unwrap_or(line.len());
    line[..end].parse().ok()
}

fn dedupe(_: &Context, arguments: &Arguments) -> Outcome {
    let mut seen = HashSet::new();
    let lines: Vec<_> = arguments.text("text").lines().collect();
    let kept: Vec<_> = lines
        .iter()
        .copied()
        .filter(|line| {
            let line = if arguments.flag("trim") {
                line.trim()
            } else {
                line
            };
            seen.insert(if arguments.flag("ignore_case") {
                line.to_lowercase()
            } else {
                line.to_owned()
            })
        })
        .collect();
    Ok(Output::Data(
        json!({ "removed": lines.len() - kept.len(), "text": kept.join("\n") }),
    ))
}
