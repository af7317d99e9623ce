//! The options of shells and interpreters: where the text or the file is that they run.

use super::options::has;
use super::spelling::bare;

/// Shells, with the options that have a value.
const SHELLS: &[(&str, &str)] = &[
    (
        "sh bash zsh dash ksh mksh ash csh tcsh",
        "-o +o -O +O --rcfile --init-file",
    ),
    ("fish", "-C --init-command -f --features -d -D"),
    ("nu", "--config --env-config --log-level --include-path -I"),
    ("cmd", ""),
    (
        "pwsh powershell",
        "-executionpolicy -ep -ex -version -configurationname -workingdirectory -wd -windowstyle -w -psconsolefile -inputformat -outputformat",
    ),
];

/// Interpreters, with the options that have a value, and those of which the value is the program.
const INTERPRETERS: &[(&str, &str, &str)] = &[
    (
        "node tsx ts-node",
        "-r --require --import --loader --experimental-loader -C --conditions --env-file --tsconfig",
        "-e --eval -p --print",
    ),
    ("python", "-W -X", "-c -m"),
    ("ruby perl", "-I -r", "-e -E"),
    ("php", "-d -c -z -t", "-r -S"),
];

/// The number of options before a shell's text that are read.
const MOST_OPTIONS: usize = 40;

/// The text of a shell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// It is the word at this position.
    At(usize),
    /// It is joined to an option, and goes on after this position.
    Joined(String, usize),
    /// It is encoded, or after too many options.
    Unknown,
}

pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.iter().any(|(names, _)| has(names, name))
}

/// Whether a shell joins the words after its option to one text.
pub(super) fn joins(name: &str) -> bool {
    ["cmd", "pwsh", "powershell"].contains(&name)
}

/// The position of the text of a shell, if it is a word of its own.
pub(super) fn text_at(name: &str, args: &[String]) -> Option<usize> {
    match text(name, args)? {
        Text::At(at) => Some(at),
        _ => None,
    }
}

/// The text that a shell runs.
pub(super) fn text(name: &str, args: &[String]) -> Option<Text> {
    let (_, valued) = SHELLS.iter().find(|(names, _)| has(names, name))?;
    let mut may_be_value = false;
    for (at, word) in args.iter().enumerate() {
        if at == MOST_OPTIONS {
            return Some(Text::Unknown);
        }
        let is_option = word.starts_with(['-', '+']) || joins(name) && word.starts_with('/');
        let found = match name {
            "cmd" => find_text_of_cmd(word).map(|rest| match rest {
                "" => Text::At(at + 1),
                rest => Text::Joined(rest.to_owned(), at + 1),
            }),
            "pwsh" | "powershell" if is_option => find_text_of_powershell(&word[1..], at),
            _ if word.starts_with('-') && !word.starts_with("--") && word.contains('c') => {
                Some(Text::At(after_options(args, at, valued)))
            }
            _ if word == "--command" || word == "--commands" => Some(Text::At(at + 1)),
            _ => {
                let joined = word
                    .strip_prefix("--command")
                    .map(|rest| rest.strip_prefix("s").unwrap_or(rest));
                let joined = joined.and_then(|rest| rest.strip_prefix('='));
                joined.map(|text| Text::Joined(text.to_owned(), at + 1))
            }
        };
        if found.is_some() {
            return found;
        }
        if !is_option && !may_be_value {
            break;
        }
        may_be_value = is_option;
    }
    None
}

/// The text after the first option of `cmd` after which its text begins, perhaps in the same word.
fn find_text_of_cmd(word: &str) -> Option<&str> {
    let options = ["/c", "/C", "/k", "/K", "/r", "/R"].into_iter();
    let rests = options.filter_map(|option| Some(word.split_once(option)?.1));
    rests
        .filter(|_| word.starts_with('/'))
        .max_by_key(|rest| rest.len())
}

fn find_text_of_powershell(option: &str, at: usize) -> Option<Text> {
    let option = &option.to_lowercase();
    let is_one = |of: &[&str]| !option.is_empty() && of.iter().any(|long| long.starts_with(option));
    if is_one(&["command", "commandwithargs"]) {
        return Some(Text::At(at + 1));
    }
    (is_one(&["encodedcommand"]) || option == "ec").then_some(Text::Unknown)
}

/// The first word after the options of a shell: others may follow the one that says that there is a text.
fn after_options(args: &[String], option: usize, valued: &str) -> usize {
    let mut at = option;
    while let Some(word) = args.get(at)
        && word.starts_with(['-', '+'])
        && word.len() > 1
    {
        // `-euo pipefail`.
        let ends_valued = word.ends_with(['o', 'O']) && !word.starts_with("--");
        at += 1 + usize::from(ends_valued || has(valued, word));
        if word == "--" {
            break;
        }
    }
    at.min(args.len())
}

/// The position of the file that a shell or an interpreter runs.
pub(super) fn script(name: &str, args: &[String]) -> Option<usize> {
    let of_shell = || SHELLS.iter().find(|(names, _)| has(names, name));
    let of_interpreter = || INTERPRETERS.iter().find(|(names, ..)| has(names, name));
    if text(name, args).is_some() {
        return None;
    }
    let (valued, texts) = match of_interpreter() {
        Some((_, valued, texts)) => (*valued, *texts),
        None => (of_shell()?.1, "-c -s"),
    };
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let is_file = |option: &str| joins(name) && option.len() > 1 && "-file".starts_with(option);
        let option = if joins(name) {
            word.to_lowercase()
        } else {
            word.clone()
        };
        match option.as_str() {
            "--" => return (at + 1 < args.len()).then_some(at + 1),
            "-" => return None,
            option if is_file(option) => at += 1,
            option if has(texts, option) => return None,
            option if has(valued, option) => at += 2,
            option if option.starts_with(['-', '+']) => at += 1,
            option if name == "cmd" && option.starts_with('/') => at += 1,
            _ => return Some(at),
        }
    }
    None
}

/// Whether these words start a shell that reads what it runs: from another program, or from a text after `<<<`.
pub(super) fn reads_commands(words: &[String]) -> bool {
    words.split_first().is_some_and(|(shell, args)| {
        let name = bare(shell);
        is_shell(&name) && text(&name, args).is_none() && script(&name, args).is_none()
    })
}
