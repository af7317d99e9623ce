//! The rules for a server's entry: those of all clients that had it. Where they differ, the strictest applies.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::super::Node;
use super::{Carried, Rule};

/// The tool rules and projects of an entry of mcpzip.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in super::super) struct Rights {
    only: Option<BTreeSet<String>>,
    ask: BTreeSet<String>,
    deny: BTreeSet<String>,
    within: BTreeSet<String>,
    outside: BTreeSet<String>,
}

impl Rights {
    /// Combines `rules` for a server of one project, or of all projects.
    pub(in super::super) fn of<'r>(
        rules: impl Iterator<Item = &'r Rule>,
        project: Option<&PathBuf>,
    ) -> Self {
        let within = project
            .map(|project| project.to_string_lossy().into_owned())
            .into_iter()
            .collect();
        let mut rights = Self {
            within,
            ..Self::default()
        };
        for rule in rules {
            match &rule.carried {
                Carried::Deny(tools) => rights.deny.extend(tools.iter().cloned()),
                Carried::Ask(tools) => rights.ask.extend(tools.iter().cloned()),
                Carried::Only(tools) => {
                    rights.only =
                        stricter(rights.only.take(), Some(tools.iter().cloned().collect()));
                }
                Carried::NotIn(project) => {
                    rights
                        .outside
                        .insert(project.to_string_lossy().into_owned());
                }
                Carried::Needless | Carried::Lost(_) => {}
            }
        }
        rights
    }

    /// Reads the rules of an entry.
    pub(in super::super) fn read(entry: &Node) -> Self {
        let list = |key: &str| {
            let written = entry
                .at(&["tools", key])
                .filter(|list| matches!(list, Node::List(_)));
            written.map(|list| {
                list.items()
                    .iter()
                    .filter_map(Node::as_text)
                    .map(str::to_owned)
                    .collect()
            })
        };
        let mut rights = Self {
            only: list("allow"),
            ask: list("ask").unwrap_or_default(),
            deny: list("deny").unwrap_or_default(),
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

    /// Returns the entry with these rules.
    pub(in super::super) fn write(&self, entry: &Node) -> Node {
        let list = |texts: &BTreeSet<String>| Node::texts(texts.iter().cloned());
        let mut tools: Vec<(&str, Node)> = Vec::new();
        tools.extend(self.only.iter().map(|only| ("allow", list(only))));
        tools.extend(
            [("ask", &self.ask), ("deny", &self.deny)]
                .into_iter()
                .filter(|(_, t)| !t.is_empty())
                .map(|(k, t)| (k, list(t))),
        );
        let outside = self.outside.iter().map(|project| format!("!{project}"));
        let projects: Vec<String> = self.within.iter().cloned().chain(outside).collect();
        let mut members: Vec<(String, Node)> = entry
            .members()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect();
        for (key, value) in [
            ("tools", Node::map(tools)),
            ("projects", Node::texts(projects)),
        ] {
            members.retain(|(known, _)| known != key);
            if !matches!(&value, Node::Map(members) if members.is_empty())
                && value != Node::List(Vec::new())
            {
                members.push((key.to_owned(), value));
            }
        }
        Node::Map(members)
    }

    /// Merges two sets of rules: the stricter of each rule, and the union of projects.
    pub(in super::super) fn and(&self, other: &Self) -> Self {
        let both =
            |one: &BTreeSet<String>, two: &BTreeSet<String>| one.union(two).cloned().collect();
        let is_everywhere = self.within.is_empty() || other.within.is_empty();
        Self {
            only: stricter(self.only.clone(), other.only.clone()),
            ask: both(&self.ask, &other.ask),
            deny: both(&self.deny, &other.deny),
            within: if is_everywhere {
                BTreeSet::new()
            } else {
                both(&self.within, &other.within)
            },
            outside: both(&self.outside, &other.outside),
        }
    }

    /// These rights with the stricter of both tool rules.
    pub(in super::super) fn with_tools_of(&self, other: &Self) -> Self {
        let both = self.and(other);
        Self {
            within: self.within.clone(),
            outside: self.outside.clone(),
            ..both
        }
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
        (&self.only, &self.ask, &self.deny, &self.outside)
            == (&other.only, &other.ask, &other.deny, &other.outside)
    }
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
    let is_pattern = |text: &str| text.contains(['*', '?', '@']);
    let lets = |patterns: &BTreeSet<String>, tool: &String| {
        patterns.contains(tool)
            || patterns.contains("*")
            || !is_pattern(tool) && patterns.iter().any(|pattern| fits(pattern, tool))
    };
    let of_one = one.iter().filter(|tool| lets(&two, tool));
    let of_two = two.iter().filter(|tool| lets(&one, tool));
    Some(of_one.chain(of_two).cloned().collect())
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
        let entry = Node::map([("command", Node::text("x"))]);
        let written = rights(&["b"], &["/q"]).write(&entry);
        assert_eq!(Rights::read(&written), rights(&["b"], &["/q"]));
        assert_eq!(Rights::default().write(&written), entry);
    }
}
