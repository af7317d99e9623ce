//! The caller that a configuration is for, as rules know it: a person with roles, or a session without one.

use std::collections::BTreeSet;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;

/// The caller of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The user of this machine, over stdio or at a terminal: no named person, and without a role.
    #[default]
    Local,
    /// A client over HTTP without an identity. Restrictions that name anyone are about it; permissions are not.
    Unidentified,
    /// A person or program that showed who it is.
    Person(Arc<Person>),
}

/// A person or program with an identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Person {
    /// The name, as `@user:` has it.
    pub(crate) name: String,
    /// The roles, as `@role:` has them.
    pub(crate) roles: BTreeSet<String>,
}

/// The callers that a rule is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Audience {
    /// Any of them; everyone without one.
    among: Vec<Named>,
    /// None of them.
    except: Vec<Named>,
}

/// A caller in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    /// The user of this machine.
    Local,
    User(String),
    Role(String),
}

/// The user of this machine in a rule.
pub(crate) const LOCAL: &str = "@local";

impl Named {
    /// Whether a word stands for callers.
    fn is_written(word: &str) -> bool {
        word == LOCAL || word.starts_with("@user:") || word.starts_with("@role:")
    }

    fn parse(word: &str) -> Option<Self> {
        if word == LOCAL {
            return Some(Self::Local);
        }
        let (named, name): (fn(String) -> Self, _) = match word.strip_prefix("@user:") {
            Some(name) => (Self::User, name),
            None => (Self::Role, word.strip_prefix("@role:")?),
        };
        // The form that names of people have.
        (!name.is_empty()).then(|| named(name.nfc().collect()))
    }

    /// Whether the person is meant. Names that differ in letter case alone count as equal where `is_alike`.
    fn is(&self, person: &Person, is_alike: bool) -> bool {
        let equal = |one: &str, other: &str| match is_alike {
            true => one.to_lowercase() == other.to_lowercase(),
            false => one == other,
        };
        match self {
            Self::Local => false,
            Self::User(name) => equal(name, &person.name),
            Self::Role(name) => person.roles.iter().any(|role| equal(name, role)),
        }
    }
}

impl Audience {
    /// The users and roles at the beginning of a rule, and the rest of it. `None` if one of these words cannot be read.
    pub(super) fn split(rule: &str) -> Option<(Self, &str)> {
        let (mut audience, mut rest) = (Self::default(), rule.trim());
        loop {
            let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            let (names, written) = match word.strip_prefix('!') {
                Some(written) if written.starts_with('@') => (&mut audience.except, written),
                _ => (&mut audience.among, word),
            };
            if !Named::is_written(written) {
                break;
            }
            names.push(Named::parse(written)?);
            rest = after.trim_start();
        }
        // Readers would disagree about the meaning of both together.
        let is_clear = audience.among.is_empty() || audience.except.is_empty();
        let is_everyone = audience.among.is_empty() && audience.except.is_empty();
        // A rule of names alone is about every tool.
        let tools = match rest {
            "" if !is_everyone => "*",
            rest => rest,
        };
        is_clear.then_some((audience, tools))
    }

    /// The roles that it names.
    pub(super) fn roles(&self) -> impl Iterator<Item = &str> {
        let all = self.among.iter().chain(&self.except);
        all.filter_map(|named| match named {
            Named::Role(name) => Some(name.as_str()),
            Named::Local | Named::User(_) => None,
        })
    }

    /// Whether a restriction is about the caller: yes, unless it certainly is not.
    pub(super) fn restricts(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Unidentified => true,
            Subject::Local => {
                (self.among.is_empty() || self.among.contains(&Named::Local))
                    && !self.except.contains(&Named::Local)
            }
            Subject::Person(person) => {
                (self.among.is_empty() || self.among.iter().any(|named| named.is(person, true)))
                    && !self.except.iter().any(|named| named.is(person, false))
            }
        }
    }

    /// Whether a permission is about the caller: no, unless it certainly is.
    pub(super) fn permits(&self, subject: &Subject) -> bool {
        match subject {
            Subject::Local if self.among.contains(&Named::Local) => true,
            Subject::Local | Subject::Unidentified => {
                self.among.is_empty() && self.except.is_empty()
            }
            Subject::Person(person) => {
                (self.among.is_empty() || self.among.iter().any(|named| named.is(person, false)))
                    && !self.except.iter().any(|named| named.is(person, true))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(name: &str, roles: &[&str]) -> Subject {
        Subject::Person(Arc::new(Person {
            name: name.to_owned(),
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        }))
    }

    #[test]
    fn a_rule_is_about_the_users_and_roles_that_it_names() {
        let anna = person("anna", &["dev"]);
        for (rule, tools, subject, restricts, permits) in [
            ("git__*", "git__*", &anna, true, true),
            ("@user:anna git__*", "git__*", &anna, true, true),
            ("@user:anna", "*", &anna, true, true),
            ("@user:bob git__*", "git__*", &anna, false, false),
            ("@user:ANNA push", "push", &anna, true, false),
            ("@role:dev @role:ops @write", "@write", &anna, true, true),
            ("@role:ops @write", "@write", &anna, false, false),
            ("!@role:ops push", "push", &anna, true, true),
            ("!@role:dev push", "push", &anna, false, false),
            ("!@role:DEV push", "push", &anna, true, false),
            ("@user:anna x", "x", &Subject::Local, false, false),
            ("!@user:anna x", "x", &Subject::Local, true, false),
            ("@user:Jose\u{301} x", "x", &person("José", &[]), true, true),
            ("x", "x", &Subject::Local, true, true),
            ("@user:anna x", "x", &Subject::Unidentified, true, false),
            ("!@role:dev x", "x", &Subject::Unidentified, true, false),
            ("x", "x", &Subject::Unidentified, true, true),
            ("@local x", "x", &Subject::Local, true, true),
            ("@local x", "x", &anna, false, false),
            ("@local x", "x", &Subject::Unidentified, true, false),
            ("!@local x", "x", &Subject::Local, false, false),
            ("!@local x", "x", &anna, true, true),
        ] {
            let (audience, rest) = Audience::split(rule).expect(rule);
            assert_eq!(rest, tools, "{rule}");
            assert_eq!(audience.restricts(subject), restricts, "{rule} {subject:?}");
            assert_eq!(audience.permits(subject), permits, "{rule} {subject:?}");
        }
    }

    #[test]
    fn names_that_cannot_be_read_are_a_fault_of_the_rule() {
        for rule in ["@user: git__*", "@role:", "@user:a !@user:b x", "!@role:"] {
            assert_eq!(Audience::split(rule), None, "{rule}");
        }
        // These are left to the reader of tools, which rejects them.
        for rule in ["@users:a x", "! x", "@user", "!@read"] {
            let (audience, rest) = Audience::split(rule).expect(rule);
            assert_eq!((audience, rest), (Audience::default(), rule));
        }
    }
}
