//! The rules that decide which tools may be called, and which only after the user agrees.
//!
//! A client sees three tools, so its own rules cannot distinguish the tools behind them; these rules can.

use super::BUILT_IN_SERVER;
use super::error::EntryError;
use super::reader::At;
use super::sections::PolicyEntry;
use crate::tool::{Hints, QualifiedName, SEPARATOR, ServerName};

/// The rules for the tools of all servers, or of one. If several match a tool, the strictest one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// If present, only these tools may be used.
    allow: Option<Vec<Pattern>>,
    ask: Vec<Pattern>,
    deny: Vec<Pattern>,
    /// Servers whose names in the file differ from their names here: rules may use either.
    written: Vec<(ServerName, String)>,
}

/// The decision on a tool, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It may be called.
    Allowed,
    /// It may be called after the user agrees to this call.
    Asked,
    /// It is hidden from all clients.
    Denied,
}

/// A set of tools: by name, or by the annotations of their servers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// A name in which `*` stands for any characters, `?` for one, and `_` also for one that cannot be part of plain
    /// names; letter case is ignored. With `__` it is compared with `server__tool`, otherwise with the tool's own
    /// name.
    /// `server__tool`, else with the tool's own name.
    Name(String),
    Class(Class),
}

/// A class of annotations (specification, server/tools).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Declared read-only.
    Read,
    /// Not declared read-only; includes destructive tools.
    Write,
    /// Declared destructive.
    Destructive,
    /// Without any declaration.
    Unmarked,
}

impl Policy {
    /// Parses the rules. A rule that is not understood is a fault, never left out.
    pub(super) fn read(entry: PolicyEntry) -> Result<Self, At<EntryError>> {
        let patterns = |key: &str, written: Option<Vec<At<String>>>| {
            let one = |(index, written): (usize, At<String>)| {
                let offset = written.offset;
                Pattern::parse(&written.value).ok_or_else(|| {
                    At::new(
                        offset,
                        EntryError::value(
                            &format!("tools.{key}[{index}]"),
                            EXPECTED,
                            format!("`\"{}\"`", written.value),
                        ),
                    )
                })
            };
            written
                .map(|written| {
                    written
                        .into_iter()
                        .enumerate()
                        .map(one)
                        .collect::<Result<Vec<_>, _>>()
                })
                .transpose()
        };
        Ok(Self {
            allow: patterns("allow", entry.allow)?,
            ask: patterns("ask", entry.ask)?.unwrap_or_default(),
            deny: patterns("deny", entry.deny)?.unwrap_or_default(),
            written: Vec::new(),
        })
    }

    /// Lets rules that name a server as `written` apply to it as well.
    pub(super) fn know_as(&mut self, server: &ServerName, written: &str) {
        self.written.push((server.clone(), written.to_lowercase()));
    }

    /// The server's name in the file, in lower case, if it differs.
    fn written_name(&self, server: &ServerName) -> Option<&str> {
        let mut written = self.written.iter();
        let found = written.find(|(known, _)| known == server);
        found.map(|(_, written)| written.as_str())
    }

    /// The decision of the rules for all servers.
    ///
    /// The rules apply to the built-in server as to any other, with one exception: `mcpzip__read_result` returns the
    /// rest of a permitted call's result, so only rules that begin with `mcpzip__` apply to it.
    #[must_use]
    pub(crate) fn judge(&self, name: &QualifiedName, hints: Hints) -> Verdict {
        if name.server.as_str() == BUILT_IN_SERVER && name.tool.as_str() == READ_RESULT {
            let names = |patterns: &[Pattern]| patterns.iter().any(|p| p.names_built_in(name));
            return verdict(true, names(&self.ask), names(&self.deny));
        }
        self.judge_by(name, hints, |pattern| pattern.admits(name, hints))
    }

    /// The decision of the rules in the entry of the tool's server.
    #[must_use]
    pub(crate) fn judge_own(&self, name: &QualifiedName, hints: Hints) -> Verdict {
        self.judge_by(name, hints, |pattern| pattern.matches(name, hints))
    }

    fn judge_by(
        &self,
        name: &QualifiedName,
        hints: Hints,
        admits: impl Fn(&Pattern) -> bool,
    ) -> Verdict {
        let (written, tool) = (
            self.written_name(&name.server),
            name.tool.as_str().to_lowercase(),
        );
        let other = written.map(|written| format!("{written}{SEPARATOR}{tool}"));
        let matches = |patterns: &[Pattern]| {
            let is_match = |pattern: &Pattern| {
                pattern.matches(name, hints)
                    || other.as_deref().is_some_and(|other| pattern.is_for(other))
            };
            patterns.iter().any(is_match)
        };
        let is_admitted = |pattern: &Pattern| {
            admits(pattern) || written.is_some_and(|written| pattern.is_of(written, &tool))
        };
        let is_allowed = self
            .allow
            .as_ref()
            .is_none_or(|allowed| allowed.iter().chain(&self.ask).any(is_admitted));
        verdict(is_allowed, matches(&self.ask), matches(&self.deny))
    }

    /// Whether it permits every tool.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.allow.is_none() && self.ask.is_empty() && self.deny.is_empty()
    }
}

fn verdict(is_allowed: bool, is_asked: bool, is_denied: bool) -> Verdict {
    if !is_allowed || is_denied {
        Verdict::Denied
    } else if is_asked {
        Verdict::Asked
    } else {
        Verdict::Allowed
    }
}

/// The tool of the built-in server that reads stored results.
const READ_RESULT: &str = "read_result";

const EXPECTED: &str = "a tool's name, in which `*` and `?` stand for others, or `@read`, `@write`, `@destructive` or `@unmarked`";

impl Pattern {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.strip_prefix('@') {
            None => (!text.is_empty()).then(|| Self::Name(text.to_lowercase())),
            Some("read") => Some(Self::Class(Class::Read)),
            Some("write") => Some(Self::Class(Class::Write)),
            Some("destructive") => Some(Self::Class(Class::Destructive)),
            Some("unmarked") => Some(Self::Class(Class::Unmarked)),
            Some(_) => None,
        }
    }

    /// Whether it matches `qualified`, in lower case.
    fn is_for(&self, qualified: &str) -> bool {
        matches!(self, Self::Name(glob) if glob.contains(SEPARATOR) && fits(glob, qualified))
    }

    fn matches(&self, name: &QualifiedName, hints: Hints) -> bool {
        match self {
            Self::Class(class) => class.holds(hints),
            Self::Name(glob) => {
                let own = name.tool.as_str().to_lowercase();
                let is_match = |text: &str| fits(glob, text);
                is_match(&own)
                    || glob.contains(SEPARATOR) && is_match(&name.to_string().to_lowercase())
            }
        }
    }

    /// Whether it permits a tool. Like [`Pattern::matches`], but a rule that names a server permits tools of that
    /// server only, also when another server's tool has such a name.
    fn admits(&self, name: &QualifiedName, hints: Hints) -> bool {
        let Self::Name(glob) = self else {
            return self.matches(name, hints);
        };
        if !glob.contains(SEPARATOR) {
            return self.matches(name, hints);
        }
        let server = name.server.as_str().to_lowercase();
        self.is_of(&server, &name.tool.as_str().to_lowercase())
    }

    /// Whether it matches a server and its tool, both in lower case, with `__` between them.
    fn is_of(&self, server: &str, tool: &str) -> bool {
        let Self::Name(glob) = self else {
            return false;
        };
        let mut splits = (0..glob.len()).filter(|at| glob.as_bytes()[*at..].starts_with(b"__"));
        splits.any(|at| fits(&glob[..at], server) && fits(&glob[at + SEPARATOR.len()..], tool))
    }

    /// Whether it matches a tool of the built-in server and names that server.
    fn names_built_in(&self, name: &QualifiedName) -> bool {
        let Self::Name(glob) = self else {
            return false;
        };
        let own = glob
            .strip_prefix(BUILT_IN_SERVER)
            .and_then(|rest| rest.strip_prefix(SEPARATOR));
        own.is_some_and(|own| fits(own, name.tool.as_str()))
    }
}

impl Class {
    fn holds(self, hints: Hints) -> bool {
        match self {
            Self::Read => hints.read_only == Some(true),
            Self::Write => hints.read_only != Some(true) && hints != Hints::default(),
            Self::Destructive => hints.read_only != Some(true) && hints.destructive == Some(true),
            Self::Unmarked => hints == Hints::default(),
        }
    }
}

/// Whether `text` matches `glob`; linear, because only the last `*` is tried again.
fn fits(glob: &str, text: &str) -> bool {
    let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
    let (mut g, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match glob.get(g) {
            Some('*') => {
                star = Some((g, t));
                g += 1;
            }
            Some(c) if stands_for(*c, text[t]) => {
                g += 1;
                t += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (g, t) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == '*')
}

/// Whether a character of a pattern matches one of a name. Clients write `_` for characters that they do not allow in
/// a name, and people copy names from there.
fn stands_for(pattern: char, c: char) -> bool {
    pattern == '?' || pattern == c || pattern == '_' && !c.is_ascii_alphanumeric() && c != '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allow: Option<&[&str]>, ask: &[&str], deny: &[&str]) -> Policy {
        let written = |patterns: &[&str]| {
            Some(
                patterns
                    .iter()
                    .map(|p| At::new(0, (*p).to_owned()))
                    .collect(),
            )
        };
        let entry = PolicyEntry {
            allow: allow.and_then(written),
            ask: written(ask),
            deny: written(deny),
        };
        Policy::read(entry).unwrap()
    }

    #[test]
    fn the_strictest_rule_counts() {
        use Verdict::{Allowed, Asked, Denied};
        let none = Hints::default();
        let reads = Hints {
            read_only: Some(true),
            ..none
        };
        let writes = Hints {
            read_only: Some(false),
            destructive: Some(false),
            ..none
        };
        let destroys = Hints {
            destructive: Some(true),
            ..none
        };
        for (policy, name, hints, expected) in [
            (policy(None, &[], &[]), "a__b", none, Allowed),
            (
                policy(None, &[], &["delete_*"]),
                "git__Delete_repo",
                none,
                Denied,
            ),
            (
                policy(None, &[], &["delete_*"]),
                "git__undelete_repo",
                none,
                Allowed,
            ),
            (
                policy(None, &[], &["delete_repo"]),
                "git__delete.repo",
                none,
                Denied,
            ),
            (
                policy(None, &[], &["delete_repo"]),
                "git__delete-repo",
                none,
                Allowed,
            ),
            (
                policy(None, &[], &["delete.repo"]),
                "git__delete_repo",
                none,
                Allowed,
            ),
            (policy(None, &[], &["git__*"]), "git__list", none, Denied),
            (
                policy(None, &[], &["git__*"]),
                "github__list",
                none,
                Allowed,
            ),
            (policy(None, &[], &["g?t__l*t"]), "git__list", none, Denied),
            (policy(None, &["*"], &["b"]), "a__b", none, Denied),
            (policy(None, &["*"], &["b"]), "a__c", none, Asked),
            (
                policy(Some(&["b", "@read"]), &[], &[]),
                "a__b",
                none,
                Allowed,
            ),
            (
                policy(Some(&["b", "@read"]), &[], &[]),
                "a__c",
                reads,
                Allowed,
            ),
            (
                policy(Some(&["b", "@read"]), &["d"], &[]),
                "a__d",
                none,
                Asked,
            ),
            (policy(Some(&["b"]), &[], &[]), "a__c", none, Denied),
            (policy(Some(&[]), &[], &[]), "a__b", none, Denied),
            (
                policy(None, &["@destructive"], &[]),
                "a__b",
                destroys,
                Asked,
            ),
            (
                policy(None, &["@destructive"], &[]),
                "a__b",
                writes,
                Allowed,
            ),
            (policy(None, &["@destructive"], &[]), "a__b", none, Allowed),
            (policy(None, &["@unmarked"], &[]), "a__b", none, Asked),
            (policy(None, &[], &["@write"]), "a__b", destroys, Denied),
            (policy(None, &[], &["@write"]), "a__b", writes, Denied),
            (policy(None, &[], &["@write"]), "a__b", reads, Allowed),
            // A read-only tool cannot be destructive by its own declaration.
            (
                policy(None, &[], &["@destructive"]),
                "a__b",
                Hints {
                    destructive: Some(true),
                    ..reads
                },
                Allowed,
            ),
        ] {
            let name = QualifiedName::readings(name).next().unwrap();
            assert_eq!(policy.judge(&name, hints), expected, "{policy:?}: {name}");
        }
    }

    #[test]
    fn a_glob_is_matched_in_little_time() {
        let text = "a".repeat(2_000);
        assert!(!fits(&format!("{}b", "a*".repeat(1_000)), &text));
        assert!(fits(&format!("{}*", "a*".repeat(1_000)), &text));
    }

    #[test]
    fn a_rule_that_is_not_understood_is_a_fault() {
        for wrong in ["@destroy", "@", " "] {
            let entry = PolicyEntry {
                allow: None,
                ask: None,
                deny: Some(vec![At::new(3, wrong.to_owned())]),
            };
            let fault = Policy::read(entry).unwrap_err();
            assert!(
                fault
                    .value
                    .to_string()
                    .starts_with("`tools.deny[0]` must be a tool's name"),
                "{}",
                fault.value
            );
        }
    }
}
