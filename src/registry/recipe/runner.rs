//! The options that a registry may pass to a package runner: a list per program. All others are refused, including a
//! second package or image, which would run a program other than the one whose name was checked.

use super::{RecipeError, Way, is_variable};

/// The names of an option, and the check of its value; `None` for an option without a value.
type Known = (&'static [&'static str], Option<fn(&str) -> bool>);

const NPX: &[Known] = &[(&["-y", "--yes", "-q", "--quiet", "--silent"], None)];

const UVX: &[Known] = &[
    (
        &["-q", "--quiet", "--no-progress", "--isolated", "--refresh"],
        None,
    ),
    (&["-p", "--python"], Some(is_version)),
    (&["--prerelease"], Some(is_prerelease)),
];

const DOCKER: &[Known] = &[
    (
        &[
            "-i",
            "--interactive",
            "--rm",
            "--init",
            "--read-only",
            "-q",
            "--quiet",
        ],
        None,
    ),
    (&["-e", "--env"], Some(is_setting)),
    (&["--platform"], Some(is_platform)),
    (&["--pull"], Some(is_pull)),
    (&["--network"], Some(is_none)),
    (&["--cap-drop"], Some(is_letters)),
    (&["-m", "--memory", "--cpus"], Some(is_version)),
];

const DNX: &[Known] = &[(&["-y", "--yes", "--prerelease"], None)];

/// Prefixes of variables that control a package runner or the program it starts.
const STEERING_STARTS: &[&str] = &[
    "NPM_CONFIG_",
    "NODE_",
    "YARN_",
    "PNPM_",
    "BUN_",
    "UV_",
    "PIP_",
    "PYTHON",
    "DOCKER_",
    "CONTAINER",
    "PODMAN_",
    "BUILDKIT_",
    "DOTNET_",
    "NUGET_",
    "CORECLR_",
    "COREHOST_",
    "COMPLUS_",
    "LD_",
    "DYLD_",
    "SSL_",
    "XDG_",
    "BASH_",
];

/// Other variables that control them.
const STEERING: &[&str] = &[
    "PATH",
    "PATHEXT",
    "HOME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "SHELL",
    "COMSPEC",
    "ENV",
    "TMPDIR",
    "TEMP",
    "TMP",
    "PREFIX",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
];

/// The harmless ones among them.
const HARMLESS: &[&str] = &[
    "NODE_ENV",
    "PYTHONUNBUFFERED",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
];

/// Checks the arguments that `program`, which runs packages of this kind, gets before the package.
///
/// # Errors
/// When one of them is none that is known.
pub(super) fn check(way: Way, program: &str, line: &[String]) -> Result<(), RecipeError> {
    let options = match way {
        Way::Npm => NPX,
        Way::Pypi => UVX,
        Way::Oci => DOCKER,
        Way::Nuget => DNX,
        Way::Remote => &[],
    };
    let is_command = way == Way::Oci && line.first().is_some_and(|first| first == "run");
    let mut rest = line.iter().skip(usize::from(is_command));
    while let Some(text) = rest.next() {
        let (name, joined) = match text.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (text.as_str(), None),
        };
        let known = options.iter().find(|(names, _)| names.contains(&name));
        let is_fine = match known {
            Some((_, None)) => joined.is_none(),
            Some((_, Some(is_right))) => joined
                .or_else(|| rest.next().map(String::as_str))
                .is_some_and(is_right),
            None => false,
        };
        if !is_fine {
            return Err(RecipeError::Option {
                program: program.to_owned(),
                option: crate::registry::wire::clean(text),
            });
        }
    }
    Ok(())
}

/// Whether a variable controls what a package runner fetches or starts.
pub(super) fn steers(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let name = name.as_str();
    !HARMLESS.contains(&name)
        && (STEERING.contains(&name) || STEERING_STARTS.iter().any(|start| name.starts_with(start)))
}

fn is_version(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.';
    text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_part)
}

fn is_prerelease(text: &str) -> bool {
    matches!(
        text,
        "allow" | "disallow" | "if-necessary" | "explicit" | "if-necessary-or-explicit"
    )
}

/// `NAME`, or `NAME=value`.
fn is_setting(text: &str) -> bool {
    is_variable(text.split_once('=').map_or(text, |(name, _)| name))
}

fn is_platform(text: &str) -> bool {
    text.split('/').all(is_letters)
}

fn is_pull(text: &str) -> bool {
    matches!(text, "always" | "missing" | "never")
}

fn is_none(text: &str) -> bool {
    text == "none"
}

fn is_letters(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
