//! The rules that decide which tools may be called, and which only after the user agrees.
//!
//! A client sees three tools, so its own rules cannot distinguish the tools behind them; these rules can.

pub(crate) mod arguments;
mod condition;
pub(super) mod pattern;
mod readings;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::BUILT_IN_SERVER;
use super::error::EntryError;
use super::reader::At;
use super::rule_entry::RuleEntry;
use super::sections::PolicyEntry;
use super::subject::{Audience, Subject};
use crate::tool::{Effect, Hints, QualifiedName, SEPARATOR, ServerName, ToolName};
use condition::Condition;
use pattern::{Pattern, Use};

pub(crate) use condition::Inspected;

/// The rules for the tools of all servers, or of one. If several match a tool, the strictest one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// If present, only these tools may be used.
    allow: Option<Vec<Rule>>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
    /// The tools that no `ask` of this policy is about.
    without_asking: Vec<Unasked>,
    /// Servers whose names in the file differ from their names here: rules may use either.
    written: Vec<(ServerName, String)>,
    /// The tools to which the user gave another name: rules that restrict may use either.
    renamed: RenamedTools,
    /// The caller; rules about other users and roles are not about its calls.
    subject: Subject,
}

/// Tools by their servers' own names, each with the name that agents see.
pub(super) type RenamedTools = Arc<[(QualifiedName, ToolName)]>;

/// The permission for a tool, the strictest last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// It may be called.
    Allowed,
    /// It may be called when the user agrees to the very call.
    Asked,
    /// It may not be called. A tool without any permitted call cannot be found either.
    Denied,
}

/// A list of rules in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub(crate) enum RuleList {
    /// The rules for all servers.
    All,
    /// Those in the server's entry.
    Server,
    /// Those of a profile.
    Profile(String),
}

/// A verdict and the rule that decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    decided_by: Option<DecidedBy>,
}

/// The rule that a verdict comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DecidedBy {
    Allow(usize),
    /// There is an `allow`, and nothing in it is about the tool.
    NoAllow,
    Ask(usize),
    Deny(usize),
    /// An `ask` would be about it, and this name takes the tool out of it.
    WithoutAsking(usize),
}

impl Judgement {
    /// No rule is about the tool.
    const ALLOWED: Self = Self {
        verdict: Verdict::Allowed,
        decided_by: None,
    };
}

/// A rule: the tools it is about, and the calls of them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    /// As it is written.
    text: String,
    /// The users and roles that it is about.
    audience: Audience,
    pattern: Pattern,
    /// All of them have to hold; none stands for every call.
    when: Vec<Condition>,
}

/// A tool that is not asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unasked {
    /// As it is written.
    text: String,
    /// The callers who are not asked.
    audience: Audience,
    /// The exact name of the tool.
    name: String,
}

/// A rule as it is shown to a person.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedRule<'p> {
    /// `allow`, `ask` or `deny`.
    pub(crate) list: &'static str,
    /// Its number in the list.
    pub(crate) index: usize,
    /// As it is written.
    pub(crate) text: &'p str,
    /// The effect of a class with `?`, which includes tools by their texts.
    pub(crate) suggested: Option<Effect>,
    /// `None` for an exact name.
    pattern: Option<&'p Pattern>,
}

impl ListedRule<'_> {
    /// The tool's name in a rule that names one, in lower case; it may have wildcards.
    pub(crate) fn name(&self) -> Option<&str> {
        match self.pattern {
            Some(Pattern::Name(name)) => Some(name),
            Some(Pattern::Class(_)) | None => None,
        }
    }

    /// Whether it restricts the tools that it is about.
    pub(crate) fn restricts(&self) -> bool {
        matches!(self.list, "ask" | "deny")
    }

    /// Whether it is about a tool.
    pub(crate) fn is_about(&self, name: &QualifiedName) -> bool {
        self.pattern
            .is_some_and(|pattern| pattern.matches(name, Hints::default(), Use::Restriction))
    }
}

impl Rule {
    /// Reads a rule; the fault says what should stand at `key`.
    fn read(entry: At<RuleEntry>, key: &str) -> Result<Self, At<EntryError>> {
        let At { offset, value } = entry;
        let read = Audience::split(&value.tool)
            .and_then(|(audience, tools)| Some((audience, Pattern::parse(tools)?)));
        let (audience, pattern) = read.ok_or_else(|| {
            let found = format!("`\"{}\"`", value.tool);
            At::new(offset, EntryError::value(key, EXPECTED, found))
        })?;
        let text = value.text();
        let when = value.when.into_iter().map(|(argument, values)| {
            Condition::read(argument.clone(), &values).ok_or_else(|| {
                let key = format!("{key}.when.{argument}");
                let expected = "a text, a path that begins with `/`, `./` or `~/`, or a list of them, each with `!` before it for all others";
                At::new(offset, EntryError::value(&key, expected, format!("{values:?}")))
            })
        });
        Ok(Self {
            text,
            audience,
            pattern,
            when: when.collect::<Result<_, _>>()?,
        })
    }

    /// Whether it restricts this call. Without one only rules about every call do. An argument that cannot be read counts as a match.
    fn restricts(&self, call: Option<&Inspected<'_>>) -> bool {
        match call {
            None => self.when.is_empty(),
            Some(call) => self.when.iter().all(|one| one.may_hold(call)),
        }
    }

    /// Whether it permits this call. Without one any rule may. An argument that cannot be read does not match.
    fn permits(&self, call: Option<&Inspected<'_>>) -> bool {
        call.is_none_or(|call| self.when.iter().all(|one| one.holds_for_all(call)))
    }
}

impl Policy {
    /// Reads what is written. A rule that is not understood is a fault, never left out.
    pub(super) fn read(entry: PolicyEntry) -> Result<Self, At<EntryError>> {
        let PolicyEntry {
            allow,
            ask,
            deny,
            without_asking,
        } = entry;
        let rules = |list: &str, written: Option<Vec<At<RuleEntry>>>| {
            let one = |(index, entry)| Rule::read(entry, &format!("tools.{list}[{index}]"));
            written
                .map(|written| written.into_iter().enumerate().map(one).collect())
                .transpose()
        };
        Ok(Self {
            allow: rules("allow", allow)?,
            ask: rules("ask", ask)?.unwrap_or_default(),
            deny: rules("deny", deny)?.unwrap_or_default(),
            without_asking: exact_names(without_asking)?,
            written: Vec::new(),
            renamed: RenamedTools::default(),
            subject: Subject::default(),
        })
    }

    /// Has rules that name a server as `written` be about it, too.
    pub(super) fn know_as(&mut self, server: &ServerName, written: &str) {
        self.written.push((server.clone(), written.to_lowercase()));
    }

    /// Has rules under `deny` and `ask` be about these tools by the names that agents see, too.
    pub(super) fn know_renamed(&mut self, tools: &RenamedTools) {
        self.renamed = tools.clone();
    }

    /// Has it judge for this caller.
    pub(crate) fn judge_for(&mut self, subject: &Subject) {
        self.subject.clone_from(subject);
    }

    /// The roles that its rules name.
    pub(super) fn roles(&self) -> impl Iterator<Item = &str> {
        let rules = [&self.ask, &self.deny].into_iter().chain(&self.allow);
        let audiences = rules.flatten().map(|rule| &rule.audience);
        let unasked = self.without_asking.iter().map(|one| &one.audience);
        audiences.chain(unasked).flat_map(Audience::roles)
    }

    /// The name of a server in the file, in lower case, where it is another.
    fn written_name(&self, server: &ServerName) -> Option<&str> {
        let mut written = self.written.iter();
        let found = written.find(|(known, _)| known == server);
        found.map(|(_, written)| written.as_str())
    }

    /// The decision of the rules for all servers.
    #[must_use]
    pub(crate) fn judge(&self, name: &QualifiedName, hints: Hints) -> Verdict {
        self.judgement(name, hints, None).verdict
    }

    /// The decision of the rules in the entry of the tool's server.
    #[must_use]
    pub(crate) fn judge_own(&self, name: &QualifiedName, hints: Hints) -> Verdict {
        self.own_judgement(name, hints, None).verdict
    }

    /// The decision of the rules for all servers on a tool, or on a call of it.
    ///
    /// The rules apply to the built-in server as to any other, with one exception: `mcpzip__read_result` returns the
    /// rest of a permitted call's result, so only rules that begin with `mcpzip__` apply to it.
    #[must_use]
    pub(super) fn judgement(
        &self,
        name: &QualifiedName,
        hints: Hints,
        call: Option<&Inspected<'_>>,
    ) -> Judgement {
        if self.is_empty() {
            return Judgement::ALLOWED;
        }
        if name.server.as_str() == BUILT_IN_SERVER && name.tool.as_str() == READ_RESULT {
            let names = |rule: &Rule| {
                rule.pattern.names_built_in(name)
                    && rule.restricts(call)
                    && rule.audience.restricts(&self.subject)
            };
            return self.restriction(names).unwrap_or(Judgement::ALLOWED);
        }
        let full = format!("{}{SEPARATOR}{}", name.server, name.tool);
        let unasked = self.unasked(&full);
        self.judge_by(name, hints, call, unasked, |pattern| {
            pattern.admits(name, hints)
        })
    }

    /// The decision of the rules in the entry of the tool's server on a tool, or on a call of it.
    #[must_use]
    pub(super) fn own_judgement(
        &self,
        name: &QualifiedName,
        hints: Hints,
        call: Option<&Inspected<'_>>,
    ) -> Judgement {
        if self.is_empty() {
            return Judgement::ALLOWED;
        }
        let unasked = self.unasked(name.tool.as_str());
        self.judge_by(name, hints, call, unasked, |pattern| {
            pattern.matches(name, hints, Use::Permission)
        })
    }

    fn judge_by(
        &self,
        name: &QualifiedName,
        hints: Hints,
        call: Option<&Inspected<'_>>,
        unasked: Option<usize>,
        admits: impl Fn(&Pattern) -> bool,
    ) -> Judgement {
        let written = self.written_name(&name.server);
        let tool = name.tool.as_str().to_lowercase();
        let is_about = self.is_about(name, hints);
        let is_admitted = |pattern: &Pattern| {
            admits(pattern) || written.is_some_and(|written| pattern.is_of(written, &tool))
        };
        self.weigh(
            unasked,
            |rule| {
                is_about(&rule.pattern)
                    && rule.restricts(call)
                    && rule.audience.restricts(&self.subject)
            },
            |rule| {
                is_admitted(&rule.pattern)
                    && rule.permits(call)
                    && rule.audience.permits(&self.subject)
            },
        )
    }

    /// Whether a pattern of a restriction is about a tool, by any of its names.
    fn is_about(&self, name: &QualifiedName, hints: Hints) -> impl Fn(&Pattern) -> bool {
        let written = self.written_name(&name.server);
        let renamed = self.renamed.iter().filter(|(own, _)| own == name);
        let shown = renamed.map(|(own, shown)| QualifiedName {
            server: own.server.clone(),
            tool: shown.clone(),
        });
        let names = std::iter::once(name.clone()).chain(shown);
        let names = names.map(move |name| {
            let tool = || name.tool.as_str().to_lowercase();
            let other = written.map(|written| format!("{written}{SEPARATOR}{}", tool()));
            (name, other)
        });
        let names: Vec<(QualifiedName, Option<String>)> = names.collect();
        move |pattern| {
            names.iter().any(|(name, other)| {
                pattern.matches(name, hints, Use::Restriction)
                    || other.as_deref().is_some_and(|other| pattern.is_for(other))
            })
        }
    }

    /// The position of the tool with this name among those that the caller is not asked about.
    fn unasked(&self, name: &str) -> Option<usize> {
        let is_meant = |one: &Unasked| one.name == name && one.audience.permits(&self.subject);
        self.without_asking.iter().position(is_meant)
    }

    /// Whether a rule asks the caller about some call of a tool.
    #[must_use]
    pub(super) fn asks_about(&self, name: &QualifiedName, hints: Hints) -> bool {
        let is_about = self.is_about(name, hints);
        let mut rules = self.ask.iter();
        rules.any(|rule| is_about(&rule.pattern) && rule.audience.restricts(&self.subject))
    }

    /// Whether a rule asks about some tool or call.
    #[must_use]
    pub(crate) fn asks(&self) -> bool {
        !self.ask.is_empty()
    }

    /// The strictest of what the rules say, by those that restrict a call and those that permit it. A tool that is not asked about
    /// stays denied where a rule denies it, or where neither `allow` nor `ask` names it.
    fn weigh(
        &self,
        unasked: Option<usize>,
        restricts: impl Fn(&Rule) -> bool,
        permits: impl Fn(&Rule) -> bool,
    ) -> Judgement {
        match (self.restriction(restricts), unasked) {
            (None, _) => self.admission(permits),
            (Some(restriction), Some(index)) if restriction.verdict == Verdict::Asked => {
                let admission = self.admission(permits);
                let is_allowed = admission.verdict == Verdict::Allowed;
                let decided_by = Some(DecidedBy::WithoutAsking(index)).filter(|_| is_allowed);
                Judgement {
                    decided_by: decided_by.or(admission.decided_by),
                    ..admission
                }
            }
            (Some(restriction), _) => restriction,
        }
    }

    /// The decision of `allow` about a call that no rule restricts.
    fn admission(&self, permits: impl Fn(&Rule) -> bool) -> Judgement {
        let Some(allowed) = &self.allow else {
            return Judgement::ALLOWED;
        };
        let (verdict, decided_by) = match allowed.iter().position(&permits) {
            Some(index) => (Verdict::Allowed, Some(DecidedBy::Allow(index))),
            // A tool that an `ask` names may be called, under its condition.
            None if self.ask.iter().any(&permits) => (Verdict::Allowed, None),
            None => (Verdict::Denied, Some(DecidedBy::NoAllow)),
        };
        Judgement {
            verdict,
            decided_by,
        }
    }

    /// The denial or question of the rules that restrict a call.
    fn restriction(&self, restricts: impl Fn(&Rule) -> bool) -> Option<Judgement> {
        let position = |rules: &[Rule]| rules.iter().position(&restricts);
        let (verdict, decided_by) = match position(&self.deny) {
            Some(index) => (Verdict::Denied, DecidedBy::Deny(index)),
            None => (Verdict::Asked, DecidedBy::Ask(position(&self.ask)?)),
        };
        Some(Judgement {
            verdict,
            decided_by: Some(decided_by),
        })
    }

    /// The rule that a judgement of this policy comes from, as `tools.deny[0] "delete_*"`; `None` where no rule is about the
    /// tool.
    #[must_use]
    pub(super) fn rule_of(&self, judgement: Judgement) -> Option<String> {
        let named = |list: &str, rules: &[Rule], index: usize| {
            let text = rules.get(index).map_or("", |rule| &rule.text);
            format!("tools.{list}[{index}] {text}")
        };
        Some(match judgement.decided_by? {
            DecidedBy::Allow(index) => {
                named("allow", self.allow.as_deref().unwrap_or_default(), index)
            }
            DecidedBy::NoAllow => {
                let mut allowed = self.allow.iter().flatten().peekable();
                let is_for_others = allowed.peek().is_some()
                    && !allowed.any(|rule| rule.audience.permits(&self.subject));
                match is_for_others {
                    true => {
                        "tools.allow, whose rules are for users and roles that this client is not"
                    }
                    false => "tools.allow, which does not name it",
                }
                .to_owned()
            }
            DecidedBy::Ask(index) => named("ask", &self.ask, index),
            DecidedBy::Deny(index) => named("deny", &self.deny, index),
            DecidedBy::WithoutAsking(index) => {
                let unasked = self.without_asking.get(index);
                let text = unasked.map_or("", |one| one.text.as_str());
                format!("tools.without_asking[{index}] \"{text}\"")
            }
        })
    }

    /// The rules, list by list, the strictest first.
    pub(crate) fn rules(&self) -> impl Iterator<Item = ListedRule<'_>> {
        let Self {
            allow,
            ask,
            deny,
            without_asking,
            written: _,
            renamed: _,
            subject: _,
        } = self;
        let lists = [
            ("deny", Some(deny)),
            ("ask", Some(ask)),
            ("allow", allow.as_ref()),
        ];
        let rules = lists.into_iter().flat_map(|(list, rules)| {
            let rules = rules.into_iter().flatten().enumerate();
            rules.map(move |(index, rule)| ListedRule {
                list,
                index,
                text: &rule.text,
                suggested: rule.pattern.suggested(),
                pattern: Some(&rule.pattern),
            })
        });
        let unasked = without_asking.iter().enumerate();
        rules.chain(unasked.map(|(index, one)| ListedRule {
            list: "without_asking",
            index,
            text: &one.text,
            suggested: None,
            pattern: None,
        }))
    }

    /// Whether a rule looks at arguments.
    #[must_use]
    pub(super) fn inspects(&self) -> bool {
        // All fields are named, here and below, so that a new kind of rule cannot be forgotten.
        let Self {
            allow,
            ask,
            deny,
            without_asking: _,
            written: _,
            renamed: _,
            subject: _,
        } = self;
        let mut rules = [ask, deny].into_iter().chain(allow).flatten();
        rules.any(|rule| !rule.when.is_empty())
    }

    /// Whether it permits every tool.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            allow,
            ask,
            deny,
            without_asking: _,
            written: _,
            renamed: _,
            subject: _,
        } = self;
        allow.is_none() && ask.is_empty() && deny.is_empty()
    }
}

/// The tools that are not asked about, by exact names. A pattern could take more tools out of a question than the person saw.
fn exact_names(written: Option<Vec<At<String>>>) -> Result<Vec<Unasked>, At<EntryError>> {
    let read = |(index, At { offset, value }): (usize, At<String>)| {
        let is_exact = |name: &str| !name.starts_with(['@', '!']) && !name.contains(['*', '?']);
        match Audience::split(&value).filter(|(_, name)| !name.is_empty() && is_exact(name)) {
            Some((audience, name)) => Ok(Unasked {
                audience,
                name: name.to_owned(),
                text: value,
            }),
            None => {
                let key = format!("tools.without_asking[{index}]");
                let fault = EntryError::value(&key, UNASKED_EXPECTED, format!("`\"{value}\"`"));
                Err(At::new(offset, fault))
            }
        }
    };
    let names = written.into_iter().flatten().enumerate();
    names.map(read).collect()
}

/// The tool of the built-in server that reads on in what was shortened.
const READ_RESULT: &str = "read_result";

const EXPECTED: &str = "a tool's name without spaces and commas, in which `*` and `?` stand for others, or `@read`, `@write`, `@destructive`, `@unmarked`, `@read?`, `@write?` or `@destructive?`; before it there may be `@user:NAME`, `@role:NAME` or `@local`, or each of them with `!` for all others";

const UNASKED_EXPECTED: &str = "the exact name of a tool, without `*` and `?`; before it there may be `@user:NAME`, `@role:NAME` or `@local`, or each of them with `!` for all others";

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allow: Option<&[&str]>, ask: &[&str], deny: &[&str]) -> Policy {
        let written = |patterns: &[&str]| {
            Some(
                patterns
                    .iter()
                    .map(|p| At::new(0, RuleEntry::of_tool(p)))
                    .collect(),
            )
        };
        let entry = PolicyEntry {
            allow: allow.and_then(written),
            ask: written(ask),
            deny: written(deny),
            without_asking: None,
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
        let seems = |guess| Hints {
            guess: Some(guess),
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
            // By its texts: only where the rule says so, and never against a declaration.
            (
                policy(None, &["@destructive?"], &[]),
                "a__b",
                seems(Effect::Destructive),
                Asked,
            ),
            (
                policy(None, &["@destructive"], &[]),
                "a__b",
                seems(Effect::Destructive),
                Allowed,
            ),
            (
                policy(None, &["@destructive?"], &[]),
                "a__b",
                seems(Effect::Write),
                Allowed,
            ),
            (
                policy(None, &["@write?"], &[]),
                "a__b",
                seems(Effect::Destructive),
                Asked,
            ),
            (
                policy(None, &["@destructive?"], &[]),
                "a__b",
                reads,
                Allowed,
            ),
            (
                policy(None, &["@destructive?"], &[]),
                "a__b",
                destroys,
                Asked,
            ),
            (
                policy(Some(&["@read?"]), &[], &[]),
                "a__b",
                seems(Effect::Read),
                Allowed,
            ),
            (
                policy(Some(&["@read"]), &[], &[]),
                "a__b",
                seems(Effect::Read),
                Denied,
            ),
            (
                policy(Some(&["@read?"]), &[], &[]),
                "a__b",
                seems(Effect::Write),
                Denied,
            ),
            (
                policy(Some(&["@read?"]), &[], &[]),
                "a__b",
                destroys,
                Denied,
            ),
            // A tool that suggests nothing is destructive for `ask` and `deny`, and in no class for `allow`.
            (policy(None, &[], &["@destructive?"]), "a__b", none, Denied),
            (policy(None, &["@write?"], &[]), "a__b", none, Asked),
            (policy(None, &["@read?"], &[]), "a__b", none, Allowed),
            (
                policy(Some(&["@destructive?", "@read?"]), &[], &[]),
                "a__b",
                none,
                Denied,
            ),
            (policy(None, &[], &["@write"]), "a__b", destroys, Denied),
            (policy(None, &[], &["@write"]), "a__b", writes, Denied),
            (policy(None, &[], &["@write"]), "a__b", reads, Allowed),
            // A tool that declares itself read-only is not destructive for these rules.
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
            let found = policy.judge(&name, hints);
            assert_eq!(found, expected, "{policy:?}: {name}");
        }
    }

    #[test]
    fn a_rule_that_is_not_understood_is_a_fault() {
        for wrong in ["@destroy", "@", " "] {
            let entry = PolicyEntry {
                allow: None,
                ask: None,
                deny: Some(vec![At::new(3, RuleEntry::of_tool(wrong))]),
                without_asking: None,
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
