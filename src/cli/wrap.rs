//! Wraps lines between words.

use console::measure_text_width;

/// Further indentation of continuation lines, in columns.
const HANG: usize = 2;

/// The width of a terminal. `None` for anything else.
pub(super) fn columns(terminal: &console::Term) -> Option<usize> {
    let (_, columns) = terminal.size_checked()?;
    Some(usize::from(columns).max(40))
}

/// Wraps `text` to lines of at most `width` columns. A longer word has a line of its own. Continuation lines are
/// indented further than the line itself.
pub(super) fn wrap(text: &str, width: usize) -> String {
    each_line(text, width, |line| indent(line) + HANG)
}

/// Prints `head` and `body` on one line. Continuation lines are aligned with the body unless the head is too wide, or a word of the body.
pub(super) fn wrap_row(head: &str, body: &str, width: usize) -> String {
    let column = measure_text_width(head);
    let least = indent(head) + 2 * HANG;
    let longest = body.split([' ', '\n']).map(measure_text_width).max();
    let longest = longest.unwrap_or(0);
    // A word that is too wide in any case is broken by the terminal.
    let is_word_too_wide = column + longest > width && least + longest <= width;
    let hang = match column <= width * 2 / 5 && !is_word_too_wide {
        true => column,
        false => least,
    };
    each_line(&format!("{head}{body}"), width, |_| hang)
}

fn each_line(text: &str, width: usize, hang: impl Fn(&str) -> usize) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| one_line(line, width, hang(line)))
        .collect();
    lines.join("\n")
}

fn indent(line: &str) -> usize {
    let line = console::strip_ansi_codes(line);
    line.len() - line.trim_start_matches(' ').len()
}

fn one_line(line: &str, width: usize, hang: usize) -> String {
    if measure_text_width(line) <= width {
        return line.to_owned();
    }
    let (mut text, mut used, mut gap) = (String::with_capacity(line.len() + 16), 0, 0);
    let mut has_word = false;
    for word in line.split(' ') {
        let length = measure_text_width(word);
        if length == 0 && word.is_empty() {
            gap += 1;
            continue;
        }
        if has_word && used + gap + length > width {
            text.push('\n');
            text.push_str(&" ".repeat(hang));
            used = hang;
        } else {
            text.push_str(&" ".repeat(gap));
            used += gap;
        }
        text.push_str(word);
        used += length;
        // A colour alone does not count as a word.
        (gap, has_word) = (1, has_word || length > 0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_continue_below_themselves() {
        assert_eq!(
            wrap("  one two three four", 11),
            "  one two\n    three\n    four"
        );
        assert_eq!(wrap("a-word-that-is-long b", 7), "a-word-that-is-long\n  b");
        assert_eq!(
            wrap("\u{1b}[2m  one two\u{1b}[0m", 6),
            "\u{1b}[2m  one\n    two\u{1b}[0m"
        );
        assert_eq!(wrap("short  and  spaced", 40), "short  and  spaced");
        let long = "\u{1b}[2m  a-word-that-is-long\u{1b}[0m";
        assert_eq!(wrap(long, 9), long);
        assert_eq!(wrap("first\nsecond line", 8), "first\nsecond\n  line");
        assert_eq!(
            wrap("\u{1b}[1mone\u{1b}[0m two three", 7),
            "\u{1b}[1mone\u{1b}[0m two\n  three"
        );
    }

    #[test]
    fn a_row_continues_below_its_body() {
        assert_eq!(
            wrap_row("name  ", "one two three", 15),
            "name  one two\n      three"
        );
        assert_eq!(
            wrap_row("a-long-name  ", "one two three", 20),
            "a-long-name  one two\n    three"
        );
        assert_eq!(
            wrap_row("name  ", "used by a-longer-word", 17),
            "name  used by\n    a-longer-word"
        );
    }
}
