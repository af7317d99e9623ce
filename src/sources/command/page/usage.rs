//! Reads a usage line: its positional arguments, and the flags that no list of options has.

use super::flag::Flag;

/// A positional argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sources::command) struct Positional {
    pub(in crate::sources::command) name: String,
    pub(in crate::sources::command) is_required: bool,
    pub(in crate::sources::command) is_repeated: bool,
    pub(in crate::sources::command) about: String,
}

/// The positional arguments of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sources::command) enum Positionals {
    /// These, in order; none if the list is empty.
    Named(Vec<Positional>),
    /// The usage is not a plain list of them, or there is none.
    Free,
}

/// The positional arguments by the usage lines of `path`; `known` has texts by name.
pub(super) fn positionals(
    usage: &[String],
    path: &[&str],
    known: &[(String, String)],
) -> Positionals {
    let lists: Option<Vec<Vec<Positional>>> = usage
        .iter()
        .map(|usage| of_line(usage, path, known))
        .collect();
    match lists.as_deref() {
        Some([first, rest @ ..]) if rest.iter().all(|list| list == first) => {
            Positionals::Named(first.clone())
        }
        _ => Positionals::Free,
    }
}

fn of_line(usage: &str, path: &[&str], known: &[(String, String)]) -> Option<Vec<Positional>> {
    let mut list: Vec<Positional> = Vec::new();
    let mut tokens = tokens(usage)?.into_iter().peekable();
    for word in path {
        // The program may be called by another name there.
        tokens.next_if(|token| token == word || token.rsplit('/').next() == Some(*word));
    }
    if list.is_empty()
        && tokens
            .peek()
            .is_some_and(|token| path.last() == Some(&token.as_str()))
    {
        tokens.next();
    }
    while let Some(token) = tokens.next() {
        if matches!(token.as_str(), "..." | "…") {
            list.last_mut()?.is_repeated = true;
            continue;
        }
        if is_of_flags(&token) {
            // A flag outside of brackets may have its value in the next token.
            if token.starts_with('-') && !token.contains(['=', '<']) {
                tokens.next_if(|next| next.starts_with('<') || is_upper(next));
            }
            continue;
        }
        list.push(positional(&token, known)?);
    }
    let mut names = std::collections::BTreeSet::new();
    // `FILE [FILE...]` is one argument.
    let mut joined: Vec<Positional> = Vec::new();
    for one in list {
        match joined.last_mut() {
            Some(last) if last.name == one.name => last.is_repeated |= one.is_repeated,
            _ => joined.push(one),
        }
    }
    joined
        .iter()
        .all(|one| names.insert(one.name.clone()))
        .then_some(joined)
}

fn positional(token: &str, known: &[(String, String)]) -> Option<Positional> {
    let bare = token.trim_end_matches(['.', '…']);
    let mut is_repeated = bare.len() < token.len();
    let inner = bare
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'));
    let is_required = inner.is_none();
    let mut inner = inner.unwrap_or(bare).trim();
    inner = inner.strip_prefix("--").map_or(inner, str::trim);
    for dots in ["...", "…"] {
        if let Some(rest) = inner.strip_suffix(dots) {
            (inner, is_repeated) = (rest.trim(), true);
        }
    }
    let named = inner
        .strip_prefix('<')
        .and_then(|name| name.strip_suffix('>'))
        .unwrap_or(inner);
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ' | '/');
    if named.is_empty()
        || !named.chars().all(is_plain)
        || !is_required && named.contains(' ') && named == inner
    {
        return None;
    }
    let is_named = named != inner || is_upper(named) || !is_required || is_repeated;
    let known = known.iter().find(|(name, _)| *name == plain(token));
    if !is_named && known.is_none() && named.contains(' ') {
        return None;
    }
    Some(Positional {
        name: plain(token),
        is_required,
        is_repeated,
        about: known.map(|(_, about)| about.clone()).unwrap_or_default(),
    })
}

/// The name of an argument: small letters, digits and `_`.
pub(super) fn plain(token: &str) -> String {
    let token = token
        .trim_start_matches("[-- ")
        .trim_matches(['[', ']', '<', '>', '.', '…', ' ']);
    let mut name = String::new();
    for c in token.to_lowercase().chars() {
        if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.ends_with('_') && !name.is_empty() {
            name.push('_');
        }
    }
    name.trim_end_matches('_').to_owned()
}

/// The flags of a usage line that stand outside of brackets.
pub(super) fn bare_flags(usage: &str) -> Vec<&str> {
    let (mut depth, mut flags) = (0_i32, Vec::new());
    for word in usage.split(' ') {
        if depth == 0 && word.starts_with('-') && word.len() > 1 && word != "--" {
            let end = word.find(['=', '[', '<', '|']).unwrap_or(word.len());
            flags.push(&word[..end]);
        }
        for c in word.chars() {
            match c {
                '[' | '(' => depth += 1,
                ']' | ')' => depth -= 1,
                _ => {}
            }
        }
    }
    flags
}

/// The flags of a usage line in brackets: `[-v]`, `[--all | -a]`, `[-o FILE]`. With `has_clusters`, `[-alF]` are three.
pub(super) fn flags(usage: &str, has_clusters: bool) -> Vec<Flag> {
    let tokens = tokens(usage).unwrap_or_default();
    let groups = tokens.iter().filter_map(|token| bracketed(token));
    groups
        .flat_map(|group| flags_of(group, has_clusters))
        .collect()
}

/// The flags of the inside of brackets: `-a | --all`, `(-m | --message) <text>`, `--from=<file> [--nul]`.
fn flags_of(group: &str, has_clusters: bool) -> Vec<Flag> {
    let mut all = Vec::new();
    for alternative in alternatives(group) {
        let words = tokens(alternative).unwrap_or_default();
        let Some((names, rest)) = words.split_first() else {
            continue;
        };
        let (metavar, rest) = match rest {
            [word, rest @ ..] if !word.starts_with(['-', '[', '(', '.', '…']) => {
                (Some(word.as_str()), rest)
            }
            rest => (None, rest),
        };
        // `[-x [FILE]]` has a value or none; further words are no flag's.
        let is_plain = |word: &String| {
            word.trim_matches(['.', '…']).is_empty()
                || bracketed(word).is_some_and(|inner| inner.starts_with(['-', '(']))
        };
        if !rest.iter().all(is_plain) {
            continue;
        }
        let is_repeated = metavar.is_some()
            && rest
                .iter()
                .any(|word| word.trim_end_matches(']').ends_with("..."));
        let names = names
            .strip_prefix('(')
            .and_then(|names| names.strip_suffix(')'))
            .unwrap_or(names);
        for name in alternatives(names) {
            let (name, metavar) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (name, metavar),
            };
            all.extend(
                named(name, metavar, has_clusters)
                    .into_iter()
                    .map(|flag| flag.repeated(is_repeated)),
            );
        }
        let nested = rest.iter().filter_map(|word| bracketed(word));
        all.extend(nested.flat_map(|inner| flags_of(inner, false)));
    }
    all
}

/// The flag of this name, or those of a cluster of letters.
fn named(name: &str, metavar: Option<&str>, has_clusters: bool) -> Vec<Flag> {
    let bare = name.trim_start_matches('-');
    let is_plain = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let dashes = name.len() - bare.len();
    let is_flag = dashes == 2 || dashes == 1 && bare.len() == 1;
    if !is_plain || metavar.is_some_and(|metavar| metavar.contains(['[', '('])) {
        Vec::new()
    } else if is_flag {
        vec![Flag::of_usage(name, metavar)]
    } else if dashes == 1 && has_clusters && metavar.is_none() {
        let letters = bare.chars();
        letters
            .map(|c| Flag::of_usage(&format!("-{c}"), None))
            .collect()
    } else {
        Vec::new()
    }
}

/// The spellings in usage lines. `None` if the lines stand for flags that they do not name.
pub(super) fn all_spellings(lines: &[String]) -> Option<Vec<String>> {
    let text = lines.join(" ").replace("[no-]", "");
    let lower = text.to_lowercase();
    if ["options", "option>", "flags"]
        .iter()
        .any(|word| lower.contains(word))
    {
        return None;
    }
    let words = text.split(|c: char| c.is_whitespace() || "[]()|=<>,".contains(c));
    let spellings =
        words.filter(|word| word.starts_with('-') && !word.trim_matches('-').is_empty());
    Some(spellings.map(str::to_owned).collect())
}

/// The usage line, if it is that of the command `words`: `git stash [push [-p]]` is that of `git stash push`.
pub(super) fn of_command(usage: &str, words: &[&str]) -> Option<String> {
    let mut rest = usage.to_owned();
    for (index, word) in words.iter().enumerate() {
        let all = tokens(&rest)?;
        let (first, others) = all.split_first()?;
        let others = others.join(" ");
        rest = match bracketed(first) {
            Some(inner) if index > 0 && inner.split(' ').next() == Some(word) => {
                format!("{} {others}", inner.strip_prefix(word)?.trim_start())
            }
            _ if first == word || index == 0 && first.rsplit('/').next() == Some(word) => others,
            _ => return None,
        };
    }
    Some(format!("{} {rest}", words.join(" ")).trim_end().to_owned())
}

/// The inside of brackets.
fn bracketed(token: &str) -> Option<&str> {
    token.strip_prefix('[')?.strip_suffix(']')
}

/// Splits at bars outside of brackets.
fn alternatives(text: &str) -> Vec<&str> {
    let (mut all, mut depth, mut from) = (Vec::new(), 0_i32, 0);
    for (at, c) in text.char_indices() {
        match c {
            '[' | '<' | '(' | '{' => depth += 1,
            ']' | '>' | ')' | '}' => depth -= 1,
            '|' if depth == 0 => {
                all.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(text[from..].trim());
    all
}

/// Whether a token stands for flags.
fn is_of_flags(token: &str) -> bool {
    let inner = token.trim_start_matches(['[', '(']);
    let word = inner.trim_end_matches([']', ')', '.', '…']).to_lowercase();
    let is_word = [
        "options",
        "option",
        "flags",
        "flag",
        "global options",
        "command options",
        "global flags",
    ]
    .contains(&word.trim_matches(['<', '>']));
    is_word
        || inner.starts_with('-') && inner != "--" && !inner.starts_with("-- ")
        || token == "--"
        || token == "[--]"
        || token.starts_with("[+")
}

fn is_upper(text: &str) -> bool {
    text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)
}

/// The words of a usage line; a pair of brackets is one. `None` if they do not match.
fn tokens(usage: &str) -> Option<Vec<String>> {
    let (mut all, mut token, mut depth) = (Vec::new(), String::new(), 0_i32);
    for c in usage.chars() {
        match c {
            '[' | '<' | '(' | '{' => depth += 1,
            ']' | '>' | ')' | '}' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
        if c == ' ' && depth == 0 {
            if !token.is_empty() {
                all.push(std::mem::take(&mut token));
            }
        } else {
            token.push(c);
        }
    }
    if !token.is_empty() {
        all.push(token);
    }
    (depth == 0).then_some(all)
}
