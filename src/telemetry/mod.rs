//! Destinations of log lines: stderr (stdout belongs to the protocol), the main log, and the log of each server that a
//! line names.
//!
//! Logging is global in `tracing`, so this module has global state: the directory of the logs and the secrets, which
//! are known only after the first lines. Every line passes the masker, including those of libraries. If another
//! program uses the library, each runner has a [`Scope`] of its own instead.

pub(crate) mod collector;
mod file;
mod known;
mod lines;
pub(crate) mod metrics;
mod scope;
mod tail;
pub(crate) mod trace;
mod withheld;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format;
use tracing_subscriber::fmt::format::DefaultFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{FormattedFields, MakeWriter};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, Registry};

use crate::config::LogFormat;
use crate::secret::Masker;
use crate::shutdown::{self, LogLines};
use crate::tool::{ServerName, is_hidden};

pub(crate) use file::{Limits, LogFile};
use lines::Lines;
pub(crate) use scope::Scope;
pub(crate) use tail::{Follow, tail};
pub(crate) use withheld::{is_withheld, withhold};

/// The name of the main log; no server can have it.
pub(crate) const MAIN: &str = "mcpzip";

/// The beginning of our own lines in a server's log, which also has the server's stderr.
pub(crate) const OWN_LINE: &str = "[mcpzip] ";

/// The part of a message that is logged, in bytes. A wider range is masked, so that the cut never leaves part of a
/// secret.
const SHOWN: usize = 4 * 1024;
const MASKED: usize = 64 * 1024;

const TIME: &[BorrowedFormatItem<'_>] =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

static LEVEL: OnceLock<Level> = OnceLock::new();
static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
static PRINTER: OnceLock<fn(&str)> = OnceLock::new();
static FILES: Mutex<Option<HashMap<String, LogFile>>> = Mutex::new(None);

/// Starts logging to stderr at a level, and to files at `info` once their directory is known. Libraries, which know no
/// secrets to hide, log warnings at most. Panics are logged like other errors. The level is `asked`, otherwise that of
/// [`configure`], otherwise `usual`.
pub(crate) fn start(asked: Option<LevelFilter>, usual: LevelFilter) {
    let level = asked.unwrap_or(usual);
    let (on_stderr, shown) = reload::Layer::new(wanted(level));
    let (in_main, main) = reload::Layer::new(wanted(kept(level)));
    let (in_servers, servers) = reload::Layer::new(wanted(kept(level)));
    let (in_sessions, sessions) = reload::Layer::new(wanted(LevelFilter::OFF));
    let lines = || format().with_ansi(false).with_target(false);
    let layers = vec![
        tracing_subscriber::fmt::layer()
            .event_format(Lines {
                format: lines().without_time(),
                timer: (),
            })
            .with_writer(Stderr)
            .with_filter(on_stderr)
            .boxed(),
        tracing_subscriber::fmt::layer()
            .event_format(Lines {
                format: lines().with_timer(Stamp),
                timer: Stamp,
            })
            .with_writer(MainLog)
            .with_filter(in_main)
            .boxed(),
        ServerLogs.with_filter(in_servers).boxed(),
        tracing_subscriber::fmt::layer()
            .event_format(Lines {
                format: lines().without_time(),
                timer: (),
            })
            .with_writer(Sessions)
            .with_filter(in_sessions)
            .boxed(),
    ];
    // Fails only if a log was started already, for example by a test; that one goes on.
    if tracing_subscriber::registry()
        .with(layers)
        .try_init()
        .is_ok()
    {
        let _ = LEVEL.set(Level {
            asked,
            usual,
            shown,
            kept: [main, servers],
            sessions,
            of_sessions: Mutex::new(LevelFilter::OFF),
        });
        hear_panics(level);
    }
}

/// Sets the configured level. The level asked for at the start takes precedence.
pub(crate) fn configure(level: Option<LevelFilter>) {
    if let Some(lines) = shutdown::log_lines() {
        lines.configure(level);
    }
    let Some(now) = LEVEL.get().filter(|now| now.asked.is_none()) else {
        return;
    };
    let level = level.unwrap_or(now.usual);
    // The handles live as long as the process.
    let _ = now.shown.reload(wanted(level));
    now.kept
        .iter()
        .for_each(|kept_now| _ = kept_now.reload(wanted(kept(level))));
    hear_panics(level);
}

/// Passes lines up to `level` to the receivers of the tasks that they come from, from now on. A lower level than before
/// changes nothing.
pub(crate) fn pass_on(level: LevelFilter) {
    let Some(now) = LEVEL.get() else {
        return;
    };
    let mut passed = now.of_sessions.lock();
    if level > *passed {
        *passed = level;
        // The handle lives as long as the process.
        let _ = now.sessions.reload(wanted(level));
    }
}

/// The level that the user asked for at the start, by an argument or a variable.
pub(crate) fn asked_level() -> Option<LevelFilter> {
    LEVEL.get().and_then(|level| level.asked)
}

/// The level for this program in a filter of `RUST_LOG`, such as `info,mcpzip=debug`.
pub(crate) fn level_of_filter(filter: &str) -> Option<LevelFilter> {
    let level = |text: &str| text.trim().to_lowercase().parse::<LevelFilter>().ok();
    let (mut own, mut all) = (None, None);
    for directive in filter.split(',') {
        match directive.split_once('=') {
            Some((target, text)) if target.trim() == "mcpzip" => own = level(text),
            Some(_) => {}
            None if directive.trim() == "mcpzip" => own = Some(LevelFilter::TRACE),
            None => all = level(directive).or(all),
        }
    }
    own.or(all)
}

fn wanted(level: LevelFilter) -> Targets {
    Targets::new()
        .with_target("mcpzip", level)
        .with_default(level.min(LevelFilter::WARN))
}

fn kept(level: LevelFilter) -> LevelFilter {
    if level == LevelFilter::OFF {
        level
    } else {
        level.max(LevelFilter::INFO)
    }
}

/// Without logging, a panic is printed to stderr as usual.
fn hear_panics(level: LevelFilter) {
    if level == LevelFilter::OFF {
        drop(std::panic::take_hook());
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = std::backtrace::Backtrace::capture();
        tracing::error!("a fault inside mcpzip: {panic}\n{backtrace}");
    }));
}

/// Prints lines of text on stderr by `printer` from now on.
pub(crate) fn print_by(printer: fn(&str)) {
    // The first one counts.
    let _ = PRINTER.set(printer);
}

/// Prints a finished line on stderr. JSON stays as it is.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print(line: &str) -> io::Result<()> {
    match PRINTER.get() {
        Some(printer) if !line.starts_with('{') => printer(line),
        _ => io::stderr().lock().write_all(line.as_bytes())?,
    }
    Ok(())
}

/// Starts to keep lines in files in `directory` as well.
pub(crate) fn keep_in(directory: &Path) {
    // The first one counts.
    let _ = DIRECTORY.set(directory.to_owned());
}

/// Writes lines in this form from now on, on stderr and in the main log. A server's log has the server's own lines, too, and
/// stays text.
pub(crate) fn write_as(format: LogFormat) {
    lines::set_json(format == LogFormat::Json);
}

/// Keeps log files within these limits from now on, and removes what is older.
pub(crate) fn limit_files(limits: Limits) {
    /// The interval at which a process that sets the same limits again and again looks for old files.
    const INTERVAL: Duration = Duration::from_secs(60 * 60);
    static LAST: Mutex<Option<(Limits, Instant)>> = Mutex::new(None);
    file::set_limits(limits);
    let is_recent = |(known, at): &(Limits, Instant)| *known == limits && at.elapsed() < INTERVAL;
    let mut last = LAST.lock();
    if last.as_ref().is_some_and(is_recent) {
        return;
    }
    *last = Some((limits, Instant::now()));
    if let Some(directory) = DIRECTORY.get() {
        file::remove_old(directory, limits.oldest);
    }
}

/// Hides these secrets in every line from now on. Earlier ones stay hidden: a server that is ending may still write
/// them.
pub(crate) fn hide(masker: &Masker) {
    known::known(|known| {
        let mut known = known.masker.write();
        *known = Some(match &*known {
            Some(known) => known.and(masker),
            None => masker.clone(),
        });
    });
}

/// `text` without the known secrets.
pub(crate) fn masked(text: &str) -> Cow<'_, str> {
    known::known(|known| match &*known.masker.read() {
        Some(masker) => masker.mask(text),
        None => Cow::Borrowed(text),
    })
}

/// Like [`masked`], for a text that was cut off: it also hides a secret that begins at the end.
pub(crate) fn masked_cut(text: &str) -> String {
    known::known(|known| match &*known.masker.read() {
        Some(masker) => masker.mask_cut(text),
        None => text.to_owned(),
    })
}

/// The length of the longest secret that is hidden, in bytes.
pub(crate) fn longest_secret() -> usize {
    known::known(|known| known.masker.read().as_ref().map_or(0, Masker::longest))
}

/// A line as it is written: secrets masked, and control and invisible characters escaped, because a server's text may
/// be in it.
fn written(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    masked(&line)
        .chars()
        .fold(String::with_capacity(line.len()), |mut written, c| {
            if is_hidden(c) || c.is_control() && !matches!(c, '\n' | '\t') {
                written.extend(c.escape_unicode());
            } else {
                written.push(c);
            }
            written
        })
}

/// Logs a message at `trace`, shortened if it is long. Without a server it is a client's message.
pub(crate) fn frame(server: Option<&ServerName>, direction: &str, message: &[&[u8]]) {
    if tracing::enabled!(tracing::Level::TRACE) {
        let length: usize = message.iter().map(|part| part.len()).sum();
        let mut start = Vec::with_capacity(length.min(MASKED));
        for part in message {
            start.extend_from_slice(&part[..part.len().min(MASKED - start.len())]);
        }
        let text = String::from_utf8_lossy(&start).into_owned();
        let text = if length > MASKED {
            masked_cut(&text)
        } else {
            masked(&text).into_owned()
        };
        let shown = text
            .char_indices()
            .map(|(at, _)| at)
            .find(|at| *at >= SHOWN)
            .map_or(text.as_str(), |end| &text[..end]);
        match server {
            Some(server) => tracing::trace!(%server, length, "{direction} {shown}"),
            None => tracing::trace!(length, "{direction} {shown}"),
        }
    }
}

/// Appends to the log of this name. A failed write is dropped, because there is nowhere to report it.
fn append(name: &str, line: &str) {
    let Some(directory) = DIRECTORY.get() else {
        return;
    };
    let mut files = files();
    let files = files.get_or_insert_default();
    let file = files
        .entry(name.to_owned())
        .or_insert_with(|| LogFile::new(directory.join(format!("{name}.log"))));
    let _ = file.append(line.as_bytes());
}

fn files() -> MutexGuard<'static, Option<HashMap<String, LogFile>>> {
    // An append that panicked has left the map whole.
    FILES.lock()
}

/// The current level, and the handle that changes it.
struct Level {
    /// The level that the user asked for at the start.
    asked: Option<LevelFilter>,
    usual: LevelFilter,
    shown: reload::Handle<Targets, Registry>,
    kept: [reload::Handle<Targets, Registry>; 2],
    /// Of the lines that are passed to sessions, with the current level.
    sessions: reload::Handle<Targets, Registry>,
    of_sessions: Mutex<LevelFilter>,
}

/// Stderr with secrets masked.
#[derive(Debug, Clone, Copy)]
struct Stderr;

/// The main log with secrets masked.
#[derive(Debug, Clone, Copy)]
struct MainLog;

/// Passes lines to the session that they concern, with secrets masked.
#[derive(Debug, Clone, Copy)]
struct Sessions;

/// The receiver of a line, if there is one.
struct SessionLine {
    lines: Option<Arc<dyn LogLines>>,
    level: tracing::Level,
}

/// Copies lines about a server to that server's log.
#[derive(Debug, Clone, Copy)]
struct ServerLogs;

/// The time and the process id, because several processes write to one log.
#[derive(Debug, Clone, Copy)]
struct Stamp;

impl io::Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        print(&written(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl io::Write for MainLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        append(MAIN, &written(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl io::Write for SessionLine {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(lines) = &self.lines {
            lines.line(self.level, &written(line));
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Sessions {
    type Writer = SessionLine;

    fn make_writer(&self) -> SessionLine {
        SessionLine {
            lines: None,
            level: tracing::Level::TRACE,
        }
    }

    fn make_writer_for(&self, metadata: &tracing::Metadata<'_>) -> SessionLine {
        let level = *metadata.level();
        let lines = shutdown::log_lines().filter(|lines| lines.is_wanted(level));
        SessionLine { lines, level }
    }
}

impl MakeWriter<'_> for Stderr {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

impl MakeWriter<'_> for MainLog {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

impl FormatTime for Stamp {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let now = OffsetDateTime::now_utc()
            .format(TIME)
            .map_err(|_| fmt::Error)?;
        write!(writer, "{now} {}", std::process::id())
    }
}

impl<S: Subscriber + for<'s> LookupSpan<'s>> Layer<S> for ServerLogs {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if DIRECTORY.get().is_none() {
            return;
        }
        let mut seen = Seen::default();
        event.record(&mut seen);
        // An invalid server name could lead to any path.
        let Some(server) = seen
            .server
            .filter(|server| ServerName::new(server).is_ok() && server != MAIN)
        else {
            return;
        };
        let mut line = OWN_LINE.to_owned();
        // Writing to memory cannot fail.
        let _ = Stamp.format_time(&mut Writer::new(&mut line));
        let _ = write!(line, " {:>5} ", event.metadata().level());
        for span in context
            .event_scope(event)
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            // The previous layer stored them.
            if let Some(fields) = span.extensions().get::<FormattedFields<DefaultFields>>() {
                let _ = write!(line, "{}{{{fields}}}: ", span.name());
            }
        }
        let _ = writeln!(line, "{}{}", seen.message, seen.fields);
        append(&server, &masked(&line));
    }
}

/// The fields of an event as text.
#[derive(Debug, Default)]
struct Seen {
    server: Option<String>,
    message: String,
    fields: String,
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to memory cannot fail.
        let _ = match field.name() {
            "server" => {
                self.server = Some(format!("{value:?}"));
                Ok(())
            }
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "server" => self.server = Some(value.to_owned()),
            _ => self.record_debug(field, &value),
        }
    }
}
