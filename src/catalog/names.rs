//! Resolution of the names that agents write to tools.
//!
//! A name that contains a server's name, in any spelling, is looked up among that server's tools and nowhere else: the
//! arguments of a call were written for that server. This holds for every server the program has ever known, including
//! those that are disabled, fail to start, belong to another project or were removed from the configuration (see
//! [`Snapshot::reserved`]). Withheld tools take part, so that no other tool answers in their place.

use super::{Snapshot, Tool};
use crate::config::BUILT_IN_SERVER;
use crate::tool::{SEPARATOR, ServerName, ToolName};

/// The prefix that clients put before tool names: `mcp__proxy__name`.
const CLIENT_PREFIX: &str = "mcp__";

/// The position, in bytes, by which a server's name has ended. Server names are short; the names that agents write may
/// be long.
const FARTHEST: usize = 256;

/// The result of resolving a name.
#[derive(Debug)]
pub enum Resolution {
    /// Exactly one tool.
    Tool(Tool),
    /// Several tools match, or a server that has not listed its tools. Each candidate is spelled so that it matches
    /// nothing else.
    Ambiguous(Vec<String>),
    /// No tool.
    Unknown,
}

/// One reading of a name: a server, and the text after its name.
type Reading<'n> = (String, &'n str);

impl Snapshot {
    /// Finds the tool for `name`. It tries `server__tool` as printed, then other separators (`:`, `.`, `/`), other
    /// letter case and dashes, and a client's prefix; last a bare tool name that only one server has.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Resolution {
        let name = name.trim();
        let readings = self.readings(name);
        if !readings.is_empty() {
            let exact = |(server, rest): &Reading<'_>| self.exact(server, rest);
            let folded = |(server, rest): &Reading<'_>| {
                let rest = fold(rest);
                self.named(server, |own| !rest.is_empty() && fold(own) == rest)
            };
            let found: Vec<Tool> = readings.iter().flat_map(exact).collect();
            let found = match found.is_empty() {
                true => readings.iter().flat_map(folded).collect(),
                false => found,
            };
            return self.decide(found, readings.iter().map(|(server, _)| server.as_str()));
        }
        // A name with the separator was meant for a server, even for one that is no longer known.
        if name.contains(SEPARATOR) {
            return Resolution::Unknown;
        }
        let begun = self.begun_with(name);
        if !begun.is_empty() {
            let servers = begun.iter().map(|(server, _)| server.as_str());
            return self.decide(self.among(&begun), servers);
        }
        let found = self.bare(name);
        let owners: Vec<&str> = found
            .iter()
            .map(|tool| tool.server().name().as_str())
            .collect();
        let has = |server: &str, part: &str| {
            self.listed(server)?;
            Some(!self.named(server, |own| fold(own) == part).is_empty())
        };
        if self.mentions_another(name, &owners, &has) {
            return self.to_choose(&found);
        }
        self.decide(found, std::iter::empty())
    }

    /// The servers that `name` addresses, in any state.
    #[must_use]
    pub fn addressed(&self, name: &str) -> Vec<String> {
        let name = name.trim();
        let mut readings = self.readings(name);
        if readings.is_empty() && !name.contains(SEPARATOR) {
            readings = self.begun_with(name);
        }
        readings.into_iter().map(|(server, _)| server).collect()
    }

    /// The one tool of `found` that is meant. If several servers match, each must have listed its tools.
    fn decide<'s>(
        &self,
        mut found: Vec<Tool>,
        servers: impl Iterator<Item = &'s str> + Clone,
    ) -> Resolution {
        if found.len() > 1 {
            // A bare `status` means a tool of the user's servers.
            found.retain(|tool| tool.server().name().as_str() != BUILT_IN_SERVER);
        }
        let is_settled = servers.clone().count() <= 1
            || servers
                .into_iter()
                .all(|server| self.listed(server).is_some());
        let is_shown = |tool: &Tool| self.is_shown(tool.server(), tool.index);
        if let ([tool], true) = (found.as_slice(), is_settled) {
            return match is_shown(tool) {
                true => Resolution::Tool(tool.clone()),
                false => Resolution::Unknown,
            };
        }
        self.to_choose(&found)
    }

    /// The candidates, in spellings that match nothing else.
    fn to_choose(&self, found: &[Tool]) -> Resolution {
        let shown: Vec<String> = found
            .iter()
            .filter(|tool| self.is_shown(tool.server(), tool.index))
            .map(|tool| self.spelled(tool))
            .collect();
        match shown.is_empty() {
            true => Resolution::Unknown,
            false => Resolution::Ambiguous(shown),
        }
    }

    /// The ways to read `name` as a server and its tool, without a client's prefix. Server names that end in `_` allow
    /// more than one.
    fn readings<'n>(&self, name: &'n str) -> Vec<Reading<'n>> {
        let readings = self.own_readings(name);
        let Some(rest) = name
            .strip_prefix(CLIENT_PREFIX)
            .filter(|_| readings.is_empty())
        else {
            return readings;
        };
        let inner = self.own_readings(rest);
        match rest.split_once(SEPARATOR) {
            Some((_, rest)) if inner.is_empty() => self.own_readings(rest),
            _ => inner,
        }
    }

    fn own_readings<'n>(&self, name: &'n str) -> Vec<Reading<'n>> {
        let readings = self.plain_readings(name);
        if let [(server, rest)] = readings.as_slice()
            && server == BUILT_IN_SERVER
            && self.exact(server, rest).is_none()
        {
            // Clients know us by that name, too: `mcpzip__github__create_issue`.
            let inner = self.plain_readings(rest);
            if !inner.is_empty() {
                return inner;
            }
        }
        readings
    }

    fn plain_readings<'n>(&self, name: &'n str) -> Vec<Reading<'n>> {
        let joined = || splits(name, SEPARATOR);
        // A server's name may contain dots.
        let others: &[&str] = match name.contains(SEPARATOR) {
            true => &[":", "/"],
            false => &[":", "/", "."],
        };
        let separated = || others.iter().flat_map(|separator| splits(name, separator));
        let exact = |(server, rest): (&'n str, &'n str)| {
            self.is_known(server).then(|| (server.to_owned(), rest))
        };
        let found: Vec<Reading<'n>> = joined().filter_map(exact).collect();
        if !found.is_empty() {
            return found;
        }
        let found: Vec<Reading<'n>> = separated().filter_map(exact).collect();
        if !found.is_empty() {
            return found;
        }
        let known: Vec<(String, &str)> = self.known().map(|known| (fold(known), known)).collect();
        let folded = |(server, rest): (&'n str, &'n str)| {
            let server = fold(server);
            let same = known.iter().filter(move |(folded, _)| *folded == server);
            same.map(move |(_, known)| ((*known).to_owned(), rest))
        };
        joined().chain(separated()).flat_map(folded).collect()
    }

    /// The servers whose name begins `name` and ends at the end of a word, with the rest of `name`:
    /// `github_create_issue`, `GithubCreateIssue`, and `mcp_github_create_issue` after a client's prefix.
    fn begun_with<'n>(&self, name: &'n str) -> Vec<Reading<'n>> {
        let known: Vec<(String, &str)> = self.known().map(|known| (fold(known), known)).collect();
        let mut found: Vec<Reading<'n>> = Vec::new();
        for start in starts(name) {
            let rest = &name[start..];
            let beginnings: Vec<String> = word_ends(rest).map(|end| fold(&rest[..end])).collect();
            let begun = known
                .iter()
                .filter(|(folded, _)| beginnings.contains(folded));
            found.extend(begun.map(|(_, known)| ((*known).to_owned(), rest)));
        }
        found
    }

    /// The tools for names that begin with a server's name.
    fn among(&self, begun: &[Reading<'_>]) -> Vec<Tool> {
        let exact: Vec<Tool> = begun
            .iter()
            .filter_map(|(server, name)| self.exact(server, name))
            .collect();
        if !exact.is_empty() {
            return exact;
        }
        let folded = begun.iter().flat_map(|(server, name)| {
            let (wanted, server_folded) = (fold(name), fold(server));
            self.named(server, |own| {
                let own = fold(own);
                own == wanted || wanted.strip_prefix(&server_folded) == Some(own.as_str())
            })
        });
        folded.collect()
    }

    /// The tools of all servers with the name `name`, or else with a name that differs in letter case and dashes only.
    /// Empty if it may be a spelling of a server's tool that does not exist: `Githubdeleterepo`. A tool whose own name
    /// contains the separator is called with its server's name only.
    fn bare(&self, name: &str) -> Vec<Tool> {
        let servers = || self.servers().map(|server| server.name().as_str());
        let exact: Vec<Tool> = servers()
            .filter_map(|server| self.exact(server, name))
            .collect();
        let wanted = fold(name);
        let is_exact = !exact.is_empty();
        let means_another = |known: &str| match wanted.strip_prefix(&fold(known)) {
            None | Some("") => false,
            Some(_) if !is_exact || self.listed(known).is_none() => true,
            Some(rest) => !self.named(known, |own| fold(own) == rest).is_empty(),
        };
        if wanted.is_empty() {
            return exact;
        }
        if self.known().any(means_another) {
            return Vec::new();
        }
        match is_exact {
            true => exact,
            false => servers()
                .flat_map(|server| {
                    self.named(server, |own| {
                        !own.contains(SEPARATOR) && fold(own) == wanted
                    })
                })
                .collect(),
        }
    }

    /// The tool of a server by its own name, including withheld ones.
    fn exact(&self, server: &str, tool: &str) -> Option<Tool> {
        let server = self.listed(server)?.clone();
        let index = server.position(&ToolName::new(tool).ok()?)?;
        Some(Tool { server, index })
    }

    /// The tools of a server, including withheld ones, whose name satisfies `is_wanted`.
    fn named(&self, server: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<Tool> {
        let Some(server) = self.listed(server) else {
            return Vec::new();
        };
        let entries = server.entries().iter().enumerate();
        entries
            .filter(|(_, entry)| is_wanted(entry.name.as_str()))
            .map(|(index, _)| Tool {
                server: server.clone(),
                index,
            })
            .collect()
    }

    /// A spelling of the tool's name that has only one reading.
    fn spelled(&self, tool: &Tool) -> String {
        let name = tool.qualified_name();
        match self.readings(&name.to_string()).len() {
            0 | 1 => name.to_string(),
            _ => format!("{}:{}", name.server, name.tool),
        }
    }

    pub(super) fn known(&self) -> impl Iterator<Item = &str> {
        let reserved = self.reserved.iter().map(String::as_str);
        let listed = self.servers.keys().map(ServerName::as_str);
        reserved.chain(listed.filter(|server| !self.reserved.contains(*server)))
    }

    fn is_known(&self, server: &str) -> bool {
        self.reserved.contains(server) || self.listed(server).is_some()
    }

    fn listed(&self, server: &str) -> Option<&std::sync::Arc<super::ServerTools>> {
        self.server(&ServerName::new(server).ok()?)
    }
}

/// The texts before and after each `separator` of `name`, if neither is empty.
fn splits<'n>(name: &'n str, separator: &str) -> impl Iterator<Item = (&'n str, &'n str)> {
    let length = separator.len();
    (1..name.len().saturating_sub(length).min(FARTHEST))
        .filter(move |at| name.as_bytes()[*at..].starts_with(separator.as_bytes()))
        .map(move |at| (&name[..at], &name[at + length..]))
}

/// The positions, in bytes, at which a server's name may begin: the start, after the words that clients put first
/// (`mcp`, our own name), and after the name by which a client knows us: `mcp_tools_github_create_issue`.
fn starts(name: &str) -> Vec<usize> {
    let ends: Vec<usize> = word_ends(name).collect();
    // Separators between words count as words here; they fold to nothing.
    let mut words = Vec::new();
    let mut from = 0;
    for end in ends.into_iter().chain([name.len()]) {
        match fold(&name[from..end]) {
            word if word.is_empty() => {}
            word => words.push((from, word)),
        }
        from = end;
    }
    let is_prefix = |word: &str| word == "mcp" || word == BUILT_IN_SERVER;
    let prefixes = words.iter().take_while(|(_, word)| is_prefix(word)).count();
    let last = match prefixes {
        0 => 0,
        // The word after `mcp` may be the name that the user gave mcpzip.
        _ => prefixes + 1,
    };
    let behind = words.iter().map(|(start, _)| *start).take(last + 1).skip(1);
    std::iter::once(0).chain(behind).collect()
}

/// The positions at which the words of a name end, without the last one.
pub(super) fn word_ends(name: &str) -> impl Iterator<Item = usize> {
    let characters: Vec<(usize, char)> = name.char_indices().take(FARTHEST).collect();
    (1..characters.len()).filter_map(move |at| {
        let (before, (end, c)) = (characters[at - 1].1, characters[at]);
        let next = characters.get(at + 1).map(|(_, next)| *next);
        let is_end = !c.is_alphanumeric()
            || !before.is_alphanumeric()
            || before.is_lowercase() && c.is_uppercase()
            || before.is_uppercase() && c.is_uppercase() && next.is_some_and(char::is_lowercase)
            || before.is_numeric() != c.is_numeric();
        is_end.then_some(end)
    })
}

/// A name without the differences between writers: letter case, dashes and separators.
pub(crate) fn fold(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Cache, Catalog, Key, Listed};
    use bytes::Bytes;
    use std::sync::Arc;

    fn snapshot(servers: &[(&str, &[&str])]) -> Arc<Snapshot> {
        let catalog = Catalog::new();
        for (server, tools) in servers {
            let server = ServerName::new(server).unwrap();
            let key = Key {
                server: server.clone(),
                configuration: String::new(),
            };
            let tools = tools
                .iter()
                .map(|name| Bytes::from(format!(r#"{{"name":"{name}"}}"#)))
                .collect();
            let listed = Listed {
                tools,
                ..Listed::default()
            };
            catalog.update(|servers| {
                servers.insert(server, Arc::new(Cache::new(None).store(&key, &listed)));
            });
        }
        catalog.snapshot()
    }

    #[test]
    fn a_name_is_understood_however_it_is_written() {
        let snapshot = snapshot(&[
            ("github", &["create_issue", "search"]),
            ("my-notes", &["readNote", "search", "a__b"]),
            ("a", &["_x"]),
            ("a_", &["y"]),
        ]);
        #[track_caller]
        fn check(snapshot: &Snapshot, name: &str, expected: &str) {
            let found = match snapshot.resolve(name) {
                Resolution::Tool(tool) => tool.qualified_name().to_string(),
                Resolution::Ambiguous(names) => names.join(" or "),
                Resolution::Unknown => "none".to_owned(),
            };
            assert_eq!(found, expected, "{name}");
        }
        for name in [
            "github__create_issue",
            "github:create_issue",
            "github.create_issue",
            "github/create_issue",
            "create_issue",
            "GitHub__Create-Issue",
            "createIssue",
            "github_create_issue",
            "mcp__zip__github__create_issue",
            "mcp__github__create_issue",
            " create_issue ",
        ] {
            check(&snapshot, name, "github__create_issue");
        }
        check(&snapshot, "my_notes__read_note", "my-notes__readNote");
        check(&snapshot, "my-notes__a__b", "my-notes__a__b");
        check(&snapshot, "a___x", "a___x");
        check(&snapshot, "a___y", "a___y");
        check(&snapshot, "search", "github__search or my-notes__search");
        check(&snapshot, "github__delete", "none");
        check(&snapshot, "", "none");
        check(&snapshot, "__", "none");
    }
}
