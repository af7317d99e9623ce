//! `show`: tools that are listed next to the meta-tools.

use std::sync::Arc;

use super::error::EntryError;
use super::policy::pattern::fits;
use super::reader::{At, Field};
use crate::tool::SEPARATOR;

const LIST_EXPECTED: &str = "a list of tools like [\"github__create_issue\", \"notes__*\"]";
const TOOL_EXPECTED: &str = "`server__tool`, where `*` and `?` may stand in the tool's name only; `\"surface\": \"direct\"` lists the tools of all servers";

/// The tools that are listed next to the meta-tools, as patterns of `server__tool`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shown(Arc<[String]>);

impl Shown {
    /// The patterns, in lower case; `None` if one of them does not name a server and a tool.
    #[must_use]
    pub(crate) fn parse(patterns: &[String]) -> Option<Self> {
        let patterns = patterns.iter().map(|pattern| {
            let pattern = pattern.trim().to_lowercase();
            let is_valid = splits(&pattern).next().is_some();
            is_valid.then_some(pattern)
        });
        patterns.collect::<Option<_>>().map(Self)
    }

    /// Whether no tool is listed.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The patterns, in lower case.
    #[must_use]
    pub(crate) fn patterns(&self) -> &[String] {
        &self.0
    }

    /// The patterns, each alone.
    pub(crate) fn each(&self) -> impl Iterator<Item = Self> + '_ {
        self.0.iter().map(|one| Self(Arc::new([one.clone()])))
    }

    /// Whether a pattern includes this tool of this server.
    #[must_use]
    pub(crate) fn includes(&self, server: &str, tool: &str) -> bool {
        let (server, tool) = (server.to_lowercase(), tool.to_lowercase());
        let mut all = self.0.iter().flat_map(|pattern| splits(pattern));
        all.any(|(of_server, of_tool)| fits(of_server, &server) && fits(of_tool, &tool))
    }

    /// Whether a client that calls `name` may mean one of them.
    #[must_use]
    pub(crate) fn may_mean(&self, name: &str) -> bool {
        let name = name.trim().to_lowercase();
        self.0.iter().any(|pattern| fits(pattern, &name))
    }

    /// Whether a pattern names this server.
    #[must_use]
    pub(crate) fn names_server(&self, server: &str) -> bool {
        let server = server.to_lowercase();
        let mut all = self.0.iter().flat_map(|pattern| splits(pattern));
        all.any(|(named, _)| fits(named, &server))
    }
}

/// The servers and tools that a pattern may name: the name of either may have `__`.
fn splits(pattern: &str) -> impl Iterator<Item = (&str, &str)> {
    let at = pattern.match_indices('_').map(|(at, _)| at);
    at.filter(|at| pattern[*at..].starts_with(SEPARATOR))
        .map(|at| (&pattern[..at], &pattern[at + SEPARATOR.len()..]))
        .filter(|(server, tool)| {
            !server.is_empty() && !server.contains(['*', '?']) && !tool.is_empty()
        })
}

/// Reads `show`.
pub(super) fn shown(field: &Field<'_>) -> Result<Shown, At<EntryError>> {
    let mut patterns = Vec::new();
    for element in field.elements(LIST_EXPECTED)? {
        let pattern = element.text_as(TOOL_EXPECTED)?.value;
        if Shown::parse(std::slice::from_ref(&pattern)).is_none() {
            return Err(element.wrong(TOOL_EXPECTED));
        }
        patterns.push(pattern);
    }
    Ok(Shown::parse(&patterns).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pattern: &str) -> Option<Shown> {
        Shown::parse(&[pattern.to_owned()])
    }

    #[test]
    fn a_pattern_names_one_server_and_its_tools() {
        let notes = shown("Notes__*").unwrap();
        assert!(notes.includes("notes", "add"));
        assert!(notes.may_mean("notes__add"));
        assert!(!notes.includes("notes2", "add"));
        assert!(!notes.includes("other", "notes__add"));
        let one = shown("git-hub__create_issue").unwrap();
        assert!(one.includes("git-hub", "create_issue"));
        assert!(!one.includes("git-hub", "create_issues"));
        let nested = shown("a__b__c*").unwrap();
        assert!(nested.includes("a", "b__cd") && nested.includes("a__b", "c"));
        for wrong in ["*", "*__x", "a?__x", "x", "__x", "a__", "", "@read"] {
            assert_eq!(shown(wrong), None, "{wrong}");
        }
    }
}
