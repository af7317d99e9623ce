//! The words of the text that a shell runs.

use super::options::has;
use super::spelling::bare;

/// The placeholder for a word that a shell makes, so that the text does not have it.
pub(super) const UNKNOWN: &str = "$";

/// Programs that print the variables of an environment after these words.
const ENVIRONMENTS: &str = "brew devbox direnv fnm mise nodenv opam pyenv rbenv rtx";
const PRINTING: &str = "env export shellenv activate init hook-env";

/// The command line of a program that is not known.
pub(super) fn unknown() -> Vec<String> {
    vec![UNKNOWN.to_owned()]
}

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

/// The words of a line.
pub(super) fn words(line: &str) -> impl Iterator<Item = String> {
    split(line, false).into_iter().flatten()
}

/// The texts of `$(…)` and the like in a line, of which a shell takes the output.
pub(super) fn substituted(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    split_with(line, true, &mut all);
    all
}

/// Whether a text only prints the variables of an environment, as a file that is sourced sets them.
fn is_environment(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " -_./=".contains(c);
    match Vec::from_iter(text.split_ascii_whitespace()).as_slice() {
        [name, word, ..] if text.chars().all(is_plain) => {
            has(ENVIRONMENTS, &bare(name)) && has(PRINTING, word)
        }
        _ => false,
    }
}

/// The commands of a line, each as its words. On Windows, a backslash stands in paths.
pub(super) fn split(line: &str, has_escapes: bool) -> Vec<Vec<String>> {
    split_with(line, has_escapes, &mut Vec::new())
}

fn split_with(line: &str, has_escapes: bool, inner: &mut Vec<String>) -> Vec<Vec<String>> {
    let mut output = |text: String| {
        let is_known = is_environment(&text);
        inner.push(text);
        if is_known { "" } else { UNKNOWN }
    };
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
                let text = chars.by_ref().take_while(|c| *c != '`').collect();
                word.get_or_insert_default().push_str(output(text));
            }
            (None | Some('"'), '$') if chars.next_if_eq(&'(').is_some() => {
                let text = within(&mut chars);
                word.get_or_insert_default().push_str(output(text));
            }
            (None, '$') if chars.peek().is_some_and(|c| "'\"".contains(*c)) => {}
            (Some(_), c) => word.get_or_insert_default().push(c),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '<') if chars.next_if_eq(&'(').is_some() => {
                let text = within(&mut chars);
                word.get_or_insert_default().push_str(output(text));
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
    all
}

/// The text before the closing bracket.
fn within(chars: &mut impl Iterator<Item = char>) -> String {
    let mut depth = 1;
    let is_within = |c: &char| {
        depth += i32::from(*c == '(') - i32::from(*c == ')');
        depth > 0
    };
    chars.take_while(is_within).collect()
}

/// Whether a word gives a variable its value.
pub(super) fn is_variable(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
