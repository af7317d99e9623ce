//! The daemon's own lines in the audit log: its start and end, its sessions, and the orders of the control interface.
//!
//! A daemon has no configuration of its own: the settings are those of the newest session that has a log. A session without one does not
//! end the log of the others.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;

use super::control::Ordered;
use super::message::Session;
use crate::audit::{Audit, Directories, Event, Kind, Outcome};
use crate::config::{AuditCopies, AuditOptions, Config};
use crate::shutdown::Tasks;

#[derive(Debug)]
pub(super) struct Records {
    state_dir: PathBuf,
    tasks: Tasks,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: Option<Kept>,
    /// The open sessions that have a log.
    recording: BTreeSet<String>,
    /// Whether the start of the daemon has its line.
    has_start: bool,
}

/// The log, and the settings that it was opened with.
#[derive(Debug)]
struct Kept {
    options: AuditOptions,
    copies: AuditCopies,
    audit: Arc<Audit>,
}

impl Records {
    pub(super) fn new(state_dir: PathBuf, tasks: Tasks) -> Self {
        Self {
            state_dir,
            tasks,
            state: Mutex::default(),
        }
    }

    /// Uses the settings of a session. The first line is the start of the daemon.
    pub(super) fn configure(&self, session: &str, config: &Config) {
        let mut state = self.state.lock();
        if !config.audit.is_on {
            state.recording.remove(session);
            if state.recording.is_empty() {
                state.kept = None;
            }
            return;
        }
        state.recording.insert(session.to_owned());
        let is_same =
            |kept: &Kept| kept.options == config.audit && kept.copies == config.audit_copies;
        if !state.kept.as_ref().is_some_and(is_same) {
            // Nothing reads the daemon's stdout, but a session has the same setting, and its stdout belongs to the client.
            let is_stdout_free = Arc::new(AtomicBool::new(false));
            state.kept = Some(Kept {
                options: config.audit,
                copies: config.audit_copies.clone(),
                audit: Audit::start(
                    Directories::below(&self.state_dir),
                    config.audit,
                    &config.audit_copies,
                    &is_stdout_free,
                    None,
                    &self.tasks,
                ),
            });
        }
        let is_first = !std::mem::replace(&mut state.has_start, true);
        drop(state);
        if is_first {
            let detail = format!("the daemon runs, process {}", std::process::id());
            self.note(Kind::Daemon, |event| event.detail = Some(&detail));
        }
    }

    pub(super) fn opened(&self, session: &Session, config: &Config) {
        self.configure(&session.id, config);
        let detail = match session.generation {
            0 => format!("opened by process {}", session.process),
            generation => format!(
                "taken over from a daemon that ended, with process {}; generation {generation}",
                session.process
            ),
        };
        self.note(Kind::Session, |event| {
            event.session = Some(&session.id);
            event.directory = Some(&session.directory);
            event.detail = Some(&detail);
        });
    }

    pub(super) fn closed(&self, session: &str) {
        self.note(Kind::Session, |event| {
            event.session = Some(session);
            event.detail = Some("closed");
        });
        self.state.lock().recording.remove(session);
    }

    pub(super) fn ordered(&self, ordered: &Ordered) {
        let process = ordered.process;
        let process = process.map_or_else(|| "unknown".to_owned(), |process| process.to_string());
        let detail = format!(
            "{} by the control interface, process {process}",
            ordered.order
        );
        self.note(Kind::Daemon, |event| {
            event.session = ordered.session.as_deref();
            event.server = ordered.server.as_deref();
            event.detail = Some(&detail);
        });
    }

    /// The end of the daemon.
    pub(super) async fn end(&self) {
        let detail = format!("the daemon ends, process {}", std::process::id());
        self.note(Kind::Daemon, |event| event.detail = Some(&detail));
        let audit = self.state.lock().kept.take().map(|kept| kept.audit);
        if let Some(audit) = audit {
            audit.sync();
            audit.flush().await;
        }
    }

    fn note<'a>(&self, kind: Kind, fill: impl FnOnce(&mut Event<'a>)) {
        let audit = self
            .state
            .lock()
            .kept
            .as_ref()
            .map(|kept| kept.audit.clone());
        let Some(audit) = audit else {
            return;
        };
        let mut event = Event::new(kind, Outcome::Ok);
        fill(&mut event);
        if let Err(error) = audit.record(&event) {
            tracing::error!(%error, "an event of the daemon is not in the audit log");
        }
    }
}
