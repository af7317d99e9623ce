//! The text server: counting, comparing, cleaning up and recoding. It keeps nothing.

mod csv;
mod data;
mod diff;
mod encoding;
mod extract;
mod json_text;
mod letters;
mod lines;
mod lorem;
mod writing;

use super::schema::{Field, Kind, required};
use super::server::Service;

pub(super) const SERVICE: Service = Service {
    name: "text",
    title: "Text tools",
    instructions: "Exact work on texts: count words, change case, diff, find and replace, extract addresses, links and \
                   numbers, sort and dedupe lines, base64 and URL encoding, JSON, CSV and Markdown tables, filler text.",
    groups: &[
        writing::TOOLS,
        extract::TOOLS,
        lines::TOOLS,
        encoding::TOOLS,
        data::TOOLS,
    ],
};

const TEXT: Field = required("text", Kind::Text, "The text.");

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Server, trial};

    #[test]
    fn every_tool_does_what_it_says() {
        trial::check(
            Server::Text,
            &[
                (
                    "count_words",
                    json!({"text": "Größe zählt. Or not?\n\nYes"}),
                    json!({"words": 5, "characters": 25, "bytes": 28, "lines": 3, "paragraphs": 2, "sentences": 3}),
                ),
                (
                    "change_case",
                    json!({"text": "parse HTTPHeader now", "style": "snake"}),
                    json!("parse_http_header_now"),
                ),
                (
                    "change_case",
                    json!({"text": "user_id list", "style": "pascal"}),
                    json!("UserIdList"),
                ),
                (
                    "change_case",
                    json!({"text": "über uns", "style": "title"}),
                    json!("Über Uns"),
                ),
                (
                    "change_case",
                    json!({"text": "a", "style": "loud"}),
                    json!({"error": "one of upper, lower"}),
                ),
                (
                    "slugify",
                    json!({"text": "  Crème brûlée & Straße: 100% "}),
                    json!("creme-brulee-strasse-100"),
                ),
                (
                    "replace_text",
                    json!({"text": "Cat, concat, cat", "find": "cat", "replace": "dog", "ignore_case": true, "whole_words": true}),
                    json!({"text": "dog, concat, dog", "count": 2}),
                ),
                (
                    "replace_text",
                    json!({"text": "a.a", "find": ".", "replace": ""}),
                    json!({"text": "aa", "count": 1}),
                ),
                (
                    "replace_text",
                    json!({"text": "a", "find": "", "replace": ""}),
                    json!({"error": "`find` is empty"}),
                ),
                (
                    "truncate_text",
                    json!({"text": "Das größte Haus", "length": 8}),
                    json!("Das…"),
                ),
                (
                    "wrap_text",
                    json!({"text": "one two three\n\nfour", "width": 10}),
                    json!("one two\nthree\n\nfour"),
                ),
                (
                    "edit_distance",
                    json!({"a": "kitten", "b": "sitting"}),
                    json!({"distance": 3}),
                ),
                (
                    "generate_lorem",
                    json!({"paragraphs": 1, "seed": 7, "words": 3}),
                    json!("Lorem ipsum dolor."),
                ),
                (
                    "extract_emails",
                    json!({"text": "To <ada@example.org>, bob.b@mail.example.com; not@this, ada@example.org."}),
                    json!({"items": ["ada@example.org", "bob.b@mail.example.com"]}),
                ),
                (
                    "extract_urls",
                    json!({"text": "See https://example.org/a?b=1, (http://x.test/y_(z)) and ftp://no"}),
                    json!({"items": ["https://example.org/a?b=1", "http://x.test/y_(z)"]}),
                ),
                (
                    "extract_numbers",
                    json!({"text": "From -3 to 4.5e2, v2, 1,234.50 and 10-20."}),
                    json!({"numbers": [-3, 450, 2, 1234.5, 10, 20]}),
                ),
                (
                    "sort_lines",
                    json!({"text": "b\nA\nc", "ignore_case": true}),
                    json!("A\nb\nc"),
                ),
                (
                    "sort_lines",
                    json!({"text": "10\n9\nx", "numeric": true, "descending": true}),
                    json!("10\n9\nx"),
                ),
                (
                    "dedupe_lines",
                    json!({"text": "a\nb\na \na", "trim": true}),
                    json!({"text": "a\nb", "removed": 2}),
                ),
                (
                    "diff_texts",
                    json!({"old": "a\nb\nc\n", "new": "a\nB\nc\nd\n"}),
                    json!({"diff": "  a\n- b\n+ B\n  c\n+ d\n", "added": 2, "removed": 1, "same": false}),
                ),
                (
                    "base64_encode",
                    json!({"text": "Grüße"}),
                    json!("R3LDvMOfZQ=="),
                ),
                (
                    "base64_decode",
                    json!({"text": "R3LD\nvMOfZQ"}),
                    json!("Grüße"),
                ),
                (
                    "base64_decode",
                    json!({"text": "R3L!"}),
                    json!({"error": "`!`"}),
                ),
                (
                    "base64_decode",
                    json!({"text": "/w=="}),
                    json!({"error": "not text"}),
                ),
                (
                    "url_encode",
                    json!({"text": "a b&ü/~"}),
                    json!("a%20b%26%C3%BC%2F~"),
                ),
                (
                    "url_decode",
                    json!({"text": "a+b%26%C3%BC", "plus_is_space": true}),
                    json!("a b&ü"),
                ),
                (
                    "url_decode",
                    json!({"text": "100%"}),
                    json!({"error": "two hexadecimal digits"}),
                ),
                (
                    "hash_text",
                    json!({"text": "abc"}),
                    json!("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
                ),
                (
                    "format_json",
                    json!({"json": "{\"b\":[1.0,{}],\"a\":\"{,\"}"}),
                    json!("{\n  \"b\": [\n    1.0,\n    {}\n  ],\n  \"a\": \"{,\"\n}"),
                ),
                (
                    "format_json",
                    json!({"json": "{ \"b\" : [ 1 ] }", "indent": 0}),
                    json!("{\"b\":[1]}"),
                ),
                (
                    "format_json",
                    json!({"json": "{"}),
                    json!({"error": "not JSON"}),
                ),
                (
                    "validate_json",
                    json!({"json": "[1, 2"}),
                    json!({"valid": false, "line": 1, "column": 5}),
                ),
                (
                    "validate_json",
                    json!({"json": "[1, 2]"}),
                    json!({"valid": true}),
                ),
                (
                    "get_json_value",
                    json!({"json": "{\"a\":[{\"b/c\":null}]}", "pointer": "/a/0/b~1c"}),
                    json!({"value": null}),
                ),
                (
                    "get_json_value",
                    json!({"json": "{\"a\":[]}", "pointer": "/a/0"}),
                    json!({"error": "`/a`"}),
                ),
                (
                    "csv_to_json",
                    json!({"csv": "name,note\r\nAda,\"says \"\"hi\"\",\ntwice\"\r\nBob\r\n"}),
                    json!({"columns": ["name", "note"], "rows": [{"name": "Ada", "note": "says \"hi\",\ntwice"}, {"name": "Bob", "note": ""}]}),
                ),
                (
                    "csv_to_json",
                    json!({"csv": "a,b\n1,2,3\n"}),
                    json!({"error": "row 2 has 3 cells"}),
                ),
                (
                    "markdown_table",
                    json!({"headers": ["a", "long"], "rows": [["1|2", "x"], ["3"]], "align": ["left", "right"]}),
                    json!("| a    | long |\n| :--- | ---: |\n| 1\\|2 |    x |\n| 3    |      |\n"),
                ),
            ],
        );
    }
}
