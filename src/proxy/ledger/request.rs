//! The requests for prompts, for the contents of resources and of extensions in the audit log: one event each, written before the answer is sent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::{answered, profile_of};
use crate::audit::{Audit, Event, Kind, Outcome, Written};
use crate::mcp::{ErrorCode, Object};
use crate::proxy::view::View;
use crate::proxy::{Caller, Reply};
use crate::tool::ServerName;

/// The server that a request went to, and the prompt's name there or the method of an extension, once they are known. Of several servers, the last.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Reached {
    place: Mutex<Option<(ServerName, Option<String>)>>,
    /// The rule or limit that has refused the request.
    refusal: Mutex<Option<String>>,
}

/// A request from its beginning. Dropped without an answer, it is recorded as cancelled.
pub(in crate::proxy) struct RequestEvent<'a> {
    audit: Arc<Audit>,
    caller: &'a Caller,
    view: &'a View,
    kind: Kind,
    reached: &'a Reached,
    /// The prompt as the client named it; the URI of a resource and the parameters of an extension are arguments.
    name: Option<String>,
    arguments: Option<String>,
    start: Instant,
    is_answered: bool,
}

impl Reached {
    pub(in crate::proxy) fn set(&self, server: &ServerName, prompt: Option<&str>) {
        *self.place.lock() = Some((server.clone(), prompt.map(str::to_owned)));
    }

    pub(in crate::proxy) fn refuse(&self, rule: Option<&str>) {
        *self.refusal.lock() = Some(rule.unwrap_or_default().to_owned());
    }
}

impl<'a> RequestEvent<'a> {
    /// Begins the event of a request with these parameters.
    ///
    /// # Errors
    /// With the answer if the log cannot be written; the request must then not be made.
    pub(in crate::proxy) fn begin(
        audit: Arc<Audit>,
        kind: Kind,
        (view, caller): (&'a View, &'a Caller),
        params: &Object<'_>,
        reached: &'a Reached,
    ) -> Result<Self, Reply> {
        audit.ready().map_err(|error| unwritten(&error))?;
        let raw = |key: &str| params.get(key).map(|raw| raw.get().to_owned());
        let (name, arguments) = match kind {
            Kind::Resource => (None, raw("uri").map(|uri| format!(r#"{{"uri":{uri}}}"#))),
            Kind::Extension => (None, Some(params.without("_meta"))),
            _ => (params.text("name"), raw("arguments")),
        };
        Ok(Self {
            audit,
            caller,
            view,
            kind,
            reached,
            name,
            arguments,
            start: Instant::now(),
            is_answered: false,
        })
    }

    /// Writes the event, and returns the answer to give.
    pub(in crate::proxy) async fn end(mut self, reply: Reply) -> Reply {
        self.is_answered = true;
        let (_, outcome, received) = answered(&reply);
        let committed = match self.write(outcome, received) {
            Ok(written) => self.audit.committed(written).await,
            Err(error) => Err(error),
        };
        match committed {
            Ok(()) => reply,
            Err(error) => unwritten(&error),
        }
    }

    fn write(
        &self,
        outcome: Outcome,
        received: Option<usize>,
    ) -> Result<Option<Written>, crate::audit::Error> {
        let identity = self.caller.client.identity();
        let workspace = self.caller.client.workspace();
        let (server, prompt) = self.reached.place.lock().clone().unzip();
        let prompt = prompt.flatten();
        let refusal = self.reached.refusal.lock().clone();
        let outcome = match (&refusal, outcome) {
            (Some(_), Outcome::Failed) => Outcome::Refused,
            _ => outcome,
        };
        let mut event = Event::new(self.kind, outcome);
        event.rule = refusal.as_deref().filter(|rule| !rule.is_empty());
        event.session = Some(identity.session.as_str());
        let software = identity.software.as_ref();
        event.client = software.map(|(name, version)| (name.as_str(), version.as_str()));
        event.identity = self.caller.client.person();
        event.directory = workspace.first().map(PathBuf::as_path);
        let profile = profile_of(self.view);
        event.profile = profile.as_deref();
        event.server = server.as_ref().map(ServerName::as_str);
        event.tool = prompt.as_deref().or(self.name.as_deref());
        event.sent = self.arguments.as_ref().map(String::len);
        event.arguments = self.arguments.as_deref();
        event.elapsed = Some(self.start.elapsed());
        event.received = received;
        self.audit.record(&event)
    }
}

impl Drop for RequestEvent<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        if let Err(error) = self.write(Outcome::Cancelled, None) {
            tracing::error!(%error, "a cancelled request is not in the audit log");
        }
    }
}

fn unwritten(error: &crate::audit::Error) -> Reply {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let cause = cause.unwrap_or_default();
    Reply::error(
        ErrorCode::INTERNAL,
        format!(
            "the request has no answer, because {error} ({cause}); requests resume when it can be written: tell the user"
        ),
    )
}
