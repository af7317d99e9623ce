//! The directory of a command whose program is found there: it is one of its arguments.

use super::spelling::bare;

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

/// `words` with the directory as the last one, if they start what is there.
pub(super) fn within(mut words: Vec<String>, directory: Option<&str>) -> Vec<String> {
    if let Some(directory) = directory.filter(|_| is_found_there(&words)) {
        words.push(directory.trim_end_matches('/').to_owned());
    }
    words
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

/// The directory in the path of a program.
pub(super) fn of_path(command: &str) -> Option<&str> {
    let (directory, _) = command.rsplit_once('/')?;
    let is_usual = directory.is_empty() || directory.ends_with("bin") || directory == ".";
    (!is_usual).then_some(directory)
}

fn is_found_there(words: &[String]) -> bool {
    let is_relative = |word: &String| word.starts_with("./") || word.starts_with("../");
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
