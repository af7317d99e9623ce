//! Tools for JSON, CSV and tables.

use serde_json::{Map, Value, json};

use super::csv::rows;
use super::json_text::laid_out;
use crate::demo::arguments::Arguments;
use crate::demo::schema::{Field, Kind, TEXTS, optional, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool};

const JSON: Field = required("json", Kind::Text, "The JSON text.");
const TEXT_MAP: Kind = Kind::Map(&Kind::Text);

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "format_json",
        title: "Format JSON",
        description: "Lay out JSON readably or, with indent 0, minify it onto one line. Order and numbers stay as they are.",
        effect: Effect::Reads,
        parameters: &[
            JSON,
            with_default("indent", Kind::Integer(0, 8), "2", "Spaces for each level."),
        ],
        returns: &[],
        run: |_, arguments| {
            parse(arguments.text("json"))?;
            Ok(Output::Text(laid_out(
                arguments.text("json"),
                arguments.size("indent"),
            )))
        },
    },
    Tool {
        name: "validate_json",
        title: "Validate JSON",
        description: "Check whether a text is valid JSON and tell where the first mistake is.",
        effect: Effect::Reads,
        parameters: &[JSON],
        returns: &[
            required("valid", Kind::Flag, "Whether it is JSON."),
            optional("error", Kind::Text, "What is wrong."),
            optional("line", Kind::Integer(0, i64::MAX), "In which line."),
            optional(
                "column",
                Kind::Integer(0, i64::MAX),
                "At which byte of the line.",
            ),
        ],
        run: |_, arguments| {
            Ok(Output::Data(
                match serde_json::from_str::<Value>(arguments.text("json")) {
                    Ok(_) => json!({ "valid": true }),
                    Err(e) => {
                        json!({ "valid": false, "error": e.to_string(), "line": e.line(), "column": e.column() })
                    }
                },
            ))
        },
    },
    Tool {
        name: "get_json_value",
        title: "Look up in JSON",
        description: "Return one value from inside a JSON document by its JSON Pointer (RFC 6901), e.g. /users/0/name.",
        effect: Effect::Reads,
        parameters: &[
            JSON,
            required(
                "pointer",
                Kind::Text,
                "Where the value is; empty for the whole document.",
            ),
        ],
        returns: &[required("value", Kind::Any, "The value.")],
        run: look_up,
    },
    Tool {
        name: "csv_to_json",
        title: "CSV to JSON",
        description: "Turn CSV, whose first row names the columns, into a list of objects. Quoted cells may have line breaks.",
        effect: Effect::Reads,
        parameters: &[
            required("csv", Kind::Text, "The CSV text."),
            with_default(
                "delimiter",
                Kind::Choice(&[",", ";", "\t", "|"]),
                "\",\"",
                "What separates the cells.",
            ),
        ],
        returns: &[
            required("columns", TEXTS, "The columns, in their order."),
            required(
                "rows",
                Kind::List(&TEXT_MAP),
                "An object for each row; all values are texts.",
            ),
        ],
        run: from_csv,
    },
    Tool {
        name: "markdown_table",
        title: "Markdown table",
        description: "Write rows of cells as an aligned Markdown table.",
        effect: Effect::Reads,
        parameters: &[
            required("headers", TEXTS, "The heads of the columns."),
            required(
                "rows",
                Kind::List(&TEXTS),
                "The cells, row by row; missing ones stay empty.",
            ),
            with_default(
                "align",
                Kind::List(&Kind::Choice(&["left", "right"])),
                "[]",
                "How each column is aligned, left unless it says otherwise.",
            ),
        ],
        returns: &[],
        run: markdown_table,
    },
];

fn parse(json: &str) -> Result<Value, String> {
    serde_json::from_str(json).map_err(|error| format!("The text is not JSON: {error}."))
}

fn look_up(_: &Context, arguments: &Arguments) -> Outcome {
    let (document, pointer) = (parse(arguments.text("json"))?, arguments.text("pointer"));
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err("A JSON Pointer begins with `/`, unless it is empty.".to_owned());
    }
    if let Some(value) = document.pointer(pointer) {
        return Ok(Output::Data(json!({ "value": value })));
    }
    // The longest part that leads somewhere, so that the caller sees where it went wrong.
    let reached = pointer
        .match_indices('/')
        .rev()
        .map(|(at, _)| &pointer[..at])
        .find(|p| document.pointer(p).is_some());
    let reached = reached.unwrap_or_default();
    let there = match document.pointer(reached) {
        Some(Value::Object(members)) if members.is_empty() => {
            "an object without members".to_owned()
        }
        Some(Value::Object(members)) => {
            let names: Vec<_> = members
                .keys()
                .take(20)
                .map(|key| format!("`{key}`"))
                .collect();
            format!("an object with {}", names.join(", "))
        }
        Some(Value::Array(items)) => format!("an array of {} items", items.len()),
        _ => "neither an object nor an array".to_owned(),
    };
    Err(format!(
        "There is nothing at `{pointer}`: `{reached}` is {there}."
    ))
}

fn from_csv(_: &Context, arguments: &Arguments) -> Outcome {
    let delimiter = arguments.text("delimiter").chars().next().unwrap_or(',');
    let mut rows = rows(arguments.text("csv"), delimiter)?.into_iter();
    let columns = rows
        .next()
        .ok_or("The CSV text is empty: its first row must name the columns.")?;
    if let Some((at, name)) = columns
        .iter()
        .enumerate()
        .find(|(at, name)| columns[..*at].contains(name))
    {
        return Err(format!(
            "Column {} has the same name as another: `{name}`.",
            at + 1
        ));
    }
    let mut objects = Vec::new();
    for (at, row) in rows.enumerate() {
        if row.len() > columns.len() {
            return Err(format!(
                "The row {} has {} cells, but there are {} columns.",
                at + 2,
                row.len(),
                columns.len()
            ));
        }
        let cells = row.into_iter().chain(std::iter::repeat(String::new()));
        let object: Map<_, _> = columns
            .iter()
            .cloned()
            .zip(cells.map(Value::from))
            .collect();
        objects.push(object);
    }
    Ok(Output::Data(json!({ "columns": columns, "rows": objects })))
}

fn markdown_table(_: &Context, arguments: &Arguments) -> Outcome {
    let cells = |items: &[Value]| -> Vec<String> {
        items
            .iter()
            .filter_map(Value::as_str)
            .map(|cell| cell.replace('|', "\\|").replace('\n', "<br>"))
            .collect()
    };
    let headers = cells(arguments.list("headers"));
    let rows: Vec<_> = arguments
        .list("rows")
        .iter()
        .filter_map(Value::as_array)
        .map(|row| cells(row))
        .collect();
    if headers.is_empty() {
        return Err("A table needs at least one column in `headers`.".to_owned());
    }
    if let Some(at) = rows.iter().position(|row| row.len() > headers.len()) {
        return Err(format!(
            "The row {} has more cells than there are headers.",
            at + 1
        ));
    }
    let align = arguments.texts("align");
    let columns: Vec<_> = (0..headers.len())
        .map(|i| {
            let widest = rows
                .iter()
                .chain([&headers])
                .filter_map(|row| row.get(i))
                .map(|cell| cell.chars().count())
                .max();
            (
                widest.unwrap_or_default().max(3),
                align.get(i) == Some(&"right"),
            )
        })
        .collect();
    let line = |row: &[String]| {
        let cells = columns.iter().enumerate().map(|(i, (width, right))| {
            let cell = row.get(i).map_or("", String::as_str);
            if *right {
                format!(" {cell:>width$} |")
            } else {
                format!(" {cell:<width$} |")
            }
        });
        format!("|{}\n", cells.collect::<String>())
    };
    let rule: Vec<String> = columns
        .iter()
        .map(|(width, right)| {
            if *right {
                format!("{}:", "-".repeat(width - 1))
            } else {
                format!(":{}", "-".repeat(width - 1))
            }
        })
        .collect();
    Ok(Output::Text(
        [&headers, &rule]
            .into_iter()
            .chain(&rows)
            .map(|row| line(row))
            .collect(),
    ))
}
