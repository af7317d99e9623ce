//! Text for people: truncation, similar names, and errors with their causes.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use serde::Serializer;
use unicode_normalization::UnicodeNormalization as _;

/// Maximum length of compared names, in characters. Names from outside may have any length.
const LONGEST: usize = 100;

/// The first `limit` characters of `text`, with an ellipsis if there are more.
#[must_use]
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `text` as one word of a shell.
#[must_use]
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Serializes a path as it is shown, also one that is not Unicode.
pub(crate) fn write_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// How long ago something of this age was.
#[must_use]
pub(crate) fn ago(age: Duration) -> String {
    match age.as_secs() {
        0..=1 => "just now".to_owned(),
        seconds @ 2..=119 => format!("{seconds} s ago"),
        seconds @ 120..=7199 => format!("{} min ago", seconds / 60),
        seconds @ 7200..=172_799 => format!("{} h ago", seconds / 3600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A name without the differences that some programs ignore: letter case, separators, spaces, invisible characters, accents and
/// forms of letters (`ß` is `ss`, full-width letters are plain ones).
#[must_use]
pub(crate) fn loose_name(name: &str) -> String {
    let mut loose = caseless(name);
    loose.retain(char::is_alphanumeric);
    loose
}

/// A text in one letter case and one form of each letter, for comparisons.
#[must_use]
pub(crate) fn caseless(text: &str) -> String {
    // Lower case alone keeps `ß` and `ſ`.
    let upper = text.nfkd().flat_map(char::to_uppercase);
    upper.flat_map(char::to_lowercase).nfkd().collect()
}

/// Turns `text` into the name of an environment variable.
pub(crate) fn variable_name(text: &str) -> String {
    let name: String = text
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name
    }
}

/// The causes of an error, outermost first.
pub(crate) fn causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause| (*cause).source())
}

/// An error and its causes on one line. A cause that the text ends with already is left out.
#[must_use]
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    causes(error).fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        match text.ends_with(&cause) {
            true => text,
            false => format!("{text}: {cause}"),
        }
    })
}

/// The one of `known` that is most similar to `name`, ignoring letter case. At most a third of the letters may differ.
#[must_use]
pub(crate) fn nearest<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let plain = name.to_lowercase();
    let length = plain.chars().count();
    let near = known.filter_map(|known| {
        let limit = length.max(known.chars().count()) / 3;
        Some((distance(&plain, &known.to_lowercase(), limit)?, known))
    });
    near.min().map(|(_, known)| known)
}

/// The number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`. `None` if it
/// exceeds `limit`, or if `a` or `b` is longer than any name that a person writes.
#[must_use]
pub(crate) fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let length = |text: &str| text.chars().take(LONGEST + 1).count();
    let (longer, shorter) = (length(a).max(length(b)), length(a).min(length(b)));
    let is_comparable = longer <= LONGEST && longer - shorter <= limit;
    is_comparable
        .then(|| strsim::osa_distance(a, b))
        .filter(|changes| *changes <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_ends_in_an_ellipsis() {
        assert_eq!(shortened("grün", 4), "grün");
        assert_eq!(shortened("grün", 3), "grü…");
    }

    #[test]
    fn names_of_any_length_cost_next_to_nothing() {
        let long = "x".repeat(1_000_000);
        assert_eq!(distance(&long, &long, usize::MAX), None);
        assert_eq!(nearest(&long, ["command"].into_iter()), None);
        assert_eq!(distance(&long[..LONGEST], &long[..LONGEST - 1], 1), Some(1));
    }

    #[test]
    fn distance_counts_changes() {
        for (a, b, changes) in [
            ("", "", 0),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
            ("ä", "a", 1),
        ] {
            assert_eq!(
                (distance(a, b, 3), distance(b, a, 3)),
                (Some(changes), Some(changes)),
                "{a} {b}"
            );
        }
        assert_eq!(
            (distance("kitten", "sitting", 2), distance("", "abc", 2)),
            (None, None),
            "more than the limit"
        );
    }
}
