//! Which tools may be called, and which only when the user says so.
//!
//! Behind three tools a client's own rules no longer see which tool runs, so the rules are here.

use super::BUILT_IN_SERVER;
use super::error::EntryError;
use super::file::PolicyEntry;
use super::reader::At;
use crate::tool::{Hints, QualifiedName, SEPARATOR, ServerName};

/// The rules for the tools of all servers, or of one. Where several match a tool, the strictest counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Where there are any, only these tools may be used.
    allow: Option<Vec<Pattern>>,
    ask: Vec<Pattern>,
    deny: Vec<Pattern>,
    /// Servers by their names in the file, where these are others: rules may name either.
    written: Vec<(ServerName, String)>,
}

/// What may be done with a tool, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It may be called.
    Allowed,
    /// It may be called when the user agrees to the very call.
    Asked,
    /// It is not there for anybody.
    Denied,
}

/// Some tools: by name, or by what their servers claim of them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// `*` stands for any characters, `?` for one, `_` also for one that is no part of plain names; letter case does not count. With `__` it is compared with
    /// `server__tool`, else with the tool's own name.
    Name(String),
    Class(Class),
}

/// What annotations claim (specification, server/tools).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Declared to only read.
    Read,
    /// Declared to do more than that, what destroys included.
    Write,
    /// Declared to destroy.
    Destructive,
    /// Nothing is declared.
    Unmarked,
}

impl Policy {
    /// Reads what is written. A rule that is not understood is a fault, never left out.
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

    /// Has rules that name a server as `written` be about it, too.
    pub(super) fn know_as(&mut self, server: &ServerName, written: &str) {
        self.written.push((server.clone(), written.to_lowercase()));
    }

    /// The name of a server in the file, in lower case, where it is another.
    fn written_name(&self, server: &ServerName) -> Option<&str> {
        let mut written = self.written.iter();
        let found = written.find(|(known, _)| known == server);
        found.map(|(_, written)| written.as_str())
    }

    /// What the rules for all servers say of a tool.
    ///
    /// Rules hold for the built-in server as for any other, but for one tool: `mcpzip__read_result` gives back the rest of
    /// what a permitted call returned, so that only rules that begin with `mcpzip__` say something of it.
    #[must_use]
    pub(crate) fn judge(&self, name: &QualifiedName, hints: Hints) -> Verdict {
        if name.server.as_str() == BUILT_IN_SERVER && name.tool.as_str() == READ_RESULT {
            let names = |patterns: &[Pattern]| patterns.iter().any(|p| p.names_built_in(name));
            return verdict(true, names(&self.ask), names(&self.deny));
        }
        self.judge_by(name, hints, |pattern| pattern.admits(name, hints))
    }

    /// What the rules in the entry of a tool's own server say of it.
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

    /// Whether it lets every tool through.
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

/// The tool of the built-in server that reads on in what was shortened.
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

    /// Whether it names `qualified`, in lower case.
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

    /// Whether it permits a tool: as [`Pattern::matches`], but a rule that names a server permits tools of that server
    /// alone, whatever those of others are called.
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

    /// Whether it names a server and a tool of it, both in lower case, with `__` between the two.
    fn is_of(&self, server: &str, tool: &str) -> bool {
        let Self::Name(glob) = self else {
            return false;
        };
        let mut splits = (0..glob.len()).filter(|at| glob.as_bytes()[*at..].starts_with(b"__"));
        splits.any(|at| fits(&glob[..at], server) && fits(&glob[at + SEPARATOR.len()..], tool))
    }

    /// Whether it matches a tool of the built-in server, and says that server's name.
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

/// Whether `text` is what `glob` describes; linear but for the last `*`, which alone is tried again.
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

/// Whether a character of a pattern stands for one of a name. Clients write `_` for what they take for no part of a name,
/// and people copy names from there.
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
            // What says that it only reads cannot destroy by its own words.
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
