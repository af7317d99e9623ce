//! The packages that runners (`npx`, `uvx`, `docker run` and others) start.

use std::path::Path;

use super::runner::program_name;

/// The kinds of packages that runners start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Npm,
    Pypi,
    Image,
}

/// A package that a runner starts.
pub(super) struct Package<'a> {
    pub(super) kind: Kind,
    /// Its name, without a version.
    pub(super) name: String,
    /// The arguments after it.
    pub(super) args: &'a [String],
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
            Self::Image => "image",
        }
    }
}

/// The runner's name, and what follows it.
pub(super) fn runner<'a>(command: &'a str, args: &'a [String]) -> (&'a str, &'a [String]) {
    let name = program_name(command);
    match args {
        // Runners are scripts on Windows.
        [flag, program, rest @ ..] if name == "cmd" && flag.eq_ignore_ascii_case("/c") => {
            (program_name(program), rest)
        }
        args => (name, args),
    }
}

/// The package that a runner starts. `None` for an option that is not known: what follows it may be its value.
pub(super) fn package<'a>(command: &'a str, args: &'a [String]) -> Option<Package<'a>> {
    let (name, args) = runner(command, args);
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (kind, rest) = match (name, words.as_slice()) {
        ("npx" | "bunx" | "pnpx", rest) => (Kind::Npm, rest),
        ("pnpm" | "yarn", ["dlx", rest @ ..])
        | ("npm", ["exec" | "x", rest @ ..])
        | ("bun", ["x", rest @ ..]) => (Kind::Npm, rest),
        ("uvx", rest) | ("uv", ["tool", "run", rest @ ..]) | ("pipx", ["run", rest @ ..]) => {
            (Kind::Pypi, rest)
        }
        ("docker" | "podman" | "nerdctl", ["run", rest @ ..] | ["container", "run", rest @ ..]) => {
            (Kind::Image, rest)
        }
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
            (option, Kind::Image) if is_short_with_value(option) => {}
            _ => return None,
        }
    };
    Some(Package {
        kind,
        name: unversioned(kind, first),
        args: &args[args.len() - rest.len()..],
    })
}

/// Whether an option of one letter has its value in the same word.
fn is_short_with_value(option: &str) -> bool {
    let letter = option.get(..2).filter(|letter| *letter != "--");
    letter.is_some_and(|letter| has_value(Kind::Image, letter))
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
            "--prefer-online",
            "--offline",
            "--no-install",
            "--ignore-existing",
            "--no-audit",
            "--no-fund",
            "--no-update-notifier",
        ],
        Kind::Pypi => &[
            "-q",
            "--quiet",
            "--no-progress",
            "--isolated",
            "--refresh",
            "--offline",
            "-U",
            "--upgrade",
            "--reinstall",
            "-n",
            "--no-cache",
            "-v",
            "--verbose",
            "--native-tls",
            "--no-config",
            "--no-env-file",
            "--managed-python",
            "--no-managed-python",
            "--no-python-downloads",
        ],
        Kind::Image => &[
            "-i",
            "--interactive",
            "-t",
            "--tty",
            "-it",
            "-ti",
            "--rm",
            "-d",
            "--detach",
            "--privileged",
            "--no-healthcheck",
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
        Kind::Npm => &[
            "--registry",
            "--cache",
            "--prefix",
            "--userconfig",
            "--loglevel",
        ],
        Kind::Pypi => &[
            "-p",
            "--python",
            "--with",
            "--index",
            "--index-url",
            "--prerelease",
            "--default-index",
            "--extra-index-url",
            "--index-strategy",
            "-f",
            "--find-links",
            "--with-editable",
            "--with-requirements",
            "-c",
            "--constraints",
            "--overrides",
            "--resolution",
            "--exclude-newer",
            "--refresh-package",
            "--cache-dir",
            "--config-file",
            "--env-file",
            "--directory",
            "--project",
            "--pip-args",
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
            "--net",
            "-h",
            "--hostname",
            "--dns",
            "--expose",
            "--gpus",
            "--device",
            "--cap-add",
            "--security-opt",
            "--group-add",
            "--userns",
            "--pid",
            "--ipc",
            "--tmpfs",
            "--shm-size",
            "--memory-swap",
            "--pids-limit",
            "--ulimit",
            "--restart",
            "--runtime",
            "--stop-timeout",
            "--cidfile",
            "--label-file",
            "--log-driver",
            "--log-opt",
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
