//! Tools for prose.

use serde_json::json;

use super::TEXT;
use super::letters::{cased, slug};
use super::lorem::lorem;
use crate::demo::arguments::Arguments;
use crate::demo::schema::{COUNT, Kind, required, with_default};
use crate::demo::tool::{Context, Effect, Outcome, Output, Tool, number};

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "count_words",
        title: "Count words",
        description: "Count the words, characters, bytes, lines, sentences and paragraphs of a text.",
        effect: Effect::Reads,
        parameters: &[TEXT],
        returns: &[
            required("words", COUNT, "Words, as white space separates them."),
            required("characters", COUNT, "Characters, white space among them."),
            required("bytes", COUNT, "Bytes in UTF-8."),
            required("lines", COUNT, "Lines."),
            required(
                "sentences",
                COUNT,
                "Sentences, roughly: by their full stops, question and exclamation marks.",
            ),
            required(
                "paragraphs",
                COUNT,
                "Paragraphs, as empty lines separate them.",
            ),
        ],
        run: |_, arguments| Ok(count(arguments.text("text"))),
    },
    Tool {
        name: "change_case",
        title: "Change case",
        description: "Write a text in another letter case: UPPER, lower, Title, Sentence, or as an identifier in \
                      camelCase, PascalCase, snake_case, kebab-case or CONSTANT_CASE.",
        effect: Effect::Reads,
        parameters: &[
            TEXT,
            required(
                "style",
                Kind::Choice(&[
                    "upper", "lower", "title", "sentence", "camel", "pascal", "snake", "kebab",
                    "constant",
                ]),
                "The case wanted.",
            ),
        ],
        returns: &[],
        run: |_, arguments| {
            Ok(Output::Text(cased(
                arguments.text("text"),
                arguments.text("style"),
            )))
        },
    },
    Tool {
        name: "slugify",
        title: "Make slug",
        description: "Turn a title into a slug for an address or a file name: lower case, without accents, words joined by \
                      dashes.",
        effect: Effect::Reads,
        parameters: &[TEXT],
        returns: &[],
        run: |_, arguments| Ok(Output::Text(slug(arguments.text("text")))),
    },
    Tool {
        name: "truncate_text",
        title: "Truncate text",
        description: "Shorten a text to at most some characters, at the end of a word, and mark the cut.",
        effect: Effect::Reads,
        parameters: &[
            TEXT,
            required(
                "length",
                Kind::Integer(1, 1_000_000),
                "How many characters at most, the mark among them.",
            ),
            with_default("mark", Kind::Text, "\"…\"", "What stands for the rest."),
        ],
        returns: &[],
        run: |_, arguments| {
            let (text, mark) = (arguments.text("text"), arguments.text("mark"));
            Ok(Output::Text(truncated(
                text,
                arguments.size("length"),
                mark,
            )))
        },
    },
    Tool {
        name: "wrap_text",
        title: "Wrap text",
        description: "Break the lines of a text so that none is wider than a number of characters; paragraphs stay apart.",
        effect: Effect::Reads,
        parameters: &[
            TEXT,
            with_default(
                "width",
                Kind::Integer(1, 1000),
                "80",
                "Characters in a line.",
            ),
        ],
        returns: &[],
        run: |_, arguments| {
            Ok(Output::Text(wrapped(
                arguments.text("text"),
                arguments.size("width"),
            )))
        },
    },
    Tool {
        name: "edit_distance",
        title: "Edit distance",
        description: "Compare two words or short texts: their Levenshtein distance, which is how many letters to insert, \
                      delete or replace, and how alike they are.",
        effect: Effect::Reads,
        parameters: &[
            required("a", Kind::Text, "One text."),
            required("b", Kind::Text, "The other."),
        ],
        returns: &[
            required(
                "distance",
                COUNT,
                "How many changes turn one into the other.",
            ),
            required(
                "similarity",
                Kind::Number,
                "From 0, all different, to 1, the same.",
            ),
        ],
        run: edit_distance,
    },
    Tool {
        name: "generate_lorem",
        title: "Generate filler text",
        description: "Generate lorem ipsum, placeholder text for layouts and tests, up to very long ones. The same seed \
                      gives the same text.",
        effect: Effect::Reads,
        parameters: &[
            with_default(
                "paragraphs",
                Kind::Integer(1, 2000),
                "3",
                "How many paragraphs.",
            ),
            with_default(
                "words",
                Kind::Integer(1, 500),
                "60",
                "How many words in each.",
            ),
            with_default(
                "seed",
                Kind::Integer(0, i64::MAX),
                "1",
                "Another seed, another text.",
            ),
        ],
        returns: &[],
        run: |_, arguments| {
            let seed = arguments.integer("seed").unsigned_abs();
            Ok(Output::Text(lorem(
                arguments.size("paragraphs"),
                arguments.size("words"),
                seed,
            )))
        },
    },
];

fn count(text: &str) -> Output {
    let paragraphs = text.lines().collect::<Vec<_>>();
    let paragraphs = paragraphs
        .split(|line| line.trim().is_empty())
        .filter(|lines| !lines.is_empty())
        .count();
    let sentences = text
        .split_inclusive(['.', '!', '?', '…'])
        .filter(|s| s.chars().any(char::is_alphanumeric))
        .count();
    Output::Data(json!({
        "words": text.split_whitespace().count(),
        "characters": text.chars().count(),
        "bytes": text.len(),
        "lines": text.lines().count(),
        "sentences": sentences,
        "paragraphs": paragraphs,
    }))
}

fn truncated(text: &str, length: usize, mark: &str) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    let room = length.saturating_sub(mark.chars().count());
    let head: String = text.chars().take(room).collect();
    let ends_a_word = text.chars().nth(room).is_some_and(char::is_whitespace);
    let end = if ends_a_word {
        head.len()
    } else {
        head.rfind(char::is_whitespace).unwrap_or(head.len())
    };
    // A mark longer than the room is itself cut.
    format!("{}{mark}", head[..end].trim_end())
        .chars()
        .take(length)
        .collect()
}

fn wrapped(text: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut current = String::new();
        for word in line.split_whitespace() {
            if !current.is_empty() && current.chars().count() + 1 + word.chars().count() > width {
                lines.push(std::mem::take(&mut current));
            }
            if !current.is_empty() {
                current.push(' ');
            }
            current.push_str(word);
        }
        lines.push(current);
    }
    lines.join("\n")
}

fn edit_distance(_: &Context, arguments: &Arguments) -> Outcome {
    const LONGEST: usize = 5000;
    let [a, b] = ["a", "b"].map(|name| arguments.text(name).chars().collect::<Vec<_>>());
    let longer = a.len().max(b.len());
    if longer > LONGEST {
        return Err(format!(
            "The texts may have {LONGEST} characters at most. diff_texts compares longer ones."
        ));
    }
    let distance = levenshtein(&a, &b);
    let similarity = if longer == 0 {
        1.0
    } else {
        1.0 - distance as f64 / longer as f64
    };
    Ok(Output::Data(
        json!({ "distance": distance, "similarity": number(similarity) }),
    ))
}

fn levenshtein(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_counts_each_change() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        for (a, b, distance) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("flaw", "lawn", 2),
            ("über", "uber", 1),
        ] {
            assert_eq!(levenshtein(&chars(a), &chars(b)), distance, "{a} {b}");
        }
    }

    #[test]
    fn a_truncated_text_is_never_longer_than_allowed() {
        for length in 1..12 {
            for mark in ["…", "...", ""] {
                let short = truncated("ein kurzer Text", length, mark);
                assert!(short.chars().count() <= length, "{short} for {length}");
            }
        }
        assert_eq!(truncated("one two", 4, "…"), "one…");
        assert_eq!(truncated("one two", 7, "…"), "one two");
    }
}
