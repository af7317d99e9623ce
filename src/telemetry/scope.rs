//! The log of one runner in another program.

use std::any::Any;
use std::io;
use std::sync::{Arc, Weak};

use tracing::callsite::{Callsite, Identifier};
use tracing::field::{FieldSet, Value};
use tracing::level_filters::LevelFilter;
use tracing::metadata::Kind;
use tracing::subscriber::{Interest, NoSubscriber};
use tracing::{Dispatch, Event, Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format;
use tracing_subscriber::layer::SubscriberExt as _;

use super::known::Known;
use super::lines::Lines;
use super::{wanted, written};
use crate::shutdown::{self, LogLines};

/// The log of a runner in another program. Its lines are events of that program's subscriber, without the secrets of the
/// runner's own configuration.
pub(crate) struct Scope {
    known: Known,
    log: Dispatch,
}

impl Scope {
    /// Creates the log of a runner in a program with this subscriber.
    pub(crate) fn new(program: &Dispatch) -> Arc<Self> {
        Arc::new_cyclic(|scope: &Weak<Self>| Self {
            known: Known::default(),
            log: log(program, scope),
        })
    }
}

fn log(program: &Dispatch, scope: &Weak<Scope>) -> Dispatch {
    if program.is::<NoSubscriber>() {
        return Dispatch::none();
    }
    let format = format()
        .with_ansi(false)
        .with_target(false)
        .with_level(false);
    let lines = tracing_subscriber::fmt::layer()
        .event_format(Lines {
            format: format.without_time(),
            timer: (),
        })
        .with_writer(Program {
            subscriber: program.clone(),
            scope: scope.clone(),
        });
    let wanted = wanted(LevelFilter::current());
    Dispatch::new(tracing_subscriber::registry().with(wanted).with(lines))
}

impl LogLines for Scope {
    fn is_wanted(&self, _: Level) -> bool {
        false
    }

    fn line(&self, _: Level, _: &str) {}

    fn configure(&self, _: Option<LevelFilter>) {}

    fn dispatch(&self) -> Option<Dispatch> {
        Some(self.log.clone())
    }

    fn state(&self) -> Option<&(dyn Any + Send + Sync)> {
        Some(&self.known)
    }
}

/// Makes events of the other program from a runner's lines.
struct Program {
    subscriber: Dispatch,
    scope: Weak<Scope>,
}

/// An event to be.
struct ProgramLine<'a> {
    program: &'a Program,
    level: Level,
}

impl<'a> MakeWriter<'a> for Program {
    type Writer = ProgramLine<'a>;

    fn make_writer(&'a self) -> ProgramLine<'a> {
        ProgramLine {
            program: self,
            level: Level::TRACE,
        }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> ProgramLine<'a> {
        ProgramLine {
            program: self,
            level: *metadata.level(),
        }
    }
}

impl io::Write for ProgramLine<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // A thread outside the runner's tasks has its log, but not its secrets.
        let Some(scope) = self.program.scope.upgrade() else {
            return Ok(line.len());
        };
        let text = shutdown::for_log_lines(scope, || written(line));
        let text = text.trim_end();
        forward(&self.program.subscriber, self.level, text);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An event of the program with a line of a runner as its message. A macro would ask for the current subscriber, which is
/// the runner's own while it writes the line.
struct LineEvent {
    metadata: Metadata<'static>,
}

impl LineEvent {
    const fn new(own: &'static Self, level: Level) -> Self {
        let fields = FieldSet::new(&["message"], Identifier(own));
        Self {
            metadata: Metadata::new(
                "line",
                "mcpzip",
                level,
                None,
                None,
                None,
                fields,
                Kind::EVENT,
            ),
        }
    }
}

impl Callsite for LineEvent {
    fn set_interest(&self, _: Interest) {}

    fn metadata(&self) -> &Metadata<'_> {
        &self.metadata
    }
}

static ERROR: LineEvent = LineEvent::new(&ERROR, Level::ERROR);
static WARN: LineEvent = LineEvent::new(&WARN, Level::WARN);
static INFO: LineEvent = LineEvent::new(&INFO, Level::INFO);
static DEBUG: LineEvent = LineEvent::new(&DEBUG, Level::DEBUG);
static TRACE: LineEvent = LineEvent::new(&TRACE, Level::TRACE);

/// Sends a line to the program's subscriber.
fn forward(program: &Dispatch, level: Level, text: &str) {
    let metadata = match level {
        Level::ERROR => &ERROR.metadata,
        Level::WARN => &WARN.metadata,
        Level::INFO => &INFO.metadata,
        Level::DEBUG => &DEBUG.metadata,
        Level::TRACE => &TRACE.metadata,
    };
    let Some(message) = metadata.fields().field("message") else {
        return;
    };
    if program.enabled(metadata) {
        let text = format_args!("{text}");
        let values = [(&message, Some(&text as &dyn Value))];
        program.event(&Event::new(metadata, &metadata.fields().value_set(&values)));
    }
}
