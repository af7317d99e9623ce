//! The directory of a command whose program is found there: it is one of its arguments.

use std::env;

use super::lines::unknown;
use super::options::has;
use super::scripts::script;
use super::spelling::{bare, is_made};

/// Programs that run what a directory has.
const OF_PROJECTS: &str = "npm pnpm yarn bun deno make just cargo go uv rake gradle mvn";

/// Their words that start a package instead.
const OF_PACKAGES: &[&str] = &["exec", "x", "dlx", "tool"];

/// Options before a directory.
const OPTIONS: &[&str] = &["-C", "--directory", "--cwd", "--chdir", "--prefix"];

/// Those of wrappers alone.
const OF_WRAPPERS: &[&str] = &["-D", "--cd", "--wd", "--working-directory"];

/// `words` with the directory as the last one, if they start what is there; and as they are, where it is not certain which directory it is,
/// or it is one in which a program is found without it.
pub(super) fn within(words: Vec<String>, directory: Option<&str>) -> Vec<Vec<String>> {
    let started = directory.and_then(|directory| Some((directory, started_there(&words)?)));
    let Some((directory, started)) = started else {
        return vec![words];
    };
    let mut place = joined(None, directory);
    let (mut there, mut all) = (words.clone(), Vec::new());
    let by_name = is_relative(&words[0]);
    let program = match started {
        _ if by_name => Some(0),
        There::File(at) => Some(at),
        There::Other => None,
    };
    if let Some(at) = program
        && let (Some(before), name) = split(&words[at])
    {
        // Records that were made before the directories of such files were read have it so.
        if !by_name {
            all.push([there.clone(), vec![place.clone()]].concat());
        }
        place = joined(Some(&place), before);
        there[at] = if by_name {
            format!("./{name}")
        } else {
            name.to_owned()
        };
    }
    let is_certain = place.starts_with('/') && !place.ends_with("bin") && !is_made(&place);
    if is_made(&place) && !by_name {
        all.push(unknown());
    }
    there.push(place);
    all.push(there);
    if !is_certain {
        all.push(words);
    }
    all
}

/// The directory of a path, and the file in it.
pub(super) fn split(path: &str) -> (Option<&str>, &str) {
    let is_windows = path.get(1..3) == Some(r":\") || path.starts_with('%') && path.contains('\\');
    let parts = match is_windows {
        true => path.rsplit_once('\\'),
        false => path.rsplit_once('/'),
    };
    match parts {
        Some(("", file)) => (Some("/"), file),
        Some((directory, file)) => (Some(directory), file),
        None => (None, path),
    }
}

/// The directory after `cd`, in the one before. The home is the one of this process.
pub(super) fn joined(before: Option<&str>, directory: &str) -> String {
    let homes = ["~", "$HOME", "${HOME}"].into_iter();
    let of_home = homes.filter_map(|home| directory.strip_prefix(home)).next();
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
pub(super) fn find_given(args: &[String]) -> Option<&str> {
    let at = args.iter().position(|arg| OPTIONS.contains(&arg.as_str()));
    let joined = args.iter().find_map(|arg| {
        let (option, value) = arg.split_once('=')?;
        OPTIONS.contains(&option).then_some(value)
    });
    let next = at.and_then(|at| args.get(at + 1)).map(String::as_str);
    next.or(joined)
}

/// The directory among options that were read.
pub(super) fn find_read<'a>(options: &[(&'a str, Option<&'a str>)]) -> Option<&'a str> {
    let of = |(option, value): &(&str, Option<&'a str>)| {
        value.filter(|_| OPTIONS.contains(option) || OF_WRAPPERS.contains(option))
    };
    options.iter().find_map(of)
}

/// The command lines of a program that runs what a directory has, as they are after `cd` into the one that its options give.
pub(super) fn place_project(name: &str, args: &[String]) -> Vec<Vec<String>> {
    let Some(directory) = find_given(args).filter(|_| has(OF_PROJECTS, name)) else {
        return Vec::new();
    };
    let mut is_value = false;
    let others = args.iter().filter(|arg| {
        let (option, value) = arg
            .split_once('=')
            .map_or((arg.as_str(), None), |(option, value)| {
                (option, Some(value))
            });
        let is_option = OPTIONS.contains(&option);
        !(std::mem::replace(&mut is_value, is_option && value.is_none()) || is_option)
    });
    let line = [name.to_owned()].into_iter().chain(others.cloned());
    within(line.collect(), Some(directory))
}

/// The directory in the path of a program, as [`within`] has it.
pub(super) fn find_in_path(command: &str) -> Option<String> {
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

/// The part of a directory that a line starts.
enum There {
    /// The file at this position, which an interpreter runs.
    File(usize),
    Other,
}

/// Finds the part of a directory that a line starts.
fn started_there(words: &[String]) -> Option<There> {
    let is_of_package = |word: &String| OF_PACKAGES.contains(&word.as_str());
    let last_of_package = words.iter().rposition(is_of_package).unwrap_or_default();
    let mut is_there = false;
    for (at, word) in words.iter().enumerate() {
        let name = bare(word);
        let rest = &words[at + 1..];
        let file = script(&name, rest).map(|file| at + 1 + file);
        let is_file = |file: usize| {
            !words[file].starts_with(['/', '~', '-', '$']) && !words[file].contains(":\\")
        };
        if let Some(file) = file.filter(|file| is_file(*file)) {
            return Some(There::File(file));
        }
        is_there |= is_relative(word)
            || has(OF_PROJECTS, &name) && last_of_package <= at
            || name == "python"
                && rest
                    .iter()
                    .take_while(|it| it.starts_with('-'))
                    .any(|it| it == "-m");
    }
    is_there.then_some(There::Other)
}
