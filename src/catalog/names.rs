//! From what an agent writes to the tool it means.

use super::{Snapshot, Tool};
use crate::config::BUILT_IN_SERVER;
use crate::tool::{QualifiedName, SEPARATOR, ServerName, ToolName};

/// What a name stands for.
#[derive(Debug)]
pub enum Resolution {
    /// One tool.
    Tool(Tool),
    /// Several tools could be meant.
    Ambiguous(Vec<QualifiedName>),
    /// None.
    Unknown,
}

impl Snapshot {
    /// Finds the tool that `name` means: `server__tool` as it is printed, then with another separator (`:`, `.`, `/`), a
    /// client's prefix in front, a bare tool name that only one server has, or with other letter case and dashes.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Resolution {
        let name = name.trim();
        if let Some(tool) = self.exact(name) {
            return Resolution::Tool(tool);
        }
        for read in [Self::bare, Self::folded] {
            let mut found = read(self, name);
            if found.len() > 1 {
                // Who writes a bare `status` means a tool of the servers that are there for the work.
                found.retain(|tool| tool.server().name().as_str() != BUILT_IN_SERVER);
            }
            match found.len() {
                0 => {}
                1 => return Resolution::Tool(found.remove(0)),
                _ => {
                    return Resolution::Ambiguous(found.iter().map(Tool::qualified_name).collect());
                }
            }
        }
        Resolution::Unknown
    }

    fn exact(&self, name: &str) -> Option<Tool> {
        let joined = |name: &str| {
            QualifiedName::readings(name).find_map(|name| self.tool(&name.server, &name.tool))
        };
        let separated = || {
            name.char_indices()
                .filter(|(_, character)| matches!(character, ':' | '.' | '/'))
                .find_map(|(at, _)| {
                    self.tool(
                        &ServerName::new(&name[..at]).ok()?,
                        &ToolName::new(&name[at + 1..]).ok()?,
                    )
                })
        };
        // Clients show tools as `mcp__proxy__name`, and agents copy that shape.
        let prefixed = || {
            name.match_indices(SEPARATOR)
                .find_map(|(at, _)| joined(&name[at + SEPARATOR.len()..]))
        };
        joined(name).or_else(separated).or_else(prefixed)
    }

    fn bare(&self, name: &str) -> Vec<Tool> {
        let Ok(tool) = ToolName::new(name) else {
            return Vec::new();
        };
        self.servers()
            .filter_map(|server| self.tool(server.name(), &tool))
            .collect()
    }

    fn folded(&self, name: &str) -> Vec<Tool> {
        let wanted = fold(name);
        if wanted.is_empty() {
            return Vec::new();
        }
        let (mut qualified, mut bare) = (Vec::new(), Vec::new());
        for tool in self.tools() {
            let own = fold(tool.entry().name.as_str());
            if wanted
                .strip_suffix(&own)
                .is_some_and(|rest| rest == fold(tool.server().name().as_str()))
            {
                qualified.push(tool);
            } else if own == wanted {
                bare.push(tool);
            }
        }
        if qualified.is_empty() {
            bare
        } else {
            qualified
        }
    }
}

/// A name without what writers vary: letter case, dashes and separators.
fn fold(name: &str) -> String {
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
                Resolution::Ambiguous(names) => names
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(" or "),
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
