//! The command lines in the texts of shells, and the files that shells and interpreters run.

use super::commands::{commands, placed, read};
use super::directories;
use super::lines::unknown;
use super::scripts::{Text, is_shell, joins, script, text, text_at};
use super::spelling::{bare, is_made};

/// The command lines that a shell or an interpreter starts: those in its text, or the file that it runs.
pub(super) fn inner(name: &str, args: &[String]) -> Vec<Vec<String>> {
    match text(name, args) {
        Some(Text::At(at)) => read_text(name, &args[at..]),
        Some(Text::Joined(text, after)) => {
            read_text(name, &[vec![text], args[after..].to_vec()].concat())
        }
        Some(Text::Unknown) => vec![unknown()],
        None => script(name, args).map_or_else(Vec::new, |at| read_file(&args[at..])),
    }
}

/// A line with a shell, whose text begins in a directory.
pub(super) fn from(directory: &str, line: &[String]) -> Option<Vec<String>> {
    let at = (0..line.len()).find_map(|at| {
        let name = bare(&line[at]);
        let text = text_at(&name, &line[at + 1..]).filter(|_| is_shell(&name))?;
        (at + 1 + text < line.len()).then_some(at + 1 + text)
    })?;
    let mut there = line.to_vec();
    let quoted = directory.replace('\'', r"'\''");
    there[at] = format!("cd '{quoted}' && {}", line[at]);
    Some(there)
}

/// The command lines in a shell's text, which the words after it may go into.
fn read_text(name: &str, words: &[String]) -> Vec<Vec<String>> {
    let Some((text, others)) = words.split_first() else {
        return Vec::new();
    };
    if joins(name) && !others.is_empty() {
        // A path with spaces stays one word.
        let parts = words.split(|word| ["&", "&&", "||", "|", ";"].contains(&word.as_str()));
        let is_certain = !words.iter().any(|word| word.contains(['(', '|']));
        return placed(parts.map(<[String]>::to_vec).collect(), is_certain);
    }
    let all = match joins(name) {
        true => read(&without_variables(text), false),
        false => commands(text),
    };
    let mut names = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_set = others.len() < 2 || names.any(|name| ["set", "shift"].contains(&name));
    let lines = all.into_iter().flat_map(|mut words| {
        // Those that stand for one of the others.
        for word in &mut words {
            let number = word.strip_prefix('$').map(|it| it.trim_matches(['{', '}']));
            let number = number.and_then(|it| it.parse::<usize>().ok());
            if let Some(given) = number.and_then(|number| others.get(number)) {
                word.clone_from(given);
            }
        }
        let is_all = |word: &String| ["$@", "$*", "${@}", "${*}"].contains(&word.as_str());
        let Some(at) = words.iter().position(is_all) else {
            return vec![words];
        };
        // `set` may have given others.
        let without = words.clone();
        words.splice(at..=at, others.get(1..).unwrap_or_default().iter().cloned());
        match is_set {
            true => vec![words, without],
            false => vec![words],
        }
    });
    lines.collect()
}

/// A text without the parts that only set a variable in PowerShell: `$env:NAME = "x";`.
fn without_variables(text: &str) -> String {
    let is_whole = |part: &str| {
        ['"', '\'']
            .iter()
            .all(|mark| part.matches(*mark).count() % 2 == 0)
    };
    let is_variable = |part: &str| {
        let start = part.trim_start().get(..5);
        start.is_some_and(|start| start.eq_ignore_ascii_case("$env:"))
            && part.contains('=')
            && is_whole(part)
            && !part.contains(['(', '|', '&', '`', '\n', '{'])
    };
    let parts = text.split_inclusive(';');
    parts.filter(|part| !is_variable(part)).collect()
}

/// The program that is the first of `words`, as it is started in its directory.
fn read_file(words: &[String]) -> Vec<Vec<String>> {
    let (directory, file) = directories::split(&words[0]);
    let is_of_system = ["/dev/", "/proc/"]
        .iter()
        .any(|start| words[0].starts_with(start));
    if is_of_system
        || is_made(file)
        || directory.is_some_and(|directory| is_made(&directories::joined(None, directory)))
    {
        return vec![unknown()];
    }
    let line = [vec![format!("./{file}")], words[1..].to_vec()].concat();
    match directory {
        Some(directory) => directories::within(line, Some(directory)),
        None => vec![line],
    }
}
