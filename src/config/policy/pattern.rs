//! The pattern of a rule, which matches tools.

use crate::config::BUILT_IN_SERVER;
use crate::tool::{Effect, Hints, QualifiedName, SEPARATOR};

/// A set of tools: by name, or by the annotations of their servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) enum Pattern {
    /// A name in which `*` stands for any characters, `?` for one, and `_` also for one that cannot be part of plain
    /// names; letter case is ignored. With `__` it is compared with `server__tool`, otherwise with the tool's own name.
    Name(String),
    Class(Class),
}

/// A class of annotations (specification, server/tools).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum Class {
    /// Declared read-only.
    Read,
    /// Not declared read-only; includes destructive tools.
    Write,
    /// Declared destructive.
    Destructive,
    /// Without any declaration.
    Unmarked,
    /// A class with `?`: those declared so, and those without any declaration whose texts suggest it.
    Suggested(Effect),
}

/// The use of a rule, which decides about tools without any declaration whose texts suggest nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum Use {
    /// `ask` and `deny`: they count as destructive.
    Restriction,
    /// `allow`: they are in no class.
    Permission,
}

impl Pattern {
    /// Reads one; several in a text are none.
    pub(in crate::config) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text.strip_prefix('@') {
            None => is_one_name(text).then(|| Self::Name(text.to_lowercase())),
            Some("read") => Some(Self::Class(Class::Read)),
            Some("write") => Some(Self::Class(Class::Write)),
            Some("destructive") => Some(Self::Class(Class::Destructive)),
            Some("unmarked") => Some(Self::Class(Class::Unmarked)),
            Some("read?") => Some(Self::Class(Class::Suggested(Effect::Read))),
            Some("write?") => Some(Self::Class(Class::Suggested(Effect::Write))),
            Some("destructive?") => Some(Self::Class(Class::Suggested(Effect::Destructive))),
            Some(_) => None,
        }
    }

    /// Whether it names `qualified`, in lower case.
    pub(super) fn is_for(&self, qualified: &str) -> bool {
        matches!(self, Self::Name(glob) if glob.contains(SEPARATOR) && fits(glob, qualified))
    }

    /// The effect of a class with `?`.
    pub(super) fn suggested(&self) -> Option<Effect> {
        match self {
            Self::Class(Class::Suggested(effect)) => Some(*effect),
            _ => None,
        }
    }

    pub(in crate::config) fn matches(&self, name: &QualifiedName, hints: Hints, used: Use) -> bool {
        match self {
            Self::Class(class) => class.holds(hints, used),
            Self::Name(glob) => {
                let own = name.tool.as_str().to_lowercase();
                let is_match = |text: &str| fits(glob, text);
                is_match(&own)
                    || glob.contains(SEPARATOR) && is_match(&name.to_string().to_lowercase())
            }
        }
    }

    /// Whether it permits a tool: as [`Pattern::matches`], but a rule that names a server permits tools of that server
    /// alone, never those of others with like names.
    pub(super) fn admits(&self, name: &QualifiedName, hints: Hints) -> bool {
        let Self::Name(glob) = self else {
            return self.matches(name, hints, Use::Permission);
        };
        if !glob.contains(SEPARATOR) {
            return self.matches(name, hints, Use::Permission);
        }
        let server = name.server.as_str().to_lowercase();
        self.is_of(&server, &name.tool.as_str().to_lowercase())
    }

    /// Whether it is the name of a tool, in lower case, without its server's.
    pub(in crate::config) fn names(&self, tool: &str) -> bool {
        matches!(self, Self::Name(glob) if fits(glob, tool))
    }

    /// Whether it names a server and a tool of it, both in lower case, with `__` between the two.
    pub(in crate::config) fn is_of(&self, server: &str, tool: &str) -> bool {
        let Self::Name(glob) = self else {
            return false;
        };
        let mut splits = (0..glob.len()).filter(|at| glob.as_bytes()[*at..].starts_with(b"__"));
        splits.any(|at| fits(&glob[..at], server) && fits(&glob[at + SEPARATOR.len()..], tool))
    }

    /// Whether it matches a tool of the built-in server, and says that server's name.
    pub(super) fn names_built_in(&self, name: &QualifiedName) -> bool {
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
    fn holds(self, hints: Hints, used: Use) -> bool {
        match self {
            Self::Read => hints.read_only == Some(true),
            Self::Write => hints.read_only != Some(true) && hints.is_declared(),
            Self::Destructive => hints.read_only != Some(true) && hints.destructive == Some(true),
            Self::Unmarked => !hints.is_declared(),
            Self::Suggested(effect) if hints.is_declared() => {
                Self::declared(effect).holds(hints, used)
            }
            Self::Suggested(effect) => {
                let unknown = (used == Use::Restriction).then_some(Effect::Destructive);
                hints
                    .guess
                    .or(unknown)
                    .is_some_and(|guess| effect.covers(guess))
            }
        }
    }

    /// The class of tools that declare an effect.
    const fn declared(effect: Effect) -> Self {
        match effect {
            Effect::Read => Self::Read,
            Effect::Write => Self::Write,
            Effect::Destructive => Self::Destructive,
        }
    }
}

/// Whether a text is the name of one tool or a pattern of it. Before `__` it may have spaces, as servers are written in some files.
fn is_one_name(text: &str) -> bool {
    let tool = text.split_once(SEPARATOR).map_or(text, |(_, tool)| tool);
    !text.is_empty() && !text.contains(',') && !tool.contains(char::is_whitespace)
}

/// Whether `text` is what `glob` describes; linear but for the last `*`, which alone is tried again.
pub(in crate::config) fn fits(glob: &str, text: &str) -> bool {
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

/// Whether a character of a pattern stands for one of a name. Clients write `_` for characters that they do not permit in a name,
/// and people copy names from there.
fn stands_for(pattern: char, c: char) -> bool {
    pattern == '?' || pattern == c || pattern == '_' && !c.is_ascii_alphanumeric() && c != '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_names_in_one_text_are_none() {
        for text in ["a__b, a__c", "a__b a__c", "a,b__c", "a b", "a__b,", ""] {
            assert_eq!(Pattern::parse(text), None, "{text}");
        }
        for text in ["a__b", " a__b ", "my server__b", "b*"] {
            assert!(Pattern::parse(text).is_some(), "{text}");
        }
    }

    #[test]
    fn a_glob_is_matched_in_little_time() {
        let text = "a".repeat(2_000);
        assert!(!fits(&format!("{}b", "a*".repeat(1_000)), &text));
        assert!(fits(&format!("{}*", "a*".repeat(1_000)), &text));
    }
}
