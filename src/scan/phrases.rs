//! Phrases of attacks that were published, as patterns. `tests/fixtures/attacks.tsv` has the attacks, and `docs/scanner.md` the
//! share of honest tools that they find by mistake.

use std::sync::LazyLock;

use regex::Regex;

use super::Kind;
use crate::tool::{is_hidden, selects_nothing};

/// A pattern for files that hold keys, and for those that name servers and their secrets.
const SECRET_FILE: &str = r"(?:~|\$\{?home\}?|%userprofile%|/home/[\w.-]+|/users/[\w.-]+|[a-z]:\\users\\[\w.-]+|/root)[/\\]\.?(?:ssh|aws|azure|env\b|gnupg|kube|_?netrc|cursor|npmrc|pypirc|pgpass|my\.cnf|git-credentials|vault-token|(?:bash|zsh)_history|claude(?:\.json|/)|codex/|gemini/|mozilla|password-store|terraform\.d|config[/\\](?:gcloud|gh|op|hub)|docker[/\\]config|local/share/keyrings|library/keychains)|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|/etc/(?:passwd|shadow|sudoers)\b|/proc/self/environ|\.cursor/mcp\.json|claude_desktop_config|\.aws/credentials|\.git-credentials|\.netrc\b|\.pgpass\b";

/// The patterns; `{file}` stands for [`SECRET_FILE`].
const PATTERNS: &[(Kind, &str)] = &[
    (
        Kind::Secret,
        r"\b(?:read|open|cat|load|include|contents?|attach|pass|send|upload|append|text|put|hold|fetch|retrieve|copy|paste|print|dump|post|share|forward)\b[^.!?\n]{0,80}(?:{file})",
    ),
    (
        Kind::Secret,
        r"(?:{file})[^.!?\n]{0,80}\b(?:contents?|as `?\w+|pass|send|include|attach|text)\b",
    ),
    (
        Kind::Secret,
        r"\b(?:full|entire|whole|complete) (?:conversation|chat|message) history\b|\bconversation (?:history )?so far\b",
    ),
    (
        Kind::Secret,
        r"\b(?:must|always|should|needs? to)\b[^.\n]{0,60}\b(?:complete|full|entire|whole|verbatim)\b[^.\n]{0,30}\b(?:user|system|chat|conversation)\b[^.\n]{0,12}\b(?:message|prompt|history|context)",
    ),
    (
        Kind::Secret,
        r"\b(?:include|send|pass|contain|with|return)\b[^.\n]{0,60}\b(?:api keys?|passwords?|private keys?|connection strings?|access tokens?)\b[^.\n]{0,60}\b(?:word for word|verbatim)",
    ),
    (
        Kind::Order,
        r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,30}\b(?:previous|prior|earlier|above|all other|your|system)\b[^.\n]{0,20}\b(?:instructions?|prompts?|rules|directions|guidelines)\b",
    ),
    (
        Kind::Order,
        r"\b(?:do not|don't|never|without)\s+(?:mention|mentioning|tell|telling|inform|informing|reveal|revealing|disclose|disclosing|show|notify|notifying|alert|alerting|let)\b[^.\n]{0,20}\bthe users?\b",
    ),
    (
        Kind::Order,
        r"<\s*/?\s*(?:important|hidden|secret|system|instructions?)\s*>",
    ),
    (
        Kind::Order,
        r"<!--[^>]{0,200}\b(?:system|instruction|ignore|must|read|call|send)\b",
    ),
    (
        Kind::Order,
        r"<\|(?:im_start|im_end|system|endoftext)\|>|\[/?INST\]|<<SYS>>",
    ),
    (
        Kind::Order,
        r"\byou are now\b[^.\n]{0,40}\b(?:assistant|unrestricted|mode|dan|an? ai|agent)\b",
    ),
    (
        Kind::Order,
        r"\b(?:takes?|has|have) (?:precedence|priority) over\b[^.\n]{0,40}\b(?:instructions?|prompts?)\b",
    ),
    (
        Kind::OtherTool,
        r"\bbefore (?:you )?(?:use|using|call|calling|run|running|invoke|invoking|any)\b[^.\n]{0,15}\b(?:any|every|all) (?:other )?(?:tools?|\w+ operations?)\b",
    ),
    (
        Kind::OtherTool,
        r"\b(?:before|whenever|when|each time|every time)\b[^.\n]{0,25}\b(?:any|every|all|each) (?:other )?tools?\b[^.\n]{0,30}\b(?:of|from|on|in) (?:any|every|all|other|another)\b",
    ),
    (
        Kind::OtherTool,
        r"\b(?:when(?:ever)?|if|each time|every time)\b[^.\n]{0,20}\b[a-z]+[_-][a-z_]+\b[^.\n]{0,12}\b(?:is|gets|was) (?:called|invoked|used|triggered|executed)\b[^.\n]{0,60}\b(?:must|change|replace|instead|recipient|also)\b",
    ),
    (
        Kind::OtherTool,
        r"\b(?:always|must) (?:use|call|prefer) (?:this|`?\w+`?)(?: tool)? (?:instead|in place) of\b",
    ),
    (
        Kind::OtherTool,
        r"\b(?:must|always|needs to) (?:be called|be used|call|run|be invoked)\b[^.\n]{0,25}\bbefore\b[^.\n]{0,12}\b(?:any|every|all) other\b",
    ),
    (
        Kind::OtherTool,
        r"\bbefore answering\b[^.\n]{0,30}\b(?:you )?must\b[^.\n]{0,15}\bcall\b",
    ),
];

/// Parameters that ask for a model's conversation or actions, or for a key.
const SECRET_PARAMETERS: &str = r"^(?:system_?prompt|(?:full_)?conversation_history|chat_history|tool_?calls?_history|chain_of_thought|previous_messages)$|id_rsa|ssh_?(?:private_?)?key_?content|content_from_reading";

static PHRASES: LazyLock<Vec<(Kind, Regex)>> = LazyLock::new(|| {
    let compiled =
        |(kind, pattern): &(Kind, &str)| (*kind, regex(&pattern.replace("{file}", SECRET_FILE)));
    PATTERNS.iter().map(compiled).collect()
});

static PARAMETERS: LazyLock<Regex> = LazyLock::new(|| regex(SECRET_PARAMETERS));

/// A pattern for any case. Its words are of ASCII, which halves the time of a search and of the compilation.
fn regex(pattern: &str) -> Regex {
    let of_ascii = pattern
        .replace(r"\b", r"(?-u:\b)")
        .replace(r"\w", "[0-9A-Za-z_]");
    Regex::new(&format!("(?i){of_ascii}")).expect("the patterns are valid, as a test shows")
}

/// A text as the patterns are written: one space between words, also where a line ends, plain quotes, and no hidden characters.
#[must_use]
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !is_hidden(*c)) {
        match c {
            c if c.is_whitespace() => {
                if !plain.ends_with(' ') {
                    plain.push(' ');
                }
            }
            '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2bc}' | '\u{ff07}' => plain.push('\''),
            '\u{201c}' | '\u{201d}' | '\u{ff02}' => plain.push('"'),
            c => plain.push(c),
        }
    }
    plain
}

/// The phrases in a text that [`plain`] has made, with the kind of each.
pub(super) fn found(text: &str) -> impl Iterator<Item = (Kind, &str)> {
    PHRASES.iter().filter_map(move |(kind, pattern)| {
        let phrase = pattern.find(text)?;
        Some((*kind, phrase.as_str()))
    })
}

/// Whether a parameter of this name asks for a secret.
#[must_use]
pub(super) fn is_secret_parameter(name: &str) -> bool {
    PARAMETERS.is_match(name)
}

/// The part of a text that begins with a hidden character or a terminal escape. Emoji and scripts that join letters need some of
/// them between their characters, which do not count.
#[must_use]
pub(super) fn hidden(text: &str) -> Option<&str> {
    let mut before = ' ';
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        let next = rest.peek().map(|(_, c)| *c);
        let joins = matches!(c, '\u{200c}' | '\u{200d}')
            && !before.is_ascii()
            && next.is_some_and(|c| !c.is_ascii());
        let is_control = c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        if (is_hidden(c) || is_control || selects_nothing(before, c, next)) && !joins {
            return Some(&text[at..]);
        }
        before = c;
    }
    None
}
