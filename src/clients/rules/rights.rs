//! The rules for a server's entry: those of all clients that had it. Where they differ, the strictest applies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::Node;
use super::super::references::literal;
use super::{Carried, Outcome, Rule, glob};

/// The tool rules and projects of an entry of mcpzip.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Rights {
    only: Option<BTreeSet<String>>,
    ask: BTreeSet<String>,
    deny: BTreeSet<String>,
    /// The tools that run without a question although `ask` names them.
    unasked: BTreeSet<String>,
    when: Conditional,
    within: BTreeSet<String>,
    outside: BTreeSet<String>,
}

/// Rules that hold under a condition, `{"tool": …, "when": …}`, which only mcpzip's own entries have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Conditional {
    allow: Vec<Node>,
    ask: Vec<Node>,
    deny: Vec<Node>,
}

impl Rights {
    /// Combines `rules` for a server of one project, or of all projects.
    pub(in super::super) fn of<'r>(
        rules: impl Iterator<Item = &'r Rule>,
        project: Option<&PathBuf>,
    ) -> Self {
        let within = project
            .map(|project| literal(&project.to_string_lossy()))
            .into_iter()
            .collect();
        let start = Self {
            within,
            ..Self::default()
        };
        // A client applies all of its rules, so each may only take something away.
        rules.fold(start, |rights, rule| {
            let one = Self::of_one(&rule.carried);
            Self {
                outside: rights.outside.union(&one.outside).cloned().collect(),
                ..rights.with_tools_of(&one)
            }
        })
    }

    /// Those of one rule.
    pub(in super::super) fn of_one(carried: &Carried) -> Self {
        let mut rights = Self::default();
        match carried {
            Carried::Deny(tools) => rights.deny.extend(tools.iter().cloned()),
            Carried::Ask(tools) => rights.ask.extend(tools.iter().cloned()),
            Carried::Only(tools) => rights.only = Some(tools.iter().cloned().collect()),
            Carried::NotIn(project) => {
                rights.outside.insert(literal(&project.to_string_lossy()));
            }
            Carried::Needless(_) | Carried::Lost(_) => {}
        }
        rights
    }

    /// Reads the rules of an entry.
    pub(in super::super) fn read(entry: &Node) -> Self {
        let written = |key: &str| {
            let list = entry.at(&["tools", key]);
            list.filter(|list| matches!(list, Node::List(_)))
        };
        let list = |key: &str| {
            let texts = |list: &Node| {
                let texts = list.items().iter().filter_map(Node::as_text);
                texts.map(str::to_owned).collect()
            };
            written(key).map(texts)
        };
        let conditional = |key: &str| {
            let items = written(key).map(Node::items).unwrap_or_default().iter();
            items
                .filter(|item| item.as_text().is_none())
                .cloned()
                .collect()
        };
        let mut rights = Self {
            only: list("allow"),
            ask: list("ask").unwrap_or_default(),
            deny: list("deny").unwrap_or_default(),
            unasked: list("without_asking").unwrap_or_default(),
            when: Conditional {
                allow: conditional("allow"),
                ask: conditional("ask"),
                deny: conditional("deny"),
            },
            ..Self::default()
        };
        for project in entry
            .get("projects")
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .filter_map(Node::as_text)
        {
            match project.strip_prefix('!') {
                Some(project) => rights.outside.insert(project.to_owned()),
                None => rights.within.insert(project.to_owned()),
            };
        }
        rights
    }

    /// Returns the entry with these rules. All else in it stays.
    pub(in super::super) fn write(&self, entry: &Node) -> Node {
        let list = |texts: Option<&BTreeSet<String>>, conditional: &[Node]| {
            let texts = texts.into_iter().flatten().map(Node::text);
            Node::List(texts.chain(conditional.iter().cloned()).collect())
        };
        let mut tools = members(entry.get("tools"));
        let allow = self.only.as_ref();
        for (key, list, is_needed) in [
            ("allow", list(allow, &self.when.allow), allow.is_some()),
            ("ask", list(Some(&self.ask), &self.when.ask), false),
            ("deny", list(Some(&self.deny), &self.when.deny), false),
            ("without_asking", list(Some(&self.unasked), &[]), false),
        ] {
            put(&mut tools, key, list, is_needed);
        }
        let outside = self.outside.iter().map(|project| format!("!{project}"));
        let projects = Node::texts(self.within.iter().cloned().chain(outside));
        let mut entry = members(Some(entry));
        put(&mut entry, "tools", Node::Map(tools), false);
        put(&mut entry, "projects", projects, false);
        Node::Map(entry)
    }

    /// Merges two sets of rules: the stricter of each rule, and the union of projects.
    pub(in super::super) fn and(&self, other: &Self) -> Self {
        let both =
            |one: &BTreeSet<String>, two: &BTreeSet<String>| one.union(two).cloned().collect();
        let is_everywhere = self.within.is_empty() || other.within.is_empty();
        let (only, ask) = self.permitted_by_both(other);
        Self {
            only,
            ask,
            deny: both(&self.deny, &other.deny),
            unasked: self
                .left_unasked(other)
                .chain(other.left_unasked(self))
                .cloned()
                .collect(),
            when: self.conditional_of_both(other),
            within: if is_everywhere {
                BTreeSet::new()
            } else {
                both(&self.within, &other.within)
            },
            outside: both(&self.outside, &other.outside),
        }
    }

    /// The tools that may be called, if not all: with an `allow`, those that it names and those that `ask` names.
    fn callable(&self) -> Option<BTreeSet<String>> {
        let only = self.only.as_ref()?;
        Some(only.union(&self.ask).cloned().collect())
    }

    /// Whether no tool may be called.
    pub(in super::super) fn denies_all(&self) -> bool {
        let permits_none = self.callable().is_some_and(|tools| tools.is_empty());
        let is_conditional = !self.when.allow.is_empty() || !self.when.ask.is_empty();
        self.deny.contains("*") || permits_none && !is_conditional
    }

    /// `allow` and `ask` of both. An `ask` of one permits no tool that the other withholds: it is then about the tools that both permit.
    fn permitted_by_both(&self, other: &Self) -> (Option<BTreeSet<String>>, BTreeSet<String>) {
        let asked: BTreeSet<&String> = self.ask.union(&other.ask).collect();
        let sides: Vec<_> = [self, other]
            .iter()
            .filter_map(|side| side.callable())
            .collect();
        let Some(callable) = stricter(self.callable(), other.callable()) else {
            return (None, asked.into_iter().cloned().collect());
        };
        let mut ask = BTreeSet::new();
        for pattern in asked {
            match sides.iter().all(|side| lets(side, pattern)) {
                true => _ = ask.insert(pattern.clone()),
                false => ask.extend(
                    callable
                        .iter()
                        .filter(|tool| may_match(pattern, tool))
                        .cloned(),
                ),
            }
        }
        let is_named = |tool: &String| {
            let lists = [&self.only, &other.only].into_iter().flatten();
            lists.into_iter().any(|only| only.contains(tool))
        };
        let only = callable
            .into_iter()
            .filter(|tool| is_named(tool) || !ask.contains(tool));
        (Some(only.collect()), ask)
    }

    /// The tools that run without a question, and that `other` does not ask about, or neither.
    fn left_unasked<'r>(&'r self, other: &'r Self) -> impl Iterator<Item = &'r String> {
        self.unasked.iter().filter(|tool| {
            let conditional = other.when.ask.iter().map(tool_of);
            let mut asked = other.ask.iter().map(String::as_str).chain(conditional);
            other.unasked.contains(*tool) || !asked.any(|pattern| may_match(pattern, tool))
        })
    }

    /// The conditional rules of both. One that permits stays only if the other permits its tool without asking.
    fn conditional_of_both(&self, other: &Self) -> Conditional {
        let callable = stricter(self.callable(), other.callable());
        let (mut allow, mut ask) = (Vec::new(), Vec::new());
        for (own, other) in [(self, other), (other, self)] {
            let permitted = other.callable();
            let is_permitted = |item: &Node| {
                let mut permitted = permitted.iter();
                permitted.all(|tools| lets(tools, &tool_of(item).to_owned()))
            };
            let asked = |item: &Node| {
                let conditional = other.when.ask.iter().map(tool_of);
                let mut asked = other.ask.iter().map(String::as_str).chain(conditional);
                asked.any(|pattern| may_match(pattern, tool_of(item)))
            };
            allow.extend(own.when.allow.iter().filter(|item| {
                other.when.allow.contains(item) || is_permitted(item) && !asked(item)
            }));
            for item in &own.when.ask {
                if other.when.ask.contains(item) || is_permitted(item) {
                    ask.push(item.clone());
                    continue;
                }
                // It is then about the tools that both permit.
                let tools = callable.iter().flatten();
                let tools = tools.filter(|tool| may_match(tool_of(item), tool));
                ask.extend(tools.map(|tool| about(item, tool)));
            }
        }
        let deny = self.when.deny.iter().chain(&other.when.deny);
        Conditional {
            allow: once(allow.into_iter().cloned()),
            ask: once(ask),
            deny: once(deny.cloned()),
        }
    }

    /// These rights with the stricter of both tool rules.
    pub(in super::super) fn with_tools_of(&self, other: &Self) -> Self {
        let both = self.and(other);
        Self {
            within: self.within.clone(),
            outside: self.outside.clone(),
            // A consent to another entry is none to this one.
            unasked: self.left_unasked(other).cloned().collect(),
            ..both
        }
    }

    /// Whether a rule without a condition denies a tool, or all that a pattern stands for.
    fn denies(&self, tool: &String) -> bool {
        lets(&self.deny, tool)
    }

    /// The outcome of a client's rule, if the server has these rules.
    pub(in super::super) fn outcome_of(&self, rule: &Carried) -> Outcome {
        let (Carried::Ask(tools) | Carried::Needless(tools)) = rule else {
            return Outcome::of(rule);
        };
        let callable = self.callable();
        let is_denied = |tool: &String| {
            let is_left_out = |only| !is_pattern(tool) && !lets(only, tool);
            self.denies(tool) || callable.as_ref().is_some_and(is_left_out)
        };
        let is_asked = |tool: &String| lets(&self.ask, tool) && !self.unasked.contains(tool);
        let conditional = [&self.when.ask, &self.when.deny].into_iter().flatten();
        let conditional: Vec<&str> = conditional.map(tool_of).collect();
        let is_limited = |tool: &String| {
            let lists = self.ask.iter().chain(&self.deny).map(String::as_str);
            let mut patterns = lists.chain(conditional.iter().copied());
            is_denied(tool)
                || is_pattern(tool) && callable.is_some()
                || patterns.any(|pattern| may_match(pattern, tool))
        };
        if tools.iter().all(is_denied) {
            Outcome::Denied
        } else if tools.iter().all(|tool| is_denied(tool) || is_asked(tool)) {
            Outcome::Asked
        } else if tools.iter().any(is_limited) {
            Outcome::Mixed
        } else {
            Outcome::Client
        }
    }

    /// Whether these rules do not have one that asks, because its tools are denied.
    pub(in super::super) fn leaves_out(&self, rule: &Carried) -> bool {
        match rule {
            Carried::Ask(tools) if self.outcome_of(rule) == Outcome::Denied => {
                !tools.iter().any(|tool| self.ask.contains(tool))
            }
            _ => false,
        }
    }

    /// The part of one of the rules that has an effect. A tool that is denied is not asked about.
    pub(in super::super) fn effect_of(&self, rule: &Carried) -> Option<Carried> {
        let Carried::Ask(tools) = rule else {
            return Some(rule.clone());
        };
        let asked = tools.iter().filter(|tool| !self.denies(tool));
        let asked: Vec<String> = asked.cloned().collect();
        (!asked.is_empty()).then_some(Carried::Ask(asked))
    }

    /// Hides the server in the projects in which `other` is hidden. A server of one of those projects alone stays there: a rule about it
    /// keeps it in its client.
    pub(in super::super) fn hidden_with(&self, other: &Self) -> Self {
        let is_inside = |hidden: &str| {
            let mut within = self.within.iter();
            !self.within.is_empty() && within.all(|project| Path::new(project).starts_with(hidden))
        };
        let hidden = other.outside.iter().filter(|hidden| !is_inside(hidden));
        Self {
            outside: self.outside.iter().chain(hidden).cloned().collect(),
            ..self.clone()
        }
    }

    /// These rules without the list of the only permitted tools.
    pub(in super::super) fn without_allow(&self) -> Self {
        let mut rights = self.clone();
        rights.only = None;
        rights.when.allow.clear();
        rights
    }

    /// The rules for tools without a condition and the projects in which it is hidden, each with its key.
    pub(in super::super) fn limits(&self) -> impl Iterator<Item = (&'static str, Carried)> {
        let list = |tools: &BTreeSet<String>| tools.iter().cloned().collect::<Vec<_>>();
        let lists = [
            ("tools.ask", Carried::Ask(list(&self.ask))),
            ("tools.deny", Carried::Deny(list(&self.deny))),
        ];
        let only = self.callable();
        let only = only.map(|tools| ("tools.allow", Carried::Only(list(&tools))));
        let is_rule = |(_, rule): &(_, Carried)| !matches!(rule, Carried::Ask(it) | Carried::Deny(it) if it.is_empty());
        let hidden = self.outside.iter().map(|project| {
            let project = project.replace("$${", "${");
            ("projects", Carried::NotIn(project.into()))
        });
        only.into_iter()
            .chain(lists.into_iter().filter(is_rule))
            .chain(hidden)
    }

    /// The limits of these rules that `before` did not have.
    pub(in super::super) fn limits_beyond(&self, before: &Self) -> Vec<Carried> {
        let added = |now: &BTreeSet<String>, before: &BTreeSet<String>| -> Vec<String> {
            now.difference(before).cloned().collect()
        };
        let conditional = |now: &[Node], before: &[Node]| -> Vec<String> {
            let added = now.iter().filter(|item| !before.contains(item));
            let shown = |item: &Node| match item.get("when") {
                Some(when) => format!("{} when {}", tool_of(item), when.to_json()),
                None => item.to_json(),
            };
            added.map(shown).collect()
        };
        let is_narrower = self.only != before.only
            || self.callable() != before.callable()
            || self.when.allow != before.when.allow;
        let only = self.only.iter().filter(|_| is_narrower);
        let (mut ask, mut deny) = (
            added(&self.ask, &before.ask),
            added(&self.deny, &before.deny),
        );
        ask.extend(added(&before.unasked, &self.unasked));
        ask.sort();
        ask.dedup();
        ask.retain(|tool| !self.denies(tool));
        ask.extend(conditional(&self.when.ask, &before.when.ask));
        deny.extend(conditional(&self.when.deny, &before.when.deny));
        let lists = [(ask, Carried::Ask as fn(_) -> _), (deny, Carried::Deny)];
        let lists = lists.into_iter().filter(|(tools, _)| !tools.is_empty());
        let hidden = added(&self.outside, &before.outside).into_iter();
        only.map(|only| Carried::Only(only.iter().cloned().collect()))
            .chain(lists.map(|(tools, kind)| kind(tools)))
            .chain(hidden.map(|project| Carried::NotIn(project.into())))
            .collect()
    }

    /// Whether the server is available in all projects, or in all but the excluded ones.
    pub(in super::super) fn is_for_all(&self) -> bool {
        self.within.is_empty()
    }

    /// Whether the server is available in all projects of `other`.
    pub(in super::super) fn is_where(&self, other: &Self) -> bool {
        self.within.is_empty() || !other.within.is_empty() && other.within.is_subset(&self.within)
    }

    /// Whether the tool rules and the excluded projects are equal.
    pub(in super::super) fn has_rules_of(&self, other: &Self) -> bool {
        Self {
            within: other.within.clone(),
            ..self.clone()
        } == *other
    }
}

fn members(node: Option<&Node>) -> Vec<(String, Node)> {
    let members = node.map(Node::members).unwrap_or_default();
    let owned = members.into_iter();
    owned
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}

/// Puts a list or map in the place of the one before. An empty one is left out unless it is needed; it replaces nothing of another type.
fn put(members: &mut Vec<(String, Node)>, key: &str, value: Node, is_needed: bool) {
    let is_empty = value.items().is_empty() && value.members().is_empty();
    let there = members.iter().position(|(known, _)| known == key);
    match there {
        Some(at) if is_empty && !is_needed => {
            if matches!(members[at].1, Node::List(_) | Node::Map(_)) {
                members.remove(at);
            }
        }
        Some(at) => members[at].1 = value,
        None if is_empty && !is_needed => {}
        None => members.push((key.to_owned(), value)),
    }
}

/// The tool or pattern of a conditional rule. One without is about all tools.
fn tool_of(item: &Node) -> &str {
    item.get("tool").and_then(Node::as_text).unwrap_or("*")
}

/// The conditional rule for another tool.
fn about(item: &Node, tool: &str) -> Node {
    let mut members = members(Some(item));
    put(&mut members, "tool", Node::text(tool), true);
    Node::Map(members)
}

fn once(items: impl IntoIterator<Item = Node>) -> Vec<Node> {
    let mut all = Vec::new();
    for item in items {
        if !all.contains(&item) {
            all.push(item);
        }
    }
    all
}

/// The tools that both lists permit. A missing list permits all.
fn stricter(
    one: Option<BTreeSet<String>>,
    two: Option<BTreeSet<String>>,
) -> Option<BTreeSet<String>> {
    let (one, two) = match (one, two) {
        (Some(one), Some(two)) => (one, two),
        (one, two) => return one.or(two),
    };
    let of_one = one.iter().filter(|tool| lets(&two, tool));
    let of_two = two.iter().filter(|tool| lets(&one, tool));
    Some(of_one.chain(of_two).cloned().collect())
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '@'])
}

/// Whether `patterns` have all that `tool` stands for.
fn lets(patterns: &BTreeSet<String>, tool: &String) -> bool {
    patterns.contains(tool)
        || patterns.contains("*")
        || !is_pattern(tool) && patterns.iter().any(|pattern| fits(pattern, tool))
}

/// Whether `pattern` may be about `tool`. In doubt it is, as it restricts.
fn may_match(pattern: &str, tool: &str) -> bool {
    let (pattern, tool) = (pattern.to_lowercase(), tool.to_lowercase());
    is_pattern(&tool) || pattern.contains('@') || glob::fits(&pattern, &tool)
}

/// Whether a pattern with one `*` at its start or end matches. Other patterns are compared as text, which is stricter.
fn fits(pattern: &str, tool: &str) -> bool {
    match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
        (Some(start), _) if !start.contains(['*', '?']) => tool.starts_with(start),
        (_, Some(end)) if !end.contains(['*', '?']) => tool.ends_with(end),
        _ => pattern == tool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_the_stricter_counts() {
        let set = |texts: &[&str]| {
            Some(
                texts
                    .iter()
                    .map(|text| (*text).to_owned())
                    .collect::<BTreeSet<_>>(),
            )
        };
        for (one, two, both) in [
            (None, None, None),
            (set(&["a"]), None, set(&["a"])),
            (set(&["a", "b"]), set(&["b", "c"]), set(&["b"])),
            (set(&["get_*"]), set(&["get_x", "set_x"]), set(&["get_x"])),
            (set(&["*"]), set(&["a*"]), set(&["a*"])),
            (set(&["a*"]), set(&["ab*"]), set(&[])),
            (set(&[]), set(&["a"]), set(&[])),
        ] {
            assert_eq!(stricter(one.clone(), two.clone()), both, "{one:?} {two:?}");
        }
        let rights = |deny: &[&str], within: &[&str]| Rights {
            deny: set(deny).unwrap(),
            within: set(within).unwrap(),
            ..Rights::default()
        };
        assert_eq!(
            rights(&["a"], &["/p"]).and(&rights(&["b"], &["/q"])),
            rights(&["a", "b"], &["/p", "/q"])
        );
        assert_eq!(
            rights(&[], &[]).and(&rights(&["b"], &["/q"])),
            rights(&["b"], &[])
        );
        let tools = |only: Option<&[&str]>, ask: &[&str]| Rights {
            only: only.and_then(set),
            ask: set(ask).unwrap(),
            ..Rights::default()
        };
        for (one, two, both) in [
            // `ask` permits nothing that the other withholds.
            (
                tools(Some(&["a"]), &[]),
                tools(None, &["b"]),
                tools(Some(&["a"]), &[]),
            ),
            (
                tools(Some(&["a"]), &[]),
                tools(None, &["*"]),
                tools(Some(&["a"]), &["a"]),
            ),
            (
                tools(Some(&["a"]), &[]),
                tools(None, &["A", "b*"]),
                tools(Some(&["a"]), &["a"]),
            ),
            (
                tools(Some(&["ab"]), &[]),
                tools(None, &["a?", "c*d"]),
                tools(Some(&["ab"]), &["ab"]),
            ),
            (
                tools(Some(&["a", "b"]), &[]),
                tools(None, &["b"]),
                tools(Some(&["a", "b"]), &["b"]),
            ),
            // Those of one entry are as they were.
            (
                tools(Some(&["a"]), &["b"]),
                tools(None, &[]),
                tools(Some(&["a"]), &["b"]),
            ),
            (
                tools(Some(&["a"]), &["*"]),
                tools(None, &["b"]),
                tools(Some(&["a"]), &["*", "b"]),
            ),
            (
                tools(Some(&["a"]), &["b"]),
                tools(Some(&["b", "c"]), &[]),
                tools(Some(&["b"]), &["b"]),
            ),
        ] {
            assert_eq!(one.and(&two), both, "{one:?} {two:?}");
            assert_eq!(two.and(&one), both, "{two:?} {one:?}");
        }
        // A permission under a condition stays only where the other permits the tool without asking.
        let when = |tool: &str| Node::map([("tool", Node::text(tool)), ("when", Node::Null)]);
        let with = |only: Option<&[&str]>, ask: &[&str], when: [Vec<Node>; 3]| {
            let [allow, ask_when, deny] = when;
            Rights {
                when: Conditional {
                    allow,
                    ask: ask_when,
                    deny,
                },
                ..tools(only, ask)
            }
        };
        let push = || vec![when("push")];
        let none = Vec::new;
        for (one, two, both) in [
            (
                with(Some(&[]), &[], [push(), none(), none()]),
                tools(None, &[]),
                with(Some(&[]), &[], [push(), none(), none()]),
            ),
            (
                with(Some(&[]), &[], [push(), none(), none()]),
                tools(Some(&["push", "x"]), &[]),
                with(Some(&[]), &[], [push(), none(), none()]),
            ),
            (
                with(Some(&["a"]), &[], [push(), none(), none()]),
                tools(Some(&["a"]), &[]),
                tools(Some(&["a"]), &[]),
            ),
            (
                with(Some(&["a"]), &[], [push(), none(), none()]),
                tools(None, &["pu*"]),
                tools(Some(&["a"]), &[]),
            ),
            (
                with(None, &[], [none(), vec![when("*")], push()]),
                tools(Some(&["a"]), &[]),
                with(Some(&["a"]), &[], [none(), vec![when("a")], push()]),
            ),
        ] {
            assert_eq!(one.and(&two), both, "{one:?} {two:?}");
            assert_eq!(two.and(&one), both, "{two:?} {one:?}");
        }
        let entry = Node::map([("command", Node::text("x"))]);
        let written = rights(&["b"], &["/q"]).write(&entry);
        assert_eq!(Rights::read(&written), rights(&["b"], &["/q"]));
        assert_eq!(Rights::default().write(&written), entry);
    }
}
