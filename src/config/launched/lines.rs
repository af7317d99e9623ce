//! The commands in the text that a shell runs.

use super::directories;

/// The words that may stand before a command.
const KEYWORDS: &[&str] = &[
    "!", "if", "then", "else", "elif", "do", "while", "until", "@",
];

/// Commands that start no server.
const ASIDE: &[&str] = &[
    ":", "[", "alias", "cat", "cd", "echo", "exit", "export", "false", "mkdir", "popd", "printf",
    "pushd", "pwd", "read", "set", "shopt", "sleep", "source", "tee", "test", "touch", "trap",
    "true", "ulimit", "umask", "unset", ".",
];

/// The work of commands that come before a server: `npm install`, `git pull`.
const PREPARING: &[&str] = &[
    "install", "i", "ci", "add", "sync", "pull", "fetch", "checkout", "build", "update", "upgrade",
    "use", "activate", "login",
];

/// The number of changes of directory that are followed; a line with more may start any program.
const MOST_CHANGES: usize = 16;

/// The placeholder for a word that a shell makes, so that the text does not have it.
pub(super) const UNKNOWN: &str = "$";

/// Whether a shell finds the files of such names.
pub(super) fn is_glob(name: &str) -> bool {
    let is_set = name
        .split_once('[')
        .is_some_and(|(_, rest)| rest.contains(']'));
    name != "*" && (is_set || name.contains(['*', '?']))
}

/// Whether a shell puts words that it was started with in the place of this one.
pub(super) fn is_given(word: &str) -> bool {
    let name = word.strip_prefix('$').map(|it| it.trim_matches(['{', '}']));
    name.is_some_and(|name| {
        let is_number = !name.is_empty() && name.bytes().all(|c| c.is_ascii_digit());
        is_number || ["@", "*"].contains(&name)
    })
}

/// The commands of a line, each as its words: without variables before them, redirections and what only prepares. On Windows, a backslash
/// stands in paths.
pub(super) fn commands(line: &str) -> Vec<Vec<String>> {
    let mut all = read(line, true);
    if line.contains('\\') {
        all.extend(read(line, false));
    }
    all
}

/// The words of a line.
pub(super) fn words(line: &str) -> impl Iterator<Item = String> {
    read(line, false).into_iter().flatten()
}

fn read(line: &str, has_escapes: bool) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let (mut word, mut quote): (Option<String>, _) = (None, None);
    // The word after `>` is a file.
    let mut is_file = false;
    let end = |word: &mut Option<String>, is_file: &mut bool, all: &mut Vec<Vec<String>>| {
        if let Some(word) = word.take()
            && !std::mem::take(is_file)
            && let Some(last) = all.last_mut()
        {
            last.push(word);
        }
    };
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') if chars.next_if_eq(&'\n').is_some() => {}
            (None, '\\') if has_escapes => word.get_or_insert_default().extend(chars.next()),
            (None | Some('"'), '\\') => {
                let escaped = chars.next_if(|c| "\"'\\$`|&;<>(){}#*? \t\n".contains(*c));
                let word = word.get_or_insert_default();
                word.push(escaped.unwrap_or('\\'));
            }
            // The output of a command is not known.
            (None | Some('"'), '`') => {
                word.get_or_insert_default().push_str(UNKNOWN);
                while chars.next().is_some_and(|c| c != '`') {}
            }
            (None | Some('"'), '$') if chars.next_if_eq(&'(').is_some() => {
                word.get_or_insert_default().push_str(UNKNOWN);
                pass(&mut chars);
            }
            (None, '$') if chars.peek().is_some_and(|c| "'\"".contains(*c)) => {}
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '<') if chars.next_if_eq(&'(').is_some() => {
                word.get_or_insert_default().push_str(UNKNOWN);
                pass(&mut chars);
            }
            (None, '>' | '<') => {
                word = word.filter(|word| word.parse::<u8>().is_err());
                end(&mut word, &mut is_file, &mut all);
                while chars.next_if(|c| ">&|<".contains(*c)).is_some() {}
                is_file = true;
            }
            (None, '#') if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            // A function may start anything.
            (None, '(') if word.is_some() && chars.next_if_eq(&')').is_some() => {
                word = None;
                all.push(vec![UNKNOWN.to_owned()]);
                all.push(Vec::new());
            }
            (None, '{' | '}') if word.is_some() => word.get_or_insert_default().push(c),
            (None, '{') if chars.peek().is_some_and(|c| !c.is_whitespace()) => {
                word.get_or_insert_default().push(c);
            }
            (None, ';' | '|' | '&' | '\n' | '(' | ')' | '{' | '}') => {
                end(&mut word, &mut is_file, &mut all);
                is_file = false;
                all.push(Vec::new());
            }
            (None, c) if c.is_whitespace() => end(&mut word, &mut is_file, &mut all),
            (None, c) => word.get_or_insert_default().push(c),
        }
    }
    end(&mut word, &mut is_file, &mut all);
    let is_in =
        |list: &[&str], word: Option<&String>| word.is_some_and(|it| list.contains(&it.as_str()));
    // All that may be in force, the latest one last.
    let mut directories: Vec<String> = Vec::new();
    let mut found = Vec::new();
    let is_before = |word: &String| is_variable(word) || KEYWORDS.contains(&word.as_str());
    let all = all.into_iter();
    let all: Vec<Vec<String>> = all
        .map(|words| words.into_iter().skip_while(is_before).collect())
        .collect();
    // A change of directory may be over, or not have been made: `(cd X)`, `cd X || …`, `cd -`.
    let changes = |words: &&Vec<String>| is_in(&["cd", "pushd", "popd"], words.first());
    let count = all.iter().filter(changes).count();
    let is_certain = count <= 1 && !line.contains(['(', '|']);
    for words in all {
        if is_in(&["cd", "pushd"], words.first()) {
            let is_option = |word: &&String| word.starts_with('-') || *word == "/d";
            let next = words.iter().skip(1).find(|word| !is_option(word));
            let next = next.map_or("~", String::as_str);
            if count <= MOST_CHANGES {
                let before = directories.last().map(String::as_str);
                directories.push(directories::joined(before, next));
            }
        } else if is_in(&["source", "."], words.first()) && is_in(&[UNKNOWN], words.get(1)) {
            found.push(vec![vec![UNKNOWN.to_owned()]]);
        } else if !words.is_empty() && !is_in(ASIDE, words.first()) {
            let within = |directory| directories::within(words.clone(), Some(directory));
            let latest = directories.iter().rev().map(String::as_str);
            let mut forms: Vec<_> = latest.flat_map(within).collect();
            if !is_certain || directories.is_empty() {
                forms.push(words);
            }
            if count > MOST_CHANGES {
                forms.push(vec![UNKNOWN.to_owned()]);
            }
            found.push(forms);
        }
    }
    let last = found.pop();
    found.retain(|forms| !is_in(PREPARING, forms[0].get(1)));
    found.into_iter().chain(last).flatten().collect()
}

/// Passes what is before the closing bracket.
fn pass(chars: &mut impl Iterator<Item = char>) {
    let mut depth = 1;
    while depth > 0
        && let Some(c) = chars.next()
    {
        depth += i32::from(c == '(') - i32::from(c == ')');
    }
}

/// Whether a word gives a variable its value.
pub(super) fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
