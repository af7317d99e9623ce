//! The manual page of a program. It is read if the help refers to it, because such help has only a part of the options.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::config::{Stdio, program_name};
use crate::secret::Secret;

/// The manual page of a program or of its subcommand.
pub(super) struct Manual {
    name: String,
    is_of_program: bool,
    /// `man`, which looks only where the program's own installation has its manuals: another version may have others.
    pub(super) program: Stdio,
}

impl Manual {
    /// The page of the subcommand `path`. `None` if there are no manuals next to `file`.
    pub(super) fn of(command: &str, file: &Path, path: &[String]) -> Option<Self> {
        let program = [program_name(command).to_owned()];
        let words: Vec<&str> = program.iter().chain(path).map(String::as_str).collect();
        let target = std::fs::canonicalize(file).ok();
        let files = [Some(file), target.as_deref()];
        let prefixes = files
            .into_iter()
            .flatten()
            .filter_map(|file| file.parent()?.parent());
        let places = prefixes.flat_map(|prefix| [prefix.join("share/man"), prefix.join("man")]);
        let mut places: Vec<PathBuf> = places.filter(|place| place.is_dir()).collect();
        places.dedup();
        let places = std::env::join_paths(places).ok()?.into_string().ok()?;
        if places.is_empty() {
            return None;
        }
        let variables = [
            ("MANPATH", places.as_str()),
            // Words are not divided at the ends of lines, and dashes are ASCII.
            ("MANOPT", "--no-hyphenation --no-justification"),
            ("LC_ALL", "C"),
        ];
        let env = variables.map(|(name, value)| (name.to_owned(), Secret::new(value.to_owned())));
        Some(Self {
            name: words.join("-"),
            is_of_program: path.is_empty(),
            program: Stdio {
                command: "man".to_owned(),
                args: Vec::new(),
                env: BTreeMap::from(env),
                cwd: None,
                command_line: None,
                sandbox: None,
                fetch: None,
            },
        })
    }

    /// Whether a page of help names it: `man jq`, `jq(1)`, `see the manual page`.
    pub(super) fn is_named_in(&self, text: &str) -> bool {
        let is_section = |rest: &str| {
            let mut rest = rest.strip_prefix('(').unwrap_or_default().chars();
            rest.next().is_some_and(|c| c.is_ascii_digit())
        };
        let is_start = |before: &str| !before.ends_with(|c: char| c.is_alphanumeric() || c == '-');
        let mut found = text.match_indices(&self.name);
        let is_named = found.any(|(at, name)| {
            let (before, rest) = (&text[..at], &text[at + name.len()..]);
            is_start(before) && (is_section(rest) || before.ends_with("man "))
        });
        let lower = text.to_lowercase();
        let words = ["man page", "manpage", "manual page"];
        is_named || self.is_of_program && words.iter().any(|words| lower.contains(words))
    }

    /// The arguments of `man`.
    pub(super) fn arguments(&self) -> [String; 1] {
        [self.name.clone()]
    }
}
