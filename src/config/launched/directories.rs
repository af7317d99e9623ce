//! The directory of a command whose program is found there: it is one of its arguments.

use std::env;

use super::spelling::{bare, is_made};

/// Programs that run what a directory has.
const OF_PROJECTS: &[&str] = &[
    "npm", "pnpm", "yarn", "bun", "deno", "make", "just", "cargo", "go", "uv", "rake", "gradle",
    "mvn",
];

/// Their words that start a package instead.
const OF_PACKAGES: &[&str] = &["exec", "x", "dlx", "tool"];

/// Programs whose first word is a file, or after `-m` a module.
const INTERPRETERS: &[&str] = &["node", "python", "ruby", "php", "perl", "tsx", "ts-node"];

/// Options before a directory.
const OPTIONS: &[&str] = &["-C", "--directory", "--cwd", "--chdir"];

/// `words` with the directory as the last one, if they start what is there; and as they are, where it is not certain which directory it is,
/// or it is one in which a program is found without it.
pub(super) fn within(words: Vec<String>, directory: Option<&str>) -> Vec<Vec<String>> {
    let Some(directory) = directory.filter(|_| is_found_there(&words)) else {
        return vec![words];
    };
    let mut there = words.clone();
    let mut place = joined(None, directory);
    if is_relative(&words[0])
        && let Some((before, name)) = words[0].rsplit_once('/')
    {
        place = joined(Some(&place), before);
        there[0] = format!("./{name}");
    }
    let is_certain = place.starts_with('/') && !place.ends_with("bin") && !is_made(&place);
    there.push(place);
    match is_certain {
        true => vec![there],
        false => vec![there, words],
    }
}

/// The directory after `cd`, in the one before. The home is the one of this process.
pub(super) fn joined(before: Option<&str>, directory: &str) -> String {
    let of_home = directory.strip_prefix('~');
    let of_home = of_home.filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let whole = of_home.and_then(|rest| Some(format!("{}{rest}", env::home_dir()?.to_str()?)));
    let directory = whole.as_deref().unwrap_or(directory);
    let is_whole = directory.starts_with(['/', '~', '$', '%', '\\']) || directory.contains(':');
    let before = before.filter(|_| !is_whole).unwrap_or_default();
    let mut parts: Vec<&str> = Vec::new();
    for part in before.split('/').chain(directory.split('/')) {
        match (part, parts.last()) {
            ("" | ".", _) => {}
            ("..", Some(last)) if !last.starts_with(['.', '~', '$']) => _ = parts.pop(),
            (part, _) => parts.push(part),
        }
    }
    let is_of_root = before.starts_with('/') || before.is_empty() && directory.starts_with('/');
    let start = if is_of_root { "/" } else { "" };
    format!("{start}{}", parts.join("/"))
}

/// The directory that the options of a program give.
pub(super) fn given(args: &[String]) -> Option<&str> {
    let at = args.iter().position(|arg| OPTIONS.contains(&arg.as_str()));
    let joined = args.iter().find_map(|arg| {
        let (option, value) = arg.split_once('=')?;
        OPTIONS.contains(&option).then_some(value)
    });
    let next = at.and_then(|at| args.get(at + 1)).map(String::as_str);
    next.or(joined)
}

/// The directory in the path of a program, as [`within`] has it.
pub(super) fn of_path(command: &str) -> Option<String> {
    let (directory, _) = command.rsplit_once('/')?;
    let directory = match directory {
        "" => "/".to_owned(),
        directory => joined(None, directory),
    };
    (!directory.is_empty()).then_some(directory)
}

fn is_relative(word: &str) -> bool {
    word.starts_with("./") || word.starts_with("../")
}

fn is_found_there(words: &[String]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        let name = bare(word);
        let mut rest = words[at + 1..].iter();
        let is_of_package = |word: &String| OF_PACKAGES.contains(&word.as_str());
        let is_path = |word: &String| word.starts_with(['/', '~', '-', '$']);
        is_relative(word)
            || OF_PROJECTS.contains(&name.as_str()) && !rest.clone().any(is_of_package)
            || INTERPRETERS.contains(&name.as_str())
                && rest.next().is_some_and(|it| it == "-m" || !is_path(it))
    })
}
