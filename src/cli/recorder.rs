//! Events of commands in the audit log: logins, and edits of the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use super::output::Output;
use crate::audit::{Audit, Directories, Event, Kind, Outcome};
use crate::config::{Config, Environment, LARGEST_FILE, Paths};
use crate::files::read_regular;
use crate::shutdown::Tasks;
use crate::tool::QualifiedName;

/// The session of the user at a terminal.
const SESSION: &str = "command-line";

/// Writes events as the configuration says.
pub(super) struct Recorder {
    config: Config,
    state_dir: PathBuf,
}

impl Recorder {
    #[must_use]
    pub(super) fn new(config: Config, paths: &Paths) -> Self {
        let state_dir = paths.state_dir.clone();
        Self { config, state_dir }
    }

    /// Writes an event. One that cannot be written is reported: what it is about was done already.
    pub(super) async fn note(
        &self,
        (kind, outcome): (Kind, Outcome),
        server: Option<&str>,
        detail: &str,
        output: &Output,
    ) {
        let event = Event {
            server,
            detail: Some(detail),
            ..Event::new(kind, outcome)
        };
        self.write(event, output).await;
    }

    /// Writes that the person at the terminal did not agree to a call about which `rule` asks.
    pub(super) async fn note_refused_call(
        &self,
        name: &QualifiedName,
        rule: Option<&str>,
        output: &Output,
    ) {
        let event = Event {
            server: Some(name.server.as_str()),
            tool: Some(name.tool.as_str()),
            rule,
            detail: Some("the call was not agreed to"),
            ..Event::new(Kind::Refusal, Outcome::Refused)
        };
        self.write(event, output).await;
    }

    async fn write(&self, event: Event<'_>, output: &Output) {
        if !self.config.audit.is_on {
            return;
        }
        let directory = std::env::current_dir().ok();
        let event = Event {
            session: Some(SESSION),
            directory: directory.as_deref(),
            ..event
        };
        let (tasks, is_stdout_free) = (Tasks::new(), Arc::default());
        let directories = Directories::below(&self.state_dir);
        let (options, copies) = (self.config.audit, &self.config.audit_copies);
        let audit = Audit::start(directories, options, copies, &is_stdout_free, None, &tasks);
        if let Err(error) = audit.record(&event) {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            let cause = cause.unwrap_or_default();
            output.notable(&format!("this is not in the audit log: {error} ({cause})"));
        }
        tasks.finish().await;
        audit.sync();
        audit.flush().await;
    }
}

/// The configuration before a command that may edit it.
pub(super) struct Before {
    config: Option<Config>,
    text: Option<String>,
}

impl Before {
    #[must_use]
    pub(super) fn of(paths: &Paths, environment: &Environment) -> Self {
        let text = text_of(paths);
        let parsed = text
            .as_deref()
            .and_then(|text| Config::parse(text, &paths.config_file, environment).ok());
        // A log that the edit switches off has its last line about that.
        let config = parsed.filter(|config| config.audit.is_on);
        Self { config, text }
    }

    /// Writes an event if the file is another one now.
    pub(super) async fn note_edit(self, paths: &Paths, environment: &Environment, output: &Output) {
        let text = text_of(paths);
        if text == self.text {
            return;
        }
        let now = text.and_then(|text| Config::parse(&text, &paths.config_file, environment).ok());
        let detail = match (&self.config, &now) {
            (Some(before), Some(now)) => now.difference(before),
            (None, _) => "the audit log is new".to_owned(),
            (_, None) => "the file cannot be read any more".to_owned(),
        };
        let Some(config) = self.config.or(now) else {
            return;
        };
        let detail = format!("by a command: {detail}");
        let event = (Kind::Configuration, Outcome::Ok);
        let recorder = Recorder::new(config, paths);
        recorder.note(event, None, &detail, output).await;
    }
}

/// The configuration file, if it can be read.
fn text_of(paths: &Paths) -> Option<String> {
    let bytes = read_regular(&paths.config_file, LARGEST_FILE).ok()?;
    String::from_utf8(bytes).ok()
}
