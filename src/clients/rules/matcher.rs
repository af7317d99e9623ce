//! Matchers of Claude Code's hooks: regular expressions that are searched for in names such as
//! `mcp__github__get_issue`.

use std::collections::BTreeSet;

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use super::plain;

/// Maximum size of a matcher's automaton, in bytes. A larger matcher is assumed to match.
const LIMIT: usize = 4 * 1024 * 1024;

/// The prefix of the names of servers' tools. No tool's own name contains it.
const START: &[u8] = b"mcp__";

/// Names of Claude Code's built-in tools. A matcher that begins with one concerns that tool.
const BUILT_IN: &[&str] = &[
    "Agent",
    "AskUserQuestion",
    "Bash",
    "Edit",
    "ExitPlanMode",
    "Glob",
    "Grep",
    "KillShell",
    "LS",
    "MultiEdit",
    "Notebook",
    "PowerShell",
    "Read",
    "Skill",
    "SlashCommand",
    "Task",
    "Todo",
    "Web",
    "Write",
];

/// A parsed matcher.
pub(super) struct Matcher {
    parts: Vec<Part>,
}

enum Part {
    /// Matches every tool. Also used for a matcher that is not understood.
    Any,
    /// Matches a whole name.
    Name(String),
    /// Matches a regular expression.
    Pattern(Box<dense::DFA<Vec<u32>>>),
}

impl Matcher {
    /// Parses a matcher. One that is not understood matches every tool.
    pub(super) fn new(written: &str) -> Self {
        if matches!(written.trim(), "" | "*") {
            return Self {
                parts: vec![Part::Any],
            };
        }
        let is_list = written
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '|' | ',' | ' ' | '-'));
        let mut parts = Vec::new();
        if is_list {
            let names = written.split(['|', ',']).map(str::trim);
            parts.extend(names.map(|name| Part::Name(name.to_owned())));
        }
        // Some versions read a matcher with a hyphen as a regular expression.
        if !is_list || written.contains('-') {
            let about_servers = alternatives(written)
                .into_iter()
                .filter(|part| !is_about_built_in(part));
            parts.extend(about_servers.map(|part| {
                compiled(part).map_or(Part::Any, |automaton| Part::Pattern(Box::new(automaton)))
            }));
        }
        Self { parts }
    }

    /// Whether a tool of `server` might match.
    pub(super) fn may_fit(&self, server: &str) -> bool {
        self.may_begin(&format!("mcp__{}__", plain(server)))
    }

    /// Whether a name that begins with `start` might match, or `start` without the separators at its end.
    pub(super) fn may_begin(&self, start: &str) -> bool {
        let server = start.trim_end_matches(['_', ':', '/']);
        self.parts.iter().any(|part| match part {
            Part::Any => true,
            Part::Name(name) => *name == server || name.starts_with(start),
            Part::Pattern(automaton) => reaches_match(automaton, start.as_bytes()),
        })
    }
}

/// The top-level alternatives of a regular expression.
fn alternatives(written: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut depth, mut is_class, mut is_escaped) = (0_i32, false, false);
    for (at, c) in written.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_class = true,
            ']' => is_class = false,
            _ if is_class => {}
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth == 0 => {
                parts.push(&written[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&written[start..]);
    parts
}

fn is_about_built_in(part: &str) -> bool {
    part.split('|').all(|piece| {
        let name = piece
            .trim_start_matches("(?:")
            .trim_start_matches(['^', '(']);
        BUILT_IN.iter().any(|tool| name.starts_with(tool))
    })
}

/// Compiles an alternative. `None` if JavaScript might read it differently or it is too large.
fn compiled(part: &str) -> Option<dense::DFA<Vec<u32>>> {
    let is_foreign = ["&&", "~~", "--", "[[", "[:"]
        .iter()
        .any(|differing| part.contains(differing));
    let mut letters = part.chars();
    let mut has_foreign_escape = false;
    while let Some(c) = letters.next() {
        has_foreign_escape |= c == '\\'
            && letters
                .next()
                .is_none_or(|c| c.is_ascii_alphanumeric() && !"bBdDwWsSnrtfv".contains(c));
    }
    if is_foreign || has_foreign_escape {
        return None;
    }
    dense::Builder::new()
        .syntax(syntax::Config::new().unicode(false).utf8(false))
        .thompson(
            thompson::Config::new()
                .utf8(false)
                .nfa_size_limit(Some(LIMIT)),
        )
        .configure(
            dense::Config::new()
                .start_kind(StartKind::Unanchored)
                .dfa_size_limit(Some(LIMIT))
                .determinize_size_limit(Some(LIMIT)),
        )
        .build(part)
        .ok()
}

/// Whether a name that begins with `prefix` matches.
fn reaches_match(automaton: &dense::DFA<Vec<u32>>, prefix: &[u8]) -> bool {
    let input = Input::new(prefix).anchored(Anchored::No);
    let Ok(mut state) = automaton.start_state_forward(&input) else {
        return true;
    };
    let is_match = |state: StateID| {
        automaton.is_match_state(state)
            || automaton.is_quit_state(state)
            || automaton.is_match_state(automaton.next_eoi_state(state))
    };
    for byte in prefix {
        if is_match(state) {
            return true;
        }
        state = automaton.next_state(state, *byte);
    }
    // Each state is paired with the number of characters of `START` that the name ends with. A name that contains
    // `START` again is not valid.
    let mut open = vec![(state, 0)];
    let mut seen = BTreeSet::from([(state, 0)]);
    while let Some((state, started)) = open.pop() {
        if is_match(state) {
            return true;
        }
        let letters = (b'0'..=b'9').chain(b'a'..=b'z').chain(b'A'..=b'Z');
        for byte in letters.chain(*b"_-") {
            let started = match byte {
                byte if byte == START[started] => started + 1,
                b'm' => 1,
                _ => 0,
            };
            let next = (automaton.next_state(state, byte), started);
            if started < START.len() && !automaton.is_dead_state(next.0) && seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matcher_is_about_the_servers_whose_tools_it_may_match() {
        for (matcher, is_about) in [
            ("", true),
            ("*", true),
            (".*", true),
            ("mcp__.*", true),
            ("mcp__github", true),
            ("mcp__github__get_issue", true),
            ("mcp__(github|x)__.*", true),
            (".*get-env", true),
            ("get-env$", true),
            ("^mcp__git[a-z]+__(?:get|set)_.*$", true),
            (r"^mcp__\w+__rm$", true),
            ("Bash|mcp__git.*__delete.*", true),
            ("(Bash|.*delete.*)", true),
            ("^(?!mcp__x).*", true),
            (r"\p{L}", true),
            ("mcp__github(", true),
            ("Bash", false),
            ("Edit|Write|MultiEdit", false),
            ("Edit, Write", false),
            ("^(Edit|Write)$", false),
            ("Notebook.*", false),
            ("WebFetch|WebSearch.*", false),
            ("^mcp__(gitlab|x)__.*", false),
            ("mcp__(gitlab|x)__.*", false),
            ("mcp__gitlab__x|Bash(.*)", false),
            ("^get_", false),
            ("mcp__githubber", false),
        ] {
            assert_eq!(
                Matcher::new(matcher).may_fit("github"),
                is_about,
                "{matcher}"
            );
        }
        assert!(Matcher::new("mcp__my_server__.*").may_fit("my server"));
        let large = format!("{}x", "(a|b)*a(a|b){14}".repeat(3));
        assert!(Matcher::new(&large).may_fit("github"), "unsure");
    }
}
