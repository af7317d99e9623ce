//! All printing of commands goes through this file.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::UnboundedSender;

use super::diagnostics::{Exit, Reported};
use super::printable::{on_terminal, printable, printable_json, printable_lines};
use super::wrap::{columns, wrap, wrap_row};
use crate::config::with_options;
use crate::shutdown::interruptible;

/// Number of log lines that a terminal does not show again.
const LINES_KNOWN: usize = 64;

/// The progress indicators of this process. Lines are printed above them.
static INDICATORS: LazyLock<MultiProgress> = LazyLock::new(|| {
    MultiProgress::with_draw_target(match io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    })
});

/// Prints results to stdout and everything else to stderr. Terminals get coloured text, pipes get JSON.
#[derive(Debug)]
pub(super) struct Output {
    json: bool,
    asked: bool,
    /// The first error of writing to stdout.
    failure: Arc<OnceLock<io::Error>>,
    /// The run whose changes were made, which is named where the output cannot be written.
    made: Arc<OnceLock<String>>,
    /// Whether something could not be written, also because stdout is closed.
    is_lost: Arc<AtomicBool>,
    /// The process that prints, if it is another one.
    printer: Option<UnboundedSender<String>>,
}

/// A message for the process that prints.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Printed {
    Line(String),
    Row(String, String),
    Verbatim(String),
    Answer(String),
    Json(String),
    Note(String),
    Notable(String),
    /// A wait begins, for this reason.
    Waiting(String),
    /// The wait has ended.
    Waited,
    /// The numbers of faults and warnings in the configuration.
    Odd {
        faults: Vec<String>,
        warnings: usize,
    },
    /// The failure of the command.
    Failed(Reported),
}

/// A progress indicator on a terminal. It disappears when it is dropped.
#[derive(Debug)]
pub(super) enum Spinner {
    Here(ProgressBar),
    /// In the terminal of another process.
    There(Output),
}

impl Output {
    pub(super) fn new(json: bool) -> Self {
        Self {
            json: json || !io::stdout().is_terminal(),
            asked: json,
            failure: Arc::default(),
            made: Arc::default(),
            is_lost: Arc::default(),
            printer: None,
        }
    }

    /// Creates an output that another process prints.
    pub(super) fn elsewhere(printer: UnboundedSender<String>, json: bool, asked: bool) -> Self {
        Self {
            json,
            asked,
            failure: Arc::default(),
            made: Arc::default(),
            is_lost: Arc::default(),
            printer: Some(printer),
        }
    }

    /// Prints a message of a command that runs in another process.
    pub(super) fn replay(&self, printed: Printed, spinner: &mut Option<Spinner>) {
        // Text for a terminal with colours contains them.
        let plain = |text: String| match console::colors_enabled() {
            true => text,
            false => console::strip_ansi_codes(&text).into_owned(),
        };
        match printed {
            Printed::Line(text) => self.line(plain(text)),
            Printed::Row(head, body) => self.row(plain(head), plain(body)),
            Printed::Verbatim(text) => self.verbatim(text),
            Printed::Answer(text) => self.answer(&text),
            Printed::Json(text) => self.raw_json(&text),
            Printed::Note(text) => self.note(&text),
            Printed::Notable(text) => self.notable(&text),
            Printed::Waiting(what) => *spinner = Some(self.spinner(what)),
            Printed::Waited => *spinner = None,
            // The waiting command handles these.
            Printed::Odd { .. } | Printed::Failed(_) => {}
        }
    }

    /// Whether another process prints, and has the terminal.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.printer.is_some()
    }

    /// Passes the text to another process if that one prints. Returns whether it did.
    fn is_sent(&self, printed: impl FnOnce() -> Printed) -> bool {
        if self.is_elsewhere() {
            self.send(&printed());
        }
        self.is_elsewhere()
    }

    /// Sends a message to the process that prints, if it is another one.
    pub(super) fn send(&self, printed: &Printed) {
        if let Some(printer) = &self.printer {
            let text = serde_json::to_string(printed).expect("what is printed is JSON");
            // The other process may be gone, and the command ends with it.
            let _ = printer.send(text);
        }
    }

    /// Flushes stdout.
    ///
    /// # Errors
    /// When stdout did not take the whole result. A closed pipe, such as that of `head`, is not an error.
    pub(super) fn finish(&self) -> Result<(), Exit> {
        self.keep_failure(io::stdout().flush());
        match self.failure.get() {
            Some(error) => {
                let made = self.made.get().map(|run| {
                    format!("; the changes were made, and `mcpzip undo {run}` reverts them")
                });
                Err(Exit::failed(format!(
                    "the output cannot be written: {error}{}",
                    made.unwrap_or_default()
                )))
            }
            None => Ok(()),
        }
    }

    /// Notes that the changes of the run `run` were made.
    pub(super) fn made(&self, run: &str) {
        let _ = self.made.set(run.to_owned());
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
        if self.is_sent(|| Printed::Line(text.as_ref().to_owned())) {
            return;
        }
        let text = on_terminal(&with_options(text.as_ref()));
        self.print(&match columns(&console::Term::stdout()) {
            Some(width) => wrap(&text, width),
            None => text,
        });
    }

    /// Prints a line of the result that begins with `head`. Continuation lines are aligned with `body`.
    pub(super) fn row(&self, head: impl AsRef<str>, body: impl AsRef<str>) {
        let row = || Printed::Row(head.as_ref().to_owned(), body.as_ref().to_owned());
        if self.is_sent(row) {
            return;
        }
        let shown = |text: &str| on_terminal(&with_options(text));
        let (head, body) = (shown(head.as_ref()), shown(body.as_ref()));
        self.print(&match columns(&console::Term::stdout()) {
            Some(width) => wrap_row(&head, &body, width),
            None => head + &body,
        });
    }

    /// Prints a tool's answer without wrapping. A terminal gets its control characters escaped, colours included; anything else gets it
    /// as it is.
    pub(super) fn answer(&self, text: &str) {
        if self.is_sent(|| Printed::Answer(text.to_owned())) {
            return;
        }
        match io::stdout().is_terminal() {
            true => self.print(&printable_lines(text)),
            false => self.print(text),
        }
    }

    /// Prints text without wrapping, such as a diff or a script.
    pub(super) fn verbatim(&self, text: impl AsRef<str>) {
        if self.is_sent(|| Printed::Verbatim(text.as_ref().to_owned())) {
            return;
        }
        self.print(&on_terminal(text.as_ref()));
    }

    /// Prints a result that is JSON already.
    pub(super) fn raw_json(&self, json: &str) {
        if self.is_sent(|| Printed::Json(json.to_owned())) {
            return;
        }
        self.print(&printable_json(json));
    }

    /// Prints one of many results at once, as a line of JSON. Returns false if there is no reader any more.
    pub(super) fn stream_json(&self, json: &str) -> bool {
        let mut stdout = io::stdout().lock();
        let written = writeln!(stdout, "{}", printable_json(json)).and_then(|()| stdout.flush());
        let is_read = written.is_ok();
        self.keep_failure(written);
        is_read
    }

    fn print(&self, text: &str) {
        let print = || writeln!(io::stdout().lock(), "{text}");
        let written = above_indicators(print);
        if written.is_err() {
            self.is_lost.store(true, Ordering::Relaxed);
        }
        self.keep_failure(written);
    }

    /// Whether there is still a reader of stdout: everything was written, and no reader has closed its end.
    pub(super) fn has_reader(&self) -> bool {
        !self.is_lost.load(Ordering::Relaxed) && !is_closed(&io::stdout())
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
        self.print_line(&format!("{label} {}", exit.for_terminal()));
    }

    /// Prints an error in the command line, which has an end of line.
    pub(super) fn rejection(&self, error: &clap::Error) -> io::Result<()> {
        let text = error.render();
        let text = match console::colors_enabled_stderr() {
            true => text.ansi().to_string(),
            false => text.to_string(),
        };
        write!(io::stderr().lock(), "{}", wrapped(&text))
    }

    /// Prints a dimmed message to stderr.
    pub(super) fn note(&self, text: &str) {
        if self.is_sent(|| Printed::Note(text.to_owned())) {
            return;
        }
        self.print_line(
            // None of it has a colour of its own.
            &console::style(printable_lines(text))
                .for_stderr()
                .dim()
                .to_string(),
        );
    }

    fn print_line(&self, text: &str) {
        print_on_stderr(&format!("{}\n", wrapped(text)));
    }

    /// Whether a person can answer questions.
    pub(super) fn can_ask(&self) -> bool {
        io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Asks a yes-or-no question. An empty answer and the end of input are no.
    ///
    /// # Errors
    /// When the answer cannot be read.
    pub(super) fn ask(&self, question: &str) -> io::Result<bool> {
        let mut err = io::stderr().lock();
        loop {
            write!(err, "{} ", asked(question))?;
            err.flush()?;
            let mut answer = String::new();
            if interruptible(|| io::stdin().read_line(&mut answer), interrupted)? == 0 {
                writeln!(err)?;
            }
            match answer.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "" | "n" | "no" => return Ok(false),
                _ => writeln!(err, "Please answer `y` or `n`; Enter alone is no.")?,
            }
        }
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
        if interruptible(|| io::stdin().read_line(&mut answer), interrupted)? == 0 {
            writeln!(err)?;
            let ended = "the input ended without an answer";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, ended));
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
        let line = interruptible(|| terminal.read_secure_line(), interrupted)?;
        Ok(line.trim().to_owned())
    }

    /// Prints a message to stderr in full colour.
    pub(super) fn notable(&self, text: &str) {
        if self.is_sent(|| Printed::Notable(text.to_owned())) {
            return;
        }
        self.print_line(&on_terminal(text));
    }

    /// Shows a progress indicator for each name, on a terminal only.
    pub(super) fn spinners(&self, names: &[String]) -> Spinners {
        let all = INDICATORS.clone();
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
        let what = what.into();
        if self.is_sent(|| Printed::Waiting(what.clone())) {
            return Spinner::There(Self {
                failure: self.failure.clone(),
                made: self.made.clone(),
                is_lost: self.is_lost.clone(),
                printer: self.printer.clone(),
                ..*self
            });
        }
        let bar = INDICATORS.add(ProgressBar::new_spinner());
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}")
            .expect("the template is well formed");
        bar.set_style(style);
        bar.set_message(printable(&what));
        bar.enable_steady_tick(Duration::from_millis(100));
        Spinner::Here(bar)
    }
}

/// Prints a line of the log, which has its end of line. A terminal shows a warning or an error once a minute, though each attempt
/// to connect writes it.
pub(super) fn log_line(line: &str) {
    static SHOWN: Mutex<VecDeque<(Instant, String)>> = Mutex::new(VecDeque::new());
    const PAUSE: Duration = Duration::from_secs(60);
    let is_fault = line.starts_with(" WARN") || line.starts_with("ERROR");
    if is_fault && io::stderr().is_terminal() {
        let mut shown = SHOWN.lock();
        shown.retain(|(at, _)| at.elapsed() < PAUSE);
        if shown.iter().any(|(_, known)| known == line) {
            return;
        }
        shown.truncate(LINES_KNOWN - 1);
        shown.push_front((Instant::now(), line.to_owned()));
    }
    print_on_stderr(&wrapped(line));
}

fn print_on_stderr(text: &str) {
    // A failure cannot be reported anywhere.
    let _ = above_indicators(|| io::stderr().lock().write_all(text.as_bytes()));
}

/// Prints while the progress indicators are away. They panic if their terminal is gone, and hold their lock then; the message
/// about the panic is printed here, too.
fn above_indicators<R>(print: impl FnOnce() -> R) -> R {
    thread_local! {
        static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
    }
    if IS_INSIDE.get() {
        return print();
    }
    if is_closed(&io::stderr()) {
        INDICATORS.set_draw_target(ProgressDrawTarget::hidden());
    }
    IS_INSIDE.set(true);
    let printed = INDICATORS.suspend(print);
    IS_INSIDE.set(false);
    printed
}

/// Whether the other end of a stream is closed, which is known before anything is written.
#[cfg(unix)]
fn is_closed(stream: &impl std::os::fd::AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::time::Timespec;
    let mut wanted = [PollFd::new(stream, PollFlags::empty())];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let ended = PollFlags::ERR | PollFlags::HUP;
    poll(&mut wanted, Some(&at_once)).is_ok() && wanted[0].revents().intersects(ended)
}

/// Elsewhere only a failed write shows it.
#[cfg(not(unix))]
fn is_closed<S>(_stream: &S) -> bool {
    false
}

/// A question with its answers, which stay on the line of its last word.
pub(super) fn asked(question: &str) -> String {
    wrapped(&format!("{question}\u{a0}[y/N]")).replace('\u{a0}', " ")
}

/// `text` as stderr shows it: wrapped on a terminal, with control characters escaped.
pub(super) fn wrapped(text: &str) -> String {
    let text = on_terminal(&with_options(text));
    match columns(&console::Term::stderr()) {
        Some(width) => wrap(&text, width),
        None => text,
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
        // Each for itself: clearing all would also clear the lines above of bars that are gone already.
        for bar in &self.bars {
            bar.finish_and_clear();
            self.all.remove(bar);
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        match self {
            Self::Here(bar) => bar.finish_and_clear(),
            Self::There(output) => {
                output.is_sent(|| Printed::Waited);
            }
        }
    }
}

/// Ends the process, because a signal came while a person was asked.
pub(super) fn interrupted() -> ! {
    // The cursor is behind the question. A terminal that is gone needs no line.
    let _ = writeln!(io::stderr());
    std::process::exit(i32::from(Exit::interrupted_with("interrupted").code()))
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
