//! Tools that find something in a text, by walking through it rather than by regular expressions.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::TEXT;
use crate::demo::arguments::Arguments;
use crate::demo::letter_case::prefix_length;
use crate::demo::schema::{COUNT, Kind, TEXTS, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool, number};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "extract_emails",
        title: "Extract e-mail addresses",
        description: "Find the e-mail addresses in a text, each once, in their order.",
        effect: Effect::Reads,
        parameters: &[TEXT],
        returns: &[required("items", TEXTS, "The addresses.")],
        run: |_, arguments| Ok(found(emails(arguments.text("text")))),
    },
    Tool {
        name: "extract_urls",
        title: "Extract links",
        description: "Find the http and https links in a text, each once, in their order, without the punctuation around.",
        effect: Effect::Reads,
        parameters: &[TEXT],
        returns: &[required("items", TEXTS, "The links.")],
        run: |_, arguments| Ok(found(urls(arguments.text("text")))),
    },
    Tool {
        name: "extract_numbers",
        title: "Extract numbers",
        description: "Find the numbers in a text in their order, with sign, decimal point, exponent, and commas between \
                      thousands.",
        effect: Effect::Reads,
        parameters: &[TEXT],
        returns: &[required(
            "numbers",
            Kind::List(&Kind::Number),
            "The numbers.",
        )],
        run: |_, arguments| {
            Ok(Output::Data(
                json!({ "numbers": numbers(arguments.text("text")) }),
            ))
        },
    },
    Tool {
        name: "replace_text",
        title: "Find and replace",
        description: "Replace every place where a text occurs in another, taken literally, and count them. Letter case can \
                      be ignored, and parts of words passed over.",
        effect: Effect::Reads,
        parameters: &[
            TEXT,
            required("find", Kind::Text, "What to look for."),
            required("replace", Kind::Text, "What to put there."),
            with_default(
                "ignore_case",
                Kind::Flag,
                "false",
                "Whether letter case does not matter.",
            ),
            with_default(
                "whole_words",
                Kind::Flag,
                "false",
                "Whether it must stand as a word of its own.",
            ),
        ],
        returns: &[
            required("text", Kind::Text, "The text with the replacements."),
            required("count", COUNT, "How many there were."),
        ],
        run: replace,
    },
];

fn found(items: impl Iterator<Item = String>) -> Output {
    let mut seen = HashSet::new();
    let items: Vec<_> = items.filter(|item| seen.insert(item.clone())).collect();
    Output::Data(json!({ "items": items }))
}

fn emails(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_part = |c: char| c.is_alphanumeric() || "@.+-_%".contains(c);
    text.split(move |c| !is_part(c))
        .map(|word| word.trim_matches(['.', '-']))
        .filter_map(|word| {
            let (local, domain) = word.split_once('@')?;
            let labels: Vec<_> = domain.split('.').collect();
            let is_label = |label: &&str| {
                !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-')
            };
            let is_domain = labels.len() > 1 && labels.iter().all(is_label);
            let has_name = labels
                .last()
                .is_some_and(|top| top.chars().count() > 1 && top.chars().all(char::is_alphabetic));
            (!local.is_empty() && is_domain && has_name).then(|| word.to_owned())
        })
}

fn urls(text: &str) -> impl Iterator<Item = String> + '_ {
    let starts = text.match_indices("http").filter_map(|(at, _)| {
        let rest = &text[at..];
        let host = rest
            .strip_prefix("https://")
            .or_else(|| rest.strip_prefix("http://"))?;
        host.starts_with(char::is_alphanumeric).then_some(rest)
    });
    starts.map(|rest| {
        let end = rest
            .find(|c: char| c.is_whitespace() || "<>\"`{}|\\^".contains(c))
            .unwrap_or(rest.len());
        let mut url = &rest[..end];
        // A closing parenthesis belongs to the link only if it was opened within it.
        while let Some(last) = url.chars().last()
            && (".,;:!?'*]".contains(last)
                || last == ')' && url.matches(')').count() > url.matches('(').count())
        {
            url = &url[..url.len() - last.len_utf8()];
        }
        url.to_owned()
    })
}

fn numbers(text: &str) -> Vec<Value> {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    let mut numbers = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        // A dash after a letter or a digit joins, as in `10-20`; only elsewhere it is a sign.
        let joins = |before: u8| before.is_ascii_alphanumeric() || before >= 0x80;
        let negative = at > 0 && bytes[at - 1] == b'-' && (at < 2 || !joins(bytes[at - 2]));
        let start = at;
        at += digits(at);
        while bytes.get(at) == Some(&b',') && digits(at + 1) == 3 && at - start <= 15 {
            at += 4;
        }
        if bytes.get(at) == Some(&b'.') && digits(at + 1) > 0 {
            at += 1 + digits(at + 1);
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'-' | b'+')));
            let exponent = if at + 1 + sign < bytes.len() {
                digits(at + 1 + sign)
            } else {
                0
            };
            at += if exponent > 0 { 1 + sign + exponent } else { 0 };
        }
        let value = text[start..at]
            .replace(',', "")
            .parse::<f64>()
            .ok()
            .filter(|value| value.is_finite());
        numbers.extend(value.map(|value| number(if negative { -value } else { value })));
    }
    numbers
}

fn replace(_: &Context, arguments: &Arguments) -> Outcome {
    let (text, find) = (arguments.text("text"), arguments.text("find"));
    if find.is_empty() {
        return Err("`find` is empty: there is nothing to look for.".to_owned());
    }
    let (ignore_case, whole_words) = (arguments.flag("ignore_case"), arguments.flag("whole_words"));
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut replaced = String::with_capacity(text.len());
    let mut count = 0;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if ignore_case {
            prefix_length(rest, find)
        } else {
            rest.starts_with(find).then_some(find.len())
        };
        let length = length.filter(|length| {
            !whole_words
                || !is_word(text[..at].chars().last())
                    && !is_word(text[at + length..].chars().next())
        });
        if let Some(length) = length {
            replaced.push_str(arguments.text("replace"));
            count += 1;
            at += length;
        } else {
            replaced.push(c);
            at += c.len_utf8();
        }
    }
    Ok(Output::Data(json!({ "text": replaced, "count": count })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_to_the_last_byte() {
        for (text, expected) in [
            ("1e", json!([1])),
            ("1e+", json!([1])),
            ("2.", json!([2])),
            ("a-5 (-6)", json!([5, -6])),
            ("1,23 1,234,567", json!([1, 23, 1_234_567])),
            ("1e999 ü7", json!([7])),
        ] {
            assert_eq!(Value::from(numbers(text)), expected, "{text}");
        }
    }
}
