//! Package runners: programs that download the program they start.

use super::Stdio;

/// Runners of packages and images. Some do other things as well, which start no slower for it.
const RUNNERS: &[&str] = &[
    "bun", "bunx", "deno", "dnx", "docker", "finch", "go", "nerdctl", "npm", "npx", "pipx", "pnpm",
    "pnpx", "podman", "uv", "uvx", "yarn",
];

impl Stdio {
    /// Whether the server may have to be downloaded before it starts, as package runners do at first.
    #[must_use]
    pub(crate) fn may_install(&self) -> bool {
        may_install(&self.command, &self.args)
    }

    /// Whether its tools come from the help of a program, which may have hundreds of pages.
    #[must_use]
    pub(crate) fn reads_help(&self) -> bool {
        let command_line = self.command_line.as_ref();
        command_line.is_some_and(|command_line| command_line.tools.is_empty())
    }
}

/// Whether a command line starts a package runner.
pub(super) fn may_install(command: &str, args: &[String]) -> bool {
    let (program, _) = without_cmd(command, args);
    RUNNERS.contains(&program_name(program))
}

/// A command line without `cmd /c`: runners are scripts on Windows.
pub(super) fn without_cmd<'a>(command: &'a str, args: &'a [String]) -> (&'a str, &'a [String]) {
    match args {
        [flag, program, rest @ ..]
            if program_name(&command.to_lowercase()) == "cmd"
                && flag.eq_ignore_ascii_case("/c") =>
        {
            (program, rest)
        }
        _ => (command, args),
    }
}

/// The program's name in a path or package: without directory, extension and version.
#[must_use]
pub(crate) fn program_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.split_once('@').map_or(name, |(name, _)| name);
    name.strip_suffix(".exe")
        .or_else(|| name.strip_suffix(".cmd"))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_are_known_by_whatever_path() {
        for (word, name) in [
            ("npx", "npx"),
            ("/usr/local/bin/uvx", "uvx"),
            (r"C:\Program Files\nodejs\npx.cmd", "npx"),
            ("mcp-proxy@1.2", "mcp-proxy"),
        ] {
            assert_eq!(program_name(word), name);
        }
        let stdio = |line: &str| Stdio {
            command: line.split(' ').next().unwrap_or_default().to_owned(),
            args: line.split(' ').skip(1).map(str::to_owned).collect(),
            env: std::collections::BTreeMap::default(),
            cwd: None,
            command_line: None,
            sandbox: None,
            fetch: None,
        };
        for line in ["/opt/bin/npx -y x", "docker run x", "cmd /c npx -y x"] {
            assert!(stdio(line).may_install(), "{line}");
        }
        for line in ["/opt/npx/server", "node npx", "cmd /c node npx", "npx-like"] {
            assert!(!stdio(line).may_install(), "{line}");
        }
    }
}
