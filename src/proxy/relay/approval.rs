//! The approval of a call whose client cannot ask its user: the call waits for a person's decision on the command line or in a
//! view of the daemon.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};

use super::consent::{Asking, Consent};
use super::{Relay, RequestContext};
use crate::approvals::{Approvals, Error, LIFE, Question, State, Watch};
use crate::events::Event;
use crate::mcp::Frame;
use crate::mcp::object::quoted;
use crate::notify::Notice;
use crate::proxy::failure::NoConsent;
use crate::proxy::view::View;
use crate::shutdown::Tasks;
use crate::tool::QualifiedName;

/// The time that a call waits if its client's own limit is unknown. The official SDKs of clients give up after 60 seconds.
const USUAL: Duration = Duration::from_secs(50);

/// The time that a call waits for clients with another limit, by their name (`clientInfo`) or its beginning.
const LIMITS: [(&str, Duration); 4] = [
    // After 120 seconds it moves a call to the background; 300 seconds without a message end one over HTTP.
    ("claude-code", Duration::from_secs(110)),
    // 600 seconds.
    ("gemini-cli-mcp-client", Duration::from_secs(290)),
    // 300 seconds.
    ("goose", Duration::from_secs(290)),
    // 120 seconds.
    ("amazon-q", Duration::from_secs(110)),
];

/// The questions that this process has asked.
#[derive(Debug)]
pub(in crate::proxy) struct Asked {
    /// `None` without a state directory.
    approvals: Option<Approvals>,
    /// The calls that wait, and the time of the last one, by the question's id.
    waiting: Mutex<HashMap<String, (usize, Instant)>>,
    /// The ends of calls that waited.
    pub(in crate::proxy) figures: Figures,
    tasks: Tasks,
}

/// How many calls that waited had which end.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Figures {
    pub(in crate::proxy) allowed: AtomicU64,
    pub(in crate::proxy) denied: AtomicU64,
    /// There was no decision in time.
    pub(in crate::proxy) unanswered: AtomicU64,
    /// The client cancelled the call, or left.
    pub(in crate::proxy) withdrawn: AtomicU64,
}

/// A call that waits for a question. The last one withdraws it when it is dropped.
struct Ticket<'a> {
    asked: &'a Asked,
    id: String,
    is_kept: bool,
}

impl Asked {
    pub(super) fn new(approvals: Option<Approvals>, tasks: Tasks) -> Self {
        Self {
            approvals,
            waiting: Mutex::default(),
            figures: Figures::default(),
            tasks,
        }
    }

    /// How many calls wait now.
    pub(in crate::proxy) fn pending(&self) -> usize {
        self.waiting.lock().values().map(|(count, _)| count).sum()
    }

    /// Withdraws all questions: with this process, the sessions that could use an approval end. Those of replicas go on at another one.
    pub(super) fn close(&self) {
        if self.approvals.as_ref().is_some_and(Approvals::are_shared) {
            return;
        }
        let ids: Vec<String> = self.waiting.lock().drain().map(|(id, _)| id).collect();
        for (id, approvals) in ids.iter().zip(self.approvals.iter().cycle()) {
            withdraw(approvals, id);
        }
    }

    fn watch(&self) -> Result<Watch, NoConsent> {
        let approvals = self.approvals.as_ref().ok_or(NoConsent::Unable)?;
        Ok(approvals.watch())
    }

    /// Runs a step that blocks on the disk.
    async fn step<T: Send + 'static>(
        &self,
        step: impl FnOnce(&Approvals) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, NoConsent> {
        let approvals = self.approvals.clone().ok_or(NoConsent::Unable)?;
        let outcome = self.tasks.spawn_blocking(move || step(&approvals)).await;
        let unkept = |error: String| NoConsent::Unkept { error };
        match outcome {
            Ok(outcome) => outcome.map_err(|error| unkept(error.to_string())),
            Err(error) => Err(unkept(error.to_string())),
        }
    }

    /// Asks a question, or joins those who wait for the same one. Whether it is a new one.
    async fn ask(&self, question: Question) -> Result<(Ticket<'_>, bool), NoConsent> {
        let (id, is_new) = self.step(move |approvals| approvals.ask(&question)).await?;
        let mut waiting = self.waiting.lock();
        waiting.retain(|_, (count, last)| *count > 0 || last.elapsed().as_secs() < LIFE);
        let entry = waiting.entry(id.clone()).or_insert((0, Instant::now()));
        *entry = (entry.0 + 1, Instant::now());
        let ticket = Ticket {
            asked: self,
            id,
            is_kept: false,
        };
        Ok((ticket, is_new))
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut waiting = self.asked.waiting.lock();
        let Some((count, _)) = waiting.get_mut(&self.id) else {
            return;
        };
        *count = count.saturating_sub(1);
        if self.is_kept {
            return;
        }
        self.asked.figures.withdrawn.fetch_add(1, Ordering::Relaxed);
        if *count == 0 {
            waiting.remove(&self.id);
            let id = std::mem::take(&mut self.id);
            if let Some(approvals) = self.asked.approvals.clone() {
                self.asked
                    .tasks
                    .spawn_blocking(move || withdraw(&approvals, &id));
            }
        }
    }
}

impl Relay {
    /// Waits for a person's decision about a call.
    pub(super) async fn approval(
        &self,
        view: &View,
        context: &RequestContext,
        (name, subject, arguments): (&QualifiedName, &str, &str),
        asking: Asking,
    ) -> Result<Consent, NoConsent> {
        let config = view.config();
        let client = &context.caller.client;
        let software = client.identity().software;
        let known = software.as_ref().map(|(name, _)| name.as_str());
        let deadline = Instant::now() + config.approvals.wait.unwrap_or_else(|| wait_of(known));
        let (server, tool) = (name.server.as_str(), name.tool.as_str());
        // After the daemon was killed, the next one gets the call again, and its question is still there.
        let session = self.events.session().unwrap_or_else(|| client.session());
        let mut question = Question::about(&session, (server, tool), subject, arguments);
        if let Some((name, version)) = &software {
            question = question.of_client(name, version);
        }
        question.directory = client.workspace().first().cloned();
        question.configuration.clone_from(&config.path);
        question.person = config.person_name().map(str::to_owned);
        question.profiles = config.narrowed_to();
        question.question = asking.question;
        question.rule = asking.rule;
        question.lists = asking.lists;
        let (mut ticket, mut is_new) = self.asked.ask(question.clone()).await?;
        self.announce(view, context, name, (&ticket.id, is_new));
        let watch = self.asked.watch()?;
        loop {
            let id = ticket.id.clone();
            // While mcpzip is paused, a permission is kept for later: nothing could be sent.
            let paused = self.paused();
            let state = match paused {
                Some(_) => State::Pending,
                None => {
                    let take = move |approvals: &Approvals| approvals.take(&id);
                    self.asked.step(take).await?
                }
            };
            let figures = &self.asked.figures;
            let (figure, outcome) = match state {
                State::Allowed => (&figures.allowed, Ok(Consent::Given(context.clone()))),
                State::Denied => (&figures.denied, Err(NoConsent::Declined)),
                State::Pending if Instant::now() < deadline => {
                    // At the deadline it looks once more.
                    let _ = timeout_at(deadline, watch.changed()).await;
                    continue;
                }
                State::Pending => {
                    let id = ticket.id.clone();
                    let reason = match paused {
                        Some(paused) => NoConsent::Paused { paused },
                        None => NoConsent::Waiting { id },
                    };
                    (&figures.unanswered, Err(reason))
                }
                // Another call used it, or was cancelled.
                State::Gone => {
                    ticket.is_kept = true;
                    drop(ticket);
                    (ticket, is_new) = self.asked.ask(question.anew()).await?;
                    self.announce(view, context, name, (&ticket.id, is_new));
                    continue;
                }
            };
            figure.fetch_add(1, Ordering::Relaxed);
            ticket.is_kept = true;
            return outcome;
        }
    }

    /// Says that a call waits: in an event and on the desktop if the question is a new one, and to the client if it listens to
    /// progress.
    fn announce(
        &self,
        view: &View,
        context: &RequestContext,
        name: &QualifiedName,
        (id, is_new): (&str, bool),
    ) {
        if is_new {
            if view.config().notify {
                self.notifier.notify(Notice::Call {
                    server: name.server.to_string(),
                    tool: name.tool.to_string(),
                });
            }
            self.events.note(|session| Event::ApprovalWanted {
                server: name.server.to_string(),
                tool: name.tool.to_string(),
                session,
                identity: self.events.identity(),
                approval: Some(id.to_owned()),
            });
        }
        if let Some(token) = &context.progress_token {
            let message = quoted(&format!("waits for approval {id}"));
            let params = format!(r#"{{"progressToken":{token},"progress":0,"message":{message}}}"#);
            let told = Frame::notification("notifications/progress", &params);
            context.caller.outbox.offer(told);
        }
    }
}

/// The time that a call of this client waits.
#[must_use]
pub(crate) fn wait_of(client: Option<&str>) -> Duration {
    let known = LIMITS
        .iter()
        .find(|(name, _)| client.is_some_and(|client| client.starts_with(name)));
    known.map_or(USUAL, |(_, wait)| *wait)
}

fn withdraw(approvals: &Approvals, id: &str) {
    if let Err(error) = approvals.withdraw(id) {
        tracing::warn!(%error, "a question about a call that is over could not be withdrawn");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_answered_before_its_client_gives_up() {
        for (client, seconds) in [
            (None, 50),
            (Some("some-client"), 50),
            (Some("claude-code"), 110),
            (Some("gemini-cli-mcp-client-zip"), 290),
        ] {
            assert_eq!(wait_of(client).as_secs(), seconds, "{client:?}");
        }
    }
}
