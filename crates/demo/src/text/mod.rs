//! The text server: counting, comparing, cleaning and encoding. It stores nothing.

use std::collections::HashSet;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use data_encoding::HEXLOWER;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Serialize as _;
use serde_json::ser::PrettyFormatter;
use serde_json::{Serializer, Value, json};
use sha2::{Digest as _, Sha256};
use similar::{ChangeTag, TextDiff};

use crate::tool::Output::{Data, Text};
use crate::tool::{Arguments, Context, Outcome, Output, Service};

pub(crate) static SERVICE: Service = Service {
    name: "text",
    title: "Text tools",
    instructions: "Exact work on texts: count words, change case, diff, find and replace, extract addresses, dedupe \
                   lines, base64 and URL encoding, checksums, JSON.",
    definitions: include_str!("tools.json"),
    tools: OnceLock::new(),
    call,
};

/// The characters that are encoded: all except the unreserved ones of RFC 3986, section 2.3.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

fn call(tool: &str, _: &Context, args: &Arguments) -> Outcome {
    let text = args.text("text");
    match tool {
        "count_words" => Ok(count(text)),
        "change_case" => Ok(Text(cased(text, args.text("style")))),
        "replace_text" => replace(text, args),
        "extract_emails" => Ok(Data(json!({ "items": emails(text) }))),
        "diff_texts" => Ok(diff(args)),
        "dedupe_lines" => Ok(dedupe(text, args)),
        "base64_encode" if args.flag("url_safe") => Ok(Text(URL_SAFE_NO_PAD.encode(text))),
        "base64_encode" => Ok(Text(STANDARD.encode(text))),
        "base64_decode" => base64_decode(text),
        "url_encode" => Ok(Text(utf8_percent_encode(text, RESERVED).to_string())),
        "url_decode" if args.flag("plus_is_space") => {
            decoded(percent_decode_str(&text.replace('+', " ")).collect())
        }
        "url_decode" => decoded(percent_decode_str(text).collect()),
        "hash_text" => Ok(Text(HEXLOWER.encode(&Sha256::digest(text)))),
        "format_json" => format_json(args.text("json"), args.size("indent")),
        "validate_json" => Ok(validate_json(args.text("json"))),
        _ => Err(format!("there is no tool `{tool}`")),
    }
}

fn count(text: &str) -> Output {
    let lines: Vec<_> = text.lines().collect();
    let paragraphs = lines
        .split(|line| line.trim().is_empty())
        .filter(|lines| !lines.is_empty());
    let sentences = text
        .split_inclusive(['.', '!', '?', '…'])
        .filter(|part| part.chars().any(char::is_alphanumeric));
    Data(json!({
        "words": text.split_whitespace().count(),
        "characters": text.chars().count(),
        "bytes": text.len(),
        "lines": lines.len(),
        "sentences": sentences.count(),
        "paragraphs": paragraphs.count(),
    }))
}

fn cased(text: &str, style: &str) -> String {
    let lower = text.to_lowercase();
    let words = || {
        lower
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
    };
    match style {
        "upper" => text.to_uppercase(),
        "title" => lower
            .split_inclusive(char::is_whitespace)
            .map(capital)
            .collect(),
        "sentence" => capital(&lower),
        "snake" => words().join("_"),
        "kebab" => words().join("-"),
        _ => lower,
    }
}

/// The word with a capital first letter.
fn capital(word: &str) -> String {
    let mut characters = word.chars();
    let first = characters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(characters).collect()
}

fn replace(text: &str, args: &Arguments) -> Outcome {
    let (find, with) = (args.text("find"), args.text("replace"));
    if find.is_empty() {
        return Err("`find` is empty: there is nothing to look for.".to_owned());
    }
    let count = text.matches(find).count();
    Ok(Data(
        json!({ "text": text.replace(find, with), "count": count }),
    ))
}

/// Words with one `@` and a domain of several parts.
fn emails(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || "._%+-@".contains(c);
    let mut found: Vec<&str> = Vec::new();
    for word in text
        .split(|c| !is_part(c))
        .map(|word| word.trim_matches(['.', '-']))
    {
        let is_address = word.split_once('@').is_some_and(|(name, domain)| {
            !name.is_empty()
                && !domain.contains('@')
                && domain.contains('.')
                && !domain.contains("..")
        });
        if is_address && !found.contains(&word) {
            found.push(word);
        }
    }
    found
}

fn diff(args: &Arguments) -> Output {
    let diff = TextDiff::from_lines(args.text("old"), args.text("new"));
    let (mut text, mut added, mut removed) = (String::new(), 0, 0);
    for change in diff.iter_all_changes() {
        let mark = match change.tag() {
            ChangeTag::Equal if args.flag("changes_only") => continue,
            ChangeTag::Equal => "  ",
            ChangeTag::Insert => "+ ",
            ChangeTag::Delete => "- ",
        };
        added += usize::from(change.tag() == ChangeTag::Insert);
        removed += usize::from(change.tag() == ChangeTag::Delete);
        text.extend([mark, change.value().trim_end_matches('\n'), "\n"]);
    }
    Data(json!({ "diff": text, "added": added, "removed": removed, "same": added + removed == 0 }))
}

fn dedupe(text: &str, args: &Arguments) -> Output {
    let mut seen = HashSet::new();
    let lines: Vec<_> = text.lines().collect();
    let key = |line: &str| match args.flag("ignore_case") {
        true => line.to_lowercase(),
        false => line.to_owned(),
    };
    let kept: Vec<_> = lines
        .iter()
        .copied()
        .filter(|line| seen.insert(key(line)))
        .collect();
    Data(json!({ "removed": lines.len() - kept.len(), "text": kept.join("\n") }))
}

fn base64_decode(text: &str) -> Outcome {
    let plain: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let standard = plain
        .trim_end_matches('=')
        .replace('-', "+")
        .replace('_', "/");
    decoded(
        STANDARD_NO_PAD
            .decode(standard)
            .map_err(|error| format!("The text is not base64: {error}."))?,
    )
}

fn decoded(bytes: Vec<u8>) -> Outcome {
    let text =
        String::from_utf8(bytes).map_err(|error| format!("The result is not text: {error}."))?;
    Ok(Text(text))
}

fn format_json(text: &str, indent: usize) -> Outcome {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("The text is not JSON: {error}."))?;
    if indent == 0 {
        return Ok(Text(value.to_string()));
    }
    let (indent, mut written) = (" ".repeat(indent), Vec::new());
    let formatter = PrettyFormatter::with_indent(indent.as_bytes());
    value
        .serialize(&mut Serializer::with_formatter(&mut written, formatter))
        .map_err(|error| error.to_string())?;
    decoded(written)
}

fn validate_json(text: &str) -> Output {
    Data(match serde_json::from_str::<Value>(text) {
        Ok(_) => json!({ "valid": true }),
        Err(error) => {
            json!({ "valid": false, "problem": error.to_string(), "line": error.line(), "column": error.column() })
        }
    })
}
