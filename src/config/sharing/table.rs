//! The packages of which it is known how much of their surroundings they notice: `packages.tsv`.

use std::path::Path;
use std::sync::LazyLock;

use crate::config::{Scope, Stdio, program_name};

const TABLE: &str = include_str!("packages.tsv");

/// The notes of the fifth column.
const ASKS_NOTHING: &str = "asks nothing";
const SERIAL: &str = "one call at a time";

/// The kinds of packages in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Npm,
    Pypi,
    Image,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Image => "image",
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    kind: &'static str,
    package: &'static str,
    pub(super) scope: Scope,
    pub(super) reason: &'static str,
    /// Whether it never asks its client anything.
    pub(super) asks_nothing: bool,
    /// Whether calls at the same time spoil its state.
    pub(super) is_serial: bool,
}

/// The row of the package that a runner (`npx`, `bunx`, `uvx`, `docker run` and others) starts. A program that is started without one
/// may only have the name of a package, so it is found where that makes it less shared.
pub(super) fn row(stdio: &Stdio) -> Option<Row> {
    if let Some((kind, package)) = package(stdio) {
        let mut rows = ROWS.iter().copied();
        return rows.find(|row| row.kind == kind.word() && row.package == package);
    }
    let program = program_name(&stdio.command);
    let last = |package: &'static str| package.rsplit('/').next().unwrap_or(package);
    let mut rows = ROWS.iter().copied();
    rows.find(|row| row.scope == Scope::Session && last(row.package) == program)
}

/// Whether a container is started with a directory of this machine.
pub(super) fn mounts(stdio: &Stdio) -> bool {
    let is_mount = |arg: &String| {
        let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
        ["-v", "--volume", "--mount"].contains(&name)
    };
    runner(stdio).is_some_and(|(name, _)| ["docker", "podman"].contains(&name))
        && stdio.args.iter().any(is_mount)
}

/// The table is read once, not for each of the servers: that was a tenth of the start.
static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| TABLE.lines().filter_map(parse).collect());

fn parse(line: &'static str) -> Option<Row> {
    let mut columns = line.split('\t');
    let kind = columns.next().filter(|kind| !kind.starts_with('#'))?;
    let (package, scope, reason) = (columns.next()?, columns.next()?, columns.next()?);
    let notes = columns.next().unwrap_or_default();
    let has = |wanted: &str| notes.split(", ").any(|note| note == wanted);
    Some(Row {
        kind,
        package,
        scope: Scope::parse(scope)?,
        reason,
        asks_nothing: has(ASKS_NOTHING),
        is_serial: has(SERIAL),
    })
}

/// The runner's name, and what follows it.
fn runner(stdio: &Stdio) -> Option<(&str, &[String])> {
    let name = program_name(&stdio.command);
    match stdio.args.as_slice() {
        // Runners are scripts on Windows.
        [flag, program, rest @ ..] if name == "cmd" && flag.eq_ignore_ascii_case("/c") => {
            Some((program_name(program), rest))
        }
        args => Some((name, args)),
    }
}

/// The package that a runner starts, without a version. `None` for an option that is not known: what follows it may be its value.
fn package(stdio: &Stdio) -> Option<(Kind, String)> {
    let (name, args) = runner(stdio)?;
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (kind, rest) = match (name, words.as_slice()) {
        ("npx" | "bunx" | "pnpx", rest) => (Kind::Npm, rest),
        ("pnpm" | "yarn", ["dlx", rest @ ..])
        | ("npm", ["exec" | "x", rest @ ..])
        | ("bun", ["x", rest @ ..]) => (Kind::Npm, rest),
        ("uvx", rest) | ("uv", ["tool", "run", rest @ ..]) | ("pipx", ["run", rest @ ..]) => {
            (Kind::Pypi, rest)
        }
        ("docker" | "podman", ["run", rest @ ..]) => (Kind::Image, rest),
        _ => return None,
    };
    let mut rest = rest.iter();
    let mut named = None;
    let first = loop {
        let word = *rest.next()?;
        let (option, joined) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (word, None),
        };
        match (option, kind) {
            ("--", _) => {}
            // It is the package, and what follows is one of its programs.
            ("-p" | "--package", Kind::Npm) | ("--from" | "--spec", Kind::Pypi) => {
                named = Some(joined.or_else(|| rest.next().copied())?);
            }
            (option, _) if !option.starts_with('-') => break named.unwrap_or(word),
            (option, _) if has_no_value(kind, option) => {}
            (option, _) if has_value(kind, option) => {
                if joined.is_none() {
                    rest.next()?;
                }
            }
            _ => return None,
        }
    };
    Some((kind, unversioned(kind, first)))
}

fn has_no_value(kind: Kind, option: &str) -> bool {
    let known: &[&str] = match kind {
        Kind::Npm => &[
            "-y",
            "--yes",
            "-q",
            "--quiet",
            "--silent",
            "--bun",
            "--prefer-offline",
        ],
        Kind::Pypi => &[
            "-q",
            "--quiet",
            "--no-progress",
            "--isolated",
            "--refresh",
            "--offline",
        ],
        Kind::Image => &[
            "-i",
            "--interactive",
            "-t",
            "--tty",
            "-it",
            "--rm",
            "--init",
            "--read-only",
            "-q",
            "--quiet",
        ],
    };
    known.contains(&option)
}

fn has_value(kind: Kind, option: &str) -> bool {
    let known: &[&str] = match kind {
        Kind::Npm => &[],
        Kind::Pypi => &[
            "-p",
            "--python",
            "--with",
            "--index",
            "--index-url",
            "--prerelease",
        ],
        Kind::Image => &[
            "-e",
            "--env",
            "--env-file",
            "-v",
            "--volume",
            "--mount",
            "--name",
            "--network",
            "--platform",
            "--pull",
            "-u",
            "--user",
            "-w",
            "--workdir",
            "-m",
            "--memory",
            "--cpus",
            "--cap-drop",
            "--add-host",
            "-l",
            "--label",
            "-p",
            "--publish",
        ],
    };
    known.contains(&option)
}

/// `word` without a version, a tag, extras or the address of a repository.
fn unversioned(kind: Kind, word: &str) -> String {
    let name = match kind {
        Kind::Npm => match word.char_indices().skip(1).find(|(_, c)| *c == '@') {
            Some((at, _)) => &word[..at],
            None => word,
        },
        Kind::Pypi => {
            let word = word.rsplit_once(" @ ").map_or(word, |(name, _)| name);
            let word = match word.strip_prefix("git+") {
                Some(url) => Path::new(url)
                    .file_name()
                    .and_then(|name| name.to_str())
                    .unwrap_or(url),
                None => word,
            };
            let end = word.find(['@', '=', '[', '<', '>', '~', '!']);
            let name = end.map_or(word, |end| &word[..end]);
            name.strip_suffix(".git").unwrap_or(name)
        }
        Kind::Image => {
            let word = word.split_once('@').map_or(word, |(name, _)| name);
            let (directory, last) = word
                .rsplit_once('/')
                .map_or(("", word), |(directory, last)| (directory, last));
            let last = last.split_once(':').map_or(last, |(name, _)| name);
            let end = if directory.is_empty() {
                last.len()
            } else {
                directory.len() + 1 + last.len()
            };
            word[..end]
                .strip_prefix("docker.io/")
                .unwrap_or(&word[..end])
        }
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stdio(line: &str) -> Stdio {
        let mut words = line.split(' ').map(str::to_owned);
        Stdio {
            command: words.next().unwrap_or_default(),
            args: words.collect(),
            env: std::collections::BTreeMap::new(),
            cwd: None,
            command_line: None,
            sandbox: None,
            fetch: None,
        }
    }

    #[test]
    fn a_package_is_known_after_its_runner_and_without_a_version() {
        for (line, expected) in [
            (
                "npx -y @playwright/mcp@latest --headless",
                Some("@playwright/mcp"),
            ),
            (
                "/usr/bin/npx --package=@playwright/mcp mcp-server-playwright",
                Some("@playwright/mcp"),
            ),
            ("cmd /c npx -y tavily-mcp@0.2.1", Some("tavily-mcp")),
            ("bunx exa-mcp-server", Some("exa-mcp-server")),
            ("pnpm dlx firecrawl-mcp", Some("firecrawl-mcp")),
            (
                "uvx --python 3.12 mcp-server-git==2.0 --repository .",
                Some("mcp-server-git"),
            ),
            (
                "uvx --from git+https://github.com/oraios/serena@main serena start",
                Some("serena"),
            ),
            (
                "uv tool run mcp-server-fetch[extra]",
                Some("mcp-server-fetch"),
            ),
            (
                "docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server:v1 stdio",
                Some("ghcr.io/github/github-mcp-server"),
            ),
            (
                "docker run --rm docker.io/hashicorp/terraform-mcp-server@sha256:00",
                Some("hashicorp/terraform-mcp-server"),
            ),
            ("docker run --unknown x mcp/fetch", None),
            ("docker exec x", None),
            ("node server.js", None),
            ("npx", None),
        ] {
            assert_eq!(
                package(&stdio(line)).map(|(_, name)| name).as_deref(),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn a_program_of_a_packages_name_is_only_ever_less_shared_for_it() {
        let scope = |line: &str| row(&stdio(line)).map(|row| row.scope);
        assert_eq!(scope("npx tavily-mcp"), Some(Scope::All));
        assert_eq!(scope("uvx tavily-mcp"), None);
        assert_eq!(scope("/opt/bin/tavily-mcp"), None);
        assert_eq!(scope("/opt/bin/serena start"), Some(Scope::Session));
    }

    #[test]
    fn each_row_is_whole_and_the_rows_are_sorted() {
        let lines: Vec<&str> = TABLE
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert_eq!(ROWS.len(), lines.len());
        assert!(lines.is_sorted(), "sort packages.tsv");
        for row in ROWS.iter() {
            assert!(["npm", "pypi", "image"].contains(&row.kind), "{row:?}");
            assert!(
                ROWS.iter()
                    .filter(|other| (other.kind, other.package) == (row.kind, row.package))
                    .count()
                    == 1,
                "{row:?}"
            );
        }
    }
}
