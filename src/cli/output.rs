//! All printing of commands goes through this file.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::diagnostics::Exit;
use super::printable::{on_terminal, printable, printable_json};
use super::wrap::{wrap, wrap_row};

/// Prints results to stdout and everything else to stderr. Terminals get coloured text, pipes get JSON.
#[derive(Debug)]
pub(super) struct Output {
    json: bool,
    asked: bool,
    /// The first error of writing to stdout.
    failure: Arc<OnceLock<io::Error>>,
}

/// A progress indicator on a terminal. It disappears when it is dropped.
#[derive(Debug)]
pub(super) struct Spinner(ProgressBar);

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Self {
            json: json || !io::stdout().is_terminal(),
            asked: json,
            failure: Arc::default(),
        }
    }

    /// Text output for a command that uses `--json` for something else.
    pub(super) fn without_json(&self) -> Self {
        Self {
            failure: self.failure.clone(),
            ..Self::new(false)
        }
    }

    /// Flushes stdout.
    ///
    /// # Errors
    /// When stdout did not take the whole result. A closed pipe, such as that of `head`, is not an error.
    pub(super) fn finish(&self) -> Result<(), Exit> {
        self.keep_failure(io::stdout().flush());
        match self.failure.get() {
            Some(error) => Err(Exit::failed(format!(
                "the output cannot be written: {error}"
            ))),
            None => Ok(()),
        }
    }

    fn keep_failure(&self, written: io::Result<()>) {
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            // The first error is the cause of the others.
            let _ = self.failure.set(error);
        }
    }

    /// Whether results are printed as JSON.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether `--json` was given. Commands that are made for people check this and print text into a pipe, too.
    pub(super) fn is_json_asked(&self) -> bool {
        self.asked
    }

    /// Prints a line of the result, wrapped on a terminal. Control characters are escaped; colours stay.
    pub(super) fn line(&self, text: impl AsRef<str>) {
        let text = on_terminal(text.as_ref());
        self.print(&match columns(&console::Term::stdout()) {
            Some(width) => wrap(&text, width),
            None => text,
        });
    }

    /// Prints a line of the result that begins with `head`. Continuation lines are aligned with `body`.
    pub(super) fn row(&self, head: impl AsRef<str>, body: impl AsRef<str>) {
        let (head, body) = (on_terminal(head.as_ref()), on_terminal(body.as_ref()));
        self.print(&match columns(&console::Term::stdout()) {
            Some(width) => wrap_row(&head, &body, width),
            None => head + &body,
        });
    }

    /// Prints text without wrapping, such as a tool's answer, a diff or a script.
    pub(super) fn verbatim(&self, text: impl AsRef<str>) {
        self.print(&on_terminal(text.as_ref()));
    }

    /// Prints a result that is JSON already.
    pub(super) fn raw_json(&self, json: &str) {
        self.print(&printable_json(json));
    }

    fn print(&self, text: &str) {
        self.keep_failure(writeln!(io::stdout().lock(), "{text}"));
    }

    /// Prints a result as JSON.
    pub(super) fn json(&self, value: &impl Serialize) {
        self.raw_json(&serde_json::to_string_pretty(value).expect("results are JSON"));
    }

    /// Prints an error: as one line of JSON with `--json`, otherwise as text.
    pub(super) fn error(&self, exit: &Exit) {
        if self.asked {
            // A failure cannot be reported anywhere.
            let _ = writeln!(io::stderr().lock(), "{}", printable_json(&exit.to_json()));
            return;
        }
        let label = console::style("error:").for_stderr().red().bold();
        self.beside(&format!("{label} {}", on_terminal(&exit.to_string())));
    }

    /// Prints a dimmed message to stderr.
    pub(super) fn note(&self, text: &str) {
        self.beside(
            &console::style(on_terminal(text))
                .for_stderr()
                .dim()
                .to_string(),
        );
    }

    fn beside(&self, text: &str) {
        let text = match columns(&console::Term::stderr()) {
            Some(width) => wrap(text, width),
            None => text.to_owned(),
        };
        // A failure cannot be reported anywhere.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Whether a person can answer questions.
    pub(super) fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Asks a yes-or-no question. Any answer other than yes is no.
    ///
    /// # Errors
    /// When the answer cannot be read.
    pub(super) fn ask(&self, question: &str) -> io::Result<bool> {
        let mut err = io::stderr().lock();
        write!(err, "{} [y/N] ", on_terminal(question))?;
        err.flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        Ok(matches!(
            answer.trim().to_ascii_lowercase().as_str(),
            "y" | "yes"
        ))
    }

    /// Asks for a text. Returns it without surrounding white space.
    ///
    /// # Errors
    /// When the answer cannot be read.
    pub(super) fn ask_text(&self, question: &str) -> io::Result<String> {
        let mut err = io::stderr().lock();
        write!(err, "{}: ", on_terminal(question))?;
        err.flush()?;
        let mut answer = String::new();
        if io::stdin().read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(answer.trim().to_owned())
    }

    /// Asks for a text that is not echoed.
    ///
    /// # Errors
    /// When the answer cannot be read.
    pub(super) fn ask_secret(&self, question: &str) -> io::Result<String> {
        let terminal = console::Term::stderr();
        terminal.write_str(&format!("{}: ", on_terminal(question)))?;
        Ok(terminal.read_secure_line()?.trim().to_owned())
    }

    /// Prints a message to stderr in full colour.
    pub(super) fn notable(&self, text: &str) {
        self.beside(&on_terminal(text));
    }

    /// Shows a progress indicator for each name, on a terminal only.
    pub(super) fn spinners(&self, names: &[String]) -> Spinners {
        let target = if io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let all = MultiProgress::with_draw_target(target);
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}")
            .expect("the template is well formed");
        let bar = |name: &String| {
            let bar = all.add(
                ProgressBar::new_spinner()
                    .with_style(style.clone())
                    .with_message(printable(name)),
            );
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        };
        let bars = names.iter().map(bar).collect();
        Spinners { all, bars }
    }

    /// Shows a progress indicator, on a terminal only.
    pub(super) fn spinner(&self, what: impl Into<String>) -> Spinner {
        let bar = if io::stderr().is_terminal() {
            ProgressBar::new_spinner()
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}")
            .expect("the template is well formed");
        bar.set_style(style);
        bar.set_message(printable(&what.into()));
        bar.enable_steady_tick(Duration::from_millis(100));
        Spinner(bar)
    }
}

/// Several progress indicators on a terminal. They disappear when this is dropped.
#[derive(Debug)]
pub(super) struct Spinners {
    all: MultiProgress,
    bars: Vec<ProgressBar>,
}

impl Spinners {
    /// Ends the indicator `at` with the result `words`.
    pub(super) fn done(&self, at: usize, words: &str) {
        let style = ProgressStyle::with_template("{msg}").expect("the template is well formed");
        self.bars[at].set_style(style);
        self.bars[at].finish_with_message(words.to_owned());
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        // This fails if nothing was drawn.
        let _ = self.all.clear();
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// The width of a terminal. `None` for anything else.
fn columns(terminal: &console::Term) -> Option<usize> {
    let (_, columns) = terminal.size_checked()?;
    Some(usize::from(columns).max(40))
}

/// Style of a name or number that matters.
pub(super) fn strong(text: impl std::fmt::Display) -> String {
    console::style(text).bold().to_string()
}

/// Style of text that may be skipped.
pub(super) fn faint(text: impl std::fmt::Display) -> String {
    console::style(text).dim().to_string()
}

/// Style of a success.
pub(super) fn good(text: impl std::fmt::Display) -> String {
    console::style(text).green().to_string()
}

/// Style of a failure.
pub(super) fn bad(text: impl std::fmt::Display) -> String {
    console::style(text).red().to_string()
}

/// Style of a warning.
pub(super) fn caution(text: impl std::fmt::Display) -> String {
    console::style(text).yellow().to_string()
}
