//! The packages that are known to work in a sandbox: `known.tsv`, each of which a test starts, lists and calls inside.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::config::{Ecosystem, PackageRun};

const TABLE: &str = include_str!("known.tsv");

/// A package that works in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    /// `npm` or `pypi`.
    pub ecosystem: &'static str,
    pub package: &'static str,
    /// The version with which it was seen to work.
    pub version: &'static str,
    /// Whether its tools need the network.
    pub needs_network: bool,
    /// Whether its tools change the files that an entry names.
    pub changes_files: bool,
}

/// The parts of an entry that may name files of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    /// The arguments of the program.
    pub args: &'a [String],
    /// The values of its variables.
    pub values: &'a [&'a str],
    /// The working directory, absolute, if the entry has one.
    pub cwd: Option<&'a Path>,
}

/// A sandbox to propose, as a value of `sandbox`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Proposal {
    /// Whether it needs the session's project.
    pub has_project: bool,
    pub has_network: bool,
    pub read: BTreeSet<PathBuf>,
    pub write: BTreeSet<PathBuf>,
}

/// The meaning of a word of an entry.
enum Word {
    /// It names no file of the user.
    Other,
    /// A file or directory to open.
    File(PathBuf),
    /// Something in the session's project.
    Project,
    /// More than a sandbox should open.
    TooMuch,
}

impl Known {
    /// The sandbox in which its tools work, with the files that the entry names. `None` if that would open the whole home directory, a
    /// directory around it, or one of `closed`, which are mcpzip's own.
    pub(crate) fn proposal(
        self,
        named: Named<'_>,
        home: Option<&Path>,
        closed: &[&Path],
    ) -> Option<Proposal> {
        let mut proposal = Proposal {
            has_network: self.needs_network,
            ..Proposal::default()
        };
        let of_args = named.args.iter().map(|arg| value_of(arg));
        let of_values = named.values.iter().copied();
        let mut words: Vec<Word> = of_args
            .chain(of_values)
            .map(|word| meaning(word, named.cwd, home, self.changes_files))
            .collect();
        words.extend(named.cwd.map(|cwd| Word::File(cwd.to_owned())));
        // A sandbox opens what a link leads to, too.
        let is_around = |path: &Path, inner: &Path| {
            let real = path.canonicalize();
            inner.starts_with(path) || real.is_ok_and(|real| inner.starts_with(real))
        };
        for word in words {
            match word {
                Word::Other => {}
                Word::TooMuch => return None,
                Word::Project => proposal.has_project = true,
                Word::File(path)
                    if home.is_some_and(|home| is_around(&path, home))
                        || closed.iter().any(|closed| is_around(&path, closed)) =>
                {
                    return None;
                }
                Word::File(path) => {
                    let paths = match self.changes_files {
                        true => &mut proposal.write,
                        false => &mut proposal.read,
                    };
                    paths.insert(path);
                }
            }
        }
        Some(proposal)
    }
}

/// The value of an argument such as `--root=/data`, or the argument.
fn value_of(argument: &str) -> &str {
    let value = argument.split_once('=').map(|(_, value)| value);
    value
        .filter(|_| argument.starts_with('-'))
        .unwrap_or(argument)
}

fn meaning(word: &str, cwd: Option<&Path>, home: Option<&Path>, changes_files: bool) -> Word {
    let is_relative =
        matches!(word, "." | "..") || word.starts_with("./") || word.starts_with("../");
    let path = match (word.strip_prefix("~/"), home, cwd) {
        (Some(rest), Some(home), _) => home.join(rest),
        (None, _, Some(cwd)) if is_relative => cwd.join(word),
        (None, _, None) if is_relative && word.starts_with("..") => return Word::TooMuch,
        (None, _, None) if is_relative => return Word::Project,
        _ => PathBuf::from(word),
    };
    let system = super::runtime::SYSTEM.iter().chain(super::mounts::OWN);
    if !path.is_absolute() || system.into_iter().any(|system| path.starts_with(system)) {
        return Word::Other;
    }
    match path.canonicalize() {
        // Its own name, as the server gets it.
        Ok(real) if real.is_dir() || real.is_file() => Word::File(path.components().collect()),
        Ok(_) => Word::TooMuch,
        // The server may make it.
        Err(_) if changes_files => match path.parent().filter(|parent| parent.is_dir()) {
            Some(parent) if parent != Path::new("/") => Word::File(parent.components().collect()),
            _ => Word::Other,
        },
        Err(_) => Word::Other,
    }
}

impl Proposal {
    /// The files and directories that it opens.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.read.iter().chain(&self.write)
    }
}

impl std::fmt::Display for Proposal {
    /// The value of `sandbox` as JSON.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = match self.has_project {
            true => "project",
            false => "strict",
        };
        let mut keys = Vec::new();
        if self.has_project {
            keys.push(format!("\"preset\": \"{word}\""));
        }
        for (key, paths) in [("read", &self.read), ("write", &self.write)] {
            if !paths.is_empty() {
                keys.push(format!("\"{key}\": {}", json!(paths)));
            }
        }
        if self.has_network {
            keys.push("\"network\": \"all\"".to_owned());
        }
        match keys.len() {
            0 => write!(f, "\"{word}\""),
            1 if self.has_project => write!(f, "\"{word}\""),
            _ => write!(f, "{{{}}}", keys.join(", ")),
        }
    }
}

/// The row of a package.
pub(crate) fn known(package: &PackageRun) -> Option<Known> {
    let plain = |name: &str| match package.ecosystem {
        Ecosystem::Npm => name.to_owned(),
        // PyPI does not tell these apart.
        Ecosystem::Pypi => name.to_ascii_lowercase().replace(['.', '_'], "-"),
    };
    let name = plain(&package.name);
    rows()
        .filter(|row| row.ecosystem == package.ecosystem.word())
        .find(|row| plain(row.package) == name)
}

fn rows() -> impl Iterator<Item = Known> {
    TABLE.lines().filter_map(|line| {
        let mut columns = line.split('\t');
        let ecosystem = columns.next().filter(|kind| !kind.starts_with('#'))?;
        Some(Known {
            ecosystem,
            package: columns.next()?,
            version: columns.next()?,
            needs_network: columns.next()? == "all",
            changes_files: columns.next()? == "write",
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_proposal_opens_the_files_that_the_entry_names_and_no_home_directory() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        std::fs::create_dir_all(home.join("work/.mcpzip")).unwrap();
        std::fs::write(home.join("work/key.json"), "").unwrap();
        let known = |network, changes_files| Known {
            ecosystem: "npm",
            package: "p",
            version: "1",
            needs_network: network,
            changes_files,
        };
        let proposed = |known: Known, args: &[&str], values: &[&str], cwd: Option<&Path>| {
            let inside = |text: &&str| text.replace("HOME", home.to_str().unwrap());
            let args: Vec<String> = args.iter().map(inside).collect();
            let values: Vec<String> = values.iter().map(inside).collect();
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            let named = Named {
                args: &args,
                values: &values,
                cwd,
            };
            let closed = home.join("work/.mcpzip");
            let proposal = known.proposal(named, Some(&home), &[&closed]);
            proposal.map(|proposal| proposal.to_string().replace(home.to_str().unwrap(), "HOME"))
        };
        let (reads, writes) = (known(true, false), known(false, true));
        let some = |text: &str| Some(text.to_owned());
        for (known, args, values, expected) in [
            (
                writes,
                &["--quiet", "stdio", "/usr/bin/env"][..],
                &[][..],
                some("\"strict\""),
            ),
            (
                reads,
                &[],
                &["https://example.com/"],
                some("{\"network\": \"all\"}"),
            ),
            (
                reads,
                &["--key=HOME/work/key.json"],
                &[],
                some("{\"read\": [\"HOME/work/key.json\"], \"network\": \"all\"}"),
            ),
            (
                reads,
                &["HOME/work/absent"],
                &[],
                some("{\"network\": \"all\"}"),
            ),
            (writes, &["."], &[], some("\"project\"")),
            (
                writes,
                &["."],
                &["HOME/work/key.json"],
                some("{\"preset\": \"project\", \"write\": [\"HOME/work/key.json\"]}"),
            ),
            (
                writes,
                &["~/work/key.json"],
                &[],
                some("{\"write\": [\"HOME/work/key.json\"]}"),
            ),
            // mcpzip's own directory is in that of the file that is to be made, or the home directory is.
            (writes, &["HOME/work/new.db"], &[], None),
            (writes, &["HOME/new.db"], &[], None),
            (writes, &["HOME"], &[], None),
            (writes, &["/"], &[], None),
            (writes, &[".."], &[], None),
        ] {
            assert_eq!(proposed(known, args, values, None), expected, "{args:?}");
        }
        let data = home.join("work/data");
        std::fs::create_dir_all(&data).unwrap();
        let found = proposed(writes, &["./new.db"], &[], Some(&data));
        assert_eq!(found, some("{\"write\": [\"HOME/work/data\"]}"));
    }

    #[test]
    fn each_row_is_whole_and_the_rows_are_sorted() {
        let lines: Vec<&str> = TABLE
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert_eq!(rows().count(), lines.len());
        assert!(lines.is_sorted(), "sort known.tsv");
        for row in rows() {
            assert!(["npm", "pypi"].contains(&row.ecosystem), "{row:?}");
        }
    }
}
