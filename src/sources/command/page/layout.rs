//! The lines of a page of help: their indentation, headings, and the subcommands that they name.

/// A line without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The number of columns before the text.
    pub(super) indent: usize,
    pub(super) text: String,
}

/// The meaning of the lines below a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    /// The name and purpose of a manual page.
    Name,
    About,
    Usage,
    Commands,
    Flags,
    Arguments,
    /// Examples, topics, variables and the like.
    Ignored,
    Other,
}

const TAB: usize = 8;

/// The lines of a text: without escape sequences and overstruck characters, with tabs as spaces.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let plain = console::strip_ansi_codes(text);
    plain.lines().map(line).collect()
}

/// The text after the bullet of a list, where a flag follows: `o   --seq`.
fn without_bullet(text: &str) -> &str {
    let after = text.strip_prefix(['o', 'O', '*', '•', '○', '·']);
    let flag = after
        .and_then(|rest| rest.strip_prefix("  "))
        .map(str::trim_start);
    flag.filter(|rest| rest.starts_with('-')).unwrap_or(text)
}

fn line(written: &str) -> Line {
    let mut text = String::with_capacity(written.len());
    for c in written.chars() {
        match c {
            // A manual page prints bold as `x`, backspace, `x`.
            '\u{8}' => {
                text.pop();
            }
            '\t' => {
                let columns = text.chars().count();
                text.extend(std::iter::repeat_n(' ', TAB - columns % TAB));
            }
            c if c.is_control() => {}
            c => text.push(c),
        }
    }
    let trimmed = text.trim_start();
    Line {
        indent: text.chars().count() - trimmed.chars().count(),
        text: without_bullet(trimmed.trim_end()).to_owned(),
    }
}

/// The rest of a line that begins a usage.
pub(super) fn usage(text: &str) -> Option<&str> {
    let head = text.get(..5)?;
    let rest = &text[5..];
    if !head.eq_ignore_ascii_case("usage") {
        return None;
    }
    match rest.strip_prefix(':') {
        Some(rest) => Some(rest.trim()),
        None if rest.is_empty() && head == "USAGE" => Some(""),
        None => None,
    }
}

/// The section that a heading begins; `next` is the next line with text.
pub(super) fn heading(line: &Line, next: Option<&Line>) -> Option<Section> {
    if line.indent > 1 || line.text.starts_with('-') {
        return None;
    }
    let text = line.text.trim_end_matches(':');
    let words = text.split_whitespace().count();
    let has_colon = line.text.ends_with(':');
    let is_upper = text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase);
    let is_followed = next.is_some_and(|next| {
        next.indent > line.indent + 1
            && (next.text.starts_with('-') || !commands(next, false, None).is_empty())
    });
    // `start a working area (see also: git help tutorial)`
    let title = text.split(" (").next().unwrap_or(text);
    // A table without indentation, as openssl has them.
    let is_table = title.ends_with("commands")
        && next.is_some_and(|next| table(&next.text).is_some_and(|cells| cells.len() > 2));
    let is_heading = has_colon && words <= 10 || is_upper && words <= 6 || is_followed || is_table;
    is_heading.then(|| section(&title.to_lowercase(), has_colon || is_upper))
}

/// Whether the lines are a manual page: `TITLE(1)` stands at both ends of the first one.
pub(super) fn is_manual(lines: &[Line]) -> bool {
    let first = lines.iter().find(|line| !line.text.is_empty());
    first.is_some_and(|line| {
        let mut words = line.text.split_whitespace();
        let (title, last) = (words.next(), words.next_back());
        title == last && title.is_some_and(|title| title.ends_with(')') && title.contains('('))
    })
}

/// The section that a heading of a manual page begins.
pub(super) fn manual_section(title: &str) -> Section {
    match title {
        "NAME" => Section::Name,
        "SYNOPSIS" => Section::Usage,
        // `-ok: supported by POSIX`
        _ if ["STANDARDS", "CONFORMING", "HISTORY", "COMPATIBILITY"]
            .iter()
            .any(|word| title.contains(word)) =>
        {
            Section::Ignored
        }
        _ => match section(&title.to_lowercase(), true) {
            // Tables in running text name no subcommands.
            Section::Other | Section::About => Section::Flags,
            section => section,
        },
    }
}

fn section(title: &str, is_plain: bool) -> Section {
    let has = |words: &[&str]| words.iter().any(|word| title.contains(word));
    if has(&[
        "example",
        "topic",
        "environment",
        "alias",
        "learn more",
        "see also",
        "exit status",
        "exit code",
        "author",
        "copyright",
        "inherited",
        "parent command",
        "concept",
        "note",
        "interfaces",
        "formats",
    ]) && !title.contains("command,")
    {
        return if title.contains("inherited") {
            Section::Flags
        } else {
            Section::Ignored
        };
    }
    if has(&["option", "flag", "switch"]) && !has(&["command"]) {
        Section::Flags
    } else if has(&["command"]) {
        Section::Commands
    } else if has(&["argument", "positional", "parameter"]) {
        Section::Arguments
    } else if is_plain && has(&["description"]) {
        Section::About
    } else {
        Section::Other
    }
}

/// The subcommands that a line names: name, text, and the column of the text. Without `is_certain`, they must be
/// followed by a text in a column of its own. `column` is that of the texts before, where a single blank may precede the text.
pub(super) fn commands(
    line: &Line,
    is_certain: bool,
    column: Option<usize>,
) -> Vec<(String, String, Option<usize>)> {
    let text = line.text.as_str();
    if text.starts_with('-') {
        return Vec::new();
    }
    let at = column.and_then(|column| column.checked_sub(line.indent));
    if let Some((head, about)) = columns(text).or_else(|| columns_at(text, at?)) {
        let at = Some(text.chars().count() - about.chars().count());
        let mut words = head.split([' ', ',']).filter(|word| !word.is_empty());
        let name = words
            .next()
            .unwrap_or_default()
            .trim_end_matches(['*', ':']);
        // After the name come its aliases, or its arguments.
        let is_spelling = words.all(|word| {
            is_command(word.trim_end_matches(':')) && head.contains(", ")
                || word.starts_with(['<', '[', '{', '.', '|', '('])
                || word.chars().all(|c| c.is_uppercase() || !c.is_alphabetic())
        });
        if is_command(name) && is_spelling {
            return vec![(name.to_owned(), about.to_owned(), at)];
        }
        return Vec::new();
    }
    if !is_certain || line.indent == 0 {
        return Vec::new();
    }
    if let Some((name, about)) = text.split_once(" - ").or_else(|| text.split_once(": "))
        && is_command(name.trim())
    {
        return vec![(name.trim().to_owned(), about.trim().to_owned(), None)];
    }
    let names: Vec<&str> = text
        .split([',', ' '])
        .filter(|name| !name.is_empty())
        .collect();
    let is_list = names.len() == 1 || text.contains(',');
    if is_list && names.iter().all(|name| is_command(name)) {
        let named = |name: &&str| ((*name).to_owned(), String::new(), None);
        return names.iter().map(named).collect();
    }
    Vec::new()
}

/// The subcommand that a line begins with, if only its usage follows.
pub(super) fn command_with_usage(text: &str) -> Option<&str> {
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let first = rest.split_whitespace().next().unwrap_or_default();
    let is_usage =
        first.starts_with(['[', '<', '(', '-', '{']) || !first.chars().any(char::is_lowercase);
    (is_usage && is_command(name)).then_some(name)
}

/// The cells of a line, if all of them can be names of subcommands: more than two in a line are a table without texts.
pub(super) fn table(text: &str) -> Option<Vec<&str>> {
    let cells = text.split("  ").map(str::trim);
    let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
    cells.iter().all(|cell| is_command(cell)).then_some(cells)
}

/// Splits a line at the first gap of two blanks.
pub(super) fn columns(text: &str) -> Option<(&str, &str)> {
    let (head, rest) = text.split_once("  ")?;
    let rest = rest.trim();
    (!rest.is_empty()).then(|| (head.trim_end(), rest))
}

/// Splits a line where the texts of other lines begin.
fn columns_at(text: &str, column: usize) -> Option<(&str, &str)> {
    let (at, _) = text.char_indices().nth(column)?;
    let (head, about) = text.split_at(at);
    let is_gap = head.ends_with(' ') && about.starts_with(|c: char| c.is_ascii_uppercase());
    is_gap.then(|| (head.trim_end(), about))
}

/// Whether a word can be the name of a subcommand.
pub(super) fn is_command(word: &str) -> bool {
    let mut characters = word.chars();
    characters
        .next()
        .is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'))
        && word.len() <= 40
        && !word.ends_with(['.', ':'])
        && word.chars().any(|c| c.is_ascii_lowercase())
}
