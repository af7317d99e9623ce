//! Popular servers that need no account. Their entries are those of `config.example.json`.

use crate::clients::{Node, Syntax, Text};
use crate::config::Environment;
use crate::config::find_program;

const EXAMPLE: &str = include_str!("../../../config.example.json");

/// Purpose of each server, in the order in which they are offered.
const PURPOSES: &[(&str, &str)] = &[
    (
        "filesystem",
        "reads and writes files below the directory it is started in",
    ),
    ("git", "looks at repositories, and commits"),
    ("fetch", "reads web pages"),
    ("memory", "remembers facts as a graph, in one file"),
    ("time", "time zones"),
    (
        "sequential-thinking",
        "a notebook for thinking step by step",
    ),
    (
        "everything",
        "a bit of everything the protocol has, to try things out",
    ),
];

/// A popular server.
#[derive(Debug, Clone)]
pub(super) struct Popular {
    pub(super) name: &'static str,
    pub(super) purpose: &'static str,
    /// Its entry as JSON.
    pub(super) entry: String,
    /// The program that starts it, if that is not installed.
    pub(super) lacks: Option<String>,
}

impl Popular {
    /// Whether the configuration `text` has it, under any name.
    pub(super) fn is_in(&self, text: &str) -> bool {
        let (Ok(config), Ok(entry)) = (
            Text::parse(Syntax::Json, text),
            Text::parse(Syntax::Json, &self.entry),
        ) else {
            return false;
        };
        let servers = config.node().get("mcpServers").map(Node::members);
        let package = package(entry.node());
        servers.unwrap_or_default().iter().any(|(name, server)| {
            name.eq_ignore_ascii_case(self.name)
                || package.is_some() && self::package(server) == package
        })
    }
}

/// The package that a package runner starts, without its version.
fn package(entry: &Node) -> Option<&str> {
    let mut words = entry.get("args").map(Node::items)?.iter();
    let package = words.find_map(|word| {
        word.as_text()
            .filter(|word| !word.starts_with('-') && *word != "run")
    })?;
    let end = package.find("==").or_else(|| package.rfind('@'));
    Some(&package[..end.filter(|end| *end > 0).unwrap_or(package.len())])
}

/// The names of all popular servers.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PURPOSES.iter().map(|(name, _)| *name)
}

/// All popular servers.
pub(super) fn all(environment: &Environment) -> Vec<Popular> {
    let example = Text::parse(Syntax::Json, EXAMPLE).expect("a test reads the example");
    let path = environment.get("PATH").unwrap_or_default();
    let known = PURPOSES.iter().filter_map(|(name, purpose)| {
        let entry = example.node().at(&["mcpServers", name])?;
        let command = entry
            .get("command")
            .and_then(Node::as_text)
            .unwrap_or_default();
        let lacks = find_program(command, path, environment)
            .is_none()
            .then(|| command.to_owned());
        let json = entry.to_json();
        // Windows has another variable for the home directory.
        let json = if cfg!(windows) {
            json.replace("${HOME}", "${USERPROFILE}")
        } else {
            json
        };
        Some(Popular {
            name,
            purpose,
            entry: json,
            lacks,
        })
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_in_the_example() {
        let all = all(&Environment::default());
        assert_eq!(
            all.iter().map(|popular| popular.name).collect::<Vec<_>>(),
            names().collect::<Vec<_>>()
        );
        for popular in all {
            assert!(
                popular.lacks.is_some() && popular.entry.contains("\"args\""),
                "{popular:?}"
            );
        }
    }
}
