//! The commands of a shell's text that may start a server, in their directories.

use super::lines::{UNKNOWN, is_variable, split, unknown};
use super::options::has;
use super::spelling::{bare, is_made};
use super::{MOST, directories};

/// The words that may stand before a command.
const KEYWORDS: &str = "! if then else elif do while until coproc @";

/// Commands that start no server.
const ASIDE: &str = ": [ cat cd echo exit export false kill mkdir popd printf pushd pwd read rm set shopt sleep tee test touch true ulimit \
     umask unset wait";

/// Programs with work that comes before a server.
const PREPARERS: &str = "asdf brew bun bundle cargo deno docker fnm git go make mise npm nvm pip pip3 pnpm podman poetry uv volta yarn";

/// The work of commands that come before a server: `npm install`, `git pull`.
const PREPARING: &str =
    "install i ci add sync pull fetch checkout build update upgrade use activate login";

/// The number of changes of directory that are followed; a line with more may start any program.
const MOST_CHANGES: usize = 16;

/// The length of a text, in bytes, above which it is not read: it may start any program.
const LONGEST: usize = 8 * 1024;

/// The commands of a text, each as its words: without variables before them, redirections and what only prepares.
pub(super) fn commands(text: &str) -> Vec<Vec<String>> {
    read(text, text.contains('\\'))
}

/// Those of a text in which a backslash may stand before a letter as it is, or always stands in paths.
pub(super) fn read(text: &str, may_escape: bool) -> Vec<Vec<String>> {
    if text.len() > LONGEST {
        return vec![unknown()];
    }
    let is_certain = is_in_force(text);
    let mut all = placed(split(text, false), is_certain);
    if may_escape {
        all.extend(placed(split(text, true), is_certain));
    }
    all
}

/// Whether the change of directory in a text is in force for all that follows: not in `(cd X)`, `cd X || …`, `cd X & …` and `[ … ] && cd X; …`.
fn is_in_force(text: &str) -> bool {
    let mut words = text.split([' ', '\t', '\n', ';']);
    let is_condition = |word: &str| ["&&", "if", "then", "while", "until", "case"].contains(&word);
    let is_change = |word: &str| ["cd", "pushd"].contains(&word);
    let before = words.by_ref().take_while(|word| !is_change(word));
    let is_conditional = before.filter(|word| is_condition(word)).count() > 0;
    let plain = text.replace("&&", "").replace(">&", "").replace("&>", "");
    let may_be_left_out = is_conditional && text.contains([';', '\n']);
    !may_be_left_out && !plain.contains(['(', '|', '&'])
}

/// The commands among `all` that may start a server, in each directory that may be in force.
pub(super) fn placed(all: Vec<Vec<String>>, is_certain: bool) -> Vec<Vec<String>> {
    let is_before = |word: &String| is_variable(word) || has(KEYWORDS, word);
    let of_trap = |words: Vec<String>| match words.as_slice() {
        [name, text, ..] if name == "trap" => split(text, true),
        _ => vec![words],
    };
    let all = all.into_iter().flat_map(of_trap);
    let all = all.map(|words| Vec::from_iter(words.into_iter().skip_while(is_before)));
    let all: Vec<Vec<String>> = all.filter(|words| !words.is_empty()).collect();
    let changes = |words: &&Vec<String>| ["cd", "pushd", "popd"].contains(&words[0].as_str());
    let count = all.iter().filter(changes).count();
    let is_certain = is_certain && count <= 1;
    // All that may be in force, the latest one last.
    let mut directories: Vec<String> = Vec::new();
    let (mut found, mut length) = (Vec::new(), 0);
    let is_aside = |words: &Vec<String>| {
        let is_empty = || words[1..].iter().all(String::is_empty);
        has(ASIDE, &words[0]) || words[0] == "eval" && is_empty()
    };
    let last = all.iter().rposition(|words| !is_aside(words));
    for (at, mut words) in all.into_iter().enumerate() {
        match words[0].as_str() {
            "cd" | "pushd" => {
                let is_option = |word: &&String| word.starts_with('-') || *word == "/d";
                let next = words.iter().skip(1).find(|word| !is_option(word));
                let next = next.map_or("~", String::as_str);
                if count <= MOST_CHANGES {
                    let before = directories.last().map(String::as_str);
                    directories.push(directories::joined(before, next));
                }
                continue;
            }
            // Within the text of another one.
            "trap" => words = unknown(),
            "source" | "." => match sourced(&words) {
                // Others only set variables for the commands after them.
                Some(line) if Some(at) == last || line[0] == UNKNOWN || has_own(&line) => {
                    words = line;
                }
                _ => continue,
            },
            _ if is_aside(&words) => continue,
            _ => {}
        }
        let is_read = directories.is_empty() || length < MOST;
        let within = |directory| directories::within(words.clone(), Some(directory));
        let latest = directories.iter().rev().map(String::as_str);
        let mut forms: Vec<_> = latest.filter(|_| is_read).flat_map(within).collect();
        if !is_certain || directories.is_empty() || !is_read {
            forms.push(words);
        }
        length += forms.len();
        found.push(forms);
    }
    let is_over = count > MOST_CHANGES || length > MOST && !directories.is_empty();
    let last = found.pop();
    let is_preparing = |words: &[String]| match words {
        [name, work, ..] => has(PREPARERS, &bare(name)) && has(PREPARING, work),
        _ => false,
    };
    found.retain(|forms| !is_preparing(&forms[0]));
    let rest = is_over.then(unknown);
    let forms = found.into_iter().chain(last).flatten();
    forms.chain(rest).collect()
}

/// Whether a file that is sourced gets arguments, as a program does. `activate` gets the name of an environment.
fn has_own(line: &[String]) -> bool {
    let mut args = line[1..].iter();
    args.any(|arg| !arg.starts_with('-')) && bare(&line[0]) != "activate"
}

/// The words of `. FILE`, as the command line of that file; a file whose name is made may start anything.
fn sourced(words: &[String]) -> Option<Vec<String>> {
    let (_, file) = directories::split(words.get(1)?);
    match is_made(file) {
        true => Some(unknown()),
        false => Some(words[1..].to_vec()),
    }
}
