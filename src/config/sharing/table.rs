//! The packages of which it is known how much of their surroundings they notice: `packages.tsv`.

use std::path::Path;
use std::sync::LazyLock;

use crate::config::launched::{Kind, package, programs};
use crate::config::{Scope, Stdio, Transport};

const TABLE: &str = include_str!("packages.tsv");

/// The notes of the fifth column.
const ASKS_NOTHING: &str = "asks nothing";
const SERIAL: &str = "one call at a time";
const DATA: &str = "data in ";

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
    is_serial: bool,
    /// The variable with the file of its data, which are in its package otherwise.
    data: Option<&'static str>,
}

/// The rows of a server. They are found once for each entry, because a start asks for them several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct KnownPackage {
    /// The row of the package that a runner (`npx`, `bunx`, `uvx`, `docker run` and others) certainly starts, or one that makes it less
    /// shared of a package that it may start. A program that is started without a runner may only have the name of a package.
    pub(super) row: Option<Row>,
    /// Whether calls at the same time may spoil its state.
    pub(super) is_serial: bool,
}

impl KnownPackage {
    /// The rows of the packages that `transport` may start.
    pub(crate) fn of(transport: &Transport) -> Self {
        let Transport::Stdio(stdio) = transport else {
            return Self::default();
        };
        let rows = possible(stdio);
        let is_serial = rows.iter().any(|row| row.is_serial);
        let less = rows.into_iter().filter(|row| row.scope != Scope::All);
        let certain = || {
            let package = package(&stdio.command, &stdio.args)?;
            find(package.kind, &package.name())
        };
        Self {
            row: less.min_by_key(|row| row.scope).or_else(certain),
            is_serial,
        }
    }
}

impl Stdio {
    /// The data that a server keeps in its package, because the entry names no file for them. A relative path is one in the package.
    #[must_use]
    pub(crate) fn kept_data(&self) -> Option<KeptData> {
        let value = |name: &str| self.env.get(name).map(|value| value.expose().as_str());
        KeptData::of(&self.command, &self.args, value)
    }
}

/// The data that a server keeps in its package.
pub(crate) struct KeptData {
    package: String,
    /// The variable that would name another file.
    pub(crate) variable: &'static str,
}

impl KeptData {
    /// The data of the server that a command line starts with variables of these values.
    pub(crate) fn of<'a>(
        command: &str,
        args: &[String],
        value: impl Fn(&str) -> Option<&'a str>,
    ) -> Option<Self> {
        let package = package(command, args)?;
        let variable = find(package.kind, &package.name())?.data?;
        let is_set = value(variable).is_some_and(|value| Path::new(value).is_absolute());
        (!is_set).then(|| Self {
            package: package.name(),
            variable,
        })
    }
}

impl std::fmt::Display for KeptData {
    /// The place of the data, and how to keep them.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { package, variable } = self;
        write!(
            f,
            "`{package}` keeps its data in its package. Its runner starts it as before, so they stay where they are (for `npx` in `_npx` of npm's \
             cache), but a new version may start without them; to keep them, move the file and set `{variable}` in `env` to its absolute path"
        )
    }
}

/// The rows of all that may be started.
fn possible(stdio: &Stdio) -> Vec<Row> {
    let programs = programs(&stdio.command, &stdio.args).into_iter();
    let rows = programs.filter_map(|program| match program.kind {
        Kind::Plain => {
            let last = |package: &'static str| package.rsplit('/').next().unwrap_or(package);
            let mut rows = ROWS.iter().filter(|row| row.scope == Scope::Session);
            rows.find(|row| last(row.package) == program.name).copied()
        }
        kind => find(kind, &program.name),
    });
    rows.collect()
}

fn find(kind: Kind, name: &str) -> Option<Row> {
    let mut rows = ROWS.iter();
    rows.find(|row| row.kind == kind.word() && row.package == name)
        .copied()
}

/// Whether a container is started with a directory of this machine.
pub(super) fn mounts(stdio: &Stdio) -> bool {
    let is_mount = |arg: &String| {
        let name = arg.split_once('=').map_or(arg.as_str(), |(name, _)| name);
        let is_short = name.starts_with('-') && !name.starts_with("--") && name.contains('v');
        is_short || ["--volume", "--mount", "--volumes-from"].contains(&name)
    };
    let package = package(&stdio.command, &stdio.args);
    package.is_some_and(|package| package.kind == Kind::Image) && stdio.args.iter().any(is_mount)
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
        data: notes.split(", ").find_map(|note| note.strip_prefix(DATA)),
    })
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
            ("docker run --entrypoint x mcp/fetch", None),
            ("docker exec x", None),
            ("node server.js", None),
            ("npx", None),
        ] {
            let stdio = stdio(line);
            assert_eq!(
                package(&stdio.command, &stdio.args)
                    .map(|package| package.name())
                    .as_deref(),
                expected,
                "{line}"
            );
        }
    }

    #[test]
    fn a_program_of_a_packages_name_is_only_ever_less_shared_for_it() {
        let known = |line: &str| KnownPackage::of(&Transport::Stdio(stdio(line)));
        let scope = |line: &str| known(line).row.map(|row| row.scope);
        assert_eq!(scope("npx tavily-mcp"), Some(Scope::All));
        assert_eq!(scope("uvx tavily-mcp"), None);
        assert_eq!(scope("/opt/bin/tavily-mcp"), None);
        assert_eq!(scope("/opt/bin/serena start"), Some(Scope::Session));
        for line in [
            "env A=1 npx -y @playwright/mcp",
            "npx --unheard-of @playwright/mcp",
            "op run -- npx @playwright/mcp",
            "docker run --unheard-of mcr.microsoft.com/playwright/mcp",
        ] {
            assert_eq!(scope(line), Some(Scope::Session), "{line}");
        }
        // Nothing is more shared for what is not certain.
        for line in ["npx --unheard-of tavily-mcp", "env A=1 npx tavily-mcp"] {
            assert_eq!(scope(line), None, "{line}");
        }
        let memory = "npx --unheard-of @modelcontextprotocol/server-memory";
        assert!(known(memory).row.is_none() && known(memory).is_serial);
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
