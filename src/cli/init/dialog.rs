//! The questions of `mcpzip init`. Nothing is written while a question is open, so the user can leave at any of them.

use std::fmt;

use console::{Key, Term};
use dialoguer::MultiSelect;
use dialoguer::theme::{ColorfulTheme, Theme};

use super::super::diagnostics::Exit;
use super::super::output::wrapped;
use super::super::wrap::wrap;

/// The columns of the marks before an item.
const MARKS: usize = 6;

/// A line to choose from, and whether it is chosen at first.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) is_chosen: bool,
}

/// Asks which of `lines` to take. Returns their indexes.
///
/// # Errors
/// When the user leaves.
pub(super) fn choose(question: &str, lines: &[Line]) -> Result<Vec<usize>, Exit> {
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let (height, width) = Term::stderr().size();
    // Redrawing counts line breaks, but not lines that the terminal breaks.
    let items: Vec<String> = lines
        .iter()
        .map(|line| item(&line.text, usize::from(width).saturating_sub(MARKS + 2)))
        .collect();
    let tallest = items.iter().map(|item| item.lines().count()).max();
    let chosen: Vec<bool> = lines.iter().map(|line| line.is_chosen).collect();
    let hint = console::style("(space, a: all, enter)").for_stderr().dim();
    let theme = Marked(ColorfulTheme::default());
    let asked = MultiSelect::with_theme(&theme)
        .with_prompt(format!("{question} {hint}"))
        .items(&items)
        .defaults(&chosen)
        // A page counts items, and has to fit the screen with those of several lines.
        .max_length(usize::from(height).saturating_sub(2) / tallest.unwrap_or(1).max(1))
        .report(false);
    let asked = undisturbed(|| asked.interact_on_opt(&Term::stderr()));
    asked.map_err(|error| left(&error))?.ok_or_else(given_up)
}

/// An answer to a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// Show the changes first.
    Show,
}

/// Asks whether to write the changes, which can be shown first. An empty answer is no.
///
/// # Errors
/// When the user leaves.
pub(super) fn decide(question: &str) -> Result<Answer, Exit> {
    let question = format!("{question} [y/N, d: show the changes]");
    answer(&question, "`y`, `n`, or `d` for the changes", |word| {
        Some(match word {
            "y" | "yes" => Answer::Yes,
            "d" | "diff" => Answer::Show,
            "" | "n" | "no" => Answer::No,
            _ => return None,
        })
    })
}

/// Asks a yes-or-no question. An empty answer is no.
///
/// # Errors
/// When the user leaves.
pub(super) fn agree(question: &str) -> Result<bool, Exit> {
    answer(&format!("{question} [y/N]"), "`y` or `n`", |word| {
        Some(match word {
            "y" | "yes" => true,
            "" | "n" | "no" => false,
            _ => return None,
        })
    })
}

/// Asks until `read` understands the answer, which is passed on in lower case. `expected` lists the answers.
fn answer<T>(question: &str, expected: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Exit> {
    loop {
        let word = line(question)?.trim().to_ascii_lowercase();
        if let Some(answer) = read(&word) {
            return Ok(answer);
        }
        let hint = format!("Please answer {expected}; Enter alone is no.");
        let shown = Term::stderr().write_line(&wrapped(&hint));
        shown.map_err(|error| left(&dialoguer::Error::IO(error)))?;
    }
}

/// Reads an answer key by key, because a read of a whole line would not end at Ctrl-C here.
fn line(question: &str) -> Result<String, Exit> {
    let terminal = Term::stderr();
    let failed = |error: std::io::Error| {
        // Ends the line of the question.
        let _ = terminal.write_line("");
        left(&dialoguer::Error::IO(error))
    };
    let question = format!("{} ", wrapped(question));
    terminal.write_str(&question).map_err(failed)?;
    let mut answer = String::new();
    loop {
        match undisturbed(|| terminal.read_key()).map_err(failed)? {
            Key::Enter => break,
            Key::Escape => {
                answer.clear();
                break;
            }
            Key::Backspace if answer.pop().is_some() => {
                terminal.clear_chars(1).map_err(failed)?;
            }
            Key::Char(typed) if !typed.is_control() => {
                answer.push(typed);
                terminal.write_str(&typed.to_string()).map_err(failed)?;
            }
            _ => {}
        }
    }
    terminal.write_line("").map_err(failed)?;
    Ok(answer)
}

/// Runs `ask` with the signal of a child that ends held back from this thread: the library takes a read that any signal interrupts for
/// Ctrl-C, and a program that was tried may end only now.
#[cfg(unix)]
fn undisturbed<T>(ask: impl FnOnce() -> T) -> T {
    use nix::sys::signal::{SigSet, SigmaskHow, Signal};
    let ends = SigSet::from(Signal::SIGCHLD);
    // Neither call fails, as all of their arguments are constants or come from the system.
    let before = ends.thread_swap_mask(SigmaskHow::SIG_BLOCK);
    let asked = ask();
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    asked
}

/// Windows has no signals.
#[cfg(not(unix))]
fn undisturbed<T>(ask: impl FnOnce() -> T) -> T {
    ask()
}

/// A theme that marks the active line with a sign as well as a colour, which not every terminal has.
struct Marked(ColorfulTheme);

impl Theme for Marked {
    fn format_multi_select_prompt(&self, f: &mut dyn fmt::Write, prompt: &str) -> fmt::Result {
        self.0.format_multi_select_prompt(f, prompt)
    }

    fn format_multi_select_prompt_item(
        &self,
        f: &mut dyn fmt::Write,
        text: &str,
        checked: bool,
        active: bool,
    ) -> fmt::Result {
        let mark = if active {
            &self.0.active_item_prefix
        } else {
            &self.0.inactive_item_prefix
        };
        write!(f, "{mark} ")?;
        self.0
            .format_multi_select_prompt_item(f, text, checked, active)
    }
}

/// The error for Ctrl-C or a closed terminal. Shows the cursor again, which the library leaves hidden.
fn left(error: &dialoguer::Error) -> Exit {
    // This fails if the terminal is gone.
    let _ = Term::stderr().show_cursor();
    let dialoguer::Error::IO(error) = error;
    match error.kind() {
        std::io::ErrorKind::Interrupted => Exit::interrupted_with("nothing was changed"),
        _ => Exit::failed(error.to_string()),
    }
}

fn given_up() -> Exit {
    Exit::failed("nothing was changed")
}

/// `text` in lines of at most `width` columns, of which all but the first are indented as far as the marks. Only a word that is wider
/// is cut.
fn item(text: &str, width: usize) -> String {
    let wrapped = wrap(text, width);
    let lines = wrapped
        .lines()
        .map(|line| console::truncate_str(line, width, "…"));
    let indented = format!("\n{:MARKS$}", "");
    lines.collect::<Vec<_>>().join(&indented)
}

#[cfg(test)]
mod tests {
    use super::item;

    #[test]
    fn an_item_is_whole_in_a_narrow_terminal() {
        assert_eq!(
            item("files  reads and writes files", 20),
            "files  reads and\n        writes files"
        );
        assert_eq!(item("a-word-that-is-too-wide", 10), "a-word-th…");
    }
}
