//! The calls in the audit log: one event each, written before the answer is sent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::RwLock;

use crate::audit::{Audit, Directories, Event, Kind, Outcome};
use crate::catalog::Tool;
use crate::config::{AuditOptions, Config};
use crate::proxy::answers::reply::is_error;
use crate::proxy::view::View;
use crate::proxy::{Caller, Failure, Reply};
use crate::shutdown::Tasks;
use crate::tool::ServerName;
use crate::upstream::required_input;

/// The audit log, if the configuration has one.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The directory that contains it; `None` keeps none.
    state_dir: Option<PathBuf>,
    audit: RwLock<Option<(AuditOptions, Arc<Audit>)>>,
    tasks: Tasks,
}

/// The event of a call in progress.
pub(super) struct CallEvent<'a> {
    audit: Arc<Audit>,
    /// The tool's name, as written by the agent.
    written: &'a str,
    arguments: &'a str,
    caller: Option<&'a Caller>,
    directory: Option<PathBuf>,
    start: Instant,
}

impl Ledger {
    pub(super) fn new(state_dir: Option<PathBuf>, config: &Config, tasks: Tasks) -> Arc<Self> {
        let ledger = Self {
            state_dir,
            audit: RwLock::default(),
            tasks,
        };
        ledger.configure(config);
        Arc::new(ledger)
    }

    /// Applies an edited configuration, which is an event itself.
    pub(super) fn configure(&self, config: &Config) {
        let mut audit = self.audit.write();
        let Some(state_dir) = self.state_dir.as_deref().filter(|_| config.audit.is_on) else {
            *audit = None;
            return;
        };
        match &*audit {
            Some((options, audit)) if *options == config.audit => {
                let event = Event::new(Kind::Configuration, Outcome::Ok);
                if let Err(error) = audit.record(&event) {
                    tracing::error!(%error, "a change of the configuration is not in the audit log");
                }
            }
            _ => {
                let directories = Directories::below(state_dir);
                let new = Audit::new(directories, config.audit);
                new.start(&self.tasks);
                *audit = Some((config.audit, new));
            }
        }
    }

    /// Syncs the log to disk.
    pub(super) fn close(&self) {
        if let Some((_, audit)) = &*self.audit.read() {
            audit.sync();
        }
    }

    /// The log; `None` if there is none.
    pub(super) fn audit(&self) -> Option<Arc<Audit>> {
        self.audit.read().as_ref().map(|(_, audit)| audit.clone())
    }

    /// Writes an event that is not a call. A failure is counted and prevents the next call.
    pub(crate) fn note(
        &self,
        kind: Kind,
        outcome: Outcome,
        server: &ServerName,
        tool: Option<&str>,
        detail: &str,
    ) {
        let Some(audit) = self.audit() else {
            return;
        };
        let mut event = Event::new(kind, outcome);
        event.server = Some(server.as_str());
        event.tool = tool;
        event.detail = Some(detail);
        if let Err(error) = audit.record(&event) {
            tracing::error!(%error, "an event is not in the audit log");
        }
    }
}

impl<'a> CallEvent<'a> {
    /// Begins the event of a call of the tool that the agent wrote as `written`.
    ///
    /// # Errors
    /// When the log cannot be written; the call must then not be made.
    pub(super) fn begin(
        audit: Arc<Audit>,
        caller: Option<&'a Caller>,
        written: &'a str,
        arguments: &'a str,
    ) -> Result<Self, Failure> {
        audit.ready().map_err(|error| unwritten(written, &error))?;
        let workspace = caller.map(|caller| caller.client.workspace());
        Ok(Self {
            audit,
            written,
            arguments,
            caller,
            directory: workspace.and_then(|workspace| workspace.first().cloned()),
            start: Instant::now(),
        })
    }

    /// Writes the event of a call with its outcome; `tool` is the tool that `view` has under the name.
    ///
    /// # Errors
    /// When it cannot be written; the answer must then not be sent.
    pub(super) fn end(
        &self,
        view: &View,
        tool: Option<&Tool>,
        outcome: Result<&Reply, &Failure>,
    ) -> Result<(), Failure> {
        let (kind, ended, received) = match outcome {
            Ok(reply) => answered(reply),
            Err(failure) => failed(failure),
        };
        let mut event = Event::new(kind, ended);
        let identity = self.caller.map(|caller| caller.client.identity());
        let (session, software) = match &identity {
            Some(identity) => (identity.session.as_str(), identity.software.as_ref()),
            // A user at a terminal.
            None => ("command-line", None),
        };
        event.session = Some(session);
        event.client = software.map(|(name, version)| (name.as_str(), version.as_str()));
        event.directory = self.directory.as_deref();
        let failure = outcome.err();
        let name = tool.map(Tool::qualified_name);
        let name = name.as_ref().or_else(|| failure?.tool());
        event.server = name.map(|name| name.server.as_str());
        event.tool = Some(name.map_or(self.written, |name| name.tool.as_str()));
        let rule = match (failure.and_then(Failure::rule), tool, name) {
            (Some(rule), ..) => Some(rule.to_owned()),
            (None, Some(tool), Some(name)) => view.judge(tool, name, self.arguments).1,
            _ => None,
        };
        event.rule = rule.as_deref();
        event.elapsed = Some(self.start.elapsed());
        event.sent = Some(self.arguments.len());
        event.received = received;
        event.arguments = Some(self.arguments);
        self.audit
            .record(&event)
            .map_err(|error| unwritten(self.written, &error))
    }
}

/// The outcome of an answer, and its size in bytes.
fn answered(reply: &Reply) -> (Kind, Outcome, Option<usize>) {
    let (outcome, received) = match reply {
        Reply::Result(body) | Reply::Relayed(body) | Reply::RelayedContent(body) => {
            let outcome = if required_input(body).is_some() {
                Outcome::Waiting
            } else if is_error(body) {
                Outcome::Error
            } else {
                Outcome::Ok
            };
            (outcome, body.len())
        }
        Reply::RelayedError(body) => (Outcome::Failed, body.len()),
        Reply::Error { .. } => (Outcome::Failed, 0),
        Reply::Ended { .. } => (Outcome::Ok, 0),
    };
    (Kind::Call, outcome, Some(received))
}

/// The outcome of a call without a result.
fn failed(failure: &Failure) -> (Kind, Outcome, Option<usize>) {
    let (kind, outcome) = match failure {
        Failure::Consent { .. } => (Kind::Refusal, Outcome::Waiting),
        Failure::Withheld { .. } | Failure::NoConsent { .. } => (Kind::Refusal, Outcome::Refused),
        Failure::Call { .. } | Failure::Refused { .. } | Failure::Malformed { .. } => {
            (Kind::Call, Outcome::Failed)
        }
        _ => (Kind::Refusal, Outcome::Failed),
    };
    (kind, outcome, None)
}

fn unwritten(name: &str, error: &crate::audit::Error) -> Failure {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let cause = cause.unwrap_or_default();
    Failure::Unlogged {
        name: name.to_owned(),
        cause: format!("{error} ({cause})"),
    }
}
