//! The calls in the audit log: one event each, written before the answer is sent.

mod request;

use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Instant;

use parking_lot::RwLock;

pub(super) use self::request::{Reached, RequestEvent};
use crate::audit::{Audit, Directories, Event, Kind, Outcome, Shipping, Written};
use crate::catalog::Tool;
use crate::config::{AuditCopies, AuditOptions, Config};
use crate::proxy::answers::reply::is_error;
use crate::proxy::failure::NoConsent;
use crate::proxy::view::View;
use crate::proxy::{Caller, Failure, Reply};
use crate::shutdown::Tasks;
use crate::store::Records;
use crate::tool::{QualifiedName, ServerName};
use crate::upstream::required_input;

/// The audit log, if the configuration has one.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// The directory that contains it; `None` keeps none.
    state_dir: Option<PathBuf>,
    audit: Arc<RwLock<Option<Kept>>>,
    /// The identity of all clients, if they have one. The log is then that of the run's first proxy, which configures and closes it.
    identity: Option<Arc<str>>,
    /// Whether copies of lines may go to stdout.
    is_stdout_free: Arc<AtomicBool>,
    /// The way of lines to the store of several replicas.
    shipping: Option<Arc<Shipping>>,
    tasks: Tasks,
}

/// The log, and the configuration that it was made for.
#[derive(Debug)]
struct Kept {
    options: AuditOptions,
    copies: AuditCopies,
    audit: Arc<Audit>,
}

/// A call from its beginning, for its event.
pub(super) struct CallEvent<'a> {
    audit: Arc<Audit>,
    view: &'a View,
    /// The tool as the agent wrote it.
    written: &'a str,
    arguments: &'a str,
    caller: Option<&'a Caller>,
    /// The method of a request about the task that the call became.
    about_task: Option<&'a str>,
    start: Instant,
}

/// The part of a call's event that is known before its outcome.
struct Prepared {
    line: String,
    rule: Option<String>,
}

impl Ledger {
    pub(super) fn new(
        state_dir: Option<PathBuf>,
        config: &Config,
        store: Option<Arc<dyn Records>>,
        tasks: Tasks,
    ) -> Arc<Self> {
        let ledger = Self {
            state_dir,
            audit: Arc::default(),
            identity: None,
            is_stdout_free: Arc::default(),
            shipping: store.map(Shipping::new),
            tasks,
        };
        ledger.configure(None, config);
        Arc::new(ledger)
    }

    /// This log, for the clients with an identity.
    pub(super) fn of_identity(&self, identity: &str) -> Arc<Self> {
        Arc::new(Self {
            state_dir: self.state_dir.clone(),
            audit: self.audit.clone(),
            identity: Some(identity.into()),
            is_stdout_free: self.is_stdout_free.clone(),
            shipping: self.shipping.clone(),
            tasks: self.tasks.clone(),
        })
    }

    /// Takes over a configuration. An edit of the one `before` it is an event, also one that switches the log off.
    pub(super) fn configure(&self, before: Option<&Config>, config: &Config) {
        if self.identity.is_some() {
            return;
        }
        let mut audit = self.audit.write();
        if let (Some(kept), Some(before)) = (&*audit, before) {
            let detail = config.difference(before);
            let mut event = Event::new(Kind::Configuration, Outcome::Ok);
            event.detail = Some(&detail);
            if let Err(error) = kept.audit.record(&event) {
                tracing::error!(%error, "a change of the configuration is not in the audit log");
            }
        }
        let Some(state_dir) = self.state_dir.as_deref().filter(|_| config.audit.is_on) else {
            *audit = None;
            return;
        };
        if let Some(kept) = &*audit
            && kept.options == config.audit
            && kept.copies == config.audit_copies
        {
            return;
        }
        *audit = Some(Kept {
            options: config.audit,
            copies: config.audit_copies.clone(),
            audit: Audit::start(
                Directories::below(state_dir),
                config.audit,
                &config.audit_copies,
                &self.is_stdout_free,
                self.shipping.clone(),
                &self.tasks,
            ),
        });
    }

    /// Lets copies of lines go to stdout, which nothing else uses.
    pub(super) fn free_stdout(&self) {
        self.is_stdout_free.store(true, Ordering::Relaxed);
    }

    /// Syncs what was written last, and sends the last copies.
    pub(super) async fn close(&self) {
        if self.identity.is_some() {
            return;
        }
        if let Some(audit) = self.audit() {
            audit.sync();
            audit.flush().await;
        }
    }

    /// The way of lines to the store; `None` if there is none.
    pub(super) fn shipping(&self) -> Option<&Arc<Shipping>> {
        self.shipping.as_ref()
    }

    /// Writes an event of the store.
    pub(super) fn note_store(&self, outcome: Outcome, detail: &str) {
        let Some(audit) = self.audit() else {
            return;
        };
        let mut event = Event::new(Kind::Store, outcome);
        event.detail = Some(detail);
        if let Err(error) = audit.record(&event) {
            tracing::error!(%error, "an event is not in the audit log");
        }
    }

    /// The log; `None` if there is none.
    pub(super) fn audit(&self) -> Option<Arc<Audit>> {
        self.audit.read().as_ref().map(|kept| kept.audit.clone())
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
        event.identity = self.identity.as_deref();
        event.server = Some(server.as_str());
        event.tool = tool;
        event.detail = Some(detail);
        if let Err(error) = audit.record(&event) {
            tracing::error!(%error, "an event is not in the audit log");
        }
    }
}

impl Ledger {
    /// Writes an event of a person who logs in, or of a client that acts for one.
    pub(crate) fn note_identity(&self, identity: &str, detail: &str) {
        let Some(audit) = self.audit() else {
            return;
        };
        let mut event = Event::new(Kind::Identity, Outcome::Ok);
        event.identity = Some(identity);
        event.detail = Some(detail);
        if let Err(error) = audit.record(&event) {
            tracing::error!(%error, "an event is not in the audit log");
        }
    }
}

impl Ledger {
    /// Writes an order of a person, before it is followed.
    pub(crate) fn note_order(
        &self,
        identity: &str,
        order: &str,
        server: Option<&str>,
    ) -> Result<(), crate::audit::Error> {
        let Some(audit) = self.audit() else {
            return Ok(());
        };
        audit.ready()?;
        let detail = format!("{order} in the window of the gateway");
        let mut event = Event::new(Kind::Daemon, Outcome::Ok);
        event.identity = Some(identity);
        event.server = server;
        event.detail = Some(&detail);
        audit.record(&event).map(drop)
    }
}

impl<'a> CallEvent<'a> {
    /// Begins the event of a call of the tool that the agent wrote as `written`.
    ///
    /// # Errors
    /// When the log cannot be written; the call must then not be made.
    pub(super) fn begin(
        audit: Arc<Audit>,
        view: &'a View,
        caller: Option<&'a Caller>,
        written: &'a str,
        arguments: &'a str,
    ) -> Result<Self, Failure> {
        audit
            .ready()
            .map_err(|error| unwritten(written, &error, false))?;
        Ok(Self {
            audit,
            view,
            written,
            arguments,
            caller,
            about_task: None,
            start: Instant::now(),
        })
    }

    /// The event of a request with this method about the task that the call became.
    pub(super) fn about_task(self, method: &'a str) -> Self {
        Self {
            about_task: Some(method),
            ..self
        }
    }

    /// Makes the call and writes its event before its answer is given. `tool` finds the tool that was called.
    ///
    /// The line is begun once the call waits for its server, so that the answer waits for little more than the write.
    ///
    /// # Errors
    /// When the call fails, or the event cannot be written; the answer must not be given then.
    pub(super) async fn record<T>(
        self,
        mut call: Pin<&mut impl Future<Output = Result<T, Failure>>>,
        tool: impl Fn() -> Option<Tool>,
        reply: impl Fn(&T) -> &Reply,
    ) -> Result<T, Failure> {
        let first = poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await;
        let (prepared, outcome) = match first {
            Poll::Ready(outcome) => (None, outcome),
            Poll::Pending => {
                let mut open = OpenEvent {
                    event: &self,
                    tool: &tool,
                    prepared: None,
                    is_answered: false,
                };
                // The request is in the outbox, and its task sends it first.
                give_way().await;
                open.prepared = tool().map(|tool| self.prepare(Some(&tool), None));
                let outcome = call.await;
                open.is_answered = true;
                (open.prepared.take(), outcome)
            }
        };
        let prepared = prepared.unwrap_or_else(|| {
            let named = outcome.as_ref().err().and_then(Failure::tool);
            self.prepare(tool().as_ref(), named)
        });
        let written = self.end(prepared, outcome.as_ref().map(reply))?;
        if written.is_some() {
            let committed = Box::pin(self.audit.committed(written)).await;
            committed.map_err(|error| unwritten(self.written, &error, true))?;
        }
        outcome
    }

    /// Writes the event of a call that is refused before it is begun. Returns the failure to answer with.
    pub(super) fn refuse(self, failure: Failure) -> Failure {
        let prepared = self.prepare(None, failure.tool());
        match self.end(prepared, Err(&failure)) {
            Ok(_) => failure,
            Err(unwritten) => unwritten,
        }
    }

    /// The line's beginning, and the rule that decides about the tool; `named` is the tool of a failure, which may be hidden.
    fn prepare(&self, tool: Option<&Tool>, named: Option<&QualifiedName>) -> Prepared {
        let identity = self.caller.map(|caller| caller.client.identity());
        let (session, software) = match &identity {
            Some(identity) => (identity.session.as_str(), identity.software.as_ref()),
            // A user at a terminal.
            None => ("command-line", None),
        };
        let person = self.caller.and_then(|caller| caller.client.person());
        let workspace = self.caller.map(|caller| caller.client.workspace());
        let own = tool.map(Tool::own_name);
        let name = own.as_ref().or(named);
        let mut event = Event::new(Kind::Call, Outcome::Ok);
        event.session = Some(session);
        event.client = software.map(|(name, version)| (name.as_str(), version.as_str()));
        event.identity = person;
        event.directory = workspace
            .as_ref()
            .and_then(|workspace| workspace.first())
            .map(PathBuf::as_path);
        let profile = profile_of(self.view);
        event.profile = profile.as_deref();
        event.server = name.map(|name| name.server.as_str());
        event.tool = Some(name.map_or(self.written, |name| name.tool.as_str()));
        event.sent = Some(self.arguments.len());
        event.arguments = Some(self.arguments);
        let rule = tool
            .zip(name)
            .and_then(|(tool, name)| self.view.judge(tool, name, self.arguments).1);
        Prepared {
            line: self.audit.prepare(&event),
            rule,
        }
    }

    /// Writes the event with its outcome, unless another process has it. Returns the line if it must be in the store.
    fn end(
        &self,
        prepared: Prepared,
        outcome: Result<&Reply, &Failure>,
    ) -> Result<Option<Written>, Failure> {
        let asked_elsewhere = |failure: &Failure| {
            matches!(
                failure,
                Failure::Consent {
                    is_asked_here: false,
                    ..
                }
            )
        };
        if outcome.is_err_and(asked_elsewhere) {
            return Ok(None);
        }
        let (kind, ended, received) = match outcome {
            Ok(reply) => answered(reply),
            Err(failure) => failed(failure),
        };
        let kind = match self.about_task {
            Some(_) if kind == Kind::Call => Kind::Task,
            _ => kind,
        };
        let mut event = Event::new(kind, ended);
        event.detail = match outcome {
            Ok(Reply::Task(_)) => Some("became a task"),
            _ => self.about_task,
        };
        let rule = outcome.err().and_then(Failure::rule);
        event.rule = rule.or(prepared.rule.as_deref());
        event.elapsed = Some(self.start.elapsed());
        event.received = received;
        self.audit
            .finish(prepared.line, &event)
            .map_err(|error| unwritten(self.written, &error, true))
    }
}

/// Lets the tasks run that are ready. Unlike tokio's `yield_now`, it does not ask the system for events first, which costs a call of it.
async fn give_way() {
    let mut is_back = false;
    poll_fn(|context| match std::mem::replace(&mut is_back, true) {
        true => Poll::Ready(()),
        false => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

/// A call that waits for its answer. If it is dropped before, its event says that it was cancelled.
struct OpenEvent<'e, 'a, T: Fn() -> Option<Tool>> {
    event: &'e CallEvent<'a>,
    tool: &'e T,
    prepared: Option<Prepared>,
    is_answered: bool,
}

impl<T: Fn() -> Option<Tool>> Drop for OpenEvent<'_, '_, T> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let prepared = self.prepared.take();
        let prepared = prepared.unwrap_or_else(|| self.event.prepare((self.tool)().as_ref(), None));
        let mut event = Event::new(Kind::Call, Outcome::Cancelled);
        event.detail = self.event.about_task;
        event.rule = prepared.rule.as_deref();
        event.elapsed = Some(self.event.start.elapsed());
        if let Err(error) = self.event.audit.finish(prepared.line, &event) {
            tracing::error!(%error, "a cancelled call is not in the audit log");
        }
    }
}

/// The profiles of a session, if it has any.
fn profile_of(view: &View) -> Option<String> {
    let config = view.config();
    let names: Vec<&str> = config.profile_names().collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// The outcome of an answer, and its size in bytes.
fn answered(reply: &Reply) -> (Kind, Outcome, Option<usize>) {
    let (outcome, received) = match reply {
        Reply::Result(body) | Reply::Relayed(body) => {
            let outcome = if body.required_input().is_some() {
                Outcome::Waiting
            } else if is_error(body) {
                Outcome::Error
            } else {
                Outcome::Ok
            };
            (outcome, body.len())
        }
        Reply::RelayedContent(body) => {
            let is_question = required_input(body).is_some();
            let outcome = if is_question {
                Outcome::Waiting
            } else {
                Outcome::Ok
            };
            (outcome, body.len())
        }
        Reply::Task(body) => (Outcome::Ok, body.len()),
        Reply::RelayedError(body) => (Outcome::Failed, body.len()),
        Reply::Error { .. } => (Outcome::Failed, 0),
        Reply::Ended { .. } => (Outcome::Ok, 0),
    };
    (Kind::Call, outcome, Some(received))
}

/// The outcome of a call without a result.
fn failed(failure: &Failure) -> (Kind, Outcome, Option<usize>) {
    let (kind, outcome) = match failure {
        Failure::Consent { .. }
        | Failure::NoConsent {
            reason: NoConsent::Waiting { .. },
            ..
        } => (Kind::Refusal, Outcome::Waiting),
        Failure::Withheld { .. }
        | Failure::NoConsent { .. }
        | Failure::NotReadOnly { .. }
        | Failure::Paused { .. }
        | Failure::Limited { .. }
        | Failure::Scopes { .. }
        | Failure::NotInScript { .. } => (Kind::Refusal, Outcome::Refused),
        Failure::Call { .. } | Failure::Refused { .. } | Failure::Malformed { .. } => {
            (Kind::Call, Outcome::Failed)
        }
        _ => (Kind::Refusal, Outcome::Failed),
    };
    (kind, outcome, None)
}

fn unwritten(name: &str, error: &crate::audit::Error, was_begun: bool) -> Failure {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let cause = cause.unwrap_or_default();
    Failure::Unlogged {
        name: name.to_owned(),
        cause: format!("{error} ({cause})"),
        was_begun,
    }
}
