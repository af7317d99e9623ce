//! Parses a query: its words, its separate needs, the names in it.

use super::tokenizer::{compact, split};

/// A query as it is ranked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Query {
    /// The words of each need, usually one list. Empty if all words are stop words (`who am i`); then only a name can
    /// match.
    pub(super) needs: Vec<Need>,
    /// Possible exact names of tools, in compact form: the whole query, and every identifier in it.
    pub(super) names: Vec<String>,
}

/// One need of a query.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Need {
    /// The words that are looked up.
    pub(super) words: Vec<Word>,
    /// The original text.
    pub(super) text: String,
}

/// A word of a query, in lower case and not stemmed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Word {
    pub(super) text: String,
    /// It stands in a position where a server is named: before a colon, or after `on`, `in`, `from`, `using`.
    pub(super) hint: bool,
}

/// Shorter texts are not a separate need, but belong to their neighbour (`search and replace`).
const NEED: usize = 2;

/// A server's name has at most this many words before a colon; a later colon is punctuation.
const HINT: usize = 4;

/// The longest query, in characters. Longer texts were pasted, and the rest is not searched.
const LONGEST: usize = 1_000;

/// The longest token, in bytes, whose leading slash is punctuation and not a path.
const SHORTEST_PATH: usize = 3;

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let text = text
            .char_indices()
            .nth(LONGEST)
            .map_or(text, |(end, _)| &text[..end]);
        let mut names = vec![compact(text)];
        names.extend(
            text.split_whitespace()
                .filter(|token| is_identifier(token))
                .map(compact),
        );
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        names.dedup();
        Self {
            needs: needs(text),
            names,
        }
    }

    /// The whole text, without the words that join the needs.
    pub(super) fn text(&self) -> String {
        self.needs
            .iter()
            .map(|need| need.text.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

fn needs(text: &str) -> Vec<Need> {
    let mut needs = vec![Need::default()];
    let mut hint = false;
    for (at, token) in text.split_whitespace().enumerate() {
        let words = words(token);
        if let [word] = words.as_slice()
            && is_conjunction(word)
        {
            needs.push(Need::default());
            hint = false;
            continue;
        }
        if let Some(need) = needs.last_mut() {
            need.say(token);
        }
        for word in words {
            let is_stop = is_stop_word(&word);
            if is_stop {
                hint = is_preposition(&word) || (hint && is_article(&word));
            } else if let Some(need) = needs.last_mut() {
                need.words.push(Word { text: word, hint });
            }
        }
        if token.ends_with(':') && at < HINT {
            needs
                .iter_mut()
                .flat_map(|need| &mut need.words)
                .for_each(|word| word.hint = true);
        } else if token.ends_with([',', ';', '.', '?', '!']) || token == "&" {
            needs.push(Need::default());
            hint = false;
        }
    }
    merge_short(needs)
}

impl Need {
    fn say(&mut self, text: &str) {
        if !self.text.is_empty() && !text.is_empty() {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }
}

/// Joins a need that is too short to the previous one, or to the next one if it is the first.
fn merge_short(needs: Vec<Need>) -> Vec<Need> {
    let mut merged: Vec<Need> = Vec::new();
    for need in needs {
        match merged.last_mut() {
            Some(last) if need.words.len() < NEED || last.words.len() < NEED => {
                last.say(&need.text);
                last.words.extend(need.words);
            }
            _ => merged.push(need),
        }
    }
    merged.retain(|need| !need.words.is_empty());
    merged
}

/// The words of a token. A URL gives `url` and the name of its site, and a path gives `file`: the rest is a value,
/// whose words mislead.
fn words(token: &str) -> Vec<String> {
    if let Some((_, address)) = token.split_once("://") {
        let host = address
            .split(['/', '?', '#', ':'])
            .next()
            .unwrap_or_default();
        let site = host.rsplit('.').nth(1).unwrap_or_default();
        return std::iter::once("url".to_owned())
            .chain(split(site))
            .collect();
    }
    let is_path =
        token.starts_with('/') || token.starts_with("~/") || token.get(1..3) == Some(":\\");
    if is_path && token.len() > SHORTEST_PATH {
        vec!["file".to_owned()]
    } else {
        split(token)
    }
}

/// Whether it is written like an identifier: with an inner separator or capital.
fn is_identifier(token: &str) -> bool {
    let token = token.trim_matches(|c: char| !c.is_alphanumeric());
    let mut pairs = token.chars().zip(token.chars().skip(1));
    token.contains(['_', '-', '.', ':', '/'])
        || pairs.any(|(a, b)| a.is_lowercase() && b.is_uppercase())
}

fn is_conjunction(word: &str) -> bool {
    matches!(word, "and" | "then" | "plus" | "also")
}

/// Whether a server's name can follow this word.
fn is_preposition(word: &str) -> bool {
    matches!(
        word,
        "on" | "in" | "from" | "using" | "via" | "with" | "at" | "to" | "use" | "through" | "into"
    )
}

fn is_article(word: &str) -> bool {
    matches!(word, "the" | "my" | "our" | "a" | "an")
}

/// Words that belong to requests and not to their subject.
fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(&word)
}

const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by",
    "can", "could", "d", "did", "do", "does", "for", "from", "had", "has", "have", "he", "help",
    "her", "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "ll",
    "m", "me", "my", "need", "of", "on", "or", "our", "please", "re", "s", "she", "should", "so",
    "some", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "through", "to", "tool", "up", "us", "use", "using", "ve", "via", "want", "was", "we", "were",
    "what", "when", "where", "which", "who", "will", "with", "would", "you", "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The needs, each with its words; a word in a position where a server is named has a `?`.
    fn needs_in(text: &str) -> String {
        let word = |word: &Word| format!("{}{}", word.text, if word.hint { "?" } else { "" });
        let need = |need: &Need| need.words.iter().map(word).collect::<Vec<_>>().join(" ");
        Query::parse(text)
            .needs
            .iter()
            .map(need)
            .collect::<Vec<_>>()
            .join(" | ")
    }

    #[test]
    fn a_query_falls_into_needs_and_words() {
        for (text, expected) in [
            ("Please show me the open issues", "show open issues"),
            (
                "read the file and post it to slack",
                "read file | post slack?",
            ),
            ("search and replace", "search replace"),
            (
                "build the image, then push the image; list images",
                "build image | push image | list images",
            ),
            ("read and write files", "read write files"),
            ("github: list pull requests", "github? list pull requests"),
            (
                "list pull requests on my github",
                "list pull requests github?",
            ),
            (
                "list the first of the many pages here: all",
                "list first many pages here",
            ),
            ("who am i", ""),
            ("createIssue in repo", "create issue repo?"),
            (
                "summarize https://www.youtube.com/watch?v=abc",
                "summarize url youtube",
            ),
            ("lines of /var/log/syslog.1", "lines file"),
            ("", ""),
            ("  ?!  ", ""),
        ] {
            assert_eq!(needs_in(text), expected, "{text}");
        }
    }

    #[test]
    fn identifiers_may_be_names() {
        assert_eq!(
            Query::parse("use create_issue on gitHub").names,
            ["createissue", "github", "usecreateissueongithub"]
        );
        assert_eq!(Query::parse("a b").names, ["ab"]);
        assert!(Query::parse("--").names.is_empty());
    }
}
