//! The package that `npx` or `uvx` starts, as the entry names it.
//!
//! Only forms whose meaning is certain are read: for all others the runner itself decides what runs.

use super::Stdio;
use super::launched::{Package, package};
use super::runner::program_name;

/// The registry that a package comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ecosystem {
    /// The registry of npm, by `npx`.
    Npm,
    /// PyPI, by `uvx`.
    Pypi,
}

/// A package and the program of it that an entry starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackageRun {
    pub ecosystem: Ecosystem,
    /// The package's name, without extras.
    pub name: String,
    /// The extras of a package of PyPI, with their brackets.
    pub extras: String,
    /// The version, range or tag as written; `None` is the newest one.
    pub version: Option<String>,
    /// The program, if it is not the package's own.
    pub program: Option<String>,
    /// The Python that is asked for.
    pub python: Option<String>,
    /// Further packages that are installed with it.
    pub with: Vec<String>,
    /// The program's arguments.
    pub args: Vec<String>,
}

impl Ecosystem {
    /// Its word in tables and file names.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
        }
    }
}

impl PackageRun {
    /// The version, if the entry names exactly one.
    pub(crate) fn pinned(&self) -> Option<&str> {
        let version = self.version.as_deref()?;
        let version = version.strip_prefix("==").unwrap_or(version);
        let core = version.split(['-', '+']).next().unwrap_or_default();
        let numbers: Vec<&str> = core.split('.').collect();
        let is_made_of = |part: &str, is_one: fn(&char) -> bool| {
            !part.is_empty() && part.chars().all(|c| is_one(&c))
        };
        let is_exact = match self.ecosystem {
            // `1.2` and `1.2.x` are ranges there.
            Ecosystem::Npm => {
                numbers.len() == 3
                    && numbers
                        .iter()
                        .all(|part| is_made_of(part, char::is_ascii_digit))
            }
            Ecosystem::Pypi => {
                core.starts_with(|c: char| c.is_ascii_digit())
                    && numbers
                        .iter()
                        .all(|part| is_made_of(part, char::is_ascii_alphanumeric))
            }
        };
        let is_pinned = is_exact
            && version
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c));
        is_pinned.then_some(version)
    }
}

impl Stdio {
    /// The package that the entry starts. `None` for every other program, and for options that are not known.
    #[must_use]
    pub(crate) fn package(&self) -> Option<PackageRun> {
        PackageRun::of(&self.command, &self.args)
    }
}

impl PackageRun {
    /// The package that a command line starts.
    #[must_use]
    pub(crate) fn of(command: &str, args: &[String]) -> Option<Self> {
        let read = match program_name(command) {
            "npx" => npm,
            "uvx" | "uv" => pypi,
            _ => return None,
        };
        read(&package(command, args)?)
    }
}

fn npm(package: &Package<'_>) -> Option<PackageRun> {
    let known = [
        "-y",
        "--yes",
        "-q",
        "--quiet",
        "--silent",
        "-p",
        "--package",
    ];
    let mut options = package.options.iter();
    if !options.all(|(option, _)| known.contains(option)) {
        return None;
    }
    let spec = package.spec;
    let at = spec.char_indices().skip(1).find(|(_, c)| *c == '@');
    let (name, version) = match at {
        Some((at, _)) => (&spec[..at], Some(&spec[at + 1..])),
        None => (spec, None),
    };
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-', '_'])
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
    };
    let is_name = match name.strip_prefix('@').map(|rest| rest.split_once('/')) {
        Some(Some((scope, name))) => is_part(scope) && is_part(name),
        Some(None) => false,
        None => is_part(name),
    };
    // Not a folder, an address or a repository; `npm` knows ranges and tags.
    let is_version = version.is_none_or(|version| {
        !version.is_empty()
            && version
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || ".-+^~<>=*".contains(c))
    });
    if !is_name || !is_version {
        return None;
    }
    Some(PackageRun {
        ecosystem: Ecosystem::Npm,
        name: name.to_owned(),
        extras: String::new(),
        version: version.map(str::to_owned),
        program: package.program.map(str::to_owned),
        python: None,
        with: Vec::new(),
        args: package.args.to_vec(),
    })
}

fn pypi(package: &Package<'_>) -> Option<PackageRun> {
    let (mut python, mut with) = (None, Vec::new());
    for (option, value) in &package.options {
        match (*option, *value) {
            ("-q" | "--quiet" | "--no-progress" | "--from", _) => {}
            ("-p" | "--python", Some(value)) if python.is_none() => python = Some(value.to_owned()),
            ("--with", Some(value)) => with.push(value.to_owned()),
            _ => return None,
        }
    }
    let spec = package.spec;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let end = spec.find(|c| !is_plain(c)).unwrap_or(spec.len());
    let (name, rest) = spec.split_at(end);
    let (extras, rest) = match rest.strip_prefix('[').and_then(|rest| rest.find(']')) {
        Some(end) => rest.split_at(end + 2),
        None => ("", rest),
    };
    let version = match rest {
        "" | "@latest" => None,
        _ => Some(rest.strip_prefix('@').unwrap_or(rest)),
    };
    let is_version = version.is_none_or(|version| {
        !version.is_empty()
            && version
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || ".-+~<>=!*,".contains(c))
    });
    // Not a repository, an address or a directory.
    let is_further = |with: &String| {
        !with.starts_with('-') && with.chars().all(|c| is_plain(c) || "[],<>=~!*".contains(c))
    };
    let is_name = !name.is_empty() && !name.starts_with(['-', '.', '_']);
    if !is_name
        || !is_version
        || !with.iter().all(is_further)
        || python
            .as_ref()
            .is_some_and(|python| python.starts_with('-'))
    {
        return None;
    }
    Some(PackageRun {
        ecosystem: Ecosystem::Pypi,
        name: name.to_owned(),
        extras: extras.to_owned(),
        version: version.map(str::to_owned),
        program: package.program.map(str::to_owned),
        python,
        with,
        args: package.args.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(line: &str) -> Option<PackageRun> {
        let mut words = line.split(' ').map(str::to_owned);
        let stdio = Stdio {
            command: words.next().unwrap_or_default(),
            args: words.collect(),
            env: std::collections::BTreeMap::new(),
            cwd: None,
            command_line: None,
            sandbox: None,
            fetch: None,
        };
        stdio.package()
    }

    #[test]
    fn a_package_its_version_and_its_program_are_read() {
        for (line, name, version, pinned, program, args) in [
            (
                "npx -y @a/b@1.2.3 /x -v",
                "@a/b",
                Some("1.2.3"),
                true,
                None,
                "/x -v",
            ),
            (
                "/usr/bin/npx a@latest",
                "a",
                Some("latest"),
                false,
                None,
                "",
            ),
            ("npx a", "a", None, false, None, ""),
            ("npx a@^1.2.3", "a", Some("^1.2.3"), false, None, ""),
            ("npx a@1.2", "a", Some("1.2"), false, None, ""),
            ("npx a@1.2.x", "a", Some("1.2.x"), false, None, ""),
            ("npx a@1.x.x", "a", Some("1.x.x"), false, None, ""),
            ("npx a@1.2.X-1", "a", Some("1.2.X-1"), false, None, ""),
            ("npx a@1.2.3-rc.1", "a", Some("1.2.3-rc.1"), true, None, ""),
            ("uvx a@1.2rc1", "a", Some("1.2rc1"), true, None, ""),
            (
                "npx --package=@a/b c --d",
                "@a/b",
                None,
                false,
                Some("c"),
                "--d",
            ),
            ("uvx a==1.2 --x", "a", Some("==1.2"), true, None, "--x"),
            ("uvx a@1.2", "a", Some("1.2"), true, None, ""),
            ("uvx a@latest", "a", None, false, None, ""),
            (
                "uvx --python 3.12 --from a[b]>=1 c",
                "a",
                Some(">=1"),
                false,
                Some("c"),
                "",
            ),
            ("uv tool run --with=mcp<2 a", "a", None, false, None, ""),
        ] {
            let found = package(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(found.name, name, "{line}");
            assert_eq!(found.version.as_deref(), version, "{line}");
            assert_eq!(found.pinned().is_some(), pinned, "{line}");
            assert_eq!(found.program.as_deref(), program, "{line}");
            assert_eq!(found.args.join(" "), args, "{line}");
        }
    }

    #[test]
    fn what_a_runner_alone_understands_is_left_to_it() {
        for line in [
            "npx",
            "npx -y",
            "npx --node-options=x a",
            "npx ./a",
            "npx ../a",
            "npx github:a/b",
            "npx a/b",
            "npx a@file:../b",
            "npx a@npm:b",
            "npx -c a",
            "uvx --refresh a",
            "uvx --from git+https://example.com/a a",
            "uvx --from . a",
            "uvx ./a",
            "uvx --with ./b a",
            "bunx a",
            "node npx a",
        ] {
            assert_eq!(package(line), None, "{line}");
        }
    }
}
