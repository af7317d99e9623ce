//! The questions of the wizard. Nothing is written while one is open, so it can be left at any of them.

use std::fmt;

use console::{Key, Term};
use dialoguer::MultiSelect;
use dialoguer::theme::{ColorfulTheme, Theme};

use super::super::diagnostics::Exit;

/// A line to choose, and whether it is chosen before anybody has.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) is_chosen: bool,
}

/// Asks which of `lines` to take. Gives their indexes.
///
/// # Errors
/// When the person leaves.
pub(super) fn choose(question: &str, lines: &[Line]) -> Result<Vec<usize>, Exit> {
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let width = usize::from(Term::stderr().size().1);
    // A line that the terminal breaks would be counted as one when it is drawn again.
    let items: Vec<String> = lines
        .iter()
        .map(|line| cut(&line.text, width.saturating_sub(8)))
        .collect();
    let chosen: Vec<bool> = lines.iter().map(|line| line.is_chosen).collect();
    let hint = console::style("(space, a: all, enter)").for_stderr().dim();
    let theme = Marked(ColorfulTheme::default());
    let asked = MultiSelect::with_theme(&theme)
        .with_prompt(format!("{question} {hint}"))
        .items(&items)
        .defaults(&chosen)
        .report(false)
        .interact_on_opt(&Term::stderr());
    asked.map_err(|error| left(&error))?.ok_or_else(given_up)
}

/// What a person says to a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// The changes themselves are to be shown first.
    Show,
}

/// Asks for a yes, by one key.
///
/// # Errors
/// When the person leaves.
pub(super) fn decide(question: &str) -> Result<Answer, Exit> {
    let terminal = Term::stderr();
    let hint = console::style("(y: yes, n: no, d: show the changes)")
        .for_stderr()
        .dim();
    let failed = |error: std::io::Error| {
        // The question has no end of line yet.
        let _ = terminal.write_line("");
        left(&dialoguer::Error::IO(error))
    };
    terminal
        .write_str(&format!("{question} {hint} "))
        .map_err(failed)?;
    loop {
        let (answer, word) = match terminal.read_key().map_err(failed)? {
            Key::Char('y' | 'Y') | Key::Enter => (Answer::Yes, "yes"),
            Key::Char('n' | 'N' | 'q') | Key::Escape => (Answer::No, "no"),
            Key::Char('d' | 'D') => (Answer::Show, "the changes:"),
            _ => continue,
        };
        terminal.write_line(word).map_err(failed)?;
        return Ok(answer);
    }
}

/// Marks the line that the keys are about by more than its colour, which not every terminal has.
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

/// Ctrl-C, or a terminal that is gone. The library leaves the cursor hidden then.
fn left(error: &dialoguer::Error) -> Exit {
    // There may be no terminal any more.
    let _ = Term::stderr().show_cursor();
    let dialoguer::Error::IO(error) = error;
    match error.kind() {
        std::io::ErrorKind::Interrupted => given_up(),
        _ => Exit::failed(error.to_string()),
    }
}

fn given_up() -> Exit {
    Exit::failed("nothing was changed")
}

/// `text` in so many columns.
fn cut(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}
