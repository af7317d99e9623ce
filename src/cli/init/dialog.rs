//! The questions of the wizard. Nothing is written while one is open, so it can be left at any of them.

use std::fmt;

use console::Term;
use dialoguer::theme::{ColorfulTheme, Theme};
use dialoguer::{Confirm, MultiSelect};

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

/// Asks for a yes.
///
/// # Errors
/// When the person leaves.
pub(super) fn agrees(question: &str) -> Result<bool, Exit> {
    let theme = ColorfulTheme::default();
    let asked = Confirm::with_theme(&theme)
        .with_prompt(question)
        .default(true)
        .interact_on_opt(&Term::stderr());
    asked
        .map_err(|error| {
            // The question has no end of line yet.
            let _ = Term::stderr().write_line("");
            left(&error)
        })?
        .ok_or_else(given_up)
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
